//! Recognising callers: bearer tokens, assertions of Cloudflare Access, and users with passwords for development.

use super::super::Request;
use super::caller::{Caller, Denied};
use super::scope::of_text;
use super::token::{Algorithm, Token, keys_of};
use super::users::Users;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// How long the keys of an issuer are good, in seconds.
const FRESH: i64 = 600;
/// How long old keys still serve when the issuer does not answer, in seconds.
const STALE: i64 = 3_600;
/// How long a key that is not known is not asked for again, in seconds.
const PATIENCE: i64 = 10;

/// What a host does for the gate.
#[allow(async_fn_in_trait, reason = "futures of a worker are not Send, and nothing spawns them")]
pub trait Keys {
    /// The body of what stands at an address.
    ///
    /// # Errors
    /// When there is no answer with status 200.
    async fn fetch(&self, url: &str) -> Result<String, String>;

    /// True when the signature of `data` was made with the key, a JWK as JSON. A key that cannot be used verifies nothing.
    async fn verify(&self, algorithm: Algorithm, key: &str, data: &[u8], signature: &[u8]) -> bool;

    /// 32 bytes from a password by PBKDF2 with HMAC-SHA-256.
    async fn derive(&self, password: &str, salt: &[u8], iterations: u32) -> Option<Vec<u8>>;
}

/// Who vouches for callers, and what its tokens say about them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issuer {
    /// The header that carries the token: `Authorization`, with `Bearer`, or another one.
    pub header: &'static str,
    /// The claim `iss`.
    pub name: String,
    /// One of the claim `aud`.
    pub audience: String,
    /// Where its keys are: a JWK set.
    pub keys: String,
    /// The claim that lists the roles; a path with periods.
    pub roles_claim: String,
    /// What its words for roles mean here; without any, roles are called as they are here.
    pub roles: BTreeMap<String, Vec<String>>,
    /// The claim that names the EHR of the launch context.
    pub ehr_claim: String,
}

/// What the service is told about who may call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Gate {
    /// Whose tokens are believed.
    pub issuers: Vec<Issuer>,
    /// Users with passwords: for development.
    pub users: Option<Users>,
}

/// The keys of the issuers, as last fetched.
#[derive(Default)]
pub struct KeyRing(RefCell<BTreeMap<String, Fetched>>);

#[derive(Clone, Default)]
struct Fetched {
    keys: Vec<Value>,
    /// When they came, and when they were asked for last, successfully or not: seconds since 1970.
    at: i64,
    tried: i64,
}

impl Gate {
    /// How a caller can make itself known: the value of WWW-Authenticate.
    pub fn challenge(&self) -> &'static str {
        match (self.issuers.is_empty(), &self.users) {
            (true, Some(_)) => "Basic realm=\"aqlite\", charset=\"UTF-8\"",
            _ => "Bearer realm=\"aqlite\"",
        }
    }

    /// Recognises the caller of a request; `now` is in seconds since 1970.
    ///
    /// # Errors
    /// When the request carries no credentials, or such that are not believed.
    pub async fn recognise<K: Keys>(&self, request: &Request, ring: &KeyRing, host: &K, now: i64) -> Result<Caller, Denied> {
        for issuer in &self.issuers {
            if let Some(text) = issuer.token_in(request) {
                return issuer.recognise(text, ring, host, now).await;
            }
        }
        match &self.users {
            Some(users) if scheme(request, "Basic").is_some() => users.recognise(scheme(request, "Basic").unwrap_or_default(), host).await,
            _ => Err(Denied::nobody(self.challenge())),
        }
    }
}

/// The credentials of an Authorization header of this scheme.
fn scheme<'r>(request: &'r Request, scheme: &str) -> Option<&'r str> {
    let (sent, credentials) = request.header("Authorization")?.split_once(' ')?;
    sent.eq_ignore_ascii_case(scheme).then(|| credentials.trim())
}

impl Issuer {
    fn token_in<'r>(&self, request: &'r Request) -> Option<&'r str> {
        if self.header == "Authorization" { scheme(request, "Bearer") } else { request.header(self.header) }
    }

    async fn recognise<K: Keys>(&self, text: &str, ring: &KeyRing, host: &K, now: i64) -> Result<Caller, Denied> {
        let token = Token::read(text)?;
        token.check(&self.name, &self.audience, now)?;
        let key = ring.key(&self.keys, &token, host, now).await?;
        if !host.verify(token.algorithm, &key.to_string(), token.signed, &token.signature).await {
            return Err(Denied::token("its signature is wrong"));
        }
        self.caller(&token.claims)
    }

    /// What a token that is believed says about the caller.
    fn caller(&self, claims: &Value) -> Result<Caller, Denied> {
        let text = |key: &str| claims.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
        let name = text("sub").or_else(|| text("common_name")).or_else(|| text("client_id"));
        let name = name.ok_or_else(|| Denied::token("it names nobody (`sub`)"))?;
        let listed = self.roles_claim.split('.').try_fold(claims, |value, part| value.get(part));
        let roles = listed.map(words).unwrap_or_default();
        let here: Vec<&str> = roles.iter().flat_map(|role| self.role(role)).collect();
        let scopes = ["scope", "scp"].iter().filter_map(|key| claims.get(key)).flat_map(words).collect::<Vec<_>>().join(" ");
        let ehr = text(&self.ehr_claim).filter(|id| super::super::ids::is_uuid(id));
        let mut caller = Caller::with_roles(name, &self.name, &here);
        caller.label = ["name", "preferred_username"].into_iter().find_map(text).map(str::to_owned);
        let roles_known = listed.is_some() && of_text(&scopes).next().is_some();
        Ok(caller.narrowed(&scopes, ehr, roles_known))
    }

    /// What one of its words for roles means here.
    fn role<'a>(&'a self, word: &'a str) -> Vec<&'a str> {
        if self.roles.is_empty() {
            return vec![word];
        }
        self.roles.get(word).map(|here| here.iter().map(String::as_str).collect()).unwrap_or_default()
    }
}

/// The words of a claim: a text with blanks between them, or a list.
fn words(claim: &Value) -> Vec<String> {
    match claim {
        Value::String(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
        Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

impl KeyRing {
    /// The key of a token. Keys are fetched when they are old, and once more when the issuer may have changed them.
    async fn key<K: Keys>(&self, url: &str, token: &Token<'_>, host: &K, now: i64) -> Result<Value, Denied> {
        let held = self.0.borrow().get(url).cloned().unwrap_or_default();
        let fresh = now < held.at.saturating_add(FRESH);
        let known = token.key(&held.keys).cloned();
        if let (Some(key), true) = (&known, fresh) {
            return Ok(key.clone());
        }
        let may_ask = now >= held.tried.saturating_add(PATIENCE);
        if may_ask && let Some(keys) = self.fetched(url, held.clone(), host, now).await {
            return token.key(&keys).cloned().ok_or_else(unknown);
        }
        match known {
            Some(key) if now < held.at.saturating_add(STALE) => Ok(key),
            _ if fresh => Err(unknown()),
            _ => Err(Denied::unavailable()),
        }
    }

    async fn fetched<K: Keys>(&self, url: &str, held: Fetched, host: &K, now: i64) -> Option<Vec<Value>> {
        self.0.borrow_mut().insert(url.to_owned(), Fetched { tried: now, ..held });
        let keys = keys_of(&host.fetch(url).await.ok()?)?;
        self.0.borrow_mut().insert(url.to_owned(), Fetched { keys: keys.clone(), at: now, tried: now });
        Some(keys)
    }
}

fn unknown() -> Denied {
    Denied::token("its key (`kid`) is not one of the issuer's")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ready::block_on;
    use std::cell::Cell;

    /// An issuer whose keys change: a signature is right when it is the id of the key.
    struct Fake {
        set: RefCell<Option<String>>,
        fetches: Cell<usize>,
    }

    impl Keys for Fake {
        async fn fetch(&self, _: &str) -> Result<String, String> {
            self.fetches.set(self.fetches.get() + 1);
            self.set.borrow().clone().ok_or_else(|| String::from("away"))
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
        Some(format!(r#"{{"keys":[{{"kid":"{kid}","kty":"EC","crv":"P-256"}}]}}"#))
    }

    fn token(kid: &str) -> Token<'static> {
        Token { algorithm: Algorithm::Es256, key_id: kid.to_owned(), claims: Value::Null, signed: b"", signature: Vec::new() }
    }

    #[test]
    fn keys_are_kept_rotate_and_are_not_asked_for_all_the_time() {
        let (ring, host) = (KeyRing::default(), Fake { set: RefCell::new(set("a")), fetches: Cell::new(0) });
        let ask = |kid: &str, now: i64| block_on(ring.key("u", &token(kid), &host, now)).unwrap().map_err(|d| d.failure().status).map(|_| 200);
        assert_eq!((ask("a", 1000), host.fetches.get()), (Ok(200), 1));
        assert_eq!((ask("a", 1599), host.fetches.get()), (Ok(200), 1), "fresh keys are used as they are");
        host.set.replace(set("b"));
        assert_eq!((ask("b", 1599), host.fetches.get()), (Ok(200), 2), "a new key is asked for");
        assert_eq!((ask("c", 1600), host.fetches.get()), (Err(401), 2), "but not again at once");
        assert_eq!((ask("c", 1629), host.fetches.get()), (Err(401), 3));
        assert_eq!((ask("a", 1660), host.fetches.get()), (Err(401), 4), "what the issuer took back is not believed");
        host.set.replace(None);
        assert_eq!(ask("b", 3000), Ok(200), "keys serve an hour while the issuer is away");
        assert_eq!(ask("b", 9000), Err(503));
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
        let mapped = Issuer { roles: BTreeMap::from([(String::from("other"), vec![String::from("query")])]), ..issuer() };
        let mut expected = Caller::with_roles("42", "https://id.example", &["query"]);
        expected.label = Some(String::from("Ann"));
        assert_eq!(mapped.caller(&claims).unwrap(), expected);
        assert!(issuer().caller(&serde_json::json!({ "email": "a@b" })).is_err());
    }

    #[test]
    fn an_unsigned_request_is_nobodys() {
        let gate = Gate { issuers: vec![issuer()], users: None };
        let host = Fake { set: RefCell::new(set("a")), fetches: Cell::new(0) };
        let ask = |header: &str, value: &str| {
            let request = Request::new("GET", "/v1/ehr").with_header(header, value);
            block_on(gate.recognise(&request, &KeyRing::default(), &host, 0)).unwrap().map_err(|d| d.failure().status)
        };
        assert_eq!(ask("Cf-Access-Authenticated-User-Email", "root@example.org"), Err(401));
        assert_eq!(ask("Authorization", "Basic cm9vdDo="), Err(401));
        assert_eq!(ask("Authorization", "Bearer x"), Err(401));
    }
}
