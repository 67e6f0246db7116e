//! The colon commands and their parser. Pure.

use super::line_marks::{NotePlace, parse_note};
use super::other_names::{OtherName, other_name};
use super::rewind::RewindScope;
use crate::theme_name::ThemeName;
use protocol::confinement::Network;
use protocol::did_you_mean::nearest;
use protocol::hosts::HostRule;
use protocol::judgement::PermissionMode;

/// A parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColonCommand {
    Quit,
    Network(Network),
    AllowHost(HostRule),
    Mode(PermissionMode),
    Model(String),
    AddDirectory(String),
    /// Name the session; without words it has no name any more.
    Name(String),
    Pin(String),
    Unpin(String),
    /// With words about the focus of the summary.
    Compact(String),
    Context,
    /// The MCP servers.
    Servers,
    /// To the input line, to change it; or its new text.
    Summary(Option<String>),
    /// What to take back, as the conversation parses it; empty for the last turn.
    Undo(String),
    Changes(ChangesOf),
    /// To the moment before this record; absent to choose.
    Rewind(Option<(u64, RewindScope)>),
    /// The image of the clipboard.
    Paste,
    /// About calls that run.
    Running(CallCommand),
    Clear,
    Fork,
    Audit,
    Theme(ThemeName),
    /// The memories of the project and of all projects.
    Memories,
    /// Remove these memories.
    RemoveMemories(Vec<String>),
    /// Keep this line for later sessions.
    Note(NotePlace, String),
    Earlier,
    Help,
    /// No command; these words say what to do.
    Say(&'static str),
}

impl ColonCommand {
    /// True for a command that a client without full rights may not give.
    pub(crate) fn changes_session(&self) -> bool {
        match self {
            Self::Network(_)
            | Self::AllowHost(_)
            | Self::Mode(_)
            | Self::Model(_)
            | Self::Compact(_)
            | Self::Summary(Some(_))
            | Self::Undo(_)
            | Self::Rewind(_)
            | Self::Paste
            | Self::Running(CallCommand::Stop(_) | CallCommand::OpenPort(..))
            | Self::Pin(_)
            | Self::Unpin(_)
            | Self::RemoveMemories(_)
            | Self::Note(..)
            | Self::AddDirectory(_)
            | Self::Name(_) => true,
            Self::Quit
            | Self::Clear
            | Self::Fork
            | Self::Audit
            | Self::Theme(_)
            | Self::Memories
            | Self::Changes(_)
            | Self::Context
            | Self::Servers
            | Self::Running(CallCommand::List | CallCommand::Output(_))
            | Self::Summary(None)
            | Self::Earlier
            | Self::Say(_)
            | Self::Help => false,
        }
    }
}

/// A command about calls that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallCommand {
    /// What runs and what waits.
    List,
    /// The output of the call with this number.
    Output(u32),
    /// A port of this call's server.
    OpenPort(u32, u16),
    /// End this call.
    Stop(u32),
}

/// The calls whose changes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangesOf {
    Turn,
    Session,
}

/// Each command and its use; what is used often comes first.
pub const COMMANDS: &[(&str, &str)] = &[
    (":model MODEL", "use this model, starting with the next request"),
    (
        ":mode MODE",
        "how to treat calls that match no rule:\n\
         ask, sandboxed, accept-edits, plan, auto, dont-ask",
    ),
    (":context", "show what fills the model's context"),
    (
        ":context summary",
        "read and change the summary that replaces the oldest\nmessages; Ctrl-G edits it in $VISUAL",
    ),
    (
        ":compact FOCUS",
        "shrink the model's context: a summary replaces the\noldest messages (kept on disk)",
    ),
    (":clear", "start a new session; attach returns to this one"),
    (
        ":rewind",
        "go back before a prompt or a round: the conversation\nas a copy, the files, or both",
    ),
    (
        ":undo",
        "revert the changes of the last turn that changed\nfiles; again: those of the turn before",
    ),
    (":undo FILE", "only this file's changes of that turn;\n:undo all FILE: those of the session"),
    (
        ":changes",
        "show what the last turn changed, commands included;\n:changes all: what the session changed",
    ),
    (":net off", "no network for new commands"),
    (":net on", "the whole network for new commands"),
    (":net allow HOST", "only listed hosts: crates.io, *.crates.io"),
    (":add FILE", "pin a file: each request contains its current text"),
    (":drop FILE", "unpin a file"),
    (":add-dir DIR", "grant tools one more directory"),
    (":paste", "put the image of the clipboard into the prompt"),
    (":mcp", "show the MCP servers with their sandboxes and tools"),
    (
        ":name WORDS",
        "name this session; the name works wherever its ID does;\n:name - takes it away",
    ),
    (
        ":running",
        "list what runs and what waits, as Ctrl-T does:\ncalls, sub-agents, MCP servers, sessions",
    ),
    (":output CALL", "show the output so far of the call with this number"),
    (":open CALL PORT", "say how to open a port of its server to this machine"),
    (":stop CALL", "end the call with this number; the turn goes on"),
    (":fork", "copy this session and continue in the copy"),
    (":memory", "show what is remembered for later sessions;\n:memory rm ID: remove it"),
    (
        ":note WHERE TEXT",
        "keep a line for later sessions: agents appends it to\nAGENTS.md; project and all remember it",
    ),
    (":earlier", "show earlier events"),
    (":theme THEME", "colours: auto, dark, light, daltonised, ansi"),
    (":audit", "show the audit records of this session"),
    (":help", "this"),
    (":q", "leave; the session continues. exit and quit do it too"),
];

/// The keys, for the same page.
pub const KEYS: &[(&str, &str)] = &[
    ("Enter, Alt-Enter", "send; insert a new line, as \\ and Enter do"),
    ("Enter, Tab", "while a turn runs: join it; wait for its end (ui.busy)"),
    ("/NAME ARGUMENTS", "send the text of a slash command or a skill"),
    ("!COMMAND", "run it in the sandbox; the next prompt has its output"),
    ("#TEXT", "append the line to AGENTS.md, or remember it: a list asks"),
    ("Esc, Ctrl-C", "stop the turn"),
    ("Up, Down", "go by rows; take back a queued prompt; earlier input"),
    ("Ctrl-A E, Ctrl-Home", "go to start, end of the line; of the text (Ctrl-End)"),
    ("Ctrl-W U K, Alt-D", "erase a word, to the line's start, end; the next word"),
    ("Ctrl-Y, Alt-Y", "insert what they erased; then, what before that"),
    ("Ctrl-_ or /, Alt-/", "undo; redo"),
    ("a long paste", "one word that is sent whole; Ctrl-G shows all of it"),
    ("Ctrl-S", "put the text away; on an empty line: back again"),
    ("Esc Esc, Ctrl-C", "clear the line where no turn runs; Up brings it back"),
    ("Ctrl-B", "let the running command go on in the background"),
    ("Ctrl-T", "what runs and waits: calls, agents, servers, sessions"),
    ("Ctrl-V", "put the image of the clipboard into the prompt"),
    ("Ctrl-G", "edit the unsent text in $VISUAL"),
    ("Ctrl-Z", "give the terminal to the shell; fg comes back"),
    ("Up, Down, Enter", "at a question: mark an answer, and give it"),
    ("1 to 9 and Enter", "give the answer with this number"),
    ("Tab, Shift-Tab", "go to the next open question, or the one before"),
];

/// Parses `text`, which begins with a colon. The error is a message for the user.
pub(crate) fn parse(text: &str) -> Result<ColonCommand, String> {
    let mut words = text.trim_start_matches(':').split_whitespace();
    let name = words.next().unwrap_or_default();
    let rest = words.collect::<Vec<_>>().join(" ");
    let none = |command: ColonCommand| {
        if rest.is_empty() { Ok(command) } else { Err(format!(":{name} takes no arguments")) }
    };
    match name {
        "q" | "quit" => none(ColonCommand::Quit),
        "compact" => Ok(ColonCommand::Compact(rest)),
        "mcp" => none(ColonCommand::Servers),
        "context" if rest.is_empty() => Ok(ColonCommand::Context),
        // The text keeps its lines.
        "context" => match text.trim_start_matches(':').trim_start()["context".len()..].trim() {
            "summary" => Ok(ColonCommand::Summary(None)),
            words => match words.strip_prefix("summary") {
                Some(text) if text.starts_with(char::is_whitespace) => {
                    Ok(ColonCommand::Summary(Some(text.trim().to_owned())))
                }
                Some(_) | None => {
                    Err("write :context, or :context summary to read and change the summary".into())
                }
            },
        },
        // A file's name keeps its spaces.
        "undo" => {
            let typed = text.trim_start_matches(':').trim_start();
            match typed.strip_prefix("undo").unwrap_or_default().trim() {
                "all" => Err("give a file, as in :undo all src/lib.rs".to_owned()),
                what => Ok(ColonCommand::Undo(what.to_owned())),
            }
        }
        "changes" if rest == "all" => Ok(ColonCommand::Changes(ChangesOf::Session)),
        "changes" if rest.is_empty() => Ok(ColonCommand::Changes(ChangesOf::Turn)),
        "changes" => Err("write :changes or :changes all".to_owned()),
        "rewind" if rest.is_empty() => Ok(ColonCommand::Rewind(None)),
        "rewind" => {
            let (seq, scope) = rest.split_once(' ').unwrap_or((&rest, "both"));
            seq.parse()
                .ok()
                .zip(RewindScope::parse(scope))
                .map(Some)
                .map(ColonCommand::Rewind)
                .ok_or_else(|| {
                    "write :rewind to choose, or :rewind NUMBER with both, conversation or files"
                        .to_owned()
                })
        }
        "paste" => none(ColonCommand::Paste),
        "running" => none(ColonCommand::Running(CallCommand::List)),
        "output" => rest
            .parse()
            .map(CallCommand::Output)
            .map(ColonCommand::Running)
            .map_err(|_| "give the number of a call, as in :output 3".to_owned()),
        "open" => {
            let (call, port) = rest.split_once(' ').unwrap_or_default();
            let port = port.parse().ok().filter(|port| *port > 0);
            let parsed = call.parse().ok().zip(port);
            let open = |(call, port)| ColonCommand::Running(CallCommand::OpenPort(call, port));
            parsed.map(open).ok_or_else(|| {
                "give the number of a call and a port, as in :open 3 8080".to_owned()
            })
        }
        "stop" => {
            rest.parse().map(CallCommand::Stop).map(ColonCommand::Running).map_err(|_| {
                "give the number of a call, as in :stop 3; Esc stops the turn".to_owned()
            })
        }
        "clear" => none(ColonCommand::Clear),
        "fork" => none(ColonCommand::Fork),
        "audit" => none(ColonCommand::Audit),
        "theme" => ThemeName::parse(&rest)
            .map(ColonCommand::Theme)
            .ok_or_else(|| "the themes are auto, dark, light, daltonised and ansi".to_owned()),
        "memory" => match rest.split(' ').collect::<Vec<_>>()[..] {
            [""] => Ok(ColonCommand::Memories),
            ["rm", ref ids @ ..] if !ids.is_empty() => {
                Ok(ColonCommand::RemoveMemories(ids.iter().map(|&id| id.to_owned()).collect()))
            }
            _ => Err("write :memory to list them, or :memory rm ID".to_owned()),
        },
        // The text keeps its blanks.
        "note" => parse_note(text).map(|(place, text)| ColonCommand::Note(place, text)),
        "earlier" => none(ColonCommand::Earlier),
        "help" | "h" | "" => none(ColonCommand::Help),
        "net" => match rest.as_str() {
            "on" | "true" => Ok(ColonCommand::Network(Network::On)),
            "off" | "false" => Ok(ColonCommand::Network(Network::Off)),
            "allow" => Ok(ColonCommand::Network(Network::Listed)),
            other => match other.strip_prefix("allow ") {
                Some(host) => {
                    host.parse().map(ColonCommand::AllowHost).map_err(|no| no.to_string())
                }
                None => Err("write :net on, :net off or :net allow HOST".to_owned()),
            },
        },
        "mode" => PermissionMode::parse(&rest).map(ColonCommand::Mode).ok_or_else(|| {
            "the modes are ask, sandboxed, accept-edits, plan, auto and dont-ask".to_owned()
        }),
        "model" if rest.is_empty() => Err("give a model, as in :model NAME".to_owned()),
        "model" if rest.contains(' ') || rest.chars().any(char::is_control) => {
            Err("the name of a model has no spaces".to_owned())
        }
        "model" => Ok(ColonCommand::Model(rest)),
        "add" if rest.is_empty() => Err("give a file, as in :add src/lib.rs".to_owned()),
        "add" => Ok(ColonCommand::Pin(rest)),
        "drop" if rest.is_empty() => Err("give a pinned file, as in :drop src/lib.rs".to_owned()),
        "drop" => Ok(ColonCommand::Unpin(rest)),
        "add-dir" if rest.is_empty() => Err("give a directory, as in :add-dir ../lib".to_owned()),
        "add-dir" => Ok(ColonCommand::AddDirectory(rest)),
        "name" | "rename" if rest.is_empty() => {
            Err("give a name, as in :name the release; :name - takes it away".to_owned())
        }
        "name" | "rename" if rest == "-" => Ok(ColonCommand::Name(String::new())),
        "name" | "rename" => Ok(ColonCommand::Name(rest)),
        other => match other_name(other).filter(|_| rest.is_empty()) {
            Some(OtherName::Command(command)) => parse(command),
            Some(OtherName::Words(words)) => Ok(ColonCommand::Say(words)),
            None => Err(unknown(other)),
        },
    }
}

fn unknown(name: &str) -> String {
    let known = COMMANDS.iter().map(|(command, _)| {
        let end = command.find(' ').unwrap_or(command.len());
        &command[1..end]
    });
    match nearest(name, known).first() {
        Some(near) => format!("there is no command :{name}. Did you mean :{near}?"),
        None => format!("there is no command :{name}; :help lists them"),
    }
}

/// The page of `:help`. `leave` is how the leader key is pressed to detach.
pub(crate) fn help(leave: &str) -> String {
    // Further lines are indented to the first.
    let line = |(word, does): &(&str, &str)| {
        format!("  {word:<20} {}\n", does.replace('\n', &format!("\n{:23}", "")))
    };
    let commands: String = COMMANDS.iter().map(line).collect();
    let keys: String = KEYS.iter().map(line).collect();
    format!("{commands}{keys}{}", line(&(leave, "detach; the session continues")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn commands_mean_what_they_say() {
        assert_eq!(parse(":q"), Ok(ColonCommand::Quit));
        assert_eq!(parse(":paste"), Ok(ColonCommand::Paste));
        assert_eq!(parse(":clear"), Ok(ColonCommand::Clear));
        assert_eq!(parse(":compact"), Ok(ColonCommand::Compact(String::new())));
        assert_eq!(parse(":compact the tests"), Ok(ColonCommand::Compact("the tests".to_owned())));
        assert_eq!(parse(":context"), Ok(ColonCommand::Context));
        assert_eq!(parse(":mcp"), Ok(ColonCommand::Servers));
        assert!(parse(":mcp x").is_err());
        assert_eq!(parse(":context summary"), Ok(ColonCommand::Summary(None)));
        let text = Some("one\n\n  two".to_owned());
        assert_eq!(parse(":context summary one\n\n  two\n"), Ok(ColonCommand::Summary(text)));
        assert_eq!(parse(":undo "), Ok(ColonCommand::Undo(String::new())));
        assert_eq!(parse(": undo a  b.rs "), Ok(ColonCommand::Undo("a  b.rs".to_owned())));
        assert_eq!(parse(":model m-2"), Ok(ColonCommand::Model("m-2".to_owned())));
        let named = Ok(ColonCommand::Name("the release".to_owned()));
        assert_eq!(parse(":name the  release "), named);
        assert_eq!(parse(":rename the release"), named);
        assert_eq!(parse(":name -"), Ok(ColonCommand::Name(String::new())));
        assert_eq!(parse(":net on"), Ok(ColonCommand::Network(Network::On)));
        assert_eq!(parse(":net true"), Ok(ColonCommand::Network(Network::On)));
        assert_eq!(parse(":net false"), Ok(ColonCommand::Network(Network::Off)));
        assert_eq!(parse(":net allow"), Ok(ColonCommand::Network(Network::Listed)));
        let host = "*.crates.io".parse().unwrap();
        assert_eq!(parse(":net allow *.crates.io"), Ok(ColonCommand::AllowHost(host)));
        assert_eq!(parse(": mode  plan "), Ok(ColonCommand::Mode(PermissionMode::Plan)));
        assert_eq!(parse(":theme Dark"), Ok(ColonCommand::Theme(ThemeName::Dark)));
        assert_eq!(parse(":running"), Ok(ColonCommand::Running(CallCommand::List)));
        assert_eq!(parse(":output 12"), Ok(ColonCommand::Running(CallCommand::Output(12))));
        assert_eq!(
            parse(":open 3  8080"),
            Ok(ColonCommand::Running(CallCommand::OpenPort(3, 8080)))
        );
        assert_eq!(parse(":stop 12"), Ok(ColonCommand::Running(CallCommand::Stop(12))));
        assert_eq!(parse(":memory"), Ok(ColonCommand::Memories));
        let ids = vec!["p1".to_owned(), "u2".to_owned()];
        assert_eq!(parse(":memory rm  p1 u2"), Ok(ColonCommand::RemoveMemories(ids)));
        assert_eq!(parse(":rewind"), Ok(ColonCommand::Rewind(None)));
        assert_eq!(
            parse(":rewind 7 files"),
            Ok(ColonCommand::Rewind(Some((7, RewindScope::Files))))
        );
        assert_eq!(parse(":rewind 7"), Ok(ColonCommand::Rewind(Some((7, RewindScope::Both)))));
        assert_eq!(parse(":add-dir a b"), Ok(ColonCommand::AddDirectory("a b".to_owned())));
        for (wrong, said) in [
            (":net", ":net on"),
            (":net allow 10.0.0.1", "no name of a host"),
            (":net allow https://x.org", "is a URL"),
            (":mode yolo", "accept-edits"),
            (":theme", "daltonised and ansi"),
            (":theme nord", "daltonised and ansi"),
            (":add-dir", "directory"),
            (":add", "give a file"),
            (":drop", "give a pinned file"),
            (":model", "give a model"),
            (":model a b", "no spaces"),
            (":name", ":name the release"),
            (":undo all", ":undo all src"),
            (":changes some", ":changes all"),
            (":rewind x", ":rewind NUMBER"),
            (":rewind 7 all", "conversation or files"),
            (":q now", "no arguments"),
            (":context summaries", ":context summary"),
            (":memory rm", ":memory rm ID"),
            (":memory u1", ":memory rm ID"),
            (":running all", "no arguments"),
            (":output", ":output 3"),
            (":open 3", ":open 3 8080"),
            (":open 3 0", ":open 3 8080"),
            (":open 3 70000", ":open 3 8080"),
            (":stop", ":stop 3"),
            (":stop all", ":stop 3"),
            (":frok", "no command :frok. Did you mean :fork?"),
            (":launch", "no command :launch; :help"),
            (":cost now", "no command :cost"),
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }

    #[test]
    fn names_of_other_agents_lead_to_a_command_or_say_what_to_do() {
        for (name, leads_to) in super::super::other_names::OTHER_NAMES {
            let parsed = parse(&format!(":{name}"));
            match leads_to {
                // It asks which one.
                OtherName::Command(":mode" | ":name") => assert!(parsed.is_err(), "{name}"),
                OtherName::Command(command) => assert_eq!(parsed, parse(command), "{name}"),
                OtherName::Words(words) => {
                    assert_eq!(parsed, Ok(ColonCommand::Say(words)), "{name}");
                    assert!(words.len() <= 64, "one line beside its name: {words}");
                }
            }
        }
        for name in
            "cost status resume init exit usage permissions agents config quit new".split(' ')
        {
            assert!(parse(&format!(":{name}")).is_ok(), "{name}");
        }
    }

    #[test]
    fn help_lists_each_command_that_is_understood() {
        let page = help("Ctrl-\\ d");
        for name in [
            "q",
            "net on",
            "mode ask",
            "model m",
            "add-dir x",
            "add x",
            "drop x",
            "compact",
            "context",
            "undo",
            "changes",
            "rewind",
            "clear",
            "name x",
            "running",
            "output 1",
            "open 1 8080",
            "stop 1",
            "fork",
            "earlier",
            "audit",
            "theme dark",
            "memory",
            "help",
        ] {
            assert!(parse(&format!(":{name}")).is_ok(), "{name}");
            let word = name.split(' ').next().unwrap_or_default();
            assert!(page.contains(&format!(":{word}")), "{name}");
        }
        let fits = |line: &str| line.chars().count() <= 80;
        assert!(page.lines().all(fits), "it fits a usual terminal: {page}");
    }
}
