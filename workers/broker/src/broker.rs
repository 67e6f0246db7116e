//! The broker as a pure machine: a word in, words out.
//!
//! It keeps the rules of each session and the open questions. It fails closed. Before a session's
//! rules arrive (also after a restart of the broker) its calls wait, and with rules that the broker
//! cannot parse it refuses every call. It has no clock: the supervisor watches deadlines and sends
//! `Forget`.

use crate::server_questions::{AskedByServer, ServerQuestions};
use approval::SessionRules;
use protocol::broker::{FromBroker, ToBroker};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{
    Ask, Basis, JudgedCall, PersonAnswer, Question, REFUSED_BY_PERSON, RuleSet, Verdict,
};
use protocol::log::{LogLevel, LogLine};
use protocol::mcp::{ServerQuestion, ServerReply};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Most questions open at once. Stops a session that proposes without end from filling memory; a
/// person would not answer the hundredth.
pub const OPEN_CAP: usize = 1_000;
/// Number of settled questions to remember, to explain why a second answer comes too late.
const MAX_SETTLED: usize = 256;

/// Rules and open questions of all sessions.
#[derive(Debug, Default)]
pub struct Broker {
    sessions: BTreeMap<SessionId, BrokerSession>,
    open: BTreeMap<CallId, OpenQuestion>,
    /// Cases of sessions whose rules have not come.
    waiting: BTreeMap<CallId, JudgedCall>,
    /// What people said about calls that wait for their turn.
    kept: BTreeMap<CallId, KeptVerdict>,
    settled: VecDeque<(CallId, String)>,
    of_servers: ServerQuestions,
}

/// The rules of a session.
#[derive(Debug)]
enum BrokerSession {
    /// These rules, ready to judge.
    Rules(Box<SessionRules>),
    /// Rules came and could not be followed, and why.
    Broken(String),
}

/// A question without an answer yet.
#[derive(Debug)]
struct OpenQuestion {
    case: JudgedCall,
    digest: String,
    reason: String,
    ask: Ask,
    turn: Turn,
}

/// Whether the turn of a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Others of its answer run.
    Waits,
    Came,
}

impl Turn {
    /// The word about a verdict on a call.
    fn tells(self, call: CallId, verdict: Verdict) -> FromBroker {
        match self {
            Self::Waits => FromBroker::Ahead { call, verdict },
            Self::Came => FromBroker::Verdict { call, verdict },
        }
    }
}

/// A person's verdict on a call that waits, bound to what they were asked.
#[derive(Debug)]
struct KeptVerdict {
    digest: String,
    reason: String,
    verdict: Verdict,
}

/// Behind the reason of a question that is put again.
const ASKED_AGAIN: &str = "you answered before, and what it may do has changed since";

impl Broker {
    /// Takes a word and answers it.
    pub fn step(&mut self, message: ToBroker) -> Vec<FromBroker> {
        match message {
            ToBroker::Rules { session, rules } => self.set_rules(session, &rules),
            ToBroker::Judge(case) => self.submit(*case).into_iter().collect(),
            ToBroker::JudgeAhead(case) => self.judge_ahead(*case).into_iter().collect(),
            ToBroker::Answer { call, digest, answer, by } => {
                vec![self.answer(call, &digest, answer, by)]
            }
            ToBroker::AskForServer { call, ask, question } => {
                self.ask_for_server(call, AskedByServer { ask, question: *question })
            }
            ToBroker::Forget(call) => {
                self.waiting.remove(&call);
                self.kept.remove(&call);
                let of_server = self.of_servers.forget(&call);
                if self.open.remove(&call).is_some() || of_server {
                    self.settle(call, "it was withdrawn".into());
                }
                Vec::new()
            }
            ToBroker::Ping(number) => vec![FromBroker::Pong(number)],
            ToBroker::EndSession(session) => {
                self.sessions.remove(&session);
                self.of_servers.end_session(&session);
                self.waiting.retain(|call, _| call.session != session);
                self.open.retain(|call, _| call.session != session);
                self.kept.retain(|call, _| call.session != session);
                self.settled.retain(|(call, _)| call.session != session);
                Vec::new()
            }
        }
    }

    /// Takes a session's rules. Open questions that they deny are settled at once, and so is a plan once a
    /// person has left mode `plan`; others stay open, since only the person asked may say yes.
    fn set_rules(&mut self, session: SessionId, set: &RuleSet) -> Vec<FromBroker> {
        let mut out = Vec::new();
        let mut known = self.sessions.values();
        let shared = known.find_map(|session| match session {
            BrokerSession::Rules(rules) => rules.shared_with(set),
            BrokerSession::Broken(_) => None,
        });
        let rules_state = match shared.map_or_else(|| SessionRules::new(set), Ok) {
            Ok(rules) => BrokerSession::Rules(Box::new(rules)),
            Err(error) => {
                let text = format!(
                    "the rules of session {session} are invalid, so all its calls are refused: {error}"
                );
                out.push(FromBroker::Log(LogLine { level: LogLevel::Error, text }));
                BrokerSession::Broken(error.to_string())
            }
        };
        self.sessions.insert(session.clone(), rules_state);
        let open: Vec<CallId> =
            self.open.keys().filter(|call| call.session == session).cloned().collect();
        for call in open {
            let Some(OpenQuestion { case, ask, turn, .. }) = self.open.get(&call) else { continue };
            let verdict = self.verdict(case);
            let is_settled = match verdict {
                Verdict::Deny(..) => true,
                // The change of the mode is a person's yes. One that waits is judged again at its turn.
                Verdict::Allow(_) => matches!(ask, Ask::Plan { .. }) || *turn == Turn::Waits,
                Verdict::Ask(_) => false,
            };
            if is_settled {
                let turn = *turn;
                self.open.remove(&call);
                self.settle(call.clone(), "new rules settled it".into());
                out.push(turn.tells(call, verdict));
            }
        }
        let (ready, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(call, _)| call.session == session);
        self.waiting = waiting;
        out.extend(ready.into_values().map(|case| self.judge(case)));
        if let Some(BrokerSession::Rules(rules)) = self.sessions.get(&session) {
            out.extend(self.of_servers.on_rules(&session, rules));
        }
        out
    }

    /// Puts a server's question to a person, now or when the rules of its session come.
    fn ask_for_server(&mut self, call: CallId, asked: AskedByServer) -> Vec<FromBroker> {
        let unasked = |call, why: &str, asked: &ServerQuestion| {
            let note = format!(
                "[agentd did not pass on a question of the MCP server {}: {why}]",
                protocol::hidden::visible(&asked.server)
            );
            vec![FromBroker::Replied {
                call,
                reply: ServerReply::Cancel,
                by: None,
                note: Some(note),
            }]
        };
        if self.of_servers.count() >= OPEN_CAP {
            return unasked(call, "too many questions are open", &asked.question);
        }
        match self.sessions.get(&call.session) {
            Some(BrokerSession::Rules(rules)) => vec![self.of_servers.ask(call, asked, rules)],
            Some(BrokerSession::Broken(_)) => {
                unasked(call, "the permission rules are invalid", &asked.question)
            }
            None => {
                self.of_servers.wait(call, asked);
                Vec::new()
            }
        }
    }

    /// Takes a case: judged at once, or when the rules of its session come.
    fn submit(&mut self, case: JudgedCall) -> Option<FromBroker> {
        let (known, call) =
            (self.sessions.contains_key(&case.call.id.session), case.call.id.clone());
        if known || self.waiting.len() >= OPEN_CAP {
            return Some(self.judge(case));
        }
        self.waiting.insert(call, case);
        None
    }

    /// Asks a person about a call that waits for its turn, if its verdict would be to ask.
    fn judge_ahead(&mut self, case: JudgedCall) -> Option<FromBroker> {
        let call = case.call.id.clone();
        let known = self.sessions.contains_key(&call.session);
        if !known || self.kept.contains_key(&call) || self.kept.len() >= OPEN_CAP {
            return None;
        }
        let Verdict::Ask(question) = self.verdict(&case) else { return None };
        self.put(case, question, Turn::Waits)
            .ok()
            .map(|verdict| FromBroker::Ahead { call, verdict })
    }

    fn judge(&mut self, case: JudgedCall) -> FromBroker {
        let call = case.call.id.clone();
        let kept = self.kept.remove(&call);
        let verdict = match (self.verdict(&case), kept) {
            (Verdict::Ask(question), Some(kept))
                if (&kept.digest, &kept.reason) == (&question.digest, &question.reason) =>
            {
                kept.verdict
            }
            // A no holds, whatever rules say since.
            (Verdict::Allow(_), Some(KeptVerdict { verdict: no @ Verdict::Deny(..), .. })) => no,
            (Verdict::Ask(question), kept) => {
                let reason = match kept {
                    Some(_) => format!("{}; {ASKED_AGAIN}", question.reason),
                    None => question.reason.clone(),
                };
                let question = Question { reason, ..question };
                self.put(case, question, Turn::Came).unwrap_or_else(unjudgeable)
            }
            (verdict @ (Verdict::Allow(_) | Verdict::Deny(..)), _) => {
                if self.open.remove(&call).is_some() {
                    self.settle(call.clone(), "its turn came, and rules settled it".into());
                }
                verdict
            }
        };
        FromBroker::Verdict { call, verdict }
    }

    /// Opens a question, or puts it again.
    ///
    /// # Errors
    /// It is not put, and why.
    fn put(
        &mut self,
        case: JudgedCall,
        question: Question,
        turn: Turn,
    ) -> Result<Verdict, &'static str> {
        let (call, count) = (case.call.id.clone(), self.open.len());
        match self.open.get_mut(&call) {
            // As after a restart of the supervisor, or since its turn has come: the same question.
            Some(open) if open.digest == question.digest => {
                open.turn = turn;
                return Ok(Verdict::Ask(question));
            }
            // What it may do has changed since it was asked ahead.
            Some(open) if open.turn == Turn::Waits => {}
            Some(_) => return Err("another call with the same number is waiting for an answer"),
            None if count >= OPEN_CAP => return Err("too many questions are open"),
            None => {}
        }
        let Question { digest, reason, ask, .. } = question.clone();
        self.open.insert(call, OpenQuestion { case, digest, reason, ask, turn });
        Ok(Verdict::Ask(question))
    }

    fn verdict(&self, case: &JudgedCall) -> Verdict {
        match self.sessions.get(&case.call.id.session) {
            // A fault in the judgement itself refuses; it neither ends the process nor lets pass.
            Some(BrokerSession::Rules(rules)) => {
                catch_unwind(AssertUnwindSafe(|| rules.judge(case)))
                    .unwrap_or_else(|_| unjudgeable("judging this call failed"))
            }
            Some(BrokerSession::Broken(error)) => {
                unjudgeable(&format!("the permission rules are invalid: {error}"))
            }
            None => unjudgeable("the broker has no rules for this session"),
        }
    }

    /// Handles an answer. It counts once, and only for the call that the user saw.
    fn answer(
        &mut self,
        call: CallId,
        digest: &str,
        answer: PersonAnswer,
        by: String,
    ) -> FromBroker {
        match self.of_servers.answer(&call, digest, &answer, &by) {
            Some(Ok(reply)) => {
                self.settle(call.clone(), format!("{by} answered first"));
                return FromBroker::Replied { call, reply, by: Some(by), note: None };
            }
            Some(Err(reason)) => return FromBroker::Rejected { call, reason },
            None => {}
        }
        let Some(open) = self.open.get(&call) else {
            let why = self
                .settled
                .iter()
                .rev()
                .find(|(settled, _)| *settled == call)
                .map(|(_, why)| why.as_str());
            let reason = match why {
                Some(why) => format!("question {call} is not open: {why}"),
                None => format!("question {call} is not open"),
            };
            return FromBroker::Rejected { call, reason };
        };
        if open.digest != digest {
            let reason =
                format!("question {call} is no longer about the call that you saw; check it again");
            return FromBroker::Rejected { call, reason };
        }
        let (answer, note) = answer.split_note();
        let is_own_rule = match (&answer, &open.ask) {
            (
                PersonAnswer::Always(rule) | PersonAnswer::Everywhere(rule),
                Ask::Call { rules, .. },
            ) => !rules.is_empty() && !rules.contains(rule),
            _ => false,
        };
        let fits = match (&answer, self.sessions.get(&call.session)) {
            (
                PersonAnswer::Always(rule) | PersonAnswer::Everywhere(rule),
                Some(BrokerSession::Rules(rules)),
            ) if is_own_rule => {
                catch_unwind(AssertUnwindSafe(|| rules.takes_rule(&open.case, rule)))
                    .unwrap_or_else(|_| Err("checking this rule failed".to_owned()))
            }
            _ => approval::fits(&format!("question {call}"), &open.ask, &answer),
        };
        if let Err(reason) = fits {
            return FromBroker::Rejected { call, reason };
        }
        let Some(open) = self.open.remove(&call) else {
            return FromBroker::Rejected { call, reason: "it is not open".to_owned() };
        };
        let stops = answer == PersonAnswer::Stop;
        self.settle(call.clone(), format!("{by} answered first"));
        let verdict = match answer {
            PersonAnswer::Once
            | PersonAnswer::Session(_)
            | PersonAnswer::Always(_)
            | PersonAnswer::Everywhere(_)
            | PersonAnswer::Mode(_) => Verdict::Allow(match note {
                Some(note) => Basis::NotedByPerson { by, note },
                None => Basis::Person(by),
            }),
            PersonAnswer::Chosen(answers) => Verdict::Allow(Basis::Answered {
                by,
                answers: approval::answers_in_words(&open.ask, &answers),
            }),
            // They were rejected above.
            PersonAnswer::Form(_) | PersonAnswer::Noted(..) => {
                unjudgeable("this answer approves no call")
            }
            PersonAnswer::Stop => {
                Verdict::Deny(Basis::Person(by), "Not run: the user stopped the turn.".into())
            }
            PersonAnswer::Deny(reason) => {
                Verdict::Deny(Basis::Person(by), denial_for_model(&open.ask, reason.trim()))
            }
        };
        if open.turn == Turn::Waits && !stops {
            let OpenQuestion { digest, reason, .. } = open;
            let kept = KeptVerdict { digest, reason, verdict: verdict.clone() };
            self.kept.insert(call.clone(), kept);
        }
        open.turn.tells(call, verdict)
    }

    fn settle(&mut self, call: CallId, why: String) {
        if self.settled.len() == MAX_SETTLED {
            self.settled.pop_front();
        }
        self.settled.push_back((call, why));
    }
}

/// What the model reads about a person's no, with their reason.
fn denial_for_model(ask: &Ask, reason: &str) -> String {
    match (ask, reason) {
        (Ask::Plan { .. }, reason) => approval::plan_denied(reason),
        (Ask::Choose { .. }, reason) => approval::unanswered(reason),
        (Ask::Call { .. } | Ask::Form { .. } | Ask::Visit, "") => {
            format!("{REFUSED_BY_PERSON}. Find another way, or ask what they want.")
        }
        (Ask::Call { .. } | Ask::Form { .. } | Ask::Visit, reason) => {
            format!("{REFUSED_BY_PERSON}: {reason}")
        }
    }
}

fn unjudgeable(why: &str) -> Verdict {
    Verdict::Deny(Basis::Unjudgeable(why.into()), format!("Not run: {why}."))
}
