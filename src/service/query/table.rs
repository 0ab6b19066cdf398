//! The response to a query as a table of Arrow or Parquet.
//!
//! A page is observed and written in steps with pauses. A result with more rows than a page is read
//! twice, part by part: the first pass finds the types of its columns, and the second one writes
//! it. Both show the same state, and hold one part and one row group.

use super::super::Service;
use super::super::call::Call;
use super::super::error::Failure;
use super::super::http::RowPart;
use super::super::stored_query::qualified_name;
use super::super::table::{Pass, Table, TablePart, TableStage};
use super::{QueryResult, RequestedQuery};
use crate::aql::ResultSet;
use crate::arrow::{ColumnTypes, TableError, TableOptions, TableWriter};
use crate::store::repository::Repository;

/// The rows that are observed or written between two pauses, unless their texts are long.
const STEP_ROWS: usize = 2_048;

/// The bytes of texts that are observed or written between two pauses.
const STEP_BYTES: usize = 1 << 20;

/// The number of copies of a text in memory while it is written into a table: in a builder, in an
/// array, and in the encoded bytes.
const COPIES: usize = 3;

/// A table to be written: the query, its result, and the form.
#[derive(Clone, Copy)]
pub(super) struct RequestedTable<'t> {
    pub requested: RequestedQuery<'t>,
    pub answer: &'t QueryResult,
    pub table: Table,
}

impl<R: Repository> Service<R> {
    /// Writes a page as a table, or the next part of a longer result.
    ///
    /// # Errors
    /// 400 if the table of a page, or a part, is larger than the limit of a result.
    pub(super) async fn write_table(
        &self,
        call: &Call<'_>,
        wanted: RequestedTable<'_>,
        part: Option<&RowPart>,
    ) -> Result<Vec<u8>, Failure> {
        let Some((part, state)) = part.and_then(|part| Some((part, part.table.as_ref()?))) else {
            return self.write_whole(call, wanted).await;
        };
        let is_last = part.is_last(wanted.requested.request, wanted.answer);
        match state.pass {
            // The whole result is one part, so that it is not read twice.
            Pass::Observe if part.sent == 0 && is_last => self.write_whole(call, wanted).await,
            Pass::Observe => self.observe_part(call, wanted, (state, is_last)).await,
            Pass::Write => self.write_part(call, wanted, (state, is_last)).await,
        }
    }

    async fn write_whole(
        &self,
        call: &Call<'_>,
        wanted: RequestedTable<'_>,
    ) -> Result<Vec<u8>, Failure> {
        let mut types = ColumnTypes::new(wanted.answer.result.columns.len());
        observe(call, wanted.answer, &mut types).await;
        let mut writer = wanted.begin(&types)?;
        let mut out = self.write_rows_of(call, wanted.answer, &mut writer).await?;
        out.extend(writer.finish().map_err(broken)?);
        self.check_size(out.len())?;
        Ok(out)
    }

    /// Observes a part. After the last one the table begins.
    async fn observe_part(
        &self,
        call: &Call<'_>,
        wanted: RequestedTable<'_>,
        (state, is_last): (&TablePart, bool),
    ) -> Result<Vec<u8>, Failure> {
        let mut types = match state.take() {
            TableStage::Observed(types) => types,
            _ => ColumnTypes::new(wanted.answer.result.columns.len()),
        };
        observe(call, wanted.answer, &mut types).await;
        if !is_last {
            state.set(TableStage::Observed(types));
            return Ok(Vec::new());
        }
        let mut writer = wanted.begin(&types)?;
        let begun = writer.take();
        state.set(TableStage::Written(Box::new(writer)));
        Ok(begun)
    }

    /// Writes a part. The last one ends the table.
    async fn write_part(
        &self,
        call: &Call<'_>,
        wanted: RequestedTable<'_>,
        (state, is_last): (&TablePart, bool),
    ) -> Result<Vec<u8>, Failure> {
        let TableStage::Written(mut writer) = state.take() else {
            return Err(Failure::new(
                500,
                "a part of a table has no progress of the parts before it",
            ));
        };
        let mut out = self.write_rows_of(call, wanted.answer, &mut writer).await?;
        if is_last {
            out.extend(writer.finish().map_err(broken)?);
        } else {
            // The client of a stream receives the rows of each part at once.
            writer.encode().map_err(broken)?;
            out.extend(writer.take());
            state.set(TableStage::Written(writer));
        }
        Ok(out)
    }

    /// Writes the rows of a page or part, with pauses between steps.
    async fn write_rows_of(
        &self,
        call: &Call<'_>,
        answer: &QueryResult,
        writer: &mut TableWriter,
    ) -> Result<Vec<u8>, Failure> {
        let (mut out, mut next) = (Vec::new(), 0);
        let (result, held) = (&answer.result, answer.result.footprint());
        while next < result.len() {
            let (end, bytes) = end_of_step(result, next);
            // A step has either many rows of few bytes, or one row.
            self.check_size(bytes)?;
            if bytes >= STEP_BYTES {
                let held = held.saturating_add(out.capacity() + writer.held_bytes());
                let more = bytes.saturating_mul(COPIES);
                answer.share.hold(held.saturating_add(more), call.clock())?;
            }
            let rows = result.rows().skip(next).take(end - next);
            writer.write(rows).map_err(broken)?;
            next = end;
            out.extend(writer.take());
            self.check_size(out.len())?;
            // The bytes of the result, of the written table and of the row group in progress.
            let held = held.saturating_add(out.capacity() + writer.held_bytes());
            answer.share.hold(held, call.clock())?;
            call.pause().await;
        }
        Ok(out)
    }

    fn check_size(&self, bytes: usize) -> Result<(), Failure> {
        let limit = self.config.limits.result;
        if bytes <= limit {
            return Ok(());
        }
        let remedy = "request fewer rows by `fetch`, or paths instead of whole objects";
        Err(Failure::bad_request(format!(
            "the result is larger than {limit} bytes: {remedy}"
        )))
    }
}

impl RequestedTable<'_> {
    fn begin(&self, types: &ColumnTypes) -> Result<TableWriter, Failure> {
        let options = TableOptions {
            format: self.table.format,
            times: self.table.times,
            aql: self.requested.text,
            field_ids: false,
        };
        TableWriter::new(&self.answer.result, types, &options).map_err(broken)
    }
}

/// Observes the rows of a page or part, with pauses between steps.
async fn observe(call: &Call<'_>, answer: &QueryResult, types: &mut ColumnTypes) {
    let (result, mut next) = (&answer.result, 0);
    while next < result.len() {
        let (end, _) = end_of_step(result, next);
        let rows = result.rows().skip(next).take(end - next);
        rows.for_each(|row| types.observe(row));
        next = end;
        call.pause().await;
    }
}

/// Returns the end of a step that begins with a row, and the bytes of its texts. A step has a row
/// at least; a row of long texts is a step of its own.
fn end_of_step(result: &ResultSet, from: usize) -> (usize, usize) {
    let most = from.saturating_add(STEP_ROWS).min(result.len());
    let mut bytes = 0_usize;
    for row in from..most {
        let more = bytes.saturating_add(result.row_bytes(row));
        if row > from && more >= STEP_BYTES {
            return (row, bytes);
        }
        bytes = more;
    }
    (most, bytes)
}

/// Returns the header that names the file of a table, after its stored query if it has one.
pub(super) fn disposition(requested: RequestedQuery<'_>, table: Table) -> String {
    let name = requested
        .stored
        .map_or_else(|| String::from("result"), qualified_name);
    // The name of a stored query may have characters that end a quoted string or a path.
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-._".contains(*c);
    let name: String = name
        .chars()
        .map(|c| if is_plain(&c) { c } else { '_' })
        .collect();
    let ending = table.format.extension();
    format!("attachment; filename=\"{name}.{ending}\"")
}

/// Returns the response to a broken invariant of the tables.
fn broken(error: TableError) -> Failure {
    Failure::new(500, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aql::{Cell, ResultColumn};

    /// Returns a result with a text of each length.
    fn result(lengths: &[usize]) -> ResultSet {
        let column = ResultColumn {
            name: String::from("text"),
            path: None,
        };
        let texts = lengths.iter().map(|length| "x".repeat(*length));
        ResultSet::from_rows(vec![column], texts.map(|text| vec![Cell::Text(text)])).unwrap()
    }

    #[test]
    fn a_step_has_less_than_its_bytes_or_is_one_row() {
        let half = STEP_BYTES / 2;
        for (lengths, from, step) in [
            (&[1, 2, 3][..], 0, (3, 6)),
            (&[1, 2, 3], 1, (3, 5)),
            (&[half, half - 1, 1], 0, (2, STEP_BYTES - 1)),
            (&[half, half, 1], 0, (1, half)),
            (&[STEP_BYTES, 1], 0, (1, STEP_BYTES)),
            (&[3 * STEP_BYTES, 1], 0, (1, 3 * STEP_BYTES)),
            (&[1, STEP_BYTES, 1], 1, (2, STEP_BYTES)),
        ] {
            assert_eq!(
                end_of_step(&result(lengths), from),
                step,
                "{lengths:?} {from}"
            );
        }
        let rows = result(&[0; STEP_ROWS + 1]);
        assert_eq!(end_of_step(&rows, 0), (STEP_ROWS, 0));
        assert_eq!(end_of_step(&rows, 1), (STEP_ROWS + 1, 0));
    }
}
