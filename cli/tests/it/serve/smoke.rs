//! `cargo xtask smoke`, the test of a deployment from outside, against the program.

use super::server::{Folder, Server};
use std::process::Command;

#[test]
fn the_test_of_a_deployment_passes() {
    let folder = Folder::new("smoke");
    let server = Server::open(&folder);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../xtask/smoke.mjs");
    let base = format!("http://{}", server.authority);
    let mut smoke = Command::new("node");
    smoke.args([script, "--base", &base, "--no-page"]);
    let run = smoke.env_remove("AQLITE_TOKEN").output().expect("Node");
    let output = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{output}{errors}");
}
