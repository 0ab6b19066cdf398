//! Top-k: rows that ORDER BY and LIMIT certainly exclude are removed before their cells are made.

use super::block::{Block, NO_RANK};
use super::execution_path::ExecutionPath;
use super::node::View;
use super::output::best_of;
use crate::answer::query::{ColumnValue, Expr, OrderBy, Query};
use aqlite_rm::order;

/// The best ranks of the rows of earlier slices of documents. Later slices leave out rows that
/// cannot be among the first k. A rank is included only if it determines its number exactly.
#[derive(Clone, Debug, Default)]
pub(super) struct BestRanks {
    /// At most k ranks in ascending order.
    ranks: Vec<i64>,
    /// The ranks of the current slice, which may be evaluated again.
    pending: Vec<i64>,
}

/// The largest k for which ranks are kept from slice to slice.
const MAX_CARRIED_RANKS: usize = 4096;

impl BestRanks {
    /// Includes the ranks of a slice whose rows are all in the output.
    pub fn commit(&mut self, wanted: Option<usize>) {
        let Some(wanted) = wanted.filter(|wanted| *wanted <= MAX_CARRIED_RANKS) else {
            return self.discard();
        };
        self.ranks.append(&mut self.pending);
        order::sort(&mut self.ranks);
        self.ranks.truncate(wanted);
    }

    /// Discards the ranks of a slice that is evaluated again.
    pub fn discard(&mut self) {
        self.pending.clear();
    }

    /// Returns the rank of the k-th row; `None` if there are fewer rows.
    fn last(&self, wanted: usize) -> Option<i64> {
        self.ranks.get(wanted.checked_sub(1)?).copied()
    }
}

/// A filter that collects all blocks, then removes the rows that cannot be among the first k in
/// ORDER BY.
pub(super) struct TopK<'b> {
    path: usize,
    descending: bool,
    wanted: usize,
    /// Whether the path is the only sort key, so that rows with equal values have default order.
    is_only_key: bool,
    /// The blocks, each with whether its values are numbers.
    blocks: Vec<(Block<'b>, bool)>,
    /// The ranks of the rows, block by block. The best row has the lowest rank. A row without a
    /// rank is never removed.
    ranks: Vec<i64>,
}

impl<'b> TopK<'b> {
    /// Creates the filter for a query with LIMIT whose first sort key is a path of one of some
    /// variables; `None` for any other query.
    pub fn of(query: &Query, variables: &[usize]) -> Option<TopK<'b>> {
        let key = query.order.first()?;
        let path = match key.key {
            OrderBy::Path(path) => path,
            OrderBy::Column(column) => match query.select.get(column)?.value {
                ColumnValue::Expr(Expr::Path(path)) => path,
                _ => return None,
            },
        };
        let is_plain = query
            .select
            .iter()
            .all(|column| matches!(column.value, ColumnValue::Expr(_)));
        let wanted = best_of(query).filter(|wanted| is_plain && *wanted > 0)?;
        let own = variables.contains(&query.paths.get(path)?.variable);
        own.then(|| TopK {
            path,
            descending: key.descending,
            wanted,
            is_only_key: query.order.len() == 1,
            blocks: Vec::with_capacity(16),
            ranks: Vec::new(),
        })
    }

    /// Collects a block. Returns it if its rows have no ranks, so that the filter cannot apply.
    pub fn hold(&mut self, block: Block<'b>, view: View<'_>) -> Option<Block<'b>> {
        let start = self.ranks.len();
        self.ranks.reserve(block.rows.len());
        if !block.add_ranks(view, self.path, &mut self.ranks) {
            return Some(block);
        }
        // Bitwise NOT reverses the order and, unlike negation, cannot overflow.
        if self.descending {
            self.ranks
                .iter_mut()
                .skip(start)
                .filter(|rank| **rank != NO_RANK)
                .for_each(|rank| *rank = !*rank);
        }
        let of_numbers = block.block_of(self.path).numbers(self.path).is_some();
        if !block.rows.is_empty() {
            view.note(if of_numbers {
                ExecutionPath::TopNumbers
            } else {
                ExecutionPath::TopTimes
            });
        }
        self.blocks.push((block, of_numbers));
        None
    }

    /// Returns the blocks with the remaining rows. `best` has the ranks of earlier slices, and
    /// receives those of this one.
    pub fn release(self, view: View<'_>, best: &mut BestRanks) -> Vec<Block<'b>> {
        // Ranks of numbers and of times cannot be compared, so each kind has its own limit.
        let (numbers, points) = (self.worst(true), self.worst(false));
        // In default order, a row of a later slice follows equal rows of earlier slices.
        let last = best.last(self.wanted).filter(|_| self.is_only_key);
        let (path, mut ranks) = (self.path, self.ranks.into_iter());
        let blocks = self.blocks.into_iter();
        let released = blocks.map(|(mut block, of_numbers)| {
            let worst = if of_numbers { numbers } else { points };
            let is_exact = of_numbers && block.block_of(path).exact_numbers(path).is_some();
            block.keep(|_, _| {
                let Some(rank) = ranks.next() else {
                    view.note_broken("a row of a top-k query has no rank");
                    return false;
                };
                if rank > worst {
                    return false;
                }
                // Only exact ranks may be compared with those of earlier slices.
                if !is_exact || rank == NO_RANK {
                    return true;
                }
                if last.is_some_and(|last| rank >= last) {
                    return false;
                }
                best.pending.push(rank);
                true
            });
            block
        });
        released.collect()
    }

    /// Returns the greatest rank, of numbers or of points in time, that can be among the first k.
    fn worst(&self, of_numbers: bool) -> i64 {
        let of_kind = self
            .blocks
            .iter()
            .filter(|(_, kind)| *kind == of_numbers)
            .map(|(block, _)| block.rows.len())
            .sum();
        // All rows of this kind can be among the first k.
        if of_kind <= self.wanted {
            return i64::MAX;
        }
        let own = self.ranks_of(of_numbers, of_kind);
        let worst = if own.len() > self.wanted {
            nth_smallest(own, self.wanted - 1)
        } else {
            None
        };
        worst.unwrap_or(i64::MAX)
    }

    /// Returns the ranks of the rows of numbers or of points in time; `count` is their number.
    fn ranks_of(&self, of_numbers: bool, count: usize) -> Vec<i64> {
        let mut start = 0;
        let mut own = Vec::with_capacity(count);
        for (block, kind) in &self.blocks {
            let end = start + block.rows.len();
            if *kind == of_numbers {
                own.extend(
                    self.ranks
                        .get(start..end)
                        .unwrap_or_default()
                        .iter()
                        .filter(|rank| **rank != NO_RANK),
                );
            }
            start = end;
        }
        own
    }
}

/// Returns the number at an index of the numbers in ascending order.
fn nth_smallest(mut numbers: Vec<i64>, place: usize) -> Option<i64> {
    (place < numbers.len()).then(|| *numbers.select_nth_unstable(place).1)
}

#[cfg(test)]
mod tests {
    use super::{BestRanks, MAX_CARRIED_RANKS, nth_smallest};

    #[test]
    fn nth_smallest_is_that_of_the_sorted_numbers() {
        let numbers: Vec<i64> = (0..65).map(|i| i * 37 % 31 - 15).collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        for place in 0..70 {
            let expected = sorted.get(place).copied();
            assert_eq!(nth_smallest(numbers.clone(), place), expected);
        }
    }

    #[test]
    fn best_ranks_of_slices_are_the_first_of_all() {
        let (mut best, mut all) = (BestRanks::default(), Vec::new());
        for slice in [vec![5, 3, 9], vec![], vec![4, 4, 1], vec![8]] {
            all.extend(&slice);
            all.sort_unstable();
            best.pending = slice;
            best.commit(Some(3));
            assert_eq!(best.ranks, all[..all.len().min(3)]);
            assert_eq!(best.last(3), all.get(2).copied());
            assert_eq!(best.last(0), None);
        }
    }

    #[test]
    fn ranks_of_a_repeated_slice_and_of_a_large_limit_are_discarded() {
        let mut best = BestRanks {
            ranks: Vec::new(),
            pending: vec![1],
        };
        best.discard();
        best.commit(Some(3));
        assert!(best.ranks.is_empty());
        for wanted in [None, Some(MAX_CARRIED_RANKS + 1)] {
            best.pending = vec![1];
            best.commit(wanted);
            assert!(best.ranks.is_empty() && best.pending.is_empty());
        }
    }
}
