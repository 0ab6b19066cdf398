//! Figures: measured values that `benches/figures.tsv` selects, compared with their goals.

use std::collections::HashMap;
use std::fs;

use crate::process::root;

/// Measured values by key.
#[derive(Default)]
pub struct Measured {
    values: HashMap<String, f64>,
    compositions: String,
}

/// The printed figures, and the number of each outcome.
#[derive(Default)]
pub struct Shown {
    /// The figures as Markdown.
    pub text: String,
    pub reached: usize,
    pub missed: usize,
}

/// A function that combines several values into one figure.
type Combine = fn(&[f64]) -> f64;

/// The functions that combine the ratios of a pattern.
const COMBINED: [(&str, Combine); 3] = [
    ("least ", |all| {
        all.iter().copied().fold(f64::INFINITY, f64::min)
    }),
    ("most ", |all| all.iter().copied().fold(0.0, f64::max)),
    ("mean ", |all| {
        (all.iter().map(|v| v.ln()).sum::<f64>() / all.len() as f64).exp()
    }),
];

impl Measured {
    /// Creates an empty collection about `compositions` compositions.
    pub fn about(compositions: &str) -> Measured {
        Measured {
            compositions: compositions.to_owned(),
            values: HashMap::new(),
        }
    }

    /// Adds the lines `KEY = VALUE`.
    pub fn take(&mut self, lines: &[String]) {
        let pair = |line: &String| {
            line.split_once(" = ")
                .and_then(|(key, value)| Some((key.to_owned(), value.parse().ok()?)))
        };
        self.values.extend(lines.iter().filter_map(pair));
    }

    /// Returns the figures of every section with a measured value, with goals and outcomes.
    pub fn figures(&self) -> Result<Shown, String> {
        let file = root().join("benches/figures.tsv");
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let mut shown = Shown::default();
        for section in text
            .split("\n\n")
            .filter(|section| !section.starts_with('#'))
        {
            let (title, lines) = section.split_once('\n').unwrap_or((section, ""));
            let lines = lines.lines().map(|line| line.split('\t').collect());
            let lines: Vec<Vec<&str>> = lines.collect();
            let is_measured =
                |line: &Vec<&str>| line.get(1).is_some_and(|f| self.value(f).is_some());
            if lines.iter().any(is_measured) {
                shown.text.push_str(&format!(
                    "\n{title}:\n\n| | measured | goal | |\n|---|---:|---:|---|\n",
                    title = self.filled(title)
                ));
                lines.iter().for_each(|line| self.show(line, &mut shown));
            }
        }
        Ok(shown)
    }

    fn show(&self, line: &[&str], shown: &mut Shown) {
        let [name, figure, unit, goal] = line else {
            return;
        };
        let value = self.value(figure);
        let measured =
            value.map_or_else(|| "not measured".to_owned(), |value| with_unit(value, unit));
        let outcome = value.and_then(|value| reached(value, unit, goal));
        match outcome {
            Some(true) => shown.reached += 1,
            Some(false) => shown.missed += 1,
            None => {}
        }
        let word = outcome.map_or("", |reached| if reached { "reached" } else { "missed" });
        shown
            .text
            .push_str(&format!("| {name} | {measured} | {goal} | {word} |\n"));
    }

    /// Computes a figure. `None` if a part of it was not measured.
    pub fn value(&self, figure: &str) -> Option<f64> {
        let figure = self.filled(figure);
        match COMBINED
            .iter()
            .find_map(|(word, combine)| Some((figure.strip_prefix(word)?, combine)))
        {
            Some((pattern, combine)) => combine(
                &alternatives(pattern)
                    .iter()
                    .map(|one| self.ratio(one))
                    .collect::<Option<Vec<f64>>>()?,
            )
            .into(),
            None => self.ratio(&figure),
        }
    }

    fn ratio(&self, figure: &str) -> Option<f64> {
        match figure.split_once(" / ") {
            Some((above, below)) => Some(self.key(above)? / self.key(below)?),
            None => self.key(figure),
        }
    }

    fn key(&self, key: &str) -> Option<f64> {
        self.values.get(key).copied().or_else(|| key.parse().ok())
    }

    fn filled(&self, text: &str) -> String {
        text.replace(".N.", &format!(".{}.", self.compositions))
            .replace(" N ", &format!(" {} ", self.compositions))
    }
}

/// Expands a pattern: one character of `[…]` in turn, the same at every occurrence.
fn alternatives(pattern: &str) -> Vec<String> {
    let class = pattern
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or("", |(class, _)| class);
    class
        .chars()
        .map(|c| pattern.replace(&format!("[{class}]"), &c.to_string()))
        .collect()
}

/// Formats a number with three significant digits, or all digits of a whole number.
pub fn short(value: f64) -> String {
    let decimals = (2 - value.abs().max(1e-4).log10().floor() as i32).max(0);
    let decimals = if value.fract() == 0.0 { 0 } else { decimals };
    let text = format!("{value:.*}", decimals as usize);
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "times" | "" => short(scaled(value, unit)),
        "/s" => short(scaled(value, unit)) + "/s",
        _ => format!("{} {unit}", short(scaled(value, unit))),
    }
}

fn scaled(value: f64, unit: &str) -> f64 {
    match unit {
        "%" => value * 100.0,
        "MB" => value / 1e6,
        _ => value,
    }
}

/// Returns whether a goal such as `≤ 2` is reached. `None` without a goal.
fn reached(value: f64, unit: &str, goal: &str) -> Option<bool> {
    let (sign, bound) = goal.split_once(' ')?;
    let bound: f64 = bound.parse().ok()?;
    Some(if sign == "≤" {
        scaled(value, unit) <= bound
    } else {
        scaled(value, unit) >= bound
    })
}

#[cfg(test)]
mod tests {
    use super::{Measured, reached, short};
    use crate::process::root;
    use std::fs;

    /// Returns the rows of the tables of `docs/benchmark.md` below the title of a section of
    /// figures, as cells: name, measured value, goal, outcome.
    fn rows_below<'p>(page: &'p str, title: &str) -> Vec<Vec<&'p str>> {
        let (before, after) = title.split_once(" N ").unwrap_or((title, ""));
        let mut lines = page.lines();
        lines
            .by_ref()
            .find(|line| line.starts_with(before) && line.ends_with(&format!("{after}:")));
        lines
            .skip(3)
            .take_while(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect()
    }

    #[test]
    fn the_page_has_each_figure_with_its_goal_and_outcome() {
        let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
        let (page, figures) = (read("docs/benchmark.md"), read("benches/figures.tsv"));
        let mut sections = figures.split("\n\n").skip(1).peekable();
        assert!(sections.peek().is_some());
        for section in sections {
            let (title, lines) = section.split_once('\n').unwrap();
            let rows = rows_below(&page, title);
            let wanted: Vec<Vec<&str>> = lines.lines().map(|l| l.split('\t').collect()).collect();
            let pairs = |from: &[Vec<&str>], goal: usize| -> Vec<(String, String)> {
                from.iter()
                    .map(|cells| (cells[0].to_owned(), cells[goal].to_owned()))
                    .collect()
            };
            assert_eq!(pairs(&rows, 2), pairs(&wanted, 3), "{title}");
            for row in rows {
                assert_eq!(row[3], outcome(row[1], row[2]), "{title}: {row:?}");
            }
        }
    }

    /// Returns the outcome that a table must state for a measured value and a goal, both as printed.
    fn outcome(measured: &str, goal: &str) -> &'static str {
        let number = measured.split(['/', ' ']).next().unwrap_or_default();
        let value = number.replace(',', "").parse();
        let outcome = value.ok().and_then(|value| reached(value, "", goal));
        outcome.map_or("", |reached| if reached { "reached" } else { "missed" })
    }

    #[test]
    fn figures_are_ratios_of_what_was_measured() {
        let mut measured = Measured::about("100");
        measured.take(&[
            "a.100.Q1 = 8".into(),
            "a.100.Q2 = 2".into(),
            "b.Q1 = 2".into(),
            "b.Q2 = 2".into(),
            "note: nothing".into(),
        ]);
        assert_eq!(measured.value("a.N.Q1 / b.Q1"), Some(4.0));
        assert_eq!(measured.value("most a.N.Q[12] / b.Q[12]"), Some(4.0));
        assert_eq!(measured.value("least a.N.Q[12] / b.Q[12]"), Some(1.0));
        assert_eq!(
            measured
                .value("mean a.N.Q[12] / b.Q[12]")
                .map(|v| (v * 1e9).round()),
            Some(2e9)
        );
        assert_eq!(measured.value("1000 / b.Q1"), Some(500.0));
        assert_eq!(measured.value("most a.N.Q[13]"), None);
    }

    #[test]
    fn figures_are_shown_short() {
        assert_eq!(
            ["1,234", "12.3", "0.00123", "3", "1,234,568"].map(String::from),
            [1234.4, 12.34, 0.001_234, 3.0, 1_234_567.8].map(short)
        );
        assert_eq!(
            [
                reached(0.1, "%", "≤ 15"),
                reached(2.0, "", "≥ 3"),
                reached(2.0, "", "")
            ],
            [Some(true), Some(false), None]
        );
    }
}
