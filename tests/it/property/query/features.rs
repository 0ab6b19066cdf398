//! The features that random queries must cover.

use aqlite::aql::query::{AggregateFunction, Function};

/// Returns the name of each feature with the words that show it: the fixed features, and one for
/// each form of each function.
pub fn features() -> Vec<(String, String)> {
    let fixed = FIXED
        .iter()
        .map(|(name, words)| ((*name).to_owned(), (*words).to_owned()));
    let aggregates = AggregateFunction::ALL.iter().map(|f| f.entry());
    let forms = aggregates.flat_map(|entry| {
        let rows = entry.over_rows.as_ref().map(|_| "(*)");
        let distinct = entry.over_distinct.map(|_| "(DISTINCT ");
        let forms = ["("].into_iter().chain(rows).chain(distinct);
        forms.map(|form| format!("{}{form}", entry.name))
    });
    let functions = Function::ALL.iter().map(|f| format!("{}(", f.name()));
    let calls = forms.chain(functions).map(|call| (call.clone(), call));
    fixed.chain(calls).collect()
}

/// The features besides functions, and the words that show their use.
const FIXED: [(&str, &str); 63] = [
    ("EXISTS", "EXISTS "),
    ("NOT CONTAINS", " NOT CONTAINS "),
    ("CONTAINS", " CONTAINS "),
    ("AND", ") AND ("),
    ("OR", ") OR ("),
    ("NOT", "NOT ("),
    ("LIKE", " LIKE '"),
    ("LIKE a parameter", " LIKE $"),
    ("a list", " matches {'"),
    ("value set of a group", " matches TERMINOLOGY("),
    ("value set of an address", "terminology://"),
    ("a member that is a value set", ", TERMINOLOGY("),
    ("a parameter", "= $"),
    ("a regular expression", "matches {/"),
    ("a name", ", '"),
    ("a name by parameter", ", $"),
    ("a name by a code", ", at0007"),
    ("a name by a term", ", snomed_ct::"),
    ("an archetype by parameter", "[$"),
    ("a code or another", " or at"),
    ("a predicate on an attribute", "name/value >= "),
    ("a predicate on archetype_node_id", "[archetype_node_id = "),
    ("a predicate on a value", "[value/"),
    ("a path in a predicate", "name/value = value/value"),
    ("NULL", "NULL"),
    ("DISTINCT", "SELECT DISTINCT"),
    ("TOP", " TOP "),
    ("FORWARD", "FORWARD"),
    ("BACKWARD", "BACKWARD"),
    ("LIMIT", "LIMIT"),
    ("OFFSET", "OFFSET"),
    ("ASC", " ASC"),
    ("DESC", " DESC"),
    ("a key that is an alias", "ORDER BY k"),
    ("a key behind an alias", "/value DESC"),
    ("TERMINOLOGY", "TERMINOLOGY('lookup'"),
    ("ALL_VERSIONS", "[ALL_VERSIONS]"),
    ("LATEST_VERSION", "[LATEST_VERSION]"),
    ("a version by its audit", "[commit_audit/"),
    ("a version by its state", "[lifecycle_state/"),
    ("a version by its uid", "[uid/value"),
    ("a version by its contribution", "[contribution/"),
    ("contribution", "/contribution"),
    ("audit", "/commit_audit"),
    ("preceding version", "/preceding_version_uid"),
    ("EHR", "EHR "),
    ("an EHR by its id", "[ehr_id/value"),
    ("EHR_STATUS", "EHR_STATUS "),
    ("e/ehr_status", "/ehr_status"),
    ("e/compositions", "/compositions"),
    ("e/directory", "/directory"),
    ("FOLDER", "FOLDER "),
    ("VERSION", "VERSION "),
    ("VERSIONED_COMPOSITION", "VERSIONED_COMPOSITION"),
    ("VERSIONED_OBJECT", "VERSIONED_OBJECT"),
    ("LOCATABLE", "LOCATABLE "),
    ("ENTRY", " ENTRY "),
    ("DATA_STRUCTURE", "DATA_STRUCTURE "),
    ("DV_ORDERED", "DV_ORDERED "),
    ("PARTICIPATION", "PARTICIPATION "),
    ("links", "/links"),
    ("feeder audit", "/feeder_audit"),
    ("a class in lower case", "observation "),
];
