//! The program and its data: how tests run one and write the other.

use aqlite::samples::{Generator, guides, templates};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

/// The modification time of files of test data: 2026-01-01T00:00:00Z.
const MODIFIED: u64 = 1_767_225_600;

/// A folder of test data.
pub struct Folder(TempDir);

/// The outcome of a run of the program.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file with a fixed time of modification.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        set_time(&path, MODIFIED);
        path
    }

    /// Runs the program in the folder, with an index folder of its own.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().unwrap())
    }

    /// Runs `aqlite shell` in the folder, with a script as its standard input.
    pub fn shell(&self, folders: &[&str], script: &str) -> Ran {
        let mut arguments = vec!["shell"];
        arguments.extend(folders.iter().flat_map(|folder| ["-d", folder]));
        let mut child = self
            .command(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        // The program writes while it reads: a full pipe must not stop both.
        std::thread::scope(|scope| {
            scope.spawn(move || input.write_all(script.as_bytes()).unwrap());
            ran(child.wait_with_output().unwrap())
        })
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aqlite"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("AQLITE_CACHE_DIR", self.path().join(".cache"))
            .env("NO_COLOR", "1");
        command
    }
}

/// Returns the corpus: that of `AQLITE_CORPUS`, else the one beside the project if it exists.
/// Relative paths start at the project's root. A named corpus must exist.
pub fn corpus() -> Option<PathBuf> {
    let named = std::env::var_os("AQLITE_CORPUS");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join(named.as_deref().unwrap_or("../shared/corpus".as_ref()));
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(named.is_none(), "the corpus {named:?} does not exist");
    println!("skipped: there is no corpus, and AQLITE_CORPUS names none");
    None
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Sets the time of modification of a file, in seconds since 1970.
pub fn set_time(path: &Path, seconds: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds))
        .unwrap();
}

/// The generator of the sample: 20 EHRs with 200 compositions.
pub fn generator() -> Generator {
    Generator::new(7, 20, 200)
}

/// A folder with the sample: `templates`, `guides`, and `data` with one folder for each EHR.
pub fn sample() -> &'static Folder {
    static SAMPLE: OnceLock<Folder> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let folder = Folder::new();
        write_definitions(&folder);
        let generator = generator();
        for ehr in 0..generator.ehrs() {
            let id = generator.ehr(ehr).ehr_id;
            for index in generator.compositions_of(ehr) {
                let json = generator.composition(index).json;
                folder.write(&format!("data/{id}/{index:04}.json"), &json);
            }
        }
        folder
    })
}

pub fn write_definitions(folder: &Folder) {
    for template in templates() {
        let name = format!("templates/{}.opt", template.template_id);
        folder.write(&name, template.text);
    }
    for guide in guides() {
        folder.write(&format!("guides/{}.gdl2.json", guide.id), guide.text);
    }
}

/// Writes a composition of the sample as a line of a bulk load.
pub fn bulk_line(generator: &Generator, index: usize) -> String {
    let one = generator.composition(index);
    let ehr = generator.ehr(one.ehr).ehr_id;
    format!(
        "{{\"ehr_id\":\"{ehr}\",\"uid\":\"{}\",\"composition\":{}}}\n",
        one.uid, one.json
    )
}

/// A query of systolic pressures, with the EHR.
pub const SYSTOLIC: &str = "SELECT e/ehr_id/value AS ehr,
 o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic
FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]
WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude >= $limit
ORDER BY systolic DESC, ehr";
