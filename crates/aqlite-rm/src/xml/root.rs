//! Names of root elements.

use super::super::build::shorten;
use super::super::class::Cls;
use crate::diag::Finding;

/// Returns the class that an element name is, in any letter case.
pub(super) fn class_named(name: &str) -> Option<Cls> {
    Cls::parse(&name.to_ascii_uppercase()).filter(|class| !class.is_primitive())
}

/// Returns whether an object of class `class`, or of a descendant, may be the root element `name`.
///
/// The schema has the root elements `composition`, `version`, `extract` and `items`, of which the
/// last is any LOCATABLE. It names all other objects by attributes. Documents of the other classes
/// are named by their class.
pub(super) fn may_be_root(name: &str, class: Cls) -> bool {
    let related = |other: Cls| class.is_a(other) || other.is_a(class);
    let is_attribute = || {
        let attributes = Cls::all().flat_map(Cls::attrs);
        let mut of_name = attributes.filter(|def| def.attr.name() == name);
        // An attribute of any class says nothing about the object, unless any class is expected.
        of_name.any(|def| related(def.ty) && (def.ty != Cls::ANY || class == Cls::ANY))
    };
    let is_items = || name == "items" && class.is_a(Cls::LOCATABLE);
    class_named(name).is_some_and(related) || is_items() || is_attribute()
}

/// Returns the finding for a root element that no object of the class has.
pub(super) fn unknown_root(name: &str, class: Cls) -> Finding {
    let finding = Finding::error(
        "RM0103",
        "",
        format!(
            "the root element `{}` is no name of the object: rename it",
            shorten(name)
        ),
    );
    if class == Cls::ANY {
        finding.expected("the name of a class in lower case, such as `composition`")
    } else {
        finding.expected(format!("`{}`", class.name().to_ascii_lowercase()))
    }
}
