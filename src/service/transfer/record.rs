//! The records of exports: reading and writing of a line.

use super::super::content::malformed;
use super::super::error::{Failure, shortened};
use super::super::ids::{is_uuid, is_version};
use super::super::imported_form::standard_json;
use super::super::tag;
use crate::document::digest_of_text;
use crate::rm::json::{self, elements, members, quote_into};
use crate::store::repository::{
    Contribution, Definition, DefinitionKind, ItemTag, TagList, Version,
};
use serde_json::{Value, json};

/// Bytes after which a page of an export ends.
pub(super) const PAGE_BYTES: usize = 10_000_000;

/// The kinds of definitions by their names in records.
pub(super) const KINDS: [(&str, DefinitionKind); 4] = [
    ("template", DefinitionKind::Template),
    ("query", DefinitionKind::Query),
    ("guide", DefinitionKind::Guide),
    ("value_set", DefinitionKind::ValueSet),
];

/// The record of a line, as text.
pub(super) enum ImportLine<'a> {
    Definition(&'a str),
    Contribution(ContributionRecord<'a>),
    /// No page follows.
    End,
}

/// The record of a contribution, each member as JSON.
pub(super) struct ContributionRecord<'a> {
    ehr_id: Option<&'a str>,
    pub contribution: &'a str,
    versions: &'a str,
    pub tags: &'a str,
}

impl<'a> ImportLine<'a> {
    /// Reads the kind of a record, and the members of a contribution.
    pub fn read(text: &'a str) -> Result<ImportLine<'a>, Failure> {
        let record = record_of(text)?;
        let parts = members(record).map_err(|problem| malformed("record", record, problem))?;
        let named = |name: &str| {
            parts
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| *value)
        };
        match (named("definition"), named("contribution")) {
            (Some(_), _) => Ok(ImportLine::Definition(record)),
            (None, Some(contribution)) => {
                let [versions, tags] = ["versions", "tags"].map(|name| named(name).unwrap_or("[]"));
                Ok(ImportLine::Contribution(ContributionRecord {
                    ehr_id: named("ehr_id"),
                    contribution,
                    versions,
                    tags,
                }))
            }
            _ if named("end").is_some() => Ok(ImportLine::End),
            _ => Err(Failure::bad_request(
                "the record is neither a definition nor a contribution",
            )),
        }
    }
}

/// Returns the record of a line whose digest is right.
fn record_of(line: &str) -> Result<&str, Failure> {
    let (mut digest, mut record) = (None, None);
    for (key, value) in members(line).map_err(|problem| malformed("line", line, problem))? {
        match &*key {
            "digest" => digest = json::text(value),
            "record" => record = Some(value),
            other => {
                return Err(Failure::bad_request(format!(
                    "`{}` does not belong here: expected `digest` and `record`",
                    shortened(other)
                )));
            }
        }
    }
    let record = record.ok_or_else(|| Failure::bad_request("the line has no `record`"))?;
    // The digest is of the raw text of the record, so any change of white space counts too.
    if digest.as_deref() != Some(&digest_of_text(record)) {
        return Err(Failure::bad_request(
            "the digest of the line is not that of its record: the record was altered on its way",
        ));
    }
    Ok(record)
}

/// The record of a definition.
pub(super) struct DefinitionRecord {
    pub kind: DefinitionKind,
    pub definition: Definition,
}

impl DefinitionRecord {
    /// Reads what [`definition_record`] writes.
    pub fn read(record: &str) -> Result<DefinitionRecord, Failure> {
        let value: Value =
            json::value(record).map_err(|_| Failure::bad_request("the definition is not JSON"))?;
        let text = |name: &str| {
            value
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| Failure::bad_request(format!("`{name}` is missing")))
        };
        let kind = kind_named(&text("definition")?)?;
        if json::value(&text("summary")?).is_err() {
            return Err(Failure::bad_request(
                "the `summary` of the definition is not JSON",
            ));
        }
        let definition = Definition {
            name: text("name")?,
            version: text("version")?,
            format: text("format")?.to_ascii_lowercase(),
            created: text("created")?,
            storing_id: String::new(),
            // It is made from the text again.
            summary: String::new(),
            bytes: 0,
            body: text("body")?,
        };
        check_version(&definition.version)?;
        Ok(DefinitionRecord { kind, definition })
    }

    /// Checks that `made`, which is the definition that an upload would make of the text, has the
    /// name, version and format of the record.
    pub fn check_agreement(&self, made: &Definition) -> Result<(), Failure> {
        let stated = &self.definition;
        let members = [
            ("name", &stated.name, &made.name),
            ("version", &stated.version, &made.version),
            ("format", &stated.format, &made.format),
        ];
        match members.into_iter().find(|(_, stated, made)| stated != made) {
            Some((member, stated, made)) => Err(Failure::bad_request(format!(
                "the `{member}` of the definition differs: its text calls itself `{}`, but the record calls it `{}`",
                shortened(made),
                shortened(stated)
            ))),
            None => Ok(()),
        }
    }
}

/// Checks the version of a definition.
fn check_version(version: &str) -> Result<(), Failure> {
    match is_version(version) {
        true => Ok(()),
        false => Err(Failure::bad_request(format!(
            "the `version` of the definition is `{}`, expected three numbers such as `1.0.0`",
            shortened(version)
        ))),
    }
}

fn kind_named(word: &str) -> Result<DefinitionKind, Failure> {
    let known = KINDS.iter().find(|(known, _)| *known == word);
    known
        .map(|(_, kind)| *kind)
        .ok_or_else(|| Failure::bad_request(format!("`{word}` is not a kind of definition")))
}

impl<'a> ContributionRecord<'a> {
    /// Returns the EHR in lower case, as it is stored; empty for demographic parties.
    pub fn ehr_id(&self) -> Result<String, Failure> {
        let Some(id) = self.ehr_id else {
            return Ok(String::new());
        };
        let id = json::text(id)
            .filter(|id| is_uuid(id))
            .ok_or_else(|| Failure::bad_request("`ehr_id` is not a UUID"))?;
        Ok(id.to_ascii_lowercase())
    }

    pub fn versions(&self) -> Result<Vec<&'a str>, Failure> {
        elements(self.versions).map_err(|problem| malformed("versions", self.versions, problem))
    }
}

/// Reads the tags of a record.
pub(super) fn tags_of(text: &str) -> Result<Vec<TagList>, Failure> {
    let lists: Option<Vec<(String, Vec<ItemTag>)>> = elements(text)
        .ok()
        .and_then(|lists| lists.into_iter().map(tag_list).collect());
    let lists = lists
        .ok_or_else(|| Failure::bad_request("`tags` is not a list of targets with their tags"))?;
    lists
        .into_iter()
        .map(|(target, tags)| tag::checked(target, tags))
        .collect()
}

fn tag_list(list: &str) -> Option<(String, Vec<ItemTag>)> {
    let [target, tags] = elements(list).ok()?.try_into().ok()?;
    Some((
        json::text(target)?,
        elements(tags)
            .ok()?
            .into_iter()
            .map(item_tag)
            .collect::<Option<_>>()?,
    ))
}

/// Reads key, path and value of a tag.
fn item_tag(cells: &str) -> Option<ItemTag> {
    let [key, path, value] = elements(cells).ok()?.try_into().ok()?;
    let optional = |cell: &str| {
        if cell == "null" {
            Some(None)
        } else {
            json::text(cell).map(Some)
        }
    };
    Some(ItemTag {
        key: json::text(key)?,
        path: optional(path)?,
        value: optional(value)?,
    })
}

pub(super) fn add_record(out: &mut String, record: &str) {
    out.push_str(r#"{"digest":""#);
    out.push_str(&digest_of_text(record));
    out.push_str(r#"","record":"#);
    out.push_str(record);
    out.push_str("}\n");
}

pub(super) fn definition_record(word: &str, found: &Definition) -> String {
    let mut out = format!(r#"{{"definition":"{word}""#);
    let members = [
        ("name", &found.name),
        ("version", &found.version),
        ("format", &found.format),
        ("created", &found.created),
        ("summary", &found.summary),
        ("body", &found.body),
    ];
    for (name, text) in members {
        out.push_str(&format!(r#","{name}":"#));
        quote_into(&mut out, text);
    }
    out.push('}');
    out
}

/// Encodes a contribution. Tags of an object belong to its first version in the contribution, those
/// of a version to that version.
///
/// # Errors
/// 500 for a version without a root.
pub(super) fn contribution_record(found: &Contribution) -> Result<String, Failure> {
    let mut out = String::from("{");
    if !found.ehr_id.is_empty() {
        out.push_str(&format!(r#""ehr_id":"{}","#, found.ehr_id));
    }
    out.push_str(r#""contribution":"#);
    out.push_str(&found.document);
    out.push_str(r#","versions":["#);
    for (index, version) in found.versions.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        out.push_str(&standard_json(&version.packed)?);
    }
    out.push(']');
    if let Some(tags) = tags_json(found) {
        out.push_str(r#","tags":"#);
        out.push_str(&tags);
    }
    out.push('}');
    Ok(out)
}

/// Encodes the tags of a contribution: pairs of a target and its tags. `None` if it has none.
fn tags_json(found: &Contribution) -> Option<String> {
    let own = |v: &Version, list: &TagList| {
        // Only a first version exports the tags of its object, so that no later version exports
        // them again.
        list.target == v.version_uid || (v.preceding.is_none() && list.target == v.object_id)
    };
    let lists = found
        .versions
        .iter()
        .flat_map(|v| v.tags.iter().filter(|list| own(v, list)));
    let cells = |tag: &ItemTag| json!([tag.key, tag.path, tag.value]);
    let lists: Vec<Value> = lists
        .map(|list| json!([list.target, list.tags.iter().map(cells).collect::<Value>()]))
        .collect();
    (!lists.is_empty()).then(|| Value::Array(lists).to_string())
}
