//! Suite `rm.xml`: XML that is read and written as JSON equals the independent conversion. XML that
//! is written again is read as the same document.

use crate::corpus::{Corpus, text_of};
use crate::raw::Raw;
use crate::report::Case;
use crate::rm_json::{findings_text, is_refused, kind_of};
use aqlite::rm::class::Cls;
use aqlite::rm::{json, xml};
use serde_json::Value;

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let index = corpus.json_lines("rm/index.jsonl");
    let conversions = index
        .iter()
        .filter(|entry| !text_of(entry, "pair_xml").is_empty())
        .map(|entry| conversion(corpus, entry));
    let documents = index
        .iter()
        .filter(|entry| kind_of(entry) != Cls::ANY && text_of(entry, "kind").ends_with("_xml"));
    conversions
        .chain(documents.filter_map(|entry| document(corpus, entry)))
        .collect()
}

/// Checks an XML document against its independent conversion.
fn conversion(corpus: &Corpus, entry: &Value) -> Case {
    let file = text_of(entry, "file");
    Case::check(file, || {
        let text = corpus.text(&format!("rm/{}", text_of(entry, "pair_xml")))?;
        let read = xml::read(&text, Cls::COMPOSITION);
        if text_of(entry, "expected") == "refused" {
            return is_refused(read.err(), text_of(entry, "why"));
        }
        let tree = read.map_err(|findings| findings_text(&findings))?;
        let written = json::write(tree.root().ok_or("the tree is empty")?);
        let expected = Raw::parse(&corpus.text(&format!("rm/{file}"))?)?;
        expected
            .difference(&Raw::parse(&written)?)
            .map_or(Ok(()), Err)
    })
}

/// Checks that an XML document loses nothing when it is written again, nor through JSON.
fn document(corpus: &Corpus, entry: &Value) -> Option<Case> {
    let file = text_of(entry, "file");
    let class = kind_of(entry);
    let text = corpus.text(&format!("rm/{file}"));
    let read = |text: &str| xml::read(text, class).map_err(|findings| findings_text(&findings));
    match text_of(entry, "expected") {
        "valid" => Some(Case::check(file, || keeps(&text?, class))),
        "refused" => Some(Case::check(file, || {
            is_refused(xml::read(&text?, class).err(), text_of(entry, "why"))
        })),
        "valid?" => Some(match text.as_deref().map_err(Clone::clone).and_then(read) {
            Err(reason) => Case::skipped(file, format!("no verdict, refused: {reason}")),
            Ok(_) => Case::check(file, || keeps(&text?, class)),
        }),
        _ => None,
    }
}

fn keeps(text: &str, class: Cls) -> Result<(), String> {
    let tree = xml::read(text, class).map_err(|findings| findings_text(&findings))?;
    let root = tree.root().ok_or("the tree is empty")?;
    let name = class.name().to_ascii_lowercase();
    let written = xml::write(root, &name).map_err(|finding| finding.one_line())?;
    let again = xml::read(&written, class).map_err(|findings| findings_text(&findings))?;
    let through =
        json::read(&json::write(root), Cls::ANY).map_err(|findings| findings_text(&findings))?;
    let same = [again, through]
        .iter()
        .all(|t| t.root().is_some_and(|r| r.same_as(root)));
    if same {
        Ok(())
    } else {
        Err("it reads back differently".to_owned())
    }
}
