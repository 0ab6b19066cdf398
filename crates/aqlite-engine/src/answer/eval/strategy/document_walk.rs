//! The strategy for queries whose rows belong to one document each: walks documents one by one.

use super::rare_documents::Rare;
use super::walk::bind;
use super::{Halt, Strategy, Tasks};
use crate::answer::eval::bind::{LastEhr, Parent};
use crate::answer::eval::execution_path::ExecutionPath;
use crate::answer::eval::scope::Scope;
use crate::answer::eval::{QueryError, Run};
use crate::document::{Batch, Doc};
use std::ops::Range;

/// The number of documents between two tests for cancellation.
const DOCUMENTS_PER_CHECK: u32 = 1024;

/// A walk through the documents in a range. For a query about one EHR, the range refers to the list
/// of its documents.
pub(super) struct DocumentWalk(pub Range<u32>);

impl Strategy for DocumentWalk {
    fn evaluate(
        self: Box<Self>,
        run: &mut Run<'_>,
        batch: &Batch,
        last_ehr: &LastEhr,
        tasks: &mut Tasks,
    ) -> Result<(), Halt> {
        let DocumentWalk(range) = *self;
        run.work.taken.note(ExecutionPath::Documents);
        let ehrs = run.ehrs.clone();
        let only = Scope::documents(run.plan, batch);
        let takes_part = |ehr: u32| match &ehrs {
            Some(ehrs) => ehrs.binary_search(&ehr).is_ok(),
            None => batch.is_queryable(ehr),
        };
        let mut rare = Rare::documents();
        for at in range.clone() {
            // The trail of the run may be inside the first document.
            let is_visited = at == range.start || run.work.samples(at as usize);
            if !is_visited && !rare.contains(run, batch, at) {
                continue;
            }
            let number = match only {
                Some(documents) => documents.get(at as usize).copied(),
                None => Some(at),
            };
            let Some(doc) = number.and_then(|number| batch.doc(number)) else {
                // The list of documents can be absent. The run then goes on with the next batch, so
                // that the lists of all segments are loaded together. A query for its first rows
                // ends here, because it may not need the next segments.
                if run.work.is_void() && run.output.missing().is_none() {
                    rare.find(run, batch);
                    return Ok(());
                }
                let failure = QueryError::Broken("a walk names a document that is not there");
                return Err(Halt::Failed(failure));
            };
            if at.is_multiple_of(DOCUMENTS_PER_CHECK) && (run.stopped)() {
                return Err(Halt::Failed(QueryError::Stopped));
            }
            if takes_part(doc.ehr) && is_scanned(run, doc) {
                let done = bind(run, batch, doc.ehr, Parent::Doc(doc), last_ehr);
                if let Err(Halt::Paused) = done {
                    // The trail of the run is inside this document, so the rest begins with it.
                    tasks.push(Box::new(DocumentWalk(at..range.end)));
                }
                done?;
            }
        }
        Ok(())
    }
}

/// Returns whether the scan of the query contains a document.
fn is_scanned(run: &Run<'_>, doc: Doc) -> bool {
    let scan = run.plan.scan();
    let is_current = doc.row.latest && !doc.row.deleted;
    scan.kinds.contains(&doc.row.kind) && (scan.all_versions || is_current)
}
