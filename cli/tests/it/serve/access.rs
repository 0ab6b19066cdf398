//! Access control with callers: passwords, tokens of an issuer, TLS.

use super::over_http;
use super::server::{Folder, Server, tag, text};
use aqlite::service::Response;
use data_encoding::{BASE64, BASE64URL_NOPAD};
use ring::pbkdf2;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::num::NonZeroU32;
use std::time::{SystemTime, UNIX_EPOCH};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Sends a request with credentials.
fn send(server: &Server, method: &str, path: &str, credentials: &str) -> Response {
    let headers = [("Authorization", credentials)];
    over_http::send(&server.authority, method, path, &headers, b"").unwrap()
}

#[test]
fn passwords_are_verified_and_accesses_are_logged() {
    let folder = Folder::new("passwords");
    let (mut hash, salt) = ([0; 32], [7; 16]);
    let rounds = NonZeroU32::new(10_000).unwrap();
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA256,
        rounds,
        &salt,
        b"secret",
        &mut hash,
    );
    let [salt, hash] = [&salt[..], &hash].map(|bytes| BASE64URL_NOPAD.encode(bytes));
    let users = format!("ek:10000:{salt}:{hash}:read,write,audit");
    let server = Server::start(&folder, &[], &[("AUTH", "basic"), ("USERS", &users)]);
    let credentials = |password: &str| {
        format!(
            "Basic {}",
            BASE64.encode(format!("ek:{password}").as_bytes())
        )
    };
    let (right, wrong) = (credentials("secret"), credentials("wrong"));
    assert_eq!(send(&server, "POST", "/v1/ehr", &wrong).status, 401);
    let created = send(&server, "POST", "/v1/ehr", &right);
    assert_eq!(created.status, 201, "{}", text(&created));
    let path = format!("/v1/ehr/{}", tag(&created));
    assert_eq!(send(&server, "GET", &path, &right).status, 200);
    let log = text(&send(&server, "GET", "/v1/admin/access-log", &right));
    assert!(log.contains(&tag(&created)), "{log}");
    server.stop();
    let log = std::fs::read_to_string(folder.0.join("log")).unwrap();
    assert!(log.contains(r#""operation":"POST ehr""#), "{log}");
    assert!(!log.contains(&path), "a path is in the log: {log}");
}

#[test]
fn wrong_passwords_are_counted_for_all_threads_together() {
    let folder = Folder::new("guesses");
    let salt = BASE64URL_NOPAD.encode(&[7; 16]);
    let hash = BASE64URL_NOPAD.encode(&[0; 32]);
    let users = format!("ek:10000:{salt}:{hash}:read");
    let variables = [("AUTH", "basic"), ("USERS", users.as_str())];
    let server = Server::start(&folder, &["--threads", "8"], &variables);
    let guess = format!("Basic {}", BASE64.encode(b"ek:guess"));
    let statuses: Vec<u16> = (0..20)
        .map(|_| send(&server, "GET", "/v1/ehr", &guess).status)
        .collect();
    let verified = statuses.iter().filter(|status| **status == 401).count();
    assert_eq!(verified, 10, "{statuses:?}");
}

/// An issuer of tokens, which answers requests for its keys.
struct Issuer {
    pair: EcdsaKeyPair,
    /// The address of its keys.
    keys: String,
}

impl Issuer {
    fn start() -> Issuer {
        let (random, signing) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(signing, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(signing, document.as_ref(), &random).unwrap();
        let point = pair.public_key().as_ref();
        let part = |range| BASE64URL_NOPAD.encode(&point[range]);
        let key =
            json!({ "kty": "EC", "crv": "P-256", "kid": "k", "x": part(1..33), "y": part(33..65) });
        let keys = json!({ "keys": [key] }).to_string();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // The head of the request is not needed.
                let _ = stream.read(&mut [0; 4_096]).unwrap();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", keys.len());
                stream
                    .write_all(format!("{head}{keys}").as_bytes())
                    .unwrap();
            }
        });
        Issuer {
            pair,
            keys: format!("http://{address}/keys"),
        }
    }

    /// Returns the variables of a server that accepts the tokens of this issuer.
    fn variables(&self) -> [(&str, &str); 4] {
        [
            ("AUTH", "jwt"),
            ("JWT_ISSUER", "https://id.example.org"),
            ("JWT_AUDIENCE", "cdr"),
            ("JWT_KEYS", &self.keys),
        ]
    }

    /// Returns the credentials of a caller.
    fn token(&self, claims: &Value) -> String {
        let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let head = part(&json!({ "alg": "ES256", "kid": "k", "typ": "JWT" }));
        let signed = format!("{head}.{}", part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = BASE64URL_NOPAD.encode(signature.unwrap().as_ref());
        format!("Bearer {signed}.{signature}")
    }
}

#[test]
fn tokens_of_the_issuer_are_accepted_until_they_expire() {
    let (folder, issuer) = (Folder::new("tokens"), Issuer::start());
    let server = Server::start(&folder, &[], &issuer.variables());
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let claims = |audience: &str, expires: u64| {
        json!({
            "iss": "https://id.example.org",
            "aud": audience,
            "sub": "ek",
            "iat": now - 1_000,
            "exp": expires,
            "roles": ["read", "write"],
        })
    };
    let status = |token: &str| send(&server, "POST", "/v1/ehr", token).status;
    let token = issuer.token(&claims("cdr", now + 60));
    assert_eq!(status(&token), 201);
    assert_eq!(status(&issuer.token(&claims("cdr", now - 600))), 401);
    assert_eq!(status(&issuer.token(&claims("other", now + 60))), 401);
    let other = Issuer::start();
    assert_eq!(status(&other.token(&claims("cdr", now + 60))), 401);
    server.stop();
}

#[test]
fn announced_descriptions_of_the_interface_exist() {
    let (folder, issuer) = (Folder::new("announced"), Issuer::start());
    let server = Server::start(&folder, &[], &issuer.variables());
    let get = |path: &str| server.send("GET", path, "");
    let read = |answer: &Response| serde_json::from_slice::<Value>(&answer.body).expect("JSON");
    let configuration = read(&get("/.well-known/smart-configuration"));
    let announced = &configuration["services"]["org.openehr.rest"];
    let base = format!("http://{}", server.authority);
    let below = |name: &str| {
        announced[name]
            .as_str()
            .expect("an address")
            .strip_prefix(&base)
    };
    let document = get(below("openapi").expect("an address of the server"));
    assert_eq!(read(&document)["openapi"], "3.0.3");
    let headers = [("If-None-Match", document.header("ETag").expect("a tag"))];
    let again = over_http::send(&server.authority, "GET", "/openapi.json", &headers, b"");
    assert_eq!(again.unwrap().status, 304);
    // A program without the page names that of the project.
    match below("documentation") {
        Some(path) => assert_eq!(get(path).status, 200),
        None => assert_eq!(get("/api.html").status, 404),
    }
    server.stop();
}

#[test]
fn tls_server_answers_with_its_certificate() {
    let folder = Folder::new("tls");
    let issued = rcgen::generate_simple_self_signed(vec![String::from("localhost")]).unwrap();
    std::fs::write(folder.0.join("cert.pem"), issued.cert.pem()).unwrap();
    std::fs::write(folder.0.join("key.pem"), issued.signing_key.serialize_pem()).unwrap();
    let arguments = ["--open", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let server = Server::start(&folder, &arguments, &[]);
    let (_, port) = server.authority.rsplit_once(':').unwrap();
    let base = format!("https://localhost:{port}");
    drop(rustls::crypto::ring::default_provider().install_default());
    let certificate = Certificate::from_pem(issued.cert.pem().as_bytes()).unwrap();
    let roots = RootCerts::new_with_certs(&[certificate.to_owned()]);
    let tls = TlsConfig::builder().root_certs(roots).build();
    let agent: Agent = Agent::config_builder().tls_config(tls).build().into();
    let answer = agent.post(format!("{base}/v1/ehr")).send_empty().unwrap();
    assert_eq!(answer.status(), 201);
    let location = answer.headers().get("Location").unwrap().to_str().unwrap();
    assert!(location.starts_with(&base), "{location}");
    server.stop();
}
