//! Flat tables of a template, as AQL queries.
//!
//! The root table has a row for each composition, and a column for each leaf that occurs once. Each
//! node that may be repeated has a table of its own, with a row for each of its objects. The paths
//! of a query share the nodes along their common steps, so the columns of a row belong to one
//! object. All tables have the keys `ehr_id` and `composition_uid`. A table inside a repeated node
//! also has the name of that node's object and, for events, its time.

use aqlite::aql;
use aqlite::document::short_digest;
use aqlite::rm::class::Cls;
use aqlite::template::web::Step;
use aqlite::template::{Template, WebNode, WebTemplate};
use std::collections::HashSet;
use std::fmt::Write;

/// The most columns of leaves of a query. The engine has at most 256 paths.
const COLUMNS: usize = 200;

/// The most node predicates of the columns of a query, those with a name counted three times. A
/// query has at most 1,000 conditions.
const CONDITIONS: usize = 800;

/// The leaves that every composition has, or may have, also if its template does not mention them.
const ALWAYS: [(&str, &str); 8] = [
    ("start_time", "/context/start_time/value"),
    ("end_time", "/context/end_time/value"),
    ("location", "/context/location"),
    ("setting", "/context/setting"),
    ("category", "/category"),
    ("language", "/language"),
    ("territory", "/territory"),
    ("composer", "/composer"),
];

/// The most characters of the name of a column, and of that of a table without its digest.
const NAME: usize = 60;

/// The digits of the digest in the name of a table.
const DIGEST: usize = 8;

/// A query that returns the rows of one table.
pub struct View {
    /// The name of the table.
    pub name: String,
    /// The condition that selects the root: the template.
    pub template_id: String,
    /// The archetype of the composition; empty if the template has none.
    archetype: String,
    /// The path of the repeated node below the composition; empty for the root table.
    path: String,
    keys: Vec<Column>,
    columns: Vec<Column>,
}

/// Returns the condition of a query that selects the compositions of a template.
pub fn condition_of(template_id: &str) -> String {
    format!(
        "c/archetype_details/template_id/value = {}",
        quoted(template_id)
    )
}

/// A column of a view.
#[derive(Clone)]
struct Column {
    alias: String,
    /// The path with its variable.
    path: String,
}

impl View {
    /// Returns the text of the query.
    pub fn aql(&self) -> String {
        let all = self.keys.iter().chain(&self.columns);
        let columns: Vec<String> = all
            .map(|column| format!("  {} AS {}", column.path, column.alias))
            .collect();
        let archetype = match self.archetype.as_str() {
            "" => String::new(),
            id => format!("[{id}]"),
        };
        let mut out = format!(
            "SELECT\n{}\nFROM EHR e CONTAINS COMPOSITION c{archetype}\nWHERE {}",
            columns.join(",\n"),
            condition_of(&self.template_id)
        );
        if !self.path.is_empty() {
            let _ = write!(out, "\n  AND EXISTS c{}", self.path);
        }
        out.push('\n');
        out
    }
}

/// Returns a text as a literal of AQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Returns the views of a template, the root table first.
pub fn views(template: &Template, web: &WebTemplate) -> Vec<View> {
    let mut builder = Builder {
        template_id: &template.template_id,
        archetype: template.definition.id().to_owned(),
        tables: Vec::new(),
        names: HashSet::new(),
    };
    let keys = vec![
        Key::new("ehr_id", "e/ehr_id/value"),
        Key::new("composition_uid", "c/uid/value"),
    ];
    let root = builder.add_table(&template.template_id, String::new(), keys);
    builder.walk(&web.tree, root, "", &[]);
    for (name, path) in ALWAYS {
        builder.add_leaf(root, &[name], path);
    }
    let tables = std::mem::take(&mut builder.tables);
    tables
        .into_iter()
        .flat_map(|table| builder.split(table))
        .collect()
}

/// A column that all tables below a repeated node have.
#[derive(Clone)]
struct Key {
    name: String,
    path: String,
}

impl Key {
    fn new(name: &str, path: &str) -> Key {
        Key {
            name: name.to_owned(),
            path: path.to_owned(),
        }
    }
}

/// A table under construction.
struct Table {
    /// The id of the template and of all nodes above, from which the name is made.
    full_name: String,
    name: String,
    path: String,
    keys: Vec<Key>,
    /// Names and paths of leaves.
    leaves: Vec<Key>,
}

struct Builder<'t> {
    template_id: &'t str,
    archetype: String,
    tables: Vec<Table>,
    /// The names of tables.
    names: HashSet<String>,
}

impl Builder<'_> {
    /// Adds a table, and returns its number.
    fn add_table(&mut self, full_name: &str, path: String, keys: Vec<Key>) -> usize {
        let name = unique(&table_name(full_name), &mut self.names);
        self.tables.push(Table {
            full_name: full_name.to_owned(),
            name,
            path,
            keys,
            leaves: Vec::new(),
        });
        self.tables.len() - 1
    }

    /// Adds the leaves below a node to a table, and tables for its repeated nodes. `names` are the
    /// ids of the nodes between the root of the table and the node.
    fn walk(&mut self, node: &WebNode, table: usize, base: &str, names: &[&str]) {
        for child in &node.children {
            let steps = (1..=child.steps.len()).filter_map(|count| child.steps.get(..count));
            let path = steps.map(|steps| step_path(node, steps));
            let path = format!("{base}{}", path.collect::<String>());
            let names = [names, &[child.id.as_str()]].concat();
            if child.class == Cls::ISM_TRANSITION {
                self.add_transition(table, &names, &path);
                continue;
            }
            let is_leaf = child.class.is_a(Cls::DATA_VALUE) || child.children.is_empty();
            if !is_repeated(child) {
                match is_leaf {
                    true => self.add_leaf(table, &names, &value_path(child, &path)),
                    false => self.walk(child, table, &path, &names),
                }
                continue;
            }
            let inner = self.add_repeated(child, table, &path, &names);
            match is_leaf {
                true => self.add_leaf(inner, &[child.id.as_str()], &value_path(child, &path)),
                false => self.walk(child, inner, &path, &[]),
            }
        }
    }

    /// Adds the table of a repeated node.
    fn add_repeated(&mut self, node: &WebNode, table: usize, path: &str, names: &[&str]) -> usize {
        // The inner table inherits the keys of the outer one, so that the two can be joined.
        let (outer, mut keys) = match self.tables.get(table) {
            Some(outer) => (outer.full_name.clone(), outer.keys.clone()),
            None => (String::new(), Vec::new()),
        };
        let object = object_path(node, path);
        let name = names.join("_");
        if node
            .named_step()
            .is_some_and(|step| step.class.is_a(Cls::LOCATABLE))
        {
            keys.push(Key::new(
                &format!("{name}_name"),
                &format!("c{object}/name/value"),
            ));
        }
        if node.class.is_a(Cls::EVENT) {
            keys.push(Key::new(
                &format!("{name}_at"),
                &format!("c{object}/time/value"),
            ));
        }
        self.add_table(&format!("{outer}_{name}"), object, keys)
    }

    /// Adds the attributes of the ISM_TRANSITION of an ACTION, which templates constrain as
    /// alternatives.
    fn add_transition(&mut self, table: usize, names: &[&str], path: &str) {
        for attribute in ["current_state", "transition", "careflow_step"] {
            let names = [names, &[attribute]].concat();
            self.add_leaf(table, &names, &format!("{path}/{attribute}"));
        }
    }

    fn add_leaf(&mut self, table: usize, names: &[&str], path: &str) {
        let path = format!("c{path}");
        let Some(table) = self.tables.get_mut(table) else {
            return;
        };
        // Alternatives of one value have one path.
        if !table.leaves.iter().any(|leaf| leaf.path == path) {
            table.leaves.push(Key::new(&names.join("_"), &path));
        }
    }

    /// Returns the views of a table: several if it has more columns than a query.
    fn split(&mut self, table: Table) -> Vec<View> {
        let parts: Vec<&[Key]> = match table.leaves.is_empty() {
            true => vec![&[]],
            false => parts_of(&table.leaves),
        };
        let mut views = Vec::with_capacity(parts.len());
        for (number, part) in parts.into_iter().enumerate() {
            let mut aliases = HashSet::new();
            let mut column = |key: &Key| Column {
                alias: unique(&alias(&key.name), &mut aliases),
                path: key.path.clone(),
            };
            let name = match number {
                0 => table.name.clone(),
                _ => unique(&table.name, &mut self.names),
            };
            views.push(View {
                name,
                template_id: self.template_id.to_owned(),
                archetype: self.archetype.clone(),
                path: table.path.clone(),
                keys: table.keys.iter().map(&mut column).collect(),
                columns: part.iter().map(&mut column).collect(),
            });
        }
        views
    }
}

/// Divides leaves into the parts that a query may have.
fn parts_of(mut leaves: &[Key]) -> Vec<&[Key]> {
    let mut parts = Vec::new();
    while !leaves.is_empty() {
        let mut conditions = 0;
        let fits = |leaf: &&Key| {
            // A name is enclosed by two quotes, so a predicate with a name counts three times, as one
            // with a regular expression does.
            conditions += leaf.path.matches(['[', '\'']).count();
            conditions += 2 * leaf.path.matches("{/").count();
            conditions <= CONDITIONS
        };
        // At least one leaf, so that the loop ends even if a single path exceeds the limit.
        let count = leaves.iter().take(COLUMNS).take_while(fits).count().max(1);
        let (part, rest) = leaves.split_at(count.min(leaves.len()));
        parts.push(part);
        leaves = rest;
    }
    parts
}

/// Returns the path of the last of some steps from a node to one of its children. Only a LOCATABLE
/// has a node id, whatever the template constrains.
fn step_path(node: &WebNode, steps: &[Step]) -> String {
    let Some((step, above)) = steps.split_last() else {
        return String::new();
    };
    if !step.class.is_a(Cls::LOCATABLE) {
        return format!("/{}", step.attr);
    }
    let Some(name) = step.constrained_name() else {
        return step.path();
    };
    let (attribute, id) = (step.attr, step.id.as_str());
    let has_one_name = step.occurrences.upper == Some(1) && step.names.len() < 2;
    match (id, has_one_name) {
        ("", _) => format!("/{attribute}"),
        (_, true) => format!("/{attribute}[{id},{}]", quoted(name)),
        // Without another constraint on this node id, it has all objects with the node id.
        _ if !has_rival(node, step, above) => format!("/{attribute}[{id}]"),
        _ => format!(
            "/{attribute}[{id} and name/value matches {{/{}/}}]",
            pattern_of(step, name)
        ),
    }
}

/// Returns whether a step has a sibling with the same node id and another name. `above` are the steps
/// from the node to its parent.
fn has_rival(node: &WebNode, step: &Step, above: &[Step]) -> bool {
    let is_rival = |child: &WebNode| {
        let parents = child.steps.get(..above.len());
        parents.is_some_and(|parents| parents.iter().zip(above).all(|(a, b)| is_same(a, b)))
            && child.steps.get(above.len()).is_some_and(|other| {
                other.attr == step.attr && other.id == step.id && !is_same(other, step)
            })
    };
    node.children.iter().any(is_rival)
}

/// Returns whether two steps of the children of a node are one constraint.
fn is_same(one: &Step, other: &Step) -> bool {
    (one.attr, &one.id, &one.label) == (other.attr, &other.id, &other.label)
        && (&one.names, &one.name_code) == (&other.names, &other.name_code)
}

/// Returns the regular expression of the names of an object. A name behind the first one may have a
/// number, by which servers distinguish repeated siblings: `Lesion #2`.
fn pattern_of(step: &Step, name: &str) -> String {
    let names = match step.names.is_empty() {
        true => vec![escaped(name)],
        false => step.names.iter().map(|name| escaped(name)).collect(),
    };
    format!("^({})( #[0-9]+)?$", names.join("|"))
}

/// Returns a text as a regular expression of AQL that matches this text only.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '_' | '-' | ',' | '\'' | '"' | ';' | ':' | '#')
        {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns whether several objects of a node, or of a level above it that is no node, may be in one
/// parent.
fn is_repeated(node: &WebNode) -> bool {
    node.is_repeated()
        || node
            .steps
            .iter()
            .any(|step| step.occurrences.upper != Some(1))
}

/// Returns the path of a leaf. Values of classes with one main attribute are columns of numbers,
/// times and truth values; all others are objects, which keep their codes and units.
fn value_path(node: &WebNode, path: &str) -> String {
    let attribute = match node.class {
        // Another class of value may be in its place.
        _ if node.alias.is_some() || node.has_other => "",
        Cls::DV_COUNT => "/magnitude",
        Cls::DV_BOOLEAN | Cls::DV_DATE_TIME | Cls::DV_DATE | Cls::DV_TIME | Cls::DV_DURATION => {
            "/value"
        }
        _ => "",
    };
    format!("{path}{attribute}")
}

/// Returns the path of the object of a node: of a value that is the only one of an ELEMENT, that of
/// the ELEMENT.
fn object_path(node: &WebNode, path: &str) -> String {
    let value = node.element().and(node.last_step());
    // A value is no LOCATABLE, so its step has no predicate.
    let end = value.map_or_else(String::new, |step| format!("/{}", step.attr));
    path.strip_suffix(&end).unwrap_or(path).to_owned()
}

/// Returns the name of a table. A long name loses its beginning, which has the template. A digest of
/// the whole name therefore distinguishes the tables of several templates.
fn table_name(full_name: &str) -> String {
    let whole = letters(full_name);
    let name = shortened(whole.clone());
    if name == whole {
        return name;
    }
    format!("{name}_{}", digest_of(full_name))
}

/// Returns the digits that distinguish names.
pub fn digest_of(full_name: &str) -> String {
    let mut digest = short_digest(full_name);
    digest.truncate(DIGEST);
    digest
}

/// Returns a name of letters, digits and underscores that begins with a letter.
fn plain(name: &str) -> String {
    shortened(letters(name))
}

/// Returns a name of letters, digits and underscores that begins with a letter, of any length.
fn letters(name: &str) -> String {
    let one = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    let all: String = name.chars().map(one).collect();
    let parts: Vec<&str> = all.split('_').filter(|part| !part.is_empty()).collect();
    let mut name = parts.join("_");
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "n_");
    }
    name
}

/// Returns the end of a long name, which distinguishes it. It begins with a whole word.
fn shortened(mut name: String) -> String {
    if name.len() > NAME {
        let end = name.split_off(name.len() - NAME);
        let words = end.split_once('_').map_or(end.as_str(), |(_, words)| words);
        let begin = words.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        name = words.get(begin..).unwrap_or_default().to_owned();
    }
    name
}

/// Returns a plain name that is no keyword of AQL.
fn alias(name: &str) -> String {
    let name = plain(name);
    let text = format!("SELECT c AS {name} FROM COMPOSITION c");
    match aql::parse(&text).0 {
        Some(_) => name,
        None => format!("{name}_"),
    }
}

/// Returns a name that is not taken, with a number behind it if it is, and takes it.
fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
    let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
    let free = candidates.find(|candidate| !taken.contains(candidate));
    let free = free.unwrap_or_default();
    taken.insert(free.clone());
    free
}
