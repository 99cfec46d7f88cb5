//! fio's rdma jobs: which end a job is, where the other one is, and by which verb.
//!
//! The direction tells the end: `rw=read` is the server, `rw=write` the client, whatever the verb. Files of 2011 have
//! `filename=HOST/PORT/VERB` at the client and `filename=HOST/PORT` at the server. Newer ones have the keys `hostname`,
//! `port` and `verb`; `hostname` is another name of `filename`.

use super::{
    keys::{Keys, Result},
    parse::Place,
};

/// What a job names of the other end, or of itself.
struct Named {
    host: Option<String>,
    port: Option<String>,
    verb: Option<(String, Place)>,
    place: Place,
}

/// Sets engine and peer of a client, or finds the address where a server is to be reached.
///
/// # Errors
/// File, line, key, and what was expected.
pub(super) fn role(keys: &mut Keys, rw: &str, rw_place: &Place) -> Result<Option<String>> {
    let named = named(keys)?;
    let bind = keys.text("bindname")?;
    let port = match named.port.as_deref() {
        Some(text) => text.parse::<u16>().ok().filter(|&port| port > 0).ok_or_else(|| {
            format!("{}: port: a number from 1 to 65535 was expected, '{text}' was found", named.place)
        })?,
        None => {
            let place = &named.place;
            return Err(format!("{place}: port: the TCP port was expected, as port=18515 or filename=HOST/PORT/VERB"));
        }
    };
    let is_server = matches!(rw, "read" | "randread");
    if is_server {
        if let Some((verb, place)) = &named.verb {
            keys.note(place, &format!("{verb}: a job with rw=read is fio's server, which has no verb of its own"));
        }
        let host = bind.map(|(host, _)| host).or(named.host);
        return Ok(Some(address(&host.unwrap_or_else(|| "0.0.0.0".into()), port)));
    }
    if rw != "write" {
        return Err(format!("{rw_place}: rw: read (a server) or write (a client) was expected, '{rw}' was found"));
    }
    if let Some((_, place)) = bind {
        return Err(format!("{place}: bindname: a client chooses its device by --device behind the file's name"));
    }
    let Some(host) = named.host else {
        return Err(format!("{}: hostname: the server's name or address was expected", named.place));
    };
    let engine = match named.verb {
        Some((verb, place)) => engine(&verb).map_err(|why| format!("{place}: {why}"))?,
        None => {
            keys.note(&named.place, "no verb is named: RDMA_WRITE, as in fio");
            "rdma-write"
        }
    };
    keys.set("engine", engine);
    keys.set("peer", address(&host, port));
    Ok(None)
}

fn named(keys: &mut Keys) -> Result<Named> {
    let file = keys.text("filename")?;
    let host = keys.text("hostname")?;
    let (port, verb) = (keys.text("port")?, keys.text("verb")?);
    let mut named = Named { host: None, port: port.map(|(port, _)| port), verb, place: keys.place().clone() };
    let Some((name, place)) = host.or(file) else { return Ok(named) };
    named.place = place.clone();
    let mut parts = name.split('/');
    named.host = parts.next().filter(|host| !host.is_empty()).map(String::from);
    if let Some(port) = parts.next() {
        named.port = Some(port.into());
        named.verb = parts.next().map(|verb| (verb.into(), place.clone()));
    }
    if named.host.is_none() || parts.next().is_some() {
        return Err(format!("{place}: HOST/PORT/VERB was expected, or HOST/PORT for a server, '{name}' was found"));
    }
    Ok(named)
}

/// The engine by its verb, in the spelling of 2011 or of today.
fn engine(verb: &str) -> Result<&'static str> {
    match verb {
        "RDMA_WRITE" | "rdma_write" | "write" => Ok("rdma-write"),
        "RDMA_READ" | "rdma_read" | "read" => Ok("rdma-read"),
        "SEND" | "send" => Ok("rdma-send"),
        "recv" => Err("verb: only a server receives: rw=read was expected with 'recv'".into()),
        _ => {
            Err(format!("verb: RDMA_WRITE, RDMA_READ or SEND was expected (or write, read, send), '{verb}' was found"))
        }
    }
}

/// As `--peer` and `--bind` take it: an IPv6 address in brackets.
fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
