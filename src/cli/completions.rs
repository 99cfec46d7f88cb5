//! `lat-probe completions SHELL`: from the definition that the parser has.

use std::{any::TypeId, time::Duration};

use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::{Shell, generate};

use super::{args::Cli, values::Sizes};
use crate::{peer::Cidr, report::comparison::Figure, run::MinEffect};

/// The script that teaches a shell the options.
pub(super) fn script(shell: Shell) -> String {
    let mut command = without_files_for_numbers(Cli::command());
    let mut script = Vec::new();
    generate(shell, &mut command, "lat-probe", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        // clap_complete 4.6 takes the hyphen in the program's name for a step to a subcommand in one of the two places where it
        // writes bash's states, so that none of them would be found.
        Shell::Bash => script.replace("lat__subcmd__probe", "lat__probe"),
        Shell::Fish => for_fish(&script, &command),
        _ => script,
    }
}

/// What clap_complete 4.6 leaves out for fish: the values of an option that stands before any subcommand, which its script
/// takes for a faulty line as long as the value is missing, and those of an argument without an option.
fn for_fish(script: &str, command: &Command) -> String {
    let unfinished = "-- $cmd 2>/dev/null\n    or return\n";
    let mut script = script.replace(unfinished, "-- $cmd 2>/dev/null\n    or return 0\n");
    for subcommand in command.get_subcommands() {
        for argument in subcommand.get_positionals() {
            let values: Vec<_> = argument.get_possible_values().iter().map(|it| it.get_name().to_owned()).collect();
            if !values.is_empty() {
                let (name, values) = (subcommand.get_name(), values.join(" "));
                script += &format!(
                    "complete -c lat-probe -n \"__fish_lat_probe_using_subcommand {name}\" -f -a \"{values}\"\n"
                );
            }
        }
    }
    script
}

/// Some shells offer file names wherever they know nothing better; where a number or a time belongs that misleads.
fn without_files_for_numbers(command: Command) -> Command {
    command.mut_args(hint).mut_subcommands(without_files_for_numbers)
}

fn hint(argument: Arg) -> Arg {
    let numbers = [
        TypeId::of::<u64>(),
        TypeId::of::<Duration>(),
        TypeId::of::<Sizes>(),
        TypeId::of::<MinEffect>(),
        TypeId::of::<(Figure, Duration)>(),
        TypeId::of::<(String, String)>(),
        TypeId::of::<Cidr>(),
    ];
    let kind = argument.get_value_parser().type_id();
    if numbers.iter().any(|number| kind == *number) { argument.value_hint(ValueHint::Other) } else { argument }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_shell_gets_every_option_and_the_usual_ones_get_values() {
        for &shell in Shell::value_variants() {
            let script = script(shell);
            let mut words = vec!["engine", "signal-every", "compare", "completions", "until-settled"];
            if matches!(shell, Shell::Bash | Shell::Fish | Shell::Zsh) {
                words.extend(["rdma-read", "io-uring", "4096", "p99.9", "randread"]);
            }
            for word in words {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn states_of_bash_have_one_name() {
        let script = script(Shell::Bash);
        let state = "lat__probe__subcmd__calibrate";
        assert!(script.contains(&format!("cmd=\"{state}\"")) && script.contains(&format!(" {state})")), "{script}");
    }

    #[test]
    fn fish_gets_values_before_and_without_options() {
        let script = script(Shell::Fish);
        assert!(script.contains("or return 0\n"), "{script}");
        let shells = "-n \"__fish_lat_probe_using_subcommand completions\" -f -a \"bash elvish fish";
        assert!(script.contains(shells), "{script}");
    }

    #[test]
    fn numbers_are_no_files() {
        let command = without_files_for_numbers(Cli::command());
        let hint = |name| command.get_arguments().find(|it| it.get_id() == name).unwrap().get_value_hint();
        assert_eq!([hint("count"), hint("duration"), hint("sizes"), hint("meta")], [ValueHint::Other; 4]);
        assert_eq!([hint("target"), hint("output")], [ValueHint::FilePath, ValueHint::AnyPath]);
    }
}
