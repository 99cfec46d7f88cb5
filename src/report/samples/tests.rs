use std::fs;

use proptest::prelude::*;

use super::*;

fn formats() -> Vec<&'static str> {
    let mut endings = vec!["npy", "csv"];
    if cfg!(feature = "parquet") {
        endings.push("parquet");
    }
    endings
}

fn rows(count: u64) -> Vec<Row> {
    let row = |op: u64| Row {
        start_ns: op as f64 * 100.125,
        latency_ns: 12.5 + op as f64,
        submit_ns: op.is_multiple_of(2).then_some(1.25),
        wait_ns: op.is_multiple_of(2).then_some(11.25),
        response_ns: op.is_multiple_of(3).then_some(1e15 + 0.125),
        job: (op % 3) as u32,
        op,
    };
    (0..count).map(row).collect()
}

fn written(folder: &Path, ending: &str, rows: &[Row]) -> PathBuf {
    let path = folder.join(format!("x.{ending}"));
    let format = SampleFormat::of(&path).unwrap();
    let mut file = fs::File::create(&path).unwrap();
    format.write(&mut file, &mut rows.iter().copied(), rows.len() as u64).unwrap();
    path
}

fn read_all(path: &Path) -> Result<Vec<Row>> {
    read(path)?.collect()
}

#[test]
fn what_was_written_is_read_again_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    for ending in formats() {
        for count in [0, 1, 1000] {
            let path = written(folder.path(), ending, &rows(count));
            assert_eq!(read_all(&path).unwrap(), rows(count), "{ending}");
        }
    }
}

#[test]
fn a_file_that_was_cut_off_anywhere_is_named_or_has_fewer_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    for ending in formats() {
        let path = written(folder.path(), ending, &rows(5));
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            match read_all(&path) {
                Err(error) => assert!(error.to_string().contains(&format!("x.{ending}: ")), "{error}"),
                // Text that ends with a line has no sign of what followed.
                Ok(rows) => assert!(ending == "csv" && whole[length - 1] == b'\n' && rows.len() < 5, "{length}"),
            }
        }
    }
}

#[test]
fn foreign_files_are_named_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    for ending in formats() {
        let path = folder.path().join(format!("x.{ending}"));
        for text in ["", "{\"schema\": 1}\n", "\u{93}NUMPY", "a,b\n1,2\n"] {
            fs::write(&path, text).unwrap();
            let error = read_all(&path).unwrap_err();
            assert!(error.to_string().contains(&format!("x.{ending}: ")) && error.exit_code() == 2, "{error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(read_all(&path).unwrap_err().to_string().contains("No such file"));
    }
    let other = SampleFormat::of(Path::new("x.xlsx")).unwrap_err().to_string();
    assert!(other.contains(".xlsx is no format") && other.contains(".npy"), "{other}");
    assert!(SampleFormat::of(Path::new("x")).unwrap_err().to_string().contains("no ending"));
}

#[test]
fn more_than_the_head_says_is_not_left_out_silently() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "npy", &rows(2));
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0; 52]);
    fs::write(&path, bytes).unwrap();
    assert!(read_all(&path).unwrap_err().to_string().contains("more in it than its 2 samples"));
}

#[test]
fn the_data_of_an_array_is_aligned() {
    let folder = tempfile::tempdir().unwrap();
    for count in [0, 9, 10, 123_456] {
        let path = written(folder.path(), "npy", &rows(count));
        assert_eq!((fs::metadata(path).unwrap().len() - 52 * count) % 64, 0);
    }
}

#[test]
fn the_points_of_a_list_have_files_of_their_own() {
    let name = |path: &str, index, points| of_point(Path::new(path), index, points).display().to_string();
    assert_eq!(name("a/x.npy", 0, 1), "a/x.npy");
    assert_eq!((name("a/x.npy", 0, 2), name("a/x.y.csv", 11, 12)), ("a/x-1.npy".into(), "a/x.y-12.csv".into()));
}

#[test]
fn samples_are_found_beside_their_result_first() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("r.json");
    assert!(find(&result, "x.npy").unwrap_err().to_string().contains("samples are in x.npy"));
    fs::write(folder.path().join("x.npy"), "").unwrap();
    assert_eq!(find(&result, "elsewhere/x.npy").unwrap(), folder.path().join("x.npy"));
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), headed: bool) {
        let folder = tempfile::tempdir().unwrap();
        for ending in formats() {
            let path = written(folder.path(), ending, &rows(3));
            if headed {
                let whole = fs::read(&path).unwrap();
                bytes = [&whole[..whole.len() / 2], &bytes].concat();
            }
            fs::write(&path, &bytes).unwrap();
            let _ = read_all(&path);
        }
    }
}
