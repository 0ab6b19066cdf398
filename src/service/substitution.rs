//! The text of a query as executed: with the values of its parameters.

use crate::aql::{Parameter, Parameters};

/// Bytes of an executed query after which placeholders are not replaced.
const MAX_SUBSTITUTED: usize = 1_000_000;

/// Replaces the placeholders of a query by their values.
pub(super) fn substituted(q: &str, parameters: &Parameters) -> String {
    let mut out = String::with_capacity(q.len());
    let mut quote = None;
    let mut rest = q;
    while let Some(c) = rest.chars().next() {
        let behind = rest.get(c.len_utf8()..).unwrap_or_default();
        match (c, quote) {
            ('$', None) => {
                let end = behind
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(behind.len());
                let (name, after) = behind.split_at(end);
                match parameters.get(name) {
                    // Bounds the text: a query may name a long value a thousand times.
                    Some(value) if out.len() < MAX_SUBSTITUTED => out.push_str(&literal(value)),
                    _ => {
                        out.push(c);
                        out.push_str(name);
                    }
                }
                rest = after;
                continue;
            }
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        out.push(c);
        rest = behind;
    }
    out
}

fn literal(parameter: &Parameter) -> String {
    match parameter {
        Parameter::Null => String::from("NULL"),
        Parameter::Boolean(value) => value.to_string(),
        Parameter::Number(text) => text.clone(),
        Parameter::Text(text) | Parameter::Untyped(text) => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        Parameter::List(values) => values.iter().map(literal).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_not_repeated_without_end() {
        let long = Parameter::Text("x".repeat(600_000));
        let parameters = Parameters::from([(String::from("a"), long)]);
        let executed = substituted(&["x = $a"; 900].join(" AND "), &parameters);
        assert!(executed.len() < 2_000_000 && executed.ends_with("x = $a"));
        // A name is read once, not from each of its letters.
        let word = format!("SELECT {} FROM EHR e", "a".repeat(250_000));
        assert_eq!(substituted(&word, &parameters), word);
    }

    #[test]
    fn placeholders_outside_texts_are_substituted() {
        let parameters = Parameters::from([
            (String::from("a"), Parameter::Text(String::from("it's"))),
            (String::from("n"), Parameter::Number(String::from("1.50"))),
        ]);
        assert_eq!(
            substituted("WHERE x = $a AND y > $n AND z = '$a' AND $ab", &parameters),
            r"WHERE x = 'it\'s' AND y > 1.50 AND z = '$a' AND $ab"
        );
    }
}
