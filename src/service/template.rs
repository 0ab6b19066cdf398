//! Operational templates: upload, list, download of the bytes as sent, example documents.

use super::Service;
use super::admission::{LARGE, Turn};
use super::call::{Call, validated};
use super::dialect::Dialect;
use super::error::{Failure, root_of, shortened};
use super::http::Response;
use super::ids::{check_addressable, is_version};
use super::negotiate::{Form, Format, Return, choose};
use super::representation::Representation;
use super::representation::body_of;
use super::time::iso;
use super::validators::{definition_etag, definition_response, listed_text, summary_of};
use crate::diag::Diagnostic;
use crate::rm::tree::{NodeRef, Tree};
use crate::store::repository::{Definition, DefinitionKind, Repository};
use crate::template::limits::{MAX_WEB_BYTES, example_excess, web_excess};
use crate::template::{ExampleKind, Template, TemplateElements, WebTemplate, example};
use serde_json::{Value, json};

/// The path segment that selects every EHR or definition. No template may have it as its id.
pub(super) const ALL: &str = "all";

/// The media type of web templates.
pub(super) const WEB_TEMPLATE: &str = "application/openehr.wt+json";
const KIND: DefinitionKind = DefinitionKind::Template;
/// Operational templates 1.4.
const OPT14: &str = "opt14";
/// Operational templates of ADL 2.
const OPT2: &str = "opt2";
/// Path segments that no template may have as its id: the formats, and the one that selects every
/// template.
const RESERVED: [&str; 3] = ["adl1.4", "adl2", ALL];

/// Media type and text of a body.
type Content = (&'static str, String);

/// Returns the response to an upload. `content` is what [`uploaded_content`] returned.
fn uploaded(call: &Call<'_>, definition: &Definition, content: Option<Content>) -> Response {
    let (name, version) = (definition.name.as_str(), definition.version.as_str());
    let path = match call.dialect {
        Dialect::V1 => call.address(&["definition", "template", name, version]),
        Dialect::Its if definition.format == OPT2 => {
            call.address(&["definition", "template", "adl2", name, version])
        }
        Dialect::Its => call.address(&["definition", "template", "adl1.4", name]),
    };
    let etag = definition_etag(definition);
    let response = validated(Response::new(201), &etag, &definition.created);
    let response = response.with_header("Location", path);
    let response = match content {
        Some((media_type, body)) => response.with_body(media_type, body),
        None => response,
    };
    call.preference_applied(response)
}

/// Returns the content that the client prefers of the response to an upload. It is made before the
/// template is stored, because no error may follow the change.
///
/// # Errors
/// 406 if the client does not accept the content.
async fn uploaded_content(
    call: &Call<'_>,
    template: &Template,
    limit: usize,
) -> Result<Option<Content>, Failure> {
    match call.prefer.returns {
        Return::Minimal => return Ok(None),
        Return::Identifier => {
            call.check_json_acceptable()?;
            let body = json!({ "uid": template.template_id }).to_string();
            return Ok(Some(("application/json", body)));
        }
        Return::Representation => {}
    }
    let text = call.text()?;
    let sent = media_type(text);
    let wanted = choose(call.request, &offered(call.dialect, sent))?;
    if wanted == sent {
        return Ok(Some((sent, text_as_sent(call))));
    }
    let turn = call.turn(LARGE).await?;
    let web = WebTemplate::of(template);
    drop(turn);
    let _turn = call.turn(LARGE).await?;
    Ok(Some((wanted, web_text(&web, template, limit)?)))
}

/// Returns the text of an upload as it is stored: a byte order mark is part of it.
fn text_as_sent(call: &Call<'_>) -> String {
    String::from_utf8_lossy(&call.request.body).into_owned()
}

/// Returns a web template as JSON within the limits of a result and of a web template.
fn web_text(web: &WebTemplate, template: &Template, limit: usize) -> Result<String, Failure> {
    web.to_json_within(template, limit.min(MAX_WEB_BYTES))
        .ok_or_else(|| Failure::result_too_large("the web template", limit.min(MAX_WEB_BYTES)))
}

impl<R: Repository> Service<R> {
    /// POST /definition/template?type=opt14&version=…, POST /definition/template/{adl1.4|adl2}
    pub(super) async fn template_upload(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let format =
            of_path(call).map_or_else(|| format_of(call.request.query_value("type")), Ok)?;
        let requested = requested_version(call)?;
        call.text()?;
        let sent = String::from_utf8_lossy(&call.request.body);
        let (template, definition) = self
            .readable_template(call, format, requested, &sent)
            .await?;
        // The permission depends on the id, which is known only after the text is read.
        call.check_named_permission(&template.template_id)?;
        let content = uploaded_content(call, &template, self.config.limits.result).await?;
        let version = requested.map(|_| definition.version.as_str());
        self.define(call, KIND, &definition, version).await?;
        Ok(uploaded(call, &definition, content))
    }

    /// Reads the template of an upload or an import, within all limits, and makes its definition.
    /// `sent` is the text as it is stored: a byte order mark is part of it.
    async fn readable_template(
        &self,
        call: &Call<'_>,
        format: &'static str,
        requested: Option<&str>,
        sent: &str,
    ) -> Result<(Template, Definition), Failure> {
        if sent.len() > self.config.limits.template {
            return Err(Failure::too_large("template", self.config.limits.template));
        }
        // The limit above is checked first, so that an excessive body never waits for room.
        call.room(sent.len()).await?;
        let text = sent.strip_prefix('\u{feff}').unwrap_or(sent);
        let refused = |problems: &[Diagnostic]| Failure::in_text(400, "template", text, problems);
        let template = read_in_turns(Some(call), format, text, refused).await?;
        if !template.excesses().is_empty() {
            return Err(refused(template.excesses()));
        }
        // Texts made from a template are limited at upload, so that no later request fails on them.
        if let Some(excess) = derived_excess(call, &template).await? {
            return Err(refused(&[excess]));
        }
        check_id(&template.template_id)?;
        let definition = Definition {
            version: template.version_or(requested),
            name: template.template_id.clone(),
            format: format.to_owned(),
            created: iso(call.now),
            storing_id: String::new(),
            summary: json!({ "concept": listed_text(&template.concept), "archetype_id": listed_text(&template.archetype_id), "opaque": template.is_opaque }).to_string(),
            bytes: 0,
            body: sent.to_owned(),
        };
        Ok((template, definition))
    }

    /// Returns the definition that an upload would make of a template of an import.
    pub(super) async fn imported_template(
        &self,
        call: &Call<'_>,
        record: &Definition,
    ) -> Result<Definition, Failure> {
        let format = format_of(Some(&record.format))?;
        let (_, definition) = self
            .readable_template(call, format, Some(&record.version), &record.body)
            .await?;
        Ok(definition)
    }

    /// GET /definition/template, GET /definition/template/{adl1.4|adl2}
    pub(super) async fn template_list(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let found = self.all_definitions(KIND).await?;
        list(call, &found)
    }

    /// GET /definition/template/{id}: its versions, or the latest one if XML is requested.
    pub(super) async fn template_versions(&self, call: &Call<'_>) -> Result<Response, Failure> {
        match choose(
            call.request,
            &[
                "application/json",
                "application/xml",
                WEB_TEMPLATE,
                "text/plain",
            ],
        )? {
            "application/xml" | "text/plain" => return self.template_get(call).await,
            WEB_TEMPLATE => return self.template_web(call).await,
            _ => {}
        }
        list(call, &self.versions_of(KIND, call.param(0)?).await?)
    }

    /// GET /definition/template/{id}/{version}, GET
    /// /definition/template/{adl1.4|adl2}/{id}[/{version}]
    pub(super) async fn template_get(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let found = self.chosen(call).await?;
        let sent = media_type(&found.body);
        if choose(call.request, &offered(call.dialect, sent))? != sent {
            return self.template_web(call).await;
        }
        let (etag, body) = (definition_etag(&found), found.body.clone());
        Ok(definition_response(call.request, &found, &etag, sent, body))
    }
}

impl<R: Repository> Service<R> {
    /// GET /definition/template/{id}/{version}/example, GET
    /// /definition/template/{adl1.4|adl2}/{id}/example. Both accept ?kind=full|minimal or
    /// ?detail_level=required|medium|complete (default full), and ?language=… (default the language
    /// of the template, also if it lacks the requested one).
    pub(super) async fn template_example(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let form = Form::wanted(call.request)?;
        let kind = example_kind(call)?;
        check_example_type(call)?;
        let found = self.chosen(call).await?;
        let compiled = self.compiled_template(Some(call), &found).await?;
        // The text is no longer needed, and an example may be large.
        drop(found);
        let template = &compiled.template;
        let tree = example_of(call, template, kind).await?;
        let root = root_of(&tree)?;
        match form {
            Form::Canonical(format) => self.canonical_example(call, root, format).await,
            Form::Simplified(shape, media_type) => {
                let web = self.web(call, &compiled).await?;
                let _turn = call.turn(LARGE).await?;
                let shown =
                    Representation::simplified(call, root, shape, media_type, template, web)?;
                Ok(Response::new(200).with_body(shown.media_type, shown.body))
            }
        }
    }

    async fn canonical_example(
        &self,
        call: &Call<'_>,
        root: NodeRef<'_>,
        format: Format,
    ) -> Result<Response, Failure> {
        let limit = self.config.limits.result;
        let _turn = call.turn(LARGE).await?;
        let (media_type, body) = body_of(root, format)?;
        if body.len() > limit {
            return Err(Failure::result_too_large("the example", limit));
        }
        Ok(Response::new(200).with_body(media_type, body))
    }

    /// GET /definition/template/{id}[/{version}]/webtemplate, GET
    /// /definition/template/adl1.4/{id}/webtemplate, and requests for a template with the media
    /// type of web templates.
    pub(super) async fn template_web(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let wanted = choose(call.request, &[WEB_TEMPLATE, "application/json"])?;
        let found = self.chosen(call).await?;
        let etag = format!("{}/web", definition_etag(&found));
        let compiled = self.compiled_template(Some(call), &found).await?;
        let web = self.web(call, &compiled).await?;
        let turn = call.turn(LARGE).await?;
        let body = web_text(web, &compiled.template, self.config.limits.result)?;
        drop(turn);
        Ok(definition_response(
            call.request,
            &found,
            &etag,
            wanted,
            body,
        ))
    }

    /// Returns the template that the path selects.
    async fn chosen(&self, call: &Call<'_>) -> Result<Definition, Failure> {
        let mut stored = self.versions_of(KIND, call.param(0)?).await?;
        if let Some(wanted) = wanted(call) {
            let is_wanted = |d: &Definition| wanted.eq_ignore_ascii_case(&d.format);
            if !stored.is_empty() && !stored.iter().any(is_wanted) {
                return Err(Failure::not_found("there is no such template of this type"));
            }
            stored.retain(is_wanted);
        }
        let found = self
            .select_among(KIND, Some(call), &stored, call.optional_param(1))
            .await?;
        found.ok_or_else(|| Failure::not_found("there is no such template"))
    }
}

/// Returns the forms of a template, the form as sent first. In ITS-REST its JSON form is the web
/// template.
fn offered(dialect: Dialect, sent: &'static str) -> Vec<&'static str> {
    match dialect {
        Dialect::V1 => vec![sent, WEB_TEMPLATE],
        Dialect::Its => vec![sent, WEB_TEMPLATE, "application/json"],
    }
}

/// Returns the media type of the text of a template: ADL or XML.
fn media_type(text: &str) -> &'static str {
    let is_xml = text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('<');
    if is_xml {
        "application/xml"
    } else {
        "text/plain"
    }
}

/// Reads a stored template. Without a call it does not wait for turns.
pub(super) async fn read_stored_in_turns(
    call: Option<&Call<'_>>,
    found: &Definition,
) -> Result<Template, Failure> {
    let text = found.body.strip_prefix('\u{feff}').unwrap_or(&found.body);
    read_in_turns(call, &found.format, text, |problems| {
        Failure::stored("template", &found.name, text, problems)
    })
    .await
}

/// Reads a template in two steps, each in its own turn if the text is long. `refused` makes the
/// error for a text with errors.
async fn read_in_turns(
    call: Option<&Call<'_>>,
    format: &str,
    text: &str,
    refused: impl Fn(&[Diagnostic]) -> Failure,
) -> Result<Template, Failure> {
    let turn = turn_for(call, text.len()).await?;
    let elements = match format {
        OPT2 => TemplateElements::of_opt2(text),
        _ => TemplateElements::of_opt14(text),
    };
    let elements = elements.map_err(|problems| refused(&problems))?;
    // Two turns instead of one, so that other requests are answered between the steps.
    drop(turn);
    let _turn = turn_for(call, text.len()).await?;
    elements.template().map_err(|problems| refused(&problems))
}

async fn turn_for(call: Option<&Call<'_>>, bytes: usize) -> Result<Turn, Failure> {
    match call {
        Some(call) => call.turn(bytes).await,
        None => Ok(Turn::default()),
    }
}

/// Returns the reason to reject an upload because of the size of its derived data.
async fn derived_excess(
    call: &Call<'_>,
    template: &Template,
) -> Result<Option<Diagnostic>, Failure> {
    let turn = call.turn(LARGE).await?;
    let web = WebTemplate::of(template);
    drop(turn);
    let turn = call.turn(LARGE).await?;
    let excess = web_excess(template, &web);
    drop(turn);
    if excess.is_some() {
        return Ok(excess);
    }
    let _turn = call.turn(LARGE).await?;
    Ok(example_excess(template, &iso(call.now)))
}

/// Returns the error for the web template of a template that was stored before the limits existed.
pub(super) fn web_too_large() -> Failure {
    let help = "the template was stored by an earlier release: store it again within the limits of an upload";
    Failure::new(422, format!("the web template would be too large; {help}"))
}

/// Returns the version that an upload requests for its template.
fn requested_version<'c>(call: &Call<'c>) -> Result<Option<&'c str>, Failure> {
    let requested = call
        .request
        .query_value("version")
        .filter(|v| !v.is_empty());
    match requested.filter(|v| !is_version(v)) {
        Some(version) => Err(Failure::bad_request(format!(
            "`version` is `{version}`, expected three numbers such as `1.0.0`"
        ))),
        None => Ok(requested),
    }
}

/// Checks that paths can name a template by its id.
fn check_id(id: &str) -> Result<(), Failure> {
    check_addressable("template", id)?;
    if RESERVED.iter().any(|r| id.eq_ignore_ascii_case(r)) {
        return Err(Failure::bad_request(format!(
            "`{id}` cannot be the id of a template: it has a meaning of its own in paths"
        )));
    }
    Ok(())
}

/// Makes an example in the requested language.
async fn example_of(
    call: &Call<'_>,
    template: &Template,
    kind: ExampleKind,
) -> Result<Tree, Failure> {
    let _turn = call.turn(LARGE).await?;
    let language = call.request.query_value("language");
    let made = example(template, kind, language, &iso(call.now));
    made.map_err(|findings| Failure::invalid(call.dialect, "template", &findings))
}

/// Returns the requested detail of an example. `kind` precedes `detail_level`.
fn example_kind(call: &Call<'_>) -> Result<ExampleKind, Failure> {
    match ["kind", "detail_level"]
        .iter()
        .find_map(|key| call.request.query_value(key))
    {
        None | Some("" | "full" | "medium" | "complete") => Ok(ExampleKind::Full),
        Some("minimal" | "required") => Ok(ExampleKind::Minimal),
        Some(other) => Err(Failure::bad_request(format!(
            "the detail `{other}` is unknown: expected `full` or `minimal`, or `required`, `medium`, `complete`"
        ))),
    }
}

/// Checks `type`, which ITS-REST has for examples. A document that the server accepts is also what
/// it returns, so both types have one example. On `/v1` it is the type of the template.
fn check_example_type(call: &Call<'_>) -> Result<(), Failure> {
    let sent = of_path(call).and_then(|_| call.request.query_value("type"));
    match sent {
        None | Some("" | "input" | "output") => Ok(()),
        Some(other) => Err(Failure::bad_request(format!(
            "the example type `{}` is unknown: expected `input` or `output`",
            shortened(other)
        ))),
    }
}

fn format_of(sent: Option<&str>) -> Result<&'static str, Failure> {
    match sent.map(str::to_ascii_lowercase).as_deref() {
        Some(OPT14) => Ok(OPT14),
        Some(OPT2) => Ok(OPT2),
        Some(other) => Err(Failure::bad_request(format!(
            "the template type `{other}` is unknown: expected `opt14` or `opt2`"
        ))),
        None => Err(Failure::bad_request(
            "the parameter `type` is missing: expected `opt14` or `opt2`",
        )),
    }
}

/// Returns the format in the path.
fn of_path(call: &Call<'_>) -> Option<&'static str> {
    match call
        .request
        .path
        .split('/')
        .skip_while(|segment| *segment != "template")
        .nth(1)
    {
        Some("adl1.4") => Some(OPT14),
        Some("adl2") => Some(OPT2),
        _ => None,
    }
}

/// Returns the requested format.
fn wanted<'c>(call: &Call<'c>) -> Option<&'c str> {
    of_path(call).or_else(|| call.request.query_value("type").filter(|t| !t.is_empty()))
}

fn list(call: &Call<'_>, found: &[Definition]) -> Result<Response, Failure> {
    let wanted = wanted(call);
    let entries: Vec<Value> = found
        .iter()
        .filter(|d| {
            call.check_named_permission(&d.name).is_ok()
                && wanted.is_none_or(|t| d.format.eq_ignore_ascii_case(t))
        })
        .map(|d| entry(call.dialect, d))
        .collect::<Result<_, Failure>>()?;
    Ok(Response::json(200, Value::Array(entries)))
}

fn entry(dialect: Dialect, definition: &Definition) -> Result<Value, Failure> {
    let summary = summary_of(definition)?;
    let text = |key: &str| summary.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut entry = json!({
        "type": definition.format,
        "template_id": definition.name,
        "version": definition.version,
        "concept": text("concept"),
        "archetype_id": text("archetype_id"),
        "created_timestamp": definition.created,
    });
    if let (Some(true), Some(entry)) = (
        summary.get("opaque").and_then(Value::as_bool),
        entry.as_object_mut(),
    ) {
        entry.insert(
            "validation".to_owned(),
            json!("reference model only: the definition is not understood"),
        );
    }
    if let (Dialect::Its, Some(entry)) = (dialect, entry.as_object_mut()) {
        entry.shift_remove("type");
    }
    Ok(entry)
}
