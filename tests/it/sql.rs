//! The guarantees of the SQL repository beyond the suite of `store.rs`: isolation between writers,
//! round trips, rows written, pruning, one moment for a whole scan, and no patient's text in shared
//! rows.

use crate::sqlite::Sqlite;
use crate::store::definitions::definition;
use crate::store::{
    Draft, EHR, OTHER, PRESSURE, PULSE, commit, creation, done, found, refused, under,
};
use aqlite::document::{Batch, ObjectKind};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{
    Commit, Definition, DefinitionKind, EhrFlags, Repository, StoreError, Version, VersionSelector,
};
use aqlite::store::scan::{ArchetypeGroup, Scan};
use std::collections::{BTreeSet, HashMap};

const CUFF: &str = "openEHR-EHR-OBSERVATION.blood_pressure-cuff.v2";

fn compositions() -> Scan {
    Scan {
        kinds: vec![ObjectKind::Composition],
        whole_ehrs: false,
        empty_ehrs: false,
        ..Scan::default()
    }
}

fn holding(archetype: &str) -> Vec<ArchetypeGroup> {
    vec![ArchetypeGroup(vec![archetype.to_owned()])]
}

#[test]
fn two_writers_share_one_truth() {
    let database = Sqlite::in_memory();
    let (one, two) = (database.repository(), database.repository());
    done(one.commit(creation(EHR, None)));
    done(two.commit(Draft::composition("a", 1).commit()));
    let second = |uid: &str, text| {
        under(
            uid,
            Draft {
                text,
                ..Draft::composition("a", 2)
            }
            .commit(),
        )
    };
    done(one.commit(second("first", "of one")));
    assert_eq!(
        refused(two.commit(second("second", "of two"))),
        StoreError::Stale {
            version_uid: "a::test.example::2".into(),
            latest: "a::test.example::2".into()
        }
    );
    done(
        two.commit(
            Draft {
                archetype: PULSE,
                ..Draft::composition("b", 1)
            }
            .commit(),
        ),
    );
    for reader in [one, two, database.repository()] {
        assert!(
            done(reader.version(EHR, "a", VersionSelector::Latest))
                .expect("latest")
                .packed
                .to_json()
                .contains("of one")
        );
        assert_eq!(
            found(
                &reader,
                &Scan {
                    ehrs: Some(vec![EHR.into()]),
                    ..compositions()
                }
            ),
            ["a::2", "b::1"]
        );
        assert_eq!(found(&reader, &compositions()), ["a::2", "b::1"]);
    }
}

#[test]
fn a_warm_repository_needs_one_round_trip() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    done(store.commit(creation(EHR, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    let scan = Scan {
        ehrs: Some(vec![EHR.into()]),
        archetypes: holding(PRESSURE),
        ..compositions()
    };
    assert_eq!(found(&store, &scan), ["a::1"]);
    database.trips();
    assert_eq!(found(&store, &scan), ["a::1"]);
    assert_eq!(database.trips(), 1, "query of one EHR");
    done(store.commit(Draft::composition("a", 2).commit()));
    assert_eq!(database.trips(), 1, "commit of known shapes");
    done(store.version(EHR, "a", VersionSelector::Latest));
    assert_eq!(database.trips(), 1, "reading a version");
}

/// Returns the number of rows in all tables, each with its index entries. Partial indexes contain
/// no compositions.
fn entries(database: &Sqlite) -> i64 {
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table'";
    let count = |sql: &str| {
        database
            .texts(sql)
            .first()
            .and_then(|n| n.parse::<i64>().ok())
            .expect("count")
    };
    let of_table = |table: &String| {
        let with_rowid = count(&format!(
            "SELECT NOT wr FROM pragma_table_list('{table}') WHERE schema = 'main'"
        ));
        let indexes = count(&format!(
            "SELECT count(*) FROM pragma_index_list('{table}') WHERE NOT partial"
        ));
        count(&format!("SELECT count(*) FROM {table}")) * (with_rowid + indexes)
    };
    database.texts(tables).iter().map(of_table).sum()
}

#[test]
fn a_commit_writes_few_rows() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    done(store.commit(creation(EHR, None)));
    done(store.commit(Draft::composition("a", 1).commit()));
    let before = entries(&database);
    done(store.commit(Draft::composition("b", 1).commit()));
    let revision = 1;
    assert_eq!(entries(&database) - before + revision, 7);
    let before = entries(&database);
    done(store.commit(Draft::composition("b", 2).commit()));
    let superseded = 1;
    assert_eq!(entries(&database) - before + revision + superseded, 8);
}

/// Stores compositions of several archetypes in 20 EHRs, with later versions and deletions. Returns
/// the archetype of each version.
fn fill(stores: &[&dyn Fn(Commit)]) -> HashMap<String, &'static str> {
    let mut archetypes = HashMap::new();
    let write = |commit: Commit| stores.iter().for_each(|store| store(commit.clone()));
    let ehrs: Vec<String> = (0..20)
        .map(|i| format!("{i:08}-0000-4000-8000-000000000000"))
        .collect();
    ehrs.iter().for_each(|ehr| write(creation(ehr, None)));
    for i in 0_usize..400 {
        let (object, ehr) = (format!("object-{i}"), ehrs.get(i * 7 % 20).expect("an EHR"));
        for number in 1..=(i as u32 % 4).max(1) {
            let archetype = if i % 50 == 0 {
                CUFF
            } else if (i + number as usize).is_multiple_of(3) {
                PULSE
            } else {
                PRESSURE
            };
            let deletes = number == 3 && i % 8 == 3;
            write(
                Draft {
                    ehr,
                    archetype,
                    deletes,
                    ..Draft::composition(&object, number)
                }
                .commit(),
            );
            archetypes.insert(
                format!("{object}::{number}"),
                if deletes { "" } else { archetype },
            );
        }
    }
    archetypes
}

#[test]
fn pruning_excludes_only_documents_that_cannot_match() {
    let database = Sqlite::in_memory();
    let (store, memory) = (database.repository(), Memory::new());
    let archetypes = fill(&[&|commit| done(store.commit(commit)), &|commit| {
        done(memory.commit(commit))
    }]);
    let reader = database.repository();
    let named = |numbers: &[u32]| {
        numbers
            .iter()
            .map(|n| format!("{n:08}-0000-4000-8000-000000000000"))
            .collect::<Vec<String>>()
    };
    let cases = (0..12).map(|case| {
        (
            case & 1 != 0,
            case & 2 != 0,
            [None, Some(named(&[7])), Some(named(&[12, 99, 3, 7]))][case >> 2].clone(),
        )
    });
    for (all_versions, whole_ehrs, ehrs) in cases {
        let by_ehr = whole_ehrs || ehrs.as_ref().is_some_and(|ehrs| ehrs.len() > 1);
        let whole = Scan {
            all_versions,
            whole_ehrs,
            ehrs,
            ..compositions()
        };
        let everything = found(&reader, &whole);
        let expected = found(&memory, &whole);
        match by_ehr {
            false => assert_eq!(everything, expected),
            true => assert_eq!(
                everything.iter().collect::<BTreeSet<_>>(),
                expected.iter().collect::<BTreeSet<_>>()
            ),
        }
        assert_eq!(everything.len(), expected.len());
        for (asked, fitting) in [
            (PULSE, vec![PULSE]),
            (CUFF, vec![CUFF]),
            (PRESSURE, vec![PRESSURE, CUFF]),
        ] {
            let pruned = found(
                &reader,
                &Scan {
                    archetypes: holding(asked),
                    ..whole.clone()
                },
            );
            let fits = |doc: &&String| archetypes.get(*doc).is_some_and(|a| fitting.contains(a));
            assert!(
                everything.iter().filter(fits).eq(&pruned),
                "{asked} {whole:?}"
            );
        }
    }
    let unknown = Scan {
        archetypes: holding("openEHR-EHR-OBSERVATION.unknown.v1"),
        ..compositions()
    };
    assert!(found(&reader, &unknown).is_empty());
}

#[test]
fn a_scan_sees_one_moment() {
    for whole_ehrs in [false, true] {
        let database = Sqlite::in_memory();
        let store = database.repository();
        fill(&[&|commit| done(store.commit(commit))]);
        let scan = Scan {
            whole_ehrs,
            ..compositions()
        };
        let before = found(&store, &scan);
        let (mut during, mut batches) = (Vec::new(), 0);
        done(store.scan(&scan, &mut |batch: &Batch| {
            batches += 1;
            for doc in batch.docs() {
                assert!(doc.row.latest);
                during.push(format!(
                    "{}::{}",
                    batch.object_id(doc.document),
                    doc.row.number
                ));
            }
            if batches == 1 {
                for i in [396, 392] {
                    let ehr = format!("{:08}-0000-4000-8000-000000000000", i * 7 % 20);
                    done(
                        store.commit(
                            Draft {
                                ehr: &ehr,
                                ..Draft::composition(&format!("object-{i}"), 2)
                            }
                            .commit(),
                        ),
                    );
                }
                done(store.commit(creation(OTHER, None)));
                done(
                    store.commit(
                        Draft {
                            ehr: OTHER,
                            ..Draft::composition("new", 1)
                        }
                        .commit(),
                    ),
                );
            }
            true
        }));
        assert!(batches > 1);
        assert_eq!(during, before);
        assert_eq!(found(&store, &scan).len(), before.len() + 1);
    }
}

/// A deterministic sequence of numbers.
#[derive(Clone)]
pub struct Dice(u64);

/// The EHRs of random commits.
pub const EHRS: [&str; 3] = [EHR, OTHER, "33333333-3333-4333-8333-333333333333"];

impl Dice {
    pub fn of(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn roll(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Returns a commit that is valid in about half of the cases.
    pub fn commit(&mut self, serial: usize) -> Commit {
        let ehr = EHRS[self.roll(3) as usize];
        let subject = ["p1", "p2", "p3"].get(self.roll(4) as usize).copied();
        if self.roll(6) == 0 {
            return creation(ehr, subject);
        }
        let uid = if self.roll(12) == 0 {
            "c-o1-1".to_owned()
        } else {
            format!("c-{serial}")
        };
        let mut versions: Vec<Version> =
            (0..=self.roll(10) / 8).map(|_| self.version(ehr)).collect();
        let status = (self.roll(6) == 0).then(|| EhrFlags {
            subject: subject.map(|s| (s.to_owned(), "hospital".to_owned())),
            is_queryable: self.roll(2) == 0,
            is_modifiable: self.roll(3) > 0,
        });
        if status.is_some() {
            let object = format!("status-{ehr}");
            let version = Draft {
                ehr,
                ..Draft::of(ObjectKind::EhrStatus, &object, 1 + self.roll(6) as u32)
            }
            .version();
            versions = if self.roll(4) == 0 {
                [vec![version], versions].concat()
            } else {
                vec![version]
            };
        }
        under(
            &uid,
            Commit {
                status,
                ..commit(versions)
            },
        )
    }

    fn version(&mut self, ehr: &str) -> Version {
        let kinds = [
            ObjectKind::Composition,
            ObjectKind::Composition,
            ObjectKind::Composition,
            ObjectKind::Folder,
            ObjectKind::Folder,
        ];
        let place = self.roll(5) as usize;
        let kind = kinds[if self.roll(8) == 0 {
            self.roll(5) as usize
        } else {
            place
        }];
        let number = 1 + self.roll(5) as u32;
        let draft = Draft {
            ehr,
            deletes: number > 1 && self.roll(3) == 0,
            ..Draft::of(kind, ["o1", "o2", "o3", "f1", "f2"][place], number)
        };
        let template = if self.roll(8) == 0 {
            [None, Some("other")][self.roll(2) as usize]
        } else {
            draft.template
        };
        Draft {
            template: template.filter(|_| kind == ObjectKind::Composition),
            ..draft
        }
        .version()
    }
}

#[test]
fn memory_and_database_agree_on_everything() {
    let (store, memory, mut dice) = (Sqlite::in_memory().repository(), Memory::new(), Dice(7));
    let (mut done_well, mut reasons) = (0, BTreeSet::new());
    for serial in 0..3000 {
        let commit = dice.commit(serial);
        let (ehr, objects) = (
            commit.ehr_id.clone(),
            commit
                .versions
                .iter()
                .map(|v| v.object_id.clone())
                .collect::<BTreeSet<_>>(),
        );
        let outcome = now_or_never(memory.commit(commit.clone())).expect("ready");
        assert_eq!(
            now_or_never(store.commit(commit.clone())).expect("ready"),
            outcome,
            "commit {serial}"
        );
        match outcome {
            Ok(()) => done_well += 1,
            Err(reason) => {
                reasons.insert(format!("{reason:?}").chars().take(9).collect::<String>());
            }
        }
        let uids = |versions: Vec<Version>| {
            versions
                .iter()
                .map(|v| (v.version_uid.clone(), v.contribution.clone()))
                .collect::<Vec<_>>()
        };
        for object in objects {
            assert_eq!(
                uids(done(store.versions(&ehr, &object, 0)).items),
                uids(done(memory.versions(&ehr, &object, 0)).items)
            );
        }
        assert_eq!(done(store.ehr(&ehr)), done(memory.ehr(&ehr)));
        for kind in [
            ObjectKind::Composition,
            ObjectKind::EhrStatus,
            ObjectKind::Folder,
        ] {
            assert_eq!(
                done(store.newest_object(&ehr, kind, None)),
                done(memory.newest_object(&ehr, kind, None))
            );
        }
        if dice.roll(40) == 0 {
            assert_eq!(done(store.delete_ehr(&ehr)), done(memory.delete_ehr(&ehr)));
        }
        if serial % 50 == 0 {
            let scan = Scan {
                all_versions: dice.roll(2) == 0,
                ..compositions()
            };
            assert_eq!(found(&store, &scan), found(&memory, &scan));
        }
    }
    assert!(
        done_well > 200 && reasons.len() == 9,
        "{done_well} {reasons:?}"
    );
}

#[test]
fn population_queries_use_the_index_of_profiles() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    fill(&[&|commit| done(store.commit(commit))]);
    found(
        &store,
        &Scan {
            archetypes: holding(CUFF),
            ..compositions()
        },
    );
    let plan = database.last_plan();
    assert!(
        plan.contains("USING INDEX version_by_profile (profile=? AND rowid>? AND rowid<?)"),
        "{plan}"
    );
    found(
        &store,
        &Scan {
            ehrs: Some(vec![EHR.into()]),
            ..compositions()
        },
    );
    let plan = database.last_plan();
    assert!(plan.contains("USING INDEX version_by_ehr (ehr=?"), "{plan}");
}

#[test]
fn lists_of_definitions_read_an_index_and_no_body() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    let kind = DefinitionKind::Query;
    done(store.define(kind, definition("org::q", "1.0.0")));
    let is_covered = |what: &str| {
        let plan = database.last_plan();
        let steps: Vec<&str> = plan.lines().collect();
        assert!(
            steps
                .first()
                .is_some_and(|step| step.contains("USING COVERING INDEX definition_list (kind=?")),
            "{what}: {plan}"
        );
    };
    done(store.definitions(kind, "org"));
    is_covered("list");
    done(store.definition_versions(kind, "org::q"));
    is_covered("versions");
}

#[test]
fn bytes_of_a_definition_are_those_of_its_whole_body() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    let kind = DefinitionKind::Template;
    let body = "é".repeat(1_000_000);
    for name in ["known", "counted"] {
        let definition = Definition {
            body: body.clone(),
            ..definition(name, "1.0.0")
        };
        done(store.define(kind, definition));
    }
    // An earlier release, which may still run while the database is upgraded, leaves the bytes out.
    database.behind("UPDATE definition SET bytes = NULL WHERE name = 'counted'");
    let listed = done(store.definitions(kind, ""));
    let bytes: Vec<usize> = listed.iter().map(|definition| definition.bytes).collect();
    assert_eq!(bytes, [2_000_000, 2_000_000]);
    let ids = [("known", "1.0.0"), ("counted", "1.0.0")];
    for cut in done(store.definition_bodies(kind, &ids, 1_999_999)) {
        assert_eq!(cut.bytes, 2_000_000, "{}", cut.name);
        assert!(cut.body == "é".repeat(499_999), "{}", cut.name);
    }
    let listed = done(store.definition_bodies(kind, &ids, 2_000_000));
    assert_eq!(listed.len(), 2);
    for listed in listed {
        assert!(listed.body == body, "list of {}", listed.name);
        let read = done(store.definition(kind, &listed.name, "1.0.0")).expect("stored");
        assert!(read.body == body, "{}", listed.name);
    }
}

#[test]
fn no_text_of_a_patient_is_shared_and_none_survives_deletion() {
    let folder = std::env::temp_dir().join(format!("aqlite-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("folder");
    let file = folder.join("patient.sqlite");
    let _ = std::fs::remove_file(&file);
    let database = Sqlite::in_file(&file);
    let store = database.repository();
    let secret = "Zebulon Quarrington";
    let long = format!("{secret} ").repeat(100_000);
    done(store.commit(creation(EHR, Some(secret))));
    done(
        store.commit(
            Draft {
                text: secret,
                ..Draft::composition("a", 1)
            }
            .commit(),
        ),
    );
    done(
        store.commit(
            Draft {
                text: &long,
                ..Draft::composition("b", 1)
            }
            .commit(),
        ),
    );
    done(
        store.commit(
            Draft {
                text: secret,
                ..Draft::of(ObjectKind::Folder, "f", 1)
            }
            .commit(),
        ),
    );
    let shared = "SELECT skeleton FROM shape UNION ALL SELECT archetypes FROM profile UNION ALL SELECT body FROM chunk WHERE owner LIKE 's/%'";
    assert!(
        database
            .texts(shared)
            .iter()
            .all(|text| !text.contains("Zebulon"))
    );
    let holds = || {
        std::fs::read(&file)
            .expect("file")
            .windows(7)
            .any(|w| w == b"Zebulon")
    };
    assert!(holds());
    assert!(done(store.delete_ehr(EHR)));
    assert!(!holds());
    std::fs::remove_dir_all(&folder).expect("cleaned");
}
