//! Repositories that answer queries themselves: a server with the REST interface of openEHR, or the
//! database of `aqlite serve`.

mod explanation;

use crate::data::templates::{self, Templates};
use crate::outcome::{Failure, Outcome};
use crate::progress;
use crate::rows::{RowSource, Rows};
use crate::serve::database;
use crate::server_options::{ServerOptions, with_mount};
use aqlite::aql::{self, Cell, Parameter, Parameters, ResultColumn, ResultSet};
use aqlite::diag::{Diagnostic, Severity};
use aqlite::document::Number;
use aqlite::rm::json;
use aqlite::service::{Auth, Config, Limits, Request, Response};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;
use ureq::Agent;

/// The path of the REST interface if a URL has none.
const MOUNT: &str = "/rest/openehr/v1";

/// Bytes of an answer of a server.
pub const LONGEST: u64 = 1_000_000_000;

/// Rows of a page: the first number behind a page of the server's own size, and each next one after
/// a refusal of the one before it.
const PAGES: [usize; 4] = [10_000, 1_000, 100, 10];

/// A query whose result names the state of the whole repository.
const ONE_EHR: &str = "SELECT e/ehr_id/value FROM EHR e LIMIT 1";

/// The beginning of a database file of SQLite.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// A repository.
pub enum Repository {
    /// A server.
    Server(Server),
    /// The database of `aqlite serve`.
    Database(Box<database::Reader>),
}

/// A server with the REST interface of openEHR.
pub struct Server {
    /// The URL of the mount, without a slash at the end.
    base: String,
    /// The value of the header `Authorization`.
    authorization: Option<String>,
    agent: Agent,
    /// Whether the server is aqlite; asked when it matters for the first time.
    is_aqlite: OnceLock<bool>,
}

/// The form in which a parameter without a type is sent.
#[derive(Clone, Copy)]
enum UntypedForm {
    /// A text: aqlite gives it the type of the other side of its comparison.
    Text,
    /// A number if it is one, else a text: other servers do not compare a text with a number.
    NumberOrText,
}

/// A query for a repository.
pub struct RepositoryQuery<'q> {
    /// The text, or the name of a stored query.
    pub text: QueryText<'q>,
    /// The values of parameters.
    pub parameters: &'q Parameters,
}

/// The answer of a repository.
pub struct RepositoryAnswer<'r> {
    /// The rows.
    pub rows: Rows<'r>,
    /// The text of the query, which a repository knows for a name; empty if it does not report it.
    pub aql: String,
}

/// The text of a query, or its name.
#[derive(Clone, Copy)]
pub enum QueryText<'q> {
    /// AQL.
    Aql(&'q str),
    /// The name of a stored query, with a version or without.
    Stored(&'q str),
}

impl Repository {
    /// Opens the repository that the arguments of `-d` name; `None` if they name files of documents.
    ///
    /// # Errors
    /// If a repository is not the only argument, or cannot be opened.
    pub fn open(data: &[String], options: &ServerOptions) -> Result<Option<Repository>, Failure> {
        let is_repository = |data: &&String| is_url(data) || is_database(Path::new(data));
        let Some(named) = data.iter().find(is_repository) else {
            return Ok(None);
        };
        if data.len() > 1 {
            return Err(Failure::Usage(format!(
                "`{named}` is a repository: name it alone, because its queries run there"
            )));
        }
        if !is_url(named) {
            let limits = Limits {
                // The limits of a server do not apply to a database of the user, but its rows come in
                // pages, so that not all of them are in memory.
                fetch_maximum: u64::MAX >> 1,
                query_time: i64::MAX >> 1,
                query_work: u64::MAX >> 1,
                result: usize::MAX >> 1,
                ..Limits::default()
            };
            let config = Config {
                auth: Auth::Open,
                // The database is opened for reading only, so nothing can be recorded.
                log: false,
                limits,
                ..Config::default()
            };
            let reader = database::Reader::open(Path::new(named), config)
                .map_err(|error| Failure::Data(format!("{named}: {error:#}")))?;
            return Ok(Some(Repository::Database(Box::new(reader))));
        }
        Ok(Some(Repository::Server(Server::new(named, options)?)))
    }

    /// Answers a query with all its rows.
    ///
    /// # Errors
    /// If the repository does not answer, or refuses the query.
    pub fn answer(&self, query: &RepositoryQuery<'_>) -> Result<ResultSet, Failure> {
        let mut rows = Vec::new();
        let columns = self.pages(query, None, &mut |page| {
            rows.extend(page.rows);
            Ok(ControlFlow::Continue(()))
        })?;
        result_of(columns, rows)
    }

    /// Answers a query. The rows are read in parts if the caller takes parts, they are many and the
    /// repository names its state.
    ///
    /// # Errors
    /// As [`Repository::answer`].
    pub fn answer_in_parts<'r>(
        &'r self,
        query: &'r RepositoryQuery<'r>,
        takes_parts: bool,
    ) -> Result<RepositoryAnswer<'r>, Failure> {
        let mut first = None;
        self.pages(query, None, &mut |page| {
            first = Some(page);
            Ok(ControlFlow::Break(()))
        })?;
        let first = first.unwrap_or_default();
        let aql = first.aql.clone();
        let snapshot = first.snapshot.clone();
        let source = match snapshot.filter(|_| first.has_more && takes_parts) {
            Some(snapshot) => RowSource::Pages {
                repository: self,
                query,
                snapshot,
            },
            None if first.has_more => RowSource::Whole(self.answer(query)?),
            None => RowSource::Whole(first.into_result()?),
        };
        let rows = Rows::of(source);
        Ok(RepositoryAnswer { rows, aql })
    }

    /// Passes the pages of the answer to a query to `take`, until it wants no more. They show one
    /// state, if the repository names it: that of `snapshot`, or the present one. Returns the columns.
    ///
    /// The first request names no number of rows: a query with LIMIT could not have one. A page that
    /// is refused, for example because its rows are larger than a result may be, is requested again
    /// with fewer rows.
    ///
    /// # Errors
    /// If the repository does not answer, or refuses the query; as `take`.
    pub fn pages(
        &self,
        query: &RepositoryQuery<'_>,
        snapshot: Option<&str>,
        take: &mut dyn FnMut(ResultPage) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<Vec<ResultColumn>, Failure> {
        let mut snapshot = snapshot.map(str::to_owned);
        let (mut offset, mut fetch, mut refusal) = (0, None, None);
        let form = self.untyped_form(query.parameters);
        loop {
            progress::check()?;
            let request = query.page((offset, fetch), snapshot.as_deref(), form);
            let mut page = match ResultPage::read(&self.send(&request)?) {
                Ok(page) => page,
                Err(refused) if refused.is_bad_request() && query.fewer(fetch).is_some() => {
                    fetch = query.fewer(fetch);
                    refusal.get_or_insert(refused);
                    continue;
                }
                // The first refusal is about the query as it was asked.
                Err(refused) => return Err(refusal.unwrap_or(refused)),
            };
            refusal = None;
            offset += page.rows.len();
            // All later pages name the state of the first one, even if an answer does not repeat
            // it.
            snapshot = page.snapshot.clone().or(snapshot);
            // A server reports that more rows follow only behind a page of its own size.
            page.has_more |= fetch.is_some_and(|fetch| page.rows.len() >= fetch);
            // A server that promises more rows but sends none would be asked forever.
            page.has_more &= !page.rows.is_empty();
            fetch = fetch.or(PAGES.first().copied());
            let (has_more, columns) = (page.has_more, page.columns.clone());
            if take(page)?.is_break() || !has_more {
                return Ok(columns);
            }
        }
    }

    /// Returns a text that is another one after each commit; `None` if the repository does not name
    /// its state, as only aqlite does.
    ///
    /// # Errors
    /// If the repository does not answer.
    pub fn state(&self) -> Result<Option<String>, Failure> {
        let query = RepositoryQuery {
            text: QueryText::Aql(ONE_EHR),
            parameters: &Parameters::new(),
        };
        let response = self.send(&query.page((0, None), None, UntypedForm::Text))?;
        let page = ResultPage::read(&response).ok();
        Ok(page.and_then(|page| commits_of(page.snapshot.as_deref()?)))
    }

    /// Lets the repository explain a query, and writes the explanation: `path` names its text in
    /// problems.
    ///
    /// # Errors
    /// If the repository does not answer or cannot explain, or the output cannot be written.
    pub fn explain(
        &self,
        (text, path): (&str, &str),
        parameters: &Parameters,
        out: &mut impl Write,
    ) -> Result<Outcome, Failure> {
        let query = RepositoryQuery {
            text: QueryText::Aql(text),
            parameters,
        };
        let mut request = query.page((0, None), None, UntypedForm::Text);
        request.path.push_str("/explain");
        let explained = match json_of(&request.path, &self.send(&request)?) {
            Err(Failure::Refused {
                status: 404 | 405, ..
            }) => {
                let problem = "the server does not explain queries: `query/aql/explain` is an extension of aqlite";
                return Err(Failure::Data(String::from(problem)));
            }
            other => other?,
        };
        explanation::write(&explained, (text, path), out)
    }

    /// Returns the form of the parameters of a query that have no type. A server is asked only if
    /// there are some.
    fn untyped_form(&self, parameters: &Parameters) -> UntypedForm {
        let is_untyped = |value: &Parameter| matches!(value, Parameter::Untyped(_));
        match self {
            Repository::Server(server)
                if parameters.values().any(is_untyped) && !server.is_aqlite() =>
            {
                UntypedForm::NumberOrText
            }
            _ => UntypedForm::Text,
        }
    }

    fn send(&self, request: &PageRequest) -> Result<Response, Failure> {
        match self {
            Repository::Server(server) => server.send(request),
            Repository::Database(database) => Ok(database.answer(&in_process(request))),
        }
    }
}

impl Repository {
    /// Returns the text of a stored query: of the version that the name has behind a slash, else of
    /// the newest one.
    ///
    /// # Errors
    /// If the repository does not answer, or has no such query.
    pub fn stored_query(&self, name: &str) -> Result<String, Failure> {
        let mut path = format!("/definition/query/{name}");
        if !name.contains('/') {
            let list = self.get(&path)?;
            let newest = list.as_array().and_then(|all| all.last());
            let newest = newest
                .and_then(|one| one.get("version"))
                .and_then(Value::as_str);
            let version = newest
                .ok_or_else(|| Failure::Data(format!("the repository has no query `{name}`")))?;
            path = format!("{path}/{version}");
        }
        let query = self.get(&path)?;
        let text = query.get("q").and_then(Value::as_str);
        text.map(str::to_owned)
            .ok_or_else(|| Failure::Data(format!("the query `{name}` has no text")))
    }

    /// Returns the templates. Those that this program cannot read are left out, and so are the forms
    /// of templates that the repository does not know.
    ///
    /// # Errors
    /// If the repository does not answer.
    pub fn templates(&self) -> Result<Templates, Failure> {
        let mut all = Templates::default();
        for (form, media_type) in [("adl1.4", "application/xml"), ("adl2", "text/plain")] {
            let path = format!("/definition/template/{form}");
            let list = match self.get(&path) {
                Err(Failure::Refused {
                    status: 404 | 405 | 501,
                    ..
                }) => continue,
                other => other?,
            };
            let ids = list.as_array().into_iter().flatten();
            for id in ids.filter_map(|one| one.get("template_id").and_then(Value::as_str)) {
                progress::check()?;
                let response = self.fetch(&format!("{path}/{}", encoded(id)), media_type)?;
                let text = String::from_utf8_lossy(&response.body);
                if let Ok(template) = templates::parse(&text) {
                    all.add(template);
                }
            }
        }
        Ok(all)
    }

    /// Returns the JSON of a resource.
    fn get(&self, path: &str) -> Result<Value, Failure> {
        json_of(path, &self.fetch(path, "application/json")?)
    }

    /// Returns the answer with a resource in a format.
    fn fetch(&self, path: &str, media_type: &str) -> Result<Response, Failure> {
        match self {
            Repository::Server(server) => server.get(path, media_type),
            Repository::Database(database) => {
                let mut request = Request::new("GET", &format!("{MOUNT}{path}"));
                request.base_url = String::from("http://127.0.0.1");
                request
                    .headers
                    .push((String::from("accept"), media_type.to_owned()));
                Ok(database.answer(&request))
            }
        }
    }
}

/// Returns a text as a segment of a path.
pub fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                // Writing to a text never fails.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Returns the JSON of an answer to a request for a path.
fn json_of(path: &str, response: &Response) -> Result<Value, Failure> {
    let text = String::from_utf8_lossy(&response.body);
    if response.status != 200 {
        return Err(refusal(response.status, &text));
    }
    json::value(&text).map_err(|_| Failure::Data(format!("{path}: the answer is no JSON")))
}

/// Returns the part of a snapshot token that depends on commits only: the numbers of the newest
/// version and EHR, of physical deletions, and the revision. `None` for a token of another form.
fn commits_of(token: &str) -> Option<String> {
    let parts: Vec<&str> = token.split('-').collect();
    match parts.as_slice() {
        // 1 is the version of the token. The last two fields are the time of the query and the EHR
        // of the state, which do not depend on commits.
        ["1", version, ehr, removals, revision, _now, _of] => {
            Some([*version, *ehr, *removals, *revision].join("-"))
        }
        _ => None,
    }
}

/// Refuses a repository as an argument of a command that reads files.
///
/// # Errors
/// [`Failure::Usage`] for a URL or a database, with the remedy.
pub fn check_files(arguments: &[String]) -> Result<(), Failure> {
    let kind = |argument: &String| match argument {
        url if is_url(url) => Some("the URL of a server"),
        path if is_database(Path::new(path)) => Some("the database of a repository"),
        _ => None,
    };
    let mut found = arguments
        .iter()
        .filter_map(|argument| Some((argument, kind(argument)?)));
    let Some((argument, kind)) = found.next() else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "`{argument}` is {kind}, and this command reads files: name files or folders, or an export of the repository; \
         `query`, `shell` and `lake sync` read repositories"
    )))
}

fn is_url(data: &str) -> bool {
    data.starts_with("http://") || data.starts_with("https://")
}

/// Returns whether a file is a database. A pipe is none: bytes that are read here would be lost.
fn is_database(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut begin = Vec::new();
    // The header of a SQLite database has 16 bytes (SQLite, "Database File Format").
    let opened = std::fs::File::open(path).map(|file| std::io::Read::take(file, 16));
    let read = opened.and_then(|mut file| std::io::Read::read_to_end(&mut file, &mut begin));
    read.is_ok() && begin == MAGIC
}

/// A request for a page of a result.
struct PageRequest {
    /// The path below the mount.
    path: String,
    body: String,
}

impl RepositoryQuery<'_> {
    /// Returns the number of rows to request after a refusal of `fetch` rows; `None` if there is no
    /// smaller one, or a page cannot help: a query with LIMIT or TOP, or with errors.
    fn fewer(&self, fetch: Option<usize>) -> Option<usize> {
        match (fetch, self.text) {
            (None, QueryText::Aql(text)) if !has_pages(text) => None,
            (None, _) => PAGES.get(1).copied(),
            (Some(fetch), _) => PAGES.into_iter().find(|rows| *rows < fetch),
        }
    }

    /// Returns the request for `fetch` rows after the first `offset` ones.
    fn page(
        &self,
        (offset, fetch): (usize, Option<usize>),
        snapshot: Option<&str>,
        form: UntypedForm,
    ) -> PageRequest {
        let parameters = self.parameters.iter();
        let parameters: serde_json::Map<String, Value> = parameters
            .map(|(name, value)| (name.clone(), value_of(value, form)))
            .collect();
        let mut body = serde_json::Map::new();
        let mut add = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
        add("query_parameters", Value::Object(parameters));
        let path = match self.text {
            QueryText::Aql(text) => {
                add("q", Value::from(text));
                String::from("/query/aql")
            }
            QueryText::Stored(name) => format!("/query/{name}"),
        };
        if offset > 0 {
            add("offset", Value::from(offset));
        }
        if let Some(fetch) = fetch {
            add("fetch", Value::from(fetch));
        }
        let path = match snapshot {
            Some(snapshot) => format!("{path}?snapshot={snapshot}"),
            None => path,
        };
        let body = Value::Object(body).to_string();
        PageRequest { path, body }
    }
}

/// Returns the value of a parameter as JSON.
fn value_of(parameter: &Parameter, form: UntypedForm) -> Value {
    match (parameter, form) {
        (Parameter::Null, _) => Value::Null,
        (Parameter::Boolean(flag), _) => Value::Bool(*flag),
        (Parameter::Text(text), _) | (Parameter::Untyped(text), UntypedForm::Text) => {
            Value::from(text.as_str())
        }
        (Parameter::Number(text), _) => {
            number_of(text).map_or_else(|| Value::from(text.as_str()), Value::Number)
        }
        (Parameter::Untyped(text), UntypedForm::NumberOrText) => number_of(text)
            // An integer that needs a double is an identifier, which would lose digits.
            .filter(|number| !number.is_f64() || text.contains(['.', 'e', 'E']))
            .map_or_else(|| Value::from(text.as_str()), Value::Number),
        (Parameter::List(items), _) => items.iter().map(|item| value_of(item, form)).collect(),
    }
}

fn number_of(text: &str) -> Option<serde_json::Number> {
    text.parse().ok()
}

/// Returns the request of a page for the service of this process.
fn in_process(page: &PageRequest) -> Request {
    let target = format!("{MOUNT}{}", page.path);
    Request {
        base_url: String::from("http://127.0.0.1"),
        ..Request::new("POST", &target).with_body("application/json", page.body.clone())
    }
}

impl Server {
    fn new(url: &str, options: &ServerOptions) -> Result<Server, Failure> {
        Ok(Server {
            base: with_mount(url, MOUNT),
            authorization: options.authorization(),
            agent: options.trust.agent()?,
            is_aqlite: OnceLock::new(),
        })
    }

    /// Returns whether the server names itself aqlite in the manifest of its mount (openEHR
    /// ITS-REST, System API).
    fn is_aqlite(&self) -> bool {
        *self.is_aqlite.get_or_init(|| {
            let mut request = self.agent.options(&self.base);
            if let Some(authorization) = &self.authorization {
                request = request.header("Authorization", authorization);
            }
            // If there is no answer, the query reports why.
            let answer = request.call().ok();
            let body = answer.and_then(|mut answer| answer.body_mut().read_to_string().ok());
            let manifest = body.and_then(|body| json::value(&body).ok());
            let solution = manifest.as_ref().and_then(|all| all.get("solution"));
            solution.and_then(Value::as_str) == Some("aqlite")
        })
    }

    fn get(&self, path: &str, media_type: &str) -> Result<Response, Failure> {
        let url = format!("{}{path}", self.base);
        let failed = |error: ureq::Error| Failure::Data(format!("{url}: {error}"));
        let mut request = self.agent.get(&url).header("Accept", media_type);
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let mut answer = request.call().map_err(failed)?;
        let body = answer.body_mut().with_config().limit(LONGEST);
        Ok(Response {
            body: body.read_to_vec().map_err(failed)?,
            ..Response::new(answer.status().as_u16())
        })
    }

    fn send(&self, page: &PageRequest) -> Result<Response, Failure> {
        let url = format!("{}{}", self.base, page.path);
        let failed = |error: ureq::Error| Failure::Data(format!("{url}: {error}"));
        let mut request = self.agent.post(&url);
        request = request
            .header("Content-Type", "application/json")
            .header("Accept", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let mut answer = request.send(&page.body).map_err(failed)?;
        let body = answer.body_mut().with_config().limit(LONGEST);
        Ok(Response {
            body: body.read_to_vec().map_err(failed)?,
            ..Response::new(answer.status().as_u16())
        })
    }
}

/// A page of a result.
#[derive(Default)]
pub struct ResultPage {
    /// The columns.
    pub columns: Vec<ResultColumn>,
    /// The rows.
    pub rows: Vec<Vec<Cell<String>>>,
    /// Whether another page follows.
    pub has_more: bool,
    /// The state of the repository that the page shows, if it names it.
    pub snapshot: Option<String>,
    /// The text of the query; empty if the repository does not report it.
    pub aql: String,
}

impl ResultPage {
    /// Reads a RESULT_SET. The digits of numbers are kept.
    fn read(response: &Response) -> Result<ResultPage, Failure> {
        let text = String::from_utf8_lossy(&response.body);
        if response.status != 200 {
            return Err(refusal(response.status, &text));
        }
        Self::parse(&text).ok_or_else(|| Failure::Data(String::from("the answer is no RESULT_SET")))
    }

    /// Returns the rows as a result.
    ///
    /// # Errors
    /// If a row has not one cell for each column.
    pub fn into_result(self) -> Result<ResultSet, Failure> {
        result_of(self.columns, self.rows)
    }

    fn parse(text: &str) -> Option<ResultPage> {
        let mut page = ResultPage::default();
        for (name, value) in json::members(text).ok()? {
            match &*name {
                "columns" => page.columns = columns_of(value)?,
                "rows" => {
                    let rows = json::elements(value).ok()?;
                    page.rows = rows.into_iter().map(cells_of).collect::<Option<_>>()?;
                }
                "q" => page.aql = json::text(value).unwrap_or_default(),
                "meta" => {
                    let meta = json::value(value).ok()?;
                    page.has_more = meta.get("_more") == Some(&Value::Bool(true));
                    let snapshot = meta.get("_snapshot").and_then(Value::as_str);
                    page.snapshot = snapshot.map(str::to_owned);
                }
                _ => {}
            }
        }
        Some(page)
    }
}

/// Returns rows as a result.
///
/// # Errors
/// If a row has not one cell for each column.
pub fn result_of(
    columns: Vec<ResultColumn>,
    rows: Vec<Vec<Cell<String>>>,
) -> Result<ResultSet, Failure> {
    ResultSet::from_rows(columns, rows).map_err(|error| Failure::Data(error.to_string()))
}

/// Returns the failure of a refusal, with the message of its body, or the whole body.
pub fn refusal(status: u16, body: &str) -> Failure {
    let error = json::value(body).ok();
    let message = error.as_ref().and_then(|error| error.get("message"));
    let message = message.and_then(Value::as_str);
    let message = message.unwrap_or(body).trim().to_owned();
    Failure::Refused { status, message }
}

/// Returns whether a query is valid and has neither LIMIT nor TOP, so that a page can be requested.
fn has_pages(text: &str) -> bool {
    let is_error = |found: &Diagnostic| found.severity == Severity::Error;
    let query = aql::parse(text).0;
    query.is_some_and(|query| query.limit.is_none() && query.select.top.is_none())
        && !aql::diagnose(text).iter().any(is_error)
}

fn columns_of(list: &str) -> Option<Vec<ResultColumn>> {
    let columns = json::value(list).ok()?;
    let column = |(number, column): (usize, &Value)| {
        let text = |name: &str| column.get(name).and_then(Value::as_str).map(str::to_owned);
        ResultColumn {
            name: text("name").unwrap_or_else(|| format!("#{number}")),
            path: text("path"),
        }
    };
    let columns = columns.as_array()?.iter().enumerate();
    Some(columns.map(column).collect())
}

fn cells_of(row: &str) -> Option<Vec<Cell<String>>> {
    let cells = json::elements(row).ok()?.into_iter();
    cells.map(cell_of).collect()
}

/// Returns the cell of a value of JSON.
pub fn cell_of(cell: &str) -> Option<Cell<String>> {
    Some(match cell.as_bytes().first()? {
        // The first byte of a JSON value determines its type.
        b'n' => Cell::Null,
        b't' => Cell::Boolean(true),
        b'f' => Cell::Boolean(false),
        b'"' => Cell::Text(json::text(cell)?),
        b'{' | b'[' => Cell::Json(cell.to_owned()),
        _ => Cell::Number(Number::Token(cell.to_owned())),
    })
}
