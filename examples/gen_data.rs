//! Writes synthetic data into a folder: `gen_data --ehrs N --compositions M --seed S --out DIR`.
//!
//! | file | content |
//! |---|---|
//! | `templates/*.opt`, `guides/*.json` | the sample templates and guides |
//! | `ehrs.ndjson` | one `{ehr_id, time_created, ehr_status}` a line |
//! | `compositions.ndjson` | one `{ehr_id, uid, template_id, composition}` a line; the uid is for those who load under fixed ids |
//! | `truth.tsv` | what is true about the compositions, drawn before they were written |

use aqlite::samples::{Generator, composition_line, ehr_line, guides, templates};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

fn main() -> Result<(), String> {
    let (generator, out) = arguments()?;
    write_all(&generator, &out).map_err(|error| format!("{}: {error}", out.display()))?;
    println!(
        "{}: {} EHRs, {} compositions",
        out.display(),
        generator.ehrs(),
        generator.compositions()
    );
    Ok(())
}

fn arguments() -> Result<(Generator, PathBuf), String> {
    let (mut ehrs, mut compositions, mut seed, mut out) = (100_usize, 1000_usize, 1_u64, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
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
    Ok((
        Generator::new(seed, ehrs, compositions),
        out.ok_or("`--out DIR` is missing")?,
    ))
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
