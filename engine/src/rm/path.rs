//! RM paths: `/data[at0001]/events[at0006, 'any event']/data/items[2]/value/magnitude`.
//!
//! They follow the Architecture Overview, "Paths and Locators": attribute names separated by `/`, each perhaps with a
//! predicate of node id, name or position (counted from 1).

use super::class::Attr;
use super::id::{ArchetypeId, is_node_code, node_code_subsumes};
use super::tree::{Kind, NodeRef};
use crate::diag::{Diagnostic, Span};
use std::fmt;

/// A parsed path; without steps it is the node at which it starts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RmPath {
    /// From the start to the target.
    pub steps: Vec<PathStep>,
}

/// One step of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathStep {
    /// The attribute that is followed.
    pub attr: Attr,
    /// Which of its values are meant; all of them without predicates.
    pub predicate: PathPredicate,
}

/// Which values of an attribute a step means; what is absent asks for nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PathPredicate {
    /// The node code or archetype id.
    pub node_id: Option<String>,
    /// The value of `name`.
    pub name: Option<String>,
    /// The position among those that fulfil the rest, from 1.
    pub position: Option<usize>,
}

/// Whether an archetype id or node code also means its specialisations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Specialisation {
    /// `laboratory_test.v1` also means `laboratory_test-cbc.v1`, and `at0004` also `at0004.1`.
    #[default]
    Subsume,
    /// Only itself.
    Exact,
}

impl Specialisation {
    /// True when a node with the id `data` is one that `asked` means.
    pub fn matches(self, asked: &str, data: &str) -> bool {
        if asked == data {
            return true;
        }
        match (self, ArchetypeId::parse(asked)) {
            (Specialisation::Exact, _) => false,
            (_, Some(asked)) => ArchetypeId::parse(data).is_some_and(|data| asked.subsumes(data)),
            (_, None) => is_node_code(asked) && node_code_subsumes(asked, data),
        }
    }
}

impl RmPath {
    /// Reads a path, with or without a leading `/`.
    ///
    /// # Errors
    /// What is no path, or names an attribute that no class has (RM0301).
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

    /// The nodes at the path, in document order; values of lists one by one.
    pub fn resolve<'a>(&self, start: NodeRef<'a>, specialisation: Specialisation) -> Vec<NodeRef<'a>> {
        self.steps.iter().fold(vec![start], |nodes, step| nodes.into_iter().flat_map(|node| step.values(node, specialisation)).collect())
    }

    /// The first node at the path, specialisations included.
    pub fn first<'a>(&self, start: NodeRef<'a>) -> Option<NodeRef<'a>> {
        self.resolve(start, Specialisation::Subsume).into_iter().next()
    }
}

impl PathStep {
    fn values<'a>(&self, node: NodeRef<'a>, specialisation: Specialisation) -> Vec<NodeRef<'a>> {
        let all = node.values(self.attr).filter(|value| self.predicate.fits(*value, specialisation));
        match self.predicate.position {
            None => all.collect(),
            Some(position) => all.skip(position.saturating_sub(1)).take(1).collect(),
        }
    }
}

impl PathPredicate {
    /// True when a node has the id and the name asked for.
    pub fn fits(&self, node: NodeRef<'_>, specialisation: Specialisation) -> bool {
        let id = || node.text_at(Attr::ARCHETYPE_NODE_ID);
        let name = || node.text_along(&[Attr::NAME, Attr::VALUE]);
        self.node_id.as_deref().is_none_or(|asked| id().is_some_and(|data| specialisation.matches(asked, data)))
            && self.name.as_deref().is_none_or(|asked| name() == Some(asked))
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
        let name = self.predicate.name.as_ref().map(|n| format!("'{}'", n.replace('\\', "\\\\").replace('\'', "\\'")));
        let position = self.predicate.position.map(|p| p.to_string());
        let parts: Vec<String> = self.predicate.node_id.iter().cloned().chain(name).chain(position).collect();
        if parts.is_empty() { write!(f, "{}", self.attr) } else { write!(f, "{}[{}]", self.attr, parts.join(", ")) }
    }
}

/// The RM path of a node below another, with node ids and, where siblings share them, names: as people write paths.
pub fn path_to(start: NodeRef<'_>, target: NodeRef<'_>) -> Option<String> {
    let mut trail = Vec::new();
    find(start, target, &mut trail).then(|| trail.iter().map(|step: &PathStep| format!("/{step}")).collect())
}

fn find(node: NodeRef<'_>, target: NodeRef<'_>, trail: &mut Vec<PathStep>) -> bool {
    if node.id() == target.id() {
        return true;
    }
    node.children().any(|child| {
        if node.kind() != Kind::List && child.kind() == Kind::List {
            return child.id() == target.id() || find(child, target, trail);
        }
        let Some(attr) = child.attr() else { return false };
        trail.push(PathStep { attr, predicate: distinguish(node, child) });
        let found = find(child, target, trail);
        if !found {
            trail.pop();
        }
        found
    })
}

/// What tells an element of a list from its siblings: node id, then name, then position.
fn distinguish(list: NodeRef<'_>, element: NodeRef<'_>) -> PathPredicate {
    let node_id = element.text_at(Attr::ARCHETYPE_NODE_ID).map(str::to_owned);
    let mut predicate = PathPredicate { node_id, ..PathPredicate::default() };
    if list.kind() != Kind::List {
        return predicate;
    }
    let alike =
        |predicate: &PathPredicate| list.children().filter(|c| predicate.fits(*c, Specialisation::Exact)).map(NodeRef::id).collect::<Vec<_>>();
    if alike(&predicate).len() > 1 {
        predicate.name = element.text_along(&[Attr::NAME, Attr::VALUE]).map(str::to_owned);
        let same = alike(&predicate);
        if same.len() > 1 {
            predicate.position = same.iter().position(|id| *id == element.id()).map(|i| i + 1);
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

    /// The characters up to the first that `stop` names.
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
                let and = self.rest().get(..4).is_some_and(|w| w.eq_ignore_ascii_case("and "));
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
            "name/value" | "@archetype_node_id" | "archetype_node_id" if self.eat('=') => {
                self.space();
                let value = Some(self.quoted()?);
                if word == "name/value" {
                    predicate.name = value;
                } else {
                    predicate.node_id = value;
                }
            }
            number if number.bytes().all(|b| b.is_ascii_digit()) => predicate.position = number.parse().ok().filter(|n| *n > 0),
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
            let escaped = self.rest().chars().next();
            out.extend(escaped);
            self.at += escaped.map_or(0, char::len_utf8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::class::Cls;
    use super::super::json;
    use super::*;

    const TREE: &str = r#"{"_type":"ITEM_TREE","archetype_node_id":"at0001","items":[
        {"_type":"ELEMENT","archetype_node_id":"at0004","name":{"value":"Systolic"},"value":{"_type":"DV_COUNT","magnitude":1}},
        {"_type":"ELEMENT","archetype_node_id":"at0004.1","name":{"value":"it's"},"value":{"_type":"DV_COUNT","magnitude":2}},
        {"_type":"CLUSTER","archetype_node_id":"openEHR-EHR-CLUSTER.device-x.v1","name":{"value":"D"},"items":[]},
        {"_type":"ELEMENT","archetype_node_id":"at0004","name":{"value":"Systolic"},"value":{"_type":"DV_COUNT","magnitude":3}}]}"#;

    fn texts(path: &str, specialisation: Specialisation) -> Vec<String> {
        let tree = json::read(TREE, Cls::ANY).unwrap();
        RmPath::parse(path).unwrap().resolve(tree.root().unwrap(), specialisation).iter().map(|n| n.text().to_owned()).collect()
    }

    #[test]
    fn predicates_choose_by_id_name_and_position() {
        use Specialisation::{Exact, Subsume};
        assert_eq!(texts("/items/value/magnitude", Exact), ["1", "2", "3"]);
        assert_eq!(texts("items[at0004]/value/magnitude", Exact), ["1", "3"]);
        assert_eq!(texts("/items[at0004]/value/magnitude", Subsume), ["1", "2", "3"]);
        assert_eq!(texts("/items[at0004, 'Systolic']/value/magnitude", Subsume), ["1", "3"]);
        assert_eq!(texts("/items[at0004 and name/value='it\\'s']/value/magnitude", Subsume), ["2"]);
        assert_eq!(texts("/items[at0004,2]/value/magnitude", Exact), ["3"]);
        assert_eq!(texts("/items[2]/value/magnitude", Exact), ["2"]);
        assert_eq!(texts("/items[9]", Exact).len(), 0);
        assert_eq!(texts("/items[openEHR-EHR-CLUSTER.device.v1]/name/value", Subsume), ["D"]);
        assert_eq!(texts("/items[openEHR-EHR-CLUSTER.device.v1]/name/value", Exact).len(), 0);
        assert_eq!(texts("/", Exact), [""]);
    }

    #[test]
    fn paths_print_as_they_parse() {
        for text in ["/", "/items[at0004, 'it\\'s', 2]/value", "/content[openEHR-EHR-OBSERVATION.x.v1]/data[at0001]", "/items[3]"] {
            assert_eq!(RmPath::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_node_is_found_again_by_its_path() {
        let tree = json::read(TREE, Cls::ANY).unwrap();
        let root = tree.root().unwrap();
        let node = RmPath::parse("/items[4]/value/magnitude").unwrap().first(root).unwrap();
        let path = path_to(root, node).unwrap();
        assert_eq!(path, "/items[at0004, 'Systolic', 2]/value/magnitude");
        assert_eq!(RmPath::parse(&path).unwrap().resolve(root, Specialisation::Exact)[0].id(), node.id());
    }

    #[test]
    fn what_is_no_path_is_told_with_its_place() {
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
