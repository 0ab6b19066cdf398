//! The key tree of both formats: segments with numbered instances, and values by suffix.

use aqlite_rm::Token;
use aqlite_rm::diag::Finding;
use aqlite_rm::json::{self, Malformed, Scanner};
use aqlite_rm::number;
use aqlite_rm::order;
use std::borrow::Cow;

/// The maximum number of keys or members of a document.
pub(super) const MAX_KEYS: usize = 50_000;
/// The maximum number of segments of a key.
pub(super) const MAX_DEPTH: usize = 64;
/// The maximum index of a segment.
const MAX_INDEX: u32 = 10_000;

/// The message about a key with several different values.
pub(super) const CONFLICT: &str = "two keys for the same place have different values";

/// The message about a bar without a suffix behind it.
const EMPTY_SUFFIX: &str = "the suffix behind the bar is missing; the main value has no bar";

/// Returns whether blank text is a value of the suffix. Numbers without a unit have the empty unit.
fn may_be_blank(suffix: &str) -> bool {
    matches!(suffix, "unit" | "units")
}

/// The formats, and their variants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Shape {
    /// One object of keys: paths of segments, with a suffix.
    Flat,
    /// Nested objects and lists.
    Structured,
    /// STRUCTURED in which every segment below the root must be a list.
    StrictStructured,
}

/// A value as sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Number(Cow<'a, str>),
    Boolean(bool),
    /// Canonical JSON.
    Json(Cow<'a, str>),
}

impl Value<'_> {
    /// Returns the value with its text borrowed.
    fn borrowed(&self) -> Value<'_> {
        match self {
            Value::Text(t) => Value::Text(Cow::Borrowed(t)),
            Value::Number(t) => Value::Number(Cow::Borrowed(t)),
            Value::Json(t) => Value::Json(Cow::Borrowed(t)),
            Value::Boolean(b) => Value::Boolean(*b),
        }
    }

    /// Returns whether two values of one key agree. Numbers are compared by value, and the letter
    /// case of booleans is ignored.
    fn is_same(&self, other: &Value<'_>) -> bool {
        let (own, other_text) = (self.text(), other.text());
        match (self, other) {
            (Value::Boolean(_), _) | (_, Value::Boolean(_)) => own.eq_ignore_ascii_case(other_text),
            (Value::Number(_), Value::Number(_)) => {
                let pair = number::parse(own).zip(number::parse(other_text));
                own == other_text || pair.is_some_and(|(a, b)| a.total_cmp(&b).is_eq())
            }
            _ => own == other_text,
        }
    }

    /// Returns the text of the leaf in a document.
    pub fn text(&self) -> &str {
        match self {
            Value::Text(t) | Value::Number(t) | Value::Json(t) => t,
            Value::Boolean(true) => "true",
            Value::Boolean(false) => "false",
        }
    }
}

/// A node of the key tree.
#[derive(Debug, Default)]
pub(super) struct KeyTree<'a> {
    /// The instances of the segments below, sorted by segment and index.
    parts: Vec<SegmentInstance<'a>>,
    /// The values, sorted by suffix and index. The main value has the empty suffix.
    pub values: Vec<SuffixValue<'a>>,
}

/// The number of values up to which a linear search is faster than a binary search.
const LINEAR_SEARCH: usize = 8;

/// The tree without keys.
pub(super) static EMPTY_TREE: KeyTree<'static> = KeyTree {
    parts: Vec::new(),
    values: Vec::new(),
};

/// One instance of a segment.
#[derive(Debug)]
pub(super) struct SegmentInstance<'a> {
    pub segment: Cow<'a, str>,
    pub index: u32,
    pub form: KeyTree<'a>,
}

/// The value of a suffix.
#[derive(Debug)]
pub(super) struct SuffixValue<'a> {
    pub suffix: Cow<'a, str>,
    pub index: u32,
    pub value: Value<'a>,
}

impl SegmentInstance<'_> {
    /// Merges the instances and values of one place below. Returns the keys, from this segment,
    /// that have several different values.
    fn merge_duplicates(&mut self) -> Vec<String> {
        let place = match self.index {
            0 => self.segment.to_string(),
            index => format!("{}:{index}", self.segment),
        };
        let conflicts = self.form.merge_duplicates().into_iter();
        let key = |rest: String| match rest.as_bytes() {
            [] | [b'|', ..] => format!("{place}{rest}"),
            _ => format!("{place}/{rest}"),
        };
        conflicts.map(key).collect()
    }
}

impl<'a> KeyTree<'a> {
    /// Returns the value of this suffix. STRUCTURED may omit the bar, so a segment of this name is
    /// accepted as well.
    pub fn value(&self, suffix: &str) -> Option<&Value<'a>> {
        let bare = || {
            self.first(suffix)
                .filter(|f| f.parts.is_empty())?
                .value_at("", 0)
        };
        self.value_at(suffix, 0).or_else(bare)
    }

    /// Returns the value of this suffix and index.
    pub fn value_at(&self, suffix: &str, index: u32) -> Option<&Value<'a>> {
        // Most nodes have one to three values, and texts of different lengths are compared by
        // length alone.
        let found = if self.values.len() <= LINEAR_SEARCH {
            self.values
                .iter()
                .position(|given| given.index == index && given.suffix == suffix)
        } else {
            self.values
                .binary_search_by(|given| {
                    (given.suffix.as_ref(), given.index).cmp(&(suffix, index))
                })
                .ok()
        };
        found
            .and_then(|at| self.values.get(at))
            .map(|given| &given.value)
    }

    /// Iterates over the values, with the main value behind those of suffixes, because it may be
    /// an abbreviation of several of them.
    pub fn values_by_suffix(&self) -> impl Iterator<Item = &SuffixValue<'a>> {
        let start = self.values.partition_point(|given| given.suffix.is_empty());
        let (main, others) = self.values.split_at_checked(start).unwrap_or_default();
        others.iter().chain(main)
    }

    /// Iterates over the segments below, each with its instances.
    pub fn segments(&self) -> impl Iterator<Item = (&str, &[SegmentInstance<'a>])> {
        self.parts
            .chunk_by(|a, b| a.segment == b.segment)
            .filter_map(|all| Some((all.first()?.segment.as_ref(), all)))
    }

    /// Returns the instances of a segment.
    pub fn instances(&self, segment: &str) -> &[SegmentInstance<'a>] {
        let start = self.parts.partition_point(|part| *part.segment < *segment);
        let rest = self.parts.get(start..).unwrap_or_default();
        rest.get(..rest.partition_point(|part| part.segment == segment))
            .unwrap_or_default()
    }

    /// Returns the instance with this index.
    pub fn instance(&self, segment: &str, index: u32) -> Option<&KeyTree<'a>> {
        let instances = self.instances(segment);
        let found = instances.binary_search_by_key(&index, |part| part.index);
        found
            .ok()
            .and_then(|at| instances.get(at))
            .map(|part| &part.form)
    }

    /// Returns the first instance of this segment.
    pub fn first(&self, segment: &str) -> Option<&KeyTree<'a>> {
        self.instances(segment).first().map(|part| &part.form)
    }

    /// Returns the main value, if there is no other value and nothing below.
    pub fn only_value(&self) -> Option<&Value<'a>> {
        match self.values.as_slice() {
            [given] if self.is_leaf() && given.suffix.is_empty() && given.index == 0 => {
                Some(&given.value)
            }
            _ => None,
        }
    }

    /// Returns whether there are no segments below.
    pub fn is_leaf(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns whether neither this node nor any below has a value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.parts.iter().all(|part| part.form.is_empty())
    }

    /// Builds the tree of keys that the writer produced.
    pub fn from_keys(keys: impl Iterator<Item = (&'a str, &'a Value<'a>)>) -> KeyTree<'a> {
        let (mut root, mut last) = (KeyTree::default(), LastPath::default());
        for (key, value) in keys {
            let (path, suffix) = split_suffix(Cow::Borrowed(key));
            if value.text().trim().is_empty()
                && !may_be_blank(suffix.as_deref().unwrap_or_default())
            {
                continue;
            }
            if let Ok(form) = last.node_at(&mut root, path) {
                form.add_value(indexed(suffix), value.borrowed());
            }
        }
        root.merge_duplicates();
        root
    }

    /// Returns the child for an instance. Keys of one node are usually adjacent, so only the last
    /// child is compared. [`KeyTree::merge_duplicates`] merges the others later.
    fn child_mut(&mut self, segment: Cow<'a, str>, index: u32) -> Option<&mut KeyTree<'a>> {
        if self
            .parts
            .last()
            .is_none_or(|last| last.index != index || last.segment != segment)
        {
            self.parts.push(SegmentInstance {
                segment,
                index,
                form: KeyTree::default(),
            });
        }
        self.parts.last_mut().map(|last| &mut last.form)
    }

    fn add_value(&mut self, (suffix, index): (Cow<'a, str>, u32), value: Value<'a>) {
        self.values.push(SuffixValue {
            suffix,
            index,
            value,
        });
    }

    /// Returns the instances of all segments for modification. Their segments must stay the same.
    pub fn parts_mut(&mut self) -> &mut [SegmentInstance<'a>] {
        &mut self.parts
    }

    /// Moves the instances of segments to others: pairs of old and new segment. Returns the keys
    /// that then have several different values.
    pub fn rename(&mut self, pairs: &[(String, String)]) -> Vec<String> {
        for part in &mut self.parts {
            let pair = pairs.iter().find(|(old, _)| *old == part.segment);
            pair.into_iter()
                .for_each(|(_, new)| part.segment = Cow::Owned(new.clone()));
        }
        self.merge_parts();
        let is_new =
            |part: &&mut SegmentInstance<'_>| pairs.iter().any(|(_, new)| *new == part.segment);
        let parts = self.parts.iter_mut().filter(is_new);
        parts.flat_map(SegmentInstance::merge_duplicates).collect()
    }

    /// Sorts the instances and values, and merges those of one place. Returns the keys that have
    /// several different values.
    fn merge_duplicates(&mut self) -> Vec<String> {
        self.merge_parts();
        let mut conflicts = self.merge_values();
        for part in &mut self.parts {
            let left = super::MAX_FINDINGS - conflicts.len();
            conflicts.extend(part.merge_duplicates().into_iter().take(left));
        }
        conflicts
    }

    /// Sorts the instances of segments, and merges those of one place.
    fn merge_parts(&mut self) {
        order::sort_by(&mut self.parts, |a, b| {
            (&a.segment, a.index).cmp(&(&b.segment, b.index))
        });
        self.parts.dedup_by(|next, kept| {
            let is_same = (&next.segment, next.index) == (&kept.segment, kept.index);
            if is_same {
                kept.form.parts.append(&mut next.form.parts);
                kept.form.values.append(&mut next.form.values);
            }
            is_same
        });
    }

    /// Sorts the values, and keeps the first of each suffix. Returns the suffixes with several
    /// different values.
    fn merge_values(&mut self) -> Vec<String> {
        let mut conflicts = Vec::new();
        order::sort_by(&mut self.values, |a, b| {
            (&a.suffix, a.index).cmp(&(&b.suffix, b.index))
        });
        self.values.dedup_by(|next, kept| {
            let is_same = (&next.suffix, next.index) == (&kept.suffix, kept.index);
            if is_same && !next.value.is_same(&kept.value) && conflicts.len() < super::MAX_FINDINGS
            {
                conflicts.push(match kept.suffix.as_ref() {
                    "" => String::new(),
                    suffix => format!("|{suffix}"),
                });
            }
            is_same
        });
        conflicts
    }
}

/// Parses a text in one of the formats.
pub(super) fn parse(text: &str, shape: Shape) -> Result<KeyTree<'_>, Vec<Finding>> {
    let mut reader = KeyReader {
        scan: Scanner::new(text),
        findings: Vec::new(),
        count: 0,
        last: LastPath::default(),
        is_strict: shape == Shape::StrictStructured,
        place: String::new(),
    };
    let mut root = KeyTree::default();
    let read = reader.read_root(&mut root, shape);
    // Merging also happens after a syntax error, so that conflicts before it are reported.
    for key in root.merge_duplicates() {
        reader.report("FLT0107", &key, CONFLICT);
    }
    match read {
        Err(malformed) => Err(vec![json::finding(text, malformed)]),
        Ok(()) if reader.findings.is_empty() => Ok(root),
        Ok(()) => Err(reader.findings),
    }
}

/// A function that reads the value of a member, given its name.
type Member<'m, 'a> = dyn FnMut(&mut KeyReader<'a>, Cow<'a, str>) -> Result<(), Malformed> + 'm;

struct KeyReader<'a> {
    scan: Scanner<'a>,
    findings: Vec<Finding>,
    count: usize,
    last: LastPath<'a>,
    /// Whether an instance must be in a list.
    is_strict: bool,
    /// The key of the object of STRUCTURED that is being read.
    place: String,
}

impl<'a> KeyReader<'a> {
    fn read_root(&mut self, root: &mut KeyTree<'a>, shape: Shape) -> Result<(), Malformed> {
        if self.scan.peek() != Some(b'{') {
            return Err(self.scan.error("expected an object"));
        }
        match shape {
            Shape::Flat => {
                self.read_members(&mut |reader, key| reader.read_flat_member(root, key))?
            }
            Shape::Structured | Shape::StrictStructured => self.read_structured(root, 0)?,
        }
        if self.scan.next_token()? != Token::End {
            return Err(self.scan.error("expected the end of the document"));
        }
        Ok(())
    }

    /// Reads the members of an object.
    fn read_members(&mut self, member: &mut Member<'_, 'a>) -> Result<(), Malformed> {
        self.scan.next_token()?;
        if self.scan.peek() == Some(b'}') {
            return self.scan.next_token().map(drop);
        }
        loop {
            let key = self.scan.key()?;
            self.count += 1;
            if self.count > MAX_KEYS {
                return Err(self
                    .scan
                    .error("the document has too many keys: 50,000 are the most"));
            }
            member(self, key)?;
            match self.scan.next_token()? {
                Token::Comma => {}
                Token::ObjectEnd => return Ok(()),
                _ => return Err(self.scan.error("expected `,` or `}`")),
            }
        }
    }

    fn report(&mut self, code: &'static str, key: &str, message: impl Into<String>) {
        if self.findings.len() < super::MAX_FINDINGS {
            let is_inner = !self.place.is_empty() && !key.is_empty() && !key.starts_with('|');
            let key = [self.place.as_str(), if is_inner { "/" } else { "" }, key].concat();
            self.findings
                .push(Finding::error(code, super::limited(key), message));
        }
    }

    fn read_flat_member(
        &mut self,
        root: &mut KeyTree<'a>,
        key: Cow<'a, str>,
    ) -> Result<(), Malformed> {
        let is_json = matches!(self.scan.peek(), Some(b'{' | b'['));
        if key == "ctx" && is_json {
            self.last = LastPath::default();
            return self.read_instances(root, key, 0);
        }
        let may_be_json = key.ends_with("|raw") || key == "ctx/generic_fields";
        let Some(value) = self.read_scalar(&key, may_be_json)? else {
            return Ok(());
        };
        let (path, suffix) = split_suffix(key.clone());
        if suffix.as_deref() == Some("") {
            self.report("FLT0105", &key, EMPTY_SUFFIX);
            return Ok(());
        }
        match self.last.node_at(root, path) {
            Ok(form) => form.add_value(indexed(suffix), value),
            Err(message) => self.report("FLT0105", &key, message),
        }
        Ok(())
    }

    /// Reads a text, number or boolean. Returns `None` for values that count as absent.
    fn read_scalar(
        &mut self,
        key: &str,
        may_be_json: bool,
    ) -> Result<Option<Value<'a>>, Malformed> {
        if matches!(self.scan.peek(), Some(b'{' | b'[')) {
            return self.read_json(key, may_be_json);
        }
        let suffix = key.rsplit('|').next().unwrap_or(key);
        Ok(match self.scan.next_token()? {
            Token::String(text) if text.trim().is_empty() && !may_be_blank(suffix) => None,
            Token::String(text) => Some(Value::Text(text)),
            Token::Number(text) => Some(Value::Number(Cow::Borrowed(text))),
            Token::Boolean(value) => Some(Value::Boolean(value)),
            Token::Null => None,
            _ => return Err(self.scan.error("expected a value")),
        })
    }

    /// Reads a value of STRUCTURED. Its key is spelled for a finding only.
    fn read_given(
        &mut self,
        name: &str,
        may_be_json: bool,
        key: impl FnOnce() -> String,
    ) -> Result<Option<Value<'a>>, Malformed> {
        match self.scan.peek() {
            Some(b'{' | b'[') => self.read_json(&key(), may_be_json),
            _ => self.read_scalar(name, may_be_json),
        }
    }

    /// Reads an object or a list in place of a value. Empty ones count as absent.
    fn read_json(&mut self, key: &str, may_be_json: bool) -> Result<Option<Value<'a>>, Malformed> {
        // Twice the depth: canonical JSON nests an object and a list for each level of the
        // document.
        let text = self.scan.skip_value(MAX_DEPTH * 2)?;
        if may_be_json {
            return Ok(Some(Value::Json(Cow::Borrowed(text))));
        }
        if !text.bytes().all(|b| b"{}[] \n\r\t".contains(&b)) {
            self.report(
                "FLT0106",
                key,
                "expected a text, a number or a boolean, found an object or a list",
            );
        }
        Ok(None)
    }

    /// Reads an object of STRUCTURED.
    fn read_structured(&mut self, form: &mut KeyTree<'a>, depth: usize) -> Result<(), Malformed> {
        if depth > MAX_DEPTH {
            return Err(Malformed {
                too_deep: true,
                ..self.scan.error("nested too deep")
            });
        }
        self.read_members(&mut |reader, key| match key.strip_prefix('|') {
            Some("") => {
                reader.report("FLT0105", &key, EMPTY_SUFFIX);
                reader.scan.skip_value(MAX_DEPTH * 2).map(drop)
            }
            Some(_) => reader.read_suffix(form, split_at(key, 1).1),
            None if key.is_empty() => reader.read_suffix(form, key),
            None if key.contains('/') && depth == 0 => reader.read_flat_member(form, key),
            None => reader.read_instances(form, key, depth),
        })
    }

    /// Reads the value of a suffix, or the list of its values.
    fn read_suffix(
        &mut self,
        form: &mut KeyTree<'a>,
        suffix: Cow<'a, str>,
    ) -> Result<(), Malformed> {
        if self.scan.peek() == Some(b'[') && suffix != "raw" {
            return self.read_list(&mut |reader, index| {
                let value = reader.read_given(&suffix, false, || spelled("", index, &suffix))?;
                value
                    .into_iter()
                    .for_each(|value| form.add_value((suffix.clone(), index), value));
                Ok(())
            });
        }
        let (suffix, index) = split_index(suffix).unwrap_or((Cow::Borrowed(""), 0));
        let key = || spelled("", index, &suffix);
        if let Some(value) = self.read_given(&suffix, suffix == "raw", key)? {
            form.add_value((suffix, index), value);
        }
        Ok(())
    }

    fn read_list(
        &mut self,
        element: &mut dyn FnMut(&mut Self, u32) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.scan.next_token()?;
        if self.scan.peek() == Some(b']') {
            return self.scan.next_token().map(drop);
        }
        for index in 0.. {
            if index > MAX_INDEX {
                return Err(self
                    .scan
                    .error("the list has too many members: 10,001 are the most"));
            }
            element(self, index)?;
            match self.scan.next_token()? {
                Token::Comma => {}
                Token::ArrayEnd => break,
                _ => return Err(self.scan.error("expected `,` or `]`")),
            }
        }
        Ok(())
    }

    /// Reads the instances of a segment: a list, or a single one.
    fn read_instances(
        &mut self,
        form: &mut KeyTree<'a>,
        key: Cow<'a, str>,
        depth: usize,
    ) -> Result<(), Malformed> {
        let (key, suffix) = split_suffix(key);
        let has_index = key.contains(':');
        let Some((segment, index)) = split_index(key.clone()) else {
            self.report("FLT0105", &key, "the index of a segment is a number from 0");
            return self.scan.skip_value(MAX_DEPTH * 2).map(drop);
        };
        if segment == "generic_fields" {
            let value = self.read_scalar(&segment, true)?;
            form.child_mut(segment, 0)
                .zip(value)
                .into_iter()
                .for_each(|(at, value)| at.add_value((Cow::Borrowed(""), 0), value));
            return Ok(());
        }
        if self.scan.peek() == Some(b'[') {
            return self.read_list(&mut |reader, i| {
                if has_index && i > 0 {
                    let message = "a list under a name with an index has one member";
                    reader.report("FLT0105", &key, message);
                }
                // A name with an index is one instance, as in FLAT.
                let index = if has_index { index } else { i };
                reader.read_instance(form, segment.clone(), index, suffix.clone(), depth)
            });
        }
        let is_strict = self.is_strict;
        if is_strict && depth > 0 {
            self.report(
                "FLT0106",
                &key,
                format!(
                    "expected a list of the instances of `{}`: that is what `strict` asks for",
                    super::shown(&segment)
                ),
            );
        }
        // `ctx` has no lists, also in strict documents.
        self.is_strict = is_strict && !(depth == 0 && segment == "ctx");
        let read = self.read_instance(form, segment, index, suffix, depth);
        self.is_strict = is_strict;
        read
    }

    fn read_instance(
        &mut self,
        form: &mut KeyTree<'a>,
        segment: Cow<'a, str>,
        index: u32,
        suffix: Option<Cow<'a, str>>,
        depth: usize,
    ) -> Result<(), Malformed> {
        let is_raw = suffix.as_deref() == Some("raw");
        if self.scan.peek() == Some(b'{') && !is_raw {
            let length = self.place.len();
            if length > 0 {
                self.place.push('/');
            }
            self.place.push_str(&segment);
            if index > 0 {
                self.place.push_str(&format!(":{index}"));
            }
            form.child_mut(segment, index)
                .map_or(Ok(()), |at| self.read_structured(at, depth + 1))?;
            self.place.truncate(length);
            return Ok(());
        }
        let key = || spelled(&segment, index, suffix.as_deref().unwrap_or_default());
        let value = self.read_given(&segment, is_raw, key)?;
        if let Some((at, value)) =
            value.and_then(|value| Some((form.child_mut(segment, index)?, value)))
        {
            at.add_value(indexed(suffix), value);
        }
        Ok(())
    }
}

/// Returns the key of a segment or of a suffix, as FLAT spells it.
fn spelled(segment: &str, index: u32, suffix: &str) -> String {
    let mark = if suffix.is_empty() { "" } else { "|" };
    match (index, segment) {
        (0, _) => format!("{segment}{mark}{suffix}"),
        (_, "") => format!("{mark}{suffix}:{index}"),
        _ => format!("{segment}:{index}{mark}{suffix}"),
    }
}

/// The path of the last key. Its nodes are the last ones of their parents, so the part that the
/// next key shares with it needs no search.
#[derive(Default)]
struct LastPath<'a> {
    path: Cow<'a, str>,
    /// The length of the path before the last segment in bytes, and the number of its segments.
    parent: (usize, usize),
}

impl<'a> LastPath<'a> {
    /// Returns the node at a path of segments, creating it if necessary.
    fn node_at<'f>(
        &mut self,
        root: &'f mut KeyTree<'a>,
        path: Cow<'a, str>,
    ) -> Result<&'f mut KeyTree<'a>, &'static str> {
        // Equal bytes up to a slash are equal segments.
        let shares =
            self.parent.0 > 0 && path.get(..self.parent.0) == self.path.get(..self.parent.0);
        let (length, depth) = if shares { self.parent } else { (0, 0) };
        let rest = split_at(path.clone(), length).1;
        if let Some(slash) = rest.bytes().rposition(|b| b == b'/') {
            self.parent = (length + slash + 1, depth + rest.matches('/').count());
        } else if !shares {
            self.parent = (0, 0);
        }
        self.path = path;
        let from =
            (0..depth).try_fold(root, |at, _| at.parts.last_mut().map(|last| &mut last.form));
        let placed = from.ok_or(NO_SEGMENT).and_then(|from| {
            if self.parent.1 < MAX_DEPTH {
                descend(from, rest)
            } else {
                Err(TOO_DEEP)
            }
        });
        if placed.is_err() {
            self.parent = (0, 0);
        }
        placed
    }
}

const NO_SEGMENT: &str = "a segment is `id` or `id:index`, with an index from 0 to 10,000";

const TOO_DEEP: &str = "the key has too many segments";

/// Returns the node at a path of segments below another, creating it if necessary.
fn descend<'f, 'a>(
    from: &'f mut KeyTree<'a>,
    path: Cow<'a, str>,
) -> Result<&'f mut KeyTree<'a>, &'static str> {
    let (mut at, mut path) = (from, path);
    while let Some(slash) = position_of(&path, b'/') {
        let (front, behind) = split_at(path, slash);
        path = split_at(behind, 1).1;
        at = child_at(at, front)?;
    }
    child_at(at, path)
}

fn child_at<'f, 'a>(
    at: &'f mut KeyTree<'a>,
    segment: Cow<'a, str>,
) -> Result<&'f mut KeyTree<'a>, &'static str> {
    let (segment, index) = split_index(segment)
        .filter(|(id, _)| !id.is_empty())
        .ok_or(NO_SEGMENT)?;
    at.child_mut(segment, index).ok_or(NO_SEGMENT)
}

/// Returns the position of a character. A simple loop, because the texts are short.
fn position_of(text: &str, character: u8) -> Option<usize> {
    text.bytes().position(|b| b == character)
}

fn split_at(text: Cow<'_, str>, at: usize) -> (Cow<'_, str>, Cow<'_, str>) {
    match text {
        Cow::Borrowed(text) => text
            .split_at_checked(at)
            .map_or((Cow::Borrowed(text), Cow::Borrowed("")), |(a, b)| {
                (Cow::Borrowed(a), Cow::Borrowed(b))
            }),
        Cow::Owned(text) => {
            let (a, b) = text.split_at_checked(at).unwrap_or((&text, ""));
            (Cow::Owned(a.to_owned()), Cow::Owned(b.to_owned()))
        }
    }
}

/// Splits `id|suffix`.
fn split_suffix(segment: Cow<'_, str>) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
    match position_of(&segment, b'|') {
        Some(at) => {
            let (id, suffix) = split_at(segment, at);
            (id, Some(split_at(suffix, 1).1))
        }
        None => (segment, None),
    }
}

/// Splits a suffix and its index.
fn indexed(suffix: Option<Cow<'_, str>>) -> (Cow<'_, str>, u32) {
    suffix.map_or((Cow::Borrowed(""), 0), |s| {
        split_index(s.clone()).unwrap_or((s, 0))
    })
}

/// Splits `id:2` into id and index. Returns `None` for a malformed index.
fn split_index(segment: Cow<'_, str>) -> Option<(Cow<'_, str>, u32)> {
    let Some(at) = segment.bytes().rposition(|b| b == b':') else {
        return Some((segment, 0));
    };
    let index = segment.get(at + 1..).unwrap_or_default();
    if index.is_empty() || !index.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let index = index.parse().ok().filter(|i| *i <= MAX_INDEX)?;
    Some((split_at(segment, at).0, index))
}
