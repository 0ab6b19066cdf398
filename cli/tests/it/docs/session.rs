//! A folder, a shell and a server in which the blocks of one page run.

use super::super::program::Folder;
use super::super::serve::server::{PROGRAM, Server};
use super::page::{Block, Page, root};
use aqlite::samples::{
    Generator, bulk_composition_line, bulk_ehr_line, composition_line, ehr_line, guides, templates,
};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The addresses in the pages: of `aqlite serve`, and of `cargo xtask serve`, which has sample data.
const ADDRESSES: [(&str, &[&str]); 2] = [
    ("127.0.0.1:8080", &["--open"]),
    ("127.0.0.1:8787", &["--open", "--sample"]),
];
/// The folders of the project that commands of the pages read. They start in its root.
const ROOT_FOLDERS: [&str; 2] = ["benches/queries", "www/samples"];
/// The command that generates data. The session writes the same data without cargo.
pub const GENERATE: &str = "cargo xtask gen-data ";
/// The line between the outputs of two commands.
const MARK: &str = "-- end of a command of the documentation --";
/// The variables of the shell, from one block to the next.
const STATE: &str = ".state";

/// The state of a page.
pub struct Session {
    folder: Folder,
    /// The server, and its address in the page.
    server: Option<(Server, &'static str)>,
}

impl Session {
    /// Writes the data of `cargo xtask gen-data` commands of the page, and starts the server whose
    /// address its blocks have.
    pub fn new(page: &Page) -> Session {
        let folder = Folder::new();
        folder.write(STATE, "");
        ROOT_FOLDERS.iter().for_each(|name| copy(&folder, name));
        let blocks = page.blocks();
        let runs = blocks.iter().filter(|block| block.reason().is_none());
        for command in runs.clone().flat_map(Block::commands) {
            if let Some(options) = command.strip_prefix(GENERATE) {
                gen_data(&folder, options);
            }
        }
        let mut session = Session {
            folder,
            server: None,
        };
        let text: String = runs.clone().map(Block::text).collect();
        if !runs.clone().any(Block::is_server) {
            let used = ADDRESSES.iter().find(|(address, _)| text.contains(address));
            if let Some((address, options)) = used {
                let mut command = session.serve();
                command.args(*options);
                session.server = Some((session.start(&mut command), address));
            }
        }
        session
    }

    fn serve(&self) -> Command {
        let mut command = self.folder.command(&["serve"]);
        command.args(["--listen", "127.0.0.1:0", "--log", "off"]);
        command
    }

    fn start(&self, command: &mut Command) -> Server {
        Server::spawn(command, &self.folder.path().join(".server.log"))
    }

    /// Starts the server of a block: `aqlite serve` with its options.
    ///
    /// # Errors
    /// If the block is not one such command.
    pub fn start_server(&mut self, block: &Block) -> Result<(), String> {
        let options = match block.body.as_slice() {
            [line] => line
                .split('#')
                .next()
                .and_then(|l| l.strip_prefix("aqlite serve")),
            _ => None,
        };
        let options = options.ok_or("a server block is one command `aqlite serve …`")?;
        let mut command = self.serve();
        command.args(options.split_whitespace());
        self.server = Some((self.start(&mut command), ADDRESSES[0].0));
        Ok(())
    }

    /// Writes a file of the page.
    pub fn write(&self, name: &str, text: &str) {
        self.folder.write(name, text);
    }

    /// Runs a script in the state that the blocks before it left.
    pub fn script(&self, script: &str) -> Output {
        let program = Path::new(PROGRAM).parent().unwrap().display().to_string();
        let path = format!("{program}:{}", std::env::var("PATH").unwrap());
        let script = format!("exec 2>&1\n. ./{STATE}\nset -a\n{script}\nexport -p > {STATE}\n");
        let script = self.to_server(&script);
        Command::new("sh")
            .args(["-c", &script])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("NO_COLOR", "1")
            .env("AQLITE_CACHE_DIR", self.folder.path().join(".cache"))
            .env_remove("AQLITE_AUTHORIZATION")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs commands one after the other. Returns the lines that each writes.
    pub fn outputs(&self, commands: &[String]) -> Vec<Vec<String>> {
        let script: String = commands
            .iter()
            .map(|command| format!("{command}\nprintf '\\n{MARK}\\n'\n"))
            .collect();
        let output = self.script(&script);
        let written = self.to_page(&String::from_utf8_lossy(&output.stdout));
        let mark = format!("\n{MARK}\n");
        let parts = written.split(&mark);
        let lines = |part: &str| part.lines().map(|l| l.trim_end().to_owned()).collect();
        parts.take(commands.len()).map(lines).collect()
    }

    /// Runs a module of JavaScript.
    pub fn javascript(&self, text: &str) -> Output {
        self.write(".block.mjs", &self.to_server(text));
        let node = Command::new("node")
            .arg(".block.mjs")
            .current_dir(self.folder.path())
            .output();
        node.expect("Node, which the tests need")
    }

    fn to_server(&self, text: &str) -> String {
        match &self.server {
            Some((server, address)) => text.replace(address, &server.authority),
            None => text.to_owned(),
        }
    }

    /// Replaces the address of the server by that of the page.
    pub fn to_page(&self, text: &str) -> String {
        match &self.server {
            Some((server, address)) => text.replace(&server.authority, address),
            None => text.to_owned(),
        }
    }
}

/// Copies a folder of the project.
fn copy(folder: &Folder, name: &str) {
    std::fs::create_dir_all(folder.path().join(name)).unwrap();
    for entry in std::fs::read_dir(root().join(name)).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_owned();
        std::fs::copy(&path, folder.path().join(name).join(file)).unwrap();
    }
}

/// Returns the value of an option, such as 20 of `--ehrs 20`.
fn option<'o>(options: &'o str, name: &str) -> Option<&'o str> {
    let mut words = options.split_whitespace();
    words.find(|word| *word == name)?;
    words.next()
}

/// Writes the files of `cargo xtask gen-data`.
fn gen_data(folder: &Folder, options: &str) {
    let number = |name: &str, default: usize| {
        option(options, name).map_or(default, |value| value.parse().unwrap())
    };
    let seed = u64::try_from(number("--seed", 1)).unwrap();
    let generator = Generator::new(seed, number("--ehrs", 100), number("--compositions", 1000));
    let out = option(options, "--out").expect("`--out` of gen-data");
    for template in templates() {
        folder.write(
            &format!("{out}/templates/{}.opt", template.template_id),
            template.text,
        );
    }
    for guide in guides() {
        folder.write(&format!("{out}/guides/{}.json", guide.id), guide.text);
    }
    let (mut ehrs, mut compositions, mut bulk) = (String::new(), String::new(), String::new());
    for number in 0..generator.ehrs() {
        let ehr = generator.ehr(number);
        ehrs.push_str(&format!("{}\n", ehr_line(&ehr)));
        bulk.push_str(&format!("{}\n", bulk_ehr_line(&ehr)));
        for index in generator.compositions_of(number) {
            let one = generator.composition(index);
            compositions.push_str(&format!("{}\n", composition_line(&ehr, &one)));
            bulk.push_str(&format!("{}\n", bulk_composition_line(&ehr, &one)));
        }
    }
    folder.write(&format!("{out}/ehrs.ndjson"), &ehrs);
    folder.write(&format!("{out}/compositions.ndjson"), &compositions);
    if options.contains("--bulk") {
        folder.write(&format!("{out}/bulk.ndjson"), &bulk);
    }
}
