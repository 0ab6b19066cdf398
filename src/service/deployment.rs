//! The variables and secrets of a deployment, the same for all servers. A host reads them once.

use super::auth::{Authenticator, Issuer, Users};
use super::ids::MAX_SYSTEM_ID;
use super::{Auth, Concurrency, Config, Limits};
use crate::rm::id::is_uid;
use crate::template::flat::FlatDialect;
use std::collections::BTreeMap;

/// The configuration of a deployment.
pub struct Deployment {
    /// The configuration of the service.
    pub config: Config,
    /// The configuration of authentication.
    pub authenticator: Authenticator,
    /// The first invalid variable. It closes the service.
    pub problem: Option<String>,
}

/// The variables of a host.
pub struct Variables<'e>(&'e dyn Fn(&str) -> Option<String>);

impl<'e> Variables<'e> {
    /// Wraps a function that returns the value of a variable.
    pub fn new(lookup: &'e dyn Fn(&str) -> Option<String>) -> Variables<'e> {
        Variables(lookup)
    }

    /// Returns the value of a variable, unless it is blank.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    fn need(&self, name: &str) -> Result<String, String> {
        self.text(name)
            .ok_or_else(|| format!("the variable {name} is missing"))
    }

    fn number<T: std::str::FromStr>(&self, name: &str, otherwise: T) -> Result<T, String> {
        let read = |text: String| {
            text.trim()
                .parse()
                .map_err(|_| format!("the variable {name} is not a whole number"))
        };
        self.text(name).map_or(Ok(otherwise), read)
    }

    /// Reads one of two words. The first is the default.
    fn either<T>(
        &self,
        name: &str,
        [(usual, first), (other, second)]: [(&str, T); 2],
    ) -> Result<T, String> {
        match self.text(name) {
            Some(text) if text == other => Ok(second),
            Some(text) if text != usual => Err(format!(
                "the variable {name} is `{text}`, expected `{usual}` or `{other}`"
            )),
            _ => Ok(first),
        }
    }

    fn list(&self, name: &str) -> Vec<String> {
        parts(&self.text(name).unwrap_or_default())
            .map(str::to_owned)
            .collect()
    }
}

/// Reads the variables of a deployment. An invalid one closes the service.
pub fn read(variables: &Variables<'_>) -> Deployment {
    let ((checked, authenticator), problem) = match checked(variables) {
        Ok(read) => (read, None),
        // The default configuration refuses all callers.
        Err(problem) => (Default::default(), Some(problem)),
    };
    let config = Config {
        system_id: variables
            .text("SYSTEM_ID")
            .map_or(checked.system_id, |id| id.trim().to_owned()),
        // Other programs read a variable of this name too, so any other value is off.
        debug: variables.text("DEBUG").as_deref() == Some("true"),
        origins: variables.list("ORIGINS"),
        smart: smart(variables, &authenticator),
        base_url: variables
            .text("BASE_URL")
            .map(|base| base.trim().trim_end_matches('/').to_owned())
            .unwrap_or_default(),
        hosts: variables.list("HOSTS"),
        ..checked
    };
    Deployment {
        config,
        authenticator,
        problem,
    }
}

/// Reads the variables that may be invalid.
fn checked(variables: &Variables<'_>) -> Result<(Config, Authenticator), String> {
    check_forms(variables)?;
    let (auth, authenticator) = access(variables)?;
    let dialects = [
        ("better", FlatDialect::Better),
        ("ehrbase", FlatDialect::Ehrbase),
    ];
    let is_logged = variables.either("ACCESS_LOG", [("off", false), ("on", true)])?;
    let config = Config {
        auth,
        log: auth != Auth::Open || is_logged,
        admin: variables.either("ADMIN", [("false", false), ("true", true)])?,
        limits: limits(variables)?,
        exact_archetypes: variables
            .either("SPECIALISATION", [("subsume", false), ("exact", true)])?,
        flat_dialect: variables.either("FLAT_DIALECT", dialects)?,
        ..Config::default()
    };
    Ok((config, authenticator))
}

/// A variable with a form: its name, the test of a value, and the form with an example.
type VariableForm = (&'static str, fn(&str) -> bool, &'static str);

/// The variables that name systems and addresses.
const FORMS: [VariableForm; 5] = [
    // openEHR BASE, "base_types": the creating system of a version is a UID.
    (
        "SYSTEM_ID",
        |id| id.len() <= MAX_SYSTEM_ID && is_uid(id),
        "an internet name, an OID or a UUID, such as `cdr.example.org`",
    ),
    (
        "HOSTS",
        |hosts| parts(hosts).all(is_authority),
        "names of hosts, such as `cdr.example.org` or `cdr.example.org:8443`",
    ),
    (
        "BASE_URL",
        |url| is_web(url) && is_origin(url.trim_end_matches('/')),
        "scheme and host without a path, such as `https://cdr.example.org`",
    ),
    (
        "ORIGINS",
        |origins| parts(origins).all(|one| one == "*" || is_origin(one)),
        "`*`, or origins such as `https://app.example.org`",
    ),
    (
        "TERMINOLOGY_URL",
        |url| is_web(url) && url.bytes().all(|byte| byte.is_ascii_graphic()),
        "an address such as `https://tx.example.org/r4`",
    ),
];

/// Checks that variables have their form.
fn check_forms(variables: &Variables<'_>) -> Result<(), String> {
    for (name, fits, form) in FORMS {
        if let Some(text) = variables.text(name).filter(|text| !fits(text.trim())) {
            return Err(format!("the variable {name} is `{text}`, expected {form}"));
        }
    }
    Ok(())
}

/// Returns the parts of a list, without empty ones.
fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Returns whether a text is a scheme with an authority (RFC 6454). Pages of applications have
/// schemes of their own.
fn is_origin(text: &str) -> bool {
    let parts = text.split_once("://");
    parts.is_some_and(|(scheme, authority)| !scheme.is_empty() && is_authority(authority))
}

/// Returns whether a text is a host with or without a port. Browsers send other alphabets in ASCII.
fn is_authority(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

/// Default retention of the access log in days (LOG_RETENTION_DAYS).
const RETENTION: u32 = 3650;

/// Returns the retention of the access log in days.
///
/// # Errors
/// A message that names the variable, if it is no number from 1.
pub fn retention(variables: &Variables<'_>) -> Result<u32, String> {
    match variables.number("LOG_RETENTION_DAYS", RETENTION)? {
        0 => Err(String::from(
            "the variable LOG_RETENTION_DAYS is 0, expected a number of days from 1",
        )),
        days => Ok(days),
    }
}

fn access(variables: &Variables<'_>) -> Result<(Auth, Authenticator), String> {
    let mut authenticator = Authenticator::default();
    let ways = variables.list("AUTH");
    for way in &ways {
        match way.as_str() {
            "none" if ways.len() == 1 => return Ok((Auth::Open, authenticator)),
            "jwt" => authenticator.issuers.push(tokens(variables)?),
            "access" => authenticator.issuers.push(cloudflare_access(variables)?),
            "basic" => {
                authenticator.users = Some(
                    Users::parse(&variables.need("USERS")?)
                        .map_err(|e| format!("the secret USERS: {e}"))?,
                )
            }
            other => {
                return Err(format!(
                    "AUTH has `{other}`, expected `jwt`, `access`, `basic`, or `none` alone"
                ));
            }
        }
    }
    Ok((
        if ways.is_empty() {
            Auth::Refuse
        } else {
            Auth::Known
        },
        authenticator,
    ))
}

fn tokens(variables: &Variables<'_>) -> Result<Issuer, String> {
    let (name, audience, keys) = (
        variables.need("JWT_ISSUER")?,
        variables.need("JWT_AUDIENCE")?,
        variables.need("JWT_KEYS")?,
    );
    issuer(variables, "Authorization", name, audience, keys)
}

fn cloudflare_access(variables: &Variables<'_>) -> Result<Issuer, String> {
    let team = variables
        .need("ACCESS_TEAM")?
        .trim_end_matches('/')
        .to_owned();
    let keys = format!("{team}/cdn-cgi/access/certs");
    issuer(
        variables,
        "Cf-Access-Jwt-Assertion",
        team,
        variables.need("ACCESS_AUDIENCE")?,
        keys,
    )
}

fn issuer(
    variables: &Variables<'_>,
    header: &'static str,
    name: String,
    audience: String,
    keys: String,
) -> Result<Issuer, String> {
    let local = ["http://127.0.0.1:", "http://localhost:"]
        .iter()
        .any(|start| keys.starts_with(start));
    if !keys.starts_with("https://") && !local {
        return Err(format!("`{keys}` is not an address with https"));
    }
    let roles: BTreeMap<String, Vec<String>> = match variables.text("ROLES") {
        None => BTreeMap::new(),
        Some(text) => serde_json::from_str(&text).map_err(|_| {
            String::from("the variable ROLES is not a JSON object of lists of roles")
        })?,
    };
    let claim =
        |name: &str, otherwise: &str| variables.text(name).unwrap_or_else(|| otherwise.to_owned());
    Ok(Issuer {
        header,
        name,
        audience,
        keys,
        roles,
        roles_claim: claim("ROLES_CLAIM", "roles"),
        ehr_claim: claim("EHR_CLAIM", "ehrId"),
    })
}

/// Returns the data that an application needs to request a token from the issuer.
fn smart(variables: &Variables<'_>, authenticator: &Authenticator) -> Vec<(String, String)> {
    let Some(issuer) = authenticator
        .issuers
        .iter()
        .find(|issuer| issuer.header == "Authorization")
    else {
        return Vec::new();
    };
    let known = [
        ("issuer", Some(issuer.name.clone())),
        ("jwks_uri", Some(issuer.keys.clone())),
    ];
    let configured = [
        (
            "authorization_endpoint",
            variables.text("AUTHORIZATION_ENDPOINT"),
        ),
        ("token_endpoint", variables.text("TOKEN_ENDPOINT")),
    ];
    known
        .into_iter()
        .chain(configured)
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

fn limits(variables: &Variables<'_>) -> Result<Limits, String> {
    let standard = Limits::default();
    Ok(Limits {
        body: variables.number("LIMIT_BODY", standard.body)?,
        template: variables.number("LIMIT_TEMPLATE", standard.template)?,
        aql: variables.number("LIMIT_AQL", standard.aql)?,
        fetch_default: variables.number("LIMIT_FETCH_DEFAULT", standard.fetch_default)?,
        fetch_maximum: variables.number("LIMIT_FETCH", standard.fetch_maximum)?,
        stream_maximum: variables.number("LIMIT_STREAM", standard.stream_maximum)?,
        query_time: variables
            .number::<i64>("LIMIT_QUERY_MS", standard.query_time / 1000)?
            .saturating_mul(1000),
        query_work: variables.number("LIMIT_QUERY_WORK", standard.query_work)?,
        parameters: variables.number("LIMIT_PARAMETERS", standard.parameters)?,
        result: variables.number("LIMIT_RESULT", standard.result)?,
        guide_ehrs: variables.number("LIMIT_GUIDE_EHRS", standard.guide_ehrs)?,
        concurrency: Concurrency {
            caller: variables.number("LIMIT_CONCURRENCY", standard.concurrency.caller)?,
            heavy: variables.number("LIMIT_CONCURRENCY_HEAVY", standard.concurrency.heavy)?,
            waiting: variables.number("LIMIT_CONCURRENCY_WAITING", standard.concurrency.waiting)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_as_the_variable_says() {
        let auth = |ways: Option<&str>| {
            let lookup = |variable: &str| match variable {
                "AUTH" => ways.map(str::to_owned),
                "USERS" => Some(String::from(
                    "ann:10000:c2FsdHNhbHRzYWx0c2FsdA:aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g:read",
                )),
                _ => None,
            };
            let deployment = read(&Variables::new(&lookup));
            (deployment.config.auth, deployment.problem)
        };
        assert_eq!(auth(Some("none")), (Auth::Open, None));
        assert_eq!(auth(Some("basic")), (Auth::Known, None));
        assert_eq!(auth(None), (Auth::Refuse, None));
    }

    #[test]
    fn switches_have_one_of_two_words() {
        let problem = |name: &str, value: &str| {
            let lookup = |variable: &str| match variable {
                "AUTH" => Some(String::from("none")),
                other => (other == name).then(|| value.to_owned()),
            };
            let deployment = read(&Variables::new(&lookup));
            let Config { log, admin, .. } = deployment.config;
            deployment.problem.map_or(Ok((log, admin)), Err)
        };
        assert_eq!(problem("ADMIN", "true"), Ok((false, true)));
        assert_eq!(problem("ADMIN", "false"), Ok((false, false)));
        assert_eq!(problem("ACCESS_LOG", "on"), Ok((true, false)));
        let expected = [
            (
                "ADMIN",
                "the variable ADMIN is `yes`, expected `false` or `true`",
            ),
            (
                "ACCESS_LOG",
                "the variable ACCESS_LOG is `yes`, expected `off` or `on`",
            ),
        ];
        for (name, message) in expected {
            assert_eq!(problem(name, "yes"), Err(String::from(message)));
        }
    }

    #[test]
    fn systems_and_addresses_have_their_form() {
        let problem = |name: &str, value: &str| {
            let lookup = |variable: &str| (variable == name).then(|| value.to_owned());
            read(&Variables::new(&lookup)).problem
        };
        for (name, valid, invalid) in [
            (
                "SYSTEM_ID",
                &[
                    "cdr.example.org",
                    " aqlite.local ",
                    "1.2.276.0.76",
                    "9624982a-9f42-41a5-9318-ae13d5f5031f",
                ][..],
                &["x::y", "a/b", "a b", "\"a\"", "a,b", "1abc", "ü.example"][..],
            ),
            (
                "HOSTS",
                &["cdr.example.org, [::1]:80,", "cdr.example.org:8443"],
                &["http://cdr.example.org/", "a b", "a.example, b/c", "*"],
            ),
            (
                "BASE_URL",
                &["https://cdr.example.org/", "http://127.0.0.1:8080"],
                &[
                    "nonsense",
                    "cdr.example.org",
                    "https://cdr.example.org/cdr",
                    "ftp://a.example",
                    "https://",
                ],
            ),
            (
                "ORIGINS",
                &["*", "https://a.example, capacitor://localhost"],
                &["app.example.org", "https://app.example.org/"],
            ),
            (
                "TERMINOLOGY_URL",
                &["https://tx.example.org/r4/"],
                &["nourl", "https://tx.example.org/a b"],
            ),
        ] {
            for value in valid {
                assert_eq!(problem(name, value), None);
            }
            for value in invalid {
                let found = problem(name, value).unwrap_or_default();
                let begin = format!("the variable {name} is `{value}`, expected ");
                assert!(found.starts_with(&begin), "{name} {value}: {found}");
            }
        }
    }
}
