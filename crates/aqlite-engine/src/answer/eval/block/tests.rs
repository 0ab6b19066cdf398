//! Tests of blocks: comparisons, parts, ranks, and rows that do not exist.

use super::{
    Block, Cells, CompareOp, Fragment, ItemKind, Node, ParentCells, ParentRef, ParentRows,
    ProjectedCell, Selection, View, is_outside, rank_of,
};
use crate::answer::eval::work::Work;
use crate::document::{
    Batch, DocRow, EhrRow, Layout, LayoutStore, NothingKnown, ObjectKind, Table, pack,
};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::json;
use std::rc::Rc;

/// The number of evaluations, which needs three words of a bitmap.
const LEN: u32 = 130;

/// Returns the magnitude of the evaluation in a row; `None` for a row without one.
fn magnitude_of(row: u32) -> Option<f64> {
    (row % 5 != 2).then(|| f64::from(row * 37 % 101))
}

fn text_of(row: u32) -> &'static str {
    ["a", "b", "c"][row as usize % 3]
}

/// Returns a batch of compositions with one evaluation each, of a text and an optional count.
fn batch() -> Batch {
    let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
    let ehr = batch.add_ehr(EhrRow {
        ehr_id: "e".into(),
        system_id: "test".into(),
        time_created: "2026-01-01T00:00:00Z".into(),
        is_queryable: true,
    });
    for row in 0..LEN {
        let element = |id: u32, value: String| {
            format!(
                r#"{{"_type":"ELEMENT","archetype_node_id":"at000{id}","name":{{"value":"E"}},"value":{value}}}"#
            )
        };
        let text = format!(r#"{{"_type":"DV_TEXT","value":"{}"}}"#, text_of(row));
        let count = |n: f64| format!(r#"{{"_type":"DV_COUNT","magnitude":{n}}}"#);
        let count = magnitude_of(row).map(|n| element(2, count(n)));
        let elements: Vec<String> = std::iter::once(element(1, text)).chain(count).collect();
        let version = format!(
            r#"{{"_type":"ORIGINAL_VERSION","uid":{{"value":"o{row}::test::1"}},"data":{{"_type":"COMPOSITION","archetype_node_id":"openEHR-EHR-COMPOSITION.c.v1","name":{{"value":"N"}},"content":[{{"_type":"EVALUATION","archetype_node_id":"openEHR-EHR-EVALUATION.e.v1","name":{{"value":"N"}},"data":{{"_type":"ITEM_LIST","archetype_node_id":"at0000","name":{{"value":"L"}},"items":[{}]}}}}]}}}}"#,
            elements.join(",")
        );
        let tree = json::read(&version, Cls::VERSION).unwrap();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &layouts);
        let row = DocRow {
            kind: ObjectKind::Composition,
            object_id: format!("o{row}"),
            number: 1,
            ordinal: u64::from(row),
            latest: true,
            deleted: false,
        };
        batch.add(ehr, row, &packed);
    }
    assert_eq!(batch.broken(), None);
    batch
}

/// Returns the item of the leaf at an attribute of the value of an element.
fn leaf_of(layout: &Layout, class: Cls, attr: Attr) -> u32 {
    let is_wanted = |item: u32| {
        let item = layout.item(item).unwrap();
        let parent = layout.item(item.parent).unwrap();
        matches!(item.kind, ItemKind::Leaf(..))
            && (item.attr, parent.attr, parent.class) == (Some(attr), Some(Attr::VALUE), class)
    };
    let items = 0..layout.items().len() as u32;
    items.into_iter().find(|item| is_wanted(*item)).unwrap()
}

/// The path of the count in the blocks of the tests.
const COUNT: usize = 0;
/// The path of the text.
const TEXT: usize = 1;

/// Returns the block of some rows of the evaluations.
fn block(batch: &Batch, rows: Vec<u32>, parent_rows: ParentRows) -> Block<'_> {
    let mut tables = batch.tables();
    let is_evaluation = |table: &Table| table.layout().class() == Cls::EVALUATION;
    let (number, table) = tables.find(|(_, table)| is_evaluation(table)).unwrap();
    let cell = |column: usize, class: Cls, attr: Attr| {
        let layout = table.layout();
        ProjectedCell::of(layout, column, leaf_of(layout, class, attr))
    };
    let cells: Cells = Rc::from([
        cell(COUNT, Cls::DV_COUNT, Attr::MAGNITUDE),
        cell(TEXT, Cls::DV_TEXT, Attr::VALUE),
    ]);
    Block {
        table,
        number,
        cells,
        rows: Selection::Indices(rows),
        template: 0,
        parent_rows,
        above: Vec::new(),
    }
}

/// Returns parent rows without cells: that of each row has its number plus 1,000.
fn parents_of(rows: &[u32]) -> ParentRows {
    let parent = ParentCells {
        number: 0,
        cells: Rc::from([]),
    };
    ParentRows::Known {
        parents: Rc::from([parent]),
        parent_of: rows
            .iter()
            .map(|row| ParentRef {
                cells: 0,
                row: row + 1000,
            })
            .collect(),
    }
}

/// Returns the rows with a number, in ascending order.
fn counted_rows() -> Vec<u32> {
    (0..LEN)
        .filter(|row| magnitude_of(*row).is_some())
        .collect()
}

/// Returns the broken invariant of a function that reads by a view of a batch.
fn broken(batch: &Batch, read: impl FnOnce(View<'_>)) -> Option<&'static str> {
    let work = Work::new(1_000_000, 1_000_000, 1_000_000);
    read(View::new(batch).counting(&work));
    work.broken()
}

#[test]
fn comparison_keeps_the_rows_whose_number_passes() {
    type Test = fn(f64, f64) -> bool;
    let tests: [(CompareOp, Test); 6] = [
        (CompareOp::Eq, |a, b| a == b),
        (CompareOp::Ne, |a, b| a != b),
        (CompareOp::Lt, |a, b| a < b),
        (CompareOp::Le, |a, b| a <= b),
        (CompareOp::Gt, |a, b| a > b),
        (CompareOp::Ge, |a, b| a >= b),
    ];
    let (batch, rows) = (batch(), counted_rows());
    for (op, test) in tests {
        for limit in [-1.0, 0.0, 37.0, 50.5, 200.0] {
            let passes = |row: &u32| magnitude_of(*row).is_some_and(|number| test(number, limit));
            let expected: Vec<u32> = rows.iter().copied().filter(passes).collect();
            for parent_rows in [ParentRows::None, ParentRows::Unused, parents_of(&rows)] {
                let mut block = block(&batch, rows.clone(), parent_rows);
                let numbers = block.numbers(COUNT).unwrap();
                let failure = broken(&batch, |view| block.compare(view, numbers, op, limit));
                assert_eq!(failure, None);
                assert_eq!(*block.rows.rows(), *expected);
                if let ParentRows::Known { parent_of, .. } = &block.parent_rows {
                    let parents: Vec<u32> =
                        parent_of.iter().map(|parent| parent.row - 1000).collect();
                    assert_eq!(parents, expected);
                }
                assert!(block.is_sound(2));
            }
        }
    }
}

#[test]
fn parts_of_a_split_have_the_rows_of_one_text() {
    let (batch, rows) = (batch(), (0..LEN).collect::<Vec<_>>());
    let whole = block(&batch, rows.clone(), ParentRows::None);
    let parts = whole.split_by(&[TEXT]).unwrap();
    let found: Vec<Vec<u32>> = parts
        .into_iter()
        .map(|part| part.rows.into_rows())
        .collect();
    let expected = ["a", "b", "c"].map(|text| {
        let of_text = rows.iter().copied().filter(|row| text_of(*row) == text);
        of_text.collect::<Vec<u32>>()
    });
    assert_eq!(found, expected);
    assert!(whole.split_by(&[COUNT]).is_none(), "a column of numbers");
    assert_eq!(whole.split_by(&[7]).unwrap().len(), 1, "no column");
}

/// Returns a block of some rows whose texts come from other rows of the table, as from a class
/// above. The block has no texts of its own.
fn block_below(batch: &Batch, rows: Vec<u32>, above: Vec<u32>) -> Block<'_> {
    let mut below = block(batch, rows, ParentRows::None);
    let mut of_above = block(batch, above, ParentRows::None);
    below.cells = Rc::from([below.cells[COUNT]]);
    of_above.cells = Rc::from([of_above.cells[TEXT]]);
    below.above.push(of_above);
    below
}

#[test]
fn rows_keep_their_rows_of_classes_above() {
    let (batch, rows) = (batch(), counted_rows());
    let above_of = |row: &u32| *row / 3;
    let above: Vec<u32> = rows.iter().map(above_of).collect();
    let mut below = block_below(&batch, rows.clone(), above.clone());
    assert!(below.is_sound(2));
    assert_eq!(below.block_of(TEXT).number, below.above[0].number);
    assert!(below.numbers(TEXT).is_none() && below.numbers(COUNT).is_some());
    for part in below.split_by(&[TEXT]).unwrap() {
        let texts: Vec<&str> = part.above[0]
            .rows
            .rows()
            .iter()
            .map(|row| text_of(*row))
            .collect();
        assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
        let own = part.rows.rows();
        let expected: Vec<u32> = own.iter().map(above_of).collect();
        assert_eq!(*part.above[0].rows.rows(), *expected);
    }
    let numbers = below.numbers(COUNT).unwrap();
    let failure = broken(&batch, |view| {
        below.compare(view, numbers, CompareOp::Ge, 37.0)
    });
    assert_eq!(failure, None);
    let own = below.rows.rows();
    assert!(!own.is_empty() && own.len() < rows.len());
    let expected: Vec<u32> = own.iter().map(above_of).collect();
    assert_eq!(*below.above[0].rows.rows(), *expected);
    assert!(!block_below(&batch, rows, above[1..].to_vec()).is_sound(2));
}

#[test]
fn ranks_have_the_order_of_the_numbers() {
    let (batch, rows) = (batch(), counted_rows());
    let block = block(&batch, rows.clone(), ParentRows::None);
    let mut ranks = Vec::new();
    let failure = broken(&batch, |view| {
        assert!(block.add_ranks(view, COUNT, &mut ranks))
    });
    assert_eq!(failure, None);
    let expected: Vec<i64> = rows
        .iter()
        .filter_map(|row| magnitude_of(*row))
        .map(rank_of)
        .collect();
    assert_eq!(ranks, expected);
    let ascending = [
        f64::NEG_INFINITY,
        -2.5,
        -0.0,
        1e-300,
        1.0,
        2.5,
        f64::INFINITY,
    ];
    assert!(ascending.map(rank_of).is_sorted_by(|a, b| a < b));
    assert_eq!(rank_of(-0.0), rank_of(0.0));
}

#[test]
fn row_of_a_block_that_does_not_exist_is_a_broken_invariant() {
    let batch = batch();
    let mut scratch = vec![Node::NONE; 2];
    let mut of = |parent_rows: ParentRows, i: usize, width: usize| {
        let block = block(&batch, vec![0, 64], parent_rows);
        scratch.resize(width, Node::NONE);
        let failure = broken(&batch, |view| block.fill(view, i, &mut scratch));
        (failure, scratch.first().map(|node| node.fragment))
    };
    let cell = |row: u32| {
        let table = block(&batch, Vec::new(), ParentRows::None).number;
        Some(Fragment { table, row })
    };
    assert_eq!(of(ParentRows::None, 1, 2), (None, cell(64)));
    assert_eq!(of(parents_of(&[0, 64]), 1, 2), (None, cell(64)));
    let missing = Some("a block has no row at an index");
    assert_eq!(of(ParentRows::None, 2, 2).0, missing);
    let childless = Some("a child row of a block has no parent row");
    assert_eq!(of(parents_of(&[0]), 1, 2).0, childless);
    let narrow = Some("a row lacks the column of a cell");
    assert_eq!(of(ParentRows::None, 0, 1).0, narrow);
}

#[test]
fn range_is_outside_if_none_of_its_values_passes() {
    let passes = |op: CompareOp, value: i32, limit: i32| match op {
        CompareOp::Eq => value == limit,
        CompareOp::Ne => value != limit,
        CompareOp::Lt => value < limit,
        CompareOp::Le => value <= limit,
        CompareOp::Gt => value > limit,
        CompareOp::Ge => value >= limit,
    };
    let ops = [
        CompareOp::Eq,
        CompareOp::Ne,
        CompareOp::Lt,
        CompareOp::Le,
        CompareOp::Gt,
        CompareOp::Ge,
    ];
    for op in ops {
        for (least, greatest) in [(3, 3), (3, 6)] {
            for limit in 1..9 {
                let can_pass = (least..=greatest).any(|value| passes(op, value, limit));
                // A range may be kept in vain, but is never left out if a value passes.
                assert!(!(can_pass && is_outside((least, greatest), op, limit)));
            }
        }
    }
    assert!(is_outside((3, 6), CompareOp::Lt, 2) && is_outside((3, 6), CompareOp::Eq, 7));
}
