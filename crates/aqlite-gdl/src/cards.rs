//! The advice of a guide as cards of CDS Hooks 2.0: the cards of its rules, and one card for
//! results and resources that no rule shows.

use super::compile::CompiledGuide;
use super::fill::readable;
use super::run::{CardOut, OutputValue, Run};
use super::value::Value;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

/// The maximum length of a summary in characters (CDS Hooks 2.0, card attributes).
const SUMMARY: usize = 140;

/// Returns the cards of a run. `new_uuid` supplies the ids of cards and suggestions.
pub fn cards(
    compiled: &CompiledGuide,
    run: &Run,
    language: &str,
    new_uuid: &mut dyn FnMut() -> String,
) -> Vec<Json> {
    let mut cards: Vec<Json> = run
        .cards
        .iter()
        .map(|card| rule_card(card, new_uuid))
        .collect();
    cards.extend(results_card(compiled, run, language, new_uuid));
    cards
}

fn rule_card(card: &CardOut, new_uuid: &mut dyn FnMut() -> String) -> Json {
    let (summary, rest) = cut(&card.summary);
    let detail = match (rest, &card.detail) {
        (Some(whole), Some(detail)) => Some(format!("{whole}\n\n{detail}")),
        (whole, detail) => whole.or_else(|| detail.clone()),
    };
    let indicator = if matches!(card.indicator.as_str(), "warning" | "critical") {
        card.indicator.as_str()
    } else {
        "info"
    };
    let suggestions: Vec<Json> = card
        .suggestions
        .iter()
        .map(|s| json!({ "label": s.label, "uuid": s.uuid.clone().unwrap_or_else(&mut *new_uuid), "actions": s.actions }))
        .collect();
    let links = card.links.iter().filter_map(|link| {
        let kind = if matches!(link.kind.as_deref(), Some("smart" | "app")) {
            "smart"
        } else {
            "absolute"
        };
        link.url
            .as_ref()
            .map(|url| json!({ "label": link.label, "url": url, "type": kind }))
    });
    let source =
        json!({ "label": card.source.label, "url": card.source.url, "icon": card.source.icon });
    card_json(
        &summary,
        detail,
        indicator,
        &source,
        suggestions,
        links.collect(),
        new_uuid,
    )
}

/// Returns a card for the results and resources of the run, if no rule shows a card.
fn results_card(
    compiled: &CompiledGuide,
    run: &Run,
    language: &str,
    new_uuid: &mut dyn FnMut() -> String,
) -> Option<Json> {
    let guide = compiled.guide();
    let values = || {
        run.outputs
            .iter()
            .flat_map(|o| o.values.iter().map(move |v| (o, v)))
    };
    let found: Vec<&OutputValue> = values()
        .map(|(_, v)| v)
        .filter(|v| !matches!(v.value, Value::Object(_)) && run.cards.is_empty())
        .collect();
    let suggestions: Vec<Json> = values()
        .filter_map(|(output, v)| if let Value::Object(object) = &v.value { Some((output, object)) } else { None })
        .map(|(output, object)| {
            let template = guide.templates.iter().find(|t| *t.id == *output.id);
            let label = template.and_then(|t| t.name.as_deref()).or_else(|| guide.term(&output.id, language)).unwrap_or(&output.model_id);
            json!({ "label": label, "uuid": new_uuid(), "actions": [{ "type": "create", "description": label, "resource": &**object }] })
        })
        .collect();
    if found.is_empty() && suggestions.is_empty() {
        return None;
    }
    let name = |code: &str| guide.term(code, language).unwrap_or(code).to_owned();
    let concept = guide.term(&guide.concept, language).unwrap_or(&guide.id);
    let lines = found.iter().fold(String::new(), |mut out, v| {
        let _ = writeln!(out, "- {}: {}", name(&v.code), readable(&v.value));
        out
    });
    let (summary, _) = cut(&found.first().map_or_else(
        || concept.to_owned(),
        |v| format!("{concept}: {} {}", name(&v.code), readable(&v.value)),
    ));
    let source = json!({ "label": concept });
    Some(card_json(
        &summary,
        (!lines.is_empty()).then_some(lines),
        "info",
        &source,
        suggestions,
        Vec::new(),
        new_uuid,
    ))
}

/// Builds the JSON of a card. Empty fields are left out.
fn card_json(
    summary: &str,
    detail: Option<String>,
    indicator: &str,
    source: &Json,
    suggestions: Vec<Json>,
    links: Vec<Json>,
    new_uuid: &mut dyn FnMut() -> String,
) -> Json {
    let source: Map<String, Json> = source
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, v)| !v.is_null())
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let mut card =
        json!({ "uuid": new_uuid(), "summary": summary, "indicator": indicator, "source": source });
    let optional = [
        ("detail", detail.map(Json::from)),
        (
            "selectionBehavior",
            (!suggestions.is_empty()).then(|| Json::from("any")),
        ),
        (
            "suggestions",
            (!suggestions.is_empty()).then_some(Json::from(suggestions)),
        ),
        ("links", (!links.is_empty()).then_some(Json::from(links))),
    ];
    if let Some(members) = card.as_object_mut() {
        members.extend(
            optional
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?))),
        );
    }
    card
}

/// Cuts a text to the length of a summary. The second text is the whole one, if the summary is
/// shorter.
fn cut(text: &str) -> (String, Option<String>) {
    if text.chars().count() <= SUMMARY {
        return (text.to_owned(), None);
    }
    let short: String = text.chars().take(SUMMARY - 1).collect();
    (format!("{short}…"), Some(text.to_owned()))
}
