//! The features of the library in its manifest, and on the pages that name them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Returns the quoted texts of a line of TOML: `["gzip", "server"]`.
fn quoted(text: &str) -> BTreeSet<String> {
    let names = text.split('"').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

/// Returns the lines of the table `[features]` of a manifest by their names.
fn features(manifest: &str) -> BTreeMap<String, BTreeSet<String>> {
    let table = manifest.split("\n[features]\n").nth(1).unwrap();
    let lines = table.lines().take_while(|line| !line.starts_with('['));
    let pairs = lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" = "));
    pairs
        .map(|(name, members)| (name.to_owned(), quoted(members)))
        .collect()
}

/// Returns the features of `aqlite` that the manifest of a host requests.
fn requested(manifest: &str) -> BTreeSet<String> {
    let mut lines = manifest.lines();
    let line = lines.find(|line| line.starts_with("aqlite = ")).unwrap();
    quoted(line.split_once("features = ").unwrap().1)
}

/// Returns the features of each binary in the table of ARCHITECTURE.md, by the name of the binary.
fn documented(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let table = page.split("| binary | target |").nth(1).unwrap();
    let rows = table.lines().skip(2);
    let cells = rows
        .take_while(|row| row.starts_with('|'))
        .map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let names = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    cells
        .map(|cells| (cells[1].to_owned(), names(cells[4])))
        .collect()
}

#[test]
fn the_table_of_the_architecture_has_the_features_of_each_binary() {
    let library = features(&read("Cargo.toml"));
    let page = documented(&read("ARCHITECTURE.md"));
    let of = |name: &str| {
        page.iter()
            .find(|(binary, _)| binary.starts_with(name))
            .unwrap()
            .1
    };
    assert_eq!(*of("library"), library["default"]);
    assert_eq!(*of("program"), requested(&read("cli/Cargo.toml")));
    assert_eq!(*of("worker"), requested(&read("worker/Cargo.toml")));
    // The module of the npm package has the default features of its crate, that of the page none.
    let module = features(&read("www/wasm/Cargo.toml"));
    let enabled = module["default"].iter().flat_map(|name| &module[name]);
    let enabled = enabled.filter_map(|name| name.strip_prefix("aqlite/"));
    assert_eq!(*of("npm"), enabled.map(str::to_owned).collect());
    assert_eq!(*of("page"), BTreeSet::new());
    assert!(read("xtask/src/bundle.rs").contains("\"--no-default-features\""));
}

#[test]
fn each_feature_is_explained_where_it_is_chosen() {
    let manifest = features(&read("Cargo.toml"));
    let names: Vec<&String> = manifest.keys().filter(|name| *name != "default").collect();
    let (architecture, root) = (read("ARCHITECTURE.md"), read("src/lib.rs"));
    for name in &names {
        let missing = format!("- Without `{name}`");
        assert!(
            architecture.contains(&missing),
            "ARCHITECTURE.md: {missing}"
        );
        assert!(
            root.contains(&format!("//! | `{name}` |")),
            "src/lib.rs: {name}"
        );
    }
    let last = names.last().unwrap();
    let others: Vec<String> = names[..names.len() - 1]
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    let count = ["no", "one", "two", "three", "four", "five", "six"][names.len()];
    let listed = format!("{count} features: {} and `{last}`", others.join(", "));
    assert!(read("README.md").contains(&listed), "README.md: {listed}");
}
