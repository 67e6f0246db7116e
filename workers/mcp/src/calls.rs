//! The calls that a server works on: their rounds, the questions that it asks during them, and their time,
//! which does not run while a question is open. Used by the client.

use crate::questions;
use crate::readable::UNREADABLE;
use crate::roots::{self, Roots};
use protocol::mcp::{FromServer, ServerAction, ServerQuestion, ServerReply};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, ErrorCode,
    ErrorData, GetPromptRequest, GetPromptRequestParams, InputResponses, JsonObject, ProgressToken,
    ReadResourceRequest, ReadResourceRequestParams, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// Longest time of a call that reports its progress, without the time of its questions.
const LONGEST_CALL: Duration = Duration::from_secs(600);
/// Most rounds of a call: a server that asks on and on is told no.
const ROUNDS: usize = 10;
/// Most questions of a round.
const QUESTIONS: usize = 8;
/// Most bytes of a server's state between two rounds. agentd passes it on and never reads it.
const STATE: usize = 256 * 1024;
/// The error of a call that needs a visit to a page first (2025-11-25).
const VISIT_NEEDED: i32 = -32042;

/// Sends a message to the supervisor.
pub(crate) type Tell = Arc<dyn Fn(FromServer) + Send + Sync>;

/// A call of a tool, or the request of a resource or a prompt.
pub(crate) struct ServerCall {
    pub(crate) number: u64,
    pub(crate) action: ServerAction,
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) timeout: Duration,
}

impl ServerCall {
    /// The request of a round, with the answers and the state of the one before.
    fn request(&self, responses: Option<InputResponses>, state: Option<String>) -> ClientRequest {
        let arguments: Option<JsonObject> = serde_json::from_str(&self.arguments).ok();
        let text = |name: &str| {
            let value = arguments.as_ref().and_then(|all| all.get(name)).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        match self.action {
            ServerAction::Tool => {
                let mut params = CallToolRequestParams::new(self.tool.clone());
                params.arguments = arguments;
                (params.input_responses, params.request_state) = (responses, state);
                ClientRequest::CallToolRequest(CallToolRequest::new(params))
            }
            ServerAction::Resource => {
                let mut params = ReadResourceRequestParams::new(text("uri"));
                (params.input_responses, params.request_state) = (responses, state);
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            }
            ServerAction::Prompt => {
                let mut params = GetPromptRequestParams::new(text("name"));
                let given = arguments.as_ref().and_then(|all| all.get("arguments"));
                params.arguments = given.and_then(Value::as_object).cloned();
                (params.input_responses, params.request_state) = (responses, state);
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            }
        }
    }
}

/// The open calls and questions of a server.
#[derive(Clone)]
pub(crate) struct Calls {
    open: Arc<Mutex<Open>>,
    tell: Tell,
    /// The answer to `roots/list`.
    roots: Value,
}

#[derive(Default)]
struct Open {
    calls: BTreeMap<u64, OpenCall>,
    asks: HashMap<u64, OpenAsk>,
    last_ask: u64,
}

struct OpenCall {
    /// Of the present round.
    request: Option<(ProgressToken, RequestId)>,
    events: UnboundedSender<CallEvent>,
}

struct OpenAsk {
    number: u64,
    reply: oneshot::Sender<ServerReply>,
}

/// Something that changes the time of a call.
enum CallEvent {
    Progress,
    /// A question is open.
    Asked,
    Replied,
    Cancelled,
    /// An answer came that cannot be read, perhaps that of this call.
    Unread(String),
}

impl Calls {
    pub(crate) fn new(tell: Tell, roots: &Roots) -> Self {
        let roots = serde_json::to_value(roots).unwrap_or_default();
        Self { open: Arc::default(), tell, roots }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is on its way: its number.
    pub(crate) fn progress(&self, token: &ProgressToken) -> Option<u64> {
        let open = self.lock();
        let is_it =
            |call: &OpenCall| call.request.as_ref().is_some_and(|(known, _)| known == token);
        let (number, call) = open.calls.iter().find(|(_, call)| is_it(call))?;
        let _ = call.events.send(CallEvent::Progress);
        Some(*number)
    }

    /// Nobody waits for a call any more: the request of its present round, and none of its questions.
    pub(crate) fn cancel(&self, number: u64) -> Option<RequestId> {
        let mut open = self.lock();
        open.asks.retain(|_, ask| ask.number != number);
        let call = open.calls.remove(&number)?;
        let _ = call.events.send(CallEvent::Cancelled);
        call.request.map(|(_, id)| id)
    }

    /// An answer cannot be read that does not say whose it is: it may be that of any call.
    pub(crate) fn fail_all(&self, why: &str) {
        for call in self.lock().calls.values() {
            let _ = call.events.send(CallEvent::Unread(why.to_owned()));
        }
    }

    /// A question has its answer.
    pub(crate) fn reply(&self, ask: u64, reply: ServerReply) {
        let known = self.lock().asks.remove(&ask);
        // The server does not wait for it any more.
        let _ = known.map(|known| known.reply.send(reply));
    }

    /// Asks a person for the server, during the newest call: an older server does not say during which. Closed
    /// if there is none, or if the future is dropped.
    pub(crate) async fn ask(&self, question: ServerQuestion) -> ServerReply {
        let newest = self.lock().calls.keys().next_back().copied();
        match newest {
            Some(number) => self.ask_during(number, question).await,
            None => {
                tracing::warn!("a question of the server outside of a call is cancelled");
                ServerReply::Cancel
            }
        }
    }

    async fn ask_during(&self, number: u64, question: ServerQuestion) -> ServerReply {
        let (sender, reply) = oneshot::channel();
        let ask = {
            let mut open = self.lock();
            let Some(call) = open.calls.get(&number) else { return ServerReply::Cancel };
            let _ = call.events.send(CallEvent::Asked);
            open.last_ask += 1;
            let ask = open.last_ask;
            open.asks.insert(ask, OpenAsk { number, reply: sender });
            ask
        };
        (self.tell)(FromServer::Asks { number, ask, question: Box::new(question) });
        let _open = OpenQuestion { calls: self, number, ask };
        // The call was cancelled.
        reply.await.unwrap_or(ServerReply::Cancel)
    }

    /// Calls a tool: round by round, until the server has a result.
    pub(crate) async fn call(
        &self,
        peer: &Peer<RoleClient>,
        call: &ServerCall,
    ) -> Result<ServerResult, CallFailure> {
        let (events, mut heard) = unbounded_channel();
        self.lock().calls.insert(call.number, OpenCall { request: None, events });
        let ended = self.rounds(peer, call, &mut heard).await;
        let mut open = self.lock();
        open.calls.remove(&call.number);
        // A server that has answered waits for no person.
        open.asks.retain(|_, ask| ask.number != call.number);
        ended
    }

    async fn rounds(
        &self,
        peer: &Peer<RoleClient>,
        call: &ServerCall,
        heard: &mut UnboundedReceiver<CallEvent>,
    ) -> Result<ServerResult, CallFailure> {
        let mut time = CallTime::new(call.timeout);
        let (mut responses, mut state) = (None, None);
        for _ in 0..ROUNDS {
            let request = call.request(responses.take(), state.take());
            let options = PeerRequestOptions::no_options();
            let handle = peer.send_cancellable_request(request, options).await?;
            let request = Some((handle.progress_token.clone(), handle.id.clone()));
            match self.lock().calls.get_mut(&call.number) {
                Some(open) => open.request = request,
                None => return Err(cancelled().into()),
            }
            let ended = time.response(handle, heard).await;
            let Some(asked) = Asked::of(&ended).map_err(CallFailure::Refused)? else {
                return ended.map_err(CallFailure::Service);
            };
            let roots = asked.roots.into_iter().map(|key| (key, self.roots.clone()));
            let mut given: BTreeMap<String, Value> = roots.collect();
            for (key, params) in asked.questions {
                let question =
                    questions::question(&call.server, &params).map_err(CallFailure::Refused)?;
                let reply = self.ask_during(call.number, question).await;
                if !self.lock().calls.contains_key(&call.number) {
                    return Err(cancelled().into());
                }
                if asked.is_error && !matches!(reply, ServerReply::Accept(_)) {
                    return ended.map_err(CallFailure::Service);
                }
                let response = serde_json::to_value(questions::result(&reply));
                given.insert(key, response.unwrap_or_default());
            }
            responses = Some(given).filter(|_| !asked.is_error);
            state = asked.state;
        }
        Err(CallFailure::Refused(format!("it asks people after {ROUNDS} rounds")))
    }
}

/// Tells the supervisor that the server waits no longer, unless the question has its answer.
struct OpenQuestion<'a> {
    calls: &'a Calls,
    number: u64,
    ask: u64,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let (is_open, events) = {
            let mut open = self.calls.lock();
            let is_open = open.asks.remove(&self.ask).is_some();
            (is_open, open.calls.get(&self.number).map(|call| call.events.clone()))
        };
        let _ = events.map(|events| events.send(CallEvent::Replied));
        if is_open {
            (self.calls.tell)(FromServer::Unasked { number: self.number, ask: self.ask });
        }
    }
}

/// The questions of a round, by their keys.
#[derive(Debug, PartialEq)]
struct Asked {
    questions: Vec<(String, Value)>,
    /// The keys of its requests of the root.
    roots: Vec<String>,
    state: Option<String>,
    /// The round ended with an error that asks for visits; the next one has no answers.
    is_error: bool,
}

impl Asked {
    /// What the end of a round asks of people; none where it is the end of the call.
    fn of(ended: &Result<ServerResult, ServiceError>) -> Result<Option<Self>, String> {
        let value = match ended {
            Ok(ServerResult::InputRequiredResult(result)) => serde_json::to_value(result),
            Ok(ServerResult::CustomResult(result)) => Ok(result.0.clone()),
            Err(ServiceError::McpError(error)) if error.code.0 == VISIT_NEEDED => {
                return Ok(Self::visits(error.data.as_ref()));
            }
            _ => return Ok(None),
        };
        let value = value.unwrap_or_default();
        match value.get("resultType").and_then(Value::as_str) {
            Some("input_required") => Self::required(&value).map(Some),
            _ => Ok(None),
        }
    }

    fn required(result: &Value) -> Result<Self, String> {
        let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        if state.as_ref().is_some_and(|state| state.len() > STATE) {
            return Err(format!("its state between two rounds has more than {STATE} bytes"));
        }
        let requests = result.get("inputRequests").and_then(Value::as_object);
        let (mut questions, mut roots) = (Vec::new(), Vec::new());
        for (key, request) in requests.into_iter().flatten().take(QUESTIONS + 1) {
            match request.get("method").and_then(Value::as_str) {
                Some("elicitation/create") => {
                    questions
                        .push((key.clone(), request.get("params").cloned().unwrap_or_default()));
                }
                Some("roots/list") => roots.push(key.clone()),
                Some("sampling/createMessage") => {
                    return Err(roots::no_sampling().message.into_owned());
                }
                Some(_) | None => {
                    return Err("it asks for something that agentd does not know".to_owned());
                }
            }
        }
        if questions.len() + roots.len() > QUESTIONS {
            return Err(format!("it asks more than {QUESTIONS} questions at once"));
        }
        Ok(Self { questions, roots, state, is_error: false })
    }

    fn visits(data: Option<&Value>) -> Option<Self> {
        let asked = data?.get("elicitations")?.as_array()?;
        let is_visit = |params: &&Value| params.get("mode").is_some_and(|mode| mode == "url");
        let visits = asked.iter().filter(is_visit).take(QUESTIONS).enumerate();
        let questions: Vec<_> =
            visits.map(|(at, params)| (at.to_string(), params.clone())).collect();
        let is_some = !questions.is_empty();
        is_some.then_some(Self { questions, roots: Vec::new(), state: None, is_error: true })
    }
}

/// Why a call has no result of the server.
#[derive(Debug)]
pub(crate) enum CallFailure {
    Service(ServiceError),
    /// The server asks for something that agentd does not give, and the call ended there.
    Refused(String),
}

impl From<ServiceError> for CallFailure {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

fn cancelled() -> ServiceError {
    ServiceError::Cancelled { reason: Some("nobody waits for the answer any more".to_owned()) }
}

/// The time that is left for a call.
struct CallTime {
    timeout: Duration,
    /// Until an answer or some progress.
    idle: Duration,
    /// In all.
    total: Duration,
    open_questions: usize,
}

impl CallTime {
    fn new(timeout: Duration) -> Self {
        Self { timeout, idle: timeout, total: LONGEST_CALL.max(timeout), open_questions: 0 }
    }

    /// The response of a round. A round that takes too long is cancelled.
    async fn response(
        &mut self,
        mut handle: RequestHandle<RoleClient>,
        heard: &mut UnboundedReceiver<CallEvent>,
    ) -> Result<ServerResult, ServiceError> {
        loop {
            let (began, left) = (Instant::now(), self.idle.min(self.total));
            let runs = self.open_questions == 0;
            tokio::select! {
                response = &mut handle.rx => {
                    self.spend(runs, began);
                    return response.unwrap_or(Err(ServiceError::TransportClosed));
                }
                event = heard.recv() => {
                    self.spend(runs, began);
                    match event {
                        Some(CallEvent::Progress) => self.idle = self.timeout,
                        Some(CallEvent::Asked) => self.open_questions += 1,
                        Some(CallEvent::Replied) => {
                            self.open_questions = self.open_questions.saturating_sub(1);
                        }
                        Some(CallEvent::Unread(why)) => {
                            let code = ErrorCode(UNREADABLE);
                            return Err(ServiceError::McpError(ErrorData::new(code, why, None)));
                        }
                        // The request was cancelled with it.
                        Some(CallEvent::Cancelled) | None => return Err(cancelled()),
                    }
                }
                () = sleep(left), if runs => {
                    let why = Some("request timeout".to_owned());
                    let params = CancelledNotificationParam::new(Some(handle.id.clone()), why);
                    // The server has ended if it cannot be told.
                    let _ = handle.peer.notify_cancelled(params).await;
                    return Err(ServiceError::Timeout { timeout: self.timeout });
                }
            }
        }
    }

    fn spend(&mut self, runs: bool, since: Instant) {
        if runs {
            let spent = since.elapsed();
            self.idle = self.idle.saturating_sub(spent);
            self.total = self.total.saturating_sub(spent);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_round_asks_people_at_most_so_much_and_for_nothing_else() {
        let form = json!({"method": "elicitation/create", "params": {"message": "Which?"}});
        let round = |requests: Value, state: &str| {
            Asked::required(&json!({"inputRequests": requests, "requestState": state}))
        };
        let asked = round(json!({"a": form, "b": form}), "opaque").unwrap();
        assert_eq!((asked.questions.len(), asked.state.as_deref()), (2, Some("opaque")));
        assert!(round(json!({}), &"x".repeat(STATE + 1)).is_err());
        assert!(
            round(json!({"a": {"method": "sampling/createMessage"}}), "")
                .unwrap_err()
                .contains("sampling")
        );
        let asked = round(json!({"a": {"method": "roots/list"}}), "").unwrap();
        assert_eq!(asked.roots, ["a"]);
        assert!(round(json!({"a": {"method": "tools/list"}}), "").is_err());
        let many: serde_json::Map<String, Value> =
            (0..=QUESTIONS).map(|at| (at.to_string(), form.clone())).collect();
        assert!(round(Value::Object(many), "").is_err());
    }

    #[test]
    fn an_error_that_needs_visits_asks_for_them() {
        let visit = json!({"mode": "url", "url": "https://a.example/", "message": "Sign in."});
        let asked =
            Asked::visits(Some(&json!({"elicitations": [visit, {"mode": "form"}]}))).unwrap();
        assert_eq!(asked.questions, [("0".to_owned(), visit)]);
        assert_eq!(Asked::visits(None), None);
        assert_eq!(Asked::visits(Some(&json!({"elicitations": []}))), None);
    }
}
