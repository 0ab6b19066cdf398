//! Top-k: rows that ORDER BY and LIMIT certainly exclude are removed before their cells are made.

use super::block::{Block, NO_RANK};
use super::execution_path::{ExecutionPath, Taken};
use super::output::best_of;
use crate::answer::query::{ColumnValue, Expr, OrderBy, Query};

/// The best ranks of the rows that earlier slices of documents gave, so that later slices can leave
/// out what they exclude. Only ranks that stand for exactly one number are among them.
#[derive(Clone, Debug, Default)]
pub(super) struct BestRanks {
    /// At most k, ascending.
    ranks: Vec<i64>,
    /// Those of the slice that is being evaluated, which may be evaluated again.
    pending: Vec<i64>,
}

/// The largest k for which ranks are carried from slice to slice.
const CARRIED: usize = 4096;

impl BestRanks {
    /// Adds the ranks of a slice whose rows are all in the output.
    pub fn commit(&mut self, wanted: Option<usize>) {
        let Some(wanted) = wanted.filter(|wanted| *wanted <= CARRIED) else {
            return self.discard();
        };
        self.ranks.append(&mut self.pending);
        self.ranks.sort_unstable();
        self.ranks.truncate(wanted);
    }

    /// Forgets the ranks of a slice that is evaluated again.
    pub fn discard(&mut self) {
        self.pending.clear();
    }

    /// The rank of the last of the k best rows, if there are as many.
    fn last(&self, wanted: usize) -> Option<i64> {
        self.ranks.get(wanted.checked_sub(1)?).copied()
    }
}

/// A filter that collects all blocks, then removes the rows beyond the first k in ORDER BY.
pub(super) struct TopK<'b> {
    path: usize,
    descending: bool,
    wanted: usize,
    /// Whether rows with equal values of the path come in default order.
    is_only_key: bool,
    /// The blocks, and whether they are of numbers.
    blocks: Vec<(Block<'b>, bool)>,
    /// The ranks of the rows, block by block; the best has the lowest rank. A row without a rank
    /// is never removed.
    ranks: Vec<i64>,
}

impl<'b> TopK<'b> {
    /// For a query that orders by a path of a variable before all else and wants its first rows
    /// only.
    pub fn of(query: &Query, variable: usize) -> Option<TopK<'b>> {
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
        let own = query.paths.get(path)?.variable == variable;
        own.then(|| TopK {
            path,
            descending: key.descending,
            wanted,
            is_only_key: query.order.len() == 1,
            blocks: Vec::with_capacity(16),
            ranks: Vec::new(),
        })
    }

    /// Keeps a block for the end; returns it if its rows have no ranks.
    pub fn hold(&mut self, block: Block<'b>, taken: &Taken) -> Option<Block<'b>> {
        let start = self.ranks.len();
        self.ranks.reserve(block.rows.len());
        if !block.add_ranks(self.path, &mut self.ranks) {
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
        let of_numbers = block.is_of_numbers(self.path);
        if !block.rows.is_empty() {
            taken.note(if of_numbers {
                ExecutionPath::TopNumbers
            } else {
                ExecutionPath::TopTimes
            });
        }
        self.blocks.push((block, of_numbers));
        None
    }

    /// The blocks with the rows that are left. `best` has the ranks of earlier slices, and gets
    /// those of this one.
    pub fn release(self, best: &mut BestRanks) -> Vec<Block<'b>> {
        // Ranks of numbers and of times cannot be compared, so each kind has its own limit.
        let (numbers, points) = (self.worst(true), self.worst(false));
        // A row of a later slice loses against equal rows of earlier ones.
        let last = best.last(self.wanted).filter(|_| self.is_only_key);
        let (path, mut ranks) = (self.path, self.ranks.into_iter());
        let blocks = self.blocks.into_iter();
        let released = blocks.map(|(mut block, of_numbers)| {
            let worst = if of_numbers { numbers } else { points };
            let is_exact = of_numbers && block.exact_numbers(path).is_some();
            block.keep(|_, _| {
                let Some(rank) = ranks.next().filter(|rank| *rank <= worst) else {
                    return false;
                };
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

    /// The rank of the last row that the window may reach, of numbers or of points in time.
    fn worst(&self, of_numbers: bool) -> i64 {
        let of_kind = self
            .blocks
            .iter()
            .filter(|(_, kind)| *kind == of_numbers)
            .map(|(block, _)| block.rows.len())
            .sum();
        // All rows of this kind may be among the first k.
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

    /// Returns the ranks of the rows of numbers or of points in time, of which there are `count`.
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

/// Returns the number at `place` of the numbers in ascending order.
fn nth_smallest(mut numbers: Vec<i64>, place: usize) -> Option<i64> {
    (place < numbers.len()).then(|| *numbers.select_nth_unstable(place).1)
}
