//! Waking a thread that sleeps in a system call: a signal whose handler does nothing, so that the call returns EINTR.

use std::{io, ptr};

use nix::sys::pthread::{Pthread, pthread_self};

/// The signal used for it: SIGURG is ignored by default and means nothing to a program that asks for no urgent data.
const WAKE: libc::c_int = libc::SIGURG;

extern "C" fn nothing(_signal: libc::c_int) {}

/// A thread that can be woken. It must outlive this value; the caller sees to that by joining or scoping it.
#[derive(Clone, Copy, Debug)]
pub struct Sleeper {
    thread: Pthread,
}

// SAFETY: a pthread_t is an identifier; pthread_kill may be called with it from any thread.
unsafe impl Send for Sleeper {}
// SAFETY: as above; there is no state behind it that this type touches.
unsafe impl Sync for Sleeper {}

impl Sleeper {
    /// The calling thread, prepared to be woken.
    ///
    /// # Errors
    /// The errno of `sigaction`.
    pub fn current() -> io::Result<Self> {
        // SAFETY: an all-zero sigaction is a valid one (no flags, empty mask); the handler touches nothing at all, and
        // without SA_RESTART the interrupted call returns EINTR, which is the purpose.
        let result = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
            libc::sigaction(WAKE, &action, ptr::null_mut())
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { thread: pthread_self() })
    }

    /// Makes the system call that the thread may be sleeping in return.
    pub fn wake(&self) {
        // SAFETY: the thread is alive, as the type demands of its holder. A failure means that it has just ended.
        unsafe {
            libc::pthread_kill(self.thread, WAKE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Read, os::unix::net::UnixStream, sync::mpsc, time::Duration};

    #[test]
    fn a_sleeping_read_is_interrupted() {
        let (mut near, _far) = UnixStream::pair().unwrap();
        let (sender, receiver) = mpsc::channel();
        let (ended, end) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            sender.send(Sleeper::current().unwrap()).unwrap();
            let error = near.read(&mut [0]).unwrap_err();
            ended.send(()).unwrap();
            error.kind()
        });
        let sleeper = receiver.recv().unwrap();
        // The thread may not sleep yet: wake it until it says that it has ended, as the watching thread does.
        while end.recv_timeout(Duration::from_millis(5)).is_err() && !reader.is_finished() {
            sleeper.wake();
        }
        assert_eq!(reader.join().unwrap(), io::ErrorKind::Interrupted);
    }
}
