//! Scans and lists of documents are read in pages of limited size. The sizes are known before a
//! text is read, so a few large documents are never in memory together.

use crate::sqlite::Sqlite;
use crate::store::{Draft, EHR, creation, done, under};
use aqlite::document::{Batch, ObjectKind};
use aqlite::store::repository::{
    BatchSink, Commit, ContributionDetail, ItemTag, MAX_PAGE_BYTES, Pause, Repository, TagList,
};
use aqlite::store::scan::{Progress, Scan};
use std::cell::Cell;

/// The length of each large document in characters.
const LARGE: usize = 700_000;
/// The length of the largest document, which needs three pages for one row.
const LARGEST: usize = 2_500_000;

fn of_ehr(whole_ehrs: bool) -> Scan {
    Scan {
        ehrs: Some(vec![EHR.to_owned()]),
        kinds: vec![ObjectKind::Composition],
        whole_ehrs,
        empty_ehrs: false,
        ..Scan::default()
    }
}

/// Stores eight documents of 700 kB, one of 2.5 MB, and ten small ones.
fn filled(store: &impl Repository) {
    done(store.commit(creation(EHR, None)));
    let (large, largest) = ("x".repeat(LARGE), "y".repeat(LARGEST));
    for number in 0..19 {
        let text = match number {
            0..8 => large.as_str(),
            8 => largest.as_str(),
            _ => "small",
        };
        let (object, uid) = (format!("o{number:02}"), format!("c{number:02}"));
        let draft = Draft {
            text,
            ..Draft::composition(&object, 1)
        };
        let commit = under(&uid, draft.commit());
        let reference = format!(
            r#""versions":[{{"_type":"OBJECT_REF","id":{{"_type":"OBJECT_VERSION_ID","value":"{}"}},"namespace":"local","type":"COMPOSITION"}}]"#,
            commit.versions[0].version_uid
        );
        let contribution = commit.contribution.replace(r#""versions":[]"#, &reference);
        done(store.commit(Commit {
            contribution,
            ..commit
        }));
    }
}

/// Counts the rows and the announced bytes of a scan.
#[derive(Default)]
struct Counting {
    batches: Vec<usize>,
    admitted: Vec<usize>,
    most: Option<usize>,
    pauses: Cell<usize>,
}

impl BatchSink for Counting {
    fn take(&mut self, batch: &Batch) -> Progress {
        let compositions = batch
            .docs()
            .filter(|doc| doc.row.kind == ObjectKind::Composition);
        self.batches.push(compositions.count());
        Progress::More
    }

    fn admit(&mut self, bytes: usize) -> bool {
        self.admitted.push(bytes);
        self.most.is_none_or(|most| bytes <= most)
    }

    fn pause(&self) -> Pause {
        self.pauses.set(self.pauses.get() + 1);
        Box::pin(std::future::ready(()))
    }
}

fn scanned(store: &impl Repository, scan: &Scan, most: Option<usize>) -> Counting {
    let mut sink = Counting {
        most,
        ..Counting::default()
    };
    done(store.scan(scan, &mut sink));
    sink
}

#[test]
fn pages_of_a_scan_end_after_bytes_and_pause() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    filled(&store);
    for scan in [
        of_ehr(false),
        Scan {
            ehrs: None,
            ..of_ehr(false)
        },
        Scan {
            ehrs: None,
            empty_ehrs: true,
            ..of_ehr(false)
        },
    ] {
        let sink = scanned(&store, &scan, None);
        assert_eq!(sink.batches.iter().sum::<usize>(), 19, "{scan:?}");
        let most = sink.batches.iter().take(4).max();
        assert!(most <= Some(&3), "documents of 700 kB by twos: {sink:?}");
        if scan.ehrs.is_none() {
            let alone = sink.batches.iter().filter(|batch| **batch == 1).count();
            assert!(alone >= 4, "documents of 700 kB one by one: {sink:?}");
        }
        assert!(sink.pauses.get() >= sink.batches.len(), "{sink:?}");
        // Four bytes of memory are admitted for each stored byte.
        let pages = sink.admitted.iter().filter(|bytes| **bytes > 0);
        assert!(pages.clone().count() >= 6 && pages.max() < Some(&(5 * LARGEST)));
    }
}

impl std::fmt::Debug for Counting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "batches {:?}, admitted {:?}, {} pauses",
            self.batches,
            self.admitted,
            self.pauses.get()
        )
    }
}

#[test]
fn documents_that_are_joined_are_one_batch_that_is_counted_while_it_grows() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    filled(&store);
    for ehrs in [Some(vec![EHR.to_owned()]), None] {
        let scan = Scan {
            ehrs,
            ..of_ehr(true)
        };
        let sink = scanned(&store, &scan, None);
        assert_eq!(sink.batches, [19], "{scan:?}");
        let admitted = &sink.admitted;
        assert!(admitted.len() > 4, "page by page: {admitted:?}");
        assert!(admitted.iter().max() > Some(&(8 * LARGE)), "{admitted:?}");
        let refused = scanned(&store, &scan, Some(5 * LARGE));
        assert!(refused.batches.is_empty(), "nothing is sent in part");
    }
}

#[test]
fn a_document_that_has_no_room_is_not_read() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    filled(&store);
    let whole = scanned(&store, &of_ehr(false), None);
    database.trips();
    let refused = scanned(&store, &of_ehr(false), Some(9_000_000));
    assert_eq!(refused.batches.iter().sum::<usize>(), 8, "{refused:?}");
    assert!(refused.admitted.last() > Some(&(4 * LARGEST)));
    assert!(
        database.trips() <= refused.admitted.len() + 1,
        "its rest is not asked for"
    );
    assert_eq!(whole.batches.iter().sum::<usize>(), 19);
}

#[test]
fn contributions_come_in_pages_and_alone_without_their_versions() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    filled(&store);
    let alone =
        done(store.contributions(Some(EHR), None, 100, ContributionDetail::WithoutVersions));
    assert_eq!(alone.items.len(), 20);
    assert!(!alone.more && alone.items.iter().all(|c| c.versions.is_empty()));
    let (mut after, mut pages) = (None, Vec::new());
    loop {
        let page = done(store.contributions(
            Some(EHR),
            after.as_deref(),
            100,
            ContributionDetail::WithVersions,
        ));
        let bytes: usize = page
            .items
            .iter()
            .flat_map(|c| &c.versions)
            .map(|version| version.packed.size())
            .sum();
        assert!(page.items.len() == 1 || bytes as u64 <= MAX_PAGE_BYTES);
        after = page.items.last().map(|c| c.uid.clone());
        pages.push(page.items.len());
        if !page.more {
            break;
        }
    }
    assert_eq!(pages.iter().sum::<usize>(), 20);
    assert!(pages.len() > 4, "{pages:?}");
    let few = done(store.contributions(Some(EHR), None, 3, ContributionDetail::WithoutVersions));
    assert!(few.more && few.items.len() == 3);
}

#[test]
fn histories_come_in_pages() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    done(store.commit(creation(EHR, None)));
    let text = "z".repeat(LARGE);
    for number in 1..=6 {
        let draft = Draft {
            text: &text,
            ..Draft::composition("a", number)
        };
        done(store.commit(under(&format!("c{number}"), draft.commit())));
    }
    let (mut after, mut numbers, mut pages) = (0, Vec::new(), 0);
    loop {
        let page = done(store.versions(EHR, "a", after));
        assert!(page.items.len() <= 2);
        numbers.extend(page.items.iter().map(|v| v.number));
        after = numbers.last().copied().unwrap_or_default();
        pages += 1;
        if !page.more {
            break;
        }
    }
    assert_eq!((numbers, pages), (vec![1, 2, 3, 4, 5, 6], 3));
    database.trips();
    let heads = done(store.version_metadata(EHR, "a"));
    assert_eq!((heads.len(), database.trips()), (6, 1));
}

#[test]
fn tags_are_read_in_pages_of_few_rows_and_bytes() {
    let database = Sqlite::in_memory();
    let store = database.repository();
    done(store.commit(creation(EHR, None)));
    let tags_of = |from: usize| {
        let (mut after, mut pages) = (Some(format!("t{from:02}")), Vec::<Vec<usize>>::new());
        loop {
            let page = done(store.tag_lists(EHR, after.as_deref()));
            pages.push(page.items.iter().map(|list| list.tags.len()).collect());
            after = page.items.into_iter().next_back().map(|list| list.target);
            if !page.more {
                return pages;
            }
        }
    };
    let put = |target: usize, count: usize, bytes: usize| {
        let tag = |at| ItemTag {
            key: format!("k{at}"),
            path: None,
            value: Some("v".repeat(bytes)),
        };
        let list = TagList::new(format!("t{target:02}"), (0..count).map(tag).collect());
        done(store.set_tags(EHR, list, None));
    };
    for (target, count) in [(10, 400), (11, 400), (12, 400), (13, 1_000), (14, 1)] {
        put(target, count, 1);
    }
    let by_rows = vec![vec![400, 400, 400], vec![1_000], vec![1]];
    assert_eq!(tags_of(0), by_rows);
    for target in 20..26 {
        put(target, 1, 100_000);
    }
    put(26, 1, 300_000);
    let by_bytes = vec![vec![1, 1], vec![1, 1], vec![1, 1], vec![1]];
    assert_eq!(tags_of(19), by_bytes);
}
