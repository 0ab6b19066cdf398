//! The parts of documents that commands write.

use std::fs;

use crate::process::root;

/// Replaces the text between the marks `<!-- part -->` and `<!-- /part -->`.
pub fn write(page: &str, part: &str, text: &str) -> Result<(), String> {
    let path = root().join(page);
    let old = fs::read_to_string(&path).map_err(|e| format!("{page}: {e}"))?;
    let (start, end) = (format!("<!-- {part} -->\n"), format!("<!-- /{part} -->\n"));
    let parts = old
        .split_once(&start)
        .and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) = parts.ok_or(format!("{page} has lost the marks of its part `{part}`"))?;
    let text = text.trim();
    fs::write(&path, format!("{before}{start}\n{text}\n\n{end}{after}"))
        .map_err(|e| format!("{page}: {e}"))
}
