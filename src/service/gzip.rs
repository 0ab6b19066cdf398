//! Decompression of gzip bodies (RFC 1952) in bounded steps.
//!
//! A compressed byte can expand to 1,032 bytes. The caller therefore limits the bytes of each step.
//! After the first [`LEEWAY`] bytes, a body that expands by more than [`MAX_RATIO`] is rejected.
//! The memory is the window of 32 kB, the input that was not read yet, and the output of one step.

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use std::fmt;

/// The maximum number of expanded bytes for each compressed one, after the first [`LEEWAY`].
/// Compositions in JSON reach 60.
pub(crate) const MAX_RATIO: u64 = 200;
/// Expanded bytes before the ratio is checked.
const LEEWAY: u64 = 250_000;
/// The maximum number of members that are shorter than [`MIN_MEMBER`] on average. A member costs
/// about 20 µs, also an empty one of 20 bytes.
const MAX_SHORT_MEMBERS: u64 = 1_000;
/// Expanded bytes of a member. Programs that write several have 64 kB and more in each.
const MIN_MEMBER: u64 = 1_000;
/// Maximum bytes of the header of a member, which may have a file name and a comment.
const MAX_HEADER: usize = 65_536;
/// Maximum bytes that one call of the decompressor writes.
const STEP: usize = 65_536;

/// The error of a body that cannot be decompressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum GzipError {
    /// The body is not gzip, is damaged, or ends early.
    Malformed,
    /// The body expands more than any document.
    Ratio,
    /// The body has many short members.
    Members,
}

impl fmt::Display for GzipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GzipError::Malformed => "the body is not gzip, is damaged, or ends early",
            GzipError::Ratio => "the body expands more than any document",
            GzipError::Members => "the body has too many short members",
        })
    }
}

impl std::error::Error for GzipError {}

/// The condition for the next step of the decompressor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Room in the output: the step is complete.
    Room,
    /// More input: all present bytes are expanded.
    Input,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Data,
    Trailer,
}

/// A decompressor of a gzip body: the caller feeds compressed bytes and reads expanded ones.
pub struct Gunzip {
    /// Compressed bytes. Those before `at` are consumed.
    input: Vec<u8>,
    at: usize,
    stage: Stage,
    state: Box<InflateState>,
    crc: u32,
    /// Expanded bytes of the present member, modulo 2³².
    size: u32,
    members: u64,
    consumed: u64,
    expanded: u64,
}

impl Default for Gunzip {
    fn default() -> Gunzip {
        let state = Box::new(InflateState::new(DataFormat::Raw));
        Gunzip {
            input: Vec::new(),
            at: 0,
            stage: Stage::Header,
            state,
            crc: !0,
            size: 0,
            members: 0,
            consumed: 0,
            expanded: 0,
        }
    }
}

impl Gunzip {
    /// Adds compressed bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.drain(..self.at.min(self.input.len()));
        self.at = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Appends at most `most` expanded bytes to `out`.
    ///
    /// # Errors
    /// [`GzipError::Malformed`] if the bytes are not gzip, [`GzipError::Ratio`] if they expand too
    /// much, [`GzipError::Members`] if they have too many members.
    pub fn expand(&mut self, out: &mut Vec<u8>, most: usize) -> Result<Needs, GzipError> {
        let full = out.len().saturating_add(most);
        loop {
            let is_hungry = match self.stage {
                Stage::Header => !self.header()?,
                Stage::Data if out.len() >= full => return Ok(Needs::Room),
                Stage::Data => !self.data(out, full)?,
                Stage::Trailer => !self.trailer()?,
            };
            if is_hungry {
                return Ok(Needs::Input);
            }
        }
    }

    /// Checks that the input is complete.
    ///
    /// # Errors
    /// [`GzipError::Malformed`] within a member, or before the first.
    pub fn end(&self) -> Result<(), GzipError> {
        let complete = self.stage == Stage::Header && self.members > 0 && self.rest().is_empty();
        if complete {
            Ok(())
        } else {
            Err(GzipError::Malformed)
        }
    }

    fn rest(&self) -> &[u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes;
        self.consumed += bytes as u64;
    }

    /// Consumes the header of a member. Returns false if more input is needed.
    fn header(&mut self) -> Result<bool, GzipError> {
        let rest = self.rest();
        match length_of_header(rest)? {
            Some(length) => {
                self.consume(length);
                self.stage = Stage::Data;
                // Raw deflate: the header and the trailer of gzip are read here.
                self.state.reset(DataFormat::Raw);
                // A CRC-32 starts with all bits set, and is inverted at the end.
                (self.crc, self.size) = (!0, 0);
                Ok(true)
            }
            None if rest.len() > MAX_HEADER => Err(GzipError::Malformed),
            None => Ok(false),
        }
    }

    /// Expands until a step is complete or the input is consumed. Returns false if more input is
    /// needed.
    fn data(&mut self, out: &mut Vec<u8>, full: usize) -> Result<bool, GzipError> {
        let begin = out.len();
        let room = STEP.min(full - begin);
        // The decompressor writes into a slice, so the room is zeroed first and cut afterwards.
        out.resize(begin + room, 0);
        let step = inflate(
            &mut self.state,
            self.input.get(self.at..).unwrap_or_default(),
            out.get_mut(begin..).unwrap_or_default(),
            MZFlush::None,
        );
        out.truncate(begin + step.bytes_written);
        self.consume(step.bytes_consumed);
        self.count(out.get(begin..).unwrap_or_default())?;
        match step.status {
            Ok(MZStatus::StreamEnd) => {
                self.stage = Stage::Trailer;
                Ok(true)
            }
            // The window may have further output, also if the input is consumed.
            Ok(_) => Ok(true),
            // No progress was possible: the input is consumed.
            Err(MZError::Buf) => Ok(false),
            Err(_) => Err(GzipError::Malformed),
        }
    }

    /// Adds expanded bytes to the checksum and the sizes.
    ///
    /// # Errors
    /// [`GzipError::Ratio`] if they are too many for the bytes that were consumed.
    fn count(&mut self, written: &[u8]) -> Result<(), GzipError> {
        self.crc = crc_of(self.crc, written);
        // The trailer has the size modulo 2³².
        self.size = self.size.wrapping_add(written.len() as u32);
        self.expanded += written.len() as u64;
        if self.expanded > LEEWAY && self.expanded > self.consumed.saturating_mul(MAX_RATIO) {
            return Err(GzipError::Ratio);
        }
        Ok(())
    }

    /// Verifies checksum and size. Another member may follow.
    fn trailer(&mut self) -> Result<bool, GzipError> {
        let Some((trailer, _)) = self.rest().split_first_chunk::<8>() else {
            return Ok(false);
        };
        let [a, b, c, d, e, f, g, h] = *trailer;
        if u32::from_le_bytes([a, b, c, d]) != !self.crc
            || u32::from_le_bytes([e, f, g, h]) != self.size
        {
            return Err(GzipError::Malformed);
        }
        self.consume(8);
        self.members += 1;
        if self.members > MAX_SHORT_MEMBERS
            && self.expanded < self.members.saturating_mul(MIN_MEMBER)
        {
            return Err(GzipError::Members);
        }
        self.stage = Stage::Header;
        // With more input, the header of the next member follows (RFC 1952, section 2.2).
        Ok(!self.rest().is_empty())
    }
}

/// Returns the length of a header, or `None` if it is incomplete (RFC 1952, section 2.3).
fn length_of_header(bytes: &[u8]) -> Result<Option<usize>, GzipError> {
    const RESERVED: u8 = 0xe0;
    if !bytes
        .iter()
        // Two magic bytes and the method deflate. A shorter prefix may still become a header.
        .zip([0x1f, 0x8b, 8])
        .all(|(byte, magic)| *byte == magic)
    {
        return Err(GzipError::Malformed);
    }
    let Some(flags) = bytes.get(3).copied().filter(|_| bytes.len() >= 10) else {
        return Ok(None);
    };
    if flags & RESERVED != 0 {
        return Err(GzipError::Malformed);
    }
    Ok(end_of_optional_fields(bytes, flags).filter(|end| *end <= bytes.len()))
}

/// Returns the end of the fields of a header that flags announce, or `None` if they are incomplete.
fn end_of_optional_fields(bytes: &[u8], flags: u8) -> Option<usize> {
    const CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    // The fixed part: magic, method, flags, time, extra flags, system.
    let mut length = 10;
    if flags & EXTRA != 0 {
        let &[low, high] = bytes.get(length..length + 2)? else {
            return None;
        };
        length += 2 + usize::from(u16::from_le_bytes([low, high]));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            // The texts end with a zero byte.
            length += bytes.get(length..)?.iter().position(|byte| *byte == 0)? + 1;
        }
    }
    // The CRC-16 of the header is skipped, because the trailer protects the data.
    length += if flags & CHECKSUM != 0 { 2 } else { 0 };
    Some(length)
}

/// Updates a CRC-32 (ISO 3309) by bytes. The table has the reflected polynomial, so bits enter at
/// the low end.
fn crc_of(crc: u32, bytes: &[u8]) -> u32 {
    static TABLE: [u32; 256] = table();
    bytes.iter().fold(crc, |crc, byte| {
        (crc >> 8)
            ^ TABLE
                .get(((crc ^ u32::from(*byte)) & 0xff) as usize)
                .copied()
                .unwrap_or_default()
    })
}

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which refuses an index outside"
)]
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let (mut crc, mut bit) = (index as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::compress_to_vec;

    /// A member: header, deflated text, trailer.
    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
        out.extend(compress_to_vec(text, 6));
        let crc = !crc_of(!0, text);
        out.extend(crc.to_le_bytes());
        out.extend((text.len() as u32).to_le_bytes());
        out
    }

    /// Feeds slices of a length, and reads steps of another.
    fn expanded(bytes: &[u8], slice: usize, step: usize) -> Result<Vec<u8>, GzipError> {
        let (mut gunzip, mut out) = (Gunzip::default(), Vec::new());
        for part in bytes.chunks(slice) {
            gunzip.feed(part);
            loop {
                let before = out.len();
                let progress = gunzip.expand(&mut out, step)?;
                assert!(out.len() - before <= step, "a step is bounded");
                if progress == Needs::Input {
                    break;
                }
            }
        }
        gunzip.end().map(|()| out)
    }

    #[test]
    fn input_in_slices_of_any_length_gives_the_text() {
        let text: Vec<u8> = (0..40_000_u32)
            .flat_map(|n| (n % 977).to_string().into_bytes())
            .collect();
        let packed = gzip(&text);
        for (slice, step) in [
            (1, 1_000),
            (7, 3),
            (65_536, 1),
            (packed.len(), usize::MAX),
            (1_000, 100_000),
        ] {
            assert!(
                expanded(&packed, slice, step).as_deref() == Ok(text.as_slice()),
                "{slice} {step}"
            );
        }
        assert_eq!(expanded(&gzip(b""), 5, 5).as_deref(), Ok(&b""[..]));
    }

    #[test]
    fn several_members_and_names_in_headers_are_read() {
        let mut both = gzip(b"first ");
        both.extend(gzip(b"second"));
        assert_eq!(expanded(&both, 3, 2).as_deref(), Ok(&b"first second"[..]));
        let plain = gzip(b"text");
        let mut named = plain[..10].to_vec();
        named[3] = 2 | 4 | 8 | 16;
        named.extend([2, 0, b'x', b'y']);
        named.extend(b"name\0comment\0");
        named.extend([0, 0]);
        named.extend(&plain[10..]);
        for slice in [1, 100] {
            assert_eq!(expanded(&named, slice, 100).as_deref(), Ok(&b"text"[..]));
        }
    }

    #[test]
    fn many_members_must_not_be_short() {
        let body = |count, text: &[u8]| gzip(text).repeat(count);
        let short = |count| expanded(&body(count, b"x"), 10_000, 10_000).map(|out| out.len());
        assert_eq!(
            (short(1_000), short(1_001)),
            (Ok(1_000), Err(GzipError::Members))
        );
        let empty = body(100_000, b"");
        assert_eq!(expanded(&empty, 65_536, 65_536), Err(GzipError::Members));
        let text: Vec<u8> = (0..300_u32)
            .flat_map(|n| n.pow(2).to_string().into_bytes())
            .collect();
        assert!(text.len() >= 1_000);
        let long = expanded(&body(2_000, &text), 65_536, 65_536);
        assert_eq!(long.map(|out| out.len()), Ok(2_000 * text.len()));
    }

    #[test]
    fn truncated_and_damaged_input_is_refused() {
        let packed = gzip(b"a text that is long enough to be cut");
        for end in 0..packed.len() {
            assert_eq!(
                expanded(&packed[..end], 4, 100),
                Err(GzipError::Malformed),
                "cut at {end}"
            );
        }
        for at in [0, 1, 2, 3, packed.len() - 8, packed.len() - 1] {
            let mut changed = packed.clone();
            changed[at] ^= 0x80;
            assert_eq!(
                expanded(&changed, 1_000, 100),
                Err(GzipError::Malformed),
                "byte {at}"
            );
        }
        let mut behind = packed;
        behind.extend(b"junk");
        assert_eq!(expanded(&behind, 1_000, 100), Err(GzipError::Malformed));
        let endless = [
            vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 255],
            vec![b'n'; 70_000],
        ]
        .concat();
        assert_eq!(
            expanded(&endless, 10_000, 100),
            Err(GzipError::Malformed),
            "a name without end"
        );
    }

    #[test]
    fn a_bomb_is_refused_after_the_leeway() {
        let bomb = gzip(&vec![b'\n'; 40_000_000]);
        assert!(bomb.len() < 50_000);
        let (mut gunzip, mut given) = (Gunzip::default(), 0);
        gunzip.feed(&bomb);
        let error = loop {
            let mut out = Vec::new();
            match gunzip.expand(&mut out, 100_000) {
                Ok(_) => given += out.len() as u64,
                Err(error) => break error,
            }
        };
        assert_eq!(error, GzipError::Ratio);
        assert!(given <= LEEWAY, "{given}");
        assert_eq!(
            expanded(&gzip(&vec![b'\n'; 240_000]), 1_000, 1_000_000).map(|out| out.len()),
            Ok(240_000)
        );
    }
}
