//! From the key tree to a document, along the web template and the class table.

use super::candidates::is_of_template;
use super::context::Context;
use super::follow::Instructions;
use super::form::{EMPTY_TREE, KeyTree, SegmentInstance, SuffixValue, Value};
use super::{MAX_FINDINGS, limited, shown, suffix};
use crate::draft::Draft;
use crate::tree::Template;
use crate::web::{Level, Step, WebNode, WebTemplate};
use aqlite_rm::class::{Attr, AttrDef, Cls};
use aqlite_rm::diag::Finding;
use aqlite_rm::json::{self, Scanner};
use aqlite_rm::order;
use aqlite_rm::tree::Tree;
use std::borrow::Cow;
use std::fmt::Write;
use std::rc::Rc;

mod absent;
mod value;

use absent::{Absent, is_absent};

/// Reads a document. Without `now`, the document is only compared with the written one,
/// and may lack mandatory values.
pub(super) fn read_document(
    form: &KeyTree<'_>,
    template: &Template,
    web: &WebTemplate,
    now: Option<&str>,
) -> Result<Tree, Vec<Finding>> {
    let context = Context::of(form.first("ctx"));
    let body = form.first(&web.tree.id).unwrap_or(&EMPTY_TREE);
    let language = context.text("language").unwrap_or(&template.language);
    let mut reader = DocumentReader {
        template,
        web,
        body,
        context,
        language,
        now: now.unwrap_or_default(),
        is_strict: now.is_some(),
        origin: None,
        transition: None,
        state: None,
        instructions: None,
        copied: 0,
        path: String::new(),
        findings: Vec::new(),
    };
    reader.check_context();
    reader.check_roots(form);
    reader.path.clone_from(&web.tree.id);
    let root = reader.read_root(body);
    match root {
        Some(root) if reader.findings.is_empty() => Ok(root.into_tree(None)),
        _ => Err(reader.findings),
    }
}

pub(super) struct DocumentReader<'r, 'a> {
    pub template: &'r Template,
    pub web: &'r WebTemplate,
    /// The key tree below the root.
    pub body: &'r KeyTree<'a>,
    pub context: Context<'r, 'a>,
    /// The language of texts.
    pub language: &'r str,
    pub now: &'r str,
    /// Whether missing mandatory values are refused.
    pub is_strict: bool,
    /// The origin of the histories being read, if their OBSERVATION states it.
    pub origin: Option<&'r str>,
    /// The ISM_TRANSITION whose parts are being read. It knows the codes of its careflow step.
    pub transition: Option<&'r WebNode>,
    /// The code of the state of this transition, if it has been read.
    pub state: Option<Cow<'r, str>>,
    /// The INSTRUCTIONs of the document, collected when the first reference to one is read.
    pub instructions: Option<Rc<Instructions<'r, 'a>>>,
    /// The number of objects of `ctx` that were copied into the document.
    pub copied: usize,
    /// The key of the place being read.
    pub path: String,
    pub findings: Vec<Finding>,
}

/// Returns whether objects of the node are trees of nodes, not values.
fn is_container(web: &WebNode) -> bool {
    web.class.is_a(Cls::PATHABLE) && web.element().is_none()
}

impl<'r> DocumentReader<'r, '_> {
    fn read_root(&mut self, form: &'r KeyTree<'_>) -> Option<Draft<'r>> {
        let web: &'r WebNode = &self.web.tree;
        if let Some(raw) = form.value("raw") {
            return self.read_raw(raw, web.class, form);
        }
        let made = self
            .read_container(web, form)
            .unwrap_or_else(|| self.new_object(web.last_step(), web.class));
        let absent = Absent::of(&made, web, form);
        let mut root = self.complete_root(made)?;
        absent.remove_from(&mut root);
        Some(root)
    }

    pub fn refuse(&mut self, code: &'static str, key: &str, message: String, near: &[&str]) {
        if !self.is_full() {
            let finding = Finding::error(code, limited(key.to_owned()), message);
            self.findings.push(if near.is_empty() {
                finding
            } else {
                finding.expected(near.join(", "))
            });
        }
    }

    /// Returns whether `count` more objects of `ctx` may be copied into the document.
    pub fn may_copy(&mut self, key: &'static str, count: usize) -> bool {
        let is_reported = self.copied > MAX_COPIES;
        self.copied += count;
        if self.copied > MAX_COPIES && !is_reported {
            self.refuse(
                "FLT0105",
                key,
                format!("`{key}` would be copied too often: {MAX_COPIES} copies are the maximum"),
                &[],
            );
        }
        self.copied <= MAX_COPIES
    }

    /// Returns whether no further findings are kept. Searching for candidates is then pointless.
    pub fn is_full(&self) -> bool {
        self.findings.len() >= MAX_FINDINGS
    }

    /// Reports a problem at the current key.
    pub fn refuse_here(&mut self, code: &'static str, message: impl Into<String>, near: &[&str]) {
        let key = self.path.clone();
        self.refuse(code, &key, message.into(), near);
    }

    /// Calls `act` with a segment appended to the current key.
    pub fn at_segment<T>(
        &mut self,
        segment: &str,
        index: Option<u32>,
        act: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('/');
        }
        self.path.push_str(segment);
        if let Some(index) = index {
            let _ = write!(self.path, ":{index}");
        }
        let done = act(self);
        self.path.truncate(length);
        done
    }

    /// Calls `act`, which reads the value of a suffix of the current key. An unusable value is
    /// reported at the suffix.
    pub fn at_suffix(&mut self, suffix: &str, act: impl FnOnce(&mut Self)) {
        let known = self.findings.len();
        act(self);
        if suffix.is_empty() {
            return;
        }
        let added = self.findings.iter_mut().skip(known);
        for finding in added.filter(|finding| finding.code == "FLT0104") {
            finding.path = limited(format!("{}|{suffix}", self.path));
        }
    }

    /// Calls `act`, which completes a value whose given parts were read after `known` findings. Parts
    /// that are unusable are not also reported as missing.
    pub fn after_parts(&mut self, known: usize, act: impl FnOnce(&mut Self)) {
        let read = self.findings.len();
        act(self);
        if read == known {
            return;
        }
        let added = self.findings.split_off(read.min(self.findings.len()));
        let is_consequence = |f: &Finding| f.code == "FLT0108" && f.path == self.path;
        let kept: Vec<Finding> = added.into_iter().filter(|f| !is_consequence(f)).collect();
        self.findings.extend(kept);
    }

    /// Calls `act` with the key of a setting of `ctx` as the current key. The setting may be read
    /// for many objects, and each of its problems is reported once.
    pub fn at_context<T>(&mut self, key: &str, act: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.path, format!("ctx/{key}"));
        let known = self.findings.len();
        let done = act(self);
        self.path = outer;
        let added = self.findings.split_off(known);
        let is_new = |finding: &Finding| !self.findings.contains(finding);
        let new: Vec<Finding> = added.into_iter().filter(is_new).collect();
        self.findings.extend(new);
        done
    }

    /// Reads an object with its attributes and children. Returns `None` if it has no values.
    fn read_container(&mut self, web: &'r WebNode, form: &'r KeyTree<'_>) -> Option<Draft<'r>> {
        if form.is_empty() {
            return None;
        }
        if let Some(raw) = form.value("raw") {
            return match web.class {
                Cls::ELEMENT => self.read_raw_element(raw, web.last_step(), form),
                class => self.read_raw(raw, class, form),
            };
        }
        let class = self.implied_class(web.class, form);
        let class = class.unwrap_or(concrete_class(web.class));
        let mut draft = self.new_object(web.last_step(), class);
        // Compared below: an object that only has its identity is not written by the sender.
        let bare = entries_of(&draft);
        if class == Cls::OBSERVATION {
            // Needed before the events are read, whose default time it is.
            self.origin = ["history_origin", "data_history_origin"]
                .iter()
                .find_map(|name| Some(form.first(name)?.value("")?.text()));
        }
        let transition = Some(web).filter(|_| class == Cls::ISM_TRANSITION);
        let outer = std::mem::replace(&mut self.transition, transition);
        self.state = None;
        self.read_parts(&mut draft, web, form);
        self.transition = outer;
        for given in &form.values {
            let (name, text) = (given.suffix.as_ref(), given.value.text());
            match self.interval_level(&mut draft, web, name) {
                Some(event) => self.read_suffix(event, name, given.index, text, None),
                None => self.read_suffix(&mut draft, name, given.index, text, Some(web)),
            }
        }
        if entries_of(&draft) == bare && form.value_at("_type", 0).is_none() {
            return None;
        }
        self.check_absent_attributes(&draft, web, form);
        let absent = Absent::of(&draft, web, form);
        self.fill(&mut draft, web, form);
        self.name_levels(&mut draft, &web.levels, Some(web), form);
        absent.remove_from(&mut draft);
        Some(draft)
    }

    /// Reads the segments below an object, in the order of the template, so that lists of the
    /// document are ordered like the template.
    fn read_parts(&mut self, draft: &mut Draft<'r>, web: &'r WebNode, form: &'r KeyTree<'_>) {
        let parts = form.segments();
        let mut parts: Vec<_> = parts
            .map(|(segment, instances)| (position(web, segment), segment, instances))
            .collect();
        order::sort_by_key(&mut parts, |(place, _, _)| place.unwrap_or(usize::MAX));
        for (place, segment, instances) in parts {
            match place.and_then(|place| web.children.get(place)) {
                Some(kid) => self.read_instances(draft, kid, instances),
                None => self.read_other_segment(draft, web, segment, instances),
            }
        }
    }

    /// Reports keys that begin with neither the root of the template nor `ctx`.
    fn check_roots(&mut self, form: &'r KeyTree<'_>) {
        for given in &form.values {
            let key = format!("|{}", given.suffix);
            let message = String::from("a suffix needs a path before it");
            self.refuse("FLT0105", &key, message, &[]);
        }
        let root = self.web.tree.id.as_str();
        for (key, instances) in form.segments() {
            let is_known = key == "ctx" || key == root;
            if are_empty(instances) || (!is_known && is_transient(key)) {
                continue;
            }
            if !is_known {
                let found = shown(key);
                let message = format!("keys begin with `{root}` or `ctx`, not with `{found}`");
                self.refuse("FLT0101", key, message, &[root]);
            }
            self.only_instance(key, instances);
        }
    }

    /// Returns the class that the keys of an object imply. An EVENT with a width is an
    /// INTERVAL_EVENT.
    fn implied_class(&mut self, class: Cls, form: &KeyTree<'_>) -> Option<Cls> {
        let has = |name: &str| !form.instances(name).is_empty() || form.value(name).is_some();
        self.stated_class(class, form).or_else(|| {
            let is_interval = class == Cls::EVENT && INTERVALS.into_iter().any(has);
            is_interval.then_some(Cls::INTERVAL_EVENT)
        })
    }

    /// Returns the only event below an object, which is no node, if a segment or a suffix is of an
    /// INTERVAL_EVENT. An abstract EVENT becomes one.
    fn interval_level<'d>(
        &mut self,
        draft: &'d mut Draft<'r>,
        web: &'r WebNode,
        name: &str,
    ) -> Option<&'d mut Draft<'r>> {
        let is_interval = |step: &Step| matches!(step.class, Cls::EVENT | Cls::INTERVAL_EVENT);
        let mut histories = web.levels.iter().filter(|_| INTERVALS.contains(&name));
        let (history, event) = histories.find_map(|history| {
            let mut below = history.below.iter();
            let event = below.find(|event| is_interval(&event.step))?;
            Some((&history.step, &event.step))
        })?;
        let history = self.object_of_level(draft, history)?;
        let event = self.object_of_level(history, event)?;
        event.set_class(Cls::INTERVAL_EVENT);
        Some(event)
    }

    /// Returns the last object of a level. A missing one is created.
    pub fn object_of_level<'d>(
        &mut self,
        draft: &'d mut Draft<'r>,
        step: &'r Step,
    ) -> Option<&'d mut Draft<'r>> {
        let members = draft.members(step.attr);
        let found = members.iter().rposition(|m| is_of(m, step));
        // A new object is appended, so it is the last member.
        let index = found.unwrap_or(members.len());
        if found.is_none() {
            let made = self.new_object(Some(step), concrete_class(step.class));
            draft.add(step.attr, made);
        }
        draft.members_mut(step.attr).get_mut(index)
    }

    /// Returns the class that `|_type` names.
    pub fn stated_class(&mut self, class: Cls, form: &KeyTree<'_>) -> Option<Cls> {
        let text = form.value("_type")?.text();
        let named = Cls::parse(text).filter(|named| named.is_a(class) && !named.is_abstract());
        if named.is_none() {
            let found: String = text.chars().take(40).collect();
            self.refuse_here(
                "FLT0104",
                format!(
                    "`|_type` names no class that can stand here: expected {class}, found `{found}`"
                ),
                &[],
            );
        }
        named
    }

    /// Reads a segment that is not a node: an attribute of the class, or an error.
    fn read_other_segment(
        &mut self,
        draft: &mut Draft<'r>,
        web: &'r WebNode,
        segment: &str,
        instances: &'r [SegmentInstance<'_>],
    ) {
        if is_transient(segment) || are_empty(instances) {
            return;
        }
        if self.read_history_origin(draft, segment, instances) {
            return;
        }
        if let Some(event) = self.interval_level(draft, web, segment)
            && let Some(def) = suffix::attribute(Cls::INTERVAL_EVENT, segment)
        {
            return self.read_attribute(event, segment, def, instances, None);
        }
        let def = suffix::attribute(draft.class(), segment);
        if let Some(def) = def.filter(|_| instances.iter().all(|part| is_absent(&part.form))) {
            return self.read_absent_attribute(segment, def, instances);
        }
        match def.filter(|def| !is_of_template(def.attr)) {
            Some(def) => match level(&web.levels, def.attr, instances) {
                Some(level) => self.read_level(draft, level, segment, instances),
                None => self.read_attribute(draft, segment, def, instances, None),
            },
            None => self.refuse_segment(segment, draft.class(), Some(web)),
        }
    }

    /// Reads a structure that is not a node, by its attribute: `_data/_uid`, `_protocol|_type`.
    fn read_level(
        &mut self,
        draft: &mut Draft<'r>,
        level: &'r Level,
        segment: &str,
        instances: &'r [SegmentInstance<'_>],
    ) {
        let Some(form) = self.only_instance(segment, instances) else {
            return;
        };
        self.at_segment(segment, None, |reader| {
            let class = reader.implied_class(level.step.class, form);
            let Some(object) = reader.object_of_level(draft, &level.step) else {
                return;
            };
            class.into_iter().for_each(|class| object.set_class(class));
            for given in form.values.iter().filter(|given| given.suffix != "_type") {
                reader.read_suffix(object, &given.suffix, given.index, given.value.text(), None);
            }
            for (segment, instances) in form
                .segments()
                .filter(|(segment, instances)| !is_transient(segment) && !are_empty(instances))
            {
                reader.read_level_attribute(object, level, segment, instances);
            }
        });
    }

    fn read_level_attribute(
        &mut self,
        object: &mut Draft<'r>,
        outer: &'r Level,
        segment: &str,
        instances: &'r [SegmentInstance<'_>],
    ) {
        let class = object.class();
        let Some(def) = suffix::attribute(class, segment) else {
            return self.refuse_segment(segment, class, None);
        };
        match level(&outer.below, def.attr, instances) {
            Some(level) => self.read_level(object, level, segment, instances),
            // Read by `name_levels`.
            None if def.attr == Attr::NAME => {}
            None => self.read_attribute(object, segment, def, instances, None),
        }
    }

    /// Reads the names of structures that are not nodes: `_data/_event:0/_name`.
    ///
    /// They come last, because the reader finds a structure by the name that the template defines.
    /// `web` is the node that has the structures; its segments of nodes are not theirs.
    fn name_levels(
        &mut self,
        object: &mut Draft<'r>,
        levels: &'r [Level],
        web: Option<&'r WebNode>,
        form: &'r KeyTree<'_>,
    ) {
        let is_node = |segment: &str| web.is_some_and(|web| position(web, segment).is_some());
        for (segment, instances) in form.segments().filter(|(segment, _)| !is_node(segment)) {
            let def = suffix::attribute(object.class(), segment);
            let level = def.and_then(|def| level(levels, def.attr, instances));
            let Some((level, part)) = level.zip(instances.first()) else {
                continue;
            };
            let attr = level.step.attr;
            let mut members = object.members_mut(attr).iter_mut();
            if let Some(member) = members.rfind(|member| is_of(member, &level.step)) {
                self.at_segment(segment, None, |reader| {
                    reader.name_levels(member, &level.below, None, &part.form);
                    reader.name_level(member, &part.form);
                });
            }
        }
    }

    fn name_level(&mut self, object: &mut Draft<'r>, form: &'r KeyTree<'_>) {
        for (segment, instances) in form.segments() {
            let def = suffix::attribute(object.class(), segment);
            if let Some(def) = def.filter(|def| def.attr == Attr::NAME) {
                self.read_attribute(object, segment, def, instances, None);
            }
        }
    }

    fn read_instances(
        &mut self,
        draft: &mut Draft<'r>,
        kid: &'r WebNode,
        instances: &'r [SegmentInstance<'_>],
    ) {
        if !kid.is_repeated() {
            let form = self.only_instance(&kid.id, instances);
            return form.into_iter().for_each(|form| {
                self.at_segment(&kid.id, None, |reader| {
                    reader.read_instance(draft, kid, form)
                })
            });
        }
        for SegmentInstance { index, form, .. } in instances {
            self.at_segment(&kid.id, Some(*index), |reader| {
                reader.read_instance(draft, kid, form)
            });
        }
    }

    /// Returns the only instance of a segment. Further instances are refused.
    pub fn only_instance<'f, 'a>(
        &mut self,
        segment: &str,
        instances: &'f [SegmentInstance<'a>],
    ) -> Option<&'f KeyTree<'a>> {
        for SegmentInstance { index, .. } in instances.iter().filter(|part| part.index > 0) {
            let message = format!(
                "the index {index} cannot stand here: there is at most one `{}`",
                shown(segment)
            );
            self.at_segment(segment, Some(*index), |reader| {
                reader.refuse_here("FLT0105", message, &[])
            });
        }
        instances
            .first()
            .filter(|part| part.index == 0)
            .map(|part| &part.form)
    }

    fn read_instance(&mut self, draft: &mut Draft<'r>, kid: &'r WebNode, form: &'r KeyTree<'_>) {
        if is_absent(form) {
            return self.check_absent(form);
        }
        let made = match kid.element() {
            Some(element) => self.read_element(kid, element, form),
            None if is_container(kid) => self.read_container(kid, form),
            None => self.read_value(kid.class, form, Some(kid), attr_of(kid)),
        };
        let levels = kid
            .steps
            .len()
            .saturating_sub(if kid.element().is_some() { 2 } else { 1 });
        let (between, last) = kid.steps.split_at_checked(levels).unwrap_or_default();
        let Some(last) = last.first() else { return };
        for made in made.into_iter().chain(self.read_other_text(kid, form)) {
            self.place_object(draft, between, last, made);
        }
    }

    /// Reads a text besides a code. It is a further ELEMENT, if several are permitted.
    fn read_other_text(&mut self, kid: &'r WebNode, form: &'r KeyTree<'_>) -> Option<Draft<'r>> {
        let other = Some(form)
            .filter(|form| kid.has_other && form.value("code").is_some())?
            .value("other")?;
        if !kid.is_repeated() {
            self.refuse_here(
                "FLT0107",
                "`|other` and `|code` are two values, and one can stand here",
                &[],
            );
            return None;
        }
        let value = Draft::holding(Cls::DV_TEXT, Attr::VALUE, other.text());
        Some(
            self.new_object(kid.element(), Cls::ELEMENT)
                .with(Attr::VALUE, value),
        )
    }

    /// Adds an object at the end of its steps, creating missing levels between.
    pub fn place_object(
        &mut self,
        draft: &mut Draft<'r>,
        between: &'r [Step],
        last: &'r Step,
        made: Draft<'r>,
    ) {
        match between.split_first() {
            None => {
                let is_taken = draft
                    .class()
                    .attr(last.attr)
                    .is_some_and(|d| !d.card.is_list())
                    && draft.get(last.attr).is_some();
                if is_taken {
                    return self.refuse_here("FLT0107", "something else is given for the same place: only one of the alternatives can stand", &[]);
                }
                draft.add(last.attr, made);
            }
            Some((step, rest)) => {
                if let Some(level) = self.object_of_level(draft, step) {
                    self.place_object(level, rest, last, made);
                }
            }
        }
    }
}

/// The maximum number of copies of participations and links of `ctx` in a document.
const MAX_COPIES: usize = 20_000;

/// The attributes that only an INTERVAL_EVENT has.
const INTERVALS: [&str; 5] = [
    "width",
    "math_function",
    "sample_count",
    "_width",
    "_math_function",
];

/// The segments of a participation that concern its party.
const OF_PARTY: [&str; 3] = ["_identifier", "relationship", "_relationship"];

/// Returns the class of a uid by its form: `object::system::version` is a version id.
pub(super) fn uid_class(text: &str) -> Cls {
    if text.matches("::").count() == 2 {
        Cls::OBJECT_VERSION_ID
    } else {
        Cls::HIER_OBJECT_ID
    }
}

/// Returns whether a text is `true` in any letter case.
pub(super) fn is_true(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("true")
}

/// Removes a fraction of zero from a number: `5` for `5.0`.
pub(super) fn whole(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|b| b == b'0') => {
            whole
        }
        _ => text,
    }
}

/// Returns whether a segment that is no node is ignored: it marks values of a form that are not
/// part of the document. The id of a node may begin with the same letters.
pub(super) fn is_transient(segment: &str) -> bool {
    segment.starts_with("transient_")
}

fn are_empty(instances: &[SegmentInstance<'_>]) -> bool {
    instances.iter().all(|part| part.form.is_empty())
}

/// Renames `@class` to `_type` in canonical JSON. A text value with these letters is not changed.
fn with_types(text: &str) -> String {
    let mut parts = text.split(r#""@class""#);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += if part.trim_start().starts_with(':') {
            r#""_type""#
        } else {
            r#""@class""#
        };
        out += part;
    }
    out
}

/// Returns the number of attributes of a draft. Each member of a list counts.
pub(super) fn entries_of(draft: &Draft<'_>) -> usize {
    match draft {
        Draft::Object(_, attributes) => attributes
            .iter()
            .map(|(_, v)| {
                if let Draft::List(_, m) = v {
                    m.len()
                } else {
                    1
                }
            })
            .sum(),
        _ => 0,
    }
}

/// Returns an attribute of the enclosing ELEMENT, if the value has none of this name.
fn of_element(class: Cls, segment: &str) -> Option<&'static AttrDef> {
    let is_own = suffix::attribute(class, segment).is_some();
    Some(segment)
        .filter(|s| s.starts_with('_') && !is_own)
        .and_then(|s| suffix::attribute(Cls::ELEMENT, s))
}

/// Returns the structure at an attribute. Canonical JSON at it is an object of its own instead.
fn level<'r>(
    levels: &'r [Level],
    attr: Attr,
    instances: &[SegmentInstance<'_>],
) -> Option<&'r Level> {
    let is_raw = instances
        .iter()
        .any(|part| part.form.value_at("raw", 0).is_some());
    levels
        .iter()
        .find(|level| level.step.attr == attr)
        .filter(|_| !is_raw)
}

pub(super) fn attr_of(web: &WebNode) -> Attr {
    web.last_step().map_or(Attr::VALUE, |s| s.attr)
}

/// Returns the class of the limits of an interval.
pub(super) fn parameter(web: Option<&WebNode>) -> Option<Cls> {
    let text = web?.class_text.strip_prefix("DV_INTERVAL<")?;
    Cls::parse(text.trim_end_matches('>'))
}

/// Returns the index of the child for a segment: by its id, else by an alternative spelling.
pub(super) fn position(web: &WebNode, segment: &str) -> Option<usize> {
    let by_id = web.children.iter().position(|k| k.id == segment);
    let alias = |k: &WebNode| {
        k.alias.is_some()
            && (k.alias.as_deref() == Some(segment) || bracketed(k).as_deref() == Some(segment))
    };
    by_id.or_else(|| web.children.iter().position(alias))
}

/// Returns the id that other systems use for an alternative that is an interval:
/// `interval<dv_quantity>_value`.
fn bracketed(web: &WebNode) -> Option<String> {
    web.alias
        .as_ref()
        .and(web.class_text.strip_prefix("DV_INTERVAL"))
        .map(|rest| format!("interval{}_value", rest.to_ascii_lowercase()))
}

/// Returns whether an object was created for a level.
pub(super) fn is_of(member: &Draft<'_>, step: &Step) -> bool {
    let id = member
        .text_along(&[Attr::ARCHETYPE_NODE_ID])
        .unwrap_or_default();
    let name = member.text_along(&[Attr::NAME, Attr::VALUE]);
    id == step.id
        && (step.id.is_empty() || name == step.label.as_deref() || name == Some(step.id.as_str()))
}

/// Returns the concrete class to use for an abstract one.
pub(super) fn concrete_class(class: Cls) -> Cls {
    match class {
        Cls::ITEM_STRUCTURE | Cls::DATA_STRUCTURE => Cls::ITEM_TREE,
        Cls::EVENT => Cls::POINT_EVENT,
        Cls::OBJECT_ID => Cls::GENERIC_ID,
        Cls::UID_BASED_ID => Cls::OBJECT_VERSION_ID,
        Cls::DV_ENCAPSULATED => Cls::DV_PARSABLE,
        Cls::ITEM => Cls::ELEMENT,
        Cls::PARTY_PROXY => Cls::PARTY_IDENTIFIED,
        other => other,
    }
}
