//! The navigation of the documentation site: pages by role, in the order of reading.

/// A page of the site.
pub struct Page {
    /// Its path below the root of the project.
    pub source: &'static str,
    /// Its file in the site, without the ending.
    pub name: &'static str,
    /// Its title in the navigation.
    pub title: &'static str,
}

const fn page(source: &'static str, name: &'static str, title: &'static str) -> Page {
    Page {
        source,
        name,
        title,
    }
}

/// A part of the navigation: the pages of one role. The first page leads to the others.
pub struct Part {
    /// Its heading.
    pub title: &'static str,
    /// Its pages.
    pub pages: &'static [Page],
}

/// The parts of the navigation.
pub const PARTS: &[Part] = &[
    Part {
        title: "Start",
        pages: &[
            page("README.md", "index", "aqlite"),
            page("docs/tutorial.md", "tutorial", "Tutorial"),
            page("docs/playground.md", "playground", "Playground"),
        ],
    },
    Part {
        title: "Integrators",
        pages: &[
            page(
                "docs/for-integrators.md",
                "for-integrators",
                "For integrators",
            ),
            page("docs/rest.md", "rest", "REST interface"),
            page(
                "docs/simplified-formats.md",
                "simplified-formats",
                "Web templates, FLAT and STRUCTURED",
            ),
            page("www/package/README.md", "npm-package", "npm package"),
            page(
                "docs/statements.md",
                "statements",
                "Statements of the specification",
            ),
        ],
    },
    Part {
        title: "Modellers",
        pages: &[
            page("docs/for-modellers.md", "for-modellers", "For modellers"),
            page(
                "docs/reference-model.md",
                "reference-model",
                "Reference Model and templates",
            ),
        ],
    },
    Part {
        title: "Researchers",
        pages: &[
            page(
                "docs/for-researchers.md",
                "for-researchers",
                "For researchers",
            ),
            page("docs/aql.md", "aql", "AQL"),
            page("docs/aql-rules.md", "aql-rules", "Rules of AQL"),
            page("docs/analytics.md", "analytics", "Arrow and Parquet"),
            page("docs/cli.md", "cli", "The program aqlite"),
        ],
    },
    Part {
        title: "Authors of guides",
        pages: &[
            page(
                "docs/for-guideline-authors.md",
                "for-guideline-authors",
                "For authors of guides",
            ),
            page("docs/guides.md", "guides", "Guides (GDL)"),
        ],
    },
    Part {
        title: "Operators",
        pages: &[
            page("docs/for-operators.md", "for-operators", "For operators"),
            page("docs/deploy.md", "deploy", "Deployment"),
            page("docs/security.md", "security", "Security"),
            page("docs/segments.md", "segments", "Segments"),
            page("docs/benchmark.md", "benchmark", "Benchmark"),
            page("SECURITY.md", "security-policy", "Security policy"),
        ],
    },
    Part {
        title: "Contributors",
        pages: &[
            page("CONTRIBUTING.md", "contributing", "Contributing"),
            page("ARCHITECTURE.md", "architecture", "Architecture"),
            page("docs/execution.md", "execution", "Execution of a query"),
            page("docs/glossary.md", "glossary", "Glossary"),
            page("docs/dependencies.md", "dependencies", "Dependencies"),
            page("fuzz/README.md", "fuzzing", "Fuzzing"),
            page("CHANGELOG.md", "changelog", "Changelog"),
            page("CODE_OF_CONDUCT.md", "code-of-conduct", "Code of conduct"),
        ],
    },
];

/// Returns all pages in the order of the navigation.
pub fn pages() -> impl Iterator<Item = &'static Page> {
    PARTS.iter().flat_map(|part| part.pages)
}

/// Returns the table of contents as mdBook reads it.
pub fn summary() -> String {
    let mut text = String::from("# Summary\n");
    for part in PARTS {
        text.push_str(&format!("\n# {}\n\n", part.title));
        for page in part.pages {
            text.push_str(&format!("- [{}]({}.md)\n", page.title, page.name));
        }
    }
    text
}
