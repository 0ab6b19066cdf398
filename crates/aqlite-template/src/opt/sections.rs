//! The sections of a template that do not constrain data: annotations, hints for forms, default
//! values.

use super::class_named;
use crate::tree::{Annotation, DefaultValue, Leaves};
use crate::xml::Xml;

/// Reads the annotations of one path.
pub(super) fn annotations(xml: Xml<'_>) -> Vec<Annotation> {
    let path = xml.attribute("path").unwrap_or_default();
    xml.all("items")
        .map(|i| Annotation {
            path: path.to_owned(),
            key: i.attribute("id").unwrap_or_default().to_owned(),
            text: i.text().to_owned(),
        })
        .collect()
}

/// Reads the hints for forms of the section `view`. Web templates show them as annotations.
pub(super) fn view_constraints(xml: Xml<'_>) -> Vec<Annotation> {
    let path = xml.attribute("path").unwrap_or_default();
    let hint = |item: Xml<'_>| Annotation {
        path: path.to_owned(),
        key: format!("view:{}", item.attribute("id").unwrap_or_default()),
        text: item.text_along(&["value"]).unwrap_or_default().to_owned(),
    };
    xml.all("items").map(hint).collect()
}

/// Reads the default values of the section `constraints`.
pub(super) fn defaults(xml: Xml<'_>) -> Vec<DefaultValue> {
    let value = |attribute: Xml<'_>| {
        let path = attribute
            .text_along(&["differential_path"])
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let name = attribute
            .text_along(&["rm_attribute_name"])
            .unwrap_or_default();
        let child = attribute.child("children")?;
        let class = child
            .text_along(&["rm_type_name"])
            .and_then(|name| class_named(name.trim()));
        Some(DefaultValue {
            path: format!("{path}/{name}"),
            class,
            leaves: leaves(child.child("default_value")?),
        })
    };
    xml.all("attributes").filter_map(value).collect()
}

/// Returns the texts in an element with the path of element names that leads to them.
pub(super) fn leaves(xml: Xml<'_>) -> Leaves {
    fn walk(xml: Xml<'_>, path: &str, into: &mut Leaves) {
        let mut is_leaf = true;
        for child in xml.children() {
            is_leaf = false;
            let path = if path.is_empty() {
                child.name().to_owned()
            } else {
                format!("{path}/{}", child.name())
            };
            if path.len() <= LEAF_PATH {
                walk(child, &path, into);
            }
        }
        if is_leaf {
            into.push((path.to_owned(), xml.text().to_owned()));
        }
    }
    let mut found = Leaves::new();
    walk(xml, "", &mut found);
    found
}

/// The maximum length in bytes of the path of a leaf. Classes of the Reference Model need much
/// less.
///
/// Each leaf has a copy of its path, so long names of nested elements would multiply.
const LEAF_PATH: usize = 500;
