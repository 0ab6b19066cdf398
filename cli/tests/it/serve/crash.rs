//! The server is killed while it commits: everything acknowledged must be there whole, and nothing
//! by halves. `AQLITE_KILLS` says how often (3).

use super::server::{Folder, ITS, Server, compositions, tag, text};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant, SystemTime};

const WRITERS: usize = 8;
/// Compositions of each contribution.
const MEMBERS: usize = 3;

/// The contents that were sent, by the uid of the acknowledged contribution, with its EHR.
pub type Acknowledged = Mutex<BTreeMap<String, (String, Vec<Value>)>>;

fn content(composition: &str) -> Value {
    let document: Value = serde_json::from_str(composition).expect("JSON");
    document["content"].clone()
}

/// Returns the body of a contribution that creates compositions.
fn contribution(members: &[String]) -> String {
    let audit = json!({
        "_type": "AUDIT_DETAILS",
        "system_id": "client",
        "committer": { "_type": "PARTY_IDENTIFIED", "name": "Dr. Ek" },
        "change_type": {
            "_type": "DV_CODED_TEXT",
            "value": "creation",
            "defining_code": {
                "_type": "CODE_PHRASE",
                "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "openehr" },
                "code_string": "249"
            }
        }
    });
    let data = |text: &String| serde_json::from_str::<Value>(text).expect("JSON");
    let versions: Vec<Value> = members
        .iter()
        .map(|member| json!({ "commit_audit": audit, "data": data(member) }))
        .collect();
    json!({ "versions": versions, "audit": audit }).to_string()
}

/// Commits contributions to an EHR of its own until the server is gone or `ended`.
fn write(server: &Server, sample: &[String], acknowledged: &Acknowledged, ended: &AtomicBool) {
    let Ok(created) = server.try_send("POST", &format!("{ITS}/ehr"), "") else {
        return;
    };
    let ehr_id = tag(&created);
    let path = format!("{ITS}/ehr/{ehr_id}/contribution");
    for start in 0.. {
        let members: Vec<String> = (start..start + MEMBERS)
            .map(|at| sample[at % sample.len()].clone())
            .collect();
        if ended.load(Ordering::Relaxed) {
            return;
        }
        // Nothing is known of a contribution whose connection broke.
        let Ok(answer) = server.try_send("POST", &path, &contribution(&members)) else {
            return;
        };
        if answer.status != 201 {
            // A killed server may have sent a part of an answer.
            assert!(
                answer.status == 0 || ended.load(Ordering::Relaxed),
                "{}",
                text(&answer)
            );
            return;
        }
        let contents = members.iter().map(|member| content(member)).collect();
        let entry = (ehr_id.clone(), contents);
        acknowledged.lock().unwrap().insert(tag(&answer), entry);
    }
}

/// Writes with several clients while `meanwhile` runs.
pub fn load(
    server: &Server,
    sample: &[String],
    acknowledged: &Acknowledged,
    meanwhile: impl FnOnce(),
) {
    let ended = AtomicBool::new(false);
    scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| write(server, sample, acknowledged, &ended));
        }
        meanwhile();
        ended.store(true, Ordering::Relaxed);
    });
}

/// Asserts that everything acknowledged is there as it was sent.
pub fn assert_held(server: &Server, acknowledged: &Acknowledged) {
    for (uid, (ehr_id, contents)) in &*acknowledged.lock().unwrap() {
        let answer = server.send("GET", &format!("{ITS}/ehr/{ehr_id}/contribution/{uid}"), "");
        assert_eq!(answer.status, 200, "{uid} was acknowledged and is lost");
        let found: Value = serde_json::from_slice(&answer.body).expect("JSON");
        let versions = found["versions"].as_array().expect("versions");
        let mut held = Vec::new();
        for version in versions {
            let version = version["id"]["value"].as_str().expect("an id");
            let path = format!("{ITS}/ehr/{ehr_id}/composition/{version}");
            let answer = server.send("GET", &path, "");
            assert_eq!(answer.status, 200, "{version}: {}", text(&answer));
            held.push(content(&text(&answer)));
        }
        assert_eq!(&held, contents, "{uid} is not what was sent");
    }
}

/// Asserts that every contribution of a stopped server has all its versions.
pub fn assert_whole(folder: &Folder) {
    let connection = Connection::open(folder.database()).expect("the database");
    let count = |sql: &str| -> i64 {
        let counted = connection.query_row(sql, [], |row| row.get(0));
        counted.expect("a number")
    };
    let halves = count(&format!(
        "SELECT count(*) FROM (SELECT count(*) AS n FROM version WHERE kind = 1 GROUP BY contribution) WHERE n <> {MEMBERS}"
    ));
    assert_eq!(halves, 0, "contributions by halves");
    let orphans = count(
        "SELECT count(*) FROM version v WHERE NOT EXISTS (SELECT 1 FROM contribution c WHERE c.id = v.contribution)",
    );
    assert_eq!(orphans, 0, "versions without their contribution");
    let empty = count(
        "SELECT count(*) FROM contribution c WHERE NOT EXISTS (SELECT 1 FROM version v WHERE v.contribution = c.id)",
    );
    assert_eq!(empty, 0, "contributions without versions");
    let checked: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("a check");
    assert_eq!(checked, "ok");
}

/// Waits until more than `before` contributions are acknowledged, and a time that differs from run
/// to run.
fn wait_for_commits(acknowledged: &Acknowledged, before: usize) {
    let until = Instant::now() + Duration::from_secs(60);
    while acknowledged.lock().unwrap().len() <= before {
        assert!(Instant::now() < until, "nothing is committed");
        sleep(Duration::from_millis(5));
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = now.expect("a time").subsec_nanos();
    sleep(Duration::from_millis(u64::from(nanos / 1_000 % 400)));
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let kills = std::env::var("AQLITE_KILLS").map_or(3, |kills| kills.parse().expect("a number"));
    let folder = Folder::new("crash");
    let sample = compositions(40);
    let (acknowledged, mut before) = (Acknowledged::default(), 0);
    for round in 0..kills {
        let server = Server::open(&folder);
        if round == 0 {
            server.store_templates();
        }
        load(&server, &sample, &acknowledged, || {
            wait_for_commits(&acknowledged, before);
            server.signal("KILL");
        });
        server.kill();
        before = acknowledged.lock().unwrap().len();
    }
    assert_whole(&folder);
    let server = Server::open(&folder);
    assert_held(&server, &acknowledged);
    let compositions = server.count("SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c");
    assert!(compositions >= (before * MEMBERS) as u64);
    server.stop();
    println!("{before} contributions were acknowledged");
}
