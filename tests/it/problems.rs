//! The problems of guides and their positions: `tests/cases/gdl/problems.txt`.

use aqlite::diag::LineIndex;
use aqlite::gdl;
use std::collections::BTreeSet;

/// Returns each problem of a guide as `LINE:COLUMN CODE message; help`.
fn problems(text: &str) -> Vec<String> {
    let index = LineIndex::new(text);
    let found = match gdl::parse(text) {
        Ok(guide) => guide.compile().problems,
        Err(problems) => problems,
    };
    let lines = found.iter().map(|p| {
        let (line, column) = index.line_column(p.span.start);
        format!(
            "{line}:{column} {} {}; {}",
            p.code,
            p.message,
            p.help.as_deref().unwrap_or_default()
        )
    });
    lines.collect()
}

#[test]
fn every_problem_has_a_position_and_a_remedy() {
    let read = |name: &str| std::fs::read_to_string(format!("tests/cases/gdl/{name}")).unwrap();
    let (guide, cases) = (read("problems.gdl2.json"), read("problems.txt"));
    assert_eq!(problems(&guide), Vec::<String>::new());
    let (mut wrong, mut codes) = (Vec::new(), BTreeSet::new());
    for case in cases.split("\ncase: ").skip(1) {
        let member = |name: &str| {
            case.lines()
                .filter_map(|l| l.strip_prefix(name))
                .map(str::trim)
                .collect::<Vec<_>>()
        };
        let text = match member("whole:").first() {
            Some(whole) => repeated(whole),
            None => {
                let (from, to) = (member("from:")[0], repeated(member("to:")[0]));
                assert_eq!(guide.matches(from).count(), 1, "{from}");
                guide.replace(from, &to)
            }
        };
        let expected = member("expect:");
        let found: Vec<String> = problems(&text).into_iter().map(shortened).collect();
        codes.extend(
            found
                .iter()
                .filter_map(|p| p.split(' ').nth(1).map(str::to_owned)),
        );
        if found != expected || found.is_empty() {
            wrong.push(format!(
                "{}\n{}",
                case.lines().next().unwrap_or_default(),
                found
                    .iter()
                    .map(|f| format!("expect: {f}\n"))
                    .collect::<String>()
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let untold: Vec<String> = codes_of_guides()
        .into_iter()
        .filter(|code| !codes.contains(code))
        .collect();
    assert!(untold.is_empty(), "no case shows {untold:?}");
}

/// Expands `10000*[(]` in a text to that many brackets.
fn repeated(text: &str) -> String {
    let Some((before, rest)) = text.split_once("*[") else {
        return text.to_owned();
    };
    let digits = before.len()
        - before
            .chars()
            .rev()
            .take_while(char::is_ascii_digit)
            .count();
    let (before, count) = before.split_at(digits);
    let (unit, behind) = rest.split_once(']').expect("`]` behind what is repeated");
    before.to_owned() + &unit.repeat(count.parse().expect("how often")) + &repeated(behind)
}

/// Returns the beginning and the end of a long line.
fn shortened(line: String) -> String {
    let chars: Vec<char> = line.chars().collect();
    if chars.len() <= 400 {
        return line;
    }
    let text = |part: &[char]| part.iter().collect::<String>();
    format!(
        "{} … {}",
        text(&chars[..100]),
        text(&chars[chars.len() - 100..])
    )
}

/// Returns the codes of guides in the source.
fn codes_of_guides() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for folder in ["crates/aqlite-gdl/src", "crates/aqlite-gdl/src/expr"] {
        for file in std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
        {
            let text = std::fs::read_to_string(file).unwrap();
            let quoted = text.split("\"GDL").skip(1).filter_map(|rest| rest.get(..4));
            codes.extend(
                quoted
                    .filter(|code| matches!(code.get(..2), Some("01" | "02" | "03" | "04")))
                    .map(|code| format!("GDL{code}")),
            );
        }
    }
    assert!(codes.len() > 25, "{codes:?}");
    codes
}
