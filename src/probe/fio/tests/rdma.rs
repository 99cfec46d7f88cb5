//! What jobs of the rdma engine become.

use super::*;

#[test]
fn the_client_of_2011_is_the_same_measurement() {
    for (verb, engine) in [("RDMA_WRITE", "rdma-write"), ("RDMA_READ", "rdma-read"), ("SEND", "rdma-send")] {
        let job = only(&format!(
            "[global]\nioengine=rdma\nfilename=192.168.2.4/18301/{verb}\nbs=1m\nsize=100g\n\
             [sender]\nrw=write\niodepth=1\niodepth_batch_complete=1\n"
        ));
        assert_eq!(line(&job), format!("bs=1M count=102400 engine={engine} peer=192.168.2.4:18301 qd=1"));
        assert_eq!((job.name.as_str(), job.place.to_string().as_str()), ("sender", "j.fio:6"));
        assert_eq!(
            job.notes,
            ["j.fio:2: fio sleeps until a command completes; lat-probe polls (--completion event sleeps)"]
        );
    }
}

#[test]
fn the_server_of_2011_serves_where_its_file_says() {
    let job = only(
        "[global]\nioengine=rdma\nfilename=192.168.2.4/18301\nbs=1m\nsize=100g\n[receiver]\nrw=read\niodepth=16\n",
    );
    assert_eq!((job.serve.as_deref(), job.options.len(), job.notes.len()), (Some("192.168.2.4:18301"), 0, 0));
}

#[test]
fn newer_rdma_files_name_host_port_and_verb() {
    let head = "[a]\nioengine=rdma\nport=7000\nsize=1m\n";
    let client = only(&format!("{head}hostname=b\nverb=read\nrw=write\niodepth=8\n"));
    assert_eq!(line(&client), "bs=4k count=256 engine=rdma-read peer=b:7000 qd=8");
    let plain = only(&format!("{head}filename=fe80::1%eth0\nrw=write\n"));
    assert_eq!(
        (plain.options["peer"].as_str(), plain.options["engine"].as_str()),
        ("[fe80::1%eth0]:7000", "rdma-write")
    );
    assert!(plain.notes[0].starts_with("j.fio:5: no verb is named: RDMA_WRITE"), "{:?}", plain.notes);
    let serve = |more: &str| only(&format!("{head}{more}\n")).serve;
    assert_eq!(serve(""), Some("0.0.0.0:7000".into()));
    assert_eq!(serve("hostname=b\nrw=read"), Some("b:7000".into()));
    assert_eq!(serve("hostname=b\nbindname=10.0.0.1"), Some("10.0.0.1:7000".into()));
}

#[test]
fn the_direction_tells_the_server_whatever_the_verb() {
    let job = only("[a]\nioengine=rdma\nhostname=b\nport=7000\nverb=read\nrw=read\nsize=1m\n");
    assert_eq!(job.serve.as_deref(), Some("b:7000"));
    assert!(job.notes[0].starts_with("j.fio:5: read: a job with rw=read is fio's server"), "{:?}", job.notes);
}

#[test]
fn what_an_rdma_job_lacks_is_named() {
    let refusal = |keys: &str| read(&format!("[a]\nioengine=rdma\nsize=1m\n{keys}\n")).unwrap_err();
    for (keys, words) in [
        ("rw=write\nhostname=b", "j.fio:5: port: the TCP port was expected"),
        ("rw=write\nport=7", "j.fio:1: hostname: the server's name"),
        ("rw=write\nfilename=b/x/SEND", "j.fio:5: port: a number from 1 to 65535 was expected, 'x' was found"),
        ("rw=write\nfilename=b/0/SEND", "j.fio:5: port"),
        ("rw=write\nfilename=b/70000", "j.fio:5: port"),
        ("rw=write\nfilename=b/7/WRITE", "j.fio:5: verb: RDMA_WRITE, RDMA_READ or SEND was expected"),
        ("rw=write\nfilename=/7/SEND", "j.fio:5: HOST/PORT/VERB was expected"),
        ("rw=write\nfilename=b/7/SEND/x", "j.fio:5: HOST/PORT/VERB was expected"),
        ("rw=write\nhostname=b\nport=7\nverb=recv", "j.fio:7: verb: only a server receives"),
        ("rw=randwrite\nhostname=b\nport=7", "j.fio:4: rw: read (a server) or write (a client)"),
        ("rw=write\nhostname=b\nport=7\nbindname=c", "j.fio:7: bindname: a client chooses its device by --device"),
        ("rw=write\nhostname=b\nport=7\nfixedbufs", "j.fio:7: fixedbufs: ioengine=rdma has no such key"),
        ("rw=read\nport=7\ncolour=red", "j.fio:6: colour: unknown key"),
    ] {
        let why = refusal(keys);
        assert!(why.starts_with(words), "{keys:?} should say {words:?}: {why}");
    }
}

#[test]
fn both_ends_in_one_run_are_refused() {
    let text =
        "[global]\nioengine=rdma\nfilename=h/7/SEND\nsize=1m\n[receiver]\nrw=read\n[sender]\nstonewall\nrw=write\n";
    let why = read(text).unwrap_err();
    assert!(
        why.starts_with("j.fio:7: [receiver] is a server and [sender] is none") && why.contains("--section"),
        "{why}"
    );
    assert!(read_section(text, Some("sender")).is_ok());
}

#[test]
fn a_port_in_the_file_name_settles_the_verb_too() {
    let job = only("[a]\nioengine=rdma\nfilename=b/7\nverb=read\nport=9\nrw=write\nsize=1m\n");
    assert_eq!((job.options["engine"].as_str(), job.options["peer"].as_str()), ("rdma-write", "b:7"));
}
