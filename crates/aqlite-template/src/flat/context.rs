//! The section `ctx`: defaults for values that the body omits.

use super::complete::code_in;
use super::form::{KeyTree, SegmentInstance, Value};
use super::read::{DocumentReader, is_transient, is_true};
use super::shown;
use aqlite_rm::class::Cls;
use aqlite_rm::diag::near;
use aqlite_rm::order;
use aqlite_rm::terminology::{self, CodeGroup};
use aqlite_rm::time::{Temporal, TemporalKind};

/// A key: its name without a leading underscore, and the suffixes besides its main value.
pub(super) struct Key {
    pub name: &'static str,
    pub suffixes: &'static [&'static str],
}

const PLAIN: &[&str] = &[];
const CODED: &[&str] = &["code", "terminology"];
const PARTY: &[&str] = &["name", "id"];
const FACILITY: &[&str] = &["name", "id", "id_scheme", "id_namespace"];

const fn key(name: &'static str, suffixes: &'static [&'static str]) -> Key {
    Key { name, suffixes }
}

/// The keys of `ctx`.
pub(super) static KEYS: [Key; 31] = [
    key("language", CODED),
    key("territory", CODED),
    key("composer", PARTY),
    key("composer_name", PLAIN),
    key("composer_id", PLAIN),
    key("composer_self", PLAIN),
    key("id_scheme", PLAIN),
    key("id_schema", PLAIN),
    key("id_namespace", PLAIN),
    key("time", PLAIN),
    key("end_time", PLAIN),
    key("location", PLAIN),
    key("setting", CODED),
    key("health_care_facility", FACILITY),
    key("healthcare_facility", FACILITY),
    key("participation_name", PLAIN),
    key("participation_function", PLAIN),
    key("participation_mode", PLAIN),
    key("participation_id", PLAIN),
    key(
        "participation_identifiers",
        &["issuer", "assigner", "id", "type"],
    ),
    key("history_origin", PLAIN),
    key("action_time", PLAIN),
    key("activity_timing", PLAIN),
    key("instruction_narrative", PLAIN),
    key("action_ism_transition_current_state", CODED),
    key("provider_name", PLAIN),
    key("provider_id", PLAIN),
    key(
        "work_flow_id",
        &["id", "id_scheme", "scheme", "namespace", "type"],
    ),
    key("link", &["type", "meaning", "target"]),
    key("category", CODED),
    key("generic_fields", PLAIN),
];

impl Key {
    /// Returns whether the key may have several indexes.
    pub fn is_repeated(&self) -> bool {
        self.name.starts_with("participation_") || self.name == "link"
    }

    /// Returns whether the key has this suffix, or a member with this name.
    pub fn takes(&self, suffix: &str, index: u32) -> bool {
        (matches!(suffix, "" | "value") || self.suffixes.contains(&suffix))
            // Only the identifiers of a participation are a list of their own.
            && (index == 0 || self.name == "participation_identifiers")
    }
}

/// Returns the name of the key of a segment: without a leading underscore, and in one of its two
/// spellings.
pub(super) fn key_named(segment: &str) -> Option<&'static str> {
    let name = segment.strip_prefix('_').unwrap_or(segment);
    let name = match name {
        "id_schema" => "id_scheme",
        "healthcare_facility" => "health_care_facility",
        name => name,
    };
    KEYS.iter().find(|key| key.name == name).map(|key| key.name)
}

/// The defaults of one document.
pub(super) struct Context<'f, 'a> {
    pub form: Option<&'f KeyTree<'a>>,
}

impl<'f, 'a> Context<'f, 'a> {
    pub fn of(form: Option<&'f KeyTree<'a>>) -> Context<'f, 'a> {
        Context { form }
    }

    /// Returns an instance of a key.
    pub fn part(&self, key: &str, index: u32) -> Option<&'f KeyTree<'a>> {
        let form = self.form?;
        // Clients write the keys with and without a leading underscore.
        form.instance(key, index)
            .or_else(|| form.instance(&format!("_{key}"), index))
    }

    /// Returns the text of a key: its main value, or that of one of the suffixes `code`, `name`,
    /// `value`, `id`.
    pub fn text(&self, key: &str) -> Option<&'f str> {
        self.text_at(key, 0)
    }

    pub fn text_at(&self, key: &str, index: u32) -> Option<&'f str> {
        let form = self.part(key, index)?;
        ["", "code", "name", "value", "id"]
            .iter()
            .find_map(|suffix| form.value(suffix))
            .map(Value::text)
    }

    /// Returns the text of a suffix of a key.
    pub fn suffix(&self, key: &str, suffix: &str) -> Option<&'f str> {
        self.part(key, 0)?.value(suffix).map(Value::text)
    }

    /// Returns whether the subject of the record composed the document.
    pub fn is_composer_self(&self) -> bool {
        self.text("composer_self").is_some_and(is_true)
    }

    /// Returns the indexes of a repeated key.
    pub fn indexes(&self, key: &str) -> Vec<u32> {
        let of = |key: &str| {
            self.form
                .map(|form| {
                    form.instances(key)
                        .iter()
                        .map(|part| part.index)
                        .collect::<Vec<u32>>()
                })
                .unwrap_or_default()
        };
        order::distinct(of(key).into_iter().chain(of(&format!("_{key}"))))
    }

    /// Returns the indexes of the participations: those of their names and ids.
    pub fn participations(&self) -> Vec<u32> {
        order::distinct(
            ["participation_name", "participation_id"]
                .into_iter()
                .flat_map(|key| self.indexes(key)),
        )
    }
}

impl DocumentReader<'_, '_> {
    /// Reports every key of `ctx` that is unknown, and every suffix that does not belong to its
    /// key.
    pub fn check_context(&mut self) {
        let Some(form) = self.context.form else {
            return;
        };
        self.path.push_str("ctx");
        for given in &form.values {
            let key = format!("ctx|{}", given.suffix);
            let message = String::from("`ctx` has keys, not a value");
            self.refuse("FLT0103", &key, message, &[]);
        }
        for (key, instances) in form.segments() {
            if self.is_full() {
                break;
            }
            if is_transient(key) {
                continue;
            }
            let name = key.strip_prefix('_').unwrap_or(key);
            match KEYS.iter().find(|known| known.name == name) {
                Some(known) => self.check_instances(known, key, instances),
                None => {
                    let near = near(key, &mut KEYS.iter().map(|known| known.name));
                    let message = format!("`{}` is not a key of `ctx`", shown(key));
                    self.refuse("FLT0103", &format!("ctx/{key}"), message, &near);
                }
            }
        }
        self.check_composer();
        self.path.clear();
    }

    /// Reports a composer that is given by two keys with different values.
    fn check_composer(&mut self) {
        for (key, suffix) in [("composer_name", "name"), ("composer_id", "id")] {
            let given = self.context.text(key);
            if let Some((own, other)) = given.zip(self.context.suffix("composer", suffix)) {
                self.at_segment(key, None, |reader| {
                    reader.check_equal(Cls::STRING, own, other)
                });
            }
        }
    }

    /// Checks the instances of a key, of which some keys have one only.
    fn check_instances(&mut self, known: &Key, key: &str, instances: &[SegmentInstance<'_>]) {
        if !known.is_repeated() {
            self.only_instance(key, instances);
        }
        for SegmentInstance { index, form, .. } in instances {
            let place = Some(*index).filter(|_| known.is_repeated());
            self.at_segment(key, place, |reader| reader.check_key(known, *index, form));
        }
    }

    fn check_key(&mut self, key: &Key, index: u32, form: &KeyTree<'_>) {
        let is_value = |form: &KeyTree<'_>| form.only_value().is_some() || form.is_empty();
        let members = form
            .segments()
            .filter(|(segment, _)| !is_transient(segment))
            .map(|(segment, below)| (segment, 0, below.iter().all(|part| is_value(&part.form))));
        let values = form.values.iter();
        let values = values.map(|given| (given.suffix.as_ref(), given.index, true));
        for (suffix, at, is_alone) in values.chain(members).collect::<Vec<_>>() {
            if !is_alone || !key.takes(suffix, at) {
                let place = format!("{}|{suffix}", self.path);
                let message = format!("`|{}` is not a suffix of `ctx/{}`", shown(suffix), key.name);
                self.refuse("FLT0102", &place, message, key.suffixes);
            }
        }
        self.check_value(key, index);
        self.check_spellings(key, form);
        let has = |name: &str| self.context.part(name, index).is_some();
        let is_named = || has("participation_name") || has("participation_id");
        if key.name.starts_with("participation_") && !is_named() {
            let wanted = format!("ctx/participation_name:{index}");
            let message = format!("`{wanted}` is missing: the party needs it");
            self.refuse_here("FLT0108", message, &[&wanted]);
        }
    }

    /// Reports suffixes that give one value of a key differently.
    fn check_spellings(&mut self, key: &Key, form: &KeyTree<'_>) {
        let group = group_of(key.name);
        let known = |text| group.and_then(|group| code_in(group, text));
        let plain = |text| known(text).unwrap_or(text);
        let main = match key.suffixes {
            [] => "value",
            [first @ ("code" | "name"), ..] => first,
            _ => return,
        };
        let text = |suffix: &str| form.value(suffix).map(Value::text);
        if let Some((bare, named)) = text("").zip(text(main)) {
            self.check_equal(Cls::STRING, plain(bare), plain(named));
        }
        // The text of a code may be in another language, so only the text of another code differs.
        let code = text("code").or(text(""));
        let named = text("value").and_then(known);
        if let Some((code, named)) = code.zip(named).filter(|_| main == "code") {
            self.check_equal(Cls::STRING, plain(code), named);
        }
    }

    /// Checks that a value is usable, before it is copied to many places of the document: a time, or
    /// a code of the group of the key.
    fn check_value(&mut self, key: &Key, index: u32) {
        let Some(text) = self.context.text_at(key.name, index) else {
            return;
        };
        let is_time = || Temporal::parse(TemporalKind::DateTime, text).is_some();
        match key.name {
            "time" | "end_time" | "action_time" | "history_origin" if text != "now" => {
                if !is_time() {
                    self.refuse_value("a date and time", text);
                }
            }
            "territory" if !terminology::COUNTRIES.contains(text) => {
                self.refuse_value("a code of ISO 3166-1", text);
            }
            name => group_of(name)
                .into_iter()
                .for_each(|group| self.check_in_group(group, text)),
        }
    }

    /// Checks that a group of the openEHR terminology has a code, given by itself, by its text, or
    /// as `text::openehr::code`.
    pub fn check_in_group(&mut self, group: &CodeGroup, text: &str) {
        if code_in(group, text).is_none() {
            let mut rubrics = group.codes().filter_map(terminology::rubric);
            let near = near(text, &mut rubrics);
            let (text, group) = (shown(text), group.name);
            let message =
                format!("`{text}` is neither a code nor a text of the openEHR group `{group}`");
            self.refuse_here("FLT0104", message, &near);
        }
    }
}

/// Returns the group of the openEHR terminology from which the code of a key comes.
fn group_of(key: &str) -> Option<&'static CodeGroup> {
    match key {
        "setting" => Some(&terminology::SETTING),
        "category" => Some(&terminology::COMPOSITION_CATEGORY),
        "participation_mode" => Some(&terminology::PARTICIPATION_MODE),
        "action_ism_transition_current_state" => Some(&terminology::INSTRUCTION_STATES),
        _ => None,
    }
}
