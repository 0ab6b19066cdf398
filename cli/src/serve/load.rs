//! `aqlite load`: sends a file of lines to the bulk route of a server, in pieces if that is on
//! another machine.
//!
//! Answers are read while lines are sent, so the server works on many lines at a time. Each piece
//! has the same idempotency key and the number of its first line. So a load that broke off is
//! repeated with the same command: lines that were loaded before are answered with 200.

use super::http_client::HttpClient;
use crate::printable::printable;
use crate::progress::{self, Interrupted, Progress};
use crate::server_options::{ServerOptions, with_mount};
use crate::terminal::{print_line, report_line};
use crate::transfer::check_answered;
use anyhow::{Context, bail, ensure};
use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{Request, Uri};
use clap::Args;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the lines of one request to another machine, where a proxy may limit the bytes of a
/// body.
const BYTES: usize = 50_000_000;

/// Bytes of lines that are read at a time.
const CHUNK: usize = 200_000;

/// Refused lines that are shown.
const SHOWN: u64 = 20;

/// The path of the REST interface if a URL has none.
const MOUNT: &str = "/v1";

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Load a file into a server of this machine:
    aqlite load compositions.ndjson

  Load it into another server, and continue a load that broke off:
    aqlite load compositions.ndjson --base https://cdr.example.org --token $TOKEN
    aqlite load compositions.ndjson --base https://cdr.example.org --token $TOKEN --from 20001

Each line has `ehr_id` and one of `composition`, `ehr_status` and `contribution`. A load may be repeated: nothing is \
loaded twice under one key.

Exit code: 0 if all lines are loaded, 1 for refused lines or a broken load, 2 for wrong usage, 130 for Ctrl-C.";

/// The arguments of `aqlite load`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct LoadOptions {
    /// The file: newline-delimited JSON as `POST ehr/bulk` accepts it
    file: PathBuf,
    /// The mount of the server; a URL without a path gets /v1
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080/v1")]
    base: String,
    /// The idempotency key; the name of the file if not given
    #[arg(long)]
    key: Option<String>,
    /// The number of the first line to send
    #[arg(long, value_name = "LINE", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,
    #[command(flatten)]
    server: ServerOptions,
}

/// The answers to the lines so far.
#[derive(Default)]
struct Answers {
    created: u64,
    known: u64,
    refused: u64,
    /// The number of the last line with an answer.
    last: u64,
}

/// The answer to a line, or the reason why the server has ended the load.
#[derive(Deserialize)]
struct LineAnswer {
    line: Option<u64>,
    status: Option<u64>,
    message: Option<String>,
}

/// Sends a file.
///
/// # Errors
/// If the server does not answer or refuses a line, or the user presses Ctrl-C. The message has the
/// line to continue from.
pub fn load(options: &LoadOptions) -> anyhow::Result<()> {
    let shown = options.file.display();
    let file = File::open(&options.file).with_context(|| format!("{shown}"))?;
    let total = file.metadata()?.len();
    let mut lines = Lines {
        reader: BufReader::with_capacity(CHUNK, file),
        next: 1,
        filled: 0,
        bytes: 0,
    };
    lines.skip_to(options.from)?;
    let progress = Progress::new(total, "loading");
    progress.advance(lines.bytes);
    let mut answers = Answers {
        last: options.from.saturating_sub(1),
        ..Answers::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let sent = runtime.block_on(async {
        tokio::select! {
            sent = options.send_all(lines, &progress, &mut answers) => sent,
            interrupted = progress::interrupted() => Err(interrupted.into()),
        }
    });
    progress.finish();
    if sent.as_ref().is_err_and(|error| error.is::<Interrupted>()) {
        report_line!("interrupted: continue by `--from {}`", answers.last + 1);
    }
    sent.with_context(|| format!("the load can be continued by `--from {}`", answers.last + 1))?;
    print_line!(
        "{} lines loaded, {} were loaded before, {} refused",
        answers.created,
        answers.known,
        answers.refused
    );
    ensure!(answers.refused == 0, "lines were refused");
    Ok(())
}

/// A file of lines in progress.
struct Lines {
    reader: BufReader<File>,
    /// The number of the next line.
    next: u64,
    /// The number of lines that were read and are not blank. The server answers each.
    filled: u64,
    /// Bytes that were read.
    bytes: u64,
}

impl Lines {
    /// Reads one line into `into`. Returns false at the end.
    fn line(&mut self, into: &mut Vec<u8>) -> std::io::Result<bool> {
        let begin = into.len();
        let read = self.reader.read_until(b'\n', into)?;
        let line = String::from_utf8_lossy(into.get(begin..).unwrap_or_default());
        self.filled += u64::from(!line.trim().is_empty());
        self.bytes += read as u64;
        self.next += u64::from(read > 0);
        Ok(read > 0)
    }

    /// Skips the lines before a line, which may be the one behind the last line.
    fn skip_to(&mut self, line: u64) -> anyhow::Result<()> {
        let mut skipped = Vec::new();
        while self.next < line && self.line(&mut skipped)? {
            progress::check()?;
            skipped.clear();
        }
        let lines = self.next - 1;
        ensure!(
            self.next >= line,
            "the file has {lines} lines, and the first one to send is line {line}"
        );
        Ok(())
    }

    /// Returns the next lines, about [`CHUNK`] bytes; none at the end.
    fn chunk(&mut self) -> std::io::Result<Vec<u8>> {
        let mut chunk = Vec::with_capacity(CHUNK * 2);
        // Whole lines only: the last line may exceed CHUNK.
        while chunk.len() < CHUNK && self.line(&mut chunk)? {}
        Ok(chunk)
    }
}

/// Returns the bytes of the lines of one request to a server.
///
/// A server has nothing to do from the last answer of a request to the first lines of the next one.
/// One on this machine therefore gets the whole file in one request.
fn piece_bytes(base: &str) -> usize {
    let uri = base.parse::<Uri>().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    if is_local { usize::MAX } else { BYTES }
}

/// Returns a body of `first` and the lines that follow it, of about `most` bytes.
fn piece(lines: &Arc<Mutex<Lines>>, first: Vec<u8>, most: usize) -> Body {
    let (lines, length) = (Arc::clone(lines), first.len());
    let rest = stream::unfold(length, move |length| {
        let chunk =
            (length < most).then(|| lines.lock().unwrap_or_else(PoisonError::into_inner).chunk());
        std::future::ready(match chunk {
            None => None,
            Some(Ok(chunk)) if chunk.is_empty() => None,
            Some(Ok(chunk)) => {
                let length = length.saturating_add(chunk.len());
                Some((Ok(Bytes::from(chunk)), length))
            }
            // With the maximum length, the stream ends after the error.
            Some(Err(error)) => Some((Err(error), most)),
        })
    });
    let first = stream::once(std::future::ready(Ok(Bytes::from(first))));
    Body::from_stream(first.chain(rest))
}

impl LoadOptions {
    /// Sends all lines, and adds up the answers.
    async fn send_all(
        &self,
        lines: Lines,
        progress: &Progress,
        answers: &mut Answers,
    ) -> anyhow::Result<()> {
        let (mut shown, skipped) = (lines.bytes, lines.filled);
        let lines = Arc::new(Mutex::new(lines));
        let read = || lines.lock().unwrap_or_else(PoisonError::into_inner);
        let most = piece_bytes(&self.base);
        let mut client = HttpClient::connect(&self.base, &self.server.trust).await?;
        loop {
            // The number of the first line is read before its chunk advances it.
            let (first, chunk) = {
                let mut lines = read();
                (lines.next, lines.chunk()?)
            };
            if chunk.is_empty() {
                break;
            }
            // The body reads further lines while the answers of the first ones arrive.
            let request = self.request(first, piece(&lines, chunk, most))?;
            let response = client.send(request).await?;
            let status = response.status();
            let mut received = response.into_body().into_data_stream();
            let mut text = Vec::new();
            while let Some(part) = received.next().await {
                text.extend_from_slice(&part?);
                if status == 200 {
                    progress.hide_while(|| answers.add_lines(&mut text))?;
                }
                let bytes = read().bytes;
                progress.advance(bytes - shown);
                progress.show();
                shown = bytes;
            }
            ensure!(status == 200, "{status} {}", String::from_utf8_lossy(&text));
            // The last line of an answer may have no end.
            text.push(b'\n');
            answers.add_lines(&mut text)?;
            let sent = read().filled - skipped;
            check_answered(answers.count(), sent).map_err(anyhow::Error::msg)?;
        }
        Ok(())
    }

    /// Returns the request of a piece.
    fn request(&self, first: u64, body: Body) -> anyhow::Result<Request<Body>> {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let key = self.key.as_deref().unwrap_or(&name);
        let url = format!("{}/ehr/bulk?first={first}", with_mount(&self.base, MOUNT));
        let mut request = Request::post(url)
            .header(CONTENT_TYPE, "application/x-ndjson")
            .header("Idempotency-Key", key);
        if let Some(authorization) = self.server.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        Ok(request.body(body)?)
    }
}

impl Answers {
    /// Adds the complete lines of a text, and removes them from it.
    fn add_lines(&mut self, text: &mut Vec<u8>) -> anyhow::Result<()> {
        // A part of the answer may end within a line. Its beginning stays for the next part.
        let end = text.iter().rposition(|byte| *byte == b'\n');
        let complete: Vec<u8> = text.drain(..end.map_or(0, |end| end + 1)).collect();
        let mut lines = complete.split(|byte| *byte == b'\n');
        lines.try_for_each(|line| match line {
            [] => Ok(()),
            line => self.add(&String::from_utf8_lossy(line)),
        })
    }

    /// Adds the answer of a line. One without a line number ends the load.
    fn add(&mut self, answer: &str) -> anyhow::Result<()> {
        let LineAnswer {
            line,
            status,
            message,
        } = serde_json::from_str(answer)?;
        let (Some(line), Some(status)) = (line, status) else {
            bail!("the server has ended the load: {answer}");
        };
        self.last = line;
        match status {
            201 => self.created += 1,
            200 => self.known += 1,
            _ => self.refuse(line, &message.unwrap_or_default()),
        }
        Ok(())
    }

    /// Returns the number of lines with an answer.
    fn count(&self) -> u64 {
        self.created + self.known + self.refused
    }

    fn refuse(&mut self, line: u64, message: &str) {
        self.refused += 1;
        if self.refused <= SHOWN {
            report_line!("line {line}: {}", printable(message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_on_this_machine_gets_a_file_in_one_request() {
        for base in [
            "http://127.0.0.1:8080/v1",
            "http://localhost:8080",
            "http://[::1]/v1",
        ] {
            assert_eq!(piece_bytes(base), usize::MAX, "{base}");
        }
        for base in ["https://cdr.example.org", "http://192.0.2.1:8080/v1", "x y"] {
            assert_eq!(piece_bytes(base), BYTES, "{base}");
        }
    }
}
