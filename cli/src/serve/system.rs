//! Differences of operating systems: signals, folders on the disk, owners of files.

use std::io;
use std::path::Path;
#[cfg(unix)]
use std::task::Poll;

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

/// The signals that interrupt a command: SIGINT, SIGTERM and SIGHUP; Ctrl-C on systems without them.
pub struct Interruptions {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
}

impl Interruptions {
    /// Receives the signals from now on; with `only_ctrl_c` the others still end the process.
    ///
    /// # Errors
    /// If the system does not deliver signals to this process.
    #[cfg(unix)]
    pub fn new(only_ctrl_c: bool) -> io::Result<Interruptions> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut kinds = vec![SignalKind::interrupt()];
        if !only_ctrl_c {
            kinds.push(SignalKind::terminate());
        }
        if !only_ctrl_c && is_hangup_handled() {
            kinds.push(SignalKind::hangup());
        }
        let signals = kinds.into_iter().map(signal);
        Ok(Interruptions {
            signals: signals.collect::<io::Result<_>>()?,
        })
    }

    /// Receives Ctrl-C.
    #[cfg(not(unix))]
    pub fn new(_only_ctrl_c: bool) -> io::Result<Interruptions> {
        Ok(Interruptions {})
    }

    /// Waits for the next signal. Returns false if there will be none.
    #[cfg(unix)]
    pub async fn next(&mut self) -> bool {
        std::future::poll_fn(|context| {
            // All are polled, so that each wakes the task.
            let mut signals = self.signals.iter_mut();
            match signals.find_map(|signal| match signal.poll_recv(context) {
                Poll::Ready(received) => Some(received.is_some()),
                Poll::Pending => None,
            }) {
                Some(received) => Poll::Ready(received),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Waits for the next Ctrl-C. Returns false if there will be none.
    #[cfg(not(unix))]
    pub async fn next(&mut self) -> bool {
        tokio::signal::ctrl_c().await.is_ok()
    }
}

/// Returns whether SIGHUP may be received. A process that was started by `nohup` ignores it, and
/// must go on when its terminal ends. Only Linux names the signals that a process ignores
/// (proc_pid_status(5), `SigIgn`); elsewhere SIGHUP keeps its effect.
#[cfg(unix)]
fn is_hangup_handled() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is signal 1, the lowest bit.
    ignored.is_some_and(|mask| mask & 1 == 0)
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

/// Makes the files and folders that this process creates from now on accessible to its user only,
/// because they hold the data of patients. There is no such default on systems other than Unix.
pub fn create_private_files() {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
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
