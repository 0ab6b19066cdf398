//! The constraint tree of a template, free of any one archetype formalism: classes, node ids, occurrences, leaf constraints.

use super::pattern::Pattern;
use crate::diag::Diagnostic;
use crate::order::ByText;
use crate::rm::class::{Attr, Cls};
use crate::rm::number::Spelled;
use crate::rm::time::TemporalKind;
use std::collections::HashSet;
use std::fmt;

/// An operational template.
#[derive(Clone, Debug)]
pub struct Template {
    /// `template_id/value`.
    pub template_id: String,
    /// The version by the rule of [`Template::version_or`], without a version asked for.
    pub version: String,
    /// The concept name.
    pub concept: String,
    /// The archetype id of the root node.
    pub archetype_id: String,
    /// The code of the language in which it was written, such as `en`.
    pub language: String,
    /// All languages for which it has terms, its own first.
    pub languages: Vec<String>,
    /// `uid/value`, where it has one.
    pub uid: Option<String>,
    /// The root of the constraint tree.
    pub definition: Node,
    /// The archetypes used, in document order; [`Node::root`] points here.
    pub roots: Vec<ArchetypeRoot>,
    /// Annotations: path, key, text.
    pub annotations: Vec<Annotation>,
    /// Values that forms offer at the beginning.
    pub defaults: Vec<DefaultValue>,
    /// Whether one such document is to exist, and where: `is_singleton` of the template's details, such as `EHR`.
    pub singleton: Option<String>,
    /// What is odd about the text without making it useless.
    pub warnings: Vec<Diagnostic>,
    /// True when the definition was not understood: documents are then checked by the Reference Model alone.
    pub is_opaque: bool,
    /// What exceeds the limits of an upload.
    pub(super) excesses: Vec<Diagnostic>,
}

/// One annotation of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The path of the node.
    pub path: String,
    /// The key.
    pub key: String,
    /// The text.
    pub text: String,
}

/// A value that forms offer at the beginning; it constrains nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultValue {
    /// The path of the value, as annotations have it.
    pub path: String,
    /// The class of the value.
    pub class: Option<Cls>,
    /// Its leaves.
    pub leaves: Leaves,
}

/// The leaves of a value by the names of their attributes: `defining_code/code_string`; of a primitive value one without a name.
pub type Leaves = Vec<(String, String)>;

/// One use of an archetype in a template, with its terms.
#[derive(Clone, Debug, Default)]
pub struct ArchetypeRoot {
    /// The archetype id.
    pub archetype_id: String,
    /// Terms: language, code, term.
    pub terms: ByText<ByText<Term>>,
    /// Codes of other terminologies for those of the archetype.
    pub bindings: Vec<Binding>,
}

/// A code of another terminology for one of an archetype.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// The name of the set of bindings, mostly that of the terminology.
    pub set: String,
    /// The code in the archetype.
    pub code: String,
    /// The terminology, perhaps with its release: `SNOMED-CT(2003)`.
    pub terminology: String,
    /// The code in the terminology.
    pub target: String,
}

/// A term of an archetype.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// The text that users see.
    pub text: String,
    /// What it means.
    pub description: String,
    /// Further entries, such as `comment`.
    pub others: Vec<(String, String)>,
}

/// A constrained object.
#[derive(Clone, Debug)]
pub struct Node {
    /// The class, where the RM knows it.
    pub class: Option<Cls>,
    /// The class as written, such as `DV_INTERVAL<DV_QUANTITY>`, without white space.
    pub class_text: String,
    /// The parameter of a generic class: DV_QUANTITY of `DV_INTERVAL<DV_QUANTITY>`.
    pub parameter: Option<Cls>,
    /// The node id (`at0004`), or empty.
    pub node_id: String,
    /// The archetype id, at the root of an archetype.
    pub archetype_id: Option<String>,
    /// How often the object may occur below its attribute.
    pub occurrences: Multiplicity,
    /// Which archetype's terms apply: an index of [`Template::roots`].
    pub root: usize,
    /// The constrained attributes.
    pub attributes: Vec<Attribute>,
    /// The constraint on the value itself.
    pub constraint: Constraint,
    /// The value that is assumed where none is given (AOM 1.4, C_DEFINED_OBJECT.assumed_value); empty without one.
    pub assumed: Leaves,
}

/// A constrained attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The attribute, where the RM knows it.
    pub attr: Option<Attr>,
    /// The name as written.
    pub name: String,
    /// Whether it must be present; absent when the template leaves that to the RM.
    pub existence: Option<Multiplicity>,
    /// For lists: how many values, and whether they must differ.
    pub cardinality: Option<Cardinality>,
    /// The objects that may stand here: alternatives at a single-valued attribute.
    pub children: Vec<Node>,
}

/// The constraint on the members of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cardinality {
    /// How many members.
    pub interval: Multiplicity,
    /// Whether their order means anything.
    pub is_ordered: bool,
    /// Whether they must differ.
    pub is_unique: bool,
}

/// A range of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiplicity {
    /// The least count.
    pub lower: u32,
    /// The greatest count; unbounded when absent.
    pub upper: Option<u32>,
}

/// A range of values, open at the ends that are absent.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Interval<T> {
    /// The lower limit.
    pub lower: Option<T>,
    /// The upper limit.
    pub upper: Option<T>,
    /// Whether the lower limit itself belongs to it.
    pub lower_included: bool,
    /// Whether the upper limit itself belongs to it.
    pub upper_included: bool,
}

/// What a value may be.
#[derive(Clone, Debug, Default)]
pub enum Constraint {
    /// Only what the attributes say.
    #[default]
    Open,
    /// Any archetype whose id matches.
    Slot {
        /// Archetype ids that are welcome; all when empty.
        includes: Vec<Pattern>,
        /// Archetype ids that are refused.
        excludes: Vec<Pattern>,
    },
    /// A Boolean.
    Boolean {
        /// Whether `true` may be sent.
        true_valid: bool,
        /// Whether `false` may be sent.
        false_valid: bool,
    },
    /// A String.
    Text {
        /// The expression that it must match.
        pattern: Option<Pattern>,
        /// The texts that are allowed; all when empty.
        list: Vec<String>,
        /// Whether other texts than those of the list are allowed too.
        open: bool,
    },
    /// An Integer.
    Integer {
        /// The range.
        range: Option<Interval<f64>>,
        /// The numbers that are allowed; all when empty.
        list: Vec<i64>,
    },
    /// A Real.
    Real {
        /// The range.
        range: Option<Interval<f64>>,
        /// The numbers that are allowed; all when empty.
        list: Vec<f64>,
    },
    /// A date, time, date-time or duration as ISO 8601 text.
    Temporal {
        /// Which of the four.
        kind: TemporalKind,
        /// The pattern, such as `yyyy-mm-??` or `PYMD`.
        pattern: Option<String>,
        /// The range.
        range: Option<Interval<String>>,
        /// Whether the seconds may have a fraction.
        fraction: Validity,
        /// Whether a zone may be given.
        zone: Validity,
    },
    /// A CODE_PHRASE of one terminology.
    Code {
        /// The terminology; `local` means the archetype's own terms.
        terminology: String,
        /// The codes that are allowed; all when empty.
        codes: Vec<String>,
    },
    /// A CODE_PHRASE out of a set that somebody else defines.
    CodeSet {
        /// The URI of the set, or the code of the archetype's constraint (`ac0001`).
        reference: String,
    },
    /// A DV_QUANTITY: alternatives of unit, magnitude and precision.
    Quantity {
        /// The code of the property, where given.
        property: Option<String>,
        /// The alternatives; any unit when empty.
        list: Vec<QuantityItem>,
    },
    /// A DV_ORDINAL or DV_SCALE: pairs of value and symbol.
    Ordinal {
        /// The pairs; any when empty.
        list: Vec<OrdinalItem>,
    },
}

/// Whether a component must, may or must not be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// It must be there.
    Mandatory,
    /// It may be there.
    #[default]
    Optional,
    /// It must not be there.
    Prohibited,
}

/// A unit with what may be said in it.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantityItem {
    /// The unit.
    pub units: String,
    /// The range of the magnitude.
    pub magnitude: Option<Interval<f64>>,
    /// The range of the number of decimals.
    pub precision: Option<Interval<f64>>,
}

/// A value and symbol of an ordinal or a scale.
#[derive(Clone, Debug, PartialEq)]
pub struct OrdinalItem {
    /// The value.
    pub value: f64,
    /// The terminology of the symbol.
    pub terminology: String,
    /// The code of the symbol.
    pub code: String,
}

impl Template {
    /// The version under which a template is kept: the one asked for, else its own (`sem_ver` of its details, else the
    /// suffix `.v1`, `.v1.2.3` of its id, else 1.0.0). Always three numbers, perhaps with a pre-release.
    pub fn version_or(&self, asked: Option<&str>) -> String {
        asked.and_then(semantic).unwrap_or_else(|| self.version.clone())
    }

    /// The term of a code at a node, in a language or else in the template's own.
    pub fn term(&self, node: &Node, language: &str, code: &str) -> Option<&Term> {
        let terms = &self.roots.get(node.root)?.terms;
        let found = terms.get(language).and_then(|t| t.get(code));
        found.or_else(|| terms.get(&self.language)?.get(code))
    }

    /// The text of a code of an archetype that the template uses, in a language or else in the template's own.
    pub(super) fn term_of(&self, archetype: &str, language: &str, code: &str) -> Option<&str> {
        let uses = || self.roots.iter().filter(|root| root.archetype_id == archetype);
        let term = |language: &str| uses().find_map(|root| root.terms.get(language)?.get(code));
        term(language).or_else(|| term(&self.language)).map(|term| term.text.as_str())
    }

    /// Every text that the template itself knows: names, terms, codes, units, terminologies, languages and ids. A leaf of
    /// a document with such a text may be a constant of its shape; any other text is the patient's.
    pub fn texts(&self) -> HashSet<&str> {
        let mut texts = HashSet::from([self.template_id.as_str(), self.concept.as_str(), self.archetype_id.as_str()]);
        texts.extend(self.languages.iter().map(String::as_str));
        for root in &self.roots {
            texts.insert(&root.archetype_id);
            for (code, term) in root.terms.values().flatten() {
                texts.extend([code.as_str(), term.text.as_str()]);
            }
            for binding in &root.bindings {
                texts.extend([binding.set.as_str(), binding.terminology.as_str(), binding.target.as_str()]);
            }
        }
        self.definition.texts(&mut texts);
        texts.remove("");
        texts
    }
}

/// A version as three numbers (`1` is `1.0.0`), when it is one.
pub(super) fn semantic(text: &str) -> Option<String> {
    let text = text.trim();
    if semver::Version::parse(text).is_ok() {
        return Some(text.to_owned());
    }
    let parts: Vec<&str> = text.split('.').collect();
    let full = match parts.as_slice() {
        [major] => format!("{major}.0.0"),
        [major, minor] => format!("{major}.{minor}.0"),
        _ => return None,
    };
    semver::Version::parse(&full).is_ok().then_some(full)
}

impl Node {
    /// The node at an attribute name, for walking by hand.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.name == name)
    }

    /// The id by which data name this node: the archetype id at roots, else the node id; empty for data values.
    pub fn id(&self) -> &str {
        self.archetype_id.as_deref().unwrap_or(&self.node_id)
    }

    /// The texts to which the template constrains the runtime name; empty when it leaves the name alone.
    pub fn names(&self) -> Vec<&str> {
        let values = self.attribute("name").into_iter().flat_map(|name| &name.children).filter_map(|n| n.attribute("value"));
        let constraints = values.flat_map(|value| &value.children).map(|n| &n.constraint);
        constraints.filter_map(|c| if let Constraint::Text { list, .. } = c { Some(list) } else { None }).flatten().map(String::as_str).collect()
    }

    /// The codes to which the template constrains a coded runtime name.
    pub fn name_codes(&self) -> Vec<&str> {
        let codes = self.attribute("name").into_iter().flat_map(|name| &name.children).filter_map(|n| n.attribute("defining_code"));
        let constraints = codes.flat_map(|value| &value.children).map(|n| &n.constraint);
        constraints.filter_map(|c| if let Constraint::Code { codes, .. } = c { Some(codes) } else { None }).flatten().map(String::as_str).collect()
    }

    fn texts<'t>(&'t self, texts: &mut HashSet<&'t str>) {
        texts.extend([self.node_id.as_str(), self.archetype_id.as_deref().unwrap_or_default()]);
        match &self.constraint {
            Constraint::Text { list, .. } => texts.extend(list.iter().map(String::as_str)),
            Constraint::Code { terminology, codes } => {
                texts.insert(terminology);
                texts.extend(codes.iter().map(String::as_str));
            }
            Constraint::Quantity { list, .. } => texts.extend(list.iter().map(|item| item.units.as_str())),
            Constraint::Ordinal { list } => texts.extend(list.iter().flat_map(|i| [i.terminology.as_str(), i.code.as_str()])),
            _ => {}
        }
        self.attributes.iter().flat_map(|a| &a.children).for_each(|child| child.texts(texts));
    }
}

impl Validity {
    /// True when it may be as it is: there, or not.
    pub fn allows(self, is_there: bool) -> bool {
        match self {
            Validity::Mandatory => is_there,
            Validity::Optional => true,
            Validity::Prohibited => !is_there,
        }
    }
}

impl Multiplicity {
    /// `0..*`
    pub const ANY: Multiplicity = Multiplicity { lower: 0, upper: None };

    /// True when this many are allowed.
    pub fn contains(self, count: usize) -> bool {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        count >= self.lower && self.upper.is_none_or(|upper| count <= upper)
    }
}

impl<T: PartialOrd> Interval<T> {
    /// True when the value lies within.
    pub fn contains(&self, value: &T) -> bool {
        let above = self.lower.as_ref().is_none_or(|l| if self.lower_included { value >= l } else { value > l });
        above && self.upper.as_ref().is_none_or(|u| if self.upper_included { value <= u } else { value < u })
    }
}

impl fmt::Display for Multiplicity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.upper {
            Some(upper) => write!(f, "{}..{upper}", self.lower),
            None => write!(f, "{}..*", self.lower),
        }
    }
}

impl<T: Spelled + PartialEq> fmt::Display for Interval<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = if self.lower_included { "at least" } else { "greater than" };
        let most = if self.upper_included { "at most" } else { "less than" };
        match (&self.lower, &self.upper) {
            (Some(l), Some(u)) if l == u && self.lower_included && self.upper_included => write!(f, "equal to {}", l.spell()),
            (Some(l), Some(u)) => write!(f, "{least} {} and {most} {}", l.spell(), u.spell()),
            (Some(l), None) => write!(f, "{least} {}", l.spell()),
            (None, Some(u)) => write!(f, "{most} {}", u.spell()),
            (None, None) => f.write_str("anything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_become_three_numbers() {
        for (text, expected) in [("1", Some("1.0.0")), ("2.1", Some("2.1.0")), ("0.1.0-alpha", Some("0.1.0-alpha")), ("x", None), ("1.2.3.4", None)] {
            assert_eq!(semantic(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn ranges_speak() {
        let range = Interval { lower: Some(0.0), upper: Some(100.0), lower_included: true, upper_included: false };
        assert_eq!(range.to_string(), "at least 0 and less than 100");
        assert!(range.contains(&0.0) && !range.contains(&100.0));
    }
}
