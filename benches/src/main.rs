//! Queries and steps in one thread, printed as lines `KEY = VALUE`: `aqlite-bench WHAT…`, each of
//!
//! | word | meaning |
//! |---|---|
//! | `beside=N` | the six queries on N compositions, and the same queries in SQLite in the same run (native only) |
//! | `questions=N` | the six queries on N compositions alone |
//! | `uneven=N` | the worst case: random optional elements, compared with as many elements that are always the same |
//! | `ehr` | the queries on one EHR of 200 compositions |
//! | `population=N` | guides run on all EHRs of N compositions |
//! | `steps` | each step from text to columns and back |
//! | `guides`, `guides=CORPUS` | guides read and run |
//!
//! Queries are printed in milliseconds, steps in microseconds, rates per second.

#[cfg(not(target_family = "wasm"))]
mod peer;

use aqlite::samples::Generator;
use aqlite_bench::{Extras, Loaded, QUESTIONS, guides, load, population, report, steps};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    std::env::args().skip(1).try_for_each(|word| {
        let (what, value) = word.split_once('=').unwrap_or((&word, ""));
        let compositions = || {
            value
                .parse::<usize>()
                .map_err(|_| format!("`{word}` needs a number of compositions"))
        };
        match what {
            #[cfg(not(target_family = "wasm"))]
            "beside" => beside(compositions()?)?,
            "questions" => drop(questions(compositions()?)?),
            "uneven" => uneven(compositions()?)?,
            "ehr" => one_ehr(200)?,
            "population" => population(&loaded(compositions()?, Extras::None)?),
            "steps" => steps(),
            "guides" => {
                guides(Some(Path::new(value)).filter(|path| path.join("gdl/cases.jsonl").is_file()))
            }
            _ => return Err(unknown(&word).into()),
        }
        Ok(())
    })
}

fn unknown(word: &str) -> String {
    format!("`{word}` is none of beside, questions, uneven, ehr, population, steps, guides")
}

/// Loads compositions into columns and checks that the answers are those of the truth table.
fn loaded(compositions: usize, extras: Extras) -> Result<Loaded, String> {
    let loaded = load(
        Generator::new(1, compositions.div_ceil(10), compositions),
        extras,
    );
    loaded.check()?;
    Ok(loaded)
}

fn questions(compositions: usize) -> Result<Loaded, String> {
    let loaded = loaded(compositions, Extras::None)?;
    let stored = loaded.packed_bytes + loaded.layout_bytes;
    let figures = [
        ("load", loaded.load_ms),
        ("ehrs", loaded.generator.ehrs() as f64),
        ("bytes.json", loaded.json_bytes as f64),
        ("bytes.stored", stored as f64),
        ("bytes.columns", loaded.batch.bytes() as f64),
        ("shapes", loaded.layouts as f64),
    ];
    figures
        .iter()
        .for_each(|(key, value)| report(&format!("{compositions}.{key}"), *value));
    ask(&compositions.to_string(), &loaded);
    Ok(loaded)
}

/// Reports the milliseconds of each query, and the nanoseconds per composition.
fn ask(prefix: &str, loaded: &Loaded) {
    for ((name, ..), (rows, text)) in QUESTIONS.iter().zip(loaded.times()) {
        report(&format!("{prefix}.{name}.rows"), rows);
        report(&format!("{prefix}.{name}.json"), text);
        report(
            &format!("{prefix}.{name}.each"),
            rows * 1e6 / loaded.generator.compositions() as f64,
        );
    }
}

fn uneven(compositions: usize) -> Result<(), String> {
    for (name, extras) in [("even", Extras::Same), ("uneven", Extras::Random)] {
        let loaded = loaded(compositions, extras)?;
        report(
            &format!("{name}.bytes.columns"),
            loaded.batch.bytes() as f64,
        );
        report(
            &format!("{name}.bytes.stored"),
            (loaded.packed_bytes + loaded.layout_bytes) as f64,
        );
        report(&format!("{name}.shapes"), loaded.layouts as f64);
        ask(name, &loaded);
    }
    Ok(())
}

fn one_ehr(compositions: usize) -> Result<(), String> {
    ask(
        "ehr",
        &load(Generator::new(1, 1, compositions), Extras::None),
    );
    Ok(())
}

#[cfg(not(target_family = "wasm"))]
fn beside(compositions: usize) -> Result<(), String> {
    let loaded = questions(compositions)?;
    peer::measure::<peer::Text>(&loaded)?;
    peer::measure::<peer::Jsonb>(&loaded)?;
    peer::measure::<peer::JsonbEach>(&loaded)?;
    peer::measure::<peer::Nodes>(&loaded)
}
