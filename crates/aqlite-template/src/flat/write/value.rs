//! Values as keys: suffixes, and objects without nodes below them.

use super::*;

impl<'w, 'd> Writer<'w, 'd> {
    /// Writes the suffixes of an object.
    pub(super) fn write_suffixes(
        &mut self,
        node: NodeRef<'d>,
        path: &str,
        web: Option<&'w WebNode>,
    ) {
        let class = node.class();
        for row in suffix::of(class).filter(|s| s.is_written) {
            let leaf = row.path.iter().try_fold(node, |at, attr| at.get(*attr));
            let Some(leaf) = leaf.filter(|l| l.is_leaf()) else {
                continue;
            };
            let first = row.path.first().copied();
            let has_keys =
                |attr| self.has_own_keys(node, attr) || node_at(web, node, attr).is_some();
            if row.path.len() > 1 && first.is_some_and(has_keys) {
                continue;
            }
            let is_part = class == Cls::DV_INTERVAL && web.is_none();
            let is_known = is_implied(node, first, leaf) && is_usual(row.name, leaf);
            if is_part && is_known || self.is_default(node, row.name, leaf) {
                continue;
            }
            let key = match self.suffix_name(node, row.name) {
                "" => path.to_owned(),
                name => format!("{path}|{name}"),
            };
            self.push(key, scalar(leaf), class);
        }
    }

    /// Returns whether the object at an attribute is written by keys of its own. A terminology never
    /// is.
    fn has_own_keys(&self, node: NodeRef<'_>, attr: Attr) -> bool {
        let inner = node.get(attr);
        inner.is_some_and(|inner| inner.class() != Cls::TERMINOLOGY_ID && self.is_long(inner))
    }

    /// Returns whether readers complete a value, so that it is omitted.
    fn is_default(&self, node: NodeRef<'_>, name: &str, leaf: NodeRef<'_>) -> bool {
        match (name, self.dialect) {
            ("size", _) => leaf.text() == "0" && node.get(Attr::DATA).is_none(),
            ("terminology", _) => node.class().is_a(Cls::DV_ORDERED) && leaf.text() == "local",
            ("lower_included" | "upper_included", FlatDialect::Ehrbase) => leaf.text() == "true",
            ("lower_unbounded" | "upper_unbounded", FlatDialect::Ehrbase) => leaf.text() == "false",
            _ => false,
        }
    }

    /// Returns the name of a suffix in the dialect of the reader.
    fn suffix_name(&self, node: NodeRef<'_>, name: &'static str) -> &'static str {
        match (name, self.dialect) {
            ("", FlatDialect::Better) if is_text_with_parts(node) => "value",
            ("unit_system", FlatDialect::Ehrbase) => "units_system",
            ("unit_display_name", FlatDialect::Ehrbase) => "units_display_name",
            ("", FlatDialect::Ehrbase) if node.class() == Cls::DV_IDENTIFIER => "id",
            ("", FlatDialect::Ehrbase) if node.attr() == Some(Attr::WF_DEFINITION) => "value",
            (name, _) => name,
        }
    }

    /// Returns whether an object, or one in it, is written by keys of its own instead of suffixes
    /// of the enclosing object.
    pub(super) fn is_long(&self, node: NodeRef<'_>) -> bool {
        let long = &self.detail.long;
        !long.is_empty()
            && (long.contains(&node.id()) || node.children().any(|child| self.is_long(child)))
    }

    /// Writes an object that has no nodes below it.
    pub(super) fn write_value(&mut self, node: NodeRef<'d>, path: &str, web: Option<&'w WebNode>) {
        if self.write_if_raw(node, path) {
            return;
        }
        if node.is_leaf() {
            return self.push(path.to_owned(), scalar(node), node.class());
        }
        self.write_class(node, path);
        self.write_parts(node, path, web);
    }

    fn write_parts(&mut self, node: NodeRef<'d>, path: &str, web: Option<&'w WebNode>) {
        let class = node.class();
        let is_text_for_code = |web: &WebNode| web.has_other && web.class != Cls::DV_TEXT;
        if class == Cls::DV_TEXT && web.is_some_and(is_text_for_code) {
            self.write_other(node, path);
        } else {
            self.write_suffixes(node, path, web);
        }
        let inline = self.write_inline(node, path);
        for child in node.children() {
            let attr = child.attr();
            let attr = attr.filter(|a| !IDENTITY.contains(a) || !class.is_a(Cls::LOCATABLE));
            let Some(attr) = attr else {
                continue;
            };
            if let Some(kid) = node_at(web, node, attr).filter(|_| !inline.contains(&attr)) {
                self.write_value(child, &format!("{path}/{}", kid.id), Some(kid));
                continue;
            }
            let is_written_above = suffix::of(class).any(|s| {
                s.path.first() == Some(&attr)
                    && (s.path.len() == 1
                        || child.class() == Cls::TERMINOLOGY_ID
                        || !self.is_long(child))
            });
            if !is_written_above && !inline.contains(&attr) {
                self.write_attribute(class, attr, child, path, web);
            }
        }
    }

    /// Writes a text in place of a code.
    fn write_other(&mut self, node: NodeRef<'d>, path: &str) {
        let suffixes = [("other", Attr::VALUE), ("formatting", Attr::FORMATTING)];
        for (name, attr) in suffixes {
            let text = match (attr, node.text_at(attr)) {
                (Attr::VALUE, text) => text.unwrap_or_default(),
                (_, Some(text)) => text,
                (_, None) => continue,
            };
            let text = Value::Text(Cow::Borrowed(text));
            self.push(format!("{path}|{name}"), text, Cls::DV_TEXT);
        }
    }

    /// Writes the objects whose suffixes are those of the enclosing object, and returns their
    /// attributes.
    fn write_inline(&mut self, node: NodeRef<'d>, path: &str) -> Vec<Attr> {
        let mut inline = Vec::new();
        match node.class() {
            Cls::DV_PROPORTION => self.write_quotient(node, path),
            Cls::PARTICIPATION => {
                if let Some(performer) = node.get(Attr::PERFORMER).filter(|p| !self.is_long(*p)) {
                    inline.push(Attr::PERFORMER);
                    self.write_performer(performer, path);
                }
                if let Some(mode) = node.get(Attr::MODE).filter(|m| !self.is_long(*m)) {
                    inline.push(Attr::MODE);
                    let text = Cow::Borrowed(mode.text_at(Attr::VALUE).unwrap_or_default());
                    self.push(
                        format!("{path}|mode"),
                        Value::Text(text),
                        Cls::PARTICIPATION,
                    );
                }
            }
            Cls::REFERENCE_RANGE => {
                if let Some(range) = node.get(Attr::RANGE).filter(|r| !self.is_long(*r)) {
                    inline.push(Attr::RANGE);
                    self.write_parts(range, path, None);
                }
            }
            _ => {}
        }
        inline
    }

    /// Writes the performer of a participation. Its identifiers are numbered suffixes if those can
    /// represent all of them.
    fn write_performer(&mut self, performer: NodeRef<'d>, path: &str) {
        let is_plain = |identifier: NodeRef<'_>| {
            !self.is_long(identifier)
                && identifier
                    .children()
                    .all(|c| c.is_leaf() && !c.text().trim().is_empty())
                && identifier.children().next().is_some()
        };
        let identifiers: Vec<NodeRef<'d>> = performer.values(Attr::IDENTIFIERS).collect();
        let are_plain = identifiers.iter().all(|identifier| is_plain(*identifier));
        self.write_suffixes(performer, path, None);
        for child in performer.children() {
            let Some(attr) = child.attr() else { continue };
            let is_written_above = suffix::of(performer.class())
                .any(|s| s.path.first() == Some(&attr))
                || attr == Attr::IDENTIFIERS && are_plain;
            if !is_written_above {
                self.write_attribute(performer.class(), attr, child, path, None);
            }
        }
        for (number, identifier) in identifiers.into_iter().enumerate().filter(|_| are_plain) {
            for leaf in identifier.children() {
                let name = leaf.attr().map_or("", Attr::name);
                self.push(
                    format!("{path}|identifiers_{name}:{number}"),
                    scalar(leaf),
                    Cls::PARTICIPATION,
                );
            }
        }
    }

    fn write_quotient(&mut self, node: NodeRef<'_>, path: &str) {
        let number = |attr| node.text_at(attr).and_then(number::parse);
        if let (Some(numerator), Some(denominator)) = (
            number(Attr::NUMERATOR),
            number(Attr::DENOMINATOR).filter(|d| *d != 0.0),
        ) {
            self.push(
                path.to_owned(),
                Value::Number(Cow::Owned(number::shortest(numerator / denominator))),
                Cls::DV_PROPORTION,
            );
        }
    }
}

/// Returns whether an object is a text with more than its value, such as mappings.
fn is_text_with_parts(node: NodeRef<'_>) -> bool {
    node.class() == Cls::DV_TEXT && node.children().count() > 1
}

/// Returns the node for an attribute of an object that has no suffixes for what is in it, such as a
/// participation.
fn node_at<'w>(web: Option<&'w WebNode>, object: NodeRef<'_>, attr: Attr) -> Option<&'w WebNode> {
    let value = object
        .get(attr)
        .filter(|_| !object.class().is_a(Cls::DATA_VALUE))?;
    let is_at = |kid: &&WebNode| matches!(kid.steps.as_slice(), [only] if only.attr == attr);
    let mut kids = web?.children.iter().filter(is_at);
    kids.find(|kid| is_value_of(value, kid))
}

/// Returns whether a flag of an interval has the value that every reader assumes: bounded, and
/// included.
fn is_usual(name: &str, leaf: NodeRef<'_>) -> bool {
    (leaf.text() == "true") == name.ends_with("_included")
}

/// Returns whether a flag of an interval follows from its limits.
fn is_implied(interval: NodeRef<'_>, flag: Option<Attr>, leaf: NodeRef<'_>) -> bool {
    let (limit, is_unbounded) = match flag {
        Some(Attr::LOWER_UNBOUNDED) => (Attr::LOWER, true),
        Some(Attr::UPPER_UNBOUNDED) => (Attr::UPPER, true),
        Some(Attr::LOWER_INCLUDED) => (Attr::LOWER, false),
        _ => (Attr::UPPER, false),
    };
    let is_there = interval.get(limit).is_some();
    (leaf.text() == "true") == (is_there != is_unbounded)
}

pub(super) fn scalar(leaf: NodeRef<'_>) -> Value<'_> {
    match leaf.kind() {
        Kind::Number => Value::Number(Cow::Borrowed(leaf.text())),
        Kind::Boolean => Value::Boolean(leaf.text() == "true"),
        _ => Value::Text(Cow::Borrowed(leaf.text())),
    }
}
