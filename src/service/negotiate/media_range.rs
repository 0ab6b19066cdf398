//! The choice between offered media types by the Accept header (RFC 9110 §12.5.1).

use super::{Format, NDJSON, media_type, parameter};
use crate::rm::number;
use crate::service::Request;
use crate::service::error::Failure;

/// Returns the best of the offered media types for the Accept header (RFC 9110 §12.5.1), the first
/// one if there is no such header.
///
/// The most specific range that matches an offer decides its quality; quality 0 excludes it. Of
/// equal offers the one whose range comes first in the header wins, then the one that is offered
/// first.
///
/// # Errors
/// 406 if every offer is excluded or matched by no range.
pub(crate) fn choose<'o>(request: &Request, offered: &[&'o str]) -> Result<&'o str, Failure> {
    let first = offered.first().copied().unwrap_or_default();
    let Some(accept) = request.header("Accept").filter(|a| !a.is_empty()) else {
        return Ok(first);
    };
    let ranges: Vec<MediaRange> = accept.split(',').map(MediaRange::parse).collect();
    best_offer(&ranges, offered).ok_or_else(|| {
        let offered = offered.join(", ");
        let message = format!("none of the accepted types can be served; offered: {offered}");
        Failure::new(406, message)
    })
}

fn best_offer<'o>(ranges: &[MediaRange], offered: &[&'o str]) -> Option<&'o str> {
    let mut best: Option<(&str, f64, usize)> = None;
    for offer in offered {
        let matching = ranges
            .iter()
            .enumerate()
            .filter_map(|(place, range)| Some((range.specificity(offer)?, place, range.quality)));
        // Of equally specific ranges the first one decides: `max_by_key` would take the last.
        let Some((_, place, quality)) =
            matching.reduce(|kept, next| if next.0 > kept.0 { next } else { kept })
        else {
            continue;
        };
        if quality > 0.0 && best.is_none_or(|(_, q, p)| quality > q || (quality == q && place < p))
        {
            best = Some((offer, quality, place));
        }
    }
    best.map(|(offer, ..)| offer)
}

/// A media range of an Accept header (RFC 9110 §12.5.1).
struct MediaRange {
    /// Type and subtype in lower case, each possibly `*`.
    name: String,
    /// The quality value, from 0 (not acceptable) to 1.
    quality: f64,
}

impl MediaRange {
    /// Parses one range. A quality that is not a number counts as 1.
    fn parse(range: &str) -> MediaRange {
        let name = match media_type(range) {
            alias if NDJSON.contains(&alias.as_str()) => NDJSON[0].to_owned(),
            other => Format::from_media_type(&other)
                .map_or(other, |format| format.media_type().to_owned()),
        };
        let quality = parameter(range, "q")
            .and_then(number::parse)
            .filter(|q| (0.0..=1.0).contains(q))
            .unwrap_or(1.0);
        MediaRange { name, quality }
    }

    /// Returns the specificity of the range for an offered media type: 2 for its name, 1 for
    /// `type/*`, 0 for `*/*`; `None` if it does not match.
    fn specificity(&self, offer: &str) -> Option<u8> {
        let name = self.name.as_str();
        if name == offer {
            return Some(2);
        }
        match name.strip_suffix("/*") {
            Some("*") => Some(0),
            Some(group) => offer
                .strip_prefix(group)
                .is_some_and(|rest| rest.starts_with('/'))
                .then_some(1),
            None => None,
        }
    }
}
