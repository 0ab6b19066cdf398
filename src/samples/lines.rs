//! Lines of the files that hold sample data as NDJSON.

use super::{CompositionSample, EhrSample};
use serde_json::{Value, json};

/// Returns a line of `ehrs.ndjson`: `{ehr_id, time_created, ehr_status}`.
pub fn ehr_line(ehr: &EhrSample) -> String {
    json!({ "ehr_id": ehr.ehr_id, "time_created": ehr.time_created, "ehr_status": ehr_status(ehr) })
        .to_string()
}

/// Returns a line of `compositions.ndjson`: `{ehr_id, uid, template_id, composition}`.
pub fn composition_line(ehr: &EhrSample, one: &CompositionSample) -> String {
    let head = json!({ "ehr_id": ehr.ehr_id, "uid": one.uid, "template_id": one.template_id });
    let head = head.to_string();
    format!(
        "{},\"composition\":{}}}",
        head.trim_end_matches('}'),
        one.json
    )
}

/// Returns the line of a bulk load that creates an EHR.
pub fn bulk_ehr_line(ehr: &EhrSample) -> String {
    json!({ "ehr_id": ehr.ehr_id, "ehr_status": ehr_status(ehr) }).to_string()
}

/// Returns the line of a bulk load that creates a composition.
pub fn bulk_composition_line(ehr: &EhrSample, one: &CompositionSample) -> String {
    format!(
        "{{\"ehr_id\":\"{}\",\"composition\":{}}}",
        ehr.ehr_id, one.json
    )
}

/// Returns the EHR_STATUS that an EHR of the sample is created with.
pub fn ehr_status(ehr: &EhrSample) -> Value {
    json!({
        "_type": "EHR_STATUS",
        "archetype_node_id": "openEHR-EHR-EHR_STATUS.generic.v1",
        "name": { "_type": "DV_TEXT", "value": "EHR status" },
        "subject": {
            "_type": "PARTY_SELF",
            "external_ref": {
                "_type": "PARTY_REF",
                "namespace": ehr.subject_namespace,
                "type": "PERSON",
                "id": { "_type": "GENERIC_ID", "value": ehr.subject_id, "scheme": "sample" },
            },
        },
        "is_queryable": ehr.is_queryable,
        "is_modifiable": true,
    })
}
