//! `aqlite export` and `aqlite import`: the content of a repository to a file and back, through the
//! REST interface of a server. Both continue a transfer that broke off.

use crate::outcome::{Failure, Outcome};
use crate::progress::{self, Progress};
use crate::repository::{LONGEST, encoded, refusal};
use crate::server_options::{ServerOptions, with_mount};
use aqlite::document::digest_of_text;
use aqlite::rm::json;
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use ureq::Agent;

/// The path of the REST interface if a URL has none.
const MOUNT: &str = "/v1";

/// Bytes of the lines of one request of an import; one longer line is sent alone.
const BYTES: usize = 4_000_000;

/// Bytes that are read at a time to find the last line of a file.
const BLOCK: u64 = 1 << 20;

const EXPORT_EXAMPLES: &str = "\
Examples:
  Export the repository of a server of this machine:
    aqlite export backup.ndjson

  Export one EHR of another server:
    aqlite export ehr.ndjson --base https://cdr.example.org --token $TOKEN --ehr 7d44b88c-4199-4bad-97dc-d78268e01398

An export that broke off continues behind the last whole line of its file. The server needs `ADMIN=true`.

Exit code: 0 for a complete file, 1 for a broken export, 2 for wrong usage, 130 for Ctrl-C.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  Import a file into a server of this machine:
    aqlite import backup.ndjson

  Import documents that the rules of their templates refuse, too:
    aqlite import backup.ndjson --findings keep

Records that the repository has unaltered are skipped, so an import may be repeated. The server needs `ADMIN=true`.

Exit code: 0 if all records are there, 1 for a refused record, a broken import or an incomplete file, 2 for wrong usage, 130 for Ctrl-C.";

/// The arguments of `aqlite export`.
#[derive(Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ExportOptions {
    /// The file: newline-delimited JSON, a record with its digest in each line
    file: PathBuf,
    /// The id of the only EHR to export, without definitions
    #[arg(long, value_name = "EHR_ID")]
    ehr: Option<String>,
    #[command(flatten)]
    target: Target,
}

/// The arguments of `aqlite import`.
#[derive(Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub struct ImportOptions {
    /// The file that `aqlite export` has written
    file: PathBuf,
    /// The treatment of documents that the Reference Model or their templates refuse
    #[arg(long, value_enum, default_value_t = Findings::Refuse)]
    findings: Findings,
    #[command(flatten)]
    target: Target,
}

/// The treatment of documents with errors.
#[derive(Clone, Copy, ValueEnum)]
enum Findings {
    /// They are refused, and the import ends
    Refuse,
    /// They are stored
    Keep,
}

/// The server of a transfer.
#[derive(Args)]
struct Target {
    /// The mount of the server; a URL without a path gets /v1
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080/v1")]
    base: String,
    #[command(flatten)]
    server: ServerOptions,
}

/// A connection to a server.
struct Client {
    base: String,
    authorization: Option<String>,
    agent: Agent,
}

/// Exports a repository to a file.
///
/// # Errors
/// If the server refuses a page, a record does not have its digest, or the file cannot be written.
pub fn export(options: &ExportOptions) -> Result<Outcome, Failure> {
    let client = options.target.connect()?;
    let shown = options.file.display();
    let failed = |error: std::io::Error| Failure::Data(format!("{shown}: {error}"));
    let mut file = begun(&options.file).map_err(failed)?;
    let line = match &mut file {
        Some(file) => last_line(file).map_err(failed)?,
        None => None,
    };
    let line = line.map(|line| record_of(&line, &options.file));
    let mut last = line.transpose()?;
    let progress = Progress::of_unknown("records exported");
    let mut count = 0_u64;
    while !last.as_ref().is_some_and(is_end) {
        progress::check()?;
        let page = client.page(options.ehr.as_deref(), last.as_ref())?;
        let before = count;
        for line in page.lines() {
            last = Some(record_of(line, &options.file)?);
            count += 1;
        }
        // A page is checked before any of it is written. A server that refuses leaves no file.
        let file = match &mut file {
            Some(file) => file,
            None => file.insert(File::create_new(&options.file).map_err(failed)?),
        };
        file.write_all(page.as_bytes()).map_err(failed)?;
        progress.advance(count - before);
        progress.show();
    }
    if let Some(file) = file {
        file.sync_all().map_err(failed)?;
    }
    progress.finish();
    println!("{count} records exported to {shown}");
    Ok(Outcome::Success)
}

/// Opens the file of an export that broke off, or is complete; `None` if there is none.
fn begun(path: &Path) -> std::io::Result<Option<File>> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Imports the file of an export.
///
/// # Errors
/// If the server refuses a record, a record does not have its digest, the record at the end is absent,
/// or the file cannot be read.
pub fn import(options: &ImportOptions) -> Result<Outcome, Failure> {
    let client = options.target.connect()?;
    let shown = options.file.display();
    let failed = |error: std::io::Error| Failure::Data(format!("{shown}: {error}"));
    let file = File::open(&options.file).map_err(failed)?;
    let progress = Progress::new(file.metadata().map_err(failed)?.len(), "importing");
    let mut reader = BufReader::new(file);
    let mut counts = Counts::default();
    // The numbers of the first line that is held, and of the line that is read next.
    let (mut first, mut next, mut held) = (1_u64, 1_u64, String::new());
    let mut is_complete = false;
    loop {
        progress::check()?;
        let begin = held.len();
        let is_over = reader.read_line(&mut held).map_err(failed)? == 0;
        if !is_over {
            let line = held.get(begin..).unwrap_or_default().trim_end();
            is_complete = is_end(&record_of(line, &options.file)?);
            next += 1;
        }
        if held.len() > BYTES || is_over && !held.is_empty() {
            counts.add(&client.import(&held, first, options.findings)?)?;
            progress.advance(held.len() as u64);
            progress.show();
            held.clear();
            first = next;
        }
        if is_over {
            break;
        }
    }
    progress.finish();
    println!(
        "{} records imported, {} were there",
        counts.new, counts.there
    );
    match is_complete {
        true => Ok(Outcome::Success),
        false => Err(Failure::Data(format!(
            "{shown}: the record at the end is absent: the export broke off, and `aqlite export {shown}` completes it"
        ))),
    }
}

/// The outcomes of an import so far.
#[derive(Default)]
struct Counts {
    new: u64,
    there: u64,
}

impl Counts {
    /// Adds the lines of an answer.
    ///
    /// # Errors
    /// For the first line that was refused.
    fn add(&mut self, answer: &str) -> Result<(), Failure> {
        for line in answer.lines().filter(|line| !line.is_empty()) {
            let outcome = json::value(line).map_err(|_| unreadable(line))?;
            let number = |name: &str| outcome.get(name).and_then(Value::as_u64);
            match number("status").or_else(|| number("code")) {
                Some(201) => self.new += 1,
                Some(200) => self.there += 1,
                status => {
                    let message = outcome.get("message").and_then(Value::as_str);
                    // An error that ends the import names its line in its message, if it has one.
                    let line = number("line").map(|line| format!("line {line}: "));
                    return Err(Failure::Data(format!(
                        "{}{} {}",
                        line.unwrap_or_default(),
                        status.unwrap_or_default(),
                        message.unwrap_or_default()
                    )));
                }
            }
        }
        Ok(())
    }
}

impl Target {
    fn connect(&self) -> Result<Client, Failure> {
        Ok(Client {
            base: with_mount(&self.base, MOUNT),
            authorization: self.server.authorization(),
            agent: self.server.trust.agent()?,
        })
    }
}

impl Client {
    /// Returns the page of an export that follows a record.
    fn page(&self, ehr: Option<&str>, last: Option<&Value>) -> Result<String, Failure> {
        let mut url = format!("{}/admin/export?", self.base);
        if let Some(ehr) = ehr {
            url.push_str(&format!("ehr_id={}&", encoded(ehr)));
        }
        if let Some(last) = last {
            url.push_str(&format!("after={}", encoded(&position_of(last)?)));
        }
        let mut request = self.agent.get(&url);
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        text_of(&url, request.call())
    }

    /// Sends lines to the import, and returns the answers.
    fn import(&self, lines: &str, first: u64, findings: Findings) -> Result<String, Failure> {
        let findings = match findings {
            Findings::Refuse => "refuse",
            Findings::Keep => "keep",
        };
        let url = format!(
            "{}/admin/import?first={first}&findings={findings}",
            self.base
        );
        let mut request = self.agent.post(&url);
        request = request.header("Content-Type", "application/x-ndjson");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        text_of(&url, request.send(lines))
    }
}

/// Returns the text of an answer.
fn text_of(
    url: &str,
    answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<String, Failure> {
    let failed = |error: ureq::Error| Failure::Data(format!("{url}: {error}"));
    let mut answer = answer.map_err(failed)?;
    let body = answer.body_mut().with_config().limit(LONGEST);
    let text = body.read_to_string().map_err(failed)?;
    match answer.status().as_u16() {
        200 => Ok(text),
        status => Err(refusal(status, &text)),
    }
}

/// Returns the record of a line, whose digest is checked.
fn record_of(line: &str, file: &Path) -> Result<Value, Failure> {
    let parts = line.strip_prefix("{\"digest\":\"");
    let parts = parts.and_then(|rest| rest.strip_suffix('}'));
    let parts = parts.and_then(|rest| rest.split_once("\",\"record\":"));
    let (digest, record) = parts.ok_or_else(|| unreadable(line))?;
    if digest != digest_of_text(record) {
        return Err(Failure::Data(format!(
            "{}: a record does not have its digest: the export was altered",
            file.display()
        )));
    }
    json::value(record).map_err(|_| unreadable(line))
}

fn unreadable(line: &str) -> Failure {
    let begin: String = line.chars().take(80).collect();
    Failure::Data(format!("no line of an export: `{begin}`"))
}

fn is_end(record: &Value) -> bool {
    record.get("end") == Some(&Value::Bool(true))
}

/// Returns the position of a record, which the next page follows.
fn position_of(record: &Value) -> Result<String, Failure> {
    let contribution = record.pointer("/contribution/uid/value");
    if let Some(uid) = contribution.and_then(Value::as_str) {
        return Ok(uid.to_owned());
    }
    let names = ["definition", "name", "version"].map(|name| record.get(name)?.as_str());
    let [Some(kind), Some(name), Some(version)] = names else {
        return Err(unreadable(&record.to_string()));
    };
    Ok(format!("{kind}/{name}/{version}"))
}

/// Returns the last whole line of an export that broke off, cuts the rest from the file, and sets the
/// position to the end.
fn last_line(file: &mut File) -> std::io::Result<Option<String>> {
    let mut at = file.seek(SeekFrom::End(0))?;
    let mut tail: Vec<u8> = Vec::new();
    let (end, begin) = loop {
        let end = tail.iter().rposition(|byte| *byte == b'\n');
        let before = end.and_then(|end| tail.get(..end)).unwrap_or_default();
        let begin = before.iter().rposition(|byte| *byte == b'\n');
        if at == 0 || begin.is_some() {
            break (end, begin.map_or(0, |begin| begin + 1));
        }
        let length = BLOCK.min(at);
        at -= length;
        file.seek(SeekFrom::Start(at))?;
        let mut block = vec![0; usize::try_from(length).unwrap_or_default()];
        file.read_exact(&mut block)?;
        block.append(&mut tail);
        tail = block;
    };
    file.set_len(at + end.map_or(0, |end| end as u64 + 1))?;
    file.seek(SeekFrom::End(0))?;
    let line = end.and_then(|end| tail.get(begin..end));
    Ok(line.map(|line| String::from_utf8_lossy(line).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_broken_line_is_cut() {
        let long = "x".repeat(3_000_000);
        for (written, line, kept) in [
            ("", None, 0),
            ("a", None, 0),
            ("a\n", Some("a"), 2),
            ("a\nb\nc", Some("b"), 4),
            (&format!("a\n{long}\nc"), Some(long.as_str()), 3_000_003),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(written.as_bytes()).unwrap();
            assert_eq!(last_line(&mut file).unwrap().as_deref(), line);
            assert_eq!(file.metadata().unwrap().len(), kept);
            assert_eq!(file.stream_position().unwrap(), kept);
        }
    }

    #[test]
    fn a_record_without_its_digest_is_refused() {
        let record = r#"{"end":true}"#;
        let line = format!(
            r#"{{"digest":"{}","record":{record}}}"#,
            digest_of_text(record)
        );
        let read = |line: &str| record_of(line, Path::new("a.ndjson"));
        assert!(is_end(&read(&line).unwrap()));
        assert!(read(&line.replace("true", "null")).is_err());
        assert!(read(record).is_err());
    }
}
