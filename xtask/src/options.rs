//! Options of a command line: `--name value`, `--flag` and plain words.

use std::collections::BTreeMap;

/// The options of one command, checked against its known options.
#[derive(Default)]
pub struct Options {
    values: BTreeMap<String, String>,
    flags: Vec<String>,
    /// The arguments that are not options.
    pub words: Vec<String>,
}

impl Options {
    /// Parses arguments. `valued` options have a value (`--port 1` or `--port=1`), `flags` do not.
    pub fn read(args: &[String], valued: &[&str], flags: &[&str]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let Some(name) = arg.strip_prefix("--") else {
                options.words.push(arg.clone());
                continue;
            };
            let (name, given) = name
                .split_once('=')
                .map_or((name, None), |(name, value)| (name, Some(value.to_owned())));
            if valued.contains(&name) {
                let value = given
                    .or_else(|| args.next().cloned())
                    .ok_or(format!("`--{name}` needs a value"))?;
                options.values.insert(name.to_owned(), value);
            } else if flags.contains(&name) && given.is_none() {
                options.flags.push(name.to_owned());
            } else {
                return Err(format!("unknown option `{arg}`; see `cargo xtask help`"));
            }
        }
        Ok(options)
    }

    /// Returns the value of an option, or its default.
    pub fn value<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.values.get(name).map_or(default, String::as_str)
    }

    /// Returns the value of an option that has no default.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Returns whether a flag is set.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }
}
