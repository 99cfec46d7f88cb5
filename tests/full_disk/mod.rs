//! A disk without room, to see what is left of an old file there.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

/// Runs the program in the folder of a full disk where `file` says "old". Behind what it prints stand the file's text and the
/// names in the folder. None, with the reason on stderr, where no disk can be mounted.
pub fn run(binary: &Path, file: &str, arguments: &[&str]) -> Option<Output> {
    let script = r#"mount -t tmpfs -o size=64k none "$1" && cd "$1" || exit 99
        file=$2
        shift 2
        echo old > "$file"
        dd if=/dev/zero of=fill bs=4k 2> /dev/null
        "$@"
        code=$?
        cat "$file"; ls -A
        exit $code"#;
    let folder = tempfile::tempdir().ok()?;
    // A mount namespace of its own: the small disk is gone with the process, whatever happens. Root can have it, and
    // others where user namespaces are allowed.
    let attempt = |namespace: &str| {
        let mut command = Command::new("unshare");
        command.args([namespace, "sh", "-c", script, "sh"]).arg(folder.path()).arg(file).arg(binary).args(arguments);
        let output = command.stdin(Stdio::null()).output().ok()?;
        (output.status.code() != Some(99) && !output.stderr.starts_with(b"unshare:")).then_some(output)
    };
    let output = attempt("-m").or_else(|| attempt("-rm"));
    if output.is_none() {
        eprintln!("skipped: no small disk can be mounted here");
    }
    output
}
