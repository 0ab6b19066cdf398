//! Suite `rm.flat_service`: documents in the formats FLAT and STRUCTURED over REST.
//!
//! The documents of the suite `rm.flat` are sent to a server with their template. A document that
//! the library reads and finds valid is stored, and comes back the same as canonical JSON and in
//! both formats. Any other document is refused with a status 4xx. A canonical document with a twin
//! in FLAT is sent as XML and has the keys of its twin.
//!
//! Without `--via` every document is sent to a service on memory and to one on SQLite.

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use crate::rm_flat::{
    self, Library, Made, NOW, SHAPES, compare, differ, is_valid, keys, shape_of, shortened,
};
use crate::rm_json::findings_text;
use crate::server::{Server, expect, tag};
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::rm::tree::Tree;
use aqlite::service::Response;
use aqlite::template::flat::{self, Maker, Shape};
use std::collections::BTreeMap;

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

    /// Sends a document in FLAT or STRUCTURED, and compares the outcome with that of the library.
    fn check_keys(&self, text: &str, shape: Shape) -> Result<(), String> {
        let text = rm_flat::with_time(&rm_flat::with_context(text, shape), shape);
        let Made { template, web, .. } = self.made;
        let read = flat::read(&text, shape, template, web, NOW);
        let expected = read.map_err(|findings| findings_text(&findings));
        let expected = expected.and_then(|tree| {
            let root = tree.root().ok_or("the document is empty")?;
            match is_valid(root, self.made) {
                true => Ok(tree),
                false => Err(String::from("the document is not valid")),
            }
        });
        let answer = self.post(media_type(shape), &text)?;
        let tree = match expected {
            Ok(tree) => tree,
            Err(_) if (400..500).contains(&answer.status) => return Ok(()),
            Err(why) => return Err(format!("{} although {why}", answer.status)),
        };
        expect(&answer, 201)?;
        let uid = tag(&answer)?;
        self.comes_back(&uid, &tree)
    }

    /// Sends a canonical document, and compares its keys with those of its twin.
    fn check_canonical(&self, text: &str, twin: &str) -> Result<(), String> {
        let answer = self.post("application/xml", text)?;
        expect(&answer, 201)?;
        let found = self.get(&tag(&answer)?, media_type(Shape::Flat))?;
        // The server adds the uid of the version.
        let mut found = keys(&found)?;
        found.retain(|key, _| !key.ends_with("/_uid"));
        let mut given = keys(twin)?;
        given.retain(|key, _| !key.ends_with("/_uid"));
        compare(&given, &found)
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
            let own = flat::write(root, shape, template, web, Maker::Better).text;
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

fn media_type(shape: Shape) -> &'static str {
    match shape {
        Shape::Flat => "application/openehr.wt.flat+json",
        Shape::Structured | Shape::StrictStructured => "application/openehr.wt.structured+json",
    }
}

fn same(format: &str, sent: &Tree, found: &Tree) -> Result<(), String> {
    let mut differences = Vec::new();
    let (sent, found) = (rm_flat::value(sent), rm_flat::value(found));
    differ(&mut differences, "", &sent, &found, false);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!("{format}: {}", shortened(&differences))),
    }
}
