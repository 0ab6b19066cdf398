//! Pseudonyms: keyed hashes in the place of the ids of EHRs and of their subjects.

use crate::outcome::Failure;
use aqlite::aql::Cell;
use aqlite::document::Number;
use aqlite::rm::json;
use ring::hmac;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

/// The least bytes of a key: those of the hash.
const KEY: usize = 32;

/// The key of pseudonyms.
pub struct Pseudonyms(hmac::Key);

/// The ids of one EHR, with the pseudonyms that replace them.
#[derive(Default)]
pub struct Replaced(Vec<(String, String)>);

impl Pseudonyms {
    /// Reads the key from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or is too short for a key.
    pub fn read(path: &Path) -> Result<Pseudonyms, Failure> {
        let failed = |problem: String| Failure::Data(format!("{}: {problem}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        // Editors and `openssl rand -hex` end the file with a line end.
        let key = bytes.trim_ascii();
        if key.len() < KEY {
            let problem =
                format!("a key has at least {KEY} bytes, as `openssl rand -hex 32` writes");
            return Err(failed(problem));
        }
        Ok(Pseudonyms(hmac::Key::new(hmac::HMAC_SHA256, key)))
    }

    /// Returns the fingerprint of the key, which reveals nothing of it.
    pub fn fingerprint(&self) -> String {
        // This text has no prefix with a zero byte, so it is never the input of a pseudonym.
        self.hash("aqlite lake key")
            .get(..16)
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns the pseudonym of an EHR: a UUID of version 8 (RFC 9562).
    pub fn of_ehr(&self, ehr_id: &str) -> String {
        // The prefix separates the two kinds of ids: an EHR and a subject with the same id get
        // different pseudonyms.
        self.uuid(&format!("ehr\u{0}{ehr_id}"))
    }

    /// Returns the ids of an EHR and of its subject, with their pseudonyms.
    pub fn replaced(&self, ehr_id: &str, subject: Option<&String>) -> Replaced {
        let mut all = vec![(ehr_id.to_owned(), self.of_ehr(ehr_id))];
        if let Some(subject) = subject.filter(|subject| *subject != ehr_id) {
            let pseudonym = self.uuid(&format!("subject\u{0}{subject}"));
            all.push((subject.clone(), pseudonym));
        }
        Replaced(all)
    }

    fn uuid(&self, text: &str) -> String {
        let hash = self.hash(text);
        let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
        [
            part(0, 8),
            part(8, 12),
            // The first 8 is the version, the second one the variant of RFC 9562.
            &format!("8{}", part(13, 16)),
            &format!("8{}", part(17, 20)),
            part(20, 32),
        ]
        .join("-")
    }

    /// Returns the hash of a text in hexadecimal digits.
    fn hash(&self, text: &str) -> String {
        let mut out = String::new();
        for byte in hmac::sign(&self.0, text.as_bytes()).as_ref() {
            let _ = write!(out, "{byte:02x}");
        }
        out
    }
}

impl Replaced {
    /// Returns whether nothing is replaced.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a cell with pseudonyms in the place of the ids.
    pub fn cell<'t>(&self, cell: Cell<&'t str>) -> Cell<Cow<'t, str>> {
        match cell {
            Cell::Text(text) => Cell::Text(self.text(text)),
            Cell::Json(json) => Cell::Json(self.json(json)),
            Cell::Null => Cell::Null,
            Cell::Boolean(flag) => Cell::Boolean(flag),
            Cell::Number(Number::Decimal(value, decimals)) => {
                Cell::Number(Number::Decimal(value, decimals))
            }
            Cell::Number(Number::Computed(value)) => Cell::Number(Number::Computed(value)),
            Cell::Number(Number::Token(token)) => Cell::Number(Number::Token(Cow::Borrowed(token))),
        }
    }

    /// Replaces a text that is an id, and a UUID also within a longer text, such as the URI of a
    /// document. Other ids are too short to be recognized there. Returns `None` if there is no id.
    fn replacement(&self, text: &str) -> Option<String> {
        let mut found: Option<String> = None;
        for (id, pseudonym) in &self.0 {
            let present = found.as_deref().unwrap_or(text);
            if is_id(present, id) {
                return Some(pseudonym.clone());
            }
            if is_uuid(id) {
                found = replaced_in(present, id, pseudonym).or(found);
            }
        }
        found
    }

    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replacement(text)
            .map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Replaces the strings of JSON that are ids, and UUIDs within them. Names of members stay: an id
    /// such as `data` or `value` may be equal to the name of an attribute.
    fn json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let (mut out, mut rest) = (String::new(), json);
        while let Some(start) = rest.find('"') {
            let length = rest.get(start..).map_or(0, string_length);
            let (before, behind) = rest.split_at(start);
            let (string, behind) = behind.split_at(length);
            let is_name = behind.trim_start().starts_with(':');
            let value = json::text(string).filter(|_| !is_name);
            out.push_str(before);
            match value.and_then(|value| self.replacement(&value)) {
                Some(replacement) => json::quote_into(&mut out, &replacement),
                None => out.push_str(string),
            }
            rest = behind;
        }
        out.push_str(rest);
        Cow::Owned(out)
    }
}

/// Returns a part of the text of a query that is one of some ids: a text in quotes, or a UUID.
pub fn id_in<'q>(aql: &'q str, ids: &HashSet<String>) -> Option<&'q str> {
    let is_part_of_uuid = |c: char| c.is_ascii_hexdigit() || c == '-';
    let words = aql.split(|c| !is_part_of_uuid(c));
    let uuids = words.filter(|word| is_uuid(word));
    let mut parts = aql.split(['\'', '"']).chain(uuids);
    parts.find(|part| ids.contains(*part) || ids.contains(&part.to_ascii_lowercase()))
}

/// Returns the number of bytes of the string with which a JSON text begins, with its quotes.
fn string_length(json: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in json.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}

/// Returns whether a text is an id. The case of a UUID has no meaning (RFC 9562, section 4).
fn is_id(text: &str, id: &str) -> bool {
    text == id || text.eq_ignore_ascii_case(id) && is_uuid(id)
}

/// Returns a text with a replacement for each occurrence of a UUID in any case; `None` without any.
fn replaced_in(text: &str, uuid: &str, replacement: &str) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    let found = |text: &str| {
        let mut parts = text.as_bytes().windows(uuid.len());
        parts.position(|part| part.eq_ignore_ascii_case(uuid.as_bytes()))
    };
    // The bytes of a UUID are ASCII, so its places are boundaries of characters.
    while let Some((before, behind)) = found(rest).and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        out.push_str(replacement);
        rest = behind.get(uuid.len()..).unwrap_or_default();
    }
    (rest.len() < text.len()).then(|| out + rest)
}

fn is_uuid(text: &str) -> bool {
    uuid::Uuid::try_parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(folder: &tempfile::TempDir, text: &str) -> Result<Pseudonyms, Failure> {
        let path = folder.path().join("key");
        std::fs::write(&path, text).unwrap();
        Pseudonyms::read(&path)
    }

    #[test]
    fn ids_are_replaced_in_texts_and_objects_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
        let ehr = "7d44b88c-4199-4bad-97dc-d78268e01398";
        let replaced = pseudonyms.replaced(ehr, Some(&String::from("17")));
        let (of_ehr, of_subject) = (&replaced.0[0].1, &replaced.0[1].1);
        let text = |text: &str| match replaced.cell(Cell::Text(text)) {
            Cell::Text(text) => text.into_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(&text(ehr), of_ehr);
        assert_eq!(text(&format!("ehr://{ehr}/x")), format!("ehr://{of_ehr}/x"));
        assert_eq!(&text("17"), of_subject);
        assert_eq!(text("117 mm"), "117 mm");
        let json = format!(r#"{{"id":"17","count":17,"uri":"ehr://{ehr}"}}"#);
        let expected = format!(r#"{{"id":"{of_subject}","count":17,"uri":"ehr://{of_ehr}"}}"#);
        assert_eq!(
            replaced.cell(Cell::Json(&json)),
            Cell::Json(expected.into())
        );
    }

    #[test]
    fn uuid_is_recognized_in_any_case() {
        let folder = tempfile::tempdir().unwrap();
        let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
        let ehr = "7d44b88c-4199-4bad-97dc-d78268e01398";
        let of_ehr = pseudonyms.of_ehr(ehr);
        let upper = ehr.to_uppercase();
        let replaced = pseudonyms.replaced(ehr, Some(&String::from("Ab")));
        let cell = |cell| match replaced.cell(cell) {
            Cell::Text(text) | Cell::Json(text) => text.into_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(cell(Cell::Text(&upper)), of_ehr);
        let text = format!("é{upper}ü{ehr}{upper}");
        assert_eq!(
            cell(Cell::Text(&text)),
            format!("é{of_ehr}ü{of_ehr}{of_ehr}")
        );
        let json = format!(r#"["{upper}","ehr://{upper}"]"#);
        let expected = format!(r#"["{of_ehr}","ehr://{of_ehr}"]"#);
        assert_eq!(cell(Cell::Json(&json)), expected);
        assert_eq!(cell(Cell::Text("AB")), "AB", "other ids have a case");
    }

    #[test]
    fn names_of_members_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
        let replaced = pseudonyms.replaced("data", Some(&String::from("va\"lue")));
        let (of_ehr, of_subject) = (&replaced.0[0].1, &replaced.0[1].1);
        let json = r#"{"data" : {"va\"lue":"data","x":["data\\","va\"lue",": ","data"]}}"#;
        let expected = format!(
            r#"{{"data" : {{"va\"lue":"{of_ehr}","x":["data\\","{of_subject}",": ","{of_ehr}"]}}}}"#
        );
        assert_eq!(replaced.cell(Cell::Json(json)), Cell::Json(expected.into()));
    }

    #[test]
    fn ids_are_found_in_the_text_of_a_query() {
        let ehr = "7d44b88c-4199-4bad-97dc-d78268e01398";
        let ids = HashSet::from([ehr.to_owned(), String::from("p1")]);
        let upper = ehr.to_uppercase();
        for (text, found) in [
            (format!("WHERE e/ehr_id/value = '{ehr}'"), Some(ehr)),
            (format!("WHERE x = 'ehr://{upper}/y'"), Some(upper.as_str())),
            (format!("-- of {ehr}\nSELECT"), Some(ehr)),
            (String::from("WHERE e/ehr_id/value = \"p1\""), Some("p1")),
            (
                String::from("SELECT c/p1 AS p1 WHERE x = 'p1 and p2'"),
                None,
            ),
        ] {
            assert_eq!(id_in(&text, &ids), found, "{text}");
        }
    }

    #[test]
    fn pseudonym_depends_on_the_key_and_is_a_uuid() {
        let folder = tempfile::tempdir().unwrap();
        let one = key(&folder, &"a".repeat(32)).unwrap();
        let other = key(&folder, &"b".repeat(32)).unwrap();
        assert_ne!(one.of_ehr("x"), other.of_ehr("x"));
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_eq!(
            one.of_ehr("x"),
            key(&folder, &format!("{}\n", "a".repeat(32)))
                .unwrap()
                .of_ehr("x")
        );
        assert!(is_uuid(&one.of_ehr("x")));
        assert!(key(&folder, "short").is_err());
    }

    /// The test vector of RFC 4231, section 4.3, with a key of the least length by repetition.
    #[test]
    fn hash_is_hmac_with_sha_256() {
        let pseudonyms = Pseudonyms(hmac::Key::new(hmac::HMAC_SHA256, b"Jefe"));
        assert_eq!(
            pseudonyms.hash("what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
