//! One row per LOCATABLE node: the interval of its subtree, an index by concept (archetype or node
//! id), typed leaves of elements, and the other attributes as JSON.

use super::Layout;
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json;
use aqlite::rm::tree::{Kind, NodeRef};
use rusqlite::{Connection, OptionalExtension};

/// The layout with one indexed row per node.
pub struct Nodes;

impl Layout for Nodes {
    const NAME: &'static str = "nodes";
    const SCHEMA: &'static str = "
        CREATE TABLE composition (id INTEGER PRIMARY KEY, ehr INTEGER NOT NULL, start REAL NOT NULL, time TEXT NOT NULL, template TEXT NOT NULL);
        CREATE TABLE concept (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
        CREATE TABLE node (composition INTEGER, number INTEGER, last INTEGER, parent INTEGER, class INTEGER, concept INTEGER, name TEXT,
          magnitude REAL, units TEXT, text TEXT, code TEXT, time TEXT, moment REAL, rest TEXT, PRIMARY KEY (composition, number)) WITHOUT ROWID;";
    const INDEXES: &'static str = "CREATE INDEX composition_ehr ON composition (ehr, start); CREATE INDEX node_concept ON node (concept, composition, number);";

    fn insert(connection: &Connection, ehr: i64, id: i64, json: &str) -> rusqlite::Result<()> {
        let Ok(tree) = json::read(json, Cls::COMPOSITION) else {
            return Err(rusqlite::Error::InvalidQuery);
        };
        let Some(root) = tree.root() else {
            return Err(rusqlite::Error::InvalidQuery);
        };
        let time = root
            .text_along(&[Attr::CONTEXT, Attr::START_TIME, Attr::VALUE])
            .unwrap_or_default();
        let template = root
            .text_along(&[Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE])
            .unwrap_or_default();
        connection
            .prepare_cached("INSERT INTO composition VALUES (?1, ?2, julianday(?3), ?3, ?4)")?
            .execute((id, ehr, time, template))?;
        Rows {
            connection,
            composition: id,
            next: 0,
        }
        .add(root, -1)
    }

    fn question(connection: &Connection, number: usize) -> rusqlite::Result<String> {
        let mut sql = QUESTIONS
            .get(number)
            .copied()
            .unwrap_or_default()
            .to_owned();
        for (mark, name) in CONCEPTS {
            if sql.contains(mark) {
                sql = sql.replace(mark, &concept(connection, name)?.to_string());
            }
        }
        Ok(sql)
    }
}

/// The rows of one composition.
struct Rows<'c> {
    connection: &'c Connection,
    composition: i64,
    next: i64,
}

impl Rows<'_> {
    /// Adds a node and its descendants. Their numbers are consecutive, so a subtree is an interval
    /// of numbers.
    fn add(&mut self, node: NodeRef<'_>, parent: i64) -> rusqlite::Result<()> {
        let number = self.next;
        self.next += 1;
        let mut rest = String::from("{");
        for child in node.children() {
            if is_node(child) {
                for inner in if child.kind() == Kind::List {
                    child.children().collect()
                } else {
                    vec![child]
                } {
                    self.add(inner, number)?;
                }
            } else {
                rest.push_str(if rest.len() > 1 { "," } else { "" });
                json::quote_into(&mut rest, child.attr().map_or("", Attr::name));
                rest.push(':');
                json::write_into(&mut rest, child);
            }
        }
        rest.push('}');
        self.insert(node, number, parent, &rest)
    }

    fn insert(
        &self,
        node: NodeRef<'_>,
        number: i64,
        parent: i64,
        rest: &str,
    ) -> rusqlite::Result<()> {
        let value = node.get(Attr::VALUE);
        let leaf = |attr| value.and_then(|v| v.text_at(attr));
        let time = node.text_along(&[Attr::TIME, Attr::VALUE]);
        let concept = concept(
            self.connection,
            node.text_at(Attr::ARCHETYPE_NODE_ID).unwrap_or_default(),
        )?;
        let sql = "INSERT INTO node VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, julianday(?12), ?13)";
        let code = value.and_then(|v| v.text_along(&[Attr::DEFINING_CODE, Attr::CODE_STRING]));
        let magnitude = leaf(Attr::MAGNITUDE).and_then(|m| m.parse::<f64>().ok());
        self.connection
            .prepare_cached(sql)?
            .execute(rusqlite::params![
                self.composition,
                number,
                self.next - 1,
                parent,
                node.class().number(),
                concept,
                node.text_along(&[Attr::NAME, Attr::VALUE]),
                magnitude,
                leaf(Attr::UNITS),
                leaf(Attr::VALUE),
                code,
                time,
                rest,
            ])
            .map(drop)
    }
}

fn is_node(child: NodeRef<'_>) -> bool {
    match child.kind() {
        Kind::Object => child.class().is_a(Cls::LOCATABLE),
        Kind::List => child.children().next().is_some_and(|first| {
            first.kind() == Kind::Object && first.class().is_a(Cls::LOCATABLE)
        }),
        _ => false,
    }
}

fn concept(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    let found = connection
        .prepare_cached("SELECT id FROM concept WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    match found {
        Some(id) => Ok(id),
        None => connection
            .prepare_cached("INSERT INTO concept (name) VALUES (?1)")?
            .insert([name]),
    }
}

/// The placeholders of the queries for numbers of concepts.
const CONCEPTS: [(&str, &str); 7] = [
    (":pressure", "openEHR-EHR-OBSERVATION.blood_pressure.v2"),
    (
        ":temperature",
        "openEHR-EHR-OBSERVATION.body_temperature.v2",
    ),
    (":pulse", "openEHR-EHR-OBSERVATION.pulse.v2"),
    (":at3", "at0003"),
    (":at4", "at0004"),
    (":at5", "at0005"),
    (":at6", "at0006"),
];

const QUESTIONS: [&str; 6] = [
    "SELECT v.time, s.magnitude, d.magnitude FROM ehr e CROSS JOIN composition c ON c.ehr = e.id
     CROSS JOIN node o ON o.concept = :pressure AND o.composition = c.id
     CROSS JOIN node v ON v.concept = :at6 AND v.composition = c.id AND v.number > o.number AND v.number <= o.last
     LEFT JOIN node s ON s.concept = :at4 AND s.composition = c.id AND s.number > v.number AND s.number <= v.last
     LEFT JOIN node d ON d.concept = :at5 AND d.composition = c.id AND d.number > v.number AND d.number <= v.last
     WHERE e.ehr_id = ?1 ORDER BY v.moment DESC LIMIT 1",
    "SELECT e.ehr_id, v.time, s.magnitude, d.magnitude FROM node o
     CROSS JOIN node v ON v.concept = :at6 AND v.composition = o.composition AND v.number > o.number AND v.number <= o.last
     CROSS JOIN node s ON s.concept = :at4 AND s.composition = o.composition AND s.number > v.number AND s.number <= v.last
     CROSS JOIN composition c ON c.id = o.composition CROSS JOIN ehr e ON e.id = c.ehr
     LEFT JOIN node d ON d.concept = :at5 AND d.composition = o.composition AND d.number > v.number AND d.number <= v.last
     WHERE o.concept = :pressure AND s.magnitude >= 140 AND e.queryable",
    "SELECT COUNT(*) FROM node o CROSS JOIN composition c ON c.id = o.composition CROSS JOIN ehr e ON e.id = c.ehr
     WHERE o.concept = :temperature AND e.queryable",
    "SELECT AVG(s.magnitude), MAX(s.magnitude) FROM node o
     CROSS JOIN node v ON v.concept = :at6 AND v.composition = o.composition AND v.number > o.number AND v.number <= o.last
     CROSS JOIN node s ON s.concept = :at4 AND s.composition = o.composition AND s.number > v.number AND s.number <= v.last
     CROSS JOIN composition c ON c.id = o.composition CROSS JOIN ehr e ON e.id = c.ehr
     WHERE o.concept = :pressure AND e.queryable",
    "SELECT c.time, c.template FROM ehr e CROSS JOIN composition c ON c.ehr = e.id WHERE e.ehr_id = ?1 ORDER BY c.start DESC LIMIT 20",
    "SELECT e.ehr_id, c.time, s.magnitude, r.magnitude FROM node p
     CROSS JOIN node w ON w.concept = :at3 AND w.composition = p.composition AND w.number > p.number AND w.number <= p.last
     CROSS JOIN node r ON r.concept = :at4 AND r.composition = p.composition AND r.number > w.number AND r.number <= w.last
     CROSS JOIN node o ON o.concept = :pressure AND o.composition = p.composition
     CROSS JOIN node v ON v.concept = :at6 AND v.composition = o.composition AND v.number > o.number AND v.number <= o.last
     CROSS JOIN node s ON s.concept = :at4 AND s.composition = o.composition AND s.number > v.number AND s.number <= v.last
     CROSS JOIN composition c ON c.id = o.composition CROSS JOIN ehr e ON e.id = c.ehr
     WHERE p.concept = :pulse AND r.magnitude >= 100 AND s.magnitude >= 160 AND e.queryable",
];
