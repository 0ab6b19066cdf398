//! The worst case of the storage: optional elements at random, so that hardly two documents have
//! the same skeleton.

/// Elements that a document may have besides its own.
const OPTIONAL: u32 = 25;

/// Which of the optional elements a document gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extras {
    /// None: the documents as the generator makes them.
    None,
    /// Half of them, always the same.
    Same,
    /// Each with an even chance: as many as `Same` on average.
    Random,
}

impl Extras {
    /// A composition with its optional elements, at the head of its first list of items.
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

    /// The texts of the optional elements, which a template would name.
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

/// Bits that look random (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut z = number
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
