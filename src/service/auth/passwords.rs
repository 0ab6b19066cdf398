//! Limits of the cost of verifying passwords: one derivation at a time, few failures a minute, and
//! none for a password that was verified before.
//!
//! Deriving a key from a password takes tens of milliseconds by design, during which a worker does
//! nothing else. Derivations therefore run one after the other. After some failures within a
//! minute, further attempts are rejected with 429 before anything is derived: for one caller, which
//! is an address and a user name, and for all callers together.
//!
//! The key of a user who has signed in is not derived again. The memory holds PBKDF2 of the
//! password with the user's salt and a single iteration, not the password itself. Failures of
//! others never lock such a user out.

use super::caller::Denied;
use super::host::AuthenticationHost;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Failed attempts of one caller in a minute.
const MAX_FAILURES_OF_CALLER: u32 = 10;
/// Failed attempts of all callers in a minute.
const MAX_FAILURES: u32 = 60;
/// Requests that wait for the derivation of another one.
const MAX_WAITING: usize = 16;
/// The number of times that a waiting request checks whether it may derive. A derivation that has
/// not ended by then was lost with its request.
const MAX_CHECKS: u32 = 250;
/// Seconds of the window in which failures are counted.
const WINDOW: i64 = 60;

/// The state of an isolate: failures of the present minute, and verified passwords.
#[derive(Default)]
pub(super) struct Passwords(RefCell<State>);

#[derive(Default)]
struct State {
    /// The number of the window since 1970.
    window: i64,
    failures: u32,
    /// By address and name; at most as many as the maximum number of failures.
    by_caller: BTreeMap<String, u32>,
    /// By user name: the password, derived with one iteration.
    verified: BTreeMap<String, Vec<u8>>,
    is_deriving: bool,
    waiting: usize,
}

impl State {
    /// Begins a new window if the last one is over. Requests may come out of order: no window
    /// begins twice.
    fn turn(&mut self, now: i64) {
        let window = now.div_euclid(WINDOW);
        // Not `!=`: a request with an earlier time must not clear the present counts.
        if window > self.window {
            self.window = window;
            self.failures = 0;
            self.by_caller.clear();
        }
    }

    fn may_try(&self, caller: &str) -> bool {
        self.failures < MAX_FAILURES
            && self
                .by_caller
                .get(caller)
                .is_none_or(|failures| *failures < MAX_FAILURES_OF_CALLER)
    }
}

/// A derivation, or the wait for one. It ends when this is dropped, also if its request is
/// abandoned.
pub(super) struct DerivationTurn<'p> {
    passwords: &'p Passwords,
    derives: bool,
}

impl Drop for DerivationTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.passwords.0.borrow_mut();
        if self.derives {
            state.is_deriving = false;
        } else {
            state.waiting = state.waiting.saturating_sub(1);
        }
    }
}

impl Passwords {
    /// Returns whether a user has signed in.
    pub fn knows(&self, user: &str) -> bool {
        self.0.borrow().verified.contains_key(user)
    }

    /// Returns whether `quick`, a password derived with one iteration, is that of the user's last
    /// sign-in.
    pub fn is_verified(&self, user: &str, quick: &[u8]) -> bool {
        self.0
            .borrow()
            .verified
            .get(user)
            .is_some_and(|known| same(known, quick))
    }

    /// Stores the quick derivation of a verified password.
    pub fn remember(&self, user: &str, quick: Vec<u8>) {
        self.0.borrow_mut().verified.insert(user.to_owned(), quick);
    }

    /// Counts a failed attempt of a caller at `now`, in seconds since 1970.
    pub fn failed(&self, caller: &str, now: i64) {
        let mut state = self.0.borrow_mut();
        state.turn(now);
        state.failures += 1;
        *state.by_caller.entry(caller.to_owned()).or_default() += 1;
    }

    /// Waits until a caller may derive a key. Others wait while the result is held.
    ///
    /// # Errors
    /// 429 if the caller, or all callers together, failed too often, or too many requests wait.
    pub async fn turn<K: AuthenticationHost>(
        &self,
        caller: &str,
        host: &K,
        now: i64,
    ) -> Result<DerivationTurn<'_>, Denied> {
        self.may_try(caller, now)?;
        if self.0.borrow().is_deriving {
            self.wait(caller, host, now).await?;
        }
        // No await between the check above and this line, so two requests cannot both derive.
        self.0.borrow_mut().is_deriving = true;
        Ok(DerivationTurn {
            passwords: self,
            derives: true,
        })
    }

    fn may_try(&self, caller: &str, now: i64) -> Result<(), Denied> {
        let mut state = self.0.borrow_mut();
        state.turn(now);
        if state.may_try(caller) {
            Ok(())
        } else {
            Err(Denied::too_many())
        }
    }

    async fn wait<K: AuthenticationHost>(
        &self,
        caller: &str,
        host: &K,
        now: i64,
    ) -> Result<(), Denied> {
        if self.0.borrow().waiting >= MAX_WAITING {
            return Err(Denied::too_many());
        }
        self.0.borrow_mut().waiting += 1;
        let _turn = DerivationTurn {
            passwords: self,
            derives: false,
        };
        for _ in 0..MAX_CHECKS {
            host.pause().await;
            // Attempts that ended meanwhile may have used up the failures of this minute.
            self.may_try(caller, now)?;
            if !self.0.borrow().is_deriving {
                break;
            }
        }
        Ok(())
    }
}

/// Compares texts in a time that does not depend on the position of a difference.
pub(super) fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |found, (l, r)| found | (l ^ r))
            == 0
}

#[cfg(test)]
mod tests {
    use super::super::users::tests::{Fake, HASH, SALT};
    use super::super::{Authenticator, KeyCache, Users};
    use super::*;
    use crate::service::Request;
    use crate::store::ready::now_or_never;

    /// Signs in by a gate with one user, `ann`, whose password is `secret`; returns the status.
    fn sign_in(cache: &KeyCache, host: &Fake, credentials: &str, address: &str, now: i64) -> u16 {
        let users = Users::parse(&format!("ann:50000:{SALT}:{HASH}:read")).unwrap();
        let authenticator = Authenticator {
            issuers: Vec::new(),
            users: Some(users),
        };
        let request = Request {
            client_address: address.to_owned(),
            ..Request::new("GET", "/v1/ehr")
        };
        let request = request.with_header("Authorization", &format!("Basic {credentials}"));
        let recognised =
            now_or_never(authenticator.authenticate(&request, cache, host, now)).unwrap();
        recognised.map_or_else(|denied| denied.failure().status, |_| 200)
    }

    /// `ann:secret`, `ann:secreT` and `bob:secret`.
    const RIGHT: &str = "YW5uOnNlY3JldA==";
    const WRONG: &str = "YW5uOnNlY3JlVA==";
    const UNKNOWN: &str = "Ym9iOnNlY3JldA==";

    #[test]
    fn verified_password_is_not_derived_again() {
        let (cache, host) = (KeyCache::default(), Fake::default());
        let slow = |host: &Fake| host.iterations.borrow().iter().filter(|n| **n > 1).count();
        assert_eq!(
            [0, 1, 2].map(|now| sign_in(&cache, &host, RIGHT, "a", now)),
            [200; 3]
        );
        assert_eq!(slow(&host), 1);
        assert_eq!(sign_in(&cache, &host, WRONG, "a", 3), 401);
        assert_eq!(slow(&host), 2, "another password is derived");
        let held = format!("{:?}", cache.passwords().0.borrow().verified);
        assert!(
            !held.contains("115, 101, 99, 114, 101, 116"),
            "the password itself is not kept: {held}"
        );
    }

    #[test]
    fn failures_of_a_caller_are_limited_and_lock_no_other_out() {
        let (cache, host) = (KeyCache::default(), Fake::default());
        assert_eq!(sign_in(&cache, &host, RIGHT, "home", 0), 200);
        let guesses = |address: &str, now: i64| {
            (0..MAX_FAILURES_OF_CALLER + 2)
                .map(|_| sign_in(&cache, &host, WRONG, address, now))
                .collect::<Vec<_>>()
        };
        let answers = guesses("evil", 1);
        assert_eq!(
            answers.iter().filter(|status| **status == 401).count() as u32,
            MAX_FAILURES_OF_CALLER
        );
        assert!(answers.ends_with(&[429, 429]));
        let derived = host.iterations.borrow().len();
        assert_eq!(
            sign_in(&cache, &host, UNKNOWN, "evil", 2),
            401,
            "another name is another caller"
        );
        assert!(host.iterations.borrow().len() > derived);
        assert_eq!(
            sign_in(&cache, &host, RIGHT, "evil", 2),
            200,
            "the user has signed in before"
        );
        assert_eq!(sign_in(&cache, &host, WRONG, "evil", 2), 429);
        assert_eq!(
            sign_in(&cache, &host, WRONG, "evil", 60),
            401,
            "a minute later another attempt is allowed"
        );
    }

    #[test]
    fn failures_of_all_callers_are_limited_together() {
        let (cache, host) = (KeyCache::default(), Fake::default());
        let answers: Vec<u16> = (0..MAX_FAILURES + 5)
            .map(|i| sign_in(&cache, &host, WRONG, &format!("address {i}"), 0))
            .collect();
        assert_eq!(
            answers.iter().filter(|status| **status == 401).count() as u32,
            MAX_FAILURES
        );
        assert_eq!(sign_in(&cache, &host, RIGHT, "home", 1), 429);
        assert_eq!(sign_in(&cache, &host, RIGHT, "home", 61), 200);
    }
}
