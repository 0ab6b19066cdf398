//! The commands of the shell, which begin with a dot.

/// A command of the shell.
pub struct Command {
    /// The name with its dot.
    pub name: &'static str,
    /// The argument; empty if there is none.
    pub argument: &'static str,
    /// The purpose.
    pub help: &'static str,
}

/// All commands, in the order of the help.
pub const COMMANDS: [Command; 9] = [
    Command {
        name: ".help",
        argument: "",
        help: "list the commands",
    },
    Command {
        name: ".templates",
        argument: "",
        help: "list the templates of the data",
    },
    Command {
        name: ".schema",
        argument: "PATH",
        help: "list archetypes, or the paths below an archetype or a path in it",
    },
    Command {
        name: ".explain",
        argument: "QUERY",
        help: "show how a query is evaluated; without argument the last one",
    },
    Command {
        name: ".param",
        argument: "NAME=VALUE",
        help: "set a parameter; without argument list them",
    },
    Command {
        name: ".output",
        argument: "FILE",
        help: "write the rows of the next queries into a file; without argument show them again",
    },
    Command {
        name: ".format",
        argument: "FORMAT",
        help: "set the format of rows: table, csv, json, ndjson, arrow or parquet",
    },
    Command {
        name: ".timer",
        argument: "on|off",
        help: "show the time of each query",
    },
    Command {
        name: ".quit",
        argument: "",
        help: "end the shell, as Ctrl-D does",
    },
];

/// Returns the text of `.help`.
pub fn help() -> String {
    let line = |command: &Command| {
        let usage = format!("{} {}", command.name, command.argument);
        format!("{usage:<18} {}\n", command.help)
    };
    COMMANDS.iter().map(line).collect()
}
