//! The state of a shell, and the statements that change it.

use super::command::help;
use super::source::ShellData;
use crate::columnar::TimesForm;
use crate::outcome::{Failure, Outcome};
use crate::output::{self, Format, OutputForm};
use crate::output_file::{Output, check_no_input};
use crate::query;
use crate::rows::{RowSource, Rows};
use crate::terminal::{print_line, report_line};
use aqlite::aql::{LabelStep, Labels, TemplateLabels};
use aqlite::rm::class::Cls;
use clap::ValueEnum;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// The continuation after a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The next statement.
    More,
    /// The end of the shell.
    Quit,
}

/// The state of a shell.
pub struct Session {
    /// The data.
    pub source: ShellData,
    /// The language of clinical names.
    pub language: String,
    format: Format,
    file: Option<PathBuf>,
    /// The format of the rows that the file already has.
    begun: Option<Format>,
    parameters: Vec<(String, String)>,
    last: String,
    is_timed: bool,
    has_failed: bool,
}

impl Session {
    /// Creates the state.
    pub fn new(source: ShellData, format: Format, language: String) -> Session {
        Session {
            source,
            language,
            format,
            file: None,
            begun: None,
            parameters: Vec::new(),
            last: String::new(),
            is_timed: false,
            has_failed: false,
        }
    }

    /// Returns the first line of the shell.
    pub fn greeting(&self) -> String {
        let description = self.source.description();
        format!("{description}; .help lists the commands")
    }

    /// Returns whether all statements succeeded.
    pub fn outcome(&self) -> Outcome {
        if self.has_failed {
            Outcome::Findings
        } else {
            Outcome::Success
        }
    }

    /// Runs a query or a command.
    ///
    /// # Errors
    /// If the run fails, or the output cannot be written. A wrong query is shown, and is no error.
    pub fn run(&mut self, text: &str) -> Result<Next, Failure> {
        let text = text.trim();
        if let Some(command) = text.strip_prefix('.') {
            let (name, argument) = command
                .split_once(char::is_whitespace)
                .unwrap_or((command, ""));
            return self.run_command(name, argument.trim());
        }
        let text = text.trim_end_matches(';').trim_end();
        if !text.is_empty() {
            self.last = text.to_owned();
            self.answer(text)?;
        }
        Ok(Next::More)
    }

    fn answer(&mut self, text: &str) -> Result<(), Failure> {
        let parameters = query::parameters(&self.parameters)?;
        if let Err(Failure::Usage(problem)) = self.check_output() {
            self.refuse(&problem);
            return Ok(());
        }
        let started = Instant::now();
        let Some(result) = self.source.answer(text, &parameters)? else {
            self.has_failed = true;
            return Ok(());
        };
        let elapsed = started.elapsed();
        let mut out = self.open()?;
        let form = OutputForm {
            format: self.format,
            times: TimesForm::default(),
            aql: text,
        };
        output::write(&Rows::of(RowSource::Whole(result)), &form, &mut out)?;
        out.finish()?;
        if self.is_timed {
            print_line!("{:.1} ms", elapsed.as_secs_f64() * 1000.0);
        }
        Ok(())
    }

    /// Checks that rows can be written to the output. Only a text can follow other rows.
    fn check_output(&self) -> Result<(), Failure> {
        self.format.check_output(self.file.as_deref())?;
        if self.begun.is_none() {
            check_no_input(self.file.as_deref(), self.source.inputs())?;
        }
        let Some((file, begun)) = self.file.as_ref().zip(self.begun) else {
            return Ok(());
        };
        if begun.table().or(self.format.table()).is_none() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "`{}` has the rows of another query, and a binary format has those of one: name another file by .output",
            file.display()
        )))
    }

    /// Opens the output. The first query replaces the content of a file, and others append to
    /// it.
    fn open(&mut self) -> Result<Output, Failure> {
        match (&self.file, self.begun.replace(self.format)) {
            (Some(file), Some(_)) => Output::append(file),
            (file, _) => Output::open(file.as_deref()),
        }
    }

    fn run_command(&mut self, name: &str, argument: &str) -> Result<Next, Failure> {
        let mut out = std::io::stdout();
        match name {
            "quit" | "exit" => return Ok(Next::Quit),
            "help" => write!(out, "{}", help())?,
            "templates" => self.list_templates(&mut out)?,
            "schema" => self.list_schema(argument, &mut out)?,
            "explain" => self.explain(argument)?,
            "param" => self.set_parameter(argument, &mut out)?,
            "output" => {
                self.file = (!argument.is_empty()).then(|| PathBuf::from(argument));
                self.begun = None;
            }
            "format" => match Format::from_str(argument, true) {
                Ok(format) => self.format = format,
                Err(_) => {
                    self.refuse("the formats are table, csv, json, ndjson, arrow and parquet")
                }
            },
            "timer" => self.is_timed = argument != "off",
            _ => self.refuse(&format!("`.{name}` is no command; .help lists them")),
        }
        out.flush()?;
        Ok(Next::More)
    }

    fn refuse(&mut self, problem: &str) {
        self.has_failed = true;
        report_line!("error: {problem}");
    }

    fn list_templates(&self, out: &mut impl Write) -> Result<(), Failure> {
        for loaded in self.source.templates()?.all() {
            writeln!(out, "{}", loaded.template.template_id)?;
        }
        Ok(())
    }

    /// Lists the archetypes of all templates, or the paths to data below an archetype.
    fn list_schema(&mut self, argument: &str, out: &mut impl Write) -> Result<(), Failure> {
        let templates = self.source.templates()?;
        let labels = TemplateLabels {
            templates: templates.all().map(|t| &t.template).collect(),
            language: &self.language,
        };
        let (archetype, rest) = match argument.split_once('/') {
            Some((archetype, rest)) => (archetype, rest),
            None => (argument, ""),
        };
        let archetype = archetype.trim_matches(['[', ']']);
        let found = if archetype.is_empty() {
            labels.archetypes(Cls::LOCATABLE)
        } else {
            labels.paths(archetype, &steps(rest))
        };
        for label in &found {
            writeln!(out, "{}\t{}\t{}", label.id, label.text, label.detail)?;
        }
        if found.is_empty() {
            self.refuse(&format!("no template has data at `{argument}`"));
        }
        Ok(())
    }

    fn explain(&mut self, argument: &str) -> Result<(), Failure> {
        let text = if argument.is_empty() {
            self.last.clone()
        } else {
            argument.trim_end_matches(';').to_owned()
        };
        let parameters = query::parameters(&self.parameters)?;
        self.has_failed |= self.source.explain(&text, &parameters)? == Outcome::Findings;
        Ok(())
    }

    fn set_parameter(&mut self, argument: &str, out: &mut impl Write) -> Result<(), Failure> {
        if argument.is_empty() {
            for (name, value) in &self.parameters {
                writeln!(out, "${name} = {value}")?;
            }
            return Ok(());
        }
        match query::read_parameter(argument) {
            Ok((name, value)) => {
                self.parameters.retain(|(known, _)| *known != name);
                self.parameters.push((name, value));
            }
            Err(problem) => self.refuse(&problem),
        }
        Ok(())
    }
}

/// Splits a path such as `data[at0001]/events` into its steps.
fn steps(path: &str) -> Vec<LabelStep> {
    let step = |step: &str| match step.split_once('[') {
        Some((name, id)) => (name.to_owned(), Some(id.trim_end_matches(']').to_owned())),
        None => (step.to_owned(), None),
    };
    path.split('/')
        .filter(|part| !part.is_empty())
        .map(step)
        .collect()
}
