//! `docs/security.md`: the table of limits must agree with the configuration, the variables of the
//! worker, and the constants of the code.

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
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file))
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the texts in back-ticks of a cell.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Parses a number with separators: `10,000,000`, or `10_000_000` in code.
fn number(text: &str) -> i128 {
    let digits: String = text.chars().filter(|c| c.is_ascii_digit()).collect();
    digits
        .parse()
        .unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// Returns the rows of the table below the heading `## Limits`.
fn rows() -> Vec<Row> {
    let page = read("docs/security.md");
    let section = page
        .split("\n## Limits\n")
        .nth(1)
        .expect("the page has a section about limits");
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [limit, names, default, unit, status, file] = cells[..] else {
            panic!("six cells are expected: {line}")
        };
        let file = quoted(file)
            .first()
            .cloned()
            .unwrap_or_else(|| panic!("no file is named: {line}"));
        Row {
            limit: limit.to_owned(),
            names: quoted(names),
            default: number(default),
            unit: unit.to_owned(),
            status: status.to_owned(),
            file,
        }
    };
    lines.map(row).collect()
}

/// Returns the variables that the worker reads, each with its default in the unit of a deployment.
///
/// `src/service/deployment.rs` names variable and field in one line: `query_time:
/// variables.number::<i64>("LIMIT_QUERY_MS", standard.query_time / 1000)?…`. The value of the field
/// is read from the `Debug` form of [`Limits`].
fn defaults() -> BTreeMap<String, i128> {
    let standard = format!("{:?}", Limits::default());
    let config = read("src/service/deployment.rs");
    let lines = config.lines().filter(|line| line.contains("(\"LIMIT_"));
    let default = |line: &str| {
        let (_, rest) = line.split_once("(\"").expect("a name in quotes");
        let (name, rest) = rest
            .split_once("\", standard.")
            .unwrap_or_else(|| panic!("`standard.` is expected: {line}"));
        let (value, _) = rest.split_once(')').expect("a parenthesis");
        let (path, divisor) = value
            .split_once(" / ")
            .map_or((value, 1), |(path, divisor)| (path, number(divisor)));
        let found = path.split('.').fold(standard.as_str(), |text, field| {
            text.split_once(&format!(" {field}: "))
                .unwrap_or_else(|| panic!("`{field}` is no field: {standard}"))
                .1
        });
        (
            name.to_owned(),
            number(found.split([',', ' ', '}']).next().unwrap_or_default()) / divisor,
        )
    };
    lines.map(default).collect()
}

/// Returns the number of fields of [`Limits`], including nested ones.
fn fields() -> usize {
    let standard = format!("{:?}", Limits::default());
    standard.matches(": ").count() - standard.matches(" { ").count() + 1
}

fn is_variable(name: &str) -> bool {
    name.starts_with("LIMIT_")
}

/// Returns the value of a constant of this name in a file, or of a field that is written as `name:
/// 1_000`.
fn constant(file: &str, name: &str) -> Option<i128> {
    let text = read(file);
    let declared = |line: &&str| line.contains(&format!("const {name}:"));
    let written = |line: &str| {
        let (_, rest) = line.split_once(&format!(" {name}: "))?;
        rest.starts_with(|c: char| c.is_ascii_digit())
            .then(|| number(rest.split(',').next().unwrap_or_default()))
    };
    match text.lines().find(declared) {
        Some(line) => Some(
            line.split_once('=')?
                .1
                .split(';')
                .next()?
                .split('*')
                .map(number)
                .product(),
        ),
        None => text.lines().find_map(written),
    }
}

#[test]
fn every_limit_variable_of_the_worker_is_in_the_table_and_the_reverse() {
    let read: Vec<String> = defaults().into_keys().collect();
    let mut written: Vec<String> = rows()
        .into_iter()
        .flat_map(|row| row.names)
        .filter(|name| is_variable(name))
        .collect();
    written.sort_unstable();
    assert_eq!(
        written, read,
        "docs/security.md and src/service/deployment.rs differ"
    );
    assert_eq!(
        read.len(),
        fields(),
        "a limit has no variable: {:?}",
        Limits::default()
    );
}

#[test]
fn every_default_in_the_table_is_that_of_the_code() {
    let defaults = defaults();
    for row in rows() {
        for name in row.names.iter().filter(|name| is_variable(name)) {
            assert_eq!(Some(&row.default), defaults.get(name), "{name}");
        }
        for name in row.names.iter().filter(|name| !is_variable(name)) {
            assert_eq!(
                Some(row.default),
                constant(&row.file, name),
                "`{name}` in {}",
                row.file
            );
        }
        assert!(
            !row.names.is_empty() && !row.unit.is_empty() && !row.status.is_empty(),
            "the row `{}` is not whole",
            row.limit
        );
        assert!(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(&row.file)
                .is_file(),
            "{} does not exist",
            row.file
        );
    }
}

/// The units of `docs/rest.md` are those of the engine.
#[test]
fn the_units_of_work_are_documented() {
    let page = read("docs/rest.md");
    for (operation, name) in [
        ("a byte of an object's JSON", "BYTE"),
        ("a condition of a row", "TEST"),
        (
            "a candidate of a class expression, or a node that a path reaches",
            "STEP",
        ),
        ("a cell that is made, compared or hashed", "CELL"),
        ("a row, and each of its aggregates", "ROW"),
    ] {
        let units = constant("crates/aqlite-engine/src/answer/eval/work.rs", name);
        let units = units.unwrap_or_else(|| panic!("work.rs has no constant {name}"));
        let row = format!("| {operation} | {units} |");
        assert!(page.contains(&row), "docs/rest.md lacks `{row}`");
    }
}
