//! Canonical JSON that a repository makes: object references, and the CONTRIBUTION of some
//! versions.

use crate::rm::json::quote_into;

/// Returns a text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::new();
    quote_into(&mut out, text);
    out
}

/// Returns a JSON object of texts.
pub(crate) fn object(members: &[(&str, &str)]) -> String {
    let mut out = String::from("{");
    for (i, (key, value)) in members.iter().enumerate() {
        out.push_str(if i > 0 { ",\"" } else { "\"" });
        out.push_str(key);
        out.push_str("\":");
        quote_into(&mut out, value);
    }
    out.push('}');
    out
}

/// Returns an OBJECT_REF into this repository.
pub(crate) fn reference(id_class: &str, id: &str, referred: &str) -> String {
    let id = object(&[("_type", id_class), ("value", id)]);
    format!(r#"{{"_type":"OBJECT_REF","id":{id},"namespace":"local","type":"{referred}"}}"#)
}

/// Returns a CONTRIBUTION with its uid, its audit, and its versions as pairs of uid and class name.
pub(crate) fn contribution(uid: &str, versions: &[(&str, &str)], audit: &str) -> String {
    let mut out = String::from(r#"{"_type":"CONTRIBUTION","uid":"#);
    out.push_str(&object(&[("_type", "HIER_OBJECT_ID"), ("value", uid)]));
    out.push_str(r#","versions":["#);
    for (i, (version, class)) in versions.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&reference("OBJECT_VERSION_ID", version, class));
    }
    out.push_str(r#"],"audit":"#);
    out.push_str(audit);
    out.push('}');
    out
}
