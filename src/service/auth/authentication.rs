//! Authentication: bearer tokens, assertions of Cloudflare Access, and users with passwords for
//! development.

use super::super::Request;
use super::caller::{Caller, Denied};
use super::host::AuthenticationHost;
use super::passwords::Passwords;
use super::token::{Token, keys_of};
use super::users::Users;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Seconds for which the keys of an issuer are fresh.
const FRESH: i64 = 600;
/// Seconds for which old keys are used if the issuer does not respond.
const STALE: i64 = 3_600;
/// Seconds between two fetches because of an unknown key.
const PATIENCE: i64 = 10;
/// Seconds before a retry after a failed fetch. Each further failure doubles them up to
/// [`MAX_BACK_OFF`].
const BACK_OFF: i64 = 2;
/// The maximum seconds before a retry.
const MAX_BACK_OFF: i64 = 60;
/// The number of times that a request checks whether another one has fetched the keys, before it
/// fetches them itself. Multiplied by the pause of a host, the time is longer than the timeout of a
/// fetch.
const MAX_CHECKS: u32 = 400;

/// An issuer of tokens, and the meaning of its claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issuer {
    /// The header with the token: `Authorization`, with `Bearer`, or another one.
    pub header: &'static str,
    /// The claim `iss`.
    pub name: String,
    /// A required value of the claim `aud`.
    pub audience: String,
    /// The URL of its JWK set.
    pub keys: String,
    /// The claim that lists the roles: a path with periods.
    pub roles_claim: String,
    /// The roles of this service by the issuer's names. If empty, both use the same names.
    pub roles: BTreeMap<String, Vec<String>>,
    /// The claim that names the EHR of the launch context.
    pub ehr_claim: String,
}

/// The configuration of authentication.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Authenticator {
    /// The trusted issuers.
    pub issuers: Vec<Issuer>,
    /// Users with passwords, for development.
    pub users: Option<Users>,
}

/// The state of authentication between requests: the keys of the issuers, as last fetched, and
/// verified passwords. Requests that need the same keys share one fetch.
#[derive(Default)]
pub struct KeyCache(RefCell<BTreeMap<String, Fetched>>, Passwords);

#[derive(Clone, Default)]
struct Fetched {
    keys: Vec<Value>,
    /// The times of the last successful fetch and of the last fetch, in seconds since 1970.
    at: i64,
    tried: i64,
    /// Failed fetches since the last successful one.
    failures: u32,
    /// Whether a request is fetching them.
    is_in_flight: bool,
}

impl Fetched {
    /// Returns the earliest time of the next fetch.
    fn next_try(&self) -> i64 {
        let wait = match self.failures {
            0 => PATIENCE,
            // The shift is bounded, so that it cannot overflow; the maximum is reached earlier
            // anyway.
            failures => BACK_OFF
                .saturating_mul(1 << failures.saturating_sub(1).min(10))
                .min(MAX_BACK_OFF),
        };
        self.tried.saturating_add(wait)
    }
}

/// A fetch in progress. It ends when this is dropped, also if its request is abandoned.
struct FetchGuard<'r> {
    cache: &'r KeyCache,
    url: &'r str,
}

impl Drop for FetchGuard<'_> {
    fn drop(&mut self) {
        self.cache
            .change(self.url, |fetched| fetched.is_in_flight = false);
    }
}

impl Authenticator {
    /// Returns the value of WWW-Authenticate: a challenge for each configured scheme (RFC 9110
    /// §11.6.1).
    pub fn challenge(&self) -> &'static str {
        match (self.issuers.is_empty(), &self.users) {
            (true, Some(_)) => "Basic realm=\"aqlite\", charset=\"UTF-8\"",
            (false, Some(_)) => {
                "Bearer realm=\"aqlite\", Basic realm=\"aqlite\", charset=\"UTF-8\""
            }
            (_, None) => "Bearer realm=\"aqlite\"",
        }
    }

    /// Authenticates the caller of a request. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// If the request has no credentials, or invalid ones.
    pub async fn authenticate<K: AuthenticationHost>(
        &self,
        request: &Request,
        cache: &KeyCache,
        host: &K,
        now: i64,
    ) -> Result<Caller, Denied> {
        let caller = self.authenticate_by_scheme(request, cache, host, now).await;
        caller.map_err(|denied| {
            denied.with_challenges(!self.issuers.is_empty(), self.users.is_some())
        })
    }

    /// Authenticates the caller by the first credentials that the request has.
    async fn authenticate_by_scheme<K: AuthenticationHost>(
        &self,
        request: &Request,
        cache: &KeyCache,
        host: &K,
        now: i64,
    ) -> Result<Caller, Denied> {
        for issuer in &self.issuers {
            // The first issuer whose header is present decides. A request with a wrong token is not
            // tried with a password.
            if let Some(text) = issuer.token_in(request) {
                return issuer.authenticate(text, cache, host, now).await;
            }
        }
        match (&self.users, scheme(request, "Basic")) {
            (Some(users), Some(credentials)) => {
                let address = request.client_address.as_str();
                users
                    .authenticate(credentials, &cache.1, host, (address, now))
                    .await
            }
            _ => Err(Denied::no_credentials(self.challenge())),
        }
    }
}

/// Returns the credentials of an Authorization header with this scheme.
fn scheme<'r>(request: &'r Request, scheme: &str) -> Option<&'r str> {
    let (sent, credentials) = request.header("Authorization")?.split_once(' ')?;
    sent.eq_ignore_ascii_case(scheme)
        .then(|| credentials.trim())
}

impl Issuer {
    fn token_in<'r>(&self, request: &'r Request) -> Option<&'r str> {
        if self.header == "Authorization" {
            scheme(request, "Bearer")
        } else {
            request.header(self.header)
        }
    }

    async fn authenticate<K: AuthenticationHost>(
        &self,
        text: &str,
        cache: &KeyCache,
        host: &K,
        now: i64,
    ) -> Result<Caller, Denied> {
        let token = Token::read(text)?;
        // The claims are checked first: it is cheap, and no foreign token triggers a fetch of keys.
        let until = token.check(&self.name, &self.audience, now)?;
        let key = cache.key(&self.keys, &token, host, now).await?;
        if !host
            .verify(
                token.algorithm,
                &key.to_string(),
                token.signed,
                &token.signature,
            )
            .await
        {
            return Err(Denied::token("its signature is wrong"));
        }
        let mut caller = self.caller(&token.claims)?;
        caller.until = Some(until);
        Ok(caller)
    }

    /// Creates the caller from the claims of a valid token.
    fn caller(&self, claims: &Value) -> Result<Caller, Denied> {
        let text = |key: &str| {
            claims
                .get(key)
                .and_then(Value::as_str)
                .filter(|t| !t.is_empty())
        };
        let name = text("sub")
            .or_else(|| text("common_name"))
            .or_else(|| text("client_id"));
        let name = name.ok_or_else(|| Denied::token("it has no subject (`sub`)"))?;
        let listed = self
            .roles_claim
            .split('.')
            .try_fold(claims, |value, part| value.get(part));
        let roles = listed.map(words).unwrap_or_default();
        let here: Vec<&str> = roles.iter().flat_map(|role| self.role(role)).collect();
        let ehr = text(&self.ehr_claim).filter(|id| super::super::ids::is_uuid(id));
        let mut caller = Caller::with_roles(name, &self.name, &here);
        caller.label = ["name", "preferred_username"]
            .into_iter()
            .find_map(text)
            .map(str::to_owned);
        Ok(match scopes_of(claims) {
            // A token with scopes but without the claim of roles leaves `user/` scopes unrestricted.
            Some(scopes) => caller.narrowed(&scopes, ehr, listed.is_some()),
            // Unreadable scopes would restrict the roles in an unknown way, so they grant nothing.
            None => caller.without_permissions(),
        })
    }

    /// Returns the roles of this service for a role of the issuer.
    fn role<'a>(&'a self, word: &'a str) -> Vec<&'a str> {
        if self.roles.is_empty() {
            return vec![word];
        }
        self.roles
            .get(word)
            .map(|here| here.iter().map(String::as_str).collect())
            .unwrap_or_default()
    }
}

/// Returns the scopes of a token, with blanks between them. Issuers use either name of the claim.
/// Returns `None` if a claim is present, and is neither a text nor a list of texts.
fn scopes_of(claims: &Value) -> Option<String> {
    let claims = ["scope", "scp"].iter().filter_map(|key| claims.get(key));
    let is_readable = |claim: &Value| match claim {
        Value::Array(all) => all.iter().all(Value::is_string),
        claim => claim.is_string(),
    };
    let scopes: Option<Vec<_>> = claims
        .map(|claim| is_readable(claim).then(|| words(claim).join(" ")))
        .collect();
    Some(scopes?.join(" "))
}

/// Returns the words of a claim: a text with blanks between them, or a list.
fn words(claim: &Value) -> Vec<String> {
    match claim {
        Value::String(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
        Value::Array(all) => all
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

impl KeyCache {
    #[cfg(test)]
    pub(super) fn passwords(&self) -> &Passwords {
        &self.1
    }

    fn change(&self, url: &str, change: impl FnOnce(&mut Fetched)) {
        change(self.0.borrow_mut().entry(url.to_owned()).or_default());
    }

    /// Returns the key of a token. Fetches the keys if they are old, and again if the issuer may
    /// have changed them. Of many concurrent requests for the same keys one fetches, and the others
    /// wait for it.
    async fn key<K: AuthenticationHost>(
        &self,
        url: &str,
        token: &Token<'_>,
        host: &K,
        now: i64,
    ) -> Result<Value, Denied> {
        let mut checks = 0;
        loop {
            let held = self.0.borrow().get(url).cloned().unwrap_or_default();
            let fresh = now < held.at.saturating_add(FRESH);
            let known = token.key(&held.keys).cloned();
            if let (Some(key), true) = (&known, fresh) {
                return Ok(key.clone());
            }
            // Bounded, because a fetch may be lost with its request.
            if held.is_in_flight && checks < MAX_CHECKS {
                checks += 1;
                host.pause().await;
                continue;
            }
            // A fetch that is still in flight after all checks was lost: this request replaces it.
            if (now >= held.next_try() || held.is_in_flight)
                && let Some(keys) = self.fetched(url, host, now).await
            {
                return token.key(&keys).cloned().ok_or_else(unknown);
            }
            return match known {
                // The issuer does not respond: keys that were valid recently are accepted for a
                // while.
                Some(key) if now < held.at.saturating_add(STALE) => Ok(key),
                _ if fresh => Err(unknown()),
                _ => Err(Denied::unavailable()),
            };
        }
    }

    async fn fetched<K: AuthenticationHost>(
        &self,
        url: &str,
        host: &K,
        now: i64,
    ) -> Option<Vec<Value>> {
        self.change(url, |fetched| {
            (fetched.is_in_flight, fetched.tried) = (true, now)
        });
        let flight = FetchGuard { cache: self, url };
        let keys = host.fetch(url).await.ok().and_then(|text| keys_of(&text));
        self.change(url, |fetched| match &keys {
            Some(keys) => {
                *fetched = Fetched {
                    keys: keys.clone(),
                    at: now,
                    tried: now,
                    ..Fetched::default()
                }
            }
            None => fetched.failures = fetched.failures.saturating_add(1),
        });
        drop(flight);
        keys
    }
}

fn unknown() -> Denied {
    Denied::token("its key (`kid`) is not one of the issuer's")
}

#[cfg(test)]
mod tests {
    use super::super::caller::Subject;
    use super::super::token::Algorithm;
    use super::super::{Action, Permission, Resource};
    use super::*;
    use crate::store::ready::now_or_never;
    use std::cell::Cell;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    /// An issuer whose keys change. A signature is valid if it equals the id of the key.
    struct Fake {
        set: RefCell<Option<String>>,
        fetches: Cell<usize>,
        /// The fetch ends when this many other requests wait for it.
        waits_for: Cell<usize>,
        pauses: Cell<usize>,
    }

    impl Fake {
        fn with(kid: &str) -> Fake {
            Fake {
                set: RefCell::new(set(kid)),
                fetches: Cell::default(),
                waits_for: Cell::default(),
                pauses: Cell::default(),
            }
        }
    }

    /// A future that is pending once, so that others continue.
    struct Once(bool);

    impl Future for Once {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            if std::mem::replace(&mut self.0, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }
    }

    /// Polls many futures in turn until all are ready.
    fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
        let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
        let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..10_000 {
            for (future, output) in futures
                .iter_mut()
                .zip(&mut outputs)
                .filter(|(_, output)| output.is_none())
            {
                if let Poll::Ready(ready) = future.as_mut().poll(&mut context) {
                    *output = Some(ready);
                }
            }
        }
        outputs.into_iter().flatten().collect()
    }

    impl AuthenticationHost for Fake {
        async fn fetch(&self, _: &str) -> Result<String, String> {
            self.fetches.set(self.fetches.get() + 1);
            while self.pauses.get() < self.waits_for.get() {
                Once(false).await;
            }
            self.set
                .borrow()
                .clone()
                .ok_or_else(|| String::from("away"))
        }

        async fn pause(&self) {
            self.pauses.set(self.pauses.get() + 1);
            Once(false).await;
        }

        async fn verify(&self, _: Algorithm, key: &str, _: &[u8], signature: &[u8]) -> bool {
            let key: Value = serde_json::from_str(key).unwrap();
            key["kid"].as_str().map(str::as_bytes) == Some(signature)
        }

        async fn derive(&self, _: &str, _: &[u8], _: u32) -> Option<Vec<u8>> {
            None
        }
    }

    fn set(kid: &str) -> Option<String> {
        Some(format!(
            r#"{{"keys":[{{"kid":"{kid}","kty":"EC","crv":"P-256"}}]}}"#
        ))
    }

    fn token(kid: &str) -> Token<'static> {
        Token {
            algorithm: Algorithm::Es256,
            key_id: kid.to_owned(),
            claims: Value::Null,
            signed: b"",
            signature: Vec::new(),
        }
    }

    #[test]
    fn keys_are_cached_and_fetched_again_after_a_rotation() {
        let (cache, host) = (KeyCache::default(), Fake::with("a"));
        let ask = |kid: &str, now: i64| {
            now_or_never(cache.key("u", &token(kid), &host, now))
                .unwrap()
                .map_err(|d| d.failure().status)
                .map(|_| 200)
        };
        assert_eq!((ask("a", 1000), host.fetches.get()), (Ok(200), 1));
        assert_eq!(
            (ask("a", 1599), host.fetches.get()),
            (Ok(200), 1),
            "fresh keys are used as they are"
        );
        host.set.replace(set("b"));
        assert_eq!(
            (ask("b", 1599), host.fetches.get()),
            (Ok(200), 2),
            "a new key is fetched"
        );
        assert_eq!(
            (ask("c", 1600), host.fetches.get()),
            (Err(401), 2),
            "an unknown key is not fetched again at once"
        );
        assert_eq!((ask("c", 1629), host.fetches.get()), (Err(401), 3));
        assert_eq!(
            (ask("a", 1660), host.fetches.get()),
            (Err(401), 4),
            "a key that the issuer has removed is not accepted"
        );
        host.set.replace(None);
        assert_eq!(
            ask("b", 3000),
            Ok(200),
            "old keys are used for an hour while the issuer does not respond"
        );
        assert_eq!(ask("b", 9000), Err(503));
    }

    #[test]
    fn concurrent_requests_share_one_fetch_of_keys() {
        let (cache, host, token) = (KeyCache::default(), Fake::with("a"), token("a"));
        host.waits_for.set(19);
        let found = all((0..20).map(|_| cache.key("u", &token, &host, 1_000)));
        assert_eq!((found.len(), host.fetches.get()), (20, 1));
        assert!(found.iter().all(Result::is_ok));
        assert!(host.pauses.get() >= 19, "the others waited");
    }

    #[test]
    fn failed_fetch_waits_and_lost_fetch_is_replaced() {
        let (cache, host, token) = (KeyCache::default(), Fake::with("a"), token("a"));
        host.set.replace(None);
        let ask = |now: i64| {
            now_or_never(cache.key("u", &token, &host, now))
                .unwrap()
                .map_err(|d| d.failure().status)
                .map(|_| 200)
        };
        let fetches: Vec<usize> = [
            1_000, 1_001, 1_002, 1_003, 1_005, 1_006, 1_300, 1_359, 1_360,
        ]
        .map(|now| (ask(now) == Err(503), host.fetches.get()).1)
        .into();
        assert_eq!(
            fetches,
            [1, 1, 2, 2, 2, 3, 4, 5, 5],
            "after 2, 4, 8 seconds"
        );
        host.set.replace(set("a"));
        assert_eq!(ask(2_000), Ok(200));
        let lost = KeyCache::default();
        lost.change("u", |fetched| fetched.is_in_flight = true);
        let found = all([lost.key("u", &token, &host, 1_000)]);
        assert!(matches!(found.as_slice(), [Ok(_)]));
        assert!(!lost.0.borrow()["u"].is_in_flight);
    }

    fn issuer() -> Issuer {
        Issuer {
            header: "Authorization",
            name: String::from("https://id.example"),
            audience: String::from("cdr"),
            keys: String::new(),
            roles_claim: String::from("realm_access.roles"),
            roles: BTreeMap::new(),
            ehr_claim: String::from("ehrId"),
        }
    }

    #[test]
    fn claims_become_a_caller() {
        let claims = serde_json::json!({ "sub": "42", "name": "Ann", "realm_access": { "roles": ["read", "other"] } });
        let mut expected = Caller::with_roles("42", "https://id.example", &["read"]);
        expected.label = Some(String::from("Ann"));
        assert_eq!(issuer().caller(&claims).unwrap(), expected);
        let mapped = Issuer {
            roles: BTreeMap::from([(String::from("other"), vec![String::from("query")])]),
            ..issuer()
        };
        let mut expected = Caller::with_roles("42", "https://id.example", &["query"]);
        expected.label = Some(String::from("Ann"));
        assert_eq!(mapped.caller(&claims).unwrap(), expected);
        assert!(
            issuer()
                .caller(&serde_json::json!({ "email": "a@b" }))
                .is_err()
        );
    }

    #[test]
    fn roles_limit_the_scopes_of_a_user_only_if_the_token_has_their_claim() {
        let permission = Permission {
            resource: Resource::Record,
            act: Action::Read,
        };
        let may_read = |roles: Option<&str>| {
            let mut claims = serde_json::json!({ "sub": "42", "scope": "user/composition-*.r" });
            if let Some(role) = roles {
                claims["realm_access"] = serde_json::json!({ "roles": [role] });
            }
            let caller = issuer().caller(&claims).unwrap();
            caller.has_permission(permission, Subject::Some)
        };
        assert!(may_read(Some("read")));
        assert!(!may_read(Some("define")), "the role grants no reading");
        assert!(may_read(None), "the roles are unknown");
    }

    #[test]
    fn unreadable_claim_of_scopes_grants_nothing() {
        use serde_json::{Value, json};
        let permission = Permission {
            resource: Resource::Record,
            act: Action::Read,
        };
        let may_read = |key: &str, scopes: Value| {
            let mut claims = json!({ "sub": "42", "realm_access": { "roles": ["read"] } });
            claims[key] = scopes;
            let caller = issuer().caller(&claims).unwrap();
            caller.has_permission(permission, Subject::Some)
        };
        let scope = "patient/composition-*.r";
        for unreadable in [
            json!(5),
            json!(null),
            json!(true),
            json!({ scope: 1 }),
            json!([[scope]]),
            json!(["openid", 5]),
            json!(format!("openid,{scope}")),
            json!(format!("\"{scope}\"")),
            json!(format!("openid\u{a0}{scope}")),
            json!([format!("openid;{scope}")]),
        ] {
            for key in ["scope", "scp"] {
                assert!(!may_read(key, unreadable.clone()), "{key} {unreadable}");
            }
        }
        for readable in [
            json!("openid user/composition-*.r"),
            json!(["openid"]),
            json!(""),
        ] {
            assert!(may_read("scope", readable.clone()), "{readable}");
        }
    }

    #[test]
    fn request_without_a_signed_token_is_refused() {
        let authenticator = Authenticator {
            issuers: vec![issuer()],
            users: None,
        };
        let host = Fake::with("a");
        let ask = |header: &str, value: &str| {
            let request = Request::new("GET", "/v1/ehr").with_header(header, value);
            now_or_never(authenticator.authenticate(&request, &KeyCache::default(), &host, 0))
                .unwrap()
                .map_err(|d| d.failure().status)
        };
        assert_eq!(
            ask("Cf-Access-Authenticated-User-Email", "root@example.org"),
            Err(401)
        );
        assert_eq!(ask("Authorization", "Basic cm9vdDo="), Err(401));
        assert_eq!(ask("Authorization", "Bearer x"), Err(401));
    }

    #[test]
    fn every_401_names_all_configured_schemes_and_no_other() {
        let users = || {
            Users::parse(&format!(
                "ann:50000:{}:{}:read",
                "A".repeat(22),
                "A".repeat(43)
            ))
            .ok()
        };
        let sent = [
            ("X-Nothing", ""),
            ("Authorization", "Bearer x"),
            ("Authorization", "Basic cm9vdDpyb290"),
            ("Authorization", "Digest x"),
        ];
        for (issuers, users) in [
            (vec![issuer()], None),
            (vec![], users()),
            (vec![issuer()], users()),
            (vec![], None),
        ] {
            let authenticator = Authenticator { issuers, users };
            let schemes = |challenge: &str| {
                ["Bearer ", "Basic "].map(|scheme| challenge.matches(scheme).count())
            };
            let bearer =
                usize::from(!authenticator.issuers.is_empty() || authenticator.users.is_none());
            for (header, value) in sent {
                let request = Request::new("GET", "/v1/ehr").with_header(header, value);
                let denied = now_or_never(authenticator.authenticate(
                    &request,
                    &KeyCache::default(),
                    &Fake::with("a"),
                    0,
                ))
                .unwrap()
                .unwrap_err();
                let response = denied.failure().into_response(&request);
                let challenge = response.header("WWW-Authenticate").unwrap_or_default();
                assert_eq!(
                    (response.status, schemes(challenge)),
                    (401, [bearer, usize::from(authenticator.users.is_some())]),
                    "{value}: {challenge}"
                );
            }
            assert_eq!(
                schemes(authenticator.challenge()),
                [bearer, usize::from(authenticator.users.is_some())]
            );
        }
    }

    #[test]
    fn a_403_names_the_scheme_of_tokens_only_for_a_caller_with_a_token() {
        let permission = Permission {
            resource: Resource::Admin,
            act: Action::Delete,
        };
        let named = |issuer: &str| {
            Caller::with_roles("ann", issuer, &["read"])
                .refused(permission)
                .into_response(&Request::default())
        };
        assert_eq!(named("").header("WWW-Authenticate"), None);
        assert!(
            named("https://id.example")
                .header("WWW-Authenticate")
                .is_some_and(|c| c.contains("insufficient_scope"))
        );
    }
}
