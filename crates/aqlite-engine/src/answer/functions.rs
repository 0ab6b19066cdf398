//! The functions of AQL (AQL § 3.9.1–3.9.4): one table of aggregate functions, one of single-row
//! functions.
//!
//! Each row of a table declares the variant of the enum and everything that is known about the
//! function without data: name, meaning, types, constructor. The parser, the checker, the printer,
//! completion, hover, the highlighting of the page, the tables of `docs/aql.md` and the generators
//! of the tests read these tables. The accumulator and the evaluator of functions match the enums
//! exhaustively, so the compiler names the places that a new row concerns.

use std::fmt;

/// An aggregate function and its argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Aggregate {
    /// `COUNT(*)`.
    CountRows,
    /// `COUNT(path)`.
    Count(usize),
    /// `COUNT(DISTINCT path)`.
    CountDistinct(usize),
    /// `MIN(path)`.
    Min(usize),
    /// `MAX(path)`.
    Max(usize),
    /// `SUM(path)`.
    Sum(usize),
    /// `AVG(path)`.
    Avg(usize),
}

/// The type of an argument or of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Any value, also a whole object.
    Any,
    /// A text. An argument of this type keeps the stored digits of a number.
    Text,
    /// A number. A whole data value is converted to its magnitude.
    Number,
    /// True or false.
    Boolean,
}

/// The subject of a single-row function, as the specification groups them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FunctionGroup {
    /// Functions of texts (AQL § 3.9.2).
    Text,
    /// Functions of numbers (AQL § 3.9.3).
    Number,
    /// Functions of the clock (AQL § 3.9.4). Their results differ from run to run.
    Clock,
}

/// The number of times that a parameter of a function occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// Exactly once.
    Once,
    /// At most once. Only parameters of this kind may follow it.
    Optional,
    /// Once or more. It is the last parameter.
    Repeated,
}

/// A formal parameter of a single-row function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormalParameter {
    /// The name that documentation and the editor show.
    pub name: &'static str,
    /// The type that arguments are converted to.
    pub value_type: ValueType,
    /// The number of arguments for this parameter.
    pub occurrence: Occurrence,
}

/// The row of an aggregate function.
#[derive(Debug)]
pub struct AggregateEntry {
    /// The name, in upper case.
    pub name: &'static str,
    /// The result over the rows of a group, as a noun phrase.
    pub meaning: &'static str,
    /// The type of the values that are aggregated. Values of other types are skipped.
    pub argument: ValueType,
    /// The type of the result, unless it is NULL.
    pub result: ValueType,
    /// The constructor for `NAME(path)`, from the index of the path.
    pub over_path: fn(usize) -> Aggregate,
    /// The aggregate of `NAME(*)`, if this form exists.
    pub over_rows: Option<Aggregate>,
    /// The constructor for `NAME(DISTINCT path)`, if this form exists.
    pub over_distinct: Option<fn(usize) -> Aggregate>,
}

/// The row of a single-row function.
#[derive(Debug)]
pub struct FunctionEntry {
    /// The name, in upper case.
    pub name: &'static str,
    /// The result, as a noun phrase.
    pub meaning: &'static str,
    /// The subject of the function.
    pub group: FunctionGroup,
    /// The formal parameters, in order.
    pub parameters: &'static [FormalParameter],
    /// The type of the result, unless it is NULL.
    pub result: ValueType,
}

/// Declares an enum of functions and its table.
macro_rules! functions {
    ($(#[$doc:meta])* $functions:ident: $entry:ident {
        $($variant:ident $name:literal $meaning:literal { $($field:ident: $value:expr),* $(,)? })*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $functions {
            $(#[doc = concat!("`", $name, "`: ", $meaning, ".")] $variant,)*
        }

        impl $functions {
            /// All functions, in the order of the table.
            pub const ALL: &'static [$functions] = &[$($functions::$variant),*];

            /// Returns the row of the table.
            pub const fn entry(self) -> &'static $entry {
                match self {
                    $($functions::$variant => {
                        static ENTRY: $entry =
                            $entry { name: $name, meaning: $meaning, $($field: $value),* };
                        &ENTRY
                    })*
                }
            }

            /// Returns the name, in upper case.
            pub const fn name(self) -> &'static str {
                self.entry().name
            }
        }
    };
}

functions! {
    /// The name of an aggregate function.
    AggregateFunction: AggregateEntry {
        Count "COUNT" "the number of rows, of values, or of different values" {
            argument: ValueType::Any,
            result: ValueType::Number,
            over_path: Aggregate::Count,
            over_rows: Some(Aggregate::CountRows),
            over_distinct: Some(Aggregate::CountDistinct),
        }
        Min "MIN" "the smallest value" {
            argument: ValueType::Any,
            result: ValueType::Any,
            over_path: Aggregate::Min,
            over_rows: None,
            over_distinct: None,
        }
        Max "MAX" "the greatest value" {
            argument: ValueType::Any,
            result: ValueType::Any,
            over_path: Aggregate::Max,
            over_rows: None,
            over_distinct: None,
        }
        Sum "SUM" "the sum of the numbers" {
            argument: ValueType::Number,
            result: ValueType::Number,
            over_path: Aggregate::Sum,
            over_rows: None,
            over_distinct: None,
        }
        Avg "AVG" "the mean of the numbers" {
            argument: ValueType::Number,
            result: ValueType::Number,
            over_path: Aggregate::Avg,
            over_rows: None,
            over_distinct: None,
        }
    }
}

functions! {
    /// A single-row function.
    Function: FunctionEntry {
        Length "LENGTH" "the number of characters" {
            group: FunctionGroup::Text,
            parameters: &[text("text")],
            result: ValueType::Number,
        }
        Contains "CONTAINS" "true when the part occurs in the text" {
            group: FunctionGroup::Text,
            parameters: &[text("text"), text("part")],
            result: ValueType::Boolean,
        }
        Position "POSITION" "where the part first occurs, counted from 1; 0 when it does not" {
            group: FunctionGroup::Text,
            parameters: &[text("part"), text("text")],
            result: ValueType::Number,
        }
        Substring "SUBSTRING" "the text from a position on, counted from 1" {
            group: FunctionGroup::Text,
            parameters: &[text("text"), number("position"), number("length").optional()],
            result: ValueType::Text,
        }
        Concat "CONCAT" "the texts one behind the other" {
            group: FunctionGroup::Text,
            parameters: &[text("text").repeated()],
            result: ValueType::Text,
        }
        ConcatWs "CONCAT_WS" "the texts one behind the other, separated" {
            group: FunctionGroup::Text,
            parameters: &[text("separator"), text("text").repeated()],
            result: ValueType::Text,
        }
        Abs "ABS" "the number without its sign" {
            group: FunctionGroup::Number,
            parameters: &[number("number")],
            result: ValueType::Number,
        }
        Mod "MOD" "the remainder of the division" {
            group: FunctionGroup::Number,
            parameters: &[number("number"), number("divisor")],
            result: ValueType::Number,
        }
        Ceil "CEIL" "the smallest whole number not below" {
            group: FunctionGroup::Number,
            parameters: &[number("number")],
            result: ValueType::Number,
        }
        Floor "FLOOR" "the greatest whole number not above" {
            group: FunctionGroup::Number,
            parameters: &[number("number")],
            result: ValueType::Number,
        }
        Round "ROUND" "the number rounded to a number of decimal digits, or to a whole one" {
            group: FunctionGroup::Number,
            parameters: &[number("number"), number("digits").optional()],
            result: ValueType::Number,
        }
        CurrentDate "CURRENT_DATE" "today as `YYYY-MM-DD`" {
            group: FunctionGroup::Clock,
            parameters: &[],
            result: ValueType::Text,
        }
        CurrentTime "CURRENT_TIME" "the time of day as `hh:mm:ss`" {
            group: FunctionGroup::Clock,
            parameters: &[],
            result: ValueType::Text,
        }
        CurrentDateTime "CURRENT_DATE_TIME" "date and time with milliseconds and time zone" {
            group: FunctionGroup::Clock,
            parameters: &[],
            result: ValueType::Text,
        }
        Now "NOW" "date and time with milliseconds and time zone" {
            group: FunctionGroup::Clock,
            parameters: &[],
            result: ValueType::Text,
        }
        CurrentTimezone "CURRENT_TIMEZONE" "the time zone as `±hh:mm`" {
            group: FunctionGroup::Clock,
            parameters: &[],
            result: ValueType::Text,
        }
    }
}

/// A parameter that is a text.
const fn text(name: &'static str) -> FormalParameter {
    FormalParameter {
        name,
        value_type: ValueType::Text,
        occurrence: Occurrence::Once,
    }
}

/// A parameter that is a number.
const fn number(name: &'static str) -> FormalParameter {
    FormalParameter {
        name,
        value_type: ValueType::Number,
        occurrence: Occurrence::Once,
    }
}

impl FormalParameter {
    /// The parameter, which may be omitted.
    const fn optional(mut self) -> FormalParameter {
        self.occurrence = Occurrence::Optional;
        self
    }

    /// The parameter, which may be repeated.
    const fn repeated(mut self) -> FormalParameter {
        self.occurrence = Occurrence::Repeated;
        self
    }
}

impl Aggregate {
    /// Returns the index of the aggregated path; `None` if rows are counted.
    pub fn path(&self) -> Option<usize> {
        match self {
            Aggregate::CountRows => None,
            Aggregate::Count(path)
            | Aggregate::CountDistinct(path)
            | Aggregate::Min(path)
            | Aggregate::Max(path)
            | Aggregate::Sum(path)
            | Aggregate::Avg(path) => Some(*path),
        }
    }
}

impl AggregateEntry {
    /// Returns the call as the editor shows it: `COUNT(* | [DISTINCT] path)`.
    pub fn usage(&self) -> String {
        let rows = if self.over_rows.is_some() { "* | " } else { "" };
        let distinct = if self.over_distinct.is_some() {
            "[DISTINCT] "
        } else {
            ""
        };
        format!("{}({rows}{distinct}path)", self.name)
    }
}

impl FunctionEntry {
    /// Returns the smallest number of arguments.
    pub fn min_arguments(&self) -> usize {
        let optional = |p: &&FormalParameter| p.occurrence != Occurrence::Optional;
        self.parameters.iter().filter(optional).count()
    }

    /// Returns the greatest number of arguments; `None` if there is no greatest one.
    pub fn max_arguments(&self) -> Option<usize> {
        let is_repeated = self
            .parameters
            .iter()
            .any(|p| p.occurrence == Occurrence::Repeated);
        (!is_repeated).then_some(self.parameters.len())
    }

    /// Returns the parameter of an argument, by the index of the argument.
    pub fn parameter(&self, argument: usize) -> Option<&'static FormalParameter> {
        let repeated = |p: &&'static FormalParameter| p.occurrence == Occurrence::Repeated;
        self.parameters
            .get(argument)
            // Arguments behind the last parameter belong to it, if it is repeated.
            .or_else(|| self.parameters.last().filter(repeated))
    }

    /// Returns the parameters as the editor shows them: `(text, position [, length])`.
    pub fn arguments(&self) -> String {
        let mut out = String::from("(");
        for (i, parameter) in self.parameters.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            match parameter.occurrence {
                Occurrence::Once => out.push_str(&format!("{comma}{}", parameter.name)),
                Occurrence::Optional => out.push_str(&format!(" [{comma}{}]", parameter.name)),
                Occurrence::Repeated => out.push_str(&format!("{comma}{}, …", parameter.name)),
            }
        }
        out.push(')');
        out
    }

    /// Returns the call as the editor shows it: `SUBSTRING(text, position [, length])`.
    pub fn usage(&self) -> String {
        format!("{}{}", self.name, self.arguments())
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValueType::Any => "any value",
            ValueType::Text => "text",
            ValueType::Number => "number",
            ValueType::Boolean => "boolean",
        })
    }
}

impl fmt::Display for FunctionGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FunctionGroup::Text => "texts",
            FunctionGroup::Number => "numbers",
            FunctionGroup::Clock => "the clock",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_shows_optional_and_repeated_parameters() {
        assert_eq!(
            Function::Substring.entry().usage(),
            "SUBSTRING(text, position [, length])"
        );
        assert_eq!(
            Function::ConcatWs.entry().usage(),
            "CONCAT_WS(separator, text, …)"
        );
        assert_eq!(
            AggregateFunction::Count.entry().usage(),
            "COUNT(* | [DISTINCT] path)"
        );
        assert_eq!(AggregateFunction::Sum.entry().usage(), "SUM(path)");
    }

    #[test]
    fn numbers_of_arguments_follow_from_the_parameters() {
        let range = |function: Function| {
            let entry = function.entry();
            (entry.min_arguments(), entry.max_arguments())
        };
        assert_eq!(range(Function::Round), (1, Some(2)));
        assert_eq!(range(Function::ConcatWs), (2, None));
        assert_eq!(range(Function::Now), (0, Some(0)));
        let repeated = Function::Concat.entry().parameter(7);
        assert_eq!(repeated.map(|p| p.value_type), Some(ValueType::Text));
        assert_eq!(Function::Abs.entry().parameter(1), None);
    }

    /// `parameter` and `max_arguments` rely on this order.
    #[test]
    fn optional_and_repeated_parameters_come_last() {
        for function in Function::ALL {
            let order: Vec<Occurrence> = function
                .entry()
                .parameters
                .iter()
                .map(|p| p.occurrence)
                .collect();
            let plain = order.iter().take_while(|o| **o == Occurrence::Once).count();
            let rest = order.get(plain..).unwrap();
            let optional = rest.iter().all(|o| *o == Occurrence::Optional);
            assert!(optional || rest == [Occurrence::Repeated], "{function:?}");
        }
    }
}
