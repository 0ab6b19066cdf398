//! Sample data: templates, guides, queries, and a generator of synthetic EHRs with a truth table.

mod draw;
mod facts;
mod generate;
mod lines;
mod queries;
mod random;
mod truth;
mod writer;

pub use generate::{CompositionSample, EhrSample, Generator};
pub use lines::{bulk_composition_line, bulk_ehr_line, composition_line, ehr_line, ehr_status};
pub use queries::{QuerySample, queries};
pub use truth::{Leaf, Pressure, PressureWithPulse, Q1, Q2, Q3, Q4, Q5, Q6, Truth};

/// A template file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateSample {
    /// Its template id.
    pub template_id: &'static str,
    /// OPT 1.4 XML.
    pub text: &'static str,
}

/// Returns the sample templates: vital signs, laboratory report, problem list.
pub fn templates() -> [TemplateSample; 3] {
    [
        TemplateSample {
            template_id: "sample.vital_signs.v1",
            text: include_str!("../../www/samples/vital_signs.opt"),
        },
        TemplateSample {
            template_id: "sample.laboratory_report.v1",
            text: include_str!("../../www/samples/laboratory_report.opt"),
        },
        TemplateSample {
            template_id: "sample.problem_list.v1",
            text: include_str!("../../www/samples/problem_list.opt"),
        },
    ]
}

/// A guide file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuideSample {
    /// Its id.
    pub id: &'static str,
    /// GDL2 as JSON.
    pub text: &'static str,
}

/// Returns the sample guides: a category of blood pressure, and an early warning score.
pub fn guides() -> [GuideSample; 2] {
    [
        GuideSample {
            id: "Sample_blood_pressure_category.v1",
            text: include_str!("../../www/samples/blood_pressure_category.gdl2.json"),
        },
        GuideSample {
            id: "Sample_early_warning_score.v1",
            text: include_str!("../../www/samples/early_warning_score.gdl2.json"),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guides_are_json_with_their_ids() {
        for guide in guides() {
            let value: serde_json::Value = serde_json::from_str(guide.text).unwrap();
            assert_eq!(value["id"], guide.id);
            let terms = &value["ontology"]["term_definitions"];
            assert_eq!(
                terms["en"]["terms"].as_object().unwrap().len(),
                terms["de"]["terms"].as_object().unwrap().len()
            );
            for rule in value["definition"]["rules"].as_object().unwrap().keys() {
                assert!(terms["en"]["terms"][rule].is_object(), "{rule}");
            }
        }
    }
}
