//! Parts of inputs: codes to choose from, ranges, and texts in several languages.

use super::*;

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
        let term = self
            .node
            .and_then(|n| self.template.term(n, &self.template.language, &key));
        // The known rubrics of openEHR codes are English and need no term of the template.
        let rubric = terminology::rubric(self.code).filter(|_| self.terminology == "openehr");
        let label = rubric.or(term.map(|t| t.text.as_str())).unwrap_or_default();
        out.open('{');
        out.member("value", self.code);
        out.member("label", label);
        match rubric {
            Some(rubric) => out.map("localizedLabels", &[("en", rubric)]),
            None => {
                out.map(
                    "localizedLabels",
                    &localized(self.template, self.node, &key, false),
                );
                out.map(
                    "localizedDescriptions",
                    &localized(self.template, self.node, &key, true),
                );
            }
        }
        if let Some(node) = self.node.filter(|_| rubric.is_none()) {
            write_bindings(out, self.template, node.root, self.code);
        }
        more(out);
        out.close('}');
    }
}

/// Writes the member `termBindings`: the codes of other terminologies for a code of an archetype.
pub(in crate::web) fn write_bindings(
    out: &mut JsonText,
    template: &Template,
    root: usize,
    code: &str,
) {
    let bindings = template
        .roots
        .get(root)
        .map(|r| r.bindings.as_slice())
        .unwrap_or_default();
    let bound: Vec<_> = bindings
        .iter()
        .filter(|binding| !code.is_empty() && binding.code == code)
        .collect();
    if bound.is_empty() {
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

pub(super) fn validation(out: &mut JsonText, fill: &mut dyn FnMut(&mut JsonText)) {
    out.key("validation");
    out.open('{');
    fill(out);
    out.close('}');
}

pub(super) fn exactly(value: f64) -> Interval<f64> {
    Interval {
        lower: Some(value),
        upper: Some(value),
        lower_included: true,
        upper_included: true,
    }
}

/// Writes the constraints of a unit.
pub(super) fn limits(out: &mut JsonText, item: &QuantityItem) {
    let is_bounded = |i: &&Interval<f64>| i.lower.is_some() || i.upper.is_some();
    let (magnitude, precision) = (
        item.magnitude.as_ref().filter(is_bounded),
        item.precision.as_ref().filter(is_bounded),
    );
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
pub(super) fn range(out: &mut JsonText, name: &str, interval: &Interval<f64>, is_integral: bool) {
    let number = |value: f64| {
        if is_integral {
            number::fixed(value, 0)
        } else {
            serde_json::Value::from(value).to_string()
        }
    };
    let above = |lower: f64| {
        if interval.lower_included {
            lower.ceil()
        } else {
            // The next whole number above an excluded limit, also if the limit is a fraction.
            lower.floor() + 1.0
        }
    };
    let below = |upper: f64| {
        if interval.upper_included {
            upper.floor()
        } else {
            upper.ceil() - 1.0
        }
    };
    out.key(name);
    out.open('{');
    if let Some(lower) = interval.lower {
        out.member(
            "minOp",
            // For whole numbers the limit is moved inside, so it is always included.
            if interval.lower_included || is_integral {
                ">="
            } else {
                ">"
            },
        );
        out.raw_member(
            "min",
            &number(if is_integral { above(lower) } else { lower }),
        );
    }
    if let Some(upper) = interval.upper {
        out.member(
            "maxOp",
            if interval.upper_included || is_integral {
                "<="
            } else {
                "<"
            },
        );
        out.raw_member(
            "max",
            &number(if is_integral { below(upper) } else { upper }),
        );
    }
    out.close('}');
}

/// Writes a list of permitted numbers.
pub(super) fn choices(out: &mut JsonText, numbers: &[f64], is_integral: bool) {
    out.key("list");
    out.open('[');
    for number in numbers {
        out.open('{');
        out.member("value", &number::shortest(*number));
        out.member("label", &number::shortest(*number));
        validation(out, &mut |out| {
            range(out, "range", &exactly(*number), is_integral)
        });
        out.close('}');
    }
    out.close(']');
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
