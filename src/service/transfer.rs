//! Everything out, and in again: `GET /admin/export` and `POST /admin/import`, newline-delimited JSON.
//!
//! A line is `{"digest": …, "record": …}`: the SHA-256 of the record's text, and one of
//!
//! | record | members |
//! |---|---|
//! | a definition | `definition` (`template`, `query`, `guide`), `name`, `version`, `format`, `created`, `summary`, `body` |
//! | a contribution | `ehr_id` (absent for demographic parties), `contribution`, `versions` (whole), `tags` |
//! | the end | `end`: no page follows |
//!
//! Definitions come first, then contributions in commit order. A page (`limit` contributions) ends without `end` when more
//! may follow: the next is asked for by `after`, the uid of the last contribution. With `ehr_id` it is one EHR alone, without
//! definitions. Import commits each line as it was, times and audits included; what is there already, unaltered, is passed
//! over, so an import that broke off can be started again. Importing an export into an empty repository and exporting that
//! gives the same bytes.

use super::Service;
use super::bulk::{Lines, NDJSON, Ready, numbered};
use super::call::Call;
use super::commit::flags;
use super::content::{malformed, read_text};
use super::contribution::kind_of;
use super::error::Failure;
use super::http::Response;
use super::ids::VersionUid;
use super::negotiate::Format;
use crate::document::{NothingKnown, ObjectKind, digest_of_text};
use crate::rm::class::{Attr, Cls};
use crate::rm::json::{self, elements, members, quote_into};
use crate::rm::tree::NodeRef;
use crate::store::repository::{Commit, Contribution, Definition, DefinitionKind, Ehr, ItemTag, Repository, StoreError, TagList, Version};
use serde_json::{Value, json};

/// Contributions of a page when the client does not say, and at most.
const PAGE: u64 = 200;
const LONGEST_PAGE: u64 = 1_000;

/// Contributions that are written between two pauses.
const TOGETHER: usize = 50;

const KINDS: [(&str, DefinitionKind); 4] = [
    ("template", DefinitionKind::Template),
    ("query", DefinitionKind::Query),
    ("guide", DefinitionKind::Guide),
    ("value_set", DefinitionKind::ValueSet),
];

impl<R: Repository> Service<R> {
    /// GET /admin/export?after=…&limit=…&ehr_id=…
    pub(super) async fn export(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let parameter = |name| call.request.query_value(name).filter(|v| !v.is_empty());
        let limit = parameter("limit").map_or(Ok(PAGE), str::parse).map_err(|_| Failure::bad("`limit` is not a number"))?.clamp(1, LONGEST_PAGE);
        let (after, ehr_id) = (parameter("after"), parameter("ehr_id").map(str::to_ascii_lowercase));
        if let Some(ehr_id) = &ehr_id {
            self.ehr_with_id(ehr_id).await?;
        }
        let mut out = String::new();
        if after.is_none() && ehr_id.is_none() {
            self.export_definitions(&mut out).await?;
        }
        let found = self.repository.contributions(ehr_id.as_deref(), after, limit).await.map_err(Failure::of_store)?;
        for (number, contribution) in (1_usize..).zip(&found) {
            add_record(&mut out, &contribution_record(contribution));
            if number.is_multiple_of(TOGETHER) {
                call.pause().await;
            }
        }
        if (found.len() as u64) < limit {
            add_record(&mut out, r#"{"end":true}"#);
        }
        Ok(Response::new(200).with_body(NDJSON, out))
    }

    async fn export_definitions(&self, out: &mut String) -> Result<(), Failure> {
        for (word, kind) in KINDS {
            for listed in self.repository.definitions(kind, "").await.map_err(Failure::of_store)? {
                let whole = self.repository.definition(kind, &listed.name, &listed.version).await.map_err(Failure::of_store)?;
                if let Some(found) = whole {
                    add_record(out, &definition_record(word, &found));
                }
            }
        }
        Ok(())
    }

    /// POST /admin/import
    pub(super) async fn import(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let mut lines = Lines::default();
        for (number, text) in numbered(call)? {
            match self.import_line(call, text).await {
                Ok(Some(Imported::Contribution(ready))) => self.add_line(&mut lines, number, *ready, text.len()).await,
                Ok(Some(Imported::Definition(status))) => {
                    self.flush(&mut lines).await;
                    lines.answer(number, status, "{}");
                }
                Ok(None) => {}
                Err(failure) => {
                    self.flush(&mut lines).await;
                    lines.refuse(number, &failure);
                }
            }
        }
        self.flush(&mut lines).await;
        Ok(Response::new(200).with_body(NDJSON, lines.into_text()))
    }

    async fn import_line(&self, call: &Call<'_>, text: &str) -> Result<Option<Imported>, Failure> {
        let (mut digest, mut record) = (None, None);
        for (key, value) in members(text).map_err(|problem| malformed("line", text, problem))? {
            match &*key {
                "digest" => digest = json::text(value),
                "record" => record = Some(value),
                other => return Err(Failure::bad(format!("`{other}` does not belong here: expected `digest` and `record`"))),
            }
        }
        let record = record.ok_or_else(|| Failure::bad("the line has no `record`"))?;
        if digest.as_deref() != Some(&digest_of_text(record)) {
            return Err(Failure::bad("the record does not have the digest that the line gives: it was altered on its way"));
        }
        let parts = members(record).map_err(|problem| malformed("record", record, problem))?;
        let named = |name: &str| parts.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
        match (named("definition"), named("contribution")) {
            (Some(_), _) => self.import_definition(record).await.map(|status| Some(Imported::Definition(status))),
            (None, Some(contribution)) => {
                let commit =
                    self.imported(call, named("ehr_id"), contribution, named("versions").unwrap_or("[]"), named("tags").unwrap_or("[]")).await?;
                Ok(Some(Imported::Contribution(Box::new(Ready { commit, created: None, exact: true }))))
            }
            _ if named("end").is_some() => Ok(None),
            _ => Err(Failure::bad("the record is neither a definition nor a contribution")),
        }
    }

    /// 201 for a new definition, 200 for one that is there; another one of its name and version is a conflict.
    async fn import_definition(&self, record: &str) -> Result<u16, Failure> {
        let value: Value = json::value(record).map_err(|_| Failure::bad("the definition is not JSON"))?;
        let text =
            |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| Failure::bad(format!("`{name}` is missing")));
        let word = text("definition")?;
        let kind = KINDS.iter().find(|(w, _)| *w == word).ok_or_else(|| Failure::bad(format!("`{word}` is not a kind of definition")))?.1;
        let definition = Definition {
            name: text("name")?,
            version: text("version")?,
            format: text("format")?,
            created: text("created")?,
            storing_id: String::new(),
            summary: text("summary")?,
            body: text("body")?,
        };
        match self.repository.define(kind, definition.clone()).await {
            Ok(()) => Ok(201),
            Err(StoreError::DefinitionExists) => {
                let stored = self.repository.definition(kind, &definition.name, &definition.version).await.map_err(Failure::of_store)?;
                if stored.is_some_and(|s| s.body == definition.body) { Ok(200) } else { Err(Failure::of_store(StoreError::DefinitionExists)) }
            }
            Err(error) => Err(Failure::of_store(error)),
        }
    }

    /// A contribution as it was committed.
    async fn imported(&self, call: &Call<'_>, ehr_id: Option<&str>, contribution: &str, versions: &str, tags: &str) -> Result<Commit, Failure> {
        let ehr_id: String = ehr_id.map_or(Ok(String::new()), |id| json::text(id).ok_or_else(|| Failure::bad("`ehr_id` is not a text")))?;
        let stated = read_text(contribution, Format::Json, Cls::CONTRIBUTION, "contribution")?;
        let root = stated.root().ok_or_else(|| Failure::bad("the contribution is empty"))?;
        let needed = |path: &[Attr]| root.text_along(path).map(str::to_owned).ok_or_else(|| Failure::bad("the contribution is not whole"));
        let uid = needed(&[Attr::UID, Attr::VALUE])?;
        let time = needed(&[Attr::AUDIT, Attr::TIME_COMMITTED, Attr::VALUE])?;
        let mut read = Vec::new();
        for text in elements(versions).map_err(|problem| malformed("versions", versions, problem))? {
            read.push(self.imported_version(call, &ehr_id, root, &uid, text).await?);
        }
        let status = read.iter().rev().find(|v| v.kind == ObjectKind::EhrStatus).and_then(|v| {
            let tree = v.packed.unpack();
            tree.root().and_then(|root| root.get(Attr::DATA)).map(|data| flags(&data.to_tree()))
        });
        let creates = read.iter().any(|v| v.kind == ObjectKind::EhrStatus && v.preceding.is_none());
        let system_id = needed(&[Attr::AUDIT, Attr::SYSTEM_ID])?;
        let new_ehr = status.clone().filter(|_| creates).map(|flags| Ehr {
            ehr_id: ehr_id.clone(),
            system_id,
            time_created: time.clone(),
            subject: flags.subject,
            is_queryable: flags.is_queryable,
            is_modifiable: flags.is_modifiable,
        });
        if let Some(first) = read.first_mut() {
            first.tags = tags_of(tags)?;
        }
        let access = None;
        let status = status.filter(|_| !creates);
        Ok(Commit {
            new_ehr,
            ehr_id,
            contribution_uid: uid,
            contribution: contribution.to_owned(),
            time_committed: time,
            versions: read,
            status,
            access,
            grounds: None,
        })
    }

    async fn imported_version(&self, call: &Call<'_>, ehr_id: &str, stated: NodeRef<'_>, contribution: &str, text: &str) -> Result<Version, Failure> {
        let tree = read_text(text, Format::Json, Cls::ORIGINAL_VERSION, "version")?;
        let root = tree.root().ok_or_else(|| Failure::bad("the version is empty"))?;
        let needed = |path: &[Attr]| root.text_along(path).map(str::to_owned).ok_or_else(|| Failure::bad("the version is not whole"));
        let uid = VersionUid::read(&needed(&[Attr::UID, Attr::VALUE])?, "the uid of the version")?;
        let kind = kind_in(stated, &uid.to_string())?;
        let data = root.get(Attr::DATA);
        if data.is_some_and(|data| kind_of(data.class()).ok() != Some(kind)) {
            return Err(Failure::bad("the contribution gives a version another class than its data has"));
        }
        let path = [Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE];
        let template_id = data.filter(|_| kind == ObjectKind::Composition).and_then(|data| data.text_along(&path)).map(str::to_owned);
        let template = match &template_id {
            Some(id) => self.template_of(call, id).await?,
            None => None,
        };
        let packed = match &template {
            Some(template) => self.packed(&tree, &*template.known)?,
            None => self.packed(&tree, &NothingKnown)?,
        };
        Ok(Version {
            ehr_id: ehr_id.to_owned(),
            kind,
            version_uid: uid.to_string(),
            object_id: uid.object_id,
            number: uid.number,
            preceding: root.text_along(&[Attr::PRECEDING_VERSION_UID, Attr::VALUE]).map(str::to_owned),
            contribution: contribution.to_owned(),
            time_committed: needed(&[Attr::COMMIT_AUDIT, Attr::TIME_COMMITTED, Attr::VALUE])?,
            lifecycle: needed(&[Attr::LIFECYCLE_STATE, Attr::DEFINING_CODE, Attr::CODE_STRING])?,
            template_id,
            packed,
            tags: Vec::new(),
        })
    }
}

/// What a line is.
enum Imported {
    Contribution(Box<Ready>),
    /// The status of its answer.
    Definition(u16),
}

/// What a contribution says that one of its versions is.
fn kind_in(contribution: NodeRef<'_>, uid: &str) -> Result<ObjectKind, Failure> {
    let reference = contribution.values(Attr::VERSIONS).find(|r| r.text_along(&[Attr::ID, Attr::VALUE]) == Some(uid));
    let class = reference.and_then(|r| r.text_at(Attr::TYPE)).and_then(Cls::parse);
    class.map_or_else(|| Err(Failure::bad("the contribution does not list a version of the record")), kind_of)
}

fn tags_of(text: &str) -> Result<Vec<TagList>, Failure> {
    let lists = elements(text).ok().and_then(|lists| lists.into_iter().map(tag_list).collect());
    lists.ok_or_else(|| Failure::bad("`tags` is not a list of targets with their tags"))
}

fn tag_list(list: &str) -> Option<TagList> {
    let [target, tags] = elements(list).ok()?.try_into().ok()?;
    Some(TagList::new(json::text(target)?, elements(tags).ok()?.into_iter().map(tag).collect::<Option<_>>()?))
}

/// Key, path and value of a tag.
fn tag(cells: &str) -> Option<ItemTag> {
    let [key, path, value] = elements(cells).ok()?.try_into().ok()?;
    let optional = |cell: &str| if cell == "null" { Some(None) } else { json::text(cell).map(Some) };
    Some(ItemTag { key: json::text(key)?, path: optional(path)?, value: optional(value)? })
}

fn add_record(out: &mut String, record: &str) {
    out.push_str(r#"{"digest":""#);
    out.push_str(&digest_of_text(record));
    out.push_str(r#"","record":"#);
    out.push_str(record);
    out.push_str("}\n");
}

fn definition_record(word: &str, found: &Definition) -> String {
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

/// Tags of an object stand with its first version, those of a version with it.
fn contribution_record(found: &Contribution) -> String {
    let mut out = String::from("{");
    if !found.ehr_id.is_empty() {
        out.push_str(&format!(r#""ehr_id":"{}","#, found.ehr_id));
    }
    out.push_str(r#""contribution":"#);
    out.push_str(&found.document);
    let versions: Vec<String> = found.versions.iter().map(|v| v.packed.to_json()).collect();
    out.push_str(&format!(r#","versions":[{}]"#, versions.join(",")));
    let own = |v: &Version, list: &TagList| list.target == v.version_uid || (v.preceding.is_none() && list.target == v.object_id);
    let lists = found.versions.iter().flat_map(|v| v.tags.iter().filter(|list| own(v, list)));
    let lists: Vec<_> = lists.map(|l| (&l.target, l.tags.iter().map(|t| (&t.key, &t.path, &t.value)).collect::<Vec<_>>())).collect();
    if !lists.is_empty() {
        out.push_str(&format!(r#","tags":{}"#, json!(lists)));
    }
    out.push('}');
    out
}
