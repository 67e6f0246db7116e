//! Keys and lines that were meant for what stood on the screen a moment ago, told apart by the time. Pure.

use super::TerminalMode;
use crate::screen::{Focus, KeyPress, QuestionShown, Screen, ScreenInput, answered_before};
use protocol::ids::CallId;
use std::time::{Duration, Instant};

/// How long a question has to be on the screen before Enter or a line answers it. Who is typing when it appears needs
/// about that long to stop.
const READ_FIRST: Duration = Duration::from_millis(250);

/// What Enter or a line is for while a question is open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AskedFor {
    call: CallId,
    digest: String,
    /// A question of the model has several, one after the other.
    step: usize,
    /// A rule and a form are read on their own.
    focus: Focus,
}

impl AskedFor {
    fn of(screen: &Screen) -> Option<Self> {
        let asked = screen.question()?;
        let (call, digest) = (asked.call.clone(), asked.digest.clone());
        Some(Self { call, digest, step: answered_before(screen), focus: screen.focus() })
    }
}

/// Since when the person can read what is asked.
#[derive(Debug, Default)]
pub(super) struct ReadFirst {
    read: Option<(AskedFor, Instant)>,
    /// When the line of a rule or a form was last taken from under the keys.
    taken: Option<Instant>,
}

impl ReadFirst {
    /// So much of the question was painted.
    pub(super) fn painted(&mut self, screen: &Screen, shown: Option<QuestionShown>, now: Instant) {
        let asked = AskedFor::of(screen);
        if asked.as_ref() == self.read.as_ref().map(|(read, _)| read) {
            return;
        }
        let is_in_view = match shown {
            Some(QuestionShown::Whole | QuestionShown::InPart) => true,
            Some(QuestionShown::Hidden) | None => false,
        };
        self.read = asked.filter(|_| is_in_view).map(|asked| (asked, now));
    }

    /// A message was handled; the keys had this target before.
    pub(super) fn followed(&mut self, before: Focus, screen: &Screen, now: Instant) {
        if before != Focus::Line && screen.focus() == Focus::Line {
            self.taken = Some(now);
        }
    }

    /// The input, or what it is where it was meant for something else.
    pub(super) fn meant(
        &self,
        input: ScreenInput,
        (screen, mode): (&Screen, &TerminalMode),
        now: Instant,
    ) -> ScreenInput {
        let was_taken = self.taken.is_some_and(|at| is_recent(at, now));
        match (input, mode) {
            (ScreenInput::Key(KeyPress::Enter), TerminalMode::Keys(_))
                if screen.focus() == Focus::Line && self.is_unread(screen, now) =>
            {
                ScreenInput::EnterAhead
            }
            (ScreenInput::Key(KeyPress::Escape | KeyPress::Interrupt), _) if was_taken => {
                ScreenInput::EscapeAhead
            }
            (ScreenInput::Line(line), TerminalMode::Lines)
                if is_no_command(&line) && (was_taken || self.is_unread(screen, now)) =>
            {
                ScreenInput::LineAhead
            }
            (input, _) => input,
        }
    }

    /// True if a question is open that nobody can have read yet.
    fn is_unread(&self, screen: &Screen, now: Instant) -> bool {
        let Some(asked) = AskedFor::of(screen) else { return false };
        let since = self.read.as_ref().filter(|(read, _)| *read == asked).map(|(_, since)| *since);
        since.is_none_or(|since| is_recent(since, now))
    }
}

fn is_recent(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) < READ_FIRST
}

fn is_no_command(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with(':')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::attach::LeaderKey;
    use crate::screen::AttachOptions;
    use protocol::client::{ClientEvent, ClientRights, OtherClients, ToClient};
    use protocol::confinement::Network;
    use protocol::ids::SessionId;
    use protocol::judgement::{Ask, PermissionMode, Question};

    fn session() -> SessionId {
        SessionId("s".to_owned())
    }

    fn screen() -> Screen {
        let options = AttachOptions {
            rights: ClientRights::Full,
            others: OtherClients::Stay,
            prompt: None,
            leader: "Ctrl-\\".to_owned(),
            keys: crate::LineKeys::Emacs,
            busy: protocol::client::WhileBusy::Queue,
            first_words: None,
        };
        let mut screen = Screen::new(options);
        screen.update(ScreenInput::Message(ToClient::Opened {
            session: session(),
            name: String::new(),
            model: "model-1".to_owned(),
            facts: protocol::client::ModelFacts::default(),
            tools: Vec::new(),
            mode: PermissionMode::Ask,
            network: Network::Off,
            hosts: Vec::new(),
            sandbox: "sandbox: full (namespaces); project".to_owned(),
            last_seq: 0,
            warnings: Vec::new(),
            temp: protocol::confinement::FilePath::from(std::path::PathBuf::from("/t/tmp")),
        }));
        let name = "terminal 1".to_owned();
        screen.update(ScreenInput::Message(ToClient::Attached { session: session(), name }));
        screen
    }

    fn happens(screen: &mut Screen, event: ClientEvent) {
        screen.update(ScreenInput::Message(ToClient::Event { session: session(), seq: 1, event }));
        screen.question_painted(QuestionShown::Whole);
    }

    fn call(number: u32) -> CallId {
        CallId { session: session(), number }
    }

    fn asks(screen: &mut Screen, number: u32, digest: &str) {
        let question = Question {
            call: call(number),
            tool: "bash".to_owned(),
            input: "{}".to_owned(),
            preview: "ls".to_owned(),
            confinement: String::new(),
            reason: "mode ask".to_owned(),
            widens: Vec::new(),
            ask: Ask::Call { rules: vec!["bash:ls".to_owned()], modes: Vec::new() },
            deadline: 0,
            digest: digest.to_owned(),
        };
        happens(screen, ClientEvent::Asked { question });
    }

    fn keys() -> TerminalMode {
        TerminalMode::Keys(LeaderKey::parse("Ctrl-\\").unwrap())
    }

    fn after(begin: Instant, milliseconds: u64) -> Instant {
        begin + Duration::from_millis(milliseconds)
    }

    #[derive(Debug, PartialEq, Eq)]
    enum Meant {
        ForThis,
        ForEarlier,
    }

    fn enter(read: &ReadFirst, screen: &Screen, now: Instant) -> Meant {
        let key = ScreenInput::Key(KeyPress::Enter);
        let input = read.meant(key, (screen, &keys()), now);
        let is_same = matches!(input, ScreenInput::Key(KeyPress::Enter));
        assert!(is_same || matches!(input, ScreenInput::EnterAhead));
        if is_same { Meant::ForThis } else { Meant::ForEarlier }
    }

    fn line(read: &ReadFirst, screen: &Screen, text: &str, now: Instant) -> Meant {
        let input = ScreenInput::Line(text.to_owned());
        let input = read.meant(input, (screen, &TerminalMode::Lines), now);
        let is_same = matches!(&input, ScreenInput::Line(line) if line == text);
        assert!(is_same || matches!(input, ScreenInput::LineAhead));
        if is_same { Meant::ForThis } else { Meant::ForEarlier }
    }

    const WHOLE: Option<QuestionShown> = Some(QuestionShown::Whole);

    #[test]
    fn enter_counts_a_quarter_second_after_the_question_came_into_view() {
        let (mut read, mut screen, begin) = (ReadFirst::default(), screen(), Instant::now());
        assert_eq!(enter(&read, &screen, begin), Meant::ForThis, "nothing is asked");
        asks(&mut screen, 1, "d");
        assert_eq!(enter(&read, &screen, begin), Meant::ForEarlier, "it was not painted");
        // A pager is in front of it.
        read.painted(&screen, Some(QuestionShown::Hidden), begin);
        assert_eq!(enter(&read, &screen, after(begin, 900)), Meant::ForEarlier);
        read.painted(&screen, WHOLE, after(begin, 1000));
        read.painted(&screen, WHOLE, after(begin, 1200));
        assert_eq!(enter(&read, &screen, after(begin, 1080)), Meant::ForEarlier);
        assert_eq!(enter(&read, &screen, after(begin, 1250)), Meant::ForThis);
        // It may be denied before all of it was in view. What it asks changes then.
        asks(&mut screen, 1, "e");
        assert_eq!(enter(&read, &screen, after(begin, 2000)), Meant::ForEarlier);
        read.painted(&screen, Some(QuestionShown::InPart), after(begin, 2000));
        assert_eq!(enter(&read, &screen, after(begin, 2250)), Meant::ForThis);
    }

    #[test]
    fn a_line_counts_a_quarter_second_after_the_question_or_the_rule_was_printed() {
        let (mut read, mut screen, begin) = (ReadFirst::default(), screen(), Instant::now());
        asks(&mut screen, 1, "d");
        assert_eq!(line(&read, &screen, "y", begin), Meant::ForEarlier);
        read.painted(&screen, WHOLE, begin);
        assert_eq!(line(&read, &screen, "y", after(begin, 249)), Meant::ForEarlier);
        assert_eq!(line(&read, &screen, ":q", after(begin, 249)), Meant::ForThis);
        assert_eq!(line(&read, &screen, "a", after(begin, 250)), Meant::ForThis);
        // The second line of a paste is not for the rule that the first one opened.
        screen.update(ScreenInput::Line("a".to_owned()));
        assert_ne!(screen.focus(), Focus::Line);
        assert_eq!(line(&read, &screen, "y", after(begin, 251)), Meant::ForEarlier);
        read.painted(&screen, WHOLE, after(begin, 260));
        assert_eq!(line(&read, &screen, "y", after(begin, 500)), Meant::ForEarlier);
        assert_eq!(line(&read, &screen, "y", after(begin, 510)), Meant::ForThis);
    }

    #[test]
    fn escape_right_behind_the_end_of_a_rules_line_was_meant_for_it() {
        let (mut read, mut screen, begin) = (ReadFirst::default(), screen(), Instant::now());
        let is_ahead = |read: &ReadFirst, screen: &Screen, key, now| {
            let input = read.meant(ScreenInput::Key(key), (screen, &keys()), now);
            matches!(input, ScreenInput::EscapeAhead)
        };
        asks(&mut screen, 1, "d");
        screen.update(ScreenInput::Line("a".to_owned()));
        let before = screen.focus();
        assert_ne!(before, Focus::Line);
        read.followed(before, &screen, begin);
        assert!(!is_ahead(&read, &screen, KeyPress::Escape, begin), "the line is there");
        let basis = "answered by terminal 2".to_owned();
        happens(&mut screen, ClientEvent::Decided { call: call(1), allowed: false, basis });
        read.followed(before, &screen, begin);
        for key in [KeyPress::Escape, KeyPress::Interrupt] {
            assert!(is_ahead(&read, &screen, key, after(begin, 249)));
            assert!(!is_ahead(&read, &screen, key, after(begin, 250)));
        }
        assert!(!is_ahead(&read, &screen, KeyPress::Char('x'), begin));
        assert_eq!(line(&read, &screen, "y", after(begin, 249)), Meant::ForEarlier);
        // A person who leaves the line takes nothing away.
        read = ReadFirst::default();
        read.followed(Focus::Line, &screen, begin);
        assert!(!is_ahead(&read, &screen, KeyPress::Escape, begin));
    }
}
