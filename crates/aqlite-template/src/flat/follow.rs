//! The INSTRUCTION of the same document that an ACTION follows, given by other means than a path.

use super::form::{KeyTree, SegmentInstance};
use super::read::DocumentReader;
use crate::draft::Draft;
use crate::web::WebNode;
use aqlite_rm::class::{Attr, Cls};
use std::collections::HashMap;
use std::rc::Rc;

/// The suffixes of INSTRUCTION_DETAILS from which the path and the id of the activity are derived.
pub(super) const FOLLOWED: [&str; 4] = [
    "wt_path",
    "instruction_uid",
    "instruction_index",
    "activity_index",
];

/// The INSTRUCTIONs of the document being read, in the order of the template.
#[derive(Default)]
pub(super) struct Instructions<'r, 'a> {
    all: Vec<Instruction<'r, 'a>>,
    /// The index of each instruction by its key without the root, with an index at every segment.
    keys: HashMap<String, usize>,
    uids: HashMap<&'r str, usize>,
}

struct Instruction<'r, 'a> {
    path: String,
    web: &'r WebNode,
    form: &'r KeyTree<'a>,
}

impl<'r, 'a> Instructions<'r, 'a> {
    /// Returns the INSTRUCTION that these references name. `None` if one of them names none, or if
    /// they name different ones. Without any reference, the first INSTRUCTION is meant.
    fn find(
        &self,
        key: Option<&str>,
        uid: Option<&str>,
        index: Option<usize>,
    ) -> Option<&Instruction<'r, 'a>> {
        let by_key = key.map(|key| self.keys.get(key).copied());
        let by_uid = uid.map(|uid| self.uids.get(uid).copied());
        let mut named = [by_key, by_uid, index.map(Some)].into_iter().flatten();
        let first = named.next().unwrap_or(Some(0))?;
        // A reference that was given but found nothing is `None` here, so that it is reported.
        let is_one = named.all(|other| other == Some(first));
        self.all.get(first).filter(|_| is_one)
    }

    fn collect(&mut self, web: &'r WebNode, form: &'r KeyTree<'a>, path: &str, key: &str) {
        for kid in web
            .children
            .iter()
            // Only content items can be an INSTRUCTION, or a SECTION with one below it.
            .filter(|kid| kid.class.is_a(Cls::CONTENT_ITEM))
        {
            let instances = form.instances(&kid.id);
            for (number, SegmentInstance { index, form, .. }) in instances.iter().enumerate() {
                let path = format!("{path}{}", path_of(kid, number, instances.len()));
                let key = format!(
                    "{key}{}{}:{index}",
                    if key.is_empty() { "" } else { "/" },
                    kid.id
                );
                if kid.class != Cls::INSTRUCTION {
                    self.collect(kid, form, &path, &key);
                    continue;
                }
                let uid = form
                    .first("_uid")
                    .and_then(|uid| uid.value(""))
                    .map(|value| value.text());
                if let Some(uid) = uid {
                    self.uids.insert(uid, self.all.len());
                }
                self.keys.insert(key, self.all.len());
                self.all.push(Instruction {
                    path,
                    web: kid,
                    form,
                });
            }
        }
    }
}

impl<'r> DocumentReader<'r, '_> {
    /// Sets the path of the instruction and the id of the activity from their suffixes.
    pub fn follow_instruction(&mut self, details: &mut Draft<'r>, form: &'r KeyTree<'_>) {
        let [key, uid, index, activity] =
            FOLLOWED.map(|name| form.value(name).map(|value| value.text()));
        let (Some(index), Some(activity)) = (self.number(index), self.number(activity)) else {
            return;
        };
        if key.is_none() && uid.is_none() && index.is_none() && activity.is_none() {
            return;
        }
        // The instructions are collected once for a document, on first use.
        let known = Rc::clone(self.instructions.get_or_insert_with(|| {
            let mut found = Instructions::default();
            found.collect(&self.web.tree, self.body, "", "");
            Rc::new(found)
        }));
        let key = key.map(|key| normalized_key(key, &self.web.tree.id));
        let Some(instruction) = known.find(key.as_deref(), uid, index) else {
            return self.refuse_here(
                "FLT0104",
                "`|wt_path`, `|instruction_uid` and `|instruction_index` mean no INSTRUCTION of this document, or not the same",
                &[],
            );
        };
        self.set_instruction_path(details, &instruction.path);
        // An activity that the client named takes precedence.
        if details.get(Attr::ACTIVITY_ID).is_none() {
            match activity_of(instruction, activity) {
                Some(id) => details.put(Attr::ACTIVITY_ID, Draft::text(id)),
                None => self.refuse_activity(instruction, activity),
            }
        }
    }

    /// Reports that no activity has the index, or that several are possible without one.
    fn refuse_activity(&mut self, instruction: &Instruction<'_, '_>, index: Option<usize>) {
        let count: usize = activities(instruction).map(|(_, count)| count).sum();
        let (code, message) = match index {
            _ if count == 0 => ("FLT0104", String::from("the INSTRUCTION has no activity")),
            Some(index) => (
                "FLT0104",
                format!(
                    "`|activity_index` is {index}, but the indexes of the activities of the INSTRUCTION end at {}",
                    count.saturating_sub(1)
                ),
            ),
            None => (
                "FLT0108",
                String::from(
                    "the activity of the INSTRUCTION is ambiguous: give `|activity_index`",
                ),
            ),
        };
        let suffix = index.map_or("", |_| "|activity_index");
        let key = format!("{}{suffix}", self.path);
        self.refuse(code, &key, message, &[]);
    }

    /// Sets the reference to an INSTRUCTION of this document, unless the client named another one.
    fn set_instruction_path(&mut self, details: &mut Draft<'r>, path: &str) {
        if details.get(Attr::INSTRUCTION_ID).is_none() {
            let own = self.body.first("_uid").and_then(|form| form.value(""));
            let Some(uid) = own else {
                return self.refuse_here(
                    "FLT0108",
                    "`|composition_uid` is missing, and the document has no `_uid` either",
                    &[],
                );
            };
            self.set_leaf(
                details,
                &[Attr::INSTRUCTION_ID, Attr::ID, Attr::VALUE],
                uid.text(),
            );
        }
        let reference = details.get_mut(Attr::INSTRUCTION_ID);
        reference
            .into_iter()
            .for_each(|reference| reference.put(Attr::PATH, Draft::text(path.to_owned())));
    }

    /// Reads an optional whole number. Returns `None` and reports the value if it is not one.
    fn number(&mut self, text: Option<&str>) -> Option<Option<usize>> {
        let Some(text) = text else { return Some(None) };
        let number = text.parse().ok();
        if number.is_none() {
            self.refuse_here(
                "FLT0104",
                "`|instruction_index` and `|activity_index` are whole numbers from 0",
                &[],
            );
        }
        number.map(Some)
    }
}

/// Returns the nodes of the activities of an instruction with the number of their instances.
fn activities<'i>(
    instruction: &'i Instruction<'_, '_>,
) -> impl Iterator<Item = (&'i WebNode, usize)> {
    let children = instruction.web.children.iter();
    let children = children.filter(|child| child.class == Cls::ACTIVITY);
    children.map(|child| (child, instruction.form.instances(&child.id).len()))
}

/// Returns the id of the activity with this index, or of the only one.
fn activity_of(instruction: &Instruction<'_, '_>, index: Option<usize>) -> Option<String> {
    let all: Vec<(&WebNode, usize)> = activities(instruction).collect();
    // Without an index, the activity must be the only one.
    let is_only = all.iter().map(|(_, count)| count).sum::<usize>() == 1;
    let mut left = index.or(is_only.then_some(0))?;
    for (kid, count) in all {
        if left < count {
            return Some(path_of(kid, left, count).trim_start_matches('/').to_owned());
        }
        left -= count;
    }
    None
}

/// Returns the path from the parent to one of several instances of a node.
fn path_of(kid: &WebNode, number: usize, count: usize) -> String {
    let steps: String = kid.steps.iter().map(|step| step.path()).collect();
    if count == 1 {
        steps
    } else {
        // Positions of RM paths count from 1.
        format!("{}, {}]", steps.trim_end_matches(']'), number + 1)
    }
}

/// Returns a key without the root, with an index at every segment.
fn normalized_key(key: &str, root: &str) -> String {
    let segments = key
        .split('/')
        // A segment without an index is the first instance.
        .map(|segment| segment.split_once(':').unwrap_or((segment, "0")));
    segments
        .skip_while(|(id, _)| *id == root)
        .map(|(id, index)| format!("{id}:{index}"))
        .collect::<Vec<_>>()
        .join("/")
}
