//! Suite `rm.flat`: documents in the formats FLAT and STRUCTURED.
//!
//! Documents with a canonical twin are read into it and written from it. Documents that their
//! makers accept are read. Those that they refuse are refused, either as keys or as documents.
//! Every composition of the corpus, and every example of a template, survives both formats.

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use crate::rm_json::findings_text;
use aqlite::diag::{Finding, Severity};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::tree::{NodeRef, Tree};
use aqlite::rm::{json, xml};
use aqlite::template::flat::{self, FlatDialect, Shape};
use aqlite::template::{self, ExampleKind, Template, WebTemplate, example};
use serde_json::Value;
use std::collections::BTreeMap;

pub const NOW: &str = "2026-11-20T09:30:00Z";

pub const SHAPES: [(&str, Shape); 2] = [("flat", Shape::Flat), ("structured", Shape::Structured)];

/// Prefixes of files whose keys are paths of AQL, which is another format.
const PATH_MAPS: [&str; 2] = ["/content[openEHR", "/composer|"];

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let library = Library::of(corpus);
    let mut cases = twins(corpus, &library);
    cases.extend(accepted(corpus, &library));
    cases.extend(written(corpus, &library));
    cases.extend(round_trips(corpus, &library));
    cases.extend(examples(&library));
    cases
}

/// A template with its web template.
pub struct Made {
    pub name: String,
    pub template: Template,
    pub web: WebTemplate,
}

/// All templates of the corpus.
pub struct Library {
    all: Vec<Made>,
}

impl Library {
    pub fn of(corpus: &Corpus) -> Library {
        let files = ["rm/opt", "rm/better_compat/template", "aql/opt"]
            .into_iter()
            .flat_map(|folder| corpus.files(folder));
        let made = |path: String| {
            let template = Template::parse(&corpus.text(&path).ok()?).ok()?;
            let web = WebTemplate::of(&template);
            Some(Made {
                name: path,
                template,
                web,
            })
        };
        Library {
            all: files
                .filter(|f| f.ends_with(".opt"))
                .filter_map(made)
                .collect(),
        }
    }

    /// Returns the templates of compositions.
    pub fn compositions(&self) -> impl Iterator<Item = &Made> {
        self.all
            .iter()
            .filter(|m| m.web.tree.class == Cls::COMPOSITION)
    }

    pub fn at(&self, path: &str) -> Result<&Made, String> {
        self.all
            .iter()
            .find(|m| m.name == path)
            .ok_or_else(|| format!("there is no template {path}"))
    }

    fn of_document(&self, document: NodeRef<'_>) -> Option<&Made> {
        let id = document.text_along(&[Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE])?;
        self.all.iter().find(|m| m.template.template_id == id)
    }

    /// Returns the templates to which the keys of a text may belong: those whose root id they begin
    /// with, the one in the file name first.
    pub fn of_keys(&self, file: &str, text: &str) -> Vec<&Made> {
        let Ok(Value::Object(members)) = serde_json::from_str::<Value>(text) else {
            return Vec::new();
        };
        let root = |key: &String| {
            key.split(['/', ':', '|'])
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let roots: Vec<String> = members.keys().map(root).filter(|r| r != "ctx").collect();
        let known = |m: &Made, id: &String| id.starts_with('_') || m.web.tree.child(id).is_some();
        let nodes: Vec<String> = members
            .keys()
            .filter_map(|k| k.split('/').nth(1))
            .map(|s| s.split([':', '|']).next().unwrap_or_default().to_owned())
            .collect();
        let is_meant = |m: &&Made| {
            roots.contains(&m.web.tree.id)
                && nodes.iter().filter(|id| !known(m, id)).count() * 3 <= nodes.len()
        };
        let mut found: Vec<&Made> = self.all.iter().filter(is_meant).collect();
        found.sort_by_key(|m| {
            !file
                .replace(' ', "_")
                .contains(&m.template.template_id.replace(' ', "_"))
        });
        found
    }
}

/// Checks documents with a canonical twin.
fn twins(corpus: &Corpus, library: &Library) -> Vec<Case> {
    let mut cases = Vec::new();
    for case in corpus.json_lines("rm/better_compat/cases.jsonl") {
        let name = text_of(&case, "case").to_owned();
        if text_of(&case, "template").is_empty() {
            cases.push(Case::skipped(name, "its template is not here"));
            continue;
        }
        let path = format!("rm/{}", text_of(&case, "template"));
        for (format, shape) in SHAPES {
            cases.push(Case::check(format!("{name} {format} read"), || {
                reads(corpus, &case, library.at(&path)?, format, shape)
            }));
            cases.push(Case::check(format!("{name} {format} written"), || {
                writes(corpus, &case, library.at(&path)?, format, shape)
            }));
        }
        let input = text_of(&case, "input");
        if !input.is_empty() {
            cases.push(Case::check(format!("{name} input"), || {
                accepts(&corpus.text(&format!("rm/{input}"))?, library.at(&path)?)
            }));
        }
    }
    cases
}

/// Checks documents that their makers accept or refuse.
fn accepted(corpus: &Corpus, library: &Library) -> Vec<Case> {
    let lines = corpus.json_lines("rm/index.jsonl");
    let files = lines
        .iter()
        .filter(|l| ["flat", "structured"].contains(&text_of(l, "kind")));
    let case = |line: &Value| {
        let file = text_of(line, "file");
        let text = match corpus.text(&format!("rm/{file}")) {
            Ok(text) => text,
            Err(error) => return Case::check(file, || Err(error)),
        };
        let made = library.of_keys(file, &text);
        if PATH_MAPS
            .iter()
            .any(|start| text.contains(&format!("\"{start}")))
        {
            let any = library.all.first();
            return Case::check(file, || any.map_or(Ok(()), |m| refuses(&text, m)));
        }
        match (made.is_empty(), text_of(line, "expected")) {
            (true, _) => Case::skipped(file, "its template is not here"),
            (false, "invalid") => {
                Case::check(file, || made.iter().try_for_each(|m| refuses(&text, m)))
            }
            _ => Case::check(file, || {
                let outcomes: Vec<Result<(), String>> =
                    made.iter().map(|m| accepts(&text, m)).collect();
                if outcomes.iter().any(Result::is_ok) {
                    Ok(())
                } else {
                    outcomes.into_iter().next().unwrap_or(Ok(()))
                }
            }),
        }
    };
    files.map(case).collect()
}

pub fn shape_of(text: &str) -> Shape {
    let parsed: Value = serde_json::from_str(text).unwrap_or_default();
    let nested = |key: &String, value: &Value| {
        key != "ctx" && !key.contains('/') && (value.is_object() || value.is_array())
    };
    let is_structured = parsed
        .as_object()
        .is_some_and(|o| o.iter().any(|(k, v)| nested(k, v)));
    if is_structured {
        Shape::Structured
    } else {
        Shape::Flat
    }
}

/// Reads a document, and validates it against its template.
fn read(text: &str, shape: Shape, made: &Made) -> Result<Tree, String> {
    let text = with_context(text, shape);
    let tree =
        flat::read(&text, shape, &made.template, &made.web, NOW).map_err(|f| findings_text(&f))?;
    let root = tree.root().ok_or("the document is empty")?;
    let errors: Vec<Finding> = template::validate(root, &made.template)
        .into_iter()
        .filter(|f| f.severity == Severity::Error)
        .collect();
    if errors.is_empty() {
        Ok(tree)
    } else {
        Err(format!("not valid: {}", findings_text(&errors)))
    }
}

pub fn accepts(text: &str, made: &Made) -> Result<(), String> {
    let shape = shape_of(text);
    flat::read(
        &with_context(text, shape),
        shape,
        &made.template,
        &made.web,
        NOW,
    )
    .map(drop)
    .map_err(|f| findings_text(&f))
}

fn refuses(text: &str, made: &Made) -> Result<(), String> {
    if read(text, shape_of(text), made).is_err() {
        Ok(())
    } else {
        Err(String::from("it was read"))
    }
}

/// Returns a text with the values that its sender's server filled in: a composer, a territory.
pub fn with_context(text: &str, shape: Shape) -> String {
    let missing: Vec<&str> = [
        ("composer", "\"composer_self\":true"),
        ("territory", "\"territory\":\"SI\""),
    ]
    .into_iter()
    .filter(|(key, _)| !text.contains(key))
    .map(|(_, member)| member)
    .collect();
    with_members(text, shape, &missing)
}

/// Returns a text whose times that the sender left open are [`NOW`].
pub fn with_time(text: &str, shape: Shape) -> String {
    let parsed: Value = serde_json::from_str(text).unwrap_or_default();
    let is_given = ["/ctx~1time", "/ctx/time"]
        .iter()
        .any(|pointer| parsed.pointer(pointer).is_some());
    let member = format!("\"time\":\"{NOW}\"");
    let missing = (!is_given).then_some(member.as_str());
    with_members(text, shape, missing.as_slice())
}

/// Returns a text with more members of its context.
fn with_members(text: &str, shape: Shape, missing: &[&str]) -> String {
    let has_object = text.contains("\"ctx\"");
    match text.find('{') {
        _ if missing.is_empty() => text.to_owned(),
        Some(_) if has_object => {
            let at = text
                .find("\"ctx\"")
                .and_then(|at| Some(at + text.get(at..)?.find('{')? + 1))
                .unwrap_or_default();
            format!("{}{},{}", &text[..at], missing.join(","), &text[at..])
        }
        Some(at) => {
            let members = match shape {
                Shape::Flat => missing
                    .iter()
                    .map(|m| m.replacen('"', "\"ctx/", 1))
                    .collect::<Vec<_>>()
                    .join(","),
                // All other shapes are trees.
                _ => format!("\"ctx\":{{{}}}", missing.join(",")),
            };
            let is_empty = text[at + 1..].trim_start().starts_with('}');
            format!(
                "{}{{{members}{}{}",
                &text[..at],
                if is_empty { "" } else { "," },
                &text[at + 1..]
            )
        }
        None => text.to_owned(),
    }
}

/// Checks the keys of canonical documents against given ones.
fn written(corpus: &Corpus, library: &Library) -> Vec<Case> {
    let files = corpus
        .files("rm/flat/ehrbase")
        .into_iter()
        .filter(|f| f.ends_with(".xml.flat.json"));
    let case = |file: String| {
        let stem = file
            .trim_start_matches("rm/flat/ehrbase/")
            .trim_end_matches(".xml.flat.json");
        let Ok(text) = corpus.text(&format!("rm/composition_xml/{stem}.xml")) else {
            return Case::skipped(format!("{stem} written"), "its XML is not here");
        };
        Case::check(format!("{stem} written"), || {
            let tree = xml::read(&text, Cls::COMPOSITION).map_err(|f| findings_text(&f))?;
            let root = tree.root().ok_or("the document is empty")?;
            let made = library
                .of_document(root)
                .ok_or("its template is not here")?;
            let text = write(root, Shape::Flat, made, FlatDialect::Better)?;
            compare(&keys(&corpus.text(&file)?)?, &keys(&text)?)
        })
    };
    files.map(case).collect()
}

/// Checks that every composition of the corpus survives both formats.
fn round_trips(corpus: &Corpus, library: &Library) -> Vec<Case> {
    let lines = corpus.json_lines("rm/index.jsonl");
    let files = lines.iter().filter(|l| {
        text_of(l, "file").starts_with("composition_") && text_of(l, "expected") != "invalid"
    });
    let mut cases = Vec::new();
    for line in files {
        let file = text_of(line, "file");
        let text = corpus.text(&format!("rm/{file}")).unwrap_or_default();
        let parsed = if file.ends_with(".xml") {
            xml::read(&text, Cls::COMPOSITION)
        } else {
            json::read(&text, Cls::COMPOSITION)
        };
        let Some((tree, made)) = parsed
            .ok()
            .and_then(|tree| Some((library.of_document(tree.root()?)?, tree)))
            .map(|(m, t)| (t, m))
        else {
            continue;
        };
        if tree.root().is_none_or(|r| r.get(Attr::COMPOSER).is_none()) {
            continue; // whoever reads it again must say who wrote it
        }
        for (format, shape) in SHAPES {
            cases.push(Case::check(format!("{file} {format} and back"), || {
                comes_back(&tree, shape, made, false)
            }));
        }
    }
    cases
}

/// Writes a document in one of the formats.
fn write(
    root: NodeRef<'_>,
    shape: Shape,
    made: &Made,
    dialect: FlatDialect,
) -> Result<String, String> {
    flat::write(root, shape, &made.template, &made.web, dialect)
        .map(|written| written.text)
        .map_err(|problem| problem.to_string())
}

/// Checks that a document survives the format. An example, which has nothing to complete, must also
/// be written identically.
fn comes_back(tree: &Tree, shape: Shape, made: &Made, is_example: bool) -> Result<(), String> {
    let root = tree.root().ok_or("the document is empty")?;
    for dialect in [FlatDialect::Better, FlatDialect::Ehrbase] {
        let text = write(root, shape, made, dialect)?;
        // A document that its own template refuses may not fit any keys.
        if is_valid(root, made) {
            without_raw(&text)?;
        }
        let again = flat::read(&text, shape, &made.template, &made.web, NOW)
            .map_err(|f| format!("{dialect:?}: {}", findings_text(&f)))?;
        let mut found = Vec::new();
        differ(&mut found, "", &value(tree), &value(&again), false);
        if !found.is_empty() {
            return Err(format!("{dialect:?}: {}", shortened(&found)));
        }
        let again = again.root().ok_or("the document is empty")?;
        let second = write(again, shape, made, dialect)?;
        if is_example && second != text {
            let (first, second) = (keys(&text)?, keys(&second)?);
            let differs = |a: &BTreeMap<String, Value>, b: &BTreeMap<String, Value>| {
                a.iter()
                    .filter(|(k, v)| b.get(*k) != Some(v))
                    .map(|(k, v)| format!("{k}={v}").chars().take(200).collect())
                    .collect::<Vec<String>>()
            };
            return Err(format!(
                "{dialect:?}: first {:?}, then {:?}",
                differs(&first, &second),
                differs(&second, &first)
            )
            .chars()
            .take(1500)
            .collect());
        }
    }
    Ok(())
}

/// Checks that a valid document survives both formats and dialects, none of which needs canonical
/// JSON for it.
pub fn comes_back_without_raw(tree: &Tree, made: &Made) -> Result<(), String> {
    let root = tree.root().ok_or("the document is empty")?;
    SHAPES.into_iter().try_for_each(|(name, shape)| {
        without_raw(&write(root, shape, made, FlatDialect::Better)?)?;
        comes_back(tree, shape, made, false).map_err(|problem| format!("{name}: {problem}"))
    })
}

/// Checks that the examples of every template survive both formats.
fn examples(library: &Library) -> Vec<Case> {
    let mut cases = Vec::new();
    for made in library.compositions() {
        for kind in [ExampleKind::Full, ExampleKind::Minimal] {
            let Ok(tree) = example(&made.template, kind, None, NOW) else {
                continue;
            };
            for (format, shape) in SHAPES {
                cases.push(Case::check(
                    format!("{} {kind:?} example {format} and back", made.name),
                    || comes_back(&tree, shape, made, true),
                ));
            }
        }
    }
    cases
}

fn canonical(corpus: &Corpus, case: &Value) -> Result<Tree, String> {
    xml::read(
        &corpus.text(&format!("rm/{}", text_of(case, "raw_xml")))?,
        Cls::COMPOSITION,
    )
    .map_err(|f| findings_text(&f))
}

pub fn value(tree: &Tree) -> Value {
    tree.root()
        .and_then(|r| serde_json::from_str::<Value>(&json::write(r)).ok())
        .unwrap_or_default()
}

pub fn shortened(found: &[String]) -> String {
    format!(
        "{} differences: {}",
        found.len(),
        found.iter().take(8).cloned().collect::<Vec<_>>().join("; ")
    )
}

fn reads(
    corpus: &Corpus,
    case: &Value,
    made: &Made,
    format: &str,
    shape: Shape,
) -> Result<(), String> {
    let text = corpus.text(&format!("rm/{}", text_of(case, format)))?;
    let expected = canonical(corpus, case)?;
    let says_composer = text.contains("composer");
    let tree = flat::read(
        &with_context(&text, shape),
        shape,
        &made.template,
        &made.web,
        NOW,
    )
    .map_err(|f| findings_text(&f))?;
    let mut found = Vec::new();
    differ(&mut found, "", &value(&expected), &value(&tree), true);
    found.retain(|f| says_composer || !f.starts_with("/composer"));
    if found.is_empty() {
        Ok(())
    } else {
        Err(shortened(&found))
    }
}

fn writes(
    corpus: &Corpus,
    case: &Value,
    made: &Made,
    format: &str,
    shape: Shape,
) -> Result<(), String> {
    let tree = canonical(corpus, case)?;
    let root = tree.root().ok_or("the document is empty")?;
    let made = keys(&write(root, shape, made, FlatDialect::Better)?)?;
    let given = keys(&corpus.text(&format!("rm/{}", text_of(case, format)))?)?;
    compare(&given, &made)
}

pub fn compare(
    given: &BTreeMap<String, Value>,
    made: &BTreeMap<String, Value>,
) -> Result<(), String> {
    let mut found = Vec::new();
    for (key, value) in given
        .iter()
        .filter(|(k, _)| !k.starts_with("ctx>generic_fields"))
    {
        match made.get(key) {
            None => found.push(format!("{key} is missing")),
            Some(other) if !same(value, other) => {
                found.push(format!("{key} is {other} instead of {value}"))
            }
            Some(_) => {}
        }
    }
    found.extend(
        made.iter()
            .filter(|(k, v)| !given.contains_key(*k) && !is_extra(k, v))
            .map(|(k, _)| format!("{k} is too much")),
    );
    if found.is_empty() {
        Ok(())
    } else {
        Err(shortened(&found))
    }
}

/// Content that the makers of the given files lose and this implementation writes: suffixes, the
/// context of a template without one, and the state of a transition that the template leaves open.
/// `docs/simplified-formats.md` lists them.
const ADDED: [&str; 8] = [
    "|precision",
    "|data",
    "_history_origin",
    "ordinal|terminology",
    "relationship|",
    "|preferred_term",
    "/_context/",
    "ism_transition/current_state",
];

/// Returns whether a key has more content than the given files: content that their writers lose,
/// and the fields of forms, which STRUCTURED of other systems has in `ctx`.
fn is_extra(key: &str, value: &Value) -> bool {
    let key = &key.replace("[0]", "").replace('>', "/");
    let is_field = key
        .split('/')
        .nth(1)
        .is_some_and(|k| k.starts_with("_feeder_audit"));
    // Readers complete the pattern of any action. Any other pattern must be written.
    let is_pattern = key.ends_with("/action_archetype_id") && value != "/.*/";
    is_field || is_pattern || ADDED.iter().any(|e| key.contains(e)) || key == "ctx/composer_self"
}

pub fn is_valid(root: NodeRef<'_>, made: &Made) -> bool {
    let mut findings = aqlite::rm::validate::validate(root);
    findings.extend(template::validate(root, &made.template));
    findings.iter().all(|f| f.severity != Severity::Error)
}

/// Checks the keys that hold canonical JSON. Only objects without a node in the template may have
/// one.
fn without_raw(text: &str) -> Result<(), String> {
    let has_no_node = |key: &str, value: &Value| {
        let path = key.trim_end_matches("|raw").trim_end_matches('>');
        let last = path.rsplit(['/', '>']).next().unwrap_or_default();
        last.starts_with('_')
            && value
                .as_str()
                .is_some_and(|json| json.contains("\"archetype_node_id\""))
    };
    let raw: Vec<String> = keys(text)?
        .into_iter()
        .filter(|(key, value)| key.ends_with("|raw") && !has_no_node(key, value))
        .map(|(key, _)| key)
        .collect();
    if raw.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "{} times |raw: {}",
            raw.len(),
            raw.iter().take(4).cloned().collect::<Vec<_>>().join(" ")
        ))
    }
}

/// Returns every scalar of a JSON text by its path.
pub fn keys(text: &str) -> Result<BTreeMap<String, Value>, String> {
    fn walk(path: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(k, v)| {
                walk(
                    &if path.is_empty() {
                        k.clone()
                    } else {
                        format!("{path}>{k}")
                    },
                    v,
                    into,
                )
            }),
            Value::Array(list) => list
                .iter()
                .enumerate()
                .for_each(|(i, v)| walk(&format!("{path}[{i}]"), v, into)),
            other => drop(into.insert(path.to_owned(), other.clone())),
        }
    }
    let mut into = BTreeMap::new();
    walk(
        "",
        &serde_json::from_str(text).map_err(|e| e.to_string())?,
        &mut into,
    );
    Ok(into)
}

/// Compares numbers by value, and times with or without zero seconds.
fn same(a: &Value, b: &Value) -> bool {
    let number = |v: &Value| v.as_f64().or_else(|| v.as_str()?.parse().ok());
    let text = |v: &Value| v.as_str().map(short_time);
    let parsed = |v: &Value| {
        v.as_str()
            .filter(|t| t.trim_start().starts_with('{'))
            .and_then(|t| serde_json::from_str::<Value>(t).ok())
    };
    a == b
        || number(a)
            .zip(number(b))
            .is_some_and(|(a, b)| (a - b).abs() <= 1e-6 * a.abs().max(1.0))
        || text(a).is_some() && text(a) == text(b)
        || parsed(a).is_some() && parsed(a) == parsed(b)
}

/// Shortens a time by zero seconds and digits, a duration by zero parts.
fn short_time(text: &str) -> String {
    if text.starts_with('P') {
        let short = text
            .split_inclusive(|c: char| c.is_ascii_alphabetic())
            .filter(|part| !part.starts_with('0'))
            .collect::<String>();
        return short.trim_end_matches('T').to_owned();
    }
    let zone = text
        .rfind(['Z', '+', '-'])
        .filter(|at| text.find('T').is_some_and(|t| t < *at))
        .unwrap_or(text.len());
    let (time, zone) = text.split_at(zone);
    let time = if time.contains('.') {
        time.trim_end_matches('0').trim_end_matches('.')
    } else {
        time
    };
    let has_seconds = time.matches(':').count() == 2;
    format!(
        "{}{zone}",
        time.strip_suffix(":00")
            .filter(|_| has_seconds)
            .unwrap_or(time)
    )
}

/// Content that the formats do not carry, or complete in their own way.
const FREE: [&str; 8] = [
    "rm_version",
    "precision",
    "size",
    "lower_included",
    "upper_included",
    "lower_unbounded",
    "upper_unbounded",
    "data",
];

/// Collects the differences of two documents, except those that the formats permit. `lossy`
/// documents were written by other systems.
pub fn differ(found: &mut Vec<String>, path: &str, given: &Value, made: &Value, lossy: bool) {
    match (given, made) {
        (Value::Object(given), Value::Object(made)) => {
            for key in given
                .keys()
                .chain(made.keys().filter(|k| !given.contains_key(*k)))
            {
                let is_reference =
                    key == "type" && (path.ends_with("/external_ref") || path.ends_with("_id"));
                let is_of_archetype = key == "archetype_details" && given.get(key).is_none()
                    || path.ends_with("/archetype_details");
                if !lossy && (is_of_archetype || path.ends_with("/uid")) {
                    continue;
                }
                let is_free = FREE.contains(&key.as_str())
                    && (given.get(key).is_none() || made.get(key).is_none());
                if is_free && (lossy || given.get(key).is_none())
                    || key == "rm_version"
                    || is_reference
                {
                    continue;
                }
                if key == "_type" && path.ends_with("/uid") && lossy {
                    continue;
                }
                differ(
                    found,
                    &format!("{path}/{key}"),
                    given.get(key).unwrap_or(&Value::Null),
                    made.get(key).unwrap_or(&Value::Null),
                    lossy,
                );
            }
        }
        (Value::Array(given), Value::Array(made)) if given.len() == made.len() => {
            let (given, made) = if lossy {
                (given.clone(), made.clone())
            } else {
                (by_node(given), by_node(made))
            };
            given
                .iter()
                .zip(&made)
                .enumerate()
                .for_each(|(i, (g, m))| differ(found, &format!("{path}[{i}]"), g, m, lossy));
        }
        (Value::String(given), Value::String(made))
            if path.ends_with("/name/value")
                && (plain(given) == plain(made) || !lossy && is_structure(path)) => {}
        (given, made)
            if if lossy {
                same(given, made)
            } else {
                given == made
            } => {}
        // An empty list equals an absent one.
        (Value::Array(list), Value::Null) | (Value::Null, Value::Array(list))
            if list.is_empty() => {}
        (given, made) => {
            let short = |v: &Value| v.to_string().chars().take(120).collect::<String>();
            found.push(format!(
                "{path}: {} instead of {}",
                short(made),
                short(given)
            ));
        }
    }
}

/// Sorts the members of a list by node. Members of one node keep their order.
fn by_node(members: &[Value]) -> Vec<Value> {
    let mut members = members.to_vec();
    members.sort_by_key(|m| {
        (
            text_of(m, "archetype_node_id").to_owned(),
            text_of(m, "_type").to_owned(),
        )
    });
    members
}

/// Returns whether a path is a level without a key. Its name is that of the template.
fn is_structure(path: &str) -> bool {
    let owner = path.trim_end_matches("/name/value");
    let last = owner.rsplit('/').next().unwrap_or_default();
    [
        "data",
        "state",
        "protocol",
        "description",
        "other_context",
        "items[",
        "events[",
    ]
    .iter()
    .any(|l| last.starts_with(l))
}

fn plain(name: &str) -> &str {
    name.split(" #").next().unwrap_or(name)
}
