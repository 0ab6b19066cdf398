//! The tree that both concrete syntaxes (JSON and ODIN) are read into, with the position of every
//! value.

use aqlite_rm::diag::Span;
use aqlite_rm::json;

/// A value of a guide file.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Where it stands, quotes included.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
}

/// The kinds of values.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// `null` in JSON, `<>` in ODIN.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number, its text.
    Number(String),
    /// A string, or a coded term of ODIN without its brackets.
    Text(String),
    /// A list.
    List(Vec<Item>),
    /// An object of JSON, or attributes or keyed members of ODIN.
    Map(Vec<(String, Item)>),
}

impl Item {
    /// The member of a map with this name, `null` left out.
    pub fn get(&self, name: &str) -> Option<&Item> {
        self.members()
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v)
            .filter(|v| !matches!(v.kind, Kind::Null))
    }

    /// The first member that has one of these names.
    pub fn any_of(&self, names: &[&str]) -> Option<&Item> {
        names.iter().find_map(|n| self.get(n))
    }

    /// The members of a map; nothing for anything else.
    pub fn members(&self) -> &[(String, Item)] {
        match &self.kind {
            Kind::Map(members) => members,
            _ => &[],
        }
    }

    /// The members of a map, to change; nothing for anything else.
    pub fn members_mut(&mut self) -> &mut [(String, Item)] {
        match &mut self.kind {
            Kind::Map(members) => members,
            _ => &mut [],
        }
    }

    /// The elements of a list or the values of a map, to change.
    pub fn values_mut(&mut self) -> Vec<&mut Item> {
        match &mut self.kind {
            Kind::Map(members) => members.iter_mut().map(|(_, item)| item).collect(),
            Kind::List(items) => items.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    /// The elements of a list; a single value stands for a list of one, `null` for none.
    pub fn elements(&self) -> &[Item] {
        match &self.kind {
            Kind::List(items) => items,
            Kind::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    /// A text that stands in no file.
    pub fn of_text(text: &str) -> Item {
        Item {
            span: Span::default(),
            kind: Kind::Text(text.to_owned()),
        }
    }

    /// The text of a string or number.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) | Kind::Number(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a member.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Item::text)
    }

    /// The same as JSON, as templates of resources need it.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Boolean(b) => Value::Bool(*b),
            Kind::Number(n) => json::value(n).unwrap_or_default(),
            Kind::Text(t) => Value::String(t.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Item::to_json).collect()),
            Kind::Map(members) => Value::Object(
                members
                    .iter()
                    .map(|(n, v)| (n.clone(), v.to_json()))
                    .collect(),
            ),
        }
    }
}
