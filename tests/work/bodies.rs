//! Bodies: canonical JSON and XML, FLAT and STRUCTURED, read, validated and written.

use crate::measure::BODIES;
use aqlite::rm::class::Cls;
use aqlite::rm::{json, validate, xml};
use aqlite::template::flat::{self, FlatDialect, Shape};
use aqlite::template::{self, Template, WebTemplate};

const SMALL: &str = include_str!("../cases/template/small.opt");
const WEIGHT: &str = include_str!("../cases/rest/weight.json");
const NOW: &str = "2026-11-20T09:30:00Z";

/// Returns the sample composition with an ELEMENT repeated `count` times.
fn wide(count: usize) -> String {
    repeated(count, |_, _| {})
}

/// Returns the same with a number behind each name, as editors of forms write them.
fn numbered(count: usize) -> String {
    repeated(count, |index, element| {
        let name = format!("Weight #{}", index + 1);
        element["name"]["value"] = name.into();
    })
}

/// Returns the sample composition with `count` copies of an ELEMENT, each changed by a function of
/// its index.
fn repeated(count: usize, change: impl Fn(usize, &mut serde_json::Value)) -> String {
    let mut document: serde_json::Value = serde_json::from_str(WEIGHT).unwrap();
    let items = document
        .pointer_mut("/content/0/data/events/0/data/items")
        .and_then(|i| i.as_array_mut())
        .expect("the items of the sample");
    let element = items[0].clone();
    items.resize(count, element);
    let copies = items.iter_mut().enumerate();
    copies.for_each(|(index, copy)| change(index, copy));
    document.to_string()
}

fn json_bodies() {
    let template = Template::parse(SMALL).unwrap();
    let web = WebTemplate::of(&template);
    let bodies = [
        ("many members", wide(4_000)),
        ("many members with numbered names", numbered(4_000)),
        ("lists inside one another", "[".repeat(1_000_000)),
        (
            "objects inside one another",
            "{\"content\":".repeat(200_000),
        ),
        (
            "one name again and again",
            format!(
                "{{\"_type\":\"COMPOSITION\",{}\"name\":1}}",
                "\"name\":{},".repeat(100_000)
            ),
        ),
        (
            "unknown names",
            format!(
                "{{\"_type\":\"COMPOSITION\",{}\"x\":1}}",
                (0..100_000)
                    .map(|i| format!("\"x{i}\":1,"))
                    .collect::<String>()
            ),
        ),
        (
            "a long number",
            format!(
                "{{\"_type\":\"DV_COUNT\",\"magnitude\":{}}}",
                "9".repeat(1_000_000)
            ),
        ),
        (
            "a long exponent",
            format!(
                "{{\"_type\":\"DV_QUANTITY\",\"units\":\"1\",\"magnitude\":1e{}}}",
                "9".repeat(100_000)
            ),
        ),
    ];
    for (what, text) in bodies {
        BODIES.check(what, text.len(), || {
            let Ok(tree) = json::read(&text, Cls::ANY) else {
                return;
            };
            let root = tree.root().unwrap();
            let _ = (
                validate::validate(root),
                template::validate(root, &template),
                json::write(root),
                xml::write(root, "composition"),
            );
            let _ = flat::write_within(
                root,
                Shape::Flat,
                &template,
                &web,
                FlatDialect::Better,
                50_000_000,
            );
        });
    }
}

fn xml_bodies() {
    let bodies = [
        (
            "elements inside one another",
            "<composition>".repeat(200_000),
        ),
        (
            "attributes of one element",
            format!(
                "<composition {}/>",
                (0..100_000)
                    .map(|i| format!("a{i}='' "))
                    .collect::<String>()
            ),
        ),
        (
            "name spaces of one element",
            format!(
                "<composition {}/>",
                (0..100_000)
                    .map(|i| format!("xmlns:a{i}='u' "))
                    .collect::<String>()
            ),
        ),
        (
            "entities",
            format!(
                "<!DOCTYPE a [<!ENTITY a \"{}\">]><composition>&a;</composition>",
                "x".repeat(10_000)
            ),
        ),
        (
            "many elements",
            format!(
                "<composition>{}</composition>",
                "<content/>".repeat(100_000)
            ),
        ),
    ];
    for (what, text) in bodies {
        BODIES.check(what, text.len(), || {
            drop(xml::read(&text, Cls::COMPOSITION))
        });
    }
}

fn flat_bodies() {
    let template = Template::parse(SMALL).unwrap();
    let web = WebTemplate::of(&template);
    let root = &web.tree.id;
    let keys = |key: fn(usize) -> String, count: usize| {
        let keys: Vec<String> = (0..count)
            .map(|i| format!("\"{root}/{}\":\"1\"", key(i)))
            .collect();
        format!("{{{}}}", keys.join(","))
    };
    let bodies = [
        (
            "an index of two billion",
            format!(
                "{{\"{root}/body_weight:2000000000/any_event:2000000000/weight|magnitude\":1}}"
            ),
        ),
        (
            "the greatest index",
            format!("{{\"{root}/body_weight:10000/any_event:10000/weight|magnitude\":1}}"),
        ),
        ("unknown keys", keys(|i| format!("unknown{i}"), 40_000)),
        (
            "unknown keys that are long",
            keys(|i| format!("{}{i}", "unknown".repeat(100)), 10_000),
        ),
        (
            "many events",
            keys(
                |i| format!("body_weight:0/any_event:{}/weight|magnitude", i % 10_000),
                10_000,
            ),
        ),
        (
            "suffixes with indexes",
            keys(
                |i| format!("body_weight:0/any_event:0/weight|magnitude:{i}"),
                10_000,
            ),
        ),
        (
            "segments inside one another",
            keys(|i| format!("{}{i}", "a/".repeat(60)), 5_000),
        ),
        ("participations for every entry", {
            let ctx: String = (0..2_000)
                .map(|i| format!("\"ctx/participation_name:{i}\":\"x\","))
                .collect();
            let entries: Vec<String> = (0..2_000)
                .map(|i| format!("\"{root}/body_weight:{i}/any_event:0/weight|magnitude\":1"))
                .collect();
            format!("{{{ctx}{}}}", entries.join(","))
        }),
    ];
    for (what, text) in bodies {
        for shape in [Shape::Flat, Shape::Structured] {
            BODIES.check(what, text.len(), || {
                let Ok(tree) = flat::read(&text, shape, &template, &web, NOW) else {
                    return;
                };
                let root = tree.root().unwrap();
                let _ = template::validate(root, &template);
                let _ = flat::write_within(
                    root,
                    shape,
                    &template,
                    &web,
                    FlatDialect::Better,
                    50_000_000,
                );
            });
        }
    }
}

/// A list whose members must differ, and a member that fits many alternatives. The cost of neither
/// is quadratic.
fn lists_against_templates() {
    let unique = SMALL.replace(
        "<is_unique>false</is_unique>",
        "<is_unique>true</is_unique>",
    );
    let many = wide(4_000);
    for text in [SMALL.to_owned(), unique] {
        let template = Template::parse(&text).unwrap();
        BODIES.check("members that must differ", many.len(), || {
            let tree = json::read(&many, Cls::COMPOSITION).unwrap();
            let _ = template::validate(tree.root().unwrap(), &template);
        });
    }
}

pub fn all() {
    json_bodies();
    xml_bodies();
    flat_bodies();
    lists_against_templates();
}
