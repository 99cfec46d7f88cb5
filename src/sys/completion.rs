//! Completion queues: looking into them from user space, and sleeping on their channel.

use std::{
    ffi::CStr,
    io, mem, ptr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use rdma_sys::*;

use super::verbs::Context;

/// A completion queue, with a channel to sleep on where events are wanted.
#[derive(Debug)]
pub struct CompletionQueue {
    pub(super) raw: *mut ibv_cq,
    channel: *mut ibv_comp_channel,
    poll: unsafe extern "C" fn(*mut ibv_cq, libc::c_int, *mut ibv_wc) -> libc::c_int,
    unacknowledged: AtomicU32,
    _context: Arc<Context>,
}

// SAFETY: see Context.
unsafe impl Send for CompletionQueue {}
// SAFETY: see Context.
unsafe impl Sync for CompletionQueue {}

/// Room for one completion, made once and written by the provider.
#[repr(transparent)]
pub struct WorkCompletion {
    raw: ibv_wc,
}

impl WorkCompletion {
    /// An empty one.
    pub fn new() -> Self {
        // SAFETY: the struct is plain data, for which all zeroes are valid.
        Self { raw: unsafe { mem::zeroed() } }
    }

    /// Whether the command succeeded.
    #[inline(always)]
    pub fn succeeded(&self) -> bool {
        self.raw.status == ibv_wc_status::IBV_WC_SUCCESS
    }

    /// Status; 0 is success.
    pub fn status(&self) -> u32 {
        self.raw.status
    }

    /// The device's own code, where the status is not success.
    pub fn vendor(&self) -> u32 {
        self.raw.vendor_err
    }

    /// The number of its request, as given when that was posted.
    #[inline(always)]
    pub fn request(&self) -> u64 {
        self.raw.wr_id
    }

    /// Bytes received; defined for receives only.
    #[inline(always)]
    pub fn bytes(&self) -> u32 {
        self.raw.byte_len
    }
}

impl Default for WorkCompletion {
    fn default() -> Self {
        Self::new()
    }
}

impl CompletionQueue {
    /// Makes a queue of at least `entries`, with a channel if `events` are wanted.
    ///
    /// # Errors
    /// The errno of `ibv_create_comp_channel` or `ibv_create_cq`.
    pub fn new(context: &Arc<Context>, entries: u32, events: bool) -> io::Result<Arc<Self>> {
        let entries = libc::c_int::try_from(entries).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let mut channel = ptr::null_mut();
        if events {
            // SAFETY: the context is open; null is checked for.
            channel = unsafe { ibv_create_comp_channel(context.raw) };
            if channel.is_null() {
                return Err(io::Error::last_os_error());
            }
        }
        // SAFETY: context and channel are live or null; null results are checked for; ops are filled by the provider for
        // as long as the context is open.
        unsafe {
            let raw = ibv_create_cq(context.raw, entries, ptr::null_mut(), channel, 0);
            let poll = (*context.raw).ops.poll_cq;
            let (Some(poll), false) = (poll, raw.is_null()) else {
                let error = io::Error::last_os_error();
                if !channel.is_null() {
                    ibv_destroy_comp_channel(channel);
                }
                return Err(error);
            };
            let unacknowledged = AtomicU32::new(0);
            Ok(Arc::new(Self { raw, channel, poll, unacknowledged, _context: Arc::clone(context) }))
        }
    }

    /// One look: whether there was a completion, which is then in `completion`.
    ///
    /// # Errors
    /// The negative result of the provider's poll, as errno.
    #[inline(always)]
    pub fn poll_one(&self, completion: &mut WorkCompletion) -> Result<bool, i32> {
        // SAFETY: the queue is live and there is room for one completion.
        match unsafe { (self.poll)(self.raw, 1, &mut completion.raw) } {
            0 => Ok(false),
            1 => Ok(true),
            errno => Err(errno.wrapping_neg()),
        }
    }

    /// One look for as many completions as there is room for; returns how many there were.
    ///
    /// # Errors
    /// As [`CompletionQueue::poll_one`].
    #[inline(always)]
    pub fn poll_many(&self, completions: &mut [WorkCompletion]) -> Result<usize, i32> {
        // SAFETY: the queue is live; a WorkCompletion is an ibv_wc, and there are as many as are asked for. No slice here has
        // more than a c_int can say.
        let got = unsafe { (self.poll)(self.raw, completions.len() as libc::c_int, completions.as_mut_ptr().cast()) };
        usize::try_from(got).map_err(|_| got.wrapping_neg())
    }

    /// The same queue to sleep on; `None` if it was made without events.
    pub fn events(self: &Arc<Self>) -> Option<EventQueue> {
        (!self.channel.is_null()).then(|| EventQueue { queue: Arc::clone(self) })
    }
}

/// A completion queue that has a channel, so that a thread can sleep on it.
#[derive(Clone, Debug)]
pub struct EventQueue {
    queue: Arc<CompletionQueue>,
}

impl EventQueue {
    /// Asks for an event at the next completion.
    ///
    /// # Errors
    /// The errno of `ibv_req_notify_cq`.
    #[inline(always)]
    pub fn arm(&self) -> Result<(), i32> {
        // SAFETY: the queue is live.
        match unsafe { ibv_req_notify_cq(self.queue.raw, 0) } {
            0 => Ok(()),
            errno => Err(errno.wrapping_abs()),
        }
    }

    /// Sleeps until an event comes; `false` if a signal came instead.
    ///
    /// # Errors
    /// The errno of the read on the channel.
    #[inline(always)]
    pub fn sleep(&self) -> Result<bool, i32> {
        let (mut queue, mut user) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the channel is live and not null, since only `events` makes this type; both results are live locals.
        if unsafe { ibv_get_cq_event(self.queue.channel, &mut queue, &mut user) } == 0 {
            self.queue.unacknowledged.fetch_add(1, Relaxed);
            return Ok(true);
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => Ok(false),
            errno => Err(errno.unwrap_or(libc::EIO)),
        }
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: queue pairs that use the queue hold an Arc of it, so none is left. Acknowledging takes a mutex, so it is
        // done once, here: destruction waits for every event that was fetched to be acknowledged.
        unsafe {
            ibv_ack_cq_events(self.raw, self.unacknowledged.load(Relaxed));
            ibv_destroy_cq(self.raw);
            if !self.channel.is_null() {
                ibv_destroy_comp_channel(self.channel);
            }
        }
    }
}

/// The name of a completion status, as the verbs library words it.
pub fn status_name(status: u32) -> String {
    // SAFETY: the library returns a static C string for every number, or null where it is missing.
    let text = unsafe { ibv_wc_status_str(status) };
    if text.is_null() {
        return format!("status {status}");
    }
    // SAFETY: not null, see above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
