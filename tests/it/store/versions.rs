//! Versions follow each other, and a change set is atomic.

use super::*;

pub fn versions_follow_each_other<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let before = done(store.revision());
    for number in 1..=3 {
        done(store.commit(Draft::composition("a", number).commit()));
    }
    assert!(done(store.revision()) >= before + 3);
    let numbers: Vec<u32> = done(store.versions(EHR, "a", 0))
        .items
        .iter()
        .map(|v| v.number)
        .collect();
    assert_eq!(numbers, [1, 2, 3]);
    let latest = done(store.version(EHR, "a", VersionSelector::Latest)).expect("latest");
    assert_eq!(
        (latest.number, latest.preceding.as_deref()),
        (3, Some("a::test.example::2"))
    );
    assert_eq!(
        (latest.template_id.as_deref(), latest.contribution.as_str()),
        (Some("Vital signs"), "c-a-3")
    );
    assert_eq!(
        done(store.version(EHR, "a", VersionSelector::Uid("a::test.example::2"))).map(|v| v.number),
        Some(2)
    );
    for unknown in [
        "a::test.example::4",
        "a::other::2",
        "b::test.example::2",
        "nonsense",
    ] {
        assert!(
            done(store.version(EHR, "a", VersionSelector::Uid(unknown))).is_none(),
            "{unknown}"
        );
    }
    assert!(done(store.version(OTHER, "a", VersionSelector::Latest)).is_none());
    assert_eq!(
        done(store.contribution(EHR, "c-a-2")),
        Some(contribution_text("c-a-2"))
    );
    assert_eq!(done(store.contribution(OTHER, "c-a-2")), None);
}

pub fn a_long_document_is_read_on_request_only<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let long = "é".repeat(700_000);
    let draft = Draft {
        text: &long,
        ..Draft::composition("long", 1)
    };
    done(store.commit(draft.commit()));
    done(store.commit(Draft::composition("long", 2).commit()));
    let uids = ["long::test.example::1", "long::test.example::2"];
    let within = |which, most| done(store.version_within(EHR, "long", which, most)).expect("found");
    for (which, uid, is_long) in [
        (VersionSelector::Uid(uids[0]), uids[0], true),
        (VersionSelector::At(&time(1)), uids[0], true),
        (VersionSelector::Latest, uids[1], false),
    ] {
        for (most, is_read) in [(0, false), (100_000, !is_long), (usize::MAX, true)] {
            let found = within(which, most);
            assert_eq!(
                matches!(found, BoundedVersion::Complete(_)),
                is_read,
                "{uid} within {most}"
            );
            assert_eq!(found.bytes() > 1_400_000, is_long);
            let head = found.head();
            assert_eq!((head.version_uid.as_str(), head.object_id()), (uid, "long"));
            assert_eq!(head.template_id.as_deref(), Some("Vital signs"));
        }
    }
    assert!(done(store.version_within(OTHER, "long", VersionSelector::Latest, 0)).is_none());
    let heads = done(store.version_metadata(EHR, "long"));
    let sizes: Vec<bool> = heads.iter().map(|head| head.bytes > 1_400_000).collect();
    assert_eq!(sizes, [true, false]);
}

pub fn versions_are_found_by_time<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    for number in 1..=2 {
        done(
            store.commit(
                Draft {
                    minute: number * 10,
                    ..Draft::composition("a", number)
                }
                .commit(),
            ),
        );
    }
    let at = |minute| {
        done(store.version(EHR, "a", VersionSelector::At(&time(minute)))).map(|v| v.number)
    };
    assert_eq!(
        [at(9), at(10), at(19), at(20), at(59)],
        [None, Some(1), Some(1), Some(2), Some(2)]
    );
}

pub fn a_deleted_object_keeps_its_history<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(
        store.commit(
            Draft {
                deletes: true,
                ..Draft::composition("a", 2)
            }
            .commit(),
        ),
    );
    assert!(
        done(store.version(EHR, "a", VersionSelector::Latest))
            .expect("latest")
            .is_deletion()
    );
    assert!(
        !done(store.version(EHR, "a", VersionSelector::At(&time(1))))
            .expect("first")
            .is_deletion()
    );
    assert_eq!(
        found(
            store,
            &Scan {
                ehrs: Some(vec![EHR.into()]),
                kinds: vec![ObjectKind::Composition],
                ..Scan::default()
            }
        ),
        Vec::<String>::new()
    );
}

pub fn a_stale_writer_changes_nothing<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(store.commit(Draft::composition("a", 2).commit()));
    let revision = done(store.revision());
    let late = under("late", Draft::composition("a", 2).commit());
    let stale = |version_uid: &str| StoreError::Stale {
        version_uid: version_uid.into(),
        latest: "a::test.example::2".into(),
    };
    assert_eq!(refused(store.commit(late)), stale("a::test.example::2"));
    let again = under("again", Draft::composition("a", 1).commit());
    assert_eq!(
        refused(store.commit(again)),
        StoreError::UidExists("a::test.example::1".into())
    );
    assert_eq!(
        refused(store.commit(Draft::composition("b", 2).commit())),
        StoreError::Stale {
            version_uid: "b::test.example::2".into(),
            latest: String::new()
        }
    );
    let skipping = Version {
        preceding: Some("a::test.example::1".into()),
        ..Draft::composition("a", 3).version()
    };
    assert_eq!(
        refused(store.commit(commit(vec![skipping]))),
        stale("a::test.example::3")
    );
    assert_eq!(done(store.revision()), revision);
    assert_eq!(done(store.contribution(EHR, "late")), None);
    assert_eq!(done(store.versions(EHR, "a", 0)).items.len(), 2);
}

pub fn a_contribution_is_all_or_nothing<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    let change = |last: u32| {
        commit(vec![
            Draft::composition("b", 1).version(),
            Draft::composition("b", 2).version(),
            Draft::composition("a", last).version(),
        ])
    };
    assert!(matches!(
        refused(store.commit(change(3))),
        StoreError::Stale { .. }
    ));
    assert!(done(store.versions(EHR, "b", 0)).items.is_empty());
    done(store.commit(change(2)));
    assert_eq!(done(store.versions(EHR, "b", 0)).items.len(), 2);
    assert_eq!(done(store.versions(EHR, "a", 0)).items.len(), 2);
    let reused = under("c-b-1", Draft::composition("d", 1).commit());
    assert_eq!(
        refused(store.commit(reused)),
        StoreError::UidExists("c-b-1".into())
    );
    assert!(done(store.versions(EHR, "d", 0)).items.is_empty());
    assert!(matches!(
        refused(store.commit(Commit {
            versions: Vec::new(),
            ..Draft::composition("e", 1).commit()
        })),
        StoreError::Failed(_)
    ));
}

pub fn preconditions_of_a_commit_must_hold<R: Repository>(store: &R) {
    let small = |version: &str| definition("small", version);
    let seen: RefCell<HashMap<String, Definition>> = RefCell::default();
    let look = || {
        seen.borrow_mut().extend(
            done(store.preconditions(EHR, "small"))
                .1
                .into_iter()
                .map(|found| (found.version.clone(), found)),
        )
    };
    let on = |stored: &[&str], object: &'static str| {
        let definitions: Vec<Definition> = stored
            .iter()
            .map(|version| seen.borrow().get(*version).cloned().expect("seen"))
            .collect();
        Commit {
            preconditions: Preconditions {
                templates: vec![TemplateState::of("small", &definitions).into()],
                predecessor: None,
            },
            ..Draft::composition(object, 1).commit()
        }
    };
    done(store.define(DefinitionKind::Template, small("1.0.0")));
    done(store.define(DefinitionKind::Template, definition("smaller", "1.0.0")));
    done(store.define(DefinitionKind::Query, small("3.0.0")));
    look();
    assert_eq!(
        refused(store.commit(on(&["1.0.0"], "a"))),
        StoreError::NoSuchEhr
    );
    done(store.commit(creation(EHR, None)));
    done(store.commit(on(&["1.0.0"], "a")));
    done(store.define(DefinitionKind::Template, small("1.1.0")));
    look();
    assert_eq!(
        refused(store.commit(on(&["1.0.0"], "b"))),
        StoreError::PreconditionFailed
    );
    done(store.commit(on(&["1.1.0", "1.0.0"], "b")));
    done(store.undefine(DefinitionKind::Template, "small", "1.0.0"));
    let many = now_or_never(store.commit_all(vec![
        on(&["1.1.0"], "c"),
        on(&["1.0.0"], "d"),
        on(&["1.1.0"], "e"),
    ]))
    .expect("ready");
    assert_eq!(many, [Ok(()), Err(StoreError::PreconditionFailed), Ok(())]);
    done(store.undefine(DefinitionKind::Template, "small", "1.1.0"));
    done(store.define(DefinitionKind::Template, small("1.1.0")));
    assert_eq!(
        refused(store.commit(on(&["1.1.0"], "f"))),
        StoreError::PreconditionFailed,
        "of the same version and time, but stored anew"
    );
    look();
    let flags = EhrFlags {
        subject: None,
        is_queryable: true,
        is_modifiable: false,
    };
    done(store.commit(Commit {
        status: Some(flags),
        ..Draft::of(ObjectKind::EhrStatus, &format!("status-{EHR}"), 2).commit()
    }));
    assert_eq!(
        refused(store.commit(on(&["1.1.0"], "f"))),
        StoreError::NotModifiable
    );
    assert_eq!(
        done(store.objects(EHR, ObjectKind::Composition, 0, 9)),
        ["a", "b", "c", "e"]
    );
}

pub fn an_object_belongs_to_one_ehr<R: Repository>(store: &R) {
    assert_eq!(
        refused(store.commit(Draft::composition("a", 1).commit())),
        StoreError::NoSuchEhr
    );
    done(store.commit(creation(EHR, None)));
    done(store.commit(creation(OTHER, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    let foreign = |object: &str, number| {
        under(
            &format!("foreign-{number}"),
            Draft {
                ehr: OTHER,
                ..Draft::composition(object, number)
            }
            .commit(),
        )
    };
    assert_eq!(
        refused(store.commit(foreign("a", 1))),
        StoreError::UidExists("a::test.example::1".into())
    );
    // A version that follows a version of another EHR gets the same error as one that follows none.
    for number in [2, 3] {
        for object in ["a", "unknown"] {
            let stale = StoreError::Stale {
                version_uid: format!("{object}::test.example::{number}"),
                latest: String::new(),
            };
            assert_eq!(refused(store.commit(foreign(object, number))), stale);
        }
    }
    assert_eq!(done(store.versions(EHR, "a", 0)).items.len(), 1);
}

pub fn an_ehr_has_one_directory<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let folder = |object: &'static str, number| Draft::of(ObjectKind::Folder, object, number);
    done(store.commit(folder("f", 1).commit()));
    assert_eq!(
        refused(store.commit(folder("g", 1).commit())),
        StoreError::DirectoryExists
    );
    done(store.commit(folder("f", 2).commit()));
    done(
        store.commit(
            Draft {
                deletes: true,
                ..folder("f", 3)
            }
            .commit(),
        ),
    );
    done(store.commit(folder("g", 1).commit()));
    assert_eq!(
        refused(store.commit(folder("f", 4).commit())),
        StoreError::DirectoryExists
    );
    assert_eq!(
        done(store.objects(EHR, ObjectKind::Folder, 0, 9)),
        ["f", "g"]
    );
}

pub fn predecessor_of_a_commit_must_be_the_latest_version<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(creation(OTHER, None)));
    let foreign = |ehr| Draft {
        ehr,
        ..Draft::composition("b", 1)
    };
    done(store.commit(foreign(OTHER).commit()));
    let folder = |object, number, deletes| Draft {
        deletes,
        ..Draft::of(ObjectKind::Folder, object, number)
    };
    for draft in [
        Draft::composition("a", 1),
        Draft::composition("a", 2),
        folder("f", 1, false),
        folder("f", 2, true),
        folder("g", 1, false),
    ] {
        done(store.commit(draft.commit()));
    }
    let following = |uid: &str, is_newest_of_kind, draft: Draft<'_>| Commit {
        preconditions: Preconditions {
            templates: Vec::new(),
            predecessor: Some(Predecessor {
                version_uid: uid.to_owned(),
                is_newest_of_kind,
                row: None,
            }),
        },
        ..draft.commit()
    };
    let before = done(store.revision());
    for (title, uid, newest) in [
        ("superseded", "a::test.example::1", false),
        ("unknown number", "a::test.example::3", false),
        ("unknown system", "a::other::2", false),
        ("unknown object", "c::test.example::1", false),
        ("of another EHR", "b::test.example::1", false),
        ("not the newest of its kind", "f::test.example::2", true),
    ] {
        assert_eq!(
            refused(store.commit(following(uid, newest, Draft::composition("n", 1)))),
            StoreError::PreconditionFailed,
            "{title}"
        );
    }
    assert_eq!(done(store.revision()), before);
    assert!(done(store.version(EHR, "n", VersionSelector::Latest)).is_none());
    done(store.commit(following(
        "a::test.example::2",
        false,
        Draft::composition("a", 3),
    )));
    done(store.commit(following(
        "a::test.example::3",
        true,
        Draft::composition("a", 4),
    )));
    done(store.commit(following("g::test.example::1", true, folder("g", 2, false))));
    // The predecessor may be a version of the same batch.
    let many = now_or_never(store.commit_all(vec![
        Draft::composition("a", 5).commit(),
        following("a::test.example::5", true, Draft::composition("a", 6)),
        following("a::test.example::5", true, Draft::composition("n", 1)),
    ]));
    assert_eq!(
        many.expect("ready"),
        [Ok(()), Ok(()), Err(StoreError::PreconditionFailed)]
    );
}
