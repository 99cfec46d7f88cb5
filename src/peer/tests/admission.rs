use std::{fs, net::IpAddr, os::unix::fs::PermissionsExt, path::PathBuf};

use crate::peer::{Admission, read_token_file};

const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

#[test]
fn a_slot_is_free_again_when_its_ticket_is_dropped() {
    let admission = Admission::new(2, Vec::new(), None);
    let first = admission.admit(LOCAL, None).unwrap();
    let _second = admission.admit(LOCAL, Some("unneeded")).unwrap();
    assert_eq!(admission.admit(LOCAL, None).unwrap_err(), "the server is busy with 2 clients, its limit");
    drop(first);
    let _third = admission.admit(LOCAL, None).unwrap();
    assert_eq!(admission.admitted(), 2);
}

#[test]
fn an_address_outside_the_allowed_networks_is_refused() {
    let admission = Admission::new(9, vec!["10.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()], None);
    let refusal = admission.admit(LOCAL, None).unwrap_err();
    assert_eq!(refusal, "127.0.0.1 is in none of the networks that this server allows");
    assert!(admission.admit("::ffff:10.1.1.1".parse().unwrap(), None).is_ok());
    assert!(admission.admit("::1".parse().unwrap(), None).is_ok());
    assert_eq!(admission.admitted(), 0);
}

#[test]
fn only_the_right_token_is_admitted_and_wrong_ones_take_no_slot() {
    let admission = Admission::new(1, Vec::new(), Some("secret".into()));
    assert!(admission.admit(LOCAL, None).unwrap_err().contains("needs a token"));
    for wrong in ["", "secre", "secrets", "secretsecret", "Secret", "\0"] {
        assert_eq!(admission.admit(LOCAL, Some(wrong)).unwrap_err(), "the token is wrong", "{wrong:?}");
    }
    let _ticket = admission.admit(LOCAL, Some("secret")).unwrap();
    assert_eq!(admission.admit(LOCAL, Some("secret")).unwrap_err(), "the server is busy with another client");
}

#[test]
fn the_token_is_not_in_the_debug_text() {
    let shown = format!("{:?}", Admission::new(1, Vec::new(), Some("secret".into())));
    assert!(shown.contains("needs_token: true") && !shown.contains("secret"), "{shown}");
}

#[test]
fn many_threads_never_hold_more_than_the_limit() {
    let admission = Admission::new(3, Vec::new(), None);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let ticket = admission.admit(LOCAL, None);
                    assert!(admission.admitted() <= 3);
                    drop(ticket);
                }
            });
        }
    });
    assert_eq!(admission.admitted(), 0);
}

/// A file with this content and mode, and the directory that keeps it.
fn token_file(content: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    (directory, path)
}

#[test]
fn a_token_is_read_without_its_line_end() {
    let longest = [b'x'; 1024];
    for (content, token) in [
        (b"secret\n".as_slice(), "secret"),
        (b"secret", "secret"),
        (b"secret\r\n", "secret"),
        (b" se cret \n\n", " se cret \n"),
        (&[&longest[..], b"\n"].concat(), std::str::from_utf8(&longest).unwrap()),
    ] {
        let (_directory, path) = token_file(content, 0o600);
        assert_eq!(read_token_file(&path).unwrap(), token);
    }
}

#[test]
fn a_token_that_is_none_is_refused_with_the_reason() {
    for (content, reason) in [
        (b"".as_slice(), "is empty"),
        (b"\n", "is empty"),
        (&[b'x'; 1025], "more than 1024 bytes"),
        ("é".repeat(5000).as_bytes(), "more than 1024 bytes"),
        (b"\xff\xfe\n", "is not UTF-8"),
    ] {
        let (_directory, path) = token_file(content, 0o400);
        let message = read_token_file(&path).unwrap_err().to_string();
        assert!(message.contains(reason) && message.contains(path.to_str().unwrap()), "{message}");
    }
}

#[test]
fn a_token_that_others_can_read_is_refused_with_the_remedy() {
    for mode in [0o640, 0o604, 0o644, 0o620, 0o602] {
        let (_directory, path) = token_file(b"secret", mode);
        let error = read_token_file(&path).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(&format!("mode {mode:04o}")) && message.contains("chmod 600"), "{message}");
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR).unwrap();
    for path in [directory.path(), &fifo] {
        assert!(read_token_file(path).unwrap_err().to_string().contains("not a regular file"));
    }
    let message = read_token_file(&directory.path().join("none")).unwrap_err().to_string();
    assert!(message.contains("none: open: No such file"), "{message}");
}
