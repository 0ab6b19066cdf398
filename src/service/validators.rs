//! Validators of definitions and lists of tags, and the optional preconditions of changes (RFC 9110
//! §8.8, §13).

use super::call::validated;
use super::error::Failure;
use super::http::{Request, Response, encode};
use super::negotiate::{IfMatch, none_match};
use crate::document::short_digest;
use crate::rm::json;
use crate::store::repository::{Definition, ItemTag};
use serde_json::Value;

/// The number of times that a change of a definition is tried while other requests change it too.
///
/// Each failed attempt is the success of another request. The number is twice that of the requests
/// which one caller has in flight, so only many callers together can exceed it.
pub(super) const DEFINITION_ATTEMPTS: usize = 64;

/// Returns the entity tag of a definition: name, version and a digest of its text.
///
/// With the digest, a definition that was removed and stored again with another text has a new tag.
pub(super) fn definition_etag(definition: &Definition) -> String {
    format!(
        "{}/{}/{}",
        encode(&definition.name),
        definition.version,
        short_digest(&definition.body)
    )
}

/// The maximum number of characters of a text of a definition in lists, which have such texts of
/// all definitions.
const MAX_SUMMARY: usize = 2_000;

/// Returns a text of a definition for lists. A longer one is cut, and ends with `…`.
pub(super) fn listed_text(text: &str) -> String {
    match text.char_indices().nth(MAX_SUMMARY) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns the summary of a stored definition.
///
/// # Errors
/// 500 if it is no JSON.
pub(super) fn summary_of(definition: &Definition) -> Result<Value, Failure> {
    let broken = |_| Failure::broken("the summary of a stored definition is no JSON");
    json::value(&definition.summary).map_err(broken)
}

/// Returns the entity tag of the tags of one target.
pub(super) fn tags_etag(tags: &[ItemTag]) -> String {
    let text = |text: &Option<String>| {
        text.as_ref().map_or_else(
            // The length before each text makes the encoding unambiguous, and no length begins like
            // this.
            || String::from("-"),
            |text| format!("{}:{text}", text.len()),
        )
    };
    let parts: Vec<String> = tags
        .iter()
        .map(|tag| {
            format!(
                "{}:{}{}{}",
                tag.key.len(),
                tag.key,
                text(&tag.path),
                text(&tag.value)
            )
        })
        .collect();
    short_digest(&parts.concat())
}

/// Returns a 304 response if the client has the representation with this entity tag.
pub(super) fn not_modified(request: &Request, etag: &str) -> Option<Response> {
    none_match(request, etag).then(|| Response::new(304).with_header("ETag", format!("\"{etag}\"")))
}

/// Returns the response to a read of a definition in `media_type`: 304 if the client has it, else
/// 200 with the body; both with validators.
pub(super) fn definition_response(
    request: &Request,
    definition: &Definition,
    etag: &str,
    media_type: &str,
    body: String,
) -> Response {
    let response = match none_match(request, etag) {
        true => Response::new(304),
        false => Response::new(200).with_body(media_type, body),
    };
    validated(response, etag, &definition.created)
}

/// Returns whether a request names states of the resource that it changes.
pub(super) fn has_preconditions(request: &Request) -> bool {
    ["If-Match", "If-None-Match"]
        .iter()
        .any(|name| request.header(name).is_some())
}

/// The entity tag of a resource that exists and has none. If-Match with any tag does not hold for it.
pub(super) const NO_ETAG: &str = "";

/// Checks the optional If-Match and If-None-Match of a change. `current` is the entity tag of the
/// resource, if it exists.
///
/// # Errors
/// 412, with the current entity tag if there is one: If-Match has another one (RFC 9110 §13.1.1),
/// or If-None-Match has this one, or `*` (§13.1.2).
pub(super) fn check_preconditions(request: &Request, current: Option<&str>) -> Result<(), Failure> {
    let failed = |message: &str| {
        let failure = Failure::new(412, message);
        match current {
            None | Some(NO_ETAG) => failure,
            Some(current) => failure.header("ETag", format!("\"{current}\"")),
        }
    };
    match (IfMatch::from_headers(request), current) {
        (Some(wanted), Some(current)) if !wanted.includes(current) => Err(failed(
            "If-Match names another state than the present one: read it again, and send its ETag",
        )),
        (Some(_), None) => Err(failed(
            "If-Match is sent, but there is nothing here yet: leave the header out to create it",
        )),
        (_, Some(current)) if none_match(request, current) => Err(failed(
            "If-None-Match excludes the present state: leave the header out to replace it",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(header: &str, sent: &str, current: Option<&str>) -> Option<u16> {
        let request = Request::new("PUT", "/").with_header(header, sent);
        check_preconditions(&request, current)
            .err()
            .map(|failure| failure.status)
    }

    #[test]
    fn if_match_names_the_present_state() {
        let request = Request::new("PUT", "/");
        assert_eq!(check_preconditions(&request, None), Ok(()));
        for fitting in ["\"a\"", "W/\"a\"", "a", "*", "\"b\", \"a\""] {
            assert_eq!(status("If-Match", fitting, Some("a")), None, "{fitting}");
        }
        assert_eq!(status("If-Match", "\"b\"", Some("a")), Some(412));
        assert_eq!(status("If-Match", "*", None), Some(412));
        assert_eq!(status("If-Match", "*", Some(NO_ETAG)), None);
        assert_eq!(status("If-Match", "\"b\"", Some(NO_ETAG)), Some(412));
    }

    #[test]
    fn if_none_match_excludes_states() {
        for (sent, current, expected) in [
            ("*", None, None),
            ("*", Some("a"), Some(412)),
            ("\"b\"", Some("a"), None),
            ("\"b\", \"a\"", Some("a"), Some(412)),
        ] {
            assert_eq!(status("If-None-Match", sent, current), expected, "{sent}");
        }
    }

    #[test]
    fn entity_tags_of_tags_distinguish_absent_from_empty_texts() {
        let tag = |key: &str, path: Option<&str>, value: Option<&str>| {
            vec![ItemTag {
                key: key.into(),
                path: path.map(str::to_owned),
                value: value.map(str::to_owned),
            }]
        };
        let tags = [
            tag("a", None, None),
            tag("a", Some(""), None),
            tag("a", None, Some("")),
            tag("a", Some("b"), None),
            tag("ab", None, None),
        ];
        for (i, one) in tags.iter().enumerate() {
            for other in tags.iter().skip(i + 1) {
                assert_ne!(tags_etag(one), tags_etag(other));
            }
        }
    }
}
