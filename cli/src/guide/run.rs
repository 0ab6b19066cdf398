//! `guide run`: a guide on each EHR of the data.

use super::{moment, read};
use crate::data::{DataOptions, DataSet};
use crate::outcome::{Failure, Outcome};
use crate::output_file::{Output, check_no_input};
use crate::{progress, query};
use aqlite::aql::{self, Parameters, Plan, QueryOptions};
use aqlite::gdl::output::{EhrRun, line};
use aqlite::gdl::time::Moment;
use aqlite::gdl::{self, CompiledGuide, Exceeded, Population, RunInput};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Run a guide on each EHR of a folder that population queries read:
    aqlite guide run score.gdl2.json -d data -o results.ndjson

  Run it on one EHR as of a day, with the reasons of each rule:
    aqlite guide run score.gdl2.json -d data --ehr p1 --now 2026-01-31T08:00:00Z --trace

Exit code: 0 for a run, 1 for errors in the guide or the data, 2 for wrong usage.";

/// The options of `guide run`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The file of the guide: GDL2 as JSON, or GDL as ODIN
    #[arg(value_name = "GUIDE")]
    guide: PathBuf,
    #[command(flatten)]
    data: DataOptions,
    /// Run on these EHRs only; may be repeated
    #[arg(long = "ehr", value_name = "EHR")]
    ehrs: Vec<String>,
    /// The time of evaluation, ISO 8601; by default the present
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
    /// The language of names and cards
    #[arg(long, default_value = "en", value_name = "LANGUAGE")]
    language: String,
    /// Convert quantities of compatible units in comparisons
    #[arg(long)]
    convert_units: bool,
    /// Add to each line why each rule fired or did not
    #[arg(long)]
    trace: bool,
    /// The file for the lines; by default the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs a guide, and writes a line of JSON for each EHR.
///
/// # Errors
/// If the guide or the data cannot be read, or a run exceeds a limit.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    if options.data.data.is_empty() {
        let problem = "no data: name files or folders by -d";
        return Err(Failure::Usage(String::from(problem)));
    }
    let inputs = options.data.inputs().chain([options.guide.as_path()]);
    check_no_input(options.output.as_deref(), inputs)?;
    let now = moment(options.now.as_deref())?;
    let Some(guide) = read(&options.guide)? else {
        return Ok(Outcome::Findings);
    };
    let mut data = DataSet::open(&options.data)?;
    let outcome = query::report_problems(&data, &options.data);
    let run_options = gdl::Options {
        convert_units: options.convert_units,
        trace: options.trace,
        ..gdl::Options::default()
    };
    options
        .ehrs
        .iter()
        .try_for_each(|ehr| check_ehr(&data, ehr))?;
    let mut population = data.reliably(&options.data, |data| {
        populate(&guide, data, now, run_options)
    })?;
    let mut out = Output::open(options.output.as_deref())?;
    let all = data.catalog.ehrs.iter();
    for ehr in all.filter(|ehr| is_chosen(options, &ehr.ehr_id, ehr.is_queryable)) {
        progress::check()?;
        let fails = |e: Exceeded| Failure::Data(format!("{}: {e}", ehr.ehr_id));
        let instances = population.instances(&ehr.ehr_id).map_err(fails)?;
        let input = RunInput {
            instances: &instances,
            clock: now.into(),
            language: &options.language,
            options: run_options,
            terminology: None,
        };
        let run = guide.run(&input);
        let run = EhrRun {
            ehr_id: ehr.ehr_id.clone(),
            run: run.map_err(fails)?,
            queries: Vec::new(),
        };
        let text = line(&run, None).map_err(|error| Failure::Data(error.to_string()))?;
        writeln!(out, "{text}")?;
    }
    out.finish()?;
    Ok(outcome)
}

/// Returns whether the guide runs on an EHR. Without names it runs on those that population queries
/// read.
fn is_chosen(options: &Options, ehr_id: &str, is_queryable: bool) -> bool {
    if options.ehrs.is_empty() {
        return is_queryable;
    }
    options.ehrs.iter().any(|named| named == ehr_id)
}

/// Checks that the data have an EHR.
///
/// # Errors
/// If they have none with this id.
pub fn check_ehr(data: &DataSet, ehr: &str) -> Result<(), Failure> {
    match data.catalog.ehrs.iter().any(|known| known.ehr_id == ehr) {
        true => Ok(()),
        false => Err(Failure::Data(format!("the data have no EHR `{ehr}`"))),
    }
}

/// Reads the data of a guide for all EHRs.
///
/// # Errors
/// If a query of the guide fails, or data cannot be read.
pub fn populate<'g>(
    guide: &'g CompiledGuide,
    data: &DataSet,
    now: Moment,
    options: gdl::Options,
) -> Result<Population<'g>, Failure> {
    let queries = Population::new(guide, now, options);
    let plans = queries.queries().iter().map(|q| prepare(&q.population_aql));
    let plans: Vec<Plan> = plans.collect::<Result<_, _>>()?;
    let time = query::now();
    loop {
        let mut population = Population::new(guide, now, options);
        let mut is_complete = true;
        for (number, plan) in plans.iter().enumerate() {
            is_complete &=
                data.visit(plan, &time, &mut |at, row| population.add(number, at, row))?;
        }
        if is_complete {
            return Ok(population);
        }
    }
}

fn prepare(text: &str) -> Result<Plan, Failure> {
    aql::prepare(text, &Parameters::new(), &QueryOptions::default()).map_err(|found| {
        let first = found.first().map(|d| d.one_line(text));
        Failure::Data(format!(
            "a query of the guide: {}",
            first.unwrap_or_default()
        ))
    })
}
