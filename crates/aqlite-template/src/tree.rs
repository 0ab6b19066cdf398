//! The constraint tree of a template, independent of the archetype formalism: classes, node ids,
//! occurrences, constraints on values.

use super::pattern::Pattern;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::Diagnostic;
use aqlite_rm::exact::Exact;
use aqlite_rm::number::TextForm;
use aqlite_rm::time::{Temporal, TemporalKind};
use std::collections::BTreeMap;
use std::collections::HashSet;
use std::fmt;

/// An operational template.
#[derive(Clone, Debug)]
pub struct Template {
    /// `template_id/value`.
    pub template_id: String,
    /// The version that [`Template::version_or`] returns without a requested version.
    pub version: String,
    /// The concept name.
    pub concept: String,
    /// The archetype id of the root node.
    pub archetype_id: String,
    /// The code of the original language, such as `en`.
    pub language: String,
    /// The languages with terms, the original language first.
    pub languages: Vec<String>,
    /// `uid/value`, if present.
    pub uid: Option<String>,
    /// The root of the constraint tree.
    pub definition: Node,
    /// The archetypes used, in document order. [`Node::root`] is an index of this list.
    pub roots: Vec<ArchetypeRoot>,
    /// Annotations of nodes: path, key, text.
    pub annotations: Vec<Annotation>,
    /// Initial values for data entry forms.
    pub defaults: Vec<DefaultValue>,
    /// The owner that may have only one document of this template, such as `EHR`: `is_singleton` of
    /// the template's details.
    pub singleton: Option<String>,
    /// Warnings about the source text that do not prevent its use.
    pub warnings: Vec<Diagnostic>,
    /// Whether the definition has a class that is unknown. Documents are then checked by the
    /// Reference Model alone.
    pub is_opaque: bool,
    /// The violations of the limits of an upload.
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

/// An initial value for data entry forms. It constrains nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultValue {
    /// The path of the value, in the form of annotations.
    pub path: String,
    /// The class of the value.
    pub class: Option<Cls>,
    /// The leaves of the value.
    pub leaves: Leaves,
}

/// The leaves of a value, as path of attribute names (`defining_code/code_string`) and text. The
/// path of a primitive value is empty.
pub type Leaves = Vec<(String, String)>;

/// One use of an archetype in a template, with its terms.
#[derive(Clone, Debug, Default)]
pub struct ArchetypeRoot {
    /// The archetype id.
    pub archetype_id: String,
    /// Terms by language and code.
    pub terms: BTreeMap<String, BTreeMap<String, Term>>,
    /// Bindings of codes to other terminologies.
    pub bindings: Vec<Binding>,
}

/// A binding of a code of an archetype to a code of another terminology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// The name of the set of bindings, usually that of the terminology.
    pub set: String,
    /// The code in the archetype.
    pub code: String,
    /// The terminology, with its release if known: `SNOMED-CT(2003)`.
    pub terminology: String,
    /// The code in the terminology.
    pub target: String,
    /// Whether documents may have the target in place of the code, as in templates of ADL 2 (From
    /// Constraints to Concrete Codes in Data).
    pub is_permitted_in_data: bool,
}

impl Binding {
    /// Returns whether a name is that of the terminology. Its release, case and punctuation do not
    /// count: `snomed_ct`, `SNOMED-CT(2003)` and `http://snomed.info/sct` are the same.
    pub(super) fn names(&self, terminology: &str) -> bool {
        let wanted = plain_terminology(terminology);
        wanted == plain_terminology(&self.set) || wanted == plain_terminology(&self.terminology)
    }
}

/// Returns the lowercase letters and digits of the name of a terminology, without its release.
fn plain_terminology(name: &str) -> String {
    let name = name.split('(').next().unwrap_or_default();
    let name = match name
        .trim_start_matches("https://")
        .trim_start_matches("http://")
    {
        "snomed.info/sct" => "SNOMED-CT",
        "loinc.org" => "LOINC",
        other => other,
    };
    let kept = name.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|c| c.to_ascii_lowercase()).collect()
}

/// A term of an archetype.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// The text that users see.
    pub text: String,
    /// The definition of the term.
    pub description: String,
    /// Other entries, such as `comment`.
    pub others: Vec<(String, String)>,
}

/// A constraint on an object.
#[derive(Clone, Debug)]
pub struct Node {
    /// The class, if it is a class of the Reference Model.
    pub class: Option<Cls>,
    /// The class as written, such as `DV_INTERVAL<DV_QUANTITY>`, without white space.
    pub class_text: String,
    /// The parameter of a generic class: DV_QUANTITY of `DV_INTERVAL<DV_QUANTITY>`.
    pub parameter: Option<Cls>,
    /// The node id (`at0004`), or empty.
    pub node_id: String,
    /// The archetype id, at the root of an archetype.
    pub archetype_id: Option<String>,
    /// The permitted number of such objects at the attribute.
    pub occurrences: Multiplicity,
    /// The index in [`Template::roots`] of the archetype whose terms apply.
    pub root: usize,
    /// The constraints on attributes.
    pub attributes: Vec<Attribute>,
    /// The attributes that are constrained together: the rows of each tuple (AOM 2,
    /// `C_ATTRIBUTE_TUPLE`), of which one must match. A tuple with one row is in `attributes`.
    pub tuples: Vec<Vec<Vec<Attribute>>>,
    /// The constraint on the value itself.
    pub constraint: Constraint,
    /// The value to assume if data have none (AOM 1.4, `C_DEFINED_OBJECT.assumed_value`). Empty if
    /// not defined.
    pub assumed: Leaves,
}

/// A constraint on an attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The attribute, if the Reference Model has it.
    pub attr: Option<Attr>,
    /// The name as written.
    pub name: String,
    /// Whether the attribute must be present. `None` leaves that to the Reference Model.
    pub existence: Option<Multiplicity>,
    /// For lists: the number of members, their order and uniqueness.
    pub cardinality: Option<Cardinality>,
    /// The permitted objects. At a single-valued attribute they are alternatives.
    pub children: Vec<Node>,
}

/// A constraint on the members of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cardinality {
    /// The number of members.
    pub interval: Multiplicity,
    /// Whether the order of members is significant.
    pub is_ordered: bool,
    /// Whether members must be distinct.
    pub is_unique: bool,
}

/// A range of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiplicity {
    /// The minimum.
    pub lower: u32,
    /// The maximum, or `None` if unbounded.
    pub upper: Option<u32>,
}

/// A range of values. An absent limit is unbounded.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Interval<T> {
    /// The lower limit.
    pub lower: Option<T>,
    /// The upper limit.
    pub upper: Option<T>,
    /// Whether the range includes the lower limit.
    pub lower_included: bool,
    /// Whether the range includes the upper limit.
    pub upper_included: bool,
}

/// A constraint on a value.
#[derive(Clone, Debug, Default)]
pub enum Constraint {
    /// No constraint beyond those on attributes.
    #[default]
    Open,
    /// A slot for archetypes with matching ids.
    Slot {
        /// Permitted archetype ids. If empty, all are permitted.
        includes: Vec<Pattern>,
        /// Excluded archetype ids.
        excludes: Vec<Pattern>,
    },
    /// A Boolean.
    Boolean {
        /// Whether `true` is permitted.
        true_valid: bool,
        /// Whether `false` is permitted.
        false_valid: bool,
    },
    /// A String.
    Text {
        /// The expression that the text must match.
        pattern: Option<Pattern>,
        /// The permitted texts. If empty, all are permitted.
        list: Vec<String>,
        /// Whether texts outside the list are permitted as well.
        open: bool,
    },
    /// An Integer.
    Integer {
        /// The range. An Integer64 has more digits than a double.
        range: Option<Interval<Exact>>,
        /// The permitted numbers. If empty, all are permitted.
        list: Vec<i64>,
    },
    /// A Real.
    Real {
        /// The range.
        range: Option<Interval<f64>>,
        /// The permitted numbers. If empty, all are permitted.
        list: Vec<f64>,
    },
    /// A date, time, date-time or duration as ISO 8601 text.
    Temporal {
        /// The kind of value.
        kind: TemporalKind,
        /// The pattern, such as `yyyy-mm-??` or `PYMD`.
        pattern: Option<String>,
        /// The range.
        range: Option<Interval<String>>,
        /// Whether seconds may have a fraction.
        fraction: Validity,
        /// Whether a time zone is permitted.
        zone: Validity,
    },
    /// A CODE_PHRASE of one terminology.
    Code {
        /// The terminology. `local` refers to the terms of the archetype.
        terminology: String,
        /// The permitted codes. If empty, all are permitted.
        codes: Vec<String>,
        /// Whether other codes are permitted as well, also of other terminologies: the constraint
        /// status of ADL 2 is `extensible`, `preferred` or `example`.
        open: bool,
    },
    /// A CODE_PHRASE from an external value set.
    CodeSet {
        /// The URI of the set, or the code of the constraint in the archetype (`ac0001`).
        reference: String,
    },
    /// A DV_QUANTITY: alternatives of unit, magnitude and precision.
    Quantity {
        /// The openEHR code of the property, if given.
        property: Option<String>,
        /// The alternatives. If empty, any unit is permitted.
        list: Vec<QuantityItem>,
    },
    /// A DV_ORDINAL or DV_SCALE: pairs of value and symbol.
    Ordinal {
        /// The pairs. If empty, any pair is permitted.
        list: Vec<OrdinalItem>,
    },
}

/// A constraint on the presence of a component (VALIDITY_KIND).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// The component is required.
    Mandatory,
    /// The component is permitted.
    #[default]
    Optional,
    /// The component is not permitted.
    Prohibited,
}

/// A unit with constraints on its magnitudes.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantityItem {
    /// The unit.
    pub units: String,
    /// The range of the magnitude.
    pub magnitude: Option<Interval<f64>>,
    /// The range of the number of decimals.
    pub precision: Option<Interval<f64>>,
}

/// Returns the terminology in the reference of a value set, which precedes a subset:
/// `terminology:SNOMED-CT?subset=problems`. `None` if the reference does not begin like this.
pub(super) fn terminology_of(reference: &str) -> Option<&str> {
    let named = reference.strip_prefix("terminology:")?;
    let name = named.split(['?', '/', '&']).next()?;
    // An address such as `http://snomed.info/sct` names no terminology.
    Some(if name.ends_with(':') { "" } else { name })
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
    /// Returns the version under which the template is stored, as a semantic version.
    ///
    /// It is the requested version, else `sem_ver` of the template's details, else the version
    /// suffix of the id (`.v1`, `.v1.2.3`), else 1.0.0.
    pub fn version_or(&self, asked: Option<&str>) -> String {
        asked
            .and_then(semantic)
            .unwrap_or_else(|| self.version.clone())
    }

    /// Returns the term of a code at a node, in `language` if available, else in the original
    /// language.
    pub fn term(&self, node: &Node, language: &str, code: &str) -> Option<&Term> {
        let terms = &self.roots.get(node.root)?.terms;
        let found = terms.get(language).and_then(|t| t.get(code));
        found.or_else(|| terms.get(&self.language)?.get(code))
    }

    /// Returns the texts of a code in all languages, at the archetype with this index in
    /// [`Template::roots`].
    pub(super) fn terms_of(&self, root: usize, code: &str) -> impl Iterator<Item = &str> {
        let languages = self
            .roots
            .get(root)
            .into_iter()
            .flat_map(|root| root.terms.values());
        languages.filter_map(move |terms| Some(terms.get(code)?.text.as_str()))
    }

    /// Returns the text of a code of an archetype that the template uses, in `language` if
    /// available, else in the original language.
    pub(super) fn term_of(&self, archetype: &str, language: &str, code: &str) -> Option<&str> {
        let uses = || {
            self.roots
                .iter()
                .filter(|root| root.archetype_id == archetype)
        };
        let term = |language: &str| uses().find_map(|root| root.terms.get(language)?.get(code));
        term(language)
            .or_else(|| term(&self.language))
            .map(|term| term.text.as_str())
    }

    /// Returns every text that the template defines: names, terms, codes, units, terminologies,
    /// languages and ids.
    ///
    /// These are known texts: a leaf of a document with such a text may be part of its layout. Any
    /// other text is a leaf value, because a person may have typed it.
    pub fn texts(&self) -> HashSet<&str> {
        let mut texts = HashSet::from([
            self.template_id.as_str(),
            self.concept.as_str(),
            self.archetype_id.as_str(),
        ]);
        texts.extend(self.languages.iter().map(String::as_str));
        for root in &self.roots {
            texts.insert(&root.archetype_id);
            for (code, term) in root.terms.values().flatten() {
                texts.extend([code.as_str(), term.text.as_str()]);
            }
            for binding in &root.bindings {
                texts.extend([
                    binding.set.as_str(),
                    binding.terminology.as_str(),
                    binding.target.as_str(),
                ]);
            }
        }
        self.definition.texts(&mut texts);
        texts.remove("");
        texts
    }
}

/// Returns a version as three numbers (`1` is `1.0.0`), or `None` if the text is not a version.
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
    /// Returns the constraint on the attribute with this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.name == name)
    }

    /// Returns the id of matching data: the archetype id at roots, else the node id. Empty for data
    /// values.
    pub fn id(&self) -> &str {
        self.archetype_id.as_deref().unwrap_or(&self.node_id)
    }

    /// Returns the permitted runtime names. Empty if the name is not constrained.
    pub fn names(&self) -> Vec<&str> {
        let values = self
            .attribute("name")
            .into_iter()
            .flat_map(|name| &name.children)
            .filter_map(|n| n.attribute("value"));
        let constraints = values
            .flat_map(|value| &value.children)
            .map(|n| &n.constraint);
        constraints
            .filter_map(|c| {
                if let Constraint::Text { list, .. } = c {
                    Some(list)
                } else {
                    None
                }
            })
            .flatten()
            .map(String::as_str)
            .collect()
    }

    /// Returns the permitted codes of a coded runtime name.
    pub fn name_codes(&self) -> Vec<&str> {
        let codes = self
            .attribute("name")
            .into_iter()
            .flat_map(|name| &name.children)
            .filter_map(|n| n.attribute("defining_code"));
        let constraints = codes
            .flat_map(|value| &value.children)
            .map(|n| &n.constraint);
        constraints
            .filter_map(|c| {
                if let Constraint::Code { codes, .. } = c {
                    Some(codes)
                } else {
                    None
                }
            })
            .flatten()
            .map(String::as_str)
            .collect()
    }

    fn texts<'t>(&'t self, texts: &mut HashSet<&'t str>) {
        texts.extend([
            self.node_id.as_str(),
            self.archetype_id.as_deref().unwrap_or_default(),
        ]);
        match &self.constraint {
            Constraint::Text { list, .. } => texts.extend(list.iter().map(String::as_str)),
            Constraint::Code {
                terminology, codes, ..
            } => {
                texts.insert(terminology);
                texts.extend(codes.iter().map(String::as_str));
            }
            Constraint::Quantity { list, .. } => {
                texts.extend(list.iter().map(|item| item.units.as_str()))
            }
            Constraint::Ordinal { list } => texts.extend(
                list.iter()
                    .flat_map(|i| [i.terminology.as_str(), i.code.as_str()]),
            ),
            _ => {}
        }
        let together = self.tuples.iter().flatten().flatten();
        let attributes = self.attributes.iter().chain(together);
        attributes
            .flat_map(|a| &a.children)
            .for_each(|child| child.texts(texts));
    }
}

impl Validity {
    /// Returns whether presence (`true`) or absence (`false`) is permitted.
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
    pub const ANY: Multiplicity = Multiplicity {
        lower: 0,
        upper: None,
    };

    /// Returns whether the range contains a count.
    pub fn contains(self, count: usize) -> bool {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        count >= self.lower && self.upper.is_none_or(|upper| count <= upper)
    }
}

impl<T> Interval<T> {
    /// Returns the range with other limits, which are computed from these.
    pub(super) fn map<U>(&self, limit: impl Fn(&T) -> U) -> Interval<U> {
        Interval {
            lower: self.lower.as_ref().map(&limit),
            upper: self.upper.as_ref().map(&limit),
            lower_included: self.lower_included,
            upper_included: self.upper_included,
        }
    }
}

impl Interval<Exact> {
    /// Returns the range with the nearest doubles as limits.
    pub(super) fn doubles(&self) -> Interval<f64> {
        self.map(|limit| limit.double())
    }
}

impl Interval<String> {
    /// Returns the limits that are no date, time or duration of a kind. A check ignores them.
    pub(super) fn unreadable(&self, kind: TemporalKind) -> impl Iterator<Item = &String> {
        let limits = [&self.lower, &self.upper].into_iter().flatten();
        limits.filter(move |text| !text.is_empty() && Temporal::parse(kind, text).is_none())
    }
}

impl<T: PartialOrd> Interval<T> {
    /// Returns whether the range contains a value.
    pub fn contains(&self, value: &T) -> bool {
        let above = self.lower.as_ref().is_none_or(|l| {
            if self.lower_included {
                value >= l
            } else {
                value > l
            }
        });
        above
            && self.upper.as_ref().is_none_or(|u| {
                if self.upper_included {
                    value <= u
                } else {
                    value < u
                }
            })
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

impl<T: TextForm + PartialEq> fmt::Display for Interval<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = if self.lower_included {
            "at least"
        } else {
            "greater than"
        };
        let most = if self.upper_included {
            "at most"
        } else {
            "less than"
        };
        match (&self.lower, &self.upper) {
            (Some(l), Some(u)) if l == u && self.lower_included && self.upper_included => {
                write!(f, "equal to {}", l.to_text())
            }
            (Some(l), Some(u)) => write!(f, "{least} {} and {most} {}", l.to_text(), u.to_text()),
            (Some(l), None) => write!(f, "{least} {}", l.to_text()),
            (None, Some(u)) => write!(f, "{most} {}", u.to_text()),
            (None, None) => f.write_str("anything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminology_of_a_value_set_precedes_its_subset() {
        for (reference, terminology) in [
            ("terminology:SNOMED-CT?subset=problems", Some("SNOMED-CT")),
            ("terminology:ICD10", Some("ICD10")),
            ("terminology:http://snomed.info/sct?fhir_vs=1", Some("")),
            ("terminology://fhir.hl7.org/ValueSet/$expand", Some("")),
            ("ac0001", None),
        ] {
            assert_eq!(terminology_of(reference), terminology, "{reference}");
        }
    }

    #[test]
    fn versions_are_normalized_to_three_numbers() {
        for (text, expected) in [
            ("1", Some("1.0.0")),
            ("2.1", Some("2.1.0")),
            ("0.1.0-alpha", Some("0.1.0-alpha")),
            ("x", None),
            ("1.2.3.4", None),
        ] {
            assert_eq!(semantic(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn intervals_are_displayed_in_words() {
        let range = Interval {
            lower: Some(0.0),
            upper: Some(100.0),
            lower_included: true,
            upper_included: false,
        };
        assert_eq!(range.to_string(), "at least 0 and less than 100");
        assert!(range.contains(&0.0) && !range.contains(&100.0));
    }
}
