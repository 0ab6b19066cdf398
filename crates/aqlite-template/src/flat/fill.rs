//! Required values that the sender omitted: from `ctx`, from the template, or the usual default.

use super::complete::put_code;
use super::form::{EMPTY_TREE, KeyTree, SegmentInstance};
use super::party::mode;
use super::read::{DocumentReader, attr_of, concrete_class};
use crate::draft::Draft;
use crate::tree::Constraint;
use crate::web::{Step, WebNode};
use aqlite_rm::class::{Attr, Card, Cls};
use aqlite_rm::order;
use aqlite_rm::terminology;
use aqlite_rm::time::{Temporal, TemporalKind};
use std::borrow::Cow;

impl<'r> DocumentReader<'r, '_> {
    fn default_time(&self) -> &'r str {
        match self.context.text("time") {
            None | Some("now") => self.now,
            Some(time) => time,
        }
    }

    /// Fills a non-empty object that is a node.
    pub fn fill(&mut self, draft: &mut Draft<'r>, web: &'r WebNode, form: &'r KeyTree<'_>) {
        self.fill_fixed_values(draft, web, form);
        for kid in &web.children {
            let between = kid
                .steps
                .len()
                .saturating_sub(1 + usize::from(kid.element().is_some()));
            self.fill_levels(draft, kid.steps.get(..between).unwrap_or_default());
            // The order of the steps matters: levels must exist before events and entries are filled.
        }
        let class = draft.class();
        if class.is_a(Cls::ENTRY) {
            self.fill_entry(draft, web);
        }
        if class.is_a(Cls::LOCATABLE) {
            self.add_links(draft);
        }
        match class {
            Cls::OBSERVATION => self.fill_observation(draft),
            Cls::POINT_EVENT | Cls::INTERVAL_EVENT => self.fill_event(draft, Some(web)),
            Cls::ACTION => self.fill_action(draft, web),
            Cls::ISM_TRANSITION => self.fill_transition(draft, web),
            Cls::ACTIVITY => self.fill_activity(draft, web),
            Cls::INSTRUCTION => {
                let text = self
                    .context
                    .text("instruction_narrative")
                    .unwrap_or("<none>");
                default(draft, Attr::NARRATIVE, || {
                    Draft::holding(Cls::DV_TEXT, Attr::VALUE, text)
                });
            }
            Cls::EVENT_CONTEXT => self.fill_event_context(draft),
            _ => {}
        }
    }

    /// Adds mandatory values that have only one permitted value in the template.
    fn fill_fixed_values(
        &mut self,
        draft: &mut Draft<'r>,
        web: &'r WebNode,
        form: &'r KeyTree<'_>,
    ) {
        for kid in web
            .children
            .iter()
            .filter(|k| !k.in_context && !k.has_other && k.class.is_a(Cls::DATA_VALUE))
        {
            let is_needed = kid
                .steps
                .iter()
                .rev()
                .skip(1)
                .all(|s| s.occurrences.lower > 0)
                && kid.occurrences.lower > 0;
            if !is_needed || !form.instances(&kid.id).is_empty() {
                continue;
            }
            let Some(value) = self.only_value(kid) else {
                continue;
            };
            let between = kid
                .steps
                .len()
                .saturating_sub(1 + usize::from(kid.element().is_some()));
            let (levels, last) = kid.steps.split_at_checked(between).unwrap_or_default();
            // A fixed value alone does not create an optional structure.
            let Some(last) = last.first().filter(|_| is_begun(draft, levels)) else {
                continue;
            };
            let made = match kid.element() {
                Some(step) => self
                    .new_object(Some(step), Cls::ELEMENT)
                    .with(Attr::VALUE, value),
                None => value,
            };
            self.place_object(draft, levels, last, made);
        }
    }

    /// Creates the mandatory levels between a node and its children, even if they are empty.
    fn fill_levels(&mut self, draft: &mut Draft<'r>, steps: &'r [Step]) {
        let Some((step, rest)) = steps.split_first() else {
            return;
        };
        if draft.get(step.attr).is_none() {
            if !is_needed(draft.class(), step.attr) {
                return;
            }
            let level = self.new_object(Some(step), concrete_class(step.class));
            draft.add(step.attr, level);
        }
        for member in draft.members_mut(step.attr) {
            self.fill_levels(member, rest);
        }
    }

    fn only_value(&self, kid: &'r WebNode) -> Option<Draft<'r>> {
        match kid.class {
            Cls::DV_CODED_TEXT => {
                let (terminology, [code]) = kid.codes()? else {
                    return None;
                };
                let label = self.label(Some(kid), terminology, code)?;
                let mut value = Draft::object(Cls::DV_CODED_TEXT);
                put_code(
                    &mut value,
                    terminology.into(),
                    code.as_str().into(),
                    Some(label),
                );
                Some(value)
            }
            Cls::DV_TEXT => kid
                .constraints_at(&["value"])
                .find_map(|n| match &n.constraint {
                    Constraint::Text {
                        list, open: false, ..
                    } => {
                        let [only] = list.as_slice() else { return None };
                        Some(Draft::holding(Cls::DV_TEXT, Attr::VALUE, only.as_str()))
                    }
                    _ => None,
                }),
            Cls::DV_BOOLEAN => kid
                .constraints_at(&["value"])
                .find_map(|n| match n.constraint {
                    Constraint::Boolean {
                        true_valid,
                        false_valid,
                    } if true_valid != false_valid => Some(
                        Draft::object(Cls::DV_BOOLEAN)
                            .with(Attr::VALUE, Draft::boolean(true_valid)),
                    ),
                    _ => None,
                }),
            _ => None,
        }
    }

    fn fill_entry(&mut self, draft: &mut Draft<'r>, web: &'r WebNode) {
        default(draft, Attr::LANGUAGE, || {
            Draft::code("ISO_639-1", self.language)
        });
        default(draft, Attr::ENCODING, || {
            Draft::code("IANA_character-sets", "UTF-8")
        });
        // The Reference Model requires a subject. Without a sender's choice it is the subject of
        // the record.
        if draft.get(Attr::SUBJECT).is_none() {
            let subject = web
                .children
                .iter()
                .find(|k| attr_of(k) == Attr::SUBJECT && k.steps.len() == 1);
            let class = subject
                .map(|k| k.class)
                .filter(|c| *c == Cls::PARTY_IDENTIFIED)
                .unwrap_or(Cls::PARTY_SELF);
            draft.put(Attr::SUBJECT, Draft::object(class));
        }
        let provider = self.new_provider();
        provider
            .into_iter()
            .for_each(|p| default(draft, Attr::PROVIDER, || p));
        if draft.get(Attr::OTHER_PARTICIPATIONS).is_none() {
            self.new_participations()
                .into_iter()
                .for_each(|p| draft.add(Attr::OTHER_PARTICIPATIONS, p));
        }
        if draft.get(Attr::WORKFLOW_ID).is_none()
            && let Some(form) = self.context.part("work_flow_id", 0)
        {
            let made = self.read_value(Cls::OBJECT_REF, form, None, Attr::WORKFLOW_ID);
            made.into_iter()
                .for_each(|m| draft.put(Attr::WORKFLOW_ID, m));
        }
    }

    fn new_provider(&mut self) -> Option<Draft<'r>> {
        let (name, id) = (
            self.context.text("provider_name"),
            self.context.text("provider_id"),
        );
        self.new_party(name, id)
    }

    /// Creates a party from name and id.
    fn new_party(&mut self, name: Option<&'r str>, id: Option<&'r str>) -> Option<Draft<'r>> {
        self.new_party_with(name, id, &[])
    }

    /// Creates a party from name and id, with scheme and namespace of the reference if given.
    fn new_party_with(
        &mut self,
        name: Option<&'r str>,
        id: Option<&'r str>,
        reference: &[(Attr, Option<&'r str>)],
    ) -> Option<Draft<'r>> {
        if name.is_none() && id.is_none() {
            return None;
        }
        let mut party = Draft::object(Cls::PARTY_IDENTIFIED);
        name.into_iter()
            .for_each(|n| party.put(Attr::NAME, Draft::text(n)));
        if let Some(id) = id {
            self.set_leaf(&mut party, &[Attr::EXTERNAL_REF, Attr::ID, Attr::VALUE], id);
            for (attr, text) in reference
                .iter()
                .filter_map(|(attr, text)| Some((*attr, (*text)?)))
            {
                let path: &[Attr] = if attr == Attr::SCHEME {
                    &[Attr::EXTERNAL_REF, Attr::ID, Attr::SCHEME]
                } else {
                    &[Attr::EXTERNAL_REF, Attr::NAMESPACE]
                };
                self.set_leaf(&mut party, path, text);
            }
        }
        self.complete_party(&mut party, &EMPTY_TREE);
        Some(party)
    }

    /// Creates the participations of `ctx`.
    fn new_participations(&mut self) -> Vec<Draft<'r>> {
        let mut made = Vec::new();
        let indexes = self.context.participations();
        // The participations are repeated in each entry: their total is limited.
        if !self.may_copy("ctx/participation_name", indexes.len()) {
            return made;
        }
        for index in indexes {
            let name = self.context.text_at("participation_name", index);
            let id = self.context.text_at("participation_id", index);
            let Some(mut performer) = self.new_party(name, id) else {
                continue;
            };
            if let Some(form) = self.context.part("participation_identifiers", index) {
                self.add_identifiers(&mut performer, form);
            }
            let function = self
                .context
                .text_at("participation_function", index)
                .unwrap_or("unknown");
            let how = self
                .context
                .text_at("participation_mode", index)
                .unwrap_or("193");
            made.push(
                Draft::object(Cls::PARTICIPATION)
                    .with(
                        Attr::FUNCTION,
                        Draft::holding(Cls::DV_TEXT, Attr::VALUE, function),
                    )
                    .with(Attr::MODE, mode(how))
                    .with(Attr::PERFORMER, performer),
            );
        }
        made
    }

    /// Adds identifiers: `issuer::assigner::id::type;…`, or the same as suffixes.
    fn add_identifiers(&mut self, performer: &mut Draft<'r>, form: &'r KeyTree<'_>) {
        let names = [
            ("issuer", Attr::ISSUER),
            ("assigner", Attr::ASSIGNER),
            ("id", Attr::ID),
            ("type", Attr::TYPE),
        ];
        for one in form
            .value("")
            .map(|value| value.text())
            .unwrap_or_default()
            .split(';')
            .filter(|o| !o.is_empty())
        {
            let mut identifier = Draft::object(Cls::DV_IDENTIFIER);
            one.split("::")
                .zip(names)
                .for_each(|(text, (_, attr))| identifier.put(attr, Draft::text(text)));
            performer.add(Attr::IDENTIFIERS, identifier);
        }
        for number in order::distinct(
            form.values
                .iter()
                .filter(|given| !given.suffix.is_empty())
                .map(|given| given.index),
        ) {
            let mut identifier = Draft::object(Cls::DV_IDENTIFIER);
            for (name, attr) in names {
                let value = form.value_at(name, number);
                value
                    .into_iter()
                    .for_each(|v| identifier.put(attr, Draft::text(v.text())));
            }
            performer.add(Attr::IDENTIFIERS, identifier);
        }
    }

    fn add_links(&mut self, draft: &mut Draft<'r>) {
        if draft.get(Attr::LINKS).is_some() || self.context.part("link", 0).is_none() {
            return;
        }
        let indexes = self.context.indexes("link");
        if !self.may_copy("ctx/link", indexes.len()) {
            return;
        }
        for index in indexes {
            let form = self.context.part("link", index);
            let made = form.and_then(|f| self.read_value(Cls::LINK, f, None, Attr::LINKS));
            made.into_iter().for_each(|m| draft.add(Attr::LINKS, m));
        }
    }

    /// Reads `history_origin` of an OBSERVATION, the origin of its histories. Returns whether the
    /// segment was one.
    pub fn read_history_origin(
        &mut self,
        draft: &mut Draft<'r>,
        segment: &str,
        instances: &'r [SegmentInstance<'_>],
    ) -> bool {
        let attrs: &[Attr] = match segment.trim_start_matches('_') {
            "history_origin" => &[Attr::DATA, Attr::STATE],
            "data_history_origin" => &[Attr::DATA],
            "state_history_origin" => &[Attr::STATE],
            _ => return false,
        };
        if draft.class() != Cls::OBSERVATION {
            return false;
        }
        let Some(form) = self.only_instance(segment, instances) else {
            return true;
        };
        let made = self.at_segment(segment, None, |r| {
            r.read_value(Cls::DV_DATE_TIME, form, None, Attr::ORIGIN)
        });
        for attr in attrs {
            if let (Some(history), Some(made)) = (draft.get_mut(*attr), &made) {
                history.put(Attr::ORIGIN, made.clone());
            }
        }
        true
    }

    fn fill_observation(&mut self, draft: &mut Draft<'r>) {
        let origin = self.context.text("history_origin");
        for attr in [Attr::DATA, Attr::STATE] {
            let Some(history) = draft.get_mut(attr).filter(|h| h.class() == Cls::HISTORY) else {
                continue;
            };
            for event in history.members_mut(Attr::EVENTS) {
                self.fill_event(event, None);
            }
            // The earliest event, because the origin may not be later than any event (RM, HISTORY).
            if history.get(Attr::ORIGIN).is_none() {
                let times = history
                    .members(Attr::EVENTS)
                    .iter()
                    .filter_map(|e| e.text_along(&[Attr::TIME, Attr::VALUE]));
                let earliest = times
                    .min_by_key(|t| {
                        Temporal::parse(TemporalKind::DateTime, t).map_or(i64::MAX, |t| t.earliest)
                    })
                    .map(|t| t.to_string());
                let origin = origin
                    .map(Cow::Borrowed)
                    .or(earliest.map(Cow::Owned))
                    .unwrap_or(Cow::Borrowed(self.default_time()));
                history.put(
                    Attr::ORIGIN,
                    Draft::holding(Cls::DV_DATE_TIME, Attr::VALUE, origin),
                );
            }
        }
    }

    fn fill_event(&mut self, draft: &mut Draft<'r>, web: Option<&'r WebNode>) {
        let time = self
            .origin
            .or(self.context.text("history_origin"))
            .unwrap_or(self.default_time());
        default(draft, Attr::TIME, || {
            Draft::holding(Cls::DV_DATE_TIME, Attr::VALUE, time)
        });
        if draft.class() != Cls::INTERVAL_EVENT {
            return;
        }
        let width = web
            .and_then(|w| w.children.iter().find(|k| attr_of(k) == Attr::WIDTH))
            .and_then(only_duration)
            .unwrap_or("PT0S");
        default(draft, Attr::WIDTH, || {
            Draft::holding(Cls::DV_DURATION, Attr::VALUE, width)
        });
        let function = web
            .and_then(|w| {
                w.children
                    .iter()
                    .find(|k| attr_of(k) == Attr::MATH_FUNCTION)
            })
            .and_then(|k| k.codes()?.1.first());
        // 146 is "mean".
        let code = function.map_or("146", String::as_str);
        default(draft, Attr::MATH_FUNCTION, || openehr(code));
    }

    fn fill_action(&mut self, draft: &mut Draft<'r>, web: &'r WebNode) {
        let time = self
            .context
            .text("action_time")
            .unwrap_or(self.default_time());
        default(draft, Attr::TIME, || {
            Draft::holding(Cls::DV_DATE_TIME, Attr::VALUE, time)
        });
        let mut transition = match draft.get(Attr::ISM_TRANSITION) {
            Some(there) => there.clone(),
            None => Draft::object(Cls::ISM_TRANSITION),
        };
        if let Some(kid) = web.children.iter().find(|k| k.class == Cls::ISM_TRANSITION) {
            self.fill_transition(&mut transition, kid);
        }
        draft.put(Attr::ISM_TRANSITION, transition);
    }

    /// Completes the state of a transition from its careflow step.
    fn fill_transition(&mut self, draft: &mut Draft<'r>, web: &'r WebNode) {
        if draft.get(Attr::CURRENT_STATE).is_some() {
            return;
        }
        let step = draft.text_along(&[Attr::CAREFLOW_STEP, Attr::DEFINING_CODE, Attr::CODE_STRING]);
        let states = step
            .and_then(|step| web.transitions.iter().find(|(code, _)| code == step))
            .map(|(_, states)| states.as_slice());
        let asked = self.context.text("action_ism_transition_current_state");
        let asked =
            asked.map(|a| terminology::code_of(&terminology::INSTRUCTION_STATES, a).unwrap_or(a));
        let code = states
            .and_then(|s| s.first())
            .map(String::as_str)
            .or(asked)
            // 532 is "completed".
            .unwrap_or("532");
        draft.put(Attr::CURRENT_STATE, openehr(code));
    }

    fn fill_activity(&mut self, draft: &mut Draft<'r>, web: &'r WebNode) {
        let timing = self.context.text("activity_timing").unwrap_or("R1");
        default(draft, Attr::TIMING, || {
            Draft::holding(Cls::DV_PARSABLE, Attr::VALUE, timing)
                .with(Attr::FORMALISM, Draft::text("timing"))
        });
        default(draft, Attr::ACTION_ARCHETYPE_ID, || {
            Draft::text(usual_actions(web))
        });
    }

    fn fill_event_context(&mut self, draft: &mut Draft<'r>) {
        let time = self.default_time();
        default(draft, Attr::START_TIME, || {
            Draft::holding(Cls::DV_DATE_TIME, Attr::VALUE, time)
        });
        let setting = self.context.text("setting").unwrap_or("238");
        default(draft, Attr::SETTING, || {
            openehr(terminology::code_of(&terminology::SETTING, setting).unwrap_or(setting))
        });
        if let Some(end) = self.context.text("end_time") {
            default(draft, Attr::END_TIME, || {
                Draft::holding(Cls::DV_DATE_TIME, Attr::VALUE, end)
            });
        }
        if let Some(location) = self.context.text("location") {
            default(draft, Attr::LOCATION, || Draft::text(location));
        }
        let facility = ["health_care_facility", "healthcare_facility"]
            .into_iter()
            .find(|k| self.context.part(k, 0).is_some());
        if let Some(key) = facility.filter(|_| draft.get(Attr::HEALTH_CARE_FACILITY).is_none()) {
            let name = self
                .context
                .suffix(key, "name")
                .or(self.context.suffix(key, ""));
            let reference = [
                ("id_scheme", Attr::SCHEME),
                ("id_namespace", Attr::NAMESPACE),
            ]
            .map(|(suffix, attr)| (attr, self.context.suffix(key, suffix)));
            let made = self.new_party_with(name, self.context.suffix(key, "id"), &reference);
            made.into_iter()
                .for_each(|m| draft.put(Attr::HEALTH_CARE_FACILITY, m));
        }
        if draft.get(Attr::PARTICIPATIONS).is_none() {
            self.new_participations()
                .into_iter()
                .for_each(|p| draft.add(Attr::PARTICIPATIONS, p));
        }
    }

    /// Completes the root with the mandatory attributes of a document.
    pub fn complete_root(&mut self, mut draft: Draft<'r>) -> Option<Draft<'r>> {
        if let Some(details) = draft.get_mut(Attr::ARCHETYPE_DETAILS) {
            details.put(
                Attr::TEMPLATE_ID,
                Draft::holding(
                    Cls::TEMPLATE_ID,
                    Attr::VALUE,
                    self.template.template_id.as_str(),
                ),
            );
        }
        if draft.class() != Cls::COMPOSITION {
            return Some(draft);
        }
        default(&mut draft, Attr::LANGUAGE, || {
            Draft::code("ISO_639-1", self.language)
        });
        match self.context.text("territory") {
            Some(territory) => default(&mut draft, Attr::TERRITORY, || {
                Draft::code("ISO_3166-1", territory)
            }),
            None if draft.get(Attr::TERRITORY).is_none() && self.is_strict => {
                let near = format!("{}/territory|code", self.web.tree.id);
                self.refuse(
                    "FLT0108",
                    "ctx/territory",
                    String::from("the territory is missing"),
                    &["ctx/territory", &near],
                );
            }
            None => {}
        }
        self.fill_category(&mut draft);
        self.fill_composer(&mut draft);
        self.fill_context(&mut draft);
        if let Some(fields) = self.context.text("generic_fields") {
            default(&mut draft, Attr::FEEDER_AUDIT, || {
                let content = Draft::holding(Cls::DV_PARSABLE, Attr::VALUE, fields)
                    .with(Attr::FORMALISM, Draft::text("application/json"));
                let system =
                    Draft::holding(Cls::FEEDER_AUDIT_DETAILS, Attr::SYSTEM_ID, "FormRenderer");
                Draft::object(Cls::FEEDER_AUDIT)
                    .with(Attr::ORIGINATING_SYSTEM_AUDIT, system)
                    .with(Attr::ORIGINAL_CONTENT, content)
            });
        }
        Some(draft)
    }

    fn fill_category(&mut self, draft: &mut Draft<'r>) {
        let kid = self
            .web
            .tree
            .children
            .iter()
            .find(|k| attr_of(k) == Attr::CATEGORY);
        let only = kid.and_then(|k| {
            if let (_, [only]) = k.codes()? {
                Some(only.as_str())
            } else {
                None
            }
        });
        let asked = self
            .context
            .text("category")
            .map(|c| terminology::code_of(&terminology::COMPOSITION_CATEGORY, c).unwrap_or(c));
        default(draft, Attr::CATEGORY, || {
            // 433 is "event".
            openehr(asked.or(only).unwrap_or("433"))
        });
    }

    fn fill_composer(&mut self, draft: &mut Draft<'r>) {
        if draft.get(Attr::COMPOSER).is_some() {
            return;
        }
        let (name, id) = (
            self.context
                .text("composer_name")
                .or(self.context.suffix("composer", "name")),
            self.context.text("composer_id"),
        );
        let is_self = self
            .context
            .text("composer_self")
            .is_some_and(|s| s.eq_ignore_ascii_case("true"));
        let made = self.new_party(
            name.filter(|_| !is_self),
            id.or(self.context.suffix("composer", "id")),
        );
        match (is_self, made) {
            (true, made) => {
                let mut party = Draft::object(Cls::PARTY_SELF);
                let reference = made
                    .as_ref()
                    .and_then(|m| m.get(Attr::EXTERNAL_REF))
                    .cloned();
                reference
                    .into_iter()
                    .for_each(|r| party.put(Attr::EXTERNAL_REF, r));
                draft.put(Attr::COMPOSER, party);
            }
            (false, Some(made)) => draft.put(Attr::COMPOSER, made),
            (false, None) if self.is_strict => {
                let near = format!("{}/composer|name", self.web.tree.id);
                self.refuse(
                    "FLT0108",
                    "ctx/composer_name",
                    String::from("the composer is missing"),
                    &["ctx/composer_name", "ctx/composer_self", &near],
                );
            }
            (false, None) => {}
        }
    }

    /// Adds the context. A persistent document (code 431) has one only if the sender gave it.
    fn fill_context(&mut self, draft: &mut Draft<'r>) {
        let is_persistent =
            draft.text_along(&[Attr::CATEGORY, Attr::DEFINING_CODE, Attr::CODE_STRING])
                == Some("431");
        if draft.get(Attr::CONTEXT).is_none() && !is_persistent {
            let mut context = Draft::object(Cls::EVENT_CONTEXT);
            self.fill_event_context(&mut context);
            draft.put(Attr::CONTEXT, context);
        }
    }
}

/// Returns the pattern of the actions for an activity that has none: that of the template, else
/// any.
pub(super) fn usual_actions(activity: &WebNode) -> &str {
    let kid = activity
        .children
        .iter()
        .find(|k| attr_of(k) == Attr::ACTION_ARCHETYPE_ID);
    let own = kid
        .and_then(|k| k.value.as_deref())
        .and_then(|n| match &n.constraint {
            Constraint::Text {
                pattern: Some(pattern),
                ..
            } => Some(pattern.source()),
            Constraint::Text { list, .. } => list.first().map(String::as_str),
            _ => None,
        });
    own.unwrap_or("/.*/")
}

/// Returns whether the first of the levels exists or is mandatory.
fn is_begun(draft: &Draft<'_>, levels: &[Step]) -> bool {
    levels
        .first()
        .is_none_or(|step| is_needed(draft.class(), step.attr) || draft.get(step.attr).is_some())
}

fn is_needed(class: Cls, attr: Attr) -> bool {
    class
        .attr(attr)
        .is_some_and(|def| matches!(def.card, Card::One | Card::List1))
}

fn default<'d>(draft: &mut Draft<'d>, attr: Attr, make: impl FnOnce() -> Draft<'d>) {
    if draft.get(attr).is_none() {
        draft.put(attr, make());
    }
}

/// Returns the duration, if the template permits exactly one.
fn only_duration(kid: &WebNode) -> Option<&str> {
    kid.constraints_at(&["value"])
        .find_map(|n| match &n.constraint {
            Constraint::Temporal {
                range: Some(range), ..
            } if range.lower == range.upper => range.lower.as_deref(),
            _ => None,
        })
}

/// Creates a coded text of the openEHR terminology.
fn openehr(code: &str) -> Draft<'_> {
    let mut draft = Draft::object(Cls::DV_CODED_TEXT);
    put_code(
        &mut draft,
        "openehr".into(),
        code.into(),
        Some(terminology::rubric(code).unwrap_or(code).into()),
    );
    draft
}
