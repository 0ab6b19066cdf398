//! The common part of the readers of canonical JSON and XML: class resolution, current path,
//! findings.

use super::class::{Attr, AttrDef, Cls};
use super::tree::{Kind, NodeId, Tree};
use crate::diag::Finding;
use std::fmt::Write;

/// The limits of a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The maximum nesting of objects and lists, or of XML elements.
    pub depth: usize,
    /// The maximum number of findings. A reader stops at this number, so that the remaining input
    /// costs nothing.
    pub findings: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            depth: 128,
            findings: MAX_FINDINGS,
        }
    }
}

/// The maximum number of findings of a reader, and of errors and of warnings of a validation.
pub(super) const MAX_FINDINGS: usize = 1_000;

/// A step of the path to the value being read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Attr(Attr),
    Index(usize),
}

/// A document under construction.
#[derive(Debug)]
pub(super) struct Builder {
    pub tree: Tree,
    pub limits: Limits,
    pub path: Vec<Step>,
    /// The objects whose type names a parameter, which are checked when they are complete.
    parameters: Vec<Parameter>,
    findings: Vec<Finding>,
}

/// The type parameter that an object names: DV_COUNT of `DV_INTERVAL<DV_COUNT>`.
#[derive(Debug)]
struct Parameter {
    id: NodeId,
    class: Cls,
    /// The path of the object.
    path: String,
}

/// A generic class.
struct Generic {
    class: Cls,
    /// The bound of its type parameter: `Y` in `X<Y>`.
    bound: Cls,
    /// The paths to its values of the class of the parameter.
    values: &'static [&'static [Attr]],
}

const fn generic(class: Cls, bound: Cls, values: &'static [&'static [Attr]]) -> Generic {
    Generic {
        class,
        bound,
        values,
    }
}

/// The generic classes. The events of a HISTORY may name their own parameters.
const GENERICS: [Generic; 6] = [
    generic(
        Cls::DV_INTERVAL,
        Cls::DV_ORDERED,
        &[&[Attr::LOWER], &[Attr::UPPER]],
    ),
    generic(
        Cls::REFERENCE_RANGE,
        Cls::DV_ORDERED,
        &[&[Attr::RANGE, Attr::LOWER], &[Attr::RANGE, Attr::UPPER]],
    ),
    generic(Cls::HISTORY, Cls::ITEM_STRUCTURE, &[]),
    generic(Cls::EVENT, Cls::ITEM_STRUCTURE, &[&[Attr::DATA]]),
    generic(Cls::VERSION, Cls::LOCATABLE, &[&[Attr::DATA]]),
    generic(Cls::VERSIONED_OBJECT, Cls::LOCATABLE, &[]),
];

impl Builder {
    pub fn new(bytes: usize, limits: Limits) -> Builder {
        Builder {
            tree: Tree::with_capacity(bytes),
            limits,
            path: Vec::new(),
            parameters: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Returns the tree, or all findings if there are any.
    pub fn finish(mut self) -> Result<Tree, Vec<Finding>> {
        for parameter in std::mem::take(&mut self.parameters) {
            self.check_parameter(&parameter);
        }
        if self.findings.is_empty() {
            Ok(self.tree)
        } else {
            Err(self.findings)
        }
    }

    /// Adds an object whose type was named so.
    pub fn push_object(
        &mut self,
        parent: Option<NodeId>,
        attr: Option<Attr>,
        cls: Cls,
        named: Option<&str>,
    ) -> NodeId {
        let id = self.tree.push_object(parent, attr, cls);
        let parameter = named.and_then(|named| split_generic(named).1);
        let class = parameter.and_then(|parameter| Cls::parse(split_generic(parameter).0));
        if let Some(class) = class {
            let path = self.here();
            self.parameters.push(Parameter { id, class, path });
        }
        id
    }

    /// Reports the values of a generic object that are not of the class of its parameter.
    fn check_parameter(&mut self, parameter: &Parameter) {
        let object = self.tree.at(parameter.id);
        let class = object.class();
        let generic = GENERICS.iter().find(|g| class.is_a(g.class));
        let paths = generic.map_or(&[] as &[_], |generic| generic.values);
        let value = |path: &&[Attr]| path.iter().try_fold(object, |at, attr| at.get(*attr));
        let others: Vec<Finding> = paths
            .iter()
            .filter_map(|path| Some((path, value(path)?.class())))
            .filter(|(_, found)| !found.is_a(parameter.class))
            .map(|(path, found)| {
                let steps: Vec<Step> = path.iter().copied().map(Step::Attr).collect();
                let path = format!("{}{}", parameter.path, path_text(&steps));
                let message = format!("the type of the object is {class}<{}>", parameter.class);
                Finding::error("RM0104", path, message)
                    .expected(parameter.class.name())
                    .found(found.name())
            })
            .collect();
        others.into_iter().for_each(|finding| self.report(finding));
    }

    /// Returns the RM path of the value being read. It is empty at the root.
    pub fn here(&self) -> String {
        path_text(&self.path)
    }

    /// Returns whether the limit of findings is reached. The document is rejected whatever follows.
    pub fn is_full(&self) -> bool {
        self.findings.len() >= self.limits.findings
    }

    pub fn report(&mut self, finding: Finding) {
        if !self.is_full() {
            self.findings.push(finding);
        }
    }

    /// Reports a wrong kind of value at the current path.
    pub fn wrong_kind(&mut self, expected: impl Into<String>, found: impl Into<String>) {
        let finding = Finding::error("RM0106", self.here(), "wrong kind of value")
            .expected(expected)
            .found(found);
        self.report(finding);
    }

    /// Reports a text between the elements of an object.
    pub fn stray_text(&mut self, text: &str) {
        self.wrong_kind(
            "elements only",
            format!("the text `{}`", shorten(text.trim_ascii())),
        );
    }

    /// Reports an attribute that the class does not have.
    pub fn unknown_attribute(&mut self, cls: Cls, name: &str) {
        let path = format!("{}/{}", self.here(), shorten(name));
        let finding = Finding::error(
            "RM0101",
            path,
            format!("`{cls}` has no attribute `{}`", shorten(name)),
        );
        self.report(finding);
    }

    /// Reports an attribute that occurs more than once.
    pub fn duplicate(&mut self, name: &str) {
        let path = format!("{}/{}", self.here(), shorten(name));
        self.report(Finding::error(
            "RM0105",
            path,
            format!("`{}` occurs here more than once", shorten(name)),
        ));
    }

    /// Resolves the class of an object from its declared class and the type that it names.
    ///
    /// Returns `None` after reporting that the class is unknown or abstract.
    pub fn class_of(&mut self, declared: Cls, named: Option<&str>) -> Option<Cls> {
        // The declared class needs no lookup in the class table.
        if named.is_none_or(|named| named == declared.name()) && !declared.is_abstract() {
            return Some(declared);
        }
        let cls = match named {
            Some(named) => concrete_class(split_generic(named).0, named),
            None => Err(unnamed_class(declared)),
        };
        let cls = match cls {
            Ok(cls) => cls,
            Err((code, message)) => {
                let finding = Finding::error(code, self.here(), message).expected(declared.name());
                self.report(finding);
                return None;
            }
        };
        self.check_class(declared, cls, named.unwrap_or_default());
        Some(cls)
    }

    /// Reports a class that cannot be at the current place. The object is read nevertheless, so
    /// that findings below it are reported too.
    fn check_class(&mut self, declared: Cls, cls: Cls, named: &str) {
        if !cls.is_a(declared) {
            let message = "an object of this class cannot stand here";
            let finding = Finding::error("RM0104", self.here(), message)
                .expected(declared.name())
                .found(cls.name());
            self.report(finding);
        }
        if split_generic(named)
            .1
            .is_some_and(|p| !fits_generic(cls, p))
        {
            let message = format!("`{}` is not a class that `{cls}` can hold", shorten(named));
            self.report(Finding::error("RM0103", self.here(), message));
        }
    }
}

/// The members of one object while it is read.
#[derive(Debug)]
pub(super) struct Members {
    pub cls: Cls,
    pub id: NodeId,
    /// A bitmap of the attribute positions that were read. No class has more than 64 attributes.
    seen: u64,
    last: Option<usize>,
    /// Whether the tree has the members in canonical order so far.
    pub sorted: bool,
}

impl Members {
    pub fn new(cls: Cls, id: NodeId) -> Members {
        Members {
            cls,
            id,
            seen: 0,
            last: None,
            sorted: true,
        }
    }

    /// Marks the attribute at a position as read. Returns whether it is the first occurrence.
    pub fn take(&mut self, position: usize) -> bool {
        let bit = 1 << position;
        let first = self.seen & bit == 0;
        self.seen |= bit;
        first
    }

    /// Records that the attribute at a position is added to the tree now.
    pub fn place(&mut self, position: usize) {
        self.sorted &= self.last.is_none_or(|last| last < position);
        self.last = Some(position);
    }

    /// Returns position and definition of the attribute with this name.
    ///
    /// The search starts after the previous attribute, because input is mostly in canonical order.
    pub fn find(&self, name: &str) -> Option<(usize, &'static AttrDef)> {
        let defs = self.cls.attrs();
        // `min` covers the case in which the last attribute was read before.
        let start = self.last.map_or(0, |l| l + 1).min(defs.len());
        let (before, behind) = defs.split_at(start);
        let at = |offset: usize, defs: &'static [AttrDef]| {
            defs.iter()
                .position(|d| d.attr.name() == name)
                .and_then(|i| Some((offset + i, defs.get(i)?)))
        };
        at(start, behind).or_else(|| at(0, before))
    }
}

/// Formats the RM path of a place. It is empty at the root.
pub(super) fn path_text(steps: &[Step]) -> String {
    let mut out = String::new();
    for step in steps {
        let _ = match step {
            Step::Attr(attr) => write!(out, "/{attr}"),
            Step::Index(index) => write!(out, "[{index}]"),
        };
    }
    out
}

/// Returns the description of the values of a primitive type, for messages.
pub(super) fn described(primitive: Cls) -> &'static str {
    match primitive {
        Cls::BOOLEAN => "a boolean",
        Cls::REAL => "a number",
        Cls::INTEGER | Cls::INTEGER64 => "an integer",
        Cls::OCTETS => "a base64 text",
        Cls::CHARACTER => "a character",
        _ => "a text",
    }
}

/// Returns the words of a finding for a leaf of a wrong kind.
pub(super) fn described_leaf(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Number => format!("the number {}", shorten(text)),
        Kind::Boolean => format!("the boolean {text}"),
        _ => "a text".to_owned(),
    }
}

/// Finds the class with the name `base`, of which there can be objects. `named` is the complete
/// name as sent.
///
/// # Errors
/// The code and the message of the finding.
fn concrete_class(base: &str, named: &str) -> Result<Cls, (&'static str, String)> {
    match Cls::parse(base).filter(|c| !c.is_primitive() && *c != Cls::ANY) {
        None => Err(("RM0103", format!("unknown class `{}`", shorten(named)))),
        Some(cls) if cls.is_abstract() => Err((
            "RM0103",
            format!("`{cls}` is abstract: no object can be of it"),
        )),
        Some(cls) => Ok(cls),
    }
}

/// Returns the code and the message of the finding about an object that names no class.
fn unnamed_class(declared: Cls) -> (&'static str, String) {
    let reason = match declared {
        Cls::ANY => "the class is not known here".to_owned(),
        _ => format!("`{declared}` is abstract"),
    };
    (
        "RM0102",
        format!("{reason}: the object must name its class"),
    )
}

/// Splits `DV_INTERVAL<DV_DATE>` into `DV_INTERVAL` and `DV_DATE`.
fn split_generic(name: &str) -> (&str, Option<&str>) {
    match name.split_once('<') {
        Some((base, rest)) => (
            base.trim(),
            // Without `>` the parameter is empty, which is no class, so the name is rejected.
            Some(rest.trim().strip_suffix('>').unwrap_or("").trim()),
        ),
        None => (name, None),
    }
}

fn fits_generic(cls: Cls, parameter: &str) -> bool {
    let (base, inner) = split_generic(parameter);
    let Some(parameter) = Cls::parse(base) else {
        return false;
    };
    let bound = GENERICS
        .iter()
        .find(|generic| cls.is_a(generic.class))
        .map(|generic| generic.bound);
    bound.is_some_and(|b| parameter.is_a(b)) && inner.is_none_or(|i| fits_generic(parameter, i))
}

/// Returns the first 40 characters of a text that a message quotes.
pub(super) fn shorten(text: &str) -> &str {
    text.char_indices()
        .nth(40)
        .and_then(|(end, _)| text.get(..end))
        .unwrap_or(text)
}
