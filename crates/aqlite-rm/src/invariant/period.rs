//! The invariant Period_consistency of HISTORY.

use crate::class::{Attr, Cls};
use crate::quantity::temporal;
use crate::time::{DurationParts, Parts, Temporal, TemporalKind};
use crate::tree::NodeRef;

const DAY: i64 = 86_400_000_000;

/// The distance of one period, in microseconds.
#[derive(Clone, Copy)]
struct Period {
    length: i64,
    /// The most by which a multiple of `length` may differ from the time that the calendar shows.
    /// Zero for periods without years and months.
    slack: i64,
}

/// Returns whether the offset of each event is a multiple of the period of the history.
///
/// A date-time without all components is an interval, which must contain a multiple. Offsets that
/// cannot be computed are consistent: malformed texts, and one time with a zone and one without.
pub(super) fn is_consistent(history: NodeRef<'_>) -> bool {
    let period = history.get(Attr::PERIOD).and_then(Period::read);
    let (Some(period), Some(origin)) = (period, history.get(Attr::ORIGIN)) else {
        return true;
    };
    let times = history
        .values(Attr::EVENTS)
        .filter_map(|event| event.get(Attr::TIME));
    times
        .filter_map(|time| Offset::between(origin, time))
        .all(|offset| period.has_multiple_in(offset))
}

/// The offsets that an event may have, in microseconds.
#[derive(Clone, Copy)]
struct Offset {
    least: i64,
    most: i64,
}

impl Offset {
    fn between(origin: NodeRef<'_>, time: NodeRef<'_>) -> Option<Offset> {
        let zone = |node: NodeRef<'_>| {
            let parts = Parts::parse(TemporalKind::DateTime, node.text_at(Attr::VALUE)?)?;
            Some(parts.zone.is_some())
        };
        if zone(origin)? != zone(time)? {
            return None;
        }
        let (origin, time) = (date_time(origin)?, date_time(time)?);
        // Digits beyond microseconds are not part of the interval.
        let is_exact = origin.finer == time.finer;
        is_exact.then_some(Offset {
            least: time.earliest.checked_sub(origin.latest)?,
            most: time.latest.checked_sub(origin.earliest)?,
        })
    }
}

fn date_time(node: NodeRef<'_>) -> Option<Temporal> {
    temporal(node).filter(|_| node.class() == Cls::DV_DATE_TIME)
}

impl Period {
    /// Reads a duration. Returns `None` if it is malformed or zero.
    fn read(node: NodeRef<'_>) -> Option<Period> {
        let parts = DurationParts::parse(node.text_at(Attr::VALUE)?)?;
        let months =
            i128::from(parts.years.unwrap_or(0)) * 12 + i128::from(parts.months.unwrap_or(0));
        let rest = DurationParts {
            years: None,
            months: None,
            ..parts
        };
        // The Gregorian calendar repeats after 400 years: 4,800 months of 146,097 days.
        let calendar = months * 146_097 * i128::from(DAY) / 4_800;
        let length = calendar + i128::from(rest.temporal().earliest.checked_abs()?);
        let length = i64::try_from(length).ok().filter(|length| *length > 0)?;
        // The lengths of months, leap years, and the ends of short months together move a date by
        // less than 8 days from that many average months.
        let slack = if months > 0 { 8 * DAY } else { 0 };
        Some(Period { length, slack })
    }

    fn has_multiple_in(self, offset: Offset) -> bool {
        let contains_zero = offset.least <= 0 && offset.most >= 0;
        let least = offset.least.saturating_sub(self.slack);
        let most = offset.most.saturating_add(self.slack);
        let first = least.div_euclid(self.length) + i64::from(least.rem_euclid(self.length) > 0);
        let last = most.div_euclid(self.length);
        // The slack does not apply to the origin itself.
        contains_zero || first.max(1) <= last || first <= last.min(-1)
    }
}
