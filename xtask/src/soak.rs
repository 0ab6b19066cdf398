//! `cargo xtask soak`: what takes too long for every change.

use crate::bundle;
use crate::options::Options;
use crate::process::{cargo, command, find, root, run};

pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["minutes"], &[])?;
    let minutes: u32 = options.value("minutes", "10").parse().map_err(|_| "`--minutes` needs a number".to_owned())?;
    bundle::all()?;
    run(command("node", &["tests/e2e/kill.mjs"]).env("MINUTES", minutes.to_string()))?;
    fuzz(minutes)
}

/// Every fuzz target for its share of the time; says so when there is nothing to run.
fn fuzz(minutes: u32) -> Result<(), String> {
    let targets: Vec<String> = std::fs::read_dir(root().join("fuzz/fuzz_targets"))
        .map(|entries| entries.flatten().filter_map(|e| e.path().file_stem().map(|s| s.to_string_lossy().into_owned())).collect())
        .unwrap_or_default();
    if targets.is_empty() {
        println!("no fuzz targets: nothing fuzzed");
        return Ok(());
    }
    if find("cargo-fuzz").is_none() {
        return Err("fuzz targets exist, but cargo-fuzz does not: run `cargo install cargo-fuzz`".to_owned());
    }
    let seconds = u64::from(minutes) * 60 / targets.len() as u64;
    for target in targets {
        let found = format!("fuzz/corpus/{target}");
        std::fs::create_dir_all(root().join(&found)).map_err(|e| e.to_string())?;
        let seeds = [format!("fuzz/seeds/{target}"), "www/samples".to_owned(), format!("tests/cases/{target}")];
        let seeds = seeds.iter().filter(|folder| root().join(folder).is_dir()).map(String::as_str);
        let limits = [format!("-max_total_time={seconds}"), "-timeout=10".to_owned()];
        let args: Vec<&str> = ["+nightly", "fuzz", "run", &target, &found].into_iter().chain(seeds).chain(["--", &limits[0], &limits[1]]).collect();
        run(&mut cargo(&args))?;
    }
    Ok(())
}
