//! AdlReader of ODIN: attributes, keyed items and values.

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
            let name = if self.eats("[") {
                let key = self.take(quoted).map(unescaped);
                let key = key.or_else(|| {
                    self.take(|text| take_while1(|c| c != ']').parse(text))
                        .map(|key| key.trim().to_owned())
                });
                self.expect("]", "behind a key")?;
                key.unwrap_or_default()
            } else {
                self.word()
                    .ok_or_else(|| broken(place, "expected a name or a key of ODIN"))?
                    .to_owned()
            };
            self.expect("=", "behind a name")?;
            all.push(Attribute {
                name,
                value: self.odin()?,
                place,
            });
        }
    }

    pub(super) fn odin(&mut self) -> Result<Odin, Diagnostic> {
        self.deeper()?;
        if self.eats("(") {
            // Skip the class of the object.
            let place = self.place();
            self.until(")")
                .ok_or_else(|| broken(place, "the `(` of a class is not closed"))?;
        }
        self.expect("<", "before a value")?;
        let is_object = match self.next_char() {
            // A quoted text in brackets is a key. Without quotes it is a code.
            Some('[') => quoted(self.rest().get(1..).unwrap_or_default().trim_start()).is_ok(),
            Some(c) => {
                // A word is the name of an attribute only if `=` follows before the next bracket.
                c.is_ascii_alphabetic()
                    && self
                        .rest()
                        .split(['>', '<'])
                        .next()
                        .is_some_and(|front| front.contains('='))
            }
            None => false,
        };
        let value = if is_object {
            Odin::Object(self.attributes()?)
        } else {
            Odin::Texts(self.texts()?)
        };
        self.expect(">", "behind a value")?;
        self.depth -= 1;
        Ok(value)
    }

    pub(super) fn texts(&mut self) -> Result<Vec<String>, Diagnostic> {
        let mut all = Vec::new();
        loop {
            match self.next_char() {
                Some('>') => return Ok(all),
                Some('"') => {
                    let place = self.place();
                    all.push(unescaped(
                        self.take(quoted)
                            .ok_or_else(|| broken(place, "the text is never closed"))?,
                    ));
                }
                Some(',') => self.at += 1,
                Some('[') => {
                    let place = self.place();
                    self.at += 1;
                    all.push(
                        self.until("]")
                            .ok_or_else(|| broken(place, "the code is never closed"))?
                            .trim()
                            .to_owned(),
                    );
                }
                Some(_) => {
                    let place = self.place();
                    let scalar = self.take(|text| {
                        take_while1(|c: char| {
                            !matches!(c, ',' | '>' | '"' | '[' | '<' | '=') && !c.is_whitespace()
                        })
                        .parse(text)
                    });
                    all.push(
                        scalar
                            .ok_or_else(|| broken(place, "expected a value of ODIN"))?
                            .to_owned(),
                    );
                }
                None => {
                    return Err(broken(
                        self.place(),
                        "the value is never closed: `>` is missing",
                    ));
                }
            }
        }
    }
}
