//! Entity tags and the preconditions of a request that name them (RFC 9110, sections 8.8.3 and
//! 13.1).

use super::super::Request;
use super::super::error::Failure;

/// Returns an entity tag without its quotes: `"x"`, `W/"x"` or bare.
fn entity_tag(value: &str) -> &str {
    let value = value.trim();
    // A proxy that compresses responses makes their entity tags weak.
    let value = value.strip_prefix("W/").unwrap_or(value);
    value
        .strip_prefix('"')
        .and_then(|v| v.strip_suffix('"'))
        .unwrap_or(value)
}

/// The condition of If-Match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum IfMatch<'r> {
    /// `*`: the resource exists.
    Any,
    /// The resource has one of these entity tags.
    Tags(Vec<&'r str>),
}

impl<'r> IfMatch<'r> {
    /// Reads the header. `None` if it is absent or empty.
    pub fn from_headers(request: &'r Request) -> Option<IfMatch<'r>> {
        match listed(request, "If-Match").as_slice() {
            [] => None,
            ["*"] => Some(IfMatch::Any),
            tags => Some(IfMatch::Tags(tags.to_vec())),
        }
    }

    /// Returns whether a resource with this entity tag meets the condition.
    pub fn includes(&self, current: &str) -> bool {
        match self {
            IfMatch::Any => true,
            IfMatch::Tags(tags) => tags.contains(&current),
        }
    }
}

/// Returns the entity tags of a header. A header that occurs several times is one list.
fn listed<'r>(request: &'r Request, name: &str) -> Vec<&'r str> {
    let sent = request.headers.iter();
    let sent = sent.filter(|(header, _)| header.eq_ignore_ascii_case(name));
    let elements = sent.flat_map(|(_, value)| {
        // A comma between quotes is part of an entity tag.
        let mut is_quoted = false;
        value.split(move |c: char| {
            is_quoted ^= c == '"';
            c == ',' && !is_quoted
        })
    });
    let elements = elements.map(entity_tag);
    elements.filter(|tag| !tag.is_empty()).collect()
}

/// Returns the version uids of If-Match, which is required for every change of a versioned object
/// whose path has no version uid.
///
/// # Errors
/// 400 without the header, and for `*`: ITS-REST requires the uid of the version that the change
/// follows. 412 if If-None-Match excludes each of these versions.
pub(crate) fn required_if_match(request: &Request) -> Result<Vec<&str>, Failure> {
    match IfMatch::from_headers(request) {
        Some(IfMatch::Tags(tags)) if tags.iter().all(|tag| none_match(request, tag)) => {
            Err(Failure::new(
                412,
                "If-None-Match excludes the version that If-Match names: leave If-None-Match out to change it",
            ))
        }
        Some(IfMatch::Tags(tags)) => Ok(tags),
        Some(IfMatch::Any) => Err(Failure::bad_request(
            "the header If-Match is `*`, which names no version: send the version uid of the version that you change",
        )),
        None => Err(Failure::bad_request(
            "the header If-Match is missing: send the version uid of the version that you change",
        )),
    }
}

/// Returns whether If-None-Match has this entity tag.
pub(crate) fn none_match(request: &Request, etag: &str) -> bool {
    listed(request, "If-None-Match")
        .iter()
        .any(|tag| *tag == "*" || *tag == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(values: &[&str]) -> Request {
        let request = Request::new("PUT", "/");
        values
            .iter()
            .fold(request, |r, value| r.with_header("If-Match", value))
    }

    #[test]
    fn entity_tags_come_in_three_spellings() {
        for tag in ["\"a::b::1\"", "W/\"a::b::1\"", "a::b::1"] {
            assert_eq!(entity_tag(tag), "a::b::1");
        }
    }

    #[test]
    fn if_match_is_a_list_or_an_asterisk() {
        let tags = |tags: &[&'static str]| Some(IfMatch::Tags(tags.to_vec()));
        for (values, expected) in [
            (vec![], None),
            (vec![""], None),
            (vec!["*"], Some(IfMatch::Any)),
            (vec!["\"a\", W/\"b\",c"], tags(&["a", "b", "c"])),
            (vec!["\"a\"", "\"b\""], tags(&["a", "b"])),
            (vec!["\"a,b\", \"c\""], tags(&["a,b", "c"])),
            // An asterisk within a list is the text of a tag.
            (vec!["\"a\", *"], tags(&["a", "*"])),
        ] {
            let request = sent(&values);
            assert_eq!(IfMatch::from_headers(&request), expected, "{values:?}");
        }
        let request = sent(&["\"a\""]);
        assert_eq!(required_if_match(&request), Ok(vec!["a"]));
        for values in [vec![], vec!["*"]] {
            let request = sent(&values);
            let refused = required_if_match(&request).map_err(|f| f.status);
            assert_eq!(refused, Err(400), "{values:?}");
        }
        for (excluded, expected) in [
            ("*", Err(412)),
            ("\"a\"", Err(412)),
            ("\"b\"", Ok(vec!["a"])),
            ("", Ok(vec!["a"])),
        ] {
            let request = sent(&["\"a\""]).with_header("If-None-Match", excluded);
            let required = required_if_match(&request).map_err(|f| f.status);
            assert_eq!(required, expected, "{excluded}");
        }
    }
}
