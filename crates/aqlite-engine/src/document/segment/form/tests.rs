//! Tests of the encoded forms of parts.

use super::*;

#[test]
fn ids_round_trip_in_ascending_and_in_any_order() {
    for ids in [vec![], vec![7], vec![3, 3, 4, 900], vec![5, 4, 4000, 0]] {
        let stored = StoredColumn::of(&Column::Text(ids.clone()), |id| id);
        assert_eq!(stored.column().unwrap().ids(), Some(&*ids));
    }
}

#[test]
fn damaged_numbers_are_refused() {
    let numbers = |scaled: &[i64], decimals: &[u8], tokens: &[(u32, &str)]| {
        let tokens = tokens
            .iter()
            .map(|(row, token)| (*row, (*token).to_owned()));
        StoredNumbers {
            scaled: scaled.to_vec(),
            decimals: decimals.to_vec(),
            tokens: tokens.collect(),
        }
        .numbers()
    };
    let token = u8::MAX;
    let most = 999_999_999_999_999;
    assert!(numbers(&[most, -most], &[15, 0], &[]).is_ok());
    assert!(numbers(&[0, 1, 0], &[token, 0, token], &[(0, "1e3"), (2, "-0")]).is_ok());
    for (scaled, decimals, tokens, why) in [
        (&[1, 2][..], &[0][..], &[][..], "lists of different lengths"),
        (&[1], &[16], &[], "more decimals than digits"),
        (&[most + 1], &[0], &[], "more digits than a double"),
        (&[i64::MIN], &[0], &[], "the least integer"),
        (&[0], &[token], &[], "a mark without a token"),
        (&[1], &[0], &[(0, "1e3")], "a token without a mark"),
        (&[0], &[token], &[(1, "1e3")], "a token behind the last row"),
        (
            &[0, 0],
            &[token, token],
            &[(1, "1e3"), (0, "1e3")],
            "rows in descending order",
        ),
        (
            &[0, 0],
            &[token, token],
            &[(0, "1e3"), (0, "1e4")],
            "two tokens of one row",
        ),
    ] {
        let outcome = numbers(scaled, decimals, tokens);
        assert!(outcome.is_err(), "{why}");
    }
}

#[test]
fn lists_of_different_lengths_are_refused() {
    let page = |uuids: usize, lengths: &[u32]| StoredPage {
        begins_with_uuid: vec![true, false],
        uuids: vec![7; uuids],
        text: String::from("äb"),
        lengths: lengths.to_vec(),
    };
    assert!(page(16, &[2, 1]).page().is_ok());
    assert!(page(16, &[1, 2]).page().is_err(), "inside a character");
    assert!(page(16, &[2, 2]).page().is_err(), "behind the end");
    assert!(page(16, &[2, 0]).page().is_err(), "before the end");
    assert!(page(16, &[3]).page().is_err(), "too few lengths");
    assert!(page(15, &[2, 1]).page().is_err(), "a part of a UUID");
    assert!(page(32, &[2, 1]).page().is_err(), "too many UUIDs");
}

#[test]
fn words_round_trip() {
    let texts = [
        "",
        "01234567-89ab-cdef-0123-456789abcdef",
        "01234567-89ab-cdef-0123-456789abcdef::aqlite.example::1",
        "01234567-89AB-cdef-0123-456789abcdef",
        "01234567089ab-cdef-0123-456789abcdef",
        "01234567-89ab-cdef-0123-456789abcdeg",
        "Zürich",
        "ffffffff-ffff-ffff-ffff-ffffffffffffä",
        "12345678901234567890123456789012345ä",
    ];
    let page = StoredPage::of(texts.into_iter());
    assert_eq!(page.uuids.len(), 3 * 16);
    let page = page.page().unwrap();
    let read: Vec<&str> = (0..texts.len()).map(|at| page.text(at)).collect();
    assert_eq!(read, texts);
}
