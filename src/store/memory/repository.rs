//! The repository interface over the state in memory. No operation waits, except for the pauses of
//! a scan.

use super::index::StoredContribution;
use super::{Memory, State, missing_document, missing_owner};
use crate::document::{Doc, ObjectKind};
use crate::store::by_name;
use crate::store::journal::Change;
use crate::store::repository::{
    AccessFilter, AccessRecord, BoundedVersion, Commit, Contribution, ContributionDetail,
    Definition, DefinitionKind, Ehr, ItemTag, ListPage, MAX_PAGE_BYTES, Repository, Sink,
    StoreError, TagList, Version, VersionMetadata, VersionSelector,
};
use crate::store::scan::{Progress, Scan, Snapshot};
use aqlite_rm::order;
use std::future::{Ready, ready};

/// Returns the first of some items: at most `limit`, and no more than [`MAX_PAGE_BYTES`] of them.
///
/// # Errors
/// The first error among the items of the page.
fn first_page<T>(
    items: impl Iterator<Item = Result<T, StoreError>>,
    limit: usize,
    size: impl Fn(&T) -> usize,
) -> Result<ListPage<T>, StoreError> {
    let (mut page, mut bytes) = (Vec::new(), 0);
    for item in items {
        let item = item?;
        bytes += size(&item);
        let is_full = page.len() >= limit || bytes as u64 > MAX_PAGE_BYTES;
        if is_full && !page.is_empty() {
            return Ok(ListPage {
                items: page,
                more: true,
            });
        }
        page.push(item);
    }
    Ok(ListPage {
        more: page.len() >= limit,
        items: page,
    })
}

impl Memory {
    /// Computes a result and wraps it in a future that is ready. The result is an error if a part
    /// of the checkpoint could not be read.
    fn completed<T>(
        &self,
        make: impl FnOnce() -> Result<T, StoreError>,
    ) -> Ready<Result<T, StoreError>> {
        ready(self.checked(make()))
    }

    fn checked<T>(&self, made: Result<T, StoreError>) -> Result<T, StoreError> {
        match self.failure() {
            Some(why) => Err(StoreError::Failed(why)),
            None => made,
        }
    }

    /// Returns the definitions of a kind whose names match, in order.
    fn listed(&self, kind: DefinitionKind, has_name: &dyn Fn(&str) -> bool) -> Vec<Definition> {
        let state = self.state.borrow();
        let listed = state
            .definitions
            .iter()
            .filter(|((k, name, _), _)| *k == kind && has_name(name));
        let mut found: Vec<Definition> = listed.map(|(_, d)| head(d)).collect();
        order::sort_by(&mut found, by_name);
        found
    }
}

/// Returns a definition without its body.
fn head(definition: &Definition) -> Definition {
    Definition {
        name: definition.name.clone(),
        version: definition.version.clone(),
        format: definition.format.clone(),
        created: definition.created.clone(),
        storing_id: definition.storing_id.clone(),
        summary: definition.summary.clone(),
        bytes: definition.body.len(),
        body: String::new(),
    }
}

/// Returns a body, cut if it has more than `longest` bytes.
fn shortened_body(body: &str, longest: usize) -> &str {
    let cut = body.char_indices().nth(longest / 4);
    match cut.filter(|_| body.len() > longest) {
        Some((end, _)) => body.get(..end).unwrap_or_default(),
        None => body,
    }
}

impl Repository for Memory {
    fn commit(&self, commit: Commit) -> impl Future<Output = Result<(), StoreError>> {
        self.completed(|| self.check_and_commit(commit))
    }

    fn commit_all(
        &self,
        commits: Vec<Commit>,
    ) -> impl Future<Output = Vec<Result<(), StoreError>>> {
        let commits = commits.into_iter();
        ready(
            commits
                .map(|commit| self.checked(self.check_and_commit(commit)))
                .collect(),
        )
    }

    fn contributions(
        &self,
        ehr_id: Option<&str>,
        after: Option<&str>,
        limit: u64,
        detail: ContributionDetail,
    ) -> impl Future<Output = Result<ListPage<Contribution>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let owner = ehr_id.map(|ehr_id| state.in_batch(ehr_id));
            let is_wanted =
                |stored: &StoredContribution| owner.is_none_or(|owner| owner == Some(stored.owner));
            let behind = match after {
                // A contribution of another EHR gets the same error as one that does not exist.
                Some(uid) => {
                    let known = state.contribution(uid);
                    let known = known.filter(|(_, stored)| is_wanted(stored));
                    known.ok_or(StoreError::NoSuchContribution)?.0 + 1
                }
                None => 0,
            };
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let stored = state.contributions.iter().skip(behind);
            let wanted = stored.filter(|stored| is_wanted(stored)).take(limit);
            let whole = |stored| state.whole_contribution(stored, detail);
            first_page(wanted.map(whole), limit, |contribution| {
                let versions = contribution.versions.iter();
                contribution.document.len() + versions.map(|v| v.packed.size()).sum::<usize>()
            })
        })
    }

    fn set_tags(
        &self,
        ehr_id: &str,
        list: TagList,
        expected: Option<&[ItemTag]>,
    ) -> impl Future<Output = Result<(), StoreError>> {
        self.completed(|| {
            let is_locked = |ehr: &Ehr| !ehr.is_modifiable;
            if self.state.borrow().ehr(ehr_id).is_some_and(is_locked) {
                return Err(StoreError::NotModifiable);
            }
            if expected.is_some_and(|expected| {
                self.state.borrow().tags_of(ehr_id, &list.target) != expected
            }) {
                return Err(StoreError::TagsChanged);
            }
            self.apply_and_record(Change::Tags(ehr_id.to_owned(), list))?;
            Ok(())
        })
    }

    fn tags(
        &self,
        ehr_id: &str,
        target: &str,
    ) -> impl Future<Output = Result<Vec<ItemTag>, StoreError>> {
        self.completed(|| Ok(self.state.borrow().tags_of(ehr_id, target).to_vec()))
    }

    fn tag_lists(
        &self,
        ehr_id: &str,
        after: Option<&str>,
    ) -> impl Future<Output = Result<ListPage<TagList>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let wanted = state.tags.iter().filter(|(target, (owner, _))| {
                owner == ehr_id && after.is_none_or(|after| target.as_str() > after)
            });
            let mut lists: Vec<TagList> = wanted
                .map(|(target, (_, tags))| TagList {
                    target: target.clone(),
                    tags: tags.clone(),
                })
                .collect();
            order::sort_by(&mut lists, |a, b| a.target.cmp(&b.target));
            first_page(lists.into_iter().map(Ok), usize::MAX, |list| {
                list.tags.iter().map(|tag| tag.key.len() + 100).sum()
            })
        })
    }

    fn delete_objects(
        &self,
        ehr_id: &str,
        objects: &[String],
    ) -> impl Future<Output = Result<(), StoreError>> {
        self.completed(|| {
            self.apply_and_record(Change::RemoveObjects(ehr_id.to_owned(), objects.to_vec()))?;
            Ok(())
        })
    }

    fn ehr(&self, ehr_id: &str) -> impl Future<Output = Result<Option<Ehr>, StoreError>> {
        self.completed(|| Ok(self.state.borrow().ehr(ehr_id).cloned()))
    }

    fn ehrs(
        &self,
        after: Option<&str>,
        limit: u64,
    ) -> impl Future<Output = Result<Vec<Ehr>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let behind = match after {
                Some(id) => state.ehr_ids.get(id).ok_or(StoreError::NoSuchEhr)? + 1,
                None => 0,
            };
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            Ok(state
                .ehrs
                .iter()
                .skip(behind)
                .filter_map(|record| record.ehr.clone())
                .take(limit)
                .collect())
        })
    }

    fn ehr_by_subject(
        &self,
        id: &str,
        namespace: &str,
    ) -> impl Future<Output = Result<Option<Ehr>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let place = state.subjects.get(&(id.to_owned(), namespace.to_owned()));
            Ok(place
                .and_then(|place| state.ehrs.get(*place))
                .and_then(|record| record.ehr.clone()))
        })
    }

    fn ehrs_by_subject_id(
        &self,
        id: &str,
        limit: u64,
    ) -> impl Future<Output = Result<Vec<Ehr>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            // The empty text is the least namespace.
            let from = (id.to_owned(), String::new());
            let subjects = state.subjects.range(from..);
            let own = subjects.take_while(|((other, _), _)| other == id);
            let records = own.filter_map(|(_, place)| state.ehrs.get(*place));
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let ehrs = records.filter_map(|record| record.ehr.clone());
            Ok(ehrs.take(limit).collect())
        })
    }

    fn version_within(
        &self,
        ehr_id: &str,
        object_id: &str,
        which: VersionSelector<'_>,
        most: usize,
    ) -> impl Future<Output = Result<Option<BoundedVersion>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let is_wanted = |version: &Version| match which {
                VersionSelector::Latest => true,
                VersionSelector::Uid(uid) => version.version_uid == uid,
                VersionSelector::At(time) => version.time_committed.as_str() <= time,
            };
            for document in state.versions(ehr_id, object_id)? {
                let version = state.version(document)?;
                if is_wanted(&version) {
                    return Ok(Some(BoundedVersion::of(version, most)));
                }
            }
            Ok(None)
        })
    }

    fn latest_versions(
        &self,
        ehr_id: &str,
        object_ids: &[&str],
        most: usize,
    ) -> impl Future<Output = Result<Vec<BoundedVersion>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let mut found = Vec::new();
            for object_id in object_ids {
                for document in state.versions(ehr_id, object_id)? {
                    let version = state.version(document)?;
                    let has_data = !version.is_deletion();
                    found.push(BoundedVersion::of(version, most));
                    // A deletion follows a version with data.
                    if has_data {
                        break;
                    }
                }
            }
            Ok(found)
        })
    }

    fn versions(
        &self,
        ehr_id: &str,
        object_id: &str,
        after: u32,
    ) -> impl Future<Output = Result<ListPage<Version>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let mut documents = state.versions(ehr_id, object_id)?;
            documents.reverse();
            let versions = documents
                .into_iter()
                .map(|document| state.version(document))
                .filter(|version| version.as_ref().map_or(true, |v| v.number > after));
            first_page(versions, usize::MAX, |v| v.packed.size())
        })
    }

    fn version_metadata(
        &self,
        ehr_id: &str,
        object_id: &str,
    ) -> impl Future<Output = Result<Vec<VersionMetadata>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let mut heads = Vec::new();
            for document in state.versions(ehr_id, object_id)? {
                heads.push(VersionMetadata::of(state.version(document)?));
            }
            heads.reverse();
            Ok(heads)
        })
    }

    fn objects(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
        offset: u64,
        limit: u64,
    ) -> impl Future<Output = Result<Vec<String>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let is_first = |doc: &Doc| {
                doc.row.kind == kind && state.before.get(doc.document as usize) == Some(&None)
            };
            let skip = usize::try_from(offset).unwrap_or(usize::MAX);
            let take = usize::try_from(limit).unwrap_or(usize::MAX);
            let wanted = state
                .documents(ehr_id)
                .filter(is_first)
                .skip(skip)
                .take(take);
            wanted.map(|doc| state.object_id(&doc)).collect()
        })
    }

    fn newest_object(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
        at: Option<&str>,
    ) -> impl Future<Output = Result<Option<String>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let mut newest = None;
            for doc in state.documents(ehr_id).filter(|doc| doc.row.kind == kind) {
                let is_of_time = match at {
                    Some(at) => state.version(doc.document)?.time_committed.as_str() <= at,
                    None => true,
                };
                newest = if is_of_time { Some(doc) } else { newest };
            }
            newest.map(|doc| state.object_id(&doc)).transpose()
        })
    }

    fn idempotency(
        &self,
        ehr_id: &str,
        contribution_uid: &str,
    ) -> impl Future<Output = Result<Option<String>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let found = state
                .contribution(contribution_uid)
                .filter(|(_, c)| state.in_batch(ehr_id) == Some(c.owner));
            Ok(found.and_then(|_| state.idempotency.get(contribution_uid).cloned()))
        })
    }

    fn contribution(
        &self,
        ehr_id: &str,
        uid: &str,
    ) -> impl Future<Output = Result<Option<String>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let found = state
                .contribution(uid)
                .filter(|(_, c)| state.in_batch(ehr_id) == Some(c.owner));
            found.map(|(_, c)| c.document(&state.batch)).transpose()
        })
    }

    async fn scan(&self, scan: &Scan, sink: Sink<'_>) -> Result<Snapshot, StoreError> {
        let mut scan = self.checked(self.begin_scan(scan))?;
        while scan.step(|batch| sink.take(batch))? == Progress::Paused {
            // No borrow of the state is held here: other requests may write.
            sink.pause().await;
            if scan.restart_if_changed()? && !sink.restart() {
                return Err(StoreError::Unavailable(String::from(
                    "the data have changed since the query began: run it again",
                )));
            }
        }
        Ok(scan.snapshot())
    }

    fn define(
        &self,
        kind: DefinitionKind,
        definition: Definition,
    ) -> impl Future<Output = Result<(), StoreError>> {
        self.completed(|| {
            let key = (kind, definition.name.clone(), definition.version.clone());
            if self.state.borrow().definitions.contains_key(&key) {
                return Err(StoreError::DefinitionExists);
            }
            self.apply_and_record(Change::Define(kind, definition))?;
            Ok(())
        })
    }

    fn definitions(
        &self,
        kind: DefinitionKind,
        prefix: &str,
    ) -> impl Future<Output = Result<Vec<Definition>, StoreError>> {
        self.completed(|| Ok(self.listed(kind, &|name| name.starts_with(prefix))))
    }

    fn definition_versions(
        &self,
        kind: DefinitionKind,
        name: &str,
    ) -> impl Future<Output = Result<Vec<Definition>, StoreError>> {
        self.completed(|| Ok(self.listed(kind, &|own| own == name)))
    }

    fn definition_bodies(
        &self,
        kind: DefinitionKind,
        ids: &[(&str, &str)],
        longest: usize,
    ) -> impl Future<Output = Result<Vec<Definition>, StoreError>> {
        self.completed(|| {
            let state = self.state.borrow();
            let read = |(name, version): &(&str, &str)| {
                let key = (kind, (*name).to_owned(), (*version).to_owned());
                let definition = state.definitions.get(&key)?;
                Some(Definition {
                    body: shortened_body(&definition.body, longest).to_owned(),
                    ..head(definition)
                })
            };
            let mut found: Vec<Definition> = ids.iter().filter_map(read).collect();
            order::sort_by(&mut found, by_name);
            Ok(found)
        })
    }

    fn definition(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> impl Future<Output = Result<Option<Definition>, StoreError>> {
        self.completed(|| {
            Ok(self
                .state
                .borrow()
                .definitions
                .get(&(kind, name.to_owned(), version.to_owned()))
                .cloned())
        })
    }

    fn undefine(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> impl Future<Output = Result<bool, StoreError>> {
        self.completed(|| {
            if kind == DefinitionKind::Template && self.state.borrow().names_template(name) {
                return Err(StoreError::TemplateInUse);
            }
            self.apply_and_record(Change::Undefine(kind, name.to_owned(), version.to_owned()))
        })
    }

    fn delete_ehr(&self, ehr_id: &str) -> impl Future<Output = Result<bool, StoreError>> {
        self.completed(|| {
            Ok(
                !ehr_id.is_empty()
                    && self.apply_and_record(Change::RemoveEhr(ehr_id.to_owned()))?,
            )
        })
    }

    fn reset(&self) -> impl Future<Output = Result<(), StoreError>> {
        self.completed(|| {
            self.apply_and_record(Change::Reset)?;
            Ok(())
        })
    }

    fn log_accesses(
        &self,
        accesses: Vec<AccessRecord>,
    ) -> impl Future<Output = Result<(), StoreError>> {
        self.completed(|| {
            self.apply_and_record(Change::Accesses(accesses))?;
            Ok(())
        })
    }

    fn log_refused_accesses(
        &self,
        accesses: &[AccessRecord],
        day: &str,
        most: u64,
    ) -> impl Future<Output = Result<bool, StoreError>> {
        self.completed(|| {
            let has_room = self.state.borrow().log.has_room(day, most);
            Ok(has_room && self.apply_and_record(Change::Accesses(accesses.to_vec()))?)
        })
    }

    fn accesses(
        &self,
        filter: &AccessFilter<'_>,
    ) -> impl Future<Output = Result<Vec<(u64, AccessRecord)>, StoreError>> {
        self.completed(|| Ok(self.state.borrow().log.select(filter)))
    }

    fn revision(&self) -> impl Future<Output = Result<u64, StoreError>> {
        self.completed(|| Ok(self.state.borrow().revision))
    }
}

impl State {
    fn whole_contribution(
        &self,
        stored: &StoredContribution,
        detail: ContributionDetail,
    ) -> Result<Contribution, StoreError> {
        let versions = match detail {
            ContributionDetail::WithoutVersions => Vec::new(),
            ContributionDetail::WithVersions => (stored.documents.0..stored.documents.1)
                .map(|document| self.version(document))
                .collect::<Result<_, _>>()?,
        };
        let owner = self.owner_id(stored.owner).ok_or_else(missing_owner)?;
        let uid = stored.uid(&self.batch).ok_or_else(missing_document)?;
        Ok(Contribution {
            ehr_id: owner.to_owned(),
            uid: uid.to_owned(),
            document: stored.document(&self.batch)?,
            versions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contribution_without_an_owner_is_an_error() {
        let state = State::default();
        let own = Some(Box::new((String::from("uid"), String::from("{}"))));
        let (owner, documents) = (7, (0, 0));
        let stored = StoredContribution {
            owner,
            documents,
            own,
        };
        let read = state.whole_contribution(&stored, ContributionDetail::WithoutVersions);
        assert!(matches!(read, Err(StoreError::Failed(_))), "{read:?}");
    }
}
