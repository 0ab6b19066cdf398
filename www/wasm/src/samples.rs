//! Sample patients, loaded under their own identifiers: those of an EHR, a version and a
//! contribution follow from the seed.

use aqlite::diag::Finding;
use aqlite::rm::class::Cls;
use aqlite::rm::json as rm_json;
use aqlite::rm::tree::Tree;
use aqlite::samples::{EhrSample, Generator};
use aqlite::service::{Loaded, Moment, Replayed, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::block_on;
use serde_json::json;

/// When the sample was committed, in milliseconds since 1970: 2026-01-01T00:00:00Z. Every request
/// is a millisecond later.
const COMMITTED: f64 = 1_767_225_600_000.0;
const SYSTEM: &str = "aqlite.local";

/// Samples on their way into a repository, some at a time.
pub struct Loading {
    generator: Generator,
    /// Texts of the templates and of the guides: files beside the module, so that whoever has data
    /// of their own need not load them.
    templates: Vec<String>,
    guides: Vec<String>,
    seed: u64,
    /// Requests so far.
    number: u32,
    /// The next EHR.
    ehr: usize,
    /// Compositions so far.
    done: usize,
}

impl Loading {
    /// Nothing is loaded yet.
    pub fn new(
        generator: Generator,
        seed: u64,
        templates: Vec<String>,
        guides: Vec<String>,
    ) -> Loading {
        Loading {
            generator,
            templates,
            guides,
            seed,
            number: 0,
            ehr: 0,
            done: 0,
        }
    }

    /// Compositions so far.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Loads templates and guides the first time, then whole EHRs until at least so many
    /// compositions more are there. True while EHRs are left.
    ///
    /// # Errors
    /// The answer of the interface to the first request that it refused.
    pub fn step(&mut self, service: &Service<Memory>, compositions: usize) -> Result<bool, String> {
        if self.number == 0 {
            self.define(service)?;
        }
        let enough = self.done + compositions;
        while self.ehr < self.generator.ehrs() && self.done < enough {
            self.load_ehr(service)?;
        }
        Ok(self.ehr < self.generator.ehrs())
    }

    fn define(&mut self, service: &Service<Memory>) -> Result<(), String> {
        for template in std::mem::take(&mut self.templates) {
            self.send(
                service,
                Request::new("POST", "/rest/openehr/v1/definition/template/adl1.4")
                    .with_body("application/xml", template),
            )?;
        }
        for guide in std::mem::take(&mut self.guides) {
            self.send(
                service,
                Request::new("POST", "/v1/definition/gdl").with_body("application/json", guide),
            )?;
        }
        Ok(())
    }

    fn load_ehr(&mut self, service: &Service<Memory>) -> Result<(), String> {
        let ehr = self.generator.ehr(self.ehr);
        let version = |uid: &str, data| Loaded {
            ehr_id: ehr.ehr_id.clone(),
            version_uid: format!("{uid}::{SYSTEM}::1"),
            data,
        };
        let mut documents = vec![version(&self.uuid(), status(&ehr)?)];
        let compositions = self.generator.compositions_of(self.ehr);
        self.done += compositions.len();
        documents.extend(
            compositions
                .map(|index| version(&self.generator.uid(index), self.generator.document(index))),
        );
        self.ehr += 1;
        let answer = block_on(service.load(documents, &mut self.moment()))
            .map_err(|waits| waits.to_string())?;
        self.take("the load of an EHR", &answer)
    }

    /// The moment of the next request.
    fn moment(&self) -> Replayed {
        Replayed::new(
            COMMITTED + f64::from(self.number),
            &format!("{}/{}", self.seed, self.number),
        )
    }

    /// An identifier of the next request that it does not use itself.
    fn uuid(&self) -> String {
        Replayed::new(COMMITTED, &format!("{}/{}/status", self.seed, self.number)).new_uuid()
    }

    fn send(&mut self, service: &Service<Memory>, request: Request) -> Result<(), String> {
        let answer = block_on(service.handle(&request, &mut self.moment()))
            .map_err(|waits| waits.to_string())?;
        self.take(&format!("{} {}", request.method, request.path), &answer)
    }

    /// Takes note of the answer to a request.
    fn take(&mut self, what: &str, answer: &Response) -> Result<(), String> {
        self.number += 1;
        if answer.status < 300 {
            return Ok(());
        }
        Err(format!(
            "{what} was answered with {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        ))
    }
}

/// The EHR_STATUS that an EHR is made with.
fn status(ehr: &EhrSample) -> Result<Tree, String> {
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
    rm_json::read(&data.to_string(), Cls::EHR_STATUS)
        .map_err(|found| found.iter().map(Finding::one_line).collect())
}
