//! The client actor: one connected terminal or script, and its rights.
//!
//! Messages to a client go through a bounded queue, its feed. A client that does not read misses
//! events; the supervisor then reports `Behind`, and the client attaches again from the last event
//! it saw. A slow client never delays a session.

pub(crate) mod connection;
pub(crate) mod feed;
mod reader;
mod writer;

use crate::messages::{
    AttachRequest, ClientMsg, ClientToSession, GivenAnswer, OpenRequest, RootMsg, SessionMsg,
};
use crate::session_page::{PageRequest, send_preview};
use connection::ClientStream;
use feed::{Feed, FeedResult, to_bytes};
use protocol::client::{
    ClientEvent, ClientRights, DetachReason, FromClient, RequestFailure, SessionRequest, ToClient,
};
use protocol::ids::SessionId;
use protocol::provider::PassedFd;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use reader::read_requests;
use setup::session_spec::is_below;
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use writer::write_feed;

/// Arguments of a client actor.
pub(crate) struct ClientArgs {
    pub(crate) stream: ClientStream,
    pub(crate) root: ActorRef<RootMsg>,
    /// Its name in records, for example `terminal 3 (pts/1, pid 4711)`.
    pub(crate) name: String,
    /// The directory of all sessions.
    pub(crate) sessions: PathBuf,
}

pub(crate) struct ClientState {
    own: ActorRef<ClientMsg>,
    root: ActorRef<RootMsg>,
    name: String,
    /// The directory of all sessions.
    sessions: PathBuf,
    /// Messages that belong together are one entry.
    outbox: Feed,
    /// The reader task, which must not outlive this actor.
    reader_task: AbortHandle,
    /// The writer task. It writes all that was queued, unless the client is dropped.
    writer_task: AbortHandle,
    attached: HashMap<SessionId, (ActorRef<SessionMsg>, ClientRights)>,
    opened: HashMap<SessionId, ActorRef<SessionMsg>>,
    /// Sessions of which the client has missed events.
    behind: HashSet<SessionId>,
}

/// The actor.
pub(crate) struct ClientActor;

impl Actor for ClientActor {
    type Msg = ClientMsg;
    type State = ClientState;
    type Arguments = ClientArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        plan: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let ClientArgs { stream, root, name, sessions } = plan;
        let (outbox, queue) = Feed::new();
        let writer_task =
            tokio::spawn(write_feed(stream.writer, queue, myself.clone())).abort_handle();
        let reader_task =
            tokio::spawn(read_requests(stream.reader, myself.clone(), outbox.clone()));
        let reader_task = reader_task.abort_handle();
        Ok(ClientState {
            own: myself,
            root,
            name,
            sessions,
            outbox,
            reader_task,
            writer_task,
            attached: HashMap::new(),
            opened: HashMap::new(),
            behind: HashSet::new(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ClientMsg::Send(message) => state.send_unless_behind(message),
            ClientMsg::Hand(message, descriptors) => state.hand(message, descriptors),
            ClientMsg::Missed(session) => state.on_missed(session),
            ClientMsg::Dismissed { session, parting, reason } => {
                let attached = state.attached.remove(&session).is_some();
                let opened = state.opened.remove(&session).is_some();
                if attached || opened {
                    state.send_unless_behind(ToClient::Detached { session, parting, reason });
                }
            }
            ClientMsg::Request(request) => {
                state.on_request(&myself, request.msg, request.passed_fds).await
            }
            ClientMsg::Lost(session) => state.on_session_lost(&session),
            ClientMsg::Gone(why) => {
                tracing::info!(client = state.name, why, "left");
                myself.stop(None);
            }
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        myself: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        // Otherwise a dropped client would still receive pongs, and wait for ever.
        state.reader_task.abort();
        let attached = state.attached.values().map(|(session, _)| session);
        for session in attached.chain(state.opened.values()) {
            let _ = session.send_message(ClientToSession::Detach(myself.clone()).into());
        }
        Ok(())
    }
}

impl ClientState {
    async fn on_request(
        &mut self,
        myself: &ActorRef<ClientMsg>,
        msg: FromClient,
        passed_fds: Vec<(PassedFd, OwnedFd)>,
    ) {
        match msg {
            FromClient::Hello { .. } => self.fail(RequestFailure::Usage, "Hello was sent already"),
            FromClient::Open(opening) => self.open(opening, passed_fds).await,
            FromClient::Attach { session, from, rights, others } => {
                let client = myself.clone();
                let (name, feed) = (self.name.clone(), self.outbox.clone());
                let attachment = AttachRequest { client, name, from, others, feed };
                self.attach(attachment, session, rights).await;
            }
            FromClient::Detach { session } => self.detach(&session),
            FromClient::Page { session, before, most } => {
                let client = myself.clone();
                match self.attached.get(&session) {
                    Some((actor, _)) => {
                        let page = ClientToSession::Page { client, before, most };
                        let _ = actor.send_message(page.into());
                    }
                    None if journal::is_session_name(&session.0) => {
                        let directory = self.sessions.join(&session.0);
                        send_preview(directory, PageRequest { session, before, most }, client);
                    }
                    None => {
                        let message = format!("{session} is no name of a session");
                        self.fail(RequestFailure::Usage, &message);
                    }
                }
            }
            FromClient::Query { session, query } => {
                let client = myself.clone();
                self.attached_to(&session, |actor| {
                    let _ = actor.send_message(ClientToSession::Query { client, query }.into());
                });
            }
            FromClient::Prompt { session, text, form, busy } => {
                let client = myself.clone();
                self.with_full_rights(&session, |actor| {
                    let prompt = ClientToSession::Prompt { client, text, form, busy };
                    let _ = actor.send_message(prompt.into());
                });
            }
            FromClient::Answer { call, digest, answer } => {
                let (by, client) = (self.name.clone(), myself.clone());
                let session = self.answers_in(&call.session);
                let answered = GivenAnswer { call, digest, answer, by, client };
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(ClientToSession::Answer(answered).into());
                });
            }
            FromClient::Interrupt { session } => {
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(ClientToSession::Interrupt.into());
                });
            }
            FromClient::Wish { session, wish } => {
                let (client, by) = (myself.clone(), self.name.clone());
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(ClientToSession::Wish { client, wish, by }.into());
                });
            }
            FromClient::Ps => {
                let (reply, rows) = oneshot::channel();
                let _ = self.root.send_message(RootMsg::Describe(reply));
                let myself = myself.clone();
                tokio::spawn(async move {
                    let rows = rows.await.unwrap_or_default();
                    let _ = myself.send_message(ClientMsg::Send(ToClient::Processes(rows)));
                });
            }
            FromClient::Restart { session } => self.restart(session).await,
            // The reader task has answered it.
            FromClient::Ping(_) => {}
            FromClient::Status => {
                let (reply, status) = oneshot::channel();
                let _ = self.root.send_message(RootMsg::Status(reply));
                let myself = myself.clone();
                tokio::spawn(async move {
                    if let Ok(status) = status.await {
                        let _ = myself.send_message(ClientMsg::Send(ToClient::Status(status)));
                    }
                });
            }
            FromClient::Shutdown { unfinished } => {
                let message = RootMsg::ShutdownRequested { unfinished, by: myself.clone() };
                let _ = self.root.send_message(message);
            }
            FromClient::List => {
                let (reply, rows) = oneshot::channel();
                let _ = self.root.send_message(RootMsg::List(reply));
                let myself = myself.clone();
                tokio::spawn(async move {
                    let rows = rows.await.unwrap_or_default();
                    let _ = myself.send_message(ClientMsg::Send(ToClient::Sessions(rows)));
                });
            }
            FromClient::End { session, ending } => {
                let (reply, done) = oneshot::channel();
                let _ = self.root.send_message(RootMsg::EndSession { session, ending, reply });
                answer_done(myself, done);
            }
            FromClient::Remove { session } => {
                let (reply, done) = oneshot::channel();
                let _ = self.root.send_message(RootMsg::Remove(session, reply));
                answer_done(myself, done);
            }
            FromClient::TakeBack { session, only } => {
                let client = myself.clone();
                let message = match only {
                    None => ClientToSession::TakeBack(client),
                    Some(text) => ClientToSession::Withdraw { client, text },
                };
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(message.into());
                });
            }
            FromClient::Change { session, change } => {
                let (client, by) = (myself.clone(), self.name.clone());
                self.with_full_rights(&session, |actor| {
                    let _ =
                        actor.send_message(ClientToSession::Change { client, change, by }.into());
                });
            }
        }
    }

    async fn open(&mut self, opening: SessionRequest, passed_fds: Vec<(PassedFd, OwnedFd)>) {
        let (reply, opened) = oneshot::channel();
        let client = self.own.get_id();
        let request = Box::new(OpenRequest { opening, passed_fds, client, reply, task: None });
        let _ = self.root.send_message(RootMsg::Open(request));
        match opened.await {
            Ok(Ok((actor, message))) => {
                if let ToClient::Opened { session, .. } = &message {
                    self.opened.insert(session.clone(), actor);
                }
                self.send(message);
            }
            Ok(Err(failure)) => self.fail(failure.kind, &failure.message),
            Err(_) => self.fail(RequestFailure::Ending, "the supervisor is ending"),
        }
    }

    async fn attach(
        &mut self,
        attachment: AttachRequest,
        session: SessionId,
        rights: ClientRights,
    ) {
        let actor = match self.opened.get(&session) {
            Some(actor) => Some(actor.clone()),
            None => {
                let (reply, found) = oneshot::channel();
                let _ = self.root.send_message(RootMsg::Find(session.clone(), reply));
                found.await.ok().flatten()
            }
        };
        let Some(actor) = actor else {
            let message = format!("no session {session} is open here");
            return self.fail(RequestFailure::NotFound, &message);
        };
        if actor.send_message(ClientToSession::Attach(attachment).into()).is_err() {
            self.opened.remove(&session);
            let message = format!("session {session} has ended; open it again");
            return self.fail(RequestFailure::NotFound, &message);
        }
        self.behind.remove(&session);
        self.attached.insert(session, (actor, rights));
    }

    /// Sends the client nothing more of that session.
    fn detach(&mut self, session: &SessionId) {
        if let Some((actor, _)) = self.attached.remove(session) {
            let _ = actor.send_message(ClientToSession::Detach(self.own.clone()).into());
        }
    }

    fn attached_to(&self, session: &SessionId, act: impl FnOnce(&ActorRef<SessionMsg>)) {
        match self.attached.get(session) {
            Some((actor, _)) => act(actor),
            None => {
                let message = format!("attach to session {session} first");
                self.fail(RequestFailure::Usage, &message);
            }
        }
    }

    async fn restart(&self, session: SessionId) {
        let (reply, restarted) = oneshot::channel();
        let _ = self.root.send_message(RootMsg::Restart(session, reply));
        match restarted.await {
            Ok(Ok(())) => self.send(ToClient::Done),
            Ok(Err(failure)) => self.fail(failure.kind, &failure.message),
            Err(_) => self.fail(RequestFailure::Ending, "the supervisor is ending"),
        }
    }

    /// Reports the failure of a session's actor, so that the client does not wait for its events.
    fn on_session_lost(&mut self, session: &SessionId) {
        let opened = self.opened.remove(session).is_some();
        let attached = self.attached.remove(session).is_some();
        if !opened && !attached {
            return;
        }
        let reason = format!(
            "session {session} ended because a part of the supervisor failed. Everything recorded \
             is on disk: open the session again to continue"
        );
        let event = ClientEvent::Degraded { reason: reason.clone() };
        self.send(ToClient::Event { session: session.clone(), seq: 0, event });
        let parting = DetachReason::Failed;
        self.send(ToClient::Detached { session: session.clone(), parting, reason });
    }

    /// The session in which this client answers a question: the one that asks, or the one that shows the
    /// question because it waits for that.
    fn answers_in(&self, asks: &SessionId) -> SessionId {
        let shows = self.attached.keys().filter(|shows| *shows == asks || is_below(asks, shows));
        shows.max_by_key(|shows| shows.0.len()).unwrap_or(asks).clone()
    }

    fn with_full_rights(&self, session: &SessionId, act: impl FnOnce(&ActorRef<SessionMsg>)) {
        match self.attached.get(session) {
            Some((actor, ClientRights::Full)) => act(actor),
            Some((_, ClientRights::ReadOnly)) => {
                self.fail(
                    RequestFailure::Usage,
                    "this terminal is read-only; attach without -r to type",
                );
            }
            None => {
                let message = format!("attach to session {session} first");
                self.fail(RequestFailure::Usage, &message);
            }
        }
    }

    /// Sends a message, unless the client missed earlier events of the session: a later event would
    /// hide the gap.
    fn send_unless_behind(&mut self, message: ToClient) {
        let hidden = about(&message).is_some_and(|session| self.behind.contains(session));
        if !hidden {
            self.send(message);
        }
    }

    fn drop_client(&self, why: &str) {
        tracing::warn!(client = self.name, why, "dropped");
        self.writer_task.abort();
        self.own.stop(None);
    }

    /// Reports `Behind` once the client reads again; it then attaches from the last event it saw.
    fn on_missed(&mut self, session: SessionId) {
        tracing::warn!(client = self.name, %session, "behind: the client does not read");
        self.behind.insert(session.clone());
        self.detach(&session);
        let Ok(behind) = to_bytes(&[ToClient::Behind { session }]) else { return };
        let outbox = self.outbox.clone();
        tokio::spawn(async move {
            outbox.put_when_free(behind).await;
        });
    }

    fn fail(&self, kind: RequestFailure, message: &str) {
        self.send(ToClient::Failed { kind, message: message.to_owned() });
    }

    fn send(&self, message: ToClient) {
        self.hand(message, Vec::new());
    }

    fn hand(&self, message: ToClient, descriptors: Vec<OwnedFd>) {
        // A client waits for this answer: without it, disconnecting lets the client react.
        match to_bytes(&[message]).map(|bytes| self.outbox.put_with(bytes, descriptors)) {
            Ok(FeedResult::Done) => {}
            Ok(FeedResult::Full) => self.drop_client("the client does not read"),
            Err(error) => self.drop_client(&error.to_string()),
        }
    }
}

/// Sends the client `Done`, or the reason of a failure.
fn answer_done(
    client: &ActorRef<ClientMsg>,
    done: oneshot::Receiver<Result<(), setup::open_failure::OpenFailure>>,
) {
    let client = client.clone();
    tokio::spawn(async move {
        let message = match done.await {
            Ok(Ok(())) => ToClient::Done,
            Ok(Err(failure)) => ToClient::Failed { kind: failure.kind, message: failure.message },
            Err(_) => {
                let message = "the supervisor is ending".to_owned();
                ToClient::Failed { kind: RequestFailure::Ending, message }
            }
        };
        let _ = client.send_message(ClientMsg::Send(message));
    });
}

/// The session of an event, which a client may miss and receive again.
fn about(message: &ToClient) -> Option<&SessionId> {
    if let ToClient::Event { session, .. } | ToClient::Attached { session, .. } = message {
        return Some(session);
    }
    None
}
