//! Which clients a server takes, and how many at a time.
//!
//! A client is admitted after its hello, since the hello carries the token. Until then it costs a server one thread and
//! one socket; a server that wants a bound on those as well keeps a second, wider `Admission` without a token and asks
//! it right after `accept`.

use std::{
    fmt,
    fs::{File, OpenOptions},
    hint::black_box,
    io::Read,
    net::IpAddr,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::address::Cidr;
use crate::error::Error;

/// The longest token that [`read_token_file`] takes.
pub const MAX_TOKEN_BYTES: usize = 1024;

/// The rules of a server, and its count of admitted clients.
pub struct Admission {
    max_clients: usize,
    allow: Vec<Cidr>,
    token: Option<String>,
    admitted: Arc<AtomicUsize>,
}

impl Admission {
    /// At most `max_clients` at a time, from the networks in `allow` (from anywhere when it is empty), knowing `token`
    /// where there is one.
    pub fn new(max_clients: usize, allow: Vec<Cidr>, token: Option<String>) -> Self {
        Self { max_clients, allow, token, admitted: Arc::default() }
    }

    /// Takes a slot for a client. A token that is offered where none is needed does no harm.
    ///
    /// # Errors
    /// The reason in words fit for the client: its address is not allowed, its token is missing or wrong, all slots are
    /// taken.
    pub fn admit(&self, address: IpAddr, offered_token: Option<&str>) -> Result<Ticket, String> {
        if !self.allows(address) {
            return Err(format!("{} is in none of the networks that this server allows", address.to_canonical()));
        }
        match (&self.token, offered_token) {
            (Some(_), None) => return Err("this server needs a token, and none was offered (see --token-file)".into()),
            (Some(token), Some(offered)) if !same_token(token, offered) => return Err("the token is wrong".into()),
            _ => {}
        }
        let one_more = |admitted| (admitted < self.max_clients).then_some(admitted + 1);
        match self.admitted.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more) {
            Ok(_) => Ok(Ticket { admitted: Arc::clone(&self.admitted) }),
            Err(_) if self.max_clients == 1 => Err("the server is busy with another client".into()),
            Err(_) => Err(format!("the server is busy with {} clients, its limit", self.max_clients)),
        }
    }

    /// Whether `address` may connect at all. Cheap enough to ask before anything is read from the client.
    pub fn allows(&self, address: IpAddr) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|network| network.contains(address))
    }

    /// How many clients hold a ticket now.
    pub fn admitted(&self) -> usize {
        self.admitted.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Admission {
    /// Without the token, which must not reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("max_clients", &self.max_clients)
            .field("allow", &self.allow)
            .field("needs_token", &self.token.is_some())
            .field("admitted", &self.admitted())
            .finish()
    }
}

/// One client's slot, free again when this is dropped.
#[derive(Debug)]
pub struct Ticket {
    admitted: Arc<AtomicUsize>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.admitted.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Compares in a time that depends on the offered length alone, so that answers do not tell how much of a guess is
/// right.
fn same_token(token: &str, offered: &str) -> bool {
    let unequal_length = u8::from(token.len() != offered.len());
    let pairs = offered.bytes().zip(token.bytes().cycle());
    pairs.fold(unequal_length, |difference, (left, right)| black_box(difference | (left ^ right))) == 0
}

/// Reads a token from a file that only its owner can read; one newline at the end is not part of it.
///
/// # Errors
/// [`Error::Call`] when the file cannot be read; [`Error::Usage`] for a file that others can read or change, and for a
/// token that is empty, longer than [`MAX_TOKEN_BYTES`] or not UTF-8.
pub fn read_token_file(path: &Path) -> Result<String, Error> {
    let name = path.display();
    let call = |call: &'static str| move |source| Error::call(path.display().to_string(), call, source, "");
    // Non-blocking, so that a FIFO is refused below and not waited for here.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(call("open"))?;
    // The opened file is asked, not the path: nobody can swap it in between.
    let facts = file.metadata().map_err(call("fstat"))?;
    if !facts.is_file() {
        return Err(Error::usage(format!("token file {name} is not a regular file")));
    }
    let mode = facts.permissions().mode() & 0o7777;
    if mode & 0o066 != 0 {
        return Err(Error::usage(format!(
            "token file {name} has mode {mode:04o}, so others can read or change it. Run: chmod 600 {name}"
        )));
    }
    let bytes = read_bounded(file).map_err(call("read"))?;
    let token = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let token = token.strip_suffix(b"\r").unwrap_or(token);
    if token.is_empty() {
        return Err(Error::usage(format!("token file {name} is empty")));
    }
    if token.len() > MAX_TOKEN_BYTES {
        return Err(Error::usage(format!("token file {name} holds more than {MAX_TOKEN_BYTES} bytes")));
    }
    let text = std::str::from_utf8(token).map_err(|_| Error::usage(format!("token file {name} is not UTF-8 text")))?;
    Ok(text.to_string())
}

/// Enough to see that a token is too long, with its line end, and no more.
fn read_bounded(file: File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_TOKEN_BYTES as u64 + 3).read_to_end(&mut bytes)?;
    Ok(bytes)
}
