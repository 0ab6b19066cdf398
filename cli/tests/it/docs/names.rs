//! Commands and options that the documentation names exist, also in blocks that are not run.

use super::page::{Page, pages, root};
use std::collections::BTreeMap;
use std::process::Command;

/// Words behind `aqlite ` in the documentation that begin no command: sentences about the program.
const NO_COMMANDS: [&str; 3] = ["COMMAND", "…", "--help"];

/// A command line in a page.
struct Named {
    place: String,
    words: Vec<String>,
}

/// Returns the commands of a page that begin with a program: lines of shell blocks, and spans.
fn named(page: &Page, program: &str) -> Vec<Named> {
    let place = |line: usize| format!("{}:{line}", page.name);
    let words = |text: &str| -> Vec<String> {
        let text = text.split(" #").next().unwrap_or_default();
        let text = text
            .split(['|', ';', '>', '<', '&', '\''])
            .next()
            .unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    };
    let mut found = Vec::new();
    for block in page.blocks().iter().filter(|block| block.is_shell()) {
        for command in block.commands() {
            let rest = command
                .split(program)
                .nth(1)
                .filter(|_| command.starts_with(program));
            found.extend(rest.map(|rest| Named {
                place: place(block.line),
                words: words(rest),
            }));
        }
    }
    for (index, line) in page
        .text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.starts_with("```"))
    {
        let spans = line.split('`').skip(1).step_by(2);
        for rest in spans.filter_map(|span| span.strip_prefix(program)) {
            found.push(Named {
                place: place(index + 1),
                words: words(rest),
            });
        }
    }
    found
}

/// Returns the options among words, without values and brackets.
fn options(words: &[String]) -> impl Iterator<Item = &str> {
    let bare = words
        .iter()
        .map(|word| word.trim_matches(['[', ']', ',', '.', '(', ')']));
    bare.filter(|word| word.starts_with("--") && word.len() > 2)
        .map(|word| word.split(['=', '/']).next().unwrap_or_default())
}

/// Returns the help of a command of the program.
fn help(words: &[String]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_aqlite"))
        .args(words)
        .arg("--help")
        .output()
        .unwrap();
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn commands_of_the_program_exist_with_their_options() {
    let mut helps: BTreeMap<Vec<String>, Option<String>> = BTreeMap::new();
    let (mut problems, mut count) = (Vec::new(), 0);
    for named in pages().iter().flat_map(|page| named(page, "aqlite ")) {
        let first = named.words.first().map_or("", String::as_str);
        if NO_COMMANDS.contains(&first) || first.is_empty() {
            continue;
        }
        count += 1;
        let nested = ["guide", "template", "lake"].contains(&first);
        let is_named = |word: &&String| word.chars().all(|c| c.is_ascii_lowercase());
        let depth = if nested {
            named.words.iter().take(2).take_while(is_named).count()
        } else {
            1
        };
        let command = named.words[..depth].to_vec();
        let help = helps
            .entry(command.clone())
            .or_insert_with(|| help(&command));
        let Some(help) = help else {
            problems.push(format!(
                "{}: there is no `aqlite {}`",
                named.place,
                command.join(" ")
            ));
            continue;
        };
        let unknown = options(&named.words).filter(|option| !help.contains(option));
        problems.extend(unknown.map(|o| format!("{}: `{first}` has no `{o}`", named.place)));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert!(count > 50, "{count} commands");
}

#[test]
fn commands_of_the_project_exist_with_their_options() {
    let source = std::fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
    let usages: BTreeMap<&str, &str> = source
        .split("name: \"")
        .skip(1)
        .filter_map(|task| task.split_once('"'))
        .collect();
    let (mut problems, mut count) = (Vec::new(), 0);
    for named in pages().iter().flat_map(|page| named(page, "cargo xtask ")) {
        let first = named.words.first().map_or("", String::as_str);
        if ["help", ""].contains(&first) {
            continue;
        }
        count += 1;
        match usages.get(first) {
            None => problems.push(format!(
                "{}: there is no `cargo xtask {first}`",
                named.place
            )),
            Some(usage) => {
                let unknown = options(&named.words).filter(|option| !usage.contains(option));
                problems
                    .extend(unknown.map(|o| format!("{}: `{first}` has no `{o}`", named.place)));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert!(count > 30, "{count} commands");
}
