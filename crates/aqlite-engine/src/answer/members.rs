//! The list behind MATCHES, found in by hash: a list of many values costs as much for each row as
//! one of a few.
//!
//! Membership is AQL equality, so a list has a set for each type that its values may meet: numbers
//! by value, texts as they are, and for each kind of temporal value the intervals that its texts
//! name. Version uids are found by the short forms that name them, too.

use super::query::Literal;
use aqlite_rm::exact::Exact;
use aqlite_rm::id::is_uuid;
use aqlite_rm::time::{Axis, Temporal, TemporalKind};
use hashbrown::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The members behind one MATCHES: the values of one or more lists.
///
/// Lists are shared: those of a parameter or a value set are indexed once, however many conditions
/// name them.
#[derive(Clone, Default)]
pub struct Members {
    lists: Vec<Arc<List>>,
    /// Whether uids of objects, and of versions without the system, name versions.
    by_short_uid: bool,
}

/// Values, and the indexes that find them, each made when it is first needed.
#[derive(Default)]
pub struct List {
    literals: Vec<Literal>,
    sets: OnceLock<Sets>,
    /// For DATE, TIME, DATE_TIME and DURATION.
    moments: [OnceLock<Moments>; 4],
    short_uids: OnceLock<HashSet<ShortUid>>,
}

/// A version uid without its system: `object`, or `object::::number`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShortUid {
    /// The uid of the object.
    pub object: String,
    /// The number of the version; absent: any.
    pub number: Option<String>,
}

/// Bytes of the longest short form: a UUID, four colons and a number.
const LONGEST_SHORT_UID: usize = 36 + 4 + 20;

impl ShortUid {
    /// The short form that a literal is, if it is one.
    pub fn of(literal: &Literal) -> Option<ShortUid> {
        let (Literal::Text(text) | Literal::Untyped(text)) = literal else {
            return None;
        };
        if text.len() > LONGEST_SHORT_UID {
            return None;
        }
        let (object, number) = match text.split_once("::::") {
            Some((object, number)) => (object, Some(number)),
            None => (&**text, None),
        };
        if number.is_some_and(|n| n.is_empty() || !n.bytes().all(|b| b.is_ascii_digit())) {
            return None;
        }
        is_uuid(object).then(|| ShortUid {
            object: object.to_owned(),
            number: number.map(str::to_owned),
        })
    }
}

/// The values of a list, by type.
#[derive(Clone, Default)]
struct Sets {
    /// Numbers, by their bits; zero has no sign.
    numbers: HashSet<(u64, u64)>,
    /// Numbers that were given as texts of a URL.
    untyped_numbers: HashSet<(u64, u64)>,
    texts: HashSet<Arc<str>>,
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
    others: HashSet<Arc<str>>,
    axes: Vec<Axis>,
}

type Key = (i64, i64, i64);

fn key(temporal: Temporal) -> Key {
    (temporal.earliest, temporal.latest, temporal.finer)
}

impl Members {
    /// The values of some lists.
    pub fn new(lists: Vec<Arc<List>>) -> Members {
        Members {
            lists,
            by_short_uid: false,
        }
    }

    /// Lets short forms of version uids match the versions that they name.
    #[must_use]
    pub fn by_short_uid(self) -> Members {
        Members {
            by_short_uid: true,
            ..self
        }
    }

    /// Returns whether short forms of version uids match the versions that they name.
    pub fn is_by_short_uid(&self) -> bool {
        self.by_short_uid
    }

    /// The values.
    pub fn literals(&self) -> impl Iterator<Item = &Literal> {
        self.lists.iter().flat_map(|list| &list.literals)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.lists.iter().map(|list| list.literals.len()).sum()
    }

    /// True without values.
    pub fn is_empty(&self) -> bool {
        self.lists.iter().all(|list| list.literals.is_empty())
    }

    /// The number of lists, each of which is looked into for a value that no other has.
    pub(super) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Whether a number is a member; `None` is unknown.
    pub(super) fn has_number(&self, number: Exact) -> Option<bool> {
        self.any(|list| list.has_number(number))
    }

    /// Whether a boolean is a member.
    pub(super) fn has_boolean(&self, flag: bool) -> Option<bool> {
        self.any(|list| list.has_boolean(flag))
    }

    /// Whether a text is a member.
    pub(super) fn has_text(&self, text: &str) -> Option<bool> {
        self.any(|list| match list.has_text(text) {
            Some(true) => Some(true),
            _ if self.by_short_uid && list.names(text) => Some(true),
            other => other,
        })
    }

    /// Whether the text of a stored temporal value is a member.
    pub(super) fn has_temporal(&self, kind: TemporalKind, text: &str) -> Option<bool> {
        self.any(|list| list.has_temporal(kind, text))
    }

    /// Whether a whole temporal object is a member.
    pub(super) fn has_temporal_object(&self, kind: TemporalKind, text: &str) -> Option<bool> {
        self.any(|list| list.has_temporal_object(kind, text))
    }

    /// The OR of the answers of the lists.
    fn any(&self, test: impl Fn(&List) -> Option<bool>) -> Option<bool> {
        let mut found = Some(false);
        for list in &self.lists {
            match test(list) {
                Some(true) => return Some(true),
                Some(false) => {}
                // Unknown, unless another list has the value.
                None => found = None,
            }
        }
        found
    }
}

impl List {
    /// A list of these values.
    pub fn new(literals: Vec<Literal>) -> Arc<List> {
        Arc::new(List {
            literals,
            ..List::default()
        })
    }

    /// The values.
    pub fn literals(&self) -> &[Literal] {
        &self.literals
    }

    /// Whether a number is a member; `None` is unknown.
    fn has_number(&self, number: Exact) -> Option<bool> {
        let sets = self.sets();
        let (is_nan, bits) = (number.double().is_nan(), number.bits());
        let found =
            !is_nan && (sets.numbers.contains(&bits) || sets.untyped_numbers.contains(&bits));
        // The comparison of NaN with a number is unknown, as in `compare`.
        let comparable = !is_nan || !(sets.has_number || sets.has_untyped());
        truth(
            found,
            comparable && !(sets.has_null || sets.has_boolean || sets.has_text || sets.not_number),
        )
    }

    /// Whether a boolean is a member.
    fn has_boolean(&self, flag: bool) -> Option<bool> {
        let sets = self.sets();
        let is_set = |[no, yes]: [bool; 2]| if flag { yes } else { no };
        truth(
            is_set(sets.booleans) || is_set(sets.untyped_booleans),
            !(sets.has_null || sets.has_number || sets.has_text || sets.not_boolean),
        )
    }

    /// Whether a text is a member.
    fn has_text(&self, text: &str) -> Option<bool> {
        let sets = self.sets();
        truth(
            sets.texts.contains(text),
            !(sets.has_null || sets.has_number || sets.has_boolean),
        )
    }

    /// Whether the text of a stored temporal value is a member.
    fn has_temporal(&self, kind: TemporalKind, text: &str) -> Option<bool> {
        let sets = self.sets();
        let comparable = !(sets.has_null || sets.has_number || sets.has_boolean);
        let Some(value) = Temporal::parse(kind, text) else {
            return truth(sets.texts.contains(text), comparable);
        };
        let moments = self.moments(kind);
        let found = (moments.axes.contains(&value.axis()) && moments.keys.contains(&key(value)))
            || moments.others.contains(text);
        truth(
            found,
            comparable && moments.axes.iter().all(|axis| *axis == value.axis()),
        )
    }

    /// Whether a whole temporal object is a member.
    fn has_temporal_object(&self, kind: TemporalKind, text: &str) -> Option<bool> {
        let sets = self.sets();
        let comparable = !(sets.has_null || sets.has_boolean || sets.has_number);
        let Some(value) = Temporal::parse(kind, text) else {
            return truth(false, self.literals.is_empty());
        };
        let moments = self.moments(kind);
        let found = moments.axes.contains(&value.axis()) && moments.keys.contains(&key(value));
        let same_axis =
            moments.others.is_empty() && moments.axes.iter().all(|axis| *axis == value.axis());
        truth(found, comparable && same_axis)
    }

    fn sets(&self) -> &Sets {
        self.sets.get_or_init(|| {
            let mut sets = Sets::default();
            // A text of megabytes that a query names a thousand times is hashed once.
            let mut seen = HashSet::new();
            for literal in &self.literals {
                let is_new = match literal {
                    Literal::Text(text) => seen.insert((false, text.as_ptr(), text.len())),
                    Literal::Untyped(text) => seen.insert((true, text.as_ptr(), text.len())),
                    _ => true,
                };
                if is_new {
                    sets.add(literal);
                }
            }
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
        let [date, time, date_time, duration] = &self.moments;
        let cell = [date, time, date_time, duration]
            .into_iter()
            .nth(place)
            .unwrap_or(duration);
        cell.get_or_init(|| {
            let mut moments = Moments::default();
            for text in &self.sets().texts {
                match Temporal::parse_literal(kind, text).or_else(|| Temporal::classify(text)) {
                    Some(value) if value.axis() == kind.axis() => {
                        moments.keys.insert(key(value));
                        moments.note(value.axis());
                    }
                    Some(value) => moments.note(value.axis()),
                    None => drop(moments.others.insert(Arc::clone(text))),
                }
            }
            moments
        })
    }

    /// True when a short form among the values names the version with this uid.
    fn names(&self, uid: &str) -> bool {
        let short_uids = self
            .short_uids
            .get_or_init(|| self.literals.iter().filter_map(ShortUid::of).collect());
        let Some((object, rest)) = uid.split_once("::").filter(|_| !short_uids.is_empty()) else {
            return false;
        };
        let short = |number: Option<&str>| ShortUid {
            object: object.to_owned(),
            number: number.map(str::to_owned),
        };
        short_uids.contains(&short(None))
            || rest
                .rsplit_once("::")
                .is_some_and(|(_, number)| short_uids.contains(&short(Some(number))))
    }
}

impl Moments {
    fn note(&mut self, axis: Axis) {
        if !self.axes.contains(&axis) {
            self.axes.push(axis);
        }
    }
}

/// Records that a set of booleans has this one.
fn mark(booleans: &mut [bool; 2], flag: bool) {
    let [no, yes] = booleans;
    *(if flag { yes } else { no }) = true;
}

impl Sets {
    fn add(&mut self, literal: &Literal) {
        match literal {
            Literal::Null => self.has_null = true,
            Literal::Boolean(flag) => {
                self.has_boolean = true;
                mark(&mut self.booleans, *flag);
            }
            Literal::Number(text) => match Exact::parse(text) {
                Some(number) => {
                    self.has_number = true;
                    self.numbers.insert(number.bits());
                }
                None => self.has_null = true,
            },
            Literal::Text(text) => {
                self.has_text = true;
                self.texts.insert(Arc::clone(text));
            }
            Literal::Untyped(text) => self.add_untyped(text),
        }
    }

    /// Adds a literal whose type is unknown: as a text, and as a number and a boolean if it can be
    /// read as one.
    fn add_untyped(&mut self, text: &Arc<str>) {
        self.texts.insert(Arc::clone(text));
        match Exact::parse(text.trim()) {
            Some(number) => drop(self.untyped_numbers.insert(number.bits())),
            None => self.not_number = true,
        }
        match text.trim().parse() {
            Ok(flag) => mark(&mut self.untyped_booleans, flag),
            Err(_) => self.not_boolean = true,
        }
    }

    fn has_untyped(&self) -> bool {
        !self.untyped_numbers.is_empty() || self.not_number
    }
}

/// Returns whether a member was found; else false, or unknown where not all could be compared.
fn truth(found: bool, comparable: bool) -> Option<bool> {
    match (found, comparable) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Members) -> bool {
        self.by_short_uid == other.by_short_uid && self.literals().eq(other.literals())
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let literals: Vec<&Literal> = self.literals().collect();
        f.debug_tuple("Members")
            .field(&literals)
            .field(&self.by_short_uid)
            .finish()
    }
}
