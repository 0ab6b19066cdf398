//! Validators and preconditions of resources without a version uid: definitions and lists of tags
//! (RFC 9110 §8.8, §13).

use super::call::validated;
use super::error::Failure;
use super::http::{Request, Response, encode};
use super::negotiate::{IfMatch, none_match};
use crate::document::short_digest;
use crate::store::repository::{Definition, ItemTag};

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

/// Checks an optional If-Match of a request for a resource that is not versioned. `current` is its
/// entity tag, if it exists.
///
/// # Errors
/// 412 with the current entity tag if the header has another one (RFC 9110 §13.1.1).
pub(super) fn check_if_match(request: &Request, current: Option<&str>) -> Result<(), Failure> {
    let Some(wanted) = IfMatch::from_headers(request) else {
        return Ok(());
    };
    match current {
        Some(current) if wanted.includes(current) => Ok(()),
        Some(current) => Err(Failure::new(
            412,
            "If-Match names another state than the present one: read it again, and send its ETag",
        )
        .header("ETag", format!("\"{current}\""))),
        None => Err(Failure::new(
            412,
            "If-Match is sent, but there is nothing here yet: leave the header out to create it",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(if_match: &str, current: Option<&str>) -> Option<u16> {
        let request = Request::new("PUT", "/").with_header("If-Match", if_match);
        check_if_match(&request, current)
            .err()
            .map(|failure| failure.status)
    }

    #[test]
    fn if_match_names_the_present_state() {
        assert_eq!(check_if_match(&Request::new("PUT", "/"), None), Ok(()));
        for fitting in ["\"a\"", "W/\"a\"", "a", "*", "\"b\", \"a\""] {
            assert_eq!(status(fitting, Some("a")), None, "{fitting}");
        }
        assert_eq!(status("\"b\"", Some("a")), Some(412));
        assert_eq!(status("*", None), Some(412));
    }

    #[test]
    fn entity_tags_of_tags_tell_absent_from_empty_and_do_not_run_together() {
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
