//! Entries of a cache in a store that may return them cut, altered, or under another key.
//!
//! The first line of an entry is a checksum of its key and its text. It detects accidents. A
//! program that may write to the store can forge it.

use crate::document::checksum;

/// Returns the key of the entry for a key. Entries of releases without a checksum have other keys,
/// so neither release reads those of the other.
pub fn entry_key(key: &str) -> String {
    format!("sealed/{key}")
}

/// Returns the entry of a text.
pub fn with_checksum(key: &str, text: &str) -> String {
    format!("{}\n{text}", checksum([key, text].into_iter()))
}

/// Returns the text of an entry; `None` if it is not the one that was written for this key.
pub fn without_checksum(key: &str, mut entry: String) -> Option<String> {
    let text = entry.split_off(entry.find('\n')? + 1);
    let sum = checksum([key, text.as_str()].into_iter());
    (entry.trim_end_matches('\n') == sum).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_sealed_text_is_read() {
        let entry = with_checksum("a", "one\ntwo");
        assert_eq!(
            without_checksum("a", entry.clone()).as_deref(),
            Some("one\ntwo")
        );
        assert_eq!(
            without_checksum("a", with_checksum("a", "")).as_deref(),
            Some("")
        );
        for damaged in [
            with_checksum("b", "one\ntwo"),
            entry.replace("two", "too"),
            String::from("one\ntwo"),
            String::new(),
            entry.get(..entry.len() - 1).unwrap_or_default().to_owned(),
            entry.get(..5).unwrap_or_default().to_owned(),
        ] {
            assert_eq!(without_checksum("a", damaged.clone()), None, "{damaged}");
        }
    }
}
