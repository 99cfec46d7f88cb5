//! `--output FILE`: opened before anything is measured, replaced as a whole at the end.

use std::{
    fs::{self, File, Permissions},
    io::{self, BufWriter, Write},
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Where a result will be written. Dropping it without [`OutputFile::commit`] leaves an old file as it was.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// A new file beside the old one, which takes its place when it is complete.
    Replace(NamedTempFile, PathBuf),
    /// A pipe or character device, which cannot be replaced.
    Direct(File),
}

/// Room that is claimed before the run, so that a full disk is found out before measuring.
const CLAIM_BYTES: u64 = 1 << 20;

impl OutputFile {
    /// Opens the place for writing.
    ///
    /// # Errors
    /// [`Error::Output`] for a missing folder, a folder in place of the file, no permission, or no room.
    pub fn open(path: &Path) -> Result<Self> {
        let wrap = |source| Error::Output { path: path.into(), source };
        let sink = Self::open_sink(path).map_err(wrap)?;
        Ok(Self { path: path.into(), sink })
    }

    fn open_sink(path: &Path) -> io::Result<Sink> {
        let metadata = fs::metadata(path);
        if let Ok(found) = &metadata {
            if found.is_dir() {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            let kind = found.file_type();
            if kind.is_fifo() || kind.is_char_device() || kind.is_socket() {
                return Ok(Sink::Direct(File::options().write(true).open(path)?));
            }
        }
        // A symbolic link stays one; what it leads to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        fs::metadata(folder)?; // A missing folder is then the error, not the temporary name in it.
        let mut file = NamedTempFile::with_prefix_in(".lat-probe.", folder)?;
        claim(file.as_file_mut())?;
        let mode = match metadata {
            Ok(found) => found.permissions(),
            Err(_) => Permissions::from_mode(0o644),
        };
        file.as_file().set_permissions(mode)?;
        Ok(Sink::Replace(file, target))
    }

    /// Writes the bytes and puts the file in its place; it is complete or not there at all.
    ///
    /// # Errors
    /// [`Error::Output`]; the old file is then still what it was.
    pub fn commit(self, bytes: &[u8]) -> Result<()> {
        self.commit_with(|to| to.write_all(bytes))
    }

    /// As [`OutputFile::commit`], with what `write` writes, which need not be in memory as a whole.
    ///
    /// # Errors
    /// As there.
    pub fn commit_with(self, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<()> {
        let path = self.path;
        let wrap = |source| Error::Output { path, source };
        match self.sink {
            Sink::Direct(file) => buffered(file, write).map(drop).map_err(wrap),
            Sink::Replace(file, target) => {
                let written = buffered(file, write).and_then(|file| file.as_file().sync_all().map(|()| file));
                let persisted = written.and_then(|file| file.persist(target).map_err(|error| error.error));
                persisted.map(drop).map_err(wrap)
            }
        }
    }
}

fn buffered<W: Write + Send>(to: W, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> io::Result<W> {
    let mut buffer = BufWriter::with_capacity(1 << 18, to);
    write(&mut buffer)?;
    buffer.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Writes and frees a stretch of bytes: on a full disk the write fails, on any other the room is there for the result.
fn claim(file: &mut File) -> io::Result<()> {
    use nix::fcntl::{FallocateFlags, fallocate};
    match fallocate(&*file, FallocateFlags::empty(), 0, CLAIM_BYTES as i64) {
        Ok(()) => file.set_len(0),
        // Filesystems without it are not worth more effort: the final write tells.
        Err(nix::errno::Errno::EOPNOTSUPP | nix::errno::Errno::ENOSYS | nix::errno::Errno::EINVAL) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_file_stays_until_the_new_one_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "old").unwrap();
        let output = OutputFile::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(output);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        OutputFile::open(&path).unwrap().commit(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_followed_and_a_mode_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("result.json"), folder.path().join("latest.json"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        OutputFile::open(&link).unwrap().commit(b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_missing_folder_and_a_folder_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/such/result.json");
        let error = OutputFile::open(&missing).unwrap_err().to_string();
        assert!(error.contains("no/such/result.json"), "{error}");
        assert!(OutputFile::open(folder.path()).unwrap_err().to_string().contains("directory"));
    }

    #[test]
    fn a_device_is_written_to_directly() {
        OutputFile::open(Path::new("/dev/null")).unwrap().commit(b"x").unwrap();
        if Path::new("/dev/full").exists() {
            let error = OutputFile::open(Path::new("/dev/full")).unwrap().commit(b"x").unwrap_err();
            assert!(error.to_string().contains("No space left"), "{error}");
        }
    }
}
