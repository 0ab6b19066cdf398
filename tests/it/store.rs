//! One suite that every repository passes.

use crate::sqlite::Sqlite;
use aqlite::document::{Batch, NothingKnown, ObjectKind, Shapes, pack};
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::store::memory::Memory;
use aqlite::store::ready::block_on;
use aqlite::store::repository::{
    Access, AccessFilter, Commit, Definition, DefinitionKind, Ehr, EhrFlags, Grounds, Repository, StoreError, Version, Which,
};
use aqlite::store::scan::Scan;
use std::cell::RefCell;
use std::collections::HashMap;

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
    a_deleted_object_keeps_its_past
    a_stale_writer_changes_nothing
    a_contribution_is_all_or_nothing
    what_a_commit_takes_for_granted_must_be_so
    an_object_belongs_to_one_ehr
    an_ehr_has_one_directory
    a_version_keeps_the_kind_of_its_object
    a_version_keeps_the_template_of_its_object
    a_locked_ehr_takes_its_status_alone
    content_behind_a_lock_in_one_transaction_is_refused
    an_ehr_has_one_status
    the_newest_object_is_found_behind_any_number
    what_identifies_a_line_is_kept_with_its_contribution
    a_status_changes_the_flags_of_its_ehr
    parties_need_no_ehr
    definitions_are_immutable
    a_definition_that_is_stored_anew_is_another_one
    a_template_stays_as_long_as_it_is_named
    large_bodies_come_back_byte_for_byte
    a_deleted_ehr_leaves_nothing
    reset_removes_everything
    objects_are_paged_in_commit_order
    a_scan_sends_what_is_asked_for
    a_scan_stops_when_told
    documents_come_back_digit_for_digit
    the_access_log_keeps_every_line
}

const SYSTEM: &str = "test.example";
pub const EHR: &str = "11111111-1111-4111-8111-111111111111";
pub const OTHER: &str = "22222222-2222-4222-8222-222222222222";
pub const PRESSURE: &str = "openEHR-EHR-OBSERVATION.blood_pressure.v2";
const VITALS: &str = "Vital signs";
pub const PULSE: &str = "openEHR-EHR-OBSERVATION.pulse.v2";

pub fn done<T>(future: impl Future<Output = Result<T, StoreError>>) -> T {
    block_on(future).expect("ready").expect("stored")
}

pub fn refused<T>(future: impl Future<Output = Result<T, StoreError>>) -> StoreError {
    block_on(future).expect("ready").err().expect("refused")
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
            format!(r#"{{"_type":"FOLDER","name":{{"_type":"DV_TEXT","value":"{text}"}},"archetype_node_id":"openEHR-EHR-FOLDER.generic.v1"}}"#)
        }
        ObjectKind::Party => format!(r#"{{"_type":"PERSON",{name},"archetype_node_id":"openEHR-DEMOGRAPHIC-PERSON.person.v0","identities":[]}}"#),
    }
}

/// What a test says of a version; the rest is made up.
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
        let uid = |number: u32| format!("{}::{SYSTEM}::{number}", self.object);
        let preceding = (self.number > 1).then(|| uid(self.number - 1));
        let lifecycle = if self.deletes { "523" } else { "532" };
        let body = if self.deletes { String::new() } else { format!(r#","data":{}"#, data(self.kind, self.archetype, self.text)) };
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
            packed: pack(tree.root().expect("root"), &NothingKnown, &Shapes::new()),
            tags: Vec::new(),
        }
    }

    pub fn commit(&self) -> Commit {
        commit(vec![self.version()])
    }
}

/// One contribution with these versions.
pub fn commit(versions: Vec<Version>) -> Commit {
    let first = versions.first().expect("versions").clone();
    let contribution = first.contribution;
    let versions = versions.into_iter().map(|v| Version { contribution: contribution.clone(), ..v }).collect();
    Commit {
        new_ehr: None,
        ehr_id: first.ehr_id,
        contribution: contribution_text(&contribution),
        contribution_uid: contribution,
        time_committed: first.time_committed,
        versions,
        status: None,
        access: None,
        grounds: None,
        idempotency: None,
    }
}

/// The commit under another contribution uid.
pub fn under(uid: &str, commit: Commit) -> Commit {
    let versions = commit.versions.into_iter().map(|v| Version { contribution: uid.into(), ..v }).collect();
    Commit { contribution_uid: uid.into(), versions, ..commit }
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

/// The commit that creates an EHR with its first status.
pub fn creation(ehr_id: &str, subject: Option<&str>) -> Commit {
    let status = format!("status-{ehr_id}");
    let draft = Draft { ehr: ehr_id, ..Draft::of(ObjectKind::EhrStatus, &status, 1) };
    let flags = EhrFlags { subject: subject.map(|s| (s.to_owned(), "hospital".to_owned())), is_queryable: true, is_modifiable: true };
    Commit { new_ehr: Some(ehr(ehr_id, subject)), status: Some(flags), ..draft.commit() }
}

fn an_ehr_is_created_once<R: Repository>(store: &R) {
    assert_eq!(done(store.ehr(EHR)), None);
    done(store.commit(creation(EHR, None)));
    assert_eq!(done(store.ehr(EHR)), Some(ehr(EHR, None)));
    assert_eq!(refused(store.commit(creation(EHR, Some("p1")))), StoreError::EhrExists);
    assert_eq!(done(store.ehr_by_subject("p1", "hospital")), None);
    assert_eq!(done(store.versions(EHR, &format!("status-{EHR}"))).len(), 1);
}

fn the_access_log_keeps_every_line<R: Repository>(store: &R) {
    let line = |who: &str, minute: u32, ehr_id: Option<&str>| Access {
        time: time(minute),
        who: who.into(),
        operation: String::from("GET ehr/{ehr_id}"),
        ehr_id: ehr_id.map(str::to_owned),
        status: 200,
        ..Access::default()
    };
    let lines = |filter: AccessFilter<'_>| done(store.accesses(&AccessFilter { limit: filter.limit.max(1), ..filter }));
    done(store.note(vec![line("ann", 1, Some(EHR)), line("bob", 2, None)]));
    done(store.commit(Commit { access: Some(line("ann", 3, Some(EHR))), ..creation(EHR, None) }));
    refused(store.commit(Commit { access: Some(line("eve", 4, Some(EHR))), ..creation(EHR, None) }));
    done(store.reset());
    let all = lines(AccessFilter { limit: 9, ..AccessFilter::default() });
    assert_eq!(all.iter().map(|(_, a)| a.who.as_str()).collect::<Vec<_>>(), ["ann", "bob", "ann"]);
    let later = lines(AccessFilter { after: all[0].0, limit: 9, ..AccessFilter::default() });
    assert_eq!(later, all[1..]);
    let of_ann = lines(AccessFilter { who: Some("ann"), ehr_id: Some(EHR), from: Some(&time(2)), limit: 9, ..AccessFilter::default() });
    assert_eq!(of_ann, all[2..]);
    assert_eq!(lines(AccessFilter { to: Some(&time(2)), limit: 9, ..AccessFilter::default() }), all[..1]);
    assert_eq!(lines(AccessFilter { limit: 1, ..AccessFilter::default() }).len(), 1);
}

fn a_subject_has_one_ehr<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, Some("p1"))));
    assert_eq!(refused(store.commit(creation(OTHER, Some("p1")))), StoreError::SubjectExists);
    assert_eq!(done(store.ehr(OTHER)), None);
    done(store.commit(creation(OTHER, Some("p2"))));
    assert_eq!(done(store.ehr_by_subject("p2", "hospital")).map(|e| e.ehr_id), Some(OTHER.into()));
    assert_eq!(done(store.ehr_by_subject("p2", "elsewhere")), None);
    let status = format!("status-{OTHER}");
    let flags = EhrFlags { subject: Some(("p1".into(), "hospital".into())), is_queryable: true, is_modifiable: true };
    let thief = Commit { status: Some(flags), ..Draft { ehr: OTHER, ..Draft::of(ObjectKind::EhrStatus, &status, 2) }.commit() };
    assert_eq!(refused(store.commit(thief)), StoreError::SubjectExists);
    assert_eq!(done(store.versions(OTHER, &status)).len(), 1);
}

fn versions_follow_each_other<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let before = done(store.revision());
    for number in 1..=3 {
        done(store.commit(Draft::composition("a", number).commit()));
    }
    assert!(done(store.revision()) >= before + 3);
    let numbers: Vec<u32> = done(store.versions(EHR, "a")).iter().map(|v| v.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let latest = done(store.version(EHR, "a", Which::Latest)).expect("latest");
    assert_eq!((latest.number, latest.preceding.as_deref()), (3, Some("a::test.example::2")));
    assert_eq!((latest.template_id.as_deref(), latest.contribution.as_str()), (Some("Vital signs"), "c-a-3"));
    assert_eq!(done(store.version(EHR, "a", Which::Uid("a::test.example::2"))).map(|v| v.number), Some(2));
    for unknown in ["a::test.example::4", "a::other::2", "b::test.example::2", "nonsense"] {
        assert!(done(store.version(EHR, "a", Which::Uid(unknown))).is_none(), "{unknown}");
    }
    assert!(done(store.version(OTHER, "a", Which::Latest)).is_none());
    assert_eq!(done(store.contribution(EHR, "c-a-2")), Some(contribution_text("c-a-2")));
    assert_eq!(done(store.contribution(OTHER, "c-a-2")), None);
}

fn versions_are_found_by_time<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    for number in 1..=2 {
        done(store.commit(Draft { minute: number * 10, ..Draft::composition("a", number) }.commit()));
    }
    let at = |minute| done(store.version(EHR, "a", Which::At(&time(minute)))).map(|v| v.number);
    assert_eq!([at(9), at(10), at(19), at(20), at(59)], [None, Some(1), Some(1), Some(2), Some(2)]);
}

fn a_deleted_object_keeps_its_past<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(store.commit(Draft { deletes: true, ..Draft::composition("a", 2) }.commit()));
    assert!(done(store.version(EHR, "a", Which::Latest)).expect("latest").is_deletion());
    assert!(!done(store.version(EHR, "a", Which::At(&time(1)))).expect("first").is_deletion());
    assert_eq!(found(store, &Scan { ehrs: Some(vec![EHR.into()]), kinds: vec![ObjectKind::Composition], ..Scan::default() }), Vec::<String>::new());
}

fn a_stale_writer_changes_nothing<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(store.commit(Draft::composition("a", 2).commit()));
    let revision = done(store.revision());
    let late = under("late", Draft::composition("a", 2).commit());
    let latest = StoreError::Stale { latest: "a::test.example::2".into() };
    assert_eq!(refused(store.commit(late)), latest);
    let again = under("again", Draft::composition("a", 1).commit());
    assert_eq!(refused(store.commit(again)), StoreError::UidExists("a::test.example::1".into()));
    assert_eq!(refused(store.commit(Draft::composition("b", 2).commit())), StoreError::Stale { latest: String::new() });
    let skipping = Version { preceding: Some("a::test.example::1".into()), ..Draft::composition("a", 3).version() };
    assert_eq!(refused(store.commit(commit(vec![skipping]))), latest);
    assert_eq!(done(store.revision()), revision);
    assert_eq!(done(store.contribution(EHR, "late")), None);
    assert_eq!(done(store.versions(EHR, "a")).len(), 2);
}

fn a_contribution_is_all_or_nothing<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    let change =
        |last: u32| commit(vec![Draft::composition("b", 1).version(), Draft::composition("b", 2).version(), Draft::composition("a", last).version()]);
    assert!(matches!(refused(store.commit(change(3))), StoreError::Stale { .. }));
    assert!(done(store.versions(EHR, "b")).is_empty());
    done(store.commit(change(2)));
    assert_eq!(done(store.versions(EHR, "b")).len(), 2);
    assert_eq!(done(store.versions(EHR, "a")).len(), 2);
    let reused = under("c-b-1", Draft::composition("d", 1).commit());
    assert_eq!(refused(store.commit(reused)), StoreError::UidExists("c-b-1".into()));
    assert!(done(store.versions(EHR, "d")).is_empty());
    assert!(matches!(refused(store.commit(Commit { versions: Vec::new(), ..Draft::composition("e", 1).commit() })), StoreError::Failed(_)));
}

fn what_a_commit_takes_for_granted_must_be_so<R: Repository>(store: &R) {
    let small = |version: &str| definition("small", version);
    let seen: RefCell<HashMap<String, Definition>> = RefCell::default();
    let look = || seen.borrow_mut().extend(done(store.grounds(EHR, "small")).1.into_iter().map(|found| (found.version.clone(), found)));
    let on = |stored: &[&str], object: &'static str| {
        let definitions: Vec<Definition> = stored.iter().map(|version| seen.borrow().get(*version).cloned().expect("seen")).collect();
        Commit { grounds: Some(Grounds::of("small", &definitions)), ..Draft::composition(object, 1).commit() }
    };
    done(store.define(DefinitionKind::Template, small("1.0.0")));
    done(store.define(DefinitionKind::Template, definition("smaller", "1.0.0")));
    done(store.define(DefinitionKind::Query, small("3.0.0")));
    look();
    assert_eq!(refused(store.commit(on(&["1.0.0"], "a"))), StoreError::NoSuchEhr);
    done(store.commit(creation(EHR, None)));
    done(store.commit(on(&["1.0.0"], "a")));
    done(store.define(DefinitionKind::Template, small("1.1.0")));
    look();
    assert_eq!(refused(store.commit(on(&["1.0.0"], "b"))), StoreError::TemplateChanged);
    done(store.commit(on(&["1.1.0", "1.0.0"], "b")));
    done(store.undefine(DefinitionKind::Template, "small", "1.0.0"));
    let many = block_on(store.commit_all(vec![on(&["1.1.0"], "c"), on(&["1.0.0"], "d"), on(&["1.1.0"], "e")])).expect("ready");
    assert_eq!(many, [Ok(()), Err(StoreError::TemplateChanged), Ok(())]);
    done(store.undefine(DefinitionKind::Template, "small", "1.1.0"));
    done(store.define(DefinitionKind::Template, small("1.1.0")));
    assert_eq!(refused(store.commit(on(&["1.1.0"], "f"))), StoreError::TemplateChanged, "of the same version and time, but stored anew");
    look();
    let flags = EhrFlags { subject: None, is_queryable: true, is_modifiable: false };
    done(store.commit(Commit { status: Some(flags), ..Draft::of(ObjectKind::EhrStatus, &format!("status-{EHR}"), 2).commit() }));
    assert_eq!(refused(store.commit(on(&["1.1.0"], "f"))), StoreError::NotModifiable);
    assert_eq!(done(store.objects(EHR, ObjectKind::Composition, 0, 9)), ["a", "b", "c", "e"]);
}

fn an_object_belongs_to_one_ehr<R: Repository>(store: &R) {
    assert_eq!(refused(store.commit(Draft::composition("a", 1).commit())), StoreError::NoSuchEhr);
    done(store.commit(creation(EHR, None)));
    done(store.commit(creation(OTHER, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    let foreign = |object: &str, number| under(&format!("foreign-{number}"), Draft { ehr: OTHER, ..Draft::composition(object, number) }.commit());
    assert_eq!(refused(store.commit(foreign("a", 1))), StoreError::UidExists("a::test.example::1".into()));
    // What follows a version of another EHR is refused as what follows none is.
    for number in [2, 3] {
        assert_eq!(refused(store.commit(foreign("a", number))), refused(store.commit(foreign("unknown", number))));
    }
    assert_eq!(done(store.versions(EHR, "a")).len(), 1);
}

fn an_ehr_has_one_directory<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let folder = |object: &'static str, number| Draft::of(ObjectKind::Folder, object, number);
    done(store.commit(folder("f", 1).commit()));
    assert_eq!(refused(store.commit(folder("g", 1).commit())), StoreError::DirectoryExists);
    done(store.commit(folder("f", 2).commit()));
    done(store.commit(Draft { deletes: true, ..folder("f", 3) }.commit()));
    done(store.commit(folder("g", 1).commit()));
    assert_eq!(refused(store.commit(folder("f", 4).commit())), StoreError::DirectoryExists);
    assert_eq!(done(store.objects(EHR, ObjectKind::Folder, 0, 9)), ["f", "g"]);
}

fn a_status_changes_the_flags_of_its_ehr<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, Some("p1"))));
    let status = format!("status-{EHR}");
    let flags = EhrFlags { subject: Some(("p9".into(), "hospital".into())), is_queryable: false, is_modifiable: false };
    done(store.commit(Commit { status: Some(flags), ..Draft::of(ObjectKind::EhrStatus, &status, 2).commit() }));
    assert_eq!(done(store.ehr(EHR)), Some(Ehr { is_queryable: false, is_modifiable: false, ..ehr(EHR, Some("p9")) }));
    assert_eq!(done(store.ehr_by_subject("p1", "hospital")), None);
    done(store.commit(creation(OTHER, Some("p1"))));
    assert_eq!(done(store.ehr_by_subject("p9", "hospital")).map(|e| e.ehr_id), Some(EHR.into()));
    assert_eq!(found(store, &Scan { kinds: vec![ObjectKind::EhrStatus], ..Scan::default() }), [format!("status-{OTHER}::1")]);
    let one = Scan { ehrs: Some(vec![EHR.into()]), kinds: vec![ObjectKind::EhrStatus], ..Scan::default() };
    assert!(found(store, &one).is_empty());
    assert_eq!(found(store, &Scan { unqueryable: true, ..one }), [format!("status-{EHR}::2")]);
}

fn a_version_keeps_the_kind_of_its_object<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(store.commit(Draft::of(ObjectKind::Folder, "f", 1).commit()));
    let status = format!("status-{EHR}");
    for (object, kind) in [("a", ObjectKind::Composition), ("f", ObjectKind::Folder), (status.as_str(), ObjectKind::EhrStatus)] {
        for other in [ObjectKind::Composition, ObjectKind::EhrStatus, ObjectKind::Folder].into_iter().filter(|other| *other != kind) {
            for deletes in [false, true] {
                let attempt = Draft { deletes, ..Draft::of(other, object, 2) };
                let version_uid = format!("{object}::{SYSTEM}::2");
                assert_eq!(refused(store.commit(attempt.commit())), StoreError::OtherKind { version_uid, kind }, "{object} as {other:?}");
            }
        }
    }
    // Also within one commit.
    let two = vec![Draft::composition("b", 1).version(), Draft::of(ObjectKind::Folder, "b", 2).version()];
    let expected = StoreError::OtherKind { version_uid: format!("b::{SYSTEM}::2"), kind: ObjectKind::Composition };
    assert_eq!(refused(store.commit(commit(two))), expected);
    assert_eq!(done(store.versions(EHR, "b")).len() + done(store.versions(EHR, "a")).len(), 1);
    let many = vec![Draft::composition("c", 1).commit(), Draft::of(ObjectKind::Folder, "a", 2).commit(), Draft::composition("a", 2).commit()];
    let outcomes = block_on(store.commit_all(many.into_iter().enumerate().map(|(i, c)| under(&format!("m-{i}"), c)).collect())).expect("ready");
    let expected = StoreError::OtherKind { version_uid: format!("a::{SYSTEM}::2"), kind: ObjectKind::Composition };
    assert_eq!(outcomes, [Ok(()), Err(expected), Ok(())]);
}

fn a_version_keeps_the_template_of_its_object<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let version = |object: &'static str, number, template| Draft { template, ..Draft::composition(object, number) };
    for (object, template, others) in [("a", Some(VITALS), [None, Some("Vital signs 2")]), ("n", None, [Some(VITALS), Some("")])] {
        done(store.commit(version(object, 1, template).commit()));
        let refuse = |number| {
            for other in others {
                let refused_with =
                    StoreError::OtherTemplate { version_uid: format!("{object}::{SYSTEM}::{number}"), template_id: template.map(Into::into) };
                let attempt = under("other", version(object, number, other).commit());
                assert_eq!(refused(store.commit(attempt)), refused_with, "{object} {number} {other:?}");
            }
        };
        refuse(2);
        done(store.commit(version(object, 2, template).commit()));
        // A deletion has no template; what restores the object is compared with what was there before.
        done(store.commit(Draft { deletes: true, ..version(object, 3, None) }.commit()));
        refuse(4);
        done(store.commit(Draft { deletes: true, ..version(object, 4, None) }.commit()));
        refuse(5);
        done(store.commit(version(object, 5, template).commit()));
        refuse(6);
        let chain = vec![Draft { deletes: true, ..version(object, 6, None) }.version(), version(object, 7, others[0]).version()];
        assert!(matches!(refused(store.commit(commit(chain))), StoreError::OtherTemplate { .. }));
        assert_eq!(done(store.versions(EHR, object)).len(), 5);
    }
}

/// The commit of a new EHR_STATUS that locks or opens its EHR.
fn lock(number: u32, is_modifiable: bool) -> Commit {
    let flags = EhrFlags { subject: None, is_queryable: true, is_modifiable };
    Commit { status: Some(flags), ..Draft::of(ObjectKind::EhrStatus, &format!("status-{EHR}"), number).commit() }
}

fn a_locked_ehr_takes_its_status_alone<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(creation(OTHER, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(store.commit(lock(2, false)));
    let revision = done(store.revision());
    let contents = [
        Draft::composition("a", 2),
        Draft { deletes: true, ..Draft::composition("a", 2) },
        Draft::composition("b", 1),
        Draft::of(ObjectKind::Folder, "f", 1),
    ];
    contents.iter().for_each(|content| assert_eq!(refused(store.commit(content.commit())), StoreError::NotModifiable));
    // A contribution is judged by what was before it: it cannot open the EHR for itself.
    let opening = |number| {
        let open = lock(number, true);
        let content = Draft::composition("m", 1).version();
        Commit { versions: commit([open.versions.clone(), vec![content]].concat()).versions, ..open }
    };
    assert_eq!(refused(store.commit(opening(3))), StoreError::NotModifiable);
    assert_eq!(done(store.revision()), revision);
    done(store.commit(Draft { ehr: OTHER, ..Draft::composition("o", 1) }.commit()));
    done(store.commit(lock(3, false)));
    done(store.commit(lock(4, true)));
    done(store.commit(Draft::composition("a", 2).commit()));
    // For the same reason it may lock the EHR behind its own content.
    let closing = Commit { status: lock(5, false).status, ..opening(5) };
    done(store.commit(closing));
    assert_eq!(done(store.versions(EHR, "m")).len(), 1);
    assert_eq!(refused(store.commit(Draft::composition("a", 3).commit())), StoreError::NotModifiable);
    done(store.commit(Draft { ehr: "", ..Draft::of(ObjectKind::Party, "someone", 1) }.commit()));
}

fn content_behind_a_lock_in_one_transaction_is_refused<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let content = |object: &'static str| Draft::composition(object, 1).commit();
    let many = vec![content("a"), lock(2, false), content("b"), content("c"), lock(3, true), content("d"), lock(4, false), content("e")];
    let refused = Err(StoreError::NotModifiable);
    let outcomes = block_on(store.commit_all(many)).expect("ready");
    assert_eq!(outcomes, [Ok(()), Ok(()), refused.clone(), refused.clone(), Ok(()), Ok(()), Ok(()), refused]);
    assert_eq!(done(store.objects(EHR, ObjectKind::Composition, 0, 9)), ["a", "d"]);
}

fn an_ehr_has_one_status<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let flags = EhrFlags { subject: None, is_queryable: true, is_modifiable: false };
    let second = |number| Commit { status: Some(flags.clone()), ..Draft { number, ..Draft::of(ObjectKind::EhrStatus, "second", 1) }.commit() };
    assert_eq!(refused(store.commit(second(1))), StoreError::StatusExists);
    let versions = vec![
        Draft { ehr: OTHER, ..Draft::of(ObjectKind::EhrStatus, "one", 1) }.version(),
        Draft { ehr: OTHER, ..Draft::of(ObjectKind::EhrStatus, "two", 1) }.version(),
    ];
    assert_eq!(refused(store.commit(Commit { new_ehr: Some(ehr(OTHER, None)), ..commit(versions) })), StoreError::StatusExists);
    assert_eq!((done(store.ehr(OTHER)), done(store.ehr(EHR))), (None, Some(ehr(EHR, None))));
    // Flags come with an EHR_STATUS and with nothing else.
    let without = Commit { status: Some(flags), ..Draft::composition("a", 1).commit() };
    assert!(matches!(refused(store.commit(without)), StoreError::Failed(_)));
    let party = Draft::of(ObjectKind::Party, "someone", 1).commit();
    assert!(matches!(refused(store.commit(party)), StoreError::Failed(_)), "a party in an EHR");
    let stray = Draft { ehr: "", ..Draft::composition("a", 1) }.commit();
    assert!(matches!(refused(store.commit(stray)), StoreError::Failed(_)), "a composition in no EHR");
}

fn the_newest_object_is_found_behind_any_number<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let newest = || done(store.newest_object(EHR, ObjectKind::Folder));
    assert_eq!(newest(), None);
    let names: Vec<String> = (0..1_100).map(|i| format!("f{i}")).collect();
    let folder = |object, number| Draft { deletes: number == 2, ..Draft::of(ObjectKind::Folder, object, number) }.commit();
    let many = names.iter().flat_map(|name| [folder(name, 1), folder(name, 2)]).collect();
    assert!(block_on(store.commit_all(many)).expect("ready").iter().all(Result::is_ok));
    assert_eq!(newest().as_deref(), Some("f1099"));
    done(store.commit(folder("last", 1)));
    assert_eq!(newest().as_deref(), Some("last"));
    done(store.commit(folder("last", 2)));
    done(store.commit(Draft::of(ObjectKind::Folder, "f7", 3).commit()));
    assert_eq!(newest().as_deref(), Some("f7"), "a directory that is restored");
    assert_eq!(done(store.newest_object(EHR, ObjectKind::EhrStatus)), Some(format!("status-{EHR}")));
    assert_eq!(done(store.newest_object(OTHER, ObjectKind::EhrStatus)), None);
}

fn what_identifies_a_line_is_kept_with_its_contribution<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(Commit { idempotency: Some("line 1".into()), ..Draft::composition("a", 1).commit() }));
    done(store.commit(Draft::composition("b", 1).commit()));
    let kept = |ehr, uid| done(store.idempotency(ehr, uid));
    assert_eq!(kept(EHR, "c-a-1").as_deref(), Some("line 1"));
    assert_eq!((kept(EHR, "c-b-1"), kept(OTHER, "c-a-1"), kept(EHR, "none")), (None, None, None));
    done(store.delete_objects(EHR, &["b".into()]));
    assert_eq!(kept(EHR, "c-a-1").as_deref(), Some("line 1"));
    done(store.delete_objects(EHR, &["a".into()]));
    done(store.commit(Draft::composition("a", 1).commit()));
    assert_eq!(kept(EHR, "c-a-1"), None, "it goes with its contribution");
}

fn parties_need_no_ehr<R: Repository>(store: &R) {
    let person = |number| Draft { ehr: "", ..Draft::of(ObjectKind::Party, "someone", number) };
    done(store.commit(person(1).commit()));
    done(store.commit(person(2).commit()));
    assert_eq!(done(store.version("", "someone", Which::Latest)).map(|v| v.number), Some(2));
    assert_eq!(done(store.objects("", ObjectKind::Party, 0, 9)), ["someone"]);
    assert_eq!(done(store.ehr("")), None);
    assert!(!done(store.delete_ehr("")));
    assert_eq!(done(store.versions("", "someone")).len(), 2);
}

fn definition(name: &str, version: &str) -> Definition {
    Definition {
        name: name.into(),
        version: version.into(),
        format: "opt14".into(),
        created: time(0),
        storing_id: String::new(),
        summary: r#"{"concept":"x"}"#.into(),
        body: format!("body of {name}"),
    }
}

/// A definition as it is stored, without what the repository gives it.
fn definition_in<R: Repository>(store: &R, kind: DefinitionKind, name: &str, version: &str) -> Option<Definition> {
    let found = done(store.definition(kind, name, version))?;
    assert_ne!(found.storing_id, "");
    Some(Definition { storing_id: String::new(), ..found })
}

fn a_definition_that_is_stored_anew_is_another_one<R: Repository>(store: &R) {
    let kind = DefinitionKind::Template;
    let ids = |store: &R| {
        let listed = done(store.definitions(kind, "x")).pop().expect("listed").storing_id;
        assert_eq!(done(store.grounds(EHR, "x")).1.pop().expect("listed").storing_id, listed);
        assert_eq!(done(store.definition(kind, "x", "1.0.0")).expect("stored").storing_id, listed);
        listed
    };
    let mut seen = std::collections::BTreeSet::new();
    for again in 0..6 {
        done(store.define(kind, definition("x", "1.0.0")));
        assert!(seen.insert(ids(store)), "{again}");
        if again % 2 == 0 {
            assert!(done(store.undefine(kind, "x", "1.0.0")));
        } else {
            done(store.reset());
        }
    }
}

fn definitions_are_immutable<R: Repository>(store: &R) {
    let kind = DefinitionKind::Query;
    for (name, version) in [("org::a", "1.10.0"), ("org::a", "1.9.0"), ("org::b", "1.0.0"), ("Org::c", "1.0.0")] {
        done(store.define(kind, definition(name, version)));
    }
    done(store.define(DefinitionKind::Guide, definition("org::a", "1.9.0")));
    let changed = Definition { body: "changed".into(), ..definition("org::a", "1.9.0") };
    assert_eq!(refused(store.define(kind, changed)), StoreError::DefinitionExists);
    assert_eq!(definition_in(store, kind, "org::a", "1.9.0"), Some(definition("org::a", "1.9.0")));
    let names = |prefix| done(store.definitions(kind, prefix)).into_iter().map(|d| format!("{}/{}{}", d.name, d.version, d.body)).collect::<Vec<_>>();
    assert_eq!(names("org::"), ["org::a/1.9.0body of org::a", "org::a/1.10.0body of org::a", "org::b/1.0.0body of org::b"]);
    let guides = done(store.definitions(DefinitionKind::Guide, ""));
    assert_eq!(guides.iter().map(|guide| guide.body.as_str()).collect::<Vec<_>>(), [""], "only lists of queries carry bodies");
    assert_eq!(names("").len(), 4);
    assert_eq!(names("%").len(), 0);
    assert!(done(store.undefine(kind, "org::a", "1.9.0")));
    assert!(!done(store.undefine(kind, "org::a", "1.9.0")));
    assert_eq!(done(store.definition(kind, "org::a", "1.9.0")), None);
    assert!(done(store.definition(DefinitionKind::Guide, "org::a", "1.9.0")).is_some());
}

fn a_template_stays_as_long_as_it_is_named<R: Repository>(store: &R) {
    done(store.define(DefinitionKind::Template, definition("used", "1.0.0")));
    done(store.commit(creation(EHR, None)));
    let commit = Draft::composition("a", 1).commit();
    let versions = commit.versions.into_iter().map(|v| Version { template_id: Some("used".into()), ..v }).collect();
    done(store.commit(Commit { versions, ..Draft::composition("a", 1).commit() }));
    assert_eq!(refused(store.undefine(DefinitionKind::Template, "used", "1.0.0")), StoreError::TemplateInUse);
    assert_eq!(definition_in(store, DefinitionKind::Template, "used", "1.0.0"), Some(definition("used", "1.0.0")));
    assert!(done(store.delete_ehr(EHR)));
    assert!(done(store.undefine(DefinitionKind::Template, "used", "1.0.0")));
}

fn large_bodies_come_back_byte_for_byte<R: Repository>(store: &R) {
    let body = "éab\n\u{1F600}<x a=\"1\">".repeat(100_000);
    assert!(body.len() > 1_500_000);
    let template = Definition { body: body.repeat(3), ..definition("large", "1.0.0") };
    done(store.define(DefinitionKind::Template, template.clone()));
    assert!(definition_in(store, DefinitionKind::Template, "large", "1.0.0") == Some(template));
    assert_eq!(done(store.definitions(DefinitionKind::Template, "l")).first().map(|d| d.body.len()), Some(0));
    done(store.commit(creation(EHR, None)));
    let text = "é\u{1F600}x".repeat(400_000);
    done(store.commit(Draft { text: &text, ..Draft::composition("a", 1) }.commit()));
    let stored = done(store.version(EHR, "a", Which::Latest)).expect("stored");
    assert!(stored.packed.to_json() == Draft { text: &text, ..Draft::composition("a", 1) }.version().packed.to_json());
    assert_eq!(found(store, &Scan { kinds: vec![ObjectKind::Composition], ..Scan::default() }), ["a::1"]);
    done(store.undefine(DefinitionKind::Template, "large", "1.0.0"));
    done(store.define(DefinitionKind::Template, definition("large", "1.0.0")));
    assert_eq!(definition_in(store, DefinitionKind::Template, "large", "1.0.0"), Some(definition("large", "1.0.0")));
}

fn a_deleted_ehr_leaves_nothing<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, Some("p1"))));
    done(store.commit(creation(OTHER, Some("p2"))));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(store.commit(Draft { ehr: OTHER, ..Draft::composition("b", 1) }.commit()));
    assert!(done(store.delete_ehr(EHR)));
    assert!(!done(store.delete_ehr(EHR)));
    assert_eq!(done(store.ehr(EHR)), None);
    assert_eq!(done(store.ehr_by_subject("p1", "hospital")), None);
    assert!(done(store.versions(EHR, "a")).is_empty());
    assert_eq!(done(store.contribution(EHR, "c-a-1")), None);
    assert_eq!(found(store, &Scan::default()), [format!("status-{OTHER}::1"), "b::1".into()]);
    done(store.commit(creation(EHR, Some("p1"))));
    done(store.commit(Draft::composition("a", 1).commit()));
}

fn reset_removes_everything<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, Some("p1"))));
    done(store.define(DefinitionKind::Query, definition("q", "1.0.0")));
    let revision = done(store.revision());
    done(store.reset());
    assert!(done(store.revision()) > revision);
    assert_eq!(done(store.ehr(EHR)), None);
    assert!(done(store.definitions(DefinitionKind::Query, "")).is_empty());
    assert!(found(store, &Scan::default()).is_empty());
    done(store.commit(creation(EHR, Some("p1"))));
    done(store.commit(Draft { ehr: "", ..Draft::of(ObjectKind::Party, "someone", 1) }.commit()));
}

fn objects_are_paged_in_commit_order<R: Repository>(store: &R) {
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

/// The documents (`object::number`) that a scan sends and that a query would look at, in order.
pub fn found<R: Repository>(store: &R, scan: &Scan) -> Vec<String> {
    let mut found = Vec::new();
    done(store.scan(scan, &mut |batch: &Batch| {
        let wanted = |doc: &aqlite::document::Doc| {
            let ehr = batch.ehr(doc.ehr).filter(|e| scan.ehrs.as_ref().is_none_or(|ids| ids.contains(&e.ehr_id)));
            ehr.is_some_and(|e| e.is_queryable || scan.unqueryable)
                && scan.kinds.contains(&doc.row.kind)
                && (scan.all_versions || (doc.row.latest && !doc.row.deleted))
        };
        let documents = batch.docs().filter(wanted);
        found.extend(documents.map(|doc| format!("{}::{}", batch.object_id(doc.document), doc.row.number)));
        true
    }));
    found
}

/// The EHR ids that a scan sends.
fn ehrs<R: Repository>(store: &R, scan: &Scan) -> Vec<String> {
    let mut found = Vec::new();
    done(store.scan(scan, &mut |batch: &Batch| {
        let wanted = batch.ehrs().filter(|(_, e)| scan.ehrs.as_ref().is_none_or(|ids| ids.contains(&e.ehr_id)));
        found.extend(wanted.map(|(_, e)| e.ehr_id.clone()));
        true
    }));
    found
}

fn a_scan_sends_what_is_asked_for<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(creation(OTHER, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(store.commit(Draft { ehr: OTHER, archetype: PULSE, ..Draft::composition("b", 1) }.commit()));
    done(store.commit(Draft { archetype: PULSE, ..Draft::composition("c", 1) }.commit()));
    done(store.commit(Draft::composition("a", 2).commit()));
    done(store.commit(Draft { deletes: true, ..Draft::composition("c", 2) }.commit()));
    let base = Scan { kinds: vec![ObjectKind::Composition], whole_ehrs: false, empty_ehrs: false, ..Scan::default() };
    assert_eq!(found(store, &base), ["b::1", "a::2"]);
    assert_eq!(found(store, &Scan { all_versions: true, ..base.clone() }), ["a::1", "b::1", "c::1", "a::2", "c::2"]);
    let one = Scan { ehrs: Some(vec![EHR.into()]), ..base.clone() };
    assert_eq!(found(store, &one), ["a::2"]);
    assert_eq!(found(store, &Scan { all_versions: true, ..one.clone() }), ["a::1", "c::1", "a::2", "c::2"]);
    assert_eq!(found(store, &Scan { ehrs: Some(vec!["unknown".into()]), ..base.clone() }), Vec::<String>::new());
    assert_eq!(ehrs(store, &Scan { kinds: Vec::new(), empty_ehrs: true, ..base.clone() }), [EHR, OTHER]);
    assert_eq!(ehrs(store, &Scan { kinds: Vec::new(), empty_ehrs: true, ..one }), [EHR]);
    let mut grouped = found(store, &Scan { whole_ehrs: true, ..base });
    grouped.sort();
    assert_eq!(grouped, ["a::2", "b::1"]);
}

fn a_scan_stops_when_told<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let mut batches = 0;
    let revision = done(store.scan(&Scan::default(), &mut |_: &Batch| {
        batches += 1;
        false
    }));
    assert_eq!((batches, revision.revision), (1, done(store.revision())));
}

fn documents_come_back_digit_for_digit<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let draft = Draft { text: "120.50 \\\"quoted\\\" \\u0007 ü", ..Draft::composition("a", 1) };
    done(store.commit(draft.commit()));
    let stored = done(store.version(EHR, "a", Which::Latest)).expect("stored");
    let sent = draft.version();
    assert_eq!(stored.packed.to_json(), sent.packed.to_json());
    assert!(stored.packed.to_json().contains("120.50"));
    assert_eq!((stored.version_uid, stored.time_committed, stored.lifecycle), (sent.version_uid, sent.time_committed, sent.lifecycle));
}

/// The lines of a journal that commits write, one after another.
fn journal(commits: Vec<Commit>) -> Vec<String> {
    let memory = Memory::journaled();
    let written = |commit| {
        done(memory.commit(commit));
        memory.written().expect("a line")
    };
    commits.into_iter().map(written).collect()
}

#[test]
fn what_an_earlier_release_has_written_is_read_as_it_is() {
    let lines = journal(vec![creation(EHR, None), Draft::composition("a", 1).commit(), lock(2, true), Draft::composition("a", 2).commit()]);
    let altered = |place: usize, from: &str, to: &str| {
        assert!(lines[place].contains(from), "{from:?} is not in {:?}", lines[place]);
        let lines = lines.iter().enumerate().map(|(i, line)| if i == place { line.replace(from, to) } else { line.clone() });
        lines.collect::<String>()
    };
    for lines in [
        // Content behind a lock, a FOLDER behind a COMPOSITION, another template: no longer written, and read all the same.
        altered(2, "\t11\t", "\t10\t"),
        altered(3, "\t1\ta::test.example::2", "\t3\ta::test.example::2"),
        altered(3, "\tVital signs\t", "\tother\t"),
    ] {
        let memory = Memory::journaled();
        memory.repeat(&lines).expect("a journal");
        assert_eq!(done(memory.versions(EHR, "a")).len(), 2);
    }
    assert!(Memory::journaled().repeat(&altered(3, "a::test.example::2", "a::test.example::4")).is_ok());
    assert!(Memory::journaled().repeat(&altered(3, "\ta::test.example::1\t", "\ta::test.example::3\t")).is_err(), "what does not fit is not read");
}

#[test]
fn a_journal_keeps_what_identifies_a_line() {
    let lines = journal(vec![creation(EHR, None), Commit { idempotency: Some("line 1".into()), ..Draft::composition("a", 1).commit() }]);
    let memory = Memory::journaled();
    memory.repeat(&lines.concat()).expect("a journal");
    assert_eq!(done(memory.idempotency(EHR, "c-a-1")).as_deref(), Some("line 1"));
    assert_eq!(memory.written(), None, "what is repeated is not written again");
}
