//! The blocks of code in the documentation. `CONTRIBUTING.md` lists how each kind is tested.
//!
//! `AQLITE_BLESS=1` writes the present output of commands into the pages. Read the difference before
//! you commit it.

mod names;
mod page;
mod session;

use page::{Block, Page, Part, pages, root};
use session::{GENERATE, Session};
use std::collections::BTreeMap;
use std::process::Output;

/// The most blocks that may be excluded from the tests by `not-run:`.
const MAX_NOT_RUN: usize = 26;
/// Pages and languages whose programs other tests run: `tests/package` runs those of the npm package.
const TESTED_ELSEWHERE: [(&str, &[&str]); 1] = [("www/package/README.md", &["sh", "js", "html"])];

/// Returns whether lines fit a pattern in which the line `...` is any number of lines.
fn fits(pattern: &[String], lines: &[String]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..]))
        }
        Some((first, rest)) => {
            let is_equal = lines.first().is_some_and(|line| line_fits(first, line));
            is_equal && fits(rest, &lines[1..])
        }
    }
}

/// Returns whether a line fits a pattern in which `…` is any text.
fn line_fits(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('…') else {
        return pattern == line;
    };
    let Some(line) = line.strip_prefix(start) else {
        return false;
    };
    let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    ends.into_iter().any(|at| line_fits(rest, &line[at..]))
}

/// The commands of a `console` block, each with the lines that the page shows.
fn shown(block: &Block) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in &block.body {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((command, lines))) if lines.is_empty() && command.ends_with('\\') => {
                command.push('\n');
                command.push_str(line);
            }
            (None, Some((_, lines))) => lines.push(line.clone()),
            (None, None) => panic!("line {}: output without a command", block.line),
        }
    }
    commands
}

/// Returns a `console` block with the present output of its commands.
fn console(session: &Session, block: &Block) -> Vec<String> {
    let shown = shown(block);
    let commands: Vec<String> = shown.iter().map(|(command, _)| command.clone()).collect();
    let mut outputs = session.outputs(&commands).into_iter();
    let mut body = Vec::new();
    for (command, expected) in shown {
        let written = outputs.next().unwrap_or_default();
        body.extend(format!("$ {command}").lines().map(str::to_owned));
        body.extend(if fits(&expected, &written) {
            expected
        } else {
            written
        });
    }
    body
}

/// Returns the output of a program that failed, as an error.
fn succeeded(session: &Session, output: &Output) -> Result<(), String> {
    let written = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "it ends with {}:\n{}",
        output.status,
        session.to_page(&written.concat())
    ))
}

/// Checks that the sentence before a block names the file that the block is. Readers do not see the
/// info string.
fn is_named(block: &Block, before: &str) -> Result<(), String> {
    match block.file() {
        Some(name) if !before.contains(&format!("`{name}`")) => Err(format!(
            "the sentence before the block does not name the file `{name}`"
        )),
        _ => Ok(()),
    }
}

/// Tests a block without output.
fn test(session: &mut Session, page: &Page, block: &Block) -> Result<(), String> {
    let text = block.text();
    if let Some(name) = block.file() {
        session.write(name, &text);
    }
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text);
    match block.language() {
        _ if is_tested_elsewhere(page, block) => Ok(()),
        "sh" if block.is_server() => session.start_server(block),
        // The session has written the data.
        "sh" if is_preparation(block) => Ok(()),
        "sh" => {
            // An answer with an error status fails the block.
            let curl = "curl() { command curl --fail-with-body \"$@\"; }";
            let output = session.script(&format!("{curl}\nset -eu\n{text}set +eu\nunset -f curl"));
            succeeded(session, &output)
        }
        "aql" => {
            session.write(".block.aql", &text);
            succeeded(
                session,
                &session.script("aqlite check .block.aql || exit 1"),
            )
        }
        "json" => json(&text).map(drop).map_err(|error| error.to_string()),
        "ndjson" => text
            .lines()
            .try_for_each(|line| json(line).map(drop))
            .map_err(|e| e.to_string()),
        "js" => succeeded(session, &session.javascript(&text)),
        "rust" => is_documentation_of_rust(page),
        "text" => Ok(()),
        _ if block.file().is_some() => Ok(()),
        other => Err(format!(
            "no test knows `{other}`; write `not-run:` and a reason behind it"
        )),
    }
}

/// Returns whether a block has nothing but commands that generate data.
fn is_preparation(block: &Block) -> bool {
    let commands = block.commands();
    !commands.is_empty() && commands.iter().all(|command| command.starts_with(GENERATE))
}

fn is_tested_elsewhere(page: &Page, block: &Block) -> bool {
    let found = TESTED_ELSEWHERE.iter().find(|(name, _)| *name == page.name);
    found.is_some_and(|(_, languages)| languages.contains(&block.language()))
}

/// Checks that rustdoc compiles and runs the examples of a page.
fn is_documentation_of_rust(page: &Page) -> Result<(), String> {
    let library = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let included = format!("include_str!(\"../{}\")", page.name);
    match library.contains(&included) {
        true => Ok(()),
        false => Err(format!(
            "src/lib.rs has no {included}, so nothing compiles it"
        )),
    }
}

/// Returns the page with the present output of its commands, and the problems of its other blocks.
fn present(page: &Page) -> (String, Vec<String>) {
    let mut session = Session::new(page);
    let (mut text, mut problems) = (String::new(), Vec::new());
    // The lines since the block before.
    let mut before = String::new();
    for part in page.parts() {
        let mut block = match part {
            Part::Line(line) => {
                text.push_str(&format!("{line}\n"));
                before.push_str(&line);
                continue;
            }
            Part::Block(block) => block,
        };
        if block.reason().is_none() && block.language() == "console" {
            let body = console(&session, &block);
            if body != block.body {
                let (page, line) = (&page.name, block.line);
                problems.push(format!(
                    "{page}:{line}: the present output is\n{}",
                    body.join("\n")
                ));
            }
            block.body = body;
        } else if block.reason().is_none() {
            let outcome = is_named(&block, &before).and_then(|()| test(&mut session, page, &block));
            let problem = outcome
                .err()
                .map(|what| format!("{}:{}: {what}", page.name, block.line));
            problems.extend(problem);
        }
        text.push_str(&block.markdown());
        before.clear();
    }
    (text, problems)
}

#[cfg(unix)]
#[test]
fn blocks_of_the_documentation_hold() {
    let only = std::env::var("AQLITE_PAGE").unwrap_or_default();
    let pages: Vec<Page> = pages()
        .into_iter()
        .filter(|page| page.name.contains(&only))
        .collect();
    assert!(!pages.is_empty(), "no page is called {only}");
    let problems: Vec<String> = std::thread::scope(|scope| {
        let each = |page| move || present(page);
        let runs: Vec<_> = pages
            .iter()
            .map(|page| (page, scope.spawn(each(page))))
            .collect();
        let ended = runs.into_iter().map(|(page, run)| (page, run.join()));
        let mut problems = Vec::new();
        for (page, outcome) in ended {
            let (text, found) = outcome.unwrap_or_else(|_| panic!("{} panicked", page.name));
            if text != page.text && std::env::var_os("AQLITE_BLESS").is_some() {
                std::fs::write(root().join(&page.name), text).unwrap();
            }
            problems.extend(found);
        }
        problems
    });
    assert!(
        problems.is_empty(),
        "{}\nAQLITE_BLESS=1 writes the present output",
        problems.join("\n")
    );
}

#[test]
fn blocks_without_a_test_are_few_and_have_a_reason() {
    let pages = pages();
    let mut reasons: BTreeMap<String, &str> = BTreeMap::new();
    let blocks: Vec<(&Page, Block)> = pages
        .iter()
        .flat_map(|page| page.blocks().into_iter().map(move |block| (page, block)))
        .collect();
    for (page, block) in &blocks {
        let place = format!("{}:{}", page.name, block.line);
        assert!(
            !block.info.is_empty(),
            "{place}: a block has no language; `text` is one"
        );
        if let Some(reason) = block.reason() {
            assert!(reason.len() >= 10, "{place}: `not-run:` needs a reason");
            reasons.insert(place, reason);
        }
    }
    println!(
        "{} of {} blocks are not run: {reasons:#?}",
        reasons.len(),
        blocks.len()
    );
    assert!(reasons.len() <= MAX_NOT_RUN, "{reasons:#?}");
    assert!(
        blocks.len() > 4 * reasons.len() / 2,
        "most blocks are tested"
    );
}

/// Returns the problems of a page with one block.
fn problems_of(info: &str, body: &str) -> Vec<String> {
    let page = Page {
        name: String::from("docs/example.md"),
        text: format!("# Example\n\n```{info}\n{body}\n```\n"),
    };
    present(&page).1
}

#[cfg(unix)]
#[test]
fn wrong_blocks_are_reported() {
    let wrong = [
        ("console", "$ echo one\ntwo"),
        ("console", "$ echo one; echo two\none"),
        ("sh", "false"),
        ("sh", "echo $UNSET"),
        ("sh", "curl -s http://127.0.0.1:8080/v1/nothing"),
        ("sh server", "aqlite query x"),
        ("aql", "SELECT c/nam FROM COMPOSITION c"),
        ("json", "{,}"),
        ("ndjson", "{}\n{,}"),
        ("js", "throw new Error();"),
        ("rust", "fn nothing() {}"),
        ("perl", "print 1"),
        ("", "no language"),
        ("json file=unnamed.json", "{}"),
    ];
    for (info, body) in wrong {
        assert_eq!(problems_of(info, body).len(), 1, "{info}: {body}");
    }
}

#[cfg(unix)]
#[test]
fn right_blocks_are_accepted() {
    let right = [
        ("console", "$ echo a; echo b; echo c\na\n..."),
        (
            "console",
            "$ echo created at $(date +%s) by x\ncreated at … by x",
        ),
        ("console", "$ V=1\n$ echo \\\n  $V\n1"),
        ("sh", "curl -s http://127.0.0.1:8080/health > answer.txt"),
        ("sh not-run: an example of the test", "false"),
        ("aql", "SELECT c/name/value FROM COMPOSITION c"),
        ("text", "{,}"),
    ];
    for (info, body) in right {
        assert_eq!(
            problems_of(info, body),
            Vec::<String>::new(),
            "{info}: {body}"
        );
    }
}
