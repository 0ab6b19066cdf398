//! The EHRs of the rows of a view.

use super::pseudonym::Identifiers;
use std::collections::HashMap;

/// The EHRs whose rows were read, with the ids that the dataset has.
pub struct LakeEhrs<'e> {
    identifiers: Option<&'e Identifiers<'e>>,
    numbers: HashMap<String, u32>,
    all: Vec<String>,
    /// The EHR of the last row. Rows of one EHR often follow one another.
    last: Option<(String, u32)>,
}

impl<'e> LakeEhrs<'e> {
    /// Creates the list without any EHR.
    pub fn new(identifiers: Option<&'e Identifiers<'e>>) -> LakeEhrs<'e> {
        LakeEhrs {
            identifiers,
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
        self.all.push(match self.identifiers {
            Some(identifiers) => identifiers.key().of_ehr(ehr_id),
            None => ehr_id.to_owned(),
        });
        self.numbers.insert(ehr_id.to_owned(), number);
        number
    }

    /// Returns the id of an EHR in the dataset.
    pub fn get(&self, number: u32) -> Option<&str> {
        self.all.get(number as usize).map(String::as_str)
    }

    /// Returns the ids of the EHRs in the dataset, in the order of their numbers.
    pub fn into_shown(self) -> Vec<String> {
        self.all
    }
}
