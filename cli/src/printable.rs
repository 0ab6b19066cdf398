//! Texts of others, such as names of files and members, in messages at a terminal.

use std::borrow::Cow;

/// Returns a text with its control characters escaped, as in `\u{1b}`: they could change the state
/// of a terminal, or begin a line that looks like a message of the program.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, &|c| c.is_control())
}

/// Returns a text of several lines with its control characters escaped, except the ends of lines.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, &|c| c.is_control() && c != '\n')
}

fn escaped<'t>(text: &'t str, is_escaped: &dyn Fn(char) -> bool) -> Cow<'t, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_escaped(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let text = "a\u{1b}[2J\n\u{9b}å";
        assert_eq!(printable(text), r"a\u{1b}[2J\n\u{9b}å");
        assert_eq!(printable_lines(text), "a\\u{1b}[2J\n\\u{9b}å");
        assert!(matches!(printable("å"), Cow::Borrowed("å")));
    }
}
