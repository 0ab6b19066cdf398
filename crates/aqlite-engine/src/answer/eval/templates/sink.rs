//! Consumers of the rows of an anchor that passed its conjuncts.

use super::RowTemplateEvaluator;
use super::anchor_rows::AnchorRows;
use crate::answer::eval::QueryError;
use crate::answer::eval::block::{Block, ParentRows};
use crate::answer::eval::execution_path::ExecutionPath;
use crate::answer::eval::node::Node;
use crate::answer::eval::output::{Groups, Output};
use crate::answer::eval::projection::Projection;
use crate::answer::query::Query;

/// The consumer of the rows of an anchor.
pub(super) enum Sink<'o, 'b> {
    /// The rows are kept for the join.
    AnchorRows(AnchorRows),
    /// The rows are added to the aggregates of the only group.
    Fold(GroupSink<'o>),
    /// The rows are added to groups, whose keys are the values of these paths.
    Group(GroupSink<'o>, Vec<usize>),
    /// The rows are added to an output that sorts them.
    Sort(&'o mut Output),
    /// The cells of the rows are copied to the result buffer.
    Fill(Projection<'o, 'b>),
    /// The rows are kept as blocks.
    Blocks(FoundBlocks<'b>),
}

/// The groups of an output, as the consumer of the rows of one batch.
pub(super) struct GroupSink<'o> {
    pub groups: &'o mut Groups,
    /// The position before the batch.
    pub start: u64,
}

/// The rows of an anchor that passed its conjuncts, as blocks.
pub(super) struct FoundBlocks<'b> {
    pub blocks: Vec<Block<'b>>,
    /// The rows of walked fragments, which no block describes.
    pub walked: AnchorRows,
    /// The number of rows in blocks.
    rows: usize,
}

impl<'b> FoundBlocks<'b> {
    /// Creates a consumer without rows. `width` is the number of nodes of a row.
    pub fn new(width: usize) -> FoundBlocks<'b> {
        FoundBlocks {
            blocks: Vec::new(),
            walked: AnchorRows::new(width),
            rows: 0,
        }
    }

    /// Adds the rows of a block.
    pub fn take(&mut self, block: Block<'b>) {
        self.rows += block.rows.len();
        self.blocks.push(block);
    }

    /// Returns the number of rows held.
    pub fn len(&self) -> usize {
        self.rows + self.walked.rows.len()
    }

    /// Returns the approximate number of bytes held.
    fn bytes(&self) -> usize {
        self.rows * size_of::<u32>() + self.walked.bytes()
    }
}

impl<'o> Sink<'o, '_> {
    /// Returns the consumer of a query for which the order of arrival of its rows does not matter,
    /// because it aggregates, groups or sorts them; `None` for other queries.
    pub fn without_order(query: &Query, output: &'o mut Output) -> Option<Self> {
        let groups = output.groups();
        let Some(paths) = groups.and_then(|(groups, _)| groups.key_paths(query)) else {
            return (!query.order.is_empty()).then_some(Sink::Sort(output));
        };
        let (groups, start) = output.groups()?;
        let has_only_group = groups.has_only_group();
        let sink = GroupSink { groups, start };
        Some(match has_only_group {
            true => Sink::Fold(sink),
            false => Sink::Group(sink, paths),
        })
    }

    /// Returns the number of rows held.
    pub fn len(&self) -> usize {
        match self {
            Sink::AnchorRows(anchor_rows) => anchor_rows.rows.len(),
            Sink::Fold(sink) | Sink::Group(sink, _) => sink.groups.len(),
            Sink::Sort(output) => output.len(),
            Sink::Fill(projection) => projection.len(),
            Sink::Blocks(blocks) => blocks.len(),
        }
    }

    /// Returns the approximate number of bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Sink::AnchorRows(anchor_rows) => anchor_rows.bytes(),
            Sink::Fold(sink) | Sink::Group(sink, _) => sink.groups.bytes(),
            Sink::Sort(output) => output.bytes(),
            Sink::Fill(projection) => projection.bytes(),
            Sink::Blocks(blocks) => blocks.bytes(),
        }
    }
}

impl<'p: 'b, 'b> RowTemplateEvaluator<'p, 'b> {
    /// Passes the rows of a block to a sink.
    pub(super) fn send_to_sink(
        &self,
        block: Block<'b>,
        scratch: &mut [Node],
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), QueryError> {
        if block.rows.is_empty() {
            return Ok(());
        }
        self.note(sink, &block.parent_rows);
        if !block.is_sound(self.plan.width) {
            self.work
                .note_broken("a block of rows does not fit its table");
            return Ok(());
        }
        let evaluator = self.evaluator();
        match sink {
            Sink::Fold(GroupSink { groups, start }) => {
                groups.fold(evaluator, &block, *start, scratch)
            }
            Sink::Group(GroupSink { groups, start }, paths) => {
                groups.take_block(evaluator, &block, paths, *start, scratch)
            }
            Sink::Sort(output) => self.sort_rows(&block, scratch, output),
            Sink::Fill(projection) => projection.take(&block, scratch),
            Sink::AnchorRows(anchor_rows) => self.keep_rows(&block, scratch, anchor_rows),
            Sink::Blocks(blocks) => blocks.take(block),
        }
        self.budget.check(sink.len(), sink.bytes())
    }

    /// Adds the rows of a block to an output that sorts them.
    fn sort_rows(&self, block: &Block<'b>, scratch: &mut [Node], output: &mut Output) {
        output.reserve(self.plan, block.rows.len());
        for i in 0..block.rows.len() {
            block.fill(self.view(), i, scratch);
            let evaluator = self.evaluator();
            let position = block.position(evaluator.view, i);
            output.take_at(evaluator, scratch, position);
        }
    }

    /// Adds the rows of a block to the rows of its anchor, for the join.
    fn keep_rows(&self, block: &Block<'b>, scratch: &mut [Node], anchor_rows: &mut AnchorRows) {
        anchor_rows.reserve(block.rows.len());
        for i in 0..block.rows.len() {
            block.fill(self.view(), i, scratch);
            let view = self.evaluator().view;
            let position = block.position(view, i);
            anchor_rows.push(position, block.doc(view, i), scratch);
        }
    }

    /// Records the execution paths of a block: its sink and its parent rows.
    fn note(&self, sink: &Sink<'_, 'b>, parent_rows: &ParentRows) {
        let taken = &self.work.taken;
        taken.note(match sink {
            Sink::Fold(_) => ExecutionPath::Fold,
            Sink::Sort(_) => ExecutionPath::Sort,
            Sink::Group(..) => return,
            Sink::Fill(_) if self.plan.query.distinct => ExecutionPath::FillDistinct,
            Sink::Fill(_) => ExecutionPath::Fill,
            Sink::AnchorRows(_) => ExecutionPath::Join,
            // The rows are passed to another sink later.
            Sink::Blocks(_) => return,
        });
        match parent_rows {
            ParentRows::None => {}
            ParentRows::Unused => taken.note(ExecutionPath::ChildRowsAlone),
            ParentRows::Known { .. } => taken.note(ExecutionPath::ChildRows),
        }
    }
}
