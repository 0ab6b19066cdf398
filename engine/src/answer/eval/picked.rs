//! Rows of a table, picked from it: a range without some, a list, or a bit each.

use super::strategy::ExecutionPath;
use crate::document::{Bits, Flag, Lane};
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::Range;

/// The way in which the numbers of a selection are read from their column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// As they are stored, one stretch.
    Borrowed,
    /// Stretch by stretch.
    Stretches,
    /// By the bits of the selection and those of the rows that have a number.
    Bitmap,
    /// Row by row.
    Gathered,
}

impl Reading {
    /// The name of this execution path.
    pub fn path(self) -> ExecutionPath {
        match self {
            Reading::Borrowed => ExecutionPath::NumbersBorrowed,
            Reading::Stretches => ExecutionPath::NumbersStretches,
            Reading::Bitmap => ExecutionPath::NumbersBitmap,
            Reading::Gathered => ExecutionPath::NumbersGathered,
        }
    }
}

/// Rows of a table.
#[derive(Clone)]
pub(super) enum Picked<'b> {
    /// A range, without some rows of it.
    But(Range<u32>, &'b [u32]),
    These(Vec<u32>),
    /// Those with a bit.
    Marked(Marked),
}

/// Rows, a bit each.
#[derive(Clone)]
pub(super) struct Marked {
    bits: Bits,
    count: usize,
    /// The rows, once many were asked for.
    rows: OnceCell<Vec<u32>>,
    /// How many were looked for.
    asked: Cell<u8>,
}

impl Marked {
    fn rows(&self) -> &[u32] {
        self.rows.get_or_init(|| self.bits.rows(self.count))
    }

    /// The row with a number: a few are looked for among the bits.
    fn get(&self, i: usize) -> Option<u32> {
        const FEW: u8 = 16;
        if self.asked.get() == FEW || self.rows.get().is_some() {
            return self.rows().get(i).copied();
        }
        self.asked.set(self.asked.get() + 1);
        let mut before = i;
        for (start, word) in self.bits.words() {
            let count = word.count_ones() as usize;
            if before < count {
                let left = (0..before).fold(word, |left, _| left & (left - 1));
                return Some(start + left.trailing_zeros());
            }
            before -= count;
        }
        None
    }
}

/// The numbers of a slot, one a fragment that has it.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'b> {
    pub values: &'b [f64],
    pub lane: Lane<'b>,
}

impl Numbers<'_> {
    /// That of a fragment.
    pub fn at(&self, row: u32) -> Option<f64> {
        self.values.get(self.lane.at(row) as usize).copied()
    }
}

impl<'b> Picked<'b> {
    /// The rows of a range that are not among `hidden`, which is in order.
    pub fn but(range: Range<u32>, hidden: &'b [u32]) -> Picked<'b> {
        let at = |row: u32| hidden.partition_point(|hidden| *hidden < row);
        let hidden = hidden.get(at(range.start)..at(range.end)).unwrap_or_default();
        Picked::But(range, hidden)
    }

    /// The same in pieces of about so many rows.
    pub fn pieces(&self, rows: usize) -> Vec<Picked<'b>> {
        match self {
            Picked::But(range, hidden) => {
                range.clone().step_by(rows).map(|start| Picked::but(start..range.end.min(start + rows as u32), hidden)).collect()
            }
            Picked::These(all) => all.chunks(rows).map(|rows| Picked::These(rows.to_vec())).collect(),
            Picked::Marked(marked) => {
                let pieces = marked.bits.pieces(marked.count.div_ceil(rows));
                pieces.map(|bits| Picked::marked(bits.count(), bits)).collect()
            }
        }
    }

    /// Those for which a flag stands, and the others.
    pub fn split(self, flag: Option<&Flag>) -> (Picked<'b>, Picked<'b>) {
        let none = Picked::These(Vec::new());
        let Some(flag) = flag else { return (none, self) };
        let count = self.len();
        let mut others = match self {
            Picked::These(rows) => {
                let (own, others) = rows.into_iter().partition(|row| flag.stands(*row));
                return (Picked::These(own), Picked::These(others));
            }
            Picked::But(ref range, _) => match flag.before(range.end) - flag.before(range.start) {
                0 => return (none, self),
                all if all as usize == range.len() => return (self, none),
                _ => self.bits().into_owned(),
            },
            Picked::Marked(marked) => marked.bits,
        };
        let (own, stand) = others.split(flag);
        (Picked::dense(own, stand), Picked::dense(others, count - stand))
    }

    /// The rows, a bit each.
    pub fn bits(&self) -> Cow<'_, Bits> {
        match self {
            Picked::Marked(marked) => Cow::Borrowed(&marked.bits),
            Picked::But(range, hidden) => {
                let mut bits = Bits::of_range(range);
                hidden.iter().for_each(|row| bits.clear(*row));
                Cow::Owned(bits)
            }
            Picked::These(rows) => Cow::Owned(Bits::of_rows(rows)),
        }
    }

    /// The rows with a bit, of which there are so many; a list where that is quicker to go through.
    fn dense(bits: Bits, count: usize) -> Picked<'b> {
        if count < bits.words_held() / 4 {
            return Picked::These(bits.rows(count));
        }
        Picked::marked(count, bits)
    }

    fn marked(count: usize, bits: Bits) -> Picked<'b> {
        Picked::Marked(Marked { bits, count, rows: OnceCell::new(), asked: Cell::new(0) })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Picked::But(range, hidden) => range.len() - hidden.len(),
            Picked::These(rows) => rows.len(),
            Picked::Marked(marked) => marked.count,
        }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// From the first row to the last, of rows in order.
    pub fn span(&self) -> Range<u32> {
        let ends = self.get(0).zip(self.len().checked_sub(1).and_then(|last| self.get(last)));
        ends.map_or(0..0, |(first, last)| first..last + 1)
    }

    /// The row with a number.
    pub fn get(&self, i: usize) -> Option<u32> {
        match self {
            Picked::But(range, hidden) => nth_but(range.clone(), hidden, i),
            Picked::These(rows) => rows.get(i).copied(),
            Picked::Marked(marked) => marked.get(i),
        }
    }

    /// Visits the rows, in stretches of one behind the other.
    fn stretches(&self, mut visit: impl FnMut(Range<u32>)) {
        match self {
            Picked::But(range, hidden) => {
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

    /// The rows.
    pub fn rows(&self) -> Cow<'_, [u32]> {
        match self {
            Picked::These(rows) => Cow::Borrowed(rows),
            Picked::Marked(marked) => Cow::Borrowed(marked.rows()),
            Picked::But(..) => {
                let mut rows = Vec::with_capacity(self.len());
                self.stretches(|stretch| rows.extend(stretch));
                Cow::Owned(rows)
            }
        }
    }

    /// The rows, for oneself.
    pub fn into_rows(self) -> Vec<u32> {
        match self {
            Picked::These(rows) => rows,
            some => some.rows().into_owned(),
        }
    }

    /// What a slot of numbers has in these rows, which all have it.
    pub fn of<'c>(&self, numbers: Numbers<'c>) -> Cow<'c, [f64]> {
        let Numbers { values, lane } = numbers;
        match (self.reading(numbers), lane.flag()) {
            // As many numbers as rows from the first to the last: the rows are in order.
            (Reading::Borrowed, _) => Cow::Borrowed(self.stretch_of(numbers, true)),
            (Reading::Stretches, _) => {
                let mut own = Vec::with_capacity(self.len());
                self.stretches(|stretch| own.extend_from_slice(part_of(values, &stretch)));
                Cow::Owned(own)
            }
            (Reading::Bitmap, Some(flag)) => Cow::Owned(flag.pick(&self.bits(), values)),
            _ => Cow::Owned(self.rows().iter().filter_map(|row| values.get(lane.at(*row) as usize)).copied().collect()),
        }
    }

    /// The way in which [`Picked::of`] reads numbers.
    pub fn reading(&self, numbers: Numbers<'_>) -> Reading {
        let in_order = self.is_in_order();
        let among = self.stretch_of(numbers, in_order).len();
        if self.len() == among {
            return Reading::Borrowed;
        }
        match (self, numbers.lane.flag()) {
            (Picked::But(..), None) => Reading::Stretches,
            (_, Some(_)) if self.len() >= among / 16 && in_order => Reading::Bitmap,
            _ => Reading::Gathered,
        }
    }

    /// The numbers from the first row to the last; none where the rows are in no order.
    fn stretch_of<'c>(&self, Numbers { values, lane }: Numbers<'c>, in_order: bool) -> &'c [f64] {
        let span = if in_order { self.span() } else { 0..0 };
        part_of(values, &(lane.at(span.start)..lane.at(span.end)))
    }

    /// False for child rows that were collected in the order of their parent rows, where that is not the order of their own table.
    fn is_in_order(&self) -> bool {
        !matches!(self, Picked::These(rows) if !rows.is_sorted_by(|a, b| a < b))
    }

    /// The rows whose value passes a test.
    pub fn passing(&self, numbers: Numbers<'_>, test: impl Fn(f64) -> bool) -> Picked<'b> {
        let mut kept = vec![0; self.len()];
        let mut count = 0;
        // A row is written down before it is judged: a place for each, and no branch to be guessed.
        let mut judge = |(row, value): (u32, &f64)| {
            kept.get_mut(count).into_iter().for_each(|place| *place = row);
            count += usize::from(test(*value));
        };
        match (self, numbers.lane.flag()) {
            (Picked::But(..), None) => self.stretches(|stretch| stretch.clone().zip(part_of(numbers.values, &stretch)).for_each(&mut judge)),
            _ => self.rows().iter().copied().zip(&*self.of(numbers)).for_each(&mut judge),
        }
        kept.truncate(count);
        Picked::These(kept)
    }
}

/// The row with a number in a range without some.
fn nth_but(mut range: Range<u32>, hidden: &[u32], i: usize) -> Option<u32> {
    let (mut low, mut high) = (0, hidden.len());
    while low < high {
        let middle = (low + high) / 2;
        let before = hidden.get(middle).map_or(0, |row| (row - range.start) as usize - middle);
        (low, high) = if before <= i { (middle + 1, high) } else { (low, middle) };
    }
    range.nth(i + low)
}

/// The values of some rows, of those of all.
pub(super) fn part_of<'t, T>(values: &'t [T], rows: &Range<u32>) -> &'t [T] {
    values.get(rows.start as usize..rows.end as usize).unwrap_or_default()
}
