//! A server as a child process, with a folder of its own.

use super::over_http;
use super::said;
use aqlite::samples::{Generator, templates};
use aqlite::service::Response;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_aqlite");

/// The mount of openEHR ITS-REST.
pub const ITS: &str = "/rest/openehr/v1";

/// The maximum time until a server listens or ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder below the target folder, which is empty at first and removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Creates an empty folder.
    pub fn new(name: &str) -> Folder {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    /// Returns the path of the database.
    pub fn database(&self) -> PathBuf {
        self.0.join("test.db")
    }

    /// Runs a command of the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        command(self).args(arguments).output().expect("the program")
    }

    /// Runs a command that must succeed.
    pub fn succeed(&self, arguments: &[&str]) -> Output {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", said(&output));
        output
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Returns the program in a folder, without variables of the tests' environment.
fn command(folder: &Folder) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(&folder.0).env_clear();
    command
}

/// A running server. It is killed when this is dropped.
pub struct Server {
    child: Child,
    /// Host and port.
    pub authority: String,
}

impl Server {
    /// Starts a server on the database of a folder, and waits until it listens.
    pub fn start(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        let mut command = command(folder);
        command
            .args(["serve", "--db", "test.db", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .envs(variables.iter().copied());
        Server::spawn(&mut command, &folder.0.join("log"))
    }

    /// Starts a server, whose log is appended to a file, and waits until it listens.
    pub fn spawn(command: &mut Command, log: &Path) -> Server {
        let mut options = File::options();
        let file = options.create(true).append(true).open(log).expect("a log");
        let mut child = command
            // As below a service manager: without a terminal.
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .expect("the server");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let authority = lines.find_map(|line| {
            let line = line.expect("a line");
            let address = line.strip_prefix("aqlite listens on ")?;
            address.split_once("://").map(|(_, to)| to.to_owned())
        });
        let log = std::fs::read_to_string(log).unwrap_or_default();
        let server = Server {
            child,
            authority: authority.unwrap_or_else(|| panic!("the server ended: {log}")),
        };
        // The other lines are read to the end, so that the server is never blocked by them.
        std::thread::spawn(move || lines.for_each(drop));
        server
    }

    /// Starts an open server.
    pub fn open(folder: &Folder) -> Server {
        Server::start(folder, &["--open"], &[])
    }

    /// Sends a request with a JSON body.
    pub fn send(&self, method: &str, path: &str, body: &str) -> Response {
        self.try_send(method, path, body).expect("an answer")
    }

    /// Sends a request with a JSON body, unless the connection breaks.
    pub fn try_send(&self, method: &str, path: &str, body: &str) -> std::io::Result<Response> {
        let headers = [("Content-Type", "application/json")];
        let headers = if body.is_empty() { &[] } else { &headers[..] };
        over_http::send(&self.authority, method, path, headers, body.as_bytes())
    }

    /// Returns the first cell of the result of a query.
    pub fn count(&self, query: &str) -> u64 {
        let path = format!("{ITS}/query/aql");
        let answer = self.send("POST", &path, &json!({ "q": query }).to_string());
        assert_eq!(answer.status, 200, "{}", text(&answer));
        let result: Value = serde_json::from_slice(&answer.body).expect("JSON");
        result["rows"][0][0].as_u64().expect("a number")
    }

    /// Stores the sample templates.
    pub fn store_templates(&self) {
        for template in templates() {
            let path = format!("{ITS}/definition/template/adl1.4");
            let headers = [("Content-Type", "application/xml")];
            let body = template.text.as_bytes();
            let answer = over_http::send(&self.authority, "POST", &path, &headers, body);
            assert_eq!(answer.expect("an answer").status, 201);
        }
    }

    /// Creates an EHR and returns its id.
    pub fn create_ehr(&self) -> String {
        let answer = self.send("POST", &format!("{ITS}/ehr"), "");
        assert_eq!(answer.status, 201, "{}", text(&answer));
        tag(&answer)
    }

    /// Returns the most memory that the process has had, in bytes.
    #[cfg(target_os = "linux")]
    pub fn peak_memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("the state of the server");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
        peak.and_then(|peak| peak.trim().parse::<u64>().ok())
            .expect("the peak of memory")
            * 1_024
    }

    /// Sends a signal by the name that `kill` knows.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.expect("kill").success());
    }

    /// Ends the server as a crash does.
    pub fn kill(mut self) {
        self.child.kill().expect("a running server");
        self.child.wait().expect("its end");
    }

    /// Waits for the end of the server.
    pub fn wait(mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("its state") {
                return status;
            }
            assert!(Instant::now() < until, "the server does not end");
            sleep(Duration::from_millis(10));
        }
    }

    /// Stops the server as a service manager does.
    pub fn stop(self) {
        self.signal("TERM");
        assert!(self.wait().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already in most tests.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the body of an answer as text.
pub fn text(answer: &Response) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// Returns the entity tag of an answer without its quotes.
pub fn tag(answer: &Response) -> String {
    let tag = answer.header("ETag").expect("an entity tag");
    tag.trim_matches('"').to_owned()
}

/// Returns compositions of the sample.
pub fn compositions(count: usize) -> Vec<String> {
    let generator = Generator::new(1, count.div_ceil(10), count);
    (0..count)
        .map(|index| generator.composition(index).json)
        .collect()
}
