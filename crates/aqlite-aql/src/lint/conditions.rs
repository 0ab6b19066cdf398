//! Conditions: comparisons whose types never match, units and codes that no template permits.

use super::place::State;
use super::{Linter, TERM, TYPES, UNIT, contrary, value_of};
use crate::ast;
use crate::classes::{Classes, archetype_class};
use crate::executed::quoted;
use crate::print::expr_span;
use crate::query::{CompareOp, Literal, ValueType};
use crate::token::is_number;
use crate::vocabulary::function_named;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::{Diagnostic, Span, nearest};
use aqlite_rm::id::is_node_code;
use aqlite_rm::order;
use aqlite_rm::time::{Temporal, TemporalKind};

/// A set of kinds of values, as bits. Values compare if their kinds do, see [`compare`].
type Kinds = u8;

const NUMBER: Kinds = 1;
const BOOLEAN: Kinds = 2;
/// A text, or the text of a date, time or duration.
const TEXT: Kinds = 4;
/// A whole date, time or duration.
const TIME: Kinds = 8;
/// A text that is neither date, time nor duration.
const WORD: Kinds = 16;
const ANY: Kinds = 31;

/// The most permitted texts that a help lists.
const LISTED: usize = 8;

/// Returns the kinds of the values of classes. Objects that compare with nothing have none.
fn kinds(classes: &Classes) -> Kinds {
    classes
        .possible()
        .fold(0, |kinds, class| kinds | kind(class))
}

fn kind(class: Cls) -> Kinds {
    match class {
        Cls::BOOLEAN => BOOLEAN,
        Cls::INTEGER | Cls::INTEGER64 | Cls::REAL => NUMBER,
        Cls::DV_QUANTITY | Cls::DV_COUNT | Cls::DV_PROPORTION => NUMBER,
        Cls::DV_ORDINAL | Cls::DV_SCALE => NUMBER,
        _ if class.is_primitive() => TEXT,
        _ if TemporalKind::for_class(class).is_some() => TIME,
        _ => 0,
    }
}

fn literal_kind(literal: &Literal) -> Kinds {
    match literal {
        Literal::Null | Literal::Untyped(_) => ANY,
        Literal::Boolean(_) => BOOLEAN,
        Literal::Number(_) => NUMBER,
        Literal::Text(text) if Temporal::classify(text).is_some() => TEXT,
        Literal::Text(_) => WORD,
    }
}

/// Returns whether some values of these kinds compare.
fn compare(left: Kinds, op: CompareOp, right: Kinds) -> bool {
    let is_equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
    let times = |a: Kinds, b: Kinds| a & TIME != 0 && b & (TIME | TEXT) != 0;
    left & right & NUMBER != 0
        || (is_equality && left & right & BOOLEAN != 0)
        || (left & (TEXT | WORD) != 0 && right & (TEXT | WORD) != 0)
        || times(left, right)
        || times(right, left)
}

fn described(kinds: Kinds) -> &'static str {
    match kinds {
        0 => "a whole object",
        NUMBER => "a number",
        BOOLEAN => "a boolean",
        TIME => "a date, time or duration",
        WORD | TEXT => "a text",
        _ if kinds & (TEXT | WORD) == 0 && kinds & NUMBER != 0 => "a number, boolean or date",
        _ => "a value of another type",
    }
}

impl<'a> Linter<'a> {
    pub(super) fn condition(&mut self, condition: &'a ast::Condition) {
        match condition {
            ast::Condition::And(all) => {
                all.iter().for_each(|c| self.condition(c));
                self.exclusive(all);
            }
            ast::Condition::Or(any) => {
                any.iter().for_each(|c| self.condition(c));
                self.covering(any);
            }
            ast::Condition::Not(inner) => self.condition(inner),
            ast::Condition::Exists(path) => drop(self.path(path)),
            ast::Condition::Compare(compare) => self.comparison(compare),
            ast::Condition::Like(path, _) => self.like(path, condition),
            ast::Condition::Matches(path, operand) => self.matches(path, operand),
        }
    }

    fn comparison(&mut self, compared: &'a ast::Compare) {
        let sides = [&compared.left, &compared.right];
        let [left, right] = sides.map(|side| self.ends(side));
        let literal = self.literal(&compared.right);
        let kinds = [
            self.kinds(sides[0], left.as_deref()),
            match &literal {
                Some(literal) => literal_kind(literal),
                None => self.kinds(sides[1], right.as_deref()),
            },
        ];
        if !compare(kinds[0], compared.op, kinds[1]) {
            self.mismatch(compared, kinds, left.as_deref().unwrap_or_default());
            return;
        }
        if let (ast::Expr::Path(path), Some(Literal::Text(text)), Some(ends)) =
            (&compared.left, &literal, &left)
        {
            if compared.op == CompareOp::Eq {
                self.permitted(path, ends, text, &compared.right);
            }
            self.misspelt_date(path, text, &compared.right);
        }
    }

    fn matches(&mut self, path: &'a ast::Path, operand: &'a ast::MatchesOperand) {
        let ends = self.path(path).unwrap_or_default();
        let ast::MatchesOperand::List(items) = operand else {
            return;
        };
        // A path to a coded text continues to its code if the list has a value set.
        let is_value_set =
            |item: &ast::MatchesItem| matches!(item, ast::MatchesItem::Terminology(_));
        if ends.is_empty() || items.iter().any(is_value_set) {
            return;
        }
        for item in items {
            let ast::MatchesItem::Literal(written) = item else {
                continue;
            };
            let right = ast::Expr::Literal(written.clone());
            let (left, op) = (ast::Expr::Path(path.clone()), CompareOp::Eq);
            let value = value_of(written);
            let kinds = [union(&ends), literal_kind(&value)];
            if !compare(kinds[0], op, kinds[1]) {
                self.mismatch(&ast::Compare { left, op, right }, kinds, &ends);
            } else if let Literal::Text(text) = &value {
                self.permitted(path, &ends, text, &right);
                self.misspelt_date(path, text, &right);
            }
        }
    }

    fn like(&mut self, path: &'a ast::Path, whole: &ast::Condition) {
        let Some(ends) = self.path(path) else {
            return;
        };
        let found = union(&ends);
        // LIKE also reads whole texts and dates, which have no kind here.
        if found == 0 || found & !(NUMBER | BOOLEAN) != 0 {
            return;
        }
        let message = format!("LIKE compares texts, and this is {}", described(found));
        let help = "compare by `=`, `<` or `matches`";
        let diagnostic = Diagnostic::warning(TYPES, path.span(), message).with_help(help);
        let contrary = contrary::of_query(&self.ast.from, whole.clone());
        let is_certain = self.model_kinds(path) & !(NUMBER | BOOLEAN) == 0;
        self.warn(diagnostic, contrary, is_certain);
    }

    /// Checks the paths of an expression. Returns the ends of a path.
    fn ends(&mut self, expr: &'a ast::Expr) -> Option<Vec<State<'a>>> {
        match expr {
            ast::Expr::Path(path) => self.path(path),
            _ => {
                self.expr(expr);
                None
            }
        }
    }

    fn kinds(&self, expr: &ast::Expr, ends: Option<&[State<'_>]>) -> Kinds {
        match (expr, ends) {
            (ast::Expr::Path(_), Some(ends)) => union(ends),
            (ast::Expr::Call(call), _) => match function_named(&call.name.text) {
                Some(function) => match function.entry().result {
                    ValueType::Number => NUMBER,
                    ValueType::Boolean => BOOLEAN,
                    ValueType::Text => TEXT,
                    ValueType::Any => ANY,
                },
                None => ANY,
            },
            _ => ANY,
        }
    }

    /// Returns the kinds of the values of a path by the Reference Model alone.
    fn model_kinds(&self, path: &ast::Path) -> Kinds {
        let scope = self.scopes.iter().find(|scope| {
            scope
                .name
                .is_some_and(|name| name.eq_ignore_ascii_case(&path.variable.text))
        });
        let class = scope.and_then(|scope| Cls::parse_any_case(&scope.chain.last()?.class.text));
        let start = Classes::single(class.unwrap_or(Cls::ANY));
        let end = path.steps.iter().try_fold(start, |classes, step| {
            let behind = classes.step(Attr::parse(&step.attribute.text)?)?;
            let name = step.predicate.as_ref().and_then(|p| self.node_name(p));
            let class = name.and_then(|name| archetype_class(name.id));
            Some(class.map_or(behind.clone(), |class| behind.narrowed(class)))
        });
        end.map_or(ANY, |end| kinds(&end))
    }

    fn mismatch(&mut self, compared: &ast::Compare, found: [Kinds; 2], ends: &[State<'_>]) {
        let (span, contrary) = (expr_span(&compared.right), self.contrary(compared));
        let message = never(found, compared.op);
        let is_certain = match (&compared.left, &compared.right) {
            (ast::Expr::Path(path), ast::Expr::Path(other)) => {
                !compare(self.model_kinds(path), compared.op, self.model_kinds(other))
            }
            (ast::Expr::Path(path), _) => !compare(self.model_kinds(path), compared.op, found[1]),
            _ => true,
        };
        let diagnostic = Diagnostic::warning(TYPES, span, message);
        let diagnostic = with_conversion(diagnostic, compared, found, ends);
        self.warn(diagnostic, contrary, is_certain);
    }

    /// Returns the query for the rows in which a comparison is true.
    pub(super) fn contrary(&self, compared: &ast::Compare) -> ast::Query {
        let is_alone = matches!(
            compared.right,
            ast::Expr::Literal(_) | ast::Expr::Parameter(_)
        );
        if let (ast::Expr::Path(path), true) = (&compared.left, is_alone) {
            let named = |scope: &&super::Scope<'_>| {
                scope
                    .name
                    .is_some_and(|name| name.eq_ignore_ascii_case(&path.variable.text))
            };
            if let Some(scope) = self.scopes.iter().find(named) {
                let mut path = contrary::bare(path);
                if let Some(name) = scope.chain.last().and_then(|class| class.variable.clone()) {
                    path.variable = name;
                }
                let compared = ast::Compare {
                    left: ast::Expr::Path(path),
                    ..compared.clone()
                };
                let condition = ast::Condition::Compare(Box::new(compared));
                return contrary::of_condition(&scope.chain, condition);
            }
        }
        let condition = ast::Condition::Compare(Box::new(compared.clone()));
        contrary::of_query(&self.ast.from, condition)
    }

    /// Compares a text with the units, codes or texts that templates permit.
    fn permitted(&mut self, path: &ast::Path, ends: &[State<'a>], text: &str, right: &ast::Expr) {
        let external: Option<Vec<&str>> = ends.iter().map(State::external).collect();
        if let Some([terminology, ..]) = external.as_deref().filter(|_| is_node_code(text)) {
            let help =
                format!("templates permit codes of `{terminology}` here, none of an archetype");
            self.not_permitted(path, TERM, text, right, |found| found.with_help(help));
            return;
        }
        let lists: Option<Vec<Vec<&str>>> = ends.iter().map(State::texts).collect();
        let Some(lists) = lists.filter(|lists| !lists.is_empty()) else {
            return;
        };
        let known = order::distinct(lists.into_iter().flatten());
        if known.contains(&text) {
            return;
        }
        let label = |code: &str| ends.iter().find_map(|end| end.term(code));
        let near = nearest_of(text, &known, &label);
        let shown = |code: &str| match label(code) {
            Some(label) => format!("`{code}` ({label})"),
            None => format!("`{code}`"),
        };
        let help = match near {
            Some(near) => format!("did you mean {}?", shown(near)),
            None => {
                let all: Vec<String> = known.iter().take(LISTED).map(|k| shown(k)).collect();
                let more = if known.len() > LISTED { " …" } else { "" };
                format!("templates permit {}{more}", all.join(", "))
            }
        };
        let is_unit = path
            .steps
            .last()
            .is_some_and(|step| step.attribute.text == "units");
        let code = if is_unit { UNIT } else { TERM };
        let fix = near.filter(|_| matches!(right, ast::Expr::Literal(_)));
        self.not_permitted(path, code, text, right, |found| {
            let span = found.span;
            match fix {
                Some(near) => found.with_help(help).with_fix(span, quoted(near)),
                None => found.with_help(help),
            }
        });
    }

    /// Warns about a text that no template permits. `with_remedy` adds help and fix.
    fn not_permitted(
        &mut self,
        path: &ast::Path,
        code: &'static str,
        text: &str,
        right: &ast::Expr,
        with_remedy: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let what = if code == UNIT { "unit" } else { "value" };
        let span = expr_span(right);
        let message = format!("no template permits the {what} `{}` here", shortened(text));
        let diagnostic = with_remedy(Diagnostic::warning(code, span, message));
        let compared = ast::Compare {
            left: ast::Expr::Path(path.clone()),
            op: CompareOp::Eq,
            right: right.clone(),
        };
        let contrary = self.contrary(&compared);
        self.warn(diagnostic, contrary, false);
    }
}

fn union(ends: &[State<'_>]) -> Kinds {
    match ends {
        [] => ANY,
        _ => ends.iter().fold(0, |all, end| all | kinds(&end.classes)),
    }
}

/// Returns the permitted text that is probably meant: with the same letters and digits (`mmHg`), of
/// this name, of similar spelling, or the only one.
fn nearest_of<'k>(
    text: &str,
    known: &[&'k str],
    label: &dyn Fn(&str) -> Option<&'k str>,
) -> Option<&'k str> {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let wanted = plain(text);
    let is_same = |found: &str| plain(found) == wanted;
    let mut all = known.iter().copied();
    all.clone()
        .find(|k| is_same(k))
        .or_else(|| all.clone().find(|k| label(k).is_some_and(&is_same)))
        .or_else(|| nearest(text, &mut all.clone()))
        .or_else(|| all.next().filter(|_| known.len() == 1))
}

/// Adds the remedy of a comparison, after which its types compare: another literal, or the value of
/// an object.
fn with_conversion(
    diagnostic: Diagnostic,
    compared: &ast::Compare,
    found: [Kinds; 2],
    ends: &[State<'_>],
) -> Diagnostic {
    let op = compared.op;
    if let (0, ast::Expr::Path(path)) = (found[0], &compared.left) {
        let has = |attr| {
            let fits = |c: Classes| compare(kinds(&c), op, found[1]);
            ends.iter().all(|s| s.classes.step(attr).is_some_and(fits))
        };
        let known = [
            ("value", Attr::VALUE),
            ("code_string", Attr::CODE_STRING),
            ("id", Attr::ID),
        ];
        if let Some((name, _)) = known
            .into_iter()
            .find(|(_, attr)| !ends.is_empty() && has(*attr))
        {
            let end = Span::new(path.span().end, path.span().end);
            let help = format!("compare its attribute: `/{name}`");
            return diagnostic.with_help(help).with_fix(end, format!("/{name}"));
        }
        return diagnostic.with_help("compare one of its attributes");
    }
    if let ast::Expr::Literal(literal) = &compared.right
        && let Some((other, kind)) = respelt(&value_of(literal))
        && compare(found[0], op, kind)
    {
        let help = format!("did you mean `{other}`?");
        return diagnostic.with_help(help).with_fix(literal.at.0, other);
    }
    diagnostic.with_help("compare values of the same type")
}

/// Returns a literal of another type with the same text.
fn respelt(literal: &Literal) -> Option<(String, Kinds)> {
    Some(match literal {
        Literal::Text(text) if is_number(text.trim()) => (text.trim().to_owned(), NUMBER),
        Literal::Text(text) if text.parse::<bool>().is_ok() => (text.to_string(), BOOLEAN),
        Literal::Number(digits) => (quoted(digits), WORD),
        Literal::Boolean(flag) => (quoted(&flag.to_string()), WORD),
        _ => return None,
    })
}

/// Returns the message that values of classes never compare with a literal, if they do not.
pub(crate) fn mismatch(classes: &Classes, op: CompareOp, literal: &Literal) -> Option<String> {
    let found = [kinds(classes), literal_kind(literal)];
    (!compare(found[0], op, found[1])).then(|| never(found, op))
}

fn never(found: [Kinds; 2], op: CompareOp) -> String {
    let [left, right] = found.map(described);
    format!("{left} never compares with {right} by `{}`", op.text())
}

/// Returns the beginning of a text for a message.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
