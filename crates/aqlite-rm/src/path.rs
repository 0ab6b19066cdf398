//! RM paths: `/data[at0001]/events[at0006, 'any event']/data/items[2]/value/magnitude`.
//!
//! The syntax is that of the Architecture Overview, "Paths and Locators": attribute names separated
//! by `/`, each with an optional predicate of node id, name or position (counted from 1).

use super::class::Attr;
use super::id::{archetype_id_subsumes, is_node_code, node_code_subsumes};
use super::tree::{Kind, NodeRef};
use crate::diag::{Diagnostic, Span};
use std::fmt;

/// A parsed RM path. A path without steps refers to its start node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RmPath {
    /// The steps from the start node to the target.
    pub steps: Vec<PathStep>,
}

/// One step of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathStep {
    /// The attribute to follow.
    pub attr: Attr,
    /// The predicate on the values of the attribute. An empty predicate selects all of them.
    pub predicate: PathPredicate,
}

/// A predicate on the values of an attribute. An absent criterion matches every value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PathPredicate {
    /// The required node code or archetype id.
    pub node_id: Option<String>,
    /// The required value of `name`.
    pub name: Option<String>,
    /// The position, from 1, among the values that match the other criteria.
    pub position: Option<usize>,
}

/// The treatment of specialized archetypes and nodes when ids are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Specialization {
    /// A specialization matches: `laboratory_test.v1` matches `laboratory_test-cbc.v1`, and
    /// `at0004` matches `at0004.1`.
    #[default]
    Subsume,
    /// Only an equal id matches.
    Exact,
}

impl Specialization {
    /// Returns whether the node id `data` matches the required id `asked`.
    pub fn matches(self, asked: &str, data: &str) -> bool {
        if asked == data {
            return true;
        }
        match self {
            Specialization::Exact => false,
            // A text that is neither an archetype id nor a node code matches only itself.
            Specialization::Subsume => {
                archetype_id_subsumes(asked, data)
                    || is_node_code(asked) && node_code_subsumes(asked, data)
            }
        }
    }
}

impl RmPath {
    /// Parses a path, with or without a leading `/`.
    ///
    /// # Errors
    /// RM0301 if the text is not a path, or names an attribute that no class has.
    pub fn parse(text: &str) -> Result<RmPath, Diagnostic> {
        let mut parser = Parser { text, at: 0 };
        let mut steps = Vec::new();
        parser.eat('/');
        while !parser.rest().is_empty() {
            if !steps.is_empty() && !parser.eat('/') {
                return Err(parser.error("expected `/`"));
            }
            steps.push(parser.step()?);
        }
        Ok(RmPath { steps })
    }

    /// Returns the nodes at the path in document order. Elements of lists are separate results.
    pub fn resolve<'a>(
        &self,
        start: NodeRef<'a>,
        specialization: Specialization,
    ) -> Vec<NodeRef<'a>> {
        self.steps.iter().fold(vec![start], |nodes, step| {
            nodes
                .into_iter()
                .flat_map(|node| step.values(node, specialization))
                .collect()
        })
    }

    /// Returns the first node at the path. Specializations match.
    pub fn first<'a>(&self, start: NodeRef<'a>) -> Option<NodeRef<'a>> {
        self.resolve(start, Specialization::Subsume)
            .into_iter()
            .next()
    }
}

impl PathStep {
    fn values<'a>(&self, node: NodeRef<'a>, specialization: Specialization) -> Vec<NodeRef<'a>> {
        let all = node
            .values(self.attr)
            .filter(|value| self.predicate.matches(*value, specialization));
        match self.predicate.position {
            None => all.collect(),
            Some(position) => all.skip(position.saturating_sub(1)).take(1).collect(),
        }
    }
}

impl PathPredicate {
    /// Returns whether a node has the required id and name. The position is not considered.
    pub fn matches(&self, node: NodeRef<'_>, specialization: Specialization) -> bool {
        let id = || node.text_at(Attr::ARCHETYPE_NODE_ID);
        let name = || node.text_along(&[Attr::NAME, Attr::VALUE]);
        self.node_id
            .as_deref()
            .is_none_or(|asked| id().is_some_and(|data| specialization.matches(asked, data)))
            && self
                .name
                .as_deref()
                .is_none_or(|asked| name() == Some(asked))
    }
}

impl fmt::Display for RmPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("/");
        }
        self.steps.iter().try_for_each(|step| write!(f, "/{step}"))
    }
}

impl fmt::Display for PathStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self
            .predicate
            .name
            .as_ref()
            .map(|n| format!("'{}'", n.replace('\\', "\\\\").replace('\'', "\\'")));
        let position = self.predicate.position.map(|p| p.to_string());
        let parts: Vec<String> = self
            .predicate
            .node_id
            .iter()
            .cloned()
            .chain(name)
            .chain(position)
            .collect();
        if parts.is_empty() {
            write!(f, "{}", self.attr)
        } else {
            write!(f, "{}[{}]", self.attr, parts.join(", "))
        }
    }
}

/// Returns whether a text consists of `/name` and `/name[predicate]` alone. Texts within a predicate
/// are closed. Neither names nor predicates are read.
pub fn has_path_form(path: &str) -> bool {
    path_steps(path).is_some()
}

/// Returns the steps of a path, each with its name and its predicate, which may be empty. `None` for
/// a text without the form of a path, see [`has_path_form`].
pub fn path_steps(path: &str) -> Option<Vec<(&str, &str)>> {
    let (mut rest, mut steps) = (path, Vec::new());
    loop {
        let step = rest.strip_prefix('/')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = step.find(|c| !is_name(c)).unwrap_or(step.len());
        let (name, behind) = step.split_at_checked(end).filter(|_| end > 0)?;
        let (predicate, behind) = match behind.strip_prefix('[') {
            Some(open) => {
                let (predicate, closed) = open.split_at_checked(end_of_predicate(open)?)?;
                (predicate, closed.strip_prefix(']')?)
            }
            None => ("", behind),
        };
        steps.push((name, predicate));
        if behind.is_empty() {
            return Some(steps);
        }
        rest = behind;
    }
}

/// Returns the position of the bracket that closes a predicate which is not empty.
fn end_of_predicate(predicate: &str) -> Option<usize> {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in predicate.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, ']') => return (at > 0).then_some(at),
            (None, '[' | '\\' | '\n' | '\r') => return None,
            (None, _) => {}
        }
    }
    None
}

/// Returns the RM path from `start` to a node below it, or `None` if it is not below.
///
/// Steps have node ids, and names or positions where siblings share the node id.
pub fn path_to(start: NodeRef<'_>, target: NodeRef<'_>) -> Option<String> {
    let mut trail = Vec::new();
    find(start, target, &mut trail).then(|| {
        trail
            .iter()
            .map(|step: &PathStep| format!("/{step}"))
            .collect()
    })
}

fn find(node: NodeRef<'_>, target: NodeRef<'_>, trail: &mut Vec<PathStep>) -> bool {
    if node.id() == target.id() {
        return true;
    }
    node.children().any(|child| {
        // A list adds no step to the path: its elements have the attribute of the list.
        if node.kind() != Kind::List && child.kind() == Kind::List {
            return child.id() == target.id() || find(child, target, trail);
        }
        let Some(attr) = child.attr() else {
            return false;
        };
        trail.push(PathStep {
            attr,
            predicate: distinguish(node, child),
        });
        let found = find(child, target, trail);
        if !found {
            trail.pop();
        }
        found
    })
}

/// Returns the predicate that distinguishes an element of a list from its siblings: node id, then
/// name, then position.
fn distinguish(list: NodeRef<'_>, element: NodeRef<'_>) -> PathPredicate {
    let node_id = element.text_at(Attr::ARCHETYPE_NODE_ID).map(str::to_owned);
    let mut predicate = PathPredicate {
        node_id,
        ..PathPredicate::default()
    };
    if list.kind() != Kind::List {
        return predicate;
    }
    let alike = |predicate: &PathPredicate| {
        list.children()
            .filter(|c| predicate.matches(*c, Specialization::Exact))
            .map(NodeRef::id)
            .collect::<Vec<_>>()
    };
    // Name and position are added only if the shorter predicate matches a sibling too.
    if alike(&predicate).len() > 1 {
        predicate.name = element
            .text_along(&[Attr::NAME, Attr::VALUE])
            .map(str::to_owned);
        let same = alike(&predicate);
        if same.len() > 1 {
            predicate.position = same
                .iter()
                .position(|id| *id == element.id())
                .map(|i| i + 1);
        }
    }
    predicate
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Consumes and returns the characters before the first that satisfies `stop`.
    fn until(&mut self, stop: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let word = rest.split(stop).next().unwrap_or_default();
        self.at += word.len();
        word
    }

    fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error("RM0301", Span::new(self.at, self.text.len()), message)
    }

    fn step(&mut self) -> Result<PathStep, Diagnostic> {
        let start = self.at;
        let name = self.until(|c| !(c.is_ascii_alphanumeric() || c == '_'));
        let Some(attr) = Attr::parse(name) else {
            // The error covers the name, not only the text after it.
            self.at = start;
            return Err(self.error(if name.is_empty() {
                "expected an attribute name".to_owned()
            } else {
                format!("no class has an attribute `{name}`")
            }));
        };
        let mut predicate = PathPredicate::default();
        if self.eat('[') {
            loop {
                self.space();
                self.criterion(&mut predicate)?;
                self.space();
                if self.eat(']') {
                    break;
                }
                let and = self
                    .rest()
                    .get(..4)
                    .is_some_and(|w| w.eq_ignore_ascii_case("and "));
                if and {
                    self.at += 4;
                } else if !self.eat(',') {
                    return Err(self.error("expected `]`, `,` or `and`"));
                }
            }
        }
        Ok(PathStep { attr, predicate })
    }

    fn criterion(&mut self, predicate: &mut PathPredicate) -> Result<(), Diagnostic> {
        if self.rest().starts_with(['\'', '"']) {
            predicate.name = Some(self.quoted()?);
            return Ok(());
        }
        let word = self.until(|c| c.is_whitespace() || matches!(c, ',' | ']' | '='));
        self.space();
        match word {
            "" => return Err(self.error("expected a node id, a name or a position")),
            // Without `=`, the word is read as a node id by the last arm.
            "name/value" | "@archetype_node_id" | "archetype_node_id" if self.eat('=') => {
                self.space();
                let value = Some(self.quoted()?);
                if word == "name/value" {
                    predicate.name = value;
                } else {
                    predicate.node_id = value;
                }
            }
            number if number.bytes().all(|b| b.is_ascii_digit()) => {
                // 0 and numbers beyond `usize` set no criterion.
                predicate.position = number.parse().ok().filter(|n| *n > 0)
            }
            id => predicate.node_id = Some(id.to_owned()),
        }
        Ok(())
    }

    fn quoted(&mut self) -> Result<String, Diagnostic> {
        let quote = if self.eat('"') { '"' } else { '\'' };
        if quote == '\'' && !self.eat('\'') {
            return Err(self.error("expected a text in quotes"));
        }
        let mut out = String::new();
        loop {
            out.push_str(self.until(|c| c == quote || c == '\\'));
            if self.eat(quote) {
                return Ok(out);
            }
            if !self.eat('\\') {
                return Err(self.error("the text has no closing quote"));
            }
            // The character after a backslash is taken literally, whichever it is.
            let escaped = self.rest().chars().next();
            out.extend(escaped);
            self.at += escaped.map_or(0, char::len_utf8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Cls;
    use crate::json;

    #[test]
    fn paths_are_steps_with_closed_predicates() {
        for path in [
            "/data[at0002]/events[at0003]/data[at0001]/items[at0010.1]",
            "/data/events/time",
            "/activities[at1]/description[openEHR-EHR-ITEM_TREE.medication.v1]/items[at2]",
            "/data[at0001, 'a ] b']/items[at0002 and name/value='it\\'s']",
        ] {
            assert!(has_path_form(path), "{path}");
        }
        for path in [
            "",
            "/",
            "data[at0002]/items[at0003]",
            "/data[at0001",
            "/data[]",
            "/data[at0001]x/items[at1]",
            "/data[at0001], e/ehr_id/value",
            "/data[at0001]/items[at1] FROM EHR e",
            "/data[at'0001]/items[at1]",
            "//data",
            "/data/",
        ] {
            assert!(!has_path_form(path), "{path}");
        }
    }

    const TREE: &str = r#"{"_type":"ITEM_TREE","archetype_node_id":"at0001","items":[
        {"_type":"ELEMENT","archetype_node_id":"at0004","name":{"value":"Systolic"},"value":{"_type":"DV_COUNT","magnitude":1}},
        {"_type":"ELEMENT","archetype_node_id":"at0004.1","name":{"value":"it's"},"value":{"_type":"DV_COUNT","magnitude":2}},
        {"_type":"CLUSTER","archetype_node_id":"openEHR-EHR-CLUSTER.device-x.v1","name":{"value":"D"},"items":[]},
        {"_type":"ELEMENT","archetype_node_id":"at0004","name":{"value":"Systolic"},"value":{"_type":"DV_COUNT","magnitude":3}}]}"#;

    fn texts(path: &str, specialization: Specialization) -> Vec<String> {
        let tree = json::read(TREE, Cls::ANY).unwrap();
        RmPath::parse(path)
            .unwrap()
            .resolve(tree.root().unwrap(), specialization)
            .iter()
            .map(|n| n.text().to_owned())
            .collect()
    }

    #[test]
    fn predicates_select_by_id_name_and_position() {
        use Specialization::{Exact, Subsume};
        assert_eq!(texts("/items/value/magnitude", Exact), ["1", "2", "3"]);
        assert_eq!(texts("items[at0004]/value/magnitude", Exact), ["1", "3"]);
        assert_eq!(
            texts("/items[at0004]/value/magnitude", Subsume),
            ["1", "2", "3"]
        );
        assert_eq!(
            texts("/items[at0004, 'Systolic']/value/magnitude", Subsume),
            ["1", "3"]
        );
        assert_eq!(
            texts(
                "/items[at0004 and name/value='it\\'s']/value/magnitude",
                Subsume
            ),
            ["2"]
        );
        assert_eq!(texts("/items[at0004,2]/value/magnitude", Exact), ["3"]);
        assert_eq!(texts("/items[2]/value/magnitude", Exact), ["2"]);
        assert_eq!(texts("/items[9]", Exact).len(), 0);
        assert_eq!(
            texts("/items[openEHR-EHR-CLUSTER.device.v1]/name/value", Subsume),
            ["D"]
        );
        assert_eq!(
            texts("/items[openEHR-EHR-CLUSTER.device.v1]/name/value", Exact).len(),
            0
        );
        assert_eq!(texts("/", Exact), [""]);
    }

    #[test]
    fn paths_print_as_they_parse() {
        for text in [
            "/",
            "/items[at0004, 'it\\'s', 2]/value",
            "/content[openEHR-EHR-OBSERVATION.x.v1]/data[at0001]",
            "/items[3]",
        ] {
            assert_eq!(RmPath::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn path_to_resolves_to_the_same_node() {
        let tree = json::read(TREE, Cls::ANY).unwrap();
        let root = tree.root().unwrap();
        let node = RmPath::parse("/items[4]/value/magnitude")
            .unwrap()
            .first(root)
            .unwrap();
        let path = path_to(root, node).unwrap();
        assert_eq!(path, "/items[at0004, 'Systolic', 2]/value/magnitude");
        assert_eq!(
            RmPath::parse(&path)
                .unwrap()
                .resolve(root, Specialization::Exact)[0]
                .id(),
            node.id()
        );
    }

    #[test]
    fn malformed_path_is_reported_with_position() {
        for (text, at) in [
            ("/itemz", 1),
            ("/items[", 7),
            ("/items[at1", 10),
            ("/items[at1 or 2]", 11),
            ("/items['x]", 10),
            ("/items]", 6),
            ("//items", 1),
            ("/items/", 7),
        ] {
            let problem = RmPath::parse(text).err().map(|d| d.span.start);
            assert!(problem == Some(at), "{text}: {problem:?}");
        }
    }
}
