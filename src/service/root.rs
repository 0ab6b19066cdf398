//! Requests without a resource: health, the conformance manifest, Allow, CORS.

use super::dialect::Dialect;
use super::error::Failure;
use super::origin::check_host;
use super::route::ENDPOINTS;
use super::{Request, Response, Service};
use crate::store::repository::Repository;
use serde_json::{Map, Value, json};

/// The version of the service.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Response headers that a page of another origin may read.
const EXPOSED: &str = "ETag, Location, Last-Modified, Link, WWW-Authenticate, Allow, Preference-Applied, Retry-After, X-Request-Id, openehr-uri, openehr-template-id, Warning, openehr-item-tag, openehr-version-item-tag, Aqlite-Snapshot, Aqlite-More";
/// Scopes that an application may request in each compartment. Narrower patterns are accepted too.
const SCOPES: [&str; 3] = ["composition-*.cruds", "template-*.cruds", "aql-*.cruds"];
/// Seconds for which a browser may cache a preflight response.
const PREFLIGHT_AGE: &str = "3600";

/// Returns the response to a health check, given the problem of the storage. Everybody may read the
/// response, so the problem is in the log only: it may name a path of the machine.
pub(crate) fn health(request: &Request, problem: Option<String>) -> Response {
    const MESSAGE: &str = "the database does not answer: the log of the server has the reason";
    match problem {
        None => Response::json(
            200,
            json!({ "status": "UP", "solution": "aqlite", "version": VERSION }),
        ),
        Some(problem) => Response {
            problem: Some(problem),
            ..Failure::unavailable(MESSAGE).into_response(request)
        },
    }
}

/// Returns the name of the service in results.
pub(crate) fn generator() -> String {
    format!("aqlite/{VERSION}")
}

impl<R: Repository> Service<R> {
    /// Returns the response to OPTIONS: a CORS preflight, the manifest of a mount, or the methods
    /// of a path.
    pub(super) fn options(
        &self,
        request: &Request,
        dialect: Option<Dialect>,
        allow: &str,
    ) -> Response {
        if request.header("Origin").is_some()
            && let Some(method) = request.header("Access-Control-Request-Method")
        {
            let response = Response::new(204).with_header(
                "Access-Control-Allow-Methods",
                if allow.contains(method) { allow } else { "" },
            );
            let headers = request
                .header("Access-Control-Request-Headers")
                .unwrap_or_default();
            return response
                .with_header("Access-Control-Allow-Headers", headers)
                .with_header("Access-Control-Max-Age", PREFLIGHT_AGE);
        }
        match dialect {
            Some(dialect) => self.manifest(request, dialect).with_header("Allow", allow),
            None => Response::new(200).with_header("Allow", allow),
        }
    }

    fn manifest(&self, request: &Request, dialect: Dialect) -> Response {
        let endpoints: Vec<&str> = ENDPOINTS
            .into_iter()
            .filter(|e| *e != "/admin" || self.admits_admin(request))
            .collect();
        Response::json(
            200,
            json!({
                "solution": "aqlite",
                "solution_version": VERSION,
                "vendor": "aqlite",
                "restapi_specs_version": dialect.specs_version(),
                "conformance_profile": "STANDARD",
                "endpoints": endpoints,
            }),
        )
    }

    /// GET /.well-known/smart-configuration
    pub(super) fn smart(&self, request: &Request) -> Result<Response, Failure> {
        check_host(request, &self.config)?;
        // Only a server takes tokens, so other builds leave out the rest.
        if !cfg!(feature = "server") || self.config.smart.is_empty() {
            return Err(Failure::not_found(
                "the service takes no tokens, so there is no SMART configuration",
            ));
        }
        let base = self.config.base_url_of(request);
        let documentation = match self.config.documentation.as_str() {
            "" => format!("{base}/api.html"),
            address => address.to_owned(),
        };
        let openehr = json!({
            "baseUrl": format!("{base}{}", Dialect::Its.mount()),
            "description": "openEHR REST API",
            "documentation": documentation,
            "openapi": format!("{base}/openapi.json"),
        });
        let scopes: Vec<String> = ["patient", "user", "system"]
            .iter()
            .flat_map(|whose| SCOPES.iter().map(move |scope| format!("{whose}/{scope}")))
            .collect();
        let mut body: Map<String, Value> = self
            .config
            .smart
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        body.insert(
            String::from("services"),
            json!({ "org.openehr.rest": openehr }),
        );
        body.insert(
            String::from("capabilities"),
            json!([
                "context-openehr-ehr",
                "launch-openehr-ehr",
                "openehr-permission-v1"
            ]),
        );
        body.insert(String::from("scopes_supported"), json!(scopes));
        Ok(Response::json(200, Value::Object(body)))
    }

    /// Adds the headers of every response: caches must not store it, browsers must not run it as a
    /// page, and pages of allowed origins may read it. A template is returned as it was sent, so its
    /// XML may have scripts, which would act for the user who opens its address. One entity tag
    /// names all representations of a version, so `Vary` lists the headers that select one (RFC
    /// 9110, section 12.5.5).
    pub(super) fn finish(&self, request: &Request, mut response: Response) -> Response {
        if request.method == "HEAD" {
            response.body.clear();
        }
        response = response
            .with_header("Cache-Control", "no-store")
            .with_header("Content-Security-Policy", "default-src 'none'; sandbox")
            .with_header("X-Content-Type-Options", "nosniff");
        if !request.id().is_empty() {
            response = response.with_header("X-Request-Id", request.id());
        }
        let origin = request.header("Origin");
        let mut vary = selecting_headers(request).to_vec();
        vary.extend(origin.map(|_| "Origin"));
        if !vary.is_empty() {
            response = response.with_header("Vary", vary.join(", "));
        }
        let Some(origin) = origin else {
            return response;
        };
        if self.config.allows_origin(origin) {
            response = response
                .with_header("Access-Control-Allow-Origin", origin)
                .with_header("Access-Control-Expose-Headers", EXPOSED);
        }
        response
    }
}

/// Returns the headers that select the answer to a request. A query may be narrowed to the EHR of a
/// header. Guides are answered in a language of the caller.
fn selecting_headers(request: &Request) -> &'static [&'static str] {
    let has = |name: &str| request.path.split('/').any(|segment| segment == name);
    match () {
        () if request.method == "OPTIONS" => &[],
        () if has("cds-services") || (has("gdl") && has("query")) => {
            &["Accept", "Prefer", "Accept-Language"]
        }
        () if has("query") && !has("definition") => &["Accept", "Prefer", "openEHR-EHR-id"],
        () => &["Accept", "Prefer"],
    }
}
