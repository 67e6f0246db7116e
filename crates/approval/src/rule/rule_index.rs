//! The rules of one effect, indexed by tool, so that a search among a thousand is fast.

use crate::program_name::base_name;
use crate::rule::command_pattern::{CommandPattern, Fit, ProgramName};
use crate::rule::page_pattern::PagePattern;
use crate::rule::path_pattern::{PathPattern, RulePath};
use crate::rule::rule_pattern::{CallPattern, ParsedRule};
use crate::rule::rule_target::{self, RuleDepth, TargetRules};
use crate::rule::server_tool_pattern::ServerToolPattern;
use crate::shell::runs::{AllRuns, Begin, Run};
use crate::shell::script::{ArgWord, HOLE};
use globset::{Glob, GlobSet, GlobSetBuilder};
use protocol::hosts::HostRule;
use protocol::judgement::RuleEffect;
use protocol::web::WebAddress;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use tool_specs::MemoryScope;

/// A rule's place among all rules.
pub(crate) type RuleNumber = usize;

/// The rules of one effect.
#[derive(Debug)]
pub(crate) struct RuleIndex {
    effect: RuleEffect,
    tools: BTreeMap<&'static str, ToolRules>,
}

/// The rules of one effect for one tool.
#[derive(Debug, Default)]
pub(crate) struct ToolRules {
    rule_for_all_calls: Option<RuleNumber>,
    words: CommandRules,
    paths: PathRules,
    hosts: Vec<(HostRule, RuleNumber)>,
    pages: Vec<(PagePattern, RuleNumber)>,
    server_tools: Vec<(ServerToolPattern, RuleNumber)>,
    memory_scopes: Vec<(MemoryScope, RuleNumber)>,
}

#[derive(Debug, Default)]
struct CommandRules {
    all: Vec<(CommandPattern, RuleNumber)>,
    /// By the program's name, into `all`.
    by_program: HashMap<String, Vec<usize>>,
    /// Those whose program is a pattern itself, into `all`, by the last byte of such a program's name.
    by_any_program: Vec<(Option<u8>, usize)>,
}

#[derive(Debug, Default)]
struct PathRules {
    patterns: Vec<(PathPattern, RuleNumber)>,
    relative: GlobTable,
    absolute: GlobTable,
}

/// Globs that are matched all at once, and the rule of each.
#[derive(Debug)]
struct GlobTable {
    set: GlobSet,
    rules: Vec<RuleNumber>,
}

impl Default for GlobTable {
    fn default() -> Self {
        Self { set: GlobSet::empty(), rules: Vec::new() }
    }
}

impl RuleIndex {
    /// Sorts rules; each comes with its place among all rules.
    pub(crate) fn new(
        effect: RuleEffect,
        rules: Vec<(RuleNumber, ParsedRule)>,
    ) -> Result<Self, globset::Error> {
        let mut rule_index = Self { effect, tools: BTreeMap::new() };
        for (index, ParsedRule { tool, pattern }) in rules {
            let of_tool = rule_index.tools.entry(tool.name).or_default();
            match pattern {
                CallPattern::Anything => {
                    of_tool.rule_for_all_calls = of_tool.rule_for_all_calls.or(Some(index))
                }
                CallPattern::Words(words) => of_tool.words.add(words, index),
                CallPattern::Path(path) => of_tool.paths.patterns.push((path, index)),
                CallPattern::Host(host) => of_tool.hosts.push((host, index)),
                CallPattern::Page(page) => of_tool.pages.push((page, index)),
                CallPattern::ServerTool(name) => of_tool.server_tools.push((name, index)),
                CallPattern::MemoryScope(scope) => of_tool.memory_scopes.push((scope, index)),
            }
        }
        for of_tool in rule_index.tools.values_mut() {
            of_tool.paths.build()?;
        }
        Ok(rule_index)
    }

    /// The rules that stand for this tool itself, where there are any.
    pub(crate) fn for_tool(&self, tool: &str) -> Option<&ToolRules> {
        self.tools.get(tool)
    }

    /// The rules that apply to a tool: its own and inherited ones, each with its depth below the
    /// paths that a call names.
    pub(crate) fn applied_to(&self, tool: &str) -> impl Iterator<Item = (&ToolRules, RuleDepth)> {
        let known = rule_target::find(tool).filter(|known| known.name == tool);
        known
            .into_iter()
            .flat_map(|known| known.applied_rules(self.effect))
            .filter_map(|by| Some((self.tools.get(by.tool)?, by.depth)))
    }
}

impl ToolRules {
    /// The rule for every call of the tool.
    pub(crate) fn anything(&self) -> Option<RuleNumber> {
        self.rule_for_all_calls
    }

    /// True if a rule fits every call of the tool: `bash`, or `bash:*`.
    pub(crate) fn fits_each_call(&self) -> bool {
        self.rule_for_all_calls.or_else(|| self.words.first_for_everything()).is_some()
    }

    /// True if any rule has a path pattern.
    pub(crate) fn has_path_patterns(&self) -> bool {
        !self.paths.patterns.is_empty()
    }

    /// The first rule that says all of these words, and writes out those at the guarded places.
    pub(crate) fn covering_command(
        &self,
        words: &[ArgWord],
        guarded: &[usize],
    ) -> Option<RuleNumber> {
        let program = words.first()?.known()?;
        let named = self.words.by_program.get(program).into_iter().flatten();
        named
            .copied()
            .chain(self.words.of_any_program(program))
            .map(|at| &self.words.all[at])
            .filter(|(pattern, _)| pattern.covers(words) && pattern.writes_out(guarded))
            .map(|(_, index)| *index)
            .chain(self.rule_for_all_calls)
            .min()
    }

    /// The rules of this kind that fit what a text runs.
    pub(crate) fn fitting_command(&self, runs: &AllRuns) -> RuleFit {
        let mut fit = RuleFit {
            certain: self.rule_for_all_calls.map(|index| (index, String::new())),
            ..RuleFit::default()
        };
        if self.words.all.is_empty() {
            return fit;
        }
        if let Some(index) = self.words.first_for_everything() {
            fit.certain = earlier(fit.certain, index, String::new);
        }
        if let (Some(why), Some((_, index))) = (&runs.hidden, self.words.all.first()) {
            fit.perhaps = earlier(fit.perhaps, *index, || why.clone());
        }
        // The rules that could match a program that is not known, for each met so far.
        let mut of_unknown: HashMap<&str, Vec<&(CommandPattern, RuleNumber)>> = HashMap::new();
        // And those for the last one that is known.
        let (mut last, mut of_last) = (None, Vec::new());
        for run in &runs.list {
            let starts = match run.begin {
                Begin::First => 0..1,
                Begin::Later => 1..run.words.len(),
            };
            let many = starts.len() > LATER_WORDS_CAP;
            let literal = run.words.iter().all(|word| word.known().is_some());
            for words in starts.map(|start| &run.words[start..]) {
                let Some(program) = words.first() else { continue };
                let rules = if program.letters().is_some() {
                    if last.replace(program.text()) != Some(program.text()) {
                        of_last = self.words.of(program);
                    }
                    &of_last
                } else {
                    let of = of_unknown.entry(program.text());
                    of.or_insert_with(|| self.words.of(program))
                };
                if rules.is_empty() {
                    continue;
                }
                // Such a run is at most a perhaps, of which the first rule counts.
                let at_most_perhaps =
                    run.doubt.is_some() || base_name(program.text()).contains(HOLE);
                for (pattern, index) in rules {
                    let found = if literal { &fit.literal } else { &fit.perhaps };
                    let known = found.as_ref().is_some_and(|(first, _)| first <= index);
                    if at_most_perhaps && known {
                        break;
                    }
                    let found = if many { Fit::Unknown } else { pattern.fits(words) };
                    fit.add(*index, found, run, words);
                }
            }
        }
        fit
    }

    /// The first rule that covers the requested host completely.
    pub(crate) fn covering_host(&self, asked: &HostRule) -> Option<RuleNumber> {
        self.host(|rule| rule.covers(asked))
    }

    /// The first rule that covers any part of the requested host.
    pub(crate) fn catching_host(&self, asked: &HostRule) -> Option<RuleNumber> {
        self.host(|rule| rule.meets(asked))
    }

    fn host(&self, fits: impl Fn(&HostRule) -> bool) -> Option<RuleNumber> {
        let named = self.hosts.iter().find(|(rule, _)| fits(rule)).map(|(_, index)| *index);
        named.into_iter().chain(self.rule_for_all_calls).min()
    }

    /// The first rule that covers this page.
    pub(crate) fn covering_page(&self, page: &WebAddress) -> Option<RuleNumber> {
        let named = self.pages.iter().find(|(rule, _)| rule.covers(page)).map(|(_, index)| *index);
        named.into_iter().chain(self.rule_for_all_calls).min()
    }

    /// The first rule that catches this page, by itself or by its host.
    pub(crate) fn catching_page(&self, page: &WebAddress) -> Option<RuleNumber> {
        let named = self.pages.iter().find(|(rule, _)| rule.catches(page)).map(|(_, index)| *index);
        let all = self.words.first_for_everything();
        named.into_iter().chain(self.catching_host(&page.server)).chain(all).min()
    }

    /// The first rule that fits this tool of an MCP server.
    pub(crate) fn server_tool(&self, name: &str) -> Option<RuleNumber> {
        let named = self.server_tools.iter().find(|(pattern, _)| pattern.fits(name));
        named.map(|(_, index)| *index).into_iter().chain(self.rule_for_all_calls).min()
    }

    /// The first rule that fits memories of this scope.
    pub(crate) fn memory(&self, scope: MemoryScope) -> Option<RuleNumber> {
        let named = self.memory_scopes.iter().find(|(of, _)| *of == scope);
        named.map(|(_, index)| *index).into_iter().chain(self.rule_for_all_calls).min()
    }

    /// The first rule that fits this path.
    pub(crate) fn covering_path(&self, rule_path: &RulePath) -> Option<RuleNumber> {
        let relative = rule_path.relative.as_ref().and_then(|path| self.paths.relative.first(path));
        let absolute = self.paths.absolute.first(&rule_path.absolute);
        relative.into_iter().chain(absolute).chain(self.rule_for_all_calls).min()
    }

    /// The first rule that fits this path, or that could fit something below it where it is a
    /// directory and the tool reaches there.
    pub(crate) fn catching_path(
        &self,
        rule_path: &RulePath,
        depth: RuleDepth,
        project: &Path,
    ) -> Option<RuleNumber> {
        let below = match depth {
            RuleDepth::Named => None,
            RuleDepth::Below => self
                .paths
                .patterns
                .iter()
                .find(|(pattern, _)| pattern.reaches_below(rule_path, project))
                .map(|(_, index)| *index),
        };
        self.covering_path(rule_path).into_iter().chain(below).min()
    }
}

/// Most words of a command that are each compared as a command of their own.
const LATER_WORDS_CAP: usize = 256;

/// The first rules that fit a call.
#[derive(Debug, Default)]
pub(crate) struct RuleFit {
    /// For certain, with what it fits.
    pub certain: Option<(RuleNumber, String)>,
    /// Perhaps, with the reason.
    pub perhaps: Option<(RuleNumber, String)>,
    /// Perhaps, though all words are written out, with what it fits.
    pub literal: Option<(RuleNumber, String)>,
}

impl RuleFit {
    fn add(&mut self, index: RuleNumber, fit: Fit, run: &Run, words: &[ArgWord]) {
        let shown = || {
            let words: Vec<&str> = words.iter().map(ArgWord::written).collect();
            words.join(" ").chars().take(200).collect::<String>()
        };
        let unknown = || {
            let unknown = words.iter().find(|word| word.known().is_none());
            let word = unknown.map_or_else(shown, |word| word.written().to_owned());
            format!("`{word}` is known only when it runs")
        };
        let may = fit == Fit::Spelling || (fit == Fit::Yes && run.doubt.is_some());
        if may && words.iter().all(|word| word.known().is_some()) {
            self.literal = earlier(self.literal.take(), index, shown);
        }
        match (fit, &run.doubt) {
            (Fit::No, _) => {}
            (Fit::Yes, None) => self.certain = earlier(self.certain.take(), index, shown),
            (Fit::Yes | Fit::Spelling | Fit::Unknown, Some(doubt)) => {
                let reason = || format!("{doubt}: `{}`", shown());
                self.perhaps = earlier(self.perhaps.take(), index, reason);
            }
            (Fit::Unknown, None) => {
                self.perhaps = earlier(self.perhaps.take(), index, unknown);
            }
            (Fit::Spelling, None) => {
                let reason = || format!("`{}` may mean the same", shown());
                self.perhaps = earlier(self.perhaps.take(), index, reason);
            }
        }
    }

    /// The earlier rules of both.
    pub(crate) fn or(self, other: Self) -> Self {
        let first = |one: Option<(RuleNumber, String)>, other| match other {
            Some((index, words)) => earlier(one, index, || words),
            None => one,
        };
        Self {
            certain: first(self.certain, other.certain),
            perhaps: first(self.perhaps, other.perhaps),
            literal: first(self.literal, other.literal),
        }
    }
}

/// The earlier of two matches.
fn earlier(
    caught: Option<(RuleNumber, String)>,
    index: RuleNumber,
    words: impl FnOnce() -> String,
) -> Option<(RuleNumber, String)> {
    match caught {
        Some((before, _)) if before <= index => caught,
        Some(_) | None => Some((index, words())),
    }
}

impl CommandRules {
    fn add(&mut self, pattern: CommandPattern, index: RuleNumber) {
        match pattern.program() {
            Some(program) => {
                self.by_program.entry(program.to_owned()).or_default().push(self.all.len())
            }
            None => {
                self.by_any_program.push((pattern.last_byte_of_program(), self.all.len()));
            }
        }
        self.all.push((pattern, index));
    }

    /// The patterns for programs of which this may be one.
    fn of_any_program(&self, program: &str) -> impl Iterator<Item = usize> {
        let last = program.bytes().last();
        let fits = move |byte: &Option<u8>| byte.is_none() || *byte == last;
        self.by_any_program.iter().filter(move |(byte, _)| fits(byte)).map(|(_, at)| *at)
    }

    /// The first pattern that catches even a command in which nothing can be seen.
    fn first_for_everything(&self) -> Option<RuleNumber> {
        self.by_any_program
            .iter()
            .map(|(_, at)| &self.all[*at])
            .find(|(pattern, _)| pattern.fits(&[]) == Fit::Yes)
            .map(|(_, i)| *i)
    }

    /// The rules that could catch a command of this program, in their order.
    fn of(&self, word: &ArgWord) -> Vec<&(CommandPattern, RuleNumber)> {
        let name = ProgramName::of(word);
        let could_run = |at: &usize| self.all[*at].0.could_run(name);
        let mut found: Vec<usize> = if name.has_holes() {
            (0..self.all.len()).filter(could_run).collect()
        } else {
            let written = |name: &str| self.by_program.get(name).into_iter().flatten().copied();
            let named = name.spellings().flat_map(written);
            named.chain(self.of_any_program(word.text())).filter(could_run).collect()
        };
        found.sort_unstable();
        found.into_iter().map(|at| &self.all[at]).collect()
    }
}

impl PathRules {
    fn build(&mut self) -> Result<(), globset::Error> {
        self.relative = GlobTable::new(
            self.patterns.iter().map(|(pattern, index)| (&pattern.relative[..], *index)),
        )?;
        self.absolute = GlobTable::new(
            self.patterns.iter().map(|(pattern, index)| (&pattern.absolute[..], *index)),
        )?;
        Ok(())
    }
}

impl GlobTable {
    fn new<'a>(
        globs: impl Iterator<Item = (&'a [Glob], RuleNumber)>,
    ) -> Result<Self, globset::Error> {
        let mut builder = GlobSetBuilder::new();
        let mut rules = Vec::new();
        for (globs, index) in globs {
            for glob in globs {
                builder.add(glob.clone());
                rules.push(index);
            }
        }
        if rules.is_empty() {
            // A set of nothing takes as long to build as one of a few.
            return Ok(Self::default());
        }
        Ok(Self { set: builder.build()?, rules })
    }

    fn first(&self, path: &str) -> Option<RuleNumber> {
        self.set.matches(path).into_iter().map(|at| self.rules[at]).min()
    }
}
