//! Tests over real sockets on the loopback interface; what an address or a token may look like is tested here as well,
//! so that the files beside stay short.

mod address;
mod admission;
mod broken;
mod session;

use std::{
    net::{TcpListener, TcpStream},
    thread::{self, JoinHandle},
    time::Duration,
};

use super::frame::{MAGIC, PROTOCOL};

/// The timeout of a step in tests that wait for it to pass.
const SHORT: Duration = Duration::from_millis(300);
/// The timeout of a step in tests that expect an answer, wide enough for a busy machine.
const LONG: Duration = Duration::from_secs(20);

/// Two ends of one TCP connection over `host`.
fn connected(host: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    (near, far)
}

/// Runs `far` on the other end of a connection and gives this end.
fn against<T: Send + 'static>(far: impl FnOnce(TcpStream) -> T + Send + 'static) -> (TcpStream, JoinHandle<T>) {
    let (near, stream) = connected("127.0.0.1");
    (near, thread::spawn(move || far(stream)))
}

fn opening(protocol: u32) -> Vec<u8> {
    [MAGIC.as_slice(), &protocol.to_be_bytes()].concat()
}

/// A right opening and one frame that holds `json`.
fn opening_and(json: &[u8]) -> Vec<u8> {
    [opening(PROTOCOL).as_slice(), &(json.len() as u32).to_be_bytes(), json].concat()
}
