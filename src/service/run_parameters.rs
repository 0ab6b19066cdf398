//! The parameters of a run of a guide: time, zone, language, trace.

use super::call::Call;
use super::error::{Failure, shortened};
use super::negotiate::parameter;
use super::time::with_plus;
use crate::gdl::time::{Clock, Moment, Precision, Zone};
use crate::gdl::{CompiledGuide, Guide, Options};

/// The parameters of a run.
pub(super) struct RunParameters<'c> {
    /// The time of evaluation, in the zone.
    pub now: Moment,
    zone: Option<Box<dyn Zone + 'c>>,
    /// The language of texts.
    pub language: String,
    /// The options that the request names.
    pub options: Options,
}

/// A time zone of the host.
struct HostZone<'c, 'a> {
    call: &'c Call<'a>,
    name: &'c str,
}

impl Zone for HostZone<'_, '_> {
    fn offset(&self, millis: i64) -> Option<i32> {
        self.call.offset(self.name, millis)
    }
}

impl<'c> RunParameters<'c> {
    /// Returns the time of evaluation in its zone.
    pub fn clock(&self) -> Clock<'_> {
        self.zone.as_ref().map_or(Clock::from(self.now), |zone| {
            Clock::in_zone(self.now, zone.as_ref())
        })
    }

    /// Reads the parameters of a request: `trace=true`, `language=de`,
    /// `now=2024-02-29T12:00:00+01:00`, `zone=Europe/Stockholm`. The defaults are: no trace, the
    /// first language of Accept-Language that the guide has, the clock, the offset of `now`. A
    /// `now` without offset is in the zone.
    pub fn of<'a: 'c>(
        call: &'c Call<'a>,
        guide: &CompiledGuide,
    ) -> Result<RunParameters<'c>, Failure> {
        let zone = zone_of(call)?;
        let now = now_of(call, zone.as_deref())?;
        let guide = guide.guide();
        let language = call.request.query_value("language");
        let language = language.map(|tag| known_language(tag, guide).unwrap_or(tag));
        let language = language.or_else(|| accepted_language(call, guide));
        let options = Options {
            trace: call.request.query_flag("trace")?,
            convert_units: call.request.query_flag("convert_units")?,
            ..Options::default()
        };
        Ok(RunParameters {
            now,
            zone,
            language: language.unwrap_or(&guide.original_language).to_owned(),
            options,
        })
    }
}

/// Returns the language of Accept-Language with the greatest weight that a guide has (RFC 9110,
/// section 12.5.4). Of equal weights the first is chosen.
fn accepted_language<'g>(call: &Call<'_>, guide: &'g Guide) -> Option<&'g str> {
    let accepted = call.request.header("Accept-Language").unwrap_or_default();
    let mut best: Option<(f64, &str)> = None;
    for part in accepted.split(',') {
        let (tag, weight) = match part.split_once(';') {
            Some((tag, _)) => (tag, parameter(part, "q").unwrap_or_default()),
            None => (part, "1"),
        };
        let weight = weight.parse::<f64>().ok();
        let weight = weight.filter(|w| (0.0..=1.0).contains(w)).unwrap_or(0.0);
        if weight > best.map_or(0.0, |(w, _)| w) {
            let known = known_language(tag.trim(), guide);
            best = known.map(|language| (weight, language)).or(best);
        }
    }
    best.map(|(_, language)| language)
}

/// Returns the language of a guide that a tag names. Without the tag itself, parts are removed from
/// its end: `de-CH` falls back to `de` (RFC 4647, section 3.4).
fn known_language<'g>(tag: &str, guide: &'g Guide) -> Option<&'g str> {
    let mut tag = tag;
    loop {
        let mut languages = guide.terms.iter().map(|terms| terms.language.as_str());
        if let Some(known) = languages.find(|known| known.eq_ignore_ascii_case(tag)) {
            return Some(known);
        }
        tag = tag.rsplit_once('-')?.0;
    }
}

/// Returns the time zone of the parameter `zone`, if the request has it.
///
/// # Errors
/// 400 for a zone that the host does not know.
fn zone_of<'c, 'a: 'c>(call: &'c Call<'a>) -> Result<Option<Box<dyn Zone + 'c>>, Failure> {
    let Some(name) = call.request.query_value("zone") else {
        return Ok(None);
    };
    match call.offset(name, call.now / 1000) {
        Some(_) => Ok(Some(Box::new(HostZone { call, name }))),
        None => {
            let name = shortened(name);
            Err(Failure::bad_request(format!(
                "the zone `{name}` is not known here: expected one of the IANA database, such as `Europe/Stockholm`"
            )))
        }
    }
}

/// Returns the time of the parameter `now`, or else that of the request.
///
/// # Errors
/// 400 for a text that is no date-time, and for a time at which the zone has no offset.
fn now_of(call: &Call<'_>, zone: Option<&dyn Zone>) -> Result<Moment, Failure> {
    let sent = call.request.query_value("now").map(with_plus);
    let read = match (sent.as_deref(), zone) {
        (None, _) => Some(Moment::from_millis(call.now / 1000, 0)),
        (Some(text), Some(zone)) => Moment::parse_in_zone(text, zone),
        (Some(text), None) => Moment::parse(text, 0),
    };
    let is_dated = |now: &Moment| now.precision != Precision::Time;
    let now = read.filter(is_dated).ok_or_else(|| {
        Failure::bad_request(
            "`now` is not a date-time: expected one such as `2024-02-29T12:00:00+01:00`",
        )
    })?;
    let without_offset = || {
        Failure::bad_request("the zone has no offset known here at `now`: expected another time")
    };
    zone.map_or(Some(now), |zone| now.in_zone(zone))
        .ok_or_else(without_offset)
}
