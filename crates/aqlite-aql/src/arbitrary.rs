//! Random queries from the grammar, for property tests.

use super::query::{AggregateFunction, Function};

/// A deterministic source of query texts (SplitMix64).
pub(super) struct Generator {
    state: u64,
}

const LITERALS: [&str; 14] = [
    "NULL",
    "true",
    "FALSE",
    "0",
    "007",
    "-1.5e-3",
    ".5",
    "- - 2",
    "'it\\'s'",
    "\"a'b\"",
    "'\\u00e9\\n\\101'",
    "'2019-05'",
    "''",
    "'a\nb'",
];
const CODES: [&str; 4] = [
    "at0001",
    "id5.1",
    "openEHR-EHR-OBSERVATION.x-y.v1.0.0-rc.1",
    "org.a::openEHR-EHR-CLUSTER.z.v0",
];
const NAMES: [&str; 6] = [
    "'n'",
    "$name",
    "at0003",
    "snomed_ct(3.1)::3132",
    "icd10::F60.1|a b|",
    "\"q\"",
];
const ATTRIBUTES: [&str; 6] = ["data", "events", "items", "value", "name", "magnitude"];
const OPERATORS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];
const TERMINOLOGY: &str = "terminology('expand', 'hl7.org/fhir/4.0', 'url=x')";

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator { state: seed }
    }

    /// Returns a query that parses.
    pub fn query(&mut self) -> String {
        let columns: Vec<String> = (0..=self.next(3)).map(|_| self.column()).collect();
        let prefix = self.pick(&[
            "",
            "distinct ",
            "TOP 3 ",
            "DISTINCT TOP 5 BACKWARD ",
            "top 2 forward ",
        ]);
        let mut text = format!(
            "{}SELECT {prefix}{}\nfrom {}",
            self.comment(),
            columns.join(" ,"),
            self.containment(3)
        );
        if self.next(3) > 0 {
            let condition = self.condition(3);
            text = format!("{text} WHERE {}{condition}", self.comment());
        }
        if self.next(3) == 0 {
            let keys: Vec<String> = (0..=self.next(2)).map(|_| self.order_key()).collect();
            text = format!("{text} ORDER BY {}", keys.join(", "));
        }
        if self.next(3) == 0 {
            text.push_str(self.pick(&["\nLIMIT 10", "\nlimit 1 OFFSET 0"]));
        }
        text
    }

    fn order_key(&mut self) -> String {
        let path = self.path(1);
        format!("{path} {}", self.pick(&["", "ASC", "descending"]))
    }

    fn next(&mut self, below: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) >> 33).unwrap() % below
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.next(from.len())]
    }

    fn comment(&mut self) -> &'static str {
        ["", "", "-- why\n", "--\n"][self.next(4)]
    }

    fn column(&mut self) -> String {
        let value = match self.next(5) {
            0 | 1 => self.aggregate(),
            2 => self.value(2),
            _ => self.path(2),
        };
        let value = if value.starts_with('$') {
            "NULL".to_owned()
        } else {
            value
        };
        format!(
            "{}{value}{}",
            self.comment(),
            ["", " AS a1", " as value"][self.next(3)]
        )
    }

    fn aggregate(&mut self) -> String {
        let function = AggregateFunction::ALL[self.next(AggregateFunction::ALL.len())].entry();
        let name = self.spelled(function.name);
        match self.next(3) {
            0 if function.over_rows.is_some() => format!("{name}(*)"),
            1 if function.over_distinct.is_some() => {
                format!("{name}(distinct {})", self.path(1))
            }
            _ => format!("{name}({})", self.path(2)),
        }
    }

    /// A word of the language in upper, lower or mixed case.
    fn spelled(&mut self, word: &str) -> String {
        match self.next(3) {
            0 => word.to_owned(),
            1 => word.to_ascii_lowercase(),
            _ => format!("{}{}", &word[..1], word[1..].to_ascii_lowercase()),
        }
    }

    fn containment(&mut self, depth: usize) -> String {
        match self.next(if depth == 0 { 1 } else { 5 }) {
            0 | 1 => self.class_expr(depth),
            2 => format!("({})", self.containment(depth - 1)),
            3 => format!(
                "{} AND {}{}",
                self.containment(depth - 1),
                self.comment(),
                self.containment(depth - 1)
            ),
            _ => format!(
                "{} or {}",
                self.containment(depth - 1),
                self.containment(depth - 1)
            ),
        }
    }

    fn class_expr(&mut self, depth: usize) -> String {
        let class = self.pick(&[
            "OBSERVATION o",
            "ehr e",
            "Cluster",
            "VERSION v[all_versions]",
            "VERSION[LATEST_VERSION]",
            "version v",
        ]);
        let predicate = if class.starts_with(['V', 'v']) || self.next(2) == 0 {
            String::new()
        } else {
            format!("[{}]", self.predicate(2))
        };
        let inner = if depth > 0 && self.next(2) == 0 {
            let not = self.pick(&["", "not "]);
            format!(" {not}CONTAINS {}", self.containment(depth - 1))
        } else {
            String::new()
        };
        format!("{class}{predicate}{inner}")
    }

    fn condition(&mut self, depth: usize) -> String {
        if depth == 0 || self.next(9) < 5 {
            return self.single_condition();
        }
        match self.next(4) {
            0 => format!("NOT {}", self.condition(depth - 1)),
            1 => format!("({})", self.condition(depth - 1)),
            2 => format!(
                "{} and {}{}",
                self.condition(depth - 1),
                self.comment(),
                self.condition(depth - 1)
            ),
            _ => format!(
                "{} OR {}",
                self.condition(depth - 1),
                self.condition(depth - 1)
            ),
        }
    }

    fn single_condition(&mut self) -> String {
        match self.next(5) {
            0 => format!("EXISTS {}", self.path(1)),
            1 => format!("{} like {}", self.path(1), self.pick(&["'a*\\?'", "$p"])),
            2 => {
                let list = self.pick(&[
                    "{1, -2.5, 'a', $p}",
                    "{terminology://a/b?c=1}",
                    "{NULL}",
                    TERMINOLOGY,
                ]);
                format!("{} matches {list}", self.path(1))
            }
            3 => {
                let (left, operator) = (self.call(1), self.pick(&OPERATORS));
                format!("{left} {operator} {}", self.value(1))
            }
            _ => {
                let (left, operator) = (self.path(2), self.pick(&OPERATORS));
                format!("{left} {operator}{}", self.value(2))
            }
        }
    }

    fn value(&mut self, depth: usize) -> String {
        match self.next(if depth == 0 { 3 } else { 5 }) {
            0 | 1 => self.pick(&LITERALS).to_owned(),
            2 => "$p".to_owned(),
            3 => self.path(depth - 1),
            _ => self.call(depth - 1),
        }
    }

    fn call(&mut self, depth: usize) -> String {
        if self.next(5) == 0 {
            return TERMINOLOGY.to_owned();
        }
        let arguments: Vec<String> = (0..self.next(3)).map(|_| self.value(depth)).collect();
        let name = match self.next(8) {
            0 => "my_fn".to_owned(),
            _ => {
                let function = Function::ALL[self.next(Function::ALL.len())];
                self.spelled(function.name())
            }
        };
        format!("{name}( {})", arguments.join(","))
    }

    fn path(&mut self, depth: usize) -> String {
        let root = if depth > 0 && self.next(4) == 0 {
            format!("[{}]", self.predicate(depth - 1))
        } else {
            String::new()
        };
        let steps = if self.next(5) == 0 {
            String::new()
        } else {
            format!("/{}", self.steps(depth))
        };
        format!("{}{root}{steps}", self.pick(&["o", "e", "Value"]))
    }

    fn steps(&mut self, depth: usize) -> String {
        let steps: Vec<String> = (0..=self.next(3))
            .map(|_| {
                let predicate = if depth > 0 && self.next(3) == 0 {
                    format!(" [ {} ]", self.predicate(depth - 1))
                } else {
                    String::new()
                };
                format!("{}{predicate}", self.pick(&ATTRIBUTES))
            })
            .collect();
        steps.join("/")
    }

    fn predicate(&mut self, depth: usize) -> String {
        match self.next(if depth == 0 { 4 } else { 6 }) {
            0 => self.pick(&CODES).to_owned(),
            1 => format!("{},{}", self.pick(&CODES), self.pick(&NAMES)),
            2 if self.next(2) == 0 => "$arch".to_owned(),
            2 => format!("{} matches {{/a\\/.*/}}", self.steps(0)),
            3 => {
                let path = self.steps(depth.saturating_sub(1));
                let operator = self.pick(&OPERATORS);
                format!("{path}{operator}{}", self.predicate_value())
            }
            4 => format!(
                "{} AND {}",
                self.predicate(depth - 1),
                self.predicate(depth - 1)
            ),
            _ => format!(
                "{} or {}",
                self.predicate(depth - 1),
                self.predicate(depth - 1)
            ),
        }
    }

    fn predicate_value(&mut self) -> String {
        match self.next(4) {
            0 => self.pick(&LITERALS).to_owned(),
            1 => "$v".to_owned(),
            2 => "at0007".to_owned(),
            _ => self.steps(0),
        }
    }
}
