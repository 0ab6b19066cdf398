//! The token that lets all pages of a result be read from one state of the repository.

use super::error::Failure;
use crate::document::short_digest;
use crate::store::scan::Snapshot;
use std::fmt;

/// A state of the repository, and the present time of a query.
///
/// The token has hexadecimal numbers. Clients return it unchanged. It is not signed, because it is
/// no permission: a scan checks the present permissions, and that everything in the state may still
/// be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageState {
    /// The commits of the state.
    pub snapshot: Snapshot,
    /// The result of the clock functions: microseconds since 1970.
    pub now: i64,
    /// Identifies the EHR of the state; 0 for a state of the whole repository.
    pub of: u64,
}

/// Microseconds by which the clock of the instance that made a token may be ahead of this one.
const SKEW: i64 = 60_000_000;

/// The version of the token's form, its first part.
const FORM: &str = "1";

/// Returns the identification of an EHR in tokens.
fn scope(ehr_id: Option<&str>) -> u64 {
    let digits = |ehr_id: &str| {
        u64::from_str_radix(short_digest(ehr_id).get(..8).unwrap_or_default(), 16)
            .unwrap_or_default()
    };
    // 0 means the whole repository, so no EHR may have it.
    ehr_id.map_or(0, |ehr_id| digits(ehr_id).max(1))
}

impl PageState {
    /// Creates the state that a scan of one EHR, or of the repository, has read.
    pub fn new(snapshot: Snapshot, now: i64, ehr_id: Option<&str>) -> PageState {
        PageState {
            snapshot,
            now,
            of: scope(ehr_id),
        }
    }

    /// Checks that a query reads the EHR of its token, and that the time of the token is not in the
    /// future. `now` is in microseconds since 1970.
    ///
    /// # Errors
    /// 400 for a token of another EHR, or with a future time.
    pub fn check(&self, ehr_id: Option<&str>, now: i64) -> Result<(), Failure> {
        if self.of != scope(ehr_id) {
            return Err(Failure::bad_request(
                "`snapshot` comes from a query of other EHRs: a token is valid for the query that returned it",
            ));
        }
        if self.now > now.saturating_add(SKEW) {
            return Err(Failure::bad_request(
                "`snapshot` has a time in the future, so no result returned it: request the first page without it",
            ));
        }
        Ok(())
    }

    /// Parses a token.
    ///
    /// # Errors
    /// 400 for another text.
    pub fn parse(token: &str) -> Result<PageState, Failure> {
        let wrong = || {
            Failure::bad_request(
                "`snapshot` is not a token from `meta._snapshot` of a result: request the first page without it",
            )
        };
        let numbers = token
            .trim()
            .strip_prefix(FORM)
            .and_then(|rest| rest.strip_prefix('-'))
            .ok_or_else(wrong)?;
        let is_plain = |number: &str| {
            // 13 hexadecimal digits are 52 bits, which the database holds exactly.
            number.len() <= 13 && number.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let numbers: Option<Vec<u64>> = numbers
            .split('-')
            .map(|number| {
                u64::from_str_radix(number, 16)
                    .ok()
                    .filter(|_| is_plain(number))
            })
            .collect();
        match numbers.as_deref() {
            Some(&[version, ehr, removals, revision, now, of]) => {
                let now = i64::try_from(now).map_err(|_| wrong())?;
                Ok(PageState {
                    snapshot: Snapshot {
                        version,
                        ehr,
                        removals,
                        revision,
                    },
                    now,
                    of,
                })
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for PageState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot {
            version,
            ehr,
            removals,
            revision,
        } = self.snapshot;
        write!(
            f,
            "{FORM}-{version:x}-{ehr:x}-{removals:x}-{revision:x}-{:x}-{:x}",
            self.now, self.of
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_parsed_and_other_texts_refused() {
        let state = PageState {
            snapshot: Snapshot {
                version: 42,
                ehr: 7,
                removals: 1,
                revision: 60,
            },
            now: 1_795_000_000_000_000,
            of: 9,
        };
        assert_eq!(PageState::parse(&state.to_string()).unwrap(), state);
        for wrong in [
            "",
            "1-",
            "1-2a-7-1",
            "2-2a-7-1-3c-1-1",
            "1-2a-7-1-3c-1-1-1",
            "1-+2a-7-1-3c-1-1",
            "1-2a-7-1-3c-1-",
            "1-ffffffffffffff-7-1-3c-1-1",
        ] {
            assert!(PageState::parse(wrong).is_err(), "{wrong}");
        }
    }
}
