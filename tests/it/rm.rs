//! Documents that must be returned as they were sent, or be refused
//! (`tests/cases/rm/round_trips.txt`).

use aqlite::diag::Finding;
use aqlite::rm::class::Cls;
use aqlite::rm::{json, xml};

#[test]
fn documents_are_returned_as_sent() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/cases/rm/round_trips.txt"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let wrong: Vec<String> = text
        .split("\n=== ")
        .skip(1)
        .filter_map(|case| Some(format!("{}: {}", case.lines().next()?, problem(case)?)))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(text.matches("\n=== ").count() > 30);
}

fn problem(case: &str) -> Option<String> {
    let (title, body) = case.split_once('\n')?;
    let (sent, refused) = body
        .split_once("\nrefused\n")
        .map_or((body, None), |(sent, refused)| (sent, Some(refused.trim())));
    let (sent, in_xml) = (sent.trim(), !title.contains("(JSON"));
    let messages = |findings: Vec<Finding>| {
        findings
            .iter()
            .map(Finding::one_line)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let tree = match (json::read(sent, Cls::ANY), refused) {
        (Ok(tree), None) => tree,
        (Ok(_), Some(_)) => return Some("it was read".to_owned()),
        (Err(findings), refused) => {
            let found = messages(findings);
            return (Some(found.as_str()) != refused).then_some(found);
        }
    };
    let root = tree.root()?;
    if json::write(root) != sent {
        return Some(format!("as JSON it became {}", json::write(root)));
    }
    let written = match xml::write(root, "value") {
        Ok(written) if in_xml => written,
        Ok(_) => return None,
        Err(finding) => return Some(finding.one_line()),
    };
    match xml::read(&written, Cls::ANY) {
        Ok(again) => again
            .root()
            .map(json::write)
            .filter(|again| again != sent)
            .map(|again| format!("through XML it became {again}: {written}")),
        Err(findings) => Some(format!("{}: {written}", messages(findings))),
    }
}
