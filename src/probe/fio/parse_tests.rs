//! The form of job files on files that lie in memory.

use super::*;

fn read(files: &[(&str, &str)]) -> Result<Vec<Section>, String> {
    let read = |path: &Path| {
        let found = files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| text.to_string()).ok_or_else(|| ErrorKind::NotFound.into())
    };
    let variable = |name: &str| (name == "SIZE").then(|| "4k".to_string());
    sections(Path::new(files[0].0), &Outside { read: &read, variable: &variable, cpus: 6, page_bytes: 4096 })
}

fn keys(section: &Section) -> Vec<String> {
    let one = |key: &Key| key.value.as_ref().map_or(key.name.clone(), |value| format!("{}={value}", key.name));
    section.keys.iter().map(one).collect()
}

fn only(text: &str) -> Section {
    read(&[("j.fio", text)]).unwrap().remove(0)
}

#[test]
fn global_keys_hold_for_the_jobs_behind_them() {
    let text = "[global]\nbs=4k\n\n[a]\nrw = read\n[global]\nthread\n[global of more]\niodepth=2\n[b]\nbs=8k\n";
    let jobs = read(&[("j.fio", text)]).unwrap();
    assert_eq!(keys(&jobs[0]), ["bs=4k", "rw=read"]);
    assert_eq!(keys(&jobs[1]), ["bs=4k", "thread", "iodepth=2", "bs=8k"]);
    assert_eq!((jobs[0].keys[1].place.to_string(), jobs[1].place.to_string()), ("j.fio:5".into(), "j.fio:10".into()));
}

#[test]
fn comments_end_a_line_wherever_they_begin() {
    let job = only("; one\n  # two\n[a b] ; three\r\nbs=4k # four\r\n\tdescription=a;b\n");
    assert_eq!((job.name.as_str(), keys(&job)), ("a b", vec!["bs=4k".into(), "description=a".into()]));
}

#[test]
fn variables_come_from_the_environment() {
    let job = only("[a]\nbs=${SIZE}\nfilename=/x${NOPE}/${SIZE}y\nnumjobs=2*$ncpus\nsize=$pagesize\n");
    assert_eq!(keys(&job), ["bs=4k", "filename=/x/4ky", "numjobs=12", "size=4096"]);
    assert_eq!((job.keys[0].unset.as_deref(), job.keys[1].unset.as_deref()), (None, Some("NOPE")));
}

#[test]
fn kb_base_holds_for_the_whole_section_and_the_jobs_behind() {
    let jobs =
        read(&[("j.fio", "[a]\nbs=1k\n[global]\nbs=1k\nkb_base=1000\n[b]\n[c]\nsize=1k\nkb_base=1024\n")]).unwrap();
    let bases = |job: &Section| job.keys.iter().map(|key| key.kb_base).collect::<Vec<_>>();
    assert_eq!(bases(&jobs[0]), [1024]);
    assert_eq!(bases(&jobs[1]), [1000, 1000]);
    assert_eq!(bases(&jobs[2]), [1000, 1000, 1024, 1024]);
}

#[test]
fn an_included_file_lies_in_the_working_directory_or_beside_the_one_that_names_it() {
    let job =
        read(&[("d/j.fio", "[a]\ninclude g.fio\nrw=read\n"), ("d/g.fio", "bs=8k\ninclude h\n"), ("h", "thread\n")]);
    let job = job.unwrap().remove(0);
    assert_eq!(keys(&job), ["bs=8k", "thread", "rw=read"]);
    let places: Vec<_> = job.keys.iter().map(|key| key.place.to_string()).collect();
    assert_eq!(places, ["d/g.fio:1", "h:1", "d/j.fio:3"]);
}

#[test]
fn files_that_include_each_other_end() {
    let circle = read(&[("j.fio", "[global]\ninclude j\n"), ("j", "include j\ninclude j\n")]).unwrap_err();
    assert!(circle.contains("j.fio:2: include: j:1") && circle.contains("more than 64 files"), "{circle}");
}

#[test]
fn what_is_broken_is_named_with_file_line_and_what_was_expected() {
    for (text, words) in [
        ("bs=4k\n", "j.fio:1: a section such as [global] was expected before 'bs=4k'"),
        ("include x\n", "j.fio:1: a section"),
        ("\n[a\n", "j.fio:2: a section name in brackets such as [job1] was expected, '[a' was found"),
        ("[]\n", "j.fio:1: a section name"),
        ("[a]\nbs 4k\n", "j.fio:2: KEY=VALUE was expected, 'bs 4k' was found"),
        ("[a]\n=4k\n", "j.fio:2: KEY=VALUE"),
        ("[a]\nbs=${SIZE\n", "j.fio:2: a closing brace was expected behind '${SIZE'"),
        ("[a]\ninclude x.fio\n", "j.fio:2: include: x.fio: entity not found"),
        ("[a]\nsize=8*$mb_memory\n", "j.fio:2: $ncpus or $pagesize, times a number, was expected"),
        ("[a]\nsize=$ncpus+1\n", "j.fio:2: $ncpus or $pagesize"),
        ("[a]\nkb_base=4\n", "j.fio:2: kb_base: 1000 or 1024 was expected, '4' was found"),
        ("[a]\nkb_base\n", "j.fio:2: kb_base"),
        ("[global]\nbs=4k\n", "j.fio: there is no job"),
        ("", "j.fio: there is no job"),
    ] {
        let why = read(&[("j.fio", text)]).unwrap_err();
        assert!(why.starts_with(words), "{text:?} should say {words:?}: {why}");
    }
    let section = read(&[("j.fio", "[a]\ninclude i\n"), ("i", "\n[b]\n")]).unwrap_err();
    assert_eq!(section, "j.fio:2: include: i:2: only keys were expected: an included file begins no section");
    assert!(read(&[("j.fio", "[a]"), ("", "")]).is_ok());
}

#[test]
fn what_a_file_can_cost_is_bounded() {
    let keys = format!("[global]\n{}", "thread\n".repeat(MAX_KEYS + 1));
    assert!(read(&[("j.fio", &keys)]).unwrap_err().contains("at most 1000 keys"));
    let jobs = "[a]\n".repeat(MAX_JOBS + 1);
    assert!(read(&[("j.fio", &jobs)]).unwrap_err().starts_with("j.fio:1001: a file of at most 1000 jobs"));
}
