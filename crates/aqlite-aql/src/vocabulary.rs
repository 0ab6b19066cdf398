//! The reserved words and clauses of AQL: one table of each (AQL § 3.2, § 3.13).
//!
//! The functions are declared by the tables of `aqlite_engine::answer::query`. The lexer, the
//! parser, the printer, completion, hover and the highlighting of the page
//! (`www/src/aql-words.ts`) read these tables.

use super::query::{AggregateFunction, Function};
use std::fmt;

/// The part of the language that a reserved word belongs to. It decides the color in an editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WordKind {
    /// A clause, an operator or a modifier.
    Keyword,
    /// A class that only AQL has.
    Class,
    /// A literal.
    Literal,
    /// A function, an aggregate function, or TERMINOLOGY.
    Function,
}

/// The row of a reserved word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The usual spelling, in upper case.
    pub text: &'static str,
    /// The phrase that the word is a part of: `ORDER BY` for `BY`, otherwise the word itself.
    pub phrase: &'static str,
    /// The part of the language.
    pub kind: WordKind,
    /// The effect or the value, as hover and completion show it.
    pub meaning: &'static str,
}

macro_rules! phrase {
    ($text:literal) => {
        $text
    };
    ($text:literal $phrase:literal) => {
        $phrase
    };
}

/// Declares [`Keyword`] and its table.
macro_rules! words {
    ($($name:ident $text:literal $(($phrase:literal))? $kind:ident $meaning:literal)*) => {
        /// A reserved word. It cannot name a variable or an alias.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Keyword {
            $(#[doc = concat!("`", $text, "`: ", $meaning, ".")] $name,)*
            /// The name of an aggregate function.
            Aggregate(AggregateFunction),
            /// The name of a single-row function. `CONTAINS` is [`Keyword::Contains`].
            Function(Function),
        }

        impl Keyword {
            /// The reserved words that are not names of functions.
            const PLAIN: &'static [Keyword] = &[$(Keyword::$name),*];

            /// Returns the row of the table.
            pub fn entry(self) -> Word {
                let function = |text, meaning| Word {
                    text,
                    phrase: text,
                    kind: WordKind::Function,
                    meaning,
                };
                match self {
                    $(Keyword::$name => {
                        static ENTRY: Word = Word {
                            text: $text,
                            phrase: phrase!($text $($phrase)?),
                            kind: WordKind::$kind,
                            meaning: $meaning,
                        };
                        ENTRY
                    })*
                    Keyword::Aggregate(name) => function(name.name(), name.entry().meaning),
                    Keyword::Function(name) => function(name.name(), name.entry().meaning),
                }
            }
        }
    };
}

words! {
    Select "SELECT" Keyword "the columns of the result"
    Distinct "DISTINCT" Keyword "equal rows once"
    Top "TOP" Keyword "the greatest number of rows (deprecated: use LIMIT)"
    Forward "FORWARD" Keyword "the first rows; the default of TOP"
    Backward "BACKWARD" Keyword "the last rows"
    As "AS" Keyword "the name of the column"
    From "FROM" Keyword "the source of the rows: classes that contain classes"
    Where "WHERE" Keyword "the condition of the rows: a row is kept if it is true, not if it is unknown"
    Order "ORDER" ("ORDER BY") Keyword "the order of the rows; ascending without DESC, missing values last"
    By "BY" ("ORDER BY") Keyword "the order of the rows; ascending without DESC, missing values last"
    Asc "ASC" Keyword "from the smallest value to the greatest; the default"
    Ascending "ASCENDING" Keyword "from the smallest value to the greatest; the default"
    Desc "DESC" Keyword "from the greatest value to the smallest"
    Descending "DESCENDING" Keyword "from the greatest value to the smallest"
    Limit "LIMIT" Keyword "the greatest number of rows"
    Offset "OFFSET" Keyword "the number of rows to skip"
    Contains "CONTAINS" Keyword "somewhere below, at any depth"
    And "AND" Keyword "both; binds tighter than OR"
    Or "OR" Keyword "one or both"
    Not "NOT" Keyword "the opposite; unknown stays unknown"
    Exists "EXISTS" Keyword "true when there is data at the path"
    Like "LIKE" Keyword "the whole text fits the pattern: `*` any run, `?` one character"
    Matches "MATCHES" Keyword "equal to one member of the list"
    Null "NULL" Literal "no value; nothing is equal to it"
    Version "VERSION" Class "a version of a versioned object, with its audit"
    LatestVersion "LATEST_VERSION" Keyword "the latest version of each object, not deleted"
    AllVersions "ALL_VERSIONS" Keyword "every version of each object"
    Terminology "TERMINOLOGY" Function "the answer of a terminology service: operation, service, parameters"
}

/// The literals of truth. They are not reserved as names of attributes.
pub const BOOLEANS: [&str; 2] = ["true", "false"];

impl Keyword {
    /// Returns every reserved word: first the plain ones, then aggregate functions, then
    /// single-row functions.
    pub fn all() -> impl Iterator<Item = Keyword> {
        let aggregates = AggregateFunction::ALL.iter();
        let functions = Function::ALL.iter().filter(|f| **f != Function::Contains);
        let plain = Keyword::PLAIN.iter().copied();
        plain
            .chain(aggregates.map(|name| Keyword::Aggregate(*name)))
            .chain(functions.map(|name| Keyword::Function(*name)))
    }

    /// Finds the reserved word with this spelling, in any letter case.
    pub fn parse(word: &str) -> Option<Keyword> {
        Keyword::all().find(|k| k.text().eq_ignore_ascii_case(word))
    }

    /// Returns the word in its usual spelling, upper case.
    pub fn text(self) -> &'static str {
        self.entry().text
    }

    /// Returns the single-row function that the word names.
    pub fn function(self) -> Option<Function> {
        match self {
            Keyword::Function(function) => Some(function),
            Keyword::Contains => Some(Function::Contains),
            _ => None,
        }
    }

    /// Returns whether the word names an aggregate or single-row function or TERMINOLOGY.
    pub fn is_function(self) -> bool {
        self.entry().kind == WordKind::Function || self.function().is_some()
    }

    /// Returns the clause that the word begins.
    pub fn clause(self) -> Option<Clause> {
        Clause::ALL.iter().copied().find(|c| c.keyword() == self)
    }
}

impl fmt::Display for Keyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Returns the single-row function with this name, in any letter case.
pub fn function_named(name: &str) -> Option<Function> {
    Keyword::parse(name).and_then(Keyword::function)
}

/// Declares [`Clause`] and its table.
macro_rules! clauses {
    ($($name:ident $keyword:ident $meaning:literal)*) => {
        /// A clause of a query.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Clause {
            $(#[doc = $meaning] $name,)*
        }

        impl Clause {
            /// All clauses, in the order in which a query has them.
            pub const ALL: &'static [Clause] = &[$(Clause::$name),*];

            /// Returns the first word of the clause.
            pub fn keyword(self) -> Keyword {
                match self {
                    $(Clause::$name => Keyword::$keyword,)*
                }
            }
        }
    };
}

clauses! {
    Select Select "The columns (AQL § 3.13.1)."
    From From "The source of the rows (AQL § 3.13.2)."
    Where Where "The condition (AQL § 3.13.3)."
    OrderBy Order "The order (AQL § 3.13.4)."
    Limit Limit "The window (AQL § 3.13.5)."
}

impl Clause {
    /// Returns the words that begin the clause: `ORDER BY`.
    pub fn title(self) -> &'static str {
        self.keyword().entry().phrase
    }

    /// Returns whether every query has the clause.
    pub fn is_mandatory(self) -> bool {
        matches!(self, Clause::Select | Clause::From)
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_in_any_case() {
        for word in Keyword::all() {
            assert_eq!(Keyword::parse(word.text()), Some(word));
            assert_eq!(
                Keyword::parse(&word.text().to_ascii_lowercase()),
                Some(word)
            );
            assert!(!word.entry().meaning.is_empty(), "{word:?}");
        }
    }

    #[test]
    fn every_function_is_reached_by_its_name() {
        for function in Function::ALL {
            assert_eq!(function_named(function.name()), Some(*function));
        }
    }
}
