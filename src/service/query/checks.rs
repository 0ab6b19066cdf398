//! Checks of a checked query: its errors, its use of the clock, and its version uids.

use super::super::Service;
use super::super::call::Call;
use super::super::error::Failure;
use super::super::ids::{VersionUid, is_uuid};
use super::super::parameters::QueryRequest;
use super::internal::{EhrSelection, RowVisitor};
use crate::aql::query::{ColumnValue, CompareOp, Condition, Expr, FunctionGroup, Query};
use crate::aql::{self, Parameter, Parameters, RowValue, ast};
use crate::diag::{Diagnostic, Span};
use crate::rm::class::Cls;
use crate::store::repository::Repository;
use std::borrow::Cow;
use std::collections::HashSet;

/// Returns 400 if the query is wrong or a terminology refuses it; otherwise the status of a feature
/// that this host lacks (501) or of a service that fails (502, 504). A broken invariant is 500,
/// whatever else the diagnostics contain.
pub(super) fn status_of(diagnostics: &[crate::diag::Diagnostic]) -> u16 {
    if diagnostics.iter().any(|d| d.code == aql::BROKEN_INVARIANT) {
        return 500;
    }
    let of_code = |code: &str| match code {
        "AQL0501" | "AQL0504" => 501,
        "AQL0505" => 502,
        "AQL0506" => 504,
        _ => 400,
    };
    diagnostics
        .iter()
        .map(|d| of_code(d.code))
        // An error of the client comes first: with it, another run would fail too.
        .min()
        .unwrap_or(400)
}

/// Returns whether the result depends on the time of the query.
pub(super) fn reads_clock(query: &Query) -> bool {
    let selected = query
        .select
        .iter()
        .any(|c| matches!(&c.value, ColumnValue::Expr(expr) if expr_reads_clock(expr)));
    selected || query.condition.as_ref().is_some_and(condition_reads_clock)
}

fn condition_reads_clock(condition: &Condition) -> bool {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.iter().any(condition_reads_clock),
        Condition::Not(inner) => condition_reads_clock(inner),
        Condition::Compare(left, _, right) => expr_reads_clock(left) || expr_reads_clock(right),
        Condition::Like(expr, _) | Condition::Matches(expr, _) => expr_reads_clock(expr),
        Condition::Exists(_) | Condition::Constant(_) => false,
    }
}

fn expr_reads_clock(expr: &Expr) -> bool {
    match expr {
        Expr::Call(function, arguments) => {
            function.entry().group == FunctionGroup::Clock || arguments.iter().any(expr_reads_clock)
        }
        Expr::Path(_) | Expr::Literal(_) => false,
    }
}

/// A text that a condition compares with COMPOSITION.uid.
struct ComparedUid {
    text: String,
    /// Whether the condition demands equality, and not inequality.
    is_equal: bool,
    span: Span,
}

/// The uids of COMPOSITIONs in any version that are among some.
const STORED_UIDS: &str = "SELECT c/uid/value FROM EHR e CONTAINS VERSION v[ALL_VERSIONS] CONTAINS COMPOSITION c WHERE c/uid/value matches {$uids}";

impl<R: Repository> Service<R> {
    /// Rejects a condition `c/uid/value = …` or `c/uid/value != …` of a COMPOSITION with a text
    /// that is no uid, and equality with the uid of another system that no stored version has. Of
    /// other systems, the repository has imported versions only.
    ///
    /// A query with uids of other systems costs one more scan, of the EHRs that it reads.
    ///
    /// # Errors
    /// `status` with the position of the text; an error of the scan.
    pub(super) async fn check_uids(
        &self,
        call: &Call<'_>,
        (q, ast): (&str, &ast::Query),
        request: &QueryRequest,
        status: u16,
    ) -> Result<(), Failure> {
        let refused = |problem: Diagnostic| Failure::in_text(status, "query", q, &[problem]);
        let system_id = self.config.system_id.as_str();
        let mut foreign = Vec::new();
        for uid in compared_uids(ast, &request.parameters) {
            let system = other_system(&uid, system_id).map_err(refused)?;
            foreign.extend(system.map(|system| (uid, system)));
        }
        if foreign.is_empty() {
            return Ok(());
        }
        let texts = foreign.iter().map(|(uid, _)| uid.text.clone());
        let stored = self.stored_uids(call, request, texts).await?;
        let absent = foreign.iter().find(|(uid, _)| !stored.contains(&uid.text));
        absent.map_or(Ok(()), |(uid, system)| {
            let message = format!("the system id `{system}` does not match this server ({system_id})");
            let help = "no stored version has this uid: compare with the uid of a version that was imported, or of this server";
            Err(refused(
                Diagnostic::error(UID, uid.span, message).with_help(help),
            ))
        })
    }

    /// Returns the uids among `texts` that stored versions of COMPOSITIONs have, in the EHRs that
    /// the request may read.
    async fn stored_uids(
        &self,
        call: &Call<'_>,
        request: &QueryRequest,
        texts: impl Iterator<Item = String>,
    ) -> Result<HashSet<String>, Failure> {
        let texts = texts.map(Parameter::Text).collect();
        let parameters = Parameters::from([(String::from("uids"), Parameter::List(texts))]);
        let whose = request.ehr.as_ref().map_or(EhrSelection::All, |ehr| {
            EhrSelection::Some(std::slice::from_ref(ehr))
        });
        let mut found = StoredUids::default();
        self.each_row(call, &[STORED_UIDS], &parameters, whose, &mut found)
            .await
            .map_err(|(_, failure)| failure)?;
        Ok(found.0)
    }
}

/// The code of a comparison with a text that cannot be the uid of a COMPOSITION.
const UID: &str = "AQL0407";

/// The texts of the only column of a query.
#[derive(Default)]
struct StoredUids(HashSet<String>);

impl RowVisitor for StoredUids {
    fn row(&mut self, _: usize, _: u64, row: &[RowValue<'_>]) {
        let text = row.first().and_then(|value| value.text());
        self.0.extend(text.map(Cow::into_owned));
    }

    fn restart(&mut self) {
        self.0.clear();
    }
}

/// Returns the texts that the condition of a query compares with COMPOSITION.uid for equality or
/// inequality, in the order of the query.
fn compared_uids(ast: &ast::Query, parameters: &Parameters) -> Vec<ComparedUid> {
    let mut compositions = Vec::new();
    add_compositions(&ast.from, &mut compositions);
    let mut found = Vec::new();
    let mut pending: Vec<&ast::Condition> = ast.condition.iter().collect();
    while let Some(condition) = pending.pop() {
        match condition {
            // The stack is last in, first out.
            ast::Condition::And(all) | ast::Condition::Or(all) => pending.extend(all.iter().rev()),
            ast::Condition::Not(inner) => pending.push(inner),
            ast::Condition::Compare(compare) => {
                let is_uid = matches!(&compare.left, ast::Expr::Path(path) if is_uid_of(path, &compositions));
                found.extend(is_uid.then(|| compared_uid(compare, parameters)).flatten());
            }
            _ => {}
        }
    }
    found
}

/// Adds the variables of FROM that are COMPOSITIONs.
fn add_compositions<'q>(from: &'q ast::Containment, out: &mut Vec<&'q str>) {
    match from {
        ast::Containment::And(all) | ast::Containment::Or(all) => {
            all.iter().for_each(|inner| add_compositions(inner, out));
        }
        ast::Containment::Class(class) => {
            if Cls::parse_any_case(&class.class.text) == Some(Cls::COMPOSITION) {
                out.extend(class.variable.as_ref().map(|name| name.text.as_str()));
            }
            if let Some(contains) = &class.contains {
                add_compositions(&contains.inner, out);
            }
        }
    }
}

/// Returns whether a path is `c/uid/value` of one of these variables.
fn is_uid_of(path: &ast::Path, compositions: &[&str]) -> bool {
    let steps = path.steps.iter().map(|step| step.attribute.text.as_str());
    compositions.contains(&path.variable.text.as_str()) && steps.eq(["uid", "value"])
}

/// Returns the text on the right side of an equality or inequality.
fn compared_uid(compare: &ast::Compare, parameters: &Parameters) -> Option<ComparedUid> {
    let is_equal = match compare.op {
        CompareOp::Eq => true,
        CompareOp::Ne => false,
        _ => return None,
    };
    let (text, span) = match &compare.right {
        ast::Expr::Literal(literal) => match &literal.value {
            // No uid has a character that is escaped, so the text between the quotes is the value.
            ast::LiteralValue::Text(quoted) => (
                quoted.get(1..quoted.len().saturating_sub(1))?.to_owned(),
                literal.at.0,
            ),
            _ => return None,
        },
        ast::Expr::Parameter(name) => match parameters.get(&name.text)? {
            Parameter::Text(text) | Parameter::Untyped(text) => (text.clone(), name.span()),
            _ => return None,
        },
        _ => return None,
    };
    Some(ComparedUid {
        text,
        is_equal,
        span,
    })
}

/// Returns the system of a uid that must be equal to that of a version of another system; `None` if
/// a version of this system may have it, or the condition is an inequality.
///
/// # Errors
/// For a text that is no uid.
fn other_system(uid: &ComparedUid, system_id: &str) -> Result<Option<String>, Diagnostic> {
    let text = uid.text.as_str();
    // The short forms name versions of any system.
    if is_uuid(text) || without_system(text) {
        return Ok(None);
    }
    match VersionUid::parse(text) {
        Some(named) => Ok(Some(named.system_id).filter(|id| uid.is_equal && id != system_id)),
        None => {
            let shown: String = text.chars().take(80).collect();
            let message = format!("`{shown}` is not a valid OBJECT_VERSION_ID/UID");
            let help = "write `<uuid>::<system id>::<number>`, or the uuid of the object alone";
            Err(Diagnostic::error(UID, uid.span, message).with_help(help))
        }
    }
}

/// Returns true for `uuid::::2`.
fn without_system(text: &str) -> bool {
    text.split_once("::::")
        .is_some_and(|(object, number)| is_uuid(object) && number.parse::<u32>().is_ok())
}
