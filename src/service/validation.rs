//! Validation of a composition without a commit, against the Reference Model and its template.

use super::Service;
use super::content::{model_findings, named_template, without_template};
use super::error::{Failure, root_of};
use crate::diag::Finding;
use crate::rm::class::Cls;
use crate::rm::{json, xml};
use crate::store::repository::Repository;
use crate::template;

impl<R: Repository> Service<R> {
    /// Returns all findings that a commit would have in a COMPOSITION (canonical JSON or XML), with
    /// warnings. The template is the one with this id, or else the one that the composition names.
    ///
    /// # Errors
    /// A message if the repository fails.
    pub async fn validate_composition(
        &self,
        text: &str,
        template_id: Option<&str>,
    ) -> Result<Vec<Finding>, String> {
        let is_xml = text
            .trim_start_matches('\u{feff}')
            .trim_start()
            .starts_with('<');
        let read = if is_xml {
            xml::read(text, Cls::COMPOSITION)
        } else {
            json::read(text, Cls::COMPOSITION)
        };
        let tree = match read {
            Ok(tree) => tree,
            Err(findings) => return Ok(findings),
        };
        let message = |failure: Failure| failure.into_fields().message;
        let mut findings = model_findings(&tree).map_err(message)?;
        let named = template_id.or_else(|| named_template(&tree));
        let known = match named {
            Some(id) => self.template(None, id).await.map_err(message)?,
            None => None,
        };
        match known {
            Some(known) => {
                let root = root_of(&tree).map_err(message)?;
                findings.extend(template::validate(root, &known.compiled.template));
                template::label_findings(root, &known.compiled.template, &mut findings);
            }
            None => findings.insert(0, without_template(named)),
        }
        Ok(findings)
    }
}
