//! Draws the facts of a sample composition from a deterministic random source.

use super::facts::*;
use super::random::Random;

impl Facts {
    pub(super) fn draw(seat: CompositionContext) -> Facts {
        let part = |n: usize| u64::try_from(n).unwrap_or_default();
        let mut random = Random::new([seat.seed, 1, part(seat.ehr), part(seat.index)]);
        let detail = if random.chance(10) {
            Detail::Minute
        } else {
            random.pick(&[0, 0, 0, 1]).into()
        };
        let start = Moment {
            seconds: seat.seconds,
            zone: random.pick(&ZONES),
            detail,
        };
        let mut draw = Draw {
            random: &mut random,
            seat,
            start,
        };
        let body = draw.body();
        Facts {
            ehr: seat.ehr,
            language: usize::try_from(random.below(4)).unwrap_or_default(),
            start,
            composer: random.pick(&COMPOSERS),
            body,
        }
    }
}

impl From<u8> for Detail {
    fn from(number: u8) -> Detail {
        if number == 1 {
            Detail::Milli
        } else {
            Detail::Second
        }
    }
}

struct Draw<'r> {
    random: &'r mut Random,
    seat: CompositionContext,
    start: Moment,
}

impl Draw<'_> {
    /// Returns the content: 70 % vital signs, 20 % laboratory results, 10 % problems. The chosen
    /// compositions of rare cases have the content that their case needs.
    fn body(&mut self) -> Body {
        let kind = if self.seat.is_hypertensive {
            0
        } else if self.seat.is_rare {
            99
        } else {
            self.random.below(100)
        };
        match kind {
            0..70 => self.vitals(),
            70..90 => self.laboratory(),
            _ => self.problems(),
        }
    }

    fn vitals(&mut self) -> Body {
        let mut observations = Vec::new();
        if self.seat.is_hypertensive || self.random.chance(850) {
            observations.push(self.blood_pressure());
        }
        if self.random.chance(500) {
            observations.push(self.temperature());
        }
        if self.random.chance(600) {
            observations.push(self.pulse());
        }
        if self.random.chance(350) {
            observations.push(self.respiration());
        }
        if self.random.chance(250) || observations.is_empty() {
            observations.push(self.weight());
        }
        if self.random.chance(150) {
            observations.push(self.oximetry());
        }
        Body::Vitals(observations)
    }

    fn oximetry(&mut self) -> Observation {
        self.observation(&OXIMETRY, |d| {
            let share = d.random.between(880, 1000);
            let percent = match share % 10 {
                0 => Decimal::whole(share / 10, 0),
                _ => Decimal::tenths(share),
            };
            vec![("at0006", Value::Percent(percent))]
        })
    }

    fn observation(
        &mut self,
        frame: &'static ObservationNodes,
        mut data: impl FnMut(&mut Self) -> Vec<Element>,
    ) -> Observation {
        let repeats = self.random.repeats(20);
        let start = self.start;
        let events = (0..repeats).map(|i| Event {
            time: start.later(i64::try_from(i).unwrap_or_default() * 300),
            is_day: false,
            data: data(self),
            state: Vec::new(),
        });
        Observation {
            frame,
            events: events.collect(),
            protocol: Vec::new(),
            device: None,
        }
    }

    fn blood_pressure(&mut self) -> Observation {
        let mut observation = self.observation(&BLOOD_PRESSURE, Draw::pressures);
        if let Some(event) = observation.events.first_mut()
            && self.seat.is_hypertensive
        {
            self.raise(event);
        }
        if self.random.chance(20) {
            observation.events.push(self.mean_of_day());
        }
        for event in &mut observation.events {
            event.state = self.state_of_patient();
        }
        if self.random.chance(450) {
            observation.protocol = self.cuff_and_location();
            observation.device = self.random.chance(200).then(|| self.device());
        }
        observation
    }

    /// Replaces the systolic pressure by a high one, from 160 to 190 `mm[Hg]`.
    fn raise(&mut self, event: &mut Event) {
        let halves = 320 + self.random.between(0, 60);
        let high = ("at0004", self.millimetres(halves));
        event.data.retain(|(node, _)| *node != "at0004");
        event.data.insert(0, high);
    }

    /// Returns the mean pressures of the next day.
    fn mean_of_day(&mut self) -> Event {
        let data = self.pressures();
        Event {
            time: self.start.later(86_400),
            is_day: true,
            data,
            state: Vec::new(),
        }
    }

    /// Returns position and tilt of the patient.
    fn state_of_patient(&mut self) -> Vec<Element> {
        let mut state = Vec::new();
        if self.random.chance(350) {
            let position = self.local(&["at1000", "at1001", "at1001", "at1002", "at1003"]);
            state.push(("at0008", position));
        }
        if self.random.chance(30) {
            state.push(("at1043", self.local(&["at1044", "at1045"])));
        }
        state
    }

    fn cuff_and_location(&mut self) -> Vec<Element> {
        let cuff = self.local(&["at0015", "at0016", "at0017", "at0017"]);
        let location = if self.random.chance(50) {
            Value::Text("finger of the left hand".into())
        } else {
            self.local(&["at0025", "at0026"])
        };
        vec![("at0013", cuff), ("at0014", location)]
    }

    /// Returns systolic and diastolic pressure: systolic from 90 to 159.5 in halves, diastolic
    /// derived from it; 2 % in kPa.
    fn pressures(&mut self) -> Vec<Element> {
        let bits = self.random.bits();
        let steps = i64::try_from(
            (bits & 63) + (bits >> 6 & 63) + u64::from((bits >> 12 & 0x1fff).count_ones()),
        )
        .unwrap_or_default();
        if self.random.chance(20) {
            return kilopascals(steps);
        }
        let systolic = 180 + steps;
        let diastolic = systolic / 2 + 30 + i64::try_from(bits >> 40 & 15).unwrap_or_default();
        let mut data = Vec::new();
        data.push(if self.random.chance(985) {
            ("at0004", self.millimetres(systolic))
        } else {
            ("at0004", self.missing())
        });
        match self.random.below(100) {
            0..3 => data.push(("at0005", self.missing())),
            3..5 => {}
            _ => data.push(("at0005", self.millimetres(diastolic))),
        }
        if self.random.chance(100) {
            let mean = (systolic + 2 * diastolic) / 3;
            data.push(("at1006", self.millimetres(mean)));
        }
        if self.random.chance(80) {
            data.push(("at0033", self.remark()));
        }
        data
    }

    /// Returns a pressure of half millimetres of mercury.
    fn millimetres(&mut self, halves: i64) -> Value {
        Value::Quantity(Decimal::halves(halves, self.random), "mm[Hg]")
    }

    /// Returns a code of the archetype.
    fn local(&mut self, codes: &[&'static str]) -> Value {
        Value::Code("local", self.random.pick(codes))
    }

    fn text(&mut self, texts: &[&'static str]) -> Value {
        Value::Text(self.random.pick(texts).to_owned())
    }

    fn missing(&mut self) -> Value {
        Value::Missing(self.random.pick(&["271", "253", "272", "273"]))
    }

    fn remark(&mut self) -> Value {
        let remark = self.random.pick(&REMARKS);
        Value::Text(if self.random.chance(300) {
            remark.to_owned()
        } else {
            format!("{remark} ({})", self.random.below(100_000))
        })
    }

    fn device(&mut self) -> Vec<Element> {
        let serial = format!("SN-{:06}", self.random.below(1_000_000));
        let mut device = vec![(
            "at0001",
            self.text(&["Cardio One", "ArmCheck 3", "WristPal"]),
        )];
        if self.random.chance(500) {
            device.push(("at0004", Value::Text("Example Devices".into())));
        }
        device.push(("at0020", Value::Text(serial)));
        device
    }

    fn temperature(&mut self) -> Observation {
        let mut observation = self.observation(&TEMPERATURE, |d| {
            let mut data = vec![("at0004", d.degrees())];
            for _ in 0..d.random.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 2]) {
                data.push(("at0063", d.remark()));
            }
            data
        });
        if self.random.chance(400) {
            let place = if self.random.chance(50) {
                Value::Text("forehead".into())
            } else {
                self.local(&["at0022", "at0023", "at0024", "at0025"])
            };
            observation.protocol.push(("at0021", place));
        }
        observation
    }

    /// Returns a body temperature: 92 % in degrees Celsius, 5 % in Fahrenheit, 3 % missing.
    fn degrees(&mut self) -> Value {
        let normal = self.random.between(355, 385);
        let tenths = normal + if self.random.chance(100) { 15 } else { 0 };
        match self.random.below(100) {
            0..3 => self.missing(),
            3..8 => Value::Quantity(Decimal::tenths(tenths * 9 / 5 + 320), "[degF]"),
            _ => {
                let zeros = self.random.pick(&[0, 0, 0, 1]);
                Value::Quantity(Decimal::tenths(tenths).with_zeros(zeros), "Cel")
            }
        }
    }

    fn pulse(&mut self) -> Observation {
        let mut observation = self.observation(&PULSE, |d| {
            let rate = d.random.between(48, 100) + if d.random.chance(120) { 30 } else { 0 };
            let zeros = d.random.pick(&[0, 0, 1]);
            let mut data = vec![(
                "at0004",
                Value::Quantity(Decimal::whole(rate, zeros), "/min"),
            )];
            if d.random.chance(400) {
                data.push(("at0005", d.local(&["at0006", "at0006", "at0006", "at1028"])));
            }
            if d.random.chance(40) {
                data.push(("at1022", d.remark()));
            }
            data
        });
        if self.random.chance(300) {
            observation
                .protocol
                .push(("at1019", self.local(&["at1032", "at1033", "at1034"])));
        }
        observation
    }

    fn respiration(&mut self) -> Observation {
        self.observation(&RESPIRATION, |d| {
            let mut data = vec![(
                "at0004",
                Value::Quantity(Decimal::whole(d.random.between(9, 27), 0), "/min"),
            )];
            if d.random.chance(300) {
                data.push(("at0005", d.local(&["at0006", "at0006", "at0007"])));
            }
            if d.random.chance(200) {
                data.push(("at0016", d.local(&["at0017", "at0017", "at0018", "at0019"])));
            }
            data
        })
    }

    fn weight(&mut self) -> Observation {
        self.observation(&WEIGHT, |d| {
            let value = match d.random.below(100) {
                0..5 => Value::Quantity(Decimal::tenths(d.random.between(900, 2600)), "[lb_av]"),
                _ => Value::Quantity(
                    Decimal {
                        zeros: d.random.pick(&[0, 0, 0, 1]),
                        ..Decimal::tenths(d.random.between(420, 1180))
                    },
                    "kg",
                ),
            };
            vec![("at0004", value)]
        })
    }

    fn laboratory(&mut self) -> Body {
        let panels = (0..self.random.repeats(4))
            .map(|i| self.panel(i64::try_from(i).unwrap_or_default()))
            .collect();
        Body::Laboratory {
            number: format!("L{:08}", self.random.below(100_000_000)),
            status: self
                .random
                .pick(&["final", "final", "final", "preliminary"]),
            panels,
        }
    }

    fn panel(&mut self, number: i64) -> Panel {
        let mut elements = vec![(
            "at0005",
            self.text(&[
                "Blood count",
                "Electrolytes",
                "Liver panel",
                "Metabolic panel",
            ]),
        )];
        let specimen = if self.random.chance(700) {
            self.specimen()
        } else {
            Vec::new()
        };
        if self.random.chance(800) {
            elements.push(("at0073", self.local(&STATUSES)));
        }
        let first = self.random.below(12);
        let analytes = (0..2 + self.random.below(4))
            .map(|i| self.analyte(first + i, 4))
            .collect();
        let conclusion = if self.random.chance(150) {
            vec![("at0057", self.remark())]
        } else {
            Vec::new()
        };
        Panel {
            time: self.start.later(number * 60),
            elements,
            specimen,
            analytes,
            conclusion,
            protocol: self.laboratory_protocol(),
        }
    }

    fn laboratory_protocol(&mut self) -> Vec<Element> {
        if !self.random.chance(400) {
            return Vec::new();
        }
        let number = format!("LAB/{:07}", self.random.below(10_000_000));
        vec![
            ("at0068", Value::Text(number)),
            ("at0111", Value::Flag(self.random.chance(200))),
        ]
    }

    fn specimen(&mut self) -> Vec<Element> {
        let mut specimen = vec![(
            "at0029",
            Value::Code(
                "sample-lab",
                self.random.pick(&["SERUM", "PLASMA", "BLOOD"]),
            ),
        )];
        if self.random.chance(300) {
            specimen.push(("at0080", Value::Count(self.random.between(1, 4))));
        }
        specimen
    }

    fn analyte(&mut self, number: u64, depth: u32) -> Analyte {
        let index = usize::try_from(number % 12).unwrap_or_default();
        let (code, unit, mean, spread) = ANALYTES.get(index).copied().unwrap_or_default();
        let mut elements = vec![("at0024", Value::Code("sample-lab", code))];
        elements.push(("at0001", self.result(mean, spread, unit)));
        if self.random.chance(200) {
            elements.push(("at0005", self.text(&["final", "preliminary"])));
        }
        if self.random.chance(50) {
            elements.push(("at0003", self.remark()));
        }
        let details = if depth > 1 && self.random.chance(60) {
            vec![self.analyte(number + 5, depth - 1)]
        } else {
            Vec::new()
        };
        Analyte { elements, details }
    }

    /// Returns the result of an analyte in tenths of its unit.
    fn result(&mut self, mean: i64, spread: i64, unit: &'static str) -> Value {
        let tenths = mean + self.random.between(-spread, spread);
        let zeros = self.random.pick(&[0, 0, 1]);
        match self.random.below(100) {
            0..3 => self.missing(),
            3..6 => Value::Text("not measurable: haemolysis".into()),
            6..8 => Value::Range(
                Decimal::tenths(mean - spread),
                Decimal::tenths(tenths.max(mean)),
                unit,
            ),
            _ => Value::Quantity(Decimal::tenths(tenths).with_zeros(zeros), unit),
        }
    }

    fn problems(&mut self) -> Body {
        let count = 1 + self.random.repeats(8);
        let mut problems: Vec<Problem> = (0..count).map(|_| self.problem(None)).collect();
        if self.seat.is_rare {
            problems.push(self.problem(Some(RARE_CODE)));
        }
        Body::Problems(problems)
    }

    fn problem(&mut self, code: Option<&'static str>) -> Problem {
        let mut data = vec![("at0002", self.diagnosis(code))];
        if self.random.chance(300) {
            data.push(("at0009", self.remark()));
        }
        if self.random.chance(100) {
            data.push((
                "at0012",
                self.text(&["left knee", "right ear", "lower back"]),
            ));
        }
        self.course(&mut data);
        let protocol = if self.random.chance(600) {
            vec![("at0070", Value::Time(self.start))]
        } else {
            Vec::new()
        };
        Problem { data, protocol }
    }

    /// Adds onset, time of clinical recognition, severity, diagnostic certainty and a comment.
    fn course(&mut self, data: &mut Vec<Element>) {
        if self.random.chance(700) {
            let detail = self.random.pick(&[0, 1, 2, 2, 2, 3]);
            data.push(("at0077", Value::Time(self.past(9000, detail))));
        }
        if self.random.chance(500) {
            data.push(("at0003", Value::Time(self.past(2000, 3))));
        }
        if self.random.chance(500) {
            data.push(("at0005", self.local(&["at0047", "at0048", "at0049"])));
        }
        if self.random.chance(400) {
            let certainty = self.local(&["at0074", "at0075", "at0076", "at0076"]);
            data.push(("at0073", certainty));
        }
        if self.random.chance(150) {
            data.push(("at0069", self.remark()));
        }
    }

    /// Returns a name of a problem: this code, or one of those that occur, some of which are frequent.
    fn diagnosis(&mut self, code: Option<&'static str>) -> Value {
        let frequent = usize::try_from(self.random.bits().leading_zeros() * 3).unwrap_or_default()
            + usize::try_from(self.random.below(6)).unwrap_or_default();
        let drawn = DIAGNOSES
            .get(frequent % DIAGNOSES.len())
            .copied()
            .unwrap_or_default();
        match code {
            None if self.random.chance(30) => self.remark(),
            code => Value::Code("ICD10", code.unwrap_or(drawn)),
        }
    }

    fn past(&mut self, days: i64, detail: u8) -> Moment {
        let detail = match detail {
            0 => Detail::Year,
            1 => Detail::Month,
            2 => Detail::Day,
            _ => Detail::Second,
        };
        let zone = if detail == Detail::Second {
            self.start.zone
        } else {
            None
        };
        Moment {
            zone,
            detail,
            ..self.start.later(-86_400 * self.random.between(1, days))
        }
    }
}

/// The status codes of a laboratory result, most often the final one.
const STATUSES: [&str; 7] = [
    "at0038", "at0038", "at0038", "at0037", "at0120", "at0040", "at0107",
];

/// Returns systolic and diastolic pressure in eighths of a kilopascal.
fn kilopascals(steps: i64) -> Vec<Element> {
    let eighths = |n: i64| Decimal {
        units: n * 125,
        scale: 3,
        zeros: 0,
    };
    vec![
        ("at0004", Value::Quantity(eighths(96 + steps / 2), "kPa")),
        ("at0005", Value::Quantity(eighths(64 + steps / 4), "kPa")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_as_they_count() {
        for (units, scale, zeros, text) in [
            (120, 0, 0, "120"),
            (120, 0, 2, "120.00"),
            (1205, 1, 1, "120.50"),
            (15_125, 3, 0, "15.125"),
            (5, 1, 0, "0.5"),
        ] {
            let decimal = Decimal {
                units,
                scale,
                zeros,
            };
            let mut out = String::new();
            decimal.write(&mut out);
            assert_eq!((out.as_str(), out.parse()), (text, Ok(decimal.value())));
        }
    }

    #[test]
    fn moments_mean_what_they_say() {
        use crate::rm::time::{Temporal, TemporalKind};
        for zone in ZONES {
            for detail in [
                Detail::Year,
                Detail::Month,
                Detail::Day,
                Detail::Minute,
                Detail::Second,
                Detail::Milli,
            ] {
                let zone = if matches!(detail, Detail::Year | Detail::Month | Detail::Day) {
                    None
                } else {
                    zone
                };
                let moment = Moment {
                    seconds: 1_580_000_123,
                    zone,
                    detail,
                };
                let read = Temporal::parse(TemporalKind::DateTime, &moment.text()).unwrap();
                assert_eq!(
                    read.total_order(Temporal::from_micros(moment.micros()))
                        .map(|o| o.is_ge()),
                    Some(true),
                    "{}",
                    moment.text()
                );
                assert_eq!(
                    read.floor_order(Temporal::from_micros(moment.micros())),
                    Some(std::cmp::Ordering::Equal),
                    "{}",
                    moment.text()
                );
            }
        }
    }
}
