//! `aqlite load`: sends a file of lines to the bulk route of a server, in pieces.
//!
//! Each piece has the same idempotency key and the number of its first line. So a load that broke off
//! is repeated with the same command: lines that were loaded before are answered with 200.

use anyhow::{Context, bail, ensure};
use clap::Args;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::PathBuf;
use ureq::Agent;

/// Lines of one request. Their answers fit into the buffers of a connection, because they are read after
/// the last line was sent.
const LINES: u64 = 1_000;

/// Bytes of the lines of one request, unless the first is longer.
const BYTES: usize = 20_000_000;

/// Refused lines that are shown.
const SHOWN: u64 = 20;

/// The arguments of `aqlite load`. The variable AQLITE_AUTHORIZATION is sent as `Authorization`.
#[derive(Args)]
pub struct LoadOptions {
    /// The file: newline-delimited JSON as `POST ehr/bulk` takes it
    file: PathBuf,
    /// The mount of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080/v1")]
    base: String,
    /// The idempotency key; the name of the file if not given
    #[arg(long)]
    key: Option<String>,
    /// The number of the first line to send
    #[arg(long, value_name = "LINE", default_value_t = 1)]
    from: u64,
}

/// The number of lines by their outcome.
#[derive(Default)]
struct Counts {
    created: u64,
    known: u64,
    refused: u64,
}

/// Sends a file.
///
/// # Errors
/// If the server does not answer or refuses a line. The message has the line to continue from.
pub fn load(options: &LoadOptions) -> anyhow::Result<()> {
    // Fails only if a provider is installed already, which is then used.
    drop(rustls::crypto::ring::default_provider().install_default());
    let shown = options.file.display();
    let file = File::open(&options.file).with_context(|| format!("{shown}"))?;
    let total = file.metadata()?.len();
    let mut lines = Lines {
        reader: BufReader::new(file),
        next: 1,
        bytes: 0,
    };
    lines.skip_to(options.from)?;
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let mut counts = Counts::default();
    loop {
        let first = lines.next;
        let piece = lines.piece()?;
        if piece.is_empty() {
            break;
        }
        let sent = options.send(&agent, first, &piece, &mut counts);
        sent.with_context(|| format!("the load can be continued by `--from {first}`"))?;
        if std::io::stderr().is_terminal() {
            let percent = lines.bytes.saturating_mul(100) / total.max(1);
            eprint!("\r{shown}: {percent} %, line {} ", lines.next - 1);
        }
    }
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    println!(
        "{} lines loaded, {} were loaded before, {} refused",
        counts.created, counts.known, counts.refused
    );
    ensure!(counts.refused == 0, "lines were refused");
    Ok(())
}

/// A file of lines in progress.
struct Lines {
    reader: BufReader<File>,
    /// The number of the next line.
    next: u64,
    /// Bytes that were read.
    bytes: u64,
}

impl Lines {
    /// Reads one line into `into`. Returns false at the end.
    fn line(&mut self, into: &mut Vec<u8>) -> std::io::Result<bool> {
        let read = self.reader.read_until(b'\n', into)?;
        self.bytes += read as u64;
        self.next += u64::from(read > 0);
        Ok(read > 0)
    }

    fn skip_to(&mut self, line: u64) -> std::io::Result<()> {
        let mut skipped = Vec::new();
        while self.next < line && self.line(&mut skipped)? {
            skipped.clear();
        }
        Ok(())
    }

    /// Returns the lines of the next request; none at the end.
    fn piece(&mut self) -> std::io::Result<Vec<u8>> {
        let (mut piece, first) = (Vec::new(), self.next);
        while self.next - first < LINES && piece.len() < BYTES && self.line(&mut piece)? {}
        Ok(piece)
    }
}

impl LoadOptions {
    fn send(
        &self,
        agent: &Agent,
        first: u64,
        piece: &[u8],
        counts: &mut Counts,
    ) -> anyhow::Result<()> {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let key = self.key.as_deref().unwrap_or(&name);
        let url = format!("{}/ehr/bulk?first={first}", self.base.trim_end_matches('/'));
        let mut request = agent
            .post(&url)
            .header("Content-Type", "application/x-ndjson")
            .header("Idempotency-Key", key);
        if let Ok(authorization) = std::env::var("AQLITE_AUTHORIZATION") {
            request = request.header("Authorization", &authorization);
        }
        let mut response = request.send(piece).with_context(|| url.clone())?;
        let status = response.status();
        let body = response.body_mut();
        if status != 200 {
            bail!("{url}: {status} {}", body.read_to_string()?);
        }
        for line in BufReader::new(body.as_reader()).lines() {
            counts.add(&line?)?;
        }
        Ok(())
    }
}

impl Counts {
    /// Counts the answer of a line. One without a line number ends the load.
    fn add(&mut self, answer: &str) -> anyhow::Result<()> {
        let parsed: serde_json::Value = serde_json::from_str(answer)?;
        let number = |name: &str| parsed.get(name).and_then(serde_json::Value::as_u64);
        match (number("line"), number("status")) {
            (Some(_), Some(201)) => self.created += 1,
            (Some(_), Some(200)) => self.known += 1,
            (Some(line), Some(_)) => {
                self.refused += 1;
                if self.refused <= SHOWN {
                    let message = parsed.get("message").and_then(serde_json::Value::as_str);
                    eprintln!("line {line}: {}", message.unwrap_or(answer));
                }
            }
            _ => bail!("the server has ended the load: {answer}"),
        }
        Ok(())
    }
}
