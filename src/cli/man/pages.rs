//! What man pages say beside the definition of options: files, environment, examples. Tests parse every example, and run those
//! that need no device.

use crate::cli::exit_codes::MEASURING;

/// The parts of a page that no parser knows.
pub(super) struct Extra {
    /// The subcommand, or [`MEASURING`].
    subcommand: &'static str,
    /// Variables and what they do.
    pub environment: &'static [(&'static str, &'static str)],
    /// Paths and what they are for.
    pub files: &'static [(&'static str, &'static str)],
    /// What is done, and the commands that do it, in lines.
    pub examples: &'static [(&'static str, &'static str)],
    /// Other subcommands.
    pub related: &'static [&'static str],
    /// Other pages, with their section.
    pub see_also: &'static [(&'static str, &'static str)],
}

/// The extra parts of a subcommand's page.
pub(super) fn of(subcommand: &str) -> &'static Extra {
    EXTRAS.iter().find(|extra| extra.subcommand == subcommand).unwrap_or(&NOTHING)
}

const NOTHING: Extra =
    Extra { subcommand: "", environment: &[], files: &[], examples: &[], related: &[], see_also: &[] };

const UVERBS: (&str, &str) = (
    "/dev/infiniband/uverbs*",
    "The RDMA engines and the server need to read and write them. `lat-probe check` looks.",
);
const CM: (&str, &str) = ("/dev/infiniband/rdma_cm", "What --cm connects through; of the module rdma_ucm.");
const DMA_LATENCY: (&str, &str) = ("/dev/cpu_dma_latency", "Held open by --quiet until the run ends, as root.");
const DRAWING: &[(&str, &str)] = &[
    ("COLUMNS", "Width of a drawing on a terminal; without it the terminal says it. Below 40 there is none."),
    ("NO_COLOR", "If set and not empty, a drawing has no colours."),
    ("TERM", "On dumb there is no drawing."),
    ("LC_ALL, LC_CTYPE, LANG", "The first that is set says whether a drawing may have more than ASCII: UTF-8."),
];
const OTHERS: &[(&str, &str)] = &[("fio", "1"), ("taskset", "1")];

static EXTRAS: [Extra; 14] = [
    Extra {
        subcommand: MEASURING,
        environment: DRAWING,
        files: &[
            UVERBS,
            CM,
            DMA_LATENCY,
            (
                "/usr/share/lat-probe/schema",
                "JSON schemas of what --format json and --output write, in Debian's package.",
            ),
            (
                "/usr/share/doc/lat-probe",
                "The README, which explains the figures, and example probe files, in Debian's package.",
            ),
        ],
        examples: &[
            (
                "What the instrument itself costs, and how exactly it sees a known time:",
                "lat-probe --engine null\nlat-probe --engine spin --delay 10us --count 20000",
            ),
            ("Single RDMA READs, both ends in this process:", "lat-probe --engine rdma-read --qd 1"),
            (
                "Against another host, where `lat-probe serve` runs:",
                "lat-probe --engine rdma-write --peer host-b --bs 8,4k,1M",
            ),
            (
                "Random reads of a disk past the page cache, at several depths, the result kept as JSON:",
                "lat-probe --engine io-uring --target /dev/nvme0n1 --rw randread \\\n    --bs 4k --qd 1,8,32 --output depths.json",
            ),
            (
                "The transport to a SCSI disk alone:",
                "lat-probe --engine sg --target /dev/sg1 --command test-unit-ready",
            ),
            (
                "Reads of a file through the page cache, as many a second as asked for, with times from when they were due:",
                "lat-probe fill --allow-write file --size 16M\nlat-probe --engine psync --target file --buffered --rate 5000 --duration 1s",
            ),
        ],
        related: &["ab", "calibrate", "check", "compare", "completions", "engines", "fill", "man", "run", "serve"],
        see_also: OTHERS,
    },
    Extra {
        subcommand: "serve",
        files: &[UVERBS, CM],
        examples: &[
            ("Serve anyone, until a signal comes:", "lat-probe serve"),
            (
                "Serve one network, on one address, who has the token:",
                "(umask 077; head -c 32 /dev/urandom | base64 > token)\nlat-probe serve --bind 10.0.0.1 --allow 10.0.0.0/24 --token-file token",
            ),
            ("A line of JSON for each client that has finished:", "lat-probe serve --format json"),
        ],
        related: &["check"],
        ..NOTHING
    },
    Extra {
        subcommand: "engines",
        files: &[UVERBS],
        examples: &[("What can be measured here:", "lat-probe engines")],
        related: &["check"],
        ..NOTHING
    },
    Extra {
        subcommand: "check",
        files: &[UVERBS, DMA_LATENCY],
        examples: &[("What to fix before figures are worth something:", "lat-probe check")],
        related: &["engines", "calibrate"],
        ..NOTHING
    },
    Extra {
        subcommand: "calibrate",
        files: &[DMA_LATENCY],
        examples: &[
            ("Listen to the machine for 100 ms:", "lat-probe calibrate --window 100ms"),
            (
                "The same on CPU 0, kept as JSON:",
                "lat-probe calibrate --window 100ms --cpu 0 --output calibration.json",
            ),
        ],
        related: &["check"],
        ..NOTHING
    },
    Extra {
        subcommand: "ab",
        environment: &[
            (
                "LAT_PROBE_SIDE, LAT_PROBE_ROUND, LAT_PROBE_BLOCK",
                "Set for the commands: the side, its round, and the block, both from 1.",
            ),
            ("LAT_PROBE_POINT", "Set for the commands: what will be measured."),
        ],
        files: &[DMA_LATENCY],
        examples: &[
            (
                "Two settings of a driver, each made by a script; every round is stored:",
                "lat-probe ab --a ./thread-n.sh --b ./thread-y.sh --rounds 20 --engine sg \\\n    --target /dev/disk/by-id/srp --output series.json",
            ),
            (
                "Nothing against nothing: it should be the same, and on a noisy machine it is inconclusive:",
                "lat-probe ab --a true --b true --rounds 6 --engine null --count 2000",
            ),
        ],
        related: &["compare", "run"],
        ..NOTHING
    },
    Extra {
        subcommand: "compare",
        examples: &[
            (
                "Several rounds of each side, alternately:",
                "for round in 1 2 3 4 5; do\n    lat-probe --engine spin --delay 10us --count 2000 --output before-$round.json\n    lat-probe --engine spin --delay 11us --count 2000 --output after-$round.json\ndone",
            ),
            ("The verdict:", "lat-probe compare 'before-*.json' 'after-*.json'"),
            (
                "Other figures, an absolute limit, a report for a CI server:",
                "lat-probe compare 'before-*.json' 'after-*.json' --judge p50,p99 \\\n    --fail-above p99=20ms --junit report.xml",
            ),
        ],
        related: &["ab"],
        ..NOTHING
    },
    Extra {
        subcommand: "run",
        environment: DRAWING,
        files: &[("/usr/share/doc/lat-probe/examples/probes", "Probe files and fio's job files, in Debian's package.")],
        examples: &[
            (
                "The measurements of a probe file, on another disk than the file's:",
                "lat-probe run probes/srp-commands.json --target /dev/sdb --count 5000",
            ),
            ("What a job file of fio becomes:", "lat-probe run probes/fio/engines-2007.fio --explain"),
        ],
        related: &["ab"],
        see_also: &[("fio", "1")],
    },
    Extra {
        subcommand: "fill",
        examples: &[(
            "A file of 16 MiB, and reads of it that are checked:",
            "lat-probe fill --allow-write file --size 16M\nlat-probe --engine io-uring --target file --buffered --rw randread --count 20000 --verify",
        )],
        ..NOTHING
    },
    Extra {
        subcommand: "export",
        environment: &[],
        files: &[(
            "/var/lib/prometheus/node-exporter",
            "Where Debian's node_exporter looks for *.prom, of --to openmetrics.",
        )],
        examples: &[
            (
                "Percentiles for HdrHistogram's plotter, from a result:",
                "lat-probe --engine null --count 20000 --output result.json --samples result.npy\nlat-probe export --to hgrm -o result.hgrm result.json",
            ),
            (
                "fio's logs, from the samples that were stored with it:",
                "lat-probe export --to fio-log -o null result.json",
            ),
        ],
        related: &[],
        see_also: &[("fio", "1")],
    },
    Extra {
        subcommand: "report",
        examples: &[(
            "A result with its timeline, to look at:",
            "lat-probe --engine null --count 20000 --output result.json --samples result.npy\nlat-probe report result.json -o report.html",
        )],
        related: &["compare", "ab"],
        ..NOTHING
    },
    Extra {
        subcommand: "schema",
        examples: &[
            ("The schema of a result:", "lat-probe schema > result.schema.json"),
            ("That of a comparison:", "lat-probe schema comparison"),
        ],
        ..NOTHING
    },
    Extra {
        subcommand: "completions",
        files: &[
            (
                "~/.local/share/bash-completion/completions",
                "Where bash-completion finds the scripts of a user, by the name of the program.",
            ),
            ("~/.config/fish/completions", "The same for fish."),
        ],
        examples: &[
            ("For bash, in this shell:", "source <(lat-probe completions bash)"),
            ("For zsh, in a folder of $fpath:", "lat-probe completions zsh > _lat-probe"),
            ("For fish:", "lat-probe completions fish > lat-probe.fish"),
        ],
        ..NOTHING
    },
    Extra {
        subcommand: "man",
        environment: &[("SOURCE_DATE_EPOCH", "Seconds since 1970: the date of the pages. Without it they have none.")],
        examples: &[
            ("Read the page of the program that is there:", "lat-probe man | man -l -"),
            ("Write all pages:", "mkdir -p man1\nlat-probe man --output man1"),
        ],
        see_also: &[("man", "1")],
        ..NOTHING
    },
];
