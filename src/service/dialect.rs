//! The two mounts, and the few points in which they differ.

/// Which mount a request came in by.
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

    /// The path in front of every resource.
    pub fn mount(self) -> &'static str {
        match self {
            Dialect::V1 => "/v1",
            Dialect::Its => "/rest/openehr/v1",
        }
    }

    /// The status for well-formed content that breaks a rule of the model or of its template.
    pub fn invalid_content(self) -> u16 {
        match self {
            Dialect::V1 => 400,
            Dialect::Its => 422,
        }
    }

    /// The status for removing a template that stored versions name.
    pub fn definition_in_use(self) -> u16 {
        match self {
            Dialect::V1 => 409,
            Dialect::Its => 422,
        }
    }

    /// True where a column's path carries its variable: `c/uid/value` instead of `/uid/value`.
    pub fn column_paths_name_the_variable(self) -> bool {
        self == Dialect::Its
    }

    /// How stored queries name their language.
    pub fn aql_type(self) -> &'static str {
        match self {
            Dialect::V1 => "aql",
            Dialect::Its => "AQL",
        }
    }

    /// The status for `offset` and `fetch` beside LIMIT; `None` where the page is a window on the
    /// result.
    pub fn page_beside_limit(self) -> Option<u16> {
        match self {
            Dialect::V1 => None,
            Dialect::Its => Some(422),
        }
    }

    /// The status for comparing COMPOSITION.uid with a text that can be no uid of this server;
    /// `None` where it just matches nothing.
    pub fn strict_version_uids(self) -> Option<u16> {
        match self {
            Dialect::V1 => None,
            Dialect::Its => Some(400),
        }
    }

    /// True where the `meta` of a result always carries `resultsize` (rows), `_executed_aql`, and
    /// the page in force.
    pub fn full_result_meta(self) -> bool {
        self == Dialect::Its
    }

    /// True where a stored query may be stored without a version, which then becomes the next one.
    pub fn next_version_on_store(self) -> bool {
        self == Dialect::Its
    }

    /// True where GET of a stored query under its complete version shows the definition as well as
    /// its result.
    pub fn detail_and_result(self) -> bool {
        self == Dialect::V1
    }

    /// The version of the interface that the manifest and result sets report.
    pub fn specs_version(self) -> &'static str {
        match self {
            Dialect::V1 => "0.9.2",
            Dialect::Its => "1.0.3",
        }
    }
}
