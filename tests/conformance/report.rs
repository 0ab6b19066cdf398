//! Cases and their report: one line per suite, a JSON file, and the comparison with the known
//! failures.

use serde_json::json;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The result of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Passed,
    Failed,
    Skipped,
}

/// One case of a suite.
pub struct Case {
    pub id: String,
    pub status: Status,
    pub detail: String,
}

impl Case {
    /// Runs a case; an error or a panic is a failure.
    pub fn check(id: impl Into<String>, run: impl FnOnce() -> Result<(), String>) -> Case {
        let outcome =
            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("it panicked".to_owned()));
        let status = if outcome.is_ok() {
            Status::Passed
        } else {
            Status::Failed
        };
        Case {
            id: id.into(),
            status,
            detail: outcome.err().unwrap_or_default(),
        }
    }

    /// Returns a case without a verdict.
    pub fn skipped(id: impl Into<String>, reason: impl Into<String>) -> Case {
        Case {
            id: id.into(),
            status: Status::Skipped,
            detail: reason.into(),
        }
    }
}

/// Reports a suite. Returns whether its failures are exactly the known ones.
pub fn print_report(suite: &str, cases: &[Case]) -> bool {
    let count = |status| cases.iter().filter(|c| c.status == status).count();
    let (passed, failed, skipped) = (
        count(Status::Passed),
        count(Status::Failed),
        count(Status::Skipped),
    );
    println!(
        "conformance {suite}: {passed} passed, {failed} failed, {skipped} skipped, of {}",
        cases.len()
    );
    if let Err(error) = write_json(suite, cases, (passed, failed, skipped)) {
        eprintln!("  the report could not be written: {error}");
    }
    let known = known_failures(suite);
    let unlisted = cases
        .iter()
        .filter(|c| c.status == Status::Failed && !known.contains(&c.id));
    let mended = cases
        .iter()
        .filter(|c| c.status == Status::Passed && known.contains(&c.id));
    let surprises: Vec<String> = unlisted
        .map(|c| format!("  failed: {}: {}", c.id, c.detail))
        .chain(mended.map(|c| format!("  passed, but is listed as known failure: {}", c.id)))
        .collect();
    surprises.iter().take(40).for_each(|s| println!("{s}"));
    if surprises.len() > 40 {
        println!(
            "  … and {} more, see target/conformance/{suite}.json",
            surprises.len() - 40
        );
    }
    surprises.is_empty()
}

fn write_json(
    suite: &str,
    cases: &[Case],
    (passed, failed, skipped): (usize, usize, usize),
) -> std::io::Result<()> {
    let list: Vec<_> = cases
        .iter()
        .map(|c| {
            let status = match c.status {
                Status::Passed => "passed",
                Status::Failed => "failed",
                Status::Skipped => "skipped",
            };
            json!({ "id": c.id, "status": status, "detail": c.detail })
        })
        .collect();
    let report = json!({ "suite": suite, "total": cases.len(), "passed": passed, "failed": failed, "skipped": skipped, "cases": list });
    let folder = target().join("conformance");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(
        folder.join(format!("{suite}.json")),
        format!("{report:#}\n"),
    )
}

/// Returns the target folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target"),
        PathBuf::from,
    )
}

fn known_failures(suite: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/conformance/known_failures")
        .join(format!("{suite}.txt"));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(str::to_owned)
        .collect()
}
