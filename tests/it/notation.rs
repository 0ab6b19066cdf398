//! A readable notation for small repositories: one node per line, indented below its parent.
//!
//! ```text
//! EHR e1                                    a patient; `EHR e1 hidden` is not queryable; a second
//! `EHR e1` continues it
//! COMPOSITION[openEHR-EHR-COMPOSITION.x.v1] c        a document: CLASS[node id] name; documents
//! are o1, o2, … in order
//! OBSERVATION[openEHR-EHR-OBSERVATION.a.v1] o      at the usual attribute of its class
//! @protocol ITEM_TREE[at0010] p                  … or at the named one
//! HISTORY[at0001] h
//! POINT_EVENT[at0002] e = 2020-01-01T00:00Z    the time of an event
//! ITEM_TREE[at0003] t
//! ELEMENT[at0004] sys = 120 mm[Hg]         a value: see [`data_value`]
//! FOLDER root = o1 o2                       the items of a folder
//! NEXT o1 COMPOSITION[…] c                  the next version of the object o1
//! DELETE o1                                 its deletion
//! ```

use aqlite::document::{Batch, DocRow, EhrRow, LayoutStore, NothingKnown, ObjectKind, pack};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json;
use aqlite::rm::tree::Tree;
use std::fmt::Write;
use std::iter::Peekable;

/// EHRs in creation order, and versions in commit order.
pub struct Repository {
    pub ehrs: Vec<EhrRow>,
    pub documents: Vec<Document>,
}

/// A version of an object of an EHR, as the tree of its ORIGINAL_VERSION.
pub struct Document {
    pub ehr: usize,
    pub row: DocRow,
    pub tree: Tree,
}

impl Repository {
    /// Parses the notation.
    pub fn read(text: &str) -> Result<Repository, String> {
        let mut repository = Repository {
            ehrs: Vec::new(),
            documents: Vec::new(),
        };
        let mut lines = text
            .lines()
            .filter(|l| !l.trim().is_empty() && !l.starts_with('#'))
            .peekable();
        let mut ehr = 0;
        while let Some(line) = lines.next() {
            if let Some(id) = line.strip_prefix("EHR ") {
                ehr = repository.ehr(id.trim());
            } else if let Some(object) = line.strip_prefix("DELETE ") {
                repository.commit(ehr, Some(object.trim()), None)?;
            } else {
                let (object, line) = match line.strip_prefix("NEXT ") {
                    Some(rest) => rest
                        .split_once(' ')
                        .map(|(object, line)| (Some(object), line))
                        .ok_or("NEXT object CLASS …")?,
                    None => (None, line),
                };
                let mut node = Node::parse(line);
                node.read_children(&mut lines, 0);
                repository.commit(ehr, object, Some(&node))?;
            }
        }
        Ok(repository)
    }

    fn ehr(&mut self, line: &str) -> usize {
        let (id, is_queryable) = line
            .strip_suffix(" hidden")
            .map_or((line, true), |id| (id, false));
        if let Some(known) = self.ehrs.iter().position(|e| e.ehr_id == id) {
            return known;
        }
        let time_created = format!("2026-01-01T00:00:{:02}Z", self.ehrs.len());
        self.ehrs.push(EhrRow {
            ehr_id: id.to_owned(),
            system_id: "test".into(),
            time_created,
            is_queryable,
        });
        self.ehrs.len() - 1
    }

    fn commit(
        &mut self,
        ehr: usize,
        object: Option<&str>,
        data: Option<&Node>,
    ) -> Result<(), String> {
        let ordinal = self.documents.len() as u64 + 1;
        let object_id = object.map_or_else(|| format!("o{ordinal}"), str::to_owned);
        let before = self
            .documents
            .iter_mut()
            .rev()
            .find(|d| d.row.object_id == object_id);
        let (number, mut kind) = before.as_ref().map_or((1, ObjectKind::Composition), |d| {
            (d.row.number + 1, d.row.kind)
        });
        if let Some(before) = before {
            before.row.latest = false;
        }
        match data.map(|n| n.class) {
            Some(Cls::FOLDER) => kind = ObjectKind::Folder,
            Some(Cls::EHR_STATUS) => kind = ObjectKind::EhrStatus,
            _ => {}
        }
        let text = version(&object_id, number, ordinal, data.map(Node::json));
        let tree = json::read(&text, Cls::VERSION).map_err(|f| format!("{f:?}"))?;
        let row = DocRow {
            kind,
            object_id,
            number,
            ordinal,
            latest: true,
            deleted: data.is_none(),
        };
        self.documents.push(Document { ehr, row, tree });
        Ok(())
    }

    /// Returns the whole repository as one batch.
    pub fn batch(&self) -> Batch {
        self.batch_of(|_| true, |_| true)
    }

    /// Splits the repository into batches as a host would send them: by EHR if EHRs must be whole,
    /// else by commit.
    pub fn parts(&self, whole_ehrs: bool, count: usize) -> Vec<Batch> {
        let all = match whole_ehrs {
            true => self.ehrs.len(),
            false => self.documents.len(),
        };
        let count = count.clamp(1, all.max(1));
        // The number of documents or EHRs before a part.
        let before = |part: usize| part * all / count;
        let is_in = |part: usize, place: usize| (before(part)..before(part + 1)).contains(&place);
        let part = |part: usize| {
            self.batch_of(
                |ehr| !whole_ehrs || is_in(part, ehr),
                |document| match whole_ehrs {
                    true => is_in(part, document.ehr),
                    false => is_in(part, document.row.ordinal as usize - 1),
                },
            )
        };
        (0..count).map(part).collect()
    }

    /// Returns the selected EHRs and documents as a batch.
    pub fn batch_of(
        &self,
        ehrs: impl Fn(usize) -> bool,
        documents: impl Fn(&Document) -> bool,
    ) -> Batch {
        let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
        let numbers: Vec<Option<u32>> = self
            .ehrs
            .iter()
            .enumerate()
            .map(|(i, e)| ehrs(i).then(|| batch.add_ehr(e.clone())))
            .collect();
        for document in self.documents.iter().filter(|d| documents(d)) {
            let packed = pack(
                document.tree.root().expect("a version"),
                &NothingKnown,
                &layouts,
            );
            batch.add(
                numbers[document.ehr].expect("the EHR of a document"),
                document.row.clone(),
                &packed,
            );
        }
        batch
    }
}

/// Returns an ORIGINAL_VERSION as canonical JSON.
fn version(object: &str, number: u32, ordinal: u64, data: Option<String>) -> String {
    let coded = |value: &str, code: &str| {
        format!(
            r#"{{"value":"{value}","defining_code":{{"terminology_id":{{"value":"openehr"}},"code_string":"{code}"}}}}"#
        )
    };
    let (change, state) = match (number, &data) {
        (_, None) => (coded("deleted", "523"), coded("deleted", "523")),
        (1, _) => (coded("creation", "249"), coded("complete", "532")),
        _ => (coded("modification", "251"), coded("complete", "532")),
    };
    let before = number.checked_sub(1).filter(|before| *before > 0);
    let preceding = before
        .map(|before| format!(r#""preceding_version_uid":{{"value":"{object}::test::{before}"}},"#))
        .unwrap_or_default();
    let data = data.map(|d| format!(r#","data":{d}"#)).unwrap_or_default();
    format!(
        r#"{{"_type":"ORIGINAL_VERSION","contribution":{{"id":{{"_type":"HIER_OBJECT_ID","value":"k{ordinal}"}},"namespace":"local","type":"CONTRIBUTION"}},"commit_audit":{{"system_id":"test","committer":{{"_type":"PARTY_SELF"}},"time_committed":{{"value":"2026-01-01T{:02}:{:02}:00Z"}},"change_type":{change}}},"uid":{{"value":"{object}::test::{number}"}},{preceding}"lifecycle_state":{state}{data}}}"#,
        ordinal / 60,
        ordinal % 60,
    )
}

struct Node {
    depth: usize,
    attr: Option<Attr>,
    class: Cls,
    id: String,
    name: String,
    value: Option<String>,
    children: Vec<Node>,
}

impl Node {
    /// Parses `  @attr CLASS[id] name = value`.
    fn parse(line: &str) -> Node {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let mut rest = line.trim();
        let mut attr = None;
        if let Some(tail) = rest.strip_prefix('@') {
            let (name, tail) = tail.split_once(' ').expect("@attribute CLASS");
            attr = Some(Attr::parse(name).expect("an attribute"));
            rest = tail;
        }
        let (head, value) = rest
            .split_once(" = ")
            .map_or((rest, None), |(h, v)| (h, Some(v.to_owned())));
        let (head, name) = head.split_once(' ').unwrap_or((head, "node"));
        let (class, id) = head
            .split_once('[')
            .map_or((head, "at0000"), |(c, i)| (c, i.trim_end_matches(']')));
        let class = Cls::parse(class).unwrap_or_else(|| panic!("class {class}"));
        Node {
            depth,
            attr,
            class,
            id: id.to_owned(),
            name: name.to_owned(),
            value,
            children: Vec::new(),
        }
    }

    fn read_children<'a>(
        &mut self,
        lines: &mut Peekable<impl Iterator<Item = &'a str>>,
        depth: usize,
    ) {
        while lines.peek().is_some_and(|line| line.starts_with("  ")) {
            let mut child = Node::parse(lines.peek().expect("a line"));
            if child.depth <= depth {
                return;
            }
            lines.next();
            let below = child.depth;
            child.read_children(lines, below);
            self.children.push(child);
        }
    }

    /// Returns the attribute of the parent for a node whose line names none.
    fn usual_attr(parent: Cls, class: Cls) -> Attr {
        match parent {
            Cls::COMPOSITION if class == Cls::EVENT_CONTEXT => Attr::CONTEXT,
            Cls::COMPOSITION => Attr::CONTENT,
            Cls::HISTORY => Attr::EVENTS,
            Cls::FOLDER if class == Cls::FOLDER => Attr::FOLDERS,
            Cls::EVENT_CONTEXT => Attr::PARTICIPATIONS,
            _ if parent.is_a(Cls::EVENT) || parent.is_a(Cls::ENTRY) => Attr::DATA,
            _ => Attr::ITEMS,
        }
    }

    fn json(&self) -> String {
        if let Some(text) = self
            .value
            .as_deref()
            .filter(|v| v.starts_with('{') && self.class != Cls::ELEMENT)
        {
            return text.replacen(
                '{',
                &format!(
                    "{{\"_type\":\"{}\"{}",
                    self.class,
                    if text == "{}" { "" } else { "," }
                ),
                1,
            );
        }
        let mut out = format!("{{\"_type\":\"{}\"", self.class);
        if self.class.attr(Attr::ARCHETYPE_NODE_ID).is_some() {
            let name = if self.name.starts_with('{') {
                self.name.clone()
            } else {
                format!("{{\"value\":\"{}\"}}", self.name)
            };
            let _ = write!(
                out,
                ",\"archetype_node_id\":\"{}\",\"name\":{name}",
                self.id
            );
        }
        match (self.class, self.value.as_deref()) {
            (_, None) => {}
            (Cls::ELEMENT, Some("null")) => {
                out.push_str(r#","null_flavour":{"value":"unknown","defining_code":{"terminology_id":{"value":"openehr"},"code_string":"253"}}"#)
            }
            (Cls::ELEMENT, Some(value)) => drop(write!(out, ",\"value\":{}", data_value(value))),
            (Cls::EVENT_CONTEXT, Some(value)) => drop(write!(out, ",\"start_time\":{{\"value\":\"{value}\"}}")),
            (class, Some(value)) if class.is_a(Cls::EVENT) => drop(write!(out, ",\"time\":{{\"value\":\"{value}\"}}")),
            (Cls::FOLDER, Some(list)) => {
                let items: Vec<String> = list
                    .split_whitespace()
                    .map(|id| format!(r#"{{"id":{{"_type":"HIER_OBJECT_ID","value":"{id}"}},"namespace":"local","type":"COMPOSITION"}}"#))
                    .collect();
                let _ = write!(out, ",\"items\":[{}]", items.join(","));
            }
            (class, Some(value)) => panic!("{class} = {value}"),
        }
        let mut groups: Vec<(Attr, Vec<&Node>)> = Vec::new();
        for child in &self.children {
            let attr = child
                .attr
                .unwrap_or_else(|| Node::usual_attr(self.class, child.class));
            match groups.iter_mut().find(|(a, _)| *a == attr) {
                Some((_, nodes)) => nodes.push(child),
                None => groups.push((attr, vec![child])),
            }
        }
        for (attr, nodes) in groups {
            let is_list = self.class.attr(attr).is_some_and(|d| d.card.is_list());
            let values: Vec<String> = nodes.iter().map(|n| n.json()).collect();
            let values = values.join(",");
            let _ = if is_list {
                write!(out, ",\"{attr}\":[{values}]")
            } else {
                write!(out, ",\"{attr}\":{values}")
            };
        }
        out.push('}');
        out
    }
}

/// Parses the value of an ELEMENT, the text behind `=`: `'text'`; `120`, `120 mm[Hg]` a quantity;
/// `count 3`; `code at0005 'text'`; `boolean true`; `date 2019-05`, `time 10:30`, `datetime
/// 2019-05-01T10:30Z`, `duration PT1H`; `ordinal 2 'text'`, `scale 2.5 'text'`; `proportion 1/4`;
/// `null` for a null flavour without a value; or JSON.
pub fn data_value(text: &str) -> String {
    let quoted = |text: &str| text.trim_matches('\'').to_owned();
    let coded = |code: &str, text: &str| {
        format!(
            r#"{{"_type":"DV_CODED_TEXT","value":"{}","defining_code":{{"terminology_id":{{"value":"local"}},"code_string":"{code}"}}}}"#,
            quoted(text)
        )
    };
    if text.starts_with('{') {
        return text.to_owned();
    }
    if text.starts_with('\'') {
        return format!(r#"{{"_type":"DV_TEXT","value":"{}"}}"#, quoted(text));
    }
    let (word, rest) = text.split_once(' ').unwrap_or((text, "1"));
    let simple = |class: &str| format!(r#"{{"_type":"{class}","value":"{rest}"}}"#);
    match word {
        "count" => format!(r#"{{"_type":"DV_COUNT","magnitude":{rest}}}"#),
        "boolean" => format!(r#"{{"_type":"DV_BOOLEAN","value":{rest}}}"#),
        "date" => simple("DV_DATE"),
        "time" => simple("DV_TIME"),
        "datetime" => simple("DV_DATE_TIME"),
        "duration" => simple("DV_DURATION"),
        "code" => rest
            .split_once(' ')
            .map_or_else(|| coded(rest, rest), |(code, text)| coded(code, text)),
        "ordinal" | "scale" => {
            let (value, symbol) = rest.split_once(' ').expect("a number and a symbol");
            let class = if word == "scale" {
                "DV_SCALE"
            } else {
                "DV_ORDINAL"
            };
            format!(
                r#"{{"_type":"{class}","value":{value},"symbol":{}}}"#,
                coded("at9", symbol)
            )
        }
        "proportion" => {
            let (numerator, denominator) = rest.split_once('/').expect("n/d");
            format!(
                r#"{{"_type":"DV_PROPORTION","numerator":{numerator},"denominator":{denominator},"type":0}}"#
            )
        }
        number => format!(r#"{{"_type":"DV_QUANTITY","magnitude":{number},"units":"{rest}"}}"#),
    }
}
