//! Result sets: columns and rows of cells, with stored content exactly as stored.

use crate::rm::json::quote_into;

/// The answer of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultSet {
    /// The columns, in SELECT order.
    pub columns: Vec<ResultColumn>,
    /// The rows, each with one cell a column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a result set.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    /// The alias, or `#<index from 0>`.
    pub name: String,
    /// The path as written, with its variable; absent for literals, functions and aggregates.
    pub path: Option<String>,
}

/// A cell of a result set.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A number: its token, as stored or computed.
    Number(String),
    /// A text.
    Text(String),
    /// An object or list as canonical JSON.
    Json(String),
}

impl Cell {
    /// Appends the cell as JSON.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Cell::Null => out.push_str("null"),
            Cell::Boolean(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Cell::Number(token) | Cell::Json(token) => out.push_str(token),
            Cell::Text(text) => quote_into(out, text),
        }
    }

    /// A computed number: whole numbers without a point, zero without a sign.
    pub fn of_number(number: f64) -> Cell {
        if number.is_finite() { Cell::Number((number + 0.0).to_string()) } else { Cell::Null }
    }
}

impl ResultSet {
    /// Appends the rows as a JSON array of arrays.
    pub fn write_rows(&self, out: &mut String) {
        out.push('[');
        for (i, row) in self.rows.iter().enumerate() {
            out.push_str(if i > 0 { ",[" } else { "[" });
            for (j, cell) in row.iter().enumerate() {
                out.push_str(if j > 0 { "," } else { "" });
                cell.write_json(out);
            }
            out.push(']');
        }
        out.push(']');
    }
}
