//! Example queries over the sample data, each with what it teaches.

use super::truth::{Q1, Q3, Q6};

/// An example query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuerySample {
    /// A short title.
    pub title: &'static str,
    /// What it teaches.
    pub teaches: &'static str,
    /// The text; `$ehr_id` stands for an EHR id.
    pub aql: &'static str,
}

/// Example queries for the sample data, from plain to demanding.
pub fn queries() -> [QuerySample; 9] {
    [
        QuerySample {
            title: "High blood pressures",
            teaches: "CONTAINS finds the archetype, paths with node ids reach the values, WHERE filters, ORDER BY sorts",
            aql: "SELECT\n  e/ehr_id/value AS ehr,\n  c/context/start_time/value AS time,\n  \
                o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic,\n  \
                o/data[at0001]/events[at0006]/data[at0003]/items[at0005]/value/magnitude AS diastolic\n\
                FROM EHR e\n  CONTAINS COMPOSITION c\n  CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]\n\
                WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude >= 150\n\
                ORDER BY c/context/start_time/value DESC\nLIMIT 50",
        },
        QuerySample { title: "The latest blood pressure of one EHR", teaches: "a parameter scopes the query to one EHR; ORDER BY with LIMIT 1 takes the newest", aql: Q1 },
        QuerySample { title: "How many compositions have a temperature", teaches: "COUNT over CONTAINS needs no path into the data", aql: Q3 },
        QuerySample {
            title: "Units matter",
            teaches: "magnitudes compare without their unit: say which unit you mean",
            aql: "SELECT\n  AVG(o/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/magnitude) AS mean,\n  \
                MAX(o/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/magnitude) AS highest,\n  COUNT(*) AS n\n\
                FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.body_temperature.v2]\n\
                WHERE o/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/units = 'Cel'",
        },
        QuerySample { title: "Two findings in one composition", teaches: "CONTAINS with AND joins two entries below the same composition", aql: Q6 },
        QuerySample {
            title: "Values that are missing, and why",
            teaches: "EXISTS asks for the presence of a node: here a null flavour in place of a value",
            aql: "SELECT c/context/start_time/value AS time,\n  o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/null_flavour/value AS reason\n\
                FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]\n\
                WHERE EXISTS o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/null_flavour\nLIMIT 20",
        },
        QuerySample {
            title: "Potassium above 4.5",
            teaches: "clusters are reached by their own variable; `matches` takes a list of values",
            aql: "SELECT e/ehr_id/value AS ehr,\n  a/items[at0024]/value/defining_code/code_string AS analyte,\n  \
                a/items[at0001]/value/magnitude AS result,\n  a/items[at0001]/value/units AS unit\n\
                FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.laboratory_test_result.v1]\n  \
                CONTAINS CLUSTER a[openEHR-EHR-CLUSTER.laboratory_test_analyte.v1]\n\
                WHERE a/items[at0024]/value/defining_code/code_string matches {'K'}\n  AND a/items[at0001]/value/magnitude > 4.5\n\
                ORDER BY a/items[at0001]/value/magnitude DESC\nLIMIT 50",
        },
        QuerySample {
            title: "Diabetes, since when",
            teaches: "partial dates sort and compare by their earliest moment",
            aql: "SELECT e/ehr_id/value AS ehr,\n  p/data[at0001]/items[at0002]/value/value AS problem,\n  p/data[at0001]/items[at0077]/value/value AS onset\n\
                FROM EHR e CONTAINS COMPOSITION c CONTAINS EVALUATION p[openEHR-EHR-EVALUATION.problem_diagnosis.v1]\n\
                WHERE p/data[at0001]/items[at0002]/value/defining_code/code_string matches {'E10.9', 'E11.9'}\n  \
                AND p/data[at0001]/items[at0077]/value/value < '2010'\n\
                ORDER BY p/data[at0001]/items[at0077]/value/value ASC\nLIMIT 50",
        },
        QuerySample {
            title: "What is in the repository",
            teaches: "DISTINCT removes equal rows; a composition names its template",
            aql: "SELECT DISTINCT c/archetype_details/template_id/value AS template, c/archetype_node_id AS archetype\n\
                FROM EHR e CONTAINS COMPOSITION c\nORDER BY c/archetype_details/template_id/value ASC",
        },
    ]
}
