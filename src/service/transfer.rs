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
//! of the last contribution, or `kind/name/version` if the last record is a definition. With
//! `ehr_id` the export has one EHR alone, without definitions. Import commits each line unchanged,
//! with its times and audits. A line that is already stored is skipped (200), so an interrupted
//! import can be started again. A line that differs from the stored data is rejected (409). An
//! export that is imported into an empty repository and exported again has the same bytes.
//!
//! Import checks a line like any commit: identifiers, times, the Reference Model and templates. A
//! definition is checked like an upload of its text. A line with an error is rejected with its
//! findings. `findings=keep` accepts documents with findings, as `admin/load` accepts compositions,
//! so that data that were loaded that way, or precede their template, can be restored.

mod definitions;
mod parties;
mod record;

use self::definitions::After;
use self::parties::{Import, ImportedContribution, PartyVersion};
use super::bulk::{NDJSON, SentLine, numbered};
use super::call::Call;
use super::commit::flags;
use super::committal::{DELETED, lifecycle};
use super::content::{ValidationLevel, model_findings, read_text, refuse_errors, without_template};
use super::document_class::kind_of;
use super::error::Failure;
use super::http::{Request, Response};
use super::identity::{LIFECYCLE_CODE, check_data_uid, check_deletable, preceding_uid};
use super::ids::{VersionUid, check_subject, is_uuid};
use super::imported::read_version;
use super::members::{Members, in_member};
use super::named_uids::complete_data_uid;
use super::negotiate::{Format, check_ndjson_acceptable};
use super::time::past_instant;
use super::value_set::imported_value_set;
use super::{Service, gdl};
use crate::diag::{Finding, Severity};
use crate::document::{NothingKnown, ObjectKind, Packed};
use crate::rm::class::{Attr, Cls};
use crate::rm::imported::stored_form;
use crate::rm::tree::{NodeRef, Tree};
use crate::rm::validate::validate;
use crate::store::repository::{
    Commit, Contribution, ContributionDetail, Definition, DefinitionKind, Ehr, EhrFlags, ListPage,
    Preconditions, Repository, StoreError, TagList, Version, VersionSelector,
};
use record::{
    ContributionRecord, DefinitionRecord, ImportLine, PAGE_BYTES, add_record, contribution_record,
    tags_of,
};
use std::collections::HashMap;

/// Contributions of a page by default.
const PAGE: u64 = 200;
/// Contributions that are written between two pauses.
const TOGETHER: usize = 50;

impl<R: Repository> Service<R> {
    /// GET /admin/export?after=…&limit=…&ehr_id=…
    pub(super) async fn export(&self, call: &Call<'_>) -> Result<Response, Failure> {
        check_ndjson_acceptable(call.request)?;
        let page = PageRequest::read(call.request)?;
        if let Some(ehr_id) = &page.ehr_id {
            self.ehr_with_id(ehr_id).await?;
        }
        // Pages are made one at a time, so their memory is that of one long text.
        call.room(PAGE_BYTES).await?;
        let mut out = String::new();
        // Contributions follow on the page of the last definition, and not before it.
        let has_contributions = !page.has_definitions()
            || self
                .export_definitions(call, page.after.definition(), &mut out)
                .await?;
        if has_contributions {
            self.export_contributions(call, &page, &mut out).await?;
        }
        Ok(Response::new(200).with_body(NDJSON, out))
    }

    /// Appends contributions to a page until it is full, and the end after the last of them.
    ///
    /// The repository may return fewer than requested, so one page may need several reads.
    async fn export_contributions(
        &self,
        call: &Call<'_>,
        page: &PageRequest<'_>,
        out: &mut String,
    ) -> Result<(), Failure> {
        let ehr_id = page.ehr_id.as_deref();
        let (mut left, mut after) = (page.limit, page.after.contribution().map(str::to_owned));
        loop {
            let read = self.repository.contributions(
                ehr_id,
                after.as_deref(),
                left,
                ContributionDetail::WithVersions,
            );
            let ListPage { items, more } = read.await.map_err(Failure::of_store)?;
            add_contributions(call, &items, out).await?;
            // The repository returns at most `left` items, so this does not underflow.
            left -= items.len() as u64;
            after = items.last().map(|c| c.uid.clone()).filter(|_| more);
            if after.is_none() {
                add_record(out, r#"{"end":true}"#);
            }
            // A page of large contributions ends early. Its last uid is the `after` of the next
            // page.
            if after.is_none() || left == 0 || out.len() >= PAGE_BYTES {
                return Ok(());
            }
            call.pause().await;
        }
    }

    /// POST /admin/import?findings=refuse|keep
    pub(super) async fn import(&self, call: &Call<'_>) -> Result<Response, Failure> {
        check_ndjson_acceptable(call.request)?;
        let keeps_findings = keeps_findings(call.request)?;
        let mut import = Import::begin(call);
        // A record may depend on any record before it.
        import.lines.await_earlier_parts().await?;
        for sent in numbered(call)? {
            import.lines.pause(call, sent.text).await;
            // The templates of a call are kept for its lines. A long body may name any number of
            // them.
            call.templates.borrow_mut().forget_many();
            let imported = self.import_line(call, &mut import, sent, keeps_findings);
            if let Err(failure) = imported.await {
                // Responses have the order of lines, so pending lines are answered first.
                self.commit_queue(call, &mut import).await;
                import.lines.refuse(sent.number, &failure);
            }
        }
        self.commit_queue(call, &mut import).await;
        Ok(Response::new(200).with_body(NDJSON, import.lines.into_text()))
    }

    /// Imports the record of a line: a definition at once, a contribution with those of the queue.
    async fn import_line<'a>(
        &self,
        call: &Call<'_>,
        import: &mut Import<'a>,
        sent: SentLine<'a>,
        keeps_findings: bool,
    ) -> Result<(), Failure> {
        if sent.text.contains(Cls::IMPORTED_VERSION.name()) {
            // The preceding version may be in an earlier line, which must be committed first.
            self.commit_queue(call, import).await;
        }
        match ImportLine::read(sent.text)? {
            ImportLine::Definition(record) => {
                let status = self.import_definition(call, record).await?;
                self.commit_queue(call, import).await;
                import.lines.answer(sent.number, status, "{}");
            }
            ImportLine::Contribution(parts) => {
                let contribution = self.imported(call, &parts, keeps_findings).await?;
                self.queue(call, import, sent, contribution).await;
            }
            ImportLine::End => {}
        }
        Ok(())
    }

    /// Imports a definition. Returns 201 if it is new, 200 if it is already stored. Another one of
    /// the same name and version is a conflict.
    async fn import_definition(&self, call: &Call<'_>, record: &str) -> Result<u16, Failure> {
        let record = DefinitionRecord::read(record)?;
        let (kind, stated) = (record.kind, &record.definition);
        past_instant("created", &stated.created, call.now)?;
        let made = self.uploaded_definition(call, kind, stated).await?;
        record.check_agreement(&made)?;
        let definition = Definition {
            created: stated.created.clone(),
            ..made
        };
        match self.repository.define(kind, definition.clone()).await {
            Ok(()) => Ok(201),
            Err(StoreError::DefinitionExists) => {
                let stored = self
                    .definition(kind, &definition.name, &definition.version)
                    .await?;
                if stored.is_some_and(|s| s.body == definition.body) {
                    Ok(200)
                } else {
                    Err(Failure::of_store(StoreError::DefinitionExists))
                }
            }
            Err(error) => Err(Failure::of_store(error)),
        }
    }

    /// Returns the definition that an upload of the text of a record would store, checked by the
    /// same rules.
    async fn uploaded_definition(
        &self,
        call: &Call<'_>,
        kind: DefinitionKind,
        stated: &Definition,
    ) -> Result<Definition, Failure> {
        match kind {
            DefinitionKind::Template => self.imported_template(call, stated).await,
            DefinitionKind::Query => {
                let made = self.readable_query(call, &stated.name, stated.body.clone())?;
                Ok(Definition {
                    version: stated.version.clone(),
                    ..made
                })
            }
            DefinitionKind::Guide => Ok(gdl::readable_guide(call, stated.body.clone())?.1),
            DefinitionKind::ValueSet => imported_value_set(call, stated).await,
        }
    }

    /// Reads and checks a contribution. Its commit has the original times and audits.
    async fn imported(
        &self,
        call: &Call<'_>,
        parts: &ContributionRecord<'_>,
        keeps_findings: bool,
    ) -> Result<ImportedContribution, Failure> {
        let ehr_id = parts.ehr_id()?;
        let stated = StatedContribution::read(call, parts.contribution)
            .map_err(|failure| failure.below("/contribution"))?;
        let context = ImportContext {
            ehr_id: &ehr_id,
            stated: &stated,
            keeps_findings,
        };
        let versions = self.imported_versions(call, &context, parts).await?;
        let parties = stated.parties(&versions)?;
        let status = last_status(&versions);
        check_subject(status.as_ref().and_then(|flags| flags.subject.as_ref()))?;
        let (new_ehr, status) = match status {
            // A new EHR has the flags already. For an existing one, the commit updates them.
            Some(flags) if creates_ehr(&versions) => (Some(stated.new_ehr(&ehr_id, flags)), None),
            status => (None, status),
        };
        let commit = Commit {
            new_ehr,
            ehr_id,
            contribution_uid: stated.uid,
            contribution: parts.contribution.to_owned(),
            time_committed: stated.time_committed,
            versions,
            status,
            // The import as a whole is recorded in the access log, not each line.
            access: None,
            preconditions: Preconditions::default(),
            idempotency: None,
        };
        Ok(ImportedContribution {
            members: Members::of_versions(&commit.versions),
            commit,
            parties,
        })
    }

    /// Reads and checks the versions of a record. The first one gets the tags of the record.
    async fn imported_versions(
        &self,
        call: &Call<'_>,
        context: &ImportContext<'_>,
        parts: &ContributionRecord<'_>,
    ) -> Result<Vec<Version>, Failure> {
        let mut read: Vec<Version> = Vec::new();
        for (index, text) in parts.versions()?.into_iter().enumerate() {
            // A version of the same record may be the preceding one of a later version.
            let is_pending = |uid: &str| read.iter().any(|version| version.version_uid == uid);
            let version = self.imported_version(call, context, text, is_pending).await;
            read.push(version.map_err(|failure| in_member(index, failure))?);
        }
        let Some(first) = read.first_mut() else {
            return Err(Failure::bad_request(
                "the record has no `versions`: a contribution is imported together with the versions that it lists",
            ));
        };
        first.tags = tags_of(parts.tags)?;
        check_tag_targets(&read)?;
        Ok(read)
    }

    /// Reads and checks a version of a record.
    async fn imported_version(
        &self,
        call: &Call<'_>,
        context: &ImportContext<'_>,
        text: &str,
        is_pending: impl Fn(&str) -> bool,
    ) -> Result<Version, Failure> {
        let turn = call.turn(text.len()).await?;
        let mut sent = read_version(text, Format::Json)?;
        complete_data_uid(&mut sent);
        drop(turn);
        let tree = self
            .as_stored(call, context.ehr_id, sent, is_pending)
            .await?;
        let root = tree
            .root()
            .ok_or_else(|| Failure::bad_request("the version is empty"))?;
        let head = VersionHead::read(root, context)?;
        let (template_id, packed) = self
            .packed_import(call, &tree, &head, context.keeps_findings)
            .await?;
        Ok(Version {
            ehr_id: context.ehr_id.to_owned(),
            kind: head.kind,
            version_uid: head.uid.to_string(),
            object_id: head.uid.object_id,
            number: head.uid.number,
            preceding: head.preceding.map(|uid| uid.to_string()),
            contribution: context.stated.uid.clone(),
            time_committed: time_of_version(call, root)?,
            lifecycle: head.lifecycle,
            template_id,
            packed,
            tags: Vec::new(),
        })
    }

    /// Checks the document of an imported version, and returns its template and its packed form.
    /// The template of a composition must be stored. `keeps_findings` accepts documents that break
    /// rules.
    async fn packed_import(
        &self,
        call: &Call<'_>,
        version: &Tree,
        head: &VersionHead,
        keeps_findings: bool,
    ) -> Result<(Option<String>, Packed), Failure> {
        let data = version.root().and_then(|root| root.get(Attr::DATA));
        let path = [Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE];
        let named = data.and_then(|data| data.text_along(&path));
        // The turn ends before the template is read, because reading waits for the database.
        let turn = call.turn(version.size()).await?;
        let mut findings = model_findings(version)?;
        drop(turn);
        let template = match named {
            Some(id) => self.template_of(call, id).await?,
            None => None,
        };
        let needs_template = data.is_some() && head.kind == ObjectKind::Composition;
        if needs_template && template.is_none() {
            let mut missing = without_template(named);
            missing.path.insert_str(0, DATA);
            findings.insert(0, missing);
            place_in_sent(version, &mut findings);
            return Err(Failure::invalid(call.dialect, "version", &findings));
        }
        let _turn = call.turn(version.size()).await?;
        if keeps_findings {
            // Findings about the VERSION itself still reject the line: its audit and uid must be
            // valid.
            findings.retain(|finding| !is_of_data(finding));
        } else if let Some((data, template)) = data.zip(template.as_ref()) {
            let level = ValidationLevel::from_lifecycle(&head.lifecycle);
            let mut of_data = level.findings(data, &template.template);
            // Their paths begin at the data, all others at the version.
            of_data.iter_mut().for_each(|f| f.path.insert_str(0, DATA));
            findings.extend(of_data);
        }
        let mut errors = findings.iter().filter(|f| f.severity == Severity::Error);
        let can_be_kept = errors.all(is_of_data);
        place_in_sent(version, &mut findings);
        refuse_errors(call, "version", &findings).map_err(|failure| match can_be_kept {
            true => failure.with_help("`findings=keep` imports documents in spite of their errors"),
            false => failure,
        })?;
        // Objects of other kinds may have changed their templates in earlier releases.
        let keeps_template = head.kind == ObjectKind::Composition || !keeps_findings;
        let template_id = named.filter(|_| keeps_template && template.is_some());
        let template_id = template_id.map(str::to_owned);
        let packed = match template {
            Some(template) => self.packed(version, &*template.known)?,
            None => self.packed(version, &NothingKnown)?,
        };
        Ok((template_id, packed))
    }

    /// Returns whether the line of an existing contribution equals the stored one: the
    /// CONTRIBUTION, its versions and the tags of the line, byte for byte.
    ///
    /// # Errors
    /// If the repository does not answer. A line that cannot be read is not stored.
    pub(super) async fn is_stored(
        &self,
        ehr_id: &str,
        stored: &str,
        line: &str,
    ) -> Result<bool, Failure> {
        let Ok(ImportLine::Contribution(parts)) = ImportLine::read(line) else {
            return Ok(false);
        };
        let (Ok(versions), Ok(tags)) = (parts.versions(), tags_of(parts.tags)) else {
            return Ok(false);
        };
        if parts.contribution != stored {
            return Ok(false);
        }
        let mut found = Vec::new();
        for text in versions {
            match self.stored_as(ehr_id, text).await? {
                Some(version) => found.push(version),
                None => return Ok(false),
            }
        }
        Ok(tags.iter().all(|list| {
            found
                .iter()
                .flat_map(|version| &version.tags)
                .any(|stored| stored == list)
        }))
    }

    /// Returns the stored version with this text.
    async fn stored_as(&self, ehr_id: &str, text: &str) -> Result<Option<Version>, Failure> {
        let Ok(mut tree) = read_version(text, Format::Json) else {
            return Ok(None);
        };
        complete_data_uid(&mut tree);
        let root = tree.root();
        let is_imported = root.is_some_and(|root| root.class() == Cls::IMPORTED_VERSION);
        let original = match is_imported {
            true => root.and_then(|root| root.get(Attr::ITEM)),
            false => root,
        };
        let uid = original.and_then(|version| uids_of(version).ok());
        let Some((root, (uid, _))) = root.zip(uid) else {
            return Ok(None);
        };
        let named = uid.to_string();
        let which = VersionSelector::Uid(&named);
        let stored = self.repository.version(ehr_id, &uid.object_id, which).await;
        let Some(stored) = stored.map_err(Failure::of_store)? else {
            return Ok(None);
        };
        // An imported version is stored in another form than it was sent in.
        let imported = is_imported.then(|| stored_form(root, stored.preceding.is_some()));
        let root = imported.as_ref().map_or(Some(root), Tree::root);
        let is_same = root.is_some_and(|root| stored.packed.is_equal_to(root));
        Ok(is_same.then_some(stored))
    }
}

/// The parameters of one page of an export.
struct PageRequest<'a> {
    /// The maximum number of contributions.
    limit: u64,
    after: After<'a>,
    /// The EHR of an export of one EHR, in lower case.
    ehr_id: Option<String>,
}

impl<'a> PageRequest<'a> {
    fn read(request: &'a Request) -> Result<PageRequest<'a>, Failure> {
        let parameter = |name| request.query_value(name).filter(|v| !v.is_empty());
        Ok(PageRequest {
            limit: request.page_size("limit", PAGE)?,
            after: After::read(parameter("after"))?,
            ehr_id: parameter("ehr_id").map(str::to_ascii_lowercase),
        })
    }

    /// Returns whether definitions may follow: an export of one EHR has none, and in every other
    /// export they come first.
    fn has_definitions(&self) -> bool {
        self.ehr_id.is_none() && self.after.contribution().is_none()
    }
}

/// Appends contributions to a page, with pauses for other requests.
async fn add_contributions(
    call: &Call<'_>,
    contributions: &[Contribution],
    out: &mut String,
) -> Result<(), Failure> {
    for (number, contribution) in (1_usize..).zip(contributions) {
        add_record(out, &contribution_record(contribution)?);
        if number.is_multiple_of(TOGETHER) {
            call.pause().await;
        }
    }
    Ok(())
}

/// Returns whether an import accepts documents with findings.
fn keeps_findings(request: &Request) -> Result<bool, Failure> {
    match request.query_value("findings") {
        None | Some("" | "refuse") => Ok(false),
        Some("keep") => Ok(true),
        Some(other) => Err(Failure::bad_request(format!(
            "`findings` is `{other}`: expected `refuse` or `keep`"
        ))),
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

/// Returns whether a change set has the first version of an EHR_STATUS.
fn creates_ehr(versions: &[Version]) -> bool {
    versions
        .iter()
        .any(|v| v.kind == ObjectKind::EhrStatus && v.preceding.is_none())
}

/// The path of the data in a version.
const DATA: &str = "/data";

/// Replaces the paths in the stored form of an IMPORTED_VERSION by those in its sent form, which
/// has the data in its item. The other attributes of the item were checked at their place.
fn place_in_sent(stored: &Tree, findings: &mut [Finding]) {
    let class = stored.root().map(NodeRef::class);
    if class == Some(Cls::IMPORTED_VERSION) {
        for finding in findings.iter_mut().filter(|finding| is_of_data(finding)) {
            finding.path.insert_str(0, "/item");
        }
    }
}

/// Returns whether a finding concerns the data of a version.
fn is_of_data(finding: &Finding) -> bool {
    finding
        .path
        .strip_prefix(DATA)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
}

/// Returns the uid of a version and that of its preceding version.
fn uids_of(version: NodeRef<'_>) -> Result<(VersionUid, Option<VersionUid>), Failure> {
    let uid = version
        .text_along(&[Attr::UID, Attr::VALUE])
        .unwrap_or_default();
    let uid = VersionUid::read_stored(uid, "the uid of the version")?;
    let preceding = preceding_uid(version, &uid, "preceding_version_uid")?;
    Ok((uid, preceding))
}

/// Returns a text that a valid document of the Reference Model has.
fn mandatory(root: NodeRef<'_>, document: &str, path: &[Attr]) -> Result<String, Failure> {
    root.text_along(path)
        .map(str::to_owned)
        .ok_or_else(|| Failure::bad_request(format!("the {document} is not whole")))
}

/// Returns the time at which a version was committed.
fn time_of_version(call: &Call<'_>, version: NodeRef<'_>) -> Result<String, Failure> {
    let path = [Attr::COMMIT_AUDIT, Attr::TIME_COMMITTED, Attr::VALUE];
    let time = mandatory(version, "version", &path)?;
    past_instant("time_committed of the version", &time, call.now)
}

/// The CONTRIBUTION of a record, checked.
struct StatedContribution {
    uid: String,
    /// The classes of its versions by their uids.
    classes: HashMap<String, Cls>,
    time_committed: String,
    system_id: String,
}

impl StatedContribution {
    fn read(call: &Call<'_>, text: &str) -> Result<StatedContribution, Failure> {
        let tree = read_text(text, Format::Json, Cls::CONTRIBUTION, "contribution")?;
        let root = tree
            .root()
            .ok_or_else(|| Failure::bad_request("the contribution is empty"))?;
        refuse_errors(call, "contribution", &validate(root))?;
        let needed = |path: &[Attr]| mandatory(root, "contribution", path);
        let uid = needed(&[Attr::UID, Attr::VALUE])?;
        if !is_uuid(&uid) || uid != uid.to_ascii_lowercase() {
            return Err(Failure::bad_request(format!(
                "the uid of the contribution is `{uid}`: expected a UUID in lower case"
            )));
        }
        let time = needed(&[Attr::AUDIT, Attr::TIME_COMMITTED, Attr::VALUE])?;
        Ok(StatedContribution {
            uid,
            time_committed: past_instant("time_committed of the contribution", &time, call.now)?,
            system_id: needed(&[Attr::AUDIT, Attr::SYSTEM_ID])?,
            classes: listed_classes(root),
        })
    }

    /// Returns the EHR that this contribution creates.
    fn new_ehr(&self, ehr_id: &str, flags: EhrFlags) -> Ehr {
        Ehr {
            ehr_id: ehr_id.to_owned(),
            system_id: self.system_id.clone(),
            time_created: self.time_committed.clone(),
            subject: flags.subject,
            is_queryable: flags.is_queryable,
            is_modifiable: flags.is_modifiable,
        }
    }

    /// Returns the versions of parties with data. The class of data is the listed one.
    ///
    /// # Errors
    /// 500 for a version that was not checked against the list.
    fn parties(&self, versions: &[Version]) -> Result<Vec<PartyVersion>, Failure> {
        let parties = versions
            .iter()
            .enumerate()
            .filter(|(_, v)| v.kind == ObjectKind::Party && !v.is_deletion());
        let party = |(index, version): (usize, &Version)| {
            let class = self.classes.get(&version.version_uid).copied();
            let preceding = version.preceding.as_deref();
            Ok(PartyVersion {
                index,
                object_id: version.object_id.clone(),
                preceding: preceding.map(VersionUid::of_checked).transpose()?,
                class: class.ok_or_else(|| Failure::broken("a party is not listed"))?,
            })
        };
        parties.map(party).collect()
    }
}

/// Returns the classes of the versions that a CONTRIBUTION lists, by their uids. Of two references
/// to one version, the first counts.
fn listed_classes(contribution: NodeRef<'_>) -> HashMap<String, Cls> {
    let mut classes = HashMap::new();
    for reference in contribution.values(Attr::VERSIONS) {
        let uid = reference.text_along(&[Attr::ID, Attr::VALUE]);
        let class = reference.text_at(Attr::TYPE).and_then(Cls::parse);
        if let Some((uid, class)) = uid.zip(class) {
            classes.entry(uid.to_owned()).or_insert(class);
        }
    }
    classes
}

/// The attributes of an imported VERSION around its data.
struct VersionHead {
    uid: VersionUid,
    preceding: Option<VersionUid>,
    kind: ObjectKind,
    /// The code of the lifecycle state.
    lifecycle: String,
}

impl VersionHead {
    fn read(root: NodeRef<'_>, context: &ImportContext<'_>) -> Result<VersionHead, Failure> {
        let (uid, preceding) = uids_of(root)?;
        let data = root.get(Attr::DATA);
        check_data_uid(&uid, data)?;
        let kind = context.kind_of(root, &uid)?;
        let state = mandatory(root, "version", &LIFECYCLE_CODE)?;
        // `lifecycle` also accepts rubrics. An export has codes only.
        if lifecycle(&state)?.code != state || (state == DELETED.code) != data.is_none() {
            return Err(Failure::bad_request(format!(
                "the lifecycle state is `{state}`: a version has no data when it is `523` (deleted), and only then"
            )));
        }
        if data.is_none() {
            check_deletable(kind, preceding.is_some())?;
        }
        Ok(VersionHead {
            uid,
            preceding,
            kind,
            lifecycle: state,
        })
    }
}

/// The record that an imported version is part of.
struct ImportContext<'a> {
    ehr_id: &'a str,
    stated: &'a StatedContribution,
    keeps_findings: bool,
}

impl ImportContext<'_> {
    /// Returns the kind of a version. It must agree with the contribution, and with the owner.
    fn kind_of(&self, version: NodeRef<'_>, uid: &VersionUid) -> Result<ObjectKind, Failure> {
        let class = self.stated.classes.get(&uid.to_string()).copied();
        let class = class.ok_or_else(|| {
            Failure::bad_request("the contribution does not list a version of the record")
        })?;
        self.check_agreement(version, class)?;
        let kind = kind_of(class)?;
        if self.ehr_id.is_empty() != (kind == ObjectKind::Party) {
            return Err(Failure::bad_request(
                "a party belongs to no EHR, and any other object to one: `ehr_id` is required for the latter, and not allowed for a party",
            ));
        }
        Ok(kind)
    }

    /// Checks that a version has the class and the contribution of its record.
    fn check_agreement(&self, version: NodeRef<'_>, class: Cls) -> Result<(), Failure> {
        let data = version.get(Attr::DATA);
        if data.is_some_and(|data| data.class() != class) {
            return Err(Failure::bad_request(
                "the contribution states another class of a version than its data have",
            ));
        }
        let named = version.text_along(&[Attr::CONTRIBUTION, Attr::ID, Attr::VALUE]);
        if named != Some(&self.stated.uid) {
            return Err(Failure::bad_request(
                "the version names another contribution than that of the record",
            ));
        }
        Ok(())
    }
}
