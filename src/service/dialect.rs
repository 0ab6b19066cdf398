//! The two mounts and their differences.

/// The mount of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Dialect {
    /// `/v1`: the service specification.
    V1,
    /// `/rest/openehr/v1`: openEHR ITS-REST as its clients expect it.
    Its,
}

impl Dialect {
    /// The mounts, the longer prefix first.
    pub const ALL: [Dialect; 2] = [Dialect::Its, Dialect::V1];

    /// Returns the path before every resource.
    pub fn mount(self) -> &'static str {
        match self {
            Dialect::V1 => "/v1",
            Dialect::Its => "/rest/openehr/v1",
        }
    }

    /// Returns the status for well-formed content that breaks a rule of the model or of its
    /// template.
    pub fn invalid_content(self) -> u16 {
        match self {
            Dialect::V1 => 400,
            Dialect::Its => 422,
        }
    }

    /// Returns the status for removing a template that stored versions name.
    pub fn definition_in_use(self) -> u16 {
        match self {
            Dialect::V1 => 409,
            Dialect::Its => 422,
        }
    }

    /// Returns whether the path of a column starts with its variable: `c/uid/value` instead of
    /// `/uid/value`.
    pub fn column_paths_name_the_variable(self) -> bool {
        self == Dialect::Its
    }

    /// Returns the name of the query language of stored queries.
    pub fn aql_type(self) -> &'static str {
        match self {
            Dialect::V1 => "aql",
            Dialect::Its => "AQL",
        }
    }

    /// Returns the status for `offset` and `fetch` beside LIMIT; `None` if they select a page of
    /// the result.
    pub fn page_beside_limit(self) -> Option<u16> {
        match self {
            Dialect::V1 => None,
            Dialect::Its => Some(422),
        }
    }

    /// Returns the status for comparing COMPOSITION.uid with a text that cannot be a uid of this
    /// server; `None` if that only matches nothing.
    pub fn strict_version_uids(self) -> Option<u16> {
        match self {
            Dialect::V1 => None,
            Dialect::Its => Some(400),
        }
    }

    /// Returns whether the `meta` of a result always has `resultsize` (rows), `_executed_aql`, and
    /// the present page.
    pub fn full_result_meta(self) -> bool {
        self == Dialect::Its
    }

    /// Returns whether a query may be stored without a version. It then gets the next one.
    pub fn next_version_on_store(self) -> bool {
        self == Dialect::Its
    }

    /// Returns whether GET of a stored query under its complete version returns the definition in
    /// addition to its result.
    pub fn detail_and_result(self) -> bool {
        self == Dialect::V1
    }

    /// Returns the version of the interface in the manifest and in result sets.
    pub fn specs_version(self) -> &'static str {
        match self {
            Dialect::V1 => "0.9.2",
            Dialect::Its => "1.0.3",
        }
    }
}
