//! Tests of unusable keys and their findings.

use super::*;

/// Keys that cannot be used, the code of the finding and its key. `/` and `|` start at the ELEMENT.
const UNUSABLE: &str = r#"
FLT0103 ctx/colour { "ctx/colour": "red" }
FLT0103 ctx|colour { "ctx|colour": "red" }
FLT0102 ctx/language|colour { "ctx/language|colour": "red" }
FLT0102 ctx/language/colour { "ctx/language/colour": "red" }
FLT0105 ctx/time:1 { "ctx/time:1": "NOW" }
FLT0104 ctx/participation_mode { "ctx/participation_name": "Berg", "ctx/participation_mode": "by pigeon" }
FLT0104 ctx/participation_mode:1 { "ctx/participation_name:1": "Berg", "ctx/participation_mode:1": "225" }
FLT0104 ctx/setting { "ctx/setting": "on the moon" }
FLT0104 ctx/setting { "ctx/setting|code": "433" }
FLT0104 ctx/category { "ctx/category": "often" }
FLT0104 ctx/time { "ctx/time": "yesterday" }
FLT0104 ctx/end_time { "ctx/end_time": "soon" }
FLT0104 ctx/territory { "ctx/territory": "ZZZ" }
FLT0104 encounter/context/setting { "encounter/context/setting|code": "999" }
FLT0104 encounter/context/setting { "encounter/context/setting|value": "on the moon" }
FLT0104 /_null_flavour { "/_null_flavour|code": "999" }
FLT0104 /_null_flavour { "/_null_flavour": "mislaid" }
FLT0104 ctx/action_ism_transition_current_state { "ctx/action_ism_transition_current_state": "lost" }
FLT0108 ctx/participation_function:1 { "ctx/participation_function:1": "nurse" }
FLT0105 encounter:1 { "encounter:1/body_weight/comment": "a" }
FLT0101 visit/body_weight/comment { "visit/body_weight/comment": "a" }
FLT0102 |colour { "|colour": "red" }
FLT0101 encounter/composer/_colour { "encounter/composer/_colour": "red" }
FLT0102 encounter/composer|identifiers_colour:0 { "encounter/composer|identifiers_colour:0": "red" }
FLT0104 /count_value { "/count_value|_type": "COLOUR" }
FLT0104 /count_value { "/count_value|_type": "DV_TEXT" }
FLT0102 /count_value|raw { "/count_value|raw:1": "{}" }
FLT0105 /count_value:1 { "/count_value": 1, "/count_value:1": 2 }
FLT0105 /count_value/_normal_range:1 { "/count_value": 1, "/count_value/_normal_range:1/lower": 2 }
FLT0107 /duration_value { "/duration_value": "P1D", "/duration_value|day": 2 }
FLT0107 /count_value { "/count_value|raw": { "_type": "DV_COUNT", "magnitude": 1 }, "/count_value|magnitude": 1 }
FLT0107 /count_value { "/text_value": "a", "/count_value": 1 }
FLT0107 /count_value { "/count_value": 1, "encounter/body_weight/events_at0003/weight/count_value": 2 }
FLT0107 /quantity_value { "/quantity_value|magnitude": 1, "/quantity_value|unit": "kg", "/quantity_value|units": "g" }
FLT0107 /quantity_value { "/quantity_value": 1, "/quantity_value|magnitude": 2, "/quantity_value|unit": "kg" }
FLT0107 /quantity_value { "/quantity_value|magnitude": 1, "/quantity_value|unit": "kg", "/quantity_value|unit_system": "a", "/quantity_value|units_system": "b" }
FLT0107 /text_value { "/text_value": "a", "/text_value|value": "b" }
FLT0107 /boolean_value { "/boolean_value": true, "/boolean_value|value": false }
FLT0107 /date_value { "/date_value": "2026-11", "/date_value|value": "2026-12" }
FLT0107 /duration_value { "/duration_value": "P1D", "/duration_value|value": "P2D" }
FLT0107 /uri_value { "/uri_value": "urn:a", "/uri_value|value": "urn:b" }
FLT0107 /parsable_value { "/parsable_value": "a", "/parsable_value|value": "b", "/parsable_value|formalism": "text/plain" }
FLT0107 /count_value { "/count_value": 3, "/count_value|magnitude": 4 }
FLT0107 /count_value/_normal_range/lower { "/count_value": 3, "/count_value/_normal_range/lower": 3, "/count_value/_normal_range/lower|magnitude": 4 }
FLT0107 /identifier_value { "/identifier_value": "17", "/identifier_value|id": "18" }
FLT0107 /multimedia_value { "/multimedia_value": "urn:a", "/multimedia_value|url": "urn:b", "/multimedia_value|mediatype": "image/png" }
FLT0107 /multimedia_value { "/multimedia_value": "urn:a", "/multimedia_value|mediatype": "image/png", "/multimedia_value|mimetype": "image/gif" }
FLT0107 /coded_text_value { "/coded_text_value": "SNOMED-CT::1::A", "/coded_text_value|code": "2", "/coded_text_value|value": "B" }
FLT0107 /coded_text_value { "/coded_text_value": "1::A", "/coded_text_value|code": "1", "/coded_text_value|value": "B" }
FLT0107 /coded_text_value { "/coded_text_value": "1", "/coded_text_value|code": "2", "/coded_text_value|value": "B" }
FLT0107 /proportion_value { "/proportion_value": 12, "/proportion_value|value": 13 }
FLT0108 /proportion_value { "/proportion_value": 0.2 }
FLT0108 /proportion_value { "/proportion_value": 2, "/proportion_value|type": 3 }
FLT0108 /proportion_value { "/proportion_value": 0.25, "/proportion_value|denominator": 8 }
FLT0108 /parsable_value { "/parsable_value": "a b" }
FLT0105 /count_value| { "/count_value|": 3 }
FLT0107 /_null_flavour { "/_null_flavour": "271", "/_null_flavour|code": "253" }
FLT0107 encounter/composer { "encounter/composer": "Berg", "encounter/composer|name": "Dahl" }
FLT0107 /count_value { "/count_value|_absent": true, "/count_value": 1 }
FLT0107 /count_value { "/count_value|_absent": "TRUE", "/count_value|_absent:1": true }
FLT0107 /count_value { "/count_value|_absent": true, "/count_value|colour": "red" }
FLT0107 /count_value { "/count_value|_absent": true, "/count_value/_normal_range/lower": 1 }
FLT0107 / { "|_absent": true, "/count_value": 3 }
FLT0107 encounter/body_weight { "encounter/body_weight|_absent": true, "encounter/body_weight/comment": "a" }
FLT0107 encounter/body_weight { "encounter/body_weight|_absent": true, "encounter/body_weight/colour": "red" }
FLT0107 encounter/_context { "encounter/_context|_absent": true, "encounter/context/_location": "ward" }
FLT0107 encounter/body_weight/_provider { "encounter/body_weight/_provider|_absent": true, "encounter/body_weight/_provider|name": "Berg" }
FLT0107 encounter/body_weight/_data { "encounter/body_weight/_data|_absent": true, "/count_value": 3 }
FLT0105 encounter/body_weight/_provider:1 { "encounter/body_weight/_provider:1|_absent": true, "/count_value": 3 }
FLT0101 encounter/body_weight/colour|_absent { "encounter/body_weight/colour|_absent": true, "/count_value": 3 }
FLT0102 /count_value|_absentx { "/count_value|_absentx": true, "/count_value": 3 }
FLT0102 encounter|_absent { "encounter|_absent": true, "/count_value": 3 }
FLT0104 / { "|raw": { "_type": "PARTY_SELF" } }
FLT0107 / { "|raw": { "_type": "DV_COUNT", "magnitude": 3 }, "/count_value": 3 }
FLT0102 /coded_text_value|386661006 { "/coded_text_value|386661006": false }
FLT0102 /coded_text_value|386661006 { "/coded_text_value|386661006": "Fever" }
FLT0102 /ordinal_value|at0005 { "/ordinal_value|at0005": false }
FLT0108 /state_value { "/state_value|code": "x1" }
FLT0108 /state_value { "/state_value|value": "In transit" }
FLT0107 /state_value { "/state_value|code": "245", "/state_value|terminology": "openehr", "/state_value|terminology_id": "local" }
FLT0105 /count_value:99999 { "/count_value:99999": 1 }
FLT0105 /count_value:-1 { "/count_value:-1": 1 }
FLT0106 /count_value { "/count_value": {"magnitude": 1} }
FLT0104 /count_value { "/count_value": 1.5 }
FLT0104 /boolean_value { "/boolean_value": "maybe" }
FLT0104 /quantity_value|magnitude { "/quantity_value|magnitude": "abc", "/quantity_value|unit": "kg" }
FLT0104 /quantity_value|precision { "/quantity_value|magnitude": 1, "/quantity_value|precision": "x", "/quantity_value|unit": "kg" }
FLT0104 /multimedia_value|size { "/multimedia_value": "urn:a", "/multimedia_value|mediatype": "image/png", "/multimedia_value|size": "x" }
FLT0104 /count_value/_normal_range|lower_included { "/count_value": 3, "/count_value/_normal_range|lower_included": "x", "/count_value/_normal_range/lower": 3 }
FLT0104 /duration_value|day { "/duration_value|day": "x" }
"#;

#[test]
fn every_unusable_key_is_reported() {
    let (template, web) = unconstrained();
    for case in UNUSABLE.replace("NOW", NOW).trim().lines() {
        let mut parts = case.splitn(3, ' ').map(str::to_owned);
        let mut next = || parts.next().unwrap();
        let (code, key, members) = (next(), next(), next());
        let members: Value = serde_json::from_str(&members).unwrap();
        let key = if key.starts_with(['/', '|']) {
            format!("{AT}{}", key.trim_end_matches('/'))
        } else {
            key
        };
        let found = findings_of(&flat(&members), Shape::Flat, &template, &web);
        assert!(
            found.iter().any(|(c, k)| *c == code && *k == key),
            "{members}: {found:?}"
        );
    }
}

#[test]
fn an_unusable_value_of_the_context_is_reported_once_at_its_key() {
    let (template, web) = parse_both(SMALL);
    for (key, value) in [
        ("ctx/time", "yesterday"),
        ("ctx/territory", "ZZZ"),
        ("ctx/history_origin", "soon"),
    ] {
        let members = json!({ "|magnitude": 70, key: value });
        let found = findings_of(&flat(&members), Shape::Flat, &template, &web);
        assert_eq!(found, [("FLT0104", key.to_owned())]);
    }
}

#[test]
fn an_unusable_part_of_a_value_is_not_reported_as_missing() {
    let (template, web) = unconstrained();
    for (members, suffix) in [
        (
            json!({ "/quantity_value|magnitude": "abc", "/quantity_value|unit": "kg" }),
            "/quantity_value|magnitude",
        ),
        (
            json!({ "/proportion_value|numerator": "abc", "/proportion_value|denominator": 2, "/proportion_value|type": 0 }),
            "/proportion_value|numerator",
        ),
    ] {
        let found = findings_of(&flat(&members), Shape::Flat, &template, &web);
        assert_eq!(found, [("FLT0104", format!("{AT}{suffix}"))], "{members}");
    }
}

/// Keys that are ignored. `/` starts at the ELEMENT.
const IGNORED: [&str; 10] = [
    "transient_a",
    "transient_a|code",
    "transient_a:3/weight",
    "ctx/transient_a",
    "ctx/transient_a:1|code",
    "ctx/health_care_facility/transient_a",
    "encounter/transient_a/weight",
    "encounter/body_weight/transient_a:2",
    "encounter/body_weight/_data/transient_a",
    "/transient_a|unit",
];

#[test]
fn transient_keys_are_ignored_at_every_segment() {
    let (template, web) = parse_both(SMALL);
    let plain = json!({ "|magnitude": 72.5, "ctx/health_care_facility": "ward" });
    let read = |members: &Value| {
        read(&flat(members), Shape::Flat, &template, &web, NOW).map(|tree| canonical(&tree))
    };
    let expected = read(&plain).unwrap();
    for key in IGNORED {
        let mut members = plain.clone();
        members[key] = json!("red");
        let found = read(&members).unwrap_or_else(|f| panic!("{key}: {f:?}"));
        assert_eq!(found, expected, "{key}");
    }
}

/// Documents, and the code, the key and the first candidate of a finding.
const AS_SENT: &str = r#"
FLT0102 encounter/body_weight/events_at0003/weight|magnitud encounter/body_weight/events_at0003/weight|magnitude { "encounter/body_weight/events_at0003/weight|magnitud": 1, "encounter/body_weight/events_at0003/weight|magnitude": 1 }
FLT0102 encounter:0/body_weight:00/events_at0003:00/weight:0|magnitud encounter:0/body_weight:00/events_at0003:00/weight:0|magnitude { "encounter:0/body_weight:00/events_at0003:00/weight:0|magnitud": 1, "encounter/body_weight/events_at0003/weight|magnitude": 1 }
FLT0102 encounter/body_weight/events_at0003:01/weight|magnitud encounter/body_weight/events_at0003:01/weight|magnitude { "encounter/body_weight/events_at0003:01/weight|magnitud": 1, "encounter/body_weight/events_at0003:1/weight|magnitude": 1 }
FLT0108 encounter/body_weight/events_at0003/weight none { "encounter/body_weight/events_at0003/weight|precision": 1 }
FLT0107 encounter/body_weight/events_at0003/weight|magnitude none { "encounter/body_weight/events_at0003/weight|magnitude": 1, "encounter:0/body_weight/events_at0003:0/weight|magnitude": 2 }
FLT0101 encounter/body_weight/events_at0003/wieght|magnitude encounter/body_weight/events_at0003/weight|magnitude { "encounter/body_weight/events_at0003/wieght|magnitude": 1, "encounter/body_weight/events_at0003:1/weight|magnitude": 1 }
FLT0101 encounter/body_wieght/events_at0003:00/weight|unit encounter/body_weight/events_at0003:00/weight|unit { "encounter/body_wieght/events_at0003:00/weight|unit": "kg", "encounter/body_wieght/events_at0003/weight|magnitude": 1 }
FLT0101 encounter/body_wieght/colour encounter/body_weight { "encounter/body_wieght/colour": "red" }
FLT0101 encounter/body_wieght/events_at0003/weight|colour encounter/body_weight { "encounter/body_wieght/events_at0003/weight|colour": "red" }
FLT0104 encounter/body_weight/events_at0003/weight|magnitude none { "encounter/body_weight/events_at0003/weight|magnitude": "abc" }
FLT0102 ctx/language/colour code { "ctx/language/colour": "red" }
FLT0102 encounter/composer|identifiers_colour:00 none { "encounter/composer|identifiers_colour:00": "red" }
"#;

#[test]
fn a_finding_has_the_key_as_it_was_sent() {
    let (template, web) = parse_both(SMALL);
    let mut wrong = Vec::new();
    for case in AS_SENT.trim().lines() {
        let [code, key, candidate, members] = case.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            panic!("{case}");
        };
        let members: Value = serde_json::from_str(members).unwrap();
        let found = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap_err();
        let is_found = found.iter().any(|finding| {
            let candidates = finding.expected.clone().unwrap_or_default();
            let first = candidates.split(", ").next();
            let is_first = first == Some(candidate) || candidate == "none";
            finding.code == code && finding.path == key && is_first
        });
        if !is_found {
            wrong.push(format!("{members}: {found:?}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Unusable keys, and the first candidate of their findings. `/` and `|` start at the ELEMENT.
const CANDIDATES: &str = r#"
encounter|langauge => encounter/language
encounter/context|locaton => encounter/context/_location
encounter/body_weight|history_orign => encounter/body_weight/history_origin
encounter/body_weight/_data/_archetype_details|rm_version => encounter/body_weight/_data/_archetype_details/_rm_version
encounter/_archetype_details|rm_version => none
encounter/_archetype_detials|rm_version => none
encounter/body_weight/_prvider => encounter/body_weight/_provider
encounter/body_weight/_feeder_audit|originating_system_adit => encounter/body_weight/_feeder_audit/originating_system_audit
encounter/body_weight/_provider|identifiers_isuer => encounter/body_weight/_provider|identifiers_issuer
encounter/body_weight/_other_participation:0|modd => encounter/body_weight/_other_participation:0|mode
/duration_value|minutes => /duration_value|minute
/count_value/_nomral_range => /count_value/_normal_range
/count_value|nomral_range => /count_value/_normal_range
/_null_flavor => /_null_flavour
/count_value/_normal_range|lower => /count_value/_normal_range/lower
encounter/context/encoding => encounter/body_weight/encoding
encounter/context/language => none
"#;

#[test]
fn the_first_candidate_is_a_possible_key_of_the_position() {
    let (template, web) = unconstrained();
    let mut wrong = Vec::new();
    for case in CANDIDATES.trim().lines() {
        let (key, expected) = case.split_once(" => ").unwrap();
        let mut members = json!({ "/count_value": 1 });
        members[key] = json!("x");
        let found = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap_err();
        let found: Vec<_> = found
            .iter()
            .filter(|f| matches!(f.code, "FLT0101" | "FLT0102"))
            .collect();
        let [finding] = found.as_slice() else {
            panic!("{key}: {found:?}");
        };
        let expected = match expected {
            "none" => String::new(),
            expected if expected.starts_with('/') => format!("{AT}{expected}"),
            expected => expected.to_owned(),
        };
        let candidates = finding.expected.clone().unwrap_or_default();
        let first = candidates.split(", ").next().unwrap_or_default();
        if first.replace(":0", "") != expected.replace(":0", "") {
            wrong.push(format!("{key}: {finding:?}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn findings_of_structured_have_the_whole_key() {
    let (template, web) = unconstrained();
    let event = |weight: Value| {
        let event = json!([{ "weight": [weight] }]);
        json!({ "ctx": { "territory": "SE", "composer_self": true },
            "encounter": { "body_weight": [{ "events_at0003": event }] } })
    };
    let at = "encounter/body_weight/events_at0003/weight";
    for (weight, key) in [
        (json!({ "text_value": [["a"]] }), "/text_value"),
        (json!({ "text_value": ["a", ["b"]] }), "/text_value:1"),
        (json!({ "|foo": { "a": 1 } }), "|foo"),
        (
            json!({ "text_value": [{ "|value": [[1]] }] }),
            "/text_value|value",
        ),
        (json!({ "text_value": [{ "|": 1 }] }), "/text_value|"),
    ] {
        let text = event(weight).to_string();
        let found = findings_of(&text, Shape::Structured, &template, &web);
        let found = found
            .into_iter()
            .filter(|(code, _)| matches!(*code, "FLT0105" | "FLT0106"));
        let keys: Vec<String> = found.map(|(_, key)| key).collect();
        assert_eq!(keys, [format!("{at}{key}")], "{text}");
    }
}

#[test]
fn other_documents_than_compositions_are_not_written() {
    let (template, web) = parse_both(SMALL);
    let text = r#"{"_type":"FOLDER","archetype_node_id":"at0001","name":{"value":"Stays"}}"#;
    let tree = json::read(text, Cls::ANY).unwrap();
    let root = tree.root().unwrap();
    for shape in [Shape::Flat, Shape::Structured] {
        let expected = Err(WriteError::Class(Cls::FOLDER));
        assert_eq!(
            write(root, shape, &template, &web, FlatDialect::Better),
            expected
        );
        let found = write_within(root, shape, &template, &web, FlatDialect::Better, 10);
        assert_eq!(found, expected);
    }
    let tree = read(
        &flat(&json!({ "|magnitude": 72.5 })),
        Shape::Flat,
        &template,
        &web,
        NOW,
    );
    let tree = tree.unwrap();
    let root = tree.root().unwrap();
    let found = write_within(root, Shape::Flat, &template, &web, FlatDialect::Better, 10);
    assert_eq!(found, Err(WriteError::TooLarge));
}

#[test]
fn too_many_keys_are_refused_by_one_finding() {
    let (template, web) = parse_both(SMALL);
    let members: String = (0..100_000)
        .map(|i| format!("\"{AT}:{i}|magnitude\":1,"))
        .collect();
    let found = read(
        &format!("{{{members}\"ctx/territory\":\"SE\"}}"),
        Shape::Flat,
        &template,
        &web,
        NOW,
    )
    .unwrap_err();
    assert!(
        found.len() == 1 && found[0].message.contains("too many keys"),
        "{found:?}"
    );
    let names: String = (0..5_000)
        .map(|i| format!("\"ctx/participation_name:{i}\":\"a\","))
        .collect();
    let requests: String = (0..5_000)
        .map(|i| format!("\"report/request:{i}/narrative\":\"a\","))
        .collect();
    let (order, form) = parse_both(include_str!(
        "../../../../../tests/cases/template/order.opt"
    ));
    let found = findings_of(
        &format!("{{{names}{requests}\"ctx/territory\":\"SE\",\"ctx/composer_self\":true}}"),
        Shape::Flat,
        &order,
        &form,
    );
    assert_eq!(
        found,
        [("FLT0105", String::from("ctx/participation_name:0"))]
    );
    let list = format!(
        r#"{{"encounter":{{"body_weight":[{}1]}}}}"#,
        "1,".repeat(100_000)
    );
    let found = read(&list, Shape::Structured, &template, &web, NOW).unwrap_err();
    assert!(
        found.len() == 1 && found[0].message.contains("too many members"),
        "{found:?}"
    );
    let deep = format!(
        "{}1{}",
        r#"{"encounter":"#.repeat(10_000),
        "}".repeat(10_000)
    );
    assert!(read(&deep, Shape::Structured, &template, &web, NOW).is_err());
    let unknown: String = (0..1_000)
        .map(|i| format!("\"encounter/x{i}\":1,"))
        .collect();
    assert_eq!(
        read(
            &format!("{{{unknown}\"ctx/territory\":\"SE\"}}"),
            Shape::Flat,
            &template,
            &web,
            NOW
        )
        .unwrap_err()
        .len(),
        MAX_FINDINGS
    );
}

#[test]
fn the_right_key_is_the_first_candidate_for_a_mistyped_one() {
    let (mut tried, mut right) = (0, 0);
    for text in [
        include_str!("../../../../../www/samples/vital_signs.opt"),
        include_str!("../../../../../www/samples/laboratory_report.opt"),
    ] {
        let (template, web) = parse_both(text);
        let tree = example(&template, ExampleKind::Full, None, NOW).unwrap();
        let Written { text, .. } = write(
            tree.root().unwrap(),
            Shape::Flat,
            &template,
            &web,
            FlatDialect::Better,
        )
        .unwrap();
        let all: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        for (key, value) in all
            .iter()
            .filter(|(k, _)| k.matches('/').count() > 1 && !k.contains("|raw"))
        {
            let path = key.split('|').next().unwrap();
            let (front, last) = path.rsplit_once('/').unwrap();
            let middle = last
                .char_indices()
                .nth(last.split(':').next().unwrap().chars().count() / 2)
                .map_or(0, |(at, _)| at);
            let mistyped = format!(
                "{front}/{}q{}{}",
                &last[..middle],
                &last[middle..],
                &key[path.len()..]
            );
            let mut members = all.clone();
            members.remove(key);
            members.insert(mistyped, value.clone());
            let found = read(
                &Value::Object(members).to_string(),
                Shape::Flat,
                &template,
                &web,
                NOW,
            )
            .unwrap_err();
            let plain = |text: &str| {
                text.split(['/', ','])
                    .map(|s| s.split(':').next().unwrap_or_default())
                    .collect::<Vec<_>>()
                    .join("/")
            };
            let first = found
                .iter()
                .find(|f| f.code == "FLT0101")
                .and_then(|f| f.expected.clone())
                .unwrap_or_default();
            tried += 1;
            right += usize::from(
                plain(first.split([',', '|']).next().unwrap_or_default()) == plain(path),
            );
        }
    }
    assert!(
        tried > 100 && right * 100 >= tried * 95,
        "{right} of {tried}"
    );
}

#[test]
fn keys_of_ordinary_length_are_not_cut() {
    let (template, web) = parse_both(SMALL);
    let id = "colour_of_the_skin_".repeat(40);
    for key in [
        format!("{AT}/{id}"),
        format!("{AT}|{id}"),
        format!("ctx/{id}"),
    ] {
        let text = json!({ &key: 1, "encounter/comment": null }).to_string();
        let found = read(&text, Shape::Flat, &template, &web, NOW).unwrap_err();
        let is_whole = found.iter().any(|finding| finding.path == key);
        assert!(is_whole, "{key}: {found:?}");
        assert!(found.iter().all(|f| !f.message.contains(&id)), "{found:?}");
    }
}

/// Findings shorten the keys that they repeat, and a search of spellings leaves out long keys.
#[test]
fn long_keys_are_not_repeated() {
    let (template, web) = parse_both(SMALL);
    for key in [
        "/".repeat(100_000),
        format!("encounter/x{}", "|".repeat(100_000)),
    ] {
        let text = serde_json::json!({ key: 1 }).to_string();
        let found = read(&text, Shape::Flat, &template, &web, NOW).unwrap_err();
        let longest = found.iter().map(|finding| finding.path.len()).max();
        assert!(longest < Some(3_000), "{longest:?}");
    }
}

#[test]
fn canonical_json_without_a_class_is_refused_by_the_class_of_its_place() {
    let (template, web) = parse_both(SMALL);
    let text = flat(&json!({ "|raw": { "magnitude": 3 } }));
    let found = read(&text, Shape::Flat, &template, &web, NOW).unwrap_err();
    let expected = "expected `_type` of an ELEMENT or a data value";
    assert!(found[0].message.contains(expected), "{}", found[0].message);
}
