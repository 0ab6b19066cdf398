//! The names of the files of a lake. Each kind of file has one pattern, which both writes and
//! recognizes its names. Files with other names belong to the user.

/// The file of the state.
pub const STATE: &str = "_aqlite/state.json";

/// The file that a sync locks.
pub const LOCK: &str = "_aqlite/lock";

/// The folder of the state.
pub const OWN: &str = "_aqlite";

/// The data files of a view, in `VIEW/data`.
pub const DATA: Pattern<2> = Pattern::new(
    "data",
    &[
        SYNC,
        Part::Text("-"),
        Part::Digits(4),
        Part::Text(".parquet"),
    ],
);

/// The metadata of tables of Apache Iceberg, in `VIEW/metadata`.
pub const METADATA: Pattern<1> = Pattern::new(
    "metadata",
    &[
        Part::Text("v"),
        Part::Digits(1),
        Part::Text(".metadata.json"),
    ],
);

/// The lists of manifests of a table.
pub const LIST: Pattern<1> = Pattern::new("metadata", &[SYNC, Part::Text("-list.avro")]);

/// The manifests of a table.
pub const MANIFEST: Pattern<1> = Pattern::new("metadata", &[SYNC, Part::Text("-m0.avro")]);

/// The file that names the newest metadata of a table.
pub const HINT: Pattern<0> = Pattern::new("metadata", &[Part::Text("version-hint.text")]);

/// The indexes of objects. They have one folder for all views.
pub const INDEX: Pattern<1> = Pattern::new(
    "_aqlite/objects",
    &[Part::View, Part::Text("-"), SYNC, Part::Text(".index")],
);

/// The lists of issued pseudonyms. The lake has one of them.
pub const ISSUED: Pattern<1> = Pattern::new(
    "_aqlite/pseudonyms",
    &[Part::Digits(8), Part::Text(".list")],
);

/// The filters of the tokens of data files, with the numbers of these.
pub const TOKENS: Pattern<2> = Pattern::new(
    "_aqlite/tokens",
    &[
        Part::View,
        Part::Text("-"),
        SYNC,
        Part::Text("-"),
        Part::Digits(4),
        Part::Text(".filter"),
    ],
);

/// The patterns of files in the folder of a view.
const OF_VIEW: [Names; 5] = [
    DATA.names,
    METADATA.names,
    LIST.names,
    MANIFEST.names,
    HINT.names,
];

/// The patterns of files in folders of the lake.
const OF_LAKE: [Names; 3] = [INDEX.names, ISSUED.names, TOKENS.names];

/// The number of a sync.
const SYNC: Part = Part::Digits(8);

/// The names of a kind of file, with `N` numbers.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<const N: usize> {
    names: Names,
}

/// The names of a kind of file.
#[derive(Clone, Copy, Debug)]
struct Names {
    /// The folder: that of the lake if a part is the view, else one in the folder of the view.
    folder: &'static str,
    parts: &'static [Part],
}

/// A part of a name.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// A text.
    Text(&'static str),
    /// A number with this many digits, or more if it is larger.
    Digits(usize),
    /// The name of the view.
    View,
}

/// A folder of the lake, with the patterns of the files that belong to it.
#[derive(Debug)]
pub struct OwnFolder {
    /// The name in the lake.
    pub name: String,
    patterns: Vec<Names>,
}

impl<const N: usize> Pattern<N> {
    /// Creates a pattern. Compilation fails if the parts have another number of numbers than `N`.
    const fn new(folder: &'static str, parts: &'static [Part]) -> Pattern<N> {
        assert!(
            count_of_numbers(parts) == N,
            "the type of a pattern has the number of its numbers"
        );
        Pattern {
            names: Names { folder, parts },
        }
    }

    /// Returns the name of a file in the lake. `numbers` are those of the pattern, in its order.
    pub fn name(&self, view: &str, numbers: [u64; N]) -> String {
        let (mut name, mut numbers) = (self.names.folder_of(view), numbers.into_iter());
        name.push('/');
        for part in self.names.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::View => name.push_str(view),
                // `new` has counted them, so there is one for each part.
                Part::Digits(least) => {
                    name.extend(numbers.next().map(|number| format!("{number:0least$}")));
                }
            }
        }
        name
    }
}

/// Returns how many of the parts are numbers.
const fn count_of_numbers(mut parts: &[Part]) -> usize {
    let mut count = 0;
    // A constant function has neither iterators nor closures.
    while let Some((first, rest)) = parts.split_first() {
        if matches!(first, Part::Digits(_)) {
            count += 1;
        }
        parts = rest;
    }
    count
}

impl Names {
    fn folder_of(&self, view: &str) -> String {
        let is_of_lake = self.folder.starts_with(OWN);
        match is_of_lake {
            true => self.folder.to_owned(),
            false => format!("{view}/{}", self.folder),
        }
    }

    /// Returns whether a name without its folder is one of these.
    fn has(&self, name: &str) -> bool {
        fits(self.parts, name)
    }
}

impl OwnFolder {
    /// Returns the folders of a view.
    pub fn of_view(view: &str) -> Vec<OwnFolder> {
        folders(view, &OF_VIEW)
    }

    /// Returns the folders that all views share.
    pub fn of_lake() -> Vec<OwnFolder> {
        folders("", &OF_LAKE)
    }

    /// Returns whether a file of the folder has a name that a sync gives. `name` is the one in the
    /// folder.
    pub fn has(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.has(name))
    }
}

/// Returns whether a file in the folder of the state is the state.
pub fn is_state(name: &str) -> bool {
    STATE.rsplit('/').next() == Some(name)
}

fn folders(view: &str, patterns: &[Names]) -> Vec<OwnFolder> {
    let mut found: Vec<OwnFolder> = Vec::new();
    for pattern in patterns {
        let name = pattern.folder_of(view);
        match found.iter_mut().find(|folder| folder.name == name) {
            Some(folder) => folder.patterns.push(*pattern),
            None => found.push(OwnFolder {
                name,
                patterns: vec![*pattern],
            }),
        }
    }
    found
}

/// Returns whether a text consists of these parts. A number ends at the first other character, because
/// no text behind one begins with a digit.
fn fits(parts: &[Part], text: &str) -> bool {
    let Some((part, rest)) = parts.split_first() else {
        return text.is_empty();
    };
    match part {
        Part::Text(expected) => text
            .strip_prefix(expected)
            .is_some_and(|text| fits(rest, text)),
        Part::Digits(least) => {
            let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
            text.len() - behind.len() >= *least && fits(rest, behind)
        }
        // The name of a view may have any of the texts and digits that follow it.
        Part::View => text
            .char_indices()
            .skip(1)
            .any(|(at, _)| fits(rest, text.get(at..).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pattern_recognizes_the_names_that_it_writes() {
        for (name, view, expected) in [
            (DATA.name("v", [1, 2]), "v", "v/data/00000001-0002.parquet"),
            (
                DATA.name("v", [123_456_789, 12_345]),
                "v",
                "v/data/123456789-12345.parquet",
            ),
            (
                METADATA.name("v", [12]),
                "v",
                "v/metadata/v12.metadata.json",
            ),
            (LIST.name("v", [3]), "v", "v/metadata/00000003-list.avro"),
            (MANIFEST.name("v", [3]), "v", "v/metadata/00000003-m0.avro"),
            (HINT.name("v", []), "v", "v/metadata/version-hint.text"),
            (ISSUED.name("", [1]), "", "_aqlite/pseudonyms/00000001.list"),
            (
                TOKENS.name("a-1", [1, 2]),
                "a-1",
                "_aqlite/tokens/a-1-00000001-0002.filter",
            ),
            (
                INDEX.name("a-1-b", [1]),
                "a-1-b",
                "_aqlite/objects/a-1-b-00000001.index",
            ),
        ] {
            assert_eq!(name, expected);
            let mut folders = OwnFolder::of_view(view);
            folders.extend(OwnFolder::of_lake());
            let (folder, file) = name.rsplit_once('/').unwrap();
            let own: Vec<&OwnFolder> = folders.iter().filter(|one| one.has(file)).collect();
            assert_eq!(own.len(), 1, "{name}");
            assert_eq!(own[0].name, folder);
        }
        assert!(is_state("state.json") && !is_state("lock"));
    }

    #[test]
    fn names_of_the_user_are_not_those_of_a_sync() {
        let mut folders = OwnFolder::of_view("v");
        folders.extend(OwnFolder::of_lake());
        for name in [
            "",
            "notes.txt",
            "1-1.parquet",
            "part-0001.parquet",
            "00000001.parquet",
            "00000001-0001.parquet.bak",
            "v.metadata.json",
            "00000001-mine.avro",
            "-00000001.index",
            "a-1.index",
        ] {
            let own = folders.iter().find(|folder| folder.has(name));
            assert!(own.is_none(), "{name}: {own:?}");
        }
    }
}
