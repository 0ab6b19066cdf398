//! Files for the local server. Its build has this module (feature `files`); the page and the npm
//! package do not.

use aqlite::samples::{Generator, composition_line, ehr_line, guides, templates};
use wasm_bindgen::prelude::*;

/// Returns the OpenAPI document of the REST interface as JSON text.
#[wasm_bindgen]
pub fn openapi() -> String {
    aqlite::service::openapi().to_string()
}

/// Returns sample data: the JSON text of an object of texts by file name.
#[wasm_bindgen(js_name = sampleFiles)]
pub fn sample_files(ehrs: usize, compositions: usize, seed: u32) -> String {
    let mut files = serde_json::Map::new();
    for template in templates() {
        let name = format!("templates/{}.opt", template.template_id);
        files.insert(name, template.text.into());
    }
    for guide in guides() {
        files.insert(format!("guides/{}.json", guide.id), guide.text.into());
    }
    let generator = Generator::new(u64::from(seed), ehrs, compositions);
    let (mut heads, mut documents) = (String::new(), String::new());
    for number in 0..generator.ehrs() {
        let ehr = generator.ehr(number);
        heads.push_str(&ehr_line(&ehr));
        heads.push('\n');
        for index in generator.compositions_of(number) {
            documents.push_str(&composition_line(&ehr, &generator.composition(index)));
            documents.push('\n');
        }
    }
    files.insert("ehrs.ndjson".into(), heads.into());
    files.insert("compositions.ndjson".into(), documents.into());
    serde_json::Value::from(files).to_string()
}
