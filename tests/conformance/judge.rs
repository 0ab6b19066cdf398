//! The expected answers of queries, computed by the reference evaluator of the integration tests
//! from all data of a server.

use crate::corpus::text_of;
use crate::notation::{Document, Repository};
use crate::reference;
use crate::server::Server;
use aqlite::aql::{Parameter, Parameters, check, parse};
use aqlite::document::{DocRow, EhrRow, ObjectKind};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json::{self, elements, members};
use aqlite::rm::tree::Tree;
use serde_json::Value;

/// The data of a server, from its export.
pub struct Judge {
    repository: Repository,
}

impl Judge {
    /// Reads all data of a server.
    pub fn of(server: &Server) -> Result<Judge, String> {
        let mut judge = Judge {
            repository: Repository {
                ehrs: Vec::new(),
                documents: Vec::new(),
            },
        };
        let mut after = String::new();
        loop {
            let page = server.send("GET", &format!("/admin/export?limit=1000{after}"), &[], "")?;
            let text = String::from_utf8_lossy(&page.body).into_owned();
            for line in text.lines() {
                if let Some(uid) = judge.take(server, record(line)?)? {
                    after = format!("&after={uid}");
                }
            }
            if text
                .lines()
                .last()
                .is_none_or(|line| line.contains(r#""record":{"end":true}"#))
            {
                return Ok(judge);
            }
        }
    }

    /// Adds a record. Returns the uid of a contribution.
    fn take(&mut self, server: &Server, record: &str) -> Result<Option<String>, String> {
        let parts = members(record).map_err(|e| format!("{e:?}"))?;
        let named = |name: &str| {
            parts
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| *value)
        };
        let (Some(contribution), Some(ehr_id)) = (named("contribution"), named("ehr_id")) else {
            return Ok(None);
        };
        let ehr = self.ehr(server, ehr_id.trim_matches('"'))?;
        for text in elements(named("versions").unwrap_or("[]")).map_err(|e| format!("{e:?}"))? {
            self.version(ehr, text)?;
        }
        let contribution: Value = serde_json::from_str(contribution).map_err(|e| e.to_string())?;
        Ok(contribution
            .pointer("/uid/value")
            .and_then(Value::as_str)
            .map(str::to_owned))
    }

    fn ehr(&mut self, server: &Server, id: &str) -> Result<usize, String> {
        if let Some(known) = self.repository.ehrs.iter().position(|e| e.ehr_id == id) {
            return Ok(known);
        }
        let answer = server.send("GET", &format!("/ehr/{id}"), &[], "")?;
        let body: Value =
            serde_json::from_slice(&answer.body).map_err(|e| format!("EHR {id}: {e}"))?;
        let text = |pointer: &str| {
            body.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let is_queryable = body
            .pointer("/ehr_status/is_queryable")
            .and_then(Value::as_bool)
            .unwrap_or(true);
        let row = EhrRow {
            ehr_id: id.to_owned(),
            system_id: text("/system_id/value"),
            time_created: text("/time_created/value"),
            is_queryable,
        };
        self.repository.ehrs.push(row);
        Ok(self.repository.ehrs.len() - 1)
    }

    fn version(&mut self, ehr: usize, text: &str) -> Result<(), String> {
        let tree = json::read(text, Cls::VERSION).map_err(|found| format!("{found:?}"))?;
        let ordinal = self.repository.documents.len() as u64 + 1;
        let (object_id, number, kind) = named(&tree)?;
        let before = self
            .repository
            .documents
            .iter_mut()
            .rev()
            .find(|d| d.row.object_id == object_id);
        let kind = kind
            .or(before.as_ref().map(|d| d.row.kind))
            .ok_or("the first version of an object is a deletion")?;
        if let Some(before) = before {
            before.row.latest = false;
        }
        let deleted = tree
            .root()
            .and_then(|version| version.get(Attr::DATA))
            .is_none();
        let row = DocRow {
            kind,
            object_id,
            number,
            ordinal,
            latest: true,
            deleted,
        };
        self.repository.documents.push(Document { ehr, row, tree });
        Ok(())
    }

    /// Checks that an answer has the rows of the reference. Unknown to the reference, and so not
    /// checked, are the time of the server, answers of terminologies, and results with too many
    /// intermediate rows.
    pub fn check(&self, request: &Value, answer: &[u8]) -> Result<(), String> {
        let q = text_of(request, "q");
        if ["NOW(", "CURRENT_", "TERMINOLOGY"]
            .iter()
            .any(|word| q.to_ascii_uppercase().contains(word))
        {
            return Ok(());
        }
        let query = parse(q)
            .0
            .and_then(|ast| check(&ast, &parameters(request), &Default::default()).ok())
            .ok_or("answered, but no query")?;
        let ehr = request
            .get("ehr_id")
            .or_else(|| request.pointer("/headers/openEHR-EHR-id"))
            .and_then(Value::as_str);
        let options = reference::Options {
            ehr,
            exact: false,
            now: "2026-01-02T03:04:05.678Z",
        };
        let Some(rows) = reference::rows(&query, &self.repository, &options) else {
            return Ok(());
        };
        let number = |key: &str| {
            request
                .get(key)
                .and_then(Value::as_u64)
                .and_then(|n| usize::try_from(n).ok())
        };
        let page = rows
            .iter()
            .skip(number("offset").unwrap_or(0))
            .take(number("fetch").unwrap_or(usize::MAX));
        let expected: Vec<Value> = page
            .filter_map(|row| serde_json::from_str(row).ok())
            .collect();
        let body: Value = serde_json::from_slice(answer).map_err(|e| e.to_string())?;
        let found = body
            .get("rows")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        match expected.iter().zip(&found).position(|(e, f)| e != f) {
            Some(at) => Err(format!(
                "the reference has another row {at}: {:?}, not {:?}",
                expected.get(at),
                found.get(at)
            )),
            None if expected.len() != found.len() => Err(format!(
                "the reference has {} rows, not {}",
                expected.len(),
                found.len()
            )),
            None => Ok(()),
        }
    }
}

/// Returns the record of a line of an export.
fn record(line: &str) -> Result<&str, String> {
    let parts = members(line).map_err(|e| format!("{e:?}"))?;
    parts
        .into_iter()
        .find(|(key, _)| key == "record")
        .map(|(_, value)| value)
        .ok_or_else(|| format!("no record: {line}"))
}

/// Returns object, number and kind of a version. A deletion does not state its kind.
fn named(tree: &Tree) -> Result<(String, u32, Option<ObjectKind>), String> {
    let version = tree.root().ok_or("an empty version")?;
    let uid = version
        .text_along(&[Attr::UID, Attr::VALUE])
        .ok_or("a version without uid")?;
    let parts: Vec<&str> = uid.split("::").collect();
    let [object, _, number] = parts[..] else {
        return Err(format!("`{uid}` is no version uid"));
    };
    let kind = version.get(Attr::DATA).map(|data| match data.class() {
        Cls::EHR_STATUS => ObjectKind::EhrStatus,
        Cls::FOLDER => ObjectKind::Folder,
        _ => ObjectKind::Composition,
    });
    Ok((
        object.to_owned(),
        number
            .parse()
            .map_err(|_| format!("`{uid}` has no number"))?,
        kind,
    ))
}

/// Returns the parameters of a request. Those of a URL are texts that take the type of the other
/// side of their comparison.
fn parameters(request: &Value) -> Parameters {
    let is_url = text_of(request, "via").starts_with("GET");
    let mut out = Parameters::new();
    for key in ["query_parameters", "url_params"] {
        for (name, value) in request
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            out.insert(
                name.clone(),
                if is_url {
                    Parameter::Untyped(text)
                } else {
                    typed(value)
                },
            );
        }
    }
    out
}

fn typed(value: &Value) -> Parameter {
    match value {
        Value::Bool(flag) => Parameter::Boolean(*flag),
        Value::Number(number) => Parameter::Number(number.to_string()),
        Value::String(text) => Parameter::Text(text.clone()),
        Value::Array(values) => Parameter::List(values.iter().map(typed).collect()),
        Value::Null | Value::Object(_) => Parameter::Null,
    }
}
