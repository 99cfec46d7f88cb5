//! The scheduling policy of the calling thread. It is set for that thread alone: what it starts begins with the ordinary
//! one, so that threads which wait for the measuring thread are never in its way.

use std::{io, mem::size_of};

/// A policy with its priority, as the kernel keeps it for a thread.
#[derive(Clone, Copy, Debug)]
pub struct Policy(libc::sched_attr);

impl Policy {
    /// The policy of the calling thread.
    ///
    /// # Errors
    /// The errno of `sched_getattr`.
    pub fn current() -> io::Result<Self> {
        let mut policy = Self::empty();
        let bytes = size_of::<libc::sched_attr>() as libc::c_uint;
        // SAFETY: `policy` is a live sched_attr that the kernel fills, no more than the size that it is told.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &mut policy.0, bytes, 0) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        if policy.0.sched_policy != libc::SCHED_DEADLINE as u32 {
            // Newer kernels show the time slice here; setting it again would make it one of our own choice.
            (policy.0.sched_runtime, policy.0.sched_deadline, policy.0.sched_period) = (0, 0, 0);
        }
        Ok(policy)
    }

    /// SCHED_FIFO at `priority`, 1 to 99, not inherited.
    pub fn fifo(priority: u32) -> Self {
        Self::of(libc::SCHED_FIFO, priority, 0)
    }

    /// The ordinary policy at `nice`, −20 to 19, not inherited.
    pub fn ordinary(nice: i32) -> Self {
        Self::of(libc::SCHED_OTHER, 0, nice)
    }

    /// Sets it for the calling thread.
    ///
    /// # Errors
    /// The errno of `sched_setattr`: EPERM without CAP_SYS_NICE, unless RLIMIT_RTPRIO or RLIMIT_NICE allow it.
    pub fn apply(&self) -> io::Result<()> {
        // SAFETY: the kernel only reads the sched_attr, whose size stands in it.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &self.0, 0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn of(policy: libc::c_int, priority: u32, nice: i32) -> Self {
        let mut attributes = Self::empty();
        attributes.0.sched_policy = policy as u32;
        attributes.0.sched_priority = priority;
        attributes.0.sched_nice = nice;
        attributes.0.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
        attributes
    }

    fn empty() -> Self {
        // SAFETY: sched_attr consists of integers, for which zeros are valid.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        attributes.size = size_of::<libc::sched_attr>() as u32;
        Self(attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_priority_is_set_for_this_thread_and_not_inherited() {
        let nice = || Policy::current().unwrap().0.sched_nice;
        let before = nice();
        let in_thread = std::thread::spawn(move || {
            Policy::ordinary(19).apply().unwrap();
            // The kernel resets a negative nice value only; the flag itself is not inherited either.
            let child = std::thread::spawn(|| Policy::current().unwrap().0.sched_flags).join().unwrap();
            (nice(), child)
        });
        assert_eq!(in_thread.join().unwrap(), (19, 0));
        assert_eq!(nice(), before);
    }

    #[test]
    fn what_is_current_can_be_set_again() {
        Policy::current().unwrap().apply().unwrap();
    }
}
