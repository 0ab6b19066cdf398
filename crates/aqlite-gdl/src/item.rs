//! The tree of a guide file. Both syntaxes (JSON and ODIN) are read into it, with the position of
//! every value.

use super::guide::shown;
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::json::{self, MAX_MEMBERS};
use std::collections::HashSet;

/// A value of a guide file.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The position in the file, including quotes.
    pub span: Span,
    /// The kind and content.
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
    /// Returns the member of a map with this name. A member that is `null` counts as missing.
    pub fn get(&self, name: &str) -> Option<&Item> {
        self.members()
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v)
            .filter(|v| !matches!(v.kind, Kind::Null))
    }

    /// Returns the first member that has one of these names.
    pub fn any_of(&self, names: &[&str]) -> Option<&Item> {
        names.iter().find_map(|n| self.get(n))
    }

    /// Returns the members of a map. Empty for any other kind.
    pub fn members(&self) -> &[(String, Item)] {
        match &self.kind {
            Kind::Map(members) => members,
            _ => &[],
        }
    }

    /// Returns the members of a map for changes. Empty for any other kind.
    pub fn members_mut(&mut self) -> &mut [(String, Item)] {
        match &mut self.kind {
            Kind::Map(members) => members,
            _ => &mut [],
        }
    }

    /// Checks the members of all maps ([`check_names`]). Costs one pass.
    ///
    /// # Errors
    /// `GDL0105` with the position of the value that repeats a member, or of the object.
    pub fn check_members(&self) -> Result<(), Diagnostic> {
        check_names(self.members(), self.span)?;
        let listed = match &self.kind {
            Kind::List(items) => items.as_slice(),
            _ => &[],
        };
        let mut values = self.members().iter().map(|(_, value)| value).chain(listed);
        values.try_for_each(Item::check_members)
    }

    /// Returns the elements of a list or the values of a map for changes.
    pub fn values_mut(&mut self) -> Vec<&mut Item> {
        match &mut self.kind {
            Kind::Map(members) => members.iter_mut().map(|(_, item)| item).collect(),
            Kind::List(items) => items.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    /// Keeps the first of members with the same name, with which a guide is read ([`Item::get`]).
    /// ODIN permits others, JSON does not.
    pub fn drop_repeated_members(&mut self) {
        if let Kind::Map(members) = &mut self.kind {
            let mut names = HashSet::new();
            members.retain(|(name, _)| names.insert(name.clone()));
        }
        let values = self.values_mut();
        values.into_iter().for_each(Item::drop_repeated_members);
    }

    /// Returns the elements of a list. A single value counts as a list of one, `null` as an empty
    /// list.
    pub fn elements(&self) -> &[Item] {
        match &self.kind {
            Kind::List(items) => items,
            Kind::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    /// Creates a text that is not part of a file.
    pub fn of_text(text: &str) -> Item {
        Item {
            span: Span::default(),
            kind: Kind::Text(text.to_owned()),
        }
    }

    /// Returns the text of a string or number.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) | Kind::Number(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text of a member.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Item::text)
    }

    /// Converts the value to JSON, for the resources of templates.
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

/// Checks that an object at `span` repeats no member, and has not too many. Readers differ in which
/// of two members they use.
///
/// # Errors
/// `GDL0105` with the position of the value that repeats a member, or of the object.
pub(crate) fn check_names(members: &[(String, Item)], span: Span) -> Result<(), Diagnostic> {
    if members.len() > MAX_MEMBERS {
        let message = format!("an object has more than {MAX_MEMBERS} members");
        let problem = Diagnostic::error("GDL0105", span, message);
        return Err(problem.with_help("a guide has some hundred at most: split it"));
    }
    let mut names = HashSet::new();
    let repeated = members
        .iter()
        .find(|(name, _)| !names.insert(name.as_str()));
    let Some((name, value)) = repeated else {
        return Ok(());
    };
    let message = format!("an earlier member of the object is `{}` too", shown(name));
    let problem = Diagnostic::error("GDL0105", value.span, message);
    Err(problem.with_help("write each member once"))
}
