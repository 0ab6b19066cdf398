//! The cells of the rows of a run, which plain rows and held rows refer to by number.

use super::distinct::Distinct;
use crate::answer::eval::cells::{LastCell, append_row};
use crate::answer::eval::condition::ConditionEvaluator;
use crate::answer::eval::node::{Node, View};
use crate::answer::eval::work::Work;
use crate::answer::result::ResultBuffer;

/// The result buffer of a run, with the caches that know its texts by number.
///
/// Whatever gives the texts of the buffer other numbers must empty the caches, so it is a method of
/// this type. Methods of the buffer that leave the numbers of texts may be called directly.
#[derive(Clone)]
pub(in crate::answer::eval) struct ResultCells {
    pub buffer: ResultBuffer,
    /// For each column, the last constant or object and its cell, which the next row often repeats.
    last_cells: Vec<LastCell>,
    /// The identities of the rows, for DISTINCT.
    distinct: Distinct,
}

impl ResultCells {
    /// Creates an empty buffer of rows with this number of columns.
    pub fn new(columns: usize) -> ResultCells {
        ResultCells {
            buffer: ResultBuffer::new(columns),
            last_cells: vec![None; columns],
            distinct: Distinct::default(),
        }
    }

    /// Makes the cells of a row. Returns their number.
    pub fn append<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
    ) -> u32 {
        append_row(&mut self.buffer, &mut self.last_cells, evaluator, row)
    }

    /// Returns whether a row differs from all rows for which this was called before.
    pub fn is_new(&mut self, row: u32, work: &Work) -> bool {
        self.distinct.is_new(&self.buffer, row, work)
    }

    /// Keeps these rows only, which are numbered anew in this order, and removes the texts of the
    /// others.
    pub fn keep(&mut self, rows: &[u32]) {
        self.last_cells.fill(None);
        self.distinct.forget_texts();
        self.buffer.keep(rows.iter().copied());
    }

    /// Prepares the cells for the rows of another batch.
    pub fn switch_batch(&mut self, view: View<'_>) {
        self.buffer.switch_batch(view.batch.texts());
        self.distinct.forget_dictionary_texts();
        self.last_cells.fill(None);
    }

    /// Returns an estimate of the bytes held.
    pub fn bytes(&self) -> usize {
        self.buffer.bytes() + self.distinct.bytes()
    }

    /// Returns an estimate of the allocated bytes.
    pub fn footprint(&self) -> usize {
        self.buffer.footprint() + self.distinct.bytes()
    }
}
