//! Suite `rm.flat_random`: random documents of every template survive FLAT and STRUCTURED, in both
//! dialects and without canonical JSON in them.

use crate::corpus::Corpus;
use crate::random_document::{Random, document};
use crate::report::Case;
use crate::rm_flat::{Library, Made, comes_back_without_raw, is_valid};

/// The number of documents of each template. A template whose documents are all refused is reported
/// as skipped.
const DOCUMENTS: u64 = 2;

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let library = Library::of(corpus);
    library.compositions().map(one).collect()
}

fn one(made: &Made) -> Case {
    let mut tested = 0;
    for seed in 0..DOCUMENTS * 2 {
        let Some(tree) = document(&made.template, &mut Random::new(seed + 1)) else {
            continue;
        };
        if !tree.root().is_some_and(|root| is_valid(root, made)) {
            continue;
        }
        tested += 1;
        if let Err(problem) = comes_back_without_raw(&tree, made) {
            return Case::check(&made.name, || Err(format!("seed {}: {problem}", seed + 1)));
        }
        if tested == DOCUMENTS {
            break;
        }
    }
    if tested == 0 {
        Case::skipped(&made.name, "no valid random document")
    } else {
        Case::check(&made.name, || Ok(()))
    }
}
