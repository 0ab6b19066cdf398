//! The records of exports: reading and writing of a line.

use super::super::content::malformed;
use super::super::error::Failure;
use super::super::ids::is_uuid;
use super::super::imported_form::standard_json;
use super::super::tag;
use crate::document::digest_of_text;
use crate::rm::json::{self, elements, members, quote_into};
use crate::store::repository::{
    Contribution, Definition, DefinitionKind, ItemTag, TagList, Version,
};

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
}

/// The record of a contribution, each member as JSON.
pub(super) struct ContributionRecord<'a> {
    ehr_id: Option<&'a str>,
    pub contribution: &'a str,
    versions: &'a str,
    pub tags: &'a str,
}

impl<'a> ImportLine<'a> {
    /// Splits a line into its members; `None` for the end.
    pub fn read(text: &'a str) -> Result<Option<ImportLine<'a>>, Failure> {
        let (mut digest, mut record) = (None, None);
        for (key, value) in members(text).map_err(|problem| malformed("line", text, problem))? {
            match &*key {
                "digest" => digest = json::text(value),
                "record" => record = Some(value),
                other => {
                    return Err(Failure::bad_request(format!(
                        "`{other}` does not belong here: expected `digest` and `record`"
                    )));
                }
            }
        }
        let record = record.ok_or_else(|| Failure::bad_request("the line has no `record`"))?;
        if digest.as_deref() != Some(&digest_of_text(record)) {
            return Err(Failure::bad_request(
                "the record does not have the digest that the line gives: it was altered on its way",
            ));
        }
        let parts = members(record).map_err(|problem| malformed("record", record, problem))?;
        let named = |name: &str| {
            parts
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| *value)
        };
        match (named("definition"), named("contribution")) {
            (Some(_), _) => Ok(Some(ImportLine::Definition(record))),
            (None, Some(contribution)) => {
                let [versions, tags] = ["versions", "tags"].map(|name| named(name).unwrap_or("[]"));
                Ok(Some(ImportLine::Contribution(ContributionRecord {
                    ehr_id: named("ehr_id"),
                    contribution,
                    versions,
                    tags,
                })))
            }
            _ if named("end").is_some() => Ok(None),
            _ => Err(Failure::bad_request(
                "the record is neither a definition nor a contribution",
            )),
        }
    }
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
pub(super) fn contribution_record(found: &Contribution) -> String {
    let mut out = String::from("{");
    if !found.ehr_id.is_empty() {
        out.push_str(&format!(r#""ehr_id":"{}","#, found.ehr_id));
    }
    out.push_str(r#""contribution":"#);
    out.push_str(&found.document);
    let versions: Vec<String> = found
        .versions
        .iter()
        .map(|v| standard_json(&v.packed))
        .collect();
    out.push_str(&format!(r#","versions":[{}]"#, versions.join(",")));
    let own = |v: &Version, list: &TagList| {
        list.target == v.version_uid || (v.preceding.is_none() && list.target == v.object_id)
    };
    let lists = found
        .versions
        .iter()
        .flat_map(|v| v.tags.iter().filter(|list| own(v, list)));
    let lists: Vec<_> = lists
        .map(|l| {
            (
                &l.target,
                l.tags
                    .iter()
                    .map(|t| (&t.key, &t.path, &t.value))
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    if !lists.is_empty() {
        out.push_str(&format!(r#","tags":{}"#, serde_json::json!(lists)));
    }
    out.push('}');
    out
}
