//! Writer of JSON text that keeps the order of its members.

use aqlite_rm::json::quote_into;

/// JSON text under construction.
#[derive(Debug, Default)]
pub(crate) struct JsonText {
    text: String,
}

impl JsonText {
    /// Returns the text.
    pub fn finish(self) -> String {
        self.text
    }

    /// Returns the number of bytes so far.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    fn separate(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(['{', '[', ':']) {
            self.text.push(',');
        }
    }

    /// Opens an object or a list: `{` or `[`.
    pub fn open(&mut self, bracket: char) {
        self.separate();
        self.text.push(bracket);
    }

    /// Closes an object or a list.
    pub fn close(&mut self, bracket: char) {
        self.text.push(bracket);
    }

    /// Writes the name of the next member.
    pub fn key(&mut self, name: &str) {
        self.separate();
        quote_into(&mut self.text, name);
        self.text.push(':');
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) {
        self.separate();
        quote_into(&mut self.text, text);
    }

    /// Writes a number, a boolean or any other JSON text unchanged.
    pub fn raw(&mut self, json: &str) {
        self.separate();
        self.text.push_str(json);
    }

    /// Writes a member with a text.
    pub fn member(&mut self, name: &str, text: &str) {
        self.key(name);
        self.text(text);
    }

    /// Writes a member with a number, a boolean or other JSON text.
    pub fn raw_member(&mut self, name: &str, json: &str) {
        self.key(name);
        self.raw(json);
    }

    /// Writes a member with a list of texts.
    pub fn texts<'a>(&mut self, name: &str, texts: impl IntoIterator<Item = &'a str>) {
        self.key(name);
        self.open('[');
        texts.into_iter().for_each(|t| self.text(t));
        self.close(']');
    }

    /// Writes a member with an object of texts. Omitted if there are none.
    pub fn map(&mut self, name: &str, members: &[(&str, &str)]) {
        if members.is_empty() {
            return;
        }
        self.key(name);
        self.object(members);
    }

    /// Writes an object of texts.
    pub fn object(&mut self, members: &[(&str, &str)]) {
        self.open('{');
        members.iter().for_each(|(k, v)| self.member(k, v));
        self.close('}');
    }
}
