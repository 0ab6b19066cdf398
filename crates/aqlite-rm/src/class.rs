//! The class table of the Reference Model as data: classes, inheritance, attributes.
//!
//! Readers, writers, paths, AQL types and validation are driven by this table. `cargo xtask gen-rm`
//! writes it from `class_table.tsv`, which is RM Release 1.1.0 as a superset of 1.0.2 to 1.1.0.

use super::class_table::{ATTR_NAMES, CLASSES};
use crate::order;
use std::fmt;
use std::sync::LazyLock;
use std::sync::OnceLock;

/// A class of the RM, or one of its primitive types.
///
/// Classes are numbered in pre-order of inheritance, so the descendants of a class are a range of
/// numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cls(pub(super) u8);

/// The name of an RM attribute, such as `archetype_node_id`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attr(pub(super) u8);

/// The multiplicity of an attribute in the class definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Card {
    /// `0..1`
    Opt,
    /// `1`
    One,
    /// `0..*`
    List,
    /// `1..*`
    List1,
}

/// The representation of an attribute in canonical XML.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XmlForm {
    /// An XML attribute: only `archetype_node_id`.
    Attribute,
    /// An element, at its position in the sequence of the XSD.
    Element,
    /// An element after all others, because the XSD does not define it.
    Absent,
}

/// The definition of one attribute of a class, inherited attributes included.
#[derive(Debug)]
pub struct AttrDef {
    /// The attribute name.
    pub attr: Attr,
    /// The declared class. Values may be of any descendant.
    pub ty: Cls,
    /// The multiplicity.
    pub card: Card,
    /// Whether an invariant of the class requires a list to have a member, if there is a list:
    /// `links /= Void implies not links.is_empty`.
    pub is_filled: bool,
    /// The representation in canonical XML.
    pub xml: XmlForm,
    /// The class that declares the attribute.
    pub owner: Cls,
    /// The RM release that introduced the attribute.
    pub since: &'static str,
}

pub(super) struct ClassDef {
    pub name: &'static str,
    pub is_abstract: bool,
    pub parent: Cls,
    pub last: u8,
    pub attrs: &'static [AttrDef],
}

impl Card {
    /// Returns whether the multiplicity is `0..*` or `1..*`.
    pub fn is_list(self) -> bool {
        matches!(self, Card::List | Card::List1)
    }

    /// Returns whether the multiplicity is `1` or `1..*`.
    pub fn is_mandatory(self) -> bool {
        matches!(self, Card::One | Card::List1)
    }
}

/// The classes sorted by name, shorter names first, because lengths are cheap to compare.
static BY_NAME: LazyLock<Vec<Cls>> = LazyLock::new(|| {
    let mut classes: Vec<Cls> = Cls::all().collect();
    order::sort_by_key(&mut classes, |c| (c.name().len(), c.name()));
    classes
});

/// A bitmap of classes, by class number.
type ClassSet = [u64; 3];

/// For each class, the classes of the objects that may occur below it.
static BELOW: OnceLock<Vec<ClassSet>> = OnceLock::new();

fn has(set: &ClassSet, class: usize) -> bool {
    set.get(class / 64)
        .is_some_and(|word| word >> (class % 64) & 1 == 1)
}

/// Computes the transitive closure of "has an attribute of this class" for all classes.
fn everything_below() -> Vec<ClassSet> {
    let mut below: Vec<ClassSet> = Cls::all().map(directly_below).collect();
    for middle in 0..below.len() {
        let further = below.get(middle).copied().unwrap_or_default();
        for set in below.iter_mut().filter(|set| has(set, middle)) {
            set.iter_mut()
                .zip(further)
                .for_each(|(word, more)| *word |= more);
        }
    }
    below
}

fn directly_below(class: Cls) -> ClassSet {
    let mut set = ClassSet::default();
    for target in class
        .attrs()
        .iter()
        .flat_map(|a| Cls::all().filter(|c| c.is_a(a.ty) && !c.is_abstract()))
    {
        if let Some(word) = set.get_mut(usize::from(target.0) / 64) {
            *word |= 1 << (target.0 % 64);
        }
    }
    set
}

static NOTHING: ClassDef = ClassDef {
    name: "?",
    is_abstract: true,
    parent: Cls(0),
    last: 0,
    attrs: &[],
};

impl Cls {
    fn def(self) -> &'static ClassDef {
        CLASSES.get(usize::from(self.0)).unwrap_or(&NOTHING)
    }

    /// Returns the class with this name in the spelling of the standard (`DV_TEXT`, `String`).
    pub fn parse(name: &str) -> Option<Cls> {
        BY_NAME
            .binary_search_by_key(&(name.len(), name), |c| (c.name().len(), c.name()))
            .ok()
            .and_then(|i| BY_NAME.get(i).copied())
    }

    /// Returns the class with this name, ignoring case as AQL does.
    pub fn parse_any_case(name: &str) -> Option<Cls> {
        CLASSES
            .iter()
            .position(|c| c.name.eq_ignore_ascii_case(name))
            .and_then(|i| u8::try_from(i).ok())
            .map(Cls)
    }

    /// Returns the class with this number. Inverse of [`Cls::number`].
    pub fn from_number(number: u8) -> Option<Cls> {
        (usize::from(number) < CLASSES.len()).then_some(Cls(number))
    }

    /// Returns a small number that identifies the class within one release of aqlite. It is never
    /// stored.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns every class of the table.
    pub fn all() -> impl Iterator<Item = Cls> {
        (0..CLASSES.len())
            .filter_map(|i| u8::try_from(i).ok())
            .map(Cls)
    }

    /// Returns the name in the spelling of the standard.
    pub fn name(self) -> &'static str {
        self.def().name
    }

    /// Returns whether the class is abstract: objects have one of its descendants as class.
    pub fn is_abstract(self) -> bool {
        self.def().is_abstract
    }

    /// Returns the direct ancestor. `Any` is its own ancestor.
    pub fn parent(self) -> Cls {
        self.def().parent
    }

    /// Returns whether this class is `other` or a descendant of it.
    pub fn is_a(self, other: Cls) -> bool {
        self.0 >= other.0 && self.0 <= other.def().last
    }

    /// Returns whether values of this class are plain texts, numbers or booleans.
    pub fn is_primitive(self) -> bool {
        matches!(
            self,
            Cls::BOOLEAN
                | Cls::CHARACTER
                | Cls::INTEGER
                | Cls::INTEGER64
                | Cls::OCTETS
                | Cls::REAL
                | Cls::STRING
        )
    }

    /// Returns whether an object of class `other`, or of a descendant, may occur at any depth below
    /// an object of this class.
    pub fn may_contain(self, other: Cls) -> bool {
        let below = BELOW
            .get_or_init(everything_below)
            .get(usize::from(self.0))
            .copied()
            .unwrap_or_default();
        (other.0..=other.def().last).any(|class| has(&below, usize::from(class)))
    }

    /// Returns the attributes in canonical (XSD) order, inherited ones first.
    pub fn attrs(self) -> &'static [AttrDef] {
        self.def().attrs
    }

    /// Returns the definition of an attribute of this class.
    pub fn attr(self, attr: Attr) -> Option<&'static AttrDef> {
        self.attrs().iter().find(|a| a.attr == attr)
    }

    /// Returns the definition of the attribute with this name.
    pub fn attr_named(self, name: &str) -> Option<&'static AttrDef> {
        self.attrs().iter().find(|a| a.attr.name() == name)
    }

    /// Returns the index of an attribute in canonical order.
    pub fn position(self, attr: Attr) -> Option<usize> {
        self.attrs().iter().position(|a| a.attr == attr)
    }
}

impl Attr {
    /// Returns the attribute name with this spelling, if any class has such an attribute.
    pub fn parse(name: &str) -> Option<Attr> {
        ATTR_NAMES
            .binary_search(&name)
            .ok()
            .and_then(|i| u8::try_from(i).ok())
            .map(Attr)
    }

    /// Returns the name in the spelling of the standard.
    pub fn name(self) -> &'static str {
        ATTR_NAMES.get(usize::from(self.0)).copied().unwrap_or("?")
    }

    /// Returns the attribute name with this number. Inverse of [`Attr::number`].
    pub fn from_number(number: u8) -> Option<Attr> {
        (usize::from(number) < ATTR_NAMES.len()).then_some(Attr(number))
    }

    /// Returns a small number that identifies the name within one release of aqlite. It is never
    /// stored.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for Cls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Cls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_a_range_of_numbers() {
        assert!(Cls::DV_CODED_TEXT.is_a(Cls::DV_TEXT));
        assert!(Cls::OBSERVATION.is_a(Cls::LOCATABLE));
        assert!(!Cls::DV_TEXT.is_a(Cls::DV_CODED_TEXT));
        assert!(Cls::all().all(|c| c.is_a(Cls::ANY)));
    }

    #[test]
    fn attributes_are_in_xsd_order() {
        let names: Vec<&str> = Cls::ELEMENT.attrs().iter().map(|a| a.attr.name()).collect();
        assert_eq!(
            names,
            [
                "archetype_node_id",
                "name",
                "uid",
                "links",
                "archetype_details",
                "feeder_audit",
                "value",
                "null_flavour",
                "null_reason"
            ]
        );
    }

    #[test]
    fn may_contain_is_transitive() {
        assert!(
            Cls::COMPOSITION.may_contain(Cls::OBSERVATION)
                && Cls::SECTION.may_contain(Cls::SECTION)
                && Cls::OBSERVATION.may_contain(Cls::ELEMENT)
        );
        assert!(
            !Cls::COMPOSITION.may_contain(Cls::COMPOSITION)
                && !Cls::OBSERVATION.may_contain(Cls::ENTRY)
                && !Cls::DV_TEXT.may_contain(Cls::LOCATABLE)
        );
        assert!(
            Cls::ORIGINAL_VERSION.may_contain(Cls::COMPOSITION)
                && Cls::EHR_STATUS.may_contain(Cls::LOCATABLE)
        );
    }

    #[test]
    fn names_parse_back() {
        assert!(Cls::all().all(|c| Cls::parse(c.name()) == Some(c)));
        assert_eq!(Cls::parse_any_case("observation"), Some(Cls::OBSERVATION));
        assert_eq!(
            Attr::parse("archetype_node_id"),
            Some(Attr::ARCHETYPE_NODE_ID)
        );
    }
}
