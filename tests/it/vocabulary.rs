//! Copies of the tables of AQL: words and aggregate functions in the page, and the tables of
//! functions in `docs/aql.md`. `AQLITE_BLESS=1` writes them; otherwise a copy that is not current fails.

use aqlite::aql::query::{AggregateFunction, Function, FunctionGroup};
use aqlite::aql::{BOOLEANS, Keyword, LINT_RULES, NoLabels, WordKind, complete, hover};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Compares a part of a file with its current content, or writes it.
fn compare(file: &str, begin: &str, end: &str, current: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(&path).unwrap();
    let (head, rest) = text
        .split_once(begin)
        .unwrap_or_else(|| panic!("{file} has no `{begin}`"));
    let tail = &rest[rest.find(end).unwrap_or(rest.len())..];
    let wanted = format!("{head}{begin}{current}{tail}");
    if text != wanted && std::env::var_os("AQLITE_BLESS").is_some() {
        fs::write(path, wanted).unwrap();
        return;
    }
    assert!(
        text == wanted,
        "{file} is not current: AQLITE_BLESS=1 cargo test -p aqlite --test it vocabulary"
    );
}

/// A TypeScript constant in the layout of prettier.
fn constant(name: &str, words: &[String]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| format!("\"{}\"", word.to_lowercase()))
        .collect();
    let line = format!("export const {name} = [{}];\n", quoted.join(", "));
    if line.len() <= 101 {
        return line;
    }
    let lines: String = quoted.iter().map(|word| format!("  {word},\n")).collect();
    format!("export const {name} = [\n{lines}];\n")
}

#[test]
fn page_highlights_the_vocabulary() {
    let of_kind = |kind: WordKind| {
        Keyword::all()
            .filter(move |word| word.entry().kind == kind)
            .map(|word| word.text().to_owned())
    };
    let literals = of_kind(WordKind::Literal).chain(BOOLEANS.map(str::to_owned));
    // CONTAINS is an operator and a function.
    let functions = of_kind(WordKind::Function).chain(["CONTAINS".to_owned()]);
    let aggregates = AggregateFunction::ALL.iter().map(|f| f.name().to_owned());
    let text = [
        constant("KEYWORDS", &of_kind(WordKind::Keyword).collect::<Vec<_>>()),
        constant("LITERALS", &literals.collect::<Vec<_>>()),
        constant("FUNCTIONS", &functions.collect::<Vec<_>>()),
        constant("AGGREGATES", &aggregates.collect::<Vec<_>>()),
    ];
    compare("www/src/aql-words.ts", "\n\n", "\u{0}", &text.join("\n"));
}

#[test]
fn documentation_has_a_row_for_each_function() {
    let mut rows =
        String::from("\n\n| aggregate function | result | argument | type |\n|---|---|---|---|\n");
    for entry in AggregateFunction::ALL.iter().map(|f| f.entry()) {
        let usage = entry.usage().replace('|', "\\|");
        let _ = writeln!(
            rows,
            "| `{usage}` | {} | {} | {} |",
            entry.meaning, entry.argument, entry.result
        );
    }
    for group in [
        FunctionGroup::Text,
        FunctionGroup::Number,
        FunctionGroup::Clock,
    ] {
        let _ = write!(
            rows,
            "\n| function of {group} | result | type |\n|---|---|---|\n"
        );
        let of_group = Function::ALL.iter().map(|f| f.entry());
        for entry in of_group.filter(|entry| entry.group == group) {
            let _ = writeln!(
                rows,
                "| `{}` | {} | {} |",
                entry.usage(),
                entry.meaning,
                entry.result
            );
        }
    }
    rows.push('\n');
    compare("docs/aql.md", "<!-- functions -->", "<!-- end -->", &rows);
}

#[test]
fn every_word_has_hover_and_completion() {
    for word in Keyword::all() {
        let text = word.text();
        let hovered = hover(text, 0, &NoLabels).map(|h| h.text);
        assert_eq!(hovered.as_deref(), Some(word.entry().meaning), "{text}");
    }
    let columns: Vec<String> = complete("SELECT ", 7, &NoLabels)
        .into_iter()
        .map(|c| c.label)
        .collect();
    let aggregates = AggregateFunction::ALL.iter().map(|f| f.name());
    for name in aggregates.chain(Function::ALL.iter().map(|f| f.name())) {
        assert!(columns.iter().any(|label| label == name), "{name}");
    }
}

/// Each rule of lint has a row in the documentation, and a case that warns.
#[test]
fn every_rule_of_lint_is_documented_and_has_a_case() {
    let read = |file: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        fs::read_to_string(path).unwrap()
    };
    let page = read("docs/aql.md");
    let cases = read("tests/cases/aql/lint.txt") + &read("tests/cases/aql/lint_templates.txt");
    for rule in LINT_RULES {
        let row = format!("| {} | `{}` | {} |", rule.code, rule.name, rule.meaning);
        assert!(page.contains(&row), "docs/aql.md lacks `{row}`");
        let warning = format!("{} warning: ", rule.code);
        assert!(cases.contains(&warning), "no case has a warning {warning}");
    }
}
