//! The variables whose earlier values a run reads. Of all others it reads the last value only.

use super::{Attribute, CompiledGuide, Compiler, Op};
use crate::fill::{self, Missing};
use std::cell::Cell;

impl Compiler<'_> {
    /// Marks the variables that are read as lists: by `count`, `sum`, `any` and `for_all`, and by
    /// placeholders such as `{$gt0009.all}`.
    pub(super) fn mark_lists(&mut self) {
        let slots = vec![Cell::new(false); self.out.slots.len()];
        let bindings = vec![Cell::new(false); self.out.bindings.len()];
        self.mark_placeholders(&slots, &bindings);
        for op in &self.out.ops {
            if let Op::Read(slot, Attribute::Count | Attribute::Sum)
            | Op::ListVariable { slot, .. } = op
            {
                mark(&slots, *slot);
            }
        }
        for (plan, is_listed) in self.out.bindings.iter().zip(bindings) {
            if is_listed.get() {
                let columns = plan.columns.iter();
                columns.for_each(|c| c.slot.iter().for_each(|slot| mark(&slots, *slot)));
            }
        }
        for (info, is_listed) in self.out.slots.iter_mut().zip(slots) {
            info.is_listed = is_listed.get();
        }
    }

    /// Marks the variables, and the bindings, that a placeholder of a template or card reads as a
    /// list. A variable wins over a binding of the same code.
    fn mark_placeholders(&self, slots: &[Cell<bool>], bindings: &[Cell<bool>]) {
        let lookup = |code: &str, attribute: Option<&str>| {
            let parsed = attribute.and_then(Attribute::parse);
            if attribute == Some("all") || matches!(parsed, Some(Attribute::Count | Attribute::Sum))
            {
                match (self.slot_index.get(code), self.binding_index.get(code)) {
                    (Some(slot), _) => mark(slots, *slot),
                    (None, Some(binding)) => mark(bindings, *binding),
                    (None, None) => {}
                }
            }
            Vec::new()
        };
        for template in &self.guide.templates {
            fill::filled(&template.object, &lookup);
        }
        for card in self.guide.rules.iter().flat_map(|rule| &rule.cards) {
            card.each_filled_text(&mut |text| {
                fill::filled_text(text, Missing::Kept, &lookup);
            });
        }
    }
}

fn mark(marks: &[Cell<bool>], at: usize) {
    if let Some(mark) = marks.get(at) {
        mark.set(true);
    }
}

impl CompiledGuide {
    /// Returns whether a run reads only the last value of each variable of a binding, and whichever
    /// instance has it.
    pub(crate) fn reads_latest(&self, binding: usize) -> bool {
        let plan = self.bindings.get(binding);
        plan.is_some_and(|plan| plan.predicates.is_empty()) && !self.reads_lists(binding)
    }

    /// Returns whether a run reads a variable of a binding as a list.
    pub(crate) fn reads_lists(&self, binding: usize) -> bool {
        let is_listed = |slot: usize| self.slots.get(slot).is_some_and(|info| info.is_listed);
        let plan = self.bindings.get(binding);
        plan.is_some_and(|plan| plan.columns.iter().any(|c| c.slot.is_some_and(is_listed)))
    }
}
