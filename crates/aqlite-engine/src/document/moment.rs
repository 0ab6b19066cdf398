//! Columns of date-times: positions in time, and the forms of their texts.

use super::column::{Dictionary, push};
use super::zone::Zone;
use aqlite_rm::time::{Temporal, TemporalKind, TimeForm};

/// A column of date-times.
///
/// Most texts are written from their position in time and their form, and are in no dictionary:
/// each document has times of its own, which would be most texts of a batch.
#[derive(Clone, Debug, Default)]
pub struct MomentColumn {
    /// For each value [`FORM`] with the number of its form, or the dictionary number of its text.
    texts: Vec<u32>,
    /// For each value twice its beginning, in microseconds since 0001-01-01T00:00Z. One is added
    /// for a partial date-time and for one with a finer fraction, which are no points in time.
    /// [`NO_MOMENT`] for a text that is no date-time.
    begins: Vec<i64>,
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
    Word(u32),
}

/// The bit that marks the number of a form. A dictionary has fewer texts, since each takes at least
/// 12 bytes.
const FORM: u32 = 1 << 31;

/// The mark of a text that is no date-time.
pub(super) const NO_MOMENT: i64 = i64::MIN;

impl TimeText {
    /// Returns the time in microseconds since 0001-01-01T00:00Z.
    pub fn micros(self) -> i64 {
        self.micros
    }

    /// Returns the time zone of the text in minutes east of UTC; `None` if the text has none.
    pub fn offset(self) -> Option<i16> {
        self.form.offset()
    }

    /// Appends the text.
    pub fn write(self, out: &mut String) {
        self.form.write(self.micros, out);
    }
}

impl MomentColumn {
    /// Creates a column from the results of [`MomentColumn::texts`] and [`MomentColumn::begins`].
    ///
    /// Returns `None` if no column has these results: for lists of different lengths, for the
    /// number of no form, and for a form without a point in time.
    pub(super) fn from_parts(texts: Vec<u32>, begins: Vec<i64>) -> Option<MomentColumn> {
        let column = MomentColumn { texts, begins };
        let is_whole = |row| column.text(row).is_some();
        let rows = column.texts.len();
        let is_sound = rows == column.begins.len() && (0..rows as u32).all(is_whole);
        is_sound.then_some(column)
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.begins.len()
    }

    /// Returns the encoded texts. `word` maps the dictionary numbers among them.
    pub(super) fn texts(&self, mut word: impl FnMut(u32) -> u32) -> Vec<u32> {
        let texts = self.texts.iter();
        texts
            .map(|text| if text & FORM > 0 { *text } else { word(*text) })
            .collect()
    }

    /// Returns the dictionary numbers of the texts that are not written from their position.
    pub(super) fn words(&self) -> impl Iterator<Item = u32> {
        self.texts.iter().copied().filter(|text| text & FORM == 0)
    }

    /// Returns the encoded positions in time.
    pub(super) fn begins(&self) -> &[i64] {
        &self.begins
    }

    pub(super) fn push(&mut self, text: &str, words: &mut Dictionary) {
        let time = Temporal::parse(TemporalKind::DateTime, text);
        let point = time.filter(|time| *time == Temporal::from_micros(time.earliest));
        let form = point.and_then(|point| TimeForm::of(text, point.earliest));
        let text = match form {
            Some(form) => FORM | u32::from(form.number()),
            None => words.number_of(text),
        };
        // The lowest bit is set if the text does not denote exactly one microsecond.
        let begin = |time: Temporal| time.earliest << 1 | i64::from(point.is_none());
        push(&mut self.texts, text);
        push(&mut self.begins, time.map_or(NO_MOMENT, begin));
    }

    /// Returns the text of a row.
    pub fn text(&self, row: u32) -> Option<MomentText> {
        let text = *self.texts.get(row as usize)?;
        if text & FORM == 0 {
            return Some(MomentText::Word(text));
        }
        let number = u16::try_from(text & !FORM).ok()?;
        Some(MomentText::Written(TimeText {
            micros: self.point(row)?,
            form: TimeForm::from_number(number)?,
        }))
    }

    /// Returns the point in time of a row, in microseconds since 0001-01-01T00:00Z; `None` if the
    /// value is no exact point in time.
    pub fn point(&self, row: u32) -> Option<i64> {
        let begin = *self.begins.get(row as usize)?;
        // The lowest bit marks a partial or finer time. `NO_MOMENT` is even, so it needs its own
        // test.
        (begin & 1 == 0 && begin != NO_MOMENT).then_some(begin >> 1)
    }

    /// Returns the beginning of the date-time in a row, which can be partial, in microseconds since
    /// 0001-01-01T00:00Z.
    pub fn begin(&self, row: u32) -> Option<i64> {
        let begin = *self.begins.get(row as usize)?;
        // The arithmetic shift drops the mark and keeps the sign of a time before year 1 in UTC.
        (begin != NO_MOMENT).then_some(begin >> 1)
    }

    /// Returns the zone map of the column.
    pub(super) fn zone(&self) -> Option<Zone> {
        Zone::of_moments((0..self.len() as u32).map(|row| self.begin(row)))
    }

    /// Returns an estimate of the bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.texts.capacity() * 4 + self.begins.capacity() * 8
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

    fn column() -> (MomentColumn, Dictionary) {
        let (mut column, mut words) = (MomentColumn::default(), Dictionary::default());
        TEXTS.iter().for_each(|text| column.push(text, &mut words));
        (column, words)
    }

    #[test]
    fn date_times_have_their_beginning() {
        let (column, _) = column();
        for (row, text) in (0..).zip(TEXTS) {
            let parsed = Temporal::parse(TemporalKind::DateTime, text);
            assert_eq!(column.begin(row), parsed.map(|t| t.earliest), "{text}");
            let is_point = |t: &Temporal| *t == Temporal::from_micros(t.earliest);
            let point = parsed.filter(is_point).map(|t| t.earliest);
            assert_eq!(column.point(row), point, "{text}");
        }
        assert!(column.point(0).is_some() && column.begin(1) == column.point(0));
    }

    #[test]
    fn texts_come_back_and_only_unusual_ones_are_in_the_dictionary() {
        let (column, words) = column();
        for (row, expected) in (0..).zip(TEXTS) {
            let mut out = String::new();
            match column.text(row) {
                Some(MomentText::Written(time)) => time.write(&mut out),
                Some(MomentText::Word(id)) => out.push_str(words.words().word(id)),
                None => panic!("row {row} has no text"),
            }
            assert_eq!(out, expected);
        }
        assert_eq!(words.len(), 5);
        assert_eq!(column.words().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn parts_that_do_not_fit_together_are_refused() {
        let (column, _) = column();
        let (texts, begins) = (column.texts(|word| word), column.begins().to_vec());
        let from = |texts: &[u32], begins: &[i64]| {
            MomentColumn::from_parts(texts.to_vec(), begins.to_vec()).is_some()
        };
        assert!(from(&texts, &begins));
        assert!(!from(&texts[1..], &begins), "a list is shorter");
        assert!(!from(&[FORM], &[NO_MOMENT]), "a form needs a time");
        assert!(!from(&[FORM], &[1]), "a form needs a point in time");
        assert!(!from(&[FORM | 7], &[0]), "no form has this number");
        assert!(!from(&[FORM | 1 << 16], &[0]), "no form has this number");
    }
}
