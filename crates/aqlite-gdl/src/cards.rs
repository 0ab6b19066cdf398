//! The advice of a guide as cards of CDS Hooks 2.0: the cards of its rules, one card for results and
//! resources that no rule shows, and one card for data that could not be evaluated.

use super::compile::CompiledGuide;
use super::fill::readable;
use super::run::{CardOut, LinkOut, Run};
use super::trace::Note;
use super::value::Value;
use serde_json::{Map, Value as Json, json};

/// The maximum length of a summary in characters (CDS Hooks 2.0, card attributes).
const SUMMARY: usize = 140;

/// The indicators of a card (CDS Hooks 2.0, card attributes).
pub(crate) const INDICATORS: [&str; 3] = ["info", "warning", "critical"];

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

/// Returns a card with the notes of the run, if it has any, for responses that have cards alone.
///
/// A rule whose condition could not be computed has not fired. Without this card, the response
/// would look like that of a guide that has nothing to say about the patient.
pub fn notes_card(
    compiled: &CompiledGuide,
    run: &Run,
    language: &str,
    new_uuid: &mut dyn FnMut() -> String,
) -> Option<Json> {
    if run.notes.is_empty() {
        return None;
    }
    let concept = concept(compiled, language);
    let line = |note: &Note| match note.statement.as_str() {
        "" => format!("- {}: {}\n", note.place, note.reason),
        statement => format!("- {}, `{statement}`: {}\n", note.place, note.reason),
    };
    let parts = CardParts {
        summary: &within_summary(concept, ": not all of the data could be evaluated"),
        detail: Some(run.notes.iter().map(line).collect()),
        indicator: "warning",
        suggestions: Vec::new(),
        links: Vec::new(),
    };
    Some(parts.into_json(&[("label", Some(&concept.to_owned()))], new_uuid))
}

/// Returns the name of the guide in a language.
fn concept<'g>(compiled: &'g CompiledGuide, language: &str) -> &'g str {
    let guide = compiled.guide();
    guide.term(&guide.concept, language).unwrap_or(&guide.id)
}

/// Joins a name and a message to a summary. A name that is too long is cut, the message never.
fn within_summary(name: &str, message: &str) -> String {
    let room = SUMMARY.saturating_sub(message.chars().count());
    if name.chars().count() <= room {
        return format!("{name}{message}");
    }
    let short: String = name.chars().take(room.saturating_sub(1)).collect();
    format!("{short}…{message}")
}

fn rule_card(card: &CardOut, new_uuid: &mut dyn FnMut() -> String) -> Json {
    let (summary, rest) = cut(&card.summary);
    let detail = match (rest, &card.detail) {
        (Some(whole), Some(detail)) => Some(format!("{whole}\n\n{detail}")),
        (whole, detail) => whole.or_else(|| detail.clone()),
    };
    let known = INDICATORS.into_iter().find(|i| *i == card.indicator);
    let suggestions = card.suggestions.iter().map(|s| {
        let uuid = s.uuid.clone().unwrap_or_else(&mut *new_uuid);
        json!({ "label": s.label, "uuid": uuid, "actions": s.actions })
    });
    let parts = CardParts {
        summary: &summary,
        detail,
        // The reader of the guide has reported any other text.
        indicator: known.unwrap_or("info"),
        suggestions: suggestions.collect(),
        links: card.links.iter().filter_map(link_json).collect(),
    };
    let source = &card.source;
    let source = [
        ("label", Some(&source.label)),
        ("url", source.url.as_ref()),
        ("icon", source.icon.as_ref()),
    ];
    parts.into_json(&source, new_uuid)
}

/// Converts a link, unless it has no address.
fn link_json(link: &LinkOut) -> Option<Json> {
    let kind = match link.kind.as_deref() {
        Some("smart" | "app") => "smart",
        _ => "absolute",
    };
    let url = link.url.as_ref()?;
    Some(json!({ "label": link.label, "url": url, "type": kind }))
}

/// Returns a card for the results and resources of the run, if no rule shows a card.
fn results_card(
    compiled: &CompiledGuide,
    run: &Run,
    language: &str,
    new_uuid: &mut dyn FnMut() -> String,
) -> Option<Json> {
    let guide = compiled.guide();
    let name = |code: &str| guide.term(code, language).unwrap_or(code).to_owned();
    let outputs = run.outputs.iter();
    let values = outputs.flat_map(|o| o.values.iter().map(move |v| (o, v)));
    let (mut found, mut suggestions) = (Vec::new(), Vec::new());
    for (output, value) in values {
        match &value.value {
            Value::Object(object) if &*value.path == "/" => {
                let template = guide.templates.iter().find(|t| *t.id == *output.id);
                let label = template.and_then(|t| t.name.as_deref());
                let label = label.or_else(|| guide.term(&output.id, language));
                let label = label.unwrap_or(&output.model_id);
                suggestions.push(creation(label, object, new_uuid));
            }
            _ if run.cards.is_empty() => {
                found.push((name(&value.code), readable(&value.value)));
            }
            _ => {}
        }
    }
    if found.is_empty() && suggestions.is_empty() {
        return None;
    }
    let concept = concept(compiled, language);
    let lines = found.iter();
    let lines: String = lines
        .map(|(name, text)| format!("- {name}: {text}\n"))
        .collect();
    let summary = match found.first() {
        Some((name, text)) => format!("{concept}: {name} {text}"),
        None => concept.to_owned(),
    };
    let parts = CardParts {
        summary: &cut(&summary).0,
        detail: (!lines.is_empty()).then_some(lines),
        indicator: "info",
        suggestions,
        links: Vec::new(),
    };
    Some(parts.into_json(&[("label", Some(&concept.to_owned()))], new_uuid))
}

/// Returns a suggestion to create a resource.
fn creation(label: &str, resource: &Json, new_uuid: &mut dyn FnMut() -> String) -> Json {
    let action = json!({ "type": "create", "description": label, "resource": resource });
    json!({ "label": label, "uuid": new_uuid(), "actions": [action] })
}

/// The parts of a card. Empty ones are left out.
struct CardParts<'a> {
    summary: &'a str,
    detail: Option<String>,
    indicator: &'a str,
    suggestions: Vec<Json>,
    links: Vec<Json>,
}

impl CardParts<'_> {
    fn into_json(
        self,
        source: &[(&str, Option<&String>)],
        new_uuid: &mut dyn FnMut() -> String,
    ) -> Json {
        let source = source
            .iter()
            .filter_map(|(name, text)| Some((*name, (*text)?)));
        let source: Map<String, Json> = source
            .map(|(name, text)| (name.to_owned(), Json::from(text.as_str())))
            .collect();
        let mut card = json!({
            "uuid": new_uuid(),
            "summary": self.summary,
            "indicator": self.indicator,
            "source": source,
        });
        let mut add = |name: &str, value: Json| {
            if let Some(members) = card.as_object_mut() {
                members.insert(name.to_owned(), value);
            }
        };
        if let Some(detail) = self.detail {
            add("detail", Json::from(detail));
        }
        if !self.suggestions.is_empty() {
            add("selectionBehavior", Json::from("any"));
            add("suggestions", Json::from(self.suggestions));
        }
        if !self.links.is_empty() {
            add("links", Json::from(self.links));
        }
        card
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_leaves_room_for_the_message() {
        assert_eq!(within_summary("Weight", ": unclear"), "Weight: unclear");
        let summary = within_summary(&"ä".repeat(SUMMARY), ": unclear");
        assert_eq!(summary.chars().count(), SUMMARY);
        assert!(summary.ends_with("ä…: unclear"));
    }
}
