//! Sample patients, loaded under their own identifiers: those of an EHR, a version and a contribution follow from the seed.

use crate::moment::Replayed;
use aqlite::samples::{EhrSample, Generator, guides, templates};
use aqlite::service::{Moment, Request, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::block_on;
use serde_json::json;

/// When the sample was committed, in milliseconds since 1970: 2026-01-01T00:00:00Z. Every request is a millisecond later.
const COMMITTED: f64 = 1_767_225_600_000.0;
const SYSTEM: &str = "aqlite.local";

/// Loads templates, guides, EHRs and compositions.
///
/// # Errors
/// The answer of the interface to the first request that it refused.
pub fn load(service: &Service<Memory>, ehrs: usize, compositions: usize, seed: u64) -> Result<(), String> {
    let mut loader = Loader { service, seed, number: 0 };
    for template in templates() {
        loader.send(Request::new("POST", "/rest/openehr/v1/definition/template/adl1.4").with_body("application/xml", template.text))?;
    }
    for guide in guides() {
        loader.send(Request::new("POST", "/v1/definition/gdl").with_body("application/json", guide.text))?;
    }
    let generator = Generator::new(seed, ehrs, compositions);
    for at in 0..generator.ehrs() {
        let ehr = generator.ehr(at);
        let mut lines = status(&ehr, &loader.uuid());
        for index in generator.compositions_of(at) {
            let sample = generator.composition(index);
            let uid = &sample.uid;
            lines += &format!("\n{{\"ehr_id\":\"{}\",\"version_uid\":\"{uid}::{SYSTEM}::1\",\"data\":{}}}", ehr.ehr_id, sample.json);
        }
        loader.send(Request::new("POST", "/v1/admin/load").with_body("application/x-ndjson", lines))?;
    }
    Ok(())
}

/// The line that creates an EHR.
fn status(ehr: &EhrSample, uid: &str) -> String {
    let data = json!({
        "_type": "EHR_STATUS",
        "name": { "_type": "DV_TEXT", "value": "EHR status" },
        "archetype_node_id": "openEHR-EHR-EHR_STATUS.generic.v1",
        "archetype_details": { "archetype_id": { "value": "openEHR-EHR-EHR_STATUS.generic.v1" }, "rm_version": "1.1.0" },
        "subject": { "_type": "PARTY_SELF", "external_ref": {
            "_type": "PARTY_REF",
            "id": { "_type": "GENERIC_ID", "value": ehr.subject_id, "scheme": "sample" },
            "namespace": ehr.subject_namespace,
            "type": "PERSON",
        } },
        "is_queryable": ehr.is_queryable,
        "is_modifiable": true,
    });
    json!({ "ehr_id": ehr.ehr_id, "version_uid": format!("{uid}::{SYSTEM}::1"), "data": data }).to_string()
}

struct Loader<'a> {
    service: &'a Service<Memory>,
    seed: u64,
    number: u32,
}

impl Loader<'_> {
    /// The moment of the next request.
    fn moment(&self) -> Replayed {
        Replayed::new(COMMITTED + f64::from(self.number), &format!("{}/{}", self.seed, self.number))
    }

    /// An identifier of the next request that it does not use itself.
    fn uuid(&self) -> String {
        Replayed::new(COMMITTED, &format!("{}/{}/status", self.seed, self.number)).new_uuid()
    }

    fn send(&mut self, request: Request) -> Result<(), String> {
        let answer = block_on(self.service.handle(&request, &mut self.moment())).map_err(|waits| waits.to_string())?;
        self.number += 1;
        if answer.status < 300 {
            return Ok(());
        }
        Err(format!("{} {} was answered with {}: {}", request.method, request.path, answer.status, String::from_utf8_lossy(&answer.body)))
    }
}
