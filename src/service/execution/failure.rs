//! The failures of runs of guides, by the EHRs that cause them.

use super::named;
use crate::gdl::{Exceeded, Limit};
use crate::service::error::Failure;

/// A failure of the runs of a call.
pub(in crate::service) enum RunFailure {
    /// The whole call failed.
    Call(Failure),
    /// The EHRs have too much data together. Fewer of them may succeed.
    Data(Failure),
    /// The run on this EHR failed. It is the first one that exists.
    Ehr(String, Failure),
}

impl RunFailure {
    /// Creates the failure of a run on an EHR. A broken invariant concerns the whole call.
    pub fn of_run(ended: &Exceeded, guide_id: &str, ehr_id: &str) -> RunFailure {
        let failure = Failure::exceeded(ended).within(&named(guide_id, ehr_id));
        match ended.limit {
            Limit::Broken(_) => RunFailure::Call(failure),
            _ => RunFailure::Ehr(ehr_id.to_owned(), failure),
        }
    }

    /// Creates the failure of work on the data of all EHRs: a limit of this work, or any other
    /// failure.
    pub fn of_data(failure: Failure) -> RunFailure {
        match failure.status {
            400 => RunFailure::Data(failure),
            _ => RunFailure::Call(failure),
        }
    }
}

impl From<Failure> for RunFailure {
    fn from(failure: Failure) -> RunFailure {
        RunFailure::Call(failure)
    }
}

impl From<RunFailure> for Failure {
    fn from(failure: RunFailure) -> Failure {
        match failure {
            RunFailure::Call(failure) | RunFailure::Data(failure) | RunFailure::Ehr(_, failure) => {
                failure
            }
        }
    }
}
