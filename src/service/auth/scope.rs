//! Scopes of SMART on openEHR: `<patient|user|system>/<resource>-<pattern>.<cruds>`, and the roles,
//! which are sets of scopes.
//!
//! | resource | meaning | name that the pattern must match |
//! |---|---|---|
//! | `composition` | content of an EHR | the template of a COMPOSITION; all else in an EHR needs the pattern `*` |
//! | `template` | operational templates and value sets | the template id, the URL of the value set |
//! | `aql` | stored queries; ad-hoc queries need the pattern `*` | the qualified name |
//! | `guide` | guides (not in SMART on openEHR) | the guide id |
//! | `party` | demographic parties (not in SMART on openEHR) | |
//! | `import`, `admin`, `log` | IMPORTED_VERSIONs, administration and the access log: by roles only | |
//!
//! In a pattern `*` matches any text without a period, `**` any text; `*` alone matches everything.
//! Blanks of a name are percent-encoded in a scope. `s` is the permission to execute: a `user/`
//! scope on EHRs that the request names, a `system/` scope on the whole population.

use super::super::http::decode;

/// The resource of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resource {
    /// The content of an EHR.
    Record,
    /// Operational templates.
    Template,
    /// Queries, stored and ad hoc.
    Query,
    /// Guides.
    Guide,
    /// Demographic parties.
    Party,
    /// Versions of other systems, whose audits and uids are stored unchanged.
    Import,
    /// Physical deletes, loading, reset.
    Admin,
    /// The access log.
    Log,
}

/// The act of an operation, with its letter in scopes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// `c`
    Create,
    /// `r`
    Read,
    /// `u`
    Update,
    /// `d`
    Delete,
    /// `s`: for queries and guides, to execute.
    Search,
}

/// A required permission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Permission {
    /// The resource.
    pub resource: Resource,
    /// The act.
    pub act: Action,
}

/// The EHRs of a scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compartment {
    /// The one EHR of the launch context.
    Patient,
    /// EHRs that the request names.
    User,
    /// All EHRs, also at once.
    System,
}

impl Compartment {
    fn from_word(word: &str) -> Option<Compartment> {
        match word {
            "patient" => Some(Compartment::Patient),
            "user" => Some(Compartment::User),
            "system" => Some(Compartment::System),
            _ => None,
        }
    }
}

/// A granted permission: acts on objects of a resource in some EHRs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Scope {
    /// The EHRs.
    pub compartment: Compartment,
    resource: Resource,
    pattern: String,
    acts: String,
}

/// The names of the resources in scopes.
const RESOURCES: [(&str, Resource); 8] = [
    ("composition", Resource::Record),
    ("template", Resource::Template),
    ("aql", Resource::Query),
    ("guide", Resource::Guide),
    ("party", Resource::Party),
    ("import", Resource::Import),
    ("admin", Resource::Admin),
    ("log", Resource::Log),
];

/// Every role with its scopes.
pub(crate) const ROLES: [(&str, &str); 8] = [
    (
        "read",
        "user/composition-*.rs user/party-*.rs user/template-*.rs user/aql-*.r user/guide-*.r",
    ),
    (
        "write",
        "user/composition-*.cud user/party-*.cud user/template-*.rs",
    ),
    ("query", "user/aql-*.rs user/guide-*.rs user/template-*.rs"),
    (
        "population",
        "system/aql-*.rs system/guide-*.rs user/template-*.rs",
    ),
    (
        "define",
        "user/template-*.cruds user/aql-*.crud user/guide-*.crud",
    ),
    ("import", "user/import-*.c"),
    ("admin", "user/admin-*.cruds"),
    ("audit", "user/log-*.rs"),
];

impl Permission {
    /// Returns the name of the resource in scopes.
    pub fn word(self) -> &'static str {
        RESOURCES
            .iter()
            .find(|(_, r)| *r == self.resource)
            .map_or("", |(word, _)| word)
    }

    /// Returns the letter of the act in scopes.
    pub fn letter(self) -> char {
        match self.act {
            Action::Create => 'c',
            Action::Read => 'r',
            Action::Update => 'u',
            Action::Delete => 'd',
            Action::Search => 's',
        }
    }

    /// Returns the roles that grant the permission.
    pub fn roles(self) -> Vec<&'static str> {
        ROLES
            .iter()
            .filter(|(_, scopes)| of_text(scopes).any(|s| s.allows(self)))
            .map(|(role, _)| *role)
            .collect()
    }
}

impl Scope {
    /// Parses a scope; `None` for the many scopes that do not concern openEHR.
    pub fn parse(text: &str) -> Option<Scope> {
        let (compartment, rest) = text.split_once('/')?;
        let (named, acts) = rest.rsplit_once('.')?;
        // The first hyphen: patterns may have more.
        let (word, pattern) = named.split_once('-')?;
        let compartment = Compartment::from_word(compartment)?;
        let resource = resource_of(word)?;
        // A scope with an unknown letter grants nothing, rather than its known part.
        let known = !acts.is_empty() && acts.chars().all(|c| "cruds".contains(c));
        (known && !pattern.is_empty()).then(|| Scope {
            compartment,
            resource,
            pattern: decode(pattern, false),
            acts: acts.to_owned(),
        })
    }

    /// Returns whether the scope grants the act for at least some objects of the resource. Parties
    /// and definitions belong to no EHR: a scope of one EHR grants nothing about parties, and
    /// changes no definition, which is shared by all EHRs.
    pub fn allows(&self, permission: Permission) -> bool {
        let is_read = matches!(permission.act, Action::Read | Action::Search);
        let reaches = self.compartment != Compartment::Patient
            || match self.resource {
                Resource::Record => true,
                Resource::Template | Resource::Query | Resource::Guide => is_read,
                Resource::Party | Resource::Import | Resource::Admin | Resource::Log => false,
            };
        reaches && self.names(permission)
    }

    /// Returns whether the scope names the resource and the act, whatever its compartment permits.
    pub fn names(&self, permission: Permission) -> bool {
        self.resource == permission.resource && self.acts.contains(permission.letter())
    }

    /// Returns whether its pattern matches a name.
    pub fn covers(&self, name: &str) -> bool {
        self.covers_all() || glob(&self.pattern, name)
    }

    /// Returns whether it applies to everything, named or not.
    pub fn covers_all(&self) -> bool {
        matches!(self.pattern.as_str(), "*" | "**")
    }

    /// Returns true for imports, administration and the access log, which no scope of a token
    /// grants.
    pub fn is_internal(&self) -> bool {
        matches!(
            self.resource,
            Resource::Import | Resource::Admin | Resource::Log
        )
    }
}

fn resource_of(word: &str) -> Option<Resource> {
    RESOURCES.iter().find(|(w, _)| *w == word).map(|(_, r)| *r)
}

/// Returns whether a list of scopes restricts its token to them: one of them is a scope of openEHR,
/// or looks like one and cannot be read. An unreadable one, such as `user/composition-*.rx` or
/// `openid,patient/composition-*.r`, grants nothing and restricts too.
pub(crate) fn restricts(list: &str) -> bool {
    let pieces = list.split_ascii_whitespace();
    pieces
        .filter(|scope| !is_of_fhir(scope))
        .any(has_compartment)
}

/// Returns whether a text contains the beginning of a scope, in any case of letters.
fn has_compartment(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut compartments = ["patient/", "user/", "system/"].into_iter();
    compartments.any(|compartment| text.contains(compartment))
}

/// Returns whether a scope is one of FHIR, in the syntax of SMART App Launch 1 or 2, such as
/// `patient/*.read` or `user/Observation.rs?category=laboratory`.
fn is_of_fhir(scope: &str) -> bool {
    let read = || {
        let (compartment, rest) = scope.split_once('/')?;
        let (rest, condition) = rest.split_once('?').unwrap_or((rest, ""));
        let (resource, acts) = rest.split_once('.')?;
        let is_type = resource.starts_with(|c: char| c.is_ascii_uppercase())
            && resource.chars().all(|c| c.is_ascii_alphabetic());
        let is_acts = matches!(acts, "read" | "write" | "*")
            || (!acts.is_empty() && acts.chars().all(|c| "cruds".contains(c)));
        Compartment::from_word(compartment)?;
        Some((resource == "*" || is_type) && is_acts && !has_compartment(condition))
    };
    read().unwrap_or(false)
}

/// Parses the scopes of a list separated by blanks.
pub(crate) fn of_text(list: &str) -> impl Iterator<Item = Scope> {
    list.split_ascii_whitespace().filter_map(Scope::parse)
}

/// Returns the scopes of a role; none for an unknown role.
pub(crate) fn of_role(role: &str) -> impl Iterator<Item = Scope> {
    ROLES
        .iter()
        .filter(move |(name, _)| *name == role)
        .flat_map(|(_, scopes)| of_text(scopes))
}

/// Matches a pattern with `*` for any text without a period and `**` for any text. Works position
/// by position, so no pattern is slow.
fn glob(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    // `reached[i]`: the pattern so far matches the first `i` characters of the name.
    let mut reached: Vec<bool> = (0..=name.len()).map(|i| i == 0).collect();
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        let any = c == '*';
        let crosses_periods = any && rest.next_if_eq(&'*').is_some();
        let mut next = vec![false; reached.len()];
        let mut flows = false;
        for (i, here) in reached.iter().enumerate() {
            let behind = i.checked_sub(1).and_then(|b| name.get(b));
            // A star matches the empty text, or extends its match by one character.
            flows = any && (*here || (flows && (crosses_periods || behind != Some(&'.'))));
            let steps = !any
                && behind == Some(&c)
                && i.checked_sub(1).and_then(|b| reached.get(b)) == Some(&true);
            if let Some(place) = next.get_mut(i) {
                *place = flows || steps;
            }
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_of_openehr_are_parsed_and_others_ignored() {
        let scopes: Vec<Scope> =
            of_text("openid patient/composition-MyHospital.*.v0.cru launch/patient user/aql-org.openehr::**.rs patient/*.rs system/x-y.r").collect();
        assert_eq!(scopes.len(), 2);
        assert!(scopes[0].allows(Permission {
            resource: Resource::Record,
            act: Action::Update
        }));
        assert!(!scopes[0].allows(Permission {
            resource: Resource::Record,
            act: Action::Delete
        }));
        assert!(scopes[0].covers("MyHospital.Weight.v0") && !scopes[0].covers("Other.Weight.v0"));
        assert!(
            Scope::parse("user/template-vital%20signs.r")
                .unwrap()
                .covers("vital signs")
        );
        let parties = Permission {
            resource: Resource::Party,
            act: Action::Read,
        };
        assert!(
            Scope::parse("user/party-*.r").unwrap().allows(parties)
                && !Scope::parse("patient/party-*.r").unwrap().allows(parties)
        );
    }

    #[test]
    fn scope_of_one_ehr_changes_nothing_that_all_ehrs_share() {
        use Action::{Create, Delete, Read, Search, Update};
        for word in ["template", "aql", "guide", "composition"] {
            let scope = |compartment| Scope::parse(&format!("{compartment}/{word}-*.cruds"));
            let (patient, user) = (scope("patient").unwrap(), scope("user").unwrap());
            for act in [Create, Read, Update, Delete, Search] {
                let resource = resource_of(word).unwrap();
                let permission = Permission { resource, act };
                let expected = word == "composition" || matches!(act, Read | Search);
                assert_eq!(patient.allows(permission), expected, "{word} {act:?}");
                assert!(user.allows(permission), "{word} {act:?}");
            }
        }
    }

    #[test]
    fn malformed_scopes_of_openehr_restrict_and_others_do_not() {
        for (list, expected) in [
            ("openid patient/composition-*.rs", true),
            ("patient/composition-*.rx", true),
            ("user/composition.read", true),
            ("system/admin-*.cruds", true),
            (
                "openid launch/patient user/Observation.rs patient/*.rs",
                false,
            ),
            (
                "patient/Observation.read user/*.* user/Observation.rs?category=http://a.b/c|d",
                false,
            ),
            ("system/x-y.r", true),
            ("openid,patient/composition-*.r", true),
            ("openid\u{a0}patient/composition-*.r", true),
            ("\"patient/composition-*.r\"", true),
            ("Patient/composition-*.r", true),
            ("patient/Observation.rs,patient/composition-*.r", true),
            ("user/Observation.rs?a=b,patient/composition-*.r", true),
            ("composition-*.rs", false),
            ("", false),
        ] {
            assert_eq!(restricts(list), expected, "{list}");
        }
    }

    #[test]
    fn single_star_stops_at_periods() {
        for (pattern, name, matches) in [
            ("MyHospital.Template.v0", "MyHospital.Template.v0", true),
            ("*.Template.v0", "Other.Template.v0", true),
            ("*.Template.v0", "A.B.Template.v0", false),
            ("MyHospital.**", "MyHospital.Other.v2", true),
            ("org.openehr::*", "org.openehr::compositions", true),
            ("org.openehr::*", "org.openehr::bloodpressure.v1", false),
            ("org.openehr::**", "org.openehr::bloodpressure.v1", true),
            ("a*b*c", "aXbbYc", true),
            ("a*b*c", "aXc", false),
            ("**x**", "", false),
            ("a", "ab", false),
        ] {
            assert_eq!(glob(pattern, name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn every_role_has_valid_scopes() {
        for (role, scopes) in ROLES {
            assert_eq!(of_role(role).count(), scopes.split(' ').count(), "{role}");
        }
        assert_eq!(of_role("owner").count(), 0);
    }
}
