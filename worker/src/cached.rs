//! A repository with a cache of definitions in KV, near the reader: bodies of templates are large
//! and never change.
//!
//! The key contains the storing id of the definition, which every list of the database includes. A
//! definition that was removed and stored again, also by a reset and an import, has another id. The
//! service lists the versions of a name before it reads one, so an old entry of KV is not read. This
//! instance deletes the old entries that it knows; others expire. If KV is slow or fails, or an entry is
//! damaged, the database returns the definition.

use crate::blobs::{READ, timely};
use crate::log::log_problem;
use aqlite::document::ObjectKind;
use aqlite::store::cache_entry::{entry_key, with_checksum, without_checksum};
use aqlite::store::repository::{
    AccessFilter, AccessRecord, BoundedVersion, Commit, Contribution, ContributionDetail,
    Definition, DefinitionKind, Ehr, ItemTag, ListPage, Repository, Sink, StoreError, TagList,
    VerifiedVersion, Version, VersionMetadata, VersionSelector,
};
use aqlite::store::scan::{Scan, Snapshot};
use futures_util::future::try_join_all;
use std::cell::RefCell;
use std::collections::HashMap;
use worker::KvStore;

/// The minimum bytes of a body that is stored in KV. The database returns a shorter body as fast.
const MIN_BODY: usize = 20_000;
/// Seconds after which KV removes a definition. The next reader stores it again.
const KEPT: u64 = 7 * 24 * 3600;
/// The maximum number of keys that a reset deletes; the others expire.
const MAX_DELETED: usize = 50;
/// The maximum number of listed definitions that an instance remembers. Beyond it, the instance
/// forgets them, and remembers those of later lists.
const MAX_REMEMBERED: usize = 10_000;
/// The longest key of KV.
const MAX_KEY_BYTES: usize = 512;

/// A repository with definitions in KV.
pub struct CachedDefinitions<R> {
    inner: R,
    kv: KvStore,
    /// Definitions as last listed, without bodies: those whose bodies may be in KV.
    listed: RefCell<HashMap<(DefinitionKind, String, String), Definition>>,
}

impl<R> CachedDefinitions<R> {
    /// Creates a cache in KV for a repository.
    pub fn new(inner: R, kv: KvStore) -> CachedDefinitions<R> {
        CachedDefinitions {
            inner,
            kv,
            listed: RefCell::default(),
        }
    }

    fn list(&self, kind: Kind, found: &[Definition]) {
        let mut listed = self.listed.borrow_mut();
        for found in found {
            let key = (kind, found.name.clone(), found.version.clone());
            if listed.len() >= MAX_REMEMBERED {
                listed.clear();
            }
            match found.bytes >= MIN_BODY {
                true => listed.insert(key, found.clone()),
                // A longer body that was stored before under this version is outdated.
                false => listed.remove(&key),
            };
        }
    }

    /// Deletes keys from KV. Failures are ignored, because these keys are never read again.
    async fn delete_keys(&self, keys: impl IntoIterator<Item = String>) {
        let deletion = |key: String| async move { self.kv.delete(&entry_key(&key)).await };
        let deletions = try_join_all(keys.into_iter().map(deletion));
        drop(timely("KV", READ, deletions).await);
    }
}

/// Returns the key of a definition; `None` if the database has no storing id, as for a definition
/// that an earlier release has just stored.
fn key(kind: Kind, listed: &Definition) -> Option<String> {
    let Definition {
        name,
        version,
        storing_id,
        ..
    } = listed;
    let key = format!("definition/{}/{name}/{version}/{storing_id}", kind.number());
    short(key).filter(|_| !storing_id.is_empty())
}

/// Returns a key, unless it is too long for KV.
pub fn short(key: String) -> Option<String> {
    (entry_key(&key).len() <= MAX_KEY_BYTES).then_some(key)
}

/// Reads a text from KV, as it was stored under this key.
pub async fn read_text(kv: &KvStore, key: &str) -> Option<String> {
    let read = timely("KV", READ, kv.get(&entry_key(key)).text()).await;
    let text = without_checksum(key, read.ok().flatten()?);
    if text.is_none() {
        log_problem("KV", &"an entry is damaged, and is not used");
    }
    text
}

/// Stores a text in KV for a number of seconds.
pub async fn write_text(kv: &KvStore, key: &str, text: &str, seconds: u64) {
    let put = kv.put(&entry_key(key), with_checksum(key, text));
    let stored = async { put?.expiration_ttl(seconds).execute().await };
    drop(timely("KV", READ, stored).await);
}

/// The result of a repository.
type Outcome<T> = Result<T, StoreError>;
type Kind = DefinitionKind;

impl<R: Repository> Repository for CachedDefinitions<R> {
    async fn definitions(&self, kind: Kind, prefix: &str) -> Outcome<Vec<Definition>> {
        let found = self.inner.definitions(kind, prefix).await;
        found.inspect(|found| self.list(kind, found))
    }

    async fn definition_versions(&self, kind: Kind, name: &str) -> Outcome<Vec<Definition>> {
        let found = self.inner.definition_versions(kind, name).await;
        found.inspect(|found| self.list(kind, found))
    }

    async fn definition_bodies(
        &self,
        kind: Kind,
        ids: &[(&str, &str)],
        longest: usize,
    ) -> Outcome<Vec<Definition>> {
        self.inner.definition_bodies(kind, ids, longest).await
    }

    async fn preconditions(
        &self,
        ehr_id: &str,
        template_id: &str,
    ) -> Outcome<(Option<Ehr>, Vec<Definition>)> {
        let (ehr, templates) = self.inner.preconditions(ehr_id, template_id).await?;
        self.list(DefinitionKind::Template, &templates);
        Ok((ehr, templates))
    }

    async fn definition(
        &self,
        kind: Kind,
        name: &str,
        version: &str,
    ) -> Outcome<Option<Definition>> {
        let named = (kind, name.to_owned(), version.to_owned());
        let listed = self.listed.borrow().get(&named).cloned();
        let key = listed.as_ref().and_then(|listed| key(kind, listed));
        let (Some(listed), Some(key)) = (listed, key) else {
            // Without a list, this instance does not know the storing id.
            return self.inner.definition(kind, name, version).await;
        };
        if let Some(body) = read_text(&self.kv, &key).await {
            return Ok(Some(Definition { body, ..listed }));
        }
        let found = self.inner.definition(kind, name, version).await?;
        // If the definition was stored again since it was listed, `key` is the key of the old one.
        let is_listed = |found: &&Definition| found.storing_id == listed.storing_id;
        if let Some(found) = found.as_ref().filter(is_listed) {
            write_text(&self.kv, &key, &found.body, KEPT).await;
        }
        Ok(found)
    }

    async fn undefine(&self, kind: Kind, name: &str, version: &str) -> Outcome<bool> {
        let removed = self.inner.undefine(kind, name, version).await?;
        let named = (kind, name.to_owned(), version.to_owned());
        let listed = self.listed.borrow_mut().remove(&named);
        let outdated = listed.and_then(|listed| key(kind, &listed));
        self.delete_keys(outdated).await;
        Ok(removed)
    }

    async fn reset(&self) -> Outcome<()> {
        self.inner.reset().await?;
        let listed = self.listed.take().into_iter();
        let outdated = listed.filter_map(|((kind, ..), listed)| key(kind, &listed));
        self.delete_keys(outdated.take(MAX_DELETED)).await;
        Ok(())
    }

    async fn commit(&self, commit: Commit) -> Outcome<()> {
        self.inner.commit(commit).await
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Vec<Result<(), StoreError>> {
        self.inner.commit_all(commits).await
    }

    async fn contributions(
        &self,
        ehr_id: Option<&str>,
        after: Option<&str>,
        limit: u64,
        detail: ContributionDetail,
    ) -> Outcome<ListPage<Contribution>> {
        self.inner.contributions(ehr_id, after, limit, detail).await
    }

    async fn set_tags(
        &self,
        ehr_id: &str,
        list: TagList,
        expected: Option<&[ItemTag]>,
    ) -> Outcome<()> {
        self.inner.set_tags(ehr_id, list, expected).await
    }

    async fn tags(&self, ehr_id: &str, target: &str) -> Outcome<Vec<ItemTag>> {
        self.inner.tags(ehr_id, target).await
    }

    async fn tag_lists(&self, ehr_id: &str, after: Option<&str>) -> Outcome<ListPage<TagList>> {
        self.inner.tag_lists(ehr_id, after).await
    }

    async fn delete_objects(&self, ehr_id: &str, objects: &[String]) -> Outcome<()> {
        self.inner.delete_objects(ehr_id, objects).await
    }

    async fn ehr(&self, ehr_id: &str) -> Outcome<Option<Ehr>> {
        self.inner.ehr(ehr_id).await
    }

    async fn ehrs(&self, after: Option<&str>, limit: u64) -> Outcome<Vec<Ehr>> {
        self.inner.ehrs(after, limit).await
    }

    async fn ehr_by_subject(&self, id: &str, namespace: &str) -> Outcome<Option<Ehr>> {
        self.inner.ehr_by_subject(id, namespace).await
    }

    async fn ehrs_by_subject_id(&self, id: &str, limit: u64) -> Outcome<Vec<Ehr>> {
        self.inner.ehrs_by_subject_id(id, limit).await
    }

    async fn version_within(
        &self,
        ehr_id: &str,
        object_id: &str,
        which: VersionSelector<'_>,
        most: usize,
    ) -> Outcome<Option<BoundedVersion>> {
        self.inner
            .version_within(ehr_id, object_id, which, most)
            .await
    }

    async fn latest_versions(
        &self,
        ehr_id: &str,
        object_ids: &[&str],
        most: usize,
    ) -> Outcome<Vec<BoundedVersion>> {
        self.inner.latest_versions(ehr_id, object_ids, most).await
    }

    fn verified_version(&self, ehr_id: &str, version_uid: &str) -> Option<VerifiedVersion> {
        self.inner.verified_version(ehr_id, version_uid)
    }

    async fn versions(
        &self,
        ehr_id: &str,
        object_id: &str,
        after: u32,
    ) -> Outcome<ListPage<Version>> {
        self.inner.versions(ehr_id, object_id, after).await
    }

    async fn version_metadata(&self, ehr_id: &str, object: &str) -> Outcome<Vec<VersionMetadata>> {
        self.inner.version_metadata(ehr_id, object).await
    }

    async fn objects(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
        offset: u64,
        limit: u64,
    ) -> Outcome<Vec<String>> {
        self.inner.objects(ehr_id, kind, offset, limit).await
    }

    async fn newest_object(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
        at: Option<&str>,
    ) -> Outcome<Option<String>> {
        self.inner.newest_object(ehr_id, kind, at).await
    }

    async fn idempotency(&self, ehr_id: &str, contribution_uid: &str) -> Outcome<Option<String>> {
        self.inner.idempotency(ehr_id, contribution_uid).await
    }

    async fn contribution(&self, ehr_id: &str, uid: &str) -> Outcome<Option<String>> {
        self.inner.contribution(ehr_id, uid).await
    }

    async fn scan(&self, scan: &Scan, sink: Sink<'_>) -> Outcome<Snapshot> {
        self.inner.scan(scan, sink).await
    }

    async fn define(&self, kind: Kind, definition: Definition) -> Outcome<()> {
        // The listed definition of this name is outdated, whether the write succeeds or another
        // instance has stored the name before.
        let named = (kind, definition.name.clone(), definition.version.clone());
        self.listed.borrow_mut().remove(&named);
        self.inner.define(kind, definition).await
    }

    async fn delete_ehr(&self, ehr_id: &str) -> Outcome<bool> {
        self.inner.delete_ehr(ehr_id).await
    }

    async fn log_accesses(&self, accesses: Vec<AccessRecord>) -> Outcome<()> {
        self.inner.log_accesses(accesses).await
    }

    async fn log_refused_accesses(
        &self,
        accesses: &[AccessRecord],
        day: &str,
        most: u64,
    ) -> Outcome<bool> {
        self.inner.log_refused_accesses(accesses, day, most).await
    }

    async fn accesses(&self, filter: &AccessFilter<'_>) -> Outcome<Vec<(u64, AccessRecord)>> {
        self.inner.accesses(filter).await
    }

    async fn revision(&self) -> Outcome<u64> {
        self.inner.revision().await
    }
}
