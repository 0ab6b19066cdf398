//! The cost of queries. Work is counted, never timed, so these tests assert counts.

use super::notation::Repository;
use super::rows::NOW;
use aqlite::aql::{
    Budget, Parameter, Parameters, Progress, QueryError, QueryOptions, Run, prepare,
};
use aqlite::document::Batch;

/// The rows of a query within a budget or the reason of its end, the work that it took, and the
/// maximum work between two pauses.
pub struct Outcome {
    pub rows: Result<Vec<String>, QueryError>,
    pub work: u64,
    pub longest_piece: u64,
}

/// Runs a query over batches, piece by piece.
pub fn measured(
    query: &str,
    parameters: &Parameters,
    options: &QueryOptions<'_>,
    batches: &[&Batch],
    budget: Budget,
) -> Outcome {
    let plan = prepare(query, parameters, options)
        .unwrap_or_else(|found| panic!("{query}: {}", found[0].one_line(query)));
    let go_on = || false;
    let mut run = Run::new(&plan, NOW, budget, &go_on);
    let mut longest_piece = 0;
    'batches: for batch in batches {
        loop {
            let before = run.work();
            let progress = run.advance(batch);
            longest_piece = longest_piece.max(run.work().saturating_sub(before));
            match progress {
                Progress::Paused => {}
                Progress::More => break,
                Progress::Enough => break 'batches,
            }
        }
    }
    loop {
        let before = run.work();
        let progress = run.close();
        longest_piece = longest_piece.max(run.work().saturating_sub(before));
        if progress != Progress::Paused {
            break;
        }
    }
    let work = run.work();
    let rows = run.finish().map(|result| {
        let written = |row: aqlite::aql::Row<'_>| {
            row.iter()
                .map(|cell| {
                    let mut out = String::new();
                    cell.write_json(&mut out);
                    out
                })
                .collect::<Vec<_>>()
                .join(", ")
        };
        result
            .rows()
            .map(|row| format!("[{}]", written(row)))
            .collect()
    });
    Outcome {
        rows,
        work,
        longest_piece,
    }
}

/// Returns one document with `count` elements.
fn elements(count: usize) -> Batch {
    let head = "EHR e1\nCOMPOSITION[openEHR-EHR-COMPOSITION.x.v1] c\n  OBSERVATION[openEHR-EHR-OBSERVATION.a.v1] o\n    HISTORY[at0001] h\n      POINT_EVENT[at0002] e = 2020-01-01T00:00Z\n        ITEM_TREE[at0003] t\n";
    let lines: String = (0..count)
        .map(|i| format!("          ELEMENT[at{:04}] x = {i} mm\n", i + 10))
        .collect();
    Repository::read(&format!("{head}{lines}"))
        .expect("it is written right")
        .batch()
}

fn count(query: &str, batch: &Batch, budget: Budget) -> Outcome {
    measured(
        query,
        &Parameters::new(),
        &QueryOptions::default(),
        &[batch],
        budget,
    )
}

const PAIRS: &str = "SELECT COUNT(*) FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b)";
const BOMB: &str =
    "SELECT COUNT(*) FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b AND ELEMENT c AND ELEMENT d)";

#[test]
fn work_grows_with_the_combinations_that_are_tried() {
    let of = |n: usize| count(PAIRS, &elements(n), Budget::default());
    let (few, many) = (of(20), of(80));
    assert_eq!(
        (few.rows, many.rows),
        (Ok(vec!["[400]".into()]), Ok(vec!["[6400]".into()]))
    );
    let ratio = many.work as f64 / few.work as f64;
    assert!(
        (12.0..20.0).contains(&ratio),
        "16 times the combinations took {ratio} times the work"
    );
}

#[test]
fn a_product_over_the_budget_is_refused_while_it_grows() {
    let batch = elements(60);
    for budget in [10_000, 1_000_000, 30_000_000] {
        let outcome = count(
            BOMB,
            &batch,
            Budget {
                work: budget,
                ..Budget::default()
            },
        );
        assert_eq!(outcome.rows, Err(QueryError::TooMuchWork(budget)));
        assert!(
            outcome.work < budget + 10_000,
            "{} of {budget} units",
            outcome.work
        );
    }
}

#[test]
fn one_document_is_left_and_gone_on_with_between_pauses() {
    let batch = elements(30);
    let whole = count(
        BOMB,
        &batch,
        Budget {
            piece: u64::MAX,
            ..Budget::default()
        },
    );
    let pieces = count(
        BOMB,
        &batch,
        Budget {
            piece: 50_000,
            ..Budget::default()
        },
    );
    assert_eq!(
        (&pieces.rows, whole.rows),
        (&Ok(vec!["[810000]".into()]), Ok(vec!["[810000]".into()]))
    );
    assert!(
        pieces.longest_piece < 60_000,
        "a piece of {} units",
        pieces.longest_piece
    );
    assert!(
        pieces.work < whole.work + whole.work / 4,
        "{} units in pieces, {} at once",
        pieces.work,
        whole.work
    );
}

#[test]
fn joins_of_anchors_are_left_and_gone_on_with_too() {
    let entries: String = (0..120)
        .map(|_| "  OBSERVATION[openEHR-EHR-OBSERVATION.a.v1] o\n".to_owned())
        .collect();
    let text = format!("EHR e1\nCOMPOSITION[openEHR-EHR-COMPOSITION.x.v1] c\n{entries}");
    let batch = Repository::read(&text)
        .expect("it is written right")
        .batch();
    let query = "SELECT COUNT(*) FROM EHR e CONTAINS COMPOSITION c CONTAINS (OBSERVATION a AND OBSERVATION b AND OBSERVATION d)";
    let outcome = count(
        query,
        &batch,
        Budget {
            piece: 1_000_000,
            ..Budget::default()
        },
    );
    assert_eq!(outcome.rows, Ok(vec!["[1728000]".into()]));
    assert!(
        outcome.longest_piece < 1_100_000,
        "a piece of {} units",
        outcome.longest_piece
    );
    let plain = count(
        query,
        &batch,
        Budget {
            plain: true,
            ..Budget::default()
        },
    );
    assert_eq!(plain.rows, outcome.rows);
}

#[test]
fn a_search_for_existence_is_left_and_gone_on_with_between_pauses() {
    let batch = elements(3_000);
    let never = "ELEMENT z[openEHR-EHR-ELEMENT.never.v1]";
    for contained in [
        format!("(ELEMENT a CONTAINS {never})"),
        format!("(LOCATABLE a CONTAINS LOCATABLE b CONTAINS {never})"),
        format!("((ELEMENT a CONTAINS {never}) OR ELEMENT d[at9999])"),
    ] {
        let query =
            format!("SELECT COUNT(*) FROM EHR e CONTAINS COMPOSITION c NOT CONTAINS {contained}");
        let budget = |piece| Budget {
            piece,
            plain: true,
            ..Budget::default()
        };
        let whole = count(&query, &batch, budget(u64::MAX));
        for piece in [1, 1_000, 20_000] {
            let pieces = count(&query, &batch, budget(piece));
            assert_eq!(pieces.rows, Ok(vec!["[1]".into()]), "{contained}");
            assert!(
                pieces.longest_piece < piece + 5_000,
                "a piece of {} units for {contained}",
                pieces.longest_piece
            );
            assert!(
                piece < 1_000 || pieces.work < 2 * whole.work,
                "{} units in pieces, {} at once: {contained}",
                pieces.work,
                whole.work
            );
        }
    }
}

#[test]
fn wide_rows_cost_work_by_their_cells() {
    let batch = elements(2_000);
    let list = |path: &str, columns: usize| {
        let one = |i: usize| format!("a/{path} AS c{i}");
        (0..columns).map(one).collect::<Vec<_>>().join(", ")
    };
    let keys = |columns: usize| {
        let one = |i: usize| format!("c{i}");
        (0..columns).map(one).collect::<Vec<_>>().join(", ")
    };
    let from = "FROM EHR e CONTAINS COMPOSITION c CONTAINS ELEMENT a";
    let queries = |columns: usize| {
        [
            format!(
                "SELECT DISTINCT {} {from}",
                list("value/magnitude", columns)
            ),
            format!(
                "SELECT {} {from} ORDER BY {}",
                list("value/units", columns),
                keys(columns)
            ),
            format!(
                "SELECT DISTINCT {} {from} ORDER BY c0",
                list("value/magnitude", columns)
            ),
            format!("SELECT {}, COUNT(*) {from}", list("value/units", columns)),
        ]
    };
    for (narrow, wide) in queries(1).iter().zip(queries(200)) {
        for plain in [false, true] {
            let budget = Budget {
                plain,
                piece: 1_000_000,
                bytes: usize::MAX,
                ..Budget::default()
            };
            let (few, many) = (count(narrow, &batch, budget), count(&wide, &batch, budget));
            assert_eq!(
                few.rows.map(|rows| rows.len()),
                many.rows.map(|rows| rows.len())
            );
            assert!(
                many.work > 2_000 * 200 * 16,
                "{} units, {} for one column: {narrow}",
                many.work,
                few.work
            );
            assert!(
                many.longest_piece < 4_000_000,
                "a piece of {} units: {narrow}, plain: {plain}",
                many.longest_piece
            );
        }
    }
}

#[test]
fn long_texts_are_counted_before_they_are_kept() {
    const LENGTH: usize = 1_000_000;
    let name = "x".repeat(LENGTH);
    let text = format!("EHR e1\nCOMPOSITION[openEHR-EHR-COMPOSITION.x.v1] {name}\n");
    let batch = Repository::read(&text)
        .expect("it is written right")
        .batch();
    let columns = |count: usize, column: &str| vec![column; count].join(", ");
    let (name, from) = ("c/name/value", "FROM EHR e CONTAINS COMPOSITION c");
    let keys = (0..4).map(|i| format!("SUBSTRING({name}, {}) AS k{i}", i + 1));
    let keys: Vec<String> = keys.collect();
    let cases = [
        // The room of two texts, and of some more.
        (format!("MAX({name}), MIN({name})"), true),
        (columns(50, &format!("MAX({name})")), true),
        (
            format!("MAX({name}), MIN({name}), COUNT(DISTINCT {name})"),
            false,
        ),
        (columns(200, name), true),
        (format!("DISTINCT {}", columns(200, name)), true),
        (columns(4, name) + ", COUNT(*)", false),
        (keys.join(", "), false),
        (columns(20, &format!("LENGTH({name})")), true),
    ];
    for (select, fits) in cases {
        for plain in [false, true] {
            let budget = Budget {
                bytes: 5 * LENGTH / 2,
                plain,
                ..Budget::default()
            };
            let outcome = count(&format!("SELECT {select} {from}"), &batch, budget);
            match outcome.rows {
                Ok(_) => assert!(fits, "{select}"),
                Err(error) => assert!(
                    !fits && error == QueryError::TooLarge(budget.bytes),
                    "{select}: {error:?}"
                ),
            }
        }
    }
    let length = count(
        &format!("SELECT LENGTH({name}) {from}"),
        &batch,
        Budget::default(),
    );
    assert_eq!(length.rows, Ok(vec![format!("[{LENGTH}]")]));
    assert!(length.work < LENGTH as u64, "{} units", length.work);
}

#[test]
fn existence_below_a_node_costs_no_product() {
    let batch = elements(60);
    let never = "ELEMENT z[openEHR-EHR-ELEMENT.never.v1]";
    for contained in [
        format!("(ELEMENT a AND ELEMENT b AND ELEMENT d AND ELEMENT f AND {never})"),
        format!("(LOCATABLE a CONTAINS LOCATABLE b CONTAINS LOCATABLE d CONTAINS {never})"),
        format!(
            "((ELEMENT a AND ELEMENT b AND {never}) OR (ELEMENT d AND ELEMENT f AND {}))",
            never.replace(" z", " y")
        ),
    ] {
        let outcome = count(
            &format!("SELECT COUNT(*) FROM EHR e CONTAINS COMPOSITION c NOT CONTAINS {contained}"),
            &batch,
            Budget::default(),
        );
        assert_eq!(outcome.rows, Ok(vec!["[1]".into()]), "{contained}");
        assert!(
            outcome.work < 1_000_000,
            "{} units for {contained}",
            outcome.work
        );
    }
}

#[test]
fn repeated_nodes_of_one_variable_are_not_multiplied_without_end() {
    let batch = elements(400);
    let path = |i: usize| format!("o/data/events/data/items[at{i:04}]/value, ");
    let paths: String = (10..12).map(path).collect();
    let fits = format!("SELECT {paths} o FROM EHR e CONTAINS OBSERVATION o");
    assert!(count(&fits, &batch, Budget::default()).rows.is_ok());
    let list = "o/data/events/data/items[name/value='x']/value/magnitude, o/data/events/data/items[archetype_node_id!='y']/value/magnitude, o/data/events/data/items[name/value!='y']/value/magnitude";
    let outcome = count(
        &format!("SELECT {list} FROM EHR e CONTAINS OBSERVATION o"),
        &batch,
        Budget::default(),
    );
    assert!(!matches!(outcome.rows, Ok(rows) if rows.len() > 1_000_000));
}

#[test]
fn patterns_and_made_texts_are_counted() {
    let long = "a".repeat(100_000);
    let text = format!("EHR e1\nCOMPOSITION[openEHR-EHR-COMPOSITION.x.v1] {long}\n");
    let batch = Repository::read(&text)
        .expect("it is written right")
        .batch();
    let from = "FROM EHR e CONTAINS COMPOSITION c";
    let slow = format!(
        "SELECT COUNT(*) {from} WHERE c/name/value LIKE '*{}b'",
        "a?".repeat(2_000)
    );
    assert!(matches!(
        count(&slow, &batch, Budget::default()).rows,
        Err(QueryError::TooMuchWork(_))
    ));
    let searched = format!(
        "SELECT COUNT(*) {from} WHERE c/name/value LIKE '*{}b*'",
        "a".repeat(2_000)
    );
    assert_eq!(
        count(&searched, &batch, Budget::default()).rows,
        Ok(vec!["[0]".into()])
    );
    let made = format!(
        "SELECT CONCAT({}) {from}",
        vec!["c/name/value"; 400].join(", ")
    );
    assert!(matches!(
        count(&made, &batch, Budget::default()).rows,
        Err(QueryError::TooMuchWork(_))
    ));
}

#[test]
fn a_long_list_costs_each_row_as_much_as_a_short_one() {
    let batch = elements(2_000);
    let query =
        "SELECT COUNT(*) FROM EHR e CONTAINS ELEMENT a WHERE a/value/magnitude matches {$p}";
    let work = |values: usize| {
        // The same ten rows are found, whatever else the list contains.
        let list = (0..values)
            .map(|i| Parameter::Number((if i < 10 { i } else { 100_000 + i }).to_string()))
            .collect();
        let parameters = Parameters::from([(String::from("p"), Parameter::List(list))]);
        let outcome = measured(
            query,
            &parameters,
            &QueryOptions::default(),
            &[&batch],
            Budget::default(),
        );
        assert_eq!(outcome.rows, Ok(vec![String::from("[10]")]));
        outcome.work
    };
    assert_eq!(work(50_000), work(10));
}

#[test]
fn a_long_text_costs_a_query_its_length_once() {
    let batch = elements(10);
    let long = Parameter::Text("x".repeat(3_900_000));
    let parameters = Parameters::from([(String::from("p"), long)]);
    let started = std::time::Instant::now();
    for (condition, between) in [
        ("a/name/value = $p", " OR "),
        ("a/name/value = $p", " AND "),
        ("a/name/value matches {$p, $p, $p}", " OR "),
        ("c/uid/value = $p", " OR "),
        ("c/uid/value matches {$p, $p, $p}", " AND "),
    ] {
        let query = format!(
            "SELECT COUNT(*) FROM EHR e CONTAINS COMPOSITION c CONTAINS ELEMENT a WHERE {}",
            vec![condition; 900].join(between)
        );
        let outcome = measured(
            &query,
            &parameters,
            &QueryOptions::default(),
            &[&batch],
            Budget::default(),
        );
        assert_eq!(outcome.rows, Ok(vec![String::from("[0]")]), "{condition}");
    }
    // Reading the text again for each of the 900 rows would be tens of gigabytes.
    let time = started.elapsed();
    assert!(time < std::time::Duration::from_secs(10), "{time:?}");
}

#[test]
fn a_row_that_shows_a_whole_document_again_and_again_writes_it_once() {
    let batch = elements(300);
    let outcome = count(
        "SELECT DISTINCT c, l FROM COMPOSITION c CONTAINS ELEMENT l LIMIT 1000",
        &batch,
        Budget::default(),
    );
    assert_eq!(outcome.rows.map(|rows| rows.len()), Ok(300));
    let once = count("SELECT c FROM COMPOSITION c", &batch, Budget::default()).work;
    assert!(
        outcome.work < 10 * once,
        "{} units, {once} for the document",
        outcome.work
    );
    let tight = Budget {
        bytes: 150_000,
        ..Budget::default()
    };
    let all = count(
        "SELECT DISTINCT c, l FROM COMPOSITION c CONTAINS LOCATABLE l",
        &batch,
        tight,
    );
    assert_eq!(all.rows, Err(QueryError::TooLarge(150_000)));
}

#[test]
fn pages_of_objects_cost_the_objects_of_the_page() {
    let document = |name: &str| format!("COMPOSITION[openEHR-EHR-COMPOSITION.x.v1] {name}\n");
    let small: String = (0..40).map(|i| document(&format!("small{i}"))).collect();
    let long = document(&"a".repeat(9_000_000));
    let with = |long: &str| {
        let text = format!("EHR e1\n{}{long}{small}", document("first"));
        Repository::read(&text)
            .expect("it is written right")
            .batch()
    };
    let (with, without) = (with(&long), with(""));
    for (condition, from) in [("", 3), (" WHERE c/name/value LIKE 'small*'", 1)] {
        for offset in [from, 20, 37] {
            let page = |batch: &Batch, offset: usize| {
                let from = "FROM EHR e CONTAINS COMPOSITION c";
                let query = format!("SELECT c {from}{condition} LIMIT 2 OFFSET {offset}");
                count(&query, batch, Budget::default())
            };
            let hit = usize::from(condition.is_empty());
            let (far, near) = (page(&with, offset), page(&without, offset - hit));
            assert_eq!(far.rows, near.rows, "{condition} {offset}");
            assert!(far.rows.is_ok_and(|rows| rows.len() == 2));
            assert!(far.work < near.work + 6_000_000, "{} units", far.work);
        }
    }
    let all = count(
        "SELECT c FROM EHR e CONTAINS COMPOSITION c LIMIT 3",
        &with,
        Budget::default(),
    );
    assert!(
        all.rows.is_ok_and(|rows| rows.len() == 3),
        "a long object is shown"
    );
}

#[test]
fn distinct_stops_when_the_window_is_full() {
    let batch = elements(2_000);
    let all = count(
        "SELECT DISTINCT a/value/units FROM COMPOSITION c CONTAINS (ELEMENT a AND ELEMENT b) LIMIT 2",
        &elements(50),
        Budget::default(),
    );
    assert_eq!(all.rows, Ok(vec!["[\"mm\"]".into()]));
    let first = count(
        "SELECT DISTINCT a/value/magnitude FROM COMPOSITION c CONTAINS (ELEMENT a AND ELEMENT b) LIMIT 2",
        &batch,
        Budget::default(),
    );
    assert_eq!(first.rows, Ok(vec!["[0]".into(), "[1]".into()]));
    assert!(first.work < 3_000_000, "{} units", first.work);
}

#[test]
fn first_rows_of_a_join_take_the_room_of_a_window() {
    let patient = |ehr: usize| {
        let documents = (0..300).map(|i| format!("COMPOSITION c{ehr}-{i}\n"));
        format!("EHR e{ehr}\n{}", documents.collect::<String>())
    };
    let batch = Repository::read(&(0..3).map(patient).collect::<String>())
        .expect("it is written right")
        .batch();
    let query = "SELECT a/name/value, b/name/value FROM EHR e CONTAINS (COMPOSITION a AND COMPOSITION b) LIMIT 2 OFFSET 299";
    let tight = Budget {
        bytes: 200_000,
        ..Budget::default()
    };
    let outcome = count(query, &batch, tight);
    let expected = [r#"["c0-0", "c0-299"]"#, r#"["c0-1", "c0-0"]"#];
    assert_eq!(outcome.rows, Ok(expected.map(String::from).to_vec()));
    assert!(outcome.work < 1_000_000, "{} units", outcome.work);
}

#[test]
fn costly_rows_are_tested_and_folded_in_small_pieces() {
    let documents: String = (0..40)
        .map(|i| {
            let elements: String = (0..40).map(|j| format!("          ELEMENT[at{:04}] x{i}-{j} = {j} mm\n", j + 10)).collect();
            let head = "  OBSERVATION[openEHR-EHR-OBSERVATION.a.v1] o\n    HISTORY[at0001] h\n      POINT_EVENT[at0002] e = 2020-01-01T00:00Z\n";
            format!("EHR e{i}\nCOMPOSITION[openEHR-EHR-COMPOSITION.x.v1] c{i}\n{head}        ITEM_TREE[at0003] t\n{elements}")
        })
        .collect();
    let batch = Repository::read(&documents)
        .expect("it is written right")
        .batch();
    let from = "FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o";
    let item = "o/data/events/data/items";
    let tests: Vec<String> = (0..200)
        .map(|i| {
            format!(
                "{item}/name/value > 'z{i}' OR {item}/value/magnitude = {}",
                i + 1_000
            )
        })
        .collect();
    let columns: Vec<String> = (0..200)
        .map(|_| format!("COUNT(DISTINCT {item}/name/value)"))
        .collect();
    for query in [
        format!("SELECT COUNT(*) {from} WHERE {}", tests.join(" OR ")),
        format!("SELECT {} {from}", columns.join(", ")),
        format!(
            "SELECT COUNT(*) {from} WHERE {item}/name/value LIKE '*{}'",
            "?*".repeat(300)
        ),
    ] {
        let pieces = count(
            &query,
            &batch,
            Budget {
                piece: 100_000,
                ..Budget::default()
            },
        );
        assert!(
            pieces.longest_piece < 700_000,
            "a piece of {} units of {}: {:.80}",
            pieces.longest_piece,
            pieces.work,
            query
        );
        assert_eq!(
            pieces.rows,
            count(
                &query,
                &batch,
                Budget {
                    plain: true,
                    ..Budget::default()
                }
            )
            .rows,
            "{query:.80}"
        );
    }
}

#[test]
fn many_rows_are_put_in_order_in_pieces() {
    let batch = elements(150);
    let from = "FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b)";
    let (a, b) = ("a/value/magnitude", "b/value/magnitude");
    let pairs = || (0..150).flat_map(|a| (0..150).map(move |b| (a, b)));
    let written = |rows: Vec<(i32, i32)>| {
        rows.into_iter()
            .map(|(a, b)| format!("[{a}, {b}]"))
            .collect::<Vec<_>>()
    };
    for (query, sorted) in [
        (format!("SELECT {a}, {b} {from} ORDER BY {b} DESC, {a}"), {
            let mut all: Vec<(i32, i32)> = pairs().collect();
            all.sort_by_key(|(a, b)| (-b, *a));
            all
        }),
        (
            format!("SELECT {a}, {b}, COUNT(*) {from} ORDER BY {b}, {a} DESC"),
            {
                let mut all: Vec<(i32, i32)> = pairs().collect();
                all.sort_by_key(|(a, b)| (*b, -a));
                all
            },
        ),
        (
            format!("SELECT DISTINCT {a}, {b} {from} ORDER BY {a}"),
            pairs().collect(),
        ),
    ] {
        let plan =
            prepare(&query, &Parameters::new(), &QueryOptions::default()).expect("it is a query");
        let go_on = || false;
        let mut run = Run::new(&plan, NOW, Budget::default(), &go_on);
        run.push(&batch);
        let mut pieces = 0;
        while run.close() == Progress::Paused {
            pieces += 1;
        }
        assert!(pieces > 1, "{pieces} pieces: {query}");
        let found = run.finish().expect("it is within its budget");
        let found: Vec<String> = found
            .rows()
            .map(|row| {
                let cells = row.iter().take(2).map(|cell| {
                    let mut out = String::new();
                    cell.write_json(&mut out);
                    out
                });
                format!("[{}]", cells.collect::<Vec<_>>().join(", "))
            })
            .collect();
        assert!(found == written(sorted), "{query}");
    }
}

#[test]
fn few_rows_are_put_in_order_without_a_pause() {
    let batch = elements(10);
    let from = "FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b)";
    let (a, b) = ("a/value/magnitude", "b/value/magnitude");
    for query in [
        format!("SELECT {a} {from}"),
        format!("SELECT {a}, {b} {from} ORDER BY {b} DESC, {a}"),
        format!("SELECT {a}, COUNT(*) {from} ORDER BY {a}"),
        format!("SELECT DISTINCT {a} {from}"),
    ] {
        let plan =
            prepare(&query, &Parameters::new(), &QueryOptions::default()).expect("it is a query");
        let go_on = || false;
        let mut run = Run::new(&plan, NOW, Budget::default(), &go_on);
        run.push(&batch);
        assert_eq!(run.close(), Progress::Enough, "{query}");
        assert!(!run.finish().expect("it is within its budget").is_empty());
    }
}
