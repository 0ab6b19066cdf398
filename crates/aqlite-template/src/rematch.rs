//! Assignment of members with the same id to constraints that no name distinguishes.
//!
//! Such a member may be checked against any of the constraints. So if the first choice has errors,
//! an assignment without errors is searched: a maximum matching of members and occurrences, of which
//! a constraint has as many as it permits.

use super::tree::{Attribute, Multiplicity};
use super::validate::{Check, Step};
use aqlite_rm::tree::NodeRef;

/// The maximum number of members, and of constraints, that are compared each with each.
const MAX_COMPARED: usize = 32;

impl<'a> Check<'a> {
    /// Replaces the choices for members among rivals if other choices have no errors.
    pub(super) fn rematch(
        &mut self,
        values: &[NodeRef<'a>],
        attribute: &'a Attribute,
        choices: &mut [Option<usize>],
    ) {
        if attribute.children.len() < 2 {
            return;
        }
        let siblings = self.siblings(attribute);
        for rivals in siblings.rivals() {
            self.rematch_rivals(values, attribute, rivals, choices);
        }
    }

    fn rematch_rivals(
        &mut self,
        values: &[NodeRef<'a>],
        attribute: &'a Attribute,
        rivals: &[usize],
        choices: &mut [Option<usize>],
    ) {
        let members: Vec<usize> = (0..values.len())
            .filter(|member| {
                let choice = choices.get(*member).copied().flatten();
                choice.is_some_and(|choice| rivals.contains(&choice))
            })
            .collect();
        let is_small = rivals.len() <= MAX_COMPARED && members.len() <= MAX_COMPARED;
        if members.is_empty() || !is_small || self.is_met(values, attribute, rivals, choices) {
            return;
        }
        let fits: Vec<Vec<usize>> = members
            .iter()
            .map(|member| {
                let mut fits = self.rivals_of(values, *member, attribute, rivals);
                fits.retain(|rival| self.try_out(values, *member, attribute, *rival));
                fits
            })
            .collect();
        let occurrences = rivals.iter().filter_map(|rival| {
            let node = attribute.children.get(*rival)?;
            Some((*rival, self.occurrences_of(node.occurrences)))
        });
        let Some(matched) = Matching::of(&fits, occurrences.collect()) else {
            return;
        };
        for (member, rival) in members.iter().zip(matched) {
            if let Some(choice) = choices.get_mut(*member) {
                *choice = Some(rival);
            }
        }
    }

    /// Returns the rivals that a member may be assigned to, if the work for their names is left.
    fn rivals_of(
        &mut self,
        values: &[NodeRef<'a>],
        member: usize,
        attribute: &'a Attribute,
        rivals: &[usize],
    ) -> Vec<usize> {
        let Some(value) = values.get(member) else {
            return Vec::new();
        };
        let siblings = self.siblings(attribute);
        match self.spend(siblings.cost(*value, rivals)) {
            true => siblings.rivals_of(*value, rivals),
            false => Vec::new(),
        }
    }

    /// Returns the occurrences to be met. A draft may have any number of objects.
    fn occurrences_of(&self, occurrences: Multiplicity) -> Multiplicity {
        match self.is_draft {
            true => Multiplicity::ANY,
            false => occurrences,
        }
    }

    /// Returns whether the present choices for the members of a contest have no errors.
    fn is_met(
        &mut self,
        values: &[NodeRef<'a>],
        attribute: &'a Attribute,
        rivals: &[usize],
        choices: &[Option<usize>],
    ) -> bool {
        let are_counts_met = rivals.iter().all(|rival| {
            let count = choices.iter().filter(|choice| **choice == Some(*rival));
            let node = attribute.children.get(*rival);
            node.is_some_and(|n| self.occurrences_of(n.occurrences).contains(count.count()))
        });
        let chosen = choices.iter().enumerate();
        let mut chosen = chosen.filter_map(|(member, choice)| Some((member, (*choice)?)));
        are_counts_met
            && chosen.all(|(member, choice)| {
                !rivals.contains(&choice) || self.try_out(values, member, attribute, choice)
            })
    }

    /// Returns whether a member meets a constraint without errors. Nothing is reported.
    ///
    /// A trial has trials inside, where the members of a member have rivals too. Each object is tried
    /// once with each constraint, so their number does not multiply at each level.
    fn try_out(
        &mut self,
        values: &[NodeRef<'a>],
        member: usize,
        attribute: &'a Attribute,
        choice: usize,
    ) -> bool {
        let Some((value, node)) = values.get(member).zip(attribute.children.get(choice)) else {
            return false;
        };
        let trial = (value.id(), std::ptr::from_ref(node));
        if let Some(is_met) = self.trials.get(&trial) {
            return *is_met;
        }
        let is_met = self.without_report(|check| {
            check.at(Step::Index(member), |check| {
                check.check_chosen(*value, Some(node))
            });
        });
        self.trials.insert(trial, is_met);
        is_met
    }
}

/// A matching of members and the occurrences of constraints.
struct Matching<'m> {
    /// The constraints that each member meets.
    fits: &'m [Vec<usize>],
    occurrences: Vec<Occurrence>,
}

/// One of the occurrences that a constraint permits, and its member if it has one.
struct Occurrence {
    constraint: usize,
    member: Option<usize>,
}

impl Matching<'_> {
    /// Returns the constraint of each member, or `None` if some member or some required occurrence
    /// remains alone.
    fn of(fits: &[Vec<usize>], constraints: Vec<(usize, Multiplicity)>) -> Option<Vec<usize>> {
        let count = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        let mut matching = Matching {
            fits,
            occurrences: Vec::new(),
        };
        // The required occurrences come first. An occurrence that is matched remains matched.
        for (constraint, occurrences) in &constraints {
            let lower = count(occurrences.lower);
            if lower > fits.len() {
                return None;
            }
            matching.add_occurrences(*constraint, lower);
        }
        matching.match_members();
        if matching
            .occurrences
            .iter()
            .any(|occurrence| occurrence.member.is_none())
        {
            return None;
        }
        for (constraint, occurrences) in &constraints {
            let upper = occurrences.upper.map_or(fits.len(), count).min(fits.len());
            matching.add_occurrences(*constraint, upper.saturating_sub(count(occurrences.lower)));
        }
        matching.match_members();
        let constraint_of = |member: usize| {
            let mut occurrences = matching.occurrences.iter();
            Some(
                occurrences
                    .find(|occurrence| occurrence.member == Some(member))?
                    .constraint,
            )
        };
        (0..fits.len()).map(constraint_of).collect()
    }

    fn add_occurrences(&mut self, constraint: usize, count: usize) {
        let occurrence = |_| Occurrence {
            constraint,
            member: None,
        };
        self.occurrences.extend((0..count).map(occurrence));
    }

    fn match_members(&mut self) {
        for member in 0..self.fits.len() {
            let is_matched = |occurrence: &Occurrence| occurrence.member == Some(member);
            if !self.occurrences.iter().any(is_matched) {
                let mut seen = vec![false; self.occurrences.len()];
                self.assign(member, &mut seen);
            }
        }
    }

    /// Finds an occurrence for a member. Members that have one already may move to another: this is
    /// an augmenting path of a bipartite matching.
    fn assign(&mut self, member: usize, seen: &mut [bool]) -> bool {
        for index in 0..self.occurrences.len() {
            let occurrence = self.occurrences.get(index).zip(seen.get_mut(index));
            let Some((occurrence, is_seen)) = occurrence else {
                return false;
            };
            let fits = self.fits.get(member);
            if *is_seen || !fits.is_some_and(|fits| fits.contains(&occurrence.constraint)) {
                continue;
            }
            *is_seen = true;
            let holder = occurrence.member;
            let is_free = holder.is_none_or(|other| self.assign(other, seen));
            if let Some(occurrence) = self.occurrences.get_mut(index).filter(|_| is_free) {
                occurrence.member = Some(member);
                return true;
            }
        }
        false
    }
}
