//! The judgement of one call by the rules of its session.

use crate::allow_command;
use crate::digest::digest;
use crate::error::{RuleError, RuleFault};
use crate::expand::{Limit, Opacity};
use crate::grammar;
use crate::lenient::{self, CommandCandidate, TooDeep};
use crate::messages::{self, Remedy};
use crate::path_pattern::RulePath;
use crate::rule_index::{RuleIndex, RuleNumber, ToolRules};
use crate::rule_pattern::{self, ParsedRule};
use crate::rule_target::{self, Depth, MatchedBy};
use crate::runs_file::runs_file;
use crate::script::Script;
use crate::suggestions;
use protocol::call::{Probe, ProbedPath};
use protocol::hidden::visible;
use protocol::hosts::HostRule;
use protocol::judgement::{
    Audience, Basis, Case, Mode, Question, Rule, RuleEffect, RuleSet, ToolKind, Verdict,
};
use protocol::web::WebAddress;
use std::path::{Path, PathBuf};

/// Longest command in bytes: the kernel takes no longer argument, so no shell could be started with
/// it.
pub const COMMAND_CAP: usize = 128 * 1024 - 1;

/// The rules of a session, ready to judge.
#[derive(Debug)]
pub struct SessionRules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) deny: RuleIndex,
    pub(crate) ask: RuleIndex,
    allow: RuleIndex,
    mode: Mode,
    audience: Audience,
    pub(crate) project: PathBuf,
}

/// Everything that is wrong with these rules, in their order; for `config check`.
#[must_use]
pub fn check(rules: &[Rule]) -> Vec<RuleError> {
    rules.iter().filter_map(|rule| rule_pattern::parse(rule).err()).collect()
}

/// Whether a call of this tool must be looked at before it can be judged: changes that name paths
/// always, looks only where a rule could deny one.
#[must_use]
pub fn needs_probe(rules: &RuleSet, tool: &str, kind: ToolKind) -> bool {
    let known = rule_target::find(tool).filter(|known| known.name == tool);
    match (known.map(|known| known.matched_by), kind) {
        (Some(MatchedBy::Command | MatchedBy::Host | MatchedBy::Page | MatchedBy::Nothing), _)
        | (None, ToolKind::Query) => false,
        (Some(MatchedBy::Path(_)) | None, ToolKind::Mutation) => true,
        (Some(MatchedBy::Path(_)), ToolKind::Query) => rules
            .rules
            .iter()
            .filter(|rule| rule.effect == RuleEffect::Deny)
            // A rule that cannot be read may speak of this tool.
            .any(|rule| {
                rule_pattern::tool_of(rule).is_none_or(|of| {
                    known.into_iter().any(|known| {
                        known.applied_rules(RuleEffect::Deny).any(|by| by.tool == of.name)
                    })
                })
            }),
    }
}

/// What a call, or a right that it asks for, is matched by.
pub(crate) enum MatchTarget {
    /// A command: what it runs where that is certain, and all commands that can be seen in it.
    Command { script: Script, glimpses: Vec<CommandCandidate>, doubt: Opacity },
    /// Paths, where they were looked at.
    Paths { places: Vec<CallPath> },
    /// A directory that it would have beside the project.
    Directory(RulePath),
    /// A host that it would reach.
    Host(HostRule),
    /// A page of the web that it would read.
    Page(WebAddress),
    /// Nothing but the tool's name.
    Name,
}

/// One path of a call.
pub(crate) struct CallPath {
    /// Where it really is.
    pub real: RulePath,
    /// As the call named it, links not followed: a denied name is denied wherever it leads.
    pub named: Option<RulePath>,
    pub reach: Depth,
}

impl SessionRules {
    /// Reads the rules.
    ///
    /// # Errors
    /// The first rule that cannot be followed, with its place.
    pub fn new(set: &RuleSet) -> Result<Self, RuleError> {
        let mut by_effect: [Vec<(RuleNumber, ParsedRule)>; 3] = Default::default();
        for (index, rule) in set.rules.iter().enumerate() {
            let at = match rule.effect {
                RuleEffect::Deny => 0,
                RuleEffect::Ask => 1,
                RuleEffect::Allow => 2,
            };
            by_effect[at].push((index, rule_pattern::parse(rule)?));
        }
        let shelf = |effect, rules| {
            RuleIndex::new(effect, rules).map_err(|error| combined_glob_error(set, &error))
        };
        let [deny, ask, allow] = by_effect;
        Ok(Self {
            deny: shelf(RuleEffect::Deny, deny)?,
            ask: shelf(RuleEffect::Ask, ask)?,
            allow: shelf(RuleEffect::Allow, allow)?,
            rules: set.rules.clone(),
            mode: set.mode,
            audience: set.audience,
            project: PathBuf::from(&set.project),
        })
    }

    /// The verdict on a call.
    #[must_use]
    pub fn judge(&self, case: &Case) -> Verdict {
        let matter = match self.match_target(case) {
            Ok(matter) => matter,
            Err(why) => {
                return Verdict::Deny(Basis::Unjudgeable(why.clone()), messages::unjudgeable(&why));
            }
        };
        if let Some((index, what)) = self.first_match(&self.deny, &case.call.tool, &matter) {
            let rule = &self.rules[index];
            return Verdict::Deny(Basis::Rule(rule.clone()), messages::denied(rule, &what));
        }
        if let Some(limit) = self.limit_reached(&case.call.tool, &matter) {
            let why = format!(
                "what it runs has more possibilities than can be looked at ({limit}), and rules deny \
                 some programs. Write the commands out"
            );
            return Verdict::Deny(Basis::Unjudgeable(why.clone()), messages::unjudgeable(&why));
        }
        // Before queries, rules and modes: what lets a call run gives it no more than the session has.
        let granted = match self.granted(case, &matter) {
            Ok(granted) => granted,
            Err(verdict) => return *verdict,
        };
        match self.verdict_if_tampered(case, &matter, self.within_rights(case, &matter)) {
            verdict if granted.is_empty() => verdict,
            // What gave the rights is what the record has to name.
            Verdict::Allow(_) => Verdict::Allow(Basis::Rights(granted)),
            // The answer is for this call, since its rights are.
            Verdict::Ask(question) => Verdict::Ask(Question { offers: Vec::new(), ..question }),
            denied @ Verdict::Deny(..) => denied,
        }
    }

    /// The verdict on a command where protected names are not as they were: no rule and no mode lets it
    /// run, and whoever is asked is told of them. What a person configured behind edits changes nothing
    /// and runs on.
    fn verdict_if_tampered(&self, case: &Case, matter: &MatchTarget, verdict: Verdict) -> Verdict {
        let runs = matches!(matter, MatchTarget::Command { .. }) || case.command.is_some();
        let held_back = runs && case.kind == ToolKind::Mutation && case.configured.is_none();
        if case.tampered.is_empty() || !held_back {
            return verdict;
        }
        let why = messages::tampered(&case.tampered);
        match verdict {
            Verdict::Allow(_) => self.ask(case, why, Vec::new(), Remedy::Tampered),
            Verdict::Ask(question) => {
                Verdict::Ask(Question { reason: format!("{}; {why}", question.reason), ..question })
            }
            denied @ Verdict::Deny(..) => denied,
        }
    }

    /// The limit of the reading that hides from denials what a command runs.
    fn limit_reached(&self, tool: &str, matter: &MatchTarget) -> Option<Limit> {
        let MatchTarget::Command { doubt, glimpses, .. } = matter else { return None };
        let mut denials =
            self.deny.applied_to(tool).filter(|(rules, _)| rules.has_command_patterns());
        match doubt {
            Opacity::TooMany(limit) => denials.next().map(|_| *limit),
            Opacity::None | Opacity::Opaque => {
                denials.find_map(|(rules, _)| rules.limit_hiding(glimpses))
            }
        }
    }

    /// The verdict on a call whose rights are settled.
    fn within_rights(&self, case: &Case, matter: &MatchTarget) -> Verdict {
        // A look is never asked about, but one that leaves the machine can be.
        if let MatchTarget::Page(_) = matter
            && let Some((index, _)) = self.first_match(&self.ask, &case.call.tool, matter)
        {
            let reason =
                format!("the rule {} asks about it", messages::rule_with_place(&self.rules[index]));
            return self.ask(case, reason, Vec::new(), Remedy::Person);
        }
        if case.kind == ToolKind::Query {
            return Verdict::Allow(Basis::Query);
        }
        if self.mode == Mode::Plan {
            // Before rules that allow: they were written for sessions in which things are changed.
            return self.denied_by_plan_mode();
        }
        if let Some((index, _)) = self.first_match(&self.ask, &case.call.tool, matter) {
            let rule = &self.rules[index];
            let reason = format!("the rule {} asks about it", messages::rule_with_place(rule));
            return match self.ask(case, reason, Vec::new(), Remedy::Person) {
                // No work of the model's waits for it, so no run comes to nothing without it.
                Verdict::Deny(Basis::NobodyToAsk(_), text) if case.configured.is_some() => {
                    Verdict::Deny(Basis::Rule(rule.clone()), text)
                }
                verdict @ (Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_)) => verdict,
            };
        }
        if let Some(configured) = &case.configured {
            return Verdict::Allow(Basis::Rule(configured.clone()));
        }
        if let Some(index) = self.allowed(&case.call.tool, matter) {
            return Verdict::Allow(Basis::Rule(self.rules[index].clone()));
        }
        self.by_mode(case, matter)
    }

    /// What the call is matched by, or why it cannot be judged.
    fn match_target(&self, case: &Case) -> Result<MatchTarget, String> {
        let known = rule_target::find(&case.call.tool).filter(|known| known.name == case.call.tool);
        match known.map(|known| known.matched_by) {
            None | Some(MatchedBy::Host | MatchedBy::Nothing) => Ok(MatchTarget::Name),
            Some(MatchedBy::Page) => {
                let page =
                    case.page.as_deref().cloned().ok_or("the call names no page of the web")?;
                Ok(MatchTarget::Page(page))
            }
            Some(MatchedBy::Command) => {
                let command = case
                    .command
                    .as_deref()
                    .ok_or("the call has no command that could be judged")?;
                read_command(command)
            }
            Some(MatchedBy::Path(reach)) => match &case.probe {
                Some(probe) => self.read_paths(probe, reach),
                None if self
                    .deny
                    .applied_to(&case.call.tool)
                    .any(|(rules, _)| rules.has_path_patterns())
                    || case.kind == ToolKind::Mutation =>
                {
                    Err("what lies at its paths was not looked at, so no rule could be applied"
                        .into())
                }
                None => Ok(MatchTarget::Name),
            },
        }
    }

    fn read_paths(&self, probe: &Probe, reach: Depth) -> Result<MatchTarget, String> {
        // A call that names no path works on the project.
        let whole = ProbedPath {
            named: ".".into(),
            real: self.project.to_string_lossy().into_owned(),
            in_scope: true,
            digest: None,
        };
        let paths =
            if probe.paths.is_empty() { std::slice::from_ref(&whole) } else { &probe.paths[..] };
        let mut places = Vec::new();
        for path in paths {
            let real = RulePath::new(&path.real, &self.project)
                .ok_or_else(|| format!("`{}` is not a real path", visible(&path.real)))?;
            // A regular file has nothing below it.
            let file = |digest: &String| !digest.starts_with(ProbedPath::TREE);
            let reach = if path.digest.as_ref().is_some_and(file) { Depth::Named } else { reach };
            let named = RulePath::lexical(&path.named, &self.project);
            places.push(CallPath { real, named, reach });
        }
        Ok(MatchTarget::Paths { places })
    }

    /// The first rule on the shelf that concerns any part of the call, and that part.
    pub(crate) fn first_match(
        &self,
        shelf: &RuleIndex,
        tool: &str,
        matter: &MatchTarget,
    ) -> Option<(RuleNumber, String)> {
        shelf
            .applied_to(tool)
            .filter_map(|(rules, far)| self.first_match_by(rules, far, matter))
            .min_by_key(|(index, _)| *index)
    }

    fn first_match_by(
        &self,
        rules: &ToolRules,
        far: Depth,
        matter: &MatchTarget,
    ) -> Option<(RuleNumber, String)> {
        match matter {
            MatchTarget::Command { glimpses, .. } => rules.catching_command(glimpses),
            MatchTarget::Paths { places } => places
                .iter()
                .flat_map(|place| {
                    let spots = std::iter::once(&place.real).chain(&place.named);
                    spots.map(|spot| (spot, place.reach))
                })
                .filter_map(|(spot, reach)| {
                    let reach = if far == Depth::Named { far } else { reach };
                    let index = rules.catching_path(spot, reach, &self.project)?;
                    Some((index, format!("/{}", spot.absolute)))
                })
                .min_by_key(|(index, _)| *index),
            // What it holds of the project would be no wider.
            MatchTarget::Directory(spot) => {
                let index = rules.catching_path(spot, Depth::Below, Path::new(""))?;
                Some((index, format!("/{}", spot.absolute)))
            }
            MatchTarget::Host(host) => {
                rules.catching_host(host).map(|index| (index, host.to_string()))
            }
            MatchTarget::Page(page) => {
                rules.catching_page(page).map(|index| (index, page.to_string()))
            }
            MatchTarget::Name => rules.anything().map(|index| (index, String::new())),
        }
    }

    /// The rule that allows the whole call: every command in it, or every path it names.
    pub(crate) fn allowed(&self, tool: &str, matter: &MatchTarget) -> Option<RuleNumber> {
        self.allow.applied_to(tool).find_map(|(rules, _)| allowed_by(rules, matter))
    }

    fn by_mode(&self, case: &Case, matter: &MatchTarget) -> Verdict {
        let in_scope =
            || case.probe.iter().flat_map(|probe| &probe.paths).all(|path| path.in_scope);
        match (self.mode, matter) {
            (
                Mode::Auto,
                MatchTarget::Command { doubt: Opacity::Opaque | Opacity::TooMany(_), .. },
            ) => Verdict::Allow(Basis::Opaque(self.mode)),
            (Mode::Auto, _) => Verdict::Allow(Basis::Mode(self.mode)),
            // A directory that goes with all that is in it is no edit.
            (Mode::AcceptEdits, MatchTarget::Paths { places })
                if in_scope() && places.iter().all(|place| place.reach == Depth::Named) =>
            {
                Verdict::Allow(Basis::Mode(self.mode))
            }
            (Mode::Ask | Mode::AcceptEdits | Mode::Plan | Mode::DontAsk, _) => self.ask(
                case,
                self.no_rule(case, matter),
                self.suggestions(case, matter),
                Remedy::Rule,
            ),
        }
    }

    /// Why a call is asked about of which no rule speaks.
    fn no_rule(&self, case: &Case, matter: &MatchTarget) -> String {
        let file = match matter {
            MatchTarget::Command { script: Ok(script), .. } => {
                let missing =
                    allow_command::not_allowed(self.allow.for_tool(&case.call.tool), script);
                missing.and_then(|simple| runs_file(simple, &self.project))
            }
            MatchTarget::Command { script: Err(_), .. }
            | MatchTarget::Paths { .. }
            | MatchTarget::Directory(_)
            | MatchTarget::Host(_)
            | MatchTarget::Page(_)
            | MatchTarget::Name => None,
        };
        let about = file.map(|file| messages::runs_writable_file(&file)).unwrap_or_default();
        format!("{}{about}", self.no_rule_for(case, matter))
    }

    fn no_rule_for(&self, case: &Case, matter: &MatchTarget) -> String {
        match matter {
            MatchTarget::Command { script: Err(why), .. } => messages::unreadable_command(why),
            MatchTarget::Command { script: Ok(script), .. } if script.len() > 1 => {
                let rules = self.allow.for_tool(&case.call.tool);
                match allow_command::not_allowed(rules, script) {
                    Some(simple) => messages::no_rule_for(simple),
                    None => messages::no_rule(case),
                }
            }
            MatchTarget::Command { .. }
            | MatchTarget::Paths { .. }
            | MatchTarget::Directory(_)
            | MatchTarget::Host(_)
            | MatchTarget::Page(_)
            | MatchTarget::Name => messages::no_rule(case),
        }
    }

    /// Rules that would allow the whole call, for an answer that holds longer.
    fn suggestions(&self, case: &Case, matter: &MatchTarget) -> Vec<String> {
        let missing = match matter {
            MatchTarget::Command { script, .. } => {
                let Ok(script) = script else { return Vec::new() };
                let rules = self.allow.for_tool(&case.call.tool);
                let missing = allow_command::not_allowed(rules, script);
                let missing = missing.filter(|simple| runs_file(simple, &self.project).is_none());
                missing.map_or_else(Vec::new, suggestions::of_command)
            }
            MatchTarget::Paths { places } => match &places[..] {
                [place] => suggestions::of_path(&case.call.tool, &place.real),
                _ => Vec::new(),
            },
            MatchTarget::Directory(_)
            | MatchTarget::Host(_)
            | MatchTarget::Page(_)
            | MatchTarget::Name => Vec::new(),
        };
        missing.into_iter().filter(|rule| self.would_allow(rule, case, matter)).collect()
    }

    /// Whether the call would be allowed with this rule beside those that are there.
    fn would_allow(&self, text: &str, case: &Case, matter: &MatchTarget) -> bool {
        let Ok(parsed) = rule_pattern::parse(&remembered_rule(text)) else { return false };
        let Ok(shelf) = RuleIndex::new(RuleEffect::Allow, vec![(0, parsed)]) else { return false };
        let Some((more, _)) = shelf.applied_to(&case.call.tool).next() else { return false };
        match matter {
            MatchTarget::Command { script: Ok(script), .. } => {
                allow_command::covered(self.allow.for_tool(&case.call.tool), more, script)
            }
            MatchTarget::Paths { places } => {
                places.iter().all(|place| more.covering_path(&place.real).is_some())
            }
            MatchTarget::Command { script: Err(_), .. }
            | MatchTarget::Directory(_)
            | MatchTarget::Host(_)
            | MatchTarget::Page(_)
            | MatchTarget::Name => false,
        }
    }

    /// A question, as far as the mode lets one be asked and anybody is there.
    pub(crate) fn ask(
        &self,
        case: &Case,
        reason: String,
        offers: Vec<String>,
        way: Remedy,
    ) -> Verdict {
        let reason = format!("{reason}{}", messages::outside_project(case));
        let told = |refused: &str| {
            let way = messages::remedy(way, case, &self.project);
            format!("Not run: {reason}, and {refused}. {way}")
        };
        match (self.mode, self.audience) {
            (Mode::Plan, _) => self.denied_by_plan_mode(),
            (Mode::DontAsk, _) => {
                Verdict::Deny(Basis::Mode(self.mode), told(messages::MODE_REFUSES))
            }
            (Mode::Ask | Mode::AcceptEdits | Mode::Auto, Audience::Nobody) => {
                let text =
                    format!("{} {}", told(messages::NON_INTERACTIVE), messages::CONTINUE_WITHOUT);
                Verdict::Deny(Basis::NobodyToAsk(reason), text)
            }
            (Mode::Ask | Mode::AcceptEdits | Mode::Auto, Audience::Person) => {
                Verdict::Ask(Question {
                    call: case.call.id.clone(),
                    tool: case.call.tool.clone(),
                    input: case.call.input.clone(),
                    preview: preview(case),
                    confinement: case.confinement.clone(),
                    reason,
                    widens: case.widens.clone(),
                    offers,
                    deadline: 0,
                    digest: digest(case),
                })
            }
        }
    }

    fn denied_by_plan_mode(&self) -> Verdict {
        Verdict::Deny(Basis::Mode(self.mode), messages::read_only_mode(self.mode.name()))
    }
}

/// A rule that a person gave as an answer.
#[must_use]
pub fn remembered_rule(text: &str) -> Rule {
    Rule { effect: RuleEffect::Allow, text: text.to_owned(), file: "this session".into(), line: 0 }
}

/// The rule that allows the whole call, among these.
fn allowed_by(rules: &ToolRules, matter: &MatchTarget) -> Option<RuleNumber> {
    match matter {
        MatchTarget::Command { script, .. } => allow_command::allowed(rules, script.as_ref().ok()?),
        MatchTarget::Paths { places } => {
            let mut first = None;
            for place in places {
                first = first.or(Some(rules.covering_path(&place.real)?));
            }
            first
        }
        MatchTarget::Directory(spot) => rules.covering_path(spot),
        MatchTarget::Host(host) => rules.covering_host(host),
        MatchTarget::Page(page) => rules.covering_page(page),
        MatchTarget::Name => rules.anything(),
    }
}

fn read_command(command: &str) -> Result<MatchTarget, String> {
    if command.len() > COMMAND_CAP {
        return Err(format!(
            "the command is longer than {COMMAND_CAP} bytes, with which no shell can be started. Write a script file and run that"
        ));
    }
    if command.contains('\0') {
        return Err("the command has a NUL byte in it, which no command can have".into());
    }
    let script = grammar::read(command);
    let (glimpses, doubt) = lenient::find_commands(command, &script).map_err(|TooDeep| {
        "the command holds commands within commands, deeper than can be judged".to_owned()
    })?;
    Ok(MatchTarget::Command { script, glimpses, doubt })
}

fn preview(case: &Case) -> String {
    let diff = case.probe.as_ref().map(|probe| probe.diff.as_str()).filter(|diff| !diff.is_empty());
    visible(diff.or(case.command.as_deref()).unwrap_or_default())
}

/// Patterns that are fine one by one and too much together: no rule of them is more at fault.
fn combined_glob_error(set: &RuleSet, error: &globset::Error) -> RuleError {
    let last = set.rules.last();
    RuleError {
        file: last.map_or_else(String::new, |rule| rule.file.clone()),
        line: last.map_or(0, |rule| rule.line),
        text: last.map_or_else(String::new, |rule| rule.text.clone()),
        at: 1,
        fault: RuleFault::Glob(error.to_string()),
    }
}
