//! Results of fixtures as JUnit XML, for continuous integration.

use super::{CaseResult, Report, stem};
use std::fmt::Write;
use std::path::Path;

/// Returns the results as a document of JUnit XML.
pub fn text(reports: &[Report]) -> String {
    let mut out =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gdl\">\n");
    for report in reports {
        let failures = report
            .results
            .iter()
            .filter(|r| !r.problems.is_empty())
            .count();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\">",
            xml(&report.file),
            report.results.len()
        );
        for CaseResult {
            name,
            seconds,
            problems,
        } in &report.results
        {
            let _ = write!(
                out,
                "    <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.6}\"",
                xml(&stem(Path::new(&report.file))),
                xml(name)
            );
            match problems.first() {
                None => out.push_str("/>\n"),
                Some(first) => {
                    let _ = writeln!(
                        out,
                        ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                        xml(first),
                        xml(&problems.join("\n"))
                    );
                }
            }
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// Returns a text for XML, without the characters that XML forbids.
fn xml(text: &str) -> String {
    let kept = text.chars().filter(|c| *c >= ' ' || *c == '\n');
    kept.fold(String::new(), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
        out
    })
}
