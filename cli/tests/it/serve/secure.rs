//! TLS between the program as a client and the program as a server.

use super::said;
use super::server::{Folder, Server};
use serde_json::json;
use std::process::Output;

const COUNT: &str = "SELECT COUNT(*) AS n FROM EHR e";

/// Starts a server with a certificate for `localhost`, signed by itself. Returns its base URL.
fn secure_server(folder: &Folder) -> (Server, String) {
    let issued = rcgen::generate_simple_self_signed(vec![String::from("localhost")]).unwrap();
    std::fs::write(folder.0.join("cert.pem"), issued.cert.pem()).unwrap();
    std::fs::write(folder.0.join("key.pem"), issued.signing_key.serialize_pem()).unwrap();
    let arguments = ["--open", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let server = Server::start(folder, &arguments, &[]);
    let (_, port) = server.authority.rsplit_once(':').unwrap();
    let base = format!("https://localhost:{port}");
    (server, base)
}

fn query(folder: &Folder, base: &str, arguments: &[&str]) -> Output {
    let query = ["query", "-d", base, "--format", "csv", COUNT];
    folder.run(&[&query[..], arguments].concat())
}

#[test]
fn loads_and_queries_trust_the_certificates_of_a_file() {
    let folder = Folder::new("secure");
    let (server, base) = secure_server(&folder);
    let ehr_id = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    let line = json!({ "ehr_id": ehr_id, "ehr_status": null }).to_string();
    std::fs::write(folder.0.join("lines.ndjson"), line).unwrap();
    let mount = format!("{base}/v1");
    let load = ["load", "lines.ndjson", "--base", &mount];
    let trusting = ["--cacert", "cert.pem"];

    let refused = folder.run(&load);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    folder.succeed(&[&load[..], &trusting].concat());

    // A system does not trust the certificate, and the program says so.
    let refused = query(&folder, &base, &[]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("certificate"), "{}", said(&refused));
    let answered = query(&folder, &base, &trusting);
    assert_eq!(String::from_utf8_lossy(&answered.stdout), "n\n1\n");
    server.stop();
}

#[test]
fn file_without_certificates_is_wrong_usage() {
    let folder = Folder::new("secure-wrong");
    std::fs::write(folder.0.join("empty.pem"), "no certificate").unwrap();
    for (name, expected) in [
        ("empty.pem", "no certificate"),
        ("absent.pem", "cannot be read"),
    ] {
        let output = query(&folder, "https://localhost:1", &["--cacert", name]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}

/// Files of a repository hold the data of patients: other users of the machine cannot read them.
#[cfg(unix)]
#[test]
fn files_of_a_repository_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("private");
    let server = Server::start(&folder, &["--open", "--sample"], &[("ADMIN", "true")]);
    let base = format!("http://{}", server.authority);
    folder.succeed(&["export", "all.ndjson", "--base", &base]);
    folder.succeed(&["backup", "--db", "test.db", "copy"]);
    folder.succeed(&["restore", "copy", "--db", "restored.db"]);
    let entries = |path: &std::path::Path| {
        let entries = std::fs::read_dir(path).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path())
    };
    let all: Vec<_> = entries(&folder.0)
        .chain(entries(&folder.0.join("copy")))
        // The test itself writes the log of the server.
        .filter(|path| !path.ends_with("log"))
        .collect();
    assert!(all.len() > 8, "{all:?}");
    for path in all {
        let mode = path.metadata().expect("metadata").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
    server.stop();
}
