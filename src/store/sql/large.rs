//! Values over the size of a row: the first piece stands in the row, the rest in the table `chunk`.

use super::value::{Fields, Row, Statement, json_list};
use crate::store::repository::StoreError;
use std::collections::HashMap;

/// Bytes of a piece: as a text in JSON it has at most twice as many, which is what D1 allows a
/// value.
const PIECE: usize = 900_000;

/// A value cut into pieces.
pub(super) struct Large {
    /// What stands in the row itself.
    pub(super) first: String,
    rest: Vec<String>,
}

impl Large {
    pub(super) fn of(text: String) -> Large {
        if text.len() <= PIECE {
            return Large {
                first: text,
                rest: Vec::new(),
            };
        }
        let mut pieces = Vec::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
            pieces.push(piece.to_owned());
            rest = behind;
        }
        let behind = pieces.split_off(1);
        Large {
            first: pieces.pop().unwrap_or_default(),
            rest: behind,
        }
    }

    /// How many pieces follow the first.
    pub(super) fn chunks(&self) -> u64 {
        self.rest.len() as u64
    }

    /// The statements that store what follows the first piece.
    pub(super) fn write_rest(&self, owner: &str) -> impl Iterator<Item = Statement> {
        let insert = move |(part, body): (usize, &String)| {
            let statement = Statement::new("INSERT OR REPLACE INTO chunk VALUES (?1, ?2, ?3)");
            statement.bind(owner).bind(part as u64).bind(body.as_str())
        };
        self.rest.iter().enumerate().map(insert)
    }
}

/// Reads what follows the first pieces of these owners' values.
pub(super) fn read_rests(owners: &[String]) -> Statement {
    let query = "SELECT owner, body FROM chunk WHERE owner IN (SELECT value FROM json_each(?1)) ORDER BY owner, part";
    Statement::new(query).bind(json_list(owners))
}

/// The texts behind the first pieces, by owner.
pub(super) fn rests(rows: Vec<Row>) -> Result<HashMap<String, String>, StoreError> {
    let mut found: HashMap<String, String> = HashMap::new();
    for row in rows {
        let mut fields = Fields::of(row);
        let owner = fields.text()?;
        found.entry(owner).or_default().push_str(&fields.text()?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_between_characters() {
        let text = "é".repeat(PIECE);
        let large = Large::of(format!("x{text}"));
        assert_eq!(large.first.len(), PIECE - 1);
        assert_eq!(large.chunks(), 2);
        assert_eq!(large.rest.concat().len() + large.first.len(), 2 * PIECE + 1);
        assert_eq!(Large::of("short".into()).chunks(), 0);
    }
}
