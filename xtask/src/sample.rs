//! Sample data: written by the generator of the core, loaded through the REST interface.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::{Answer, send};
use crate::options::Options;
use crate::process::{Examples, example, root, run};
use crate::stamp::unless_fresh;

const FOLDER: &str = "target/sample";
const API: &str = "/rest/openehr/v1";

/// A line of an NDJSON file.
type Entry = BTreeMap<String, Box<RawValue>>;

/// `cargo xtask gen-data`: writes templates, guides, compositions and a truth table about them into
/// a folder.
pub fn gen_data(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["ehrs", "compositions", "seed", "out"], &["bulk"])?;
    let out = options.given("out").ok_or("`--out DIR` is missing")?;
    let out = std::env::current_dir()
        .map_err(|e| e.to_string())?
        .join(out);
    write(
        options.value("ehrs", "100"),
        options.value("compositions", "1000"),
        options.value("seed", "1"),
        &out,
        options.has("bulk"),
        Examples::Quick,
    )
}

/// Writes the sample of the tests: some dozen patients.
pub fn generate() -> Result<(), String> {
    generate_by(Examples::Quick)
}

/// Writes the sample of the tests by a program with these settings.
pub fn generate_by(examples: Examples) -> Result<(), String> {
    let folder = root().join(FOLDER);
    unless_fresh(
        "sample",
        &["src/samples", "examples/gen_data.rs"],
        &folder,
        || write("36", "240", "1", &folder, false, examples),
    )
}

/// Writes a sample of `compositions` compositions, ten for each EHR. Returns its folder.
pub fn of(compositions: &str) -> Result<PathBuf, String> {
    let count: usize = compositions
        .parse()
        .map_err(|_| format!("`{compositions}` is no number of compositions"))?;
    let folder = root().join(format!("target/sample-{count}"));
    unless_fresh(
        &format!("sample-{count}"),
        &["src/samples", "examples/gen_data.rs"],
        &folder,
        || {
            write(
                &count.div_ceil(10).to_string(),
                compositions,
                "1",
                &folder,
                false,
                Examples::Quick,
            )
        },
    )?;
    Ok(folder)
}

fn write(
    ehrs: &str,
    compositions: &str,
    seed: &str,
    out: &Path,
    has_bulk: bool,
    examples: Examples,
) -> Result<(), String> {
    let options = [
        "--ehrs",
        ehrs,
        "--compositions",
        compositions,
        "--seed",
        seed,
        "--out",
    ];
    let mut command = example("gen_data", examples)?;
    command.args(options).arg(out);
    run(command.args(has_bulk.then_some("--bulk")))
}

/// Loads the sample of a folder into a server that has no EHR. Returns a message about the outcome.
pub fn load(port: u16, sample: &Path) -> Result<String, String> {
    let count = r#"{"q":"SELECT count(e/ehr_id/value) AS n FROM EHR e"}"#;
    let answer = send_json(port, "POST", "/query/aql", count)?;
    let answer = expect(answer, &[200])?;
    let rows: Value = serde_json::from_str(&answer.body).map_err(|e| e.to_string())?;
    let ehrs = rows
        .pointer("/rows/0/0")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    if ehrs > 0 {
        return Ok(format!(
            "the repository holds {ehrs} EHRs already: no sample loaded"
        ));
    }
    for file in files(sample, "templates")? {
        let path = format!("{API}/definition/template/adl1.4");
        post(port, &path, "application/xml", &file)?;
    }
    for file in files(sample, "guides")? {
        post(port, "/v1/definition/gdl", "application/json", &file)?;
    }
    records(port, sample)
}

/// Sends JSON to a path of the interface.
fn send_json(port: u16, method: &str, path: &str, body: &str) -> Result<Answer, String> {
    let path = format!("{API}{path}");
    send(port, method, &path, "application/json", body.as_bytes())
}

/// Creates the EHRs of `ehrs.ndjson` and commits the compositions of `compositions.ndjson`.
fn records(port: u16, sample: &Path) -> Result<String, String> {
    let ehrs = lines(&sample.join("ehrs.ndjson"), |entry| {
        let path = format!("/ehr/{}", text(entry, "ehr_id"));
        let answer = send_json(port, "PUT", &path, &text(entry, "ehr_status"))?;
        expect(answer, &[201, 204])
    })?;
    let compositions = lines(&sample.join("compositions.ndjson"), |entry| {
        let path = format!("/ehr/{}/composition", text(entry, "ehr_id"));
        let answer = send_json(port, "POST", &path, &text(entry, "composition"))?;
        expect(answer, &[201, 204])
    })?;
    Ok(format!(
        "loaded the sample: {ehrs} EHRs, {compositions} compositions"
    ))
}

/// Calls `each` for every line of a file. Returns the number of lines.
fn lines(path: &Path, each: impl Fn(&Entry) -> Result<Answer, String>) -> Result<usize, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    for line in text.lines() {
        each(&serde_json::from_str(line).map_err(|e| format!("{}: {e}", path.display()))?)?;
    }
    Ok(text.lines().count())
}

/// Returns a member: a string without quotes, anything else as its JSON text.
fn text(entry: &Entry, key: &str) -> String {
    let raw = entry.get(key).map_or("", |value| value.get());
    serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned())
}

fn files(sample: &Path, kind: &str) -> Result<Vec<PathBuf>, String> {
    let folder = sample.join(kind);
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

/// Posts a file. A conflict with an existing one is not an error.
fn post(port: u16, path: &str, content_type: &str, file: &Path) -> Result<(), String> {
    let body = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    expect(
        send(port, "POST", path, content_type, &body)?,
        &[200, 201, 204, 409],
    )
    .map(|_| ())
}

fn expect(answer: Answer, statuses: &[u16]) -> Result<Answer, String> {
    if statuses.contains(&answer.status) {
        Ok(answer)
    } else {
        Err(format!(
            "the sample was refused: {} {}",
            answer.status, answer.body
        ))
    }
}
