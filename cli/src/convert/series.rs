//! The documents of a file on their way to the output, one at a time: a file of lines may have more
//! documents than fit into the memory.

use super::{Converter, Target};
use crate::data::files::SourceFile;
use crate::document_format::{DocumentFormat, Indenter};
use crate::outcome::{Failure, Outcome};
use crate::output_file::Output;
use aqlite::rm::tree::NodeRef;
use std::io::Write;

/// The documents of a file: one text for each, or an array of JSON.
pub struct Series<'t> {
    file: &'t SourceFile,
    /// The place to write.
    pub target: &'t Target<'t>,
    /// The number of documents so far.
    pub count: usize,
    /// The text of the only converted document so far, with its number: the next one decides its
    /// form.
    first: Option<(usize, String)>,
    /// The array, if several documents were converted to JSON.
    array: Option<Array>,
}

/// An array of JSON that is being written.
struct Array {
    /// The output; `None` if it was refused.
    out: Option<Output>,
    indenter: Indenter,
}

impl<'t> Series<'t> {
    /// Creates a series without documents.
    pub fn new(file: &'t SourceFile, target: &'t Target<'t>) -> Series<'t> {
        Series {
            file,
            target,
            count: 0,
            first: None,
            array: None,
        }
    }

    /// Converts a document and writes it, if its form is known. Reports one that cannot be converted.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn push(
        &mut self,
        converter: &mut Converter<'_>,
        root: NodeRef<'_>,
    ) -> Result<Outcome, Failure> {
        self.count += 1;
        if self.is_refused(converter) {
            // The end of the series reports their number.
            self.first = None;
            return Ok(Outcome::Success);
        }
        let text = match converter.text(&self.file.shown(), root) {
            Ok(text) => text,
            Err(Failure::Data(problem)) => return Ok(converter.refused(&problem)),
            Err(failure) => return Err(failure),
        };
        match converter.options.to {
            DocumentFormat::Json => self.add(converter, text),
            _ if self.count > 1 => {
                let outcome = match self.first.take() {
                    None => Outcome::Success,
                    Some((number, first)) => self.save(converter, Some(number), &first)?,
                };
                Ok(outcome.and(self.save(converter, Some(self.count), &text)?))
            }
            _ => self.hold(text),
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn finish(mut self, converter: &mut Converter<'_>) -> Result<Outcome, Failure> {
        if self.is_refused(converter) {
            let (path, count) = (self.file.shown(), self.count);
            let problem = "documents, and a text of this format has one";
            let help = "name an existing folder by -o, or write --to json";
            return Ok(converter.refused(&format!("{path}: {count} {problem}: {help}")));
        }
        if let Some((number, text)) = self.first.take() {
            let is_json = converter.options.to == DocumentFormat::Json;
            // Other documents of the file may have been left out.
            let number = (self.count > 1 && !is_json).then_some(number);
            return self.save(converter, number, &text);
        }
        if let Some(mut array) = self.array {
            array.write("]")?;
            if let Some(mut out) = array.out {
                out.write_all(b"\n")?;
                out.finish()?;
            }
        }
        Ok(Outcome::Success)
    }

    /// Returns whether the documents are too many for a text of the format.
    fn is_refused(&self, converter: &Converter<'_>) -> bool {
        let is_json = converter.options.to == DocumentFormat::Json;
        self.count > 1 && !is_json && !matches!(self.target, Target::InFolder(_))
    }

    fn hold(&mut self, text: String) -> Result<Outcome, Failure> {
        self.first = Some((self.count, text));
        Ok(Outcome::Success)
    }

    /// Adds a text of JSON to the array. The second one begins it.
    fn add(&mut self, converter: &mut Converter<'_>, text: String) -> Result<Outcome, Failure> {
        if let Some(array) = &mut self.array {
            array.write(",")?;
            array.write(&text)?;
            return Ok(Outcome::Success);
        }
        let Some((_, first)) = self.first.take() else {
            return self.hold(text);
        };
        let out = converter.open(self.file, self.target, None)?;
        let outcome = match out {
            Some(_) => Outcome::Success,
            None => Outcome::Findings,
        };
        let indenter = Indenter::default();
        let array = self.array.insert(Array { out, indenter });
        for part in ["[", &first, ",", &text] {
            array.write(part)?;
        }
        Ok(outcome)
    }

    fn save(
        &self,
        converter: &mut Converter<'_>,
        number: Option<usize>,
        text: &str,
    ) -> Result<Outcome, Failure> {
        let Some(mut out) = converter.open(self.file, self.target, number)? else {
            return Ok(Outcome::Findings);
        };
        out.write_all(text.as_bytes())?;
        out.finish()?;
        Ok(Outcome::Success)
    }
}

impl Array {
    fn write(&mut self, part: &str) -> std::io::Result<()> {
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        let mut indented = String::with_capacity(part.len());
        self.indenter.push(part, &mut indented);
        out.write_all(indented.as_bytes())
    }
}
