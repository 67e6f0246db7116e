//! A prompt with commands in its text, or with files that it shows: each is a call that no model
//! requested, and its output stands in its place. The model gets the prompt once all of them have ended.
//! Pure.

use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::content::{ContentBlock, ImageRef};
use protocol::ids::CallId;
use protocol::judgement::ToolKind;
use protocol::mcp;
use protocol::session::{ExpandedPrompt, OfferedTool, PromptPart};

/// The tool that runs the commands.
const SHELL: &str = "bash";
/// The tool that reads the files.
const READ: &str = "read";
/// The end of the result of a command that succeeded, where there is nothing else to say.
const SUCCESS: &str = "--- agentd ---\nexit code: 0";
/// Stands for a text without a word.
const EMPTY: &str = "(The text of the command is empty: its commands printed nothing.)";

/// A part of the text.
#[derive(Debug)]
enum PendingPart {
    Text(String),
    Command { command: String, call: Option<Call>, output: Option<String> },
    File { path: String, call: Option<Call>, shown: Option<Vec<ContentBlock>> },
    Server { wanted: PartCall, call: Option<Call>, given: Option<Vec<ContentBlock>> },
}

/// A call that a part of the prompt needs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PartCall {
    Command(String),
    File(String),
    Server { name: String, arguments: String },
}

impl PartCall {
    fn tool(&self) -> (&'static str, ToolKind) {
        match self {
            Self::Command(_) => (SHELL, ToolKind::Mutation),
            Self::File(_) => (READ, ToolKind::Query),
            Self::Server { .. } => (mcp::CALL, ToolKind::Mutation),
        }
    }

    fn input(&self) -> String {
        match self {
            Self::Command(command) => serde_json::json!({ "command": command }),
            Self::File(path) => serde_json::json!({ "path": path }),
            Self::Server { name, arguments } => {
                serde_json::json!({ "tool": name, "arguments": arguments })
            }
        }
        .to_string()
    }

    /// Its name for people: `@SERVER:URI`, or the prompt's.
    fn shown(&self) -> String {
        match self {
            Self::Command(it) | Self::File(it) => it.clone(),
            Self::Server { name, arguments } => {
                let server = name.strip_prefix(mcp::PREFIX).unwrap_or(name);
                let arguments: serde_json::Value =
                    serde_json::from_str(arguments).unwrap_or_default();
                match server.split_once("__@") {
                    Some((server, "resource")) => {
                        format!("@{server}:{}", arguments["uri"].as_str().unwrap_or_default())
                    }
                    _ => {
                        let prompt = arguments["name"].as_str().unwrap_or_default();
                        format!("/{}{prompt}", name.strip_suffix(mcp::PROMPT).unwrap_or(name))
                    }
                }
            }
        }
    }

    /// The part that this call belongs to, if it is of a prompt.
    fn of(call: &Call) -> Option<Self> {
        let input: serde_json::Value = serde_json::from_str(&call.input).unwrap_or_default();
        let field = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
        match call.tool.as_str() {
            _ if !matches!(call.origin, CallOrigin::PromptPart | CallOrigin::Person) => None,
            SHELL => Some(Self::Command(field("command"))),
            READ => Some(Self::File(field("path"))),
            mcp::CALL => Some(Self::Server { name: field("tool"), arguments: field("arguments") }),
            _ => None,
        }
    }
}

/// The prompt of a turn, until its commands have ended.
#[derive(Debug)]
pub(crate) struct PendingPrompt(Vec<PendingPart>);

impl PendingPrompt {
    pub(crate) fn new(prompt: &ExpandedPrompt) -> Self {
        let part = |part: &PromptPart| match part {
            PromptPart::Text(text) => PendingPart::Text(text.clone()),
            PromptPart::Command(command) => {
                PendingPart::Command { command: command.clone(), call: None, output: None }
            }
            PromptPart::File(path) => {
                PendingPart::File { path: path.clone(), call: None, shown: None }
            }
            PromptPart::Server { name, arguments } => {
                let (name, arguments) = (name.clone(), arguments.clone());
                let wanted = PartCall::Server { name, arguments };
                PendingPart::Server { wanted, call: None, given: None }
            }
        };
        Self(prompt.parts.iter().map(part).collect())
    }

    /// Its first part without a call got this one.
    pub(crate) fn called(&mut self, named: &Call) {
        let Some(wanted) = PartCall::of(named) else { return };
        for part in &mut self.0 {
            match (part, &wanted) {
                (
                    PendingPart::Command { command, call: call @ None, .. },
                    PartCall::Command(it),
                ) if command == it => {
                    *call = Some(named.clone());
                    return;
                }
                (PendingPart::File { path, call: call @ None, .. }, PartCall::File(it))
                    if path == it =>
                {
                    *call = Some(named.clone());
                    return;
                }
                (PendingPart::Server { wanted: it, call: call @ None, .. }, wanted)
                    if it == wanted =>
                {
                    *call = Some(named.clone());
                    return;
                }
                (_, _) => {}
            }
        }
    }

    /// A call ended.
    pub(crate) fn ended(&mut self, ended: &CallId, result: &ToolResult) {
        for part in &mut self.0 {
            match part {
                PendingPart::Command { call: Some(call), output: output @ None, .. }
                    if call.id == *ended =>
                {
                    *output = Some(words(result));
                }
                PendingPart::File { path, call: Some(call), shown: shown @ None }
                    if call.id == *ended =>
                {
                    *shown = Some(blocks(path, result));
                }
                PendingPart::Server { wanted, call: Some(call), given: given @ None }
                    if call.id == *ended =>
                {
                    *given = Some(server_blocks(wanted, result));
                }
                PendingPart::Text(_)
                | PendingPart::Command { .. }
                | PendingPart::Server { .. }
                | PendingPart::File { .. } => {}
            }
        }
    }

    /// True if every command has ended, and every file was read.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.iter().all(|part| match part {
            PendingPart::Text(_) => true,
            PendingPart::Command { output, .. } => output.is_some(),
            PendingPart::File { shown, .. } => shown.is_some(),
            PendingPart::Server { given, .. } => given.is_some(),
        })
    }

    /// The calls of the parts without one, in order: their tools and arguments.
    pub(crate) fn due(&self) -> Vec<(&'static str, String)> {
        self.unnamed().iter().map(|part| (part.tool().0, part.input())).collect()
    }

    /// The parts without a call, in order.
    fn unnamed(&self) -> Vec<PartCall> {
        let unnamed = |part: &PendingPart| match part {
            PendingPart::Command { command, call: None, .. } => {
                Some(PartCall::Command(command.clone()))
            }
            PendingPart::File { path, call: None, .. } => Some(PartCall::File(path.clone())),
            PendingPart::Server { wanted, call: None, .. } => Some(wanted.clone()),
            PendingPart::Command { .. }
            | PendingPart::File { .. }
            | PendingPart::Server { .. }
            | PendingPart::Text(_) => None,
        };
        self.0.iter().filter_map(unnamed).collect()
    }

    /// The calls without a result.
    pub(crate) fn unanswered(&self) -> Vec<Call> {
        let open = |part: &PendingPart| match part {
            PendingPart::Command { call, output: None, .. }
            | PendingPart::File { call, shown: None, .. }
            | PendingPart::Server { call, given: None, .. } => call.clone(),
            PendingPart::Command { .. }
            | PendingPart::File { .. }
            | PendingPart::Server { .. }
            | PendingPart::Text(_) => None,
        };
        self.0.iter().filter_map(open).collect()
    }

    /// The files that it shows, for the model, behind its text.
    pub(crate) fn files(&self) -> Vec<ContentBlock> {
        let blocks = |part: &PendingPart| match part {
            PendingPart::File { shown: Some(shown), .. } => shown.clone(),
            PendingPart::File { path, shown: None, .. } => {
                let text = format!("[{path} was not read: the turn ended before]");
                vec![ContentBlock::Text { text }]
            }
            PendingPart::Server { given: Some(given), .. } => given.clone(),
            PendingPart::Server { wanted, given: None, .. } => {
                let text = format!("[{} was not given: the turn ended before]", wanted.shown());
                vec![ContentBlock::Text { text }]
            }
            PendingPart::Command { .. } | PendingPart::Text(_) => Vec::new(),
        };
        self.0.iter().flat_map(blocks).collect()
    }

    /// The text for the model.
    pub(crate) fn text(&self) -> String {
        let text = |part: &PendingPart| match part {
            PendingPart::Text(text) => text.clone(),
            PendingPart::Command { output: Some(output), .. } => output.clone(),
            PendingPart::Command { command, output: None, .. } => {
                format!("[`{command}` was not run: the turn ended before]")
            }
            PendingPart::File { .. } | PendingPart::Server { .. } => String::new(),
        };
        let text: String = self.0.iter().map(text).collect();
        // A vendor refuses blank text.
        let is_of_server = |part: &PendingPart| matches!(part, PendingPart::Server { .. });
        match text.trim().is_empty() && !self.0.iter().any(is_of_server) {
            true => EMPTY.to_owned(),
            false => text,
        }
    }
}

/// The prompt as hooks see it: the words, and the text that they stand for, with its commands.
pub(crate) fn whole_prompt(text: &str, expanded: Option<&ExpandedPrompt>) -> String {
    // Without a slash command, the other parts only show files or ask for a form.
    let expanded = expanded.filter(|expanded| !expanded.file.is_empty());
    let parts = expanded.into_iter().flat_map(|expanded| &expanded.parts);
    let parts = parts.map(|part| match part {
        PromptPart::Text(text) => text.clone(),
        PromptPart::Command(command) => format!("!`{command}`"),
        // Its name is in the text.
        PromptPart::File(_) | PromptPart::Server { .. } => String::new(),
    });
    let behind: String = parts.collect();
    if behind.is_empty() { text.to_owned() } else { format!("{text}\n\n{behind}") }
}

/// Why the result of a file's read shows nothing.
fn not_shown(result: &ToolResult) -> Option<&str> {
    match (result.images.is_empty(), result.is_error) {
        (false, _) => None,
        (true, true) => Some(result.text.trim_end()),
        (true, false) => Some("it is not an image"),
    }
}

/// The sentence for the person where a file of the prompt could not be shown.
pub(crate) fn notice(call: &Call, result: &ToolResult) -> Option<String> {
    let (what, why) = match PartCall::of(call)? {
        PartCall::File(path) => (path, not_shown(result)?),
        wanted @ PartCall::Server { .. } if result.is_error => {
            (wanted.shown(), result.text.as_str())
        }
        PartCall::Server { .. } | PartCall::Command(_) => return None,
    };
    let why = why.lines().next().unwrap_or_default();
    Some(format!("{what} is not shown to the model: {why}"))
}

/// What stands for a file: the image with its name, or the text of the result.
fn blocks(path: &str, result: &ToolResult) -> Vec<ContentBlock> {
    if let Some(why) = not_shown(result) {
        let text = format!("[{path} could not be shown: {why}]");
        return vec![ContentBlock::Text { text }];
    }
    result.images.iter().flat_map(image_blocks).collect()
}

fn image_blocks(image: &ImageRef) -> [ContentBlock; 2] {
    let text = format!("[image {image}]");
    [ContentBlock::Text { text }, ContentBlock::Image { image: image.clone() }]
}

/// What stands for a resource or a prompt of a server: its text, and its images with their names.
fn server_blocks(wanted: &PartCall, result: &ToolResult) -> Vec<ContentBlock> {
    let text = match (wanted, result.is_error) {
        (_, true) => format!("[{}: {}]", wanted.shown(), result.text.trim_end()),
        (PartCall::Server { name, .. }, false) if name.ends_with(mcp::PROMPT) => {
            result.text.trim_end().to_owned()
        }
        (_, false) => format!("[{}]\n{}", wanted.shown(), result.text.trim_end()),
    };
    let text = std::iter::once(ContentBlock::Text { text });
    text.chain(result.images.iter().flat_map(image_blocks)).collect()
}

/// What stands in the command's place.
fn words(result: &ToolResult) -> String {
    let text = result.text.trim_end();
    match result.outcome {
        Outcome::Exited { code: 0 } => text.strip_suffix(SUCCESS).unwrap_or(text).trim_end(),
        Outcome::Exited { .. }
        | Outcome::Done
        | Outcome::Failed
        | Outcome::Signalled { .. }
        | Outcome::TimedOut
        | Outcome::Denied
        | Outcome::Refused { .. }
        | Outcome::Confined { .. }
        | Outcome::OutOfMemory
        | Outcome::Crashed
        | Outcome::Interrupted
        | Outcome::NeverStarted
        | Outcome::Invalid => text,
    }
    .to_owned()
}

/// The kind of a call of a prompt; none if its tool is not offered.
pub(crate) fn kind(call: &Call, tools: &[OfferedTool]) -> Option<ToolKind> {
    // The supervisor knows the servers.
    let is_offered = call.tool == mcp::CALL || tools.iter().any(|tool| tool.spec.name == call.tool);
    PartCall::of(call).filter(|_| is_offered).map(|part| part.tool().1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::ids::SessionId;

    fn prompt(parts: &[PromptPart]) -> PendingPrompt {
        let (file, parts) = ("/p/x.md".to_owned(), parts.to_vec());
        PendingPrompt::new(&ExpandedPrompt {
            file,
            parts,
            allow: Vec::new(),
            answer_schema: None,
            model: None,
            typed_by: None,
        })
    }

    fn command(text: &str) -> PromptPart {
        PromptPart::Command(text.to_owned())
    }

    fn call(number: u32, command: &str) -> Call {
        let id = CallId { session: SessionId("s".into()), number };
        let input = serde_json::json!({ "command": command }).to_string();
        Call { id, origin: CallOrigin::PromptPart, tool: SHELL.to_owned(), input }
    }

    fn result(outcome: Outcome, text: &str) -> ToolResult {
        let (text, summary) = (text.to_owned(), String::new());
        ToolResult { outcome, text, summary, is_error: false, code: None, images: Vec::new() }
    }

    #[test]
    fn each_output_stands_in_its_place_and_a_refusal_too() {
        let mut pending = prompt(&[
            PromptPart::Text("One: ".to_owned()),
            command("date"),
            PromptPart::Text(", two: ".to_owned()),
            command("date"),
            PromptPart::Text(".".to_owned()),
        ]);
        let date = || PartCall::Command("date".to_owned());
        assert_eq!(pending.unnamed(), [date(), date()]);
        let origin = CallOrigin::model("toolu_1");
        let of_model = Call { origin, ..call(1, "date") };
        for named in [of_model, call(2, "other"), call(3, "date"), call(4, "date")] {
            pending.called(&named);
        }
        assert_eq!(pending.unnamed(), []);
        assert_eq!(pending.unanswered(), [call(3, "date"), call(4, "date")]);
        let denied = Outcome::Refused { rule: "bash:date".to_owned() };
        pending.ended(&call(4, "date").id, &result(denied, "Error [denied] bash: no"));
        assert!(!pending.is_complete());
        let cut = "One: [`date` was not run: the turn ended before], two: Error [denied] bash: no.";
        assert_eq!(pending.text(), cut);
        let ended = Outcome::Exited { code: 0 };
        let text = "Friday\n--- agentd ---\nexit code: 0\n";
        pending.ended(&call(3, "date").id, &result(ended, text));
        assert!(pending.is_complete());
        assert_eq!(pending.text(), "One: Friday, two: Error [denied] bash: no.");
    }

    #[test]
    fn an_end_that_says_more_stays_and_no_text_is_blank() {
        let text = "x\n--- agentd ---\nexit code: 3";
        assert_eq!(words(&result(Outcome::Exited { code: 3 }, text)), text);
        let mut pending = prompt(&[command("true")]);
        pending.called(&call(1, "true"));
        let ended = Outcome::Exited { code: 0 };
        pending.ended(&call(1, "true").id, &result(ended, "--- agentd ---\nexit code: 0"));
        assert_eq!(pending.text(), EMPTY);
    }

    #[test]
    fn a_resource_stands_behind_the_text_and_a_prompt_of_a_server_alone() {
        let server = |own: &str, arguments: &str| {
            let name = format!("mcp__t__{own}");
            PromptPart::Server { name, arguments: arguments.to_owned() }
        };
        let calls = |pending: &mut PendingPrompt, result: &ToolResult| {
            for part in pending.unnamed() {
                let (input, tool) = (part.input(), part.tool().0.to_owned());
                let named = Call { input, tool, ..call(1, "") };
                pending.called(&named);
                pending.ended(&named.id, result);
            }
            assert!(pending.is_complete());
            let text = |block: ContentBlock| {
                let ContentBlock::Text { text } = block else { panic!("{block:?}") };
                text
            };
            (pending.text(), pending.files().into_iter().map(text).collect::<Vec<_>>())
        };
        let resource = r#"{"uri":"note://a"}"#;
        let parts = [PromptPart::Text("See it.".to_owned()), server("@resource", resource)];
        let (text, behind) = calls(&mut prompt(&parts), &result(Outcome::Done, "Alpha\n"));
        assert_eq!((text.as_str(), behind), ("See it.", vec!["[@t:note://a]\nAlpha".to_owned()]));
        let parts = [server("@prompt", r#"{"name":"greet","arguments":{}}"#)];
        let (text, behind) = calls(&mut prompt(&parts), &result(Outcome::Done, "Greet.\n"));
        assert_eq!((text.as_str(), behind), ("", vec!["Greet.".to_owned()]));
        let refused = ToolResult { is_error: true, ..result(Outcome::Failed, "Error: no") };
        let (_, behind) = calls(&mut prompt(&parts), &refused);
        assert_eq!(behind, ["[/mcp__t__greet: Error: no]"]);
        let cut = prompt(&parts).files();
        assert!(
            matches!(&cut[..], [ContentBlock::Text { text }] if text.contains("was not given"))
        );
    }
}
