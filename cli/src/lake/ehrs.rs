//! The EHRs of the rows of a view.

use super::pseudonym::{Pseudonyms, Replaced};
use std::collections::HashMap;

/// The EHRs whose rows were read, with the ids that the dataset has.
pub struct LakeEhrs<'e> {
    pseudonyms: Option<&'e Pseudonyms>,
    /// The subjects of EHRs, if there are pseudonyms.
    subjects: &'e HashMap<String, String>,
    numbers: HashMap<String, u32>,
    all: Vec<(String, Replaced)>,
    /// The EHR of the last row. Rows of one EHR often follow one another.
    last: Option<(String, u32)>,
}

impl<'e> LakeEhrs<'e> {
    /// Creates the list without any EHR.
    pub fn new(
        pseudonyms: Option<&'e Pseudonyms>,
        subjects: &'e HashMap<String, String>,
    ) -> LakeEhrs<'e> {
        LakeEhrs {
            pseudonyms,
            subjects,
            numbers: HashMap::new(),
            all: Vec::new(),
            last: None,
        }
    }

    /// Returns the number of an EHR, which is added if it is new.
    pub fn number_of(&mut self, ehr_id: &str) -> u32 {
        if let Some((last, number)) = &self.last
            && last == ehr_id
        {
            return *number;
        }
        let number = self.numbers.get(ehr_id).copied();
        let number = number.unwrap_or_else(|| self.add(ehr_id));
        self.last = Some((ehr_id.to_owned(), number));
        number
    }

    fn add(&mut self, ehr_id: &str) -> u32 {
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let subject = self.subjects.get(ehr_id);
        self.all.push(match self.pseudonyms {
            Some(pseudonyms) => (
                pseudonyms.of_ehr(ehr_id),
                pseudonyms.replaced(ehr_id, subject),
            ),
            None => (ehr_id.to_owned(), Replaced::default()),
        });
        self.numbers.insert(ehr_id.to_owned(), number);
        number
    }

    /// Returns the id of an EHR in the dataset, and the ids that are replaced in its rows.
    pub fn get(&self, number: u32) -> Option<(&str, &Replaced)> {
        let (shown, replaced) = self.all.get(number as usize)?;
        Some((shown, replaced))
    }

    /// Returns the ids of the EHRs in the dataset, in the order of their numbers.
    pub fn into_shown(self) -> Vec<String> {
        self.all.into_iter().map(|(shown, _)| shown).collect()
    }
}
