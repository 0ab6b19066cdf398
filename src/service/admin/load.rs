//! `POST /admin/load`: documents under fixed ids, one JSON object on each line.

use super::super::Service;
use super::super::call::Call;
use super::super::content::{malformed, read_text};
use super::super::error::Failure;
use super::super::http::Response;
use super::super::ids::VersionUid;
use super::super::negotiate::{Format, choose, is_ndjson};
use super::Record;
use crate::rm::class::Cls;
use crate::rm::json::{self, members};
use crate::rm::tree::Tree;
use crate::store::repository::Repository;
use std::borrow::Cow;

impl<R: Repository> Service<R> {
    /// POST /admin/load
    pub(in crate::service) async fn admin_load(
        &self,
        call: &Call<'_>,
    ) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        call.commit_headers()?;
        let text = call.text()?;
        let lines: Vec<&str> = if is_ndjson(call.request) {
            text.lines()
                .filter(|line| !line.trim().is_empty())
                .collect()
        } else {
            vec![text]
        };
        self.load_records(call, &mut lines.into_iter().map(Record::read))
            .await
    }
}

impl Record {
    fn read(line: &str) -> Result<Record, Failure> {
        let mut record = Record::default();
        for (key, value) in members(line).map_err(|m| malformed("load", line, m))? {
            let text = || {
                json::text(value)
                    .ok_or_else(|| Failure::bad_request(format!("`{key}` is not a text")))
            };
            match &*key {
                _ if value == "null" => {}
                "ehr_id" => record.ehr_id = text()?,
                "version_uid" => record.version_uid = text()?,
                "kind" => record.kind = Some(text()?),
                "change" => record.change = Some(text()?),
                "lifecycle" => record.lifecycle = Some(text()?),
                "preceding" => record.preceding = Some(VersionUid::read(&text()?, "preceding")?),
                "contribution_uid" => record.contribution_uid = Some(text()?.to_ascii_lowercase()),
                "audit" => {
                    record.audit =
                        Some(read_text(value, Format::Json, Cls::AUDIT_DETAILS, "audit")?)
                }
                "data" => record.data = Some(document_of(value)?),
                other => {
                    return Err(Failure::bad_request(format!(
                        "`{other}` is not a member of a load"
                    )));
                }
            }
        }
        Ok(record)
    }
}

/// Returns whether the JSON of a VERSION may be a line of a load.
fn is_version(value: &str) -> bool {
    let class = |(key, value): (Cow<'_, str>, &str)| {
        Some(json::text(value)?).filter(|name| key == "_type" && name.ends_with("_VERSION"))
    };
    members(value).is_ok_and(|all| all.into_iter().any(|member| class(member).is_some()))
}

fn document_of(value: &str) -> Result<Tree, Failure> {
    // Otherwise the error would only say that VERSION is no LOCATABLE.
    if is_version(value) {
        return Err(Failure::bad_request(
            "`data` is a VERSION: a load takes the document inside it, under `version_uid`; commit an IMPORTED_VERSION by a CONTRIBUTION, or import an export by `admin/import`",
        ));
    }
    read_text(value, Format::Json, Cls::LOCATABLE, "data")
}
