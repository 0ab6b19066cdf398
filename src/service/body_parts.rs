//! Long bodies of lines, passed to the service in parts as they arrive, cut between lines.

use super::http::Request;
use crate::diag::line_ends;
use std::time::Duration;

/// Bytes that a host reads ahead of the responses.
pub const AHEAD: usize = 4_000_000;

/// Bytes of a compressed body that a host expands at a time. Other requests continue in between.
pub const EXPANDED: usize = 500_000;

/// The limits of reading the rest of a rejected body, so that its client reads the response: a
/// multiple of the limit of bodies, and a time.
pub const DISCARDED: usize = 10;
/// See [`DISCARDED`].
pub const DISCARD_TIME: Duration = Duration::from_secs(5);

/// The time after which a response counts as sent, and its memory as free: a runtime may forget the
/// work of a client that disconnected.
pub const SEND_TIME: Duration = Duration::from_secs(120);

/// A body of lines in progress.
pub struct BodyParts {
    /// The bytes that have arrived and were not passed on, after `passed_bytes` others.
    buffer: Vec<u8>,
    /// The number of bytes, from the start of the buffer, that were passed on.
    passed_bytes: usize,
    /// The number of bytes, from the start of the buffer, whose line ends are counted.
    counted_bytes: usize,
    /// The number of line ends from `passed_bytes` to `counted_bytes`.
    line_ends: u64,
    /// The number of the next line, after the first part.
    next_line: Option<u64>,
    /// Whether all of the body has arrived.
    is_complete: bool,
    /// Maximum bytes of a part, unless a line is longer.
    max_bytes: usize,
    /// Maximum lines of a part.
    max_lines: u64,
    /// Maximum bytes of a line.
    max_line_bytes: usize,
}

impl BodyParts {
    /// Creates the state of a body of which nothing has arrived. A part has at most
    /// `max_bytes` bytes and `max_lines` lines. A line may be longer than `max_bytes`, and has at
    /// most `max_line_bytes` bytes.
    #[must_use]
    pub fn new(max_bytes: usize, max_lines: u64, max_line_bytes: usize) -> BodyParts {
        BodyParts {
            buffer: Vec::new(),
            passed_bytes: 0,
            counted_bytes: 0,
            line_ends: 0,
            next_line: None,
            is_complete: false,
            max_bytes: max_bytes.min(max_line_bytes),
            max_lines: max_lines.max(1),
            max_line_bytes,
        }
    }

    /// Returns whether the next part needs more of the body.
    #[must_use]
    pub fn is_short(&self) -> bool {
        let held = self.buffer.len() - self.passed_bytes;
        !self.is_complete
            && self.line_ends < self.max_lines
            && (held < self.max_bytes || (held <= self.max_line_bytes && self.line_ends == 0))
    }

    /// Returns whether a line of more than `bytes` bytes has arrived in part only.
    #[must_use]
    pub fn awaits_line_above(&self, bytes: usize) -> bool {
        !self.is_complete && self.line_ends == 0 && self.buffer.len() - self.passed_bytes > bytes
    }

    /// Returns whether all of the body was passed on.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_complete && self.passed_bytes == self.buffer.len()
    }

    /// Returns the buffer of bytes that were not passed on. A host appends arriving bytes.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        // Only here, when more bytes are needed: each call of `next` would otherwise move the rest.
        self.buffer.drain(..self.passed_bytes);
        // `next` never passes on bytes whose line ends are not counted.
        self.counted_bytes -= self.passed_bytes;
        self.passed_bytes = 0;
        &mut self.buffer
    }

    /// Records that bytes have arrived. `has_more` is false for the last ones.
    pub fn record_arrival(&mut self, has_more: bool) {
        self.line_ends += self.buffer.get(self.counted_bytes..).map_or(0, line_ends);
        self.counted_bytes = self.buffer.len();
        self.is_complete = !has_more;
    }

    /// Ends the body after an error. What has arrived is not passed on.
    pub fn end(&mut self) {
        self.is_complete = true;
        self.passed_bytes = self.buffer.len();
        self.line_ends = 0;
    }

    /// Returns the request with the next complete lines, and with the number of the first of them
    /// as `first`; `None` at the end. A line that is too long is passed on as far as it has
    /// arrived, and the service rejects it because of its length.
    pub fn next(&mut self, head: &Request) -> Option<Request> {
        let range = self.passed_bytes..self.passed_bytes + self.length();
        let body = self.buffer.get(range).unwrap_or_default().to_vec();
        self.passed_bytes += body.len();
        let lines = line_ends(&body);
        self.line_ends -= lines;
        let mut part = Request {
            body,
            ..head.clone()
        };
        if let Some(line) = self.next_line {
            // The first part keeps the client's `first`. Later parts get the number of their first
            // line.
            part.query.retain(|(key, _)| key != "first");
            part.query.push((String::from("first"), line.to_string()));
        }
        let first = self
            .next_line
            .or_else(|| head.query_value("first")?.parse().ok())
            .unwrap_or(1);
        self.next_line = Some(first.saturating_add(lines));
        (!part.body.is_empty()).then_some(part)
    }

    /// Returns the bytes of the next part.
    fn length(&self) -> usize {
        let held = self.buffer.get(self.passed_bytes..).unwrap_or_default();
        // The rest of the body is one part, even if its last line has no line end.
        if self.is_complete && held.len() <= self.max_bytes && self.line_ends < self.max_lines {
            return held.len();
        }
        let is_end = |byte: &u8| *byte == b'\n';
        let (window, is_many) = (
            held.get(..self.max_bytes.min(held.len())).unwrap_or(held),
            self.line_ends > self.max_lines,
        );
        let many = || {
            (1..)
                .zip(window)
                .filter(|(_, byte)| is_end(byte))
                .map(|(length, _)| length)
                .nth(usize::try_from(self.max_lines - 1).ok()?)
        };
        let last = || {
            window
                .iter()
                .rposition(is_end)
                .or_else(|| held.iter().position(is_end))
                .map(|at| at + 1)
        };
        is_many
            .then(many)
            .flatten()
            .or_else(last)
            // There is no line end: the line is too long, or the last one.
            .unwrap_or(held.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of the first line and text of each part.
    fn cut(target: &str, chunks: &[&str], size: usize, limit: usize) -> Vec<(String, String)> {
        let (head, mut parts, mut chunks) = (
            Request::new("POST", target),
            BodyParts::new(size, 1_000, limit),
            chunks.iter().peekable(),
        );
        let mut out = Vec::new();
        while !parts.is_done() {
            while parts.is_short() {
                let chunk = chunks.next().copied().unwrap_or_default();
                parts.buffer().extend(chunk.bytes());
                parts.record_arrival(chunks.peek().is_some());
            }
            let Some(part) = parts.next(&head) else {
                break;
            };
            let first = part.query_value("first").unwrap_or_default().to_owned();
            out.push((first, String::from_utf8(part.body).unwrap()));
        }
        out
    }

    #[test]
    fn parts_end_between_lines_and_have_the_number_of_their_first_line() {
        let pair = |(first, text): &(&str, &str)| ((*first).to_owned(), (*text).to_owned());
        for (target, chunks, expected) in [
            ("/", vec!["a\nbb\nccc"], vec![("", "a\nbb\n"), ("3", "ccc")]),
            (
                "/?first=7",
                vec!["a\n\nb\n", "ccc\nd"],
                vec![("7", "a\n\nb\n"), ("10", "ccc\nd")],
            ),
            (
                "/?first=x",
                vec!["aaaa\nbbbb\n"],
                vec![("x", "aaaa\n"), ("2", "bbbb\n")],
            ),
            (
                "/",
                vec!["longer than a part\nb"],
                vec![("", "longer than a part\n"), ("2", "b")],
            ),
            ("/", vec![""], vec![]),
        ] {
            assert_eq!(
                cut(target, &chunks, 6, 30),
                expected.iter().map(pair).collect::<Vec<_>>(),
                "{chunks:?}"
            );
        }
    }

    #[test]
    fn lines_of_a_part_are_limited_however_short_they_are() {
        let (head, mut parts) = (
            Request::new("POST", "/"),
            BodyParts::new(1_000_000, 1_000, 1_000_000),
        );
        parts.buffer().extend(b"1\n".repeat(2_501));
        parts.record_arrival(true);
        let mut cut = || {
            (!parts.is_short())
                .then(|| parts.next(&head))
                .flatten()
                .map(|part| part.body.len())
        };
        assert_eq!([cut(), cut(), cut()], [Some(2_000), Some(2_000), None]);
        parts.buffer().extend(b"1");
        parts.record_arrival(false);
        let last = parts.next(&head).unwrap();
        assert_eq!(
            (last.query_value("first"), last.body.len(), parts.is_done()),
            (Some("2001"), 1_003, true)
        );
    }

    #[test]
    fn too_long_line_is_read_up_to_one_byte_above_the_limit() {
        let mut parts = BodyParts::new(6, 1_000, 10);
        parts.buffer().extend(b"0123456789");
        parts.record_arrival(true);
        assert!(parts.is_short());
        parts.buffer().extend(b"0");
        parts.record_arrival(true);
        assert!(
            !parts.is_short()
                && parts
                    .next(&Request::new("POST", "/"))
                    .is_some_and(|part| part.body.len() == 11)
        );
    }
}
