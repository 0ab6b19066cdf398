//! Packed documents from a damaged store: a layout on the first line, leaf values on the second.
//! They are refused or unpacked.
#![no_main]

use aqlite::document::{Batch, DocRow, EhrRow, LayoutStore, ObjectKind, Packed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Some((layout, slots)) = text.split_once('\n') else {
        return;
    };
    let Ok(layout) = LayoutStore::new().read(layout) else {
        return;
    };
    let Ok(packed) = Packed::from_text(slots, &|_| Some(layout.clone()), &["known"]) else {
        return;
    };
    let text = packed
        .to_text(&|_| Some(0), &["known"])
        .expect("every layout has an id");
    let again = Packed::from_text(&text, &|_| Some(layout.clone()), &["known"])
        .expect("what was written reads");
    assert_eq!(again.to_json(), packed.to_json());
    let _ = packed.unpack();
    let mut batch = Batch::new();
    let ehr = batch.add_ehr(EhrRow {
        ehr_id: "e".into(),
        system_id: "s".into(),
        time_created: "2026-01-01T00:00:00Z".into(),
        is_queryable: true,
    });
    let row = DocRow {
        kind: ObjectKind::Composition,
        object_id: "o".into(),
        number: 1,
        ordinal: 1,
        latest: true,
        deleted: false,
    };
    batch.add(ehr, row, &packed);
    let mut json = String::new();
    if let Some(doc) = batch.doc(0) {
        batch.write_json(doc.version, 0, &mut json);
    }
});
