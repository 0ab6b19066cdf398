//! What a word of a query means.

use super::labels::Labels;
use super::query::Function;
use super::scene::Scene;
use super::token::TokenKind;
use super::vocabulary::Keyword;
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

/// The meaning of the word at an offset (in bytes).
pub fn hover(text: &str, offset: usize, labels: &dyn Labels) -> Option<Hover> {
    let scene = Scene::new(text);
    let index = scene
        .tokens
        .iter()
        .position(|t| t.span.start <= offset && offset < t.span.end)?;
    let (title, more) = match scene.kind(index)? {
        TokenKind::Keyword(Keyword::Contains) if is_call(&scene, index) => {
            keyword(Keyword::Function(Function::Contains))
        }
        TokenKind::Keyword(word) => keyword(word),
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
