use std::{
    collections::BTreeMap,
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{LONG, SHORT, against, connected};
use crate::{
    error::{Error, Result},
    peer::{
        Client, Event, Progress, Running, Server, Serving,
        client::{Greeted, Paired},
        server::Welcomed,
        session::Session,
    },
};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Hello {
    engine: String,
    depth: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Endpoint {
    qpn: u32,
    gid: [u8; 16],
}

fn hello() -> Hello {
    Hello { engine: "rdma-read".into(), depth: 4 }
}

fn endpoint(qpn: u32) -> Endpoint {
    Endpoint { qpn, gid: [7; 16] }
}

fn greeted_client(stream: TcpStream, timeout: Duration) -> Result<Session<Greeted>> {
    Ok(Client::open(stream, "host-b", timeout)?.greet::<u64>(&hello())?.0)
}

fn paired_client(stream: TcpStream, timeout: Duration) -> Result<Session<Paired>> {
    Ok(greeted_client(stream, timeout)?.exchange::<Endpoint>(&endpoint(1))?.0)
}

fn running_client(stream: TcpStream, timeout: Duration) -> Result<Running> {
    paired_client(stream, timeout)?.ready()?.run(&"plan")
}

fn welcoming_server(stream: TcpStream, timeout: Duration) -> Result<Session<Welcomed>> {
    Server::accept(stream, "client-a", timeout)?.hello::<Hello>()?.0.welcome(&5u64)
}

fn serving_server(stream: TcpStream, timeout: Duration) -> Result<Serving> {
    let (offered, _) = welcoming_server(stream, timeout)?.endpoint::<Endpoint>()?;
    Ok(offered.answer(&endpoint(2))?.ready()?.run::<String>()?.0)
}

fn at(done: u64, total: u64) -> Progress {
    Progress { done, total: Some(total), ..Progress::default() }
}

/// Takes events until the summary, and counts the heartbeats.
fn serve_to_the_end(mut serving: Serving) -> Result<(u64, u64)> {
    let mut heartbeats = 0;
    loop {
        match serving.next::<u64>(LONG)? {
            Event::Progress(_) => heartbeats += 1,
            Event::Done(summary) => {
                serving.verdict(&(summary + 1))?;
                return Ok((heartbeats, summary));
            }
        }
    }
}

#[test]
fn a_whole_session_carries_every_payload_both_ways() {
    for host in ["127.0.0.1", "::1"] {
        let (near, far) = connected(host);
        let server = thread::spawn(move || -> Result<_> {
            let (asked, hello) = Server::accept(far, "client-a", LONG)?.hello::<Hello>()?;
            let welcomed = asked.welcome(&BTreeMap::from([("grant", 5u64)]))?;
            let (offered, remote) = welcomed.endpoint::<Endpoint>()?;
            let (serving, plan) = offered.answer(&endpoint(2))?.ready()?.run::<String>()?;
            Ok((hello, remote, plan, serve_to_the_end(serving)?))
        });
        let client = Client::open(near, "host-b", LONG).unwrap();
        let (greeted, welcome) = client.greet::<BTreeMap<String, u64>>(&hello()).unwrap();
        assert_eq!(welcome["grant"], 5);
        let (paired, remote) = greeted.exchange::<Endpoint>(&endpoint(1)).unwrap();
        assert_eq!(remote, endpoint(2));
        let running = paired.ready().unwrap().run(&"the plan").unwrap();
        thread::scope(|scope| {
            // The monitor shares the session with the thread that measures.
            let monitor = scope.spawn(|| {
                (0..3).try_for_each(|done| running.peer_alive().and_then(|()| running.progress(&at(done, 3))))
            });
            monitor.join().unwrap().unwrap();
        });
        running.progress(&Progress { done: 3, ..Progress::default() }).unwrap();
        assert_eq!(running.done::<u64>(&41u64, LONG).unwrap(), 42);
        let served = server.join().unwrap().unwrap();
        assert_eq!(served, (hello(), endpoint(1), "the plan".to_string(), (4, 41)));
    }
}

#[test]
fn progress_says_how_far_of_what() {
    let (near, server) = against(|far| serving_server(far, LONG).unwrap().next::<u64>(LONG).unwrap());
    let sent = Progress { elapsed_ns: Some(5), limit_ns: Some(u64::MAX), ops_per_s: Some(0.5), ..at(7, 9) };
    running_client(near, LONG).unwrap().progress(&sent).unwrap();
    assert_eq!(server.join().unwrap(), Event::Progress(sent));
}

#[test]
fn a_refusal_reaches_the_client_word_for_word() {
    let (near, server) = against(|far| {
        let (asked, _) = Server::accept(far, "client-a", LONG).unwrap().hello::<Hello>().unwrap();
        asked.refuse("depth 4 is beyond this server's limit of 2 (\"--max-depth\")");
    });
    let error = greeted_client(near, LONG).unwrap_err();
    assert_eq!(error.to_string(), "peer host-b: depth 4 is beyond this server's limit of 2 (\"--max-depth\")");
    server.join().unwrap();
}

#[test]
fn a_failure_between_two_steps_is_told_to_the_other_end() {
    let (near, server) = against(|far| welcoming_server(far, LONG).unwrap().endpoint::<Endpoint>().unwrap_err());
    let local: Result<()> = Err(Error::Clock("it runs backwards".into()));
    let error = greeted_client(near, LONG).unwrap().carry(local).unwrap_err();
    assert_eq!(error.to_string(), "clock: it runs backwards");
    assert_eq!(server.join().unwrap().to_string(), "peer client-a: clock: it runs backwards");
}

#[test]
fn a_success_between_two_steps_goes_along() {
    let (near, server) = against(|far| welcoming_server(far, LONG).unwrap().endpoint::<Endpoint>().unwrap().1);
    let (greeted, seven) = greeted_client(near, LONG).unwrap().carry(Ok(7)).unwrap();
    assert_eq!((seven, greeted.peer()), (7, "host-b"));
    // This server leaves after the endpoint.
    let error = greeted.exchange::<Endpoint>(&endpoint(1)).unwrap_err().to_string();
    assert_eq!(error, "peer host-b: it closed the connection in step exchange, where its endpoint was due");
    assert_eq!(server.join().unwrap(), endpoint(1));
}

#[test]
fn a_step_that_fails_at_one_end_fails_with_the_same_reason_at_the_other() {
    let (near, server) = against(|far| {
        // A server that wants a number where this client sends a text.
        let (offered, _) = welcoming_server(far, LONG)?.endpoint::<Endpoint>()?;
        offered.answer(&endpoint(2))?.ready()?.run::<u64>().map(|_| ())
    });
    let running = running_client(near, LONG).unwrap();
    let served = server.join().unwrap().unwrap_err().to_string();
    assert!(served.starts_with("peer client-a: its plan in step run cannot be understood: invalid type"), "{served}");
    let measured = running.done::<u64>(&1, LONG).unwrap_err().to_string();
    assert_eq!(measured, format!("peer host-b: {served}"));
}

#[test]
fn a_client_that_vanishes_in_a_run_is_noticed_at_once() {
    let (near, server) = against(|far| serve_to_the_end(serving_server(far, LONG).unwrap()));
    let running = running_client(near, LONG).unwrap();
    running.progress(&at(1, 2)).unwrap();
    let start = Instant::now();
    drop(running);
    let message = server.join().unwrap().unwrap_err().to_string();
    let wanted = "it closed the connection in step run, where its progress or summary was due";
    assert_eq!(message, format!("peer client-a: {wanted}"));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_client_without_heartbeat_is_given_up_and_told_so() {
    let (near, server) = against(|far| serving_server(far, LONG).unwrap().next::<u64>(SHORT).unwrap_err());
    let running = running_client(near, LONG).unwrap();
    let message = server.join().unwrap().to_string();
    assert!(message.contains("it sent nothing within 0.3 s in step run, where its progress or summary"), "{message}");
    assert_eq!(running.peer_alive().unwrap_err().to_string(), format!("peer host-b: {message}"));
}

#[test]
fn a_server_that_vanishes_in_a_run_is_seen_without_waiting() {
    let (near, server) = against(|far| drop(serving_server(far, LONG).unwrap()));
    let running = running_client(near, LONG).unwrap();
    server.join().unwrap();
    let message = running.peer_alive().unwrap_err().to_string();
    assert_eq!(message, "peer host-b: it closed the connection in step run");
    assert_eq!(running.peer_alive().unwrap_err().to_string(), message);
    assert_eq!(running.progress(&at(1, 2)).unwrap_err().to_string(), message);
}

#[test]
fn a_server_that_fails_in_a_run_is_heard_by_every_thread() {
    let (near, server) = against(|far| {
        serving_server(far, LONG).unwrap().abort(&Error::Verification("byte 5 is wrong".into()));
    });
    let running = running_client(near, LONG).unwrap();
    let deadline = Instant::now() + LONG;
    let heard = loop {
        match running.peer_alive() {
            Err(error) => break error.to_string(),
            Ok(()) => assert!(Instant::now() < deadline, "not heard"),
        }
    };
    assert_eq!(heard, "peer host-b: verification failed: byte 5 is wrong");
    assert_eq!(running.done::<u64>(&1, LONG).unwrap_err().to_string(), heard);
    server.join().unwrap();
}

#[test]
fn a_reason_is_found_even_when_the_connection_is_already_gone() {
    // The server says why and is gone; its socket resets what the client still writes.
    let (near, server) = against(|far| {
        serving_server(far, LONG).unwrap().abort(&Error::Clock("drift".into()));
    });
    let running = running_client(near, LONG).unwrap();
    server.join().unwrap();
    let failure = (0..100).find_map(|done| {
        thread::sleep(Duration::from_millis(5));
        running.progress(&at(done, 100)).err()
    });
    assert_eq!(failure.unwrap().to_string(), "peer host-b: clock: drift");
}

#[test]
fn a_look_does_not_wait_for_a_living_server() {
    let (near, server) = against(|far| serve_to_the_end(serving_server(far, LONG).unwrap()));
    let running = running_client(near, LONG).unwrap();
    let start = Instant::now();
    for _ in 0..100 {
        running.peer_alive().unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(2));
    running.abort(&Error::usage("interrupted"));
    assert_eq!(server.join().unwrap().unwrap_err().to_string(), "peer client-a: interrupted");
}

#[test]
fn a_late_verdict_has_a_timeout_of_its_own() {
    let (near, server) = against(|far| {
        let mut serving = serving_server(far, LONG).unwrap();
        let event = serving.next::<u64>(LONG).unwrap();
        thread::sleep(2 * SHORT);
        (event, serving.verdict(&1u64))
    });
    let error = running_client(near, LONG).unwrap().done::<u64>(&9, SHORT).unwrap_err().to_string();
    assert_eq!(error, "peer host-b: it sent nothing within 0.3 s in step done, where its verdict was due");
    assert_eq!(server.join().unwrap().0, Event::Done(9));
}
