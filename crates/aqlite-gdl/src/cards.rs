//! The advice of a guide as cards of CDS Hooks 2.0: the cards of its rules, one card for results and
//! resources that no rule shows, and one card for data that could not be evaluated.
//!
//! The `detail` of a card is Markdown. That of a rule is the author's; everything else in it is
//! literal text: values, and the texts of a guide that are not written as Markdown.

use super::budget::{FRAME, json_size};
use super::compile::CompiledGuide;
use super::eval::{GuideRun, Place};
use super::fill::{self, Missing, readable};
use super::guide::{Card, Link, SuggestedAction};
use super::markdown::literal;
use super::run::{ActionOut, CardOut, Effects, LinkOut, Output, Run, SuggestionOut};
use super::trace::Note;
use super::value::Value;
use serde_json::{Map, Value as Json, json};

/// The maximum length of a summary in characters (CDS Hooks 2.0, card attributes).
const SUMMARY: usize = 140;

/// The bytes of a list after which it ends with `…`. The complete results are in the answers of the
/// other requests.
const LIST: usize = 1_000_000;

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
    let item = |note: &Note| match note.statement.as_str() {
        "" => format!("{}: {}", note.place, note.reason),
        statement => format!("{}, `{statement}`: {}", note.place, note.reason),
    };
    let parts = CardParts {
        summary: &within_summary(concept, ": not all of the data could be evaluated"),
        detail: Some(list(run.notes.iter().map(item))),
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

impl GuideRun<'_> {
    /// Adds the filled cards of a rule that fired.
    pub fn show_cards(&self, index: usize, effects: &mut Effects) {
        let Some(plan) = self.guide.rules.get(index) else {
            self.budget.broken("a rule has no plan");
            return;
        };
        let Some(rule) = self.guide.guide.rules.get(plan.source) else {
            self.budget.broken("a plan has no rule");
            return;
        };
        self.place.set(Place::Cards(index));
        // One entry for each suggested action of the rule, in the order of the cards.
        let mut values = plan.card_values.iter();
        for card in &rule.cards {
            // The texts of the card are counted before they are copied.
            if !self.budget.spend_bytes(card.size()) {
                return;
            }
            let card = self.card(card, &mut values, &effects.created);
            effects.cards.push(card);
        }
    }

    /// Fills a card. `values` are those of the suggested actions of this card and the next ones.
    fn card<'v>(
        &self,
        card: &Card,
        values: &mut impl Iterator<Item = &'v Vec<(String, u32)>>,
        created: &[Output],
    ) -> CardOut {
        let values_of = |code: &str, attribute: Option<&str>| {
            self.placeholder_or_note(code, attribute, &[], &[])
        };
        let text = |t: &str| fill::filled_text(t, Missing::Empty, &values_of);
        let markdown = |t: &str| {
            fill::filled_text(t, Missing::Empty, &|code, attribute| {
                let last = values_of(code, attribute).pop();
                last.map(|value| self.literal(&value)).into_iter().collect()
            })
        };
        let summary = text(&card.summary);
        // A long summary is repeated in the detail.
        if summary.chars().count() > SUMMARY {
            self.literal(&Value::text(&summary));
        }
        let mut action = |action: &SuggestedAction| {
            let values = values.next().map(Vec::as_slice).unwrap_or_default();
            self.suggested_action(action, values, created)
        };
        let suggestions = card.suggestions.iter().map(|s| SuggestionOut {
            label: text(&s.label),
            uuid: s.uuid.clone(),
            actions: s.actions.iter().map(&mut action).collect(),
        });
        let suggestions = suggestions.collect();
        let links = card.links.iter().map(|l| LinkOut {
            label: text(&l.label),
            ..link(l)
        });
        CardOut {
            summary,
            detail: card.detail.as_deref().map(markdown),
            indicator: card.indicator.clone(),
            source: self.card_source(card),
            suggestions,
            links: links.collect(),
        }
    }

    /// Returns the text of a value as Markdown, and counts it.
    fn literal(&self, value: &Value) -> Value {
        let text = Value::text(&literal(&readable(value)));
        self.budget.spend_value(&text);
        text
    }

    /// Returns the source that a card names. The guide is the label of a source without one.
    fn card_source(&self, card: &Card) -> LinkOut {
        let mut source = link(card.source.as_ref().unwrap_or(&Link::default()));
        if source.label.is_empty() {
            source.label.clone_from(&self.guide.guide.id);
        }
        source
    }

    fn suggested_action(
        &self,
        action: &SuggestedAction,
        values: &[(String, u32)],
        created: &[Output],
    ) -> ActionOut {
        let local: Vec<(String, Vec<Value>)> = values
            .iter()
            .map(|(name, id)| (name.clone(), vec![self.eval(*id, None).into_owned()]))
            .collect();
        let value_of = |code: &str, attribute: Option<&str>| {
            self.placeholder_or_note(code, attribute, &local, created)
        };
        let templates = &self.guide.guide.templates;
        let template = action.template.as_ref();
        let template = template.and_then(|(id, _)| templates.iter().find(|t| t.id == *id));
        let template = template.filter(|t| self.budget.spend_bytes(FRAME + json_size(&t.object)));
        let resource = template.and_then(|t| fill::filled(&t.object, &value_of));
        let deleted = resource.as_ref().filter(|_| action.kind == "delete");
        let resource_id = deleted.and_then(reference_to);
        ActionOut {
            kind: action.kind.clone(),
            description: fill::filled_text(&action.description, Missing::Empty, &value_of),
            resource: resource.filter(|_| resource_id.is_none()),
            resource_id,
        }
    }
}

/// Returns the relative reference of a resource (CDS Hooks 2.0, `resourceId` of actions).
fn reference_to(resource: &Json) -> Option<String> {
    let text = |name: &str| resource.get(name)?.as_str();
    Some(format!("{}/{}", text("resourceType")?, text("id")?))
}

fn link(link: &Link) -> LinkOut {
    LinkOut {
        label: link.label.clone(),
        url: link.url.clone(),
        icon: link.icon.clone(),
        kind: link.kind.clone(),
    }
}

fn rule_card(card: &CardOut, new_uuid: &mut dyn FnMut() -> String) -> Json {
    let (summary, rest) = cut(&card.summary);
    let detail = match (rest, &card.detail) {
        (Some(whole), Some(detail)) => Some(format!("{}\n\n{detail}", literal(&whole))),
        (Some(whole), None) => Some(literal(&whole)),
        (None, detail) => detail.clone(),
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
    let items = found.iter().map(|(name, text)| format!("{name}: {text}"));
    let summary = match found.first() {
        Some((name, text)) => format!("{concept}: {name} {text}"),
        None => concept.to_owned(),
    };
    let parts = CardParts {
        summary: &cut(&summary).0,
        detail: (!found.is_empty()).then(|| list(items)),
        indicator: "info",
        suggestions,
        links: Vec::new(),
    };
    Some(parts.into_json(&[("label", Some(&concept.to_owned()))], new_uuid))
}

/// Returns a list of plain texts as Markdown.
fn list(items: impl Iterator<Item = String>) -> String {
    let mut list = String::new();
    for item in items {
        if list.len() > LIST {
            list.push_str("- …\n");
            break;
        }
        list.extend(["- ", &literal(&item), "\n"]);
    }
    list
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
