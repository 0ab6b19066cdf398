//! The truth table, and the results of six queries computed from it alone.

use super::facts::{
    Analyte, BLOOD_PRESSURE, Body, DAY_EVENT, Element, Event, Facts, LABORATORY, Observation,
    PULSE, Panel, TEMPERATURE, Value,
};
use super::generate::Generator;
use super::writer::template_of;
use std::fmt::Write;

/// One leaf of a composition as it was drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// The archetype of the entry.
    pub archetype: &'static str,
    /// The index of the entry in the composition, and the index of the event or cluster in the
    /// entry.
    pub place: (usize, usize),
    /// The node ids below the entry: the event, then the element.
    pub path: [&'static str; 2],
    /// The time of the event, or of the composition: microseconds since 0001-01-01 in UTC.
    pub time: i64,
    /// The value.
    pub value: Leaf,
}

/// A row of the result of [`Q6`].
#[derive(Clone, Debug, PartialEq)]
pub struct PressureWithPulse {
    /// The index of the EHR.
    pub ehr: usize,
    /// The time of the composition, as spelled.
    pub time: String,
    /// The systolic pressure.
    pub systolic: f64,
    /// The rate of the pulse.
    pub pulse: f64,
}

/// A value in the truth table.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaf {
    /// Magnitude and unit.
    Quantity(f64, &'static str),
    /// Lower and upper magnitude, and unit.
    Range(f64, f64, &'static str),
    /// A number without unit: a count, or a percentage.
    Number(f64),
    /// A truth value.
    Flag(bool),
    /// Terminology and code.
    Code(&'static str, &'static str),
    /// A free text.
    Text(String),
    /// The text of a date-time, and its earliest moment in microseconds since 0001-01-01 in UTC.
    Time(String, i64),
    /// A missing value, with the code of its null flavour.
    Missing(&'static str),
}

impl Truth {
    /// Appends one line of the truth table, with tabs between the columns: archetype, entry, part,
    /// event node, element node, time, kind, value, unit or terminology.
    pub fn write_tsv(&self, out: &mut String) {
        let (entry, part) = self.place;
        let [event, node] = self.path;
        let _ = write!(
            out,
            "{}\t{entry}\t{part}\t{event}\t{node}\t{}\t",
            self.archetype, self.time
        );
        let _ = match &self.value {
            Leaf::Quantity(magnitude, unit) => write!(out, "quantity\t{magnitude}\t{unit}"),
            Leaf::Range(low, high, unit) => write!(out, "range\t{low}..{high}\t{unit}"),
            Leaf::Number(number) => write!(out, "number\t{number}\t"),
            Leaf::Flag(flag) => write!(out, "flag\t{flag}\t"),
            Leaf::Code(terminology, code) => write!(out, "code\t{code}\t{terminology}"),
            Leaf::Text(text) => write!(out, "text\t{}\t", text.escape_default()),
            Leaf::Time(text, _) => write!(out, "time\t{text}\t"),
            Leaf::Missing(flavour) => write!(out, "missing\t{flavour}\t"),
        };
        out.push('\n');
    }

    pub(super) fn all_of(facts: &Facts) -> Vec<Truth> {
        let mut table = Table {
            rows: Vec::new(),
            archetype: template_of(&facts.body).1,
            time: facts.start.micros(),
        };
        match &facts.body {
            Body::Vitals(observations) => {
                let numbered = observations.iter().enumerate();
                numbered.for_each(|(i, o)| table.observation(i, o));
            }
            Body::Laboratory { panels, .. } => {
                table.archetype = LABORATORY.archetype;
                let numbered = panels.iter().enumerate();
                numbered.for_each(|(i, panel)| table.panel(i, panel));
            }
            Body::Problems(problems) => {
                table.archetype = "openEHR-EHR-EVALUATION.problem_diagnosis.v1";
                for (i, problem) in problems.iter().enumerate() {
                    table.elements((i, 0), "at0001", &problem.data);
                    table.elements((i, 0), "at0001", &problem.protocol);
                }
            }
        }
        table.rows
    }
}

struct Table {
    rows: Vec<Truth>,
    archetype: &'static str,
    time: i64,
}

impl Table {
    fn observation(&mut self, number: usize, observation: &Observation) {
        self.archetype = observation.frame.archetype;
        let start = self.time;
        for (i, event) in observation.events.iter().enumerate() {
            self.time = event.time.micros();
            let node = if event.is_day {
                DAY_EVENT
            } else {
                observation.frame.event
            };
            self.elements((number, i), node, &event.data);
            self.elements((number, i), node, &event.state);
        }
        self.time = start;
        self.elements(
            (number, 0),
            observation.frame.protocol,
            &observation.protocol,
        );
        self.elements(
            (number, 0),
            "device",
            observation.device.as_deref().unwrap_or_default(),
        );
    }

    fn panel(&mut self, number: usize, panel: &Panel) {
        self.time = panel.time.micros();
        let lists = [
            &panel.elements,
            &panel.conclusion,
            &panel.specimen,
            &panel.protocol,
        ];
        for elements in lists {
            self.elements((number, 0), LABORATORY.event, elements);
        }
        let mut part = 0;
        for analyte in &panel.analytes {
            self.analyte(number, &mut part, analyte);
        }
    }

    fn analyte(&mut self, entry: usize, part: &mut usize, analyte: &Analyte) {
        *part += 1;
        self.elements((entry, *part), "analyte", &analyte.elements);
        analyte
            .details
            .iter()
            .for_each(|d| self.analyte(entry, part, d));
    }

    fn elements(&mut self, place: (usize, usize), event: &'static str, elements: &[Element]) {
        for (node, value) in elements {
            let value = match value {
                Value::Quantity(number, unit) => Leaf::Quantity(number.value(), unit),
                Value::Range(low, high, unit) => Leaf::Range(low.value(), high.value(), unit),
                Value::Percent(share) => Leaf::Number(share.value()),
                Value::Count(count) => {
                    Leaf::Number(f64::from(i32::try_from(*count).unwrap_or_default()))
                }
                Value::Flag(flag) => Leaf::Flag(*flag),
                Value::Code(terminology, code) => Leaf::Code(terminology, code),
                Value::Text(text) => Leaf::Text(text.clone()),
                Value::Time(moment) => Leaf::Time(moment.text(), moment.micros()),
                Value::Missing(flavour) => Leaf::Missing(flavour),
            };
            self.rows.push(Truth {
                archetype: self.archetype,
                place,
                path: [event, node],
                time: self.time,
                value,
            });
        }
    }
}

/// Q1: the latest blood pressure of one EHR, `$ehr_id`.
pub const Q1: &str = "SELECT o/data[at0001]/events[at0006]/time/value AS time, \
o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic, \
o/data[at0001]/events[at0006]/data[at0003]/items[at0005]/value/magnitude AS diastolic \
FROM EHR e[ehr_id/value=$ehr_id] CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] \
ORDER BY o/data[at0001]/events[at0006]/time/value DESC LIMIT 1";
/// Q2: every systolic pressure of 140 or more, over all EHRs.
pub const Q2: &str = "SELECT e/ehr_id/value AS ehr, o/data[at0001]/events[at0006]/time/value AS time, \
o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic, \
o/data[at0001]/events[at0006]/data[at0003]/items[at0005]/value/magnitude AS diastolic \
FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] \
WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude >= 140";
/// Q3: the number of compositions with a body temperature.
pub const Q3: &str = "SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.body_temperature.v2]";
/// Q4: mean and maximum of all systolic pressures.
pub const Q4: &str = "SELECT AVG(o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude) AS mean, \
MAX(o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude) AS highest \
FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";
/// Q5: the last 20 compositions of one EHR, `$ehr_id`.
pub const Q5: &str = "SELECT c/context/start_time/value AS time, c/archetype_details/template_id/value AS template \
FROM EHR e[ehr_id/value=$ehr_id] CONTAINS COMPOSITION c ORDER BY c/context/start_time/value DESC LIMIT 20";
/// Q6: a systolic pressure of 160 or more and a pulse of 100 or more in one composition.
pub const Q6: &str = "SELECT e/ehr_id/value AS ehr, c/context/start_time/value AS time, \
o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic, \
p/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/magnitude AS pulse \
FROM EHR e CONTAINS COMPOSITION c CONTAINS (OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] AND OBSERVATION p[openEHR-EHR-OBSERVATION.pulse.v2]) \
WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude >= 160 \
AND p/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/magnitude >= 100";

/// A blood pressure.
#[derive(Clone, Debug, PartialEq)]
pub struct Pressure {
    /// The index of the EHR.
    pub ehr: usize,
    /// The time of the event, as spelled.
    pub time: String,
    /// The systolic magnitude, in any unit; `None` if it is absent.
    pub systolic: Option<f64>,
    /// The diastolic magnitude, in any unit; `None` if it is absent.
    pub diastolic: Option<f64>,
}

impl Generator {
    /// Returns the result of [`Q1`].
    pub fn latest_blood_pressure(&self, ehr: usize) -> Option<Pressure> {
        let all = self
            .compositions_of(ehr)
            .flat_map(|i| pressures(&self.facts(i)));
        all.max_by_key(|(micros, _)| *micros)
            .map(|(_, pressure)| pressure)
    }

    /// Returns the result of [`Q2`], in the order of commit.
    pub fn systolic_from_140(&self) -> Vec<Pressure> {
        let all = self.visible().flat_map(|facts| pressures(&facts));
        all.map(|(_, pressure)| pressure)
            .filter(|p| p.systolic.is_some_and(|systolic| systolic >= 140.0))
            .collect()
    }

    /// Returns the result of [`Q3`].
    pub fn with_body_temperature(&self) -> usize {
        self.visible()
            .filter(|facts| entries(facts).iter().any(|o| o.frame == &TEMPERATURE))
            .count()
    }

    /// Returns the result of [`Q4`]. It is exact, because every magnitude is a multiple of an
    /// eighth.
    pub fn mean_and_highest_systolic(&self) -> Option<(f64, f64)> {
        let all: Vec<f64> = self
            .visible()
            .flat_map(|facts| pressures(&facts))
            .filter_map(|(_, p)| p.systolic)
            .collect();
        let count = f64::from(u32::try_from(all.len()).unwrap_or_default());
        let highest = all.iter().copied().reduce(f64::max)?;
        Some((sum(&all) / count, highest))
    }

    /// Returns the result of [`Q5`]: time as spelled, and template.
    pub fn last_20_compositions(&self, ehr: usize) -> Vec<(String, &'static str)> {
        let facts = self
            .compositions_of(ehr)
            .rev()
            .take(20)
            .map(|i| self.facts(i));
        facts
            .map(|f| (f.start.text(), template_of(&f.body).0))
            .collect()
    }

    /// Returns the result of [`Q6`], in the order of commit.
    pub fn pressure_160_with_pulse_100(&self) -> Vec<PressureWithPulse> {
        let mut rows = Vec::new();
        for facts in self.visible() {
            let rates: Vec<f64> = entries(&facts)
                .iter()
                .filter(|o| o.frame == &PULSE)
                .flat_map(|o| &o.events)
                .filter_map(|e| quantity(e, "at0004"))
                .collect();
            for systolic in pressures(&facts)
                .into_iter()
                .filter_map(|(_, p)| p.systolic)
                .filter(|s| *s >= 160.0)
            {
                rows.extend(
                    rates
                        .iter()
                        .filter(|r| **r >= 100.0)
                        .map(|rate| PressureWithPulse {
                            ehr: facts.ehr,
                            time: facts.start.text(),
                            systolic,
                            pulse: *rate,
                        }),
                );
            }
        }
        rows
    }

    /// Iterates over the compositions that population queries read.
    fn visible(&self) -> impl Iterator<Item = Facts> {
        (0..self.ehrs())
            .filter(|ehr| self.is_queryable(*ehr))
            .flat_map(|ehr| self.compositions_of(ehr))
            .map(|i| self.facts(i))
    }
}

fn entries(facts: &Facts) -> &[Observation] {
    match &facts.body {
        Body::Vitals(observations) => observations,
        _ => &[],
    }
}

fn pressures(facts: &Facts) -> Vec<(i64, Pressure)> {
    let events = entries(facts)
        .iter()
        .filter(|o| o.frame == &BLOOD_PRESSURE)
        .flat_map(|o| &o.events)
        .filter(|e| !e.is_day);
    events
        .map(|e| {
            (
                e.time.micros(),
                Pressure {
                    ehr: facts.ehr,
                    time: e.time.text(),
                    systolic: quantity(e, "at0004"),
                    diastolic: quantity(e, "at0005"),
                },
            )
        })
        .collect()
}

fn quantity(event: &Event, node: &str) -> Option<f64> {
    event.data.iter().find_map(|(code, value)| match value {
        Value::Quantity(number, _) if *code == node => Some(number.value()),
        _ => None,
    })
}

/// Returns a sum with compensation of rounding errors (Neumaier 1974), so that the order of the
/// numbers has no effect.
fn sum(numbers: &[f64]) -> f64 {
    let (mut total, mut lost) = (0.0_f64, 0.0);
    for number in numbers {
        let next = total + number;
        lost += if total.abs() >= number.abs() {
            (total - next) + number
        } else {
            (number - next) + total
        };
        total = next;
    }
    total + lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_agree_with_each_other() {
        let generator = Generator::new(11, 100, 2000);
        let high = generator.systolic_from_140();
        assert!(!high.is_empty());
        let (mean, highest) = generator.mean_and_highest_systolic().unwrap();
        assert!((115.0..130.0).contains(&mean), "{mean}");
        assert_eq!(
            high.iter().filter_map(|p| p.systolic).reduce(f64::max),
            Some(highest)
        );
        let sixty = high.iter().filter(|p| p.systolic >= Some(160.0)).count();
        assert!((1..=2000 * 1234 / 100_000).contains(&sixty), "{sixty}");
        assert!(generator.with_body_temperature() > 300);
        let last = generator.last_20_compositions(0);
        assert_eq!(last.len(), generator.compositions_of(0).len().min(20));
    }

    #[test]
    fn the_table_has_the_pressures() {
        let generator = Generator::new(11, 100, 2000);
        let rows: Vec<Truth> = (0..2000)
            .filter(|i| generator.is_queryable(generator.facts(*i).ehr))
            .flat_map(|i| generator.composition(i).truth)
            .collect();
        let high = rows
            .iter()
            .filter(|t| t.archetype == BLOOD_PRESSURE.archetype && t.path == ["at0006", "at0004"]);
        let count = high
            .filter(|t| matches!(t.value, Leaf::Quantity(magnitude, _) if magnitude >= 140.0))
            .count();
        assert_eq!(count, generator.systolic_from_140().len());
        let mut line = String::new();
        rows[0].write_tsv(&mut line);
        assert_eq!(line.matches('\t').count(), 8, "{line}");
    }
}
