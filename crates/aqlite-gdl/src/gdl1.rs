//! Constructs that exist in GDL1 only, mapped to the model of GDL2.

use super::expr::ast::{Expr, Variable};
use super::expr::parse;
use super::guide::Condition;
use super::item::{Item, Kind};
use aqlite_rm::diag::Span;
use aqlite_rm::order;

/// Returns the predicate of a function of a binding: `LAST` keeps the latest instance. Other
/// functions are ignored.
pub(crate) fn predicate_of_function(
    function: &str,
    model_id: &str,
    span: Span,
) -> Option<Condition> {
    if !function.eq_ignore_ascii_case("LAST") {
        return None;
    }
    let path = time_path(model_id);
    Some(Condition {
        text: format!("max({path})"),
        span,
        expr: Some(Expr::Extreme {
            is_max: true,
            path: path.to_owned(),
            span,
        }),
    })
}

/// Returns the path of the time of an entry of this archetype.
pub(crate) fn time_path(model_id: &str) -> &'static str {
    match super::bind::class_of(model_id) {
        Some("OBSERVATION") => "/data/events/time",
        Some("ACTION") => "/time",
        _ => "/context/start_time",
    }
}

/// The lists that ODIN files may write as a single value.
const LISTS: [&str; 7] = [
    "when",
    "then",
    "predicates",
    "pre_conditions",
    "default_actions",
    "codes",
    "keywords",
];

/// Translates the tree of a GDL1 guide to the names and words of GDL2. Other trees stay unchanged.
pub(crate) fn translated(root: &mut Item) {
    let is_gdl1 =
        |d: &Item| d.get("archetype_bindings").is_some() && d.get("data_bindings").is_none();
    if !root.get("definition").is_some_and(is_gdl1) {
        return;
    }
    each_member(root, &mut |name, item| match name.as_str() {
        "gdl_version" => *item = Item::of_text("2.0"),
        "archetype_bindings" => {
            "data_bindings".clone_into(name);
            item.values_mut().into_iter().for_each(translated_binding);
            named(item);
        }
        "elements" | "rules" | "terms" | "bindings" => named(item),
        list if LISTS.contains(&list) => {
            as_list(item);
            with_unit(item);
        }
        _ => {}
    });
}

/// Puts a single value into a list.
fn as_list(item: &mut Item) {
    if !matches!(item.kind, Kind::List(_) | Kind::Null) {
        *item = Item {
            span: item.span,
            kind: Kind::List(vec![item.clone()]),
        };
    }
}

/// Calls `visit` with every member, the inner before the outer. Resources of templates are skipped,
/// because they have words of their own.
fn each_member(item: &mut Item, visit: &mut dyn FnMut(&mut String, &mut Item)) {
    if matches!(item.kind, Kind::List(_)) {
        item.values_mut()
            .into_iter()
            .for_each(|inner| each_member(inner, visit));
    }
    for (name, inner) in item
        .members_mut()
        .iter_mut()
        .filter(|(name, _)| name != "object")
    {
        each_member(inner, visit);
        visit(name, inner);
    }
}

fn translated_binding(binding: &mut Item) {
    let model_id = binding.text_of("archetype_id").unwrap_or_default();
    let latest = binding
        .text_of("function")
        .and_then(|f| predicate_of_function(f, model_id, Span::default()));
    let Kind::Map(members) = &mut binding.kind else {
        return;
    };
    let has = |wanted: &str| members.iter().any(|(name, _)| name == wanted);
    let (has_model, has_type) = (has("model_id"), has("type"));
    let is_any = |item: &Item| item.text().is_some_and(|d| d.eq_ignore_ascii_case("ANY"));
    members.retain(|(name, item)| name != "function" && !(name == "domain" && is_any(item)));
    for (name, item) in members.iter_mut() {
        if name == "archetype_id" && !has_model {
            "model_id".clone_into(name);
        } else if name == "domain" && !has_type {
            "type".clone_into(name);
            *item = Item::of_text(&direction(item.text().unwrap_or_default()));
        }
    }
    if let Some(latest) = latest {
        add_predicate(members, Item::of_text(&latest.text));
    }
}

/// Returns the direction of GDL2 for a domain of GDL1.
fn direction(domain: &str) -> String {
    match domain.to_ascii_uppercase().as_str() {
        "EHR" => "INPUT".to_owned(),
        "CDS" => "OUTPUT".to_owned(),
        other => other.to_owned(),
    }
}

/// Adds a predicate to the members of a binding.
fn add_predicate(members: &mut Vec<(String, Item)>, predicate: Item) {
    let known = members.iter_mut().find(|(name, _)| name == "predicates");
    if let Some((_, item)) = known
        && let Kind::List(list) = &mut item.kind
    {
        return list.push(predicate);
    }
    let list = Item {
        span: Span::default(),
        kind: Kind::List(vec![predicate]),
    };
    members.push(("predicates".to_owned(), list));
}

/// Adds the key of each entry as its `id`, as GDL2 requires.
fn named(entries: &mut Item) {
    for (key, entry) in entries.members_mut() {
        if let Kind::Map(members) = &mut entry.kind
            && members.iter().all(|(name, _)| name != "id")
        {
            members.insert(0, ("id".to_owned(), Item::of_text(key)));
        }
    }
}

/// Renames `.units` of GDL1 to `.unit`.
fn with_unit(statements: &mut Item) {
    let Kind::List(items) = &mut statements.kind else {
        return;
    };
    for item in items {
        let Kind::Text(text) = &mut item.kind else {
            continue;
        };
        let mut ends: Vec<usize> = Vec::new();
        let mut visit = |v: &Variable| {
            ends.extend((v.attribute.as_deref() == Some("units")).then_some(v.span.end))
        };
        match parse::action(text) {
            Ok(action) => action.variables(&mut visit),
            Err(_) => parse::condition(text)
                .iter()
                .for_each(|expr| expr.variables(&mut visit)),
        }
        order::sort(&mut ends);
        // From the end, so that the positions before stay valid.
        for last in ends.iter().rev().filter_map(|end| end.checked_sub(1)) {
            text.replace_range(last..=last, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    #[test]
    fn a_guide_of_gdl1_is_printed_with_the_names_of_gdl2() {
        let guide = include_str!("../../../tests/cases/gdl/chain_advice.gdl");
        let expected = include_str!("../../../tests/cases/gdl/chain_advice.json");
        let own_id = guide.replace("(RULE) <", "(RULE) <\nid = <\"gt0008\">");
        for guide in [guide, &own_id] {
            let printed = crate::print::json(guide).unwrap();
            let json = |text: &str| -> Json { serde_json::from_str(text).unwrap() };
            assert_eq!(json(&printed), json(expected));
            // The comparison does not notice a member that occurs twice.
            let ids = printed.matches(r#""id": "gt0008""#).count();
            assert_eq!(ids, 1, "{printed}");
        }
    }
}
