//! A cache of the layouts and profiles of a database. It is filled only from committed rows, which
//! never change.
//!
//! A physical deletion removes rows that no document uses. The meaning of an id never changes, so
//! readers may use every cached id. Writers may only use ids of the present *generation* of
//! layouts, and a commit names the generation that it knows.

use super::SqlRepository;
use super::checksum::{StoredDocument, is_former_checksum};
use super::chunked::{ChunkedText, full_chunk, joined_chunks};
use super::lineage::{NewestSeenState, Seen, lineage};
use super::value::{Fields, Row, Sql, Statement, json_list, kind_of, unexpected};
use super::verified::VerifiedVersions;
use crate::document::{JsonPattern, Layout, LayoutStore, NothingKnown, ObjectKind, Packed, pack};
use crate::rm::class::Cls;
use crate::rm::json;
use crate::store::prune;
use crate::store::repository::StoreError;
use crate::store::scan::{ArchetypeGroup, Scan};
use aqlite_rm::order;
use hashbrown::HashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The default maximum size in bytes of the cached layouts.
const DEFAULT_LIMIT: usize = 24 << 20;

/// The profiles above the id `?1`, and the state of the database, a row of kind 0. `?2` is the newest
/// CONTRIBUTION that was seen.
const NEW_PROFILES: &str = concat!(
    "SELECT id, kind, archetypes, NULL AS continues, NULL AS newest, NULL AS revision FROM profile WHERE id > ?1
    UNION ALL SELECT 0, 0, '', ",
    lineage!("?2")
);
const PROFILES: &str = "SELECT id, kind, archetypes FROM profile WHERE archetypes IN (SELECT value FROM json_each(?1))";
const ADD_PROFILE: &str =
    "INSERT INTO profile (kind, archetypes) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
const LAYOUTS: &str =
    "SELECT id, digest, skeleton FROM shape WHERE id IN (SELECT value FROM json_each(?1))";
const LAYOUT_CHUNKS: &str = concat!(
    "SELECT owner, body FROM chunk
    WHERE owner IN (SELECT 's/' || digest FROM shape WHERE id IN (SELECT value FROM json_each(?1))
      AND octet_length(skeleton) >= ",
    full_chunk!(),
    ") ORDER BY owner, part"
);
const LAYOUT_IDS: &str =
    "SELECT id, digest FROM shape WHERE digest IN (SELECT value FROM json_each(?1))";
/// The generation of layouts, and the state of the database. `?1` is the newest CONTRIBUTION that was
/// seen.
const GENERATION: &str = concat!(
    "SELECT value, ",
    lineage!("?1"),
    " FROM meta WHERE name = 'shape_generation'"
);
const ADD_LAYOUT: &str =
    "INSERT INTO shape (digest, skeleton) VALUES (?1, ?2) ON CONFLICT DO NOTHING";

/// The layouts and profiles of one database that have been read so far, and the versions that were
/// verified last.
///
/// Concurrent operations may share it: each holds its own references to layouts, so eviction does
/// not affect it.
pub struct LayoutCatalog {
    max_bytes: usize,
    read: RefCell<KnownLayouts>,
    /// The pattern of the CONTRIBUTION that was packed last. The next ones often have the same
    /// pattern.
    last: RefCell<Option<JsonPattern>>,
    /// The profiles of the last scan.
    last_matching: RefCell<Option<LastMatching>>,
    /// Versions that were written or read last.
    pub(super) verified: VerifiedVersions,
}

impl Default for LayoutCatalog {
    fn default() -> LayoutCatalog {
        LayoutCatalog::with_limit(DEFAULT_LIMIT)
    }
}

#[derive(Default)]
struct KnownLayouts {
    layouts: LayoutStore,
    by_id: HashMap<u64, Arc<Layout>>,
    ids: HashMap<String, u64>,
    bytes: usize,
    profiles: BTreeMap<u64, Profile>,
    profile_ids: HashMap<Profile, u64>,
    /// The generation of `ids` and `profile_ids`.
    generation: Option<u64>,
    /// Every profile up to this id has been read.
    complete_to: u64,
    /// The newest state of the database that was seen.
    newest_seen: NewestSeenState,
}

/// Properties of a document that its layouts determine: its kind, and its archetypes, or `None` if
/// the layouts do not determine them all.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Profile {
    kind: ObjectKind,
    archetypes: Option<Vec<String>>,
}

/// The profiles of the last scan. A scan needs them several times, and the same query is often
/// repeated.
struct LastMatching {
    kinds: Vec<ObjectKind>,
    archetypes: Vec<ArchetypeGroup>,
    matching: MatchingProfiles,
}

/// The profiles of the documents of a scan.
#[derive(Clone)]
pub(super) struct MatchingProfiles {
    /// Their ids.
    pub(super) profiles: Vec<u64>,
    /// Profiles above this id are unknown, so they are not pruned yet.
    pub(super) known_to: u64,
}

/// The layouts that an operation needs for reading documents, by id.
pub(super) struct LoadedLayouts(HashMap<u64, Arc<Layout>>);

impl LoadedLayouts {
    /// Unpacks a stored document of these layouts, and verifies its checksum.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the checksum differs or a layout is missing.
    pub(super) fn unpack(
        &self,
        stored: StoredDocument<'_>,
        layouts: &[u64],
        checksum: Option<&str>,
    ) -> Result<Packed, StoreError> {
        let packed = Packed::from_text(stored.text, &|id| self.0.get(&id).cloned(), stored.known)
            .map_err(|_| stored.corrupt())?;
        let computed = || {
            stored.checksum(
                layouts
                    .iter()
                    .filter_map(|id| Some(self.0.get(id)?.digest())),
            )
        };
        let is_it = checksum
            .is_none_or(|checksum| checksum == computed() || is_former_checksum(checksum, &packed));
        if is_it {
            Ok(packed)
        } else {
            Err(stored.corrupt())
        }
    }
}

/// A document in the form of its row.
pub(super) struct EncodedDocument {
    pub(super) text: String,
    /// A JSON list of the ids of its layouts; `None` if the text is canonical JSON.
    pub(super) layouts: Option<String>,
    pub(super) checksum: String,
}

impl EncodedDocument {
    /// Encodes a document as JSON.
    pub(super) fn plain(text: &str, owner: &str, known: &[&str]) -> EncodedDocument {
        let checksum = StoredDocument { owner, known, text }.checksum(std::iter::empty());
        EncodedDocument {
            text: text.to_owned(),
            layouts: None,
            checksum,
        }
    }
}

/// The ids of the layouts that an operation needs for writing documents, by the address of the
/// layout. The operation holds the layouts meanwhile, so the addresses stay valid.
pub(super) struct LayoutIds(HashMap<*const Layout, u64>);

impl LayoutIds {
    /// Encodes a document of these layouts. `known` are the texts that other columns of the row
    /// have, its uid first.
    pub(super) fn pack(
        &self,
        packed: &Packed,
        layouts: &[Arc<Layout>],
        owner: &str,
        known: &[&str],
    ) -> Result<EncodedDocument, StoreError> {
        let id_of = |layout: &Layout| self.0.get(&std::ptr::from_ref(layout)).copied();
        let ids = layouts
            .iter()
            .map(|layout| id_of(layout).ok_or_else(unexpected))
            .collect::<Result<Vec<u64>, StoreError>>()?;
        let text = packed.to_text(&id_of, known).ok_or_else(unexpected)?;
        let checksum = StoredDocument {
            owner,
            known,
            text: &text,
        }
        .checksum(layouts.iter().map(|layout| layout.digest()));
        Ok(EncodedDocument {
            text,
            layouts: Some(json_list(&ids)),
            checksum,
        })
    }
}

/// Makes profiles. Reads each layout once, and each list of layouts: the documents of a load have
/// few of them.
#[derive(Default)]
pub(super) struct ProfileBuilder<'s> {
    archetypes: HashMap<*const Layout, Option<Vec<&'s str>>>,
    /// The positions of the profiles, by kind and layouts.
    positions: HashMap<(ObjectKind, Vec<*const Layout>), usize>,
    profiles: Vec<Profile>,
}

impl<'s> ProfileBuilder<'s> {
    /// Returns the position of the profile of a document of these layouts.
    pub(super) fn add(&mut self, kind: ObjectKind, layouts: &'s [Arc<Layout>]) -> usize {
        let key = (kind, layouts.iter().map(Arc::as_ptr).collect());
        if let Some(position) = self.positions.get(&key) {
            return *position;
        }
        let (profile, position) = (self.profile(kind, layouts), self.profiles.len());
        self.profiles.push(profile);
        self.positions.insert(key, position);
        position
    }

    /// Returns the profiles by their positions. Several may be equal.
    pub(super) fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    fn profile(&mut self, kind: ObjectKind, layouts: &'s [Arc<Layout>]) -> Profile {
        let mut held = Some(Vec::new());
        for layout in layouts {
            let archetypes = self
                .archetypes
                .entry(Arc::as_ptr(layout))
                .or_insert_with(|| prune::archetypes_of(layout));
            held = held
                .zip(archetypes.as_ref())
                .map(|(held, archetypes)| [&held, archetypes.as_slice()].concat());
        }
        let archetypes = held.map(|held| {
            order::distinct(held)
                .into_iter()
                .map(str::to_owned)
                .collect()
        });
        Profile { kind, archetypes }
    }
}

impl Profile {
    /// Creates a profile from the columns of its row.
    fn of(kind: u64, archetypes: &str) -> Result<Profile, StoreError> {
        Ok(Profile {
            kind: kind_of(kind)?,
            archetypes: serde_json::from_str(archetypes).map_err(|_| unexpected())?,
        })
    }

    fn archetypes_text(&self) -> String {
        self.archetypes
            .as_ref()
            .map_or_else(|| "null".to_owned(), |ids| json_list(ids))
    }
}

impl LayoutCatalog {
    /// Creates a catalog that evicts its layouts when they take more than `bytes`. They are read
    /// again when needed.
    pub fn with_limit(bytes: usize) -> LayoutCatalog {
        LayoutCatalog {
            max_bytes: bytes,
            read: RefCell::default(),
            last: RefCell::default(),
            last_matching: RefCell::default(),
            verified: VerifiedVersions::default(),
        }
    }

    /// Returns the statement that reads the profiles made since the last time.
    pub(super) fn read_new_profiles(&self) -> Statement {
        let known = self.read.borrow();
        let new = Statement::new(NEW_PROFILES).bind(known.complete_to);
        new.bind(known.newest_seen.newest())
    }

    /// Adds the rows of [`LayoutCatalog::read_new_profiles`]. Returns whether all that is known is
    /// still the past of the database. If not, it is forgotten, and the caller reads again.
    pub(super) fn add_new_profiles(&self, rows: Vec<Row>) -> Result<bool, StoreError> {
        let mut new = Vec::new();
        let mut continues = false;
        for row in rows {
            let mut fields = Fields::of(row);
            let (id, kind) = (fields.number()?, fields.number()?);
            let archetypes = fields.text()?;
            if kind == 0 {
                continues = self.follow(Seen::of(&mut fields)?);
            } else {
                new.push((id, Profile::of(kind, &archetypes)?));
            }
        }
        // The profiles below `complete_to` are not among these rows.
        if continues {
            let mut known = self.read.borrow_mut();
            for (id, profile) in new {
                known.profiles.insert(id, profile);
                known.complete_to = known.complete_to.max(id);
            }
        }
        Ok(continues)
    }

    /// Adds a state of the database. Returns whether all that is known is still its past. If not,
    /// everything is forgotten.
    pub(super) fn follow(&self, seen: Seen) -> bool {
        let continues = self.read.borrow_mut().follow(seen);
        if !continues {
            self.last_matching.take();
            self.verified.clear();
        }
        continues
    }

    /// Returns the number of times that everything was forgotten.
    pub(super) fn breaks(&self) -> u64 {
        self.read.borrow().newest_seen.breaks()
    }

    /// Returns the newest CONTRIBUTION that was seen.
    pub(super) fn newest_seen(&self) -> Option<String> {
        self.read.borrow().newest_seen.newest().map(str::to_owned)
    }

    /// Returns the statement that reads the generation of layouts, and the state of the database.
    pub(super) fn generation_of(&self) -> Statement {
        Statement::new(GENERATION).bind(self.read.borrow().newest_seen.newest())
    }

    /// Reads the rows of [`LayoutCatalog::generation_of`], and forgets ids of another generation.
    /// Returns whether ids of the same batch may be used for writing.
    fn learn(&self, rows: Vec<Row>) -> Result<bool, StoreError> {
        let mut fields = Fields::of_only(rows)?;
        let generation = fields.number()?;
        // After a break the ids of the batch are not used: the callers compare `breaks`.
        let continues = self.follow(Seen::of(&mut fields)?);
        Ok(self.read.borrow_mut().learn(generation) && continues)
    }

    /// Returns the known profiles that can contribute rows to a scan.
    pub(super) fn matching(&self, scan: &Scan) -> MatchingProfiles {
        let known = self.read.borrow();
        let mut last = self.last_matching.borrow_mut();
        let is_same = |last: &&LastMatching| {
            // Profiles up to this id are complete, and never change.
            last.matching.known_to == known.complete_to
                && last.kinds == scan.kinds
                && last.archetypes == scan.archetypes
        };
        if let Some(last) = last.as_ref().filter(is_same) {
            return last.matching.clone();
        }
        let matching = known.matching(scan);
        *last = Some(LastMatching {
            kinds: scan.kinds.clone(),
            archetypes: scan.archetypes.clone(),
            matching: matching.clone(),
        });
        matching
    }

    /// Packs a CONTRIBUTION. Returns `None` if unpacking would return another text.
    pub(super) fn pack_contribution(&self, text: &str) -> Option<Packed> {
        let mut last = self.last.borrow_mut();
        if let Some(packed) = last.as_ref().and_then(|form| form.read(text)) {
            return Some(packed);
        }
        let tree = json::read(text, Cls::CONTRIBUTION).ok()?;
        let packed = pack(tree.root()?, &NothingKnown, &self.read.borrow().layouts);
        // A CONTRIBUTION must unpack to the same text, with the order of its members and the digits
        // of its numbers. Otherwise its JSON is stored.
        if packed.to_json() != text {
            return None;
        }
        *last = JsonPattern::of(packed.clone());
        Some(packed)
    }

    /// Returns the generation of the ids for writing.
    pub(super) fn generation(&self) -> Option<u64> {
        self.read.borrow().generation
    }

    /// Forgets the ids for writing. Those for reading stay.
    pub(super) fn forget_ids(&self) {
        let mut known = self.read.borrow_mut();
        known.ids.clear();
        known.profile_ids.clear();
        known.generation = None;
    }

    fn ids_of(&self, profiles: &[Profile]) -> Option<Vec<u64>> {
        let known = self.read.borrow();
        profiles
            .iter()
            .map(|profile| known.profile_ids.get(profile).copied())
            .collect()
    }

    /// Returns the cached ones of these layouts.
    fn known(&self, layouts: &[u64]) -> HashMap<u64, Arc<Layout>> {
        let mut known = self.read.borrow_mut();
        if known.bytes > self.max_bytes {
            known.forget_layouts();
        }
        layouts
            .iter()
            .filter_map(|id| known.by_id.get(id).map(|layout| (*id, Arc::clone(layout))))
            .collect()
    }
}

impl KnownLayouts {
    fn matching(&self, scan: &Scan) -> MatchingProfiles {
        // Commits of this instance may have added profiles above `complete_to`. Others below those
        // ids may still be unread.
        let known_profiles = self.profiles.range(..=self.complete_to);
        let fitting = known_profiles.filter(|(_, profile)| {
            prune::may_match(scan, profile.kind, profile.archetypes.as_deref())
        });
        MatchingProfiles {
            profiles: fitting.map(|(id, _)| *id).collect(),
            known_to: self.complete_to,
        }
    }

    /// Adds a state of the database. Forgets everything if what is known is not its past.
    fn follow(&mut self, seen: Seen) -> bool {
        let continues = self.newest_seen.follow(seen);
        if !continues {
            let newest_seen = std::mem::take(&mut self.newest_seen);
            *self = KnownLayouts {
                newest_seen,
                ..KnownLayouts::default()
            };
        }
        continues
    }

    /// Forgets ids of another generation than this one. Returns whether it is the newest.
    fn learn(&mut self, generation: u64) -> bool {
        let read = Some(generation);
        // `None` is less than any generation. An answer that arrives late must not restore an old
        // one.
        if self.generation < read {
            self.ids.clear();
            self.profile_ids.clear();
            self.generation = read;
        }
        self.generation == read
    }

    fn add_layout(&mut self, id: u64, layout: Arc<Layout>, bytes: usize, current: bool) {
        if current {
            self.ids.insert(layout.digest().to_owned(), id);
        }
        // Two requests may load the same layout at once; its bytes count once.
        if self.by_id.insert(id, layout).is_none() {
            self.bytes += bytes;
        }
    }

    fn add_profile(&mut self, row: Row) -> Result<(u64, Profile), StoreError> {
        let mut fields = Fields::of(row);
        let (id, kind) = (fields.number()?, fields.number()?);
        let profile = Profile::of(kind, &fields.text()?)?;
        self.profiles.insert(id, profile.clone());
        Ok((id, profile))
    }

    fn forget_layouts(&mut self) {
        // Requests in progress hold their layouts by reference counts.
        self.layouts = LayoutStore::new();
        self.by_id.clear();
        self.ids.clear();
        self.bytes = 0;
    }
}

impl<S: Sql> SqlRepository<S> {
    /// Returns these layouts from memory, else from the database in one round trip. A layout that
    /// does not match its digest is left out, so the documents that need it are refused.
    pub(super) async fn load(&self, layouts: &[u64]) -> Result<LoadedLayouts, StoreError> {
        let breaks = self.catalog.breaks();
        let loaded = self.load_known(layouts).await?;
        match self.catalog.breaks() == breaks {
            true => Ok(loaded),
            // Some were known from a past that is not that of the database.
            false => self.load_known(layouts).await,
        }
    }

    async fn load_known(&self, layouts: &[u64]) -> Result<LoadedLayouts, StoreError> {
        let mut loaded = self.catalog.known(layouts);
        let missing: Vec<u64> = layouts
            .iter()
            .copied()
            .filter(|id| !loaded.contains_key(id))
            .collect();
        if missing.is_empty() {
            return Ok(LoadedLayouts(loaded));
        }
        let list = json_list(&missing);
        let mut batch = [LAYOUTS, LAYOUT_CHUNKS]
            .map(|query| Statement::new(query).bind(list.as_str()))
            .to_vec();
        batch.push(self.catalog.generation_of());
        let mut answers = self.batch(batch).await?;
        let (rows, rest) = (answers.next()?, joined_chunks(answers.next()?)?);
        let current = self.catalog.learn(answers.next()?)?;
        let mut known = self.catalog.read.borrow_mut();
        for row in rows {
            let mut fields = Fields::of(row);
            let (id, digest) = (fields.number()?, fields.text()?);
            let skeleton =
                fields.text()? + rest.get(&format!("s/{digest}")).map_or("", String::as_str);
            let Some(layout) = known
                .layouts
                .read(&skeleton)
                .ok()
                // A damaged layout would change the meaning of every document that uses it.
                .filter(|layout| layout.digest() == digest)
            else {
                continue;
            };
            loaded.insert(id, Arc::clone(&layout));
            known.add_layout(id, layout, skeleton.len(), current);
        }
        Ok(LoadedLayouts(loaded))
    }

    /// Returns the ids of layouts. Writes new layouts in a batch of their own before the commit
    /// that needs them: layouts that no document uses do no harm.
    pub(super) async fn intern_layouts(
        &self,
        layouts: impl Iterator<Item = &Arc<Layout>>,
    ) -> Result<LayoutIds, StoreError> {
        let used: HashMap<*const Layout, &Arc<Layout>> = layouts
            .map(|layout| (Arc::as_ptr(layout), layout))
            .collect();
        let (mut ids, mut new) = (HashMap::new(), BTreeMap::new());
        for (address, layout) in &used {
            match self.catalog.read.borrow().ids.get(layout.digest()) {
                // The address is a cheap key: the layouts of one store are shared.
                Some(id) => drop(ids.insert(*address, *id)),
                None => drop(new.insert(layout.digest(), *layout)),
            }
        }
        if !new.is_empty() {
            let written = self.write_layouts(&new).await?;
            ids.extend(
                used.iter().filter_map(|(address, layout)| {
                    Some((*address, *written.get(layout.digest())?))
                }),
            );
        }
        Ok(LayoutIds(ids))
    }

    /// Writes layouts. Returns their ids by their digests.
    async fn write_layouts(
        &self,
        new: &BTreeMap<&str, &Arc<Layout>>,
    ) -> Result<HashMap<String, u64>, StoreError> {
        let mut ids = HashMap::new();
        let mut batch = Vec::new();
        let mut sizes = HashMap::new();
        for (digest, layout) in new {
            let text = layout.to_text();
            sizes.insert(*digest, text.len());
            let skeleton = ChunkedText::split(text);
            batch.push(
                Statement::new(ADD_LAYOUT)
                    .bind(*digest)
                    .bind(skeleton.first.as_str()),
            );
            batch.extend(skeleton.insert_chunks(&format!("s/{digest}")));
        }
        // Ids are read back, because another writer may have inserted the same layout before.
        batch.push(Statement::new(LAYOUT_IDS).bind(json_list(&new.keys().collect::<Vec<_>>())));
        batch.push(self.catalog.generation_of());
        let mut answers = self.batch(batch).await?;
        let (generation, rows) = (answers.last()?, answers.last()?);
        let current = self.catalog.learn(generation)?;
        let mut known = self.catalog.read.borrow_mut();
        for row in rows {
            let mut fields = Fields::of(row);
            let (id, digest) = (fields.number()?, fields.text()?);
            let size = sizes.get(digest.as_str());
            if let Some((layout, size)) = new.get(digest.as_str()).zip(size) {
                known.add_layout(id, Arc::clone(layout), *size, current);
            }
            ids.insert(digest, id);
        }
        Ok(ids)
    }

    /// Returns the ids of profiles. Writes new ones like [`SqlRepository::intern_layouts`].
    pub(super) async fn intern_profiles(
        &self,
        profiles: &[Profile],
    ) -> Result<Vec<u64>, StoreError> {
        if let Some(ids) = self.catalog.ids_of(profiles) {
            return Ok(ids);
        }
        let is_new = |profile: &&Profile| {
            !self
                .catalog
                .read
                .borrow()
                .profile_ids
                .contains_key(*profile)
        };
        let new = order::distinct(
            profiles
                .iter()
                .filter(is_new)
                .map(|profile| (profile.archetypes_text(), profile.kind.number())),
        );
        let mut batch: Vec<Statement> = new
            .iter()
            .map(|(text, kind)| Statement::new(ADD_PROFILE).bind(*kind).bind(text.as_str()))
            .collect();
        batch.push(Statement::new(PROFILES).bind(json_list(
            &new.iter().map(|(text, _)| text).collect::<Vec<_>>(),
        )));
        batch.push(self.catalog.generation_of());
        let mut answers = self.batch(batch).await?;
        let (generation, rows) = (answers.last()?, answers.last()?);
        let mut written = self.catalog.read.borrow().profile_ids.clone();
        let current = self.catalog.learn(generation)?;
        let mut known = self.catalog.read.borrow_mut();
        for row in rows {
            let (id, profile) = known.add_profile(row)?;
            if current {
                known.profile_ids.insert(profile.clone(), id);
            }
            written.insert(profile, id);
        }
        profiles
            .iter()
            .map(|profile| written.get(profile).copied())
            .collect::<Option<_>>()
            .ok_or_else(unexpected)
    }
}
