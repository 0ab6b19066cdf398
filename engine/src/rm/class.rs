//! The class table of the Reference Model as data: classes, inheritance, attributes.
//!
//! Everything that knows the RM (readers, writers, paths, AQL types, validation) is driven by this table, which
//! `cargo xtask gen-rm` writes from `class_table.tsv` (RM Release 1.1.0 as a superset of 1.0.2–1.1.0).

use super::class_table::{ATTR_NAMES, CLASSES};
use crate::order;
use std::fmt;
use std::sync::LazyLock;
use std::sync::OnceLock;

/// A class of the RM, or one of its primitive types; numbered in pre-order of inheritance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cls(pub(super) u8);

/// The name of an RM attribute, such as `archetype_node_id`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attr(pub(super) u8);

/// How many values an attribute has (its multiplicity in the class definition).
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

/// How an attribute stands in canonical XML.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XmlForm {
    /// An XML attribute: only `archetype_node_id`.
    Attribute,
    /// An element, at its place in the sequence of the XSD.
    Element,
    /// The XSD lacks it; written as an element behind the others.
    Absent,
}

/// One attribute of a class, inherited ones included.
#[derive(Debug)]
pub struct AttrDef {
    /// Its name.
    pub attr: Attr,
    /// Its declared class; values may be of any descendant.
    pub ty: Cls,
    /// Its multiplicity.
    pub card: Card,
    /// Its form in canonical XML.
    pub xml: XmlForm,
    /// The class that declares it.
    pub owner: Cls,
    /// The RM release that introduced it.
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
    /// True for `0..*` and `1..*`.
    pub fn is_list(self) -> bool {
        matches!(self, Card::List | Card::List1)
    }

    /// True for `1` and `1..*`.
    pub fn is_mandatory(self) -> bool {
        matches!(self, Card::One | Card::List1)
    }
}

/// The classes in the order of their names; the short ones come first, for lengths are soon compared.
static BY_NAME: LazyLock<Vec<Cls>> = LazyLock::new(|| {
    let mut classes: Vec<Cls> = Cls::all().collect();
    order::sort_by_key(&mut classes, |c| (c.name().len(), c.name()));
    classes
});

/// A set of classes, by number.
type ClassSet = [u64; 3];

/// For each class the classes that objects below it can be of.
static BELOW: OnceLock<Vec<ClassSet>> = OnceLock::new();

fn has(set: &ClassSet, class: usize) -> bool {
    set.get(class / 64).is_some_and(|word| word >> (class % 64) & 1 == 1)
}

/// What attributes lead to, and from there, and so on.
fn everything_below() -> Vec<ClassSet> {
    let mut below: Vec<ClassSet> = Cls::all().map(directly_below).collect();
    for middle in 0..below.len() {
        let further = below.get(middle).copied().unwrap_or_default();
        for set in below.iter_mut().filter(|set| has(set, middle)) {
            set.iter_mut().zip(further).for_each(|(word, more)| *word |= more);
        }
    }
    below
}

fn directly_below(class: Cls) -> ClassSet {
    let mut set = ClassSet::default();
    for target in class.attrs().iter().flat_map(|a| Cls::all().filter(|c| c.is_a(a.ty) && !c.is_abstract())) {
        if let Some(word) = set.get_mut(usize::from(target.0) / 64) {
            *word |= 1 << (target.0 % 64);
        }
    }
    set
}

static NOTHING: ClassDef = ClassDef { name: "?", is_abstract: true, parent: Cls(0), last: 0, attrs: &[] };

impl Cls {
    fn def(self) -> &'static ClassDef {
        CLASSES.get(usize::from(self.0)).unwrap_or(&NOTHING)
    }

    /// The class of this name, in the standard's spelling (`DV_TEXT`, `String`).
    pub fn parse(name: &str) -> Option<Cls> {
        BY_NAME.binary_search_by_key(&(name.len(), name), |c| (c.name().len(), c.name())).ok().and_then(|i| BY_NAME.get(i).copied())
    }

    /// The class of this name in any spelling of case, as AQL writes it.
    pub fn parse_any_case(name: &str) -> Option<Cls> {
        CLASSES.iter().position(|c| c.name.eq_ignore_ascii_case(name)).and_then(|i| u8::try_from(i).ok()).map(Cls)
    }

    /// The class with this number; the inverse of [`Cls::number`].
    pub fn from_number(number: u8) -> Option<Cls> {
        (usize::from(number) < CLASSES.len()).then_some(Cls(number))
    }

    /// A small number that identifies the class within one release of aqlite; never stored.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Every class of the table.
    pub fn all() -> impl Iterator<Item = Cls> {
        (0..CLASSES.len()).filter_map(|i| u8::try_from(i).ok()).map(Cls)
    }

    /// The name in the standard's spelling.
    pub fn name(self) -> &'static str {
        self.def().name
    }

    /// True when no object can be of this very class.
    pub fn is_abstract(self) -> bool {
        self.def().is_abstract
    }

    /// The direct ancestor; `Any` is its own.
    pub fn parent(self) -> Cls {
        self.def().parent
    }

    /// True when this class is `other` or descends from it.
    pub fn is_a(self, other: Cls) -> bool {
        self.0 >= other.0 && self.0 <= other.def().last
    }

    /// True for the types whose values are plain text, numbers or booleans.
    pub fn is_primitive(self) -> bool {
        matches!(self, Cls::BOOLEAN | Cls::CHARACTER | Cls::INTEGER | Cls::INTEGER64 | Cls::OCTETS | Cls::REAL | Cls::STRING)
    }

    /// True when an object of this class can have one of `other`, or of a descendant of it, somewhere below it.
    pub fn may_contain(self, other: Cls) -> bool {
        let below = BELOW.get_or_init(everything_below).get(usize::from(self.0)).copied().unwrap_or_default();
        (other.0..=other.def().last).any(|class| has(&below, usize::from(class)))
    }

    /// The attributes, inherited ones first, in canonical (XSD) order.
    pub fn attrs(self) -> &'static [AttrDef] {
        self.def().attrs
    }

    /// The definition of an attribute of this class.
    pub fn attr(self, attr: Attr) -> Option<&'static AttrDef> {
        self.attrs().iter().find(|a| a.attr == attr)
    }

    /// The definition of the attribute with this name.
    pub fn attr_named(self, name: &str) -> Option<&'static AttrDef> {
        self.attrs().iter().find(|a| a.attr.name() == name)
    }

    /// The place of an attribute in canonical order.
    pub fn position(self, attr: Attr) -> Option<usize> {
        self.attrs().iter().position(|a| a.attr == attr)
    }
}

impl Attr {
    /// The attribute name with this spelling, if any class has it.
    pub fn parse(name: &str) -> Option<Attr> {
        ATTR_NAMES.binary_search(&name).ok().and_then(|i| u8::try_from(i).ok()).map(Attr)
    }

    /// The name in the standard's spelling.
    pub fn name(self) -> &'static str {
        ATTR_NAMES.get(usize::from(self.0)).copied().unwrap_or("?")
    }

    /// The attribute with this number; the inverse of [`Attr::number`].
    pub fn from_number(number: u8) -> Option<Attr> {
        (usize::from(number) < ATTR_NAMES.len()).then_some(Attr(number))
    }

    /// A small number that identifies the name within one release of aqlite; never stored.
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
    fn inheritance_is_a_range() {
        assert!(Cls::DV_CODED_TEXT.is_a(Cls::DV_TEXT));
        assert!(Cls::OBSERVATION.is_a(Cls::LOCATABLE));
        assert!(!Cls::DV_TEXT.is_a(Cls::DV_CODED_TEXT));
        assert!(Cls::all().all(|c| c.is_a(Cls::ANY)));
    }

    #[test]
    fn attributes_stand_in_xsd_order() {
        let names: Vec<&str> = Cls::ELEMENT.attrs().iter().map(|a| a.attr.name()).collect();
        assert_eq!(names, ["archetype_node_id", "name", "uid", "links", "archetype_details", "feeder_audit", "value", "null_flavour", "null_reason"]);
    }

    #[test]
    fn the_table_knows_what_can_stand_below() {
        assert!(
            Cls::COMPOSITION.may_contain(Cls::OBSERVATION) && Cls::SECTION.may_contain(Cls::SECTION) && Cls::OBSERVATION.may_contain(Cls::ELEMENT)
        );
        assert!(
            !Cls::COMPOSITION.may_contain(Cls::COMPOSITION) && !Cls::OBSERVATION.may_contain(Cls::ENTRY) && !Cls::DV_TEXT.may_contain(Cls::LOCATABLE)
        );
        assert!(Cls::ORIGINAL_VERSION.may_contain(Cls::COMPOSITION) && Cls::EHR_STATUS.may_contain(Cls::LOCATABLE));
    }

    #[test]
    fn names_parse_back() {
        assert!(Cls::all().all(|c| Cls::parse(c.name()) == Some(c)));
        assert_eq!(Cls::parse_any_case("observation"), Some(Cls::OBSERVATION));
        assert_eq!(Attr::parse("archetype_node_id"), Some(Attr::ARCHETYPE_NODE_ID));
    }
}
