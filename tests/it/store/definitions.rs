//! Definitions, large bodies, deletion and reset.

use super::*;

pub fn definition(name: &str, version: &str) -> Definition {
    Definition {
        name: name.into(),
        version: version.into(),
        format: "opt14".into(),
        created: time(0),
        storing_id: String::new(),
        summary: r#"{"concept":"x"}"#.into(),
        bytes: 0,
        body: format!("body of {name}"),
    }
}

/// Checks that lists and reads return the length of a definition, about.
pub fn lists_tell_the_length_of_definitions<R: Repository>(store: &R) {
    let kind = DefinitionKind::Query;
    let long = Definition {
        body: "é".repeat(1_000_000),
        ..definition("long", "1.0.0")
    };
    done(store.define(kind, long));
    let listed = done(store.definitions(kind, "long"));
    let versions = done(store.definition_versions(kind, "long"));
    let read = done(store.definition(kind, "long", "1.0.0"));
    for found in listed.into_iter().chain(versions).chain(read) {
        assert!(
            (2_000_000..4_000_000).contains(&found.bytes),
            "{}",
            found.bytes
        );
    }
    done(store.undefine(kind, "long", "1.0.0"));
}

/// Returns a definition as stored, without the fields that the repository sets.
pub fn definition_in<R: Repository>(
    store: &R,
    kind: DefinitionKind,
    name: &str,
    version: &str,
) -> Option<Definition> {
    let found = done(store.definition(kind, name, version))?;
    assert_ne!(found.storing_id, "");
    Some(Definition {
        storing_id: String::new(),
        bytes: 0,
        ..found
    })
}

pub fn a_definition_that_is_stored_anew_is_another_one<R: Repository>(store: &R) {
    let kind = DefinitionKind::Template;
    let ids = |store: &R| {
        let listed = done(store.definitions(kind, "x"))
            .pop()
            .expect("listed")
            .storing_id;
        assert_eq!(
            done(store.preconditions(EHR, "x"))
                .1
                .pop()
                .expect("listed")
                .storing_id,
            listed
        );
        assert_eq!(
            done(store.definition(kind, "x", "1.0.0"))
                .expect("stored")
                .storing_id,
            listed
        );
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

pub fn definitions_are_immutable<R: Repository>(store: &R) {
    let kind = DefinitionKind::Query;
    for (name, version) in [
        ("org::a", "1.10.0"),
        ("org::a", "1.9.0"),
        ("org::b", "1.0.0"),
        ("Org::c", "1.0.0"),
    ] {
        done(store.define(kind, definition(name, version)));
    }
    done(store.define(DefinitionKind::Guide, definition("org::a", "1.9.0")));
    let changed = Definition {
        body: "changed".into(),
        ..definition("org::a", "1.9.0")
    };
    assert_eq!(
        refused(store.define(kind, changed)),
        StoreError::DefinitionExists
    );
    assert_eq!(
        definition_in(store, kind, "org::a", "1.9.0"),
        Some(definition("org::a", "1.9.0"))
    );
    let names = |found: Vec<Definition>| {
        let name = |d: Definition| format!("{}/{}{}", d.name, d.version, d.body);
        found.into_iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(
        names(done(store.definitions(kind, "org::"))),
        ["org::a/1.9.0", "org::a/1.10.0", "org::b/1.0.0"]
    );
    assert_eq!(
        names(done(store.definition_versions(kind, "org::a"))),
        ["org::a/1.9.0", "org::a/1.10.0"]
    );
    assert_eq!(
        names(done(store.definition_versions(kind, "org::"))),
        [""; 0]
    );
    let bytes = "body of org::a".len();
    let ids = [
        ("org::b", "1.0.0"),
        ("org::a", "1.10.0"),
        ("org::a", "1.9.0"),
        ("org::a", "9.9.9"),
    ];
    for (longest, ends) in [
        (bytes, ["body of org::a", "body of org::b"]),
        (bytes - 1, ["bod"; 2]),
    ] {
        assert_eq!(
            names(done(store.definition_bodies(kind, &ids, longest))),
            [
                format!("org::a/1.9.0{}", ends[0]),
                format!("org::a/1.10.0{}", ends[0]),
                format!("org::b/1.0.0{}", ends[1])
            ],
            "{longest}"
        );
    }
    let guides = done(store.definitions(DefinitionKind::Guide, ""));
    assert_eq!(
        guides
            .iter()
            .map(|guide| guide.body.as_str())
            .collect::<Vec<_>>(),
        [""],
        "only lists of queries carry bodies"
    );
    assert_eq!(done(store.definitions(kind, "")).len(), 4);
    assert_eq!(done(store.definitions(kind, "%")).len(), 0);
    assert!(done(store.undefine(kind, "org::a", "1.9.0")));
    assert!(!done(store.undefine(kind, "org::a", "1.9.0")));
    assert_eq!(done(store.definition(kind, "org::a", "1.9.0")), None);
    assert!(done(store.definition(DefinitionKind::Guide, "org::a", "1.9.0")).is_some());
}

pub fn a_referenced_template_cannot_be_deleted<R: Repository>(store: &R) {
    done(store.define(DefinitionKind::Template, definition("used", "1.0.0")));
    done(store.commit(creation(EHR, None)));
    let commit = Draft::composition("a", 1).commit();
    let versions = commit
        .versions
        .into_iter()
        .map(|v| Version {
            template_id: Some("used".into()),
            ..v
        })
        .collect();
    done(store.commit(Commit {
        versions,
        ..Draft::composition("a", 1).commit()
    }));
    assert_eq!(
        refused(store.undefine(DefinitionKind::Template, "used", "1.0.0")),
        StoreError::TemplateInUse
    );
    assert_eq!(
        definition_in(store, DefinitionKind::Template, "used", "1.0.0"),
        Some(definition("used", "1.0.0"))
    );
    assert!(done(store.delete_ehr(EHR)));
    assert!(done(store.undefine(
        DefinitionKind::Template,
        "used",
        "1.0.0"
    )));
}

pub fn large_bodies_are_returned_byte_for_byte<R: Repository>(store: &R) {
    let body = "éab\n\u{1F600}<x a=\"1\">".repeat(100_000);
    assert!(body.len() > 1_500_000);
    let template = Definition {
        body: body.repeat(3),
        ..definition("large", "1.0.0")
    };
    done(store.define(DefinitionKind::Template, template.clone()));
    assert!(definition_in(store, DefinitionKind::Template, "large", "1.0.0") == Some(template));
    assert_eq!(
        done(store.definitions(DefinitionKind::Template, "l"))
            .first()
            .map(|d| d.body.len()),
        Some(0)
    );
    done(store.commit(creation(EHR, None)));
    let text = "é\u{1F600}x".repeat(400_000);
    done(
        store.commit(
            Draft {
                text: &text,
                ..Draft::composition("a", 1)
            }
            .commit(),
        ),
    );
    let stored = done(store.version(EHR, "a", VersionSelector::Latest)).expect("stored");
    assert!(
        stored.packed.to_json()
            == Draft {
                text: &text,
                ..Draft::composition("a", 1)
            }
            .version()
            .packed
            .to_json()
    );
    assert_eq!(
        found(
            store,
            &Scan {
                kinds: vec![ObjectKind::Composition],
                ..Scan::default()
            }
        ),
        ["a::1"]
    );
    done(store.undefine(DefinitionKind::Template, "large", "1.0.0"));
    done(store.define(DefinitionKind::Template, definition("large", "1.0.0")));
    assert_eq!(
        definition_in(store, DefinitionKind::Template, "large", "1.0.0"),
        Some(definition("large", "1.0.0"))
    );
}

pub fn a_deleted_ehr_leaves_no_rows<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, Some("p1"))));
    done(store.commit(creation(OTHER, Some("p2"))));
    done(store.commit(Draft::composition("a", 1).commit()));
    done(
        store.commit(
            Draft {
                ehr: OTHER,
                ..Draft::composition("b", 1)
            }
            .commit(),
        ),
    );
    assert!(done(store.delete_ehr(EHR)));
    assert!(!done(store.delete_ehr(EHR)));
    assert_eq!(done(store.ehr(EHR)), None);
    assert_eq!(done(store.ehr_by_subject("p1", "hospital")), None);
    assert!(done(store.versions(EHR, "a", 0)).items.is_empty());
    assert_eq!(done(store.contribution(EHR, "c-a-1")), None);
    assert_eq!(
        found(store, &Scan::default()),
        [format!("status-{OTHER}::1"), "b::1".into()]
    );
    done(store.commit(creation(EHR, Some("p1"))));
    done(store.commit(Draft::composition("a", 1).commit()));
}

pub fn reset_removes_everything<R: Repository>(store: &R) {
    done(store.commit(creation(EHR, Some("p1"))));
    done(store.define(DefinitionKind::Query, definition("q", "1.0.0")));
    let revision = done(store.revision());
    done(store.reset());
    assert!(done(store.revision()) > revision);
    assert_eq!(done(store.ehr(EHR)), None);
    assert!(done(store.definitions(DefinitionKind::Query, "")).is_empty());
    assert!(found(store, &Scan::default()).is_empty());
    done(store.commit(creation(EHR, Some("p1"))));
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
