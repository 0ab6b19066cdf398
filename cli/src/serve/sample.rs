//! The sample data, loaded into an empty repository before the server listens.

use super::database::Databases;
use super::environment::Machine;
use super::sqlite::Sqlite;
use anyhow::{anyhow, ensure};
use aqlite::samples::{Generator, ehr_status, guides, templates};
use aqlite::service::{Auth, Config, Request, Service};
use aqlite::store::repository::Repository;
use aqlite::store::sql::SqlRepository;

/// The size of the sample: EHRs and compositions, as `cargo xtask serve` loads them.
const EHRS: usize = 36;
const COMPOSITIONS: usize = 240;
const SEED: u64 = 1;

/// The mount of openEHR ITS-REST.
const API: &str = "/rest/openehr/v1";

/// Loads the sample, unless the repository has EHRs. Returns a message about the outcome.
///
/// # Errors
/// If the repository refuses a part of the sample.
pub async fn load(databases: &Databases, system_id: &str) -> anyhow::Result<String> {
    let connections = databases.connect()?;
    let config = Config {
        system_id: system_id.to_owned(),
        auth: Auth::Open,
        log: false,
        ..Config::default()
    };
    let sample = Sample(Service::new(connections.repository(), config));
    let ehrs = sample.0.repository().ehrs(None, 1).await;
    if !ehrs.map_err(|error| anyhow!("{error}"))?.is_empty() {
        return Ok(String::from(
            "the repository has EHRs already: no sample loaded",
        ));
    }
    let generator = Generator::new(SEED, EHRS, COMPOSITIONS);
    sample.definitions().await?;
    sample.records(&generator).await?;
    Ok(format!(
        "loaded the sample: {EHRS} EHRs, {COMPOSITIONS} compositions"
    ))
}

/// A service that accepts the sample.
struct Sample(Service<SqlRepository<Sqlite>>);

impl Sample {
    async fn definitions(&self) -> anyhow::Result<()> {
        for template in templates() {
            let path = format!("{API}/definition/template/adl1.4");
            let request = Request::new("POST", &path);
            self.send(request.with_body("application/xml", template.text))
                .await?;
        }
        for guide in guides() {
            let request = Request::new("POST", "/v1/definition/gdl");
            self.send(request.with_body("application/json", guide.text))
                .await?;
        }
        Ok(())
    }

    async fn records(&self, generator: &Generator) -> anyhow::Result<()> {
        for number in 0..generator.ehrs() {
            let ehr = generator.ehr(number);
            let path = format!("{API}/ehr/{}", ehr.ehr_id);
            let request = Request::new("PUT", &path);
            self.send(request.with_body("application/json", ehr_status(&ehr).to_string()))
                .await?;
            for index in generator.compositions_of(number) {
                let request = Request::new("POST", &format!("{path}/composition"));
                let composition = generator.composition(index).json;
                self.send(request.with_body("application/json", composition))
                    .await?;
            }
        }
        Ok(())
    }

    async fn send(&self, request: Request) -> anyhow::Result<()> {
        let answer = self.0.handle(&request, &mut Machine).await;
        ensure!(
            // Definitions may be there already.
            matches!(answer.status, 200 | 201 | 204 | 409),
            "the sample was refused: {} {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        Ok(())
    }
}
