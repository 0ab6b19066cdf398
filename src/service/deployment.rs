//! The variables and secrets of a deployment, the same for all servers. A host reads them once.

use super::auth::{Authenticator, Issuer, Users};
use super::{Auth, Concurrency, Config, Limits};
use crate::template::flat::Maker;
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
        let text = self.text(name).unwrap_or_default();
        text.split(',')
            .map(|part| part.trim().to_owned())
            .filter(|part| !part.is_empty())
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
        system_id: variables.text("SYSTEM_ID").unwrap_or(checked.system_id),
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
    let (auth, authenticator) = access(variables)?;
    let dialects = [("better", Maker::Better), ("ehrbase", Maker::Ehrbase)];
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
}
