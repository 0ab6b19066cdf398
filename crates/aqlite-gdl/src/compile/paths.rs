//! The paths of bindings: elements, and predicates.

use super::{Attribute, Column, Compiler};
use crate::guide::{Binding, MAX_PROBLEMS, shown};
use aqlite_rm::diag::Diagnostic;
use aqlite_rm::path::has_path_form;

impl Compiler<'_> {
    /// Reports the paths of the columns of a binding that no query can read.
    pub(super) fn check_paths(&mut self, binding: &Binding, columns: &mut [Column]) {
        let paths: Vec<&str> = columns.iter().map(|c| c.path.as_str()).collect();
        let readable = crate::readable::readable(&binding.model_id, &paths);
        let elements = binding.elements.iter().zip(columns).zip(readable);
        for ((element, column), is_readable) in elements {
            // The absence of a path is another problem, which is reported already.
            if is_readable || !column.is_readable {
                continue;
            }
            column.is_readable = false;
            self.span = element.span;
            self.invalid_path(&element.path);
        }
    }

    /// Reports a path that no query can read.
    fn invalid_path(&mut self, path: &str) {
        let message = format!("the path `{}` is invalid", shown(path));
        let problem = Diagnostic::error("GDL0306", self.span, message);
        if self.out.problems.len() < MAX_PROBLEMS {
            let help = "write a path such as `/data[at0001]/items[at0002]`, whose attributes the class has";
            self.out.problems.push(problem.with_help(help));
        }
    }

    /// Returns the column of a path in a predicate, and the attribute of its value.
    pub(super) fn column(&mut self, path: &str) -> (usize, Attribute) {
        let Some(plan) = self.out.bindings.get_mut(self.binding) else {
            self.path_outside(path);
            // An impossible column: evaluation reads null from it.
            return (usize::MAX, Attribute::Whole);
        };
        let path = crate::bind::normal_path(path);
        if !has_path_form(split_path(&path).0) {
            self.invalid_path(&path);
            return (usize::MAX, Attribute::Whole);
        }
        // The map holds the first column of each path. A linear search would be quadratic: a
        // binding has up to 10,000 variables, and as many predicates.
        if self.columns.is_empty() {
            for (i, column) in plan.columns.iter().enumerate() {
                self.columns.entry(column.path.clone()).or_insert(i);
            }
        }
        if let Some(found) = self.columns.get(&path) {
            return (*found, Attribute::Whole);
        }
        let (base, attribute) = split_path(&path);
        if attribute == Attribute::NullFlavor
            && let Some(path) = crate::bind::null_flavor_path(base)
        {
            return self.column(&path);
        }
        if let Some(found) = self.columns.get(base) {
            return (*found, attribute);
        }
        let model_id = plan.head.model_id.clone();
        let is_readable = crate::readable::readable(&model_id, &[base]) == [true];
        let mut new = Column::of_path(base.to_owned());
        new.is_readable = is_readable;
        plan.columns.push(new);
        let column = plan.columns.len() - 1;
        self.columns.insert(base.to_owned(), column);
        if !is_readable {
            self.invalid_path(base);
        }
        (column, attribute)
    }

    /// Reports a path outside of a predicate.
    pub(super) fn path_outside(&mut self, path: &str) {
        let help = "paths stand in predicates of bindings; rules use variables";
        if self.out.problems.len() < MAX_PROBLEMS {
            let message = format!("path `{}` outside of a predicate", shown(path));
            let problem = Diagnostic::error("GDL0310", self.span, message);
            self.out.problems.push(problem.with_help(help));
        }
    }
}

/// Splits `/…/items[at0004]/value/magnitude`, `/…/items[at0004]/value` or `/symbol/value.value`
/// into path and attribute.
pub(crate) fn split_path(path: &str) -> (&str, Attribute) {
    // A dot or slash inside of brackets belongs to a node id or name.
    let tail_at = path.rfind(']').map_or(0, |i| i + 1);
    let (head, tail) = path.split_at(tail_at);
    let front = |length: usize| path.get(..head.len() + length);
    if let Some((base, name)) = tail.rsplit_once('.')
        && let Some(attribute) = Attribute::parse(name)
    {
        return (front(base.len()).unwrap_or(path), attribute);
    }
    // `/value` occurs behind an element, or behind an RM attribute that holds a data value.
    // The first `/value` is taken: behind it only the attribute of a data value may follow.
    let behind_value = tail
        .find("/value")
        .map(|at| (at, tail.get(at + "/value".len()..).unwrap_or_default()));
    let split = behind_value.and_then(|(at, rest)| {
        let attribute = match rest {
            "" => Some(Attribute::Whole),
            rest => rest.strip_prefix('/').and_then(Attribute::parse),
        };
        let is_value = |base: &&str| at == 0 || crate::bind::is_data_value(base);
        front(at).filter(is_value).zip(attribute)
    });
    split.unwrap_or((path, Attribute::Whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_predicates_are_split() {
        assert_eq!(
            split_path("/data[at1]/items[at2]/value/magnitude"),
            ("/data[at1]/items[at2]", Attribute::Magnitude)
        );
        assert_eq!(
            split_path("/data[at1]/items[at2]/value"),
            ("/data[at1]/items[at2]", Attribute::Whole)
        );
        assert_eq!(
            split_path("/symbol/value.value"),
            ("/symbol/value", Attribute::Value)
        );
        assert_eq!(
            split_path("/data/events/time"),
            ("/data/events/time", Attribute::Whole)
        );
        assert_eq!(
            split_path("/data/events/time/value"),
            ("/data/events/time", Attribute::Whole)
        );
        assert_eq!(
            split_path("/data/events/time/value/year"),
            ("/data/events/time", Attribute::Year)
        );
        assert_eq!(
            split_path("/data[at1]/events[at2]/width/value/string"),
            ("/data[at1]/events[at2]/width", Attribute::String)
        );
        assert_eq!(
            split_path("/ism_transition/current_state/value/code"),
            ("/ism_transition/current_state", Attribute::Code)
        );
        assert_eq!(
            split_path("/feeder_audit/value/code"),
            ("/feeder_audit/value/code", Attribute::Whole)
        );
    }
}
