//! Hover: the meaning of a word of a query.

use super::classes::Classes;
use super::draft::{Declared, Draft};
use super::labels::Labels;
use super::query::Function;
use super::token::TokenKind;
use super::vocabulary::Keyword;
use aqlite_rm::class::{Attr, Card, Cls};
use aqlite_rm::diag::Span;

/// The meaning of a word at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The range of the word, in bytes.
    pub span: Span,
    /// A title: `OBSERVATION.data: HISTORY`, `Systolic`.
    pub title: String,
    /// The text below the title; may be empty.
    pub text: String,
}

/// Returns the meaning of the word at an offset in bytes.
pub fn hover(text: &str, offset: usize, labels: &dyn Labels) -> Option<Hover> {
    let draft = Draft::new(text);
    let mut tokens = draft.tokens.iter();
    let index = tokens.position(|t| t.span.start <= offset && offset < t.span.end)?;
    let span = draft.tokens.get(index)?.span;
    let (title, text) = meaning(&draft, index, labels)?;
    Some(Hover { span, title, text })
}

/// Returns title and text of a token.
fn meaning(draft: &Draft<'_>, index: usize, labels: &dyn Labels) -> Option<(String, String)> {
    let word = draft.word(index);
    Some(match draft.kind(index)? {
        TokenKind::Keyword(Keyword::Contains) if is_call(draft, index) => {
            keyword(Keyword::Function(Function::Contains))
        }
        TokenKind::Keyword(word) => keyword(word),
        TokenKind::Identifier => name(draft, index, labels)?,
        TokenKind::Archetype => {
            let mut known = labels.archetypes(Cls::ANY).into_iter();
            let label = known.find(|l| l.id == word)?;
            (label.text, label.detail)
        }
        TokenKind::Code => {
            let end = draft.path_end_before(draft.open_bracket(index)?)?;
            let label = labels.term(&end.archetype?, word)?;
            (label.text, label.detail)
        }
        TokenKind::Parameter => {
            let text = "a parameter: the request binds it";
            (word.to_owned(), text.to_owned())
        }
        _ => return None,
    })
}

/// Returns whether CONTAINS is the function. Behind the operator, a parenthesis is followed by a
/// class or by another parenthesis.
fn is_call(draft: &Draft<'_>, index: usize) -> bool {
    let open = Some(TokenKind::Sign('('));
    draft.kind(index + 1) == open
        && draft.kind(index + 2) != open
        && draft.class(index + 2).is_none()
}

/// Returns title and text of a reserved word: the usage of a function, or the phrase of a word.
fn keyword(word: Keyword) -> (String, String) {
    let entry = word.entry();
    let title = match word {
        Keyword::Aggregate(function) => function.entry().usage(),
        Keyword::Function(function) => function.entry().usage(),
        _ => entry.phrase.to_owned(),
    };
    (title, entry.meaning.to_owned())
}

/// Returns title and text of a name: an attribute, a variable or a class.
fn name(draft: &Draft<'_>, index: usize, labels: &dyn Labels) -> Option<(String, String)> {
    let name = draft.word(index);
    if let Some(end) = draft.owner(index) {
        return attribute(name, &end.classes);
    }
    match draft.variable(name) {
        Some(variable) => Some(declared(name, variable, labels)),
        None => draft.class(index).map(class),
    }
}

/// Describes an attribute: its type and cardinality in each class that has it.
fn attribute(name: &str, classes: &Classes) -> Option<(String, String)> {
    let attr = Attr::parse(name)?;
    let mut lines: Vec<String> = Vec::new();
    for class in classes.possible() {
        let Some(def) = class.attr(attr) else {
            continue;
        };
        let cardinality = match def.card {
            Card::Opt => " (0..1)",
            Card::One => "",
            Card::List => " (0..*)",
            Card::List1 => " (1..*)",
        };
        let line = format!("{}.{attr}: {}{cardinality}", def.owner, def.ty);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let title = lines.first().cloned()?;
    Some((title, lines.split_off(1).join("\n")))
}

/// Describes a variable: its class, and the archetype with its clinical name.
fn declared(name: &str, variable: &Declared, labels: &dyn Labels) -> (String, String) {
    let concept = variable.archetype.as_ref().and_then(|archetype| {
        let known = labels.archetypes(variable.class);
        known.into_iter().find(|label| label.id == *archetype)
    });
    let text: Vec<String> = [variable.archetype.clone(), concept.map(|l| l.text)]
        .into_iter()
        .flatten()
        .collect();
    (format!("{name}: {}", variable.class), text.join(": "))
}

/// Describes a class by its ancestors.
fn class(class: Cls) -> (String, String) {
    // The root of the classes is its own parent.
    let ancestors: Vec<&str> = std::iter::successors(Some(class.parent()), |c| {
        (*c != c.parent()).then(|| c.parent())
    })
    .map(Cls::name)
    .collect();
    let text = if class.parent() == class {
        String::new()
    } else {
        format!("a {}", ancestors.join(", a "))
    };
    (class.name().to_owned(), text)
}
