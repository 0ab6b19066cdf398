//! The inputs of form fields at a node: units, ranges and lists of codes.

use super::{JsonText, WebNode};
use crate::tree::{Constraint, Interval, Leaves, Node, QuantityItem, Template};
use aqlite_rm::class::{Attr, Cls};
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

/// The fields of a duration with a pattern in the order of the form: name, letter, whether it
/// follows the `T`.
const FIELDS: [(&str, char, bool); 7] = [
    ("year", 'Y', false),
    ("month", 'M', false),
    ("week", 'W', false),
    ("day", 'D', false),
    ("hour", 'H', true),
    ("minute", 'M', true),
    ("second", 'S', true),
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
    if !web.children.is_empty() || web.class.is_a(Cls::CODE_PHRASE) {
        return;
    }
    let mut form = InputWriter {
        out,
        template,
        web,
        default,
    };
    let plain = PLAIN.iter().find(|(class, _)| *class == web.class);
    let is_value = web.class.is_a(Cls::DATA_VALUE)
        && web.class != Cls::DV_INTERVAL
        && web.class != Cls::DATA_VALUE;
    if plain.is_none() && !is_value && !web.class.is_primitive()
        || is_elsewhere(web) && !web.has_other
    {
        return;
    }
    form.out.key("inputs");
    form.out.open('[');
    match (plain, parent) {
        (Some((_, fields)), _) => fields
            .iter()
            .for_each(|(suffix, path)| form.text_field(Some(suffix), path)),
        (None, Some(parent)) if parent.class == Cls::ISM_TRANSITION => form.transition(parent),
        _ => form.value(),
    }
    form.out.close(']');
}

/// Returns the permitted kinds of a proportion by number. All kinds if the template does not
/// constrain them.
pub(crate) fn proportion_kinds(web: &WebNode) -> Vec<i64> {
    let listed = web
        .constraints_at(&["type"])
        .find_map(|n| match &n.constraint {
            Constraint::Integer { list, .. } if !list.is_empty() => Some(list.clone()),
            _ => None,
        });
    listed.unwrap_or_else(|| (0..5).collect())
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
        let of = |leaves: &'_ Leaves, path: &str| {
            leaves
                .iter()
                .position(|(name, text)| name == path && !text.is_empty())
        };
        let own = self
            .default
            .and_then(|leaves| leaves.get(of(leaves, path)?));
        let names: Vec<&str> = path.split('/').collect();
        let assumed = || {
            (0..=names.len()).find_map(|depth| {
                let (outer, inner) = names.split_at_checked(depth)?;
                let inner = inner.join("/");
                self.web
                    .constraints_at(outer)
                    .find_map(|node| node.assumed.get(of(&node.assumed, &inner)?))
            })
        };
        // A default of the template excludes the assumed value, even if it lacks this leaf.
        let found = if self.default.is_some() {
            own
        } else {
            assumed()
        };
        found.map(|(_, text)| text.as_str())
    }

    /// Returns the proposal for a text field.
    fn proposed_text(&self, path: &str) -> Option<String> {
        self.proposal(path).map(str::to_owned)
    }

    /// Returns the proposal for a number field, as JSON.
    fn proposed_number(&self, path: &str, is_integral: bool) -> Option<String> {
        let value = number::parse(self.proposal(path)?.trim())?;
        Some(if is_integral {
            number::fixed(value, 0)
        } else {
            serde_json::Value::from(value).to_string()
        })
    }

    /// Writes a text field with the constraint on its attribute.
    fn text_field(&mut self, suffix: Option<&str>, path: &str) {
        let names: Vec<&str> = path.split('/').collect();
        let own = self
            .web
            .value
            .as_deref()
            .filter(|_| suffix.is_none())
            .into_iter();
        let found = own
            .chain(self.web.constraints_at(&names))
            .find_map(|n| match &n.constraint {
                Constraint::Text {
                    pattern,
                    list,
                    open,
                } => Some((pattern, list, *open)),
                _ => None,
            });
        let default = self
            .proposed_text(path)
            .map(|text| self.with_code(path, text));
        self.field(suffix, "TEXT", &mut |out| {
            if let Some((pattern, list, open)) = found {
                if !list.is_empty() {
                    entries(out, list.iter().map(|t| (t.as_str(), t.as_str())));
                }
                out.raw_member("listOpen", if open { "true" } else { "false" });
                if let Some(pattern) = pattern {
                    validation(out, &mut |out| out.member("pattern", pattern.source()));
                }
            }
            default
                .iter()
                .for_each(|text| out.member("defaultValue", text));
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
    }

    fn coded(&mut self) {
        if is_elsewhere(self.web) {
            return self.field(Some("other"), "TEXT", &mut |out| {
                out.raw_member("listOpen", "true")
            });
        }
        let (web, template) = (self.web, self.template);
        let is_open = web.has_other
            || web
                .constraints_at(&["value"])
                .any(|n| matches!(&n.constraint, Constraint::Text { open: true, .. }));
        let (terminology, codes) = web.codes().unwrap_or_default();
        let node = web
            .constraints_at(&["defining_code"])
            .next()
            .or(web.value.as_deref());
        let open = |out: &mut JsonText| {
            if is_open {
                out.raw_member("listOpen", "true");
            }
        };
        if codes.is_empty() {
            for (suffix, path) in [("code", "defining_code/code_string"), ("value", "value")] {
                let default = self.proposed_text(path);
                self.field(Some(suffix), "TEXT", &mut |out| {
                    if suffix == "code" || !web.has_other {
                        open(out);
                    }
                    if !terminology.is_empty() {
                        out.member("terminology", terminology);
                    }
                    default
                        .iter()
                        .for_each(|text| out.member("defaultValue", text));
                });
            }
        } else {
            let default = self.proposed_text("defining_code/code_string");
            self.field(Some("code"), "CODED_TEXT", &mut |out| {
                out.key("list");
                out.open('[');
                for code in codes {
                    let choice = Choice {
                        template,
                        node,
                        terminology,
                        code,
                    };
                    choice.write(out, &mut |_| {});
                }
                out.close(']');
                open(out);
                // The codes of the template itself name no terminology.
                if !matches!(terminology, "" | "local") {
                    out.member("terminology", terminology);
                }
                default
                    .iter()
                    .for_each(|text| out.member("defaultValue", text));
            });
        }
        self.other();
    }

    fn ordinal(&mut self) {
        let (web, template) = (self.web, self.template);
        let key = if web.class == Cls::DV_SCALE {
            "scale"
        } else {
            "ordinal"
        };
        let default = self.proposed_text("symbol/defining_code/code_string");
        self.field(None, "CODED_TEXT", &mut |out| {
            default
                .iter()
                .for_each(|code| out.member("defaultValue", code));
            let Some((node, list)) = web.value.as_deref().and_then(|n| {
                if let Constraint::Ordinal { list } = &n.constraint {
                    Some((n, list))
                } else {
                    None
                }
            }) else {
                return;
            };
            if list.is_empty() {
                return;
            }
            out.key("list");
            out.open('[');
            for item in list {
                let choice = Choice {
                    template,
                    node: Some(node),
                    terminology: &item.terminology,
                    code: &item.code,
                };
                choice.write(out, &mut |out| {
                    out.raw_member(key, &number::shortest(item.value))
                });
            }
            out.close(']');
            if web.has_other {
                out.raw_member("listOpen", "true");
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
        let (web, template) = (self.web, self.template);
        let node = web.value.as_deref();
        let list = node.and_then(|n| {
            if let Constraint::Quantity { list, .. } = &n.constraint {
                Some(list.as_slice())
            } else {
                None
            }
        });
        let only = list.and_then(|l| if let [only] = l { Some(only) } else { None });
        let (magnitude, unit) = (
            self.proposed_number("magnitude", false),
            self.proposed_text("units"),
        );
        self.field(Some("magnitude"), "DECIMAL", &mut |out| {
            only.into_iter().for_each(|item| limits(out, item));
            magnitude
                .iter()
                .for_each(|number| out.raw_member("defaultValue", number));
        });
        self.field(
            Some("unit"),
            if list.is_some() { "CODED_TEXT" } else { "TEXT" },
            &mut |out| {
                unit.iter()
                    .for_each(|unit| out.member("defaultValue", unit));
                let Some(list) = list.filter(|l| !l.is_empty()) else {
                    return;
                };
                out.key("list");
                out.open('[');
                for item in list {
                    out.open('{');
                    out.member("value", &item.units);
                    out.member("label", &item.units);
                    out.map(
                        "localizedLabels",
                        &localized(template, node, &item.units, false),
                    );
                    limits(out, item);
                    out.close('}');
                }
                out.close(']');
            },
        );
    }

    fn proportion(&mut self) {
        let web = self.web;
        let kinds = proportion_kinds(web);
        let flags = |name: &'static str| web.constraints_at(&[name]).next().map(|n| &n.constraint);
        let is_precise = matches!(flags("precision"), Some(Constraint::Integer { range: Some(r), .. }) if r.upper == Some(0.0));
        let is_whole = matches!(
            flags("is_integral"),
            Some(Constraint::Boolean {
                true_valid: true,
                false_valid: false
            })
        );
        let is_integral = is_whole || is_precise || kinds.iter().all(|k| matches!(k, 3 | 4));
        let kind = if is_integral { "INTEGER" } else { "DECIMAL" };
        let fixed: Vec<f64> = kinds
            .iter()
            .filter(|k| matches!(k, 1 | 2))
            .map(|k| if *k == 1 { 1.0 } else { 100.0 })
            .collect();
        for suffix in ["numerator", "denominator"] {
            let is_fixed = suffix == "denominator" && fixed.len() == kinds.len();
            let constraint = flags(suffix);
            let default = self
                .proposed_number(suffix, is_integral)
                .filter(|_| !is_fixed);
            self.field(Some(suffix), kind, &mut |out| {
                match (is_fixed, fixed.as_slice()) {
                    (true, [only]) => validation(out, &mut |out| {
                        range(out, "range", &exactly(*only), is_integral)
                    }),
                    (true, several) => choices(out, several, is_integral),
                    _ => match constraint {
                        Some(Constraint::Real { range: Some(r), .. }) => {
                            validation(out, &mut |out| range(out, "range", r, is_integral))
                        }
                        Some(Constraint::Real { list, .. }) if !list.is_empty() => {
                            choices(out, list, is_integral)
                        }
                        _ => {}
                    },
                }
                default
                    .iter()
                    .for_each(|number| out.raw_member("defaultValue", number));
            });
        }
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
            if let Some((limits, list)) = found {
                if !list.is_empty() {
                    let numbers: Vec<String> = list.iter().map(i64::to_string).collect();
                    entries(out, numbers.iter().map(|n| (n.as_str(), n.as_str())));
                }
                if let Some(limits) = limits.filter(|r| r.lower.is_some() || r.upper.is_some()) {
                    validation(out, &mut |out| range(out, "range", limits, true));
                }
            }
            default
                .iter()
                .for_each(|number| out.raw_member("defaultValue", number));
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
            default
                .iter()
                .for_each(|text| out.member("defaultValue", text));
            let Some((pattern, limits)) = found else {
                return;
            };
            if pattern.is_none() && limits.is_none() {
                return;
            }
            validation(out, &mut |out| {
                if let Some(limits) = limits {
                    out.key("range");
                    out.open('{');
                    if let Some(lower) = &limits.lower {
                        out.member("minOp", if limits.lower_included { ">=" } else { ">" });
                        out.member("min", lower);
                    }
                    if let Some(upper) = &limits.upper {
                        out.member("maxOp", if limits.upper_included { "<=" } else { "<" });
                        out.member("max", upper);
                    }
                    out.close('}');
                }
                pattern.iter().for_each(|p| out.member("pattern", p));
            });
        });
    }

    fn duration(&mut self) {
        let found = temporal_constraint(self.web);
        let pattern = found
            .and_then(|(p, _)| p)
            .map(|p| p.split('/').next().unwrap_or(p));
        let limit = |end: Option<&String>| {
            end.and_then(|text| DurationParts::parse(text))
                .unwrap_or_default()
        };
        let range_of = found.and_then(|(_, r)| r);
        let (least, most) = (
            limit(range_of.and_then(|r| r.lower.as_ref())),
            limit(range_of.and_then(|r| r.upper.as_ref())),
        );
        let proposed = self.proposal("value").and_then(DurationParts::parse);
        let order = if pattern.is_some() {
            [0, 1, 2, 3, 4, 5, 6]
        } else {
            OPEN_ORDER
        };
        for (index, (name, letter, is_clock)) in order
            .into_iter()
            .filter_map(|index| Some((index, FIELDS.get(index)?)))
        {
            let allows = |pattern: &str| {
                let (days, clock) = pattern.split_once('T').unwrap_or((pattern, ""));
                if *is_clock { clock } else { days }.contains(*letter)
            };
            if pattern.is_some_and(|p| !allows(p)) {
                continue;
            }
            let (low, high) = (duration_part(&least, index), duration_part(&most, index));
            let default = proposed
                .as_ref()
                .map(|parts| duration_part(parts, index).to_string());
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
                default
                    .iter()
                    .for_each(|number| out.raw_member("defaultValue", number));
            });
        }
    }

    /// Writes the fields of a transition. Its states and careflow steps belong together.
    fn transition(&mut self, parent: &WebNode) {
        let template = self.template;
        let root = parent.last_step().map_or(0, |s| s.root);
        match self.web.last_step().map(|s| s.attr) {
            Some(Attr::CURRENT_STATE) => {
                let mut states = order::distinct(
                    parent
                        .transitions
                        .iter()
                        .flat_map(|(_, states)| states)
                        .map(String::as_str),
                );
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
            Some(Attr::CAREFLOW_STEP) if !parent.transitions.is_empty() => {
                let node = Node { root, ..blank() };
                self.field(Some("code"), "CODED_TEXT", &mut |out| {
                    out.key("list");
                    out.open('[');
                    for (code, states) in &parent.transitions {
                        let choice = Choice {
                            template,
                            node: Some(&node),
                            terminology: "local",
                            code,
                        };
                        choice.write(out, &mut |out| {
                            out.texts("currentStates", states.iter().map(String::as_str))
                        });
                    }
                    out.close(']');
                });
            }
            _ => self.coded(),
        }
    }
}

/// Returns the part of a duration with an index of [`FIELDS`], 0 if it is absent.
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
        constraint: Constraint::Open,
        assumed: Vec::new(),
    }
}
