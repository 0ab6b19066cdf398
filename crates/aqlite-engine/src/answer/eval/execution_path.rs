//! Execution paths: the alternative pieces of code that can compute the same rows, and a record of
//! those that a run took.
//!
//! A fast path that no test reaches can be wrong for years. The property test compares every path
//! with the reference evaluator, and fails when a run of it never took one of
//! [`ExecutionPath::ALL`].

use std::cell::Cell;
use std::fmt;

macro_rules! execution_paths {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// One of the alternative ways to compute a part of a result.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ExecutionPath {
            $($(#[$doc])* $name,)*
        }

        impl ExecutionPath {
            /// Every execution path.
            pub const ALL: &'static [ExecutionPath] = &[$(ExecutionPath::$name,)*];

            /// A short description, for reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(ExecutionPath::$name => $text,)*
                }
            }
        }
    };
}

execution_paths! {
    /// Documents one by one, without row templates.
    Documents = "documents one by one",
    /// EHRs one by one, for joins across documents.
    Ehrs = "EHRs one by one",
    /// The documents that can be joined, found before the join.
    SemiJoin = "documents that can be joined",
    /// A join without the class expressions that contribute nothing to the result.
    SmallerJoin = "join without what it does not show",
    /// Row templates over the tables of a batch.
    Templates = "row templates",
    /// Fragments that row templates cannot describe, evaluated by a walk.
    WalkedFragments = "walked fragments",
    /// Child rows in a table of their own, with cells of their parent rows.
    ChildRows = "child rows with cells of their parents",
    /// Child rows whose parent rows contribute no cell.
    ChildRowsAlone = "child rows alone",
    /// Parent rows without child rows.
    ParentRowsAlone = "parent rows without child rows",
    /// Rows added to aggregates without being made.
    Fold = "fold into aggregates",
    /// Rows passed to ORDER BY.
    Sort = "rows for ORDER BY",
    /// Result cells copied from columns.
    Fill = "cells from columns",
    /// DISTINCT over result cells that were copied from columns.
    FillDistinct = "distinct cells from columns",
    /// Rows of several anchors joined by document, or rows of one anchor that need more than
    /// columns.
    Join = "join by document",
    /// Blocks of one anchor with the columns of the classes above it.
    AboveColumns = "columns of classes above the anchor",
    /// Conditions about the document, tested before its entries are read.
    NarrowedScope = "documents by their own conditions",
    /// The number of rows of a join that reads no path.
    CountJoin = "count of a join by document",
    /// The number of EHRs, without reading any of them.
    CountEhrs = "count of EHRs",
    /// Rows before the window, which are counted batch by batch and never made.
    SkippedRows = "count of rows before the window",
    /// Groups with keys.
    Groups = "groups with keys",
    /// Rows of a block with equal keys, added to their group at once.
    GroupBlock = "groups of a block",
    /// COUNT of a block of rows, by its length.
    CountBlock = "count of a block",
    /// SUM or AVG of a column of numbers.
    SumColumn = "sum of a column",
    /// MIN of a column of numbers.
    MinColumn = "minimum of a column",
    /// MAX of a column of numbers.
    MaxColumn = "maximum of a column",
    /// MIN or MAX of a column of date-times.
    ExtremeTime = "minimum or maximum of a column of times",
    /// An aggregate over a block, row by row.
    AggregateRows = "aggregate of a block row by row",
    /// The numbers of all rows of a column, or of one range of rows, as a slice of the column.
    NumbersBorrowed = "numbers as stored",
    /// The numbers of a range without its hidden rows, copied range by range.
    NumbersStretches = "numbers of stretches",
    /// The numbers of a selection from an optional column, found by bitmaps.
    NumbersBitmap = "numbers by bitmap",
    /// The numbers of a selection, row by row.
    NumbersGathered = "numbers row by row",
    /// A comparison of a column of numbers with a number.
    CompareColumn = "predicate over a column of numbers",
    /// A comparison of a column of date-times with a date or date-time.
    CompareTimes = "predicate over a column of times",
    /// A comparison that no row of a block passes, according to the zone map of the column.
    ZoneMap = "block left out by its zone map",
    /// A predicate with the same outcome for all rows of a block, or for all child rows whose parent
    /// rows have the same layout variant.
    PredicateOnce = "predicate once a block",
    /// A predicate over a column of texts, evaluated once for each distinct text.
    PredicateWords = "predicate once a text",
    /// A predicate evaluated row by row.
    PredicateRows = "predicate row by row",
    /// Top-k by a column of numbers.
    TopNumbers = "top-k by numbers",
    /// Top-k by a column of points in time.
    TopTimes = "top-k by times",
}

impl fmt::Display for ExecutionPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The execution paths that a run took, as a set with one bit for each.
#[derive(Clone, Debug, Default)]
pub(super) struct TakenPaths(Cell<u64>);

impl TakenPaths {
    /// Records that a path was taken.
    pub fn note(&self, path: ExecutionPath) {
        // The set has 64 bits, so there must be no more than 64 paths.
        self.0.set(self.0.get() | 1 << path as u32);
    }

    /// Records the paths that another run took.
    pub fn note_all(&self, other: &TakenPaths) {
        self.0.set(self.0.get() | other.0.get());
    }

    /// Returns the paths that were taken, in the order of [`ExecutionPath::ALL`].
    pub fn paths(&self) -> impl Iterator<Item = ExecutionPath> + use<> {
        let bits = self.0.get();
        ExecutionPath::ALL
            .iter()
            .copied()
            .filter(move |path| bits & 1 << *path as u32 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_a_bit_and_a_name_of_its_own() {
        assert!(ExecutionPath::ALL.len() <= 64);
        let names: std::collections::HashSet<_> =
            ExecutionPath::ALL.iter().map(|path| path.name()).collect();
        assert_eq!(names.len(), ExecutionPath::ALL.len());
        let taken = TakenPaths::default();
        taken.note(ExecutionPath::Ehrs);
        taken.note(ExecutionPath::TopTimes);
        assert_eq!(
            taken.paths().collect::<Vec<_>>(),
            [ExecutionPath::Ehrs, ExecutionPath::TopTimes]
        );
    }
}
