//! The time of an event whose offset from the origin of its history is constrained.

use super::super::leaf;
use super::super::tree::{Interval, Node};
use super::{Draft, Generator, constrained};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::time::{self, Temporal, TemporalKind};

impl Generator<'_> {
    /// Moves the time of an event behind the origin by a permitted offset. Both are the time of the
    /// example otherwise, also if the moved time is in no year from 1 to 9999.
    pub(super) fn put_offset(&self, event: &mut Draft, node: Option<&Node>) {
        let function = node.and_then(|node| node.attribute("offset"));
        let ranges = function.and_then(leaf::offsets).unwrap_or_default();
        let Some(range) = ranges.first() else { return };
        if constrained(node, Attr::TIME).is_some() {
            return;
        }
        let origin = Temporal::parse(TemporalKind::DateTime, self.now);
        let moved = origin
            .zip(offset_in(range))
            .and_then(|(origin, offset)| time::format_utc(origin.earliest.saturating_add(offset)));
        if let Some(time) = moved {
            let time = Draft::holding(Cls::DV_DATE_TIME, Attr::VALUE, time);
            event.put(Attr::TIME, time);
        }
    }
}

/// Returns an offset in microseconds that a range contains: a limit, or a second inside of it.
fn offset_in(range: &Interval<String>) -> Option<i64> {
    const SECOND: i64 = 1_000_000;
    let limit = |limit: &Option<String>, is_included: bool, inside: i64| {
        let limit = Temporal::parse(TemporalKind::Duration, limit.as_deref()?)?;
        let inside = if is_included { 0 } else { inside };
        Some(limit.earliest.saturating_add(inside))
    };
    limit(&range.lower, range.lower_included, SECOND)
        .or_else(|| limit(&range.upper, range.upper_included, -SECOND))
}
