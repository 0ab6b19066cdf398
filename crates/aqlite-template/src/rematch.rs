//! Assignment of members with the same id to constraints that no name distinguishes.
//!
//! Such a member may be checked against any of the constraints. So if the first choice has errors,
//! an assignment without errors is searched: a maximum matching of members and occurrences, of which
//! a constraint has as many as it permits.

use super::fit;
use super::tree::{Attribute, Multiplicity};
use super::validate::{Check, Step};
use aqlite_rm::order;
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
        self.exchange_with_slots(values, attribute, choices);
    }

    fn rematch_rivals(
        &mut self,
        values: &[NodeRef<'a>],
        attribute: &'a Attribute,
        rivals: &[usize],
        choices: &mut [Option<usize>],
    ) {
        let chosen = choices.iter().enumerate();
        let is_rival = |choice: &Option<usize>| choice.is_some_and(|c| rivals.contains(&c));
        let members = chosen.filter(|(_, choice)| is_rival(choice));
        let occurrences = rivals.iter().filter_map(|rival| {
            let node = attribute.children.get(*rival)?;
            Some((*rival, self.occurrences_of(node.occurrences)))
        });
        let contest = Contest {
            members: members.map(|(member, _)| member).collect(),
            occurrences: occurrences.collect(),
        };
        self.settle(values, attribute, &contest, choices);
    }

    /// Exchanges members between the roots of an archetype and the slots that permit it.
    ///
    /// The number of members of each constraint remains, so that no slot hides the errors of a
    /// member for which a root has room.
    fn exchange_with_slots(
        &mut self,
        values: &[NodeRef<'a>],
        attribute: &'a Attribute,
        choices: &mut [Option<usize>],
    ) {
        let siblings = self.siblings(attribute);
        let chosen = values.iter().zip(choices.iter());
        let in_slots = chosen.filter(|(_, choice)| choice.is_some_and(|c| siblings.is_slot(c)));
        let ids = order::distinct(in_slots.map(|(value, _)| fit::node_id(*value)));
        for id in ids.into_iter().filter(|id| siblings.has_root(id)) {
            if !self.spend(values.len()) {
                return;
            }
            let contest = Contest::as_chosen(values, choices, id);
            self.settle(values, attribute, &contest, choices);
        }
    }

    /// Replaces the choices for the members of a contest if other choices have no errors.
    fn settle(
        &mut self,
        values: &[NodeRef<'a>],
        attribute: &'a Attribute,
        contest: &Contest,
        choices: &mut [Option<usize>],
    ) {
        let members = &contest.members;
        let is_small = contest.occurrences.len() <= MAX_COMPARED && members.len() <= MAX_COMPARED;
        if members.is_empty() || !is_small || self.is_met(values, attribute, contest, choices) {
            return;
        }
        let rivals: Vec<usize> = contest
            .occurrences
            .iter()
            .map(|(rival, _)| *rival)
            .collect();
        let fits: Vec<Vec<usize>> = members
            .iter()
            .map(|member| {
                let mut fits = self.rivals_of(values, *member, attribute, &rivals);
                fits.retain(|rival| self.try_out(values, *member, attribute, *rival));
                fits
            })
            .collect();
        let Some(matched) = Matching::of(&fits, &contest.occurrences) else {
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
        contest: &Contest,
        choices: &[Option<usize>],
    ) -> bool {
        let chosen = contest.members.iter();
        let chosen = chosen.filter_map(|member| Some((*member, (*choices.get(*member)?)?)));
        let chosen: Vec<(usize, usize)> = chosen.collect();
        let are_counts_met = contest.occurrences.iter().all(|(rival, occurrences)| {
            let count = chosen.iter().filter(|(_, choice)| choice == rival);
            occurrences.contains(count.count())
        });
        are_counts_met
            && chosen
                .into_iter()
                .all(|(member, choice)| self.try_out(values, member, attribute, choice))
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

/// Members of a list, and the constraints that they may be assigned to.
struct Contest {
    members: Vec<usize>,
    /// Each constraint, and the number of the members that it must and may have.
    occurrences: Vec<(usize, Multiplicity)>,
}

impl Contest {
    /// Returns the contest of the members with an archetype id for the constraints chosen for them.
    fn as_chosen(values: &[NodeRef<'_>], choices: &[Option<usize>], id: &str) -> Contest {
        let exactly = |count| Multiplicity {
            lower: count,
            upper: Some(count),
        };
        let mut members = Vec::new();
        let mut occurrences: Vec<(usize, Multiplicity)> = Vec::new();
        for (member, (value, choice)) in values.iter().zip(choices).enumerate() {
            let Some(choice) = choice.filter(|_| fit::node_id(*value) == id) else {
                continue;
            };
            members.push(member);
            // `settle` ignores a contest with more members, so the others are not counted.
            if members.len() > MAX_COMPARED {
                break;
            }
            match occurrences.iter_mut().find(|(known, _)| *known == choice) {
                Some((_, count)) => *count = exactly(count.lower + 1),
                None => occurrences.push((choice, exactly(1))),
            }
        }
        Contest {
            members,
            occurrences,
        }
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
    fn of(fits: &[Vec<usize>], constraints: &[(usize, Multiplicity)]) -> Option<Vec<usize>> {
        let count = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        let mut matching = Matching {
            fits,
            occurrences: Vec::new(),
        };
        // The required occurrences come first. An occurrence that is matched remains matched.
        for (constraint, occurrences) in constraints {
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
        for (constraint, occurrences) in constraints {
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
