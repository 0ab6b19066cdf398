//! Selections: the rows of a table that are candidates, as a range with exceptions, a list or a
//! bitmap.

use super::execution_path::ExecutionPath;
use super::node::View;
use crate::document::{Bitmap, ColumnView, PresenceBitmap};
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::Range;

/// The method by which the numbers of a selection are read from their column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadMethod {
    /// As a slice of the column.
    Borrowed,
    /// Range by range.
    Stretches,
    /// By the bits of the selection and of the presence bitmap.
    Bitmap,
    /// Row by row.
    Gathered,
}

impl ReadMethod {
    /// Returns the execution path of the method.
    pub fn path(self) -> ExecutionPath {
        match self {
            ReadMethod::Borrowed => ExecutionPath::NumbersBorrowed,
            ReadMethod::Stretches => ExecutionPath::NumbersStretches,
            ReadMethod::Bitmap => ExecutionPath::NumbersBitmap,
            ReadMethod::Gathered => ExecutionPath::NumbersGathered,
        }
    }
}

/// The broken invariant of a row whose column has no number for it.
const NO_NUMBER: &str = "a row has no number in a column of its table";

/// A selection of rows of a table.
#[derive(Clone)]
pub(super) enum Selection<'b> {
    /// The rows of a range except for some, which are listed in ascending order.
    Range(Range<u32>, &'b [u32]),
    Indices(Vec<u32>),
    /// The rows of a bitmap.
    Bitmap(BitmapRows),
}

/// A bitmap of rows with its cardinality.
#[derive(Clone)]
pub(super) struct BitmapRows {
    bitmap: Bitmap,
    count: usize,
    /// The rows as a list, which is made after several lookups by index.
    rows: OnceCell<Vec<u32>>,
    /// The number of lookups by index so far.
    lookups: Cell<u8>,
}

impl BitmapRows {
    fn rows(&self) -> &[u32] {
        self.rows.get_or_init(|| self.bitmap.rows(self.count))
    }

    /// Returns the row at an index. The first lookups search the bits.
    fn get(&self, i: usize) -> Option<u32> {
        const MAX_BIT_LOOKUPS: u8 = 16;
        // A few lookups among the bits cost less than a list of all rows, but many cost more.
        if self.lookups.get() == MAX_BIT_LOOKUPS || self.rows.get().is_some() {
            return self.rows().get(i).copied();
        }
        self.lookups.set(self.lookups.get() + 1);
        let mut before = i;
        for (start, word) in self.bitmap.words() {
            let count = word.count_ones() as usize;
            if before < count {
                // Each step clears the lowest bit that is set.
                let left = (0..before).fold(word, |left, _| left & (left - 1));
                return Some(start + left.trailing_zeros());
            }
            before -= count;
        }
        None
    }
}

/// The numbers of a column with their presence bitmap.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'b> {
    pub values: &'b [f64],
    pub column_view: ColumnView<'b>,
}

impl Numbers<'_> {
    /// Returns the number of a row. A row without a number is a broken invariant, which ends the
    /// run.
    pub fn at(&self, view: View<'_>, row: u32) -> Option<f64> {
        let number = self.values.get(self.column_view.at(row) as usize);
        if number.is_none() {
            view.note_broken(NO_NUMBER);
        }
        number.copied()
    }
}

impl<'b> Selection<'b> {
    /// Selects the rows of a range except for those in `hidden`, which is ascending.
    pub fn excluding(range: Range<u32>, hidden: &'b [u32]) -> Selection<'b> {
        let at = |row: u32| hidden.partition_point(|hidden| *hidden < row);
        // Both ends are at most the length, so only a range that ends before its start has no part.
        let hidden = hidden
            .get(at(range.start)..at(range.end))
            .unwrap_or_default();
        Selection::Range(range, hidden)
    }

    /// Splits the selection into pieces of about `rows` rows.
    pub fn pieces(&self, rows: usize) -> Vec<Selection<'b>> {
        match self {
            Selection::Range(range, hidden) => range
                .clone()
                .step_by(rows)
                .map(|start| {
                    Selection::excluding(start..range.end.min(start + rows as u32), hidden)
                })
                .collect(),
            Selection::Indices(all) => all
                .chunks(rows)
                .map(|rows| Selection::Indices(rows.to_vec()))
                .collect(),
            Selection::Bitmap(marked) => {
                let pieces = marked.bitmap.pieces(marked.count.div_ceil(rows));
                pieces
                    .map(|bitmap| Selection::from_bitmap(bitmap.count(), bitmap))
                    .collect()
            }
        }
    }

    /// Splits the selection into pieces of 1, 16, 256 … rows, of at most `most` rows each.
    pub fn growing_pieces(&self, most: usize) -> Vec<Selection<'b>> {
        let rows = self.rows();
        let (mut rest, mut size, mut pieces) = (&*rows, 1, Vec::new());
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(rest.len().min(size));
            pieces.push(Selection::Indices(piece.to_vec()));
            (rest, size) = (others, most.min(size * 16));
        }
        pieces
    }

    /// Splits the selection into the rows in a presence bitmap and the others.
    pub fn split(self, presence: Option<&PresenceBitmap>) -> (Selection<'b>, Selection<'b>) {
        let none = Selection::Indices(Vec::new());
        let Some(presence) = presence else {
            return (none, self);
        };
        let count = self.len();
        let mut others = match self {
            Selection::Indices(rows) => {
                let (with_item, others) = rows.into_iter().partition(|row| presence.contains(*row));
                return (Selection::Indices(with_item), Selection::Indices(others));
            }
            Selection::Range(ref range, _) => {
                // Two ranks suffice to see that all rows of the range have the item, or none.
                match presence.rank(range.end) - presence.rank(range.start) {
                    0 => return (none, self),
                    all if all as usize == range.len() => return (self, none),
                    _ => self.bitmap().into_owned(),
                }
            }
            Selection::Bitmap(marked) => marked.bitmap,
        };
        // The bitmap keeps the rows without the item.
        let (with_item, with_item_count) = others.split(presence);
        (
            Selection::dense(with_item, with_item_count),
            Selection::dense(others, count - with_item_count),
        )
    }

    /// Returns the rows as a bitmap.
    pub fn bitmap(&self) -> Cow<'_, Bitmap> {
        match self {
            Selection::Bitmap(marked) => Cow::Borrowed(&marked.bitmap),
            Selection::Range(range, hidden) => {
                let mut bitmap = Bitmap::from_range(range);
                hidden.iter().for_each(|row| bitmap.clear(*row));
                Cow::Owned(bitmap)
            }
            Selection::Indices(rows) => Cow::Owned(Bitmap::from_rows(rows)),
        }
    }

    /// Selects the `count` rows of a bitmap. A sparse selection becomes a list, which is faster to
    /// iterate.
    fn dense(bitmap: Bitmap, count: usize) -> Selection<'b> {
        // A bitmap with fewer than one row in 256 is sparse.
        if count < bitmap.words_held() / 4 {
            return Selection::Indices(bitmap.rows(count));
        }
        Selection::from_bitmap(count, bitmap)
    }

    fn from_bitmap(count: usize, bitmap: Bitmap) -> Selection<'b> {
        Selection::Bitmap(BitmapRows {
            bitmap,
            count,
            rows: OnceCell::new(),
            lookups: Cell::new(0),
        })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Selection::Range(range, hidden) => range.len() - hidden.len(),
            Selection::Indices(rows) => rows.len(),
            Selection::Bitmap(marked) => marked.count,
        }
    }

    /// Returns whether no row is selected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the range from the first to the last row, for rows in ascending order.
    pub fn span(&self) -> Range<u32> {
        let ends = self
            .get(0)
            .zip(self.len().checked_sub(1).and_then(|last| self.get(last)));
        ends.map_or(0..0, |(first, last)| first..last + 1)
    }

    /// Returns the row at an index.
    pub fn get(&self, i: usize) -> Option<u32> {
        match self {
            Selection::Range(range, hidden) => nth_excluding(range.clone(), hidden, i),
            Selection::Indices(rows) => rows.get(i).copied(),
            Selection::Bitmap(marked) => marked.get(i),
        }
    }

    /// Visits the rows as ranges of consecutive rows.
    fn stretches(&self, mut visit: impl FnMut(Range<u32>)) {
        match self {
            Selection::Range(range, hidden) => {
                let mut start = range.start;
                for row in hidden.iter() {
                    visit(start..*row);
                    start = row + 1;
                }
                visit(start..range.end);
            }
            _ => self.rows().iter().for_each(|row| visit(*row..row + 1)),
        }
    }

    /// Returns the rows as a list.
    pub fn rows(&self) -> Cow<'_, [u32]> {
        match self {
            Selection::Indices(rows) => Cow::Borrowed(rows),
            Selection::Bitmap(marked) => Cow::Borrowed(marked.rows()),
            Selection::Range(..) => {
                let mut rows = Vec::with_capacity(self.len());
                self.stretches(|stretch| rows.extend(stretch));
                Cow::Owned(rows)
            }
        }
    }

    /// Converts the selection to a list of rows.
    pub fn into_rows(self) -> Vec<u32> {
        match self {
            Selection::Indices(rows) => rows,
            some => some.rows().into_owned(),
        }
    }

    /// Takes the rows as a list, and leaves none.
    pub fn take_rows(&mut self) -> Vec<u32> {
        std::mem::replace(self, Selection::Indices(Vec::new())).into_rows()
    }

    /// Returns the numbers of the rows. A row without a number is a broken invariant, which ends the
    /// run.
    pub fn of<'c>(&self, view: View<'_>, numbers: Numbers<'c>) -> Cow<'c, [f64]> {
        let found = self.present_numbers(numbers);
        if found.len() != self.len() {
            view.note_broken(NO_NUMBER);
        }
        found
    }

    /// Returns the numbers of the rows that have one.
    fn present_numbers<'c>(&self, numbers: Numbers<'c>) -> Cow<'c, [f64]> {
        let Numbers {
            values,
            column_view,
        } = numbers;
        match (self.read_method(numbers), column_view.presence()) {
            // The range has as many numbers as rows, so the slice holds the numbers in row order.
            (ReadMethod::Borrowed, _) => Cow::Borrowed(self.stretch_of(numbers, true)),
            (ReadMethod::Stretches, _) => {
                let mut own = Vec::with_capacity(self.len());
                self.stretches(|stretch| own.extend_from_slice(part_of(values, &stretch)));
                Cow::Owned(own)
            }
            (ReadMethod::Bitmap, Some(presence)) => {
                Cow::Owned(presence.values_of(&self.bitmap(), values))
            }
            _ => Cow::Owned(
                self.rows()
                    .iter()
                    .filter_map(|row| values.get(column_view.at(*row) as usize))
                    .copied()
                    .collect(),
            ),
        }
    }

    /// Returns the method by which [`Selection::of`] reads numbers.
    pub fn read_method(&self, numbers: Numbers<'_>) -> ReadMethod {
        let in_order = self.is_in_order();
        let among = self.stretch_of(numbers, in_order).len();
        if self.len() == among {
            return ReadMethod::Borrowed;
        }
        match (self, numbers.column_view.presence()) {
            (Selection::Range(..), None) => ReadMethod::Stretches,
            // For a sparse selection, single lookups cost less than all words of the span.
            (_, Some(_)) if self.len() >= among / 16 && in_order => ReadMethod::Bitmap,
            _ => ReadMethod::Gathered,
        }
    }

    /// Returns the numbers from the first to the last row; none if the rows are not ascending.
    fn stretch_of<'c>(
        &self,
        Numbers {
            values,
            column_view,
        }: Numbers<'c>,
        in_order: bool,
    ) -> &'c [f64] {
        let span = if in_order { self.span() } else { 0..0 };
        part_of(
            values,
            &(column_view.at(span.start)..column_view.at(span.end)),
        )
    }

    /// Returns whether the rows are ascending. Child rows that were collected in the order of their
    /// parent rows can be in another order.
    fn is_in_order(&self) -> bool {
        !matches!(self, Selection::Indices(rows) if !rows.is_sorted_by(|a, b| a < b))
    }

    /// Selects the rows whose number passes a test. A row without a number is a broken invariant,
    /// which ends the run.
    pub fn passing(
        &self,
        view: View<'_>,
        numbers: Numbers<'_>,
        test: impl Fn(f64) -> bool,
    ) -> Selection<'b> {
        let mut kept = vec![0; self.len()];
        let mut count = 0;
        // Each row is written before it is tested, and overwritten if it fails. So the loop has no
        // branch that the processor must predict.
        let mut keep_if_passing = |(row, value): (u32, &f64)| {
            kept.get_mut(count)
                .into_iter()
                .for_each(|place| *place = row);
            count += usize::from(test(*value));
        };
        match (self, numbers.column_view.presence()) {
            (Selection::Range(..), None) => self.stretches(|stretch| {
                let values = part_of(numbers.values, &stretch);
                if values.len() != stretch.len() {
                    view.note_broken(NO_NUMBER);
                }
                stretch.zip(values).for_each(&mut keep_if_passing)
            }),
            _ => self
                .rows()
                .iter()
                .copied()
                .zip(&*self.of(view, numbers))
                .for_each(&mut keep_if_passing),
        }
        kept.truncate(count);
        Selection::Indices(kept)
    }
}

/// Returns the row at an index of a range, not counting the rows in `hidden`.
fn nth_excluding(mut range: Range<u32>, hidden: &[u32], i: usize) -> Option<u32> {
    let (mut low, mut high) = (0, hidden.len());
    while low < high {
        let middle = (low + high) / 2;
        // `before` is the number of selected rows before this hidden row.
        let before = hidden
            .get(middle)
            .map_or(0, |row| (row - range.start) as usize - middle);
        (low, high) = if before <= i {
            (middle + 1, high)
        } else {
            (low, middle)
        };
    }
    // `low` hidden rows precede the row with number `i`.
    range.nth(i + low)
}

/// Returns the part of a list of one value for each row that belongs to a range of rows; an empty
/// part if the list is shorter.
pub(super) fn part_of<'t, T>(values: &'t [T], rows: &Range<u32>) -> &'t [T] {
    values
        .get(rows.start as usize..rows.end as usize)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{NO_NUMBER, Numbers, ReadMethod, Selection};
    use crate::answer::eval::node::View;
    use crate::answer::eval::work::Work;
    use crate::document::{Batch, Bitmap, Column, ColumnView, PresenceBitmap};
    use std::collections::HashSet;
    use std::mem::discriminant;

    /// Numbers of rows around the borders of the words of a bitmap, and one with a sparse selection.
    const LENGTHS: [u32; 8] = [0, 1, 63, 64, 65, 128, 130, 1500];

    /// Returns the sets of rows below `len` that the tests select, as one flag for each row.
    fn sets(len: u32) -> Vec<Vec<bool>> {
        let of = |test: &dyn Fn(u32) -> bool| (0..len).map(test).collect();
        vec![
            of(&|_| false),
            of(&|_| true),
            of(&|row| row % 2 == 1),
            of(&|row| row % 7 != 3),
            of(&|row| (63..=65).contains(&row)),
            of(&|row| row >= 64),
            of(&|row| row == 0 || row + 1 == len),
        ]
    }

    fn rows_of(flags: &[bool]) -> Vec<u32> {
        let rows = (0u32..).zip(flags);
        rows.filter_map(|(row, flag)| flag.then_some(row)).collect()
    }

    /// Calls a test with each form of a selection of the marked rows.
    fn each_form(flags: &[bool], test: impl Fn(&Selection<'_>)) {
        let rows = rows_of(flags);
        let others: Vec<bool> = flags.iter().map(|flag| !flag).collect();
        let hidden = rows_of(&others);
        let span = rows
            .first()
            .map_or(0..0, |first| *first..rows[rows.len() - 1] + 1);
        test(&Selection::excluding(0..flags.len() as u32, &hidden));
        test(&Selection::excluding(span, &hidden));
        test(&Selection::from_bitmap(
            rows.len(),
            Bitmap::from_rows(&rows),
        ));
        test(&Selection::Indices(rows));
    }

    /// Calls a test with the flags of each selection, and with each of its forms.
    fn each_selection(test: impl Fn(&[bool], &Selection<'_>)) {
        for flags in LENGTHS.into_iter().flat_map(sets) {
            each_form(&flags, |selection| test(&flags, selection));
        }
    }

    /// Returns the broken invariant of a function that reads by a view.
    fn broken(read: impl FnOnce(View<'_>)) -> Option<&'static str> {
        let (batch, work) = (Batch::new(), Work::new(1_000, 1_000, 1_000));
        read(View::new(&batch).counting(&work));
        work.broken()
    }

    #[test]
    fn each_form_has_the_marked_rows() {
        each_selection(|flags, selection| {
            let rows = rows_of(flags);
            let single: Vec<u32> = (0..rows.len()).filter_map(|i| selection.get(i)).collect();
            assert_eq!(single, rows);
            assert_eq!(selection.get(rows.len()), None);
            assert_eq!(*selection.rows(), *rows);
            assert_eq!(selection.clone().into_rows(), rows);
            assert_eq!(selection.bitmap().rows(rows.len()), rows);
            assert_eq!(
                (selection.len(), selection.is_empty()),
                (rows.len(), rows.is_empty())
            );
            let span = rows
                .first()
                .map_or(0..0, |first| *first..rows[rows.len() - 1] + 1);
            assert_eq!(selection.span(), span);
        });
    }

    #[test]
    fn pieces_have_the_rows_of_the_whole() {
        let all = |pieces: Vec<Selection<'_>>| {
            let rows = pieces.into_iter().flat_map(Selection::into_rows);
            rows.collect::<Vec<u32>>()
        };
        each_selection(|flags, selection| {
            for size in [1, 63, 64, 65, 1000] {
                assert_eq!(all(selection.pieces(size)), rows_of(flags));
                let growing = selection.growing_pieces(size);
                assert!(growing.iter().all(|piece| piece.len() <= size));
                assert_eq!(all(growing), rows_of(flags));
            }
        });
    }

    #[test]
    fn split_separates_the_rows_with_an_item() {
        for len in LENGTHS {
            for present in sets(len) {
                let presence = PresenceBitmap::of_rows(&rows_of(&present));
                for flags in sets(len) {
                    each_form(&flags, |selection| {
                        let (own, others) = selection.clone().split(Some(&presence));
                        let (with, without): (Vec<u32>, Vec<u32>) = rows_of(&flags)
                            .into_iter()
                            .partition(|row| present[*row as usize]);
                        assert_eq!((own.len(), others.len()), (with.len(), without.len()));
                        assert_eq!((own.into_rows(), others.into_rows()), (with, without));
                        let (own, others) = selection.clone().split(None);
                        assert_eq!((own.len(), others.into_rows()), (0, rows_of(&flags)));
                    });
                }
            }
        }
    }

    /// Returns the number that the tests store for a row. Neighbors are not ordered.
    fn number_of(row: u32) -> f64 {
        f64::from(row * 37 % 101)
    }

    /// Checks that a selection reads the numbers of its rows, and selects those that pass a test.
    fn check_numbers(flags: &[bool], selection: &Selection<'_>, numbers: Numbers<'_>) {
        let rows = rows_of(flags);
        let passing = |row: &u32| number_of(*row) < 50.0;
        let failure = broken(|view| {
            let expected: Vec<f64> = rows.iter().copied().map(number_of).collect();
            assert_eq!(*selection.of(view, numbers), *expected);
            let passed = selection.passing(view, numbers, |number| number < 50.0);
            assert_eq!(
                passed.into_rows(),
                rows.iter().copied().filter(passing).collect::<Vec<_>>()
            );
        });
        assert_eq!(failure, None);
    }

    #[test]
    fn numbers_are_those_of_the_rows_by_each_method() {
        let column = Column::Boolean(Vec::new());
        let methods = std::cell::RefCell::new(HashSet::new());
        for len in LENGTHS {
            for present in sets(len) {
                let with: Vec<u32> = rows_of(&present);
                let presence = PresenceBitmap::of_rows(&with);
                let dense: Vec<f64> = with.iter().copied().map(number_of).collect();
                let all: Vec<f64> = (0..len).map(number_of).collect();
                for flags in sets(len) {
                    let flags: Vec<bool> =
                        flags.iter().zip(&present).map(|(a, b)| *a && *b).collect();
                    let optional = Numbers {
                        values: &dense,
                        column_view: ColumnView::new(&column, Some(&presence)),
                    };
                    let required = Numbers {
                        values: &all,
                        column_view: ColumnView::new(&column, None),
                    };
                    each_form(&flags, |selection| {
                        for numbers in [optional, required] {
                            let method = selection.read_method(numbers);
                            methods.borrow_mut().insert(discriminant(&method));
                            check_numbers(&flags, selection, numbers);
                        }
                    });
                }
            }
        }
        let all = [
            ReadMethod::Borrowed,
            ReadMethod::Stretches,
            ReadMethod::Bitmap,
            ReadMethod::Gathered,
        ];
        assert!(
            all.iter()
                .all(|method| methods.borrow().contains(&discriminant(method)))
        );
    }

    #[test]
    fn rows_in_another_order_keep_their_numbers() {
        let column = Column::Boolean(Vec::new());
        let values: Vec<f64> = (0..130).map(number_of).collect();
        let numbers = Numbers {
            values: &values,
            column_view: ColumnView::new(&column, None),
        };
        let rows = vec![128, 64, 65, 0, 63];
        let selection = Selection::Indices(rows.clone());
        assert_eq!(selection.read_method(numbers), ReadMethod::Gathered);
        let expected: Vec<f64> = rows.into_iter().map(number_of).collect();
        let failure = broken(|view| assert_eq!(*selection.of(view, numbers), *expected));
        assert_eq!(failure, None);
    }

    #[test]
    fn row_without_a_number_is_a_broken_invariant() {
        let column = Column::Boolean(Vec::new());
        let (flags, values) = ([true, true, false, true, true], [1.0, 2.0, 3.0, 4.0]);
        let presence = PresenceBitmap::of_rows(&[0, 1, 2, 3, 4]);
        for presence in [None, Some(&presence)] {
            let numbers = Numbers {
                values: &values,
                column_view: ColumnView::new(&column, presence),
            };
            each_form(&flags, |selection| {
                let read = broken(|view| drop(selection.of(view, numbers)));
                let tested = broken(|view| drop(selection.passing(view, numbers, |_| true)));
                assert_eq!((read, tested), (Some(NO_NUMBER), Some(NO_NUMBER)));
            });
            let single = |row| broken(|view| assert!(numbers.at(view, row) != Some(0.0)));
            assert_eq!((single(3), single(4)), (None, Some(NO_NUMBER)));
        }
    }
}
