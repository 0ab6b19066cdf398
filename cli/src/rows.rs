//! Rows of a query in parts, so that not all of them are in memory.

use crate::data::DataSet;
use crate::outcome::Failure;
use crate::repository::{Repository, RepositoryQuery, ResultPage};
use aqlite::aql::{Plan, ResultSet};
use std::ops::ControlFlow;

/// The receiver of a part of rows.
type Take<'t> = dyn FnMut(&ResultSet) -> Result<(), Failure> + 't;

/// The rows of a query. They can be read several times, and are the same each time.
pub struct Rows<'r> {
    source: RowSource<'r>,
    /// The most rows that are read.
    limit: usize,
}

/// The source of the rows of a query.
pub enum RowSource<'r> {
    /// All rows.
    Whole(ResultSet),
    /// The pages of one state of a repository.
    Pages {
        /// The repository.
        repository: &'r Repository,
        /// The query.
        query: &'r RepositoryQuery<'r>,
        /// The name of the state.
        snapshot: String,
    },
    /// The rows of segments of files.
    Segments {
        /// The files.
        data: &'r DataSet,
        /// The query, whose rows come from one document each.
        plan: &'r Plan,
        /// The time of the query, ISO 8601 with zone.
        now: &'r str,
    },
}

impl<'r> Rows<'r> {
    /// Creates the rows of a source.
    pub fn of(source: RowSource<'r>) -> Rows<'r> {
        Rows {
            source,
            limit: usize::MAX,
        }
    }

    /// Keeps the first rows only, if there is a limit.
    #[must_use]
    pub fn limited(mut self, limit: Option<usize>) -> Rows<'r> {
        self.limit = limit.unwrap_or(self.limit);
        if let RowSource::Whole(result) = &mut self.source {
            result.truncate(self.limit);
        }
        self
    }

    /// Passes the rows to `take`, in parts. Each part has the columns; there is at least one, which
    /// may have no row.
    ///
    /// # Errors
    /// If the rows cannot be read; as `take`.
    pub fn each(&self, take: &mut Take<'_>) -> Result<(), Failure> {
        let mut left = self.limit;
        let mut pass = |mut part: ResultSet, take: &mut Take<'_>| {
            part.truncate(left);
            left -= part.len();
            take(&part)?;
            Ok(match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        };
        match &self.source {
            RowSource::Whole(result) => take(result),
            RowSource::Pages {
                repository,
                query,
                snapshot,
            } => {
                let pages = &mut |page: ResultPage| pass(page.into_result()?, take);
                repository.pages(query, Some(snapshot), pages).map(drop)
            }
            RowSource::Segments { data, plan, now } => {
                data.answer_in_parts(plan, now, &mut |part| pass(part, take))
            }
        }
    }
}
