//! The views of a sync: files of queries, stored queries, and flat tables of templates.

use super::source::LakeSource;
use super::sync::SyncOptions;
use super::views::digest_of;
use super::{of_template, views};
use crate::data::files::read_text;
use crate::example::read_template;
use crate::outcome::Failure;
use crate::report;
use crate::repository::Repository;
use crate::terminal::report_line;
use aqlite::aql::{ViewError, version_query};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A view that is synchronized.
pub struct SyncView {
    /// The name of the dataset: a name of files.
    pub name: String,
    /// The text of the query.
    pub aql: String,
    /// The query with the keys of versions.
    pub query: String,
    /// The template of a flat table.
    pub template: Option<String>,
}

/// Returns the views that the options name; without any, those of the templates of the data.
///
/// # Errors
/// If a query is no view, two views have one name, or there is none.
pub fn views_of(options: &SyncOptions, source: &LakeSource) -> Result<Vec<SyncView>, Failure> {
    let mut all = Vec::new();
    for view in &options.views {
        let (name, path) = named(view)?;
        let text = read_text(Path::new(&path));
        let text = text.map_err(|error| Failure::Data(format!("{path}: {error}")))?;
        all.push(SyncView::new(name, text, &path)?);
    }
    for name in &options.stored {
        let repository = Repository::open(&options.data.data, &options.server)?;
        let repository = repository.ok_or_else(|| {
            Failure::Usage(String::from(
                "--stored needs a repository: name a server or a database by -d",
            ))
        })?;
        let text = repository.stored_query(name)?;
        all.push(SyncView::new(plain(name), text, name)?);
    }
    for path in &options.templates {
        let Some(template) = read_template(path)? else {
            return Err(Failure::Data(format!("{}: no template", path.display())));
        };
        for view in of_template(&template)? {
            all.push(SyncView::of(&view)?);
        }
    }
    if all.is_empty() {
        all = of_data(source)?;
    }
    distinguish(&mut all);
    let mut names: Vec<&str> = all.iter().map(|view| view.name.as_str()).collect();
    names.sort_unstable_by_key(|name| name.to_ascii_lowercase());
    for pair in names.windows(2) {
        if let [one, other] = pair
            && one.eq_ignore_ascii_case(other)
        {
            return Err(Failure::Usage(match one == other {
                true => format!(
                    "two views have the name `{one}`: write the query of one into a file, and name it by --view NAME=FILE.aql"
                ),
                false => format!(
                    "the views `{one}` and `{other}` differ in the case of letters only, and many systems have one folder for both: name one of them by --view NAME=FILE.aql"
                ),
            }));
        }
    }
    Ok(all)
}

/// Appends a digest of the template to the names of tables that those of another template have too:
/// templates whose ids differ in the case of letters or in punctuation only.
fn distinguish(all: &mut [SyncView]) {
    let mut templates: HashMap<String, HashSet<String>> = HashMap::new();
    for view in &*all {
        if let Some(template) = &view.template {
            let of_name = templates.entry(view.name.clone()).or_default();
            of_name.insert(template.clone());
        }
    }
    for view in all {
        let has_several = templates.get(&view.name).is_some_and(|all| all.len() > 1);
        if let Some(template) = view.template.as_ref().filter(|_| has_several) {
            view.name = format!("{}_{}", view.name, digest_of(template));
        }
    }
}

/// Returns the views of the templates among the files of the data.
fn of_data(source: &LakeSource) -> Result<Vec<SyncView>, Failure> {
    let Some(templates) = source.templates()? else {
        return Err(Failure::Usage(String::from(
            "no view: name queries by --view or --stored, or templates by --template",
        )));
    };
    let mut all = Vec::new();
    for loaded in templates.all() {
        match of_template(&loaded.template) {
            Ok(found) => {
                for view in found {
                    all.push(SyncView::of(&view)?);
                }
            }
            Err(Failure::Data(problem)) => report_line!("warning: {problem}"),
            Err(other) => return Err(other),
        }
    }
    if all.is_empty() {
        return Err(Failure::Usage(String::from(
            "no view: the data have no template; name queries by --view, or templates by --template",
        )));
    }
    Ok(all)
}

impl SyncView {
    /// Creates a view. `shown` names its query in messages.
    ///
    /// # Errors
    /// If the query is no view.
    pub fn new(name: String, aql: String, shown: &str) -> Result<SyncView, Failure> {
        let query = version_query(&aql).map_err(|error| match error {
            ViewError::Text(found) => {
                report::show(&aql, shown, &found);
                Failure::Data(format!("`{shown}` is no valid query"))
            }
            other => Failure::Data(format!("{shown}: {other}")),
        })?;
        Ok(SyncView {
            name,
            aql,
            query,
            template: None,
        })
    }

    fn of(view: &views::View) -> Result<SyncView, Failure> {
        let mut all = SyncView::new(view.name.clone(), view.aql(), &view.name)?;
        all.template = Some(view.template_id.clone());
        Ok(all)
    }

    /// Returns whether the text of another query has the same rows: layout, comments and the order of
    /// rows do not matter.
    pub fn is_same(&self, aql: &str) -> bool {
        self.aql == aql || version_query(aql).is_ok_and(|query| query == self.query)
    }

    /// Returns the failure of a view whose dataset has the rows of another query.
    pub fn other_query(&self) -> Failure {
        Failure::Data(match &self.template {
            Some(template) => format!(
                "the template `{template}` has changed, and the dataset `{}` has the columns of its former version: write its tables again by --rebuild --template FILE with the file of this template alone",
                self.name
            ),
            None => format!(
                "the dataset `{}` has the rows of another query: choose another name, or write it again with --rebuild and its view alone",
                self.name
            ),
        })
    }
}

/// Reads `NAME=FILE`, or a file whose name without its ending is that of the view.
fn named(view: &str) -> Result<(String, String), Failure> {
    let (name, path) = match view.split_once('=') {
        Some((name, path)) => (name.to_owned(), path.to_owned()),
        None => {
            let stem = Path::new(view).file_stem().unwrap_or_default();
            (plain(&stem.to_string_lossy()), view.to_owned())
        }
    };
    if name.is_empty() || name.starts_with('_') || name != plain(&name) {
        return Err(Failure::Usage(format!(
            "`{name}` is no name of a dataset: use a letter or digit, then also `_` and `-`"
        )));
    }
    Ok((name, path))
}

/// Returns a name of letters, digits, `_` and `-`.
fn plain(name: &str) -> String {
    let one = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => c,
        _ => '_',
    };
    name.chars().map(one).collect()
}
