//! The views of a sync: files of queries, stored queries, and flat tables of templates.

use super::source::Source;
use super::sync::SyncOptions;
use super::{of_template, views};
use crate::data::files::read_text;
use crate::example::read_template;
use crate::outcome::Failure;
use crate::report;
use crate::repository::Repository;
use aqlite::aql::{ViewError, version_query};
use std::path::Path;

/// A view that is synchronized.
pub struct SyncView {
    /// The name of the dataset: a name of files.
    pub name: String,
    /// The text of the query.
    pub aql: String,
    /// The query with the keys of versions.
    pub query: String,
}

/// Returns the views that the options name; without any, those of the templates of the data.
///
/// # Errors
/// If a query is no view, two views have one name, or there is none.
pub fn views_of(options: &SyncOptions, source: &Source) -> Result<Vec<SyncView>, Failure> {
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
    let mut names: Vec<&str> = all.iter().map(|view| view.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair.first() == pair.last()) {
        Some(pair) => Err(Failure::Usage(format!(
            "two views have the name `{}`: write the query of one into a file, and name it by --view NAME=FILE.aql",
            pair.concat()
                .get(..pair.concat().len() / 2)
                .unwrap_or_default()
        ))),
        None => Ok(all),
    }
}

/// Returns the views of the templates among the files of the data.
fn of_data(source: &Source) -> Result<Vec<SyncView>, Failure> {
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
            Err(Failure::Data(problem)) => eprintln!("warning: {problem}"),
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
    fn new(name: String, aql: String, shown: &str) -> Result<SyncView, Failure> {
        let query = version_query(&aql).map_err(|error| match error {
            ViewError::Text(found) => {
                report::show(&aql, shown, &found);
                Failure::Data(format!("`{shown}` is no valid query"))
            }
            other => Failure::Data(format!("{shown}: {other}")),
        })?;
        Ok(SyncView { name, aql, query })
    }

    fn of(view: &views::View) -> Result<SyncView, Failure> {
        SyncView::new(view.name.clone(), view.aql(), &view.name)
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
