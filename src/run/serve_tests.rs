//! A client's run as a server follows it, over sockets and without RDMA.

use std::{
    io,
    net::{TcpListener, TcpStream},
    sync::Mutex,
    thread::JoinHandle,
    time::Duration,
};

use indicatif::{ProgressDrawTarget, TermLike};
use serde::Serialize;
use serde_json::{Value, json};

use super::*;
use crate::{
    peer::{Client, Progress, Running},
    stats::Summary,
};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A terminal that keeps all that is written to it.
#[derive(Clone, Debug, Default)]
struct Paper(Arc<Mutex<String>>);

impl Paper {
    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl TermLike for Paper {
    fn width(&self) -> u16 {
        200
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.lock().unwrap().push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str("\n")
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A server that follows one client, up to the verdict, and draws on `paper`.
fn server(paper: &Paper) -> (TcpStream, JoinHandle<Result<Done>>) {
    let screen = Screen::on(ProgressDrawTarget::term_like(Box::new(paper.clone())));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    let serve = move || {
        let (asked, _) = Server::accept(far, "client-a", TIMEOUT)?.hello::<Value>()?;
        let (offered, _) = asked.welcome(&1)?.endpoint::<Value>()?;
        let (mut serving, _) = offered.answer(&1)?.ready()?.run::<RunPlan>()?;
        let done = follow(&mut serving, screen.live("client-a".into()))?;
        serving.verdict(&Verdict { handled: None, verified: None, problem: None })?;
        Ok(done)
    };
    (near, std::thread::spawn(serve))
}

fn running(stream: TcpStream) -> Running {
    let (greeted, _) = Client::open(stream, "host-b", TIMEOUT).unwrap().greet::<Value>(&1).unwrap();
    let plan = json!({ "engine": "rdma-read", "count": 100, "duration_ns": null, "warmup": 10 });
    greeted.exchange::<Value>(&1).unwrap().0.ready().unwrap().run(&plan).unwrap()
}

/// What a server makes of a client that sends these heartbeats and then this summary.
fn followed(heartbeats: &[Progress], summary: &impl Serialize) -> (Result<Done>, String) {
    let paper = Paper::default();
    let (stream, server) = server(&paper);
    let client = running(stream);
    for progress in heartbeats {
        client.progress(progress).unwrap();
    }
    // It may be refused; the server says why.
    let _ = client.done::<Verdict>(summary, TIMEOUT);
    (server.join().unwrap(), paper.text())
}

fn summary() -> Value {
    let latencies: Vec<u64> = (1..=100).collect();
    json!({ "issued": { "commands": 111, "verify": true }, "summary": Summary::of_sorted(&latencies, 1.0), "partial": null })
}

#[test]
fn a_client_is_followed_to_its_summary() {
    let heartbeat =
        |done| Progress { done, total: Some(110), elapsed_ns: Some(done), limit_ns: None, ops_per_s: Some(1.5) };
    let (done, drawn) = followed(&[heartbeat(0), heartbeat(55), heartbeat(111)], &summary());
    let done = done.unwrap();
    for line in
        ["client-a: begins", "client-a: 0 %, ETA unknown, 2/s, ", "client-a: 50 %, ETA ", "client-a: 100 %, ETA 0 s, "]
    {
        assert!(drawn.contains(line), "{line}: {drawn}");
    }
    assert!(drawn.contains(", 110 of 110 commands"), "{drawn}");
    assert_eq!((done.summary.n, done.issued.commands, done.partial), (100, 111, None));
}

#[test]
fn numbers_that_fit_nowhere_end_no_service() {
    let none = Progress::default();
    let heartbeats = [
        none,
        Progress {
            done: u64::MAX,
            total: Some(0),
            elapsed_ns: Some(u64::MAX),
            limit_ns: Some(0),
            ops_per_s: Some(1e308),
        },
        Progress {
            done: u64::MAX,
            total: Some(1),
            elapsed_ns: Some(u64::MAX),
            limit_ns: Some(1),
            ops_per_s: Some(-1e308),
        },
        Progress {
            done: 0,
            total: Some(u64::MAX),
            elapsed_ns: None,
            limit_ns: Some(u64::MAX),
            ops_per_s: Some(1e-308),
        },
        none,
    ];
    let mut claims = summary();
    claims["issued"]["commands"] = json!(u64::MAX);
    claims["summary"]["n"] = json!(u64::MAX);
    claims["summary"]["max"] = json!(1e308);
    let (done, drawn) = followed(&heartbeats, &claims);
    assert!(drawn.contains("client-a: ETA unknown, ") && drawn.contains("client-a: 100 %, ETA 0 s, "), "{drawn}");
    assert!(drawn.contains("client-a: 0 %, ETA beyond 99 d, "), "{drawn}");
    let done = done.unwrap();
    assert_eq!((done.issued.commands, done.summary.n), (u64::MAX, u64::MAX));
}

#[test]
fn a_summary_that_is_none_is_refused_with_the_reason() {
    for (summary, why) in [
        (json!({}), "missing field `issued`"),
        (json!(7), "invalid type"),
        (json!({ "issued": { "commands": -1, "verify": true } }), "invalid value"),
    ] {
        let error = followed(&[], &summary).0.unwrap_err().to_string();
        assert!(error.contains("its summary in step done cannot be understood") && error.contains(why), "{error}");
    }
}

#[test]
fn a_client_that_leaves_takes_its_line_with_it() {
    let paper = Paper::default();
    let (stream, server) = server(&paper);
    let client = running(stream);
    client.progress(&Progress { done: 5, ..Progress::default() }).unwrap();
    drop(client);
    let error = server.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("it closed the connection in step run"), "{error}");
}
