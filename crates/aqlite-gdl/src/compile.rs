//! Compilation of a guide: variables become indexes, expressions operations of one arena.

use super::eval::Place;
use super::expr::ast::{Action, Expr, Function, Operator, ReferenceText, Variable};
use super::guide::{Binding, Condition, Direction, Element, Guide, MAX_PROBLEMS, Rule, Step};
use super::value::Value;
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::order;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

mod lists;
mod paths;
mod plan;

pub(crate) use paths::split_path;
pub use plan::CompiledGuide;
pub(crate) use plan::{
    ActionPlan, Assign, Attribute, BindingHead, BindingPlan, Column, ConditionPlan,
    NullFlavorColumn, Op, OpId, Predicate, RulePlan, VariableInfo,
};

impl Guide {
    /// Compiles the guide. A name that cannot be resolved becomes a problem of the compiled guide,
    /// not a failure: an unknown variable or attribute is always null.
    pub fn compile(&self) -> CompiledGuide {
        let mut compiler = Compiler::new(self);
        compiler.bindings();
        let mut compiled = compiler.guide_body();
        compiled
            .problems
            .splice(0..0, self.problems.iter().cloned());
        super::lint::check(&mut compiled);
        // The limit applies after sorting, so that the first problems in the file remain.
        order::sort_by_key(&mut compiled.problems, |p| p.span.start);
        compiled.problems.truncate(MAX_PROBLEMS);
        compiled
    }
}

struct Compiler<'g> {
    out: CompiledGuide,
    guide: &'g Guide,
    slot_index: HashMap<&'g str, usize>,
    rule_index: HashMap<&'g str, usize>,
    /// The indexes of constants by digest, so that equal constants are stored once.
    constants: HashMap<u64, Vec<usize>>,
    /// The operations of references, by the number of the reference and by the text that is read.
    references: HashMap<(usize, ReferenceText), OpId>,
    /// The indexes of bindings by code. The first of equal codes wins.
    binding_index: HashMap<&'g str, usize>,
    template_index: HashMap<&'g str, usize>,
    /// The index of the binding whose predicates are being compiled.
    binding: usize,
    /// The columns of that binding by path. Empty until the first lookup.
    columns: HashMap<String, usize>,
    /// The position of the current statement in the file.
    span: Span,
}

impl<'g> Compiler<'g> {
    fn new(guide: &'g Guide) -> Compiler<'g> {
        let rules = rules_by_priority(guide);
        let of_rule = |plan: &RulePlan| guide.rules.get(plan.source);
        let rule_index = rules.iter().enumerate();
        let rule_index = rule_index.filter_map(|(i, plan)| Some((of_rule(plan)?.id.as_str(), i)));
        let mut compiler = Compiler {
            rule_index: rule_index.collect(),
            out: CompiledGuide {
                guide: guide.clone(),
                slots: Vec::new(),
                slot_index: BTreeMap::new(),
                ops: Vec::new(),
                constants: Vec::new(),
                terms: Vec::new(),
                term_index: HashMap::new(),
                bindings: Vec::new(),
                pre_conditions: Vec::new(),
                default_actions: Vec::new(),
                unread: unread(guide, &rules),
                rules,
                problems: Vec::new(),
            },
            guide,
            slot_index: HashMap::new(),
            constants: HashMap::new(),
            references: HashMap::new(),
            binding_index: first_places(guide.bindings.iter().map(|b| b.id.as_str())),
            template_index: first_places(guide.templates.iter().map(|t| t.id.as_str())),
            binding: 0,
            columns: HashMap::new(),
            span: Span::default(),
        };
        compiler.terms();
        compiler
    }

    fn terms(&mut self) {
        let languages = self.guide.terms.len();
        for (i, definition) in self.guide.terms.iter().enumerate() {
            for term in &definition.terms {
                let next = self.out.terms.len();
                // A term that occurs in several languages has one index.
                let index = *self.out.term_index.entry(term.id.clone()).or_insert(next);
                if index == next {
                    self.out.terms.push(vec![None; languages]);
                }
                if let Some(text) = self.out.terms.get_mut(index).and_then(|t| t.get_mut(i)) {
                    *text = Some(Arc::from(term.text.as_str()));
                }
            }
        }
    }

    fn slot(&mut self, code: &'g str) -> usize {
        let next = self.out.slots.len();
        let index = *self.slot_index.entry(code).or_insert(next);
        if index == next {
            self.out.slots.push(VariableInfo {
                code: Arc::from(code),
                assignable: false,
                quantity: None,
                bindings: Vec::new(),
                is_listed: false,
            });
        }
        index
    }

    fn bindings(&mut self) {
        let guide = self.guide;
        for binding in &guide.bindings {
            let columns = binding.elements.iter().map(|e| self.bound_column(e));
            let mut columns: Vec<Column> = columns.collect();
            if binding.direction != Direction::Output {
                self.check_paths(binding, &mut columns);
            }
            // Some guides repeat the archetype id as template id. It names no template.
            let template_id = binding.template_id.as_deref();
            let template_id = template_id.filter(|t| super::bind::class_of(t).is_none());
            let head = BindingHead {
                id: Arc::from(binding.id.as_str()),
                model_id: Arc::from(binding.model_id.as_str()),
                template_id: template_id.map(Arc::from),
            };
            self.out.bindings.push(BindingPlan {
                head,
                columns,
                predicates: Vec::new(),
                outputs: Vec::new(),
                null_flavors: Vec::new(),
            });
        }
        for variable in &guide.internal_variables {
            let slot = self.slot(&variable.id);
            let class = format!("DV_{}", variable.data_type.to_ascii_uppercase());
            if let Some(info) = self.out.slots.get_mut(slot) {
                info.quantity = is_quantity(&class);
            }
        }
    }

    /// Returns the column of an element, whose values are those of a variable.
    fn bound_column(&mut self, element: &'g Element) -> Column {
        let slot = self.slot(&element.id);
        let quantity = element.data_type.as_deref().and_then(is_quantity);
        if let Some(info) = self.out.slots.get_mut(slot) {
            info.quantity = info.quantity.or(quantity);
            info.bindings.push(self.out.bindings.len());
        }
        let named = (
            Arc::from(element.id.as_str()),
            Arc::from(element.path.as_str()),
        );
        Column {
            path: super::bind::normal_path(&element.path),
            named: Some(named),
            slot: Some(slot),
            // An element without a path has no value.
            is_readable: !element.path.is_empty(),
        }
    }

    fn guide_body(mut self) -> CompiledGuide {
        let guide = self.guide;
        for (i, binding) in guide.bindings.iter().enumerate() {
            self.binding = i;
            self.columns.clear();
            self.predicates(binding);
        }
        // No binding: a path outside of a predicate is a problem from here on.
        self.binding = usize::MAX;
        self.out.pre_conditions = guide.pre_conditions.iter().map(|c| self.test(c)).collect();
        self.out.default_actions = self.steps(&guide.default_actions);
        for i in 0..self.out.rules.len() {
            let source = self.out.rules.get(i).map(|plan| plan.source);
            if let Some(rule) = source.and_then(|source| guide.rules.get(source)) {
                self.rule(i, rule);
            }
        }
        self.quantities();
        self.outputs();
        self.null_flavors();
        let slots = self.slot_index.iter();
        self.out.slot_index = order::map(slots.map(|(code, slot)| ((*code).to_owned(), *slot)));
        self.mark_lists();
        self.out
    }

    fn rule(&mut self, index: usize, rule: &'g Rule) {
        let when = rule.when.iter().map(|c| self.test(c)).collect();
        let then = self.steps(&rule.then);
        let card_values = self.card_values(rule);
        if let Some(plan) = self.out.rules.get_mut(index) {
            plan.when = when;
            plan.then = then;
            plan.card_values = card_values;
        }
    }

    fn outputs(&mut self) {
        for (plan, binding) in self.out.bindings.iter_mut().zip(&self.guide.bindings) {
            if binding.direction == Direction::Input {
                continue;
            }
            let assignable = |slot: usize| self.out.slots.get(slot).is_some_and(|s| s.assignable);
            let slots = plan
                .columns
                .iter()
                .enumerate()
                .filter_map(|(i, c)| c.slot.map(|s| (i, s)));
            plan.outputs = slots.filter(|(_, s)| assignable(*s)).collect();
        }
    }

    /// Adds a column for each null flavor that a statement reads. Other guides do not query any.
    fn null_flavors(&mut self) {
        let read: HashSet<usize> = self.out.ops.iter().filter_map(null_flavor_read).collect();
        for plan in &mut self.out.bindings {
            let columns = plan.columns.iter().enumerate();
            let elements = columns.filter_map(|(value, column)| {
                let slot = column.slot.filter(|slot| read.contains(slot))?;
                let path = super::bind::null_flavor_path(&column.path)?;
                let is_readable = column.is_readable;
                let flavor = Column {
                    is_readable,
                    ..Column::of_path(path)
                };
                Some((value, slot, flavor))
            });
            for (value, slot, flavor) in elements.collect::<Vec<_>>() {
                let column = plan.columns.len();
                plan.columns.push(flavor);
                plan.null_flavors.push(NullFlavorColumn {
                    column,
                    value,
                    slot,
                });
            }
        }
    }

    fn predicates(&mut self, binding: &'g Binding) {
        let (mut filters, mut extremes) = (Vec::new(), Vec::new());
        for (source, condition) in binding.predicates.iter().enumerate() {
            self.span = condition.span;
            match &condition.expr {
                Some(Expr::Extreme { is_max, path, .. }) => {
                    let (column, attribute) = self.column(path);
                    extremes.push(Predicate::Extreme {
                        is_max: *is_max,
                        column,
                        attribute,
                        source,
                    });
                }
                Some(expr) => {
                    for conjunct in conjuncts(expr) {
                        let op = Some(self.expr(conjunct));
                        filters.push(Predicate::Filter { op, source });
                    }
                }
                None => filters.push(Predicate::Filter { op: None, source }),
            }
        }
        filters.append(&mut extremes);
        if let Some(plan) = self.out.bindings.get_mut(self.binding) {
            plan.predicates = filters;
        }
    }

    fn test(&mut self, condition: &'g Condition) -> ConditionPlan {
        self.span = condition.span;
        let (mut reads, mut seen) = (Vec::new(), HashSet::new());
        let op = condition.expr.as_ref().map(|e| self.expr(e));
        if let Some(expr) = &condition.expr {
            expr.variables(&mut |v| {
                if let Some(slot) = self
                    .slot_index
                    .get(v.code.as_str())
                    .filter(|slot| seen.insert(**slot))
                {
                    reads.push(*slot);
                }
            });
        }
        ConditionPlan {
            op,
            text: Arc::from(condition.text.as_str()),
            reads,
        }
    }

    /// Marks the variables of which any statement sets unit or precision. They are quantities from
    /// the start, because a rule may set the unit after another has set the magnitude.
    fn quantities(&mut self) {
        let targets = |step: &'g Step| match &step.action {
            Some(Action::Assign(v, _)) => vec![v],
            Some(Action::Create(_, list)) => list.iter().map(|(v, _)| v).collect(),
            _ => Vec::new(),
        };
        let says_quantity =
            |v: &&Variable| matches!(v.attribute.as_deref(), Some("unit" | "units" | "precision"));
        let guide = self.guide;
        for variable in guide.steps().flat_map(targets).filter(says_quantity) {
            let slot = self.slot_index.get(variable.code.as_str());
            if let Some(info) = slot.and_then(|slot| self.out.slots.get_mut(*slot)) {
                info.quantity = Some(true);
            }
        }
    }

    fn steps(&mut self, steps: &'g [Step]) -> Vec<ActionPlan> {
        steps.iter().map(|s| self.step(s)).collect()
    }

    fn step(&mut self, step: &'g Step) -> ActionPlan {
        self.span = step.span;
        match &step.action {
            None => ActionPlan::Nothing,
            Some(Action::Assign(v, e)) => self
                .assign(v, e)
                .map_or(ActionPlan::Nothing, ActionPlan::Assign),
            Some(Action::Create(v, list)) => {
                let binding = self.created_binding(v);
                let values = list.iter();
                let values = values.filter_map(|(v, e)| self.assign(v, e));
                ActionPlan::Create {
                    binding,
                    values: values.collect(),
                }
            }
            Some(Action::UseTemplate(v, list)) => match self.template(v) {
                Some(template) => ActionPlan::UseTemplate {
                    template,
                    values: self.named_values(list),
                },
                None => ActionPlan::Nothing,
            },
            Some(Action::UseTemplateEach(v, conditions, list)) => match self.template(v) {
                Some(template) => ActionPlan::UseTemplateEach {
                    template,
                    conditions: self.slots(conditions),
                    values: list
                        .iter()
                        .map(|(v, listed)| (v.code.clone(), self.slots(listed)))
                        .collect(),
                },
                None => ActionPlan::Nothing,
            },
        }
    }

    /// Returns the binding of which `create` makes an instance.
    fn created_binding(&mut self, variable: &'g Variable) -> Option<usize> {
        let binding = self.binding_index.get(variable.code.as_str()).copied();
        if binding.is_none() {
            self.problem(
                "GDL0311",
                format!("`{}` is no data binding", variable.code),
                "create takes the code of an OUTPUT binding",
            );
        }
        binding
    }

    fn slots(&mut self, variables: &'g [Variable]) -> Vec<usize> {
        variables.iter().map(|v| self.slot(&v.code)).collect()
    }

    fn named_values(&mut self, list: &'g [(Variable, Expr)]) -> Vec<(String, OpId)> {
        list.iter()
            .map(|(v, e)| (v.code.clone(), self.expr(e)))
            .collect()
    }

    fn card_values(&mut self, rule: &'g Rule) -> Vec<Vec<(String, OpId)>> {
        let suggestions = rule.cards.iter().flat_map(|c| &c.suggestions);
        let actions = suggestions.flat_map(|s| &s.actions);
        let steps = actions.map(|a| a.template.as_ref().map(|(_, steps)| steps));
        steps
            .map(|steps| self.assigned_values(steps.map(Vec::as_slice).unwrap_or_default()))
            .collect()
    }

    /// Compiles the values of the assignments among some steps.
    fn assigned_values(&mut self, steps: &'g [Step]) -> Vec<(String, OpId)> {
        let mut values = Vec::new();
        for action in steps.iter().filter_map(|s| s.action.as_ref()) {
            if let Action::Assign(variable, expr) = action {
                values.push((variable.code.clone(), self.expr(expr)));
            }
        }
        values
    }

    fn template(&mut self, variable: &Variable) -> Option<usize> {
        let found = self.template_index.get(variable.code.as_str()).copied();
        if found.is_none() {
            self.problem(
                "GDL0312",
                format!("template `{}` is not defined", variable.code),
                "add it under `definition.templates`",
            );
        }
        found
    }

    fn assign(&mut self, variable: &'g Variable, value: &'g Expr) -> Option<Assign> {
        let attribute = self.attribute(variable)?;
        let value = self.expr(value);
        let slot = self.slot(&variable.code);
        // The flag decides which variables are outputs.
        if let Some(info) = self.out.slots.get_mut(slot) {
            info.assignable = true;
        }
        Some(Assign {
            slot,
            attribute,
            value,
        })
    }

    fn attribute(&mut self, variable: &Variable) -> Option<Attribute> {
        let Some(name) = variable.attribute.as_deref() else {
            return Some(Attribute::Whole);
        };
        let found = Attribute::parse(name);
        if found.is_none() {
            let message = format!("`.{name}` of `{}` is unknown", variable.code);
            self.problem("GDL0313", message, "known are magnitude, unit, precision, value, code, year, count, sum, term and others");
        }
        found
    }

    fn problem(&mut self, code: &'static str, message: String, help: &str) {
        if self.out.problems.len() < MAX_PROBLEMS {
            self.out
                .problems
                .push(Diagnostic::warning(code, self.span, message).with_help(help));
        }
    }

    fn push(&mut self, op: Op) -> OpId {
        self.out.ops.push(op);
        OpId::try_from(self.out.ops.len() - 1).unwrap_or(OpId::MAX)
    }

    fn constant(&mut self, value: Value) -> OpId {
        let alike = self.constants.entry(value.digest()).or_default();
        // Digests may collide, so candidates are compared.
        let found = alike
            .iter()
            .copied()
            .find(|i| self.out.constants.get(*i) == Some(&value));
        let index = found.unwrap_or_else(|| {
            self.out.constants.push(value);
            let index = self.out.constants.len() - 1;
            alike.push(index);
            index
        });
        self.push(Op::Constant(u32::try_from(index).unwrap_or(u32::MAX)))
    }

    fn expr(&mut self, expr: &'g Expr) -> OpId {
        match expr {
            Expr::Literal(value) => self.constant(value.clone()),
            Expr::Variable(v) => self.variable(v),
            Expr::Path(path, _) => {
                let (column, attribute) = self.column(path);
                self.push(Op::Column(column, attribute))
            }
            Expr::Reference(index, text) => self.reference(*index, *text),
            Expr::Not(a) => {
                let a = self.expr(a);
                self.push(Op::Not(a))
            }
            Expr::Negate(a) => {
                let a = self.expr(a);
                self.push(Op::Negate(a))
            }
            Expr::Binary(operator, a, b) => self.binary(*operator, a, b),
            Expr::Call(function, arguments) => self.call(*function, arguments),
            Expr::Fired(rule) => self.fired(rule),
            Expr::Any(variables, condition) => self.quantified(variables, condition, Op::Any),
            Expr::ForAll(condition) => self.quantified(&[], condition, Op::ForAll),
            Expr::Extreme { path, .. } => {
                self.problem(
                    "GDL0314",
                    format!("`max` or `min` of `{path}` inside a condition"),
                    "give it a predicate of its own",
                );
                self.constant(Value::Null)
            }
        }
    }

    /// Compiles the label or the URL of a reference of the guide, counted from 1.
    fn reference(&mut self, index: usize, which: ReferenceText) -> OpId {
        // A reference that occurs again reads the same constant. Its text may be megabytes.
        let known = self.references.get(&(index, which));
        let known = known.and_then(|id| self.out.ops.get(*id as usize));
        if let Some(Op::Constant(known)) = known {
            return self.push(Op::Constant(*known));
        }
        let reference = index.checked_sub(1);
        let reference = reference.and_then(|i| self.guide.references.get(i));
        let text = reference.map(|r| match which {
            ReferenceText::Label => &r.label,
            ReferenceText::Address => &r.url,
        });
        let text = text.filter(|t| !t.is_empty());
        let value = text.map_or(Value::text("Reference not found"), |t| Value::text(t));
        let id = self.constant(value);
        self.references.insert((index, which), id);
        id
    }

    fn binary(&mut self, operator: Operator, a: &'g Expr, b: &'g Expr) -> OpId {
        // `== null` is not a comparison: it is true or false, never unknown.
        let is_null = |e: &Expr| matches!(e, Expr::Literal(Value::Null));
        let is_equal = operator == Operator::Equal;
        match operator {
            Operator::Equal | Operator::Unequal if is_null(b) => {
                let operand = self.expr(a);
                self.push(Op::IsNull { operand, is_equal })
            }
            Operator::Equal | Operator::Unequal if is_null(a) => {
                let operand = self.expr(b);
                self.push(Op::IsNull { operand, is_equal })
            }
            _ => {
                let (a, b) = (self.expr(a), self.expr(b));
                self.push(Op::Binary(operator, a, b))
            }
        }
    }

    fn call(&mut self, function: Function, arguments: &'g [Expr]) -> OpId {
        let ids: Vec<OpId> = arguments.iter().map(|a| self.expr(a)).collect();
        let is_max = function == Function::Max;
        match (function, ids.as_slice()) {
            // The fold nests the calls: max(a, b, c) is max(max(a, b), c).
            (Function::Max | Function::Min, [first, rest @ ..]) => {
                rest.iter().fold(*first, |left, right| {
                    self.push(Op::Extreme {
                        is_max,
                        left,
                        right: *right,
                    })
                })
            }
            (_, [only]) => self.push(Op::Call(function, *only)),
            _ => self.constant(Value::Null),
        }
    }

    fn fired(&mut self, rule: &Variable) -> OpId {
        if let Some(index) = self.rule_index.get(rule.code.as_str()) {
            return self.push(Op::Fired(*index));
        }
        self.problem(
            "GDL0315",
            format!("rule `{}` is not defined", rule.code),
            "it never counts as fired",
        );
        self.constant(Value::Boolean(false))
    }

    fn quantified(
        &mut self,
        variables: &'g [Variable],
        condition: &'g Expr,
        op: fn(OpId, u32, OpId) -> Op,
    ) -> OpId {
        let mut list: Vec<&'g Variable> = variables.iter().collect();
        if list.is_empty() {
            condition.variables(&mut |v| list.push(v));
        }
        let slots: Vec<usize> = order::distinct(list.iter().map(|v| self.slot(&v.code)));
        // These operations must be consecutive, which `Op::Any` relies on: no other operation may be
        // pushed in between.
        let first = OpId::try_from(self.out.ops.len()).unwrap_or(OpId::MAX);
        let listed = self.listed(&slots);
        self.out.ops.extend(listed);
        let condition = self.expr(condition);
        self.push(op(
            first,
            u32::try_from(slots.len()).unwrap_or(u32::MAX),
            condition,
        ))
    }

    /// Returns the operations for the variables of `any` or `for_all`.
    fn listed(&self, slots: &[usize]) -> Vec<Op> {
        let info = |slot: &usize| self.out.slots.get(*slot);
        let bindings = |slot| info(slot).map_or(&[][..], |info| &info.bindings);
        let mut counts: HashMap<&[usize], usize> = HashMap::new();
        for slot in slots {
            *counts.entry(bindings(slot)).or_default() += 1;
        }
        let is_shared = |own: &[usize]| !own.is_empty() && counts.get(own).is_some_and(|n| *n > 1);
        let listed = slots.iter();
        listed
            .map(|slot| Op::ListVariable {
                slot: *slot,
                by_instance: is_shared(bindings(slot)),
            })
            .collect()
    }

    fn variable(&mut self, variable: &'g Variable) -> OpId {
        // `.term` is an attribute of the code, not of the value of a variable.
        if variable.attribute.as_deref() == Some("term") {
            if let Some(term) = self.out.term_index.get(&variable.code) {
                return self.push(Op::Term(*term));
            }
            let message = format!("`{}` has no term", variable.code);
            self.problem("GDL0316", message, "add it to the term definitions");
            return self.constant(Value::Null);
        }
        let Some(attribute) = self.attribute(variable) else {
            return self.constant(Value::Null);
        };
        match variable.code.as_str() {
            "currentDateTime" => self.push(Op::Now(attribute)),
            "currentDate" => self.push(Op::Today(attribute)),
            code => {
                let slot = self.slot(code);
                self.push(Op::Read(slot, attribute))
            }
        }
    }
}

/// Returns the slot of the variable whose null flavor an operation reads.
fn null_flavor_read(op: &Op) -> Option<usize> {
    match op {
        Op::Read(slot, Attribute::NullFlavor) => Some(*slot),
        _ => None,
    }
}

/// Returns the first index of each code.
fn first_places<'g>(codes: impl Iterator<Item = &'g str>) -> HashMap<&'g str, usize> {
    let mut places = HashMap::new();
    for (place, code) in codes.enumerate() {
        places.entry(code).or_insert(place);
    }
    places
}

/// Returns whether values of an RM class are quantities with a unit (`true`) or counts (`false`).
/// `None` for any other class.
fn is_quantity(class: &str) -> Option<bool> {
    match class {
        "DV_QUANTITY" => Some(true),
        "DV_COUNT" => Some(false),
        _ => None,
    }
}

/// Returns the plans of the rules in the order of their evaluation.
///
/// Conditions and actions are filled in later, because they may refer to any rule by index.
fn rules_by_priority(guide: &Guide) -> Vec<RulePlan> {
    let mut order: Vec<(usize, &Rule)> = guide.rules.iter().enumerate().collect();
    // The sort is stable: rules of equal priority keep the order of the file.
    order::sort_by_key(&mut order, |(_, r)| std::cmp::Reverse(r.priority));
    let plan = |(source, rule): (usize, &Rule)| RulePlan {
        id: Arc::from(rule.id.as_str()),
        when: Vec::new(),
        then: Vec::new(),
        source,
        card_values: Vec::new(),
    };
    order.into_iter().map(plan).collect()
}

/// Returns the places of the statements that cannot be read, in the order of a run.
fn unread(guide: &Guide, rules: &[RulePlan]) -> Vec<Place> {
    let mut places = Vec::new();
    let mut add = |is_unread: &mut dyn Iterator<Item = bool>, place: &dyn Fn(usize) -> Place| {
        let found = is_unread.enumerate().filter(|(_, is_unread)| *is_unread);
        places.extend(found.map(|(i, _)| place(i)));
    };
    let no_test = |condition: &Condition| condition.expr.is_none();
    let no_action = |step: &Step| step.action.is_none();
    for (b, binding) in guide.bindings.iter().enumerate() {
        let predicates = binding.predicates.iter();
        add(&mut predicates.map(no_test), &|i| Place::Predicate(b, i));
    }
    let conditions = guide.pre_conditions.iter();
    add(&mut conditions.map(no_test), &Place::PreCondition);
    let actions = guide.default_actions.iter();
    add(&mut actions.map(no_action), &Place::DefaultAction);
    for (r, plan) in rules.iter().enumerate() {
        let Some(rule) = guide.rules.get(plan.source) else {
            continue;
        };
        add(&mut rule.when.iter().map(no_test), &|i| Place::When(r, i));
        add(&mut rule.then.iter().map(no_action), &|i| Place::Then(r, i));
    }
    places
}

/// Returns the operands of an AND of any depth, in the order of the text; any other expression is
/// its own operand.
pub(crate) fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    let (mut rest, mut found) = (vec![expr], Vec::new());
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::Binary(Operator::And, a, b) => rest.extend([b.as_ref(), a.as_ref()]),
            other => found.push(other),
        }
    }
    found
}
