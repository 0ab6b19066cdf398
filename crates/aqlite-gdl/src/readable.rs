//! Checks that the paths of a binding can be read by a query.

use super::bind::{QueryPaths, class_of};
use aqlite_aql::{CheckOptions, Parameters, check, parse};

/// Returns whether a query can read each of these paths of an archetype. Paths of other models are
/// not queried.
pub(crate) fn readable(model_id: &str, paths: &[&str]) -> Vec<bool> {
    let Some(class) = class_of(model_id) else {
        return vec![true; paths.len()];
    };
    // Most guides have no invalid path, so one query usually checks them all.
    if paths.is_empty() || is_query(class, paths) {
        return vec![true; paths.len()];
    }
    let each = paths.iter().map(|path| is_query(class, &[path]));
    each.collect()
}

/// Whether these paths are the columns of a correct query.
fn is_query(class: &str, paths: &[&str]) -> bool {
    let places = QueryPaths::of_class(class);
    let columns: Vec<String> = paths.iter().map(|path| places.of(path)).collect();
    let from = match class {
        "COMPOSITION" => String::from("COMPOSITION o"),
        _ => format!("COMPOSITION c CONTAINS {class} o"),
    };
    let text = format!("SELECT {} FROM EHR e CONTAINS {from}", columns.join(", "));
    let (query, _) = parse(&text);
    query.is_some_and(|query| check(&query, &Parameters::new(), &CheckOptions::default()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_class() {
        let paths = [
            "/data[at0001]/events[at0006]/data[at0003]/items[at0004]",
            "/data[at0001]/events[at0006]/data[at0003]/items[at0004]/name",
            "/data/events/time",
            "/context/start_time",
            "/dta[at0001]/items[at0004]",
            "/data[at0001]/events[at0004{]/time",
        ];
        let found = readable("openEHR-EHR-OBSERVATION.x.v1", &paths);
        assert_eq!(found, [true, true, true, true, false, false]);
        assert_eq!(
            readable("openEHR-EHR-COMPOSITION.x.v1", &paths[3..4]),
            [true]
        );
        assert_eq!(readable("Patient", &paths[4..]), [true, true]);
    }
}
