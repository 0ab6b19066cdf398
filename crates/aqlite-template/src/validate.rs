//! Validation of a document against its template.
//!
//! The constraint tree is walked in parallel with the document, and all findings are collected. The
//! rules of the Reference Model are checked separately (`aqlite_rm::validate`). Attributes that the
//! template does not mention are unconstrained. For an attribute that it mentions, only the objects
//! that it lists are permitted.

use super::fit::{self, Match, Siblings};
use super::leaf;
use super::tree::{Attribute, Binding, Constraint, Multiplicity, Node, Template};
use super::unique::has_equals;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::{Finding, Severity};
use aqlite_rm::time::{Temporal, TemporalKind};
use aqlite_rm::tree::{Kind, NodeId, NodeRef};
use std::collections::HashMap;
use std::rc::Rc;

/// Validates a document against a template and returns all findings. Warnings do not make it
/// invalid.
///
/// Codes: `TPL0501` existence, `TPL0502` cardinality, `TPL0503` occurrences, `TPL0504` class,
/// `TPL0505` not in the template, `TPL0506` value, `TPL0507` code, `TPL0508` unit, `TPL0509`
/// ordinal, `TPL0510` transition, `TPL0511` another template, `TPL0512` text of a code (a warning,
/// because the code is decisive), `TPL0513` runtime name (a warning in other languages than the
/// original one), `TPL0514` the budget of work or findings is exhausted and the rest is not
/// checked.
pub fn validate(document: NodeRef<'_>, template: &Template) -> Vec<Finding> {
    check(document, template, false)
}

/// Validates an incomplete document (`lifecycle_state` 553, RM Common IM section 6.2, version
/// lifecycle).
///
/// Structure, classes and values are checked as by [`validate`]. Existence, cardinality and
/// occurrences are not: they are checked when the document is completed.
pub fn validate_draft(document: NodeRef<'_>, template: &Template) -> Vec<Finding> {
    check(document, template, true)
}

fn check(document: NodeRef<'_>, template: &Template, is_draft: bool) -> Vec<Finding> {
    let language = document
        .text_along(&[Attr::LANGUAGE, Attr::CODE_STRING])
        .unwrap_or(&template.language);
    let mut check = Check {
        is_draft,
        ..Check::new(template, language)
    };
    check.check_identity(document);
    // Nothing is known about the constraints, so only the identity is checked.
    if template.is_opaque {
        return check.findings;
    }
    match fit::compare(document, &template.definition) {
        Match::Applies => check.check_object(document, &template.definition),
        _ => check.report_foreign(document),
    }
    check.finish()
}

/// The distance of a value from an alternative: its number of errors, then whether the class
/// differs.
type Weight = (usize, bool);

/// A step of the path to the current object.
pub(super) enum Step<'a> {
    /// The step to an attribute.
    Attribute(&'a str),
    /// The step to a member of a list.
    Index(usize),
    /// The step to all objects of a constraint.
    Node(&'a Node),
}

/// The maximum number of comparisons for one document.
const MAX_WORK: usize = 10_000_000;

/// The maximum size in bytes of the findings of one document. Further warnings are dropped; a
/// further error ends the check.
const MAX_FOUND: usize = 5_000_000;

/// The state of one validation. Path and label are computed only when a finding is reported.
pub(super) struct Check<'a> {
    template: &'a Template,
    language: &'a str,
    /// Whether existence, cardinality and occurrences are not checked.
    pub(super) is_draft: bool,
    /// Whether objects meet constraints without errors, as far as it was tried out: by object, and
    /// by address of the constraint in the template.
    pub(super) trials: HashMap<(NodeId, *const Node), bool>,
    path: Vec<Step<'a>>,
    /// The enclosing constraints, outermost first.
    around: Vec<&'a Node>,
    findings: Vec<Finding>,
    /// The origin of the enclosing HISTORY.
    origin: Option<Temporal>,
    /// The indexes of the attributes visited, by address of the attribute in the template.
    siblings: HashMap<*const Attribute, Rc<Siblings<'a>>>,
    /// The remaining comparisons.
    work: usize,
    /// The bytes of the findings so far.
    found: usize,
    /// The reason why the check ended early.
    ended: Option<&'static str>,
}

impl<'a> Check<'a> {
    /// Creates the state for a document whose terms are in `language`.
    pub(super) fn new(template: &'a Template, language: &'a str) -> Check<'a> {
        let (path, around, findings) = (Vec::new(), Vec::new(), Vec::new());
        Check {
            template,
            language,
            is_draft: false,
            trials: HashMap::new(),
            path,
            around,
            findings,
            origin: None,
            siblings: HashMap::new(),
            work: MAX_WORK,
            found: 0,
            ended: None,
        }
    }

    /// Returns the index of the constraints of an attribute. It is built once for all objects with
    /// the attribute.
    pub(super) fn siblings(&mut self, attribute: &'a Attribute) -> Rc<Siblings<'a>> {
        let known = self
            .siblings
            .entry(std::ptr::from_ref(attribute))
            .or_insert_with(|| Rc::new(Siblings::of(attribute, self.template)));
        Rc::clone(known)
    }

    /// Returns whether there is no finding yet.
    pub(super) fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.ended.is_none()
    }

    /// Charges comparisons to the budget. Returns false once the check has ended.
    pub(super) fn spend(&mut self, comparisons: usize) -> bool {
        // The first reason is kept: later ones are consequences.
        if comparisons > self.work {
            self.ended.get_or_insert("the check takes too much work: too many members are compared with too many constraints");
        }
        self.work = self.work.saturating_sub(comparisons);
        self.ended.is_none()
    }

    fn finish(mut self) -> Vec<Finding> {
        if let Some(why) = self.ended {
            self.findings.push(
                Finding::error("TPL0514", "", why).expected("a smaller document, or several"),
            );
        }
        self.findings
    }

    /// Reports a problem at the current path, with the label of the nearest named node.
    pub(super) fn report(&mut self, finding: Finding) {
        let label = self
            .around
            .iter()
            .rev()
            .filter(|node| !node.node_id.is_empty())
            .find_map(|node| self.name_of(node));
        self.add_finding(finding, label);
    }

    /// Runs checks and drops their findings. Returns whether there was no error.
    pub(super) fn without_report(&mut self, act: impl FnOnce(&mut Check<'a>)) -> bool {
        let (found, kept) = (self.found, self.findings.len());
        act(self);
        let mut dropped = self.findings.drain(kept.min(self.findings.len())..);
        let is_sound = dropped.all(|finding| finding.severity != Severity::Error);
        drop(dropped);
        self.found = found;
        is_sound && self.ended.is_none()
    }

    fn add_finding(&mut self, finding: Finding, label: Option<&str>) {
        let path = if finding.path.is_empty() {
            path_text(&self.path)
        } else {
            finding.path.clone()
        };
        let finding = Finding {
            path,
            label: label.map(str::to_owned),
            ..finding
        };
        let size = size(&finding);
        // Warnings beyond the limit are dropped silently, errors end the check.
        if self.found + size > MAX_FOUND {
            if finding.severity == Severity::Error {
                self.ended
                    .get_or_insert("there are too many problems: correct the reported ones first");
            }
            return;
        }
        self.found += size;
        self.findings.push(finding);
    }

    fn name_of(&self, node: &Node) -> Option<&'a str> {
        self.template
            .term(node, self.language, &node.node_id)
            .map(|term| term.text.as_str())
    }

    /// Returns the bindings of the codes of an archetype.
    pub(super) fn bindings(&self, root: usize) -> &'a [Binding] {
        let root = self.template.roots.get(root);
        root.map_or(&[], |root| root.bindings.as_slice())
    }

    /// Calls `act` with a step appended to the path.
    pub(super) fn at(&mut self, step: Step<'a>, act: impl FnOnce(&mut Check<'a>)) {
        self.path.push(step);
        act(self);
        self.path.pop();
    }

    /// Returns whether the path ends in these attributes.
    pub(super) fn is_at(&self, outer: &str, inner: &str) -> bool {
        matches!(self.path.as_slice(), [.., Step::Attribute(a), Step::Attribute(b)] if (*a, *b) == (outer, inner))
    }

    /// Reports an error in the original language, a warning in another.
    pub(super) fn by_language(&mut self, finding: Finding) {
        let severity = if self.language == self.template.language {
            Severity::Error
        } else {
            Severity::Warning
        };
        self.report(Finding {
            severity,
            ..finding
        });
    }

    pub(super) fn error(&mut self, code: &'static str, message: String) {
        self.report(Finding::error(code, "", message));
    }

    /// Checks that a document names this template, if it names one.
    fn check_identity(&mut self, document: NodeRef<'a>) {
        let named = document.text_along(&[Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE]);
        if let Some(named) = named.filter(|n| *n != self.template.template_id) {
            let finding = Finding::error(
                "TPL0511",
                "/archetype_details/template_id/value",
                "the document names another template",
            );
            self.report(
                finding
                    .expected(self.template.template_id.as_str())
                    .found(named),
            );
        }
    }

    /// Reports an object to which no constraint applies.
    fn report_foreign(&mut self, object: NodeRef<'a>) {
        let id = object.text_at(Attr::ARCHETYPE_NODE_ID).unwrap_or_default();
        let name = object
            .text_along(&[Attr::NAME, Attr::VALUE])
            .unwrap_or_default();
        let name: String = name.chars().take(40).collect();
        self.error(
            "TPL0505",
            format!(
                "RmObject with type:{}, nodeId:{id},name:{name}; not in template",
                object.class()
            ),
        );
    }

    /// Checks an object against the constraint that was chosen for it.
    fn check_object(&mut self, object: NodeRef<'a>, node: &'a Node) {
        if !self.spend(1 + node.attributes.len()) {
            return;
        }
        // The constraint is on the stack while its attributes are checked, for labels of findings.
        self.around.push(node);
        let outer = self.origin;
        if object.class() == Cls::HISTORY {
            self.origin = moment(object, Attr::ORIGIN);
        }
        let kept = self.findings.len();
        leaf::check(self, object, node);
        for attribute in &node.attributes {
            self.check_attribute(object, attribute);
        }
        // An error of the object itself is one of each row too.
        if errors(self.findings.get(kept..).unwrap_or_default()) == 0 {
            node.tuples
                .iter()
                .for_each(|rows| self.check_tuple(object, rows));
        }
        if object.class() == Cls::DV_CODED_TEXT {
            self.check_rubric(object, node);
        }
        self.origin = outer;
        self.around.pop();
    }

    /// Checks attributes that are constrained together. The findings of the row with the fewest are
    /// reported, unless a row matches.
    fn check_tuple(&mut self, object: NodeRef<'a>, rows: &'a [Vec<Attribute>]) {
        let (found, kept) = (self.found, self.findings.len());
        let mut nearest: Option<Vec<Finding>> = None;
        for row in rows {
            if !self.spend(row.len()) {
                return;
            }
            row.iter().for_each(|a| self.check_attribute(object, a));
            let findings = self.findings.split_off(kept);
            self.found = found;
            match &nearest {
                Some(fewest) if errors(fewest) <= errors(&findings) => {}
                _ => nearest = Some(findings),
            }
        }
        self.findings.extend(nearest.unwrap_or_default());
        self.found += self.findings.iter().skip(kept).map(size).sum::<usize>();
    }

    /// Checks the values of an attribute.
    fn check_attribute(&mut self, object: NodeRef<'a>, attribute: &'a Attribute) {
        if attribute.name == "offset" && object.class().is_a(Cls::EVENT) {
            return self.check_offset(object, attribute);
        }
        if attribute.name == "is_integral" && object.class() == Cls::DV_PROPORTION {
            return self.at(Step::Attribute(&attribute.name), |check| {
                leaf::integral(check, object, attribute)
            });
        }
        // An unknown attribute constrains nothing. The reader of the template has warned about it.
        let Some(attr) = attribute.attr else { return };
        let Some(definition) = object.class().attr(attr) else {
            return;
        };
        let there = object.get(attr);
        // An ELEMENT without a value has a null flavour instead, which satisfies existence.
        let is_null = || object.class() == Cls::ELEMENT && object.get(Attr::NULL_FLAVOUR).is_some();
        if attr == Attr::VALUE && there.is_none() && is_null() {
            return;
        }
        let first = object.values(attr).next();
        self.check_existence(object.class(), attribute, usize::from(first.is_some()));
        self.at(Step::Attribute(&attribute.name), |check| {
            if definition.card.is_list() {
                let values: Vec<NodeRef<'a>> = object.values(attr).collect();
                check.check_members(&values, attribute, there.is_some());
            } else if let Some(value) = first {
                check.single(value, attribute);
            }
        });
    }

    /// Checks the offset of an event, which the model computes: the document does not have it. RM Data
    /// Structures IM, EVENT: `offset = time - parent.origin`.
    fn check_offset(&mut self, event: NodeRef<'a>, attribute: &'a Attribute) {
        let time = moment(event, Attr::TIME);
        if let Some((time, origin)) = time.zip(self.origin) {
            self.at(Step::Attribute(&attribute.name), |check| {
                leaf::offset(check, time, origin, attribute)
            });
        }
    }

    /// Checks that an attribute is there or absent: `count` is 1 or 0. Drafts may lack any part, so
    /// they are not checked.
    fn check_existence(&mut self, class: Cls, attribute: &Attribute, count: usize) {
        let violated = attribute.existence.filter(|e| !e.contains(count));
        let Some(existence) = violated.filter(|_| !self.is_draft) else {
            return;
        };
        let name = &attribute.name;
        let message =
            format!("Attribute {name} of class {class} does not match existence {existence}");
        let found = if count == 0 { "nothing" } else { "a value" };
        self.report(
            Finding::error("TPL0501", "", message)
                .expected(existence.to_string())
                .found(found),
        );
    }

    /// Checks the members of a list: their constraints, occurrences and number.
    fn check_members(
        &mut self,
        values: &[NodeRef<'a>],
        attribute: &'a Attribute,
        is_present: bool,
    ) {
        if attribute.children.is_empty() {
            return self.check_cardinality(values, attribute, is_present);
        }
        if !self.spend(attribute.children.len()) {
            return;
        }
        let Some(counts) = self.assign(values, attribute) else {
            return;
        };
        // All occurrences are checked after the assignment, because later members may complete a
        // count.
        for (node, count) in attribute.children.iter().zip(&counts) {
            if !self.is_draft && !node.occurrences.contains(*count) {
                self.at(Step::Node(node), |check| {
                    check.check_occurrences(node, *count)
                });
            }
        }
        self.check_cardinality(values, attribute, is_present);
    }

    /// Assigns the members of a list to constraints, and checks each. Returns the number of members
    /// of each constraint; `None` if the check was ended.
    fn assign(&mut self, values: &[NodeRef<'a>], attribute: &'a Attribute) -> Option<Vec<usize>> {
        // Counted while the members are assigned: the choice among equal candidates depends on the
        // counts.
        let mut counts = vec![0_usize; attribute.children.len()];
        let mut choices = Vec::with_capacity(values.len());
        for value in values {
            let chosen = self.choose(*value, attribute, &counts)?;
            count(&mut counts, chosen);
            choices.push(chosen);
        }
        self.rematch(values, attribute, &mut choices);
        counts.fill(0);
        for (i, (value, chosen)) in values.iter().zip(choices).enumerate() {
            count(&mut counts, chosen);
            self.at(Step::Index(i), |check| match chosen {
                Some(index) => check.check_chosen(*value, attribute.children.get(index)),
                None if value.class().is_a(Cls::LOCATABLE) => check.report_foreign(*value),
                // Other members have no id, and the model's rules check their class.
                None => {}
            });
        }
        Some(counts)
    }

    /// Returns the index of the constraint for a member of a list, if there is one; `None` if the
    /// check was ended. `counts` has the number of members of each constraint so far.
    fn choose(
        &mut self,
        value: NodeRef<'a>,
        attribute: &'a Attribute,
        counts: &[usize],
    ) -> Option<Option<usize>> {
        if let Some(only) = fit::only_node(attribute) {
            let is_chosen = fit::compare(value, only) != Match::Differs;
            return self.spend(fit::ONLY).then_some(is_chosen.then_some(0));
        }
        let siblings = self.siblings(attribute);
        let candidates = siblings.candidates(value);
        let cost = siblings.cost(value, &candidates);
        self.spend(cost)
            .then(|| siblings.choose(value, &candidates, counts))
    }

    /// Checks the number of objects of a constraint.
    fn check_occurrences(&mut self, node: &'a Node, count: usize) {
        let message = format!(
            "Attribute has {count} occurrences, but must be {}",
            node.occurrences
        );
        let finding = Finding::error("TPL0503", "", message)
            .expected(node.occurrences.to_string())
            .found(count.to_string());
        self.add_finding(finding, self.name_of(node));
    }

    /// Checks the cardinality of an attribute. One below the sum of the minimum occurrences cannot be
    /// met, so it is not enforced.
    fn check_cardinality(
        &mut self,
        values: &[NodeRef<'a>],
        attribute: &'a Attribute,
        is_present: bool,
    ) {
        let cardinality = attribute.cardinality;
        let Some(cardinality) = cardinality.filter(|_| is_present && !self.is_draft) else {
            return;
        };
        let children = attribute.children.iter();
        let least: u64 = children.map(|c| u64::from(c.occurrences.lower)).sum();
        let upper = cardinality.interval.upper;
        let interval = Multiplicity {
            // An upper limit below that would make every valid document invalid.
            upper: upper.filter(|upper| u64::from(*upper) >= least),
            ..cardinality.interval
        };
        if !interval.contains(values.len()) {
            let message = format!("Attribute does not match cardinality {interval}");
            let finding = Finding::error("TPL0502", "", message)
                .expected(interval.to_string())
                .found(values.len().to_string());
            self.report(finding);
        }
        if cardinality.is_unique && has_equals(values) {
            let message = "Attribute has equal members, but must be unique";
            self.error("TPL0502", message.to_owned());
        }
    }

    /// Checks an object against the constraint that was chosen for it, unless that is a slot.
    pub(super) fn check_chosen(&mut self, value: NodeRef<'a>, node: Option<&'a Node>) {
        match node {
            // The content of a slot is constrained by its own archetype, which the template does
            // not contain.
            Some(node) if matches!(node.constraint, Constraint::Slot { .. }) => {}
            Some(node) if !fit::class_fits(value, node) => {
                self.wrong_class(value, &[&node.class_text])
            }
            Some(node) => self.check_object(value, node),
            None => {}
        }
    }

    /// Checks a single value. One alternative must match; otherwise the findings of the nearest one
    /// are reported.
    fn single(&mut self, value: NodeRef<'a>, attribute: &'a Attribute) {
        if attribute.children.is_empty() {
            return;
        }
        // Every alternative may be compared with the whole value, so the cost is charged in
        // advance.
        let has_id = value.class().is_a(Cls::LOCATABLE);
        let cost = if !has_id || fit::only_node(attribute).is_some() {
            // Values without an id are compared by class, and neither with slots nor by name.
            fit::ONLY.saturating_mul(attribute.children.len())
        } else {
            let siblings = self.siblings(attribute);
            siblings.cost(value, &siblings.candidates(value))
        };
        if !self.spend(cost.saturating_add(attribute.children.len())) {
            return;
        }
        let (found, kept) = (self.found, self.findings.len());
        let Some(all) = self.alternatives(value, attribute) else {
            return;
        };
        match all.iter().min_by_key(|(weight, _)| *weight) {
            None => self.no_alternative(value, attribute),
            Some(_) if value.class() == Cls::ISM_TRANSITION => self.transition(value, &all),
            Some((_, nearest)) => self.findings.extend(nearest.iter().cloned()),
        }
        // Only the findings of one alternative are kept.
        self.found = found + self.findings.iter().skip(kept).map(size).sum::<usize>();
    }

    /// Compares a value with each alternative, and returns the findings of all. Returns `None` at the
    /// first alternative that matches, which ends the search: the rest cannot change the result.
    fn alternatives(
        &mut self,
        value: NodeRef<'a>,
        attribute: &'a Attribute,
    ) -> Option<Vec<(Weight, Vec<Finding>)>> {
        let is_forbidden = |node: &Node| node.occurrences.upper == Some(0);
        let fits = |node: &Node| fit::compare(value, node) == Match::Applies && !is_forbidden(node);
        let mut all = Vec::new();
        for node in attribute.children.iter().filter(|node| fits(node)) {
            let before = self.findings.len();
            self.check_chosen(value, Some(node));
            let errors = errors(self.findings.get(before..).unwrap_or_default());
            if errors == 0 || self.ended.is_some() {
                return None;
            }
            all.push((
                // At equal numbers of errors, the alternative of the same class is nearer.
                (errors, node.class != Some(value.class())),
                self.findings.split_off(before),
            ));
        }
        Some(all)
    }

    fn no_alternative(&mut self, value: NodeRef<'a>, attribute: &'a Attribute) {
        // An object of the right class with a foreign id is not a class error.
        let by_class = attribute.children.iter().any(|n| fit::class_fits(value, n));
        if by_class && value.class().is_a(Cls::LOCATABLE) {
            return self.report_foreign(value);
        }
        let names: Vec<&str> = attribute
            .children
            .iter()
            .map(|n| n.class_text.as_str())
            .collect();
        self.wrong_class(value, &names);
    }

    fn wrong_class(&mut self, value: NodeRef<'a>, names: &[&str]) {
        // The messages are those of existing repositories, because clients search them for
        // substrings.
        let found = fit::class_text(value);
        let message = match names {
            ["DV_CODED_TEXT"] if value.class() == Cls::DV_TEXT => {
                "Expected a DV_CODED_TEXT but got DV_TEXT".to_owned()
            }
            _ => format!(
                "Object should be type {}, but was {found}",
                names.join(" or ")
            ),
        };
        self.report(
            Finding::error("TPL0504", "", message)
                .expected(names.join(" or "))
                .found(found),
        );
    }

    /// Checks that state and careflow step of an action are a pair that the template lists.
    ///
    /// Without a transition, the step is only the clinical label of the state (RM, ISM_TRANSITION).
    /// Then both must occur in the template, and an unlisted pair is a warning.
    fn transition(&mut self, value: NodeRef<'a>, alternatives: &[(Weight, Vec<Finding>)]) {
        let step = format!("{}/careflow_step", path_text(&self.path));
        let of_step = alternatives
            .iter()
            .filter(|(_, found)| !is_wrong(found, &step))
            .min_by_key(|(weight, _)| *weight);
        let Some((_, findings)) = of_step.or(alternatives.iter().min_by_key(|(weight, _)| *weight))
        else {
            return;
        };
        let mut findings = findings.clone();
        let stated_by = [Attr::TRANSITION, Attr::CURRENT_STATE]
            .into_iter()
            .find_map(|attr| value.get(attr));
        if stated_by.is_some_and(|by| by.attr() == Some(Attr::CURRENT_STATE)) {
            let lists = alternatives.iter().map(|(_, found)| found);
            for finding in &mut findings {
                if lists.clone().any(|found| !is_wrong(found, &finding.path)) {
                    finding.severity = Severity::Warning;
                }
            }
        }
        let is_error = |f: &Finding| f.severity == Severity::Error;
        let severity = match findings.iter().any(is_error) {
            true => Severity::Error,
            false => Severity::Warning,
        };
        self.findings.extend(findings);
        let finding = unlisted_transition(value, stated_by);
        self.report(Finding {
            severity,
            ..finding
        });
    }

    /// Checks the text of a local code against the term of the archetype.
    fn check_rubric(&mut self, text: NodeRef<'a>, node: &'a Node) {
        let terminology =
            text.text_along(&[Attr::DEFINING_CODE, Attr::TERMINOLOGY_ID, Attr::VALUE]);
        let code = text.text_along(&[Attr::DEFINING_CODE, Attr::CODE_STRING]);
        let Some(code) = code.filter(|_| terminology == Some("local")) else {
            return;
        };
        let root = self.template.roots.get(node.root);
        let term = root.and_then(|r| r.terms.get(self.language)?.get(code));
        let Some((term, given)) = term.zip(text.text_at(Attr::VALUE)) else {
            return;
        };
        if given.trim() != term.text.trim() {
            let message = format!("the text of code {code} is not the one of the template");
            self.report(Finding::warning("TPL0512", "", message).expected(term.text.as_str()));
        }
    }
}

/// Returns the number of errors among findings.
fn errors(findings: &[Finding]) -> usize {
    let errors = findings.iter().filter(|f| f.severity == Severity::Error);
    errors.count()
}

/// Counts a member of the constraint that was chosen for it.
fn count(counts: &mut [usize], chosen: Option<usize>) {
    if let Some(count) = chosen.and_then(|index| counts.get_mut(index)) {
        *count += 1;
    }
}

/// Returns the value of a DV_DATE_TIME.
fn moment(object: NodeRef<'_>, attr: Attr) -> Option<Temporal> {
    let text = object.text_along(&[attr, Attr::VALUE])?;
    Temporal::parse(TemporalKind::DateTime, text)
}

/// Returns whether there is an error at or below a path.
fn is_wrong(found: &[Finding], path: &str) -> bool {
    let mut errors = found.iter().filter(|f| f.severity == Severity::Error);
    errors.any(|f| f.path.starts_with(path))
}

/// Returns the finding about a transition that is not in the template. `stated_by` is the value
/// that states the transition: its code, or else the state.
fn unlisted_transition(value: NodeRef<'_>, stated_by: Option<NodeRef<'_>>) -> Finding {
    let code = |attr| value.text_along(&[attr, Attr::DEFINING_CODE, Attr::CODE_STRING]);
    let along = |attrs: &[Attr]| {
        stated_by
            .and_then(|by| by.text_along(attrs))
            .unwrap_or_default()
    };
    let terminology = along(&[Attr::DEFINING_CODE, Attr::TERMINOLOGY_ID, Attr::VALUE]);
    let by = format!(
        "{}/{terminology}/{}",
        along(&[Attr::VALUE]),
        along(&[Attr::DEFINING_CODE, Attr::CODE_STRING])
    );
    Finding::error(
        "TPL0510",
        "",
        format!("No valid transition found for ism transition[{by}]"),
    )
    .expected("a pair of state and careflow step that the template lists")
    .found(format!(
        "{} with {}",
        code(Attr::CURRENT_STATE).unwrap_or_default(),
        code(Attr::CAREFLOW_STEP).unwrap_or("no step")
    ))
}

/// Returns the size of a finding in bytes.
fn size(finding: &Finding) -> usize {
    let texts = [&finding.expected, &finding.found, &finding.label]
        .into_iter()
        .flatten()
        .map(String::len)
        .sum::<usize>();
    size_of::<Finding>() + finding.path.len() + finding.message.len() + texts
}

/// Formats the path for findings.
fn path_text(steps: &[Step<'_>]) -> String {
    let written = |step: &Step<'_>| match step {
        Step::Attribute(name) => format!("/{name}"),
        Step::Index(index) => format!("[{index}]"),
        Step::Node(node) => match (node.id(), node.names().as_slice()) {
            ("", _) => String::new(),
            (id, [name]) => format!("[{id}, '{name}']"),
            (id, _) => format!("[{id}]"),
        },
    };
    steps.iter().map(written).collect()
}

/// Returns whether a value is a leaf that can be constrained.
pub(super) fn is_leaf(value: NodeRef<'_>) -> bool {
    !matches!(value.kind(), Kind::Object | Kind::List)
}

#[cfg(test)]
mod tests;
