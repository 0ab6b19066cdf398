//! `docs/dependencies.md` lists the content of the lock files, so every added or updated dependency
//! is reviewed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Returns name and version, the first two cells of the rows of the table below a heading.
fn listed(document: &str, heading: &str) -> BTreeSet<(String, String)> {
    let section = document
        .split("\n## ")
        .find(|section| section.starts_with(heading))
        .unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| {
        row.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect::<Vec<_>>()
    });
    cells
        .map(|cells| (cells[0].clone(), cells[1].clone()))
        .collect()
}

/// Returns name and version of every crate of a lock file that comes from a registry.
fn locked(lock: &str) -> BTreeSet<(String, String)> {
    let field = |block: &str, name: &str| {
        block
            .lines()
            .find_map(|line| Some(line.strip_prefix(name)?.trim_matches('"').to_owned()))
    };
    let foreign = lock
        .split("[[package]]")
        .filter(|block| block.contains("\nsource = "));
    foreign
        .filter_map(|block| Some((field(block, "name = ")?, field(block, "version = ")?)))
        .collect()
}

/// Returns the names of the dependencies in all tables of a manifest.
fn named(manifest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim_end().ends_with("dependencies]");
        } else if inside && line.contains('=') && !line.starts_with('#') {
            names.extend(
                line.split(['=', '.'])
                    .next()
                    .map(|name| name.trim().to_owned()),
            );
        }
    }
    names
        .into_iter()
        .filter(|name| !name.starts_with("aqlite"))
        .collect()
}

#[test]
fn every_crate_that_the_code_names_is_reviewed_in_its_locked_version() {
    let document = read("docs/dependencies.md");
    let direct = listed(&document, "Rust crates that the code names");
    let manifests = [
        "Cargo.toml",
        "crates/aqlite-rm/Cargo.toml",
        "crates/aqlite-engine/Cargo.toml",
        "crates/aqlite-template/Cargo.toml",
        "crates/aqlite-aql/Cargo.toml",
        "crates/aqlite-gdl/Cargo.toml",
        "crates/aqlite-arrow/Cargo.toml",
        "cli/Cargo.toml",
        "worker/Cargo.toml",
        "www/arrow/Cargo.toml",
        "www/wasm/Cargo.toml",
        "xtask/Cargo.toml",
        "benches/Cargo.toml",
        "tests/wasm/Cargo.toml",
        "fuzz/Cargo.toml",
        "tests/soak/mutants/Cargo.toml",
    ];
    let wanted: BTreeSet<String> = manifests
        .iter()
        .flat_map(|name| named(&read(name)))
        .collect();
    assert!(wanted.len() > 15, "{wanted:?}");
    assert_eq!(
        direct
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<BTreeSet<_>>(),
        wanted
    );
    let all: BTreeSet<_> = locked(&read("Cargo.lock"))
        .union(&locked(&read("fuzz/Cargo.lock")))
        .cloned()
        .collect();
    let linked = listed(&document, "Rust crates that these link");
    let stale: Vec<_> = direct
        .union(&linked)
        .filter(|part| !all.contains(part))
        .collect();
    assert_eq!(
        stale,
        Vec::<&(String, String)>::new(),
        "docs/dependencies.md lists versions that no lock file has"
    );
}

#[test]
fn every_npm_package_that_is_asked_for_is_reviewed_in_its_version() {
    let manifests = [
        "package.json",
        "tests/package/package.json",
        "tests/soak/bundlers/package.json",
        "tests/tables/package.json",
    ]
    .map(|file| serde_json::from_str::<serde_json::Value>(&read(file)).unwrap());
    let tables = manifests.iter().flat_map(|manifest| {
        let tables = ["devDependencies", "overrides"];
        tables.map(|table| manifest[table].as_object())
    });
    let pinned = tables
        .flatten()
        .flatten()
        .map(|(name, version)| (name.clone(), version.as_str().unwrap().to_owned()));
    let wanted: BTreeSet<_> = pinned
        .filter(|(_, version)| !version.starts_with('$'))
        .collect();
    assert_eq!(
        listed(&read("docs/dependencies.md"), "npm packages"),
        wanted
    );
}
