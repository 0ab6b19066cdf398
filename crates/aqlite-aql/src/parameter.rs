//! Values of parameters from JSON, by one rule for requests and for the command line.

use super::check::{MAX_MEMBERS, Parameter};
use aqlite_rm::json::{self, elements};

/// The maximum nesting of lists. The checker reports a list of lists.
const DEPTH: u32 = 3;

impl Parameter {
    /// Reads the value of the parameter `name`: a JSON text, number, boolean, null, or a list of
    /// them. Numbers keep their text.
    ///
    /// # Errors
    /// A message for any other value, a list of more than [`MAX_MEMBERS`] values, and a list with
    /// null.
    pub fn from_json(name: &str, text: &str) -> Result<Parameter, String> {
        value(name, text, DEPTH)
    }
}

fn value(name: &str, text: &str, depth: u32) -> Result<Parameter, String> {
    let neither = || {
        format!("the parameter `{name}` is neither a text, a number, a boolean nor a list of them")
    };
    let text = text.trim();
    match text.bytes().next().ok_or_else(neither)? {
        b'"' => json::text(text).map(Parameter::Text).ok_or_else(neither),
        b't' | b'f' => text.parse().map(Parameter::Boolean).map_err(|_| neither()),
        b'n' => Ok(Parameter::Null),
        b'[' if depth > 0 => {
            let items = elements(text).map_err(|_| neither())?;
            list(name, &items, depth - 1)
        }
        b'{' | b'[' => Err(neither()),
        _ => Ok(Parameter::Number(text.to_owned())),
    }
}

fn list(name: &str, items: &[&str], depth: u32) -> Result<Parameter, String> {
    if items.len() > MAX_MEMBERS {
        return Err(format!(
            "the list `{name}` has more than {MAX_MEMBERS} values: store them as a value set, or ask in several queries"
        ));
    }
    let items = items
        .iter()
        .map(|item| value(name, item, depth))
        .collect::<Result<Vec<_>, _>>()?;
    if items.contains(&Parameter::Null) {
        return Err(format!(
            "the list `{name}` has a null, which no value equals: leave it out"
        ));
    }
    Ok(Parameter::List(items))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_types_and_lists_have_no_null() {
        let read = |text| Parameter::from_json("p", text);
        let text = |text: &str| Parameter::Text(text.to_owned());
        let number = |text: &str| Parameter::Number(text.to_owned());
        assert_eq!(read(" null "), Ok(Parameter::Null));
        assert_eq!(read("true"), Ok(Parameter::Boolean(true)));
        assert_eq!(read("1.50"), Ok(number("1.50")));
        assert_eq!(
            read(r#"["a", 2]"#),
            Ok(Parameter::List(vec![text("a"), number("2")]))
        );
        for refused in [r#"["a",null]"#, "{}", "[{}]", "[[[[1]]]]", "", "[1", "tru"] {
            assert!(read(refused).is_err(), "{refused}");
        }
    }
}
