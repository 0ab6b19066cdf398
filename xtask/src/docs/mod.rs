//! `cargo xtask docs`: the documentation as a site, made by mdBook.

mod links;
mod navigation;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::options::Options;
use crate::process::{command, root, run_silently};
use crate::tools;
use navigation::{Page, pages, summary};

/// The folder of the site.
pub const SITE: &str = "dist/docs";
/// The folder of the pages as mdBook reads them.
const STAGE: &str = "target/docs";
/// The settings of mdBook. It writes relative links only, so the site works in every folder and
/// without a server. Examples of Rust are not sent to a playground.
const SETTINGS: &str = r#"[book]
title = "aqlite"
language = "en"
[output.html]
default-theme = "light"
no-section-label = true
preferred-dark-theme = "navy"
[output.html.playground]
runnable = false
[output.html.print]
enable = false
[output.html.search]
limit-results = 20
"#;

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    Options::read(args, &[], &[])?;
    build()?;
    println!("{SITE}/index.html");
    Ok(())
}

/// Builds the site into [`SITE`], and checks every link of the pages and of the site.
pub fn build() -> Result<(), String> {
    none(problems()?)?;
    stage()?;
    let mdbook = tools::mdbook()?;
    let out = root().join(SITE);
    let stage = root().join(STAGE);
    let paths = [out.to_string_lossy(), stage.to_string_lossy()];
    let mut build = command(mdbook, &["build", "--dest-dir", &paths[0], &paths[1]]);
    run_silently(build.stderr(Stdio::piped()))?;
    none(broken(&out)?)
}

fn none(problems: Vec<String>) -> Result<(), String> {
    match problems.as_slice() {
        [] => Ok(()),
        problems => Err(problems.join("\n")),
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, content));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the names of the files of a folder.
fn files(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

/// Returns the problems of the sources: broken links, names of files that do not exist, and pages
/// without a place in the navigation.
fn problems() -> Result<Vec<String>, String> {
    let placed: BTreeSet<&str> = pages().map(|page| page.source).collect();
    let mut problems = Vec::new();
    for name in files(&root().join("docs"))? {
        let source = format!("docs/{name}");
        if name.ends_with(".md") && !placed.contains(source.as_str()) {
            problems.push(format!(
                "{source} has no place in xtask/src/docs/navigation.rs"
            ));
        }
    }
    let crates = files(&root().join("crates"))?;
    let crates = crates.iter().map(|name| format!("crates/{name}/README.md"));
    let others = crates.chain([String::from("cli/README.md")]);
    for source in placed.iter().map(|&source| source.to_owned()).chain(others) {
        let text = read(&root().join(&source))?;
        problems.extend(links::problems(&root(), &source, &text));
        problems.extend(links::missing_files(&root(), &source, &text));
    }
    Ok(problems)
}

/// Writes the pages, their pictures and the settings for mdBook.
fn stage() -> Result<(), String> {
    let folder = root().join(STAGE);
    drop(fs::remove_dir_all(&folder));
    write(&folder.join("book.toml"), SETTINGS)?;
    write(&folder.join("src/SUMMARY.md"), summary())?;
    for name in files(&root().join("docs/images"))? {
        let picture = fs::read(root().join("docs/images").join(&name));
        let picture = picture.map_err(|error| format!("{name}: {error}"))?;
        write(&folder.join("src/images").join(&name), picture)?;
    }
    let repository = repository()?;
    for page in pages() {
        let text = read(&root().join(page.source))?;
        let text = plain_fences(&relinked(page, &text, &repository));
        write(&folder.join(format!("src/{}.md", page.name)), text)?;
    }
    Ok(())
}

/// Returns the address of the repository, of Cargo.toml.
fn repository() -> Result<String, String> {
    let manifest = read(&root().join("Cargo.toml"))?;
    let value = manifest
        .lines()
        .find_map(|line| line.strip_prefix("repository = \""));
    let value = value.and_then(|rest| rest.strip_suffix('"'));
    value
        .map(str::to_owned)
        .ok_or_else(|| String::from("Cargo.toml has no repository"))
}

/// Returns a page with the links of the site: to other pages, to pictures, and to the source tree in
/// the repository.
fn relinked(page: &Page, text: &str, repository: &str) -> String {
    let folder = Path::new(page.source).parent().unwrap_or(Path::new(""));
    let names: BTreeMap<PathBuf, &str> = pages()
        .map(|page| (PathBuf::from(page.source), page.name))
        .collect();
    let (mut out, mut copied) = (String::new(), 0);
    for place in links::targets(text) {
        let target = &text[place.clone()];
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        if path.is_empty() || links::is_external(target) {
            continue;
        }
        let path = links::resolve(folder, path).unwrap_or_default();
        let anchor = if anchor.is_empty() {
            String::new()
        } else {
            format!("#{anchor}")
        };
        let new = match (names.get(&path), path.strip_prefix("docs/images")) {
            (Some(name), _) => format!("{name}.md{anchor}"),
            (None, Ok(picture)) => format!("images/{}", picture.display()),
            (None, Err(_)) => format!("{repository}/blob/main/{}", path.display()),
        };
        out.push_str(&text[copied..place.start]);
        out.push_str(&new);
        copied = place.end;
    }
    out + &text[copied..]
}

/// Returns a page whose blocks have a language only. AQL is highlighted as SQL.
fn plain_fences(text: &str) -> String {
    let line = |line: &str| {
        let Some((indent, info)) = line.split_once("```").filter(|(i, _)| i.trim().is_empty())
        else {
            return format!("{line}\n");
        };
        let language = info.split([' ', ',']).next().unwrap_or_default();
        let language = if language == "aql" { "sql" } else { language };
        format!("{indent}```{language}\n")
    };
    text.lines().map(line).collect()
}

/// The values of an attribute in HTML that mdBook wrote.
fn values<'t>(html: &'t str, attribute: &str) -> impl Iterator<Item = &'t str> {
    let parts = html.split(attribute).skip(1);
    parts.filter_map(|rest| rest.strip_prefix("=\"")?.split('"').next())
}

/// Returns the links of a site whose file or anchor does not exist, and addresses that need a server
/// at its root.
fn broken(site: &Path) -> Result<Vec<String>, String> {
    let names: Vec<String> = files(site)?
        .into_iter()
        .filter(|n| n.ends_with(".html"))
        .collect();
    let mut texts = BTreeMap::new();
    for name in &names {
        texts.insert(name.as_str(), read(&site.join(name))?);
    }
    let mut problems = Vec::new();
    // The page for absent addresses is for servers, which send it at any depth.
    for (name, html) in texts.iter().filter(|(name, _)| **name != "404.html") {
        for target in values(html, " href").chain(values(html, " src")) {
            if links::is_external(target) {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { name } else { path };
            let has_anchor = |page: &String| values(page, " id").any(|id| id == anchor);
            let is_there = match texts.get(path) {
                Some(page) => anchor.is_empty() || has_anchor(page),
                None => !path.starts_with('/') && site.join(path).is_file(),
            };
            if !is_there {
                problems.push(format!("{SITE}/{name}: `{target}` leads nowhere"));
            }
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_documentation_lead_somewhere() {
        let problems = problems().unwrap();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }

    #[test]
    fn links_of_the_site_are_those_of_its_pages() {
        let page = navigation::PARTS[1].pages.first().unwrap();
        let text =
            "[a](rest.md#lists) [b](../README.md) [c](../src/lib.rs) [d](images/query.png) [e](#x)";
        let expected = "[a](rest.md#lists) [b](index.md) [c](R/blob/main/src/lib.rs) [d](images/query.png) [e](#x)";
        assert_eq!(relinked(page, text, "R"), expected);
    }

    #[test]
    fn fences_keep_their_language() {
        let text = "```aql file=a.aql\nx\n```\n   ```sh not-run: y\n";
        assert_eq!(plain_fences(text), "```sql\nx\n```\n   ```sh\n");
    }
}
