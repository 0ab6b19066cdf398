//! ELEMENTs and their data values.

use super::*;
use crate::flat::complete::plain_value;
use aqlite_rm::number;

/// Returns whether a quantity has a unit and nothing else, as a form sends one that is not filled in.
fn is_unit_alone(form: &KeyTree<'_>) -> bool {
    let is_unit = |suffix: &str| matches!(suffix, "unit" | "units");
    form.is_leaf() && form.values.iter().all(|given| is_unit(&given.suffix))
}

/// Returns the class of the limits of an interval or a reference range in a value.
fn class_of_limits(class: Cls, web: Option<&WebNode>, like: Option<Cls>) -> Option<Cls> {
    // The Reference Model declares `PARTICIPATION.time` as DV_INTERVAL<DV_DATE_TIME>.
    let declared = Some(Cls::DV_DATE_TIME).filter(|_| class == Cls::PARTICIPATION);
    let limits = like.or(declared).or_else(|| parameter(web));
    if class == Cls::DV_INTERVAL || class == Cls::REFERENCE_RANGE {
        return limits;
    }
    limits.or(Some(class).filter(|c| c.is_a(Cls::DV_ORDERED)))
}

impl<'r> DocumentReader<'r, '_> {
    /// Reads an ELEMENT with its value.
    pub(super) fn read_element(
        &mut self,
        kid: &'r WebNode,
        step: &'r Step,
        form: &'r KeyTree<'_>,
    ) -> Option<Draft<'r>> {
        let mut element = self.new_object(Some(step), Cls::ELEMENT);
        let bare = entries_of(&element);
        if let Some(raw) = form.value("raw") {
            return self.read_raw_element(raw, Some(step), form);
        }
        for (segment, instances) in form.segments() {
            if let Some(def) = of_element(kid.class, segment) {
                self.read_attribute(&mut element, segment, def, instances, None);
            }
        }
        let has_null = element.get(Attr::NULL_FLAVOUR).is_some();
        let is_given = |f: &'r KeyTree<'_>| {
            !f.values.is_empty()
                || f.segments()
                    .any(|(s, i)| of_element(kid.class, s).is_none() && !are_empty(i))
        };
        if is_given(form) {
            element.add(
                Attr::VALUE,
                self.read_value(kid.class, form, Some(kid), Attr::VALUE)
                    .unwrap_or(Draft::object(Cls::ELEMENT)),
            );
            if element
                .get(Attr::VALUE)
                .is_some_and(|v| v.class() == Cls::ELEMENT)
            {
                element.remove(Attr::VALUE);
            }
        }
        let has_content = element.get(Attr::VALUE).is_some()
            || has_null
            || element.get(Attr::FEEDER_AUDIT).is_some()
            || element.get(Attr::LINKS).is_some();
        (has_content && entries_of(&element) != bare).then_some(element)
    }

    /// Reads canonical JSON in place of an ELEMENT. A data value becomes the value of the ELEMENT.
    pub(super) fn read_raw_element(
        &mut self,
        raw: &Value<'_>,
        step: Option<&'r Step>,
        form: &'r KeyTree<'_>,
    ) -> Option<Draft<'r>> {
        let made = self.read_raw(raw, Cls::ANY, form)?;
        let class = made.class();
        if class.is_a(Cls::ITEM) {
            return Some(made);
        }
        if !class.is_a(Cls::DATA_VALUE) {
            let message = format!("`|raw` is a {class}, expected an ELEMENT or a data value");
            self.refuse_here("FLT0104", message, &[]);
            return None;
        }
        Some(self.new_object(step, Cls::ELEMENT).with(Attr::VALUE, made))
    }

    /// Reads the values of an attribute of the Reference Model.
    pub fn read_attribute(
        &mut self,
        draft: &mut Draft<'r>,
        segment: &str,
        def: &'static AttrDef,
        instances: &'r [SegmentInstance<'_>],
        like: Option<Cls>,
    ) {
        if !def.card.is_list() {
            let form = self.only_instance(segment, instances);
            return form.into_iter().for_each(|form| {
                self.at_segment(segment, None, |reader| {
                    reader.attribute_value(draft, form, def, like)
                })
            });
        }
        for SegmentInstance { index, form, .. } in instances {
            self.at_segment(segment, Some(*index), |reader| {
                reader.attribute_value(draft, form, def, like)
            });
        }
    }

    pub(super) fn attribute_value(
        &mut self,
        draft: &mut Draft<'r>,
        form: &'r KeyTree<'_>,
        def: &AttrDef,
        like: Option<Cls>,
    ) {
        let class = like
            .filter(|_| matches!(def.attr, Attr::LOWER | Attr::UPPER))
            .unwrap_or(def.ty);
        let made = self.value_like(class, form, None, def.attr, like);
        made.into_iter().for_each(|made| draft.add(def.attr, made));
    }

    /// Reads an object that is not a node.
    pub fn read_value(
        &mut self,
        class: Cls,
        form: &'r KeyTree<'_>,
        web: Option<&'r WebNode>,
        at: Attr,
    ) -> Option<Draft<'r>> {
        self.value_like(class, form, web, at, None)
    }

    pub(super) fn value_like(
        &mut self,
        class: Cls,
        form: &'r KeyTree<'_>,
        web: Option<&'r WebNode>,
        at: Attr,
        like: Option<Cls>,
    ) -> Option<Draft<'r>> {
        if form.is_empty() {
            return None;
        }
        if let Some(raw) = form.value("raw") {
            return self.read_raw(raw, class, form);
        }
        if class.is_primitive() {
            return self.read_primitive(class, form);
        }
        let class = self.choose_class(class, form, web, at, like)?;
        if class == Cls::DV_QUANTITY && is_unit_alone(form) {
            return None;
        }
        let mut draft = Draft::object(class);
        let known = self.findings.len();
        for given in form.values_by_suffix() {
            let text = given.value.text();
            self.read_suffix(&mut draft, &given.suffix, given.index, text, web);
        }
        self.read_value_segments(&mut draft, form, web, like);
        self.after_parts(known, |reader| {
            reader.complete(&mut draft, form, web, at, like)
        });
        Some(draft)
    }

    /// Reads the segments below a value, except for those of an ELEMENT around it.
    fn read_value_segments(
        &mut self,
        draft: &mut Draft<'r>,
        form: &'r KeyTree<'_>,
        web: Option<&'r WebNode>,
        like: Option<Cls>,
    ) {
        let has_element = web.is_some_and(|w| w.element().is_some());
        for (segment, instances) in form.segments() {
            // STRUCTURED may omit the bar of a suffix.
            let unbarred = instances.first().and_then(|part| part.form.only_value());
            if let Some((there, given)) = form.value_at(segment, 0).zip(unbarred) {
                self.check_equal(Cls::REAL, there.text(), given.text());
            }
            let is_of_element = has_element && of_element(draft.class(), segment).is_some();
            let is_ignored = is_transient(segment) || are_empty(instances);
            if !is_of_element && !is_ignored {
                self.read_value_segment(draft, segment, instances, web, like);
            }
        }
    }

    /// Reads a value without suffixes of its own.
    pub(super) fn read_primitive(
        &mut self,
        class: Cls,
        form: &'r KeyTree<'_>,
    ) -> Option<Draft<'r>> {
        let is_main = |suffix: &str| matches!(suffix, "" | "value");
        let is_other = |given: &&SuffixValue<'_>| !is_main(&given.suffix) || given.index > 0;
        for given in form.values.iter().filter(is_other) {
            let key = format!("{}|{}", self.path, given.suffix);
            let suffix = shown(&given.suffix);
            let message = format!("`|{suffix}` cannot stand here: the value has no suffix");
            self.refuse("FLT0102", &key, message, &[]);
        }
        let is_other = |segment: &str| !is_main(segment) && !is_transient(segment);
        for (segment, _) in form.segments().filter(|(segment, _)| is_other(segment)) {
            let key = format!("{}/{segment}", self.path);
            let segment = shown(segment);
            let message =
                format!("`{segment}` is not allowed here: a value has no segments below it");
            self.refuse("FLT0101", &key, message, &[]);
        }
        self.check_plain_values(class, form);
        plain_value(form).and_then(|value| self.read_leaf(class, value.text()))
    }

    /// Reports a main value that differs from the value of `|value`, its other spelling.
    pub fn check_plain_values(&mut self, class: Cls, form: &KeyTree<'_>) {
        if let Some((bare, named)) = form.value("").zip(form.value("value")) {
            self.check_equal(class, bare.text(), named.text());
        }
    }

    pub(super) fn read_value_segment(
        &mut self,
        draft: &mut Draft<'r>,
        segment: &'r str,
        instances: &'r [SegmentInstance<'_>],
        web: Option<&'r WebNode>,
        like: Option<Cls>,
    ) {
        let class = draft.class();
        let kid = web.and_then(|w| w.child(segment));
        if let Some(kid) = kid.filter(|k| k.steps.len() == 1) {
            let made = self.read_only(segment, instances, kid.class, Some(kid), attr_of(kid));
            return made
                .into_iter()
                .for_each(|made| draft.add(attr_of(kid), made));
        }
        if let [SegmentInstance { index: 0, form, .. }] = instances
            && let Some(value) = form.only_value().filter(|_| self.is_suffix(class, segment))
        {
            return self.read_suffix(draft, segment, 0, value.text(), web);
        }
        // `complete_range` reads the limits into the interval of the range.
        if class == Cls::REFERENCE_RANGE && matches!(segment, "lower" | "upper") {
            return;
        }
        // A segment of its own, because `original_content` is a DV_PARSABLE without a class.
        if class == Cls::FEEDER_AUDIT && segment == "original_content_multimedia" {
            let attr = Attr::ORIGINAL_CONTENT;
            let made = self.read_only(segment, instances, Cls::DV_MULTIMEDIA, None, attr);
            return made.into_iter().for_each(|made| draft.put(attr, made));
        }
        match suffix::attribute(class, segment) {
            Some(def) => {
                let limits = class_of_limits(class, web, like);
                self.read_attribute(draft, segment, def, instances, limits);
            }
            None if class == Cls::PARTICIPATION && OF_PARTY.contains(&segment) => {}
            None => self.refuse_segment(segment, class, web),
        }
    }

    /// Reads the only instance of a segment. Several are reported.
    fn read_only(
        &mut self,
        segment: &str,
        instances: &'r [SegmentInstance<'_>],
        class: Cls,
        web: Option<&'r WebNode>,
        at: Attr,
    ) -> Option<Draft<'r>> {
        let form = self.only_instance(segment, instances)?;
        self.at_segment(segment, None, |r| r.read_value(class, form, web, at))
    }

    /// Reads canonical JSON in place of keys.
    pub(super) fn read_raw(
        &mut self,
        raw: &Value<'_>,
        class: Cls,
        form: &'r KeyTree<'_>,
    ) -> Option<Draft<'r>> {
        self.check_alone(form, "raw", "represents the whole object");
        match json::read(&with_types(raw.text()), class) {
            Ok(tree) => tree.root().map(Draft::of),
            Err(mut findings) => {
                let is_open = |f: &&mut Finding| f.expected.as_deref() == Some(Cls::ANY.name());
                if let Some(finding) = findings.first_mut().filter(is_open) {
                    finding.expected = Some(String::from("`_type` of an ELEMENT or a data value"));
                }
                let reason = findings.first().map(Finding::one_line).unwrap_or_default();
                let message = format!("`|raw` is not canonical JSON of this place: {reason}");
                self.refuse_here("FLT0104", message, &[]);
                None
            }
        }
    }

    /// Reads a leaf of a primitive type. A value of another type is reported.
    pub fn read_leaf(&mut self, class: Cls, given: &'r str) -> Option<Draft<'r>> {
        let text = given.trim();
        let is_whole = |t: &str| Scanner::is_number(t) && !t.contains(['.', 'e', 'E']);
        let whole = whole(text);
        let text = match class {
            Cls::BOOLEAN if is_true(text) || text == "1" => "true",
            Cls::BOOLEAN if text.eq_ignore_ascii_case("false") || text == "0" => "false",
            Cls::BOOLEAN => return self.refuse_value("a boolean", text),
            Cls::REAL if !Scanner::is_number(text) => return self.refuse_value("a number", text),
            Cls::INTEGER | Cls::INTEGER64 if is_whole(whole) => whole,
            Cls::INTEGER | Cls::INTEGER64 => return self.refuse_value("a whole number", text),
            Cls::REAL => text,
            _ => given,
        };
        Some(Draft::Leaf(class, Cow::Borrowed(text)))
    }

    pub fn refuse_value(&mut self, expected: &str, found: &str) -> Option<Draft<'r>> {
        let found: String = found.chars().take(40).collect();
        self.refuse_here(
            "FLT0104",
            format!("expected {expected}, found `{found}`"),
            &[],
        );
        None
    }

    /// Sets the leaf at the end of a chain of attributes. The leaf is the position that all
    /// spellings of a key share, so a different value that is already there is a contradiction.
    pub fn set_leaf(&mut self, draft: &mut Draft<'r>, path: &[Attr], text: &'r str) {
        let Some((attr, rest)) = path.split_first() else {
            return;
        };
        let Some(def) = draft.class().attr(*attr) else {
            return;
        };
        if rest.is_empty() && def.ty.is_primitive() {
            let Some(leaf) = self.read_leaf(def.ty, text) else {
                return;
            };
            match (draft.get(*attr), &leaf) {
                (Some(Draft::Leaf(class, there)), Draft::Leaf(_, given)) => {
                    self.check_equal(*class, there, given)
                }
                _ => draft.put(*attr, leaf),
            }
            return;
        }
        if draft.get(*attr).is_none() {
            let class = if def.ty == Cls::UID_BASED_ID {
                uid_class(text)
            } else {
                concrete_class(def.ty)
            };
            draft.put(*attr, Draft::object(class));
        }
        if let Some(inner) = draft.get_mut(*attr) {
            self.set_leaf(inner, rest, text);
        }
    }

    /// Reports two different values that keys of one position give. Numbers are compared by value.
    pub fn check_equal(&mut self, class: Cls, there: &str, given: &str) {
        let is_number = matches!(class, Cls::REAL | Cls::INTEGER | Cls::INTEGER64);
        let number = |text: &str| number::parse(text).filter(|_| is_number);
        let is_equal = there == given
            || number(there)
                .is_some_and(|a| number(given).is_some_and(|b| a.total_cmp(&b).is_eq()));
        if !is_equal {
            let (there, given) = (shown(there), shown(given));
            let message = format!(
                "two keys of this position have different values, `{there}` and `{given}`: remove one of them"
            );
            self.refuse_here("FLT0107", message, &[]);
        }
    }

    /// Creates the object of a level: its class, node id, archetype and name.
    pub fn new_object(&mut self, step: Option<&'r Step>, class: Cls) -> Draft<'r> {
        let mut draft = Draft::object(class);
        let Some(step) = step.filter(|s| class.is_a(Cls::LOCATABLE) && !s.id.is_empty()) else {
            return draft;
        };
        draft.put(Attr::ARCHETYPE_NODE_ID, Draft::text(step.id.as_str()));
        draft.put(Attr::NAME, self.new_name(step));
        if aqlite_rm::id::is_archetype_id(&step.id) {
            draft.put(
                Attr::ARCHETYPE_DETAILS,
                Draft::holding(Cls::ARCHETYPED, Attr::RM_VERSION, "1.1.0").with(
                    Attr::ARCHETYPE_ID,
                    Draft::holding(Cls::ARCHETYPE_ID, Attr::VALUE, step.id.as_str()),
                ),
            );
        }
        draft
    }

    /// Creates the runtime name. It is coded if the template requires a code.
    pub(super) fn new_name(&self, step: &'r Step) -> Draft<'r> {
        let label = step.label.as_deref().unwrap_or(&step.id);
        match &step.name_code {
            Some(code) => Draft::holding(Cls::DV_CODED_TEXT, Attr::VALUE, label)
                .with(Attr::DEFINING_CODE, Draft::code("local", code.as_str())),
            None => Draft::holding(Cls::DV_TEXT, Attr::VALUE, label),
        }
    }
}
