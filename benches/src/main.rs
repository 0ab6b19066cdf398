//! Questions and steps in one thread: `aqlite-bench [--compositions N,N] [--corpus DIR] [--beside LINES]`.
//!
//! Native, SQLite is asked the same in the same run, and tables are printed. In wasm, a line a measurement:
//! `wasm KEY VALUE`; `--beside` takes such lines, and those of `aqlite-memory`, into the native tables (joined by `;`).

#[cfg(not(target_family = "wasm"))]
mod peer;

use aqlite::samples::Generator;
use aqlite_bench::{QUESTIONS, Step, guide_of_30_kb, guide_runs, language, load, reading, sample_fixtures};
use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1)).cloned();
    let told = Told::read(&value("--beside").unwrap_or_default());
    for size in value("--compositions").unwrap_or("10000,100000".to_owned()).split(',') {
        questions(size.trim().parse()?, &told)?;
    }
    told.heading("One composition of 5.8 kB, from text to shape and slots and back", "native, µs", "wasm, µs");
    reading().iter().for_each(|step| told.step(step));
    told.heading("What is read once", "native, µs", "wasm, µs");
    language().iter().for_each(|step| told.step(step));
    told.step(&("read and compile a guide, for each 30 kB of it", guide_of_30_kb()));
    guides(value("--corpus").map(PathBuf::from), &told);
    told.memory();
    Ok(())
}

/// What was measured beside this run, by key.
struct Told(HashMap<String, f64>);

impl Told {
    fn read(lines: &str) -> Told {
        let pair = |line: &str| line.trim().rsplit_once(' ').and_then(|(key, value)| Some((key.to_owned(), value.parse().ok()?)));
        Told(lines.split(';').filter_map(pair).collect())
    }

    fn heading(&self, what: &str, native: &str, wasm: &str) {
        if !cfg!(target_family = "wasm") {
            println!("\n{what}:\n\n| | {native} | {wasm} | wasm to native |\n|---|---:|---:|---:|");
        }
    }

    /// In wasm a line, native a row with that line's value beside.
    fn step(&self, (name, micros): &Step) {
        if cfg!(target_family = "wasm") {
            return println!("wasm {name} {micros:.3}");
        }
        let wasm = self.0.get(&format!("wasm {name}"));
        let (wasm, ratio) = wasm.map_or_else(Default::default, |w| (figure(*w), format!("{:.1}", w / micros)));
        println!("| {name} | {} | {wasm} | {ratio} |", figure(*micros));
    }

    /// The memory of reading, as a multiple of the bytes, and that of a wasm instance.
    fn memory(&self) {
        let value = |key: &str| self.0.get(key).copied();
        if let Some((read, pack)) = value("memory read").zip(value("memory pack")) {
            println!("\nMemory at most while a document is read: {read:.1} times its bytes; while it is read and packed: {pack:.1} times.");
        }
        if let Some(instance) = value("wasm memory instance") {
            println!("Memory of a wasm instance that holds 100,000 compositions: {:.0} MB.", instance / 1e6);
        }
    }
}

/// Three significant digits.
fn figure(value: f64) -> String {
    let decimals = (2 - value.abs().max(1e-4).log10().floor() as i32).max(0);
    format!("{value:.*}", decimals as usize)
}

fn guides(corpus: Option<PathBuf>, told: &Told) {
    told.heading("Runs of a guide a second", "native", "wasm");
    let (guides, fixtures) = sample_fixtures(None);
    told.step(&("the sample guides", guide_runs(&guides, &fixtures)));
    if let Some(corpus) = corpus {
        let (guides, fixtures) = sample_fixtures(Some(&corpus));
        told.step(&("all fixtures of the published guides", guide_runs(&guides, &fixtures)));
    }
}

#[cfg(target_family = "wasm")]
fn questions(compositions: usize, _: &Told) -> Result<(), Box<dyn Error>> {
    let loaded = load(Generator::new(1, compositions.div_ceil(10), compositions));
    loaded.check()?;
    println!("wasm {compositions} load {:.0}", loaded.load_ms);
    for ((name, ..), (rows, text)) in QUESTIONS.iter().zip(loaded.times()) {
        println!("wasm {compositions} {name} {rows:.5}\nwasm {compositions} {name} as JSON {text:.5}");
    }
    Ok(())
}

#[cfg(not(target_family = "wasm"))]
fn questions(compositions: usize, told: &Told) -> Result<(), Box<dyn Error>> {
    let loaded = load(Generator::new(1, compositions.div_ceil(10), compositions));
    loaded.check()?;
    let ours = loaded.times();
    let peers = [
        peer::measure::<peer::Text>(&loaded)?,
        peer::measure::<peer::Jsonb>(&loaded)?,
        peer::measure::<peer::JsonbEach>(&loaded)?,
        peer::measure::<peer::Nodes>(&loaded)?,
    ];
    let mega = |bytes: usize| format!("{:.1} MB", bytes as f64 / 1e6);
    println!("\n{compositions} compositions, {} EHRs, {} of canonical JSON:\n", loaded.generator.ehrs(), mega(loaded.json_bytes));
    let names: Vec<String> = peers.iter().map(|p| format!("SQLite, {}", p.name)).collect();
    println!("| | aqlite | {} |\n|---|---:|{}", names.join(" | "), "---:|".repeat(peers.len()));
    let stored = loaded.packed_bytes + loaded.shape_bytes;
    let cells = |cell: &dyn Fn(&peer::Outcome) -> String| peers.iter().map(cell).collect::<Vec<_>>().join(" | ");
    println!("| load, ms | {:.0} | {} |", loaded.load_ms, cells(&|p| format!("{:.0}", p.load_ms)));
    println!("| stored | {}, {} shapes | {} |", mega(stored), loaded.shapes, cells(&|p| mega(p.bytes)));
    println!("| columns in memory | {} |{}", mega(loaded.batch.bytes()), " |".repeat(peers.len()));
    println!("\nThe same questions, prepared; how many times faster than SQLite over the same compositions:\n");
    println!(
        "| | question | aqlite, ms | wasm, ms | {} |\n|---|---|---:|---:|{}",
        peers.iter().map(|p| p.name).collect::<Vec<_>>().join(" | "),
        "---:|".repeat(peers.len())
    );
    for (i, ((name, what, _), (rows, text))) in QUESTIONS.iter().zip(&ours).enumerate() {
        let faster = |own: f64| cells(&|p| p.times.get(i).map_or_else(String::new, |t| figure(t / own)));
        let row = |name: &str, what: &str, own: f64| {
            let wasm = told.0.get(&format!("wasm {compositions} {name}")).map_or_else(String::new, |w| format!("{} ({:.1})", figure(*w), w / own));
            println!("| {name} | {what} | {} | {wasm} | {} |", figure(own), faster(own));
        };
        row(name, what, *rows);
        if i == 1 {
            row(&format!("{name} as JSON"), "the same as the text of a JSON result set", *text);
        }
    }
    let times = |p: &peer::Outcome| format!("{} {}", p.name, p.times.iter().map(|t| figure(*t)).collect::<Vec<_>>().join(" "));
    println!("(in ms: {})", peers.iter().map(times).collect::<Vec<_>>().join("; "));
    Ok(())
}
