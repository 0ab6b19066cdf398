//! The switch of mutants. A mutated crate contains a copy of this module.
//!
//! `AQLITE_MUTANT` is the number of the mutant that runs. `AQLITE_MUTANTS_REACHED` is a file to
//! which the number of each mutant that the program reaches is appended, once.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

/// The bound on the numbers of mutants of one build.
const MOST: usize = 1 << 17;

enum Mode {
    Off,
    Active(u32),
    Record(Mutex<File>),
}

static MODE: OnceLock<Mode> = OnceLock::new();
static REACHED: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];

/// Returns whether a mutant runs instead of the code that it replaces.
pub fn on(id: u32) -> bool {
    match MODE.get_or_init(mode) {
        Mode::Off => false,
        Mode::Active(active) => *active == id,
        Mode::Record(file) => record(id, file),
    }
}

fn mode() -> Mode {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    if let Some(active) = number("AQLITE_MUTANT") {
        return Mode::Active(active);
    }
    let Ok(path) = std::env::var("AQLITE_MUTANTS_REACHED") else {
        return Mode::Off;
    };
    match File::options().create(true).append(true).open(path) {
        Ok(file) => Mode::Record(Mutex::new(file)),
        Err(_) => Mode::Off,
    }
}

fn record(id: u32, file: &Mutex<File>) -> bool {
    let seen = REACHED
        .get(id as usize)
        .is_none_or(|seen| seen.swap(true, Ordering::Relaxed));
    if !seen && let Ok(mut file) = file.lock() {
        let _ = writeln!(file, "{id}");
    }
    false
}
