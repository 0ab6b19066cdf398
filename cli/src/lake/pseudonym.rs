//! Pseudonyms: keyed hashes in the place of the ids of EHRs and of their subjects.

use super::source::PatientIds;
use crate::data::version::SYSTEM;
use crate::outcome::Failure;
use aqlite::aql::Cell;
use aqlite::document::Number;
use aqlite::rm::json;
use ring::hmac;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

/// The least bytes of a key: those of the hash.
const KEY: usize = 32;

/// The characters of a UUID with hyphens, and of one without.
const HYPHENATED: usize = 36;
const SIMPLE: usize = 32;

/// The version of the UUIDs that are derived from the names of files (RFC 9562, section 5.8).
const DERIVED_VERSION: usize = 8;

/// The least characters of an id that is recognized as a word of a query.
const SHORTEST: usize = 3;

/// The begin of the URI of a document (DV_EHR_URI).
const EHR_SCHEME: &str = "ehr:";

/// The key of pseudonyms.
pub struct Pseudonyms(hmac::Key);

/// The ids of all EHRs of the data and of their subjects, with the pseudonyms that replace them.
pub struct Identifiers<'k> {
    key: &'k Pseudonyms,
    /// The pseudonyms of UUIDs, in any letter case and with or without hyphens (RFC 9562, section 4).
    uuids: HashMap<u128, String>,
    /// The pseudonyms of all other ids, and of UUIDs in another form than the usual one.
    texts: HashMap<String, String>,
    /// The ids in lower case, and the characters of the longest one.
    lower: HashSet<String>,
    longest: usize,
    /// Whether the data derive ids of compositions from the names of files.
    has_derived: bool,
    fingerprint: String,
}

/// The ids that are replaced in the rows of one object.
pub struct Replaced<'i> {
    ids: &'i Identifiers<'i>,
    /// The id of the object itself, if it was derived from the name of a file, and its pseudonym.
    object: Option<(u128, String)>,
}

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
        hex(hmac::sign(&self.0, text.as_bytes()).as_ref())
    }
}

impl<'k> Identifiers<'k> {
    /// Creates the list of the ids of the data.
    pub fn new(key: &'k Pseudonyms, data: &PatientIds) -> Identifiers<'k> {
        let mut all = Identifiers {
            key,
            uuids: HashMap::new(),
            texts: HashMap::new(),
            lower: HashSet::new(),
            longest: 0,
            has_derived: data.has_derived,
            fingerprint: String::new(),
        };
        // Sorted, so that the outcome does not depend on the order of the data. An id that is both
        // has the pseudonym of the EHR.
        let ehrs: BTreeSet<&String> = data.ehrs.iter().collect();
        let subjects: BTreeSet<&String> = data.subjects.iter().collect();
        let mut content = hmac::Context::with_key(&key.0);
        content.update(b"ids\0");
        for id in ehrs {
            content.update(format!("ehr {}\0{id}", id.len()).as_bytes());
            all.add(id, key.of_ehr(id));
        }
        for id in subjects {
            content.update(format!("subject {}\0{id}", id.len()).as_bytes());
            all.add(id, key.uuid(&format!("subject\u{0}{id}")));
        }
        all.fingerprint = hex(content.sign().as_ref());
        all
    }

    fn add(&mut self, id: &str, pseudonym: String) {
        if id.is_empty() {
            return;
        }
        let lower = id.to_lowercase();
        self.longest = self.longest.max(lower.chars().count());
        self.lower.insert(lower);
        let uuid = uuid::Uuid::try_parse(id).ok();
        if uuid.is_none_or(|uuid| uuid.hyphenated().to_string() != id) {
            let texts = self.texts.entry(id.to_owned());
            texts.or_insert_with(|| pseudonym.clone());
        }
        if let Some(uuid) = uuid {
            self.uuids.entry(uuid.as_u128()).or_insert(pseudonym);
        }
    }

    /// Returns the key of the pseudonyms.
    pub fn key(&self) -> &Pseudonyms {
        self.key
    }

    /// Returns a keyed hash of all ids: equal hashes mean equal pseudonyms in all rows.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the ids that are replaced in rows of no particular object.
    pub fn replaced(&self) -> Replaced<'_> {
        Replaced {
            ids: self,
            object: None,
        }
    }

    /// Returns the ids that are replaced in the rows of a version.
    pub fn replaced_in(&self, uid: &str) -> Replaced<'_> {
        let object = self.has_derived.then(|| derived_object(uid)).flatten();
        Replaced {
            ids: self,
            // Without the key, the derived id could be computed from the name of a file.
            object: object.map(|id| {
                let pseudonym = self.key.uuid(&format!("object\u{0}{}", id.hyphenated()));
                (id.as_u128(), pseudonym)
            }),
        }
    }

    /// Returns an id of the data that is a word of a text, in any letter case. An id of one or two
    /// characters, which many texts have by chance, must be the whole text. Costs a search for each
    /// pair of word ends that are not farther apart than the longest id.
    pub fn named_in(&self, text: &str) -> Option<String> {
        let text = text.to_lowercase();
        let whole = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '?'));
        if self.lower.contains(whole) {
            return Some(whole.to_owned());
        }
        let ends = word_ends(&text);
        for (index, from) in ends.iter().enumerate() {
            for to in ends.iter().skip(index + 1) {
                let part = text.get(*from..*to).unwrap_or_default();
                let length = part.chars().count();
                if length > self.longest {
                    break;
                }
                if length >= SHORTEST && self.lower.contains(part) {
                    return Some(part.to_owned());
                }
            }
        }
        let is_uuid = |id: &uuid::Uuid| self.uuids.contains_key(&id.as_u128());
        let mut found = (0..text.len()).filter_map(|at| uuid_at(text.as_bytes(), at));
        let found = found.find(|(id, _)| is_uuid(id));
        found.map(|(id, _)| id.hyphenated().to_string())
    }
}

impl Replaced<'_> {
    /// Returns a cell with pseudonyms in the place of the ids.
    pub fn cell<'t>(&self, cell: Cell<&'t str>) -> Cell<Cow<'t, str>> {
        match cell {
            Cell::Text(text) => Cell::Text(self.text(text)),
            Cell::Json(json) => Cell::Json(self.json(json)),
            other => self.as_is(other),
        }
    }

    /// Returns a cell as it is.
    pub fn as_is<'t>(&self, cell: Cell<&'t str>) -> Cell<Cow<'t, str>> {
        match cell {
            Cell::Text(text) => Cell::Text(Cow::Borrowed(text)),
            Cell::Json(json) => Cell::Json(Cow::Borrowed(json)),
            Cell::Null => Cell::Null,
            Cell::Boolean(flag) => Cell::Boolean(flag),
            Cell::Number(Number::Decimal(value, decimals)) => {
                Cell::Number(Number::Decimal(value, decimals))
            }
            Cell::Number(Number::Computed(value)) => Cell::Number(Number::Computed(value)),
            Cell::Number(Number::Token(token)) => Cell::Number(Number::Token(Cow::Borrowed(token))),
        }
    }

    /// Returns the id of the object in the dataset.
    pub fn object_id<'t>(&'t self, object_id: &'t str) -> &'t str {
        self.object.as_ref().map_or(object_id, |(_, id)| id)
    }

    /// Returns whether a cell has an id that is replaced.
    pub fn is_in(&self, cell: Cell<&str>) -> bool {
        match (cell, self.cell(cell)) {
            (Cell::Text(before), Cell::Text(after)) | (Cell::Json(before), Cell::Json(after)) => {
                before != after
            }
            _ => false,
        }
    }

    /// Replaces a text that is an id, and a UUID also within a longer text, such as the URI of a
    /// document. Other ids are recognized there between the slashes of a URI `ehr:` only: they may be
    /// as short as a common word. Returns `None` if there is no id.
    fn replacement(&self, text: &str) -> Option<String> {
        if let Some(pseudonym) = self.ids.texts.get(text) {
            return Some(pseudonym.clone());
        }
        let scheme = text.get(..EHR_SCHEME.len());
        let is_uri = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(EHR_SCHEME));
        let uri = is_uri.then(|| self.with_segments(text)).flatten();
        let uuids = self.with_uuids(uri.as_deref().unwrap_or(text));
        uuids.or(uri)
    }

    /// Replaces the segments of a URI that are ids.
    fn with_segments(&self, uri: &str) -> Option<String> {
        let (mut out, mut is_found) = (String::new(), false);
        for part in uri.split_inclusive(['/', ':', '?', '#']) {
            let segment = part.trim_end_matches(['/', ':', '?', '#']);
            let pseudonym = self.ids.texts.get(segment);
            is_found |= pseudonym.is_some();
            out.push_str(pseudonym.map_or(segment, String::as_str));
            out.push_str(part.get(segment.len()..).unwrap_or_default());
        }
        is_found.then_some(out)
    }

    /// Replaces the UUIDs of a text that are ids, in one pass.
    fn with_uuids(&self, text: &str) -> Option<String> {
        let (mut out, mut copied, mut at) = (String::new(), 0, 0);
        while at + SIMPLE <= text.len() {
            let found = uuid_at(text.as_bytes(), at);
            let found = found.and_then(|(id, length)| Some((self.of_uuid(&id)?, length)));
            let Some((pseudonym, length)) = found else {
                at += 1;
                continue;
            };
            // The bytes of a UUID are ASCII, so its ends are boundaries of characters.
            out.push_str(text.get(copied..at).unwrap_or_default());
            out.push_str(pseudonym);
            at += length;
            copied = at;
        }
        (copied > 0).then(|| out + text.get(copied..).unwrap_or_default())
    }

    fn of_uuid(&self, id: &uuid::Uuid) -> Option<&str> {
        let id = id.as_u128();
        let object = self.object.as_ref().filter(|(object, _)| *object == id);
        let pseudonym = object.map(|(_, pseudonym)| pseudonym);
        let pseudonym = pseudonym.or_else(|| self.ids.uuids.get(&id));
        pseudonym.map(String::as_str)
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

/// Returns the UUID that begins at a byte of a text, with or without hyphens, and its length.
fn uuid_at(text: &[u8], at: usize) -> Option<(uuid::Uuid, usize)> {
    text.get(at).filter(|byte| byte.is_ascii_hexdigit())?;
    let length = match text.get(at + 8) {
        Some(b'-') => HYPHENATED,
        _ => SIMPLE,
    };
    let part = text.get(at..at + length)?;
    let id = uuid::Uuid::try_parse_ascii(part).ok()?;
    Some((id, length))
}

/// Returns the id of the object of a version, if it was derived from the name of a file.
fn derived_object(uid: &str) -> Option<uuid::Uuid> {
    let (object, rest) = uid.split_once("::")?;
    let is_local = rest
        .split_once("::")
        .is_some_and(|(system, _)| system == SYSTEM);
    let id = uuid::Uuid::try_parse(object).ok().filter(|_| is_local)?;
    (id.get_version_num() == DERIVED_VERSION).then_some(id)
}

/// Returns the places of a text where a word may begin or end.
fn word_ends(text: &str) -> Vec<usize> {
    let (mut ends, mut was_inside) = (vec![0], false);
    for (at, c) in text.char_indices() {
        let is_inside = c.is_alphanumeric();
        if at > 0 && !(is_inside && was_inside) {
            ends.push(at);
        }
        was_inside = is_inside;
    }
    ends.push(text.len());
    ends
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

fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(folder: &tempfile::TempDir, text: &str) -> Result<Pseudonyms, Failure> {
        let path = folder.path().join("key");
        std::fs::write(&path, text).unwrap();
        Pseudonyms::read(&path)
    }

    fn ids_of(ehrs: &[&str], subjects: &[&str]) -> PatientIds {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        PatientIds {
            ehrs: set(ehrs),
            subjects: set(subjects),
            has_derived: true,
        }
    }

    fn text_of(cell: Cell<Cow<'_, str>>) -> String {
        match cell {
            Cell::Text(text) | Cell::Json(text) => text.into_owned(),
            other => panic!("{other:?}"),
        }
    }

    const EHR: &str = "7d44b88c-4199-4bad-97dc-d78268e01398";
    const OTHER: &str = "aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa";

    #[test]
    fn ids_of_all_patients_are_replaced_in_texts_and_objects_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
        let ids = Identifiers::new(&pseudonyms, &ids_of(&[EHR, OTHER, "pat-9"], &["17", "x7"]));
        let replaced = ids.replaced();
        let of = |id: &str| pseudonyms.of_ehr(id);
        let subject = |id: &str| pseudonyms.uuid(&format!("subject\u{0}{id}"));
        let text = |text: &str| text_of(replaced.cell(Cell::Text(text)));
        for id in [EHR, OTHER] {
            assert_eq!(text(id), of(id));
            assert_eq!(text(&id.replace('-', "")), of(id));
            let upper = id.to_uppercase();
            assert_eq!(text(&format!("see {upper}.")), format!("see {}.", of(id)));
            assert_eq!(
                text(&format!("ehr://{id}/x")),
                format!("ehr://{}/x", of(id))
            );
        }
        assert_eq!(
            text("ehr://s/pat-9/x"),
            format!("ehr://s/{}/x", of("pat-9"))
        );
        assert_eq!(text("pat-9"), of("pat-9"));
        assert_eq!(text("no pat-9"), "no pat-9");
        assert_eq!((text("17"), text("x7")), (subject("17"), subject("x7")));
        assert_eq!(text("117 mm, x7"), "117 mm, x7");
        let json = format!(r#"{{"id":"17","count":17,"uri":"ehr://{OTHER}"}}"#);
        let expected = format!(
            r#"{{"id":"{}","count":17,"uri":"ehr://{}"}}"#,
            subject("17"),
            of(OTHER)
        );
        assert_eq!(text_of(replaced.cell(Cell::Json(&json))), expected);
    }

    #[test]
    fn uuid_is_recognized_in_any_case() {
        let folder = tempfile::tempdir().unwrap();
        let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
        let of_ehr = pseudonyms.of_ehr(EHR);
        let upper = EHR.to_uppercase();
        let ids = Identifiers::new(&pseudonyms, &ids_of(&[EHR], &["Ab"]));
        let cell = |cell| text_of(ids.replaced().cell(cell));
        assert_eq!(cell(Cell::Text(&upper)), of_ehr);
        let text = format!("é{upper}ü{EHR}{upper}");
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
        let ids = Identifiers::new(&pseudonyms, &ids_of(&["data"], &["va\"lue"]));
        let of_ehr = pseudonyms.of_ehr("data");
        let of_subject = pseudonyms.uuid("subject\u{0}va\"lue");
        let json = r#"{"data" : {"va\"lue":"data","x":["data\\","va\"lue",": ","data"]}}"#;
        let expected = format!(
            r#"{{"data" : {{"va\"lue":"{of_ehr}","x":["data\\","{of_subject}",": ","{of_ehr}"]}}}}"#
        );
        assert_eq!(text_of(ids.replaced().cell(Cell::Json(json))), expected);
    }

    #[test]
    fn derived_id_of_an_object_depends_on_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
        let ids = Identifiers::new(&pseudonyms, &ids_of(&[EHR], &[]));
        let derived = "11111111-2222-8333-8444-555555555555";
        let uid = format!("{derived}::{SYSTEM}::1");
        let replaced = ids.replaced_in(&uid);
        let shown = replaced.object_id(derived);
        assert_ne!(shown, derived);
        let cell = text_of(replaced.cell(Cell::Text(&uid)));
        assert_eq!(cell, format!("{shown}::{SYSTEM}::1"));
        for stated in [format!("{derived}::s::1"), format!("{OTHER}::{SYSTEM}::1")] {
            assert!(ids.replaced_in(&stated).object.is_none(), "{stated}");
        }
    }

    #[test]
    fn ids_are_found_as_words_of_a_text() {
        let folder = tempfile::tempdir().unwrap();
        let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
        let ids = Identifiers::new(&pseudonyms, &ids_of(&[EHR, "pat-1"], &["P 1", "7"]));
        let upper = EHR.to_uppercase();
        for (text, found) in [
            (EHR, true),
            (&format!("ehr://{upper}/y"), true),
            (&format!("x{}y", EHR.replace('-', "")), true),
            ("Pat-1*", true),
            ("-- rows of p 1, which", true),
            ("7", true),
            ("*7*", true),
            ("Lesion #7", false),
            ("pat-10", false),
            ("xpat-1", false),
            ("pat", false),
        ] {
            assert_eq!(ids.named_in(text).is_some(), found, "{text}");
        }
    }

    #[test]
    fn fingerprint_of_ids_changes_with_them() {
        let folder = tempfile::tempdir().unwrap();
        let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
        let of = |ehrs: &[&str], subjects: &[&str]| {
            let ids = Identifiers::new(&pseudonyms, &ids_of(ehrs, subjects));
            ids.fingerprint().to_owned()
        };
        assert_eq!(of(&["a", "b"], &["c"]), of(&["b", "a"], &["c"]));
        assert_ne!(of(&["a", "b"], &["c"]), of(&["a"], &["b", "c"]));
        assert_ne!(of(&["a"], &["c"]), of(&["a"], &["c", "d"]));
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
        assert!(uuid::Uuid::try_parse(&one.of_ehr("x")).is_ok());
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
