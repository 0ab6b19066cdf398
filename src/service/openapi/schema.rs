//! The schemas of bodies. Those of the service are data (`schemas.json`); those of the Reference
//! Model are derived from the class table.

use crate::document::ObjectKind;
use crate::rm::class::{Attr, AttrDef, Cls};
use crate::service::document_class::Controlled;
use crate::service::negotiate::{FLAT, FLAT_OLD, Format, STRUCTURED, STRUCTURED_OLD};
use crate::service::route::{Operation, Part};
use crate::service::template::WEB_TEMPLATE;
use serde_json::{Map, Value, json};

/// The schemas of the service itself, by name.
const SERVICE: &str = include_str!("schemas.json");

/// Mandatory attributes that a document may lack: the server adds a uid, intervals include their
/// bounds, and another resource lists the contributions of an EHR.
const NOT_REQUIRED: [(Cls, Attr); 4] = [
    (Cls::EHR, Attr::CONTRIBUTIONS),
    (Cls::PARTY, Attr::UID),
    (Cls::DV_INTERVAL, Attr::LOWER_INCLUDED),
    (Cls::DV_INTERVAL, Attr::UPPER_INCLUDED),
];

/// Returns a reference to a schema of the document.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns the schema of a body of a media type; `names` are those of its JSON form.
pub(super) fn of_body(media_type: &str, names: &[String]) -> Value {
    match (media_type, names) {
        (FLAT | FLAT_OLD, _) => reference("FlatComposition"),
        (STRUCTURED | STRUCTURED_OLD, _) => reference("StructuredComposition"),
        (WEB_TEMPLATE, _) => reference("WebTemplate"),
        _ if media_type != Format::Json.media_type() => json!({ "type": "string" }),
        (_, [only]) => reference(only),
        (_, many) => json!({ "anyOf": many.iter().map(|name| reference(name)).collect::<Value>() }),
    }
}

/// Returns the name of the schema for a value whose declared class is `class`: that of the class
/// itself, or of any descendant.
pub(super) fn name_of(class: Cls) -> String {
    let is_plain = concrete(class).eq([class]);
    if is_plain {
        class.name().to_owned()
    } else {
        format!("Any_{}", class.name())
    }
}

/// Returns every schema, by name.
pub(super) fn schemas() -> Map<String, Value> {
    let mut all = match serde_json::from_str(SERVICE) {
        Ok(Value::Object(all)) => all,
        _ => Map::new(),
    };
    for class in Cls::all().filter(|class| !class.is_primitive() && *class != Cls::ANY) {
        if !class.is_abstract() {
            all.insert(class.name().to_owned(), object(class));
        }
        let name = name_of(class);
        if name != class.name() {
            let choices: Vec<Value> = concrete(class).map(|c| reference(c.name())).collect();
            all.insert(
                name,
                if choices.is_empty() {
                    json!({})
                } else {
                    json!({ "anyOf": choices })
                },
            );
        }
    }
    all
}

/// Returns the classes that objects of a declared class can have.
fn concrete(class: Cls) -> impl Iterator<Item = Cls> {
    Cls::all().filter(move |c| c.is_a(class) && !c.is_abstract() && !c.is_primitive())
}

fn object(class: Cls) -> Value {
    let own_type = json!({ "type": "string", "enum": [class.name()] });
    let attributes = class
        .attrs()
        .iter()
        .map(|def| (def.attr.name().to_owned(), attribute(class, def)));
    let properties: Map<String, Value> = [(String::from("_type"), own_type)]
        .into_iter()
        .chain(attributes)
        .collect();
    let is_required = |def: &&AttrDef| {
        def.card.is_mandatory()
            && !NOT_REQUIRED
                .iter()
                .any(|(owner, attr)| *attr == def.attr && class.is_a(*owner))
    };
    let required: Vec<&str> = class
        .attrs()
        .iter()
        .filter(is_required)
        .map(|def| def.attr.name())
        .collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if let (Some(members), false) = (schema.as_object_mut(), required.is_empty()) {
        members.insert(String::from("required"), json!(required));
    }
    schema
}

fn attribute(class: Cls, def: &AttrDef) -> Value {
    let one = match def.ty {
        Cls::ANY => json!({}),
        Cls::BOOLEAN => json!({ "type": "boolean" }),
        Cls::INTEGER => json!({ "type": "integer", "format": "int32" }),
        Cls::INTEGER64 => json!({ "type": "integer", "format": "int64" }),
        Cls::REAL => json!({ "type": "number", "format": "double" }),
        Cls::OCTETS => json!({ "type": "string", "format": "byte" }),
        primitive if primitive.is_primitive() => json!({ "type": "string" }),
        Cls::OBJECT_REF if [Cls::EHR, Cls::CONTRIBUTION, Cls::FOLDER].contains(&class) => {
            resolvable()
        }
        ty => reference(&name_of(ty)),
    };
    if def.card.is_list() {
        json!({ "type": "array", "items": one })
    } else {
        one
    }
}

/// Returns the schema of a reference, or with `Prefer: resolve_refs` of its object.
fn resolvable() -> Value {
    json!({ "anyOf": [reference(&name_of(Cls::OBJECT_REF)), reference(&name_of(Cls::LOCATABLE)), reference(&name_of(Cls::VERSION))] })
}

/// The schemas of the JSON bodies of an operation: of the request, and of a successful response. A
/// body fulfils one of the list.
pub(super) struct Bodies {
    pub(super) takes: Vec<String>,
    pub(super) answers: Vec<String>,
}

impl Bodies {
    pub(super) fn of(operation: Operation) -> Bodies {
        match operation {
            Operation::Create(what) | Operation::Update(what) => Bodies {
                takes: forms_of(what),
                answers: [forms_of(what), names(&["Identifier"])].concat(),
            },
            Operation::Read(what) => Bodies {
                takes: Vec::new(),
                answers: forms_of(what),
            },
            other => {
                let (takes, answers) = service_bodies(other);
                Bodies {
                    takes: names(takes),
                    answers: names(answers),
                }
            }
        }
    }
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns the JSON forms of a document.
fn forms_of(what: &Controlled) -> Vec<String> {
    let simplified: &[&str] = if what.kind == ObjectKind::Composition {
        &["FlatComposition", "StructuredComposition"]
    } else {
        &[]
    };
    [vec![name_of(what.class)], names(simplified)].concat()
}

/// Returns the bodies of operations that do not depend on a class of documents: request, response.
#[rustfmt::skip]
fn service_bodies(operation: Operation) -> (&'static [&'static str], &'static [&'static str]) {
    match operation {
        Operation::EhrCreate | Operation::EhrCreateWithId => (&["EHR_STATUS"], &["EHR", "Identifier"]),
        Operation::EhrBySubject => (&[], &["EHR", "EhrList"]),
        Operation::EhrGet => (&[], &["EHR"]),
        Operation::Versioned(_, Part::Container) => (&[], &["Any_VERSIONED_OBJECT"]),
        Operation::Versioned(_, Part::History) => (&[], &["REVISION_HISTORY"]),
        Operation::Versioned(_, Part::AtTime | Part::Version) => (&[], &["Any_VERSION"]),
        Operation::TagsList | Operation::TagsGet(_) => (&[], &["ItemTagList"]),
        Operation::TagsPut(_) => (&["ItemTagList"], &["ItemTagList", "Identifier"]),
        Operation::ContributionCreate => (&["ContributionRequest"], &["CONTRIBUTION", "Identifier"]),
        Operation::ContributionList => (&[], &["ContributionList"]),
        Operation::ContributionGet => (&[], &["CONTRIBUTION"]),
        Operation::TemplateUpload => (&[], &["Identifier", "WebTemplate"]),
        Operation::TemplateList | Operation::TemplateVersions => (&[], &["TemplateList"]),
        Operation::TemplateGet | Operation::TemplateWeb => (&[], &["WebTemplate"]),
        Operation::TemplateExample => (&[], &["Any_LOCATABLE", "FlatComposition", "StructuredComposition"]),
        Operation::QueryList => (&[], &["StoredQueryList"]),
        Operation::QueryStore => (&["StoreQueryRequest"], &["StoredQuery", "Identifier"]),
        Operation::QueryDetail => (&[], &["StoredQuery"]),
        Operation::QueryAdHoc => (&["QueryRequest"], &["ResultSet"]),
        Operation::QueryExplain => (&["QueryRequest"], &["Explanation"]),
        Operation::QueryStored => (&["StoredQueryRequest"], &["ResultSet", "StoredQuery"]),
        Operation::ValueSetStore => (&["ValueSet"], &["ValueSet", "Identifier"]),
        Operation::ValueSetList => (&[], &["ValueSetList"]),
        Operation::ValueSetGet => (&[], &["ValueSet"]),
        Operation::GuideUpload => (&["Guide"], &["GuideEntry", "Identifier"]),
        Operation::GuideList => (&[], &["GuideList"]),
        Operation::GuideGet => (&[], &["Guide"]),
        Operation::GuideRun => (&[], &["GuideResult"]),
        Operation::GuideRunOn => (&["GuideRequest"], &["GuideResults"]),
        Operation::CdsDiscovery => (&[], &["CdsServices"]),
        Operation::CdsCall => (&["CdsRequest"], &["CdsCards"]),
        Operation::AdminLoad => (&["LoadRequest"], &["LoadReport"]),
        Operation::AdminDeleteDefinition(_) => (&[], &["Deleted"]),
        Operation::AccessLog => (&[], &["AccessLog"]),
        _ => (&[], &[]),
    }
}
