//! Suite `aql.parse`: queries of the grammar of AQL 1.1.0 are accepted, all others are refused with
//! a position.
//!
//! The second grammar of the corpus has the function `CONTAINS(…)`, which the grammar of 1.1.0
//! cannot parse although its text defines it. A query of either grammar is accepted here. An
//! accepted query is printed and parsed again as the same tree.

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use aqlite::aql::ast::Query;
use aqlite::aql::{parse, print};
use serde_json::Value;

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let text = corpus.text("aql/parse.json").unwrap_or_default();
    let file: Value = serde_json::from_str(&text).unwrap_or_default();
    file.get("items")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(case)
        .collect()
}

fn case(item: &Value) -> Case {
    let (id, query) = (text_of(item, "id"), text_of(item, "q"));
    let verdicts: Vec<&str> = ["spec_grammar_1_1_0", "ehrbase_sdk_grammar"]
        .iter()
        .filter_map(|key| item.get(key)?.as_str())
        .collect();
    if verdicts.is_empty() {
        return Case::skipped(id, "the corpus gives no verdict");
    }
    Case::check(id, || agrees(query, verdicts.contains(&"ok")))
}

fn agrees(query: &str, valid: bool) -> Result<(), String> {
    let (tree, diagnostics) = parse(query);
    match (tree, diagnostics.first()) {
        (Some(tree), _) if valid => reads_back(&tree),
        (Some(_), _) => Err("accepted, but not AQL".to_owned()),
        (None, None) => Err("refused without a reason".to_owned()),
        (None, Some(first)) if valid => Err(first.one_line(query)),
        (None, Some(first)) if first.span.end <= query.len() => Ok(()),
        (None, Some(first)) => Err(format!("the place is outside the text: {:?}", first.span)),
    }
}

fn reads_back(tree: &Query) -> Result<(), String> {
    let printed = print(tree);
    match parse(&printed) {
        (Some(again), _) if again == *tree => Ok(()),
        _ => Err(format!("what is printed reads differently: {printed}")),
    }
}
