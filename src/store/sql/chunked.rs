//! Values above the size limit of a row: the row holds the first chunk, and the table `chunk` the
//! others.

use super::value::{Fields, Row, Statement, json_list};
use crate::store::repository::StoreError;
use std::collections::HashMap;

/// Bytes of a chunk. As a text in JSON it has at most twice as many, and D1 allows 2 MB.
const CHUNK_BYTES: usize = 900_000;

/// The minimum bytes of a first chunk that others follow, as text for SQL: a chunk ends between two
/// characters, so it has up to three bytes less than [`CHUNK_BYTES`].
///
/// A search in `chunk` reads whole chunks of other owners to compare their keys, because they are
/// stored behind the keys. A statement that knows the first chunk searches only behind a full one.
macro_rules! full_chunk {
    () => {
        "899997"
    };
}
pub(super) use full_chunk;

/// A text split into chunks.
pub(super) struct ChunkedText {
    /// The chunk in the row itself.
    pub(super) first: String,
    rest: Vec<String>,
}

impl ChunkedText {
    /// Splits a text between characters.
    pub(super) fn split(mut text: String) -> ChunkedText {
        // A chunk must be valid UTF-8 of its own, so the text is split between characters.
        let behind = text.split_off(text.floor_char_boundary(CHUNK_BYTES));
        let (mut rest, mut left) = (Vec::new(), behind.as_str());
        while !left.is_empty() {
            let (chunk, behind) = left.split_at(left.floor_char_boundary(CHUNK_BYTES));
            rest.push(chunk.to_owned());
            left = behind;
        }
        ChunkedText { first: text, rest }
    }

    /// Returns whether chunks may follow this first one.
    pub(super) fn may_continue(first: &str) -> bool {
        // The first chunk of a longer text may be short by the bytes of one character.
        first.len() > CHUNK_BYTES - char::MAX.len_utf8()
    }

    /// Returns the number of chunks after the first.
    pub(super) fn chunk_count(&self) -> u64 {
        self.rest.len() as u64
    }

    /// Returns the statements that store the chunks after the first.
    pub(super) fn insert_chunks(&self, owner: &str) -> impl Iterator<Item = Statement> {
        let insert = move |(part, body): (usize, &String)| {
            let statement = Statement::new("INSERT OR REPLACE INTO chunk VALUES (?1, ?2, ?3)");
            statement.bind(owner).bind(part as u64).bind(body.as_str())
        };
        self.rest.iter().enumerate().map(insert)
    }
}

/// Returns the statement that reads the chunks after the first of the values of these owners.
pub(super) fn read_chunks(owners: &[String]) -> Statement {
    let query = "SELECT owner, body FROM chunk WHERE owner IN (SELECT value FROM json_each(?1)) ORDER BY owner, part";
    Statement::new(query).bind(json_list(owners))
}

/// Joins the chunks after the first, by owner.
pub(super) fn joined_chunks(rows: Vec<Row>) -> Result<HashMap<String, String>, StoreError> {
    let mut found: HashMap<String, String> = HashMap::new();
    for row in rows {
        let mut fields = Fields::of(row);
        let owner = fields.text()?;
        // The statement returns the chunks in order, so appending restores the text.
        found.entry(owner).or_default().push_str(&fields.text()?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_chunk_of_several_is_full() {
        let full: usize = full_chunk!().parse().unwrap_or_default();
        assert_eq!(full, CHUNK_BYTES - 3);
        for text in ["x", "é", "€", "😀"] {
            let text = format!("x{}", text.repeat(CHUNK_BYTES));
            let first = ChunkedText::split(text).first;
            assert!(first.len() >= full && ChunkedText::may_continue(&first));
        }
    }

    #[test]
    fn chunks_end_between_characters() {
        let text = "é".repeat(CHUNK_BYTES);
        let large = ChunkedText::split(format!("x{text}"));
        assert_eq!(large.first.len(), CHUNK_BYTES - 1);
        assert_eq!(large.chunk_count(), 2);
        assert_eq!(
            large.rest.concat().len() + large.first.len(),
            2 * CHUNK_BYTES + 1
        );
        assert!(!ChunkedText::may_continue("short"));
        assert_eq!(ChunkedText::split("short".into()).chunk_count(), 0);
    }
}
