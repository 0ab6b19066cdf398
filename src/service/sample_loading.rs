//! Sample patients that are loaded under their own identifiers. The ids of EHRs, versions and
//! contributions follow from the seed.

use super::{Environment, Loaded, ReplayEnvironment, Request, Response, Service};
use crate::diag::Finding;
use crate::rm::class::Cls;
use crate::rm::json as rm_json;
use crate::rm::tree::Tree;
use crate::samples::{EhrSample, Generator};
use crate::store::ready::now_or_never;
use crate::store::repository::Repository;
use crate::template::Template;
use serde_json::json;

/// The time of the first commit of the sample, in milliseconds since 1970: 2026-01-01T00:00:00Z.
/// Every further request is a millisecond later.
const COMMITTED: f64 = 1_767_225_600_000.0;
/// The system id of the loaded versions.
const SYSTEM: &str = "aqlite.local";

/// A sample that is loaded in steps, into a repository that never waits.
pub struct SampleLoading {
    generator: Generator,
    /// The texts of the templates and guides. They are files beside the module, so that users with
    /// their own data need not load them.
    templates: Vec<String>,
    guides: Vec<String>,
    seed: u64,
    /// The number of requests so far.
    number: u32,
    /// The index of the next EHR.
    ehr: usize,
    /// The number of compositions so far.
    done: usize,
}

impl SampleLoading {
    /// Prepares a sample. Nothing is loaded yet.
    pub fn new(
        generator: Generator,
        seed: u64,
        templates: Vec<String>,
        guides: Vec<String>,
    ) -> SampleLoading {
        SampleLoading {
            generator,
            templates,
            guides,
            seed,
            number: 0,
            ehr: 0,
            done: 0,
        }
    }

    /// Returns the number of compositions so far.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Loads templates and guides at the first call, then whole EHRs until at least `compositions`
    /// more compositions are loaded. Returns true while EHRs are left.
    ///
    /// # Errors
    ///
    /// The answer of the interface to the first refused request.
    pub fn step<R: Repository>(
        &mut self,
        service: &Service<R>,
        compositions: usize,
    ) -> Result<bool, String> {
        if self.number == 0 {
            self.define(service)?;
        }
        let enough = self.done + compositions;
        while self.ehr < self.generator.ehrs() && self.done < enough {
            self.load_ehr(service)?;
        }
        Ok(self.ehr < self.generator.ehrs())
    }

    fn define<R: Repository>(&mut self, service: &Service<R>) -> Result<(), String> {
        for template in std::mem::take(&mut self.templates) {
            let path = "/rest/openehr/v1/definition/template/adl1.4";
            self.store(service, path, "application/xml", &template)?;
        }
        for guide in std::mem::take(&mut self.guides) {
            self.store(service, "/v1/definition/gdl", "application/json", &guide)?;
        }
        Ok(())
    }

    /// Stores a template or a guide, unless the same text is stored already.
    fn store<R: Repository>(
        &mut self,
        service: &Service<R>,
        path: &str,
        media_type: &str,
        text: &str,
    ) -> Result<(), String> {
        let request = Request::new("POST", path).with_body(media_type, text);
        let answer = self.send(service, &request)?;
        if answer.status == 409
            && let Some(id) = definition_id(media_type, text)
        {
            let stored =
                Request::new("GET", &format!("{path}/{id}")).with_header("accept", media_type);
            if *self.send(service, &stored)?.body == *text.as_bytes() {
                self.number += 1;
                return Ok(());
            }
        }
        self.take(&format!("POST {path}"), &answer)
    }

    fn load_ehr<R: Repository>(&mut self, service: &Service<R>) -> Result<(), String> {
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
        let answer = now_or_never(service.load(documents, &mut self.moment()))
            .map_err(|waits| waits.to_string())?;
        self.take("the load of an EHR", &answer)
    }

    /// Returns the moment of the next request.
    fn moment(&self) -> ReplayEnvironment {
        ReplayEnvironment::new(
            COMMITTED + f64::from(self.number),
            &format!("{}/{}", self.seed, self.number),
        )
    }

    /// Returns an identifier that the next request does not use itself.
    fn uuid(&self) -> String {
        ReplayEnvironment::new(COMMITTED, &format!("{}/{}/status", self.seed, self.number))
            .new_uuid()
    }

    fn send<R: Repository>(
        &self,
        service: &Service<R>,
        request: &Request,
    ) -> Result<Response, String> {
        now_or_never(service.handle(request, &mut self.moment())).map_err(|waits| waits.to_string())
    }

    /// Checks the answer to a request.
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

/// Returns the id of a template or, in JSON, of a guide.
fn definition_id(media_type: &str, text: &str) -> Option<String> {
    if media_type == "application/xml" {
        return Some(Template::parse(text).ok()?.template_id);
    }
    let guide: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(guide.get("id")?.as_str()?.to_owned())
}

/// Returns the EHR_STATUS of a new EHR.
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
