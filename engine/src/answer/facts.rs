//! What a plan has found out about shapes, kept with it: the next document, batch and run find it again.

use super::plan::PathSet;
use crate::document::{ItemKind, Shape, Table};
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// So many shapes are remembered at once; then all are forgotten.
const MOST_SHAPES: usize = 1 << 16;

/// What is known, by shape, and of all tables of a batch.
#[derive(Default)]
pub(super) struct Facts {
    by_address: RefCell<HashMap<usize, Rc<ShapeFacts>>>,
    /// By variable.
    surveys: RefCell<Vec<(usize, Rc<Survey>)>>,
}

/// The tables of one layout that a variable may bind fragments of.
pub(super) struct Survey {
    /// See `Batch::layout`.
    pub layout: u64,
    pub tables: Vec<u32>,
}

/// What is known of one shape.
#[derive(Default)]
pub(super) struct ShapeFacts {
    /// Keeps the address from being used again, not the shape.
    _shape: Weak<Shape>,
    candidates: RefCell<Vec<(usize, Rc<[Candidate]>)>>,
    passing: RefCell<Vec<(usize, Option<bool>)>>,
    cases: RefCell<Vec<(Bound, Rc<Cases>)>>,
}

/// So many cases of a step are remembered; fragments of others are walked.
const MOST_CASES: usize = 64;

/// What a step gives in the fragments of a table that have some of its items and have not others.
pub(super) struct Case {
    /// Flags, and whether they stand.
    pub asked: Vec<(u32, bool)>,
    pub expansion: Expansion,
}

impl Case {
    /// True for a fragment of which the same can be said.
    pub fn is_of(&self, table: &Table, row: u32) -> bool {
        self.asked.iter().all(|(flag, stands)| table.is_set(*flag, row) == *stands)
    }

    /// The rows, where fragments give the same.
    pub fn rows(&self) -> Option<&[Cells]> {
        match &self.expansion {
            Expansion::Rows(rows) => Some(rows),
            _ => None,
        }
    }
}

/// A step of a variable's paths, bound to an item with the paths that are alive there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound {
    pub variable: usize,
    pub step: usize,
    pub item: u32,
    pub alive: PathSet,
}

/// A node that may be bound, or a run of fragments to be searched.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub item: u32,
    pub run: Option<u32>,
    /// The archetype root nearest above, within the fragment.
    pub above: Option<u32>,
}

/// The filled columns of a row.
pub(super) type Cells = Rc<[Filled]>;

/// A filled column of a row: the item that fills it, and the number of its slot where it is one.
#[derive(Clone, Copy)]
pub(super) struct Filled {
    pub column: usize,
    pub item: u32,
    pub slot: Option<u32>,
}

impl Filled {
    /// An item of a shape in a column.
    pub fn of(shape: &Shape, column: usize, item: u32) -> Filled {
        let slot = match shape.item(item).map(|i| i.kind) {
            Some(ItemKind::Slot(_, slot)) => Some(slot),
            _ => None,
        };
        Filled { column, item, slot }
    }
}

/// What a step gives in fragments of a table that have the same items, as far as it asks.
pub(super) enum Expansion {
    /// These rows.
    Rows(Vec<Cells>),
    /// One row for each row of the parts of a run.
    Run(OverRun),
    /// Slots or several runs decide: each fragment is walked.
    Walk,
}

/// The one list on the way that differs between fragments of a case.
pub(super) struct OverRun {
    pub run: u32,
    /// The step that its parts are instances of, and the paths that are alive before it.
    pub step: usize,
    pub alive: PathSet,
    /// What every row has.
    pub with: Cells,
    /// What the one row has where no part gives any.
    pub without: Cells,
}

impl Facts {
    /// What is known of a shape.
    pub fn of(&self, shape: &Arc<Shape>) -> Rc<ShapeFacts> {
        let address = Arc::as_ptr(shape) as usize;
        let mut known = self.by_address.borrow_mut();
        if known.len() >= MOST_SHAPES {
            known.clear();
        }
        let facts = known.entry(address).or_insert_with(|| Rc::new(ShapeFacts { _shape: Arc::downgrade(shape), ..ShapeFacts::default() }));
        Rc::clone(facts)
    }
}

impl Facts {
    /// The tables of a layout that a variable may bind fragments of, found once.
    pub fn survey(&self, variable: usize, layout: u64, find: impl FnOnce() -> Survey) -> Rc<Survey> {
        let is_known = |(of, survey): &&(usize, Rc<Survey>)| *of == variable && survey.layout == layout;
        let known = self.surveys.borrow().iter().find(is_known).map(|(_, survey)| Rc::clone(survey));
        known.unwrap_or_else(|| {
            let found = Rc::new(find());
            let mut surveys = self.surveys.borrow_mut();
            surveys.retain(|(of, _)| *of != variable);
            surveys.push((variable, Rc::clone(&found)));
            found
        })
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

    /// Whether the root passes the predicate of a variable, found once; `None` where slots decide.
    pub fn passes(&self, variable: usize, find: impl FnOnce() -> Option<bool>) -> Option<bool> {
        let known = self.passing.borrow().iter().find(|(v, _)| *v == variable).map(|(_, found)| *found);
        known.unwrap_or_else(|| {
            let found = find();
            self.passing.borrow_mut().push((variable, found));
            found
        })
    }

    /// What a step gives, as far as it is known.
    pub fn cases(&self, bound: Bound) -> Rc<Cases> {
        let known = self.cases.borrow().iter().find(|(b, _)| *b == bound).map(|(_, cases)| Rc::clone(cases));
        known.unwrap_or_else(|| {
            let cases = Rc::new(Cases::default());
            self.cases.borrow_mut().push((bound, Rc::clone(&cases)));
            cases
        })
    }
}

/// The cases of a step in the fragments of a table: a tree of questions, which flags answer.
pub(super) struct Cases {
    /// What stands behind the "no" and the "yes" to each question. Before the first one is nothing to ask: all come in by its "no".
    tree: RefCell<Vec<[Standing; 2]>>,
    known: Cell<usize>,
}

/// A place in the tree: behind the "no" (false) or the "yes" (true) to the question of a number.
pub(super) type Place = (usize, bool);

/// What stands at a place of the tree.
#[derive(Clone, Default)]
pub(super) enum Standing {
    /// What fragments give that come here.
    Case(Rc<Case>),
    /// The number of a question, and its flag.
    Question(usize, u32),
    /// Nothing yet.
    #[default]
    Nothing,
}

impl Default for Cases {
    fn default() -> Cases {
        Cases { tree: RefCell::new(vec![Default::default()]), known: Cell::new(0) }
    }
}

impl Cases {
    /// Where every fragment comes in.
    pub const ENTRY: Place = (0, false);

    /// What stands at a place.
    pub fn at(&self, (number, stands): Place) -> Standing {
        match self.tree.borrow().get(number) {
            Some([no, yes]) => (if stands { yes } else { no }).clone(),
            None => Standing::Nothing,
        }
    }

    fn put(&self, (number, stands): Place, standing: Standing) {
        if let Some([no, yes]) = self.tree.borrow_mut().get_mut(number) {
            *(if stands { yes } else { no }) = standing;
        }
    }

    /// The case of a fragment for which these flags stand, found where it is not known.
    pub fn case(&self, stands: impl Fn(u32) -> bool, find: impl FnOnce() -> Case) -> Rc<Case> {
        let mut place = Cases::ENTRY;
        loop {
            match self.at(place) {
                Standing::Case(case) => return case,
                Standing::Question(number, flag) => place = (number, stands(flag)),
                Standing::Nothing => break,
            }
        }
        let case = Rc::new(find());
        self.remember(stands, &case);
        case
    }

    /// Finds the case of a fragment that comes where nothing stands; false where so many are known that none is remembered.
    pub fn learn(&self, stands: impl Fn(u32) -> bool, find: impl FnOnce() -> Case) -> bool {
        let has_room = self.known.get() < MOST_CASES;
        if has_room {
            self.remember(stands, &Rc::new(find()));
        }
        has_room
    }

    fn remember(&self, stands: impl Fn(u32) -> bool, case: &Rc<Case>) {
        if self.known.get() >= MOST_CASES {
            return;
        }
        let (mut place, mut asked) = (Cases::ENTRY, Vec::new());
        while let Standing::Question(number, flag) = self.at(place) {
            place = (number, stands(flag));
            asked.push(flag);
        }
        for (flag, stands) in case.asked.iter().filter(|(flag, _)| !asked.contains(flag)) {
            let number = self.tree.borrow().len();
            self.tree.borrow_mut().push(Default::default());
            self.put(place, Standing::Question(number, *flag));
            place = (number, *stands);
        }
        self.put(place, Standing::Case(Rc::clone(case)));
        self.known.set(self.known.get() + 1);
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Facts of {} shapes", self.by_address.borrow().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rm::arbitrary::Generator;

    /// What a fragment with these flags may be asked: each answer decides what is asked next, and sometimes what stands in it, too.
    fn case_of(flags: u32, random: &mut Generator) -> Case {
        let (mut asked, mut at) = (Vec::new(), 0);
        while at < 12 {
            let stands = flags >> at & 1 == 1;
            asked.push((at, stands));
            at += 1 + u32::from(stands) + random.next(2) as u32 * u32::from(at == 4);
        }
        Case { asked, expansion: Expansion::Walk }
    }

    #[test]
    fn a_fragment_comes_to_a_case_that_can_be_said_of_it() {
        for seed in 0..100 {
            let (cases, mut random) = (Cases::default(), Generator::new(seed));
            let mut found = Vec::new();
            for _ in 0..300 {
                let flags = random.next(1 << 12) as u32;
                let stands = |flag: u32| flags >> flag & 1 == 1;
                let case = cases.case(stands, || case_of(flags, &mut random));
                assert!(case.asked.iter().all(|(flag, stood)| stands(*flag) == *stood));
                found.push((flags, case));
            }
            let tree = cases.tree.borrow().clone();
            let known: Vec<&Rc<Case>> =
                tree.iter().flatten().filter_map(|standing| if let Standing::Case(case) = standing { Some(case) } else { None }).collect();
            assert_eq!(known.len(), MOST_CASES);
            let known = |case: &Rc<Case>| known.iter().any(|known| Rc::ptr_eq(known, case));
            for (flags, case) in found.iter().filter(|(_, case)| known(case)) {
                let again = cases.case(|flag| flags >> flag & 1 == 1, || panic!("it is known"));
                assert!(Rc::ptr_eq(case, &again));
            }
            assert!(!cases.learn(|flag| flag == 0, || panic!("there is no room")));
        }
    }
}
