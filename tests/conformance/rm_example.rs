//! Suite `rm.example`: every real template has a minimal and a full example. Both are valid and
//! survive canonical JSON and XML. Otherwise the contradicting constraints are named, which is
//! counted separately.

use crate::corpus::Corpus;
use crate::report::Case;
use crate::rm_json::findings_text;
use aqlite::diag::{Finding, Severity};
use aqlite::rm::tree::Tree;
use aqlite::rm::{self, json, xml};
use aqlite::template::{ExampleKind, Template, example, validate};

const NOW: &str = "2026-11-20T09:30:00Z";

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let files = ["rm/opt", "rm/opt_variants"].map(|folder| corpus.files(folder));
    let cases: Vec<Case> = files
        .iter()
        .flatten()
        .flat_map(|file| {
            [ExampleKind::Minimal, ExampleKind::Full].map(|kind| one(corpus, file, kind))
        })
        .collect();
    println!(
        "  templates that contradict themselves, the constraints named: {}",
        cases
            .iter()
            .filter(|case| case.detail.starts_with(NAMED))
            .count()
    );
    cases
}

/// The prefix of a contradiction.
const NAMED: &str = "contradiction: ";

/// Generates the example of a template. If there is none, the contradicting constraints by path are
/// a case of its own.
pub fn made(
    corpus: &Corpus,
    file: &str,
    kind: ExampleKind,
) -> Result<Result<(Template, Tree), String>, String> {
    let text = corpus.text(file)?;
    let template = Template::parse(&text).map_err(|errors| {
        errors
            .iter()
            .map(|e| e.one_line(&text))
            .collect::<Vec<_>>()
            .join("; ")
    })?;
    match example(&template, kind, None, NOW) {
        Ok(tree) => Ok(Ok((template, tree))),
        Err(findings)
            if findings
                .iter()
                .all(|f| f.code == "TPL0601" && !f.path.is_empty()) =>
        {
            Ok(Err(findings_text(&findings)))
        }
        Err(findings) => Err(findings_text(&findings)),
    }
}

fn one(corpus: &Corpus, file: &str, kind: ExampleKind) -> Case {
    let name = file.strip_prefix("rm/").unwrap_or(file);
    let id = format!("{name} {kind:?}");
    match made(corpus, file, kind) {
        Ok(Ok((template, tree))) => Case::check(id, || holds(&template, &tree)),
        Ok(Err(contradiction)) => Case {
            detail: format!("{NAMED}{contradiction}"),
            ..Case::check(id, || Ok(()))
        },
        Err(reason) => Case::check(id, || Err(reason)),
    }
}

/// Checks that the example passes both validators and survives both formats.
fn holds(template: &Template, tree: &Tree) -> Result<(), String> {
    let root = tree.root().ok_or("the example is empty")?;
    let mut findings: Vec<Finding> = rm::validate::validate(root);
    findings.extend(validate(root, template));
    findings.retain(|f| f.severity == Severity::Error);
    if !findings.is_empty() {
        return Err(findings_text(&findings));
    }
    let again = json::read(&json::write(root), root.class())
        .map_err(|findings| findings_text(&findings))?;
    if !again.root().is_some_and(|r| r.same_as(root)) {
        return Err("it comes back from JSON as something else".to_owned());
    }
    let written = xml::write(root, &root.class().name().to_ascii_lowercase())
        .map_err(|finding| finding.one_line())?;
    let again = xml::read(&written, root.class()).map_err(|findings| findings_text(&findings))?;
    if again.root().is_some_and(|r| r.same_as(root)) {
        Ok(())
    } else {
        Err("it comes back from XML as something else".to_owned())
    }
}
