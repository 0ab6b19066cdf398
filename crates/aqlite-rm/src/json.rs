//! Canonical JSON: a reader driven by the class table, and the writer.
//!
//! Numbers never pass through a float, so `37.50` is stored and returned as `37.50` (ITS-JSON does
//! not prescribe the digits). [`Scanner`] is the tokenizer on its own, for other formats that are
//! JSON.

use super::build::{Builder, Limits, Members, Step, described, described_leaf};
use super::class::{Attr, AttrDef, Cls};
use super::scan::Token;
use super::tree::{Kind, NodeId, NodeRef, Tree};
use crate::diag::{Finding, LineIndex};
use std::borrow::Cow;

pub use super::plain::{
    MAX_MEMBERS, TOO_MANY, elements, elements_within, expect_end, members, members_with,
    parse_strings, read_bracketed, text, value, value_within,
};
pub use super::scan::{Malformed, Scanner};

/// Reads an object of class `expected`, or of a descendant that `_type` names.
///
/// With [`Cls::ANY`] the class is the one that `_type` names.
///
/// # Errors
/// All violations of the class table, each with its path (codes RM0101–RM0107); or one finding with
/// line and column if the text is not JSON or nested too deep (RM0001, RM0002).
pub fn read(text: &str, expected: Cls) -> Result<Tree, Vec<Finding>> {
    read_within(text, expected, Limits::default())
}

/// Reads like [`read`], with other limits.
///
/// # Errors
/// As [`read`].
pub fn read_within(text: &str, expected: Cls, limits: Limits) -> Result<Tree, Vec<Finding>> {
    let mut reader = Reader::new(Scanner::new(text), limits);
    match reader.document(expected) {
        Ok(()) => reader.build.finish(),
        // The reader stops with an error once the findings are full. The findings are the result
        // then.
        Err(_) if reader.build.is_full() => reader.build.finish(),
        Err(malformed) => Err(vec![finding(text, malformed)]),
    }
}

/// Reads the next value of a longer text like [`read`] and advances `scan` past it.
///
/// Returns `None` for a value with any violation; `scan` is unchanged then.
pub fn read_next(scan: &mut Scanner<'_>, expected: Cls) -> Option<Tree> {
    let mut reader = Reader::new(*scan, Limits::default());
    reader.element(None, None, expected).ok()?;
    let tree = reader.build.finish().ok()?;
    *scan = reader.scan;
    Some(tree)
}

/// Returns the canonical JSON of a node.
///
/// Every object has `_type`, attributes are in canonical order, and numbers keep their digits.
pub fn write(node: NodeRef<'_>) -> String {
    let mut out = String::with_capacity(1024);
    write_into(&mut out, node);
    out
}

/// Appends the canonical JSON of a node. A list becomes an array, a leaf a string, number or
/// boolean.
pub fn write_into(out: &mut String, node: NodeRef<'_>) {
    match node.kind() {
        Kind::Object => {
            out.push_str("{\"_type\":\"");
            out.push_str(node.class().name());
            out.push('"');
            for child in node.children() {
                out.push_str(",\"");
                out.push_str(child.attr().map_or("", Attr::name));
                out.push_str("\":");
                write_into(out, child);
            }
            out.push('}');
        }
        Kind::List => {
            out.push('[');
            for (i, child) in node.children().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_into(out, child);
            }
            out.push(']');
        }
        Kind::Text => quote_into(out, node.text()),
        Kind::Number | Kind::Boolean => out.push_str(node.text()),
    }
}

/// Appends a text as a JSON string, quotes included.
pub fn quote_into(out: &mut String, text: &str) {
    out.push('"');
    escape_into(out, text);
    out.push('"');
}

/// Appends a text with the minimum of escaping that JSON requires: `"`, `\` and control characters.
pub fn escape_into(out: &mut String, text: &str) {
    let is_special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    // A fold without early exit compiles to a vectorized loop. Almost no text has a special byte.
    if !text.bytes().fold(false, |any, byte| any | is_special(byte)) {
        return out.push_str(text);
    }
    let mut rest = text;
    while let Some(at) = rest.bytes().position(is_special) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = special.chars();
        match characters.next().unwrap_or_default() {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control => {
                let code = u32::from(control);
                out.push_str("\\u00");
                // Control characters are below 0x20, so two hexadecimal digits are enough.
                out.extend(
                    [code >> 4, code & 15]
                        .iter()
                        .filter_map(|d| char::from_digit(*d, 16)),
                );
            }
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
}

/// Returns a finding with position and reason of malformed JSON.
pub fn finding(text: &str, malformed: Malformed) -> Finding {
    let (line, column) = LineIndex::new(text).line_column(malformed.offset);
    let code = if malformed.too_deep {
        "RM0002"
    } else {
        "RM0001"
    };
    Finding::error(
        code,
        "",
        format!(
            "not readable as JSON: line {line}, column {column}: {}",
            malformed.message
        ),
    )
}

struct Reader<'a> {
    scan: Scanner<'a>,
    build: Builder,
    types: Types,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn new(scan: Scanner<'a>, limits: Limits) -> Reader<'a> {
        Reader {
            scan,
            build: Builder::new(scan.text().len(), limits),
            types: Types::default(),
            depth: 0,
        }
    }

    fn document(&mut self, expected: Cls) -> Result<(), Malformed> {
        self.element(None, None, expected)?;
        match self.scan.next_token()? {
            Token::End => Ok(()),
            _ => Err(self.scan.error("expected the end of the document")),
        }
    }

    /// Reads one value where the class table expects class `declared`.
    fn element(
        &mut self,
        parent: Option<NodeId>,
        attr: Option<Attr>,
        declared: Cls,
    ) -> Result<(), Malformed> {
        let found = self.scan.peek();
        if !declared.is_primitive() && found == Some(b'{') {
            return self.object(parent, attr, declared);
        }
        // A value of a wrong kind is reported and skipped, so that the findings after it are
        // complete.
        if !declared.is_primitive() || matches!(found, Some(b'{' | b'[')) {
            return self.refuse(match declared.is_primitive() {
                true => described(declared),
                false => "an object",
            });
        }
        let (kind, text) = match self.scan.next_token()? {
            Token::String(text) => (Kind::Text, text),
            Token::Number(text) => (Kind::Number, Cow::Borrowed(text)),
            Token::Boolean(value) => (
                Kind::Boolean,
                Cow::Borrowed(if value { "true" } else { "false" }),
            ),
            Token::Null => {
                // A member that is null is skipped in `member`. This null is an element of a list
                // or the root.
                self.build.wrong_kind(described(declared), "null");
                return Ok(());
            }
            _ => return Err(self.scan.error("expected a value")),
        };
        if fits(declared, kind, &text) {
            self.build
                .tree
                .push_leaf(parent, attr, declared, kind, &text);
        } else {
            let found = described_leaf(kind, &text);
            self.build.wrong_kind(described(declared), found);
        }
        Ok(())
    }

    fn object(
        &mut self,
        parent: Option<NodeId>,
        attr: Option<Attr>,
        declared: Cls,
    ) -> Result<(), Malformed> {
        // The class determines the members, so `_type` is found before any member is read.
        let (named, behind) = match self.type_name()? {
            (TypeName::Absent, behind) => (None, behind),
            (TypeName::Named(name), behind) => (Some(name), behind),
            (TypeName::NotText, _) => {
                self.build
                    .wrong_kind("a class name in `_type`", "another kind of value");
                return self.skip();
            }
        };
        let Some(cls) = self.build.class_of(declared, named.as_deref()) else {
            return self.skip();
        };
        let id = self.build.push_object(parent, attr, cls, named.as_deref());
        self.open()?;
        let mut members = Members::new(cls, id);
        if self.enters(behind)? {
            self.members(&mut members, behind.is_some())?;
        }
        self.depth -= 1;
        // Most input is in canonical order already and needs no sort.
        if !members.sorted {
            self.build.tree.close(id);
        }
        Ok(())
    }

    /// Enters an object and skips a leading `_type`. Returns whether a member follows.
    fn enters(&mut self, behind: Option<Scanner<'a>>) -> Result<bool, Malformed> {
        if let Some(behind) = behind {
            self.scan = behind;
            return self.goes_on();
        }
        self.scan.next_token()?;
        let is_empty = self.scan.peek() == Some(b'}');
        if is_empty {
            self.scan.next_token()?;
        }
        Ok(!is_empty)
    }

    fn members(&mut self, members: &mut Members, mut typed: bool) -> Result<(), Malformed> {
        loop {
            self.member(members, &mut typed)?;
            self.is_worth_reading()?;
            if !self.goes_on()? {
                return Ok(());
            }
        }
    }

    /// Fails once the limit of findings is reached, because later findings would be dropped.
    fn is_worth_reading(&self) -> Result<(), Malformed> {
        match self.build.is_full() {
            true => Err(self.scan.error("too many findings")),
            false => Ok(()),
        }
    }

    /// Consumes a comma or the end of the object. Returns whether another member follows.
    fn goes_on(&mut self) -> Result<bool, Malformed> {
        match self.scan.next_token()? {
            Token::Comma => Ok(true),
            Token::ObjectEnd => Ok(false),
            _ => Err(self.scan.error("expected `,` or `}`")),
        }
    }

    fn member(&mut self, members: &mut Members, typed: &mut bool) -> Result<(), Malformed> {
        let key = self.scan.key()?;
        if key == "_type" {
            // `typed` is true from the start if `_type` was the first member.
            if std::mem::replace(typed, true) {
                self.build.duplicate("_type");
            }
            return self.skip();
        }
        let Some((position, def)) = members.find(&key) else {
            self.build.unknown_attribute(members.cls, &key);
            return self.skip();
        };
        // The member is marked before the test for null, so a repeated null is also a duplicate.
        if !members.take(position) {
            self.build.duplicate(&key);
            return self.skip();
        }
        // A member that is null is the same as an absent one.
        if self.scan.peek() == Some(b'n') {
            self.scan.skip_value(0)?;
            return Ok(());
        }
        // A skipped null must not count here, since it adds nothing to the tree.
        members.place(position);
        self.build.path.push(Step::Attr(def.attr));
        let done = self.attribute(members.id, def);
        self.build.path.pop();
        done
    }

    fn attribute(&mut self, parent: NodeId, def: &AttrDef) -> Result<(), Malformed> {
        let is_list = self.scan.peek() == Some(b'[');
        match (def.card.is_list(), is_list) {
            (true, true) => self.list(parent, def),
            (true, false) => self.refuse("a list"),
            (false, true) => self.refuse("one value"),
            (false, false) => self.element(Some(parent), Some(def.attr), def.ty),
        }
    }

    fn list(&mut self, parent: NodeId, def: &AttrDef) -> Result<(), Malformed> {
        let list = self.build.tree.push_list(parent, def.attr, def.ty);
        self.open()?;
        self.scan.next_token()?;
        if self.scan.peek() == Some(b']') {
            self.scan.next_token()?;
            self.depth -= 1;
            return Ok(());
        }
        for index in 0.. {
            self.build.path.push(Step::Index(index));
            self.element(Some(list), Some(def.attr), def.ty)?;
            self.build.path.pop();
            self.is_worth_reading()?;
            match self.scan.next_token()? {
                Token::Comma => {}
                Token::ArrayEnd => break,
                _ => return Err(self.scan.error("expected `,` or `]`")),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reports a value of a wrong kind and skips it.
    fn refuse(&mut self, expected: &str) -> Result<(), Malformed> {
        let found = match self.scan.peek() {
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b'"') => "a text",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        };
        // A syntax error within the value takes precedence over this finding.
        self.skip()?;
        self.build.wrong_kind(expected, found);
        Ok(())
    }

    fn open(&mut self) -> Result<(), Malformed> {
        self.depth += 1;
        if self.depth > self.build.limits.depth {
            return Err(self.scan.too_deep());
        }
        Ok(())
    }

    fn skip(&mut self) -> Result<(), Malformed> {
        self.scan
            .skip_value(self.build.limits.depth.saturating_sub(self.depth))
            .map(drop)
    }

    /// Returns the value of `_type` of the object that starts here, at whatever position it is.
    ///
    /// If it is the first member, the scanner behind it is returned too.
    fn type_name(&mut self) -> Result<(TypeName<'a>, Option<Scanner<'a>>), Malformed> {
        let mut ahead = self.scan;
        ahead.next_token()?;
        // Most documents have `_type` first. This test avoids the look-ahead for them.
        let is_first = ahead.take_plain_key("_type");
        if !is_first {
            match self.types.find(
                self.scan,
                self.build.limits.depth.saturating_sub(self.depth),
            )? {
                Some(scan) => ahead = scan,
                None => return Ok((TypeName::Absent, None)),
            }
        }
        let name = match ahead.next_token()? {
            Token::String(name) => TypeName::Named(name),
            Token::Null => TypeName::Absent,
            _ => TypeName::NotText,
        };
        Ok((name, is_first.then_some(ahead)))
    }
}

enum TypeName<'a> {
    Absent,
    Named(Cow<'a, str>),
    NotText,
}

/// The positions of `_type` in objects that do not begin with it.
///
/// A look-ahead over the outermost such object records all inner ones, so each byte is scanned once
/// at any nesting depth.
#[derive(Default)]
struct Types {
    /// The offsets of each object and of its `_type` value, in document order.
    found: Vec<(usize, Option<usize>)>,
    cursor: usize,
    /// Objects that start before this offset are recorded in `found`.
    known: usize,
}

impl Types {
    /// Returns the scanner before the `_type` value of the object at which `scan` is.
    fn find<'a>(
        &mut self,
        mut scan: Scanner<'a>,
        depth: usize,
    ) -> Result<Option<Scanner<'a>>, Malformed> {
        scan.peek();
        let start = scan.offset();
        if start >= self.known {
            self.look_ahead(scan, depth)?;
        }
        // The reader visits objects in document order, so the cursor never moves back.
        while self
            .found
            .get(self.cursor)
            .is_some_and(|(at, _)| *at < start)
        {
            self.cursor += 1;
        }
        let Some((_, place)) = self.found.get(self.cursor).filter(|(at, _)| *at == start) else {
            return Err(scan.error("the look-ahead for `_type` has missed this object"));
        };
        Ok(place.map(|offset| scan.at(offset)))
    }

    fn look_ahead(&mut self, mut scan: Scanner<'_>, depth: usize) -> Result<(), Malformed> {
        self.found.clear();
        self.cursor = 0;
        let mut open: Vec<Option<usize>> = Vec::new();
        loop {
            // The offset of a token is known behind the white space before it.
            scan.peek();
            let start = scan.offset();
            match scan.next_token()? {
                Token::ObjectStart => {
                    open.push(Some(self.found.len()));
                    self.found.push((start, None));
                }
                Token::ArrayStart => open.push(None),
                Token::ObjectEnd | Token::ArrayEnd => drop(open.pop()),
                // The colon distinguishes a member name from a text with the same characters.
                Token::String(key) if key == "_type" && scan.peek() == Some(b':') => {
                    let object = open.last().copied().flatten();
                    scan.next_token()?;
                    // `peek` skips white space, so the offset is the start of the value.
                    scan.peek();
                    if let Some((_, place)) = object.and_then(|o| self.found.get_mut(o)) {
                        // The first `_type` decides. `member` reports the second as a duplicate.
                        place.get_or_insert(scan.offset());
                    }
                }
                Token::End => return Err(scan.error("the document ends too early")),
                _ => {}
            }
            if open.is_empty() {
                break;
            }
            if open.len() > depth {
                return Err(scan.too_deep());
            }
        }
        self.known = scan.offset();
        Ok(())
    }
}

fn fits(declared: Cls, kind: Kind, text: &str) -> bool {
    match declared {
        Cls::BOOLEAN => kind == Kind::Boolean,
        Cls::REAL => kind == Kind::Number,
        // `1.0` and `1e2` are numbers of JSON, but not integers of the Reference Model.
        Cls::INTEGER | Cls::INTEGER64 => kind == Kind::Number && !text.contains(['.', 'e', 'E']),
        _ => kind == Kind::Text,
    }
}

#[cfg(test)]
mod member_order;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbitrary::Generator;

    fn problems(text: &str, expected: Cls) -> Vec<String> {
        read(text, expected)
            .err()
            .unwrap_or_default()
            .iter()
            .map(Finding::one_line)
            .collect()
    }

    fn through(text: &str, expected: Cls) -> String {
        write(read(text, expected).unwrap().root().unwrap())
    }

    #[test]
    fn digits_and_dates_stay_as_sent() {
        let text = r#"{"_type":"DV_QUANTITY","magnitude":37.50,"units":"Cel","precision":2}"#;
        assert_eq!(through(text, Cls::DATA_VALUE), text);
        let exponent = r#"{"_type":"DV_QUANTITY","magnitude":1E+5,"units":"1"}"#;
        assert_eq!(through(exponent, Cls::DV_QUANTITY), exponent);
        let date = r#"{"_type":"DV_DATE_TIME","value":"20190114T183650,154+0000"}"#;
        assert_eq!(through(date, Cls::DV_DATE_TIME), date);
    }

    #[test]
    fn type_may_be_any_member_or_absent() {
        let canonical = r#"{"_type":"DV_CODED_TEXT","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"local"},"code_string":"at1"}}"#;
        let late = r#"{"defining_code":{"code_string":"at1","terminology_id":{"value":"local","_type":"TERMINOLOGY_ID"}}, "_type" : "DV_CODED_TEXT"}"#;
        assert_eq!(through(late, Cls::DV_TEXT), canonical);
        let escaped = r#"{"value":"a","\u005ftype":"DV_TEXT"}"#;
        assert_eq!(
            through(escaped, Cls::DATA_VALUE),
            r#"{"_type":"DV_TEXT","value":"a"}"#
        );
        assert_eq!(
            through(r#"{"value":"a"}"#, Cls::DV_TEXT),
            r#"{"_type":"DV_TEXT","value":"a"}"#
        );
        assert_eq!(
            through(r#"{"value":"a","_type":null}"#, Cls::DV_TEXT),
            r#"{"_type":"DV_TEXT","value":"a"}"#
        );
    }

    #[test]
    fn generic_parameter_of_type_is_dropped() {
        let text = r#"{"_type":"DV_INTERVAL<DV_QUANTITY>","lower_unbounded":true}"#;
        assert_eq!(
            through(text, Cls::DATA_VALUE),
            r#"{"_type":"DV_INTERVAL","lower_unbounded":true}"#
        );
        assert_eq!(
            problems(r#"{"_type":"DV_INTERVAL<CLUSTER>"}"#, Cls::DATA_VALUE),
            ["/: `DV_INTERVAL<CLUSTER>` is not a class that `DV_INTERVAL` can hold (RM0103)"]
        );
        assert_eq!(
            problems(r#"{"_type":"DV_TEXT<DV_DATE>"}"#, Cls::DATA_VALUE).len(),
            1
        );
    }

    #[test]
    fn values_have_the_class_of_the_generic_parameter() {
        let interval = |parameter: &str| {
            format!(
                r#"{{"lower":{{"_type":"DV_COUNT","magnitude":1}},"_type":"DV_INTERVAL<{parameter}>","upper":{{"_type":"DV_DURATION","value":"P1D"}}}}"#
            )
        };
        assert_eq!(
            problems(&interval("DV_COUNT"), Cls::DATA_VALUE),
            [
                "/upper: the type of the object is DV_INTERVAL<DV_COUNT>; expected DV_COUNT, found DV_DURATION (RM0104)"
            ]
        );
        assert!(read(&interval("DV_QUANTIFIED"), Cls::DATA_VALUE).is_ok());
        assert!(read(&interval("DV_AMOUNT"), Cls::DATA_VALUE).is_ok());
        let event = r#"{"_type":"POINT_EVENT<ITEM_LIST>","data":{"_type":"ITEM_TREE"}}"#;
        assert_eq!(problems(event, Cls::EVENT).len(), 1);
        let within = format!(
            r#"{{"_type":"ELEMENT","value":{}}}"#,
            interval("DV_DURATION")
        );
        let found = problems(&within, Cls::ITEM);
        assert!(
            found.len() == 1 && found[0].starts_with("/value/lower: "),
            "{found:?}"
        );
    }

    #[test]
    fn every_violation_is_reported_with_its_path() {
        let text = r#"{"_type":"ELEMENT","nome":1,"name":{"value":5},"value":{"_type":"DV_COUNT","magnitude":5.0},"links":{},"uid":{"value":"x"},
            "null_flavour":[],"archetype_node_id":"at1","archetype_node_id":"at2","null_reason":{"_type":"CLUSTER"},"feeder_audit":{"_type":"NO"}}"#;
        assert_eq!(
            problems(text, Cls::ITEM),
            [
                "/nome: `ELEMENT` has no attribute `nome` (RM0101)",
                "/name/value: wrong kind of value; expected a text, found the number 5 (RM0106)",
                "/value/magnitude: wrong kind of value; expected an integer, found the number 5.0 (RM0106)",
                "/links: wrong kind of value; expected a list, found an object (RM0106)",
                "/uid: `UID_BASED_ID` is abstract: the object must name its class; expected UID_BASED_ID (RM0102)",
                "/null_flavour: wrong kind of value; expected one value, found a list (RM0106)",
                "/archetype_node_id: `archetype_node_id` occurs here more than once (RM0105)",
                "/null_reason: an object of this class cannot stand here; expected DV_TEXT, found CLUSTER (RM0104)",
                "/feeder_audit: unknown class `NO`; expected FEEDER_AUDIT (RM0103)",
            ]
        );
    }

    #[test]
    fn findings_in_list_elements_have_an_index() {
        let text = r#"{"items":[{"_type":"ELEMENT","name":{"value":"x"}},null,{"_type":"ELEMENT","name":{"valu":"x"}}],"name":{"value":""}}"#;
        assert_eq!(
            problems(text, Cls::CLUSTER),
            [
                "/items[1]: wrong kind of value; expected an object, found null (RM0106)",
                "/items[2]/name/valu: `DV_TEXT` has no attribute `valu` (RM0101)"
            ]
        );
    }

    #[test]
    fn read_next_advances_only_past_valid_values() {
        let whole = |text: &str| {
            let mut scan = Scanner::new(text);
            let read = read_next(&mut scan, Cls::DV_TEXT).map(|tree| write(tree.root().unwrap()));
            (read, text[scan.offset()..].to_owned())
        };
        let good = r#"{"_type":"DV_TEXT","value":"a"}"#;
        assert_eq!(
            whole(&format!(" {good} , 1")),
            (Some(good.to_owned()), " , 1".to_owned())
        );
        for wrong in [
            r#"{"_type":"NOTHING"}"#,
            r#"{"value":1}"#,
            r#"{"value":"a""#,
            "1",
            "",
            r#"{"_type":"ELEMENT"}"#,
            r#"{"value":"a","value":"b"}"#,
        ] {
            let text = format!("{wrong}, 1");
            assert_eq!(whole(&text), (None, text.clone()));
        }
    }

    #[test]
    fn null_is_absent_but_empty_list_is_kept() {
        let text = r#"{"_type":"CLUSTER","name":null,"items":[]}"#;
        assert_eq!(
            through(text, Cls::CLUSTER),
            r#"{"_type":"CLUSTER","items":[]}"#
        );
    }

    #[test]
    fn malformed_json_is_one_finding_with_position() {
        let place = |text: &str| problems(text, Cls::ANY).join("; ");
        assert_eq!(
            place("{\n \"a\" 1}"),
            "/: not readable as JSON: line 2, column 6: expected `:` (RM0001)"
        );
        assert_eq!(
            place(r#"{"_type":"DV_TEXT","value":"\ud800"}"#),
            "/: not readable as JSON: line 1, column 35: a lone surrogate (RM0001)"
        );
        assert_eq!(
            place(r#"{"_type":"DV_TEXT"} x"#),
            "/: not readable as JSON: line 1, column 21: expected a value (RM0001)"
        );
        for text in [
            "",
            "{",
            "[1,]",
            r#"{"_type":"DV_COUNT","magnitude":01}"#,
            r#"{"_type":"DV_TEXT",}"#,
            "\"\u{1}\"",
            r#"{"value":"a" "_type":"DV_TEXT"}"#,
        ] {
            assert_eq!(problems(text, Cls::ANY).len(), 1, "{text}");
        }
        assert!(place(&"{\"a\":".repeat(10_000)).contains("nested too deep"));
        assert!(
            place(&format!(
                "{{\"_type\":\"DV_TEXT\",\"x\":{}",
                "[".repeat(10_000)
            ))
            .contains("nested too deep")
        );
        assert!(
            place(&"{\"_type\":\"CLUSTER\",\"items\":[".repeat(10_000)).contains("nested too deep")
        );
    }

    #[test]
    fn escapes_are_decoded_and_minimal_when_written() {
        let tree = read(
            r#"{"value":"\u00e4\ud83d\ude00\/\b\f\u0000\n\"\\"}"#,
            Cls::DV_TEXT,
        )
        .unwrap();
        let root = tree.root().unwrap();
        assert_eq!(root.text_at(Attr::VALUE), Some("ä😀/\u{8}\u{c}\0\n\"\\"));
        assert_eq!(
            write(root),
            r#"{"_type":"DV_TEXT","value":"ä😀/\b\f\u0000\n\"\\"}"#
        );
    }

    #[test]
    fn members_and_elements_return_text_slices() {
        let parts = members(r#" {"a": 1.50, "b" : [ 1, {"c":[]} ] , "\u0063":null}"#).unwrap();
        let parts: Vec<(&str, &str)> = parts.iter().map(|(k, v)| (k.as_ref(), *v)).collect();
        assert_eq!(
            parts,
            [("a", "1.50"), ("b", "[ 1, {\"c\":[]} ]"), ("c", "null")]
        );
        assert_eq!(elements("[ 1, {\"c\":[]} ]").unwrap(), ["1", "{\"c\":[]}"]);
        assert_eq!(
            elements("[]").unwrap().len() + members("{}").unwrap().len(),
            0
        );
        for text in ["{", "{\"a\":1,}", "[]", "{} {}", "{\"a\" 1}", ""] {
            assert!(members(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reading_stops_at_the_limit_of_findings() {
        let members: String = (0..3_000).map(|i| format!("\"x{i}\":1,")).collect();
        // The text after the thousandth finding is not even JSON.
        for text in [
            format!("{{\"_type\":\"COMPOSITION\",{members}?"),
            format!(
                "{{\"_type\":\"COMPOSITION\",\"content\":[{}?",
                "{},".repeat(3_000)
            ),
        ] {
            let found = problems(&text, Cls::COMPOSITION);
            assert_eq!(found.len(), 1_000);
            assert!(!found.iter().any(|one| one.contains("RM0001")));
        }
    }

    #[test]
    fn damaged_json_does_not_panic() {
        for seed in 0..300 {
            let mut generator = Generator::new(seed);
            let tree = generator.tree();
            let text = write(tree.root().unwrap());
            for _ in 0..5 {
                if let Ok(tree) = read(&generator.damage(&text), Cls::ANY) {
                    crate::validate::validate(tree.root().unwrap());
                }
            }
        }
    }

    #[test]
    fn write_then_read_is_identity() {
        for seed in 0..400 {
            let tree = Generator::new(seed).tree();
            let root = tree.root().unwrap();
            let text = write(root);
            let again = read(&text, Cls::ANY).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert!(again.root().unwrap().same_as(root), "{text}");
        }
    }
}
