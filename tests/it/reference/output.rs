//! The steps after WHERE: groups and aggregates, order, distinct rows, window, and the printing of
//! cells.

use super::number::Number;
use super::value::{self, Value};
use super::{At, Row, World, time};
use aqlite::aql::query::{Aggregate, ColumnValue, Expr, Literal, OrderBy, Window};
use aqlite::document::ObjectKind;
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json;
use aqlite::rm::number;
use aqlite::rm::tree::{Kind, NodeRef};
use std::cmp::Ordering;

/// A cell: its text, its key for equality, and its key for sorting.
#[derive(Clone)]
struct Cell {
    json: String,
    identity: String,
    key: Key,
}

#[derive(Clone)]
enum Key {
    Number(Number),
    Temporal(time::Interval),
    Text(String),
    Boolean(bool),
    Object,
    Null,
}

struct Line {
    cells: Vec<Cell>,
    keys: Vec<Key>,
}

pub fn finish(world: &World<'_>, rows: &[Row<'_>]) -> Vec<String> {
    let query = world.query;
    let grouped = query
        .select
        .iter()
        .any(|c| matches!(c.value, ColumnValue::Aggregate(_)));
    let mut lines: Vec<Line> = if grouped {
        groups(world, rows).iter().map(|g| line(world, g)).collect()
    } else {
        rows.iter().map(|r| line(world, &[r])).collect()
    };
    lines.sort_by(|a, b| {
        let keys = query.order.iter().zip(a.keys.iter().zip(&b.keys));
        keys.map(|(by, (a, b))| {
            if by.descending {
                order(b, a)
            } else {
                order(a, b)
            }
        })
        .find(|o| o.is_ne())
        .unwrap_or(Ordering::Equal)
    });
    if query.distinct {
        let mut seen: Vec<Vec<String>> = Vec::new();
        lines.retain(|line| {
            let identity: Vec<String> = line.cells.iter().map(|c| c.identity.clone()).collect();
            let new = !seen.contains(&identity);
            seen.push(identity);
            new
        });
    }
    let texts = lines.iter().map(|l| {
        format!(
            "[{}]",
            l.cells
                .iter()
                .map(|c| c.json.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        )
    });
    match query.window {
        Some(Window::First { limit, offset }) => {
            texts.skip(offset as usize).take(limit as usize).collect()
        }
        Some(Window::Last { limit }) => texts
            .rev()
            .take(limit as usize)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect(),
        None => texts.collect(),
    }
}

/// Returns the rows of each group, in order of their first rows.
fn groups<'r, 'a>(world: &World<'a>, rows: &'r [Row<'a>]) -> Vec<Vec<&'r Row<'a>>> {
    let columns: Vec<&Expr> = world
        .query
        .select
        .iter()
        .filter_map(|c| match &c.value {
            ColumnValue::Expr(expr @ (Expr::Path(_) | Expr::Call(..))) => Some(expr),
            _ => None,
        })
        .collect();
    let mut groups: Vec<(Vec<String>, Vec<&Row<'a>>)> = if columns.is_empty() {
        vec![(Vec::new(), Vec::new())]
    } else {
        Vec::new()
    };
    for row in rows {
        let key: Vec<String> = columns
            .iter()
            .map(|c| expression(world, c, row).identity)
            .collect();
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, members)) => members.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// Returns the output row of a group or of a single row.
fn line<'a>(world: &World<'a>, rows: &[&Row<'a>]) -> Line {
    let cells: Vec<Cell> = world
        .query
        .select
        .iter()
        .map(|column| match &column.value {
            ColumnValue::Expr(expr @ Expr::Literal(_)) => expression(world, expr, &Vec::new()),
            ColumnValue::Expr(expr) => rows
                .first()
                .map_or_else(null, |row| expression(world, expr, row)),
            ColumnValue::Aggregate(aggregate) => aggregated(world, aggregate, rows),
        })
        .collect();
    let keys = world.query.order.iter().map(|by| match by.key {
        OrderBy::Column(column) => cells[column].key.clone(),
        OrderBy::Path(path) => rows.first().map_or(Key::Null, |row| {
            expression(world, &Expr::Path(path), row).key
        }),
    });
    Line {
        keys: keys.collect(),
        cells,
    }
}

fn aggregated<'a>(world: &World<'a>, aggregate: &Aggregate, rows: &[&Row<'a>]) -> Cell {
    let present =
        |path: &usize| -> Vec<At<'a>> { rows.iter().filter_map(|row| row[*path]).collect() };
    let numbers = |path: &usize| -> Vec<Number> {
        present(path)
            .into_iter()
            .filter_map(|at| Value::of(at).number())
            .collect()
    };
    match aggregate {
        Aggregate::CountRows => of_number(Number::of(rows.len() as f64)),
        Aggregate::Count(path) => of_number(Number::of(present(path).len() as f64)),
        Aggregate::CountDistinct(path) => {
            let mut all: Vec<String> = present(path)
                .into_iter()
                .map(|at| of_node(world, at).identity)
                .collect();
            all.sort();
            all.dedup();
            of_number(Number::of(all.len() as f64))
        }
        Aggregate::Sum(path) if !numbers(path).is_empty() => whole_sum(&present(path))
            .unwrap_or_else(|| of_number(Number::of(sum(&parts(&present(path)))))),
        Aggregate::Avg(path) if !numbers(path).is_empty() => {
            let sum = sum(&parts(&present(path)));
            let average = of_number(Number::of(sum / numbers(path).len() as f64));
            let point = if average.json.contains('.') { "" } else { ".0" };
            Cell {
                json: format!("{}{point}", average.json),
                ..average
            }
        }
        Aggregate::Sum(_) | Aggregate::Avg(_) => null(),
        Aggregate::Min(path) => best(world, &present(path), Ordering::Less),
        Aggregate::Max(path) => best(world, &present(path), Ordering::Greater),
    }
}

fn best<'a>(world: &World<'a>, nodes: &[At<'a>], wanted: Ordering) -> Cell {
    if nodes
        .iter()
        .any(|at| matches!(Value::of(*at), Value::TextObject(_) | Value::Object))
    {
        return null();
    }
    let cells = nodes.iter().map(|at| of_node(world, *at));
    cells
        .reduce(|best, cell| {
            if order(&cell.key, &best.key) == wanted {
                cell
            } else {
                best
            }
        })
        .unwrap_or_else(null)
}

/// The order of types: numbers, durations, texts with dates and times among them, booleans,
/// objects, NULL.
fn order(a: &Key, b: &Key) -> Ordering {
    let rank = |key: &Key| match key {
        Key::Number(_) => 0,
        Key::Temporal(('l', ..)) => 1,
        Key::Temporal(_) | Key::Text(_) => 2,
        Key::Boolean(_) => 3,
        Key::Object => 4,
        Key::Null => 5,
    };
    let place = |key: &Key| match key {
        Key::Text(text) => (text.clone(), 0),
        Key::Temporal(interval) if interval.0 == 'd' => (time::place(*interval), 1),
        Key::Temporal(interval) => (time::place(*interval), 2),
        _ => (String::new(), 0),
    };
    match (a, b) {
        (Key::Number(a), Key::Number(b)) => a.compare(*b).unwrap_or(Ordering::Equal),
        (Key::Temporal(a), Key::Temporal(b)) if a.0 == b.0 => a.cmp(b),
        (Key::Boolean(a), Key::Boolean(b)) => a.cmp(b),
        _ => (rank(a), place(a)).cmp(&(rank(b), place(b))),
    }
}

fn null() -> Cell {
    Cell {
        json: "null".to_owned(),
        identity: "null".to_owned(),
        key: Key::Null,
    }
}

fn of_number(number: Number) -> Cell {
    Cell {
        // Two shortest notations may be equally near. The engine's printer decides between them.
        json: match number.beyond_doubles() {
            Some(whole) => whole.to_string(),
            None => number::shortest(number.double + 0.0),
        },
        identity: format!("number {}", number.identity()),
        key: Key::Number(number),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    json::quote_into(&mut out, text);
    out
}

fn of_value(value: &Value) -> Cell {
    match value {
        Value::Number(number) => of_number(*number),
        Value::Boolean(flag) => Cell {
            json: flag.to_string(),
            identity: flag.to_string(),
            key: Key::Boolean(*flag),
        },
        other => match other.text() {
            Some(text) => Cell {
                json: quoted(&text),
                identity: format!("text {text}"),
                key: Key::Text(text),
            },
            None => null(),
        },
    }
}

fn expression<'a>(world: &World<'a>, expr: &Expr, row: &Row<'a>) -> Cell {
    match expr {
        Expr::Path(path) => row[*path].map_or_else(null, |at| of_node(world, at)),
        Expr::Literal(Literal::Number(token)) => Cell {
            json: token.to_string(),
            ..of_value(&world.value(expr, row))
        },
        _ => of_value(&world.value(expr, row)),
    }
}

fn of_node(world: &World<'_>, at: At<'_>) -> Cell {
    let value = Value::of(at);
    let key = match &value {
        // The text of a duration sorts as text, a whole DV_DURATION by its length.
        Value::Temporal(Cls::DV_DURATION, text) => Key::Text(text.clone()),
        Value::Temporal(class, text) | Value::TemporalObject(class, text) => {
            time::read(*class, text).map_or_else(|| Key::Text(text.clone()), Key::Temporal)
        }
        Value::TextObject(text) => Key::Text(text.clone()),
        Value::Object => Key::Object,
        plain => of_value(plain).key,
    };
    let identity = match at.node.kind() {
        Kind::Object => deep(at.node),
        _ => of_value(&value).identity,
    };
    let mut json = json::write(at.node);
    if at.node.class() == Cls::EHR {
        let mut statuses = world.repository.documents.iter().filter(|d| {
            d.ehr == at.ehr && d.row.kind == ObjectKind::EhrStatus && d.row.latest && !d.row.deleted
        });
        let uid = statuses.next_back().and_then(|d| {
            d.tree
                .root()?
                .text_along(&[Attr::DATA, Attr::UID, Attr::VALUE])
        });
        if let Some(uid) = uid {
            json.pop();
            json += &format!(
                r#","ehr_status":{{"_type":"OBJECT_REF","id":{{"_type":"OBJECT_VERSION_ID","value":"{uid}"}},"namespace":"local","type":"EHR_STATUS"}}}}"#
            );
        }
    }
    Cell {
        json,
        identity,
        key,
    }
}

/// Returns the content of an object as text, with numbers compared by value.
fn deep(node: NodeRef<'_>) -> String {
    let children = node
        .children()
        .map(|c| format!("{:?}={}", c.attr(), deep(c)));
    match node.kind() {
        Kind::Number => {
            Number::parse(node.text()).map_or_else(|| node.text().to_owned(), Number::identity)
        }
        Kind::Text => quoted(node.text()),
        Kind::Boolean => node.text().to_owned(),
        Kind::Object => format!(
            "{}{{{}}}",
            node.class(),
            children.collect::<Vec<_>>().join(",")
        ),
        Kind::List => format!("[{}]", children.collect::<Vec<_>>().join(",")),
    }
}

/// Returns the sum of numbers with all its digits: where it is whole and all are of an integer type,
/// or where it is beyond the whole numbers that doubles hold.
fn whole_sum(nodes: &[At<'_>]) -> Option<Cell> {
    let numbers = nodes.iter().filter(|at| Value::of(**at).number().is_some());
    let are_integers = numbers.clone().all(|at| value::is_integer(*at));
    let partials = partial_sums(&parts(nodes));
    // Partial sums do not overlap, so their sum is whole only if each of them is.
    let is_whole = partials.iter().all(|partial| partial.fract() == 0.0);
    let sum: i128 = partials.iter().map(|partial| *partial as i128).sum();
    let sum = Number::of_whole(sum);
    (is_whole && (are_integers || sum.beyond_doubles().is_some())).then(|| of_number(sum))
}

/// Returns doubles whose sum is exactly that of the stored numbers. A long whole number becomes
/// several.
fn parts(nodes: &[At<'_>]) -> Vec<f64> {
    let of = |at: &At<'_>| {
        let number = Value::of(*at).number()?.double;
        let whole = value::digits(*at)
            .and_then(|digits| digits.parse::<i128>().ok())
            .filter(|_| number.abs() > 1e15);
        Some(whole.map_or_else(
            || vec![number],
            |whole| {
                vec![
                    (whole >> 40) as f64 * 2_f64.powi(40),
                    (whole & ((1 << 40) - 1)) as f64,
                ]
            },
        ))
    };
    nodes.iter().filter_map(of).flatten().collect()
}

/// Returns the exact sum, rounded once.
fn sum(numbers: &[f64]) -> f64 {
    rounded(partial_sums(numbers))
}

/// Returns numbers whose sum is exactly that of others. They do not overlap, so no digit is lost
/// (J. R. Shewchuk, Adaptive Precision Floating-Point Arithmetic, 1997).
fn partial_sums(numbers: &[f64]) -> Vec<f64> {
    let mut partials: Vec<f64> = Vec::new();
    for number in numbers {
        let mut high = *number;
        let mut rest = Vec::new();
        for partial in partials {
            let (large, small) = match high.abs() < partial.abs() {
                true => (partial, high),
                false => (high, partial),
            };
            high = large + small;
            let low = small - (high - large);
            rest.extend((low != 0.0).then_some(low));
        }
        rest.push(high);
        partials = rest;
    }
    partials
}

/// Returns the sum of partial sums in ascending order, rounded to the nearest double, and to the
/// even one if two are equally near.
fn rounded(mut partials: Vec<f64>) -> f64 {
    let mut high = partials.pop().unwrap_or(0.0);
    while let Some(next) = partials.pop() {
        let before = high;
        high = before + next;
        let low = next - (high - before);
        if low != 0.0 {
            // Half of the last place was rounded to even, but smaller partial sums are beyond it.
            let is_beyond = partials.last().is_some_and(|p| (*p < 0.0) == (low < 0.0));
            let twice = high + 2.0 * low;
            return if is_beyond && twice - high == 2.0 * low {
                twice
            } else {
                high
            };
        }
    }
    high
}
