use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use proptest::prelude::*;

use crate::peer::{Cidr, Deadline, PeerAddress};

fn parse(text: &str) -> PeerAddress {
    PeerAddress::parse(text, 18520).unwrap()
}

#[test]
fn every_way_to_write_an_address_is_read() {
    for (text, host, port) in [
        ("host-b", "host-b", 18520),
        ("host-b:7", "host-b", 7),
        ("host_b.example.org:65535", "host_b.example.org", 65535),
        ("1.2.3.4", "1.2.3.4", 18520),
        ("1.2.3.4:5", "1.2.3.4", 5),
        ("::1", "::1", 18520),
        ("[::1]", "::1", 18520),
        ("[::1]:5", "::1", 5),
        ("fe80::1%eth0", "fe80::1%eth0", 18520),
        ("[fe80::1%eth0.7]:5", "fe80::1%eth0.7", 5),
    ] {
        let address = parse(text);
        assert_eq!((address.host(), address.port()), (host, port), "{text}");
    }
}

#[test]
fn a_broken_address_is_quoted_with_what_is_allowed() {
    for text in [
        "",
        ":5",
        "host:",
        "host:0",
        "host:65536",
        "host:+5",
        "host:5x",
        "host:5:6",
        "host 5",
        "host/5",
        "[::1",
        "[::1]5",
        "[::1]:",
        "[::1]:0",
        "[::1]x:5",
        "[host]:5",
        "[]:5",
        "::1%",
        "[fe80::1%]:5",
        "fe80::1%eth0:5",
        "::g",
        "1.2.3",
        "1.2.3.4.5",
        "256.1.1.1",
        "18520",
        "1.2.3.4/8",
        "höst",
        "a\nb",
        "host%eth0",
        "99999999999999999999:1",
    ] {
        let message = PeerAddress::parse(text, 18520).unwrap_err();
        assert!(message.contains(&format!("'{text}'")) && message.contains("allowed: HOST"), "{message}");
    }
    let message = PeerAddress::parse("host:65536", 18520).unwrap_err();
    assert!(message.contains("port '65536'") && message.contains("1 to 65535"), "{message}");
}

#[test]
fn a_link_local_address_resolves_with_its_interface() {
    let addresses = parse("[fe80::1%lo]:5").resolve().unwrap();
    let [SocketAddr::V6(address)] = addresses.as_slice() else { panic!("{addresses:?}") };
    assert_ne!(address.scope_id(), 0);
    assert_eq!(address.port(), 5);
}

#[test]
fn an_unknown_interface_is_named() {
    let message = parse("fe80::1%nosuch0").resolve().unwrap_err().to_string();
    assert!(message.starts_with("peer [fe80::1%nosuch0]:18520: the name"), "{message}");
    assert!(message.contains("network interface 'nosuch0'"), "{message}");
}

#[test]
fn an_unknown_name_has_a_message_of_its_own() {
    let error = parse("no-such-host.invalid").connect(Deadline::after(Duration::from_secs(10))).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("the name 'no-such-host.invalid' could not be resolved"), "{message}");
}

#[test]
fn a_listening_server_is_connected_without_delay() {
    for host in ["127.0.0.1", "::1"] {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = PeerAddress::parse(host, listener.local_addr().unwrap().port()).unwrap();
        let (stream, connected) = address.connect(Deadline::after(Duration::from_secs(5))).unwrap();
        assert_eq!(connected, listener.local_addr().unwrap());
        assert!(stream.nodelay().unwrap());
    }
}

#[test]
fn a_refused_connection_asks_for_the_server() {
    // Bound and dropped: the port was free a moment ago, and nobody listens.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = PeerAddress::parse("127.0.0.1", port).unwrap().connect(Deadline::after(Duration::from_secs(5)));
    let message = error.unwrap_err().to_string();
    let wanted = format!("no connection: 127.0.0.1:{port} refused the connection. Is `lat-probe serve` running there?");
    assert!(message.ends_with(&wanted), "{message}");
}

#[test]
fn a_host_that_answers_nothing_is_given_up_at_the_deadline() {
    // A listener that never accepts drops what comes once its backlog is full.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let one_more = |_| TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok();
    let _waiting: Vec<_> = (0..10_000).map_while(one_more).collect();
    let start = Instant::now();
    let peer = PeerAddress::parse("127.0.0.1", address.port()).unwrap();
    let message = peer.connect(Deadline::after(Duration::from_millis(300))).unwrap_err().to_string();
    assert!(message.contains("did not answer within 0.") && message.contains("firewall"), "{message}");
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_deadline_that_has_passed_connects_nobody() {
    let deadline = Deadline::after(Duration::ZERO);
    assert!(parse("127.0.0.1:9").connect(deadline).unwrap_err().to_string().contains("within 0 s"));
}

fn contains(network: &str, address: &str) -> bool {
    network.parse::<Cidr>().unwrap().contains(address.parse::<IpAddr>().unwrap())
}

#[test]
fn a_network_contains_its_addresses_and_no_others() {
    for (network, inside, outside) in [
        ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
        ("10.1.2.3/8", "10.9.9.9", "11.0.0.0"),
        ("192.168.1.128/25", "192.168.1.128", "192.168.1.127"),
        ("1.2.3.4", "1.2.3.4", "1.2.3.5"),
        ("0.0.0.0/0", "255.255.255.255", "::1"),
        ("fd00::/8", "fdff::1", "fe00::1"),
        ("::1", "::1", "::2"),
        ("::/0", "ffff::", "1.2.3.4"),
        ("10.0.0.0/8", "::ffff:10.1.1.1", "::ffff:11.1.1.1"),
        ("::ffff:10.0.0.0/104", "10.1.1.1", "11.1.1.1"),
        ("::/0", "::1", "::ffff:10.1.1.1"),
    ] {
        assert!(contains(network, inside), "{inside} in {network}");
        assert!(!contains(network, outside), "{outside} not in {network}");
    }
}

#[test]
fn a_broken_network_is_quoted_with_what_is_allowed() {
    for text in [
        "",
        "/8",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/+8",
        "10.0.0.0/-1",
        "10.0.0.0/8/8",
        "10/8",
        "::/129",
        "host/8",
        "::ffff:10.0.0.0/64",
        "fe80::1%lo/64",
        "10.0.0.0/999999999999",
    ] {
        let message = text.parse::<Cidr>().unwrap_err();
        assert!(message.contains(&format!("'{text}'")) && message.contains("10.0.0.0/8"), "{message}");
    }
}

proptest! {
    #[test]
    fn no_text_panics_an_address_or_network(text in "\\PC*") {
        let _ = (PeerAddress::parse(&text, 1), text.parse::<Cidr>());
    }

    #[test]
    fn a_printed_address_reads_back(text in "([a-z0-9.:%\\[\\]-]{1,12})") {
        if let Ok(address) = PeerAddress::parse(&text, 18520) {
            prop_assert_eq!(PeerAddress::parse(&address.to_string(), 1), Ok(address));
        }
    }

    #[test]
    fn a_network_contains_what_shares_its_prefix(network: u32, bits in 0u8..=32, other: u32) {
        let same = bits == 0 || (network ^ other) >> (32 - u32::from(bits)) == 0;
        let cidr: Cidr = format!("{}/{bits}", Ipv4Addr::from_bits(network)).parse().unwrap();
        prop_assert_eq!(cidr.contains(IpAddr::from(other.to_be_bytes())), same);
    }
}
