//! An authenticated caller and its permissions.

use super::super::committal::Party;
use super::super::error::Failure;
use super::scope::{Compartment, Permission, ROLES, Scope, of_role, of_text, restricts};
use crate::document::ObjectKind;

/// A caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The identifier in the access log and in audits: the subject of a token, the name of a user.
    pub name: String,
    /// The issuer of the token, within which the identifier is unique. Empty for a user with a
    /// password.
    pub issuer: String,
    /// The display name.
    pub label: Option<String>,
    /// The end of the credentials, in seconds since 1970; `None` for a password.
    pub until: Option<i64>,
    /// The EHR of the launch context, a UUID in lower case.
    ehr: Option<String>,
    scopes: Vec<Scope>,
    /// The scopes of the person, if `user/` scopes of an application restrict them.
    person: Option<Vec<Scope>>,
}

/// The subject of a permission, beyond resource and act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Subject<'a> {
    /// Some object of the resource: its name is not known yet.
    Some,
    /// The object with this name.
    Named(&'a str),
    /// An object without a name: it needs permission for everything.
    Nameless,
}

impl<'a> Subject<'a> {
    /// Creates a subject from an optional name.
    pub fn from_name(name: Option<&'a str>) -> Subject<'a> {
        name.map_or(Subject::Nameless, Subject::Named)
    }

    /// Creates the subject of a document. Scopes name templates of compositions only.
    pub fn of_document(kind: ObjectKind, template_id: Option<&'a str>) -> Subject<'a> {
        Subject::from_name(template_id.filter(|_| kind == ObjectKind::Composition))
    }
}

/// The EHRs that an execution may read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// The whole population.
    All,
    /// An EHR that the request names.
    Named,
    /// This EHR.
    One(String),
}

/// The challenge for tokens (RFC 6750 §3).
pub(crate) const BEARER: &str = "Bearer realm=\"aqlite\"";
/// The challenge for names and passwords (RFC 7617 §2.1).
pub(crate) const BASIC: &str = "Basic realm=\"aqlite\", charset=\"UTF-8\"";

/// The value of Retry-After in seconds, if authentication or a permit is temporarily unavailable.
const RETRY: &str = "10";

/// A rejected authentication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denied {
    status: u16,
    message: String,
    /// The value of WWW-Authenticate, with status 401.
    challenge: String,
}

impl Denied {
    /// Creates the rejection of a deployment without configured callers.
    pub(crate) fn unconfigured() -> Denied {
        Denied::with(
            "access is not configured: set AUTH (`none` opens the service to everybody who can reach it)",
            BEARER,
        )
    }

    /// Creates the rejection of a request without credentials. `challenge` names the accepted
    /// schemes.
    pub fn no_credentials(challenge: &str) -> Denied {
        Denied::with("the request names no caller: send credentials", challenge)
    }

    /// Creates the rejection of an invalid bearer token.
    pub(crate) fn token(why: &str) -> Denied {
        let challenge = format!("{BEARER}, error=\"invalid_token\", error_description=\"{why}\"");
        Denied::with(&format!("the token is not accepted: {why}"), &challenge)
    }

    /// Creates the rejection of a token whose time is over.
    pub(crate) fn expired() -> Denied {
        Denied::token("it has expired")
    }

    /// Creates the rejection of a wrong name or password.
    pub(crate) fn password() -> Denied {
        Denied::with("there is no user with this name and password", BASIC)
    }

    /// Creates the rejection while the keys of the issuer are unavailable.
    pub(crate) fn unavailable() -> Denied {
        let message = "the keys of the issuer of the token cannot be fetched; try again";
        Denied {
            status: 503,
            message: message.to_owned(),
            challenge: String::new(),
        }
    }

    /// Creates the rejection of a caller with too many requests.
    pub fn too_many() -> Denied {
        Denied {
            status: 429,
            message: String::from("too many requests: try again later"),
            challenge: String::new(),
        }
    }

    /// Creates the rejection of a request while too many are processed, of this caller or in total.
    pub fn busy() -> Denied {
        let message =
            "too many requests are processed at a time: send fewer together, or try again later";
        Denied {
            status: 429,
            message: message.to_owned(),
            challenge: String::new(),
        }
    }

    /// Sets a challenge for each scheme of the deployment, not only for that of the rejected
    /// credentials.
    pub(crate) fn with_challenges(mut self, has_bearer: bool, has_basic: bool) -> Denied {
        if self.status == 401 && has_bearer && !self.challenge.contains("Bearer ") {
            self.challenge = format!("{BEARER}, {}", self.challenge);
        }
        if self.status == 401 && has_basic && !self.challenge.contains("Basic ") {
            self.challenge = format!("{}, {BASIC}", self.challenge);
        }
        self
    }

    fn with(message: &str, challenge: &str) -> Denied {
        Denied {
            status: 401,
            message: message.to_owned(),
            challenge: challenge.to_owned(),
        }
    }

    pub(crate) fn failure(&self) -> Failure {
        let failure = Failure::new(self.status, self.message.as_str());
        match self.status {
            401 => failure.header("WWW-Authenticate", self.challenge.as_str()),
            _ => failure.header("Retry-After", RETRY),
        }
    }
}

impl Caller {
    /// Returns a caller with every role, for an open service.
    pub fn everyone() -> Caller {
        let all: Vec<&str> = ROLES.iter().map(|(role, _)| *role).collect();
        Caller::with_roles("anonymous", "", &all)
    }

    /// Returns a caller with roles: `read`, `write`, `query`, `population`, `define`, `admin`,
    /// `audit`. Other roles grant nothing.
    pub fn with_roles(name: &str, issuer: &str, roles: &[&str]) -> Caller {
        let scopes = roles.iter().flat_map(|role| of_role(role)).collect();
        Caller {
            name: name.to_owned(),
            issuer: issuer.to_owned(),
            label: None,
            until: None,
            ehr: None,
            scopes,
            person: None,
        }
    }

    /// Restricts the caller to the scopes of an application (SMART on openEHR), and perhaps to the
    /// EHR of the launch context. A `user/` scope is effective only as far as the person's roles
    /// allow, if they are known. Without any scope of openEHR the roles apply.
    pub fn narrowed(self, scopes: &str, ehr: Option<&str>, roles_known: bool) -> Caller {
        let ehr = ehr.map(str::to_ascii_lowercase);
        // Other scopes, such as `openid`, grant and restrict nothing here.
        if !restricts(scopes) {
            return Caller { ehr, ..self };
        }
        let scopes: Vec<Scope> = of_text(scopes).filter(|s| !s.is_internal()).collect();
        Caller {
            ehr,
            person: roles_known.then_some(self.scopes),
            scopes,
            ..self
        }
    }

    /// Removes every permission of the caller, whose token has scopes that cannot be read.
    pub(crate) fn without_permissions(self) -> Caller {
        Caller {
            scopes: Vec::new(),
            ..self
        }
    }

    /// Checks that the credentials are valid at a time, in seconds since 1970: a body or a result that
    /// is sent in parts may outlast a token.
    ///
    /// # Errors
    /// 401 if they have ended.
    pub(crate) fn check_time(&self, now: i64) -> Result<(), Failure> {
        match self.until.is_some_and(|until| until <= now) {
            true => Err(Denied::expired().failure()),
            false => Ok(()),
        }
    }

    /// Returns the scopes that grant a permission on a subject. A `user/` scope grants it only if
    /// the roles of the person do too.
    fn granting<'a>(
        &'a self,
        permission: Permission,
        subject: Subject<'a>,
    ) -> impl Iterator<Item = &'a Scope> {
        let fits = move |scope: &Scope| {
            scope.allows(permission)
                && match subject {
                    Subject::Some => true,
                    Subject::Named(name) => scope.covers(name),
                    Subject::Nameless => scope.covers_all(),
                }
        };
        let person = move |scope: &Scope| {
            self.person
                .as_ref()
                // A patient launch is not limited by the roles of a member of staff.
                .is_none_or(|own| scope.compartment != Compartment::User || own.iter().any(fits))
        };
        self.scopes
            .iter()
            .filter(move |scope| fits(scope) && person(scope))
    }

    /// Returns whether the caller has the permission in some EHR.
    pub(crate) fn has_permission(&self, permission: Permission, subject: Subject<'_>) -> bool {
        self.granting(permission, subject).next().is_some()
    }

    /// Returns the EHRs for which the caller has the permission; 403 if none.
    pub(crate) fn reach(
        &self,
        permission: Permission,
        subject: Subject<'_>,
    ) -> Result<Reach, Failure> {
        let has = |compartment| {
            self.granting(permission, subject)
                .any(|s| s.compartment == compartment)
        };
        match &self.ehr {
            // The widest compartment first: a caller may hold several.
            _ if has(Compartment::System) => Ok(Reach::All),
            _ if has(Compartment::User) => Ok(Reach::Named),
            Some(ehr) if has(Compartment::Patient) => Ok(Reach::One(ehr.clone())),
            _ => Err(self.refused(permission)),
        }
    }

    /// Returns whether the caller has the permission in one EHR only. The response must then reveal
    /// nothing of other EHRs.
    pub(crate) fn is_confined(&self, permission: Permission) -> bool {
        matches!(self.reach(permission, Subject::Some), Ok(Reach::One(_)))
    }

    /// Checks the permission in this EHR: 403 if the caller has it in none, 404 if only in another
    /// one.
    pub(crate) fn within(
        &self,
        permission: Permission,
        subject: Subject<'_>,
        ehr: &str,
    ) -> Result<(), Failure> {
        match self.reach(permission, subject)? {
            Reach::One(own) if !own.eq_ignore_ascii_case(ehr) => {
                // 404, not 403: a caller of one EHR must not learn which others exist.
                Err(Failure::no_ehr())
            }
            _ => Ok(()),
        }
    }

    /// Returns the error for a missing permission: 403, with the error of RFC 6750 §3.1 for callers
    /// with a token.
    pub(crate) fn refused(&self, permission: Permission) -> Failure {
        let is_of_patient = |scope: &Scope| scope.names(permission) && !scope.allows(permission);
        match self.scopes.iter().any(is_of_patient) {
            true => self.refused_for_patient(permission),
            false => self.needs(permission, "a scope"),
        }
    }

    /// Returns the error for a permission that no `patient/` scope grants. The caller may have one
    /// for this resource and act.
    pub(crate) fn refused_for_patient(&self, permission: Permission) -> Failure {
        self.needs(permission, "a `user/` scope")
    }

    fn needs(&self, permission: Permission, scope: &str) -> Failure {
        let message = format!(
            "this needs the role {}, or {scope} for `{}` with `{}`",
            permission.roles().join(" or "),
            permission.word(),
            permission.letter()
        );
        self.insufficient(message)
    }

    /// Returns an error for a request beyond the permissions of the caller: 403, with the error of
    /// RFC 6750 §3.1 for callers with a token.
    pub(crate) fn insufficient(&self, message: impl Into<String>) -> Failure {
        let failure = Failure::new(403, message);
        // A caller with a password has no issuer, and the challenge is about tokens.
        if self.issuer.is_empty() {
            failure
        } else {
            failure.header(
                "WWW-Authenticate",
                format!("{BEARER}, error=\"insufficient_scope\""),
            )
        }
    }

    /// Returns the caller as the committer of a change: a PARTY_IDENTIFIED as canonical JSON.
    pub(crate) fn party(&self) -> String {
        // A name identifies a person only together with its issuer.
        let known = !self.issuer.is_empty();
        let party = Party {
            name: Some(self.label.clone().unwrap_or_else(|| self.name.clone())),
            id: known.then(|| self.name.clone()),
            namespace: known.then(|| self.issuer.clone()),
            kind: known.then(|| String::from("PERSON")),
        };
        party.to_json().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Resource};
    use super::*;

    const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    const READ: Permission = Permission {
        resource: Resource::Record,
        act: Action::Read,
    };
    const SEARCH: Permission = Permission {
        resource: Resource::Query,
        act: Action::Search,
    };

    fn status(outcome: Result<impl Sized, Failure>) -> u16 {
        outcome.map_or_else(|f| f.status, |_| 200)
    }

    #[test]
    fn patient_scope_applies_to_one_ehr() {
        let app = Caller::with_roles("p", "", &[]).narrowed(
            "patient/composition-weight.r patient/aql-*.s",
            Some(EHR),
            false,
        );
        assert_eq!(status(app.within(READ, Subject::Named("weight"), EHR)), 200);
        assert_eq!(
            status(app.within(
                READ,
                Subject::Named("weight"),
                "00000000-0000-4000-8000-000000000000"
            )),
            404
        );
        assert_eq!(status(app.within(READ, Subject::Named("height"), EHR)), 403);
        assert_eq!(status(app.within(READ, Subject::Nameless, EHR)), 403);
        assert_eq!(
            app.reach(SEARCH, Subject::Nameless).unwrap(),
            Reach::One(EHR.to_owned())
        );
        let without_context =
            Caller::with_roles("p", "", &[]).narrowed("patient/composition-*.r", None, false);
        assert_eq!(
            status(without_context.within(READ, Subject::Some, EHR)),
            403
        );
    }

    #[test]
    fn user_scope_does_not_exceed_the_roles_of_the_person() {
        let scopes = "user/composition-*.cruds user/aql-*.s";
        let nurse = Caller::with_roles("n", "", &["read"]).narrowed(scopes, None, true);
        assert!(nurse.has_permission(READ, Subject::Nameless));
        assert!(!nurse.has_permission(
            Permission {
                act: Action::Create,
                ..READ
            },
            Subject::Some
        ));
        assert!(!nurse.has_permission(SEARCH, Subject::Some));
        assert!(
            Caller::with_roles("n", "", &[])
                .narrowed(scopes, None, false)
                .has_permission(SEARCH, Subject::Some)
        );
    }

    #[test]
    fn no_scope_grants_administration() {
        let app = Caller::with_roles("a", "", &["admin"]).narrowed(
            "system/admin-*.cruds user/log-*.rs user/template-*.r",
            None,
            true,
        );
        assert!(!app.has_permission(
            Permission {
                resource: Resource::Admin,
                act: Action::Delete
            },
            Subject::Some
        ));
        assert!(!app.has_permission(
            Permission {
                resource: Resource::Log,
                act: Action::Read
            },
            Subject::Some
        ));
    }

    #[test]
    fn token_whose_scopes_of_openehr_are_useless_has_no_roles() {
        for scopes in ["patient/composition-*.rx", "system/admin-*.cruds"] {
            let app = Caller::with_roles("a", "", &["read", "admin"]).narrowed(scopes, None, true);
            assert!(!app.has_permission(READ, Subject::Some), "{scopes}");
        }
        let other = Caller::with_roles("a", "", &["read"]).narrowed("openid", None, true);
        assert!(other.has_permission(READ, Subject::Some));
    }

    #[test]
    fn the_committer_is_a_party() {
        let mut caller = Caller::with_roles("42", "https://id.example", &[]);
        caller.label = Some(String::from("Dr. \"A\"}"));
        crate::rm::json::read(&caller.party(), crate::rm::class::Cls::PARTY_IDENTIFIED).unwrap();
    }
}
