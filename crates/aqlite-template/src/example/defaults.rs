//! Default values of examples, for attributes that neither the template nor the class constrains.

use super::Draft;
use super::Generator;
use crate::leaf::split_zone;
use aqlite_rm::class::{Attr, AttrDef, Cls};
use aqlite_rm::time::{Temporal, TemporalKind};

/// Filler text without language or meaning.
pub(super) const TEXT: &str = "Lorem ipsum";

/// The release of the Reference Model in examples.
pub(super) const RM_VERSION: &str = "1.1.0";

/// The concrete classes to use for abstract ones. The first that fits is used.
pub(super) const PREFERRED: [Cls; 12] = [
    Cls::POINT_EVENT,
    Cls::ITEM_TREE,
    Cls::ELEMENT,
    Cls::DV_TEXT,
    Cls::DV_COUNT,
    Cls::PARTY_IDENTIFIED,
    Cls::HIER_OBJECT_ID,
    Cls::EVALUATION,
    Cls::PERSON,
    Cls::DV_DATE_TIME,
    Cls::DV_PARSABLE,
    Cls::CLUSTER,
];

/// Default codes of coded attributes: attribute, terminology, code.
const CODES: [(Attr, &str, &str); 17] = [
    (Attr::ENCODING, "IANA_character-sets", "UTF-8"),
    (Attr::CHARSET, "IANA_character-sets", "UTF-8"),
    (Attr::MEDIA_TYPE, "IANA_media-types", "image/png"),
    (
        Attr::COMPRESSION_ALGORITHM,
        "openehr_compression_algorithms",
        "other",
    ),
    (
        Attr::INTEGRITY_CHECK_ALGORITHM,
        "openehr_integrity_check_algorithms",
        "SHA-256",
    ),
    (Attr::NORMAL_STATUS, "openehr_normal_statuses", "N"),
    (Attr::CATEGORY, "openehr", "433"),
    (Attr::SETTING, "openehr", "238"),
    (Attr::NULL_FLAVOUR, "openehr", "253"),
    (Attr::CURRENT_STATE, "openehr", "532"),
    (Attr::TRANSITION, "openehr", "548"),
    (Attr::MATH_FUNCTION, "openehr", "146"),
    (Attr::RELATIONSHIP, "openehr", "253"),
    (Attr::PURPOSE, "openehr", "669"),
    (Attr::MODE, "openehr", "219"),
    (Attr::CHANGE_TYPE, "openehr", "249"),
    (Attr::LIFECYCLE_STATE, "openehr", "532"),
];

/// Countries of languages whose code is not a country code: language, country.
const COUNTRIES: [(&str, &str); 14] = [
    ("en", "GB"),
    ("sv", "SE"),
    ("da", "DK"),
    ("nb", "NO"),
    ("nn", "NO"),
    ("ca", "ES"),
    ("sl", "SI"),
    ("cs", "CZ"),
    ("ja", "JP"),
    ("zh", "CN"),
    ("el", "GR"),
    ("uk", "UA"),
    ("et", "EE"),
    ("ar", "SA"),
];

/// Returns terminology and code for an attribute. `at` is the attribute of the enclosing coded
/// text, if any.
pub(super) fn code(at: Attr, language: &str) -> (String, String) {
    let (terminology, code) = match at {
        Attr::LANGUAGE => ("ISO_639-1", language.to_owned()),
        Attr::TERRITORY => ("ISO_3166-1", country(language)),
        _ => match CODES.iter().find(|(attr, _, _)| *attr == at) {
            Some((_, terminology, code)) => (*terminology, (*code).to_owned()),
            None => ("local_terms", "example".to_owned()),
        },
    };
    (terminology.to_owned(), code)
}

fn country(language: &str) -> String {
    let (main, region) = language.split_once(['-', '_']).unwrap_or((language, ""));
    let known = |code: &str| aqlite_rm::terminology::COUNTRIES.contains(code);
    let spoken = COUNTRIES
        .iter()
        .find(|(l, _)| l.eq_ignore_ascii_case(main))
        .map(|(_, country)| *country);
    // A region in the language tag comes first, then the table. The language code is the last
    // resort, because it is often that of the country too.
    [Some(region), spoken, Some(main)]
        .into_iter()
        .flatten()
        .find(|c| known(c))
        .unwrap_or("GB")
        .to_ascii_uppercase()
}

/// Creates a leaf for an attribute of a class.
pub(super) fn leaf(state: &Generator<'_>, owner: Cls, def: &AttrDef) -> Draft {
    let text = match def.ty {
        Cls::BOOLEAN => "true".to_owned(),
        Cls::INTEGER if def.attr == Attr::SIZE => "0".to_owned(),
        // The upper limit of an interval must not be below the lower one.
        Cls::INTEGER | Cls::INTEGER64 | Cls::REAL => if state.limit == Some(super::Limit::Upper) {
            "2"
        } else {
            "1"
        }
        .to_owned(),
        Cls::CHARACTER => "=".to_owned(),
        // The word `Example` in base64.
        Cls::OCTETS => "RXhhbXBsZQ==".to_owned(),
        _ => text(state, owner, def.attr),
    };
    Draft::leaf(def.ty, text)
}

fn text(state: &Generator<'_>, owner: Cls, attr: Attr) -> String {
    let text = match (owner, attr) {
        (_, Attr::VALUE) if TemporalKind::for_class(owner).is_some() => {
            return TemporalKind::for_class(owner)
                .and_then(|kind| times(kind, state.now, None).into_iter().next())
                .unwrap_or_default();
        }
        (Cls::DV_TEXT | Cls::DV_CODED_TEXT, Attr::VALUE) => state.label.unwrap_or(TEXT),
        (Cls::DV_EHR_URI, _) => "ehr:/example",
        (Cls::DV_URI, _) => "https://example.org/document",
        (_, Attr::FORMALISM) => "text/plain",
        (Cls::DV_IDENTIFIER, Attr::ID) => "12345",
        (Cls::PARTY_REF, Attr::TYPE) => "PERSON",
        (_, Attr::TYPE) if owner.is_a(Cls::OBJECT_REF) => "ANY",
        (_, Attr::NAMESPACE) => "local",
        (Cls::OBJECT_VERSION_ID, _) => "00000000-0000-4000-8000-000000000000::example.org::1",
        (_, Attr::VALUE) if owner.is_a(Cls::UID_BASED_ID) => "00000000-0000-4000-8000-000000000000",
        (Cls::TERMINOLOGY_ID, _) => "local",
        (Cls::DV_QUANTITY, Attr::UNITS) => "1",
        (_, Attr::ACTION_ARCHETYPE_ID) => "/.*/",
        (_, Attr::NAME) => "Jane Doe",
        _ => TEXT,
    };
    text.to_owned()
}

/// Candidate texts of durations.
const DURATIONS: [&str; 9] = [
    "PT1H", "P1D", "P1W", "P1M", "P1Y", "PT1M", "PT1S", "P0D", "PT0S",
];

/// The letters of the units of a duration with their seconds, the units of a clock first.
const UNITS: [(char, i64); 7] = [
    ('H', 3_600),
    ('M', 60),
    ('S', 1),
    ('D', 86_400),
    ('W', 7 * 86_400),
    // Months and years of the Gregorian calendar on average.
    ('M', 2_629_746),
    ('Y', 31_556_952),
];

/// Returns durations of one unit each near a limit: the number of units below it, and the next two.
/// Months and years have their average length.
pub(super) fn in_one_unit(limit: &str) -> Vec<String> {
    let limit = Temporal::parse(TemporalKind::Duration, limit);
    let Some(seconds) = limit.map(|limit| limit.earliest / 1_000_000) else {
        return Vec::new();
    };
    let units = UNITS.iter().enumerate();
    let near = units.flat_map(|(index, (letter, length))| {
        let front = if index < 3 { "PT" } else { "P" };
        let below = seconds / length;
        let numbers = [below, below + 1, below + 2, below - 1];
        let numbers = numbers.into_iter().filter(|number| *number >= 0);
        numbers.map(move |number| format!("{front}{number}{letter}"))
    });
    near.collect()
}

/// Splits a pattern of a temporal kind into the rule of the date and the rule of the time.
fn rules(kind: TemporalKind, pattern: &str) -> (&str, &str) {
    let pattern = pattern.split_once('/').map_or(pattern, |(first, _)| first);
    match pattern.split_once(['T', ' ']) {
        Some((day, clock)) => (day, clock),
        None if kind == TemporalKind::Time => ("", pattern),
        None => (pattern, ""),
    }
}

/// Returns candidate texts of a temporal kind for `now`, those that match the pattern first.
pub(super) fn times(kind: TemporalKind, now: &str, pattern: Option<&str>) -> Vec<String> {
    if kind == TemporalKind::Duration {
        return DURATIONS.map(str::to_owned).to_vec();
    }
    let (day, clock) = now.split_once('T').unwrap_or((now, "00:00:00Z"));
    let zone = clock
        .find(['Z', '+', '-'])
        .and_then(|at| clock.get(at..))
        .unwrap_or_default();
    // The first eight characters are hours, minutes and seconds.
    let clock = clock.get(..8).unwrap_or("00:00:00");
    let (day_rule, clock_rule) = rules(kind, pattern.unwrap_or_default());
    let date = allowed(day, day_rule, '-');
    let time = allowed(clock, split_zone(clock_rule).0, ':');
    // A fraction may follow the seconds only.
    let fraction = if time.len() == clock.len() {
        ".000"
    } else {
        ""
    };
    let endings = [
        zone.to_owned(),
        String::new(),
        format!("{fraction}{zone}"),
        fraction.to_owned(),
    ];
    match kind {
        TemporalKind::Date => vec![date],
        TemporalKind::Time => [1, 0, 3, 2]
            .iter()
            .filter_map(|i| endings.get(*i))
            .map(|ending| format!("{time}{ending}"))
            .collect(),
        _ if time.is_empty() || date.len() < day.len() => vec![date],
        _ => endings
            .iter()
            .map(|ending| format!("{date}T{time}{ending}"))
            .chain([date.clone()])
            .collect(),
    }
}

/// Returns the components before the first that the pattern prohibits with `X`.
fn allowed(text: &str, rule: &str, separator: char) -> String {
    let rules = rule
        .split(separator)
        .map(|r| r.starts_with(['X', 'x']))
        .chain(std::iter::repeat(false));
    let parts: Vec<&str> = text
        .split(separator)
        .zip(rules)
        .take_while(|(_, forbidden)| !forbidden)
        .map(|(part, _)| part)
        .collect();
    parts.join(&separator.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_patterns() {
        let now = "2026-11-20T09:30:00Z";
        for (kind, pattern, expected) in [
            (TemporalKind::Date, Some("yyyy-mm-XX"), "2026-11"),
            (TemporalKind::Date, None, "2026-11-20"),
            (TemporalKind::Time, Some("THH:MM:XX"), "09:30"),
            (TemporalKind::Time, Some("HH:MM±XX:XX"), "09:30:00"),
            (
                TemporalKind::DateTime,
                Some("yyyy-mm-ddTHH:MM:SS"),
                "2026-11-20T09:30:00Z",
            ),
            (
                TemporalKind::DateTime,
                Some("yyyy-??-XXTXX:XX:XX"),
                "2026-11",
            ),
        ] {
            assert_eq!(times(kind, now, pattern)[0], expected, "{pattern:?}");
        }
    }

    #[test]
    fn languages_have_a_country() {
        for (language, expected) in [
            ("en", "GB"),
            ("en-us", "US"),
            ("de", "DE"),
            ("sv", "SE"),
            ("xx", "GB"),
        ] {
            assert_eq!(country(language), expected);
        }
    }
}
