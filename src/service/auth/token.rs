//! JSON Web Tokens: parsing, selection of the key, and validation. The host verifies signatures.
//!
//! Only RS256 and ES256 are accepted: with a shared secret, or with no algorithm, a caller could
//! sign with public data.

use super::caller::Denied;
use crate::rm::json;
use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;

/// The maximum length of a token in bytes.
const MAX_TOKEN: usize = 16_384;
/// The maximum difference between the clocks of issuer and service, in seconds.
const SKEW: i64 = 60;

/// A signature algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// ECDSA with P-256 and SHA-256; the signature is `r` and `s`, 32 bytes each.
    Es256,
}

impl Algorithm {
    fn from_name(name: &str) -> Option<Algorithm> {
        match name {
            "RS256" => Some(Algorithm::Rs256),
            "ES256" => Some(Algorithm::Es256),
            _ => None,
        }
    }

    /// Returns its name in the headers of tokens.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Es256 => "ES256",
        }
    }
}

/// A parsed token. Nothing in it is verified yet.
pub(crate) struct Token<'t> {
    pub algorithm: Algorithm,
    pub key_id: String,
    pub claims: Value,
    /// The signed text.
    pub signed: &'t [u8],
    pub signature: Vec<u8>,
}

impl<'t> Token<'t> {
    /// Parses a token in its compact form.
    pub fn read(text: &'t str) -> Result<Token<'t>, Denied> {
        let malformed = || Denied::token("it is not a JSON Web Token of three parts");
        if text.len() > MAX_TOKEN {
            return Err(Denied::token("it is too long"));
        }
        let (signed, signature) = text.rsplit_once('.').ok_or_else(malformed)?;
        let (header, claims) = signed.split_once('.').ok_or_else(malformed)?;
        let object = |part: &str| {
            base64url(part)
                .and_then(|bytes| json::value(str::from_utf8(&bytes).ok()?).ok())
                .filter(Value::is_object)
        };
        let (header, claims) = (
            object(header).ok_or_else(malformed)?,
            object(claims).ok_or_else(malformed)?,
        );
        let (algorithm, key_id) = algorithm_and_key(&header)?;
        let signature = base64url(signature)
            .filter(|s| !s.is_empty())
            .ok_or_else(malformed)?;
        Ok(Token {
            algorithm,
            key_id,
            claims,
            signed: signed.as_bytes(),
            signature,
        })
    }

    /// Returns its key in a JWK set: with the same id, for this algorithm and for signatures.
    pub fn key<'k>(&self, keys: &'k [Value]) -> Option<&'k Value> {
        let (family, curve) = match self.algorithm {
            Algorithm::Rs256 => ("RSA", None),
            Algorithm::Es256 => ("EC", Some("P-256")),
        };
        keys.iter().find(|key| {
            let text = |name: &str| key.get(name).and_then(Value::as_str);
            // Type and curve must match the algorithm of the token, otherwise a key could be used
            // with an algorithm that it was not made for.
            text("kid") == Some(&self.key_id)
                && text("kty") == Some(family)
                && text("crv") == curve
                && text("use").is_none_or(|u| u == "sig")
                && text("alg").is_none_or(|a| a == self.algorithm.name())
        })
    }

    fn is_for(&self, audience: &str) -> bool {
        match self.claims.get("aud") {
            Some(Value::String(one)) => one == audience,
            Some(Value::Array(all)) => all.iter().any(|a| a.as_str() == Some(audience)),
            _ => false,
        }
    }

    /// Checks that the token is from this issuer, for this audience, and valid now (seconds since
    /// 1970). Returns the time until which it is accepted.
    pub fn check(&self, issuer: &str, audience: &str, now: i64) -> Result<i64, Denied> {
        let time = |name: &str| {
            self.claims
                .get(name)
                .map(|v| v.as_f64().map(|seconds| seconds as i64))
        };
        if self.claims.get("iss").and_then(Value::as_str) != Some(issuer) {
            return Err(Denied::token("it is from another issuer"));
        }
        match (time("exp"), time("nbf")) {
            _ if !self.is_for(audience) => Err(Denied::token("it is for another audience")),
            (Some(Some(until)), _) if until.saturating_add(SKEW) <= now => Err(Denied::expired()),
            (_, Some(Some(from))) if from.saturating_sub(SKEW) > now => {
                Err(Denied::token("it is not valid yet"))
            }
            // `exp` is required. A token without an end would be valid forever.
            (Some(Some(until)), None | Some(Some(_))) => Ok(until.saturating_add(SKEW)),
            _ => Err(Denied::token("it does not say until when it is valid")),
        }
    }
}

/// Returns the algorithm of a header, and the id of its key.
fn algorithm_and_key(header: &Value) -> Result<(Algorithm, String), Denied> {
    // RFC 7515, section 4.1.11: an unknown critical extension makes the token invalid.
    if header.get("crit").is_some() {
        return Err(Denied::token(
            "its header has `crit`, and no extension is understood",
        ));
    }
    let text = |key: &str| header.get(key).and_then(Value::as_str).unwrap_or_default();
    let algorithm = Algorithm::from_name(text("alg"))
        .ok_or_else(|| Denied::token("its algorithm is neither RS256 nor ES256"))?;
    match text("kid") {
        "" => Err(Denied::token("its header names no key (`kid`)")),
        id => Ok((algorithm, id.to_owned())),
    }
}

/// Returns the keys of a JWK set.
pub(crate) fn keys_of(text: &str) -> Option<Vec<Value>> {
    let set = json::value(text).ok()?;
    set.get("keys")?.as_array().cloned()
}

/// Decodes base64url without padding (RFC 7515, section 2). Rejects trailing bits that are not
/// zero, so each value has one spelling.
pub(crate) fn base64url(text: &str) -> Option<Vec<u8>> {
    BASE64URL_NOPAD.decode(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: i64 = 1_796_000_000;

    fn token(claims: Value) -> Token<'static> {
        Token {
            algorithm: Algorithm::Es256,
            key_id: String::from("k1"),
            claims,
            signed: b"",
            signature: vec![0],
        }
    }

    #[test]
    fn a_token_has_a_longest_length() {
        let of_length = |length: usize| "a".repeat(length);
        let read = |length| Token::read(&of_length(length)).map(drop).unwrap_err();
        assert_eq!(read(MAX_TOKEN + 1), Denied::token("it is too long"));
        assert_ne!(read(MAX_TOKEN), Denied::token("it is too long"));
    }

    #[test]
    fn base64url_is_strict() {
        assert_eq!(base64url("AQID_-8").unwrap(), [1, 2, 3, 255, 239]);
        assert_eq!(base64url("").unwrap(), Vec::<u8>::new());
        for bad in ["A", "AQ==", "A+B/", "AB", "AAAAA", "Ä"] {
            assert_eq!(base64url(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_rs256_and_es256_are_accepted() {
        let of = |header: &str| {
            Token::read(header)
                .map(|t| t.algorithm)
                .map_err(|d| d.failure().message.clone())
        };
        // {"alg":"ES256","kid":"k"} and {"alg":"none","kid":"k"} and {"alg":"HS256","kid":"k"}
        assert_eq!(
            of("eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.e30.AQID"),
            Ok(Algorithm::Es256)
        );
        for refused in [
            "eyJhbGciOiJub25lIiwia2lkIjoiayJ9.e30.AQID",
            "eyJhbGciOiJIUzI1NiIsImtpZCI6ImsifQ.e30.AQID",
            "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.e30.",
            "a.b",
            "",
        ] {
            assert!(of(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn token_needs_this_audience_and_a_valid_period() {
        let good = json!({ "iss": "https://id", "aud": ["other", "cdr"], "exp": NOW + 300 });
        let with = |key: &str, value: Value| {
            let mut claims = good.clone();
            claims[key] = value;
            token(claims).check("https://id", "cdr", NOW).is_ok()
        };
        assert!(
            with("aud", json!("cdr"))
                && with("nbf", json!(NOW + 59))
                && with("exp", json!(NOW - 59))
        );
        assert!(
            !with("iss", json!("https://id/"))
                && !with("aud", json!("cd"))
                && !with("aud", json!([]))
        );
        assert!(
            !with("exp", json!(NOW - 60))
                && !with("nbf", json!(NOW + 61))
                && !with("exp", Value::Null)
                && !with("exp", json!("9999999999"))
        );
        assert!(!with("nbf", json!("soon")));
    }

    #[test]
    fn key_of_another_algorithm_is_not_used() {
        let key = |more: Value| {
            let mut key = json!({ "kid": "k1", "kty": "EC", "crv": "P-256" });
            for (name, value) in more.as_object().unwrap() {
                key[name] = value.clone();
            }
            token(json!({})).key(&[key]).is_some()
        };
        assert!(key(json!({})) && key(json!({ "use": "sig", "alg": "ES256" })));
        for wrong in [
            json!({ "kty": "RSA" }),
            json!({ "crv": "P-384" }),
            json!({ "use": "enc" }),
            json!({ "alg": "RS256" }),
            json!({ "kid": "k2" }),
        ] {
            assert!(!key(wrong.clone()), "{wrong}");
        }
    }
}
