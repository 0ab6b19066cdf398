//! The classes that the values at a step of a path can have, by the class table of the Reference
//! Model.

use aqlite_rm::class::{Attr, Cls};

/// The declared classes of the values at a step; a value may be of any descendant of one of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Classes(Vec<Cls>);

impl Classes {
    /// Creates the set of one class.
    pub fn single(class: Cls) -> Classes {
        Classes(vec![class])
    }

    /// Returns the declared classes.
    pub fn declared(&self) -> &[Cls] {
        &self.0
    }

    /// Returns the classes behind an attribute; `None` if no possible class has it.
    pub fn step(&self, attr: Attr) -> Option<Classes> {
        let mut out: Vec<Cls> = Vec::new();
        for ty in self.possible().filter_map(|c| target(c, attr)) {
            if !out.contains(&ty) {
                out.push(ty);
            }
        }
        (!out.is_empty()).then_some(Classes(out))
    }

    /// Returns the classes of objects that are instances of an archetype on this class.
    pub fn narrowed(&self, class: Cls) -> Classes {
        if self.0.iter().any(|c| class.is_a(*c)) {
            Classes::single(class)
        } else {
            self.clone()
        }
    }

    /// Returns whether a value may be a node with a code or an archetype.
    pub fn have_node_id(&self) -> bool {
        self.step(Attr::ARCHETYPE_NODE_ID).is_some()
    }

    /// Iterates over every class that a value can have. A class may occur twice.
    pub fn possible(&self) -> impl Iterator<Item = Cls> + '_ {
        self.0.iter().flat_map(|declared| {
            // The class table numbers the descendants of a class directly behind it.

            (declared.number()..=u8::MAX)
                .map_while(|n| Cls::from_number(n).filter(|c| c.is_a(*declared)))
        })
    }

    /// Returns every attribute that some possible class has, once: first those of the declared
    /// classes.
    pub fn attributes(&self) -> Vec<Attr> {
        let mut out: Vec<Attr> = Vec::new();
        for class in self.0.iter().copied().chain(self.possible()) {
            for def in class.attrs() {
                if !out.contains(&def.attr) {
                    out.push(def.attr);
                }
            }
        }
        out
    }

    /// Returns a text for messages: `OBSERVATION`, or `ITEM_STRUCTURE or a descendant`.
    pub fn describe(&self) -> String {
        let names: Vec<&str> = self.0.iter().take(3).map(|c| c.name()).collect();
        let more = if self.0.len() > 3 { " …" } else { "" };
        let below = if self.0.iter().any(|c| c.is_abstract()) {
            " or a descendant"
        } else {
            ""
        };
        format!("{}{more}{below}", names.join(", "))
    }
}

/// Returns the class behind an attribute. The EHR refers to its EHR_STATUS, and a path continues
/// through that reference.
fn target(class: Cls, attr: Attr) -> Option<Cls> {
    let def = class.attr(attr)?;
    // The class table has an OBJECT_REF here.
    Some(if class == Cls::EHR && attr == Attr::EHR_STATUS {
        Cls::EHR_STATUS
    } else {
        def.ty
    })
}

/// Returns the class that an archetype id names: `OBSERVATION` of
/// `openEHR-EHR-OBSERVATION.blood_pressure.v2`.
pub(crate) fn archetype_class(id: &str) -> Option<Cls> {
    let id = id.rsplit_once("::").map_or(id, |(_, id)| id);
    let qualified = id.split_once('.').map_or(id, |(qualified, _)| qualified);
    qualified
        .rsplit_once('-')
        .and_then(|(_, class)| Cls::parse_any_case(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(class: Cls, path: &str) -> Option<Classes> {
        path.split('/')
            .try_fold(Classes::single(class), |classes, step| {
                classes.step(Attr::parse(step)?)
            })
    }

    #[test]
    fn any_possible_class_may_have_the_attribute() {
        assert!(walk(Cls::OBSERVATION, "data/events/data/items/value/magnitude").is_some());
        assert!(walk(Cls::COMPOSITION, "content/data/events/width/value").is_some());
        assert!(walk(Cls::OBSERVATION, "activities").is_none());
        assert!(walk(Cls::EHR, "ehr_status/subject/external_ref/id/value").is_some());
        assert!(walk(Cls::VERSION, "data/context/start_time/value").is_some());
    }

    #[test]
    fn an_archetype_id_names_a_class() {
        assert_eq!(
            archetype_class("org.a::openEHR-EHR-EVALUATION.problem-diagnosis.v1"),
            Some(Cls::EVALUATION)
        );
    }
}
