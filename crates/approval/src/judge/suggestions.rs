//! Rules that a question offers, for an answer that holds longer: narrowest first, none too broad.

use crate::rule::path_pattern::RulePath;
use crate::shell::runners::{Runs, runner};
use crate::shell::script::{ArgWord, SimpleCommand};
use crate::shell::subcommands::has_subcommands;
use protocol::judgement::JudgedCall;
use protocol::mcp;

/// Programs for which `NAME *` would allow nearly anything: interpreters, programs that run a
/// program named by an option or a file, and programs that change or send arbitrary files.
const BROAD: &[&str] = &[
    "R",
    "Rscript",
    "ansible",
    "ansible-playbook",
    "apt",
    "apt-get",
    "ar",
    "at",
    "awk",
    "batch",
    "bc",
    "bun",
    "bundle",
    "bunx",
    "chgrp",
    "chmod",
    "chown",
    "clang",
    "clang++",
    "cmake",
    "cp",
    "cpio",
    "crontab",
    "csplit",
    "curl",
    "dc",
    "dd",
    "deno",
    "dnf",
    "dotnet",
    "echo",
    "ed",
    "elixir",
    "emacs",
    "erl",
    "ex",
    "expect",
    "ftp",
    "g++",
    "gawk",
    "gcc",
    "ghc",
    "gpg",
    "gradle",
    "groovy",
    "guile",
    "helm",
    "hg",
    "install",
    "java",
    "javac",
    "julia",
    "just",
    "kill",
    "killall",
    "ld",
    "less",
    "ln",
    "lua",
    "luajit",
    "m4",
    "make",
    "man",
    "mawk",
    "more",
    "mount",
    "mv",
    "mvn",
    "mysql",
    "nano",
    "nawk",
    "nc",
    "ncat",
    "netcat",
    "ninja",
    "nmap",
    "node",
    "nodejs",
    "nvim",
    "ocaml",
    "openssl",
    "patch",
    "perl",
    "php",
    "pip",
    "pip3",
    "pipx",
    "pkill",
    "printf",
    "psql",
    "pwsh",
    "pypy",
    "pypy3",
    "python",
    "python2",
    "python3",
    "rake",
    "rename",
    "rm",
    "rmdir",
    "rsync",
    "ruby",
    "rustc",
    "rustup",
    "scala",
    "scp",
    "sed",
    "sftp",
    "shred",
    "socat",
    "sort",
    "split",
    "sqlite3",
    "sudo",
    "swift",
    "tar",
    "tclsh",
    "tee",
    "telnet",
    "truncate",
    "ts-node",
    "tsx",
    "umount",
    "unlink",
    "unzip",
    "uvx",
    "vi",
    "view",
    "vim",
    "wasmtime",
    "wget",
    "yarn",
    "yum",
    "zip",
];

/// Subcommands that run their arguments, or change what later commands run.
const BROAD_SUBCOMMANDS: &[&str] = &[
    "bisect",
    "config",
    "exec",
    "filter-branch",
    "install",
    "rebase",
    "run",
    "run-script",
    "submodule",
];

/// For a command: exactly these words, then its subcommand or program with any further ones.
pub(crate) fn of_command(simple: &SimpleCommand) -> Vec<String> {
    let words: Option<Vec<&str>> = simple.words.iter().map(ArgWord::known).collect();
    let mut offers = Vec::new();
    if let Some(words) = words.filter(|words| words.iter().all(|word| sayable(word))) {
        offers.push(format!("bash:{}", words.join(" ")));
    }
    offers.extend(with_any_words(&simple.words).map(|words| format!("bash:{words} *")));
    offers
}

fn with_any_words(words: &[ArgWord]) -> Option<String> {
    let program = words.first()?.known().filter(|word| sayable(word))?;
    if has_subcommands(program) {
        let subcommand = words.get(1)?.known().filter(|word| sayable(word))?;
        let plain = !subcommand.starts_with('-') && !BROAD_SUBCOMMANDS.contains(&subcommand);
        return plain.then(|| format!("{program} {subcommand}"));
    }
    let runs = runner(program).map(|row| row.runs);
    let runs =
        runs.filter(|runs| !matches!(runs, Runs::Options(_) | Runs::Variables | Runs::Indices));
    let broad = runs.is_some() || BROAD.contains(&crate::program_name::base_name(program));
    let versioned = program.ends_with(|c: char| c.is_ascii_digit());
    (!broad && !versioned).then(|| program.to_owned())
}

/// For one file: exactly it, then its directory in the project.
pub(crate) fn of_path(tool: &str, rule_path: &RulePath) -> Vec<String> {
    let Some(path) = &rule_path.relative else { return Vec::new() };
    let plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "/._-+@=, ".contains(c));
    if !plain(path) {
        return Vec::new();
    }
    let dir = path.rsplit_once('/').map(|(dir, _)| format!("{tool}:./{dir}/**"));
    std::iter::once(format!("{tool}:./{path}")).chain(dir).collect()
}

/// For a page of the web: its host, if it has a name. Where it lies there is the server's business.
pub(crate) fn of_page(case: &JudgedCall) -> Vec<String> {
    let page = case.page.iter().map(|page| format!("{}:{}", case.call.tool, page.site()));
    page.collect()
}

/// True if a word can be written in a rule as it is.
pub(crate) fn sayable(word: &str) -> bool {
    !word.is_empty()
        && !word.contains([' ', '*', '\\', '\'', '"', ';', '&', '|', '<', '>', '(', ')', '`'])
        && !word.contains(char::is_control)
}

/// For a tool of an MCP server: itself, then all tools of its server.
pub(crate) fn of_server_tool(name: &str) -> Vec<String> {
    let server = name.strip_prefix(mcp::PREFIX).and_then(|rest| rest.split_once("__"));
    let all = server.map(|(server, _)| format!("{}{server}__*", mcp::PREFIX));
    std::iter::once(name.to_owned()).chain(all).collect()
}
