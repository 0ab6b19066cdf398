//! The grammar of conditions, actions and predicates: precedence climbing over the tokens of
//! `token`.

use super::ast::{Action, Expr, Function, Operator, ReferenceText, Variable};
use super::token;
use crate::value::{Quantity, Value};
use aqlite_rm::diag::{Diagnostic, Span};
use nom::IResult;
use std::sync::Arc;

const MAX_DEPTH: usize = 64;
const MAX_OPERANDS: usize = 1_000;

/// A result whose problem has a span in bytes from the start of the expression.
type Result<T> = std::result::Result<T, Diagnostic>;

/// Parses a condition or a predicate. A text with a rest is refused.
pub(crate) fn condition(text: &str) -> Result<Expr> {
    let mut parser = Parser::new(text);
    let expr = parser.expression(0)?;
    parser.end().map(|()| expr)
}

/// Parses an action. A text with a rest is refused.
pub(crate) fn action(text: &str) -> Result<Action> {
    let mut parser = Parser::new(text);
    let action = parser.action()?;
    parser.end().map(|()| action)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    operands: usize,
    in_arguments: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        Parser {
            text,
            at: 0,
            depth: 0,
            operands: 0,
            in_arguments: false,
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Runs a token parser. On success it skips the token and the white space behind it.
    fn word<T>(&mut self, parsed: IResult<&'a str, T>) -> Option<T> {
        let (rest, value) = parsed.ok()?;
        self.at = self.text.len() - rest.len();
        self.skip();
        Some(value)
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = self.rest().starts_with(symbol);
        if found {
            self.at += symbol.len();
            self.skip();
        }
        found
    }

    /// Accepts a word in any letter case that is not the start of a longer name.
    fn accept_name(&mut self, name: &str) -> bool {
        let found = starts_with_name(self.rest(), name);
        if found {
            self.at += name.len();
            self.skip();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.accept(symbol) {
            Ok(())
        } else {
            Err(self.error(&format!("`{symbol}`")))
        }
    }

    fn error(&self, expected: &str) -> Diagnostic {
        let found: String = self.rest().chars().take(12).collect();
        let found = if found.is_empty() {
            "the end of the expression".to_owned()
        } else {
            format!("`{found}`")
        };
        let end = self.at + self.rest().chars().next().map_or(0, char::len_utf8);
        Diagnostic::error(
            "GDL0201",
            Span::new(self.at, end),
            format!("expected {expected}, found {found}"),
        )
    }

    fn end(&self) -> Result<()> {
        if self.rest().is_empty() {
            Ok(())
        } else {
            Err(self.error("an operator or the end of the expression"))
        }
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        self.operands += 1;
        // The depth bounds recursion, the number of operands the size of the tree.
        if self.depth > MAX_DEPTH || self.operands > MAX_OPERANDS {
            let message = format!(
                "nested deeper than {MAX_DEPTH} levels, or more than {MAX_OPERANDS} operands"
            );
            return Err(
                Diagnostic::error("GDL0202", Span::new(self.at, self.at + 1), message)
                    .with_help("split the expression into several rules"),
            );
        }
        Ok(())
    }

    /// Parses operators of at least a precedence, all left-associative.
    fn expression(&mut self, lowest_precedence: u8) -> Result<Expr> {
        self.skip();
        let start = self.at;
        let mut left = self.operand()?;
        while let Some((operator, end)) = self
            .operator()
            .filter(|(o, _)| o.precedence() >= lowest_precedence)
        {
            self.at = end;
            self.skip();
            // One level higher: operators of equal precedence associate to the left.
            let right = self.expression(operator.precedence() + 1)?;
            if matches!(operator, Operator::Plus | Operator::Minus) && lacks_unit(&left, &right) {
                let help = "write the unit behind both numbers";
                return Err(self.unclear(start, "has one unit for two numbers", help));
            }
            left = Expr::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    /// Returns the operator at the current position and its end, without consuming it.
    fn operator(&self) -> Option<(Operator, usize)> {
        use Operator::*;
        const SYMBOLS: [(&str, Operator); 16] = [
            ("||", Or),
            ("&&", And),
            ("==", Equal),
            ("!=", Unequal),
            ("<=", LessOrEqual),
            (">=", GreaterOrEqual),
            ("≤", LessOrEqual),
            ("≥", GreaterOrEqual),
            ("<", Less),
            (">", Greater),
            ("+", Plus),
            ("-", Minus),
            ("*", Times),
            ("/", Divided),
            ("%", Modulo),
            ("^", Power),
        ];
        const WORDS: [(&str, Operator); 3] = [("and", And), ("or", Or), ("is_a", IsA)];
        let rest = self.rest();
        // Longer symbols come first in the table: `<=` before `<`.
        if let Some((symbol, operator)) = SYMBOLS.iter().find(|(s, _)| rest.starts_with(s)) {
            return Some((*operator, self.at + symbol.len()));
        }
        // `!is_a` is one operator. `!` before any other word negates an operand.
        let negated = rest.strip_prefix('!').map(str::trim_start);
        let start = self.text.len() - negated.unwrap_or(rest).len();
        let (word, operator) = WORDS
            .iter()
            .find(|(word, _)| starts_with_name(self.text.get(start..).unwrap_or_default(), word))?;
        match (negated, operator) {
            (None, operator) => Some((*operator, start + word.len())),
            (Some(_), IsA) => Some((IsNotA, start + word.len())),
            (Some(_), _) => None,
        }
    }

    fn operand(&mut self) -> Result<Expr> {
        self.deeper()?;
        let start = self.at;
        let operand = self.operand_here();
        self.depth -= 1;
        match operand {
            Ok(Expr::Literal(Value::Quantity(q))) if ends_in_division(&q.unit) => {
                let help = "write spaces around `/` to divide";
                Err(self.unclear(start, "may be a unit or a quotient", help))
            }
            operand => operand,
        }
    }

    /// Returns the problem of quantities whose meaning is not clear, from their start to here.
    fn unclear(&self, start: usize, reason: &str, help: &str) -> Diagnostic {
        let found = self.text.get(start..self.at).unwrap_or_default().trim();
        let span = Span::new(start, start + found.len());
        Diagnostic::error("GDL0205", span, format!("`{found}` {reason}")).with_help(help)
    }

    fn operand_here(&mut self) -> Result<Expr> {
        let rest = self.rest();
        match rest.chars().next() {
            Some('$') => self.variable_or_reference(),
            Some('(') => self.brackets(),
            Some('/') => self.path().map(|(path, span)| Expr::Path(path, span)),
            Some('!') => {
                self.accept("!");
                self.operand().map(|a| Expr::Not(Box::new(a)))
            }
            // A sign directly before a number belongs to the literal, so that `-2|…|` is an
            // ordinal.
            Some('-') if rest.get(1..).is_some_and(|r| token::number(r).is_ok()) => {
                self.negative_literal()
            }
            Some('-') => {
                self.accept("-");
                self.operand().map(negated)
            }
            _ => self.named_or_literal(),
        }
    }

    /// `-5`, `-5,mmol/l`, `-2|local::at0001|x|`
    fn negative_literal(&mut self) -> Result<Expr> {
        if let Some(value @ Value::Ordinal(_)) =
            self.word(token::literal(self.rest(), self.in_arguments))
        {
            return Ok(Expr::Literal(value));
        }
        self.accept("-");
        let value = self.word(token::literal(self.rest(), self.in_arguments));
        let value = value.ok_or_else(|| self.error("a number"))?;
        Ok(negated(Expr::Literal(value)))
    }

    fn brackets(&mut self) -> Result<Expr> {
        let negative = token::negative(self.rest());
        if let Some(value) = self.word(negative) {
            return Ok(Expr::Literal(value));
        }
        let start = self.at;
        self.accept("(");
        // Inside brackets, a comma belongs to a unit again, not to the arguments around.
        let outer = std::mem::replace(&mut self.in_arguments, false);
        let inner = self.expression(0)?;
        self.in_arguments = outer;
        self.expect(")")?;
        // Within arguments, a unit behind a bracket would be the next argument.
        if outer {
            return Ok(inner);
        }
        match sum_of_numbers(&inner).zip(token::unit(self.rest()).ok()) {
            // `(0-0.25),mg`: some guides write a negative quantity like this, because their parsers
            // do not accept a sign.
            Some((magnitude, behind)) => {
                let precision =
                    token::precision_of_all(self.text.get(start..self.at).unwrap_or_default());
                let unit = self.word(Ok(behind)).unwrap_or_default();
                Ok(Expr::Literal(Value::Quantity(Quantity {
                    magnitude,
                    unit: Arc::from(unit),
                    precision,
                })))
            }
            None => Ok(inner),
        }
    }

    fn variable_or_reference(&mut self) -> Result<Expr> {
        if self.rest().starts_with("$ref[") {
            return self.reference();
        }
        self.variable().map(Expr::Variable)
    }

    fn reference(&mut self) -> Result<Expr> {
        self.accept("$ref[");
        let index = self
            .word(token::number(self.rest()))
            .ok_or_else(|| self.error("the number of a reference"))?;
        self.expect("]")?;
        let attribute = self.word(token::attribute(self.rest())).unwrap_or("label");
        let index = crate::value::integer(index)
            .and_then(|i| usize::try_from(i).ok())
            .unwrap_or_default();
        let text = match attribute.eq_ignore_ascii_case("url") {
            true => ReferenceText::Address,
            false => ReferenceText::Label,
        };
        Ok(Expr::Reference(index, text))
    }

    fn variable(&mut self) -> Result<Variable> {
        let start = self.at;
        let mut rest = self
            .rest()
            .strip_prefix('$')
            .ok_or_else(|| self.error("a variable such as `$gt0005`"))?;
        let mut take = |parser: fn(&'a str) -> IResult<&'a str, &'a str>| {
            parser(rest).ok().map(|(r, found)| {
                rest = r;
                found
            })
        };
        let code = take(token::code);
        let label = take(token::label);
        let attribute = take(token::attribute);
        let Some(code) = code else {
            return Err(self.error("a variable such as `$gt0005`"));
        };
        self.at = self.text.len() - rest.len();
        let span = Span::new(start, self.at);
        self.skip();
        Ok(Variable {
            code: code.to_owned(),
            label: label.map(str::to_owned),
            attribute: attribute.map(str::to_owned),
            span,
        })
    }

    fn named_or_literal(&mut self) -> Result<Expr> {
        if self.accept_name("null") {
            return Ok(Expr::Literal(Value::Null));
        }
        for (name, value) in [("true", true), ("false", false)] {
            if self.accept_name(name) {
                return Ok(Expr::Literal(Value::Boolean(value)));
            }
        }
        if self.accept_name("not") {
            return self.operand().map(|a| Expr::Not(Box::new(a)));
        }
        if self.accept_name("fired") {
            self.expect("(")?;
            let rule = self.variable()?;
            self.expect(")")?;
            return Ok(Expr::Fired(rule));
        }
        if self.accept_name("for_all") {
            return self.operand().map(|a| Expr::ForAll(Box::new(a)));
        }
        if self.accept_name("any") {
            return self.any();
        }
        if let Some(call) = self.call()? {
            return Ok(call);
        }
        if let Some(value) = self.word(token::literal(self.rest(), self.in_arguments)) {
            return Ok(Expr::Literal(value));
        }
        if self.accept_name("e") {
            return Ok(Expr::Literal(Value::Number(std::f64::consts::E)));
        }
        Err(self.error("a value"))
    }

    fn any(&mut self) -> Result<Expr> {
        let variables = if self.accept("[") {
            self.variables("]")?
        } else {
            Vec::new()
        };
        self.operand().map(|a| Expr::Any(variables, Box::new(a)))
    }

    /// Parses `$a, $b` up to the closing symbol.
    fn variables(&mut self, close: &str) -> Result<Vec<Variable>> {
        let mut list = vec![self.variable()?];
        while self.accept(",") {
            list.push(self.variable()?);
        }
        self.expect(close)?;
        Ok(list)
    }

    fn call(&mut self) -> Result<Option<Expr>> {
        let start = self.at;
        let name: IResult<&str, &str> = nom::character::complete::alphanumeric1(self.rest());
        let found = self.word(name);
        let name_span = Span::new(start, start + found.map_or(0, str::len));
        let function = found.and_then(Function::parse);
        let Some((function, counts)) = function.filter(|_| self.accept("(")) else {
            self.at = start;
            return Ok(None);
        };
        let is_best = matches!(function, Function::Max | Function::Min);
        if is_best && self.rest().starts_with('/') {
            let (path, span) = self.path()?;
            self.expect(")")?;
            let is_max = function == Function::Max;
            return Ok(Some(Expr::Extreme { is_max, path, span }));
        }
        let arguments = self.arguments(*counts.end())?;
        let is_at_end = self.accept(")");
        let has_unread = *counts.end() == 1 && arguments.iter().any(ends_in_argument);
        if is_at_end && !has_unread && counts.contains(&arguments.len()) {
            return Ok(Some(Expr::Call(function, arguments)));
        }
        let is_wrong_count = is_at_end || self.rest().starts_with(',');
        Err(match is_wrong_count {
            true => wrong_count(
                name_span,
                found.unwrap_or_default(),
                *counts.end(),
                arguments.is_empty(),
            ),
            false => self.error("`)`"),
        })
    }

    /// Parses the arguments of a function, at most `most` of them.
    fn arguments(&mut self, most: usize) -> Result<Vec<Expr>> {
        let mut arguments = Vec::new();
        if self.rest().starts_with(')') {
            return Ok(arguments);
        }
        // A comma separates several arguments. With one argument, it is that of a quantity, as in
        // `floor(($currentDateTime-$gt0003)/1,a)`.
        let outer = std::mem::replace(&mut self.in_arguments, most > 1);
        arguments.push(self.expression(0)?);
        while arguments.len() < most && self.accept(",") {
            arguments.push(self.expression(0)?);
        }
        self.in_arguments = outer;
        Ok(arguments)
    }

    /// Parses a path, which extends to white space, an operator or an unbalanced bracket.
    fn path(&mut self) -> Result<(String, Span)> {
        let mut open = 0_usize;
        let len = self.rest().char_indices().find(|(_, c)| {
            match c {
                '[' => open += 1,
                ']' => open = open.saturating_sub(1),
                _ => {}
            }
            // Operators inside brackets belong to the predicates of the path.
            open == 0 && (c.is_whitespace() || "()<>=!&|+,;".contains(*c))
        });
        let len = len.map_or(self.rest().len(), |(i, _)| i);
        let path = self.rest().get(..len).unwrap_or_default().to_owned();
        let span = Span::new(self.at, self.at + len);
        self.at += len;
        self.skip();
        if path.len() < 2 || open > 0 {
            self.at = span.start;
            return Err(self.error("a path such as `/data/events/time`"));
        }
        Ok((path, span))
    }

    fn action(&mut self) -> Result<Action> {
        self.skip();
        if self.accept_name("use_template") {
            self.expect("(")?;
            let action = self.use_template()?;
            self.expect(")")?;
            return Ok(action);
        }
        let mut target = self.variable()?;
        let is_create = target.attribute.as_deref() == Some("create");
        if (is_create || target.attribute.is_none()) && self.accept("(") {
            target.attribute = None;
            return Ok(Action::Create(target, self.assignments(")")?));
        }
        self.assignment_to(target)
            .map(|(v, e)| Action::Assign(v, e))
    }

    fn assignment_to(&mut self, target: Variable) -> Result<(Variable, Expr)> {
        if self.rest().starts_with("==") {
            let message = "an action compares where it should assign".to_owned();
            let help = "write `=` to assign; `==` compares";
            return Err(
                Diagnostic::error("GDL0203", Span::new(self.at, self.at + 2), message)
                    .with_help(help),
            );
        }
        self.expect("=")?;
        Ok((target, self.expression(0)?))
    }

    /// Parses `$a=1;$b=2` up to the closing symbol.
    fn assignments(&mut self, close: &str) -> Result<Vec<(Variable, Expr)>> {
        let mut list = Vec::new();
        while !self.accept(close) {
            let target = self.variable()?;
            list.push(self.assignment_to(target)?);
            if !self.accept(";") && !self.rest().starts_with(close) {
                return Err(self.error(&format!("`;` or `{close}`")));
            }
        }
        Ok(list)
    }

    fn use_template(&mut self) -> Result<Action> {
        let template = self.variable()?;
        if self.accept("(") {
            return Ok(Action::UseTemplate(template, self.assignments(")")?));
        }
        if !self.accept("[") {
            return Ok(Action::UseTemplate(template, Vec::new()));
        }
        let (mut conditions, mut columns) = (Vec::new(), Vec::new());
        loop {
            if self.accept_name("if") || self.accept("if:") {
                self.accept(":");
                conditions = self.list()?;
            } else {
                let target = self.variable()?;
                self.expect(":")?;
                columns.push((target, self.list()?));
            }
            if !self.accept(";") {
                break;
            }
        }
        self.expect("]")?;
        Ok(Action::UseTemplateEach(template, conditions, columns))
    }

    fn list(&mut self) -> Result<Vec<Variable>> {
        let mut list = vec![self.variable()?];
        while self.accept(",") {
            list.push(self.variable()?);
        }
        Ok(list)
    }
}

/// Returns an operand with a sign before it. The sign belongs to a literal, also to one in brackets:
/// `-(2.50),mg` has the precision of `-2.50,mg`.
fn negated(operand: Expr) -> Expr {
    match operand {
        Expr::Literal(Value::Number(n)) => Expr::Literal(Value::Number(-n)),
        Expr::Literal(Value::Quantity(q)) => Expr::Literal(Value::Quantity(Quantity {
            magnitude: -q.magnitude,
            ..q
        })),
        other => Expr::Negate(Box::new(other)),
    }
}

/// Returns whether one of two literals is a quantity with a unit, and the other a number.
fn lacks_unit(a: &Expr, b: &Expr) -> bool {
    let is_pair = |a: &Expr, b: &Expr| match (a, b) {
        (Expr::Literal(Value::Quantity(q)), Expr::Literal(Value::Number(_))) => !q.unit.is_empty(),
        _ => false,
    };
    is_pair(a, b) || is_pair(b, a)
}

/// Returns whether a unit may be a division by a number: `mg/2`.
fn ends_in_division(unit: &str) -> bool {
    let divisor = unit.rsplit_once('/').map(|(_, divisor)| divisor);
    divisor.is_some_and(|d| d.parse::<f64>().is_ok())
}

/// Returns the problem of a function whose number of arguments is wrong. `most` is the number that
/// it takes at most.
fn wrong_count(span: Span, name: &str, most: usize, is_too_few: bool) -> Diagnostic {
    let takes = match most {
        1 => "one argument",
        _ => "one argument or more",
    };
    let found = if is_too_few { "none" } else { "more" };
    let message = format!("`{name}` takes {takes}, found {found}");
    let help = format!("write `{name}($gt0005)`");
    Diagnostic::error("GDL0204", span, message).with_help(help)
}

/// Returns whether an argument has a further one at its end that reads like a part of a literal: a
/// quantity with a number as its unit (`1,2`), or a proportion (`1,2,3`).
fn ends_in_argument(argument: &Expr) -> bool {
    match argument {
        Expr::Literal(Value::Quantity(q)) => q.unit.parse::<f64>().is_ok(),
        Expr::Literal(Value::Proportion(_)) => true,
        Expr::Binary(_, _, last) | Expr::Negate(last) => ends_in_argument(last),
        _ => false,
    }
}

/// Returns whether a text starts with a word, in any letter case, that is not the start of a longer
/// name.
fn starts_with_name(text: &str, name: &str) -> bool {
    text.get(..name.len())
        .is_some_and(|word| word.eq_ignore_ascii_case(name))
        && !text
            .get(name.len()..)
            .unwrap_or_default()
            .starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
}

/// Returns the value of an expression that only adds and subtracts numbers.
fn sum_of_numbers(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(Value::Number(n)) => Some(*n),
        Expr::Negate(a) => sum_of_numbers(a).map(|n| -n),
        Expr::Binary(Operator::Plus, a, b) => Some(sum_of_numbers(a)? + sum_of_numbers(b)?),
        Expr::Binary(Operator::Minus, a, b) => Some(sum_of_numbers(a)? - sum_of_numbers(b)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints the expression with all brackets.
    fn shown(expr: &Expr) -> String {
        match expr {
            Expr::Literal(Value::Number(n)) => n.to_string(),
            Expr::Literal(Value::Null) => "null".into(),
            Expr::Literal(v) => v.rm_type().into(),
            Expr::Variable(v) => format!(
                "${}{}",
                v.code,
                v.attribute
                    .as_ref()
                    .map_or(String::new(), |a| format!(".{a}"))
            ),
            Expr::Not(a) => format!("!{}", shown(a)),
            Expr::Negate(a) => format!("-{}", shown(a)),
            Expr::Binary(o, a, b) => format!("({} {o:?} {})", shown(a), shown(b)),
            Expr::Call(f, a) => format!(
                "{f:?}({})",
                a.iter().map(shown).collect::<Vec<_>>().join(",")
            ),
            Expr::Fired(v) => format!("fired({})", v.code),
            Expr::Extreme { is_max, path, .. } => {
                format!("{}({path})", if *is_max { "max" } else { "min" })
            }
            Expr::Any(v, a) => format!("any{}{}", v.len(), shown(a)),
            Expr::Path(p, _) => p.clone(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn precedence_and_association() {
        for (text, expected) in [
            ("1-2-3", "((1 Minus 2) Minus 3)"),
            ("2^3^2", "((2 Power 3) Power 2)"),
            ("1+2*3^2", "(1 Plus (2 Times (3 Power 2)))"),
            (
                "$gt0001|a && (b|!=null&&$gt2.value>-1||fired($gt3)",
                "((($gt0001 Unequal null) And ($gt2.value Greater -1)) Or fired(gt3))",
            ),
            ("$gt1>=(-9),mmol/l", "($gt1 GreaterOrEqual DV_QUANTITY)"),
            ("$gt0002.1.magnitude-4.2", "($gt0002.1.magnitude Minus 4.2)"),
            ("!fired($gt3)", "!fired(gt3)"),
            ("max($gt1,7)+e", "(Max($gt1,7) Plus 2.718281828459045)"),
            ("max(/data/events/time)", "max(/data/events/time)"),
            (
                "/data[at0001]/items[at0004]/value/magnitude > 5",
                "(/data[at0001]/items[at0004]/value/magnitude Greater 5)",
            ),
            ("any[$gt1, $gt2]($gt1 > $gt2)", "any2($gt1 Greater $gt2)"),
            (
                "$gt1 == local::at0001|a|||$gt2==5,a",
                "(($gt1 Equal DV_CODED_TEXT) Or ($gt2 Equal DV_QUANTITY))",
            ),
            ("$gt1 is_a local::gt5|x|", "($gt1 IsA DV_CODED_TEXT)"),
            (
                "$gt1 ! is_a local::gt5|x| OR $gt2 And $gt3",
                "(($gt1 IsNotA DV_CODED_TEXT) Or ($gt2 And $gt3))",
            ),
        ] {
            assert_eq!(
                condition(text).map(|e| shown(&e)),
                Ok(expected.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn actions() {
        assert!(matches!(
            action("$gt5|Score|.magnitude=0"),
            Ok(Action::Assign(..))
        ));
        assert!(
            matches!(action("$gt100.create($gt5.unit='kg';$gt5.magnitude=80)"), Ok(Action::Create(_, list)) if list.len() == 2)
        );
        assert!(
            matches!(action("use_template($gt1002($gt2000=2013-04-20;$gt2001='x'))"), Ok(Action::UseTemplate(_, list)) if list.len() == 2)
        );
        assert!(
            matches!(action("use_template($t[if: $b1,$b2; $v|x|: $a,$b; $w: $c,$d])"), Ok(Action::UseTemplateEach(_, c, l)) if (c.len(), l.len()) == (2, 2))
        );
    }

    #[test]
    fn problems_have_a_place() {
        assert_eq!(condition("$gt1 ==").unwrap_err().span.start, 7);
        assert_eq!(condition("($gt1 == 5").unwrap_err().code, "GDL0201");
        assert_eq!(condition(&"(".repeat(10_000)).unwrap_err().code, "GDL0202");
        assert_eq!(action("$gt1 == 5").unwrap_err().code, "GDL0203");
        for text in [
            "$gt1 == 5)",
            "$gt1 == 5;",
            "$gt1 == 5 'kg'",
            "$gt1 == 5 !",
            "$gt1 == 5 6",
            "$gt1 == 5 .",
        ] {
            assert_eq!(
                condition(text).unwrap_err().span.start,
                9 + usize::from(text.contains(" 5 ")),
                "{text}"
            );
        }
        assert_eq!(
            condition(&format!("{}$a", "!".repeat(10_000)))
                .unwrap_err()
                .code,
            "GDL0202"
        );
    }
}
