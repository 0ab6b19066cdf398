//! The tables of Arrow and Parquet of a query: their rows are those of its JSON.
//!
//! With `AQLITE_TABLES_OUT=DIR` each answer is also written into a folder, for the readers of other
//! programs (`tests/tables/check.py`).

use crate::same_cells::{cells, difference};
use aqlite::arrow::TableFormat;
use aqlite::arrow::read::table;
use aqlite::rm::json::members;
use aqlite::service::Response;
use std::path::Path;

/// The formats of tables.
pub const FORMATS: [TableFormat; 2] = [TableFormat::Arrow, TableFormat::Parquet];

/// Compares a table with the rows of a RESULT_SET.
pub fn check(format: TableFormat, json: &Response, answer: &Response) -> Result<(), String> {
    let problem = |why: String| format!("{}: {why}", format.media_type());
    if answer.status != 200 {
        let text = String::from_utf8_lossy(&answer.body);
        return Err(problem(format!("{}: {text}", answer.status)));
    }
    let text = String::from_utf8_lossy(&json.body);
    let all = members(&text).map_err(|e| format!("{e:?}"))?;
    let rows = all.iter().find(|(name, _)| name == "rows");
    let rows = rows.ok_or("a RESULT_SET without rows")?.1;
    let expected = cells(rows).ok_or("the rows are no lists")?;
    let found = table(format, answer.body.clone()).map_err(|e| problem(e.to_string()))?;
    match difference(&expected, &found.rows) {
        Some(why) => Err(problem(why)),
        None => Ok(()),
    }
}

/// Writes the answers of a case into the folder that the environment names.
pub fn keep(name: &str, answers: &[(&str, &Response)]) -> Result<(), String> {
    let Some(folder) = std::env::var_os("AQLITE_TABLES_OUT") else {
        return Ok(());
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    answers.iter().try_for_each(|(ending, answer)| {
        let file = folder.join(format!("{name}.{ending}"));
        std::fs::write(file, &answer.body).map_err(|e| e.to_string())
    })
}
