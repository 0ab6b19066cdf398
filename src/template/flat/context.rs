//! What stands under `ctx`: defaults for what the body leaves open.

use super::form::{Form, Value};

/// The keys, without leading underscores.
pub(super) const KEYS: [&str; 31] = [
    "language",
    "territory",
    "composer",
    "composer_name",
    "composer_id",
    "composer_self",
    "id_scheme",
    "id_schema",
    "id_namespace",
    "time",
    "end_time",
    "location",
    "setting",
    "health_care_facility",
    "healthcare_facility",
    "participation_name",
    "participation_function",
    "participation_mode",
    "participation_id",
    "participation_identifiers",
    "history_origin",
    "action_time",
    "activity_timing",
    "instruction_narrative",
    "action_ism_transition_current_state",
    "provider_name",
    "provider_id",
    "work_flow_id",
    "link",
    "category",
    "generic_fields",
];

/// The defaults of one document.
pub(super) struct Context<'f, 'a> {
    form: Option<&'f Form<'a>>,
}

impl<'f, 'a> Context<'f, 'a> {
    pub fn of(form: Option<&'f Form<'a>>) -> Context<'f, 'a> {
        Context { form }
    }

    /// The keys that are none.
    pub fn unknown(&self) -> Vec<&'f str> {
        let all = self.form.into_iter().flat_map(Form::segments).map(|(key, _)| key);
        all.filter(|k| !KEYS.contains(&k.strip_prefix('_').unwrap_or(k))).collect()
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
        self.form.map(|form| form.instances(key).iter().map(|part| part.index).collect()).unwrap_or_default()
    }
}
