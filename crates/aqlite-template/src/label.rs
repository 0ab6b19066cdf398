//! Clinical names of the nodes of findings.

use super::tree::Template;
use aqlite_rm::class::Attr;
use aqlite_rm::diag::Finding;
use aqlite_rm::id::is_archetype_id;
use aqlite_rm::tree::NodeRef;

/// Adds labels to findings that have none, such as those of the Reference Model.
///
/// The label is the clinical name of the node, or of the nearest named ancestor, in the language of
/// the document if the template has it.
pub fn label_findings(document: NodeRef<'_>, template: &Template, findings: &mut [Finding]) {
    let language = document
        .text_along(&[Attr::LANGUAGE, Attr::CODE_STRING])
        .unwrap_or(&template.language);
    for finding in findings.iter_mut().filter(|f| f.label.is_none()) {
        finding.label = label_at(document, template, language, &finding.path).map(str::to_owned);
    }
}

fn label_at<'t>(
    document: NodeRef<'_>,
    template: &'t Template,
    language: &str,
    path: &str,
) -> Option<&'t str> {
    let (mut node, mut archetype, mut label) = (document, "", None);
    let mut steps = path.split('/').skip(1);
    loop {
        if let Some(id) = node.text_at(Attr::ARCHETYPE_NODE_ID) {
            let mut code = id;
            if is_archetype_id(id) {
                let stated =
                    node.text_along(&[Attr::ARCHETYPE_DETAILS, Attr::ARCHETYPE_ID, Attr::VALUE]);
                (archetype, code) = (stated.unwrap_or(id), "at0000");
            }
            label = template.term_of(archetype, language, code).or(label);
        }
        match steps.next().and_then(|step| step_into(node, step)) {
            Some(inner) => node = inner,
            None => return label,
        }
    }
}

/// Returns the node at `attribute` or `attribute[index]`.
fn step_into<'a>(node: NodeRef<'a>, step: &str) -> Option<NodeRef<'a>> {
    let (name, index) = step.split_once('[').unwrap_or((step, "0]"));
    node.values(Attr::parse(name)?)
        .nth(index.trim_end_matches(']').parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqlite_rm::class::Cls;

    #[test]
    fn reference_model_findings_get_the_nearest_label() {
        let template =
            Template::parse(include_str!("../../../tests/cases/template/small.opt")).unwrap();
        let text = r#"{"_type":"COMPOSITION","archetype_node_id":"openEHR-EHR-COMPOSITION.encounter.v1","language":{"code_string":"sv"},"content":[
            {"_type":"OBSERVATION","archetype_node_id":"openEHR-EHR-OBSERVATION.body_weight.v2","data":{"archetype_node_id":"at9999"}}]}"#;
        let tree = aqlite_rm::json::read(text, Cls::COMPOSITION).unwrap();
        let mut findings = [
            "/content[0]/data/name",
            "/content[0]/subject",
            "/composer",
            "/content[7]",
            "/nowhere",
        ]
        .map(|path| Finding::error("X", path, ""));
        label_findings(tree.root().unwrap(), &template, &mut findings);
        let labels = findings.map(|f| f.label.unwrap_or_default());
        assert_eq!(
            labels,
            [
                "Kroppsvikt",
                "Kroppsvikt",
                "Encounter",
                "Encounter",
                "Encounter"
            ]
        );
    }
}
