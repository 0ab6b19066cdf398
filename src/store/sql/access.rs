//! The access log.

use super::SqlRepository;
use super::value::{Fields, Sql, Statement};
use crate::store::repository::{Access, AccessFilter, StoreError};

const NOTE: &str = "INSERT INTO access_log (time, who, issuer, operation, object, ehr_id, query, status, request_id)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
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

pub(super) fn note(access: &Access) -> Statement {
    Statement::new(NOTE)
        .bind(access.time.as_str())
        .bind(access.who.as_str())
        .bind(access.issuer.as_str())
        .bind(access.operation.as_str())
        .bind(access.object.as_deref())
        .bind(access.ehr_id.as_deref())
        .bind(access.query.as_deref())
        .bind(u64::from(access.status))
        .bind(access.request_id.as_str())
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
