//! Construction of result cells, and the identity of cells for DISTINCT and GROUP BY.

use super::condition::ConditionEvaluator;
use super::node::{Node, View};
use super::value::Value;
use super::work::{Work, of_texts};
use crate::answer::query::{ColumnValue, Expr, Literal};
use crate::answer::result::{Cell, CellRef, ResultBuffer};
use crate::document::{Dictionary, Fragment, ItemKind, Leaf, Number};
use aqlite_rm::Token;
use aqlite_rm::json::Scanner;

/// The last node of a column, with the reference to its cell: a constant by table and item, or an
/// object.
pub(super) type LastCell = Option<(Node, CellRef)>;

/// Adds a row to a result buffer.
pub(super) fn append_row<'p: 'b, 'b>(
    result_buffer: &mut ResultBuffer,
    last_cells: &mut [LastCell],
    evaluator: ConditionEvaluator<'p, 'b>,
    row: &[Node],
) -> u32 {
    let select = &evaluator.plan.query.select;
    let start = result_buffer.len();
    let (cells, own) = result_buffer.extend(1);
    let mut buffer = String::new();
    let (view, before) = (evaluator.view, evaluator.view.work().map(Work::spent));
    // A cell without its column of SELECT, or without its cache, would remain NULL.
    if cells.len() != select.len() || last_cells.len() != select.len() {
        view.note_broken("a row of the result has not one cell for each column");
    }
    for ((cell, column), last) in cells.iter_mut().zip(select).zip(last_cells) {
        *cell = match &column.value {
            ColumnValue::Expr(Expr::Path(path)) => {
                let node = evaluator.view.node_at(row, *path);
                node_cell_ref(evaluator.view, node, own, last)
            }
            value => {
                let cell = plain_cell(evaluator, value, row, &mut buffer);
                view.count(of_texts(cell.text_bytes()));
                CellRef::of(&cell, own)
            }
        };
        // The limit applies to one row, because nothing pauses in the middle of a row.
        let spent = |work: &Work| work.spent().saturating_sub(before.unwrap_or_default());
        let is_within = view
            .work()
            .is_none_or(|work| work.allows_cells(spent(work)));
        if !is_within || !view.allows_bytes(own.size()) {
            break;
        }
    }
    start as u32
}

/// Returns the reference to the cell of a node. `last` caches the last constant or object.
pub(super) fn node_cell_ref(
    view: View<'_>,
    node: Node,
    own: &mut Dictionary,
    last: &mut LastCell,
) -> CellRef {
    let Fragment { table: number, row } = node.fragment;
    let table = view.batch.stored_table(number);
    match table.and_then(|table| Some((table, table.layout().item(node.item)?.kind))) {
        // A union has no dictionary that a cell could refer to, so its cells are copies.
        Some((_, ItemKind::Leaf(..))) if view.batch.is_union() => {
            CellRef::of(&cell_of(view, node, &mut String::new()), own)
        }
        Some((table, ItemKind::Leaf(_, leaf))) => match table.column_view(leaf) {
            Some(column_view) => view.cell_of_column(CellRef::from_leaf(column_view, row, own)),
            None => {
                view.note_broken("a leaf has no column");
                CellRef::Null
            }
        },
        Some((_, ItemKind::Constant { .. })) => match *last {
            Some((known, cell_ref))
                if (known.fragment.table, known.item) == (number, node.item) =>
            {
                cell_ref
            }
            _ => write_cell(view, node, own, last),
        },
        // Consecutive rows often repeat an object, once for each match inside it. It is written
        // once.
        Some(_) => match *last {
            Some((known, cell_ref)) if known == node => cell_ref,
            _ => write_cell(view, node, own, last),
        },
        // No node, or a value that is derived from an EHR.
        None => CellRef::of(&cell_of(view, node, &mut String::new()), own),
    }
}

fn write_cell(view: View<'_>, node: Node, own: &mut Dictionary, last: &mut LastCell) -> CellRef {
    let mut buffer = String::new();
    let cell = cell_of(view, node, &mut buffer);
    // The dictionary hashes the text, and compares it with an equal one.
    view.count(of_texts(cell.text_bytes()));
    let cell_ref = CellRef::of(&cell, own);
    *last = Some((node, cell_ref));
    cell_ref
}

/// Returns the cell of a column; `buffer` receives a text that is created for the cell.
///
/// The cell of an aggregate is NULL until its group is complete.
pub(super) fn plain_cell<'c, 'p: 'b, 'b: 'c>(
    evaluator: ConditionEvaluator<'p, 'b>,
    value: &'p ColumnValue,
    row: &[Node],
    buffer: &'c mut String,
) -> Cell<&'c str> {
    let view = evaluator.view;
    match value {
        ColumnValue::Aggregate(_) => Cell::Null,
        ColumnValue::Expr(Expr::Path(path)) => cell_of(view, view.node_at(row, *path), buffer),
        ColumnValue::Expr(Expr::Literal(literal)) => cell_of_literal(literal),
        ColumnValue::Expr(call @ Expr::Call(..)) => {
            cell_of_value(&evaluator.value(call, row), buffer)
        }
    }
}

/// Returns the node of a column; [`Node::NONE`] for a column that is not a path.
pub(super) fn node_of(view: View<'_>, value: &ColumnValue, row: &[Node]) -> Node {
    match value {
        ColumnValue::Expr(Expr::Path(path)) => view.node_at(row, *path),
        ColumnValue::Expr(Expr::Literal(_) | Expr::Call(..)) | ColumnValue::Aggregate(_) => {
            Node::NONE
        }
    }
}

/// Returns the cell of a column in a group without rows. The group has no keys, so its columns are
/// literals and aggregates; the cells of aggregates are set when the group is complete.
pub(super) fn constant_cell(value: &ColumnValue) -> Cell<String> {
    match value {
        ColumnValue::Expr(Expr::Literal(literal)) => cell_of_literal(literal).to_owned(),
        ColumnValue::Expr(Expr::Path(_) | Expr::Call(..)) | ColumnValue::Aggregate(_) => Cell::Null,
    }
}

/// Returns the cell of a literal.
pub(super) fn cell_of_literal(literal: &Literal) -> Cell<&str> {
    match literal {
        Literal::Null => Cell::Null,
        Literal::Boolean(flag) => Cell::Boolean(*flag),
        Literal::Number(token) => Cell::Number(Number::Token(token)),
        Literal::Text(text) | Literal::Untyped(text) => Cell::Text(text),
    }
}

fn cell_of_value<'c>(value: &Value<'_>, buffer: &'c mut String) -> Cell<&'c str> {
    match value {
        Value::Boolean(flag) => Cell::Boolean(*flag),
        Value::Number(number) if number.is_wide() => {
            *buffer = number.text();
            Cell::Number(Number::Token(buffer))
        }
        Value::Number(number) => Cell::computed(number.double()),
        other => other.as_text().map_or(Cell::Null, |text| {
            buffer.clear();
            buffer.push_str(text);
            Cell::Text(buffer)
        }),
    }
}

/// Returns the cell of a stored node, with its content exactly as stored.
pub(super) fn cell_of<'c>(view: View<'c>, node: Node, buffer: &'c mut String) -> Cell<&'c str> {
    if node.is_none() {
        return Cell::Null;
    }
    buffer.clear();
    match view.leaf(node) {
        Some(Leaf::Text(text)) => Cell::Text(text),
        Some(Leaf::Time(time)) => {
            time.write(buffer);
            Cell::Text(buffer)
        }
        Some(Leaf::Boolean(flag)) => Cell::Boolean(flag),
        Some(Leaf::Number(_)) => {
            view.write_token(node, buffer);
            Cell::Number(Number::Token(buffer))
        }
        None => {
            view.write_json(node, buffer);
            Cell::Json(buffer)
        }
    }
}

/// Appends a text that is equal for equal cells only: numbers by value, objects by content.
pub(super) fn identity(cell: &Cell<&str>, out: &mut String) {
    match cell {
        Cell::Number(number) => number_identity(number, out),
        Cell::Json(text) => {
            let mut scanner = Scanner::new(text);
            while let Ok(token) = scanner.next_token() {
                match token {
                    Token::End => break,
                    Token::Number(number) => number_identity(&Number::Token(number), out),
                    Token::String(text) => aqlite_rm::json::quote_into(out, &text),
                    Token::ObjectStart => out.push('{'),
                    Token::ObjectEnd => out.push('}'),
                    Token::ArrayStart => out.push('['),
                    Token::ArrayEnd => out.push(']'),
                    Token::Boolean(flag) => out.push(if flag { 't' } else { 'f' }),
                    Token::Null => out.push('n'),
                    Token::Colon | Token::Comma => out.push(','),
                }
            }
        }
        other => other.write_json(out),
    }
    out.push('\u{1f}');
}

fn number_identity(number: &Number<&str>, out: &mut String) {
    out.push_str(&number.exact().without_sign_of_zero().text());
}
