//! fio's job files, as they are: the commands that they become, that they run, and what is said of a broken one.

use std::{
    fs,
    io::Read,
    net::TcpListener,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn command(file: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.arg("run").arg(file).args(more).env_remove("SIZE").stdin(Stdio::null());
    command
}

fn run(file: &str, more: &[&str]) -> Output {
    command(file, more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of probes/fio.
fn job(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("probes/fio").join(name).display().to_string()
}

/// What `--explain` says, line by line.
fn explained(file: &str, more: &[&str]) -> Vec<String> {
    let output = run(file, &[more, &["--explain"]].concat());
    assert!(output.status.success(), "{file}: {}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "{file}");
    text(&output.stdout).lines().map(String::from).collect()
}

/// Those of its lines that a shell would carry out.
fn commands(file: &str, more: &[&str]) -> Vec<String> {
    explained(file, more).into_iter().filter(|line| !line.starts_with('#')).collect()
}

/// A folder in memory with a file of a megabyte, `data`, and the job file `j.fio`.
fn folder(jobs: &str) -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (file, data) = (folder.path().join("j.fio"), folder.path().join("data"));
    fs::write(&data, vec![1u8; 1 << 20]).unwrap();
    fs::write(&file, jobs.replace("DATA", data.to_str().unwrap())).unwrap();
    let name = |path: &Path| path.to_str().unwrap().to_string();
    (folder, name(&file), name(&data))
}

#[test]
fn every_job_file_is_understood() {
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("probes/fio")).unwrap();
    let mut seen = 0;
    for file in files {
        let file = file.unwrap().path().display().to_string();
        assert!(commands(&file, &[]).iter().all(|line| line.starts_with("lat-probe ")), "{file}");
        seen += 1;
    }
    assert!(seen >= 6, "only {seen} files");
}

#[test]
fn the_files_of_2011_are_a_client_for_each_verb_and_a_server() {
    for verb in ["write", "read", "send"] {
        let file = job(&format!("rdma-{verb}-client.fio"));
        let options = "--peer 192.168.2.4:18301 --bs 1M --qd 1 --count 102400";
        assert_eq!(commands(&file, &[]), [format!("lat-probe --engine rdma-{verb} {options}")]);
        let said = explained(&file, &[]);
        assert_eq!(said[0], format!("# {file}:8: [sender]"));
        assert!(said[1].starts_with(&format!("# {file}:3: fio sleeps until a command completes")), "{said:?}");
    }
    assert_eq!(commands(&job("rdma-server.fio"), &[]), ["lat-probe serve --once --bind 192.168.2.4:18301"]);
}

#[test]
fn the_files_of_2007_are_their_engines_at_their_depths() {
    let ring = "--uring-unregistered";
    let line = |engine: &str, depth: &str, end: &str| {
        let file = "--target /ramfs/testfile --rw read --bs 8k";
        format!("lat-probe --engine {engine} {file}{depth} --count 131072 --buffered --size 1G{end}")
    };
    assert_eq!(
        commands(&job("engines-2007.fio"), &[]),
        [
            line("libaio", " --qd 1", ""),
            line("io-uring", " --qd 1", &format!(" {ring}")),
            line("psync", "", ""),
            line("libaio", " --qd 32", ""),
            line("io-uring", " --qd 32", &format!(" {ring}")),
        ]
    );
    let line = |engine: &str, depth: &str| {
        let file = "--target testfile --rw randread --bs 64k";
        format!("lat-probe --engine {engine} {file} --qd {depth} --count 16384 --direct --size 1G")
    };
    assert_eq!(
        commands(&job("depth-2007.fio"), &[]),
        [
            line("libaio", "64"),
            format!("{} {ring}", line("io-uring", "64")),
            line("libaio", "20000"),
            format!("{} {ring}", line("io-uring", "20000")),
        ]
    );
    let one = explained(&job("depth-2007.fio"), &["--section", "syslet-64"]).join("\n");
    assert!(one.contains(":16: syslets never entered Linux") && !one.contains("libaio-64"), "{one}");
    assert!(one.contains("`lat-probe fill --allow-write testfile --size 1G`"), "{one}");
}

#[test]
fn options_that_this_version_takes_or_not_are_explained_alike() {
    let keys = "rw=randread\ndirect=1\nruntime=10\ntime_based\nramp_time=2s\nnumjobs=4\ngroup_reporting\nrate_iops=100\n\
                rate_process=poisson\ncpus_allowed=0-1\nrandseed=7\noffset=4k\nfilename=/a b";
    let (_folder, file, _) = folder(&format!("[j]\nsize=1m\n{keys}\n"));
    let options = "--engine psync --target '/a b' --rw randread --bs 4k --jobs 4 --arrivals poisson --cpu 0,1 --direct \
                   --duration 10s --offset 4k --rate 100 --seed 7 --size 1M --warmup-time 2s";
    assert_eq!(commands(&file, &[]), [format!("lat-probe {options}")]);
}

#[test]
fn what_is_typed_behind_the_file_takes_the_place_of_its_own() {
    let (_folder, file, data) = folder("[j]\nfilename=DATA\nsize=1m\n");
    let options = format!("--engine pvsync2 --target {data} --rw read --bs 512,1k --count 9 --direct --size 1M");
    let typed = ["--engine", "pvsync2", "--bs", "512,1k", "--count", "9", "--direct"];
    assert_eq!(commands(&file, &typed), [format!("lat-probe {options}")]);
}

#[test]
fn probe_files_are_explained_too() {
    let probe = tempfile::NamedTempFile::new().unwrap();
    let content = r#"{ "schema": "lat-probe.probe/1", "title": "t", "setup": ["modprobe x"],
                    "measurements": [ { "engine": "null", "count": 7, "phases": true, "half-rtt": false } ] }"#;
    fs::write(probe.path(), content).unwrap();
    let name = probe.path().to_str().unwrap();
    let first = format!("# {name}: measurement 1");
    let line = "lat-probe --engine null --count 5 --phases";
    assert_eq!(explained(name, &["--count", "5"]), ["# needs: modprobe x", &first, line]);
    let output = run(name, &["--section", "x"]);
    assert!(text(&output.stderr).contains("is no job file of fio"), "{output:?}");
}

#[test]
fn a_job_runs_as_its_file_says() {
    let jobs = "[global]\nfilename=DATA\nsize=1m\ninclude more\n[a]\nbs=${SIZE}\n[b]\nstonewall\nrw=randread\nbs=512\n";
    let (folder, file, _) = folder(jobs);
    fs::write(folder.path().join("more"), "number_ios=50\nwrite_lat_log=l\n").unwrap();
    let output = command(&file, &["--format", "json", "--warmup", "0"]).env("SIZE", "8k").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = result["points"].as_array().unwrap();
    let row = |point: &Value| {
        let config = &point["config"];
        let number = |value: &Value| value.as_u64().unwrap();
        (config["engine"].as_str().unwrap().to_string(), number(&config["bs_bytes"]), number(&point["latency_ns"]["n"]))
    };
    let rows: Vec<_> = points.iter().map(row).collect();
    assert_eq!(rows, [("psync".into(), 8192, 50), ("psync".into(), 512, 50)]);
    assert_eq!((&result["label"], &points[0]["config"]["block"]["buffered"]), (&"a, b".into(), &true.into()));
    let said = text(&output.stderr);
    assert!(said.contains("lat-probe: ") && said.contains("more:2: write_lat_log: no log is written"), "{said}");
    assert_eq!(said.matches("write_lat_log").count(), 1, "each remark once: {said}");
}

#[test]
fn the_job_of_2007_runs_at_depth_one_on_a_smaller_file() {
    let (_folder, _, data) = folder("");
    let more = ["--section", "sync", "--target", &data, "--size", "1m", "--count", "200", "--format", "json"];
    let output = run(&job("engines-2007.fio"), &more);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["points"][0]["latency_ns"]["n"], &result["label"]), (&200.into(), &"sync".into()));
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    for (jobs, words) in [
        ("[j]\nfilename=f\nsize=1m\nverify=md5\n", "j.fio:4: verify: it changes what is measured"),
        ("[j]\nfilename=f\nsize=1x\n", "j.fio:3: size: a whole number such as 512 or 4k was expected, '1x' was found"),
        ("[j]\nfilename=f\nzise=1m\n", "j.fio:3: zise: unknown key"),
        ("[j\n", "j.fio:1: a section name in brackets such as [job1] was expected, '[j' was found"),
        ("size=1m\n", "j.fio:1: a section such as [global] was expected before 'size=1m'"),
        ("[j]\ninclude none\n", "j.fio:2: include: "),
        ("[a]\nsize=1m\n[b]\nsize=1m\n", "j.fio:3: [b] would run at the same time"),
        ("[j]\nfilename=DATA\nsize=1m\ncpus_allowed=9999999999\n", "j.fio:4: cpus_allowed: processors such as"),
        ("[j]\nfilename=DATA\nsize=1m\nbs=2g\n", "j.fio:3: a size of at least one block"),
        ("[j]\nfilename=DATA\nsize=4g\nbs=2g\n", "j.fio:1: [j]: --bs 2147483648 is out of range"),
        ("", "j.fio: there is no job"),
    ] {
        let (_folder, file, _) = folder(jobs);
        for more in [&[][..], &["--explain"]] {
            let output = run(&file, more);
            let said = text(&output.stderr);
            if words.contains("[j]: --") && !more.is_empty() {
                assert!(text(&output.stdout).contains(words), "{output:?}");
                continue;
            }
            assert!(said.contains(words), "{jobs:?} should say {words:?}: {said}");
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{jobs:?}: {said}");
        }
    }
    let output = run(&job("depth-2007.fio"), &["--section", "none"]);
    assert!(text(&output.stderr).contains("--section none: one of these was expected: libaio-64, syslet-64"));
}

#[test]
fn a_job_that_writes_needs_its_file_to_be_named_once_more() {
    let (_folder, file, data) =
        folder("[global]\nfilename=DATA\nsize=1m\nnumber_ios=300\n[w]\nrw=randwrite\n[r]\nstonewall\nrw=read\n");
    let refused = run(&file, &[]);
    let said = text(&refused.stderr);
    assert!(
        said.contains("j.fio:5: [w]: writing destroys") && said.contains(&format!("--allow-write {data}")),
        "{said}"
    );
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(fs::read(&data).unwrap(), vec![1u8; 1 << 20]);
    let allowed = run(&file, &["--allow-write", &data]);
    assert!(allowed.status.success(), "{}", text(&allowed.stderr));
    assert_ne!(fs::read(&data).unwrap(), vec![1u8; 1 << 20]);
}

#[test]
fn a_server_is_given_nothing_of_a_measurement() {
    let file = job("rdma-server.fio");
    for more in [&["--bs", "4k"][..], &["--output", "x"]] {
        let output = run(&file, more);
        let said = text(&output.stderr);
        assert!(said.contains("rdma-server.fio:8: [receiver]: --") && said.contains("nothing to a server"), "{said}");
        assert_eq!(output.status.code(), Some(2));
    }
    let line = "lat-probe serve --once --bind 192.168.2.4:18301 --cpu 1";
    assert_eq!(commands(&file, &["--cpu", "1"]), [line]);
}

#[test]
fn a_server_listens_where_its_file_says_or_tells_what_is_missing() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (_folder, file, _) = folder(&format!("[s]\nioengine=rdma\nfilename=127.0.0.1/{port}\nsize=1m\nrw=read\n"));
    let mut server = command(&file, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0u8; 32];
    let length = server.stdout.as_mut().unwrap().read(&mut first).unwrap();
    if length > 0 {
        let expected = "serving on 127.0.0.1:";
        assert!(text(&first[..length]).starts_with(expected), "{:?}", text(&first[..length]));
        server.kill().unwrap();
        server.wait().unwrap();
    } else {
        let output = server.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(77), "{output:?}");
    }
}
