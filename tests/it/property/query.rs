//! Random queries that fit the random repositories, as parts that can be removed.

mod classes;
mod draft;
mod features;

use super::random::Random;
use aqlite::aql::query::{AggregateFunction, Function, ValueType};
use aqlite::aql::{Parameter, Parameters};
use classes::{LEAF, NODE, is_node, ways};
pub use draft::{Condition, Draft, From};
pub use features::features;

/// A path under construction: the text of each step, and the class behind it.
#[derive(Clone)]
struct Path {
    variable: String,
    steps: Vec<(String, &'static str)>,
}

const VALUE_SETS: [&str; 3] = [
    "{terminology://openehr/composition_category}",
    "TERMINOLOGY('expand', 'openehr', 'group=null flavours')",
    "{terminology://openehr/null_flavours, 'at0005'}",
];
const VERSION_PREDICATES: [&str; 4] = [
    "[lifecycle_state/value != 'deleted']",
    "[commit_audit/time_committed/value > '2026-01-01T00:03:00Z']",
    "[uid/value = 'o1::test::1']",
    "[contribution/id/value = 'k2']",
];

pub fn draft(random: &mut Random) -> Draft {
    let mut writer = Writer {
        random,
        variables: Vec::new(),
        bound: Vec::new(),
        paths: Vec::new(),
        parameters: Parameters::new(),
    };
    let from = writer.from();
    let grouped = writer.random.percent(20);
    let mut select: Vec<String> = (0..1 + writer.random.pick(&[0, 0, 1, 1, 2, 3]))
        .map(|_| writer.column(grouped))
        .collect();
    if grouped {
        select.push(writer.aggregate());
    }
    let condition = writer.random.percent(40).then(|| writer.condition(2));
    let aliased: Vec<String> = select
        .iter()
        .enumerate()
        .map(|(i, column)| format!("{column} AS k{i}"))
        .collect();
    let mut order = Vec::new();
    for _ in 0..writer.random.pick(&[0, 0, 0, 1, 2]) {
        let alias = format!("k{}", writer.random.below(select.len()));
        let key = match writer.random.below(9) {
            0..=2 => alias,
            3 => alias + writer.random.pick(&["/value", "/magnitude", "/name/value"]),
            _ if grouped => alias,
            _ => writer.path(),
        };
        order.push(format!(
            "{key}{}",
            writer.random.pick(&["", " DESC", " ASC"])
        ));
    }
    let (mut top, mut limit) = (None, None);
    match writer.random.below(8) {
        0 => {
            limit = Some(format!(
                "LIMIT {}{}",
                1 + writer.random.below(4),
                writer.random.pick(&["", " OFFSET 1", " OFFSET 2"])
            ))
        }
        1 => {
            top = Some(format!(
                "TOP {}{}",
                1 + writer.random.below(3),
                writer.random.pick(&["", " FORWARD", " BACKWARD"])
            ))
        }
        _ => {}
    }
    let distinct = writer.random.percent(20);
    Draft {
        parameters: writer.parameters,
        select: aliased,
        distinct,
        top,
        from,
        condition,
        order,
        limit,
    }
}

struct Writer<'r> {
    random: &'r mut Random,
    /// Name and class of every variable. Those below NOT CONTAINS are used rarely.
    variables: Vec<(String, &'static str)>,
    bound: Vec<usize>,
    paths: Vec<Path>,
    parameters: Parameters,
}

impl Writer<'_> {
    // --- parameters

    fn bind(&mut self, value: Parameter) -> String {
        let name = format!("x{}", self.parameters.len());
        self.parameters.insert(name.clone(), value);
        format!("${name}")
    }

    /// Returns a literal, or a parameter with its value.
    fn or_bound(&mut self, literal: &str) -> String {
        if !self.random.one_in(7) {
            return literal.to_owned();
        }
        let value = match (
            literal,
            literal
                .strip_prefix('\'')
                .and_then(|text| text.strip_suffix('\'')),
        ) {
            ("NULL", _) => Parameter::Null,
            ("true" | "false", _) => Parameter::Boolean(literal == "true"),
            (_, Some(text)) if self.random.percent(60) => Parameter::Text(text.to_owned()),
            (_, None) if self.random.percent(60) => Parameter::Number(literal.to_owned()),
            (text, bare) => Parameter::Untyped(bare.unwrap_or(text).to_owned()),
        };
        self.bind(value)
    }

    /// Returns a list in braces of literals, parameters, lists and value sets.
    fn members(&mut self) -> String {
        let members: Vec<String> = (0..=self.random.below(3))
            .map(|_| match self.random.below(8) {
                0 => {
                    let values = (0..self.random.below(3))
                        .map(|_| Parameter::Text(self.literal().trim_matches('\'').to_owned()))
                        .collect();
                    self.bind(Parameter::List(values))
                }
                1 => "TERMINOLOGY('expand', 'openehr', 'group=composition category')".to_owned(),
                _ => self.operand(),
            })
            .collect();
        members.join(", ")
    }

    fn operand(&mut self) -> String {
        let literal = self.literal();
        self.or_bound(literal)
    }

    // --- FROM

    fn from(&mut self) -> From {
        match self.random.below(22) {
            20 | 21 => {
                let container = self.container();
                if self.random.percent(50) {
                    self.class("EHR", Some((false, container)))
                } else {
                    container
                }
            }
            0 => self.class("EHR", None),
            1 => self.class("EHR_STATUS", None),
            2..=4 => {
                let inner = self.inner(2);
                let composition = self.class("COMPOSITION", Some((false, inner)));
                self.class("EHR", Some((false, composition)))
            }
            5 | 6 => {
                let inner = self.inner(1);
                self.class("COMPOSITION", Some((false, inner)))
            }
            7..=9 => self.inner(2),
            10 | 11 => {
                let (left, right) = (self.document(), self.document());
                let joined = self.join(left, right);
                self.class("EHR", Some((false, joined)))
            }
            12 => {
                let (left, right) = (self.inner(1), self.inner(1));
                self.join(left, right)
            }
            13 => {
                let inner = self.document();
                let negated = self.random.percent(60);
                self.class("EHR", Some((negated, inner)))
            }
            14 | 15 => {
                let inner = match self.random.below(4) {
                    0 => None,
                    1 => Some((self.random.one_in(3), self.class("FOLDER", None))),
                    2 => {
                        let composition = self.class("COMPOSITION", None);
                        Some((false, self.class("VERSION", Some((false, composition)))))
                    }
                    _ => Some((self.random.one_in(4), self.document())),
                };
                self.class("FOLDER", inner)
            }
            16 | 17 => {
                let inner = match self.random.below(3) {
                    0 => None,
                    1 => Some((self.random.one_in(4), self.inner(1))),
                    _ => Some((false, self.document())),
                };
                let version = self.class("VERSION", inner);
                if self.random.percent(50) {
                    self.class("EHR", Some((false, version)))
                } else {
                    version
                }
            }
            _ => {
                let document = self.document();
                self.class("EHR", Some((false, document)))
            }
        }
    }

    /// Returns a VERSIONED_OBJECT, possibly with versions or their content.
    fn container(&mut self) -> From {
        let inner = match self.random.below(4) {
            0 => None,
            1 => Some((self.random.one_in(4), self.document())),
            _ => {
                let held = self.random.percent(50).then(|| (false, self.document()));
                Some((self.random.one_in(5), self.class("VERSION", held)))
            }
        };
        let class = self.random.pick(&[
            "VERSIONED_COMPOSITION",
            "VERSIONED_COMPOSITION",
            "VERSIONED_OBJECT",
            "VERSIONED_FOLDER",
            "VERSIONED_EHR_STATUS",
        ]);
        self.class(class, inner)
    }

    fn join(&mut self, left: From, right: From) -> From {
        if self.random.percent(60) {
            From::And(Box::new(left), Box::new(right))
        } else {
            From::Or(Box::new(left), Box::new(right))
        }
    }

    /// Returns a class that an EHR, a folder or a version contains.
    fn document(&mut self) -> From {
        match self.random.below(9) {
            8 => self.container(),
            0 => self.class("EHR_STATUS", None),
            1 => self.class("FOLDER", None),
            2 | 3 => self.class("COMPOSITION", None),
            4 | 5 => {
                let inner = self.inner(1);
                let negated = self.random.one_in(4);
                self.class("COMPOSITION", Some((negated, inner)))
            }
            _ => self.inner(1),
        }
    }

    /// Returns a class within a document.
    fn inner(&mut self, depth: usize) -> From {
        if depth > 0 && self.random.percent(25) {
            let (left, right) = (self.inner(depth - 1), self.inner(depth - 1));
            return self.join(left, right);
        }
        let class = self.random.pick(&[
            "OBSERVATION",
            "OBSERVATION",
            "OBSERVATION",
            "OBSERVATION",
            "EVALUATION",
            "SECTION",
            "SECTION",
            "ENTRY",
            "CARE_ENTRY",
            "CONTENT_ITEM",
            "CLUSTER",
            "CLUSTER",
            "ELEMENT",
            "ELEMENT",
            "EVENT",
            "POINT_EVENT",
            "INTERVAL_EVENT",
            "HISTORY",
            "ITEM_TREE",
            "LOCATABLE",
            "DATA_STRUCTURE",
            "ITEM",
            "PATHABLE",
            "DV_ORDERED",
            "DV_TEXT",
            "EVENT_CONTEXT",
            "PARTICIPATION",
            "DV_QUANTITY",
            "LINK",
        ]);
        let inner = (depth > 0 && self.random.percent(40))
            .then(|| (self.random.percent(20), self.inner(depth - 1)));
        self.class(class, inner)
    }

    fn class(&mut self, class: &'static str, contains: Option<(bool, From)>) -> From {
        let name = format!(
            "{}{}",
            char::from(b'p' + self.variables.len() as u8 % 10),
            self.variables.len()
        );
        self.variables.push((name.clone(), class));
        let predicate = match class {
            "VERSION" => match self.random.below(6) {
                0 | 1 => "[ALL_VERSIONS]".to_owned(),
                2 => "[LATEST_VERSION]".to_owned(),
                3 => format!(
                    "[commit_audit/change_type/value = '{}']",
                    self.random.pick(&["creation", "modification", "deleted"])
                ),
                4 => self.random.pick(&VERSION_PREDICATES).to_owned(),
                _ => String::new(),
            },
            "EHR" if self.random.one_in(5) => format!(
                "[ehr_id/value{}'e{}']",
                self.random.pick(&["=", "=", "!="]),
                1 + self.random.below(3)
            ),
            _ if is_node(class) && self.random.percent(30) => {
                format!("[{}]", self.predicate(class))
            }
            _ => String::new(),
        };
        let spelled = if self.random.one_in(20) {
            class.to_lowercase()
        } else {
            class.to_owned()
        };
        if self.bound.is_empty() || self.random.percent(92) {
            self.bound.push(self.variables.len() - 1);
            From::Class(
                format!("{spelled} {name}{predicate}"),
                contains.map(|(n, inner)| (n, Box::new(inner))),
            )
        } else {
            self.variables.pop();
            self.variables.push((String::new(), class));
            From::Class(
                format!("{spelled}{predicate}"),
                contains.map(|(n, inner)| (n, Box::new(inner))),
            )
        }
    }

    // --- predicates and paths

    fn id(&mut self, class: &str) -> &'static str {
        let ids: &[&str] = match class {
            "COMPOSITION" => &[
                "openEHR-EHR-COMPOSITION.x.v1",
                "openEHR-EHR-COMPOSITION.x.v1",
                "openEHR-EHR-COMPOSITION.y.v1",
            ],
            "OBSERVATION" | "ENTRY" | "CARE_ENTRY" | "CONTENT_ITEM" => &[
                "openEHR-EHR-OBSERVATION.a.v1",
                "openEHR-EHR-OBSERVATION.a.v1",
                "openEHR-EHR-OBSERVATION.b.v1",
                "openEHR-EHR-OBSERVATION.a.v1.2.0",
            ],
            "EVALUATION" => &["openEHR-EHR-EVALUATION.e.v1"],
            "SECTION" => &["openEHR-EHR-SECTION.s.v1", "at0020"],
            "CLUSTER" => &[
                "at0010",
                "at0010",
                "openEHR-EHR-CLUSTER.k.v1",
                "openEHR-EHR-CLUSTER.m.v1",
            ],
            "ELEMENT" => &["at0004", "at0004", "at0005", "at0004.1", "at0006"],
            "HISTORY" => &["at0001"],
            "ITEM_TREE" | "ITEM_STRUCTURE" => &["at0003", "at0003", "at0010"],
            "FOLDER" => &["openEHR-EHR-FOLDER.generic.v1"],
            "EHR_STATUS" => &["openEHR-EHR-EHR_STATUS.generic.v1"],
            _ => &["at0002", "at0002", "at0003"],
        };
        self.random.pick(ids)
    }

    fn predicate(&mut self, class: &str) -> String {
        let (id, other, name) = (
            self.id(class),
            self.id(class),
            self.random.pick(&["A", "B", "C"]),
        );
        match self.random.below(18) {
            16 => format!(
                "{id}, {}",
                self.random.pick(&["at0007", "snomed_ct::313267000"])
            ),
            17 if id.starts_with("openEHR") => self.bind(Parameter::Text(id.to_owned())),
            17 => format!("name/value = {}", self.or_bound(&format!("'{name}'"))),
            0..=5 => id.to_owned(),
            6 | 7 => format!("{id}, {}", self.or_bound(&format!("'{name}'"))),
            8 => format!("{id} and name/value = '{name}'"),
            9 => format!("name/value = '{name}'"),
            10 => format!("name/value != '{name}'"),
            11 => format!("{id} or {other}"),
            12 => format!("{id} and name/value = '{name}' or {other}"),
            13 => format!("archetype_node_id = '{id}'"),
            14 => format!(
                "archetype_node_id matches {{/at000[2-4]|.*\\.a\\.v1/}} or name/value = '{name}'"
            ),
            _ if class == "ELEMENT" => self
                .random
                .pick(&[
                    "value/magnitude > 2",
                    "value/value = 'A'",
                    "value = 2",
                    "name/value = value/value",
                ])
                .to_owned(),
            _ => format!("name/value >= '{name}'"),
        }
    }

    fn path(&mut self) -> String {
        let path = self.path_parts();
        let steps: String = path
            .steps
            .iter()
            .map(|(text, _)| format!("/{text}"))
            .collect();
        self.paths.push(path.clone());
        let spelled = if self.random.one_in(25) && !path.variable.contains('[') {
            path.variable.to_uppercase()
        } else {
            path.variable
        };
        format!("{spelled}{steps}")
    }

    fn path_parts(&mut self) -> Path {
        let mut path = match self.paths.len() {
            known if known > 0 && self.random.percent(60) => {
                let mut path = self.paths[self.random.below(known)].clone();
                let keep = self.random.below(path.steps.len() + 1);
                path.steps.truncate(keep);
                path
            }
            _ => {
                let named: Vec<usize> = self.bound.clone();
                let any = named[self.random.below(named.len())];
                Path {
                    variable: self.variables[any].0.clone(),
                    steps: Vec::new(),
                }
            }
        };
        let variable = path
            .variable
            .split('[')
            .next()
            .unwrap_or_default()
            .to_owned();
        let class_of = self
            .variables
            .iter()
            .find(|(name, _)| *name == variable)
            .map_or(LEAF, |(_, class)| *class);
        if path.steps.is_empty()
            && path.variable == variable
            && is_node(class_of)
            && self.random.one_in(15)
        {
            path.variable = format!("{variable}[{}]", self.predicate(class_of));
        }
        loop {
            let class = path.steps.last().map_or(class_of, |(_, class)| *class);
            let ways = ways(class);
            let stop = if path.steps.is_empty() { 4 } else { 10 };
            if ways.is_empty() || path.steps.len() > 9 || self.random.percent(stop) {
                return path;
            }
            let own = ways.len() - if is_node(class) { NODE.len() } else { 0 };
            let (attr, classes) = if own > 0 && self.random.percent(72) {
                ways[self.random.below(own)]
            } else {
                ways[self.random.below(ways.len())]
            };
            let behind = self.random.pick(classes);
            let text = if is_node(behind) && self.random.percent(35) {
                format!("{attr}[{}]", self.predicate(behind))
            } else {
                attr.to_owned()
            };
            path.steps.push((text, behind));
        }
    }

    // --- SELECT and WHERE

    fn column(&mut self, grouped: bool) -> String {
        match self.random.below(10) {
            0 => self.function(),
            1 => self
                .random
                .pick(&["'x'", "1.50", "NULL", "true"])
                .to_owned(),
            2 | 3 if grouped => self.aggregate(),
            _ => self.path(),
        }
    }

    fn aggregate(&mut self) -> String {
        let function = self.random.pick(AggregateFunction::ALL).entry();
        let form = self.random.below(4);
        if form == 0 && function.over_rows.is_some() {
            return format!("{}(*)", function.name);
        }
        let distinct = if form == 1 && function.over_distinct.is_some() {
            "DISTINCT "
        } else {
            ""
        };
        format!("{}({distinct}{})", function.name, self.path())
    }

    fn literal(&mut self) -> &'static str {
        self.random.pick(&[
            "1",
            "2",
            "2.0",
            "10",
            "-3",
            "0",
            "9007199254740992",
            "9007199254740993",
            "-9007199254740992",
            "'A'",
            "'B'",
            "'abc'",
            "'10'",
            "'at0004'",
            "'e1'",
            "'2020-01'",
            "'2020-01-02'",
            "'2020-01-01T08:00:00Z'",
            "'20200101T080000Z'",
            "'08:00'",
            "'080000'",
            "'2008'",
            "'T08'",
            "'PT1H'",
            "'PT60M'",
            "3600",
            "true",
            "false",
            "NULL",
            "'s1'",
            "'mm'",
            "'433'",
            "'Ann'",
            "'no date'",
        ])
    }

    fn operator(&mut self) -> &'static str {
        self.random
            .pick(&["=", "=", "=", "!=", "<", "<=", ">", ">="])
    }

    /// A call of any function: one argument is a path or another call, the others are values of the
    /// type of their parameter.
    fn function(&mut self) -> String {
        if self.random.one_in(25) {
            return "TERMINOLOGY('lookup', 'openehr', 'code=433')".to_owned();
        }
        let entry = self.random.pick(Function::ALL).entry();
        let least = entry.min_arguments();
        let most = entry.max_arguments().unwrap_or(least + 2);
        let count = least + self.random.below(most - least + 1);
        let from_document = self.random.below(count.max(1));
        let arguments: Vec<String> = (0..count)
            .map(|i| match entry.parameter(i).map(|p| p.value_type) {
                _ if i == from_document && self.random.one_in(8) => self.function(),
                _ if i == from_document => self.path(),
                _ if self.random.one_in(6) => self.operand(),
                Some(ValueType::Number) => self.number().to_owned(),
                Some(ValueType::Text) => self.text().to_owned(),
                Some(ValueType::Boolean) => "true".to_owned(),
                Some(ValueType::Any) | None => self.operand(),
            })
            .collect();
        format!("{}({})", entry.name, arguments.join(", "))
    }

    fn number(&mut self) -> &'static str {
        self.random.pick(&["-1", "0", "1", "2", "3"])
    }

    fn text(&mut self) -> &'static str {
        self.random
            .pick(&["'A'", "'b'", "'ä'", "''", "'-'", "NULL"])
    }

    fn condition(&mut self, depth: usize) -> Condition {
        match self.random.below(if depth == 0 { 6 } else { 10 }) {
            6 => Condition::Not(Box::new(self.condition(depth - 1))),
            7 | 8 => Condition::And(
                Box::new(self.condition(depth - 1)),
                Box::new(self.condition(depth - 1)),
            ),
            9 => Condition::Or(
                Box::new(self.condition(depth - 1)),
                Box::new(self.condition(depth - 1)),
            ),
            kind => Condition::Plain(match kind {
                0 | 1 => format!("{} {} {}", self.path(), self.operator(), self.operand()),
                2 => format!("{} {} {}", self.path(), self.operator(), self.path()),
                3 => format!("EXISTS {}", self.path()),
                4 => match self.random.below(5) {
                    0 => {
                        let pattern = self.random.pick(&[
                            "*",
                            "A",
                            "?",
                            "2020-0?-*",
                            "*at000*",
                            "o?::*",
                            "*ö*",
                        ]);
                        let pattern = if self.random.one_in(4) {
                            self.bind(Parameter::Text(pattern.to_owned()))
                        } else {
                            format!("'{pattern}'")
                        };
                        format!("{} LIKE {pattern}", self.path())
                    }
                    1 | 2 => format!("{} matches {{{}}}", self.path(), self.members()),
                    3 => format!("{} matches {}", self.path(), self.random.pick(&VALUE_SETS)),
                    _ => format!("{} {} {}", self.function(), self.operator(), self.operand()),
                },
                _ => format!("{} {} {}", self.path(), self.operator(), self.function()),
            }),
        }
    }
}
