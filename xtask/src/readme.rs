//! The parts of README.md that commands write.

use std::fs;

use crate::process::root;

/// Puts `text` between the marks `<!-- part -->` and `<!-- /part -->`.
pub fn write(part: &str, text: &str) -> Result<(), String> {
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).map_err(|e| format!("README.md: {e}"))?;
    let (start, end) = (format!("<!-- {part} -->\n"), format!("<!-- /{part} -->\n"));
    let parts = readme.split_once(&start).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) = parts.ok_or(format!("README.md has lost the marks of its part `{part}`"))?;
    let text = text.trim();
    fs::write(&path, format!("{before}{start}\n{text}\n\n{end}{after}")).map_err(|e| format!("README.md: {e}"))
}
