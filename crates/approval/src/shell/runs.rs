//! What a text runs, for rules that deny or ask: each command with the commands that it runs in
//! turn, through `env`, `sh -c` and the like, and what is only known when it runs.

use crate::program_name::base_name;
use crate::shell::git;
use crate::shell::grammar;
use crate::shell::idle::is_idle;
use crate::shell::inserted::{found_file, with_input};
use crate::shell::runners::{CommandStart, OPEN_SHELLS, Reader, Runner, Runs, runner};
use crate::shell::safe_env::names_a_program;
use crate::shell::script::{
    ArgWord, Fields, HOLE, Input, Script, ScriptError, SharedWords, SimpleCommand, Unknown,
    WordStart,
};
use crate::shell::subcommands::subcommand_at;
use std::collections::HashSet;
use std::sync::Arc;

/// Deepest text within a text that is looked into. People write two; a deeper one hides something.
const DEPTH_CAP: usize = 8;
/// Most programs of one command that each run the next.
const CHAIN_CAP: usize = 16;
/// Most letters of texts within a text and of words of their commands, a word counted as [`WORD`] more:
/// of guesses, and of what runs for certain, which each program of a chain counts anew.
const GUESSED_CAP: usize = 1024 * 1024;
const CERTAIN_CAP: usize = CHAIN_CAP * GUESSED_CAP;
const WORD: usize = 4;

/// Options of shells that take no word and run nothing.
const SHELL_OPTIONS: &[&str] =
    &["--login", "--noediting", "--noprofile", "--norc", "--posix", "--restricted", "--verbose"];
/// The same, of one letter; some shells run the value of another.
const SHELL_LETTERS: &str = "abcefhiklmnoprstuvxBDEHOPT";

/// The texts are nested deeper than in any real command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooDeep;

/// A command that a text runs, or may run.
#[derive(Debug)]
pub(crate) struct Run {
    pub words: SharedWords,
    pub begin: Begin,
    /// Why it may not run at all; none where it does as far as the text says.
    pub doubt: Option<Arc<str>>,
}

/// Where in its words a command begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    First,
    /// At any word behind the first.
    Later,
}

/// All that a text runs.
#[derive(Debug, Default)]
pub(crate) struct AllRuns {
    pub list: Vec<Run>,
    /// The first reason why it may run any program.
    pub hidden: Option<String>,
    certain_work: usize,
    guessed_work: usize,
    too_deep: bool,
    /// The text is one command. Its input is then agentd's: empty, or texts that are judged one by one
    /// when they are typed.
    one_command: bool,
    /// Files that it runs, and files that it writes, without their directories.
    runs_files: Vec<String>,
    /// What `ENV` is: for some shells a file that they run, for people often a word.
    env_words: Vec<String>,
    writes_files: HashSet<String>,
}

/// All that a text runs; its script is read already.
pub(crate) fn all_runs(script: &Result<Script, ScriptError>) -> Result<AllRuns, TooDeep> {
    let one_command = script.as_ref().is_ok_and(|script| script.commands.len() == 1);
    let mut all = AllRuns { one_command, ..AllRuns::default() };
    all.script(script, None, 0);
    let any = all.writes_files.iter().any(|file| file.contains(HOLE));
    let written = all.runs_files.iter().find(|file| {
        any || all.writes_files.contains(*file)
            || (file.contains(HOLE) && !all.writes_files.is_empty())
    });
    let written = written.or(all.env_words.iter().find(|word| all.writes_files.contains(*word)));
    if let Some(file) = written.cloned() {
        all.hide(&format!("it writes the file `{file}` and runs it"));
    }
    if all.too_deep { Err(TooDeep) } else { Ok(all) }
}

/// A command under way, and how it is known.
struct Seen<'a> {
    words: SharedWords,
    /// None for one of which the text is elsewhere.
    inputs: Vec<Option<&'a ArgWord>>,
    doubt: Option<Arc<str>>,
    depth: usize,
    /// How many programs run each other before it.
    chain: usize,
}

impl AllRuns {
    fn hide(&mut self, why: &str) {
        self.hidden.get_or_insert_with(|| why.to_owned());
    }

    /// True if this work and all before of its kind is not too much. Guesses have their own measure, so
    /// that they hide nothing that is certain.
    fn is_in_reach(&mut self, work: usize, doubt: Option<&Arc<str>>) -> bool {
        let (all, cap) = match doubt {
            None => (&mut self.certain_work, CERTAIN_CAP),
            Some(_) => (&mut self.guessed_work, GUESSED_CAP),
        };
        *all += work;
        let in_reach = *all <= cap;
        if !in_reach {
            self.hide("it contains too many commands");
        }
        in_reach
    }

    /// The same for all that is done once with each of these words.
    fn are_in_reach(&mut self, words: &[ArgWord], doubt: Option<&Arc<str>>) -> bool {
        // First, since the sum takes time too.
        self.is_in_reach(0, doubt)
            && self.is_in_reach(words.iter().map(|it| WORD + it.written().len()).sum(), doubt)
    }

    fn hide_word(&mut self, word: &ArgWord) {
        if self.hidden.is_none() {
            self.hide(&format!("`{}` is known only when it runs", word.written()));
        }
    }

    fn script(
        &mut self,
        script: &Result<Script, ScriptError>,
        doubt: Option<&Arc<str>>,
        depth: usize,
    ) {
        let script = match script {
            Ok(script) => script,
            Err(why) => return self.hide(&format!("agentd cannot read it: {why}")),
        };
        for file in &script.written {
            self.writes_files.insert(base_name(file.text()).to_owned());
        }
        for value in &script.values {
            self.evaluated(value, depth);
        }
        for (name, value) in &script.variables {
            self.evaluated(value, depth);
            self.variable(name, value.text(), depth);
        }
        for SimpleCommand { words, inputs } in &script.commands {
            let inputs = inputs.iter().map(|input| match input {
                Input::Text(word) => Some(word),
                Input::Document(number) => script.documents.get(*number),
                Input::Other => None,
            });
            let (words, inputs) = (words.clone(), inputs.collect());
            self.command(Seen { words, inputs, doubt: doubt.cloned(), depth, chain: 0 });
        }
    }

    /// A text that a shell reads.
    fn text(&mut self, text: &str, doubt: Option<&Arc<str>>, depth: usize, shell: &str) {
        if depth >= DEPTH_CAP {
            self.too_deep = true;
        } else if self.is_in_reach(WORD + text.len(), doubt) {
            let script = grammar::read(text);
            if let (Ok(Script { of_bash: Some(sign), .. }), false) = (&script, shell == "bash") {
                self.hide(&format!("`{shell}` may read `{sign}` in another way than bash"));
            }
            self.script(&script, doubt, depth + 1);
        }
    }

    /// A variable of which a program may run the text, or a shell the file.
    fn variable(&mut self, name: &str, text: &str, depth: usize) {
        let name = name.split(['+', '[']).next().unwrap_or(name);
        if names_a_program(name) {
            let doubt = Arc::from(format!("a program may run what `{name}` holds"));
            match text.contains(HOLE) {
                true => self.named_program(text, doubt),
                false => self.perhaps_text(text, &doubt, depth),
            }
        }
        match name {
            "ENV" if !text.contains('/') => self.env_words.push(text.to_owned()),
            "BASH_ENV" | "ENV" => self.runs_files.push(base_name(text).to_owned()),
            _ => {}
        }
    }

    /// A text of which letters are not known is compared by its program alone. Where that is not known
    /// either, as in `EDITOR=$x`, too much would be asked about.
    fn named_program(&mut self, text: &str, doubt: Arc<str>) {
        let mut words = text.split_whitespace().map(|text| Unknown {
            start: WordStart::Any,
            fields: Fields::Any,
            text: text.to_owned(),
            written: text.replace(HOLE, "…"),
        });
        if let Some(first) = words.next().filter(|first| !base_name(&first.text).contains(HOLE)) {
            let first = std::iter::once(ArgWord::One(first));
            let words: Vec<_> = first.chain(words.map(ArgWord::Open)).collect();
            self.push(words.into(), Begin::First, doubt);
        }
    }

    /// Words of which some set variables: `export NAME=value`.
    fn variables(&mut self, words: &[ArgWord], depth: usize) {
        for word in words {
            self.evaluated(word, depth);
            self.assigned(word, depth);
        }
    }

    fn assigned(&mut self, word: &ArgWord, depth: usize) {
        if let Some((name, text)) = word.text().split_once('=') {
            self.variable(name, text, depth);
        }
    }

    /// A value that the shell may evaluate later, as an index or a prompt.
    fn evaluated(&mut self, value: &ArgWord, depth: usize) {
        let text = value.text();
        if !text.contains("$(") && !text.contains('`') {
            return;
        }
        if value.known().is_none() {
            self.hide_word(value);
        } else {
            let quoted = format!(": \"{}\"", text.replace('"', ""));
            let doubt = Arc::from("the shell may evaluate the text that holds it");
            self.text(&quoted, Some(&doubt), depth, "bash");
        }
    }

    /// A command that is guessed.
    fn push(&mut self, words: SharedWords, begin: Begin, doubt: Arc<str>) {
        if self.are_in_reach(&words, Some(&doubt)) {
            self.list.push(Run { words, begin, doubt: Some(doubt) });
        }
    }

    fn command(&mut self, seen: Seen<'_>) {
        let Seen { mut words, inputs, doubt, depth, chain } = seen;
        for chain in chain..CHAIN_CAP {
            let Some(first) = words.first() else { return };
            let Some(name) = program(first) else { return self.hide_word(first) };
            if name.contains(HOLE) || name.is_empty() && first.known().is_none() {
                return self.hide_word(first);
            }
            // What the outermost text runs is no longer than it, and is never left out.
            let outermost = depth == 0 && doubt.is_none();
            if !outermost && !self.are_in_reach(&words, doubt.as_ref()) {
                return;
            }
            let run = Run { words: words.clone(), begin: Begin::First, doubt: doubt.clone() };
            self.list.push(run);
            if first.text().contains('/') {
                self.runs_files.push(name.to_owned());
            }
            let Some(row) = runner(name) else {
                if name == "tee" {
                    let files = words[1..].iter().map(|it| base_name(it.text()).to_owned());
                    self.writes_files.extend(files);
                }
                if !is_idle(name) {
                    self.later_texts(name, &words, depth);
                    self.later_words(name, &words, doubt, depth);
                }
                return;
            };
            let mut seen = Seen {
                words: words.clone(),
                inputs: inputs.clone(),
                doubt: doubt.clone(),
                depth,
                chain: chain + 1,
            };
            match row.runs {
                Runs::Command | Runs::CommandWithInput => {
                    match row.command_start(&words, Reader::Deny) {
                        CommandStart::At(at) if row.runs == Runs::Command => {
                            self.variables(&words[1..at], depth);
                            words = words.behind(at);
                        }
                        CommandStart::At(at) => {
                            if !self.are_in_reach(&words, doubt.as_ref()) {
                                return;
                            }
                            seen.words = with_input(&words[..at], &words[at..]).into();
                            return self.command(seen);
                        }
                        CommandStart::Nothing => return,
                        CommandStart::Anywhere => return self.anywhere(row, &seen),
                    }
                }
                Runs::LaterWords => {
                    self.opened(row, &seen);
                    self.later_texts(name, &words, depth);
                    return self.later_words(name, &words, doubt, depth);
                }
                Runs::Texts => return self.texts(row, &seen),
                Runs::TextsOrInput => {
                    let operands = words[1..].iter().filter(|it| !it.text().starts_with('-'));
                    if operands.count() < 2 {
                        self.input(row.name, &seen);
                    }
                    return self.texts(row, &seen);
                }
                Runs::InputOrTexts => {
                    self.input(row.name, &seen);
                    return self.texts(row, &seen);
                }
                Runs::Joined => return self.joined(&seen),
                Runs::Shell => return self.shell(row.name, &seen),
                Runs::File => return self.file(row.name, &seen),
                Runs::Behind(options) => return self.behind(row, options, &seen),
                Runs::Options(options) => return self.options(options, &seen),
                Runs::Git => return self.git(&seen),
                Runs::Variables => return self.variables(&words[1..], depth),
                Runs::Indices => {
                    let read = inputs.iter().flatten().copied();
                    return words[1..].iter().chain(read).for_each(|it| self.evaluated(it, depth));
                }
            }
        }
        self.hide("too many programs in it run each other");
    }

    /// Each later word may begin a command.
    fn later_words(
        &mut self,
        name: &str,
        words: &SharedWords,
        doubt: Option<Arc<str>>,
        depth: usize,
    ) {
        let doubt = doubt.unwrap_or_else(|| format!("`{name}` may run what follows it").into());
        self.push(words.clone(), Begin::Later, Arc::clone(&doubt));
        if !self.is_in_reach(0, Some(&doubt)) {
            return;
        }
        // `mywrap env PAGER=text`
        words[1..].iter().for_each(|word| self.assigned(word, depth));
        self.shells_behind(words, &doubt, depth);
    }

    /// Each later word may be a text.
    fn later_texts(&mut self, name: &str, words: &[ArgWord], depth: usize) {
        let known = words[1..].iter().filter_map(ArgWord::known);
        let mut texts = known.filter(|text| text.contains(char::is_whitespace)).peekable();
        if texts.peek().is_some() {
            let doubt = Arc::from(format!("`{name}` may run what follows it"));
            texts.for_each(|text| self.perhaps_text(text, &doubt, depth));
        }
    }

    /// A text that a program may run. Most such texts are no scripts, so an unclear one hides nothing.
    fn perhaps_text(&mut self, text: &str, doubt: &Arc<str>, depth: usize) {
        if depth + 1 >= DEPTH_CAP {
            return self.hide("too many programs in it run each other");
        }
        let hidden = self.hidden.clone();
        self.text(text, Some(doubt), depth, "bash");
        if self.is_in_reach(0, Some(doubt)) {
            self.hidden = hidden;
        }
    }

    /// Texts for shells behind a program that may run its words.
    fn shells_behind(&mut self, words: &SharedWords, doubt: &Arc<str>, depth: usize) {
        let reads = |word: &ArgWord| {
            let row = word.known().and_then(runner);
            row.is_some_and(|row| {
                !matches!(row.runs, Runs::Command | Runs::Variables | Runs::Indices | Runs::File)
            })
        };
        let starts: Vec<usize> = (1..words.len()).filter(|at| reads(&words[*at])).collect();
        if starts.len() > CHAIN_CAP || depth >= DEPTH_CAP {
            return self.hide("too many programs in it run each other");
        }
        for at in starts {
            let (inputs, doubt) = (Vec::new(), Some(Arc::clone(doubt)));
            let words = words.behind(at);
            self.command(Seen { words, inputs, doubt, depth: depth + 1, chain: 0 });
        }
    }

    /// A runner with an option that is not known.
    fn anywhere(&mut self, row: &Runner, seen: &Seen<'_>) {
        let last = seen.words.last().map(ArgWord::text).unwrap_or_default();
        if last.starts_with('-') && !last.contains(' ') {
            self.input(row.name, seen);
        }
        self.texts(row, seen);
    }

    /// A program that opens a shell on its input, unless a command is certain among its words.
    fn opened(&mut self, row: &Runner, seen: &Seen<'_>) {
        let opens = OPEN_SHELLS.contains(&row.name) || row.runs == Runs::TextsOrInput;
        let least = 1 + usize::from(row.runs == Runs::TextsOrInput);
        let words = || seen.words[1..].iter().map(ArgWord::text);
        let takes = |word: &&str| word.starts_with('-') && word.ends_with(char::is_alphabetic);
        let operands = words().filter(|word| !word.starts_with('-')).count();
        let certain = operands >= least + words().filter(takes).count();
        if opens && !seen.inputs.is_empty() && !certain && !words().any(|word| word.contains(' ')) {
            self.input(row.name, seen);
        }
    }

    /// Each word may begin a command or be a text.
    fn texts(&mut self, row: &Runner, seen: &Seen<'_>) {
        self.opened(row, seen);
        self.later_words(row.name, &seen.words, seen.doubt.clone(), seen.depth);
        for (at, word) in seen.words.iter().enumerate().skip(1) {
            let Some(known) = word.letters() else {
                self.hide_word(word);
                continue;
            };
            // `alias x='…'`, `env -S'…'`, `env --split-string='…'`
            let behind_sign = known.split_once('=').map(|(_, text)| text);
            let glued = known.strip_prefix('-').and_then(|rest| rest.get(1..));
            for text in std::iter::once(known).chain(behind_sign).chain(glued) {
                if !text.starts_with('-') && text.contains(|c: char| !c.is_ascii_alphanumeric()) {
                    self.text(text, seen.doubt.as_ref(), seen.depth, row.name);
                }
            }
            if row.name == "env" && known.contains('\\') {
                self.hide_word(word);
            }
            self.glued(row.name, known, &seen.words[at + 1..], seen);
        }
        for input in seen.inputs.iter().flatten() {
            self.input_text(input, seen, row.name);
        }
    }

    /// Texts that are written in one word with an option or a name: `-vSrm`, `--exec=rm`, `x=rm`.
    fn glued(&mut self, name: &str, word: &str, behind: &[ArgWord], seen: &Seen<'_>) {
        let doubt = seen.doubt.clone();
        let doubt = doubt.unwrap_or_else(|| format!("`{name}` may run what follows it").into());
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or("");
        let letters = match short.contains('=') {
            true => 0,
            false => short.bytes().take_while(u8::is_ascii_alphanumeric).count(),
        };
        let begins = (1..=letters).map(|at| &short[at..]);
        let set = word.match_indices('=').map(|(at, _)| &word[at + 1..]);
        // `env -S 'git -C x' push`
        let whole = Some(word).filter(|_| name == "env" && short.is_empty());
        for text in begins.chain(set).chain(whole).filter(|text| !text.is_empty()) {
            if seen.depth >= DEPTH_CAP {
                return self.hide("too many programs in it run each other");
            }
            if !self.is_in_reach(0, Some(&doubt)) {
                return;
            }
            let blank = text.contains(char::is_whitespace);
            // Words come behind it.
            if name == "alias" || (name == "env" && blank && !behind.is_empty()) {
                self.text(&format!("{text} $@"), Some(&doubt), seen.depth, "bash");
            } else if blank {
                self.text(text, Some(&doubt), seen.depth, name);
            } else if self.is_in_reach(text.len(), Some(&doubt))
                && self.are_in_reach(behind, Some(&doubt))
            {
                let first = ArgWord::Known(text.to_owned());
                self.push(vec![first.clone()].into(), Begin::First, Arc::clone(&doubt));
                let words: Vec<_> = std::iter::once(first).chain(behind.iter().cloned()).collect();
                let words = words.into();
                let (inputs, doubt) = (Vec::new(), Some(Arc::clone(&doubt)));
                let depth = seen.depth + 1;
                self.command(Seen { words, inputs, doubt, depth, chain: 0 });
            }
        }
    }

    /// The program reads commands from its input.
    fn input(&mut self, name: &str, seen: &Seen<'_>) {
        let of_agentd = self.one_command && seen.depth == 0 && seen.inputs.is_empty();
        if !of_agentd && (seen.inputs.is_empty() || seen.inputs.contains(&None)) {
            self.hide(&format!("the input of `{name}` is known only when it runs"));
        }
        for input in seen.inputs.iter().flatten() {
            self.input_text(input, seen, name);
        }
    }

    fn input_text(&mut self, input: &ArgWord, seen: &Seen<'_>, shell: &str) {
        let several = (seen.inputs.len() > 1).then(|| Arc::from("it is not the only input"));
        let doubt = seen.doubt.clone().or(several);
        match input.known() {
            Some(text) => self.text(text, doubt.as_ref(), seen.depth, shell),
            None => self.hide_word(input),
        }
    }

    fn joined(&mut self, seen: &Seen<'_>) {
        let dashes = seen.words.get(1).is_some_and(|word| word.known() == Some("--"));
        let words = &seen.words[1 + usize::from(dashes)..];
        match words.iter().find(|word| word.known().is_none()) {
            Some(unknown) => self.hide_word(unknown),
            None => {
                let text = words.iter().map(ArgWord::text).collect::<Vec<_>>().join(" ");
                self.text(&text, seen.doubt.as_ref(), seen.depth, "bash");
            }
        }
    }

    /// `sh -c text`, `sh file` or `sh` alone.
    fn shell(&mut self, name: &str, seen: &Seen<'_>) {
        let mut rest = seen.words[1..].iter();
        let (mut takes_text, mut reads_input) = (false, false);
        let is_option = |word: &&ArgWord| word.text().starts_with(['-', '+']);
        let options = seen.words[1..].iter().filter(is_option).count();
        while let Some(word) = rest.next() {
            let known = match word.known() {
                Some(known) => known,
                None if takes_text || reads_input => return self.hide_word(word),
                None => return self.read_file(name, word, seen),
            };
            match known {
                "--version" | "--help" => return,
                "--" => {}
                "-" if takes_text => {}
                "--rcfile" | "--init-file" => {
                    rest.next().into_iter().for_each(|file| self.read_file(name, file, seen));
                }
                long if long.starts_with("--") => {
                    if !SHELL_OPTIONS.contains(&long) {
                        self.hide(&format!("`{name}` may run something for `{long}`"));
                    }
                }
                option if option.starts_with(['-', '+']) && option.len() > 1 => {
                    let (sign, letters) = option.split_at(1);
                    let plain = letters.trim_end_matches(['o', 'O']);
                    // Only where no other option takes it back.
                    if sign == "-"
                        && letters.contains('n')
                        && !letters.contains(['c', 'i'])
                        && options == 1
                    {
                        return;
                    }
                    if !letters.chars().all(|it| SHELL_LETTERS.contains(it))
                        || plain.contains(['o', 'O'])
                    {
                        self.hide(&format!("`{name}` may run something for `{option}`"));
                    }
                    for value in rest.by_ref().take(letters.matches(['o', 'O']).count()) {
                        if value.is_open() {
                            self.hide_word(value);
                        }
                    }
                    reads_input |= letters.contains('s');
                    takes_text |= letters.contains('c');
                }
                text if takes_text => {
                    return self.text(text, seen.doubt.as_ref(), seen.depth, name);
                }
                _ if reads_input => return self.input(name, seen),
                _ => return self.read_file(name, word, seen),
            }
        }
        self.input(name, seen);
    }

    /// A file that a shell reads; it may be its input.
    fn read_file(&mut self, name: &str, word: &ArgWord, seen: &Seen<'_>) {
        match file_name(word) {
            _ if is_input(word.text()) => self.input(name, seen),
            Some(file) => self.runs_files.push(file.to_owned()),
            None => self.hide_word(word),
        }
    }

    /// `source file`
    fn file(&mut self, name: &str, seen: &Seen<'_>) {
        let dashes = seen.words.get(1).is_some_and(|word| word.known() == Some("--"));
        if let Some(word) = seen.words.get(1 + usize::from(dashes)) {
            self.read_file(name, word, seen);
        }
    }

    /// `find … -exec command ;`
    fn behind(&mut self, row: &Runner, options: &[&str], seen: &Seen<'_>) {
        let (mut done, mut guessed) = (0, None);
        for (at, word) in seen.words.iter().enumerate().skip(1) {
            match word {
                _ if at < done => {}
                ArgWord::Known(known) if options.contains(&known.as_str()) => {
                    let rest = &seen.words[at + 1..];
                    let ends = |word: &&ArgWord| matches!(word.known(), Some(";" | "+"));
                    let end = rest.iter().position(|word| ends(&word)).unwrap_or(rest.len());
                    done = at + 1 + end;
                    if !self.are_in_reach(&rest[..end], seen.doubt.as_ref()) {
                        continue;
                    }
                    let words: Vec<_> = rest[..end].iter().map(found_file).collect();
                    let (inputs, doubt) = (Vec::new(), seen.doubt.clone());
                    let Seen { depth, chain, .. } = *seen;
                    self.command(Seen { words: words.into(), inputs, doubt, depth, chain });
                }
                // `fd -Hx command`, `fd -xcommand`, `fd --exec=command`
                ArgWord::Known(known) if row.name != "find" && known.starts_with('-') => {
                    let short = !known.starts_with("--") && known.contains(['x', 'X']);
                    if short || known.starts_with("--exec") {
                        self.glued(row.name, known, &seen.words[at + 1..], seen);
                        guessed.get_or_insert(at);
                    }
                }
                ArgWord::Known(_) => {}
                // It may be such an option, and the words behind it a command.
                ArgWord::One(unknown) if unknown.start == WordStart::Any => {
                    guessed.get_or_insert(at);
                }
                ArgWord::Open(_) if word.hides_words() => self.hide_word(word),
                ArgWord::One(_) | ArgWord::Open(_) => {}
            }
        }
        if let Some(at) = guessed {
            self.later_words(row.name, &seen.words.behind(at), seen.doubt.clone(), seen.depth);
        }
    }

    /// Texts behind options: `rsync -e text`, `rg --pre=text`.
    fn options(&mut self, options: &[&str], seen: &Seen<'_>) {
        for (at, word) in seen.words.iter().enumerate().skip(1) {
            if word.hides_words() {
                self.hide_word(word);
            }
            for (option, glued) in
                options.iter().filter_map(|it| Some((it, behind_option(it, word.text())?)))
            {
                let text = match glued {
                    "" => seen.words.get(at + 1),
                    _ => Some(word),
                };
                let Some(text) = text else { continue };
                let Some(mut known) = text.known() else {
                    self.hide_word(text);
                    continue;
                };
                if !glued.is_empty() {
                    known = glued.trim_start_matches("exec=");
                }
                // `-o ProxyCommand=text`
                if *option == "-o" {
                    known = known.split_once(['=', ' ']).map_or(known, |(_, text)| text);
                }
                let guess = || Arc::from(format!("`{}` may run a text", word.written()));
                let spelled_out = word.text().starts_with(option);
                let doubt = seen.doubt.clone().or((!spelled_out).then(guess));
                self.text(known, doubt.as_ref(), seen.depth, "sh");
            }
        }
    }

    /// A setting of git: a text for a shell, or words of git's own.
    fn setting(&mut self, key: &str, text: &str, seen: &Seen<'_>) {
        let own = text.trim_start_matches('!');
        self.text(own, seen.doubt.as_ref(), seen.depth, "sh");
        if own == text && key.to_ascii_lowercase().starts_with("alias.") {
            let doubt = Arc::from(format!("`{key}` is a command of git"));
            self.text(&format!("git {text} $@"), Some(&doubt), seen.depth, "sh");
        }
    }

    /// The texts in git's settings, and the words of subcommands that run them.
    fn git(&mut self, seen: &Seen<'_>) {
        let words = &seen.words;
        let subcommand = subcommand_at(words).unwrap_or(1);
        let sets_program = |key: &str| !git::HARMLESS_KEYS.iter().any(|safe| key.starts_with(safe));
        for pair in words[1..].windows(2) {
            let setting = match pair[0].known() {
                Some("-c" | "--config-env" | "--config") => &pair[1],
                Some(_) | None => continue,
            };
            match (setting.known(), setting.text().split_once('=')) {
                (_, Some((key, _))) if !key.contains(HOLE) && !sets_program(key) => {}
                (Some(_), Some((key, text))) => self.setting(key, text, seen),
                (Some(_), None) => {}
                (None, _) => self.hide_word(setting),
            }
        }
        if let Some(word) = words.get(subcommand).filter(|word| word.hides_words()) {
            self.hide_word(word);
        }
        let marked = |word: &ArgWord| {
            let known = word.known()?;
            known.strip_prefix('!').or(known.strip_prefix("ext::")).map(str::to_owned)
        };
        for text in words[1..].iter().filter_map(marked) {
            self.text(&text, seen.doubt.as_ref(), seen.depth, "sh");
        }
        let name = words.get(subcommand).and_then(ArgWord::known);
        let rest = words.get(subcommand + 1..).unwrap_or_default();
        for (at, word) in rest.iter().enumerate() {
            let value = rest.get(at + 1);
            let key = word.known().filter(|key| key.contains('.') && !key.starts_with('-'));
            if let (Some("config"), Some(key), Some(value)) = (name, key, value)
                && sets_program(key)
            {
                match value.known() {
                    Some(text) => self.setting(key, text, seen),
                    None => self.hide_word(value),
                }
            }
            if !git::names_program(name.unwrap_or_default(), word.text()) {
                continue;
            }
            let value = value.filter(|_| !word.text().contains('='));
            if let Some(unknown) =
                [Some(word), value].into_iter().flatten().find(|it| it.known().is_none())
            {
                self.hide_word(unknown);
            }
            self.glued("git", word.text(), &rest[at + 1..], seen);
            if let Some(text) = value.and_then(ArgWord::known) {
                self.text(text, Some(&Arc::from("git may run it")), seen.depth, "sh");
                if let Some((key, text)) = text.split_once('=') {
                    self.setting(key, text, seen);
                }
            }
        }
        if name.is_some_and(|name| git::RUN_THEIR_WORDS.contains(&name)) {
            let seen = Seen {
                words: words.behind(subcommand),
                inputs: Vec::new(),
                doubt: seen.doubt.clone(),
                depth: seen.depth,
                chain: seen.chain,
            };
            if let Some(row) = runner("watch") {
                self.texts(row, &seen);
            }
        }
    }
}

/// The name of the program that a word is, with holes where it is not known.
fn program(word: &ArgWord) -> Option<&str> {
    match word {
        ArgWord::Known(word) => Some(base_name(word)),
        _ if word.hides_words() => None,
        ArgWord::One(unknown) | ArgWord::Open(unknown) => Some(base_name(&unknown.text)),
    }
}

/// What stands behind an option in its own word, if the word holds the option, perhaps among others or by
/// its first letters; nothing if its text is the next word.
fn behind_option<'a>(option: &str, word: &'a str) -> Option<&'a str> {
    if option.len() > 2 {
        let (name, text) = word.split_once('=').unwrap_or((word, ""));
        let fits = name == option || (name.len() > 3 && option.starts_with(name));
        return (fits && !word.ends_with('=')).then_some(text);
    }
    let letters = word.strip_prefix('-')?;
    let at = letters.find(&option[1..])?;
    let text = &letters[at + 1..];
    let cluster = letters[..at].bytes().all(|letter| letter.is_ascii_alphanumeric());
    cluster.then_some(text.strip_prefix('=').unwrap_or(text))
}

/// True if a shell that reads this file may read an input of its own.
fn is_input(file: &str) -> bool {
    let name = base_name(file);
    let of_system = file.trim_start_matches(['/', '.']);
    matches!(name, "-" | "stdin")
        || (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()))
        || (file.starts_with('/')
            && (of_system.starts_with("dev/") || of_system.starts_with("proc/")))
}

/// The name of a file of which at most the directory is not known.
fn file_name(word: &ArgWord) -> Option<&str> {
    let text = word.text();
    let name = base_name(text);
    (!name.is_empty() && (word.known().is_some() || (text.contains('/') && !name.contains(HOLE))))
        .then_some(name)
}
