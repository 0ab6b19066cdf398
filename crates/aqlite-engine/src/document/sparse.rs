//! Values that only some rows of a column have.

use super::column::push;

/// The values of the rows that another list of a column marks: the texts of numbers and date-times
/// whose text does not follow from their value.
#[derive(Clone, Debug)]
pub(super) struct SparseValues<T> {
    /// Rows in ascending order with their values.
    entries: Vec<(u32, T)>,
}

impl<T> SparseValues<T> {
    /// Restores the values from stored entries; `marks` says of each row whether it is marked.
    ///
    /// Returns `None` if the entries are damaged: unless they are the marked rows, each once and in
    /// ascending order.
    pub fn from_entries(
        entries: Vec<(u32, T)>,
        marks: impl Iterator<Item = bool>,
    ) -> Option<SparseValues<T>> {
        let marked = (0..).zip(marks).filter(|(_, is_marked)| *is_marked);
        let rows = entries.iter().map(|(row, _)| *row);
        rows.eq(marked.map(|(row, _)| row))
            .then_some(SparseValues { entries })
    }

    /// Appends the value of a row, which must be greater than all rows before.
    pub fn push(&mut self, row: u32, value: T) {
        push(&mut self.entries, (row, value));
    }

    /// Returns the value of a row, by bisection.
    pub fn get(&self, row: u32) -> Option<&T> {
        let at = self.entries.binary_search_by_key(&row, |(row, _)| *row);
        self.entries.get(at.ok()?).map(|(_, value)| value)
    }

    /// Returns rows and values, by row in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().map(|(row, value)| (*row, value))
    }

    /// Returns an estimate of the bytes in use, without those to which values refer.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(u32, T)>()
    }
}

impl<T> Default for SparseValues<T> {
    fn default() -> SparseValues<T> {
        SparseValues {
            entries: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_row() {
        let mut values = SparseValues::default();
        for (row, value) in [(1, 'a'), (4, 'b'), (9, 'c')] {
            values.push(row, value);
        }
        let found: Vec<_> = (0..11).filter_map(|row| values.get(row)).collect();
        assert_eq!(found, [&'a', &'b', &'c']);
        assert_eq!(values.get(4), Some(&'b'));
        assert_eq!(values.get(5), None);
        assert_eq!(values.iter().map(|(row, _)| row).sum::<u32>(), 14);
    }

    #[test]
    fn entries_must_be_those_of_the_marked_rows() {
        let is_sound = |rows: &[u32]| {
            let entries = rows.iter().map(|row| (*row, ())).collect();
            SparseValues::from_entries(entries, [false, true, true, false].into_iter()).is_some()
        };
        assert!(is_sound(&[1, 2]));
        for rows in [
            &[1][..],
            &[2],
            &[2, 1],
            &[1, 1],
            &[0, 1, 2],
            &[1, 2, 3],
            &[1, 2, 4],
        ] {
            assert!(!is_sound(rows), "{rows:?}");
        }
    }
}
