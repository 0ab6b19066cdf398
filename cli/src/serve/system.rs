//! Differences of operating systems: signals, folders and free space on the disk.

use std::io;
use std::path::Path;

/// The signals to stop: SIGTERM and SIGINT; Ctrl-C on systems without them.
pub struct StopSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl StopSignals {
    /// Receives the signals from now on. Before, they end the process.
    ///
    /// # Errors
    /// If the system does not deliver signals to this process.
    #[cfg_attr(
        not(unix),
        allow(clippy::unnecessary_wraps, reason = "as on other systems")
    )]
    pub fn new() -> io::Result<StopSignals> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        Ok(StopSignals {
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of the signals.
    #[cfg(unix)]
    pub async fn received(mut self) -> io::Result<()> {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        Ok(())
    }

    /// Waits for Ctrl-C.
    #[cfg(not(unix))]
    pub async fn received(self) -> io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}

/// The SIGHUPs of this process. There are none on systems without this signal.
pub struct Hangups {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Hangups {
    /// Receives the signals from now on. Before, they end the process.
    ///
    /// # Errors
    /// If the system does not deliver signals to this process.
    pub fn new() -> io::Result<Hangups> {
        Ok(Hangups {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    /// Waits for the next one. Returns false if there will be none.
    pub async fn next(&mut self) -> bool {
        #[cfg(unix)]
        return self.signal.recv().await.is_some();
        #[cfg(not(unix))]
        return false;
    }
}

/// Makes the names in a folder durable.
///
/// # Errors
/// If the folder cannot be opened or synchronized.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

/// Does nothing: this system opens no folders, and journals names itself.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns the free bytes of the disk of a folder for users that are not root; `None` if the system
/// does not report them.
#[cfg(unix)]
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Returns `None`: the program reads the free space of Unix only.
#[cfg(not(unix))]
pub fn free_bytes(_: &Path) -> Option<u64> {
    None
}
