//! The command `template`: a template as tree, web template or paths.

use crate::example::read_template;
use crate::outcome::{Failure, Outcome};
use crate::printable::{printable, printable_lines};
use aqlite::template::{Description, Template, WebTemplate, describe};
use clap::{Args, Subcommand};
use std::io::Write;
use std::path::PathBuf;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Show the data points of a template with their names, units and codes:
    aqlite template tree vital_signs.opt

  Find the AQL path of the systolic pressure:
    aqlite template paths vital_signs.opt | grep Systolic";

/// The examples of the help of `template tree`.
const TREE_EXAMPLES: &str = "\
Examples:
  Show the data points of a template, with German names:
    aqlite template tree vital_signs.opt --language de";

/// The examples of the help of `template web`.
const WEB_EXAMPLES: &str = "\
Examples:
  Write the web template, whose ids are the keys of FLAT:
    aqlite template web vital_signs.opt > vital_signs.web.json";

/// The examples of the help of `template paths`.
const PATHS_EXAMPLES: &str = "\
Examples:
  Find the AQL path of the systolic pressure:
    aqlite template paths vital_signs.opt | grep Systolic";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    #[command(subcommand)]
    form: Form,
}

/// The forms in which a template is shown.
#[derive(Subcommand)]
enum Form {
    /// One line for each node: name, class, occurrences, constraints, path
    #[command(after_help = TREE_EXAMPLES)]
    Tree(NamedTemplate),
    /// The web template as JSON
    #[command(after_help = WEB_EXAMPLES)]
    Web(TemplateFile),
    /// The AQL paths of data values, with class and name, separated by tabs
    #[command(after_help = PATHS_EXAMPLES)]
    Paths(NamedTemplate),
}

/// A template.
#[derive(Args)]
struct TemplateFile {
    /// The file of the template: OPT 1.4 or ADL 2
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// A template, and the language of its names. A web template has the names of all languages.
#[derive(Args)]
struct NamedTemplate {
    #[command(flatten)]
    template: TemplateFile,
    /// The language of names; by default that of the template
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
}

impl NamedTemplate {
    fn describe(&self, template: &Template) -> Description {
        let language = self.language.as_deref().unwrap_or(&template.language);
        describe(template, language)
    }
}

/// Runs the command.
///
/// # Errors
/// If the template cannot be read, or the output cannot be written.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    let file = match &options.form {
        Form::Tree(named) | Form::Paths(named) => &named.template,
        Form::Web(file) => file,
    };
    let Some(template) = read_template(&file.file)? else {
        return Ok(Outcome::Findings);
    };
    let mut out = std::io::stdout().lock();
    match &options.form {
        Form::Tree(named) => {
            let tree = named.describe(&template).to_string();
            write!(out, "{}", printable_lines(&tree))?;
        }
        Form::Web(_) => writeln!(out, "{}", WebTemplate::of(&template).to_json(&template))?,
        Form::Paths(named) => write_paths(&named.describe(&template), "", &mut out)?,
    }
    out.flush()?;
    Ok(Outcome::Success)
}

/// Writes the path of each leaf. A data value has the name of the node that contains it.
fn write_paths(node: &Description, name: &str, out: &mut impl Write) -> std::io::Result<()> {
    let name = if node.label.is_empty() {
        name
    } else {
        &node.label
    };
    if node.children.is_empty() {
        let (path, name) = (printable(&node.path), printable(name));
        return writeln!(out, "{path}\t{}\t{name}", node.class);
    }
    let mut children = node.children.iter();
    children.try_for_each(|child| write_paths(child, name, out))
}
