//! Compaction after requests and at night.

use crate::d1::D1;
use crate::{IsolateState, Runtime, STATE, log};
use aqlite::service::Environment;
use aqlite::store::repository::StoreError;
use aqlite::store::sql::{CompactionHost, SqlRepository};
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Date;

/// The times in milliseconds after which no further segment is begun: at night, and after a response.
/// The runtime ends work 30 seconds after a response.
const NIGHTLY: u64 = 120_000;
const AFTER_RESPONSE: u64 = 20_000;

/// Writes the segments that are due. The entry module calls it after a response.
#[wasm_bindgen(wasm_bindgen_futures = worker::wasm_bindgen_futures)]
pub async fn compact() {
    let state = STATE.with_borrow(Option::clone);
    if let Some(state) = state.filter(|state| state.segments.is_due()) {
        write(&state, AFTER_RESPONSE).await;
    }
}

/// Writes a segment during a bulk load. Without it, queries after a long load would read all its rows.
pub async fn during_load(state: &IsolateState) {
    if state.segments.is_overdue() {
        write(state, 1).await;
    }
}

async fn write(state: &IsolateState, milliseconds: u64) {
    for blob in state.segments.lost() {
        log::log_problem("segment that cannot be read", &blob);
    }
    if let Err(error) = run(&state.database, milliseconds).await {
        log::log_problem("compaction", &error);
    }
}

/// Writes segments until `milliseconds` have passed.
async fn run(database: &SqlRepository<D1>, milliseconds: u64) -> Result<(), StoreError> {
    database.compact_for(milliseconds, &HOST).await
}

/// Does the work of a night: writes absent and outdated segments again, and those that are due.
pub async fn nightly(database: &SqlRepository<D1>) -> Result<(), StoreError> {
    let absent = |blob: &str| log::log_problem("segment that is absent", &blob);
    database.renew_segments(NIGHTLY, &HOST, absent).await
}

const HOST: CompactionHost<'static> = CompactionHost {
    blob: &|| Runtime.new_uuid(),
    now: &|| Date::now().as_millis(),
    pause: &|| Runtime.pause(),
};
