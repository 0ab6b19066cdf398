//! A parser of operational templates in ADL 2 text.
//!
//! The text is converted to the elements of its XML form, which [`super::opt2`] reads. Converted
//! are the header, `language`, `definition` (cADL), `terminology` and `component_terminologies`
//! (ODIN). The sections `description`, `rules`, `annotations` and `rm_overlay` do not constrain
//! documents and are skipped. Sources: openEHR AM, ADL 2 (chapters 6 cADL and 9 ADL) and ODIN.
//!
//! Every element has the position of its text, so diagnostics about constraints have line and
//! column of the ADL text.

use super::xml::{Document, Elements, MAX_DEPTH};
use aqlite_rm::diag::{Diagnostic, Span};
use nom::branch::alt;
use nom::bytes::complete::{tag, take_until, take_while, take_while1};
use nom::character::complete::char;
use nom::combinator::recognize;
use nom::multi::many0_count;
use nom::sequence::{delimited, pair};
use nom::{IResult, Parser};

mod definition;
mod odin;
mod value;

use odin::Attribute;

/// The keywords of sections, each alone on its line.
const SECTIONS: [&str; 11] = [
    "specialize",
    "specialise",
    "language",
    "description",
    "definition",
    "rules",
    "terminology",
    "annotations",
    "component_terminologies",
    "component_ontologies",
    "rm_overlay",
];

/// The length of the shortest of them.
const MIN_SECTION_NAME: usize = "rules".len();

/// The maximum number of objects of a definition, and of values of ODIN, in one text. Each needs
/// many times the time and memory of its shortest text.
const ITEMS: usize = 200_000;

/// Returns whether a text is to be read as ADL rather than XML.
pub(super) fn is_adl(text: &str) -> bool {
    !text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('<')
}

/// Parses a text into the elements of its XML form.
///
/// # Errors
/// One diagnostic, because the rest of a malformed text is unreliable: `TPL0105` for text that is
/// not ADL 2, `TPL0201` for another kind of artefact than an operational template, `TPL0103` and
/// `TPL0104` for text that is too deep or too large.
pub(super) fn document(source: &str) -> Result<Document<'_>, Diagnostic> {
    let mut elements = Elements::of(source)?;
    let sections = Sections::of(source)?;
    let root = elements.add(None, "operational_template", sections.header)?;
    header(&mut elements, root, source, sections.header)?;
    let mut items = 0;
    for (keyword, span) in &sections.found {
        let mut reader = AdlReader {
            source,
            at: span.start,
            end: span.end,
            depth: 0,
            items,
        };
        section(&mut elements, root, &mut reader, (keyword, *span))?;
        items = reader.items;
    }
    Ok(elements.into_document())
}

/// Converts a section, if it constrains or names parts of documents.
fn section<'a>(
    elements: &mut Elements<'a>,
    root: usize,
    reader: &mut AdlReader<'a>,
    (keyword, span): (&str, Span),
) -> Result<(), Diagnostic> {
    match keyword {
        "definition" => {
            reader.object(elements, root, "definition")?;
            reader.end()
        }
        "language" => language(elements, root, &reader.attributes()?),
        "terminology" => {
            let terminology = elements.add(Some(root), "terminology", span)?;
            // Some tools omit the keyword of the section behind the terminology.
            let all = reader.attributes()?.into_iter();
            let (outer, own): (Vec<_>, Vec<_>) = all.partition(|a| is_component(&a.name));
            terms(elements, terminology, &own)?;
            components(elements, root, outer)
        }
        "component_terminologies" | "component_ontologies" => {
            components(elements, root, reader.attributes()?)
        }
        _ => Ok(()),
    }
}

fn broken(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("TPL0105", span, message)
        .with_help("send the operational template as an ADL 2 tool writes it, as text or as XML")
}

/// The header line, the id below it, and the sections by keyword.
struct Sections {
    header: Span,
    found: Vec<(&'static str, Span)>,
}

impl Sections {
    fn of(source: &str) -> Result<Sections, Diagnostic> {
        let starts = section_starts(source);
        let first = starts.first().map_or(source.len(), |start| start.line);
        // A section ends where the next one starts, the last one at the end of the text.
        let ends = starts.iter().skip(1).map(|start| start.line);
        let found: Vec<(&str, Span)> = starts
            .iter()
            .zip(ends.chain([source.len()]))
            .map(|(start, end)| (start.keyword, Span::new(start.body, end)))
            .collect();
        // Later sections would replace earlier ones silently.
        for (index, (keyword, span)) in found.iter().enumerate() {
            if found.iter().take(index).any(|(other, _)| other == keyword) {
                let message = format!("the section `{keyword}` occurs twice");
                return Err(broken(*span, message));
            }
        }
        Ok(Sections {
            header: Span::new(0, first),
            found,
        })
    }
}

/// The start of a section, as offsets of its keyword's line and of the text below.
struct SectionStart {
    keyword: &'static str,
    line: usize,
    body: usize,
}

/// Returns the starts of sections. Keywords count only on a line of their own and outside of texts.
///
/// A text of 8 MB may have as many lines as bytes. So a line is compared with the keywords only if
/// it may be one, and blank lines and comments cost no more than the search of their end.
fn section_starts(source: &str) -> Vec<SectionStart> {
    let mut starts = Vec::new();
    let (mut at, mut is_in_text) = (0, false);
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        let length = match rest.as_bytes() {
            [b'\n', ..] => 1,
            _ => rest.find('\n').map_or(rest.len(), |end| end + 1),
        };
        let line = rest.get(..length).unwrap_or_default();
        let keyword = if is_in_text { None } else { keyword(line) };
        starts.extend(keyword.map(|keyword| SectionStart {
            keyword,
            line: at,
            body: at + length,
        }));
        // Quoted texts of ODIN may span lines, and contain lines that look like keywords.
        is_in_text = ends_in_text(line.as_bytes(), is_in_text);
        at += length;
    }
    starts
}

/// Returns the keyword that a line consists of.
fn keyword(line: &str) -> Option<&'static str> {
    let is_possible =
        line.len() >= MIN_SECTION_NAME && line.starts_with(|c: char| c.is_ascii_lowercase());
    // Space in front of a keyword is not allowed.
    let word = is_possible.then(|| line.trim_end())?;
    SECTIONS.iter().copied().find(|keyword| word == *keyword)
}

/// Returns whether a line ends inside a quoted text, which may span lines. Comments end with their
/// line.
fn ends_in_text(line: &[u8], mut is_in_text: bool) -> bool {
    let mut bytes = line.iter();
    let mut before = b' ';
    // All symbols are ASCII, whose bytes are no parts of other characters.
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' if is_in_text => drop(bytes.next()),
            b'"' => is_in_text = !is_in_text,
            b'-' if !is_in_text && bytes.as_slice().first() == Some(&b'-') => return false,
            // A slash starts an expression only directly behind a brace. Elsewhere it is a part of
            // a path.
            b'/' if !is_in_text && before == b'{' => skip_expression(&mut bytes),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    is_in_text
}

/// Skips a regular expression behind its first slash. It may contain quotes.
fn skip_expression<'b>(bytes: &mut impl Iterator<Item = &'b u8>) {
    while let Some(inner) = bytes.next() {
        match inner {
            b'\\' => drop(bytes.next()),
            b'/' => return,
            _ => {}
        }
    }
}

/// Parses `operational_template (adl_version=2.0.6; …)` and the id of the template.
fn header<'a>(
    elements: &mut Elements<'a>,
    root: usize,
    source: &'a str,
    span: Span,
) -> Result<(), Diagnostic> {
    let text = source.get(span.start..span.end).unwrap_or_default();
    let mut reader = AdlReader {
        source,
        at: text.len() - text.trim_start_matches('\u{feff}').len(),
        end: span.end,
        depth: 0,
        items: 0,
    };
    let start = reader.place();
    check_keyword(reader.word(), start)?;
    if reader.eats("(") {
        let place = reader.place();
        let inside = reader
            .until(")")
            .ok_or_else(|| broken(place, "the `(` behind `operational_template` is not closed"))?;
        if let Some(uid) = header_value(inside, "uid") {
            elements.text_child(root, "uid", uid, place)?;
        }
    }
    reader.space();
    let place = reader.place();
    let id = reader.rest().split(char::is_whitespace).next();
    let id = id.filter(|id| !id.is_empty()).ok_or_else(|| {
        let message = "the id of the template is missing behind the first line";
        broken(place, message)
    })?;
    elements.text_child(root, "archetype_id", id, place)
}

/// Returns a value of the header: `2.0.6` for `adl_version` of `adl_version=2.0.6; uid=…`.
fn header_value<'t>(header: &'t str, wanted: &str) -> Option<&'t str> {
    let mut parts = header.split(';').filter_map(|part| part.split_once('='));
    let found = parts.find(|(name, _)| name.trim() == wanted);
    found.map(|(_, value)| value.trim())
}

/// Checks the first word of a text, which names the kind of artefact.
fn check_keyword(word: Option<&str>, place: Span) -> Result<(), Diagnostic> {
    match word {
        Some("operational_template") => Ok(()),
        Some(other @ ("archetype" | "template" | "template_overlay")) => {
            let message = format!(
                "this is a source artefact (`{other}`), which refers to others: an operational template is needed"
            );
            Err(Diagnostic::error("TPL0201", place, message)
                .with_help("flatten it in an ADL 2 tool, and send the `operational_template`"))
        }
        _ => {
            let message = "the text does not begin with `operational_template`";
            Err(Diagnostic::error("TPL0201", place, message)
                .with_help("send an operational template of ADL 2"))
        }
    }
}

/// Parses `original_language = <[ISO_639-1::en]>`.
fn language<'a>(
    elements: &mut Elements<'a>,
    root: usize,
    all: &[Attribute],
) -> Result<(), Diagnostic> {
    let Some(found) = all
        .iter()
        .find(|attribute| attribute.name == "original_language")
    else {
        return Ok(());
    };
    let code = found.value.texts().next().unwrap_or_default();
    let language = elements.add(Some(root), "original_language", found.place)?;
    elements.text_child(
        language,
        "code_string",
        // The terminology may be in front of the code: `openehr::524`.
        code.rsplit("::").next().unwrap_or_default(),
        found.place,
    )
}

/// Converts the terms, bindings and value sets of a terminology.
fn terms<'a>(
    elements: &mut Elements<'a>,
    parent: usize,
    all: &[Attribute],
) -> Result<(), Diagnostic> {
    for attribute in all {
        let parts = attribute.value.attributes();
        match attribute.name.as_str() {
            "term_definitions" => {
                for language in parts {
                    language_terms(elements, parent, language)?;
                }
            }
            "term_bindings" => {
                for set in parts {
                    term_bindings(elements, parent, set)?;
                }
            }
            "value_sets" => {
                for set in parts {
                    value_set(elements, parent, set)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Converts the terms of one language.
fn language_terms<'a>(
    elements: &mut Elements<'a>,
    parent: usize,
    language: &Attribute,
) -> Result<(), Diagnostic> {
    let set = elements.add(Some(parent), "term_definitions", language.place)?;
    elements.attribute(set, "language", &language.name);
    for term in language.value.attributes() {
        let item = elements.add(Some(set), "items", term.place)?;
        elements.attribute(item, "code", &term.name);
        for name in ["text", "description"] {
            let mut parts = term.value.attributes().iter();
            if let Some(found) = parts.find(|a| a.name == name) {
                let text = found.value.texts().next().unwrap_or_default();
                elements.text_child(item, name, text, found.place)?;
            }
        }
    }
    Ok(())
}

/// Converts the bindings of codes to one terminology.
fn term_bindings<'a>(
    elements: &mut Elements<'a>,
    parent: usize,
    set: &Attribute,
) -> Result<(), Diagnostic> {
    let element = elements.add(Some(parent), "term_bindings", set.place)?;
    elements.attribute(element, "terminology", &set.name);
    for binding in set.value.attributes() {
        let item = elements.add(Some(element), "items", binding.place)?;
        elements.attribute(item, "code", &binding.name);
        let target = binding.value.texts().next().unwrap_or_default();
        elements.text_child(item, "value", target, binding.place)?;
    }
    Ok(())
}

/// Converts the members of one value set.
fn value_set<'a>(
    elements: &mut Elements<'a>,
    parent: usize,
    set: &Attribute,
) -> Result<(), Diagnostic> {
    let element = elements.add(Some(parent), "value_sets", set.place)?;
    elements.attribute(element, "id", &set.name);
    let parts = set.value.attributes().iter();
    let members = parts.filter(|a| a.name == "members");
    for member in members.flat_map(|a| a.value.texts()) {
        elements.text_child(element, "members", member, set.place)?;
    }
    Ok(())
}

/// Returns whether an attribute has the terminologies of the archetypes used.
fn is_component(name: &str) -> bool {
    matches!(name, "component_terminologies" | "component_ontologies")
}

/// Converts the terminologies of the archetypes used, by archetype id.
fn components<'a>(
    elements: &mut Elements<'a>,
    root: usize,
    all: Vec<Attribute>,
) -> Result<(), Diagnostic> {
    for attribute in all {
        let own = if is_component(&attribute.name) {
            attribute.value.into_attributes()
        } else {
            vec![attribute]
        };
        for component in own {
            let element = elements.add(Some(root), "component_terminologies", component.place)?;
            elements.attribute(element, "archetype_id", &component.name);
            terms(elements, element, component.value.attributes())?;
        }
    }
    Ok(())
}

/// A recursive-descent reader of a part of the text.
struct AdlReader<'a> {
    source: &'a str,
    at: usize,
    end: usize,
    depth: usize,
    /// Objects and values of ODIN that were read, also in earlier sections.
    items: usize,
}

fn word(text: &str) -> IResult<&str, &str> {
    recognize(pair(
        take_while1(|c: char| c.is_ascii_alphabetic() || c == '_'),
        take_while(|c: char| c.is_ascii_alphanumeric() || c == '_'),
    ))
    .parse(text)
}

/// Returns the length of the white space and comments at the start of a text.
fn space(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        if !rest.starts_with("--") {
            return text.len() - rest.len();
        }
        let end = rest.find('\n').unwrap_or(rest.len());
        rest = rest.get(end..).unwrap_or_default();
    }
}

/// Matches a quoted text and keeps its escapes.
fn quoted(text: &str) -> IResult<&str, &str> {
    let inside = recognize(many0_count(alt((
        recognize(pair(char('\\'), nom::character::complete::anychar)),
        take_while1(|c| c != '"' && c != '\\'),
    ))));
    delimited(char('"'), inside, char('"')).parse(text)
}

/// Matches a regular expression between slashes or carets, including the delimiters.
fn expression(text: &str) -> IResult<&str, &str> {
    fn between(delimiter: char) -> impl FnMut(&str) -> IResult<&str, &str> {
        move |text| {
            let inside = many0_count(alt((
                recognize(pair(char('\\'), nom::character::complete::anychar)),
                take_while1(|c| c != delimiter && c != '\\'),
            )));
            recognize(delimited(char(delimiter), inside, char(delimiter))).parse(text)
        }
    }
    alt((between('/'), between('^'))).parse(text)
}

/// Decodes `\"`, `\\`, `\n` and similar escapes.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}

impl<'a> AdlReader<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..self.end).unwrap_or_default()
    }

    /// Skips white space and consumes the text that a parser matches.
    fn take(&mut self, parser: impl Fn(&'a str) -> IResult<&'a str, &'a str>) -> Option<&'a str> {
        self.space();
        let (rest, found) = parser(self.rest()).ok()?;
        self.at = self.end - rest.len();
        Some(found)
    }

    fn space(&mut self) {
        self.at += space(self.rest());
    }

    /// Returns the position of the next token.
    fn place(&self) -> Span {
        let next = self.rest().chars().next().map_or(0, char::len_utf8);
        Span::new(self.at, self.at + next)
    }

    fn word(&mut self) -> Option<&'a str> {
        self.take(word)
    }

    /// Returns the next word without consuming it.
    fn next_word(&mut self) -> Option<&'a str> {
        self.space();
        word(self.rest()).ok().map(|(_, found)| found)
    }

    fn next_char(&mut self) -> Option<char> {
        self.space();
        self.rest().chars().next()
    }

    fn eats(&mut self, symbol: &'static str) -> bool {
        self.take(|text| tag(symbol).parse(text)).is_some()
    }

    fn eats_word(&mut self, expected: &str) -> bool {
        let is_it = self
            .next_word()
            .is_some_and(|next| next.eq_ignore_ascii_case(expected));
        if is_it {
            self.word();
        }
        is_it
    }

    fn expect(&mut self, symbol: &'static str, what: &str) -> Result<(), Diagnostic> {
        if self.eats(symbol) {
            return Ok(());
        }
        let found: String = self.rest().chars().take(12).collect();
        Err(broken(
            self.place(),
            format!(
                "expected `{symbol}` {what}, found `{}`",
                found.escape_debug()
            ),
        ))
    }

    /// Consumes a symbol and returns the text before it.
    fn until(&mut self, symbol: &'static str) -> Option<&'a str> {
        let (rest, found) = take_until::<_, _, nom::error::Error<&str>>(symbol)
            .parse(self.rest())
            .ok()?;
        self.at = self.end - rest.len() + symbol.len();
        Some(found)
    }

    fn end(&mut self) -> Result<(), Diagnostic> {
        match self.next_char() {
            None => Ok(()),
            Some(_) => Err(broken(self.place(), "the section goes on behind its end")),
        }
    }

    /// Counts an object or a value of ODIN.
    fn count_item(&mut self) -> Result<(), Diagnostic> {
        self.items += 1;
        if self.items > ITEMS {
            let message = format!("the template has more than {ITEMS} objects and values");
            return Err(Diagnostic::error("TPL0104", self.place(), message)
                .with_help("split the template, or leave some out"));
        }
        Ok(())
    }

    fn deeper(&mut self) -> Result<(), Diagnostic> {
        self.depth += 1;
        if self.depth >= MAX_DEPTH / 2 {
            return Err(Diagnostic::error(
                "TPL0103",
                self.place(),
                format!("constraints are nested deeper than {}", MAX_DEPTH / 2),
            ));
        }
        Ok(())
    }

    /// Consumes `matches`, `is_in` or `∈`, and the `{` after it. Returns whether they were there.
    fn eats_matches(&mut self) -> Result<bool, Diagnostic> {
        if !(self.eats_word("matches") || self.eats_word("is_in") || self.eats("∈")) {
            return Ok(false);
        }
        self.expect("{", "behind `matches`").map(|()| true)
    }
}

#[cfg(test)]
mod tests;
