//! The keys of a text in FLAT as the client spelled them, for findings.

use super::LONGEST_KEY;
use super::candidates::is_key;
use super::form::MAX_DEPTH;
use crate::web::WebNode;
use aqlite_rm::Token;
use aqlite_rm::diag::Finding;
use aqlite_rm::json::{Malformed, Scanner};
use std::collections::HashMap;

/// The maximum number of pieces of a key. The last piece of a longer one has all that follows. The
/// memory of a search grows with the square of this number, and no key of a node has more pieces.
const MAX_PIECES: usize = MAX_DEPTH + 2;

/// The client's spellings of some keys.
///
/// The reader names a position with an index at each repeated node, and a suffix with a bar. A
/// client may omit the index 0, and write a suffix of `ctx` as a segment.
struct SentKeys {
    /// The beginnings of the keys in normal form, each with its first spelling in the text.
    spellings: HashMap<String, Option<Spelling>>,
}

/// A beginning of a key as the client spelled it.
struct Spelling {
    beginning: String,
    /// The rest of the key.
    rest: String,
}

/// Replaces the keys of findings by the spellings of them in the text.
///
/// A candidate for an unknown segment has the rest of the key that was sent, unless no candidate is a
/// key with this rest.
pub(super) fn respell_findings(text: &str, findings: Vec<Finding>, root: &WebNode) -> Vec<Finding> {
    let is_of_key = |finding: &&Finding| finding.code.starts_with("FLT");
    let paths = findings.iter().filter(is_of_key).map(|f| f.path.as_str());
    let sent = SentKeys::find(text, paths);
    let respell = |finding: Finding| {
        if !is_of_key(&&finding) {
            return finding;
        }
        // A segment is refused once, for the first key that has it.
        let rest = sent.rest_of(&finding.path);
        let rest = rest
            .filter(|_| finding.code == "FLT0101")
            .unwrap_or_default();
        let candidate = |key: &str, rest: &str| {
            // The refused key may differ in the mark of its last piece only.
            let last = key.rfind(['/', '|']).unwrap_or_default();
            let (front, last) = key.split_at(last);
            let rest = if key.contains('|') { "" } else { rest };
            format!("{}{last}{rest}", sent.respell(front))
        };
        let candidates = finding.expected.as_deref().map(|candidates| {
            let with = |rest| candidates.split(", ").map(move |key| candidate(key, rest));
            let mut whole: Vec<String> = with(rest).collect();
            if !rest.is_empty() {
                whole.retain(|key| is_key(root, key));
            }
            match whole.is_empty() {
                true => with("").collect::<Vec<_>>().join(", "),
                false => whole.join(", "),
            }
        });
        Finding {
            path: sent.respell(&finding.path) + rest,
            expected: candidates,
            ..finding
        }
    };
    findings.into_iter().map(respell).collect()
}

/// Replaces keys by the spellings of them in the text.
pub(super) fn respell_keys<'k>(text: &str, keys: impl Iterator<Item = &'k mut String>) {
    let mut keys: Vec<&mut String> = keys.collect();
    let sent = SentKeys::find(text, keys.iter().map(|key| key.as_str()));
    keys.iter_mut().for_each(|key| **key = sent.respell(key));
}

impl SentKeys {
    /// Searches a text for the spellings of keys. Costs one pass over the text, and one search for
    /// each of its segments at most.
    fn find<'k>(text: &str, keys: impl Iterator<Item = &'k str>) -> SentKeys {
        let mut spellings = HashMap::new();
        for key in keys.filter(|key| key.len() <= LONGEST_KEY) {
            let NormalKey { text, pieces } = NormalKey::of(key);
            let beginnings = pieces.iter().filter_map(|piece| text.get(..piece.end));
            spellings.extend(beginnings.map(|beginning| (beginning.to_owned(), None)));
        }
        let mut sent = SentKeys { spellings };
        // A text with another form has no keys, and its finding names none.
        let _ = for_each_key(text, &mut |key| {
            if key.len() <= LONGEST_KEY {
                sent.record(key);
            }
        });
        sent
    }

    fn record(&mut self, key: &str) {
        let normal = NormalKey::of(key);
        for piece in &normal.pieces {
            let beginning = normal.text.get(..piece.end);
            // A key that is not requested has no requested continuation.
            let Some(spelling) = beginning.and_then(|b| self.spellings.get_mut(b)) else {
                return;
            };
            let (sent, rest) = key.split_at_checked(piece.sent_end).unwrap_or_default();
            spelling.get_or_insert_with(|| Spelling {
                beginning: sent.to_owned(),
                rest: rest.to_owned(),
            });
        }
    }

    /// Returns a key with its longest beginning that was sent in the spelling of the client.
    fn respell(&self, key: &str) -> String {
        if key.len() > LONGEST_KEY {
            return super::limited(key.to_owned());
        }
        let normal = NormalKey::of(key);
        let sent = normal.pieces.iter().rev().find_map(|piece| {
            let spelling = self.spellings.get(normal.text.get(..piece.end)?)?;
            let rest = key.get(piece.sent_end..)?;
            Some(format!("{}{rest}", spelling.as_ref()?.beginning))
        });
        sent.unwrap_or_else(|| key.to_owned())
    }

    /// Returns what follows in the first key with this beginning.
    fn rest_of(&self, beginning: &str) -> Option<&str> {
        if beginning.len() > LONGEST_KEY {
            return None;
        }
        let spelling = self.spellings.get(&NormalKey::of(beginning).text)?;
        Some(spelling.as_ref()?.rest.as_str())
    }
}

/// A key without indexes that are 0, and with a slash before each segment and suffix.
struct NormalKey {
    text: String,
    pieces: Vec<Piece>,
}

/// A segment or a suffix of a key.
struct Piece {
    /// The end in the normal form.
    end: usize,
    /// The end in the key.
    sent_end: usize,
}

impl NormalKey {
    fn of(key: &str) -> NormalKey {
        let (mut text, mut pieces) = (String::with_capacity(key.len()), Vec::new());
        let mut sent_end = 0;
        for piece in key.splitn(MAX_PIECES, ['/', '|']) {
            sent_end += piece.len();
            text.push('/');
            text.push_str(&without_zero(piece));
            pieces.push(Piece {
                end: text.len(),
                sent_end,
            });
            // The separator.
            sent_end += 1;
        }
        NormalKey { text, pieces }
    }
}

/// Returns a segment or a suffix without an index of 0, and without leading zeros of its index.
fn without_zero(piece: &str) -> String {
    match piece.rsplit_once(':') {
        Some((id, index)) if !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()) => {
            match index.trim_start_matches('0') {
                "" => id.to_owned(),
                index => format!("{id}:{index}"),
            }
        }
        _ => piece.to_owned(),
    }
}

/// Calls a function with each key of an object.
fn for_each_key(text: &str, act: &mut dyn FnMut(&str)) -> Result<(), Malformed> {
    let mut scan = Scanner::new(text);
    if scan.next_token()? != Token::ObjectStart || scan.peek() == Some(b'}') {
        return Ok(());
    }
    loop {
        act(&scan.key()?);
        scan.skip_value(MAX_DEPTH * 2)?;
        if scan.next_token()? != Token::Comma {
            return Ok(());
        }
    }
}
