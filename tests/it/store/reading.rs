//! Scans, pages and journals.

use super::*;
use aqlite::store::repository::{ItemTag, TagList};

pub fn objects_are_paged_in_commit_order<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    for object in ["z", "a", "m"] {
        done(store.commit(Draft::composition(object, 1).commit()));
    }
    done(store.commit(Draft::composition("z", 2).commit()));
    let page = |offset, limit| done(store.objects(EHR, ObjectKind::Composition, offset, limit));
    assert_eq!(page(0, 9), ["z", "a", "m"]);
    assert_eq!(page(1, 1), ["a"]);
    assert!(page(3, 9).is_empty());
    assert!(done(store.objects(OTHER, ObjectKind::Composition, 0, 9)).is_empty());
}

/// Returns the documents (`object::number`) that a scan sends and a query would read, in order.
pub fn found<R: Repository>(store: &R, scan: &Scan) -> Vec<String> {
    let mut found = Vec::new();
    done(store.scan(scan, &mut |batch: &Batch| {
        let wanted = |doc: &aqlite::document::Doc| {
            let ehr = batch
                .ehr(doc.ehr)
                .filter(|e| scan.ehrs.as_ref().is_none_or(|ids| ids.contains(&e.ehr_id)));
            ehr.is_some_and(|e| e.is_queryable || scan.unqueryable)
                && scan.kinds.contains(&doc.row.kind)
                && (scan.all_versions || (doc.row.latest && !doc.row.deleted))
        };
        let documents = batch.docs().filter(wanted);
        found.extend(
            documents.map(|doc| format!("{}::{}", batch.object_id(doc.document), doc.row.number)),
        );
        true
    }));
    found
}

/// Returns the EHR ids that a scan sends.
pub fn ehrs<R: Repository>(store: &R, scan: &Scan) -> Vec<String> {
    let mut found = Vec::new();
    done(store.scan(scan, &mut |batch: &Batch| {
        let wanted = batch
            .ehrs()
            .filter_map(|ehr| batch.ehr_id(ehr))
            .filter(|id| {
                scan.ehrs
                    .as_ref()
                    .is_none_or(|ids| ids.iter().any(|asked| asked == id))
            });
        found.extend(wanted.map(str::to_owned));
        true
    }));
    found
}

pub fn a_scan_sends_exactly_the_requested_documents<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(creation(OTHER, None)));
    let commit = |draft: Draft<'_>| done(store.commit(draft.commit()));
    commit(Draft::composition("a", 1));
    commit(Draft {
        ehr: OTHER,
        archetype: PULSE,
        ..Draft::composition("b", 1)
    });
    commit(Draft {
        archetype: PULSE,
        ..Draft::composition("c", 1)
    });
    commit(Draft::composition("a", 2));
    commit(Draft {
        deletes: true,
        ..Draft::composition("c", 2)
    });
    let base = Scan {
        kinds: vec![ObjectKind::Composition],
        whole_ehrs: false,
        empty_ehrs: false,
        ..Scan::default()
    };
    let of_ehr = |id: &str| Scan {
        ehrs: Some(vec![id.into()]),
        ..base.clone()
    };
    let all_versions = |scan: Scan| Scan {
        all_versions: true,
        ..scan
    };
    assert_eq!(found(store, &base), ["b::1", "a::2"]);
    assert_eq!(
        found(store, &all_versions(base.clone())),
        ["a::1", "b::1", "c::1", "a::2", "c::2"]
    );
    assert_eq!(found(store, &of_ehr(EHR)), ["a::2"]);
    assert_eq!(
        found(store, &all_versions(of_ehr(EHR))),
        ["a::1", "c::1", "a::2", "c::2"]
    );
    assert_eq!(found(store, &of_ehr("unknown")), Vec::<String>::new());
    let ehrs_only = |scan: Scan| Scan {
        kinds: Vec::new(),
        empty_ehrs: true,
        ..scan
    };
    assert_eq!(ehrs(store, &ehrs_only(base.clone())), [EHR, OTHER]);
    assert_eq!(ehrs(store, &ehrs_only(of_ehr(EHR))), [EHR]);
    let mut grouped = found(
        store,
        &Scan {
            whole_ehrs: true,
            ..base
        },
    );
    grouped.sort();
    assert_eq!(grouped, ["a::2", "b::1"]);
}

pub fn a_scan_stops_on_request<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let mut batches = 0;
    let revision = done(store.scan(&Scan::default(), &mut |_: &Batch| {
        batches += 1;
        false
    }));
    assert_eq!((batches, revision.revision), (1, done(store.revision())));
}

pub fn documents_are_returned_digit_for_digit<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let draft = Draft {
        text: "120.50 \\\"quoted\\\" \\u0007 ü",
        ..Draft::composition("a", 1)
    };
    done(store.commit(draft.commit()));
    let stored = done(store.version(EHR, "a", VersionSelector::Latest)).expect("stored");
    let sent = draft.version();
    assert_eq!(stored.packed.to_json(), sent.packed.to_json());
    assert!(stored.packed.to_json().contains("120.50"));
    assert_eq!(
        (stored.version_uid, stored.time_committed, stored.lifecycle),
        (sent.version_uid, sent.time_committed, sent.lifecycle)
    );
}

/// Returns the lines of the journal of some commits.
pub fn journal(commits: Vec<Commit>) -> Vec<String> {
    let memory = Memory::journaled();
    let written = |commit| {
        done(memory.commit(commit));
        memory.take_journal_line().expect("whole").expect("a line")
    };
    commits.into_iter().map(written).collect()
}

#[test]
pub fn records_of_an_earlier_release_are_read_unchanged() {
    let lines = journal(vec![
        creation(EHR, None),
        Draft::composition("a", 1).commit(),
        lock(2, true),
        Draft::composition("a", 2).commit(),
    ]);
    let altered = |place: usize, from: &str, to: &str| {
        assert!(
            lines[place].contains(from),
            "{from:?} is not in {:?}",
            lines[place]
        );
        let lines = lines.iter().enumerate().map(|(i, line)| {
            if i == place {
                line.replace(from, to)
            } else {
                line.clone()
            }
        });
        lines.collect::<String>()
    };
    for lines in [
        // Content behind a lock, a FOLDER behind a COMPOSITION, another template: no longer
        // accepted for writing, but still readable.
        altered(2, "\t11\t", "\t10\t"),
        altered(3, "\t1\ta::test.example::2", "\t3\ta::test.example::2"),
        altered(3, "\tVital signs\t", "\tother\t"),
    ] {
        let memory = Memory::journaled();
        memory.replay_journal(&lines).expect("a journal");
        assert_eq!(done(memory.versions(EHR, "a", 0)).items.len(), 2);
    }
    assert!(
        Memory::journaled()
            .replay_journal(&altered(3, "a::test.example::2", "a::test.example::4"))
            .is_ok()
    );
    assert!(
        Memory::journaled()
            .replay_journal(&altered(
                3,
                "\ta::test.example::1\t",
                "\ta::test.example::3\t"
            ))
            .is_err(),
        "what does not fit is not read"
    );
}

#[test]
pub fn a_journal_keeps_idempotency_keys() {
    let lines = journal(vec![
        creation(EHR, None),
        Commit {
            idempotency: Some("line 1".into()),
            ..Draft::composition("a", 1).commit()
        },
    ]);
    let memory = Memory::journaled();
    memory.replay_journal(&lines.concat()).expect("a journal");
    assert_eq!(
        done(memory.idempotency(EHR, "c-a-1")).as_deref(),
        Some("line 1")
    );
    assert_eq!(
        memory.take_journal_line(),
        Ok(None),
        "what is repeated is not written again"
    );
}

/// A record whose mandatory parts are missing is damaged. It never gets a default.
#[test]
pub fn a_journal_without_mandatory_parts_is_not_read() {
    let tags = |commit: Commit| {
        let memory = Memory::journaled();
        done(memory.commit(creation(EHR, None)));
        done(memory.commit(commit));
        drop(memory.take_journal_line());
        let tag = ItemTag {
            key: "ward".into(),
            path: None,
            value: Some("7".into()),
        };
        done(memory.set_tags(EHR, TagList::new("a".into(), vec![tag]), None));
        memory.take_journal_line().expect("whole").expect("a line")
    };
    let [ehr, composition] = [creation(EHR, None), Draft::composition("a", 1).commit()];
    let lines = journal(vec![ehr, composition.clone()]).concat();
    let tagged = lines.clone() + &tags(composition);
    let read = |lines: &str| Memory::journaled().replay_journal(lines).is_ok();
    assert!(read(&tagged));
    for (title, from, to) in [
        ("a tag without a key", "\tward\t", "\t\t"),
        ("an EHR without a system", "\ttest.example\t", "\t\t"),
        ("flags that are none", "\t11\t", "\t1x\t"),
        ("flags that are too short", "\t11\t", "\t1\t"),
    ] {
        assert!(tagged.contains(from), "{title}: {tagged:?}");
        assert!(!read(&tagged.replacen(from, to, 1)), "{title}");
    }
}
