//! The templates of a data set, and the formats that are read by them.

use super::files::SourceFile;
use aqlite::diag::{Diagnostic, Finding};
use aqlite::document::Texts;
use aqlite::template::{Template, WebTemplate};
use std::collections::HashMap;
use std::sync::OnceLock;

/// A template, and values that are computed from it when they are first needed.
pub struct LoadedTemplate {
    /// The template.
    pub template: Template,
    /// Its texts, which documents may share.
    pub known: Texts,
    web: OnceLock<WebTemplate>,
}

/// The templates of a data set by id.
#[derive(Default)]
pub struct Templates {
    all: Vec<LoadedTemplate>,
    by_id: HashMap<String, usize>,
}

/// Reads a template of ADL 1.4 or ADL 2.
///
/// # Errors
/// The problems of the text. For XML that is neither, those of ADL 1.4.
pub fn parse(text: &str) -> Result<Template, Vec<Diagnostic>> {
    let text = text.trim_start_matches('\u{feff}');
    if !text.trim_start().starts_with('<') {
        return Template::parse_opt2(text);
    }
    Template::parse(text).or_else(|found| Template::parse_opt2(text).map_err(|_| found))
}

impl LoadedTemplate {
    /// Returns the web template.
    pub fn web(&self) -> &WebTemplate {
        self.web.get_or_init(|| WebTemplate::of(&self.template))
    }
}

impl Templates {
    /// Adds a template. A later one with the same id replaces it.
    pub fn add(&mut self, template: Template) {
        let known = template.texts().into_iter().map(str::to_owned).collect();
        let id = template.template_id.clone();
        let loaded = LoadedTemplate {
            template,
            known,
            web: OnceLock::new(),
        };
        match self.by_id.get(&id).and_then(|at| self.all.get_mut(*at)) {
            Some(old) => *old = loaded,
            None => {
                self.by_id.insert(id, self.all.len());
                self.all.push(loaded);
            }
        }
    }

    /// Returns the templates in the order of their files.
    pub fn all(&self) -> impl Iterator<Item = &LoadedTemplate> {
        self.all.iter()
    }

    /// Returns the template with an id.
    pub fn get(&self, id: &str) -> Option<&LoadedTemplate> {
        self.by_id.get(id).and_then(|at| self.all.get(*at))
    }

    /// Returns the template whose web template has this id at its root: simplified formats name
    /// their template so.
    ///
    /// # Errors
    /// A finding if there is no such template, or more than one.
    pub fn with_root(&self, root: &str) -> Result<&LoadedTemplate, Finding> {
        let mut found = self.all.iter().filter(|t| t.web().tree.id == root);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(Finding::error(
                "CLI0101",
                "",
                format!("no template has the web template `{root}`: add its file by `-d`"),
            )),
            (Some(_), Some(_)) => Err(Finding::error(
                "CLI0102",
                "",
                format!("several templates have the web template `{root}`: name one of them"),
            )),
        }
    }
}

/// The endings of files that may be templates.
const ENDINGS: [&str; 4] = ["xml", "opt", "adls", "adl"];

/// Returns whether a file may be a template, by its ending.
pub fn may_be_template(file: &SourceFile) -> bool {
    let ending = file.ending();
    ENDINGS.contains(&ending.as_str()) || !["json", "ndjson", "jsonl"].contains(&ending.as_str())
}
