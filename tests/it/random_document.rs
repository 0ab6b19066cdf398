//! Random documents of a template. Alternatives, repetitions and options vary, and so do attributes
//! of the Reference Model that no template mentions.
//!
//! The template itself is varied (other alternatives first, more occurrences). An example of it is
//! generated and enriched class by class. The result must be valid for the varied template, which
//! callers check.

use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::rm::tree::Tree;
use aqlite::template::tree::Node;
use aqlite::template::{ExampleKind, Template, example};
use serde_json::{Map, Value, json};

const NOW: &str = "2026-11-20T09:30:00Z";

/// A deterministic source of numbers (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33
    }

    /// Returns a number below a limit.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap_or_default() % limit.max(1)
    }

    /// Returns true with a probability of one in `count`.
    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list.get(self.below(list.len()))
            .copied()
            .unwrap_or_default()
    }
}

/// Generates a random document of a template. `None` if the varied template permits none.
pub fn document(template: &Template, random: &mut Random) -> Option<Tree> {
    let mut varied = template.clone();
    vary(&mut varied.definition, random, 0);
    let kind = if random.one_in(4) {
        ExampleKind::Minimal
    } else {
        ExampleKind::Full
    };
    let tree = example(&varied, kind, None, NOW)
        .or_else(|_| example(template, kind, None, NOW))
        .ok()?;
    let mut value: Value = serde_json::from_str(&json::write(tree.root()?)).ok()?;
    let mut names = Names { random, count: 0 };
    names.enrich(&mut value);
    json::read(&value.to_string(), Cls::COMPOSITION).ok()
}

/// Moves another alternative to the front, requires several objects where they are permitted, and
/// requires some optional ones.
fn vary(node: &mut Node, random: &mut Random, depth: usize) {
    for attribute in &mut node.attributes {
        let is_choice = attribute.cardinality.is_none() && attribute.children.len() > 1;
        if is_choice {
            let by = random.below(attribute.children.len());
            attribute.children.rotate_left(by);
        }
        for child in &mut attribute.children {
            if depth < 12
                && child.occurrences.upper.is_none()
                && child.archetype_id.is_none()
                && random.one_in(3)
            {
                child.occurrences.lower = child.occurrences.lower.max(2);
            }
            vary(child, random, depth + 1);
        }
    }
}

/// Adds attributes to objects, class by class.
struct Names<'r> {
    random: &'r mut Random,
    count: usize,
}

/// The classes of data values with a reference range.
const ORDERED: [&str; 9] = [
    "DV_QUANTITY",
    "DV_COUNT",
    "DV_PROPORTION",
    "DV_DURATION",
    "DV_DATE",
    "DV_TIME",
    "DV_DATE_TIME",
    "DV_ORDINAL",
    "DV_SCALE",
];

impl Names<'_> {
    /// Returns a unique text, with characters that need escaping in JSON, XML and keys.
    fn text(&mut self) -> Value {
        self.count += 1;
        let odd = self.random.pick(&[
            "", " é", " \"q\"", " a|b", " c/d:1", " <x>&", " 体", "::d", " #", "true", "1",
        ]);
        Value::from(format!("t{}{odd}", self.count))
    }

    fn enrich(&mut self, value: &mut Value) {
        match value {
            Value::Array(members) => members.iter_mut().for_each(|member| self.enrich(member)),
            Value::Object(members) => {
                members
                    .iter_mut()
                    .filter(|(key, _)| !matches!(key.as_str(), "name" | "archetype_details"))
                    .for_each(|(_, v)| self.enrich(v));
                self.object(members);
            }
            _ => {}
        }
    }

    fn object(&mut self, object: &mut Map<String, Value>) {
        let class = object
            .get("_type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if object.contains_key("archetype_node_id") {
            self.locatable(object, &class);
        }
        match class.as_str() {
            "ELEMENT" => self.element(object),
            "EVENT_CONTEXT" => self.context(object),
            "ACTION" => self.action(object),
            "ACTIVITY" => self.activity(object),
            "HISTORY" => self.history(object),
            "PARTY_IDENTIFIED" => self.party(object),
            "DV_TEXT" | "DV_CODED_TEXT" => self.words(object),
            class if ORDERED.contains(&class) => self.ordered(object),
            _ => {}
        }
        if matches!(
            class.as_str(),
            "OBSERVATION"
                | "EVALUATION"
                | "INSTRUCTION"
                | "ACTION"
                | "ADMIN_ENTRY"
                | "GENERIC_ENTRY"
        ) {
            self.entry(object, &class);
        }
    }

    fn locatable(&mut self, object: &mut Map<String, Value>, class: &str) {
        if self.random.one_in(8) {
            let number = self.random.below(1 << 30);
            let uid = match self.random.below(3) {
                0 => {
                    json!({ "_type": "HIER_OBJECT_ID", "value": format!("00000000-0000-4000-8000-{number:012}") })
                }
                1 => {
                    json!({ "_type": "OBJECT_VERSION_ID", "value": format!("00000000-0000-4000-8000-{number:012}::system.example::2") })
                }
                _ => {
                    json!({ "_type": "HIER_OBJECT_ID", "value": format!("00000000-0000-4000-8000-{number:012}::part") })
                }
            };
            object.insert(String::from("uid"), uid);
        }
        if self.random.one_in(10) {
            let links: Vec<Value> = (0..=self.random.below(2)).map(|_| self.link()).collect();
            object.insert(String::from("links"), Value::from(links));
        }
        if self.random.one_in(12) {
            let audit = self.feeder_audit();
            object.insert(String::from("feeder_audit"), audit);
        }
        let is_named_by_template =
            class == "COMPOSITION" || object.contains_key("archetype_details");
        if !is_named_by_template && class == "ELEMENT" && self.random.one_in(15) {
            // A runtime name. If the template constrains the name, the document is invalid and not
            // used.
            let text = self.text();
            object.insert(
                String::from("name"),
                json!({ "_type": "DV_TEXT", "value": text }),
            );
        }
    }

    fn link(&mut self) -> Value {
        let meaning = if self.random.one_in(3) {
            self.coded()
        } else {
            self.plain()
        };
        let kind = if self.random.one_in(3) {
            self.coded()
        } else {
            self.plain()
        };
        json!({ "_type": "LINK", "meaning": meaning, "type": kind, "target": { "_type": "DV_EHR_URI", "value": format!("ehr://example/{}", self.random.below(99)) } })
    }

    fn plain(&mut self) -> Value {
        json!({ "_type": "DV_TEXT", "value": self.text() })
    }

    fn phrase(&mut self) -> Value {
        let terminology = self
            .random
            .pick(&["SNOMED-CT", "ICD10", "http://example.org/codes"]);
        json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": terminology }, "code_string": format!("c{}", self.random.below(1000)) })
    }

    fn coded(&mut self) -> Value {
        let mut coded = json!({ "_type": "DV_CODED_TEXT", "value": self.text(), "defining_code": self.phrase() });
        if self.random.one_in(3) {
            coded["defining_code"]["preferred_term"] = self.text();
        }
        coded
    }

    fn identifier(&mut self) -> Value {
        let mut identifier = json!({ "_type": "DV_IDENTIFIER", "id": self.text() });
        for name in ["issuer", "assigner", "type"] {
            if self.random.one_in(2) {
                identifier[name] = self.text();
            }
        }
        identifier
    }

    fn reference(&mut self) -> Value {
        let number = self.random.below(1 << 30);
        let id = match self.random.below(4) {
            0 => {
                json!({ "_type": "HIER_OBJECT_ID", "value": format!("00000000-0000-4000-8000-{number:012}") })
            }
            1 => json!({ "_type": "HIER_OBJECT_ID", "value": "1.2.3.4" }),
            _ => {
                json!({ "_type": "GENERIC_ID", "value": format!("p{number}"), "scheme": "scheme" })
            }
        };
        let kind = self
            .random
            .pick(&["PARTY", "PARTY", "ORGANISATION", "AGENT"]);
        json!({ "_type": "PARTY_REF", "id": id, "namespace": self.random.pick(&["demographic", "local"]), "type": kind })
    }

    fn party(&mut self, party: &mut Map<String, Value>) {
        party.insert(String::from("name"), self.text());
        if self.random.one_in(2) {
            party.insert(String::from("external_ref"), self.reference());
        }
        if self.random.one_in(2) {
            let identifiers: Vec<Value> = (0..=self.random.below(2))
                .map(|_| self.identifier())
                .collect();
            party.insert(String::from("identifiers"), Value::from(identifiers));
        }
    }

    fn any_party(&mut self) -> Value {
        let mut party = Map::new();
        match self.random.below(4) {
            0 => return json!({ "_type": "PARTY_SELF" }),
            1 => {
                party.insert(String::from("_type"), Value::from("PARTY_RELATED"));
                let code = json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "openehr" }, "code_string": "10" });
                party.insert(
                    String::from("relationship"),
                    json!({ "_type": "DV_CODED_TEXT", "value": "mother", "defining_code": code }),
                );
            }
            _ => drop(party.insert(String::from("_type"), Value::from("PARTY_IDENTIFIED"))),
        }
        self.party(&mut party);
        Value::from(party)
    }

    fn participation(&mut self) -> Value {
        let function = if self.random.one_in(3) {
            self.coded()
        } else {
            self.plain()
        };
        let mut participation = json!({ "_type": "PARTICIPATION", "function": function, "performer": self.any_party() });
        if self.random.one_in(2) {
            let (code, text) = [
                ("216", "face-to-face communication"),
                ("193", "not specified"),
            ][self.random.below(2)];
            let phrase = json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "openehr" }, "code_string": code });
            participation["mode"] =
                json!({ "_type": "DV_CODED_TEXT", "value": text, "defining_code": phrase });
        }
        if self.random.one_in(3) {
            let time = |day: usize| json!({ "_type": "DV_DATE_TIME", "value": format!("2026-01-{day:02}T08:00:00Z") });
            participation["time"] = json!({ "_type": "DV_INTERVAL", "lower": time(1), "upper": time(2), "lower_unbounded": false, "upper_unbounded": false,
                "lower_included": true, "upper_included": self.random.one_in(2) });
        }
        participation
    }

    fn feeder_audit(&mut self) -> Value {
        let mut details = |random_time: bool| {
            let mut details = json!({ "_type": "FEEDER_AUDIT_DETAILS", "system_id": self.text() });
            if random_time {
                details["time"] =
                    json!({ "_type": "DV_DATE_TIME", "value": "2026-01-01T08:00:00+01:00" });
                details["version_id"] = self.text();
            }
            if self.random.one_in(2) {
                details["provider"] = self.any_party_identified();
            }
            if self.random.one_in(3) {
                details["subject"] = self.any_party();
            }
            if self.random.one_in(3) {
                details["location"] = self.any_party_identified();
            }
            details
        };
        let (originating, feeder) = (details(true), details(false));
        let mut audit = json!({ "_type": "FEEDER_AUDIT", "originating_system_audit": originating, "feeder_system_audit": feeder });
        if self.random.one_in(2) {
            audit["originating_system_item_ids"] = json!([self.identifier(), self.identifier()]);
        }
        match self.random.below(3) {
            0 => {
                audit["original_content"] = json!({ "_type": "DV_PARSABLE", "value": self.text(), "formalism": "text/plain" })
            }
            1 => {
                let media = json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "IANA_media-types" }, "code_string": "image/png" });
                audit["original_content"] = json!({ "_type": "DV_MULTIMEDIA", "media_type": media, "size": 3, "data": "AAAA", "alternate_text": self.text() });
            }
            _ => {}
        }
        audit
    }

    fn any_party_identified(&mut self) -> Value {
        let mut party = Map::new();
        party.insert(String::from("_type"), Value::from("PARTY_IDENTIFIED"));
        self.party(&mut party);
        Value::from(party)
    }

    fn entry(&mut self, entry: &mut Map<String, Value>, class: &str) {
        if self.random.one_in(4) {
            let all: Vec<Value> = (0..=self.random.below(2))
                .map(|_| self.participation())
                .collect();
            entry.insert(String::from("other_participations"), Value::from(all));
        }
        if self.random.one_in(4) {
            entry.insert(String::from("provider"), self.any_party());
        }
        let reference = |kind: &str| json!({ "_type": "OBJECT_REF", "id": { "_type": "GENERIC_ID", "value": "w1", "scheme": "s" }, "namespace": "n", "type": kind });
        if self.random.one_in(6) {
            let kind = self.random.pick(&["ANY", "WORKFLOW"]);
            entry.insert(String::from("workflow_id"), reference(kind));
        }
        if !matches!(class, "ADMIN_ENTRY" | "GENERIC_ENTRY") && self.random.one_in(6) {
            let kind = self.random.pick(&["ANY", "GUIDELINE"]);
            entry.insert(String::from("guideline_id"), reference(kind));
        }
    }

    fn context(&mut self, context: &mut Map<String, Value>) {
        if self.random.one_in(2) {
            let all: Vec<Value> = (0..=self.random.below(2))
                .map(|_| self.participation())
                .collect();
            context.insert(String::from("participations"), Value::from(all));
        }
        if self.random.one_in(2) {
            context.insert(
                String::from("health_care_facility"),
                self.any_party_identified(),
            );
            context.insert(String::from("location"), self.text());
            context.insert(
                String::from("end_time"),
                json!({ "_type": "DV_DATE_TIME", "value": "2026-11-21T09:30:00Z" }),
            );
        }
    }

    fn action(&mut self, action: &mut Map<String, Value>) {
        if self.random.one_in(2) {
            let uid = "00000000-0000-4000-8000-000000000001::system.example::1";
            let kind = self
                .random
                .pick(&["INSTRUCTION", "INSTRUCTION", "COMPOSITION"]);
            let id = json!({ "_type": "LOCATABLE_REF", "id": { "_type": "OBJECT_VERSION_ID", "value": uid }, "namespace": self.random.pick(&["local", "ehr"]),
                "type": kind, "path": "/content[openEHR-EHR-INSTRUCTION.x.v1]" });
            action.insert(
                String::from("instruction_details"),
                json!({ "_type": "INSTRUCTION_DETAILS", "instruction_id": id, "activity_id": "activities[at0001]" }),
            );
        }
    }

    fn activity(&mut self, activity: &mut Map<String, Value>) {
        match self.random.below(3) {
            0 => drop(activity.insert(
                String::from("timing"),
                json!({ "_type": "DV_PARSABLE", "value": self.text(), "formalism": "timing" }),
            )),
            1 => drop(activity.insert(String::from("action_archetype_id"), Value::from("/.*/"))),
            _ => {}
        }
    }

    fn history(&mut self, history: &mut Map<String, Value>) {
        if self.random.one_in(4) {
            // The events of examples are at half past nine, at a multiple after either origin.
            history.insert(
                String::from("period"),
                json!({ "_type": "DV_DURATION", "value": "PT30M" }),
            );
            history.insert(
                String::from("duration"),
                json!({ "_type": "DV_DURATION", "value": "PT3H" }),
            );
        }
        if self.random.one_in(4) {
            history.insert(
                String::from("origin"),
                json!({ "_type": "DV_DATE_TIME", "value": "2026-11-19T00:00:00Z" }),
            );
        }
    }

    fn element(&mut self, element: &mut Map<String, Value>) {
        if self.random.one_in(10) {
            element.remove("value");
            let phrase = json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "openehr" }, "code_string": "253" });
            element.insert(
                String::from("null_flavour"),
                json!({ "_type": "DV_CODED_TEXT", "value": "unknown", "defining_code": phrase }),
            );
            if self.random.one_in(2) {
                let reason = if self.random.one_in(2) {
                    self.coded()
                } else {
                    self.plain()
                };
                element.insert(String::from("null_reason"), reason);
            }
        }
    }

    fn words(&mut self, text: &mut Map<String, Value>) {
        let code = |terminology: &str, code: &str| json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": terminology }, "code_string": code });
        if self.random.one_in(8) {
            let mut mapping = json!({ "_type": "TERM_MAPPING", "match": self.random.pick(&[">", "=", "<", "?"]), "target": self.phrase() });
            if self.random.one_in(2) {
                mapping["purpose"] = json!({ "_type": "DV_CODED_TEXT", "value": "billing", "defining_code": code("openehr", "670") });
            }
            text.insert(String::from("mappings"), json!([mapping]));
        }
        if self.random.one_in(10) {
            text.insert(String::from("language"), code("ISO_639-1", "sv"));
            text.insert(
                String::from("encoding"),
                code("IANA_character-sets", "UTF-8"),
            );
        }
        if self.random.one_in(12) {
            text.insert(String::from("formatting"), Value::from("markdown"));
        }
        if self.random.one_in(12) {
            text.insert(
                String::from("hyperlink"),
                json!({ "_type": "DV_URI", "value": "https://example.org/a?b=c#d" }),
            );
        }
    }

    fn ordered(&mut self, value: &mut Map<String, Value>) {
        let limit = || {
            Value::from(
                value
                    .iter()
                    .filter(|(key, _)| !matches!(key.as_str(), "accuracy"))
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect::<Map<_, _>>(),
            )
        };
        let own = limit();
        let range = |random: &mut Random| {
            let mut range = json!({ "_type": "DV_INTERVAL", "lower_unbounded": false, "upper_unbounded": false, "lower_included": true, "upper_included": true });
            match random.below(3) {
                0 => {
                    range["lower"] = own.clone();
                    range["upper_unbounded"] = Value::from(true);
                    range["upper_included"] = Value::from(false);
                }
                1 => {
                    range["upper"] = own.clone();
                    range["lower_unbounded"] = Value::from(true);
                    range["lower_included"] = Value::from(false);
                }
                _ => {
                    range["lower"] = own.clone();
                    range["upper"] = own.clone();
                }
            }
            range
        };
        if self.random.one_in(4) {
            let mut normal = range(self.random);
            if normal.get("upper").is_some()
                && normal.get("lower").is_none()
                && self.random.one_in(2)
            {
                normal["upper_included"] = Value::from(false);
            }
            value.insert(String::from("normal_range"), normal);
        }
        if self.random.one_in(5) {
            let mut all = Vec::new();
            for _ in 0..=self.random.below(2) {
                let meaning = if self.random.one_in(2) {
                    self.coded()
                } else {
                    self.plain()
                };
                let mut range = range(self.random);
                if range.get("upper").is_none() && self.random.one_in(2) {
                    range["lower_included"] = Value::from(false);
                }
                all.push(json!({ "_type": "REFERENCE_RANGE", "meaning": meaning, "range": range }));
            }
            value.insert(String::from("other_reference_ranges"), Value::from(all));
        }
        if self.random.one_in(5) {
            let phrase = json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "openehr_normal_statuses" }, "code_string": "N" });
            value.insert(String::from("normal_status"), phrase);
        }
        let class = value
            .get("_type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        // A precision that the template does not permit makes the document invalid, and it is not
        // used.
        if class == "DV_QUANTITY" && self.random.one_in(4) {
            let precision = self.random.below(4);
            value.insert(String::from("precision"), Value::from(precision));
        }
        if !matches!(class.as_str(), "DV_ORDINAL" | "DV_SCALE") && self.random.one_in(5) {
            value.insert(
                String::from("magnitude_status"),
                Value::from(self.random.pick(&["=", "<", ">", "<=", ">=", "~"])),
            );
        }
        if matches!(
            class.as_str(),
            "DV_QUANTITY" | "DV_COUNT" | "DV_PROPORTION" | "DV_DURATION"
        ) && self.random.one_in(5)
        {
            value.insert(String::from("accuracy"), Value::from(2.5));
            value.insert(
                String::from("accuracy_is_percent"),
                Value::from(self.random.one_in(2)),
            );
        }
    }
}
