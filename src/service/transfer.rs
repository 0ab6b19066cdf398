//! Export and import: `GET /admin/export` and `POST /admin/import`, newline-delimited JSON.
//!
//! A line is `{"digest": …, "record": …}`: the SHA-256 of the record's text, and one of
//!
//! | record | members |
//! |---|---|
//! | a definition | `definition` (`template`, `query`, `guide`), `name`, `version`, `format`, `created`, `summary`, `body` |
//! | a contribution | `ehr_id` (absent for demographic parties), `contribution`, `versions` (complete), `tags` |
//! | the end | `end`: no page follows |
//!
//! Definitions come first, then contributions in commit order. A page (`limit` contributions, or
//! fewer large ones) ends without `end` if more may follow. `after` selects the next page: the uid
//! of the last contribution, or `kind/name/version` if the last record is a definition. With `ehr_id` the export has one EHR alone, without
//! definitions. Import commits each line unchanged, with its times and audits. A line that is
//! already stored is skipped (200), so an interrupted import can be started again. A line that
//! differs from the stored data is rejected (409). An export that is imported into an empty
//! repository and exported again has the same bytes.
//!
//! Import checks a line like any commit: identifiers, times, the Reference Model and the templates
//! of compositions. A line with an error is rejected with its findings. `findings=keep` accepts
//! compositions with findings, as `admin/load` does, so that data that were loaded that way can be
//! restored.

mod record;

mod definitions;

use self::definitions::After;
use super::Service;
use super::bulk::{LineIdentity, Lines, NDJSON, ReadyLine, numbered};
use super::call::Call;
use super::commit::flags;
use super::committal::{DELETED, lifecycle};
use super::content::{read_text, refuse_errors, without_template};
use super::document_class::kind_of;
use super::error::Failure;
use super::http::Response;
use super::identity::check_data_uid;
use super::ids::{VersionUid, is_uuid};
use super::imported::read_version;
use super::imported_form::stored_form;
use super::negotiate::Format;
use super::template;
use super::time::{instant, past_instant};
use crate::diag::Finding;
use crate::document::{NothingKnown, ObjectKind, Packed};
use crate::rm::class::{Attr, Cls};
use crate::rm::json;
use crate::rm::tree::{NodeRef, Tree};
use crate::rm::validate::validate;
use crate::store::repository::{
    Commit, Definition, DefinitionKind, Ehr, EhrFlags, Extent, ListPage, Preconditions, Repository,
    StoreError, TagList, Version, VersionSelector,
};
use record::{
    ContributionRecord, ImportLine, KINDS, PAGE_BYTES, add_record, contribution_record, tags_of,
};
use serde_json::Value;

/// Contributions of a page by default, and the maximum.
const PAGE: u64 = 200;
const LONGEST_PAGE: u64 = 1_000;
/// Contributions that are written between two pauses.
const TOGETHER: usize = 50;

impl<R: Repository> Service<R> {
    /// GET /admin/export?after=…&limit=…&ehr_id=…
    pub(super) async fn export(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let parameter = |name| call.request.query_value(name).filter(|v| !v.is_empty());
        let limit = parameter("limit")
            .map_or(Ok(PAGE), str::parse)
            .map_err(|_| Failure::bad_request("`limit` is not a number"))?
            .clamp(1, LONGEST_PAGE);
        let after = After::read(parameter("after"))?;
        let ehr_id = parameter("ehr_id").map(str::to_ascii_lowercase);
        if let Some(ehr_id) = &ehr_id {
            self.ehr_with_id(ehr_id).await?;
        }
        // Pages are made one at a time, so their memory is that of one long text.
        call.room(PAGE_BYTES).await?;
        let mut out = String::new();
        let (definition, contribution) = match after {
            After::Nothing => (None, None),
            After::Definition(position) => (Some(position), None),
            After::Contribution(uid) => (None, Some(uid)),
        };
        if contribution.is_none()
            && ehr_id.is_none()
            && !self.export_definitions(call, definition, &mut out).await?
        {
            return Ok(Response::new(200).with_body(NDJSON, out));
        }
        let (mut left, mut after) = (limit, contribution.map(str::to_owned));
        loop {
            let ListPage { items, more } = self
                .repository
                .contributions(
                    ehr_id.as_deref(),
                    after.as_deref(),
                    left,
                    Extent::WithVersions,
                )
                .await
                .map_err(Failure::of_store)?;
            for (number, contribution) in (1_usize..).zip(&items) {
                add_record(&mut out, &contribution_record(contribution));
                if number.is_multiple_of(TOGETHER) {
                    call.pause().await;
                }
            }
            left -= items.len() as u64;
            after = items.last().map(|c| c.uid.clone()).filter(|_| more);
            if after.is_none() {
                add_record(&mut out, r#"{"end":true}"#);
            }
            if after.is_none() || left == 0 || out.len() >= PAGE_BYTES {
                break;
            }
            call.pause().await;
        }
        Ok(Response::new(200).with_body(NDJSON, out))
    }

    /// POST /admin/import?findings=refuse|keep
    pub(super) async fn import(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let keeps_findings = match call.request.query_value("findings") {
            None | Some("" | "refuse") => false,
            Some("keep") => true,
            Some(other) => {
                return Err(Failure::bad_request(format!(
                    "`findings` is `{other}`: expected `refuse` or `keep`"
                )));
            }
        };
        let mut lines = Lines::default();
        for (number, text) in numbered(call)? {
            lines.pause(call, text).await;
            call.templates.borrow_mut().forget_many();
            if text.contains(Cls::IMPORTED_VERSION.name()) {
                // The preceding version may be in an earlier line, which must be committed first.
                self.flush(&mut lines).await;
            }
            let mut line = self.import_line(call, text, keeps_findings).await;
            if let Ok(Some(Imported::Contribution(ready))) = &line
                && let Err(failure) = self.check_classes_kept(&mut lines, &ready.commit).await
            {
                line = Err(failure);
            }
            match line {
                Ok(Some(Imported::Contribution(ready))) => {
                    self.add_line(&mut lines, number, *ready, text).await
                }
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

    /// Checks that parties keep their classes. Their preceding versions may still be pending.
    async fn check_classes_kept(
        &self,
        lines: &mut Lines<'_>,
        commit: &Commit,
    ) -> Result<(), Failure> {
        for version in commit
            .versions
            .iter()
            .filter(|v| v.kind == ObjectKind::Party && !v.is_deletion())
        {
            let Some(preceding) = version.preceding.as_deref().and_then(VersionUid::parse) else {
                continue;
            };
            self.flush(lines).await;
            let tree = version.packed.unpack();
            if let Some(data) = tree.root().and_then(|root| root.get(Attr::DATA)) {
                self.check_class_kept(&version.ehr_id, &preceding, data.class())
                    .await?;
            }
        }
        Ok(())
    }

    async fn import_line(
        &self,
        call: &Call<'_>,
        text: &str,
        keeps_findings: bool,
    ) -> Result<Option<Imported>, Failure> {
        let Some(parts) = ImportLine::read(text)? else {
            return Ok(None);
        };
        match parts {
            ImportLine::Definition(record) => self
                .import_definition(call, record)
                .await
                .map(|status| Some(Imported::Definition(status))),
            ImportLine::Contribution(parts) => {
                let commit = self.imported(call, &parts, keeps_findings).await?;
                Ok(Some(Imported::Contribution(Box::new(ReadyLine {
                    commit,
                    created: None,
                    identity: LineIdentity::Text,
                }))))
            }
        }
    }

    /// Imports a definition. Returns 201 if it is new, 200 if it is already stored. Another one of
    /// the same name and version is a conflict.
    async fn import_definition(&self, call: &Call<'_>, record: &str) -> Result<u16, Failure> {
        let value: Value =
            json::value(record).map_err(|_| Failure::bad_request("the definition is not JSON"))?;
        let text = |name: &str| {
            value
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| Failure::bad_request(format!("`{name}` is missing")))
        };
        let word = text("definition")?;
        let kind = KINDS
            .iter()
            .find(|(w, _)| *w == word)
            .ok_or_else(|| Failure::bad_request(format!("`{word}` is not a kind of definition")))?
            .1;
        let definition = Definition {
            name: text("name")?,
            version: text("version")?,
            format: text("format")?,
            created: text("created")?,
            storing_id: String::new(),
            summary: text("summary")?,
            bytes: 0,
            body: text("body")?,
        };
        instant("created", &definition.created)?;
        if kind == DefinitionKind::Template {
            template::check_definition(call, &definition).await?;
        }
        match self.repository.define(kind, definition.clone()).await {
            Ok(()) => Ok(201),
            Err(StoreError::DefinitionExists) => {
                let stored = self
                    .repository
                    .definition(kind, &definition.name, &definition.version)
                    .await
                    .map_err(Failure::of_store)?;
                if stored.is_some_and(|s| s.body == definition.body) {
                    Ok(200)
                } else {
                    Err(Failure::of_store(StoreError::DefinitionExists))
                }
            }
            Err(error) => Err(Failure::of_store(error)),
        }
    }

    /// Reads and checks a contribution, and returns its commit with the original times and audits.
    async fn imported(
        &self,
        call: &Call<'_>,
        parts: &ContributionRecord<'_>,
        keeps_findings: bool,
    ) -> Result<Commit, Failure> {
        let ehr_id = parts.ehr_id()?;
        let stated = read_text(
            parts.contribution,
            Format::Json,
            Cls::CONTRIBUTION,
            "contribution",
        )?;
        let root = stated
            .root()
            .ok_or_else(|| Failure::bad_request("the contribution is empty"))?;
        refuse_errors(call, "contribution", &validate(root))?;
        let needed = |path: &[Attr]| {
            root.text_along(path)
                .map(str::to_owned)
                .ok_or_else(|| Failure::bad_request("the contribution is not whole"))
        };
        let uid = needed(&[Attr::UID, Attr::VALUE])?;
        if !is_uuid(&uid) || uid != uid.to_ascii_lowercase() {
            return Err(Failure::bad_request(format!(
                "the uid of the contribution is `{uid}`: expected a UUID in lower case"
            )));
        }
        let time = past_instant(
            "time_committed of the contribution",
            &needed(&[Attr::AUDIT, Attr::TIME_COMMITTED, Attr::VALUE])?,
            call.now,
        )?;
        let mut read = Vec::new();
        for (index, text) in parts.versions()?.into_iter().enumerate() {
            let context = ContributionContext {
                ehr_id: &ehr_id,
                stated: root,
                contribution: &uid,
                keeps_findings,
            };
            let is_pending = |uid: &str| {
                read.iter()
                    .any(|version: &Version| version.version_uid == uid)
            };
            let version = self
                .imported_version(call, &context, text, is_pending)
                .await;
            read.push(version.map_err(|failure| failure.within(&format!("versions[{index}]")))?);
        }
        let Some(first) = read.first_mut() else {
            return Err(Failure::bad_request(
                "the record has no `versions`: a contribution is imported together with the versions that it lists",
            ));
        };
        first.tags = tags_of(parts.tags)?;
        check_tag_targets(&read)?;
        let status = last_status(&read);
        let creates = read
            .iter()
            .any(|v| v.kind == ObjectKind::EhrStatus && v.preceding.is_none());
        let system_id = needed(&[Attr::AUDIT, Attr::SYSTEM_ID])?;
        let new_ehr = status.clone().filter(|_| creates).map(|flags| Ehr {
            ehr_id: ehr_id.clone(),
            system_id,
            time_created: time.clone(),
            subject: flags.subject,
            is_queryable: flags.is_queryable,
            is_modifiable: flags.is_modifiable,
        });
        let status = status.filter(|_| !creates);
        Ok(Commit {
            new_ehr,
            ehr_id,
            contribution_uid: uid,
            contribution: parts.contribution.to_owned(),
            time_committed: time,
            versions: read,
            status,
            access: None,
            preconditions: Preconditions::default(),
            idempotency: None,
        })
    }

    async fn imported_version(
        &self,
        call: &Call<'_>,
        context: &ContributionContext<'_>,
        text: &str,
        is_pending: impl Fn(&str) -> bool,
    ) -> Result<Version, Failure> {
        let turn = call.turn(text.len()).await?;
        let sent = read_version(text, Format::Json)?;
        drop(turn);
        let tree = self
            .as_stored(call, context.ehr_id, sent, is_pending)
            .await?;
        let root = tree
            .root()
            .ok_or_else(|| Failure::bad_request("the version is empty"))?;
        let needed = |path: &[Attr]| {
            root.text_along(path)
                .map(str::to_owned)
                .ok_or_else(|| Failure::bad_request("the version is not whole"))
        };
        let (uid, preceding) = uids_of(root)?;
        check_data_uid(&uid, root.get(Attr::DATA))?;
        let kind = context.kind_of(root, &uid)?;
        let state = needed(&[
            Attr::LIFECYCLE_STATE,
            Attr::DEFINING_CODE,
            Attr::CODE_STRING,
        ])?;
        if lifecycle(&state)?.code != state
            || (state == DELETED.code) != root.get(Attr::DATA).is_none()
        {
            return Err(Failure::bad_request(format!(
                "the lifecycle state is `{state}`: a version has no data when it is `523` (deleted), and only then"
            )));
        }
        if root.get(Attr::DATA).is_none() && (preceding.is_none() || kind == ObjectKind::EhrStatus)
        {
            return Err(Failure::bad_request(
                "the version has no data: a first version and an EHR_STATUS have",
            ));
        }
        let data = root
            .get(Attr::DATA)
            .filter(|_| kind == ObjectKind::Composition);
        let (template_id, packed) = match data {
            Some(data) => {
                self.imported_composition(call, &tree, data, context.keeps_findings)
                    .await?
            }
            None => {
                refuse_errors(call, "version", &validate(root))?;
                (None, self.packed(&tree, &NothingKnown)?)
            }
        };
        Ok(Version {
            ehr_id: context.ehr_id.to_owned(),
            kind,
            version_uid: uid.to_string(),
            object_id: uid.object_id,
            number: uid.number,
            preceding: preceding.map(|uid| uid.to_string()),
            contribution: context.contribution.to_owned(),
            time_committed: past_instant(
                "time_committed of the version",
                &needed(&[Attr::COMMIT_AUDIT, Attr::TIME_COMMITTED, Attr::VALUE])?,
                call.now,
            )?,
            lifecycle: state,
            template_id,
            packed,
            tags: Vec::new(),
        })
    }

    /// Returns the template of an imported composition, and the packed form of its version.
    async fn imported_composition(
        &self,
        call: &Call<'_>,
        version: &Tree,
        data: NodeRef<'_>,
        keeps_findings: bool,
    ) -> Result<(Option<String>, Packed), Failure> {
        let path = [Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE];
        let template_id = data.text_along(&path).map(str::to_owned);
        let turn = call.turn(version.size()).await?;
        let mut findings = version.root().map(validate).unwrap_or_default();
        drop(turn);
        let known = match &template_id {
            Some(id) => self.template_of(call, id).await?,
            None => None,
        };
        let Some(template) = known else {
            findings.insert(0, without_template(template_id.as_deref()));
            return Err(Failure::invalid(call.dialect, "version", &findings));
        };
        let _turn = call.turn(version.size()).await?;
        if keeps_findings {
            findings.retain(|finding| !is_of_data(finding));
        } else {
            findings.extend(crate::template::validate(data, &template.template));
        }
        refuse_errors(call, "version", &findings)?;
        Ok((template_id, self.packed(version, &*template.known)?))
    }

    /// Returns whether the line of an existing contribution equals the stored one: the
    /// CONTRIBUTION, its versions and the tags of the line, byte for byte.
    pub(super) async fn is_stored(&self, ehr_id: &str, stored: &str, line: &str) -> bool {
        let Ok(Some(ImportLine::Contribution(parts))) = ImportLine::read(line) else {
            return false;
        };
        let (Ok(versions), Ok(tags)) = (parts.versions(), tags_of(parts.tags)) else {
            return false;
        };
        if parts.contribution != stored {
            return false;
        }
        let mut found = Vec::new();
        for text in versions {
            match self.stored_as(ehr_id, text).await {
                Some(version) => found.push(version),
                None => return false,
            }
        }
        tags.iter().all(|list| {
            found
                .iter()
                .flat_map(|version| &version.tags)
                .any(|stored| stored == list)
        })
    }

    /// Returns the stored version with this text.
    async fn stored_as(&self, ehr_id: &str, text: &str) -> Option<Version> {
        let tree = read_version(text, Format::Json).ok()?;
        let root = tree.root()?;
        let is_imported = root.class() == Cls::IMPORTED_VERSION;
        let (uid, _) = uids_of(if is_imported {
            root.get(Attr::ITEM)?
        } else {
            root
        })
        .ok()?;
        let stored = self
            .repository
            .version(
                ehr_id,
                &uid.object_id,
                VersionSelector::Uid(&uid.to_string()),
            )
            .await
            .ok()
            .flatten()?;
        let imported = is_imported.then(|| stored_form(root, stored.preceding.is_some()));
        let root = imported.as_ref().map_or(Some(root), Tree::root)?;
        stored.packed.gives(root).then_some(stored)
    }
}

/// Checks that the tags of a record belong to its objects and versions.
fn check_tag_targets(versions: &[Version]) -> Result<(), Failure> {
    let own = |list: &TagList| {
        versions
            .iter()
            .any(|v| list.target == v.version_uid || list.target == v.object_id)
    };
    match versions
        .iter()
        .flat_map(|v| &v.tags)
        .find(|list| !own(list))
    {
        Some(other) => Err(Failure::bad_request(format!(
            "`tags` names `{}`, which is no object or version of the record",
            other.target
        ))),
        None => Ok(()),
    }
}

/// Returns the flags of the last version of the EHR_STATUS.
fn last_status(versions: &[Version]) -> Option<EhrFlags> {
    let is_status = |v: &&Version| v.kind == ObjectKind::EhrStatus;
    let tree = versions.iter().rev().find(is_status)?.packed.unpack();
    let data = tree.root().and_then(|root| root.get(Attr::DATA));
    data.map(|data| flags(&data.to_tree()))
}

/// Returns whether a finding concerns the data of a version.
fn is_of_data(finding: &Finding) -> bool {
    finding
        .path
        .strip_prefix("/data")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
}

/// Returns the uid of a version and that of its preceding version.
fn uids_of(version: NodeRef<'_>) -> Result<(VersionUid, Option<VersionUid>), Failure> {
    let uid = version
        .text_along(&[Attr::UID, Attr::VALUE])
        .unwrap_or_default();
    let uid = VersionUid::read_stored(uid, "the uid of the version")?;
    let preceding = version.text_along(&[Attr::PRECEDING_VERSION_UID, Attr::VALUE]);
    let preceding = preceding
        .map(|uid| VersionUid::read_stored(uid, "preceding_version_uid"))
        .transpose()?;
    preceding
        .iter()
        .try_for_each(|preceding| uid.check_follows(preceding))?;
    Ok((uid, preceding))
}

/// The contribution of a version.
struct ContributionContext<'a> {
    ehr_id: &'a str,
    /// The CONTRIBUTION.
    stated: NodeRef<'a>,
    /// Its uid.
    contribution: &'a str,
    keeps_findings: bool,
}

impl ContributionContext<'_> {
    /// Returns the kind of a version. It must agree with the contribution, and with the owner.
    fn kind_of(&self, version: NodeRef<'_>, uid: &VersionUid) -> Result<ObjectKind, Failure> {
        let uid = uid.to_string();
        let is_it =
            |reference: &NodeRef<'_>| reference.text_along(&[Attr::ID, Attr::VALUE]) == Some(&uid);
        let class = self
            .stated
            .values(Attr::VERSIONS)
            .find(is_it)
            .and_then(|reference| reference.text_at(Attr::TYPE))
            .and_then(Cls::parse);
        let class = class.ok_or_else(|| {
            Failure::bad_request("the contribution does not list a version of the record")
        })?;
        if version
            .get(Attr::DATA)
            .is_some_and(|data| data.class() != class)
        {
            return Err(Failure::bad_request(
                "the contribution gives a version another class than its data has",
            ));
        }
        let named = version.text_along(&[Attr::CONTRIBUTION, Attr::ID, Attr::VALUE]);
        if named != Some(self.contribution) {
            return Err(Failure::bad_request(
                "the version names another contribution than that of the record",
            ));
        }
        let kind = kind_of(class)?;
        if self.ehr_id.is_empty() != (kind == ObjectKind::Party) {
            return Err(Failure::bad_request(
                "a party belongs to no EHR, and any other object to one: `ehr_id` is required for the latter, and not allowed for a party",
            ));
        }
        Ok(kind)
    }
}

/// The record of an imported line.
enum Imported {
    Contribution(Box<ReadyLine>),
    /// The status of its response.
    Definition(u16),
}
