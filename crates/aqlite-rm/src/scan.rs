//! A tokenizer for JSON text that keeps number tokens as written.

use crate::diag::LineIndex;
use std::borrow::Cow;
use std::fmt;

/// A token of JSON text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Token<'a> {
    /// `{`
    ObjectStart,
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// `:`
    Colon,
    /// `,`
    Comma,
    /// A string with its escapes decoded. Borrowed if it has none.
    String(Cow<'a, str>),
    /// A number as written.
    Number(&'a str),
    /// `true` or `false`
    Boolean(bool),
    /// `null`
    Null,
    /// The end of the text.
    End,
}

/// A syntax error in JSON text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// The byte offset of the error.
    pub offset: usize,
    /// The expected syntax.
    pub message: &'static str,
    /// Whether the only error is that the nesting exceeds the limit.
    pub too_deep: bool,
}

/// Formats the expected syntax and the byte offset.
impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.offset)
    }
}

impl std::error::Error for Malformed {}

impl Malformed {
    /// Formats the error with line and column of the text.
    pub fn describe(&self, text: &str) -> String {
        let (line, column) = LineIndex::new(text).line_column(self.offset);
        format!("line {line}, column {column}: {}", self.message)
    }
}

/// A position in JSON text from which tokens are read. A copy is a look-ahead.
#[derive(Clone, Copy, Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Returns a scanner before the first token. A byte order mark is skipped.
    pub fn new(text: &'a str) -> Scanner<'a> {
        Scanner {
            text,
            // The byte order mark has three bytes in UTF-8.
            at: if text.starts_with('\u{feff}') { 3 } else { 0 },
        }
    }

    /// Returns a scanner of the same text at a byte offset, which must be the start of a token.
    pub fn at(self, offset: usize) -> Scanner<'a> {
        Scanner { at: offset, ..self }
    }

    /// Returns the byte offset of the next token after [`peek`](Scanner::peek), otherwise of the
    /// end of the last token.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Returns the text that is scanned.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Skips white space and returns the first byte of the next token without consuming it.
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other,
            }
        }
    }

    /// Consumes and returns the next token.
    ///
    /// # Errors
    /// The text at this position is not a JSON token.
    pub fn next_token(&mut self) -> Result<Token<'a>, Malformed> {
        let Some(first) = self.peek() else {
            return Ok(Token::End);
        };
        let single = match first {
            b'"' => return self.string().map(Token::String),
            b'-' | b'0'..=b'9' => return self.number().map(Token::Number),
            b't' => return self.word("true", Token::Boolean(true)),
            b'f' => return self.word("false", Token::Boolean(false)),
            b'n' => return self.word("null", Token::Null),
            b'{' => Token::ObjectStart,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayStart,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            _ => return Err(self.error("expected a value")),
        };
        self.at += 1;
        Ok(single)
    }

    /// Consumes a member name and its colon, and returns the name.
    ///
    /// # Errors
    /// The next tokens are not a string and a colon.
    pub fn key(&mut self) -> Result<Cow<'a, str>, Malformed> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a member name in quotes"));
        }
        let key = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.error("expected `:`"));
        }
        self.at += 1;
        Ok(key)
    }

    /// Consumes the member name `name` and its colon if they are next and written without escapes.
    /// Returns whether it did.
    pub fn take_plain_key(&mut self, name: &str) -> bool {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(rest) = rest
            .strip_prefix('"')
            .and_then(|r| r.strip_prefix(name))
            .and_then(|r| r.strip_prefix('"'))
        else {
            return false;
        };
        let Some(rest) = rest.trim_ascii_start().strip_prefix(':') else {
            return false;
        };
        self.at = self.text.len() - rest.len();
        true
    }

    /// Skips one value of any kind and returns its text. `depth` is the maximum nesting.
    ///
    /// # Errors
    /// The value is malformed, or nested deeper.
    pub fn skip_value(&mut self, depth: usize) -> Result<&'a str, Malformed> {
        self.peek();
        let start = self.at;
        let mut open: Vec<Token<'a>> = Vec::new();
        loop {
            match self.next_token()? {
                // Empty objects and lists are complete values. `peek` skips the white space before
                // the bracket.
                Token::ObjectStart if self.peek() == Some(b'}') => self.at += 1,
                Token::ArrayStart if self.peek() == Some(b']') => self.at += 1,
                // `open` holds the closing brackets that are still expected.
                Token::ObjectStart if open.len() < depth => {
                    self.key()?;
                    open.push(Token::ObjectEnd);
                    continue;
                }
                Token::ArrayStart if open.len() < depth => {
                    open.push(Token::ArrayEnd);
                    continue;
                }
                Token::ObjectStart | Token::ArrayStart => return Err(self.too_deep()),
                Token::String(_) | Token::Number(_) | Token::Boolean(_) | Token::Null => {}
                _ => return Err(self.error("expected a value")),
            }
            if self.close_finished(&mut open)? {
                return Ok(self.text.get(start..self.at).unwrap_or_default());
            }
        }
    }

    /// Consumes the closing brackets and the comma after a value. Returns whether no bracket is
    /// open any more.
    fn close_finished(&mut self, open: &mut Vec<Token<'a>>) -> Result<bool, Malformed> {
        while let Some(end) = open.last() {
            let token = self.next_token()?;
            if token == *end {
                open.pop();
            } else if token != Token::Comma {
                return Err(self.error("expected `,` or the end of the list or object"));
            } else {
                // In an object, the next value follows a name and a colon.
                if *end == Token::ObjectEnd {
                    self.key()?;
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether a text is exactly one JSON number.
    pub fn is_number(text: &str) -> bool {
        let mut scan = Scanner { text, at: 0 };
        scan.number().is_ok() && scan.at == text.len()
    }

    /// Returns a syntax error at this position.
    pub fn error(&self, message: &'static str) -> Malformed {
        Malformed {
            offset: self.at,
            message,
            too_deep: false,
        }
    }

    pub(super) fn too_deep(&self) -> Malformed {
        Malformed {
            offset: self.at,
            message: "nested too deep",
            too_deep: true,
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn word(&mut self, word: &str, token: Token<'a>) -> Result<Token<'a>, Malformed> {
        if !self
            .text
            .get(self.at..)
            .is_some_and(|t| t.starts_with(word))
        {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(token)
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while self.byte().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.error("expected a digit"))
        } else {
            Ok(())
        }
    }

    fn number(&mut self) -> Result<&'a str, Malformed> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        // No digit may follow a leading zero. The last test of this function rejects it.
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.byte().is_some_and(|b| b.is_ascii_alphanumeric()) {
            return Err(self.error("expected the end of the number"));
        }
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Reads a string from its opening quote.
    fn string(&mut self) -> Result<Cow<'a, str>, Malformed> {
        self.at += 1;
        let plain = self.plain()?;
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        // `plain` stops at a quote or a backslash only, so an escape follows.
        let mut out = plain.to_owned();
        while self.byte() == Some(b'\\') {
            self.at += 1;
            out.push(self.escape()?);
            out.push_str(self.plain()?);
        }
        // `plain` has checked that the byte is the closing quote.
        self.at += 1;
        Ok(Cow::Owned(out))
    }

    /// Returns the characters before the next quote or backslash.
    fn plain(&mut self) -> Result<&'a str, Malformed> {
        let start = self.at;
        // Eight bytes at a time: most strings have no special byte.
        let mut rest = self.text.as_bytes().get(start..).unwrap_or_default();
        while let Some((eight, behind)) = rest
            .split_first_chunk()
            .filter(|(eight, _)| are_plain(u64::from_le_bytes(**eight)))
        {
            self.at += eight.len();
            rest = behind;
        }
        self.at += rest
            .iter()
            .position(|b| *b == b'"' || *b == b'\\' || *b < 0x20)
            .unwrap_or(rest.len());
        match self.byte() {
            Some(b'"' | b'\\') => Ok(self.text.get(start..self.at).unwrap_or_default()),
            Some(_) => Err(self.error("a control character in a string must be escaped")),
            None => Err(self.error("the string has no end")),
        }
    }

    /// Decodes the escape after a backslash.
    fn escape(&mut self) -> Result<char, Malformed> {
        let character = match self.byte() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.error("unknown escape")),
        };
        self.at += 1;
        Ok(character)
    }

    /// Decodes `uXXXX`, or a surrogate pair.
    fn unicode(&mut self) -> Result<char, Malformed> {
        let first = self.hex()?;
        // A high surrogate needs a low one behind it. `from_u32` rejects a lone low surrogate.
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.error("a lone surrogate"));
        }
        if self.byte() != Some(b'\\') {
            return Err(self.error("a lone surrogate"));
        }
        self.at += 1;
        let second = if self.byte() == Some(b'u') {
            self.hex()?
        } else {
            0
        };
        if !(0xdc00..0xe000).contains(&second) {
            return Err(self.error("a lone surrogate"));
        }
        // Each surrogate carries ten bits of the code point above 0xFFFF.
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
            .ok_or_else(|| self.error("a lone surrogate"))
    }

    fn hex(&mut self) -> Result<u32, Malformed> {
        let digits = self
            .text
            .get(self.at + 1..self.at + 5)
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits
            .and_then(|d| u32::from_str_radix(d, 16).ok())
            .ok_or_else(|| self.error("expected four hexadecimal digits"))?;
        self.at += 5;
        Ok(code)
    }
}

/// Returns whether none of eight bytes is a quote, a backslash or a control character.
///
/// SWAR technique: subtracting `limit` from each byte sets its high bit if the byte is less, by a
/// borrow. Borrows into higher bytes occur only if a lower byte matched, so the result is exact.
fn are_plain(eight: u64) -> bool {
    // The byte 0x01 in each of the eight positions.
    const EACH: u64 = u64::MAX / 255;
    let below = |bytes: u64, limit: u64| bytes.wrapping_sub(EACH * limit) & !bytes;
    let quotes = below(eight ^ (EACH * u64::from(b'"')), 1);
    let backslashes = below(eight ^ (EACH * u64::from(b'\\')), 1);
    (below(eight, 0x20) | quotes | backslashes) & (EACH * 0x80) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_plain_detects_special_bytes_at_every_position() {
        for byte in u8::MIN..=u8::MAX {
            for place in 0..8 {
                for around in [b' ', b'a', b'!', b'#', b'[', 0x7f, 0x80, 0xff] {
                    let mut eight = [around; 8];
                    eight[place] = byte;
                    let expected = byte >= 0x20 && byte != b'"' && byte != b'\\';
                    assert_eq!(are_plain(u64::from_le_bytes(eight)), expected, "{eight:?}");
                }
            }
        }
    }

    #[test]
    fn strings_of_any_length_are_scanned() {
        for length in 0..40 {
            let text = "é".repeat(length / 2) + &"x".repeat(length % 2);
            for (written, read) in [
                (format!("\"{text}\""), text.clone()),
                (format!("\"{text}\\n{text}\""), format!("{text}\n{text}")),
            ] {
                assert_eq!(
                    Scanner::new(&written).next_token(),
                    Ok(Token::String(read.into()))
                );
            }
            for broken in [
                format!("\"{text}"),
                format!("\"{text}\n\""),
                format!("\"{text}\\"),
            ] {
                assert!(Scanner::new(&broken).next_token().is_err(), "{broken}");
            }
        }
    }
}
