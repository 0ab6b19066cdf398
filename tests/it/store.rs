//! The suite that every repository implementation must pass.

pub mod definitions;
mod reading;
mod rules;
mod versions;

use crate::sqlite::Sqlite;
use aqlite::document::{Batch, LayoutStore, NothingKnown, ObjectKind, pack};
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{
    AccessFilter, AccessRecord, BoundedVersion, Commit, Definition, DefinitionKind, Ehr, EhrFlags,
    Preconditions, Predecessor, Repository, StoreError, TemplateState, Version, VersionSelector,
};
use aqlite::store::scan::Scan;
use std::cell::RefCell;
use std::collections::HashMap;

use definitions::*;
pub use reading::found;
use reading::*;
use rules::*;
use versions::*;

macro_rules! suite {
    ($($test:ident)*) => {
        mod memory {
            $(#[test] fn $test() { super::$test(&super::Memory::new()); })*
        }
        mod sqlite {
            $(#[test] fn $test() { super::$test(&super::Sqlite::in_memory().repository()); })*
        }
        mod sqlite_without_memory {
            $(#[test] fn $test() { super::$test(&super::Sqlite::in_memory().forgetful_repository()); })*
        }
    };
}

suite! {
    an_ehr_is_created_once
    a_subject_has_one_ehr
    versions_follow_each_other
    versions_are_found_by_time
    a_long_document_is_read_on_request_only
    a_deleted_object_keeps_its_history
    a_stale_writer_changes_nothing
    a_contribution_is_all_or_nothing
    preconditions_of_a_commit_must_hold
    predecessor_of_a_commit_must_be_the_latest_version
    an_object_belongs_to_one_ehr
    an_ehr_has_one_directory
    a_version_has_the_kind_of_its_object
    a_version_keeps_the_template_of_its_object
    a_composition_keeps_its_archetype_and_persistence
    a_locked_ehr_accepts_only_its_status
    content_behind_a_lock_in_one_transaction_is_refused
    an_ehr_has_one_status
    the_newest_object_is_found_behind_any_number
    the_object_of_a_time_is_the_newest_one_committed_until_then
    the_idempotency_key_is_stored_with_its_contribution
    a_status_changes_the_flags_of_its_ehr
    parties_need_no_ehr
    definitions_are_immutable
    a_definition_that_is_stored_anew_is_another_one
    lists_tell_the_length_of_definitions
    a_referenced_template_cannot_be_deleted
    large_bodies_are_returned_byte_for_byte
    a_deleted_ehr_leaves_no_rows
    reset_removes_everything
    objects_are_paged_in_commit_order
    a_scan_sends_exactly_the_requested_documents
    a_scan_stops_on_request
    documents_are_returned_digit_for_digit
    the_access_log_keeps_every_line
}

const SYSTEM: &str = "test.example";
pub const EHR: &str = "11111111-1111-4111-8111-111111111111";
pub const OTHER: &str = "22222222-2222-4222-8222-222222222222";
pub const PRESSURE: &str = "openEHR-EHR-OBSERVATION.blood_pressure.v2";
const VITALS: &str = "Vital signs";
pub const PULSE: &str = "openEHR-EHR-OBSERVATION.pulse.v2";

pub fn done<T>(future: impl Future<Output = Result<T, StoreError>>) -> T {
    now_or_never(future).expect("ready").expect("stored")
}

pub fn refused<T>(future: impl Future<Output = Result<T, StoreError>>) -> StoreError {
    now_or_never(future).expect("ready").err().expect("refused")
}

fn time(minute: u32) -> String {
    format!("2026-11-20T10:{minute:02}:00.000Z")
}

fn data(kind: ObjectKind, archetype: &str, text: &str) -> String {
    let name = r#""name":{"_type":"DV_TEXT","value":"thing"}"#;
    match kind {
        ObjectKind::Composition => format!(
            r#"{{"_type":"COMPOSITION",{name},"archetype_node_id":"openEHR-EHR-COMPOSITION.encounter.v1",
            "language":{{"_type":"CODE_PHRASE","terminology_id":{{"_type":"TERMINOLOGY_ID","value":"ISO_639-1"}},"code_string":"en"}},
            "content":[{{"_type":"OBSERVATION",{name},"archetype_node_id":"{archetype}","data":{{"_type":"HISTORY",{name},"archetype_node_id":"at0001",
            "events":[{{"_type":"POINT_EVENT",{name},"archetype_node_id":"at0006","data":{{"_type":"ITEM_TREE",{name},"archetype_node_id":"at0003",
            "items":[{{"_type":"ELEMENT",{name},"archetype_node_id":"at0004","value":{{"_type":"DV_QUANTITY","magnitude":120.50,"units":"mm[Hg]"}}}},
            {{"_type":"ELEMENT",{name},"archetype_node_id":"at0005","value":{{"_type":"DV_TEXT","value":"{text}"}}}}]}}}}]}}}}]}}"#
        ),
        ObjectKind::EhrStatus => format!(
            r#"{{"_type":"EHR_STATUS",{name},"archetype_node_id":"openEHR-EHR-EHR_STATUS.generic.v1","subject":{{"_type":"PARTY_SELF"}},"is_queryable":true,"is_modifiable":true}}"#
        ),
        ObjectKind::Folder => {
            format!(
                r#"{{"_type":"FOLDER","name":{{"_type":"DV_TEXT","value":"{text}"}},"archetype_node_id":"openEHR-EHR-FOLDER.generic.v1"}}"#
            )
        }
        ObjectKind::Party => format!(
            r#"{{"_type":"PERSON",{name},"archetype_node_id":"openEHR-DEMOGRAPHIC-PERSON.person.v0","identities":[]}}"#
        ),
    }
}

/// The parts of a version that a test sets. Others have defaults.
pub struct Draft<'a> {
    pub ehr: &'a str,
    pub kind: ObjectKind,
    pub object: &'a str,
    pub number: u32,
    pub minute: u32,
    pub archetype: &'a str,
    pub text: &'a str,
    pub template: Option<&'a str>,
    pub deletes: bool,
}

impl Draft<'_> {
    pub fn of<'a>(kind: ObjectKind, object: &'a str, number: u32) -> Draft<'a> {
        Draft {
            ehr: EHR,
            kind,
            object,
            number,
            minute: number,
            archetype: PRESSURE,
            text: "remark",
            template: (kind == ObjectKind::Composition).then_some(VITALS),
            deletes: false,
        }
    }

    pub fn composition(object: &str, number: u32) -> Draft<'_> {
        Draft::of(ObjectKind::Composition, object, number)
    }

    pub fn version(&self) -> Version {
        self.version_with("", "")
    }

    /// Returns the version with a text of its data replaced.
    pub fn version_with(&self, from: &str, to: &str) -> Version {
        let uid = |number: u32| format!("{}::{SYSTEM}::{number}", self.object);
        let preceding = (self.number > 1).then(|| uid(self.number - 1));
        let lifecycle = if self.deletes { "523" } else { "532" };
        let body = if self.deletes {
            String::new()
        } else {
            let data = data(self.kind, self.archetype, self.text);
            assert!(data.contains(from), "{from}");
            match from {
                "" => format!(r#","data":{data}"#),
                from => format!(r#","data":{}"#, data.replacen(from, to, 1)),
            }
        };
        let text = format!(
            r#"{{"_type":"ORIGINAL_VERSION","uid":{{"_type":"OBJECT_VERSION_ID","value":"{}"}},"lifecycle_state":{{"_type":"DV_CODED_TEXT","value":"complete",
            "defining_code":{{"_type":"CODE_PHRASE","terminology_id":{{"_type":"TERMINOLOGY_ID","value":"openehr"}},"code_string":"{lifecycle}"}}}}{body}}}"#,
            uid(self.number)
        );
        let tree = json::read(&text, Cls::ORIGINAL_VERSION).expect("test document");
        Version {
            ehr_id: self.ehr.into(),
            kind: self.kind,
            object_id: self.object.into(),
            version_uid: uid(self.number),
            number: self.number,
            preceding,
            contribution: format!("c-{}-{}", self.object, self.number),
            time_committed: time(self.minute),
            lifecycle: lifecycle.into(),
            template_id: self.template.filter(|_| !self.deletes).map(str::to_owned),
            packed: pack(
                tree.root().expect("root"),
                &NothingKnown,
                &LayoutStore::new(),
            ),
            tags: Vec::new(),
        }
    }

    pub fn commit(&self) -> Commit {
        commit(vec![self.version()])
    }
}

/// Returns one contribution with these versions.
pub fn commit(versions: Vec<Version>) -> Commit {
    let first = versions.first().expect("versions").clone();
    let contribution = first.contribution;
    let versions = versions
        .into_iter()
        .map(|v| Version {
            contribution: contribution.clone(),
            ..v
        })
        .collect();
    Commit {
        new_ehr: None,
        ehr_id: first.ehr_id,
        contribution: contribution_text(&contribution),
        contribution_uid: contribution,
        time_committed: first.time_committed,
        versions,
        status: None,
        access: None,
        preconditions: Preconditions::default(),
        idempotency: None,
    }
}

/// Returns the commit with another contribution uid.
pub fn under(uid: &str, commit: Commit) -> Commit {
    let versions = commit
        .versions
        .into_iter()
        .map(|v| Version {
            contribution: uid.into(),
            ..v
        })
        .collect();
    Commit {
        contribution_uid: uid.into(),
        versions,
        ..commit
    }
}

fn contribution_text(uid: &str) -> String {
    format!(
        r#"{{"_type":"CONTRIBUTION","uid":{{"_type":"HIER_OBJECT_ID","value":"{uid}"}},"versions":[],"audit":{{"_type":"AUDIT_DETAILS","system_id":"{SYSTEM}"}}}}"#
    )
}

fn ehr(ehr_id: &str, subject: Option<&str>) -> Ehr {
    Ehr {
        ehr_id: ehr_id.into(),
        system_id: SYSTEM.into(),
        time_created: time(0),
        subject: subject.map(|s| (s.to_owned(), "hospital".to_owned())),
        is_queryable: true,
        is_modifiable: true,
    }
}

/// Returns the commit that creates an EHR with its first status.
pub fn creation(ehr_id: &str, subject: Option<&str>) -> Commit {
    let status = format!("status-{ehr_id}");
    let draft = Draft {
        ehr: ehr_id,
        ..Draft::of(ObjectKind::EhrStatus, &status, 1)
    };
    let flags = EhrFlags {
        subject: subject.map(|s| (s.to_owned(), "hospital".to_owned())),
        is_queryable: true,
        is_modifiable: true,
    };
    Commit {
        new_ehr: Some(ehr(ehr_id, subject)),
        status: Some(flags),
        ..draft.commit()
    }
}

fn an_ehr_is_created_once<R: Repository>(store: &R) {
    assert_eq!(done(store.ehr(EHR)), None);
    done(store.commit(creation(EHR, None)));
    assert_eq!(done(store.ehr(EHR)), Some(ehr(EHR, None)));
    assert_eq!(
        refused(store.commit(creation(EHR, Some("p1")))),
        StoreError::EhrExists
    );
    assert_eq!(done(store.ehr_by_subject("p1", "hospital")), None);
    assert_eq!(
        done(store.versions(EHR, &format!("status-{EHR}"), 0))
            .items
            .len(),
        1
    );
}

fn the_access_log_keeps_every_line<R: Repository>(store: &R) {
    let line = |who: &str, minute: u32, ehr_id: Option<&str>| AccessRecord {
        time: time(minute),
        who: who.into(),
        operation: String::from("GET ehr/{ehr_id}"),
        ehr_id: ehr_id.map(str::to_owned),
        status: 200,
        ..AccessRecord::default()
    };
    let lines = |filter: AccessFilter<'_>| {
        done(store.accesses(&AccessFilter {
            limit: filter.limit.max(1),
            ..filter
        }))
    };
    done(store.log_accesses(vec![line("ann", 1, Some(EHR)), line("bob", 2, None)]));
    done(store.commit(Commit {
        access: Some(line("ann", 3, Some(EHR))),
        ..creation(EHR, None)
    }));
    refused(store.commit(Commit {
        access: Some(line("eve", 4, Some(EHR))),
        ..creation(EHR, None)
    }));
    done(store.reset());
    let all = lines(AccessFilter {
        limit: 9,
        ..AccessFilter::default()
    });
    assert_eq!(
        all.iter().map(|(_, a)| a.who.as_str()).collect::<Vec<_>>(),
        ["ann", "bob", "ann"]
    );
    let later = lines(AccessFilter {
        after: all[0].0,
        limit: 9,
        ..AccessFilter::default()
    });
    assert_eq!(later, all[1..]);
    let of_ann = lines(AccessFilter {
        who: Some("ann"),
        ehr_id: Some(EHR),
        from: Some(&time(2)),
        limit: 9,
        ..AccessFilter::default()
    });
    assert_eq!(of_ann, all[2..]);
    assert_eq!(
        lines(AccessFilter {
            to: Some(&time(2)),
            limit: 9,
            ..AccessFilter::default()
        }),
        all[..1]
    );
    assert_eq!(
        lines(AccessFilter {
            limit: 1,
            ..AccessFilter::default()
        })
        .len(),
        1
    );
}

fn a_subject_has_one_ehr<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, Some("p1"))));
    assert_eq!(
        refused(store.commit(creation(OTHER, Some("p1")))),
        StoreError::SubjectExists
    );
    assert_eq!(done(store.ehr(OTHER)), None);
    done(store.commit(creation(OTHER, Some("p2"))));
    assert_eq!(
        done(store.ehr_by_subject("p2", "hospital")).map(|e| e.ehr_id),
        Some(OTHER.into())
    );
    assert_eq!(done(store.ehr_by_subject("p2", "elsewhere")), None);
    let with_id = |id, limit| -> Vec<String> {
        let found = done(store.ehrs_by_subject_id(id, limit)).into_iter();
        found.map(|ehr| ehr.ehr_id).collect()
    };
    assert_eq!(with_id("p2", 2), [OTHER]);
    assert!(with_id("p", 2).is_empty());
    let third = "33333333-3333-4333-8333-333333333333";
    let clinic = Some((String::from("p2"), String::from("clinic")));
    let mut commit = creation(third, Some("p2"));
    commit.new_ehr.as_mut().expect("an EHR").subject = clinic.clone();
    let flags = commit.status.as_mut().expect("a status");
    (flags.subject, flags.is_queryable) = (clinic, false);
    done(store.commit(commit));
    assert_eq!(with_id("p2", 2), [third, OTHER]);
    assert_eq!(with_id("p2", 1), [third]);
    let status = format!("status-{OTHER}");
    let flags = EhrFlags {
        subject: Some(("p1".into(), "hospital".into())),
        is_queryable: true,
        is_modifiable: true,
    };
    let thief = Commit {
        status: Some(flags),
        ..Draft {
            ehr: OTHER,
            ..Draft::of(ObjectKind::EhrStatus, &status, 2)
        }
        .commit()
    };
    assert_eq!(refused(store.commit(thief)), StoreError::SubjectExists);
    assert_eq!(done(store.versions(OTHER, &status, 0)).items.len(), 1);
}

fn the_idempotency_key_is_stored_with_its_contribution<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(Commit {
        idempotency: Some("line 1".into()),
        ..Draft::composition("a", 1).commit()
    }));
    done(store.commit(Draft::composition("b", 1).commit()));
    let kept = |ehr, uid| done(store.idempotency(ehr, uid));
    assert_eq!(kept(EHR, "c-a-1").as_deref(), Some("line 1"));
    assert_eq!(
        (kept(EHR, "c-b-1"), kept(OTHER, "c-a-1"), kept(EHR, "none")),
        (None, None, None)
    );
    done(store.delete_objects(EHR, &["b".into()]));
    assert_eq!(kept(EHR, "c-a-1").as_deref(), Some("line 1"));
    done(store.delete_objects(EHR, &["a".into()]));
    done(store.commit(Draft::composition("a", 1).commit()));
    assert_eq!(kept(EHR, "c-a-1"), None, "it goes with its contribution");
}

fn parties_need_no_ehr<R: Repository>(store: &R) {
    let person = |number| Draft {
        ehr: "",
        ..Draft::of(ObjectKind::Party, "someone", number)
    };
    done(store.commit(person(1).commit()));
    done(store.commit(person(2).commit()));
    assert_eq!(
        done(store.version("", "someone", VersionSelector::Latest)).map(|v| v.number),
        Some(2)
    );
    assert_eq!(
        done(store.objects("", ObjectKind::Party, 0, 9)),
        ["someone"]
    );
    assert_eq!(done(store.ehr("")), None);
    assert!(!done(store.delete_ehr("")));
    assert_eq!(done(store.versions("", "someone", 0)).items.len(), 2);
}
