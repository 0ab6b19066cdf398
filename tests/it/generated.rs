//! Bodies that the cases of the REST interface generate.

#![allow(
    clippy::expect_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

/// Returns as many FOLDERs inside one another as `folders 60` says.
pub fn nested_folders(text: &str) -> String {
    let count: usize = text
        .trim_start_matches("folders ")
        .parse()
        .expect("a number");
    let folder = r#"{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.generic.v1","name":{"_type":"DV_TEXT","value":"ward"}"#;
    let opened = format!(r#"{folder},"folders":["#).repeat(count - 1);
    format!("{opened}{folder}}}{}", "]}".repeat(count - 1))
}

/// Expands each `%{3 ab}` of a text: `ababab`.
pub fn repeated(text: &str) -> String {
    let mut parts = text.split("%{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (repetition, rest) = part.split_once('}').expect("`%{number text}`");
        let (number, unit) = repetition.split_once(' ').expect("`%{number text}`");
        out.push_str(&unit.repeat(number.parse().expect("a number of repetitions")));
        out.push_str(rest);
    }
    out
}
