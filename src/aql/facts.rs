//! What a plan has found out about shapes, kept with it: the next document, batch and run find it again.

use crate::document::Shape;
use hashbrown::HashMap;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// So many shapes are remembered at once; then all are forgotten.
const MOST_SHAPES: usize = 1 << 16;

/// What is known, by shape.
#[derive(Default)]
pub(super) struct Facts {
    by_address: RefCell<HashMap<usize, Rc<ShapeFacts>>>,
}

/// What is known of one shape.
#[derive(Default)]
pub(super) struct ShapeFacts {
    /// Keeps the address from being used again.
    _shape: Option<Arc<Shape>>,
    candidates: RefCell<Vec<(usize, Rc<[Candidate]>)>>,
    templates: RefCell<Vec<OfItem>>,
}

/// What a variable gives when it is bound to an item.
type OfItem = (usize, u32, Option<Rc<Template>>);

/// A node that may be bound, or a run of fragments to be searched.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub item: u32,
    pub run: Option<u32>,
    /// The archetype root nearest above, within the fragment.
    pub above: Option<u32>,
}

/// The rows that a variable gives in every fragment of a shape when it is bound to one of its items: for each the filled
/// columns and their items.
pub(super) struct Template(pub Vec<Box<[(usize, u32)]>>);

impl Facts {
    /// What is known of a shape.
    pub fn of(&self, shape: &Arc<Shape>) -> Rc<ShapeFacts> {
        let address = Arc::as_ptr(shape) as usize;
        let mut known = self.by_address.borrow_mut();
        if known.len() >= MOST_SHAPES {
            known.clear();
        }
        let facts = known.entry(address).or_insert_with(|| Rc::new(ShapeFacts { _shape: Some(Arc::clone(shape)), ..ShapeFacts::default() }));
        Rc::clone(facts)
    }
}

impl ShapeFacts {
    /// The candidates for a variable, found once.
    pub fn candidates(&self, variable: usize, find: impl FnOnce() -> Vec<Candidate>) -> Rc<[Candidate]> {
        let known = self.candidates.borrow().iter().find(|(v, _)| *v == variable).map(|(_, found)| Rc::clone(found));
        known.unwrap_or_else(|| {
            let found: Rc<[Candidate]> = find().into();
            self.candidates.borrow_mut().push((variable, Rc::clone(&found)));
            found
        })
    }

    /// The template of a variable bound to an item, found once; `None` where slots or parts of a fragment decide its rows.
    pub fn template(&self, variable: usize, item: u32, find: impl FnOnce() -> Option<Template>) -> Option<Rc<Template>> {
        let known = self.templates.borrow().iter().find(|(v, i, _)| (*v, *i) == (variable, item)).map(|(.., found)| found.clone());
        known.unwrap_or_else(|| {
            let found = find().map(Rc::new);
            self.templates.borrow_mut().push((variable, item, found.clone()));
            found
        })
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Facts of {} shapes", self.by_address.borrow().len())
    }
}
