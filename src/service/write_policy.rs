//! The policy of a write: it relies on cached facts first, and on facts of the database only if
//! that does not succeed.
//!
//! A write depends on facts: its EHR exists and is modifiable, these are the definitions of its
//! template, this is the version that it follows. Reading them costs round trips to the database.
//! The first attempt ([`FactSource::Cached`]) reads as little as it can. Its commit names these facts as
//! preconditions, and the database writes nothing unless they hold. The second attempt
//! ([`FactSource::Stored`]) reads the facts. It finds the error to report, or succeeds if a cached fact
//! was outdated.
//!
//! Single writes and contributions call [`Service::commit_with_preconditions`]. Bulk loads follow
//! the same policy with many commits at a time: `Lines` in `bulk` has the facts of its lines.
//! Imports, and loads of an administrator, use stored facts only.

use super::Service;
use super::admission::LARGE;
use super::call::Call;
use super::commit::{ChangeSet, Committed};
use super::error::Failure;
use super::ids::is_uuid;
use super::templates::FactSource;
use crate::store::repository::Repository;

/// The status of an answer if the database is unavailable.
const UNAVAILABLE: u16 = 503;

impl<R: Repository> Service<R> {
    /// Commits the change set that `change_set` makes from cached facts. If that writes nothing,
    /// commits the one that it makes from stored facts, and returns its error.
    ///
    /// Both attempts have the same time and draw the same identifiers, so the result does not
    /// depend on the caches. Steps that can fail after the commit must follow this function: as a
    /// part of an attempt, their failure would repeat the commit.
    pub(crate) async fn commit_with_preconditions(
        &self,
        call: &Call<'_>,
        change_set: impl AsyncFn(FactSource) -> Result<ChangeSet, Failure>,
    ) -> Result<Committed, Failure> {
        if may_rely_on_caches(call) {
            call.begin_attempt(FactSource::Cached);
            let committed = match change_set(FactSource::Cached).await {
                Ok(set) => {
                    let set = ChangeSet {
                        names_templates: true,
                        ..set
                    };
                    Some(self.commit(call, set).await)
                }
                // Without the database there is no second attempt.
                Err(failure) if failure.status == UNAVAILABLE => return Err(failure),
                Err(_) => None,
            };
            match committed {
                // Such an error means that nothing was written.
                Some(Err(failure)) if failure.status < 500 => {}
                Some(outcome) => return outcome,
                None => {}
            }
        }
        call.begin_attempt(FactSource::Stored);
        self.commit(call, change_set(FactSource::Stored).await?)
            .await
    }
}

/// Returns whether the first attempt may succeed. A long body is not read twice.
fn may_rely_on_caches(call: &Call<'_>) -> bool {
    let has_owner = call.demographic || call.optional_param(0).is_some_and(is_uuid);
    has_owner && call.request.body.len() < LARGE
}
