//! Limits of one run of a guide, and the budget that counts what a run consumes.
//!
//! A guide is short, but what it computes need not be: a text that is appended to itself doubles
//! with each statement, and a quantifier inside of another visits each pair of values. The
//! evaluator counts work and bytes while they grow. A run that exceeds a limit ends with
//! [`Exceeded`] and without any result.

use super::value::Value;
use std::cell::Cell;
use std::fmt;

/// The most that one run may consume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of one text value.
    pub text: usize,
    /// Bytes of everything that the run keeps or returns: values of variables, outputs, filled
    /// templates, cards, notes and trace.
    pub bytes: usize,
    /// Units of work. One operation of an expression is one unit, and so is each value or character
    /// group that it visits.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            text: 1_000_000,
            bytes: 20_000_000,
            steps: 20_000_000,
        }
    }
}

/// What a run has consumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Bytes, as [`Limits::bytes`] counts them.
    pub bytes: usize,
    /// Work, as [`Limits::steps`] counts it.
    pub steps: u64,
}

impl Limits {
    /// The limits that remain for further runs of one call.
    pub fn without(self, spent: Spent) -> Limits {
        Limits {
            bytes: self.bytes.saturating_sub(spent.bytes),
            steps: self.steps.saturating_sub(spent.steps),
            ..self
        }
    }

    /// The lesser of two limits, one by one.
    pub fn within(self, other: Limits) -> Limits {
        Limits {
            text: self.text.min(other.text),
            bytes: self.bytes.min(other.bytes),
            steps: self.steps.min(other.steps),
        }
    }
}

/// One of [`Limits`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// [`Limits::text`]
    Text,
    /// [`Limits::bytes`]
    Bytes,
    /// [`Limits::steps`]
    Steps,
    /// None: an invariant of the compiled guide does not hold, which is a defect of this library.
    Broken(&'static str),
}

/// A run that was ended because it exceeded a limit. Nothing of it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exceeded {
    /// The guide.
    pub guide_id: String,
    /// The place of the statement at which it happened, such as `rule gt0012`.
    pub place: String,
    /// The statement as written, cut after 200 characters; empty where no single statement is at
    /// fault.
    pub statement: String,
    /// The limit.
    pub limit: Limit,
    /// Its value.
    pub most: u64,
}

impl Exceeded {
    /// `GDL0601` a text, `GDL0602` bytes, `GDL0603` work, `GDL0699` a broken invariant.
    pub fn code(&self) -> &'static str {
        match self.limit {
            Limit::Text => "GDL0601",
            Limit::Bytes => "GDL0602",
            Limit::Steps => "GDL0603",
            Limit::Broken(_) => "GDL0699",
        }
    }

    /// What can be done about it.
    pub fn help(&self) -> &'static str {
        match self.limit {
            Limit::Text => "do not append a text to itself; shorten the text",
            Limit::Bytes => {
                "name fewer EHRs, leave `trace` out, or let the guide set fewer and shorter values"
            }
            Limit::Steps => "name fewer EHRs, restrict the data by predicates, or split the guide",
            Limit::Broken(_) => "report it: no data can cause this",
        }
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exceeded {
            guide_id,
            place,
            statement,
            most,
            ..
        } = self;
        write!(f, "guide {guide_id}, {place}")?;
        if !statement.is_empty() {
            write!(f, ", `{statement}`")?;
        }
        match self.limit {
            Limit::Text => write!(f, ": the text would be longer than {most} bytes"),
            Limit::Bytes => write!(f, ": values and results would have more than {most} bytes"),
            Limit::Steps => write!(f, ": the run would take more than {most} steps"),
            Limit::Broken(what) => write!(f, ": an invariant of the engine is broken: {what}"),
        }
    }
}

impl std::error::Error for Exceeded {}

/// Bytes that are counted for a value besides those of its texts: its place in memory, and its
/// frame in an answer.
pub(crate) const FRAME: usize = 64;
/// The same for a value of a result: its JSON is an object of objects while the answer is put
/// together.
pub(crate) const OUTPUT_FRAME: usize = 800;

/// The count of a run in progress. Evaluation borrows the machine immutably, so the counters are
/// cells.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    bytes: Cell<usize>,
    steps: Cell<u64>,
    exceeded: Cell<Option<Limit>>,
}

impl Budget {
    pub fn new(limits: Limits) -> Budget {
        Budget {
            limits,
            bytes: Cell::new(0),
            steps: Cell::new(0),
            exceeded: Cell::new(None),
        }
    }

    /// Counts work. False once any limit is exceeded: what goes on then must end without a result.
    pub fn work(&self, steps: usize) -> bool {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.steps.set(self.steps.get().saturating_add(steps));
        if self.steps.get() > self.limits.steps {
            self.exceed(Limit::Steps);
        }
        !self.is_exceeded()
    }

    /// Counts bytes before they are allocated. Copying them is work, too.
    pub fn bytes(&self, bytes: usize) -> bool {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        if self.bytes.get() > self.limits.bytes {
            self.exceed(Limit::Bytes);
        }
        self.work(1 + bytes / 16)
    }

    /// Counts a value that is kept.
    pub fn value(&self, value: &Value) -> bool {
        self.bytes(FRAME.saturating_add(size(value)))
    }

    /// Whether a text of this length may be made.
    pub fn text(&self, bytes: usize) -> bool {
        if bytes > self.limits.text {
            self.exceed(Limit::Text);
        }
        self.work(1 + bytes / 16)
    }

    /// Ends the run because an invariant does not hold: no answer is better than another one.
    pub fn broken(&self, what: &'static str) {
        self.exceed(Limit::Broken(what));
    }

    fn exceed(&self, limit: Limit) {
        if self.exceeded.get().is_none() {
            self.exceeded.set(Some(limit));
        }
    }

    pub fn is_exceeded(&self) -> bool {
        self.exceeded.get().is_some()
    }

    pub fn spent(&self) -> Spent {
        Spent {
            bytes: self.bytes.get(),
            steps: self.steps.get(),
        }
    }

    /// The first limit that was exceeded, and its value.
    pub fn excess(&self) -> Option<(Limit, u64)> {
        let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        self.exceeded.get().map(|limit| match limit {
            Limit::Text => (limit, wide(self.limits.text)),
            Limit::Bytes => (limit, wide(self.limits.bytes)),
            Limit::Steps => (limit, self.limits.steps),
            Limit::Broken(_) => (limit, 0),
        })
    }
}

/// The bytes of the texts in a value, as an answer writes them.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Duration(text) => text.len(),
        Value::Quantity(quantity) => quantity.unit.len(),
        Value::Coded(code) => code.terminology.len() + code.code.len() + code.text.len(),
        Value::Ordinal(ordinal) => {
            ordinal.symbol.terminology.len() + ordinal.symbol.code.len() + ordinal.symbol.text.len()
        }
        Value::Object(object) => json_size(object),
        _ => 0,
    }
}

/// The bytes of a JSON value, approximately.
pub(crate) fn json_size(json: &serde_json::Value) -> usize {
    match json {
        serde_json::Value::String(text) => 8 + text.len(),
        serde_json::Value::Array(items) => items
            .iter()
            .fold(8, |sum: usize, item| sum.saturating_add(json_size(item))),
        serde_json::Value::Object(members) => {
            members.iter().fold(8, |sum: usize, (name, value)| {
                sum.saturating_add(16 + name.len())
                    .saturating_add(json_size(value))
            })
        }
        _ => 8,
    }
}
