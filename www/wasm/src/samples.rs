//! Sample patients, committed through the REST interface like any others.

use crate::moment::Replayed;
use aqlite::samples::{CompositionSample, EhrSample, Generator, guides, templates};
use aqlite::service::{Request, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::block_on;
use serde_json::json;

/// When the sample was committed, in milliseconds since 1970: 2026-01-01T00:00:00Z. Every commit is a millisecond later.
const COMMITTED: f64 = 1_767_225_600_000.0;
const BASE: &str = "/rest/openehr/v1";

/// Loads templates, guides, EHRs and compositions.
///
/// # Errors
/// The answer of the interface to the first request that it refused.
pub fn load(service: &Service<Memory>, ehrs: usize, compositions: usize, seed: u64) -> Result<(), String> {
    let mut loader = Loader { service, seed, number: 0 };
    for template in templates() {
        loader.send(Request::new("POST", &format!("{BASE}/definition/template/adl1.4")).with_body("application/xml", template.text))?;
    }
    for guide in guides() {
        loader.send(Request::new("POST", "/v1/definition/gdl").with_body("application/json", guide.text))?;
    }
    let generator = Generator::new(seed, ehrs, compositions);
    for at in 0..generator.ehrs() {
        let ehr = generator.ehr(at);
        loader.ehr(&ehr)?;
        for index in generator.compositions_of(at) {
            loader.composition(&ehr, generator.composition(index))?;
        }
    }
    Ok(())
}

struct Loader<'a> {
    service: &'a Service<Memory>,
    seed: u64,
    number: u32,
}

impl Loader<'_> {
    fn ehr(&mut self, ehr: &EhrSample) -> Result<(), String> {
        let status = json!({
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
        let path = format!("{BASE}/ehr/{}", ehr.ehr_id);
        self.send(Request::new("PUT", &path).with_body("application/json", status.to_string()))
    }

    fn composition(&mut self, ehr: &EhrSample, sample: CompositionSample) -> Result<(), String> {
        let path = format!("{BASE}/ehr/{}/composition", ehr.ehr_id);
        self.send(Request::new("POST", &path).with_body("application/json", sample.json))
    }

    fn send(&mut self, request: Request) -> Result<(), String> {
        self.number += 1;
        let mut moment = Replayed::new(COMMITTED + f64::from(self.number), &format!("{}/{}", self.seed, self.number));
        let answer = block_on(self.service.handle(&request, &mut moment)).map_err(|waits| waits.to_string())?;
        if answer.status < 300 {
            return Ok(());
        }
        Err(format!("{} {} was answered with {}: {}", request.method, request.path, answer.status, String::from_utf8_lossy(&answer.body)))
    }
}
