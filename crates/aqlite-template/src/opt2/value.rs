//! Constraints on values: texts, numbers, codes, dates, times and durations, and the rules of slots.

use super::super::pattern::Pattern;
use super::super::slot::{is_any, rules};
use super::super::tree::{Constraint, Interval, Validity};
use super::super::xml::{Xml, truth};
use super::terminology::operational;
use super::{Opt2Reader, kind_of};
use aqlite_rm::diag::Diagnostic;
use aqlite_rm::number::TextForm;
use aqlite_rm::time::TemporalKind;

impl<'d> Opt2Reader<'d> {
    pub(super) fn constraint(&mut self, xml: Xml<'d>, kind: &str, root: usize) -> Constraint {
        match kind {
            "C_COMPLEX_OBJECT" | "C_ARCHETYPE_ROOT" | PROXY => Constraint::Open,
            "ARCHETYPE_SLOT" => self.slot(xml),
            "C_BOOLEAN" => boolean(xml),
            "C_STRING" => self.text(xml),
            "C_TERMINOLOGY_CODE" => {
                let named = xml.text_along(&["constraint"]).unwrap_or_default();
                self.code(xml, named, root)
            }
            _ if is_ranged(kind) => {
                let all = self.ranged(xml, kind);
                all.into_iter().next().unwrap_or_default()
            }
            other => {
                self.unknown(xml, &format!("a constraint of type `{other}`"));
                Constraint::Open
            }
        }
    }

    /// Returns the constraints behind the first one of a value that may meet any of several: codes,
    /// ranges, dates, or texts with an expression among them.
    pub(super) fn further_constraints(&mut self, xml: Xml<'d>, root: usize) -> Vec<Constraint> {
        let kind = kind_of(xml);
        if xml.all("constraint").nth(1).is_none() {
            return Vec::new();
        }
        let all = match kind {
            "C_STRING" => self.texts(xml),
            "C_TERMINOLOGY_CODE" => {
                let codes = xml.all("constraint").map(Xml::text);
                codes.map(|named| self.code(xml, named, root)).collect()
            }
            _ if is_ranged(kind) => self.ranged(xml, kind),
            _ => Vec::new(),
        };
        all.into_iter().skip(1).collect()
    }

    /// Reads the alternatives of a number, date, time or duration: one list of numbers, or the
    /// ranges.
    fn ranged(&mut self, xml: Xml<'d>, kind: &str) -> Vec<Constraint> {
        match (kind, points(xml), points(xml)) {
            ("C_INTEGER", Some(list), _) => {
                return vec![Constraint::Integer { range: None, list }];
            }
            ("C_REAL", _, Some(list)) => return vec![Constraint::Real { range: None, list }],
            _ => {}
        }
        let integer = |range| Constraint::Integer {
            range,
            list: Vec::new(),
        };
        let real = |range| Constraint::Real {
            range,
            list: Vec::new(),
        };
        let temporal = match kind {
            "C_DATE" => TemporalKind::Date,
            "C_TIME" => TemporalKind::Time,
            "C_DATE_TIME" => TemporalKind::DateTime,
            "C_DURATION" => TemporalKind::Duration,
            _ if kind == "C_REAL" => return self.ranges(xml).into_iter().map(real).collect(),
            _ => return self.ranges(xml).into_iter().map(integer).collect(),
        };
        let pattern = xml
            .text_along(&["pattern_constraint"])
            .or(xml.attribute("pattern_constraint"))
            .filter(|p| !p.is_empty());
        let ranges: Vec<Option<Interval<String>>> = self.ranges(xml);
        let read = ranges.iter().flatten();
        for limit in read.flat_map(|range| range.unreadable(temporal)) {
            self.unknown(xml, &format!("the limit `{limit}`"));
        }
        let constraint = |range| Constraint::Temporal {
            kind: temporal,
            pattern: pattern.map(str::to_owned),
            range,
            fraction: Validity::Optional,
            zone: Validity::Optional,
        };
        ranges.into_iter().map(constraint).collect()
    }

    /// Reads a list of texts, or the first of several alternatives.
    fn text(&mut self, xml: Xml<'d>) -> Constraint {
        let mut all = self.texts(xml).into_iter();
        all.next().unwrap_or(Constraint::Text {
            pattern: None,
            list: Vec::new(),
            open: false,
        })
    }

    /// Reads the alternatives of a text: the listed texts, and each expression between slashes.
    fn texts(&mut self, xml: Xml<'d>) -> Vec<Constraint> {
        let written = || xml.all("constraint").map(Xml::text);
        let list: Vec<String> = written()
            .filter(|text| expression(text).is_none())
            .map(str::to_owned)
            .collect();
        let constraint = |pattern, list| Constraint::Text {
            pattern,
            list,
            open: false,
        };
        let mut all = Vec::new();
        if !list.is_empty() {
            all.push(constraint(None, list));
        }
        for source in written().filter_map(expression) {
            match self.meter.compile(xml, source) {
                Some(pattern) => all.push(constraint(Some(pattern), Vec::new())),
                None => {
                    // Any text may match the expression, so none can be refused.
                    self.unknown(xml, &format!("the expression `{source}`"));
                    return vec![constraint(None, Vec::new())];
                }
            }
        }
        all
    }

    /// Reads a code of the archetype (`at5`), a value set (`ac1`), codes of a terminology
    /// (`openehr::433`), or the codes that are bound to one of the former (`at5@snomed_ct`).
    fn code(&mut self, xml: Xml<'d>, named: &str, root: usize) -> Constraint {
        let open = status(xml).is_some_and(|status| status != "required" && status != "0");
        if named.is_empty() {
            return Constraint::Open;
        }
        let root = self.roots.get(root);
        let sets = root.and_then(|root| self.sets.get(&root.archetype_id));
        let members = |code: &str| sets.and_then(|sets| sets.get(code)).cloned();
        if let Some((code, terminology)) = named.split_once('@') {
            let bindings = root.map_or(&[] as &[_], |root| root.bindings.as_slice());
            let members = members(code).unwrap_or_default();
            let found = operational(code, terminology, &members, bindings);
            return found.unwrap_or_else(|| {
                self.unknown(xml, &format!("the code `{named}`, which is not bound,"));
                Constraint::Open
            });
        }
        let (terminology, codes) = match (named.split_once("::"), members(named)) {
            (Some((terminology, codes)), _) => {
                let codes = codes.split(',').map(|code| code.trim().to_owned());
                (terminology, codes.filter(|code| !code.is_empty()).collect())
            }
            (None, Some(members)) => ("local", members),
            (None, None) if named.starts_with("ac") => {
                return Constraint::CodeSet {
                    reference: named.to_owned(),
                };
            }
            (None, None) => ("local", vec![named.to_owned()]),
        };
        Constraint::Code {
            terminology: terminology.to_owned(),
            codes,
            open,
        }
    }

    /// Reads the ranges of a value; one absent range, if it has none. A lower limit alone, without
    /// `upper_unbounded`, is a single value.
    fn ranges<T: TextForm + Clone>(&mut self, xml: Xml<'d>) -> Vec<Option<Interval<T>>> {
        let mut all = Vec::new();
        for written in xml.all("constraint") {
            let mut range = self.interval::<T>(written);
            if let Some(range) = range.as_mut().filter(|r| r.upper.is_none())
                && is_point(written)
            {
                range.upper.clone_from(&range.lower);
            }
            all.push(range);
        }
        if all.is_empty() {
            all.push(None);
        }
        all
    }

    /// Reads a slot. If one of its rules is not understood, any archetype is permitted.
    ///
    /// Source: ADL 2, Formal Semantics of include and exclude Constraints.
    fn slot(&mut self, xml: Xml<'d>) -> Constraint {
        let includes = self.rules(xml, "includes");
        let excludes = self.rules(xml, "excludes");
        let rules = includes.zip(excludes);
        let (mut includes, mut excludes) = rules.unwrap_or_default();
        let (any_included, any_excluded) =
            (includes.iter().any(is_any), excludes.iter().any(is_any));
        // A side alone recommends, unless it is that of any archetype.
        if excludes.is_empty() && !includes.is_empty() && !any_included {
            includes.extend(self.meter.compile(xml, ".*"));
        } else if includes.is_empty() && !any_excluded {
            excludes.clear();
        }
        Constraint::Slot { includes, excludes }
    }

    pub(super) fn interval<T: TextForm>(&mut self, xml: Xml<'d>) -> Option<Interval<T>> {
        let lower = self.limit(xml, "lower", "lower_unbounded");
        let upper = self.limit(xml, "upper", "upper_unbounded");
        let is_bounded = lower.is_some() || upper.is_some();
        is_bounded.then(|| Interval {
            lower,
            upper,
            lower_included: self.flag(xml, "lower_included").unwrap_or(true),
            upper_included: self.flag(xml, "upper_included").unwrap_or(true),
        })
    }

    /// Reads a limit of an interval. A limit beside `unbounded` is ignored.
    fn limit<T: TextForm>(&mut self, xml: Xml<'d>, name: &str, unbounded: &str) -> Option<T> {
        let is_unbounded = self.flag(xml, unbounded).unwrap_or(false);
        let sent = xml.text_along(&[name]).or_else(|| xml.attribute(name));
        let sent = sent.filter(|t| !t.is_empty() && !is_unbounded)?;
        let read = T::from_text(sent);
        if read.is_none() {
            self.unknown(xml, &format!("the limit `{sent}`"));
        }
        read
    }

    /// Reads a value of the type `xs:boolean`, an attribute or a child element. An empty one counts
    /// as absent, and an unreadable one as an error.
    pub(super) fn flag(&mut self, xml: Xml<'d>, name: &str) -> Option<bool> {
        let written = said(xml, name)?;
        let read = truth(written);
        if read.is_none() && self.failed.is_none() {
            let message = format!("`{name}` is `{written}`, expected a boolean");
            let problem = Diagnostic::error("TPL0305", xml.span(), message);
            self.failed = Some(problem.with_help("write `true` or `false`"));
        }
        read
    }

    fn rules(&mut self, slot: Xml<'d>, side: &'d str) -> Option<Vec<Pattern>> {
        let rules = rules(slot, side, &mut self.meter);
        let unknown = |at| self.unknown(at, "a rule of a slot");
        rules.map_err(unknown).ok()
    }
}

/// The class of a reference to another object of the definition.
pub(super) const PROXY: &str = "C_COMPLEX_OBJECT_PROXY";

/// Returns whether the values of a kind of constraint are ordered.
fn is_ranged(kind: &str) -> bool {
    let kinds = [
        "C_INTEGER",
        "C_REAL",
        "C_DATE",
        "C_TIME",
        "C_DATE_TIME",
        "C_DURATION",
    ];
    kinds.contains(&kind)
}

/// Returns the constraint status of a code, such as `extensible`.
fn status<'d>(xml: Xml<'d>) -> Option<&'d str> {
    let status = xml.text_along(&["constraint_status"]);
    status.filter(|status| !status.is_empty())
}

/// Returns whether a range is one value: equal limits, or a lower limit without `upper_unbounded`.
fn is_point(range: Xml<'_>) -> bool {
    match (said(range, "lower"), said(range, "upper")) {
        (Some(_), None) => said(range, "upper_unbounded").and_then(truth) != Some(true),
        (lower, upper) => lower.is_some() && lower == upper,
    }
}

/// Returns the text of an attribute or child element, unless it is empty.
fn said<'d>(xml: Xml<'d>, name: &str) -> Option<&'d str> {
    let text = xml.attribute(name).or_else(|| xml.text_along(&[name]));
    text.filter(|text| !text.is_empty())
}

/// Returns the regular expression between slashes.
fn expression(text: &str) -> Option<&str> {
    text.strip_prefix('/').and_then(|t| t.strip_suffix('/'))
}

/// Reads the permitted booleans: both, if none is listed.
fn boolean(xml: Xml<'_>) -> Constraint {
    let allows = |value: bool| {
        let mut listed = xml.all("constraint");
        xml.child("constraint").is_none() || listed.any(|c| truth(c.text()) == Some(value))
    };
    Constraint::Boolean {
        true_valid: allows(true),
        false_valid: allows(false),
    }
}

/// Reads several single numbers. Returns `None` for one range, or if any range is not a single
/// number.
fn points<T: TextForm>(xml: Xml<'_>) -> Option<Vec<T>> {
    let all: Vec<Xml<'_>> = xml.all("constraint").collect();
    let number = |range: &Xml<'_>| {
        range
            .text_along(&["lower"])
            .filter(|_| is_point(*range))
            .and_then(T::from_text)
    };
    if all.len() < 2 {
        None
    } else {
        all.iter().map(number).collect()
    }
}
