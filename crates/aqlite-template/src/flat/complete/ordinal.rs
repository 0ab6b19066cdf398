//! Ordinals and scales: number, code and text of an item of a list.

use super::put_code;
use crate::draft::Draft;
use crate::flat::read::DocumentReader;
use crate::flat::suffix::{SYMBOL_CODE, SYMBOL_TERMINOLOGY};
use crate::tree::{Constraint, OrdinalItem};
use crate::web::WebNode;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::number;
use std::borrow::Cow;

/// The item of a list of ordinals that a text addresses, by one of its properties.
enum OrdinalText<'r> {
    Number(&'r OrdinalItem),
    Code(&'r OrdinalItem),
    Label(&'r OrdinalItem),
    /// No item of the list.
    Unknown,
}

impl<'r> DocumentReader<'r, '_> {
    /// Reads an ordinal or a scale from its number, its code or its text. `is_main` is whether that
    /// is the main value; it is the text of an item otherwise. The values of the suffixes before
    /// it have been read.
    pub(super) fn read_ordinal(
        &mut self,
        draft: &mut Draft<'r>,
        text: &'r str,
        web: Option<&'r WebNode>,
        is_main: bool,
    ) {
        let given = draft.copy_along(SYMBOL_CODE);
        let may_be = |item: &OrdinalItem| is_main || given.as_ref().is_none_or(|g| *g == item.code);
        let label: &[Attr] = &[Attr::SYMBOL, Attr::VALUE];
        match self.ordinal_of(web, text, given.as_deref()) {
            OrdinalText::Number(item) | OrdinalText::Code(item) if may_be(item) => {
                self.set_ordinal(draft, item, is_main)
            }
            OrdinalText::Label(item) if may_be(item) => {
                self.set_ordinal(draft, item, is_main);
                self.set_leaf(draft, label, text);
            }
            OrdinalText::Unknown if is_main && given.as_deref() == Some(text) => {}
            // The text of an unknown ordinal is kept, so that it can be reported.
            _ => self.set_leaf(draft, label, text),
        }
    }

    /// Returns the item of the template that a text addresses. `given` is the code of the symbol.
    fn ordinal_of(
        &self,
        web: Option<&'r WebNode>,
        text: &str,
        given: Option<&str>,
    ) -> OrdinalText<'r> {
        let list = ordinals(web);
        let has_label = |item: &&OrdinalItem| {
            let label = self.label(web, &item.terminology, &item.code);
            label.is_some_and(|label| label == text)
        };
        // Two items may have the same text, so the item of the given code is tried first.
        let of_given = list.iter().find(|item| given == Some(item.code.as_str()));
        if let Some(item) = of_given.filter(has_label) {
            return OrdinalText::Label(item);
        }
        let number = number::parse(text);
        let has_number = |item: &&OrdinalItem| number.is_some_and(|n| n == item.value);
        let code = text.split("::").next().unwrap_or(text);
        let by_number = list.iter().find(has_number).map(OrdinalText::Number);
        let by_code = || list.iter().find(|item| item.code == code);
        by_number
            .or_else(|| by_code().map(OrdinalText::Code))
            .or_else(|| list.iter().find(has_label).map(OrdinalText::Label))
            .unwrap_or(OrdinalText::Unknown)
    }

    /// Sets the code of an item. The main value also contradicts another number.
    fn set_ordinal(&mut self, draft: &mut Draft<'r>, item: &'r OrdinalItem, is_main: bool) {
        self.set_leaf(draft, SYMBOL_CODE, &item.code);
        if let Some(there) = draft.copy_along(&[Attr::VALUE]).filter(|_| is_main) {
            self.check_equal(Cls::REAL, &there, &number::shortest(item.value));
        }
    }

    /// Completes number, code and text of an ordinal or a scale by the item of the template.
    pub(in crate::flat) fn complete_ordinal(
        &mut self,
        draft: &mut Draft<'r>,
        web: Option<&'r WebNode>,
    ) {
        let code = draft.copy_along(SYMBOL_CODE);
        let text = draft.copy_along(&[Attr::SYMBOL, Attr::VALUE]);
        let terminology = draft.copy_along(SYMBOL_TERMINOLOGY);
        let number = draft.text_along(&[Attr::VALUE]).and_then(number::parse);
        let found = ordinals(web).iter().find(|i| match (&code, number) {
            (Some(code), _) => i.code == *code,
            (None, Some(number)) => i.value.total_cmp(&number).is_eq(),
            (None, None) => text.is_some() && self.label(web, &i.terminology, &i.code) == text,
        });
        if let Some(item) = found {
            if number.is_none() {
                put_number(draft, item.value);
            }
            let label = text.or_else(|| self.label(web, &item.terminology, &item.code));
            let terminology = terminology.unwrap_or(Cow::Borrowed(&item.terminology));
            put_symbol(draft, terminology, Cow::Borrowed(&item.code), label);
        } else if let Some(code) = code {
            let terminology = terminology.unwrap_or(Cow::Borrowed("local"));
            let label = text.unwrap_or_else(|| code.clone());
            put_symbol(draft, terminology, code, Some(label));
        }
        if draft.get(Attr::VALUE).is_none() || draft.get(Attr::SYMBOL).is_none() {
            let message = "the value is none of the list of the template";
            self.refuse_here("FLT0104", message, &[]);
        }
    }
}

/// Sets the number of an ordinal or a scale.
fn put_number(draft: &mut Draft<'_>, value: f64) {
    let definition = draft.class().attr(Attr::VALUE);
    let class = definition.map_or(Cls::INTEGER, |d| d.ty);
    let number = number::shortest(value);
    draft.put(Attr::VALUE, Draft::leaf(class, number));
}

/// Sets code and text of the symbol of an ordinal, and keeps its other attributes.
fn put_symbol<'d>(
    draft: &mut Draft<'d>,
    terminology: Cow<'d, str>,
    code: Cow<'d, str>,
    label: Option<Cow<'d, str>>,
) {
    if draft.get(Attr::SYMBOL).is_none() {
        draft.put(Attr::SYMBOL, Draft::object(Cls::DV_CODED_TEXT));
    }
    draft
        .get_mut(Attr::SYMBOL)
        .into_iter()
        .for_each(|symbol| put_code(symbol, terminology.clone(), code.clone(), label.clone()));
}

/// Returns the pairs of value and symbol in the template.
fn ordinals(web: Option<&WebNode>) -> &[OrdinalItem] {
    match web.and_then(|w| w.value.as_deref()).map(|n| &n.constraint) {
        Some(Constraint::Ordinal { list }) => list,
        _ => &[],
    }
}
