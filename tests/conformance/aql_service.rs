//! Suites `aql.result`, `aql.result_flat`, `aql.error`, `aql.no_oracle`: queries over REST in the
//! ITS dialect, on the data of their set-up.
//!
//! Each set-up fills an empty server once, and its cases only read. Without `--via` every case runs
//! on memory and on SQLite. All rows must be those of the reference evaluator, also where the
//! corpus has no result. Documents in the format FLAT are converted to canonical JSON first, since
//! they are loaded under fixed ids. One set-up commits a document with attributes that the RM does
//! not have: it is refused, then loaded without them.

use crate::corpus::{Corpus, text_of};
use crate::judge::Judge;
use crate::report::Case;
use crate::rm_json::findings_text;
use crate::rows::{Rules, is_time, short};
use crate::server::Server;
use crate::tables;
use aqlite::aql::{self, Parameters};
use aqlite::rm::class::Cls;
use aqlite::rm::json as rm_json;
use aqlite::service::Response;
use aqlite::template::flat::{self, Shape};
use aqlite::template::{Template, WebTemplate};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Queries with trusted results.
pub fn result(corpus: &Corpus) -> Vec<Case> {
    run(corpus, &["result"], &check_result)
}

/// Queries with trusted results on documents that were sent as FLAT.
pub fn result_flat(corpus: &Corpus) -> Vec<Case> {
    run(corpus, &["result_flat"], &check_result)
}

/// Queries that must be refused.
pub fn error(corpus: &Corpus) -> Vec<Case> {
    run(corpus, &["error"], &check_error)
}

/// Queries without a trusted result: an answer or a clean refusal.
pub fn no_oracle(corpus: &Corpus) -> Vec<Case> {
    run(corpus, &["no_oracle", "executes"], &check_clean)
}

type Check = dyn Fn(&Value, &Response) -> Result<(), String>;

fn run(corpus: &Corpus, classes: &[&str], check: &Check) -> Vec<Case> {
    let texts = match Texts::of(corpus) {
        Ok(texts) => texts,
        Err(why) => return vec![Case::check("server", || Err(why))],
    };
    let file = |name: &str| {
        texts
            .get(name)
            .ok()
            .and_then(|t| serde_json::from_str::<Value>(&t).ok())
            .unwrap_or_default()
    };
    let (cases, setups) = (file("aql/cases.json"), file("aql/setups.json"));
    let list = |value: &Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let mut by_setup: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for case in list(&cases, "cases")
        .into_iter()
        .filter(|c| classes.contains(&text_of(c, "class")))
    {
        by_setup
            .entry(text_of(&case, "setup").to_owned())
            .or_default()
            .push(case);
    }
    let setups = list(&setups, "setups");
    let mut out = Vec::new();
    for (id, cases) in by_setup {
        let steps = setups
            .iter()
            .find(|s| text_of(s, "id") == id)
            .map(|s| list(s, "steps"))
            .unwrap_or_default();
        let filled: Result<Vec<Filled>, String> = corpus
            .vias(&["memory", "sqlite", "segments"])
            .into_iter()
            .map(|via| Filled::of(&texts, via, &steps))
            .collect();
        out.extend(cases.iter().map(|case| {
            if let (Err(refused), "no_oracle") = (&filled, text_of(case, "class")) {
                return Case::skipped(text_of(case, "id"), refused);
            }
            Case::check(text_of(case, "id"), || {
                filled
                    .as_ref()
                    .map_err(Clone::clone)?
                    .iter()
                    .try_for_each(|f| f.check(case, check))
            })
        }));
    }
    out
}

/// The files of the corpus, with the server's system id in place of the corpus's own, because uids
/// of other systems are refused.
struct Texts<'c> {
    corpus: &'c Corpus,
    from: String,
    to: String,
}

impl Texts<'_> {
    fn of(corpus: &Corpus) -> Result<Texts<'_>, String> {
        let setups: Value =
            serde_json::from_str(&corpus.text("aql/setups.json")?).map_err(|e| e.to_string())?;
        let from = setups
            .get("system_id")
            .and_then(Value::as_str)
            .unwrap_or("cdr.example.org")
            .to_owned();
        let to = match corpus.via.as_deref().filter(|via| via.starts_with("http")) {
            Some(via) => Server::empty(via, &from)?.system_id()?,
            None => from.clone(),
        };
        Ok(Texts { corpus, from, to })
    }

    /// Queries also compare with the beginning of the system id.
    fn get(&self, path: &str) -> Result<String, String> {
        let begin = |system: &str| format!("'{}.'", system.split('.').next().unwrap_or_default());
        self.corpus.text(path).map(|text| {
            text.replace(&self.from, &self.to)
                .replace(&begin(&self.from), &begin(&self.to))
        })
    }
}

/// A server with the data of a set-up, and the judge of its answers.
struct Filled {
    via: String,
    server: Server,
    judge: Judge,
    /// The templates of the set-up, against which queries are linted.
    templates: Vec<Template>,
}

impl Filled {
    fn of(texts: &Texts<'_>, via: &str, steps: &[Value]) -> Result<Filled, String> {
        let server = filled(texts, via, steps)?;
        let judge = Judge::of(&server)?;
        let uploads = steps
            .iter()
            .filter(|step| text_of(step, "op") == "upload_template");
        let texts = uploads.filter_map(|s| texts.get(&format!("aql/{}", text_of(s, "file"))).ok());
        let templates = texts.filter_map(|text| Template::parse(&text).ok());
        Ok(Filled {
            templates: templates.collect(),
            via: via.to_owned(),
            server,
            judge,
        })
    }

    fn check(&self, case: &Value, check: &Check) -> Result<(), String> {
        let answer = ask(&self.server, case, "application/json")?;
        check(case, &answer).map_err(|why| format!("{}: {why}", self.via))?;
        let Some(request) = case.get("request").filter(|_| answer.status == 200) else {
            return Ok(());
        };
        self.judge
            .check(request, &answer.body)
            .and_then(|()| self.check_tables(case, &answer))
            .and_then(|()| self.check_lint(request))
            .map_err(|why| format!("{}: {why}", self.via))
    }

    /// Checks that no row of the server refutes a warning of lint, although lint knows only the
    /// templates. Parameters remain unbound.
    fn check_lint(&self, request: &Value) -> Result<(), String> {
        let q = text_of(request, "q");
        let Some(ast) = aql::parse(q).0.filter(|_| self.via == "memory") else {
            return Ok(());
        };
        let templates: Vec<&Template> = self.templates.iter().collect();
        for warning in aql::lint(q, &ast, &Parameters::new(), &templates) {
            let contrary = aql::print(&warning.contrary);
            let body = json!({ "q": contrary }).to_string();
            let json = [("Content-Type", "application/json")];
            let answer = self.server.send("POST", "/query/aql", &json, &body)?;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            let rows: Value = serde_json::from_str(&text).unwrap_or_default();
            let rows = rows.get("rows").and_then(Value::as_array).cloned();
            if rows.is_none_or(|rows| !rows.is_empty()) {
                let warning = warning.diagnostic.one_line(q);
                return Err(format!(
                    "{warning}, refuted by {contrary}: {}",
                    short(&Value::from(text.as_str()))
                ));
            }
            if std::env::var_os("AQLITE_LINT").is_some() {
                println!("{q}\n  {}", warning.diagnostic.one_line(q));
            }
        }
        Ok(())
    }

    /// Compares the tables of Arrow and Parquet with the rows of JSON, on hosts that write them.
    fn check_tables(&self, case: &Value, json: &Response) -> Result<(), String> {
        let q = case.pointer("/request/q").and_then(Value::as_str);
        let q = q.unwrap_or_default().to_ascii_uppercase();
        let is_remote = self.via.starts_with("http");
        let is_host = !is_remote || std::env::var_os("AQLITE_TABLES").is_some();
        // The clock advances between the requests.
        if !is_host || ["NOW(", "CURRENT_"].iter().any(|word| q.contains(word)) {
            return Ok(());
        }
        let mut answers = vec![("json", json.clone())];
        for format in tables::FORMATS {
            let answer = ask(&self.server, case, format.media_type())?;
            tables::check(format, json, &answer)?;
            answers.push((format.extension(), answer));
        }
        let kept: Vec<_> = answers.iter().map(|(ending, a)| (*ending, a)).collect();
        tables::keep(text_of(case, "id"), &kept)
    }
}

/// Returns a server with the data of a set-up. A set-up may upload a template twice.
fn filled(texts: &Texts<'_>, via: &str, steps: &[Value]) -> Result<Server, String> {
    let server = Server::empty(via, &texts.to)?;
    for step in steps {
        let canonical = if text_of(step, "format") == "FLAT" {
            Some(canonical(texts, steps, step)?)
        } else {
            None
        };
        let response = step_of(texts, &server, step, canonical)?;
        let again = text_of(step, "op") == "upload_template" && response.status == 409;
        if !again && !(200..300).contains(&response.status) {
            let body: String = String::from_utf8_lossy(&response.body)
                .chars()
                .take(500)
                .collect();
            return Err(format!(
                "set-up: {} {} {}: {} {body}",
                text_of(step, "op"),
                text_of(step, "file"),
                text_of(step, "uid"),
                response.status
            ));
        }
    }
    Ok(server)
}

/// Converts a FLAT document of a set-up, by the template that the set-up uploads for it.
fn canonical(texts: &Texts<'_>, steps: &[Value], step: &Value) -> Result<String, String> {
    let file = |step: &Value| texts.get(&format!("aql/{}", text_of(step, "file")));
    let is_template = |s: &&Value| {
        text_of(s, "op") == "upload_template"
            && text_of(s, "template_id") == text_of(step, "template_id")
    };
    let template = steps
        .iter()
        .find(is_template)
        .ok_or("set-up: the template of a document is not uploaded")?;
    let template =
        Template::parse(&file(template)?).map_err(|_| "set-up: the template cannot be read")?;
    let web = WebTemplate::of(&template);
    let tree = flat::read(
        &file(step)?,
        Shape::Flat,
        &template,
        &web,
        "2026-11-20T09:30:00Z",
    )
    .map_err(|f| findings_text(&f))?;
    tree.root()
        .map(rm_json::write)
        .ok_or_else(|| String::from("set-up: the document is empty"))
}

fn step_of(
    texts: &Texts<'_>,
    server: &Server,
    step: &Value,
    canonical: Option<String>,
) -> Result<Response, String> {
    let ehr = text_of(step, "ehr_id");
    let file = |key: &str| texts.get(&format!("aql/{}", text_of(step, key)));
    let load = |kind: &str, uid: &str, data: Option<String>, more: &str| {
        let data = data.map(|d| format!(",\"data\":{d}")).unwrap_or_default();
        let preceding = step
            .get("preceding")
            .map(|p| format!(",\"preceding\":{p}"))
            .unwrap_or_default();
        let line = format!(
            "{{\"ehr_id\":\"{ehr}\",\"kind\":\"{kind}\",\"version_uid\":\"{uid}\"{preceding}{more}{data}}}"
        );
        server.send(
            "POST",
            "/admin/load",
            &[("Content-Type", "application/json")],
            &line,
        )
    };
    let uid = text_of(step, "uid");
    match text_of(step, "op") {
        "upload_template" => server.send(
            "POST",
            "/definition/template/adl1.4",
            &[("Content-Type", "application/xml")],
            &file("file")?,
        ),
        "create_ehr" => load(
            "EHR_STATUS",
            text_of(step, "ehr_status_uid"),
            Some(with_subject(&file("ehr_status_file")?, step)?),
            "",
        ),
        "commit_composition" | "update_composition" => {
            let text = canonical.map_or_else(|| file("file"), Ok)?;
            let response = load("COMPOSITION", uid, Some(text.clone()), "")?;
            // A document with attributes that the RM does not have must be refused as a whole. The
            // queries run on the rest.
            match without_alien_attributes(&text).filter(|_| response.status == 400) {
                Some(rest) => load("COMPOSITION", uid, Some(rest), ""),
                None => Ok(response),
            }
        }
        "update_ehr_status" => load("EHR_STATUS", uid, Some(file("file")?), ""),
        "delete_composition" => load("COMPOSITION", uid, None, ""),
        "create_directory" => load("FOLDER", uid, Some(file("file")?), ""),
        "delete_ehr" => server.send("DELETE", &format!("/admin/ehr/{ehr}"), &[], ""),
        "commit_contribution" => {
            let contribution: Value =
                serde_json::from_str(&file("file")?).map_err(|e| e.to_string())?;
            let uids = step
                .get("version_uids")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let versions = contribution
                .get("versions")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let lines: Vec<String> = versions
                .iter()
                .zip(&uids)
                .map(|(version, version_uid)| member(ehr, uid, version, version_uid).to_string())
                .collect();
            server.send(
                "POST",
                "/admin/load",
                &[("Content-Type", "application/x-ndjson")],
                &lines.join("\n"),
            )
        }
        other => Err(format!("set-up: unknown step `{other}`")),
    }
}

/// Returns the document without attributes that the RM does not have, if it has some.
fn without_alien_attributes(text: &str) -> Option<String> {
    let findings = rm_json::read(text, Cls::COMPOSITION).err()?;
    let mut document: Value = serde_json::from_str(text).ok()?;
    for finding in findings
        .iter()
        .filter(|f| f.message.contains("has no attribute"))
    {
        let pointer = finding.path.replace('[', "/").replace(']', "");
        let (parent, attribute) = pointer.rsplit_once('/')?;
        document
            .pointer_mut(parent)?
            .as_object_mut()?
            .remove(attribute)?;
    }
    Some(document.to_string())
}

/// Returns a member of a contribution as a line of a bulk load.
fn member(ehr: &str, contribution: &str, version: &Value, version_uid: &Value) -> Value {
    json!({
        "ehr_id": ehr,
        "version_uid": version_uid,
        "contribution_uid": contribution,
        "change": version.pointer("/commit_audit/change_type/defining_code/code_string"),
        "preceding": version.pointer("/preceding_version_uid/value"),
        "audit": version.get("commit_audit"),
        "data": version.get("data"),
    })
}

/// Returns an EHR_STATUS with the subject of the step.
fn with_subject(text: &str, step: &Value) -> Result<String, String> {
    let mut status: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    for (pointer, key) in [
        ("/subject/external_ref/id/value", "subject_id"),
        ("/subject/external_ref/namespace", "subject_namespace"),
    ] {
        if let (Some(place), Some(value)) = (status.pointer_mut(pointer), step.get(key)) {
            *place = value.clone();
        }
    }
    Ok(status.to_string())
}

/// Sends the request of a case. A stored query is stored first.
fn ask(server: &Server, case: &Value, accept: &str) -> Result<Response, String> {
    let request = case.get("request").ok_or("the case has no request")?;
    let (method, path) = text_of(request, "via")
        .split_once(' ')
        .ok_or("the case does not say how to ask")?;
    let q = text_of(request, "q");
    let stored = !path.ends_with("/aql");
    if stored {
        let path = if path.matches('/').count() > 2 {
            path.to_owned()
        } else {
            format!("{path}/1.0.0")
        };
        let answer = server.send(
            "PUT",
            &format!("/definition{path}"),
            &[("Content-Type", "text/plain")],
            q,
        )?;
        if ![200, 409].contains(&answer.status) {
            return Ok(answer);
        }
    }
    let mut headers: Vec<(&str, &str)> = vec![("Accept", accept)];
    for (name, value) in request
        .get("headers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        headers.extend(
            value
                .as_str()
                .filter(|_| !name.eq_ignore_ascii_case("content-type"))
                .map(|v| (name.as_str(), v)),
        );
    }
    if method == "GET" {
        return server.send(
            "GET",
            &format!("{path}?{}", query_string(request, stored)),
            &headers,
            "",
        );
    }
    headers.push(("Content-Type", "application/json"));
    let mut body = serde_json::Map::new();
    for key in ["q", "query_parameters", "offset", "fetch", "ehr_id"] {
        if let Some(value) = request
            .get(key)
            .filter(|v| !(v.is_null() || stored && key == "q"))
        {
            body.insert(key.to_owned(), value.clone());
        }
    }
    server.send("POST", path, &headers, &Value::Object(body).to_string())
}

fn query_string(request: &Value, stored: bool) -> String {
    let mut pairs: BTreeMap<&str, String> = BTreeMap::new();
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    for key in ["q", "offset", "fetch", "ehr_id"] {
        if let Some(value) = request
            .get(key)
            .filter(|v| !(v.is_null() || stored && key == "q"))
        {
            pairs.insert(key, text(value));
        }
    }
    for key in ["query_parameters", "url_params"] {
        for (name, value) in request
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            pairs.insert(name, text(value));
        }
    }
    let encoded = |text: &str| {
        text.bytes()
            .map(|b| {
                if b.is_ascii_alphanumeric() {
                    char::from(b).to_string()
                } else {
                    format!("%{b:02X}")
                }
            })
            .collect::<String>()
    };
    pairs
        .iter()
        .map(|(k, v)| format!("{}={}", encoded(k), encoded(v)))
        .collect::<Vec<_>>()
        .join("&")
}

fn check_result(case: &Value, response: &Response) -> Result<(), String> {
    let text = String::from_utf8_lossy(&response.body);
    if response.status != 200 {
        return Err(format!(
            "{}: {}",
            response.status,
            text.chars().take(400).collect::<String>()
        ));
    }
    let body: Value =
        serde_json::from_str(&text).map_err(|e| format!("the answer is not JSON: {e}"))?;
    let expect = case.get("expect").ok_or("the case expects nothing")?;
    let rows = body
        .get("rows")
        .and_then(Value::as_array)
        .ok_or("the answer has no rows")?;
    let count = |key: &str, found: usize| match expect.get(key).and_then(Value::as_u64) {
        Some(wanted) if usize::try_from(wanted) != Ok(found) => Err(format!(
            "{key} is {found} instead of {wanted}: {}",
            short(&Value::from(rows.clone()))
        )),
        _ => Ok(()),
    };
    count("row_count", rows.len())?;
    count(
        "column_count",
        body.get("columns")
            .and_then(Value::as_array)
            .map_or(0, Vec::len),
    )?;
    if let Some(columns) = expect.get("columns").and_then(Value::as_array) {
        let names = |columns: &[Value]| {
            columns
                .iter()
                .map(|c| text_of(c, "name").to_owned())
                .collect::<Vec<_>>()
        };
        let found = names(
            body.get("columns")
                .and_then(Value::as_array)
                .map_or(&[], Vec::as_slice),
        );
        if names(columns) != found {
            return Err(format!(
                "the columns are {found:?} instead of {:?}",
                names(columns)
            ));
        }
    }
    let rules = Rules::of(case);
    if let Some(expected) = expect.get("rows").and_then(Value::as_array) {
        rules.compare(expected, rows)?;
    }
    for extra in expect
        .get("extra_compare")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        rules.compare_filtered(
            extra
                .get("rows")
                .and_then(Value::as_array)
                .map_or(&[], Vec::as_slice),
            rows,
        )?;
    }
    expect
        .get("asserts")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .try_for_each(|assert| holds(assert, &body, &text))
}

/// Checks one assertion about the answer.
fn holds(assert: &Value, body: &Value, text: &str) -> Result<(), String> {
    let (op, wanted) = (
        text_of(assert, "op"),
        assert.get("value").unwrap_or(&Value::Null),
    );
    let said = wanted
        .as_str()
        .map_or_else(|| wanted.to_string(), str::to_owned);
    let Some(path) = assert.get("path").and_then(Value::as_str) else {
        return if text.contains(&said) {
            Ok(())
        } else {
            Err(format!("the answer does not contain {said}"))
        };
    };
    let pointer = format!(
        "/{}",
        path.replace("][", "/")
            .replace('[', "/")
            .replace("].", "/")
            .replace(']', "")
            .replace('.', "/")
    );
    let found = body.pointer(&pointer);
    if found.is_none() && path == "meta._executed_aql" {
        return Ok(()); // optional: only servers in debug mode send it
    }
    let shown = found.map_or_else(String::new, |f| {
        f.as_str().map_or_else(|| f.to_string(), str::to_owned)
    });
    let good = match op {
        "equal" | "equal_str" => {
            shown == said
                || shown
                    .parse::<f64>()
                    .is_ok_and(|a| said.parse::<f64>() == Ok(a))
        }
        "contains" | "list_contains" => shown.contains(&said),
        "length" => {
            found
                .and_then(Value::as_array)
                .map_or(shown.len(), Vec::len)
                .to_string()
                == said
        }
        "has_key" => found.is_some_and(|f| f.get(&said).is_some()),
        "has_no_key" => found.is_none_or(|f| f.get(&said).is_none()),
        "regexp" => is_time(&shown) && shown.contains('.') == said.contains("\\."),
        other => return Err(format!("unknown assertion `{other}`")),
    };
    if good {
        Ok(())
    } else {
        Err(format!(
            "{path} {op} {said}: found `{}`",
            shown.chars().take(200).collect::<String>()
        ))
    }
}

fn check_error(case: &Value, response: &Response) -> Result<(), String> {
    let wanted = case
        .pointer("/expect/http_status")
        .and_then(Value::as_u64)
        .unwrap_or(400);
    let text = String::from_utf8_lossy(&response.body);
    let explained =
        serde_json::from_str::<Value>(&text).is_ok_and(|b| !text_of(&b, "message").is_empty());
    match response.status {
        status if !(400..500).contains(&status) => Err(format!(
            "{status} instead of {wanted}: {}",
            text.chars().take(300).collect::<String>()
        )),
        _ if !explained => Err(format!("the error says nothing: {text}")),
        _ => Ok(()),
    }
}

fn check_clean(case: &Value, response: &Response) -> Result<(), String> {
    let text = String::from_utf8_lossy(&response.body);
    let clean = match text_of(case, "class") {
        "executes" => response.status == 200,
        _ => {
            response.status == 200
                || (400..500).contains(&response.status)
                || response.status == 501
        }
    };
    if clean {
        Ok(())
    } else {
        Err(format!(
            "{}: {}",
            response.status,
            text.chars().take(300).collect::<String>()
        ))
    }
}
