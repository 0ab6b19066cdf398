//! Execution of one guide over many EHRs: one query per binding for all of them, then one run per
//! EHR.
//!
//! ```text
//! Population::new ─► queries() … host runs each population_aql … add(query, number, row)
//! ─► run(ehr_id, …) for each EHR
//! ```
//!
//! Most guides read only the last value of each variable. Of such a binding, an instance with all
//! values replaces all earlier ones, which cannot have the last value of any variable. A row that is
//! earlier than such an instance is passed over before its values are converted, so it is best to
//! add the latest rows first ([`Population::reads_latest`]).

use super::action::copied_slots;
use super::bind::{BindingQuery, Instance, QueryColumn, in_order};
use super::budget::{Exceeded, json_size, size};
use super::compile::CompiledGuide;
use super::run::{Options, Run, RunInput};
use super::stored::{ValueReader, original_of};
use super::time::{Clock, Moment};
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
    /// The data of each query.
    data: Vec<QueryData>,
    /// The EHR of the last row with its index. Rows of one EHR are usually adjacent, so this saves
    /// a lookup.
    last: (String, usize),
    /// The approximate bytes of the instances.
    bytes: usize,
    /// The first invariant that does not hold. Data may be missing, so no guide runs.
    broken: Option<&'static str>,
}

/// The data of one query.
#[derive(Debug)]
struct QueryData {
    /// The columns that the guide copies to results.
    copied: Vec<usize>,
    /// Whether instances get the numbers of their elements.
    numbers_elements: bool,
    /// The elements that the last rows have read.
    elements: Elements,
    /// Whether an instance with all values replaces earlier ones.
    reads_latest: bool,
    /// The instances by index of the EHR. EHRs behind the last one with rows of this query have no
    /// entry.
    found: Vec<Found>,
}

/// The instances of one EHR that a query found.
#[derive(Debug, Default)]
struct Found {
    /// The instances, each with the number of its row.
    instances: Vec<(u64, Instance)>,
    /// The position of the latest instance that replaced earlier ones.
    complete: Option<Position>,
}

/// The order of an instance: its time in milliseconds, and the number of its row among those of one
/// time.
type Position = (Option<i64>, u64);

impl Found {
    /// Returns whether a later instance has replaced those of a position.
    fn has_replaced(&self, position: Position) -> bool {
        self.complete.is_some_and(|complete| position < complete)
    }

    /// Adds an instance. If it `replaces` earlier ones, these are removed. Returns the bytes of the
    /// removed instances.
    fn add(&mut self, number: u64, instance: Instance, replaces: bool) -> usize {
        let position = position_of(number, &instance);
        if self.has_replaced(position) {
            return bytes_of(&instance);
        }
        let mut removed = 0;
        if replaces {
            self.complete = Some(position);
            self.instances.retain(|(number, earlier)| {
                let is_kept = position_of(*number, earlier) > position;
                removed += if is_kept { 0 } else { bytes_of(earlier) };
                is_kept
            });
        }
        self.instances.push((number, instance));
        removed
    }

    /// Returns the instances in commit order.
    fn into_instances(mut self) -> Vec<Instance> {
        order::sort_by_key(&mut self.instances, |(number, _)| *number);
        let instances = self.instances.into_iter();
        instances.map(|(_, instance)| instance).collect()
    }
}

fn position_of(number: u64, instance: &Instance) -> Position {
    (instance.time.map(|time| time.millis), number)
}

/// Returns the approximate bytes of an instance.
fn bytes_of(instance: &Instance) -> usize {
    let of_value = |value: &Value| size_of::<Value>() + size_of::<u32>() + ALLOCATED + size(value);
    let originals = instance.originals.iter();
    // Twice: lists grow by doubling.
    2 * (size_of::<Instance>() + size_of::<u64>())
        + instance.values.iter().map(of_value).sum::<usize>()
        + originals
            .map(|(_, original)| ALLOCATED + json_size(original))
            .sum::<usize>()
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
        let is_same = match (&self.composition, &source) {
            (Some((uid, id)), Some(new)) => *uid == new.0 && id.shares_document(new.1),
            _ => false,
        };
        if !is_same {
            self.composition = source.map(|(uid, id)| (uid.into_owned(), id));
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
        let reports_all = options.trace || options.include_input;
        let copied = copied_columns(guide, &queries).into_iter();
        let data = queries.iter().zip(copied).map(|(query, copied)| QueryData {
            copied,
            numbers_elements: guide.reads_lists(query.binding),
            elements: Elements::default(),
            reads_latest: !reports_all && guide.reads_latest(query.binding),
            found: Vec::new(),
        });
        Population {
            guide,
            data: data.collect(),
            queries,
            clock,
            reader: ValueReader::default(),
            traced: options.trace,
            numbers: HashMap::new(),
            last: (String::new(), 0),
            bytes: 0,
            broken: None,
        }
    }

    /// Returns the queries of the bindings: run each [`BindingQuery::population_aql`] and pass its
    /// rows to [`Population::add`].
    pub fn queries(&self) -> &[BindingQuery] {
        &self.queries
    }

    /// Returns whether only the latest rows of a query are needed. They are best added first.
    pub fn reads_latest(&self, query: usize) -> bool {
        self.data.get(query).is_some_and(|data| data.reads_latest)
    }

    /// Adds a row of one of [`Population::queries`], with its `number` in commit order. The last
    /// value of the row is the id of the EHR.
    // The worker compiles its callers for size, and would compile an inlined copy for size too.
    #[inline(never)]
    pub fn add(&mut self, query: usize, number: u64, row: &[RowValue<'_>]) {
        let Some((ehr, values)) = row.split_last() else {
            return self.report_broken("a row has no values");
        };
        // A row without an id of its EHR cannot be assigned.
        let Some(ehr) = ehr.text().map(|id| self.number_of(&id)) else {
            return;
        };
        let data = self.queries.get(query).zip(self.data.get_mut(query));
        let Some((query, data)) = data else {
            return self.report_broken("a row has no query");
        };
        // The list grows with the greatest index only.
        if data.found.len() <= ehr {
            data.found.resize_with(ehr + 1, Found::default);
        }
        let Some(found) = data.found.get_mut(ehr) else {
            return self.report_broken("an EHR has no list of instances");
        };
        if found.complete.is_some()
            && let Some(millis) = query.millis_of(values)
            && found.has_replaced((Some(millis), number))
        {
            return;
        }
        let mut instance = query.instance_of_row(values, &mut self.reader, self.traced);
        if data.numbers_elements {
            instance.elements = data.elements.numbers_of(query, values);
        }
        for &column in &data.copied {
            let cell = values.get(column).zip(instance.values.get(column));
            let original = cell.and_then(|(found, value)| original_of(*found, value));
            instance
                .originals
                .extend(original.map(|original| (column, original)));
        }
        let replaces = data.reads_latest && is_complete(&instance, self.clock.now);
        self.bytes += bytes_of(&instance);
        self.bytes -= found.add(number, instance, replaces);
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.data.iter_mut().for_each(|data| data.found.clear());
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
    ///
    /// # Errors
    ///
    /// An invariant of the engine does not hold, so that data of the EHR may be missing.
    #[inline(never)]
    pub fn instances(&mut self, ehr_id: &str) -> Result<Vec<Vec<Instance>>, Exceeded> {
        let broken = |what| Exceeded::broken(&self.guide.guide.id, "data", what);
        if let Some(what) = self.broken {
            return Err(broken(what));
        }
        let mut all = vec![Vec::new(); self.guide.bindings.len()];
        let number = self.numbers.get(ehr_id).copied();
        for (query, data) in self.queries.iter().zip(&mut self.data) {
            let place = all.get_mut(query.binding);
            let place = place.ok_or_else(|| broken("a query has no binding"))?;
            // Taken, not copied: each EHR runs once. An EHR without rows of the query has no list.
            let own = number.and_then(|number| data.found.get_mut(number));
            *place = own.map(std::mem::take).unwrap_or_default().into_instances();
            in_order(place, self.clock.now);
        }
        Ok(all)
    }

    fn report_broken(&mut self, what: &'static str) {
        self.broken.get_or_insert(what);
    }

    /// Iterates over every value of every instance.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        let instances = self
            .data
            .iter()
            .flat_map(|data| data.found.iter().flat_map(|found| &found.instances));
        instances.flat_map(|(_, instance)| &instance.values)
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
    /// The first run that exceeded a limit, or met a broken invariant. The EHRs behind it are not
    /// visited.
    pub fn run(
        mut self,
        like: &RunInput<'_>,
        mut visit: impl FnMut(&str, Run),
    ) -> Result<(), Exceeded> {
        // The instances of an EHR are freed after its run.
        for ehr_id in self.ehr_ids() {
            let instances = self.instances(&ehr_id)?;
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

/// Returns whether a run at `now` reads an instance, and no earlier one of its binding.
fn is_complete(instance: &Instance, now: Moment) -> bool {
    instance.time.is_none_or(|time| time.millis <= now.millis)
        && instance.values.iter().all(|value| !value.is_null())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Limit;

    #[test]
    fn data_that_may_be_incomplete_have_no_instances() {
        let text = r#"{"id":"x.v1","definition":{"data_bindings":{"gt0001":{"model_id":"openEHR-EHR-EVALUATION.a.v1",
            "type":"INPUT","elements":{"gt0002":{"path":"/data[at0001]/items[at0002]"}}}}}}"#;
        let guide = crate::parse(text).unwrap().compile();
        let now = Moment::from_millis(0, 0);
        let population = || Population::new(&guide, now, Options::default());
        assert_eq!(population().instances("one"), Ok(vec![Vec::new()]));
        let broken = |mut population: Population<'_>| {
            let ended = population.instances("one").unwrap_err();
            assert!(matches!(ended.limit, Limit::Broken(_)), "{ended}");
            ended.to_string()
        };
        let mut without_cells = population();
        without_cells.add(0, 0, &[]);
        // A restart of the scan does not mend it.
        without_cells.clear();
        assert!(broken(without_cells).contains("a row has no values"));
        let mut without_binding = population();
        without_binding.queries[0].binding = 1;
        assert!(broken(without_binding).contains("a query has no binding"));
    }
}
