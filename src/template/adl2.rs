//! Operational templates of ADL 2 as text: read into the same elements as their XML form, which [`super::opt2`] walks.
//!
//! Read are the header, `language`, `definition` (cADL), `terminology` and `component_terminologies` (ODIN); the sections `description`, `rules`,
//! `annotations` and `rm_overlay` say nothing that documents are checked against, and are passed over. Sources: openEHR AM, ADL 2 (chapters 6 cADL
//! and 9 ADL) and ODIN.
//!
//! Every element has the place of its text, so what is found in the constraints names line and column of the ADL text.

use super::xml::{Document, Elements, MAX_DEPTH};
use crate::diag::{Diagnostic, Span};
use nom::branch::alt;
use nom::bytes::complete::{tag, take_till, take_until, take_while, take_while1};
use nom::character::complete::{char, multispace1};
use nom::combinator::recognize;
use nom::multi::many0_count;
use nom::sequence::{delimited, pair, preceded};
use nom::{IResult, Parser};

/// The keywords that begin a section, each alone on its line.
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

/// True for a text that is to be read as ADL and not as XML.
pub(super) fn is_adl(text: &str) -> bool {
    !text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

/// Reads a text into the elements that its XML form would have.
///
/// # Errors
/// One diagnostic, for nothing behind it can be trusted: `TPL0105` for what is not ADL 2, `TPL0201` for another kind of artefact than an operational
/// template, `TPL0103` and `TPL0104` for what is too deep or too large.
pub(super) fn document(source: &str) -> Result<Document<'_>, Diagnostic> {
    let mut elements = Elements::of(source)?;
    let sections = Sections::of(source)?;
    let root = elements.add(None, "operational_template", sections.header)?;
    header(&mut elements, root, source, sections.header)?;
    for (keyword, span) in &sections.found {
        let mut reader = Reader { source, at: span.start, end: span.end, depth: 0 };
        match *keyword {
            "definition" => {
                reader.object(&mut elements, root, "definition")?;
                reader.end()?;
            }
            "language" => language(&mut elements, root, &reader.attributes()?)?,
            "terminology" => {
                let terminology = elements.add(Some(root), "terminology", *span)?;
                terms(&mut elements, terminology, &reader.attributes()?)?;
            }
            "component_terminologies" | "component_ontologies" => components(&mut elements, root, reader.attributes()?)?,
            _ => {}
        }
    }
    Ok(elements.into_document())
}

fn broken(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("TPL0105", span, message).with_help("send the operational template as an ADL 2 tool writes it, as text or as XML")
}

/// The header line and the id below it, and the sections with their keywords.
struct Sections {
    header: Span,
    found: Vec<(&'static str, Span)>,
}

impl Sections {
    fn of(source: &str) -> Result<Sections, Diagnostic> {
        let mut starts: Vec<(&'static str, usize, usize)> = Vec::new();
        let (mut at, mut is_in_text) = (0, false);
        for line in source.split_inclusive('\n') {
            if let Some(keyword) = SECTIONS.iter().find(|keyword| !is_in_text && line.trim_end() == **keyword) {
                starts.push((keyword, at, at + line.len()));
            }
            is_in_text = ends_in_text(line, is_in_text);
            at += line.len();
        }
        let first = starts.first().map_or(source.len(), |(_, at, _)| *at);
        let ends = starts.iter().skip(1).map(|(_, at, _)| *at).chain([source.len()]);
        let found: Vec<(&str, Span)> = starts.iter().zip(ends).map(|((keyword, _, start), end)| (*keyword, Span::new(*start, end))).collect();
        for (index, (keyword, span)) in found.iter().enumerate() {
            if found.iter().take(index).any(|(other, _)| other == keyword) {
                return Err(broken(*span, format!("the section `{keyword}` stands twice")));
            }
        }
        Ok(Sections { header: Span::new(0, first), found })
    }
}

/// True where a line ends inside a quoted text, which may go over several lines. Comments end with their line.
fn ends_in_text(line: &str, mut is_in_text: bool) -> bool {
    let mut chars = line.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        match c {
            '\\' if is_in_text => drop(chars.next()),
            '"' => is_in_text = !is_in_text,
            '-' if !is_in_text && chars.peek() == Some(&'-') => return false,
            '/' if !is_in_text && before == '{' => {
                // A regular expression.
                while let Some(inner) = chars.next() {
                    match inner {
                        '\\' => drop(chars.next()),
                        '/' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        if !c.is_whitespace() {
            before = c;
        }
    }
    is_in_text
}

/// `operational_template (adl_version=2.0.6; …)` and the id of the template.
fn header<'a>(elements: &mut Elements<'a>, root: usize, source: &'a str, span: Span) -> Result<(), Diagnostic> {
    let text = source.get(span.start..span.end).unwrap_or_default();
    let mut reader = Reader { source, at: text.len() - text.trim_start_matches('\u{feff}').len(), end: span.end, depth: 0 };
    let start = reader.place();
    match reader.word() {
        Some("operational_template") => {}
        Some(other @ ("archetype" | "template" | "template_overlay")) => {
            let message = format!("this is a source artefact (`{other}`), which refers to others: an operational template is needed");
            return Err(Diagnostic::error("TPL0201", start, message).with_help("flatten it in an ADL 2 tool, and send the `operational_template`"));
        }
        _ => {
            return Err(Diagnostic::error("TPL0201", start, "the text does not begin with `operational_template`")
                .with_help("send an operational template of ADL 2"));
        }
    }
    if reader.eats("(") {
        let place = reader.place();
        let inside = reader.until(")").ok_or_else(|| broken(place, "the `(` behind `operational_template` is not closed"))?;
        for part in inside.split(';') {
            if let Some(("uid", uid)) = part.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
                elements.text_child(root, "uid", uid, place)?;
            }
        }
    }
    reader.space();
    let place = reader.place();
    let id: String = reader.rest().chars().take_while(|c| !c.is_whitespace()).collect();
    if id.is_empty() {
        return Err(broken(place, "the id of the template is missing behind the first line"));
    }
    elements.text_child(root, "archetype_id", &id, place)
}

/// `original_language = <[ISO_639-1::en]>`
fn language<'a>(elements: &mut Elements<'a>, root: usize, all: &[Attribute]) -> Result<(), Diagnostic> {
    let Some(found) = all.iter().find(|attribute| attribute.name == "original_language") else { return Ok(()) };
    let code = found.value.texts().next().unwrap_or_default();
    let language = elements.add(Some(root), "original_language", found.place)?;
    elements.text_child(language, "code_string", code.rsplit("::").next().unwrap_or_default(), found.place)
}

/// The terms and value sets of a terminology.
fn terms<'a>(elements: &mut Elements<'a>, parent: usize, all: &[Attribute]) -> Result<(), Diagnostic> {
    for attribute in all {
        match attribute.name.as_str() {
            "term_definitions" => {
                for language in attribute.value.attributes() {
                    let set = elements.add(Some(parent), "term_definitions", language.place)?;
                    elements.attribute(set, "language", &language.name);
                    for term in language.value.attributes() {
                        let item = elements.add(Some(set), "items", term.place)?;
                        elements.attribute(item, "code", &term.name);
                        for (name, part) in [("text", "text"), ("description", "description")] {
                            if let Some(found) = term.value.attributes().iter().find(|a| a.name == part) {
                                elements.text_child(item, name, found.value.texts().next().unwrap_or_default(), found.place)?;
                            }
                        }
                    }
                }
            }
            "value_sets" => {
                for set in attribute.value.attributes() {
                    let value_set = elements.add(Some(parent), "value_sets", set.place)?;
                    elements.attribute(value_set, "id", &set.name);
                    for member in set.value.attributes().iter().filter(|a| a.name == "members").flat_map(|a| a.value.texts()) {
                        elements.text_child(value_set, "members", member, set.place)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The terminologies of the archetypes that are used, by their ids.
fn components<'a>(elements: &mut Elements<'a>, root: usize, all: Vec<Attribute>) -> Result<(), Diagnostic> {
    for attribute in all {
        let wrapped = matches!(attribute.name.as_str(), "component_terminologies" | "component_ontologies");
        let own = if wrapped { attribute.value.into_attributes() } else { vec![attribute] };
        for component in own {
            let element = elements.add(Some(root), "component_terminologies", component.place)?;
            elements.attribute(element, "archetype_id", &component.name);
            terms(elements, element, component.value.attributes())?;
        }
    }
    Ok(())
}

/// A value of ODIN with its name or key.
struct Attribute {
    name: String,
    value: Odin,
    place: Span,
}

/// A value of ODIN, as far as templates use it.
enum Odin {
    /// Named attributes or keyed items.
    Object(Vec<Attribute>),
    /// Texts, codes and numbers, as written.
    Texts(Vec<String>),
}

impl Odin {
    fn attributes(&self) -> &[Attribute] {
        if let Odin::Object(all) = self { all } else { &[] }
    }

    fn into_attributes(self) -> Vec<Attribute> {
        if let Odin::Object(all) = self { all } else { Vec::new() }
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let all = if let Odin::Texts(all) = self { all.as_slice() } else { &[] };
        all.iter().map(String::as_str)
    }
}

/// Reads a part of the text from front to back.
struct Reader<'a> {
    source: &'a str,
    at: usize,
    end: usize,
    depth: usize,
}

fn word(text: &str) -> IResult<&str, &str> {
    recognize(pair(take_while1(|c: char| c.is_ascii_alphabetic() || c == '_'), take_while(|c: char| c.is_ascii_alphanumeric() || c == '_')))
        .parse(text)
}

/// White space and comments.
fn space(text: &str) -> IResult<&str, &str> {
    recognize(many0_count(alt((multispace1, recognize(preceded(tag("--"), take_till(|c| c == '\n'))))))).parse(text)
}

/// A quoted text, still with its escapes.
fn quoted(text: &str) -> IResult<&str, &str> {
    let inside =
        recognize(many0_count(alt((recognize(pair(char('\\'), nom::character::complete::anychar)), take_while1(|c| c != '"' && c != '\\')))));
    delimited(char('"'), inside, char('"')).parse(text)
}

/// A regular expression between slashes or carets, with its delimiters.
fn expression(text: &str) -> IResult<&str, &str> {
    fn between(delimiter: char) -> impl FnMut(&str) -> IResult<&str, &str> {
        move |text| {
            let inside =
                many0_count(alt((recognize(pair(char('\\'), nom::character::complete::anychar)), take_while1(|c| c != delimiter && c != '\\'))));
            recognize(delimited(char(delimiter), inside, char(delimiter))).parse(text)
        }
    }
    alt((between('/'), between('^'))).parse(text)
}

/// A text with `\"`, `\\`, `\n` and the like undone.
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

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..self.end).unwrap_or_default()
    }

    /// Takes what a parser recognizes, behind white space.
    fn take(&mut self, parser: impl Fn(&'a str) -> IResult<&'a str, &'a str>) -> Option<&'a str> {
        self.space();
        let (rest, found) = parser(self.rest()).ok()?;
        self.at = self.end - rest.len();
        Some(found)
    }

    fn space(&mut self) {
        if let Ok((rest, _)) = space(self.rest()) {
            self.at = self.end - rest.len();
        }
    }

    /// The place of what follows.
    fn place(&self) -> Span {
        let next = self.rest().chars().next().map_or(0, char::len_utf8);
        Span::new(self.at, self.at + next)
    }

    fn word(&mut self) -> Option<&'a str> {
        self.take(word)
    }

    /// The next word, which stays.
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
        let is_it = self.next_word().is_some_and(|next| next.eq_ignore_ascii_case(expected));
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
        Err(broken(self.place(), format!("expected `{symbol}` {what}, found `{}`", found.escape_debug())))
    }

    /// What stands before a symbol, which is passed over.
    fn until(&mut self, symbol: &'static str) -> Option<&'a str> {
        let (rest, found) = take_until::<_, _, nom::error::Error<&str>>(symbol).parse(self.rest()).ok()?;
        self.at = self.end - rest.len() + symbol.len();
        Some(found)
    }

    fn end(&mut self) -> Result<(), Diagnostic> {
        match self.next_char() {
            None => Ok(()),
            Some(_) => Err(broken(self.place(), "the section goes on behind its end")),
        }
    }

    fn deeper(&mut self) -> Result<(), Diagnostic> {
        self.depth += 1;
        if self.depth >= MAX_DEPTH / 2 {
            return Err(Diagnostic::error("TPL0103", self.place(), format!("constraints are nested deeper than {}", MAX_DEPTH / 2)));
        }
        Ok(())
    }

    /// `matches`, `is_in` or `∈`, and the `{` behind it.
    fn eats_matches(&mut self) -> Result<bool, Diagnostic> {
        if !(self.eats_word("matches") || self.eats_word("is_in") || self.eats("∈")) {
            return Ok(false);
        }
        self.expect("{", "behind `matches`").map(|()| true)
    }
}

/// ODIN.
impl Reader<'_> {
    /// Attributes or keyed items up to the end, or to a `>`.
    fn attributes(&mut self) -> Result<Vec<Attribute>, Diagnostic> {
        let mut all = Vec::new();
        loop {
            self.eats(";");
            let place = match self.next_char() {
                None | Some('>') => return Ok(all),
                Some(_) => self.place(),
            };
            let name = if self.eats("[") {
                let key = self.take(quoted).map(unescaped);
                let key = key.or_else(|| self.take(|text| take_while1(|c| c != ']').parse(text)).map(|key| key.trim().to_owned()));
                self.expect("]", "behind a key")?;
                key.unwrap_or_default()
            } else {
                self.word().ok_or_else(|| broken(place, "expected a name or a key of ODIN"))?.to_owned()
            };
            self.expect("=", "behind a name")?;
            all.push(Attribute { name, value: self.odin()?, place });
        }
    }

    fn odin(&mut self) -> Result<Odin, Diagnostic> {
        self.deeper()?;
        if self.eats("(") {
            // The class of the object.
            let place = self.place();
            self.until(")").ok_or_else(|| broken(place, "the `(` of a class is not closed"))?;
        }
        self.expect("<", "before a value")?;
        let is_object = match self.next_char() {
            Some('[') => quoted(self.rest().get(1..).unwrap_or_default().trim_start()).is_ok(),
            Some(c) => c.is_ascii_alphabetic() && self.rest().split(['>', '<']).next().is_some_and(|front| front.contains('=')),
            None => false,
        };
        let value = if is_object { Odin::Object(self.attributes()?) } else { Odin::Texts(self.texts()?) };
        self.expect(">", "behind a value")?;
        self.depth -= 1;
        Ok(value)
    }

    fn texts(&mut self) -> Result<Vec<String>, Diagnostic> {
        let mut all = Vec::new();
        loop {
            match self.next_char() {
                Some('>') => return Ok(all),
                Some('"') => {
                    let place = self.place();
                    all.push(unescaped(self.take(quoted).ok_or_else(|| broken(place, "the text is never closed"))?));
                }
                Some(',') => self.at += 1,
                Some('[') => {
                    let place = self.place();
                    self.at += 1;
                    all.push(self.until("]").ok_or_else(|| broken(place, "the code is never closed"))?.trim().to_owned());
                }
                Some(_) => {
                    let place = self.place();
                    let scalar =
                        self.take(|text| take_while1(|c: char| !matches!(c, ',' | '>' | '"' | '[' | '<' | '=') && !c.is_whitespace()).parse(text));
                    all.push(scalar.ok_or_else(|| broken(place, "expected a value of ODIN"))?.to_owned());
                }
                None => return Err(broken(self.place(), "the value is never closed: `>` is missing")),
            }
        }
    }
}

/// cADL.
impl<'a> Reader<'a> {
    /// An object: `OBSERVATION[id2, openEHR-EHR-OBSERVATION.x.v1.0.0] occurrences matches {0..1} matches { … }`.
    fn object(&mut self, elements: &mut Elements<'a>, parent: usize, name: &'static str) -> Result<(), Diagnostic> {
        self.deeper()?;
        if self.eats_word("after") || self.eats_word("before") {
            // The order among siblings of a specialised archetype: the text has that order already.
            self.expect("[", "behind the order of siblings")?;
            self.until("]");
        }
        self.space();
        let start = self.at;
        let kind = match self.next_word() {
            Some("use_archetype") => Some("C_ARCHETYPE_ROOT"),
            Some("allow_archetype") => Some("ARCHETYPE_SLOT"),
            Some("use_node") => Some("C_COMPLEX_OBJECT_PROXY"),
            _ => None,
        };
        if kind.is_some() {
            self.word();
        }
        let place = self.place();
        let class = self.word().ok_or_else(|| broken(place, "expected the name of a class"))?;
        let class = match self.next_char() {
            Some('<') => format!("{class}{}>", self.until(">").unwrap_or_default().trim()),
            _ => class.to_owned(),
        };
        self.expect("[", "behind the name of a class")?;
        let ids = self.until("]").ok_or_else(|| broken(place, "the `[` behind the name of a class is not closed"))?;
        let (id, archetype) = ids.split_once(',').map_or((ids.trim(), None), |(id, archetype)| (id.trim(), Some(archetype.trim())));
        let element = elements.add(Some(parent), name, Span::new(start, self.at))?;
        let kind = kind.unwrap_or(if archetype.is_some() { "C_ARCHETYPE_ROOT" } else { "C_COMPLEX_OBJECT" });
        elements.attribute(element, "type", kind);
        elements.attribute(element, "rm_type_name", &class);
        // The root has its archetype id in the place of a node id.
        elements.attribute(element, "node_id", id);
        if let Some(archetype) = archetype {
            elements.attribute(element, "archetype_ref", archetype);
        }
        if self.eats_word("occurrences") {
            let count = self.multiplicity("occurrences")?;
            elements.attribute(element, "occurrences", &count);
        }
        match kind {
            "C_COMPLEX_OBJECT_PROXY" => drop(self.take(|text| take_while1(|c: char| !c.is_whitespace() && c != '}').parse(text))),
            "ARCHETYPE_SLOT" => self.slot(elements, element)?,
            _ if self.eats_matches()? => self.parts(elements, element)?,
            _ => {}
        }
        self.depth -= 1;
        Ok(())
    }

    /// The attributes of an object, up to its `}`.
    fn parts(&mut self, elements: &mut Elements<'a>, element: usize) -> Result<(), Diagnostic> {
        if self.eats("*") {
            return self.expect("}", "behind `*`");
        }
        while !self.eats("}") {
            match self.next_char() {
                Some('[') => self.tuple(elements, element)?,
                Some(c) if c.is_ascii_lowercase() => self.attribute(elements, element)?,
                _ => return Err(broken(self.place(), "expected an attribute, a tuple or `}`; default values and paths of attributes are not read")),
            }
        }
        Ok(())
    }

    /// `items cardinality matches {1..*; unordered} matches { … }`
    fn attribute(&mut self, elements: &mut Elements<'a>, parent: usize) -> Result<(), Diagnostic> {
        self.deeper()?;
        let place = self.place();
        let name = self.word().ok_or_else(|| broken(place, "expected the name of an attribute"))?;
        let element = elements.add(Some(parent), "attributes", Span::new(place.start, self.at))?;
        elements.attribute(element, "rm_attribute_name", name);
        loop {
            let what = match self.next_word() {
                Some("existence") => "existence",
                Some("cardinality") => "cardinality",
                _ => break,
            };
            self.word();
            let count = self.multiplicity(what)?;
            elements.attribute(element, what, &count);
        }
        if self.eats_matches()? {
            self.children(elements, element)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// What an attribute may hold, up to its `}`.
    fn children(&mut self, elements: &mut Elements<'a>, attribute: usize) -> Result<(), Diagnostic> {
        if self.eats("*") {
            return self.expect("}", "behind `*`");
        }
        while !self.eats("}") {
            if self.is_object() {
                self.object(elements, attribute, "children")?;
            } else {
                self.primitive(elements, attribute)?;
            }
        }
        Ok(())
    }

    /// True where an object follows, and not a value.
    fn is_object(&mut self) -> bool {
        let Some(next) = self.next_word() else { return false };
        let behind = self.rest().get(next.len()..).unwrap_or_default().trim_start();
        matches!(next, "use_archetype" | "allow_archetype" | "use_node" | "after" | "before") || behind.starts_with(['[', '<'])
    }

    /// `matches {0..*; unordered}`: the text between the braces, its parts in order.
    fn multiplicity(&mut self, what: &str) -> Result<String, Diagnostic> {
        let place = self.place();
        if !self.eats_matches()? {
            return Err(broken(place, format!("expected `matches` behind `{what}`")));
        }
        let inside = self.until("}").ok_or_else(|| broken(place, format!("the `{{` behind `{what}` is not closed")))?;
        let mut parts = inside.split(';').map(str::trim);
        let count = parts.next().unwrap_or_default();
        let is_limit = |limit: &str| limit == "*" || (!limit.is_empty() && limit.bytes().all(|b| b.is_ascii_digit()));
        if !count.split("..").map(str::trim).all(is_limit) || count.split("..").count() > 2 {
            return Err(broken(place, format!("`{count}` is no multiplicity: expected `0..1`, `1` or `1..*`")));
        }
        let count = if count == "*" { String::from("0..*") } else { count.to_owned() };
        Ok(parts.fold(count, |all, part| format!("{all}; {part}")))
    }

    /// What a slot includes and excludes.
    fn slot(&mut self, elements: &mut Elements<'a>, element: usize) -> Result<(), Diagnostic> {
        if self.eats_word("closed") {
            return rule(elements, element, "excludes", "{/.*/}", self.place());
        }
        if !self.eats_matches()? {
            return Ok(());
        }
        if self.eats("*") {
            return self.expect("}", "behind `*`");
        }
        let mut side = "includes";
        while !self.eats("}") {
            if self.eats_word("include") {
                side = "includes";
            } else if self.eats_word("exclude") {
                side = "excludes";
            } else {
                let place = self.place();
                let front = self.until("{").ok_or_else(|| broken(place, "expected `include`, `exclude` or a rule of a slot"))?;
                let pattern = self.take(expression);
                self.expect("}", "behind the rule of a slot")?;
                let is_id = front.trim_start().starts_with("archetype_id/value");
                let source = pattern.filter(|_| is_id).map_or_else(|| front.to_owned(), |pattern| format!("{{{pattern}}}"));
                rule(elements, element, side, &source, place)?;
            }
        }
        Ok(())
    }

    /// `[units, magnitude] matches { [{"kg"}, {|0.0..200.0|}], … }`: a column of values for each attribute.
    fn tuple(&mut self, elements: &mut Elements<'a>, parent: usize) -> Result<(), Diagnostic> {
        self.expect("[", "before a tuple")?;
        let place = self.place();
        let names: Vec<&str> = self.until("]").map(|all| all.split(',').map(str::trim).collect()).unwrap_or_default();
        let mut columns = Vec::new();
        for name in &names {
            let column = elements.add(Some(parent), "attributes", place)?;
            elements.attribute(column, "rm_attribute_name", name);
            columns.push(column);
        }
        let tuple = elements.add(Some(parent), "attribute_tuples", place)?;
        for name in &names {
            elements.text_child(tuple, "members", name, place)?;
        }
        if !self.eats_matches()? {
            return Err(broken(self.place(), "expected `matches` behind the names of a tuple"));
        }
        while !self.eats("}") {
            self.eats(",");
            self.expect("[", "before a row of a tuple")?;
            for (index, column) in columns.iter().enumerate() {
                if index > 0 {
                    self.expect(",", "between the cells of a tuple")?;
                }
                self.expect("{", "before a cell of a tuple")?;
                self.primitive(elements, *column)?;
                self.expect("}", "behind a cell of a tuple")?;
            }
            self.expect("]", "behind a row of a tuple")?;
        }
        Ok(())
    }

    /// A constraint on a value: texts, numbers, codes, dates, times and durations, and intervals of them.
    fn primitive(&mut self, elements: &mut Elements<'a>, parent: usize) -> Result<(), Diagnostic> {
        self.space();
        let place = self.place();
        let element = elements.add(Some(parent), "children", place)?;
        let mut kind = None;
        loop {
            let value = self.value(place)?;
            let own = value.kind();
            kind = match (kind, own) {
                (Some("C_REAL"), "C_INTEGER") | (Some("C_INTEGER"), "C_REAL") => Some("C_REAL"),
                (Some(before), own) if before != own => Some("several kinds of values"),
                _ => Some(own),
            };
            value.write(elements, element, place)?;
            if !self.eats(",") {
                break;
            }
            if self.eats("...") {
                kind = Some("an open list");
                break;
            }
        }
        if self.eats(";") {
            // The assumed value constrains nothing.
            self.value(place)?;
        }
        let kind = kind.unwrap_or_default();
        elements.attribute(element, "type", kind);
        elements.attribute(element, "rm_type_name", class_of(kind));
        Ok(())
    }

    fn value(&mut self, place: Span) -> Result<Value, Diagnostic> {
        let missing = || broken(place, "expected a value");
        match self.next_char().ok_or_else(missing)? {
            '"' => self.take(quoted).map(|text| Value::Text(unescaped(text))).ok_or_else(|| broken(place, "the text is never closed")),
            '/' | '^' => {
                let found = self.take(expression).ok_or_else(|| broken(place, "the regular expression is never closed"))?;
                Ok(Value::Text(format!("/{}/", found.get(1..found.len() - 1).unwrap_or_default())))
            }
            '[' => {
                self.at += 1;
                let code = self.until("]").ok_or_else(|| broken(place, "the code is never closed"))?;
                Ok(Value::Code(code.split(';').next().unwrap_or_default().trim().to_owned()))
            }
            '|' => self.interval(String::new(), place),
            _ => {
                let scalar =
                    self.take(|text| take_while1(|c: char| !matches!(c, ',' | ';' | '}' | '|' | '{' | '"') && !c.is_whitespace()).parse(text));
                let scalar = scalar.ok_or_else(missing)?;
                match scalar.strip_suffix('/') {
                    Some(pattern) if self.rest().starts_with('|') => self.interval(pattern.to_owned(), place),
                    _ => Ok(Value::Scalar(scalar.to_owned())),
                }
            }
        }
    }

    /// `|0..9|`, `|>=0|`, `|5 +/-1|`; a duration may have a pattern before it.
    fn interval(&mut self, pattern: String, place: Span) -> Result<Value, Diagnostic> {
        self.expect("|", "before an interval")?;
        let inside = self.until("|").ok_or_else(|| broken(place, "the interval is never closed"))?.trim();
        let range = Range::read(inside).ok_or_else(|| broken(place, format!("`|{inside}|` is no interval")))?;
        Ok(Value::Interval { pattern, range })
    }
}

/// The class of the values that a kind of constraint is about, as AOM 2 names it.
fn class_of(kind: &str) -> &str {
    match kind {
        "C_STRING" => "String",
        "C_INTEGER" => "Integer",
        "C_REAL" => "Real",
        "C_BOOLEAN" => "Boolean",
        "C_TERMINOLOGY_CODE" => "CODE_PHRASE",
        "C_DATE" => "DATE",
        "C_TIME" => "TIME",
        "C_DATE_TIME" => "DATE_TIME",
        "C_DURATION" => "DURATION",
        other => other,
    }
}

/// Adds a rule of a slot.
fn rule<'a>(elements: &mut Elements<'a>, slot: usize, side: &'static str, source: &str, place: Span) -> Result<(), Diagnostic> {
    let rule = elements.add(Some(slot), side, place)?;
    elements.text_child(rule, "string_expression", source, place)
}

/// One value of a constraint.
enum Value {
    Text(String),
    Code(String),
    /// A number, boolean, date, time, duration, or a pattern of the last three.
    Scalar(String),
    Interval {
        pattern: String,
        range: Range,
    },
}

/// An interval; a limit that is absent is unbounded.
#[derive(Default)]
struct Range {
    lower: Option<String>,
    upper: Option<String>,
    excludes_lower: bool,
    excludes_upper: bool,
}

impl Range {
    fn read(text: &str) -> Option<Range> {
        let limit = |text: &str| Some(text.trim()).filter(|t| !t.is_empty() && *t != "*").map(str::to_owned);
        if let Some((middle, spread)) = text.split_once("+/-") {
            let (middle, spread): (f64, f64) = (middle.trim().parse().ok()?, spread.trim().parse().ok()?);
            return Some(Range { lower: Some((middle - spread).to_string()), upper: Some((middle + spread).to_string()), ..Range::default() });
        }
        if let Some((lower, upper)) = text.split_once("..") {
            let (lower, upper) = (lower.trim(), upper.trim());
            let (excludes_lower, excludes_upper) = (lower.starts_with('>'), upper.starts_with('<'));
            return Some(Range {
                lower: limit(lower.trim_start_matches('>')),
                upper: limit(upper.trim_start_matches('<')),
                excludes_lower,
                excludes_upper,
            });
        }
        let after = |sign: &str| text.strip_prefix(sign).and_then(limit);
        Some(match (after(">="), after("<=")) {
            (Some(lower), _) => Range { lower: Some(lower), ..Range::default() },
            (_, Some(upper)) => Range { upper: Some(upper), ..Range::default() },
            _ => match (after(">"), after("<")) {
                (Some(lower), _) => Range { lower: Some(lower), excludes_lower: true, ..Range::default() },
                (_, Some(upper)) => Range { upper: Some(upper), excludes_upper: true, ..Range::default() },
                _ => limit(text).map(|one| Range { lower: Some(one.clone()), upper: Some(one), ..Range::default() })?,
            },
        })
    }
}

impl Value {
    /// The class of constraints that it belongs to.
    fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "C_STRING",
            Value::Code(code) if code.contains("::") => "a code of another terminology",
            Value::Code(_) => "C_TERMINOLOGY_CODE",
            Value::Scalar(text) => kind_of(text),
            Value::Interval { range, .. } => range.lower.as_deref().or(range.upper.as_deref()).map_or("an empty interval", kind_of),
        }
    }

    fn write<'a>(&self, elements: &mut Elements<'a>, element: usize, place: Span) -> Result<(), Diagnostic> {
        match self {
            Value::Text(text) | Value::Code(text) => elements.text_child(element, "constraint", text, place),
            Value::Scalar(text) if is_pattern(text) => elements.text_child(element, "pattern_constraint", text, place),
            Value::Scalar(text) if self.kind() == "C_BOOLEAN" => elements.text_child(element, "constraint", text, place),
            Value::Scalar(text) => {
                let one = Range { lower: Some(text.clone()), upper: Some(text.clone()), ..Range::default() };
                one.write(elements, element, place)
            }
            Value::Interval { pattern, range } => {
                if !pattern.is_empty() {
                    elements.text_child(element, "pattern_constraint", pattern, place)?;
                }
                range.write(elements, element, place)
            }
        }
    }
}

impl Range {
    fn write<'a>(&self, elements: &mut Elements<'a>, element: usize, place: Span) -> Result<(), Diagnostic> {
        let constraint = elements.add(Some(element), "constraint", place)?;
        let sides = [
            ("lower", "lower_unbounded", "lower_included", &self.lower, self.excludes_lower),
            ("upper", "upper_unbounded", "upper_included", &self.upper, self.excludes_upper),
        ];
        for (name, unbounded, included, limit, is_excluded) in sides {
            match limit {
                Some(limit) => elements.text_child(constraint, name, limit, place)?,
                None => elements.text_child(constraint, unbounded, "true", place)?,
            }
            if is_excluded {
                elements.text_child(constraint, included, "false", place)?;
            }
        }
        Ok(())
    }
}

/// True for a pattern of a date, time or duration, such as `yyyy-mm-??`, `HH:MM:SS` or `PYMD`.
fn is_pattern(text: &str) -> bool {
    let is_duration = text.starts_with('P') && text.len() > 1;
    let has_digit = text.bytes().any(|b| b.is_ascii_digit());
    !has_digit && (is_duration || text.contains(['-', ':'])) && text.chars().all(|c| "PYMWDTHSymdhsX?-:.,/Z+".contains(c))
}

fn kind_of(text: &str) -> &'static str {
    let digits = text.trim_start_matches(['-', '+']);
    match text {
        "True" | "False" | "true" | "false" => "C_BOOLEAN",
        _ if digits.starts_with('P') => "C_DURATION",
        _ if is_pattern(text) || digits.contains([':', '-']) && digits.starts_with(|c: char| c.is_ascii_digit()) => {
            match (text.contains('T'), text.contains(':')) {
                (true, _) => "C_DATE_TIME",
                (false, true) => "C_TIME",
                (false, false) if text.contains("e-") || text.contains("E-") => "C_REAL",
                (false, false) => "C_DATE",
            }
        }
        _ if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => "C_INTEGER",
        _ if digits.starts_with(|c: char| c.is_ascii_digit()) => "C_REAL",
        _ => "a value of an unknown kind",
    }
}

#[cfg(test)]
mod tests;
