#!/usr/bin/env python3
"""Tests of scripts/package, of the package that it builds, and of cargo install. The package is installed into throw-away
roots only, so one that this machine has stays as it is. Shells, man and lintian are the real ones. Needs what
scripts/setup --package-test installs (exit code 77 without).
"""

import gzip
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHORT = ["--engine", "null", "--count", "1000"]
SHELLS = {"usr/share/bash-completion/completions/lat-probe", "usr/share/zsh/vendor-completions/_lat-probe",
          "usr/share/fish/vendor_completions.d/lat-probe.fish"}
DOCUMENTS = {"README.md", "changelog.gz", "changelog.Debian.gz", "copyright", "third-party.gz"}
# Root of a namespace of its own is enough for a throw-away root.
AS_ROOT = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]


def run(command, code=0, **options):
    """Runs it to its end; another exit code than the one that is expected is an error with all that was said."""
    options = {"timeout": 900, "text": True, **options}
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, check=False, **options)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def on_this_machine():
    """What this machine itself has of lat-probe."""
    installed = run(["dpkg-query", "-W", "-f", "${Version} ${Status}", "lat-probe"], code=None).stdout
    return installed, [(path, os.stat(path).st_mtime_ns) for path in ("/usr/bin/lat-probe",) if os.path.exists(path)]


def tree(root):
    """Every path below, without dpkg's own notes."""
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.relative_to(root).parts[:3] != ("var", "lib", "dpkg")}


class Root:
    """A folder that dpkg takes for a system. It knows of the libraries of this machine, so that dependencies are checked."""

    def __init__(self, folder):
        self.folder, admin = folder, folder / "var/lib/dpkg"
        for part in ("info", "updates", "triggers"):
            (admin / part).mkdir(parents=True)
        libraries = re.findall(r"(?:^|, )([a-z0-9.+-]+)", field("Depends"))
        known = [run(["dpkg-query", "-s", library]).stdout for library in libraries]
        (admin / "status").write_text("\n".join(known), encoding="utf-8")
        for library in libraries:
            for name in (library, f"{library}:{field('Architecture')}"):
                (admin / f"info/{name}.list").touch()

    def dpkg(self, *options):
        # Images for containers often leave out documentation.
        command = [*AS_ROOT, "dpkg", f"--root={self.folder}", "--path-include=/usr/share/*", *options]
        return run(command, env={**os.environ, "LC_ALL": "C"})

    def path(self, name):
        return self.folder / name


def field(name, package=None):
    return run(["dpkg-deb", "--field", package or PACKAGE, name]).stdout.strip()


def build(output, **environment):
    """Builds into a folder; returns the package and the one with debug symbols, as the script names them."""
    done = run([ROOT / "scripts/package", "--output", output], cwd="/", env={**os.environ, **environment})
    paths = [Path(line) for line in done.stdout.splitlines()]
    package = [path for path in paths if path.suffix == ".deb"]
    symbols = [path for path in paths if path.suffix == ".ddeb"]
    if (len(package), len(symbols), len(paths)) != (1, 1, 2):
        raise AssertionError(f"not a package and its symbols:\n{done.stdout}\n{done.stderr}")
    return package[0], symbols[0]


def setUpModule():
    global SCRATCH, PACKAGE, SYMBOLS, INSTALLED, BEFORE
    BEFORE = on_this_machine()
    SCRATCH = Path(tempfile.mkdtemp(prefix="lat-probe-package."))
    PACKAGE, SYMBOLS = build(SCRATCH / "built")
    INSTALLED = Root(SCRATCH / "root")
    INSTALLED.dpkg("-i", PACKAGE)


def tearDownModule():
    shutil.rmtree(SCRATCH)
    if on_this_machine() != BEFORE:
        raise AssertionError(f"this machine's own lat-probe changed: {BEFORE}, now {on_this_machine()}")


class Script(unittest.TestCase):
    def test_wrong_usage_says_what_is_right(self):
        for options in (["--outptu", "x"], ["--output"], ["--output", ""]):
            done = run([ROOT / "scripts/package", *options], code=2)
            self.assertIn("--output", done.stderr)

    def test_a_folder_that_cannot_be_made_is_named(self):
        done = run([ROOT / "scripts/package", "--output", "/dev/null/x"], code=1)
        self.assertIn("/dev/null/x", done.stderr)

    def test_the_same_sources_make_the_same_bytes(self):
        again, symbols = build(SCRATCH / "again")
        self.assertEqual(again.read_bytes(), PACKAGE.read_bytes())
        self.assertEqual(symbols.read_bytes(), SYMBOLS.read_bytes())

    def test_a_maintainer_that_is_named_is_in_the_package(self):
        other, _ = build(SCRATCH / "other", DEBEMAIL="packager@example.org", DEBFULLNAME="A Packager", SOURCE_DATE_EPOCH="86400")
        self.assertEqual(field("Maintainer", other), "A Packager <packager@example.org>")
        root = SCRATCH / "other-root"
        run(["dpkg-deb", "--extract", other, root])
        changelog = gzip.decompress((root / "usr/share/doc/lat-probe/changelog.Debian.gz").read_bytes()).decode()
        self.assertIn(" -- A Packager <packager@example.org>  Fri, 02 Jan 1970 00:00:00", changelog)
        page = gzip.decompress((root / "usr/share/man/man1/lat-probe.1.gz").read_bytes()).decode()
        self.assertIn(".TH lat-probe 1 1970-01-02 ", page)


class Contents(unittest.TestCase):
    def test_everything_is_in_its_place_and_nothing_else(self):
        subcommands = re.findall(r"^  ([a-z]+)  ", run([INSTALLED.path("usr/bin/lat-probe"), "--help"]).stdout, re.MULTILINE)
        pages = {f"usr/share/man/man1/lat-probe{page}.1.gz" for page in ["", *(f"-{name}" for name in subcommands if name != "help")]}
        self.assertGreater(len(pages), 8)
        schemas = {f"usr/share/lat-probe/schema/{path.name}" for path in (ROOT / "results/schema").glob("*.json")}
        self.assertGreater(len(schemas), 4)
        examples = {f"usr/share/doc/lat-probe/examples/{path.relative_to(ROOT)}" for path in (ROOT / "probes").rglob("*.*")}
        documents = {f"usr/share/doc/lat-probe/{name}" for name in DOCUMENTS}
        expected = {"usr/bin/lat-probe", "usr/share/lintian/overrides/lat-probe", *SHELLS, *pages, *schemas, *examples, *documents}
        found = {name for name in tree(INSTALLED.folder) if INSTALLED.path(name).is_file()}
        self.assertEqual(found, expected)

    def test_nobody_gains_rights_and_nothing_runs_on_installation(self):
        for line in run(["dpkg-deb", "--contents", PACKAGE]).stdout.splitlines():
            mode, owner, *_, name = line.split()
            self.assertIn(owner, ("root/root", "0/0"), line)  # With the names of the owner, or with its numbers alone.
            self.assertIn(mode, ("drwxr-xr-x", "-rwxr-xr-x" if name == "./usr/bin/lat-probe" else "-rw-r--r--"), line)
        control = run(["dpkg-deb", "--ctrl-tarfile", PACKAGE], text=False).stdout
        names = subprocess.run(["tar", "t"], input=control, capture_output=True, check=True).stdout.decode().split()
        # Not every version of cargo-deb writes checksums; scripts would be further names.
        self.assertEqual({name.removeprefix("./") for name in names} - {"", "md5sums"}, {"control"})

    def test_libraries_of_rdma_are_recommended_and_only_libc_is_needed(self):
        needed = {word.split()[0] for word in field("Depends").split(", ")}
        self.assertLessEqual(needed, {"libc6", "libgcc-s1"})
        self.assertIn("libc6", needed)
        self.assertEqual(field("Recommends"), "libibverbs1, ibverbs-providers, librdmacm1")
        self.assertEqual((field("Section"), field("Package")), ("utils", "lat-probe"))

    def test_licences_are_those_of_the_sources_and_of_what_is_linked_in(self):
        text = INSTALLED.path("usr/share/doc/lat-probe/copyright").read_text(encoding="utf-8")
        own = (ROOT / "LICENSE-MIT").read_text(encoding="utf-8")
        self.assertIn(" ".join(own.split()[-40:]), " ".join(text.split()))
        self.assertIn("License: MIT or Apache-2.0", text)
        others = gzip.decompress(INSTALLED.path("usr/share/doc/lat-probe/third-party.gz").read_bytes()).decode()
        self.assertRegex(others, r"(?m)^uPlot [0-9.]+: MIT")
        self.assertIn("Leon Sorokin", others)
        for crate in ("clap", "io-uring", "rdma-mummy-sys", "hdrhistogram"):
            self.assertRegex(others, rf"(?m)^{crate} [0-9.]+: ")
        self.assertNotRegex(others, r"(?m)^(proptest|clap_derive|jsonschema) ", "what is not linked in")

    def test_changelogs_are_that_of_the_sources_and_that_of_the_package(self):
        folder = INSTALLED.path("usr/share/doc/lat-probe")
        own = gzip.decompress((folder / "changelog.gz").read_bytes())
        self.assertEqual(own, (ROOT / "CHANGELOG.md").read_bytes())
        packaged = gzip.decompress((folder / "changelog.Debian.gz").read_bytes()).decode()
        self.assertTrue(packaged.startswith(f"lat-probe ({field('Version')}) "), packaged)

    def test_lintian_has_no_errors_and_no_warnings(self):
        command = ["lintian", "--allow-root", "--no-tag-display-limit", "--fail-on", "error,warning", PACKAGE]
        self.assertEqual(run(command, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.strip(), "")

    def test_debug_symbols_are_in_a_package_of_their_own(self):
        installed = INSTALLED.path("usr/bin/lat-probe")
        self.assertNotIn(".debug_line", run(["readelf", "--sections", "--wide", installed]).stdout)
        build_id = re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "--notes", installed]).stdout).group(1)
        root = SCRATCH / "symbols"
        run(["dpkg-deb", "--extract", SYMBOLS, root])
        symbols = root / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        self.assertIn(".debug_line", run(["readelf", "--sections", "--wide", symbols]).stdout)
        self.assertIn("single", run(["nm", symbols]).stdout, "the names of the measuring loops")
        self.assertIn(".debug_line", run(["readelf", "--sections", "--wide", ROOT / "target/release/lat-probe"]).stdout)
        self.assertEqual(field("Package", SYMBOLS), "lat-probe-dbgsym")


class Installation(unittest.TestCase):
    def test_the_installed_program_measures_without_its_sources(self):
        measures_alone(self, INSTALLED.path("usr/bin/lat-probe"))

    def test_installed_examples_and_schemas_are_those_of_the_sources(self):
        program = INSTALLED.path("usr/bin/lat-probe")
        probe = INSTALLED.path("usr/share/doc/lat-probe/examples/probes/fio/engines-2007.fio")
        self.assertIn("lat-probe --engine ", run([program, "run", probe, "--explain"], env={}, cwd="/").stdout)
        schema = INSTALLED.path("usr/share/lat-probe/schema/result-1.schema.json")
        self.assertEqual(schema.read_bytes(), (ROOT / "results/schema/result-1.schema.json").read_bytes())

    def test_dpkg_finds_every_file_as_it_was_packed(self):
        self.assertEqual(INSTALLED.dpkg("--verify", "lat-probe").stdout, "")
        self.assertIn("install ok installed", INSTALLED.dpkg("-s", "lat-probe").stdout)

    def test_nothing_is_left_after_removal(self):
        for removal in (["-r"], ["-P"], ["-r", "-P"]):
            root = Root(SCRATCH / ("root" + "".join(removal)))
            before = tree(root.folder)
            root.dpkg("-i", PACKAGE)
            self.assertIn("usr/bin/lat-probe", tree(root.folder))
            for option in removal:
                run([*AS_ROOT, "dpkg", f"--root={root.folder}", option, "lat-probe"])
            # dpkg leaves folders that other packages have, too; here there are none.
            self.assertEqual(tree(root.folder), before, removal)
            known = run(["dpkg-query", f"--root={root.folder}", "-W", "-f", "${Status}", "lat-probe"], code=None)
            self.assertNotIn("installed", known.stdout.replace("not-installed", ""))
            info = [path.name for path in root.path("var/lib/dpkg/info").iterdir() if path.name.startswith("lat-probe")]
            self.assertEqual(info, [])

    def test_a_system_without_its_libraries_is_refused(self):
        root = Root(SCRATCH / "bare")
        (root.path("var/lib/dpkg/status")).write_text("", encoding="utf-8")
        done = run([*AS_ROOT, "dpkg", f"--root={root.folder}", "-i", PACKAGE], code=1, env={**os.environ, "LC_ALL": "C"})
        self.assertIn("libc6", done.stderr)


def measures_alone(test, program):
    """The program runs with nothing around it: no environment, another folder, and the sources out of sight where root can
    hide them."""
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / "lat-probe"
        shutil.copy2(program, alone)
        script = 'mount -t tmpfs none "$1" && [ ! -e "$1/Cargo.toml" ] || exit 99; shift; exec "$@"'
        hidden = ["/usr/bin/unshare", "-m" if os.geteuid() == 0 else "-rm", "/bin/sh", "-c", script, "sh", ROOT]
        can_hide = run([*hidden, "/bin/true"], code=None).returncode == 0
        if not can_hide:
            print("note: the sources cannot be hidden here", file=sys.stderr)
        call = [*(hidden if can_hide else []), alone]
        version = run([*call, "--version"], env={}, cwd=folder).stdout
        test.assertRegex(version, r"^lat-probe [0-9]+\.[0-9]+\.[0-9]+\n$")
        done = run([*call, *SHORT, "--format", "json"], env={}, cwd=folder)
        test.assertEqual((json.loads(done.stdout)["points"][0]["latency_ns"]["n"], done.stderr), (1000, ""))


class Pages(unittest.TestCase):
    def setUp(self):
        self.pages = sorted(INSTALLED.path("usr/share/man/man1").iterdir())
        self.environment = {**os.environ, "LC_ALL": "C.UTF-8", "MANPATH": str(INSTALLED.path("usr/share/man")), "MANWIDTH": "80"}

    def test_no_reader_of_pages_warns(self):
        self.assertGreater(len(self.pages), 8)
        for page in self.pages:
            with self.subTest(page=page.name), tempfile.NamedTemporaryFile(suffix=".1") as plain:
                plain.write(gzip.decompress(page.read_bytes()))
                plain.flush()
                for reader in (["mandoc", "-Tlint", "-Wwarning"], ["groff", "-man", "-ww", "-z"], ["man", "--warnings", "-l"]):
                    done = run([*reader, plain.name], env=self.environment)
                    self.assertEqual(done.stderr + (done.stdout if reader[0] == "mandoc" else ""), "", reader)

    def test_man_finds_them_by_name_and_apropos_has_their_line(self):
        for name in ("lat-probe", "lat-probe-serve"):
            found = run(["man", "-w", name], env=self.environment).stdout.strip()
            self.assertEqual(Path(found), INSTALLED.path(f"usr/share/man/man1/{name}.1.gz"))
        for page in self.pages:
            self.assertRegex(run(["lexgrog", page], env=self.environment).stdout, rf'"{page.name.removesuffix(".1.gz")} - .+"')

    def test_a_page_reads_well(self):
        text = run(["man", "lat-probe"], env=self.environment).stdout
        for words in ("--engine <NAME>", "rdma-read: RDMA READ", "FILES AND BLOCK DEVICES", "EXIT STATUS", "4.096 µs · 2^N",
                      "130, 143, 129", "lat-probe --engine spin --delay 10us --count 20000", "lat-probe-compare(1)"):
            self.assertIn(words, text)
        self.assertNotIn("`", text)


def typed(shell, environment, keys):
    """What an interactive shell on a terminal prints after its prompt for these keys, until it says that it ran them."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(environment["HOME"])
        os.execvpe(shell[0], shell, environment)
    said, sent, until = b"", False, time.monotonic() + 60
    try:
        while time.monotonic() < until and not re.search(rb"RAN(\[[^\]\n]*\])+\.", said):
            if not sent and b"READY>" in said:
                os.write(terminal, keys.encode())
                sent = True
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    said += os.read(terminal, 4096)
                except OSError:
                    break
    finally:
        os.close(terminal)  # This hangs the shell up.
        os.waitpid(process, 0)
    ran = re.search(rb"RAN((\[[^\]\n]*\])+)\.", said)
    return ran.group(1).decode() if ran else f"nothing was run: {said!r}"


# What shows which words a shell made of the keys.
SHOW = 'lat-probe() { printf "RAN"; printf "[%s]" "$@"; printf ".\\n"; }\n'
KEYS = {"lat-probe --eng\trdma-rea\t\r": "[--engine][rdma-read]",
        "lat-probe calib\t--win\t5ms\r": "[calibrate][--window][5ms]",
        "lat-probe ab --engine io-u\t--rw randw\t\r": "[ab][--engine][io-uring][--rw][randwrite]",
        "lat-probe completions el\t\r": "[completions][elvish]"}


class Completions(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        # Each shell finds the script by itself, from where Debian's packages put them.
        self.environment = {"HOME": self.home.name, "PATH": f"{INSTALLED.path('usr/bin')}:/usr/bin:/bin", "TERM": "dumb",
                            "XDG_DATA_DIRS": f"{INSTALLED.path('usr/share')}:/usr/share", "LC_ALL": "C.UTF-8"}

    def test_bash_completes_options_subcommands_and_engines(self):
        rc = Path(self.home.name) / "rc"
        rc.write_text(f"source /usr/share/bash-completion/bash_completion\n{SHOW}PS1='READY> '\n", encoding="utf-8")
        for keys, expected in KEYS.items():
            with self.subTest(keys=keys):
                self.assertEqual(typed(["bash", "--noprofile", "--rcfile", str(rc), "-i"], self.environment, keys), expected)

    def test_zsh_completes_options_subcommands_and_engines(self):
        folder = INSTALLED.path("usr/share/zsh/vendor-completions")
        rc = f"fpath=({folder} $fpath)\nautoload -Uz compinit\ncompinit -u -D\n{SHOW}PS1='READY> '\nunsetopt zle_bracketed_paste\n"
        (Path(self.home.name) / ".zshrc").write_text(rc, encoding="utf-8")
        for keys, expected in KEYS.items():
            with self.subTest(keys=keys):
                # zsh puts "=" behind an option's name that it completed, which is the same to the program.
                made = typed(["zsh", "-d", "-i"], self.environment, keys).replace("=", "][")
                self.assertEqual(made, expected)

    def test_fish_completes_options_subcommands_and_engines(self):
        for line, expected in (("lat-probe --eng", "--engine"), ("lat-probe --engine rdma-rea", "rdma-read"),
                               ("lat-probe calib", "calibrate"), ("lat-probe calibrate --win", "--window"),
                               ("lat-probe ab --engine io-u", "io-uring"), ("lat-probe completions el", "elvish")):
            with self.subTest(line=line):
                done = run(["fish", "-c", f"complete -C '{line}'"], env=self.environment, cwd=self.home.name)
                self.assertEqual([row.split("\t")[0] for row in done.stdout.splitlines()], [expected], done.stderr)


class Locale(unittest.TestCase):
    def test_decimals_and_numbers_are_the_same_everywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{folder}/de_DE.UTF-8"], code=None)
            german = {"LC_ALL": "de_DE.UTF-8", "LOCPATH": folder, "PATH": os.environ["PATH"]}
            shown = run(["/usr/bin/printf", "%.1f", "1,5"], env=german).stdout
            self.assertEqual(shown, "1,5", "the locale is not in force, so this test would say nothing")
            program = INSTALLED.path("usr/bin/lat-probe")
            command = [program, "--engine", "spin", "--delay", "10us", "--count", "20000"]
            text = run(command, env=german).stdout
            self.assertIn("20,000 commands", text)
            self.assertRegex(text, r"[0-9]\.[0-9]+ µs")
            self.assertNotRegex(text, r"[0-9],[0-9]+ µs")
            json.loads(run([*command, "--format", "json"], env=german).stdout)
            self.assertIn("1,5%", run([program, "compare", "a", "--min-effect", "1,5%"], code=2, env=german).stderr)


class CargoInstall(unittest.TestCase):
    def test_cargo_install_makes_a_program_that_needs_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            run(["cargo", "install", "--path", ".", "--locked", "--root", folder, "--no-track"], cwd=ROOT)
            self.assertEqual([path.name for path in Path(folder).rglob("*") if path.is_file()], ["lat-probe"])
            measures_alone(self, Path(folder) / "bin/lat-probe")

    def test_the_crate_has_what_its_build_needs_and_no_reference_results(self):
        listed = set(run(["cargo", "package", "--list", "--allow-dirty"], cwd=ROOT).stdout.split("\n")) - {""}
        tracked = run(["git", "ls-files", "src", "benches"], cwd=ROOT, code=None).stdout.split()
        self.assertLessEqual({"Cargo.toml", "Cargo.lock", "README.md", "LICENSE-MIT", "LICENSE-APACHE", *tracked}, listed)
        unwanted = [name for name in listed if name.startswith(("results/reference/", "target/", ".ci/"))]
        self.assertEqual(unwanted, [])

    def test_the_crate_compiles_outside_of_this_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            run(["cargo", "package", "--allow-dirty", "--no-verify", "--locked", "--target-dir", folder], cwd=ROOT)
            crate, = (Path(folder) / "package").glob("*.crate")
            self.assertLess(crate.stat().st_size, 2 << 20)
            shutil.unpack_archive(crate, folder, "gztar")
            check = ["cargo", "check", "--locked", "--bins", "--benches", "--target-dir", ROOT / "target"]
            run(check, cwd=Path(folder) / crate.stem)


if __name__ == "__main__":
    ready = run([ROOT / "scripts/setup", "--package-test", "--check"], code=None)
    if ready.returncode != 0:
        print(f"{ready.stderr}skipped: needs what scripts/setup --package-test installs", file=sys.stderr)
        sys.exit(77)
    unittest.main()
