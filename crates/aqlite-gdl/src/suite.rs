//! A fixture file: the test cases of a guide, read, checked against the guide, and run.
//!
//! ```yaml
//! current_datetime: 2025-11-11T12:00:00+01:00     # optional
//! language: en                                    # optional
//! guidelines:
//!   "1": Demo.v1
//! test_cases:
//!   - id: a heavy person
//!     input:
//!       "1":
//!         gt0003|Weight: 120,kg
//!     expected_output:
//!       "1":
//!         gt0005|Class: 2
//! ```
//!
//! Only the listed outputs are compared; no listed output means that no rule may set any. An empty
//! value expects that the guide does not set this output. An empty input is no input.

use super::budget::Exceeded;
use super::compile::{CompiledGuide, Op};
use super::expr::ast::{Action, Expr, Operator, Variable};
use super::fixture::{differences, instances, literal};
use super::item::{Item, Kind};
use super::run::{Options, Run, RunInput};
use super::time::{Moment, TimeUnit};
use super::value::Value;
use super::yaml;
use aqlite_rm::diag::{Diagnostic, Span};
use std::collections::HashSet;

/// A fixture file.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The id of the guide that it tests.
    pub guide_id: String,
    /// The time of evaluation, if the file states it.
    pub now: Option<Moment>,
    /// The language of texts, if the file states it.
    pub language: Option<String>,
    /// The cases in file order.
    pub cases: Vec<Case>,
    guide_span: Span,
}

/// A test case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the case.
    pub id: String,
    /// The values of input variables.
    pub input: Vec<Given>,
    /// The values that outputs must have.
    pub expected: Vec<Given>,
    /// The position in the file.
    pub span: Span,
}

/// A variable and its value.
#[derive(Clone, Debug)]
pub struct Given {
    /// The gt-code.
    pub code: String,
    /// The literal as written; empty for no value.
    pub literal: String,
    /// The position of the literal in the file.
    pub span: Span,
}

/// The result of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The differences between expected and actual values. Empty if the case passes.
    pub differences: Vec<String>,
    /// The run itself.
    pub run: Run,
}

impl Suite {
    /// Reads a fixture file.
    ///
    /// # Errors
    ///
    /// `GDL0501` if the text is not YAML, `GDL0502` if it is not a fixture.
    pub fn read(text: &str) -> Result<Suite, Diagnostic> {
        let root = yaml::read(text)?;
        let missing = |what: &str| {
            let message = format!("not a fixture: `{what}` is missing");
            Diagnostic::error("GDL0502", root.span, message)
        };
        let guides = root.get("guidelines").map(Item::members);
        let guides = guides.unwrap_or_default();
        let (key, guide) = guides.first().ok_or_else(|| missing("guidelines"))?;
        let cases = root.get("test_cases");
        let cases = cases.ok_or_else(|| missing("test_cases"))?.elements();
        let read = |item: &Item| Case::read(item, key);
        let language = root.text_of("language").filter(|t| !t.is_empty());
        Ok(Suite {
            guide_id: guide.text().unwrap_or_default().to_owned(),
            now: fixed_time(&root)?,
            language: language.map(str::to_owned),
            cases: cases.iter().map(read).collect::<Result<_, _>>()?,
            guide_span: guide.span,
        })
    }

    /// Runs a case. `now` applies if the file states no time.
    ///
    /// # Errors
    ///
    /// The run exceeded a limit.
    pub fn run(
        &self,
        case: &Case,
        guide: &CompiledGuide,
        now: Moment,
        options: Options,
    ) -> Result<Outcome, Exceeded> {
        let value = |g: &Given| (g.code.clone(), literal(&g.literal));
        let given = case.input.iter().filter(|g| !g.is_empty());
        let input: Vec<(String, Value)> = given.map(value).collect();
        let run = guide.run(&RunInput {
            instances: &instances(guide, &input),
            clock: self.now.unwrap_or(now).into(),
            language: self.language.as_deref().unwrap_or("en"),
            options,
            terminology: None,
        })?;
        let pair = |g: &Given| (g.code.clone(), g.literal.clone());
        let expected: Vec<(String, String)> = case.expected.iter().map(pair).collect();
        Ok(Outcome {
            differences: differences(guide, &run, &expected),
            run,
        })
    }

    /// Returns a change that lets a failing case pass: no rounding, the option
    /// [`Options::imitates_published_engine`], or another time if the guide reads the clock and the fixture
    /// states no time. `None` if none of them helps.
    pub fn cause(&self, case: &Case, guide: &CompiledGuide, now: Moment) -> Option<String> {
        let passes = |now: Moment, options: Options| {
            let outcome = self.run(case, guide, now, options);
            outcome.is_ok_and(|outcome| outcome.differences.is_empty())
        };
        let options = |round_on_store: bool, imitates_published_engine: bool| Options {
            round_on_store,
            imitates_published_engine,
            ..Options::default()
        };
        if passes(now, options(false, false)) {
            let cause = "it passes where quantities are not rounded when they are stored";
            return Some(cause.to_owned());
        }
        if passes(now, options(true, true)) || passes(now, options(false, true)) {
            let cause = "it passes where missing values are made up, as published";
            return Some(cause.to_owned());
        }
        if self.now.is_some() {
            return None;
        }
        // Eighty quarters: fixtures were published within the last twenty years.
        let mut earlier =
            (1..=80).filter_map(|quarters| now.plus(-3.0 * f64::from(quarters), TimeUnit::Month));
        let then = earlier.find(|then| passes(*then, Options::default()))?;
        Some(format!(
            "it passes at {}: the guide reads the clock, and the fixture fixes no `current_datetime`",
            then.text()
        ))
    }

    /// Returns probable errors of the fixture: the wrong guide, no time for a guide that reads the
    /// clock, variables that the guide does not have or cannot set, unknown units and codes.
    pub fn lint(&self, guide: &CompiledGuide) -> Vec<Diagnostic> {
        let mut lint = FixtureLint {
            guide,
            known: Known::collect(guide),
            problems: Vec::new(),
        };
        let (id, own) = (&guide.guide().id, &self.guide_id);
        if id != own {
            let message = format!("the fixture is for `{own}`, the guide is `{id}`");
            lint.warn("GDL0510", self.guide_span, message, "mend `guidelines`");
        }
        let reads_clock = |op: &Op| matches!(op, Op::Now(_) | Op::Today(_));
        if self.now.is_none() && guide.ops.iter().any(reads_clock) {
            let message = String::from(
                "the guide reads the clock, and the fixture fixes no time: what passes today may fail tomorrow",
            );
            let help = "add `current_datetime: 2025-11-11T12:00:00+01:00`";
            lint.warn("GDL0516", self.guide_span, message, help);
        }
        for case in &self.cases {
            lint.givens(&case.input, false);
            lint.givens(&case.expected, true);
        }
        lint.problems
    }
}

/// Returns the time at which the cases run, if the fixture states one.
fn fixed_time(root: &Item) -> Result<Option<Moment>, Diagnostic> {
    let Some(time) = root.text_of("current_datetime").filter(|t| !t.is_empty()) else {
        return Ok(None);
    };
    let moment = Moment::parse(time, 0).ok_or_else(|| {
        let message = format!("`{time}` is no date-time");
        Diagnostic::error("GDL0502", root.span, message)
            .with_help("write `current_datetime: 2025-11-11T12:00:00+01:00`")
    })?;
    Ok(Some(moment))
}

impl Case {
    fn read(item: &Item, key: &str) -> Result<Case, Diagnostic> {
        if !matches!(item.kind, Kind::Map(_)) {
            return Err(wrong_kind(
                item,
                "a case with `id`, `input` and `expected_output`",
            ));
        }
        let givens = |name: &str| -> Result<Vec<Given>, Diagnostic> {
            let member = item.get(name).map(|m| map("guides", m)).transpose()?;
            let member = member.and_then(|guides| guides.get(key));
            let member = member.map(|m| map("variables", m)).transpose()?;
            let givens = member.map(Item::members).unwrap_or_default();
            givens.iter().map(Given::read).collect()
        };
        Ok(Case {
            id: item.text_of("id").unwrap_or_default().to_owned(),
            input: givens("input")?,
            expected: givens("expected_output")?,
            span: item.span,
        })
    }
}

impl Given {
    /// Reads a key such as `gt0003|Weight` with its literal. The label is ignored.
    fn read((key, item): &(String, Item)) -> Result<Given, Diagnostic> {
        let code = key.split('|').next().unwrap_or(key).trim().to_owned();
        let literal = match &item.kind {
            Kind::Text(text) => text.clone(),
            Kind::Null => String::new(),
            _ => return Err(wrong_kind(item, "a value such as `120,kg`")),
        };
        Ok(Given {
            code,
            literal,
            span: item.span,
        })
    }

    fn is_empty(&self) -> bool {
        self.literal.trim().is_empty()
    }
}

/// Returns a value if it is a map. An empty list is an empty map, as fixtures write it for `fhir`.
fn map<'i>(of: &str, item: &'i Item) -> Result<&'i Item, Diagnostic> {
    match &item.kind {
        Kind::Map(_) => Ok(item),
        Kind::List(items) if items.is_empty() => Ok(item),
        _ => Err(wrong_kind(item, &format!("a map of {of}"))),
    }
}

/// Returns the problem of a value of another kind than expected.
fn wrong_kind(item: &Item, expected: &str) -> Diagnostic {
    let found = match &item.kind {
        Kind::Null => "nothing",
        Kind::List(_) => "a list",
        Kind::Map(_) => "a map",
        _ => "a text",
    };
    let message = format!("not a fixture: expected {expected}, found {found}");
    Diagnostic::error("GDL0502", item.span, message)
}

/// The units and codes of the variables of a guide.
struct Known<'g> {
    units: Vec<(&'g str, &'g str)>,
    /// The codes that the rules compare with or set.
    codes: Vec<(&'g str, &'g str)>,
    /// The codes that the bindings allow.
    allowed: Vec<(&'g str, String)>,
}

impl<'g> Known<'g> {
    fn collect(guide: &'g CompiledGuide) -> Known<'g> {
        let mut known = Known {
            units: Vec::new(),
            codes: Vec::new(),
            allowed: Vec::new(),
        };
        for element in guide.guide().bindings.iter().flat_map(|b| &b.elements) {
            let id = element.id.as_str();
            let units = element.units.iter().map(|unit| (id, unit.as_str()));
            known.units.extend(units);
            let allowed = element.allowed_values.iter().map(|v| literal(v));
            let codes = allowed.filter_map(|v| v.code().map(|c| c.code.to_string()));
            known.allowed.extend(codes.map(|code| (id, code)));
        }
        guide.guide().each_expr(&mut |expr| {
            expr.pairs(&mut |variable, operator, value| known.pair(variable, operator, value))
        });
        for action in guide.guide().steps().filter_map(|s| s.action.as_ref()) {
            if let Action::Assign(variable, Expr::Literal(value)) = action {
                known.pair(variable, Operator::Equal, value);
            }
        }
        known
    }

    fn pair(&mut self, variable: &'g Variable, _: Operator, value: &'g Value) {
        let code = variable.code.as_str();
        match (value, variable.attribute.as_deref()) {
            (Value::Quantity(q), _) => self.units.push((code, &q.unit)),
            (Value::Text(text), Some("unit" | "units")) => self.units.push((code, text)),
            (value, _) => self.codes.extend(value.code().map(|c| (code, &*c.code))),
        }
    }

    /// Returns whether a value is among the known ones of the variable. A variable without known
    /// values accepts any.
    fn fits<T: AsRef<str>>(set: &[(&str, T)], variable: &str, value: &str) -> bool {
        let mut known = set.iter().filter(|(v, _)| *v == variable).peekable();
        known.peek().is_none() || known.any(|(_, v)| v.as_ref() == value)
    }
}

struct FixtureLint<'g> {
    guide: &'g CompiledGuide,
    known: Known<'g>,
    problems: Vec<Diagnostic>,
}

impl FixtureLint<'_> {
    fn givens(&mut self, givens: &[Given], expected: bool) {
        let mut seen = HashSet::new();
        for given in givens {
            if !seen.insert(given.code.as_str()) {
                self.warn(
                    "GDL0515",
                    given.span,
                    format!("`{}` is given twice", given.code),
                    "the last value counts",
                );
            }
            self.given(given, expected);
        }
    }

    fn given(&mut self, given: &Given, expected: bool) {
        let (code, span) = (&given.code, given.span);
        let bindings = &self.guide.guide().bindings;
        let mut elements = bindings.iter().flat_map(|b| &b.elements);
        if !elements.any(|e| e.id == *code) {
            let message = format!("the guide has no variable `{code}`");
            let help = "take the code from the bindings of the guide";
            return self.warn("GDL0511", span, message, help);
        }
        let mut slots = self.guide.slots.iter();
        if expected && !slots.any(|s| *s.code == **code && s.assignable) {
            let message = format!("no rule sets `{code}`");
            let help = "expect a variable that a rule or default action sets";
            return self.warn("GDL0514", span, message, help);
        }
        self.value(given, expected);
    }

    /// Checks unit and code of a value.
    fn value(&mut self, given: &Given, expected: bool) {
        let (code, span, value) = (&given.code, given.span, literal(&given.literal));
        if let Value::Quantity(q) = &value
            && !Known::fits(&self.known.units, code, &q.unit)
        {
            let message = format!("the guide knows no unit `{}` of `{code}`", q.unit);
            self.warn(
                "GDL0512",
                span,
                message,
                "use a unit that the guide asks for",
            );
        }
        if let Some(found) = value.code().map(|c| &*c.code) {
            let fits = match expected {
                true => Known::fits(&self.known.codes, code, found),
                false => Known::fits(&self.known.allowed, code, found),
            };
            if !fits {
                let message = format!("the guide knows no code `{found}` of `{code}`");
                let help = "use a code that the guide allows or sets";
                self.warn("GDL0513", span, message, help);
            }
        }
    }

    fn warn(&mut self, code: &'static str, span: Span, message: String, help: &str) {
        self.problems
            .push(Diagnostic::warning(code, span, message).with_help(help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = r#"{"id":"x.v1","definition":{"data_bindings":{
        "gt0001":{"model_id":"openEHR-EHR-OBSERVATION.a.v1","type":"INPUT",
            "elements":{"gt0002":{"path":"/data[at0001]/items[at0002]"}}},
        "gt0003":{"model_id":"openEHR-EHR-EVALUATION.b.v1","type":"OUTPUT","elements":{
            "gt0004":{"path":"/data[at0001]/items[at0004]"},
            "gt0005":{"path":"/data[at0001]/items[at0005]"}}}},
        "rules":{"gt0006":{"priority":1,"when":["$gt0002!=null"],"then":["$gt0004.magnitude=1"]}}}}"#;

    /// Reads a fixture with one case.
    fn suite(case: &str) -> Result<Suite, Diagnostic> {
        Suite::read(&format!("guidelines:\n  1: x.v1\ntest_cases:\n{case}"))
    }

    fn differences(input: &str, expected: &str) -> Vec<String> {
        let case = format!(
            "- id: a\n  input:\n    1:\n      gt0002: {input}\n  expected_output:\n    1:\n      {expected}\n"
        );
        let (suite, guide) = (suite(&case), crate::parse(GUIDE).unwrap().compile());
        let (suite, now) = (suite.unwrap(), Moment::from_millis(0, 0));
        let run = suite.run(&suite.cases[0], &guide, now, Options::default());
        run.unwrap().differences
    }

    #[test]
    fn an_empty_expectation_holds_where_the_guide_sets_no_value() {
        let wrong = ["gt0004: expected nothing, found `1`"];
        let both = "gt0004: 1\n      gt0005:";
        let nothing: [&str; 0] = [];
        assert_eq!(differences("5", "gt0004: 1"), nothing);
        assert_eq!(differences("5", both), nothing);
        assert_eq!(differences("5", "gt0004|Score:"), wrong);
        assert_eq!(differences("5", "gt0004: ''"), wrong);
        // A value of the input is not set by the guide.
        assert_eq!(differences("5", "gt0002:"), nothing);
        // An empty input is no input, so the rule does not fire.
        assert_eq!(differences("", "gt0004:"), nothing);
        assert_eq!(differences("''", "gt0004:"), nothing);
    }

    #[test]
    fn a_fixture_without_a_language_is_in_english() {
        let language = |line: &str| {
            let text = format!("{line}\nguidelines:\n  1: x.v1\ntest_cases: []\n");
            Suite::read(&text).unwrap().language
        };
        assert_eq!(language("language: sv").as_deref(), Some("sv"));
        for absent in ["", "language:", "language: ''"] {
            assert_eq!(language(absent), None, "{absent:?}");
        }
    }

    #[test]
    fn values_of_other_kinds_are_refused() {
        for (case, expected) in [
            (
                "- id: a\n  expected_output:\n    1:\n      gt0004:\n      - 1\n",
                "expected a value such as `120,kg`, found a list",
            ),
            (
                "- id: a\n  input:\n    1:\n      gt0002:\n        magnitude: 1\n",
                "expected a value such as `120,kg`, found a map",
            ),
            (
                "- id: a\n  expected_output:\n    1: gt0004\n",
                "expected a map of variables, found a text",
            ),
            (
                "- id: a\n  expected_output:\n  - 1\n",
                "expected a map of guides, found a list",
            ),
            (
                "- a\n",
                "expected a case with `id`, `input` and `expected_output`, found a text",
            ),
        ] {
            let refused = suite(case).unwrap_err();
            assert_eq!(refused.code, "GDL0502", "{case}");
            let message = format!("not a fixture: {expected}");
            assert_eq!(refused.message, message, "{case}");
            assert!(refused.span.start > 0, "{case}");
        }
        for case in [
            "- id: a\n  input: {}\n  expected_output:\n    1: []\n    fhir: []\n",
            "- id: a\n",
        ] {
            assert!(suite(case).is_ok(), "{case}");
        }
    }
}
