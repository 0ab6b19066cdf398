//! Digests of texts and packed documents (SHA-256), and a cheap checksum (FNV-1a).

use super::pack::{Packed, PackedFragment};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Returns the SHA-256 of a text.
pub fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Returns the SHA-256 of the concatenation of texts, without copying them.
pub fn sha256_of(parts: &[&str]) -> [u8; 32] {
    let digest = Sha256::new();
    let digest = parts
        .iter()
        .fold(digest, |digest, part| digest.chain_update(part));
    digest.finalize().into()
}

/// Returns the SHA-256 of a text as 64 hexadecimal digits.
pub fn digest_of_text(text: &str) -> String {
    hexadecimal(&sha256(text))
}

/// Returns the first 128 bits of the SHA-256 of a text as 32 hexadecimal digits.
pub fn short_digest(text: &str) -> String {
    let mut digest = digest_of_text(text);
    digest.truncate(32);
    digest
}

/// Computes the 64-bit FNV-1a hash of bytes. It is cheap, and not safe against deliberate
/// collisions.
pub fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Computes the checksum of a sequence of texts: [`fnv`] as 16 hexadecimal digits. Each text is
/// terminated by 0xFF, a byte that UTF-8 does not contain.
///
/// The checksum detects damage, and not forgery. It is cheap enough for every document of a scan.
pub fn checksum<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let sum = fnv(texts.flat_map(|text| text.bytes().chain([0xff])));
    format!("{sum:016x}")
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

impl Packed {
    /// Returns 32 hexadecimal digits of a SHA-256, which only equal documents share. The input is
    /// the digests of the layouts, and each leaf value with its length, in document order.
    pub fn digest(&self) -> String {
        let mut input = String::with_capacity(1024);
        self.write_digest_input(self.root(), &mut input);
        short_digest(&input)
    }

    fn write_digest_input(&self, fragment: &PackedFragment, input: &mut String) {
        input.push_str(fragment.layout.digest());
        for leaf in 0..fragment.leaves.len() as u32 {
            let text = self.leaf_text(fragment, leaf);
            let _ = write!(input, "{}:{text}", text.len());
        }
        for group in &fragment.groups {
            let _ = write!(input, "{};", group.len());
            group
                .iter()
                .for_each(|inner| self.write_digest_input(inner, input));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::checksum;
    use crate::document::{LayoutStore, NothingKnown, Packed, pack};
    use aqlite_rm::arbitrary::Generator;
    use aqlite_rm::class::Cls;
    use aqlite_rm::json;

    #[test]
    fn checksum_is_fnv_and_differs_between_texts() {
        let of = |texts: &[&str]| checksum(texts.iter().copied());
        assert_eq!(of(&[]), "cbf29ce484222325");
        // FNV-1a of the bytes 66 6f 6f ff.
        let byte = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
        assert_eq!(
            of(&["foo"]),
            format!("{:016x}", byte(0xdcb2_7518_fed9_d577, 0xff))
        );
        let all = [
            of(&["ab", "c"]),
            of(&["a", "bc"]),
            of(&["abc"]),
            of(&["c", "ab"]),
            of(&["abc", ""]),
            of(&["", "abc"]),
        ];
        assert!(
            all.iter()
                .enumerate()
                .all(|(i, a)| !all.iter().skip(i + 1).any(|b| a == b)),
            "{all:?}"
        );
    }

    #[test]
    fn equal_documents_have_equal_digests() {
        let layouts = LayoutStore::new();
        let packed = |text: &str| {
            pack(
                json::read(text, Cls::ANY).unwrap().root().unwrap(),
                &NothingKnown,
                &layouts,
            )
        };
        let mut texts: Vec<String> = (0..200)
            .map(|seed| json::write(Generator::new(seed).tree().root().unwrap()))
            .collect();
        let list = |members: &str| {
            format!(r#"{{"_type":"FOLDER","name":{{"value":"f"}},"folders":[{members}]}}"#)
        };
        let folder = |name: &str| format!(r#"{{"_type":"FOLDER","name":{{"value":"{name}"}}}}"#);
        texts.extend([
            list(&folder("ab")),
            list(&folder("a")),
            list(&format!("{},{}", folder("a"), folder("b"))),
            list(""),
        ]);
        texts.push(list(&format!(
            "{},{},{}",
            folder("a"),
            folder("b"),
            folder("")
        )));
        let all: Vec<Packed> = texts.iter().map(|text| packed(text)).collect();
        for a in &all {
            assert_eq!(a.digest().len(), 32);
            for b in &all {
                assert_eq!(a.digest() == b.digest(), a.to_json() == b.to_json());
            }
        }
    }
}
