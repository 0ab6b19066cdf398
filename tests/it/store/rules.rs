//! Flags, kinds and templates that later versions must keep.

use super::*;

pub fn a_status_changes_the_flags_of_its_ehr<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, Some("p1"))));
    let status = format!("status-{EHR}");
    let flags = EhrFlags {
        subject: Some(("p9".into(), "hospital".into())),
        is_queryable: false,
        is_modifiable: false,
    };
    done(store.commit(Commit {
        status: Some(flags),
        ..Draft::of(ObjectKind::EhrStatus, &status, 2).commit()
    }));
    assert_eq!(
        done(store.ehr(EHR)),
        Some(Ehr {
            is_queryable: false,
            is_modifiable: false,
            ..ehr(EHR, Some("p9"))
        })
    );
    assert_eq!(done(store.ehr_by_subject("p1", "hospital")), None);
    done(store.commit(creation(OTHER, Some("p1"))));
    assert_eq!(
        done(store.ehr_by_subject("p9", "hospital")).map(|e| e.ehr_id),
        Some(EHR.into())
    );
    assert_eq!(
        found(
            store,
            &Scan {
                kinds: vec![ObjectKind::EhrStatus],
                ..Scan::default()
            }
        ),
        [format!("status-{OTHER}::1")]
    );
    let one = Scan {
        ehrs: Some(vec![EHR.into()]),
        kinds: vec![ObjectKind::EhrStatus],
        ..Scan::default()
    };
    assert!(found(store, &one).is_empty());
    assert_eq!(
        found(
            store,
            &Scan {
                unqueryable: true,
                ..one
            }
        ),
        [format!("status-{EHR}::2")]
    );
}

pub fn a_version_has_the_kind_of_its_object<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(store.commit(Draft::of(ObjectKind::Folder, "f", 1).commit()));
    let status = format!("status-{EHR}");
    for (object, kind) in [
        ("a", ObjectKind::Composition),
        ("f", ObjectKind::Folder),
        (status.as_str(), ObjectKind::EhrStatus),
    ] {
        for other in [
            ObjectKind::Composition,
            ObjectKind::EhrStatus,
            ObjectKind::Folder,
        ]
        .into_iter()
        .filter(|other| *other != kind)
        {
            for deletes in [false, true] {
                let attempt = Draft {
                    deletes,
                    ..Draft::of(other, object, 2)
                };
                let version_uid = format!("{object}::{SYSTEM}::2");
                assert_eq!(
                    refused(store.commit(attempt.commit())),
                    StoreError::OtherKind { version_uid, kind },
                    "{object} as {other:?}"
                );
            }
        }
    }
    // The rule also holds within one commit.
    let two = vec![
        Draft::composition("b", 1).version(),
        Draft::of(ObjectKind::Folder, "b", 2).version(),
    ];
    let expected = StoreError::OtherKind {
        version_uid: format!("b::{SYSTEM}::2"),
        kind: ObjectKind::Composition,
    };
    assert_eq!(refused(store.commit(commit(two))), expected);
    assert_eq!(
        done(store.versions(EHR, "b", 0)).items.len()
            + done(store.versions(EHR, "a", 0)).items.len(),
        1
    );
    let many = vec![
        Draft::composition("c", 1).commit(),
        Draft::of(ObjectKind::Folder, "a", 2).commit(),
        Draft::composition("a", 2).commit(),
    ];
    let outcomes = now_or_never(
        store.commit_all(
            many.into_iter()
                .enumerate()
                .map(|(i, c)| under(&format!("m-{i}"), c))
                .collect(),
        ),
    )
    .expect("ready");
    let expected = StoreError::OtherKind {
        version_uid: format!("a::{SYSTEM}::2"),
        kind: ObjectKind::Composition,
    };
    assert_eq!(outcomes, [Ok(()), Err(expected), Ok(())]);
}

pub fn a_version_keeps_the_template_of_its_object<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let version = |object: &'static str, number, template| Draft {
        template,
        ..Draft::composition(object, number)
    };
    // The first version of `n` has no template. The next one may add it.
    done(store.commit(version("n", 1, None).commit()));
    let (template, others) = (Some(VITALS), [None, Some("Vital signs 2")]);
    for (object, first) in [("a", 1), ("n", 2)] {
        done(store.commit(version(object, first, template).commit()));
        let refuse = |number| {
            for other in others {
                let refused_with = StoreError::OtherTemplate {
                    version_uid: format!("{object}::{SYSTEM}::{number}"),
                    template_id: VITALS.into(),
                };
                let attempt = under("other", version(object, number, other).commit());
                assert_eq!(
                    refused(store.commit(attempt)),
                    refused_with,
                    "{object} {number} {other:?}"
                );
            }
        };
        refuse(first + 1);
        done(store.commit(version(object, first + 1, template).commit()));
        // A deletion has no template. The version that restores the object is compared with the
        // version before the deletion.
        done(
            store.commit(
                Draft {
                    deletes: true,
                    ..version(object, first + 2, None)
                }
                .commit(),
            ),
        );
        refuse(first + 3);
        done(
            store.commit(
                Draft {
                    deletes: true,
                    ..version(object, first + 3, None)
                }
                .commit(),
            ),
        );
        refuse(first + 4);
        done(store.commit(version(object, first + 4, template).commit()));
        refuse(first + 5);
        let chain = vec![
            Draft {
                deletes: true,
                ..version(object, first + 5, None)
            }
            .version(),
            version(object, first + 6, others[0]).version(),
        ];
        assert!(matches!(
            refused(store.commit(commit(chain))),
            StoreError::OtherTemplate { .. }
        ));
        assert_eq!(
            done(store.versions(EHR, object, 0)).items.len() as u32,
            first + 4
        );
    }
}

/// The archetype of the compositions of [`Draft`].
const ENCOUNTER: &str = "openEHR-EHR-COMPOSITION.encounter.v1";

/// The properties of a COMPOSITION that its versions share.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kept<'a> {
    archetype: &'a str,
    /// The code of the category, if there is one.
    category: Option<&'a str>,
}

impl Kept<'_> {
    fn version(self, object: &str, number: u32) -> Version {
        let category = self.category.map(|code| {
            format!(
                r#","category":{{"_type":"DV_CODED_TEXT","value":"c","defining_code":{{"_type":"CODE_PHRASE","terminology_id":{{"_type":"TERMINOLOGY_ID","value":"openehr"}},"code_string":"{code}"}}}}"#
            )
        });
        let after = format!("\"{}\"{}", self.archetype, category.unwrap_or_default());
        let draft = Draft::composition(object, number);
        draft.version_with(&format!("\"{ENCOUNTER}\""), &after)
    }
}

/// The invariants Archetype_node_id_valid and Persistent_valid of VERSIONED_COMPOSITION.
pub fn a_composition_keeps_its_archetype_and_persistence<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let of = |archetype, category| Kept {
        archetype,
        category,
    };
    let (event, episodic, persistent) = (Some("433"), Some("451"), Some("431"));
    let report = "openEHR-EHR-COMPOSITION.report.v1";
    for (object, first, same, other) in [
        ("event", event, episodic, persistent),
        ("persistent", persistent, persistent, event),
    ] {
        let refused_with = |number: u32, kept: Kept<'_>| {
            let version_uid = format!("{object}::{SYSTEM}::{number}");
            if kept.archetype == ENCOUNTER {
                StoreError::OtherPersistence {
                    version_uid,
                    is_persistent: first == persistent,
                }
            } else {
                StoreError::OtherArchetype {
                    version_uid,
                    archetype_node_id: ENCOUNTER.to_owned(),
                }
            }
        };
        let refuse = |number| {
            for kept in [of(ENCOUNTER, other), of(report, first), of(report, other)] {
                let attempt = under("other", commit(vec![kept.version(object, number)]));
                let expected = refused_with(number, kept);
                assert_eq!(
                    refused(store.commit(attempt)),
                    expected,
                    "{object} {number}"
                );
            }
        };
        let write = |number, category| {
            let version = of(ENCOUNTER, category).version(object, number);
            done(store.commit(commit(vec![version])));
        };
        let delete = |number| {
            let deletion = Draft {
                deletes: true,
                ..Draft::composition(object, number)
            };
            done(store.commit(deletion.commit()));
        };
        write(1, first);
        refuse(2);
        write(2, same);
        // A version that restores the object is compared with the last one that has data.
        delete(3);
        refuse(4);
        write(4, first);
        // Both versions are of one contribution.
        let chain = vec![
            of(ENCOUNTER, same).version(object, 5),
            of(ENCOUNTER, other).version(object, 6),
        ];
        let expected = refused_with(6, of(ENCOUNTER, other));
        assert_eq!(refused(store.commit(commit(chain))), expected);
        // A document without a category, which only a loader can store, is not compared.
        write(5, None);
        write(6, other);
    }
}

/// Returns the commit of a new EHR_STATUS that locks or unlocks its EHR.
pub fn lock(number: u32, is_modifiable: bool) -> Commit {
    let flags = EhrFlags {
        subject: None,
        is_queryable: true,
        is_modifiable,
    };
    Commit {
        status: Some(flags),
        ..Draft::of(ObjectKind::EhrStatus, &format!("status-{EHR}"), number).commit()
    }
}

pub fn a_locked_ehr_accepts_only_its_status<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    done(store.commit(creation(OTHER, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(store.commit(lock(2, false)));
    let revision = done(store.revision());
    let contents = [
        Draft::composition("a", 2),
        Draft {
            deletes: true,
            ..Draft::composition("a", 2)
        },
        Draft::composition("b", 1),
        Draft::of(ObjectKind::Folder, "f", 1),
    ];
    contents.iter().for_each(|content| {
        assert_eq!(
            refused(store.commit(content.commit())),
            StoreError::NotModifiable
        )
    });
    // A contribution is checked against the state before it, so it cannot unlock the EHR for
    // itself.
    let opening = |number| {
        let open = lock(number, true);
        let content = Draft::composition("m", 1).version();
        Commit {
            versions: commit([open.versions.clone(), vec![content]].concat()).versions,
            ..open
        }
    };
    assert_eq!(refused(store.commit(opening(3))), StoreError::NotModifiable);
    assert_eq!(done(store.revision()), revision);
    done(
        store.commit(
            Draft {
                ehr: OTHER,
                ..Draft::composition("o", 1)
            }
            .commit(),
        ),
    );
    done(store.commit(lock(3, false)));
    done(store.commit(lock(4, true)));
    done(store.commit(Draft::composition("a", 2).commit()));
    // For the same reason it may lock the EHR behind its own content.
    let closing = Commit {
        status: lock(5, false).status,
        ..opening(5)
    };
    done(store.commit(closing));
    assert_eq!(done(store.versions(EHR, "m", 0)).items.len(), 1);
    assert_eq!(
        refused(store.commit(Draft::composition("a", 3).commit())),
        StoreError::NotModifiable
    );
    done(
        store.commit(
            Draft {
                ehr: "",
                ..Draft::of(ObjectKind::Party, "someone", 1)
            }
            .commit(),
        ),
    );
}

pub fn content_behind_a_lock_in_one_transaction_is_refused<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let content = |object: &'static str| Draft::composition(object, 1).commit();
    let many = vec![
        content("a"),
        lock(2, false),
        content("b"),
        content("c"),
        lock(3, true),
        content("d"),
        lock(4, false),
        content("e"),
    ];
    let refused = Err(StoreError::NotModifiable);
    let outcomes = now_or_never(store.commit_all(many)).expect("ready");
    assert_eq!(
        outcomes,
        [
            Ok(()),
            Ok(()),
            refused.clone(),
            refused.clone(),
            Ok(()),
            Ok(()),
            Ok(()),
            refused
        ]
    );
    assert_eq!(
        done(store.objects(EHR, ObjectKind::Composition, 0, 9)),
        ["a", "d"]
    );
}

pub fn an_ehr_has_one_status<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let flags = EhrFlags {
        subject: None,
        is_queryable: true,
        is_modifiable: false,
    };
    let second = |number| Commit {
        status: Some(flags.clone()),
        ..Draft {
            number,
            ..Draft::of(ObjectKind::EhrStatus, "second", 1)
        }
        .commit()
    };
    assert_eq!(refused(store.commit(second(1))), StoreError::StatusExists);
    let versions = vec![
        Draft {
            ehr: OTHER,
            ..Draft::of(ObjectKind::EhrStatus, "one", 1)
        }
        .version(),
        Draft {
            ehr: OTHER,
            ..Draft::of(ObjectKind::EhrStatus, "two", 1)
        }
        .version(),
    ];
    assert_eq!(
        refused(store.commit(Commit {
            new_ehr: Some(ehr(OTHER, None)),
            ..commit(versions)
        })),
        StoreError::StatusExists
    );
    assert_eq!(
        (done(store.ehr(OTHER)), done(store.ehr(EHR))),
        (None, Some(ehr(EHR, None)))
    );
    // Flags are part of an EHR_STATUS only.
    let without = Commit {
        status: Some(flags),
        ..Draft::composition("a", 1).commit()
    };
    assert!(matches!(
        refused(store.commit(without)),
        StoreError::Failed(_)
    ));
    let party = Draft::of(ObjectKind::Party, "someone", 1).commit();
    assert!(
        matches!(refused(store.commit(party)), StoreError::Failed(_)),
        "a party in an EHR"
    );
    let stray = Draft {
        ehr: "",
        ..Draft::composition("a", 1)
    }
    .commit();
    assert!(
        matches!(refused(store.commit(stray)), StoreError::Failed(_)),
        "a composition in no EHR"
    );
}

pub fn the_object_of_a_time_is_the_newest_one_committed_until_then<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let folder = |object, number, minute| {
        let draft = Draft {
            minute,
            deletes: number == 2,
            ..Draft::of(ObjectKind::Folder, object, number)
        };
        done(store.commit(draft.commit()));
    };
    folder("early", 1, 10);
    folder("early", 2, 20);
    folder("late", 1, 30);
    let at = |minute| {
        let time = time(minute);
        done(store.newest_object(EHR, ObjectKind::Folder, Some(&time)))
    };
    assert_eq!(at(9), None);
    for minute in [10, 19, 20, 29] {
        assert_eq!(at(minute).as_deref(), Some("early"), "minute {minute}");
    }
    assert_eq!(at(30).as_deref(), Some("late"));
}

pub fn the_newest_object_is_found_behind_any_number<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, None)));
    let newest = || done(store.newest_object(EHR, ObjectKind::Folder, None));
    assert_eq!(newest(), None);
    let names: Vec<String> = (0..1_100).map(|i| format!("f{i}")).collect();
    let folder = |object, number| {
        Draft {
            deletes: number == 2,
            ..Draft::of(ObjectKind::Folder, object, number)
        }
        .commit()
    };
    let many = names
        .iter()
        .flat_map(|name| [folder(name, 1), folder(name, 2)])
        .collect();
    assert!(
        now_or_never(store.commit_all(many))
            .expect("ready")
            .iter()
            .all(Result::is_ok)
    );
    assert_eq!(newest().as_deref(), Some("f1099"));
    done(store.commit(folder("last", 1)));
    assert_eq!(newest().as_deref(), Some("last"));
    done(store.commit(folder("last", 2)));
    done(store.commit(Draft::of(ObjectKind::Folder, "f7", 3).commit()));
    assert_eq!(
        newest().as_deref(),
        Some("f7"),
        "a directory that is restored"
    );
    assert_eq!(
        done(store.newest_object(EHR, ObjectKind::EhrStatus, None)),
        Some(format!("status-{EHR}"))
    );
    assert_eq!(
        done(store.newest_object(OTHER, ObjectKind::EhrStatus, None)),
        None
    );
}
