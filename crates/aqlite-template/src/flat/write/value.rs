//! Values as keys: suffixes, and objects without nodes below them.

use super::*;

impl<'w, 'd> Writer<'w, 'd> {
    /// Writes the suffixes of an object.
    pub(super) fn write_suffixes(&mut self, node: NodeRef<'d>, path: &str, is_node: bool) {
        let class = node.class();
        for row in suffix::of(class).filter(|s| s.is_written) {
            let Some(leaf) = row
                .path
                .iter()
                .try_fold(node, |at, attr| at.get(*attr))
                .filter(|l| l.is_leaf())
            else {
                continue;
            };
            if row.path.len() > 1
                && row
                    .path
                    .first()
                    .and_then(|attr| node.get(*attr))
                    .is_some_and(|inner| {
                        inner.class() != Cls::TERMINOLOGY_ID && self.is_long(inner)
                    })
            {
                continue;
            }
            let name = match (row.name, self.maker) {
                // Readers complete these values, so they are omitted.
                ("size", _) if leaf.text() == "0" => continue,
                ("terminology", _) if class.is_a(Cls::DV_ORDERED) && leaf.text() == "local" => {
                    continue;
                }
                (_, _)
                    if class == Cls::DV_INTERVAL
                        && !is_node
                        && is_implied(node, row.path.first().copied(), leaf) =>
                {
                    continue;
                }
                ("", _) if class == Cls::DV_TEXT && node.children().count() > 1 => "value",
                ("unit_system", Maker::Ehrbase) => "units_system",
                ("unit_display_name", Maker::Ehrbase) => "units_display_name",
                ("", Maker::Ehrbase) if class == Cls::DV_IDENTIFIER => "id",
                ("lower_included" | "upper_included", Maker::Ehrbase) if leaf.text() == "true" => {
                    continue;
                }
                ("lower_unbounded" | "upper_unbounded", Maker::Ehrbase)
                    if leaf.text() == "false" =>
                {
                    continue;
                }
                (name, _) => name,
            };
            let key = if name.is_empty() {
                path.to_owned()
            } else {
                format!("{path}|{name}")
            };
            self.push(key, scalar(leaf), class);
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
        if class == Cls::DV_TEXT && web.is_some_and(|w| w.has_other) {
            let text = Value::Text(Cow::Borrowed(node.text_at(Attr::VALUE).unwrap_or_default()));
            self.push(format!("{path}|other"), text, class);
            let formatting = node.text_at(Attr::FORMATTING);
            formatting.into_iter().for_each(|f| {
                self.push(
                    format!("{path}|formatting"),
                    Value::Text(Cow::Borrowed(f)),
                    class,
                )
            });
        } else {
            self.write_suffixes(node, path, web.is_some());
        }
        let mut inline = Vec::new();
        match class {
            Cls::DV_PROPORTION => self.write_quotient(node, path),
            Cls::PARTICIPATION => {
                if let Some(performer) = node.get(Attr::PERFORMER).filter(|p| !self.is_long(*p)) {
                    inline.push(Attr::PERFORMER);
                    self.write_performer(performer, path);
                }
                if let Some(mode) = node.get(Attr::MODE).filter(|m| !self.is_long(*m)) {
                    inline.push(Attr::MODE);
                    let text = mode.text_at(Attr::VALUE).unwrap_or_default();
                    self.push(
                        format!("{path}|mode"),
                        Value::Text(Cow::Borrowed(text)),
                        class,
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
        for child in node.children() {
            let Some(attr) = child
                .attr()
                .filter(|a| !IDENTITY.contains(a) || !class.is_a(Cls::LOCATABLE))
            else {
                continue;
            };
            let is_written_above = suffix::of(class).any(|s| {
                s.path.first() == Some(&attr)
                    && (s.path.len() == 1
                        || child.class() == Cls::TERMINOLOGY_ID
                        || !self.is_long(child))
            });
            if !is_written_above && !inline.contains(&attr) {
                self.write_attribute(class, attr, child, path);
            }
        }
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
        self.write_suffixes(performer, path, false);
        for child in performer.children() {
            let Some(attr) = child.attr() else { continue };
            let is_written_above = suffix::of(performer.class())
                .any(|s| s.path.first() == Some(&attr))
                || attr == Attr::IDENTIFIERS && are_plain;
            if !is_written_above {
                self.write_attribute(performer.class(), attr, child, path);
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
