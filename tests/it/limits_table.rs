//! `docs/security.md`: the table of limits must agree with the configuration, the variables of the
//! worker, and the constants of the code.

use aqlite::service::Limits;
use std::collections::{BTreeMap, BTreeSet};
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

/// The files that name the statuses of limits which other files check: those have errors of their
/// own. The first prefix of a path counts. Other files name the statuses of their limits themselves.
const STATUSES_OF: [(&str, &str); 22] = [
    ("src/service/admission.rs", "src/service/auth/caller.rs"),
    ("src/service/auth/", "src/service/auth/caller.rs"),
    ("src/service/call.rs", "src/service/mod.rs"),
    ("src/service/expansion.rs", "src/service/terminology.rs"),
    ("src/service/fhir.rs", "src/service/value_set.rs"),
    ("src/service/gzip.rs", "src/service/error.rs"),
    ("src/service/query.rs", "src/service/error.rs"),
    ("crates/aqlite-aql/", "src/service/query.rs"),
    ("crates/aqlite-engine/", "src/service/query.rs"),
    ("crates/aqlite-gdl/", "src/service/gdl.rs"),
    ("crates/aqlite-rm/", "src/service/error.rs"),
    ("crates/aqlite-template/", "src/service/template.rs"),
    ("cli/src/serve/auth.rs", "src/service/auth/caller.rs"),
    ("cli/src/serve/body.rs", "src/service/error.rs"),
    ("cli/src/serve/health.rs", "src/service/error.rs"),
    ("cli/src/serve/request.rs", "src/service/auth/caller.rs"),
    (
        "cli/src/serve/terminology.rs",
        "src/service/query/checks.rs",
    ),
    ("cli/src/serve/thread.rs", "cli/src/serve/http.rs"),
    ("cli/src/serve/writer.rs", "src/service/error.rs"),
    ("src/service/terminology.rs", "src/service/query/checks.rs"),
    ("worker/src/terminology.rs", "src/service/query/checks.rs"),
    ("worker/src/", "src/service/error.rs"),
];

/// The status of limits that hyper checks.
const OF_HYPER: u16 = 431;

/// Returns the statuses of a cell such as `waits, 429`.
fn numbers(cell: &str) -> BTreeSet<u16> {
    let words = cell.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// Returns the statuses of errors that a source text creates, by the forms in which they are
/// written.
fn created_statuses(text: &str) -> BTreeSet<u16> {
    const NAMED: [(&str, u16); 6] = [
        ("::bad_request(", 400),
        ("Failure::too_large(", 413),
        ("too_long_line(", 413),
        ("result_too_large(", 422),
        ("SERVICE_UNAVAILABLE", 503),
        ("unavailable(", 503),
    ];
    const WRITTEN: [&str; 5] = ["::new(", "status: ", "in_text(", "with_findings(", "=> "];
    let named = NAMED.iter().filter(|(form, _)| text.contains(form));
    let mut found: BTreeSet<u16> = named.map(|(_, status)| *status).collect();
    for form in WRITTEN {
        let numbers = text.split(form).skip(1);
        found.extend(numbers.filter_map(|rest| rest.trim_start().get(..3)?.parse::<u16>().ok()));
    }
    found.retain(|status| *status >= 400);
    found
}

/// Returns the code of a file without its unit tests, function by function.
fn functions(file: &str) -> Vec<String> {
    let text = read(file);
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut functions = vec![String::new()];
    for line in code.lines() {
        if line.contains("fn ") && !line.trim_start().starts_with("//") {
            functions.push(String::new());
        }
        let last = functions.last_mut().expect("at least one");
        last.push_str(line);
        last.push('\n');
    }
    functions
}

/// The function that uses a constant creates the error, or the file that [`STATUSES_OF`] names.
#[test]
fn every_status_in_the_table_is_that_of_an_error_of_the_code() {
    for row in rows() {
        let mut statuses = numbers(&row.status);
        statuses.remove(&OF_HYPER);
        let uses = |code: &&String| row.names.iter().any(|name| code.contains(name.as_str()));
        let functions = functions(&row.file);
        let checking: String = functions.iter().skip(1).filter(uses).cloned().collect();
        let mut created = created_statuses(&checking);
        if created.is_empty() {
            let named = STATUSES_OF
                .iter()
                .find(|(file, _)| row.file.starts_with(file));
            created = created_statuses(&functions.concat());
            created.extend(created_statuses(&read(
                named.map_or(&row.file, |(_, file)| file),
            )));
        }
        assert!(
            statuses.is_subset(&created),
            "the row `{}` has {}, and the code creates {created:?}",
            row.limit,
            row.status
        );
    }
}

/// The units of `docs/rest.md` are those of the engine.
#[test]
fn the_units_of_work_are_documented() {
    let page = read("docs/rest.md");
    let operations = [
        ("a byte of an object's JSON", "BYTE"),
        ("a condition of a row", "TEST"),
        (
            "a candidate of a class expression, or a node that a path reaches",
            "STEP",
        ),
        ("a cell that is made, compared or hashed", "CELL"),
        ("a row, and each of its aggregates", "ROW"),
    ];
    let file = "crates/aqlite-engine/src/answer/eval/work.rs";
    let source = read(file);
    let units = source.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("pub(super) const ")?.split_once(':')?;
        Some(name)
    });
    for name in units {
        let is_listed = operations.iter().any(|(_, known)| *known == name);
        assert!(is_listed, "add the units {name} here and in docs/rest.md");
    }
    for (operation, name) in operations {
        let units = constant(file, name);
        let units = units.unwrap_or_else(|| panic!("work.rs has no constant {name}"));
        let row = format!("| {operation} | {units} |");
        assert!(page.contains(&row), "docs/rest.md lacks `{row}`");
    }
}
