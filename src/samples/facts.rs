//! What is true about a sample composition, drawn from its tuple before any JSON is written.

use super::random::Random;
use crate::rm::time;

/// A number as it will be spelled: `units / 10^scale`, with further zeros behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub units: i64,
    pub scale: u32,
    pub zeros: u32,
}

/// A moment as it will be spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Seconds since 1970 in UTC.
    pub seconds: i64,
    /// Minutes east of Greenwich; without zone when absent, which means UTC.
    pub zone: Option<i64>,
    /// How much of it is written.
    pub detail: Detail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    Year,
    Month,
    Day,
    Minute,
    Second,
    Milli,
}

/// The value of an element.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Quantity(Decimal, &'static str),
    Range(Decimal, Decimal, &'static str),
    Percent(Decimal),
    Count(i64),
    Flag(bool),
    Code(&'static str, &'static str),
    Text(String),
    Time(Moment),
    /// The code of a null flavour.
    Missing(&'static str),
}

/// An element: node id and value.
pub(super) type Element = (&'static str, Value);

/// A composition.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub ehr: usize,
    pub language: usize,
    pub start: Moment,
    pub composer: &'static str,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Vitals(Vec<Observation>),
    Laboratory { number: String, status: &'static str, panels: Vec<Panel> },
    Problems(Vec<Problem>),
}

/// An OBSERVATION: repeated events with elements, and a protocol.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub frame: &'static Frame,
    pub events: Vec<Event>,
    pub protocol: Vec<Element>,
    pub device: Option<Vec<Element>>,
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    pub time: Moment,
    /// The mean over a day instead of a measurement at a moment.
    pub is_day: bool,
    pub data: Vec<Element>,
    pub state: Vec<Element>,
}

/// A panel of analytes.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    pub time: Moment,
    pub elements: Vec<Element>,
    pub specimen: Vec<Element>,
    pub analytes: Vec<Analyte>,
    pub conclusion: Vec<Element>,
    pub protocol: Vec<Element>,
}

/// One analyte; details nest.
#[derive(Clone, Debug)]
pub(super) struct Analyte {
    pub elements: Vec<Element>,
    pub details: Vec<Analyte>,
}

#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub data: Vec<Element>,
    pub protocol: Vec<Element>,
}

/// The node ids of an observation archetype.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub archetype: &'static str,
    pub history: &'static str,
    pub event: &'static str,
    pub tree: &'static str,
    pub state: &'static str,
    pub protocol: &'static str,
}

pub(super) const BLOOD_PRESSURE: Frame = Frame {
    archetype: "openEHR-EHR-OBSERVATION.blood_pressure.v2",
    history: "at0001",
    event: "at0006",
    tree: "at0003",
    state: "at0007",
    protocol: "at0011",
};
pub(super) const TEMPERATURE: Frame = Frame {
    archetype: "openEHR-EHR-OBSERVATION.body_temperature.v2",
    history: "at0002",
    event: "at0003",
    tree: "at0001",
    state: "",
    protocol: "at0020",
};
pub(super) const PULSE: Frame =
    Frame { archetype: "openEHR-EHR-OBSERVATION.pulse.v2", history: "at0002", event: "at0003", tree: "at0001", state: "", protocol: "at0010" };
pub(super) const RESPIRATION: Frame =
    Frame { archetype: "openEHR-EHR-OBSERVATION.respiration.v2", history: "at0001", event: "at0002", tree: "at0003", state: "", protocol: "" };
pub(super) const WEIGHT: Frame =
    Frame { archetype: "openEHR-EHR-OBSERVATION.body_weight.v2", history: "at0002", event: "at0003", tree: "at0001", state: "", protocol: "" };
pub(super) const OXIMETRY: Frame =
    Frame { archetype: "openEHR-EHR-OBSERVATION.pulse_oximetry.v1", history: "at0001", event: "at0002", tree: "at0003", state: "", protocol: "" };
pub(super) const LABORATORY: Frame = Frame {
    archetype: "openEHR-EHR-OBSERVATION.laboratory_test_result.v1",
    history: "at0001",
    event: "at0002",
    tree: "at0003",
    state: "",
    protocol: "at0004",
};

/// The node id of the daily mean of blood pressures.
pub(super) const DAY_EVENT: &str = "at1042";
/// The code that few EHRs have, and those once.
pub(super) const RARE_CODE: &str = "Q87.4";

const ZONES: [Option<i64>; 4] = [Some(0), Some(60), Some(-210), None];
const COMPOSERS: [&str; 8] = [
    "Dr. Amalia Ortiz",
    "Nurse Bengt Åkesson",
    "Dr. Claire Dubois",
    "Dr. Đorđe Petrović",
    "Midwife Eva Lindström",
    "Nurse Farid Haddad",
    "Dr. Grace O'Neil",
    "Dr. 林 美咲",
];
const REMARKS: [&str; 12] = [
    "measured after ten minutes of rest",
    "said \"I feel dizzy\" while standing up",
    "path C:\\temp\\reading was imported",
    "feels well 🙂, no complaints",
    "Ruhe, später wiederholen",
    "mareado al levantarse, ¿deshidratación?",
    "left arm in a sling; right arm used",
    "line one\nline two",
    "repeat in 15 min, cuff <too tight> & moved",
    "tab\tseparated",
    "ingen anmärkning",
    "null",
];
/// Diagnoses, the frequent ones first.
const DIAGNOSES: [&str; 40] = [
    "I10", "E11.9", "J45.9", "E78.5", "F32.9", "M54.5", "J44.9", "I48.9", "I50.9", "E03.9", "M17.9", "K21.9", "G43.9", "I25.1", "N18.3", "E66.9",
    "F41.1", "H25.9", "M81.9", "N40", "L40.9", "L20.9", "G40.9", "I63.9", "I21.9", "C50.9", "C61", "C18.9", "M06.9", "K50.9", "K51.9", "G20", "G35",
    "F03", "J30.1", "D50.9", "B18.2", "H40.9", "G47.3", "E10.9",
];
/// Analytes: code, unit, mean and spread in tenths.
const ANALYTES: [(&str, &str, i64, i64); 12] = [
    ("HB", "g/l", 1380, 300),
    ("WBC", "10*9/l", 70, 40),
    ("PLT", "10*9/l", 2500, 900),
    ("NA", "mmol/l", 1400, 60),
    ("K", "mmol/l", 41, 9),
    ("CREA", "umol/l", 800, 350),
    ("GLU", "mmol/l", 58, 25),
    ("CRP", "mg/l", 60, 59),
    ("HBA1C", "mmol/mol", 420, 120),
    ("ALT", "U/l", 280, 200),
    ("TSH", "m[IU]/l", 20, 15),
    ("ALB", "g/l", 410, 60),
];

impl Decimal {
    pub(super) fn value(self) -> f64 {
        let divisor: i32 = 10_i32.pow(self.scale);
        // Both are exact in f64 (|units| < 2^53), so the quotient is what reading the text gives.
        to_f64(self.units) / f64::from(divisor)
    }

    pub(super) fn write(self, out: &mut String) {
        use std::fmt::Write;
        let divisor = 10_i64.pow(self.scale);
        let _ = write!(out, "{}", self.units / divisor);
        let decimals = usize::try_from(self.scale).unwrap_or_default();
        if decimals > 0 {
            let _ = write!(out, ".{:0decimals$}", (self.units % divisor).abs());
        } else if self.zeros > 0 {
            out.push('.');
        }
        (0..self.zeros).for_each(|_| out.push('0'));
    }

    /// A number of halves: `120`, `120.0`, `120.00`, `120.5`, `120.50`.
    fn halves(halves: i64, random: &mut Random) -> Decimal {
        let zeros = random.pick(&[0, 0, 0, 1, 1, 1, 1, 2]);
        if halves % 2 == 0 { Decimal { units: halves / 2, scale: 0, zeros } } else { Decimal { units: halves * 5, scale: 1, zeros: zeros / 2 } }
    }

    fn tenths(tenths: i64) -> Decimal {
        Decimal { units: tenths, scale: 1, zeros: 0 }
    }
}

fn to_f64(number: i64) -> f64 {
    let high = i32::try_from(number >> 31).unwrap_or_default();
    let low = u32::try_from(number & 0x7fff_ffff).unwrap_or_default();
    f64::from(high) * 2_147_483_648.0 + f64::from(low)
}

impl Moment {
    /// Microseconds since 0001-01-01 in UTC of the earliest moment that the spelling means.
    pub(super) fn micros(self) -> i64 {
        time::from_unix_millis(self.floor() * 1000)
    }

    fn floor(self) -> i64 {
        let local = self.seconds + self.zone.unwrap_or(0) * 60;
        let (year, month, _) = date_of(local.div_euclid(86_400));
        match self.detail {
            Detail::Year => unix_day(year, 1, 1) * 86_400,
            Detail::Month => unix_day(year, month, 1) * 86_400,
            Detail::Day => local.div_euclid(86_400) * 86_400,
            Detail::Minute => self.seconds.div_euclid(60) * 60,
            Detail::Second | Detail::Milli => self.seconds,
        }
    }

    pub(super) fn write(self, out: &mut String) {
        use std::fmt::Write;
        let local = self.seconds + self.zone.unwrap_or(0) * 60;
        let (year, month, day) = date_of(local.div_euclid(86_400));
        let second = local.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let _ = match self.detail {
            Detail::Year => write!(out, "{year:04}"),
            Detail::Month => write!(out, "{year:04}-{month:02}"),
            Detail::Day => write!(out, "{year:04}-{month:02}-{day:02}"),
            Detail::Minute => write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}"),
            Detail::Second => write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"),
            Detail::Milli => write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000"),
        };
        let zone = if matches!(self.detail, Detail::Year | Detail::Month | Detail::Day) { None } else { self.zone };
        let _ = match zone {
            None => Ok(()),
            Some(0) => write!(out, "Z"),
            Some(zone) => write!(out, "{}{:02}:{:02}", if zone < 0 { '-' } else { '+' }, zone.abs() / 60, zone.abs() % 60),
        };
    }

    pub(super) fn text(self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn later(self, seconds: i64) -> Moment {
        Moment { seconds: self.seconds + seconds, ..self }
    }
}

const UNIX_DAYS: i64 = 719_162;

fn date_of(unix_days: i64) -> (i64, i64, i64) {
    time::date_after(unix_days + UNIX_DAYS)
}

fn unix_day(year: i64, month: i64, day: i64) -> i64 {
    time::days_before(year, month, day) - UNIX_DAYS
}

/// What the generator knows of a composition before it draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub seed: u64,
    pub ehr: usize,
    pub index: usize,
    pub seconds: i64,
    /// One of the few with a systolic pressure of 160 or more.
    pub is_hypertensive: bool,
    /// Carries [`RARE_CODE`].
    pub is_rare: bool,
}

impl Facts {
    pub(super) fn draw(seat: Seat) -> Facts {
        let part = |n: usize| u64::try_from(n).unwrap_or_default();
        let mut random = Random::of([seat.seed, 1, part(seat.ehr), part(seat.index)]);
        let detail = if random.chance(10) { Detail::Minute } else { random.pick(&[0, 0, 0, 1]).into() };
        let start = Moment { seconds: seat.seconds, zone: random.pick(&ZONES), detail };
        let kind = if seat.is_hypertensive {
            0
        } else if seat.is_rare {
            99
        } else {
            random.below(100)
        };
        let mut draw = Draw { random: &mut random, seat, start };
        let body = match kind {
            0..70 => draw.vitals(),
            70..90 => draw.laboratory(),
            _ => draw.problems(),
        };
        Facts { ehr: seat.ehr, language: usize::try_from(random.below(4)).unwrap_or_default(), start, composer: random.pick(&COMPOSERS), body }
    }
}

impl From<u8> for Detail {
    fn from(number: u8) -> Detail {
        if number == 1 { Detail::Milli } else { Detail::Second }
    }
}

struct Draw<'r> {
    random: &'r mut Random,
    seat: Seat,
    start: Moment,
}

impl Draw<'_> {
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
            let oximetry = self.observation(&OXIMETRY, |d| {
                let share = d.random.between(880, 1000);
                vec![(
                    "at0006",
                    Value::Percent(if share % 10 == 0 { Decimal { units: share / 10, scale: 0, zeros: 0 } } else { Decimal::tenths(share) }),
                )]
            });
            observations.push(oximetry);
        }
        Body::Vitals(observations)
    }

    fn observation(&mut self, frame: &'static Frame, mut data: impl FnMut(&mut Self) -> Vec<Element>) -> Observation {
        let repeats = self.random.repeats(20);
        let start = self.start;
        let events = (0..repeats).map(|i| Event {
            time: start.later(i64::try_from(i).unwrap_or_default() * 300),
            is_day: false,
            data: data(self),
            state: Vec::new(),
        });
        Observation { frame, events: events.collect(), protocol: Vec::new(), device: None }
    }

    fn blood_pressure(&mut self) -> Observation {
        let mut observation = self.observation(&BLOOD_PRESSURE, Draw::pressures);
        if let Some(event) = observation.events.first_mut().filter(|_| self.seat.is_hypertensive) {
            let halves = 320 + self.random.between(0, 60);
            let high = Decimal::halves(halves, self.random);
            event.data.retain(|(node, _)| *node != "at0004");
            event.data.insert(0, ("at0004", Value::Quantity(high, "mm[Hg]")));
        }
        if self.random.chance(20) {
            let data = self.pressures();
            observation.events.push(Event { time: self.start.later(86_400), is_day: true, data, state: Vec::new() });
        }
        for event in &mut observation.events {
            if self.random.chance(350) {
                event.state.push(("at0008", Value::Code("local", self.random.pick(&["at1000", "at1001", "at1001", "at1002", "at1003"]))));
            }
            if self.random.chance(30) {
                event.state.push(("at1043", Value::Code("local", self.random.pick(&["at1044", "at1045"]))));
            }
        }
        if self.random.chance(450) {
            observation.protocol.push(("at0013", Value::Code("local", self.random.pick(&["at0015", "at0016", "at0017", "at0017"]))));
            let place = if self.random.chance(50) {
                Value::Text("finger of the left hand".into())
            } else {
                Value::Code("local", self.random.pick(&["at0025", "at0026"]))
            };
            observation.protocol.push(("at0014", place));
            observation.device = self.random.chance(200).then(|| self.device());
        }
        observation
    }

    /// Systolic from 90 to 159.5 in halves; diastolic follows from it; 2 % in kPa.
    fn pressures(&mut self) -> Vec<Element> {
        let bits = self.random.bits();
        let steps = i64::try_from((bits & 63) + (bits >> 6 & 63) + u64::from((bits >> 12 & 0x1fff).count_ones())).unwrap_or_default();
        let mut data = Vec::new();
        if self.random.chance(20) {
            let eighths = |n: i64| Decimal { units: n * 125, scale: 3, zeros: 0 };
            data.push(("at0004", Value::Quantity(eighths(96 + steps / 2), "kPa")));
            data.push(("at0005", Value::Quantity(eighths(64 + steps / 4), "kPa")));
            return data;
        }
        let systolic = 180 + steps;
        let diastolic = systolic / 2 + 30 + i64::try_from(bits >> 40 & 15).unwrap_or_default();
        if self.random.chance(985) {
            data.push(("at0004", Value::Quantity(Decimal::halves(systolic, self.random), "mm[Hg]")));
        } else {
            data.push(("at0004", self.missing()));
        }
        match self.random.below(100) {
            0..3 => data.push(("at0005", self.missing())),
            3..5 => {}
            _ => data.push(("at0005", Value::Quantity(Decimal::halves(diastolic, self.random), "mm[Hg]"))),
        }
        if self.random.chance(100) {
            data.push(("at1006", Value::Quantity(Decimal::halves((systolic + 2 * diastolic) / 3, self.random), "mm[Hg]")));
        }
        if self.random.chance(80) {
            data.push(("at0033", self.remark()));
        }
        data
    }

    fn missing(&mut self) -> Value {
        Value::Missing(self.random.pick(&["271", "253", "272", "273"]))
    }

    fn remark(&mut self) -> Value {
        let remark = self.random.pick(&REMARKS);
        Value::Text(if self.random.chance(300) { remark.to_owned() } else { format!("{remark} ({})", self.random.below(100_000)) })
    }

    fn device(&mut self) -> Vec<Element> {
        let serial = format!("SN-{:06}", self.random.below(1_000_000));
        let mut device = vec![("at0001", Value::Text(self.random.pick(&["Cardio One", "ArmCheck 3", "WristPal"]).to_owned()))];
        if self.random.chance(500) {
            device.push(("at0004", Value::Text("Example Devices".into())));
        }
        device.push(("at0020", Value::Text(serial)));
        device
    }

    fn temperature(&mut self) -> Observation {
        let mut observation = self.observation(&TEMPERATURE, |d| {
            let tenths = d.random.between(355, 385) + if d.random.chance(100) { 15 } else { 0 };
            let value = match d.random.below(100) {
                0..3 => d.missing(),
                3..8 => Value::Quantity(Decimal::tenths(tenths * 9 / 5 + 320), "[degF]"),
                _ => Value::Quantity(Decimal { zeros: d.random.pick(&[0, 0, 0, 1]), ..Decimal::tenths(tenths) }, "Cel"),
            };
            let mut data = vec![("at0004", value)];
            for _ in 0..d.random.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 2]) {
                data.push(("at0063", d.remark()));
            }
            data
        });
        if self.random.chance(400) {
            let place = if self.random.chance(50) {
                Value::Text("forehead".into())
            } else {
                Value::Code("local", self.random.pick(&["at0022", "at0023", "at0024", "at0025"]))
            };
            observation.protocol.push(("at0021", place));
        }
        observation
    }

    fn pulse(&mut self) -> Observation {
        let mut observation = self.observation(&PULSE, |d| {
            let rate = d.random.between(48, 100) + if d.random.chance(120) { 30 } else { 0 };
            let zeros = d.random.pick(&[0, 0, 1]);
            let mut data = vec![("at0004", Value::Quantity(Decimal { units: rate, scale: 0, zeros }, "/min"))];
            if d.random.chance(400) {
                data.push(("at0005", Value::Code("local", d.random.pick(&["at0006", "at0006", "at0006", "at1028"]))));
            }
            if d.random.chance(40) {
                data.push(("at1022", d.remark()));
            }
            data
        });
        if self.random.chance(300) {
            observation.protocol.push(("at1019", Value::Code("local", self.random.pick(&["at1032", "at1033", "at1034"]))));
        }
        observation
    }

    fn respiration(&mut self) -> Observation {
        self.observation(&RESPIRATION, |d| {
            let mut data = vec![("at0004", Value::Quantity(Decimal { units: d.random.between(9, 27), scale: 0, zeros: 0 }, "/min"))];
            if d.random.chance(300) {
                data.push(("at0005", Value::Code("local", d.random.pick(&["at0006", "at0006", "at0007"]))));
            }
            if d.random.chance(200) {
                data.push(("at0016", Value::Code("local", d.random.pick(&["at0017", "at0017", "at0018", "at0019"]))));
            }
            data
        })
    }

    fn weight(&mut self) -> Observation {
        self.observation(&WEIGHT, |d| {
            let value = match d.random.below(100) {
                0..5 => Value::Quantity(Decimal::tenths(d.random.between(900, 2600)), "[lb_av]"),
                _ => Value::Quantity(Decimal { zeros: d.random.pick(&[0, 0, 0, 1]), ..Decimal::tenths(d.random.between(420, 1180)) }, "kg"),
            };
            vec![("at0004", value)]
        })
    }

    fn laboratory(&mut self) -> Body {
        let panels = (0..self.random.repeats(4)).map(|i| self.panel(i64::try_from(i).unwrap_or_default())).collect();
        Body::Laboratory {
            number: format!("L{:08}", self.random.below(100_000_000)),
            status: self.random.pick(&["final", "final", "final", "preliminary"]),
            panels,
        }
    }

    fn panel(&mut self, number: i64) -> Panel {
        let mut elements =
            vec![("at0005", Value::Text(self.random.pick(&["Blood count", "Electrolytes", "Liver panel", "Metabolic panel"]).to_owned()))];
        let specimen = if self.random.chance(700) { self.specimen() } else { Vec::new() };
        if self.random.chance(800) {
            elements
                .push(("at0073", Value::Code("local", self.random.pick(&["at0038", "at0038", "at0038", "at0037", "at0120", "at0040", "at0107"]))));
        }
        let first = self.random.below(12);
        let analytes = (0..2 + self.random.below(4)).map(|i| self.analyte(first + i, 4)).collect();
        let conclusion = if self.random.chance(150) { vec![("at0057", self.remark())] } else { Vec::new() };
        let mut protocol = Vec::new();
        if self.random.chance(400) {
            protocol.push(("at0068", Value::Text(format!("LAB/{:07}", self.random.below(10_000_000)))));
            protocol.push(("at0111", Value::Flag(self.random.chance(200))));
        }
        Panel { time: self.start.later(number * 60), elements, specimen, analytes, conclusion, protocol }
    }

    fn specimen(&mut self) -> Vec<Element> {
        let mut specimen = vec![("at0029", Value::Code("sample-lab", self.random.pick(&["SERUM", "PLASMA", "BLOOD"])))];
        if self.random.chance(300) {
            specimen.push(("at0080", Value::Count(self.random.between(1, 4))));
        }
        specimen
    }

    fn analyte(&mut self, number: u64, depth: u32) -> Analyte {
        let index = usize::try_from(number % 12).unwrap_or_default();
        let (code, unit, mean, spread) = ANALYTES.get(index).copied().unwrap_or_default();
        let mut elements = vec![("at0024", Value::Code("sample-lab", code))];
        let tenths = mean + self.random.between(-spread, spread);
        let zeros = self.random.pick(&[0, 0, 1]);
        match self.random.below(100) {
            0..3 => elements.push(("at0001", self.missing())),
            3..6 => elements.push(("at0001", Value::Text("not measurable: haemolysis".into()))),
            6..8 => elements.push(("at0001", Value::Range(Decimal::tenths(mean - spread), Decimal::tenths(tenths.max(mean)), unit))),
            _ => elements.push(("at0001", Value::Quantity(Decimal { zeros, ..Decimal::tenths(tenths) }, unit))),
        }
        if self.random.chance(200) {
            elements.push(("at0005", Value::Text(self.random.pick(&["final", "preliminary"]).to_owned())));
        }
        if self.random.chance(50) {
            elements.push(("at0003", self.remark()));
        }
        let details = if depth > 1 && self.random.chance(60) { vec![self.analyte(number + 5, depth - 1)] } else { Vec::new() };
        Analyte { elements, details }
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
        let frequent =
            usize::try_from(self.random.bits().leading_zeros() * 3).unwrap_or_default() + usize::try_from(self.random.below(6)).unwrap_or_default();
        let drawn = DIAGNOSES.get(frequent % DIAGNOSES.len()).copied().unwrap_or_default();
        let name = match code {
            None if self.random.chance(30) => self.remark(),
            code => Value::Code("ICD10", code.unwrap_or(drawn)),
        };
        let mut data = vec![("at0002", name)];
        if self.random.chance(300) {
            data.push(("at0009", self.remark()));
        }
        if self.random.chance(100) {
            data.push(("at0012", Value::Text(self.random.pick(&["left knee", "right ear", "lower back"]).to_owned())));
        }
        if self.random.chance(700) {
            let detail = self.random.pick(&[0, 1, 2, 2, 2, 3]);
            data.push(("at0077", Value::Time(self.past(9000, detail))));
        }
        if self.random.chance(500) {
            data.push(("at0003", Value::Time(self.past(2000, 3))));
        }
        if self.random.chance(500) {
            data.push(("at0005", Value::Code("local", self.random.pick(&["at0047", "at0048", "at0049"]))));
        }
        if self.random.chance(400) {
            data.push(("at0073", Value::Code("local", self.random.pick(&["at0074", "at0075", "at0076", "at0076"]))));
        }
        if self.random.chance(150) {
            data.push(("at0069", self.remark()));
        }
        let protocol = if self.random.chance(600) { vec![("at0070", Value::Time(self.start))] } else { Vec::new() };
        Problem { data, protocol }
    }

    fn past(&mut self, days: i64, detail: u8) -> Moment {
        let detail = match detail {
            0 => Detail::Year,
            1 => Detail::Month,
            2 => Detail::Day,
            _ => Detail::Second,
        };
        let zone = if detail == Detail::Second { self.start.zone } else { None };
        Moment { zone, detail, ..self.start.later(-86_400 * self.random.between(1, days)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_as_they_count() {
        for (units, scale, zeros, text) in
            [(120, 0, 0, "120"), (120, 0, 2, "120.00"), (1205, 1, 1, "120.50"), (15_125, 3, 0, "15.125"), (5, 1, 0, "0.5")]
        {
            let decimal = Decimal { units, scale, zeros };
            let mut out = String::new();
            decimal.write(&mut out);
            assert_eq!((out.as_str(), out.parse()), (text, Ok(decimal.value())));
        }
    }

    #[test]
    fn moments_mean_what_they_say() {
        use crate::rm::time::{Temporal, TemporalKind};
        for zone in ZONES {
            for detail in [Detail::Year, Detail::Month, Detail::Day, Detail::Minute, Detail::Second, Detail::Milli] {
                let zone = if matches!(detail, Detail::Year | Detail::Month | Detail::Day) { None } else { zone };
                let moment = Moment { seconds: 1_580_000_123, zone, detail };
                let read = Temporal::parse(TemporalKind::DateTime, &moment.text()).unwrap();
                assert_eq!(read.total_order(Temporal::at(moment.micros())).map(|o| o.is_ge()), Some(true), "{}", moment.text());
                assert_eq!(read.floor_order(Temporal::at(moment.micros())), Some(std::cmp::Ordering::Equal), "{}", moment.text());
            }
        }
    }
}
