//! Generation of values: candidates are tried in order, and the first that the validator accepts is
//! used.

use super::super::leaf;
use super::super::tree::{Constraint, Interval, Node, OrdinalItem, QuantityItem, terminology_of};
use super::Draft;
use super::{Generator, Limit, Made, constrained, defaults, is_forbidden};
use aqlite_rm as rm;
use aqlite_rm::class::{Attr, AttrDef, Cls};
use aqlite_rm::diag::Finding;
use aqlite_rm::number::{self, TextForm};
use aqlite_rm::terminology;
use aqlite_rm::time::{Temporal, TemporalKind};
use aqlite_rm::units;

/// The maximum number of candidates for a part of a proportion. All combinations of parts are
/// tried.
const MAX_PART_CANDIDATES: usize = 16;

/// The maximum number of decimals to try.
const DECIMALS: u32 = 6;

/// Creates a proportion from the texts of its parts.
fn new_proportion(
    kind: &str,
    numerator: &str,
    denominator: &str,
    precision: Option<&str>,
) -> Draft {
    let leaf = |class: Cls, text: &str| Draft::leaf(class, text.to_owned());
    let mut draft = Draft::object(Cls::DV_PROPORTION)
        .with(Attr::TYPE, leaf(Cls::INTEGER, kind))
        .with(Attr::NUMERATOR, leaf(Cls::REAL, numerator))
        .with(Attr::DENOMINATOR, leaf(Cls::REAL, denominator));
    if let Some(precision) = precision {
        draft.put(Attr::PRECISION, leaf(Cls::INTEGER, precision));
    }
    draft
}

impl<'t> Generator<'t> {
    /// Generates a text, number or boolean.
    pub(super) fn leaf(&mut self, node: &'t Node, owner: Cls, def: &AttrDef) -> Made {
        let found = self
            .candidates(node, owner, def)
            .into_iter()
            .find(|text| self.is_met(text, node, def));
        match found {
            Some(text) => {
                self.bytes.set(self.bytes.get().saturating_sub(text.len()));
                Ok(Draft::leaf(def.ty, text))
            }
            None => Err(self.problem("no value meets the constraint")),
        }
    }

    /// Returns the first texts that meet a constraint, best first.
    fn texts(&self, node: &Node, owner: Cls, def: &AttrDef) -> Vec<String> {
        self.candidates(node, owner, def)
            .into_iter()
            .filter(|text| self.is_met(text, node, def))
            .take(MAX_PART_CANDIDATES)
            .collect()
    }

    /// Returns whether a text is valid for its type and meets a constraint.
    fn is_met(&self, text: &str, node: &Node, def: &AttrDef) -> bool {
        let is_sound = match (def.ty, &node.constraint) {
            // The validator does not check the range of the type, because the reader of documents
            // does.
            (Cls::INTEGER, _) => text.parse::<i32>().is_ok(),
            (Cls::INTEGER64, _) => text.parse::<i64>().is_ok(),
            (_, Constraint::Temporal { kind, .. }) => Temporal::parse(*kind, text).is_some(),
            _ => !text.is_empty(),
        };
        is_sound && holds(self, Draft::leaf(def.ty, text.to_owned()), def.attr, node)
    }

    fn candidates(&self, node: &Node, owner: Cls, def: &AttrDef) -> Vec<String> {
        let default = || match defaults::leaf(self, owner, def) {
            Draft::Leaf(_, text) => text.into_owned(),
            _ => String::new(),
        };
        match &node.constraint {
            // Listed texts first: they are what the template's author chose.
            Constraint::Text { pattern, list, .. } => {
                let mut texts = list.clone();
                texts.push(default());
                texts.extend(pattern.as_ref().and_then(|p| p.example()));
                texts.extend(pattern.as_ref().map(|p| p.source().to_owned()));
                texts
            }
            Constraint::Boolean { .. } => vec!["true".to_owned(), "false".to_owned()],
            Constraint::Integer { range, list } if list.is_empty() => {
                let doubles = range.as_ref().map(Interval::doubles);
                let mut texts = self.numbers(doubles.as_ref(), 0);
                // A double has fewer digits than an Integer64, so the limits are tried as well.
                let limits = range.iter().flat_map(|range| [range.lower, range.upper]);
                texts.extend(limits.flatten().map(|limit| limit.text()));
                texts
            }
            // Few decimals first, so that examples stay readable.
            Constraint::Real { range, list } if list.is_empty() => (0..=DECIMALS)
                .flat_map(|d| self.numbers(range.as_ref(), d))
                .collect(),
            Constraint::Integer { list, .. } => {
                self.ends(list).iter().map(TextForm::to_text).collect()
            }
            Constraint::Real { list, .. } => {
                self.ends(list).iter().map(TextForm::to_text).collect()
            }
            Constraint::Temporal {
                kind,
                pattern,
                range,
                ..
            } => {
                let mut texts = defaults::times(*kind, self.now, pattern.as_deref());
                let limits = range.iter().flat_map(|r| [&r.lower, &r.upper]).flatten();
                texts.extend(limits.clone().cloned());
                if *kind == TemporalKind::Duration {
                    texts.extend(limits.flat_map(|limit| defaults::in_one_unit(limit)));
                }
                texts
            }
            _ => vec![default()],
        }
    }

    /// Returns the list, reversed for the upper limit of an interval.
    fn ends<T: Clone>(&self, list: &[T]) -> Vec<T> {
        let mut list = list.to_vec();
        if self.limit == Some(Limit::Upper) {
            list.reverse();
        }
        list
    }

    /// Returns candidate numbers for a range: its middle, or its ends for the limits of an
    /// interval.
    fn numbers(&self, range: Option<&Interval<f64>>, decimals: u32) -> Vec<String> {
        let (lower, upper) = range.map_or((None, None), |r| (r.lower, r.upper));
        let step = 10_f64.powi(-i32::try_from(decimals).unwrap_or_default());
        // The middle is the most typical value. The ends are tried next, and a step inside of
        // excluded ends.
        let middle = lower.zip(upper).map(|(l, u)| (l + u) / 2.0);
        let free = if self.limit == Some(Limit::Upper) {
            2.0
        } else {
            1.0
        };
        let low = [lower, lower.map(|l| l + step)];
        let high = [upper, upper.map(|u| u - step)];
        let order = match self.limit {
            None => [[middle, lower], low, high],
            Some(Limit::Lower) => [low, [middle, None], high],
            Some(Limit::Upper) => [high, [middle, lower.map(|l| l + 1.0)], low],
        };
        let found = order
            .into_iter()
            .flatten()
            .flatten()
            .chain([free, 1.0, 0.0]);
        let digits = usize::try_from(decimals).unwrap_or_default();
        let write = |number: f64| {
            let text = number::fixed(number, digits);
            // `-0` and `-0.0` are printed as zero.
            if text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.')) {
                text.trim_start_matches('-').to_owned()
            } else {
                text
            }
        };
        found.map(write).collect()
    }

    /// Generates a quantity with the first unit that can be met, and with the required precision.
    pub(super) fn quantity(&mut self, node: &'t Node, list: &'t [QuantityItem]) -> Made {
        // A magnitude has the decimals of its precision, unless its range has no such number: the
        // precision is that of a display, and constrains no decimals.
        for has_more_decimals in [false, true] {
            for item in list {
                if let Some(draft) = self.quantity_in(node, item, has_more_decimals) {
                    return Ok(draft);
                }
            }
        }
        Err(self.problem("no magnitude meets the range and the precision of any unit"))
    }

    fn quantity_in(
        &self,
        node: &Node,
        item: &QuantityItem,
        has_more_decimals: bool,
    ) -> Option<Draft> {
        let range = item.precision.as_ref();
        let range = range.filter(|p| p.upper.is_none_or(|u| u >= 0.0));
        let is_allowed = |precision: &u32| range.is_none_or(|p| p.contains(&f64::from(*precision)));
        let is_stated = range.is_some_and(|p| p.lower.is_some() || p.upper.is_some());
        for precision in (0..=DECIMALS).filter(is_allowed) {
            let decimals = match has_more_decimals {
                true => precision + 1..=DECIMALS,
                false => precision..=precision,
            };
            for magnitude in decimals.flat_map(|d| self.numbers(item.magnitude.as_ref(), d)) {
                let mut draft = Draft::holding(Cls::DV_QUANTITY, Attr::UNITS, item.units.clone())
                    .with(Attr::MAGNITUDE, Draft::leaf(Cls::REAL, magnitude));
                if is_stated {
                    let precision = Draft::leaf(Cls::INTEGER, precision.to_string());
                    draft.put(Attr::PRECISION, precision);
                }
                if holds(self, draft.clone(), Attr::VALUE, node) {
                    return Some(draft);
                }
            }
        }
        None
    }

    /// Generates a quantity in the first known unit of a property.
    pub(super) fn measured(&mut self, property: &str) -> Draft {
        let unit = units::for_property(property)
            .next()
            .map_or("1", |unit| unit.ucum);
        let magnitude = self.numbers(None, 0).into_iter().next().unwrap_or_default();
        Draft::holding(Cls::DV_QUANTITY, Attr::UNITS, unit)
            .with(Attr::MAGNITUDE, Draft::leaf(Cls::REAL, magnitude))
    }

    /// Generates the first pair of value and symbol.
    pub(super) fn ordinal(&mut self, node: &'t Node, list: &'t [OrdinalItem]) -> Made {
        let class = node
            .class
            .filter(|c| *c == Cls::DV_SCALE)
            .unwrap_or(Cls::DV_ORDINAL);
        let number = class.attr(Attr::VALUE).map_or(Cls::INTEGER, |def| def.ty);
        for item in self.ends(list) {
            let text = self.rubric(Some(node), &item.terminology, &item.code);
            let symbol = Draft::holding(Cls::DV_CODED_TEXT, Attr::VALUE, text).with(
                Attr::DEFINING_CODE,
                Draft::code(item.terminology.clone(), item.code.clone()),
            );
            let draft = Draft::object(class)
                .with(
                    Attr::VALUE,
                    Draft::leaf(number, number::shortest(item.value)),
                )
                .with(Attr::SYMBOL, symbol);
            if holds(self, draft.clone(), Attr::VALUE, node) {
                return Ok(draft);
            }
        }
        Err(self.problem("no pair of value and symbol meets the constraint"))
    }

    /// Returns a CODE_PHRASE with the first permitted code, or with the default code of the
    /// attribute.
    pub(super) fn phrase(&self, terminology: &str, codes: &[String]) -> Draft {
        let (usual, usual_code) = defaults::code(self.at, self.language);
        let is_usual = terminology.is_empty() || terminology == usual;
        let code = match codes.first() {
            Some(code) => code.as_str(),
            None if is_usual => usual_code.as_str(),
            None => "example",
        };
        // A code without a terminology gets that of the attribute.
        let named = if terminology.is_empty() {
            usual.as_str()
        } else {
            terminology
        };
        Draft::code(named.to_owned(), code.to_owned())
    }

    /// Returns the default CODE_PHRASE of an unconstrained attribute.
    pub(super) fn default_phrase(&self) -> Draft {
        self.phrase("", &[])
    }

    /// Returns the terminology of an external value set.
    pub(super) fn code_set(&self, node: &Node, reference: &str) -> String {
        let bound = || {
            let bindings = self
                .template
                .roots
                .get(node.root)
                .map(|r| r.bindings.as_slice())
                .unwrap_or_default();
            bindings
                .iter()
                .find(|binding| binding.code == reference)
                .map(|binding| binding.set.as_str())
        };
        let named = terminology_of(reference).or_else(bound);
        named.unwrap_or_default().to_owned()
    }

    /// Returns the text of a code: from the openEHR terminology or the template, else the display
    /// name, else the code.
    pub(super) fn rubric(&self, node: Option<&Node>, terminology: &str, code: &str) -> String {
        let openehr = Some(code)
            .filter(|_| terminology == "openehr")
            .and_then(terminology::rubric);
        let term = |code: &str| {
            node.and_then(|n| self.template.term(n, self.language, code))
                .map(|t| t.text.trim())
                .filter(|t| !t.is_empty())
        };
        let known = openehr
            .or_else(|| term(code))
            .or_else(|| term(&format!("{terminology}::{code}")));
        let filler = Some(defaults::TEXT).filter(|_| code == "example");
        known.or(self.label).or(filler).unwrap_or(code).to_owned()
    }

    /// Selects the permitted code with the text that the template requires.
    pub(super) fn code_of_text(&self, draft: &mut Draft, node: Option<&Node>) -> Vec<Finding> {
        let text = draft.text_along(&[Attr::VALUE]).unwrap_or_default();
        let children = constrained(node, Attr::DEFINING_CODE)
            .map(|a| a.children.as_slice())
            .unwrap_or_default();
        let allowed = children.iter().filter_map(|c| {
            if let Constraint::Code {
                terminology, codes, ..
            } = &c.constraint
            {
                Some((terminology, codes))
            } else {
                None
            }
        });
        self.spend(children.len());
        let all: Vec<(&str, &str)> = allowed
            .flat_map(|(terminology, codes)| {
                codes
                    .iter()
                    .map(|code| (terminology.as_str(), code.as_str()))
            })
            .collect();
        self.spend(all.len());
        match all
            .iter()
            .find(|(terminology, code)| self.rubric(node, terminology, code) == text)
        {
            Some((terminology, code)) => draft.put(
                Attr::DEFINING_CODE,
                Draft::code((*terminology).to_owned(), (*code).to_owned()),
            ),
            None if all.iter().any(|(terminology, _)| *terminology == "local") => {
                return self.problem("none of the codes has the text that the template asks for");
            }
            None => {}
        }
        Vec::new()
    }

    /// Generates an interval from its minimum to its maximum, unbounded where the template
    /// prohibits a limit.
    pub(super) fn interval(&mut self, node: Option<&'t Node>) -> Made {
        let mut draft = Draft::object(Cls::DV_INTERVAL);
        let lower = (Limit::Lower, Attr::LOWER);
        let upper = (Limit::Upper, Attr::UPPER);
        for ((end, attr), unbounded, included) in [
            (lower, Attr::LOWER_UNBOUNDED, Attr::LOWER_INCLUDED),
            (upper, Attr::UPPER_UNBOUNDED, Attr::UPPER_INCLUDED),
        ] {
            let outer = self.limit.replace(end);
            let is_unbounded = self.says(node, unbounded).as_slice() == [true];
            let made = self.limit_of_interval(node, attr, is_unbounded);
            self.limit = outer;
            let value = made?;
            let is_included =
                value.is_some() && self.says(node, included).first().copied().unwrap_or(true);
            draft.put(unbounded, Draft::boolean(value.is_none()));
            draft.put(included, Draft::boolean(is_included));
            value.into_iter().for_each(|value| draft.put(attr, value));
        }
        share_unit(&mut draft, node);
        Ok(draft)
    }

    /// Generates a limit of an interval; `None` if the interval is unbounded there.
    fn limit_of_interval(
        &mut self,
        node: Option<&'t Node>,
        attr: Attr,
        is_unbounded: bool,
    ) -> Result<Option<Draft>, Vec<Finding>> {
        let Some(def) = Cls::DV_INTERVAL.attr(attr) else {
            return Err(self.problem("an interval has no such limit"));
        };
        let attribute = constrained(node, attr);
        let parameter = node.and_then(|n| n.parameter);
        let made = if is_unbounded || attribute.is_some_and(is_forbidden) {
            None
        } else if attribute.is_none_or(|a| a.children.is_empty()) {
            let class = super::concrete_class_for(parameter.unwrap_or(Cls::DV_COUNT), &[]);
            class
                .map(|class| self.object(class, None, None))
                .transpose()?
        } else {
            self.attribute(Cls::DV_INTERVAL, def, attribute, true)?
        };
        let value = made.filter(|value| parameter.is_none_or(|p| value.class().is_a(p)));
        let existence = attribute.and_then(|a| a.existence);
        if value.is_none() && existence.is_some_and(|e| e.lower > 0) {
            return Err(self.problem(&format!(
                "the limit `{attr}` must be there, and its class is not that of the interval"
            )));
        }
        Ok(value)
    }

    /// Returns the permitted values of a boolean attribute. Empty if it is not constrained.
    fn says(&self, node: Option<&Node>, attr: Attr) -> Vec<bool> {
        let children = constrained(node, attr)
            .map(|a| a.children.as_slice())
            .unwrap_or_default();
        let allowed = children.iter().filter_map(|c| {
            if let Constraint::Boolean {
                true_valid,
                false_valid,
            } = c.constraint
            {
                Some((true_valid, false_valid))
            } else {
                None
            }
        });
        allowed
            .flat_map(|(t, f)| [t.then_some(true), f.then_some(false)])
            .flatten()
            .collect()
    }

    /// Generates a proportion whose type, numerator, denominator and precision meet the template
    /// and are consistent.
    pub(super) fn proportion(&mut self, node: Option<&'t Node>) -> Made {
        let kinds = self.parts(node, Attr::TYPE, &["0", "1", "2", "3", "4"]);
        let numerators = self.parts(node, Attr::NUMERATOR, &["1", "50"]);
        let denominators = self.parts(node, Attr::DENOMINATOR, &["2", "1", "100"]);
        let precisions = self.precisions(node);
        let integral = node.and_then(|node| node.attribute("is_integral"));
        for kind in &kinds {
            for denominator in &denominators {
                for numerator in &numerators {
                    for precision in &precisions {
                        if !self.spend(1) {
                            return Err(self.problem("the example is too large"));
                        }
                        let draft =
                            new_proportion(kind, numerator, denominator, precision.as_deref());
                        let tree = draft.clone().into_tree(None);
                        let is_valid = |root| {
                            rm::validate::validate(root).is_empty()
                                && integral.is_none_or(|i| leaf::permits_integrality(root, i))
                        };
                        if tree.root().is_some_and(is_valid) {
                            return Ok(draft);
                        }
                    }
                }
            }
        }
        Err(self
            .problem("no numerator and denominator meet the kinds of proportion that are allowed"))
    }

    /// Returns the precisions of a proportion to try; `None` is no precision.
    fn precisions(&self, node: Option<&Node>) -> Vec<Option<String>> {
        let attribute = constrained(node, Attr::PRECISION);
        let must = attribute.is_some_and(|a| a.existence.is_some_and(|e| e.lower > 0));
        let permitted = match attribute.filter(|a| !is_forbidden(a)) {
            Some(_) if self.is_full || must => self.parts(node, Attr::PRECISION, &[]),
            _ => Vec::new(),
        };
        let permitted = permitted.into_iter().map(Some);
        permitted.chain((!must).then_some(None)).collect()
    }

    /// Returns the permitted texts of an attribute, or `usual` if it is not constrained.
    fn parts(&self, node: Option<&Node>, attr: Attr, usual: &[&str]) -> Vec<String> {
        let children = constrained(node, attr)
            .map(|a| a.children.as_slice())
            .unwrap_or_default();
        let usual = || usual.iter().map(|text| (*text).to_owned()).collect();
        let Some(def) = Cls::DV_PROPORTION
            .attr(attr)
            .filter(|_| !children.is_empty())
        else {
            return usual();
        };
        let mut texts: Vec<String> = Vec::new();
        for child in children {
            let is_open = matches!(&child.constraint, Constraint::Open)
                || matches!(&child.constraint, Constraint::Real { range: None, list } if list.is_empty());
            let found = if is_open {
                usual()
            } else {
                self.texts(child, Cls::DV_PROPORTION, def)
            };
            texts.extend(found);
        }
        texts.truncate(MAX_PART_CANDIDATES);
        texts
    }
}

/// Checks a draft against the constraint on its value.
fn holds(state: &Generator<'_>, draft: Draft, attr: Attr, node: &Node) -> bool {
    if !state.spend(1 + super::super::leaf::cost(&node.constraint)) {
        return false;
    }
    let tree = draft.into_tree(Some(attr));
    let Some(value) = tree.root() else {
        return false;
    };
    let mut check = super::super::validate::Check::new(state.template, state.language);
    super::super::leaf::check(&mut check, value, node);
    check.is_sound()
}

/// Gives a limit whose unit is not constrained the unit of the other one: limits of different units
/// do not compare.
fn share_unit(interval: &mut Draft, node: Option<&Node>) {
    for (free, other) in [(Attr::UPPER, Attr::LOWER), (Attr::LOWER, Attr::UPPER)] {
        let unit = interval.get(other).and_then(|limit| limit.get(Attr::UNITS));
        let unit = unit.cloned();
        if has_free_unit(node, free)
            && let (Some(unit), Some(limit)) = (unit, interval.get_mut(free))
            && limit.class() == Cls::DV_QUANTITY
        {
            return limit.put(Attr::UNITS, unit);
        }
    }
}

/// Returns whether the template does not constrain the unit of a limit.
fn has_free_unit(interval: Option<&Node>, limit: Attr) -> bool {
    let constrains = |node: &Node| {
        matches!(&node.constraint, Constraint::Quantity { list, .. } if !list.is_empty())
            || constrained(Some(node), Attr::UNITS).is_some()
    };
    let attribute = constrained(interval, limit);
    attribute.is_none_or(|attribute| !attribute.children.iter().any(constrains))
}

#[cfg(test)]
mod tests {
    use crate::{ExampleKind, Template, example, validate};
    use aqlite_rm as rm;
    use aqlite_rm::class::Attr;

    #[test]
    fn a_number_is_in_the_middle_of_its_range() {
        let template = include_str!("../../../../tests/cases/template/small.opt");
        let template = Template::parse(template).unwrap();
        let tree = example(&template, ExampleKind::Full, None, "2026-11-20T09:30:00Z").unwrap();
        let text = rm::json::write(tree.root().unwrap());
        assert!(text.contains(r#""magnitude":500"#), "{text}");
    }

    #[test]
    fn a_text_is_not_empty_if_its_pattern_matches_more_than_nothing() {
        for (pattern, expected) in [("a|b|", "a"), ("(x+)?", "x"), ("[^a-zA-Z0-9 -]*", "!")] {
            let text = format!(
                r#"<template xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><language><code_string>en</code_string></language>
                <template_id><value>t</value></template_id><concept>t</concept><definition><rm_type_name>ELEMENT</rm_type_name><node_id>at1</node_id>
                <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>value</rm_attribute_name>
                <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_TEXT</rm_type_name><node_id/>
                <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>value</rm_attribute_name>
                <children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>STRING</rm_type_name><node_id/><item xsi:type="C_STRING"><pattern>{pattern}</pattern></item></children>
                </attributes></children></attributes></definition></template>"#
            );
            let template = Template::parse(&text).unwrap();
            let tree = example(&template, ExampleKind::Full, None, "2026-11-20T09:30:00Z").unwrap();
            let root = tree.root().unwrap();
            let found = root.text_along(&[Attr::VALUE, Attr::VALUE]);
            assert_eq!(found, Some(expected), "{pattern}");
            assert_eq!(validate(root, &template), [], "{pattern}");
            let findings = rm::validate::validate(root);
            assert!(
                findings.iter().all(|f| !f.path.starts_with("/value")),
                "{findings:?}"
            );
        }
    }

    /// Returns the template of an ELEMENT with this constraint on its value.
    fn with_value(value: &str) -> Template {
        let text = format!(
            r#"<template xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><language><code_string>en</code_string></language>
            <template_id><value>t</value></template_id><concept>t</concept><definition><rm_type_name>ELEMENT</rm_type_name><node_id>at1</node_id>
            <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>value</rm_attribute_name>{value}</attributes></definition></template>"#
        );
        Template::parse(&text).unwrap()
    }

    /// Returns a text of the value of an example.
    fn text_of_value(template: &Template, kind: ExampleKind, path: &[Attr]) -> Option<String> {
        let tree = example(template, kind, None, "2026-11-20T09:30:00Z").unwrap();
        let root = tree.root().unwrap();
        assert_eq!(validate(root, template), []);
        let path = [&[Attr::VALUE], path].concat();
        root.text_along(&path).map(str::to_owned)
    }

    #[test]
    fn a_proportion_has_the_precision_of_the_template() {
        let proportion = |existence: &str| {
            with_value(&format!(
                r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_PROPORTION</rm_type_name><node_id/>
                <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>precision</rm_attribute_name>{existence}
                <children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>INTEGER</rm_type_name><node_id/><item xsi:type="C_INTEGER"><list>2</list></item></children>
                </attributes></children>"#
            ))
        };
        let bounds = |lower: u8, upper: u8| {
            format!(
                "<existence><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded>\
                 <lower>{lower}</lower><upper>{upper}</upper></existence>"
            )
        };
        for (existence, full, minimal) in [
            (String::new(), Some("2"), None),
            (bounds(0, 1), Some("2"), None),
            (bounds(1, 1), Some("2"), Some("2")),
            (bounds(0, 0), None, None),
        ] {
            let template = proportion(&existence);
            for (kind, expected) in [(ExampleKind::Full, full), (ExampleKind::Minimal, minimal)] {
                let found = text_of_value(&template, kind, &[Attr::PRECISION]);
                assert_eq!(found.as_deref(), expected, "{existence} {kind:?}");
            }
        }
    }

    #[test]
    fn a_value_that_the_validator_accepts_is_found() {
        let leaf = |class: &str, primitive: &str, item: &str| {
            format!(
                r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>{class}</rm_type_name><node_id/>
                <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>value</rm_attribute_name>
                <children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>{primitive}</rm_type_name><node_id/>{item}</children></attributes></children>"#
            )
        };
        let minutes = |lower: &str, upper: &str| {
            let item = format!(
                r#"<item xsi:type="C_DURATION"><pattern>PTM</pattern><range><lower_included>true</lower_included><upper_included>false</upper_included>
                <lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>{lower}</lower><upper>{upper}</upper></range></item>"#
            );
            leaf("DV_DURATION", "DURATION", &item)
        };
        let open = |class: &str| {
            format!(
                r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>{class}</rm_type_name><node_id/></children>"#
            )
        };
        let precise = r#"<children xsi:type="C_DV_QUANTITY"><rm_type_name>DV_QUANTITY</rm_type_name><node_id/><list>
            <magnitude><lower_included>true</lower_included><upper_included>true</upper_included><lower_unbounded>false</lower_unbounded>
            <upper_unbounded>false</upper_unbounded><lower>1.2</lower><upper>1.8</upper></magnitude>
            <precision><lower_included>true</lower_included><upper_included>true</upper_included><lower_unbounded>false</lower_unbounded>
            <upper_unbounded>false</upper_unbounded><lower>0</lower><upper>0</upper></precision><units>kg</units></list></children>"#;
        let integral = r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_PROPORTION</rm_type_name><node_id/>
            <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>is_integral</rm_attribute_name>
            <children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>BOOLEAN</rm_type_name><node_id/><item xsi:type="C_BOOLEAN">
            <true_valid>true</true_valid><false_valid>false</false_valid></item></children></attributes>
            <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>numerator</rm_attribute_name>
            <children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>REAL</rm_type_name><node_id/><item xsi:type="C_REAL">
            <list>0.7</list><list>3</list></item></children></attributes></children>"#;
        let (of, parsable) = (Attr::VALUE, [Attr::VALUE, Attr::FORMALISM]);
        for (value, path, expected) in [
            (minutes("PT1H", "PT2H"), &[of][..], "PT60M"),
            (minutes("P1DT30S", "P2D"), &[of], "PT1441M"),
            (String::from(precise), &[Attr::MAGNITUDE], "1.5"),
            (String::from(integral), &[Attr::NUMERATOR], "3"),
            (
                open("DV_PERIODIC_TIME_SPECIFICATION"),
                &parsable,
                "HL7:PIVL",
            ),
            (open("DV_GENERAL_TIME_SPECIFICATION"), &parsable, "HL7:GTS"),
        ] {
            let found = text_of_value(&with_value(&value), ExampleKind::Full, path);
            assert_eq!(found.as_deref(), Some(expected), "{value}");
        }
    }

    #[test]
    fn a_limit_without_a_unit_of_its_own_has_the_unit_of_the_other() {
        let limit = |name: &str, list: &str| {
            format!(
                r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>{name}</rm_attribute_name>
                <children xsi:type="C_DV_QUANTITY"><rm_type_name>DV_QUANTITY</rm_type_name><node_id/>{list}</children></attributes>"#
            )
        };
        let list = "<list><units>mm[Hg]</units></list>";
        for (lower, upper) in [(list, ""), ("", list), (list, list)] {
            let template = with_value(&format!(
                r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_INTERVAL&lt;DV_QUANTITY&gt;</rm_type_name><node_id/>{}{}</children>"#,
                limit("lower", lower),
                limit("upper", upper)
            ));
            for side in [Attr::LOWER, Attr::UPPER] {
                let unit = text_of_value(&template, ExampleKind::Full, &[side, Attr::UNITS]);
                assert_eq!(unit.as_deref(), Some("mm[Hg]"), "{lower} {upper} {side:?}");
            }
        }
    }
}
