//! Differences of operating systems: signals, and folders on the disk.

use std::io;
use std::path::Path;

/// Waits for a signal to stop: SIGTERM or SIGINT.
///
/// # Errors
/// If the system does not deliver signals to this process.
#[cfg(unix)]
pub async fn stopped() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Waits for Ctrl-C.
///
/// # Errors
/// If the system does not deliver signals to this process.
#[cfg(not(unix))]
pub async fn stopped() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// The SIGHUPs of this process. There are none on systems without this signal.
pub struct Hangups {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Hangups {
    /// Receives the signals from now on.
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
