//! Users with passwords (RFC 7617), for development: a list without default, in a secret of the
//! deployment.
//!
//! One line for each user: `name:iterations:salt:hash:role,role`. Salt and hash are base64url; the
//! hash is PBKDF2 with HMAC-SHA-256, 32 bytes.

use super::caller::{Caller, Denied};
use super::host::AuthenticationHost;
use super::passwords::{Passwords, same};
use super::scope::ROLES;
use super::token::base64url;

/// The permitted iterations of PBKDF2. Fewer give no protection; the runtime of Cloudflare supports
/// at most 100,000.
const ITERATIONS: std::ops::RangeInclusive<u32> = 10_000..=100_000;

/// The users of a deployment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Users(Vec<User>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct User {
    name: String,
    iterations: u32,
    salt: Vec<u8>,
    hash: Vec<u8>,
    roles: Vec<String>,
}

impl Users {
    /// Parses the list.
    ///
    /// # Errors
    /// A message that names the line, if the list is empty or a line is invalid.
    pub fn parse(text: &str) -> Result<Users, String> {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let read = |(index, line): (usize, &str)| {
            User::parse(line.trim()).ok_or_else(|| {
                format!(
                    "line {} is not `name:iterations:salt:hash:role,role`",
                    index + 1
                )
            })
        };
        let users = lines.map(read).collect::<Result<Vec<_>, _>>()?;
        if users.is_empty() {
            Err(String::from("it names no user"))
        } else {
            Ok(Users(users))
        }
    }

    /// Authenticates a user by `name:password` in base64. A wrong password takes about the same
    /// time for every name, listed or not: that of the most iterations of the list. `from` is the
    /// address of the request, and its time in seconds since 1970. Failures are counted by address
    /// and name.
    ///
    /// # Errors
    /// 401 for a wrong name or password, 429 after too many failures.
    pub(super) async fn authenticate<K: AuthenticationHost>(
        &self,
        credentials: &str,
        passwords: &Passwords,
        host: &K,
        from: (&str, i64),
    ) -> Result<Caller, Denied> {
        let refused = || Denied::password();
        let text = decoded(credentials).ok_or_else(refused)?;
        let (name, password) = text.split_once(':').ok_or_else(refused)?;
        let listed = self.0.iter().find(|user| user.name == name);
        // For an unknown name a listed user's salt is used, and every derivation has the same number
        // of iterations in all, so that the time reveals no names.
        let salted = listed.or(self.0.first()).ok_or_else(refused)?;
        if passwords.knows(name)
            && let Some(caller) = Self::known(listed, password, passwords, host).await
        {
            return Ok(caller);
        }
        let (address, now) = from;
        let caller = format!("{address} {name}");
        let _turn = passwords.turn(&caller, host, now).await?;
        // Another request of the user may have signed in meanwhile.
        if passwords.knows(name)
            && let Some(caller) = Self::known(listed, password, passwords, host).await
        {
            return Ok(caller);
        }
        let derived = host.derive(password, &salted.salt, salted.iterations).await;
        let most = self.0.iter().map(|user| user.iterations).max();
        let rest = most.map_or(0, |most| most - salted.iterations);
        if rest > 0 {
            let _ = host.derive(password, &salted.salt, rest).await;
        }
        // For an unknown name there is no hash to compare. The derivations above took most of the
        // time.
        match listed.filter(|user| derived.is_some_and(|derived| same(&derived, &user.hash))) {
            Some(user) => {
                if let Some(quick) = host.derive(password, &user.salt, 1).await {
                    passwords.remember(&user.name, quick);
                }
                Ok(user.caller())
            }
            None => {
                passwords.failed(&caller, now);
                Err(refused())
            }
        }
    }
}

impl Users {
    /// Returns the user, if the password is that of the user's last sign-in.
    async fn known<K: AuthenticationHost>(
        listed: Option<&User>,
        password: &str,
        passwords: &Passwords,
        host: &K,
    ) -> Option<Caller> {
        let user = listed?;
        let quick = host.derive(password, &user.salt, 1).await?;
        passwords
            .is_verified(&user.name, &quick)
            .then(|| user.caller())
    }
}

impl User {
    fn caller(&self) -> Caller {
        Caller::with_roles(
            &self.name,
            "",
            &self.roles.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    }

    fn parse(line: &str) -> Option<User> {
        let parts: Vec<&str> = line.split(':').collect();
        let [name, iterations, salt, hash, roles] = parts.as_slice() else {
            return None;
        };
        let iterations = iterations.parse().ok().filter(|n| ITERATIONS.contains(n))?;
        let (salt, hash) = (
            base64url(salt).filter(|s| s.len() >= 16)?,
            base64url(hash).filter(|h| h.len() == 32)?,
        );
        let roles: Vec<String> = roles.split(',').map(|r| r.trim().to_owned()).collect();
        let known = roles
            .iter()
            .all(|role| ROLES.iter().any(|(name, _)| name == role));
        (known && !name.is_empty()).then(|| User {
            name: (*name).to_owned(),
            iterations,
            salt,
            hash,
            roles,
        })
    }
}

/// Decodes the credentials of HTTP Basic, `name:password` in base64; `None` if they are not.
fn decoded(credentials: &str) -> Option<String> {
    // Basic credentials are base64 with padding; the decoder reads base64url without it.
    let plain = credentials
        .trim_end_matches('=')
        .replace('+', "-")
        .replace('/', "_");
    let text = String::from_utf8(base64url(&plain)?).ok()?;
    // Control characters are invalid (RFC 7617, section 2). A password with zeros at its end would
    // also have the hash of the password without them: HMAC pads short keys with zeros.
    (!text.contains(char::is_control)).then_some(text)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::service::auth::Algorithm;
    use crate::store::ready::now_or_never;
    use std::cell::RefCell;

    /// Returns the password itself with padding as its hash, and records the numbers of iterations.
    #[derive(Default)]
    pub struct Fake {
        pub iterations: RefCell<Vec<u32>>,
    }

    impl AuthenticationHost for Fake {
        async fn fetch(&self, _: &str) -> Result<String, String> {
            Err(String::new())
        }

        async fn pause(&self) {}

        async fn verify(&self, _: Algorithm, _: &str, _: &[u8], _: &[u8]) -> bool {
            false
        }

        async fn derive(&self, password: &str, _: &[u8], iterations: u32) -> Option<Vec<u8>> {
            self.iterations.borrow_mut().push(iterations);
            if iterations == 1 {
                return Some(password.bytes().rev().map(|byte| byte ^ 0x55).collect());
            }
            Some(
                password
                    .bytes()
                    .chain(std::iter::repeat(0))
                    .take(32)
                    .collect(),
            )
        }
    }

    pub const SALT: &str = "AAAAAAAAAAAAAAAAAAAAAA";
    /// `secret` with padding.
    pub const HASH: &str = "c2VjcmV0AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    #[test]
    fn users_need_a_name_a_salted_hash_and_known_roles() {
        assert!(Users::parse(&format!("ann:50000:{SALT}:{HASH}:read,write\n\n")).is_ok());
        let mut lines = vec![String::new(), String::from("ann:secret")];
        lines.extend(
            [
                "ann:1:S:H:read",
                ":50000:S:H:read",
                "ann:50000:AA:H:read",
                "ann:50000:S:AA:read",
                "ann:50000:S:H:owner",
                "ann:50000:S:H:",
            ]
            .map(str::to_owned),
        );
        for line in lines {
            assert!(
                Users::parse(
                    &line
                        .replace(":S:", &format!(":{SALT}:"))
                        .replace(":H:", &format!(":{HASH}:"))
                )
                .is_err(),
                "{line}"
            );
        }
    }

    #[test]
    fn wrong_password_is_refused() {
        let users = Users::parse(&format!("ann:50000:{SALT}:{HASH}:read")).unwrap();
        let ask = |credentials: &str| {
            let (passwords, host) = (Passwords::default(), Fake::default());
            now_or_never(users.authenticate(credentials, &passwords, &host, ("", 0)))
                .unwrap()
                .is_ok()
        };
        assert!(ask("YW5uOnNlY3JldA=="), "ann:secret");
        for wrong in ["YW5uOnNlY3JlVA==", "Ym9iOnNlY3JldA==", "YW5u", "%%%", ""] {
            assert!(!ask(wrong), "{wrong}");
        }
        assert_eq!(decoded("YW5uOnB3").as_deref(), Some("ann:pw"));
        assert_eq!(decoded("YW5uOnB3AA=="), None, "a zero at the end");
    }

    #[test]
    fn every_name_costs_the_same_number_of_iterations() {
        let users = format!("ann:20000:{SALT}:{HASH}:read\nbob:90000:{SALT}:{HASH}:read");
        let users = Users::parse(&users).unwrap();
        // `ann:wrong`, `bob:wrong` and `eve:wrong`, who is not listed.
        for credentials in ["YW5uOndyb25n", "Ym9iOndyb25n", "ZXZlOndyb25n"] {
            let (passwords, host) = (Passwords::default(), Fake::default());
            let answer = users.authenticate(credentials, &passwords, &host, ("", 0));
            assert!(now_or_never(answer).unwrap().is_err(), "{credentials}");
            let all: u32 = host.iterations.borrow().iter().sum();
            assert_eq!(all, 90_000, "{credentials}");
        }
    }
}
