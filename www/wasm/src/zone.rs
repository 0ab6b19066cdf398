//! Time zones of the IANA database, as the JavaScript runtime knows them, for the page and the
//! worker.

use js_sys::{Date, Function, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};

/// Returns the offset of a zone in seconds east of UTC at a number of milliseconds since 1970.
/// `None` for a zone that the runtime does not know.
pub fn offset(zone: &str, millis: i64) -> Option<i32> {
    let millis = millis as f64;
    let (date, options) = (Date::new(&JsValue::from_f64(millis)), Object::new());
    Reflect::set(&options, &"timeZone".into(), &zone.into()).ok()?;
    let to_locale_string: Function = Reflect::get(&date, &"toLocaleString".into())
        .ok()?
        .dyn_into()
        .ok()?;
    // Swedish writes date and time as in ISO 8601.
    let local = to_locale_string
        .call2(&date, &"sv".into(), &options)
        .ok()?
        .as_string()?;
    let local = Date::parse(&format!("{local}Z"));
    local
        .is_finite()
        .then(|| ((local - millis) / 1000.0).round() as i32)
}
