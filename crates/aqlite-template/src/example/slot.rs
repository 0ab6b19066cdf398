//! Generation of mandatory slots: the smallest object of a permitted archetype.

use super::super::pattern::Pattern;
use super::super::slot;
use super::super::tree::Node;
use super::{Generator, Made, concrete_class_for, defaults};
use aqlite_rm::class::Cls;
use aqlite_rm::id::{ArchetypeId, is_archetype_id};

impl<'t> Generator<'t> {
    pub(super) fn slot(
        &mut self,
        node: &'t Node,
        includes: &[Pattern],
        excludes: &[Pattern],
    ) -> Made {
        let Some(class) = node.class else {
            return Err(self.problem(&format!(
                "`{}` is not a class of the Reference Model",
                node.class_text
            )));
        };
        let steps: usize = includes.iter().chain(excludes).map(Pattern::steps).sum();
        let is_welcome = |id: &str| {
            if !self.spend(1 + steps.saturating_mul(id.len()) / 4) {
                return false;
            }
            slot::permits(includes, excludes, id)
        };
        if !self.spend(steps) {
            return Err(self.problem("the example is too large"));
        }
        let found = candidates(class, includes).into_iter().find_map(|id| {
            let named = ArchetypeId::parse(&id).and_then(|id| Cls::parse(id.class))?;
            let fits = is_archetype_id(&id)
                && named.is_a(class)
                && !named.is_abstract()
                && is_welcome(&id);
            fits.then_some((named, id))
        });
        match found {
            Some((named, id)) => self.object(named, None, Some(&id)),
            None => Err(self
                .problem("the slot must be filled, and no archetype id was found that it allows")),
        }
    }
}

/// Returns candidate archetype ids for a slot: the shortest matches of its expressions, then
/// invented ids.
fn candidates(class: Cls, includes: &[Pattern]) -> Vec<String> {
    let mut ids: Vec<String> = includes.iter().filter_map(Pattern::example).collect();
    let preferred = concrete_class_for(class, &[])
        .into_iter()
        .chain(defaults::PREFERRED);
    for class in preferred
        .chain(Cls::all())
        .filter(|c| c.is_a(class) && !c.is_abstract())
    {
        let model = if class.is_a(Cls::PARTY) {
            "DEMOGRAPHIC"
        } else {
            "EHR"
        };
        ids.extend(
            ["v1", "v0", "v2"].map(|version| format!("openEHR-{model}-{class}.example.{version}")),
        );
    }
    ids
}
