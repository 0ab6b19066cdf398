//! The access log in a database of its own: entries of change sets are moved there once, none is
//! removed before its time, and the numbers of rows and round trips of a request are bounded.

use crate::sqlite::Sqlite;
use crate::store::{Draft, EHR, OTHER, creation, done};
use crate::upgrade::{Host, upgraded};
use aqlite::service::Request;
use aqlite::store::log::{LogEntry, LogStore, MemoryLog};
use aqlite::store::repository::{AccessFilter, AccessRecord, Commit, Repository};
use aqlite::store::sql::{SqlLog, SqlRepository};

const ALL: AccessFilter<'_> = AccessFilter {
    from: None,
    to: None,
    ehr_id: None,
    who: None,
    after: 0,
    limit: 1_000_000,
};

fn access(time: &str, request_id: &str) -> AccessRecord {
    let operation = String::from("POST ehr/{ehr_id}/composition");
    AccessRecord {
        time: time.into(),
        who: "ann".into(),
        operation,
        status: 201,
        request_id: request_id.into(),
        ..AccessRecord::default()
    }
}

fn entry_texts(store: &SqlRepository<Sqlite>) -> Vec<String> {
    done(store.accesses(&ALL))
        .into_iter()
        .map(|(_, access)| access.request_id)
        .collect()
}

fn commit(object: &str) -> Commit {
    Commit {
        access: Some(access("2026-11-20T10:00:00.000Z", object)),
        ..Draft::composition(object, 1).commit()
    }
}

#[test]
fn the_entry_of_a_change_set_waits_beside_it_and_is_moved_once() {
    let database = Sqlite::in_memory();
    let (one, two) = (database.repository(), database.repository());
    done(one.commit(creation(EHR, None)));
    done(one.commit(commit("a")));
    done(two.commit(commit("b")));
    assert_eq!(
        database.texts("SELECT request_id FROM access_log ORDER BY id"),
        ["a", "b"]
    );
    let waiting: Vec<String> = database
        .dump()
        .into_iter()
        .filter(|row| row.contains("INTO access_log"))
        .collect();
    assert_eq!(
        (entry_texts(&one), entry_texts(&two)),
        (vec!["a".into(), "b".into()], vec!["a".into(), "b".into()])
    );
    assert!(
        database
            .texts("SELECT request_id FROM access_log")
            .is_empty()
    );
    // The state after an instance ended between adding the entries there and removing them here.
    waiting.iter().for_each(|row| database.behind(row));
    done(two.commit(commit("c")));
    assert_eq!(entry_texts(&one), ["a", "b", "c"]);
    assert!(
        database
            .texts("SELECT request_id FROM access_log")
            .is_empty()
    );
}

#[test]
fn entries_of_earlier_releases_are_listed_too() {
    let name = "0030";
    let database = upgraded(name);
    let mut host = Host::over(&database);
    let waiting = database.texts("SELECT request_id FROM access_log").len();
    database.behind("INSERT INTO access_log (time, who, issuer, operation, status, request_id) VALUES ('2020-01-01T00:00:00.000Z', 'old', '', 'GET ehr/{ehr_id}', 200, 'x')");
    let page = host.send(Request::new("GET", "/v1/admin/access-log?fetch=1000"));
    let page: serde_json::Value = serde_json::from_slice(&page.body).expect("JSON");
    let entries = page["entries"].as_array().expect("entries");
    assert!(
        entries
            .iter()
            .any(|entry| entry["who"] == "old" && entry["requests"] == 1),
        "{page}"
    );
    assert_eq!(entries.len(), waiting + 1);
}

#[test]
fn many_entries_are_moved_without_being_read() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    done(store.commit(creation(EHR, None)));
    let objects: Vec<String> = (0..5_100).map(|i| format!("object-{i}")).collect();
    for some in objects.chunks(1_000) {
        let outcomes = done(async {
            Ok(store
                .commit_all(some.iter().map(|object| commit(object)).collect())
                .await)
        });
        assert!(outcomes.iter().all(Result::is_ok));
    }
    assert_eq!(database.texts("SELECT count(*) FROM access_log"), ["100"]);
    assert_eq!(
        database.log().texts("SELECT count(*) FROM access_log"),
        ["5000"]
    );
}

#[test]
fn the_databases_themselves_protect_the_access_log() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    done(store.commit(creation(EHR, None)));
    done(store.commit(commit("a")));
    assert!(
        database
            .refuses("UPDATE access_log SET who = 'x'")
            .contains("never changed")
    );
    assert!(
        database
            .refuses("DELETE FROM access_log")
            .contains("not in the access log yet")
    );
    entry_texts(&store);
    let log = database.log();
    assert!(
        log.refuses("UPDATE access_log SET who = 'x'")
            .contains("never changed")
    );
    assert!(
        log.refuses("DELETE FROM access_log")
            .contains("kept for the days")
    );
}

/// Returns a log with old entries and with entries of an unfinished period.
fn filled<L: LogStore>(log: L) -> L {
    let entry = |time: &str, n: usize| LogEntry {
        key: None,
        access: access(time, &n.to_string()),
    };
    let old: Vec<LogEntry> = (0..10)
        .map(|n| entry("2001-01-01T00:00:00.000Z", n))
        .collect();
    done(log.append(&old));
    done(log.append(&[entry("2999-01-01T00:00:00.000Z", 10)]));
    log
}

fn expires<L: LogStore>(log: &L) {
    let numbers = || {
        done(log.read(&ALL))
            .into_iter()
            .map(|(_, access)| access.request_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        done(log.expire("2000-01-01T00:00:00.000Z", 100)),
        0,
        "nothing is as old as that"
    );
    assert_eq!(done(log.expire("2010-01-01T00:00:00.000Z", 4)), 4);
    assert_eq!(numbers().first().map(String::as_str), Some("4"));
    assert_eq!(done(log.expire("2010-01-01T00:00:00.000Z", 100)), 6);
    assert_eq!(numbers(), ["10"]);
}

#[test]
fn entries_are_removed_by_their_age_alone_and_in_steps() {
    expires(&filled(MemoryLog::default()));
    let database = Sqlite::in_memory();
    let log = filled(SqlLog::new(database.log()));
    done(log.keep_for(365_000));
    assert_eq!(
        done(log.expire("3000-01-01T00:00:00.000Z", 100)),
        0,
        "they are kept longer than that"
    );
    done(log.keep_for(30));
    expires(&log);
    assert_eq!(
        done(log.expire("3000-01-01T00:00:00.000Z", 100)),
        0,
        "it is younger than that"
    );
}

#[test]
fn the_nightly_maintenance_moves_and_removes_entries() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    filled(SqlLog::new(database.log()));
    done(store.commit(creation(EHR, None)));
    done(store.commit(commit("a")));
    done(store.maintain("2010-01-01T00:00:00.000Z", 30, 5));
    assert_eq!(
        database
            .log()
            .texts("SELECT request_id FROM access_log ORDER BY id"),
        ["10", "a"]
    );
    assert_eq!(database.log().texts("SELECT days FROM retention"), ["30"]);
    assert!(database.texts("SELECT id FROM access_log").is_empty());
}

#[test]
fn entries_are_listed_by_time_and_paged_wherever_they_were_written() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    done(store.commit(creation(EHR, None)));
    let at = |second: u32| format!("2026-11-20T10:00:{second:02}.000Z");
    for second in 0..9 {
        let entry = access(&at(second), &second.to_string());
        match second % 3 {
            0 => done(store.commit(Commit {
                access: Some(entry),
                ..Draft::composition(&format!("object-{second}"), 1).commit()
            })),
            _ => done(store.log_accesses(vec![entry])),
        }
    }
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let page = done(store.accesses(&AccessFilter {
            after,
            limit: 2,
            ..ALL
        }));
        let Some((last, _)) = page.last() else { break };
        after = *last;
        seen.extend(page.into_iter().map(|(_, access)| access.request_id));
    }
    assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
    assert_eq!(
        done(store.accesses(&AccessFilter {
            after: 1_000,
            ..ALL
        }))
        .len(),
        9,
        "behind one that has expired"
    );
}

#[test]
fn entries_with_a_key_are_added_once() {
    let database = Sqlite::in_memory();
    fn once<L: LogStore>(log: &L) {
        let entry = |key: &str| LogEntry {
            key: Some(key.into()),
            access: access("2026-11-20T10:00:00.000Z", key),
        };
        done(log.append(&[entry("a"), entry("b")]));
        done(log.append(&[entry("b"), entry("c")]));
        let found: Vec<String> = done(log.read(&ALL))
            .into_iter()
            .map(|(_, access)| access.request_id)
            .collect();
        assert_eq!(found, ["a", "b", "c"]);
    }
    once(&MemoryLog::default());
    once(&SqlLog::new(database.log()));
}

#[test]
fn a_day_takes_so_many_entries_about_refused_requests() {
    fn bounded<L: LogStore>(log: &L) {
        let refused = |time: &str| AccessRecord {
            refused: Some(7),
            ..access(time, "")
        };
        let mut taken = 0;
        for _ in 0..20 {
            let entries = [
                refused("2026-11-20T10:00:00.000Z"),
                refused("2026-11-20T11:00:00.000Z"),
            ];
            taken += usize::from(done(log.append_refused(&entries, "2026-11-20", 10)));
        }
        assert_eq!((taken, done(log.read(&ALL)).len()), (5, 10));
        done(log.append(&[LogEntry {
            key: None,
            access: access("2026-11-20T12:00:00.000Z", "of somebody"),
        }]));
        assert!(
            done(log.append_refused(&[refused("2026-11-21T10:00:00.000Z")], "2026-11-21", 10)),
            "another day"
        );
        assert_eq!(
            done(log.read(&ALL))
                .iter()
                .filter_map(|(_, access)| access.refused)
                .sum::<u64>(),
            77
        );
    }
    bounded(&MemoryLog::default());
    bounded(&SqlLog::new(Sqlite::in_memory().log()));
}

#[test]
fn a_commit_writes_one_row_for_its_entry_and_asks_once() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    done(store.commit(creation(EHR, None)));
    done(store.commit(creation(OTHER, None)));
    done(store.commit(commit("a")));
    let rows = || database.texts("SELECT count(*) FROM access_log").concat();
    assert_eq!(rows(), "1");
    let indexes = database.texts("SELECT count(*) FROM pragma_index_list('access_log')");
    assert_eq!(indexes, ["0"], "an index would be a row more");
    database.trips();
    done(store.commit(commit("b")));
    assert_eq!(database.trips(), 1);
    done(store.log_accesses(vec![access("2026-11-20T10:00:00.000Z", "read")]));
    assert_eq!(database.trips(), 1);
}
