//! Lines of an export of the service (`GET /v1/admin/export`): records with their digests.

use super::document::{Document, below, read_version};
use aqlite::diag::Finding;
use aqlite::document::digest_of_text;
use aqlite::rm::json::{self, elements, members};

/// Reads the versions of a line `{digest, record}`. Definitions, parties and the end have none.
///
/// # Errors
/// Findings of the versions; one finding if the record was altered.
pub fn read(line: &str) -> Result<Vec<Document>, Vec<Finding>> {
    let malformed = |problem| vec![json::finding(line, problem)];
    let all = members(line).map_err(malformed)?;
    let member = |name: &str| all.iter().find(|(key, _)| key == name).map(|(_, v)| *v);
    let record = member("record").unwrap_or("{}");
    let digest = member("digest").and_then(json::text);
    if digest.as_deref() != Some(&digest_of_text(record)) {
        let problem = "the record does not have the digest that the line states: it was altered";
        return Err(vec![Finding::error("CLI0106", "/record", problem)]);
    }
    let parts = members(record).map_err(malformed)?;
    let part = |name: &str| parts.iter().find(|(key, _)| key == name).map(|(_, v)| *v);
    let (Some(ehr), Some(versions)) = (part("ehr_id").and_then(json::text), part("versions"))
    else {
        return Ok(Vec::new());
    };
    let versions = elements(versions).map_err(malformed)?;
    versions
        .into_iter()
        .enumerate()
        .map(|(number, version)| {
            let place = format!("/record/versions[{number}]");
            let document = read_version(version).map_err(|found| below(found, &place))?;
            Ok(Document {
                ehr: Some(ehr.clone()),
                ..document.at(&place)
            })
        })
        .collect()
}
