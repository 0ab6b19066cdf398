//! Queries: read, checked, planned.

use crate::measure::{QUERIES, allocated};
use aqlite::aql::{
    NoLabels, Parameter, Parameters, QueryOptions, Terminology, TerminologyAnswer, TerminologyCall,
    TerminologyError, complete, diagnose, explain, format, parse, prepare, print,
};

/// A value set of many codes.
struct Codes(usize);

impl Terminology for Codes {
    fn ask(&self, _: &TerminologyCall) -> Result<TerminologyAnswer, TerminologyError> {
        let codes = (0..self.0).map(|i| format!("code {i}")).collect();
        Ok(TerminologyAnswer::Codes(codes))
    }
}

/// A query that names `$p` or a value set often: title, query, the parameter, its size in bytes.
type Mentions = (&'static str, String, Parameter, usize);

fn queries_that_mention_values() -> [Mentions; 11] {
    const LONG: usize = 3_900_000;
    let list = |values: usize| {
        let value = |i| Parameter::Text(format!("value {i}"));
        Parameter::List((0..values).map(value).collect())
    };
    let text = |text: &str| Parameter::Text(text.repeat(LONG / text.len()));
    let where_ = |conditions: &str, between: &str| {
        format!(
            "SELECT COUNT(*) FROM EHR e CONTAINS COMPOSITION c WHERE {}",
            vec![conditions; 900].join(between)
        )
    };
    let nodes = (0..190)
        .map(|i| format!("ELEMENT a{i}[at0001, $p]"))
        .collect::<Vec<_>>()
        .join(" AND ");
    [
        (
            "a text",
            where_("c/name/value = $p", " AND "),
            text("x"),
            LONG,
        ),
        (
            "alternatives",
            where_("c/name/value = $p", " OR "),
            text("x"),
            LONG,
        ),
        (
            "a text of digits",
            where_("c/name/value != $p", " OR "),
            text("1"),
            LONG,
        ),
        (
            "a list",
            where_("c/name/value matches {$p}", " OR "),
            list(50_000),
            2_000_000,
        ),
        (
            "a list of uids",
            where_("c/uid/value matches {$p}", " OR "),
            list(50_000),
            2_000_000,
        ),
        (
            "a list beside a value",
            where_("c/name/value matches {$p, 'x'}", " OR "),
            list(49_000),
            2_000_000,
        ),
        (
            "a list again and again in one",
            format!(
                "SELECT e FROM EHR e WHERE e/ehr_id/value matches {{{}}}",
                vec!["$p"; 500].join(",")
            ),
            list(100),
            2_000_000,
        ),
        (
            "a pattern",
            where_("c/name/value LIKE $p", " OR "),
            Parameter::Text("*a?".repeat(3_300)),
            2_000_000,
        ),
        (
            "a name in brackets",
            format!("SELECT COUNT(*) FROM EHR e CONTAINS COMPOSITION c CONTAINS ({nodes})"),
            text("x"),
            LONG,
        ),
        (
            "a node id",
            format!(
                "SELECT COUNT(*) FROM EHR e CONTAINS COMPOSITION c CONTAINS ({})",
                nodes.replace("at0001, $p", "$p")
            ),
            text("at0001"),
            LONG,
        ),
        (
            "a value set",
            where_(
                "c/name/value matches {terminology://x/ValueSet/$expand?url=y}",
                " OR ",
            ),
            Parameter::Null,
            8_000_000,
        ),
    ]
}

/// The size of a parameter or value set is counted once, however often a query names it.
fn values_are_shared_by_their_mentions() {
    for (what, query, value, size) in queries_that_mention_values() {
        let parameters = Parameters::from([(String::from("p"), value)]);
        let options = QueryOptions {
            terminology: Some(&Codes(100_000)),
            ..QueryOptions::default()
        };
        let prepared = allocated(|| drop(prepare(&query, &parameters, &options)));
        let explained = allocated(|| drop(explain(&query, &parameters, &options, &[])));
        // The parser, the plan and the conditions themselves allocate some megabytes.
        let most = 20_000_000 + 5 * size;
        for (step, bytes) in [("prepared", prepared), ("explained", explained)] {
            assert!(
                bytes <= most,
                "{what}, {step}: {bytes} bytes, at most {most} expected"
            );
        }
    }
}

/// Unbound parameters are reported in a short message, and in linear time.
fn unbound_parameters_are_reported_shortly() {
    let names: Vec<String> = (0..40_000).map(|i| format!("$p{i}")).collect();
    let query = format!(
        "SELECT e FROM EHR e WHERE e/ehr_id/value matches {{{}}}",
        names.join(",")
    );
    let mut length = 0;
    let bytes = allocated(|| {
        let found = prepare(&query, &Parameters::new(), &QueryOptions::default()).unwrap_err();
        length = found.iter().map(|d| d.message.len()).sum();
    });
    assert!(
        length < 1_000 && bytes < 100_000_000,
        "{length}, {bytes} bytes"
    );
}

/// Paths behind the alias of a long path are bounded in total.
fn paths_behind_an_alias_are_bounded() {
    let query = format!(
        "SELECT c/{} AS x FROM CLUSTER c ORDER BY {}",
        vec!["items"; 10_000].join("/"),
        vec!["x/name"; 20_000].join(", ")
    );
    let bytes = allocated(|| {
        let found = prepare(&query, &Parameters::new(), &QueryOptions::default()).unwrap_err();
        assert_eq!(
            found.first().map(|d| d.code),
            Some("AQL0003"),
            "{:?}",
            found.first()
        );
    });
    assert!(bytes < 500_000_000, "{bytes} bytes");
}

pub fn all() {
    values_are_shared_by_their_mentions();
    unbound_parameters_are_reported_shortly();
    paths_behind_an_alias_are_bounded();
    let many = |part: &str, between: &str, count: usize| vec![part; count].join(between);
    let queries = [
        (
            "many columns",
            format!("SELECT {} FROM EHR e", many("e/ehr_id/value", ", ", 10_000)),
        ),
        (
            "many conditions",
            format!(
                "SELECT e FROM EHR e WHERE {}",
                many("e/ehr_id/value = 'x'", " AND ", 8_000)
            ),
        ),
        (
            "conditions inside one another",
            format!(
                "SELECT e FROM EHR e WHERE {}e/ehr_id/value = 'x'{}",
                "(".repeat(50_000),
                ")".repeat(50_000)
            ),
        ),
        (
            "negations inside one another",
            format!(
                "SELECT e FROM EHR e WHERE {} e/ehr_id/value = 'x'",
                "NOT ".repeat(50_000)
            ),
        ),
        (
            "a long list",
            format!(
                "SELECT e FROM EHR e WHERE e/ehr_id/value matches {{{}}}",
                many("'x'", ", ", 40_000)
            ),
        ),
        (
            "containments inside one another",
            format!(
                "SELECT e FROM EHR e {}",
                many("CONTAINS CLUSTER", " ", 10_000)
            ),
        ),
        (
            "many containments",
            format!(
                "SELECT e FROM EHR e CONTAINS ({})",
                many("ELEMENT", " AND ", 10_000)
            ),
        ),
        (
            "a long path",
            format!(
                "SELECT c/{} FROM COMPOSITION c",
                many("items[at0001]", "/", 10_000)
            ),
        ),
        (
            "a long text",
            format!(
                "SELECT e FROM EHR e WHERE e/ehr_id/value = '{}'",
                "x".repeat(200_000)
            ),
        ),
        ("a long word", "x".repeat(200_000)),
        (
            "an expression with repetitions",
            format!(
                "SELECT o FROM OBSERVATION o[{{/{}/}}]",
                "(a{1000}){15}".repeat(1_000)
            ),
        ),
    ];
    for (what, query) in &queries {
        QUERIES.check(what, query.len(), || {
            let (ast, _) = parse(query);
            let _ = ast.as_ref().map(print);
            let _ = (
                format(query),
                diagnose(query),
                complete(query, query.len(), &NoLabels),
            );
            let _ = prepare(query, &Parameters::new(), &QueryOptions::default());
        });
    }
}
