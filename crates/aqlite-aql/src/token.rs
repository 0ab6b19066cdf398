//! The lexer: text → tokens (AQL Release 1.1.0, `AqlLexer.g4`).
//!
//! The lexer never fails. A text that is not a token becomes [`TokenKind::Invalid`] with a
//! diagnostic, and the lexer continues behind it. So one answer reports every mistake, and a
//! half-written text still has tokens for the editor.

use super::BROKEN_INVARIANT;
use super::vocabulary::{BOOLEANS, Keyword};
use aqlite_rm::diag::{Diagnostic, Span};
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{char, digit1, none_of, one_of, satisfy};
use nom::combinator::{eof, not, opt, peek, recognize};
use nom::multi::{many0_count, many1_count};
use nom::sequence::{delimited, pair, preceded};
use nom::{IResult, Parser};

/// The most diagnostics of one text. More would not help an author, and each costs memory.
pub(crate) const DIAGNOSTICS_LIMIT: usize = 50;

/// A token of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind.
    pub kind: TokenKind,
    /// The position.
    pub span: Span,
}

/// The kinds of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenKind {
    /// A reserved word, in any case.
    Keyword(Keyword),
    /// A class, variable, attribute, alias or foreign function name.
    Identifier,
    /// `$name`.
    Parameter,
    /// `at0001.1`, `id5`.
    Code,
    /// `openEHR-EHR-OBSERVATION.blood_pressure.v2`, with or without a namespace.
    Archetype,
    /// `snomed_ct(3.1)::313267000|rubric|`.
    Term,
    /// `terminology://…`, `ehr:…`.
    Uri,
    /// `{/…/}`.
    Regex,
    /// A quoted string, escapes unresolved.
    Text,
    /// Digits, optionally with an exponent.
    Integer,
    /// Digits with a decimal point.
    Real,
    /// `true`, `false`.
    Boolean,
    /// `= != < <= > >=`.
    Comparison,
    /// Any other sign: `, / ( ) [ ] { } * -`.
    Sign(char),
    /// `-- …`, to the end of the line.
    Comment,
    /// Not a token; the lexer has reported it.
    Invalid,
    /// The end of the text, behind the last token.
    End,
}

impl TokenKind {
    /// Returns the name of the kind, as `explain` shows it.
    pub fn name(self) -> &'static str {
        match self {
            TokenKind::Keyword(_) => "keyword",
            TokenKind::Identifier => "name",
            TokenKind::Parameter => "parameter",
            TokenKind::Code => "code",
            TokenKind::Archetype => "archetype",
            TokenKind::Term => "term",
            TokenKind::Uri => "address",
            TokenKind::Regex => "regular expression",
            TokenKind::Text => "text",
            TokenKind::Integer | TokenKind::Real => "number",
            TokenKind::Boolean => "boolean",
            TokenKind::Comparison => "comparison",
            TokenKind::Sign(_) => "sign",
            TokenKind::Comment => "comment",
            TokenKind::Invalid => "invalid",
            TokenKind::End => "end",
        }
    }
}

/// Splits a text into tokens. Comments are tokens too, and the last token is [`TokenKind::End`].
///
/// The diagnostics have the codes AQL0102 (a character that AQL does not have), AQL0103 (a string
/// that is not closed), AQL0104 (an escape), AQL0107 (a comment) and AQL0108 (an archetype id
/// with a wrong concept or version), or [`BROKEN_INVARIANT`].
pub fn tokens(text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    // A token with the blank behind it has about five bytes.
    let mut out = Vec::with_capacity(text.len() / 5);
    let mut diagnostics = Vec::new();
    let mut rest = text;
    loop {
        // Editors of some systems put a byte order mark in front of a text.
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{feff}']);
        let start = text.len() - rest.len();
        if rest.is_empty() {
            out.push(Token {
                kind: TokenKind::End,
                span: Span::new(start, start),
            });
            return (out, diagnostics);
        }
        let (kind, len) = match token(rest) {
            Ok((after, kind)) => (kind, rest.len() - after.len()),
            Err(_) => {
                let (len, diagnostic) = foreign(rest, start);
                if diagnostics.len() < DIAGNOSTICS_LIMIT {
                    diagnostics.push(diagnostic);
                }
                (TokenKind::Invalid, len)
            }
        };
        // A token without bytes would repeat the loop for ever.
        let len = len.max(1);
        let Some((raw, after)) = rest.split_at_checked(len) else {
            let message = "an invariant of the lexer is broken: a token ends inside a character";
            let span = Span::new(start, text.len());
            diagnostics.push(Diagnostic::error(BROKEN_INVARIANT, span, message));
            rest = "";
            continue;
        };
        // The escapes of a string are checked here, where its position is known.
        if kind == TokenKind::Text && diagnostics.len() < DIAGNOSTICS_LIMIT {
            diagnostics.extend(
                unescape(raw, Escapes::Text)
                    .1
                    .into_iter()
                    .map(|e| e.at(start)),
            );
        }
        out.push(Token {
            kind,
            span: Span::new(start, start + len),
        });
        rest = after;
    }
}

/// Returns whether a text is an archetype id in the syntax of AQL:
/// `[namespace::]model-package-CLASS.concept.vN`.
pub fn is_archetype_id(text: &str) -> bool {
    archetype(text).is_ok_and(|(rest, _)| rest.is_empty())
}

/// Returns whether a text is a node code: `at0001`, `at0004.1`, `id5`.
pub fn is_node_code(text: &str) -> bool {
    code(text).is_ok_and(|(rest, _)| rest.is_empty())
}

/// Returns whether a text is a number as AQL writes it, with or without a minus sign.
pub(crate) fn is_number(text: &str) -> bool {
    number(text.strip_prefix('-').unwrap_or(text)).is_ok_and(|(rest, _)| rest.is_empty())
}

/// The use of a string, which decides how its escapes are resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Escapes {
    /// A value: every escape becomes its character.
    Text,
    /// A LIKE pattern: `\?` remains, because the pattern reads it as the question mark itself.
    Pattern,
}

/// An escape that AQL does not have, with its offset in the raw string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadEscape {
    offset: usize,
    found: String,
}

impl BadEscape {
    fn at(self, start: usize) -> Diagnostic {
        let from = start + self.offset;
        let help = if matches!(self.found.as_str(), "\\*" | "\\%" | "\\_") {
            let sign = self.found.trim_start_matches('\\');
            format!("a backslash before `{sign}` is written `\\\\{sign}`")
        } else if self.found == "\\u" {
            "`\\u` needs four hexadecimal digits; a character above U+FFFF is a surrogate pair, such as `\\uD83D\\uDE00`".to_owned()
        } else {
            "known escapes: `\\' \\\" \\? \\\\ \\a \\b \\f \\n \\r \\t \\v`, `\\uXXXX`; a backslash itself is `\\\\`".to_owned()
        };
        Diagnostic::error(
            "AQL0104",
            Span::new(from, from + self.found.len()),
            format!("`{}` is not an escape of AQL", self.found),
        )
        .with_help(help)
    }
}

/// Returns the value of a quoted string, and its invalid escapes. An invalid escape remains as
/// written.
pub fn unescape(raw: &str, escapes: Escapes) -> (String, Vec<BadEscape>) {
    let mut out = String::with_capacity(raw.len());
    let mut bad = Vec::new();
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    let mut rest = inner;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        out.push_str(plain);
        let (value, len) = escape(escaped, escapes);
        if let Some(value) = value {
            out.push_str(&value);
        } else {
            let found = format!("\\{}", escaped.get(..len).unwrap_or_default());
            out.push_str(&found);
            bad.push(BadEscape {
                offset: 1 + inner.len() - escaped.len() - 1,
                found,
            });
        }
        rest = escaped.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    (out, bad)
}

/// Returns the value of the escape behind a backslash, and its length in bytes.
fn escape(text: &str, escapes: Escapes) -> (Option<String>, usize) {
    let Some(first) = text.chars().next() else {
        return (None, 0);
    };
    let plain = match first {
        '\'' | '"' | '\\' => Some(first),
        '?' if escapes == Escapes::Pattern => return (Some("\\?".to_owned()), 1),
        '?' => Some('?'),
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        _ => None,
    };
    if let Some(plain) = plain {
        return (Some(plain.to_string()), 1);
    }
    match numeric_escape(text, first) {
        Some((value, length)) => (Some(value.to_string()), length),
        None => (None, first.len_utf8()),
    }
}

/// Returns the character of `u00e9` or of an octal escape such as `351`, and its length in bytes.
///
/// Two escapes `\uD83D\uDE00` that are a surrogate pair of UTF-16 are one character.
fn numeric_escape(text: &str, first: char) -> Option<(char, usize)> {
    if first == 'u'
        && let Some(pair) = surrogate_pair(text)
    {
        return Some((pair, PAIR));
    }
    let (digits, radix, skip) = match first {
        'u' => (text.get(1..5)?, 16, 1),
        '0'..='7' => {
            // `\377` is the largest octal escape: above 3 a third digit would exceed one byte.
            let most = if first <= '3' { 3 } else { 2 };
            let digits = text.bytes().take(most);
            let length = digits.take_while(|b| (b'0'..=b'7').contains(b)).count();
            (text.get(..length)?, 8, 0)
        }
        _ => return None,
    };
    // `from_str_radix` accepts a sign, which an escape does not have.
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let value = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
    Some((value, skip + digits.len()))
}

/// The bytes of the escapes of a surrogate pair, without the first backslash.
const PAIR: usize = r"uD83D\uDE00".len();

/// Returns the character of `uD83D\uDE00`.
fn surrogate_pair(text: &str) -> Option<char> {
    let (high, low) = text.get(..PAIR)?.split_once(r"\u")?;
    let unit = |digits: &str| {
        let is_hex = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        is_hex
            .then(|| u16::from_str_radix(digits, 16).ok())
            .flatten()
    };
    let units = [unit(high.strip_prefix('u')?)?, unit(low)?];
    let mut characters = char::decode_utf16(units);
    let first = characters.next()?.ok()?;
    // Two units are one character only if they are a pair.
    characters.next().is_none().then_some(first)
}

fn token(input: &str) -> IResult<&str, TokenKind> {
    let name = input.len() - input.trim_start_matches(is_word).len();
    match (input.as_bytes().first(), input.as_bytes().get(name)) {
        // Fast path for the most frequent tokens: a word in front of one of these characters cannot
        // be the beginning of an archetype id, a term or a URI.
        (
            Some(first),
            Some(b' ' | b'/' | b'[' | b']' | b',' | b')' | b'=' | b'\n' | b'\r') | None,
        ) if first.is_ascii_alphabetic() => word(input),
        _ => any_token(input),
    }
}

fn any_token(input: &str) -> IResult<&str, TokenKind> {
    use TokenKind as K;
    // The order matters: ids, terms and addresses begin like words, and the longest match wins.
    alt((
        comment.map(|_| K::Comment),
        alt((quoted('\''), quoted('"'))).map(|_| K::Text),
        recognize((char('$'), identifier)).map(|_| K::Parameter),
        regex.map(|_| K::Regex),
        archetype.map(|_| K::Archetype),
        term.map(|_| K::Term),
        uri.map(|_| K::Uri),
        // Without this test, an archetype id without version would become a word and several signs,
        // and its error would name a sign.
        preceded(not(almost_archetype), word),
        number,
        (
            alt((
                tag("!="),
                tag("<="),
                tag(">="),
                tag("="),
                tag("<"),
                tag(">"),
            )),
            // `==`, `<>` and the like are reported as a whole.
            not(one_of("=<>")),
        )
            .map(|_| K::Comparison),
        (not(tag("--")), one_of(",/()[]{}*-")).map(|(_, c)| K::Sign(c)),
    ))
    .parse(input)
}

fn comment(input: &str) -> IResult<&str, &str> {
    recognize((
        tag("--"),
        peek(alt((recognize(one_of(" \r\n")), eof))),
        take_while(|c| c != '\n' && c != '\r'),
    ))
    .parse(input)
}

fn quoted<'a>(
    quote: char,
) -> impl Parser<&'a str, Output = &'a str, Error = nom::error::Error<&'a str>> {
    let plain = take_while1(move |c| c != quote && c != '\\');
    recognize(delimited(
        char(quote),
        many0_count(alt((plain, recognize(pair(char('\\'), none_of("")))))),
        char(quote),
    ))
}

fn identifier(input: &str) -> IResult<&str, &str> {
    recognize(pair(
        satisfy(|c| c.is_ascii_alphabetic()),
        take_while(is_word),
    ))
    .parse(input)
}

fn word(input: &str) -> IResult<&str, TokenKind> {
    let (rest, text) = identifier(input)?;
    if let Ok((after, code)) = code(input)
        // `at0001.1` is a code, `at0001x` a name.
        && code.len() >= text.len()
    {
        return Ok((after, TokenKind::Code));
    }
    let kind = match Keyword::parse(text) {
        Some(keyword) => TokenKind::Keyword(keyword),
        None if BOOLEANS.iter().any(|b| b.eq_ignore_ascii_case(text)) => TokenKind::Boolean,
        None => TokenKind::Identifier,
    };
    Ok((rest, kind))
}

fn code(input: &str) -> IResult<&str, &str> {
    recognize((
        alt((tag("at"), tag("id"))),
        digit1,
        many0_count(pair(char('.'), digit1)),
    ))
    .parse(input)
}

fn number(input: &str) -> IResult<&str, TokenKind> {
    let (rest, integer) = opt(digit1).parse(input)?;
    let (rest, fraction) = opt(pair(char('.'), digit1)).parse(rest)?;
    let (rest, _) = opt((one_of("eE"), opt(one_of("+-")), digit1)).parse(rest)?;
    match (integer, fraction) {
        // `.5` is a number, a point or an exponent alone is not.
        (None, None) => Err(nom::Err::Error(nom::error::Error::new(
            input,
            nom::error::ErrorKind::Digit,
        ))),
        (Some(_), None) => Ok((rest, TokenKind::Integer)),
        (_, Some(_)) => Ok((rest, TokenKind::Real)),
    }
}

fn archetype(input: &str) -> IResult<&str, &str> {
    let label = || {
        pair(
            satisfy(|c: char| c.is_ascii_alphabetic()),
            take_while(|c| is_name(c) || c == '%'),
        )
    };
    let namespace = (label(), many0_count(pair(char('.'), label())), tag("::"));
    let release = (
        char('v'),
        digit1,
        many0_count(pair(char('.'), digit1)),
        opt((
            alt((tag("-rc"), tag("-alpha"))),
            opt(pair(char('.'), digit1)),
        )),
    );
    let concept = pair(satisfy(|c| c.is_ascii_alphabetic()), take_while(is_name));
    recognize((
        opt(namespace),
        identifier,
        char('-'),
        identifier,
        char('-'),
        identifier,
        char('.'),
        concept,
        char('.'),
        release,
    ))
    .parse(input)
}

/// Reads a text that begins like an archetype id, but has a concept or version that is none.
fn almost_archetype(input: &str) -> IResult<&str, &str> {
    let concept = take_while1(|c: char| c.is_alphanumeric() || "_-.".contains(c));
    recognize((
        identifier,
        char('-'),
        identifier,
        char('-'),
        identifier,
        char('.'),
        concept,
    ))
    .parse(input)
}

fn term(input: &str) -> IResult<&str, &str> {
    let part = || take_while1(|c| is_name(c) || c == '.');
    let rubric = delimited(
        char('|'),
        take_while1(|c| !matches!(c, '|' | '[' | ']')),
        char('|'),
    );
    recognize((
        part(),
        opt(delimited(char('('), part(), char(')'))),
        tag("::"),
        part(),
        opt(rubric),
    ))
    .parse(input)
}

fn uri(input: &str) -> IResult<&str, &str> {
    let scheme = pair(
        satisfy(|c| c.is_ascii_alphabetic()),
        take_while(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c)),
    );
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#@!$&'()*+,;=%".contains(c);
    // Only a host may have brackets: it is an address of IPv6.
    let address = take_while1(|c: char| c.is_ascii_hexdigit() || ":.".contains(c));
    let host = (tag("//["), address, char(']'), take_while(allowed));
    recognize((
        scheme,
        char(':'),
        alt((recognize(host), take_while1(allowed))),
    ))
    .parse(input)
}

fn regex(input: &str) -> IResult<&str, &str> {
    let blank = || take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
    let piece = alt((
        recognize(preceded(char('\\'), none_of("\r\n"))),
        recognize(none_of("/\r\n")),
    ));
    let message = (
        char(';'),
        blank(),
        alt((quoted('\''), quoted('"'))),
        blank(),
    );
    recognize((
        char('{'),
        blank(),
        char('/'),
        many1_count(piece),
        char('/'),
        blank(),
        opt(message),
        char('}'),
    ))
    .parse(input)
}

/// Returns the pattern between the slashes of a [`TokenKind::Regex`] token.
pub fn regex_body(raw: &str) -> &str {
    let from = raw.find('/').map_or(raw.len(), |i| i + 1);
    let inner = raw.get(from..).unwrap_or_default();
    let escaped = |i: usize| {
        inner
            .get(..i)
            .unwrap_or_default()
            .bytes()
            .rev()
            .take_while(|b| *b == b'\\')
            .count()
            // A slash behind an odd number of backslashes is escaped.
            % 2
            == 1
    };
    let to = inner
        .match_indices('/')
        .map(|(i, _)| i)
        .find(|i| !escaped(*i))
        .unwrap_or(inner.len());
    inner.get(..to).unwrap_or_default()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_name(c: char) -> bool {
    is_word(c) || c == '-'
}

/// Describes a text that does not begin a token: its length, and a diagnostic with the remedy.
fn foreign(rest: &str, start: usize) -> (usize, Diagnostic) {
    let known = open_string(rest)
        .or_else(|| open_comment(rest))
        .or_else(|| wrong_archetype(rest));
    let foreign = known.unwrap_or_else(|| foreign_sign(rest));
    let span = Span::new(start, start + foreign.len);
    let mut diagnostic = Diagnostic::error(foreign.code, span, foreign.message);
    diagnostic.help = foreign.help;
    (foreign.len, diagnostic)
}

/// A text that does not begin a token.
struct Foreign {
    len: usize,
    code: &'static str,
    message: String,
    help: Option<String>,
}

/// Returns the length of the first line. An error that runs to the end of the text would hide all
/// that follows, so it ends with the line.
fn line_len(rest: &str) -> usize {
    rest.find(['\r', '\n']).unwrap_or(rest.len())
}

fn open_string(rest: &str) -> Option<Foreign> {
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    Some(Foreign {
        len: line_len(rest),
        code: "AQL0103",
        message: "the string is not closed".to_owned(),
        help: Some(format!(
            "close it with `{quote}`; a quote inside is written `\\{quote}`"
        )),
    })
}

fn open_comment(rest: &str) -> Option<Foreign> {
    rest.starts_with("--").then(|| Foreign {
        len: line_len(rest),
        code: "AQL0107",
        message: "a comment starts with `--` and a space".to_owned(),
        help: Some("write a space behind `--`".to_owned()),
    })
}

/// Describes an archetype id with a wrong concept, or without a version as AQL writes it.
fn wrong_archetype(rest: &str) -> Option<Foreign> {
    let (_, id) = almost_archetype(rest).ok()?;
    let (model, concept) = id.split_once('.')?;
    let is_version = |text: &str| matches!(text.as_bytes(), [b'.', b'v' | b'V', b'0'..=b'9', ..]);
    let mut ends = concept
        .match_indices('.')
        .map(|(at, _)| concept.split_at(at));
    let (concept, version) = ends.find(|(_, text)| is_version(text)).unwrap_or_else(|| {
        let concept = concept.trim_end_matches('.');
        (concept.strip_suffix(".v").unwrap_or(concept), "")
    });
    let is_wrong = |(at, c): &(usize, char)| !is_name(*c) || (*at == 0 && !c.is_ascii_alphabetic());
    let (problem, help) = match (concept.char_indices().find(is_wrong), version) {
        (Some((_, c)), _) => (
            format!("has the concept `{concept}`, with `{c}`"),
            "a concept is a letter, then letters, digits, `_` and `-`; letters are a to z"
                .to_owned(),
        ),
        (None, "") => (
            "has no version".to_owned(),
            format!("write its version: `{model}.{concept}.v1`"),
        ),
        (None, version) => (
            "has a version with a capital letter".to_owned(),
            format!("write `{model}.{concept}{}`", version.to_ascii_lowercase()),
        ),
    };
    Some(Foreign {
        len: id.len(),
        code: "AQL0108",
        message: format!("the archetype id `{id}` {problem}"),
        help: Some(help),
    })
}

/// Describes a sign that AQL does not have, with its meaning in other languages where there is one.
fn foreign_sign(rest: &str) -> Foreign {
    let first = rest.chars().next().unwrap_or_default();
    let (len, help) = match rest.as_bytes() {
        [b'<', b'>', ..] => (2, Some("not equal is written `!=`")),
        [b'=', b'=', ..] => (2, Some("equality is written `=`")),
        [b'!' | b'=' | b'<' | b'>', b'=' | b'<' | b'>', ..] => (
            2,
            Some("the comparisons are `=`, `!=`, `<`, `<=`, `>`, `>=`"),
        ),
        [b'.', next, ..] if next.is_ascii_alphabetic() => {
            (1, Some("the steps of a path are separated by `/`"))
        }
        [single, ..] => (first.len_utf8(), single_sign(*single)),
        [] => (0, None),
    };
    let help = help.or_else(|| {
        first
            .is_whitespace()
            .then_some("replace it by an ordinary space")
    });
    // A blank cannot be seen in a message, so its code point is shown.
    let shown = if first.is_whitespace() || first.is_control() {
        format!("U+{:04X}", u32::from(first))
    } else {
        rest.get(..len).unwrap_or_default().to_owned()
    };
    Foreign {
        len,
        code: "AQL0102",
        message: format!("`{shown}` does not belong to AQL"),
        help: help.map(str::to_owned),
    }
}

fn single_sign(sign: u8) -> Option<&'static str> {
    Some(match sign {
        b'.' => {
            "a number needs digits on the right of its point, an archetype id a version such as `.v1`"
        }
        b'+' => "numbers carry no plus sign, and AQL has no arithmetic",
        b';' => "a query ends without a semicolon",
        b':' => "parameters are written `$name`",
        b'|' => "AQL has no intervals: use two comparisons joined by AND",
        b'$' => "a parameter is `$` and a name: a letter, then letters, digits or `_`",
        b'_' => "a name starts with a letter",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        tokens(text)
            .0
            .iter()
            .map(|t| t.kind)
            .filter(|k| *k != TokenKind::End)
            .collect()
    }

    #[test]
    fn the_longest_word_wins() {
        use TokenKind as K;
        assert_eq!(
            kinds("at0001 at0001x id at1.2"),
            [K::Code, K::Identifier, K::Identifier, K::Code]
        );
        assert_eq!(
            kinds("openEHR-EHR-EVALUATION.problem-diagnosis.v1.0.0-rc.1"),
            [K::Archetype]
        );
        assert_eq!(
            kinds("org.acme::openEHR-EHR-EVALUATION.x.v1"),
            [K::Archetype]
        );
        assert_eq!(
            kinds("icd10AM::F60.1|a b| terminology://x/y?z=1"),
            [K::Term, K::Uri]
        );
        assert_eq!(kinds("a-b"), [K::Identifier, K::Sign('-'), K::Identifier]);
        assert_eq!(
            kinds("1.5e-3 .5 7 1c"),
            [K::Real, K::Real, K::Integer, K::Integer, K::Identifier]
        );
        assert_eq!(
            kinds("c -- note\n--\n --"),
            [K::Identifier, K::Comment, K::Comment, K::Comment]
        );
        assert_eq!(kinds("{/a\\/b.*/}"), [K::Regex]);
    }

    #[test]
    fn escapes_have_values() {
        assert_eq!(
            unescape(r"'it\'s \u00e9\n\101 \?'", Escapes::Text).0,
            "it's é\nA ?"
        );
        assert_eq!(unescape(r"'a\?b\\*'", Escapes::Pattern).0, r"a\?b\*");
        assert_eq!(tokens(r"'a\*b'").1.len(), 1);
        assert_eq!(
            unescape(r"'\uD83D\uDE00 \ud835\udd38'", Escapes::Text).0,
            "😀 𝔸"
        );
        for lone in [
            r"'\ud800'",
            r"'\ude00\ud83d'",
            r"'\ud83dx'",
            r"'\ud83d\u00e9'",
        ] {
            assert!(!tokens(lone).1.is_empty(), "{lone}");
        }
    }

    #[test]
    fn invalid_text_is_reported_and_skipped() {
        let (_, diagnostics) = tokens("SELECT\u{a0}c --x\n= 'open");
        let codes: Vec<&str> = diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(codes, ["AQL0102", "AQL0107", "AQL0103"]);
    }

    #[test]
    fn a_regex_keeps_its_escaped_slash() {
        assert_eq!(regex_body(r"{ /a\/b/ ; 'x' }"), r"a\/b");
    }
}
