//! Terms, value sets and bindings of codes.

use super::super::limits::TemplateMeter;
use super::super::opt::term;
use super::super::tree::{ArchetypeRoot, Attribute, Binding, Constraint, Node, Term};
use super::super::xml::Xml;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::Diagnostic;
use aqlite_rm::order;
use aqlite_rm::terminology::CodeGroup;
use aqlite_rm::validate::prescribed_group;
use std::collections::BTreeMap;

/// Reads the terms of a terminology by language.
pub(super) fn terms(
    terminology: Xml<'_>,
    meter: &mut TemplateMeter,
) -> Result<BTreeMap<String, BTreeMap<String, Term>>, Diagnostic> {
    let mut all: BTreeMap<String, BTreeMap<String, Term>> = BTreeMap::new();
    for set in terminology.all("term_definitions") {
        let language = set.attribute("language").or(set.attribute("id"));
        let language = language.unwrap_or_default().to_owned();
        let terms = all.entry(language).or_default();
        for item in set.all("items") {
            if let Some(code) = item.attribute("code").or(item.attribute("id")) {
                let term = term_of(item);
                if !meter.term(item, &term) {
                    return Err(TemplateMeter::too_many_terms(item));
                }
                terms.insert(code.to_owned(), term);
            }
        }
    }
    Ok(all)
}

/// Reads a term, whose parts are elements with their names, or items with ids as in OPT 1.4.
fn term_of(item: Xml<'_>) -> Term {
    if item.child("text").is_none() {
        return term(item);
    }
    let within = |name: &str| item.text_along(&[name]).unwrap_or_default().to_owned();
    Term {
        text: within("text"),
        description: within("description"),
        others: Vec::new(),
    }
}

/// Reads the codes of each value set.
pub(super) fn value_sets(terminology: Xml<'_>) -> BTreeMap<String, Vec<String>> {
    let sets = terminology.all("value_sets").filter_map(|set| {
        let id = set.attribute("id").or_else(|| set.text_along(&["id"]))?;
        Some((
            id.to_owned(),
            set.all("members").map(|m| m.text().to_owned()).collect(),
        ))
    });
    order::map(sets)
}

/// Reads the bindings of codes to codes of other terminologies. A binding of a path is left out.
pub(super) fn bindings(terminology: Xml<'_>) -> Vec<Binding> {
    let sets = terminology.all("term_bindings").flat_map(|set| {
        let name = set.attribute("terminology").or(set.attribute("id"));
        let name = name.unwrap_or_default();
        set.all("items").filter_map(move |item| binding(name, item))
    });
    sets.collect()
}

/// Reads one binding: a URI such as `http://openehr.org/id/433`, a code such as `[openehr::433]`,
/// or a CODE_PHRASE.
fn binding(set: &str, item: Xml<'_>) -> Option<Binding> {
    let code = item.attribute("code").or(item.attribute("id"))?;
    let value = item.child("value").unwrap_or(item);
    let (terminology, target) = match value.text_along(&["code_string"]) {
        Some(target) => (value.text_along(&["terminology_id", "value"]), target),
        None => concept(value.text()),
    };
    let is_code = !code.starts_with('/') && !target.is_empty();
    is_code.then(|| Binding {
        set: set.to_owned(),
        code: code.to_owned(),
        terminology: terminology.unwrap_or(set).to_owned(),
        target: target.to_owned(),
        is_permitted_in_data: true,
    })
}

/// The terminologies of the hosts of concept URIs, by the name that data use.
const HOSTS: [(&str, &str); 3] = [
    ("openehr.org", "openehr"),
    ("snomed.info", "SNOMED-CT"),
    ("loinc.org", "LOINC"),
];

/// Returns terminology and code of a concept. The terminology is absent if the host is not known.
fn concept(written: &str) -> (Option<&str>, &str) {
    let written = written.trim_start_matches('[').trim_end_matches(']');
    let Some((scheme, rest)) = written.split_once("://") else {
        return match written.split_once("::") {
            Some((terminology, code)) => (Some(terminology), code),
            None => (None, written),
        };
    };
    let host = rest.split('/').next().unwrap_or_default();
    let host = host.trim_start_matches("www.");
    let known = HOSTS.iter().find(|(name, _)| *name == host);
    let own = Some(scheme).filter(|scheme| *scheme == "openehr");
    let terminology = known.map(|(_, terminology)| *terminology).or(own);
    let code = rest.rsplit('/').next().unwrap_or_default();
    (terminology, code)
}

/// Replaces the codes of an archetype by the openEHR codes to which they are bound, at an attribute
/// of a class whose openEHR codes the Reference Model prescribes.
///
/// Data cannot have the code of the archetype there, so a document, an example and a form need the
/// bound code. Source: ADL 2, From Constraints to Concrete Codes in Data.
pub(super) fn substitute_prescribed(
    class: Cls,
    attribute: &mut Attribute,
    roots: &[ArchetypeRoot],
) {
    let group = attribute
        .attr
        .and_then(|attr| prescribed_group(class, attr));
    let Some(group) = group else {
        return;
    };
    let coded = attribute.children.iter_mut();
    let phrases = coded
        .filter(|text| text.class == Some(Cls::DV_CODED_TEXT))
        .flat_map(|text| &mut text.attributes)
        .filter(|a| a.attr == Some(Attr::DEFINING_CODE))
        .flat_map(|a| &mut a.children);
    for phrase in phrases {
        if let Some(constraint) = prescribed_codes(phrase, group, roots) {
            phrase.constraint = constraint;
        }
    }
}

/// Returns the constraint with the bound codes of a group, if every code is bound to one.
fn prescribed_codes(
    phrase: &Node,
    group: &CodeGroup,
    roots: &[ArchetypeRoot],
) -> Option<Constraint> {
    let Constraint::Code { codes, open, .. } = &phrase.constraint else {
        return None;
    };
    let bindings = &roots.get(phrase.root)?.bindings;
    let bound = |code: &String| {
        let mut targets = bindings
            .iter()
            .filter(|b| b.code == *code && b.names(group.terminology));
        targets
            .find(|b| group.contains(&b.target))
            .map(|b| b.target.clone())
    };
    let codes: Vec<String> = codes.iter().map(bound).collect::<Option<_>>()?;
    (!codes.is_empty()).then(|| Constraint::Code {
        terminology: group.terminology.to_owned(),
        codes,
        open: *open,
    })
}

/// Returns the constraint `[at5@snomed_ct]`: the codes of a terminology that are bound to codes of
/// the archetype.
///
/// The value set `[ac1@snomed_ct]` is the external one to which it is bound, else the bound codes of
/// its members.
pub(super) fn operational(
    code: &str,
    terminology: &str,
    members: &[String],
    bindings: &[Binding],
) -> Option<Constraint> {
    let bound = |code: &str| {
        let mut all = bindings.iter();
        all.find(|b| b.code == code && b.names(terminology))
    };
    match bound(code) {
        Some(set) if code.starts_with("ac") => Some(Constraint::CodeSet {
            reference: format!("terminology:{}?subset={}", set.terminology, set.target),
        }),
        Some(one) => Some(Constraint::Code {
            terminology: one.terminology.clone(),
            codes: vec![one.target.clone()],
            open: false,
        }),
        None => {
            let bound = members.iter().map(|member| bound(member));
            let bound: Vec<&Binding> = bound.collect::<Option<_>>()?;
            Some(Constraint::Code {
                terminology: bound.first()?.terminology.clone(),
                codes: bound.iter().map(|b| b.target.clone()).collect(),
                open: false,
            })
        }
    }
}
