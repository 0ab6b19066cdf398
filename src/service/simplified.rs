//! Compositions in the formats FLAT and STRUCTURED, read and written by the template that the
//! request or the document names.

use super::Service;
use super::call::Call;
use super::commit::check_write;
use super::content::{COMPOSITION, CheckedDocument, named_template, read_text, without_template};
use super::dialect::Dialect;
use super::document_class::Controlled;
use super::error::Failure;
use super::negotiate::{Form, Format, Return, body_format};
use super::representation::{Representation, body_of};
use super::templates::Compiled;
use super::time::iso;
use crate::diag::Finding;
use crate::document::ObjectKind;
use crate::rm::class::Attr;
use crate::rm::tree::{NodeRef, Tree};
use crate::store::repository::Repository;
use crate::template::flat::{self, FlatDialect, Shape, WriteError, Written};
use crate::template::{Template, WebTemplate};
use std::rc::Rc;

impl Representation {
    /// Returns a document in one of the simplified formats. The header Warning names data that the
    /// format cannot represent.
    pub fn simplified(
        call: &Call<'_>,
        node: NodeRef<'_>,
        shape: Shape,
        media_type: &'static str,
        template: &Template,
        web: &WebTemplate,
    ) -> Result<Representation, Failure> {
        let limit = call.config.limits.result;
        let written = flat::write_within(node, shape, template, web, flat_dialect(call)?, limit);
        let Written { text, left } = written.map_err(|problem| match problem {
            WriteError::TooLarge => Failure::result_too_large("the document in this format", limit),
            problem => Failure::new(406, format!("{problem}: request JSON or XML")),
        })?;
        let mut headers = vec![(TEMPLATE_ID[0], template.template_id.clone())];
        if !left.is_empty() {
            headers.push((
                "Warning",
                format!(
                    // 214: transformation applied (RFC 7234, section 5.5.6).
                    "214 aqlite \"the format does not carry: {}\"",
                    left.join(", ")
                ),
            ));
        }
        Ok(Representation {
            media_type,
            body: text,
            headers,
        })
    }
}

/// The header that names the template of a body, and its old spelling.
const TEMPLATE_ID: [&str; 2] = ["openehr-template-id", "openEHR-TEMPLATE_ID"];

/// Returns the requested dialect: that of the parameter, else that of the mount.
fn flat_dialect(call: &Call<'_>) -> Result<FlatDialect, Failure> {
    match call
        .request
        .query_value("dialect")
        .map(str::to_ascii_lowercase)
        .as_deref()
    {
        None | Some("") if call.dialect == Dialect::Its => Ok(call.config.flat_dialect),
        None | Some("" | "better") => Ok(FlatDialect::Better),
        Some("ehrbase") => Ok(FlatDialect::Ehrbase),
        Some(_) => Err(Failure::bad_request(
            "`dialect` is unknown: expected `better` or `ehrbase`",
        )),
    }
}

/// Checks, before anything is written, that the response to a change of a document will be
/// acceptable.
pub(crate) fn check_acceptable(call: &Call<'_>) -> Result<(), Failure> {
    call.check_acceptable()?;
    if call.prefer.returns == Return::Representation
        && call.has_forms()
        && matches!(Form::wanted(call.request)?, Form::Simplified(..))
    {
        flat_dialect(call)?;
    }
    Ok(())
}

/// Returns the rules for reading a body: with `strict=true` every segment of STRUCTURED must be a
/// list.
fn read_as(call: &Call<'_>, shape: Shape) -> Result<Shape, Failure> {
    let is_strict = call.request.query_flag("strict")?;
    Ok(match shape {
        // FLAT has no lists, so `strict` changes nothing there.
        Shape::Structured if is_strict => Shape::StrictStructured,
        other => other,
    })
}

/// Returns the template that a request names, by header or parameter.
fn stated_template<'c>(call: &Call<'c>) -> Result<Option<&'c str>, Failure> {
    let of_header = TEMPLATE_ID
        .into_iter()
        .find_map(|name| call.request.header(name))
        .map(|v| v.trim().trim_matches('"'))
        .filter(|v| !v.is_empty());
    let of_query = ["templateId", "template_id"]
        .into_iter()
        .find_map(|name| call.request.query_value(name))
        .filter(|v| !v.is_empty());
    match (of_header, of_query) {
        (Some(header), Some(query)) if header != query => Err(Failure::bad_request(
            "the request names two different templates, by the header openehr-template-id and by `templateId`",
        )),
        (header, query) => Ok(header.or(query)),
    }
}

impl<R: Repository> Service<R> {
    /// Reads the body of a request. `follows` is the template of the preceding version.
    pub(crate) async fn read_document(
        &self,
        call: &Call<'_>,
        what: &Controlled,
        follows: Option<&str>,
    ) -> Result<Tree, Failure> {
        let form = match what.kind {
            ObjectKind::Composition => Form::of_body(call.request)?,
            _ => Form::Canonical(body_format(call.request)),
        };
        let text = call.text()?;
        if text.trim().is_empty() {
            return Err(Failure::bad_request(format!(
                "the body is empty: send the {}",
                what.name
            )));
        }
        match form {
            Form::Canonical(format) => {
                let _turn = call.turn(text.len()).await?;
                read_text(text, format, what.class, what.name)
            }
            Form::Simplified(shape, _) => {
                let shape = read_as(call, shape)?;
                self.read_simplified(call, text, shape, follows).await
            }
        }
    }

    async fn read_simplified(
        &self,
        call: &Call<'_>,
        text: &str,
        shape: Shape,
        follows: Option<&str>,
    ) -> Result<Tree, Failure> {
        let id = stated_template(call)?.or(follows).ok_or_else(|| {
            Failure::bad_request("the template of the body is not named: send the header openehr-template-id or the parameter `templateId`")
        })?;
        let written = (ObjectKind::Composition, call.permission.act);
        check_write(call, call.param(0)?, written, Some(id))?;
        let compiled = self.template_or_refusal(call, id).await?;
        let web = self.web(call, &compiled).await?;
        let _turn = call.turn(text.len()).await?;
        flat::read(text, shape, &compiled.template, web, &iso(call.now))
            .map_err(|findings| Failure::unconsumed(call.dialect, &findings))
    }

    async fn template_or_refusal(
        &self,
        call: &Call<'_>,
        id: &str,
    ) -> Result<Rc<Compiled>, Failure> {
        let compiled = self.template_of(call, id).await?;
        compiled.ok_or_else(|| {
            Failure::invalid(call.dialect, COMPOSITION, &[without_template(Some(id))])
        })
    }

    /// Returns a resource in the form that the client prefers, or `None` for the canonical form.
    pub(crate) async fn shown(
        &self,
        call: &Call<'_>,
        owner: &str,
        node: NodeRef<'_>,
    ) -> Result<Option<Representation>, Failure> {
        if !call.has_forms() {
            return self.resolved(call, owner, node).await;
        }
        match Form::wanted(call.request)? {
            // The usual form, except for references that the client wants resolved.
            Form::Canonical(Format::Json) => self.resolved(call, owner, node).await,
            Form::Canonical(format) => {
                let _turn = call.turn(node.tree().size()).await?;
                let (media_type, body) = body_of(node, format)?;
                Ok(Some(Representation {
                    media_type,
                    body,
                    headers: Vec::new(),
                }))
            }
            Form::Simplified(shape, media_type) => {
                let shown = self.simplified_form(call, node, shape, media_type);
                shown.await.map(Some)
            }
        }
    }

    async fn simplified_form(
        &self,
        call: &Call<'_>,
        node: NodeRef<'_>,
        shape: Shape,
        media_type: &'static str,
    ) -> Result<Representation, Failure> {
        let id = node.text_along(&[Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE]);
        let id = id.ok_or_else(|| Failure::broken("a composition names no template"))?;
        let compiled = self.template_of(call, id).await?;
        let compiled = compiled.ok_or_else(|| {
            Failure::new(
                406,
                format!(
                    "the template `{id}` is not stored, so its documents have no simplified form"
                ),
            )
        })?;
        let web = self.web(call, &compiled).await?;
        let _turn = call.turn(node.tree().size()).await?;
        Representation::simplified(call, node, shape, media_type, &compiled.template, web)
    }

    /// Adds the keys of a simplified format to the errors of a document that was sent in it.
    pub(crate) async fn with_keys(
        &self,
        call: &Call<'_>,
        failure: Failure,
        checked: &CheckedDocument,
        findings: &[Finding],
    ) -> Failure {
        let form = call.has_forms().then(|| Form::of_body(call.request));
        let Some(Ok(Form::Simplified(shape, _))) = form else {
            return failure;
        };
        let Some(id) = named_template(&checked.tree) else {
            return failure;
        };
        let (Ok(Some(compiled)), Some(root)) =
            (self.template_of(call, id).await, checked.tree.root())
        else {
            return failure;
        };
        // The keys are an addition: without them the failure is reported by its paths.
        let Ok(web) = self.web(call, &compiled).await else {
            return failure;
        };
        let Ok(_turn) = call.turn_for_body().await else {
            return failure;
        };
        let paths = findings.iter().map(|f| f.path.as_str());
        let mut keys = flat::keys(root, web, paths);
        if let (Shape::Flat, Ok(text)) = (shape, call.text()) {
            flat::respell_keys(text, keys.values_mut());
        }
        failure.with_keys(&keys)
    }
}
