//! Which INSTRUCTION of the same document an ACTION follows, where that is told by other means than paths.

use super::form::{Form, Part};
use super::read::{Reader, attr_of};
use crate::rm::class::{Attr, Cls};
use crate::template::draft::Draft;
use crate::template::web::WebNode;

/// Suffixes of INSTRUCTION_DETAILS from which the path and the id of the activity follow.
pub(super) const FOLLOWED: [&str; 4] = ["wt_path", "instruction_uid", "instruction_index", "activity_index"];

/// An object of the document being read: the path of the Reference Model, its key behind the root, what stands there.
struct Meant<'r, 'a> {
    path: String,
    key: String,
    web: &'r WebNode,
    form: &'r Form<'a>,
}

impl<'r, 'a> Reader<'r, 'a> {
    /// The path of the instruction and the id of the activity, from the suffixes that stand for them.
    pub fn follow(&mut self, details: &mut Draft<'r>, form: &'r Form<'_>) {
        let [key, uid, index, activity] = FOLLOWED.map(|name| form.value(name).map(|value| value.text()));
        if [key, uid, index, activity].iter().all(Option::is_none) {
            return;
        }
        let (Some(index), Some(activity)) = (self.number(index), self.number(activity)) else { return };
        let mut all = Vec::new();
        below(&self.web.tree, self.body, "", "", &mut all);
        all.retain(|meant| meant.web.class == Cls::INSTRUCTION);
        all.retain(|meant| key.is_none_or(|key| plain(key, &self.web.tree.id) == meant.key));
        all.retain(|meant| uid.is_none_or(|uid| meant.form.first("_uid").and_then(|f| f.value("")).is_some_and(|v| v.text() == uid)));
        let Some(instruction) = all.into_iter().nth(index.unwrap_or_default()) else {
            return self.refuse_here(
                "FLT0104",
                "no INSTRUCTION of this document is meant by `|wt_path`, `|instruction_uid` or `|instruction_index`",
                &[],
            );
        };
        let mut activities = Vec::new();
        below(instruction.web, instruction.form, "", "", &mut activities);
        activities.retain(|meant| meant.web.class == Cls::ACTIVITY);
        let count = activities.len();
        match (details.get(Attr::ACTIVITY_ID).is_some(), activities.into_iter().nth(activity.unwrap_or_default())) {
            (false, Some(meant)) if activity.is_some() || count == 1 => {
                details.put(Attr::ACTIVITY_ID, Draft::text(meant.path.trim_start_matches('/').to_owned()));
            }
            (false, _) => self.refuse_here("FLT0108", format!("which of the {count} activities is meant must be told by `|activity_index`"), &[]),
            (true, _) => {}
        }
        self.point(details, instruction.path);
    }

    fn point(&mut self, details: &mut Draft<'r>, path: String) {
        if details.get(Attr::INSTRUCTION_ID).is_none() {
            let own = self.body.first("_uid").and_then(|form| form.value(""));
            let Some(uid) = own else {
                return self.refuse_here("FLT0108", "`|composition_uid` is missing, and the document has no `_uid` either", &[]);
            };
            self.set(details, &[Attr::INSTRUCTION_ID, Attr::ID, Attr::VALUE], uid.text());
        }
        let reference = details.get_mut(Attr::INSTRUCTION_ID);
        reference.into_iter().for_each(|reference| reference.put(Attr::PATH, Draft::text(path.clone())));
    }

    /// A whole number, where one is given; nothing where it is none, which is reported.
    fn number(&mut self, text: Option<&str>) -> Option<Option<usize>> {
        let Some(text) = text else { return Some(None) };
        let number = text.parse().ok();
        if number.is_none() {
            self.refuse_here("FLT0104", "`|instruction_index` and `|activity_index` are whole numbers from 0", &[]);
        }
        number.map(Some)
    }
}

/// Every object below a node that has nodes of its own, in the order of the template.
fn below<'r, 'a>(web: &'r WebNode, form: &'r Form<'a>, path: &str, key: &str, found: &mut Vec<Meant<'r, 'a>>) {
    for kid in web.children.iter().filter(|kid| kid.class.is_a(Cls::PATHABLE) && kid.element().is_none() && attr_of(kid) != Attr::CONTEXT) {
        let instances = form.instances(&kid.id);
        let steps: String = kid.steps.iter().map(|step| step.path()).collect();
        for (number, Part { index, form, .. }) in instances.iter().enumerate() {
            let path = match instances.len() {
                1 => format!("{path}{steps}"),
                _ => format!("{path}{}, {}]", steps.trim_end_matches(']'), number + 1),
            };
            let key = format!("{key}{}{}:{index}", if key.is_empty() { "" } else { "/" }, kid.id);
            below(kid, form, &path, &key, found);
            found.push(Meant { path, key, web: kid, form });
        }
    }
}

/// A key without the root, every segment with its index.
fn plain(key: &str, root: &str) -> String {
    let segments = key.split('/').map(|segment| segment.split_once(':').unwrap_or((segment, "0")));
    segments.skip_while(|(id, _)| *id == root).map(|(id, index)| format!("{id}:{index}")).collect::<Vec<_>>().join("/")
}
