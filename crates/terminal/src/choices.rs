//! The rows of the pickers, and the effect of a choice. Pure.

use crate::picker::{Picker, PickerItem, PickerKind};
use client::{
    COMMANDS, OTHER_NAMES, OtherName, RewindPoint, RewindScope, Screen, ScreenInput, ThemeName,
    in_dollars, one_line, session_cost, session_state,
};
use protocol::client::{KnownModel, ModelFacts, SessionRow, SessionStatus};
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;

/// The modes, the one that asks least last.
const MODES: [PermissionMode; 6] = [
    PermissionMode::Ask,
    PermissionMode::Sandboxed,
    PermissionMode::AcceptEdits,
    PermissionMode::Plan,
    PermissionMode::DontAsk,
    PermissionMode::Auto,
];

/// The command that opens the picker of places.
pub(crate) const REWIND: &str = ":rewind";
/// The other name that opens the picker of sessions.
pub(crate) const RESUME: &str = ":resume";
/// The command that opens the table of what runs.
pub(crate) const RUNNING: &str = ":running";
/// The command that leaves.
const LEAVE: &str = ":q";
/// The command that loads earlier events.
const EARLIER: &str = ":earlier";

/// The places to go back before, the newest first. A value is the number of a record; it is empty in
/// the row that loads more.
pub(crate) fn rewind_points(screen: &Screen) -> Vec<PickerItem> {
    let item = |point: RewindPoint| PickerItem {
        text: point.title(),
        detail: match point.first_call {
            Some(call) => format!("files since call {call}"),
            None => "no call since".to_owned(),
        },
        value: point.seq.to_string(),
    };
    let mut items: Vec<PickerItem> = screen.rewind_points().into_iter().map(item).collect();
    if screen.has_earlier_places() {
        items.push(PickerItem {
            text: "… load earlier prompts".to_owned(),
            detail: String::new(),
            value: String::new(),
        });
    }
    items
}

/// What may go back to a place.
pub(crate) fn rewind_scopes(place: &str) -> Vec<PickerItem> {
    let item = |(name, scope): (&str, RewindScope)| PickerItem {
        text: name.to_owned(),
        detail: match scope {
            RewindScope::Both => "the files, then the conversation as a copy",
            RewindScope::Conversation => "a copy of the conversation; the files stay",
            RewindScope::Files => {
                "what calls changed since, commands included; the conversation stays"
            }
        }
        .to_owned(),
        value: format!("{place} {name}"),
    };
    RewindScope::ALL.into_iter().map(item).collect()
}

/// Prompts of the conversation and of this terminal, the newest first, each once.
pub(crate) fn earlier(mut prompts: Vec<String>, typed: &[String]) -> Vec<PickerItem> {
    prompts.extend(typed.iter().cloned());
    let mut items: Vec<PickerItem> = Vec::new();
    for value in prompts.into_iter().rev() {
        if items.iter().all(|item| item.value != value) {
            let text = one_line(&value, 400);
            items.push(PickerItem { text, detail: String::new(), value });
        }
    }
    items
}

/// The colon commands.
pub(crate) fn commands() -> Vec<PickerItem> {
    let item = |(name, help): &(&str, &str)| PickerItem {
        text: (*name).to_owned(),
        detail: help.replace('\n', " "),
        value: (*name).to_owned(),
    };
    COMMANDS.iter().map(item).collect()
}

/// With the command that leaves as the last one.
pub(crate) fn leave_last(mut items: Vec<PickerItem>) -> Vec<PickerItem> {
    items.extend(commands());
    items.sort_by_key(|item| item.value == LEAVE);
    items
}

/// Names that other agents have for commands, behind the sign that opened the list.
pub(crate) fn other_names(sign: char) -> Vec<PickerItem> {
    let item = |(name, leads_to): &(&str, OtherName)| PickerItem {
        text: format!("{sign}{name}"),
        detail: match leads_to {
            OtherName::Command(command) => format!("as {command}"),
            OtherName::Words(words) => (*words).to_owned(),
        },
        value: match leads_to {
            OtherName::Command(command) => (*command).to_owned(),
            OtherName::Words(_) => format!(":{name}"),
        },
    };
    OTHER_NAMES.iter().map(item).collect()
}

/// The second step of a command that needs one of these values.
pub(crate) fn values(command: &str, models: &[KnownModel]) -> Option<Picker> {
    let mode = |mode: PermissionMode| PickerItem {
        text: mode.name().to_owned(),
        detail: match mode {
            PermissionMode::Ask => "asks about each change and each command without a rule",
            PermissionMode::Sandboxed => {
                "asks only about what leaves the sandbox, or what undo does not cover"
            }
            PermissionMode::AcceptEdits => "edits files of the project; asks about the rest",
            PermissionMode::Plan => "only looks, and ends with a plan that you answer",
            PermissionMode::Auto => "never asks: does all that the sandbox allows",
            PermissionMode::DontAsk => "never asks: refuses what no rule allows",
        }
        .to_owned(),
        value: mode.name().to_owned(),
    };
    let model = |model: &KnownModel| PickerItem {
        text: model.name.clone(),
        detail: in_words(&model.facts),
        value: model.name.clone(),
    };
    let theme = |theme: ThemeName| PickerItem {
        text: theme.name().to_owned(),
        detail: theme.meaning().to_owned(),
        value: theme.name().to_owned(),
    };
    let (command, items): (&'static str, Vec<PickerItem>) = match command {
        ":mode" | ":mode MODE" => (":mode", MODES.into_iter().map(mode).collect()),
        ":model" | ":model MODEL" => (":model", models.iter().map(model).collect()),
        ":theme" | ":theme THEME" => (":theme", ThemeName::ALL.into_iter().map(theme).collect()),
        _ => return None,
    };
    (!items.is_empty()).then(|| Picker::new(PickerKind::Values(command), items))
}

/// Its context, and its prices for a million tokens.
fn in_words(facts: &ModelFacts) -> String {
    let context = facts.context.map(|tokens| format!("{}k tokens", tokens / 1000));
    let prices = facts.prices.as_ref().map(|prices| {
        let (input, output) = (in_dollars(prices.input), in_dollars(prices.output));
        format!("{input} in, {output} out")
    });
    context.into_iter().chain(prices).collect::<Vec<_>>().join(" · ")
}

/// A session of the supervisor's list.
pub(crate) fn session(row: &SessionRow) -> PickerItem {
    let state = session_state(&row.state);
    let project = row.project.to_path().display().to_string();
    PickerItem {
        text: match row.name.as_str() {
            "" => format!("{}  {}", row.session, one_line(&row.title, 60)),
            name => {
                format!("{}  {}  {}", row.session, one_line(name, 60), one_line(&row.title, 60))
            }
        },
        detail: match session_cost(row.cost) {
            Some(cost) => format!("{state}  {cost}  {}  {project}", row.model),
            None => format!("{state}  {}  {project}", row.model),
        },
        value: row.session.0.clone(),
    }
}

/// Asks for the preview of the chosen session, once. That of the session in view is in view.
pub(crate) fn preview(
    picker: &mut Picker,
    rows: &[SessionRow],
    here: Option<&SessionId>,
) -> Option<ScreenInput> {
    let is_of_sessions = picker.kind == PickerKind::Sessions;
    let chosen = is_of_sessions.then(|| picker.awaits_preview()).flatten()?;
    let row = rows.iter().find(|row| row.session.0 == chosen)?;
    let is_readable = !matches!(row.state, SessionStatus::Unreadable(_));
    let is_other = here != Some(&row.session);
    (is_readable && is_other).then(|| ScreenInput::Preview(row.session.clone()))
}

/// A choice in words of the input line, where Enter does it.
pub(crate) fn filled(kind: PickerKind, value: &str, typed: &str) -> Vec<ScreenInput> {
    let mut inputs = inputs(kind, value, typed);
    for input in &mut inputs {
        if let ScreenInput::Command(command) = input {
            *input = ScreenInput::Paste(std::mem::take(command));
        }
    }
    inputs
}

/// What a choice means.
pub(crate) fn inputs(kind: PickerKind, value: &str, typed: &str) -> Vec<ScreenInput> {
    match kind {
        PickerKind::Sessions => {
            vec![ScreenInput::SwitchTo(SessionId(value.to_owned()))]
        }
        // A resource of a server has no lines.
        PickerKind::Files if value.starts_with('@') => {
            vec![ScreenInput::Paste(format!("{value} "))]
        }
        PickerKind::Files => {
            let range =
                typed.split_once(':').map(|(_, range)| format!(":{range}")).unwrap_or_default();
            vec![ScreenInput::Paste(format!("@{value}{range} "))]
        }
        // A file that cannot be used.
        PickerKind::Slash if value.is_empty() => Vec::new(),
        PickerKind::Slash if value.starts_with(':') => inputs(PickerKind::Commands, value, typed),
        PickerKind::Slash => vec![ScreenInput::Paste(value.to_owned())],
        PickerKind::History => vec![ScreenInput::Edited(value.to_owned())],
        // The rest of a long session, to choose from it afterwards.
        PickerKind::Rewind => vec![ScreenInput::Command(EARLIER.to_owned())],
        // An editor needs the terminal, which Ctrl-G lends.
        PickerKind::Places => Vec::new(),
        PickerKind::RewindScope => vec![ScreenInput::Command(format!("{REWIND} {value}"))],
        PickerKind::Values(command) => vec![ScreenInput::Command(format!("{command} {value}"))],
        PickerKind::Ports(call) => vec![ScreenInput::Command(format!(":open {call} {value}"))],
        PickerKind::StopCall(call) => vec![ScreenInput::Command(format!(":stop {call}"))],
        // The view goes on to the next step.
        PickerKind::Running | PickerKind::Actions | PickerKind::Note => Vec::new(),
        PickerKind::Commands if !value.starts_with(':') => inputs(PickerKind::Slash, value, typed),
        PickerKind::Commands => {
            // Words in capitals stand for what is to be typed.
            match value.split_once(' ').filter(|(_, rest)| rest.chars().any(char::is_uppercase)) {
                Some((name, rest)) => {
                    let fixed = rest.split(' ').find(|word| word.chars().all(char::is_lowercase));
                    let fixed = fixed.map(|word| format!("{word} ")).unwrap_or_default();
                    vec![ScreenInput::Paste(format!("{name} {fixed}"))]
                }
                None => vec![ScreenInput::Command(value.to_owned())],
            }
        }
    }
}
