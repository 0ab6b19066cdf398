//! The members of MATCHES, indexed by hash: the cost for each row does not depend on their number.
//!
//! Membership is the equality of AQL. A list has a set for each type that its values can equal:
//! numbers by value, texts as they are, and for each kind of temporal value the intervals that its
//! texts denote. Version uids are also found by their short forms.

use super::query::Literal;
use aqlite_rm::exact::Exact;
use aqlite_rm::id::is_uuid;
use aqlite_rm::time::{Axis, Temporal, TemporalKind};
use hashbrown::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The members of one MATCHES: the values of one or more lists.
///
/// Lists are shared. The values of a parameter or a value set are indexed once for all conditions.
#[derive(Clone, Default)]
pub struct Members {
    lists: Vec<Arc<List>>,
    /// Whether the uid of an object, and the uid of a version without its system, match versions.
    by_short_uid: bool,
}

/// Literals with the indexes that find them. Each index is built when it is first needed.
#[derive(Default)]
pub struct List {
    literals: Vec<Literal>,
    sets: OnceLock<Sets>,
    /// The indexes for DATE, TIME, DATE_TIME and DURATION.
    temporal_texts: [OnceLock<TemporalTexts>; 4],
    short_uids: OnceLock<HashSet<ShortUid>>,
}

/// A version uid without its system: `object`, or `object::::number`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShortUid {
    /// The uid of the object.
    pub object: String,
    /// The number of the version; `None` for any version.
    pub number: Option<String>,
}

/// The bytes of the longest short form: a UUID, four colons and a number.
const MAX_SHORT_UID_BYTES: usize = 36 + 4 + 20;

impl ShortUid {
    /// Parses a literal as a short form; `None` if it is none.
    pub fn of(literal: &Literal) -> Option<ShortUid> {
        let (Literal::Text(text) | Literal::Untyped(text)) = literal else {
            return None;
        };
        if text.len() > MAX_SHORT_UID_BYTES {
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
    /// Numbers by their bits; zero has no sign.
    numbers: HashSet<(u64, u64)>,
    /// Numbers that are texts of URL parameters.
    untyped_numbers: HashSet<(u64, u64)>,
    texts: HashSet<Arc<str>>,
    /// Whether `false` and `true` are members, as booleans or as texts of URL parameters.
    booleans: [bool; 2],
    untyped_booleans: [bool; 2],
    /// Whether NULL is a member, which equals nothing.
    has_null: bool,
    has_number: bool,
    has_boolean: bool,
    has_text: bool,
    /// Whether a text of a URL parameter is no number, and whether one is no boolean.
    has_untyped_non_number: bool,
    has_untyped_non_boolean: bool,
}

/// The texts of a list that are temporal values of some kind.
#[derive(Clone, Default)]
struct TemporalTexts {
    keys: HashSet<TemporalKey>,
    /// Texts that are no temporal values.
    others: HashSet<Arc<str>>,
    axes: Vec<Axis>,
}

/// The identity of a temporal value: equal values have equal keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct TemporalKey {
    earliest: i64,
    latest: i64,
    finer: i64,
}

fn key(temporal: Temporal) -> TemporalKey {
    TemporalKey {
        earliest: temporal.earliest,
        latest: temporal.latest,
        finer: temporal.finer,
    }
}

impl Members {
    /// Creates the members from lists.
    pub fn new(lists: Vec<Arc<List>>) -> Members {
        Members {
            lists,
            by_short_uid: false,
        }
    }

    /// Makes short forms of version uids match the versions that they denote.
    #[must_use]
    pub fn by_short_uid(self) -> Members {
        Members {
            by_short_uid: true,
            ..self
        }
    }

    /// Returns whether short forms of version uids match the versions that they denote.
    pub fn is_by_short_uid(&self) -> bool {
        self.by_short_uid
    }

    /// Returns the values of all lists.
    pub fn literals(&self) -> impl Iterator<Item = &Literal> {
        self.lists.iter().flat_map(|list| &list.literals)
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.lists.iter().map(|list| list.literals.len()).sum()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.lists.iter().all(|list| list.literals.is_empty())
    }

    /// Returns the number of lists. A lookup searches each of them until one has the value.
    pub(super) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Returns whether a number is a member; `None` is unknown.
    pub(super) fn has_number(&self, number: Exact) -> Option<bool> {
        self.any(|list| list.has_number(number))
    }

    /// Returns whether a boolean is a member; `None` is unknown.
    pub(super) fn has_boolean(&self, flag: bool) -> Option<bool> {
        self.any(|list| list.has_boolean(flag))
    }

    /// Returns whether a text is a member; `None` is unknown.
    pub(super) fn has_text(&self, text: &str) -> Option<bool> {
        self.any(|list| match list.has_text(text) {
            Some(true) => Some(true),
            _ if self.by_short_uid && list.names(text) => Some(true),
            other => other,
        })
    }

    /// Returns whether the text of a stored temporal value is a member; `None` is unknown.
    pub(super) fn has_temporal(&self, kind: TemporalKind, text: &str) -> Option<bool> {
        self.any(|list| list.has_temporal(kind, text))
    }

    /// Returns whether a whole temporal object is a member; `None` is unknown.
    pub(super) fn has_temporal_object(&self, kind: TemporalKind, text: &str) -> Option<bool> {
        self.any(|list| list.has_temporal_object(kind, text))
    }

    /// Returns the OR of the outcomes for all lists.
    fn any(&self, test: impl Fn(&List) -> Option<bool>) -> Option<bool> {
        let mut found = Some(false);
        for list in &self.lists {
            match test(list) {
                Some(true) => return Some(true),
                Some(false) => {}
                // The outcome is unknown unless a later list has the value.
                None => found = None,
            }
        }
        found
    }
}

impl List {
    /// Creates a list of literals.
    pub fn new(literals: Vec<Literal>) -> Arc<List> {
        Arc::new(List {
            literals,
            ..List::default()
        })
    }

    /// Returns the literals.
    pub fn literals(&self) -> &[Literal] {
        &self.literals
    }

    /// Returns whether a number is a member; `None` is unknown.
    fn has_number(&self, number: Exact) -> Option<bool> {
        let sets = self.sets();
        let (is_nan, bits) = (number.double().is_nan(), number.bits());
        let found =
            !is_nan && (sets.numbers.contains(&bits) || sets.untyped_numbers.contains(&bits));
        // Without a match, the result is false only if the number can be compared with all members.
        // It cannot with NULL, a boolean, a text, or a text of a URL parameter that is no number.
        // The comparison of NaN with a number is unknown, as in `compare`.
        let comparable = !is_nan || !(sets.has_number || sets.has_untyped());
        truth(
            found,
            comparable
                && !(sets.has_null
                    || sets.has_boolean
                    || sets.has_text
                    || sets.has_untyped_non_number),
        )
    }

    /// Returns whether a boolean is a member; `None` is unknown.
    fn has_boolean(&self, flag: bool) -> Option<bool> {
        let sets = self.sets();
        let is_set = |[no, yes]: [bool; 2]| if flag { yes } else { no };
        truth(
            is_set(sets.booleans) || is_set(sets.untyped_booleans),
            !(sets.has_null || sets.has_number || sets.has_text || sets.has_untyped_non_boolean),
        )
    }

    /// Returns whether a text is a member; `None` is unknown.
    fn has_text(&self, text: &str) -> Option<bool> {
        let sets = self.sets();
        truth(
            sets.texts.contains(text),
            !(sets.has_null || sets.has_number || sets.has_boolean),
        )
    }

    /// Returns whether the text of a stored temporal value is a member; `None` is unknown.
    fn has_temporal(&self, kind: TemporalKind, text: &str) -> Option<bool> {
        let sets = self.sets();
        let comparable = !(sets.has_null || sets.has_number || sets.has_boolean);
        let Some(value) = Temporal::parse(kind, text) else {
            return truth(sets.texts.contains(text), comparable);
        };
        let temporal_texts = self.temporal_texts(kind);
        let found = (temporal_texts.axes.contains(&value.axis())
            && temporal_texts.keys.contains(&key(value)))
            || temporal_texts.others.contains(text);
        truth(
            found,
            comparable && temporal_texts.axes.iter().all(|axis| *axis == value.axis()),
        )
    }

    /// Returns whether a whole temporal object is a member; `None` is unknown.
    fn has_temporal_object(&self, kind: TemporalKind, text: &str) -> Option<bool> {
        let sets = self.sets();
        let comparable = !(sets.has_null || sets.has_boolean || sets.has_number);
        let Some(value) = Temporal::parse(kind, text) else {
            return truth(false, self.literals.is_empty());
        };
        let temporal_texts = self.temporal_texts(kind);
        let found = temporal_texts.axes.contains(&value.axis())
            && temporal_texts.keys.contains(&key(value));
        let same_axis = temporal_texts.others.is_empty()
            && temporal_texts.axes.iter().all(|axis| *axis == value.axis());
        truth(found, comparable && same_axis)
    }

    fn sets(&self) -> &Sets {
        self.sets.get_or_init(|| {
            let mut sets = Sets::default();
            // A query can name a text of megabytes a thousand times. It is hashed once.
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

    /// Returns the texts that denote temporal values comparable with a kind.
    fn temporal_texts(&self, kind: TemporalKind) -> &TemporalTexts {
        let place = match kind {
            TemporalKind::Date => 0,
            TemporalKind::Time => 1,
            TemporalKind::DateTime => 2,
            TemporalKind::Duration => 3,
        };
        let [date, time, date_time, duration] = &self.temporal_texts;
        let cell = [date, time, date_time, duration]
            .into_iter()
            .nth(place)
            .unwrap_or(duration);
        cell.get_or_init(|| {
            let mut temporal_texts = TemporalTexts::default();
            for text in &self.sets().texts {
                match Temporal::parse_literal(kind, text).or_else(|| Temporal::classify(text)) {
                    Some(value) if value.axis() == kind.axis() => {
                        temporal_texts.keys.insert(key(value));
                        temporal_texts.note(value.axis());
                    }
                    Some(value) => temporal_texts.note(value.axis()),
                    None => drop(temporal_texts.others.insert(Arc::clone(text))),
                }
            }
            temporal_texts
        })
    }

    /// Returns whether a short form among the values denotes the version with this uid.
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

impl TemporalTexts {
    fn note(&mut self, axis: Axis) {
        if !self.axes.contains(&axis) {
            self.axes.push(axis);
        }
    }
}

/// Records the presence of a boolean.
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

    /// Adds a literal of unknown type: as a text, and as a number or boolean if it can be parsed as
    /// one.
    fn add_untyped(&mut self, text: &Arc<str>) {
        self.texts.insert(Arc::clone(text));
        match Exact::parse(text.trim()) {
            Some(number) => drop(self.untyped_numbers.insert(number.bits())),
            None => self.has_untyped_non_number = true,
        }
        match text.trim().parse() {
            Ok(flag) => mark(&mut self.untyped_booleans, flag),
            Err(_) => self.has_untyped_non_boolean = true,
        }
    }

    fn has_untyped(&self) -> bool {
        !self.untyped_numbers.is_empty() || self.has_untyped_non_number
    }
}

/// Returns true if a member was found. Otherwise returns false, or unknown if a member could not be
/// compared.
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
