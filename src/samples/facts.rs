//! The facts of a sample composition. They are drawn before any JSON is written.

use super::random::Random;
use crate::rm::time::{self, CalendarDate};

/// A decimal number in its spelling: `units / 10^scale`, with additional zeros at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub units: i64,
    pub scale: u32,
    pub zeros: u32,
}

/// A moment in its spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Seconds since 1970 in UTC.
    pub seconds: i64,
    /// Minutes east of Greenwich; `None` writes no zone, which means UTC.
    pub zone: Option<i64>,
    /// The precision of the spelling.
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
    Laboratory {
        number: String,
        status: &'static str,
        panels: Vec<Panel>,
    },
    Problems(Vec<Problem>),
}

/// An OBSERVATION: repeated events with elements, and a protocol.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub frame: &'static ObservationNodes,
    pub events: Vec<Event>,
    pub protocol: Vec<Element>,
    pub device: Option<Vec<Element>>,
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    pub time: Moment,
    /// Whether the event is the mean over a day instead of a measurement at a moment.
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

/// One analyte. Details are nested.
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
pub(super) struct ObservationNodes {
    pub archetype: &'static str,
    pub history: &'static str,
    pub event: &'static str,
    pub tree: &'static str,
    pub state: &'static str,
    pub protocol: &'static str,
}

pub(super) const BLOOD_PRESSURE: ObservationNodes = ObservationNodes {
    archetype: "openEHR-EHR-OBSERVATION.blood_pressure.v2",
    history: "at0001",
    event: "at0006",
    tree: "at0003",
    state: "at0007",
    protocol: "at0011",
};
pub(super) const TEMPERATURE: ObservationNodes = ObservationNodes {
    archetype: "openEHR-EHR-OBSERVATION.body_temperature.v2",
    history: "at0002",
    event: "at0003",
    tree: "at0001",
    state: "",
    protocol: "at0020",
};
pub(super) const PULSE: ObservationNodes = ObservationNodes {
    archetype: "openEHR-EHR-OBSERVATION.pulse.v2",
    history: "at0002",
    event: "at0003",
    tree: "at0001",
    state: "",
    protocol: "at0010",
};
pub(super) const RESPIRATION: ObservationNodes = ObservationNodes {
    archetype: "openEHR-EHR-OBSERVATION.respiration.v2",
    history: "at0001",
    event: "at0002",
    tree: "at0003",
    state: "",
    protocol: "",
};
pub(super) const WEIGHT: ObservationNodes = ObservationNodes {
    archetype: "openEHR-EHR-OBSERVATION.body_weight.v2",
    history: "at0002",
    event: "at0003",
    tree: "at0001",
    state: "",
    protocol: "",
};
pub(super) const OXIMETRY: ObservationNodes = ObservationNodes {
    archetype: "openEHR-EHR-OBSERVATION.pulse_oximetry.v1",
    history: "at0001",
    event: "at0002",
    tree: "at0003",
    state: "",
    protocol: "",
};
pub(super) const LABORATORY: ObservationNodes = ObservationNodes {
    archetype: "openEHR-EHR-OBSERVATION.laboratory_test_result.v1",
    history: "at0001",
    event: "at0002",
    tree: "at0003",
    state: "",
    protocol: "at0004",
};

/// The node id of the daily mean of blood pressures.
pub(super) const DAY_EVENT: &str = "at1042";
/// The rare code: few EHRs have it, each once.
pub(super) const RARE_CODE: &str = "Q87.4";

pub(super) const ZONES: [Option<i64>; 4] = [Some(0), Some(60), Some(-210), None];
pub(super) const COMPOSERS: [&str; 8] = [
    "Dr. Amalia Ortiz",
    "Nurse Bengt Åkesson",
    "Dr. Claire Dubois",
    "Dr. Đorđe Petrović",
    "Midwife Eva Lindström",
    "Nurse Farid Haddad",
    "Dr. Grace O'Neil",
    "Dr. 林 美咲",
];
pub(super) const REMARKS: [&str; 12] = [
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
pub(super) const DIAGNOSES: [&str; 40] = [
    "I10", "E11.9", "J45.9", "E78.5", "F32.9", "M54.5", "J44.9", "I48.9", "I50.9", "E03.9",
    "M17.9", "K21.9", "G43.9", "I25.1", "N18.3", "E66.9", "F41.1", "H25.9", "M81.9", "N40",
    "L40.9", "L20.9", "G40.9", "I63.9", "I21.9", "C50.9", "C61", "C18.9", "M06.9", "K50.9",
    "K51.9", "G20", "G35", "F03", "J30.1", "D50.9", "B18.2", "H40.9", "G47.3", "E10.9",
];
/// Analytes: code, unit, mean and spread, in tenths.
pub(super) const ANALYTES: [(&str, &str, i64, i64); 12] = [
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
        // Both are exact in f64 (|units| < 2^53), so the quotient equals the number that the text is read as.
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

    /// Returns a number of halves in a random spelling: `120`, `120.0`, `120.00`, `120.5`,
    /// `120.50`.
    pub(super) fn halves(halves: i64, random: &mut Random) -> Decimal {
        let zeros = random.pick(&[0, 0, 0, 1, 1, 1, 1, 2]);
        if halves % 2 == 0 {
            Decimal {
                units: halves / 2,
                scale: 0,
                zeros,
            }
        } else {
            Decimal {
                units: halves * 5,
                scale: 1,
                zeros: zeros / 2,
            }
        }
    }

    /// Returns a whole number that is written with some zeros behind the decimal point.
    pub(super) fn whole(units: i64, zeros: u32) -> Decimal {
        Decimal {
            units,
            scale: 0,
            zeros,
        }
    }

    pub(super) fn with_zeros(self, zeros: u32) -> Decimal {
        Decimal { zeros, ..self }
    }

    pub(super) fn tenths(tenths: i64) -> Decimal {
        Decimal {
            units: tenths,
            scale: 1,
            zeros: 0,
        }
    }
}

pub(super) fn to_f64(number: i64) -> f64 {
    let high = i32::try_from(number >> 31).unwrap_or_default();
    let low = u32::try_from(number & 0x7fff_ffff).unwrap_or_default();
    f64::from(high) * 2_147_483_648.0 + f64::from(low)
}

impl Moment {
    /// Returns the earliest moment of the spelling in microseconds since 0001-01-01 in UTC.
    pub(super) fn micros(self) -> i64 {
        time::from_unix_millis(self.floor() * 1000)
    }

    pub(super) fn floor(self) -> i64 {
        let local = self.seconds + self.zone.unwrap_or(0) * 60;
        let CalendarDate { year, month, .. } = date_of(local.div_euclid(86_400));
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
        let CalendarDate { year, month, day } = date_of(local.div_euclid(86_400));
        let second = local.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let _ = match self.detail {
            Detail::Year => write!(out, "{year:04}"),
            Detail::Month => write!(out, "{year:04}-{month:02}"),
            Detail::Day => write!(out, "{year:04}-{month:02}-{day:02}"),
            Detail::Minute => write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}"),
            Detail::Second => write!(
                out,
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
            ),
            Detail::Milli => write!(
                out,
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000"
            ),
        };
        self.write_zone(out);
    }

    /// Writes the time zone. Dates have none.
    fn write_zone(self, out: &mut String) {
        use std::fmt::Write;
        let is_date = matches!(self.detail, Detail::Year | Detail::Month | Detail::Day);
        let _ = match self.zone.filter(|_| !is_date) {
            None => Ok(()),
            Some(0) => write!(out, "Z"),
            Some(zone) => write!(
                out,
                "{}{:02}:{:02}",
                if zone < 0 { '-' } else { '+' },
                zone.abs() / 60,
                zone.abs() % 60
            ),
        };
    }

    pub(super) fn text(self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    pub(super) fn later(self, seconds: i64) -> Moment {
        Moment {
            seconds: self.seconds + seconds,
            ..self
        }
    }
}

pub(super) const UNIX_DAYS: i64 = 719_162;

pub(super) fn date_of(unix_days: i64) -> CalendarDate {
    time::date_after(unix_days + UNIX_DAYS)
}

pub(super) fn unix_day(year: i64, month: i64, day: i64) -> i64 {
    time::days_before(year, month, day) - UNIX_DAYS
}

/// The position and the properties of a composition, which are known before its facts are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompositionContext {
    pub seed: u64,
    pub ehr: usize,
    pub index: usize,
    pub seconds: i64,
    /// Whether the composition has a systolic pressure of 160 or more.
    pub is_hypertensive: bool,
    /// Whether the composition has [`RARE_CODE`].
    pub is_rare: bool,
}
