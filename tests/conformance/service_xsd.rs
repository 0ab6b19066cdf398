//! Suite `service.xsd`: every XML representation that the service sends is valid against the
//! published schema of its namespace.
//!
//! A fixed set of resources is committed to an empty service. Each of the paths below is then read
//! as XML. No message of the validator is accepted, because the resources are ours. The validator
//! is that of the suite `rm.xsd`.

use crate::corpus::Corpus;
use crate::report::{Case, target};
use crate::rm_xsd::{empty, problems};
use crate::server::Server;
use aqlite::service::Response;
use serde_json::Value;
use std::path::Path;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const STATUS: &str = include_str!("../cases/rest/status.json");
const DIRECTORY: &str = include_str!("../cases/rest/directory.json");
const COMPOSITION: &str = include_str!("../cases/rest/weight.json");
const PERSON: &str = include_str!("../cases/rest/person.json");
const TEMPLATE: &str = include_str!("../cases/template/small.opt");

/// Committal headers with every part of an audit that a client can name.
const AUDIT: [(&str, &str); 2] = [
    ("openEHR-AUDIT_DETAILS.description", "value=\"first visit\""),
    (
        "openEHR-AUDIT_DETAILS.committer",
        "name=\"Dr. Ek\", external_ref.id=\"7\", external_ref.namespace=\"clinic\", external_ref.type=\"PERSON\"",
    ),
];

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let folder = target().join("conformance/service-xsd");
    let written = empty(&folder).and_then(|()| Resources::commit()?.write(&folder));
    let names = match written {
        Ok(names) => names,
        Err(why) => return vec![Case::check("resources", || Err(why))],
    };
    let found = match problems(corpus, &folder) {
        Ok(found) => found,
        Err(reason) => {
            return names
                .into_iter()
                .map(|name| Case::skipped(name, reason.clone()))
                .collect();
        }
    };
    let verdict = |(n, name): (usize, String)| {
        let messages = found
            .get(format!("{n}.xml"))
            .and_then(Value::as_array)
            .cloned();
        Case::check(name, || match messages {
            Some(messages) if messages.is_empty() => Ok(()),
            Some(messages) => Err(Value::Array(messages).to_string()),
            None => Err(String::from("the validator did not answer")),
        })
    };
    names.into_iter().enumerate().map(verdict).collect()
}

/// A service with one resource of each kind, and the answers to their commits.
struct Resources {
    server: Server,
    composition: String,
    deleted: String,
    person: String,
    /// XML answers to changes, by name.
    answers: Vec<(String, String)>,
}

impl Resources {
    fn commit() -> Result<Resources, String> {
        let server = Server::empty("memory", "cdr.example.org")?;
        let mut all = Resources {
            server,
            composition: String::new(),
            deleted: String::new(),
            person: String::new(),
            answers: Vec::new(),
        };
        all.send(
            "POST",
            "/definition/template/adl1.4",
            &[("Content-Type", "application/xml")],
            TEMPLATE,
            201,
        )?;
        all.change("PUT", &format!("/ehr/{EHR}"), &AUDIT, STATUS)?;
        let status = all.uid(&format!("/ehr/{EHR}/ehr_status"))?;
        all.change(
            "PUT",
            &format!("/ehr/{EHR}/ehr_status"),
            &[("If-Match", &status)],
            STATUS,
        )?;
        let first = all.change(
            "POST",
            &format!("/ehr/{EHR}/composition"),
            &AUDIT,
            COMPOSITION,
        )?;
        let object = first.split("::").next().unwrap_or_default().to_owned();
        let draft = [
            ("If-Match", first.as_str()),
            ("openEHR-VERSION.lifecycle_state", "code_string=\"553\""),
        ];
        all.composition = all.change(
            "PUT",
            &format!("/ehr/{EHR}/composition/{object}"),
            &draft,
            COMPOSITION,
        )?;
        all.deleted = all.change("POST", &format!("/ehr/{EHR}/composition"), &[], COMPOSITION)?;
        all.send(
            "DELETE",
            &format!("/ehr/{EHR}/composition/{}", all.deleted),
            &AUDIT,
            "",
            204,
        )?;
        all.change("POST", &format!("/ehr/{EHR}/directory"), &AUDIT, DIRECTORY)?;
        all.person = all.change("POST", "/demographic/person", &AUDIT, PERSON)?;
        Ok(all)
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
        status: u16,
    ) -> Result<Response, String> {
        let answer = self.server.send(method, path, headers, body)?;
        match answer.status == status {
            true => Ok(answer),
            false => Err(format!(
                "{method} {path}: {} {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            )),
        }
    }

    /// Commits a JSON document and keeps its XML representation. Returns the version uid.
    fn change(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<String, String> {
        let common = [
            ("Content-Type", "application/json"),
            ("Accept", "application/xml"),
            ("Prefer", "return=representation"),
        ];
        let answer = self
            .server
            .send(method, path, &[&common, headers].concat(), body)?;
        let text = String::from_utf8(answer.body.clone()).map_err(|e| e.to_string())?;
        if !(200..300).contains(&answer.status) {
            return Err(format!("{method} {path}: {} {text}", answer.status));
        }
        self.answers.push((format!("{method} {path}"), text));
        Ok(tag(&answer))
    }

    fn uid(&self, path: &str) -> Result<String, String> {
        self.send("GET", path, &[], "", 200)
            .map(|answer| tag(&answer))
    }

    /// Returns the paths that are read.
    fn paths(&self) -> Result<Vec<String>, String> {
        let ehr = format!("/ehr/{EHR}");
        let object = |uid: &str| uid.split("::").next().unwrap_or_default().to_owned();
        let mut paths = vec![
            ehr.clone(),
            format!("{ehr}/ehr_status"),
            format!("{ehr}/directory"),
            format!("{ehr}/composition/{}", self.composition),
        ];
        let versioned = [
            format!("{ehr}/versioned_ehr_status"),
            format!("{ehr}/versioned_directory"),
            format!("{ehr}/versioned_composition/{}", object(&self.composition)),
            format!("{ehr}/versioned_composition/{}", object(&self.deleted)),
            format!("/demographic/versioned_party/{}", object(&self.person)),
        ];
        for container in versioned {
            paths.extend(
                ["", "/revision_history", "/version"].map(|part| format!("{container}{part}")),
            );
        }
        paths.push(format!("/demographic/person/{}", self.person));
        let listed = self.send("GET", &format!("{ehr}/contribution"), &[], "", 200)?;
        let listed: Value = serde_json::from_slice(&listed.body).map_err(|e| e.to_string())?;
        let uids = listed
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|c| c.pointer("/uid/value")?.as_str());
        paths.extend(uids.map(|uid| format!("{ehr}/contribution/{uid}")));
        Ok(paths)
    }

    /// Writes each representation to a numbered file. Returns their names.
    fn write(self, folder: &Path) -> Result<Vec<String>, String> {
        let mut documents = self.answers.clone();
        for path in self.paths()? {
            let answer = self.send("GET", &path, &[("Accept", "application/xml")], "", 200)?;
            documents.push((
                format!("GET {path}"),
                String::from_utf8(answer.body).map_err(|e| e.to_string())?,
            ));
        }
        for (n, (_, text)) in documents.iter().enumerate() {
            std::fs::write(folder.join(format!("{n}.xml")), text).map_err(|e| e.to_string())?;
        }
        Ok(documents
            .into_iter()
            .enumerate()
            .map(|(n, (name, _))| format!("{n} {name}"))
            .collect())
    }
}

/// Returns the entity tag of an answer.
fn tag(answer: &Response) -> String {
    answer
        .header("ETag")
        .unwrap_or_default()
        .trim_matches('"')
        .to_owned()
}
