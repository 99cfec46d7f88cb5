//! Other ends that are broken, hostile, or no lat-probe at all.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{LONG, SHORT, against, opening, opening_and};
use crate::peer::{
    Client, Deadline, Server,
    frame::{MAX_FRAME_BYTES, PROTOCOL, Wire, printable},
    kind::Kind,
};

#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    engine: String,
}

/// What a server reports when `sent` comes and the client then stays without a word.
fn served(sent: impl Into<Vec<u8>>) -> String {
    let sent = sent.into();
    let (near, client) = against(move |mut far| {
        far.write_all(&sent).unwrap();
        // Until the server closes.
        let _ = far.read_to_end(&mut Vec::new());
    });
    let start = Instant::now();
    let error = Server::accept(near, "client-a", SHORT).and_then(|server| server.hello::<Hello>()).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5), "{error}");
    client.join().unwrap();
    error.to_string()
}

/// What a server reports when the client sends `sent` and closes.
fn served_and_closed(sent: &[u8]) -> String {
    let sent = sent.to_vec();
    let (near, client) = against(move |mut far| far.write_all(&sent).unwrap());
    client.join().unwrap();
    Server::accept(near, "client-a", LONG).and_then(|server| server.hello::<Hello>()).unwrap_err().to_string()
}

/// A server that leaves after a hello, which is a text.
fn hello_of(stream: TcpStream) -> crate::error::Result<String> {
    Server::accept(stream, "client-a", LONG)?.hello().map(|(_, hello)| hello)
}

#[test]
fn a_silent_peer_is_reported_within_the_deadline() {
    assert_eq!(served(""), "peer client-a: it sent nothing within 0.3 s in step open, where its opening was due");
    let message = served(opening(PROTOCOL));
    assert_eq!(message, "peer client-a: it sent nothing within 0.3 s in step greet, where its hello was due");
}

#[test]
fn a_peer_that_stops_half_way_is_told_from_a_silent_one() {
    let message = served("LATPROBE\0");
    assert_eq!(
        message,
        "peer client-a: it sent only 9 of 12 bytes within 0.3 s in step open, where its opening was due"
    );
    let whole = opening_and(br#"{"hello":{"engine":"null"}}"#);
    let message = served(&whole[..20]);
    assert_eq!(
        message,
        "peer client-a: it sent only 8 of 31 bytes within 0.3 s in step greet, where its hello was due"
    );
    let message = served(&whole[..14]);
    assert_eq!(message, "peer client-a: it sent only 2 of 4 bytes within 0.3 s in step greet, where its hello was due");
}

#[test]
fn a_peer_that_drips_bytes_does_not_extend_the_deadline() {
    let (near, client) = against(|mut far| {
        let frame = opening_and(&[b' '; 1000]);
        let _ = far.write_all(&frame[..14]);
        frame[14..].iter().take_while(|&&byte| far.write_all(&[byte]).is_ok()).for_each(|_| {
            thread::sleep(Duration::from_millis(20));
        });
    });
    let start = Instant::now();
    let error = Server::accept(near, "client-a", SHORT).unwrap().hello::<Hello>().unwrap_err().to_string();
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert!(error.contains("of 1004 bytes within 0.3 s in step greet"), "{error}");
    client.join().unwrap();
}

#[test]
fn a_peer_that_closes_is_named_with_the_step() {
    for (sent, step) in [
        (Vec::new(), "open, where its opening was due"),
        (b"LATPROB".to_vec(), "open, where its opening was due"),
        (opening(PROTOCOL), "greet, where its hello was due"),
        (opening_and(b"{\"hello\":{\"engine\":\"null\"}}")[..25].to_vec(), "greet, where its hello was due"),
    ] {
        let message = served_and_closed(&sent);
        assert_eq!(message, format!("peer client-a: it closed the connection in step {step}"));
    }
}

#[test]
fn a_web_server_is_recognised_as_none_of_ours() {
    let (near, server) = against(|mut far| {
        let _ = far.read(&mut [0; 64]);
        let _ = far.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    });
    let error = Client::open(near, "host-b", LONG).unwrap_err().to_string();
    let wanted = "it is not a lat-probe: it opens with \"HTTP/1.1 400 Bad\". Is the port right?";
    assert_eq!(error, format!("peer host-b: {wanted}"));
    server.join().unwrap();
}

#[test]
fn a_strangers_bytes_are_escaped_and_need_not_fill_an_opening() {
    assert_eq!(
        served(b"\x1b[2J\"\n\xff"),
        "peer client-a: it is not a lat-probe: it opens with \"\\x1b[2J\\\"\\n\\xff\". Is the port right?"
    );
}

#[test]
fn another_protocol_version_says_which_end_to_update() {
    let message = served(opening(PROTOCOL + 1));
    assert_eq!(
        message,
        "peer client-a: it speaks protocol version 2, this lat-probe speaks 1. Update lat-probe on this host"
    );
    let message = served(opening(0));
    assert_eq!(
        message,
        "peer client-a: it speaks protocol version 0, this lat-probe speaks 1. Update lat-probe on the peer"
    );
}

#[test]
fn a_frame_that_is_too_long_is_refused_before_it_is_read() {
    for length in [MAX_FRAME_BYTES as u32 + 1, u32::MAX] {
        let message = served([opening(PROTOCOL).as_slice(), &length.to_be_bytes()].concat());
        let wanted = format!("it announced a frame of {length} bytes in step greet, where its hello was due");
        assert_eq!(message, format!("peer client-a: {wanted}; at most 65536 are allowed"));
    }
}

#[test]
fn a_frame_of_the_largest_size_passes_and_one_byte_more_does_not() {
    let largest = "x".repeat(MAX_FRAME_BYTES - r#"{"hello":""}"#.len());
    let too_long = format!("{largest}x");
    let (near, server) = against(hello_of);
    let client = Client::open(near, "host-b", LONG).unwrap();
    let error = client.greet::<u64>(&largest).unwrap_err().to_string();
    assert_eq!(error, "peer host-b: it closed the connection in step greet, where its welcome was due");
    assert_eq!(server.join().unwrap().unwrap(), largest);

    let (near, server) = against(hello_of);
    let error = Client::open(near, "host-b", LONG).unwrap().greet::<u64>(&too_long).unwrap_err().to_string();
    assert_eq!(error, "peer host-b: this end's hello takes 65537 bytes, at most 65536 fit into a frame");
    assert_eq!(server.join().unwrap().unwrap_err().to_string(), format!("peer client-a: {error}"));
}

#[test]
fn an_empty_frame_is_refused() {
    assert_eq!(
        served(opening_and(b"")),
        "peer client-a: it sent an empty frame in step greet, where its hello was due"
    );
}

#[test]
fn what_is_no_json_is_quoted_with_the_parsers_words() {
    let message = served(opening_and(b"hello"));
    let wanted = "it sent a frame that is not JSON in step greet, where its hello was due: expected value";
    assert_eq!(message, format!("peer client-a: {wanted} at line 1 column 1"));
    for json in [b"{\"hello\":".as_slice(), b"\xff\xff", b"{} {}", "[".repeat(60_000).as_bytes(), b"{\"hello\":1e999}"]
    {
        let message = served(opening_and(json));
        assert!(message.contains("not JSON in step greet"), "{message}");
    }
}

#[test]
fn json_that_does_not_belong_here_is_named() {
    for (json, wanted) in [
        ("[]", "it sent JSON that names no step in step greet, where its hello was due"),
        ("{}", "it sent JSON that names no step in step greet, where its hello was due"),
        (r#"{"a":1,"b":2}"#, "it sent JSON that names no step in step greet, where its hello was due"),
        (r#"{"plan":1}"#, "it sent 'plan' in step greet, where its hello was due"),
        (r#"{"\u001b[2J":1}"#, "it sent '\\u{1b}[2J' in step greet, where its hello was due"),
        (r#"{"fail":1}"#, "it sent 'fail' in step greet, where its hello was due"),
        (r#"{"hello":{}}"#, "its hello in step greet cannot be understood: missing field `engine`"),
    ] {
        assert_eq!(served(opening_and(json.as_bytes())), format!("peer client-a: {wanted}"), "{json}");
    }
}

#[test]
fn a_failure_text_cannot_steer_the_terminal() {
    let message = served(opening_and(br#"{"fail":"no\n\u001b[2Jdevice \u00fc"}"#));
    assert_eq!(message, "peer client-a: no\\n\\u{1b}[2Jdevice ü");
}

#[test]
fn a_value_that_json_cannot_hold_is_refused_at_both_ends() {
    let (near, server) = against(|far| Server::accept(far, "client-a", LONG)?.hello::<Hello>());
    let no_text_as_key = std::collections::BTreeMap::from([((1, 2), 3)]);
    let error = Client::open(near, "host-b", LONG).unwrap().greet::<u64>(&no_text_as_key).unwrap_err().to_string();
    assert!(error.starts_with("peer host-b: this end's hello cannot be written as JSON: key must be"), "{error}");
    assert_eq!(server.join().unwrap().unwrap_err().to_string(), format!("peer client-a: {error}"));
}

#[test]
fn a_peer_that_takes_no_bytes_is_reported_within_the_deadline() {
    let (near, peer) = against(|mut far: TcpStream| {
        far.write_all(&opening_and(br#"{"hello":1}"#)).unwrap();
        thread::sleep(10 * SHORT);
    });
    // The heartbeat is the one frame that is sent again and again without an answer; here nobody takes it.
    let mut wire = Wire::open(near, "client-a", Deadline::after(SHORT)).unwrap();
    let frame = "x".repeat(MAX_FRAME_BYTES / 2);
    let error = (0..10_000).find_map(|_| wire.send(Kind::Progress, &frame, Deadline::after(SHORT)).err());
    assert_eq!(error.unwrap().to_string(), "peer client-a: it did not take this end's progress within 0.3 s");
    drop(wire);
    peer.join().unwrap();
}

#[test]
fn a_flood_during_a_run_is_cut_off_at_the_first_frame() {
    let (near, server) = against(|mut far| {
        let _ = far.write_all(&opening_and(br#"{"progress":1}"#).repeat(10));
        let _ = far.read_to_end(&mut Vec::new());
    });
    let mut wire = Wire::open(near, "host-b", Deadline::after(LONG)).unwrap();
    let error = (0..1000).find_map(|_| {
        thread::sleep(Duration::from_millis(1));
        wire.look().err()
    });
    assert_eq!(error.unwrap().to_string(), "peer host-b: it sent 'progress' in step run, where nothing was due");
    drop(wire);
    server.join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_end_in_an_error(sent in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(served_and_closed(&sent).starts_with("peer client-a: it "));
    }

    #[test]
    fn random_frames_end_in_an_error(sent in prop::collection::vec(any::<u8>(), 0..300)) {
        let sent = [opening(PROTOCOL), sent].concat();
        prop_assert!(served_and_closed(&sent).starts_with("peer client-a: it "));
    }

    #[test]
    fn random_json_bodies_end_in_an_error(body in "[\\[\\]{}\":,a-z0-9\\\\ ]{1,60}") {
        prop_assert!(served_and_closed(&opening_and(body.as_bytes())).starts_with("peer client-a: it"));
    }

    #[test]
    fn random_bytes_from_a_client_that_stays_end_in_time(sent in prop::collection::vec(any::<u8>(), 1..40)) {
        // A stranger's first byte is wrong, save one time in 256: this takes no timeout to see.
        prop_assert!(served(sent).starts_with("peer client-a: it "));
    }

    #[test]
    fn printable_text_has_no_control_characters(text: String) {
        prop_assert!(!printable(&text).contains(char::is_control));
    }
}
