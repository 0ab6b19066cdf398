//! Limits of one run of a guide, and the budget that counts the consumption of a run.
//!
//! A short guide can compute much: a text that is appended to itself doubles with each statement,
//! and a quantifier inside another visits each pair of values. The evaluator counts work and bytes
//! before it spends them. A run that exceeds a limit ends with [`Exceeded`] and without any result.

use super::value::Value;
use std::cell::Cell;
use std::fmt;

/// The limits of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The length of one text value, in bytes.
    pub text: usize,
    /// The size of everything that the run keeps or returns, in bytes: values of variables,
    /// outputs, filled templates, cards, notes and trace.
    pub bytes: usize,
    /// Units of work. One operation of an expression costs one unit, and so does each value or
    /// group of characters that it visits.
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

/// The steps after which a run pauses between two statements or instances: some milliseconds.
pub(crate) const STEPS_BETWEEN_PAUSES: u64 = 200_000;

/// The most steps of one statement, card or predicate of one instance, during which nothing can
/// pause: some tens of milliseconds.
pub(crate) const STATEMENT: u64 = 4_000_000;

/// The consumption of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Bytes, counted as for [`Limits::bytes`].
    pub bytes: usize,
    /// Units of work, counted as for [`Limits::steps`].
    pub steps: u64,
}

impl Spent {
    /// Returns the sum of the consumption of two runs.
    pub fn with(self, other: Spent) -> Spent {
        Spent {
            bytes: self.bytes.saturating_add(other.bytes),
            steps: self.steps.saturating_add(other.steps),
        }
    }
}

impl Limits {
    /// Returns the limits that remain for further runs of one call, after `spent`.
    pub fn without(self, spent: Spent) -> Limits {
        Limits {
            bytes: self.bytes.saturating_sub(spent.bytes),
            steps: self.steps.saturating_sub(spent.steps),
            ..self
        }
    }

    /// Returns the lesser of each pair of limits.
    pub fn within(self, other: Limits) -> Limits {
        Limits {
            text: self.text.min(other.text),
            bytes: self.bytes.min(other.bytes),
            steps: self.steps.min(other.steps),
        }
    }
}

/// The kind of limit that a run exceeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::text`] was exceeded.
    Text,
    /// [`Limits::bytes`] was exceeded.
    Bytes,
    /// [`Limits::steps`] was exceeded.
    Steps,
    /// One statement took more steps than a run may take without a pause.
    Statement,
    /// The host ended the run at a pause, because it takes too long.
    Time,
    /// No limit: an invariant of the compiled guide does not hold, which is a defect of this
    /// library.
    Broken(&'static str),
}

/// A run that ended because it exceeded a limit. It has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exceeded {
    /// The id of the guide.
    pub guide_id: String,
    /// The place of the statement that exceeded the limit, such as `rule gt0012`.
    pub place: String,
    /// The statement as written, cut after 200 characters. Empty if no single statement exceeded
    /// the limit.
    pub statement: String,
    /// The limit.
    pub limit: Limit,
    /// The value of the limit.
    pub most: u64,
}

impl Exceeded {
    /// Creates the error for a broken invariant at a place of the engine.
    pub(crate) fn broken(guide_id: &str, place: &str, what: &'static str) -> Exceeded {
        Exceeded {
            guide_id: guide_id.to_owned(),
            place: place.to_owned(),
            statement: String::new(),
            limit: Limit::Broken(what),
            most: 0,
        }
    }

    /// Returns the stable code: `GDL0601` a text, `GDL0602` bytes, `GDL0603` work, `GDL0605` time,
    /// `GDL0699` a broken invariant.
    pub fn code(&self) -> &'static str {
        match self.limit {
            Limit::Text => "GDL0601",
            Limit::Bytes => "GDL0602",
            Limit::Steps | Limit::Statement => "GDL0603",
            Limit::Time => "GDL0605",
            Limit::Broken(_) => "GDL0699",
        }
    }

    /// Returns the remedy, for the help line of a problem.
    pub fn help(&self) -> &'static str {
        match self.limit {
            Limit::Text => "do not append a text to itself; shorten the text",
            Limit::Bytes => {
                "name fewer EHRs, leave `trace` out, or let the guide set fewer and shorter values"
            }
            Limit::Steps => "name fewer EHRs, restrict the data by predicates, or split the guide",
            Limit::Statement => "restrict the data by predicates, or split the statement",
            Limit::Time => "restrict the data by predicates, or split the guide",
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
            Limit::Statement => write!(f, ": one statement would take more than {most} steps"),
            Limit::Time => write!(f, ": the run takes too long"),
            Limit::Broken(what) => write!(f, ": an invariant of the engine is broken: {what}"),
        }
    }
}

impl std::error::Error for Exceeded {}

/// The bytes that are counted for a value besides its texts: its place in memory, and its frame in
/// an answer.
pub(crate) const FRAME: usize = 64;
/// The bytes that are counted for a value of a result besides its texts. Its JSON is an object of
/// objects while the answer is built, so it costs more than [`FRAME`].
pub(crate) const OUTPUT_FRAME: usize = 800;

/// The counters of a run in progress. They are cells, because evaluation borrows the run
/// immutably.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    bytes: Cell<usize>,
    steps: Cell<u64>,
    /// The steps at which the present statement has taken too many.
    statement_end: Cell<u64>,
    /// The steps at which the next pause is due.
    pause_at: Cell<u64>,
    exceeded: Cell<Option<Limit>>,
}

impl Budget {
    pub fn new(limits: Limits) -> Budget {
        Budget {
            limits,
            bytes: Cell::new(0),
            steps: Cell::new(0),
            statement_end: Cell::new(STATEMENT),
            pause_at: Cell::new(STEPS_BETWEEN_PAUSES),
            exceeded: Cell::new(None),
        }
    }

    /// Counts work. Returns false once any limit is exceeded; the caller then ends without a
    /// result.
    pub fn spend_steps(&self, steps: usize) -> bool {
        // A saturated counter stays above every limit, so that an overflow cannot reopen the
        // budget.
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.steps.set(self.steps.get().saturating_add(steps));
        if self.steps.get() > self.limits.steps {
            self.exceed(Limit::Steps);
        } else if self.steps.get() > self.statement_end.get() {
            self.exceed(Limit::Statement);
        }
        !self.is_exceeded()
    }

    /// Begins the next statement. Returns whether a pause is due before it.
    pub fn begin_statement(&self) -> bool {
        let steps = self.steps.get();
        self.statement_end.set(steps.saturating_add(STATEMENT));
        let is_due = steps >= self.pause_at.get();
        if is_due {
            self.pause_at
                .set(steps.saturating_add(STEPS_BETWEEN_PAUSES));
        }
        is_due
    }

    /// Counts bytes before they are allocated. Copying them also counts as work.
    pub fn spend_bytes(&self, bytes: usize) -> bool {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        if self.bytes.get() > self.limits.bytes {
            self.exceed(Limit::Bytes);
        }
        self.spend_steps(1 + bytes / 16)
    }

    /// Counts the work on the texts of a value that an operation reads. Returns false once any limit
    /// is exceeded.
    pub fn spend_reading(&self, value: &Value) -> bool {
        self.spend_steps(size(value) / 16)
    }

    /// Counts a value that is kept. Returns false once any limit is exceeded.
    pub fn spend_value(&self, value: &Value) -> bool {
        self.spend_bytes(FRAME.saturating_add(size(value)))
    }

    /// Returns whether a text of this length may be created, and records the excess if not.
    pub fn spend_text(&self, bytes: usize) -> bool {
        if bytes > self.limits.text {
            self.exceed(Limit::Text);
        }
        self.spend_steps(1 + bytes / 16)
    }

    /// Ends the run because an invariant does not hold: no answer is safer than a wrong one.
    pub fn broken(&self, what: &'static str) {
        self.exceed(Limit::Broken(what));
    }

    /// Ends the run because the host gives it no more time.
    pub fn end_for_time(&self) {
        self.exceed(Limit::Time);
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

    /// Returns the first limit that was exceeded, with its value.
    pub fn excess(&self) -> Option<(Limit, u64)> {
        let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        self.exceeded.get().map(|limit| match limit {
            Limit::Text => (limit, wide(self.limits.text)),
            Limit::Bytes => (limit, wide(self.limits.bytes)),
            Limit::Steps => (limit, self.limits.steps),
            Limit::Statement => (limit, STATEMENT),
            Limit::Time | Limit::Broken(_) => (limit, 0),
        })
    }
}

/// Returns the bytes of the texts in a value, as an answer writes them.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Duration(text) => text.len(),
        Value::Quantity(quantity) => quantity.unit.len(),
        Value::Coded(code) => code.terminology.len() + code.code.len() + code.text.len(),
        Value::Ordinal(ordinal) => {
            ordinal.symbol.terminology.len() + ordinal.symbol.code.len() + ordinal.symbol.text.len()
        }
        Value::Object(object) => json_size(object),
        Value::Moment(_, Some(recorded)) => recorded.len(),
        _ => 0,
    }
}

/// Returns the approximate bytes of a JSON value in memory.
pub(crate) fn json_size(json: &serde_json::Value) -> usize {
    match json {
        serde_json::Value::String(text) => 8 + text.len(),
        serde_json::Value::Array(items) => items
            .iter()
            .fold(8, |sum: usize, item| sum.saturating_add(json_size(item))),
        serde_json::Value::Object(members) => {
            members.iter().fold(8, |sum: usize, (name, value)| {
                // 16 bytes are an estimate for the entry of a member.
                sum.saturating_add(16 + name.len())
                    .saturating_add(json_size(value))
            })
        }
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_bytes_count_as_bytes_and_as_work() {
        let spent = |bytes| {
            let budget = Budget::new(Limits::default());
            assert!(budget.spend_bytes(bytes));
            budget.spent()
        };
        for (bytes, steps) in [(0, 1), (15, 1), (16, 2), (160, 11), (170, 11)] {
            assert_eq!(spent(bytes), Spent { bytes, steps });
        }
    }
}
