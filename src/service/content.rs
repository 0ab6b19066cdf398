//! Bodies that are RM documents: read, checked against the model and their template, written.

use super::Service;
use super::call::Call;
use super::committal::{ABANDONED, Audit, INCOMPLETE};
use super::error::{Failure, root_of, shortened};
use super::negotiate::{Format, body_format};
use crate::diag::{Finding, Severity};
use crate::document::Texts;
use crate::rm::class::{Attr, Cls};
use crate::rm::json;
use crate::rm::tree::{NodeRef, Tree};
use crate::rm::validate::{is_unreadable, validate};
use crate::rm::xml;
use crate::store::repository::Repository;
use crate::template;
use std::rc::Rc;

/// The maximum nesting of a document in canonical JSON. Readers accept 128 levels
/// (`aqlite_rm::build`). The other eight are for the contribution or the line of an export around
/// the document.
const MAX_NESTING: usize = 120;

/// A document that passed its checks.
pub(crate) struct CheckedDocument {
    /// The document.
    pub tree: Tree,
    /// archetype_details.template_id.value, if that template is stored. The document was checked
    /// against it.
    pub template_id: Option<String>,
    /// The texts of its template, which may become constant texts of a layout.
    pub known: Rc<Texts>,
}

/// Reads the body of a request as an object of a class. `what` is its name in errors.
pub(crate) fn read_body(call: &Call<'_>, class: Cls, what: &str) -> Result<Tree, Failure> {
    let format = body_format(call.request);
    let text = call.text()?;
    if text.trim().is_empty() {
        return Err(Failure::bad_request(format!(
            "the body is empty: send the {what}"
        )));
    }
    read_text(text, format, class, what)
}

/// Reads a text as an object of a class. `what` is its name in errors.
pub(crate) fn read_text(
    text: &str,
    format: Format,
    class: Cls,
    what: &str,
) -> Result<Tree, Failure> {
    let read = match format {
        Format::Json => json::read(text, class),
        Format::Xml => xml::read(text, class),
    };
    read.map_err(|findings| Failure::unreadable(what, &findings))
}

/// Reads an element of a longer body, whose namespaces were checked with it, as an object of a
/// class.
pub(crate) fn read_part(
    text: &str,
    format: Format,
    class: Cls,
    what: &str,
) -> Result<Tree, Failure> {
    match format {
        Format::Json => read_text(text, format, class, what),
        Format::Xml => {
            xml::read_element(text, class).map_err(|findings| Failure::unreadable(what, &findings))
        }
    }
}

impl<R: Repository> Service<R> {
    /// Checks a COMPOSITION against the model and against its template, which must be stored.
    /// Reports all errors together.
    pub(crate) async fn check_composition(
        &self,
        call: &Call<'_>,
        tree: Tree,
        level: ValidationLevel,
    ) -> Result<CheckedDocument, Failure> {
        let (checked, findings) = self.composition_findings(call, tree, level).await?;
        match refuse_errors(call, COMPOSITION, &findings) {
            Ok(()) => Ok(checked),
            Err(failure) => Err(self.with_keys(call, failure, &checked, &findings).await),
        }
    }

    /// Checks an EHR_STATUS, a FOLDER or a party against the model, and against its template if it
    /// names one that is stored.
    ///
    /// # Errors
    /// 400 with all findings. For a well-formed party that breaks a rule, the status of the mount:
    /// only the operations on parties (and compositions) list 422 in the OpenAPI document of
    /// ITS-REST.
    pub(crate) async fn check_plain(
        &self,
        call: &Call<'_>,
        tree: Tree,
        what: &str,
        level: ValidationLevel,
    ) -> Result<CheckedDocument, Failure> {
        let (checked, findings) = self.findings_of(call, tree, what, level).await?;
        let class = root_of(&checked.tree)?.class();
        refuse_errors(call, what, &findings).map_err(|f| with_status_of(class, f))?;
        Ok(checked)
    }

    /// Like [`Service::check_composition`], but returns the findings instead of rejecting the
    /// content.
    pub(crate) async fn composition_findings(
        &self,
        call: &Call<'_>,
        tree: Tree,
        level: ValidationLevel,
    ) -> Result<(CheckedDocument, Vec<Finding>), Failure> {
        self.findings_of(call, tree, COMPOSITION, level).await
    }

    /// Returns the findings of the model in a document, and of its template. The template of a
    /// COMPOSITION must be stored. Any other document names none if the named one is not stored.
    async fn findings_of(
        &self,
        call: &Call<'_>,
        tree: Tree,
        what: &str,
        level: ValidationLevel,
    ) -> Result<(CheckedDocument, Vec<Finding>), Failure> {
        check_nesting(&tree, what)?;
        let is_composition = root_of(&tree)?.class() == Cls::COMPOSITION;
        // A trusted loader has validated its compositions already.
        let validates = !(is_composition && self.config.trusts_compositions);
        let mut findings = Vec::new();
        // The turn ends with this block, before the template is awaited.
        if validates {
            let _turn = call.turn(tree.size()).await?;
            findings = model_findings(&tree)?;
        }
        let named = named_template(&tree).map(str::to_owned);
        let compiled = match &named {
            Some(id) => self.template_of(call, id).await?,
            None => None,
        };
        let Some(compiled) = compiled else {
            if is_composition {
                // Without a template nothing else can be checked, so this finding comes first.
                findings.insert(0, without_template(named.as_deref()));
                return Err(Failure::invalid(call.dialect, what, &findings));
            }
            let checked = CheckedDocument {
                tree,
                template_id: None,
                known: Rc::default(),
            };
            return Ok((checked, findings));
        };
        if validates {
            let _turn = call.turn(tree.size()).await?;
            add_template_findings(&tree, &compiled.template, level, &mut findings)?;
        }
        Ok((
            CheckedDocument {
                tree,
                template_id: named,
                known: Rc::clone(&compiled.known),
            },
            findings,
        ))
    }
}

/// Adds the findings of a template in a document.
fn add_template_findings(
    tree: &Tree,
    template: &template::Template,
    level: ValidationLevel,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let root = root_of(tree)?;
    findings.extend(level.findings(root, template));
    template::label_findings(root, template, findings);
    Ok(())
}

/// The rules of a template that a document must meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValidationLevel {
    /// All rules.
    Complete,
    /// Structure, classes and values, but not the presence of required items: the version is
    /// incomplete, or was when it was abandoned.
    Draft,
}

impl ValidationLevel {
    /// Returns the level for a version with the lifecycle state of this audit.
    pub fn from_audit(audit: &Audit) -> ValidationLevel {
        ValidationLevel::from_lifecycle(audit.lifecycle.code)
    }

    /// Returns the level for a version with the lifecycle state of this code. Only an incomplete
    /// version becomes abandoned.
    ///
    /// Source: Common IM, Version Lifecycle.
    pub fn from_lifecycle(code: &str) -> ValidationLevel {
        match [INCOMPLETE.code, ABANDONED.code].contains(&code) {
            true => ValidationLevel::Draft,
            false => ValidationLevel::Complete,
        }
    }

    /// Returns the findings of a template in a document.
    pub fn findings(self, root: NodeRef<'_>, template: &template::Template) -> Vec<Finding> {
        match self {
            ValidationLevel::Complete => template::validate(root, template),
            ValidationLevel::Draft => template::validate_draft(root, template),
        }
    }
}

/// Returns archetype_details.template_id.value of a document.
pub(crate) fn named_template(tree: &Tree) -> Option<&str> {
    tree.root()?
        .text_along(&[Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE])
}

/// Returns the finding about a composition whose template is unknown, or that names none.
pub(crate) fn without_template(id: Option<&str>) -> Finding {
    match id {
        Some(id) => Finding::error(
            "SVC0202",
            "/archetype_details/template_id/value",
            "the template is unknown: upload it first",
        )
        .found(shortened(id)),
        None => {
            let finding = Finding::error(
                "SVC0201",
                "/archetype_details/template_id",
                "a composition must name its template",
            );
            finding.expected("the id of an uploaded template")
        }
    }
}

/// The name of a composition in errors.
pub(crate) const COMPOSITION: &str = "composition";

/// Checks the nesting of a document, however it was sent: an XML element with many children is one
/// level of XML, and two of JSON.
///
/// # Errors
/// 400 for a document that an export could not carry.
fn check_nesting(tree: &Tree, what: &str) -> Result<(), Failure> {
    let depth = root_of(tree)?.depth();
    if depth > MAX_NESTING {
        return Err(Failure::bad_request(format!(
            "the {what} is nested too deep: {depth} levels of objects and lists in JSON, of which {MAX_NESTING} are permitted"
        )));
    }
    Ok(())
}

/// Returns the error about an invalid document of a class with the status of its operations: see
/// [`Service::check_plain`].
pub(crate) fn with_status_of(class: Cls, failure: Failure) -> Failure {
    match class == Cls::COMPOSITION || class.is_a(Cls::PARTY) {
        true => failure,
        false => failure.into_bad_request(),
    }
}

/// Returns the findings of the Reference Model in a document.
pub(crate) fn model_findings(tree: &Tree) -> Result<Vec<Finding>, Failure> {
    root_of(tree).map(validate)
}

/// Rejects a document with errors: an unreadable date as malformed, a broken rule as invalid.
/// Warnings alone do not reject it.
pub(crate) fn refuse_errors(
    call: &Call<'_>,
    what: &str,
    findings: &[Finding],
) -> Result<(), Failure> {
    let errors = || findings.iter().filter(|f| f.severity == Severity::Error);
    match errors().next() {
        None => Ok(()),
        // An unreadable document is 400, a readable one that breaks a rule is another status.
        Some(_) if errors().any(is_unreadable) => Err(Failure::unreadable(what, findings)),
        Some(_) => Err(Failure::invalid(call.dialect, what, findings)),
    }
}

/// Returns the error for malformed JSON.
pub(crate) fn malformed(what: &str, text: &str, problem: json::Malformed) -> Failure {
    Failure::bad_request(format!(
        "the {what} is not JSON: {}",
        problem.describe(text)
    ))
}
