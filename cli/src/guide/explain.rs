//! `guide explain`: why each rule of a guide fired or did not.

use super::run::{check_ehr, populate};
use super::{moment, read};
use crate::data::{DataOptions, DataSet};
use crate::outcome::{Failure, Outcome};
use crate::printable::printable;
use crate::query;
use aqlite::gdl::{self, CompiledGuide, Exceeded, RunInput, describe};
use clap::Args;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Show why each rule fires or does not, for given values:
    aqlite guide explain score.gdl2.json --input gt0003=80,kg --input gt0004=1.8,m

  Show it for the data of an EHR:
    aqlite guide explain score.gdl2.json -d data --ehr p1

Exit code: 0 for a run, 1 for errors in the guide or the data, 2 for wrong usage.";

/// The options of `guide explain`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The file of the guide: GDL2 as JSON, or GDL as ODIN
    #[arg(value_name = "GUIDE")]
    guide: PathBuf,
    /// The value of a variable, as fixtures write it: gt0003=80,kg; repeat it for other variables
    #[arg(long = "input", value_name = "CODE=VALUE", value_parser = read_input)]
    inputs: Vec<(String, String)>,
    #[command(flatten)]
    data: DataOptions,
    /// The EHR of the data
    #[arg(long, value_name = "EHR", requires = "data", conflicts_with = "inputs")]
    ehr: Option<String>,
    /// The time of evaluation, ISO 8601; by default the present
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
    /// The language of names
    #[arg(long, default_value = "en", value_name = "LANGUAGE")]
    language: String,
    /// Convert quantities of compatible units in comparisons
    #[arg(long)]
    convert_units: bool,
    /// Write the run as JSON
    #[arg(long)]
    json: bool,
}

fn read_input(text: &str) -> Result<(String, String), String> {
    let (code, value) = text.split_once('=').ok_or("expected CODE=VALUE")?;
    Ok((code.to_owned(), value.to_owned()))
}

/// Explains one run of a guide.
///
/// # Errors
/// If the guide or the data cannot be read, or the run exceeds a limit.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    if options.ehr.is_none() && !options.data.data.is_empty() {
        let problem = "`-d` needs `--ehr`: name the EHR on whose data the guide runs";
        return Err(Failure::Usage(String::from(problem)));
    }
    let Some(guide) = read(&options.guide)? else {
        return Ok(Outcome::Findings);
    };
    let (described, outcome) = match &options.ehr {
        Some(ehr) => on_ehr(options, &guide, ehr)?,
        None => (on_inputs(options)?, Outcome::Success),
    };
    let mut out = std::io::stdout().lock();
    if options.json {
        writeln!(out, "{described:#}")?;
    } else {
        write!(out, "{}", text_of(&described))?;
    }
    out.flush()?;
    Ok(outcome)
}

/// Runs the guide on the values of variables.
fn on_inputs(options: &Options) -> Result<Value, Failure> {
    let mut codes = HashSet::new();
    if let Some((code, _)) = options.inputs.iter().find(|(code, _)| !codes.insert(code)) {
        let problem = format!("--input {code} is given twice: a variable has one value");
        return Err(Failure::Usage(problem));
    }
    let text = std::fs::read_to_string(&options.guide)?;
    let run_options = run_options(options);
    let now = moment(options.now.as_deref())?;
    describe::try_out(&text, &options.inputs, &options.language, now, run_options)
        .map_err(|found| Failure::Data(found.iter().map(|d| d.one_line(&text)).collect()))
}

/// Runs the guide on the data of an EHR. The outcome has findings if data cannot be read.
fn on_ehr(
    options: &Options,
    guide: &CompiledGuide,
    ehr: &str,
) -> Result<(Value, Outcome), Failure> {
    let mut data = DataSet::open(&options.data)?;
    let outcome = query::report_problems(&data, &options.data);
    check_ehr(&data, ehr)?;
    let (now, run_options) = (moment(options.now.as_deref())?, run_options(options));
    let mut population = data.reliably(&options.data, |data| {
        populate(guide, data, now, run_options)
    })?;
    let fails = |exceeded: Exceeded| Failure::Data(exceeded.to_string());
    let instances = population.instances(ehr).map_err(fails)?;
    let run = guide.run(&RunInput {
        instances: &instances,
        clock: now.into(),
        language: &options.language,
        options: run_options,
        terminology: None,
    });
    let run = run.map_err(fails)?;
    let fired: Vec<&str> = run.fired.iter().map(|rule| &**rule).collect();
    let described = json!({ "fired": fired, "trace": run.trace, "notes": run.notes });
    Ok((described, outcome))
}

fn run_options(options: &Options) -> gdl::Options {
    gdl::Options {
        convert_units: options.convert_units,
        trace: true,
        ..gdl::Options::default()
    }
}

/// Returns the members of a list; none if it is absent.
fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    let members = value.get(name).and_then(Value::as_array);
    members.into_iter().flatten()
}

/// Returns a text of a guide or a document for a terminal.
fn text<'v>(value: &'v Value, name: &str) -> Cow<'v, str> {
    printable(value.get(name).and_then(Value::as_str).unwrap_or_default())
}

/// Writes a run for people: each rule with its conditions and the values that they read.
fn text_of(run: &Value) -> String {
    let mut out = String::new();
    let trace = run.get("trace").unwrap_or(&Value::Null);
    for condition in list(trace, "pre_conditions") {
        push_condition(condition, &mut out);
    }
    for rule in list(trace, "rules") {
        let did = match rule.get("fired").and_then(Value::as_bool) {
            Some(true) => "fired",
            _ => "did not fire",
        };
        let _ = writeln!(out, "{} {} {did}", text(rule, "rule"), text(rule, "name"));
        list(rule, "conditions").for_each(|condition| push_condition(condition, &mut out));
        list(rule, "set").for_each(|variable| push_variable("  set ", variable, &mut out));
    }
    for variable in list(trace, "default_actions") {
        push_variable("default ", variable, &mut out);
    }
    for variable in list(trace, "missing") {
        push_variable("missing ", variable, &mut out);
    }
    for note in list(run, "notes") {
        let place = (text(note, "place"), text(note, "statement"));
        let _ = writeln!(
            out,
            "note {} `{}`: {}",
            place.0,
            place.1,
            text(note, "reason")
        );
    }
    out
}

fn push_condition(condition: &Value, out: &mut String) {
    let result = match condition.get("result").and_then(Value::as_bool) {
        Some(true) => "true   ",
        Some(false) => "false  ",
        None => "unknown",
    };
    let _ = writeln!(out, "  {result} {}", text(condition, "text"));
    list(condition, "variables").for_each(|variable| push_variable("    ", variable, out));
}

fn push_variable(before: &str, variable: &Value, out: &mut String) {
    let value = variable.get("value").and_then(Value::as_str);
    let (code, name) = (text(variable, "variable"), text(variable, "name"));
    let _ = writeln!(
        out,
        "{before}{code} {name} = {}",
        printable(value.unwrap_or("no value"))
    );
}
