//! The path of a datagram.

use std::{io, sync::Arc};

use rdma_sys::*;

use super::verbs::ProtectionDomain;

/// A path to a datagram receiver.
#[derive(Debug)]
pub struct AddressHandle {
    pub(super) raw: *mut ibv_ah,
    _domain: Arc<ProtectionDomain>,
}

// SAFETY: libibverbs is thread-safe for every object.
unsafe impl Send for AddressHandle {}
// SAFETY: as above.
unsafe impl Sync for AddressHandle {}

impl AddressHandle {
    pub(super) fn new(domain: &Arc<ProtectionDomain>, mut attributes: ibv_ah_attr) -> io::Result<Arc<Self>> {
        // SAFETY: the domain is live, the attributes are a live local; null is checked for.
        let raw = unsafe { ibv_create_ah(domain.raw, &mut attributes) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        Ok(Arc::new(Self { raw, _domain: Arc::clone(domain) }))
    }
}

impl Drop for AddressHandle {
    fn drop(&mut self) {
        // SAFETY: made by `new`, released once; requests that name it hold an Arc of it.
        unsafe { ibv_destroy_ah(self.raw) };
    }
}
