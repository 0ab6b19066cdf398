//! The parameters of a run of a guide: time, zone, language, trace.

use super::call::Call;
use super::error::{Failure, shortened};
use crate::gdl::time::{Clock, Moment, Precision, Zone};
use crate::gdl::{CompiledGuide, Guide, Options};

/// The parameters of a run.
pub(super) struct RunParameters<'c> {
    /// The time of evaluation.
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
    fn offset(&self, millis: i64) -> i32 {
        self.call.offset(self.name, millis).unwrap_or(0)
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
        let language = call.request.query_value("language");
        let language = language.or_else(|| accepted_language(call, guide.guide()));
        let is_true = |name: &str| call.request.query_value(name) == Some("true");
        let options = Options {
            trace: is_true("trace"),
            convert_units: is_true("convert_units"),
            ..Options::default()
        };
        Ok(RunParameters {
            now,
            zone,
            language: language
                .unwrap_or(&guide.guide().original_language)
                .to_owned(),
            options,
        })
    }
}

/// Returns the first language of Accept-Language that a guide has.
fn accepted_language<'c>(call: &Call<'c>, guide: &Guide) -> Option<&'c str> {
    let accepted = call.request.header("Accept-Language").unwrap_or_default();
    let known = |language: &&str| {
        let mut terms = guide.terms.iter();
        terms.any(|t| t.language.eq_ignore_ascii_case(language))
    };
    accepted
        .split(',')
        .map(|part| part.split([';', '-']).next().unwrap_or_default().trim())
        .find(known)
}

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

fn now_of(call: &Call<'_>, zone: Option<&dyn Zone>) -> Result<Moment, Failure> {
    let Some(text) = call.request.query_value("now") else {
        return Ok(Moment::from_millis(call.now / 1000, 0));
    };
    let read =
        |offset: i32| Moment::parse(text, offset).filter(|now| now.precision != Precision::Time);
    let now = read(0).ok_or_else(|| {
        Failure::bad_request(
            "`now` is not a date-time: expected one such as `2024-02-29T12:00:00+01:00`",
        )
    })?;
    Ok(zone
        // The offset at the time as if it were UTC: exact except within hours of a change of the
        // offset.
        .and_then(|zone| read(zone.offset(now.millis)))
        .unwrap_or(now))
}
