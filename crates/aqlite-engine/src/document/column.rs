//! Columns: the values of one leaf for the rows of a table, and the dictionary of the texts of all
//! columns.

use super::moment::{DateTimeColumn, MomentText, TimeText};
use super::part::Part;
use super::sparse::SparseValues;
use super::text_index::TextIndex;
use super::zone_map::ZoneMap;
use aqlite_rm::exact::Exact;
use aqlite_rm::number;
use aqlite_rm::tree::Kind;
use std::borrow::Cow;
use std::rc::Rc;

/// A column: the values of one leaf, one for each row that has it.
#[derive(Clone, Debug)]
pub enum Column {
    /// Numbers with the digits as sent.
    Number(NumberColumn),
    /// Texts, codes, identifiers and dates, as numbers of dictionary entries.
    Text(Vec<u32>),
    /// Date-times.
    DateTime(DateTimeColumn),
    /// Booleans.
    Boolean(Vec<bool>),
}

/// A value of a column, or a constant of a layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leaf<'a> {
    /// A number, as the nearest double.
    Number(f64),
    /// A text.
    Text(&'a str),
    /// A date-time, whose text is written from its position in time.
    Time(TimeText),
    /// A boolean.
    Boolean(bool),
}

/// A column of numbers: the values for comparisons, and the digits as sent.
#[derive(Clone, Debug, Default)]
pub struct NumberColumn {
    values: Vec<f64>,
    /// The number of decimals of each number; [`TOKEN`] if its token is kept as text.
    decimals: Vec<u8>,
    /// The tokens of the numbers that [`TOKEN`] marks.
    tokens: SparseValues<Box<str>>,
}

/// A dictionary: distinct texts with numbers in order of first use.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    texts: DictionaryTexts,
    /// An estimate of the bytes of all texts and of the index.
    size: usize,
    index: TextIndex,
}

/// The texts of a dictionary by number. Clones share their pages, so a clone is cheap, and a later
/// addition copies at most one page.
#[derive(Clone, Debug, Default)]
pub struct DictionaryTexts {
    pages: Rc<Vec<Rc<Part<Page>>>>,
    len: u32,
}

/// A page of texts, which are stored one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    text: String,
    ends: Vec<u32>,
}

/// The base-2 logarithm of the number of texts of a page.
const PAGE_BITS: u32 = 12;
pub(super) const PAGE: usize = 1 << PAGE_BITS;

/// A number with its digits; `S` is the type of those that are kept as text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number<S> {
    /// The value, and the number of its decimals.
    Decimal(f64, u8),
    /// A computed value. Whole numbers are printed without a point, and zero without a sign.
    Computed(f64),
    /// The digits as sent.
    Token(S),
}

/// The number of decimals that marks a number which is kept as a token. No number with
/// [`MAX_DIGITS`] digits has as many decimals.
const TOKEN: u8 = u8::MAX;
/// The largest number of digits of a number that is not kept as a token. A double represents every
/// decimal number of 15 digits distinctly.
const MAX_DIGITS: usize = 15;
/// The least integer with more than [`MAX_DIGITS`] digits.
const SCALED_END: u64 = 1_000_000_000_000_000;
/// The powers of 10 for 0 to [`MAX_DIGITS`] decimals. Each is exact in a double, so a division by
/// one of them rounds only once.
const POWERS: [f64; MAX_DIGITS + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

impl Column {
    pub(super) fn new(kind: Kind) -> Column {
        match kind {
            Kind::Number => Column::Number(NumberColumn::default()),
            Kind::Boolean => Column::Boolean(Vec::new()),
            _ => Column::Text(Vec::new()),
        }
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        match self {
            Column::Number(numbers) => numbers.values.len(),
            Column::Text(ids) => ids.len(),
            Column::DateTime(moments) => moments.len(),
            Column::Boolean(flags) => flags.len(),
        }
    }

    /// Creates a column of date-times.
    pub(super) fn of_date_times() -> Column {
        Column::DateTime(DateTimeColumn::default())
    }

    /// Returns the numbers of the dictionary entries of a column of texts.
    pub fn ids(&self) -> Option<&[u32]> {
        match self {
            Column::Text(ids) => Some(ids),
            _ => None,
        }
    }

    /// Returns the numbers of all dictionary entries that the values refer to.
    pub(super) fn text_ids(&self) -> impl Iterator<Item = u32> {
        let ids = self.ids().unwrap_or_default().iter().copied();
        let moments = self.moments().into_iter();
        ids.chain(moments.flat_map(DateTimeColumn::text_ids))
    }

    /// Returns the date-times; `None` for any other column.
    pub fn moments(&self) -> Option<&DateTimeColumn> {
        match self {
            Column::DateTime(moments) => Some(moments),
            _ => None,
        }
    }

    /// Returns the zone map of a column of numbers or date-times.
    pub(super) fn zone_map(&self) -> Option<ZoneMap> {
        match self {
            Column::Number(numbers) => ZoneMap::of_numbers(&numbers.values),
            Column::DateTime(moments) => moments.zone_map(),
            Column::Text(_) | Column::Boolean(_) => None,
        }
    }

    pub(super) fn push(&mut self, text: &str, dictionary: &mut Dictionary) {
        match self {
            Column::Number(numbers) => numbers.push(text),
            Column::Text(ids) => push(ids, dictionary.number_of(text)),
            Column::DateTime(moments) => moments.push(text, dictionary),
            Column::Boolean(flags) => push(flags, text == "true"),
        }
    }

    /// Returns the value of a row.
    pub(super) fn leaf<'b>(&self, row: u32, texts: &'b DictionaryTexts) -> Option<Leaf<'b>> {
        match self {
            Column::Number(numbers) => numbers.values.get(row as usize).copied().map(Leaf::Number),
            Column::Boolean(flags) => flags.get(row as usize).copied().map(Leaf::Boolean),
            Column::Text(ids) => ids.get(row as usize).map(|id| Leaf::Text(texts.text(*id))),
            Column::DateTime(moments) => match moments.text(row)? {
                MomentText::Written(time) => Some(Leaf::Time(time)),
                MomentText::InDictionary(id) => Some(Leaf::Text(texts.text(id))),
            },
        }
    }

    /// Appends the value of a row as it was sent: the digits, the text, `true` or `false`.
    pub(super) fn write(&self, row: u32, texts: &DictionaryTexts, out: &mut String) {
        match (self, self.leaf(row, texts)) {
            (Column::Number(numbers), _) => drop(numbers.at(row).map(|number| number.write(out))),
            (_, Some(Leaf::Text(text))) => out.push_str(text),
            (_, Some(Leaf::Time(time))) => time.write(out),
            (_, Some(Leaf::Boolean(flag))) => out.push_str(if flag { "true" } else { "false" }),
            _ => {}
        }
    }

    /// Returns an estimate of the bytes in use.
    pub fn bytes(&self) -> usize {
        match self {
            Column::Number(numbers) => {
                // A token is a long number, or one with an exponent: about 8 bytes.
                numbers.values.capacity() * 8
                    + numbers.decimals.capacity()
                    + numbers.tokens.bytes()
                    + numbers.tokens.iter().count() * 8
            }
            Column::Text(ids) => ids.capacity() * 4,
            Column::DateTime(moments) => moments.bytes(),
            Column::Boolean(flags) => flags.capacity(),
        }
    }
}

impl<'a> Leaf<'a> {
    /// Returns the text of a text or date-time.
    pub fn as_text(self) -> Option<Cow<'a, str>> {
        match self {
            Leaf::Text(text) => Some(Cow::Borrowed(text)),
            Leaf::Time(time) => Some(Cow::Owned(time.text())),
            Leaf::Number(_) | Leaf::Boolean(_) => None,
        }
    }
}

/// Appends a value. The capacity grows by a quarter, because there are very many lists and most of
/// them stay short.
pub(super) fn push<T>(list: &mut Vec<T>, value: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(2 + list.len() / 4);
    }
    list.push(value);
}

impl NumberColumn {
    /// Returns the values in row order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns whether a number with at least this absolute value is kept as a token, so that the
    /// double can be inexact.
    pub fn has_long(&self, size: f64) -> bool {
        // Only tokens that are kept as text can have more than 15 digits.
        self.tokens.iter().any(|(row, _)| {
            self.values
                .get(row as usize)
                .is_some_and(|value| value.abs() >= size)
        })
    }

    /// Returns each value times 10 to the power of its decimals, and the decimals.
    ///
    /// A value that is kept as a token becomes 0 with the decimals [`TOKEN`].
    pub(super) fn scaled(&self) -> impl Iterator<Item = (i64, u8)> {
        self.values.iter().zip(&self.decimals).map(|pair| {
            let (value, decimals) = pair;
            match POWERS.get(usize::from(*decimals)) {
                // At most 15 digits: the product is whole but for its last bits.
                Some(power) => ((value * power).round() as i64, *decimals),
                None => (0, TOKEN),
            }
        })
    }

    /// Returns the numbers that are kept as tokens, by row in ascending order.
    pub(super) fn tokens(&self) -> impl Iterator<Item = (u32, &str)> {
        self.tokens.iter().map(|(row, token)| (row, &**token))
    }

    /// Restores the column from the results of [`NumberColumn::scaled`] and
    /// [`NumberColumn::tokens`].
    ///
    /// Returns `None` if no column has these results, because the stored data are damaged: for more
    /// than [`MAX_DIGITS`] digits, an unknown number of decimals, a marked row without a token, and
    /// tokens that are not in ascending order of their rows.
    pub(super) fn from_scaled(
        scaled: impl Iterator<Item = (i64, u8)>,
        tokens: Vec<(u32, String)>,
    ) -> Option<NumberColumn> {
        let mut column = NumberColumn::default();
        for (scaled, decimals) in scaled {
            let value = match POWERS.get(usize::from(decimals)) {
                Some(_) if scaled.unsigned_abs() >= SCALED_END => return None,
                // The same division as in `plain`, so that the value is the same to the last bit.
                Some(power) => scaled as f64 / power,
                // The row of a token: the loop below replaces the value.
                None if decimals == TOKEN => f64::NAN,
                None => return None,
            };
            column.values.push(value);
            column.decimals.push(decimals);
        }
        let tokens = tokens
            .into_iter()
            .map(|(row, token)| (row, token.into_boxed_str()));
        let marks = column.decimals.iter().map(|decimals| *decimals == TOKEN);
        column.tokens = SparseValues::from_entries(tokens.collect(), marks)?;
        for (row, token) in column.tokens.iter() {
            *column.values.get_mut(row as usize)? = number::parse(token).unwrap_or(f64::NAN);
        }
        Some(column)
    }

    fn push(&mut self, token: &str) {
        let row = self.values.len() as u32;
        match plain(token) {
            Some((value, decimals)) => {
                push(&mut self.values, value);
                push(&mut self.decimals, decimals);
            }
            None => {
                push(&mut self.values, number::parse(token).unwrap_or(f64::NAN));
                push(&mut self.decimals, TOKEN);
                self.tokens.push(row, Box::from(token));
            }
        }
    }

    /// Returns the number of a row.
    pub fn at(&self, row: u32) -> Option<Number<&str>> {
        let (value, decimals) = (
            *self.values.get(row as usize)?,
            *self.decimals.get(row as usize)?,
        );
        if decimals != TOKEN {
            return Some(Number::Decimal(value, decimals));
        }
        self.tokens.get(row).map(|token| Number::Token(&**token))
    }
}

impl<S: AsRef<str>> Number<S> {
    /// Returns the value as the nearest double.
    pub fn value(&self) -> f64 {
        match self {
            Number::Decimal(value, _) | Number::Computed(value) => *value,
            Number::Token(token) => number::parse(token.as_ref()).unwrap_or(f64::NAN),
        }
    }

    /// Returns the exact value of the digits.
    pub fn exact(&self) -> Exact {
        match self {
            Number::Decimal(value, _) | Number::Computed(value) => Exact::from(*value),
            Number::Token(token) => {
                Exact::parse(token.as_ref()).unwrap_or_else(|| Exact::from(f64::NAN))
            }
        }
    }

    /// Appends the digits.
    pub fn write(&self, out: &mut String) {
        match self {
            Number::Decimal(value, 0) => write_digits(*value, 0, out),
            Number::Decimal(value, decimals) => {
                // Rounding restores the whole number that `plain` divided. Decimals are at most
                // `MAX_DIGITS`, which `plain` and `from_scaled` ensure, so the power exists.
                let power = POWERS.get(usize::from(*decimals)).copied().unwrap_or(1.0);
                write_digits((value * power).round(), usize::from(*decimals), out);
            }
            // Adding 0.0 turns -0.0 into 0.0.
            Number::Computed(value) => out.push_str(&number::shortest(value + 0.0)),
            Number::Token(token) => out.push_str(token.as_ref()),
        }
    }
}

/// Appends an integer of at most [`MAX_DIGITS`] digits with a point before its last `decimals`
/// digits.
fn write_digits(scaled: f64, decimals: usize, out: &mut String) {
    if scaled < 0.0 {
        out.push('-');
    }
    let mut rest = scaled.abs() as u64;
    // All digits, the point, and a zero before the point.
    let mut digits = [b'0'; MAX_DIGITS + 2];
    let mut count = 0;
    // At least one digit is written, and with decimals at least one before the point.
    while rest > 0 || count <= decimals + usize::from(decimals > 0) {
        let is_point = decimals > 0 && count == decimals;
        if let Some(byte) = digits.iter_mut().nth_back(count) {
            *byte = if is_point {
                b'.'
            } else {
                b'0' + (rest % 10) as u8
            };
        }
        rest /= if is_point { 1 } else { 10 };
        count += 1;
    }
    out.push_str(
        digits
            .get(digits.len().saturating_sub(count)..)
            .and_then(|d| std::str::from_utf8(d).ok())
            .unwrap_or_default(),
    );
}

/// Parses a token of at most [`MAX_DIGITS`] digits without an exponent. Returns the value and the
/// number of decimals, which determine the token; `None` for any other token.
fn plain(token: &str) -> Option<(f64, u8)> {
    let (negative, digits) = token
        .strip_prefix('-')
        .map_or((false, token), |rest| (true, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() > MAX_DIGITS
        || whole.is_empty()
        || (digits.contains('.') && fraction.is_empty())
    {
        return None;
    }
    let mut value = 0u64;
    for byte in whole.bytes().chain(fraction.bytes()) {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(byte - b'0');
    }
    // Negative zero and leading zeros would not be printed as they were sent.
    if (negative && value == 0) || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    let scaled = value as f64 / POWERS.get(fraction.len())?;
    Some((
        if negative { -scaled } else { scaled },
        fraction.len() as u8,
    ))
}

impl Dictionary {
    /// Creates the dictionary of a segment, without its texts. They are found by number only.
    pub(super) fn absent(len: u32) -> Dictionary {
        Dictionary {
            texts: DictionaryTexts::absent(len),
            ..Dictionary::default()
        }
    }

    /// Creates the dictionary of a checkpoint; `size` is the size of its texts in bytes.
    pub(super) fn stored(texts: DictionaryTexts, size: usize, index: TextIndex) -> Dictionary {
        Dictionary { texts, size, index }
    }

    /// Returns the index of the texts.
    pub(super) fn index(&self) -> &TextIndex {
        &self.index
    }

    /// Returns the number of distinct texts.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns whether the dictionary is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an estimate of the bytes of the texts and the index. It is updated by each addition.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the texts by number.
    pub fn texts(&self) -> &DictionaryTexts {
        &self.texts
    }

    /// Returns the number of a text; `None` if the dictionary lacks it.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.index.find(text, |id| self.texts.text(id))
    }

    /// Returns the number of a text, which is added if the dictionary lacks it.
    pub fn number_of(&mut self, text: &str) -> u32 {
        if let Some(id) = self.find(text) {
            return id;
        }
        let id = self.texts.push(text);
        // An estimate for the end of the text and its entry in the index.
        self.size += text.len() + 12;
        let texts = &self.texts;
        self.index.add(text, id, |other| texts.text(other));
        id
    }

    pub(super) fn bytes(&self) -> usize {
        let pages = self
            .texts
            .pages
            .iter()
            .filter_map(|page| page.present())
            .map(Page::bytes);
        pages.sum::<usize>() + self.index.bytes()
    }
}

impl DictionaryTexts {
    /// Creates texts whose pages are absent.
    pub(super) fn absent(len: u32) -> DictionaryTexts {
        let pages = (0..len.div_ceil(PAGE as u32)).map(|_| Rc::new(Part::absent()));
        DictionaryTexts {
            pages: Rc::new(pages.collect()),
            len,
        }
    }

    /// Creates texts from pages.
    pub(super) fn in_pages(pages: Vec<Part<Page>>, len: u32) -> DictionaryTexts {
        let pages = pages.into_iter().map(Rc::new);
        DictionaryTexts {
            pages: Rc::new(pages.collect()),
            len,
        }
    }

    /// Reads the pages of some texts of a checkpoint, so that later reads of them cannot fail.
    pub(crate) fn fetch(&self, ids: impl Iterator<Item = u32>) {
        // Pages of other batches are in memory, or are wanted when their texts are read.
        let is_stored = |page: &Rc<Part<Page>>| page.unchanged().is_some();
        if self.pages.iter().any(is_stored) {
            ids.for_each(|id| {
                self.text(id);
            });
        }
    }

    /// Returns the pages.
    pub(super) fn pages(&self) -> &[Rc<Part<Page>>] {
        &self.pages
    }

    /// Returns the text with a number; the empty text if its page is absent.
    pub fn text(&self, id: u32) -> &str {
        self.pages
            .get((id >> PAGE_BITS) as usize)
            .and_then(|page| page.get())
            .map_or("", |page| page.text(id as usize % PAGE))
    }

    /// Returns the number of texts.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    fn push(&mut self, text: &str) -> u32 {
        let id = self.len() as u32;
        // This copies the list of pages only if a clone of the texts still shares it.
        let pages = Rc::make_mut(&mut self.pages);
        if (id as usize).is_multiple_of(PAGE) {
            // The first page of a small dictionary stays small.
            let ends = Vec::with_capacity(if id == 0 { 0 } else { PAGE });
            pages.push(Rc::new(Part::Owned(Page {
                text: String::new(),
                ends,
            })));
        }
        // Only the last page can grow, so at most one page that a clone shares is copied.
        let last = pages.last_mut().and_then(|page| Rc::make_mut(page).owned());
        last.into_iter().for_each(|page| page.push(text));
        self.len += 1;
        id
    }
}

impl Page {
    /// Creates a page of concatenated texts; `ends` are their end positions.
    pub(super) fn new(text: String, ends: Vec<u32>) -> Page {
        Page { text, ends }
    }

    /// Returns the number of texts.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Estimates the bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * 4 + 80
    }

    pub(super) fn text(&self, at: usize) -> &str {
        let start = at
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or(0);
        let end = self.ends.get(at).copied().unwrap_or(start);
        self.text
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        // The capacity grows by a quarter instead of doubling, which could leave half of it unused.
        if self.text.capacity() - self.text.len() < text.len() {
            self.text.reserve_exact(text.len() + self.text.len() / 4);
        }
        self.text.push_str(text);
        push(&mut self.ends, self.text.len() as u32);
        // A full page never grows again, so its spare capacity is released.
        if self.ends.len() == PAGE {
            self.text.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_digit_for_digit() {
        let tokens = [
            "120",
            "120.0",
            "37.50",
            "0.10",
            "-0.0",
            "-12.5",
            "1e5",
            "1E+5",
            "1.8e400",
            "12345678901234567890123",
            "0",
            "999999999999999",
            "0.000000000000001",
            "4.35",
            "1.005",
        ];
        let mut column = Column::new(Kind::Number);
        let mut dictionary = Dictionary::default();
        tokens.iter().for_each(|t| column.push(t, &mut dictionary));
        for (row, token) in tokens.iter().enumerate() {
            let mut out = String::new();
            column.write(row as u32, dictionary.texts(), &mut out);
            assert_eq!(out, *token);
        }
    }

    #[test]
    fn dictionary_stores_each_text_once() {
        let mut dictionary = Dictionary::default();
        let ids: Vec<u32> = ["a", "b", "a", ""]
            .iter()
            .map(|t| dictionary.number_of(t))
            .collect();
        assert_eq!(
            (ids, dictionary.len(), dictionary.texts().text(1)),
            (vec![0, 1, 0, 2], 3, "b")
        );
    }

    #[test]
    fn clone_of_words_does_not_change_when_texts_are_added() {
        let mut dictionary = Dictionary::default();
        let texts: Vec<String> = (0..3 * PAGE).map(|i| format!("text {i}")).collect();
        let mut held = Vec::new();
        for text in &texts {
            dictionary.number_of(text);
            held.push(dictionary.texts().clone());
            held.truncate(3);
        }
        assert!(
            (0..)
                .zip(&texts)
                .all(|(id, text)| dictionary.texts().text(id) == text
                    && dictionary.find(text) == Some(id))
        );
        assert_eq!(
            (
                held[1].len(),
                held[1].text(1),
                held[1].text(2),
                dictionary.len()
            ),
            (2, "text 1", "", 3 * PAGE)
        );
    }
}
