//! Values that the sender stated to be absent: `|_absent`.

use super::*;

/// Returns whether the sender stated that the value is absent, although readers would complete one.
pub(super) fn is_absent(form: &KeyTree<'_>) -> bool {
    form.value_at("_absent", 0)
        .is_some_and(|value| is_true(value.text()))
}

/// Iterates over the segments of which an instance is absent, each with its node if it has one.
fn absent_segments<'r, 'f>(
    web: &'r WebNode,
    form: &'f KeyTree<'_>,
) -> impl Iterator<Item = (&'f str, Option<&'r WebNode>)> {
    form.segments()
        .filter(|(_, instances)| instances.iter().any(|part| is_absent(&part.form)))
        .map(|(segment, _)| {
            let kid = position(web, segment).and_then(|at| web.children.get(at));
            (segment, kid)
        })
}

/// The values of an object that readers may complete although the sender stated their absence.
pub(super) struct Absent<'r> {
    /// The steps from the object to nodes that were not sent.
    nodes: Vec<&'r [Step]>,
    /// Attributes that are no nodes.
    attributes: Vec<Attr>,
}

impl<'r> Absent<'r> {
    /// Finds the values in an object that has those of the sender only.
    pub(super) fn of(draft: &Draft<'_>, web: &'r WebNode, form: &KeyTree<'_>) -> Absent<'r> {
        let (mut nodes, mut attributes) = (Vec::new(), Vec::new());
        for (segment, kid) in absent_segments(web, form) {
            match kid {
                // An ELEMENT is not completed beside its key. Its steps may lead to another one.
                Some(kid) if kid.element().is_some() || is_there(draft, &kid.steps) => {}
                Some(kid) => nodes.push(kid.steps.as_slice()),
                None => {
                    let def = suffix::attribute(draft.class(), segment);
                    attributes.extend(def.map(|def| def.attr));
                }
            }
        }
        Absent { nodes, attributes }
    }

    /// Removes the values from the completed object.
    pub(super) fn remove_from(&self, draft: &mut Draft<'_>) {
        self.nodes
            .iter()
            .for_each(|steps| remove_along(draft, steps));
        self.attributes.iter().for_each(|attr| draft.remove(*attr));
    }
}

/// Returns whether an object is at the end of steps. Alternatives share the last attribute.
fn is_there(draft: &Draft<'_>, steps: &[Step]) -> bool {
    match steps {
        [] => false,
        [last] => draft.get(last.attr).is_some(),
        [step, rest @ ..] => {
            let mut members = draft.members(step.attr).iter();
            members.any(|member| is_of(member, step) && is_there(member, rest))
        }
    }
}

/// Removes the object at the end of steps. The members of a list are other objects: the reader left
/// out the absent one.
fn remove_along(draft: &mut Draft<'_>, steps: &[Step]) {
    let is_list = |attr| draft.class().attr(attr).is_some_and(|d| d.card.is_list());
    match steps {
        [] => {}
        [last] if is_list(last.attr) => {}
        [last] => draft.remove(last.attr),
        [step, rest @ ..] => {
            let members = draft.members_mut(step.attr).iter_mut();
            members
                .filter(|member| is_of(member, step))
                .for_each(|member| remove_along(member, rest));
        }
    }
}

impl<'r> DocumentReader<'r, '_> {
    /// Reports keys at an absent value or below it.
    pub(super) fn check_absent(&mut self, form: &KeyTree<'_>) {
        self.check_alone(form, "_absent", "states that there is no value");
    }

    /// Reads an attribute without a value.
    pub(super) fn read_absent_attribute(
        &mut self,
        segment: &str,
        def: &AttrDef,
        instances: &[SegmentInstance<'_>],
    ) {
        let is_list = def.card.is_list();
        if !is_list {
            self.only_instance(segment, instances);
        }
        for SegmentInstance { index, form, .. } in instances {
            let index = is_list.then_some(*index);
            self.at_segment(segment, index, |reader| reader.check_absent(form));
        }
    }

    /// Reports absent attributes that have content by keys of nodes in them: `_data|_absent` beside
    /// an event.
    pub(super) fn check_absent_attributes(
        &mut self,
        draft: &Draft<'r>,
        web: &'r WebNode,
        form: &KeyTree<'_>,
    ) {
        // Each new object has these.
        let is_new = |attr| attr == Attr::NAME || is_of_template(attr);
        for (segment, _) in absent_segments(web, form).filter(|(_, kid)| kid.is_none()) {
            let def = suffix::attribute(draft.class(), segment);
            if def.is_some_and(|def| !is_new(def.attr) && draft.get(def.attr).is_some()) {
                let message = "`|_absent` contradicts the keys that are given for content of it";
                self.at_segment(segment, None, |reader| {
                    reader.refuse_here("FLT0107", message, &[])
                });
            }
        }
    }

    /// Reports a key beside a suffix that determines the whole object, or below it.
    pub(super) fn check_alone(&mut self, form: &KeyTree<'_>, suffix: &str, effect: &str) {
        let is_other = |given: &&SuffixValue<'_>| given.suffix != suffix || given.index > 0;
        let value = form.values.iter().find(is_other);
        let value = value.map(|given| match given.suffix.as_ref() {
            "" => String::from("the main value"),
            suffix => format!("`|{}`", shown(suffix)),
        });
        let mut segments = form.segments();
        let segment = segments.find(|(name, all)| !is_transient(name) && !are_empty(all));
        let segment = || segment.map(|(name, _)| format!("`/{}`", shown(name)));
        if let Some(found) = value.or_else(segment) {
            let message = format!(
                "`|{suffix}` {effect}: no other key is allowed at it or below it, found {found}"
            );
            self.refuse_here("FLT0107", message, &[]);
        }
    }
}
