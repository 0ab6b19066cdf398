//! `aqlite export` and `aqlite import`: the content of a repository to a file and back, through the
//! REST interface of a server. Both continue a transfer that broke off.

use crate::outcome::{Failure, Outcome};
use crate::progress::{self, Progress};
use crate::repository::{LONGEST, encoded, refusal};
use crate::server_options::{ServerOptions, with_mount};
use crate::terminal::print_line;
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

/// The beginning of a line of an export.
const LINE: &str = "{\"digest\":\"";

/// Bytes that are read at a time to find the last line of a file.
const BLOCK: u64 = 1 << 20;

const EXPORT_EXAMPLES: &str = "\
Examples:
  Export the repository of a server of this machine:
    aqlite export backup.ndjson

  Export one EHR of another server:
    aqlite export ehr.ndjson --base https://cdr.example.org --token $TOKEN --ehr 7d44b88c-4199-4bad-97dc-d78268e01398

An export that broke off continues behind the last whole line of its file. A complete file, and one that is no export, is refused. The server needs `ADMIN=true`.

Exit code: 0 for a complete export, 1 for a broken export or a refused file, 2 for wrong usage, 130 for Ctrl-C.";

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
    let begun = Begun::open(&options.file)?;
    if let Some(begun) = &begun {
        begun.check_continued(&options.file, options.ehr.as_deref())?;
    }
    let (mut begun, mut last) = match begun {
        Some(begun) => (Some((begun.file, begun.end)), begun.last),
        None => (None, None),
    };
    let mut file = None;
    let progress = Progress::of_unknown("records exported");
    let mut count = 0_u64;
    while !last.as_ref().is_some_and(is_end) {
        progress::check()?;
        let is_first = last.is_none();
        let page = client.page(options.ehr.as_deref(), last.as_ref())?;
        let before = count;
        for line in page.lines() {
            last = Some(record_of(line, &options.file)?);
            count += 1;
        }
        // A page is checked before any of it is written. A server that refuses leaves no file, and
        // a file as it is.
        let mut open = match file.take() {
            Some(open) => open,
            None => writable(&options.file, begun.take()).map_err(failed)?,
        };
        if last.as_ref().is_some_and(is_end) && !is_first && options.ehr.is_none() {
            // The definitions of the first page may be older than the contributions of this one.
            open = with_definitions(open, &options.file, &client.definitions(&options.file)?)?;
        }
        open.write_all(page.as_bytes()).map_err(failed)?;
        file = Some(open);
        progress.advance(count - before);
        progress.show();
    }
    if let Some(file) = file {
        file.sync_all().map_err(failed)?;
    }
    progress.finish();
    print_line!("{count} records exported to {shown}");
    Ok(Outcome::Success)
}

/// Returns the file to append to: a new one, or that of an export that broke off, which is cut
/// behind its last whole line.
fn writable(path: &Path, begun: Option<(File, u64)>) -> std::io::Result<File> {
    let Some((mut file, end)) = begun else {
        return File::create_new(path);
    };
    file.set_len(end)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

/// A line with a definition.
struct DefinitionLine {
    /// Kind, name and version, as a position has them.
    position: String,
    line: String,
}

/// Replaces the definitions at the beginning of a file by the present ones. Definitions that were
/// removed meanwhile stay, because contributions of the file may need them. Returns the file, at
/// its end.
fn with_definitions(
    mut file: File,
    path: &Path,
    present: &[DefinitionLine],
) -> Result<File, Failure> {
    let failed = |error: std::io::Error| Failure::Data(format!("{}: {error}", path.display()));
    let held = held_definitions(&mut file, path)?;
    let is_present =
        |line: &DefinitionLine| present.iter().any(|one| one.position == line.position);
    let removed = held.iter().filter(|line| !is_present(line));
    let merged: Vec<&str> = removed
        .chain(present)
        .map(|one| one.line.as_str())
        .collect();
    if merged
        .iter()
        .copied()
        .eq(held.iter().map(|one| one.line.as_str()))
    {
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        return Ok(file);
    }
    let begin: usize = held.iter().map(|one| one.line.len()).sum();
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let renewed = PathBuf::from(name);
    let copy = |mut file: File| {
        let mut copied = File::create(&renewed)?;
        copied.write_all(merged.concat().as_bytes())?;
        file.seek(SeekFrom::Start(begin as u64))?;
        std::io::copy(&mut file, &mut copied)?;
        copied.sync_all()?;
        // Some systems replace no file that is open.
        drop((file, copied));
        std::fs::rename(&renewed, path)?;
        OpenOptions::new().append(true).open(path)
    };
    copy(file).map_err(failed)
}

/// Reads the lines with definitions at the beginning of a file.
fn held_definitions(file: &mut File, path: &Path) -> Result<Vec<DefinitionLine>, Failure> {
    let failed = |error: std::io::Error| Failure::Data(format!("{}: {error}", path.display()));
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let (mut reader, mut held) = (BufReader::new(file), Vec::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).map_err(failed)?;
        match DefinitionLine::read(line, path)? {
            Some(definition) => held.push(definition),
            None => return Ok(held),
        }
    }
}

impl DefinitionLine {
    /// Reads a line with its end; `None` for another record, and behind the last line.
    fn read(line: String, path: &Path) -> Result<Option<DefinitionLine>, Failure> {
        if line.is_empty() {
            return Ok(None);
        }
        let record = record_of(line.trim_end(), path)?;
        match record.get("definition") {
            Some(_) => Ok(Some(DefinitionLine {
                position: position_of(&record)?,
                line,
            })),
            None => Ok(None),
        }
    }
}

/// A file that exists: an export that broke off, or is complete.
struct Begun {
    file: File,
    /// The record of its last whole line.
    last: Option<Value>,
    /// The position behind its last whole line.
    end: u64,
    /// The EHR of its contributions, if it has those of one EHR only and no definitions, as an
    /// export of one EHR has.
    only_ehr: Option<String>,
}

impl Begun {
    /// Opens a file, and changes nothing; `None` if there is none.
    ///
    /// # Errors
    /// If the file cannot be read, or has anything but lines of an export.
    fn open(path: &Path) -> Result<Option<Begun>, Failure> {
        let failed = |error: std::io::Error| Failure::Data(format!("{}: {error}", path.display()));
        let mut file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let Tail { line, end, rest } = Tail::read(&mut file).map_err(failed)?;
        // Behind the last whole line is at most the beginning of another one.
        let is_begun = rest.starts_with(LINE.as_bytes()) || LINE.as_bytes().starts_with(&rest);
        let last = match line {
            Some(line) if is_begun => Some(record_of(&line, path)?),
            None if is_begun => None,
            _ => {
                return Err(Failure::Data(format!(
                    "{}: the file exists, and is no export: name another one",
                    path.display()
                )));
            }
        };
        Ok(Some(Begun {
            only_ehr: only_ehr(&mut file, end, path)?,
            file,
            last,
            end,
        }))
    }

    /// Checks that an export of an EHR, or else of all, can continue the file.
    ///
    /// # Errors
    /// If the file is complete, or of another export.
    fn check_continued(&self, path: &Path, ehr: Option<&str>) -> Result<(), Failure> {
        let Some(last) = &self.last else {
            return Ok(());
        };
        let problem = match (&self.only_ehr, ehr) {
            _ if is_end(last) => {
                "a complete export, possibly of an earlier state or of other EHRs".to_owned()
            }
            (None, None) => return Ok(()),
            (Some(only), Some(ehr)) if only.eq_ignore_ascii_case(ehr) => return Ok(()),
            // The records that precede its last one in an export of all would be missing.
            (Some(only), None) => {
                format!("an export that broke off, of one EHR (`--ehr {only}` continues it)")
            }
            (_, Some(_)) => "an export of other EHRs that broke off".to_owned(),
        };
        Err(Failure::Data(format!(
            "{}: the file is {problem}: name another file, or remove this one",
            path.display()
        )))
    }
}

/// Returns the EHR of the records before a position, if all are contributions of one.
fn only_ehr(file: &mut File, end: u64, path: &Path) -> Result<Option<String>, Failure> {
    let failed = |error: std::io::Error| Failure::Data(format!("{}: {error}", path.display()));
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut only = None;
    for line in BufReader::new(file.take(end)).lines() {
        let record = record_of(&line.map_err(failed)?, path)?;
        let ehr = record.get("ehr_id").and_then(Value::as_str);
        if ehr.is_none() || only.is_some() && only.as_deref() != ehr {
            return Ok(None);
        }
        only = ehr.map(str::to_owned);
    }
    Ok(only)
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
    let (mut counts, mut records) = (Counts::default(), 0_u64);
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
            // The end is no record, and has no answer.
            records += u64::from(!is_complete);
            next += 1;
        }
        if held.len() > BYTES || is_over && !held.is_empty() {
            counts.add(&client.import(&held, first, options.findings)?)?;
            check_answered(counts.new + counts.there, records).map_err(Failure::Data)?;
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
    print_line!(
        "{} records imported, {} were there",
        counts.new,
        counts.there
    );
    match is_complete {
        true => Ok(Outcome::Success),
        false => Err(Failure::Data(format!(
            "{shown}: the record at the end is absent: the export broke off, and `aqlite export {shown}` completes it"
        ))),
    }
}

/// Checks that a server has answered all lines that were sent to it.
///
/// # Errors
/// If it has answered fewer or more.
pub fn check_answered(answered: u64, sent: u64) -> Result<(), String> {
    match answered == sent {
        true => Ok(()),
        false => Err(format!(
            "the server has answered {answered} of {sent} lines: check the URL of --base, and the log of the server"
        )),
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
            let outcome = json::value(line).map_err(|_| no_answer(line))?;
            let number = |name: &str| outcome.get(name).and_then(Value::as_u64);
            match number("status").or_else(|| number("code")) {
                Some(201) => self.new += 1,
                Some(200) => self.there += 1,
                None => return Err(no_answer(line)),
                Some(status) => {
                    let message = outcome.get("message").and_then(Value::as_str);
                    // An error that ends the import names its line in its message, if it has one.
                    let line = number("line").map(|line| format!("line {line}: "));
                    return Err(Failure::Data(format!(
                        "{}{status} {}",
                        line.unwrap_or_default(),
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
        let (status, text) = answer_of(&url, request.call())?;
        match (status, refusal(status, &text)) {
            (200, _) => Ok(text),
            (404, Failure::Refused { status, message }) if last.is_some() => {
                let remedy = "if the last record of the file was removed from the repository, remove the file and export again";
                let message = format!("{message}; {remedy}");
                Err(Failure::Refused { status, message })
            }
            (_, refused) => Err(refused),
        }
    }

    /// Returns the definitions, which come before the contributions of an export.
    fn definitions(&self, file: &Path) -> Result<Vec<DefinitionLine>, Failure> {
        let (mut found, mut last) = (Vec::new(), None);
        loop {
            progress::check()?;
            let page = self.page(None, last.as_ref())?;
            for line in page.split_inclusive('\n') {
                match DefinitionLine::read(line.to_owned(), file)? {
                    Some(definition) => found.push(definition),
                    None => return Ok(found),
                }
            }
            last = page
                .lines()
                .last()
                .map(|line| record_of(line, file))
                .transpose()?;
        }
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
        match answer_of(&url, request.send(lines))? {
            (200, text) => Ok(text),
            (status, text) => Err(refusal(status, &text)),
        }
    }
}

/// Returns status and text of an answer.
fn answer_of(
    url: &str,
    answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<(u16, String), Failure> {
    let failed = |error: ureq::Error| Failure::Data(format!("{url}: {error}"));
    let mut answer = answer.map_err(failed)?;
    let body = answer.body_mut().with_config().limit(LONGEST);
    let text = body.read_to_string().map_err(failed)?;
    Ok((answer.status().as_u16(), text))
}

/// Returns the record of a line, whose digest is checked.
fn record_of(line: &str, file: &Path) -> Result<Value, Failure> {
    let parts = line.strip_prefix(LINE);
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
    Failure::Data(format!("no line of an export: `{}`", begin_of(line)))
}

fn no_answer(line: &str) -> Failure {
    let line = begin_of(line);
    Failure::Data(format!(
        "the server answers an import by `{line}`, expected the status of a line: check the URL of --base"
    ))
}

fn begin_of(line: &str) -> String {
    line.chars().take(80).collect()
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

/// The end of a file of lines.
struct Tail {
    /// The last whole line.
    line: Option<String>,
    /// The position behind it.
    end: u64,
    /// The beginning of the bytes behind it, as long as that of a line of an export.
    rest: Vec<u8>,
}

impl Tail {
    /// Reads the end of a file, block by block from behind.
    fn read(file: &mut File) -> std::io::Result<Tail> {
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
        let line = end.and_then(|end| tail.get(begin..end));
        let behind = end.map_or(0, |end| end + 1);
        let rest = tail.iter().skip(behind).take(LINE.len());
        Ok(Tail {
            line: line.map(|line| String::from_utf8_lossy(line).into_owned()),
            end: at + behind as u64,
            rest: rest.copied().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_is_found_and_nothing_is_cut() {
        let long = "x".repeat(3_000_000);
        for (written, line, end, rest) in [
            ("", None, 0, ""),
            ("a", None, 0, "a"),
            ("a\n", Some("a"), 2, ""),
            ("a\nb\nc", Some("b"), 4, "c"),
            (
                &format!("a\n{long}\nc"),
                Some(long.as_str()),
                3_000_003,
                "c",
            ),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(written.as_bytes()).unwrap();
            let tail = Tail::read(&mut file).unwrap();
            assert_eq!(tail.line.as_deref(), line);
            assert_eq!((tail.end, tail.rest), (end, rest.as_bytes().to_vec()));
            assert_eq!(file.metadata().unwrap().len(), written.len() as u64);
        }
    }

    #[test]
    fn a_file_that_is_no_export_is_not_opened_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let record = r#"{"definition":"query","name":"a","version":"1.0.0"}"#;
        let digest = digest_of_text(record);
        let line = format!("{{\"digest\":\"{digest}\",\"record\":{record}}}\n");
        let half = line.get(..line.len() / 2).unwrap();
        for (written, is_export) in [
            (String::new(), true),
            (half.to_owned(), true),
            (line.get(..4).unwrap().to_owned(), true),
            (line.clone(), true),
            (format!("{line}{half}"), true),
            (String::from("{\"a\":1}"), false),
            (String::from("{\"a\":1}\n"), false),
            (String::from("SQLite format 3\0\n\n"), false),
            (format!("{line}notes"), false),
            (format!("{line}notes\n"), false),
        ] {
            std::fs::write(&path, &written).unwrap();
            let opened = Begun::open(&path);
            assert_eq!(opened.is_ok(), is_export, "{written}");
            if let Ok(begun) = opened {
                let end = written.rfind('\n').map_or(0, |at| at as u64 + 1);
                assert_eq!(begun.unwrap().end, end);
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
        }
    }

    #[test]
    fn an_export_continues_only_its_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ndjson");
        let line = |record: &str| {
            let digest = digest_of_text(record);
            format!("{{\"digest\":\"{digest}\",\"record\":{record}}}\n")
        };
        let of = |ehr: &str| line(&format!(r#"{{"ehr_id":"{ehr}","contribution":{{}}}}"#));
        let (end, party) = (line(r#"{"end":true}"#), line(r#"{"contribution":{}}"#));
        let definition = line(r#"{"definition":"query"}"#);
        for (lines, ehr, continues) in [
            (vec![], None, true),
            (vec![], Some("a"), true),
            (vec![of("a"), end.clone()], None, false),
            (vec![of("a"), end], Some("a"), false),
            (vec![of("a"), of("a")], Some("A"), true),
            (vec![of("a"), of("a")], Some("b"), false),
            (vec![of("a"), of("a")], None, false),
            (vec![of("b"), of("a")], None, true),
            (vec![of("b"), of("a")], Some("a"), false),
            (vec![of("a"), party], None, true),
            (vec![definition.clone()], None, true),
            (vec![definition.clone(), of("a")], None, true),
            (vec![definition, of("a")], Some("a"), false),
        ] {
            std::fs::write(&path, lines.concat()).unwrap();
            let begun = Begun::open(&path).unwrap().unwrap();
            let checked = begun.check_continued(&path, ehr);
            assert_eq!(checked.is_ok(), continues, "{lines:?} {ehr:?}");
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
