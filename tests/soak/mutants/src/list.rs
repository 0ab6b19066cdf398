//! The mutants that cargo-mutants proposes.

use serde::Deserialize;
use std::collections::BTreeMap;

/// One proposed change of a source file.
#[derive(Clone)]
pub struct Mutant {
    /// The number by which the switch selects it.
    pub id: u32,
    /// The file, relative to the root of the project.
    pub file: String,
    /// File, line, column and change, as cargo-mutants prints them.
    pub name: String,
    /// File and change, without the line. Equal changes of one function have ordinals.
    pub key: String,
    /// The kind of the change.
    pub genre: Genre,
    /// The first character of the replaced text: its line and column, from 1.
    pub start: (usize, usize),
    /// The last character behind the replaced text.
    pub end: (usize, usize),
    /// The new text.
    pub replacement: String,
    /// Whether the function has an opaque return type. A branch would have another type than the body.
    pub is_opaque: bool,
}

/// The kinds of changes.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Genre {
    /// The body of a function returns a fixed value.
    FnValue,
    /// Another binary operator.
    BinaryOperator,
    /// Without the unary operator.
    UnaryOperator,
    /// Without the arm of a match.
    MatchArm,
    /// The guard of an arm is true, or false.
    MatchArmGuard,
    /// Without a field of a struct with a base.
    StructField,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    file: String,
    span: Span,
    replacement: String,
    genre: Genre,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    return_type: String,
}

#[derive(Deserialize)]
struct Span {
    start: Position,
    end: Position,
}

#[derive(Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

/// Reads the output of `cargo mutants --list --json`. Numbers start at 1.
pub fn read(json: &str) -> Result<Vec<Mutant>, String> {
    let listed: Vec<Listed> = serde_json::from_str(json).map_err(|e| e.to_string())?;
    let mut ordinals: BTreeMap<String, u32> = BTreeMap::new();
    Ok((1..)
        .zip(listed)
        .map(|(id, m)| mutant(id, m, &mut ordinals))
        .collect())
}

fn mutant(id: u32, listed: Listed, ordinals: &mut BTreeMap<String, u32>) -> Mutant {
    let change = listed.name.splitn(4, ':').nth(3).unwrap_or_default().trim();
    let key = format!("{}: {change}", listed.file);
    let ordinal = ordinals
        .entry(key.clone())
        .and_modify(|n| *n += 1)
        .or_insert(1);
    Mutant {
        id,
        key: format!("{key} #{ordinal}"),
        file: listed.file,
        name: listed.name,
        genre: listed.genre,
        start: (listed.span.start.line, listed.span.start.column),
        end: (listed.span.end.line, listed.span.end.column),
        replacement: listed.replacement,
        is_opaque: listed
            .function
            .is_some_and(|f| f.return_type.contains("impl ")),
    }
}

/// Returns every `of`th mutant of each folder, from the `first`.
pub fn sample(all: &[Mutant], folder: &str, first: usize, of: usize) -> Vec<Mutant> {
    let inside = all.iter().filter(|m| m.file.starts_with(folder));
    inside.skip(first).step_by(of.max(1)).cloned().collect()
}
