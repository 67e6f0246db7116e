//! Questions that wait for a person: those of this session's calls, and of its sub-agents'. A question is open
//! from the moment that people see it until its call has a verdict or an end. The session actor shows and sends
//! what is returned here. Pure; `C` is the address of a client.

use call::PendingQuestion;
use journal::JournalRecord;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{Basis, JudgedCall, PersonAnswer, Question, Verdict};
use setup::session_spec::is_below;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// An answer, the terminal that gave it, and the client to tell if it does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentAnswer<C> {
    pub(super) call: CallId,
    pub(super) by: String,
    pub(super) answer: PersonAnswer,
    pub(super) client: C,
}

/// Whether people have seen a question before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// They have not.
    First,
    /// It is open already: the broker died, and puts it again.
    Again,
}

/// How far a question is about a call that waits for its turn.
#[derive(Debug)]
enum Ahead {
    /// The call before it has no verdict.
    Held(Box<JudgedCall>),
    /// The broker has it.
    Put(Box<JudgedCall>),
    /// A person has answered, or a rule.
    Answered(Box<JudgedCall>),
}

/// Whether answers died with the broker that kept them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswersLost {
    None,
    Some,
}

/// What an answer does to the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnThen {
    GoesOn,
    Stops,
}

/// The part of people in a verdict.
#[derive(Debug, PartialEq)]
pub(super) struct Judged<C> {
    /// The answer that it follows.
    pub(super) answer: Option<SentAnswer<C>>,
    /// The question, if a person allowed the call.
    pub(super) allowed: Option<Question>,
}

/// All questions of a session that have no verdict.
#[derive(Debug)]
pub(super) struct Questions<C> {
    /// People see them.
    open: BTreeMap<CallId, Question>,
    /// Their hooks run: no person sees them yet.
    held: BTreeMap<CallId, Question>,
    /// Of sub-agents, in whose sessions they are judged.
    of_tasks: BTreeMap<CallId, Question>,
    /// Answers that the broker has, which settles them in their order.
    sent: VecDeque<SentAnswer<C>>,
    /// About calls that wait for their turn, and have no actor.
    ahead: BTreeMap<CallId, Ahead>,
    /// Those on record of an earlier supervisor, whose calls have not come back yet.
    recorded: HashMap<u32, PendingQuestion>,
}

impl<C> Questions<C> {
    /// With those that the journal has.
    pub(super) fn resumed(recorded: impl IntoIterator<Item = (u32, PendingQuestion)>) -> Self {
        Self {
            open: BTreeMap::new(),
            held: BTreeMap::new(),
            of_tasks: BTreeMap::new(),
            sent: VecDeque::new(),
            ahead: BTreeMap::new(),
            recorded: recorded.into_iter().collect(),
        }
    }

    /// The call of this case waits for its turn. It is put once the call before it has a verdict, so that people see
    /// them in their order.
    pub(super) fn hold_ahead(&mut self, case: JudgedCall) {
        self.ahead.entry(case.call.id.clone()).or_insert_with(|| Ahead::Held(Box::new(case)));
    }

    /// The cases that are to be put now.
    pub(super) fn put_ahead(&mut self) -> Vec<JudgedCall> {
        let mut cases = Vec::new();
        for waiting in self.ahead.values_mut() {
            if let Ahead::Held(case) = waiting {
                cases.push(JudgedCall::clone(case));
                *waiting = Ahead::Put(case.clone());
            }
        }
        cases
    }

    /// A new broker knows neither these cases nor the answers to them.
    pub(super) fn hold_ahead_again(&mut self) -> AnswersLost {
        let mut lost = AnswersLost::None;
        for waiting in self.ahead.values_mut() {
            if let Ahead::Answered(_) = waiting {
                lost = AnswersLost::Some;
            }
            if let Ahead::Put(case) | Ahead::Answered(case) = waiting {
                *waiting = Ahead::Held(case.clone());
            }
        }
        lost
    }

    /// True if its turn has not come.
    pub(super) fn is_ahead(&self, call: &CallId) -> bool {
        self.ahead.contains_key(call)
    }

    /// A person answered before its turn.
    pub(super) fn answered_ahead(&mut self, call: &CallId) {
        if let Some(waiting) = self.ahead.get_mut(call)
            && let Ahead::Put(case) = waiting
        {
            *waiting = Ahead::Answered(case.clone());
        }
    }

    /// Its turn has come.
    pub(super) fn turn_came(&mut self, call: &CallId) {
        self.ahead.remove(call);
    }

    /// No call waits any more. Returns those whose turn did not come.
    pub(super) fn take_ahead(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.ahead).into_keys().collect()
    }

    /// The question that an earlier supervisor put about this call, which begins again.
    pub(super) fn take_recorded(&mut self, call: u32) -> Option<PendingQuestion> {
        self.recorded.remove(&call)
    }

    /// Its hooks run first.
    pub(super) fn hold(&mut self, question: Question) {
        self.held.insert(question.call.clone(), question);
    }

    /// The hooks of this call's question have ended. None if it was closed meanwhile.
    pub(super) fn released(&mut self, call: u32) -> Option<Question> {
        let held = self.held.keys().find(|held| held.number == call)?.clone();
        self.held.remove(&held)
    }

    /// Nobody answers for hooks any more.
    pub(super) fn release_all(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.held).into_values().collect()
    }

    /// People see it from now on.
    pub(super) fn put(&mut self, question: Question) -> Put {
        match self.open.insert(question.call.clone(), question) {
            None => Put::First,
            Some(_) => Put::Again,
        }
    }

    /// True if its time was over before this moment, in milliseconds of Unix time. Its timer sleeps with the
    /// machine.
    pub(super) fn is_overdue(&self, call: &CallId, now: u64) -> bool {
        self.open.get(call).is_some_and(|question| question.deadline <= now)
    }

    /// An answer goes to the broker, which says whether it counts.
    pub(super) fn answered(&mut self, answer: SentAnswer<C>) {
        self.sent.push_back(answer);
    }

    /// The broker took the oldest answer about this call, or rejected it.
    pub(super) fn settled(&mut self, call: &CallId) -> Option<SentAnswer<C>> {
        let at = self.sent.iter().position(|sent| sent.call == *call)?;
        self.sent.remove(at)
    }

    /// The broker died with these answers. It will put their questions again.
    pub(super) fn lost(&mut self) -> Vec<SentAnswer<C>> {
        std::mem::take(&mut self.sent).into()
    }

    /// The call has a verdict, or has ended. Returns the question that people saw.
    pub(super) fn close(&mut self, call: &CallId) -> Option<Question> {
        self.held.remove(call);
        self.open.remove(call)
    }

    /// A verdict about this call, by itself or because of an answer.
    pub(super) fn judged(&mut self, call: &CallId, verdict: &Verdict) -> Judged<C> {
        let (person, is_allowed) = match verdict {
            Verdict::Allow(
                Basis::Person(by) | Basis::NotedByPerson { by, .. } | Basis::Answered { by, .. },
            ) => (Some(by), true),
            Verdict::Deny(Basis::Person(by), _) => (Some(by), false),
            Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_) => (None, false),
        };
        let settled = person.is_some().then(|| self.settled(call)).flatten();
        let closed = match verdict {
            Verdict::Ask(_) => None,
            Verdict::Allow(_) | Verdict::Deny(..) => self.close(call),
        };
        Judged {
            answer: settled.filter(|sent| Some(&sent.by) == person),
            allowed: closed.filter(|_| is_allowed),
        }
    }

    /// The records of a call close the questions of its server.
    pub(super) fn close_recorded(&mut self, session: &SessionId, records: &[JournalRecord]) {
        for record in records {
            if let Some(number) = record.closed_question() {
                self.close(&CallId { session: session.clone(), number });
            }
        }
    }

    /// A sub-agent waits for a person.
    pub(super) fn put_of_task(&mut self, question: Question) {
        self.of_tasks.insert(question.call.clone(), question);
    }

    /// Its session has closed it; true if it was open.
    pub(super) fn close_of_task(&mut self, call: &CallId) -> bool {
        self.of_tasks.remove(call).is_some()
    }

    /// Those of a sub-agent's session and of the sessions below it.
    pub(super) fn below(&self, child: &SessionId) -> Vec<CallId> {
        let is_its = |call: &&CallId| call.session == *child || is_below(&call.session, child);
        self.of_tasks.keys().filter(is_its).cloned().collect()
    }

    /// All that people see, those of this session first.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Question> {
        self.open.values().chain(self.of_tasks.values())
    }

    /// How many of this session's calls wait for a person.
    pub(super) fn waiting(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::judgement::Ask;

    fn call_in(session: &str, number: u32) -> CallId {
        CallId { session: SessionId(session.into()), number }
    }

    fn call(number: u32) -> CallId {
        call_in("0123456789ab", number)
    }

    fn of(call: CallId) -> Question {
        Question {
            call,
            tool: "bash".into(),
            input: "{}".into(),
            preview: String::new(),
            confinement: String::new(),
            reason: String::new(),
            widens: Vec::new(),
            ask: Ask::Call { rules: Vec::new(), modes: Vec::new() },
            deadline: 1000,
            digest: "d".into(),
        }
    }

    fn sent(number: u32, by: &str, client: u8) -> SentAnswer<u8> {
        let (call, by, answer) = (call(number), by.to_owned(), PersonAnswer::Once);
        SentAnswer { call, by, answer, client }
    }

    fn shown(questions: &Questions<u8>) -> Vec<CallId> {
        questions.shown().map(|question| question.call.clone()).collect()
    }

    #[test]
    fn nobody_sees_a_question_while_its_hooks_run() {
        let mut questions = Questions::<u8>::resumed([]);
        questions.hold(of(call(1)));
        questions.hold(of(call(2)));
        assert_eq!((shown(&questions), questions.waiting()), (vec![], 0));
        assert_eq!(questions.released(3), None);
        let released = questions.released(1).unwrap();
        assert_eq!(questions.put(released), Put::First);
        assert_eq!(questions.released(1), None, "it is held no more");
        assert_eq!((shown(&questions), questions.waiting()), (vec![call(1)], 1));
        // The conversation dies with the hooks of the other one.
        assert_eq!(questions.release_all(), [of(call(2))]);
        assert_eq!(questions.release_all(), []);
    }

    #[test]
    fn a_call_that_ends_meanwhile_takes_its_question_along() {
        let mut questions = Questions::<u8>::resumed([]);
        questions.hold(of(call(1)));
        assert_eq!(questions.close(&call(1)), None, "nobody saw it");
        assert_eq!(questions.released(1), None, "its hooks decide nothing any more");
        questions.put(of(call(2)));
        assert_eq!(questions.close(&call(2)), Some(of(call(2))));
        assert_eq!(questions.close(&call(2)), None);
        assert_eq!(shown(&questions), []);
    }

    #[test]
    fn a_question_that_is_put_again_is_the_same_one() {
        let mut questions = Questions::<u8>::resumed([]);
        assert_eq!(questions.put(of(call(1))), Put::First);
        let again = Question { digest: "e".into(), ..of(call(1)) };
        assert_eq!(questions.put(again.clone()), Put::Again);
        assert_eq!(questions.waiting(), 1);
        assert_eq!(questions.close(&call(1)), Some(again));
        assert_eq!(questions.put(of(call(1))), Put::First, "after it was closed");
    }

    #[test]
    fn answers_are_settled_in_their_order_and_each_once() {
        let mut questions = Questions::resumed([]);
        for answer in [sent(1, "one", 1), sent(2, "two", 2), sent(1, "three", 3)] {
            questions.answered(answer);
        }
        assert_eq!(questions.settled(&call(3)), None);
        assert_eq!(questions.settled(&call(1)), Some(sent(1, "one", 1)));
        assert_eq!(questions.settled(&call(1)), Some(sent(1, "three", 3)));
        assert_eq!(questions.settled(&call(1)), None);
        assert_eq!(questions.lost(), [sent(2, "two", 2)]);
        assert_eq!(questions.lost(), []);
    }

    #[test]
    fn a_verdict_of_a_person_takes_the_answer_and_closes_the_question() {
        let mut questions = Questions::resumed([]);
        let person = |by: &str| Basis::Person(by.to_owned());
        for (number, by) in [(1, "one"), (2, "two"), (3, "three")] {
            questions.put(of(call(number)));
            questions.answered(sent(number, by, 1));
        }
        let asked = questions.judged(&call(1), &Verdict::Ask(of(call(1))));
        assert_eq!(asked, Judged { answer: None, allowed: None }, "it stays open");
        let allowed = questions.judged(&call(1), &Verdict::Allow(person("one")));
        let (answer, question) = (Some(sent(1, "one", 1)), Some(of(call(1))));
        assert_eq!(allowed, Judged { answer, allowed: question });
        let denied = questions.judged(&call(2), &Verdict::Deny(person("two"), String::new()));
        assert_eq!(denied, Judged { answer: Some(sent(2, "two", 1)), allowed: None });
        // A rule was learned meanwhile: the answer is still to come.
        let rule = Verdict::Allow(Basis::Unjudgeable("a rule".into()));
        assert_eq!(questions.judged(&call(3), &rule), Judged { answer: None, allowed: None });
        assert_eq!((questions.waiting(), questions.lost().len()), (0, 1));
    }

    #[test]
    fn a_question_is_overdue_from_its_deadline_on() {
        let mut questions = Questions::<u8>::resumed([]);
        assert!(!questions.is_overdue(&call(1), 5000), "none is open");
        questions.put(of(call(1)));
        assert!(!questions.is_overdue(&call(1), 999));
        assert!(questions.is_overdue(&call(1), 1000));
    }

    #[test]
    fn questions_of_sub_agents_are_shown_behind_and_end_with_their_sessions() {
        let mut questions = Questions::<u8>::resumed([]);
        let own = "0123456789ab";
        let [child, grandchild, sibling] = [1, 2, 3].map(|number| match number {
            1 => call_in(&format!("{own}-1"), 7),
            2 => call_in(&format!("{own}-1-7"), 1),
            _ => call_in(&format!("{own}-11"), 1),
        });
        for call in [&child, &grandchild, &sibling] {
            questions.put_of_task(of(call.clone()));
        }
        questions.put(of(call(2)));
        assert_eq!(shown(&questions)[0], call(2));
        assert_eq!((shown(&questions).len(), questions.waiting()), (4, 1));
        let of_child = questions.below(&SessionId(format!("{own}-1")));
        assert_eq!(of_child, [child.clone(), grandchild]);
        assert!(questions.close_of_task(&child) && !questions.close_of_task(&child));
        assert_eq!(questions.close(&sibling), None, "its own session closes it");
        assert_eq!(shown(&questions).len(), 3);
    }

    #[test]
    fn what_an_earlier_supervisor_asked_is_given_to_its_call_once() {
        let recorded = PendingQuestion { digest: "d".into(), deadline: 9 };
        let mut questions = Questions::<u8>::resumed([(4, recorded.clone())]);
        assert_eq!((shown(&questions), questions.waiting()), (vec![], 0));
        assert_eq!(questions.take_recorded(5), None);
        assert_eq!(questions.take_recorded(4), Some(recorded));
        assert_eq!(questions.take_recorded(4), None);
    }
}
