//! Pseudonyms: keyed hashes in the place of the ids of EHRs and of their subjects.

use super::issued::{Former, Issued};
use super::source::PatientIds;
use crate::data::version::SYSTEM;
use crate::outcome::Failure;
use aqlite::aql::Cell;
use aqlite::document::Number;
use aqlite::rm::json;
use ring::hmac;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use uuid::Uuid;

/// The least bytes of a key: those of the hash.
const KEY: usize = 32;

/// The characters of a UUID with hyphens, and of one without.
const HYPHENATED: usize = 36;
const SIMPLE: usize = 32;

/// The version of the UUIDs that are derived from the names of files (RFC 9562, section 5.8).
const DERIVED_VERSION: usize = 8;

/// The least characters of an id that is recognized as a word of a query.
const MIN_WORD: usize = 3;

/// The most bytes of a word of a query that may be the id of a former patient.
const MAX_FORMER_BYTES: usize = 64;

/// The begin of the URI of a document (DV_EHR_URI).
const EHR_SCHEME: &str = "ehr:";

/// The key of pseudonyms.
pub struct Pseudonyms(hmac::Key);

/// The kinds of ids that name a patient.
#[derive(Clone, Copy, Debug)]
pub enum PatientKind {
    /// The id of an EHR.
    Ehr,
    /// The id of a subject.
    Subject,
}

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
    /// The ids with the positions of their pseudonyms in `issued`, ascending.
    positions: Vec<(usize, String)>,
    /// The pseudonyms of the lake, with those of these ids.
    issued: Issued,
    /// Whether the lake had fewer of them.
    has_new: bool,
    /// The pseudonyms whose ids the data do not have any more.
    former: Former,
}

/// The ids that are replaced in the rows of one object.
pub struct Replaced<'i> {
    ids: &'i Identifiers<'i>,
    /// The id of the object itself, if it was derived from the name of a file, and its pseudonym.
    object: Option<(u128, String)>,
}

/// The ids for which files are searched that were written before the ids became known.
pub struct NewIds<'i> {
    /// The ids that the data have.
    ids: Vec<&'i str>,
    /// Whether there are others, which only the key recognizes.
    has_unknown: bool,
}

/// A part of a cell that may be an id.
pub enum Token<'t> {
    /// A text.
    Text(&'t str),
    /// A UUID, also within a longer text.
    Uuid(Uuid),
}

impl NewIds<'_> {
    /// Returns whether there is no such id.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty() && !self.has_unknown
    }

    /// Returns whether a condition may be true for any of the ids.
    pub fn any(&self, condition: impl Fn(&str) -> bool) -> bool {
        self.has_unknown || self.ids.iter().any(|id| condition(id))
    }
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
        hex(&self.hash_prefix::<8>(b"aqlite lake key"))
    }

    /// Returns the pseudonym of an EHR: a UUID of version 8 (RFC 9562).
    pub fn of_ehr(&self, ehr_id: &str) -> String {
        self.of(PatientKind::Ehr, ehr_id).hyphenated().to_string()
    }

    /// Returns the pseudonym of an id.
    pub fn of(&self, kind: PatientKind, id: &str) -> Uuid {
        // The prefix separates the two kinds of ids: an EHR and a subject with the same id get
        // different pseudonyms.
        self.uuid(&match kind {
            PatientKind::Ehr => format!("ehr\u{0}{id}"),
            PatientKind::Subject => format!("subject\u{0}{id}"),
        })
    }

    fn uuid(&self, text: &str) -> Uuid {
        let mut bytes = self.hash_prefix::<16>(text.as_bytes());
        // The first 8 is the version, the second one the variant of RFC 9562.
        for at in [6, 8] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = 0x80 | (*byte & 0x0f);
            }
        }
        Uuid::from_bytes(bytes)
    }

    /// Returns a keyed digest of a row. Without the key, it cannot be computed from a guess of the ids in
    /// the row, which the index of a lake must not reveal.
    pub fn digest(&self, row: &[u8]) -> u64 {
        u64::from_le_bytes(self.hash_prefix(row))
    }

    /// Returns the first bytes of the hash, at most 32.
    fn hash_prefix<const N: usize>(&self, bytes: &[u8]) -> [u8; N] {
        let mut prefix = [0; N];
        for (byte, of_hash) in prefix.iter_mut().zip(self.hash(bytes).as_ref()) {
            *byte = *of_hash;
        }
        prefix
    }

    fn hash(&self, bytes: &[u8]) -> hmac::Tag {
        hmac::sign(&self.0, bytes)
    }
}

impl<'k> Identifiers<'k> {
    /// Creates the list of the ids of the data. `issued` has the pseudonyms of the lake.
    pub fn new(key: &'k Pseudonyms, data: &PatientIds, issued: Issued) -> Identifiers<'k> {
        let mut all = Identifiers {
            key,
            uuids: HashMap::new(),
            texts: HashMap::new(),
            lower: HashSet::new(),
            longest: 0,
            has_derived: data.has_derived,
            positions: Vec::with_capacity(data.ehrs.len() + data.subjects.len()),
            issued,
            has_new: false,
            former: Former::default(),
        };
        // Sorted, so that the outcome does not depend on the order of the data. An id that is both
        // has the pseudonym of the EHR.
        let ehrs: BTreeSet<&String> = data.ehrs.iter().collect();
        let subjects: BTreeSet<&String> = data.subjects.iter().collect();
        let ehrs = ehrs.into_iter().map(|id| (PatientKind::Ehr, id));
        let subjects = subjects.into_iter().map(|id| (PatientKind::Subject, id));
        let known = all.issued.positions();
        let mut present = HashSet::with_capacity(all.positions.capacity());
        for (kind, id) in ehrs.chain(subjects).filter(|(_, id)| !id.is_empty()) {
            let pseudonym = key.of(kind, id);
            present.insert(pseudonym.into_bytes());
            let position = known.get(pseudonym.as_bytes()).copied();
            let position = position.unwrap_or_else(|| all.issue(kind, id, pseudonym));
            all.positions.push((position, id.clone()));
            all.add(id, pseudonym.hyphenated().to_string());
        }
        all.positions.sort_unstable();
        all.former = all.issued.without(&present);
        all
    }

    /// Appends the pseudonym of an id to those of the lake, and returns its position.
    fn issue(&mut self, kind: PatientKind, id: &str, pseudonym: Uuid) -> usize {
        let usual = Uuid::try_parse(id).ok();
        let usual = usual.map(|id| id.hyphenated().to_string());
        let usual = usual.filter(|usual| usual != id);
        let usual = usual.map(|usual| self.key.of(kind, &usual));
        self.issued.push(pseudonym, usual);
        self.has_new = true;
        self.issued.len() - 1
    }

    fn add(&mut self, id: &str, pseudonym: String) {
        let lower = id.to_lowercase();
        self.longest = self.longest.max(lower.chars().count());
        self.lower.insert(lower);
        let uuid = Uuid::try_parse(id).ok();
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

    /// Returns the pseudonyms of the lake, with those of these ids.
    pub fn issued(&self) -> &Issued {
        &self.issued
    }

    /// Returns whether the lake had fewer pseudonyms.
    pub fn has_new(&self) -> bool {
        self.has_new
    }

    /// Returns the ids that files may have, whose rows were written when the lake had `count`
    /// pseudonyms.
    pub fn since(&self, count: usize) -> NewIds<'_> {
        let known = self.positions.partition_point(|(at, _)| *at < count);
        let new = self.positions.get(known..).unwrap_or_default();
        NewIds {
            ids: new.iter().map(|(_, id)| id.as_str()).collect(),
            // A patient may have become known and have been removed since.
            has_unknown: self.issued.len() > count + new.len(),
        }
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
                (id.as_u128(), pseudonym.hyphenated().to_string())
            }),
        }
    }

    /// Returns an id of the data that is a word of a text, in any letter case. An id of one or two
    /// characters, which many texts have by chance, must be the whole text. Costs a search for each
    /// pair of word ends that are not farther apart than the longest id.
    pub fn named_in(&self, text: &str) -> Option<String> {
        self.present_in(text).or_else(|| self.former_in(text))
    }

    /// Returns the id of a former patient that is a word of a text. Only the key recognizes it, so the
    /// letters must have the case of the id, unless it is a UUID.
    fn former_in(&self, text: &str) -> Option<String> {
        if self.former.is_empty() {
            return None;
        }
        let is_id = |part: &str| self.former.find(self.key, part).is_some();
        let is_too_long = |part: &str| part.len() > MAX_FORMER_BYTES;
        let word = id_among_words(text, is_too_long, is_id);
        word.or_else(|| uuid_in(text, |id| is_id(&id.hyphenated().to_string())))
    }

    fn present_in(&self, text: &str) -> Option<String> {
        let text = text.to_lowercase();
        let is_id = |part: &str| self.lower.contains(part);
        let is_too_long = |part: &str| part.chars().count() > self.longest;
        let word = id_among_words(&text, is_too_long, is_id);
        word.or_else(|| uuid_in(&text, |id| self.uuids.contains_key(&id.as_u128())))
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

    /// Returns a cell with pseudonyms in the place of the ids; `None` if it has no id.
    pub fn changed(&self, cell: Cell<&str>) -> Option<Cell<String>> {
        match (cell, self.cell(cell)) {
            (Cell::Text(before), Cell::Text(after)) if before != after => {
                Some(Cell::Text(after.into_owned()))
            }
            (Cell::Json(before), Cell::Json(after)) if before != after => {
                Some(Cell::Json(after.into_owned()))
            }
            _ => None,
        }
    }

    /// Replaces a text that is an id, and a UUID also within a longer text, such as the URI of a
    /// document. Other ids are recognized there between the slashes of a URI `ehr:` only: they may be
    /// as short as a common word. Returns `None` if there is no id.
    fn replacement(&self, text: &str) -> Option<String> {
        if let Some(pseudonym) = self.of_text(text) {
            return Some(pseudonym);
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
            let pseudonym = self.of_text(segment);
            is_found |= pseudonym.is_some();
            out.push_str(pseudonym.as_deref().unwrap_or(segment));
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
            out.push_str(&pseudonym);
            at += length;
            copied = at;
        }
        (copied > 0).then(|| out + text.get(copied..).unwrap_or_default())
    }

    fn of_text(&self, text: &str) -> Option<String> {
        let present = self.ids.texts.get(text).cloned();
        present.or_else(|| self.ids.former.find(self.ids.key, text))
    }

    fn of_uuid(&self, id: &Uuid) -> Option<Cow<'_, str>> {
        let number = id.as_u128();
        let object = self.object.as_ref().filter(|(object, _)| *object == number);
        let pseudonym = object.map(|(_, pseudonym)| pseudonym);
        let pseudonym = pseudonym.or_else(|| self.ids.uuids.get(&number));
        if let Some(pseudonym) = pseudonym {
            return Some(Cow::Borrowed(pseudonym));
        }
        if self.ids.former.is_empty() {
            return None;
        }
        let mut usual = Uuid::encode_buffer();
        let usual = id.hyphenated().encode_lower(&mut usual);
        self.ids.former.find(self.ids.key, usual).map(Cow::Owned)
    }

    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replacement(text)
            .map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Replaces the strings of JSON that are ids, and UUIDs within them. Names of members stay: an id
    /// such as `data` or `value` may be equal to the name of an attribute.
    fn json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let mut out = String::with_capacity(json.len());
        let rest = each_string(json, &mut |before, string, value| {
            out.push_str(before);
            match value.and_then(|value| self.replacement(&value)) {
                Some(replacement) => json::quote_into(&mut out, &replacement),
                None => out.push_str(string),
            }
        });
        out.push_str(rest);
        Cow::Owned(out)
    }
}

/// Passes every text of a cell that is replaced if it is an id, and every UUID that is, to a consumer.
pub fn each_token(cell: Cell<&str>, consume: &mut dyn FnMut(Token<'_>)) {
    match cell {
        Cell::Text(text) => each_token_of(text, consume),
        Cell::Json(json) => {
            each_string(json, &mut |_, _, value| {
                if let Some(value) = value {
                    each_token_of(&value, consume);
                }
            });
        }
        _ => {}
    }
}

fn each_token_of(text: &str, consume: &mut dyn FnMut(Token<'_>)) {
    consume(Token::Text(text));
    let scheme = text.get(..EHR_SCHEME.len());
    if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(EHR_SCHEME)) {
        let segments = text.split(['/', ':', '?', '#']);
        segments.for_each(|segment| consume(Token::Text(segment)));
    }
    // A UUID that is no id does not hide one that begins within it.
    let uuids = (0..text.len()).filter_map(|at| uuid_at(text.as_bytes(), at));
    uuids.for_each(|(id, _)| consume(Token::Uuid(id)));
}

/// Passes the strings of JSON to a consumer: the text before each one, the string with its quotes, and
/// its value, unless it is the name of a member. Returns the text behind the last string.
fn each_string<'j>(
    json: &'j str,
    consume: &mut dyn FnMut(&'j str, &'j str, Option<String>),
) -> &'j str {
    let mut rest = json;
    while let Some(start) = rest.find('"') {
        let length = rest.get(start..).map_or(0, string_length);
        let (before, behind) = rest.split_at(start);
        let (string, behind) = behind.split_at(length);
        let is_name = behind.trim_start().starts_with(':');
        let value = json::text(string).filter(|_| !is_name);
        consume(before, string, value);
        rest = behind;
    }
    rest
}

/// Returns the UUID that begins at a byte of a text, with or without hyphens, and its length.
fn uuid_at(text: &[u8], at: usize) -> Option<(Uuid, usize)> {
    text.get(at).filter(|byte| byte.is_ascii_hexdigit())?;
    let length = match text.get(at + 8) {
        Some(b'-') => HYPHENATED,
        _ => SIMPLE,
    };
    let part = text.get(at..at + length)?;
    let id = Uuid::try_parse_ascii(part).ok()?;
    Some((id, length))
}

/// Returns the id of the object of a version, if it was derived from the name of a file.
fn derived_object(uid: &str) -> Option<Uuid> {
    let (object, rest) = uid.split_once("::")?;
    let is_local = rest
        .split_once("::")
        .is_some_and(|(system, _)| system == SYSTEM);
    let id = Uuid::try_parse(object).ok().filter(|_| is_local)?;
    (id.get_version_num() == DERIVED_VERSION).then_some(id)
}

/// Returns a text, or a part between two word ends of it, that is an id. Longer parts than one that is
/// too long are not tested.
fn id_among_words(
    text: &str,
    is_too_long: impl Fn(&str) -> bool,
    is_id: impl Fn(&str) -> bool,
) -> Option<String> {
    let whole = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '?'));
    if is_id(whole) {
        return Some(whole.to_owned());
    }
    let ends = word_ends(text);
    for (index, from) in ends.iter().enumerate() {
        for to in ends.iter().skip(index + 1) {
            let part = text.get(*from..*to).unwrap_or_default();
            if is_too_long(part) {
                break;
            }
            if part.chars().count() >= MIN_WORD && is_id(part) {
                return Some(part.to_owned());
            }
        }
    }
    None
}

/// Returns a UUID of a text that is an id, in the usual form.
fn uuid_in(text: &str, is_id: impl Fn(&Uuid) -> bool) -> Option<String> {
    let mut found = (0..text.len()).filter_map(|at| uuid_at(text.as_bytes(), at));
    let found = found.find(|(id, _)| is_id(id));
    found.map(|(id, _)| id.hyphenated().to_string())
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
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
