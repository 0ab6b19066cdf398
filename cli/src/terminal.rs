//! Lines for the user on the standard output and the standard error.
//!
//! Their reader may have gone, as the end of a pipe. `println!` panics then, which would end the
//! program in the midst of its work. These lines only report on the work, so they are dropped.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Writes a line on the standard output, unless its reader has gone.
macro_rules! print_line {
    ($($part:tt)*) => { $crate::terminal::print(format_args!($($part)*)) };
}

/// Writes a line on the standard error, unless its reader has gone.
macro_rules! report_line {
    ($($part:tt)*) => { $crate::terminal::report(format_args!($($part)*)) };
}

pub(crate) use {print_line, report_line};

/// Implements [`print_line`].
pub fn print(line: Arguments<'_>) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Implements [`report_line`].
pub fn report(line: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}
