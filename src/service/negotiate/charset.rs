//! The character encoding of a body, and the conversion of bodies to UTF-8.
//!
//! RFC 7303, section 3: a byte order mark precedes the parameter `charset` of Content-Type, which
//! precedes the XML declaration. JSON is UTF-8 (RFC 8259, section 8.1) unless the parameter says
//! otherwise.

use super::super::Request;
use super::super::error::Failure;
use super::{Format, is_ndjson, media_type, parameter};
use std::ops::Range;

/// The character encodings that are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Charset {
    /// UTF-8, and its subset US-ASCII.
    Utf8,
    Utf16Le,
    Utf16Be,
    /// ISO 8859-1: each byte is the code point of a character.
    Latin1,
}

impl Charset {
    fn from_name(name: &str) -> Result<Charset, Failure> {
        match name.to_ascii_lowercase().as_str() {
            "utf-8" | "utf8" | "us-ascii" | "ascii" => Ok(Charset::Utf8),
            "utf-16le" => Ok(Charset::Utf16Le),
            // Without a byte order mark, UTF-16 is big-endian (RFC 2781, section 4.3).
            "utf-16" | "utf-16be" => Ok(Charset::Utf16Be),
            "iso-8859-1" | "iso_8859-1" | "latin1" => Ok(Charset::Latin1),
            _ => {
                let shown: String = name.chars().take(40).collect();
                let message = format!(
                    "the character encoding `{shown}` is not supported: send UTF-8 (UTF-16 and ISO-8859-1 are read too)"
                );
                Err(Failure::new(415, message))
            }
        }
    }

    /// Returns the encoding that the parameter `charset` of Content-Type names.
    ///
    /// # Errors
    /// 415 for an encoding that is not supported.
    fn from_header(request: &Request) -> Result<Option<Charset>, Failure> {
        let sent = request.header("Content-Type").unwrap_or_default();
        parameter(sent, "charset")
            .map(|name| Charset::from_name(name.trim_matches(['"', '\''])))
            .transpose()
    }

    /// Returns the encoding of a byte order mark at the start of a body, and the text behind it.
    fn from_mark(body: &[u8]) -> Option<(Charset, &[u8])> {
        match body {
            [0xEF, 0xBB, 0xBF, text @ ..] => Some((Charset::Utf8, text)),
            [0xFE, 0xFF, text @ ..] => Some((Charset::Utf16Be, text)),
            [0xFF, 0xFE, text @ ..] => Some((Charset::Utf16Le, text)),
            _ => None,
        }
    }

    /// Returns the encoding that the first bytes of an XML document show (XML 1.0, appendix F):
    /// that of `<` in UTF-16, or of the declaration.
    fn from_declaration(body: &[u8]) -> Result<Option<Charset>, Failure> {
        match body {
            [0, b'<', ..] => return Ok(Some(Charset::Utf16Be)),
            [b'<', 0, ..] => return Ok(Some(Charset::Utf16Le)),
            _ => {}
        }
        let Some((_, name)) = declared(body) else {
            return Ok(None);
        };
        match Charset::from_name(name)? {
            // The declaration could be read, so the document is not UTF-16.
            Charset::Utf16Le | Charset::Utf16Be => Ok(Some(Charset::Utf8)),
            other => Ok(Some(other)),
        }
    }
}

/// Returns a text of ISO 8859-1, whose bytes are the code points of its characters.
fn latin1(body: &[u8]) -> Result<String, Failure> {
    // Control characters. No client sends them: another encoding has letters or quotation marks
    // there.
    match body.iter().position(|b| matches!(b, 0x80..=0x9F)) {
        Some(at) => Err(undecodable("ISO-8859-1", at)),
        None => Ok(body.iter().map(|b| char::from(*b)).collect()),
    }
}

fn utf16(body: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Failure> {
    let (pairs, []) = body.as_chunks::<2>() else {
        return Err(undecodable("UTF-16", body.len()));
    };
    let mut at = 0;
    let units = pairs.iter().map(|pair| unit(*pair));
    char::decode_utf16(units)
        .map(|read| {
            let read = read.map_err(|_| undecodable("UTF-16", at))?;
            at += 2 * read.len_utf16();
            Ok(read)
        })
        .collect()
}

fn undecodable(charset: &str, at: usize) -> Failure {
    Failure::bad_request(format!(
        "the body is not {charset}: byte {at} is not part of a character"
    ))
}

/// Returns the encoding's name in an XML declaration, and its place.
fn declared(body: &[u8]) -> Option<(Range<usize>, &str)> {
    const START: &str = "<?xml";
    const MEMBER: &str = "encoding";
    let head = body.strip_prefix(START.as_bytes())?;
    let end = head.iter().take(200).position(|b| *b == b'>')?;
    let declaration = str::from_utf8(head.get(..end)?).ok()?;
    let (before, after) = declaration.split_once(MEMBER)?;
    let open = after.find(['"', '\''])?;
    let (quote, rest) = after.get(open..)?.split_at_checked(1)?;
    let (name, _) = rest.split_once(quote)?;
    let at = [START.len(), before.len(), MEMBER.len(), open + 1];
    let at: usize = at.iter().sum();
    Some((at..at + name.len(), name))
}

/// Checks that Content-Type names no encoding, or one that is supported: 415.
pub(super) fn check(request: &Request) -> Result<(), Failure> {
    Charset::from_header(request).map(drop)
}

/// Checks that Content-Type names no encoding but UTF-8: 415.
pub(super) fn check_utf8(request: &Request) -> Result<(), Failure> {
    match Charset::from_header(request)? {
        None | Some(Charset::Utf8) => Ok(()),
        Some(_) => Err(not_utf8()),
    }
}

/// Returns the error for newline-delimited JSON in another encoding: its lines are cut at bytes.
fn not_utf8() -> Failure {
    Failure::new(
        415,
        "newline-delimited JSON in another character encoding is not supported: send UTF-8",
    )
}

/// Returns a body as UTF-8; `None` if it already is. The declaration of a converted XML document
/// names UTF-8, because the text may be stored.
///
/// # Errors
/// 415 for an encoding that is not supported, 400 for bytes that are no characters in it.
pub(crate) fn decoded(request: &Request) -> Result<Option<Vec<u8>>, Failure> {
    let body = &request.body[..];
    let sent = request.header("Content-Type").map(media_type);
    let is_xml = sent.is_some_and(|sent| {
        sent == "text/plain" || Format::from_media_type(&sent) == Some(Format::Xml)
    });
    let (charset, content) = match Charset::from_mark(body) {
        Some((charset, text)) => (Some(charset), text),
        None => (Charset::from_header(request)?, body),
    };
    let charset = match charset {
        None if is_xml => Charset::from_declaration(body)?,
        known => known,
    };
    let mut text = match charset.unwrap_or(Charset::Utf8) {
        Charset::Utf8 => return Ok(None),
        // Content-Type names no other encoding, but the body has a byte order mark.
        _ if is_ndjson(request) => return Err(not_utf8()),
        Charset::Latin1 => latin1(content)?,
        Charset::Utf16Be => utf16(content, u16::from_be_bytes)?,
        Charset::Utf16Le => utf16(content, u16::from_le_bytes)?,
    };
    if is_xml && let Some((place, _)) = declared(text.as_bytes()) {
        text.replace_range(place, "UTF-8");
    }
    Ok(Some(text.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    /// Returns the text of a body as the service reads it, or the status.
    fn read(content_type: &str, body: &[u8]) -> Result<String, u16> {
        let request = Request {
            headers: vec![(String::from("Content-Type"), String::from(content_type))],
            body: body.to_vec(),
            ..Request::default()
        };
        let converted = decoded(&request).map_err(|failure| failure.status)?;
        Ok(String::from_utf8(converted.unwrap_or(request.body)).unwrap())
    }

    #[test]
    fn lines_with_the_byte_order_mark_of_another_encoding_are_refused() {
        let marked = [&[0xFF, 0xFE][..], &utf16("{}", u16::to_le_bytes)].concat();
        assert_eq!(read("application/x-ndjson", &marked), Err(415));
        assert_eq!(read("application/json", &marked), Ok(String::from("{}")));
        assert_eq!(read("application/x-ndjson", b"{}"), Ok(String::from("{}")));
    }

    #[test]
    fn a_body_is_read_in_the_encoding_that_it_declares() {
        let latin1 = |text: &str| text.chars().map(|c| c as u8).collect::<Vec<_>>();
        let json = r#"{"name":"Gürtelröse 𝄞"}"#;
        let xml = r#"<?xml version="1.0" encoding="CHARSET"?><name>Größe</name>"#;
        let xml_in = |name: &str| xml.replace("CHARSET", name);
        let marked = |mark: &[u8], body: Vec<u8>| [mark, &body].concat();
        let (be, le) = (u16::to_be_bytes, u16::to_le_bytes);
        let utf8 = xml_in("UTF-8");
        for (content_type, body, expected) in [
            ("application/json", json.as_bytes().to_vec(), json),
            (
                "application/json; charset=\"UTF-16\"",
                utf16(json, be),
                json,
            ),
            ("application/json;Charset=utf-16le", utf16(json, le), json),
            (
                "application/json",
                marked(&[0xFF, 0xFE], utf16(json, le)),
                json,
            ),
            // The mark precedes the parameter.
            (
                "application/json; charset=iso-8859-1",
                marked(&[0xFE, 0xFF], utf16(json, be)),
                json,
            ),
            (
                "application/json; charset=ISO-8859-1",
                latin1(r#""é""#),
                r#""é""#,
            ),
            ("application/xml", latin1(&xml_in("ISO-8859-1")), &utf8),
            ("application/xml", utf16(&xml_in("utf-16"), be), &utf8),
            (
                "text/xml",
                marked(&[0xFF, 0xFE], utf16(&xml_in("UTF-16"), le)),
                &utf8,
            ),
            // The parameter precedes the declaration.
            (
                "application/xml; charset=utf-8",
                xml_in("ISO-8859-1").into_bytes(),
                &xml_in("ISO-8859-1"),
            ),
        ] {
            let text = read(content_type, &body);
            assert_eq!(text.as_deref(), Ok(expected), "{content_type}");
        }
    }

    #[test]
    fn a_body_in_an_unknown_or_another_encoding_is_refused() {
        for (content_type, body, status) in [
            ("application/json; charset=windows-1252", &b"{}"[..], 415),
            (
                "application/xml",
                b"<?xml version='1.0' encoding='koi8-r'?><a/>",
                415,
            ),
            ("application/json; charset=utf-16", b"{}\n", 400),
            // Half of a surrogate pair.
            ("application/json; charset=utf-16", b"\xD8\x00\x00}", 400),
            // A quotation mark of Windows-1252.
            ("application/json; charset=latin1", b"\"\x93\"", 400),
        ] {
            assert_eq!(read(content_type, body), Err(status), "{content_type}");
        }
    }
}
