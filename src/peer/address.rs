//! Addresses: where a peer is (`--peer`), and which networks may connect (`--allow`).

use std::{
    fmt,
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs},
    str::FromStr,
    sync::mpsc,
    thread,
};

use super::deadline::{Deadline, format_seconds};
use crate::error::Error;

/// The TCP port of `lat-probe serve` unless another is named.
pub const DEFAULT_PORT: u16 = 18520;

const ADDRESS_FORMS: &str =
    "allowed: HOST, HOST:PORT, IPV4[:PORT], IPV6, [IPV6]:PORT, with %INTERFACE behind a link-local IPv6 address";

/// A host, by name or number, and a port, as the user gave them; checked for form, not yet resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    host: String,
    port: u16,
}

impl PeerAddress {
    /// Reads `host`, `host:port`, `1.2.3.4`, `1.2.3.4:5`, `::1`, `[::1]:port`, `fe80::1%eth0`, `[fe80::1%eth0]:port`.
    ///
    /// # Errors
    /// A sentence that quotes the text and says what is allowed.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, String> {
        let refuse = |why: &str| format!("'{text}' {why} ({ADDRESS_FORMS})");
        let (host, port) = split_host(text).map_err(&refuse)?;
        let port = match port {
            Some(digits) => parse_port(digits).ok_or_else(|| {
                format!(
                    "'{text}' has the port '{digits}', which is not a whole number from 1 to 65535 ({ADDRESS_FORMS})"
                )
            })?,
            None => default_port,
        };
        Ok(Self { host: host.to_string(), port })
    }

    /// The host as given, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, given or default.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// All socket addresses of the host, in the resolver's order. A name lookup takes as long as the resolver likes;
    /// [`PeerAddress::connect`] bounds it.
    ///
    /// # Errors
    /// [`Error::Peer`] with the resolver's words when the name is unknown.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, Error> {
        let lookup = (self.host.as_str(), self.port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        match lookup {
            Ok(addresses) if addresses.is_empty() => Err(self.unresolved("it has no address")),
            Ok(addresses) => Ok(addresses),
            Err(source) => Err(self.unresolved(&source.to_string())),
        }
    }

    /// Connects to the first address that answers, trying all in order until `deadline`, with Nagle's delay off.
    ///
    /// # Errors
    /// [`Error::Peer`] that says for each address why it failed, and the usual remedy.
    pub fn connect(&self, deadline: Deadline) -> Result<(TcpStream, SocketAddr), Error> {
        let addresses = self.resolve_until(deadline)?;
        let mut failures = Vec::with_capacity(addresses.len());
        let mut waiting = addresses.len() as u32;
        for &address in &addresses {
            // An equal share of what is left: a first address that swallows packets must not starve the second.
            let Some(share) = deadline.remaining().map(|left| left / waiting) else {
                failures.push((address, format!("was not tried within {}", deadline.allowed()), ErrorKind::TimedOut));
                continue;
            };
            match TcpStream::connect_timeout(&address, share).and_then(without_delay) {
                Ok(stream) => return Ok((stream, address)),
                Err(source) if source.kind() == ErrorKind::TimedOut && source.raw_os_error().is_none() => {
                    failures.push((address, format!("did not answer within {}", format_seconds(share)), source.kind()));
                }
                Err(source) => failures.push((address, why_unconnected(&source), source.kind())),
            }
            waiting -= 1;
        }
        Err(self.unconnected(&failures))
    }

    /// `resolve` in a thread of its own, because the resolver has no deadline. When it is late the thread stays behind
    /// until the resolver gives up; nothing is measured then.
    fn resolve_until(&self, deadline: Deadline) -> Result<Vec<SocketAddr>, Error> {
        let late = || self.unresolved(&format!("the resolver did not answer within {}", deadline.allowed()));
        let (sender, receiver) = mpsc::channel();
        let address = self.clone();
        thread::Builder::new()
            .name("resolve".into())
            .spawn(move || sender.send(address.resolve()))
            .map_err(|source| Error::call(self.to_string(), "pthread_create", source, ""))?;
        receiver.recv_timeout(deadline.remaining().ok_or_else(late)?).map_err(|_| late())?
    }

    fn unresolved(&self, why: &str) -> Error {
        let hint = match self.host.split_once('%') {
            Some((_, zone)) => format!(". Is there a network interface '{zone}' here? `ip link` lists them"),
            None => String::new(),
        };
        Error::peer(self, format!("the name '{}' could not be resolved: {why}{hint}", self.host))
    }

    fn unconnected(&self, failures: &[(SocketAddr, String, ErrorKind)]) -> Error {
        let each: Vec<_> = failures.iter().map(|(address, why, _)| format!("{address} {why}")).collect();
        let any = |wanted| failures.iter().any(|&(_, _, kind)| kind == wanted);
        let remedy = if any(ErrorKind::ConnectionRefused) {
            ". Is `lat-probe serve` running there?"
        } else if any(ErrorKind::TimedOut) {
            ". Is the host up, and does a firewall let this port through?"
        } else if any(ErrorKind::InvalidInput) {
            ". A link-local address needs its interface, as in fe80::1%eth0"
        } else {
            ""
        };
        Error::peer(self, format!("no connection: {}{remedy}", each.join("; ")))
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

fn without_delay(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn why_unconnected(source: &io::Error) -> String {
    match source.kind() {
        ErrorKind::ConnectionRefused => "refused the connection".into(),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => format!("is unreachable ({source})"),
        ErrorKind::TimedOut => format!("did not answer ({source})"),
        _ => format!("could not be connected ({source})"),
    }
}

/// Splits into host and port text, and checks the host's form.
fn split_host(text: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, behind) = rest.split_once(']').ok_or("lacks the closing bracket")?;
        check_ipv6(host)?;
        return match behind.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if behind.is_empty() => Ok((host, None)),
            None => Err("has something other than a port behind the bracket"),
        };
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => check_ipv6(text).map(|()| (text, None)),
        Some((host, port)) => check_name(host).map(|()| (host, Some(port))),
        None => check_name(text).map(|()| (text, None)),
    }
}

fn check_ipv6(host: &str) -> Result<(), &'static str> {
    let (number, zone) = host.split_once('%').map_or((host, None), |(number, zone)| (number, Some(zone)));
    if Ipv6Addr::from_str(number).is_err() {
        return Err("is not an IPv6 address");
    }
    match zone {
        Some("") => Err("has no interface behind the '%'"),
        Some(zone) if zone.contains(|c: char| !c.is_ascii_graphic() || matches!(c, '/' | '%' | ':' | '[')) => {
            Err("has something other than an interface name behind the '%'")
        }
        _ => Ok(()),
    }
}

fn check_name(host: &str) -> Result<(), &'static str> {
    if host.is_empty() {
        return Err("has no host");
    }
    if host.contains(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        return Err("has a character that no host name has");
    }
    // The resolver would read `1.2.3` as 1.2.0.3 and `18520` as 0.0.72.88.
    if host.chars().all(|c| c.is_ascii_digit() || c == '.') && Ipv4Addr::from_str(host).is_err() {
        return Err("is not an IPv4 address");
    }
    Ok(())
}

fn parse_port(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|&port| plain && port != 0)
}

/// A network: an address and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix_bits: u8,
}

impl Cidr {
    /// Whether `address` lies in this network. An IPv4-mapped IPv6 address counts as IPv4, since that is how a socket
    /// bound to `::` shows its IPv4 clients.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.network.is_ipv4()
            && leading(address, self.prefix_bits) == leading(self.network, self.prefix_bits)
    }
}

impl FromStr for Cidr {
    type Err = String;

    /// Reads `10.0.0.0/8`, `fd00::/8` or a bare address, which means itself alone. Bits behind the prefix are ignored.
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse =
            |why: &str| format!("'{text}' {why} (allowed: ADDRESS or ADDRESS/BITS, as 10.0.0.0/8 or fd00::/8)");
        let (number, bits) = text.split_once('/').map_or((text, None), |(number, bits)| (number, Some(bits)));
        let address: IpAddr = number.parse().map_err(|_| refuse("is not a network"))?;
        let full = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            None => full,
            Some(bits) if !bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(refuse("has no whole prefix length"));
            }
            Some(bits) => bits
                .parse()
                .ok()
                .filter(|&bits| bits <= full)
                .ok_or_else(|| refuse(&format!("needs a prefix from 0 to {full}")))?,
        };
        let network = address.to_canonical();
        match (address, network) {
            (IpAddr::V6(_), IpAddr::V4(_)) if prefix_bits < 96 => {
                Err(refuse("mixes IPv4 and IPv6; write the IPv4 network by itself"))
            }
            (IpAddr::V6(_), IpAddr::V4(_)) => Ok(Self { network, prefix_bits: prefix_bits - 96 }),
            _ => Ok(Self { network, prefix_bits }),
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_bits)
    }
}

/// The first `bits` bits of an address, the rest cleared.
fn leading(address: IpAddr, bits: u8) -> u128 {
    let left_aligned = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    left_aligned & !u128::MAX.checked_shr(u32::from(bits)).unwrap_or(0)
}
