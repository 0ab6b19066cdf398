//! Links of Markdown pages: their places, their targets, and the anchors of headings.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// Folders of the source tree. A span of code that begins with one of them names a file.
const FOLDERS: [&str; 12] = [
    ".github/",
    "benches/",
    "cli/",
    "crates/",
    "docs/",
    "examples/",
    "fuzz/",
    "migrations/",
    "src/",
    "tests/",
    "www/",
    "xtask/",
];

/// Returns the ranges of the lines that are no part of a fenced block.
fn prose(text: &str) -> Vec<Range<usize>> {
    let (mut ranges, mut at, mut is_code) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            ranges.push(at..at + line.len());
        }
        at += line.len();
    }
    ranges
}

/// Returns the places of the targets of inline links: the text in parentheses behind `]`.
pub fn targets(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for line in prose(text) {
        let mut is_code = false;
        let mut at = line.start;
        while at < line.end {
            let rest = &text[at..line.end];
            if rest.starts_with('`') {
                is_code = !is_code;
            } else if let Some(target) = rest.strip_prefix("](").filter(|_| !is_code) {
                let length = target.find(')').unwrap_or(target.len());
                found.push(at + 2..at + 2 + length);
            }
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// Returns the anchors of the headings of a page, as GitHub and mdBook make them.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(text) {
        let title = text[line].trim_start_matches('#');
        let Some(title) = title.strip_prefix(' ').filter(|_| is_heading(text, title)) else {
            continue;
        };
        let slug = slug(title);
        let next = (1..).map(|number| format!("{slug}-{number}"));
        let unused = std::iter::once(slug.clone())
            .chain(next)
            .find(|a| !anchors.contains(a));
        anchors.extend(unused);
    }
    anchors
}

/// Returns whether the rest of a line of `text` has a `#` before it.
fn is_heading(text: &str, rest: &str) -> bool {
    let start = rest.as_ptr() as usize - text.as_ptr() as usize;
    start > 0 && text.as_bytes()[start - 1] == b'#'
}

/// Returns the anchor of a heading: letters, digits, `_` and `-`, with `-` for a blank.
fn slug(title: &str) -> String {
    let kept = title.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

/// Returns a path relative to a folder, without `..`. `None` if it leaves the root.
pub fn resolve(folder: &Path, target: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if !path.pop() => return None,
            _ => {}
        }
    }
    Some(path)
}

/// Returns whether a target is an address of another site.
pub fn is_external(target: &str) -> bool {
    ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| target.starts_with(scheme))
}

/// Returns the problems of the links of a page: targets and anchors that do not exist. `name` is its
/// path below `root`.
pub fn problems(root: &Path, name: &str, text: &str) -> Vec<String> {
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let mut problems = Vec::new();
    for place in targets(text) {
        let target = &text[place];
        if is_external(target) {
            continue;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = match path {
            "" => Some(PathBuf::from(name)),
            path => resolve(folder, path),
        };
        let Some(path) = path.filter(|path| root.join(path).exists()) else {
            problems.push(format!("{name}: there is no `{target}`"));
            continue;
        };
        if !anchor.is_empty() && !anchors_of(root, &path).contains(anchor) {
            problems.push(format!("{name}: `{target}`: the page has no such heading"));
        }
    }
    problems
}

fn anchors_of(root: &Path, path: &Path) -> BTreeSet<String> {
    std::fs::read_to_string(root.join(path))
        .map(|text| anchors(&text))
        .unwrap_or_default()
}

/// Returns the spans of code that name a file of the source tree which does not exist.
pub fn missing_files(root: &Path, name: &str, text: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for line in prose(text) {
        for span in text[line].split('`').skip(1).step_by(2) {
            let is_path = FOLDERS.iter().any(|folder| span.starts_with(folder));
            let has_pattern = span.contains(['*', '{', '<', ' ', '$', '…']) || is_placeholder(span);
            if is_path && !has_pattern && !root.join(span).exists() {
                missing.push(format!("{name}: there is no file `{span}`"));
            }
        }
    }
    missing
}

/// Returns whether a path has a part in capitals, such as `seeds/TARGET`.
fn is_placeholder(path: &str) -> bool {
    let is_capital = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase());
    path.split(['/', '.']).any(is_capital) && !path.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A page\n\nSee [one](b.md#x) and `[two](c.md)`.\n\n```sh\n# no heading [d](e.md)\n```\n\
                        ## GET /a/{b}: `c`\n\n## A page\n";

    #[test]
    fn links_are_found_outside_of_code() {
        let found: Vec<&str> = targets(PAGE)
            .into_iter()
            .map(|place| &PAGE[place])
            .collect();
        assert_eq!(found, ["b.md#x"]);
    }

    #[test]
    fn anchors_are_those_of_headings() {
        let expected = ["a-page", "a-page-1", "get-ab-c"].map(str::to_owned);
        assert_eq!(anchors(PAGE), BTreeSet::from(expected));
    }

    #[test]
    fn paths_are_relative_to_the_page() {
        assert_eq!(
            resolve(Path::new("docs"), "../README.md"),
            Some(PathBuf::from("README.md"))
        );
        assert_eq!(resolve(Path::new("docs"), "../../x"), None);
    }

    #[test]
    fn a_link_without_a_target_is_reported() {
        let root = crate::process::root();
        let text = "[a](aql.md#pages) [b](aql.md#pagination) [c](nothing.md) `src/nothing.rs`";
        let problems = problems(&root, "docs/rest.md", text);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(missing_files(&root, "docs/rest.md", text).len(), 1);
    }
}
