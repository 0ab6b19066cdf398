//! What a word of a query means.

use super::labels::Labels;
use super::scene::Scene;
use super::signature::signature;
use super::token::{Keyword, TokenKind};
use aqlite_rm::class::{Attr, Card, Cls};
use aqlite_rm::diag::Span;

/// The meaning of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The word, in bytes.
    pub span: Span,
    /// What it is: `OBSERVATION.data: HISTORY`, `Systolic`.
    pub title: String,
    /// More about it; may be empty.
    pub text: String,
}

/// The aggregate functions and what they compute over the rows of a group.
pub(crate) const AGGREGATES: [(&str, &str); 5] = [
    (
        "COUNT",
        "the number of rows, of values, or of different values",
    ),
    ("MIN", "the smallest value"),
    ("MAX", "the greatest value"),
    ("SUM", "the sum of the numbers"),
    ("AVG", "the mean of the numbers"),
];

/// What the words of the language do.
const MEANINGS: [(&str, &str); 18] = [
    ("SELECT", "the columns of the result"),
    ("DISTINCT", "equal rows once"),
    ("TOP", "only so many rows (deprecated: use LIMIT)"),
    (
        "FROM",
        "what the rows are made of: classes that contain classes",
    ),
    ("CONTAINS", "somewhere below, at any depth"),
    (
        "WHERE",
        "which rows are kept: those for which the condition is true, not those for which it is unknown",
    ),
    (
        "ORDER BY",
        "the order of the rows; ascending unless DESC stands, values that are missing come last",
    ),
    ("LIMIT", "at most so many rows"),
    ("OFFSET", "behind so many rows"),
    ("AND", "both; binds tighter than OR"),
    ("OR", "one or both"),
    ("NOT", "the opposite; unknown stays unknown"),
    ("EXISTS", "true when there is data at the path"),
    (
        "LIKE",
        "the whole text fits the pattern: `*` any run, `?` one character",
    ),
    ("MATCHES", "equal to one member of the list"),
    ("VERSION", "a version of a versioned object, with its audit"),
    (
        "LATEST_VERSION",
        "the latest version of each object, not deleted",
    ),
    ("ALL_VERSIONS", "every version of each object"),
];

/// What a word of the language does.
pub(crate) fn keyword_meaning(word: &str) -> Option<&'static str> {
    MEANINGS
        .iter()
        .chain(&AGGREGATES)
        .find(|(name, _)| *name == word)
        .map(|(_, meaning)| *meaning)
}

/// The meaning of the word at an offset (in bytes).
pub fn hover(text: &str, offset: usize, labels: &dyn Labels) -> Option<Hover> {
    let scene = Scene::new(text);
    let index = scene
        .tokens
        .iter()
        .position(|t| t.span.start <= offset && offset < t.span.end)?;
    let (title, more) = match scene.kind(index)? {
        TokenKind::Keyword(Keyword::Order | Keyword::By) => (
            "ORDER BY".to_owned(),
            keyword_meaning("ORDER BY").unwrap_or_default().to_owned(),
        ),
        TokenKind::Keyword(Keyword::Contains) if is_call(&scene, index) => described("CONTAINS")?,
        TokenKind::Keyword(Keyword::Contains) => (
            "CONTAINS".to_owned(),
            keyword_meaning("CONTAINS")?.to_owned(),
        ),
        TokenKind::Keyword(keyword) => match described(keyword.text()) {
            Some(function) => function,
            None => (
                keyword.text().to_owned(),
                keyword_meaning(keyword.text())?.to_owned(),
            ),
        },
        TokenKind::Identifier => word(&scene, index, labels)?,
        TokenKind::Archetype => {
            let id = scene.word(index);
            let label = labels
                .archetypes(Cls::ANY)
                .into_iter()
                .find(|l| l.id == id)?;
            (label.text, label.detail)
        }
        TokenKind::Code => {
            let place = scene.place_before(scene.open_bracket(index)?)?;
            let label = labels.term(&place.archetype?, scene.word(index))?;
            (label.text, label.detail)
        }
        TokenKind::Parameter => (
            scene.word(index).to_owned(),
            "a parameter: the request binds it".to_owned(),
        ),
        _ => return None,
    };
    let span = scene.tokens.get(index)?.span;
    Some(Hover {
        span,
        title,
        text: more,
    })
}

/// True for the function CONTAINS: behind the operator, a parenthesis opens on a class or on
/// another one.
fn is_call(scene: &Scene<'_>, index: usize) -> bool {
    let open = Some(TokenKind::Sign('('));
    scene.kind(index + 1) == open
        && scene.kind(index + 2) != open
        && scene.class(index + 2).is_none()
}

fn described(function: &str) -> Option<(String, String)> {
    signature(function).map(|s| (format!("{}{}", s.name, s.arguments), s.meaning.to_owned()))
}

fn word(scene: &Scene<'_>, index: usize, labels: &dyn Labels) -> Option<(String, String)> {
    let name = scene.word(index);
    if let Some(place) = scene.owner(index) {
        let attr = Attr::parse(name)?;
        let mut lines: Vec<String> = Vec::new();
        for class in place.classes.possible() {
            let Some(def) = class.attr(attr) else {
                continue;
            };
            let many = match def.card {
                Card::Opt => " (0..1)",
                Card::One => "",
                Card::List => " (0..*)",
                Card::List1 => " (1..*)",
            };
            let line = format!("{}.{attr}: {}{many}", def.owner, def.ty);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let title = lines.first().cloned()?;
        return Some((
            title,
            lines.into_iter().skip(1).collect::<Vec<_>>().join("\n"),
        ));
    }
    if let Some(variable) = scene.variable(name) {
        let concept = variable.archetype.as_ref().and_then(|a| {
            labels
                .archetypes(variable.class)
                .into_iter()
                .find(|l| l.id == *a)
        });
        let text = [variable.archetype.clone(), concept.map(|l| l.text)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(": ");
        return Some((format!("{name}: {}", variable.class), text));
    }
    let class = scene.class(index)?;
    let ancestors: Vec<&str> = std::iter::successors(Some(class.parent()), |c| {
        (*c != c.parent()).then(|| c.parent())
    })
    .map(Cls::name)
    .collect();
    Some((
        class.name().to_owned(),
        if class.parent() == class {
            String::new()
        } else {
            format!("a {}", ancestors.join(", a "))
        },
    ))
}
