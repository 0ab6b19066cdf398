//! The lock of a lake in a bucket: an object that one sync creates, renews while it runs, and removes at
//! its end. A killed sync does not renew it, so that it expires.
//!
//! The clocks of two machines may differ. A lock that looks expired is therefore observed for longer
//! than the time between two renewals, before another sync takes it over.

use super::storage::failure;
use crate::outcome::Failure;
use futures_util::TryFutureExt;
use object_store::path::Path as Key;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, UpdateVersion};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The times of a lock.
#[derive(Clone, Copy, Debug)]
pub struct LeaseTimes {
    /// The time between two renewals.
    pub renewal: Duration,
    /// The age of the last renewal at which the lock has expired.
    pub expiry: Duration,
    /// The time for which an expired lock is observed.
    pub observation: Duration,
    /// The age at which an expired lock needs no observation, because no clock is so wrong.
    pub certainty: Duration,
}

/// The times of the locks of buckets.
pub const TIMES: LeaseTimes = LeaseTimes {
    renewal: Duration::from_secs(5),
    expiry: Duration::from_secs(60),
    observation: Duration::from_secs(20),
    certainty: Duration::from_secs(86_400),
};

/// The lock of a bucket that this sync holds.
pub struct Lease {
    held: Arc<Mutex<Held>>,
    renewal: JoinHandle<()>,
}

/// The object of a lock.
struct Held {
    store: Arc<dyn ObjectStore>,
    key: Key,
    /// The URL of the lake.
    url: String,
    /// The id of this sync, which no other one has.
    owner: Uuid,
    /// The number of renewals. Each content is another one, because many servers derive the entity tag
    /// from it.
    renewals: u64,
    version: UpdateVersion,
}

impl Lease {
    /// Takes the lock, and renews it from then on.
    ///
    /// # Errors
    /// If another sync holds it, or the bucket cannot be written.
    pub fn take(
        (store, key): (Arc<dyn ObjectStore>, Key),
        url: &str,
        runtime: &Runtime,
        times: LeaseTimes,
    ) -> Result<Lease, Failure> {
        let mut held = Held {
            store,
            key,
            url: url.to_owned(),
            owner: Uuid::new_v4(),
            renewals: 0,
            version: UpdateVersion {
                e_tag: None,
                version: None,
            },
        };
        runtime.block_on(held.take(times))?;
        let held = Arc::new(Mutex::new(held));
        let renewed = Arc::clone(&held);
        let renewal = runtime.spawn(async move {
            loop {
                tokio::time::sleep(times.renewal).await;
                // A failure is that of the next step that needs the lock.
                drop(renewed.lock().await.renew().await);
            }
        });
        Ok(Lease { held, renewal })
    }

    /// Renews the lock, before something is done that only its holder may do.
    ///
    /// # Errors
    /// If another sync has taken it over, or the bucket cannot be written.
    pub fn confirm(&self, runtime: &Runtime) -> Result<(), Failure> {
        runtime.block_on(async { self.held.lock().await.renew().await })
    }

    /// Removes the lock, if it is still that of this sync.
    pub fn release(&self, runtime: &Runtime) {
        self.renewal.abort();
        let removed = async {
            let mut held = self.held.lock().await;
            if held.renew().await.is_ok() {
                drop(held.store.delete(&held.key).await);
            }
        };
        runtime.block_on(removed);
    }
}

impl Held {
    async fn take(&mut self, times: LeaseTimes) -> Result<(), Failure> {
        // The lock may be released between two steps.
        for _ in 0..3 {
            match self.put(PutMode::Create).await {
                Err(error) if is_conflict(&error) => {}
                other => return other.map_err(|error| failure(&error)),
            }
            let Some(other) = self.head().await? else {
                continue;
            };
            let age = age(&other);
            if age < times.expiry {
                return Err(self.is_locked(&format!(
                    "{} s ago, and expires {} s after the last renewal",
                    age.as_secs(),
                    times.expiry.as_secs()
                )));
            }
            if age < times.certainty {
                tokio::time::sleep(times.observation).await;
            }
            let Some(same) = self.head().await? else {
                continue;
            };
            if same.e_tag != other.e_tag {
                return Err(self.is_locked("just now"));
            }
            let version = UpdateVersion {
                e_tag: other.e_tag,
                version: other.version,
            };
            match self.put(PutMode::Update(version)).await {
                Err(error) if is_conflict(&error) => {}
                other => return other.map_err(|error| failure(&error)),
            }
        }
        Err(self.is_locked("just now"))
    }

    /// Renews the lock. A renewal whose answer was lost is recognized by its owner.
    async fn renew(&mut self) -> Result<(), Failure> {
        for _ in 0..2 {
            match self.put(PutMode::Update(self.version.clone())).await {
                Ok(()) => return Ok(()),
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(failure(&error)),
            }
            let get = self.store.get(&self.key);
            let found = get.and_then(|found| async {
                let version = version_of(&found.meta);
                Ok((version, found.bytes().await?))
            });
            match found.await {
                Ok((version, bytes)) if self.is_own(&bytes) => self.version = version,
                Ok(_) | Err(Error::NotFound { .. }) => break,
                Err(error) => return Err(failure(&error)),
            }
        }
        Err(Failure::Data(format!(
            "another sync has taken over the lock of {}, because this one did not renew it in time: run this one again",
            self.url
        )))
    }

    async fn put(&mut self, mode: PutMode) -> Result<(), Error> {
        self.renewals += 1;
        let content = format!(
            "{} {} process {}\n",
            self.owner,
            self.renewals,
            std::process::id()
        );
        let put = self.store.put_opts(&self.key, content.into(), mode.into());
        self.version = put.await?.into();
        Ok(())
    }

    async fn head(&self) -> Result<Option<ObjectMeta>, Failure> {
        match self.store.head(&self.key).await {
            Ok(found) => Ok(Some(found)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    }

    fn is_own(&self, content: &[u8]) -> bool {
        content.starts_with(self.owner.to_string().as_bytes())
    }

    fn is_locked(&self, renewed: &str) -> Failure {
        Failure::Data(format!(
            "another sync writes to {}: wait until it ends. It renewed its lock `{}` {renewed}",
            self.url, self.key
        ))
    }
}

fn version_of(found: &ObjectMeta) -> UpdateVersion {
    UpdateVersion {
        e_tag: found.e_tag.clone(),
        version: found.version.clone(),
    }
}

/// Returns whether the object is another one than a condition demands.
fn is_conflict(error: &Error) -> bool {
    matches!(
        error,
        Error::AlreadyExists { .. } | Error::Precondition { .. }
    )
}

/// Returns the time since an object was written, by the clock of this machine.
fn age(found: &ObjectMeta) -> Duration {
    let written = SystemTime::from(found.last_modified);
    let age = SystemTime::now().duration_since(written);
    age.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    const QUICK: LeaseTimes = LeaseTimes {
        renewal: Duration::from_millis(40),
        expiry: Duration::from_millis(200),
        observation: Duration::from_millis(400),
        certainty: Duration::from_secs(60),
    };

    fn runtime() -> Runtime {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    }

    fn take(store: &Arc<InMemory>, runtime: &Runtime, times: LeaseTimes) -> Result<Lease, Failure> {
        let place: (Arc<dyn ObjectStore>, Key) = (store.clone(), Key::from("lock"));
        Lease::take(place, "s3://b/lake", runtime, times)
    }

    #[test]
    fn lock_is_held_by_one_sync_until_it_ends() {
        let (store, runtime) = (Arc::default(), runtime());
        let first = take(&store, &runtime, QUICK).unwrap();
        std::thread::sleep(QUICK.expiry * 2);
        let problem = take(&store, &runtime, QUICK)
            .err()
            .unwrap()
            .message()
            .unwrap();
        assert!(
            problem.contains("another sync writes to s3://b/lake"),
            "{problem}"
        );
        first.confirm(&runtime).unwrap();
        first.release(&runtime);
        let second = take(&store, &runtime, QUICK).unwrap();
        assert!(first.confirm(&runtime).is_err());
        first.release(&runtime);
        second.confirm(&runtime).unwrap();
    }

    #[test]
    fn lock_of_a_killed_sync_expires() {
        let (store, other) = (Arc::default(), runtime());
        let killed = runtime();
        let first = take(&store, &killed, QUICK).unwrap();
        first.renewal.abort();
        assert!(take(&store, &other, QUICK).is_err());
        std::thread::sleep(QUICK.expiry);
        let second = take(&store, &other, QUICK).unwrap();
        let problem = first.confirm(&killed).err().unwrap().message().unwrap();
        assert!(problem.contains("has taken over"), "{problem}");
        second.confirm(&other).unwrap();
    }

    #[test]
    fn expired_lock_that_is_renewed_while_it_is_observed_is_kept() {
        let (store, runtime) = (Arc::default(), runtime());
        let first = take(&store, &runtime, QUICK).unwrap();
        // The clock of the other machine is ahead: each lock looks expired.
        let ahead = LeaseTimes {
            expiry: Duration::ZERO,
            ..QUICK
        };
        assert!(take(&store, &runtime, ahead).is_err());
        first.confirm(&runtime).unwrap();
    }
}
