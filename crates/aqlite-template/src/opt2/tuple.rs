//! Tuples of attributes.

use super::super::tree::{Attribute, Constraint, Interval, Node, OrdinalItem, QuantityItem};
use super::super::xml::Xml;
use aqlite_rm::class::{Attr, Cls};

/// The attributes of an object that its tuples constrain. Such an attribute has the cells of one
/// column: one for each row.
pub(super) struct Columns<'d> {
    /// The name of each attribute, and the ends of its cells in the list of its alternatives. For
    /// `[units, magnitude] matches {[{"mm", "cm"}, {>0}], [{"m"}, {>1}]}`, `units` has the
    /// alternatives `mm`, `cm`, `m` and the ends `[2, 3]`.
    ends: Vec<(&'d str, Vec<usize>)>,
}

/// The maximum number of tuples of an object that are read, and of members of a tuple: data values
/// have fewer attributes, and each name is compared with each attribute.
pub(super) const MAX_TUPLES: usize = 16;

/// The row of a tuple: constraints on different attributes.
type Row = Vec<Attribute>;

impl<'d> Columns<'d> {
    pub fn of(object: Xml<'d>) -> Columns<'d> {
        let tuples = object.all("attribute_tuples").take(MAX_TUPLES);
        let members = tuples.flat_map(|tuple| tuple.all("members").take(MAX_TUPLES));
        Columns {
            ends: members.map(|m| (m.text(), Vec::new())).collect(),
        }
    }

    /// Begins an attribute. If there are two of a name, the last one is the column.
    pub fn begin(&mut self, name: &str) {
        self.ends_of(name).for_each(Vec::clear);
    }

    /// Ends a cell of an attribute, which has this number of alternatives so far.
    pub fn end_cell(&mut self, name: &str, count: usize) {
        self.ends_of(name).for_each(|ends| ends.push(count));
    }

    fn ends_of(&mut self, name: &str) -> impl Iterator<Item = &mut Vec<usize>> {
        let named = self.ends.iter_mut().filter(move |(own, _)| *own == name);
        named.map(|(_, ends)| ends)
    }

    /// Replaces the constraints on the attributes of a tuple by the tuple. Returns `None` if its
    /// columns have different lengths, or an unknown attribute.
    pub fn constrain(&self, node: &mut Node, tuple: Xml<'_>) -> Option<()> {
        let names: Vec<&str> = tuple.all("members").map(Xml::text).collect();
        if names.len() > MAX_TUPLES {
            return None;
        }
        let (members, others): (Vec<Attribute>, Vec<Attribute>) =
            std::mem::take(&mut node.attributes)
                .into_iter()
                .partition(|a| names.contains(&a.name.as_str()));
        node.attributes = others;
        if members.len() != names.len() || members.iter().any(|m| m.attr.is_none()) {
            return None;
        }
        let rows = self.rows(&members)?;
        match node.class.and_then(|class| listed(class, &rows)) {
            Some(listed) => node.constraint = listed,
            None => {
                if node.class == Some(Cls::DV_QUANTITY) {
                    node.constraint = units(&members);
                }
                let is_new = |cell: &Attribute| {
                    let is_listed = matches!(node.constraint, Constraint::Quantity { .. });
                    !is_listed || cell.name != "units"
                };
                match <[Row; 1]>::try_from(rows) {
                    Ok([only]) => node.attributes.extend(only.into_iter().filter(is_new)),
                    Err(rows) => node.tuples.push(rows),
                }
            }
        }
        Some(())
    }

    fn rows(&self, members: &[Attribute]) -> Option<Vec<Row>> {
        let ends = |member: &Attribute| {
            let mut all = self.ends.iter();
            all.find(|(name, _)| *name == member.name)
                .map(|(_, ends)| ends)
        };
        let count = ends(members.first()?)?.len();
        if members.iter().any(|m| ends(m).map(Vec::len) != Some(count)) {
            return None;
        }
        let cell = |member: &Attribute, row: usize| {
            let ends = ends(member)?;
            let start = row
                .checked_sub(1)
                .map_or(Some(&0), |before| ends.get(before))?;
            Some(Attribute {
                attr: member.attr,
                name: member.name.clone(),
                existence: member.existence,
                cardinality: member.cardinality,
                children: member.children.get(*start..*ends.get(row)?)?.to_vec(),
            })
        };
        let row = |row: usize| members.iter().map(|m| cell(m, row)).collect();
        (0..count).map(row).collect()
    }
}

/// Returns the rows as a list of quantities, ordinals or scales, if these are all that they
/// constrain.
fn listed(class: Cls, rows: &[Row]) -> Option<Constraint> {
    let has_only = |known: &[&str]| {
        let mut cells = rows.iter().flatten();
        cells.all(|cell| known.contains(&cell.name.as_str()) && cell.children.len() == 1)
    };
    match class {
        Cls::DV_QUANTITY if has_only(&["units", "magnitude", "precision"]) => {
            Some(Constraint::Quantity {
                property: None,
                list: rows.iter().map(quantity).collect::<Option<_>>()?,
            })
        }
        Cls::DV_ORDINAL | Cls::DV_SCALE if has_only(&["value", "symbol"]) => {
            Some(Constraint::Ordinal {
                list: rows.iter().map(ordinal).collect::<Option<_>>()?,
            })
        }
        _ => None,
    }
}

/// Returns the constraint that lists the units of a tuple, for forms; an open one if it does not
/// list them.
fn units(members: &[Attribute]) -> Constraint {
    let member = members.iter().find(|member| member.name == "units");
    let cells = member.into_iter().flat_map(|member| &member.children);
    let mut list: Vec<QuantityItem> = Vec::new();
    for cell in cells {
        let Some(texts) = texts(&cell.constraint) else {
            return Constraint::Open;
        };
        for unit in texts {
            if !list.iter().any(|item| item.units == *unit) {
                list.push(QuantityItem {
                    units: unit.clone(),
                    magnitude: None,
                    precision: None,
                });
            }
        }
    }
    match list.is_empty() {
        true => Constraint::Open,
        false => Constraint::Quantity {
            property: None,
            list,
        },
    }
}

/// Returns the only constraint on an attribute of a row.
fn cell<'r>(row: &'r Row, name: &str) -> Option<&'r Constraint> {
    let cell = row.iter().find(|cell| cell.name == name)?;
    Some(&cell.children.first()?.constraint)
}

/// Returns a row as an item of a list of quantities, unless it lists several magnitudes or
/// precisions.
fn quantity(row: &Row) -> Option<QuantityItem> {
    let range = |name: &str| cell(row, name).map_or(Some(None), range_of);
    let [units] = texts(cell(row, "units")?)? else {
        return None;
    };
    Some(QuantityItem {
        units: units.clone(),
        magnitude: range("magnitude")?,
        precision: range("precision")?,
    })
}

fn ordinal(row: &Row) -> Option<OrdinalItem> {
    let range = range_of(cell(row, "value")?)??;
    let value = range.lower.filter(|lower| range.upper == Some(*lower))?;
    let symbol = row.iter().find(|cell| cell.name == "symbol")?;
    ordinal_item(value, code_of(symbol.children.first()?)?)
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

/// Returns the constraint on the code of a coded text, if there is no other constraint on the text.
fn code_of(text: &Node) -> Option<&Constraint> {
    match text.attributes.as_slice() {
        [only] if only.attr == Some(Attr::DEFINING_CODE) && text.tuples.is_empty() => {
            let [code] = only.children.as_slice() else {
                return None;
            };
            Some(&code.constraint)
        }
        _ => None,
    }
}

/// Returns the range of a number, absent if any number is permitted; `None` if the constraint is
/// none of one range.
fn range_of(constraint: &Constraint) -> Option<Option<Interval<f64>>> {
    match constraint {
        Constraint::Integer { range, list } if list.is_empty() => {
            Some(range.as_ref().map(Interval::doubles))
        }
        Constraint::Real { range, list } if list.is_empty() => Some(range.clone()),
        Constraint::Open => Some(None),
        _ => None,
    }
}

/// Returns the texts that a constraint lists, if it permits no others.
fn texts(constraint: &Constraint) -> Option<&[String]> {
    match constraint {
        Constraint::Text {
            pattern: None,
            list,
            open: false,
        } if !list.is_empty() => Some(list),
        _ => None,
    }
}
