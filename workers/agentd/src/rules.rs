//! `agentd rules`: the permission rules of a project, and a test of a call on them. The test judges
//! as the broker does in an interactive session.

use crate::cli::RulesCommand;
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::real_dir;
use crate::output::{print, print_json};
use crate::settings;
use crate::table::table;
use approval::{CallSubject, NamedCall, SessionRules, programs};
use config::Config;
use protocol::call::{Call, CallOrigin, ProbeReport, ProbedPath};
use protocol::confinement::{FilePath, Network, Tier};
use protocol::hosts::HostRule;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{
    Audience, Basis, Effect, EffectReach, ExtraRight, JudgedCall, PermissionMode, Rule, RuleEffect,
    ToolKind, Verdict,
};
use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};

pub(crate) fn main(command: &RulesCommand) -> Result<CliExit, CliError> {
    match command {
        RulesCommand::Check { call, project, json } => {
            let checked = CheckedCall::of(call, &real_dir(project, "the project directory")?)?;
            match json {
                true => print_json(&format!("{}\n", checked.json())),
                false => print(&checked.words()),
            }
        }
        RulesCommand::Ls { project, json } => {
            let config = settings::sound(&real_dir(project, "the project directory")?)?;
            let rules = &config.permissions.rules;
            match json {
                true => print_json(
                    &rules.iter().map(|rule| format!("{}\n", as_json(rule))).collect::<String>(),
                ),
                false if rules.is_empty() => eprintln!(
                    "agentd: there are no rules; the mode `{}` decides",
                    config.permissions.mode.name()
                ),
                false => print(&table(&rules.iter().map(cells).collect::<Vec<_>>())),
            }
        }
    }
    Ok(CliExit::Done)
}

/// A call and its verdict.
struct CheckedCall {
    call: String,
    /// The programs that a command would run, or why they are unknown. `None` for other tools.
    programs: Option<Result<Vec<String>, String>>,
    verdict: Verdict,
    /// Why, where the network's setting decides and no rule.
    by_network: Option<String>,
}

impl CheckedCall {
    fn of(call: &str, project: &Path) -> Result<Self, CliError> {
        if let Some(("host", name)) = call.split_once(':').map(|(right, name)| (right.trim(), name))
        {
            return Self::of_host(call, name.trim(), project);
        }
        let named = NamedCall::parse(call).map_err(|fault| {
            CliError::user(format!("{call:?} is not a call: {fault}"))
                .hint("write the tool and its argument: `read:.env`, `bash:cargo test`")
        })?;
        let config = settings::sound(project)?;
        let rules = SessionRules::new(&config.rule_set(project, Audience::Person))
            .map_err(|error| CliError::config(chain(&error)))?;
        let (command, probe, page) = match named.what {
            CallSubject::Command(command) => (Some(command), None, None),
            CallSubject::Page(url) => {
                // Every search requests the same page.
                let url = match (named.tool, url) {
                    ("web_search", _) => config.web.search_url.clone(),
                    (_, Some(url)) => url,
                    (tool, None) => {
                        let way =
                            format!("give a page, for example `{tool}:https://docs.rs/serde`");
                        return Err(CliError::user(way));
                    }
                };
                let page = tool_specs::web_url(&url, config.web.private).map_err(CliError::user)?;
                (None, None, tool_specs::web_address(&page))
            }
            CallSubject::Path(path) => {
                let paths =
                    path.map(|path| probe(&path, named.kind, project, &config)).transpose()?;
                let probe = ProbeReport { paths: paths.into_iter().collect(), diff: String::new() };
                (None, Some(probe), None)
            }
        };
        let programs = command.as_deref().map(programs);
        let id = CallId { session: SessionId(String::new()), number: 1 };
        let (tool, kind) = (named.tool.to_owned(), named.kind);
        let (origin, input) = (CallOrigin::model("checked"), "{}".to_owned());
        let widens = page
            .iter()
            .filter_map(|page| approval::right_to_read(page, config.network, &config.hosts))
            .collect();
        let behind_edits = match named.tool {
            "verify" => config.verify.commands.as_slice(),
            "format" => config.format.commands.as_slice(),
            _ => &[],
        };
        let mut same =
            behind_edits.iter().filter(|known| Some(&known.hook.command) == command.as_ref());
        let at_events = config.hooks.commands.iter().find(|known| {
            known.event.tool() == named.tool && Some(&known.command) == command.as_ref()
        });
        let configured = same.next().map(|known| &known.by);
        let configured = configured.or(at_events.map(|known| &known.by)).cloned();
        let case = JudgedCall {
            call: Call { id, origin, tool, input },
            kind,
            command,
            page: page.map(Box::new),
            probe,
            confinement: String::new(),
            extra_rights: widens,
            configured,
            tampered: Box::default(),
            asked: None,
            typed_by: None,
            reach: reach(&config, named.tool),
        };
        let verdict = rules.judge(&case);
        Ok(Self { call: call.to_owned(), programs, verdict, by_network: None })
    }

    /// The verdict on a host that a command requests with `hosts`, apart from the command.
    fn of_host(call: &str, name: &str, project: &Path) -> Result<Self, CliError> {
        let host: HostRule = name
            .parse()
            .map_err(|why| CliError::user(format!("{name:?} is not the name of a host: {why}")))?;
        let config = settings::sound(project)?;
        let set = config.rule_set(project, Audience::Person);
        let rules = SessionRules::new(&set).map_err(|error| CliError::config(chain(&error)))?;
        let id = CallId { session: SessionId(String::new()), number: 1 };
        let (origin, input) = (CallOrigin::model("checked"), "{}".to_owned());
        let verdict = rules.judge(&JudgedCall {
            call: Call { id, origin, tool: "bash".to_owned(), input },
            // A query needs no approval, so that the right alone decides.
            kind: ToolKind::Query,
            command: Some(":".to_owned()),
            page: None,
            probe: None,
            confinement: String::new(),
            extra_rights: vec![ExtraRight::Hosts(vec![host.clone()])],
            configured: None,
            tampered: Box::default(),
            asked: None,
            typed_by: None,
            reach: EffectReach::Unknown,
        });
        let is_listed = config.hosts.iter().any(|listed| listed.covers(&host));
        // A listed host needs no right, so only denials by name concern it.
        let is_denied = approval::denied_hosts(&set.rules).iter().any(|rule| rule.meets(&host));
        let by_network = match config.network {
            Network::On => Some(
                "net.mode is \"on\": commands reach every host, and no rule denies one".to_owned(),
            ),
            Network::Listed if is_listed && !is_denied => {
                Some("net.allow lists it, and no rule denies it".to_owned())
            }
            Network::Listed | Network::Off => None,
        };
        let managed = config.managed.check("net.mode", Network::Listed.name());
        let verdict = match (&by_network, managed) {
            (Some(_), _) => Verdict::Allow(Basis::Query),
            (None, Ok(())) => verdict,
            // No rule and no user grants a host.
            (None, Err(error)) => Verdict::Deny(Basis::Unjudgeable(chain(&error)), String::new()),
        };
        Ok(Self { call: call.to_owned(), programs: None, verdict, by_network })
    }

    fn words(&self) -> String {
        let (word, why) = (self.word(), self.why());
        let mut text = format!("{word}: {why}\n");
        match &self.programs {
            Some(Ok(programs)) => {
                text.push_str("it would run these programs, and each was judged:\n");
                text.extend(programs.iter().map(|program| format!("  {program}\n")));
            }
            Some(Err(why)) => text.push_str(&format!(
                "the programs that it would run are \
                                                      unknown: {why}\n"
            )),
            None => {}
        }
        if let Verdict::Ask(question) = &self.verdict {
            if !question.rules().is_empty() {
                text.push_str("rules that would allow it:\n");
                text.extend(question.rules().iter().map(|offer| format!("  {offer}\n")));
            }
            text.push_str("non-interactive runs (-p) refuse this call\n");
        }
        text
    }

    fn json(&self) -> Value {
        let (programs, unread) = match &self.programs {
            Some(Ok(programs)) => (Some(programs), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let offers = match &self.verdict {
            Verdict::Ask(question) => question.rules(),
            Verdict::Allow(_) | Verdict::Deny(..) => &[],
        };
        json!({
            "call": self.call,
            "verdict": self.word(),
            "why": self.why(),
            "rule": self.rule().map(as_json),
            "programs": programs,
            "unread": unread,
            "offers": offers,
        })
    }

    fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Allow(_) => "allow",
            Verdict::Deny(..) => "deny",
            Verdict::Ask(_) => "ask",
        }
    }

    fn rule(&self) -> Option<&Rule> {
        match &self.verdict {
            Verdict::Allow(Basis::Rule(rule)) | Verdict::Deny(Basis::Rule(rule), _) => Some(rule),
            Verdict::Allow(Basis::Rights(rules)) => rules.first(),
            Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_) => None,
        }
    }

    fn why(&self) -> String {
        if let Some(why) = &self.by_network {
            return why.clone();
        }
        match &self.verdict {
            Verdict::Ask(question) => question.reason.clone(),
            Verdict::Allow(basis) | Verdict::Deny(basis, _) => match basis {
                Basis::Rule(rule) => format!("the rule `{}` ({})", rule.text, at(rule)),
                Basis::Rights(rules) => {
                    let each = rules.iter().map(|rule| format!("`{}` ({})", rule.text, at(rule)));
                    format!("the rules {}", each.collect::<Vec<_>>().join(", "))
                }
                Basis::Mode(PermissionMode::Plan) => {
                    "the mode `plan` refuses every change".to_owned()
                }
                Basis::Sandboxed(bounded) => {
                    format!("no rule matches it, and the mode is `sandboxed`: {}", bounded.text())
                }
                Basis::Mode(mode) => {
                    format!("no rule matches it, and the mode is `{}`", mode.name())
                }
                Basis::Opaque(mode) => format!(
                    "the mode is `{}`; no rule can match a program in it whose name is known \
                     only at run time",
                    mode.name()
                ),
                Basis::Query => "it only reads, and no rule denies it".to_owned(),
                Basis::Unjudgeable(why) | Basis::NobodyToAsk(why) => why.clone(),
                Basis::Person(who)
                | Basis::NotedByPerson { by: who, .. }
                | Basis::Answered { by: who, .. } => {
                    format!("answered by {who}")
                }
                Basis::Typed(who) => format!("typed by the person at {who}"),
            },
        }
    }
}

/// How far a command would reach in a session with this configuration, where this machine makes its cage and undo
/// covers the project. A session finds out both.
fn reach(config: &Config, tool: &str) -> EffectReach {
    let tier = config.sandbox.highest_tier;
    let weaker = (tier != Tier::A).then_some(Effect::WeakerSandbox(tier));
    let reached = match config.network {
        Network::Off => None,
        Network::On => Some(Effect::Network),
        Network::Listed => Some(Effect::Hosts(config.hosts.clone())),
    };
    let added: Vec<_> = config.tools.add_dirs.iter().map(FilePath::from).collect();
    let outside = (!added.is_empty()).then_some(Effect::Outside(added));
    let git = tool_specs::changes_git_directory(tool).then_some(Effect::GitDirectory);
    let effects: Vec<_> = [weaker, reached, outside, git].into_iter().flatten().collect();
    if effects.is_empty() { EffectReach::Undoable } else { EffectReach::Beyond(effects) }
}

/// The state of a path, as the probe of the runner reports it.
fn probe(
    named: &str,
    kind: ToolKind,
    project: &Path,
    config: &Config,
) -> Result<ProbedPath, CliError> {
    let real = real_path(&project.join(named)).ok_or_else(|| {
        CliError::user(format!("{named} cannot be resolved: a directory in it does not exist"))
    })?;
    let added = config.tools.add_dirs.iter().filter_map(|dir| dir.canonicalize().ok());
    let in_scope =
        std::iter::once(project.to_owned()).chain(added).any(|dir| real.starts_with(dir));
    let digest = (kind == ToolKind::Mutation && real.is_file()).then(String::new);
    let real = real.to_str().ok_or_else(|| CliError::user(format!("{named} is not UTF-8")))?;
    Ok(ProbedPath { named: named.to_owned(), real: real.to_owned(), in_scope, digest })
}

/// Resolves links and `..` in the existing part of a path and appends the rest.
fn real_path(path: &Path) -> Option<PathBuf> {
    let (base, real) = path.ancestors().find_map(|base| Some((base, base.canonicalize().ok()?)))?;
    let new = path.strip_prefix(base).ok()?;
    let plain = new.components().all(|part| matches!(part, Component::Normal(_)));
    // Joining an empty path would append a `/` to a file.
    match new.as_os_str().is_empty() {
        true => Some(real),
        false => plain.then(|| real.join(new)),
    }
}

fn cells(rule: &Rule) -> [String; 3] {
    [effect(rule.effect).to_owned(), rule.text.clone(), at(rule)]
}

fn as_json(rule: &Rule) -> Value {
    json!({
        "effect": effect(rule.effect),
        "rule": rule.text,
        "file": rule.file,
        "line": (rule.line > 0).then_some(rule.line),
    })
}

fn effect(effect: RuleEffect) -> &'static str {
    match effect {
        RuleEffect::Deny => "deny",
        RuleEffect::Ask => "ask",
        RuleEffect::Allow => "allow",
    }
}

fn at(rule: &Rule) -> String {
    match rule.line {
        0 => rule.file.clone(),
        line => format!("{}:{line}", rule.file),
    }
}
