//! Rows of a query in parts, so that not all of them are in memory.

use crate::data::DataSet;
use crate::outcome::Failure;
use crate::repository::{Repository, RepositoryQuery, ResultPage};
use aqlite::aql::{Plan, ResultSet};
use std::ops::ControlFlow;

/// The rows of a query. They can be read several times, and are the same each time.
pub enum Rows<'r> {
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

impl Rows<'_> {
    /// Passes at most `limit` rows to `take`, in parts. Each part has the columns; there is at least
    /// one, which may have no row.
    ///
    /// # Errors
    /// If the rows cannot be read; as `take`.
    pub fn each(
        &self,
        limit: usize,
        take: &mut dyn FnMut(&ResultSet) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut left = limit;
        let mut pass = |mut part: ResultSet| {
            part.truncate(left);
            left -= part.len();
            take(&part)?;
            Ok(match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        };
        match self {
            Rows::Whole(result) if result.len() <= limit => take(result),
            Rows::Whole(result) => pass(result.clone()).map(drop),
            Rows::Pages {
                repository,
                query,
                snapshot,
            } => {
                let pages = &mut |page: ResultPage| pass(page.into_result()?);
                repository.pages(query, Some(snapshot), pages).map(drop)
            }
            Rows::Segments { data, plan, now } => data.answer_in_parts(plan, now, &mut pass),
        }
    }
}
