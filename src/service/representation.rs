//! The representations of a resource in a response.

use super::error::Failure;
use super::negotiate::Format;
use crate::rm::class::Cls;
use crate::rm::json;
use crate::rm::tree::NodeRef;
use crate::rm::xml;

/// A resource in another representation than the canonical one.
#[derive(Clone)]
pub(crate) struct Representation {
    /// The media type of the body.
    pub media_type: &'static str,
    /// The text.
    pub body: String,
    /// Headers in addition to those of every resource.
    pub headers: Vec<(&'static str, String)>,
}

/// Returns media type and text of an RM object.
pub(crate) fn body_of(
    node: NodeRef<'_>,
    format: Format,
) -> Result<(&'static str, String), Failure> {
    let body = match format {
        Format::Json => json::write(node),
        Format::Xml => {
            xml::write_without_audit_terms(node, &root_name(node.class())).map_err(|finding| {
                Failure::new(
                    406,
                    format!(
                        "the resource cannot be written as XML: {}",
                        finding.one_line()
                    ),
                )
            })?
        }
    };
    Ok((format.media_type(), body))
}

/// Returns the name of the root element of an object: for a version that of the schema, else its
/// class in lower case.
fn root_name(class: Cls) -> String {
    match class {
        Cls::ORIGINAL_VERSION | Cls::IMPORTED_VERSION => String::from("version"),
        class => class.name().to_ascii_lowercase(),
    }
}
