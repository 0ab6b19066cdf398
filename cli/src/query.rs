//! The command `query`: rows from files, a server or a database.

use crate::columnar::{self, TimesForm};
use crate::data::answer::QueryAnswer;
use crate::data::catalog::FileProblem;
use crate::data::{DataOptions, DataSet, files};
use crate::lint::Lint;
use crate::outcome::{Failure, Outcome};
use crate::output::{self, Format, OutputForm};
use crate::output_file::{Output, check_no_input};
use crate::report;
use crate::repository::{QueryText, Repository, RepositoryQuery};
use crate::rows::{RowSource, Rows};
use crate::server_options::ServerOptions;
use crate::terminal::report_line;
use aqlite::aql::{self, Parameter, Parameters, Plan, QueryOptions};
use aqlite::diag::Severity;
use aqlite::rm::{json, time};
use aqlite::template::Template;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Count the compositions of a folder, with its templates in the same folder:
    aqlite query -d data 'SELECT COUNT(*) AS n FROM COMPOSITION c'

  Write systolic pressures from 140 mm[Hg] as CSV:
    aqlite query -d data -f systolic.aql --param limit=140 -o systolic.csv

  Write the rows as a Parquet file, for DuckDB, pandas, Polars, R and Spark:
    aqlite query -d data -f systolic.aql -o systolic.parquet

  Ask a server, and the database of `aqlite serve`:
    aqlite query -d https://cdr.example.org/rest/openehr/v1 --token $TOKEN 'SELECT …'
    aqlite query -d aqlite.db --stored org.example::ids

  Read documents from the standard input:
    aqlite convert visit.xml --to json | aqlite query -d - 'SELECT c/name/value FROM COMPOSITION c'

The content of DATA decides what it is: compositions as canonical JSON or XML, FLAT, STRUCTURED or lines of \
JSON (.ndjson, .jsonl), and operational templates. A folder is read with the folders in it.

The first folder below DATA is the EHR of a file; --ehr-from file makes each file an EHR, and \
--ehr-map names EHRs or subjects. Lines of JSON name their EHR as `ehr_id`.

Exit code: 0 for an answer, 1 for errors in data or query, 2 for wrong usage.";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    #[command(flatten)]
    data: DataOptions,
    /// The query
    #[arg(value_name = "AQL", required_unless_present_any = ["file", "stored"])]
    aql: Option<String>,
    /// A file with the query; - for the standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "aql")]
    file: Option<PathBuf>,
    /// The name of a query that is stored in the repository of -d; NAME/VERSION selects a version
    #[arg(long, value_name = "NAME", conflicts_with_all = ["aql", "file", "explain"])]
    stored: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
    /// The file for the rows; by default the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format of the rows; without it that of the ending of FILE, a table on a terminal, or CSV
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The form of columns of complete date-times in Arrow and Parquet
    #[arg(long, value_enum, default_value_t)]
    times: TimesForm,
    /// The value of a parameter; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = read_parameter)]
    parameters: Vec<(String, String)>,
    /// Write at most this number of rows
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,
    /// Show how the query is evaluated, instead of its rows
    #[arg(long)]
    explain: bool,
}

/// Reads `NAME=VALUE`.
///
/// # Errors
/// If the name is missing.
pub fn read_parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim_start_matches('$').is_empty() => {
            Ok((name.trim_start_matches('$').to_owned(), value.to_owned()))
        }
        _ => Err(String::from("expected NAME=VALUE")),
    }
}

/// Runs the command.
///
/// # Errors
/// If the query is wrong, the data cannot be read, or the output cannot be written.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    if options.data.data.is_empty() {
        return Err(Failure::Usage(String::from(
            "no data: name files or folders by -d, as in `aqlite query -d data 'SELECT …'`",
        )));
    }
    options
        .form("")
        .format
        .check_output(options.output.as_deref())?;
    check_no_input(options.output.as_deref(), options.inputs())?;
    let parameters = parameters(&options.parameters)?;
    if let Some(repository) = Repository::open(&options.data.data, &options.server)? {
        return ask(options, &repository, &parameters);
    }
    let (text, path) = text_of(options)?;
    // The query is checked before the data are read.
    let Ok(plan) = prepare(&text, &path, &parameters) else {
        return Ok(Outcome::Findings);
    };
    let mut data = DataSet::open(&options.data)?;
    let outcome = report_problems(&data, &options.data);
    if options.explain {
        data.reliably(&options.data, |data| explain(&text, &parameters, data))?;
        return Ok(outcome);
    }
    let (now, form) = (now(), options.form(&text));
    if form.format.table().is_some() && plan.has_independent_rows() {
        return write_segments(&mut data, (&plan, &now), &form, options).map(|()| outcome);
    }
    let answer = data.reliably(&options.data, |data| data.answer(&plan, &now))?;
    let rows = Rows::of(RowSource::Whole(answer.result));
    write(&rows.limited(options.limit), &form, options)?;
    Ok(outcome)
}

/// Lets a repository answer the query.
fn ask(
    options: &Options,
    repository: &Repository,
    parameters: &Parameters,
) -> Result<Outcome, Failure> {
    let (text, path) = match &options.stored {
        None => text_of(options)?,
        Some(name) => (name.clone(), String::new()),
    };
    if options.explain {
        let mut out = std::io::stdout().lock();
        return repository.explain((&text, &path), parameters, &mut out);
    }
    let query = RepositoryQuery {
        text: match options.stored {
            None => QueryText::Aql(&text),
            Some(_) => QueryText::Stored(&text),
        },
        parameters,
    };
    let has_parts = options.form("").format.has_parts();
    let answer = repository.answer_in_parts(&query, has_parts);
    let answer = answer.inspect_err(|failure| show_errors(failure, (&query, &path)))?;
    let rows = answer.rows.limited(options.limit);
    write(&rows, &options.form(&answer.aql), options)?;
    Ok(Outcome::Success)
}

/// Shows the errors of a query that a repository refuses, with the lines of its text. The text of a
/// stored query is not known here.
pub fn show_errors(failure: &Failure, (query, path): (&RepositoryQuery<'_>, &str)) {
    if let QueryText::Aql(text) = query.text
        && failure.is_bad_request()
    {
        let mut errors = aql::diagnose(text);
        errors.retain(|found| found.severity == Severity::Error);
        report::show(text, path, &errors);
    }
}

impl Options {
    /// Returns the paths that the command reads.
    fn inputs(&self) -> impl Iterator<Item = &Path> {
        let file = self.file.as_deref();
        self.data.inputs().chain(file)
    }

    /// Returns the form of the rows of a query.
    fn form<'o>(&self, aql: &'o str) -> OutputForm<'o> {
        OutputForm {
            format: Format::or_default(self.format, self.output.as_deref()),
            times: self.times,
            aql,
        }
    }
}

/// Writes the rows of a query.
fn write(rows: &Rows<'_>, form: &OutputForm<'_>, options: &Options) -> Result<(), Failure> {
    let mut out = Output::open(options.output.as_deref())?;
    output::write(rows, form, &mut out)?;
    out.finish()
}

/// Writes the rows of files segment by segment, in a format of tables.
fn write_segments(
    data: &mut DataSet,
    query: (&Plan, &str),
    form: &OutputForm<'_>,
    options: &Options,
) -> Result<(), Failure> {
    // A damaged index is noticed here, before any row is written.
    let types = data.reliably(&options.data, |data| {
        columnar::types_of(&segment_rows(data, query, options))
    })?;
    let mut out = Output::open(options.output.as_deref())?;
    output::write_table(&segment_rows(data, query, options), &types, form, &mut out)?;
    out.finish()
}

/// Returns the rows of a query at a time from the segments of files.
fn segment_rows<'r>(
    data: &'r DataSet,
    (plan, now): (&'r Plan, &'r str),
    options: &Options,
) -> Rows<'r> {
    Rows::of(RowSource::Segments { data, plan, now }).limited(options.limit)
}

/// Returns the text of the query, and its name in diagnostics.
fn text_of(options: &Options) -> Result<(String, String), Failure> {
    match (&options.aql, &options.file) {
        (_, Some(file)) => {
            let name = file.display().to_string();
            let text = files::read_text(file)
                .map_err(|error| Failure::Data(format!("{name}: {error}")))?;
            Ok((text, name))
        }
        (Some(text), None) => Ok((text.clone(), String::from("query"))),
        (None, None) => Err(Failure::Usage(String::from(
            "--stored needs a repository: name a server or a database by -d",
        ))),
    }
}

/// Reads the values of parameters. A value that is a JSON string or list has this type; any other
/// one has the type of the value that it is compared with.
///
/// # Errors
/// [`Failure::Usage`] for a list that is no JSON, or that a service refuses too.
pub fn parameters(given: &[(String, String)]) -> Result<Parameters, Failure> {
    let mut all = Parameters::new();
    for (name, text) in given {
        // Quotes force a text: `--param code='"140"'` is never compared as a number.
        let is_json = text.starts_with(['[', '"']);
        let value = if is_json {
            let refused = |why: String| Failure::Usage(format!("--param {name}: {why}"));
            // This error has the position in the text.
            json::value(text).map_err(|problem| refused(problem.describe(text)))?;
            Parameter::from_json(name, text).map_err(refused)?
        } else {
            Parameter::Untyped(text.clone())
        };
        all.insert(name.clone(), value);
    }
    Ok(all)
}

/// Prepares a query. Its problems, also warnings, are shown with the line of the text.
///
/// # Errors
/// If the query has errors, which were shown.
pub fn prepare(text: &str, path: &str, parameters: &Parameters) -> Result<Plan, ()> {
    match aql::prepare(text, parameters, &QueryOptions::default()) {
        Ok(plan) => {
            // `prepare` reports errors only.
            let mut warnings = aql::diagnose(text);
            warnings.retain(|found| found.severity == Severity::Warning);
            report::show(text, path, &warnings);
            Ok(plan)
        }
        Err(found) => {
            report::show(text, path, &found);
            Err(())
        }
    }
}

/// Returns the time of the query, ISO 8601 in UTC.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    let millis = i64::try_from(millis).unwrap_or_default();
    time::format_nearest_utc(time::from_unix_millis(millis))
}

/// Reports the problems of files, and that there are no documents. Returns whether problems make
/// the command fail.
#[must_use]
pub fn report_problems(data: &DataSet, options: &DataOptions) -> Outcome {
    let (problems, skip_invalid) = (&data.catalog.problems, options.skip_invalid);
    for problem in problems.iter().filter(|_| !skip_invalid) {
        report_line!("{problem}");
    }
    let is_explained = !problems.is_empty() && !skip_invalid;
    if data.catalog.documents == 0 && !is_explained && !options.data.is_empty() {
        warn_of_none("documents", &options.data);
    }
    let repeated = data.catalog.repeated.len();
    let conflicts = &data.catalog.conflicts;
    if repeated > 0 {
        report_line!(
            "warning: {repeated} versions occur twice{}; the first of each is read",
            such_as(conflicts.repeated.as_ref())
        );
    }
    if conflicts.foreign_documents > 0 {
        report_line!(
            "warning: {} documents have the uid of an object of another EHR{}; one version of each object is the latest",
            conflicts.foreign_documents,
            such_as(conflicts.foreign.as_ref())
        );
    }
    let is_error = problems.iter().any(FileProblem::is_error);
    if is_error && !skip_invalid {
        Outcome::Findings
    } else {
        Outcome::Success
    }
}

/// Returns the words that name the place of a document in a warning about several.
fn such_as(place: Option<&String>) -> String {
    place.map_or_else(String::new, |place| format!(", such as that of {place}"))
}

/// Warns that arguments name no files of a kind: an answer of an empty set looks like one of data.
pub fn warn_of_none(kind: &str, arguments: &[String]) {
    let named: Vec<String> = arguments.iter().map(|name| format!("`{name}`")).collect();
    report_line!("warning: no {kind} in {}", named.join(", "));
}

/// Writes each step from the text to the rows, and what the run read.
///
/// # Errors
/// As the run.
pub fn explain(text: &str, parameters: &Parameters, data: &DataSet) -> Result<(), Failure> {
    let templates: Vec<&Template> = data.templates.all().map(|t| &t.template).collect();
    let options = QueryOptions::default();
    let (explanation, plan) = aql::explain(text, parameters, &options, &templates);
    let Some(plan) = plan else {
        return Ok(());
    };
    let now = now();
    let lint = Lint {
        data,
        parameters,
        now: &now,
    };
    report::show(text, "query", &lint.unrefuted(&explanation.lint)?);
    let started = Instant::now();
    let answer = data.answer(&plan, &now)?;
    let mut out = std::io::stdout().lock();
    let steps = [
        ("checked query", &explanation.query),
        ("plan", &explanation.plan),
    ];
    for (name, part) in steps {
        if let Some(part) = part {
            writeln!(out, "{name}")?;
            for line in part.outline().lines() {
                writeln!(out, "  {line}")?;
            }
        }
    }
    write_run(&answer, data, &mut out)?;
    writeln!(out, "  {:.1} ms", started.elapsed().as_secs_f64() * 1000.0)?;
    if answer.result.is_empty() {
        lint.write_removed(&explanation, &mut out)?;
    }
    Ok(())
}

/// Writes what a run read, and its consumption.
fn write_run(answer: &QueryAnswer, data: &DataSet, out: &mut impl Write) -> std::io::Result<()> {
    let catalog = &data.catalog;
    writeln!(out, "run")?;
    writeln!(out, "  reads {}", answer.source.description())?;
    writeln!(
        out,
        "  {} documents of {} EHRs in {} segments",
        catalog.documents,
        catalog.ehrs.len(),
        catalog.segments.len()
    )?;
    let source = match data.is_cached {
        true => "an index file",
        false => "files",
    };
    writeln!(out, "  segments of {source}")?;
    let rows = answer.result.len();
    writeln!(out, "  {rows} rows, {} units of work", answer.work)
}
