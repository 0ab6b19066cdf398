//! Lint with data: warnings that rows refute are dropped, and a result without rows is explained by
//! the rows that each part of the query removes.

use super::Service;
use super::auth::{Action, Permission, Resource, Subject};
use super::call::Call;
use super::error::Failure;
use super::run_host::RunHost;
use super::templates::Compiled;
use crate::aql::{
    self, Cell, LintWarning, Parameters, QueryOptions, StageKind, Stages, prepare_tree,
    query::Window,
};
use crate::diag::{Diagnostic, LineIndex};
use crate::store::repository::{DefinitionKind, Repository, StoreError};
use crate::template::Template;
use aqlite_rm::order;
use serde_json::{Value, json};
use std::rc::Rc;

/// The maximum bytes of the texts of all templates that lint compares a query with. With more, only
/// the rules without templates apply, because reading the templates would cost more than the query.
const LINT_TEMPLATES: usize = 5_000_000;

/// The maximum units of work of all queries that try to refute warnings. Warnings that are not
/// tried within it are dropped.
const LINT_WORK: u64 = 50_000_000;

/// The maximum microseconds of the runs that explain a result without rows.
const STAGES_TIME: i64 = 2_000_000;

/// The permission to read a template.
const READ: Permission = Permission {
    resource: Resource::Template,
    act: Action::Read,
};

/// The templates that lint compares a query with.
#[derive(Clone, Default)]
pub struct LintTemplates(Vec<Rc<Compiled>>);

impl LintTemplates {
    /// Returns the templates.
    pub(super) fn all(&self) -> Vec<&Template> {
        self.0.iter().map(|compiled| &compiled.template).collect()
    }
}

/// The rows that remain behind each part of a query.
pub(super) struct Removed {
    parts: Vec<RemovedPart>,
    /// Whether the part that removed the last rows was found.
    is_complete: bool,
}

/// A part of a query with the number of rows that it leaves.
struct RemovedPart {
    kind: &'static str,
    label: String,
    place: Option<crate::diag::Span>,
    rows: u64,
    /// The number of rows of the query without this part.
    without: Option<u64>,
}

impl Removed {
    /// Returns the form of interfaces. The last part is the one that removed the last rows.
    pub(super) fn to_json(&self, index: &LineIndex<'_>) -> Value {
        let part = |part: &RemovedPart| {
            json!({
                "kind": part.kind,
                "label": part.label,
                "from": part.place.map(|span| index.utf16(span.start)),
                "to": part.place.map(|span| index.utf16(span.end)),
                "rows": part.rows,
                "without": part.without,
            })
        };
        let parts: Value = self.parts.iter().map(part).collect();
        json!({ "parts": parts, "complete": self.is_complete })
    }
}

impl<R: Repository> Service<R> {
    /// Returns the templates for [`Service::explanation`] and [`Service::diagnosis`].
    ///
    /// # Errors
    /// A message if the repository fails.
    pub async fn templates_of_lint(&self) -> Result<LintTemplates, String> {
        let templates = self.lint_templates(None).await;
        templates.map_err(|failure| failure.into_fields().message)
    }

    /// Returns the templates that lint compares a query with: the latest version of each that the
    /// caller may read, or none if they are too large, or one of an earlier release cannot be read.
    /// Without a call they are those of all names.
    ///
    /// # Errors
    /// If the repository fails.
    pub(super) async fn lint_templates(
        &self,
        call: Option<&Call<'_>>,
    ) -> Result<LintTemplates, Failure> {
        let listed = self.repository.definitions(DefinitionKind::Template, "");
        let mut listed = listed.await.map_err(Failure::of_store)?;
        // A warning names nodes of a template, and so does its absence.
        if let Some(call) = call {
            listed.retain(|d| call.caller.has_permission(READ, Subject::Named(&d.name)));
        }
        // The list has the sizes of all versions, so that no body is read in vain.
        if listed.iter().map(|d| d.bytes).sum::<usize>() > LINT_TEMPLATES {
            return Ok(LintTemplates::default());
        }
        let mut all = Vec::new();
        for name in order::distinct(listed.iter().map(|d| d.name.as_str())) {
            match self.template(call, name).await {
                Ok(Some(found)) => all.push(found.compiled),
                // A template that was removed meanwhile.
                Ok(None) => return Ok(LintTemplates::default()),
                Err(failure) if failure.status < 500 => return Ok(LintTemplates::default()),
                Err(failure) => return Err(failure),
            }
        }
        Ok(LintTemplates(all))
    }

    /// Returns the problems of a text that is being written. Warnings that rows refute are dropped.
    ///
    /// # Errors
    /// If the repository fails.
    pub async fn diagnosis(
        &self,
        q: &str,
        host: &RunHost<'_>,
        templates: &LintTemplates,
    ) -> Result<Vec<Diagnostic>, StoreError> {
        let found = aql::diagnose_with(q, &templates.all());
        let options = QueryOptions {
            exact_archetypes: self.config.exact_archetypes,
            ..QueryOptions::default()
        };
        let unbound = Parameters::new();
        let lint = self.unrefuted(found.lint, &unbound, &options, host);
        let mut all = found.diagnostics;
        all.extend(lint.await?);
        order::sort_by_key(&mut all, |d| d.span.start);
        Ok(all)
    }

    /// Returns the warnings that no row refutes. One that cannot be tried is kept if the data do
    /// not matter, and if a parameter of its query is not bound.
    pub(super) async fn unrefuted(
        &self,
        warnings: Vec<LintWarning>,
        parameters: &Parameters,
        options: &QueryOptions<'_>,
        host: &RunHost<'_>,
    ) -> Result<Vec<Diagnostic>, StoreError> {
        let (mut left, mut kept) = (LINT_WORK, Vec::new());
        for warning in warnings {
            if warning.is_certain {
                kept.push(warning.diagnostic);
                continue;
            }
            let Ok(plan) = prepare_tree(&warning.contrary, parameters, options) else {
                kept.push(warning.diagnostic);
                continue;
            };
            let trial = self.trial(&plan, left, false, host).await?;
            left = left.saturating_sub(trial.work);
            // A query that failed or stopped at its limit does not confirm the warning either.
            if trial.result.is_ok_and(|rows| rows.is_empty()) {
                kept.push(warning.diagnostic);
            }
        }
        Ok(kept)
    }

    /// Counts the rows that the parts of a query leave, up to the part that leaves none.
    pub(super) async fn removed(
        &self,
        stages: &Stages,
        window: Option<Window>,
        parameters: &Parameters,
        options: &QueryOptions<'_>,
        host: &RunHost<'_>,
    ) -> Result<Removed, StoreError> {
        // An explanation must not take the time of the request from its other parts.
        let deadline = host
            .deadline
            .min((host.clock)().saturating_add(STAGES_TIME));
        let is_stopped = || (host.clock)() > deadline || (host.is_stopped)();
        let host = RunHost {
            is_stopped: &is_stopped,
            deadline,
            ..*host
        };
        let mut counter = Counter {
            service: self,
            parameters,
            options,
            host: &host,
            left: self.budget().work,
        };
        let (mut parts, mut is_complete) = (Vec::new(), false);
        let all = stages.all();
        for stage in all {
            // Above the budget the list of parts ends without the one that removed the last rows.
            let Some(rows) = counter.count(&stages.counting(stage)).await? else {
                break;
            };
            parts.push(RemovedPart {
                kind: stage.kind.name(),
                label: stage.label.clone(),
                place: Some(stage.span),
                rows,
                without: None,
            });
            if rows == 0 {
                is_complete = true;
                break;
            }
        }
        // With rows behind all conditions, OFFSET skipped them.
        if let (false, Some(Window::First { offset, .. })) = (is_complete, window)
            && parts.len() == all.len()
            && offset > 0
        {
            is_complete = true;
            parts.push(RemovedPart {
                kind: "window",
                label: format!("OFFSET {offset}"),
                place: None,
                rows: 0,
                without: None,
            });
        }
        // Any of the conditions may be the one to loosen.
        if all.get(parts.len().saturating_sub(1)).map(|s| s.kind) == Some(StageKind::Condition) {
            for (stage, part) in all.iter().zip(&mut parts) {
                if let Some(query) = stages.counting_without(stage) {
                    part.without = counter.count(&query).await?;
                }
            }
        }
        Ok(Removed { parts, is_complete })
    }
}

/// Counts the rows of queries within one budget.
struct Counter<'c, R> {
    service: &'c Service<R>,
    parameters: &'c Parameters,
    options: &'c QueryOptions<'c>,
    host: &'c RunHost<'c>,
    left: u64,
}

impl<R: Repository> Counter<'_, R> {
    /// Returns the number of rows of a query that counts; `None` above the budget.
    async fn count(&mut self, query: &aql::ast::Query) -> Result<Option<u64>, StoreError> {
        // A short run never looks at the clock.
        if (self.host.is_stopped)() {
            return Ok(None);
        }
        let Ok(plan) = prepare_tree(query, self.parameters, self.options) else {
            return Ok(None);
        };
        let trial = self
            .service
            .trial(&plan, self.left, false, self.host)
            .await?;
        self.left = self.left.saturating_sub(trial.work);
        let Ok(result) = trial.result else {
            return Ok(None);
        };
        let cell = result.rows().next().and_then(|row| row.get(0));
        Ok(match cell {
            Some(cell @ Cell::Number(_)) => {
                let mut digits = String::new();
                cell.write_json(&mut digits);
                digits.parse().ok()
            }
            _ => None,
        })
    }
}
