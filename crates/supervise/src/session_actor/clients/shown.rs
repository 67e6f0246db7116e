//! The events of a session on their way to its clients: encoded once, and queued for each client.

use super::{Address, Clients, ShownTo};
use crate::client_actor::feed::{Broadcast, Feed, FeedResult};
use crate::messages::{AttachRequest, ClientMsg, SessionMsg};
use crate::session_actor::backlog::Backlog;
use ipc::ChannelError;
use protocol::client::{
    BacklogFrom, ClientEvent, DetachReason, NumberedEvent, OtherClients, RequestFailure, ToClient,
};
use protocol::context::ContextReport;
use protocol::ids::SessionId;
use ractor::{ActorId, ActorRef, ActorStatus};

/// A client on its way to the events of a session.
pub(in crate::session_actor) enum Attaching {
    /// It attaches now, with the events that it missed.
    Now { wanted: AttachRequest, missed: Vec<NumberedEvent> },
    /// Its backlog is long, and it attaches again behind it; or it was told that its backlog cannot be read.
    NotNow,
    /// It has disconnected.
    Gone(ActorRef<ClientMsg>),
}

impl Address for ActorRef<ClientMsg> {
    type Id = ActorId;

    fn id(&self) -> ActorId {
        self.get_id()
    }
}

impl Clients<ActorRef<ClientMsg>, Feed> {
    /// Shows an event to all, behind the record with this number.
    pub(in crate::session_actor) fn show(&self, seq: u64, event: &ClientEvent) {
        if self.any_attached() {
            let event = Broadcast::new(&self.session, seq, event.clone());
            let missed = self.put(|feed| is_put(&event, feed));
            missed.into_iter().for_each(|client| report_missed(&self.session, &event, client));
        }
    }

    /// Shows an event to one client, which may still be receiving its backlog.
    pub(in crate::session_actor) fn show_to(
        &self,
        client: &ActorRef<ClientMsg>,
        seq: u64,
        event: ClientEvent,
    ) {
        let broadcast = Broadcast::new(&self.session, seq, event.clone());
        match self.put_to(client, |feed| is_put(&broadcast, feed)) {
            ShownTo::Client => {}
            ShownTo::Missed(client) => report_missed(&self.session, &broadcast, client),
            ShownTo::Stranger => tell(client, self.message(seq, event)),
        }
    }

    fn message(&self, seq: u64, event: ClientEvent) -> ToClient {
        ToClient::Event { session: self.session.clone(), seq, event }
    }

    /// Prepares a client's backlog. A long one is sent beside the session's actor, to which the client comes again.
    pub(in crate::session_actor) async fn prepare(
        &mut self,
        wanted: AttachRequest,
        backlog: Backlog,
        session: &ActorRef<SessionMsg>,
    ) -> Attaching {
        // The client disconnected while it received its backlog.
        if matches!(wanted.client.get_status(), ActorStatus::Stopping | ActorStatus::Stopped) {
            return Attaching::Gone(wanted.client);
        }
        if wanted.others == OtherClients::Detach {
            let reason = format!("{} attached and took the session over", wanted.name);
            self.dismiss(DetachReason::TakenOver, &reason);
        }
        match wanted.from {
            BacklogFrom::Seq(from) if backlog.is_long(from) => {
                self.expects(wanted.client.get_id());
                backlog.send_aside(from, wanted, session.clone());
                Attaching::NotNow
            }
            from @ (BacklogFrom::Seq(_) | BacklogFrom::Newest(_)) => {
                let missed = backlog.read(from).await;
                self.expects_no_more(wanted.client.get_id());
                match missed {
                    Ok(missed) => Attaching::Now { wanted, missed },
                    Err(why) => {
                        fail(&wanted.client, RequestFailure::Disk, why);
                        Attaching::NotNow
                    }
                }
            }
        }
    }

    /// Attaches a client. It gets the events that it missed first, then those that tell the present state behind
    /// the record with this number, then these notes.
    pub(in crate::session_actor) fn attach(
        &mut self,
        wanted: AttachRequest,
        missed: Vec<NumberedEvent>,
        (seq, present): (u64, Vec<ClientEvent>),
        notes: &[String],
    ) {
        let AttachRequest { client, name, from: _, others: _, feed } = wanted;
        let attached = ToClient::Attached { session: self.session.clone(), name };
        let notes = notes.iter().cloned().map(|text| ClientEvent::Notice { text });
        let missed = missed.into_iter();
        let first: Vec<_> = missed
            .map(|NumberedEvent { seq, event }| self.message(seq, event))
            .chain(present.into_iter().map(|event| self.message(seq, event)))
            .chain([attached])
            .chain(notes.map(|event| self.message(seq, event)))
            .collect();
        self.begin(client.clone(), feed);
        let first = Broadcast::backlog(&first);
        if let ShownTo::Missed(client) = self.put_to(&client, |feed| is_put(&first, feed)) {
            report_missed(&self.session, &first, client);
        }
    }

    /// Detaches all.
    pub(in crate::session_actor) fn dismiss(&mut self, parting: DetachReason, reason: &str) {
        for client in self.detach_all() {
            let (session, reason) = (self.session.clone(), reason.to_owned());
            let _ = client.send_message(ClientMsg::Dismissed { session, parting, reason });
        }
    }

    /// Answers the clients that wait for a report of the model's context.
    pub(in crate::session_actor) fn report_context(
        &mut self,
        report: &Result<ContextReport, String>,
    ) {
        for client in self.take_context_askers() {
            let (session, report) = (self.session.clone(), report.clone());
            tell(&client, ToClient::Context { session, report });
        }
    }

    /// Gives a client back the text of its prompts, which do not wait any more.
    pub(in crate::session_actor) fn give_back(
        &self,
        client: &ActorRef<ClientMsg>,
        texts: Vec<String>,
    ) {
        tell(client, ToClient::TakenBack { session: self.session.clone(), texts });
    }

    /// Tells a client why its text does nothing. The person has the text again.
    pub(in crate::session_actor) fn refuse_text(
        &self,
        client: &ActorRef<ClientMsg>,
        why: String,
        text: String,
    ) {
        fail(client, RequestFailure::Usage, why);
        self.give_back(client, vec![text]);
    }
}

/// Sends a client a message, past the events.
pub(in crate::session_actor) fn tell(client: &ActorRef<ClientMsg>, message: ToClient) {
    let _ = client.send_message(ClientMsg::Send(message));
}

/// Tells a client that its request failed.
pub(in crate::session_actor) fn fail(
    client: &ActorRef<ClientMsg>,
    kind: RequestFailure,
    message: String,
) {
    tell(client, ToClient::Failed { kind, message });
}

/// Queues it; false where there is no room, or where it could not be encoded.
fn is_put(event: &Result<Broadcast, ChannelError>, feed: &Feed) -> bool {
    event.as_ref().is_ok_and(|event| event.to(feed) == FeedResult::Done)
}

/// The client gets no more until it attaches again, or is disconnected.
fn report_missed(
    session: &SessionId,
    event: &Result<Broadcast, ChannelError>,
    client: &ActorRef<ClientMsg>,
) {
    let message = match event {
        Ok(_) => ClientMsg::Missed(session.clone()),
        Err(error) => ClientMsg::Gone(error.to_string()),
    };
    let _ = client.send_message(message);
}
