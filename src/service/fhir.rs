//! The parts of HL7 FHIR (R4, R5) that terminologies need: value sets, and the responses of a
//! terminology server.

use crate::aql::{TerminologyAnswer, TerminologyError};
use crate::rm::json;
use serde_json::Value;
use std::collections::HashSet;
use std::rc::Rc;

/// The maximum nesting of `contains`.
const MAX_DEPTH: usize = 64;

/// A code with its system; the system of a bare code is empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Coding {
    /// `system`.
    pub system: Rc<str>,
    /// `code`.
    pub code: Rc<str>,
}

/// A ValueSet: its canonical URL and its definition.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ValueSet {
    /// `url`; empty if the resource has none.
    pub url: String,
    /// `version`; empty if the resource has none.
    pub version: String,
    /// `title`, else `name`.
    pub title: String,
    /// `expansion`, else `compose.include`: a code is a member if one part contains it.
    include: Vec<Part>,
    /// `compose.exclude`.
    exclude: Vec<Part>,
}

/// A part of a value set: the intersection of its concepts and all of its imports.
#[derive(Clone, PartialEq, Debug)]
struct Part {
    /// The system of all codes of the part. Empty if the part restricts no system.
    system: Rc<str>,
    concepts: Option<Vec<Coding>>,
    /// Canonical URLs, with their versions.
    imports: Vec<String>,
}

/// The maximum number of nodes of a resource: its tree takes at most 200 MB. A concept counts as
/// fifteen of them.
const MAX_NODES: usize = 3_000_000;

/// Returns the message about the answer of a terminology server that cannot be read.
fn unreadable(problem: &json::Malformed) -> String {
    format!("its answer cannot be read as JSON: {problem}")
}

impl ValueSet {
    /// Reads a ValueSet resource. If it has an expansion, that takes precedence over its
    /// definition.
    ///
    /// # Errors
    /// A message that names the missing member, or the part that only a terminology server can
    /// expand.
    pub fn read(text: &str) -> Result<ValueSet, String> {
        let resource = json::value_within(text, MAX_NODES)
            .map_err(|problem| format!("this is not JSON: {}", problem.describe(text)))?;
        let kind = string(&resource, "resourceType");
        if kind != "ValueSet" {
            return Err(format!("`resourceType` is `{kind}`: expected `ValueSet`"));
        }
        let (include, exclude) = match (resource.get("expansion"), resource.get("compose")) {
            // Some servers send an `expansion` without codes beside a definition.
            (Some(expansion), _) if expansion.get("contains").is_some() => {
                (vec![expanded_part(expansion)?], Vec::new())
            }
            (_, Some(compose)) => (parts(compose, "include")?, parts(compose, "exclude")?),
            _ => {
                return Err(String::from(
                    "the value set has neither `compose.include` nor `expansion.contains`",
                ));
            }
        };
        if include.is_empty() {
            return Err(String::from("`compose.include` is missing or empty"));
        }
        let text =
            |member| checked_text(&resource, member).map_err(|why| format!("the value set {why}"));
        let (title, name) = (text("title")?, text("name")?);
        Ok(ValueSet {
            url: text("url")?.to_owned(),
            version: text("version")?.to_owned(),
            title: if title.is_empty() { name } else { title }.to_owned(),
            include,
            exclude,
        })
    }

    /// Iterates over the URLs of its imports.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        self.include
            .iter()
            .chain(&self.exclude)
            .flat_map(|part| &part.imports)
            .map(String::as_str)
    }

    /// Iterates over the URLs of the imports whose codes it excludes.
    pub fn exclusions(&self) -> impl Iterator<Item = &str> {
        let imports = self.exclude.iter().flat_map(|part| &part.imports);
        imports.map(String::as_str)
    }

    /// Returns the number of codes that it lists itself.
    pub fn size(&self) -> usize {
        let parts = self.include.iter().chain(&self.exclude);
        parts
            .filter_map(|part| Some(part.concepts.as_ref()?.len()))
            .sum()
    }

    /// Returns the number of codes that [`ValueSet::codes`] reads.
    pub fn work<'c>(&'c self, imported: &dyn Fn(&str) -> &'c [Coding]) -> usize {
        let parts = self.include.iter().chain(&self.exclude);
        let sizes = parts.flat_map(|part| {
            let concepts = part.concepts.iter().map(Vec::len);
            concepts.chain(part.imports.iter().map(|url| imported(url).len()))
        });
        sizes.sum()
    }

    /// Returns its codes in order. `imported` returns those of an imported value set.
    pub fn codes<'c>(&'c self, imported: &dyn Fn(&str) -> &'c [Coding]) -> Vec<Coding> {
        let excluded: HashSet<&Coding> = self
            .exclude
            .iter()
            .flat_map(|part| part.codes(imported))
            .collect();
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        for coding in self.include.iter().flat_map(|part| part.codes(imported)) {
            if !excluded.contains(coding) && seen.insert(coding) {
                all.push(coding.clone());
            }
        }
        all
    }
}

impl Part {
    fn codes<'c>(&'c self, imported: &dyn Fn(&str) -> &'c [Coding]) -> Vec<&'c Coding> {
        let mut sets = self
            .concepts
            .iter()
            .map(Vec::as_slice)
            .chain(self.imports.iter().map(|url| imported(url)));
        // The first set determines the order of the codes.
        let mut common: Vec<&Coding> = sets.next().unwrap_or_default().iter().collect();
        if !self.system.is_empty() {
            common.retain(|coding| coding.system == self.system);
        }
        for set in sets {
            let set: HashSet<&Coding> = set.iter().collect();
            common.retain(|coding| set.contains(coding));
        }
        common
    }
}

fn parts(compose: &Value, member: &str) -> Result<Vec<Part>, String> {
    let all = checked_list(compose, member).map_err(|why| format!("`compose` {why}"))?;
    all.iter()
        .enumerate()
        .map(|(i, part)| read_part(part).map_err(|why| format!("`compose.{member}[{i}]` {why}")))
        .collect()
}

/// Reads an expansion, which must have all codes.
fn expanded_part(expansion: &Value) -> Result<Part, String> {
    let page = Page::of(expansion, "expansion")?;
    if page.is_partial() {
        return Err(format!(
            "`expansion` holds {} of {} concepts: send all of them",
            page.concepts,
            page.total.unwrap_or(0)
        ));
    }
    Ok(Part {
        system: "".into(),
        concepts: Some(page.codes),
        imports: Vec::new(),
    })
}

fn read_part(part: &Value) -> Result<Part, String> {
    let system: Rc<str> = checked_text(part, "system")?.into();
    let url = |url: &Value| url.as_str().map(str::to_owned);
    let imports: Option<Vec<String>> = checked_list(part, "valueSet")?.iter().map(url).collect();
    let imports = imports.ok_or_else(|| String::from("has a `valueSet` that is no URL"))?;
    if part.get("filter").is_some() {
        return Err(String::from(
            "has a `filter`, which only a terminology server can apply: list the concepts, or send the expansion",
        ));
    }
    let code = |concept: &Value| match string(concept, "code") {
        "" => Err(String::from("has a concept without `code`")),
        code => Ok(Coding {
            system: Rc::clone(&system),
            code: code.into(),
        }),
    };
    let concepts = part
        .get("concept")
        .map(|_| {
            checked_list(part, "concept")?
                .iter()
                .map(code)
                .collect::<Result<Vec<Coding>, String>>()
        })
        .transpose()?;
    match (&concepts, imports.is_empty()) {
        (None, true) => Err(format!(
            "takes all of `{system}`, which only a terminology server can expand: list the concepts"
        )),
        _ => Ok(Part {
            system,
            concepts,
            imports,
        }),
    }
}

/// The parts of a canonical URL (FHIR, References, `canonical`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Canonical<'u> {
    /// The URL.
    pub url: &'u str,
    /// The version after the last `|`; `None` for any version.
    pub version: Option<&'u str>,
}

impl<'u> Canonical<'u> {
    /// Reads `url` or `url|version`. The terms in an expression of SNOMED CT also stand between
    /// `|`; what follows the last of them is empty or has spaces, so it is no version.
    pub fn read(text: &'u str) -> Canonical<'u> {
        match text.rsplit_once('|') {
            Some((url, version)) if !version.is_empty() && !version.contains(' ') => Canonical {
                url,
                version: Some(version),
            },
            _ => Canonical {
                url: text,
                version: None,
            },
        }
    }

    /// Returns whether a value set stored under the URL has the version. A value set that does not
    /// state its version has each.
    pub fn fits(&self, set: &ValueSet) -> bool {
        let fits = |version| set.version.is_empty() || set.version == version;
        self.version.is_none_or(fits)
    }
}

/// A page of an expansion.
#[derive(PartialEq, Debug)]
pub(crate) struct Page {
    /// Its codes.
    pub codes: Vec<Coding>,
    /// The number of its concepts, including those that only group others. `total` and `offset`
    /// count them too (FHIR, ValueSet.expansion.total).
    pub concepts: usize,
    /// The total number of concepts, if the server reports it.
    pub total: Option<usize>,
    /// The number of concepts before the page, if the server reports it.
    pub offset: Option<usize>,
}

impl Page {
    /// Reads the response of `ValueSet/$expand`.
    pub fn read(text: &str) -> Result<Page, String> {
        let resource: Value =
            json::value_within(text, MAX_NODES).map_err(|problem| unreadable(&problem))?;
        match resource.get("expansion") {
            Some(expansion) => Page::of(expansion, "its answer"),
            None => Err(format!(
                "its answer is no expanded ValueSet but `{}`",
                string(&resource, "resourceType")
            )),
        }
    }

    fn of(expansion: &Value, place: &str) -> Result<Page, String> {
        let count = |member: &str| {
            let number = expansion.get(member).and_then(Value::as_u64);
            number.and_then(|n| usize::try_from(n).ok())
        };
        let mut page = Page {
            codes: Vec::new(),
            concepts: 0,
            total: count("total"),
            offset: count("offset"),
        };
        page.collect(expansion, MAX_DEPTH)
            .map_err(|why| format!("{place} {why}"))?;
        Ok(page)
    }

    /// Checks that this page follows `codes`, which are those of the first `offset` concepts.
    /// A wrong or missing page would silently remove members.
    pub fn check_follows(&self, codes: &[Coding], offset: usize) -> Result<(), String> {
        let repeats = !codes.is_empty() && !self.codes.is_empty() && codes.ends_with(&self.codes);
        if repeats || self.offset.is_some_and(|own| own != offset) {
            return Err(format!(
                "it sends another page than that from concept {offset}"
            ));
        }
        match self.total {
            Some(total) if self.concepts == 0 && offset < total => {
                Err(format!("it sends {offset} of {total} concepts"))
            }
            _ => Ok(()),
        }
    }

    fn is_partial(&self) -> bool {
        self.total.is_some_and(|total| total > self.concepts)
    }

    /// Appends the codes below `contains`, without those that only group others.
    fn collect(&mut self, from: &Value, depth: usize) -> Result<(), String> {
        for entry in checked_list(from, "contains")? {
            self.concepts += 1;
            // An abstract entry cannot be selected by a user (FHIR,
            // ValueSet.expansion.contains.abstract).
            let groups = entry.get("abstract").and_then(Value::as_bool) == Some(true);
            let code = checked_text(entry, "code")?;
            if !groups && !code.is_empty() {
                self.codes.push(Coding {
                    system: checked_text(entry, "system")?.into(),
                    code: code.into(),
                });
            }
            let depth = depth.checked_sub(1);
            let depth = depth.ok_or_else(|| format!("nests deeper than {MAX_DEPTH}"))?;
            self.collect(entry, depth)?;
        }
        Ok(())
    }
}

/// Reads the Parameters of a response to `$validate-code`, `$subsumes`, `$lookup` or `$translate`.
pub(crate) fn answer(operation: &str, text: &str) -> Result<TerminologyAnswer, TerminologyError> {
    let failed = |why: &str| TerminologyError::Failed(format!("it answers `{operation}` {why}"));
    let resource: Value = json::value_within(text, MAX_NODES)
        .map_err(|_| failed("without JSON of at most 3,000,000 values"))?;
    let all = list(&resource, "parameter");
    let named = |name: &str| all.iter().find(|p| string(p, "name") == name);
    let answer = match operation {
        "validate" => named("result")
            .and_then(|p| p.get("valueBoolean")?.as_bool())
            .map(TerminologyAnswer::Truth),
        "subsumes" => named("outcome")
            .and_then(|p| match string(p, "valueCode") {
                "equivalent" | "subsumes" => Some(true),
                "subsumed-by" | "not-subsumed" => Some(false),
                _ => None,
            })
            .map(TerminologyAnswer::Truth),
        "lookup" => named("display")
            .and_then(|p| p.get("valueString")?.as_str())
            .map(|text| TerminologyAnswer::Text(text.to_owned())),
        _ => named("result")
            .map(|_| TerminologyAnswer::Codes(all.iter().filter_map(target).collect())),
    };
    answer.ok_or_else(|| failed("without a result"))
}

/// Returns the target code of a match of a translation.
fn target(parameter: &Value) -> Option<String> {
    let parts = list(parameter, "part");
    let part = |name: &str| parts.iter().find(|p| string(p, "name") == name);
    // `equivalence` in R4, `relationship` in R5.
    let relation = part("equivalence")
        .or_else(|| part("relationship"))
        .map_or("", |p| string(p, "valueCode"));
    let coding = part("concept")
        .filter(|_| !matches!(relation, "unmatched" | "disjoint" | "not-related-to"))?
        .get("valueCoding")?;
    (string(parameter, "name") == "match")
        .then(|| string(coding, "code").to_owned())
        .filter(|code| !code.is_empty())
}

/// Returns the text of an OperationOutcome.
#[cfg(feature = "server")]
pub(crate) fn outcome(text: &str) -> Option<String> {
    let resource: Value = json::value_within(text, MAX_NODES).ok()?;
    let issue = list(&resource, "issue").first()?;
    let details = issue.get("details").map_or("", |d| string(d, "text"));
    let said = [string(issue, "diagnostics"), details]
        .into_iter()
        .find(|t| !t.is_empty())?;
    Some(said.chars().take(300).collect())
}

fn string<'v>(value: &'v Value, member: &str) -> &'v str {
    value
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns a text that a value set may have; empty where it is absent.
fn checked_text<'v>(value: &'v Value, member: &str) -> Result<&'v str, String> {
    match value.get(member) {
        None => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("has a `{member}` that is no text")),
    }
}

/// Returns a list that a value set may have; empty where it is absent.
fn checked_list<'v>(value: &'v Value, member: &str) -> Result<&'v [Value], String> {
    match value.get(member) {
        None => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(format!("has a `{member}` that is no list")),
    }
}

/// Returns a list of a response; a value of another type counts as absent.
fn list<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    checked_list(value, member).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Result<Vec<String>, String> {
        let set = ValueSet::read(text)?;
        let coding = |code: &str| {
            [Coding {
                system: "s".into(),
                code: code.into(),
            }]
        };
        let (b, c) = (coding("b"), coding("c"));
        let imported = |url: &str| if url == "u:b" { &b[..] } else { &c[..] };
        let codes = set.codes(&imported).into_iter();
        Ok(codes.map(|c| c.code.to_string()).collect())
    }

    #[test]
    fn codes_are_listed_imported_and_excluded() {
        let set = |compose: &str| format!(r#"{{"resourceType":"ValueSet","compose":{compose}}}"#);
        let concepts = r#"{"system":"s","concept":[{"code":"a"},{"code":"b"},{"code":"a"}]}"#;
        assert_eq!(
            codes(&set(&format!(r#"{{"include":[{concepts}]}}"#))).unwrap(),
            ["a", "b"]
        );
        assert_eq!(
            codes(&set(&format!(
                r#"{{"include":[{concepts},{{"valueSet":["u:c|1.0"]}}]}}"#
            )))
            .unwrap(),
            ["a", "b", "c"]
        );
        let both = r#"{"include":[{"system":"s","concept":[{"code":"a"},{"code":"b"}],"valueSet":["u:b"]}]}"#;
        assert_eq!(codes(&set(both)).unwrap(), ["b"]);
        assert_eq!(
            codes(&set(&format!(
                r#"{{"include":[{concepts}],"exclude":[{{"valueSet":["u:b"]}}]}}"#
            )))
            .unwrap(),
            ["a"]
        );
    }

    #[test]
    fn a_page_that_repeats_the_last_one_or_begins_elsewhere_is_refused() {
        let coding = |code: &str| Coding {
            system: "s".into(),
            code: code.into(),
        };
        let known = ["a", "b", "c"].map(coding);
        let follows = |codes: &[&str], offset: Option<usize>, before: &[Coding]| {
            let page = Page {
                codes: codes.iter().copied().map(coding).collect(),
                concepts: codes.len(),
                total: None,
                offset,
            };
            page.check_follows(before, before.len()).is_ok()
        };
        assert!(follows(&["d", "e"], Some(3), &known));
        assert!(follows(&["a", "b"], None, &known), "an earlier code again");
        assert!(!follows(&["b", "c"], None, &known), "the last page again");
        assert!(!follows(&["d"], Some(2), &known));
        assert!(follows(&[], None, &known), "the end of an unknown total");
        assert!(follows(&["a"], Some(0), &[]), "the first page");
        assert!(follows(&[], None, &[]), "no concept at all");
    }

    #[test]
    fn system_restricts_the_imported_codes() {
        let set = |part: &str| {
            format!(r#"{{"resourceType":"ValueSet","compose":{{"include":[{part}]}}}}"#)
        };
        let imported = |system: &str| {
            codes(&set(&format!(
                r#"{{"system":"{system}","valueSet":["u:b"]}}"#
            )))
            .unwrap()
        };
        assert_eq!(imported("s"), ["b"]);
        assert_eq!(imported("t"), [""; 0]);
        assert!(codes(&set(r#"{"system":5,"valueSet":["u:b"]}"#)).is_err());
    }

    #[test]
    fn metadata_of_another_type_is_refused() {
        for member in ["url", "version", "title", "name"] {
            let part = r#"{"system":"s","concept":[{"code":"a"}]}"#;
            let set = format!(
                r#"{{"resourceType":"ValueSet","{member}":2,"compose":{{"include":[{part}]}}}}"#
            );
            let why = codes(&set).unwrap_err();
            assert_eq!(
                why,
                format!("the value set has a `{member}` that is no text")
            );
        }
    }

    #[test]
    fn canonical_url_has_its_version_behind_the_last_bar() {
        let parts = |text| {
            let canonical = Canonical::read(text);
            (canonical.url, canonical.version)
        };
        assert_eq!(parts("http://x/a"), ("http://x/a", None));
        assert_eq!(parts("http://x/a|2.0"), ("http://x/a", Some("2.0")));
        let term = "http://snomed.info/sct?fhir_vs=ecl/<<1 |Finding|";
        assert_eq!(parts(term), (term, None));
    }

    #[test]
    fn nested_expansion_is_read_and_partial_one_refused() {
        let nested = r#"{"resourceType":"ValueSet","compose":{"include":[{"system":"s","filter":[]}]},"expansion":{"total":3,"contains":[
            {"abstract":true,"code":"group","contains":[{"code":"a","contains":[{"code":"b"}]}]}]}}"#;
        assert_eq!(codes(nested).unwrap(), ["a", "b"]);
        assert!(
            codes(&nested.replace("\"total\":3", "\"total\":7"))
                .unwrap_err()
                .contains("3 of 7")
        );
        let no_list = r#"{"resourceType":"ValueSet","expansion":{"contains":{"code":"a"}}}"#;
        assert!(codes(no_list).unwrap_err().contains("no list"));
    }

    #[test]
    fn value_set_that_only_a_server_can_expand_is_refused() {
        for compose in [
            r#"{"include":[{"system":"http://loinc.org"}]}"#,
            r#"{"include":[{"system":"s","filter":[{}]}]}"#,
            r#"{"include":[]}"#,
        ] {
            assert!(
                codes(&format!(
                    r#"{{"resourceType":"ValueSet","compose":{compose}}}"#
                ))
                .is_err(),
                "{compose}"
            );
        }
        assert!(
            codes(r#"{"resourceType":"Patient"}"#)
                .unwrap_err()
                .contains("`Patient`")
        );
        assert!(codes("[]").is_err() && codes("{").is_err());
    }

    #[test]
    fn parameters_of_server_responses_are_read() {
        let parameters =
            |inner: &str| format!(r#"{{"resourceType":"Parameters","parameter":[{inner}]}}"#);
        assert_eq!(
            answer(
                "validate",
                &parameters(r#"{"name":"result","valueBoolean":true}"#)
            ),
            Ok(TerminologyAnswer::Truth(true))
        );
        for (outcome, truth) in [
            ("equivalent", true),
            ("subsumes", true),
            ("subsumed-by", false),
            ("not-subsumed", false),
        ] {
            let text = parameters(&format!(r#"{{"name":"outcome","valueCode":"{outcome}"}}"#));
            assert_eq!(
                answer("subsumes", &text),
                Ok(TerminologyAnswer::Truth(truth))
            );
        }
        for (operation, parameter) in [
            ("subsumes", r#"{"name":"outcome","valueCode":"perhaps"}"#),
            ("subsumes", r#"{"name":"outcome"}"#),
            ("lookup", r#"{"name":"display"}"#),
        ] {
            let outcome = answer(operation, &parameters(parameter));
            assert!(
                matches!(outcome, Err(TerminologyError::Failed(_))),
                "{parameter}"
            );
        }
        let matched = r#"{"name":"result","valueBoolean":true},{"name":"match","part":[{"name":"equivalence","valueCode":"equal"},{"name":"concept","valueCoding":{"code":"x"}}]}"#;
        assert_eq!(
            answer("map", &parameters(matched)),
            Ok(TerminologyAnswer::Codes(vec!["x".into()]))
        );
        assert!(matches!(
            answer("validate", &parameters("")),
            Err(TerminologyError::Failed(_))
        ));
        assert_eq!(
            outcome(r#"{"issue":[{"details":{"text":"unknown"}}]}"#).as_deref(),
            Some("unknown")
        );
    }
}
