//! Completions at a cursor, which a text marks by `|`.

use super::*;
use crate::arbitrary::Generator;
use crate::hover::hover;
use crate::labels::{LabelStep, NoLabels};
use crate::print::format;

/// The labels of one archetype with one measured value.
struct Pressure;

const PRESSURE: &str = "openEHR-EHR-OBSERVATION.blood_pressure.v2";

fn label(id: &str, text: &str, detail: &str) -> Label {
    Label {
        id: id.to_owned(),
        text: text.to_owned(),
        detail: detail.to_owned(),
    }
}

impl Labels for Pressure {
    fn archetypes(&self, class: Cls) -> Vec<Label> {
        if Cls::OBSERVATION.is_a(class) {
            vec![label(PRESSURE, "Blood pressure", "OBSERVATION")]
        } else {
            Vec::new()
        }
    }

    fn nodes(&self, archetype: &str, path: &[LabelStep]) -> Vec<Label> {
        let at = path.last().map(|(attribute, _)| attribute.as_str());
        if archetype == PRESSURE && at == Some("items") {
            vec![label("at0004", "Systolic", "DV_QUANTITY")]
        } else {
            Vec::new()
        }
    }

    fn paths(&self, archetype: &str, path: &[LabelStep]) -> Vec<Label> {
        if archetype == PRESSURE && path.is_empty() {
            vec![label(
                "data/events/data/items[at0004]/value/magnitude",
                "Systolic",
                "DV_QUANTITY",
            )]
        } else {
            Vec::new()
        }
    }

    fn term(&self, archetype: &str, code: &str) -> Option<Label> {
        (archetype == PRESSURE && code == "at0004")
            .then(|| label(code, "Systolic", "peak pressure"))
    }

    fn templates(&self, archetype: Option<&str>) -> Vec<Label> {
        let all = [
            (
                "vital_signs.v1",
                "Vital signs",
                "openEHR-EHR-COMPOSITION.encounter.v1",
            ),
            (
                "lab's.v1",
                "Laboratory",
                "openEHR-EHR-COMPOSITION.report.v1",
            ),
        ];
        let fits = |root: &str| archetype.is_none_or(|a| a == root);
        let all = all.iter().filter(|(_, _, root)| fits(root));
        all.map(|(id, text, root)| label(id, text, root)).collect()
    }

    fn values(&self, archetype: &str, path: &[LabelStep]) -> Vec<Label> {
        let ends = |name: &str| path.last().is_some_and(|(last, _)| last == name);
        match archetype {
            PRESSURE if ends("units") => vec![label("mm[Hg]", "", "")],
            PRESSURE if ends("code_string") => vec![label("at1000", "Standing", "local")],
            _ => Vec::new(),
        }
    }
}

fn offered(text: &str) -> Vec<Completion> {
    let offset = text.find('|').unwrap();
    complete(&text.replacen('|', "", 1), offset, &Pressure)
}

#[track_caller]
fn offers(text: &str, insert: &str) {
    let all = offered(text);
    assert!(
        all.iter().any(|c| c.insert == insert),
        "{text}: {:?}",
        all.iter().map(|c| c.insert.as_str()).collect::<Vec<_>>()
    );
}

#[track_caller]
fn withholds(text: &str, insert: &str) {
    assert!(!offered(text).iter().any(|c| c.insert == insert), "{text}");
}

const FROM: &str = "FROM EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";

#[test]
fn keywords_come_where_the_grammar_has_them() {
    offers("|", "SELECT");
    offers("SELECT |", "DISTINCT");
    offers("SELECT c |", "FROM");
    offers("SELECT c FROM EHR e |", "CONTAINS");
    offers("SELECT c FROM EHR e |", "WHERE");
    offers("SELECT e FROM EHR e W|", "WHERE");
    withholds("SELECT e FROM EHR e W|", "CONTAINS");
    offers(
        "SELECT e FROM EHR e WHERE e/ehr_id/value = '1' |",
        "ORDER BY",
    );
    offers("SELECT e FROM EHR e WHERE e/ehr_id/value |", "LIKE");
    offers("SELECT e FROM EHR e ORDER BY e/ehr_id/value |", "DESC");
    offers("SELECT v FROM VERSION v[|", "ALL_VERSIONS");
}

#[test]
fn names_of_the_query_come_before_it_is_finished() {
    offers(&format!("SELECT | {FROM}"), "o");
    offers(
        &format!("SELECT | {FROM}"),
        "o/data/events/data/items[at0004]/value/magnitude",
    );
    offers(&format!("SELECT o/name/value AS n {FROM} ORDER BY |"), "n");
    offers(
        &format!("SELECT o {FROM} WHERE e/ehr_id/value = $ehr AND o/uid/value = |"),
        "$ehr",
    );
    offers(&format!("SELECT o {FROM} WHERE |"), "LENGTH(");
    offers("SELECT e FROM OBS|", "OBSERVATION");
}

#[test]
fn attributes_follow_the_classes() {
    offers(&format!("SELECT o/| {FROM}"), "protocol");
    offers(&format!("SELECT o/data[at0001]/ev| {FROM}"), "events");
    withholds(&format!("SELECT o/data[at0001]/| {FROM}"), "protocol");
    offers(
        &format!("SELECT o/data/events/data/items[at0004]/value/| {FROM}"),
        "magnitude",
    );
    offers(&format!("SELECT o/data[na| {FROM}"), "name");
    offers(&format!("SELECT o/data[name/| {FROM}"), "value");
    offers("SELECT e FROM EHR e[|", "ehr_id");
}

#[test]
fn archetypes_and_nodes_carry_their_names() {
    offers("SELECT o FROM OBSERVATION o[|", PRESSURE);
    offers(
        "SELECT o FROM OBSERVATION o[openEHR-EHR-OBSERVATION.bl|",
        PRESSURE,
    );
    withholds("SELECT o FROM EVALUATION o[|", PRESSURE);
    offers(
        &format!("SELECT o/data/events/data/items[| {FROM}"),
        "at0004",
    );
    offers(
        &format!("SELECT o/data/events/data/items[at0004, | {FROM}"),
        "'Systolic'",
    );
    let cursor = "SELECT o FROM OBSERVATION o[openEHR-EHR-OBS|";
    let first = offered(cursor).into_iter().next().unwrap();
    assert_eq!(first.span, Span::new(28, 43));
}

const TEMPLATE: &str = "c/archetype_details/template_id/value";

/// Checks that a completion replaces the text between two marks by `insert`.
#[track_caller]
fn replaces(text: &str, replaced: &str, insert: &str) {
    let found = offered(text).into_iter().find(|c| c.insert == insert);
    let span = found.unwrap_or_else(|| panic!("{text}: {insert}")).span;
    let plain = text.replacen('|', "", 1);
    assert_eq!(plain.get(span.start..span.end), Some(replaced), "{text}");
}

#[test]
fn template_ids_complete_by_id_and_by_name() {
    let ask = |typed: &str| {
        format!("SELECT c FROM EHR e CONTAINS COMPOSITION c WHERE {TEMPLATE} {typed}")
    };
    replaces(&ask("= |"), "", "'vital_signs.v1'");
    replaces(&ask("= '|"), "'", "'vital_signs.v1'");
    replaces(&ask("= '|'"), "''", "'vital_signs.v1'");
    replaces(&ask("= 'vit|al'"), "'vital'", "'vital_signs.v1'");
    replaces(&ask("= 'signs|'"), "'signs'", "'vital_signs.v1'");
    replaces(
        &ask("= 'labor|' AND c/name/value = 'x'"),
        "'labor'",
        "'lab\\'s.v1'",
    );
    replaces(&ask("matches {'x', '|'}"), "''", "'vital_signs.v1'");
    replaces(&ask("!= |"), "", "'vital_signs.v1'");
    withholds(&ask("= 'laborat|'"), "'vital_signs.v1'");
    withholds(
        &ask("= c/name/value AND c/name/value = '|'"),
        "'vital_signs.v1'",
    );
    let found = offered(&ask("= '|'")).into_iter().map(|c| c.label);
    assert_eq!(
        found.collect::<Vec<_>>(),
        ["vital_signs.v1 Vital signs", "lab's.v1 Laboratory"]
    );
}

#[test]
fn template_ids_are_those_of_the_archetype_of_the_document() {
    let of = "SELECT c FROM COMPOSITION c[openEHR-EHR-COMPOSITION.report.v1]";
    offers(&format!("{of} WHERE {TEMPLATE} = '|'"), "'lab\\'s.v1'");
    withholds(&format!("{of} WHERE {TEMPLATE} = '|'"), "'vital_signs.v1'");
}

#[test]
fn units_and_codes_complete_where_they_are_compared() {
    let value = "o/data/events/data/items[at0004]/value";
    let ask = |typed: &str| format!("SELECT o {FROM} WHERE {value}/{typed}");
    replaces(&ask("units = '|'"), "''", "'mm[Hg]'");
    replaces(&ask("defining_code/code_string = |"), "", "'at1000'");
    replaces(
        &ask("defining_code/code_string = 'stand|"),
        "'stand",
        "'at1000'",
    );
    replaces(
        &ask("defining_code/code_string matches {'|'}"),
        "''",
        "'at1000'",
    );
    withholds(&ask("units = '|'"), "'at1000'");
    withholds(&format!("SELECT '|' {FROM}"), "'mm[Hg]'");
}

#[test]
fn whole_archetypes_complete_by_their_names() {
    let whole = |variable: &str| format!("OBSERVATION {variable}[{PRESSURE}]");
    replaces("SELECT e FROM EHR e CONTAINS blood|", "blood", &whole("o"));
    replaces(
        "SELECT o FROM EHR e CONTAINS (OBSERVATION o AND press|)",
        "press",
        &whole("o2"),
    );
    withholds("SELECT e FROM EHR e CONTAINS weight|", &whole("o"));
    let first = offered("SELECT e FROM EHR e CONTAINS OBS|");
    assert_eq!(
        first.first().map(|c| c.insert.as_str()),
        Some("OBSERVATION")
    );
}

#[test]
fn strings_and_comments_are_left_alone() {
    assert_eq!(offered("SELECT o FROM EHR e WHERE e/x = 'a|b'"), []);
    assert_eq!(offered("SELECT o FROM EHR e WHERE e/x = 'a|"), []);
    assert_eq!(offered("SELECT o -- no|te\nFROM EHR e"), []);
    assert_eq!(
        complete("ä", 1, &NoLabels).first().map(|c| c.span),
        Some(Span::new(0, 0))
    );
}

#[test]
fn words_have_meanings() {
    let text =
        format!("SELECT o/data/events/data/items[at0004]/value, LENGTH(o/name/value) {FROM}");
    let title = |word: &str| hover(&text, text.find(word).unwrap(), &Pressure).map(|h| h.title);
    assert_eq!(title("at0004").as_deref(), Some("Systolic"));
    assert_eq!(title("o/data").as_deref(), Some("o: OBSERVATION"));
    assert_eq!(
        title("events").as_deref(),
        Some("HISTORY.events: EVENT (0..*)")
    );
    assert_eq!(title("LENGTH").as_deref(), Some("LENGTH(text)"));
    assert_eq!(title("OBSERVATION o").as_deref(), Some("OBSERVATION"));
    assert_eq!(title("openEHR").as_deref(), Some("Blood pressure"));
    assert_eq!(title("CONTAINS").as_deref(), Some("CONTAINS"));
}

#[test]
fn a_draft_needs_no_parameters() {
    assert!(diagnose("SELECT e FROM EHR e[ehr_id/value=$ehr] WHERE e/ehr_id/value matches TERMINOLOGY('expand', 'x', 'y')").is_empty());
    assert_eq!(diagnose("SELECT e/ehr_idd FROM EHR e").len(), 1);
}

#[test]
fn completion_and_hover_accept_every_offset() {
    let texts = [
        format!(
            "SELECT o/data[at0001 and name/value='ä'] AS x, COUNT(*) {FROM} WHERE NOT (o/a LIKE 'x*') ORDER BY x LIMIT 3"
        ),
        "]]]]//[[[[".to_owned(),
    ];
    for text in texts {
        for offset in 0..=text.len() + 1 {
            for completion in complete(&text, offset, &Pressure) {
                let replaced = text.get(completion.span.start..completion.span.end);
                assert!(replaced.is_some(), "{text}, {offset}: {completion:?}");
            }
            let _ = hover(&text, offset, &Pressure);
        }
    }
}

#[test]
fn completion_and_hover_accept_damaged_queries() {
    const SPLINTERS: [&str; 16] = [
        "'", "\"", "[", "]", "(", ")", "{", "}", "/", "--", "\\", "ä", "$", "SELECT", "\u{a0}", "-",
    ];
    for seed in 0..600u64 {
        let mut text = Generator::new(seed).query();
        for round in 0..3 {
            let mut at = usize::try_from(
                seed.wrapping_mul(2_654_435_761).rotate_left(round * 7) % (text.len() as u64 + 1),
            )
            .unwrap();
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            if (seed + u64::from(round)) % 3 == 0 {
                text.truncate(at);
            } else {
                text.insert_str(
                    at,
                    SPLINTERS[usize::try_from(seed).unwrap() % SPLINTERS.len()],
                );
            }
            for diagnostic in diagnose(&text) {
                assert!(
                    text.get(diagnostic.span.start..diagnostic.span.end)
                        .is_some(),
                    "{text}: {diagnostic:?}"
                );
            }
            let _ = (
                complete(&text, at, &Pressure),
                hover(&text, at, &Pressure),
                format(&text),
            );
        }
    }
}
