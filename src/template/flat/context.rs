//! What stands under `ctx`: defaults for what the body leaves open.

use super::form::{Form, Value};

/// A key: its name without a leading underscore, and the suffixes beside its main value.
pub(super) struct Key {
    pub name: &'static str,
    pub suffixes: &'static [&'static str],
}

const PLAIN: &[&str] = &[];
const CODED: &[&str] = &["code", "terminology"];
const PARTY: &[&str] = &["name", "id"];

const fn key(name: &'static str, suffixes: &'static [&'static str]) -> Key {
    Key { name, suffixes }
}

/// Every key.
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
    key("health_care_facility", PARTY),
    key("healthcare_facility", PARTY),
    key("participation_name", PLAIN),
    key("participation_function", PLAIN),
    key("participation_mode", PLAIN),
    key("participation_id", PLAIN),
    key("participation_identifiers", &["issuer", "assigner", "id", "type"]),
    key("history_origin", PLAIN),
    key("action_time", PLAIN),
    key("activity_timing", PLAIN),
    key("instruction_narrative", PLAIN),
    key("action_ism_transition_current_state", CODED),
    key("provider_name", PLAIN),
    key("provider_id", PLAIN),
    key("work_flow_id", &["id", "id_scheme", "scheme", "namespace", "type"]),
    key("link", &["type", "meaning", "target"]),
    key("category", CODED),
    key("generic_fields", PLAIN),
];

impl Key {
    /// True when the key may stand several times.
    pub fn is_repeated(&self) -> bool {
        self.name.starts_with("participation_") || self.name == "link"
    }

    /// True when a suffix, or a member in its place, means something.
    pub fn takes(&self, suffix: &str, index: u32) -> bool {
        (matches!(suffix, "" | "value") || self.suffixes.contains(&suffix)) && (index == 0 || self.name == "participation_identifiers")
    }
}

/// The defaults of one document.
pub(super) struct Context<'f, 'a> {
    pub form: Option<&'f Form<'a>>,
}

impl<'f, 'a> Context<'f, 'a> {
    pub fn of(form: Option<&'f Form<'a>>) -> Context<'f, 'a> {
        Context { form }
    }

    /// An instance of a key.
    pub fn part(&self, key: &str, index: u32) -> Option<&'f Form<'a>> {
        let form = self.form?;
        let found = |key: &str| form.instances(key).iter().find(|part| part.index == index).map(|part| &part.form);
        found(key).or_else(|| found(&format!("_{key}")))
    }

    /// The text of a key: its main value, or that of one of the suffixes `code`, `name`, `value`, `id`.
    pub fn text(&self, key: &str) -> Option<&'f str> {
        self.text_at(key, 0)
    }

    pub fn text_at(&self, key: &str, index: u32) -> Option<&'f str> {
        let form = self.part(key, index)?;
        ["", "code", "name", "value", "id"].iter().find_map(|suffix| form.value(suffix)).map(Value::text)
    }

    /// The text of a suffix of a key.
    pub fn suffix(&self, key: &str, suffix: &str) -> Option<&'f str> {
        self.part(key, 0)?.value(suffix).map(Value::text)
    }

    /// The indexes of a repeated key.
    pub fn indexes(&self, key: &str) -> Vec<u32> {
        let of = |key: &str| self.form.map(|form| form.instances(key).iter().map(|part| part.index).collect::<Vec<u32>>()).unwrap_or_default();
        Some(of(key)).filter(|found| !found.is_empty()).unwrap_or_else(|| of(&format!("_{key}")))
    }

    /// The indexes of the participations: those of their names and ids.
    pub fn participations(&self) -> Vec<u32> {
        let mut indexes = self.indexes("participation_name");
        indexes.extend(self.indexes("participation_id"));
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    }
}
