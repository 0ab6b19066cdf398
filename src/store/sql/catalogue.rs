//! What is known of a database's shapes and shape sets: filled only from committed rows, which never change.

use super::SqlRepository;
use super::large::{Large, rests};
use super::value::{Fields, Row, Sql, Statement, json_list, kind_number, kind_of, unexpected};
use crate::document::{ObjectKind, Packed, Shape, Shapes};
use crate::store::prune;
use crate::store::repository::{StoreError, Version};
use crate::store::scan::Scan;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Bytes of skeletons that are kept; above, all are forgotten and read again when needed.
const KEPT: usize = 24 << 20;

const NEWS: &str = "SELECT id, kind, shapes, archetypes FROM shape_set WHERE id > ?1 ORDER BY id";
const SETS: &str = "SELECT id, kind, shapes, archetypes FROM shape_set WHERE id IN (SELECT value FROM json_each(?1))";
const SETS_BY_SHAPES: &str = "SELECT id, kind, shapes, archetypes FROM shape_set WHERE shapes IN (SELECT value FROM json_each(?1))";
const SHAPES: &str = "SELECT id, digest, skeleton FROM shape WHERE id IN (SELECT j.value FROM shape_set t, json_each(t.shapes) j
    WHERE t.id IN (SELECT value FROM json_each(?1)))";
const SHAPE_RESTS: &str = "SELECT owner, body FROM chunk WHERE owner IN (SELECT 's/' || s.digest FROM shape s
    WHERE s.id IN (SELECT j.value FROM shape_set t, json_each(t.shapes) j WHERE t.id IN (SELECT value FROM json_each(?1)))) ORDER BY owner, part";
const SHAPE_IDS: &str = "SELECT id, digest FROM shape WHERE digest IN (SELECT value FROM json_each(?1))";
const ADD_SHAPE: &str = "INSERT INTO shape (digest, skeleton) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
const ADD_SET: &str = "INSERT INTO shape_set (kind, shapes, archetypes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";

/// The shapes and shape sets of one database that have been read so far.
#[derive(Default)]
pub struct Catalogue {
    read: RefCell<Known>,
}

#[derive(Default)]
struct Known {
    shapes: Shapes,
    by_id: HashMap<u64, Arc<Shape>>,
    ids: HashMap<String, u64>,
    bytes: usize,
    sets: BTreeMap<u64, ShapeSet>,
    set_ids: HashMap<(ObjectKind, Vec<u64>), u64>,
    /// Every set up to this id has been read.
    complete_to: u64,
}

struct ShapeSet {
    kind: ObjectKind,
    shapes: Vec<u64>,
    archetypes: Option<Vec<String>>,
}

/// The sets whose documents a scan asks for.
pub(super) struct Matching {
    /// Their ids.
    pub(super) sets: Vec<u64>,
    /// Sets above this id are not judged yet.
    pub(super) judged_to: u64,
}

impl Catalogue {
    /// Asks for the sets that were made since the last time.
    pub(super) fn ask_news(&self) -> Statement {
        Statement::new(NEWS).bind(self.read.borrow().complete_to)
    }

    /// Takes in the answer to [`Catalogue::ask_news`].
    pub(super) fn take_news(&self, rows: Vec<Row>) -> Result<(), StoreError> {
        let mut known = self.read.borrow_mut();
        for row in rows {
            let id = known.add_set(row)?;
            known.complete_to = known.complete_to.max(id);
        }
        Ok(())
    }

    /// The sets that can give rows of a scan, of those that are known.
    pub(super) fn matching(&self, scan: &Scan) -> Matching {
        let known = self.read.borrow();
        let fits = |set: &ShapeSet| prune::may_match(scan, set.kind, set.archetypes.as_deref());
        let judged = known.sets.range(..=known.complete_to);
        Matching { sets: judged.filter(|(_, set)| fits(set)).map(|(id, _)| *id).collect(), judged_to: known.complete_to }
    }

    /// Reads a stored document; its set must have been loaded.
    pub(super) fn unpack(&self, text: &str) -> Result<Packed, StoreError> {
        let known = self.read.borrow();
        Packed::from_text(text, &|id| known.by_id.get(&id).cloned()).map_err(StoreError::Failed)
    }

    /// The text form of a document whose shapes have ids.
    pub(super) fn pack(&self, packed: &Packed) -> Result<String, StoreError> {
        let known = self.read.borrow();
        let without_id = std::cell::Cell::new(false);
        let text = packed.to_text(&|shape| {
            let id = known.ids.get(shape.digest()).copied();
            without_id.set(without_id.get() || id.is_none());
            id.unwrap_or_default()
        });
        if without_id.get() { Err(unexpected()) } else { Ok(text) }
    }

    /// The sets of which something is missing here.
    fn missing(&self, sets: &BTreeSet<u64>) -> Vec<u64> {
        let mut known = self.read.borrow_mut();
        if known.bytes > KEPT {
            *known = Known {
                sets: std::mem::take(&mut known.sets),
                set_ids: std::mem::take(&mut known.set_ids),
                complete_to: known.complete_to,
                ..Known::default()
            };
        }
        let whole = |id: &u64| known.sets.get(id).is_some_and(|set| set.shapes.iter().all(|shape| known.by_id.contains_key(shape)));
        sets.iter().filter(|id| !whole(id)).copied().collect()
    }

    fn id_of(&self, shape: &Shape) -> Option<u64> {
        self.read.borrow().ids.get(shape.digest()).copied()
    }

    /// The set of a document of these shapes, all of which have ids.
    fn key_of(&self, kind: ObjectKind, shapes: &[Arc<Shape>]) -> (ObjectKind, Vec<u64>) {
        let ids: BTreeSet<u64> = shapes.iter().filter_map(|shape| self.id_of(shape)).collect();
        (kind, ids.into_iter().collect())
    }
}

impl Known {
    fn add_shape(&mut self, id: u64, shape: Arc<Shape>, bytes: usize) {
        self.ids.insert(shape.digest().to_owned(), id);
        if self.by_id.insert(id, shape).is_none() {
            self.bytes += bytes;
        }
    }

    fn add_set(&mut self, row: Row) -> Result<u64, StoreError> {
        let mut fields = Fields::of(row);
        let (id, kind) = (fields.number()?, kind_of(fields.number()?)?);
        let shapes: Vec<u64> = serde_json::from_str(&fields.text()?).map_err(|_| unexpected())?;
        let archetypes = fields.optional_text()?.map(|text| serde_json::from_str(&text).map_err(|_| unexpected())).transpose()?;
        self.set_ids.insert((kind, shapes.clone()), id);
        self.sets.insert(id, ShapeSet { kind, shapes, archetypes });
        Ok(id)
    }
}

impl<S: Sql> SqlRepository<S> {
    /// Sees to it that the shapes of these sets are known: one round trip, or none.
    pub(super) async fn load(&self, sets: &BTreeSet<u64>) -> Result<(), StoreError> {
        let missing = self.catalogue.missing(sets);
        if missing.is_empty() {
            return Ok(());
        }
        let list = json_list(&missing);
        let batch = [SETS, SHAPES, SHAPE_RESTS].map(|query| Statement::new(query).bind(list.as_str()));
        let mut answers = self.batch(batch.to_vec()).await?.into_iter();
        let mut next = || answers.next().unwrap_or_default();
        let (sets, shapes, rest) = (next(), next(), rests(next())?);
        let mut known = self.catalogue.read.borrow_mut();
        for row in sets {
            known.add_set(row)?;
        }
        for row in shapes {
            let mut fields = Fields::of(row);
            let (id, digest) = (fields.number()?, fields.text()?);
            let skeleton = fields.text()? + rest.get(&format!("s/{digest}")).map_or("", String::as_str);
            let shape = known.shapes.read(&skeleton).map_err(StoreError::Failed)?;
            if shape.digest() != digest {
                return Err(StoreError::Failed(format!("shape {id} does not match its digest")));
            }
            known.add_shape(id, shape, skeleton.len());
        }
        Ok(())
    }

    /// Gives the shapes and sets of new versions their ids, and the set of each version; writes only what is new.
    ///
    /// This comes before the commit and outside of its transaction: shapes and sets that no version uses do no harm.
    pub(super) async fn intern(&self, versions: &[Version]) -> Result<Vec<u64>, StoreError> {
        let shapes: Vec<Vec<Arc<Shape>>> = versions.iter().map(|v| v.packed.shapes()).collect();
        self.intern_shapes(shapes.iter().flatten()).await?;
        let of_version = || versions.iter().zip(&shapes).map(|(v, shapes)| (self.catalogue.key_of(v.kind, shapes), shapes));
        self.intern_sets(of_version()).await?;
        let known = self.catalogue.read.borrow();
        of_version().map(|(key, _)| known.set_ids.get(&key).copied().ok_or_else(unexpected)).collect()
    }

    async fn intern_shapes(&self, shapes: impl Iterator<Item = &Arc<Shape>>) -> Result<(), StoreError> {
        let new: BTreeMap<&str, &Arc<Shape>> = shapes.filter(|s| self.catalogue.id_of(s).is_none()).map(|s| (s.digest(), s)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut batch = Vec::new();
        let mut sizes = HashMap::new();
        for (digest, shape) in &new {
            let text = shape.to_text();
            sizes.insert(*digest, text.len());
            let skeleton = Large::of(text);
            batch.push(Statement::new(ADD_SHAPE).bind(*digest).bind(skeleton.first.as_str()));
            batch.extend(skeleton.write_rest(&format!("s/{digest}")));
        }
        batch.push(Statement::new(SHAPE_IDS).bind(json_list(&new.keys().collect::<Vec<_>>())));
        let rows = self.batch(batch).await?.pop().unwrap_or_default();
        let mut known = self.catalogue.read.borrow_mut();
        for row in rows {
            let mut fields = Fields::of(row);
            let (id, digest) = (fields.number()?, fields.text()?);
            if let Some(shape) = new.get(digest.as_str()) {
                known.add_shape(id, Arc::clone(shape), sizes.get(digest.as_str()).copied().unwrap_or_default());
            }
        }
        Ok(())
    }

    async fn intern_sets(&self, sets: impl Iterator<Item = ((ObjectKind, Vec<u64>), &Vec<Arc<Shape>>)>) -> Result<(), StoreError> {
        let (mut batch, mut lists, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for (key, shapes) in sets {
            if self.catalogue.read.borrow().set_ids.contains_key(&key) || !seen.insert(key.clone()) {
                continue;
            }
            let list = json_list(&key.1);
            let archetypes = prune::archetypes_of(shapes).map(|ids| json_list(&ids));
            batch.push(Statement::new(ADD_SET).bind(kind_number(key.0)).bind(list.as_str()).bind(archetypes));
            lists.push(list);
        }
        if batch.is_empty() {
            return Ok(());
        }
        batch.push(Statement::new(SETS_BY_SHAPES).bind(json_list(&lists)));
        let rows = self.batch(batch).await?.pop().unwrap_or_default();
        let mut known = self.catalogue.read.borrow_mut();
        rows.into_iter().try_for_each(|row| known.add_set(row).map(drop))
    }
}
