//! The templates of a repository, parsed once for many readers of their labels.

use crate::store::repository::{Definition, DefinitionKind, Repository, StoreError};
use crate::template::Template;

/// The templates of a repository that can be parsed.
#[derive(Default)]
pub struct KnownTemplates {
    /// The acts of storing that the templates are of, also of those that cannot be parsed.
    storing_ids: Vec<String>,
    templates: Vec<Template>,
}

impl KnownTemplates {
    /// Returns the templates, as of the last call of [`KnownTemplates::renew`].
    pub fn templates(&self) -> &[Template] {
        &self.templates
    }

    /// Reads the templates again if others are stored.
    ///
    /// # Errors
    /// The repository fails.
    pub async fn renew(&mut self, repository: &impl Repository) -> Result<(), StoreError> {
        let listed = repository.definitions(DefinitionKind::Template, "").await?;
        if listed.iter().map(|d| &d.storing_id).eq(&self.storing_ids) {
            return Ok(());
        }
        let mut templates = Vec::with_capacity(listed.len());
        for Definition { name, version, .. } in &listed {
            let read = repository.definition(DefinitionKind::Template, name, version);
            // A template that this release cannot read has no labels.
            templates.extend(read.await?.and_then(|d| Template::parse(&d.body).ok()));
        }
        *self = KnownTemplates {
            storing_ids: listed.into_iter().map(|d| d.storing_id).collect(),
            templates,
        };
        Ok(())
    }
}
