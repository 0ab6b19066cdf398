//! Suite `rm.opt`: every real template is read under its own template id, every broken one is
//! refused. The published examples of ADL 2 are read, too.

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use aqlite::diag::Diagnostic;
use aqlite::template::Template;
use serde_json::Value;

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let index = corpus.json_lines("rm/index.jsonl");
    let published = corpus.files("rm/reference/xsd/v1_Release-1.0.2v2/components/AOM2/examples");
    index
        .iter()
        .filter_map(|entry| template(corpus, entry))
        .chain(published.iter().map(|file| of_adl2(corpus, file)))
        .collect()
}

/// Reads a published example of AOM 2 XML: its id and its terms. Its definition may be opaque.
fn of_adl2(corpus: &Corpus, file: &str) -> Case {
    Case::check(file, || {
        let text = corpus.text(file)?;
        let template = Template::parse_opt2(&text).map_err(|errors| {
            errors
                .iter()
                .map(|e| e.one_line(&text))
                .collect::<Vec<_>>()
                .join("; ")
        })?;
        let has_terms = template.roots.iter().any(|root| {
            root.terms
                .values()
                .any(|terms| terms.values().all(|t| !t.text.is_empty()))
        });
        if has_terms {
            Ok(())
        } else {
            Err(format!("`{}` has no terms", template.template_id))
        }
    })
}

fn template(corpus: &Corpus, entry: &Value) -> Option<Case> {
    let file = text_of(entry, "file");
    let is_good = match file.split('/').next()? {
        "opt" | "opt_variants" => true,
        "opt_invalid" => false,
        _ => return None,
    };
    Some(Case::check(file, || {
        let text = corpus.text(&format!("rm/{file}"))?;
        match (Template::parse(&text), is_good) {
            (Ok(template), true) => is_named(&template, text_of(entry, "template_id")),
            (Err(errors), false) if !errors.is_empty() => are_placed(&errors, &text),
            (Ok(_), false) => Err("it was accepted".to_owned()),
            (Err(errors), _) => Err(errors
                .iter()
                .map(|e| e.one_line(&text))
                .collect::<Vec<_>>()
                .join("; ")),
        }
    }))
}

/// Checks that each reason has a position in the text with line and column.
fn are_placed(errors: &[Diagnostic], text: &str) -> Result<(), String> {
    let is_placed = |error: &&Diagnostic| {
        text.is_empty() || (error.span.start < error.span.end && error.span.end <= text.len())
    };
    match errors.iter().find(|error| !is_placed(error)) {
        Some(error) => Err(format!("no position is given: {}", error.one_line(text))),
        None => Ok(()),
    }
}

fn is_named(template: &Template, id: &str) -> Result<(), String> {
    if id.is_empty() || template.template_id == id.trim() {
        Ok(())
    } else {
        Err(format!("it calls itself `{}`", template.template_id))
    }
}
