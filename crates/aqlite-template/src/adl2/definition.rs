//! cADL: objects, attributes and slots of the section `definition`.

use super::value::{Range, Value, common_kind};
use super::*;

/// The beginning of an object.
struct ObjectHead<'a> {
    /// The AOM 2 class of the constraint.
    kind: &'static str,
    class: String,
    id: &'a str,
    archetype: Option<&'a str>,
}

/// Matches the target of `use_node`.
fn target(text: &str) -> IResult<&str, &str> {
    take_while1(|c: char| !c.is_whitespace() && c != '}').parse(text)
}

/// Matches a value without delimiters.
fn scalar(text: &str) -> IResult<&str, &str> {
    take_while1(|c: char| !matches!(c, ',' | ';' | '}' | '|' | '{' | '"') && !c.is_whitespace())
        .parse(text)
}

/// Returns the keyword of a multiplicity of an attribute.
fn counted(word: &str) -> Option<&'static str> {
    let keywords = ["existence", "cardinality"];
    keywords.into_iter().find(|keyword| *keyword == word)
}

/// Returns the keyword of the status of a terminology constraint (ADL 2, Terminology Constraint
/// Strength).
fn status(word: &str) -> Option<&'static str> {
    let keywords = ["required", "extensible", "preferred", "example"];
    keywords.into_iter().find(|keyword| *keyword == word)
}

/// Returns whether a text is `0..1`, `1`, `1..*` or `*`.
fn is_multiplicity(count: &str) -> bool {
    let is_limit = |limit: &str| {
        limit == "*" || (!limit.is_empty() && limit.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut limits = count.split("..").map(str::trim);
    limits.clone().count() <= 2 && limits.all(is_limit)
}

/// cADL.
impl<'a> AdlReader<'a> {
    /// Reads an object: `OBSERVATION[id2, openEHR-EHR-OBSERVATION.x.v1.0.0] occurrences matches
    /// {0..1} matches { … }`.
    pub(super) fn object(
        &mut self,
        elements: &mut Elements<'a>,
        parent: usize,
        name: &'static str,
    ) -> Result<(), Diagnostic> {
        self.deeper()?;
        self.count_item()?;
        self.skip_order()?;
        self.space();
        let start = self.at;
        let head = self.head()?;
        let element = elements.add(Some(parent), name, Span::new(start, self.at))?;
        elements.attribute(element, "type", head.kind);
        elements.attribute(element, "rm_type_name", &head.class);
        // The root has its archetype id in place of a node id.
        elements.attribute(element, "node_id", head.id);
        if let Some(archetype) = head.archetype {
            elements.attribute(element, "archetype_ref", archetype);
        }
        if self.eats_word("occurrences") {
            let count = self.multiplicity("occurrences")?;
            elements.attribute(element, "occurrences", &count);
        }
        match head.kind {
            "C_COMPLEX_OBJECT_PROXY" => {
                let path = self.take(target).unwrap_or_default();
                elements.attribute(element, "target_path", path);
            }
            "ARCHETYPE_SLOT" => self.slot(elements, element)?,
            _ if self.eats_matches()? => self.parts(elements, element)?,
            _ => {}
        }
        self.depth -= 1;
        Ok(())
    }

    /// Skips the sibling order of a specialized archetype: the flattened text has that order
    /// already.
    fn skip_order(&mut self) -> Result<(), Diagnostic> {
        if self.eats_word("after") || self.eats_word("before") {
            self.expect("[", "behind the order of siblings")?;
            self.until("]");
        }
        Ok(())
    }

    /// Reads the beginning of an object: `use_archetype OBSERVATION[id2,
    /// openEHR-EHR-OBSERVATION.x.v1.0.0]`.
    fn head(&mut self) -> Result<ObjectHead<'a>, Diagnostic> {
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
        let class = self.class_name(place)?;
        self.expect("[", "behind the name of a class")?;
        let ids = self
            .until("]")
            .ok_or_else(|| broken(place, "the `[` behind the name of a class is not closed"))?;
        let mut ids = ids.splitn(2, ',').map(str::trim);
        let (id, archetype) = (ids.next().unwrap_or_default(), ids.next());
        let kind = kind.unwrap_or(match archetype {
            Some(_) => "C_ARCHETYPE_ROOT",
            None => "C_COMPLEX_OBJECT",
        });
        Ok(ObjectHead {
            kind,
            class,
            id,
            archetype,
        })
    }

    /// Reads the name of a class with its parameter: `DV_INTERVAL<DV_QUANTITY>`.
    fn class_name(&mut self, place: Span) -> Result<String, Diagnostic> {
        let class = self
            .word()
            .ok_or_else(|| broken(place, "expected the name of a class"))?;
        Ok(match self.next_char() {
            Some('<') => format!("{class}{}>", self.until(">").unwrap_or_default().trim()),
            _ => class.to_owned(),
        })
    }

    /// Reads the attributes of an object up to its `}`.
    pub(super) fn parts(
        &mut self,
        elements: &mut Elements<'a>,
        element: usize,
    ) -> Result<(), Diagnostic> {
        if self.eats("*") {
            return self.expect("}", "behind `*`");
        }
        while !self.eats("}") {
            match self.next_char() {
                Some('[') => self.tuple(elements, element)?,
                Some(c) if c.is_ascii_lowercase() => self.attribute(elements, element)?,
                _ => {
                    return Err(broken(
                        self.place(),
                        "expected an attribute, a tuple or `}`; default values and paths of attributes are not read",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Reads `items cardinality matches {1..*; unordered} matches { … }`.
    pub(super) fn attribute(
        &mut self,
        elements: &mut Elements<'a>,
        parent: usize,
    ) -> Result<(), Diagnostic> {
        self.deeper()?;
        let place = self.place();
        let name = self
            .word()
            .ok_or_else(|| broken(place, "expected the name of an attribute"))?;
        let element = elements.add(Some(parent), "attributes", Span::new(place.start, self.at))?;
        elements.attribute(element, "rm_attribute_name", name);
        while let Some(what) = self.next_word().and_then(counted) {
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

    /// Reads the permitted objects of an attribute up to its `}`.
    pub(super) fn children(
        &mut self,
        elements: &mut Elements<'a>,
        attribute: usize,
    ) -> Result<(), Diagnostic> {
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

    /// Returns whether an object follows, rather than a value.
    pub(super) fn is_object(&mut self) -> bool {
        let Some(next) = self.next_word() else {
            return false;
        };
        let behind = self
            .rest()
            .get(next.len()..)
            .unwrap_or_default()
            .trim_start();
        matches!(
            next,
            "use_archetype" | "allow_archetype" | "use_node" | "after" | "before"
        ) || (status(next).is_none() && behind.starts_with(['[', '<']))
    }

    /// Reads `matches {0..*; unordered}` and returns the text between the braces with its parts in
    /// order.
    pub(super) fn multiplicity(&mut self, what: &str) -> Result<String, Diagnostic> {
        let place = self.place();
        if !self.eats_matches()? {
            return Err(broken(place, format!("expected `matches` behind `{what}`")));
        }
        let inside = self
            .until("}")
            .ok_or_else(|| broken(place, format!("the `{{` behind `{what}` is not closed")))?;
        let mut parts = inside.split(';').map(str::trim);
        let count = parts.next().unwrap_or_default();
        if !is_multiplicity(count) {
            let message = format!("`{count}` is no multiplicity: expected `0..1`, `1` or `1..*`");
            return Err(broken(place, message));
        }
        let count = if count == "*" { "0..*" } else { count };
        Ok(parts.fold(count.to_owned(), |mut all, part| {
            all.push_str("; ");
            all.push_str(part);
            all
        }))
    }

    /// Reads the inclusions and exclusions of a slot.
    pub(super) fn slot(
        &mut self,
        elements: &mut Elements<'a>,
        element: usize,
    ) -> Result<(), Diagnostic> {
        if self.eats_word("closed") {
            return rule(elements, element, "excludes", "{/.*/}", self.place());
        }
        if !self.eats_matches()? {
            return Ok(());
        }
        if self.eats("*") {
            return self.expect("}", "behind `*`");
        }
        self.slot_rules(elements, element)
    }

    /// Reads the rules of a slot up to its `}`.
    fn slot_rules(
        &mut self,
        elements: &mut Elements<'a>,
        element: usize,
    ) -> Result<(), Diagnostic> {
        let mut side = "includes";
        while !self.eats("}") {
            if self.eats_word("include") {
                side = "includes";
            } else if self.eats_word("exclude") {
                side = "excludes";
            } else {
                let place = self.place();
                let source = self.slot_rule(place)?;
                rule(elements, element, side, &source, place)?;
            }
        }
        Ok(())
    }

    /// Reads a rule of a slot as written.
    fn slot_rule(&mut self, place: Span) -> Result<String, Diagnostic> {
        let front = self
            .until("{")
            .ok_or_else(|| broken(place, "expected `include`, `exclude` or a rule of a slot"))?;
        let pattern = self.take(expression);
        self.expect("}", "behind the rule of a slot")?;
        Ok(format!("{front}{{{}}}", pattern.unwrap_or_default()))
    }

    /// Reads `[units, magnitude] matches { [{"kg"}, {|0.0..200.0|}], … }` into one column of values
    /// for each attribute.
    pub(super) fn tuple(
        &mut self,
        elements: &mut Elements<'a>,
        parent: usize,
    ) -> Result<(), Diagnostic> {
        self.expect("[", "before a tuple")?;
        let place = self.place();
        let names: Vec<&str> = self
            .until("]")
            .map(|all| all.split(',').map(str::trim).collect())
            .unwrap_or_default();
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
            let message = "expected `matches` behind the names of a tuple";
            return Err(broken(self.place(), message));
        }
        while !self.eats("}") {
            self.tuple_row(elements, &columns)?;
        }
        Ok(())
    }

    /// Reads a row of a tuple: one value for each column.
    fn tuple_row(
        &mut self,
        elements: &mut Elements<'a>,
        columns: &[usize],
    ) -> Result<(), Diagnostic> {
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
        self.expect("]", "behind a row of a tuple")
    }

    /// Reads a constraint on a primitive value: texts, numbers, codes, dates, times and durations,
    /// and intervals of them.
    pub(super) fn primitive(
        &mut self,
        elements: &mut Elements<'a>,
        parent: usize,
    ) -> Result<(), Diagnostic> {
        self.space();
        let place = self.place();
        let element = elements.add(Some(parent), "children", place)?;
        if let Some(status) = self.next_word().and_then(status) {
            self.word();
            elements.text_child(element, "constraint_status", status, place)?;
        }
        let mut kind = None;
        loop {
            let value = self.value(place)?;
            kind = Some(common_kind(kind, value.kind()));
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
            // The assumed value is not a constraint.
            self.value(place)?;
        }
        let kind = kind.unwrap_or_default();
        elements.attribute(element, "type", kind);
        elements.attribute(element, "rm_type_name", class_of(kind));
        Ok(())
    }

    pub(super) fn value(&mut self, place: Span) -> Result<Value, Diagnostic> {
        let missing = || broken(place, "expected a value");
        match self.next_char().ok_or_else(missing)? {
            '"' => {
                let text = self.take(quoted).map(|text| Value::Text(unescaped(text)));
                text.ok_or_else(|| broken(place, "the text is never closed"))
            }
            '/' | '^' => {
                let found = self
                    .take(expression)
                    .ok_or_else(|| broken(place, "the regular expression is never closed"))?;
                // The delimiters, slashes or carets, are one byte each.
                let inside = found.get(1..found.len() - 1).unwrap_or_default();
                Ok(Value::Text(format!("/{inside}/")))
            }
            '[' => {
                self.at += 1;
                let code = self
                    .until("]")
                    .ok_or_else(|| broken(place, "the code is never closed"))?;
                // The assumed value behind a semicolon does not constrain documents.
                let code = code.split(';').next().unwrap_or_default();
                Ok(Value::Code(code.trim().to_owned()))
            }
            '|' => self.interval(String::new(), place),
            _ => {
                let scalar = self.take(scalar).ok_or_else(missing)?;
                match scalar.strip_suffix('/') {
                    Some(pattern) if self.rest().starts_with('|') => {
                        self.interval(pattern.to_owned(), place)
                    }
                    _ => Ok(Value::Scalar(scalar.to_owned())),
                }
            }
        }
    }

    /// Reads `|0..9|`, `|>=0|` or `|5 +/-1|`. A pattern may precede the interval of a duration.
    pub(super) fn interval(&mut self, pattern: String, place: Span) -> Result<Value, Diagnostic> {
        self.expect("|", "before an interval")?;
        let inside = self
            .until("|")
            .ok_or_else(|| broken(place, "the interval is never closed"))?
            .trim();
        let range = Range::read(inside)
            .ok_or_else(|| broken(place, format!("`|{inside}|` is no interval")))?;
        Ok(Value::Interval { pattern, range })
    }
}

/// Returns the AOM 2 class of the values of a kind of constraint.
pub(super) fn class_of(kind: &str) -> &str {
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
pub(super) fn rule<'a>(
    elements: &mut Elements<'a>,
    slot: usize,
    side: &'static str,
    source: &str,
    place: Span,
) -> Result<(), Diagnostic> {
    let rule = elements.add(Some(slot), side, place)?;
    elements.text_child(rule, "string_expression", source, place)
}
