//! Parts of inputs: codes to choose from, ranges, and texts in several languages.

use super::*;
use crate::tree::{Binding, OrdinalItem};

/// A code that users can choose.
pub(super) struct Choice<'t> {
    pub template: &'t Template,
    pub node: Option<&'t Node>,
    pub terminology: &'t str,
    pub code: &'t str,
}

impl Choice<'_> {
    pub fn write(&self, out: &mut JsonText, more: &mut dyn FnMut(&mut JsonText)) {
        let key = if matches!(self.terminology, "local" | "openehr" | "") {
            self.code.to_owned()
        } else {
            format!("{}::{}", self.terminology, self.code)
        };
        // Some tools define the terms of external codes without the terminology.
        let has_term = |key: &str| {
            let term = |node| self.template.term(node, &self.template.language, key);
            self.node.and_then(term).is_some()
        };
        let key = if has_term(&key) {
            key
        } else {
            self.code.to_owned()
        };
        // The known rubrics of openEHR codes are English and need no term of the template.
        let rubric = terminology::rubric(self.code).filter(|_| self.terminology == "openehr");
        out.open('{');
        out.member("value", self.code);
        match rubric {
            Some(rubric) => {
                out.member("label", rubric);
                out.map("localizedLabels", &[("en", rubric)]);
            }
            None => self.write_term(out, &key),
        }
        more(out);
        out.close('}');
    }

    /// Writes the term of the code in all languages, with its bindings.
    fn write_term(&self, out: &mut JsonText, key: &str) {
        let (template, node) = (self.template, self.node);
        let term = node.and_then(|n| template.term(n, &template.language, key));
        out.member("label", term.map_or("", |t| t.text.as_str()));
        out.map("localizedLabels", &localized(template, node, key, false));
        let descriptions = localized(template, node, key, true);
        out.map("localizedDescriptions", &descriptions);
        if let Some(node) = node {
            write_bindings(out, template, node.root, self.code);
        }
    }
}

/// Writes the member `termBindings`: the codes of other terminologies for a code of an archetype.
pub(in crate::web) fn write_bindings(
    out: &mut JsonText,
    template: &Template,
    root: usize,
    code: &str,
) {
    let root = template.roots.get(root).filter(|_| !code.is_empty());
    let bindings = root.map_or(&[] as &[Binding], |r| &r.bindings);
    let mut bound = bindings.iter().filter(|b| b.code == code).peekable();
    if bound.peek().is_none() {
        return;
    }
    out.key("termBindings");
    out.open('{');
    for binding in bound {
        out.key(&binding.set);
        out.object(&[
            ("value", &binding.target),
            ("terminologyId", &binding.terminology),
        ]);
    }
    out.close('}');
}

/// Returns the texts, or the descriptions, of a code in the languages that have it.
pub(in crate::web) fn localized<'t>(
    template: &'t Template,
    node: Option<&Node>,
    code: &str,
    is_description: bool,
) -> Vec<(&'t str, &'t str)> {
    let Some(root) = node.and_then(|n| template.roots.get(n.root)) else {
        return Vec::new();
    };
    let of = |language: &'t String| {
        let term = root.terms.get(language)?.get(code)?;
        Some((
            language.as_str(),
            if is_description {
                term.description.as_str()
            } else {
                term.text.as_str()
            },
        ))
    };
    template.languages.iter().filter_map(of).collect()
}

pub(super) fn entries<'a>(out: &mut JsonText, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) {
    out.key("list");
    out.open('[');
    for (value, label) in pairs {
        out.open('{');
        out.member("value", value);
        out.member("label", label);
        out.close('}');
    }
    out.close(']');
}

/// Writes the member `list`, with one element by `write` for each item.
pub(super) fn list<'i, T: 'i>(
    out: &mut JsonText,
    items: impl IntoIterator<Item = &'i T>,
    mut write: impl FnMut(&mut JsonText, &'i T),
) {
    out.key("list");
    out.open('[');
    items.into_iter().for_each(|item| write(out, item));
    out.close(']');
}

/// Writes the pairs of value and symbol of an ordinal or a scale.
pub(super) fn ordinals(
    out: &mut JsonText,
    template: &Template,
    web: &WebNode,
    (node, items): (&Node, &[OrdinalItem]),
) {
    let key = if web.class == Cls::DV_SCALE {
        "scale"
    } else {
        "ordinal"
    };
    list(out, items, |out, item| {
        let choice = Choice {
            template,
            node: Some(node),
            terminology: &item.terminology,
            code: &item.code,
        };
        let value = number::shortest(item.value);
        choice.write(out, &mut |out| out.raw_member(key, &value));
    });
    if web.has_other {
        out.raw_member("listOpen", "true");
    }
}

/// Writes the member `defaultValue` of a text, if a value is proposed.
pub(super) fn default_text(out: &mut JsonText, proposed: &Option<String>) {
    if let Some(text) = proposed {
        out.member("defaultValue", text);
    }
}

/// Writes the member `defaultValue` of a number, if a value is proposed.
pub(super) fn default_raw(out: &mut JsonText, proposed: &Option<String>) {
    if let Some(number) = proposed {
        out.raw_member("defaultValue", number);
    }
}

pub(super) fn validation(out: &mut JsonText, fill: &mut dyn FnMut(&mut JsonText)) {
    out.key("validation");
    out.open('{');
    fill(out);
    out.close('}');
}

pub(super) fn exactly(value: f64) -> Interval<Exact> {
    Interval {
        lower: Some(value.into()),
        upper: Some(value.into()),
        lower_included: true,
        upper_included: true,
    }
}

/// Writes the constraints of a unit.
pub(super) fn limits(out: &mut JsonText, item: &QuantityItem) {
    let is_bounded = |i: &&Interval<f64>| i.lower.is_some() || i.upper.is_some();
    let bounded = |range: &Option<Interval<f64>>| {
        let range = range.as_ref().filter(is_bounded)?;
        Some(range.map(|limit| Exact::from(*limit)))
    };
    let (magnitude, precision) = (bounded(&item.magnitude), bounded(&item.precision));
    if magnitude.is_none() && precision.is_none() {
        return;
    }
    validation(out, &mut |out| {
        magnitude.iter().for_each(|i| range(out, "range", i, false));
        precision
            .iter()
            .for_each(|i| range(out, "precision", i, true));
    });
}

/// Writes a range. A range of whole numbers includes its limits: `> 4` becomes `>= 5`.
pub(super) fn range(out: &mut JsonText, name: &str, interval: &Interval<Exact>, is_integral: bool) {
    let interval = match is_integral {
        true => &whole_range(interval),
        false => interval,
    };
    out.key(name);
    out.open('{');
    if let Some(lower) = interval.lower {
        out.member("minOp", if interval.lower_included { ">=" } else { ">" });
        out.raw_member("min", &number_json(lower, is_integral));
    }
    if let Some(upper) = interval.upper {
        out.member("maxOp", if interval.upper_included { "<=" } else { "<" });
        out.raw_member("max", &number_json(upper, is_integral));
    }
    out.close('}');
}

/// Returns a number as JSON. One of an integer type has all digits that were written, and no point.
pub(super) fn number_json(number: Exact, is_integral: bool) -> String {
    match is_integral {
        true => number.round(0).without_sign_of_zero().text(),
        false => serde_json::Value::from(number.double()).to_string(),
    }
}

/// Returns the range of the whole numbers in an interval, with its limits.
fn whole_range(interval: &Interval<Exact>) -> Interval<Exact> {
    let lower = |lower: Exact| match interval.lower_included {
        true => lower.ceil(),
        // The next whole number above an excluded limit, also if the limit is a fraction.
        false => lower.whole_above(),
    };
    let upper = |upper: Exact| match interval.upper_included {
        true => upper.floor(),
        false => upper.whole_below(),
    };
    Interval {
        lower: interval.lower.map(lower),
        upper: interval.upper.map(upper),
        lower_included: true,
        upper_included: true,
    }
}

/// Writes the range of a date or time.
pub(super) fn text_range(out: &mut JsonText, limits: &Interval<String>) {
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

/// Writes a list of permitted numbers.
pub(super) fn choices(out: &mut JsonText, numbers: &[f64], is_integral: bool) {
    list(out, numbers, |out, number| {
        out.open('{');
        out.member("value", &number::shortest(*number));
        out.member("label", &number::shortest(*number));
        validation(out, &mut |out| {
            range(out, "range", &exactly(*number), is_integral)
        });
        out.close('}');
    });
}

/// Returns the pattern and the range of a time.
pub(super) fn temporal_constraint(
    web: &WebNode,
) -> Option<(Option<&str>, Option<&Interval<String>>)> {
    let own = web.value.as_deref().into_iter();
    own.chain(web.constraints_at(&["value"]))
        .find_map(|n| match &n.constraint {
            Constraint::Temporal { pattern, range, .. } => {
                Some((pattern.as_deref(), range.as_ref()))
            }
            _ => None,
        })
}

/// Returns whether the codes belong to a value set that the template does not contain.
pub(super) fn is_elsewhere(web: &WebNode) -> bool {
    web.constraints_at(&["defining_code"])
        .any(|n| matches!(&n.constraint, Constraint::CodeSet { reference } if reference.is_empty()))
}
