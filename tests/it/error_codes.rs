//! The codes of errors as TypeScript types of the npm package. `AQLITE_BLESS=1` writes them;
//! otherwise a file that is not current fails.

use regex_lite::Regex;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Collects the sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Writes a union of texts in the layout of Prettier.
fn union(comment: &str, name: &str, members: &BTreeSet<String>) -> String {
    let lines: String = members.iter().map(|m| format!("\n  | \"{m}\"")).collect();
    format!("/** {comment} */\nexport type {name} ={lines};\n")
}

#[test]
fn package_declares_every_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("crates"), &mut files);
    let code = Regex::new("\"((?:AQL|FLT|GDL|RM|SVC|TPL)[0-9]{4})\"").unwrap();
    let texts: Vec<String> = files
        .iter()
        .map(|f| fs::read_to_string(f).unwrap())
        .collect();
    let codes: BTreeSet<String> = texts
        .iter()
        .flat_map(|text| code.captures_iter(text).map(|found| found[1].to_owned()))
        .collect();
    assert!(codes.len() > 100 && codes.contains("AQL0203"), "{codes:?}");
    // The names of statuses are made of their reason phrases.
    let status = Regex::new("(?m)^ +(?:[45][0-9]{2}|_) => \"([A-Z][A-Za-z ]+)\",$").unwrap();
    let reasons = fs::read_to_string(root.join("src/service/error.rs")).unwrap();
    let statuses: BTreeSet<String> = status
        .captures_iter(&reasons)
        .map(|found| found[1].to_uppercase().replace(' ', "_"))
        .collect();
    assert!(statuses.contains("INTERNAL_SERVER_ERROR"), "{statuses:?}");
    let wanted = [
        String::from(
            "// The codes of problems and answers. Written by `tests/it/error_codes.rs`.\n",
        ),
        union(
            "The codes of diagnostics and findings.",
            "DiagnosticCode",
            &codes,
        ),
        union(
            "The codes of answers whose problems have none.",
            "StatusCode",
            &statuses,
        ),
    ]
    .join("\n");
    let path = root.join("www/package/codes.ts");
    if std::env::var_os("AQLITE_BLESS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|text| text == wanted),
        "{} is not current: AQLITE_BLESS=1 cargo test -p aqlite --test it error_codes",
        path.display()
    );
}
