//! Templates: read, measured, and all artefacts derived from them.

use crate::measure::{ADL, EXAMPLES, TEMPLATES};
use crate::random::Random;
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::template::flat::{self, FlatDialect, Shape};
use aqlite::template::{ExampleKind, Template, WebTemplate, example, limits, validate};

const SMALL: &str = include_str!("../cases/template/small.opt");
const SAMPLES: [&str; 3] = [
    SMALL,
    include_str!("../cases/template/named.opt"),
    include_str!("../../www/samples/vital_signs.opt"),
];
const WEIGHT: &str = include_str!("../cases/rest/weight.json");
const NOW: &str = "2026-11-20T09:30:00Z";
/// The default limit of results.
const RESULT: usize = 50_000_000;

/// Returns a constraint object of OPT 1.4 with its content.
fn object(class: &str, id: &str, occurrences: &str, inner: &str) -> String {
    format!(
        "<children xsi:type=\"C_COMPLEX_OBJECT\"><rm_type_name>{class}</rm_type_name>{}<node_id>{id}</node_id>{inner}</children>",
        count("occurrences", occurrences)
    )
}

/// Returns `2..*` as an element.
fn count(element: &str, bounds: &str) -> String {
    let (lower, upper) = bounds.split_once("..").unwrap();
    let upper = if upper == "*" {
        String::from("<upper_unbounded>true</upper_unbounded>")
    } else {
        format!("<upper>{upper}</upper>")
    };
    format!("<{element}><lower>{lower}</lower>{upper}</{element}>")
}

fn attribute(name: &str, inner: &str) -> String {
    format!(
        "<attributes xsi:type=\"C_MULTIPLE_ATTRIBUTE\"><rm_attribute_name>{name}</rm_attribute_name>{inner}</attributes>"
    )
}

/// Returns a template of one CLUSTER. `behind` follows its definition.
fn template(definition: &str, behind: &str) -> String {
    format!(
        "<template xmlns:xsi=\"x\"><language><code_string>en</code_string></language><template_id><value>bomb.v1</value></template_id><concept>Bomb</concept>\
         <definition xsi:type=\"C_ARCHETYPE_ROOT\"><rm_type_name>CLUSTER</rm_type_name><node_id>at0000</node_id>{definition}\
         <archetype_id><value>openEHR-EHR-CLUSTER.bomb.v1</value></archetype_id></definition>{behind}</template>"
    )
}

/// Returns nested clusters. Each has these `occurrences`, and `named` as its name.
fn nested(depth: usize, occurrences: &str, named: &str) -> String {
    (0..depth).fold(String::new(), |inner, level| {
        let inner = if inner.is_empty() {
            object("ELEMENT", "at0009", "1..1", "")
        } else {
            inner
        };
        attribute(
            "items",
            &object(
                "CLUSTER",
                &format!("at{level:04}"),
                occurrences,
                &format!("{named}{inner}"),
            ),
        )
    })
}

fn terms(count: usize) -> String {
    (0..count)
        .map(|i| format!("<items code=\"at{i:05}\"><items id=\"text\">Term {i}</items></items>"))
        .collect()
}

/// A template: its name, its text, and whether an upload is refused.
type Bomb = (&'static str, String, bool);

fn bombs() -> Vec<Bomb> {
    [bombs_of_bounds(), bombs_of_repetition(), bombs_of_lists()].concat()
}

fn element(occurrences: &str) -> String {
    object("ELEMENT", "at0001", occurrences, "")
}

/// Returns an attribute that permits two coded names.
fn coded_name() -> String {
    format!(
        "<attributes><rm_attribute_name>name</rm_attribute_name>{}</attributes>",
        object(
            "DV_CODED_TEXT",
            "",
            "1..1",
            &attribute(
                "defining_code",
                "<children xsi:type=\"C_CODE_PHRASE\"><rm_type_name>CODE_PHRASE</rm_type_name><node_id/><terminology_id><value>local</value></terminology_id><code_list>at0001</code_list><code_list>at0002</code_list></children>"
            )
        )
    )
}

/// Returns an ELEMENT whose text must match an expression.
fn element_with_pattern(source: &str) -> String {
    object(
        "ELEMENT",
        "at0001",
        "0..1",
        &attribute(
            "value",
            &object(
                "DV_TEXT",
                "",
                "0..1",
                &attribute(
                    "value",
                    &format!(
                        "<children xsi:type=\"C_PRIMITIVE_OBJECT\"><rm_type_name>STRING</rm_type_name><node_id/><item xsi:type=\"C_STRING\"><pattern>{source}</pattern></item></children>"
                    ),
                ),
            ),
        ),
    )
}

fn archetype_uses() -> String {
    (0..3_000).map(|_| "<children xsi:type=\"C_ARCHETYPE_ROOT\"><rm_type_name>CLUSTER</rm_type_name><node_id>at0000</node_id><archetype_id><value>openEHR-EHR-CLUSTER.used.v1</value></archetype_id></children>").collect()
}

fn terms_of_used_archetype() -> String {
    format!(
        "<component_ontologies archetype_id=\"openEHR-EHR-CLUSTER.used.v1\"><term_definitions language=\"de\">{}</term_definitions></component_ontologies>",
        terms(20_000)
    )
}

fn annotations() -> String {
    (0..20_000)
        .map(|i| format!("<annotations path=\"[openEHR-EHR-CLUSTER.bomb.v1]/items[at{i:05}]\"><items id=\"k\">text</items></annotations>"))
        .collect()
}

/// Returns an ELEMENT with a list of texts, none of which matches the expression.
fn element_without_valid_text() -> String {
    let list: String = (0..60_000)
        .map(|i| format!("<list>text {i}</list>"))
        .collect();
    object(
        "ELEMENT",
        "at0001",
        "1..1",
        &attribute(
            "value",
            &object(
                "DV_TEXT",
                "",
                "1..1",
                &attribute(
                    "value",
                    &format!(
                        "<children xsi:type=\"C_PRIMITIVE_OBJECT\"><rm_type_name>STRING</rm_type_name><node_id/><item xsi:type=\"C_STRING\"><pattern>never</pattern>{list}</item></children>"
                    ),
                ),
            ),
        ),
    )
}

/// Templates with bounds that no document can meet.
fn bombs_of_bounds() -> Vec<Bomb> {
    vec![
        (
            "a lower bound of two billion",
            template(&attribute("items", &element("2000000000..*")), ""),
            true,
        ),
        (
            "a cardinality of two billion",
            template(
                &attribute(
                    "items",
                    &format!(
                        "<cardinality>{}</cardinality>{}",
                        count("interval", "2000000000..*"),
                        element("0..*")
                    ),
                ),
                "",
            ),
            true,
        ),
        (
            "a cardinality of two billion without members",
            template(
                &attribute(
                    "items",
                    &format!(
                        "<cardinality>{}</cardinality>",
                        count("interval", "2000000000..*")
                    ),
                ),
                "",
            ),
            true,
        ),
        (
            "bounds that contradict each other",
            template(&attribute("items", &element("5..2")), ""),
            true,
        ),
        (
            "an existence of two billion",
            template(
                &attribute(
                    "items",
                    &format!(
                        "{}{}",
                        count("existence", "2000000000..2000000000"),
                        element("0..*")
                    ),
                ),
                "",
            ),
            true,
        ),
    ]
}

/// Templates whose parts multiply.
fn bombs_of_repetition() -> Vec<Bomb> {
    vec![
        (
            "nested lower bounds",
            template(&nested(30, "4..*", ""), ""),
            true,
        ),
        (
            "nested coded names",
            template(&nested(30, "0..*", &coded_name()), ""),
            true,
        ),
        (
            "attributes of one element",
            template(
                &attribute("items", &element("0..1")),
                &format!(
                    "<annotations {}/>",
                    (0..100_000)
                        .map(|i| format!("a{i}='' "))
                        .collect::<String>()
                ),
            ),
            true,
        ),
        (
            "many uses of an archetype with many terms",
            template(
                &attribute("items", &archetype_uses()),
                &terms_of_used_archetype(),
            ),
            true,
        ),
        (
            "expressions with nested repetitions",
            template(
                &attribute(
                    "items",
                    &element_with_pattern("(.{1000}){15}").repeat(2_000),
                ),
                "",
            ),
            true,
        ),
        (
            "alternatives with the same id",
            template(&attribute("items", &element("0..1").repeat(5_000)), ""),
            true,
        ),
    ]
}

/// Templates with many or long texts.
fn bombs_of_lists() -> Vec<Bomb> {
    vec![
        (
            "annotations of every node",
            template(
                &attribute(
                    "items",
                    &(0..900)
                        .map(|i| object("ELEMENT", &format!("at{i:05}"), "0..1", ""))
                        .collect::<String>(),
                ),
                &annotations(),
            ),
            false,
        ),
        (
            "a list of texts of which none may stand",
            template(&attribute("items", &element_without_valid_text()), ""),
            true,
        ),
        (
            "a name of a megabyte",
            template(
                &nested(40, "1..1", ""),
                &format!(
                    "<ontology archetype_id=\"openEHR-EHR-CLUSTER.bomb.v1\"><term_definitions language=\"en\"><items code=\"at0001\"><items id=\"text\">{}</items></items></term_definitions></ontology>",
                    "x".repeat(1_000_000)
                ),
            ),
            true,
        ),
        ("elements inside one another", "<a>".repeat(1_000_000), true),
        (
            "many elements",
            template("", &"<a/>".repeat(1_500_000)),
            true,
        ),
        (
            "many languages",
            template(
                &attribute("items", &element("0..1")),
                &format!(
                    "<ontology archetype_id=\"openEHR-EHR-CLUSTER.bomb.v1\">{}</ontology>",
                    (0..20_000)
                        .map(|i| format!("<term_definitions language=\"l{i}\"/>"))
                        .collect::<String>()
                ),
            ),
            true,
        ),
    ]
}

/// Derives the artefacts of a template whose size depends on its length.
fn describe(template: &Template) {
    let _ = template.texts();
    let _ = WebTemplate::of(template);
    let weight = json::read(WEIGHT, Cls::ANY).unwrap();
    let _ = validate(weight.root().unwrap(), template);
}

/// Derives the examples of a template, and what the service makes of them.
fn derive_examples(template: &Template) {
    for kind in [ExampleKind::Minimal, ExampleKind::Full] {
        let _ = example(template, kind, None, NOW);
    }
    let web = WebTemplate::of(template);
    if let (true, Ok(tree)) = (
        web.is_complete,
        example(template, ExampleKind::Minimal, None, NOW),
    ) {
        let root = tree.root().unwrap();
        let _ = web.to_json_within(template, RESULT);
        for shape in [Shape::Flat, Shape::Structured] {
            let Ok(written) =
                flat::write_within(root, shape, template, &web, FlatDialect::Better, RESULT)
            else {
                continue;
            };
            let _ = flat::read(&written.text, shape, template, &web, NOW);
        }
    }
}

fn check(what: &str, text: &str) -> Result<Template, ()> {
    let mut read = Err(());
    TEMPLATES.check(what, text.len(), || {
        read = Template::parse(text).map_err(drop);
        read.iter().for_each(describe);
    });
    let mut read_opt2 = Err(());
    TEMPLATES.check(what, text.len(), || {
        read_opt2 = Template::parse_opt2(text).map_err(drop);
        read_opt2.iter().for_each(describe);
    });
    for template in read.iter().chain(&read_opt2) {
        EXAMPLES.check(what, text.len(), || derive_examples(template));
    }
    read
}

/// Returns a template in ADL 2 text, with terms behind those of its root.
fn adl(definition: &str, terms: &str) -> String {
    format!(
        "operational_template (adl_version=2.0.6)\n\topenEHR-EHR-COMPOSITION.bomb.v1.0.0\n\
         language\n\toriginal_language = <[ISO_639-1::en]>\n\
         definition\n\tCOMPOSITION[id1] matches {{{definition}}}\n\
         terminology\n\tterm_definitions = <[\"en\"] = <[\"id1\"] = <text = <\"x\">>{terms}>>\n"
    )
}

/// Returns the content of a composition, repeated up to the length of `LIMIT_TEMPLATE`.
fn adl_content(part: &str) -> String {
    let all = part.repeat(ADL_LENGTH / part.len());
    adl(&format!("content matches {{{all}}}"), "")
}

/// About the default of `LIMIT_TEMPLATE`.
const ADL_LENGTH: usize = 7_800_000;

/// Reads texts in ADL 2 of many short parts.
fn adl_bombs() {
    let filled = |part: &str| part.repeat(ADL_LENGTH / part.len());
    for (what, text) in [
        ("blank lines", adl(&filled("\n"), "")),
        ("lines of a blank", adl(&filled(" \n"), "")),
        ("lines of a letter", adl("", "") + &filled("l\n")),
        ("comments", adl(&filled("--\n"), "")),
        (
            "lines that are almost keywords",
            adl("", "") + &filled("rule   \n"),
        ),
        (
            "texts with lines like keywords",
            adl("", &filled("\"rules\n\"")),
        ),
        ("terms", adl("", &filled("[\"id2\"]=<text=<\"a\">>"))),
        ("values", adl("", &filled("[a]=<1>"))),
        ("references", adl_content("use_node OBSERVATION[id2] /a\n")),
        ("objects", adl_content("A[a]")),
        ("attributes", adl(&filled("a "), "")),
        (
            "names of a tuple",
            adl(&format!("[{}] matches {{}}", filled("a,")), ""),
        ),
        (
            "parts of a multiplicity",
            adl(
                &format!("content cardinality matches {{0..*{}}}", filled(";")),
                "",
            ),
        ),
    ] {
        ADL.check(what, text.len(), || drop(Template::parse_opt2(&text)));
    }
}

fn named_bombs() {
    for (what, text, is_refused) in bombs() {
        let read = check(what, &text);
        let accepted = read.is_ok_and(|template| template.excesses().is_empty());
        assert_eq!(
            accepted,
            !is_refused,
            "{what}: an upload is {}",
            if accepted { "accepted" } else { "refused" }
        );
    }
}

/// Checks templates with random bounds, and with repeated or missing parts.
fn random_templates() {
    let mut random = Random::new(15);
    for round in 0..150 {
        let sample = random.pick(&SAMPLES);
        let mut text = sample.to_owned();
        for _ in 0..=random.below(6) {
            text = mutated(&text, &mut random);
        }
        let read = check(&format!("round {round}"), &text);
        let Ok(template) = read else { continue };
        if template.excesses().is_empty() {
            let made = example(&template, ExampleKind::Full, None, NOW);
            let findings = made.err().unwrap_or_default();
            assert!(
                findings.iter().all(|f| f.code != "TPL0603"),
                "an accepted template has an example within the limits, or none at all: {findings:?}"
            );
        }
    }
}

fn mutated(text: &str, random: &mut Random) -> String {
    const BOUNDS: [&str; 8] = [
        "0",
        "1",
        "2",
        "10",
        "999",
        "100000",
        "2000000000",
        "4294967295",
    ];
    let places: Vec<usize> = ["<lower>", "<upper>"]
        .iter()
        .flat_map(|tag| text.match_indices(tag).map(|(at, _)| at + tag.len()))
        .collect();
    let nodes: Vec<usize> = text.match_indices("<children").map(|(at, _)| at).collect();
    match random.below(4) {
        0 | 1 if !places.is_empty() => {
            let at = random.pick(&places);
            let end = at + text[at..].find('<').unwrap();
            format!("{}{}{}", &text[..at], random.pick(&BOUNDS), &text[end..])
        }
        2 if !nodes.is_empty() => {
            let at = random.pick(&nodes);
            let Some(length) = element_length(&text[at..]) else {
                return text.to_owned();
            };
            let part = &text[at..at + length];
            let times = [2, 10, 300][random.below(3)].min(1 + 3_000_000 / part.len());
            format!(
                "{}{}{}",
                &text[..at],
                part.repeat(times),
                &text[at + length..]
            )
        }
        _ => text.replacen(
            "<node_id>at0004</node_id>",
            &format!("<node_id>at{:04}</node_id>", random.below(9)),
            1,
        ),
    }
}

/// Returns the length of the `children` element that begins here.
fn element_length(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let next = at + text[at..].find("children")?;
        let is_end = text[..next].ends_with("</");
        depth = if is_end {
            depth.checked_sub(1)?
        } else {
            depth + 1
        };
        at = next + "children".len();
        if depth == 0 {
            return Some(at + text[at..].find('>')? + 1);
        }
    }
}

/// Values at the limits are accepted; values one above are refused.
fn limits_are_exact() {
    let element = |occurrences: &str| object("ELEMENT", "at0001", occurrences, "");
    let accepted = |definition: &str| {
        Template::parse(&template(definition, "")).is_ok_and(|t| t.excesses().is_empty())
    };
    assert!(accepted(&attribute(
        "items",
        &element(&format!("{}..*", limits::MAX_LOWER_BOUND))
    )));
    assert!(!accepted(&attribute(
        "items",
        &element(&format!("{}..*", limits::MAX_LOWER_BOUND + 1))
    )));
    let distinct = |n: usize| {
        (0..n)
            .map(|i| object("ELEMENT", &format!("at{i:05}"), "0..1", ""))
            .collect::<String>()
    };
    assert!(accepted(&attribute(
        "items",
        &distinct(limits::MAX_ALTERNATIVES)
    )));
    assert!(!accepted(&attribute(
        "items",
        &distinct(limits::MAX_ALTERNATIVES + 1)
    )));
    assert!(accepted(&attribute(
        "items",
        &element("0..1").repeat(limits::MAX_ALTERNATIVES_OF_ID)
    )));
    assert!(!accepted(&attribute(
        "items",
        &element("0..1").repeat(limits::MAX_ALTERNATIVES_OF_ID + 1)
    )));
    let refused = Template::parse(&template(
        &attribute("items", &element("2000000000..*")),
        "",
    ))
    .unwrap();
    let [excess, ..] = refused.excesses() else {
        panic!("an excess")
    };
    assert_eq!(
        (excess.code, excess.message.as_str()),
        (
            "TPL0303",
            "[openEHR-EHR-CLUSTER.bomb.v1]/items[at0001]: occurrences 2000000000..* asks for at least 2000000000 objects"
        )
    );
    assert!(excess.help.is_some() && excess.span.start > 0);
}

pub fn all() {
    limits_are_exact();
    named_bombs();
    adl_bombs();
    random_templates();
}
