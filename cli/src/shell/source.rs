//! The data of a shell: files, or a repository that answers queries itself.

use crate::data::templates::Templates;
use crate::data::{DataOptions, DataSet};
use crate::outcome::{Failure, Outcome};
use crate::query::{self, report_problems};
use crate::repository::{QueryText, Repository, RepositoryQuery};
use crate::server_options::ServerOptions;
use aqlite::aql::{Parameters, ResultSet};
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

/// The data of a shell.
pub enum ShellData {
    /// Files.
    Files {
        /// The documents.
        data: Box<DataSet>,
        /// The options that name them.
        options: DataOptions,
    },
    /// A server, or the database of `aqlite serve`.
    Repository {
        /// The repository.
        repository: Box<Repository>,
        /// The argument that names it.
        name: String,
        /// Its templates, which are read when they are first needed.
        templates: OnceCell<Arc<Templates>>,
    },
}

impl ShellData {
    /// Opens the data of some options, and reports problems of files.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn open(
        options: &DataOptions,
        server: &ServerOptions,
    ) -> Result<(ShellData, Outcome), Failure> {
        if let Some(repository) = Repository::open(&options.data, server)? {
            let source = ShellData::Repository {
                repository: Box::new(repository),
                name: options.data.concat(),
                templates: OnceCell::new(),
            };
            return Ok((source, Outcome::Success));
        }
        let data = Box::new(DataSet::open(options)?);
        let outcome = report_problems(&data, options);
        let options = options.clone();
        Ok((ShellData::Files { data, options }, outcome))
    }

    /// Returns the paths of the data, as they are named.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        let (files, repository) = match self {
            ShellData::Files { options, .. } => (Some(options.inputs()), None),
            ShellData::Repository { name, .. } => (None, Some(Path::new(name))),
        };
        files.into_iter().flatten().chain(repository)
    }

    /// Returns the templates.
    ///
    /// # Errors
    /// If a repository does not send them.
    pub fn templates(&self) -> Result<Arc<Templates>, Failure> {
        let (repository, templates) = match self {
            ShellData::Files { data, .. } => return Ok(Arc::clone(&data.templates)),
            ShellData::Repository {
                repository,
                templates,
                ..
            } => (repository, templates),
        };
        if let Some(known) = templates.get() {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(repository.templates()?);
        Ok(Arc::clone(templates.get_or_init(|| read)))
    }

    /// Returns a line that describes the data.
    pub fn description(&self) -> String {
        match self {
            ShellData::Files { data, .. } => format!(
                "{} documents of {} EHRs, {} templates",
                data.catalog.documents,
                data.catalog.ehrs.len(),
                data.templates.all().count()
            ),
            ShellData::Repository { name, .. } => format!("the repository {name}"),
        }
    }

    /// Answers a query; `None` if it is wrong or was refused, which was shown.
    ///
    /// # Errors
    /// If the data cannot be read, or the repository does not answer.
    pub fn answer(
        &mut self,
        text: &str,
        parameters: &Parameters,
    ) -> Result<Option<ResultSet>, Failure> {
        match self {
            ShellData::Files { data, options } => {
                let Ok(plan) = query::prepare(text, "query", parameters) else {
                    return Ok(None);
                };
                let now = query::now();
                let answer = data.reliably(options, |data| data.answer(&plan, &now))?;
                Ok(Some(answer.result))
            }
            ShellData::Repository { repository, .. } => {
                let query = RepositoryQuery {
                    text: QueryText::Aql(text),
                    parameters,
                };
                match repository.answer(&query) {
                    Ok(result) => Ok(Some(result)),
                    Err(failure @ Failure::Refused { .. }) => {
                        query::show_errors(&failure, (&query, "query"));
                        failure.report();
                        Ok(None)
                    }
                    Err(failure) => Err(failure),
                }
            }
        }
    }

    /// Writes how a query is evaluated. Errors of the query are shown.
    ///
    /// # Errors
    /// If the data cannot be read, or the repository does not answer or explain.
    pub fn explain(&self, text: &str, parameters: &Parameters) -> Result<Outcome, Failure> {
        match self {
            ShellData::Files { data, .. } => {
                if query::prepare(text, "query", parameters).is_err() {
                    return Ok(Outcome::Findings);
                }
                query::explain(text, parameters, data)?;
                Ok(Outcome::Success)
            }
            ShellData::Repository { repository, .. } => {
                let mut out = std::io::stdout().lock();
                repository.explain((text, "query"), parameters, &mut out)
            }
        }
    }
}
