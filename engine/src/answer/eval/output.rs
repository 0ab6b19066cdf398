//! After WHERE: groups and aggregates, order, distinct, window.

use super::block::{Block, rank_of};
use super::close::Closing;
use super::condition::Judge;
use super::distinct::Distinct;
use super::found::Found;
use super::node::{Node, View};
use super::strategy::ExecutionPath;
use super::tally::{Tally, order_at};
use super::value::Value;
use super::work::ROW;
use super::{Budget, QueryError};
use crate::answer::plan::Plan;
use crate::answer::query::{ColumnValue, Expr, Literal, OrderBy, OrderKey, Query, Window};
use crate::answer::result::{Cell, Held, ResultColumn, ResultSet, Sheet};
use crate::document::{Dictionary, Fragment, ItemKind, Leaf, Number};
use crate::order;
use crate::rm::Token;
use crate::rm::json::Scanner;
use crate::rm::number;
use crate::rm::time::{Axis, Temporal, TemporalKind};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

/// A row on its way out.
pub(super) struct OutRow {
    /// Which row of the sheet it is; [`UNMADE`] while its cells still point into the batch.
    cells: u32,
    /// Which of the kept nodes the cells are made of: counted in rows.
    nodes: u32,
    /// Which of the kept keys it sorts by: counted in rows.
    keys: u32,
    /// The rank and beginning of the first of them, in its direction: most rows are told apart by it.
    lead: u128,
    order: Order,
}

const UNMADE: u32 = u32::MAX;

/// So many rows may be held before duplicates among them are removed.
const DUPLICATES: usize = 4096;

/// The default order of a row: two keys, where rows do not come in order, then its number in order of arrival.
pub(super) type Order = (u64, u64, u64);

/// The sort key of a value: numbers, durations by their length, texts with dates and times among them, booleans, objects, and NULL last.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SortKey {
    Number(f64),
    Temporal(Temporal),
    Text(String),
    Boolean(bool),
    /// An object that has no value to sort by: the default order decides among them.
    Object,
    Null,
}

/// A group of a query with aggregates.
pub(super) struct Group {
    cells: Vec<Cell<String>>,
    keys: Vec<SortKey>,
    order: Order,
    sums: Vec<Tally>,
}

/// Collects rows and gives the result set.
pub(super) struct Output {
    sheet: Sheet,
    /// The constant that each column showed last.
    shown: Vec<Shown>,
    /// The rows of the sheet in their order, where they come in order and are sorted by nothing else.
    ready: Vec<u32>,
    /// What tells rows apart, for DISTINCT.
    distinct: Distinct,
    /// The first rows of `ready` are all different, so many.
    different: usize,
    /// True while rows may be taken back: what was seen cannot be forgotten.
    keeps_duplicates: bool,
    /// Bytes of the texts of keys.
    key_bytes: usize,
    rows: Vec<OutRow>,
    /// The rows stand in their order.
    sorted: bool,
    /// The sort keys of rows, one behind the other.
    keys: Vec<SortKey>,
    /// What rows without cells are made of, one behind the other.
    nodes: Vec<Node>,
    groups: Vec<Group>,
    by_key: HashMap<String, usize>,
    grouped: bool,
    /// Rows keep their nodes for who wants no cells.
    held: bool,
    /// Bytes of groups and of what their aggregates have seen, about.
    grouped_bytes: usize,
    taken: u64,
    /// The progress of ending the run.
    pub closing: Closing,
}

impl Output {
    pub fn new(query: &Query) -> Output {
        Output {
            sheet: Sheet::new(query.select.len()),
            shown: vec![None; query.select.len()],
            ready: Vec::new(),
            distinct: Distinct::default(),
            different: 0,
            keeps_duplicates: false,
            key_bytes: 0,
            rows: Vec::new(),
            sorted: true,
            keys: Vec::new(),
            nodes: Vec::new(),
            groups: Vec::new(),
            by_key: HashMap::new(),
            grouped: query.select.iter().any(|c| matches!(c.value, ColumnValue::Aggregate(_))),
            held: false,
            grouped_bytes: 0,
            taken: 0,
            closing: Closing::default(),
        }
    }

    /// How many rows or groups are held.
    pub fn len(&self) -> usize {
        self.ready.len() + self.rows.len() + self.groups.len()
    }

    /// Makes room for so many rows more, as far as they are held.
    pub fn reserve(&mut self, plan: &Plan, rows: usize) {
        let wanted = self.wanted(&plan.query);
        // The first rows of an order come a few at a time: there is room for them from the first on.
        let at_once = wanted.filter(|_| self.rows.is_empty()).map_or(0, |wanted| wanted.min(64) + 4);
        let rows = wanted.map_or(rows, |wanted| rows.min(most_held(wanted)).max(at_once));
        if !self.grouped && !self.is_plain(plan) {
            self.rows.reserve(rows);
            self.keys.reserve(rows * plan.query.order.len());
            self.nodes.reserve(wanted.map_or(0, |_| rows * plan.width));
        }
    }

    /// True when more rows cannot change the answer: they come in final order and the window is full.
    pub fn is_full(&mut self, plan: &Plan) -> bool {
        let is_full = self.missing(plan) == Some(0);
        if is_full && plan.query.distinct && self.different < self.ready.len() {
            self.remove_duplicates(plan);
            return self.missing(plan) == Some(0);
        }
        is_full
    }

    /// While rows may be taken back, no duplicates are removed.
    pub fn may_go_back(&mut self, may: bool) {
        self.keeps_duplicates = may;
    }

    /// Whether what is held may be.
    ///
    /// # Errors
    /// When there are too many rows, or they are too large.
    pub fn within(&mut self, plan: &Plan, budget: &Budget) -> Result<(), QueryError> {
        if plan.query.distinct && !self.keeps_duplicates && self.ready.len() - self.different >= DUPLICATES {
            self.remove_duplicates(plan);
        }
        budget.check(self.len(), self.bytes())
    }

    /// Removes the rows of a plain query with DISTINCT that came before, and the room that they take.
    pub fn remove_duplicates(&mut self, plan: &Plan) {
        if !plan.query.distinct || !self.is_plain(plan) || self.different == self.ready.len() {
            return;
        }
        let new = self.ready.split_off(self.different);
        let kept: Vec<u32> = new.into_iter().filter(|row| self.distinct.is_new(&self.sheet, *row)).collect();
        let start = self.different as u32;
        self.sheet.keep_behind(self.different, &kept);
        self.ready.extend(start..start + kept.len() as u32);
        self.different = self.ready.len();
    }

    /// How many rows more can change the answer, where only the first ones in default order are wanted.
    pub fn missing(&self, plan: &Plan) -> Option<u64> {
        match plan.query.window {
            Some(Window::First { limit, offset }) if self.is_plain(plan) => Some(limit.saturating_add(offset).saturating_sub(self.len() as u64)),
            _ => None,
        }
    }

    /// Where the rows of a plain query end, to come back to.
    pub fn end(&self) -> (usize, usize) {
        (self.sheet.len(), self.ready.len())
    }

    /// Forgets the rows of a plain query that came after an end.
    pub fn back_to(&mut self, (cells, ready): (usize, usize)) {
        self.ready.truncate(ready);
        self.shown.fill(None);
        self.distinct.forget_texts();
        self.sheet.keep(0..cells as u32);
    }

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        let rows = self.ready.len() * size_of::<u32>() + self.rows.len() * size_of::<OutRow>();
        let made_of = self.keys.len() * size_of::<SortKey>() + self.nodes.len() * size_of::<Node>();
        self.sheet.bytes() + rows + made_of + self.key_bytes + self.grouped_bytes + self.distinct.bytes()
    }

    /// Bytes that lists have room for, about: what the run takes of the memory of its host. A growing list has room for up to twice as
    /// much as it holds.
    pub fn footprint(&self) -> usize {
        let rows = self.ready.capacity() * size_of::<u32>() + self.rows.capacity() * size_of::<OutRow>();
        let made_of = self.keys.capacity() * size_of::<SortKey>() + self.nodes.capacity() * size_of::<Node>();
        self.sheet.footprint() + rows + made_of + self.key_bytes + self.grouped_bytes + self.distinct.bytes()
    }

    /// Makes ready for the rows of a batch.
    pub fn turn_to(&mut self, view: View<'_>) {
        self.sheet.turn_to(view.batch.words());
        self.shown.fill(None);
    }

    /// True for a query whose rows come out as they come in: what it needs of each are its cells.
    pub fn is_plain(&self, plan: &Plan) -> bool {
        !self.grouped && !self.held && plan.single && plan.query.order.is_empty()
    }

    /// The sheet, for rows of a plain query, and the numbers of its rows in their order.
    pub fn sheet(&mut self) -> (&mut Sheet, &mut Vec<u32>) {
        (&mut self.sheet, &mut self.ready)
    }

    /// Takes a row that WHERE kept; `order` is its default order, where rows do not come in it by themselves.
    pub fn take<'p: 'b, 'b>(&mut self, judge: Judge<'p, 'b>, row: &[Node], order: Option<(u64, u64)>) {
        if self.is_plain(judge.plan) {
            let number = hold_row(&mut self.sheet, &mut self.shown, judge, row);
            return self.ready.push(number);
        }
        self.taken += 1;
        let order = order.map_or((self.taken, 0, 0), |(first, then)| (first, then, self.taken));
        self.take_in(judge, row, order);
    }

    /// Takes a row that WHERE kept, which stands at a place of its batch.
    pub fn take_at<'p: 'b, 'b>(&mut self, judge: Judge<'p, 'b>, row: &[Node], place: (u32, u64)) {
        self.take_in(judge, row, order_at(self.taken, place));
    }

    fn take_in<'p: 'b, 'b>(&mut self, judge: Judge<'p, 'b>, row: &[Node], order: Order) {
        let query = &judge.plan.query;
        let keys = query.order.iter().map(|k| order_key(judge, &k.key, row));
        if self.grouped {
            return self.add_to_group(judge, row, keys.collect(), order);
        }
        match self.wanted(query) {
            Some(wanted) => {
                let nodes = (self.nodes.len() / row.len().max(1)) as u32;
                self.nodes.extend_from_slice(row);
                self.push(query, (UNMADE, nodes), keys, order);
                if self.rows.len() >= most_held(wanted) {
                    self.shed(judge.plan, wanted);
                }
            }
            None => {
                let number = hold_row(&mut self.sheet, &mut self.shown, judge, row);
                self.push(query, (number, 0), keys, order);
            }
        }
    }

    fn push(&mut self, query: &Query, (cells, nodes): (u32, u32), keys: impl Iterator<Item = SortKey>, order: Order) {
        let start = self.keys.len();
        let number = start.checked_div(query.order.len()).unwrap_or(0) as u32;
        self.keys.extend(keys);
        self.key_bytes += self.keys.get(start..).unwrap_or_default().iter().map(SortKey::text_bytes).sum::<usize>();
        let lead = query.order.first().zip(self.keys.get(start)).map_or(0, |(by, key)| if by.descending { !key.lead() } else { key.lead() });
        self.sorted = false;
        self.rows.push(OutRow { cells, nodes, keys: number, lead, order });
    }

    /// How many rows are kept by their nodes; `None` where rows become cells at once.
    fn wanted(&self, query: &Query) -> Option<usize> {
        if self.held { Some(usize::MAX) } else { best_of(query) }
    }

    /// From now on rows keep their nodes, until they are released.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Hands over the rows that are held, in default order, and forgets them.
    pub fn release<'b>(&mut self, plan: &Plan, view: View<'b>, visit: &mut dyn FnMut(&[Found<'b>])) {
        let mut found = Vec::with_capacity(plan.query.select.len());
        order::sort_by_key(&mut self.rows, |row| row.order);
        for row in self.rows.drain(..) {
            let row = nth(&self.nodes, row.nodes, plan.width);
            found.clear();
            found.extend(plan.query.select.iter().map(|column| Found { view, node: node_of(&column.value, row) }));
            visit(&found);
        }
        self.keys.clear();
        self.key_bytes = 0;
        self.nodes.clear();
    }

    /// Makes the cells that still point into the batch; of a top-k query only those of the best rows.
    pub fn settle<'p: 'b, 'b>(&mut self, judge: Judge<'p, 'b>) {
        let Some(wanted) = best_of(&judge.plan.query).filter(|_| !self.held) else { return };
        if self.rows.len() > wanted {
            self.shed(judge.plan, wanted);
        }
        self.sheet.reserve(self.rows.iter().filter(|row| row.cells == UNMADE).count());
        for row in self.rows.iter_mut().filter(|r| r.cells == UNMADE) {
            row.cells = hold_row(&mut self.sheet, &mut self.shown, judge, nth(&self.nodes, row.nodes, judge.plan.width));
        }
        self.nodes.clear();
        if self.sheet.len() > self.rows.len().saturating_mul(4).max(1024) {
            self.shown.fill(None);
            self.sheet.keep(self.rows.iter().map(|row| row.cells));
            self.rows.iter_mut().zip(0..).for_each(|(row, number)| row.cells = number);
        }
    }

    /// Keeps the best rows so far, with their keys and nodes.
    fn shed(&mut self, plan: &Plan, wanted: usize) {
        let width = plan.query.order.len();
        self.sort(&plan.query);
        self.rows.truncate(wanted);
        let mut keys = Vec::with_capacity(self.rows.len() * width);
        let mut nodes = Vec::with_capacity(self.rows.len() * plan.width);
        for (number, row) in (0..).zip(&mut self.rows) {
            let start = row.keys as usize * width;
            let own = self.keys.get_mut(start..start + width);
            keys.extend(own.into_iter().flatten().map(|key| std::mem::replace(key, SortKey::Null)));
            row.keys = number;
            if row.cells == UNMADE {
                let own = nth(&self.nodes, row.nodes, plan.width);
                row.nodes = (nodes.len() / plan.width) as u32;
                nodes.extend_from_slice(own);
            }
        }
        self.key_bytes = keys.iter().map(SortKey::text_bytes).sum();
        (self.keys, self.nodes) = (keys, nodes);
    }

    /// Sorts the rows: by ORDER BY (NULL last for ASC, first for DESC), then in default order.
    pub fn sort(&mut self, query: &Query) {
        if std::mem::replace(&mut self.sorted, true) {
            return;
        }
        // They come in commit order, mostly that of their times: then there is nothing left to do.
        if query.order.first().is_some_and(|key| key.descending) {
            self.rows.reverse();
        }
        let keys = &self.keys;
        self.rows.sort_unstable_by(|a, b| compare_out(keys, query, a, b));
    }

    /// True for a query whose one group takes rows in any order: aggregates only.
    pub fn folds(&self, query: &Query) -> bool {
        self.grouped && !has_keys(query)
    }

    /// Takes all rows of a block into the one group.
    pub fn fold<'p: 'b, 'b>(&mut self, judge: Judge<'p, 'b>, block: &Block<'b>, scratch: &mut [Node]) {
        let start = self.taken;
        let query = &judge.plan.query;
        let (mut bytes, mut known) = (0, None);
        for (column, tally) in query.select.iter().zip(self.only_sums(query)) {
            if let ColumnValue::Aggregate(aggregate) = &column.value {
                tally.add_block(aggregate, judge.view, block, start, scratch, &mut known);
                bytes += tally.bytes();
            }
        }
        self.grouped_bytes = bytes;
    }

    /// Takes one row, which stands at a place of its batch, into the one group.
    pub fn fold_row<'p: 'b, 'b>(&mut self, judge: Judge<'p, 'b>, row: &[Node], place: (u32, u64)) {
        let order = order_at(self.taken, place);
        let query = &judge.plan.query;
        judge.view.count(ROW * query.select.len() as u64);
        for (column, tally) in query.select.iter().zip(self.only_sums(query)) {
            if let ColumnValue::Aggregate(aggregate) = &column.value {
                tally.add(aggregate, judge.view, row, order);
            }
        }
    }

    /// Says that what has places in a batch was taken.
    pub fn took(&mut self, places: u64) {
        self.taken = self.taken.saturating_add(places);
    }

    fn only_sums(&mut self, query: &Query) -> &mut [Tally] {
        if self.groups.is_empty() {
            self.groups.push(empty_group(query));
        }
        self.groups.first_mut().map_or(&mut [], |group| &mut group.sums)
    }

    fn add_to_group<'p: 'b, 'b>(&mut self, judge: Judge<'p, 'b>, row: &[Node], keys: Vec<SortKey>, order: Order) {
        let query = &judge.plan.query;
        if has_keys(query) {
            judge.view.note(ExecutionPath::Groups);
        }
        let (mut key, mut buffer) = (String::new(), String::new());
        for column in query.select.iter().filter(|c| is_key(&c.value)) {
            identity(&plain_cell(judge, &column.value, row, &mut buffer), &mut key);
        }
        let next = self.groups.len();
        let key_bytes = 2 * key.len() + 48;
        let number = *self.by_key.entry(key).or_insert(next);
        let is_first = self.groups.get(number).is_none_or(|group| order < group.order);
        let cells =
            if is_first { query.select.iter().map(|c| plain_cell(judge, &c.value, row, &mut buffer).to_owned()).collect() } else { Vec::new() };
        if number == next {
            self.grouped_bytes += size_of::<Group>() + key_bytes + query.select.len() * (size_of::<Tally>() + size_of::<Cell<String>>());
            self.groups.push(Group { cells, keys, order, sums: query.select.iter().map(|_| Tally::default()).collect() });
        } else if let Some(group) = self.groups.get_mut(number).filter(|_| is_first) {
            (group.cells, group.keys, group.order) = (cells, keys, order);
        }
        judge.view.count(ROW * query.select.len() as u64);
        let Some(group) = self.groups.get_mut(number) else { return };
        for (column, tally) in query.select.iter().zip(&mut group.sums) {
            if let ColumnValue::Aggregate(aggregate) = &column.value {
                let before = tally.bytes();
                tally.add(aggregate, judge.view, row, order);
                self.grouped_bytes += tally.bytes() - before;
            }
        }
    }

    /// Orders, removes duplicates, cuts the window: what [`Output::close`] has not done yet, at once.
    ///
    /// # Errors
    /// When what tells rows apart is too large.
    pub fn finish(mut self, plan: &Plan, budget: &Budget) -> Result<ResultSet, QueryError> {
        while self.close(plan, budget)? {}
        let (query, mut rows) = (&plan.query, self.closing.rows);
        cut(&mut rows, query.window);
        let columns = query.select.iter().map(|c| ResultColumn { name: c.name.clone(), path: c.path.clone() }).collect();
        Ok(ResultSet::new(columns, self.sheet, rows))
    }

    /// The sort keys of rows, one behind the other.
    pub fn keys(&self) -> &[SortKey] {
        &self.keys
    }

    /// True when the rows stand in their order.
    pub fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Takes the rows out, to be sorted. They come in commit order, mostly that of their times: a descending order begins at their end.
    pub fn take_rows(&mut self, query: &Query) -> Vec<OutRow> {
        if query.order.first().is_some_and(|key| key.descending) {
            self.rows.reverse();
        }
        std::mem::take(&mut self.rows)
    }

    /// Puts the rows back in their order.
    pub fn put_rows(&mut self, rows: Vec<OutRow>) {
        (self.rows, self.sorted) = (rows, true);
    }

    /// The numbers of the rows of the sheet in their order; of sorted rows nothing else is needed.
    pub fn rows_in_order(&mut self) -> Vec<u32> {
        let mut rows = std::mem::take(&mut self.ready);
        rows.extend(std::mem::take(&mut self.rows).iter().map(|row| row.cells));
        rows
    }

    /// True where duplicates are removed at the end: those of a plain query were removed before.
    pub fn removes_duplicates(&self, query: &Query) -> bool {
        query.distinct && self.different == 0
    }

    /// True for a row of the sheet that differs from all before.
    pub fn is_new(&mut self, row: u32) -> bool {
        self.distinct.is_new(&self.sheet, row)
    }

    /// Takes the groups out; a query without keys has one, also without any row.
    pub fn take_groups(&mut self, query: &Query) -> Vec<Group> {
        if self.grouped && self.groups.is_empty() && !has_keys(query) {
            self.groups.push(empty_group(query));
        }
        std::mem::take(&mut self.groups)
    }

    /// Makes a row of a group.
    pub fn close_group(&mut self, query: &Query, mut group: Group) {
        for ((column, tally), cell) in query.select.iter().zip(&mut group.sums).zip(&mut group.cells) {
            if let ColumnValue::Aggregate(aggregate) = &column.value {
                *cell = tally.cell(aggregate);
            }
        }
        for (order, key) in query.order.iter().zip(&mut group.keys) {
            if let OrderBy::Column(column) = order.key
                && let (Some(ColumnValue::Aggregate(aggregate)), Some(tally)) =
                    (query.select.get(column).map(|c| &c.value), group.sums.get_mut(column))
            {
                *key = tally.key(aggregate);
            }
        }
        let held: Vec<Held> = group.cells.iter().map(|cell| self.sheet.hold(cell)).collect();
        let number = self.sheet.push(held.into_iter());
        self.push(query, (number, 0), group.keys.into_iter(), group.order);
    }
}

/// The order of two rows: by ORDER BY, then in default order.
pub(super) fn compare_out(keys: &[SortKey], query: &Query, a: &OutRow, b: &OutRow) -> Ordering {
    let of = |row: &OutRow| nth(keys, row.keys, query.order.len());
    let all = || compare_rows(of(a), of(b), &query.order).then(a.order.cmp(&b.order));
    a.lead.cmp(&b.lead).then_with(all)
}

/// True for a column by which rows are grouped, beside aggregates: no literal.
fn is_key(value: &ColumnValue) -> bool {
    matches!(value, ColumnValue::Expr(Expr::Path(_) | Expr::Call(..)))
}

/// True when the groups of a query have keys.
fn has_keys(query: &Query) -> bool {
    query.select.iter().any(|c| is_key(&c.value))
}

/// The one group of a query without keys, before any row.
fn empty_group(query: &Query) -> Group {
    let cells = query.select.iter().map(|c| constant_cell(&c.value)).collect();
    let sums = query.select.iter().map(|_| Tally::default()).collect();
    Group { cells, keys: query.order.iter().map(|_| SortKey::Null).collect(), order: (0, 0, 0), sums }
}

/// Of a query that wants so many rows, so many are held before the others are left out.
fn most_held(wanted: usize) -> usize {
    wanted.saturating_mul(2).max(1024)
}

/// How many rows of a top-k query (ORDER BY and LIMIT) are wanted at most.
pub(super) fn best_of(query: &Query) -> Option<usize> {
    match query.window {
        Some(Window::First { limit, offset }) if !query.order.is_empty() && !query.distinct => {
            Some(usize::try_from(limit.saturating_add(offset)).unwrap_or(usize::MAX))
        }
        _ => None,
    }
}

/// Adds a row to a sheet.
fn hold_row<'p: 'b, 'b>(sheet: &mut Sheet, shown: &mut [Shown], judge: Judge<'p, 'b>, row: &[Node]) -> u32 {
    let select = &judge.plan.query.select;
    let start = sheet.len();
    let (cells, own) = sheet.extend(1);
    let mut buffer = String::new();
    for ((cell, column), shown) in cells.iter_mut().zip(select).zip(shown) {
        *cell = match &column.value {
            value @ ColumnValue::Expr(Expr::Path(_)) => hold_node(judge.view, node_of(value, row), own, shown),
            value => Held::of(&plain_cell(judge, value, row, &mut buffer), own),
        };
    }
    start as u32
}

/// A constant by table and item, or an object by its node, and what its cells are kept as.
pub(super) type Shown = Option<(Node, Held)>;

/// What the cell of a node is kept as; `shown` is the last constant that was.
pub(super) fn hold_node(view: View<'_>, node: Node, own: &mut Dictionary, shown: &mut Shown) -> Held {
    let Fragment { table: number, row } = node.fragment;
    let table = view.batch.tables().get(number as usize);
    match table.and_then(|table| Some((table, table.shape().item(node.item)?.kind))) {
        Some((table, ItemKind::Slot(_, slot))) => match table.lane(slot) {
            Some(lane) => Held::slot(lane, row, own),
            None => {
                view.note_broken("a slot has no column");
                Held::Null
            }
        },
        Some((_, ItemKind::Constant(..))) => match *shown {
            Some((known, held)) if (known.fragment.table, known.item) == (number, node.item) => held,
            _ => shown_as(view, node, own, shown),
        },
        // An object stands in as many rows one after the other as there are things in it: it is written once.
        Some(_) => match *shown {
            Some((known, held)) if known == node => held,
            _ => shown_as(view, node, own, shown),
        },
        // Nothing, or what is derived of an EHR.
        None => Held::of(&cell_of(view, node, &mut String::new()), own),
    }
}

fn shown_as(view: View<'_>, node: Node, own: &mut Dictionary, shown: &mut Shown) -> Held {
    let held = Held::of(&cell_of(view, node, &mut String::new()), own);
    *shown = Some((node, held));
    held
}

/// The cell of a column; `buffer` is for texts that are made.
fn plain_cell<'c, 'p: 'b, 'b: 'c>(judge: Judge<'p, 'b>, value: &'p ColumnValue, row: &[Node], buffer: &'c mut String) -> Cell<&'c str> {
    match value {
        ColumnValue::Aggregate(_) => Cell::Null,
        ColumnValue::Expr(Expr::Path(path)) => row.get(*path).map_or(Cell::Null, |n| cell_of(judge.view, *n, buffer)),
        ColumnValue::Expr(Expr::Literal(literal)) => cell_of_literal(literal),
        ColumnValue::Expr(call) => cell_of_value(&judge.value(call, row), buffer),
    }
}

/// The node of a column that is a path.
fn node_of(value: &ColumnValue, row: &[Node]) -> Node {
    match value {
        ColumnValue::Expr(Expr::Path(path)) => row.get(*path).copied().unwrap_or(Node::NONE),
        _ => Node::NONE,
    }
}

fn constant_cell(value: &ColumnValue) -> Cell<String> {
    match value {
        ColumnValue::Expr(Expr::Literal(literal)) => cell_of_literal(literal).to_owned(),
        _ => Cell::Null,
    }
}

/// The cell of a literal.
pub(super) fn cell_of_literal(literal: &Literal) -> Cell<&str> {
    match literal {
        Literal::Null => Cell::Null,
        Literal::Boolean(flag) => Cell::Boolean(*flag),
        Literal::Number(token) => Cell::Number(Number::Token(token)),
        Literal::Text(text) | Literal::Untyped(text) => Cell::Text(text),
    }
}

fn cell_of_value<'c>(value: &Value<'_>, buffer: &'c mut String) -> Cell<&'c str> {
    match value {
        Value::Boolean(flag) => Cell::Boolean(*flag),
        Value::Number(number) => Cell::computed(*number),
        other => other.as_text().map_or(Cell::Null, |text| {
            buffer.clear();
            buffer.push_str(text);
            Cell::Text(buffer)
        }),
    }
}

/// The cell of a stored node: its content exactly as stored.
pub(super) fn cell_of<'c>(view: View<'c>, node: Node, buffer: &'c mut String) -> Cell<&'c str> {
    if node.is_none() {
        return Cell::Null;
    }
    buffer.clear();
    match view.leaf(node) {
        Some(Leaf::Text(text)) => Cell::Text(text),
        Some(Leaf::Boolean(flag)) => Cell::Boolean(flag),
        Some(Leaf::Number(_)) => {
            view.write_token(node, buffer);
            Cell::Number(Number::Token(buffer))
        }
        None => {
            view.write_json(node, buffer);
            Cell::Json(buffer)
        }
    }
}

fn order_key<'p: 'b, 'b>(judge: Judge<'p, 'b>, key: &'p OrderBy, row: &[Node]) -> SortKey {
    let of_path = |path: usize| match row.get(path) {
        Some(node) => match judge.view.batch.point(node.fragment, node.item) {
            Some(micros) => SortKey::Temporal(Temporal::at(micros)),
            None => sort_key(&judge.view.value(*node)),
        },
        None => SortKey::Null,
    };
    match key {
        OrderBy::Path(path) => of_path(*path),
        OrderBy::Column(column) => match judge.plan.query.select.get(*column).map(|c| &c.value) {
            Some(ColumnValue::Expr(Expr::Path(path))) => of_path(*path),
            Some(ColumnValue::Expr(expr)) => sort_key(&judge.value(expr, row)),
            _ => SortKey::Null,
        },
    }
}

pub(super) fn sort_key(value: &Value<'_>) -> SortKey {
    match value {
        Value::Null => SortKey::Null,
        Value::Boolean(flag) => SortKey::Boolean(*flag),
        Value::Number(number) => SortKey::Number(without_sign_of_zero(*number)),
        // The text of a duration sorts as text (P30M before P40D), a whole DV_DURATION by its length.
        Value::Temporal(TemporalKind::Duration, text) => SortKey::Text(text.to_string()),
        Value::Temporal(kind, text) => temporal_key(*kind, text),
        Value::TemporalObject(kind, text) => temporal_key(*kind, text),
        Value::Text(text) => SortKey::Text(text.to_string()),
        Value::TextObject(text) | Value::Untyped(text) => SortKey::Text((*text).to_owned()),
        Value::Object => SortKey::Object,
    }
}

fn temporal_key(kind: TemporalKind, text: &str) -> SortKey {
    match Temporal::parse(kind, text) {
        Some(temporal) => SortKey::Temporal(temporal),
        None => SortKey::Text(text.to_owned()),
    }
}

impl SortKey {
    /// Bytes of the text that it holds.
    fn text_bytes(&self) -> usize {
        if let SortKey::Text(text) = self { text.len() } else { 0 }
    }

    fn rank(&self) -> u8 {
        match self {
            SortKey::Number(_) => 0,
            SortKey::Temporal(temporal) if temporal.axis() == Axis::Length => 1,
            SortKey::Text(_) | SortKey::Temporal(_) => 2,
            SortKey::Boolean(_) => 3,
            SortKey::Object => 4,
            SortKey::Null => 5,
        }
    }

    /// Never more for less: the rank in the first byte, then the beginning of the value.
    fn lead(&self) -> u128 {
        let value = match self {
            SortKey::Number(number) => u128::from(in_order(rank_of(*number))),
            SortKey::Temporal(temporal) if temporal.axis() == Axis::Length => u128::from(in_order(temporal.earliest)),
            // The 15 bytes end before the seconds of a date-time; those of a time of day reach into the fraction.
            SortKey::Temporal(temporal) if temporal.axis() == Axis::Clock => beginning(temporal.sort_text().as_bytes()),
            SortKey::Temporal(temporal) => beginning(&temporal.sort_prefix()),
            SortKey::Text(text) => beginning(text.as_bytes()),
            SortKey::Boolean(flag) => u128::from(*flag),
            SortKey::Object | SortKey::Null => 0,
        };
        u128::from(self.rank()) << 120 | value
    }

    /// Its place among texts, and what comes first of those with the same place: texts, dates, times of day.
    fn place(&self) -> (Cow<'_, str>, u8) {
        match self {
            SortKey::Text(text) => (Cow::Borrowed(text), 0),
            SortKey::Temporal(temporal) => (Cow::Owned(temporal.sort_text()), if temporal.axis() == Axis::Calendar { 1 } else { 2 }),
            _ => (Cow::Borrowed(""), 0),
        }
    }
}

/// The first 15 bytes of a text, as a number in the order of texts.
fn beginning(text: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    bytes.iter_mut().skip(1).zip(text).for_each(|(to, byte)| *to = *byte);
    u128::from_be_bytes(bytes)
}

/// A number without sign in the place of one with.
fn in_order(number: i64) -> u64 {
    (number as u64) ^ (1 << 63)
}

/// The total order of values; NULL behind everything.
///
/// Dates and times of one axis are in the order of time. Among other texts each stands at [`Temporal::sort_text`], which is in the
/// order of time too, so the order is transitive over texts, dates and times together.
pub(super) fn compare_keys(a: &SortKey, b: &SortKey) -> Ordering {
    match (a, b) {
        (SortKey::Number(a), SortKey::Number(b)) => a.total_cmp(b),
        (SortKey::Temporal(a), SortKey::Temporal(b)) if a.axis() == b.axis() => a.total_order(*b).unwrap_or(Ordering::Equal),
        (SortKey::Text(a), SortKey::Text(b)) => a.cmp(b),
        (SortKey::Boolean(a), SortKey::Boolean(b)) => a.cmp(b),
        _ => a.rank().cmp(&b.rank()).then_with(|| a.place().cmp(&b.place())),
    }
}

/// The order of two rows by ORDER BY.
fn compare_rows(a: &[SortKey], b: &[SortKey], order: &[OrderKey]) -> Ordering {
    let mut keys = order.iter().zip(a.iter().zip(b)).map(|(key, (a, b))| {
        let ascending = compare_keys(a, b);
        if key.descending { ascending.reverse() } else { ascending }
    });
    keys.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// The values of a row, of which each has `width`.
fn nth<T>(values: &[T], row: u32, width: usize) -> &[T] {
    let start = row as usize * width;
    values.get(start..start + width).unwrap_or_default()
}

fn cut(rows: &mut Vec<u32>, window: Option<Window>) {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    match window {
        Some(Window::First { limit, offset }) => {
            rows.drain(..size(offset).min(rows.len()));
            rows.truncate(size(limit));
        }
        Some(Window::Last { limit }) => drop(rows.drain(..rows.len().saturating_sub(size(limit)))),
        None => {}
    }
}

/// Appends a text that is equal for equal cells: numbers by value, objects by content.
pub(super) fn identity(cell: &Cell<&str>, out: &mut String) {
    match cell {
        Cell::Number(number) => number_identity(number, out),
        Cell::Json(text) => {
            let mut scanner = Scanner::new(text);
            while let Ok(token) = scanner.next_token() {
                match token {
                    Token::End => break,
                    Token::Number(number) => number_identity(&Number::Token(number), out),
                    Token::String(text) => crate::rm::json::quote_into(out, &text),
                    Token::ObjectStart => out.push('{'),
                    Token::ObjectEnd => out.push('}'),
                    Token::ArrayStart => out.push('['),
                    Token::ArrayEnd => out.push(']'),
                    Token::Boolean(flag) => out.push(if flag { 't' } else { 'f' }),
                    Token::Null => out.push('n'),
                    Token::Colon | Token::Comma => out.push(','),
                }
            }
        }
        other => other.write_json(out),
    }
    out.push('\u{1f}');
}

/// -0 is 0.
fn without_sign_of_zero(number: f64) -> f64 {
    number + 0.0
}

fn number_identity(number: &Number<&str>, out: &mut String) {
    out.push_str(&number::shown(without_sign_of_zero(number.value())));
}
