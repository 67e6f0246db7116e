//! The judgement of one call by the rules of its session.

use crate::command;
use crate::digest::digest;
use crate::error::{Fault, RuleError};
use crate::expand::{Doubt, Limit};
use crate::glimpse::{self, Glimpse, TooDeep};
use crate::grammar;
use crate::offers;
use crate::paths::Spot;
use crate::pattern::{self, Parsed};
use crate::runs_file::runs_file;
use crate::script::Script;
use crate::shelf::{Index, Shelf, ToolRules};
use crate::subject::{self, Reach, Subject};
use crate::wording::{self, Way};
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
pub struct Rules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) deny: Shelf,
    pub(crate) ask: Shelf,
    allow: Shelf,
    mode: Mode,
    audience: Audience,
    pub(crate) project: PathBuf,
}

/// Everything that is wrong with these rules, in their order; for `config check`.
#[must_use]
pub fn check(rules: &[Rule]) -> Vec<RuleError> {
    rules.iter().filter_map(|rule| pattern::parse(rule).err()).collect()
}

/// Whether a call of this tool must be looked at before it can be judged: changes that name paths
/// always, looks only where a rule could deny one.
#[must_use]
pub fn needs_probe(rules: &RuleSet, tool: &str, kind: ToolKind) -> bool {
    let known = subject::find(tool).filter(|known| known.name == tool);
    match (known.map(|known| known.subject), kind) {
        (Some(Subject::Command | Subject::Host | Subject::Page | Subject::Nothing), _)
        | (None, ToolKind::Query) => false,
        (Some(Subject::Path(_)) | None, ToolKind::Mutation) => true,
        (Some(Subject::Path(_)), ToolKind::Query) => rules
            .rules
            .iter()
            .filter(|rule| rule.effect == RuleEffect::Deny)
            // A rule that cannot be read may speak of this tool.
            .any(|rule| {
                pattern::tool_of(rule).is_none_or(|of| {
                    known
                        .into_iter()
                        .any(|known| known.ruled_by(RuleEffect::Deny).any(|by| by.tool == of.name))
                })
            }),
    }
}

/// What a call, or a right that it asks for, is matched by.
pub(crate) enum Matter {
    /// A command: what it runs where that is certain, and all commands that can be seen in it.
    Command { script: Script, glimpses: Vec<Glimpse>, doubt: Doubt },
    /// Paths, where they were looked at.
    Paths { places: Vec<Place> },
    /// A directory that it would have beside the project.
    Directory(Spot),
    /// A host that it would reach.
    Host(HostRule),
    /// A page of the web that it would read.
    Page(WebAddress),
    /// Nothing but the tool's name.
    Name,
}

/// One path of a call.
pub(crate) struct Place {
    /// Where it really is.
    pub real: Spot,
    /// As the call named it, links not followed: a denied name is denied wherever it leads.
    pub named: Option<Spot>,
    pub reach: Reach,
}

impl Rules {
    /// Reads the rules.
    ///
    /// # Errors
    /// The first rule that cannot be followed, with its place.
    pub fn new(set: &RuleSet) -> Result<Self, RuleError> {
        let mut by_effect: [Vec<(Index, Parsed)>; 3] = Default::default();
        for (index, rule) in set.rules.iter().enumerate() {
            let at = match rule.effect {
                RuleEffect::Deny => 0,
                RuleEffect::Ask => 1,
                RuleEffect::Allow => 2,
            };
            by_effect[at].push((index, pattern::parse(rule)?));
        }
        let shelf =
            |effect, rules| Shelf::new(effect, rules).map_err(|error| together(set, &error));
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
        let matter = match self.matter(case) {
            Ok(matter) => matter,
            Err(why) => {
                return Verdict::Deny(Basis::Unjudgeable(why.clone()), wording::unjudgeable(&why));
            }
        };
        if let Some((index, what)) = self.caught(&self.deny, &case.call.tool, &matter) {
            let rule = &self.rules[index];
            return Verdict::Deny(Basis::Rule(rule.clone()), wording::denied(rule, &what));
        }
        if let Some(limit) = self.limit_met(&case.call.tool, &matter) {
            let why = format!(
                "what it runs has more possibilities than can be looked at ({limit}), and rules deny \
                 some programs. Write the commands out"
            );
            return Verdict::Deny(Basis::Unjudgeable(why.clone()), wording::unjudgeable(&why));
        }
        // Before queries, rules and modes: what lets a call run gives it no more than the session has.
        let granted = match self.granted(case, &matter) {
            Ok(granted) => granted,
            Err(verdict) => return *verdict,
        };
        match self.knowing(case, &matter, self.within_rights(case, &matter)) {
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
    fn knowing(&self, case: &Case, matter: &Matter, verdict: Verdict) -> Verdict {
        let runs = matches!(matter, Matter::Command { .. }) || case.command.is_some();
        let held_back = runs && case.kind == ToolKind::Mutation && case.configured.is_none();
        if case.tampered.is_empty() || !held_back {
            return verdict;
        }
        let why = wording::tampered(&case.tampered);
        match verdict {
            Verdict::Allow(_) => self.ask(case, why, Vec::new(), Way::Knowing),
            Verdict::Ask(question) => {
                Verdict::Ask(Question { reason: format!("{}; {why}", question.reason), ..question })
            }
            denied @ Verdict::Deny(..) => denied,
        }
    }

    /// The limit of the reading that hides from denials what a command runs.
    fn limit_met(&self, tool: &str, matter: &Matter) -> Option<Limit> {
        let Matter::Command { doubt, glimpses, .. } = matter else { return None };
        let mut denials = self.deny.all_of(tool).filter(|(rules, _)| rules.asks_for_words());
        match doubt {
            Doubt::TooMany(limit) => denials.next().map(|_| *limit),
            Doubt::None | Doubt::Opaque => denials.find_map(|(rules, _)| rules.hidden_by(glimpses)),
        }
    }

    /// The verdict on a call whose rights are settled.
    fn within_rights(&self, case: &Case, matter: &Matter) -> Verdict {
        // A look is never asked about, but one that leaves the machine can be.
        if let Matter::Page(_) = matter
            && let Some((index, _)) = self.caught(&self.ask, &case.call.tool, matter)
        {
            let reason = format!("the rule {} asks about it", wording::named(&self.rules[index]));
            return self.ask(case, reason, Vec::new(), Way::Person);
        }
        if case.kind == ToolKind::Query {
            return Verdict::Allow(Basis::Query);
        }
        if self.mode == Mode::Plan {
            // Before rules that allow: they were written for sessions in which things are changed.
            return self.only_looking();
        }
        if let Some((index, _)) = self.caught(&self.ask, &case.call.tool, matter) {
            let rule = &self.rules[index];
            let reason = format!("the rule {} asks about it", wording::named(rule));
            return match self.ask(case, reason, Vec::new(), Way::Person) {
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
    fn matter(&self, case: &Case) -> Result<Matter, String> {
        let known = subject::find(&case.call.tool).filter(|known| known.name == case.call.tool);
        match known.map(|known| known.subject) {
            None | Some(Subject::Host | Subject::Nothing) => Ok(Matter::Name),
            Some(Subject::Page) => {
                let page =
                    case.page.as_deref().cloned().ok_or("the call names no page of the web")?;
                Ok(Matter::Page(page))
            }
            Some(Subject::Command) => {
                let command = case
                    .command
                    .as_deref()
                    .ok_or("the call has no command that could be judged")?;
                read_command(command)
            }
            Some(Subject::Path(reach)) => match &case.probe {
                Some(probe) => self.read_paths(probe, reach),
                None if self
                    .deny
                    .all_of(&case.call.tool)
                    .any(|(rules, _)| rules.asks_for_paths())
                    || case.kind == ToolKind::Mutation =>
                {
                    Err("what lies at its paths was not looked at, so no rule could be applied"
                        .into())
                }
                None => Ok(Matter::Name),
            },
        }
    }

    fn read_paths(&self, probe: &Probe, reach: Reach) -> Result<Matter, String> {
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
            let real = Spot::new(&path.real, &self.project)
                .ok_or_else(|| format!("`{}` is not a real path", visible(&path.real)))?;
            // A regular file has nothing below it.
            let file = |digest: &String| !digest.starts_with(ProbedPath::TREE);
            let reach = if path.digest.as_ref().is_some_and(file) { Reach::Named } else { reach };
            let named = Spot::named(&path.named, &self.project);
            places.push(Place { real, named, reach });
        }
        Ok(Matter::Paths { places })
    }

    /// The first rule on the shelf that concerns any part of the call, and that part.
    pub(crate) fn caught(
        &self,
        shelf: &Shelf,
        tool: &str,
        matter: &Matter,
    ) -> Option<(Index, String)> {
        shelf
            .all_of(tool)
            .filter_map(|(rules, far)| self.caught_by(rules, far, matter))
            .min_by_key(|(index, _)| *index)
    }

    fn caught_by(&self, rules: &ToolRules, far: Reach, matter: &Matter) -> Option<(Index, String)> {
        match matter {
            Matter::Command { glimpses, .. } => rules.command_caught(glimpses),
            Matter::Paths { places } => places
                .iter()
                .flat_map(|place| {
                    let spots = std::iter::once(&place.real).chain(&place.named);
                    spots.map(|spot| (spot, place.reach))
                })
                .filter_map(|(spot, reach)| {
                    let reach = if far == Reach::Named { far } else { reach };
                    let index = rules.path_caught(spot, reach, &self.project)?;
                    Some((index, format!("/{}", spot.absolute)))
                })
                .min_by_key(|(index, _)| *index),
            // What it holds of the project would be no wider.
            Matter::Directory(spot) => {
                let index = rules.path_caught(spot, Reach::Below, Path::new(""))?;
                Some((index, format!("/{}", spot.absolute)))
            }
            Matter::Host(host) => rules.host_caught(host).map(|index| (index, host.to_string())),
            Matter::Page(page) => rules.page_caught(page).map(|index| (index, page.to_string())),
            Matter::Name => rules.anything().map(|index| (index, String::new())),
        }
    }

    /// The rule that allows the whole call: every command in it, or every path it names.
    pub(crate) fn allowed(&self, tool: &str, matter: &Matter) -> Option<Index> {
        self.allow.all_of(tool).find_map(|(rules, _)| allowed_by(rules, matter))
    }

    fn by_mode(&self, case: &Case, matter: &Matter) -> Verdict {
        let in_scope =
            || case.probe.iter().flat_map(|probe| &probe.paths).all(|path| path.in_scope);
        match (self.mode, matter) {
            (Mode::Auto, Matter::Command { doubt: Doubt::Opaque | Doubt::TooMany(_), .. }) => {
                Verdict::Allow(Basis::Opaque(self.mode))
            }
            (Mode::Auto, _) => Verdict::Allow(Basis::Mode(self.mode)),
            // A directory that goes with all that is in it is no edit.
            (Mode::AcceptEdits, Matter::Paths { places })
                if in_scope() && places.iter().all(|place| place.reach == Reach::Named) =>
            {
                Verdict::Allow(Basis::Mode(self.mode))
            }
            (Mode::Ask | Mode::AcceptEdits | Mode::Plan | Mode::DontAsk, _) => {
                self.ask(case, self.no_rule(case, matter), self.offers(case, matter), Way::Rule)
            }
        }
    }

    /// Why a call is asked about of which no rule speaks.
    fn no_rule(&self, case: &Case, matter: &Matter) -> String {
        let file = match matter {
            Matter::Command { script: Ok(script), .. } => {
                let missing = command::not_allowed(self.allow.of(&case.call.tool), script);
                missing.and_then(|simple| runs_file(simple, &self.project))
            }
            Matter::Command { script: Err(_), .. }
            | Matter::Paths { .. }
            | Matter::Directory(_)
            | Matter::Host(_)
            | Matter::Page(_)
            | Matter::Name => None,
        };
        let about = file.map(|file| wording::next_text(&file)).unwrap_or_default();
        format!("{}{about}", self.no_rule_for(case, matter))
    }

    fn no_rule_for(&self, case: &Case, matter: &Matter) -> String {
        match matter {
            Matter::Command { script: Err(why), .. } => wording::not_read(why),
            Matter::Command { script: Ok(script), .. } if script.len() > 1 => {
                let rules = self.allow.of(&case.call.tool);
                match command::not_allowed(rules, script) {
                    Some(simple) => wording::no_rule_for(simple),
                    None => wording::no_rule(case),
                }
            }
            Matter::Command { .. }
            | Matter::Paths { .. }
            | Matter::Directory(_)
            | Matter::Host(_)
            | Matter::Page(_)
            | Matter::Name => wording::no_rule(case),
        }
    }

    /// Rules that would allow the whole call, for an answer that holds longer.
    fn offers(&self, case: &Case, matter: &Matter) -> Vec<String> {
        let missing = match matter {
            Matter::Command { script, .. } => {
                let Ok(script) = script else { return Vec::new() };
                let rules = self.allow.of(&case.call.tool);
                let missing = command::not_allowed(rules, script);
                let missing = missing.filter(|simple| runs_file(simple, &self.project).is_none());
                missing.map_or_else(Vec::new, offers::of_command)
            }
            Matter::Paths { places } => match &places[..] {
                [place] => offers::of_path(&case.call.tool, &place.real),
                _ => Vec::new(),
            },
            Matter::Directory(_) | Matter::Host(_) | Matter::Page(_) | Matter::Name => Vec::new(),
        };
        missing.into_iter().filter(|rule| self.would_allow(rule, case, matter)).collect()
    }

    /// Whether the call would be allowed with this rule beside those that are there.
    fn would_allow(&self, text: &str, case: &Case, matter: &Matter) -> bool {
        let Ok(parsed) = pattern::parse(&learned(text)) else { return false };
        let Ok(shelf) = Shelf::new(RuleEffect::Allow, vec![(0, parsed)]) else { return false };
        let Some((more, _)) = shelf.all_of(&case.call.tool).next() else { return false };
        match matter {
            Matter::Command { script: Ok(script), .. } => {
                command::covered(self.allow.of(&case.call.tool), more, script)
            }
            Matter::Paths { places } => {
                places.iter().all(|place| more.path_is(&place.real).is_some())
            }
            Matter::Command { script: Err(_), .. }
            | Matter::Directory(_)
            | Matter::Host(_)
            | Matter::Page(_)
            | Matter::Name => false,
        }
    }

    /// A question, as far as the mode lets one be asked and anybody is there.
    pub(crate) fn ask(
        &self,
        case: &Case,
        reason: String,
        offers: Vec<String>,
        way: Way,
    ) -> Verdict {
        let reason = format!("{reason}{}", wording::outside(case));
        let told = |refused: &str| {
            let way = wording::way(way, case, &self.project);
            format!("Not run: {reason}, and {refused}. {way}")
        };
        match (self.mode, self.audience) {
            (Mode::Plan, _) => self.only_looking(),
            (Mode::DontAsk, _) => {
                Verdict::Deny(Basis::Mode(self.mode), told(wording::MODE_REFUSES))
            }
            (Mode::Ask | Mode::AcceptEdits | Mode::Auto, Audience::Nobody) => {
                let text = format!("{} {}", told(wording::NOBODY), wording::GO_ON);
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

    fn only_looking(&self) -> Verdict {
        Verdict::Deny(Basis::Mode(self.mode), wording::only_looking(self.mode.name()))
    }
}

/// A rule that a person gave as an answer.
#[must_use]
pub fn learned(text: &str) -> Rule {
    Rule { effect: RuleEffect::Allow, text: text.to_owned(), file: "this session".into(), line: 0 }
}

/// The rule that allows the whole call, among these.
fn allowed_by(rules: &ToolRules, matter: &Matter) -> Option<Index> {
    match matter {
        Matter::Command { script, .. } => command::allowed(rules, script.as_ref().ok()?),
        Matter::Paths { places } => {
            let mut first = None;
            for place in places {
                first = first.or(Some(rules.path_is(&place.real)?));
            }
            first
        }
        Matter::Directory(spot) => rules.path_is(spot),
        Matter::Host(host) => rules.host_is(host),
        Matter::Page(page) => rules.page_is(page),
        Matter::Name => rules.anything(),
    }
}

fn read_command(command: &str) -> Result<Matter, String> {
    if command.len() > COMMAND_CAP {
        return Err(format!(
            "the command is longer than {COMMAND_CAP} bytes, with which no shell can be started. Write a script file and run that"
        ));
    }
    if command.contains('\0') {
        return Err("the command has a NUL byte in it, which no command can have".into());
    }
    let script = grammar::read(command);
    let (glimpses, doubt) = glimpse::glimpses(command, &script).map_err(|TooDeep| {
        "the command holds commands within commands, deeper than can be judged".to_owned()
    })?;
    Ok(Matter::Command { script, glimpses, doubt })
}

fn preview(case: &Case) -> String {
    let diff = case.probe.as_ref().map(|probe| probe.diff.as_str()).filter(|diff| !diff.is_empty());
    visible(diff.or(case.command.as_deref()).unwrap_or_default())
}

/// Patterns that are fine one by one and too much together: no rule of them is more at fault.
fn together(set: &RuleSet, error: &globset::Error) -> RuleError {
    let last = set.rules.last();
    RuleError {
        file: last.map_or_else(String::new, |rule| rule.file.clone()),
        line: last.map_or(0, |rule| rule.line),
        text: last.map_or_else(String::new, |rule| rule.text.clone()),
        at: 1,
        fault: Fault::Glob(error.to_string()),
    }
}
