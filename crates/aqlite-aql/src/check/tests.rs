//! Tests of the checker: checked queries, and refused ones.

use super::*;
use crate::parse;
use crate::query::{LikeItem, Literal, Predicate, Source, Versions};
use crate::terminology::{TerminologyAnswer, TerminologyCall, TerminologyError, terminology_calls};

fn checked(text: &str, parameters: &[(&str, Parameter)]) -> Result<Query, Vec<Diagnostic>> {
    let (ast, diagnostics) = parse(text);
    let ast = ast.unwrap_or_else(|| panic!("{text}: {diagnostics:?}"));
    check(
        &ast,
        &parameters
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.clone()))
            .collect(),
        &CheckOptions::default(),
    )
}

fn ok(text: &str) -> Query {
    checked(text, &[]).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

fn codes(text: &str) -> Vec<&'static str> {
    checked(text, &[])
        .err()
        .unwrap_or_default()
        .iter()
        .map(|d| d.code)
        .collect()
}

#[test]
fn equal_paths_occur_once() {
    let query = ok(
        "SELECT c/name/value, C/name/value AS n FROM COMPOSITION c WHERE c/name/value = 'x' ORDER BY n, c/uid/value",
    );
    assert_eq!(query.paths.len(), 2);
    assert_eq!(
        query
            .order
            .iter()
            .map(|k| k.key.clone())
            .collect::<Vec<_>>(),
        [OrderBy::Column(1), OrderBy::Path(1)]
    );
    assert_eq!(
        query
            .select
            .iter()
            .map(|c| c.name.as_str())
            .collect::<Vec<_>>(),
        ["#0", "n"]
    );
}

#[test]
fn exact_spelling_comes_first() {
    let query = ok("SELECT C/uid/value FROM COMPOSITION c CONTAINS OBSERVATION C");
    assert_eq!(query.paths.first().map(|p| p.variable), Some(1));
    assert_eq!(
        codes("SELECT AB FROM COMPOSITION ab CONTAINS OBSERVATION Ab"),
        ["AQL0202"]
    );
}

#[test]
fn an_alias_with_a_path_is_the_longer_path() {
    let query = ok("SELECT o/value AS t FROM ELEMENT o ORDER BY t/magnitude");
    assert_eq!(
        query.paths.get(1).map(|p| p.text.as_str()),
        Some("o/value/magnitude")
    );
}

#[test]
fn grouped_queries_order_by_columns_only() {
    let query =
        ok("SELECT c/name/value, COUNT(*) AS n FROM COMPOSITION c ORDER BY n DESC, c/name/value");
    assert_eq!(
        query
            .order
            .iter()
            .map(|k| k.key.clone())
            .collect::<Vec<_>>(),
        [OrderBy::Column(1), OrderBy::Column(0)]
    );
    assert_eq!(
        codes("SELECT COUNT(*) FROM COMPOSITION c ORDER BY c/name/value"),
        ["AQL0405"]
    );
}

#[test]
fn a_node_with_a_name_is_two_conditions() {
    let query = ok("SELECT o/data[at0001, 'x\\'y'] FROM OBSERVATION o");
    let step = query
        .paths
        .first()
        .and_then(|p| p.steps.first())
        .and_then(|s| s.predicate.clone());
    assert!(matches!(step, Some(Predicate::And(all)) if all.len() == 2));
    assert_eq!(
        ok("SELECT o/data[at0001, 'x'], o/data[at0001 and name/value = \"x\"] FROM OBSERVATION o")
            .paths
            .len(),
        1
    );
}

#[test]
fn versions_are_latest_unless_brackets_say_otherwise() {
    let versions = |text: &str| match ok(text).from {
        Source::Class(class) => class.versions,
        _ => Versions::Latest,
    };
    assert_eq!(versions("SELECT v FROM VERSION v"), Versions::Latest);
    assert_eq!(
        versions("SELECT v FROM VERSION v[ALL_VERSIONS]"),
        Versions::All
    );
    assert_eq!(
        versions("SELECT v FROM VERSION v[commit_audit/time_committed/value > '2020']"),
        Versions::All
    );
}

#[test]
fn like_patterns_are_compiled() {
    let any = |text: &str| match ok(text).condition {
        Some(Condition::Like(_, pattern)) => pattern.items().to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        any(r"SELECT c FROM COMPOSITION c WHERE c/name/value LIKE 'a\\*b*?'"),
        [LikeItem::Text("a*b".into()), LikeItem::Any, LikeItem::One]
    );
    assert_eq!(
        any(r"SELECT c FROM COMPOSITION c WHERE c/name/value LIKE 'a\?'"),
        [LikeItem::Text("a?".into())]
    );
    assert_eq!(
        codes(r"SELECT c FROM COMPOSITION c WHERE c/name/value LIKE 'a\\b'"),
        ["AQL0403"]
    );
}

#[test]
fn parameters_are_bound_in_all_clauses() {
    let list = Parameter::List(vec![
        Parameter::Text("a".into()),
        Parameter::Number("2".into()),
    ]);
    let text = "SELECT o/data[$n, $name] FROM EHR [ehr_id/value=$e] CONTAINS OBSERVATION o[$a] WHERE o/name/value matches {$l} AND o/name/value LIKE $p";
    let given = [
        ("n", Parameter::Text("at0001".into())),
        ("name", Parameter::Text("x".into())),
        ("e", Parameter::Untyped("1".into())),
        ("a", Parameter::Text("openEHR-EHR-OBSERVATION.x.v1".into())),
        ("l", list.clone()),
        ("p", Parameter::Text("a*".into())),
    ];
    let query = checked(text, &given).unwrap();
    let Some(Condition::And(all)) = &query.condition else {
        panic!("{query:?}")
    };
    assert!(
        matches!(all.first(), Some(Condition::Matches(_, values)) if values.literals().eq(&[Literal::Text("a".into()), Literal::Number("2".into())]))
    );
    let unbound = checked(text, &[]).unwrap_err();
    assert_eq!(unbound.len(), 1);
    assert_eq!(
        unbound[0].message,
        "the parameters `$e`, `$a`, `$n`, `$name`, `$l`, `$p` are not bound"
    );
    let wrong = checked(
        "SELECT e FROM EHR e WHERE e/ehr_id/value = $l",
        &[("l", list)],
    )
    .unwrap_err();
    assert_eq!(wrong[0].code, "AQL0302");
}

#[test]
fn windows_are_checked() {
    assert_eq!(
        ok("SELECT TOP 3 BACKWARD c FROM COMPOSITION c").window,
        Some(Window::Last { limit: 3 })
    );
    assert_eq!(
        codes("SELECT TOP 3 c FROM COMPOSITION c LIMIT 3"),
        ["AQL0402"]
    );
    assert_eq!(codes("SELECT c FROM COMPOSITION c LIMIT 0"), ["AQL0401"]);
    assert_eq!(
        codes("SELECT c FROM COMPOSITION c LIMIT 99999999999999999999"),
        ["AQL0401"]
    );
}

#[test]
fn numbers_can_be_written_as_json() {
    let numbers: Vec<_> = ok("SELECT 007, .5, -.5e3, 0, 00.10 FROM EHR e")
        .select
        .into_iter()
        .map(|c| c.value)
        .collect();
    let number = |n: &str| ColumnValue::Expr(Expr::Literal(Literal::Number(n.into())));
    assert_eq!(
        numbers,
        [
            number("7"),
            number("0.5"),
            number("-0.5e3"),
            number("0"),
            number("0.10")
        ]
    );
}

#[test]
fn terminologies_answer_or_are_reported_absent() {
    struct Group;
    impl Terminology for Group {
        fn ask(&self, call: &TerminologyCall) -> Result<TerminologyAnswer, TerminologyError> {
            match call {
                TerminologyCall::Uri(_) => Ok(TerminologyAnswer::Codes(vec!["433".into()])),
                TerminologyCall::Function { .. } => Ok(TerminologyAnswer::Truth(true)),
            }
        }
    }
    let text = "SELECT c FROM COMPOSITION c WHERE c/category matches {terminology://example.org/sets/event} AND TERMINOLOGY('validate', 'x', 'y') = true";
    let (ast, _) = parse(text);
    let ast = ast.unwrap();
    assert_eq!(terminology_calls(&ast).len(), 2);
    let query = check(
        &ast,
        &Parameters::new(),
        &CheckOptions {
            terminology: Some(&Group),
            ..CheckOptions::default()
        },
    )
    .unwrap();
    assert_eq!(query.paths.get(1).map(|p| p.steps.len()), Some(3));
    assert_eq!(codes(text), ["AQL0501", "AQL0501"]);
}

#[test]
fn queries_have_limits_of_columns_conditions_and_patterns() {
    let columns = |n: usize| format!("SELECT {} FROM EHR e", vec!["e/ehr_id/value"; n].join(", "));
    assert_eq!(ok(&columns(MAX_COLUMNS)).select.len(), MAX_COLUMNS);
    assert_eq!(codes(&columns(MAX_COLUMNS + 1)), ["AQL0003"]);
    let conditions = |n: usize| {
        let all: Vec<String> = (0..n).map(|i| format!("c/name/value != 'x{i}'")).collect();
        format!("SELECT c FROM COMPOSITION c WHERE {}", all.join(" AND "))
    };
    assert!(ok(&conditions(MAX_CONDITIONS)).condition.is_some());
    assert_eq!(codes(&conditions(MAX_CONDITIONS + 1)), ["AQL0003"]);
    let predicates = |n: usize| {
        let all: Vec<String> = (0..n).map(|i| format!("name/value = 'x{i}'")).collect();
        format!(
            "SELECT c FROM COMPOSITION c[{}] WHERE EXISTS c/uid",
            all.join(" or ")
        )
    };
    assert!(ok(&predicates(MAX_CONDITIONS - 1)).condition.is_some());
    assert_eq!(codes(&predicates(MAX_CONDITIONS)), ["AQL0003"]);
    let regexes = |n: usize| {
        let all = vec!["name/value matches {/a{1000}{19}/}"; n].join(" or ");
        format!("SELECT c FROM COMPOSITION c[{all}] WHERE EXISTS c/uid")
    };
    assert!(ok(&regexes(10)).condition.is_some());
    assert_eq!(codes(&regexes(11)), ["AQL0003"]);
    let pattern = |n: usize| {
        format!(
            "SELECT c FROM COMPOSITION c WHERE c/name/value LIKE '*{}'",
            "é".repeat(n - 1)
        )
    };
    assert!(ok(&pattern(MAX_PATTERN)).condition.is_some());
    assert_eq!(codes(&pattern(MAX_PATTERN + 1)), ["AQL0403"]);
}

#[test]
fn equalities_with_one_path_become_one_list() {
    let condition = |text: &str| {
        ok(&format!("SELECT c FROM COMPOSITION c WHERE {text}"))
            .condition
            .unwrap()
    };
    let members = |condition: &Condition| match condition {
        Condition::Matches(Expr::Path(_), members) => members.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        members(&condition(
            "c/name/value = 'a' OR c/name/value = 'b' OR c/name/value = NULL"
        )),
        3
    );
    let Condition::Or(all) = condition(
        "c/name/value = 'a' OR EXISTS c/uid OR c/name/value = 'b' OR c/name/value != 'd'",
    ) else {
        panic!()
    };
    assert_eq!((members(&all[0]), all.len()), (2, 3));
    let uid = "8849182c-82ad-4088-a07f-48ead4180515";
    let kept = condition(&format!(
        "c/uid/value = '{uid}::a::1' OR c/uid/value = '{uid}::a::2'"
    ));
    assert!(
        matches!(kept, Condition::Or(all) if all.len() == 2),
        "uids are compared one by one"
    );
    let Condition::And(all) =
        condition("c/name/value = 'a' AND (c/name/value = 'b' OR c/name/value = 'c')")
    else {
        panic!()
    };
    assert_eq!(members(&all[1]), 2);
}

#[test]
fn a_key_of_order_by_counts_once() {
    let query =
        ok("SELECT c/name/value AS n FROM COMPOSITION c ORDER BY n, n DESC, c/uid/value, n");
    assert_eq!(query.order.len(), 2);
}

#[test]
fn wide_containments_do_not_nest_deep() {
    let many: Vec<String> = (0..190).map(|i| format!("OBSERVATION o{i}x")).collect();
    let query = ok(&format!(
        "SELECT COUNT(*) FROM EHR e CONTAINS ({})",
        many.join(" OR ")
    ));
    assert_eq!(query.variables.len(), 191);
    let more: Vec<String> = (0..300).map(|i| format!("OBSERVATION o{i}x")).collect();
    assert_eq!(
        codes(&format!(
            "SELECT COUNT(*) FROM EHR e CONTAINS ({})",
            more.join(" OR ")
        ))
        .first(),
        Some(&"AQL0003")
    );
}

#[test]
fn a_path_has_at_most_two_hundred_steps() {
    let path = |steps: usize| format!("o{}", "/items".repeat(steps));
    let clauses = [
        "SELECT {} FROM EHR e CONTAINS CLUSTER o",
        "SELECT o FROM EHR e CONTAINS CLUSTER o WHERE {} = 1",
        "SELECT o FROM EHR e CONTAINS CLUSTER o WHERE EXISTS {}",
        "SELECT o FROM EHR e CONTAINS CLUSTER o ORDER BY {}",
        "SELECT MAX({}) FROM EHR e CONTAINS CLUSTER o",
    ];
    for clause in clauses {
        let found = codes(&clause.replace("{}", &path(MAX_PATH_STEPS)));
        assert!(!found.contains(&"AQL0003"), "{clause}: {found:?}");
        for steps in [MAX_PATH_STEPS + 1, 40_000] {
            let found = codes(&clause.replace("{}", &path(steps)));
            assert_eq!(found, ["AQL0003"], "{clause}: {steps}");
        }
    }
    // ORDER BY continues the path behind an alias.
    let half = "/items".repeat(MAX_PATH_STEPS / 2 + 1);
    let query = format!("SELECT o{half} AS x FROM EHR e CONTAINS CLUSTER o ORDER BY x{half}");
    assert_eq!(codes(&query), ["AQL0003"]);
}

#[test]
fn lists_have_a_limit() {
    let text = "SELECT c FROM COMPOSITION c WHERE c/name/value matches {'x', $p}";
    let (ast, _) = parse(text);
    let ast = ast.unwrap();
    let bound = |values: usize| {
        Parameters::from([(
            String::from("p"),
            Parameter::List(vec![Parameter::Boolean(true); values]),
        )])
    };
    assert!(check(&ast, &bound(MAX_MEMBERS - 1), &CheckOptions::default()).is_ok());
    let wrong = check(&ast, &bound(MAX_MEMBERS), &CheckOptions::default()).unwrap_err();
    assert_eq!(
        (wrong[0].code, wrong[0].span.start),
        ("AQL0304", text.find("$p").unwrap())
    );
}

#[test]
fn warnings_do_not_displace_errors() {
    let warned = vec!["c/name/value like '%'"; 2 * DIAGNOSTICS_LIMIT].join(" OR ");
    let select = "SELECT TOP 1 c/name/value FROM EHR e CONTAINS COMPOSITION c WHERE";
    assert!(codes(&format!("{select} {warned}")).is_empty());
    assert_eq!(codes(&format!("{select} {warned} LIMIT 1")), ["AQL0402"]);
    let unknown = format!("{select} {warned} ORDER BY d/name/value");
    assert_eq!(codes(&unknown), ["AQL0202"]);
}
