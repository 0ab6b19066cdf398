//! The compiled form of a guide: slots, bindings, conditions, actions and operations.

use crate::eval::Place;
use crate::expr::ast::{Function, Operator};
use crate::guide::Guide;
use crate::value::Value;
use aqlite_rm::diag::Diagnostic;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The index of an operation in [`CompiledGuide::ops`].
pub(crate) type OpId = u32;

/// A guide that is ready to run. It is immutable and can be shared.
#[derive(Clone, Debug)]
pub struct CompiledGuide {
    pub(crate) guide: Guide,
    pub(crate) slots: Vec<VariableInfo>,
    /// The slot of each variable by its code.
    pub(crate) slot_index: BTreeMap<String, usize>,
    pub(crate) ops: Vec<Op>,
    pub(crate) constants: Vec<Value>,
    pub(crate) terms: Vec<Vec<Option<Arc<str>>>>,
    pub(crate) term_index: HashMap<String, usize>,
    pub(crate) bindings: Vec<BindingPlan>,
    pub(crate) pre_conditions: Vec<ConditionPlan>,
    pub(crate) default_actions: Vec<ActionPlan>,
    pub(crate) rules: Vec<RulePlan>,
    /// The statements that cannot be read. Each run has a note for each of them.
    pub(crate) unread: Vec<Place>,
    /// Problems of a guide that can run in spite of them.
    pub problems: Vec<Diagnostic>,
}

/// Bytes of memory for an operation: the node that was parsed, the operation with its constant, and
/// the overhead of the allocator.
const OPERATION_BYTES: usize = 500;

/// Bytes of memory for a byte of the other parts of a guide, whose texts have positions and keys.
const TEXT_COPIES: usize = 5;

impl CompiledGuide {
    /// Returns the approximate bytes of memory of the guide, given the length of its text.
    pub fn bytes(&self, text: usize) -> usize {
        TEXT_COPIES * text + OPERATION_BYTES * self.ops.len()
    }
}

/// The static facts about a variable.
#[derive(Clone, Debug)]
pub(crate) struct VariableInfo {
    pub code: Arc<str>,
    /// Whether a rule or default action can set the variable.
    pub assignable: bool,
    /// The class of the variable, if the guide states it or sets a unit or precision: a plain number
    /// becomes a quantity (`Some(true)`) or a count (`Some(false)`).
    pub quantity: Option<bool>,
    /// The indexes of the bindings whose instances have the variable.
    pub bindings: Vec<usize>,
    /// Whether a run may read values of the variable before the last one.
    pub is_listed: bool,
}

/// The columns and predicates of one binding.
#[derive(Clone, Debug)]
pub(crate) struct BindingPlan {
    /// Code, model and template, as results contain them.
    pub head: BindingHead,
    pub columns: Vec<Column>,
    /// The predicates: filters first, then those that keep a single instance.
    pub predicates: Vec<Predicate>,
    /// The assignable variables of the binding, as pairs of column and slot.
    pub outputs: Vec<(usize, usize)>,
    /// The elements whose null flavor a statement reads.
    pub null_flavors: Vec<NullFlavorColumn>,
}

/// The null flavor of an element that feeds a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NullFlavorColumn {
    /// The column of the null flavor.
    pub column: usize,
    /// The column of the value of the element.
    pub value: usize,
    /// The slot of the variable.
    pub slot: usize,
}

/// The part of a binding that results repeat.
#[derive(Clone, Debug)]
pub(crate) struct BindingHead {
    pub id: Arc<str>,
    pub model_id: Arc<str>,
    /// The template, if it differs from the archetype: some guides repeat the archetype id here.
    pub template_id: Option<Arc<str>>,
}

/// A value that is read from each instance.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub path: String,
    /// Code and path of the variable as written.
    pub named: Option<(Arc<str>, Arc<str>)>,
    /// The slot of the variable that the column feeds. `None` for a column that only predicates
    /// read.
    pub slot: Option<usize>,
    /// Whether a query can read the path. Otherwise the data have no value there.
    pub is_readable: bool,
}

impl Column {
    /// Creates a column that feeds no variable.
    pub fn of_path(path: String) -> Column {
        Column {
            path,
            named: None,
            slot: None,
            is_readable: true,
        }
    }
}

/// A predicate of a binding.
#[derive(Clone, Debug)]
pub(crate) enum Predicate {
    /// Keeps the instances for which the condition is true: one operand of the AND of a predicate.
    Filter {
        /// The operation. `None` for a condition that cannot be read: it keeps nothing.
        op: Option<OpId>,
        /// The index of the predicate in its binding.
        source: usize,
    },
    /// Keeps the instance with the greatest (or least) point in time.
    Extreme {
        is_max: bool,
        column: usize,
        attribute: Attribute,
        /// The index of the predicate in its binding.
        source: usize,
    },
}

/// A condition of a rule or a precondition of the guide.
#[derive(Clone, Debug)]
pub(crate) struct ConditionPlan {
    /// The operation. `None` for a condition that cannot be read: it is never true.
    pub op: Option<OpId>,
    pub text: Arc<str>,
    /// The slots of the variables that the condition reads.
    pub reads: Vec<usize>,
}

/// A rule. [`CompiledGuide::rules`] is sorted by priority.
#[derive(Clone, Debug)]
pub(crate) struct RulePlan {
    pub id: Arc<str>,
    pub when: Vec<ConditionPlan>,
    pub then: Vec<ActionPlan>,
    /// The index of the rule in the guide, which leads to its cards.
    pub source: usize,
    /// The values of the template of each suggested action, in the order of the cards.
    pub card_values: Vec<Vec<(String, OpId)>>,
}

/// An action.
#[derive(Clone, Debug)]
pub(crate) enum ActionPlan {
    /// Sets a variable or one of its attributes.
    Assign(Assign),
    /// Makes a new instance of a binding.
    Create {
        binding: Option<usize>,
        values: Vec<Assign>,
    },
    /// Makes one resource.
    UseTemplate {
        template: usize,
        values: Vec<(String, OpId)>,
    },
    /// Makes one resource for each index of the variables.
    UseTemplateEach {
        template: usize,
        conditions: Vec<usize>,
        values: Vec<(String, Vec<usize>)>,
    },
    /// A statement that cannot be read, or a template that does not exist. It has no effect.
    Nothing,
}

/// `$slot.attribute = value`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assign {
    pub slot: usize,
    pub attribute: Attribute,
    pub value: OpId,
}

/// An operation. Operands precede it in the arena, so evaluation cannot loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Constant(u32),
    Read(usize, Attribute),
    Now(Attribute),
    Today(Attribute),
    Column(usize, Attribute),
    /// The text of a guide term in the language of the run.
    Term(usize),
    Not(OpId),
    Negate(OpId),
    Binary(Operator, OpId, OpId),
    /// `x == null`, or `x != null`.
    IsNull {
        operand: OpId,
        is_equal: bool,
    },
    Call(Function, OpId),
    /// `max` or `min` of two values. Longer lists are nested.
    Extreme {
        is_max: bool,
        left: OpId,
        right: OpId,
    },
    Fired(usize),
    /// A variable of `any` or `for_all`, and whether it is read by instance: another variable of
    /// the list has the same bindings.
    ListVariable {
        slot: usize,
        by_instance: bool,
    },
    /// `any`: first variable, number of variables, condition. The variables are `ListVariable` operations
    /// directly before the condition.
    Any(OpId, u32, OpId),
    ForAll(OpId, u32, OpId),
}

/// An attribute of a value that a statement reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attribute {
    Whole,
    Magnitude,
    Unit,
    Precision,
    Value,
    Code,
    Terminology,
    Symbol,
    /// The text of a code.
    Label,
    Numerator,
    Denominator,
    Type,
    Year,
    Month,
    Day,
    String,
    Count,
    Sum,
    NullFlavor,
}

impl Attribute {
    /// Returns the attribute of this name. The names of GDL1, of GDL2 and of RM paths are accepted.
    pub fn parse(name: &str) -> Option<Attribute> {
        use Attribute::*;
        const NAMES: [(&str, Attribute); 24] = [
            ("magnitude", Magnitude),
            ("unit", Unit),
            ("units", Unit),
            ("precision", Precision),
            ("value", Value),
            ("code", Code),
            ("code_string", Code),
            ("defining_code/code_string", Code),
            // The path form is how GDL1 guides write a code.
            ("terminologyId", Terminology),
            ("terminology", Terminology),
            ("symbol", Symbol),
            ("numerator", Numerator),
            ("denominator", Denominator),
            ("type", Type),
            ("year", Year),
            ("month", Month),
            ("day", Day),
            ("string", String),
            ("text", Label),
            ("label", Label),
            ("count", Count),
            ("sum", Sum),
            ("null_flavor", NullFlavor),
            ("null_flavour", NullFlavor),
        ];
        NAMES.iter().find(|(n, _)| *n == name).map(|(_, a)| *a)
    }
}
