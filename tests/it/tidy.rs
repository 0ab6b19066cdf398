//! The rules of the house, read from the source text: who may import whom, how long a file may be, what the core must not touch.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the core stands: the engine, a crate of its own, and the rest.
const CORE: [&str; 2] = ["engine/src", "src"];
/// The rooms of the core from the ground up: each may use what stands before it. The first seven are the engine's.
const ROOMS: [&str; 12] = ["order", "case", "diag", "pattern", "rm", "document", "answer", "template", "store", "aql", "gdl", "service"];
/// The sample data stands beside the others and uses only these.
const SAMPLES_USE: [&str; 6] = ["order", "case", "diag", "rm", "template", "samples"];
/// Crates of the hosts, which the core must not know.
const HOST_CRATES: [&str; 4] = ["worker::", "wasm_bindgen", "js_sys", "web_sys"];
/// Clocks, files, networks and terminals: the core is pure.
const IMPURE: [&str; 11] =
    ["std::fs", "std::net", "std::env", "std::process", "std::thread", "SystemTime", "Instant::now", "Utc::now", "Local::now", "println!", "dbg!"];
const LONGEST_FILE: usize = 1000;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The source files under a folder, generated and installed ones left out.
fn sources(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && !["node_modules", "target"].contains(&name.as_str()) {
                folders.push(path);
            } else if name != "class_table.rs" && path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// The code of a file: without comment lines, and without its unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The rooms that a file names by `crate::…` or `aqlite_engine::…`, also in a group `crate::{…}`.
fn rooms_named(code: &str) -> Vec<String> {
    let word = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut rooms = Vec::new();
    for rest in ["crate::", "aqlite_engine::"].into_iter().flat_map(|root| code.split(root).skip(1)) {
        let Some(group) = rest.strip_prefix('{') else {
            rooms.push(word(rest));
            continue;
        };
        let (mut depth, mut item) = (0, String::new());
        for c in group.chars() {
            match c {
                '}' if depth == 0 => break,
                ',' if depth == 0 => rooms.push(word(&std::mem::take(&mut item))),
                _ => {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    item.push(c);
                }
            }
        }
        rooms.push(word(&item));
    }
    rooms.retain(|room| ROOMS.contains(&room.as_str()) || room == "samples");
    rooms
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn imports_go_one_way() {
    let mut complaints = Vec::new();
    for file in CORE.iter().flat_map(|folder| sources(folder, &["rs"])) {
        let name = shown(&file);
        let room = name.trim_start_matches("engine/").trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default().to_owned();
        let allowed = match ROOMS.iter().position(|r| *r == room) {
            Some(rank) => &ROOMS[..=rank],
            None if room == "samples" => &SAMPLES_USE[..],
            None if room == "lib" => continue,
            None => {
                complaints.push(format!("{name}: stands in no room"));
                continue;
            }
        };
        let code = code(&file);
        let named = rooms_named(&code);
        complaints.extend(named.iter().filter(|r| !allowed.contains(&r.as_str())).map(|other| format!("{name}: `{room}` must not use `{other}`")));
        if room == "aql" && named.iter().any(|other| other == "store") {
            complaints.push(format!("{name}: a query says what it needs as `answer::scan`; `aql` sees no repository"));
        }
        if room == "store" && code.matches("answer::").count() != code.matches("answer::scan").count() {
            complaints.push(format!("{name}: of `answer` a repository sees `scan` alone"));
        }
    }
    assert_none(&complaints);
}

#[test]
fn the_core_is_pure() {
    let mut complaints = Vec::new();
    for file in CORE.iter().flat_map(|folder| sources(folder, &["rs"])) {
        let code = code(&file);
        let words = HOST_CRATES.iter().chain(&IMPURE).filter(|word| code.contains(**word));
        complaints.extend(words.map(|word| format!("{}: names `{word}`", shown(&file))));
    }
    assert_none(&complaints);
}

#[test]
fn files_are_short() {
    let mut complaints = Vec::new();
    for folder in ["engine", "src", "worker", "www", "xtask", "tests", "benches", "examples"] {
        for file in sources(folder, &["rs", "ts", "js", "mjs", "css", "html"]) {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            if lines > LONGEST_FILE {
                complaints.push(format!("{}: {lines} lines, at most {LONGEST_FILE}", shown(&file)));
            }
        }
    }
    for (folder, most) in [("worker", 1400), ("www/wasm", 800)] {
        let lines: usize = sources(folder, &["rs", "js"]).iter().map(|file| fs::read_to_string(file).unwrap().lines().count()).sum();
        if lines > most {
            complaints.push(format!("{folder}: {lines} lines, at most {most}: a host holds no domain logic"));
        }
    }
    assert_none(&complaints);
}

#[test]
fn modules_say_what_they_are() {
    let mut complaints = Vec::new();
    for folder in ["engine/src", "src", "worker/src", "www/wasm/src", "xtask/src", "tests", "benches", "examples"] {
        for file in sources(folder, &["rs"]) {
            let text = fs::read_to_string(&file).unwrap();
            if !text.starts_with("//! ") && !text.starts_with("#![doc = include_str!") {
                complaints.push(format!("{}: does not start with its documentation", shown(&file)));
            }
        }
    }
    assert_none(&complaints);
}

#[test]
fn nothing_is_left_for_later() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), concat!("HA", "CK:")];
    let mut complaints = Vec::new();
    for folder in ["engine", "src", "worker", "www", "xtask", "tests", "benches", "examples", "migrations"] {
        for file in sources(folder, &["rs", "ts", "js", "mjs", "css", "html", "sql", "toml"]) {
            let text = fs::read_to_string(&file).unwrap();
            let found = words.iter().filter(|word| text.contains(**word));
            complaints.extend(found.map(|word| format!("{}: `{word}`", shown(&file))));
        }
    }
    assert_none(&complaints);
}
