//! A guide as JSON for a page, and its runs on a form and on fixtures. Positions are in UTF-16
//! units.

use super::bind::Instance;
use super::budget::Exceeded;
use super::compile::CompiledGuide;
use super::fixture::{instances, literal, text_form, with_decimal_point};
use super::form;
use super::guide::Direction;
use super::population::copied_columns;
use super::run::{Options, Output, Run, RunInput};
use super::suite::Suite;
use super::time::Moment;
use super::value::Value;
use aqlite_rm::diag::{Diagnostic, LineIndex, Severity, Span};
use aqlite_rm::json::{elements, members};
use serde_json::{Value as Json, json};

/// Describes a guide in a language: `{id, gdl_version, language, languages, concept, purpose, use,
/// misuse, bindings, inputs, outputs, rules, terms, problems}`. Each binding has its variables and
/// its AQL at a moment under the given options. Each input has the data of a form field
/// ([`form::Input`]).
///
/// # Errors
///
/// The problems of a text that is not a guide.
pub fn describe(
    text: &str,
    language: &str,
    now: Moment,
    options: Options,
) -> Result<Json, Vec<Diagnostic>> {
    let compiled = super::parse(text)?.compile();
    let guide = compiled.guide();
    let details = guide.details_in(language);
    let languages = guide.terms.iter().map(|t| t.language.as_str());
    let pre_conditions = guide.pre_conditions.iter().map(|c| c.text.as_str());
    let default_actions = guide.default_actions.iter().map(|s| s.text.as_str());
    let terms = guide.terms_in(language).iter();
    let terms = terms.map(|t| json!({ "id": t.id, "text": t.text, "description": t.description }));
    Ok(json!({
        "id": guide.id,
        "gdl_version": guide.gdl_version,
        "language": guide.original_language,
        "languages": languages.collect::<Vec<_>>(),
        "concept": guide.term(&guide.concept, language),
        "purpose": details.map(|d| &d.purpose),
        "use": details.map(|d| &d.use_of),
        "misuse": details.map(|d| &d.misuse),
        "bindings": bindings(&compiled, language, now, &options),
        "inputs": form::inputs(&compiled, language),
        "outputs": outputs(&compiled, language),
        "pre_conditions": pre_conditions.collect::<Vec<_>>(),
        "default_actions": default_actions.collect::<Vec<_>>(),
        "rules": rules(&compiled, language),
        "terms": terms.collect::<Vec<_>>(),
        "problems": problems(&compiled.problems, text),
    }))
}

/// Returns the bindings with their variables and queries.
fn bindings(compiled: &CompiledGuide, language: &str, now: Moment, options: &Options) -> Vec<Json> {
    let guide = compiled.guide();
    let name = |code: &str| guide.term(code, language).map(str::to_owned);
    let queries = compiled.queries_for(now, options);
    let aql: Vec<(usize, String)> = queries.into_iter().map(|q| (q.binding, q.aql)).collect();
    let binding = |(i, b): (usize, &super::guide::Binding)| {
        let elements = b.elements.iter();
        let elements = elements.map(|e| json!({ "id": e.id, "name": name(&e.id), "path": e.path }));
        let predicates: Vec<&str> = b.predicates.iter().map(|p| p.text.as_str()).collect();
        json!({
            "id": b.id,
            "name": name(&b.id),
            "type": b.direction.name(),
            "model_id": b.model_id,
            "template_id": b.template_id,
            "elements": elements.collect::<Vec<_>>(),
            "predicates": predicates,
            "aql": aql.iter().find(|(at, _)| *at == i).map(|(_, aql)| aql),
        })
    };
    guide.bindings.iter().enumerate().map(binding).collect()
}

/// Returns the rules in the order of their evaluation.
fn rules(compiled: &CompiledGuide, language: &str) -> Vec<Json> {
    let guide = compiled.guide();
    let plans = compiled.rules.iter();
    let rules = plans.filter_map(|plan| guide.rules.get(plan.source));
    let rule = |rule: &super::guide::Rule| {
        json!({
            "id": rule.id,
            "name": guide.term(&rule.id, language),
            "priority": rule.priority,
            "when": rule.when.iter().map(|c| c.text.as_str()).collect::<Vec<_>>(),
            "then": rule.then.iter().map(|s| s.text.as_str()).collect::<Vec<_>>(),
            "cards": rule.cards.len(),
        })
    };
    rules.map(rule).collect()
}

/// Returns the variables that the guide can set, with the models that they belong to.
fn outputs(compiled: &CompiledGuide, language: &str) -> Vec<Json> {
    let guide = compiled.guide();
    let bindings = guide.bindings.iter().zip(&compiled.bindings);
    let elements = bindings.flat_map(|(b, plan)| {
        plan.outputs
            .iter()
            .filter_map(move |(column, _)| Some((b, b.elements.get(*column)?)))
    });
    elements.map(|(b, e)| json!({ "variable": e.id, "name": guide.term(&e.id, language), "binding": b.id, "path": e.path })).collect()
}

/// Runs a guide on the values of a form: literals by variable, as fixtures write them. Returns
/// `{fired, results, cards, trace, notes}`.
///
/// # Errors
///
/// The problems of a text that is not a guide, a variable that the guide does not have, a number with
/// a decimal comma, and a run that exceeds a limit.
pub fn try_out(
    text: &str,
    given: &[(String, String)],
    language: &str,
    now: Moment,
    options: Options,
) -> Result<Json, Vec<Diagnostic>> {
    let compiled = super::parse(text)?.compile();
    let value = |(code, text): &(String, String)| {
        check_input(&compiled, code, text)?;
        Ok((code.clone(), literal(text)))
    };
    let input: Result<Vec<(String, Value)>, Diagnostic> = given.iter().map(value).collect();
    let input = input.map_err(|problem| vec![problem])?;
    let instances = instances(&compiled, &input);
    run_with_trace(&compiled, &instances, language, now, options)
}

/// Checks that the guide has a variable, and that its value has no decimal comma.
fn check_input(compiled: &CompiledGuide, code: &str, text: &str) -> Result<(), Diagnostic> {
    let mut codes = Vec::new();
    for binding in &compiled.guide().bindings {
        for element in &binding.elements {
            codes.push(element.id.as_str());
        }
    }
    let (id, message, help) = if !codes.contains(&code) {
        let help = format!("it has {}", codes.join(", "));
        (
            "GDL0511",
            format!("the guide has no variable `{code}`"),
            help,
        )
    } else if let Some(mended) = with_decimal_point(text) {
        let message = format!("`{text}` has a decimal comma");
        ("GDL0517", message, format!("write `{mended}`"))
    } else {
        return Ok(());
    };
    Err(Diagnostic::error(id, Span::default(), message).with_help(help))
}

/// Runs a guide on the instances of its bindings. Returns the same as [`try_out`].
///
/// # Errors
///
/// A run that exceeds a limit.
pub fn run_with_trace(
    compiled: &CompiledGuide,
    instances: &[Vec<Instance>],
    language: &str,
    now: Moment,
    options: Options,
) -> Result<Json, Vec<Diagnostic>> {
    let input = RunInput {
        instances,
        clock: now.into(),
        language,
        options: Options {
            trace: true,
            ..options
        },
        terminology: None,
    };
    let run = compiled.run(&input).map_err(|e| vec![exceeded(&e)])?;
    Ok(run_json(compiled, &run, language))
}

/// Runs a guide on the answers to the queries of its bindings: result sets as JSON text, by the id
/// of the binding. `now` must be the moment for which the queries were built. Returns the same as
/// [`try_out`].
///
/// # Errors
///
/// The problems of a text that is not a guide, and a run that exceeds a limit.
pub fn run_on_answers(
    text: &str,
    answers: &[(String, String)],
    language: &str,
    now: Moment,
    options: Options,
) -> Result<Json, Vec<Diagnostic>> {
    let compiled = super::parse(text)?.compile();
    let mut instances = vec![Vec::new(); compiled.bindings.len()];
    let queries = compiled.queries_for(now, &options);
    let copied = copied_columns(&compiled, &queries);
    for (query, copied) in queries.iter().zip(copied) {
        let answer = answers.iter().find(|(id, _)| *id == query.id);
        let answer = answer.map_or("", |(_, answer)| answer);
        if let Some(place) = instances.get_mut(query.binding) {
            let rows = rows(answer).unwrap_or_default();
            *place = query.instances_of_json(&rows, &copied, now);
        }
    }
    run_with_trace(&compiled, &instances, language, now, options)
}

/// Converts a run that exceeded a limit to a problem of the text.
fn exceeded(exceeded: &Exceeded) -> Diagnostic {
    Diagnostic::error(exceeded.code(), Span::default(), exceeded.to_string())
        .with_help(exceeded.help())
}

/// Returns the cells of a result set as JSON, by row.
fn rows(answer: &str) -> Option<Vec<Vec<&str>>> {
    let (_, rows) = members(answer)
        .ok()?
        .into_iter()
        .find(|(name, _)| name == "rows")?;
    let row = |row| elements(row).ok();
    elements(rows).ok()?.into_iter().map(row).collect()
}

fn run_json(compiled: &CompiledGuide, run: &Run, language: &str) -> Json {
    let guide = compiled.guide();
    let result = |output: &Output| {
        let value = |v: &super::run::OutputValue| {
            json!({ "variable": &*v.code, "name": guide.term(&v.code, language), "path": &*v.path,
                "text": super::fill::readable(&v.value), "literal": text_form(&v.value), "value": v.to_json() })
        };
        let values: Vec<Json> = output.values.iter().map(value).collect();
        json!({ "id": &*output.id, "model_id": &*output.model_id, "template_id": output.template_id.as_deref(), "values": values })
    };
    json!({
        "fired": run.fired.iter().map(|r| &**r).collect::<Vec<&str>>(),
        "results": run.outputs.iter().map(result).collect::<Vec<_>>(),
        "cards": super::cards::cards(compiled, run, language, &mut String::new),
        "trace": run.trace,
        "notes": run.notes,
    })
}

/// Runs every case of a fixture file: `{guide_id, problems, cases: [{id, line, passed, differences,
/// fired, input, expected}]}`.
///
/// # Errors
///
/// The problems of a text that is not a guide or not a fixture, and a run that exceeds a limit.
pub fn run_fixture(text: &str, fixture: &str, now: Moment) -> Result<Json, Vec<Diagnostic>> {
    let compiled = super::parse(text)?.compile();
    let suite = Suite::read(fixture).map_err(|problem| vec![problem])?;
    let index = LineIndex::new(fixture);
    let pairs = |givens: &[super::suite::Given]| -> Json {
        givens.iter().map(|g| json!([g.code, g.literal])).collect()
    };
    let case = |case: &super::suite::Case| {
        let outcome = suite
            .run(case, &compiled, now, Options::default())
            .map_err(|e| vec![exceeded(&e)])?;
        Ok(json!({
            "id": case.id,
            "line": index.line_column(case.span.start).0,
            "passed": outcome.differences.is_empty(),
            "differences": outcome.differences,
            "fired": outcome.run.fired.iter().map(|r| &**r).collect::<Vec<&str>>(),
            "input": pairs(&case.input),
            "expected": pairs(&case.expected),
        }))
    };
    let cases: Vec<Json> = suite
        .cases
        .iter()
        .map(case)
        .collect::<Result<_, Vec<Diagnostic>>>()?;
    Ok(
        json!({ "guide_id": suite.guide_id, "problems": problems(&suite.lint(&compiled), fixture), "cases": cases }),
    )
}

/// Converts problems of a text to `{from, to, line, column, severity, code, message, help}`.
pub fn problems(found: &[Diagnostic], text: &str) -> Json {
    let index = LineIndex::new(text);
    let problem = |d: &Diagnostic| {
        let (line, column) = index.line_column(d.span.start);
        let severity = if d.severity == Severity::Error {
            "error"
        } else {
            "warning"
        };
        json!({ "from": index.utf16(d.span.start), "to": index.utf16(d.span.end), "line": line, "column": column, "severity": severity,
            "code": d.code, "message": d.message, "help": d.help })
    };
    found.iter().map(problem).collect()
}

impl Direction {
    /// The name of the direction in GDL2. `None` for a binding without type.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Direction::Input => Some("INPUT"),
            Direction::Output => Some("OUTPUT"),
            Direction::Any => None,
        }
    }
}
