//! Physical deletion leaves nothing of the patient in the files of a database, however short the
//! text was. It must not remove parts of the documents of other patients.

use crate::sqlite::Sqlite;
use crate::store::{Draft, EHR, OTHER, creation, done};
use crate::upgrade::{Host, text};
use aqlite::document::{LayoutStore, ObjectKind, Texts, pack};
use aqlite::service::Request;
use aqlite::store::repository::{Repository, Version, VersionSelector};
use serde_json::Value;
use std::path::{Path, PathBuf};

const PATIENT: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const NEIGHBOR: &str = "7ba7b810-9dad-41d1-80b4-00c04fd430c8";

/// Returns a name of `length` characters that occur nowhere else, so that a single character
/// identifies it.
fn name(length: u32) -> String {
    (0..length)
        .map(|n| char::from_u32(0xE000 + length * 20 + n).expect("a character of private use"))
        .collect()
}

fn folder(of: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("aqlite-privacy-{}-{of}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("folder");
    folder
}

/// Bytes of the header of a write-ahead log, and of the header of each page in it ("WAL File Format"
/// in the documentation of SQLite).
const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// Returns the pages in a write-ahead log. Its headers have random salts and checksums, which may
/// equal any three bytes.
fn pages_of_log(log: &[u8]) -> Vec<Vec<u8>> {
    let Some((header, frames)) = log.split_at_checked(WAL_HEADER) else {
        return Vec::new();
    };
    let size = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    let frame = FRAME_HEADER + size as usize;
    assert_eq!(frames.len() % frame, 0, "pages of {size} bytes");
    let pages = frames.chunks(frame);
    pages.map(|frame| frame[FRAME_HEADER..].to_vec()).collect()
}

/// Returns the contents of the files of a database without the parts that SQLite draws at random.
fn contents(folder: &Path) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(folder).expect("folder").flatten();
    let read = |entry: std::fs::DirEntry| {
        let (name, bytes) = (entry.file_name(), std::fs::read(entry.path()));
        let bytes = bytes.expect("file");
        match name.to_string_lossy().rsplit('-').next() {
            Some("wal") => pages_of_log(&bytes),
            // The index of the log has checksums and no text.
            Some("shm") => Vec::new(),
            Some("journal") => panic!("a rollback journal outlives its transaction"),
            _ => vec![bytes],
        }
    };
    files.flat_map(read).collect()
}

/// Returns the lengths of the names of which a character occurs in a file of the folder.
fn found_in(folder: &Path) -> Vec<u32> {
    let files = contents(folder);
    let occurs = |c: char| {
        let mut bytes = [0; 4];
        let bytes = c.encode_utf8(&mut bytes).as_bytes();
        files
            .iter()
            .any(|file| file.windows(bytes.len()).any(|window| window == bytes))
    };
    (1..=12)
        .filter(|length| name(*length).chars().any(occurs))
        .collect()
}

fn with(json: &str, values: &[(&str, &str)]) -> String {
    let mut document: Value = serde_json::from_str(json).expect("a document");
    for (pointer, value) in values {
        *document
            .pointer_mut(pointer)
            .unwrap_or_else(|| panic!("{pointer}")) = Value::from(*value);
    }
    document.to_string()
}

/// Creates a service with a template and another patient, who has documents too.
fn host(database: &Sqlite) -> Host {
    let mut host = Host::over(database);
    host.made(
        "POST",
        "definition/template/adl1.4",
        "application/xml",
        &text("template/small.opt"),
        "",
    );
    host.made(
        "PUT",
        &format!("ehr/{NEIGHBOR}"),
        "application/json",
        "",
        "",
    );
    host.made(
        "POST",
        &format!("ehr/{NEIGHBOR}/composition"),
        "application/json",
        &text("rest/weight.json"),
        "",
    );
    host
}

/// Creates an EHR whose documents contain a name at every place of a typed text. Returns the
/// composition's uid.
fn admit(host: &mut Host, name: &str) -> String {
    let json = "application/json";
    let id = "/subject/external_ref/id/value";
    let status = with(
        &text("rest/status.json"),
        &[("/name/value", name), (id, name)],
    );
    host.made("PUT", &format!("ehr/{PATIENT}"), json, &status, "");
    let folder = with(
        &text("rest/directory.json"),
        &[
            ("/name/value", name),
            ("/folders/0/name/value", name),
            ("/folders/0/folders/0/name/value", name),
        ],
    );
    host.made(
        "POST",
        &format!("ehr/{PATIENT}/directory"),
        json,
        &folder,
        "",
    );
    let named = [
        ("/name/value", name),
        ("/composer/name", name),
        ("/archetype_details/rm_version", name),
        ("/content/0/archetype_details/rm_version", name),
        ("/content/0/name/value", name),
        ("/content/0/data/events/0/data/items/0/name/value", name),
    ];
    host.made(
        "POST",
        &format!("ehr/{PATIENT}/composition"),
        json,
        &with(&text("rest/weight.json"), &named),
        "",
    )
}

fn remove(host: &mut Host, method: &str, path: &str) {
    let response = host.send(Request::new(
        method,
        &format!("/rest/openehr/v1/admin/{path}"),
    ));
    assert_eq!(response.status, 204, "{method} {path}: {response:?}");
}

fn compositions(host: &mut Host) -> usize {
    let request = Request::new(
        "GET",
        "/rest/openehr/v1/query/aql?q=SELECT%20c%20FROM%20EHR%20e%20CONTAINS%20COMPOSITION%20c",
    );
    let response = host.send(request);
    let body: Value = serde_json::from_slice(&response.body).expect("JSON");
    body["rows"]
        .as_array()
        .unwrap_or_else(|| panic!("{response:?}"))
        .len()
}

#[test]
fn salts_of_a_log_are_no_text_of_a_patient() {
    let secret = name(1);
    let salted = |page: &[u8]| {
        let mut log = vec![0; WAL_HEADER];
        log[10] = 2;
        log[16..16 + secret.len()].copy_from_slice(secret.as_bytes());
        for page in [page, &[0; 512]] {
            let mut header = [0; FRAME_HEADER];
            header[8..8 + secret.len()].copy_from_slice(secret.as_bytes());
            log.extend(header.iter().chain(page));
        }
        log
    };
    let folder = folder("salts");
    let file = folder.join("database.sqlite-wal");
    std::fs::write(&file, salted(&[0; 512])).expect("written");
    assert_eq!(found_in(&folder), [0; 0]);
    let mut page = [0; 512];
    page[509..].copy_from_slice(secret.as_bytes());
    std::fs::write(&file, salted(&page)).expect("written");
    assert_eq!(found_in(&folder), [1]);
    std::fs::remove_dir_all(&folder).expect("cleaned");
}

#[test]
fn deleting_an_ehr_removes_names_of_every_length_from_the_files() {
    for journal in ["DELETE", "WAL"] {
        let folder = folder(&format!("ehr-{journal}"));
        let database = Sqlite::in_file(&folder.join("database.sqlite"));
        database.behind(&format!("PRAGMA journal_mode = {journal}"));
        let mut host = host(&database);
        for length in 1..=12 {
            admit(&mut host, &name(length));
            let shared = database
                .texts("SELECT skeleton FROM shape UNION ALL SELECT archetypes FROM profile")
                .concat();
            assert!(
                !name(length).chars().any(|c| shared.contains(c)),
                "a name of {length} characters is shared"
            );
            assert_eq!(found_in(&folder), [length], "{journal}");
            remove(&mut host, "DELETE", &format!("ehr/{PATIENT}"));
            database.behind("PRAGMA wal_checkpoint(TRUNCATE)");
            assert_eq!(found_in(&folder), [0; 0], "{journal} {length}");
        }
        assert_eq!(compositions(&mut host), 1);
        std::fs::remove_dir_all(&folder).expect("cleaned");
    }
}

#[test]
fn deleting_an_object_or_a_reset_removes_names_of_every_length() {
    let folder = folder("object");
    let database = Sqlite::in_file(&folder.join("database.sqlite"));
    let mut host = host(&database);
    host.made("PUT", &format!("ehr/{PATIENT}"), "application/json", "", "");
    for length in 1..=12 {
        let named = with(
            &text("rest/weight.json"),
            &[
                ("/composer/name", &name(length)),
                ("/name/value", &name(length)),
            ],
        );
        let uid = host.made(
            "POST",
            &format!("ehr/{PATIENT}/composition"),
            "application/json",
            &named,
            "",
        );
        assert_eq!(found_in(&folder), [length]);
        remove(
            &mut host,
            "DELETE",
            &format!("ehr/{PATIENT}/composition/{uid}"),
        );
        assert_eq!(found_in(&folder), [0; 0], "{length}");
    }
    remove(&mut host, "DELETE", &format!("ehr/{PATIENT}"));
    for length in 1..=12 {
        admit(&mut host, &name(length));
        assert_eq!(found_in(&folder), [length]);
        remove(&mut host, "POST", "reset");
        assert_eq!(found_in(&folder), [0; 0], "{length}");
        host.made(
            "POST",
            "definition/template/adl1.4",
            "application/xml",
            &text("template/small.opt"),
            "",
        );
    }
    std::fs::remove_dir_all(&folder).expect("cleaned");
}

/// Returns a version as an earlier release packed it: with a name in its layout.
fn early(ehr: &str, object: &str, name: &str) -> Version {
    let draft = Draft {
        ehr,
        text: name,
        ..Draft::of(ObjectKind::Folder, object, 1)
    };
    let (tree, known) = (
        draft.version().packed.unpack(),
        [name.to_owned()].into_iter().collect::<Texts>(),
    );
    Version {
        packed: pack(tree.root().expect("root"), &known, &LayoutStore::new()),
        ..draft.version()
    }
}

fn skeletons_with(database: &Sqlite, name: &str) -> usize {
    database
        .texts("SELECT skeleton FROM shape")
        .iter()
        .filter(|text| text.contains(name))
        .count()
}

/// Returns a database with a document of an earlier release in each of two EHRs, whose layouts have
/// the names `JD` and `QX`.
fn early_documents() -> Sqlite {
    let database = Sqlite::in_memory();
    let store = database.repository();
    for (ehr, object, name) in [(EHR, "a", "JD"), (OTHER, "b", "QX")] {
        done(store.commit(creation(ehr, None)));
        let draft = Draft {
            ehr,
            ..Draft::of(ObjectKind::Folder, object, 1)
        };
        done(store.commit(aqlite::store::repository::Commit {
            versions: vec![early(ehr, object, name)],
            ..draft.commit()
        }));
    }
    assert_eq!(
        (
            skeletons_with(&database, "JD"),
            skeletons_with(&database, "QX")
        ),
        (1, 1)
    );
    database
}

/// Deletes the document with `JD`, and leaves its layout.
const WITHOUT_FIRST: &str =
    "DELETE FROM version WHERE object = 'a'; DELETE FROM contribution WHERE uid = 'c-a-1'";

#[test]
fn layouts_are_searched_in_two_hundred_steps_at_most() {
    // A step searches 50,000 ids of versions.
    for (last, left) in [(10_000_000, 0), (10_000_001, 1)] {
        let database = early_documents();
        database.behind(WITHOUT_FIRST);
        database.behind(&format!(
            "UPDATE version SET id = {last} WHERE object = 'b'"
        ));
        done(database.repository().sweep());
        assert_eq!(skeletons_with(&database, "JD"), left, "{last}");
        assert_eq!(skeletons_with(&database, "QX"), 1, "{last}");
    }
}

#[test]
fn layouts_of_earlier_releases_are_removed_with_their_last_document() {
    for sweeps in [false, true] {
        let database = early_documents();
        let store = database.repository();
        if sweeps {
            database.behind(WITHOUT_FIRST);
            done(store.sweep());
        } else {
            assert!(done(store.delete_ehr(EHR)));
        }
        assert_eq!(
            (
                skeletons_with(&database, "JD"),
                skeletons_with(&database, "QX")
            ),
            (0, 1)
        );
        let stays = done(
            database
                .repository()
                .version(OTHER, "b", VersionSelector::Latest),
        )
        .expect("a version");
        assert!(stays.packed.to_json().contains("QX"));
        done(store.reset());
        assert_eq!(database.texts("SELECT skeleton FROM shape").concat(), "");
    }
}

#[test]
fn cached_layouts_that_were_removed_are_not_used() {
    let database = Sqlite::in_memory();
    let (one, two) = (database.repository(), database.repository());
    for store in [&one, &two] {
        let ehr = if std::ptr::eq(store, &one) {
            EHR
        } else {
            OTHER
        };
        done(store.commit(creation(ehr, None)));
    }
    let draft = |ehr, object| Draft {
        ehr,
        text: "kept",
        ..Draft::composition(object, 1)
    };
    done(one.commit(draft(EHR, "a").commit()));
    done(two.commit(draft(EHR, "b").commit()));
    // Both instances have cached the layouts. Deleting the last documents with these layouts
    // removes them.
    assert!(done(two.delete_ehr(EHR)));
    let before: Vec<String> = database.texts("SELECT id FROM shape");
    done(one.commit(draft(OTHER, "c").commit()));
    let newest = |ids: &[String]| ids.iter().filter_map(|id| id.parse::<u64>().ok()).max();
    assert!(
        newest(&database.texts("SELECT id FROM shape")) > newest(&before),
        "an id is given twice"
    );
    for reader in [&one, &two, &database.repository()] {
        let version = done(reader.version(OTHER, "c", VersionSelector::Latest)).expect("a version");
        assert!(version.packed.to_json().contains("kept"));
    }
    done(two.reset());
    done(one.commit(creation(EHR, None)));
    done(one.commit(draft(EHR, "d").commit()));
    for reader in [&one, &two, &database.repository()] {
        let version = done(reader.version(EHR, "d", VersionSelector::Latest)).expect("a version");
        assert!(version.packed.to_json().contains("kept"));
    }
    let batch = done(async {
        Ok(two
            .commit_all(vec![draft(EHR, "e").commit(), draft(EHR, "f").commit()])
            .await)
    });
    assert_eq!(batch, [Ok(()), Ok(())]);
}
