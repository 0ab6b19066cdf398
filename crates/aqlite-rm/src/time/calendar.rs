//! Days of the proleptic Gregorian calendar, counted from 0001-01-01.

/// Returns the days from 0001-01-01 to a date of the proleptic Gregorian calendar.
pub const fn days_before(year: i64, month: i64, day: i64) -> i64 {
    // The year starts in March here, so that the leap day is its last day.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    // Five months from March or from August have 153 days. The formula yields the days before a
    // month.
    let of_year = (153 * month + 2) / 5 + day - 1;
    // 306 is the number of days from 1 March to the end of the year.
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 306
}

/// A date of the proleptic Gregorian calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CalendarDate {
    /// The year; 0 is the year before year 1.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
}

/// Returns the date `days` days after 0001-01-01.
pub fn date_after(days: i64) -> CalendarDate {
    let days = days + 306;
    // The Gregorian calendar repeats after 400 years, which have 146,097 days.
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    // The terms remove the leap days of 4, of 100 and of 400 years before the division by 365.
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = year + era * 400;
    let (year, month) = match month < 10 {
        true => (year, month + 3),
        false => (year + 1, month - 9),
    };
    CalendarDate { year, month, day }
}

/// Returns the number of days of a month.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
