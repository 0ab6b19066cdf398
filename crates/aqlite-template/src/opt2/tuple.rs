//! Tuples of attributes: quantities, ordinals and scales.

use super::super::tree::{Attribute, Constraint, Interval, OrdinalItem, QuantityItem};
use super::super::xml::Xml;
use aqlite_rm::class::Cls;

/// Reads attributes that are constrained together as tuples.
///
/// These are units, magnitude and precision of a quantity, and value and symbol of an ordinal or
/// scale. They are removed from the attributes that are constrained one by one.
pub(super) fn tupled(
    class: Option<Cls>,
    tuple: Xml<'_>,
    attributes: &mut Vec<Attribute>,
) -> Option<Constraint> {
    let names: Vec<&str> = tuple.all("members").map(Xml::text).collect();
    // Supported tuples have at most three members.
    if names.len() > 3 {
        return None;
    }
    let (members, others): (Vec<Attribute>, Vec<Attribute>) = std::mem::take(attributes)
        .into_iter()
        .partition(|a| names.contains(&a.name.as_str()));
    *attributes = others;
    let table = TupleTable {
        rows: members.first()?.children.len(),
        members,
    };
    let is_known = |known: &[&str]| table.members.len() == names.len() && table.has_only(known);
    match class? {
        Cls::DV_QUANTITY if is_known(&["units", "magnitude", "precision"]) => {
            let list = (0..table.rows).map(|row| table.quantity(row));
            Some(Constraint::Quantity {
                property: None,
                list: list.collect::<Option<_>>()?,
            })
        }
        Cls::DV_ORDINAL | Cls::DV_SCALE if is_known(&["value", "symbol"]) => {
            let list = (0..table.rows).map(|row| table.ordinal(row));
            Some(Constraint::Ordinal {
                list: list.collect::<Option<_>>()?,
            })
        }
        _ => None,
    }
}

/// The rows of a tuple: each member has one child for each row.
struct TupleTable {
    members: Vec<Attribute>,
    rows: usize,
}

impl TupleTable {
    /// Returns whether all members have these names and a child for each row.
    fn has_only(&self, known: &[&str]) -> bool {
        let mut members = self.members.iter();
        members.all(|m| known.contains(&m.name.as_str()) && m.children.len() == self.rows)
    }

    fn cell(&self, name: &str, row: usize) -> Option<&Constraint> {
        let member = self.members.iter().find(|m| m.name == name)?;
        Some(&member.children.get(row)?.constraint)
    }

    fn quantity(&self, row: usize) -> Option<QuantityItem> {
        let range = |name: &str| self.cell(name, row).and_then(range_of);
        Some(QuantityItem {
            units: self.cell("units", row).and_then(only_text)?,
            magnitude: range("magnitude"),
            precision: range("precision"),
        })
    }

    fn ordinal(&self, row: usize) -> Option<OrdinalItem> {
        let range = self.cell("value", row).and_then(range_of)?;
        let value = range.lower.filter(|lower| range.upper == Some(*lower))?;
        ordinal_item(value, self.cell("symbol", row)?)
    }
}

/// Returns a pair of value and symbol, if the symbol is exactly one code.
fn ordinal_item(value: f64, symbol: &Constraint) -> Option<OrdinalItem> {
    let Constraint::Code {
        terminology, codes, ..
    } = symbol
    else {
        return None;
    };
    let [code] = codes.as_slice() else {
        return None;
    };
    Some(OrdinalItem {
        value,
        terminology: terminology.clone(),
        code: code.clone(),
    })
}

fn range_of(constraint: &Constraint) -> Option<Interval<f64>> {
    match constraint {
        Constraint::Integer { range, .. } => range.as_ref().map(Interval::doubles),
        Constraint::Real { range, .. } => range.clone(),
        _ => None,
    }
}

fn only_text(constraint: &Constraint) -> Option<String> {
    match constraint {
        Constraint::Text {
            pattern: None,
            list,
            ..
        } if list.len() == 1 => list.first().cloned(),
        _ => None,
    }
}
