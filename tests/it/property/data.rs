//! Random small repositories, in the notation.

use super::random::Random;
use std::fmt::Write;

const NAMES: [&str; 6] = [
    "A",
    "B",
    "C",
    "ä b",
    r#"{"_type":"DV_CODED_TEXT","value":"A","defining_code":{"terminology_id":{"value":"local"},"code_string":"at0007"}}"#,
    r#"{"_type":"DV_CODED_TEXT","value":"B","defining_code":{"terminology_id":{"value":"SNOMED-CT"},"code_string":"313267000"}}"#,
];
const TIMES: [&str; 6] = [
    "2020-01-01T08:00:00Z",
    "2020-01-01T09:00:00+01:00",
    "2020-01-01T09:00",
    "2020-01-02",
    "2020-01",
    "2020-01-01T08:00:00.5Z",
];
const LEAVES: [&str; 45] = [
    "1",
    "2",
    "2.0",
    "5 mm",
    "10 mm",
    "-3",
    "0.5",
    "-0.0 mm",
    "'A'",
    "'B'",
    "'abc'",
    "'äöü'",
    "'10'",
    "'2'",
    "'2020-01'",
    "'2020-01-02T00'",
    "'08:00:00 x'",
    "'PT1H'",
    "count 2",
    "count 9007199254740993",
    "count 9007199254740992",
    "count 9007199254740994",
    "count -9007199254740993",
    "count 10",
    "code at0005 'A'",
    "code at0007 'B'",
    "boolean true",
    "boolean false",
    "date 2020-01-02",
    "date 2020",
    "time 08:00",
    "time 09:00:00+01:00",
    "time 08:00:00.5",
    "time 00:30+01:00",
    "datetime 2020-01-02T00:00:00Z",
    "datetime 20200101T080000Z",
    "duration PT1H",
    "duration PT60M",
    "duration -P1D",
    "duration P1M",
    "datetime 2020",
    "ordinal 2 'A'",
    "scale 2.5 'B'",
    "proportion 1/2",
    "null",
];

/// Generates a repository of a few EHRs and versions.
pub fn repository(random: &mut Random) -> String {
    let mut writer = Writer {
        out: String::new(),
        random,
    };
    let ehrs = 1 + writer.random.below(3);
    let mut objects: Vec<(usize, String, &str)> = Vec::new();
    for ehr in 1..=ehrs {
        let hidden = if writer.random.one_in(12) {
            " hidden"
        } else {
            ""
        };
        let _ = writeln!(writer.out, "EHR e{ehr}{hidden}");
    }
    for ordinal in 1..=1 + writer.random.pick(&[1, 2, 3, 4, 5, 6, 7]) {
        let ehr = 1 + writer.random.below(ehrs);
        let _ = writeln!(writer.out, "EHR e{ehr}");
        let own: Vec<(usize, String, &str)> = objects
            .iter()
            .filter(|(e, ..)| *e == ehr)
            .cloned()
            .collect();
        let has = |kind: &str| own.iter().any(|(.., k)| *k == kind);
        match writer.random.below(10) {
            0 if !has("EHR_STATUS") => {
                writer.status();
                objects.push((ehr, format!("o{ordinal}"), "EHR_STATUS"));
            }
            1 | 2 if !has("FOLDER") && !own.is_empty() => {
                writer.folder(0, ordinal);
                objects.push((ehr, format!("o{ordinal}"), "FOLDER"));
            }
            3 | 4 if !own.is_empty() => {
                let (_, object, kind) = &own[writer.random.below(own.len())];
                if writer.random.one_in(3) {
                    let _ = writeln!(writer.out, "DELETE {object}");
                    objects.retain(|(_, o, _)| o != object);
                } else {
                    let _ = write!(writer.out, "NEXT {object} ");
                    match *kind {
                        "EHR_STATUS" => writer.status(),
                        "FOLDER" => writer.folder(0, ordinal),
                        _ => writer.composition(ordinal),
                    }
                }
            }
            _ => {
                writer.composition(ordinal);
                objects.push((ehr, format!("o{ordinal}"), "COMPOSITION"));
            }
        }
    }
    writer.out
}

/// Generates compositions that vary one: lines are left out, repeated, or have another value.
///
/// Thus they share layouts in part, and the columns of one have gaps, or several values, where
/// others have one.
pub fn variations(random: &mut Random) -> String {
    let mut writer = Writer {
        out: String::new(),
        random,
    };
    writer.composition(1);
    let model = writer.out;
    let lines: Vec<&str> = model.lines().collect();
    let (mut out, ehrs) = (String::new(), 1 + random.below(3));
    for _ in 0..3 + random.below(8) {
        let _ = writeln!(out, "EHR e{}", 1 + random.below(ehrs));
        vary(&lines, random, &mut out);
    }
    out
}

/// Writes a line and those below it with changes, then the lines behind them.
fn vary(lines: &[&str], random: &mut Random, out: &mut String) {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let Some((first, rest)) = lines.split_first() else {
        return;
    };
    let is_below = |line: &&str| depth(line) > depth(first);
    let below = rest.iter().take_while(|line| is_below(line)).count();
    let (below, behind) = rest.split_at(below);
    let can_vary = depth(first) > 0 && !first.contains("HISTORY");
    let times = match random.below(100) {
        0..8 if can_vary => 0,
        8..14 if can_vary => 2,
        _ => 1,
    };
    for _ in 0..times {
        let _ = writeln!(out, "{}", varied_value(first, random));
        vary(below, random, out);
    }
    vary(behind, random, out);
}

/// Returns a line with another value of the same class, or of another in some cases.
fn varied_value(line: &str, random: &mut Random) -> String {
    let Some((node, value)) = line.split_once(" = ") else {
        return line.to_owned();
    };
    let is_leaf = line.trim_start().starts_with("ELEMENT");
    if !is_leaf || random.percent(40) {
        return line.to_owned();
    }
    let class = |value: &str| value.chars().find(|c| c.is_alphabetic() || *c == '\'');
    let alike = LEAVES.iter().filter(|leaf| class(leaf) == class(value));
    let alike: Vec<&str> = alike.copied().collect();
    let value = match random.percent(90) {
        true => random.pick(&alike),
        false => random.pick(&LEAVES),
    };
    format!("{node} = {value}")
}

struct Writer<'r> {
    out: String,
    random: &'r mut Random,
}

impl Writer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", depth * 2);
    }

    fn name(&mut self) -> &'static str {
        self.random.pick(&NAMES)
    }

    fn status(&mut self) {
        let name = self.name();
        self.line(
            0,
            &format!("EHR_STATUS[openEHR-EHR-EHR_STATUS.generic.v1] {name}"),
        );
        if self.random.percent(50) {
            self.line(1, "@other_details ITEM_TREE[at0001] t");
            self.items(2, 0);
        }
    }

    fn folder(&mut self, depth: usize, objects: usize) {
        let name = self.name();
        let listed: Vec<String> = (0..self.random.below(4))
            .map(|_| {
                format!(
                    "o{}{}",
                    1 + self.random.below(objects + 1),
                    self.random.pick(&["", "", "::test::1"])
                )
            })
            .collect();
        let listed = if listed.is_empty() {
            String::new()
        } else {
            format!(" = {}", listed.join(" "))
        };
        self.line(
            depth,
            &format!("FOLDER[openEHR-EHR-FOLDER.generic.v1] {name}{listed}"),
        );
        if self.random.percent(25) {
            self.line(depth + 1, "@details ITEM_TREE[at0001] t");
            self.items(depth + 2, 1);
        }
        for _ in 0..self.random.below(if depth < 2 { 3 } else { 1 }) {
            self.folder(depth + 1, objects);
        }
    }

    fn composition(&mut self, ordinal: usize) {
        let id = self.random.pick(&["x.v1", "x.v1", "x-s.v1", "y.v1"]);
        let name = self.name();
        self.line(
            0,
            &format!("COMPOSITION[openEHR-EHR-COMPOSITION.{id}] {name}"),
        );
        if self.random.percent(40) {
            self.line(
                1,
                &format!(r#"@uid OBJECT_VERSION_ID u = {{"value":"o{ordinal}::test::1"}}"#),
            );
        }
        if self.random.percent(40) {
            let code = self.random.pick(&["433", "431"]);
            self.line(1, &format!(r#"@category DV_CODED_TEXT c = {{"value":"event","defining_code":{{"terminology_id":{{"value":"openehr"}},"code_string":"{code}"}}}}"#));
        }
        if self.random.percent(60) {
            let time = self.random.pick(&TIMES);
            self.line(1, &format!("EVENT_CONTEXT x = {time}"));
            for _ in 0..self.random.below(3) {
                self.participation();
            }
        }
        self.content(1, 3);
    }

    fn participation(&mut self) {
        let name = self.random.pick(&["Ann", "Bob"]);
        let ids: Vec<String> = (0..self.random.below(3))
            .map(|_| format!(r#"{{"id":"{}"}}"#, 1 + self.random.below(3)))
            .collect();
        let ids = if ids.is_empty() {
            String::new()
        } else {
            format!(r#","identifiers":[{}]"#, ids.join(","))
        };
        self.line(2, &format!(r#"PARTICIPATION p = {{"function":{{"value":"F"}},"performer":{{"_type":"PARTY_IDENTIFIED","name":"{name}"{ids}}}}}"#));
    }

    fn content(&mut self, depth: usize, most: usize) {
        for _ in 0..self.random.pick(&[0, 1, most, most]) {
            let name = self.name();
            match self.random.below(6) {
                0 | 1 if depth < 3 => {
                    let id = self.random.pick(&["openEHR-EHR-SECTION.s.v1", "at0020"]);
                    self.line(depth, &format!("SECTION[{id}] {name}"));
                    self.content(depth + 1, 2);
                }
                2 => {
                    self.line(
                        depth,
                        &format!("EVALUATION[openEHR-EHR-EVALUATION.e.v1] {name}"),
                    );
                    self.extras(depth + 1);
                    self.line(depth + 1, "ITEM_TREE[at0003] t");
                    self.items(depth + 2, 0);
                }
                _ => {
                    let id = self
                        .random
                        .pick(&["a.v1", "a.v1", "a-b.v1", "a.v1.2.0", "b.v1", "ab.v1"]);
                    self.line(
                        depth,
                        &format!("OBSERVATION[openEHR-EHR-OBSERVATION.{id}] {name}"),
                    );
                    self.extras(depth + 1);
                    self.line(depth + 1, "HISTORY[at0001] h");
                    for _ in 0..self.random.pick(&[0, 1, 1, 2, 3]) {
                        self.event(depth + 2);
                    }
                }
            }
        }
    }

    /// Adds the attributes that any entry may have.
    fn extras(&mut self, depth: usize) {
        for _ in 0..self.random.pick(&[0, 0, 0, 1, 2]) {
            let meaning = self.random.pick(&["A", "B"]);
            self.line(
                depth,
                &format!(r#"@links LINK l = {{"meaning":{{"value":"{meaning}"}},"type":{{"value":"t"}},"target":{{"value":"ehr:1"}}}}"#),
            );
        }
        if self.random.percent(20) {
            let system = self.random.pick(&["s1", "s2"]);
            self.line(depth, &format!(r#"@feeder_audit FEEDER_AUDIT f = {{"originating_system_audit":{{"system_id":"{system}"}}}}"#));
        }
        if self.random.percent(30) {
            self.line(depth, "@protocol ITEM_TREE[at0010] p");
            self.items(depth + 1, 1);
        }
    }

    fn event(&mut self, depth: usize) {
        let (class, code, name) = (
            self.random.pick(&["POINT_EVENT", "INTERVAL_EVENT"]),
            self.random.pick(&["at0002", "at0002", "at0003"]),
            self.name(),
        );
        let time = if self.random.percent(80) {
            format!(" = {}", self.random.pick(&TIMES))
        } else {
            String::new()
        };
        self.line(depth, &format!("{class}[{code}] {name}{time}"));
        if class == "INTERVAL_EVENT" && self.random.percent(60) {
            self.line(depth + 1, r#"@width DV_DURATION w = {"value":"PT1H"}"#);
        }
        if self.random.percent(90) {
            self.line(depth + 1, "ITEM_TREE[at0003] t");
            self.items(depth + 2, 0);
        }
    }

    fn items(&mut self, depth: usize, nesting: usize) {
        for _ in 0..self.random.pick(&[0, 1, 2, 2, 3]) {
            let name = self.name();
            if nesting < 3 && self.random.percent(35) {
                let id = self.random.pick(&[
                    "at0010",
                    "at0010",
                    "at0010.1",
                    "openEHR-EHR-CLUSTER.k.v1",
                    "openEHR-EHR-CLUSTER.m.v1",
                ]);
                self.line(depth, &format!("CLUSTER[{id}] {name}"));
                self.items(depth + 1, nesting + 1);
            } else {
                let id = self
                    .random
                    .pick(&["at0004", "at0004", "at0004.1", "at0005", "at0006"]);
                let value = if self.random.percent(92) {
                    format!(" = {}", self.random.pick(&LEAVES))
                } else {
                    String::new()
                };
                self.line(depth, &format!("ELEMENT[{id}] {name}{value}"));
            }
        }
    }
}
