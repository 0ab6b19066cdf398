//! Differences of operating systems: signals, folders on the disk, owners of files.

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

/// Returns the number of names (hard links) of a file; 0 if it does not exist.
#[cfg(unix)]
pub fn names_of(file: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(file).map_or(0, |file| file.nlink())
}

/// Returns 1: the standard library reads the number of Unix only.
#[cfg(not(unix))]
pub fn names_of(_: &Path) -> u64 {
    1
}

/// A user and a group of the system.
#[cfg_attr(not(unix), allow(dead_code, reason = "only Unix has them"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The number of the user.
    pub user: u32,
    group: u32,
}

/// Returns the owner of a folder if root runs this process and another user owns the folder. That
/// user cannot open the files that this process creates there.
#[cfg(unix)]
pub fn other_owner(folder: &Path) -> Option<Owner> {
    use std::os::unix::fs::MetadataExt;
    let folder = std::fs::metadata(folder).ok()?;
    let is_root = rustix::process::geteuid().is_root();
    (is_root && folder.uid() != 0).then(|| Owner {
        user: folder.uid(),
        group: folder.gid(),
    })
}

/// Returns `None`: files of other systems inherit the rights of their folder.
#[cfg(not(unix))]
pub fn other_owner(_: &Path) -> Option<Owner> {
    None
}

/// Changes the owner of a file.
///
/// # Errors
/// If the file system has no owners, or the file does not exist.
#[cfg(unix)]
pub fn give(file: &Path, to: Owner) -> io::Result<()> {
    std::os::unix::fs::chown(file, Some(to.user), Some(to.group))
}

/// Does nothing: [`other_owner`] returns none here.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn give(_: &Path, _: Owner) -> io::Result<()> {
    Ok(())
}
