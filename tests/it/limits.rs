//! `docs/security.md`: the table of limits equals the configuration, the variables that the worker reads, and the constants of the code.

use aqlite::service::Limits;
use std::collections::BTreeMap;
use std::path::Path;

/// A row of the table: `| limit | variable or constant | default | unit | over it | enforced in |`.
struct Row {
    limit: String,
    names: Vec<String>,
    default: i128,
    unit: String,
    status: String,
    file: String,
}

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The texts between back-ticks of a cell.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A number as people write it: `10,000,000`, or `10_000_000` in code.
fn number(text: &str) -> i128 {
    let digits: String = text.chars().filter(|c| c.is_ascii_digit()).collect();
    digits.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// The rows of the table below the heading `## Limits`.
fn rows() -> Vec<Row> {
    let page = read("docs/security.md");
    let section = page.split("\n## Limits\n").nth(1).expect("the page has a section about limits");
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [limit, names, default, unit, status, file] = cells[..] else { panic!("six cells are expected: {line}") };
        let file = quoted(file).first().cloned().unwrap_or_else(|| panic!("no file is named: {line}"));
        Row { limit: limit.to_owned(), names: quoted(names), default: number(default), unit: unit.to_owned(), status: status.to_owned(), file }
    };
    lines.map(row).collect()
}

/// The default of each variable, in the unit in which a deployment writes it. A limit that is added to [`Limits`] is missing here
/// until it is named, because the pattern has no rest.
fn defaults() -> BTreeMap<&'static str, i128> {
    let Limits { body, template, aql, fetch_default, fetch_maximum, query_time, result, guide_ehrs } = Limits::default();
    BTreeMap::from([
        ("LIMIT_BODY", body as i128),
        ("LIMIT_TEMPLATE", template as i128),
        ("LIMIT_AQL", aql as i128),
        ("LIMIT_FETCH_DEFAULT", i128::from(fetch_default)),
        ("LIMIT_FETCH", i128::from(fetch_maximum)),
        ("LIMIT_QUERY_MS", i128::from(query_time / 1000)),
        ("LIMIT_RESULT", result as i128),
        ("LIMIT_GUIDE_EHRS", guide_ehrs as i128),
    ])
}

fn is_variable(name: &str) -> bool {
    name.starts_with("LIMIT_")
}

/// The value of a constant, where the file has one of this name: `const NAME: usize = 1 << 20;`, `const NAME: Duration = …` not.
fn constant(file: &str, name: &str) -> Option<i128> {
    let text = read(file);
    let declared = text.lines().find(|line| line.contains(&format!("const {name}:")))?;
    let value = declared.split_once('=')?.1.split(';').next()?.trim().to_owned();
    Some(value.split('*').map(number).product())
}

#[test]
fn every_limit_variable_of_the_worker_is_in_the_table_and_the_reverse() {
    let config = read("worker/src/config.rs");
    let mut read: Vec<&str> = config.split('"').skip(1).step_by(2).filter(|text| is_variable(text)).collect();
    let rows = rows();
    let mut written: Vec<&str> = rows.iter().flat_map(|row| &row.names).map(String::as_str).filter(|name| is_variable(name)).collect();
    let mut known: Vec<&str> = defaults().into_keys().collect();
    for list in [&mut read, &mut written, &mut known] {
        list.sort_unstable();
    }
    assert_eq!(written, read, "docs/security.md and worker/src/config.rs differ");
    assert_eq!(written, known, "docs/security.md and the defaults of `Limits` differ");
}

#[test]
fn every_default_in_the_table_is_that_of_the_code() {
    let defaults = defaults();
    for row in rows() {
        for name in row.names.iter().filter(|name| is_variable(name)) {
            assert_eq!(Some(&row.default), defaults.get(name.as_str()), "{name}");
        }
        for name in row.names.iter().filter(|name| !is_variable(name)) {
            assert_eq!(Some(row.default), constant(&row.file, name), "`{name}` in {}", row.file);
        }
        assert!(!row.names.is_empty() && !row.unit.is_empty() && !row.status.is_empty(), "the row `{}` is not whole", row.limit);
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(&row.file).is_file(), "{} does not exist", row.file);
    }
}
