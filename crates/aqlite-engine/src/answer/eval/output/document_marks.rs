//! Document marks: a side of a semi-join needs the documents of its rows, and no row.

use crate::answer::eval::cells::node_of;
use crate::answer::eval::condition::ConditionEvaluator;
use crate::answer::eval::node::{Node, View};
use crate::answer::eval::semi_join::DocumentSet;
use crate::document::Batch;

/// The documents of the rows of a side of a semi-join.
///
/// The batches that the side reads are parts of a union. The documents are numbered in the union.
#[derive(Clone)]
pub(super) struct DocumentMarks {
    documents: DocumentSet,
    /// The number in the union of the first document of the batch that is read.
    first: u32,
}

impl DocumentMarks {
    /// Creates an empty set of documents of a union, or of a batch that is its own union.
    pub fn of(union: &Batch) -> DocumentMarks {
        DocumentMarks {
            documents: DocumentSet::of(union),
            first: 0,
        }
    }

    /// Sets the number in the union of the first document of the batch that follows.
    pub fn begin_batch(&mut self, first: u32) {
        self.first = first;
    }

    /// Marks the document of a row. The first column of the query is an object of the document.
    pub fn take<'p: 'b, 'b>(&mut self, evaluator: ConditionEvaluator<'p, 'b>, row: &[Node]) {
        let (view, shown) = (evaluator.view, evaluator.plan.query.select.first());
        let object = shown.map(|shown| node_of(view, &shown.value, row));
        if !object.is_some_and(|object| self.mark(view, object)) {
            view.note_broken("a row of a document has no document");
        }
    }

    /// Marks the document of a node of the batch that is read. Returns false if the node has no
    /// document.
    fn mark(&mut self, view: View<'_>, node: Node) -> bool {
        let own = view.batch.owner_of(node.fragment);
        let document = own.and_then(|own| self.first.checked_add(own));
        document.is_some_and(|document| self.documents.insert(document))
    }

    /// Takes the marked documents.
    pub fn finish(&mut self) -> DocumentSet {
        std::mem::take(&mut self.documents)
    }
}
