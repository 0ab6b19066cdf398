//! Values: suffixes that are not simple leaves, and missing parts that follow from the template.

mod duration;
mod ordinal;
mod proportion;

use super::fill::leads_to;
use super::follow::FOLLOWED;
use super::form::{KeyTree, Value};
use super::party::{is_identifier, is_party, is_uuid, mode};
use super::read::{DocumentReader, attr_of, is_true, uid_class};
use super::suffix::{CODE, SYMBOL_CODE, TERMINOLOGY};
use super::{shown, suffix};
use crate::draft::Draft;
use crate::tree::{Constraint, Node, QuantityItem};
use crate::web::WebNode;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::number;
use aqlite_rm::order;
use aqlite_rm::terminology::{self, CodeGroup};
use duration::is_duration_part;
use std::borrow::Cow;

/// Attributes whose codes belong to the openEHR terminology.
const OPENEHR: [Attr; 12] = [
    Attr::NULL_FLAVOUR,
    Attr::CURRENT_STATE,
    Attr::TRANSITION,
    Attr::CATEGORY,
    Attr::SETTING,
    Attr::MATH_FUNCTION,
    Attr::RELATIONSHIP,
    Attr::PURPOSE,
    Attr::MODE,
    Attr::NORMAL_STATUS,
    Attr::COMPRESSION_ALGORITHM,
    Attr::INTEGRITY_CHECK_ALGORITHM,
];

/// The terminologies of code phrases by attribute.
const PHRASES: [(Attr, &str); 8] = [
    (Attr::LANGUAGE, "ISO_639-1"),
    (Attr::TERRITORY, "ISO_3166-1"),
    (Attr::ENCODING, "IANA_character-sets"),
    (Attr::CHARSET, "IANA_character-sets"),
    (Attr::MEDIA_TYPE, "IANA_media-types"),
    (Attr::NORMAL_STATUS, "openehr"),
    (
        Attr::COMPRESSION_ALGORITHM,
        "openehr_compression_algorithms",
    ),
    (
        Attr::INTEGRITY_CHECK_ALGORITHM,
        "openehr_integrity_check_algorithms",
    ),
];

impl<'r> DocumentReader<'r, '_> {
    /// Chooses the class of a value whose declared class is abstract or has alternatives.
    pub fn choose_class(
        &mut self,
        class: Cls,
        form: &'r KeyTree<'_>,
        web: Option<&'r WebNode>,
        at: Attr,
        like: Option<Cls>,
    ) -> Option<Cls> {
        if let Some(named) = self.stated_class(class, form) {
            return Some(named);
        }
        let has = |suffix: &str| form.value(suffix).is_some();
        let has_other = has("other") && web.is_some_and(|w| w.has_other);
        Some(match class {
            Cls::DV_TEXT if has("code") || has("terminology") => Cls::DV_CODED_TEXT,
            Cls::DV_CODED_TEXT if has("other") && !has("code") => Cls::DV_TEXT,
            Cls::DV_ORDINAL | Cls::DV_SCALE if has_other => Cls::DV_TEXT,
            Cls::PARTY_PROXY | Cls::PARTY_IDENTIFIED => {
                let is_self = at == Attr::COMPOSER && self.context.is_composer_self();
                party_class(class, form, at == Attr::SUBJECT || is_self)
            }
            Cls::UID_BASED_ID => uid_class(plain_value(form).map_or("", Value::text)),
            Cls::DV_ORDERED | Cls::DATA_VALUE => like.unwrap_or_else(|| guessed(form)),
            other => super::read::concrete_class(other),
        })
    }

    /// Returns whether a word is a suffix of a class.
    pub fn is_suffix(&self, class: Cls, name: &str) -> bool {
        suffix::named(class, name).is_some()
            || (class == Cls::DV_DURATION && is_duration_part(name))
            || name == "other"
    }

    /// Sets the attribute that a suffix addresses.
    pub fn read_suffix(
        &mut self,
        draft: &mut Draft<'r>,
        name: &'r str,
        index: u32,
        text: &'r str,
        web: Option<&'r WebNode>,
    ) {
        let class = draft.class();
        let found = suffix::named(class, name).filter(|_| index == 0);
        // A quantity may have the empty unit, so blank text is a value there.
        if text.trim().is_empty() && class != Cls::DV_QUANTITY {
            return;
        }
        match (class, name, found) {
            (_, "_type" | "raw", _) if index == 0 => {}
            (Cls::DV_DURATION, name, None) if is_duration_part(name) => {}
            // Handled in `complete`, which has all suffixes of the value.
            (Cls::DV_PROPORTION, "" | "value", _) => {}
            (Cls::DV_CODED_TEXT, "", _) => self.read_coded(draft, text, web),
            (Cls::DV_TEXT, "other", _) => self.set_leaf(draft, &[Attr::VALUE], text),
            (Cls::DV_CODED_TEXT, "other", _) if index == 0 && web.is_some_and(|w| w.has_other) => {}
            (Cls::DV_ORDINAL | Cls::DV_SCALE, "" | "value", _) => {
                self.read_ordinal(draft, text, web, name.is_empty())
            }
            (Cls::PARTICIPATION, "mode", _) => {
                self.check_in_group(&terminology::PARTICIPATION_MODE, text);
                draft.put(Attr::MODE, mode(text));
            }
            (Cls::PARTICIPATION, name, None) if is_party(name) => {}
            (class, name, None)
                if class.is_a(Cls::PARTY_PROXY)
                    && (is_identifier(name) || name == "identifier") => {}
            (Cls::REFERENCE_RANGE, name, None)
                if index == 0 && suffix::named(Cls::DV_INTERVAL, name).is_some() => {}
            (Cls::INSTRUCTION_DETAILS, name, None) if index == 0 && FOLLOWED.contains(&name) => {}
            (_, "", None) if class == Cls::PARTY_IDENTIFIED => {
                self.set_leaf(draft, &[Attr::NAME], text)
            }
            (Cls::DV_CODED_TEXT | Cls::CODE_PHRASE | Cls::DV_ORDINAL, code, None)
                if is_true(text) && !code.is_empty() =>
            {
                self.read_code_flag(draft, code)
            }
            (_, _, Some(found)) => {
                self.at_suffix(name, |reader| reader.set_leaf(draft, found.path, text))
            }
            (_, name, None) => self.refuse_suffix(name, class, web),
        }
    }

    /// Sets a code that was sent as a suffix with the value `true`.
    fn read_code_flag(&mut self, draft: &mut Draft<'r>, code: &'r str) {
        let path: &[Attr] = match draft.class() {
            Cls::CODE_PHRASE => &[Attr::CODE_STRING],
            Cls::DV_ORDINAL => SYMBOL_CODE,
            _ => CODE,
        };
        match draft.text_along(path) {
            Some(there) if there != code => {
                let message = format!("`|{}` contradicts the code that is given", shown(code));
                self.refuse_here("FLT0107", message, &[]);
            }
            _ => self.set_leaf(draft, path, code),
        }
    }

    /// Reads a coded text from one text: `code`, `code::text`, `terminology::code::text`, or the
    /// text alone. The values of the suffixes have been read before.
    fn read_coded(&mut self, draft: &mut Draft<'r>, text: &'r str, web: Option<&'r WebNode>) {
        let parts: Vec<&'r str> = text.splitn(3, "::").collect();
        match parts.as_slice() {
            [terminology, code, label] => {
                self.set_leaf(draft, CODE, code);
                self.set_leaf(draft, TERMINOLOGY, terminology);
                self.set_leaf(draft, &[Attr::VALUE], label);
            }
            [code, label] => {
                self.set_leaf(draft, CODE, code);
                self.set_leaf(draft, &[Attr::VALUE], label);
            }
            _ if self.is_text_of(draft, text, web) => {}
            _ => match self.codes_with_text(web, text).as_slice() {
                [] => self.set_leaf(draft, CODE, text),
                // `complete_code` refuses the text, unless `|code` says which.
                [_, _, ..] if draft.text_along(CODE).is_none() => {
                    self.set_leaf(draft, &[Attr::VALUE], text)
                }
                [(terminology, code), ..] => {
                    self.set_leaf(draft, CODE, code);
                    if draft.text_along(TERMINOLOGY).is_none() {
                        self.set_leaf(draft, TERMINOLOGY, terminology);
                    }
                    self.set_leaf(draft, &[Attr::VALUE], text);
                }
            },
        }
    }

    /// Returns whether a coded text has a code, and this text.
    fn is_text_of(&self, draft: &Draft<'r>, text: &str, web: Option<&'r WebNode>) -> bool {
        let Some(code) = draft.text_along(CODE) else {
            return false;
        };
        match draft.text_along(&[Attr::VALUE]) {
            Some(there) => there == text,
            None => {
                let of_template = web.and_then(WebNode::codes).map(|(t, _)| t);
                self.has_text(web, of_template.unwrap_or("openehr"), code, text)
            }
        }
    }

    /// Returns the codes that the template offers with this text, each with its terminology.
    fn codes_with_text(&self, web: Option<&'r WebNode>, text: &str) -> Vec<(&'r str, &'r str)> {
        if web.is_some_and(|web| attr_of(web) == Attr::CAREFLOW_STEP) {
            return self.steps_with_text(text);
        }
        let (terminology, codes) = web.and_then(WebNode::codes).unwrap_or_default();
        let found = codes.iter();
        let found = found.filter(|code| self.has_text(web, terminology, code, text));
        order::distinct(found.map(|code| (terminology, code.as_str())))
    }

    /// Returns the careflow steps with this text, of the transition that is being read. If some of
    /// them lead to its state, the others are left out.
    fn steps_with_text(&self, text: &str) -> Vec<(&'r str, &'r str)> {
        let steps = self.transition.map_or(&[][..], |t| &t.transitions);
        let found = steps.iter();
        let found = found.filter(|(code, _)| self.has_text(self.transition, "local", code, text));
        let mut found: Vec<&(String, Vec<String>)> = found.collect();
        if let Some(state) = self.state.as_deref().or(self.usual_state()) {
            narrow(&mut found, |(_, states)| leads_to(states, state));
        }
        order::distinct(found.into_iter().map(|(code, _)| ("local", code.as_str())))
    }

    /// Returns whether a code has a text.
    pub fn has_text(
        &self,
        web: Option<&'r WebNode>,
        terminology: &str,
        code: &str,
        text: &str,
    ) -> bool {
        let label = self.label(web, terminology, code);
        label.is_some_and(|label| label == text)
    }

    /// Returns the text of a code: from the openEHR terminology, or from the template in the
    /// language of texts, else in its original language.
    pub fn label(
        &self,
        web: Option<&'r WebNode>,
        terminology: &str,
        code: &str,
    ) -> Option<Cow<'r, str>> {
        let openehr = Some(code)
            .filter(|_| terminology == "openehr")
            .and_then(terminology::rubric);
        let node = web.and_then(root_of).map(|root| Node {
            root,
            ..crate::web::blank()
        });
        let term = |code: &str| {
            let term = self.template.term(node.as_ref()?, self.language, code);
            term.map(|t| t.text.trim())
        };
        openehr
            .or_else(|| term(code))
            .or_else(|| term(&format!("{terminology}::{code}")))
            .filter(|t| !t.is_empty())
            .map(Cow::Borrowed)
    }

    /// Completes the missing parts of a value from the template and the usual defaults.
    pub fn complete(
        &mut self,
        draft: &mut Draft<'r>,
        form: &'r KeyTree<'_>,
        web: Option<&'r WebNode>,
        at: Attr,
        like: Option<Cls>,
    ) {
        let class = draft.class();
        match class {
            Cls::DV_CODED_TEXT => {
                self.complete_code(draft, web, at);
                if at == Attr::CURRENT_STATE {
                    self.state = draft.copy_along(CODE);
                }
            }
            Cls::DV_STATE => self.complete_state(draft, web),
            Cls::CODE_PHRASE => complete_phrase(draft, at),
            Cls::DV_QUANTITY => self.complete_quantity(draft, web),
            Cls::DV_PROPORTION => self.complete_proportion(draft, form, web),
            Cls::DV_ORDINAL | Cls::DV_SCALE => self.complete_ordinal(draft, web),
            Cls::DV_DURATION => self.complete_duration(draft, form),
            Cls::DV_PARSABLE if at != Attr::ORIGINAL_CONTENT => {
                self.complete_parsable(draft, web, at)
            }
            Cls::DV_MULTIMEDIA if draft.get(Attr::SIZE).is_none() => {
                let size = size_of_data(draft.text_along(&[Attr::DATA]).unwrap_or_default());
                draft.put(Attr::SIZE, Draft::leaf(Cls::INTEGER, size.to_string()))
            }
            Cls::DV_INTERVAL => complete_interval(draft),
            Cls::REFERENCE_RANGE => self.complete_range(draft, form, like),
            Cls::EVENT_CONTEXT => self.fill_event_context(draft),
            Cls::PARTICIPATION => self.complete_participation(draft, form),
            Cls::TERM_MAPPING if draft.get(Attr::MATCH).is_none() => {
                draft.put(Attr::MATCH, Draft::leaf(Cls::CHARACTER, "?"))
            }
            _ if class.is_a(Cls::PARTY_PROXY) => self.complete_party(draft, form),
            _ if class.is_a(Cls::OBJECT_REF) && takes_context(at) => {
                if draft.get(Attr::TYPE).is_none() {
                    draft.put(Attr::TYPE, Draft::text(referenced_type(at)));
                }
                self.complete_reference(draft);
            }
            _ if class.is_a(Cls::OBJECT_REF) => complete_reference(draft, referenced_type(at)),
            Cls::INSTRUCTION_DETAILS => {
                self.follow_instruction(draft, form);
                draft
                    .get_mut(Attr::INSTRUCTION_ID)
                    .into_iter()
                    .for_each(|r| complete_reference(r, "INSTRUCTION"));
            }
            _ => {}
        }
        self.complete_now(draft);
        complete_terminologies(draft);
    }

    /// Replaces `now`, an abbreviation of the format, by the time of reading.
    fn complete_now(&self, draft: &mut Draft<'r>) {
        let class = draft.class();
        if matches!(class, Cls::DV_DATE | Cls::DV_TIME | Cls::DV_DATE_TIME)
            && draft.text_along(&[Attr::VALUE]) == Some("now")
        {
            let now = match class {
                Cls::DV_DATE => self.now.split('T').next(),
                Cls::DV_TIME => self.now.split('T').nth(1),
                _ => Some(self.now),
            };
            draft.put(Attr::VALUE, Draft::text(now.unwrap_or_default()));
        }
    }

    fn complete_code(&mut self, draft: &mut Draft<'r>, web: Option<&'r WebNode>, at: Attr) {
        let Some(code) = draft.copy_along(CODE) else {
            return self.complete_code_of_text(draft, web, at);
        };
        let given = draft.copy_along(TERMINOLOGY);
        let of_template = web.and_then(WebNode::codes).map(|(t, _)| t);
        let of_template = of_template.filter(|t| !t.is_empty());
        let displayed = web.and_then(WebNode::displayed_codes).map(|(t, _)| t);
        let is_of_template = |given: &str| of_template.is_some() && displayed == Some(given);
        // Clients send many terminologies for null flavours, but the model permits one.
        let terminology = match given {
            Some(_) if at == Attr::NULL_FLAVOUR => Cow::Borrowed("openehr"),
            Some(given) if !is_of_template(&given) => given,
            _ => Cow::Borrowed(of_template.unwrap_or(usual_terminology(at))),
        };
        put_code(draft, terminology.clone(), code.clone(), None);
        if draft.get(Attr::VALUE).is_none() {
            let group = group_of(at).filter(|_| terminology == "openehr");
            match (self.label(web, &terminology, &code), group) {
                (Some(label), _) => draft.put(Attr::VALUE, Draft::text(label)),
                (None, Some(group)) => self.complete_from_group(draft, group, &code),
                (None, None) => self.refuse_code_without_text(&code),
            }
        }
    }

    /// Completes a coded text by the code of a group that has this text.
    fn complete_from_group(&mut self, draft: &mut Draft<'r>, group: &CodeGroup, text: &str) {
        match terminology::code_of(group, text) {
            Some(code) => {
                let rubric = terminology::rubric(code).map(Cow::Borrowed);
                put_code(draft, "openehr".into(), code.into(), rubric);
            }
            None => self.check_in_group(group, text),
        }
    }

    /// Completes the coded text of a state. A state is not the last one unless the sender says so.
    fn complete_state(&mut self, draft: &mut Draft<'r>, web: Option<&'r WebNode>) {
        if let Some(value) = draft.get_mut(Attr::VALUE) {
            self.complete_code(value, web, Attr::VALUE);
        }
        if draft.get(Attr::IS_TERMINAL).is_none() {
            draft.put(Attr::IS_TERMINAL, Draft::boolean(false));
        }
    }

    fn refuse_code_without_text(&mut self, code: &str) {
        let code = shown(code);
        let message = format!(
            "the text of the code `{code}` is missing, and the template does not know it: give `|value`"
        );
        self.refuse_here("FLT0108", message, &[]);
    }

    /// Completes a coded text without a code by the code that has its text.
    fn complete_code_of_text(&mut self, draft: &mut Draft<'r>, web: Option<&'r WebNode>, at: Attr) {
        let text = draft.copy_along(&[Attr::VALUE]).unwrap_or_default();
        let found = self.codes_with_text(web, &text);
        match (found.as_slice(), group_of(at)) {
            ([(terminology, code)], _) => {
                put_code(draft, (*terminology).into(), (*code).into(), None)
            }
            ([_, ..], _) => self.refuse_several(web, &found),
            ([], Some(group)) => self.complete_from_group(draft, group, &text),
            ([], None) => {
                let text = shown(&text);
                let message = format!(
                    "the code is missing, and no code of the template has the text `{text}`"
                );
                self.refuse_here("FLT0108", message, &[]);
            }
        }
    }

    /// Reports given values that fit several codes of the template.
    fn refuse_several(&mut self, web: Option<&'r WebNode>, codes: &[(&str, &str)]) {
        let mut named = Vec::new();
        for (terminology, code) in codes.iter().take(SHOWN_CODES) {
            let label = self.label(web, terminology, code).unwrap_or_default();
            named.push(format!("`{code}` ({label})"));
        }
        let named = named.join(", ");
        let message = format!("several codes of the template fit, such as {named}: give `|code`");
        let near = format!("{}|code", self.path);
        self.refuse_here("FLT0108", message, &[&near]);
    }

    pub(super) fn complete_quantity(&mut self, draft: &mut Draft<'r>, web: Option<&'r WebNode>) {
        let list = units_of(web);
        if draft.get(Attr::MAGNITUDE).is_none() {
            let message = "the magnitude is missing: give `|magnitude`";
            self.refuse_here("FLT0108", message, &[]);
        }
        let has_unit =
            |unit: &str| list.is_none_or(|list| list.iter().any(|item| item.units == unit));
        // An empty unit is a unit only if the template lists it.
        let unit = draft.text_along(&[Attr::UNITS]);
        if unit.is_none_or(|unit| unit.trim().is_empty() && !has_unit(unit)) {
            match list {
                Some([only]) => draft.put(Attr::UNITS, Draft::text(only.units.as_str())),
                _ => self.refuse_here("FLT0108", "the unit is missing: give `|unit`", &[]),
            }
        }
        if draft.get(Attr::PRECISION).is_none() {
            let units = draft.text_along(&[Attr::UNITS]).unwrap_or_default();
            let precision = greatest_precision(list.unwrap_or_default(), units);
            if let Some(precision) = precision {
                let precision = Draft::leaf(Cls::INTEGER, number::fixed(precision, 0));
                draft.put(Attr::PRECISION, precision);
            }
        }
    }

    /// Completes the formalism: the only one of the template, else that of a timing.
    fn complete_parsable(&mut self, draft: &mut Draft<'r>, web: Option<&'r WebNode>, at: Attr) {
        if draft.get(Attr::FORMALISM).is_some() {
            return;
        }
        let usual = Some("timing").filter(|_| at == Attr::TIMING);
        match web.and_then(only_formalism).or(usual) {
            Some(formalism) => draft.put(Attr::FORMALISM, Draft::text(formalism)),
            None if self.is_strict => {
                let message = "the formalism is missing: give `|formalism`";
                self.refuse_here("FLT0108", message, &[]);
            }
            None => {}
        }
    }

    /// Completes a reference range. In the formats it has the limits of its interval directly.
    fn complete_range(&mut self, draft: &mut Draft<'r>, form: &'r KeyTree<'_>, like: Option<Cls>) {
        if draft.get(Attr::RANGE).is_some() {
            return;
        }
        let mut interval = Draft::object(Cls::DV_INTERVAL);
        for (attr, name) in [(Attr::LOWER, "lower"), (Attr::UPPER, "upper")] {
            let form = self.only_instance(name, form.instances(name));
            let class = like.unwrap_or(Cls::DV_ORDERED);
            let made = form
                .and_then(|f| self.at_segment(name, None, |r| r.read_value(class, f, None, attr)));
            made.into_iter().for_each(|m| interval.put(attr, m));
        }
        for given in &form.values {
            let text = given.value.text();
            self.read_suffix(&mut interval, &given.suffix, given.index, text, None);
        }
        complete_interval(&mut interval);
        draft.put(Attr::RANGE, interval);
    }
}

/// The maximum number of codes that a finding lists.
const SHOWN_CODES: usize = 10;

/// Keeps the items that fit, if there are any.
fn narrow<T>(items: &mut Vec<T>, fits: impl Fn(&T) -> bool) {
    if items.iter().any(&fits) {
        items.retain(fits);
    }
}

/// Returns the class that the suffixes of a value imply. The order matters: earlier suffixes are
/// more specific.
fn guessed(form: &KeyTree<'_>) -> Cls {
    let has = |suffix: &str| form.value(suffix).is_some();
    match () {
        () if has("unit") || has("units") => Cls::DV_QUANTITY,
        () if has("numerator") => Cls::DV_PROPORTION,
        () if has("ordinal") => Cls::DV_ORDINAL,
        () if has("scale") => Cls::DV_SCALE,
        () if has("code") => Cls::DV_CODED_TEXT,
        () if form.value("").is_some_and(|v| v.text().starts_with('P')) => Cls::DV_DURATION,
        () if form.value("").is_some_and(|v| v.text().contains('T')) => Cls::DV_DATE_TIME,
        () if form.value("").is_some_and(|v| v.text().contains(':')) => Cls::DV_TIME,
        () if form.value("").is_some_and(|v| v.text().contains('-')) => Cls::DV_DATE,
        () => Cls::DV_COUNT,
    }
}

/// Returns the class of a party that its keys imply. `is_self` is whether a party without a name is
/// the subject of the record.
fn party_class(class: Cls, form: &KeyTree<'_>, is_self: bool) -> Cls {
    let has_part = |name: &str| form.first(name).is_some();
    let is_named = form.value("name").or(form.value("")).is_some() || has_part("_identifier");
    if has_part("relationship") || has_part("_relationship") {
        Cls::PARTY_RELATED
    } else if class == Cls::PARTY_PROXY && is_self && !is_named {
        Cls::PARTY_SELF
    } else {
        Cls::PARTY_IDENTIFIED
    }
}

/// Returns the index of the archetype whose terms name the codes of a node.
fn root_of(web: &WebNode) -> Option<usize> {
    let own = web.value.as_ref().map(|v| v.root);
    own.or_else(|| web.last_step().map(|s| s.root))
}

/// Returns the terminology of a code at an attribute, if neither sender nor template name one.
fn usual_terminology(at: Attr) -> &'static str {
    match at {
        _ if OPENEHR.contains(&at) => "openehr",
        Attr::CAREFLOW_STEP => "local",
        _ => "external",
    }
}

/// Returns the greatest precision that the template permits for a unit.
fn greatest_precision(list: &[QuantityItem], units: &str) -> Option<f64> {
    let item = list.iter().find(|i| i.units == units)?;
    item.precision.as_ref()?.upper.filter(|u| *u >= 0.0)
}

/// Returns the units in the template with their ranges; `None` if it does not constrain them.
fn units_of(web: Option<&WebNode>) -> Option<&[QuantityItem]> {
    match &web?.value.as_deref()?.constraint {
        Constraint::Quantity { list, .. } => Some(list),
        _ => None,
    }
}

/// Returns the number of bytes of data in Base64.
fn size_of_data(text: &str) -> usize {
    let digits = text
        .bytes()
        .filter(|b| !b.is_ascii_whitespace() && *b != b'=');
    // Four digits encode three bytes. A padded end encodes one or two.
    digits.count() * 3 / 4
}

/// Returns the value without suffix.
pub(super) fn plain_value<'f, 't>(form: &'f KeyTree<'t>) -> Option<&'f Value<'t>> {
    form.value("").or_else(|| form.value("value"))
}

/// Returns whether `ctx` has the scheme and the namespace of references at an attribute.
fn takes_context(at: Attr) -> bool {
    matches!(at, Attr::WORKFLOW_ID | Attr::GUIDELINE_ID)
}

/// Returns the type of the object that a reference at an attribute refers to.
fn referenced_type(at: Attr) -> &'static str {
    match at {
        Attr::INSTRUCTION_ID => "INSTRUCTION",
        Attr::EXTERNAL_REF => "PARTY",
        _ => "ANY",
    }
}

/// Returns the formalism that the template permits, if it is the only one.
fn only_formalism(web: &WebNode) -> Option<&str> {
    let mut constraints = web.constraints_at(&["formalism"]);
    constraints.find_map(|node| match &node.constraint {
        Constraint::Text { list, .. } => match list.as_slice() {
            [only] => Some(only.as_str()),
            _ => None,
        },
        _ => None,
    })
}

/// Completes the terminologies of the code phrases of an object that have one terminology only.
fn complete_terminologies(draft: &mut Draft<'_>) {
    for (attr, _) in PHRASES {
        if let Some(phrase) = draft
            .get_mut(attr)
            .filter(|p| p.class() == Cls::CODE_PHRASE)
        {
            complete_phrase(phrase, attr);
        }
    }
}

pub(super) fn put_code<'d>(
    draft: &mut Draft<'d>,
    terminology: Cow<'d, str>,
    code: Cow<'d, str>,
    text: Option<Cow<'d, str>>,
) {
    let term = draft.copy_along(&[Attr::DEFINING_CODE, Attr::PREFERRED_TERM]);
    let mut phrase = Draft::code(terminology, code);
    term.into_iter()
        .for_each(|t| phrase.put(Attr::PREFERRED_TERM, Draft::text(t)));
    draft.put(Attr::DEFINING_CODE, phrase);
    text.into_iter()
        .for_each(|t| draft.put(Attr::VALUE, Draft::text(t)));
}

/// Returns the group of the openEHR terminology from which the code at an attribute comes.
fn group_of(at: Attr) -> Option<&'static CodeGroup> {
    Some(match at {
        Attr::NULL_FLAVOUR => &terminology::NULL_FLAVOURS,
        Attr::CURRENT_STATE => &terminology::INSTRUCTION_STATES,
        Attr::TRANSITION => &terminology::INSTRUCTION_TRANSITIONS,
        Attr::CATEGORY => &terminology::COMPOSITION_CATEGORY,
        Attr::SETTING => &terminology::SETTING,
        Attr::MATH_FUNCTION => &terminology::EVENT_MATH_FUNCTION,
        Attr::RELATIONSHIP => &terminology::SUBJECT_RELATIONSHIP,
        Attr::PURPOSE => &terminology::TERM_MAPPING_PURPOSE,
        _ => return None,
    })
}

/// Returns the code of a group that a text gives: as the code, as its English text, or as both,
/// like `home::openehr::225` and `openehr::225::home`.
pub(super) fn code_in<'t>(group: &CodeGroup, text: &'t str) -> Option<&'t str> {
    let parts: Vec<&str> = text.split("::").collect();
    match parts.as_slice() {
        [_, _, code] | [_, code, _] if group.contains(code) => Some(code),
        _ if group.contains(text) => Some(text),
        _ => terminology::code_of(group, text),
    }
}

fn complete_phrase(draft: &mut Draft<'_>, at: Attr) {
    if draft.get(Attr::TERMINOLOGY_ID).is_none() {
        let terminology = PHRASES
            .iter()
            .find(|(attr, _)| *attr == at)
            .map_or("external", |(_, t)| t);
        draft.put(
            Attr::TERMINOLOGY_ID,
            Draft::holding(Cls::TERMINOLOGY_ID, Attr::VALUE, terminology),
        );
    }
}

/// Completes the flags of an interval from the presence of its limits.
fn complete_interval(draft: &mut Draft<'_>) {
    let sides = [
        (Attr::LOWER, Attr::LOWER_UNBOUNDED, Attr::LOWER_INCLUDED),
        (Attr::UPPER, Attr::UPPER_UNBOUNDED, Attr::UPPER_INCLUDED),
    ];
    for (limit, unbounded, included) in sides {
        if draft.get(unbounded).is_none() {
            draft.put(unbounded, Draft::boolean(draft.get(limit).is_none()));
        }
        if draft.get(included).is_none() {
            let is_unbounded = draft.text_along(&[unbounded]) == Some("true");
            draft.put(included, Draft::boolean(!is_unbounded));
        }
    }
}

/// Completes type, namespace and scheme of a reference to an object.
fn complete_reference(draft: &mut Draft<'_>, kind: &'static str) {
    if draft.get(Attr::TYPE).is_none() {
        draft.put(Attr::TYPE, Draft::text(kind));
    }
    if draft.get(Attr::NAMESPACE).is_none() {
        draft.put(Attr::NAMESPACE, Draft::text("local"));
    }
    if let Some(id) = draft
        .get_mut(Attr::ID)
        .filter(|id| id.class() == Cls::GENERIC_ID && id.get(Attr::SCHEME).is_none())
    {
        let value = id.copy_along(&[Attr::VALUE]).unwrap_or_default();
        if is_uuid(&value) {
            *id = Draft::holding(Cls::HIER_OBJECT_ID, Attr::VALUE, value);
        } else {
            id.put(Attr::SCHEME, Draft::text("local"));
        }
    }
}
