//! Prints the OpenAPI document of the REST interface.

fn main() {
    println!("{}", aqlite::service::openapi());
}
