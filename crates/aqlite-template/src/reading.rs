//! Reading of a template in two steps, elements and constraints, so that a single-threaded host can
//! serve other requests in between.

use super::opt2::opt2_document;
use super::tree::Template;
use super::xml::Document;
use aqlite_rm::diag::Diagnostic;

/// The parsed elements of a template.
pub struct TemplateElements<'t> {
    document: Document<'t>,
    is_opt2: bool,
}

impl<'t> TemplateElements<'t> {
    /// Parses the elements of an operational template of ADL 1.4.
    ///
    /// # Errors
    /// One diagnostic, because the rest of a malformed text is unreliable.
    pub fn of_opt14(text: &'t str) -> Result<TemplateElements<'t>, Vec<Diagnostic>> {
        let document = Document::parse(text).map_err(|problem| vec![problem])?;
        Ok(TemplateElements {
            document,
            is_opt2: false,
        })
    }

    /// Parses the elements of an operational template of ADL 2, given as XML or ADL.
    ///
    /// # Errors
    /// One diagnostic, because the rest of a malformed text is unreliable.
    pub fn of_opt2(text: &'t str) -> Result<TemplateElements<'t>, Vec<Diagnostic>> {
        let document = opt2_document(text).map_err(|problem| vec![problem])?;
        Ok(TemplateElements {
            document,
            is_opt2: true,
        })
    }

    /// Converts the elements to the constraint tree.
    ///
    /// # Errors
    /// All problems of the template.
    pub fn template(&self) -> Result<Template, Vec<Diagnostic>> {
        if self.is_opt2 {
            Template::of_opt2(&self.document)
        } else {
            Template::of_opt14(&self.document)
        }
    }
}
