//! The constraints on values: numbers, texts, codes, quantities, ordinals, dates.

use super::fit::plain_name;
use super::pattern::Pattern;
use super::tree::{
    Attribute, Binding, Constraint, Interval, Node, OrdinalItem, QuantityItem, Validity,
    terminology_of,
};
use super::validate::{Check, Step, is_leaf};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::Finding;
use aqlite_rm::exact::Exact;
use aqlite_rm::number;
use aqlite_rm::time::{DurationParts, Parts, Temporal, TemporalKind};
use aqlite_rm::tree::NodeRef;
use aqlite_rm::units;

/// Checks a value against the constraint of its node.
pub(super) fn check<'a>(check: &mut Check<'a>, value: NodeRef<'a>, node: &'a Node) {
    if !check.spend(1 + cost(&node.constraint)) {
        return;
    }
    match &node.constraint {
        Constraint::Open | Constraint::Slot { .. } => {}
        Constraint::CodeSet { reference } => {
            code(
                check,
                value,
                terminology_of(reference).unwrap_or_default(),
                &[],
            );
        }
        Constraint::Boolean {
            true_valid,
            false_valid,
        } => boolean(check, value, *true_valid, *false_valid),
        Constraint::Text {
            pattern,
            list,
            open,
        } => text(check, value, pattern.as_ref(), list, *open),
        Constraint::Integer { range, list } => {
            let list = list.iter().map(i64::to_string).collect();
            number(check, value, range.as_ref(), list);
        }
        Constraint::Real { range, list } => {
            let list = list.iter().copied().map(number::shortest).collect();
            let range = range
                .as_ref()
                .map(|range| range.map(|limit| Exact::from(*limit)));
            number(check, value, range.as_ref(), list);
        }
        Constraint::Temporal { .. } => {
            if let Some(rule) = TemporalRule::of(&node.constraint) {
                temporal(check, value, &rule);
            }
        }
        Constraint::Code { open: true, .. } => {}
        Constraint::Code {
            terminology, codes, ..
        } if !is_bound(check, value, terminology, codes, node.root) => {
            code(check, value, terminology, codes)
        }
        Constraint::Code { .. } => {}
        Constraint::Quantity { list, property } if list.is_empty() => {
            measured(check, value, property.as_deref())
        }
        Constraint::Quantity { list, .. } => quantity(check, value, list),
        Constraint::Ordinal { list } => ordinal(check, value, list, node.root),
    }
}

fn boolean(check: &mut Check<'_>, value: NodeRef<'_>, true_valid: bool, false_valid: bool) {
    let is_valid = if value.text() == "true" {
        true_valid
    } else {
        false_valid
    };
    if is_leaf(value) && !is_valid {
        let expected = match (true_valid, false_valid) {
            (true, _) => "true",
            (_, true) => "false",
            (false, false) => "absent: no value is allowed",
        };
        wrong(check, value.text(), expected.to_owned());
    }
}

/// Checks a text against a list and an expression. An open list permits other texts.
fn text(
    check: &mut Check<'_>,
    value: NodeRef<'_>,
    pattern: Option<&Pattern>,
    list: &[String],
    is_open: bool,
) {
    if !is_leaf(value) {
        return;
    }
    let text = value.text();
    let is_action = value.attr() == Some(Attr::ACTION_ARCHETYPE_ID);
    let is_any_action = is_action && text == "/.*/";
    // The value is itself an expression, which the model writes between slashes.
    let bare = Some(text).filter(|_| is_action).and_then(delimited);
    let is_listed = |text: &str| list.iter().any(|listed| is_listed_as(listed, text));
    if !is_open && !list.is_empty() && !is_any_action {
        let is_permitted = is_listed(text) || bare.is_some_and(is_listed);
        if !is_permitted {
            listed(check, text, list);
        }
    }
    let Some(pattern) = pattern else { return };
    // Each character may be compared with each state of the expression.
    if !check.spend(text.len().saturating_mul(pattern.steps()) / 2) {
        return;
    }
    // An expression is permitted if it is that of the template, or matches it as a text.
    let is_permitted =
        |text: &str| pattern.matches(text) || (is_action && pattern.source() == text);
    if !is_any_action && !is_permitted(text) && !bare.is_some_and(is_permitted) {
        let expected = format!("text that matches {}", pattern.source());
        wrong(check, text, expected);
    }
}

/// Returns whether a text is that of a list. Writers often leave out the white space around a listed
/// text, so it is permitted without as well.
pub(super) fn is_listed_as(listed: &str, text: &str) -> bool {
    listed == text || listed.trim() == text
}

/// Returns the expression between the slashes of `/…/`.
fn delimited(text: &str) -> Option<&str> {
    text.strip_prefix('/')?.strip_suffix('/')
}

/// The maximum length in bytes of a list in a message.
const MAX_OPTIONS: usize = 20_000;

/// Formats the members of a list for messages, truncated if the list is very long.
fn options<T: AsRef<str>>(list: &[T]) -> String {
    let mut text = String::new();
    for (index, option) in list.iter().map(AsRef::as_ref).enumerate() {
        if text.len() + option.len() > MAX_OPTIONS {
            text.push_str(&format!(", … ({} in all)", list.len()));
            return text;
        }
        text.push_str(if index > 0 { ", " } else { "" });
        text.push_str(option);
    }
    text
}

/// Returns the number of comparisons that a constraint costs, apart from its expression.
pub(super) fn cost(constraint: &Constraint) -> usize {
    match constraint {
        Constraint::Text { list, .. } => list.len(),
        Constraint::Integer { list, .. } => list.len(),
        Constraint::Real { list, .. } => list.len(),
        Constraint::Code { codes, .. } => codes.len(),
        Constraint::Quantity { list, .. } => list.len(),
        Constraint::Ordinal { list } => list.len(),
        _ => 0,
    }
}

/// Reports a text that is not in a list. The number suffix of a runtime name is ignored.
fn listed(check: &mut Check<'_>, text: &str, list: &[String]) {
    if !check.is_at("name", "value") {
        return wrong(check, text, format!("one of: {}", options(list)));
    }
    if !list.iter().any(|l| l == plain_name(text)) {
        let name: String = text.chars().take(40).collect();
        let message = format!("The value {name} must be one of: {}", options(list));
        check.by_language(
            Finding::error("TPL0513", "", message)
                .expected(options(list))
                .found(name),
        );
    }
}

fn wrong(check: &mut Check<'_>, text: &str, expected: String) {
    let shown: String = text.chars().take(40).collect();
    check.report(
        Finding::error(
            "TPL0506",
            "",
            format!("The value {shown} must be {expected}"),
        )
        .expected(expected)
        .found(shown),
    );
}

fn number<'a>(
    check: &mut Check<'a>,
    value: NodeRef<'a>,
    range: Option<&Interval<Exact>>,
    list: Vec<String>,
) {
    let Some(sent) = Exact::parse(value.text()).filter(|_| is_leaf(value)) else {
        return;
    };
    if let Some(range) = range.filter(|r| !r.contains(&sent)) {
        wrong(check, &spelled(value), range.to_string());
    }
    if !list.is_empty() && !list.iter().any(|l| Exact::parse(l) == Some(sent)) {
        wrong(check, value.text(), format!("one of: {}", options(&list)));
    }
}

/// Formats a number for messages: as sent, but a Real always with decimals.
fn spelled(value: NodeRef<'_>) -> String {
    let text = value.text();
    let is_whole = text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    // A Real that was sent as `5` is printed as `5.0`, as messages of other repositories have it.
    if value.class() == Cls::REAL && is_whole {
        format!("{text}.0")
    } else {
        text.to_owned()
    }
}

fn code<'a>(check: &mut Check<'a>, value: NodeRef<'a>, terminology: &str, codes: &[String]) {
    let code = value.text_at(Attr::CODE_STRING).unwrap_or_default();
    let found = value
        .text_along(&[Attr::TERMINOLOGY_ID, Attr::VALUE])
        .unwrap_or_default();
    let (message, expected, found) =
        if !terminology.is_empty() && without_release(found) != without_release(terminology) {
            let message =
                format!("CODE_PHRASE/terminology_id does not match {terminology}. found: {found}");
            (message, terminology.to_owned(), found)
        } else if !codes.is_empty() && !codes.iter().any(|c| c == code) {
            (unlisted_code(check, code), options(codes), code)
        } else {
            return;
        };
    let finding = Finding::error("TPL0507", "", message);
    check.report(finding.expected(expected).found(found));
}

/// Returns whether a code is one to which a permitted code of the archetype is bound, if the template
/// permits such codes in data. Bindings of value sets are not expanded.
fn is_bound(
    check: &Check<'_>,
    value: NodeRef<'_>,
    terminology: &str,
    codes: &[String],
    root: usize,
) -> bool {
    let bindings = check.bindings(root).iter();
    let mut bindings = bindings.filter(|b| b.is_permitted_in_data && terminology == "local");
    let code = value.text_at(Attr::CODE_STRING);
    let named = value.text_along(&[Attr::TERMINOLOGY_ID, Attr::VALUE]);
    let is_same = |binding: &Binding| {
        code == Some(&binding.target)
            && named.is_some_and(|named| binding.names(named))
            && codes.contains(&binding.code)
    };
    bindings.any(is_same)
}

/// Returns the id of a terminology without its release: `SNOMED-CT(2003)` names one, which
/// constraints ignore.
fn without_release(id: &str) -> &str {
    id.split('(').next().unwrap_or_default().trim()
}

/// Returns the message about a code that is not in the list of the template.
fn unlisted_code(check: &Check<'_>, code: &str) -> String {
    let of_transition = ["current_state", "careflow_step"]
        .into_iter()
        .find(|attribute| check.is_at(attribute, "defining_code"));
    match of_transition {
        // Clients of other repositories search for this message.
        Some(attribute) => format!("IsmTransition contains invalid {attribute}"),
        None => format!(
            "DV_CODED_TEXT/defining_code/code_string does not match any option. found: {code}"
        ),
    }
}

/// Checks that the unit measures the property. Without a list of units any unit of the property is
/// permitted.
fn measured<'a>(check: &mut Check<'a>, value: NodeRef<'a>, property: Option<&str>) {
    let Some(property) = property.filter(|p| !p.is_empty()) else {
        return;
    };
    let Some(unit) = value
        .text_at(Attr::UNITS)
        .filter(|u| units::measures(u, property) == Some(false))
    else {
        return;
    };
    let expected: Vec<&str> = units::for_property(property)
        .map(|u| u.ucum)
        .take(8)
        .collect();
    let message = format!("DV_QUANTITY/units does not measure property {property}. found: {unit}");
    check.report(
        Finding::error("TPL0508", "", message)
            .expected(format!("a unit such as {}", expected.join(", ")))
            .found(unit),
    );
}

fn quantity<'a>(check: &mut Check<'a>, value: NodeRef<'a>, list: &[QuantityItem]) {
    let units = value.text_at(Attr::UNITS).unwrap_or_default();
    let mut alternatives = list.iter().filter(|item| item.units == units).peekable();
    if alternatives.peek().is_none() {
        let expected: Vec<&str> = list.iter().map(|item| item.units.as_str()).collect();
        let message = format!("DV_QUANTITY/units does not match any option. found: {units}");
        return check.report(
            Finding::error("TPL0508", "", message)
                .expected(options(&expected))
                .found(units),
        );
    }
    // If no alternative matches, the problem of the first one is reported.
    let problems = alternatives
        .map(|item| outside(value, item).or_else(|| imprecise(value, item)))
        .collect::<Option<Vec<_>>>();
    if let Some(problem) = problems.into_iter().flatten().next() {
        check.at(Step::Attribute(problem.attribute), |c| {
            wrong(c, &problem.found, problem.expected)
        });
    }
}

/// An attribute of a quantity that does not meet the constraint of its unit.
struct QuantityProblem {
    attribute: &'static str,
    found: String,
    expected: String,
}

/// Compares the magnitude of a quantity with its range.
fn outside(value: NodeRef<'_>, item: &QuantityItem) -> Option<QuantityProblem> {
    let magnitude = value.get(Attr::MAGNITUDE)?;
    let range = item.magnitude.as_ref()?;
    (!range.contains(&number::parse(magnitude.text())?)).then(|| QuantityProblem {
        attribute: "magnitude",
        found: spelled(magnitude),
        expected: range.to_string(),
    })
}

/// Compares the precision of a quantity with its range. A negative precision is unlimited.
fn imprecise(value: NodeRef<'_>, item: &QuantityItem) -> Option<QuantityProblem> {
    let text = value.text_at(Attr::PRECISION)?;
    let (range, precision) = (item.precision.as_ref()?, number::parse(text)?);
    (precision >= 0.0 && !range.contains(&precision)).then(|| QuantityProblem {
        attribute: "precision",
        found: text.to_owned(),
        expected: range.to_string(),
    })
}

fn ordinal<'a>(check: &mut Check<'a>, value: NodeRef<'a>, list: &[OrdinalItem], root: usize) {
    let shown = value.text_at(Attr::VALUE).unwrap_or_default();
    let number = number::parse(shown);
    let symbol = value
        .get(Attr::SYMBOL)
        .and_then(|symbol| symbol.get(Attr::DEFINING_CODE));
    let text = |along: &[Attr]| symbol.and_then(|symbol| symbol.text_along(along));
    let code = text(&[Attr::CODE_STRING]).unwrap_or_default();
    let terminology = text(&[Attr::TERMINOLOGY_ID, Attr::VALUE]).unwrap_or_default();
    let is_named = |item: &OrdinalItem| {
        item.terminology.is_empty()
            || without_release(&item.terminology) == without_release(terminology)
    };
    let is_equivalent = |item: &OrdinalItem| {
        let codes = std::slice::from_ref(&item.code);
        symbol.is_some_and(|symbol| is_bound(check, symbol, &item.terminology, codes, root))
    };
    // Value and symbol must match together: a known code with the value of another is wrong.
    let is_same = |item: &OrdinalItem| {
        let is_code = (item.code == code && is_named(item)) || is_equivalent(item);
        Some(item.value) == number && is_code
    };
    if list.is_empty() || list.iter().any(is_same) {
        return;
    }
    // The terminologies are shown if nothing else differs.
    let is_foreign = |item: &OrdinalItem| Some(item.value) == number && item.code == code;
    let is_foreign = list.iter().any(is_foreign);
    let pair = |value: &str, terminology: &str, code: &str| match is_foreign {
        true => format!("{value}|{terminology}::{code}"),
        false => format!("{value}|{code}"),
    };
    let expected = list
        .iter()
        .map(|item| pair(&number::shortest(item.value), &item.terminology, &item.code));
    let expected: Vec<String> = expected.collect();
    let message = format!(
        "{} with value {shown} and symbol {code} does not match any option",
        value.class()
    );
    check.report(
        Finding::error("TPL0509", "", message)
            .expected(options(&expected))
            .found(pair(shown, terminology, code)),
    );
}

/// Checks the difference between the time of an event and the origin of its history against the
/// ranges of the function `EVENT.offset`. One of the alternatives should contain it.
///
/// Another offset is a warning: the function is no part of a document, and published documents have
/// events at other times.
pub(super) fn offset(
    check: &mut Check<'_>,
    time: Temporal,
    origin: Temporal,
    function: &Attribute,
) {
    let offset = Temporal {
        kind: TemporalKind::Duration,
        earliest: time.earliest.saturating_sub(origin.latest),
        latest: time.latest.saturating_sub(origin.earliest),
        finer: time.finer.saturating_sub(origin.finer),
    };
    // An alternative without a range permits any offset.
    let Some(ranges) = offsets(function) else {
        return;
    };
    if !check.spend(ranges.len()) {
        return;
    }
    let mut covering = ranges.iter();
    if ranges.is_empty() || covering.any(|range| covers(range, TemporalKind::Duration, offset)) {
        return;
    }
    let expected: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    let seconds = offset.earliest / 1_000_000;
    let shown = match seconds < 0 {
        true => format!("-PT{}S", seconds.unsigned_abs()),
        false => format!("PT{seconds}S"),
    };
    let expected = expected.join(" or ");
    let message = format!("The value {shown} should be {expected}");
    let finding = Finding::warning("TPL0506", "", message);
    check.report(finding.expected(expected).found(shown));
}

/// Checks `DV_PROPORTION.is_integral`, which the model computes: the document does not have it.
pub(super) fn integral(check: &mut Check<'_>, proportion: NodeRef<'_>, function: &Attribute) {
    if check.spend(function.children.len()) && !permits_integrality(proportion, function) {
        let expected = match has_whole_parts(proportion) {
            true => "a proportion that is not integral",
            false => "a proportion of whole numbers",
        };
        let text = |attr| proportion.text_at(attr).unwrap_or_default();
        let found = [text(Attr::NUMERATOR), text(Attr::DENOMINATOR)].join("/");
        wrong(check, &found, expected.to_owned());
    }
}

/// Returns whether a constraint on `DV_PROPORTION.is_integral` permits a proportion.
///
/// Source: RM Data Types IM, DV_PROPORTION: "True if the numerator and denominator values are
/// integers, i.e. if precision is 0". Whole numbers with another precision are both, because
/// documents often omit the precision.
pub(super) fn permits_integrality(proportion: NodeRef<'_>, function: &Attribute) -> bool {
    let is_whole = has_whole_parts(proportion);
    let is_precise = proportion.text_at(Attr::PRECISION) == Some("0");
    let permits = |constraint: &Constraint| match constraint {
        Constraint::Boolean {
            true_valid,
            false_valid,
        } => (*true_valid && is_whole) || (*false_valid && !(is_whole && is_precise)),
        _ => true,
    };
    let mut alternatives = function.children.iter();
    function.children.is_empty() || alternatives.any(|node| permits(&node.constraint))
}

fn has_whole_parts(proportion: NodeRef<'_>) -> bool {
    let mut parts = [Attr::NUMERATOR, Attr::DENOMINATOR].into_iter();
    parts.all(|attr| {
        let number = proportion.text_at(attr).and_then(Exact::parse);
        number.is_none_or(|number| number.floor() == number)
    })
}

/// Returns the ranges of the alternatives of `EVENT.offset`, or `None` if one has no range.
pub(super) fn offsets(function: &Attribute) -> Option<Vec<&Interval<String>>> {
    let durations = function
        .children
        .iter()
        .filter_map(|d| d.attribute("value"));
    let alternatives = durations.flat_map(|value| &value.children);
    let ranges = alternatives.map(|alternative| match &alternative.constraint {
        Constraint::Temporal { range, .. } => range.as_ref(),
        _ => None,
    });
    ranges.collect()
}

/// The constraints of a template on a temporal text.
struct TemporalRule<'t> {
    kind: TemporalKind,
    pattern: Option<&'t str>,
    range: Option<&'t Interval<String>>,
    fraction: Validity,
    zone: Validity,
}

impl<'t> TemporalRule<'t> {
    fn of(constraint: &'t Constraint) -> Option<TemporalRule<'t>> {
        match constraint {
            Constraint::Temporal {
                kind,
                pattern,
                range,
                fraction,
                zone,
            } => Some(TemporalRule {
                kind: *kind,
                pattern: pattern.as_deref(),
                range: range.as_ref(),
                fraction: *fraction,
                zone: *zone,
            }),
            _ => None,
        }
    }
}

fn temporal<'a>(check: &mut Check<'a>, value: NodeRef<'a>, rule: &TemporalRule<'_>) {
    // Other classes are reported as class errors.
    if value.class() != Cls::STRING {
        return;
    }
    let text = value.text();
    // The model's rules report a malformed text.
    let Some(read) = Temporal::parse(rule.kind, text) else {
        return;
    };
    // The pattern of a duration may have a range behind a slash.
    let pattern = rule
        .pattern
        .map(|p| p.split_once('/').map_or(p, |(front, _)| front));
    let form = TemporalForm::of(text, rule.kind, pattern);
    if !form.fits {
        let expected = format!("of the form {}", pattern.unwrap_or_default());
        wrong(check, text, expected);
    }
    for (component, validity, is_there) in [
        ("a fraction of the second", rule.fraction, form.has_fraction),
        ("a time zone", rule.zone, form.has_zone),
    ] {
        if !validity.allows(is_there) {
            let with = if is_there { "without" } else { "with" };
            wrong(check, text, format!("{with} {component}"));
        }
    }
    if let Some(range) = rule.range.filter(|range| !covers(range, rule.kind, read)) {
        wrong(check, text, range.to_string());
    }
}

/// The form of a temporal text.
struct TemporalForm {
    /// Whether the text fits the pattern of the template.
    fits: bool,
    has_fraction: bool,
    has_zone: bool,
}

impl TemporalForm {
    fn of(text: &str, kind: TemporalKind, pattern: Option<&str>) -> TemporalForm {
        let form = match kind {
            TemporalKind::Duration => DurationParts::parse(text).map(|p| TemporalForm {
                fits: pattern.is_none_or(|pattern| duration_fits(&p, pattern)),
                has_fraction: p.fraction.is_some(),
                has_zone: false,
            }),
            kind => Parts::parse(kind, text).map(|p| TemporalForm {
                fits: pattern.is_none_or(|pattern| date_fits(&p, pattern, kind)),
                has_fraction: p.fraction.is_some(),
                has_zone: p.zone.is_some(),
            }),
        };
        // The model's rules report a malformed text.
        form.unwrap_or(TemporalForm {
            fits: true,
            has_fraction: false,
            has_zone: false,
        })
    }
}

/// Returns whether a range contains the whole interval of a value.
///
/// The limits cover their precision as well, so `..2021` includes the end of that year.
fn covers(range: &Interval<String>, kind: TemporalKind, value: Temporal) -> bool {
    let limit = |text: &Option<String>| text.as_deref().and_then(|t| Temporal::parse(kind, t));
    // A partial value is an interval. `finer` orders it against a more precise one.
    let (first, last) = ((value.earliest, value.finer), (value.latest, value.finer));
    let above = limit(&range.lower).is_none_or(|l| {
        if range.lower_included {
            first >= (l.earliest, l.finer)
        } else {
            first > (l.latest, l.finer)
        }
    });
    above
        && limit(&range.upper).is_none_or(|u| {
            if range.upper_included {
                last <= (u.latest, u.finer)
            } else {
                last < (u.earliest, u.finer)
            }
        })
}

/// Checks a pattern such as `yyyy-mm-??THH:MM:XX±hh:mm`. Letters require a component, `?` permits it,
/// `X` prohibits it. A pattern without a zone permits every zone.
///
/// Source: AOM 2.3 (SPECAM-75) and ADL 1.4.5, constraints on time zones.
fn date_fits(parts: &Parts, pattern: &str, kind: TemporalKind) -> bool {
    let (date, clock) = match (kind, pattern.split_once(['T', ' '])) {
        (TemporalKind::Time, _) => ("", pattern.trim_start_matches('T')),
        (_, Some((date, clock))) => (date, clock),
        (_, None) => (pattern, ""),
    };
    let (clock, zone) = split_zone(clock);
    let date = date.split('-').zip([parts.year, parts.month, parts.day]);
    let clock = clock
        .split(':')
        .zip([parts.hour, parts.minute, parts.second]);
    // `Z` alone stands for any zone, and so do the letters of its hours and minutes.
    let zone = zone.trim_start_matches(['+', '-', '±']);
    let zone = zone.split(':').zip([parts.zone]);
    date.chain(clock)
        .chain(zone)
        .all(|(rule, component)| match rule.chars().next() {
            Some('X' | 'x') => component.is_none(),
            Some('?') | None => true,
            Some(_) => component.is_some(),
        })
}

/// Splits the pattern of a time before its zone: `HH:MM:SSZ`, `HH:MM:SS±hh:mm`.
pub(super) fn split_zone(pattern: &str) -> (&str, &str) {
    let zone = pattern.find(['Z', '+', '-', '±']);
    pattern.split_at(zone.unwrap_or(pattern.len()))
}

/// Checks a pattern such as `PYMWDTHMS`, which names the permitted components.
fn duration_fits(parts: &DurationParts, pattern: &str) -> bool {
    let body = pattern.trim_start_matches(['P', 'p']);
    let (date, clock) = body.split_once(['T', 't']).unwrap_or((body, ""));
    let allows = |rule: &str, letter: char| rule.chars().any(|c| c.eq_ignore_ascii_case(&letter));
    let calendar = [
        (parts.years, 'Y'),
        (parts.months, 'M'),
        (parts.weeks, 'W'),
        (parts.days, 'D'),
    ];
    let hours = [
        (parts.hours, 'H'),
        (parts.minutes, 'M'),
        (parts.seconds, 'S'),
    ];
    calendar
        .iter()
        .all(|(part, letter)| part.is_none() || allows(date, *letter))
        && hours
            .iter()
            .all(|(part, letter)| part.is_none() || allows(clock, *letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_patterns_require_permit_or_prohibit_components() {
        for (kind, pattern, text, expected) in [
            (TemporalKind::Date, "yyyy-mm-dd", "2019-05-01", true),
            (TemporalKind::Date, "yyyy-mm-dd", "2019-05", false),
            (TemporalKind::Date, "yyyy-??-XX", "2019", true),
            (TemporalKind::Date, "yyyy-??-XX", "2019-05-01", false),
            (
                TemporalKind::DateTime,
                "yyyy-mm-ddTHH:MM:SS",
                "2019-05-01T10:00",
                false,
            ),
            (
                TemporalKind::DateTime,
                "yyyy-mm-ddTHH:??:??",
                "2019-05-01T10:00Z",
                true,
            ),
            (TemporalKind::Time, "HH:MM:XX", "10:00:00", false),
            (TemporalKind::Time, "HH:??:XX", "10", true),
            (TemporalKind::Time, "HH:MM:SS", "10:00:00+01:00", true),
            (TemporalKind::Time, "HH:MM:SSZ", "10:00:00", false),
            (TemporalKind::Time, "HH:MM:SSZ", "10:00:00+01:00", true),
            (TemporalKind::Time, "HH:MM:SS±hh:mm", "10:00:00", false),
            (TemporalKind::Time, "HH:MM:SS±hh:mm", "10:00:00Z", true),
            (TemporalKind::Time, "HH:MM:SS±??:??", "10:00:00", true),
            (TemporalKind::Time, "HH:MM:SS±XX:XX", "10:00:00Z", false),
            (TemporalKind::Time, "HH:MM:SS±XX:XX", "10:00:00", true),
            (TemporalKind::Time, "HH:MM+hh:mm", "10:00Z", true),
            (TemporalKind::Time, "HH:MM-hhmm", "10:00", false),
            (
                TemporalKind::DateTime,
                "yyyy-mm-ddTHH:MM:SS±hh:mm",
                "2019-05-01T10:00:00",
                false,
            ),
            (
                TemporalKind::DateTime,
                "yyyy-mm-ddTHH:MM:SSZ",
                "2019-05-01T10:00:00-03:00",
                true,
            ),
        ] {
            assert_eq!(
                date_fits(&Parts::parse(kind, text).unwrap(), pattern, kind),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn range_limits_cover_their_precision() {
        let range = |lower: &str, upper: &str| {
            let limit = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Interval {
                lower: limit(lower),
                upper: limit(upper),
                lower_included: true,
                upper_included: true,
            }
        };
        for (kind, lower, upper, text, expected) in [
            (TemporalKind::Date, "1900", "2021", "2021-05", true),
            (TemporalKind::Date, "1900", "2021-04", "2021-05", false),
            (TemporalKind::Date, "2020-07", "2022-03", "2021", true),
            (TemporalKind::Date, "2021-07", "", "2021", false),
            (TemporalKind::Time, "T11", "T23", "T23:30", true),
            (TemporalKind::Duration, "P5Y4M2D", "P9Y", "P5Y4M", false),
        ] {
            assert_eq!(
                covers(
                    &range(lower, upper),
                    kind,
                    Temporal::parse(kind, text).unwrap()
                ),
                expected,
                "{lower}..{upper} {text}"
            );
        }
        let open = Interval {
            upper_included: false,
            ..range("", "2021")
        };
        assert!(!covers(
            &open,
            TemporalKind::Date,
            Temporal::parse(TemporalKind::Date, "2021-05").unwrap()
        ));
    }

    #[test]
    fn duration_patterns_list_permitted_components() {
        for (pattern, text, expected) in [
            ("PYMD", "P1Y2M", true),
            ("PYMD", "P1W", false),
            ("PTHM", "PT5M", true),
            ("PTHM", "P5M", false),
            ("PYMWDTHMS", "P1W2DT3S", true),
        ] {
            assert_eq!(
                duration_fits(&DurationParts::parse(text).unwrap(), pattern),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
