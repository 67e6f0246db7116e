//! Who asked for a call, on disk. Journals of earlier builds have the vendor's id only: an empty one says that
//! the model did not ask, and the tool with its arguments says who did. So it is read too where a later build
//! wrote an asker that this one does not know.

use journal::{OpenCall, OwnOriginRecord};
use protocol::call::{Call, CallOrigin};
use protocol::hook::HookEvent;
use protocol::mcp::{self, runs_server};

/// The tools that run a person's commands for edited files.
const OF_EDITS: [&str; 2] = ["format", "verify"];
/// The tool that takes changes back.
const OF_UNDO: &str = "undo_restore";
/// The tool that runs a person's own commands.
const SHELL: &str = "bash";
/// The tool that reads files.
const READ: &str = "read";
/// The end of the arguments of a pinned file's read. What a prompt shows is not read as plain text.
const PLAIN_TEXT: &str = r#","raw":true}"#;

/// The vendor's id and who else asked, for a record.
pub(crate) fn record(origin: CallOrigin) -> (String, Option<OwnOriginRecord>) {
    let own = match origin {
        CallOrigin::Model { use_id } => return (use_id, None),
        CallOrigin::EventHook => OwnOriginRecord::EventHook,
        CallOrigin::EditHook => OwnOriginRecord::EditHook,
        CallOrigin::ServerStart => OwnOriginRecord::ServerStart,
        CallOrigin::PromptPart => OwnOriginRecord::PromptPart,
        CallOrigin::Undo => OwnOriginRecord::Undo,
        CallOrigin::PinnedRead => OwnOriginRecord::PinnedRead,
        CallOrigin::Person => OwnOriginRecord::Person,
    };
    (String::new(), Some(own))
}

/// Who asked for a call of this tool, by its record.
pub(crate) fn origin(
    (use_id, own): (&str, Option<&OwnOriginRecord>),
    (tool, input): (&str, &str),
) -> CallOrigin {
    match own {
        _ if !use_id.is_empty() => CallOrigin::Model { use_id: use_id.to_owned() },
        Some(OwnOriginRecord::EventHook) => CallOrigin::EventHook,
        Some(OwnOriginRecord::EditHook) => CallOrigin::EditHook,
        Some(OwnOriginRecord::ServerStart) => CallOrigin::ServerStart,
        Some(OwnOriginRecord::PromptPart) => CallOrigin::PromptPart,
        Some(OwnOriginRecord::Undo) => CallOrigin::Undo,
        Some(OwnOriginRecord::PinnedRead) => CallOrigin::PinnedRead,
        Some(OwnOriginRecord::Person) => CallOrigin::Person,
        Some(OwnOriginRecord::Other(_)) | None => by_tool(tool, input),
    }
}

/// Who asked for a call that has no end on disk.
pub(crate) fn of_open(call: &OpenCall) -> CallOrigin {
    origin((&call.use_id, call.own.as_ref()), (&call.tool, &call.input))
}

fn by_tool(tool: &str, input: &str) -> CallOrigin {
    match tool {
        READ if input.ends_with(PLAIN_TEXT) => CallOrigin::PinnedRead,
        OF_UNDO => CallOrigin::Undo,
        tool if OF_EDITS.contains(&tool) => CallOrigin::EditHook,
        tool if HookEvent::is_run_by(tool) => CallOrigin::EventHook,
        tool if runs_server(tool) => CallOrigin::ServerStart,
        _ => CallOrigin::PromptPart,
    }
}

/// True if an asker of this kind makes such calls, and no other one is known to have proposed it. The process of the
/// conversation says all of it, and is not trusted.
pub(crate) fn fits(call: &Call, proposed: Option<&Call>) -> bool {
    if proposed.is_some_and(|proposed| proposed.origin != call.origin) {
        return false;
    }
    let tool = call.tool.as_str();
    match &call.origin {
        CallOrigin::Model { use_id } => !use_id.is_empty(),
        CallOrigin::EventHook => HookEvent::is_run_by(tool),
        CallOrigin::EditHook => OF_EDITS.contains(&tool),
        CallOrigin::ServerStart => runs_server(tool),
        CallOrigin::PromptPart => [SHELL, READ, mcp::CALL].contains(&tool),
        CallOrigin::Undo => tool == OF_UNDO,
        CallOrigin::PinnedRead => tool == READ && call.input.ends_with(PLAIN_TEXT),
        CallOrigin::Person => tool == SHELL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ids::{CallId, SessionId};

    /// Each origin that the conversation has besides the model, with a call that it makes.
    fn own() -> [(CallOrigin, &'static str, &'static str); 11] {
        use CallOrigin::{EditHook, EventHook, Person, PinnedRead, PromptPart, ServerStart, Undo};
        [
            (EventHook, "hook", "{}"),
            (EventHook, "guard_hook", "{}"),
            (EditHook, "format", "{}"),
            (EditHook, "verify", "{}"),
            (ServerStart, "mcp_server", "{}"),
            (PromptPart, "bash", r#"{"command":"date"}"#),
            (PromptPart, "read", r#"{"path":"a.png"}"#),
            (PromptPart, mcp::CALL, "{}"),
            (Undo, "undo_restore", r#"{"id":1}"#),
            (PinnedRead, "read", r#"{"path":"a.md","raw":true}"#),
            (Person, "bash", r#"{"command":"date"}"#),
        ]
    }

    #[test]
    fn an_origin_is_read_as_it_was_written_and_from_earlier_builds_as_it_was() {
        for (wanted, tool, input) in own() {
            let (use_id, own) = record(wanted.clone());
            assert_eq!(use_id, "");
            assert_eq!(origin((&use_id, own.as_ref()), (tool, input)), wanted, "{tool}");
            let later = OwnOriginRecord::Other("of_a_later_build".into());
            for other in [None, Some(&later)] {
                // Before persons typed commands, prompts alone had them.
                let is_typed = wanted == CallOrigin::Person;
                let wanted = if is_typed { CallOrigin::PromptPart } else { wanted.clone() };
                assert_eq!(origin(("", other), (tool, input)), wanted, "{tool} {other:?}");
            }
            let model = CallOrigin::Model { use_id: "toolu_1".into() };
            let (use_id, own) = record(model.clone());
            assert_eq!(origin((&use_id, own.as_ref()), (tool, input)), model, "{tool}");
        }
    }

    #[test]
    fn an_own_origin_fits_no_tool_but_its_own() {
        let id = CallId { session: SessionId("s".into()), number: 1 };
        let all = own();
        for (origin, _, _) in &all {
            for (_, tool, input) in &all {
                let (tool, input) = ((*tool).to_owned(), (*input).to_owned());
                let of_it =
                    |known: &&(CallOrigin, &str, &str)| known.0 == *origin && known.1 == tool;
                let mut of_it = all.iter().filter(of_it);
                let wanted =
                    of_it.any(|known| *origin != CallOrigin::PinnedRead || known.2 == input);
                let call = Call { id: id.clone(), origin: origin.clone(), tool, input };
                assert_eq!(fits(&call, None), wanted, "{call:?}");
            }
        }
        for (_, tool, input) in all {
            let of = |origin| Call {
                id: id.clone(),
                origin,
                tool: tool.to_owned(),
                input: input.to_owned(),
            };
            let model = of(CallOrigin::model("toolu_1"));
            assert!(fits(&model, None) && fits(&model, Some(&model)), "{tool}");
            assert!(!fits(&of(CallOrigin::model("")), None), "on disk it would be another's");
            assert!(!fits(&model, Some(&of(CallOrigin::Undo))), "another one is on record");
        }
    }
}
