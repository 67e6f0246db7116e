//! The rules of one effect, sorted by tool so that a thousand of them are searched quickly.

use crate::address::AddressPattern;
use crate::expand::{Limit, limit_of};
use crate::glimpse::Glimpse;
use crate::paths::{PathPattern, Spot};
use crate::pattern::{Parsed, Pattern};
use crate::script::Word;
use crate::subject::{self, Reach};
use crate::words::{WordPattern, base_name, has_glob};
use globset::{Glob, GlobSet, GlobSetBuilder};
use protocol::hosts::HostRule;
use protocol::judgement::RuleEffect;
use protocol::web::WebAddress;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A rule's place among all rules.
pub(crate) type Index = usize;

/// The rules of one effect.
#[derive(Debug)]
pub(crate) struct Shelf {
    effect: RuleEffect,
    tools: BTreeMap<&'static str, ToolRules>,
}

/// The rules of one effect for one tool.
#[derive(Debug, Default)]
pub(crate) struct ToolRules {
    anything: Option<Index>,
    words: WordRules,
    paths: PathRules,
    hosts: Vec<(HostRule, Index)>,
    pages: Vec<(AddressPattern, Index)>,
}

#[derive(Debug, Default)]
struct WordRules {
    all: Vec<(WordPattern, Index)>,
    /// By the program's name, into `all`.
    by_program: HashMap<String, Vec<usize>>,
    /// Those whose program is a pattern itself, into `all`.
    by_any_program: Vec<usize>,
}

#[derive(Debug, Default)]
struct PathRules {
    patterns: Vec<(PathPattern, Index)>,
    relative: GlobTable,
    absolute: GlobTable,
}

/// Globs that are matched all at once, and the rule of each.
#[derive(Debug)]
struct GlobTable {
    set: GlobSet,
    rules: Vec<Index>,
}

impl Default for GlobTable {
    fn default() -> Self {
        Self { set: GlobSet::empty(), rules: Vec::new() }
    }
}

impl Shelf {
    /// Sorts rules; each comes with its place among all rules.
    pub(crate) fn new(
        effect: RuleEffect,
        rules: Vec<(Index, Parsed)>,
    ) -> Result<Self, globset::Error> {
        let mut shelf = Self { effect, tools: BTreeMap::new() };
        for (index, Parsed { tool, pattern }) in rules {
            let of_tool = shelf.tools.entry(tool.name).or_default();
            match pattern {
                Pattern::Anything => of_tool.anything = of_tool.anything.or(Some(index)),
                Pattern::Words(words) => of_tool.words.add(words, index),
                Pattern::Path(path) => of_tool.paths.patterns.push((path, index)),
                Pattern::Host(host) => of_tool.hosts.push((host, index)),
                Pattern::Page(page) => of_tool.pages.push((page, index)),
            }
        }
        for of_tool in shelf.tools.values_mut() {
            of_tool.paths.build()?;
        }
        Ok(shelf)
    }

    /// The rules that stand for this tool itself, where there are any.
    pub(crate) fn of(&self, tool: &str) -> Option<&ToolRules> {
        self.tools.get(tool)
    }

    /// The rules that speak of a tool: its own, and those of the tool that it is like, each with how
    /// far it holds below what a call names.
    pub(crate) fn all_of(&self, tool: &str) -> impl Iterator<Item = (&ToolRules, Reach)> {
        let known = subject::find(tool).filter(|known| known.name == tool);
        known
            .into_iter()
            .flat_map(|known| known.ruled_by(self.effect))
            .filter_map(|by| Some((self.tools.get(by.tool)?, by.far)))
    }
}

impl ToolRules {
    /// The rule for every call of the tool.
    pub(crate) fn anything(&self) -> Option<Index> {
        self.anything
    }

    /// Whether any rule asks what the paths are.
    pub(crate) fn asks_for_paths(&self) -> bool {
        !self.paths.patterns.is_empty()
    }

    /// Whether any rule asks what the words of a command are.
    pub(crate) fn asks_for_words(&self) -> bool {
        !self.words.all.is_empty()
    }

    /// The first rule that says all of these words, and writes out those at the guarded places.
    pub(crate) fn command_is(&self, words: &[Word], guarded: &[usize]) -> Option<Index> {
        let program = words.first()?.known()?;
        let named = self.words.by_program.get(program).into_iter().flatten();
        named
            .chain(&self.words.by_any_program)
            .map(|at| &self.words.all[*at])
            .filter(|(pattern, _)| pattern.is(words) && pattern.writes_out(guarded))
            .map(|(_, index)| *index)
            .chain(self.anything)
            .min()
    }

    /// The first rule that catches one of the commands that can be seen, with the words it caught.
    pub(crate) fn command_caught(&self, glimpses: &[Glimpse]) -> Option<(Index, String)> {
        let mut caught: Option<(Index, String)> = self.anything.map(|index| (index, String::new()));
        if self.words.all.is_empty() {
            return caught;
        }
        if let Some(index) = self.words.first_for_everything() {
            caught = earlier(caught, index, String::new);
        }
        // The rules that could speak of a program, for the programs met so far.
        let mut of_program: HashMap<&str, Vec<&(WordPattern, Index)>> = HashMap::new();
        for glimpse in glimpses {
            for start in &glimpse.starts {
                let words = &glimpse.words[*start..];
                let Some(program) = words.first() else { continue };
                let rules = of_program.entry(program).or_insert_with(|| self.words.of(program));
                if let Some((_, index)) = rules.iter().find(|(pattern, _)| pattern.catches(words)) {
                    caught =
                        earlier(caught, *index, || words.join(" ").chars().take(200).collect());
                }
            }
        }
        caught
    }

    /// The limit that hides the words of a command which a rule could catch.
    pub(crate) fn hidden_by(&self, glimpses: &[Glimpse]) -> Option<Limit> {
        glimpses.iter().find_map(|glimpse| {
            let hidden = glimpse.words.iter().position(|word| limit_of(word).is_some())?;
            let caught = |start: &&usize| {
                let known = glimpse.words.get(**start..hidden).unwrap_or_default();
                let rules = known.first().map(|program| self.words.of(program));
                rules.is_some_and(|rules| rules.iter().any(|(pattern, _)| pattern.begins(known)))
            };
            glimpse.starts.iter().find(caught)?;
            limit_of(&glimpse.words[hidden])
        })
    }

    /// The first rule that speaks of all that is asked for of a host.
    pub(crate) fn host_is(&self, asked: &HostRule) -> Option<Index> {
        self.host(|rule| rule.covers(asked))
    }

    /// The first rule that speaks of any of it.
    pub(crate) fn host_caught(&self, asked: &HostRule) -> Option<Index> {
        self.host(|rule| rule.meets(asked))
    }

    fn host(&self, fits: impl Fn(&HostRule) -> bool) -> Option<Index> {
        let named = self.hosts.iter().find(|(rule, _)| fits(rule)).map(|(_, index)| *index);
        named.into_iter().chain(self.anything).min()
    }

    /// The first rule that speaks of this page.
    pub(crate) fn page_is(&self, page: &WebAddress) -> Option<Index> {
        let named = self.pages.iter().find(|(rule, _)| rule.is(page)).map(|(_, index)| *index);
        named.into_iter().chain(self.anything).min()
    }

    /// The first rule that catches this page, by itself or by its host.
    pub(crate) fn page_caught(&self, page: &WebAddress) -> Option<Index> {
        let named = self.pages.iter().find(|(rule, _)| rule.catches(page)).map(|(_, index)| *index);
        let all = self.words.first_for_everything();
        named.into_iter().chain(self.host_caught(&page.server)).chain(all).min()
    }

    /// The first rule that fits this path.
    pub(crate) fn path_is(&self, spot: &Spot) -> Option<Index> {
        let relative = spot.relative.as_ref().and_then(|path| self.paths.relative.first(path));
        let absolute = self.paths.absolute.first(&spot.absolute);
        relative.into_iter().chain(absolute).chain(self.anything).min()
    }

    /// The first rule that fits this path, or that could fit something below it where it is a
    /// directory and the tool reaches there.
    pub(crate) fn path_caught(&self, spot: &Spot, reach: Reach, project: &Path) -> Option<Index> {
        let below = match reach {
            Reach::Named => None,
            Reach::Below => self
                .paths
                .patterns
                .iter()
                .find(|(pattern, _)| pattern.reaches_below(spot, project))
                .map(|(_, index)| *index),
        };
        self.path_is(spot).into_iter().chain(below).min()
    }
}

/// The earlier of what was caught and a new catch.
fn earlier(
    caught: Option<(Index, String)>,
    index: Index,
    words: impl FnOnce() -> String,
) -> Option<(Index, String)> {
    match caught {
        Some((before, _)) if before <= index => caught,
        Some(_) | None => Some((index, words())),
    }
}

impl WordRules {
    fn add(&mut self, pattern: WordPattern, index: Index) {
        match pattern.program() {
            Some(program) => {
                self.by_program.entry(program.to_owned()).or_default().push(self.all.len())
            }
            None => self.by_any_program.push(self.all.len()),
        }
        self.all.push((pattern, index));
    }

    /// The first pattern that catches even a command in which nothing can be seen.
    fn first_for_everything(&self) -> Option<Index> {
        self.by_any_program
            .iter()
            .map(|at| &self.all[*at])
            .find(|(pattern, _)| pattern.catches(&[]))
            .map(|(_, i)| *i)
    }

    /// The rules that could catch a command of this program, in their order.
    fn of(&self, program: &str) -> Vec<&(WordPattern, Index)> {
        let base = base_name(program);
        if has_glob(base) {
            return self
                .all
                .iter()
                .filter(|(pattern, _)| pattern.could_run(program, base))
                .collect();
        }
        let named = self.by_program.get(program).into_iter().flatten();
        let based = self.by_program.get(base).filter(|_| base != program).into_iter().flatten();
        let mut found: Vec<usize> =
            named.chain(based).chain(&self.by_any_program).copied().collect();
        found.sort_unstable();
        let rules = found.into_iter().map(|at| &self.all[at]);
        rules.filter(|(pattern, _)| pattern.could_run(program, base)).collect()
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
    fn new<'a>(globs: impl Iterator<Item = (&'a [Glob], Index)>) -> Result<Self, globset::Error> {
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

    fn first(&self, path: &str) -> Option<Index> {
        self.set.matches(path).into_iter().map(|at| self.rules[at]).min()
    }
}
