//! The client actor: one connected terminal or script, and what it may do.
//!
//! What a client is told goes through a bounded queue. One that does not read misses words, is
//! told so, and attaches again from the last number it saw. It never slows a session down.

mod reader;
mod writer;

pub(crate) use reader::{ClientReader, ClientRequest};
pub(crate) use writer::{Broadcast, Bytes, ClientWriter, Feed, FeedResult, FeedStatus, to_bytes};

use crate::peer::Opener;
use crate::root::{Order, RootMsg};
use crate::session_actor::{AttachRequest, GivenAnswer, SessionMsg};
use protocol::client::{Event, FailedKind, FromClient, Opening, Parting, Rights, ToClient};
use protocol::ids::{CallId, SessionId};
use protocol::provider::Paper;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use reader::hear;
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use writer::tell;

/// A greeted connection.
pub(crate) struct ClientStream {
    pub(crate) reader: ClientReader,
    pub(crate) writer: ClientWriter,
}

impl ClientStream {
    pub(crate) fn new(stream: UnixStream, opener: Opener) -> Self {
        #[cfg(agentd_hooks)]
        ipc::hook::speaks_over(std::os::fd::AsFd::as_fd(&stream));
        let (reader, writer) = stream.into_split();
        Self { reader: ClientReader::of(reader, opener), writer: ClientWriter(writer) }
    }
}

/// What a client's actor is told.
#[expect(
    clippy::large_enum_variant,
    reason = "most are words to say, so a box would only add an allocation"
)]
pub(crate) enum ClientMsg {
    /// Say this to the client.
    Send(ToClient),
    /// An event of this session found no room, and none that followed was put in.
    Missed(SessionId),
    /// It sees nothing more of a session, and why.
    Dismissed { session: SessionId, parting: Parting, reason: String },
    /// From the client.
    Request(Box<ClientRequest>),
    /// The actor of this session failed.
    Lost(SessionId),
    /// It is gone, or broke the protocol.
    Gone(String),
}

/// What a client is begun with.
pub(crate) struct ClientArgs {
    pub(crate) stream: ClientStream,
    pub(crate) root: ActorRef<RootMsg>,
    /// Its name in records, for example `terminal 3`.
    pub(crate) name: String,
}

pub(crate) struct ClientState {
    own: ActorRef<ClientMsg>,
    root: ActorRef<RootMsg>,
    name: String,
    /// Words that belong together are one entry.
    outbox: Feed,
    /// What hears it, which must not outlive this actor.
    hearing: AbortHandle,
    /// What tells it, which says all that was put in unless the client is dropped.
    telling: AbortHandle,
    attached: HashMap<SessionId, (ActorRef<SessionMsg>, Rights)>,
    opened: HashMap<SessionId, ActorRef<SessionMsg>>,
    /// Sessions of which it has missed words.
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
        let ClientArgs { stream, root, name } = plan;
        let (outbox, unread) = Feed::new();
        let telling = tokio::spawn(tell(stream.writer, unread, myself.clone())).abort_handle();
        let hearing = tokio::spawn(hear(stream.reader, myself.clone(), outbox.clone()));
        let hearing = hearing.abort_handle();
        Ok(ClientState {
            own: myself,
            root,
            name,
            outbox,
            hearing,
            telling,
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
            ClientMsg::Send(word) => state.pass_on(word),
            ClientMsg::Missed(session) => state.missed(session),
            ClientMsg::Dismissed { session, parting, reason } => {
                let attached = state.attached.remove(&session).is_some();
                let opened = state.opened.remove(&session).is_some();
                if attached || opened {
                    state.pass_on(ToClient::Detached { session, parting, reason });
                }
            }
            ClientMsg::Request(heard) => state.word(&myself, heard.word, heard.papers).await,
            ClientMsg::Lost(session) => state.lost(&session),
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
        // Otherwise a client that was dropped would be answered its pings, and wait for ever.
        state.hearing.abort();
        let attached = state.attached.values().map(|(session, _)| session);
        for session in attached.chain(state.opened.values()) {
            let _ = session.send_message(SessionMsg::Detach(myself.clone()));
        }
        Ok(())
    }
}

impl ClientState {
    async fn word(
        &mut self,
        myself: &ActorRef<ClientMsg>,
        word: FromClient,
        papers: Vec<(Paper, OwnedFd)>,
    ) {
        match word {
            FromClient::Hello { .. } => self.fail(FailedKind::Usage, "Hello was said already"),
            FromClient::Open(opening) => self.open(opening, papers).await,
            FromClient::Attach { session, from, rights, others } => {
                let client = myself.clone();
                let (name, feed) = (self.name.clone(), self.outbox.clone());
                let attachment = AttachRequest { client, name, from, others, feed };
                self.attach(attachment, session, rights).await;
            }
            FromClient::Detach { session } => self.detach(&session),
            FromClient::Page { session, before, most } => {
                let client = myself.clone();
                self.attached_to(&session, |actor| {
                    let _ = actor.send_message(SessionMsg::Page { client, before, most });
                });
            }
            FromClient::Prompt { session, text } => {
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(SessionMsg::Prompt(text));
                });
            }
            FromClient::Answer { call, digest, answer } => {
                let (by, client) = (self.name.clone(), myself.clone());
                let CallId { session, .. } = call.clone();
                let answered = GivenAnswer { call, digest, answer, by, client };
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(SessionMsg::Answer(answered));
                });
            }
            FromClient::Interrupt { session } => {
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(SessionMsg::Interrupt);
                });
            }
            FromClient::Compact { session } => {
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(SessionMsg::Compact);
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
            // GivenAnswer where it was heard.
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
                let message = RootMsg::End { unfinished, by: myself.clone() };
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
            FromClient::TakeBack { session } => {
                let client = myself.clone();
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(SessionMsg::TakeBack(client));
                });
            }
            FromClient::Withdraw { session, text } => {
                let client = myself.clone();
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(SessionMsg::Withdraw { client, text });
                });
            }
            FromClient::Change { session, change } => {
                let (client, by) = (myself.clone(), self.name.clone());
                self.with_full_rights(&session, |actor| {
                    let _ = actor.send_message(SessionMsg::Change { client, change, by });
                });
            }
        }
    }

    async fn open(&mut self, opening: Opening, papers: Vec<(Paper, OwnedFd)>) {
        let (reply, opened) = oneshot::channel();
        let client = self.own.get_id();
        let order = Box::new(Order { opening, papers, client, reply });
        let _ = self.root.send_message(RootMsg::Open(order));
        match opened.await {
            Ok(Ok((actor, word))) => {
                if let ToClient::Opened { session, .. } = &word {
                    self.opened.insert(session.clone(), actor);
                }
                self.say(word);
            }
            Ok(Err(failure)) => self.fail(failure.kind, &failure.message),
            Err(_) => self.fail(FailedKind::Ending, "the supervisor is ending"),
        }
    }

    async fn attach(&mut self, attachment: AttachRequest, session: SessionId, rights: Rights) {
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
            return self.fail(FailedKind::NotFound, &message);
        };
        if actor.send_message(SessionMsg::Attach(attachment)).is_err() {
            self.opened.remove(&session);
            let message = format!("session {session} has ended; open it again");
            return self.fail(FailedKind::NotFound, &message);
        }
        self.behind.remove(&session);
        self.attached.insert(session, (actor, rights));
    }

    /// It sees nothing more of that session.
    fn detach(&mut self, session: &SessionId) {
        if let Some((actor, _)) = self.attached.remove(session) {
            let _ = actor.send_message(SessionMsg::Detach(self.own.clone()));
        }
    }

    fn attached_to(&self, session: &SessionId, act: impl FnOnce(&ActorRef<SessionMsg>)) {
        match self.attached.get(session) {
            Some((actor, _)) => act(actor),
            None => {
                let message = format!("attach to session {session} first");
                self.fail(FailedKind::Usage, &message);
            }
        }
    }

    async fn restart(&self, session: SessionId) {
        let (reply, restarted) = oneshot::channel();
        let _ = self.root.send_message(RootMsg::Restart(session, reply));
        match restarted.await {
            Ok(Ok(())) => self.say(ToClient::Done),
            Ok(Err(failure)) => self.fail(failure.kind, &failure.message),
            Err(_) => self.fail(FailedKind::Ending, "the supervisor is ending"),
        }
    }

    /// A client that waits for a session's words must not wait for ever.
    fn lost(&mut self, session: &SessionId) {
        let opened = self.opened.remove(session).is_some();
        let attached = self.attached.remove(session).is_some();
        if !opened && !attached {
            return;
        }
        let reason = format!(
            "a part of the supervisor failed and took session {session} with it. All that was \
             recorded is on disk: open it again to go on"
        );
        let event = Event::Degraded { reason: reason.clone() };
        self.say(ToClient::Event { session: session.clone(), seq: 0, event });
        let parting = Parting::Failed;
        self.say(ToClient::Detached { session: session.clone(), parting, reason });
    }

    fn with_full_rights(&self, session: &SessionId, act: impl FnOnce(&ActorRef<SessionMsg>)) {
        match self.attached.get(session) {
            Some((actor, Rights::Full)) => act(actor),
            Some((_, Rights::ReadOnly)) => {
                self.fail(
                    FailedKind::Usage,
                    "this terminal only watches; attach without -r to type",
                );
            }
            None => {
                let message = format!("attach to session {session} first");
                self.fail(FailedKind::Usage, &message);
            }
        }
    }

    /// A client that missed events of a session hears nothing of it that would hide the gap.
    fn pass_on(&mut self, word: ToClient) {
        let hidden = about(&word).is_some_and(|session| self.behind.contains(session));
        if !hidden {
            self.say(word);
        }
    }

    fn drop_client(&self, why: &str) {
        tracing::warn!(client = self.name, why, "dropped");
        self.telling.abort();
        self.own.stop(None);
    }

    /// It is told so when it reads on, and attaches again from the last number it saw.
    fn missed(&mut self, session: SessionId) {
        tracing::warn!(client = self.name, %session, "behind: it does not read");
        self.behind.insert(session.clone());
        self.detach(&session);
        let Ok(behind) = to_bytes(&[ToClient::Behind { session }]) else { return };
        let outbox = self.outbox.clone();
        tokio::spawn(async move {
            outbox.put_when_free(behind).await;
        });
    }

    fn fail(&self, kind: FailedKind, message: &str) {
        self.say(ToClient::Failed { kind, message: message.to_owned() });
    }

    fn say(&self, word: ToClient) {
        // A client that waits for this answer is better off without its connection.
        match to_bytes(&[word]).map(|bytes| self.outbox.put(bytes)) {
            Ok(FeedResult::Done) => {}
            Ok(FeedResult::Full) => self.drop_client("it does not read"),
            Err(error) => self.drop_client(&error.to_string()),
        }
    }
}

/// Tells the client that it was done, or why not.
fn answer_done(
    client: &ActorRef<ClientMsg>,
    done: oneshot::Receiver<Result<(), crate::plan::OpenFailure>>,
) {
    let client = client.clone();
    tokio::spawn(async move {
        let word = match done.await {
            Ok(Ok(())) => ToClient::Done,
            Ok(Err(failure)) => ToClient::Failed { kind: failure.kind, message: failure.message },
            Err(_) => {
                let message = "the supervisor is ending".to_owned();
                ToClient::Failed { kind: FailedKind::Ending, message }
            }
        };
        let _ = client.send_message(ClientMsg::Send(word));
    });
}

/// The session whose events a word is of: one whose client may miss words and see them again.
fn about(word: &ToClient) -> Option<&SessionId> {
    if let ToClient::Event { session, .. } | ToClient::Attached { session } = word {
        return Some(session);
    }
    None
}
