//! Turns a prompt such as `/review src` into the text of its file. The crate `prompts` finds and
//! fills in the file; this module decides which parts of it count. Used by the session actor.
//!
//! A file's text is a prompt that the person chose. Its `allowed-tools` and its commands give
//! rights, so they count only in a file that the person trusts and that no tool can write.

use config::{Plugin, PluginFolder};
use prompts::{NameNotFound, PromptFile, PromptList, PromptOwner, PromptPiece, PromptPlaces};
use protocol::did_you_mean::nearest;
use protocol::judgement::{Rule, RuleEffect};
use protocol::session::{ExpandedPrompt, PromptPart};
use std::path::{Path, PathBuf};

/// Names that another agent's files use for tools.
const FOREIGN: [(&str, &str); 3] =
    [("MultiEdit", "multi_edit"), ("WebFetch", "web_fetch"), ("WebSearch", "web_search")];
/// Built-in commands of Claude Code, and agentd's way.
const OF_CLAUDE: [(&str, &str); 12] = [
    ("agents", "`agentd help agents`"),
    ("clear", "`:clear`"),
    ("compact", "`:compact`"),
    ("context", "`:context`"),
    ("cost", "`:context`, and the cost in the status line"),
    ("exit", "`:q`"),
    ("help", "`:help`"),
    ("model", "`:model NAME`"),
    ("permissions", "`agentd rules ls`, and `:mode MODE`"),
    ("quit", "`:q`"),
    ("resume", "`agentd attach`, and `agentd --continue`"),
    ("rewind", "`:rewind`"),
];
/// Directories in which no tool writes, at any depth of a granted directory.
const UNWRITABLE: [&str; 2] = [".claude", ".agentd"];
/// The word for the session's model.
const SAME_MODEL: &str = "inherit";
/// Most names in an error.
const NAMED: usize = 5;

/// Facts about the session that an expansion depends on.
#[derive(Debug, Clone)]
pub struct SlashContext {
    /// Where slash commands lie.
    pub places: PromptPlaces,
    /// The plugins, as they were trusted.
    pub(crate) plugins: Vec<Plugin>,
    pub(crate) project_is_trusted: bool,
    /// Real paths of the directories in which tools may write.
    pub(crate) writable: Vec<PathBuf>,
}

/// A prompt with its slash command expanded.
#[derive(Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The text and its parts.
    pub prompt: ExpandedPrompt,
    /// Sentences for the person.
    pub notes: Vec<String>,
}

/// Expands a prompt; `None` for one that names no slash command. The error is for the person. Reads
/// files, so it must not run on the event loop.
pub fn expand(context: &SlashContext, text: &str) -> Result<Option<Expansion>, String> {
    let Some((name, arguments)) = prompts::parse_slash(text) else { return Ok(None) };
    let list = PromptList::read(&context.places);
    let file = list.named(name).map_err(|why| not_found(&list, name, why))?;
    let shown = context.shown(&file.file);
    let pieces = prompts::expand(file, arguments)
        .map_err(|why| format!("/{} of {shown} cannot be used: {why}", file.name))?;
    let mut notes = Vec::new();
    if let Some(hidden) = file.hides.first() {
        let hidden = context.shown(hidden);
        notes.push(format!("/{} is {shown}, which hides {hidden}", file.name));
    }
    let rights = context.gives_rights(file);
    let why_not = rights.as_ref().err();
    // Another model may cost more.
    let model = file.model.clone().filter(|model| model != SAME_MODEL);
    let model = match (model, why_not) {
        (Some(model), Some(why)) => {
            let model = protocol::hidden::line(&model, 60);
            notes.push(format!("`model: {model}` of {shown} does not count: {why}"));
            None
        }
        (model, _) => model,
    };
    let parts = pieces.into_iter().map(|piece| match (piece, why_not) {
        (PromptPiece::Text(text), _) => PromptPart::Text(text),
        (PromptPiece::Command(command), None) => PromptPart::Command(command),
        (PromptPiece::Command(command), Some(why)) => {
            let command = protocol::hidden::line(&command, 200);
            notes.push(format!("!`{command}` of {shown} was not run: {why}"));
            PromptPart::Text(format!("[`{command}` was not run: its file gives no rights]"))
        }
    });
    let parts = parts.collect();
    let mut allow = Vec::new();
    match why_not {
        Some(why) if !file.allowed_tools.is_empty() => {
            notes.push(format!("`allowed-tools` of {shown} do not count: {why}"));
        }
        Some(_) => {}
        None => {
            for tool in &file.allowed_tools {
                match rule(&tool.text, &file.file, tool.line) {
                    Ok(rule) => allow.push(rule),
                    Err(why) => {
                        let text = protocol::hidden::line(&tool.text, 100);
                        let line = tool.line;
                        notes.push(format!("{shown}:{line}: `{text}` has no effect: {why}"));
                    }
                }
            }
        }
    }
    let prompt = ExpandedPrompt {
        file: file.file.display().to_string(),
        parts,
        allow,
        answer_schema: None,
        model,
        typed_by: None,
    };
    Ok(Some(Expansion { prompt, notes }))
}

impl SlashContext {
    /// `Err` says why the rules and commands of a file do not count.
    fn gives_rights(&self, file: &PromptFile) -> Result<(), String> {
        let real = file.file.canonicalize().map_err(|error| error.to_string())?;
        let inside = self.writable.iter().filter_map(|dir| real.strip_prefix(dir).ok());
        let may_change = |inside: &Path| {
            let mut names = inside.components().map(|part| part.as_os_str());
            !names.any(|name| UNWRITABLE.iter().any(|unwritable| name == *unwritable))
        };
        if inside.into_iter().any(may_change) {
            return Err("tools may change this file; move it to .claude/commands or \
                        .agentd/commands, where they write nothing"
                .to_owned());
        }
        match file.owner {
            PromptOwner::Project if !self.project_is_trusted => {
                Err("this project is not trusted. Read the file; then trust the project with \
                     `agentd init`, or for one run with --trust-project"
                    .to_owned())
            }
            PromptOwner::Plugin if !self.is_as_trusted(&real) => {
                Err("its plugin has changed since this session began. Read its files, trust them \
                     with `agentd init --plugin-dir`, and open the session again"
                    .to_owned())
            }
            PromptOwner::Project | PromptOwner::User | PromptOwner::Plugin => Ok(()),
        }
    }

    /// True if the plugin of this file has the digest with which the session began.
    fn is_as_trusted(&self, file: &Path) -> bool {
        let plugin = self.plugins.iter().find(|plugin| file.starts_with(&plugin.root));
        plugin.is_some_and(|plugin| {
            PluginFolder::read(&plugin.root).is_ok_and(|found| found.plugin.digest == plugin.digest)
        })
    }

    /// A path as people read it.
    fn shown(&self, path: &Path) -> String {
        let PromptPlaces { project, home, .. } = &self.places;
        let shown = match (path.strip_prefix(project), home.as_ref()) {
            (Ok(inside), _) => inside.display().to_string(),
            (Err(_), Some(home)) => match path.strip_prefix(home) {
                Ok(inside) => format!("~/{}", inside.display()),
                Err(_) => path.display().to_string(),
            },
            (Err(_), None) => path.display().to_string(),
        };
        protocol::hidden::line(&shown, 300)
    }
}

/// The rule of an entry of `allowed-tools`, or why it is none.
fn rule(text: &str, file: &Path, line: u32) -> Result<Rule, String> {
    let end = text.find([':', '(']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let name = FOREIGN.iter().find(|(foreign, _)| *foreign == name).map_or(name, |(_, own)| own);
    let rest = match name {
        "web_fetch" => rest.replace("(domain:", "("),
        _ => rest.to_owned(),
    };
    let rule = Rule {
        effect: RuleEffect::Allow,
        text: format!("{name}{rest}"),
        file: file.display().to_string(),
        line,
    };
    if let Some(error) = approval::check(std::slice::from_ref(&rule)).first() {
        return Err(error.fault.to_string());
    }
    let is_tool =
        |name: &str| tool_specs::rule_targets().iter().any(|it| it.name.eq_ignore_ascii_case(name));
    match is_tool(name.trim()) {
        true => Ok(rule),
        false => Err("it is a right beyond the session, which only you can give".to_owned()),
    }
}

fn not_found(list: &PromptList, name: &str, why: NameNotFound) -> String {
    let shown = protocol::hidden::line(name, 100);
    let as_text = "To send it as text, put a space before the slash";
    let of_claude = OF_CLAUDE.iter().find(|(theirs, _)| *theirs == name);
    if let (NameNotFound::Unknown, Some((_, ours))) = (&why, of_claude) {
        return format!("there is no slash command /{shown} here: agentd has {ours}. {as_text}");
    }
    match why {
        NameNotFound::Broken(trouble) => {
            format!("/{shown} cannot be used: {trouble}. {as_text}")
        }
        NameNotFound::Ambiguous(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
            format!("/{shown} may be {}; write one of them", names.join(" or "))
        }
        NameNotFound::Unknown if list.files.is_empty() => format!(
            "there is no slash command /{shown}, and no other: one is a Markdown file in \
             .claude/commands of the project or of your home directory. {as_text}"
        ),
        NameNotFound::Unknown => {
            let known = || list.files.iter().map(|file| file.name.as_str());
            let nearest = nearest(name, known()).into_iter().take(1);
            let similar = known().filter(|known| !name.is_empty() && known.contains(name));
            let mut near: Vec<&str> = nearest.chain(similar).collect();
            near.dedup();
            let (said, names) = match near.is_empty() {
                true => ("There are", known().take(NAMED).collect()),
                false => ("Did you mean", near.into_iter().take(NAMED).collect::<Vec<_>>()),
            };
            let names: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
            let more = list.files.len().saturating_sub(NAMED);
            let (names, end) = match (said, more) {
                ("Did you mean", _) => (names.join(" or "), "?".to_owned()),
                (_, 0) => (names.join(", "), ".".to_owned()),
                (_, more) => (names.join(", "), format!(" and {more} more.")),
            };
            format!("there is no slash command /{shown}. {said} {names}{end} {as_text}")
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.path().canonicalize().unwrap().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn context(&self) -> SlashContext {
            let root = self.0.path().canonicalize().unwrap();
            let project = root.join("project");
            fs::create_dir_all(&project).unwrap();
            SlashContext {
                places: PromptPlaces {
                    project: project.clone(),
                    home: Some(root.join("home")),
                    config: Some(root.join("home/.config/agentd")),
                    plugins: Vec::new(),
                },
                plugins: Vec::new(),
                project_is_trusted: true,
                writable: vec![project],
            }
        }

        fn expand(&self, text: &str) -> Expansion {
            expand(&self.context(), text).unwrap().unwrap()
        }

        fn refused(&self, text: &str) -> String {
            expand(&self.context(), text).unwrap_err()
        }
    }

    const RIGHTS: &str =
        "---\nallowed-tools: Bash(git status:*), Edit\n---\nSee !`git status -s`.\n";

    #[test]
    fn a_trusted_file_that_tools_cannot_write_gives_rights_and_no_other_does() {
        let place = Place::new();
        place.write("project/.claude/commands/s.md", RIGHTS);
        let given = place.expand("/s");
        let texts: Vec<&str> = given.prompt.allow.iter().map(|rule| rule.text.as_str()).collect();
        assert_eq!(texts, ["Bash(git status:*)", "Edit"]);
        assert!(given.prompt.allow.iter().all(|rule| rule.effect == RuleEffect::Allow));
        assert_eq!(given.prompt.parts[1], PromptPart::Command("git status -s".to_owned()));
        assert_eq!(given.notes, [""; 0]);
        let untrusted = SlashContext { project_is_trusted: false, ..place.context() };
        let refused = expand(&untrusted, "/s").unwrap().unwrap();
        assert_eq!(refused.prompt.allow, []);
        assert!(!refused.prompt.parts.iter().any(|it| matches!(it, PromptPart::Command(_))));
        assert_eq!(refused.notes.len(), 2, "{:?}", refused.notes);
        assert!(refused.notes[0].contains("!`git status -s` of .claude/commands/s.md was not run"));
        assert!(refused.notes[1].contains("`allowed-tools`") && refused.notes[1].contains("init"));
    }

    #[test]
    fn a_file_that_tools_may_change_gives_no_rights_by_any_path() {
        let place = Place::new();
        place.write("project/.agents/commands/a.md", RIGHTS);
        place.write("project/docs/b.md", RIGHTS);
        place.write("project/.claude/commands/x.md", "x");
        let link = place.context().places.project.join(".claude/commands/b.md");
        std::os::unix::fs::symlink("../../docs/b.md", link).unwrap();
        for name in ["/a", "/b"] {
            let found = place.expand(name);
            assert_eq!(found.prompt.allow, [], "{name}");
            assert!(found.notes[0].contains("tools may change this file"), "{:?}", found.notes);
        }
        place.write("home/.agents/commands/own.md", RIGHTS);
        let untrusted = SlashContext { project_is_trusted: false, ..place.context() };
        let own = expand(&untrusted, "/own").unwrap().unwrap();
        assert_eq!(own.prompt.allow.len(), 2, "a person's own file needs no trusted project");
    }

    #[test]
    fn a_rule_that_is_none_is_named_and_a_right_is_not_given() {
        let place = Place::new();
        let tools =
            "allowed-tools: [network:curl *, Notebook, 'WebFetch(domain:docs.rs)', 'Bash(']";
        place.write("home/.claude/commands/r.md", &format!("---\n{tools}\n---\nGo.\n"));
        let found = place.expand("/r");
        assert_eq!(found.prompt.allow.len(), 1, "{:?}", found.prompt.allow);
        assert_eq!(found.prompt.allow[0].text, "web_fetch(docs.rs)");
        assert_eq!(found.notes.len(), 3, "{:?}", found.notes);
        let place = "~/.claude/commands/r.md:2: ";
        assert!(found.notes.iter().all(|note| note.starts_with(place)), "{:?}", found.notes);
        assert!(found.notes[0].contains("right beyond the session"), "{:?}", found.notes);
    }

    #[test]
    fn a_name_leads_to_one_file_and_a_wrong_one_to_the_nearest() {
        let place = Place::new();
        assert!(place.refused("/x").contains("and no other"));
        place.write("project/.claude/commands/frontend/component.md", "Build $1.");
        place.write("project/.claude/commands/review.md", "Project.");
        place.write("home/.claude/commands/review.md", "Mine.");
        place.write("project/.claude/skills/pdf/SKILL.md", "---\ndescription: x\n---\nRead it.");
        for name in ["/component list", "/frontend:component list"] {
            assert_eq!(place.expand(name).prompt.parts, [PromptPart::Text("Build list.".into())]);
        }
        let review = place.expand("/review");
        assert_eq!(review.prompt.parts, [PromptPart::Text("Project.".into())]);
        let hides =
            "/review is .claude/commands/review.md, which hides ~/.claude/commands/review.md";
        assert_eq!(review.notes, [hides]);
        let skill = place.expand("/pdf now");
        let PromptPart::Text(text) = &skill.prompt.parts[0] else { panic!("{skill:?}") };
        assert!(
            text.contains("Skill pdf (project)") && text.ends_with("Read it.\n\nArguments: now")
        );
        assert!(place.refused("/reviw x").contains("Did you mean /review?"));
        assert!(place.refused("/clear").contains("agentd has `:clear`"));
        assert!(place.refused("/zzzzzz").contains("There are /frontend:component, /pdf, /review."));
        place.write("project/.claude/commands/backend/component.md", "Other.");
        let both = place.refused("/component");
        assert!(both.contains("/backend:component or /frontend:component"), "{both}");
        for text in ["/usr/bin/x what is this", " /review", "/ x", "review", "//"] {
            assert_eq!(expand(&place.context(), text), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn a_broken_file_is_named_and_the_others_work() {
        let place = Place::new();
        let commands = "project/.claude/commands";
        place.write(&format!("{commands}/good.md"), "Fine.");
        place.write(&format!("{commands}/yaml.md"), "---\nno yaml\n---\nx");
        place.write(&format!("{commands}/open.md"), "---\na: b\n");
        place.write(&format!("{commands}/empty.md"), "---\na: b\n---\n\n");
        place.write(&format!("{commands}/large.md"), &"x".repeat(300_000));
        place.write("outside/secret.md", "secret");
        place.write("outside/dir/secret.md", "secret");
        let dir = place.context().places.project.join(".claude/commands");
        fs::write(dir.join("binary.md"), b"\xff\xfe").unwrap();
        fs::write(dir.join("bad\u{1b}name.md"), "x").unwrap();
        for (link, target) in [("out.md", "secret.md"), ("outdir", "dir"), ("lost.md", "gone.md")] {
            let target = place.0.path().canonicalize().unwrap().join("outside").join(target);
            std::os::unix::fs::symlink(target, dir.join(link)).unwrap();
        }
        assert_eq!(place.expand("/good").prompt.parts, [PromptPart::Text("Fine.".into())]);
        for (name, why) in [
            ("yaml", "line 2 is not `key: value`"),
            ("open", "have no end"),
            ("empty", "no text for the model"),
            ("large", "it has 300000 bytes; the most is 262144"),
            ("binary", "no text in UTF-8"),
            ("out", "outside the project"),
            ("outdir", "outside the project"),
            ("lost", "leads nowhere"),
        ] {
            let said = place.refused(&format!("/{name}"));
            assert!(said.contains(why) && said.contains(&format!("commands/{name}")), "{said}");
        }
        let list = PromptList::read(&place.context().places);
        let control = "bad\u{fffd}name.md: its name bad\u{fffd}name is not made of";
        assert!(list.troubles.iter().any(|it| it.contains(control)), "{:?}", list.troubles);
        assert_eq!(list.files.len(), 1, "{:?}", list.files);
        assert!(!format!("{list:?}").contains("secret\""));
    }

    #[test]
    fn many_files_are_bounded_and_counted() {
        let place = Place::new();
        for number in 0..203 {
            place.write(&format!("project/.claude/commands/c{number:03}.md"), "x");
        }
        place.write("project/.claude/commands/1/2/3/4/5/deep.md", "x");
        let list = PromptList::read(&place.context().places);
        assert_eq!(list.files.len(), 200);
        assert!(list.troubles[0].contains("4 of its entries were not read"), "{:?}", list.troubles);
    }
}
