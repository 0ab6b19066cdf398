//! CDS Hooks 2.0: every stored guide is a service of the hook `patient-view`.
//!
//! EHR_STATUS.subject.external_ref connects the patient of a call with an EHR. The identifiers of
//! the prefetched Patient name it (`system` is the namespace, `value` the id), and
//! `context.patientId` in the namespace of the parameter `subject_namespace`, or else in those of
//! the identifiers. All of them must name the same EHR. If none names one, it is the only EHR with
//! `context.patientId` in any namespace.

use super::Service;
use super::auth::{Reach, Subject};
use super::call::Call;
use super::content::malformed;
use super::error::Failure;
use super::execution::{EhrRange, Stage};
use super::gdl::KIND;
use super::http::Response;
use super::negotiate::choose;
use super::query::EhrSelection;
use super::validators::summary_of;
use crate::gdl::CompiledGuide;
use crate::gdl::cards::{cards, notes_card};
use crate::rm::json::{self, elements, members};
use crate::store::repository::{Definition, Ehr, Repository, StoreError};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::rc::Rc;

/// The hook of CDS Hooks at which all guides run.
const HOOK: &str = "patient-view";

impl<R: Repository> Service<R> {
    /// GET /cds-services
    pub(super) async fn cds_discovery(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let found = self.all_definitions(KIND).await?;
        let services: Vec<Value> = found
            .iter()
            .filter(|d| call.check_named_permission(&d.name).is_ok())
            .map(service)
            .collect::<Result<_, Failure>>()?;
        Ok(Response::json(200, json!({ "services": services })))
    }

    /// POST /cds-services/{guide}
    pub(super) async fn cds_call(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let guide = self.guide(call.param(0)?).await?;
        let request = Invocation::read(call.text()?)?;
        let own = confined_to(call, &guide)?;
        let whose = match &own {
            Some(own) => EhrSelection::Some(std::slice::from_ref(own)),
            None => EhrSelection::All,
        };
        let ehr_id = self.ehr_of_patient(call, &request, whose).await?;
        call.check_permission_on(&guide.guide().id, &ehr_id)
            .map_err(|_| no_ehr())?;
        let stage = Stage::of(call, Rc::clone(&guide))?;
        let language = stage.language().to_owned();
        call.trail.add_ehr(&ehr_id);
        let ran = self
            .run_stages(call, &[stage], &[ehr_id], EhrRange::All, false)
            .await?;
        let run = ran.stages.first().and_then(|runs| runs.first());
        // A response without cards would mean that the guide has no advice for the patient, so a
        // missing EHR is an error.
        let run = run.ok_or_else(no_ehr)?;
        let mut new_uuid = || call.new_uuid();
        let mut cards = cards(&guide, &run.run, &language, &mut new_uuid);
        cards.extend(notes_card(&guide, &run.run, &language, &mut new_uuid));
        Ok(Response::json(200, json!({ "cards": cards })))
    }

    /// Returns the EHR of the patient, among those that the caller may read.
    async fn ehr_of_patient(
        &self,
        call: &Call<'_>,
        request: &Invocation,
        whose: EhrSelection<'_>,
    ) -> Result<String, Failure> {
        let namespace = call.request.query_value("subject_namespace");
        let mut named: Option<String> = None;
        for (id, namespace) in request.subjects(namespace) {
            let ehr = self.repository.ehr_by_subject(id, namespace).await;
            // An EHR that the caller may not read is answered like an absent one.
            let ehr = ehr.map_err(Failure::of_store)?.map(|ehr| ehr.ehr_id);
            let Some(ehr_id) = ehr.filter(|ehr_id| whose.includes(ehr_id)) else {
                continue;
            };
            if named.as_ref().is_some_and(|named| *named != ehr_id) {
                return Err(Failure::new(
                    409,
                    "the identifiers of the prefetched patient and `context.patientId` name different EHRs: send those of one patient",
                ));
            }
            named = Some(ehr_id);
        }
        match (named, namespace) {
            (Some(ehr_id), _) => return Ok(ehr_id),
            (None, Some(_)) => return Err(no_ehr()),
            (None, None) => {}
        }
        self.ehr_in_any_namespace(&request.patient, whose).await
    }

    /// Returns the only EHR whose subject has this id in some namespace. EHRs that are not queryable
    /// count too: the call is about one patient, and is no query of the population.
    async fn ehr_in_any_namespace(
        &self,
        patient: &str,
        whose: EhrSelection<'_>,
    ) -> Result<String, Failure> {
        let found = match whose {
            EhrSelection::All => self.repository.ehrs_by_subject_id(patient, 2).await,
            EhrSelection::Some(permitted) => self.ehrs_of(permitted, patient).await,
        };
        match found.map_err(Failure::of_store)?.as_slice() {
            [] => Err(no_ehr()),
            [ehr] => Ok(ehr.ehr_id.clone()),
            _ => Err(Failure::new(
                409,
                "several namespaces have a patient with this id: name one by the parameter `subject_namespace`",
            )),
        }
    }

    /// Returns those of the permitted EHRs whose subject has this id.
    async fn ehrs_of(&self, permitted: &[String], patient: &str) -> Result<Vec<Ehr>, StoreError> {
        let mut found = Vec::new();
        for id in permitted {
            let ehr = self.repository.ehr(id).await?;
            let has_id = |ehr: &Ehr| ehr.subject.as_ref().is_some_and(|(id, _)| id == patient);
            found.extend(ehr.filter(has_id));
        }
        Ok(found)
    }
}

/// Returns the description of a guide as a service.
fn service(definition: &Definition) -> Result<Value, Failure> {
    let summary = summary_of(definition)?;
    let text = |name: &str| {
        summary
            .get(name)
            .and_then(Value::as_str)
            .filter(|t| !t.is_empty())
    };
    let title = text("concept").unwrap_or(&definition.name);
    Ok(json!({
        "hook": HOOK,
        "id": definition.name,
        "title": title,
        "description": text("purpose").unwrap_or(title),
        "prefetch": { "patient": "Patient/{{context.patientId}}" },
    }))
}

/// Returns the EHR to which the caller's permission for a guide is confined.
fn confined_to(call: &Call<'_>, guide: &CompiledGuide) -> Result<Option<String>, Failure> {
    let subject = Subject::Named(&guide.guide().id);
    Ok(match call.caller.reach(call.permission, subject)? {
        Reach::One(own) => Some(own),
        _ => None,
    })
}

/// Returns the error for a patient without an EHR that the caller may know of.
fn no_ehr() -> Failure {
    Failure::not_found(
        "there is no EHR of this patient: EHR_STATUS.subject.external_ref has no subject with this id",
    )
}

/// The maximum number of identifiers of a prefetched Patient: each is looked up.
const MAX_IDENTIFIERS: usize = 100;

/// The maximum bytes of the id of a patient.
const MAX_PATIENT_ID: usize = 1_000;

/// Returns the member with this name, as JSON.
fn member<'t>(members: &[(Cow<'t, str>, &'t str)], name: &str) -> Option<&'t str> {
    let found = members.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| *value)
}

/// Returns the members of a value that should be an object; none for any other value.
///
/// # Errors
/// 400 for an object that repeats a member.
fn members_of<'t>(
    name: &str,
    value: Option<&'t str>,
) -> Result<Vec<(Cow<'t, str>, &'t str)>, Failure> {
    match value.filter(|value| value.starts_with('{')) {
        Some(object) => members(object).map_err(|m| malformed(name, object, m)),
        None => Ok(Vec::new()),
    }
}

/// The request of a CDS Hooks client.
struct Invocation {
    /// `context.patientId`
    patient: String,
    /// The identifiers of the prefetched Patient: value and system.
    identifiers: Vec<(String, String)>,
}

impl Invocation {
    fn read(text: &str) -> Result<Invocation, Failure> {
        // Reads only the members in use: a prefetch may have megabytes of others.
        let body = members(text).map_err(|m| malformed("body", text, m))?;
        check_hook(text_of(&body, "hook").as_deref())?;
        if text_of(&body, "hookInstance").is_none() {
            return Err(Failure::bad_request(
                "`hookInstance` is missing: expected a UUID",
            ));
        }
        let context = members_of("context", member(&body, "context"))?;
        let patient = patient_id(text_of(&context, "patientId"))?;
        let prefetch = members_of("prefetch", member(&body, "prefetch"))?;
        Ok(Invocation {
            identifiers: identifiers(member(&prefetch, "patient"), &patient)?,
            patient,
        })
    }

    /// Returns the subjects of the patient, each once: id and namespace. `namespace` is that of
    /// `context.patientId`; without one, it is compared in those of the identifiers.
    fn subjects<'s>(&'s self, namespace: Option<&'s str>) -> Vec<(&'s str, &'s str)> {
        let mut all: Vec<(&str, &str)> = Vec::new();
        let mut add = |id: &'s str, namespace: &'s str| {
            if !all.contains(&(id, namespace)) {
                all.push((id, namespace));
            }
        };
        for (id, system) in &self.identifiers {
            add(id, system);
            add(&self.patient, namespace.unwrap_or(system));
        }
        if let Some(namespace) = namespace {
            add(&self.patient, namespace);
        }
        all
    }
}

/// Returns the text of a member that is not empty.
fn text_of(members: &[(Cow<'_, str>, &str)], name: &str) -> Option<String> {
    json::text(member(members, name)?).filter(|text| !text.is_empty())
}

fn check_hook(hook: Option<&str>) -> Result<(), Failure> {
    match hook {
        Some(HOOK) => Ok(()),
        Some(other) => Err(Failure::bad_request(format!(
            "the hook `{}` is not served: expected `{HOOK}`",
            other.chars().take(40).collect::<String>()
        ))),
        None => Err(Failure::bad_request(format!(
            "`hook` is missing: expected `{HOOK}`"
        ))),
    }
}

/// Returns the id of a patient without the type of the resource.
fn patient_id(patient: Option<String>) -> Result<String, Failure> {
    let patient = patient.ok_or_else(|| Failure::bad_request("`context.patientId` is missing"))?;
    if patient.len() > MAX_PATIENT_ID {
        return Err(Failure::bad_request(format!(
            "`context.patientId` has more than {MAX_PATIENT_ID} bytes"
        )));
    }
    let id = patient.strip_prefix("Patient/");
    Ok(id.unwrap_or(&patient).to_owned())
}

/// Returns the identifiers of the prefetched Patient that have a value and a system. A client sends
/// `null` for missing data, and an OperationOutcome if it could not read them.
///
/// # Errors
/// 400 for another resource, and for a patient with another id than `context.patientId`: the
/// template of the prefetch is `Patient/{{context.patientId}}`.
fn identifiers(prefetched: Option<&str>, id: &str) -> Result<Vec<(String, String)>, Failure> {
    let Some(prefetched) = prefetched.filter(|value| *value != "null") else {
        return Ok(Vec::new());
    };
    let patient = members_of("prefetched patient", Some(prefetched))?;
    match text_of(&patient, "resourceType").as_deref() {
        Some("Patient") => {}
        Some("OperationOutcome") => return Ok(Vec::new()),
        _ => return Err(Failure::bad_request("`prefetch.patient` is no Patient")),
    }
    let own = member(&patient, "id");
    if own.is_some_and(|own| json::text(own).as_deref() != Some(id)) {
        return Err(Failure::bad_request(
            "the id of the prefetched patient is not `context.patientId`",
        ));
    }
    let listed = member(&patient, "identifier").unwrap_or("[]");
    let listed = elements(listed).map_err(|m| malformed("list of identifiers", listed, m))?;
    if listed.len() > MAX_IDENTIFIERS {
        return Err(Failure::bad_request(format!(
            "the prefetched patient has more than {MAX_IDENTIFIERS} identifiers"
        )));
    }
    let mut found = Vec::new();
    for identifier in listed {
        let identifier = members_of("identifier", Some(identifier))?;
        let (value, system) = (
            text_of(&identifier, "value"),
            text_of(&identifier, "system"),
        );
        found.extend(value.zip(system));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetched_patient_is_read_within_limits() {
        let call = |patient: Value, id: &str| {
            let body = json!({ "hook": HOOK, "hookInstance": "x", "context": { "patientId": id }, "prefetch": { "other": [[[]]], "patient": patient } });
            Invocation::read(&body.to_string()).map(|read| (read.patient, read.identifiers.len()))
        };
        let identifiers = |count: usize| json!({ "resourceType": "Patient", "identifier": vec![json!({ "value": "a", "system": "s", "use": {} }); count] });
        let read = |patient| call(patient, "Patient/p").ok();
        assert_eq!(
            read(identifiers(MAX_IDENTIFIERS)),
            Some((String::from("p"), MAX_IDENTIFIERS))
        );
        assert_eq!(read(identifiers(MAX_IDENTIFIERS + 1)), None);
        let patient = |identifier: Value| json!({ "resourceType": "Patient", "id": "p", "identifier": identifier });
        for other in [
            json!(null),
            json!({ "resourceType": "OperationOutcome" }),
            patient(json!([1, { "value": "a" }])),
        ] {
            assert_eq!(read(other), Some((String::from("p"), 0)));
        }
        assert_eq!(read(patient(json!({ "value": "a", "system": "s" }))), None);
        assert!(call(json!(null), &"p".repeat(MAX_PATIENT_ID + 1)).is_err());
    }
}
