//! Tests of the reader of ADL 2.

use super::{ITEMS, document, section_starts};
use crate::{Template, validate};
use aqlite_rm::class::Cls;
use aqlite_rm::json;

/// The template of the tests of the XML form, as ADL text.
const SIZE: &str = r#"operational_template (adl_version=2.0.6; rm_release=1.1.0; generated)
    openEHR-EHR-CLUSTER.size.v1.2.0

language
    original_language = <[ISO_639-1::en]>

description
    details = <
        ["en"] = <
            purpose = <"A text over lines, with a keyword alone on one:
definition
and \"quotes\".">
        >
    >

definition
    CLUSTER[id1] matches {    -- Size
        items cardinality matches {1..*} matches {
            ELEMENT[id2] occurrences matches {0..1} matches {
                value matches {
                    DV_COUNT[id3] matches {
                        magnitude matches {|1..9|; 3}
                    }
                    DV_CODED_TEXT[id4] matches {
                        defining_code matches {[ac1; at2]}
                    }
                }
            }
        }
    }

rules
    $x:Integer ::= 1 > 0

terminology
    term_definitions = <
        ["en"] = <
            ["id1"] = <text = <"Size"> description = <"">>
        >
    >
    value_sets = <
        ["ac1"] = <
            id = <"ac1">
            members = <"at1", "at2">
        >
    >
"#;

fn codes(value: &str, template: &Template) -> Vec<&'static str> {
    let text = format!(
        r#"{{"_type":"CLUSTER","archetype_node_id":"openEHR-EHR-CLUSTER.size.v1.2.0","name":{{"value":"Size"}},"items":[{{"_type":"ELEMENT","archetype_node_id":"id2","name":{{"value":"n"}},"value":{value}}}]}}"#
    );
    let tree = json::read(&text, Cls::CLUSTER).unwrap();
    validate(tree.root().unwrap(), template)
        .iter()
        .map(|f| f.code)
        .collect()
}

fn coded(code: &str) -> String {
    format!(
        r#"{{"_type":"DV_CODED_TEXT","value":"x","defining_code":{{"terminology_id":{{"value":"local"}},"code_string":"{code}"}}}}"#
    )
}

/// Returns the template with another constraint on the value.
fn with(value: &str) -> Template {
    let (start, end) = (
        SIZE.find("DV_COUNT[id3]").unwrap(),
        SIZE.find("DV_CODED_TEXT[id4]").unwrap(),
    );
    Template::parse_opt2(&format!("{}{value}\n{}", &SIZE[..start], &SIZE[end..])).unwrap()
}

#[test]
fn adl_text_and_xml_result_in_the_same_template() {
    let template = Template::parse_opt2(SIZE).unwrap();
    assert!(!template.is_opaque, "{:?}", template.warnings);
    assert_eq!(
        (
            template.template_id.as_str(),
            template.version.as_str(),
            template.concept.as_str()
        ),
        ("openEHR-EHR-CLUSTER.size.v1.2.0", "1.2.0", "Size")
    );
    assert_eq!(template.language, "en");
    assert!(codes(r#"{"_type":"DV_COUNT","magnitude":5}"#, &template).is_empty());
    assert_eq!(
        codes(r#"{"_type":"DV_COUNT","magnitude":10}"#, &template),
        ["TPL0506"]
    );
    assert!(codes(&coded("at2"), &template).is_empty());
    assert_eq!(codes(&coded("at3"), &template), ["TPL0507"]);
    assert_eq!(
        codes(r#"{"_type":"DV_TEXT","value":"x"}"#, &template),
        ["TPL0504"]
    );
}

#[test]
fn values_are_constrained_by_lists_intervals_patterns_and_tuples() {
    let quantity = |magnitude: &str, units: &str| {
        format!(
            r#"{{"_type":"DV_QUANTITY","magnitude":{magnitude},"units":"{units}","precision":1}}"#
        )
    };
    let count = |n: &str| format!(r#"{{"_type":"DV_COUNT","magnitude":{n}}}"#);
    let of = |class: &str, value: &str| format!(r#"{{"_type":"{class}","value":"{value}"}}"#);
    let cases: [(&str, &[String], &[String]); 22] = [
        (
            "DV_COUNT[id3] matches {magnitude matches {1, 3, 5}}",
            &[count("3")],
            &[count("2")],
        ),
        (
            "DV_COUNT[id3] matches {magnitude matches {|>=3|}}",
            &[count("3"), count("300")],
            &[count("2")],
        ),
        (
            "DV_COUNT[id3] matches {magnitude matches {|≥3|}}",
            &[count("3"), count("300")],
            &[count("2")],
        ),
        (
            "DV_COUNT[id3] matches {magnitude matches {|≤3|}}",
            &[count("3")],
            &[count("4")],
        ),
        (
            "DV_COUNT[id3] matches {magnitude matches {|<3|}}",
            &[count("2")],
            &[count("3")],
        ),
        (
            "DV_COUNT[id3] matches {magnitude matches {|>1..<3|}}",
            &[count("2")],
            &[count("1"), count("3")],
        ),
        (
            "DV_COUNT[id3] matches {magnitude matches {|10 +/-2|}}",
            &[count("8"), count("12")],
            &[count("13")],
        ),
        (
            "DV_COUNT[id3] matches {magnitude matches {|9007199254740993 ±1|}}",
            &[count("9007199254740992"), count("9007199254740994")],
            &[count("9007199254740990")],
        ),
        (
            "DV_QUANTITY[id3] matches {magnitude matches {|0..9.5|}}",
            &[quantity("9.5", "g"), quantity("0.5", "g")],
            &[quantity("9.6", "g")],
        ),
        (
            "DV_QUANTITY[id3] matches {magnitude matches {|0..9|}}",
            &[quantity("9", "g"), quantity("0.5", "g")],
            &[quantity("9.5", "g")],
        ),
        (
            "DV_QUANTITY[id3] matches {magnitude matches {|0.7 +/-0.1|}}",
            &[quantity("0.6", "g"), quantity("0.8", "g")],
            &[quantity("0.59", "g"), quantity("0.81", "g")],
        ),
        (
            "DV_QUANTITY[id3] matches {magnitude matches {|-1.5e1 +/-1|}}",
            &[quantity("-14", "g"), quantity("-16", "g")],
            &[quantity("-13.9", "g"), quantity("15", "g")],
        ),
        (
            r#"DV_TEXT[id3] matches {value matches {"red", "gr\"een"}}"#,
            &[of("DV_TEXT", "red"), of("DV_TEXT", r#"gr\"een"#)],
            &[of("DV_TEXT", "blue")],
        ),
        (
            "DV_TEXT[id3] matches {value matches {/a[b-d]+\\/x/}}",
            &[of("DV_TEXT", "abcd/x")],
            &[of("DV_TEXT", "a/x")],
        ),
        (
            "DV_BOOLEAN[id3] matches {value matches {True}}",
            &[r#"{"_type":"DV_BOOLEAN","value":true}"#.into()],
            &[r#"{"_type":"DV_BOOLEAN","value":false}"#.into()],
        ),
        (
            "DV_DATE[id3] matches {value matches {yyyy-mm-dd}}",
            &[of("DV_DATE", "2020-01-02")],
            &[of("DV_DATE", "2020-01")],
        ),
        (
            "DV_TIME[id3] matches {value matches {HH:MM:SS±hh:mm}}",
            &[of("DV_TIME", "10:00:00+01:00"), of("DV_TIME", "10:00:00Z")],
            &[of("DV_TIME", "10:00:00"), of("DV_TIME", "10:00+01:00")],
        ),
        (
            "DV_DATE_TIME[id3] matches {value matches {yyyy-mm-ddTHH:MM:SS±XX:XX}}",
            &[of("DV_DATE_TIME", "2020-01-02T10:00:00")],
            &[of("DV_DATE_TIME", "2020-01-02T10:00:00Z")],
        ),
        (
            "DV_COUNT[id3] matches {magnitude matches {|<=9007199254740992|}}",
            &[count("9007199254740992")],
            &[count("9007199254740993")],
        ),
        (
            "DV_DURATION[id3] matches {value matches {PYMWD/|P0D..P10D|}}",
            &[of("DV_DURATION", "P5D")],
            &[of("DV_DURATION", "P11D"), of("DV_DURATION", "PT1H")],
        ),
        (
            r#"DV_QUANTITY[id3] matches {[units, magnitude] matches {[{"kg"}, {|0.0..200.0|}], [{"g"}, {|>=0.0|}]}}"#,
            &[quantity("70.5", "kg"), quantity("70500.0", "g")],
            &[quantity("201.0", "kg"), quantity("1.0", "lb")],
        ),
        (
            "DV_ORDINAL[id3] matches {[value, symbol] matches {[{0}, {[at7]}], [{2}, {[at8]}]}}",
            &[format!(
                r#"{{"_type":"DV_ORDINAL","value":2,"symbol":{}}}"#,
                coded("at8")
            )],
            &[format!(
                r#"{{"_type":"DV_ORDINAL","value":1,"symbol":{}}}"#,
                coded("at8")
            )],
        ),
    ];
    for (constraint, good, bad) in cases {
        let template = with(constraint);
        assert!(!template.is_opaque, "{constraint}: {:?}", template.warnings);
        for value in good {
            assert!(
                codes(value, &template).is_empty(),
                "{constraint} refuses {value}: {:?}",
                codes(value, &template)
            );
        }
        for value in bad {
            assert!(
                !codes(value, &template).is_empty(),
                "{constraint} accepts {value}"
            );
        }
    }
}

#[test]
fn unsupported_constraint_leaves_only_its_node_unchecked() {
    for constraint in [
        "DV_CODED_TEXT[id3] matches {defining_code matches {[at1@snomed_ct]}}",
        "DV_TEXT[id3] matches {value matches {\"a\", ...}}",
        "use_node DV_TEXT[id3] /items[id2]/value[id99]",
        "use_node DV_TEXT[id3] /items[id2]",
    ] {
        let template = with(constraint);
        assert!(
            !template.is_opaque && template.warnings.len() == 1,
            "{constraint}: {:?}",
            template.warnings
        );
    }
}

#[test]
fn slots_and_used_archetypes_are_read() {
    let used = "CLUSTER[id5, openEHR-EHR-CLUSTER.device.v1.0.0] occurrences matches {0..1} matches {items matches {ELEMENT[id9]}}\n\
        use_archetype CLUSTER[id6, openEHR-EHR-CLUSTER.other.v1.0.0]\n\
        allow_archetype CLUSTER[id7] occurrences matches {0..*} matches {include archetype_id/value matches {/openEHR-EHR-CLUSTER\\.x-.*\\.v1\\..*/} exclude archetype_id/value matches {/.*/}}\n\
        allow_archetype CLUSTER[id8] closed\n";
    let components = "component_terminologies\n    component_terminologies = <\n        [\"openEHR-EHR-CLUSTER.device.v1.0.0\"] = <\n            term_definitions = <[\"en\"] = <[\"id9\"] = <text = <\"Maker\"> description = <\"x\">>>>\n        >\n    >\n";
    let text = format!(
        "{}{components}",
        SIZE.replace(
            "            ELEMENT[id2]",
            &format!("{used}            ELEMENT[id2]")
        )
    );
    let template = Template::parse_opt2(&text).unwrap();
    assert!(!template.is_opaque, "{:?}", template.warnings);
    let ids: Vec<&str> = template
        .roots
        .iter()
        .map(|root| root.archetype_id.as_str())
        .collect();
    assert_eq!(
        ids,
        [
            "openEHR-EHR-CLUSTER.size.v1.2.0",
            "openEHR-EHR-CLUSTER.device.v1.0.0",
            "openEHR-EHR-CLUSTER.other.v1.0.0"
        ]
    );
    assert_eq!(
        template.roots[1]
            .terms
            .get("en")
            .and_then(|terms| terms.get("id9"))
            .map(|term| term.text.as_str()),
        Some("Maker")
    );
}

#[test]
fn invalid_text_is_rejected_with_position() {
    let deep = SIZE.replace(
        "ELEMENT[id2]",
        &"CLUSTER[id2] matches {items matches {".repeat(200),
    );
    for (text, code) in [
        (
            SIZE.replace("operational_template", "archetype").as_str(),
            "TPL0201",
        ),
        ("hello", "TPL0201"),
        ("operational_template", "TPL0105"),
        (
            "operational_template\n    openEHR-EHR-CLUSTER.size.v1.2.0\n",
            "TPL0202",
        ),
        (SIZE.replace("|1..9|", "|1..9").as_str(), "TPL0105"),
        (
            SIZE.replace("|1..9|", "|0e-4000000000 +/-0|").as_str(),
            "TPL0105",
        ),
        (
            SIZE.replace("cardinality matches {1..*}", "cardinality matches {many}")
                .as_str(),
            "TPL0105",
        ),
        (
            SIZE.replace("id = <\"ac1\">", "id = <\"ac1\"").as_str(),
            "TPL0105",
        ),
        (
            SIZE.replace("\nterminology", "\ndefinition").as_str(),
            "TPL0105",
        ),
        (deep.as_str(), "TPL0103"),
    ] {
        let errors = Template::parse_opt2(text).unwrap_err();
        assert_eq!(
            errors[0].code,
            code,
            "{}: {:?}",
            &text[..text.len().min(60)],
            errors[0]
        );
    }
    let cut = SIZE.replace("magnitude matches {|1..9|; 3}", "magnitude matches §");
    let error = &Template::parse_opt2(&cut).unwrap_err()[0];
    assert_eq!(
        cut.get(error.span.start..)
            .and_then(|rest| rest.chars().next()),
        Some('§')
    );
}

#[test]
fn truncated_text_does_not_panic() {
    for end in (0..SIZE.len()).filter(|end| SIZE.is_char_boundary(*end)) {
        let _ = Template::parse_opt2(&SIZE[..end]);
        let _ = Template::parse_opt2(&format!("{}{{[<\"|{}", &SIZE[..end], &SIZE[end..]));
    }
}

#[test]
fn keyword_of_a_section_is_alone_on_its_line_and_outside_of_texts() {
    let keywords = |text: &str| -> Vec<&str> {
        let starts = section_starts(text);
        starts.iter().map(|start| start.keyword).collect()
    };
    assert_eq!(
        keywords("\n\nlanguage\r\n\n\nrules \t\n"),
        ["language", "rules"]
    );
    assert_eq!(keywords("rules"), ["rules"]);
    for text in ["", "\n", " rules\n", "rules x\n", "rule\n", "ruless\n"] {
        assert_eq!(keywords(text), [""; 0], "{text:?}");
    }
    assert_eq!(
        keywords("\"\nrules\n\\\"\n\"\ndefinition\n"),
        ["definition"]
    );
    assert_eq!(keywords("-- \"\nrules\n"), ["rules"]);
    assert_eq!(keywords("{ /\"/}\nrules\n"), ["rules"]);
    assert_eq!(keywords("ä\"ö\nrules\n"), [""; 0]);
}

#[test]
fn start_of_a_section_is_behind_its_line() {
    let text = "x\n\nlanguage\n\ty\nterminology";
    let starts = section_starts(text);
    let found: Vec<(usize, usize)> = starts
        .iter()
        .map(|start| (start.line, start.body))
        .collect();
    assert_eq!(found, [(3, 12), (15, 26)]);
}

#[test]
fn text_with_too_many_values_is_rejected() {
    let sets = |count: usize| {
        let members = "\"a\",".repeat(count);
        let text = format!(
            "operational_template (adl_version=2.0.6)\n\tx.v1\nterminology\n\tvalue_sets = <[\"ac1\"] = <members = <{members}>>>\n"
        );
        document(&text).map(drop).map_err(|problem| problem.code)
    };
    // The sets, the set and its members are three values beside the texts.
    assert_eq!(sets(ITEMS - 3), Ok(()));
    assert_eq!(sets(ITEMS - 2), Err("TPL0104"));
}

#[test]
fn the_original_language_is_found_beside_translations() {
    let text = SIZE.replacen(
        "original_language = <[ISO_639-1::en]>",
        r#"translations = <
        ["en"] = <
            language = <[ISO_639-1::en]>
            author = <["name"] = <"A. Berg">>
        >
    >
    original_language = <[ISO_639-1::sv]>"#,
        1,
    );
    let text = text.replacen(
        "term_definitions = <",
        r#"term_definitions = <
        ["sv"] = <
            ["id1"] = <text = <"Storlek"> description = <"">>
        >"#,
        1,
    );
    let template = Template::parse_opt2(&text).unwrap();
    assert_eq!(
        (template.language.as_str(), template.concept.as_str()),
        ("sv", "Storlek")
    );
}
