//! Tests of pseudonyms.

use super::*;

fn key(folder: &tempfile::TempDir, text: &str) -> Result<Pseudonyms, Failure> {
    let path = folder.path().join("key");
    std::fs::write(&path, text).unwrap();
    Pseudonyms::read(&path)
}

fn ids_of(ehrs: &[&str], subjects: &[&str]) -> PatientIds {
    let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    PatientIds {
        ehrs: set(ehrs),
        subjects: set(subjects),
        has_derived: true,
    }
}

fn of_data<'k>(key: &'k Pseudonyms, ehrs: &[&str], subjects: &[&str]) -> Identifiers<'k> {
    Identifiers::new(key, &ids_of(ehrs, subjects), Issued::default())
}

fn subject_of(key: &Pseudonyms, id: &str) -> String {
    key.of(PatientKind::Subject, id).hyphenated().to_string()
}

fn text_of(cell: Cell<Cow<'_, str>>) -> String {
    match cell {
        Cell::Text(text) | Cell::Json(text) => text.into_owned(),
        other => panic!("{other:?}"),
    }
}

const EHR: &str = "7d44b88c-4199-4bad-97dc-d78268e01398";
const OTHER: &str = "aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa";

#[test]
fn ids_of_all_patients_are_replaced_in_texts_and_objects_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
    let ids = of_data(&pseudonyms, &[EHR, OTHER, "pat-9"], &["17", "x7"]);
    let replaced = ids.replaced();
    let of = |id: &str| pseudonyms.of_ehr(id);
    let subject = |id: &str| subject_of(&pseudonyms, id);
    let text = |text: &str| text_of(replaced.cell(Cell::Text(text)));
    for id in [EHR, OTHER] {
        assert_eq!(text(id), of(id));
        assert_eq!(text(&id.replace('-', "")), of(id));
        let upper = id.to_uppercase();
        assert_eq!(text(&format!("see {upper}.")), format!("see {}.", of(id)));
        assert_eq!(
            text(&format!("ehr://{id}/x")),
            format!("ehr://{}/x", of(id))
        );
    }
    assert_eq!(
        text("ehr://s/pat-9/x"),
        format!("ehr://s/{}/x", of("pat-9"))
    );
    assert_eq!(text("pat-9"), of("pat-9"));
    assert_eq!(text("no pat-9"), "no pat-9");
    assert_eq!((text("17"), text("x7")), (subject("17"), subject("x7")));
    assert_eq!(text("117 mm, x7"), "117 mm, x7");
    let json = format!(r#"{{"id":"17","count":17,"uri":"ehr://{OTHER}"}}"#);
    let expected = format!(
        r#"{{"id":"{}","count":17,"uri":"ehr://{}"}}"#,
        subject("17"),
        of(OTHER)
    );
    assert_eq!(text_of(replaced.cell(Cell::Json(&json))), expected);
}

#[test]
fn uuid_is_recognized_in_any_case() {
    let folder = tempfile::tempdir().unwrap();
    let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
    let of_ehr = pseudonyms.of_ehr(EHR);
    let upper = EHR.to_uppercase();
    let ids = of_data(&pseudonyms, &[EHR], &["Ab"]);
    let cell = |cell| text_of(ids.replaced().cell(cell));
    assert_eq!(cell(Cell::Text(&upper)), of_ehr);
    let text = format!("é{upper}ü{EHR}{upper}");
    assert_eq!(
        cell(Cell::Text(&text)),
        format!("é{of_ehr}ü{of_ehr}{of_ehr}")
    );
    let json = format!(r#"["{upper}","ehr://{upper}"]"#);
    let expected = format!(r#"["{of_ehr}","ehr://{of_ehr}"]"#);
    assert_eq!(cell(Cell::Json(&json)), expected);
    assert_eq!(cell(Cell::Text("AB")), "AB", "other ids have a case");
}

#[test]
fn names_of_members_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
    let ids = of_data(&pseudonyms, &["data"], &["va\"lue"]);
    let of_ehr = pseudonyms.of_ehr("data");
    let of_subject = subject_of(&pseudonyms, "va\"lue");
    let json = r#"{"data" : {"va\"lue":"data","x":["data\\","va\"lue",": ","data"]}}"#;
    let expected = format!(
        r#"{{"data" : {{"va\"lue":"{of_ehr}","x":["data\\","{of_subject}",": ","{of_ehr}"]}}}}"#
    );
    assert_eq!(text_of(ids.replaced().cell(Cell::Json(json))), expected);
}

#[test]
fn derived_id_of_an_object_depends_on_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
    let ids = of_data(&pseudonyms, &[EHR], &[]);
    let derived = "11111111-2222-8333-8444-555555555555";
    let uid = format!("{derived}::{SYSTEM}::1");
    let replaced = ids.replaced_in(&uid);
    let shown = replaced.object_id(derived);
    assert_ne!(shown, derived);
    let cell = text_of(replaced.cell(Cell::Text(&uid)));
    assert_eq!(cell, format!("{shown}::{SYSTEM}::1"));
    for stated in [format!("{derived}::s::1"), format!("{OTHER}::{SYSTEM}::1")] {
        assert!(ids.replaced_in(&stated).object.is_none(), "{stated}");
    }
}

#[test]
fn ids_are_found_as_words_of_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
    let ids = of_data(&pseudonyms, &[EHR, "pat-1"], &["P 1", "7"]);
    let upper = EHR.to_uppercase();
    for (text, found) in [
        (EHR, true),
        (&format!("ehr://{upper}/y"), true),
        (&format!("x{}y", EHR.replace('-', "")), true),
        ("Pat-1*", true),
        ("-- rows of p 1, which", true),
        ("7", true),
        ("*7*", true),
        ("Lesion #7", false),
        ("pat-10", false),
        ("xpat-1", false),
        ("pat", false),
    ] {
        assert_eq!(ids.named_in(text).is_some(), found, "{text}");
    }
}

#[test]
fn ids_of_removed_patients_keep_their_pseudonyms() {
    let folder = tempfile::tempdir().unwrap();
    let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
    let upper = OTHER.to_uppercase();
    let before = of_data(&pseudonyms, &[EHR, &upper, "pat-9"], &["17", "P 1"]);
    assert!(before.has_new());
    let texts = [
        EHR.to_owned(),
        format!("see {} and {OTHER}", EHR.replace('-', "")),
        upper.clone(),
        String::from("ehr://s/pat-9/x"),
        String::from("17"),
    ];
    let cells = |ids: &Identifiers<'_>| -> Vec<String> {
        let cell = |text: &String| text_of(ids.replaced().cell(Cell::Text(text)));
        texts.iter().map(cell).collect()
    };
    let expected = cells(&before);
    assert!(expected.iter().zip(&texts).all(|(one, other)| one != other));
    let data = ids_of(&["new"], &["17"]);
    let after = Identifiers::new(&pseudonyms, &data, before.issued().clone());
    assert_eq!(cells(&after), expected);
    assert_eq!(cells(&after), expected, "texts that are no ids are kept");
    let other = text_of(after.replaced().cell(Cell::Text("117")));
    assert_eq!(other, "117");
    for (text, found) in [("-- of P 1", true), (OTHER, true), ("P 2", false)] {
        assert_eq!(after.named_in(text).is_some(), found, "{text}");
    }
    let read = Issued::read(&after.issued().bytes());
    assert_eq!(read.as_ref(), Some(after.issued()));
    let again = Identifiers::new(&pseudonyms, &data, read.unwrap());
    assert!(!again.has_new());
}

#[test]
fn ids_that_became_known_since_a_sync_are_the_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let pseudonyms = key(&folder, &"0123456789abcdef".repeat(4)).unwrap();
    let first = of_data(&pseudonyms, &["a", "c"], &["s"]);
    let count = first.issued().len();
    assert_eq!((count, first.since(0).ids.len()), (3, 3));
    assert!(first.since(count).is_empty());
    let data = ids_of(&["b", "c"], &["s"]);
    let next = Identifiers::new(&pseudonyms, &data, first.issued().clone());
    let new = next.since(count);
    assert_eq!((new.ids.as_slice(), new.has_unknown), (&["b"][..], false));
    assert!(new.any(|id| id == "b") && !new.any(|id| id == "c"));
    // The id `b` is removed before another view is synchronized.
    let last = ids_of(&["c"], &["s"]);
    let last = Identifiers::new(&pseudonyms, &last, next.issued().clone());
    assert!(!last.has_new() && last.since(count).any(|_| false));
}

#[test]
fn pseudonym_depends_on_the_key_and_is_a_uuid() {
    let folder = tempfile::tempdir().unwrap();
    let one = key(&folder, &"a".repeat(32)).unwrap();
    let other = key(&folder, &"b".repeat(32)).unwrap();
    assert_ne!(one.of_ehr("x"), other.of_ehr("x"));
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert_eq!(
        one.of_ehr("x"),
        key(&folder, &format!("{}\n", "a".repeat(32)))
            .unwrap()
            .of_ehr("x")
    );
    assert!(uuid::Uuid::try_parse(&one.of_ehr("x")).is_ok());
    assert!(key(&folder, "short").is_err());
}

/// The test vector of RFC 4231, section 4.3, with a key of the least length by repetition.
#[test]
fn hash_is_hmac_with_sha_256() {
    let pseudonyms = Pseudonyms(hmac::Key::new(hmac::HMAC_SHA256, b"Jefe"));
    assert_eq!(
        hex(pseudonyms.hash(b"what do ya want for nothing?").as_ref()),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
}
