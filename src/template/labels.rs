//! What the nodes of a template are called: paths as AQL writes them, with the words of a language.

use super::tree::{Constraint, Multiplicity, Node, Template};

/// A node of a template for people: for completion, hover and headings.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeLabel {
    /// The archetype that the path starts from.
    pub archetype: String,
    /// The path below the root of that archetype, such as `/data[at0001]/events[at0006]`; empty at the root itself.
    pub path: String,
    /// The name: what the template calls it, else the term.
    pub label: String,
    /// What the term means.
    pub description: String,
    /// The class; for an ELEMENT also those of its values: `ELEMENT: DV_QUANTITY or DV_TEXT`.
    pub class: String,
    /// How often it may occur below its parent.
    pub occurrences: Multiplicity,
    /// The units that its quantity may have.
    pub units: Vec<String>,
    /// The codes that its text may have, each with its text where the template knows it.
    pub codes: Vec<(String, String)>,
}

impl Template {
    /// Every node with a node id, in document order, in a language or else in the template's own.
    pub fn labels(&self, language: &str) -> Vec<NodeLabel> {
        let mut walk = Walk { template: self, language, archetype: &self.archetype_id, path: String::new(), labels: Vec::new() };
        walk.node(&self.definition);
        walk.labels
    }
}

struct Walk<'t> {
    template: &'t Template,
    language: &'t str,
    archetype: &'t str,
    path: String,
    labels: Vec<NodeLabel>,
}

impl<'t> Walk<'t> {
    fn node(&mut self, node: &'t Node) {
        let (outer, before) = (self.archetype, self.path.len());
        let outer_path = node.archetype_id.as_deref().map(|id| {
            self.archetype = id;
            std::mem::take(&mut self.path)
        });
        if !node.node_id.is_empty() {
            self.labels.push(self.label(node));
        }
        for attribute in node.attributes.iter().filter(|a| a.name != "name") {
            for child in &attribute.children {
                let length = self.path.len();
                self.path.push('/');
                self.path.push_str(&attribute.name);
                if !child.id().is_empty() {
                    self.path.push('[');
                    self.path.push_str(child.id());
                    self.path.push(']');
                }
                self.node(child);
                self.path.truncate(length);
            }
        }
        match outer_path {
            Some(path) => self.path = path,
            None => self.path.truncate(before),
        }
        self.archetype = outer;
    }

    fn label(&self, node: &'t Node) -> NodeLabel {
        let term = self.template.term(node, self.language, &node.node_id);
        let renamed = node.names().first().copied().filter(|_| self.language == self.template.language);
        let values: Vec<&'t Node> = node.attribute("value").into_iter().flat_map(|a| &a.children).collect();
        let classes: Vec<&str> = values.iter().map(|v| v.class_text.as_str()).collect();
        let class = if classes.is_empty() { node.class_text.clone() } else { format!("{}: {}", node.class_text, classes.join(" or ")) };
        let mut label = NodeLabel {
            archetype: self.archetype.to_owned(),
            path: self.path.clone(),
            label: renamed.map_or_else(|| term.map_or_else(|| node.node_id.clone(), |t| t.text.clone()), str::to_owned),
            description: term.map(|t| t.description.clone()).unwrap_or_default(),
            class,
            occurrences: node.occurrences,
            units: Vec::new(),
            codes: Vec::new(),
        };
        values.iter().for_each(|value| self.options(value, &mut label));
        label
    }

    fn options(&self, value: &'t Node, label: &mut NodeLabel) {
        let text = |code: &str| self.template.term(value, self.language, code).map(|t| t.text.clone()).unwrap_or_default();
        match &value.constraint {
            Constraint::Quantity { list, .. } => label.units.extend(list.iter().map(|item| item.units.clone())),
            Constraint::Ordinal { list } => label.codes.extend(list.iter().map(|item| (item.code.clone(), text(&item.code)))),
            _ => {
                let codes = value.attribute("defining_code").into_iter().flat_map(|a| &a.children);
                for constraint in codes.map(|c| &c.constraint) {
                    if let Constraint::Code { codes, .. } = constraint {
                        label.codes.extend(codes.iter().map(|code| (code.clone(), text(code))));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_paths_and_words() {
        let text = include_str!("../../www/samples/vital_signs.opt");
        let template = Template::parse(text).unwrap();
        let find = |language: &str, path: &str| {
            let found = template.labels(language).into_iter().find(|l| l.archetype.ends_with("blood_pressure.v2") && l.path == path);
            found.unwrap()
        };
        let systolic = find("en", "/data[at0001]/events[at0006]/data[at0003]/items[at0004]");
        assert_eq!((systolic.label.as_str(), systolic.class.as_str()), ("Systolic", "ELEMENT: DV_QUANTITY"));
        assert_eq!(systolic.units, ["mm[Hg]", "kPa"]);
        let position = find("sv", "/data[at0001]/events[at0006]/state[at0007]/items[at0008]");
        assert_eq!((position.label.as_str(), position.codes.len()), ("Kroppsställning", 4));
        assert_eq!(position.codes[1], ("at1001".to_owned(), "Sittande".to_owned()));
        assert_eq!(find("en", "").label, "Blood pressure");
        let device = template.labels("en").into_iter().find(|l| l.archetype.ends_with("device.v1") && l.path == "/items[at0020]").unwrap();
        assert_eq!(device.label, "Serial number");
    }
}
