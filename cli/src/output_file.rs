//! The output of a command: the standard output, or a file. A file gets its name when it is
//! complete, so an error or Ctrl-C leaves the previous file.

use crate::data::files;
use crate::outcome::Failure;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The paths by which a system names the outputs of a process, which may be files.
const OWN_OUTPUTS: [&str; 3] = ["/dev/", "/proc/", "/sys/"];

/// An output. Dropped before [`Output::finish`], it leaves no file, and a previous file as it was.
#[must_use]
pub struct Output {
    out: BufWriter<Box<dyn Write>>,
    /// The file, if it is one on a disk.
    file: Option<File>,
    unfinished: Option<Unfinished>,
}

/// A file beside the target, which replaces it at the end.
struct Unfinished {
    path: PathBuf,
    target: PathBuf,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the rename there is none.
        drop(fs::remove_file(&self.path));
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Output {
    /// Opens the output: a file, or the standard output. Pipes and devices are written directly.
    ///
    /// # Errors
    /// If the file cannot be created, or the previous one cannot be written.
    pub fn open(file: Option<&Path>) -> Result<Output, Failure> {
        let Some(path) = file else {
            return Ok(Output::direct(io::stdout()));
        };
        let opened = match is_replaced(path) {
            true => Output::beside(path),
            false => File::create(path).and_then(Output::of_file),
        };
        opened.map_err(|error| failed(path, &error))
    }

    /// Opens a file to append to it.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn append(path: &Path) -> Result<Output, Failure> {
        let opened = File::options().create(true).append(true).open(path);
        opened
            .and_then(Output::of_file)
            .map_err(|error| failed(path, &error))
    }

    fn direct(out: impl Write + 'static) -> Output {
        Output {
            out: BufWriter::new(Box::new(out)),
            file: None,
            unfinished: None,
        }
    }

    fn of_file(file: File) -> io::Result<Output> {
        let is_on_disk = file.metadata()?.is_file();
        Ok(Output {
            file: is_on_disk.then(|| file.try_clone()).transpose()?,
            ..Output::direct(file)
        })
    }

    /// Creates a file beside the target, with its permissions.
    fn beside(path: &Path) -> io::Result<Output> {
        // A link keeps leading to its file.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let previous = match File::options().write(true).open(&target) {
            Ok(file) => Some(file.metadata()?.permissions()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // Commands that read a folder leave out names that begin with a dot.
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.tmp", std::process::id()));
        let unfinished = Unfinished {
            path: target.with_file_name(name),
            target,
        };
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        if previous.is_some() {
            // Until it has the permissions of the previous file, which may be private.
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let file = options.open(&unfinished.path)?;
        if let Some(previous) = previous {
            file.set_permissions(previous)?;
        }
        Ok(Output {
            unfinished: Some(unfinished),
            ..Output::of_file(file)?
        })
    }

    /// Writes the rest to the disk, and gives the file its name.
    ///
    /// # Errors
    /// If either fails.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.out.flush()?;
        // A network disk may report only here that it has no space. A device without this operation
        // has nothing to report.
        if let Some(file) = &self.file
            && let Err(error) = file.sync_all()
            && !matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            )
        {
            return Err(error.into());
        }
        // Some systems rename no file that is open.
        drop((self.out, self.file));
        let Some(Unfinished { path, target }) = &self.unfinished else {
            return Ok(());
        };
        fs::rename(path, target).map_err(|error| failed(target, &error))
    }
}

/// Returns whether a path names a file that can be replaced, or none.
fn is_replaced(path: &Path) -> bool {
    let is_own = OWN_OUTPUTS.iter().any(|folder| path.starts_with(folder));
    !is_own && fs::metadata(path).map_or(true, |file| file.is_file())
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::Data(format!("{}: {error}", path.display()))
}

/// Checks that an output is none of the inputs of a command: files, folders or patterns.
///
/// # Errors
/// [`Failure::Usage`] if it is the same file as one of them, also by a link.
pub fn check_no_input<'i>(
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = &'i Path>,
) -> Result<(), Failure> {
    let Some(output) = output.filter(|output| output.is_file()) else {
        return Ok(());
    };
    let own = identity(output);
    let is_own = |input: &Path| own.is_some() && identity(input) == own;
    let is_listed = |input: &Path| {
        // An argument that cannot be listed has its own error.
        let text = [input.to_string_lossy().into_owned()];
        let listed = (!input.is_file()).then(|| files::list(&text, files::CHECKED));
        listed
            .into_iter()
            .flatten()
            .flatten()
            .any(|file| is_own(&file.path))
    };
    match inputs
        .into_iter()
        .find(|input| is_own(input) || is_listed(input))
    {
        None => Ok(()),
        Some(input) => Err(Failure::Usage(format!(
            "the output `{}` is a file of the input `{}`, which it would replace: name another file",
            output.display(),
            input.display()
        ))),
    }
}

/// Device and inode of a file.
#[cfg(unix)]
pub type FileIdentity = (u64, u64);

/// The path of a file without links.
#[cfg(not(unix))]
pub type FileIdentity = PathBuf;

/// Returns the identity of a file; `None` if it does not exist.
#[cfg(unix)]
pub fn identity(file: &Path) -> Option<FileIdentity> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::metadata(file).ok()?;
    Some((file.dev(), file.ino()))
}

/// Returns the identity of a file; `None` if it does not exist.
#[cfg(not(unix))]
pub fn identity(file: &Path) -> Option<FileIdentity> {
    fs::canonicalize(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_is_not_finished_leaves_the_previous_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let write = |text: &str, is_finished: bool| {
            let mut output = Output::open(Some(&path)).unwrap();
            output.write_all(text.as_bytes()).unwrap();
            output.flush().unwrap();
            is_finished.then(|| output.finish().unwrap());
        };
        write("half", false);
        assert_eq!(names(), 0);
        write("whole", true);
        write("half", false);
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        write("anew", true);
        assert_eq!(fs::read_to_string(&path).unwrap(), "anew");
        assert_eq!(names(), 1);
    }
}
