//! Columns of date-times: positions in time, and the forms of their texts.

use super::column::{Dictionary, push};
use super::sparse::SparseValues;
use super::zone_map::ZoneMap;
use aqlite_rm::time::{Temporal, TemporalKind, TimeForm};

/// A column of date-times.
///
/// Most texts are written from their position in time and their form, and are in no dictionary:
/// each document has times of its own, which would be most texts of a batch.
#[derive(Clone, Debug, Default)]
pub struct DateTimeColumn {
    /// The forms of the values, at most [`MAX_FORMS`].
    palette: Vec<TimeForm>,
    /// For each value the index of its form; [`IN_DICTIONARY`] if its text is in the dictionary.
    forms: Vec<u8>,
    /// The dictionary numbers of the texts that [`IN_DICTIONARY`] marks.
    text_ids: SparseValues<u32>,
    /// For each value the encoded start of the interval that it covers ([`encode_start`]).
    starts: Vec<i64>,
}

/// The parts of a column of date-times as files store them.
#[derive(Debug, PartialEq)]
pub(super) struct MomentParts {
    /// The numbers of the forms ([`TimeForm::number`]).
    pub palette: Vec<u32>,
    pub forms: Vec<u8>,
    /// The rows whose texts are in the dictionary.
    pub text_rows: Vec<u32>,
    /// The dictionary numbers of the texts of these rows.
    pub text_ids: Vec<u32>,
    /// The encoded starts of all rows ([`encode_start`]).
    pub starts: Vec<i64>,
}

/// A date-time that is written from its position in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeText {
    micros: i64,
    form: TimeForm,
}

/// The text of a value of a column of date-times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MomentText {
    /// A text that is written from its position in time.
    Written(TimeText),
    /// Any other text, by its number in the dictionary.
    InDictionary(u32),
}

/// The mark of a value whose text is in the dictionary.
const IN_DICTIONARY: u8 = u8::MAX;

/// The maximum number of forms of a column. Texts of further forms are in the dictionary.
const MAX_FORMS: usize = IN_DICTIONARY as usize;

/// The encoded start of a text that is no date-time.
pub(super) const NO_MOMENT: i64 = i64::MIN;

/// Encodes the start of the interval that a date-time covers: twice its microseconds since
/// 0001-01-01T00:00Z. One is added unless the date-time is exactly one microsecond, which a partial
/// one and one with a finer fraction are not. [`NO_MOMENT`] encodes a text that is no date-time.
fn encode_start(time: Option<Temporal>) -> i64 {
    time.map_or(NO_MOMENT, |time| {
        time.earliest << 1 | i64::from(!is_point(time))
    })
}

/// Returns whether a date-time is exactly one microsecond.
fn is_point(time: Temporal) -> bool {
    time == Temporal::from_micros(time.earliest)
}

impl TimeText {
    /// Returns the time in microseconds since 0001-01-01T00:00Z; for a text without seconds the
    /// first one of its minute.
    pub fn micros(self) -> i64 {
        self.micros
    }

    /// Returns the time zone of the text in minutes east of UTC; `None` if the text has none.
    pub fn offset(self) -> Option<i16> {
        self.form.offset()
    }

    /// Returns whether the text has seconds and a time zone, and no other digits than a host would
    /// write ([`TimeForm::is_plain`]).
    pub fn is_plain(self) -> bool {
        self.form.is_plain(self.micros)
    }

    /// Returns the text.
    pub fn text(self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    /// Appends the text.
    pub fn write(self, out: &mut String) {
        self.form.write(self.micros, out);
    }
}

impl MomentParts {
    /// Creates the parts of a column whose texts all are in the dictionary.
    pub fn in_dictionary(text_ids: Vec<u32>, starts: Vec<i64>) -> MomentParts {
        MomentParts {
            palette: Vec::new(),
            forms: vec![IN_DICTIONARY; text_ids.len()],
            text_rows: (0..text_ids.len() as u32).collect(),
            text_ids,
            starts,
        }
    }
}

impl DateTimeColumn {
    /// Creates a column from its parts.
    ///
    /// Returns `None` if no column has these parts, because the stored data are damaged: for lists of
    /// different lengths, an unknown form, a form that does not fit the precision of its time, and
    /// texts that do not belong to the marked rows.
    pub(super) fn from_parts(parts: MomentParts) -> Option<DateTimeColumn> {
        let form = |number: &u32| TimeForm::from_number(u16::try_from(*number).ok()?);
        let palette = parts.palette.iter().map(form);
        if parts.text_rows.len() != parts.text_ids.len() {
            return None;
        }
        let texts = parts.text_rows.into_iter().zip(parts.text_ids).collect();
        let marks = parts.forms.iter().map(|form| *form == IN_DICTIONARY);
        let column = DateTimeColumn {
            palette: palette.collect::<Option<_>>()?,
            text_ids: SparseValues::from_entries(texts, marks)?,
            forms: parts.forms,
            starts: parts.starts,
        };
        let mut rows = 0..column.forms.len() as u32;
        let is_sound =
            column.forms.len() == column.starts.len() && rows.all(|row| column.text(row).is_some());
        is_sound.then_some(column)
    }

    /// Returns the parts of the column. `new_id` maps dictionary numbers to those of the file.
    pub(super) fn parts(&self, new_id: impl FnMut(u32) -> u32) -> MomentParts {
        let palette = self.palette.iter();
        MomentParts {
            palette: palette.map(|form| u32::from(form.number())).collect(),
            forms: self.forms.clone(),
            text_rows: self.text_ids.iter().map(|(row, _)| row).collect(),
            text_ids: self.text_ids().map(new_id).collect(),
            starts: self.starts.clone(),
        }
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the dictionary numbers of the texts that are not written from their position.
    pub(super) fn text_ids(&self) -> impl Iterator<Item = u32> {
        self.text_ids.iter().map(|(_, id)| *id)
    }

    pub(super) fn push(&mut self, text: &str, dictionary: &mut Dictionary) {
        let time = Temporal::parse(TemporalKind::DateTime, text);
        let form = time.and_then(|time| TimeForm::of(text, time.earliest));
        let form = form.and_then(|form| self.index_of(form));
        if form.is_none() {
            let row = self.len() as u32;
            self.text_ids.push(row, dictionary.number_of(text));
        }
        push(&mut self.forms, form.unwrap_or(IN_DICTIONARY));
        push(&mut self.starts, encode_start(time));
    }

    /// Returns the index of a form, which is added if it is new; `None` if there are too many.
    fn index_of(&mut self, form: TimeForm) -> Option<u8> {
        let known = self.palette.iter().position(|known| *known == form);
        let index = known.unwrap_or(self.palette.len());
        if index == self.palette.len() && index < MAX_FORMS {
            self.palette.push(form);
        }
        u8::try_from(index)
            .ok()
            .filter(|index| *index != IN_DICTIONARY)
    }

    /// Returns the text of a row.
    pub fn text(&self, row: u32) -> Option<MomentText> {
        match *self.forms.get(row as usize)? {
            IN_DICTIONARY => Some(MomentText::InDictionary(*self.text_ids.get(row)?)),
            form => {
                let form = *self.palette.get(usize::from(form))?;
                let micros = self.start(row)?;
                // A time with seconds is a point, and one without them is not. Other parts are
                // damaged.
                let is_sound = form.has_seconds() == self.point(row).is_some();
                is_sound.then_some(MomentText::Written(TimeText { micros, form }))
            }
        }
    }

    /// Returns the point in time of a row, in microseconds since 0001-01-01T00:00Z; `None` if the
    /// value is no exact point in time.
    pub fn point(&self, row: u32) -> Option<i64> {
        let start = *self.starts.get(row as usize)?;
        // The lowest bit marks a partial or finer time. `NO_MOMENT` is even, so it needs its own
        // test.
        (start & 1 == 0 && start != NO_MOMENT).then_some(start >> 1)
    }

    /// Returns the start of the date-time in a row, which can be partial, in microseconds since
    /// 0001-01-01T00:00Z.
    pub fn start(&self, row: u32) -> Option<i64> {
        let start = *self.starts.get(row as usize)?;
        // The arithmetic shift drops the mark and keeps the sign of a time before year 1 in UTC.
        (start != NO_MOMENT).then_some(start >> 1)
    }

    /// Returns the zone map of the column.
    pub(super) fn zone_map(&self) -> Option<ZoneMap> {
        ZoneMap::of_date_times((0..self.len() as u32).map(|row| self.start(row)))
    }

    /// Returns an estimate of the bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.forms.capacity() + self.text_ids.bytes() + self.starts.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 7] = [
        "2020-02-01T10:30:00Z",
        "2020-02-01T10:30Z",
        "2020-02",
        "2020-02-01T11:30:00.0000001+01:00",
        "soon",
        "0001-01-01T00:00:00+14:00",
        "20200201T103000Z",
    ];

    fn column() -> (DateTimeColumn, Dictionary) {
        let (mut column, mut dictionary) = (DateTimeColumn::default(), Dictionary::default());
        TEXTS
            .iter()
            .for_each(|text| column.push(text, &mut dictionary));
        (column, dictionary)
    }

    #[test]
    fn date_times_have_their_start() {
        let (column, _) = column();
        for (row, text) in (0..).zip(TEXTS) {
            let parsed = Temporal::parse(TemporalKind::DateTime, text);
            assert_eq!(column.start(row), parsed.map(|t| t.earliest), "{text}");
            let is_point = |t: &Temporal| t.latest == t.earliest && t.finer == 0;
            let point = parsed.filter(is_point).map(|t| t.earliest);
            assert_eq!(column.point(row), point, "{text}");
        }
        assert!(column.point(0).is_some() && column.start(1) == column.point(0));
    }

    #[test]
    fn texts_come_back_and_only_unusual_ones_are_in_the_dictionary() {
        let (column, dictionary) = column();
        for (row, expected) in (0..).zip(TEXTS) {
            let mut out = String::new();
            match column.text(row) {
                Some(MomentText::Written(time)) => time.write(&mut out),
                Some(MomentText::InDictionary(id)) => out.push_str(dictionary.texts().text(id)),
                None => panic!("row {row} has no text"),
            }
            assert_eq!(out, expected);
        }
        assert_eq!(dictionary.len(), 4);
        assert_eq!(column.text_ids().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn forms_beyond_the_limit_are_in_the_dictionary() {
        let (mut column, mut dictionary) = (DateTimeColumn::default(), Dictionary::default());
        let offsets = (0..14).flat_map(|hour| (0..60).map(move |minute| (hour, minute)));
        let texts =
            offsets.map(|(hour, minute)| format!("2020-02-01T00:00:00+{hour:02}:{minute:02}"));
        let texts: Vec<String> = texts.take(MAX_FORMS + 20).collect();
        for text in texts.iter().chain(&texts) {
            column.push(text, &mut dictionary);
        }
        assert_eq!(dictionary.len(), 20);
        for (row, text) in (0..).zip(texts.iter().chain(&texts)) {
            let found = match column.text(row) {
                Some(MomentText::Written(time)) => time.text(),
                Some(MomentText::InDictionary(id)) => dictionary.texts().text(id).to_owned(),
                None => panic!("row {row} has no text"),
            };
            assert_eq!(found, *text);
        }
    }

    #[test]
    fn parts_that_do_not_fit_together_are_refused() {
        let (column, _) = column();
        let is_sound = |change: fn(&mut MomentParts)| {
            let mut parts = column.parts(|id| id);
            change(&mut parts);
            DateTimeColumn::from_parts(parts).is_some()
        };
        assert!(is_sound(|_| ()));
        assert!(
            !is_sound(|parts| parts.starts.truncate(3)),
            "a time is absent"
        );
        assert!(
            !is_sound(|parts| parts.palette.truncate(1)),
            "a form is absent"
        );
        assert!(
            !is_sound(|parts| parts.palette[0] = 16),
            "no form has this number"
        );
        assert!(
            !is_sound(|parts| parts.forms[1] = 0),
            "a form with seconds needs a point in time"
        );
        assert!(
            !is_sound(|parts| parts.forms[0] = 1),
            "a form without seconds needs a minute"
        );
        assert!(
            !is_sound(|parts| parts.text_rows[0] = 0),
            "the row has a form"
        );
        assert!(
            !is_sound(|parts| parts.text_rows.swap(0, 1)),
            "rows must ascend"
        );
        assert!(
            !is_sound(|parts| parts.text_ids.truncate(3)),
            "a text is absent"
        );
    }
}
