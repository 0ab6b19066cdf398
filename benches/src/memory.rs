//! Memory in use while documents are read. `aqlite-memory` prints multiples of the bytes of the
//! documents. `aqlite-memory --hold N` prints the memory of N compositions in columns: their own,
//! that of the process, and the peak while they were loaded.

use aqlite::document::{LayoutStore, pack};
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::samples::Generator;
use aqlite_bench::{Extras, known_texts, load, report};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let held = arguments
        .iter()
        .position(|a| a == "--hold")
        .and_then(|i| arguments.get(i + 1)?.parse().ok());
    match held {
        Some(compositions) => hold(compositions),
        None => multiples(),
    }
}

/// Reports the peak memory of reading, and of reading and packing, as a multiple of the bytes read.
fn multiples() {
    let (known, layouts) = (known_texts(), LayoutStore::new());
    let generator = Generator::new(1, 100, 1_000);
    let (mut worst_read, mut worst_pack, mut largest) = (0.0_f64, 0.0_f64, 0);
    for index in 0..generator.compositions() {
        let text = generator.composition(index).json;
        largest = largest.max(text.len());
        let most = |work: &dyn Fn()| {
            work();
            let before = ALLOCATOR.current_usage();
            ALLOCATOR.reset_peak_usage();
            work();
            ALLOCATOR.peak_usage().saturating_sub(before) as f64 / text.len() as f64
        };
        worst_read = worst_read.max(most(&|| drop(json::read(&text, Cls::COMPOSITION))));
        worst_pack = worst_pack.max(most(&|| {
            if let Ok(tree) = json::read(&text, Cls::COMPOSITION) {
                drop(tree.root().map(|root| pack(root, &known, &layouts)));
            }
        }));
    }
    report("memory.read", worst_read);
    report("memory.pack", worst_pack);
    report("memory.largest", largest as f64);
}

fn hold(compositions: usize) {
    let loaded = load(
        Generator::new(1, compositions.div_ceil(10), compositions),
        Extras::None,
    );
    report("memory.columns", loaded.batch.bytes() as f64);
    report("memory.held", ALLOCATOR.current_usage() as f64);
    report("memory.instance", instance() as f64);
}

/// Returns the bytes of the linear memory of the instance.
#[cfg(target_family = "wasm")]
fn instance() -> usize {
    core::arch::wasm32::memory_size(0) * 65_536
}

/// Returns the peak memory of the process, where the system reports it.
#[cfg(not(target_family = "wasm"))]
fn instance() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().split(' ').next()?.parse::<usize>().ok())
        .map_or(0, |kb| kb * 1024)
}
