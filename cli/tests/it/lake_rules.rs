//! The command `lake sync`: pseudonyms of all patients, and the files that belong to a lake.

use super::lake_sync::{files, files_with, latest};
use super::program::{Folder, Ran, generator, write_definitions};
use std::path::PathBuf;

const ONE: &str = "aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa";
const OTHER: &str = "bbbbbbbb-2222-4222-8222-bbbbbbbbbbbb";

/// Names of compositions. Tests put ids of patients there.
const NAMES: &str = "SELECT c/name/value AS name, c AS whole FROM EHR e CONTAINS COMPOSITION c";

/// Returns the first composition of the sample with a name.
fn named(name: &str) -> String {
    let document = generator().composition(0).json;
    let start = document.find("\"name\":{").unwrap();
    let end = start + document[start..].find('}').unwrap() + 1;
    let name = format!(r#""name":{{"_type":"DV_TEXT","value":"{name}"}}"#);
    format!("{}{name}{}", &document[..start], &document[end..])
}

/// Writes the composition of an EHR. Its name is the only text that differs.
fn write(folder: &Folder, ehr: &str, file: &str, name: &str) {
    folder.write(&format!("data/{ehr}/{file}.json"), &named(name));
}

/// Writes a version of the EHR_STATUS of an EHR.
fn write_status(folder: &Folder, ehr: &str, number: u32, subject: &str) {
    let status = format!(
        r#"{{"_type":"EHR_STATUS","archetype_node_id":"openEHR-EHR-EHR_STATUS.generic.v1","name":{{"_type":"DV_TEXT","value":"Status"}},"uid":{{"_type":"OBJECT_VERSION_ID","value":"cccccccc-3333-4333-8333-cccccccccccc::s::{number}"}},"subject":{{"_type":"PARTY_SELF","external_ref":{{"_type":"PARTY_REF","namespace":"mrn","type":"PERSON","id":{{"_type":"GENERIC_ID","value":"{subject}","scheme":"x"}}}}}},"is_queryable":true,"is_modifiable":true}}"#
    );
    folder.write(&format!("data/{ehr}/status{number}.json"), &status);
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("names.aql", NAMES);
    folder.write("key", &"k".repeat(64));
    write(&folder, ONE, "1", "plain");
    write(&folder, OTHER, "1", "plain");
    folder
}

fn sync_to(folder: &Folder, to: &str, more: &[&str]) -> Ran {
    let arguments = ["lake", "sync", "-d", "data", "--to", to];
    folder.run(&[&arguments[..], more].concat())
}

const NAMED: [&str; 2] = ["--view", "names.aql"];
const KEYED: [&str; 4] = ["--view", "names.aql", "--pseudonyms", "key"];

fn synced(folder: &Folder, more: &[&str]) -> String {
    let ran = sync_to(folder, "lake", more);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    ran.out.trim().to_owned()
}

#[test]
fn ids_of_other_patients_have_pseudonyms() {
    let folder = folder();
    write_status(&folder, OTHER, 1, "MRN-2");
    write(&folder, ONE, "2", OTHER);
    write(
        &folder,
        ONE,
        "3",
        &format!("see {} too", OTHER.to_uppercase()),
    );
    write(&folder, ONE, "4", "MRN-2");
    synced(&folder, &KEYED);
    let lake = folder.path().join("lake");
    for id in [ONE, OTHER, &OTHER.to_uppercase(), "MRN-2"] {
        assert_eq!(files_with(&lake, id), Vec::<PathBuf>::new(), "{id}");
    }
}

#[test]
fn lake_whose_subjects_change_is_that_of_a_first_sync() {
    let folder = folder();
    write_status(&folder, OTHER, 1, "MRN-2");
    for (file, name) in [("2", "MRN-2"), ("3", "MRN-3"), ("4", OTHER)] {
        write(&folder, ONE, file, name);
    }
    synced(&folder, &KEYED);
    let lake = folder.path().join("lake");
    assert!(!files_with(&lake, "MRN-3").is_empty(), "it is no id yet");
    write_status(&folder, OTHER, 2, "MRN-3");
    let said = synced(&folder, &KEYED);
    assert!(said.ends_with("1 files written again"), "{said}");
    for id in ["MRN-2", "MRN-3"] {
        assert_eq!(files_with(&lake, id), Vec::<PathBuf>::new(), "{id}");
    }
    let ran = sync_to(&folder, "fresh", &KEYED);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let fresh = latest(&folder.path().join("fresh"), "names");
    assert_eq!(latest(&lake, "names"), fresh);
    assert_eq!(synced(&folder, &KEYED), "names: no changes");
}

#[test]
fn id_that_becomes_known_is_replaced_in_the_files_that_have_it() {
    let folder = folder();
    let third = "dddddddd-4444-4444-8444-dddddddddddd";
    write(&folder, ONE, "2", &format!("see {third}"));
    synced(&folder, &KEYED);
    write(&folder, ONE, "3", "another file");
    synced(&folder, &KEYED);
    let lake = folder.path().join("lake");
    assert!(!files_with(&lake, third).is_empty(), "it is no id yet");
    write(&folder, third, "1", "new");
    // The document that names the new EHR has no new row: its earlier one has the pseudonym.
    let said = synced(&folder, &KEYED);
    let expected = "names: 1 rows of 1 compositions, 1 files written again";
    assert_eq!(said, expected);
    assert_eq!(files_with(&lake, third), Vec::<PathBuf>::new());
    let ran = sync_to(&folder, "fresh", &KEYED);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let fresh = latest(&folder.path().join("fresh"), "names");
    assert_eq!(latest(&lake, "names"), fresh);
    let again = synced(&folder, &[&KEYED[..], &["--no-cache"]].concat());
    assert_eq!(again, "names: no changes");
}

#[test]
fn id_that_becomes_known_leaves_datasets_that_the_run_does_not_name() {
    let folder = folder();
    folder.write("other.aql", NAMES);
    write(&folder, ONE, "2", "MRN-7");
    synced(&folder, &[&KEYED[..], &["--view", "other.aql"]].concat());
    write_status(&folder, OTHER, 1, "MRN-7");
    let other = ["--view", "other.aql", "--pseudonyms", "key"];
    let ran = sync_to(&folder, "lake", &other);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let lake = folder.path().join("lake");
    assert_eq!(files_with(&lake, "MRN-7"), Vec::<PathBuf>::new());
    assert_eq!(latest(&lake, "names"), latest(&lake, "other"));
    assert_eq!(
        synced(&folder, &[&KEYED[..], &["--view", "other.aql"]].concat())
            .lines()
            .count(),
        2
    );
}

#[test]
fn id_that_looks_like_a_date_is_replaced_in_a_column_of_dates() {
    let folder = folder();
    folder.write(
        "names.aql",
        "SELECT c/name/value AS name FROM EHR e CONTAINS COMPOSITION c",
    );
    for (ehr, date) in [(ONE, "2024-01-01"), (OTHER, "2024-01-02")] {
        write(&folder, ehr, "1", date);
    }
    synced(&folder, &KEYED);
    write_status(&folder, OTHER, 1, "2024-01-01");
    synced(&folder, &KEYED);
    let lake = folder.path().join("lake");
    assert_eq!(files_with(&lake, "2024-01-01"), Vec::<PathBuf>::new());
    let ran = sync_to(&folder, "fresh", &KEYED);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let fresh = latest(&folder.path().join("fresh"), "names");
    assert_eq!(latest(&lake, "names"), fresh);
}

#[test]
fn ids_of_a_removed_patient_keep_their_pseudonyms() {
    let folder = folder();
    let simple = OTHER.replace('-', "").to_uppercase();
    write_status(&folder, OTHER, 1, "MRN-2");
    for (file, name) in [
        ("2", OTHER),
        ("3", "MRN-2"),
        ("4", &format!("see {simple}")),
    ] {
        write(&folder, ONE, file, name);
    }
    folder.write("other.aql", NAMES);
    let both = [&KEYED[..], &["--view", "other.aql"]].concat();
    synced(&folder, &both);
    let lake = folder.path().join("lake");
    let before = latest(&lake, "names");
    std::fs::remove_dir_all(folder.path().join("data").join(OTHER)).unwrap();
    let said = synced(&folder, &both);
    assert!(
        said.contains("names: 0 rows of 0 compositions, 1 removed EHRs"),
        "{said}"
    );
    let ids = [OTHER, &OTHER.to_uppercase(), &simple, "MRN-2"];
    let has_none = || {
        for id in ids {
            assert_eq!(files_with(&lake, id), Vec::<PathBuf>::new(), "{id}");
        }
    };
    has_none();
    let after = latest(&lake, "names");
    assert_eq!(after.len() + 1, before.len());
    assert!(after.iter().all(|(object, rows)| before[object] == *rows));
    // A later document names the removed patient, and all rows are written anew.
    write(&folder, ONE, "5", &format!("MRN-2 and {OTHER}"));
    write(&folder, ONE, "6", "MRN-2");
    synced(&folder, &both);
    let kept = latest(&lake, "names");
    let found = kept
        .values()
        .flatten()
        .filter(|row| row[1].contains("MRN-2"));
    assert_eq!(found.count(), 1, "an id within a longer text is no UUID");
    std::fs::remove_file(folder.path().join(format!("data/{ONE}/5.json"))).unwrap();
    synced(&folder, &[&both[..], &["--rebuild"]].concat());
    has_none();
    let query = NAMES.replace("AS name", "AS name, 'MRN-2' AS mrn");
    folder.write("mrn.aql", &query);
    let ran = sync_to(
        &folder,
        "lake",
        &["--view", "mrn.aql", "--pseudonyms", "key"],
    );
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("of a patient"), "{}", ran.err);
}

#[test]
fn damaged_list_of_pseudonyms_is_an_error() {
    let folder = folder();
    synced(&folder, &KEYED);
    let list = folder.path().join("lake/_aqlite/pseudonyms/00000001.list");
    let bytes = std::fs::read(&list).unwrap();
    std::fs::write(&list, &bytes[1..]).unwrap();
    write(&folder, ONE, "2", "new");
    let ran = sync_to(&folder, "lake", &KEYED);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("is damaged"), "{}", ran.err);
    std::fs::write(&list, &bytes).unwrap();
    assert_eq!(synced(&folder, &KEYED), "names: 1 rows of 1 compositions");
}

#[test]
fn query_that_names_a_patient_in_any_form_is_refused() {
    let folder = folder();
    write_status(&folder, OTHER, 1, "MRN-2");
    for more in [
        " WHERE c/name/value LIKE 'mrn-2*'",
        " WHERE c/name/value = 'MRN\\u002d2'",
        " -- of MRN-2",
        " WHERE c/name/value matches {'a', 'b MRN-2'}",
    ] {
        folder.write("names.aql", &format!("{NAMES}{more}"));
        let ran = sync_to(&folder, "lake", &KEYED);
        assert_eq!(ran.code, Some(1), "{more}: {}", ran.out);
        assert!(ran.err.contains("of a patient"), "{more}: {}", ran.err);
    }
    let state = std::fs::read_to_string(folder.path().join("lake/_aqlite/state.json")).unwrap();
    assert!(!state.to_lowercase().contains("mrn"), "{state}");
}

#[test]
fn derived_id_of_a_composition_depends_on_the_key() {
    let folder = folder();
    synced(&folder, &KEYED);
    let ran = sync_to(&folder, "plain", &NAMED);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let plain = latest(&folder.path().join("plain"), "names");
    assert_eq!(plain.len(), 2);
    for object in plain.keys() {
        let id = object.trim_matches('"');
        let found = files_with(&folder.path().join("lake"), id);
        assert_eq!(found, Vec::<PathBuf>::new(), "{id}");
    }
}

#[test]
fn removed_ehr_leaves_datasets_that_the_run_does_not_name() {
    let folder = folder();
    folder.write("other.aql", NAMES);
    write(&folder, OTHER, "2", "Unmistakable");
    synced(&folder, &["--view", "names.aql", "--view", "other.aql"]);
    std::fs::remove_dir_all(folder.path().join("data").join(OTHER)).unwrap();
    let ran = sync_to(&folder, "lake", &["--view", "other.aql"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("--drop NAME"), "{}", ran.err);
    assert!(ran.out.contains("\nnames: "), "{}", ran.out);
    let lake = folder.path().join("lake");
    for text in [OTHER, "Unmistakable"] {
        assert_eq!(files_with(&lake, text), Vec::<PathBuf>::new(), "{text}");
    }
    assert_eq!(latest(&lake, "names"), latest(&lake, "other"));
    folder.write("lake/names/data/notes.txt", "mine");
    let ran = folder.run(&["lake", "sync", "--to", "lake", "--drop", "names"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "names: dropped\n"));
    let left = files(&lake.join("names"));
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(
        synced(&folder, &["--view", "other.aql"]),
        "other: no changes"
    );
}

#[test]
fn files_of_the_user_stay() {
    let folder = folder();
    folder.write("lake/names/data/00000001-0001.parquet", "mine");
    let ran = sync_to(&folder, "lake", &NAMED);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("belongs to no dataset"), "{}", ran.err);
    let mine = folder.path().join("lake/names/data/00000001-0001.parquet");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
    std::fs::remove_file(&mine).unwrap();
    synced(&folder, &NAMED);
    folder.write("lake/names/data/notes.txt", "mine");
    assert_eq!(synced(&folder, &NAMED), "names: no changes");
    assert!(folder.path().join("lake/names/data/notes.txt").exists());
}

#[test]
fn missing_and_damaged_data_files_are_errors() {
    let folder = folder();
    synced(&folder, &NAMED);
    let data = folder.path().join("lake/names/data/00000001-0001.parquet");
    let bytes = std::fs::read(&data).unwrap();
    std::fs::write(&data, &bytes[..9]).unwrap();
    let ran = sync_to(&folder, "lake", &NAMED);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("has 9 bytes instead of"), "{}", ran.err);
    std::fs::remove_file(&data).unwrap();
    let ran = sync_to(&folder, "lake", &NAMED);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("is missing"), "{}", ran.err);
    let said = synced(&folder, &["--view", "names.aql", "--rebuild"]);
    assert_eq!(said, "names: 2 rows of 2 compositions");
    folder.write("lake/_aqlite/state.json", "{\"form\": 2,");
    let ran = sync_to(&folder, "lake", &NAMED);
    assert!(ran.err.contains("restore this file"), "{}", ran.err);
}

#[test]
fn view_that_fails_does_not_keep_the_others() {
    let folder = folder();
    folder.write("other.aql", NAMES);
    synced(&folder, &["--view", "names.aql", "--view", "other.aql"]);
    folder.write("names.aql", &NAMES.replace("AS name", "AS title"));
    let spaced = format!("-- A comment\n{}", NAMES.replace(", ", ",\n  "));
    folder.write("other.aql", &spaced);
    write(&folder, ONE, "2", "new");
    let both = ["--view", "names.aql", "--view", "other.aql"];
    let ran = sync_to(&folder, "lake", &both);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("rows of another query"), "{}", ran.err);
    let expected = "names: failed\nother: 1 rows of 1 compositions\n";
    assert_eq!(ran.out, expected);
}

#[test]
fn tables_of_templates_with_similar_names_differ() {
    let folder = folder();
    write_definitions(&folder);
    let path = folder.path().join("templates/sample.vital_signs.v1.opt");
    let template = std::fs::read_to_string(path).unwrap();
    let similar = template.replace("sample.vital_signs.v1", "sample-Vital_signs.v1");
    folder.write("similar/a.opt", &template);
    folder.write("similar/b.opt", &similar);
    let names = |first: &str, second: &str| {
        let more = ["--template", first, "--template", second, "--dry-run"];
        let ran = sync_to(&folder, "lake", &more);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let names = ran
            .out
            .lines()
            .map(|line| line.split(':').next().unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let one = names("similar/a.opt", "similar/b.opt");
    assert_eq!(one, names("similar/b.opt", "similar/a.opt"));
    let roots = one.iter().filter(|name| {
        let rest = name.strip_prefix("sample_vital_signs_v1_");
        rest.is_some_and(|rest| rest.len() == 8)
    });
    assert_eq!(roots.count(), 2, "{one:?}");
    folder.write("Names.aql", NAMES);
    let both = ["--view", "names.aql", "--view", "Names.aql"];
    let ran = sync_to(&folder, "lake", &both);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("the case of letters"), "{}", ran.err);
}

#[test]
fn dry_run_of_a_new_place_writes_nothing() {
    let folder = folder();
    let said = synced(&folder, &["--view", "names.aql", "--dry-run"]);
    assert!(
        said.starts_with("names: 2 rows of 2 compositions"),
        "{said}"
    );
    assert!(!folder.path().join("lake").exists());
}
