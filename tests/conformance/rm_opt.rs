//! Suite `rm.opt`: every real template reads, under its own template id; every broken one is refused.

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use aqlite::template::Template;
use serde_json::Value;

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let index = corpus.json_lines("rm/index.jsonl");
    index.iter().filter_map(|entry| template(corpus, entry)).collect()
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
            (Err(errors), false) if !errors.is_empty() => Ok(()),
            (Ok(_), false) => Err("it was accepted".to_owned()),
            (Err(errors), _) => Err(errors.iter().map(|e| e.one_line(&text)).collect::<Vec<_>>().join("; ")),
        }
    }))
}

fn is_named(template: &Template, id: &str) -> Result<(), String> {
    if id.is_empty() || template.template_id == id.trim() { Ok(()) } else { Err(format!("it calls itself `{}`", template.template_id)) }
}
