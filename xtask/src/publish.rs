//! The crates as the registry would get them: packed, and compared with what they must contain.

use crate::process::{cargo, output_of, run};

/// The published crates with their folders of source and data, in the order of their dependencies.
const CRATES: [(&str, &[&str]); 8] = [
    ("aqlite-rm", &["src/"]),
    ("aqlite-engine", &["src/"]),
    ("aqlite-template", &["src/"]),
    ("aqlite-aql", &["src/"]),
    ("aqlite-gdl", &["src/"]),
    ("aqlite-arrow", &["src/"]),
    (
        "aqlite",
        &[
            "src/",
            "examples/",
            "migrations/",
            "migrations-log/",
            "www/samples/",
        ],
    ),
    ("aqlite-cli", &["src/"]),
];

/// The files beside the folders that a crate may contain. Cargo writes the first three.
const FILES: [&str; 8] = [
    ".cargo_vcs_info.json",
    "Cargo.lock",
    "Cargo.toml.orig",
    "Cargo.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
];

/// The files that every crate contains. Both licenses require their text with each copy.
const REQUIRED: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Packs all crates without an upload, as `cargo publish` does, and checks their files. The packed
/// crates are not compiled: the workspace compiles the same files, and the public automation
/// compiles the packed ones.
pub fn check() -> Result<(), String> {
    for (name, folders) in CRATES {
        let list = ["package", "--list", "--allow-dirty", "--package", name];
        let files = output_of(&mut cargo(&list)).ok_or(format!("{name} cannot be packed"))?;
        check_files(name, folders, &files)?;
    }
    let options = ["--dry-run", "--no-verify", "--allow-dirty", "--quiet"];
    run(cargo(&["publish", "--workspace"]).args(options))
}

fn check_files(name: &str, folders: &[&str], files: &str) -> Result<(), String> {
    let is_expected = |file: &str| {
        // Cargo lists paths of the machine's form.
        let file = file.replace('\\', "/");
        FILES.contains(&file.as_str()) || folders.iter().any(|folder| file.starts_with(folder))
    };
    let others: Vec<&str> = files.lines().filter(|file| !is_expected(file)).collect();
    if !others.is_empty() {
        return Err(format!("{name} must not contain {}", others.join(", ")));
    }
    let has = |wanted: &str| {
        files
            .lines()
            .any(|file| file.replace('\\', "/").starts_with(wanted))
    };
    let mut wanted = folders.iter().chain(&REQUIRED);
    wanted
        .find(|wanted| !has(wanted))
        .map_or(Ok(()), |missing| Err(format!("{name} lacks {missing}")))
}

#[cfg(test)]
mod tests {
    use super::{CRATES, check_files};
    use crate::process::root;
    use std::fs;

    #[test]
    fn the_workflows_name_each_published_crate() {
        let read = |name: &str| fs::read_to_string(root().join(".github/workflows").join(name));
        let names = CRATES.map(|(name, _)| name);
        let published = read("release.yml").unwrap();
        assert!(published.contains(&format!("for crate in {}; do", names.join(" "))));
        // A program has no public interface.
        let compared = read("test.yml").unwrap();
        let words: Vec<&str> = compared.split_whitespace().collect();
        let compared: Vec<&str> = words
            .windows(2)
            .filter(|pair| pair[0] == "--package")
            .map(|pair| pair[1])
            .collect();
        assert_eq!(compared, names[..names.len() - 1]);
    }

    #[test]
    fn a_file_of_the_tests_or_a_missing_readme_or_license_is_an_error() {
        let check = |files: &str| check_files("aqlite-rm", &["src/"], files);
        let required = "README.md\nLICENSE-APACHE\nLICENSE-MIT";
        assert_eq!(
            check(&format!("Cargo.toml\n{required}\nsrc/lib.rs")),
            Ok(())
        );
        let more = check(&format!("{required}\nsrc/lib.rs\ntests/it/main.rs"));
        assert!(more.unwrap_err().contains("tests/it"));
        for missing in required.lines() {
            let others = required.replace(missing, "Cargo.toml");
            let error = check(&format!("{others}\nsrc/lib.rs")).unwrap_err();
            assert_eq!(error, format!("aqlite-rm lacks {missing}"));
        }
    }
}
