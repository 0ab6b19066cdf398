//! The schema of ITS-REST for new versions: UPDATE_VERSION, UPDATE_AUDIT, UPDATE_ATTESTATION and
//! TERMINOLOGY_CODE (OpenAPI document, `NewContribution`).
//!
//! Clients send a contribution in this schema, or as the classes of the Reference Model. The
//! functions of this module rewrite the first form as the second, as JSON text, before the document
//! is read. Text that is in the second form already is returned as it is. Any other text too: the
//! reader of documents reports it.

use super::committal::{Code, change_type, check_terminology, lifecycle};
use super::error::Failure;
use crate::rm::class::Cls;
use crate::rm::json::{elements, members, quote_into, text};
use crate::store::canonical::object;
use std::borrow::Cow;

/// The names of `_type` that an object may have, each with its class of the Reference Model.
type Types = [(&'static str, Cls)];

const CONTRIBUTIONS: &Types = &[
    ("CONTRIBUTION", Cls::CONTRIBUTION),
    ("NEW_CONTRIBUTION", Cls::CONTRIBUTION),
    ("UPDATE_CONTRIBUTION", Cls::CONTRIBUTION),
];
const VERSIONS: &Types = &[
    ("ORIGINAL_VERSION", Cls::ORIGINAL_VERSION),
    ("UPDATE_VERSION", Cls::ORIGINAL_VERSION),
    ("IMPORTED_VERSION", Cls::IMPORTED_VERSION),
];
const AUDITS: &Types = &[
    ("AUDIT_DETAILS", Cls::AUDIT_DETAILS),
    ("UPDATE_AUDIT", Cls::AUDIT_DETAILS),
    ("ATTESTATION", Cls::ATTESTATION),
    ("UPDATE_ATTESTATION", Cls::ATTESTATION),
];
const ATTESTATIONS: &Types = &[
    ("ATTESTATION", Cls::ATTESTATION),
    ("UPDATE_ATTESTATION", Cls::ATTESTATION),
];

/// The members of a TERMINOLOGY_CODE, and of a CODE_PHRASE. Only two of them are read.
const CODE_MEMBERS: [&str; 6] = [
    "_type",
    "terminology_id",
    "terminology_version",
    "code_string",
    "uri",
    "preferred_term",
];

/// A JSON text in the form of the Reference Model.
type Form<'a> = Result<Cow<'a, str>, Failure>;

/// Finds a code of the openEHR terminology by code or rubric.
type Find = fn(&str) -> Result<Code, Failure>;

/// A JSON text of the Reference Model, and the class that it names.
pub(crate) struct Rewritten<'a> {
    /// The text.
    pub json: Cow<'a, str>,
    /// The class of its `_type`; `None` if it has none.
    pub class: Option<Cls>,
}

impl<'a> Rewritten<'a> {
    fn unchanged(json: &'a str) -> Rewritten<'a> {
        Rewritten {
            json: Cow::Borrowed(json),
            class: None,
        }
    }
}

/// Checks the `_type` of a contribution.
///
/// # Errors
/// 400 for an unknown class.
pub(crate) fn check_contribution_type(value: &str) -> Result<(), Failure> {
    named_class(value, CONTRIBUTIONS).map(drop)
}

/// Rewrites a VERSION of a contribution. The item of an IMPORTED_VERSION is left as it is.
///
/// # Errors
/// 400 for an unknown class of the version or of one of its audits, and for a TERMINOLOGY_CODE that
/// is no code of the openEHR terminology.
pub(crate) fn canonical_version(json: &str) -> Result<Rewritten<'_>, Failure> {
    rewritten(json, VERSIONS, &|name, value| match name {
        "lifecycle_state" => coded_text(value, lifecycle),
        "commit_audit" => canonical_audit(value),
        "attestations" => attestations(value),
        _ => Ok(Cow::Borrowed(value)),
    })
}

/// Rewrites the audit of a version or of a contribution.
///
/// # Errors
/// As [`canonical_version`].
pub(crate) fn canonical_audit(json: &str) -> Form<'_> {
    Ok(rewritten(json, AUDITS, &audit_member)?.json)
}

fn attestations(json: &str) -> Form<'_> {
    let Ok(found) = elements(json) else {
        return Ok(Cow::Borrowed(json));
    };
    let (mut list, mut is_changed) = (Vec::new(), false);
    for (index, element) in found.into_iter().enumerate() {
        let element = rewritten(element, ATTESTATIONS, &audit_member)
            .map_err(|failure| failure.within(&format!("attestations[{index}]")))?
            .json;
        is_changed |= matches!(element, Cow::Owned(_));
        list.push(element);
    }
    Ok(match is_changed {
        true => Cow::Owned(format!("[{}]", list.join(","))),
        false => Cow::Borrowed(json),
    })
}

/// Rewrites a member of an AUDIT_DETAILS or an ATTESTATION.
fn audit_member<'a>(name: &str, value: &'a str) -> Form<'a> {
    match name {
        "change_type" => coded_text(value, change_type),
        "description" | "reason" => Ok(plain_text(value)),
        _ => Ok(Cow::Borrowed(value)),
    }
}

/// Rewrites a string as a DV_TEXT.
fn plain_text(value: &str) -> Cow<'_, str> {
    match value.starts_with('"') {
        true => Cow::Owned(format!(r#"{{"_type":"DV_TEXT","value":{value}}}"#)),
        false => Cow::Borrowed(value),
    }
}

/// Rewrites a TERMINOLOGY_CODE or CODE_PHRASE as a DV_CODED_TEXT, also where it is the
/// `defining_code` of one.
fn coded_text(json: &str, find: Find) -> Form<'_> {
    let Ok(found) = members(json) else {
        return Ok(Cow::Borrowed(json));
    };
    if found.iter().any(|(name, _)| name == "code_string") {
        let code = find(&code_string(json)?)?;
        return Ok(Cow::Owned(code.to_json()));
    }
    rewritten_members(json, &found, |name, value| match name {
        "defining_code" => code_phrase(value),
        _ => Ok(Cow::Borrowed(value)),
    })
}

/// Rewrites a TERMINOLOGY_CODE as a CODE_PHRASE.
fn code_phrase(json: &str) -> Form<'_> {
    let found = members(json).unwrap_or_default();
    let is_terminology_code = found.iter().any(|(name, value)| match name.as_ref() {
        "terminology_id" => value.starts_with('"'),
        "_type" => text(value).is_some_and(|class| class == "TERMINOLOGY_CODE"),
        _ => false,
    });
    if !is_terminology_code {
        return Ok(Cow::Borrowed(json));
    }
    let code = code_string(json)?;
    let terminology = object(&[("_type", "TERMINOLOGY_ID"), ("value", "openehr")]);
    let mut out =
        format!(r#"{{"_type":"CODE_PHRASE","terminology_id":{terminology},"code_string":"#);
    quote_into(&mut out, &code);
    out.push('}');
    Ok(Cow::Owned(out))
}

/// Returns the code of a TERMINOLOGY_CODE or CODE_PHRASE of the openEHR terminology.
fn code_string(json: &str) -> Result<String, Failure> {
    let found = members(json).unwrap_or_default();
    if let Some((other, _)) = found
        .iter()
        .find(|(name, _)| !CODE_MEMBERS.contains(&name.as_ref()))
    {
        return Err(Failure::bad_request(format!(
            "`{other}` is not an attribute of TERMINOLOGY_CODE"
        )));
    }
    let value = |name: &str| {
        let found = found.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| *value)
    };
    let terminology = value("terminology_id").and_then(terminology_name);
    check_terminology(&terminology.unwrap_or_default())?;
    let code = value("code_string").and_then(text);
    code.ok_or_else(|| Failure::bad_request("the `code_string` of the code is not a text"))
}

/// Returns the name of a terminology: a string, or an object with `value`.
fn terminology_name(json: &str) -> Option<String> {
    if json.starts_with('"') {
        return text(json);
    }
    let found = members(json).ok()?;
    let (_, value) = found.iter().find(|(name, _)| name == "value")?;
    text(value)
}

/// Rewrites the members of an object, and names its class of the Reference Model.
fn rewritten<'a>(
    json: &'a str,
    types: &Types,
    member: &dyn Fn(&str, &'a str) -> Form<'a>,
) -> Result<Rewritten<'a>, Failure> {
    let Ok(found) = members(json) else {
        return Ok(Rewritten::unchanged(json));
    };
    let class = match found.iter().find(|(name, _)| name == "_type") {
        Some((_, value)) => named_class(value, types)?,
        None => None,
    };
    let json = rewritten_members(json, &found, |name, value| match (name, class) {
        // A name of the Reference Model may have a generic parameter, which the reader checks.
        ("_type", Some(class)) if !is_name_of(value, class) => {
            Ok(Cow::Owned(format!("\"{}\"", class.name())))
        }
        ("attestations", _) => member(name, value),
        _ => member(name, value).map_err(|failure| failure.within(name)),
    })?;
    Ok(Rewritten { json, class })
}

/// Returns an object with its members rewritten, as it is if none of them changes.
fn rewritten_members<'a>(
    json: &'a str,
    found: &[(Cow<'_, str>, &'a str)],
    member: impl Fn(&str, &'a str) -> Form<'a>,
) -> Form<'a> {
    let mut list = Vec::with_capacity(found.len());
    for (name, value) in found {
        list.push((name.as_ref(), member(name, value)?));
    }
    let is_changed = list.iter().any(|(_, value)| matches!(value, Cow::Owned(_)));
    Ok(match is_changed {
        true => Cow::Owned(joined(&list)),
        false => Cow::Borrowed(json),
    })
}

/// Returns the class that a `_type` names; `None` if it is null.
fn named_class(value: &str, types: &Types) -> Result<Option<Cls>, Failure> {
    if value == "null" {
        return Ok(None);
    }
    let given = text(value).unwrap_or_default();
    let base = given.split('<').next().unwrap_or_default();
    let found = types.iter().find(|(name, _)| *name == base);
    found.map(|(_, class)| Some(*class)).ok_or_else(|| {
        let names: Vec<&str> = types.iter().map(|(name, _)| *name).collect();
        let shown: String = value.trim_matches('"').chars().take(40).collect();
        Failure::bad_request(format!(
            "the `_type` is `{shown}`, expected one of {}, or none",
            names.join(", ")
        ))
    })
}

/// Returns whether a `_type` is the name of a class, with or without a generic parameter.
fn is_name_of(value: &str, class: Cls) -> bool {
    let name = text(value).unwrap_or_default();
    name.split('<').next() == Some(class.name())
}

/// Returns an object with these members, whose values are JSON.
fn joined(list: &[(&str, Cow<'_, str>)]) -> String {
    let size: usize = list
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    let mut out = String::with_capacity(size + 2);
    for (name, value) in list {
        out.push(if out.is_empty() { '{' } else { ',' });
        quote_into(&mut out, name);
        out.push(':');
        out.push_str(value);
    }
    out.push_str(if out.is_empty() { "{}" } else { "}" });
    out
}
