//! The access log.

use super::SqlRepository;
use super::rows::{Cell, Rows};
use super::value::{Fields, Sql, Statement};
use crate::store::repository::{Access, AccessFilter, StoreError};

pub(super) const NOTE: &str = "INSERT INTO access_log (time, who, issuer, operation, object, ehr_id, query, status, request_id)
    SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, j.value ->> 6, j.value ->> 7, j.value ->> 8
    FROM json_each(?1) j";
const READ: &str = "SELECT id, time, who, issuer, operation, object, ehr_id, query, status, request_id FROM access_log
    WHERE id > ?1 AND time >= ?2 AND time < ?3 AND (?4 IS NULL OR ehr_id = ?4) AND (?5 IS NULL OR who = ?5) ORDER BY id LIMIT ?6";
/// Later than every time: the text form orders as time does.
const NEVER: &str = "~";

impl<S: Sql> SqlRepository<S> {
    pub(super) async fn read_accesses(&self, filter: &AccessFilter<'_>) -> Result<Vec<(u64, Access)>, StoreError> {
        let query = Statement::new(READ).bind(filter.after).bind(filter.from.unwrap_or("")).bind(filter.to.unwrap_or(NEVER));
        let query = query.bind(filter.ehr_id).bind(filter.who).bind(filter.limit);
        self.rows(query).await?.into_iter().map(|row| entry(&mut Fields::of(row))).collect()
    }
}

pub(super) fn notes(accesses: &[Access]) -> Vec<Statement> {
    let mut rows = Rows::of(NOTE);
    accesses.iter().for_each(|access| rows.push(&cells(access)));
    rows.written().collect()
}

/// A line of the log, as [`NOTE`] takes it.
pub(super) fn cells(access: &Access) -> [Cell<'_>; 9] {
    [
        access.time.as_str().into(),
        access.who.as_str().into(),
        access.issuer.as_str().into(),
        access.operation.as_str().into(),
        access.object.as_deref().into(),
        access.ehr_id.as_deref().into(),
        access.query.as_deref().into(),
        u64::from(access.status).into(),
        access.request_id.as_str().into(),
    ]
}

fn entry(fields: &mut Fields) -> Result<(u64, Access), StoreError> {
    let id = fields.number()?;
    let access = Access {
        time: fields.text()?,
        who: fields.text()?,
        issuer: fields.text()?,
        operation: fields.text()?,
        object: fields.optional_text()?,
        ehr_id: fields.optional_text()?,
        query: fields.optional_text()?,
        status: u16::try_from(fields.number()?).unwrap_or_default(),
        request_id: fields.text()?,
    };
    Ok((id, access))
}
