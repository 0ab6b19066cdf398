//! Predicates of a binding as conditions of its query (predicate pushdown).
//!
//! A condition excludes only rows for which the predicate is false or a value is missing. A row that
//! the predicate cannot compare passes: the run reports it in a note. The predicate is still
//! evaluated on the rows that return. Pushdown therefore changes how much is read, never the
//! result or its notes. Values of unexpected classes pass (`NOT EXISTS …`).
//!
//! The time of an ELEMENT is not pushed: AQL cannot state that a value is no time, and the
//! comparison of such a value has a note.
//!
//! `max` and `min` are not pushed: AQL cannot express the first of equal instants, partial times,
//! and the exclusion of the future. `is_a` is not pushed, because it needs a terminology.

use super::bind::{column_path, quoted};
use super::calc;
use super::compile::{Attribute, CompiledGuide, split_path};
use super::expr::ast::{Expr, Operator};

use super::time::{Clock, Moment, Precision, TimeUnit};
use super::value::{Quantity, Value, integer};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::number;
use aqlite_rm::path::has_path_form;

impl CompiledGuide {
    /// Returns the conditions for the rows of a binding, to be joined by AND. `place` returns the
    /// spelling of a column in the query. Quantities of other units are excluded only if the run
    /// does not convert units.
    pub(crate) fn pushed_down(
        &self,
        binding: usize,
        clock: Clock<'_>,
        convert_units: bool,
        place: &dyn Fn(&str) -> String,
    ) -> Vec<String> {
        let predicates = self
            .guide
            .bindings
            .get(binding)
            .map(|b| b.predicates.as_slice())
            .unwrap_or_default();
        let plan = self.bindings.get(binding);
        let columns = plan.map(|plan| plan.columns.as_slice()).unwrap_or_default();
        let unreadable = columns.iter().filter(|column| !column.is_readable);
        let mut pushdown = Pushdown {
            clock,
            convert_units,
            place,
            unreadable: unreadable.map(|column| column.path.as_str()).collect(),
            conditions: Vec::new(),
        };
        predicates
            .iter()
            .filter_map(|p| p.expr.as_ref())
            .for_each(|expr| pushdown.expr(expr));
        pushdown.conditions
    }
}

/// Evaluates an expression that reads nothing but the clock. `None` for any other expression.
fn constant(expr: &Expr, clock: Clock<'_>) -> Option<Value> {
    match expr {
        Expr::Literal(value) => Some(value.clone()),
        Expr::Variable(v) => {
            let now = match v.code.as_str() {
                "currentDateTime" => clock.now,
                "currentDate" => clock.today()?,
                _ => return None,
            };
            let attribute = v
                .attribute
                .as_deref()
                .map_or(Some(Attribute::Whole), Attribute::parse)?;
            calc::attribute(&Value::moment(now), attribute).ok()
        }
        Expr::Binary(operator @ (Operator::Plus | Operator::Minus), a, b) => {
            calc::arithmetic(*operator, &constant(a, clock)?, &constant(b, clock)?, clock).ok()
        }
        _ => None,
    }
}

/// The conditions of a binding while they are made from its predicates.
struct Pushdown<'a> {
    clock: Clock<'a>,
    convert_units: bool,
    place: &'a dyn Fn(&str) -> String,
    /// The paths that no query can read.
    unreadable: Vec<&'a str>,
    conditions: Vec<String>,
}

impl Pushdown<'_> {
    fn expr(&mut self, expr: &Expr) {
        let Expr::Binary(operator, a, b) = expr else {
            return;
        };
        match (operator, a.as_ref(), b.as_ref()) {
            // Both sides of a conjunction must hold, so each can be pushed alone. A disjunction
            // cannot.
            (Operator::And, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            (operator, Expr::Path(path, _), other) => self.comparison(path, *operator, other),
            (operator, other, Expr::Path(path, _)) => {
                // The path must be on the left, so the comparison is mirrored.
                self.comparison(path, operator.mirrored(), other)
            }
            _ => {}
        }
    }

    fn comparison(&mut self, path: &str, operator: Operator, other: &Expr) {
        let path = super::bind::normal_path(path);
        let (base, attribute) = split_path(&path);
        if !has_path_form(base) || self.unreadable.iter().any(|path| path.starts_with(base)) {
            return;
        }
        let column = (self.place)(base);
        // A path to an element is read at its data value, whose class is unknown until it is read.
        let is_element = column_path(base) != base;
        let condition = match (operator, constant(other, self.clock), attribute) {
            (Operator::Unequal, Some(Value::Null), Attribute::Whole) => {
                Some(format!("EXISTS {column}"))
            }
            // The comparison with a time of day has a note.
            (_, Some(Value::Moment(m, _)), Attribute::Whole | Attribute::Value)
                if is_time(base) && m.precision != Precision::Time =>
            {
                timed(&column, operator, m.millis)
            }
            (_, Some(Value::Millis(ms)), Attribute::Whole | Attribute::Value) if is_time(base) => {
                integer(ms).and_then(|ms| timed(&column, operator, ms))
            }
            // The conditions below name attributes of data values, which only elements have.
            _ if !is_element => None,
            (_, Some(Value::Number(n)), Attribute::Whole | Attribute::Magnitude) => {
                number(&column, operator, n)
                    .map(|condition| unless_absent(&format!("{column}/magnitude"), &condition))
            }
            (_, Some(Value::Quantity(q)), Attribute::Whole) if !self.convert_units => {
                quantity(&column, operator, &q)
            }
            (Operator::Equal, Some(Value::Coded(code)), Attribute::Whole) => {
                Some(coded(&column, &code.code))
            }
            (Operator::Equal, Some(Value::Text(code)), Attribute::Code) => {
                Some(coded(&column, &code))
            }
            (Operator::Equal, Some(Value::Text(unit)), Attribute::Unit) => Some(unless_absent(
                &format!("{column}/units"),
                &format!("{column}/units='{}'", quoted(&unit)),
            )),
            _ => None,
        };
        self.conditions.extend(condition);
    }
}

/// Weakens a condition so that rows without a value at `path` pass.
fn unless_absent(path: &str, condition: &str) -> String {
    format!("(NOT EXISTS {path} OR {condition})")
}

fn number(column: &str, operator: Operator, n: f64) -> Option<String> {
    // Outside of this range, AQL and the guide may print and compare the number differently.
    let is_plain = n.is_finite() && n.abs() < 1.0e15 && (n == 0.0 || n.abs() > 1.0e-6);
    Some(format!(
        "{column}/magnitude{}{}",
        sign(operator).filter(|_| is_plain)?,
        number::shortest(n)
    ))
}

/// Builds the condition for a quantity with one unit. Units of time are converted by the guide, so
/// they get no condition.
fn quantity(column: &str, operator: Operator, q: &Quantity) -> Option<String> {
    if q.unit.is_empty() || TimeUnit::parse(&q.unit).is_some() {
        return None;
    }
    let units = format!("{column}/units");
    // A quantity of another unit does not compare. Its row passes, so that the run has a note with
    // both units.
    Some(unless_absent(
        &units,
        &format!(
            "{units}!='{}' OR {}",
            quoted(&q.unit),
            number(column, operator, q.magnitude)?
        ),
    ))
}

/// Builds the condition for a code. It does not test the terminology, whose id may have a version.
fn coded(column: &str, code: &str) -> String {
    let path = format!("{column}/defining_code/code_string");
    unless_absent(&path, &format!("{path}='{}'", quoted(code)))
}

/// Returns whether a path ends in an attribute that is a DV_DATE_TIME, such as the `time` of an
/// EVENT.
fn is_time(path: &str) -> bool {
    let attr = path.rsplit('/').next().and_then(Attr::parse);
    attr.is_some_and(|attr| {
        let mut types = Cls::all().filter_map(|class| Some(class.attr(attr)?.ty));
        types.any(|ty| ty == Cls::DV_DATE_TIME)
    })
}

/// Builds the condition for a time. Guides count milliseconds, AQL compares the stored text: the
/// bounds are those of the whole millisecond.
fn timed(column: &str, operator: Operator, millis: i64) -> Option<String> {
    let at = |ms: i64| Moment::from_millis(ms, 0).text();
    let next = millis.checked_add(1)?;
    match operator {
        Operator::Greater | Operator::GreaterOrEqual => Some(format!("{column}>='{}'", at(millis))),
        Operator::Less => Some(format!("{column}<'{}'", at(millis))),
        Operator::LessOrEqual => Some(format!("{column}<'{}'", at(next))),
        Operator::Equal => Some(format!(
            "({column}>='{}' AND {column}<'{}')",
            at(millis),
            at(next)
        )),
        _ => None,
    }
}

fn sign(operator: Operator) -> Option<&'static str> {
    match operator {
        Operator::Equal => Some("="),
        Operator::Less => Some("<"),
        Operator::LessOrEqual => Some("<="),
        Operator::Greater => Some(">"),
        Operator::GreaterOrEqual => Some(">="),
        _ => None,
    }
}
