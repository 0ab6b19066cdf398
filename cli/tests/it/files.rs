//! The files that `-d` names: their identity, and links and pipes among them.

use super::program::{Folder, Ran, generator};
use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

const UIDS: &str =
    "SELECT e/ehr_id/value AS ehr, c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c";

/// Writes three compositions without a uid, in folders of two patients.
fn folder() -> Folder {
    let folder = Folder::new();
    for (index, name) in ["d/p1/a.json", "d/p1/2026/b.json", "d/p2/c.json"]
        .into_iter()
        .enumerate()
    {
        let json = generator().composition(index).json;
        folder.write(name, &json);
    }
    folder
}

/// Returns the rows of the query on some data.
fn rows(folder: &Folder, data: &[&str]) -> Vec<String> {
    let ran = run(folder, data, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    ran.out.lines().skip(1).map(str::to_owned).collect()
}

fn run(folder: &Folder, data: &[&str], more: &[&str]) -> Ran {
    let data = data.iter().flat_map(|data| ["-d", data]);
    let arguments: Vec<&str> = ["query", UIDS].into_iter().chain(data).collect();
    folder.run(&[&arguments[..], more].concat())
}

#[test]
fn uid_of_a_document_does_not_depend_on_the_spelling_of_the_folder() {
    let folder = folder();
    let whole = folder.path().join("d");
    let expected = rows(&folder, &["d"]);
    assert_eq!(expected.len(), 3);
    for data in ["./d", "d/", "d/p1/../../d", whole.to_str().unwrap()] {
        assert_eq!(rows(&folder, &[data]), expected, "{data}");
    }
    // The folder of a patient, its files, and a pattern name the same documents.
    assert_eq!(rows(&folder, &["d/p2"]), expected[2..]);
    assert_eq!(rows(&folder, &["./d/p2/c.json"]), expected[2..]);
    assert_eq!(rows(&folder, &["d/*/c.json"]), expected[2..]);
    std::fs::rename(&whole, folder.path().join("moved")).unwrap();
    assert_eq!(rows(&folder, &["moved"]), expected);
}

#[test]
fn file_that_is_named_twice_is_read_once() {
    let folder = folder();
    let expected = rows(&folder, &["d"]);
    symlink("d", folder.path().join("link")).unwrap();
    let data = ["d", "./d", "d/p1/../p1/a.json", "link", "d/p2/*.json"];
    assert_eq!(rows(&folder, &data), expected);
}

#[test]
fn documents_of_folders_with_one_name_have_different_uids() {
    let folder = folder();
    let json = generator().composition(0).json;
    folder.write("other/p1/a.json", &json);
    let all = rows(&folder, &["d", "other"]);
    assert_eq!(all.len(), 4);
    assert_eq!(all[..3], rows(&folder, &["d"]));
}

#[test]
fn link_that_leads_nowhere_is_an_unreadable_file() {
    let folder = folder();
    let expected = rows(&folder, &["d"]);
    let link = |name: &str| symlink("/nonexistent", folder.path().join(name)).unwrap();
    link("d/p1/note.txt");
    assert_eq!(rows(&folder, &["d"]), expected);
    link("d/p1/lost.json");
    link("d/p3");
    for more in [&[][..], &["--skip-invalid"]] {
        let ran = run(&folder, &["d"], more);
        let found: Vec<&str> = ran.out.lines().skip(1).collect();
        assert_eq!(found, expected);
        assert_eq!(ran.code, Some(i32::from(more.is_empty())), "{}", ran.err);
        for name in ["d/p1/lost.json", "d/p3"] {
            let is_reported = ran.err.contains(&format!("{name}: error[CLI0001]"));
            assert_eq!(is_reported, more.is_empty(), "{}", ran.err);
        }
    }
}

#[test]
fn names_of_patients_that_are_no_text_are_not_merged() {
    let folder = folder();
    let expected = rows(&folder, &["d"]);
    let json = generator().composition(3).json;
    for name in [&b"p\xff"[..], b"p\xfe"] {
        let patient = folder.path().join("d").join(OsStr::from_bytes(name));
        std::fs::create_dir(&patient).unwrap();
        std::fs::write(patient.join("a.json"), &json).unwrap();
    }
    let ran = run(&folder, &["d"], &[]);
    assert_eq!(ran.out.lines().skip(1).collect::<Vec<_>>(), expected);
    assert_eq!(ran.code, Some(1));
    let problem = "a.json: error[CLI0005]: the name `p\u{fffd}` of the EHR is no UTF-8";
    assert_eq!(ran.err.matches(problem).count(), 2, "{}", ran.err);
    // A mapping gives them names.
    folder.write("map.csv", "path,ehr\nd/p?/a.json,p3\n");
    let ran = run(&folder, &["d"], &["--ehr-map", "map.csv"]);
    assert_eq!(ran.out.lines().count(), 6, "{}", ran.err);
}

#[test]
fn folder_that_cannot_be_read_is_left_out() {
    let folder = folder();
    let expected = rows(&folder, &["d"]);
    let lost = folder.path().join("d/lost+found");
    std::fs::create_dir(&lost).unwrap();
    std::fs::set_permissions(&lost, Permissions::from_mode(0o000)).unwrap();
    if std::fs::read_dir(&lost).is_ok() {
        // Root reads every folder.
        return;
    }
    for more in [&[][..], &["--skip-invalid"]] {
        let ran = run(&folder, &["d"], more);
        let found: Vec<&str> = ran.out.lines().skip(1).collect();
        assert_eq!(found, expected);
        assert_eq!(ran.code, Some(i32::from(more.is_empty())), "{}", ran.err);
        let is_reported = ran.err.contains("d/lost+found: error[CLI0001]");
        assert_eq!(is_reported, more.is_empty(), "{}", ran.err);
    }
}

#[test]
fn circles_of_links_and_pipes_are_left_out() {
    let folder = folder();
    let expected = rows(&folder, &["d"]);
    symlink("..", folder.path().join("d/p1/loop")).unwrap();
    symlink(".", folder.path().join("d/p2/own")).unwrap();
    // Also above the folder that is named, whose other folders are not meant.
    for (link, target) in [("d/up", ".."), ("d/p1/top", "../.."), ("d/root", "/")] {
        symlink(target, folder.path().join(link)).unwrap();
    }
    let pipe = folder.path().join("d/p2/pipe.json");
    assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    assert_eq!(rows(&folder, &["d"]), expected);
    assert_eq!(rows(&folder, &["d/p1"]).len(), 2);
    // A link to another folder is followed.
    symlink("../p2", folder.path().join("d/p1/also")).unwrap();
    assert_eq!(rows(&folder, &["d"]).len(), 4);
}
