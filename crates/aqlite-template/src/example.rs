//! Generation of example documents: minimal (mandatory nodes only) or full (every node once), with
//! values that meet the constraints.
//!
//! The generator builds drafts. An optional part whose constraints cannot be met is omitted; a
//! mandatory one is a finding. The result is checked by both validators and the reader of JSON.

mod defaults;
mod event;
mod leaf;
mod slot;
mod timing;

use super::draft;
use super::tree::{Attribute, Constraint, Node, Template};
use super::validate::validate;
use aqlite_rm as rm;
use aqlite_rm::class::{Attr, AttrDef, Cls};
use aqlite_rm::diag::{Finding, Severity};
use aqlite_rm::id::ArchetypeId;
use aqlite_rm::order;
use aqlite_rm::tree::Tree;
use std::cell::Cell;

/// The extent of an example.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ExampleKind {
    /// Only mandatory nodes.
    Minimal,
    /// Every optional node once. Optional slots stay empty.
    Full,
}

/// Generates a valid document for a template of any root class.
///
/// Names and texts of codes are in `language` if the template has it, else in the original
/// language. `now` is an ISO 8601 date-time from which every time in the document is derived.
/// Unconstrained texts are filler and identifiers are constant: equal arguments result in equal
/// documents.
///
/// # Errors
/// The constraints that no document can meet: `TPL0601` no value, object or member meets a
/// constraint (with its path in AQL form); `TPL0602` the definition is not supported; `TPL0603` the
/// example would have too many objects or texts; `TPL0604` the search for values exceeded its
/// budget; else the findings of the validators in the only document that could be generated.
pub fn example(
    template: &Template,
    kind: ExampleKind,
    language: Option<&str>,
    now: &str,
) -> Result<Tree, Vec<Finding>> {
    let root = &template.definition;
    if template.is_opaque {
        let message =
            "the definition of the template is not understood: no example can be made of it";
        return Err(vec![Finding::error("TPL0602", "", message)]);
    }
    let asked = language.filter(|_| root.class == Some(Cls::COMPOSITION));
    let asked = asked.and_then(|asked| template.languages.iter().find(|l| *l == asked));
    let mut state = Generator::of(template, kind, asked.unwrap_or(&template.language), now);
    let class = state.concrete(root)?;
    let made = state.object(class, Some(root), None);
    if state.is_used_up() {
        return Err(vec![state.why_used_up()]);
    }
    let tree = made?.into_tree(None);
    let mut findings: Vec<Finding> = Vec::new();
    if let Some(root) = tree.root() {
        findings.extend(rm::validate::validate(root));
        findings.extend(validate(root, template));
        // The validators rely on classes that readers have checked.
        let read = rm::json::read(&rm::json::write(root), root.class());
        findings.extend(read.err().unwrap_or_default());
    }
    findings.retain(|f| f.severity == Severity::Error);
    match findings.is_empty() {
        true => Ok(tree),
        false => Err(findings),
    }
}

/// A draft, or the reasons why none is possible.
type Made = Result<Draft, Vec<Finding>>;

/// The drafts of examples own their texts.
type Draft = draft::Draft<'static>;

/// The end of an interval that is being generated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Limit {
    Lower,
    Upper,
}

/// The maximum depth, greater than that of any real document.
const MAX_DEPTH: usize = 100;

/// The code of an example with too many objects or texts.
pub(super) const TOO_LARGE: &str = "TPL0603";

/// The maximum number of objects of an example, including those that were tried and dropped.
const MAX_OBJECTS: usize = 30_000;
/// The maximum length in bytes of all texts of an example.
const MAX_BYTES: usize = 10_000_000;
/// The maximum number of comparisons of values with constraints.
const MAX_WORK: usize = 20_000_000;

/// The attributes of a party of which it has at least one.
const IDENTIFYING: [Attr; 3] = [Attr::NAME, Attr::EXTERNAL_REF, Attr::IDENTIFIERS];

/// The state of the generator.
struct Generator<'t> {
    template: &'t Template,
    is_full: bool,
    language: &'t str,
    now: &'t str,
    /// The display name of the object whose runtime name is being generated.
    label: Option<&'t str>,
    /// The attribute of the current object. Within a coded text it is that of the text.
    at: Attr,
    limit: Option<Limit>,
    /// The path of the current constraint in AQL form.
    path: String,
    depth: usize,
    /// The remaining budgets.
    ///
    /// An optional part that fails is dropped, so exhaustion is reported at the end, and nothing
    /// more is generated until then.
    objects: Cell<usize>,
    bytes: Cell<usize>,
    work: Cell<usize>,
}

/// Attributes of LOCATABLE that are not generated without a constraint.
const ASIDE: [Attr; 6] = [
    Attr::NAME,
    Attr::ARCHETYPE_NODE_ID,
    Attr::ARCHETYPE_DETAILS,
    Attr::UID,
    Attr::LINKS,
    Attr::FEEDER_AUDIT,
];

impl<'t> Generator<'t> {
    fn of(template: &'t Template, kind: ExampleKind, language: &'t str, now: &'t str) -> Self {
        Generator {
            template,
            is_full: kind == ExampleKind::Full,
            language,
            now,
            label: None,
            at: Attr::DATA,
            limit: None,
            path: String::new(),
            depth: 0,
            objects: Cell::new(MAX_OBJECTS),
            bytes: Cell::new(MAX_BYTES),
            work: Cell::new(MAX_WORK),
        }
    }

    fn is_used_up(&self) -> bool {
        self.objects.get() == 0 || self.bytes.get() == 0 || self.work.get() == 0
    }

    /// Returns the finding about the exhausted budget.
    fn why_used_up(&self) -> Finding {
        if self.objects.get() > 0 && self.bytes.get() > 0 {
            return Finding::error(
                "TPL0604",
                "",
                "no values are found that meet the constraints",
            )
            .expected(format!("values that {MAX_WORK} comparisons find"));
        }
        Finding::error(TOO_LARGE, "", "the example would be too large").expected(format!(
            "at most {MAX_OBJECTS} objects and {MAX_BYTES} bytes of text"
        ))
    }

    /// Charges comparisons to the budget. Returns false once any budget is exhausted.
    fn spend(&self, comparisons: usize) -> bool {
        // An exhausted budget stays at 0.
        self.work.set(self.work.get().saturating_sub(comparisons));
        !self.is_used_up()
    }

    /// Charges an object and its texts to the budget. Returns false once any budget is exhausted.
    fn affords(&self, node: Option<&Node>) -> bool {
        self.objects.set(self.objects.get().saturating_sub(1));
        let name = node
            .and_then(|node| super::describe::label(self.template, node, self.language))
            .map_or(0, str::len);
        self.bytes.set(self.bytes.get().saturating_sub(name));
        self.spend(1 + node.map_or(0, |n| n.attributes.len()))
    }

    /// Generates an object. `id` is its archetype if no constraint names one.
    fn object(&mut self, class: Cls, node: Option<&'t Node>, id: Option<&str>) -> Made {
        match class {
            // Checked before the depth, because an exhausted budget ends the whole generation.
            _ if !self.affords(node) => return Err(self.problem("the example is too large")),
            _ if self.depth > MAX_DEPTH => {
                return Err(self.problem("the template is nested too deeply"));
            }
            Cls::DV_INTERVAL => return self.interval(node),
            Cls::DV_PROPORTION => return self.proportion(node),
            _ => {}
        }
        self.depth += 1;
        let mut draft = match class {
            Cls::CODE_PHRASE => self.default_phrase(),
            class => Draft::object(class),
        };
        let mut problems = self.attributes(&mut draft, class, node);
        if class.is_a(Cls::EVENT) {
            self.put_offset(&mut draft, node);
        }
        timing::complete(&mut draft, class, node);
        if class.is_a(Cls::LOCATABLE) {
            match self.identity(node, id) {
                Ok(identity) => identity
                    .into_iter()
                    .for_each(|(attr, value)| draft.put(attr, value)),
                Err(found) => problems.extend(found),
            }
        }
        // Only now, because invariants concern the combination of attributes.
        problems.extend(self.complete(&mut draft, class, node));
        self.depth -= 1;
        if problems.is_empty() && class.is_a(Cls::DATA_VALUE) {
            problems = self.broken(&draft);
        }
        match problems.is_empty() {
            true => Ok(draft),
            false => Err(problems),
        }
    }

    /// Generates the attributes that are required or wanted. Returns the reasons why a required one
    /// is not possible.
    fn attributes(
        &mut self,
        draft: &mut Draft,
        class: Cls,
        node: Option<&'t Node>,
    ) -> Vec<Finding> {
        let mut problems = Vec::new();
        let is_aside = |attr: &Attr| class.is_a(Cls::LOCATABLE) && ASIDE.contains(attr);
        for def in class.attrs().iter().filter(|d| !is_aside(&d.attr)) {
            let attribute = constrained(node, def.attr);
            let is_required = is_required(draft, class, def, attribute);
            let is_open = !is_excluded(draft, def.attr) && attribute.is_some_and(is_offer);
            let is_there = draft.get(def.attr).is_some();
            let is_wanted = is_open && (self.is_full || is_there);
            if !is_wanted && (!is_required || is_there) {
                continue;
            }
            match self.attribute(class, def, attribute, is_required) {
                Ok(Some(value)) => draft.put(def.attr, value),
                Err(found) if is_required => problems.extend(found),
                _ => {}
            }
        }
        problems
    }

    /// Generates the value of an attribute, or `None` if it may be omitted.
    fn attribute(
        &mut self,
        owner: Cls,
        def: &AttrDef,
        attribute: Option<&'t Attribute>,
        is_required: bool,
    ) -> Result<Option<Draft>, Vec<Finding>> {
        let (length, outer) = (self.path.len(), self.at);
        self.path.push('/');
        self.path.push_str(def.attr.name());
        // Inside of a coded text, codes depend on the attribute that contains the text.
        if !owner.is_a(Cls::DV_CODED_TEXT) {
            self.at = def.attr;
        }
        let made = if attribute.is_some_and(is_forbidden) {
            Err(self.problem("the attribute must be there and must not be there"))
        } else if def.card.is_list() {
            self.members(owner, def, attribute, is_required)
                .map(|members| (!members.is_empty()).then_some(Draft::List(def.ty, members)))
        } else {
            self.single(owner, def, attribute, is_required)
        };
        self.path.truncate(length);
        self.at = outer;
        made
    }

    /// Generates the first alternative that can be met. Slots are tried last.
    fn single(
        &mut self,
        owner: Cls,
        def: &AttrDef,
        attribute: Option<&'t Attribute>,
        is_required: bool,
    ) -> Result<Option<Draft>, Vec<Finding>> {
        let children = attribute.map(|a| a.children.as_slice()).unwrap_or_default();
        if children.is_empty() {
            return self.unconstrained(owner, def).map(Some);
        }
        // Slots need an archetype that the template does not contain, so they are the last resort.
        let possible = || children.iter().filter(|c| c.occurrences.upper != Some(0));
        let slots = possible().filter(|c| is_slot(c) && is_required);
        let mut problems = Vec::new();
        for child in possible().filter(|c| !is_slot(c)).chain(slots) {
            match self.value(child, owner, def) {
                Ok(draft) => return Ok(Some(draft)),
                Err(found) => problems.extend(found),
            }
        }
        match problems.is_empty() {
            true if !is_required => Ok(None),
            true => Err(self.problem("something must stand here, and nothing may")),
            false => Err(problems),
        }
    }

    /// Generates the members of a list: mandatory ones, then optional ones as desired, required and
    /// permitted.
    fn members(
        &mut self,
        owner: Cls,
        def: &AttrDef,
        attribute: Option<&'t Attribute>,
        is_required: bool,
    ) -> Result<Vec<Draft>, Vec<Finding>> {
        let Some(attribute) = attribute.filter(|a| !a.children.is_empty()) else {
            return self.unconstrained_members(owner, def, attribute);
        };
        let mut list = Members {
            owner,
            def,
            attribute,
            made: Vec::new(),
            counts: vec![0; attribute.children.len()],
        };
        list.add_mandatory(self)?;
        let cardinality = attribute.cardinality.map(|c| c.interval);
        let most = cardinality
            .and_then(|c| c.upper)
            .map_or(usize::MAX, |u| usize::try_from(u).unwrap_or(usize::MAX));
        if self.is_full {
            list.add_optional(self, most);
        }
        let asked = cardinality.map_or(0, |c| usize::try_from(c.lower).unwrap_or_default());
        list.add_until(self, asked.max(usize::from(is_required)))?;
        // Children were added by their priority. The index restores the order of the template.
        order::sort_by_key(&mut list.made, |(index, _)| *index);
        Ok(list.made.into_iter().map(|(_, draft)| draft).collect())
    }

    /// Generates the members of a list that the template does not constrain, apart from their
    /// number.
    fn unconstrained_members(
        &mut self,
        owner: Cls,
        def: &AttrDef,
        attribute: Option<&Attribute>,
    ) -> Result<Vec<Draft>, Vec<Finding>> {
        let least = attribute
            .and_then(|a| a.cardinality)
            .map_or(1, |c| c.interval.lower.max(1));
        // Each member counts as an object, so the budget ends this loop long before a bound of
        // billions.
        (0..least)
            .map(|_| {
                if self.affords(None) {
                    self.unconstrained(owner, def)
                } else {
                    Err(Vec::new())
                }
            })
            .collect()
    }

    /// Generates the value of an attribute that the template does not constrain.
    fn unconstrained(&mut self, owner: Cls, def: &AttrDef) -> Made {
        if def.ty.is_primitive() {
            return Ok(defaults::leaf(self, owner, def));
        }
        let class = if def.attr == Attr::SUBJECT {
            Some(Cls::PARTY_SELF)
        } else {
            concrete_class_for(def.ty, &[])
        };
        match class {
            Some(class) => self.object(class, None, None),
            None => Err(self.problem("no class can stand here")),
        }
    }

    /// Generates an object or leaf for a constraint.
    fn value(&mut self, node: &'t Node, owner: Cls, def: &AttrDef) -> Made {
        let length = self.path.len();
        if !node.id().is_empty() {
            self.path.push('[');
            self.path.push_str(node.id());
            self.path.push(']');
        }
        let made = match &node.constraint {
            Constraint::Slot { includes, excludes } => self.slot(node, includes, excludes),
            Constraint::Code {
                terminology, codes, ..
            } => Ok(self.phrase(terminology, codes)),
            Constraint::CodeSet { reference } => {
                Ok(self.phrase(&self.code_set(node, reference), &[]))
            }
            Constraint::Quantity { list, .. } if !list.is_empty() => self.quantity(node, list),
            Constraint::Quantity {
                property: Some(property),
                ..
            } => Ok(self.measured(property)),
            Constraint::Ordinal { list } if !list.is_empty() => self.ordinal(node, list),
            _ if def.ty.is_primitive() => self.leaf(node, owner, def),
            _ => self
                .concrete(node)
                .and_then(|class| self.object(class, Some(node), None)),
        };
        self.path.truncate(length);
        made
    }

    /// Returns the concrete class of an object for a constraint.
    fn concrete(&self, node: &Node) -> Result<Cls, Vec<Finding>> {
        let Some(class) = node.class else {
            return Err(self.problem(&format!(
                "`{}` is not a class of the Reference Model",
                node.class_text
            )));
        };
        let named = node
            .archetype_id
            .as_deref()
            .and_then(ArchetypeId::parse)
            .and_then(|id| Cls::parse(id.class));
        let attrs: Vec<Attr> = node.attributes.iter().filter_map(|a| a.attr).collect();
        match named.filter(|c| class.is_abstract() && c.is_a(class) && !c.is_abstract()) {
            Some(named) => Ok(named),
            None => concrete_class_for(class, &attrs).ok_or_else(|| {
                self.problem(&format!(
                    "no class descends from `{class}` and has these attributes"
                ))
            }),
        }
    }

    /// Sets node id, archetype details and runtime name.
    fn identity(
        &mut self,
        node: Option<&'t Node>,
        id: Option<&str>,
    ) -> Result<Vec<(Attr, Draft)>, Vec<Finding>> {
        let id = id.or(node.map(Node::id)).filter(|id| !id.is_empty());
        let id = id.unwrap_or("at0001").to_owned();
        let mut identity = vec![
            (Attr::ARCHETYPE_NODE_ID, Draft::text(id.clone())),
            (Attr::NAME, self.name(node, &id)?),
        ];
        if aqlite_rm::id::is_archetype_id(&id) {
            let archetype = Draft::holding(Cls::ARCHETYPE_ID, Attr::VALUE, id);
            let mut details =
                Draft::holding(Cls::ARCHETYPED, Attr::RM_VERSION, defaults::RM_VERSION)
                    .with(Attr::ARCHETYPE_ID, archetype);
            if self.path.is_empty() {
                let template = self.template.template_id.clone();
                let template = Draft::holding(Cls::TEMPLATE_ID, Attr::VALUE, template);
                details.put(Attr::TEMPLATE_ID, template);
            }
            identity.push((Attr::ARCHETYPE_DETAILS, details));
        }
        Ok(identity)
    }

    fn name(&mut self, node: Option<&'t Node>, id: &str) -> Made {
        let label = node.and_then(|node| self.label_of(node));
        let concept = ArchetypeId::parse(id).map(|id| id.concept.replace(['_', '-'], " "));
        let text = label
            .map(str::to_owned)
            .or(concept)
            .unwrap_or_else(|| defaults::TEXT.to_owned());
        let attribute = constrained(node, Attr::NAME).filter(|a| !a.children.is_empty());
        let (Some(attribute), Some(def)) = (attribute, Cls::LOCATABLE.attr(Attr::NAME)) else {
            return Ok(Draft::holding(Cls::DV_TEXT, Attr::VALUE, text));
        };
        let outer = std::mem::replace(&mut self.label, label);
        let made = self.attribute(Cls::LOCATABLE, def, Some(attribute), true);
        self.label = outer;
        made.map(|name| name.unwrap_or_else(|| Draft::holding(Cls::DV_TEXT, Attr::VALUE, text)))
    }

    /// Returns the display name of a node: the name that the template sets, else its term.
    fn label_of(&self, node: &'t Node) -> Option<&'t str> {
        super::describe::label(self.template, node, self.language)
    }

    /// Adds values that invariants of the class require.
    fn complete(&self, draft: &mut Draft, class: Cls, node: Option<&'t Node>) -> Vec<Finding> {
        let may = |attr: Attr| constrained(node, attr).is_none_or(|a| !is_forbidden(a));
        let lacks = |draft: &Draft, attrs: &[Attr]| attrs.iter().all(|a| draft.get(*a).is_none());
        let is_free = |attr: Attr| constrained(node, attr).is_none_or(|a| a.children.is_empty());
        match class {
            Cls::DV_CODED_TEXT if is_free(Attr::VALUE) => {
                let text = self.text_of_code(draft, node);
                draft.put(Attr::VALUE, Draft::text(text));
            }
            Cls::DV_CODED_TEXT => return self.code_of_text(draft, node),
            Cls::DV_MULTIMEDIA if lacks(draft, &[Attr::DATA, Attr::URI]) && may(Attr::URI) => {
                let uri = "https://example.org/image.png";
                draft.put(Attr::URI, Draft::holding(Cls::DV_URI, Attr::VALUE, uri));
            }
            Cls::PARTY_IDENTIFIED if lacks(draft, &IDENTIFYING) && may(Attr::NAME) => {
                draft.put(Attr::NAME, Draft::text("Jane Doe"));
            }
            Cls::ELEMENT if lacks(draft, &[Attr::VALUE, Attr::NULL_FLAVOUR]) => {
                let unknown = Draft::holding(Cls::DV_CODED_TEXT, Attr::VALUE, "unknown")
                    .with(Attr::DEFINING_CODE, Draft::code("openehr", "253"));
                draft.put(Attr::NULL_FLAVOUR, unknown);
            }
            _ => {}
        }
        Vec::new()
    }

    /// Returns the text of the code of a coded text.
    fn text_of_code(&self, draft: &Draft, node: Option<&Node>) -> String {
        let terminology = [Attr::DEFINING_CODE, Attr::TERMINOLOGY_ID, Attr::VALUE];
        let terminology = draft.text_along(&terminology).unwrap_or_default();
        let code = draft.text_along(&[Attr::DEFINING_CODE, Attr::CODE_STRING]);
        self.rubric(node, terminology, code.unwrap_or_default())
    }

    /// Returns the findings about violated invariants of a data value.
    fn broken(&self, draft: &Draft) -> Vec<Finding> {
        let tree = draft.clone().into_tree(None);
        let found = tree.root().map(rm::validate::validate).unwrap_or_default();
        let errors = found.into_iter().filter(|f| f.severity == Severity::Error);
        errors
            .map(|f| Finding {
                path: format!("{}{}", self.path, f.path),
                code: "TPL0601",
                ..f
            })
            .collect()
    }

    fn problem(&self, message: &str) -> Vec<Finding> {
        vec![Finding::error("TPL0601", self.path.as_str(), message)]
    }
}

/// A list of members that grows, each with the index of its constraint.
struct Members<'t, 'd> {
    owner: Cls,
    def: &'d AttrDef,
    attribute: &'t Attribute,
    made: Vec<(usize, Draft)>,
    /// The number of members for each constraint.
    counts: Vec<usize>,
}

impl<'t> Members<'t, '_> {
    fn count(&self, index: usize) -> usize {
        self.counts.get(index).copied().unwrap_or_default()
    }

    /// Adds a member for a constraint. Repeated members are distinguished by their names.
    fn add(&mut self, state: &mut Generator<'t>, index: usize) -> Result<(), Vec<Finding>> {
        let Some(child) = self.attribute.children.get(index) else {
            return Ok(());
        };
        if !state.affords(None) {
            return Err(state.problem("the example is too large"));
        }
        let mut draft = state.value(child, self.owner, self.def)?;
        let count = self.count(index);
        if count > 0 {
            draft.append_number(count + 1);
        }
        self.made.push((index, draft));
        self.counts
            .iter_mut()
            .skip(index)
            .take(1)
            .for_each(|count| *count += 1);
        Ok(())
    }

    /// Adds the members that occurrences require.
    fn add_mandatory(&mut self, state: &mut Generator<'t>) -> Result<(), Vec<Finding>> {
        let mut problems = Vec::new();
        let children = self.attribute.children.iter().enumerate();
        for (index, child) in children.filter(|(_, c)| c.occurrences.upper != Some(0)) {
            for _ in 0..child.occurrences.lower {
                // A constraint that failed once fails again.
                if let Err(found) = self.add(state, index) {
                    problems.extend(found);
                    break;
                }
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// Adds each optional member once, as far as the list may have it.
    fn add_optional(&mut self, state: &mut Generator<'t>, most: usize) {
        for index in self.room(state) {
            if self.made.len() < most && self.count(index) == 0 {
                let _optional = self.add(state, index);
            }
        }
    }

    /// Adds members until there are `least`.
    fn add_until(&mut self, state: &mut Generator<'t>, least: usize) -> Result<(), Vec<Finding>> {
        let mut problems = Vec::new();
        while self.made.len() < least {
            if !state.spend(self.attribute.children.len()) {
                return Err(state.problem("the example is too large"));
            }
            let mut candidates = self.possible().into_iter();
            let is_added = candidates.any(|index| {
                let added = self.add(state, index);
                added.map_err(|found| problems = found).is_ok()
            });
            if !is_added {
                let made = self.made.len();
                let found = state.problem(&format!(
                    "{least} members must stand here, and only {made} can"
                ));
                return Err(problems.into_iter().chain(found).collect());
            }
        }
        Ok(())
    }

    /// Returns the indexes of the optional constraints to show in a full example.
    fn room(&self, state: &Generator<'t>) -> Vec<usize> {
        let children = self.attribute.children.iter().enumerate();
        children
            .filter(|(_, c)| state.is_full && !is_slot(c) && c.occurrences.upper != Some(0))
            .map(|(index, _)| index)
            .collect()
    }

    /// Returns the indexes of the constraints that permit another member, unused ones first, slots
    /// last.
    fn possible(&self) -> Vec<usize> {
        let has_room = |index: usize, c: &Node| {
            c.occurrences
                .upper
                .is_none_or(|u| u32::try_from(self.count(index)).is_ok_and(|n| n < u))
        };
        let mut found: Vec<(bool, usize, usize)> = Vec::new();
        for (index, child) in self
            .attribute
            .children
            .iter()
            .enumerate()
            .filter(|(i, c)| has_room(*i, c))
        {
            found.push((is_slot(child), self.count(index), index));
        }
        order::sort(&mut found);
        found.into_iter().map(|(_, _, index)| index).collect()
    }
}

fn constrained(node: Option<&Node>, attr: Attr) -> Option<&Attribute> {
    // The first row of a tuple has values that fit together.
    let rows = node?.tuples.iter().filter_map(|rows| rows.first());
    let mut all = rows.flatten().chain(&node?.attributes);
    all.find(|a| a.attr == Some(attr))
}

fn is_slot(node: &Node) -> bool {
    matches!(node.constraint, Constraint::Slot { .. })
}

fn is_forbidden(attribute: &Attribute) -> bool {
    attribute.existence.is_some_and(|e| e.upper == Some(0))
}

/// Returns whether a full example can show a value of the attribute.
fn is_offer(attribute: &Attribute) -> bool {
    !is_forbidden(attribute)
        && attribute
            .children
            .iter()
            .any(|c| !is_slot(c) && c.occurrences.upper != Some(0))
}

/// Returns whether an attribute must be absent: an element with a value has no null flavour.
fn is_excluded(draft: &Draft, attr: Attr) -> bool {
    let is_reason = matches!(attr, Attr::NULL_FLAVOUR | Attr::NULL_REASON);
    is_reason && matches!(draft, Draft::Object(Cls::ELEMENT, _)) && draft.get(Attr::VALUE).is_some()
}

/// Returns whether an attribute is required by the class, the template, the minimum of its members,
/// or an invariant.
fn is_required(draft: &Draft, class: Cls, def: &AttrDef, attribute: Option<&Attribute>) -> bool {
    let is_event = || {
        draft.text_along(&[Attr::CATEGORY, Attr::DEFINING_CODE, Attr::CODE_STRING]) == Some("433")
    };
    let by_class = match (class, def.attr) {
        (_, Attr::UID) if class.is_a(Cls::PARTY) => false,
        (Cls::ELEMENT, Attr::VALUE) | (Cls::HISTORY, Attr::EVENTS) => {
            attribute.is_none_or(|a| !is_forbidden(a))
        }
        (Cls::COMPOSITION, Attr::CONTEXT) => {
            is_event() && attribute.is_none_or(|a| !is_forbidden(a))
        }
        (_, Attr::NAMESPACE) => class.is_a(Cls::OBJECT_REF),
        _ => def.card.is_mandatory(),
    };
    let by_template = |a: &Attribute| {
        let has_members = def.card.is_list()
            && a.children
                .iter()
                .any(|c| c.occurrences.lower > 0 && c.occurrences.upper != Some(0));
        a.existence.is_some_and(|e| e.lower > 0) || (has_members && !is_forbidden(a))
    };
    by_class || (!is_excluded(draft, def.attr) && attribute.is_some_and(by_template))
}

/// Returns a concrete class that has these attributes, for a class that may be abstract.
fn concrete_class_for(class: Cls, attrs: &[Attr]) -> Option<Cls> {
    let fits = |c: &Cls| {
        !c.is_abstract()
            && c.is_a(class)
            && (*c == class || attrs.iter().all(|a| c.attr(*a).is_some()))
    };
    Some(class)
        .filter(|c| !c.is_abstract())
        .or_else(|| defaults::PREFERRED.into_iter().chain(Cls::all()).find(fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = include_str!("../../../tests/cases/template/small.opt");
    const NOW: &str = "2026-11-20T09:30:00Z";

    #[test]
    fn unsatisfiable_constraints_are_dropped_or_reported() {
        let mut template =
            Template::parse(&SMALL.replacen("<upper>1000</upper>", "<upper>-1</upper>", 1))
                .unwrap();
        let tree = example(&template, ExampleKind::Full, None, NOW).unwrap();
        assert!(tree.root().unwrap().get(Attr::CONTENT).is_none());
        for attribute in template
            .definition
            .attributes
            .iter_mut()
            .filter(|a| a.attr == Some(Attr::CONTENT))
        {
            attribute.children[0].occurrences.lower = 1;
        }
        let findings = example(&template, ExampleKind::Minimal, None, NOW).unwrap_err();
        assert_eq!(
            (findings.len(), findings[0].code),
            (1, "TPL0601"),
            "{findings:?}"
        );
        assert!(
            findings[0].path.ends_with("/items[at0004]/value"),
            "{findings:?}"
        );
    }

    #[test]
    fn examples_follow_the_language_and_the_time() {
        let template = Template::parse(SMALL).unwrap();
        let tree = example(&template, ExampleKind::Full, Some("sv"), NOW).unwrap();
        let root = tree.root().unwrap();
        let observation = root.values(Attr::CONTENT).next().unwrap();
        assert_eq!(
            observation.text_along(&[Attr::NAME, Attr::VALUE]),
            Some("Kroppsvikt")
        );
        let territory = root.text_along(&[Attr::TERRITORY, Attr::CODE_STRING]);
        assert_eq!(territory, Some("SE"));
        assert_eq!(
            root.text_along(&[Attr::CONTEXT, Attr::START_TIME, Attr::VALUE]),
            Some(NOW)
        );
    }
}
