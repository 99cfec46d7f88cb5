//! Device context, protection domain and memory region.
//!
//! libibverbs is opened at run time by the bindings: where it is missing, the device list is null with ENOSYS.

use std::{ffi::CStr, io, mem, sync::Arc};

use rdma_sys::*;

use super::memory::Region;

/// An open RDMA device.
#[derive(Debug)]
pub struct Context {
    pub(super) raw: *mut ibv_context,
}

// SAFETY: libibverbs is thread-safe for every object (ibv_open_device(3), "Thread Safety" in the verbs documentation).
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// What a device allows.
#[derive(Clone, Copy, Debug)]
pub struct DeviceLimits {
    /// Work requests in one queue.
    pub queue_entries: u32,
    /// Entries of a completion queue.
    pub completion_entries: u32,
    /// Bytes of one memory region.
    pub region_bytes: u64,
    /// READs and atomics that a queue pair may have outstanding as initiator.
    pub initiator_depth: u8,
    /// READs and atomics that a queue pair answers at once.
    pub responder_depth: u8,
    /// Whether 8-byte atomics work.
    pub atomics: bool,
    /// Physical ports.
    pub ports: u8,
}

/// What a port is and allows.
#[derive(Clone, Copy, Debug)]
pub struct PortFacts {
    /// Active MTU in bytes.
    pub mtu_bytes: u32,
    /// Largest message in bytes.
    pub message_bytes: u32,
    /// Local identifier; 0 on Ethernet.
    pub lid: u16,
    /// Whether frames are Ethernet's, so that every path needs a global route.
    pub ethernet: bool,
}

impl Context {
    /// Opens the device of this name.
    ///
    /// # Errors
    /// `None` in the option for a name that no device has; the errno of `ibv_get_device_list` or `ibv_open_device`.
    pub fn open(name: &str) -> io::Result<Option<Arc<Self>>> {
        let mut count = 0;
        // SAFETY: `count` is a live int; a null list is checked for below.
        let list = unsafe { ibv_get_device_list(&mut count) };
        if list.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the list has `count` entries, each a live device until the list is freed; names are C strings in it.
        let device = (0..usize::try_from(count).unwrap_or(0))
            .map(|index| unsafe { *list.add(index) })
            .find(|&device| unsafe { CStr::from_ptr(ibv_get_device_name(device)) }.to_bytes() == name.as_bytes());
        let opened = device.map(|device| {
            // SAFETY: the device is in the list, which is still held.
            let raw = unsafe { ibv_open_device(device) };
            if raw.is_null() { Err(io::Error::last_os_error()) } else { Ok(Arc::new(Self { raw })) }
        });
        // SAFETY: the list came from ibv_get_device_list and is freed once; an open context keeps its own reference.
        unsafe { ibv_free_device_list(list) };
        opened.transpose()
    }

    /// Whether the verbs library itself can be loaded, apart from any device.
    pub fn library_present() -> bool {
        // SAFETY: dlopen and dlclose of a library that the bindings load themselves.
        unsafe {
            let handle = libc::dlopen(c"libibverbs.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
            if handle.is_null() {
                return false;
            }
            libc::dlclose(handle);
            true
        }
    }

    /// What the device allows.
    ///
    /// # Errors
    /// The errno of `ibv_query_device`.
    pub fn limits(&self) -> io::Result<DeviceLimits> {
        // SAFETY: an all-zero attribute struct is valid, the context is open, and the struct is only read on success.
        let attributes = unsafe {
            let mut attributes: ibv_device_attr = mem::zeroed();
            check(ibv_query_device(self.raw, &mut attributes))?;
            attributes
        };
        let wide = |value: libc::c_int| u32::try_from(value).unwrap_or(0);
        let narrow = |value: libc::c_int| u8::try_from(value.clamp(0, 255)).unwrap_or(0);
        Ok(DeviceLimits {
            queue_entries: wide(attributes.max_qp_wr),
            completion_entries: wide(attributes.max_cqe),
            region_bytes: attributes.max_mr_size,
            initiator_depth: narrow(attributes.max_qp_init_rd_atom),
            responder_depth: narrow(attributes.max_qp_rd_atom),
            atomics: attributes.atomic_cap != ibv_atomic_cap::IBV_ATOMIC_NONE,
            ports: attributes.phys_port_cnt,
        })
    }

    /// What port `number` is and allows.
    ///
    /// # Errors
    /// The errno of `ibv_query_port`.
    pub fn port(&self, number: u8) -> io::Result<PortFacts> {
        // SAFETY: as in `limits`.
        let attributes = unsafe {
            let mut attributes: ibv_port_attr = mem::zeroed();
            check(ibv_query_port(self.raw, number, &mut attributes))?;
            attributes
        };
        Ok(PortFacts {
            mtu_bytes: mtu_bytes(attributes.active_mtu),
            message_bytes: attributes.max_msg_sz,
            lid: attributes.lid,
            ethernet: attributes.link_layer == 2, // IBV_LINK_LAYER_ETHERNET
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was opened by `open` and everything made from it holds an Arc of it.
        unsafe { ibv_close_device(self.raw) };
    }
}

/// Bytes of an MTU code of the verbs interface.
pub fn mtu_bytes(code: ibv_mtu::Type) -> u32 {
    128u32.checked_shl(code).unwrap_or(0)
}

/// Code of an MTU of the verbs interface; `None` for anything but 256, 512, 1024, 2048 and 4096.
pub fn mtu_code(bytes: u32) -> Option<ibv_mtu::Type> {
    (1..=5).find(|&code| mtu_bytes(code) == bytes)
}

/// A protection domain.
#[derive(Debug)]
pub struct ProtectionDomain {
    pub(super) raw: *mut ibv_pd,
    pub(super) context: Arc<Context>,
}

// SAFETY: see Context.
unsafe impl Send for ProtectionDomain {}
// SAFETY: see Context.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// Allocates a protection domain on an open device.
    ///
    /// # Errors
    /// The errno of `ibv_alloc_pd`.
    pub fn new(context: &Arc<Context>) -> io::Result<Arc<Self>> {
        // SAFETY: the context is open; null is checked for.
        let raw = unsafe { ibv_alloc_pd(context.raw) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        Ok(Arc::new(Self { raw, context: Arc::clone(context) }))
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: everything made in the domain holds an Arc of it, so nothing is left in it.
        unsafe { ibv_dealloc_pd(self.raw) };
    }
}

/// What the other end may do with a memory region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteAccess {
    /// RDMA READ.
    pub read: bool,
    /// RDMA WRITE.
    pub write: bool,
    /// Atomics.
    pub atomic: bool,
}

impl RemoteAccess {
    /// As verbs access flags, local write included: every buffer here is also received into.
    pub(super) fn flags(self) -> libc::c_uint {
        let mut flags = ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0;
        for (allowed, flag) in [
            (self.read, ibv_access_flags::IBV_ACCESS_REMOTE_READ),
            (self.write, ibv_access_flags::IBV_ACCESS_REMOTE_WRITE),
            (self.atomic, ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC),
        ] {
            if allowed {
                flags |= flag.0;
            }
        }
        flags
    }
}

/// A registered buffer, and the buffer itself.
#[derive(Debug)]
pub struct MemoryRegion {
    raw: *mut ibv_mr,
    region: Region,
    _domain: Arc<ProtectionDomain>,
}

// SAFETY: see Context.
unsafe impl Send for MemoryRegion {}
// SAFETY: see Context; the buffer is only accessed by copies.
unsafe impl Sync for MemoryRegion {}

impl MemoryRegion {
    /// Registers all of `region`.
    ///
    /// # Errors
    /// The errno of `ibv_reg_mr`: ENOMEM where the memlock limit is too small.
    pub fn new(domain: &Arc<ProtectionDomain>, region: Region, access: RemoteAccess) -> io::Result<Self> {
        let address = region.address() as *mut libc::c_void;
        // SAFETY: the range is a live mapping that this value keeps until after the registration is gone.
        let raw = unsafe { ibv_reg_mr(domain.raw, address, region.len(), access.flags() as libc::c_int) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { raw, region, _domain: Arc::clone(domain) })
    }

    /// The buffer.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Key for the initiator's own use.
    pub fn local_key(&self) -> u32 {
        // SAFETY: the registration is live.
        unsafe { (*self.raw).lkey }
    }

    /// Key for the other end.
    pub fn remote_key(&self) -> u32 {
        // SAFETY: the registration is live.
        unsafe { (*self.raw).rkey }
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        // SAFETY: made by `new`, released once; the mapping goes after it.
        unsafe { ibv_dereg_mr(self.raw) };
    }
}

/// Turns the verbs convention (0, or an errno returned, or −1 with errno set) into a result.
pub(super) fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        errno => Err(io::Error::from_raw_os_error(errno.abs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mtu_codes_are_those_of_the_specification() {
        assert_eq!([1, 2, 3, 4, 5].map(mtu_bytes), [256, 512, 1024, 2048, 4096]);
        assert_eq!(mtu_code(1024), Some(3));
        assert_eq!((mtu_code(1500), mtu_code(0)), (None, None));
    }
}
