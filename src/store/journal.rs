//! The journal of a memory repository: its changes as text, from which the same repository is built
//! again.
//!
//! A line holds the changes that a host saved at one time, always whole requests. A line without
//! its end has no effect. Each record ends with a record separator. A record is a name and fields,
//! separated by tabs. A field is plain text: the packed form of a document, canonical JSON, an id.
//! A field with control characters is a JSON string after a unit separator. An empty field is
//! absent.

use super::commit_rules::split_uid;
use super::repository::{
    AccessRecord, Commit, Definition, DefinitionKind, Ehr, EhrFlags, ItemTag, Preconditions,
    StoreError, TagList, Version,
};
use crate::document::{Layout, LayoutStore, ObjectKind, Packed};
use crate::rm::json::{self, quote_into};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

const FIELD: char = '\t';
const RECORD: char = '\u{1e}';
const QUOTED: char = '\u{1f}';

/// The name of the record after which layouts are numbered from 0 again.
const ANEW: &str = "anew";

/// Iterates over the records of some lines.
pub(super) fn records(lines: &str) -> impl Iterator<Item = &str> {
    lines
        .split('\n')
        .flat_map(|line| line.split(RECORD))
        .filter(|record| !record.is_empty())
}

/// A change of a repository.
pub(super) enum Change {
    Commit(Box<Commit>),
    /// [`Commit::idempotency`] of the contribution with this uid, after its commit.
    Idempotency(String, String),
    /// The tags of a target in this EHR.
    Tags(String, TagList),
    /// Objects of this EHR.
    RemoveObjects(String, Vec<String>),
    RemoveEhr(String),
    Define(DefinitionKind, Definition),
    Undefine(DefinitionKind, String, String),
    /// Records for the access log.
    Accesses(Vec<AccessRecord>),
    /// Removal of everything but the access log.
    Reset,
}

/// Writes and reads changes. A layout is written once, before the first document that uses it. Its
/// number is its position.
#[derive(Default)]
pub(super) struct Journal {
    layouts: LayoutStore,
    numbered: Vec<Arc<Layout>>,
    /// By digest.
    numbers: HashMap<String, u64>,
    line: String,
    /// Whether the next record is the first one after a checkpoint.
    is_anew: bool,
}

impl Journal {
    /// Creates a journal that continues after a checkpoint. A checkpoint has no layouts by number,
    /// so their numbers begin again.
    pub(super) fn after_checkpoint() -> Journal {
        Journal {
            is_anew: true,
            ..Journal::default()
        }
    }

    /// Returns the text that was written since the last call.
    pub(super) fn take(&mut self) -> Option<String> {
        // The line end alone means that nothing was written.
        if self.line.is_empty() {
            return None;
        }
        let mut line = String::new();
        if std::mem::take(&mut self.is_anew) {
            // A reader of all lines since the first one has numbered the layouts before the
            // checkpoint.
            line.push_str(ANEW);
            line.push(RECORD);
        }
        line.push_str(&std::mem::take(&mut self.line));
        line.push('\n');
        Some(line)
    }

    /// Appends the record of a change.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if a document of a commit cannot be written. No record is added then.
    pub(super) fn write(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::Commit(commit) => self.commit(commit)?,
            Change::Idempotency(uid, text) => self.plain("idempotency", &[uid, text]),
            Change::Tags(ehr_id, list) => self.tags(ehr_id, list),
            Change::RemoveObjects(ehr_id, objects) => objects
                .iter()
                .for_each(|object| self.plain("remove", &[ehr_id, object])),
            Change::RemoveEhr(ehr_id) => self.plain("remove-ehr", &[ehr_id]),
            Change::Define(kind, definition) => self.define(*kind, definition),
            Change::Undefine(kind, name, version) => {
                self.plain("undefine", &[&kind.number().to_string(), name, version])
            }
            Change::Accesses(accesses) => accesses.iter().for_each(|access| self.access(access)),
            Change::Reset => self.plain("reset", &[]),
        }
        Ok(())
    }

    fn plain(&mut self, name: &str, fields: &[&str]) {
        self.line.push_str(name);
        for field in fields {
            put(&mut self.line, Some(field));
        }
        self.line.push(RECORD);
    }

    fn define(&mut self, kind: DefinitionKind, d: &Definition) {
        let kind = kind.number().to_string();
        let fields = [
            &kind, &d.name, &d.version, &d.format, &d.created, &d.summary, &d.body,
        ];
        self.plain("define", &fields.map(String::as_str));
    }

    fn access(&mut self, access: &AccessRecord) {
        self.line.push_str("access");
        let AccessRecord {
            time,
            who,
            issuer,
            operation,
            object,
            ehr_id,
            query,
            status,
            request_id,
            refused,
        } = access;
        let status = status.to_string();
        let required = [time, who, issuer, operation, &status, request_id];
        put_all(&mut self.line, &required.map(|field| Some(field.as_str())));
        let optional = [object, ehr_id, query];
        put_all(&mut self.line, &optional.map(Option::as_deref));
        if let Some(refused) = refused {
            put(&mut self.line, Some(&refused.to_string()));
        }
        self.line.push(RECORD);
    }

    fn tags(&mut self, ehr_id: &str, list: &TagList) {
        self.line.push_str("tags");
        put(&mut self.line, Some(ehr_id));
        put(&mut self.line, Some(&list.target));
        for tag in &list.tags {
            let fields = [Some(&tag.key), tag.path.as_ref(), tag.value.as_ref()];
            put_all(
                &mut self.line,
                &fields.map(|field| field.map(String::as_str)),
            );
        }
        self.line.push(RECORD);
    }

    fn commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        commit
            .versions
            .iter()
            .flat_map(|v| v.packed.layouts())
            .for_each(|layout| self.number(layout));
        // All texts are made before the record begins, so that an error leaves no part of it.
        let texts = self.texts_of(commit)?;
        let out = &mut self.line;
        out.push_str("commit");
        let fields = [
            &commit.ehr_id,
            &commit.contribution_uid,
            &commit.time_committed,
            &commit.contribution,
        ];
        put_all(out, &fields.map(|field| Some(field.as_str())));
        let ehr = commit.new_ehr.as_ref();
        put(out, ehr.map(|e| e.system_id.as_str()));
        put(out, ehr.map(|e| e.time_created.as_str()));
        put_flags(out, ehr.map(Ehr::flags).as_ref());
        put_flags(out, commit.status.as_ref());
        for (version, text) in commit.versions.iter().zip(&texts) {
            put_version(out, version, text, &commit.time_committed);
        }
        out.push(RECORD);
        for list in commit.versions.iter().flat_map(|v| &v.tags) {
            self.tags(&commit.ehr_id, list);
        }
        commit.access.iter().for_each(|access| self.access(access));
        if let Some(text) = &commit.idempotency {
            self.plain("idempotency", &[&commit.contribution_uid, text]);
        }
        Ok(())
    }

    /// Returns the packed versions of a commit as texts. Their layouts have numbers.
    fn texts_of(&self, commit: &Commit) -> Result<Vec<String>, StoreError> {
        let id_of = |layout: &Layout| self.numbers.get(layout.digest()).copied();
        let text = |v: &Version| {
            v.packed
                .to_text(&id_of, &[&v.version_uid, &v.time_committed])
        };
        let texts: Option<Vec<String>> = commit.versions.iter().map(text).collect();
        texts.ok_or_else(|| {
            StoreError::Failed("a document has a layout without a number in the journal".into())
        })
    }

    /// Assigns a number to a layout, and writes the layout if it is new.
    fn number(&mut self, layout: Arc<Layout>) {
        if !self.numbers.contains_key(layout.digest()) {
            // The name `shape` is older than the term layout, and journals of users have it.
            self.plain("shape", &[&layout.to_text()]);
            self.keep(layout);
        }
    }

    fn keep(&mut self, layout: Arc<Layout>) {
        self.numbers
            .insert(layout.digest().to_owned(), self.numbered.len() as u64);
        self.numbered.push(layout);
    }

    /// Reads a record. Returns `None` for a record that defines a layout, which changes nothing by
    /// itself.
    pub(super) fn read(&mut self, record: &str) -> Result<Option<Change>, String> {
        let mut fields = Fields(record.split(FIELD));
        let name = fields.0.next().unwrap_or_default();
        Ok(Some(match name {
            ANEW => {
                self.numbered.clear();
                self.numbers.clear();
                self.is_anew = false;
                return Ok(None);
            }
            "shape" => {
                let layout = self.layouts.read(&fields.text()?)?;
                self.keep(layout);
                return Ok(None);
            }
            "commit" => Change::Commit(Box::new(self.read_commit(&mut fields)?)),
            "idempotency" => Change::Idempotency(fields.string()?, fields.string()?),
            "tags" => Change::Tags(fields.string()?, read_tags(&mut fields)?),
            "remove" => Change::RemoveObjects(fields.string()?, vec![fields.string()?]),
            "remove-ehr" => Change::RemoveEhr(fields.string()?),
            // Unknown records, such as those of later releases, are an error: without the skipped
            // change, all later changes would be wrong.
            "define" => Change::Define(fields.definition_kind()?, read_definition(&mut fields)?),
            "undefine" => Change::Undefine(
                fields.definition_kind()?,
                fields.string()?,
                fields.string()?,
            ),
            "access" => Change::Accesses(vec![read_access(&mut fields)?]),
            "reset" => Change::Reset,
            other => return Err(broken(&format!("there is no record `{other}`"))),
        }))
    }

    fn read_commit(&self, fields: &mut Fields<'_>) -> Result<Commit, String> {
        let (ehr_id, contribution_uid) = (fields.string()?, fields.string()?);
        let (time_committed, contribution) = (fields.string()?, fields.string()?);
        let new_ehr = read_new_ehr(fields, &ehr_id)?;
        let status = read_flags(fields)?;
        let mut commit = Commit {
            new_ehr,
            ehr_id,
            contribution_uid,
            contribution,
            time_committed,
            versions: Vec::new(),
            status,
            access: None,
            // The preconditions were checked when the journal was written.
            preconditions: Preconditions::default(),
            idempotency: None,
        };
        // A version begins with its kind, which is never quoted. The record ends after the last
        // version.
        while let Some(kind) = fields.0.next() {
            let version = self.read_version(kind, fields, &commit)?;
            commit.versions.push(version);
        }
        Ok(commit)
    }

    fn read_version(
        &self,
        kind: &str,
        fields: &mut Fields<'_>,
        commit: &Commit,
    ) -> Result<Version, String> {
        let kind = kind
            .parse()
            .ok()
            .and_then(ObjectKind::of_number)
            .ok_or_else(|| broken("there is no such kind of object"))?;
        let (version_uid, preceding, lifecycle) =
            (fields.string()?, fields.optional()?, fields.string()?);
        let (template_id, time_committed) = (
            fields.optional()?,
            fields
                .optional()?
                .unwrap_or_else(|| commit.time_committed.clone()),
        );
        let uid = split_uid(&version_uid).ok_or_else(|| broken("the uid of a version is none"))?;
        let layout_of = |number: u64| self.numbered.get(usize::try_from(number).ok()?).cloned();
        let packed = Packed::from_text(
            &fields.text()?,
            &layout_of,
            &[&version_uid, &time_committed],
        )?;
        Ok(Version {
            ehr_id: commit.ehr_id.clone(),
            kind,
            object_id: uid.object.to_owned(),
            number: uid.number,
            preceding,
            contribution: commit.contribution_uid.clone(),
            time_committed,
            lifecycle,
            template_id,
            packed,
            tags: Vec::new(),
            version_uid,
        })
    }
}

/// Reads the EHR that a commit creates.
fn read_new_ehr(fields: &mut Fields<'_>, ehr_id: &str) -> Result<Option<Ehr>, String> {
    let (system_id, time_created) = (fields.optional()?, fields.optional()?);
    let flags = read_flags(fields)?;
    let Some(flags) = flags else { return Ok(None) };
    let (Some(system_id), Some(time_created)) = (system_id, time_created) else {
        return Err(broken("a new EHR has no system or no time"));
    };
    Ok(Some(Ehr {
        ehr_id: ehr_id.to_owned(),
        system_id,
        time_created,
        subject: flags.subject,
        is_queryable: flags.is_queryable,
        is_modifiable: flags.is_modifiable,
    }))
}

/// Appends a field and its separator; an empty field for `None`.
fn put(out: &mut String, field: Option<&str>) {
    out.push(FIELD);
    let Some(text) = field else { return };
    // An empty text is quoted, because an empty field means an absent one. Control characters would
    // end fields, records or lines.
    if text.is_empty() || text.bytes().any(|b| b < b' ') {
        out.push(QUOTED);
        quote_into(out, text);
    } else {
        out.push_str(text);
    }
}

fn put_all(out: &mut String, fields: &[Option<&str>]) {
    fields.iter().for_each(|field| put(out, *field));
}

/// Writes the fields of a version of a commit.
fn put_version(out: &mut String, version: &Version, text: &str, time_of_commit: &str) {
    put(out, Some(&version.kind.number().to_string()));
    // The versions of one commit usually have its time, so the field is empty.
    let own_time = Some(version.time_committed.as_str()).filter(|time| *time != time_of_commit);
    let fields = [
        Some(version.version_uid.as_str()),
        version.preceding.as_deref(),
        Some(&version.lifecycle),
        version.template_id.as_deref(),
        own_time,
        Some(text),
    ];
    put_all(out, &fields);
}

/// Writes three fields: whether the EHR is queryable and modifiable, the id of the subject, its
/// namespace.
fn put_flags(out: &mut String, flags: Option<&EhrFlags>) {
    let marks = flags.map(|f| {
        [f.is_queryable, f.is_modifiable]
            .map(|flag| if flag { '1' } else { '0' })
            .iter()
            .collect::<String>()
    });
    put(out, marks.as_deref());
    let (id, namespace) = flags
        .and_then(|f| f.subject.as_ref())
        .map(|(id, namespace)| (id.as_str(), namespace.as_str()))
        .unzip();
    put(out, id);
    put(out, namespace);
}

fn read_flags(fields: &mut Fields<'_>) -> Result<Option<EhrFlags>, String> {
    let (marks, subject) = (
        fields.optional()?,
        fields.optional()?.zip(fields.optional()?),
    );
    let (is_queryable, is_modifiable) = match marks.as_deref() {
        None => return Ok(None),
        Some("00") => (false, false),
        Some("01") => (false, true),
        Some("10") => (true, false),
        Some("11") => (true, true),
        Some(_) => return Err(broken("the flags of an EHR are not two digits")),
    };
    Ok(Some(EhrFlags {
        subject,
        is_queryable,
        is_modifiable,
    }))
}

fn read_tags(fields: &mut Fields<'_>) -> Result<TagList, String> {
    let mut list = TagList {
        target: fields.string()?,
        tags: Vec::new(),
    };
    while let Some(key) = fields.next()? {
        list.tags.push(ItemTag {
            key: key.ok_or_else(|| broken("a tag has no key"))?.into_owned(),
            path: fields.optional()?,
            value: fields.optional()?,
        });
    }
    Ok(list)
}

fn read_access(fields: &mut Fields<'_>) -> Result<AccessRecord, String> {
    Ok(AccessRecord {
        time: fields.string()?,
        who: fields.string()?,
        issuer: fields.string()?,
        operation: fields.string()?,
        status: fields
            .text()?
            .parse()
            .map_err(|_| broken("a status is no number"))?,
        request_id: fields.string()?,
        object: fields.optional()?,
        ehr_id: fields.optional()?,
        query: fields.optional()?,
        refused: fields
            .next()?
            .flatten()
            .map(|text| text.parse())
            .transpose()
            .map_err(|_| broken("a count is no number"))?,
    })
}

fn read_definition(fields: &mut Fields<'_>) -> Result<Definition, String> {
    Ok(Definition {
        name: fields.string()?,
        version: fields.string()?,
        format: fields.string()?,
        created: fields.string()?,
        storing_id: String::new(),
        summary: fields.string()?,
        bytes: 0,
        body: fields.string()?,
    })
}

/// Reads the fields of a record from left to right.
struct Fields<'a>(std::str::Split<'a, char>);

impl<'a> Fields<'a> {
    /// Returns the next field. The outer option is `None` at the end of the record, the inner one
    /// for an absent field.
    fn next(&mut self) -> Result<Option<Option<Cow<'a, str>>>, String> {
        let Some(raw) = self.0.next() else {
            return Ok(None);
        };
        if raw.is_empty() {
            return Ok(Some(None));
        }
        let Some(quoted) = raw.strip_prefix(QUOTED) else {
            return Ok(Some(Some(Cow::Borrowed(raw))));
        };
        let text = json::text(quoted).ok_or_else(|| broken("a quoted field is no string"))?;
        Ok(Some(Some(Cow::Owned(text))))
    }

    fn field(&mut self) -> Result<Option<Cow<'a, str>>, String> {
        self.next()?
            .ok_or_else(|| broken("a record ends too early"))
    }

    fn text(&mut self) -> Result<Cow<'a, str>, String> {
        self.field()?.ok_or_else(|| broken("a field is empty"))
    }

    fn string(&mut self) -> Result<String, String> {
        self.text().map(Cow::into_owned)
    }

    fn optional(&mut self) -> Result<Option<String>, String> {
        Ok(self.field()?.map(Cow::into_owned))
    }

    fn definition_kind(&mut self) -> Result<DefinitionKind, String> {
        self.text()?
            .parse()
            .ok()
            .and_then(DefinitionKind::of_number)
            .ok_or_else(|| broken("there is no such kind of definition"))
    }
}

fn broken(what: &str) -> String {
    format!("the journal is broken: {what}")
}
