//! The inputs of form fields at a node: units, ranges and lists of codes.

use super::{JsonText, WebNode};
use crate::tree::{Constraint, Interval, Leaves, Node, QuantityItem, Template};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::exact::Exact;
use aqlite_rm::number;
use aqlite_rm::order;
use aqlite_rm::terminology;
use aqlite_rm::time::DurationParts;

mod parts;

use parts::*;
pub(super) use parts::{localized, write_bindings};

/// The kinds of proportion by number.
const PROPORTIONS: [&str; 5] = [
    "ratio",
    "unitary",
    "percent",
    "fraction",
    "integer_fraction",
];

/// A field of a duration.
#[derive(Clone, Copy)]
pub(crate) struct DurationField {
    pub name: &'static str,
    /// The letter behind its number.
    pub letter: char,
    /// Whether it follows the `T`.
    pub is_clock: bool,
}

impl DurationField {
    const fn new(name: &'static str, letter: char, is_clock: bool) -> DurationField {
        DurationField {
            name,
            letter,
            is_clock,
        }
    }
}

/// The fields of a duration in the order of its text. A form with a pattern has the same order.
pub(crate) const DURATION_FIELDS: [DurationField; 7] = [
    DurationField::new("year", 'Y', false),
    DurationField::new("month", 'M', false),
    DurationField::new("week", 'W', false),
    DurationField::new("day", 'D', false),
    DurationField::new("hour", 'H', true),
    DurationField::new("minute", 'M', true),
    DurationField::new("second", 'S', true),
];

/// The order of the fields of a duration without a pattern: the day precedes the week.
const OPEN_ORDER: [usize; 7] = [0, 1, 3, 2, 4, 5, 6];

/// The text fields of classes, each with the attribute whose constraint applies.
const PLAIN: [(Cls, &[(&str, &str)]); 4] = [
    (
        Cls::DV_IDENTIFIER,
        &[
            ("id", "id"),
            ("type", "type"),
            ("issuer", "issuer"),
            ("assigner", "assigner"),
        ],
    ),
    (
        Cls::DV_PARSABLE,
        &[("value", "value"), ("formalism", "formalism")],
    ),
    (Cls::PARTY_PROXY, &PARTY),
    (Cls::PARTY_IDENTIFIED, &PARTY),
];

/// The fields of a party.
const PARTY: [(&str, &str); 4] = [
    ("id", "external_ref/id/value"),
    ("id_scheme", "external_ref/id/scheme"),
    ("id_namespace", "external_ref/namespace"),
    ("name", "name"),
];

/// Writes the member `inputs` of a node that is a value. `default` has the leaves of the value that
/// the template proposes.
pub(super) fn write(
    out: &mut JsonText,
    template: &Template,
    web: &WebNode,
    parent: Option<&WebNode>,
    default: Option<&Leaves>,
) {
    let plain = PLAIN.iter().find(|(class, _)| *class == web.class);
    let plain = plain.map(|(_, fields)| *fields);
    if has_inputs(web, plain.is_some()) {
        let mut form = InputWriter {
            out,
            template,
            web,
            default,
        };
        form.out.key("inputs");
        form.out.open('[');
        form.inputs(plain, parent);
        form.out.close(']');
    }
}

/// Returns whether a node has fields of its own: it is a value, and its codes are in the template.
fn has_inputs(web: &WebNode, is_plain: bool) -> bool {
    if !web.children.is_empty() || web.class.is_a(Cls::CODE_PHRASE) {
        return false;
    }
    let is_value = web.class.is_a(Cls::DATA_VALUE)
        && web.class != Cls::DV_INTERVAL
        && web.class != Cls::DATA_VALUE;
    (is_plain || is_value || web.class.is_primitive()) && (!is_elsewhere(web) || web.has_other)
}

/// Returns the permitted kinds of a proportion by number. All kinds if the template does not
/// constrain them.
pub(crate) fn proportion_kinds(web: &WebNode) -> Vec<i64> {
    let tuples = web.value.iter().flat_map(|node| &node.tuples);
    let cells = tuples.flatten().flatten().filter(|a| a.name == "type");
    let cells = cells.flat_map(|a| &a.children);
    let all: Vec<&Node> = web.constraints_at(&["type"]).chain(cells).collect();
    let permits = |node: &&Node, kind: i64| match &node.constraint {
        Constraint::Integer { list, .. } if !list.is_empty() => list.contains(&kind),
        Constraint::Integer {
            range: Some(range), ..
        } => range.doubles().contains(&(kind as f64)),
        _ => true,
    };
    let is_possible = |kind: &i64| all.is_empty() || all.iter().any(|n| permits(n, *kind));
    (0..5).filter(is_possible).collect()
}

/// Writes the member `proportionTypes`.
pub(super) fn write_proportion_types(out: &mut JsonText, web: &WebNode) {
    if web.class == Cls::DV_PROPORTION {
        let kinds = proportion_kinds(web);
        out.texts(
            "proportionTypes",
            PROPORTIONS
                .iter()
                .enumerate()
                .filter(|(i, _)| kinds.iter().any(|k| usize::try_from(*k) == Ok(*i)))
                .map(|(_, n)| *n),
        );
    }
}

struct InputWriter<'o, 't> {
    out: &'o mut JsonText,
    template: &'t Template,
    web: &'t WebNode,
    default: Option<&'t Leaves>,
}

impl InputWriter<'_, '_> {
    /// Writes one field. `more` adds members besides suffix and type.
    fn field(&mut self, suffix: Option<&str>, kind: &str, more: &mut dyn FnMut(&mut JsonText)) {
        self.out.open('{');
        suffix.iter().for_each(|s| self.out.member("suffix", s));
        self.out.member("type", kind);
        more(self.out);
        self.out.close('}');
    }

    /// Returns the proposed value of a leaf: the default of the template, else the assumed value.
    fn proposal(&self, path: &str) -> Option<&str> {
        let found = match self.default {
            // A default of the template excludes the assumed value, even if it lacks this leaf.
            Some(leaves) => leaf_at(leaves, path),
            None => self.assumed(path),
        };
        found.map(|(_, text)| text.as_str())
    }

    /// Returns the leaf of an assumed value, from whichever node along the path has it.
    fn assumed(&self, path: &str) -> Option<&(String, String)> {
        let names: Vec<&str> = path.split('/').collect();
        (0..=names.len()).find_map(|depth| {
            let (outer, inner) = names.split_at_checked(depth)?;
            let inner = inner.join("/");
            self.web
                .constraints_at(outer)
                .find_map(|node| leaf_at(&node.assumed, &inner))
        })
    }

    /// Writes the fields of a value.
    fn inputs(&mut self, plain: Option<&[(&str, &str)]>, parent: Option<&WebNode>) {
        match (plain, parent) {
            (Some(fields), _) => {
                for (suffix, path) in fields {
                    self.text_field(Some(suffix), path);
                }
            }
            (None, Some(parent)) if parent.class == Cls::ISM_TRANSITION => self.transition(parent),
            _ => self.value(),
        }
    }

    /// Returns the proposal for a text field.
    fn proposed_text(&self, path: &str) -> Option<String> {
        self.proposal(path).map(str::to_owned)
    }

    /// Returns the proposal for a number field, as JSON.
    fn proposed_number(&self, path: &str, is_integral: bool) -> Option<String> {
        let value = Exact::parse(self.proposal(path)?.trim())?;
        value
            .double()
            .is_finite()
            .then(|| number_json(value, is_integral))
    }

    /// Writes a text field with the constraint on its attribute.
    fn text_field(&mut self, suffix: Option<&str>, path: &str) {
        let names: Vec<&str> = path.split('/').collect();
        let web = self.web;
        let own = web.value.as_deref().filter(|_| suffix.is_none());
        let mut constraints = own.into_iter().chain(web.constraints_at(&names));
        let found = constraints.find_map(|n| match &n.constraint {
            Constraint::Text {
                pattern,
                list,
                open,
            } => Some((pattern, list, *open)),
            _ => None,
        });
        let default = self.proposed_text(path);
        let default = default.map(|text| self.with_code(path, text));
        self.field(suffix, "TEXT", &mut |out| {
            let texts = found.map_or(&[][..], |(_, texts, _)| texts);
            if !texts.is_empty() {
                entries(out, texts.iter().map(|t| (t.as_str(), t.as_str())));
            }
            if web.has_other || found.is_some() {
                let is_open = web.has_other || found.is_some_and(|(_, _, open)| open);
                out.raw_member("listOpen", if is_open { "true" } else { "false" });
            }
            if let Some((Some(pattern), ..)) = found {
                validation(out, &mut |out| out.member("pattern", pattern.source()));
            }
            default_text(out, &default);
        });
    }

    /// Returns a proposed coded text for a plain text field, as `terminology::code::text`.
    fn with_code(&self, path: &str, text: String) -> String {
        let code = self
            .proposal("defining_code/code_string")
            .filter(|_| path == "value");
        match (code, self.proposal("defining_code/terminology_id/value")) {
            (Some(code), Some(terminology)) => format!("{terminology}::{code}::{text}"),
            _ => text,
        }
    }

    fn value(&mut self) {
        match self.web.class {
            Cls::DV_CODED_TEXT | Cls::DV_STATE => self.coded(),
            Cls::DV_ORDINAL | Cls::DV_SCALE => self.ordinal(),
            Cls::DV_QUANTITY => self.quantity(),
            Cls::DV_PROPORTION => self.proportion(),
            Cls::DV_DURATION => self.duration(),
            Cls::DV_COUNT => self.count(),
            Cls::DV_BOOLEAN => self.boolean(),
            Cls::DV_DATE => self.temporal("DATE"),
            Cls::DV_TIME => self.temporal("TIME"),
            Cls::DV_DATE_TIME => self.temporal("DATETIME"),
            _ => self.text(),
        }
    }

    fn text(&mut self) {
        self.text_field(None, "value");
        self.other();
    }

    fn coded(&mut self) {
        if is_elsewhere(self.web) {
            return self.field(Some("other"), "TEXT", &mut |out| {
                out.raw_member("listOpen", "true")
            });
        }
        let web = self.web;
        let is_open = web.has_other
            || web
                .constraints_at(&["value"])
                .any(|n| matches!(&n.constraint, Constraint::Text { open: true, .. }));
        let (terminology, codes) = web.displayed_codes().unwrap_or_default();
        if codes.is_empty() {
            self.any_code(terminology, is_open);
        } else {
            self.listed_code(terminology, codes, is_open);
        }
        self.other();
    }

    /// Writes the fields of a coded text whose codes are not listed.
    fn any_code(&mut self, terminology: &str, is_open: bool) {
        let has_other = self.web.has_other;
        for (suffix, path) in [("code", "defining_code/code_string"), ("value", "value")] {
            let default = self.proposed_text(path);
            self.field(Some(suffix), "TEXT", &mut |out| {
                if is_open && (suffix == "code" || !has_other) {
                    out.raw_member("listOpen", "true");
                }
                if !terminology.is_empty() {
                    out.member("terminology", terminology);
                }
                default_text(out, &default);
            });
        }
    }

    /// Writes the field of a coded text with its permitted codes.
    fn listed_code(&mut self, terminology: &str, codes: &[String], is_open: bool) {
        let (web, template) = (self.web, self.template);
        let mut nodes = web.constraints_at(&["defining_code"]);
        let node = nodes.next().or(web.value.as_deref());
        let default = self.proposed_text("defining_code/code_string");
        self.field(Some("code"), "CODED_TEXT", &mut |out| {
            list(out, codes, |out, code| {
                let choice = Choice {
                    template,
                    node,
                    terminology,
                    code,
                };
                choice.write(out, &mut |_| {});
            });
            if is_open {
                out.raw_member("listOpen", "true");
            }
            // The codes of the template itself name no terminology.
            if !matches!(terminology, "" | "local") {
                out.member("terminology", terminology);
            }
            default_text(out, &default);
        });
    }

    fn ordinal(&mut self) {
        let (web, template) = (self.web, self.template);
        let default = self.proposed_text("symbol/defining_code/code_string");
        self.field(None, "CODED_TEXT", &mut |out| {
            default_text(out, &default);
            let Some(node) = web.value.as_deref() else {
                return;
            };
            if let Constraint::Ordinal { list } = &node.constraint
                && !list.is_empty()
            {
                ordinals(out, template, web, (node, list));
            }
        });
        self.other();
    }

    /// Writes the field for a text instead of a code.
    fn other(&mut self) {
        if self.web.has_other {
            self.field(Some("other"), "TEXT", &mut |_| {});
        }
    }

    fn quantity(&mut self) {
        let constraint = self.web.value.as_deref().map(|n| &n.constraint);
        let units = match constraint {
            Some(Constraint::Quantity { list, .. }) => Some(list.as_slice()),
            _ => None,
        };
        let magnitude = self.proposed_number("magnitude", false);
        self.field(Some("magnitude"), "DECIMAL", &mut |out| {
            // With several units, each has limits of its own.
            if let Some([only]) = units {
                limits(out, only);
            }
            default_raw(out, &magnitude);
        });
        self.unit(units);
    }

    /// Writes the field for the unit of a quantity, with the permitted units.
    fn unit(&mut self, units: Option<&[QuantityItem]>) {
        let (template, node) = (self.template, self.web.value.as_deref());
        let default = self.proposed_text("units");
        let kind = if units.is_some() {
            "CODED_TEXT"
        } else {
            "TEXT"
        };
        self.field(Some("unit"), kind, &mut |out| {
            default_text(out, &default);
            let Some(units) = units.filter(|units| !units.is_empty()) else {
                return;
            };
            list(out, units, |out, item| {
                out.open('{');
                out.member("value", &item.units);
                out.member("label", &item.units);
                let labels = localized(template, node, &item.units, false);
                out.map("localizedLabels", &labels);
                limits(out, item);
                out.close('}');
            });
        });
    }

    fn proportion(&mut self) {
        let kinds = proportion_kinds(self.web);
        let is_integral = is_integral(self.web, &kinds);
        // The denominator of a unitary proportion is 1, that of a percentage is 100.
        let fixed: Vec<f64> = kinds
            .iter()
            .filter(|k| matches!(k, 1 | 2))
            .map(|k| if *k == 1 { 1.0 } else { 100.0 })
            .collect();
        self.part_of_proportion("numerator", is_integral, None);
        let fixed = Some(fixed.as_slice()).filter(|fixed| fixed.len() == kinds.len());
        self.part_of_proportion("denominator", is_integral, fixed);
    }

    /// Writes the field for the numerator or denominator. `fixed` are its only possible values.
    fn part_of_proportion(&mut self, name: &str, is_integral: bool, fixed: Option<&[f64]>) {
        let constraint = first_constraint(self.web, name);
        let default = self.proposed_number(name, is_integral);
        let default = default.filter(|_| fixed.is_none());
        let kind = if is_integral { "INTEGER" } else { "DECIMAL" };
        self.field(Some(name), kind, &mut |out| {
            match (fixed, constraint) {
                (Some([only]), _) => validation(out, &mut |out| {
                    range(out, "range", &exactly(*only), is_integral)
                }),
                (Some(several), _) => choices(out, several, is_integral),
                (None, Some(Constraint::Real { range: Some(r), .. })) => {
                    let exact = r.map(|limit| Exact::from(*limit));
                    validation(out, &mut |out| range(out, "range", &exact, is_integral))
                }
                (None, Some(Constraint::Real { list, .. })) if !list.is_empty() => {
                    choices(out, list, is_integral)
                }
                _ => {}
            }
            default_raw(out, &default);
        });
    }

    fn count(&mut self) {
        let found = self
            .web
            .constraints_at(&["magnitude"])
            .find_map(|n| match &n.constraint {
                Constraint::Integer { range, list } => Some((range.as_ref(), list)),
                _ => None,
            });
        let default = self.proposed_number("magnitude", true);
        self.field(None, "INTEGER", &mut |out| {
            if let Some((limits, list)) = &found {
                if !list.is_empty() {
                    let numbers: Vec<String> = list.iter().map(i64::to_string).collect();
                    entries(out, numbers.iter().map(|n| (n.as_str(), n.as_str())));
                }
                let is_limited = |r: &&Interval<Exact>| r.lower.is_some() || r.upper.is_some();
                if let Some(limits) = limits.filter(is_limited) {
                    validation(out, &mut |out| range(out, "range", limits, true));
                }
            }
            default_raw(out, &default);
        });
    }

    fn boolean(&mut self) {
        let only = self
            .web
            .constraints_at(&["value"])
            .find_map(|n| match n.constraint {
                Constraint::Boolean {
                    true_valid,
                    false_valid,
                } if true_valid != false_valid => Some(if true_valid { "true" } else { "false" }),
                _ => None,
            });
        let default = self
            .proposal("value")
            .map(|text| if text == "true" { "true" } else { "false" });
        self.out.open('{');
        self.out.member("type", "BOOLEAN");
        if let Some(only) = only {
            entries(self.out, [(only, only)]);
        }
        default
            .iter()
            .for_each(|value| self.out.raw_member("defaultValue", value));
        self.out.close('}');
    }

    fn temporal(&mut self, kind: &str) {
        let found = temporal_constraint(self.web);
        let default = self.proposed_text("value");
        self.field(None, kind, &mut |out| {
            default_text(out, &default);
            let Some((pattern, limits)) = found else {
                return;
            };
            if pattern.is_none() && limits.is_none() {
                return;
            }
            validation(out, &mut |out| {
                limits.iter().for_each(|limits| text_range(out, limits));
                pattern.iter().for_each(|p| out.member("pattern", p));
            });
        });
    }

    fn duration(&mut self) {
        let (pattern, limits) = temporal_constraint(self.web).unwrap_or_default();
        let pattern = pattern.map(|p| p.split('/').next().unwrap_or(p));
        let limit = |end: Option<&String>| {
            end.and_then(|text| DurationParts::parse(text))
                .unwrap_or_default()
        };
        let least = limit(limits.and_then(|r| r.lower.as_ref()));
        let most = limit(limits.and_then(|r| r.upper.as_ref()));
        let proposed = self.proposal("value").and_then(DurationParts::parse);
        let order = match pattern {
            Some(_) => [0, 1, 2, 3, 4, 5, 6],
            None => OPEN_ORDER,
        };
        for index in order {
            let Some(field) = DURATION_FIELDS.get(index) else {
                continue;
            };
            if pattern.is_none_or(|p| permits(p, field)) {
                let part = |parts: &DurationParts| duration_part(parts, index);
                let limits = (part(&least), part(&most));
                self.part_of_duration(field.name, limits, proposed.as_ref().map(part));
            }
        }
    }

    /// Writes the field for the years, months or another part of a duration. A greatest value of 0
    /// is no limit.
    fn part_of_duration(&mut self, name: &str, (low, high): (i64, i64), default: Option<i64>) {
        let default = default.map(|number| number.to_string());
        self.field(Some(name), "INTEGER", &mut |out| {
            validation(out, &mut |out| {
                out.key("range");
                out.open('{');
                out.member("minOp", ">=");
                out.raw_member("min", &low.to_string());
                if high != 0 {
                    out.member("maxOp", "<=");
                    out.raw_member("max", &high.to_string());
                }
                out.close('}');
            });
            default_raw(out, &default);
        });
    }

    /// Writes the fields of a transition. Its states and careflow steps belong together.
    fn transition(&mut self, parent: &WebNode) {
        match self.web.last_step().map(|s| s.attr) {
            Some(Attr::CURRENT_STATE) => self.current_state(parent),
            Some(Attr::CAREFLOW_STEP) if has_steps(parent) => self.careflow_step(parent),
            _ => self.coded(),
        }
    }

    /// Writes the field for the state, with the states of the transitions; all states if the
    /// template lists none.
    fn current_state(&mut self, parent: &WebNode) {
        let listed = parent.transitions.iter().flat_map(|(_, states)| states);
        let mut states = order::distinct(listed.map(String::as_str));
        if states.is_empty() {
            states = terminology::INSTRUCTION_STATES.codes().collect();
        }
        let pairs: Vec<(&str, &str)> = states
            .iter()
            .map(|s| (*s, terminology::rubric(s).unwrap_or_default()))
            .collect();
        self.field(Some("code"), "CODED_TEXT", &mut |out| {
            entries(out, pairs.iter().copied())
        });
    }

    /// Writes the field for the careflow step, with the states that each step leads to.
    fn careflow_step(&mut self, parent: &WebNode) {
        let template = self.template;
        let root = parent.last_step().map_or(0, |s| s.root);
        let node = Node { root, ..blank() };
        self.field(Some("code"), "CODED_TEXT", &mut |out| {
            let steps = parent.transitions.iter().filter(is_step);
            list(out, steps, |out, (code, states)| {
                let choice = Choice {
                    template,
                    node: Some(&node),
                    terminology: "local",
                    code,
                };
                choice.write(out, &mut |out| {
                    out.texts("currentStates", states.iter().map(String::as_str))
                });
            });
        });
    }
}

/// Returns whether an alternative of a transition has a careflow step.
fn is_step((code, _): &&(String, Vec<String>)) -> bool {
    !code.is_empty()
}

fn has_steps(transition: &WebNode) -> bool {
    transition.transitions.iter().any(|step| is_step(&step))
}

/// Returns the part of a duration with an index of [`DURATION_FIELDS`], 0 if it is absent.
fn duration_part(parts: &DurationParts, index: usize) -> i64 {
    let all = [
        parts.years,
        parts.months,
        parts.weeks,
        parts.days,
        parts.hours,
        parts.minutes,
        parts.seconds,
    ];
    all.get(index).copied().flatten().unwrap_or(0)
}

/// Returns whether the pattern of a duration permits a field.
fn permits(pattern: &str, field: &DurationField) -> bool {
    let (days, clock) = pattern.split_once('T').unwrap_or((pattern, ""));
    let part = if field.is_clock { clock } else { days };
    part.contains(field.letter)
}

/// Returns the leaf at a path, unless it is empty.
fn leaf_at<'l>(leaves: &'l Leaves, path: &str) -> Option<&'l (String, String)> {
    leaves
        .iter()
        .find(|(name, text)| name == path && !text.is_empty())
}

/// Returns the constraint of the first node at an attribute.
fn first_constraint<'w>(web: &'w WebNode, name: &str) -> Option<&'w Constraint> {
    web.constraints_at(&[name]).next().map(|n| &n.constraint)
}

/// Returns whether numerator and denominator are whole numbers: by `is_integral`, by a precision of
/// 0, or because every permitted kind is a fraction.
fn is_integral(web: &WebNode, kinds: &[i64]) -> bool {
    let is_precise = matches!(
        first_constraint(web, "precision"),
        Some(Constraint::Integer { range: Some(r), .. }) if r.upper == Some(0.0.into())
    );
    let is_whole = matches!(
        first_constraint(web, "is_integral"),
        Some(Constraint::Boolean {
            true_valid: true,
            false_valid: false
        })
    );
    is_whole || is_precise || kinds.iter().all(|k| matches!(k, 3 | 4))
}

/// Creates a constraint node without constraints.
pub(crate) fn blank() -> Node {
    Node {
        class: None,
        class_text: String::new(),
        parameter: None,
        node_id: String::new(),
        archetype_id: None,
        occurrences: crate::tree::Multiplicity::ANY,
        root: 0,
        attributes: Vec::new(),
        tuples: Vec::new(),
        constraint: Constraint::Open,
        assumed: Vec::new(),
    }
}
