//! Series: many compositions of one layout, and queries that the engine answers from their columns.
//!
//! Documents of [`super::data`] differ so much that few share a table. Those of a series do: each
//! leaf becomes a column, an optional element an optional column, and several events become child
//! rows.

use super::query::{Condition, Draft, From};
use super::random::Random;
use aqlite::aql::Parameters;
use aqlite::aql::query::AggregateFunction;
use std::fmt::Write;

const ENTRY: &str = "openEHR-EHR-OBSERVATION.series.v1";
const NUMBERS: [&str; 14] = [
    "1",
    "2",
    "2.0",
    "2.50",
    "-3",
    "0",
    "-0.0",
    "0.1",
    "0.2",
    "120",
    "1e3",
    "98.6",
    "12345678901",
    "7",
];
const WORDS: [&str; 4] = ["'low'", "'high'", "'low'", "'2020-01-02'"];
const CODES: [&str; 2] = ["code at0005 'low'", "code at0006 'high'"];
const TIMES: [&str; 9] = [
    "2020-01-01T08:00:00Z",
    "2020-01-01T09:00:00+01:00",
    "2020-01-02T10:30:00Z",
    "2020-02-01T00:00:00Z",
    "2019-12-31T23:59:59Z",
    "2020-01-01T08:00:00.250",
    "2020-01-01T08:00",
    "2020-01",
    "20200101T080000Z",
];

/// The properties that all compositions of a series share.
struct Layout {
    /// The possible numbers of events of each observation. A single number means a constant one.
    events: &'static [usize],
    /// The percentage of documents that contain an optional element.
    optional: usize,
    /// The possible numbers of elements at0004 of each event.
    repeated: &'static [usize],
    has_context: bool,
    /// The percentage of entries with a subject other than the patient, and of those with a
    /// protocol.
    subject: usize,
    protocol: usize,
    /// The percentage of elements at0007 with a coded text or a null flavour.
    coded: usize,
    absent: usize,
    /// Whether some counts exceed the precision of a double.
    has_large: bool,
}

/// Generates a repository of some EHRs with compositions of one layout. Some are changed or deleted
/// later.
pub fn repository(random: &mut Random) -> String {
    let layout = Layout {
        events: random.pick(&[&[1][..], &[1], &[2], &[0, 1, 2, 3]]),
        optional: random.pick(&[100, 60, 30, 5]),
        repeated: random.pick(&[&[1][..], &[1], &[1], &[2], &[1, 2]]),
        has_context: random.percent(50),
        subject: random.pick(&[0, 0, 100, 50]),
        protocol: random.pick(&[0, 0, 100, 50]),
        coded: random.pick(&[0, 0, 50]),
        absent: random.pick(&[0, 0, 20]),
        has_large: random.one_in(4),
    };
    let (mut out, ehrs) = (String::new(), 1 + random.below(3));
    for ordinal in 1..=4 + random.below(30) {
        let _ = writeln!(out, "EHR e{}", 1 + random.below(ehrs));
        composition(&layout, random, &mut out);
        if random.one_in(8) {
            let _ = write!(out, "NEXT o{ordinal} ");
            composition(&layout, random, &mut out);
        } else if random.one_in(12) {
            let _ = writeln!(out, "DELETE o{ordinal}");
        }
    }
    numbered(&out)
}

/// Replaces the objects of NEXT and DELETE by the numbers of the notation: one for each first
/// version.
fn numbered(text: &str) -> String {
    let mut first = 0;
    let lines = text.lines().map(|line| {
        first += usize::from(line.starts_with("COMPOSITION"));
        let of_object = |word: &str| {
            line.strip_prefix(word)
                .map(|rest| rest.split_once(' ').map_or("", |(_, rest)| rest))
        };
        match (of_object("NEXT "), of_object("DELETE ")) {
            (Some(rest), _) => format!("NEXT o{first} {rest}\n"),
            (_, Some(_)) => format!("DELETE o{first}\n"),
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

fn composition(layout: &Layout, random: &mut Random, out: &mut String) {
    let name = random.pick(&["A", "B"]);
    let _ = writeln!(out, "COMPOSITION[openEHR-EHR-COMPOSITION.x.v1] {name}");
    if layout.has_context {
        let _ = writeln!(out, "  EVENT_CONTEXT x = {}", random.pick(&TIMES));
        if random.percent(layout.subject) {
            let name = random.pick(&["Ann", "Bob"]);
            let _ = writeln!(
                out,
                r#"    PARTICIPATION p = {{"function":{{"value":"F"}},"performer":{{"_type":"PARTY_IDENTIFIED","name":"{name}"}}}}"#
            );
        }
    }
    let _ = writeln!(out, "  OBSERVATION[{ENTRY}] o");
    extras(layout, random, out);
    let _ = writeln!(out, "    HISTORY[at0001] h");
    for _ in 0..random.pick(layout.events) {
        let _ = writeln!(
            out,
            "      POINT_EVENT[at0002] e = {}\n        ITEM_TREE[at0003] t",
            random.pick(&TIMES)
        );
        for _ in 0..random.pick(layout.repeated) {
            element(out, "at0004", &format!("{} mm", random.pick(&NUMBERS)));
        }
        let large = random.pick(&[
            "9007199254740992",
            "9007199254740993",
            "9007199254740994",
            "9223372036854775806",
            "9223372036854775807",
            "-9007199254740995",
        ]);
        let small = random.below(20).to_string();
        element(
            out,
            "at0005",
            &format!(
                "count {}",
                if layout.has_large && random.one_in(6) {
                    large
                } else {
                    &small
                }
            ),
        );
        if random.percent(layout.optional) {
            element(out, "at0006", &format!("{} kg", random.pick(&NUMBERS)));
        }
        let word = match random.below(100) {
            dice if dice < layout.absent => "null",
            dice if dice < layout.absent + layout.coded => random.pick(&CODES),
            _ => random.pick(&WORDS),
        };
        element(out, "at0007", word);
        if random.percent(layout.optional) {
            element(out, "at0008", &format!("datetime {}", random.pick(&TIMES)));
        }
    }
}

/// Adds the attributes of an entry whose classes or presence differ between documents.
fn extras(layout: &Layout, random: &mut Random, out: &mut String) {
    let subject = match random.percent(layout.subject) {
        true => r#"PARTY_IDENTIFIED s = {"name":"Ann"}"#,
        false => "PARTY_SELF s = {}",
    };
    let _ = writeln!(out, "    @subject {subject}");
    if random.percent(layout.protocol) {
        let _ = writeln!(out, "    @protocol ITEM_TREE[at0010] p");
        for code in ["at0011", "at0012"] {
            if random.percent(layout.optional) {
                let _ = writeln!(out, "      ELEMENT[{code}] n = {}", random.pick(&WORDS));
            }
        }
    }
}

fn element(out: &mut String, code: &str, value: &str) {
    let _ = writeln!(out, "          ELEMENT[{code}] n = {value}");
}

/// Generates a query about a series: aggregates, plain columns, or the first rows of an order.
pub fn draft(random: &mut Random) -> Draft {
    if random.one_in(12) {
        return count(random);
    }
    let kind = random.below(8);
    let count = 1 + random.below(4);
    let mut select: Vec<String> = match kind {
        0..=3 => (0..count).map(|_| aggregate(random)).collect(),
        4 => {
            vec![
                random
                    .pick(&[
                        "e/ehr_id/value",
                        "c/name/value",
                        "o/data[at0001]/events[at0002]/data[at0003]/items[at0007]/value/value",
                    ])
                    .to_owned(),
            ]
        }
        _ => (0..count).map(|_| path(random)).collect(),
    };
    if kind == 4 {
        select.extend((0..count).map(|_| aggregate(random)));
    }
    let (mut order, mut limit) = (Vec::new(), None);
    if kind >= 6 {
        let key = if random.percent(70) {
            path(random)
        } else {
            format!("k{}", random.below(select.len()))
        };
        order.push(format!("{key}{}", random.pick(&["", " DESC"])));
    }
    if kind == 7 {
        limit = Some(format!(
            "LIMIT {}{}",
            1 + random.below(6),
            random.pick(&["", " OFFSET 2"])
        ));
    }
    let condition = match random.below(7) {
        0 | 1 => None,
        2 | 3 => Some(test(random)),
        4 => Some(Condition::Not(Box::new(test(random)))),
        5 => Some(Condition::Or(
            Box::new(test(random)),
            Box::new(test(random)),
        )),
        _ => Some(Condition::And(
            Box::new(test(random)),
            Box::new(test(random)),
        )),
    };
    let select: Vec<String> = select
        .iter()
        .enumerate()
        .map(|(i, column)| format!("{column} AS k{i}"))
        .collect();
    let all = format!(
        "{} {order:?} {:?}",
        select.join(" "),
        condition.as_ref().map(Condition::text)
    );
    let distinct = kind == 5 && random.percent(50);
    Draft {
        parameters: Parameters::new(),
        select,
        distinct,
        top: None,
        from: from(random, &all),
        condition,
        order,
        limit,
    }
}

/// Generates a count of EHRs, or of the pairs of entries in one composition.
fn count(random: &mut Random) -> Draft {
    let mut entry = |name: &str| {
        let id = random.pick(&["", "[ENTRY]"]).replace("ENTRY", ENTRY);
        Box::new(From::Class(format!("OBSERVATION {name}{id}"), None))
    };
    let both = From::And(entry("o"), entry("p"));
    let from = match random.one_in(4) {
        true => From::Class("EHR e".to_owned(), None),
        false => From::Class("COMPOSITION c".to_owned(), Some((false, Box::new(both)))),
    };
    Draft {
        parameters: Parameters::new(),
        select: vec!["COUNT(*) AS k0".to_owned()],
        distinct: false,
        top: None,
        from,
        condition: None,
        order: Vec::new(),
        limit: None,
    }
}

/// Generates FROM with the variables that are used.
fn from(random: &mut Random, used: &str) -> From {
    let within =
        |head: &str, inner: From| From::Class(head.to_owned(), Some((false, Box::new(inner))));
    let entry = From::Class(format!("OBSERVATION o[{ENTRY}]"), None);
    let (has_ehr, has_composition) = (used.contains("e/ehr_id"), used.contains("c/"));
    let composition = if has_composition || random.percent(60) {
        within("COMPOSITION c", entry)
    } else {
        entry
    };
    if has_ehr || random.percent(60) {
        within("EHR e", composition)
    } else {
        composition
    }
}

fn aggregate(random: &mut Random) -> String {
    let function = random.pick(AggregateFunction::ALL).entry();
    match random.below(10) {
        0 if function.over_rows.is_some() => format!("{}(*)", function.name),
        1..4 if function.over_distinct.is_some() => {
            format!("{}(DISTINCT {})", function.name, path(random))
        }
        0..4 => format!("{}({})", function.name, path(random)),
        _ => format!("{}({})", function.name, number(random)),
    }
}

/// Generates a path to a number.
fn number(random: &mut Random) -> String {
    let code = random.pick(&["at0004", "at0004", "at0005", "at0006", "at0006"]);
    format!("{}[{code}]/value/magnitude", items(random))
}

fn items(random: &mut Random) -> &'static str {
    random.pick(&[
        "o/data/events/data/items",
        "o/data[at0001]/events[at0002]/data[at0003]/items",
        "o/data[at0001]/events/data[at0003]/items",
    ])
}

fn path(random: &mut Random) -> String {
    let end = match random.below(11) {
        10 => return attribute(random).to_owned(),
        0..=3 => return number(random),
        4 => "[at0007]/value/value",
        5 => "[at0008]/value/value",
        6 => random.pick(&[
            "[at0004]/value/units",
            "[at0004]/value",
            "[at0005]/value",
            "[at0007]/value",
            "/value/magnitude",
        ]),
        7 => {
            return random
                .pick(&[
                    "o/data/events/time/value",
                    "o/data[at0001]/events[at0002]/time/value",
                    "o/data[at0001]/events[at0002]/time",
                ])
                .to_owned();
        }
        8 => {
            return random
                .pick(&[
                    "o/name/value",
                    "c/name/value",
                    "e/ehr_id/value",
                    "c/context/start_time/value",
                ])
                .to_owned();
        }
        _ => "[at0006]/value/magnitude",
    };
    format!("{}{end}", items(random))
}

/// Generates a path to an attribute that not every entry has.
fn attribute(random: &mut Random) -> &'static str {
    random.pick(&[
        "o/subject",
        "o/subject/name",
        "o/protocol",
        "o/protocol[at0010]/items[at0011]",
        "o/protocol[at0010]/items[at0011]/value/value",
        "o/protocol/items[at0012]/value/value",
        "o/data[at0001]/events[at0002]/data[at0003]/items[at0007]/value/defining_code/code_string",
        "o/data/events/data/items[at0007]/null_flavour",
        "c/context/participations/performer/name",
    ])
}

fn test(random: &mut Random) -> Condition {
    let operator = random.pick(&["=", "!=", "<", "<=", ">", ">="]);
    Condition::Plain(match random.below(8) {
        6 | 7 => format!("EXISTS {}", attribute(random)),
        0..=2 => format!(
            "{} {operator} {}",
            number(random),
            random.pick(&["0", "2", "2.5", "10", "120"])
        ),
        3 => format!(
            "{}[at0007]/value/value {operator} {}",
            items(random),
            random.pick(&["'low'", "'high'", "'m'"])
        ),
        4 => format!(
            "o/data[at0001]/events[at0002]/time/value {operator} {}",
            random.pick(&["'2020-01-01T08:00:00Z'", "'2020-01'"])
        ),
        _ => format!("EXISTS {}[at0006]/value", items(random)),
    })
}
