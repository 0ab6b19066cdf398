//! Tests of unusable keys and their findings.

use super::*;

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
            found
                .iter()
                .any(|(c, k)| *c == code && *k.replace(":0", "") == *key.replace(":0", "")),
            "{members}: {found:?}"
        );
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
    assert_eq!(found, [("FLT0105", String::from("ctx/participation_name"))]);
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
            Maker::Better,
        );
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
            right +=
                usize::from(plain(first.split(", ").next().unwrap_or_default()) == plain(path));
        }
    }
    assert!(
        tried > 100 && right * 100 >= tried * 95,
        "{right} of {tried}"
    );
}
