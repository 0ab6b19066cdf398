//! The mutated copy of the project, and its compilation.

use crate::list::Mutant;
use crate::weave::{self, Woven};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The crates that are mutated, with the folder of their root module.
pub const CRATES: [(&str, &str); 3] = [
    ("aqlite-gdl", "crates/aqlite-gdl/src"),
    ("aqlite-template", "crates/aqlite-template/src"),
    ("aqlite", "src"),
];
/// The crates that are compiled with less optimization than in other tests.
const OPTIMIZED: [&str; 7] = [
    "aqlite-rm",
    "aqlite-engine",
    "aqlite-template",
    "aqlite-aql",
    "aqlite-gdl",
    "aqlite-arrow",
    "aqlite",
];
const SWITCH: &str = include_str!("switch.rs");
/// The bound on attempts to compile without the mutants that do not compile.
const ATTEMPTS: usize = 60;

/// A copy of the project with branches for mutants.
pub struct Tree {
    root: PathBuf,
    /// The folder of the project's own builds, which have compiled the crates of others.
    target: PathBuf,
    woven: BTreeMap<String, Woven>,
}

/// A program of tests.
pub struct TestProgram {
    /// The file.
    pub path: PathBuf,
    /// The folder of its package, in which it runs.
    pub folder: PathBuf,
    /// Whether its tests are those of a library.
    pub is_unit: bool,
}

#[derive(Deserialize)]
struct Line {
    reason: String,
    #[serde(default)]
    message: Option<Message>,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Message {
    level: String,
    rendered: Option<String>,
    spans: Vec<Span>,
    #[serde(default)]
    children: Vec<Message>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    byte_start: usize,
    is_primary: bool,
}

impl Tree {
    /// Copies the files of the project that git knows into a folder, except those that are woven.
    pub fn copy(project: &Path, folder: &Path, mutants: &[Mutant]) -> Result<Tree, String> {
        let roots = CRATES.map(|(_, folder)| format!("{folder}/lib.rs"));
        let woven: BTreeSet<&str> = mutants
            .iter()
            .map(|m| m.file.as_str())
            .chain(roots.iter().map(String::as_str))
            .collect();
        let tree = Tree {
            root: folder.join("tree"),
            target: project.join("target"),
            woven: BTreeMap::new(),
        };
        let files = Command::new("git")
            .args([
                "ls-files",
                "--cached",
                "--others",
                "--exclude-standard",
                "-z",
            ])
            .current_dir(project)
            .output()
            .map_err(|e| format!("git: {e}"))?;
        for name in String::from_utf8_lossy(&files.stdout).split_terminator('\0') {
            let from = project.join(name);
            if from.is_file() && !woven.contains(name) {
                let bytes = std::fs::read(&from).map_err(|e| format!("{name}: {e}"))?;
                tree.write(name, &bytes)?;
            }
        }
        Ok(tree)
    }

    /// Writes a file, unless it has these bytes: cargo compares times.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.root.join(name);
        if std::fs::read(&path).is_ok_and(|old| old == bytes) {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(&self.root);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, bytes))
            .map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Weaves mutants into the sources and compiles, until only mutants are left that compile. Returns the
    /// numbers of those, and the programs of tests. Mutants that did not compile are remembered until
    /// their file changes.
    pub fn build(
        &mut self,
        project: &Path,
        mutants: &[Mutant],
    ) -> Result<(BTreeSet<u32>, Vec<TestProgram>), String> {
        let memory = self.root.with_file_name("unviable");
        let known = std::fs::read_to_string(&memory).unwrap_or_default();
        let mut known: BTreeSet<String> = known.lines().map(str::to_owned).collect();
        let names = names(project, mutants)?;
        let is_new = |m: &&Mutant| !known.contains(&names[&m.id]);
        let mut left: BTreeSet<u32> = mutants.iter().filter(is_new).map(|m| m.id).collect();
        let tests = ["test", "--no-run", "--lib", "--test", "it"];
        for attempt in 1..=ATTEMPTS {
            left = self.weave(project, mutants, &left)?;
            let lines = self.cargo(&tests)?;
            let failed = self.failures(&lines)?;
            if failed.is_empty() {
                return Ok((left, lines.into_iter().filter_map(test_program).collect()));
            }
            println!("attempt {attempt}: {} mutants do not compile", failed.len());
            left.retain(|id| !failed.contains(id));
            known.extend(failed.iter().filter_map(|id| names.get(id).cloned()));
            let lines: Vec<&str> = known.iter().map(String::as_str).collect();
            std::fs::write(&memory, lines.join("\n")).map_err(|e| e.to_string())?;
        }
        Err(format!(
            "{ATTEMPTS} attempts did not remove all mutants that do not compile"
        ))
    }

    /// Writes the sources with the branches of mutants. Returns the mutants that have a branch.
    fn weave(
        &mut self,
        project: &Path,
        mutants: &[Mutant],
        left: &BTreeSet<u32>,
    ) -> Result<BTreeSet<u32>, String> {
        let mut files: BTreeMap<&str, Vec<&Mutant>> = BTreeMap::new();
        for mutant in mutants {
            let file = files.entry(&mutant.file).or_default();
            file.extend(left.contains(&mutant.id).then_some(mutant));
        }
        self.woven.clear();
        for (name, mutants) in files {
            let woven = weave::weave(&read(&project.join(name))?, &mutants)
                .map_err(|e| format!("{name}: {e}"))?;
            self.woven.insert(name.to_owned(), woven);
        }
        for (_, folder) in CRATES {
            self.add_switch(project, folder)?;
        }
        for (name, woven) in &self.woven {
            self.write(name, woven.text.as_bytes())?;
        }
        let branches = self.woven.values().flat_map(|woven| &woven.branches);
        Ok(branches.map(|(_, id)| *id).collect())
    }

    /// Adds the module of the switch to a crate.
    fn add_switch(&mut self, project: &Path, folder: &str) -> Result<(), String> {
        let name = format!("{folder}/lib.rs");
        let source = read(&project.join(&name))?;
        let woven = self.woven.entry(name).or_insert(Woven {
            text: source,
            branches: Vec::new(),
        });
        woven
            .text
            .push_str("\n#[doc(hidden)]\npub mod mutation_switch;\n");
        self.write(&format!("{folder}/mutation_switch.rs"), SWITCH.as_bytes())
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Vec<Line>, String> {
        let packages = CRATES.iter().flat_map(|(name, _)| ["--package", *name]);
        // Less optimization of the project's crates: they are compiled once for few runs.
        let levels = OPTIMIZED.map(|name| format!("profile.checked.package.{name}.opt-level=1"));
        let output = Command::new("cargo")
            .args(arguments)
            .args(packages)
            .args(levels.iter().flat_map(|level| ["--config", level]))
            .args(["--quiet", "--message-format=json"])
            .current_dir(&self.root)
            .args([
                "--profile",
                "checked",
                "--config",
                "profile.checked.incremental=true",
            ])
            .env("CARGO_TARGET_DIR", &self.target)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| format!("cargo: {e}"))?;
        let lines: Vec<Line> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let is_error = |line: &Line| line.message.as_ref().is_some_and(|m| m.level == "error");
        if !output.status.success() && !lines.iter().any(is_error) {
            return Err(format!("cargo {} failed", arguments.join(" ")));
        }
        Ok(lines)
    }

    /// Returns the mutants that cause the errors of a compilation.
    fn failures(&self, lines: &[Line]) -> Result<BTreeSet<u32>, String> {
        let mut failed = BTreeSet::new();
        let messages = lines
            .iter()
            .filter(|line| line.reason == "compiler-message");
        let errors = messages
            .filter_map(|line| line.message.as_ref())
            .filter(|m| m.level == "error");
        let mut unexplained = Vec::new();
        for error in errors {
            let found = self.causes(error);
            if found.is_empty() && !error.spans.is_empty() {
                unexplained.push(error.rendered.clone().unwrap_or_default());
            }
            failed.extend(found);
        }
        // Errors elsewhere may follow from those in branches.
        match failed.is_empty() && !unexplained.is_empty() {
            true => Err(format!(
                "errors outside of mutants:\n{}",
                unexplained.join("\n")
            )),
            false => Ok(failed),
        }
    }

    /// Returns the mutants whose branches an error names, or else the ones nearest in front of it.
    fn causes(&self, error: &Message) -> BTreeSet<u32> {
        let spans = || {
            error
                .spans
                .iter()
                .chain(error.children.iter().flat_map(|c| &c.spans))
        };
        let inside: BTreeSet<u32> = spans().flat_map(|span| self.at(span)).collect();
        if !inside.is_empty() {
            return inside;
        }
        let primary = spans().filter(|span| span.is_primary);
        primary.filter_map(|span| self.before(span)).collect()
    }

    fn at(&self, span: &Span) -> Vec<u32> {
        let branches = self
            .woven
            .get(&span.file_name)
            .into_iter()
            .flat_map(|woven| &woven.branches);
        let inside = branches.filter(|(range, _)| range.contains(&span.byte_start));
        inside.map(|(_, id)| *id).collect()
    }

    /// Returns the last mutant whose branch ends in front of a place.
    fn before(&self, span: &Span) -> Option<u32> {
        let branches = &self.woven.get(&span.file_name)?.branches;
        let before = branches
            .iter()
            .filter(|(range, _)| range.end <= span.byte_start);
        before.max_by_key(|(range, _)| range.end).map(|(_, id)| *id)
    }
}

/// Returns names for mutants that stay the same as long as the source file does.
fn names(project: &Path, mutants: &[Mutant]) -> Result<BTreeMap<u32, String>, String> {
    let mut digests: BTreeMap<&str, u64> = BTreeMap::new();
    for mutant in mutants {
        if !digests.contains_key(mutant.file.as_str()) {
            digests.insert(&mutant.file, digest(&read(&project.join(&mutant.file))?));
        }
    }
    let name = |m: &Mutant| format!("{:016x} {}", digests[m.file.as_str()], m.name);
    Ok(mutants.iter().map(|m| (m.id, name(m))).collect())
}

/// Returns a digest of a text (FNV-1a).
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn test_program(line: Line) -> Option<TestProgram> {
    let folder = line.manifest_path?.parent()?.to_path_buf();
    let is_unit = line.target?.kind.iter().any(|kind| kind == "lib");
    Some(TestProgram {
        path: line.executable?,
        folder,
        is_unit,
    })
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
