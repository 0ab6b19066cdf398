//! The command `lake sync`: datasets that follow their data.

use super::program::{Folder, Ran, generator, set_time, write_definitions};
use aqlite::arrow::TableFormat;
use aqlite::arrow::read::{TableRows, table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Names of compositions, for a view with a row for each of them.
const NAMES: &str =
    "SELECT c/name/value AS name, c/context/start_time/value AS at, e/ehr_id/value AS ehr_id
FROM EHR e CONTAINS COMPOSITION c ORDER BY at";

/// The rows of the lake as texts, by object: those of the last sync of each object.
type Latest = BTreeMap<String, Vec<Vec<String>>>;

/// Writes the first compositions of the sample, and the view of their names.
fn data(compositions: usize) -> Folder {
    let folder = Folder::new();
    let generator = generator();
    for ehr in 0..generator.ehrs() {
        let id = generator.ehr(ehr).ehr_id;
        for index in generator.compositions_of(ehr) {
            if index < compositions {
                let one = generator.composition(index);
                folder.write(&format!("data/{id}/{index:04}.json"), &one.json);
            }
        }
    }
    folder.write("names.aql", NAMES);
    folder
}

/// Returns the arguments of a sync of the view of names to a folder.
fn arguments(to: &str) -> [&str; 8] {
    [
        "lake",
        "sync",
        "-d",
        "data",
        "--to",
        to,
        "--view",
        "names.aql",
    ]
}

fn sync(folder: &Folder, more: &[&str]) -> Ran {
    folder.run(&[&arguments("lake")[..], more].concat())
}

/// Runs a sync that must succeed, and returns its report.
fn synced(folder: &Folder, more: &[&str]) -> String {
    let ran = sync(folder, more);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    ran.out.trim().to_owned()
}

/// Returns the paths of all files below a folder.
pub fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path)),
        }
    }
    found
}

/// Returns the tables of the data files of a view.
pub fn tables(lake: &Path, view: &str) -> Vec<TableRows> {
    let files = files(&lake.join(view).join("data"));
    let read = |path: &PathBuf| table(TableFormat::Parquet, std::fs::read(path).unwrap()).unwrap();
    files.iter().map(read).collect()
}

/// Returns the present rows of a view, without the columns of the lake but the id of the EHR. This is
/// the window function of docs/analytics.md.
pub fn latest(lake: &Path, view: &str) -> Latest {
    let mut found: BTreeMap<String, (u64, Vec<Vec<String>>)> = BTreeMap::new();
    for row in tables(lake, view).iter().flat_map(|table| &table.rows) {
        let sync: u64 = row[5].parse().unwrap();
        let of_object = found.entry(row[1].clone()).or_default();
        if sync > of_object.0 {
            *of_object = (sync, Vec::new());
        }
        if sync == of_object.0 && row[4] == "false" {
            of_object.1.push([&row[..1], &row[6..]].concat());
        }
    }
    let present = found.into_iter().filter(|(_, (_, rows))| !rows.is_empty());
    present.map(|(object, (_, rows))| (object, rows)).collect()
}

/// Returns the rows of a lake that a single sync writes.
fn fresh(folder: &Folder) -> Latest {
    let lake = folder.path().join("fresh");
    drop(std::fs::remove_dir_all(&lake));
    let ran = folder.run(&arguments("fresh"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    latest(&lake, "names")
}

/// Returns the files that contain a text, also in the cells of Parquet files.
pub fn files_with(lake: &Path, text: &str) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        let is_table = path.extension().is_some_and(|ending| ending == "parquet");
        let in_bytes = bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes());
        in_bytes
            || is_table && {
                let rows = table(TableFormat::Parquet, bytes).unwrap().rows;
                rows.concat().iter().any(|cell| cell.contains(text))
            }
    };
    files(lake).into_iter().filter(holds).collect()
}

#[test]
fn rows_are_those_of_the_query_and_a_second_sync_writes_nothing() {
    let folder = data(40);
    assert_eq!(synced(&folder, &[]), "names: 40 rows of 40 compositions");
    let lake = folder.path().join("lake");
    let query = folder.run(&[
        "query",
        "-d",
        "data",
        "-f",
        "names.aql",
        "--format",
        "ndjson",
    ]);
    let mut expected: Vec<String> = query
        .out
        .lines()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            format!("{} {} {}", row["ehr_id"], row["name"], row["at"])
        })
        .collect();
    expected.sort();
    let rows = latest(&lake, "names").into_values().flatten();
    let mut found: Vec<String> = rows.map(|row| row.join(" ")).collect();
    found.sort();
    let is_time = |text: &String| text.contains('T');
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().chain(&expected).all(is_time));
    let head = |line: &String| line.rsplit_once(' ').unwrap().0.to_owned();
    assert!(found.iter().map(head).eq(expected.iter().map(head)));
    let columns = &tables(&lake, "names")[0].columns;
    let lake_columns = [
        "ehr_id",
        "object_id",
        "version",
        "time_committed",
        "deleted",
        "sync",
    ];
    assert_eq!(columns[..6], lake_columns);
    assert_eq!(columns[6..], ["name", "at"]);
    let before = files(&lake);
    assert_eq!(synced(&folder, &[]), "names: no changes");
    // Without an index of the files the rows themselves are compared.
    let compared = synced(&folder, &["--no-cache"]);
    assert_eq!(compared, "names: no changes");
    assert_eq!(files(&lake), before);
}

#[test]
fn later_syncs_append_changed_new_and_deleted_compositions() {
    let folder = data(30);
    synced(&folder, &[]);
    let lake = folder.path().join("lake");
    let first = files(&lake.join("names/data"));
    let all: Vec<PathBuf> = files(&folder.path().join("data")).into_iter().collect();
    let text = std::fs::read_to_string(&all[0]).unwrap();
    let changed = text.replacen("\"value\":\"", "\"value\":\"Changed ", 1);
    std::fs::write(&all[0], changed).unwrap();
    set_time(&all[0], 1_767_300_000);
    let ehr = all[1].parent().unwrap();
    let siblings = all.iter().filter(|path| path.starts_with(ehr)).count();
    assert!(
        siblings > 1,
        "the EHR stays when one of its compositions goes"
    );
    std::fs::remove_file(&all[1]).unwrap();
    let folder_of = ehr
        .strip_prefix(folder.path())
        .unwrap()
        .display()
        .to_string();
    folder.write(
        &format!("{folder_of}/new.json"),
        &generator().composition(50).json,
    );
    let dry = synced(&folder, &["--dry-run"]);
    let expected = "names: 2 rows of 2 compositions, 1 deleted compositions";
    assert_eq!(dry, format!("{expected} (dry run: nothing was written)"));
    assert_eq!(files(&lake.join("names/data")), first);
    assert_eq!(synced(&folder, &[]), expected);
    assert!(
        files(&lake.join("names/data")).is_superset(&first),
        "files are appended"
    );
    assert_eq!(files(&lake.join("names/data")).len(), first.len() + 1);
    assert_eq!(latest(&lake, "names"), fresh(&folder));
    let deleted: Vec<Vec<String>> = tables(&lake, "names").pop().unwrap().rows;
    let deleted: Vec<_> = deleted.iter().filter(|row| row[4] == "true").collect();
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0][6..], ["null", "null"]);
    assert_eq!(synced(&folder, &["--no-cache"]), "names: no changes");
}

#[test]
fn removed_ehr_leaves_every_file() {
    let folder = data(40);
    synced(&folder, &[]);
    let lake = folder.path().join("lake");
    let gone = std::fs::read_dir(folder.path().join("data")).unwrap();
    let gone = gone.map(|entry| entry.unwrap().path()).min().unwrap();
    // Rows of the EHR are in two files, and its name in one of them.
    let first = files(&gone).into_iter().next().unwrap();
    let text = std::fs::read_to_string(&first).unwrap();
    std::fs::write(
        &first,
        text.replacen("\"value\":\"", "\"value\":\"Unmistakable ", 1),
    )
    .unwrap();
    set_time(&first, 1_767_300_000);
    synced(&folder, &[]);
    let ehr = gone.file_name().unwrap().to_string_lossy().into_owned();
    let object = latest(&lake, "names");
    let object = object
        .iter()
        .find(|(_, rows)| rows[0][0].contains(&ehr))
        .unwrap()
        .0;
    let object = object.trim_matches('"').to_owned();
    for text in [&ehr, &object, &String::from("Unmistakable")] {
        assert!(!files_with(&lake, text).is_empty(), "{text}");
    }
    std::fs::remove_dir_all(&gone).unwrap();
    let said = synced(&folder, &[]);
    assert!(
        said.ends_with("1 removed EHRs, 2 files written again"),
        "{said}"
    );
    for text in [&ehr, &object, &String::from("Unmistakable")] {
        assert_eq!(files_with(&lake, text), Vec::<PathBuf>::new(), "{text}");
    }
    assert_eq!(latest(&lake, "names"), fresh(&folder));
    let metadata = std::fs::read_to_string(lake.join("names/metadata/v3.metadata.json")).unwrap();
    assert_eq!(
        metadata.matches("\"manifest-list\"").count(),
        1,
        "older snapshots expire"
    );
}

#[test]
fn killed_sync_is_repeated_without_a_second_row() {
    let folder = data(60);
    let lake = folder.path().join("lake");
    // The delays are parts of the time that a whole sync takes, however busy the machine is. The
    // first sync also writes the index of the files, and takes longer than later ones.
    let mut whole = Duration::ZERO;
    for _ in 0..2 {
        let begun = Instant::now();
        synced(&folder, &[]);
        whole = begun.elapsed();
        std::fs::remove_dir_all(&lake).unwrap();
    }
    let mut killed = 0;
    for round in 0..12 {
        let child = folder
            .command(&arguments("lake"))
            .stdout(Stdio::null())
            .spawn();
        let mut child = child.unwrap();
        std::thread::sleep(whole * (round + 1) / 14);
        let is_killed = child.try_wait().unwrap().is_none();
        killed += u32::from(is_killed);
        child.kill().unwrap();
        child.wait().unwrap();
        // A sync that has ended leaves nothing to do for the next ones.
        if !is_killed {
            std::fs::remove_dir_all(&lake).unwrap();
        }
        if round % 3 == 2 {
            let index = 60 + round as usize;
            let one = generator().composition(index);
            let ehr = generator().ehr(one.ehr).ehr_id;
            folder.write(&format!("data/{ehr}/{index:04}.json"), &one.json);
        }
    }
    assert!(killed >= 3, "{killed} of 12 were killed");
    synced(&folder, &[]);
    let objects = latest(&lake, "names");
    assert_eq!(objects, fresh(&folder));
    let rows: usize = tables(&lake, "names")
        .iter()
        .map(|table| table.rows.len())
        .sum();
    assert_eq!(rows, objects.len(), "no row is written twice");
    let state = std::fs::read_to_string(lake.join("_aqlite/state.json")).unwrap();
    for file in files(&lake.join("names/data")) {
        let name = file.strip_prefix(&lake).unwrap().display().to_string();
        assert!(state.contains(&name), "{name} belongs to no sync");
    }
}

#[test]
fn damaged_index_of_the_files_is_written_again() {
    let folder = data(12);
    synced(&folder, &[]);
    let cache = folder.path().join(".cache");
    let index = files(&cache).into_iter().next().unwrap();
    let whole = std::fs::read(&index).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 16) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&index, bytes).unwrap();
        let rows = fresh(&folder);
        assert_eq!(rows.len(), 12, "{at}");
    }
    assert_eq!(fresh(&folder), latest(&folder.path().join("lake"), "names"));
}

#[test]
fn incomplete_files_of_a_killed_sync_are_removed() {
    let folder = data(3);
    synced(&folder, &[]);
    let lake = folder.path().join("lake");
    let incomplete = lake.join("names/data/00000002-0001.parquet#1");
    std::fs::write(&incomplete, "rows").unwrap();
    assert_eq!(synced(&folder, &[]), "names: no changes");
    assert!(!incomplete.exists());
}

#[test]
fn column_whose_type_changes_is_written_again() {
    let folder = data(0);
    let generator = generator();
    let ehr = generator.ehr(0).ehr_id;
    let document = generator.composition(0).json;
    let name = "\"value\":\"Amount\"";
    let with = |index: usize, value: &str| {
        let uid = format!("\"name\":{{\"_type\":\"DV_TEXT\",\"value\":\"{value}\"}}");
        let start = document.find("\"name\":{").unwrap();
        let end = start + document[start..].find('}').unwrap() + 1;
        let text = format!("{}{uid}{}", &document[..start], &document[end..]);
        folder.write(&format!("data/{ehr}/{index}.json"), &text);
    };
    assert!(!document.contains(name));
    with(0, "2024-01-01T10:00:00Z");
    synced(&folder, &[]);
    with(1, "no time");
    let said = synced(&folder, &[]);
    assert!(said.ends_with("1 files written again"), "{said}");
    let lake = folder.path().join("lake");
    let names: Vec<String> = latest(&lake, "names")
        .into_values()
        .map(|rows| rows[0][1].clone())
        .collect();
    let expected = ["\"2024-01-01T10:00:00Z\"", "\"no time\""];
    assert!(
        expected
            .iter()
            .all(|name| names.contains(&(*name).to_owned())),
        "{names:?}"
    );
    let columns: BTreeSet<Vec<String>> = tables(&lake, "names")
        .into_iter()
        .map(|table| table.columns)
        .collect();
    assert_eq!(columns.len(), 1);
}

#[test]
fn pseudonyms_replace_the_ids_of_patients() {
    let folder = data(20);
    folder.write("key", &"k".repeat(64));
    folder.write("other", &"o".repeat(64));
    synced(&folder, &["--pseudonyms", "key"]);
    let lake = folder.path().join("lake");
    let plain = fresh(&folder);
    let with_pseudonyms = latest(&lake, "names");
    assert_eq!(plain.len(), with_pseudonyms.len());
    let ids: BTreeSet<&String> = plain.values().flatten().map(|row| &row[0]).collect();
    let pseudonyms: BTreeSet<&String> = with_pseudonyms
        .values()
        .flatten()
        .map(|row| &row[0])
        .collect();
    assert_eq!(ids.len(), pseudonyms.len());
    for id in ids {
        let found = files_with(&lake, id.trim_matches('"'));
        assert_eq!(found, Vec::<PathBuf>::new(), "{id}");
    }
    let next = generator().composition(20);
    let ehr = generator().ehr(next.ehr).ehr_id;
    folder.write(&format!("data/{ehr}/0020.json"), &next.json);
    for (more, problem) in [
        (&[][..], "name their key by --pseudonyms"),
        (&["--pseudonyms", "other"], "another key"),
    ] {
        let ran = sync(&folder, more);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(problem), "{}", ran.err);
    }
    let said = synced(&folder, &["--pseudonyms", "key"]);
    assert_eq!(said, "names: 1 rows of 1 compositions");
    let of_one = format!(
        "SELECT c/name/value AS name FROM EHR e CONTAINS COMPOSITION c WHERE e/ehr_id/value = '{ehr}'"
    );
    folder.write("one.aql", &of_one);
    let ran = sync(&folder, &["--pseudonyms", "key", "--view", "one.aql"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("of a patient"), "{}", ran.err);
    assert_eq!(files_with(&lake, &ehr), Vec::<PathBuf>::new());
}

#[test]
fn wrong_views_and_wrong_data_are_refused() {
    let folder = data(5);
    synced(&folder, &[]);
    for (text, problem) in [
        ("SELECT COUNT(*) FROM COMPOSITION c", "aggregate"),
        ("SELECT c/name/value FROM COMPOSITION c LIMIT 3", "LIMIT"),
        (
            "SELECT c/name/value AS object_id FROM COMPOSITION c",
            "name it otherwise by AS",
        ),
        ("SELECT c/nam FROM COMPOSITION c", "nam"),
    ] {
        folder.write("wrong.aql", text);
        let ran = folder.run(&[
            "lake",
            "sync",
            "-d",
            "data",
            "--to",
            "lake",
            "--view",
            "wrong.aql",
        ]);
        assert_eq!(ran.code, Some(1), "{text}: {}", ran.err);
        assert!(ran.err.contains(problem), "{text}: {}", ran.err);
    }
    for view in ["_aqlite=names.aql", "a/b=names.aql", "=names.aql"] {
        let ran = folder.run(&["lake", "sync", "-d", "data", "--to", "lake", "--view", view]);
        assert_eq!(ran.code, Some(2), "{view}: {}", ran.err);
    }
    folder.write("names.aql", &NAMES.replace(" AS at", " AS start"));
    let ran = sync(&folder, &[]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("--rebuild"), "{}", ran.err);
    assert_eq!(
        synced(&folder, &["--rebuild"]),
        "names: 5 rows of 5 compositions"
    );
    assert_eq!(latest(&folder.path().join("lake"), "names"), fresh(&folder));
    std::fs::rename(folder.path().join("data"), folder.path().join("old")).unwrap();
    folder.write("data/unknown/1.json", &generator().composition(0).json);
    for more in [&[][..], &["--rebuild"]] {
        let ran = sync(&folder, more);
        assert_eq!(ran.code, Some(1));
        assert!(ran.err.contains("are they the right data?"), "{}", ran.err);
    }
    let said = synced(&folder, &["--allow-empty"]);
    assert!(said.contains("removed EHRs"), "{said}");
    folder.write(
        "names.aql",
        &format!(
            "{} WHERE c/name/value = 'absent'",
            NAMES.replace(" ORDER BY at", "")
        ),
    );
    assert_eq!(synced(&folder, &["--rebuild"]), "names: no changes");
    assert_eq!(files(&folder.path().join("lake/names")), BTreeSet::new());
}

#[test]
fn templates_of_the_data_are_views_by_default() {
    let folder = data(40);
    write_definitions(&folder);
    let arguments = [
        "lake",
        "sync",
        "-d",
        "data",
        "-d",
        "templates",
        "--to",
        "lake",
    ];
    let ran = folder.run(&arguments);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let views = folder.run(&[
        "lake",
        "views",
        "templates/sample.vital_signs.v1.opt",
        "-o",
        "views",
    ]);
    assert!(views.out.lines().count() > 3);
    for view in views.out.lines() {
        let name = Path::new(view)
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let line = ran
            .out
            .lines()
            .find(|line| line.starts_with(&format!("{name}: ")));
        let query = folder.run(&[
            "query",
            "-d",
            "data",
            "-d",
            "templates",
            "-f",
            view,
            "--format",
            "ndjson",
        ]);
        let expected = match query.out.lines().count() {
            0 => format!("{name}: no changes"),
            rows => format!("{name}: {rows} rows of "),
        };
        assert!(
            line.unwrap().starts_with(&expected),
            "{line:?} instead of {expected}"
        );
    }
}

#[test]
fn composition_that_moves_to_another_ehr_has_its_id() {
    let folder = data(30);
    // A view without the id of the EHR, so that its own cells stay as they are.
    folder.write(
        "names.aql",
        "SELECT c/name/value AS name FROM EHR e CONTAINS COMPOSITION c",
    );
    let all: Vec<PathBuf> = files(&folder.path().join("data")).into_iter().collect();
    let (first, other) = (&all[0], all[29].parent().unwrap());
    let document = std::fs::read_to_string(first).unwrap();
    let uid =
        r#"{"_type":"COMPOSITION","uid":{"_type":"OBJECT_VERSION_ID","value":"moved::s::1"},"#;
    let document = document.replacen(r#"{"_type":"COMPOSITION","#, uid, 1);
    assert!(document.contains("moved::s::1"));
    std::fs::write(first, document).unwrap();
    set_time(first, 1_767_225_600);
    synced(&folder, &[]);
    std::fs::rename(first, other.join("moved.json")).unwrap();
    assert_eq!(synced(&folder, &[]), "names: 1 rows of 1 compositions");
    let lake = folder.path().join("lake");
    assert_eq!(latest(&lake, "names"), fresh(&folder));
    assert_eq!(files_with(&lake.join("names/data"), "moved").len(), 2);
    // The earlier row with the wrong EHR leaves the files with the EHR that has the document.
    std::fs::remove_dir_all(other).unwrap();
    let said = synced(&folder, &[]);
    assert!(said.contains("1 removed EHRs"), "{said}");
    assert_eq!(files_with(&lake, "moved"), Vec::<PathBuf>::new());
    assert_eq!(latest(&lake, "names"), fresh(&folder));
}

#[test]
fn ehr_that_is_the_only_one_of_a_view_can_be_removed() {
    let folder = data(40);
    let ehrs = std::fs::read_dir(folder.path().join("data")).unwrap();
    let gone = ehrs.map(|entry| entry.unwrap().path()).min().unwrap();
    let ehr = gone.file_name().unwrap().to_string_lossy().into_owned();
    folder.write(
        "rare.aql",
        &format!(
            "SELECT c/name/value AS name FROM EHR e CONTAINS COMPOSITION c WHERE e/ehr_id/value = '{ehr}'"
        ),
    );
    let rare = ["--view", "rare.aql"];
    assert!(synced(&folder, &rare).contains("\nrare: "));
    std::fs::remove_dir_all(&gone).unwrap();
    let said = synced(&folder, &rare);
    assert!(
        said.contains("\nrare: 0 rows of 0 compositions, 1 removed EHRs"),
        "{said}"
    );
    let lake = folder.path().join("lake");
    assert_eq!(latest(&lake, "rare"), Latest::new());
    assert_eq!(latest(&lake, "names"), fresh(&folder));
}

#[test]
fn documents_that_cannot_be_read_are_not_removed() {
    let folder = data(30);
    synced(&folder, &[]);
    let lake = folder.path().join("lake");
    let before = latest(&lake, "names");
    let all: Vec<PathBuf> = files(&folder.path().join("data")).into_iter().collect();
    // The only file of its EHR remains, cut off, as while a copy is running; another one is absent.
    let cut = all[0].parent().unwrap();
    let documents: Vec<&PathBuf> = all.iter().filter(|path| path.starts_with(cut)).collect();
    for other in &documents[1..] {
        std::fs::remove_file(other).unwrap();
    }
    let text = std::fs::read_to_string(documents[0]).unwrap();
    let cut_off = |text: &str, seconds: u64| {
        std::fs::write(documents[0], text).unwrap();
        set_time(documents[0], seconds);
    };
    cut_off(&text[..300], 1_767_300_000);
    let expected = format!(
        "1 absent EHRs kept, {} absent compositions kept",
        documents.len()
    );
    for more in [&[][..], &["--skip-invalid"], &["--skip-invalid"]] {
        let ran = sync(&folder, more);
        assert_eq!(ran.code, Some(1), "{}", ran.out);
        assert!(ran.out.contains(&expected), "{}", ran.out);
        assert!(ran.err.contains("run the sync again"), "{}", ran.err);
        assert_eq!(latest(&lake, "names"), before);
    }
    cut_off(&text, 1_767_400_000);
    let said = synced(&folder, &[]);
    assert!(said.contains("deleted compositions"), "{said}");
    assert_eq!(latest(&lake, "names"), fresh(&folder));
}

#[test]
fn newer_version_that_cannot_be_read_keeps_its_rows() {
    let folder = data(0);
    let (document, ehr) = (generator().composition(0).json, generator().ehr(0).ehr_id);
    let version = |number: u32| {
        let uid = format!(
            r#"{{"_type":"COMPOSITION","uid":{{"_type":"OBJECT_VERSION_ID","value":"a::s::{number}"}},"#
        );
        document.replacen(r#"{"_type":"COMPOSITION","#, &uid, 1)
    };
    folder.write(&format!("data/{ehr}/1.json"), &version(1));
    folder.write(&format!("data/{ehr}/2.json"), &version(2));
    synced(&folder, &[]);
    folder.write(&format!("data/{ehr}/2.json"), "{");
    let ran = sync(&folder, &[]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(1), "names: no changes\n")
    );
}
