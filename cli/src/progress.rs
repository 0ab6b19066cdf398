//! Progress of long work, and its interruption.

use crate::outcome::Failure;
use crate::serve::system::Interruptions;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Progress is shown after this time: shorter work needs none.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asynchronous work notices Ctrl-C after this time.
const REACTION: Duration = Duration::from_millis(50);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ends the work of the program after Ctrl-C, SIGTERM or SIGHUP, at the next point where nothing is
/// half written. A second signal ends the program at once, and so does any but Ctrl-C in a shell,
/// which waits for input most of the time.
pub fn listen_to_signals(is_shell: bool) {
    // Without a listener the signals end the program, which is also right.
    let _ = listen(is_shell);
}

fn listen(is_shell: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let entered = runtime.enter();
    let mut signals = Interruptions::new(is_shell)?;
    drop(entered);
    let repeat = async move {
        while signals.next().await {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        }
    };
    let thread = thread::Builder::new().name("signals".into());
    thread.spawn(move || runtime.block_on(repeat))?;
    Ok(())
}

/// Returns whether the user pressed Ctrl-C, or a signal has the same meaning.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Forgets that the user pressed Ctrl-C: in the shell it ends a query only.
pub fn resume() {
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// The error of work that ended because the user pressed Ctrl-C.
#[derive(Clone, Copy, Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted by Ctrl-C")
    }
}

impl std::error::Error for Interrupted {}

impl From<Interrupted> for Failure {
    fn from(_: Interrupted) -> Failure {
        Failure::Interrupted
    }
}

/// Checks that the user did not press Ctrl-C. Loops call this once per file, chunk or step, where
/// nothing is half written.
///
/// # Errors
/// [`Interrupted`] if so.
pub fn check() -> Result<(), Interrupted> {
    match is_interrupted() {
        true => Err(Interrupted),
        false => Ok(()),
    }
}

/// Waits until the user presses Ctrl-C: for work that waits for a server and cannot call [`check`].
pub async fn interrupted() -> Interrupted {
    while !is_interrupted() {
        tokio::time::sleep(REACTION).await;
    }
    Interrupted
}

/// A bar on the standard error, if that is a terminal.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    is_shown: AtomicBool,
    done: AtomicU64,
}

impl Progress {
    /// Creates a bar for a number of bytes. It is shown after a second.
    pub fn new(bytes: u64, message: &'static str) -> Progress {
        Progress::with(
            bytes,
            message,
            "{msg} [{bar:30}] {bytes}/{total_bytes}, {eta} left",
        )
    }

    /// Creates a counter for work whose length is unknown. It is shown after a second.
    pub fn of_unknown(message: &'static str) -> Progress {
        Progress::with(0, message, "{pos} {msg}, {elapsed}")
    }

    fn with(length: u64, message: &'static str, template: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(message);
        Progress {
            bar,
            started: Instant::now(),
            is_shown: AtomicBool::new(false),
            done: AtomicU64::new(0),
        }
    }

    /// Counts bytes that were read. Returns false if the user pressed Ctrl-C.
    pub fn advance(&self, bytes: u64) -> bool {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        !is_interrupted()
    }

    /// Draws the bar, if it is time.
    pub fn show(&self) {
        let is_due = self.started.elapsed() > PATIENCE && std::io::stderr().is_terminal();
        if is_due && !self.is_shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        if is_due {
            self.bar.set_position(self.done.load(Ordering::Relaxed));
        }
    }

    /// Executes `write` while the bar is hidden, so that lines on the terminal are not mixed with it.
    pub fn hide_while<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
