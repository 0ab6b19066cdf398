//! Authored AQL cases: small documents, a query, the rows it gives.
//!
//! A file of `tests/cases/rows` holds data sets (`=== data NAME`) and cases (`=== TITLE`: which data, the query, the
//! rows). Data is written as one node a line, indented below its parent: `CLASS[node_id] name = value`; `EHR` starts a
//! patient, `@` in front of a line gives an attribute other than the usual one. Rows are written as JSON arrays, one a
//! line, in order; `unordered` behind the title compares them as a multiset.

use aqlite::aql::{Budget, Parameters, QueryOptions, Run, prepare};
use aqlite::document::{Batch, DocRow, EhrRow, NothingKnown, ObjectKind, Shapes, pack};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json;
use std::collections::HashMap;
use std::fmt::Write;

#[test]
fn authored_rows() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/rows");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        for case in read(&text) {
            count += 1;
            if let Err(message) = case.check() {
                wrong.push(format!("{file}: {}\n{message}", case.title));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 0);
}

struct Case {
    title: String,
    data: String,
    query: String,
    expected: Vec<String>,
    unordered: bool,
}

impl Case {
    fn check(&self) -> Result<(), String> {
        let batch = load(&self.data)?;
        let plain = run(&self.query, &batch, true)?;
        let mut found = run(&self.query, &batch, false)?;
        if found != plain {
            return Err(format!("  {}\n  plain {plain:#?}\n  optimised {found:#?}", self.query));
        }
        let mut expected = self.expected.clone();
        if self.unordered {
            found.sort();
            expected.sort();
        }
        if found == expected { Ok(()) } else { Err(format!("  {}\n  expected {expected:#?}\n  found {found:#?}", self.query)) }
    }
}

fn run(query: &str, batch: &Batch, plain: bool) -> Result<Vec<String>, String> {
    let told = |problems: Vec<aqlite::diag::Diagnostic>| problems.iter().map(|d| d.one_line(query)).collect::<Vec<_>>().join("\n");
    let plan = prepare(query, &Parameters::new(), &QueryOptions::default()).map_err(told)?;
    let go_on = || false;
    let mut run = Run::new(&plan, "2026-01-02T03:04:05.678Z", Budget { plain, ..Budget::default() }, &go_on);
    run.push(batch);
    let result = run.finish().map_err(|e| e.to_string())?;
    Ok(result.rows.iter().map(|row| {
        let cells: Vec<String> = row.iter().map(|cell| {
            let mut out = String::new();
            cell.write_json(&mut out);
            out
        }).collect();
        format!("[{}]", cells.join(", "))
    }).collect())
}

fn read(text: &str) -> Vec<Case> {
    let mut data: HashMap<String, String> = HashMap::new();
    let mut cases = Vec::new();
    for block in text.split("=== ").skip(1) {
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        if let Some(name) = head.strip_prefix("data ") {
            data.insert(name.trim().to_owned(), body.to_owned());
            continue;
        }
        let mut lines = body.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#'));
        let of = lines.next().and_then(|l| l.strip_prefix("data: ")).expect("a case starts with `data: NAME`");
        let rest: Vec<&str> = lines.collect();
        let query = rest.iter().take_while(|l| !l.starts_with("----")).copied().collect::<Vec<_>>().join("\n");
        let expected = rest.iter().skip_while(|l| !l.starts_with("----")).skip(1).map(|l| (*l).to_owned()).collect();
        let title = head.trim().to_owned();
        let unordered = title.ends_with("unordered");
        cases.push(Case { title, data: data[of.trim()].clone(), query, expected, unordered });
    }
    cases
}

/// Builds a batch from the notation.
fn load(text: &str) -> Result<Batch, String> {
    let (mut batch, shapes) = (Batch::new(), Shapes::new());
    let mut lines = text.lines().filter(|l| !l.trim().is_empty()).peekable();
    let mut ehr = 0;
    let mut ordinal = 0u64;
    while let Some(line) = lines.next() {
        if let Some(id) = line.strip_prefix("EHR ") {
            ehr = batch.add_ehr(EhrRow { ehr_id: id.trim().to_owned(), system_id: "test".into(), time_created: "2026-01-01T00:00:00Z".into(), is_queryable: true });
            continue;
        }
        let mut node = Node::parse(line);
        node.read_children(&mut lines, 0);
        ordinal += 1;
        let kind = match node.class {
            Cls::FOLDER => ObjectKind::Folder,
            Cls::EHR_STATUS => ObjectKind::EhrStatus,
            _ => ObjectKind::Composition,
        };
        let object = format!("o{ordinal}");
        let text = format!(
            r#"{{"_type":"ORIGINAL_VERSION","contribution":{{"id":{{"_type":"HIER_OBJECT_ID","value":"k"}},"namespace":"local","type":"CONTRIBUTION"}},"commit_audit":{{"system_id":"test","committer":{{"_type":"PARTY_SELF"}},"time_committed":{{"value":"2026-01-01T00:00:00Z"}},"change_type":{{"value":"creation","defining_code":{{"terminology_id":{{"value":"openehr"}},"code_string":"249"}}}}}},"uid":{{"value":"{object}::test::1"}},"lifecycle_state":{{"value":"complete","defining_code":{{"terminology_id":{{"value":"openehr"}},"code_string":"532"}}}},"data":{}}}"#,
            node.json()
        );
        let tree = json::read(&text, Cls::VERSION).map_err(|f| format!("{f:?}"))?;
        let packed = pack(tree.root().ok_or("empty")?, &NothingKnown, &shapes);
        let row = DocRow { kind, object_id: object, number: 1, ordinal, latest: true, deleted: false };
        batch.add(ehr, row, &packed);
    }
    Ok(batch)
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
    /// `  @attr CLASS[id] name = value`.
    fn parse(line: &str) -> Node {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let mut rest = line.trim();
        let mut attr = None;
        if let Some(tail) = rest.strip_prefix('@') {
            let (name, tail) = tail.split_once(' ').expect("@attribute CLASS");
            attr = Some(Attr::parse(name).expect("an attribute"));
            rest = tail;
        }
        let (head, value) = rest.split_once(" = ").map_or((rest, None), |(h, v)| (h, Some(v.to_owned())));
        let (head, name) = head.split_once(' ').unwrap_or((head, "node"));
        let (class, id) = head.split_once('[').map_or((head, "at0000"), |(c, i)| (c, i.trim_end_matches(']')));
        let class = Cls::parse(class).unwrap_or_else(|| panic!("class {class}"));
        Node { depth, attr, class, id: id.to_owned(), name: name.to_owned(), value, children: Vec::new() }
    }

    fn read_children<'a>(&mut self, lines: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>, depth: usize) {
        while let Some(line) = lines.peek() {
            let mut child = Node::parse_or_stop(line);
            match &mut child {
                Some(child) if child.depth > depth => {
                    lines.next();
                    let below = child.depth;
                    child.read_children(lines, below);
                }
                _ => return,
            }
            self.children.extend(child);
        }
    }

    fn parse_or_stop(line: &str) -> Option<Node> {
        (!line.starts_with("EHR ")).then(|| Node::parse(line))
    }

    /// The attribute of the parent at which a node stands when the line does not say it.
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
        if let Some(text) = self.value.as_deref().filter(|v| v.starts_with('{')) {
            return text.replacen('{', &format!("{{\"_type\":\"{}\"{}", self.class, if text == "{}" { "" } else { "," }), 1);
        }
        let mut out = format!("{{\"_type\":\"{}\"", self.class);
        if self.class.attr(Attr::ARCHETYPE_NODE_ID).is_some() {
            let _ = write!(out, ",\"archetype_node_id\":\"{}\",\"name\":{{\"value\":\"{}\"}}", self.id, self.name);
        }
        match (self.class, self.value.as_deref()) {
            (_, None) => {}
            (Cls::ELEMENT, Some(value)) => drop(write!(out, ",\"value\":{}", data_value(value))),
            (class, Some(value)) if class.is_a(Cls::EVENT) => drop(write!(out, ",\"time\":{{\"value\":\"{value}\"}}")),
            (Cls::FOLDER, Some(list)) => {
                let items: Vec<String> = list.split_whitespace().map(|id| format!(r#"{{"id":{{"_type":"HIER_OBJECT_ID","value":"{id}"}},"namespace":"local","type":"COMPOSITION"}}"#)).collect();
                let _ = write!(out, ",\"items\":[{}]", items.join(","));
            }
            (class, Some(value)) => panic!("{class} = {value}"),
        }
        let mut groups: Vec<(Attr, Vec<&Node>)> = Vec::new();
        for child in &self.children {
            let attr = child.attr.unwrap_or_else(|| Node::usual_attr(self.class, child.class));
            match groups.iter_mut().find(|(a, _)| *a == attr) {
                Some((_, nodes)) => nodes.push(child),
                None => groups.push((attr, vec![child])),
            }
        }
        for (attr, nodes) in groups {
            let is_list = self.class.attr(attr).is_some_and(|d| d.card.is_list());
            let values: Vec<String> = nodes.iter().map(|n| n.json()).collect();
            let values = values.join(",");
            let _ = if is_list { write!(out, ",\"{attr}\":[{values}]") } else { write!(out, ",\"{attr}\":{values}") };
        }
        out.push('}');
        out
    }
}

/// `'text'`, `120`, `2 h` … as a DV_TEXT, DV_QUANTITY, or what a JSON object says.
fn data_value(text: &str) -> String {
    match text.strip_prefix('\'') {
        Some(quoted) => format!(r#"{{"_type":"DV_TEXT","value":"{}"}}"#, quoted.trim_end_matches('\'')),
        None if text.starts_with('{') => text.to_owned(),
        None => format!(r#"{{"_type":"DV_QUANTITY","magnitude":{text},"units":"1"}}"#),
    }
}
