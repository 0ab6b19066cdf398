//! The examples of `docs/cli.md`, run on the sample data.
//!
//! A block of `console` has commands behind `$ `, each with its output. `...` is any number of lines.
//! `AQLITE_BLESS=1` writes the present output into the page. Read the difference before you commit
//! it.

use super::program::{Folder, bulk_line, write_definitions};
use aqlite::samples::Generator;
use std::process::Command;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md");

/// Writes the data that the page begins with: `gen-data --ehrs 20 --compositions 200 --seed 7`.
fn sample(folder: &Folder) {
    let generator = Generator::new(7, 20, 200);
    let all = 0..generator.compositions();
    let lines: String = all.map(|index| bulk_line(&generator, index)).collect();
    folder.write("sample/compositions.ndjson", &lines);
    let inner = Folder::new();
    write_definitions(&inner);
    for name in ["templates", "guides"] {
        for entry in std::fs::read_dir(inner.path().join(name)).unwrap() {
            let path = entry.unwrap().path();
            let file = path
                .file_name()
                .unwrap()
                .to_string_lossy()
                .replace(".gdl2", "");
            let text = std::fs::read_to_string(&path).unwrap();
            folder.write(&format!("sample/{name}/{file}"), &text);
        }
    }
}

/// Runs a command of the page, and returns what it writes.
fn run(folder: &Folder, command: &str) -> String {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_aqlite"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(folder.path())
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .env("AQLITE_CACHE_DIR", folder.path().join(".cache"))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns whether lines fit a pattern in which `...` is any number of lines.
fn fits(pattern: &[&str], lines: &[&str]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..])),
        Some((first, rest)) => {
            let is_equal = lines.first().is_some_and(|line| line.trim_end() == *first);
            is_equal && fits(rest, &lines[1..])
        }
    }
}

/// Returns the page with the present output of its commands.
fn present(page: &str, folder: &Folder) -> String {
    let mut out = String::new();
    let mut lines = page.lines().peekable();
    let mut is_console = false;
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line.starts_with("```") {
            is_console = line == "```console";
            continue;
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) else {
            continue;
        };
        let mut expected = Vec::new();
        let is_output = |line: &&str| !line.starts_with("$ ") && !line.starts_with("```");
        while let Some(line) = lines.next_if(is_output) {
            expected.push(line);
        }
        let written = run(folder, command);
        let written: Vec<&str> = written.lines().map(str::trim_end).collect();
        let shown = if fits(&expected, &written) {
            expected
        } else {
            written
        };
        shown
            .iter()
            .for_each(|line| out.push_str(&format!("{line}\n")));
    }
    out
}

#[cfg(unix)]
#[test]
fn examples_of_the_documentation_hold() {
    let folder = Folder::new();
    sample(&folder);
    let page = std::fs::read_to_string(PAGE).unwrap();
    let present = present(&page, &folder);
    if std::env::var_os("AQLITE_BLESS").is_some() {
        std::fs::write(PAGE, present).unwrap();
        return;
    }
    let different = page.lines().zip(present.lines()).find(|(a, b)| a != b);
    assert!(
        page == present,
        "{different:#?}; AQLITE_BLESS=1 writes the present output"
    );
    assert!(page.matches("\n$ ").count() >= 15);
}
