//! Writes synthetic data into a folder: `gen_data --ehrs N --compositions M --seed S --out DIR
//! [--bulk]`.
//!
//! | file | content |
//! |---|---|
//! | `templates/*.opt`, `guides/*.json` | the sample templates and guides |
//! | `ehrs.ndjson` | one `{ehr_id, time_created, ehr_status}` a line |
//! | `compositions.ndjson` | one `{ehr_id, uid, template_id, composition}` a line; the uid is for those who load under fixed ids |
//! | `bulk.ndjson` | with `--bulk`: the lines of a bulk load, which create these EHRs and compositions |
//! | `truth.tsv` | the facts of the compositions, drawn before they were written |

use aqlite::samples::{
    Generator, bulk_composition_line, bulk_ehr_line, composition_line, ehr_line, guides, templates,
};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

fn main() -> Result<(), String> {
    let Arguments {
        generator,
        out,
        has_bulk,
    } = arguments()?;
    let mut written = write_all(&generator, &out);
    if has_bulk {
        written = written.and_then(|()| write_bulk(&generator, &out));
    }
    written.map_err(|error| format!("{}: {error}", out.display()))?;
    println!(
        "{}: {} EHRs, {} compositions",
        out.display(),
        generator.ehrs(),
        generator.compositions()
    );
    Ok(())
}

/// The options of the program.
struct Arguments {
    generator: Generator,
    out: PathBuf,
    /// Whether `bulk.ndjson` is written.
    has_bulk: bool,
}

fn arguments() -> Result<Arguments, String> {
    let (mut ehrs, mut compositions, mut seed, mut out) = (100_usize, 1000_usize, 1_u64, None);
    let mut has_bulk = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--bulk" {
            has_bulk = true;
            continue;
        }
        let value = arguments.next().ok_or(format!("`{name}` needs a value"))?;
        let bad = |error| format!("`{name} {value}`: {error}");
        match name.as_str() {
            "--ehrs" => ehrs = value.parse().map_err(bad)?,
            "--compositions" => compositions = value.parse().map_err(bad)?,
            "--seed" => seed = value.parse().map_err(bad)?,
            "--out" => out = Some(PathBuf::from(&value)),
            _ => return Err(format!("unknown option `{name}`")),
        }
    }
    Ok(Arguments {
        generator: Generator::new(seed, ehrs, compositions),
        out: out.ok_or("`--out DIR` is missing")?,
        has_bulk,
    })
}

fn write_all(generator: &Generator, out: &Path) -> io::Result<()> {
    definitions(out)?;
    let file = |name: &str| File::create(out.join(name)).map(BufWriter::new);
    let (mut ehrs, mut compositions, mut truth) = (
        file("ehrs.ndjson")?,
        file("compositions.ndjson")?,
        file("truth.tsv")?,
    );
    writeln!(
        truth,
        "ehr\tcomposition\tarchetype\tentry\tpart\tevent\tnode\ttime\tkind\tvalue\tunit"
    )?;
    for ehr in 0..generator.ehrs() {
        let sample = generator.ehr(ehr);
        writeln!(ehrs, "{}", ehr_line(&sample))?;
        for index in generator.compositions_of(ehr) {
            let one = generator.composition(index);
            writeln!(compositions, "{}", composition_line(&sample, &one))?;
            let mut lines = String::new();
            for fact in &one.truth {
                lines.push_str(&format!("{}\t{}\t", sample.ehr_id, one.uid));
                fact.write_tsv(&mut lines);
            }
            truth.write_all(lines.as_bytes())?;
        }
    }
    ehrs.flush()?;
    compositions.flush()?;
    truth.flush()
}

/// Writes the lines of a bulk load. An EHR comes before its compositions.
fn write_bulk(generator: &Generator, out: &Path) -> io::Result<()> {
    let mut lines = BufWriter::new(File::create(out.join("bulk.ndjson"))?);
    for number in 0..generator.ehrs() {
        let ehr = generator.ehr(number);
        writeln!(lines, "{}", bulk_ehr_line(&ehr))?;
        for index in generator.compositions_of(number) {
            let one = generator.composition(index);
            writeln!(lines, "{}", bulk_composition_line(&ehr, &one))?;
        }
    }
    lines.flush()
}

fn definitions(out: &Path) -> io::Result<()> {
    fs::create_dir_all(out.join("templates"))?;
    fs::create_dir_all(out.join("guides"))?;
    for template in templates() {
        fs::write(
            out.join("templates")
                .join(format!("{}.opt", template.template_id)),
            template.text,
        )?;
    }
    for guide in guides() {
        fs::write(
            out.join("guides").join(format!("{}.json", guide.id)),
            guide.text,
        )?;
    }
    Ok(())
}
