//! The files of the service import each other in one direction, so that each can be read without
//! those that use it.
//!
//! The test reads the statements `use`. Parents of modules (`mod.rs`) are no members of a cycle:
//! they declare their children. A name that a parent exports again counts as an import of the child
//! that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A path of names, as in `use super::auth::Caller`.
type Names = Vec<String>;

/// The modules of the service by their names below `service`.
struct Modules {
    /// The imports of each module.
    imports: BTreeMap<Names, Vec<Names>>,
    /// Those that are exported again.
    exports: BTreeMap<Names, Vec<Names>>,
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files(&path, found),
            false if path.ends_with("tests.rs") => {}
            false => found.push(path),
        }
    }
}

/// Returns the paths of a use tree: `a::{b, c::d}` has two.
fn expanded(tree: &str) -> Vec<Names> {
    let names = |text: &str| -> Names {
        let plain = text.split(" as ").next().unwrap_or_default();
        let parts = plain.split("::").map(str::trim);
        parts
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let Some((before, inside)) = tree.split_once('{') else {
        return vec![names(tree)];
    };
    let inside = inside
        .trim_end()
        .strip_suffix('}')
        .expect("a closing brace");
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in inside.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().expect("a part").push(c),
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts
        .flat_map(|part| expanded(part.trim()))
        .map(|rest| [names(before), rest].concat())
        .collect()
}

impl Modules {
    fn read() -> Modules {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/service");
        let mut found = Vec::new();
        files(&root, &mut found);
        let (mut imports, mut exports) = (BTreeMap::new(), BTreeMap::new());
        for file in found {
            let inside = file.strip_prefix(&root).expect("a file of the folder");
            let mut names: Names = inside
                .with_extension("")
                .iter()
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            names.pop_if(|name| name == "mod");
            let text = std::fs::read_to_string(&file).expect("a text");
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let mut used: Vec<Names> = Vec::new();
            let mut exported = Vec::new();
            for part in format!("\n{text}").split("\nuse ").skip(1) {
                used.extend(expanded(part.split(';').next().unwrap_or_default()));
            }
            for start in ["\npub use ", "\npub(crate) use ", "\npub(super) use "] {
                for part in text.split(start).skip(1) {
                    exported.extend(expanded(part.split(';').next().unwrap_or_default()));
                }
            }
            used.extend(exported.iter().cloned());
            imports.insert(names.clone(), used);
            exports.insert(names, exported);
        }
        Modules { imports, exports }
    }

    /// Returns the module that has an imported name, if it belongs to the service.
    fn resolved(&self, from: &Names, path: &[String]) -> Option<Names> {
        let child = |of: &Names, name: &String| {
            let child = [of.as_slice(), std::slice::from_ref(name)].concat();
            self.imports.contains_key(&child).then_some(child)
        };
        let (mut at, mut rest) = match path {
            [one, two, rest @ ..] if one == "crate" && two == "service" => (Names::new(), rest),
            [one, rest @ ..] if one == "self" => (from.clone(), rest),
            [one, ..] if one == "super" => (from.clone(), path),
            [one, ..] => (child(from, one)?, &path[1..]),
            [] => return None,
        };
        while let [one, left @ ..] = rest {
            match child(&at, one) {
                _ if one == "super" => drop(at.pop()),
                Some(found) => at = found,
                None => break,
            }
            rest = left;
        }
        let exported = self.exports.get(&at).into_iter().flatten();
        let again = rest.first().and_then(|name| {
            exported
                .filter(|path| path.last() == Some(name) && path.len() > 1)
                .find_map(|path| self.resolved(&at, path))
        });
        Some(again.unwrap_or(at))
    }

    /// Returns the modules that a module imports, without parents.
    fn imported(&self, module: &Names) -> BTreeSet<Names> {
        let used = self.imports.get(module).into_iter().flatten();
        used.filter_map(|path| self.resolved(module, path))
            .filter(|found| found != module && !module.starts_with(found))
            .collect()
    }
}

#[test]
fn files_of_the_service_import_in_one_direction() {
    let modules = Modules::read();
    let mut left: BTreeMap<&Names, BTreeSet<Names>> = modules
        .imports
        .keys()
        .filter(|module| !module.is_empty())
        .map(|module| (module, modules.imported(module)))
        .collect();
    let edges: usize = left.values().map(BTreeSet::len).sum();
    assert!(
        left.len() > 60 && edges > 250,
        "{} files, {edges} imports",
        left.len()
    );
    // A file without imports among the rest cannot be part of a cycle.
    loop {
        let names: BTreeSet<Names> = left.keys().map(|name| (*name).clone()).collect();
        let before = left.len();
        left.retain(|_, imported| imported.iter().any(|found| names.contains(found)));
        if left.len() == before {
            break;
        }
    }
    assert!(
        left.is_empty(),
        "these files, or some of them, import each other: {left:#?}"
    );
}
