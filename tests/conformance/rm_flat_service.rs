//! Suite `rm.flat_service`: documents in the formats FLAT and STRUCTURED over REST.
//!
//! The documents of the suite `rm.flat` are sent to a server with their template, and so is the
//! canonical document that each means. Both routes store a document that the library reads and finds
//! valid, and refuse any other one. A stored document comes back the same as canonical JSON and in
//! both formats. A canonical document with a twin in FLAT is sent as XML and has the keys of its
//! twin.
//!
//! A uid in a document is replaced by a new one, because it names a version of another system.
//!
//! Without `--via` every document is sent to a service on memory and to one on SQLite.

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use crate::rm_flat::{
    self, Library, Made, NOW, SHAPES, compare, differ, is_valid, keys, shape_of, shortened,
};
use crate::rm_json::findings_text;
use crate::server::{Server, expect, tag};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::tree::Tree;
use aqlite::rm::{json, xml};
use aqlite::service::Response;
use aqlite::template::flat::{self, FlatDialect, Shape};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// The dialect of the corpus files; a deployment may have another one by default.
const DIALECT: &str = "dialect=better";

/// A document to send.
struct Sent {
    id: String,
    text: String,
    content: Content,
}

/// The format of a document.
enum Content {
    /// FLAT or STRUCTURED.
    Keys(Shape),
    /// Canonical XML, and its twin in FLAT.
    Canonical { twin: String },
}

/// Runs the suite.
pub fn run(corpus: &Corpus) -> Vec<Case> {
    let library = Library::of(corpus);
    let mut by_template: BTreeMap<&str, Vec<Sent>> = BTreeMap::new();
    let documents = twins(corpus, &library)
        .into_iter()
        .chain(given(corpus, &library));
    for (made, sent) in documents {
        by_template.entry(&made.name).or_default().push(sent);
    }
    let mut cases = Vec::new();
    for (path, documents) in by_template {
        let servers: Result<Vec<Filled<'_>>, String> = corpus
            .vias(&["memory", "sqlite"])
            .into_iter()
            .map(|via| Filled::new(corpus, library.at(path)?, via))
            .collect();
        cases.extend(documents.iter().map(|sent| {
            Case::check(sent.id.as_str(), || {
                let servers = servers.as_ref().map_err(Clone::clone)?;
                servers.iter().try_for_each(|server| server.check(sent))
            })
        }));
    }
    cases
}

/// Returns the documents with a canonical twin, and these twins.
fn twins<'l>(corpus: &Corpus, library: &'l Library) -> Vec<(&'l Made, Sent)> {
    let mut documents = Vec::new();
    for case in corpus.json_lines("rm/better_compat/cases.jsonl") {
        let file = |key| corpus.text(&format!("rm/{}", text_of(&case, key)));
        let Ok(made) = library.at(&format!("rm/{}", text_of(&case, "template"))) else {
            continue;
        };
        let name = text_of(&case, "case");
        let mut add = |what, text, content| {
            let id = format!("{name} {what}");
            documents.push((made, Sent { id, text, content }));
        };
        for (format, shape) in SHAPES {
            if let Ok(text) = file(format) {
                add(format, text, Content::Keys(shape));
            }
        }
        if let (Ok(text), Ok(twin)) = (file("raw_xml"), file("flat")) {
            add("written", text, Content::Canonical { twin });
        }
    }
    documents
}

/// Returns the other documents, with the first template that can read them, else the first one to
/// which their keys may belong.
fn given<'l>(corpus: &Corpus, library: &'l Library) -> Vec<(&'l Made, Sent)> {
    let lines = corpus.json_lines("rm/index.jsonl");
    let files = lines
        .iter()
        .filter(|line| ["flat", "structured"].contains(&text_of(line, "kind")));
    files
        .filter_map(|line| {
            let id = text_of(line, "file").to_owned();
            let text = corpus.text(&format!("rm/{id}")).ok()?;
            let candidates = library.of_keys(&id, &text);
            let reads = |made: &&&Made| rm_flat::accepts(&text, made).is_ok();
            let made = candidates.iter().find(reads).or(candidates.first())?;
            let content = Content::Keys(shape_of(&text));
            Some((*made, Sent { id, text, content }))
        })
        .collect()
}

/// A server with one template and an EHR.
struct Filled<'l> {
    via: String,
    server: Server,
    ehr_id: String,
    made: &'l Made,
}

impl<'l> Filled<'l> {
    fn new(corpus: &Corpus, made: &'l Made, via: &str) -> Result<Filled<'l>, String> {
        let server = Server::empty(via, "local.ehrbase.org")?;
        let xml = [("Content-Type", "application/xml")];
        let text = corpus.text(&made.name)?;
        let uploaded = server.send("POST", "/definition/template/adl1.4", &xml, &text)?;
        expect(&uploaded, 201).map_err(|why| format!("{via}: {}: {why}", made.name))?;
        let created = server.send("POST", "/ehr", &[], "")?;
        expect(&created, 201)?;
        Ok(Filled {
            via: via.to_owned(),
            ehr_id: tag(&created)?,
            server,
            made,
        })
    }

    fn check(&self, sent: &Sent) -> Result<(), String> {
        match &sent.content {
            Content::Keys(shape) => self.check_keys(&sent.text, *shape),
            Content::Canonical { twin } => self.check_canonical(&sent.text, twin),
        }
        .map_err(|why| format!("{}: {why}", self.via))
    }

    /// Sends a document in FLAT or STRUCTURED, and the canonical document that it means.
    fn check_keys(&self, text: &str, shape: Shape) -> Result<(), String> {
        let text = rm_flat::with_time(&rm_flat::with_context(text, shape), shape);
        let uid = new_uid();
        let text = match uid_of_keys(&text) {
            Some(foreign) => text.replace(&foreign, &uid),
            None => text,
        };
        let Made { template, web, .. } = self.made;
        let answer = self.post(media_type(shape), &text)?;
        let Ok(tree) = flat::read(&text, shape, template, web, NOW) else {
            return refused(&answer, "the library cannot read it");
        };
        let root = tree.root().ok_or("the document is empty")?;
        let canonical = json::write(root).replace(&uid, &new_uid());
        let canonical = self.post("application/json", &canonical)?;
        if !is_valid(root, self.made) {
            refused(&canonical, "its canonical form is not valid")?;
            return refused(&answer, "it is not valid");
        }
        expect(&canonical, 201).map_err(|why| format!("canonical form: {why}"))?;
        expect(&answer, 201)?;
        self.comes_back(&tag(&answer)?, &tree)
    }

    /// Sends a canonical document, and compares its keys with those of its twin.
    fn check_canonical(&self, text: &str, twin: &str) -> Result<(), String> {
        let tree = xml::read(text, Cls::COMPOSITION).map_err(|found| findings_text(&found))?;
        let root = tree.root().ok_or("the document is empty")?;
        let text = match root.text_along(&[Attr::UID, Attr::VALUE]) {
            Some(foreign) => text.replace(foreign, &new_uid()),
            None => text.to_owned(),
        };
        let answer = self.post("application/xml", &text)?;
        if !is_valid(root, self.made) {
            return refused(&answer, "it is not valid");
        }
        expect(&answer, 201)?;
        let found = self.get(&tag(&answer)?, media_type(Shape::Flat))?;
        let content = |text: &str| -> Result<BTreeMap<String, Value>, String> {
            let mut keys = keys(text)?;
            keys.retain(|key, _| !key.ends_with("/_uid"));
            Ok(keys)
        };
        compare(&content(twin)?, &content(&found)?)
    }

    /// Compares a stored document, read in each format, with what was sent.
    fn comes_back(&self, uid: &str, sent: &Tree) -> Result<(), String> {
        let Made { template, web, .. } = self.made;
        let canonical = json::read(&self.get(uid, "application/json")?, Cls::COMPOSITION);
        let stored = canonical.map_err(|findings| findings_text(&findings))?;
        same("canonical JSON", sent, &stored)?;
        let root = stored.root().ok_or("the stored document is empty")?;
        for (name, shape) in SHAPES {
            let text = self.get(uid, media_type(shape))?;
            let own = flat::write(root, shape, template, web, FlatDialect::Better)
                .map_err(|problem| problem.to_string())?
                .text;
            if keys(&text)? != keys(&own)? {
                return Err(format!("{name} is not that of the library"));
            }
            let read = flat::read(&text, shape, template, web, NOW);
            let read = read.map_err(|findings| format!("{name}: {}", findings_text(&findings)))?;
            same(name, sent, &read)?;
        }
        Ok(())
    }

    fn post(&self, media_type: &str, text: &str) -> Result<Response, String> {
        let template: String = self
            .made
            .template
            .template_id
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        let path = format!("/ehr/{}/composition?templateId={template}", self.ehr_id);
        let headers = [("Content-Type", media_type)];
        self.server.send("POST", &path, &headers, text)
    }

    fn get(&self, uid: &str, media_type: &str) -> Result<String, String> {
        let path = format!("/ehr/{}/composition/{uid}?{DIALECT}", self.ehr_id);
        let headers = [("Accept", media_type)];
        let answer = self.server.send("GET", &path, &headers, "")?;
        expect(&answer, 200).map_err(|why| format!("{media_type}: {why}"))?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }
}

/// Checks that a document was refused, because of its form or of its content.
fn refused(answer: &Response, why: &str) -> Result<(), String> {
    match answer.status {
        400 | 422 => Ok(()),
        status => Err(format!("{status} although {why}")),
    }
}

fn media_type(shape: Shape) -> &'static str {
    match shape {
        Shape::Flat => "application/openehr.wt.flat+json",
        // All other shapes are trees.
        _ => "application/openehr.wt.structured+json",
    }
}

/// Compares two documents without the uid of their version, which the server completes.
fn same(format: &str, sent: &Tree, found: &Tree) -> Result<(), String> {
    let content = |tree: &Tree| {
        let mut document = rm_flat::value(tree);
        if let Some(root) = document.as_object_mut() {
            root.remove("uid");
        }
        document
    };
    let mut differences = Vec::new();
    differ(&mut differences, "", &content(sent), &content(found), false);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!("{format}: {}", shortened(&differences))),
    }
}

/// Returns the uid that a document in FLAT or STRUCTURED has.
fn uid_of_keys(text: &str) -> Option<String> {
    let Ok(Value::Object(members)) = serde_json::from_str(text) else {
        return None;
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    members.iter().find_map(|(key, value)| {
        let is_uid = |key: &str| key == "_uid" || key == "_uid:0";
        match key.split_once('/') {
            Some((_, rest)) if is_uid(rest) => text(value),
            Some(_) => None,
            None => value
                .pointer("/_uid/0")
                .or(value.get("_uid"))
                .and_then(text),
        }
    })
}

/// Returns a uid that no document has. A server refuses a uid of another system, and one in use.
fn new_uid() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("{number:08x}-5b1d-4c0e-9a57-6f3e2d1c0b9a")
}
