//! The list behind MATCHES, found in by hash: a list of many values costs as much for each row as one of a few.
//!
//! Membership is AQL equality, so a list has a set for each type that its values may meet: numbers by value, texts as they are, and for
//! each kind of temporal value the intervals that its texts name. Version uids are found by the short forms that name them, too.

use super::query::Literal;
use crate::rm::number;
use crate::rm::time::{Axis, Temporal, TemporalKind};
use hashbrown::HashSet;
use std::cell::OnceCell;
use std::fmt;

/// The values of a list, and what finds them.
#[derive(Clone, Default)]
pub struct Members {
    literals: Vec<Literal>,
    /// Uids of objects, or of their versions without the system.
    short_uids: Vec<ShortUid>,
    /// What finds them, made when it is first needed.
    found_by: Box<Index>,
}

/// What finds values.
#[derive(Clone, Default)]
struct Index {
    sets: OnceCell<Sets>,
    /// For DATE, TIME, DATE_TIME and DURATION.
    moments: [OnceCell<Moments>; 4],
}

/// A version uid without its system: `object`, or `object::::number`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShortUid {
    /// The uid of the object.
    pub object: String,
    /// The number of the version; absent: any.
    pub number: Option<String>,
}

/// What the values of a list are, by type.
#[derive(Clone, Default)]
struct Sets {
    /// Numbers, by their bits; zero has no sign.
    numbers: HashSet<u64>,
    /// Numbers that texts of a URL stand for.
    untyped_numbers: HashSet<u64>,
    texts: HashSet<String>,
    short_uids: HashSet<ShortUid>,
    /// Whether there is `false`, `true`, as such and as the text of a URL.
    booleans: [bool; 2],
    untyped_booleans: [bool; 2],
    /// Whether there is a value that equals nothing: NULL.
    has_null: bool,
    has_number: bool,
    has_boolean: bool,
    has_text: bool,
    /// Whether there is a text of a URL that is no number, or no boolean.
    not_number: bool,
    not_boolean: bool,
}

/// The texts of a list as temporal values, where they meet one of some kind.
#[derive(Clone, Default)]
struct Moments {
    keys: HashSet<Key>,
    /// Texts that are no temporal value.
    others: HashSet<String>,
    axes: Vec<Axis>,
}

type Key = (i64, i64, i64);

fn key(temporal: Temporal) -> Key {
    (temporal.earliest, temporal.latest, temporal.finer)
}

fn bits(number: f64) -> u64 {
    (number + 0.0).to_bits()
}

impl Members {
    /// A list of values.
    pub fn new(literals: Vec<Literal>) -> Members {
        Members { literals, ..Members::default() }
    }

    /// The same, with short forms of version uids that name what they stand for.
    #[must_use]
    pub fn with_short_uids(self, short_uids: Vec<ShortUid>) -> Members {
        Members { short_uids, ..self }
    }

    /// The values.
    pub fn literals(&self) -> &[Literal] {
        &self.literals
    }

    /// The short forms of version uids.
    pub fn short_uids(&self) -> &[ShortUid] {
        &self.short_uids
    }

    /// Whether a number is a member; `None` is unknown.
    pub(super) fn has_number(&self, number: f64) -> Option<bool> {
        let sets = self.sets();
        let found = !number.is_nan() && (sets.numbers.contains(&bits(number)) || sets.untyped_numbers.contains(&bits(number)));
        let comparable = !number.is_nan() || !(sets.has_number || sets.has_untyped());
        truth(found, comparable && !(sets.has_null || sets.has_boolean || sets.has_text || sets.not_number))
    }

    /// Whether a boolean is a member.
    pub(super) fn has_boolean(&self, flag: bool) -> Option<bool> {
        let sets = self.sets();
        let is_set = |[no, yes]: [bool; 2]| if flag { yes } else { no };
        truth(is_set(sets.booleans) || is_set(sets.untyped_booleans), !(sets.has_null || sets.has_number || sets.has_text || sets.not_boolean))
    }

    /// Whether a text is a member.
    pub(super) fn has_text(&self, text: &str) -> Option<bool> {
        let sets = self.sets();
        truth(sets.texts.contains(text) || sets.names(text), !(sets.has_null || sets.has_number || sets.has_boolean))
    }

    /// Whether the text of a stored temporal value is a member.
    pub(super) fn has_temporal(&self, kind: TemporalKind, text: &str) -> Option<bool> {
        let sets = self.sets();
        let comparable = !(sets.has_null || sets.has_number || sets.has_boolean);
        let Some(value) = Temporal::parse(kind, text) else { return truth(sets.texts.contains(text), comparable) };
        let moments = self.moments(kind);
        let found = (moments.axes.contains(&value.axis()) && moments.keys.contains(&key(value))) || moments.others.contains(text);
        truth(found, comparable && moments.axes.iter().all(|axis| *axis == value.axis()))
    }

    /// Whether a whole temporal object is a member.
    pub(super) fn has_temporal_object(&self, kind: TemporalKind, text: &str) -> Option<bool> {
        let sets = self.sets();
        let comparable = !(sets.has_null || sets.has_boolean || sets.has_number);
        let Some(value) = Temporal::parse(kind, text) else { return truth(false, self.literals.is_empty()) };
        let moments = self.moments(kind);
        let found = moments.axes.contains(&value.axis()) && moments.keys.contains(&key(value));
        let same_axis = moments.others.is_empty() && moments.axes.iter().all(|axis| *axis == value.axis());
        truth(found, comparable && same_axis)
    }

    fn sets(&self) -> &Sets {
        self.found_by.sets.get_or_init(|| {
            let mut sets = Sets { short_uids: self.short_uids.iter().cloned().collect(), ..Sets::default() };
            self.literals.iter().for_each(|literal| sets.add(literal));
            sets
        })
    }

    /// The texts as values that meet one of a kind.
    fn moments(&self, kind: TemporalKind) -> &Moments {
        let place = match kind {
            TemporalKind::Date => 0,
            TemporalKind::Time => 1,
            TemporalKind::DateTime => 2,
            TemporalKind::Duration => 3,
        };
        let [date, time, date_time, duration] = &self.found_by.moments;
        let cell = [date, time, date_time, duration].into_iter().nth(place).unwrap_or(duration);
        cell.get_or_init(|| {
            let mut moments = Moments::default();
            for text in &self.sets().texts {
                match Temporal::of_literal(kind, text).or_else(|| Temporal::classify(text)) {
                    Some(value) if value.axis() == kind.axis() => {
                        moments.keys.insert(key(value));
                        moments.note(value.axis());
                    }
                    Some(value) => moments.note(value.axis()),
                    None => drop(moments.others.insert(text.clone())),
                }
            }
            moments
        })
    }
}

impl Moments {
    fn note(&mut self, axis: Axis) {
        if !self.axes.contains(&axis) {
            self.axes.push(axis);
        }
    }
}

impl Sets {
    fn add(&mut self, literal: &Literal) {
        let mark = |booleans: &mut [bool; 2], flag: bool| {
            let [no, yes] = booleans;
            *(if flag { yes } else { no }) = true;
        };
        match literal {
            Literal::Null => self.has_null = true,
            Literal::Boolean(flag) => {
                self.has_boolean = true;
                mark(&mut self.booleans, *flag);
            }
            Literal::Number(text) => match number::parse(text) {
                Some(number) => {
                    self.has_number = true;
                    self.numbers.insert(bits(number));
                }
                None => self.has_null = true,
            },
            Literal::Text(text) => {
                self.has_text = true;
                self.texts.insert(text.clone());
            }
            Literal::Untyped(text) => {
                self.texts.insert(text.clone());
                match number::parse(text.trim()) {
                    Some(number) => drop(self.untyped_numbers.insert(bits(number))),
                    None => self.not_number = true,
                }
                match text.trim().parse() {
                    Ok(flag) => mark(&mut self.untyped_booleans, flag),
                    Err(_) => self.not_boolean = true,
                }
            }
        }
    }

    fn has_untyped(&self) -> bool {
        !self.untyped_numbers.is_empty() || self.not_number
    }

    /// True when a short form names the version with this uid.
    fn names(&self, uid: &str) -> bool {
        let Some((object, rest)) = uid.split_once("::").filter(|_| !self.short_uids.is_empty()) else { return false };
        let short = |number: Option<&str>| ShortUid { object: object.to_owned(), number: number.map(str::to_owned) };
        self.short_uids.contains(&short(None)) || rest.rsplit_once("::").is_some_and(|(_, number)| self.short_uids.contains(&short(Some(number))))
    }
}

/// True when a member was found; else false, or unknown where not all could be compared.
fn truth(found: bool, comparable: bool) -> Option<bool> {
    match (found, comparable) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Members) -> bool {
        self.literals == other.literals && self.short_uids == other.short_uids
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Members").field(&self.literals).field(&self.short_uids).finish()
    }
}
