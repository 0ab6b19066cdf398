//! Digests: SHA-256 of texts and of packed documents, and a checksum that costs next to nothing.

use super::pack::{Packed, Part};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The SHA-256 of a text.
pub fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The SHA-256 of a text, as 64 hexadecimal digits.
pub fn digest_of_text(text: &str) -> String {
    hexadecimal(&sha256(text))
}

/// The first 128 bits of it, as 32 hexadecimal digits.
pub fn short_digest(text: &str) -> String {
    let mut digest = digest_of_text(text);
    digest.truncate(32);
    digest
}

/// 64 bits of FNV-1a over some bytes: at next to no price they tell apart what was not made to look alike.
pub fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// [`fnv`] over texts in their order, each closed by a byte that no text has, as 16 hexadecimal digits. It finds accidents, at a price
/// that a scan can pay for each document; against somebody who means to deceive it is no help.
pub fn checksum<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let sum = fnv(texts.flat_map(|text| text.bytes().chain([0xff])));
    format!("{sum:016x}")
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

impl Packed {
    /// 32 hexadecimal digits of a SHA-256 that is equal for equal documents only: over the digests of the shapes, which stand for all
    /// that is written in them, and over the text of each slot with its length, in document order.
    pub fn digest(&self) -> String {
        let mut told = String::with_capacity(1024);
        self.tell(self.root(), &mut told);
        short_digest(&told)
    }

    fn tell(&self, part: &Part, told: &mut String) {
        told.push_str(part.shape.digest());
        for slot in 0..part.slots.len() as u32 {
            let text = self.slot(part, slot);
            let _ = write!(told, "{}:{text}", text.len());
        }
        for run in &part.runs {
            let _ = write!(told, "{};", run.len());
            run.iter().for_each(|inner| self.tell(inner, told));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::checksum;
    use crate::document::{NothingKnown, Packed, Shapes, pack};
    use crate::rm::arbitrary::Generator;
    use crate::rm::class::Cls;
    use crate::rm::json;

    #[test]
    fn a_checksum_is_that_of_fnv_and_tells_texts_apart() {
        let of = |texts: &[&str]| checksum(texts.iter().copied());
        assert_eq!(of(&[]), "cbf29ce484222325");
        // FNV-1a of the bytes 66 6f 6f ff.
        let byte = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
        assert_eq!(of(&["foo"]), format!("{:016x}", byte(0xdcb2_7518_fed9_d577, 0xff)));
        let all = [of(&["ab", "c"]), of(&["a", "bc"]), of(&["abc"]), of(&["c", "ab"]), of(&["abc", ""]), of(&["", "abc"])];
        assert!(all.iter().enumerate().all(|(i, a)| !all.iter().skip(i + 1).any(|b| a == b)), "{all:?}");
    }

    #[test]
    fn documents_have_one_digest_when_they_are_one() {
        let shapes = Shapes::new();
        let packed = |text: &str| pack(json::read(text, Cls::ANY).unwrap().root().unwrap(), &NothingKnown, &shapes);
        let mut texts: Vec<String> = (0..200).map(|seed| json::write(Generator::new(seed).tree().root().unwrap())).collect();
        let list = |members: &str| format!(r#"{{"_type":"FOLDER","name":{{"value":"f"}},"folders":[{members}]}}"#);
        let folder = |name: &str| format!(r#"{{"_type":"FOLDER","name":{{"value":"{name}"}}}}"#);
        texts.extend([list(&folder("ab")), list(&folder("a")), list(&format!("{},{}", folder("a"), folder("b"))), list("")]);
        texts.push(list(&format!("{},{},{}", folder("a"), folder("b"), folder(""))));
        let all: Vec<Packed> = texts.iter().map(|text| packed(text)).collect();
        for a in &all {
            assert_eq!(a.digest().len(), 32);
            for b in &all {
                assert_eq!(a.digest() == b.digest(), a.to_json() == b.to_json());
            }
        }
    }
}
