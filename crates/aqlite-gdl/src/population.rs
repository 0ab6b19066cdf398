//! Execution of one guide over many EHRs: one query per binding for all of them, then one run per
//! EHR.
//!
//! ```text
//! Population::new ─► queries() … host runs each population_aql … add(query, row)
//! ─► run(ehr_id, …) for each EHR
//! ```

use super::action::copied_slots;
use super::bind::{BindingQuery, Instance, QueryColumn, in_order};
use super::budget::{Exceeded, json_size, size};
use super::compile::CompiledGuide;
use super::run::{Options, Run, RunInput};
use super::stored::{ValueReader, original_of};
use super::time::Clock;
use super::value::Value;
use aqlite_aql::{RowValue, ValueId};
use aqlite_rm::order;
use hashbrown::HashMap;

/// Bytes that are counted for a value besides itself and its texts: the overhead of the allocator.
/// Lists of instances grow by doubling, so their elements count twice.
const ALLOCATED: usize = 48;

/// The data of many EHRs that a guide reads.
#[derive(Debug)]
pub struct Population<'g> {
    guide: &'g CompiledGuide,
    queries: Vec<BindingQuery>,
    clock: Clock<'g>,
    reader: ValueReader,
    /// Whether the source of each value is kept for the trace.
    traced: bool,
    /// The index of each EHR that has data, by its id.
    numbers: HashMap<String, usize>,
    /// The columns that the guide copies to results, by query.
    copied: Vec<Vec<usize>>,
    /// The elements that the last rows have read, by query.
    elements: Vec<Elements>,
    /// The instances of each query by index of the EHR, in commit order.
    found: Vec<Vec<Vec<Instance>>>,
    /// The EHR of the last row with its index. Rows of one EHR are usually adjacent, so this saves
    /// a lookup.
    last: (String, usize),
    /// The approximate bytes of the instances.
    bytes: usize,
}

/// The elements of one composition. Its rows are adjacent.
#[derive(Debug, Default)]
struct Elements {
    /// The uid of the composition, and a value of it.
    composition: Option<(String, ValueId)>,
    numbers: HashMap<ValueId, u32>,
    next: u32,
}

impl Elements {
    /// Returns the numbers of the elements of a row. No two compositions share a number.
    fn numbers_of(&mut self, query: &BindingQuery, row: &[RowValue<'_>]) -> Vec<u32> {
        let cells = query.columns.iter().zip(row);
        let source = cells.clone().find(|(c, _)| **c == QueryColumn::Source);
        let source = source.map(|(_, uid)| (uid.text().unwrap_or_default(), uid.id()));
        // A batch numbers its documents anew, so the uid is compared too.
        let is_same = match (&self.composition, source) {
            (Some((uid, id)), Some(new)) => uid == new.0 && id.shares_document(new.1),
            _ => false,
        };
        if !is_same {
            self.composition = source.map(|(uid, id)| (uid.to_owned(), id));
            self.numbers.clear();
        }
        let values = cells.filter(|(column, _)| matches!(column, QueryColumn::Value { .. }));
        let number = |(_, value): (_, &RowValue<'_>)| {
            *self.numbers.entry(value.id()).or_insert_with(|| {
                self.next = self.next.wrapping_add(1);
                self.next
            })
        };
        values.map(number).collect()
    }
}

impl<'g> Population<'g> {
    /// Creates a population without data. Data dated after the time of evaluation will be left out.
    /// With `traced`, the uids of the compositions are kept for the trace.
    pub fn new(
        guide: &'g CompiledGuide,
        clock: impl Into<Clock<'g>>,
        options: Options,
    ) -> Population<'g> {
        let clock = clock.into();
        let queries = guide.queries_for(clock, &options);
        let found = vec![Vec::new(); queries.len()];
        let copied = copied_columns(guide, &queries);
        let mut elements = Vec::new();
        elements.resize_with(queries.len(), Elements::default);
        Population {
            guide,
            queries,
            clock,
            reader: ValueReader::default(),
            traced: options.trace,
            numbers: HashMap::new(),
            copied,
            elements,
            found,
            last: (String::new(), 0),
            bytes: 0,
        }
    }

    /// Returns the queries of the bindings: run each [`BindingQuery::population_aql`] and pass its
    /// rows to [`Population::add`].
    pub fn queries(&self) -> &[BindingQuery] {
        &self.queries
    }

    /// Adds a row of one of [`Population::queries`]. Rows must come in commit order. The last value
    /// of each row is the id of the EHR.
    // The worker compiles its callers for size, and would compile an inlined copy for size too.
    #[inline(never)]
    pub fn add(&mut self, query: usize, row: &[RowValue<'_>]) {
        let Some((ehr, values)) = row.split_last() else {
            return;
        };
        // A row without an id of its EHR cannot be assigned.
        let Some(ehr) = ehr.text().map(|id| self.number_of(id)) else {
            return;
        };
        let (Some(copied), Some(elements), Some(query), Some(found)) = (
            self.copied.get(query),
            self.elements.get_mut(query),
            self.queries.get(query),
            self.found.get_mut(query),
        ) else {
            return;
        };
        // The list grows with the greatest index only. EHRs without rows of this query have no
        // entry.
        if found.len() <= ehr {
            found.resize_with(ehr + 1, Vec::new);
        }
        if let Some(own) = found.get_mut(ehr) {
            let mut instance = query.found(values, &mut self.reader, self.traced);
            instance.elements = elements.numbers_of(query, values);
            for &column in copied {
                let cell = values.get(column).zip(instance.values.get(column));
                let original = cell.and_then(|(found, value)| original_of(*found, value));
                if let Some(original) = original {
                    self.bytes += ALLOCATED + json_size(&original);
                    instance.originals.push((column, original));
                }
            }
            // Twice: lists grow by doubling.
            self.bytes += 2 * size_of::<Instance>()
                + instance
                    .values
                    .iter()
                    .map(|v| size_of::<Value>() + size_of::<u32>() + ALLOCATED + size(v))
                    .sum::<usize>();
            own.push(instance);
        }
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.found.iter_mut().for_each(Vec::clear);
        self.last = (String::new(), 0);
        self.bytes = 0;
    }

    /// Returns the approximate bytes of the instances that were added. A text that instances share
    /// counts each time.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn number_of(&mut self, ehr_id: &str) -> usize {
        if self.last.0 != ehr_id || self.numbers.is_empty() {
            let next = self.numbers.len();
            let number = *self.numbers.entry_ref(ehr_id).or_insert(next);
            // The text is overwritten in place: rows of a segment change their EHR all the time.
            self.last.0.clear();
            self.last.0.push_str(ehr_id);
            self.last.1 = number;
        }
        self.last.1
    }

    /// Removes and returns the instances of one EHR for each binding of the guide.
    #[inline(never)]
    pub fn instances(&mut self, ehr_id: &str) -> Vec<Vec<Instance>> {
        let mut all = vec![Vec::new(); self.guide.bindings.len()];
        let Some(number) = self.numbers.get(ehr_id) else {
            return all;
        };
        for (query, found) in self.queries.iter().zip(&mut self.found) {
            if let (Some(place), Some(own)) = (all.get_mut(query.binding), found.get_mut(*number)) {
                // Taken, not copied: each EHR runs once.
                *place = std::mem::take(own);
                in_order(place, self.clock.now);
            }
        }
        all
    }

    /// Iterates over every value of every instance.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.found
            .iter()
            .flatten()
            .flatten()
            .flat_map(|instance| &instance.values)
    }

    /// Returns the EHRs that have data, in the order of their ids.
    pub fn ehr_ids(&self) -> Vec<String> {
        order::distinct(self.numbers.keys().cloned())
    }

    /// Runs the guide on every EHR that has data and passes each result to `visit`. `like` supplies
    /// language, options and terminology.
    ///
    /// # Errors
    ///
    /// The first run that exceeded a limit. The EHRs behind it are not visited.
    pub fn run(
        mut self,
        like: &RunInput<'_>,
        mut visit: impl FnMut(&str, Run),
    ) -> Result<(), Exceeded> {
        // The instances of an EHR are freed after its run.
        for ehr_id in self.ehr_ids() {
            let instances = self.instances(&ehr_id);
            visit(
                &ehr_id,
                self.guide.run(&RunInput {
                    instances: &instances,
                    clock: self.clock,
                    ..*like
                })?,
            );
        }
        Ok(())
    }
}

/// Returns the columns that a guide copies to results, by query.
pub(crate) fn copied_columns(guide: &CompiledGuide, queries: &[BindingQuery]) -> Vec<Vec<usize>> {
    let slots = copied_slots(guide);
    let copied = queries.iter().map(|query| {
        let plan = guide.bindings.get(query.binding);
        let columns = plan.map(|p| p.columns.as_slice()).unwrap_or_default();
        let columns = columns.iter().enumerate();
        let copied = columns.filter(|(_, c)| c.slot.is_some_and(|s| slots.contains(&s)));
        copied.map(|(index, _)| index).collect()
    });
    copied.collect()
}

impl BindingQuery {
    /// Returns the values of an instance for the answer, each with its variable, or with its path
    /// if only a predicate reads it.
    pub fn values_of(&self, instance: Option<&Instance>) -> Vec<(String, Value)> {
        let names = self
            .columns
            .iter()
            .filter_map(super::bind::QueryColumn::name);
        names
            .map(str::to_owned)
            .zip(instance.into_iter().flat_map(|i| i.values.iter().cloned()))
            .collect()
    }
}
