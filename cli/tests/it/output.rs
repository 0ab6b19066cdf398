//! The output file of a command: it is none of the inputs, and it replaces a previous file when it is
//! complete.

use super::program::{Folder, generator};
use aqlite::samples::{guides, templates};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const QUERY: &str = "SELECT c/uid/value AS uid FROM COMPOSITION c";

/// Writes a query, a composition, a template and a guide.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("data/a.json", &generator().composition(0).json);
    folder.write("query.aql", QUERY);
    folder.write("map.csv", "path,ehr\na.json,e1\n");
    folder.write("t.opt", templates()[0].text);
    folder.write("guide.json", guides()[0].text);
    folder
}

#[test]
fn output_that_is_an_input_is_refused() {
    let folder = folder();
    symlink("data/a.json", folder.path().join("link.json")).unwrap();
    fs::hard_link(folder.path().join("t.opt"), folder.path().join("name.opt")).unwrap();
    for (arguments, output) in [
        (&["query", "-d", "data", QUERY][..], "data/a.json"),
        (&["query", "-d", "data/a.json", QUERY], "link.json"),
        (&["query", "-d", "dat*/*.json", QUERY], "./data/a.json"),
        (&["query", "-d", "data", "-f", "query.aql"], "query.aql"),
        (
            &["query", "-d", "data", "--ehr-map", "map.csv", QUERY],
            "map.csv",
        ),
        (&["guide", "run", "guide.json", "-d", "data"], "guide.json"),
        (&["guide", "run", "guide.json", "-d", "data"], "data/a.json"),
        (&["example", "t.opt"], "name.opt"),
        (&["convert", "data/a.json", "--to", "xml"], "data/a.json"),
        (
            &["convert", "-d", "t.opt", "data/a.json", "--to", "xml"],
            "t.opt",
        ),
    ] {
        let before = fs::read(folder.path().join(output)).unwrap();
        let ran = folder.run(&[arguments, &["-o", output]].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?} {}", ran.err);
        assert!(ran.err.contains("which it would replace"), "{}", ran.err);
        assert!(fs::read(folder.path().join(output)).unwrap() == before);
    }
    let script = format!(".output data/a.json\n{QUERY};\n");
    let ran = folder.shell(&["data"], &script);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("which it would replace"), "{}", ran.err);
    assert_eq!(ran.out.lines().count(), 0, "{}", ran.out);
}

/// A reader that has gone ends no command with a signal, and changes no outcome.
#[test]
fn reports_without_a_reader_are_dropped() {
    let folder = folder();
    folder.write("data/b.json", "{");
    let gone = || std::io::pipe().unwrap().1;
    let code = |arguments: &[&str]| {
        let mut command = folder.command(arguments);
        let status = command.stdout(gone()).stderr(gone()).status();
        status.unwrap().code()
    };
    let query = ["query", "-d", "data", "-o", "rows.csv", QUERY];
    assert_eq!(code(&query), Some(1));
    assert!(folder.path().join("rows.csv").exists());
    assert_eq!(code(&["query", "-d", "data", "SELECT"]), Some(1));
    let convert = ["convert", "data", "--to", "xml", "-o", "xml"];
    assert_eq!(code(&convert), Some(1));
    assert!(folder.path().join("xml/a.xml").exists());
    assert_eq!(code(&["query", "-d", "absent", QUERY]), Some(2));
}

#[test]
fn output_replaces_a_file_and_keeps_its_link_and_permissions() {
    let folder = folder();
    let rows = folder.write("out/rows.csv", "before\n");
    fs::set_permissions(&rows, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("out/rows.csv", folder.path().join("rows")).unwrap();
    let query = [
        "query", "-d", "data", "--format", "csv", QUERY, "-o", "rows",
    ];
    let ran = folder.run(&query);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(fs::read_to_string(&rows).unwrap().starts_with("uid\n"));
    assert_eq!(rows.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    let link = fs::symlink_metadata(folder.path().join("rows")).unwrap();
    assert!(link.is_symlink());
    // The standard output by its name is no file that could be replaced.
    let ran = folder.run(&["query", "-d", "data", QUERY, "-o", "/dev/stdout"]);
    assert!(ran.out.starts_with("uid\n"), "{} {}", ran.out, ran.err);
    assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 1);
}
