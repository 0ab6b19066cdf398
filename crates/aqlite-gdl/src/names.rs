//! Checks of the names in a guide: archetype ids, paths, and the members of its objects.

use super::bind::{class_of, is_plain};
use super::item::Item;
use aqlite_rm::diag::{Diagnostic, near};

const GUIDE: &[&str] = &[
    "id",
    "gdl_version",
    "concept",
    "language",
    "description",
    "definition",
    "ontology",
    "terminology",
    "test_cases",
];
const DEFINITION: &[&str] = &[
    "data_bindings",
    "archetype_bindings",
    "internal_variables",
    "templates",
    "pre_conditions",
    "default_actions",
    "rules",
];
const BINDING: &[&str] = &[
    "id",
    "type",
    "domain",
    "model_id",
    "archetype_id",
    "template_id",
    "function",
    "elements",
    "predicates",
];
const RULE: &[&str] = &["id", "priority", "when", "then", "cards", "description"];

/// The kinds of objects whose members are checked.
#[derive(Clone, Copy)]
pub(crate) enum Object {
    Guide,
    Definition,
    Binding,
    Rule,
}

/// Returns the number of unknown members, and a problem for each that resembles a known one. Other
/// unknown members are ignored, because engines add their own. Only the first `most` are compared.
///
/// A member in place of conditions is an error: without them, the rule would always fire.
pub(crate) fn misspelt_members(
    item: &Item,
    object: Object,
    most: usize,
) -> (usize, Vec<Diagnostic>) {
    let known = match object {
        Object::Guide => GUIDE,
        Object::Definition => DEFINITION,
        Object::Binding => BINDING,
        Object::Rule => RULE,
    };
    // Short names resemble too much.
    let missing = known.iter().copied();
    let missing = missing.filter(|k| k.len() > 2 && item.get(k).is_none());
    let missing: Vec<&str> = missing.collect();
    let unknown = |(name, _): &&(String, Item)| !known.contains(&name.as_str());
    let unknown = item.members().iter().filter(unknown);
    let mut problems = Vec::new();
    for (name, value) in unknown.clone().take(most) {
        let mut missing = missing.iter().copied();
        let long_form = missing.clone().find(|k| is_long_form(name, k));
        let like = near(name, &mut missing).first().copied().or(long_form);
        let Some(like) = like else { continue };
        let message = format!("`{name}` is no member here, and is ignored");
        let problem = match like {
            "when" | "pre_conditions" => Diagnostic::error("GDL0307", value.span, message),
            _ => Diagnostic::warning("GDL0307", value.span, message),
        };
        problems.push(problem.with_help(format!("write `{like}`")));
    }
    (unknown.count(), problems)
}

/// Returns whether a member has a name of the authoring form: a known name, or its singular, and
/// another word, such as `when_statements` or `predicate_statements`.
fn is_long_form(name: &str, known: &str) -> bool {
    let front = name.rsplit_once('_').map(|(front, _)| front);
    front.is_some_and(|front| known == front || known.strip_suffix('s') == Some(front))
}

/// Returns whether a model id can be that of an archetype, or is of another model. An id with two
/// hyphens before its first full stop is meant as an archetype id.
pub(crate) fn is_model_id(model_id: &str) -> bool {
    let (model, concept) = model_id.split_once('.').unwrap_or((model_id, ""));
    let is_archetype = model.split('-').count() > 2;
    let version = concept.rsplit_once(".v").map(|(_, version)| version);
    let has_version = version.is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()));
    !is_archetype || (has_version && class_of(model_id).is_some() && model.chars().all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archetype_ids_have_a_class_a_concept_and_a_version() {
        for id in [
            "openEHR-EHR-OBSERVATION.body_weight.v2",
            "openEHR-EHR-OBSERVATION.body-weight.v2.1.0-alpha",
            "org.hl7.fhir.dstu3.model.Patient",
            "model_1",
        ] {
            assert!(is_model_id(id), "{id}");
        }
        for id in [
            "openEHR-EHR-OBSERVATION.body_weight",
            "openEHR-EHR-OBSERVATION.body weight.v2",
            "openEHR-EHR-OBSERVATIONS.body_weight.v2",
            "openEHR-EHR-OBSERVATION.x] OR o[y.v1",
        ] {
            assert!(!is_model_id(id), "{id}");
        }
    }

    #[test]
    fn misspelt_members_are_reported() {
        let problems = |text: &str, object: Object| {
            let item = crate::read::tree(text).unwrap();
            let found = misspelt_members(&item, object, 9).1.into_iter();
            let found = found.map(|p| {
                (
                    p.severity == aqlite_rm::diag::Severity::Error,
                    p.help.clone(),
                )
            });
            found
                .map(|(e, help)| (e, help.unwrap_or_default().to_string()))
                .collect::<Vec<_>>()
        };
        let help = |name: &str| format!("write `{name}`");
        assert_eq!(
            problems(r#"{"whens":[],"then":[]}"#, Object::Rule),
            [(true, help("when"))]
        );
        assert_eq!(
            problems(r#"{"when_statements":[]}"#, Object::Rule),
            [(true, help("when"))]
        );
        assert_eq!(
            problems(r#"{"pre_condition":[]}"#, Object::Definition),
            [(true, help("pre_conditions"))]
        );
        assert_eq!(
            problems(
                r#"{"predicate_statements":[],"elements":{}}"#,
                Object::Binding
            ),
            [(false, help("predicates"))]
        );
        for (text, object) in [
            (r#"{"uuid":"1","tags":[],"date":"x"}"#, Object::Guide),
            (r#"{"_comment":"x","t_x":1,"p_1":1,"i_d":1}"#, Object::Rule),
            (r#"{"_comment":"x","pre_release":true}"#, Object::Definition),
        ] {
            assert_eq!(problems(text, object), [], "{text}");
        }
    }
}
