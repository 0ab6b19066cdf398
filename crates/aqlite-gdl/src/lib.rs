#![doc = include_str!("../README.md")]
//!
//! # Codes of problems
//!
//! | code | problem |
//! |---|---|
//! | GDL0101–0105 | the text is not a guide: broken JSON or ODIN, nested too deep, `definition` missing, a member twice |
//! | GDL0201–0204 | a statement that cannot be read, is nested too deep, compares instead of assigning, or has text behind its end |
//! | GDL0301–0304 | a binding without model, an unknown type of binding, a variable without path, a guide without id |
//! | GDL0305–0308 | an invalid archetype id or path, a misspelt member, a priority that is no whole number |
//! | GDL0310–0316 | a name that cannot be resolved: path, binding, template, attribute, `max` in a condition, rule, term |
//! | GDL0317–0319 | a card without a required member, with an unlisted word, or with an address that is not one of the web |
//! | GDL0601–0603, 0605 | a run that exceeded a limit ([`Limits`]): a text, the bytes of values and results, work, time |
//! | GDL0604 | a guide that is too large for an upload ([`Guide::excesses`]) |
//! | GDL0501–0516 | a fixture that cannot be read, or that does not fit its guide: id, variable, unit, code, output, time |
//! | GDL0401–0405 | warnings: unbound variable, result in an INPUT binding, rule defined twice, rule that can never fire, attribute of another class |
//! | GDL0406–0410 | warnings: equal priorities, label that is not the term, `is_a` without codes, variable taken for two kinds, attribute beside a value of another kind |

#![deny(missing_docs)]

mod action;
pub mod bind;
mod budget;
mod calc;
pub mod cards;
mod compile;
mod conversion;
pub mod describe;
mod eval;
mod expr;
mod feed;
mod fill;
pub mod fixture;
pub mod form;
mod gdl1;
mod gdl2;
pub mod guide;
mod item;
mod lint;
mod markdown;
mod names;
mod odin;
pub mod output;
mod pause;
pub mod population;
pub mod print;
mod pushdown;
mod reach;
mod read;
mod readable;
mod run;
mod select;
pub mod stored;
mod subsume;
pub mod suite;
pub mod time;
pub mod trace;
pub mod value;
mod variable_state;
mod yaml;

pub use bind::{BindingQuery, DataInstance, Instance, QueryColumn};
pub use budget::{Exceeded, Limit, Limits, Spent};
pub use compile::CompiledGuide;
pub use guide::Guide;
pub use pause::{NextPause, Pause};
pub use population::Population;
pub use run::{
    ActionOut, CardOut, LinkOut, Options, Output, OutputOrigin, OutputValue, Run, RunInput,
    SuggestionOut, Terminology,
};
pub use subsume::{AncestorQuestions, Subsumption, SubsumptionQuestions, Subsumptions};

use aqlite_rm::diag::Diagnostic;

/// Parses a guide: GDL1 or GDL2, in JSON or ODIN. The text determines language and syntax.
///
/// # Errors
///
/// All problems of a text that is not a guide: broken syntax (`GDL0101` JSON, `GDL0102` ODIN,
/// `GDL0103` nesting), a missing definition (`GDL0104`), or a repeated member (`GDL0105`). Lesser problems are listed in
/// [`Guide::problems`] and [`CompiledGuide::problems`].
pub fn parse(text: &str) -> Result<Guide, Vec<Diagnostic>> {
    read::parse(text)
}
