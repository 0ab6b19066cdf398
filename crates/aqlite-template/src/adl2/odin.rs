//! A parser of ODIN: attributes, keyed items and values.

use super::*;

/// A value with its name or key.
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) value: Odin,
    pub(super) place: Span,
}

/// An ODIN value, as far as templates need it.
pub(super) enum Odin {
    /// Named attributes or keyed items.
    Object(Vec<Attribute>),
    /// Texts, codes and numbers, as written.
    Texts(Vec<String>),
}

impl Odin {
    pub(super) fn attributes(&self) -> &[Attribute] {
        if let Odin::Object(all) = self {
            all
        } else {
            &[]
        }
    }

    pub(super) fn into_attributes(self) -> Vec<Attribute> {
        if let Odin::Object(all) = self {
            all
        } else {
            Vec::new()
        }
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let all = if let Odin::Texts(all) = self {
            all.as_slice()
        } else {
            &[]
        };
        all.iter().map(String::as_str)
    }
}

/// Matches a value without delimiters.
fn scalar(text: &str) -> IResult<&str, &str> {
    take_while1(|c: char| !matches!(c, ',' | '>' | '"' | '[' | '<') && !c.is_whitespace())
        .parse(text)
}

/// ODIN.
impl AdlReader<'_> {
    /// Reads attributes or keyed items up to the end of text, or up to a `>`.
    pub(super) fn attributes(&mut self) -> Result<Vec<Attribute>, Diagnostic> {
        let mut all = Vec::new();
        loop {
            // The semicolon between attributes is optional.
            self.eats(";");
            let place = match self.next_char() {
                None | Some('>') => return Ok(all),
                Some(_) => self.place(),
            };
            let name = self.name(place)?;
            self.expect("=", "behind a name")?;
            all.push(Attribute {
                name,
                value: self.odin()?,
                place,
            });
        }
    }

    /// Reads the name of an attribute, or a key in brackets.
    fn name(&mut self, place: Span) -> Result<String, Diagnostic> {
        if !self.eats("[") {
            let name = self.word().map(str::to_owned);
            return name.ok_or_else(|| broken(place, "expected a name or a key of ODIN"));
        }
        let key = self.take(quoted).map(unescaped);
        let key = key.or_else(|| {
            self.take(|text| take_while1(|c| c != ']').parse(text))
                .map(|key| key.trim().to_owned())
        });
        self.expect("]", "behind a key")?;
        Ok(key.unwrap_or_default())
    }

    pub(super) fn odin(&mut self) -> Result<Odin, Diagnostic> {
        self.deeper()?;
        self.count_item()?;
        if self.eats("(") {
            // Skip the class of the object.
            let place = self.place();
            self.until(")")
                .ok_or_else(|| broken(place, "the `(` of a class is not closed"))?;
        }
        self.expect("<", "before a value")?;
        let value = if self.is_object_of_odin() {
            Odin::Object(self.attributes()?)
        } else {
            Odin::Texts(self.texts()?)
        };
        self.expect(">", "behind a value")?;
        self.depth -= 1;
        Ok(value)
    }

    /// Returns whether attributes or keyed items follow, rather than a value.
    fn is_object_of_odin(&mut self) -> bool {
        match self.next_char() {
            // A quoted text in brackets is a key. Without quotes it is a code.
            Some('[') => quoted(self.rest().get(1..).unwrap_or_default().trim_start()).is_ok(),
            // A word is the name of an attribute only if `=` follows. A URI may have one further on.
            Some(c) if c.is_ascii_alphabetic() => word(self.rest())
                .is_ok_and(|(behind, _)| behind.trim_ascii_start().starts_with('=')),
            _ => false,
        }
    }

    pub(super) fn texts(&mut self) -> Result<Vec<String>, Diagnostic> {
        let mut all = Vec::new();
        loop {
            let next = self.next_char();
            let place = self.place();
            let text = match next {
                Some('>') => return Ok(all),
                Some(',') => {
                    self.at += 1;
                    continue;
                }
                Some('"') => {
                    let text = self.take(quoted).map(unescaped);
                    text.ok_or_else(|| broken(place, "the text is never closed"))
                }
                Some('[') => {
                    self.at += 1;
                    let code = self.until("]").map(|code| code.trim().to_owned());
                    code.ok_or_else(|| broken(place, "the code is never closed"))
                }
                Some(_) => {
                    let scalar = self.take(scalar).map(str::to_owned);
                    scalar.ok_or_else(|| broken(place, "expected a value of ODIN"))
                }
                None => Err(broken(place, "the value is never closed: `>` is missing")),
            };
            all.push(text?);
            self.count_item()?;
        }
    }
}
