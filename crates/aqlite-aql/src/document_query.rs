//! The queries for the document that contains a cell of another query, and for the EHRs of its rows.

use super::ast::{
    At, ClassExpr, Column, ColumnValue, Containment, Contains, Expr, Limit, Name, Path, Query,
};
use super::print::print;
use aqlite_rm::class::Cls;
use aqlite_rm::diag::{Diagnostic, Span};

/// Returns a query that adds a column to `text`: the whole COMPOSITION that contains the value of
/// the column with index `column`. With `row`, the query returns the row with this index only.
///
/// Returns `None` if there is no such document: for literals, functions and aggregates, for
/// attributes of the EHR, for DISTINCT rows, which several documents may have, with TOP, and for a
/// row whose index exceeds 64 bits together with OFFSET.
///
/// # Errors
/// The errors of the text.
pub fn document_query(
    text: &str,
    column: usize,
    row: Option<u64>,
) -> Result<Option<String>, Vec<Diagnostic>> {
    let (query, diagnostics) = super::parse(text);
    let query = query.ok_or(diagnostics)?;
    Ok(within(query, column, row).map(|query| print(&query)))
}

/// Returns a query that adds a last column to `text`: the id of the EHR that contains the row.
///
/// Returns `None` if rows may belong to several EHRs: for DISTINCT rows and for aggregates.
///
/// # Errors
/// The errors of the text.
pub fn patient_query(text: &str) -> Result<Option<String>, Vec<Diagnostic>> {
    let (query, diagnostics) = super::parse(text);
    let query = query.ok_or(diagnostics)?;
    Ok(with_ehr(query).map(|query| print(&query)))
}

/// Adds the column with the id of the EHR.
fn with_ehr(mut query: Query) -> Option<Query> {
    if merges_rows(&query) {
        return None;
    }
    let free = free_name(&query.from, "ehr");
    if root_class(&query.from) != Some(Cls::EHR) {
        put_around(&mut query.from, "EHR", &free);
    }
    let Containment::Class(expr) = &mut query.from else {
        return None;
    };
    let variable = expr.variable.get_or_insert_with(|| name(&free)).clone();
    // The column of a parsed text, because a path has many parts.
    let mut column = super::parse("SELECT e/ehr_id/value FROM EHR e")
        .0?
        .select
        .columns
        .pop()?;
    if let ColumnValue::Expr(Expr::Path(path)) = &mut column.value {
        path.variable = variable;
    }
    query.select.columns.push(column);
    Some(query)
}

/// Returns the class of the outermost class expression.
fn root_class(from: &Containment) -> Option<Cls> {
    match from {
        Containment::Class(expr) => Cls::parse_any_case(&expr.class.text),
        Containment::And(_) | Containment::Or(_) => None,
    }
}

/// Returns whether a row of the result may come from several rows of FROM.
fn merges_rows(query: &Query) -> bool {
    let is_aggregate = |c: &Column| matches!(c.value, ColumnValue::Aggregate(_));
    query.select.distinct || query.select.columns.iter().any(is_aggregate)
}

/// Adds the column to a query.
fn within(mut query: Query, column: usize, row: Option<u64>) -> Option<Query> {
    // Such a row belongs to several documents, or its position changes with the limit.
    if merges_rows(&query) || query.select.top.is_some() {
        return None;
    }
    let ColumnValue::Expr(Expr::Path(path)) = &query.select.columns.get(column)?.value else {
        return None;
    };
    let wanted = path.variable.text.clone();
    let free = free_name(&query.from, "document");
    let document = enclose(&mut query.from, &wanted, &free, None)?;
    query.select.columns.push(variable_column(document));
    if let Some(row) = row {
        query.limit = Some(only_row(&query, row)?);
    }
    Some(query)
}

/// Returns the LIMIT of one row, whose index counts from the first row of the query itself.
fn only_row(query: &Query, row: u64) -> Option<Limit> {
    let offset = query.limit.as_ref().and_then(|limit| limit.offset.as_ref());
    let skipped: u64 = match offset {
        Some(offset) => offset.text.parse().ok()?,
        None => 0,
    };
    // Behind the greatest number there is no row.
    let offset = skipped.checked_add(row)?;
    Some(Limit {
        count: name("1"),
        offset: Some(name(&offset.to_string())),
        at: At::default(),
    })
}

/// Returns a name without position.
pub(super) fn name(text: &str) -> Name {
    Name::new(text, Span::default())
}

/// Returns a variable itself as a column.
fn variable_column(variable: String) -> Column {
    let path = Path {
        variable: name(&variable),
        root: None,
        steps: Vec::new(),
        at: At::default(),
    };
    Column {
        value: ColumnValue::Expr(Expr::Path(path)),
        alias: None,
        at: At::default(),
    }
}

/// Returns a name that no variable of the query has: `base`, with underscores if needed.
pub(super) fn free_name(from: &Containment, base: &str) -> String {
    let mut free = base.to_owned();
    while mentions(from, &free) {
        free.push('_');
    }
    free
}

/// Returns whether a containment declares a variable, in any letter case.
fn mentions(from: &Containment, variable: &str) -> bool {
    let is = |expr: &ClassExpr| {
        expr.variable
            .as_ref()
            .is_some_and(|v| v.text.eq_ignore_ascii_case(variable))
    };
    match from {
        Containment::Class(expr) => {
            is(expr)
                || expr
                    .contains
                    .as_ref()
                    .is_some_and(|c| mentions(&c.inner, variable))
        }
        Containment::And(all) | Containment::Or(all) => {
            all.iter().any(|one| mentions(one, variable))
        }
    }
}

/// Returns the variable of the COMPOSITION around the variable `wanted`; `outer` is that of the last
/// COMPOSITION above `from`. If there is none, one with the variable `free` is put around the
/// outermost class that only compositions contain.
fn enclose(
    from: &mut Containment,
    wanted: &str,
    free: &str,
    outer: Option<&str>,
) -> Option<String> {
    let (Containment::And(all) | Containment::Or(all)) = from else {
        return enclose_class(from, wanted, free, outer);
    };
    let holds = all.iter_mut().find(|one| mentions(one, wanted))?;
    enclose(holds, wanted, free, outer)
}

fn enclose_class(
    from: &mut Containment,
    wanted: &str,
    free: &str,
    outer: Option<&str>,
) -> Option<String> {
    let Containment::Class(expr) = from else {
        return None;
    };
    let class = Cls::parse_any_case(&expr.class.text);
    if outer.is_none()
        && class.is_some_and(|class| Cls::COMPOSITION.may_contain(class) && !occurs_outside(class))
    {
        put_around(from, "COMPOSITION", free);
        return Some(free.to_owned());
    }
    let own = if class == Some(Cls::COMPOSITION) {
        Some(expr.variable.get_or_insert_with(|| name(free)).text.clone())
    } else {
        outer.map(str::to_owned)
    };
    if expr.variable.as_ref().is_some_and(|v| v.text == wanted) {
        return own;
    }
    enclose(
        &mut expr.contains.as_mut()?.inner,
        wanted,
        free,
        own.as_deref(),
    )
}

/// Returns whether a class also occurs outside compositions: EHR_STATUS and FOLDER, their
/// descendants and abstract ancestors.
fn occurs_outside(class: Cls) -> bool {
    [Cls::EHR_STATUS, Cls::FOLDER]
        .iter()
        .any(|alone| class.is_a(*alone) || alone.is_a(class))
}

/// Puts an expression of a class around a containment.
pub(super) fn put_around(from: &mut Containment, class: &str, variable: &str) {
    let outer = ClassExpr {
        class: name(class),
        variable: Some(name(variable)),
        predicate: None,
        contains: None,
    };
    let inner = std::mem::replace(from, Containment::Class(Box::new(outer)));
    if let Containment::Class(expr) = from {
        expr.contains = Some(Contains {
            negated: false,
            inner,
            at: At::default(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{document_query, patient_query};

    /// Returns the query on one line.
    fn rewritten(text: &str, column: usize, row: u64) -> Option<String> {
        document_query(text, column, Some(row))
            .unwrap()
            .map(|q| q.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_composition_of_the_query_is_added() {
        let q = "SELECT c/name/value, o/data FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o ORDER BY o/name/value LIMIT 10 OFFSET 5";
        let expected = "SELECT c/name/value, o/data, c FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o ORDER BY o/name/value LIMIT 1 OFFSET 8";
        assert_eq!(rewritten(q, 1, 3).unwrap(), expected);
        assert_eq!(rewritten(q, 0, 3).unwrap(), expected);
    }

    #[test]
    fn a_composition_is_added_where_the_query_has_none() {
        let q = "SELECT d/data, document/name FROM EHR e CONTAINS (SECTION document CONTAINS OBSERVATION d AND COMPOSITION)";
        let expected = "SELECT d/data, document/name, document_ FROM EHR e CONTAINS COMPOSITION document_ CONTAINS SECTION document CONTAINS ( OBSERVATION d AND COMPOSITION ) LIMIT 1 OFFSET 0";
        assert_eq!(rewritten(q, 0, 0).unwrap(), expected);
        let bare = "SELECT o/data FROM COMPOSITION CONTAINS OBSERVATION o";
        assert_eq!(
            rewritten(bare, 0, 0).unwrap(),
            "SELECT o/data, document FROM COMPOSITION document CONTAINS OBSERVATION o LIMIT 1 OFFSET 0"
        );
    }

    #[test]
    fn values_outside_compositions_have_no_document() {
        for (q, column) in [
            (
                "SELECT e/ehr_id/value, c/name FROM EHR e CONTAINS COMPOSITION c",
                0,
            ),
            ("SELECT COUNT(*) FROM COMPOSITION c", 0),
            ("SELECT DISTINCT c/name/value FROM COMPOSITION c", 0),
            ("SELECT TOP 5 c/name/value FROM COMPOSITION c", 0),
            ("SELECT 1, LENGTH(c/name/value) FROM COMPOSITION c", 1),
            ("SELECT s/subject FROM EHR e CONTAINS EHR_STATUS s", 0),
            ("SELECT f/name FROM EHR e CONTAINS FOLDER f", 0),
            ("SELECT c/name FROM COMPOSITION c", 7),
        ] {
            assert_eq!(rewritten(q, column, 0), None, "{q}");
        }
        let far = format!(
            "SELECT c/name FROM COMPOSITION c LIMIT 2 OFFSET {}",
            u64::MAX
        );
        assert_eq!(rewritten(&far, 0, 1), None);
        assert!(rewritten(&far, 0, 0).is_some());
        assert!(document_query("SELECT", 0, Some(0)).is_err());
    }
    #[test]
    fn the_ehr_of_every_row_is_added() {
        let one_line = |text: &str| {
            let query = patient_query(text).unwrap()?;
            Some(query.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        for (q, expected) in [
            (
                "SELECT c/name/value FROM EHR e CONTAINS COMPOSITION c ORDER BY c/name/value LIMIT 9",
                "SELECT c/name/value, e/ehr_id/value FROM EHR e CONTAINS COMPOSITION c ORDER BY c/name/value LIMIT 9",
            ),
            (
                "SELECT c/name/value FROM EHR CONTAINS COMPOSITION c",
                "SELECT c/name/value, ehr/ehr_id/value FROM EHR ehr CONTAINS COMPOSITION c",
            ),
            (
                "SELECT ehr/name/value FROM COMPOSITION ehr",
                "SELECT ehr/name/value, ehr_/ehr_id/value FROM EHR ehr_ CONTAINS COMPOSITION ehr",
            ),
        ] {
            assert_eq!(one_line(q).as_deref(), Some(expected), "{q}");
        }
        for merged in [
            "SELECT DISTINCT c/name/value FROM COMPOSITION c",
            "SELECT c/name/value, COUNT(*) FROM COMPOSITION c",
        ] {
            assert_eq!(one_line(merged), None, "{merged}");
        }
        assert!(patient_query("SELECT").is_err());
    }
}
