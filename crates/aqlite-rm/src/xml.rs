//! Canonical XML: a tolerant reader and a strict writer, both driven by the class table.
//!
//! The reader accepts namespace v1, v2 or none, any declared prefix, and elements in any order.
//! Other namespaces, and root elements with other names than those of the class, are rejected. It keeps white space in texts, and rejects document types and custom entities.
//!
//! The output is valid against a published XSD: namespace v1, or v2 for content that only the later
//! schema allows. Elements are in the order of the XSD, `xsi:type` is written where the class is
//! not the declared one, and `archetype_node_id` is the only attribute (ITS-XML Release 1.0.2 and
//! its successor for RM 1.1.0).

mod elements;
mod namespaces;
mod read;
mod root;
mod schema;
mod write;

pub use elements::{child_elements, elements};
pub use read::{read, read_element, read_within};
use write::is_xml;
pub(super) use write::not_in_xml_finding;
pub use write::{not_in_xml, write, write_without_audit_terms};

const V1: &str = "http://schemas.openehr.org/v1";
const V2: &str = "http://schemas.openehr.org/v2";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbitrary::Generator;
    use crate::class::{Attr, Cls};
    use crate::diag::Finding;
    use crate::json;

    fn problems(text: &str, expected: Cls) -> Vec<String> {
        read(text, expected)
            .err()
            .unwrap_or_default()
            .iter()
            .map(Finding::one_line)
            .collect()
    }

    /// Converts JSON to XML and back, which must result in the same JSON.
    fn round_trip(text: &str) -> String {
        let tree = json::read(text, Cls::ANY).unwrap();
        let root = tree.root().unwrap();
        let xml = write(root, "value").unwrap();
        let again = read(&xml, Cls::ANY).unwrap_or_else(|e| panic!("{xml}: {e:?}"));
        assert_eq!(json::write(again.root().unwrap()), text, "{xml}");
        xml
    }

    #[test]
    fn root_element_has_a_name_of_its_class() {
        let members = r#" archetype_node_id="at1"><name><value>n</value></name></"#;
        let element = |name: &str| format!("<{name}{members}{name}>");
        for (name, expected, is_read) in [
            ("cluster", Cls::CLUSTER, true),
            ("item", Cls::CLUSTER, true),
            ("items", Cls::CLUSTER, true),
            ("value", Cls::CLUSTER, false),
            ("folder", Cls::CLUSTER, false),
            ("element", Cls::CLUSTER, false),
            ("cluster", Cls::ITEM, false),
            ("foo", Cls::CLUSTER, false),
            ("composition", Cls::COMPOSITION, true),
            ("items", Cls::COMPOSITION, true),
            // The attribute of a VERSION.
            ("data", Cls::COMPOSITION, true),
            ("foo", Cls::COMPOSITION, false),
        ] {
            let found = problems(&element(name), expected);
            assert_eq!(found.is_empty(), is_read, "{name} {expected}: {found:?}");
        }
        for (name, is_read) in [("items", true), ("folder", false), ("foo", false)] {
            let typed = format!(
                r#"<{name} xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CLUSTER"{members}{name}>"#
            );
            for expected in [Cls::CLUSTER, Cls::ITEM] {
                let found = problems(&typed, expected);
                assert_eq!(found.is_empty(), is_read, "{name} {expected}: {found:?}");
            }
        }
        assert_eq!(
            problems(&element("foo"), Cls::COMPOSITION),
            [
                "/: the root element `foo` is no name of the object: rename it; expected `composition` (RM0103)"
            ]
        );
    }

    #[test]
    fn root_of_elements_is_checked() {
        let instance = format!("xmlns:xsi='{INSTANCE}'");
        let found = |text: &str| -> Vec<String> {
            let found = elements(text, Cls::CONTRIBUTION).err().unwrap_or_default();
            found.iter().map(Finding::one_line).collect()
        };
        for (text, rule) in [
            ("<foo/>", "/: the root element `foo` is no name"),
            ("<version/>", "/: the root element `version` is no name"),
            (
                "<contribution a='1'/>",
                "/a: `CONTRIBUTION` has no attribute `a` (RM0101)",
            ),
            (
                &format!("<contribution {instance} xsi:type='FOLDER'/>"),
                "/: an object of this class cannot stand here; expected CONTRIBUTION, found FOLDER",
            ),
            (
                "<contribution><versions/> stray <audit/></contribution>",
                "/: wrong kind of value; expected elements only, found the text `stray` (RM0106)",
            ),
            (
                "<contribution><![CDATA[x]]></contribution>",
                "found the text `x`",
            ),
            ("<contribution>&lt;</contribution>", "found the text `&lt;`"),
            ("<contribution/><contribution/>", "a second root element"),
            ("<contribution/>a", "text outside of the root element"),
            ("", "ends too early"),
        ] {
            let found = found(text);
            assert!(
                found.len() == 1 && found[0].contains(rule),
                "{text}: {found:?}"
            );
        }
        let valid = format!(
            "<?xml version='1.0'?><!-- a --><contribution {instance} xsi:schemaLocation='a b' xsi:type='CONTRIBUTION'>\n<audit>a</audit><!-- b --><versions/></contribution>\n"
        );
        let names = elements(&valid, Cls::CONTRIBUTION).unwrap();
        assert_eq!(
            names
                .iter()
                .map(|(name, text)| (name.as_ref(), *text))
                .collect::<Vec<_>>(),
            [("audit", "<audit>a</audit>"), ("versions", "<versions/>")]
        );
    }

    #[test]
    fn end_of_a_cdata_section_is_escaped_in_texts() {
        let text =
            |text: &str| problems(&format!("<name><value>{text}</value></name>"), Cls::DV_TEXT);
        for valid in [
            "a]]&gt;b",
            "a]]<!-- x -->&gt;",
            "<![CDATA[a]]]]><![CDATA[>b]]>",
            "]] >",
        ] {
            assert_eq!(text(valid), [""; 0], "{valid}");
        }
        let found = text("a]]>b");
        assert!(
            found.len() == 1 && found[0].ends_with("(RM0003)"),
            "{found:?}"
        );
    }

    #[test]
    fn elements_are_read_with_any_prefix_in_any_order() {
        let text = r#"<?xml version="1.0"?><o:name xmlns:o="http://schemas.openehr.org/v2" xmlns:x="http://www.w3.org/2001/XMLSchema-instance" x:type="o:DV_CODED_TEXT">
            <o:defining_code><o:code_string>at1</o:code_string><o:terminology_id><o:value>local</o:value></o:terminology_id></o:defining_code><o:value> a&#x20;<![CDATA[<b>]]>&amp;</o:value></o:name>"#;
        let tree = read(text, Cls::DV_TEXT).unwrap();
        assert_eq!(
            json::write(tree.root().unwrap()),
            r#"{"_type":"DV_CODED_TEXT","value":" a <b>&","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"local"},"code_string":"at1"}}"#
        );
    }

    #[test]
    fn other_namespaces_and_undeclared_prefixes_are_rejected() {
        let instance = format!("xmlns:xsi='{INSTANCE}'");
        for (text, rule) in [
            (
                "<dv_text xmlns='urn:other'><value>a</value></dv_text>",
                "line 1, column 1: the element `dv_text` is of the namespace `urn:other`",
            ),
            (
                "<dv_text>\n<value xmlns='urn:other'>a</value></dv_text>",
                "line 2, column 1: the element `value` is of the namespace `urn:other`",
            ),
            (
                "<o:dv_text xmlns:o='urn:other'><o:value>a</o:value></o:dv_text>",
                "`urn:other`",
            ),
            (
                "<o:dv_text><value>a</value></o:dv_text>",
                "the prefix `o` is not declared: declare it",
            ),
            (
                "<dv_text><o:value>a</o:value></dv_text>",
                "the prefix `o` is not declared",
            ),
            (
                "<dv_text><value xmlns:o='http://schemas.openehr.org/v1'/><o:value>a</o:value></dv_text>",
                "the prefix `o` is not declared",
            ),
            (
                "<a:b:dv_text><value>a</value></a:b:dv_text>",
                "`a:b:dv_text` is no qualified name",
            ),
            (
                "<items xsi:type='ELEMENT'/>",
                "the prefix `xsi` is not declared",
            ),
            (
                "<items xmlns:xsi='urn:other' xsi:type='ELEMENT'/>",
                "an attribute is of the namespace `urn:other`",
            ),
            (
                &format!("<items {instance} xsi:type='a:b:ELEMENT'/>"),
                "`a:b:ELEMENT` is no qualified name: expected a name, or one prefix",
            ),
            (
                &format!("<items {instance} xsi:type=':ELEMENT'/>"),
                "no qualified name",
            ),
            (
                &format!("<items {instance} xsi:type='o:ELEMENT'/>"),
                "the prefix `o` is not declared",
            ),
            (
                &format!("<items {instance} xmlns:o='urn:other' xsi:type='o:ELEMENT'/>"),
                "the type `o:ELEMENT` is of the namespace `urn:other`",
            ),
        ] {
            let found = problems(text, Cls::ANY);
            assert!(
                found.len() == 1 && found[0].contains(rule),
                "{text}: {found:?}"
            );
            let whole = format!("<contribution>{text}</contribution>");
            let found = elements(&whole, Cls::CONTRIBUTION).unwrap_err()[0].one_line();
            let rule = rule.rsplit("column 1: ").next().unwrap();
            assert!(found.contains(rule), "{whole}: {found}");
        }
        let many: String = (0..300).map(|i| format!(" xmlns:a{i}='b{i}'")).collect();
        let found = problems(&format!("<dv_text{many}/>"), Cls::ANY);
        assert!(found[0].contains("more than 256 declarations"), "{found:?}");
        let repeated =
            "<items xmlns='http://schemas.openehr.org/v1'>".repeat(100) + &"</items>".repeat(100);
        assert!(elements(&repeated, Cls::CLUSTER).is_ok());
    }

    #[test]
    fn elements_are_written_in_schema_order_with_types_where_needed() {
        let text = r#"{"value":{"_type":"DV_QUANTITY","units":"mm[Hg]","magnitude":120.50},"name":{"value":"S"},"archetype_node_id":"at0004"}"#;
        let tree = json::read(text, Cls::ELEMENT).unwrap();
        let expected = concat!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<items xmlns=\"http://schemas.openehr.org/v1\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"",
            " xsi:type=\"ELEMENT\" archetype_node_id=\"at0004\"><name><value>S</value></name>",
            "<value xsi:type=\"DV_QUANTITY\"><magnitude>120.50</magnitude><units>mm[Hg]</units></value></items>"
        );
        assert_eq!(write(tree.root().unwrap(), "items").unwrap(), expected);
        assert!(
            !write(tree.root().unwrap(), "element")
                .unwrap()
                .contains("\"ELEMENT\"")
        );
    }

    #[test]
    fn namespace_is_the_earliest_that_can_hold_the_content() {
        let identifier =
            r#"{"_type":"DV_IDENTIFIER","issuer":"i","assigner":"a","id":"1","type":"t"}"#;
        for (text, expected) in [
            (r#"{"_type":"DV_TEXT","value":"a"}"#, V1),
            (identifier, V1),
            (r#"{"_type":"DV_IDENTIFIER","id":"1"}"#, V2),
            (
                &format!(r#"{{"_type":"PARTY_IDENTIFIED","identifiers":[{identifier}]}}"#),
                V1,
            ),
            (r#"{"_type":"DV_SCALE","value":1.5}"#, V2),
            (r#"{"_type":"ELEMENT","null_reason":{"value":"r"}}"#, V2),
            (
                r#"{"_type":"DV_CODED_TEXT","value":"x","defining_code":{"code_string":"a","preferred_term":"p"}}"#,
                V2,
            ),
            (
                r#"{"_type":"INSTRUCTION_DETAILS","activity_id":"at0001"}"#,
                V1,
            ),
            (
                r#"{"_type":"INSTRUCTION_DETAILS","activity_id":"activities[at0001]"}"#,
                V2,
            ),
            (
                r#"{"_type":"ORIGINAL_VERSION","data":{"_type":"FOLDER"}}"#,
                V1,
            ),
            (
                r#"{"_type":"ORIGINAL_VERSION","data":{"_type":"EHR_STATUS"}}"#,
                V2,
            ),
            (r#"{"_type":"ADDRESS"}"#, V2),
            (r#"{"_type":"CONTACT"}"#, V2),
            (r#"{"_type":"PARTY_IDENTITY"}"#, V2),
            (r#"{"_type":"VERSIONED_FOLDER"}"#, V2),
            (
                r#"{"_type":"ORIGINAL_VERSION","data":{"_type":"FOLDER","archetype_node_id":"id1"}}"#,
                V2,
            ),
            (
                r#"{"_type":"ORIGINAL_VERSION","commit_audit":{"time_committed":{"value":"2026-11-20T08:30:00+13:00"}}}"#,
                V2,
            ),
            (
                r#"{"_type":"OBSERVATION","workflow_id":{"_type":"OBJECT_REF","type":"t"}}"#,
                V2,
            ),
        ] {
            let tree = json::read(text, Cls::ANY).unwrap();
            let written = write(tree.root().unwrap(), "value").unwrap();
            assert!(
                written.contains(&format!(" xmlns=\"{expected}\" ")),
                "{text}"
            );
        }
        let older = read(
            "<observation><work_flow_id><type>t</type></work_flow_id></observation>",
            Cls::ANY,
        )
        .unwrap();
        assert!(older.root().unwrap().get(Attr::WORKFLOW_ID).is_some());
    }

    #[test]
    fn carriage_return_is_written_as_character_reference() {
        assert!(round_trip(r#"{"_type":"DV_TEXT","value":"a\r\nb"}"#).contains("a&#13;\nb"));
    }

    #[test]
    fn control_characters_are_reported() {
        let tree = json::read(
            r#"{"_type":"CLUSTER","items":[{"_type":"ELEMENT","name":{"value":"a\u0001"}}]}"#,
            Cls::ANY,
        )
        .unwrap();
        let finding = write(tree.root().unwrap(), "items").unwrap_err();
        assert_eq!(
            finding.one_line(),
            "/items[0]/name/value: XML 1.0 cannot carry this character; found U+0001 (RM0108)"
        );
        assert_eq!(
            problems("<dv_text><value>&#1;</value></dv_text>", Cls::ANY).len(),
            1
        );
    }

    #[test]
    fn every_violation_is_reported_with_its_path() {
        let text = r#"<element archetype_node_id="at1" other="x" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">text<nome/><name><value>a<b/></value></name><name/>
            <value xsi:type="DV_COUNT"><magnitude>5.0</magnitude><magnitude_status>=</magnitude_status></value>
            <links><type xsi:type="CLUSTER"/></links><links><target><value/><valu/></target></links><uid><value>x</value></uid></element>"#;
        assert_eq!(
            problems(text, Cls::ELEMENT),
            [
                "/other: `ELEMENT` has no attribute `other` (RM0101)",
                "/: wrong kind of value; expected elements only, found the text `text` (RM0106)",
                "/nome: `ELEMENT` has no attribute `nome` (RM0101)",
                "/name/value: wrong kind of value; expected a text, found an element `b` (RM0106)",
                "/name: `name` occurs here more than once (RM0105)",
                "/value/magnitude: wrong kind of value; expected an integer, found `5.0` (RM0106)",
                "/links[0]/type: an object of this class cannot stand here; expected DV_TEXT, found CLUSTER (RM0104)",
                "/links[1]/target/valu: `DV_EHR_URI` has no attribute `valu` (RM0101)",
                "/uid: `UID_BASED_ID` is abstract: the object must name its class; expected UID_BASED_ID (RM0102)",
            ]
        );
    }

    #[test]
    fn malformed_xml_is_one_finding() {
        let deep = "<items>".repeat(10_000);
        let skipped = format!("<composition>{}", "<x>".repeat(10_000));
        for text in [
            "",
            "{}",
            "<composition>",
            "<composition></name>",
            "<composition/><composition/>",
            "<!DOCTYPE a [<!ENTITY x 'y'>]><composition/>",
            "<dv_text><value>&x;</value></dv_text>",
            "<composition/>text",
            "<a b='1' b='2'/>",
            &deep,
            &skipped,
        ] {
            let found = problems(text, Cls::COMPOSITION);
            assert!(
                found.len() == 1 && found[0].contains("not readable as XML: line "),
                "{:.40}: {found:?}",
                text
            );
        }
        assert!(problems(&deep, Cls::CLUSTER)[0].contains("RM0002"));
    }

    #[test]
    fn xml_number_spellings_become_json_numbers() {
        for (sent, kept) in [
            ("+1", "1"),
            (".5", "0.5"),
            ("5.", "5"),
            ("007", "7"),
            ("-00.50", "-0.50"),
            ("1E4", "1E4"),
            (" 2 ", "2"),
        ] {
            let tree = read(
                &format!("<dv_quantity><magnitude>{sent}</magnitude></dv_quantity>"),
                Cls::ANY,
            )
            .unwrap();
            assert_eq!(tree.root().unwrap().text_at(Attr::MAGNITUDE), Some(kept));
        }
        for sent in ["NaN", "INF", "", ".", "1,5", "0x1", "1 2"] {
            assert_eq!(
                problems(
                    &format!("<dv_quantity><magnitude>{sent}</magnitude></dv_quantity>"),
                    Cls::ANY
                )
                .len(),
                1,
                "{sent}"
            );
        }
    }

    #[test]
    fn damaged_xml_does_not_panic() {
        for seed in 0..300 {
            let mut generator = Generator::new(seed);
            let tree = generator.tree();
            let text = write(tree.root().unwrap(), "value").unwrap();
            for _ in 0..5 {
                let _ = read(&generator.damage(&text), Cls::ANY);
            }
        }
        let many: String = (0..20_000).map(|i| format!(" a{i}='x'")).collect();
        assert!(
            problems(&format!("<composition{many}/>"), Cls::COMPOSITION)[0]
                .contains("too many attributes")
        );
    }

    #[test]
    fn write_then_read_is_identity() {
        for seed in 0..400 {
            let tree = Generator::new(seed).without_empty_lists().tree();
            let root = tree.root().unwrap();
            let text = write(root, "value").unwrap();
            let again = read(&text, Cls::ANY).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert_eq!(
                json::write(again.root().unwrap()),
                json::write(root),
                "{text}"
            );
        }
    }
}
