//! RDMA devices, ports and GIDs as sysfs shows them, without any verbs library.
//!
//! GIDs are chosen by type and address. Their indexes are given out as addresses come and go, so a number that was right
//! before a reboot is wrong after it.

use super::{CpuSet, Sysfs, cpu};
use nix::unistd::{AccessFlags, access};
use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

const CLASS: &str = "/sys/class/infiniband";

/// How far this machine can go with verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdmaSupport {
    /// The kernel's RDMA core is not loaded, or not built.
    NoKernelSupport,
    /// The core is there, without any device.
    NoDevices,
    /// There are devices, but this process can open none of them.
    NoUserAccess,
    /// So many devices, at least one of which can be opened.
    Devices(usize),
}

/// An RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdmaDevice {
    /// The kernel's name, such as `mlx5_0`.
    pub name: String,
    /// The kind of node with its number, such as `1: CA`.
    pub node_type: Option<String>,
    /// The GUID as the kernel prints it.
    pub node_guid: Option<String>,
    /// The firmware version. `None` for software devices.
    pub fw_ver: Option<String>,
    /// The driver of the device it sits on. `None` for software devices.
    pub driver: Option<String>,
    /// The NUMA node of the device, or of the network device below a software one.
    pub numa_node: Option<u32>,
    /// The CPUs near the device, or near the network device below a software one.
    pub local_cpus: Option<CpuSet>,
    /// The network devices that share the hardware or carry the traffic.
    pub netdevs: Vec<String>,
    /// The ports in order of their numbers.
    pub ports: Vec<Port>,
}

/// A port of an RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The number, from 1.
    pub number: u32,
    /// The logical state with its number, such as `4: ACTIVE`.
    pub state: Option<String>,
    /// The physical state with its number, such as `5: LinkUp`.
    pub phys_state: Option<String>,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Option<String>,
    /// The speed in words, such as `100 Gb/sec (4X EDR)`.
    pub rate: Option<String>,
    /// The local identifier as the kernel prints it; `0x0` on Ethernet.
    pub lid: Option<String>,
    /// The GIDs in use, in order of their indexes.
    pub gids: Vec<Gid>,
}

/// One address of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gid {
    /// The place in the port's table.
    pub index: u32,
    /// The address.
    pub address: [u8; 16],
    /// What packets to it look like.
    pub gid_type: GidType,
    /// The network device that it belongs to.
    pub netdev: Option<String>,
}

/// What packets to a GID look like on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GidType {
    /// InfiniBand.
    Ib,
    /// RoCE v1: Ethernet frames, not routed. iWARP devices show this too, and don't use it.
    RoceV1,
    /// RoCE v2: UDP.
    RoceV2,
}

impl fmt::Display for GidType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ib => "InfiniBand",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
        })
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Ipv6Addr::from(self.address))
    }
}

impl RdmaDevice {
    /// Whether the device is a driver without hardware, such as rdma_rxe, whose work is done by kernel threads.
    pub fn is_software(&self) -> bool {
        self.driver.is_none()
    }

    /// Whether the device speaks iWARP, which connects through `rdma_cm` only.
    pub fn is_iwarp(&self) -> bool {
        self.node_type.as_deref().is_some_and(|kind| kind.starts_with("4:"))
    }
}

impl Port {
    /// Whether commands can pass.
    pub fn is_active(&self) -> bool {
        self.state.as_deref().is_some_and(|state| state.starts_with("4:"))
    }
}

/// How far this machine can go with verbs, and what is in the way.
pub fn support(sysfs: &Sysfs) -> RdmaSupport {
    let Some(names) = sysfs.names(CLASS) else { return RdmaSupport::NoKernelSupport };
    if names.is_empty() {
        return RdmaSupport::NoDevices;
    }
    if sysfs.exists("/sys/class/infiniband_verbs/abi_version") && !user_access(sysfs).is_empty() {
        RdmaSupport::Devices(names.len())
    } else {
        RdmaSupport::NoUserAccess
    }
}

/// The `uverbs` nodes that this process may open, by name.
pub fn user_access(sysfs: &Sysfs) -> Vec<String> {
    let mut nodes = sysfs.names("/dev/infiniband").unwrap_or_default();
    nodes.retain(|name| {
        let path = sysfs.path(&format!("/dev/infiniband/{name}"));
        name.starts_with("uverbs") && access(&path, AccessFlags::R_OK | AccessFlags::W_OK).is_ok()
    });
    nodes
}

/// The RDMA devices in order of their names.
pub fn devices(sysfs: &Sysfs) -> Vec<RdmaDevice> {
    let names = sysfs.names(CLASS).unwrap_or_default();
    names.into_iter().map(|name| device(sysfs, name)).collect()
}

/// Chooses the GID that a connection from `local_ip` should use, among those of `wanted_type` if one is given.
///
/// On InfiniBand that is the first. Otherwise RoCE v2 comes before v1; within each, the GID which is `local_ip`, then an
/// IPv4 address, then a routable IPv6 address, then a link-local one; the lowest index decides between equals. A
/// `local_ip` that has no GID doesn't make it `None`, since the control connection may well run over another network:
/// callers print what was chosen.
pub fn choose_gid(port: &Port, local_ip: Option<IpAddr>, wanted_type: Option<GidType>) -> Option<&Gid> {
    let local = local_ip.map(|ip| match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    });
    let fitting = port.gids.iter().filter(|gid| wanted_type.is_none_or(|wanted| gid.gid_type == wanted));
    fitting.min_by_key(|gid| {
        let address = Ipv6Addr::from(gid.address);
        let kind = match address {
            _ if gid.gid_type == GidType::Ib => 0,
            _ if Some(address) == local => 0,
            _ if address.to_ipv4_mapped().is_some() => 1,
            _ if !address.is_unicast_link_local() => 2,
            _ => 3,
        };
        (gid.gid_type != GidType::RoceV2, kind, gid.index)
    })
}

/// The commands that bring up soft-RoCE on this machine, for a root shell.
pub fn soft_roce(sysfs: &Sysfs) -> String {
    let netdev = first_netdev(sysfs).unwrap_or_else(|| "<netdev>".into());
    format!("modprobe -a rdma_rxe ib_uverbs rdma_ucm; rdma link add rxe0 type rxe netdev {netdev}")
}

/// The first Ethernet device that is up, hardware before virtual ones.
fn first_netdev(sysfs: &Sysfs) -> Option<String> {
    const ETHERNET: &str = "1";
    let mut names = sysfs.names("/sys/class/net").unwrap_or_default();
    names.retain(|name| {
        let read = |file: &str| sysfs.read(&format!("/sys/class/net/{name}/{file}"));
        name != "lo" && read("operstate").as_deref() == Some("up") && read("type").as_deref() == Some(ETHERNET)
    });
    names.into_iter().min_by_key(|name| !sysfs.exists(&format!("/sys/class/net/{name}/device")))
}

fn device(sysfs: &Sysfs, name: String) -> RdmaDevice {
    let base = format!("{CLASS}/{name}");
    let ports = ports(sysfs, &base);
    let netdevs = netdevs(sysfs, &base, &ports);
    // A software device has no hardware of its own; what is near is near to the network device below it.
    let places: Vec<String> = [format!("{base}/device")]
        .into_iter()
        .chain(netdevs.iter().map(|netdev| format!("/sys/class/net/{netdev}/device")))
        .collect();
    let numa_node = places.iter().find_map(|place| sysfs.read(&format!("{place}/numa_node"))?.parse().ok());
    let listed = places.iter().find_map(|place| {
        let cpus: CpuSet = sysfs.read(&format!("{place}/local_cpulist"))?.parse().ok()?;
        (!cpus.is_empty()).then_some(cpus)
    });
    let read = |file: &str| sysfs.read_word(&format!("{base}/{file}"));
    RdmaDevice {
        node_type: read("node_type"),
        node_guid: read("node_guid"),
        fw_ver: read("fw_ver"),
        driver: sysfs.link_name(&format!("{base}/device/driver")),
        numa_node,
        local_cpus: listed.or_else(|| cpu::near_node(sysfs, numa_node?)),
        netdevs,
        ports,
        name,
    }
}

fn netdevs(sysfs: &Sysfs, base: &str, ports: &[Port]) -> Vec<String> {
    let hardware = sysfs.names(&format!("{base}/device/net")).unwrap_or_default();
    let parent = sysfs.read_word(&format!("{base}/parent"));
    let carrying = ports.iter().flat_map(|port| &port.gids).filter_map(|gid| gid.netdev.clone());
    let mut netdevs = Vec::new();
    for netdev in hardware.into_iter().chain(parent).chain(carrying) {
        if !netdevs.contains(&netdev) {
            netdevs.push(netdev);
        }
    }
    netdevs
}

fn ports(sysfs: &Sysfs, base: &str) -> Vec<Port> {
    let numbers = sysfs.names(&format!("{base}/ports")).unwrap_or_default();
    numbers.iter().filter_map(|number| Some(port(sysfs, base, number.parse().ok()?))).collect()
}

fn port(sysfs: &Sysfs, base: &str, number: u32) -> Port {
    let base = format!("{base}/ports/{number}");
    let read = |file: &str| sysfs.read_word(&format!("{base}/{file}"));
    let link_layer = read("link_layer");
    let infiniband = link_layer.as_deref() == Some("InfiniBand");
    let indexes = sysfs.names(&format!("{base}/gids")).unwrap_or_default();
    Port {
        number,
        state: read("state"),
        phys_state: read("phys_state"),
        rate: read("rate"),
        lid: read("lid"),
        gids: indexes.iter().filter_map(|index| gid(sysfs, &base, index.parse().ok()?, infiniband)).collect(),
        link_layer,
    }
}

/// Reads one place of the GID table; `None` for a hole, which is all zeros or whose attributes can't be read.
fn gid(sysfs: &Sysfs, base: &str, index: u32, infiniband: bool) -> Option<Gid> {
    let address: Ipv6Addr = sysfs.read(&format!("{base}/gids/{index}"))?.parse().ok()?;
    if address.is_unspecified() {
        return None;
    }
    let gid_type = match sysfs.read(&format!("{base}/gid_attrs/types/{index}")) {
        _ if infiniband => GidType::Ib,
        Some(text) if text == "RoCE v2" => GidType::RoceV2,
        Some(text) if text == "IB/RoCE v1" => GidType::RoceV1,
        _ => return None,
    };
    let netdev = sysfs.read_word(&format!("{base}/gid_attrs/ndevs/{index}"));
    Some(Gid { index, address: address.octets(), gid_type, netdev })
}

#[cfg(test)]
#[path = "rdma_tests.rs"]
mod tests;
