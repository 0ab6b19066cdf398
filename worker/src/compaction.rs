//! Compaction behind requests and at night.

use crate::d1::D1;
use crate::{Runtime, STATE, log};
use aqlite::service::Environment;
use aqlite::store::repository::StoreError;
use aqlite::store::sql::{Compaction, SqlRepository};
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Date;

/// Segments that are written in one night, and behind one request, at most.
pub const NIGHTLY: usize = 16;
const SEGMENTS: usize = 4;

/// Writes the segments that are due. The entry module calls it behind a request.
#[wasm_bindgen(wasm_bindgen_futures = worker::wasm_bindgen_futures)]
pub async fn compact() {
    let Some(state) = STATE.with_borrow(Option::clone) else {
        return;
    };
    if let Err(error) = run(&state.database, SEGMENTS).await {
        log::complain("compaction", &error);
    }
}

/// Returns whether so many rows are in no segment that one should be written.
#[wasm_bindgen]
pub fn is_compaction_due() -> bool {
    STATE.with_borrow(|state| state.as_ref().is_some_and(|state| state.segments.is_due()))
}

/// Writes at most so many segments, and deletes the blobs of those that are no longer live.
pub async fn run(database: &SqlRepository<D1>, most: usize) -> Result<(), StoreError> {
    for _ in 0..most {
        let (blob, now) = (Runtime.new_uuid(), Date::now().as_millis());
        let pause = || Runtime.pause();
        if database.compact(&blob, now, &pause).await? != Compaction::Written {
            break;
        }
    }
    database.collect_garbage(Date::now().as_millis()).await
}
