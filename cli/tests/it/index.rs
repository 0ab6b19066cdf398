//! Index files: used for unchanged files only, and never trusted.

use super::program::{Folder, generator, set_time};
use std::fs;
use std::path::PathBuf;

const COUNT: &str = "SELECT COUNT(*) AS n FROM COMPOSITION c";

fn folder() -> Folder {
    let folder = Folder::new();
    for index in 0..10 {
        let json = generator().composition(index).json;
        folder.write(&format!("d/{index}.json"), &json);
    }
    folder
}

/// Returns the count, and whether an index file supplied the segments.
fn count(folder: &Folder, arguments: &[&str]) -> (String, bool) {
    let mut all = vec!["query", "-d", "d", "--explain", COUNT];
    all.extend(arguments);
    let explained = folder.run(&all).out;
    all.retain(|argument| *argument != "--explain");
    let ran = folder.run(&all);
    let count = ran.out.lines().nth(1).unwrap_or_default().to_owned();
    (count, explained.contains("segments of an index file"))
}

fn index_file(folder: &Folder) -> PathBuf {
    let entries = fs::read_dir(folder.path().join(".cache")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths.remove(0)
}

#[test]
fn second_run_reads_the_index_file() {
    let folder = folder();
    assert_eq!(count(&folder, &[]), (String::from("10"), false));
    assert_eq!(count(&folder, &[]), (String::from("10"), true));
    assert_eq!(count(&folder, &["--no-cache"]), (String::from("10"), false));
    assert_eq!(
        count(&folder, &["--ehr-from", "file"]),
        (String::from("10"), false)
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(index_file(&folder)), 0o600);
        assert_eq!(mode(folder.path().join(".cache")), 0o700);
    }
}

#[test]
fn change_of_a_file_is_noticed() {
    let folder = folder();
    count(&folder, &[]);
    let extra = generator().composition(10).json;
    folder.write("d/10.json", &extra);
    assert_eq!(count(&folder, &[]), (String::from("11"), false));
    fs::remove_file(folder.path().join("d/10.json")).unwrap();
    assert_eq!(count(&folder, &[]), (String::from("10"), false));
    // The same size and another time: the content may differ.
    set_time(&folder.path().join("d/3.json"), 1_767_225_601);
    assert_eq!(count(&folder, &[]), (String::from("10"), false));
    assert_eq!(count(&folder, &[]), (String::from("10"), true));
}

#[test]
fn file_that_changes_while_it_is_read_is_read_again() {
    let folder = folder();
    // A file of this moment may change again without another time.
    let path = folder.path().join("d/3.json");
    let now = std::time::SystemTime::now();
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(now)
        .unwrap();
    let ran = folder.run(&["query", "-d", "d", COUNT]);
    assert_eq!(ran.out, "n\n10\n");
    let entries = fs::read_dir(folder.path().join(".cache")).unwrap();
    assert_eq!(entries.count(), 0, "no index file of fresh files is kept");
}

/// The cache folder may be one that other programs use too.
#[test]
fn old_index_files_are_removed_and_files_of_others_kept() {
    let folder = folder();
    let key = "0123456789abcdef0123456789abcdef";
    let removed = [format!("{key}.index"), format!("{key}.12.part")];
    let kept = [
        "photos.index".to_owned(),
        "film.mp4.part".to_owned(),
        format!("{key}.part"),
        format!("{key}.a.part"),
        format!("{key}0.index"),
        format!("{}.index", key.to_uppercase()),
    ];
    let path = |name: &String| folder.path().join(".cache").join(name);
    for name in removed.iter().chain(&kept) {
        folder.write(&format!(".cache/{name}"), "x");
        set_time(&path(name), 1_000_000_000);
    }
    count(&folder, &[]);
    for name in &removed {
        assert!(!path(name).exists(), "{name}");
    }
    for name in &kept {
        assert!(path(name).exists(), "{name}");
    }
}

#[test]
fn damaged_index_file_is_written_again() {
    let folder = folder();
    count(&folder, &[]);
    let path = index_file(&folder);
    let whole = fs::read(&path).unwrap();
    for length in [0, 7, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let ran = folder.run(&["query", "-d", "d", COUNT]);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(0), "n\n10\n"),
            "{length}"
        );
    }
    // Damage of the catalog is found at once, that of a part when it is read.
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&path, bytes).unwrap();
        let ran = folder.run(&[
            "query",
            "-d",
            "d",
            "SELECT c/uid/value AS n FROM COMPOSITION c",
        ]);
        assert_eq!(ran.out.lines().count(), 11, "{at}: {ran:?}");
        assert_eq!(ran.code, Some(0), "{at}: {ran:?}");
    }
}
