//! Many rows by one statement: they go as a JSON list of rows, each a list of cells, which the statement takes apart by
//! `json_each(?1) j`. A statement costs a database more than a row does.

use super::value::{SqlValue, Statement, json_list};

/// Most bytes of a list, unless one row alone has more; D1 takes 2 MB.
const MOST: usize = 1_500_000;

/// Rows that wait for their statement.
pub(super) struct Rows {
    sql: &'static str,
    /// Lists that lack their end; the last one may still grow.
    lists: Vec<String>,
}

impl Rows {
    /// No rows yet for a statement.
    pub(super) fn of(sql: &'static str) -> Rows {
        Rows { sql, lists: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, cells: &[SqlValue]) {
        let row = json_list(cells);
        match self.lists.last_mut().filter(|list| list.len() + row.len() < MOST) {
            Some(list) => *list = std::mem::take(list) + "," + &row,
            None => self.lists.push(format!("[{row}")),
        }
    }

    /// The statements of the rows so far, which wait no more.
    pub(super) fn written(&mut self) -> impl Iterator<Item = Statement> {
        let sql = self.sql;
        std::mem::take(&mut self.lists).into_iter().map(move |list| Statement::new(sql).bind(list + "]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_together_as_far_as_they_fit() {
        let mut rows = Rows::of("INSERT");
        for text in ["a", "\"", &"x".repeat(MOST), "b"] {
            rows.push(&[SqlValue::Integer(1), text.into(), SqlValue::Null]);
        }
        let lists: Vec<String> = rows.written().map(|s| format!("{:?}", s.params)).collect();
        assert_eq!(lists.len(), 3);
        assert_eq!(rows.written().count(), 0);
        rows.push(&[SqlValue::Integer(1), "\"".into()]);
        rows.push(&[SqlValue::Null]);
        assert_eq!(rows.written().next().unwrap().params, [SqlValue::from(r#"[[1,"\""],[null]]"#)]);
    }
}
