//! Ordinals and scales: number, code and text of an item of a list.

use super::{narrow, put_code};
use crate::draft::Draft;
use crate::flat::read::DocumentReader;
use crate::flat::suffix::{SYMBOL_CODE, SYMBOL_TERMINOLOGY};
use crate::tree::{Constraint, OrdinalItem};
use crate::web::WebNode;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::number;
use std::borrow::Cow;

/// The property of an item of a list of ordinals that a text states.
#[derive(Clone, Copy, PartialEq)]
enum Property {
    Number,
    Code,
    Label,
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
        let label: &[Attr] = &[Attr::SYMBOL, Attr::VALUE];
        let (property, mut items) = self.ordinals_of(web, text, given.as_deref());
        self.narrow_ordinals(&mut items, draft, web);
        let is_only = items.len() == 1 || given.is_some() || property == Property::Code;
        let may_be = |item: &OrdinalItem| is_main || given.as_ref().is_none_or(|g| *g == item.code);
        match items.first() {
            Some(item) if may_be(item) && is_only => {
                self.set_ordinal(draft, item, is_main);
                if property == Property::Label {
                    self.set_leaf(draft, label, text);
                }
            }
            // Other values may still select one of the items: `complete_ordinal` decides.
            Some(item) if may_be(item) && property == Property::Number => {
                self.set_leaf(draft, &[Attr::VALUE], text)
            }
            None if is_main && given.as_deref() == Some(text) => {}
            // The text of an unknown ordinal is kept, so that it can be reported.
            _ => self.set_leaf(draft, label, text),
        }
    }

    /// Returns the items of the template that a text addresses. `given` is the code of the symbol.
    fn ordinals_of(
        &self,
        web: Option<&'r WebNode>,
        text: &str,
        given: Option<&str>,
    ) -> (Property, Vec<&'r OrdinalItem>) {
        let number = number::parse(text);
        let code = text.split("::").next().unwrap_or(text);
        let is_of = |property: Property, item: &OrdinalItem| match property {
            Property::Number => number.is_some_and(|n| n == item.value),
            Property::Code => item.code == code,
            Property::Label => self.has_label(web, item, text),
        };
        let list = ordinals(web);
        let is_given = |item: &OrdinalItem| given == Some(item.code.as_str());
        let mut of_given = list.iter().filter(|item| is_given(item));
        // The text of an item may be the number of another one, so that of the given code is first.
        let is_label = of_given.any(|item| is_of(Property::Label, item));
        let mut others = [Property::Number, Property::Code].into_iter();
        let property = others
            .find(|property| !is_label && list.iter().any(|item| is_of(*property, item)))
            .unwrap_or(Property::Label);
        let items = list.iter().filter(|item| is_of(property, item));
        (property, items.collect())
    }

    fn has_label(&self, web: Option<&'r WebNode>, item: &OrdinalItem, text: &str) -> bool {
        self.has_text(web, &item.terminology, &item.code, text)
    }

    /// Keeps the items with the given code, number and text, as far as there are any.
    fn narrow_ordinals(
        &self,
        items: &mut Vec<&'r OrdinalItem>,
        draft: &Draft<'r>,
        web: Option<&'r WebNode>,
    ) {
        if let Some(code) = draft.text_along(SYMBOL_CODE) {
            narrow(items, |item| item.code == code);
        }
        if let Some(number) = draft.text_along(&[Attr::VALUE]).and_then(number::parse) {
            narrow(items, |item| item.value == number);
        }
        if let Some(text) = draft.text_along(&[Attr::SYMBOL, Attr::VALUE]) {
            narrow(items, |item| self.has_label(web, item, text));
        }
        if items.iter().all(|item| Some(item) == items.first()) {
            items.truncate(1);
        }
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
        let found = ordinals(web).iter().filter(|i| match (&code, number) {
            (Some(code), _) => i.code == *code,
            (None, Some(number)) => i.value.total_cmp(&number).is_eq(),
            (None, None) => text
                .as_ref()
                .is_some_and(|text| self.has_label(web, i, text)),
        });
        let mut found: Vec<&OrdinalItem> = found.collect();
        self.narrow_ordinals(&mut found, draft, web);
        // A code can have several items: the first one counts.
        if found.len() > 1 && code.is_none() {
            let codes = found.iter().map(|i| (&*i.terminology, &*i.code));
            return self.refuse_several(web, &codes.collect::<Vec<_>>());
        }
        if let Some(item) = found.first() {
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
