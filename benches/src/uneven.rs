//! The worst case of the storage: random optional elements, so that few documents have the same
//! layout.

/// The number of optional elements.
const OPTIONAL: u32 = 25;

/// The selection of the optional elements of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extras {
    /// No optional element: the documents as generated.
    None,
    /// Half of them, the same in each document.
    Same,
    /// Each with probability 1/2: as many as `Same` on average.
    Random,
}

impl Extras {
    /// Inserts the optional elements at the head of the first list of items of a composition.
    pub fn add(self, json: String, index: usize) -> String {
        let chosen = match self {
            Extras::None => return json,
            Extras::Same => 0x0155_5555,
            Extras::Random => mixed(index as u64),
        };
        let Some((before, after)) = json.split_once(r#""items":["#) else {
            return json;
        };
        let elements: String = (0..OPTIONAL)
            .filter(|i| chosen >> i & 1 == 1)
            .map(|i| element(i, index))
            .collect();
        format!(r#"{before}"items":[{elements}{after}"#)
    }

    /// Returns the texts of the optional elements, which a template would define.
    pub fn known_texts() -> impl Iterator<Item = String> {
        (0..OPTIONAL).map(name).chain(["mm".to_owned()])
    }
}

fn name(number: u32) -> String {
    format!("Further measurement {number}")
}

fn element(number: u32, index: usize) -> String {
    let (name, value) = (name(number), mixed(index as u64 + u64::from(number)) % 1000);
    format!(
        r#"{{"_type":"ELEMENT","archetype_node_id":"at9{number:03}","name":{{"_type":"DV_TEXT","value":"{name}"}},"value":{{"_type":"DV_QUANTITY","magnitude":{value}.5,"units":"mm"}}}},"#
    )
}

/// Returns pseudo-random bits (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut z = number
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
