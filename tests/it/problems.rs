//! What is wrong with a guide, and where: `tests/cases/gdl/problems.txt`.

use aqlite::diag::LineIndex;
use aqlite::gdl;
use std::collections::BTreeSet;

/// Each problem of a guide as `LINE:COLUMN CODE message; help`.
fn problems(text: &str) -> Vec<String> {
    let index = LineIndex::new(text);
    let found = match gdl::parse(text) {
        Ok(guide) => guide.compile().problems,
        Err(problems) => problems,
    };
    let told = found.iter().map(|p| {
        let (line, column) = index.line_column(p.span.start);
        format!("{line}:{column} {} {}; {}", p.code, p.message, p.help.as_deref().unwrap_or_default())
    });
    told.collect()
}

#[test]
fn every_problem_is_told_with_its_place_and_what_helps() {
    let read = |name: &str| std::fs::read_to_string(format!("tests/cases/gdl/{name}")).unwrap();
    let (guide, cases) = (read("problems.gdl2.json"), read("problems.txt"));
    assert_eq!(problems(&guide), Vec::<String>::new());
    let (mut wrong, mut codes) = (Vec::new(), BTreeSet::new());
    for case in cases.split("\ncase: ").skip(1) {
        let member = |name: &str| case.lines().filter_map(|l| l.strip_prefix(name)).map(str::trim).collect::<Vec<_>>();
        let (from, to) = (member("from:")[0], member("to:")[0]);
        assert_eq!(guide.matches(from).count(), 1, "{from}");
        let expected = member("expect:");
        let found = problems(&guide.replace(from, to));
        codes.extend(found.iter().filter_map(|p| p.split(' ').nth(1).map(str::to_owned)));
        if found != expected || found.is_empty() {
            wrong.push(format!(
                "{}\n{}",
                case.lines().next().unwrap_or_default(),
                found.iter().map(|f| format!("expect: {f}\n")).collect::<String>()
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(codes.len() > 20, "{codes:?}");
}
