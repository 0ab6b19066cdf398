//! Required values that the sender omitted: from `ctx`, from the template, or the usual default.

use super::complete::{code_in, put_code};
use super::form::{EMPTY_TREE, KeyTree, SegmentInstance};
use super::party::mode;
use super::read::{DocumentReader, attr_of, concrete_class, is_of};
use super::single_value::{only_code, only_duration};
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
            self.fill_levels(draft, levels_above(kid));
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
            Cls::OBSERVATION => self.fill_observation(draft, web),
            Cls::POINT_EVENT | Cls::INTERVAL_EVENT => self.fill_event(draft, web, None),
            Cls::ACTION => self.fill_action(draft, web),
            Cls::ISM_TRANSITION => self.fill_transition(draft, web),
            Cls::ACTIVITY => self.fill_activity(draft, web),
            Cls::INSTRUCTION => {
                let text = self.context.text("instruction_narrative");
                let text = text.unwrap_or("<none>");
                let narrative = || Draft::holding(Cls::DV_TEXT, Attr::VALUE, text);
                default(draft, Attr::NARRATIVE, narrative);
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
        let values = web.children.iter().filter(|kid| is_required_value(kid));
        for kid in values.filter(|kid| form.instances(&kid.id).is_empty()) {
            let Some(value) = self.only_value(kid) else {
                continue;
            };
            let levels = levels_above(kid);
            let last = kid.steps.get(levels.len());
            // A fixed value alone does not create an optional structure.
            let Some(last) = last.filter(|_| is_begun(draft, levels)) else {
                continue;
            };
            let made = match kid
                .element()
                .map(|s| self.new_object(Some(s), Cls::ELEMENT))
            {
                Some(element) => element.with(Attr::VALUE, value),
                None => value,
            };
            self.place_object(draft, levels, last, made);
            self.order_last(draft, web, levels, last);
        }
    }

    /// Moves the last member of a list before the members of later nodes of the template.
    fn order_last(
        &mut self,
        draft: &mut Draft<'r>,
        web: &'r WebNode,
        levels: &'r [Step],
        last: &Step,
    ) {
        if let Some((level, rest)) = levels.split_first() {
            let inner = self.object_of_level(draft, level);
            return inner
                .into_iter()
                .for_each(|inner| self.order_last(inner, web, rest, last));
        }
        let members = draft.members_mut(last.attr);
        let Some((made, earlier)) = members.split_last() else {
            return;
        };
        let Some(own) = rank(web, made) else {
            return;
        };
        // `read_parts` reads the members in the order of the template, so few ranks are computed.
        let later = earlier.partition_point(|member| rank(web, member) <= Some(own));
        if let Some(moved) = members.get_mut(later..) {
            moved.rotate_right(1);
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

    fn fill_entry(&mut self, draft: &mut Draft<'r>, web: &'r WebNode) {
        let language = self.language;
        default(draft, Attr::LANGUAGE, || Draft::code("ISO_639-1", language));
        default(draft, Attr::ENCODING, || {
            Draft::code("IANA_character-sets", "UTF-8")
        });
        default(draft, Attr::SUBJECT, || Draft::object(subject_class(web)));
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
            let made = self.at_context("work_flow_id", |reader| {
                reader.read_value(Cls::OBJECT_REF, form, None, Attr::WORKFLOW_ID)
            });
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
        if let Some(name) = name {
            party.put(Attr::NAME, Draft::text(name));
        }
        if let Some(id) = id {
            self.set_leaf(&mut party, &[Attr::EXTERNAL_REF, Attr::ID, Attr::VALUE], id);
            for (attr, text) in reference {
                let path: &[Attr] = match *attr {
                    Attr::SCHEME => &[Attr::EXTERNAL_REF, Attr::ID, Attr::SCHEME],
                    _ => &[Attr::EXTERNAL_REF, Attr::NAMESPACE],
                };
                text.iter()
                    .for_each(|text| self.set_leaf(&mut party, path, text));
            }
        }
        self.complete_party(&mut party, &EMPTY_TREE);
        Some(party)
    }

    /// Creates the participations of `ctx`.
    fn new_participations(&mut self) -> Vec<Draft<'r>> {
        let indexes = self.context.participations();
        // The participations are repeated in each entry: their total is limited.
        if !self.may_copy("ctx/participation_name", indexes.len()) {
            return Vec::new();
        }
        let made = indexes.into_iter().map(|i| self.new_participation(i));
        made.flatten().collect()
    }

    /// Creates a participation of `ctx`; `None` if it has neither name nor id.
    fn new_participation(&mut self, index: u32) -> Option<Draft<'r>> {
        let name = self.context.text_at("participation_name", index);
        let id = self.context.text_at("participation_id", index);
        let mut performer = self.new_party(name, id)?;
        if let Some(form) = self.context.part("participation_identifiers", index) {
            self.add_identifiers(&mut performer, form);
        }
        let function = self.context.text_at("participation_function", index);
        let function = function.unwrap_or("unknown");
        let how = self.context.text_at("participation_mode", index);
        let participation = Draft::object(Cls::PARTICIPATION)
            .with(
                Attr::FUNCTION,
                Draft::holding(Cls::DV_TEXT, Attr::VALUE, function),
            )
            // 193 is "not specified".
            .with(Attr::MODE, mode(how.unwrap_or("193")))
            .with(Attr::PERFORMER, performer);
        Some(participation)
    }

    /// Adds identifiers: `issuer::assigner::id::type;…`, or the same as suffixes.
    fn add_identifiers(&mut self, performer: &mut Draft<'r>, form: &'r KeyTree<'_>) {
        let text = form.value("").map_or("", |value| value.text());
        for one in text.split(';').filter(|o| !o.is_empty()) {
            let mut identifier = Draft::object(Cls::DV_IDENTIFIER);
            one.split("::")
                .zip(IDENTIFIER)
                .for_each(|(text, (_, attr))| identifier.put(attr, Draft::text(text)));
            performer.add(Attr::IDENTIFIERS, identifier);
        }
        let suffixes = form.values.iter().filter(|given| !given.suffix.is_empty());
        for number in order::distinct(suffixes.map(|given| given.index)) {
            let mut identifier = Draft::object(Cls::DV_IDENTIFIER);
            for (name, attr) in IDENTIFIER {
                let value = form.value_at(name, number);
                value
                    .into_iter()
                    .for_each(|v| identifier.put(attr, Draft::text(v.text())));
            }
            performer.add(Attr::IDENTIFIERS, identifier);
        }
    }

    fn add_links(&mut self, draft: &mut Draft<'r>) {
        if draft.get(Attr::LINKS).is_some() {
            return;
        }
        let indexes = self.context.indexes("link");
        if indexes.is_empty() || !self.may_copy("ctx/link", indexes.len()) {
            return;
        }
        for index in indexes {
            let form = self.context.part("link", index);
            let made = form.and_then(|form| {
                self.at_context(&format!("link:{index}"), |reader| {
                    reader.read_value(Cls::LINK, form, None, Attr::LINKS)
                })
            });
            let Some(mut link) = made else { continue };
            code_text(&mut link, Attr::TYPE);
            code_text(&mut link, Attr::MEANING);
            draft.add(Attr::LINKS, link);
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
        let attrs = histories_of(segment);
        if attrs.is_empty() || draft.class() != Cls::OBSERVATION {
            return false;
        }
        let Some(form) = self.only_instance(segment, instances) else {
            return true;
        };
        let made = self.at_segment(segment, None, |r| {
            r.read_value(Cls::DV_DATE_TIME, form, None, Attr::ORIGIN)
        });
        for attr in attrs {
            let (Some(history), Some(made)) = (draft.get_mut(*attr), &made) else {
                continue;
            };
            let text = |draft: &Draft<'r>| draft.copy_along(&[Attr::VALUE]);
            let there = history.get(Attr::ORIGIN).and_then(text);
            match there.zip(text(made)) {
                Some((there, given)) => self.at_segment(segment, None, |reader| {
                    reader.check_equal(Cls::STRING, &there, &given)
                }),
                None => history.put(Attr::ORIGIN, made.clone()),
            }
        }
        true
    }

    fn fill_observation(&mut self, draft: &mut Draft<'r>, web: &'r WebNode) {
        let origin = self.context.text("history_origin");
        for attr in &[Attr::DATA, Attr::STATE] {
            let Some(history) = draft.get_mut(*attr).filter(|h| h.class() == Cls::HISTORY) else {
                continue;
            };
            for event in history.members_mut(Attr::EVENTS) {
                self.fill_event(event, web, Some(*attr));
            }
            if history.get(Attr::ORIGIN).is_none() {
                let origin = origin
                    .map(Cow::Borrowed)
                    .or_else(|| earliest_time(history).map(Cow::Owned))
                    .unwrap_or(Cow::Borrowed(self.default_time()));
                let origin = Draft::holding(Cls::DV_DATE_TIME, Attr::VALUE, origin);
                history.put(Attr::ORIGIN, origin);
            }
        }
    }

    /// Completes an event. `history` is the attribute of the history if `web` is the OBSERVATION
    /// around it, as for an event that is no node.
    fn fill_event(&mut self, draft: &mut Draft<'r>, web: &'r WebNode, history: Option<Attr>) {
        let origin = self.origin.or(self.context.text("history_origin"));
        let time = origin.unwrap_or(self.default_time());
        default(draft, Attr::TIME, || {
            Draft::holding(Cls::DV_DATE_TIME, Attr::VALUE, time)
        });
        if draft.class() != Cls::INTERVAL_EVENT {
            return;
        }
        let child = |attr: Attr| {
            let first = history.unwrap_or(attr);
            let is_of = |kid: &&WebNode| kid.steps.first().is_some_and(|s| s.attr == first);
            web.children
                .iter()
                .filter(is_of)
                .find(|k| attr_of(k) == attr)
        };
        let width = child(Attr::WIDTH).and_then(only_duration);
        default(draft, Attr::WIDTH, || {
            Draft::holding(Cls::DV_DURATION, Attr::VALUE, width.unwrap_or("PT0S"))
        });
        let function = child(Attr::MATH_FUNCTION).and_then(|k| k.codes()?.1.first());
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

    /// Completes the state of a transition from its careflow step, or else a mandatory careflow step
    /// from its state.
    fn fill_transition(&mut self, draft: &mut Draft<'r>, web: &'r WebNode) {
        self.fill_state(draft, web);
        let state =
            draft.text_along(&[Attr::CURRENT_STATE, Attr::DEFINING_CODE, Attr::CODE_STRING]);
        let step = only_step(web, state.unwrap_or_default());
        if let Some(step) = step.filter(|_| draft.get(Attr::CAREFLOW_STEP).is_none())
            && let Some(label) = self.label(Some(web), "local", step)
        {
            let mut text = Draft::object(Cls::DV_CODED_TEXT);
            put_code(&mut text, "local".into(), step.into(), Some(label));
            draft.put(Attr::CAREFLOW_STEP, text);
        }
    }

    fn fill_state(&mut self, draft: &mut Draft<'r>, web: &'r WebNode) {
        if draft.get(Attr::CURRENT_STATE).is_some() {
            return;
        }
        let step = draft.text_along(&[Attr::CAREFLOW_STEP, Attr::DEFINING_CODE, Attr::CODE_STRING]);
        let states = step
            .and_then(|step| web.transitions.iter().find(|(code, _)| code == step))
            .map(|(_, states)| states.as_slice());
        let only = only_state(web);
        let code = states
            .and_then(|s| s.first())
            .map(String::as_str)
            .or(only)
            .or(self.usual_state())
            // 532 is "completed".
            .unwrap_or("532");
        draft.put(Attr::CURRENT_STATE, openehr(code));
    }

    /// Returns the state of `ctx` for transitions without one.
    pub fn usual_state(&self) -> Option<&'r str> {
        let asked = self.context.text("action_ism_transition_current_state")?;
        code_in(&terminology::INSTRUCTION_STATES, asked).or(Some(asked))
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

    pub fn fill_event_context(&mut self, draft: &mut Draft<'r>) {
        let time = |time: &'r str| Draft::holding(Cls::DV_DATE_TIME, Attr::VALUE, time);
        default(draft, Attr::START_TIME, || time(self.default_time()));
        // 238 is "other care".
        let setting = self.context.text("setting").unwrap_or("238");
        default(draft, Attr::SETTING, || {
            openehr(code_in(&terminology::SETTING, setting).unwrap_or(setting))
        });
        if let Some(end) = self.context.text("end_time") {
            default(draft, Attr::END_TIME, || time(end));
        }
        if let Some(location) = self.context.text("location") {
            default(draft, Attr::LOCATION, || Draft::text(location));
        }
        if draft.get(Attr::HEALTH_CARE_FACILITY).is_none()
            && let Some(facility) = self.new_facility()
        {
            draft.put(Attr::HEALTH_CARE_FACILITY, facility);
        }
        if draft.get(Attr::PARTICIPATIONS).is_none() {
            self.new_participations()
                .into_iter()
                .for_each(|p| draft.add(Attr::PARTICIPATIONS, p));
        }
    }

    /// Creates the health care facility of `ctx`.
    fn new_facility(&mut self) -> Option<Draft<'r>> {
        let key = ["health_care_facility", "healthcare_facility"]
            .into_iter()
            .find(|k| self.context.part(k, 0).is_some())?;
        let suffix = |name: &str| self.context.suffix(key, name);
        let name = suffix("name").or(suffix(""));
        let id = suffix("id");
        let reference = [
            (Attr::SCHEME, suffix("id_scheme")),
            (Attr::NAMESPACE, suffix("id_namespace")),
        ];
        self.new_party_with(name, id, &reference)
    }

    /// Completes the root with the mandatory attributes of a document.
    pub fn complete_root(&mut self, mut draft: Draft<'r>) -> Option<Draft<'r>> {
        if let Some(details) = draft.get_mut(Attr::ARCHETYPE_DETAILS) {
            let id = self.template.template_id.as_str();
            let id = Draft::holding(Cls::TEMPLATE_ID, Attr::VALUE, id);
            details.put(Attr::TEMPLATE_ID, id);
        }
        if draft.class() != Cls::COMPOSITION {
            return Some(draft);
        }
        let language = self.language;
        default(&mut draft, Attr::LANGUAGE, || {
            Draft::code("ISO_639-1", language)
        });
        self.fill_territory(&mut draft);
        self.fill_category(&mut draft);
        self.fill_composer(&mut draft);
        self.fill_context(&mut draft);
        if let Some(fields) = self.context.text("generic_fields") {
            default(&mut draft, Attr::FEEDER_AUDIT, || generic_fields(fields));
        }
        Some(draft)
    }

    fn fill_territory(&mut self, draft: &mut Draft<'r>) {
        match self.context.text("territory") {
            Some(territory) => default(draft, Attr::TERRITORY, || {
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
    }

    fn fill_category(&mut self, draft: &mut Draft<'r>) {
        let kid = self
            .web
            .tree
            .children
            .iter()
            .find(|k| attr_of(k) == Attr::CATEGORY);
        let only = kid.and_then(only_code).map(|(_, code)| code);
        let asked = self
            .context
            .text("category")
            .map(|c| code_in(&terminology::COMPOSITION_CATEGORY, c).unwrap_or(c));
        default(draft, Attr::CATEGORY, || {
            // 433 is "event".
            openehr(asked.or(only).unwrap_or("433"))
        });
    }

    fn fill_composer(&mut self, draft: &mut Draft<'r>) {
        if draft.get(Attr::COMPOSER).is_some() {
            return;
        }
        let context = &self.context;
        let of_composer = |suffix: &str| context.suffix("composer", suffix);
        let name = context.text("composer_name").or(of_composer("name"));
        let id = context.text("composer_id").or(of_composer("id"));
        let is_self = context.is_composer_self();
        match self.new_party(name.filter(|_| !is_self), id) {
            made if is_self => {
                let mut party = Draft::object(Cls::PARTY_SELF);
                let reference = made.and_then(|m| m.get(Attr::EXTERNAL_REF).cloned());
                reference
                    .into_iter()
                    .for_each(|r| party.put(Attr::EXTERNAL_REF, r));
                draft.put(Attr::COMPOSER, party);
            }
            Some(made) => draft.put(Attr::COMPOSER, made),
            None if self.is_strict => {
                let near = format!("{}/composer|name", self.web.tree.id);
                self.refuse(
                    "FLT0108",
                    "ctx/composer_name",
                    String::from("the composer is missing"),
                    &["ctx/composer_name", "ctx/composer_self", &near],
                );
            }
            None => {}
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

/// The attributes of an identifier by suffix, in the order of the short notation.
pub(super) const IDENTIFIER: [(&str, Attr); 4] = [
    ("issuer", Attr::ISSUER),
    ("assigner", Attr::ASSIGNER),
    ("id", Attr::ID),
    ("type", Attr::TYPE),
];

/// Returns the steps between a node and its parent, without those of the node itself.
fn levels_above(kid: &WebNode) -> &[Step] {
    let own = 1 + usize::from(kid.element().is_some());
    let count = kid.steps.len().saturating_sub(own);
    kid.steps.get(..count).unwrap_or_default()
}

/// Returns the index of the child whose object a member is: by id and name, else by id, because
/// the sender may have given a name.
fn rank(web: &WebNode, member: &Draft<'_>) -> Option<usize> {
    let id = member.text_along(&[Attr::ARCHETYPE_NODE_ID])?;
    let find = |is_it: &dyn Fn(&Step) -> bool| {
        let mut kids = web.children.iter();
        kids.position(|kid| kid.steps.iter().any(is_it))
    };
    find(&|step| is_of(member, step)).or_else(|| find(&|step| step.id == id))
}

/// Returns the histories whose origin a segment of an OBSERVATION is; none for another segment.
fn histories_of(segment: &str) -> &'static [Attr] {
    match segment.trim_start_matches('_') {
        "history_origin" => &[Attr::DATA, Attr::STATE],
        "data_history_origin" => &[Attr::DATA],
        "state_history_origin" => &[Attr::STATE],
        _ => &[],
    }
}

/// Returns whether a node is a mandatory value whose levels are mandatory too.
fn is_required_value(kid: &WebNode) -> bool {
    let mut levels = kid.steps.iter().rev().skip(1);
    let is_value = !kid.in_context && !kid.has_other && kid.class.is_a(Cls::DATA_VALUE);
    is_value && kid.occurrences.lower > 0 && levels.all(|s| s.occurrences.lower > 0)
}

/// Returns the code of the state that all alternatives of a transition lead to, if it is the only
/// one.
fn only_state(transition: &WebNode) -> Option<&str> {
    let mut states = transition.transitions.iter().map(|(_, states)| states);
    let [only] = states.next()?.as_slice() else {
        return None;
    };
    states
        .all(|states| matches!(states.as_slice(), [state] if state == only))
        .then_some(only.as_str())
}

/// Returns the code of the careflow step, if it is mandatory and all alternatives that lead to the
/// state have the same one.
fn only_step<'w>(transition: &'w WebNode, state: &str) -> Option<&'w str> {
    let mut steps = transition.children.iter();
    let step = steps.find(|child| attr_of(child) == Attr::CAREFLOW_STEP)?;
    let is_required = step.last_step()?.occurrences.lower > 0;
    let alternatives = transition.transitions.iter();
    let alternatives = alternatives.filter(|(_, states)| leads_to(states, state));
    let mut codes = alternatives.map(|(code, _)| code);
    let only = codes
        .next()
        .filter(|code| is_required && !code.is_empty())?;
    codes.all(|code| code == only).then_some(only)
}

/// Returns whether an alternative of a transition with these states leads to a state.
pub(super) fn leads_to(states: &[String], state: &str) -> bool {
    states.is_empty() || states.iter().any(|s| s == state)
}

/// Returns the class of the subject of an entry.
///
/// The Reference Model requires a subject. Without a sender's choice it is the subject of the
/// record.
fn subject_class(web: &WebNode) -> Cls {
    let mut kids = web.children.iter();
    let subject = kids.find(|k| attr_of(k) == Attr::SUBJECT && k.steps.len() == 1);
    subject
        .map(|k| k.class)
        .filter(|c| *c == Cls::PARTY_IDENTIFIED)
        .unwrap_or(Cls::PARTY_SELF)
}

/// Returns the time of the earliest event, because the origin may not be later than any event (RM,
/// HISTORY).
fn earliest_time(history: &Draft<'_>) -> Option<String> {
    let events = history.members(Attr::EVENTS).iter();
    let times = events.filter_map(|e| e.text_along(&[Attr::TIME, Attr::VALUE]));
    let start =
        |t: &&str| Temporal::parse(TemporalKind::DateTime, t).map_or(i64::MAX, |t| t.earliest);
    times.min_by_key(start).map(str::to_owned)
}

/// Creates the audit that holds the fields of a form that have no place in the document.
fn generic_fields(fields: &str) -> Draft<'_> {
    let content = Draft::holding(Cls::DV_PARSABLE, Attr::VALUE, fields)
        .with(Attr::FORMALISM, Draft::text("application/json"));
    let system = Draft::holding(Cls::FEEDER_AUDIT_DETAILS, Attr::SYSTEM_ID, "FormRenderer");
    Draft::object(Cls::FEEDER_AUDIT)
        .with(Attr::ORIGINATING_SYSTEM_AUDIT, system)
        .with(Attr::ORIGINAL_CONTENT, content)
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

/// Replaces a text `code::text` or `terminology::code::text` by the coded text that it means.
fn code_text(link: &mut Draft<'_>, attr: Attr) {
    let text = link.copy_along(&[attr, Attr::VALUE]).unwrap_or_default();
    let parts: Vec<&str> = text.splitn(3, "::").collect();
    let (terminology, code, text) = match parts.as_slice() {
        [terminology, code, text] => (*terminology, code, text),
        [code, text] => ("external", code, text),
        _ => return,
    };
    let own = |text: &str| Cow::Owned(text.to_owned());
    let mut coded = Draft::object(Cls::DV_CODED_TEXT);
    put_code(&mut coded, own(terminology), own(code), Some(own(text)));
    link.put(attr, coded);
}
