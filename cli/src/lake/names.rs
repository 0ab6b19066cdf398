//! The names of the files of a lake. Files with other names belong to the user.

use super::state::STATE;

/// Returns whether a file of `VIEW/data` has a name that a sync gives, such as
/// `00000001-0001.parquet`.
pub fn is_data(name: &str) -> bool {
    let numbers = name.strip_suffix(".parquet");
    let numbers = numbers.and_then(|name| name.split_once('-'));
    numbers.is_some_and(|(sync, file)| is_number(sync, 8) && is_number(file, 4))
}

/// Returns whether a file of `VIEW/metadata` has a name that a sync gives, such as `v1.metadata.json`.
pub fn is_metadata(name: &str) -> bool {
    let version = name.strip_prefix('v');
    let version = version.and_then(|name| name.strip_suffix(".metadata.json"));
    let avro = name.strip_suffix(".avro");
    let avro = avro.and_then(|name| name.split_once('-'));
    name == "version-hint.text"
        || version.is_some_and(|version| is_number(version, 1))
        || avro.is_some_and(|(sync, kind)| is_number(sync, 8) && KINDS.contains(&kind))
}

/// The kinds of files of Avro: lists of manifests, and manifests.
const KINDS: [&str; 2] = ["list", "m0"];

/// Returns whether a file of `_aqlite/objects` has a name that a sync gives, such as
/// `VIEW-00000001.index`.
pub fn is_index(name: &str) -> bool {
    let sync = name.strip_suffix(".index");
    let sync = sync.and_then(|name| name.rsplit_once('-'));
    sync.is_some_and(|(_, sync)| is_number(sync, 8))
}

/// Returns whether a file of `_aqlite` is the state.
pub fn is_state(name: &str) -> bool {
    STATE.rsplit('/').next() == Some(name)
}

fn is_number(digits: &str, least: usize) -> bool {
    digits.len() >= least && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_user_are_not_those_of_a_sync() {
        assert!(is_data("00000001-0001.parquet") && is_data("123456789-12345.parquet"));
        assert!(is_metadata("v12.metadata.json") && is_metadata("version-hint.text"));
        assert!(is_metadata("00000003-list.avro") && is_index("a-b-00000001.index"));
        for name in [
            "notes.txt",
            "1-1.parquet",
            "part-0001.parquet",
            "00000001.parquet",
        ] {
            assert!(!is_data(name), "{name}");
        }
        for name in [
            "v.metadata.json",
            "00000001-mine.avro",
            "00000001-0001.parquet",
        ] {
            assert!(!is_metadata(name), "{name}");
        }
    }
}
