//! Broken and damaged guides: their problems, and the absence of panics.

use crate::gdl::{NOW, file, run};
use aqlite::gdl;

#[test]
fn problems_of_broken_guides_have_positions() {
    let places = [
        ("{", "line 1, column 2"),
        ("[1,2]", "not a guide"),
        ("{\"resourceType\": \"Patient\"}", "not a guide"),
        ("(GUIDE) <\n id = <\"x\n>", "line 2, column 8"),
        ("(GUIDE) <\n id = <5>\n definition = 5", "line 3, column 15"),
        ("", "not a guide"),
    ];
    for (text, expected) in places {
        let problems = gdl::parse(text).unwrap_err();
        let lines: Vec<String> = problems.iter().map(|p| p.one_line(text)).collect();
        assert!(
            lines.iter().any(|l| l.contains(expected)),
            "{text}: {lines:?}"
        );
    }
    let (text, _) = file("chain_score.gdl2.json");
    let broken = text.replace("$gt0003!=null", "$gt0003 != = null");
    let guide = gdl::parse(&broken).unwrap().compile();
    let problem = guide.problems.iter().find(|p| p.code == "GDL0201").unwrap();
    assert_eq!(
        broken.get(problem.span.start..).map(|t| &t[..6]),
        Some("= null")
    );
    assert!(
        guide.problems.iter().any(|p| p.code == "GDL0404"),
        "{:?}",
        guide.problems
    );
    let unknown = gdl::parse(&text.replace("\"$gt0003!=null", "\"$gt0033!=null"))
        .unwrap()
        .compile();
    assert!(
        unknown
            .problems
            .iter()
            .any(|p| p.code == "GDL0401" && p.message.contains("gt0033"))
    );
    let typed = text.replace(
        "\"path\": \"/protocol[at0001]/items[at0003]\"",
        "\"path\": \"/protocol[at0001]/items[at0003]\", \"data_type\": \"DV_BOOLEAN\"",
    );
    let typed = gdl::parse(&typed).unwrap().compile();
    assert!(
        typed
            .problems
            .iter()
            .any(|p| p.code == "GDL0405" && p.message.contains("gt0005")),
        "{:?}",
        typed.problems
    );
}

/// Any damage to a guide results in problems or in a run, never in a panic.
#[test]
fn damaged_guides_do_not_panic() {
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % 1_000_003).unwrap() % n
    };
    let pieces = [
        "\"", "|", "(", ")", "'", "$", "<", ">", "=", "\\", "\u{e9}", "9e999", "null", "/", "[",
        "]", "{", "}", ",", "max(", "any[", "::",
    ];
    for name in [
        "statin_advice.gdl2.json",
        "chain_score.gdl2.json",
        "chain_advice.gdl",
    ] {
        let (text, _) = file(name);
        for _ in 0..300 {
            let mut chars: Vec<char> = text.chars().collect();
            for _ in 0..1 + next(4) {
                let at = next(chars.len());
                match next(3) {
                    0 => drop(chars.remove(at)),
                    1 => chars
                        .splice(at..at, pieces[next(pieces.len())].chars())
                        .for_each(drop),
                    _ => chars[at] = pieces[next(pieces.len())].chars().next().unwrap(),
                }
            }
            let damaged: String = chars.into_iter().collect();
            match gdl::parse(&damaged) {
                Ok(guide) => {
                    let guide = guide.compile();
                    guide
                        .problems
                        .iter()
                        .for_each(|p| drop(p.one_line(&damaged)));
                    drop(run(&guide, &guide.instances_of(&[]), NOW));
                }
                Err(problems) => problems.iter().for_each(|p| drop(p.one_line(&damaged))),
            }
        }
    }
}
