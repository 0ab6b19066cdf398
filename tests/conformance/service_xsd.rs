//! Suite `service.xsd`: every XML representation that the service sends is valid against the
//! published schema of its namespace.
//!
//! A fixed set of resources is committed to an empty service. Each of the paths below is then read
//! as XML, and so are the answers to changes. No message of the validator is accepted, because the
//! resources are ours. The validator is that of the suite `rm.xsd`. A case of its own fails if a
//! route of the OpenAPI document answers in XML and is missing here.

use crate::corpus::Corpus;
use crate::report::{Case, target};
use crate::rm_xsd::{empty, problems};
use crate::server::Server;
use aqlite::service::{Response, openapi};
use serde_json::Value;
use std::path::Path;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const STATUS: &str = include_str!("../cases/rest/status.json");
const DIRECTORY: &str = include_str!("../cases/rest/directory.json");
const COMPOSITION: &str = include_str!("../cases/rest/weight.json");
const PERSON: &str = include_str!("../cases/rest/person.json");
/// The classes of parties, with what they require beside the content of a PERSON.
const PARTIES: [(&str, &str); 5] = [
    ("PERSON", ""),
    ("AGENT", ""),
    ("GROUP", ""),
    ("ORGANISATION", ""),
    (
        "ROLE",
        r#", "performer": {"_type": "PARTY_REF", "id": {"_type": "HIER_OBJECT_ID", "value": "6ba7b814-9dad-41d1-80b4-00c04fd430c8"}, "namespace": "demographic", "type": "PERSON"}"#,
    ),
];
/// Node ids that only the v2 schema allows.
const NODE_IDS_OF_V2: [&str; 4] = [
    "id1.1",
    "at029",
    "openEHR-EHR-FOLDER.generic.v1.10.2",
    "org.example::openEHR-EHR-FOLDER.generic.v1.0.0",
];
/// A contribution with one version; the document follows.
const CONTRIBUTION: &str = r#"{"_type":"CONTRIBUTION","audit":{"_type":"AUDIT_DETAILS","committer":{"_type":"PARTY_IDENTIFIED","name":"Dr. Ek"}},"versions":[{"_type":"ORIGINAL_VERSION","commit_audit":{"_type":"AUDIT_DETAILS","committer":{"_type":"PARTY_IDENTIFIED","name":"Dr. Ek"},"change_type":{"_type":"DV_CODED_TEXT","value":"creation","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"249"}}},"lifecycle_state":{"_type":"DV_CODED_TEXT","value":"complete","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"532"}},"data":"#;
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
    let covered = Case::check("every route that answers in XML", || {
        let missing = missing_routes(&names);
        match missing.is_empty() {
            true => Ok(()),
            false => Err(format!("not read: {}", missing.join(", "))),
        }
    });
    let verdicts = names.iter().cloned().enumerate().map(verdict);
    verdicts.chain([covered]).collect()
}

/// Returns the routes that answer in XML, by the OpenAPI document, and that no name has. A name is a
/// number, a method and a path.
fn missing_routes(names: &[String]) -> Vec<String> {
    let document = openapi();
    let paths = document.get("paths").and_then(Value::as_object);
    let operations = paths.into_iter().flatten().flat_map(|(pattern, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (pattern, method.to_uppercase(), operation))
    });
    let is_read = |pattern: &str, method: &str| {
        names.iter().any(|name| {
            let mut words = name.split(' ').skip(1);
            words.next() == Some(method) && words.next().is_some_and(|path| fits(pattern, path))
        })
    };
    operations
        .filter(|(_, _, operation)| answers_in_xml(operation))
        // Templates are sent as uploaded, and their examples are alike below all paths.
        .filter(|(pattern, ..)| !pattern.starts_with("/definition"))
        .filter(|(pattern, method, _)| !is_read(pattern, method))
        .map(|(pattern, method, _)| format!("{method} {pattern}"))
        .collect()
}

fn answers_in_xml(operation: &Value) -> bool {
    let responses = operation.get("responses").and_then(Value::as_object);
    let mut good = responses
        .into_iter()
        .flatten()
        .filter(|(status, _)| status.starts_with('2'));
    good.any(|(_, response)| response.pointer("/content/application~1xml").is_some())
}

/// Returns whether a path has the form of a pattern, whose parameters are in braces.
fn fits(pattern: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let mut parts = pattern.split('/').zip(path.split('/'));
    pattern.split('/').count() == path.split('/').count()
        && parts.all(|(part, segment)| part == segment || part.starts_with('{'))
}

/// A service with one resource of each kind, and the answers to their commits.
struct Resources {
    server: Server,
    composition: String,
    deleted: String,
    directory: String,
    /// The path and the version uid of a party of each class.
    parties: Vec<(String, String)>,
    /// The uid of a contribution of parties.
    contribution: String,
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
            directory: String::new(),
            parties: Vec::new(),
            contribution: String::new(),
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
        let folder = all.change("POST", &format!("/ehr/{EHR}/directory"), &AUDIT, DIRECTORY)?;
        let after = [("If-Match", folder.as_str())];
        all.directory = all.change("PUT", &format!("/ehr/{EHR}/directory"), &after, DIRECTORY)?;
        all.texts_of_v2()?;
        for (class, more) in PARTIES {
            let party = all.party(class, more)?;
            all.parties.push(party);
        }
        let other = STATUS.replace("patient-7", "patient-8");
        all.change("POST", "/ehr", &[], &other)?;
        all.contribute(&format!("/ehr/{EHR}/contribution"), COMPOSITION)?;
        all.contribution = all.contribute("/demographic/contribution", PERSON)?;
        Ok(all)
    }

    /// Commits documents with texts that only the v2 schema allows: time zones, node ids.
    fn texts_of_v2(&mut self) -> Result<(), String> {
        for zone in ["+13:00", "+05:45"] {
            let elsewhere = COMPOSITION.replace("08:30:00.000+01:00", &format!("08:30:00{zone}"));
            self.change(
                "POST",
                &format!("/ehr/{EHR}/composition"),
                &AUDIT,
                &elsewhere,
            )?;
        }
        for (number, id) in NODE_IDS_OF_V2.iter().enumerate() {
            let ehr = self.change(
                "POST",
                "/ehr",
                &[],
                &STATUS.replace("patient-7", &format!("patient-v2-{number}")),
            )?;
            let (before, folder) = DIRECTORY
                .rsplit_once("openEHR-EHR-FOLDER.generic.v1")
                .ok_or("a directory has folders")?;
            let directory = format!("{before}{id}{folder}");
            self.change("POST", &format!("/ehr/{ehr}/directory"), &AUDIT, &directory)?;
        }
        Ok(())
    }

    /// Creates and updates a party of a class. Returns its path and its version uid.
    fn party(&mut self, class: &str, more: &str) -> Result<(String, String), String> {
        let path = format!("/demographic/{}", class.to_lowercase());
        let text = PERSON.replace("PERSON", class);
        let end = text.rfind('}').ok_or("a party is an object")?;
        let text = format!("{}{more}}}", text.get(..end).unwrap_or_default());
        let first = self.change("POST", &path, &AUDIT, &text)?;
        let object = first.split("::").next().unwrap_or_default();
        let after = [("If-Match", first.as_str())];
        let second = self.change("PUT", &format!("{path}/{object}"), &after, &text)?;
        Ok((path, second))
    }

    /// Commits a contribution with a new document. Returns its uid.
    fn contribute(&mut self, path: &str, document: &str) -> Result<String, String> {
        let body = format!("{CONTRIBUTION}{document}}}]}}");
        self.change("POST", path, &[], &body)
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
            String::from("/ehr?subject_id=patient-8&subject_namespace=clinic"),
            format!("{ehr}/ehr_status"),
            format!(
                "{ehr}/ehr_status/{}",
                self.uid(&format!("{ehr}/ehr_status"))?
            ),
            format!("{ehr}/directory"),
            format!("{ehr}/directory/{}", self.directory),
            format!("{ehr}/composition/{}", self.composition),
            String::from("/definition/template/adl1.4/weight.en.v2/example"),
        ];
        let status = self.uid(&format!("{ehr}/ehr_status"))?;
        let mut containers = vec![
            (format!("{ehr}/versioned_ehr_status"), &status),
            (format!("{ehr}/versioned_directory"), &self.directory),
        ];
        for uid in [&self.composition, &self.deleted] {
            containers.push((format!("{ehr}/versioned_composition/{}", object(uid)), uid));
        }
        for (path, uid) in &self.parties {
            paths.push(format!("{path}/{uid}"));
            containers.push((format!("/demographic/versioned_party/{}", object(uid)), uid));
        }
        for (container, uid) in containers {
            let parts = ["", "/revision_history", "/version"];
            paths.extend(parts.map(|part| format!("{container}{part}")));
            paths.push(format!("{container}/version/{uid}"));
        }
        paths.extend(self.contributions(&ehr)?);
        paths.push(format!("/demographic/contribution/{}", self.contribution));
        Ok(paths)
    }

    /// Returns the paths of all contributions of an EHR.
    fn contributions(&self, owner: &str) -> Result<Vec<String>, String> {
        let listed = self.send("GET", &format!("{owner}/contribution"), &[], "", 200)?;
        let listed: Value = serde_json::from_slice(&listed.body).map_err(|e| e.to_string())?;
        let listed = listed.as_array().into_iter().flatten();
        let uids = listed.filter_map(|c| c.pointer("/uid/value")?.as_str());
        Ok(uids
            .map(|uid| format!("{owner}/contribution/{uid}"))
            .collect())
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
