//! Result sets as text tables: CSV (RFC 4180) and newline-delimited JSON.
//!
//! A column of data values becomes several columns of CSV, which are named by their attributes:
//! `weight.magnitude`, `weight.units`. They follow from the classes in the column, in the order of
//! [`PARTS`]. An object of any other class is written as JSON. Columns are named by their alias,
//! otherwise by their path, otherwise by `#` and their number. A repeated name gets a number.

use super::csv_guard::{guarded, is_plain};
use super::result::{Cell, ResultFormat, ResultSet, Row};
use aqlite_rm::Token;
use aqlite_rm::json::{Scanner, members, quote_into};
use aqlite_rm::order;
use std::borrow::Cow;

/// The attributes of each class that are columns of CSV; empty for a class with a single value.
const PARTS: &[(&str, &[&str])] = &[
    ("DV_QUANTITY", &["magnitude", "units"]),
    ("DV_COUNT", &["magnitude"]),
    ("DV_PROPORTION", &["numerator", "denominator"]),
    (
        "DV_ORDINAL",
        &["value", "symbol.value", "symbol.defining_code.code_string"],
    ),
    (
        "DV_SCALE",
        &["value", "symbol.value", "symbol.defining_code.code_string"],
    ),
    (
        "DV_CODED_TEXT",
        &[
            "value",
            "defining_code.code_string",
            "defining_code.terminology_id.value",
        ],
    ),
    ("DV_TEXT", &["value"]),
    ("DV_BOOLEAN", &["value"]),
    ("DV_DATE", &["value"]),
    ("DV_TIME", &["value"]),
    ("DV_DATE_TIME", &["value"]),
    ("DV_DURATION", &["value"]),
    ("DV_URI", &["value"]),
    ("DV_EHR_URI", &["value"]),
    ("DV_IDENTIFIER", &["id", "type", "issuer", "assigner"]),
    ("CODE_PHRASE", &["code_string", "terminology_id.value"]),
    ("HIER_OBJECT_ID", &["value"]),
    ("OBJECT_VERSION_ID", &["value"]),
    ("GENERIC_ID", &["value", "scheme"]),
    ("TERMINOLOGY_ID", &["value"]),
    ("TEMPLATE_ID", &["value"]),
    ("ARCHETYPE_ID", &["value"]),
    ("OBJECT_REF", &["id.value", "namespace", "type"]),
    ("PARTY_REF", &["id.value", "namespace", "type"]),
    ("LOCATABLE_REF", &["id.value", "namespace", "type", "path"]),
];

/// The class with a lower and an upper end, each with the parts of its own class.
const INTERVAL: &str = "DV_INTERVAL";

/// The options of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// Whether texts are written so that no spreadsheet executes them as a formula, whatever
    /// separator it expects. An apostrophe precedes a text that would begin a formula, and quotes
    /// surround every text that is not plain. Numbers are never changed.
    pub guard: bool,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions { guard: true }
    }
}

/// A field of CSV.
#[derive(Clone, Debug, PartialEq)]
enum Field<'a> {
    /// NULL, written as nothing. An empty text is written as `""`.
    Null,
    /// Digits, or a boolean.
    Plain(Cow<'a, str>),
    Text(Cow<'a, str>),
}

/// The parts of a cell by name. The part without a name is the cell itself.
type Spread<'a> = Vec<(String, Field<'a>)>;

impl ResultSet {
    /// Returns distinct names of the columns: alias, path, or `#` and the number.
    pub fn column_names(&self) -> Vec<String> {
        let named = |(i, column): (usize, &super::result::ResultColumn)| match &column.path {
            // The name of a column without an alias is `#` and its number from 0.
            Some(path) if column.name == format!("#{i}") => path.clone(),
            _ => column.name.clone(),
        };
        distinct(self.columns.iter().enumerate().map(named))
    }

    /// Returns the columns of CSV, with the parts that the values of each column have.
    pub fn csv_columns(&self) -> CsvColumns {
        let mut parts = CsvParts::default();
        self.find_csv_parts(&mut parts, usize::MAX);
        self.csv_columns_with(parts)
    }

    /// Looks for parts in further rows, of at least `bytes` bytes if there are as many. Returns
    /// whether all rows were read.
    ///
    /// Long results are read in pieces, because cells that share a text are read one by one: the
    /// work can be much greater than the size of the result in memory.
    pub fn find_csv_parts(&self, parts: &mut CsvParts, bytes: usize) -> bool {
        parts.found.resize_with(self.columns.len(), Vec::new);
        let mut read = 0_usize;
        for row in self.rows().skip(parts.rows) {
            if read >= bytes {
                return false;
            }
            read = read.saturating_add(self.row_bytes(parts.rows).max(1));
            parts.rows += 1;
            for (cell, found) in row.iter().zip(&mut parts.found) {
                for (part, _) in spread(cell) {
                    if !found.contains(&part) {
                        found.push(part);
                    }
                }
            }
        }
        true
    }

    /// Returns the columns of CSV with the parts that were found.
    pub fn csv_columns_with(&self, parts: CsvParts) -> CsvColumns {
        let parts: Vec<Vec<String>> = parts.found.into_iter().map(in_order).collect();
        let names = self.column_names();
        let headings = names
            .iter()
            .zip(&parts)
            .flat_map(|(name, parts)| parts.iter().map(move |part| format!("{name}{part}")));
        CsvColumns {
            headings: distinct(headings),
            parts,
        }
    }

    /// Returns the table as CSV: a line of names, then a line for each row. Lines end in CR LF.
    pub fn to_csv(&self, options: CsvOptions) -> String {
        self.written(&ResultFormat::Csv(options, self.csv_columns()))
    }

    /// Returns the table as one JSON object on a line for each row. The members have the names of
    /// [`ResultSet::column_names`], and the cells are those of JSON results.
    pub fn to_ndjson(&self) -> String {
        self.written(&ResultFormat::Ndjson(self.column_names()))
    }

    fn written(&self, format: &ResultFormat) -> String {
        let mut out = String::new();
        format.begin(&mut out);
        self.write_piece(format, 0, (usize::MAX, usize::MAX), &mut out);
        format.end(&mut out);
        out
    }
}

/// The parts that the values of each column have in the rows that were read.
#[derive(Clone, Debug, Default)]
pub struct CsvParts {
    found: Vec<Vec<String>>,
    /// The number of rows that were read.
    rows: usize,
}

impl CsvParts {
    /// Returns the index of the next row.
    pub fn next_row(&self) -> usize {
        self.rows
    }
}

/// The columns of CSV.
#[derive(Clone, Debug)]
pub struct CsvColumns {
    headings: Vec<String>,
    /// The names of the parts of each column of the result.
    parts: Vec<Vec<String>>,
}

impl CsvColumns {
    /// Appends the line of names.
    pub(super) fn write_head(&self, options: CsvOptions, out: &mut String) {
        line(
            self.headings.iter().map(|name| Field::Text(name.into())),
            options,
            out,
        );
    }

    /// Appends the line of a row.
    pub(super) fn write(&self, row: Row<'_>, options: CsvOptions, out: &mut String) {
        let cells: Vec<Spread<'_>> = row.iter().map(spread).collect();
        let fields = cells
            .iter()
            .zip(&self.parts)
            .flat_map(|(cell, parts)| parts.iter().map(|part| field(cell, part)));
        line(fields, options, out);
    }
}

/// Appends a row as a JSON object and a line end. Stops as soon as `out` has more than `most`
/// bytes.
pub(super) fn write_ndjson(names: &[String], row: Row<'_>, most: usize, out: &mut String) {
    for (i, (name, cell)) in names.iter().zip(row.iter()).enumerate() {
        out.push(if i > 0 { ',' } else { '{' });
        quote_into(out, name);
        out.push(':');
        // The caller rejects a larger result, so the rest of the row is not needed.
        if out.len() > most {
            return;
        }
        cell.write_json(out);
    }
    out.push_str("}\n");
}

/// Makes names distinct: a number is appended to a name that occurred before.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names {
        let taken = |candidate: &String| out.contains(candidate);
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|candidate| !taken(candidate));
        out.extend(free);
    }
    out
}

/// Sorts the parts of a column in the order of the classes. Without parts, the column is the cell
/// itself.
fn in_order(mut found: Vec<String>) -> Vec<String> {
    let place = |part: &str| {
        let end = part
            .trim_start_matches(".lower")
            .trim_start_matches(".upper")
            .trim_start_matches('.');
        let of_class = PARTS
            .iter()
            .flat_map(|(_, parts)| *parts)
            .position(|p| *p == end);
        // All parts of the lower end of an interval precede those of the upper end.
        (part.starts_with(".upper"), of_class.map_or(0, |p| p + 1))
    };
    order::sort_by_key(&mut found, |part| place(part));
    if found.is_empty() {
        vec![String::new()]
    } else {
        found
    }
}

fn field<'a>(cell: &Spread<'a>, part: &str) -> Field<'a> {
    cell.iter()
        .find(|(p, _)| p == part)
        .map_or(Field::Null, |(_, field)| field.clone())
}

fn spread(cell: Cell<&str>) -> Spread<'_> {
    match cell {
        Cell::Null => Vec::new(),
        Cell::Boolean(_) | Cell::Number(_) => {
            let mut text = String::new();
            cell.write_json(&mut text);
            vec![(String::new(), Field::Plain(text.into()))]
        }
        Cell::Text(text) => vec![(String::new(), Field::Text(text.into()))],
        Cell::Json(json) => {
            of_object(json, "").unwrap_or_else(|| vec![(String::new(), Field::Text(json.into()))])
        }
    }
}

/// Returns the parts of a data value; `None` for an object of a class without parts.
fn of_object<'a>(json: &'a str, prefix: &str) -> Option<Spread<'a>> {
    let of = members(json).ok()?;
    let class = of
        .iter()
        .find(|(key, _)| key == "_type")
        .map(|(_, value)| value.trim_matches('"'))?;
    if class == INTERVAL {
        let ends = ["lower", "upper"].into_iter().filter_map(|end| {
            let value = of.iter().find(|(key, _)| key == end)?.1;
            of_object(value, &format!("{prefix}.{end}"))
        });
        return Some(ends.flatten().collect());
    }
    let (_, parts) = PARTS.iter().find(|(known, _)| *known == class)?;
    Some(
        parts
            .iter()
            .filter_map(|part| Some((format!("{prefix}.{part}"), member(json, part)?)))
            .collect(),
    )
}

/// Returns the value at a path of member names, which are separated by dots.
fn member<'a>(json: &'a str, path: &str) -> Option<Field<'a>> {
    let mut at = json;
    // Each step scans the members again, so no object is parsed as a whole.
    for step in path.split('.') {
        at = members(at)
            .ok()?
            .into_iter()
            .find(|(key, _)| key == step)?
            .1;
    }
    Some(match Scanner::new(at).next_token().ok()? {
        Token::String(text) => Field::Text(text),
        Token::Number(_) | Token::Boolean(_) => Field::Plain(at.into()),
        Token::Null => Field::Null,
        // An object or list at the end of the path is written as JSON.
        _ => Field::Text(at.into()),
    })
}

fn line<'a>(fields: impl Iterator<Item = Field<'a>>, options: CsvOptions, out: &mut String) {
    for (i, field) in fields.enumerate() {
        out.push_str(if i > 0 { "," } else { "" });
        match field {
            Field::Null => {}
            Field::Plain(token) => out.push_str(&token),
            Field::Text(text) => write_text(&text, options, out),
        }
    }
    // RFC 4180 requires CR LF, also on systems with another line end.
    out.push_str("\r\n");
}

fn write_text(text: &str, options: CsvOptions, out: &mut String) {
    if options.guard {
        return write_guarded(text, out);
    }
    write_quoted(text, text.contains([',', '"', '\r', '\n']), out);
}

/// Writes a text so that no spreadsheet executes it.
pub(super) fn write_guarded(text: &str, out: &mut String) {
    let text = guarded(text);
    write_quoted(&text, !is_plain(&text), out);
}

/// Writes a text, in quotes if `must` is true or if a reader can drop blanks at its ends.
fn write_quoted(text: &str, must: bool, out: &mut String) {
    let quoted =
        must || text.is_empty() || text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    let mark = if quoted { "\"" } else { "" };
    let text = if text.contains('"') {
        Cow::Owned(text.replace('"', "\"\""))
    } else {
        Cow::Borrowed(text)
    };
    out.extend([mark, &*text, mark]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::result::{ResultBuffer, ResultColumn};
    use crate::document::Number;

    type Text = Cell<&'static str>;

    fn table(columns: &[(&str, Option<&str>)], rows: Vec<Vec<Text>>) -> ResultSet {
        let columns = columns.iter().map(|(name, path)| ResultColumn {
            name: (*name).to_owned(),
            path: path.map(str::to_owned),
        });
        let mut result_buffer = ResultBuffer::new(columns.len());
        let mut push = |row: &Vec<Text>| {
            let held: Vec<_> = row
                .iter()
                .map(|cell| result_buffer.store_cell(cell))
                .collect();
            result_buffer.push(held.into_iter())
        };
        let rows = rows.iter().map(&mut push).collect();
        ResultSet::new(columns.collect(), result_buffer, rows).unwrap()
    }

    #[test]
    fn piece_ends_before_a_row_that_does_not_fit() {
        let rows = ["a", "a text of more bytes", "b"].map(|t| vec![text(t)]);
        let result = table(&[("x", None)], rows.to_vec());
        let format = ResultFormat::Csv(CsvOptions::default(), result.csv_columns());
        let mut out = String::new();
        assert_eq!(result.write_piece(&format, 0, (1_000, 20), &mut out), 1);
        assert_eq!(out, "a\r\n");
    }

    #[test]
    fn parts_that_are_found_in_pieces_are_those_of_all_rows() {
        let count = r#"{"_type":"DV_COUNT","magnitude":1}"#;
        let quantity = r#"{"_type":"DV_QUANTITY","magnitude":1,"units":"kg"}"#;
        let rows = vec![
            vec![json(count)],
            vec![Cell::Null],
            vec![json(quantity)],
            vec![text("a")],
        ];
        let result = table(&[("x", None)], rows);
        let (mut parts, mut pieces) = (CsvParts::default(), 1);
        while !result.find_csv_parts(&mut parts, 1) {
            assert_eq!(parts.next_row(), pieces);
            pieces += 1;
        }
        assert_eq!(pieces, 4);
        let columns = result.csv_columns_with(parts);
        assert_eq!(columns.headings, result.csv_columns().headings);
    }

    fn one(cells: Vec<Text>, guard: bool) -> String {
        table(&[("x", None)], cells.into_iter().map(|c| vec![c]).collect())
            .to_csv(CsvOptions { guard })
    }

    fn text(text: &'static str) -> Text {
        Cell::Text(text)
    }

    fn json(text: &'static str) -> Text {
        Cell::Json(text)
    }

    fn number(token: &'static str) -> Text {
        Cell::Number(Number::Token(token))
    }

    #[test]
    fn texts_are_quoted_where_they_must_be() {
        let cells = vec![
            text("a"),
            text("a,b"),
            text("a \"b\""),
            text("a\r\nb"),
            text(" a"),
            text(""),
            Cell::Null,
            number("1.50"),
        ];
        assert_eq!(
            one(cells, true),
            "x\r\na\r\n\"a,b\"\r\n\"a \"\"b\"\"\"\r\n\"a\r\nb\"\r\n\" a\"\r\n\"\"\r\n\r\n1.50\r\n"
        );
    }

    #[test]
    fn formulas_are_guarded_by_default() {
        let cells = || {
            vec![
                text("=1+1"),
                text("@a"),
                text("-x,y"),
                text("＝1"),
                number("-1"),
            ]
        };
        assert_eq!(
            one(cells(), true),
            "x\r\n\"'=1+1\"\r\n\"'@a\"\r\n\"'-x,y\"\r\n\"'＝1\"\r\n-1\r\n"
        );
        assert_eq!(
            one(cells(), false),
            "x\r\n=1+1\r\n@a\r\n\"-x,y\"\r\n＝1\r\n-1\r\n"
        );
    }

    #[test]
    fn data_values_are_spread_in_the_order_of_their_classes() {
        let coded = r#"{"_type":"DV_CODED_TEXT","value":"Rot, hell","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"value":"local"},"code_string":"at1"}}"#;
        let quantity = r#"{"_type":"DV_QUANTITY","magnitude":72.50,"units":"kg"}"#;
        assert_eq!(
            one(
                vec![
                    json(coded),
                    Cell::Null,
                    json(quantity),
                    json(r#"{"_type":"CLUSTER"}"#)
                ],
                true
            ),
            "x,x.magnitude,x.units,x.value,x.defining_code.code_string,x.defining_code.terminology_id.value\r\n\
             ,,,\"Rot, hell\",at1,local\r\n,,,,,\r\n,72.50,kg,,,\r\n\"{\"\"_type\"\":\"\"CLUSTER\"\"}\",,,,,\r\n"
        );
        let interval = r#"{"_type":"DV_INTERVAL","lower":{"_type":"DV_COUNT","magnitude":1},"upper":{"_type":"DV_COUNT","magnitude":3}}"#;
        assert_eq!(
            one(vec![json(interval)], true),
            "x.lower.magnitude,x.upper.magnitude\r\n1,3\r\n"
        );
    }

    #[test]
    fn names_are_alias_path_or_number_and_come_once() {
        let columns = [
            ("n", Some("c/name/value")),
            ("#1", Some("c/uid/value")),
            ("#2", None),
            ("n", None),
        ];
        let table = table(
            &columns,
            vec![vec![
                text("a\"b"),
                Cell::Null,
                Cell::Boolean(true),
                number("1"),
            ]],
        );
        assert_eq!(
            table.to_csv(CsvOptions::default()),
            "n,c/uid/value,#2,n_2\r\n\"a\"\"b\",,true,1\r\n"
        );
        assert_eq!(
            table.to_ndjson(),
            "{\"n\":\"a\\\"b\",\"c/uid/value\":null,\"#2\":true,\"n_2\":1}\n"
        );
    }
}
