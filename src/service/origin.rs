//! Checks of the host and the origin of a request.
//!
//! Two attacks use a browser that may reach the service. A page of another site can send requests
//! with the browser's cookies (cross-site request forgery). A page whose name was bound to the
//! address of the service counts as its own page (DNS rebinding). Browsers reveal the first by
//! `Origin` and `Sec-Fetch-Site`, the second by `Host`. Other clients send neither `Origin` nor
//! `Sec-Fetch-Site`, and are accepted.

use super::error::Failure;
use super::{Auth, Config, Request};

/// Checks that the request is addressed to a host of this deployment: 421.
///
/// [`Config::hosts`] and the host of [`Config::base_url`] are allowed; without configured hosts,
/// every host is. An open service accepts loopback names, these hosts and the host of `base_url`
/// only; for it, an empty list allows no other host. A request that did not come by a network has
/// no host, and is accepted.
///
/// Both the address of the request and its header `Host` are checked. They are the same, unless the
/// request line has a whole URL, or something before the service has rewritten the address: the
/// local runtime of Cloudflare does so for any client that sends the header `MF-Original-URL`.
pub(crate) fn check_host(request: &Request, config: &Config) -> Result<(), Failure> {
    let addressed = [
        authority_of(&request.base_url),
        request.header("Host").unwrap_or_default(),
    ];
    let unknown = addressed
        .into_iter()
        .find(|authority| !is_known(authority, config));
    unknown.map_or(Ok(()), |authority| Err(unknown_host(authority, config)))
}

/// Returns whether an authority means this deployment. It is empty for a request that did not come
/// by a network.
fn is_known(authority: &str, config: &Config) -> bool {
    let is_open = config.auth == Auth::Open;
    authority.is_empty()
        || config.hosts.iter().any(|host| fits(authority, host))
        || authority.eq_ignore_ascii_case(authority_of(&config.base_url))
        || (is_open && is_loopback(name_of(authority)))
        // With authentication, DNS rebinding gains nothing: the attacking page has no credentials.
        || (!is_open && config.hosts.is_empty())
}

fn unknown_host(authority: &str, config: &Config) -> Failure {
    let shown: String = authority.chars().take(100).collect();
    let remedy = if config.auth == Auth::Open {
        "with AUTH=none only loopback names such as 127.0.0.1 and localhost are, and those in HOSTS"
    } else {
        "add it to HOSTS"
    };
    Failure::new(
        421,
        format!("the host `{shown}` is not one of this service: {remedy}"),
    )
}

/// Checks that a change was not sent by a page of another site: 403.
///
/// Every method but GET, HEAD and OPTIONS counts as a change. Pages of this service and of
/// [`Config::origins`] may send it. Browsers send each header once. Of several values, in headers
/// of their own or joined by commas, each must be allowed: a proxy may have added to those of a
/// browser.
pub(crate) fn check_origin(request: &Request, config: &Config) -> Result<(), Failure> {
    if matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS") {
        return Ok(());
    }
    let origins = values(request, "Origin");
    let is_elsewhere = values(request, "Sec-Fetch-Site")
        .iter()
        // `none` is a request that a user started, from the address bar for example.
        .any(|site| !["same-origin", "none"].contains(&site.to_ascii_lowercase().as_str()));
    if origins.is_empty() {
        // Without an origin, only `*` allows it.
        return match is_elsewhere && !config.allows_origin("") {
            true => Err(refused("a page of another site")),
            false => Ok(()),
        };
    }
    let is_foreign = |origin: &&str| {
        !config.allows_origin(origin) && (is_elsewhere || !is_own(origin, request, config))
    };
    match origins.into_iter().find(is_foreign) {
        Some(origin) => Err(refused(&format!("a page of the origin `{origin}`"))),
        None => Ok(()),
    }
}

/// Returns the values of all headers with a name. Commas separate values too.
fn values<'r>(request: &'r Request, name: &str) -> Vec<&'r str> {
    let named = |(other, _): &&(String, String)| other.eq_ignore_ascii_case(name);
    let headers = request.headers.iter().filter(named);
    headers
        .flat_map(|(_, value)| value.split(','))
        .map(str::trim)
        .collect()
}

fn refused(who: &str) -> Failure {
    let who: String = who.chars().take(200).collect();
    Failure::new(
        403,
        format!(
            "{who} may not send this: only pages of this service may, and those whose origin is in ORIGINS"
        ),
    )
}

/// Returns whether an origin is the service itself: its scheme, host and port. Behind a proxy that
/// terminates TLS, the service receives `http`, and [`Config::base_url`] has the scheme of its
/// pages.
fn is_own(origin: &str, request: &Request, config: &Config) -> bool {
    [&config.base_url, &request.base_url]
        .into_iter()
        .any(|base| !base.is_empty() && origin.eq_ignore_ascii_case(base))
}

/// Returns host and port of a base URL.
pub(super) fn authority_of(base_url: &str) -> &str {
    base_url
        .split_once("://")
        .map_or(base_url, |(_, authority)| authority)
}

/// Returns the host of an authority, without its port and without the period that ends an absolute
/// name.
fn name_of(authority: &str) -> &str {
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    let name = authority
        // The last colon: an IPv6 address has others in its brackets.
        .rsplit_once(':')
        .filter(|(_, port)| is_port(port))
        .map_or(authority, |(name, _)| name);
    name.strip_suffix('.').unwrap_or(name)
}

/// Returns whether an authority matches a configured host: with its port, or with any port if the
/// configuration has none.
fn fits(authority: &str, host: &str) -> bool {
    authority.eq_ignore_ascii_case(host) || name_of(authority).eq_ignore_ascii_case(host)
}

/// Returns whether a name means the machine itself (RFC 6761, section 6.3; RFC 1122, section
/// 3.2.1.3).
fn is_loopback(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_v4 = || {
        name.starts_with("127.")
            // All of 127.0.0.0/8, but no name such as `127.0.0.1.example.org`.
            && name.split('.').count() == 4
            && name.split('.').all(|part| part.parse::<u8>().is_ok())
    };
    name == "[::1]" || name == "localhost" || name.ends_with(".localhost") || is_v4()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(base: &str, method: &str, headers: &[(&str, &str)]) -> Request {
        let request = Request {
            base_url: base.to_owned(),
            ..Request::new(method, "/v1/admin/reset")
        };
        headers.iter().fold(request, |request, (name, value)| {
            request.with_header(name, value)
        })
    }

    fn host(base: &str, auth: Auth, hosts: &[&str]) -> u16 {
        let config = Config {
            auth,
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            ..Config::default()
        };
        check_host(&sent(base, "GET", &[]), &config).map_or_else(|failure| failure.status, |()| 200)
    }

    #[test]
    fn an_open_service_answers_to_loopback_names_only() {
        for name in [
            "127.0.0.1",
            "127.0.0.1:8787",
            "127.8.9.1",
            "localhost:1",
            "LOCALHOST",
            "a.localhost:80",
            "localhost.",
            "[::1]",
            "[::1]:8787",
        ] {
            assert_eq!(
                host(&format!("http://{name}"), Auth::Open, &[]),
                200,
                "{name}"
            );
        }
        for name in [
            "evil.example:8787",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "notlocalhost",
            "10.0.0.1",
            "[::2]:1",
            "[::1].evil",
            "x@127.0.0.1",
            "0.0.0.0",
        ] {
            assert_eq!(
                host(&format!("http://{name}"), Auth::Open, &[]),
                421,
                "{name}"
            );
        }
        assert_eq!(
            host("http://dev.example:8787", Auth::Open, &["dev.example"]),
            200,
            "a configured host is known"
        );
        let behind = Config {
            auth: Auth::Open,
            base_url: String::from("https://dev.example"),
            ..Config::default()
        };
        assert_eq!(
            check_host(&sent("https://dev.example", "GET", &[]), &behind),
            Ok(())
        );
        assert_eq!(
            host("", Auth::Open, &[]),
            200,
            "a call within a process has no host"
        );
    }

    #[test]
    fn address_and_header_must_both_name_a_known_host() {
        let open = Config {
            auth: Auth::Open,
            ..Config::default()
        };
        let status = |header: &str| {
            let request = sent("http://localhost:8787", "GET", &[("Host", header)]);
            check_host(&request, &open).map_or_else(|failure| failure.status, |()| 200)
        };
        assert_eq!(status("127.0.0.1:8787"), 200);
        for header in [
            "evil.example:8787",
            "localhost#evil",
            "localhost?x",
            "localhost/x",
        ] {
            assert_eq!(status(header), 421, "{header}");
        }
    }

    #[test]
    fn configured_hosts_are_the_only_ones() {
        let hosts = ["cdr.example.org", "other.example:8443"];
        for (name, status) in [
            ("cdr.example.org", 200),
            ("CDR.example.org.", 200),
            ("cdr.example.org:444", 200),
            ("other.example:8443", 200),
            ("other.example", 421),
            ("127.0.0.1", 421),
            ("evil.example", 421),
            ("cdr.example.org.evil.example", 421),
        ] {
            assert_eq!(
                host(&format!("https://{name}"), Auth::Known, &hosts),
                status,
                "{name}"
            );
            assert_eq!(
                host(&format!("https://{name}"), Auth::Known, &[]),
                200,
                "{name}"
            );
        }
    }

    #[test]
    fn changes_come_from_pages_of_the_service_or_of_allowed_origins() {
        let config = Config {
            origins: vec![String::from("https://app.example")],
            ..Config::default()
        };
        let base = "http://127.0.0.1:8787";
        let cases: &[(&[(&str, &str)], u16)] = &[
            (&[], 200),
            (&[("Origin", base), ("Sec-Fetch-Site", "same-origin")], 200),
            (&[("Origin", base)], 200),
            (&[("Sec-Fetch-Site", "none")], 200),
            (
                &[
                    ("Origin", "https://app.example"),
                    ("Sec-Fetch-Site", "cross-site"),
                ],
                200,
            ),
            (&[("Origin", "https://127.0.0.1:8787")], 403),
            (&[("Origin", base), ("Origin", base)], 200),
            (&[("Origin", base), ("Origin", "https://evil.example")], 403),
            (&[("Origin", "https://evil.example"), ("Origin", base)], 403),
            (
                &[("Origin", "http://127.0.0.1:8787, https://evil.example")],
                403,
            ),
            (
                &[("Origin", "http://127.0.0.1:8787, https://app.example")],
                200,
            ),
            (
                &[
                    ("Sec-Fetch-Site", "same-origin"),
                    ("Sec-Fetch-Site", "cross-site"),
                ],
                403,
            ),
            (&[("Sec-Fetch-Site", "same-origin, cross-site")], 403),
            (&[("Sec-Fetch-Site", "none, same-origin")], 200),
            (
                &[
                    ("Origin", "https://app.example"),
                    ("Origin", base),
                    ("Sec-Fetch-Site", "cross-site"),
                ],
                403,
            ),
            (
                &[
                    ("Origin", "http://127.0.0.1:9999"),
                    ("Sec-Fetch-Site", "same-site"),
                ],
                403,
            ),
            (
                &[
                    ("Origin", "https://evil.example"),
                    ("Sec-Fetch-Site", "cross-site"),
                ],
                403,
            ),
            (
                &[
                    ("Origin", "https://evil.example"),
                    ("Sec-Fetch-Site", "same-origin"),
                ],
                403,
            ),
            (&[("Origin", "https://evil.example")], 403),
            (&[("Origin", base), ("Sec-Fetch-Site", "cross-site")], 403),
            (&[("Origin", "null")], 403),
            (&[("Origin", "")], 403),
            (&[("Sec-Fetch-Site", "Cross-Site")], 403),
            (&[("Sec-Fetch-Site", "same-site")], 403),
            (&[("Sec-Fetch-Site", "of tomorrow")], 403),
        ];
        for (headers, status) in cases {
            for method in ["POST", "PUT", "DELETE", "PATCH"] {
                let found = check_origin(&sent(base, method, headers), &config)
                    .map_or_else(|failure| failure.status, |()| 200);
                assert_eq!(found, *status, "{method} {headers:?}");
            }
            for method in ["GET", "HEAD", "OPTIONS"] {
                assert_eq!(
                    check_origin(&sent(base, method, headers), &config),
                    Ok(()),
                    "{method} {headers:?}"
                );
            }
        }
        let open = Config {
            origins: vec![String::from("*")],
            ..Config::default()
        };
        assert_eq!(
            check_origin(
                &sent(base, "POST", &[("Origin", "https://evil.example")]),
                &open
            ),
            Ok(())
        );
        let behind = Config {
            base_url: String::from("https://cdr.example.org"),
            ..Config::default()
        };
        for (origin, status) in [
            ("https://cdr.example.org", 200),
            ("http://cdr.example.org", 403),
            (base, 200),
        ] {
            let found = check_origin(&sent(base, "POST", &[("Origin", origin)]), &behind)
                .map_or_else(|failure| failure.status, |()| 200);
            assert_eq!(found, status, "{origin}");
        }
    }
}
