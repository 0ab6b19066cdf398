//! Tests of the reader of templates of ADL 1.4.

use super::*;
use aqlite_rm::diag::Span;

const SMALL: &str = include_str!("../../../../tests/cases/template/small.opt");

#[test]
fn small_template_is_read() {
    let template = Template::parse(SMALL).unwrap();
    assert_eq!(
        (
            template.template_id.as_str(),
            template.version.as_str(),
            template.concept.as_str()
        ),
        ("weight.en.v2", "2.0.0", "Weight")
    );
    assert_eq!(template.languages, ["en", "sv"]);
    let observation = &template.definition.attribute("content").unwrap().children[0];
    assert_eq!(
        (observation.id(), observation.occurrences),
        (
            "openEHR-EHR-OBSERVATION.body_weight.v2",
            Multiplicity {
                lower: 0,
                upper: Some(1)
            }
        )
    );
    assert_eq!(
        template
            .term(observation, "sv", "at0000")
            .map(|t| t.text.as_str()),
        Some("Kroppsvikt")
    );
    assert_eq!(
        template
            .term(observation, "de", "at0000")
            .map(|t| t.text.as_str()),
        Some("Body weight")
    );
    assert!(
        template
            .texts()
            .is_superset(&["kg", "Kroppsvikt", "at0004", "openehr", "433", "en"].into())
    );
    assert_eq!(template.version_or(Some("3.1")), "3.1.0");
}

#[test]
fn excluded_limits_of_occurrences_are_adjusted() {
    let at = SMALL.find("<occurrences>").unwrap();
    let end = at + SMALL[at..].find("</occurrences>").unwrap();
    for (limits, expected) in [
        (
            "<lower_included>false</lower_included><upper_included>false</upper_included><lower>0</lower><upper>3</upper>",
            (1, Some(2)),
        ),
        (
            "<lower_included>true</lower_included><upper_included>true</upper_included><lower>0</lower><upper>3</upper>",
            (0, Some(3)),
        ),
        (
            "<lower_included>false</lower_included><upper_unbounded>true</upper_unbounded><lower>1</lower>",
            (2, None),
        ),
        ("<lower>1</lower><upper>2</upper>", (1, Some(2))),
    ] {
        let text = format!("{}<occurrences>{limits}{}", &SMALL[..at], &SMALL[end..]);
        let occurrences = Template::parse(&text).unwrap().definition.occurrences;
        assert_eq!((occurrences.lower, occurrences.upper), expected, "{limits}");
    }
}

#[test]
fn identifying_elements_occur_exactly_once() {
    for (from, to, code, line) in [
        ("<template ", "<tamplate ", "TPL0101", 0),
        ("<concept>Weight</concept>", "", "TPL0202", 2),
        (
            "<concept>Weight</concept>",
            "<concept></concept>",
            "TPL0205",
            10,
        ),
        (
            "<concept>Weight</concept>",
            "<concept>A</concept><concept>B</concept>",
            "TPL0203",
            10,
        ),
        (
            "<template_id><value>weight.en.v2</value></template_id>",
            "<template_id>weight</template_id>",
            "TPL0205",
            9,
        ),
        (
            "<concept>Weight</concept>",
            "<concept>Weight</concept><bullfrog/>",
            "TPL0204",
            10,
        ),
        ("<upper>1000</upper>", "<upper>many</upper>", "TPL0302", 0),
        (
            r#"<children xsi:type="C_DV_QUANTITY">"#,
            r#"<children xsi:type="C_DV_ORDINAL"><list><value>1</value></list>"#,
            "TPL0302",
            72,
        ),
    ] {
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL, "{from}");
        let errors = Template::parse(&text).unwrap_err();
        assert_eq!(errors[0].code, code, "{errors:?}");
        if line > 0 {
            assert!(
                errors[0]
                    .one_line(&text)
                    .starts_with(&format!("line {line}, ")),
                "{}",
                errors[0].one_line(&text)
            );
        }
    }
    assert_eq!(
        Template::parse("<a/>").unwrap_err()[0].span,
        Span::new(0, 4)
    );
}

#[test]
fn versions_are_read_from_ids() {
    for (id, expected) in [
        ("vital.en.v1", Some("1.0.0")),
        ("vg_Lab.v.1.1.0", None),
        ("a_v2.1.3", Some("2.1.3")),
        ("x.v0", Some("0.0.0")),
        ("very_vague", None),
    ] {
        assert_eq!(suffix_version(id).as_deref(), expected, "{id}");
    }
}
