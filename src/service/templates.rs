//! Compiled templates, and those that one request uses.

use super::error::Failure;
use crate::document::Texts;
use crate::store::repository::TemplateState;
use crate::template::{Template, WebTemplate};
use aqlite_rm::order;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The maximum bytes of the texts of all templates that one change set names.
///
/// Its checked members keep parts of their templates until they are written, also of those that the
/// library has evicted meanwhile. A compiled template takes about two and a half times the memory
/// of its text.
pub(crate) const MAX_TEMPLATE_BYTES: usize = 20_000_000;

/// The source of the facts that a write relies on: see `write_policy`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum FactSource {
    /// The caches of this instance, if they have them. The commit names the facts as preconditions.
    Cached,
    /// The database.
    #[default]
    Stored,
}

/// A template, and the stored definitions among which it is the latest.
#[derive(Clone)]
pub(crate) struct KnownTemplate {
    /// The precondition of checking a document against it.
    pub state: Rc<TemplateState>,
    /// The template.
    pub compiled: Rc<Compiled>,
}

/// The templates that a request uses, by id; `None` for an id without a template. Each remains the
/// one that was looked up first.
#[derive(Default)]
pub(crate) struct Templates {
    /// Their source.
    pub fact_source: FactSource,
    by_id: BTreeMap<String, Option<KnownTemplate>>,
    /// Bytes of their texts.
    pub bytes: usize,
}

impl Templates {
    /// Removes all templates. Others are looked up among these facts.
    pub fn rely_on(&mut self, facts: FactSource) {
        *self = Templates {
            fact_source: facts,
            ..Templates::default()
        };
    }

    /// Returns a template that was looked up.
    pub fn get(&self, id: &str) -> Option<Option<Rc<Compiled>>> {
        let known = self.by_id.get(id)?;
        Some(known.as_ref().map(|known| Rc::clone(&known.compiled)))
    }

    /// Returns the states of templates, without repetitions.
    ///
    /// # Errors
    /// 500 if a template was not looked up. A precondition is never left out silently.
    pub fn states<'i>(
        &self,
        ids: impl Iterator<Item = &'i str>,
    ) -> Result<Vec<Rc<TemplateState>>, Failure> {
        let unknown = || Failure::broken("the document was checked without its template");
        let state = |id| {
            let known = self.by_id.get(id)?.as_ref()?;
            Some(Rc::clone(&known.state))
        };
        order::distinct(ids)
            .into_iter()
            .map(|id| state(id).ok_or_else(unknown))
            .collect()
    }

    /// Adds a template.
    ///
    /// # Errors
    /// 400 if the texts of all templates together are longer than [`MAX_TEMPLATE_BYTES`]. One alone
    /// may be.
    pub fn insert(&mut self, id: &str, template: Option<KnownTemplate>) -> Result<(), Failure> {
        let size = |known: &KnownTemplate| known.compiled.bytes;
        let bytes = template.as_ref().map_or(0, size);
        let replaced = self.by_id.get(id).and_then(Option::as_ref);
        let others = self.bytes - replaced.map_or(0, size);
        // A single template of any size must be usable, as the upload has accepted it.
        if others > 0 && others.saturating_add(bytes) > MAX_TEMPLATE_BYTES {
            return Err(Failure::bad_request(format!(
                "the change set names templates of more than {MAX_TEMPLATE_BYTES} bytes in all: commit its members in several change sets"
            )));
        }
        self.bytes = others + bytes;
        self.by_id.insert(id.to_owned(), template);
        Ok(())
    }

    /// Removes all templates if their texts are longer than half of [`MAX_TEMPLATE_BYTES`]. Returns
    /// whether it did. A request of many change sets calls it between two of them, so that its
    /// templates never add up.
    pub fn forget_many(&mut self) -> bool {
        let is_many = self.bytes > MAX_TEMPLATE_BYTES / 2;
        if is_many {
            // The next change set looks its templates up again, in the same source.
            self.rely_on(self.fact_source);
        }
        is_many
    }
}

/// A template, ready to check documents.
pub(crate) struct Compiled {
    /// Bytes of its text.
    pub bytes: usize,
    /// The constraint tree.
    pub template: Template,
    /// The texts that may be part of shared layouts.
    pub known: Rc<Texts>,
    /// Its web template, once it is derived.
    pub web: OnceCell<WebTemplate>,
}

impl Compiled {
    /// Compiles a template, given with the bytes of its text.
    pub fn new(template: Template, bytes: usize) -> Compiled {
        // A shared layout may have these texts, because no person typed them into a document.
        let known = Rc::new(template.texts().into_iter().map(str::to_owned).collect());
        Compiled {
            bytes,
            template,
            known,
            web: OnceCell::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_bytes(bytes: usize) -> Option<KnownTemplate> {
        let small = include_str!("../../tests/cases/template/small.opt");
        let template = Template::parse(small).expect("a template");
        Some(KnownTemplate {
            state: Rc::new(TemplateState {
                template: String::from("weight.en.v2"),
                stored: Vec::new(),
            }),
            compiled: Rc::new(Compiled::new(template, bytes)),
        })
    }

    #[test]
    fn templates_of_a_change_set_are_bounded_together() {
        let mut templates = Templates::default();
        let mut insert = |id: &str, bytes| {
            let inserted = templates.insert(id, of_bytes(bytes));
            inserted.map_err(|failure| failure.status)
        };
        assert_eq!(insert("a", MAX_TEMPLATE_BYTES + 1), Ok(()), "one alone");
        assert_eq!(insert("b", 1), Err(400));
        assert_eq!(insert("a", MAX_TEMPLATE_BYTES - 1), Ok(()), "replaced");
        assert_eq!(insert("b", 1), Ok(()));
        assert_eq!(insert("c", 1), Err(400));
        assert_eq!(insert("b", 1), Ok(()), "replaced");
    }

    #[test]
    fn more_than_half_of_the_bytes_is_forgotten_between_change_sets() {
        let forgets = |bytes| {
            let mut templates = Templates::default();
            templates.insert("a", of_bytes(bytes)).expect("one alone");
            (templates.forget_many(), templates.bytes)
        };
        let half = MAX_TEMPLATE_BYTES / 2;
        assert_eq!(forgets(half), (false, half));
        assert_eq!(forgets(half + 1), (true, 0));
    }
}
