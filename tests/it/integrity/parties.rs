//! Imported versions of parties have the class of the versions before them, which are read together.

use super::imports::{assert_other_kind, changed, record};
use super::*;

/// The number of lines in a transaction of an import, and of objects that one statement reads.
const TOGETHER: usize = 100;
const OBJECTS: usize = 50;

/// Lines of an export with two versions of one PERSON, which become those of other parties.
struct Versions {
    first: String,
    second: String,
    object: String,
}

/// Returns the uid of the contribution of a line.
fn contribution_of(line: &str) -> String {
    let uid = line.split(r#""uid":{"_type":"HIER_OBJECT_ID","value":""#);
    let uid = uid.last().and_then(|rest| rest.get(..36));
    uid.expect("the uid of a contribution").to_owned()
}

impl Versions {
    fn create<R: Repository>(host: &mut Host<R>) -> Versions {
        let body = text("rest/person.json");
        let first = host.made("POST", "demographic/person", JSON, &body);
        let object = first.split("::").next().unwrap_or_default().to_owned();
        let path = format!("/rest/openehr/v1/demographic/person/{object}");
        let update = Request::new("PUT", &path).with_header("If-Match", &first);
        assert!(host.send(&update.with_body(JSON, body)).status < 300);
        let lines = host.export();
        let mut of_person = lines.iter().filter(|line| line.contains(&object)).cloned();
        let mut next = || of_person.next().expect("a version");
        let versions = Versions {
            first: next(),
            second: next(),
            object,
        };
        host.made("POST", "admin/reset", JSON, "{}");
        versions
    }

    /// Returns the line of version 1 or 2 of another party, of a class, in contribution `number`.
    fn line(&self, party: usize, version: usize, class: &str, number: usize) -> String {
        let line = [&self.first, &self.second][version - 1];
        let object = format!("22222222-2222-4222-8222-{party:012x}");
        let line = changed(line, &self.object, &object);
        let uid = format!("33333333-3333-4333-8333-{number:012x}");
        let line = changed(&line, &contribution_of(&line), &uid);
        changed(&line, "PERSON", class)
    }
}

#[test]
fn parties_that_an_import_changes_are_read_together() {
    let database = Sqlite::in_memory();
    let mut host = Host::over(database.repository());
    let versions = Versions::create(&mut host);
    let mut import = |version| {
        let line = |party| versions.line(party, version, "PERSON", version * 1_000 + party);
        let lines: Vec<String> = (0..2 * TOGETHER).map(line).collect();
        database.executed();
        let answers = host.lines("admin/import", "", &lines);
        assert!(answers.iter().all(|(status, _)| *status == 201));
        database.executed()
    };
    let (creations, changes) = (import(1), import(2));
    let reads = 2 * TOGETHER / OBJECTS;
    assert!(
        changes <= creations + 2 * reads,
        "{changes} statements, {creations} of creations"
    );
}

#[test]
fn imported_parties_keep_the_class_of_earlier_lines() {
    fn check<R: Repository>(mut host: Host<R>) {
        let versions = Versions::create(&mut host);
        let mut import = |lines: &[(usize, &str)], party| {
            let numbered = lines.iter().zip(party * 10..);
            let lines: Vec<String> = numbered
                .map(|((version, class), number)| versions.line(party, *version, class, number))
                .collect();
            host.lines("admin/import", "", &lines)
        };
        let statuses = |answers: &[(u16, String)]| -> Vec<u16> {
            answers.iter().map(|(status, _)| *status).collect()
        };
        let answers = import(&[(1, "PERSON"), (2, "PERSON")], 0);
        assert_eq!(statuses(&answers), [201, 201], "the same class");
        let answers = import(&[(1, "PERSON"), (2, "GROUP")], 1);
        assert_eq!(statuses(&answers), [201, 400], "{answers:?}");
        assert_other_kind(&answers[1]);
        // The second creation is refused, so its class is not that of the object.
        let answers = import(
            &[(1, "GROUP"), (1, "PERSON"), (2, "PERSON"), (2, "GROUP")],
            2,
        );
        assert_eq!(statuses(&answers), [201, 409, 400, 201], "{answers:?}");
        assert_other_kind(&answers[2]);
        // A stored object keeps its class, whatever a refused line says.
        let answers = import(&[(1, "PERSON"), (2, "PERSON"), (2, "GROUP")], 3);
        assert_eq!(statuses(&answers), [201, 201, 400], "{answers:?}");
        let answers = import(&[(1, "GROUP"), (2, "GROUP")], 3);
        assert_eq!(statuses(&answers), [409, 400], "{answers:?}");
    }
    check(on_memory());
    check(on_sqlite());
}

/// Returns the record of a line with the version of another line added.
fn with_version_of(line: &str, other: &str) -> String {
    let [mut first, mut second] = [line, other].map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("a line");
        line["record"].take()
    });
    for path in ["/contribution/versions", "/versions"] {
        let added = second.pointer_mut(path).expect("a list")[0].take();
        let list = first.pointer_mut(path).and_then(Value::as_array_mut);
        list.expect("a list").push(added);
    }
    record(&first.to_string())
}

#[test]
fn versions_of_one_imported_record_have_one_class() {
    fn check<R: Repository>(mut host: Host<R>) {
        let versions = Versions::create(&mut host);
        let first = versions.line(0, 1, "PERSON", 1);
        for (class, status) in [("GROUP", 400), ("PERSON", 201)] {
            let both = with_version_of(&first, &versions.line(0, 2, class, 1));
            let answers = host.lines("admin/import", "", &[both]);
            assert_eq!(answers[0].0, status, "{class}: {answers:?}");
        }
    }
    check(on_memory());
    check(on_sqlite());
}
