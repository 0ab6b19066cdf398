//! `cargo xtask gen-rm`: writes `crates/aqlite-rm/src/class_table.rs` from
//! `crates/aqlite-rm/src/class_table.tsv`.

use std::collections::BTreeMap;
use std::fmt::Write;

const SOURCE: &str = "crates/aqlite-rm/src/class_table.tsv";
const TARGET: &str = "crates/aqlite-rm/src/class_table.rs";
/// Enumerations of the table, and the primitive type of their values in data.
const ENUMERATIONS: [(&str, &str); 3] = [
    ("PROPORTION_KIND", "Integer"),
    ("VALIDITY_KIND", "String"),
    ("VERSION_STATUS", "String"),
];
const PRIMITIVES: [&str; 7] = [
    "Boolean",
    "Character",
    "Integer",
    "Integer64",
    "Octets",
    "Real",
    "String",
];

#[derive(Default)]
struct Class {
    is_abstract: bool,
    parent: String,
    attributes: Vec<Attribute>,
}

#[derive(Clone)]
struct Attribute {
    name: String,
    ty: String,
    multiplicity: String,
    /// Whether an invariant requires a member of the list, if there is a list: `0..*+`.
    is_filled: bool,
    since: String,
    position: String,
    owner: String,
}

pub fn run() -> Result<(), String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../");
    let table =
        std::fs::read_to_string(format!("{root}{SOURCE}")).map_err(|e| format!("{SOURCE}: {e}"))?;
    let text = generate(&parse(&table)?)?;
    std::fs::write(format!("{root}{TARGET}"), text).map_err(|e| format!("{TARGET}: {e}"))?;
    println!("wrote {TARGET}");
    Ok(())
}

fn parse(table: &str) -> Result<BTreeMap<String, Class>, String> {
    let mut classes: BTreeMap<String, Class> = BTreeMap::new();
    for (number, line) in (1..).zip(table.lines()) {
        if !line.starts_with('#') && !line.is_empty() {
            parse_line(&mut classes, number, line)?;
        }
    }
    let any = classes.entry("Any".to_owned()).or_default();
    *any = Class {
        is_abstract: true,
        ..Class::default()
    };
    for name in PRIMITIVES {
        let class = classes.entry(name.to_owned()).or_default();
        *class = Class {
            parent: "Any".to_owned(),
            ..Class::default()
        };
    }
    Ok(classes)
}

/// Adds the class and the attribute of one line of the table.
fn parse_line(
    classes: &mut BTreeMap<String, Class>,
    number: usize,
    line: &str,
) -> Result<(), String> {
    let f: Vec<&str> = line.split('\t').collect();
    let [
        class,
        is_abstract,
        parent,
        _since,
        attribute,
        ty,
        multiplicity,
        since,
        position,
    ] = f[..]
    else {
        return Err(format!(
            "{SOURCE}:{}: expected 9 columns, found {}",
            number,
            f.len()
        ));
    };
    if ENUMERATIONS.iter().any(|(name, _)| *name == class) {
        return Ok(());
    }
    let entry = classes.entry(class.to_owned()).or_default();
    entry.is_abstract = is_abstract == "A";
    entry.parent = if parent.is_empty() {
        "Any".to_owned()
    } else {
        parent.to_owned()
    };
    if !attribute.is_empty() {
        entry.attributes.push(Attribute {
            name: attribute.to_owned(),
            ty: without_enumeration(ty).to_owned(),
            multiplicity: multiplicity.trim_end_matches('+').to_owned(),
            is_filled: multiplicity.ends_with('+'),
            since: since.to_owned(),
            position: position.to_owned(),
            owner: class.to_owned(),
        });
    }
    Ok(())
}

/// Returns the primitive type of an enumeration, and any other type unchanged.
fn without_enumeration(ty: &str) -> &str {
    let enumeration = ENUMERATIONS.iter().find(|(name, _)| *name == ty);
    enumeration.map_or(ty, |(_, primitive)| primitive)
}

/// Appends a class and its descendants in pre-order, so that "is a" is a range of numbers.
fn pre_order(classes: &BTreeMap<String, Class>, name: &str, order: &mut Vec<String>) {
    order.push(name.to_owned());
    for child in classes
        .iter()
        .filter(|(_, c)| c.parent == name)
        .map(|(n, _)| n)
    {
        pre_order(classes, child, order);
    }
}

/// Returns the own and inherited attributes of a class in the order of the XSD. Attributes that the
/// XSD lacks come last.
fn flatten(classes: &BTreeMap<String, Class>, name: &str) -> Vec<Attribute> {
    let mut all: Vec<Attribute> = Vec::new();
    for class in lineage(classes, name).into_iter().rev() {
        let mut own = class.attributes.clone();
        own.sort_by_key(|a| {
            a.position
                .parse::<u32>()
                .unwrap_or(if a.position == "@" { 0 } else { 1000 })
        });
        own.into_iter()
            .for_each(|attribute| redefine(&mut all, attribute));
    }
    all.sort_by_key(|a| match a.position.as_str() {
        "@" => 0,
        "-" => 2,
        _ => 1,
    });
    all
}

/// Returns a class and its ancestors, the class first.
fn lineage<'c>(classes: &'c BTreeMap<String, Class>, name: &str) -> Vec<&'c Class> {
    let parent = |class: &&Class| classes.get(&class.parent);
    std::iter::successors(classes.get(name), parent).collect()
}

/// Adds an attribute, or replaces the inherited one with its name. An attribute that the XSD does
/// not repeat in the descendant keeps the inherited position. Invariants are inherited always.
fn redefine(all: &mut Vec<Attribute>, attribute: Attribute) {
    match all.iter_mut().find(|a| a.name == attribute.name) {
        Some(inherited) => {
            let position = if attribute.position == "-" {
                inherited.position.clone()
            } else {
                attribute.position.clone()
            };
            *inherited = Attribute {
                position,
                is_filled: inherited.is_filled || attribute.is_filled,
                ..attribute
            };
        }
        None => all.push(attribute),
    }
}

fn constant(name: &str) -> String {
    name.to_uppercase()
}

fn generate(classes: &BTreeMap<String, Class>) -> Result<String, String> {
    let mut order = Vec::new();
    pre_order(classes, "Any", &mut order);
    if order.len() != classes.len() {
        let lost: Vec<_> = classes.keys().filter(|n| !order.contains(n)).collect();
        return Err(format!("{SOURCE}: no ancestor for {lost:?}"));
    }
    let number = |name: &str| {
        order
            .iter()
            .position(|n| n == name)
            .ok_or(format!("{SOURCE}: unknown class {name}"))
    };
    let flat: Vec<Vec<Attribute>> = order.iter().map(|n| flatten(classes, n)).collect();
    let mut names: Vec<&str> = flat.iter().flatten().map(|a| a.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let attr = |name: &str| names.iter().position(|n| *n == name).unwrap_or_default();

    let mut out = constants(&order, &names);
    let _ = writeln!(
        out,
        "pub(super) static CLASSES: [ClassDef; {}] = [",
        order.len()
    );
    for (name, attributes) in order.iter().zip(&flat) {
        write_class(&mut out, classes, &order, name, &number)?;
        for attribute in attributes {
            write_attribute(&mut out, attribute, &attr, &number)?;
        }
        out.push_str("    ] },\n");
    }
    out.push_str("];\n");
    Ok(out)
}

/// Returns the head of the file: the constants of classes and attributes, and the names of the
/// attributes.
fn constants(order: &[String], names: &[&str]) -> String {
    let mut out = String::from(
        "// Generated by `cargo xtask gen-rm` from class_table.tsv: do not edit.\n\nuse super::class::{Attr, AttrDef, Card, ClassDef, Cls, XmlForm};\n\n#[allow(missing_docs, reason = \"the names are the specification's\")]\nimpl Cls {\n",
    );
    for (i, name) in order.iter().enumerate() {
        let _ = writeln!(out, "    pub const {}: Cls = Cls({i});", constant(name));
    }
    out.push_str("}\n\n#[allow(missing_docs, reason = \"the names are the specification's\")]\nimpl Attr {\n");
    for (i, name) in names.iter().enumerate() {
        let _ = writeln!(out, "    pub const {}: Attr = Attr({i});", constant(name));
    }
    let _ = write!(
        out,
        "}}\n\npub(super) static ATTR_NAMES: [&str; {}] = {names:?};\n\n",
        names.len()
    );
    out
}

/// Writes the beginning of the definition of a class, up to its attributes. `number` returns the
/// numbers of classes.
fn write_class(
    out: &mut String,
    classes: &BTreeMap<String, Class>,
    order: &[String],
    name: &str,
    number: &dyn Fn(&str) -> Result<usize, String>,
) -> Result<(), String> {
    let class = &classes[name];
    // Classes are in pre-order, so the descendants are the numbers up to the last one.
    let last = order
        .iter()
        .rposition(|other| descends(classes, other, name));
    let last = last.ok_or_else(|| format!("{SOURCE}: no class {name}"))?;
    let parent = if class.parent.is_empty() {
        0
    } else {
        number(&class.parent)?
    };
    let _ = writeln!(
        out,
        "    ClassDef {{ name: {name:?}, is_abstract: {}, parent: Cls({parent}), last: {last}, attrs: &[",
        class.is_abstract
    );
    Ok(())
}

/// Writes the definition of an attribute. `attr` and `number` return the numbers of attributes and classes.
fn write_attribute(
    out: &mut String,
    a: &Attribute,
    attr: &dyn Fn(&str) -> usize,
    number: &dyn Fn(&str) -> Result<usize, String>,
) -> Result<(), String> {
    let card = match a.multiplicity.as_str() {
        "1" => "One",
        "0..1" => "Opt",
        "0..*" => "List",
        "1..*" => "List1",
        other => return Err(format!("{SOURCE}: multiplicity {other}")),
    };
    let xml = match a.position.as_str() {
        "@" => "Attribute",
        "-" => "Absent",
        _ => "Element",
    };
    let _ = writeln!(
        out,
        "        AttrDef {{ attr: Attr({}), ty: Cls({}), card: Card::{card}, is_filled: {}, xml: XmlForm::{xml}, owner: Cls({}), since: {:?} }},",
        attr(&a.name),
        number(&a.ty)?,
        a.is_filled,
        number(&a.owner)?,
        a.since
    );
    Ok(())
}

fn descends(classes: &BTreeMap<String, Class>, name: &str, ancestor: &str) -> bool {
    let mut at = name;
    loop {
        if at == ancestor {
            return true;
        }
        match classes.get(at) {
            Some(c) if !c.parent.is_empty() => at = &c.parent,
            _ => return false,
        }
    }
}
