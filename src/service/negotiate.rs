//! Content negotiation: media types, preferences and preconditions in the headers of a request.

mod charset;
mod entity_tags;
mod media_range;
mod result_form;

use super::Request;
use super::error::Failure;
use crate::template::flat::Shape;
pub(crate) use charset::decoded;
pub(crate) use entity_tags::{IfMatch, none_match, required_if_match};
pub(crate) use media_range::choose;
pub(crate) use result_form::{NegotiatedFormat, RESULT_TYPES, wanted_result};

/// The two representations of RM resources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Canonical JSON.
    Json,
    /// Canonical XML.
    Xml,
}

impl Format {
    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Xml => "application/xml",
        }
    }

    /// Returns the format that a media type names. Types such as `application/fhir+json` have the
    /// syntax of JSON, but another content.
    fn from_media_type(media_type: &str) -> Option<Format> {
        match media_type {
            "application/json" => Some(Format::Json),
            // RFC 7303, section 9.2: both names are equivalent.
            "application/xml" | "text/xml" => Some(Format::Xml),
            _ => None,
        }
    }
}

/// The representations of a COMPOSITION.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// The form of the Reference Model.
    Canonical(Format),
    /// FLAT or STRUCTURED, under this media type.
    Simplified(Shape, &'static str),
}

pub(crate) const FLAT: &str = "application/openehr.wt.flat+json";
pub(crate) const STRUCTURED: &str = "application/openehr.wt.structured+json";

/// The media types of ITS-REST before release 1.0.3.
pub(crate) const FLAT_OLD: &str = "application/openehr.wt.flat.schema+json";
pub(crate) const STRUCTURED_OLD: &str = "application/openehr.wt.structured.schema+json";

/// The media types of the simplified formats, and their old spellings.
const SIMPLIFIED: [(&str, Shape); 4] = [
    (FLAT, Shape::Flat),
    (STRUCTURED, Shape::Structured),
    (FLAT_OLD, Shape::Flat),
    (STRUCTURED_OLD, Shape::Structured),
];

impl Form {
    fn simplified(media_type: &str) -> Option<Form> {
        SIMPLIFIED
            .iter()
            .find(|(name, _)| *name == media_type)
            .map(|(name, shape)| Form::Simplified(*shape, name))
    }

    /// Returns the form that the parameter `format` requests.
    fn requested(request: &Request) -> Result<Option<Form>, Failure> {
        let Some(requested) = request.query_value("format").filter(|f| !f.is_empty()) else {
            return Ok(None);
        };
        let wanted = "expected FLAT, STRUCTURED, JSON or XML";
        Ok(Some(match requested.to_ascii_uppercase().as_str() {
            "JSON" | "CANONICAL" => Form::Canonical(Format::Json),
            "XML" => Form::Canonical(Format::Xml),
            "FLAT" => Form::Simplified(Shape::Flat, FLAT),
            "STRUCTURED" => Form::Simplified(Shape::Structured, STRUCTURED),
            // Formats of other servers, which are known but not supported: 400 instead of 406.
            "RAW" | "EXPANDED" | "ECISFLAT" => {
                return Err(Failure::bad_request(format!(
                    "the format `{requested}` is not supported: {wanted}"
                )));
            }
            _ => {
                let name: String = requested.chars().take(40).collect();
                let message = format!("the format `{name}` is unknown: {wanted}");
                return Err(Failure::new(406, message));
            }
        }))
    }

    /// Returns the form of a body: that of its media type; for JSON, or without a media type, that
    /// of `format`.
    pub fn of_body(request: &Request) -> Result<Form, Failure> {
        if let Some(form) = request
            .header("Content-Type")
            .map(media_type)
            .as_deref()
            .and_then(Form::simplified)
        {
            return Ok(form);
        }
        Form::under(body_format(request), Form::requested(request)?)
    }

    /// Returns the form of a response: that of Accept; if Accept is JSON or `*/*` that of `format`;
    /// without both that of the body.
    pub fn wanted(request: &Request) -> Result<Form, Failure> {
        let names: Vec<&str> = ["application/json", "application/xml"]
            .into_iter()
            .chain(SIMPLIFIED.iter().map(|(name, _)| *name))
            .collect();
        let chosen = choose(request, &names)?;
        if let Some(form) = Form::simplified(chosen) {
            return Ok(form);
        }
        let accept = request.header("Accept").unwrap_or_default();
        let requested = Form::requested_or_sent(request)?;
        let format = if chosen == Format::Xml.media_type() {
            Format::Xml
        } else {
            Format::Json
        };
        Ok(match Form::under(format, requested)? {
            Form::Simplified(shape, _) if accept.contains(Format::Json.media_type()) => {
                Form::Simplified(shape, Format::Json.media_type())
            }
            form => form,
        })
    }

    /// Returns the form that the parameter `format` requests. Without `format` and Accept, a client
    /// gets the simplified format that it sent.
    fn requested_or_sent(request: &Request) -> Result<Option<Form>, Failure> {
        let accept = request.header("Accept").unwrap_or_default();
        let sent = request.header("Content-Type").map(media_type);
        let sent = sent.filter(|_| accept.is_empty());
        let requested = Form::requested(request)?;
        Ok(requested.or_else(|| sent.as_deref().and_then(Form::simplified)))
    }

    fn under(format: Format, requested: Option<Form>) -> Result<Form, Failure> {
        match requested {
            Some(form) if format == Format::Json => Ok(form),
            Some(Form::Simplified(..)) => Err(Failure::new(
                406,
                "FLAT and STRUCTURED are JSON: the media type and the parameter `format` contradict each other",
            )),
            _ => Ok(Form::Canonical(format)),
        }
    }
}

/// The content of the response to a change (RFC 7240).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Return {
    /// Headers only; the default.
    Minimal,
    /// The complete resource.
    Representation,
    /// `{"uid": …}`.
    Identifier,
}

/// The Prefer header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prefer {
    /// The content of the response.
    pub returns: Return,
    /// Whether the client stated a preference.
    pub stated: bool,
    /// Whether to replace references by the objects that they refer to.
    pub resolve_refs: bool,
}

impl Prefer {
    /// Reads the header. Unknown preferences are ignored, as RFC 7240 requires.
    pub fn from_headers(request: &Request) -> Prefer {
        let named = request
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("Prefer"));
        let tokens = || {
            named
                .clone()
                .flat_map(|(_, value)| value.split([',', ';']))
                // RFC 7240 allows `return = "minimal"` too, and names in any letter case.
                .map(|token| token.replace(['"', ' ', '\t'], "").to_ascii_lowercase())
        };
        let stated = tokens().find_map(|token| match token.as_str() {
            "return=minimal" => Some(Return::Minimal),
            "return=representation" => Some(Return::Representation),
            "return=identifier" => Some(Return::Identifier),
            _ => None,
        });
        let resolve_refs = tokens().any(|token| token == "resolve_refs");
        Prefer {
            returns: stated.unwrap_or(Return::Minimal),
            stated: stated.is_some(),
            resolve_refs,
        }
    }
}

/// Returns the media type of a body without parameters, in lower case.
fn media_type(value: &str) -> String {
    value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// Returns a parameter of a media type, or of a range of a header: `0.5` for `q` of
/// `text/csv;q=0.5`.
pub(crate) fn parameter<'v>(value: &'v str, name: &str) -> Option<&'v str> {
    let parameters = value.split(';').skip(1);
    let mut pairs = parameters.filter_map(|parameter| parameter.split_once('='));
    pairs
        .find(|(key, _)| key.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// The media types that the body of an operation may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accepted {
    /// JSON. Operations without a body ignore one with this type.
    Json,
    /// Newline-delimited JSON.
    Lines,
    /// JSON, or newline-delimited JSON.
    JsonOrLines,
    /// JSON or XML of the Reference Model.
    Model,
    /// The same, and FLAT and STRUCTURED.
    Forms,
    /// XML, or XML as plain text.
    Xml,
    /// Plain text or JSON.
    TextOrJson,
}

impl Accepted {
    fn takes(self, sent: &str) -> bool {
        let format = Format::from_media_type(sent);
        match self {
            Accepted::Json => format == Some(Format::Json),
            Accepted::Lines => NDJSON.contains(&sent),
            Accepted::JsonOrLines => format == Some(Format::Json) || NDJSON.contains(&sent),
            Accepted::Model => format.is_some(),
            Accepted::Forms => format.is_some() || Form::simplified(sent).is_some(),
            Accepted::Xml => format == Some(Format::Xml) || sent == "text/plain",
            Accepted::TextOrJson => format == Some(Format::Json) || sent.starts_with("text/"),
        }
    }

    fn names(self) -> &'static str {
        match self {
            Accepted::Json => "application/json",
            Accepted::Lines => "application/x-ndjson",
            Accepted::JsonOrLines => "application/json or application/x-ndjson",
            Accepted::Model => "application/json or application/xml",
            Accepted::Forms => "application/json, application/xml, or a type of FLAT or STRUCTURED",
            Accepted::Xml => "application/xml",
            Accepted::TextOrJson => "text/plain or application/json",
        }
    }

    /// Checks that a body has a media type that the operation accepts: 415. The body is present, or
    /// announced by the headers.
    pub fn check(self, request: &Request) -> Result<(), Failure> {
        let announced = || {
            let length = request
                .header("Content-Length")
                .is_some_and(|length| length != "0");
            length || request.header("Transfer-Encoding").is_some()
        };
        // Content of GET has no meaning (RFC 9110, section 9.3.1).
        if matches!(request.method.as_str(), "GET" | "HEAD")
            || (request.body.is_empty() && !announced())
        {
            return Ok(());
        }
        match request.header("Content-Type").map(media_type) {
            Some(sent) if !self.takes(&sent) => Err(unsupported(&sent, self.names())),
            // Lines are read while they arrive, and only as UTF-8.
            Some(sent) if NDJSON.contains(&sent.as_str()) => charset::check_utf8(request),
            Some(_) => charset::check(request),
            None => Err(Failure::new(
                415,
                format!(
                    "the media type of the body is missing: send Content-Type, expected {}",
                    self.names()
                ),
            )),
        }
    }
}

/// The content coding of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ContentCoding {
    /// No coding.
    Identity,
    /// Compressed by gzip, once.
    Gzip,
}

impl ContentCoding {
    /// Reads Content-Encoding: `gzip`, once, or nothing; else 415.
    pub fn from_headers(request: &Request) -> Result<ContentCoding, Failure> {
        let codings = content_codings(request);
        match codings
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .as_slice()
        {
            [] => Ok(ContentCoding::Identity),
            // RFC 9110, section 8.4.1.3: both names are equivalent.
            ["gzip" | "x-gzip"] if cfg!(feature = "gzip") => Ok(ContentCoding::Gzip),
            others => {
                let shown: String = others.join(", ").chars().take(40).collect();
                let message = format!(
                    "the content coding `{shown}` is not supported: compress the body by gzip, once, or send it as it is"
                );
                Err(Failure::new(415, message).header("Accept-Encoding", "gzip, identity"))
            }
        }
    }
}

/// Returns the codings of a body in the order in which they were applied, without `identity`.
fn content_codings(request: &Request) -> Vec<String> {
    let headers = request.headers.iter();
    headers
        .filter(|(name, _)| name.eq_ignore_ascii_case("Content-Encoding"))
        .flat_map(|(_, value)| value.split(','))
        .map(|coding| coding.trim().to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != "identity")
        .collect()
}

/// Returns whether the body of a request has a supported compression.
#[must_use]
pub fn is_compressed(request: &Request) -> bool {
    ContentCoding::from_headers(request) == Ok(ContentCoding::Gzip)
}

/// Returns the format of an RM body; JSON by default. [`Accepted::check`] has refused other types.
pub(crate) fn body_format(request: &Request) -> Format {
    let sent = request.header("Content-Type").map(media_type);
    sent.as_deref()
        .and_then(Format::from_media_type)
        .unwrap_or(Format::Json)
}

/// Returns true for a body of plain text, false for JSON. [`Accepted::check`] has refused other
/// types.
pub(crate) fn is_text_body(request: &Request) -> bool {
    match request.header("Content-Type").map(media_type) {
        // No AQL text starts with a brace.
        None => !request.body.trim_ascii_start().starts_with(b"{"),
        Some(sent) => sent.starts_with("text/"),
    }
}

/// The media types of newline-delimited JSON, the usual one first.
const NDJSON: [&str; 3] = [
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
];

/// Returns whether a body is declared as newline-delimited JSON.
pub(crate) fn is_ndjson(request: &Request) -> bool {
    request
        .header("Content-Type")
        .map(media_type)
        .is_some_and(|t| NDJSON.contains(&t.as_str()))
}

/// Checks that the client accepts newline-delimited JSON, under any of its names.
///
/// # Errors
/// 406 if not.
pub(crate) fn check_ndjson_acceptable(request: &Request) -> Result<(), Failure> {
    choose(request, &NDJSON).map(drop)
}

fn unsupported(sent: &str, wanted: &str) -> Failure {
    Failure::new(
        415,
        format!(
            "the content type `{}` is not supported here; send {wanted}",
            sent.chars().take(80).collect::<String>()
        ),
    )
}

/// Returns the requested format of an RM resource.
pub(crate) fn wanted_format(request: &Request) -> Result<Format, Failure> {
    let chosen = choose(request, &["application/json", "application/xml"])?;
    Ok(if chosen == "application/xml" {
        Format::Xml
    } else {
        Format::Json
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> Result<Format, u16> {
        wanted_format(&Request::new("GET", "/").with_header("Accept", value)).map_err(|f| f.status)
    }

    #[test]
    fn the_best_offered_type_is_chosen() {
        assert_eq!(accept("*/*"), Ok(Format::Json));
        assert_eq!(
            accept("text/html, application/xml;q=0.9, */*;q=0.8"),
            Ok(Format::Xml)
        );
        assert_eq!(
            accept("application/xml;q=0.1, application/json"),
            Ok(Format::Json)
        );
        assert_eq!(accept("application/*"), Ok(Format::Json));
        assert_eq!(accept("text/csv"), Err(406));
        assert_eq!(accept("app/*"), Err(406));
        assert_eq!(accept("application/fhir+json"), Err(406));
        assert_eq!(accept("application/vnd.example+xml"), Err(406));
        assert_eq!(accept("text/xml"), Ok(Format::Xml));
        assert_eq!(accept("application/xml, application/json"), Ok(Format::Xml));
    }

    #[test]
    fn the_most_specific_range_decides_the_quality() {
        assert_eq!(
            accept("*/*, application/json;q=0.1, application/xml;q=0.5"),
            Ok(Format::Xml)
        );
        assert_eq!(
            accept("application/*;q=0.9, application/json;q=0.2"),
            Ok(Format::Xml)
        );
        assert_eq!(accept("text/xml;q=0.5, */*;q=0.4"), Ok(Format::Xml));
        assert_eq!(
            accept("application/json;charset=utf-8;Q=0.3, application/xml;q=0.2"),
            Ok(Format::Json)
        );
    }

    #[test]
    fn quality_zero_excludes_a_type() {
        assert_eq!(accept("application/json;q=0, */*"), Ok(Format::Xml));
        assert_eq!(
            accept("*/*;q=1, application/json;q=0.0, application/xml;q=0"),
            Err(406)
        );
        assert_eq!(accept("application/json;q=0"), Err(406));
        assert_eq!(accept("*/*;q=0"), Err(406));
    }

    #[test]
    fn compositions_have_four_forms() {
        let wanted = |target: &str, accept: &str| {
            let request = Request::new("GET", target);
            Form::wanted(&if accept.is_empty() {
                request
            } else {
                request.with_header("Accept", accept)
            })
            .map_err(|f| f.status)
        };
        assert_eq!(wanted("/", ""), Ok(Form::Canonical(Format::Json)));
        assert_eq!(
            wanted("/?format=flat", ""),
            Ok(Form::Simplified(Shape::Flat, FLAT))
        );
        assert_eq!(
            wanted("/?format=FLAT", "application/json"),
            Ok(Form::Simplified(Shape::Flat, "application/json"))
        );
        assert_eq!(
            wanted("/?format=FLAT", STRUCTURED),
            Ok(Form::Simplified(Shape::Structured, STRUCTURED))
        );
        assert_eq!(
            wanted("/", SIMPLIFIED[2].0),
            Ok(Form::Simplified(Shape::Flat, SIMPLIFIED[2].0))
        );
        assert_eq!(
            wanted("/?format=XML", "*/*"),
            Ok(Form::Canonical(Format::Xml))
        );
        assert_eq!(wanted("/?format=FLAT", "application/xml"), Err(406));
        assert_eq!(wanted("/?format=CSV", ""), Err(406));
        assert_eq!(wanted("/?format=ECISFLAT", ""), Err(400));
    }
}
