//! Keys and values as JSON: FLAT as they are, STRUCTURED nested.

use super::form::{Shape, Value};
use super::write::Entry;
use crate::web::JsonText;
use aqlite_rm::class::Cls;

/// Returns the JSON text in a format.
pub(super) fn text(entries: &[Entry<'_>], shape: Shape) -> String {
    let mut out = JsonText::default();
    match shape {
        Shape::Flat => {
            out.open('{');
            for entry in entries {
                out.key(&entry.key);
                value(&mut out, &entry.value);
            }
            out.close('}');
        }
        Shape::Structured | Shape::StrictStructured => folded(entries).print_root(&mut out),
    }
    out.finish()
}

fn value(out: &mut JsonText, value: &Value<'_>) {
    match value {
        Value::Text(text) | Value::Json(text) => out.text(text),
        Value::Number(text) => out.raw(text),
        Value::Boolean(flag) => out.raw(if *flag { "true" } else { "false" }),
    }
}

/// The keys below a segment.
#[derive(Default)]
struct Folded<'e> {
    values: Vec<(&'e str, &'e Entry<'e>)>,
    /// The instances by segment and index, in this order.
    parts: Vec<(&'e str, Vec<(u32, Folded<'e>)>)>,
}

fn folded<'e>(entries: &'e [Entry<'e>]) -> Folded<'e> {
    let mut root = Folded::default();
    for entry in entries {
        // A key has at most one bar. The text behind it is the suffix.
        let (path, suffix) = entry.key.split_once('|').unwrap_or((&entry.key, ""));
        if let Some(at) = path.split('/').try_fold(&mut root, Folded::below) {
            at.values.push((suffix, entry));
        }
    }
    root
}

/// Returns the value of a key in a sorted list, inserting a default if it is missing.
fn placed<K: Ord, V: Default>(list: &mut Vec<(K, V)>, key: K) -> Option<&mut V> {
    // The list is sorted, so the search also yields the position for a new entry.
    let found = list.binary_search_by(|(other, _)| other.cmp(&key));
    let at = found.unwrap_or_else(|at| {
        list.insert(at, (key, V::default()));
        at
    });
    list.get_mut(at).map(|(_, value)| value)
}

impl<'e> Folded<'e> {
    fn below(&mut self, segment: &'e str) -> Option<&mut Folded<'e>> {
        let (id, index) = segment
            .rsplit_once(':')
            .and_then(|(id, i)| Some((id, i.parse().ok()?)))
            .unwrap_or((segment, 0));
        placed(placed(&mut self.parts, id)?, index)
    }
}

impl Folded<'_> {
    /// Prints the tree. The root and `ctx` are objects, everything below is lists.
    fn print_root(&self, out: &mut JsonText) {
        out.open('{');
        for (id, instances) in &self.parts {
            out.key(id);
            match instances.first() {
                // The section `ctx` has plain values where other segments have lists.
                Some((_, ctx)) if *id == "ctx" => ctx.print_context(out),
                Some((_, root)) => root.print_object(out),
                None => {}
            }
        }
        out.close('}');
    }

    fn print_context(&self, out: &mut JsonText) {
        out.open('{');
        for (id, instances) in &self.parts {
            out.key(id);
            instances
                .iter()
                .flat_map(|(_, i)| &i.values)
                .take(1)
                .for_each(|(_, entry)| value(out, &entry.value));
        }
        out.close('}');
    }

    fn print(&self, out: &mut JsonText) {
        match (self.values.as_slice(), self.parts.is_empty()) {
            // A node with only a main value is printed as this value, without an object around it.
            ([("", entry)], true) if !is_always_object(entry.class) => value(out, &entry.value),
            _ => self.print_object(out),
        }
    }

    fn print_object(&self, out: &mut JsonText) {
        out.open('{');
        let mut suffixes: Vec<(&str, Vec<(u32, &Entry<'_>)>)> = Vec::new();
        for (suffix, entry) in &self.values {
            let (name, index) = match suffix.split_once(':') {
                Some((name, index)) => (name, index.parse().ok()),
                None => (*suffix, None),
            };
            let name = match name {
                "" => main_suffix(entry.class),
                name => name,
            };
            match (index, name) {
                (Some(index), name) => placed(&mut suffixes, name)
                    .into_iter()
                    .for_each(|list| list.push((index, *entry))),
                (None, "") => out.key(""),
                (None, name) => out.key(&format!("|{name}")),
            }
            if index.is_none() {
                value(out, &entry.value);
            }
        }
        self.print_lists(out, suffixes);
        out.close('}');
    }

    /// Prints the suffixes with an index and the instances of segments.
    fn print_lists(&self, out: &mut JsonText, suffixes: Vec<(&str, Vec<(u32, &Entry<'_>)>)>) {
        for (name, entries) in suffixes {
            out.key(&format!("|{name}"));
            list(out, entries.into_iter(), |out, entry| {
                value(out, &entry.value)
            });
        }
        for (id, instances) in &self.parts {
            out.key(id);
            let instances = instances.iter().map(|(index, part)| (*index, part));
            list(out, instances, |out, part| part.print(out));
        }
    }
}

/// Prints a list whose members have an index each. `null` fills the gaps between them.
fn list<T>(
    out: &mut JsonText,
    members: impl Iterator<Item = (u32, T)>,
    print: impl Fn(&mut JsonText, T),
) {
    out.open('[');
    let mut next = 0;
    for (index, member) in members {
        // Positions without a member are filled, so that each member keeps its index.
        (next..index).for_each(|_| out.raw("null"));
        print(out, member);
        next = index + 1;
    }
    out.close(']');
}

/// Returns whether values of a class are objects even if they have a main value only.
fn is_always_object(class: Cls) -> bool {
    matches!(
        class,
        Cls::DV_PARSABLE | Cls::DV_IDENTIFIER | Cls::DV_PROPORTION
    )
}

/// Returns the member name of the main value within an object.
fn main_suffix(class: Cls) -> &'static str {
    match class {
        Cls::DV_IDENTIFIER => "id",
        class
            if class == Cls::DV_COUNT
                || class.is_a(Cls::DV_TEMPORAL)
                || class == Cls::DV_DURATION =>
        {
            ""
        }
        _ => "value",
    }
}
