//! Rules about the source text: import order inside a crate, length of files, purity of the library
//! crates.

use std::fs;
use std::path::{Path, PathBuf};

/// The source folders of the library crates.
const LIBRARIES: [&str; 7] = [
    "crates/aqlite-rm/src",
    "crates/aqlite-engine/src",
    "crates/aqlite-template/src",
    "crates/aqlite-aql/src",
    "crates/aqlite-gdl/src",
    "crates/aqlite-arrow/src",
    "src",
];
/// The module groups of each crate in the order of their imports: each may use the earlier ones.
/// Cargo enforces the order of the crates.
const LAYERS: [(&str, &[&str]); 2] = [
    ("crates/aqlite-engine/src", &["document", "answer"]),
    ("src", &["samples", "store", "service"]),
];
/// The crates of hosts, which the core must not use.
const HOST_CRATES: [&str; 4] = ["worker::", "wasm_bindgen", "js_sys", "web_sys"];
/// Clocks, files, networks and terminals, which the pure core must not use.
const IMPURE: [&str; 11] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant::now",
    "Utc::now",
    "Local::now",
    "println!",
    "dbg!",
];
/// The files with a variable of the process. ARCHITECTURE.md has the reasons ("State of a process").
const STATE_OF_PROCESS: [&str; 2] = [
    "crates/aqlite-engine/src/document/batch.rs",
    "crates/aqlite-engine/src/document/part.rs",
];
const LONGEST_FILE: usize = 1000;
/// The most lines of a Rust file.
const LONGEST_RUST_FILE: usize = 800;
/// First words of doc comments that replace a noun. `docs/glossary.md` has the nouns.
const PRIVATE_STARTS: [&str; 7] = ["What", "Where", "Who", "Says", "Tells", "How", "So many"];
/// Phrases of comments in the place of a precise term.
const PRIVATE_WORDS: [&str; 8] = [
    "told",
    "nobody",
    "somebody",
    "whoever",
    "so many",
    "how manieth",
    "taken for granted",
    "takes for granted",
];
/// The folders of Rust code.
const RUST: [&str; 10] = [
    "crates",
    "src",
    "cli",
    "worker/src",
    "www/wasm/src",
    "www/arrow/src",
    "xtask/src",
    "tests",
    "benches",
    "examples",
];

/// The enums of options that a caller chooses from. `Auth` is none of them: a host must decide on
/// each of its variants.
const OPTIONS: [&str; 4] = ["ResultFormat", "Shape", "TableFormat", "Times"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the source files under a folder, except generated and installed ones.
fn sources(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (
                entry.path(),
                entry.file_name().to_string_lossy().into_owned(),
            );
            if path.is_dir() && !["node_modules", "target"].contains(&name.as_str()) {
                folders.push(path);
            } else if name != "class_table.rs"
                && path
                    .extension()
                    .is_some_and(|e| extensions.iter().any(|x| e == *x))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .to_string_lossy()
        .replace('\\', "/")
}

/// Returns the code of a file without comment lines and unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn modules_import_only_earlier_layers() {
    let mut complaints = Vec::new();
    for (folder, layers) in LAYERS {
        for file in sources(folder, &["rs"]) {
            let name = shown(&file);
            let module = |layer: &str| {
                let inside = name.strip_prefix(folder).unwrap_or_default();
                inside
                    .trim_start_matches('/')
                    .split(['/', '.'])
                    .next()
                    .is_some_and(|first| first == layer)
            };
            let later = layers.iter().skip_while(|layer| !module(layer)).skip(1);
            let code = code(&file);
            complaints.extend(
                later
                    .filter(|other| code.contains(&format!("crate::{other}")))
                    .map(|other| format!("{name}: must not import `{other}`")),
            );
        }
    }
    assert_none(&complaints);
}

#[test]
fn repositories_see_of_a_query_only_its_scan() {
    let complaints: Vec<_> = sources("src/store", &["rs"])
        .iter()
        .filter(|file| {
            let code = code(file);
            code.matches("answer::").count() != code.matches("answer::scan").count()
        })
        .map(|file| format!("{}: imports more of `answer` than `scan`", shown(file)))
        .collect();
    assert_none(&complaints);
}

#[test]
fn the_core_is_pure() {
    let mut complaints = Vec::new();
    for file in LIBRARIES.iter().flat_map(|folder| sources(folder, &["rs"])) {
        let code = code(&file);
        let words = HOST_CRATES
            .iter()
            .chain(&IMPURE)
            .filter(|word| code.contains(**word));
        complaints.extend(words.map(|word| format!("{}: names `{word}`", shown(&file))));
    }
    assert_none(&complaints);
}

#[test]
fn state_belongs_to_an_owner() {
    // `LazyLock` and `OnceLock` hold tables that are computed once.
    let is_variable = |line: &str| {
        let line = line.trim_start().trim_start_matches("pub ");
        let of_process = ["Atomic", "Mutex<", "RwLock<", "Cell<", "static mut "];
        line.starts_with("thread_local!")
            || line.starts_with("static ") && of_process.iter().any(|word| line.contains(word))
    };
    let files = LIBRARIES.iter().flat_map(|folder| sources(folder, &["rs"]));
    let found: Vec<String> = files
        .filter(|file| code(file).lines().any(is_variable))
        .map(|file| shown(&file))
        .collect();
    assert_eq!(found, STATE_OF_PROCESS);
}

#[test]
fn files_are_short() {
    let mut complaints = Vec::new();
    for folder in [
        "crates", "src", "cli", "worker", "www", "xtask", "tests", "benches", "examples", "fuzz",
    ] {
        for file in sources(folder, &["rs", "ts", "js", "mjs", "css", "html"]) {
            let most = match file.extension() {
                Some(ending) if ending == "rs" => LONGEST_RUST_FILE,
                _ => LONGEST_FILE,
            };
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            if lines > most {
                complaints.push(format!("{}: {lines} lines, at most {most}", shown(&file)));
            }
        }
    }
    for (folder, most) in [("worker", 2150), ("www/wasm", 1100)] {
        let lines: usize = sources(folder, &["rs", "js"])
            .iter()
            .map(|file| fs::read_to_string(file).unwrap().lines().count())
            .sum();
        if lines > most {
            complaints.push(format!(
                "{folder}: {lines} lines, at most {most}: a host holds no domain logic"
            ));
        }
    }
    assert_none(&complaints);
}

#[test]
fn modules_start_with_their_documentation() {
    let mut complaints = Vec::new();
    for folder in RUST {
        for file in sources(folder, &["rs"]) {
            let text = fs::read_to_string(&file).unwrap();
            if !text.starts_with("//! ") && !text.starts_with("#![doc = include_str!") {
                complaints.push(format!(
                    "{}: does not start with its documentation",
                    shown(&file)
                ));
            }
        }
    }
    assert_none(&complaints);
}

/// Returns the text of a line comment without its marker; `None` for code.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim_start())
}

/// Returns whether a text has a phrase between word boundaries, in any case.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let text = text.to_lowercase();
    text.match_indices(phrase).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + phrase.len()..].chars().next();
        ![before, after]
            .iter()
            .flatten()
            .any(|c| c.is_alphanumeric() || *c == '_')
    })
}

#[test]
fn comments_use_nouns_and_terms() {
    let mut complaints = Vec::new();
    for file in RUST.iter().flat_map(|folder| sources(folder, &["rs"])) {
        let text = fs::read_to_string(&file).unwrap();
        let mut previous = None;
        for (number, line) in (1..).zip(text.lines()) {
            let comment = comment(line);
            if let Some(comment) = comment {
                let is_first = previous.is_none();
                let start = PRIVATE_STARTS.iter().find(|start| {
                    let rest = comment.strip_prefix(**start);
                    is_first && rest.is_some_and(|rest| rest.starts_with([' ', ',', ':']))
                });
                let word = PRIVATE_WORDS.iter().find(|word| has_phrase(comment, word));
                complaints.extend(
                    start
                        .or(word)
                        .map(|word| format!("{}:{number}: `{word}`: name the thing", shown(&file))),
                );
            }
            previous = comment;
        }
    }
    assert_none(&complaints);
}

#[test]
fn the_source_has_no_unfinished_parts() {
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
        concat!("HA", "CK:"),
    ];
    let mut complaints = Vec::new();
    for folder in [
        "crates",
        "src",
        "worker",
        "www",
        "xtask",
        "tests",
        "benches",
        "examples",
        "migrations",
    ] {
        for file in sources(
            folder,
            &["rs", "ts", "js", "mjs", "css", "html", "sql", "toml"],
        ) {
            let text = fs::read_to_string(&file).unwrap();
            let found = words.iter().filter(|word| text.contains(**word));
            complaints.extend(found.map(|word| format!("{}: `{word}`", shown(&file))));
        }
    }
    assert_none(&complaints);
}

#[test]
fn public_errors_and_options_may_get_further_variants() {
    let mut open_enums = Vec::new();
    let mut problems = Vec::new();
    for path in LIBRARIES.iter().flat_map(|folder| sources(folder, &["rs"])) {
        let text = fs::read_to_string(&path).unwrap();
        let mut attributes = Vec::new();
        for line in text.lines() {
            let declared = line.strip_prefix("pub enum ");
            let name = declared.and_then(|rest| rest.split([' ', '<']).next());
            if let Some(name) = name.filter(|n| n.ends_with("Error") || OPTIONS.contains(n)) {
                open_enums.push(name.to_owned());
                if !attributes.contains(&"#[non_exhaustive]") {
                    problems.push(format!("{}: {name} is exhaustive", shown(&path)));
                }
                let implementation = format!("impl std::error::Error for {name} {{}}");
                if name.ends_with("Error") && !text.contains(&implementation) {
                    problems.push(format!("{}: {name} is no std::error::Error", shown(&path)));
                }
            }
            match line.starts_with("#[") {
                true => attributes.push(line),
                false => attributes.clear(),
            }
        }
    }
    assert_eq!(problems, Vec::<String>::new());
    for name in OPTIONS
        .iter()
        .chain(&["QueryError", "TerminologyError", "ViewError"])
    {
        assert!(open_enums.iter().any(|found| found == name), "{name}");
    }
}
