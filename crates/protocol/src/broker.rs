//! The wire to `agentd-broker`: calls to judge out, verdicts back.
//!
//! Phases: `Rules` for a session before its first `Judge`. A case whose verdict is `Ask` stays open
//! until `Answer` or `Forget`. `JudgeAhead` may go before `Judge`, for a call that waits for its turn.

use crate::confinement::Tier;
use crate::ids::{CallId, SessionId};
use crate::judgement::{JudgedCall, PersonAnswer, RuleSet, Verdict};
use crate::log::LogLine;
use crate::mcp::{ServerQuestion, ServerReply};
use crate::{Decode, Encode, Link};

/// The wire's name.
#[derive(Debug)]
pub enum BrokerLink {}

impl Link for BrokerLink {
    type To = ToBroker;
    type From = FromBroker;
    const NAME: &'static str = "broker";
    /// A script of 1 MiB with its diff and the rules' texts.
    const MESSAGE_CAP: usize = 8 << 20;
}

/// From the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToBroker {
    /// The rules of a session; replaces earlier ones.
    Rules {
        /// Whose.
        session: SessionId,
        /// Every rule of the session.
        rules: RuleSet,
    },
    /// Judge this; answered by exactly one `Verdict`, or by an `Ask` verdict and later another.
    Judge(Box<JudgedCall>),
    /// Put a server's question to a person; answered by `Verdict` with the question and later `Replied`,
    /// or by `Replied` at once.
    AskForServer {
        /// The call during which the server asks.
        call: CallId,
        /// Tells it from the call's other questions.
        ask: u64,
        /// The question.
        question: Box<ServerQuestion>,
    },
    /// A person's answer to an open question, bound to the digest they saw.
    Answer {
        /// The question.
        call: CallId,
        /// The digest of the question that the person saw.
        digest: String,
        /// The person's answer.
        answer: PersonAnswer,
        /// Who, by the name of their terminal.
        by: String,
    },
    /// The call is gone; its question with it.
    Forget(CallId),
    /// Answered by `Pong` with the same number.
    Ping(u64),
    /// The session has ended; its rules and questions with it.
    EndSession(SessionId),
    /// This call waits for its turn. If a person would be asked about it, they are asked now, and an `Ahead` with the
    /// question is the answer; else there is none. What the person says is kept until `Judge`, and counts there if the
    /// same would be asked; a no counts in any case.
    JudgeAhead(Box<JudgedCall>),
}

/// From the worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[allow(clippy::large_enum_variant, reason = "a verdict is what it mostly says")]
pub enum FromBroker {
    /// Ready for rules.
    Ready {
        /// The cage that the broker has.
        cage: Tier,
    },
    /// About a call that was put.
    Verdict {
        /// Which.
        call: CallId,
        /// The question.
        verdict: Verdict,
    },
    /// The answer to a server's question.
    Replied {
        /// The call during which the server asked.
        call: CallId,
        /// The answer.
        reply: ServerReply,
        /// The person, by the name of their terminal; absent where agentd answered.
        by: Option<String>,
        /// Why agentd answered, for people and the model.
        note: Option<String>,
    },
    /// An answer that did not count, and why.
    Rejected {
        /// The question.
        call: CallId,
        /// Why, in plain words.
        reason: String,
    },
    /// Alive.
    Pong(u64),
    /// For the log.
    Log(LogLine),
    /// About a call that waits for its turn: the question, or what a person or a rule said before the turn. It lets
    /// nothing run: the answer to `Judge` does.
    Ahead {
        /// Which.
        call: CallId,
        /// The verdict as it is now.
        verdict: Verdict,
    },
}
