//! Arguments as typed, and the exit code. What they mean is decided in [`crate::probe`].

mod ab;
mod args;
mod compare;
mod completions;
mod exit_codes;
mod explain;
mod export;
mod man;
mod options;
mod probe;
mod report;
mod spec;
mod terminal;
mod values;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    process::ExitCode,
};

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};

use crate::{
    error::{Error, Result},
    host::Sysfs,
    probe::Plan,
    report::schemas::Kind,
    run::{self, Calibrate, Fill, Format, Live, Outcome, Reporting, ResultFormat, check},
};

use ab::AbArgs;
use args::{
    CalibrateArgs, Cli, Command, FillArgs, FormatArg, ManArgs, OutputArgs, ProgressArg, ResultFormatArg, RunArgs,
    SchemaArg, ServeArgs,
};
use probe::{File, Step};
use spec::spec;

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    // What the definition lets through it also builds; clap words it if not.
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match dispatch(cli, &matches) {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error),
    }
}

fn fail(error: &Error) -> ExitCode {
    // Nobody reads stderr if this fails.
    let _ = writeln!(io::stderr(), "lat-probe: {error}");
    ExitCode::from(error.exit_code())
}

fn dispatch(cli: Cli, matches: &ArgMatches) -> Result<u8> {
    match cli.command {
        None => {
            let reporting = Reporting { resume: cli.resume, ..reporting(&cli.measure.output) };
            measure(&[Plan::check(spec(cli.measure)?)?], &reporting)
        }
        Some(Command::Run(arguments)) => match matches.subcommand() {
            Some((_, matches)) => run_file(&arguments, matches),
            None => Ok(0), // There is no command without its matches.
        },
        Some(Command::Ab(arguments)) => match matches.subcommand() {
            Some((_, matches)) => ab(*arguments, matches),
            None => Ok(0), // As above.
        },
        Some(Command::Serve(arguments)) => serve(arguments),
        Some(Command::Engines) => print(&run::engines::render()).map(|()| 0),
        Some(Command::Calibrate(arguments)) => calibrate(arguments),
        Some(Command::Compare(arguments)) => show(compare::compare(arguments)?),
        Some(Command::Export(arguments)) => print(&export::export(&arguments)?).map(|()| 0),
        Some(Command::Report(arguments)) => print(&report::report(arguments)?).map(|()| 0),
        Some(Command::Fill(arguments)) => fill(arguments),
        Some(Command::Schema(arguments)) => schema(arguments.name),
        Some(Command::Completions(arguments)) => print(&completions::script(arguments.shell)).map(|()| 0),
        Some(Command::Man(arguments)) => man(&arguments),
        Some(Command::Check) => {
            let findings = check::inspect(&check::System::read(Sysfs::default()));
            print(&check::render(&findings)).map(|()| 0)
        }
    }
}

/// Carries out a probe file, or a job file of fio.
fn run_file(arguments: &RunArgs, matches: &ArgMatches) -> Result<u8> {
    let file = File::read(&arguments.file, arguments.section.as_deref(), matches)?;
    if arguments.explain {
        return print(&file.explain()).map(|()| 0);
    }
    let servers = file.servers();
    let plans = if servers.is_empty() { file.plans()? } else { Vec::new() };
    say_notes(&file);
    if !servers.is_empty() {
        return serve_in_turn(&servers);
    }
    let mut reporting = Reporting { resume: arguments.resume, ..reporting(&arguments.measure.output) };
    reporting.label.get_or_insert_with(|| file.title.clone());
    measure(&plans, &reporting).inspect_err(|error| say_needs(&file, error))
}

/// Serves one client for each step; the first failure ends it.
fn serve_in_turn(steps: &[&Step]) -> Result<u8> {
    for step in steps {
        let words = ["lat-probe".into()].into_iter().chain(explain::command(step));
        let code = match Cli::try_parse_from(words).map(|cli| cli.command) {
            Ok(Some(Command::Serve(arguments))) => serve(arguments)?,
            Ok(_) => 0, // The words are those of a server.
            Err(error) => return Err(Error::Usage(format!("{}: {error}", step.from))),
        };
        if code != 0 {
            return Ok(code);
        }
    }
    Ok(0)
}

/// What is not as a file has it, each remark once: jobs often differ in the same way.
fn say_notes(file: &File) {
    let mut said = BTreeSet::new();
    for note in file.steps.iter().flat_map(|step| &step.notes) {
        // Behind the place.
        if !said.insert(note.split_once(": ").map_or(note.as_str(), |(_, text)| text)) {
            continue;
        }
        let _ = writeln!(io::stderr(), "lat-probe: {note}"); // As in `fail`.
    }
}

/// What the measurements of a file need is said where one of them could not begin.
fn say_needs(file: &File, error: &Error) {
    for command in file.setup.iter().filter(|_| !matches!(error, Error::Usage(_))) {
        let _ = writeln!(io::stderr(), "lat-probe: {} needs: {command}", file.path.display());
    }
}

fn ab(arguments: AbArgs, matches: &ArgMatches) -> Result<u8> {
    let reporting = reporting(&arguments.measure.output);
    let options = arguments.series.into();
    let Some(path) = arguments.file else {
        return show(run::ab(&options, &[Plan::check(spec(arguments.measure)?)?], &reporting)?);
    };
    let file = File::read(&path, None, matches)?;
    if let Some(server) = file.servers().first() {
        return Err(Error::Usage(format!("{}: a server measures nothing that could be compared", server.from)));
    }
    let plans = file.plans()?;
    say_notes(&file);
    show(run::ab(&options, &plans, &reporting).inspect_err(|error| say_needs(&file, error))?)
}

fn calibrate(arguments: CalibrateArgs) -> Result<u8> {
    let CalibrateArgs { cpu, window, quiet, .. } = arguments;
    let options = Calibrate { clock: spec::clock(arguments.clock), cpu, window, quiet };
    let format = ResultFormat::Plain(format(arguments.format));
    let reporting = Reporting { format, output: arguments.output, ..Reporting::default() };
    show(run::calibrate(&options, &reporting)?)
}

fn measure(plans: &[Plan], reporting: &Reporting) -> Result<u8> {
    show(run::measure(plans, reporting)?)
}

/// Prints what came of a run, and what failed in it.
fn show(outcome: Outcome) -> Result<u8> {
    let printed = print(&outcome.stdout);
    if let Some(error) = &outcome.failure {
        fail(error);
    }
    printed.map(|()| outcome.exit_code)
}

fn fill(arguments: FillArgs) -> Result<u8> {
    let filled = run::fill(&Fill {
        path: arguments.allow_write,
        offset_bytes: arguments.offset.unwrap_or(0),
        size_bytes: arguments.size,
        seed: arguments.seed,
    })?;
    print(&filled).map(|()| 0)
}

fn schema(name: SchemaArg) -> Result<u8> {
    let kind = match name {
        SchemaArg::Result => Kind::Result,
        SchemaArg::Calibration => Kind::Calibration,
        SchemaArg::Comparison => Kind::Comparison,
        SchemaArg::Series => Kind::Series,
        SchemaArg::Table => Kind::Table,
        SchemaArg::Served => Kind::Served,
    };
    print(&kind.text()).map(|()| 0)
}

fn man(arguments: &ManArgs) -> Result<u8> {
    let date = man::date(std::env::var_os("SOURCE_DATE_EPOCH").as_deref())?;
    match &arguments.output {
        Some(folder) => man::write(folder, &date)?,
        None => print(&man::main_page(&date))?,
    }
    Ok(0)
}

fn format(argument: FormatArg) -> Format {
    match argument {
        FormatArg::Text => Format::Text,
        FormatArg::Json => Format::Json,
    }
}

fn reporting(arguments: &OutputArgs) -> Reporting {
    Reporting {
        format: match arguments.format {
            ResultFormatArg::Text => ResultFormat::Plain(Format::Text),
            ResultFormatArg::Json => ResultFormat::Plain(Format::Json),
            ResultFormatArg::Fio => ResultFormat::Fio,
        },
        output: arguments.output.clone(),
        samples: arguments.samples.clone(),
        label: arguments.label.clone(),
        meta: arguments.meta.iter().cloned().collect::<BTreeMap<_, _>>(),
        resume: false,
        live: match arguments.progress {
            _ if arguments.watch => Live::Figures,
            ProgressArg::Auto => Live::Progress,
            ProgressArg::Never => Live::Nothing,
        },
        canvas: terminal::canvas(),
    }
}

#[cfg(feature = "rdma")]
fn serve(arguments: ServeArgs) -> Result<u8> {
    use crate::{
        peer::{DEFAULT_PORT, PeerAddress, read_token_file},
        probe::RdmaSpec,
        run::serve::{ServeOptions, serve},
    };
    let (device, port) = spec::device_and_port(arguments.device.device)?;
    let spec = RdmaSpec { device, port, gid_index: arguments.device.gid_index, ..RdmaSpec::default() };
    if arguments.max_clients == 0 {
        return Err(Error::usage("--max-clients 0 would serve nobody"));
    }
    serve(ServeOptions {
        bind: PeerAddress::parse(&arguments.bind, DEFAULT_PORT).map_err(|why| Error::Usage(format!("--bind {why}")))?,
        allow: arguments.allow,
        token: arguments.token_file.as_deref().map(read_token_file).transpose()?,
        max_clients: usize::try_from(arguments.max_clients).unwrap_or(usize::MAX),
        max_bytes: arguments.max_size,
        max_depth: arguments.max_depth,
        rdma: spec.resolve(false)?,
        cpu: arguments.cpu.map(|cpu| usize::try_from(cpu).unwrap_or(usize::MAX)),
        once: arguments.once,
        format: format(arguments.format),
        progress: matches!(arguments.progress, ProgressArg::Auto),
    })
}

#[cfg(not(feature = "rdma"))]
fn serve(_arguments: ServeArgs) -> Result<u8> {
    Err(Error::Unavailable {
        what: "serve: this build has no RDMA engines".into(),
        remedy: "Build with the default features (needs cmake and libclang)".into(),
    })
}

/// Writes to stdout; a reader that has left is an error like any other, not a panic.
fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|source| Error::Output { path: "<stdout>".into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
