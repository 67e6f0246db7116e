//! The messages that actors send to each other. They are declared apart from the actors, so that no
//! actor's file imports another actor.
//!
//! | Message | Received by | Sent by |
//! |---|---|---|
//! | [`RootMsg`] | the supervisor actor | the control socket, clients, sessions, timers |
//! | [`SessionMsg`] | a session actor | its workers and calls, clients, the supervisor actor, timers |
//! | [`CallMsg`] | a call actor | its session, its runner and proxy, the session's reserve, timers |
//! | [`ReserveMsg`] | a session's reserve actor | its session, that session's calls, its runner, timers |
//! | [`ClientMsg`] | a client actor | its reader and writer, sessions, the supervisor actor |
//!
//! Worker actors and the audit actor import no other actor: their messages are in their own files.

mod call;
mod client;
mod reserve;
mod resting_runner;
mod root;
mod session;

pub(crate) use call::CallMsg;
pub(crate) use client::{ClientMsg, ClientRequest};
pub(crate) use reserve::{ReserveMsg, TakeRequest};
pub(crate) use resting_runner::RestingRunner;
pub(crate) use root::{IdleMsg, Lifetime, RootMsg};
pub(crate) use session::{
    AttachRequest, BackupOf, BrokerToSession, CallToSession, ClientToSession, DetachedCall,
    FinishedCall, GivenAnswer, OpenRequest, ProtectedNews, RepliedQuestion, RootToSession,
    ServerSays, SessionMsg, SessionSummary, SessionTimer, TaskOrder, TaskToSession,
};
