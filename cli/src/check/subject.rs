//! The checks of a file, by its content.

use super::problem::{CheckedText, Problem};
use crate::data::content::Content;
use crate::data::document::{Document, Reader, below};
use crate::data::files::{self, SourceFile};
use crate::data::load::is_lines;
use crate::data::locate::span_of;
use crate::data::templates::{self, Templates, may_be_template};
use crate::progress::Progress;
use aqlite::diag::{Diagnostic, Finding, Span};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::imported::standard_form;
use aqlite::rm::tree::{NodeRef, Tree};
use aqlite::rm::validate::validate;
use aqlite::template::Template;
use aqlite::{aql, gdl, template};
use std::io::{self, BufRead, BufReader};
use std::rc::Rc;

/// The checks, with the templates of queries and compositions.
pub struct Checker<'c> {
    /// The templates.
    pub templates: &'c Templates,
    /// Whether a composition without its template gets a warning.
    pub expects_templates: bool,
    /// The time that completes FLAT and STRUCTURED.
    pub now: String,
    /// Counts the bytes that were checked.
    pub progress: &'c Progress,
}

/// Returns the template of a file; `None` if it is none, or has errors.
pub fn template_of(file: &SourceFile) -> Option<Template> {
    if !may_be_template(file) {
        return None;
    }
    let text = files::read_text(&file.path).ok()?;
    if Content::of(&text) != Content::Template {
        return None;
    }
    templates::parse(&text).ok()
}

impl Checker<'_> {
    /// Returns the problems of a file; of a file of lines some only, if the user pressed Ctrl-C.
    pub fn check(&self, file: &SourceFile) -> Vec<Problem> {
        let path = file.shown();
        if is_lines(file) {
            return self.check_lines(&path, file);
        }
        let bytes = match files::read(&file.path) {
            Ok(bytes) => bytes,
            Err(error) => return vec![unreadable((&path, 1), "CLI0001", &error.to_string())],
        };
        let Ok(text) = String::from_utf8(bytes) else {
            return vec![not_utf8((&path, 1))];
        };
        self.progress.advance(file.size);
        self.progress.show();
        let is_query = file.ending() == "aql";
        let source = Rc::new(CheckedText {
            path,
            text,
            line: 1,
        });
        if is_query {
            return diagnosed(&source, self.of_query(&source.text));
        }
        match Content::of(&source.text) {
            Content::Aql => diagnosed(&source, self.of_query(&source.text)),
            Content::Template => diagnosed(&source, of_template(&source.text)),
            Content::Guide => diagnosed(&source, of_guide(&source.text)),
            _ => self.check_document(&source),
        }
    }

    /// Returns the problems of a query, compared with the templates.
    fn of_query(&self, text: &str) -> Vec<Diagnostic> {
        let templates: Vec<&Template> = self.templates.all().map(|t| &t.template).collect();
        aql::diagnose_with(text, &templates).all()
    }

    /// Returns the problems of the lines of a file. Holds one line at a time.
    fn check_lines(&self, path: &str, file: &SourceFile) -> Vec<Problem> {
        let unread =
            |number, error: io::Error| unreadable((path, number), "CLI0001", &error.to_string());
        let mut reader = match files::open(&file.path) {
            Ok(opened) => BufReader::with_capacity(1 << 18, opened),
            Err(error) => return vec![unread(1, error)],
        };
        let (mut problems, mut line) = (Vec::new(), Vec::new());
        for number in 1.. {
            line.clear();
            let length = match reader.read_until(b'\n', &mut line) {
                Ok(length) => length,
                Err(error) => {
                    problems.push(unread(number, error));
                    break;
                }
            };
            self.progress.show();
            if length == 0 || !self.progress.advance(length as u64) {
                break;
            }
            problems.extend(self.check_line((path, number), &line));
        }
        problems
    }

    fn check_line(&self, (path, number): (&str, usize), line: &[u8]) -> Vec<Problem> {
        if line.trim_ascii().is_empty() {
            return Vec::new();
        }
        let Ok(line) = std::str::from_utf8(line) else {
            return vec![not_utf8((path, number))];
        };
        self.check_document(&Rc::new(CheckedText {
            path: path.to_owned(),
            text: line.trim_end_matches(['\r', '\n']).to_owned(),
            line: number,
        }))
    }

    fn check_document(&self, source: &Rc<CheckedText>) -> Vec<Problem> {
        let reader = Reader {
            templates: self.templates,
            now: &self.now,
        };
        let findings = match reader.read(&source.text) {
            Ok(documents) => documents
                .iter()
                .flat_map(|document| self.findings(document))
                .collect(),
            Err(findings) => findings,
        };
        let problem = |finding: &Finding| {
            let span = stated(&source.text, finding).or_else(|| span_of(&source.text, finding));
            Problem::of_finding(source, finding, span)
        };
        findings.iter().map(problem).collect()
    }

    /// Returns the findings of a document and of the VERSION around it.
    fn findings(&self, document: &Document) -> Vec<Finding> {
        let version = document.version.as_ref();
        let mut findings = below(version.map_or_else(Vec::new, of_version), &document.place);
        if let Some(root) = document.tree.root() {
            let data = match version.and_then(Tree::root).map(NodeRef::class) {
                Some(Cls::IMPORTED_VERSION) => "/item/data",
                Some(_) => "/data",
                None => "",
            };
            let place = format!("{}{data}", document.place);
            findings.extend(below(self.of_data(root, document.is_draft), &place));
        }
        findings
    }

    /// Returns the findings of the model and of the template of a document.
    fn of_data(&self, root: NodeRef<'_>, is_draft: bool) -> Vec<Finding> {
        let mut findings = validate(root);
        if root.class() != Cls::COMPOSITION {
            return findings;
        }
        let id = [Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE];
        let id = root.text_along(&id);
        match id.and_then(|id| self.templates.get(id)) {
            Some(found) => {
                findings.extend(match is_draft {
                    true => template::validate_draft(root, &found.template),
                    false => template::validate(root, &found.template),
                });
                template::label_findings(root, &found.template, &mut findings);
            }
            None if self.expects_templates => {
                let path = "/archetype_details/template_id/value";
                let problem = "the template is not among the data, so its rules are not checked";
                let finding = Finding::warning("CLI0105", path, problem);
                findings.push(finding.found(id.unwrap_or("no template id")));
            }
            None => {}
        }
        findings
    }
}

/// Returns the place that a message about malformed text states: `line 3, column 5`.
fn stated(text: &str, finding: &Finding) -> Option<Span> {
    let number = |name: &str| -> Option<usize> {
        let (_, rest) = finding.message.split_once(name)?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let (line, column) = (number("line ")?, number("column ")?);
    let lines = text.split_inclusive('\n');
    let start: usize = lines.take(line.checked_sub(1)?).map(str::len).sum();
    let in_line = text.get(start..)?.lines().next().unwrap_or_default();
    let character = in_line.char_indices().nth(column.checked_sub(1)?);
    let at = start + character.map_or(in_line.len(), |(at, _)| at);
    Some(Span::new(at, at))
}

/// Returns the findings of the model in a VERSION without its data.
fn of_version(version: &Tree) -> Vec<Finding> {
    let mut bare = version.clone();
    if let Some(id) = bare.root().map(NodeRef::id) {
        bare.remove(id, Attr::DATA);
    }
    standard_form(bare).root().map_or_else(Vec::new, validate)
}

fn of_template(text: &str) -> Vec<Diagnostic> {
    match templates::parse(text) {
        Ok(template) => template.warnings,
        Err(found) => found,
    }
}

fn of_guide(text: &str) -> Vec<Diagnostic> {
    match gdl::parse(text) {
        Ok(guide) => guide.compile().problems,
        Err(found) => found,
    }
}

fn diagnosed(source: &Rc<CheckedText>, found: Vec<Diagnostic>) -> Vec<Problem> {
    let problem = |diagnostic| Problem {
        source: Rc::clone(source),
        diagnostic,
    };
    found.into_iter().map(problem).collect()
}

/// Returns the problem of a text, or a line of one, that cannot be decoded.
fn not_utf8(place: (&str, usize)) -> Problem {
    unreadable(place, "CLI0002", "the text is no UTF-8")
}

/// Returns a problem of a text that cannot be read, with its path and its first line.
fn unreadable((path, line): (&str, usize), code: &'static str, message: &str) -> Problem {
    Problem {
        source: Rc::new(CheckedText {
            path: path.to_owned(),
            text: String::new(),
            line,
        }),
        diagnostic: Diagnostic::error(code, Span::default(), message),
    }
}
