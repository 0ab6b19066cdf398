//! The uids of a line of a load, which other requests may use before the line or after it.

use super::{EHR, Host, JSON, contribution, line, member, on_memory, on_sqlite, weight};
use aqlite::store::repository::Repository;
use serde_json::{Value, json};

/// The uids that the answer to a line states: of the version, and of the contribution.
struct LineUids {
    version: String,
    contribution: String,
}

impl LineUids {
    /// Sends a line under the key `load`, which makes what it states.
    fn of_first_load<R: Repository>(host: &mut Host<R>, line: &str) -> LineUids {
        let answers = host.lines("ehr/bulk", "load", &[line.to_owned()]);
        let [(201, answer)] = answers.as_slice() else {
            panic!("{answers:?}");
        };
        let answer: Value = serde_json::from_str(answer).expect("JSON");
        let text = |name: &str| answer[name].as_str().expect("a uid").to_owned();
        LineUids {
            version: text("uid"),
            contribution: text("contribution"),
        }
    }

    /// Commits a document under both uids at the address of contributions.
    fn commit<R: Repository>(&self, host: &mut Host<R>, mut document: Value) {
        document["uid"] = json!({ "_type": "OBJECT_VERSION_ID", "value": self.version });
        let body = contribution(Some(&self.contribution), &[member("", document)]);
        let path = format!("ehr/{EHR}/contribution");
        host.made("POST", &path, JSON, &body.to_string());
    }
}

fn remove<R: Repository>(host: &mut Host<R>, version: &str) {
    let object = version.split("::").next().expect("an object");
    host.made(
        "DELETE",
        &format!("admin/ehr/{EHR}/composition/{object}"),
        JSON,
        "",
    );
}

#[test]
fn a_commit_under_the_uids_of_a_line_is_no_repetition_of_it() {
    fn check<R: Repository>(mut source: Host<R>, mut target: Host<R>) {
        let sent = line(EHR, "composition", &weight("60"));
        let uids = LineUids::of_first_load(&mut source, &sent);
        for content in ["61", "60"] {
            uids.commit(&mut target, weight(content));
            let found = target.bulk("load", std::slice::from_ref(&sent));
            assert_eq!(found, [409], "{content}");
            remove(&mut target, &uids.version);
        }
        // The uids are free again, so the line is committed, and repeated as a line.
        for status in [201, 200, 200] {
            let found = target.bulk("load", std::slice::from_ref(&sent));
            assert_eq!(found, [status]);
        }
    }
    check(on_memory(), on_memory());
    check(on_sqlite(), on_sqlite());
}

#[test]
fn a_line_that_was_removed_and_made_anew_by_others_is_refused() {
    fn check<R: Repository>(mut host: Host<R>) {
        let sent = line(EHR, "composition", &weight("60"));
        let uids = LineUids::of_first_load(&mut host, &sent);
        remove(&mut host, &uids.version);
        uids.commit(&mut host, weight("61"));
        assert_eq!(host.bulk("load", &[sent]), [409]);
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn a_contribution_that_lost_a_version_is_not_repeated() {
    fn check<R: Repository>(mut host: Host<R>) {
        let members = ["60", "61"].map(|content| {
            let object = format!("cccccccc-3333-4333-8333-0000000000{content}");
            let mut document = weight(content);
            document["uid"] = json!({ "_type": "HIER_OBJECT_ID", "value": object });
            member("", document)
        });
        let sent = line(EHR, "contribution", &contribution(None, &members));
        let uids = LineUids::of_first_load(&mut host, &sent);
        assert_eq!(host.bulk("load", std::slice::from_ref(&sent)), [200]);
        remove(&mut host, &uids.version);
        assert_eq!(host.bulk("load", std::slice::from_ref(&sent)), [409]);
        let other = LineUids {
            contribution: String::from("dddddddd-3333-4333-8333-000000000000"),
            ..uids
        };
        other.commit(&mut host, weight("62"));
        assert_eq!(host.bulk("load", &[sent]), [409]);
    }
    check(on_memory());
    check(on_sqlite());
}
