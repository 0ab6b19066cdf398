//! What only GDL1 has, mapped onto the model of GDL2.

use super::expr::ast::Expr;
use super::guide::Condition;
use crate::diag::Span;

/// The function of a binding: `LAST` keeps the latest instance. Any other function is left out.
pub(crate) fn predicate_of_function(function: &str, model_id: &str, span: Span) -> Option<Condition> {
    if !function.eq_ignore_ascii_case("LAST") {
        return None;
    }
    let path = time_path(model_id);
    Some(Condition { text: format!("max({path})"), span, expr: Some(Expr::Best(true, path.to_owned(), span)) })
}

/// The path of the time that dates an entry of this archetype.
pub(crate) fn time_path(model_id: &str) -> &'static str {
    match super::bind::class_of(model_id) {
        Some("OBSERVATION") => "/data/events/time",
        Some("ACTION") => "/time",
        _ => "/context/start_time",
    }
}
