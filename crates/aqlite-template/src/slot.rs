//! The rules of slots: which archetypes they permit.

use super::limits::TemplateMeter;
use super::pattern::Pattern;
use super::xml::Xml;

/// Reads the rules of one side of a slot, `includes` or `excludes`.
///
/// # Errors
/// The first assertion that is not understood. The side must not be checked then: the rules that
/// remain would refuse what that one permits.
pub(super) fn rules<'d>(
    slot: Xml<'d>,
    side: &'d str,
    meter: &mut TemplateMeter,
) -> Result<Vec<Pattern>, Xml<'d>> {
    let mut rules = Vec::new();
    for assertion in slot.all(side) {
        let tree = assertion.child("expression").and_then(of_tree);
        let text = assertion.text_along(&["string_expression"]);
        for source in tree.or_else(|| of_text(text?)).ok_or(assertion)? {
            rules.push(meter.compile(assertion, &source).ok_or(assertion)?);
        }
    }
    Ok(rules)
}

/// Returns the regular expressions of an assertion, one of which the archetype id must match.
/// Returns `None` for an assertion on something else, or of another form.
fn of_tree(xml: Xml<'_>) -> Option<Vec<String>> {
    let (left, right) = xml.child("left_operand").zip(xml.child("right_operand"))?;
    // OPERATOR_KIND: 2007 is `matches`, 2012 is `or`.
    match xml.text_along(&["operator"])? {
        "2007" if is_archetype_id(left.text_along(&["item"])?) => of_item(right.child("item")?),
        "2012" => Some([of_tree(left)?, of_tree(right)?].concat()),
        _ => None,
    }
}

/// Returns the regular expressions of a C_STRING, unless it permits any text.
fn of_item(item: Xml<'_>) -> Option<Vec<String>> {
    let pattern = item.text_along(&["pattern"]).unwrap_or_default();
    let between = pattern.strip_prefix('/').and_then(|p| p.strip_suffix('/'));
    let sources: Vec<String> = match between.unwrap_or(pattern) {
        "" => item.all("list").map(|text| literal(text.text())).collect(),
        source => vec![source.to_owned()],
    };
    let is_open = item.text_along(&["list_open"]) == Some("true");
    Some(sources).filter(|all| !all.is_empty() && !is_open)
}

/// Returns the regular expressions of an assertion as a text, such as
/// `archetype_id/value matches {/…/} or archetype_id/value matches {"…", "…"}`.
fn of_text(mut text: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    loop {
        let (left, set) = text.split_once('{')?;
        let left: Vec<&str> = left.split_whitespace().collect();
        let [path, "matches" | "is_in" | "∈"] = *left else {
            return None;
        };
        let (sources, rest) = of_set(set.trim_start()).filter(|_| is_archetype_id(path))?;
        all.extend(sources);
        if rest.is_empty() {
            return Some(all);
        }
        text = rest.strip_prefix("or ")?;
    }
}

/// Returns the regular expressions of a set behind its `{`, and the text behind it.
fn of_set(set: &str) -> Option<(Vec<String>, &str)> {
    let (sources, rest) = match set.strip_prefix('/') {
        Some(source) => {
            let (source, rest) = source.split_once("/}")?;
            (Some(vec![source.to_owned()]), rest)
        }
        None => {
            let (list, rest) = set.split_once('}')?;
            let quoted = |text: &str| {
                text.trim()
                    .strip_prefix('"')?
                    .strip_suffix('"')
                    .map(literal)
            };
            (list.split(',').map(quoted).collect(), rest)
        }
    };
    Some((sources?, rest.trim()))
}

/// Returns whether the left operand of an assertion is the archetype id.
fn is_archetype_id(path: &str) -> bool {
    matches!(path, "archetype_id/value" | "archetype_id")
}

/// Returns the regular expression of one text.
fn literal(text: &str) -> String {
    format!("\\Q{text}\\E")
}

/// Returns whether a slot permits an archetype: it is included, or nothing is, and it is not
/// excluded (AOM 1.4, ARCHETYPE_SLOT).
///
/// Beside inclusions, an exclusion of any archetype is that of the rest.
pub(super) fn permits(includes: &[Pattern], excludes: &[Pattern], archetype: &str) -> bool {
    let is_included = |rule: &Pattern| rule.matches(archetype);
    let is_binding = |rule: &Pattern| includes.is_empty() || !is_any(rule);
    (includes.is_empty() || includes.iter().any(is_included))
        && !excludes
            .iter()
            .any(|rule| is_binding(rule) && rule.matches(archetype))
}

/// Returns whether a slot includes an archetype by a rule that does not include any archetype.
pub(super) fn recommends(includes: &[Pattern], archetype: &str) -> bool {
    let mut rules = includes.iter().filter(|rule| !is_any(rule));
    rules.any(|rule| rule.matches(archetype))
}

/// Returns whether a rule matches any archetype.
pub(super) fn is_any(rule: &Pattern) -> bool {
    matches!(rule.source().trim_matches(['^', '$']), ".*" | ".+")
}
