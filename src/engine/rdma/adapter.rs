//! Device, port and GID: chosen or as asked, each checked against what this machine has before anything is opened.

use std::{net::IpAddr, sync::Arc};

use super::wire::Request;
use crate::{
    engine::{RdmaOptions, Transport, Verb},
    error::{Error, Result},
    host::{
        Sysfs,
        rdma::{self, Gid, GidType, Port, RdmaDevice, RdmaSupport},
    },
    sys::verbs::{Context, DeviceLimits, PortFacts, ProtectionDomain},
};

/// A device that is ready for use on one port.
#[derive(Debug)]
pub struct Adapter {
    /// Where objects are made.
    pub domain: Arc<ProtectionDomain>,
    /// The open device.
    pub context: Arc<Context>,
    /// The device as sysfs shows it.
    pub device: RdmaDevice,
    /// The port as sysfs shows it.
    pub port: Port,
    /// The GID in use.
    pub gid: Gid,
    /// What the device allows.
    pub limits: DeviceLimits,
    /// What the port is.
    pub facts: PortFacts,
}

impl Adapter {
    /// Opens the device asked for, or the first one with an active port; `local_ip` is this end's address on the control
    /// connection, which the device and GID should have if they can.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a device, library, access or active port; [`Error::Usage`] for a name, port or GID
    /// that does not exist.
    pub fn open(sysfs: &Sysfs, options: &RdmaOptions, local_ip: Option<IpAddr>) -> Result<Self> {
        require_support(sysfs)?;
        let (device, port) = choose_port(rdma::devices(sysfs), options, local_ip)?;
        let gid = choose_gid(&device, &port, options, local_ip)?;
        let opened = Context::open(&device.name).map_err(|source| {
            let hint = "Does this user have read and write access to /dev/infiniband/uverbs*? Is the provider's library \
                        installed (Debian: ibverbs-providers)?";
            Error::call(&device.name, "ibv_open_device", source, hint)
        })?;
        let Some(context) = opened else {
            return Err(Error::Unavailable {
                what: format!("{}: the kernel has this device, but libibverbs does not list it", device.name),
                remedy: "Install its provider library (Debian: `apt-get install ibverbs-providers`)".into(),
            });
        };
        let limits = context.limits().map_err(|source| Error::call(&device.name, "ibv_query_device", source, ""))?;
        let number = u8::try_from(port.number).unwrap_or(u8::MAX);
        let facts = context.port(number).map_err(|source| Error::call(&device.name, "ibv_query_port", source, ""))?;
        let domain =
            ProtectionDomain::new(&context).map_err(|source| Error::call(&device.name, "ibv_alloc_pd", source, ""))?;
        Ok(Self { domain, context, device, port, gid, limits, facts })
    }

    /// Port number as the verbs interface takes it.
    pub fn port_number(&self) -> u8 {
        u8::try_from(self.port.number).unwrap_or(u8::MAX)
    }

    /// Checks what is asked against the device's and the port's limits.
    ///
    /// # Errors
    /// [`Error::Limit`] with limit and value; [`Error::Unavailable`] for atomics on a device without them.
    pub fn check(&self, request: &Request) -> Result<()> {
        let limit = |what, value, limit: u64, remedy: &str| {
            if value <= limit {
                return Ok(());
            }
            let object = format!("{}:{}", self.device.name, self.port.number);
            Err(Error::Limit { object, what, value, limit, remedy: remedy.into() })
        };
        if request.verb.is_atomic() && !self.limits.atomics {
            return Err(Error::Unavailable {
                what: format!("{}: the device has no atomics", self.device.name),
                remedy: "Use another device or engine".into(),
            });
        }
        let options = &request.options;
        let message_bytes = u64::from(self.facts.message_bytes);
        limit("message size in bytes", request.bs_bytes, message_bytes.min(self.limits.region_bytes), "")?;
        if let Some(mtu) = options.mtu_bytes {
            limit("MTU in bytes", mtu.into(), self.facts.mtu_bytes.into(), "It is the port's active MTU")?;
        }
        if options.transport == Transport::Ud {
            let mtu = options.mtu_bytes.unwrap_or(self.facts.mtu_bytes);
            limit("datagram size in bytes", request.bs_bytes, mtu.into(), "A datagram is at most one MTU")?;
        }
        let (queue, completions) = (self.limits.queue_entries, self.limits.completion_entries);
        limit("depth (requests of a queue pair)", request.depth.into(), queue.into(), "Use a smaller --qd")?;
        limit("depth (entries of a completion queue)", request.depth.into(), completions.into(), "Use a smaller --qd")?;
        if let Some(depth) = options.read_depth {
            let allowed = self.limits.initiator_depth.min(self.limits.responder_depth);
            limit("read depth", depth.into(), allowed.into(), "")?;
        }
        Ok(())
    }

    /// Whether the device is a driver without hardware, whose latency is the processor's.
    pub fn is_software(&self) -> bool {
        self.device.is_software()
    }
}

/// What the other end may do for this verb.
pub fn remote_access(verb: Verb) -> crate::sys::verbs::RemoteAccess {
    crate::sys::verbs::RemoteAccess {
        read: verb == Verb::Read,
        write: matches!(verb, Verb::Write | Verb::WritePingPong),
        atomic: verb.is_atomic(),
    }
}

/// Whether this machine can do RDMA at all.
///
/// # Errors
/// [`Error::Unavailable`] that tells a missing library, a missing kernel driver, a missing device and missing access apart.
pub fn require_support(sysfs: &Sysfs) -> Result<()> {
    let unavailable = |what: &str, remedy: &str| Err(Error::Unavailable { what: what.into(), remedy: remedy.into() });
    if !Context::library_present() {
        return unavailable(
            "libibverbs.so.1 is not installed",
            "Install it (Debian: `apt-get install libibverbs1 ibverbs-providers librdmacm1`)",
        );
    }
    let without = format!(
        "Without hardware, soft-RoCE does, as root: `{}`; or run the command in the lab: `scripts/lab -- COMMAND`",
        rdma::soft_roce(sysfs)
    );
    match rdma::support(sysfs) {
        RdmaSupport::Devices(_) => Ok(()),
        RdmaSupport::NoKernelSupport => unavailable("no RDMA device: the kernel's RDMA core is not loaded", &without),
        RdmaSupport::NoDevices => unavailable("no RDMA device", &without),
        RdmaSupport::NoUserAccess => unavailable(
            "there is an RDMA device, but this user cannot open /dev/infiniband/uverbs*",
            "Run `modprobe ib_uverbs` as root, and make the nodes readable and writable for this user",
        ),
    }
}

fn choose_port(
    mut devices: Vec<RdmaDevice>,
    options: &RdmaOptions,
    local_ip: Option<IpAddr>,
) -> Result<(RdmaDevice, Port)> {
    if let Some(name) = &options.device {
        let names: Vec<_> = devices.iter().map(|device| device.name.as_str()).collect();
        let message = format!("--device {name}: there is no such RDMA device (there are: {})", names.join(", "));
        devices.retain(|device| device.name == *name);
        if devices.is_empty() {
            return Err(Error::Usage(message));
        }
    }
    if let (Some(number), [device]) = (options.port, &devices[..]) {
        let numbers: Vec<_> = device.ports.iter().map(|port| port.number.to_string()).collect();
        if !device.ports.iter().any(|port| port.number == u32::from(number)) {
            let message = format!("{}: there is no port {number} (there are: {})", device.name, numbers.join(", "));
            return Err(Error::Usage(message));
        }
    }
    let mut down = Vec::new();
    let mut fallback = None;
    for device in devices {
        for port in &device.ports {
            if options.port.is_some_and(|number| u32::from(number) != port.number) {
                continue;
            }
            if !port.is_active() {
                let state = port.state.as_deref().unwrap_or("in an unknown state");
                down.push(format!("{}:{} is {state}", device.name, port.number));
                continue;
            }
            let near = local_ip.is_none() || has_address(port, local_ip);
            if near {
                let port = port.clone();
                return Ok((device, port));
            }
            fallback.get_or_insert_with(|| (device.clone(), port.clone()));
        }
    }
    fallback.ok_or_else(|| Error::Unavailable {
        what: format!("no active RDMA port: {}", down.join(", ")),
        remedy: "Bring its link up (`rdma link show`; `ip link set NETDEV up`)".into(),
    })
}

fn has_address(port: &Port, local_ip: Option<IpAddr>) -> bool {
    let wanted = local_ip.map(|ip| match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(v6, |v4| v4.to_ipv6_mapped()),
    });
    port.gids.iter().any(|gid| Some(std::net::Ipv6Addr::from(gid.address)) == wanted)
}

fn choose_gid(device: &RdmaDevice, port: &Port, options: &RdmaOptions, local_ip: Option<IpAddr>) -> Result<Gid> {
    let Some(index) = options.gid_index else {
        return rdma::choose_gid(port, local_ip, None).cloned().ok_or_else(|| Error::Unavailable {
            what: format!("{}:{} has no GID", device.name, port.number),
            remedy: "Give its network device an address (`ip addr add ADDRESS/LENGTH dev NETDEV`)".into(),
        });
    };
    port.gids.iter().find(|gid| gid.index == index).cloned().ok_or_else(|| {
        let valid: Vec<_> = port.gids.iter().map(|gid| format!("{}: {gid} ({})", gid.index, gid.gid_type)).collect();
        Error::Usage(format!(
            "--gid-index {index}: {}:{} has no such GID, or a hole there (valid: {})",
            device.name,
            port.number,
            valid.join("; ")
        ))
    })
}

/// Refuses a pair of GIDs that cannot reach each other because their packets differ.
///
/// # Errors
/// [`Error::Usage`] with both types.
pub fn same_gid_type(local: GidType, remote: &str) -> Result<()> {
    if local.to_string() == remote {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "the GIDs of the two ends differ in type: {local} here, {remote} there. Choose one of the same type with \
         --gid-index (`lat-probe check` lists them)"
    )))
}
