//! The binary encoding of checkpoints.
//!
//! A checkpoint may be the only copy of its data, so its encoding depends on no crate and never
//! changes:
//!
//! - A number is written in groups of seven bits, the lowest first (LEB128). Signed numbers are
//!   mapped to unsigned ones first, so that small ones stay short (zigzag).
//! - A text or a list is preceded by its length.
//! - A list of numbers has one width in bytes for all of them, so it is read without branches.
//! - An optional value is preceded by 0 or 1. A struct is the sequence of its fields.

/// An encoder, which collects bytes.
#[derive(Debug, Default)]
pub struct ByteWriter(Vec<u8>);

/// A decoder of bytes. Every read returns `None` at the end of the bytes and for an invalid value.
#[derive(Debug)]
pub struct ByteReader<'a>(&'a [u8]);

impl ByteWriter {
    /// Returns the encoded bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn number(&mut self, mut number: u64) {
        // The highest bit of a byte means that another group follows.
        while number > 0x7f {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Writes a list of numbers with the width of the greatest one.
    fn numbers(&mut self, numbers: impl ExactSizeIterator<Item = u64> + Clone) {
        // The OR of all numbers has as many bits as the greatest one.
        let greatest = numbers.clone().fold(0, |all, number| all | number);
        // The width is 0 if all numbers are 0.
        let width = (u64::BITS - greatest.leading_zeros()).div_ceil(8) as usize;
        self.number(numbers.len() as u64);
        self.0.push(width as u8);
        self.0.reserve(width * numbers.len());
        for number in numbers {
            let bytes = number.to_le_bytes();
            self.0.extend(bytes.get(..width).unwrap_or_default());
        }
    }
}

impl<'a> ByteReader<'a> {
    /// Creates a decoder of these bytes.
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader(bytes)
    }

    /// Returns whether all bytes were read.
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads the length of a list whose items have at least `least` bytes each.
    fn length(&mut self, least: usize) -> Option<usize> {
        let length = usize::try_from(self.number()?).ok()?;
        // Damaged bytes must not cause a large allocation.
        (length.checked_mul(least)? <= self.0.len()).then_some(length)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length(1)?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads a list of numbers, each of which `of` converts.
    fn numbers<T: Clone>(&mut self, of: impl Fn(u64) -> T) -> Option<Vec<T>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (width, rest) = self.0.split_first()?;
        let width = usize::from(*width);
        if width == 0 {
            self.0 = rest;
            // A list of zeros has no bytes, so its length is bounded by that of the longest
            // possible column.
            return (length <= 1 << 28).then(|| vec![of(0); length]);
        }
        let (bytes, rest) = rest.split_at_checked(length.checked_mul(width)?)?;
        self.0 = rest;
        let number = |bytes: &[u8]| {
            let digits = bytes.iter().rev();
            digits.fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        Some(match width {
            // Constant widths compile to plain loads.
            1 => bytes.iter().map(|byte| of(u64::from(*byte))).collect(),
            2 => fixed::<2, T>(bytes, of),
            3 => fixed::<3, T>(bytes, of),
            4 => fixed::<4, T>(bytes, of),
            _ => bytes.chunks_exact(width).map(|b| of(number(b))).collect(),
        })
    }
}

fn fixed<const WIDTH: usize, T>(bytes: &[u8], of: impl Fn(u64) -> T) -> Vec<T> {
    let number = |bytes: &[u8; WIDTH]| {
        let digits = bytes.iter().rev();
        digits.fold(0u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let (chunks, _) = bytes.as_chunks::<WIDTH>();
    chunks.iter().map(|bytes| of(number(bytes))).collect()
}

/// A value with a binary encoding.
pub trait Codec: Sized {
    /// Encodes the value.
    fn write(&self, out: &mut ByteWriter);

    /// Decodes a value; `None` for invalid bytes.
    fn read(from: &mut ByteReader<'_>) -> Option<Self>;

    /// Encodes a list of values.
    fn write_list(list: &[Self], out: &mut ByteWriter) {
        out.number(list.len() as u64);
        list.iter().for_each(|item| item.write(out));
    }

    /// Decodes a list of values; `None` for invalid bytes.
    fn read_list(from: &mut ByteReader<'_>) -> Option<Vec<Self>> {
        let length = from.length(1)?;
        (0..length).map(|_| Self::read(from)).collect()
    }
}

/// Implements [`Codec`] for a struct, whose fields are encoded in the listed order.
#[macro_export]
macro_rules! codec {
    ($type:ty { $($field:ident),* $(,)? }) => {
        impl $crate::document::Codec for $type {
            fn write(&self, out: &mut $crate::document::ByteWriter) {
                $($crate::document::Codec::write(&self.$field, out);)*
            }

            fn read(from: &mut $crate::document::ByteReader<'_>) -> Option<Self> {
                Some(Self { $($field: $crate::document::Codec::read(from)?),* })
            }
        }
    };
}

/// Implements [`Codec`] for a type of numbers.
macro_rules! number {
    ($type:ty, $to:expr, $of:expr) => {
        impl Codec for $type {
            fn write(&self, out: &mut ByteWriter) {
                out.number($to(*self));
            }

            fn read(from: &mut ByteReader<'_>) -> Option<$type> {
                let number = from.number()?;
                let value: $type = $of(number);
                // A number outside the range of the type is invalid.
                ($to(value) == number).then_some(value)
            }

            fn write_list(list: &[$type], out: &mut ByteWriter) {
                out.numbers(list.iter().map(|value| $to(*value)));
            }

            fn read_list(from: &mut ByteReader<'_>) -> Option<Vec<$type>> {
                from.numbers(|number| $of(number))
            }
        }
    };
}

fn zigzag(number: i64) -> u64 {
    // 0, -1, 1, -2 become 0, 1, 2, 3: the lowest bit is the sign.
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

number!(u16, u64::from, |number| number as u16);
number!(u32, u64::from, |number| number as u32);
number!(u64, std::convert::identity, std::convert::identity);
number!(i32, |n: i32| zigzag(n.into()), |n| unzigzag(n) as i32);
number!(i64, zigzag, unzigzag);
number!(bool, u64::from, |number| number == 1);

impl Codec for u8 {
    fn write(&self, out: &mut ByteWriter) {
        out.0.push(*self);
    }

    fn read(from: &mut ByteReader<'_>) -> Option<u8> {
        let (byte, rest) = from.0.split_first()?;
        from.0 = rest;
        Some(*byte)
    }

    fn write_list(list: &[u8], out: &mut ByteWriter) {
        out.bytes(list);
    }

    fn read_list(from: &mut ByteReader<'_>) -> Option<Vec<u8>> {
        from.bytes().map(<[u8]>::to_vec)
    }
}

impl Codec for String {
    fn write(&self, out: &mut ByteWriter) {
        out.bytes(self.as_bytes());
    }

    fn read(from: &mut ByteReader<'_>) -> Option<String> {
        std::str::from_utf8(from.bytes()?).ok().map(str::to_owned)
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn write(&self, out: &mut ByteWriter) {
        T::write_list(self, out);
    }

    fn read(from: &mut ByteReader<'_>) -> Option<Vec<T>> {
        T::read_list(from)
    }
}

impl<T: Codec> Codec for Option<T> {
    fn write(&self, out: &mut ByteWriter) {
        self.is_some().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(from: &mut ByteReader<'_>) -> Option<Option<T>> {
        Some(if bool::read(from)? {
            Some(T::read(from)?)
        } else {
            None
        })
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn write(&self, out: &mut ByteWriter) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut ByteReader<'_>) -> Option<(A, B)> {
        Some((A::read(from)?, B::read(from)?))
    }
}

impl<T: Codec, const LENGTH: usize> Codec for [T; LENGTH] {
    fn write(&self, out: &mut ByteWriter) {
        self.iter().for_each(|item| item.write(out));
    }

    fn read(from: &mut ByteReader<'_>) -> Option<[T; LENGTH]> {
        // The length is part of the type, so it is not stored.
        let items = (0..LENGTH).map(|_| T::read(from));
        items.collect::<Option<Vec<T>>>()?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Codec + PartialEq + std::fmt::Debug>(value: T) -> usize {
        let mut out = ByteWriter::default();
        value.write(&mut out);
        let bytes = out.into_bytes();
        let mut from = ByteReader::new(&bytes);
        assert_eq!(T::read(&mut from), Some(value));
        assert!(from.is_at_end());
        for end in 0..bytes.len() {
            assert_eq!(T::read(&mut ByteReader::new(&bytes[..end])), None);
        }
        bytes.len()
    }

    #[test]
    fn values_round_trip_and_truncated_ones_are_none() {
        for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX] {
            round_trip(number);
            round_trip(vec![number, 0, 7]);
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX, 1 << 40] {
            round_trip(number);
            round_trip(vec![number, -3]);
        }
        round_trip(vec![i32::MIN, i32::MAX, 0]);
        for greatest in [0, 200, 60_000, 1 << 20, u32::MAX] {
            round_trip(vec![3, greatest, 0]);
        }
        round_trip(vec![Some(String::from("ü")), None, Some(String::new())]);
        round_trip((vec![true, false, true], vec![7u8, 255]));
        round_trip(Vec::<(u32, String)>::new());
        assert_eq!(round_trip(vec![5u32; 100]), 102, "one byte for each");
        assert_eq!(round_trip(vec![-5i32; 100]), 102, "also if it is negative");
    }

    #[test]
    fn damaged_lengths_reserve_no_memory() {
        let huge = [0xff, 0xff, 0xff, 0xff, 0x7f, 4, 1, 2, 3, 4];
        assert_eq!(Vec::<u32>::read(&mut ByteReader::new(&huge)), None);
        assert_eq!(String::read(&mut ByteReader::new(&huge)), None);
        assert_eq!(Vec::<String>::read(&mut ByteReader::new(&huge)), None);
        let zeros = [0xff, 0xff, 0xff, 0xff, 0x7f, 0];
        assert_eq!(Vec::<u32>::read(&mut ByteReader::new(&zeros)), None);
        assert_eq!(u32::read(&mut ByteReader::new(&[0xff; 9])), None);
        assert_eq!(bool::read(&mut ByteReader::new(&[2])), None);
    }
}
