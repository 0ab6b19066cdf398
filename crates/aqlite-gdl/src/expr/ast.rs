//! Syntax tree of expressions: names are texts, positions are byte offsets in the expression.

use crate::value::Value;
use aqlite_rm::diag::Span;
use std::ops::RangeInclusive;

/// A condition, or the right side of an assignment.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Expr {
    /// A literal, `null` included.
    Literal(Value),
    /// `$gt0009|label|.attribute`, `$currentDateTime.year`
    Variable(Variable),
    /// `/data[at0001]/items[at0004]/value/magnitude`, in predicates only.
    Path(String, Span),
    /// `$ref[1].url`: the number from 1, and the text that is read.
    Reference(usize, ReferenceText),
    /// `!a`, `not a`
    Not(Box<Expr>),
    /// `-a`
    Negate(Box<Expr>),
    /// `a + b`, `a == b`, …
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `floor(a)`, `max(a,b)`
    Call(Function, Vec<Expr>),
    /// `fired($gt0005)`
    Fired(Variable),
    /// `any[$a,$b] (condition)`; without a list all variables of the condition.
    Any(Vec<Variable>, Box<Expr>),
    /// `for_all(condition)`
    ForAll(Box<Expr>),
    /// `max(path)`, `min(path)`: the predicate that keeps one instance.
    Extreme {
        is_max: bool,
        path: String,
        span: Span,
    },
}

/// The text of a reference that an expression reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ReferenceText {
    Label,
    Address,
}

/// A variable as written.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Variable {
    /// The code without `$`, such as `gt0009`, `gt0002.1` or `currentDateTime`.
    pub code: String,
    /// The text between the bars.
    pub label: Option<String>,
    /// The name behind the dot.
    pub attribute: Option<String>,
    /// The position in the expression.
    pub span: Span,
}

/// The operators. [`Operator::precedence`] orders them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    IsA,
    IsNotA,
    Plus,
    Minus,
    Times,
    Divided,
    Modulo,
    Power,
}

/// The functions of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    Abs,
    Ceil,
    Exp,
    Floor,
    Log,
    Log10,
    Log1p,
    Round,
    Sqrt,
    Sin,
    Cos,
    Tan,
    Max,
    Min,
}

/// One statement of a rule's `then` part, or a default action.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action {
    /// `$gt0009.magnitude = …`
    Assign(Variable, Expr),
    /// `$gt0100.create(…;…)`
    Create(Variable, Vec<(Variable, Expr)>),
    /// `use_template($gt2022(…;…))`
    UseTemplate(Variable, Vec<(Variable, Expr)>),
    /// `use_template($t[if: $a; $v: $b,$c])`: one object for each index.
    UseTemplateEach(Variable, Vec<Variable>, Vec<(Variable, Vec<Variable>)>),
}

impl Operator {
    /// Returns the comparison with its sides exchanged: `<` becomes `>`.
    pub fn mirrored(self) -> Operator {
        use Operator::*;
        match self {
            Less => Greater,
            LessOrEqual => GreaterOrEqual,
            Greater => Less,
            GreaterOrEqual => LessOrEqual,
            same => same,
        }
    }

    /// Returns the precedence: a greater number binds more tightly.
    pub fn precedence(self) -> u8 {
        use Operator::*;
        match self {
            Or => 1,
            And => 2,
            Equal | Unequal | IsA | IsNotA => 3,
            Less | LessOrEqual | Greater | GreaterOrEqual => 4,
            Plus | Minus => 5,
            Times | Divided | Modulo => 6,
            Power => 7,
        }
    }
}

/// The functions by name, with the numbers of arguments that they take.
const FUNCTIONS: [(&str, Function, RangeInclusive<usize>); 15] = {
    use Function::*;
    const ONE: RangeInclusive<usize> = 1..=1;
    // The syntax bounds the number of operands of an expression.
    const SEVERAL: RangeInclusive<usize> = 1..=usize::MAX;
    [
        ("abs", Abs, ONE),
        ("ceil", Ceil, ONE),
        ("exp", Exp, ONE),
        ("floor", Floor, ONE),
        ("log", Log, ONE),
        ("ln", Log, ONE),
        ("log10", Log10, ONE),
        ("log1p", Log1p, ONE),
        ("round", Round, ONE),
        ("sqrt", Sqrt, ONE),
        ("sin", Sin, ONE),
        ("cos", Cos, ONE),
        ("tan", Tan, ONE),
        ("max", Max, SEVERAL),
        ("min", Min, SEVERAL),
    ]
};

impl Function {
    /// Returns the function of this name, in any letter case, and the numbers of arguments that it
    /// takes.
    pub fn parse(name: &str) -> Option<(Function, RangeInclusive<usize>)> {
        FUNCTIONS
            .iter()
            .find(|(n, ..)| n.eq_ignore_ascii_case(name))
            .map(|(_, function, arguments)| (*function, arguments.clone()))
    }
}

impl Action {
    /// Calls `visit` with every variable that is set, and with every variable that is read for it.
    pub fn variables<'a>(&'a self, visit: &mut dyn FnMut(&'a Variable)) {
        let mut pair = |target: &'a Variable, value: &'a Expr| {
            visit(target);
            value.variables(visit);
        };
        match self {
            Action::Assign(target, value) => pair(target, value),
            Action::Create(_, list) | Action::UseTemplate(_, list) => {
                list.iter().for_each(|(target, value)| pair(target, value))
            }
            Action::UseTemplateEach(..) => {}
        }
    }
}

impl Expr {
    /// Calls `visit` with the expression and everything in it, the outer before the inner.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        match self {
            Expr::Not(a) | Expr::Negate(a) | Expr::ForAll(a) | Expr::Any(_, a) => a.walk(visit),
            Expr::Binary(_, a, b) => {
                a.walk(visit);
                b.walk(visit);
            }
            Expr::Call(_, args) => args.iter().for_each(|a| a.walk(visit)),
            Expr::Literal(_)
            | Expr::Variable(_)
            | Expr::Path(..)
            | Expr::Reference(..)
            | Expr::Fired(_)
            | Expr::Extreme { .. } => {}
        }
    }

    /// Calls `visit` with every variable that is read.
    pub fn variables<'a>(&'a self, visit: &mut dyn FnMut(&'a Variable)) {
        self.walk(&mut |expr| match expr {
            Expr::Variable(v) => visit(v),
            Expr::Any(list, _) => list.iter().for_each(&mut *visit),
            _ => {}
        });
    }

    /// Calls `visit` with every variable beside a literal. If the literal is on the left, the
    /// operator is mirrored.
    pub fn pairs<'a>(&'a self, visit: &mut dyn FnMut(&'a Variable, Operator, &'a Value)) {
        self.walk(&mut |expr| {
            let Expr::Binary(operator, a, b) = expr else {
                return;
            };
            match (a.as_ref(), b.as_ref()) {
                (Expr::Variable(variable), Expr::Literal(value)) => {
                    visit(variable, *operator, value)
                }
                (Expr::Literal(value), Expr::Variable(variable)) => {
                    visit(variable, operator.mirrored(), value)
                }
                _ => {}
            }
        });
    }

    /// Calls `visit` with every literal except `null`.
    pub fn literals<'a>(&'a self, visit: &mut dyn FnMut(&'a Value)) {
        self.walk(&mut |expr| match expr {
            Expr::Literal(v) if !v.is_null() => visit(v),
            _ => {}
        });
    }
}
