//! Dependencies of a condition: the variables and paths that it reads.

use super::query::{Condition, PathUse, Query};

/// The variables and paths that a condition reads.
#[derive(Default)]
pub(super) struct Reads {
    /// Indexes into [`Query::paths`].
    pub paths: Vec<usize>,
    /// Indexes into [`Query::variables`], one for each path.
    pub variables: Vec<usize>,
    /// Whether the condition contains EXISTS.
    pub has_exists: bool,
}

impl Reads {
    pub fn of(condition: &Condition, query: &Query) -> Reads {
        let mut reads = Reads::default();
        condition.each_path(&mut |path| {
            let path = match path {
                PathUse::Value(path) => {
                    reads.paths.push(path);
                    query.paths.get(path)
                }
                PathUse::Existence(path) => {
                    reads.has_exists = true;
                    query.exists.get(path)
                }
            };
            reads.variables.extend(path.map(|p| p.variable));
        });
        reads
    }
}

impl Query {
    /// The conjuncts of WHERE.
    pub(super) fn conjuncts(&self) -> impl Iterator<Item = &Condition> {
        let (terms, alone) = match &self.condition {
            Some(Condition::And(terms)) => (terms.as_slice(), None),
            other => (&[][..], other.as_ref()),
        };
        terms.iter().chain(alone)
    }
}
