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
    /// The forms of the values, at most [`MAX_FORMS`].
    palette: Vec<TimeForm>,
    /// For each value the index of its form; [`WORD`] if its text is in the dictionary.
    forms: Vec<u8>,
    /// The dictionary numbers of the texts that [`WORD`] marks, by row in ascending order.
    words: Vec<(u32, u32)>,
    /// For each value twice its beginning, in microseconds since 0001-01-01T00:00Z. One is added
    /// for a partial date-time and for one with a finer fraction, which are no points in time.
    /// [`NO_MOMENT`] for a text that is no date-time.
    begins: Vec<i64>,
}

/// The parts of a column of date-times as files store them.
#[derive(Debug, PartialEq)]
pub(super) struct MomentParts {
    /// The numbers of the forms ([`TimeForm::number`]).
    pub palette: Vec<u32>,
    pub forms: Vec<u8>,
    /// The rows whose texts are in the dictionary, and the numbers of their texts.
    pub word_rows: Vec<u32>,
    pub words: Vec<u32>,
    pub begins: Vec<i64>,
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

/// The mark of a value whose text is in the dictionary.
const WORD: u8 = u8::MAX;

/// The maximum number of forms of a column. Texts of further forms are in the dictionary.
const MAX_FORMS: usize = WORD as usize;

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
    pub fn of_words(words: Vec<u32>, begins: Vec<i64>) -> MomentParts {
        MomentParts {
            palette: Vec::new(),
            forms: vec![WORD; words.len()],
            word_rows: (0..words.len() as u32).collect(),
            words,
            begins,
        }
    }
}

impl MomentColumn {
    /// Creates a column from its parts.
    ///
    /// Returns `None` if no column has these parts, because the stored data are damaged: for lists of
    /// different lengths, an unknown form, a form without a point in time, and texts that do not
    /// belong to the marked rows.
    pub(super) fn from_parts(parts: MomentParts) -> Option<MomentColumn> {
        let form = |number: &u32| TimeForm::from_number(u16::try_from(*number).ok()?);
        let palette = parts.palette.iter().map(form);
        if parts.word_rows.len() != parts.words.len() {
            return None;
        }
        let column = MomentColumn {
            palette: palette.collect::<Option<_>>()?,
            forms: parts.forms,
            words: parts.word_rows.into_iter().zip(parts.words).collect(),
            begins: parts.begins,
        };
        let rows = 0..column.forms.len() as u32;
        // `text` finds words by bisection, so their rows must ascend. Then as many words as marks,
        // each in a marked row, means that every marked row has its word.
        let ascends = column.words.is_sorted_by(|(row, _), (next, _)| row < next);
        let marked = column.forms.iter().filter(|form| **form == WORD).count();
        let is_sound = column.forms.len() == column.begins.len()
            && ascends
            && marked == column.words.len()
            && rows.into_iter().all(|row| column.text(row).is_some());
        is_sound.then_some(column)
    }

    /// Returns the parts of the column. `word` maps dictionary numbers.
    pub(super) fn parts(&self, word: impl FnMut(u32) -> u32) -> MomentParts {
        let palette = self.palette.iter();
        MomentParts {
            palette: palette.map(|form| u32::from(form.number())).collect(),
            forms: self.forms.clone(),
            word_rows: self.words.iter().map(|(row, _)| *row).collect(),
            words: self.words().map(word).collect(),
            begins: self.begins.clone(),
        }
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.begins.len()
    }

    /// Returns the dictionary numbers of the texts that are not written from their position.
    pub(super) fn words(&self) -> impl Iterator<Item = u32> {
        self.words.iter().map(|(_, id)| *id)
    }

    pub(super) fn push(&mut self, text: &str, words: &mut Dictionary) {
        let time = Temporal::parse(TemporalKind::DateTime, text);
        let point = time.filter(|time| *time == Temporal::from_micros(time.earliest));
        let form = point.and_then(|point| TimeForm::of(text, point.earliest));
        let form = form.and_then(|form| self.index_of(form)).unwrap_or(WORD);
        if form == WORD {
            let row = self.len() as u32;
            push(&mut self.words, (row, words.number_of(text)));
        }
        // The lowest bit is set if the text does not denote exactly one microsecond.
        let begin = |time: Temporal| time.earliest << 1 | i64::from(point.is_none());
        push(&mut self.forms, form);
        push(&mut self.begins, time.map_or(NO_MOMENT, begin));
    }

    /// Returns the index of a form, which is added if it is new; `None` if there are too many.
    fn index_of(&mut self, form: TimeForm) -> Option<u8> {
        let known = self.palette.iter().position(|known| *known == form);
        let index = known.unwrap_or(self.palette.len());
        if index == self.palette.len() && index < MAX_FORMS {
            self.palette.push(form);
        }
        u8::try_from(index).ok().filter(|index| *index != WORD)
    }

    /// Returns the text of a row.
    pub fn text(&self, row: u32) -> Option<MomentText> {
        match *self.forms.get(row as usize)? {
            WORD => {
                let at = self.words.binary_search_by_key(&row, |(row, _)| *row);
                Some(MomentText::Word(self.words.get(at.ok()?)?.1))
            }
            form => Some(MomentText::Written(TimeText {
                micros: self.point(row)?,
                form: *self.palette.get(usize::from(form))?,
            })),
        }
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
        self.forms.capacity() + self.words.capacity() * 8 + self.begins.capacity() * 8
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
    fn forms_beyond_the_limit_are_in_the_dictionary() {
        let (mut column, mut words) = (MomentColumn::default(), Dictionary::default());
        let offsets = (0..14).flat_map(|hour| (0..60).map(move |minute| (hour, minute)));
        let texts =
            offsets.map(|(hour, minute)| format!("2020-02-01T00:00:00+{hour:02}:{minute:02}"));
        let texts: Vec<String> = texts.take(MAX_FORMS + 20).collect();
        for text in texts.iter().chain(&texts) {
            column.push(text, &mut words);
        }
        assert_eq!(words.len(), 20);
        for (row, text) in (0..).zip(texts.iter().chain(&texts)) {
            let found = match column.text(row) {
                Some(MomentText::Written(time)) => time.text(),
                Some(MomentText::Word(id)) => words.words().word(id).to_owned(),
                None => panic!("row {row} has no text"),
            };
            assert_eq!(found, *text);
        }
    }

    #[test]
    fn parts_that_do_not_fit_together_are_refused() {
        let (column, _) = column();
        let is_sound = |change: fn(&mut MomentParts)| {
            let mut parts = column.parts(|word| word);
            change(&mut parts);
            MomentColumn::from_parts(parts).is_some()
        };
        assert!(is_sound(|_| ()));
        assert!(
            !is_sound(|parts| parts.begins.truncate(3)),
            "a time is absent"
        );
        assert!(
            !is_sound(|parts| parts.palette.truncate(1)),
            "a form is absent"
        );
        assert!(
            !is_sound(|parts| parts.palette[0] = 7),
            "no form has this number"
        );
        assert!(
            !is_sound(|parts| parts.forms[1] = 0),
            "a form needs a point in time"
        );
        assert!(
            !is_sound(|parts| parts.word_rows[0] = 0),
            "the row has a form"
        );
        assert!(
            !is_sound(|parts| parts.word_rows.swap(0, 1)),
            "rows must ascend"
        );
        assert!(
            !is_sound(|parts| parts.words.truncate(4)),
            "a word is absent"
        );
    }
}
