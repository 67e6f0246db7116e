//! The client of one server: it starts the conversation in the newest revision that the server speaks,
//! passes the list of tools on, and sends calls. Used by the runner's engine.

use crate::answer;
use crate::calls::{Calls, ServerCall};
use crate::challenge::Shown;
use crate::listening::{self, ListChange};
use crate::oauth::said;
use crate::offers;
use crate::pages::{self, Listed};
use crate::questions;
use crate::readable::{LONGEST_MESSAGE, ReadableLines};
use crate::relisting::Relisting;
use crate::roots::{self, Roots, Sample, SampleRequest};
use crate::tool_list;
use protocol::hidden::line_for_model;
use protocol::mcp::{FromServer, ServerOffers, ServerReply, ServerTool, ToServer};
use rmcp::ClientHandler;
use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ClientConfig, ClientRequest, ConstString,
    CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationCapability,
    ElicitationCreateRequestMethod, ErrorCode, ErrorData, FormElicitationCapability,
    Implementation, ListToolsRequest, ProgressNotificationParam, ProtocolVersion, ServerResult,
    Tool, UrlElicitationCapability,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer,
    RequestContext, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::IntoTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tools::{ServerLink, ServerPipes, ServerSink};

/// Most characters of a line about progress.
const PROGRESS: usize = 200;

/// Longest time for the goodbye to a server.
const CLOSING: Duration = Duration::from_secs(2);

/// Speaks with the server on these streams.
///
/// # Errors
/// Why it is of no use.
pub(crate) fn serve(pipes: ServerPipes, link: ServerLink<'_>) -> Result<(), String> {
    let (unread, reasons) = unbounded_channel();
    converse(link, Shown::Nothing, reasons, async || {
        let output = pipes.output.try_clone().and_then(pipe::Receiver::from_file);
        let input = pipes.input.try_clone().and_then(pipe::Sender::from_file);
        let (output, input) = (output.map_err(broken)?, input.map_err(broken)?);
        let output = ReadableLines::new(output, unread.clone());
        let transport = AsyncRwTransport::<RoleClient, _, _>::new_client(output, input);
        // The lines are bounded, and grow a little where they are mended.
        Ok(transport.with_max_line_length(4 * LONGEST_MESSAGE))
    })
}

fn broken(error: std::io::Error) -> String {
    format!("agentd-mcp cannot speak with it: {error}")
}

/// Speaks with a server over a transport that `connect` makes, until one side ends. `unread` gives the reasons why an
/// answer cannot be read that does not say whose it is.
///
/// # Errors
/// Why the server is of no use, or why no transport was made.
pub(crate) fn converse<T, E, A>(
    link: ServerLink<'_>,
    shown: Shown,
    unread: UnboundedReceiver<String>,
    connect: impl AsyncFn() -> Result<T, String>,
) -> Result<(), String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let ServerLink { name, start, project, asks, tell } = link;
    let roots = roots::of(project);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (sender, receiver) = unbounded_channel();
    // It ends with the server, whose end closes `asks`.
    thread::spawn(move || asks.into_iter().try_for_each(|ask| sender.send(ask)));
    runtime.map_err(broken)?.block_on(async {
        let asks = (receiver, unread);
        Conversation::begin(connect, (name, start, shown, roots), asks, tell).await
    })
}

/// What the server is asked, and why answers cannot be read that do not say whose they are.
type Asks = (UnboundedReceiver<ToServer>, UnboundedReceiver<String>);

/// News of the server beside answers.
enum News {
    /// Its list of tools has changed.
    Changed,
    /// Its resources or prompts have changed.
    OffersChanged,
    /// The list that was asked for.
    Listed(Result<Listed<Tool>, String>),
    /// Its resources and prompts, which were asked for.
    ListedOffers(ServerOffers),
    Progress(ProgressNotificationParam),
    /// For the supervisor.
    Tell(FromServer),
    /// It asks a person; answered once.
    Asked(Value, oneshot::Sender<ElicitResult>),
}

/// Takes what the server sends on its own account. Its questions to people are passed on; other requests are
/// refused, by the library's defaults.
#[derive(Clone)]
struct Listener {
    news: UnboundedSender<News>,
    roots: Roots,
}

impl Listener {
    /// Asks a person, until the server withdraws its request.
    async fn ask(&self, params: Value, context: RequestContext<RoleClient>) -> ElicitResult {
        let (answer, answered) = oneshot::channel();
        let _ = self.news.send(News::Asked(params, answer));
        let cancelled = || questions::result(&ServerReply::Cancel);
        tokio::select! {
            answered = answered => answered.unwrap_or_else(|_| cancelled()),
            () = context.ct.cancelled() => cancelled(),
        }
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        capabilities.roots = roots::capability(&self.roots);
        ClientConfig::new(capabilities, Implementation::new("agentd", env!("CARGO_PKG_VERSION")))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<Roots, ErrorData> {
        Ok(self.roots.clone())
    }

    async fn create_message(
        &self,
        _: SampleRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<Sample, ErrorData> {
        Err(roots::no_sampling())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.ask(serde_json::to_value(request).unwrap_or_default(), context).await)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        // A form with a field that the library does not know.
        if method == ElicitationCreateRequestMethod::VALUE {
            let result = self.ask(params.unwrap_or_default(), context).await;
            return Ok(CustomResult(serde_json::to_value(result).unwrap_or_default()));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        // The conversation has ended if nobody receives it.
        let _ = self.news.send(News::Changed);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.news.send(News::OffersChanged);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.news.send(News::OffersChanged);
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.news.send(News::Progress(params));
    }
}

/// A conversation that has begun.
struct Conversation<'a> {
    peer: Peer<RoleClient>,
    /// Its name, and what it is shown as a right to ask.
    server: (String, Shown),
    calls: Calls,
    news: UnboundedSender<News>,
    tell: &'a ServerSink<'a>,
    /// The lists that were passed on last: the same ones are not passed on again.
    told: (Vec<ServerTool>, Option<ServerOffers>),
}

impl<'a> Conversation<'a> {
    /// Speaks with the server until one side ends.
    async fn begin<T, E, A>(
        connect: impl AsyncFn() -> Result<T, String>,
        (name, start, shown, roots): (&str, Duration, Shown, Roots),
        asks: Asks,
        tell: &'a ServerSink<'a>,
    ) -> Result<(), String>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let (news, heard) = unbounded_channel();
        let listener = Listener { news: news.clone(), roots: roots.clone() };
        let late = || format!("the server was not ready within {} s", start.as_secs_f64());
        let service = tokio::time::timeout(start, open(connect, listener)).await;
        let service = service.map_err(|_| late())??;
        let server = (name.to_owned(), shown);
        let to_tell = news.clone();
        let calls = Calls::new(Arc::new(move |said| drop(to_tell.send(News::Tell(said)))), &roots);
        let told = (Vec::new(), None);
        let peer = service.peer().clone();
        let mut this = Self { peer, server, calls, news, tell, told };
        let tools = all_tools(&this.peer, start).await?;
        this.told.0 = this.kept(tools);
        (this.tell)(FromServer::Tools(this.told.0.clone()));
        let close = service.cancellation_token();
        let mut closed = tokio::spawn(service.waiting());
        let ended = tokio::select! {
            ended = this.go_on(start, asks, heard) => ended,
            _ = &mut closed => return Err("the server closed its output".to_owned()),
        };
        // A server that is reached over HTTP may end its session now.
        close.cancel();
        let _ = tokio::time::timeout(CLOSING, closed).await;
        ended
    }

    async fn go_on(
        &mut self,
        start: Duration,
        (mut asks, mut unread): Asks,
        mut heard: UnboundedReceiver<News>,
    ) -> Result<(), String> {
        let (mut tools, mut offers) = (Relisting::idle(), Relisting::idle());
        self.listen();
        self.list_offers(offers.changed(Instant::now()), start);
        loop {
            tokio::select! {
                ask = asks.recv() => match ask {
                    // The process of the server has ended.
                    None => return Ok(()),
                    Some(ask) => self.ask(ask),
                },
                said = heard.recv() => match said {
                    None => return Ok(()),
                    Some(News::Changed) => self.list(tools.changed(Instant::now()), start),
                    Some(News::Listed(listed)) => {
                        match listed {
                            Ok(tools) => self.tell_tools(tools),
                            // The earlier list holds.
                            Err(why) => tracing::warn!(why = %line_for_model(&why), "{}", self.server.0),
                        }
                        self.list(tools.ended(Instant::now()), start);
                    }
                    Some(News::Progress(params)) => self.progress(&params),
                    Some(News::OffersChanged) => {
                        self.list_offers(offers.changed(Instant::now()), start);
                    }
                    Some(News::ListedOffers(listed)) => {
                        self.tell_offers(listed);
                        self.list_offers(offers.ended(Instant::now()), start);
                    }
                    Some(News::Tell(said)) => (self.tell)(said),
                    Some(News::Asked(params, answer)) => self.ask_person(&params, answer),
                },
                Some(why) = unread.recv() => self.calls.fail_all(&why),
            }
        }
    }

    /// Subscribes to changes of lists, aside.
    fn listen(&self) {
        let (peer, news) = (self.peer.clone(), self.news.clone());
        let Some(lists) = listening::reported(&peer) else { return };
        tokio::spawn(listening::follow(peer, lists, move |change| {
            let _ = news.send(match change {
                ListChange::Tools => News::Changed,
                ListChange::Offers => News::OffersChanged,
            });
        }));
    }

    /// Asks for the tools after this pause, aside: calls go on.
    fn list(&self, pause: Option<Duration>, limit: Duration) {
        let Some(pause) = pause else { return };
        let (peer, news) = (self.peer.clone(), self.news.clone());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = news.send(News::Listed(all_tools(&peer, limit).await));
        });
    }

    /// Lists what the server offers people after this pause, aside.
    fn list_offers(&self, pause: Option<Duration>, limit: Duration) {
        let Some(pause) = pause else { return };
        let (peer, news) = (self.peer.clone(), self.news.clone());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = news.send(News::ListedOffers(offers::of(&peer, limit).await));
        });
    }

    /// The tools as agentd knows them.
    fn kept(&self, listed: Listed<Tool>) -> Vec<ServerTool> {
        let (kept, left_out) = tool_list::tools(listed.things);
        let name = &self.server.0;
        let left_out = left_out.into_iter().map(|tool| {
            let tool = line_for_model(&tool).into_owned();
            format!("the tool {tool} of the MCP server {name} is left out: it is too large, or one too many")
        });
        let cut = listed
            .cut
            .map(|why| format!("the list of tools of the MCP server {name} is not whole: {why}"));
        left_out.chain(cut).for_each(|text| (self.tell)(FromServer::Note(text)));
        kept
    }

    /// Passes the list of tools on, if it is another one.
    fn tell_tools(&mut self, listed: Listed<Tool>) {
        let kept = self.kept(listed);
        if self.told.0 != kept {
            self.told.0.clone_from(&kept);
            (self.tell)(FromServer::Tools(kept));
        }
    }

    /// Passes the list of resources and prompts on, if it is another one.
    fn tell_offers(&mut self, listed: ServerOffers) {
        if self.told.1.as_ref() != Some(&listed) {
            self.told.1 = Some(listed.clone());
            (self.tell)(FromServer::Offers(listed));
        }
    }

    fn ask(&self, ask: ToServer) {
        match ask {
            ToServer::Call { number, action, tool, arguments, timeout_ms, max_result_chars } => {
                let (peer, calls) = (self.peer.clone(), self.calls.clone());
                let (news, (server, shown)) = (self.news.clone(), self.server.clone());
                let timeout = Duration::from_millis(timeout_ms);
                let call = ServerCall { number, action, server, tool, arguments, timeout };
                tokio::spawn(async move {
                    let ended = calls.call(&peer, &call).await;
                    let named = (call.server.as_str(), call.tool.as_str());
                    let report = Box::new(answer::report(named, shown, ended, max_result_chars));
                    let _ = news.send(News::Tell(FromServer::Answer { number, report }));
                });
            }
            ToServer::Reply { ask, reply } => self.calls.reply(ask, reply),
            ToServer::Cancel(number) => {
                let Some(id) = self.calls.cancel(number) else { return };
                let peer = self.peer.clone();
                tokio::spawn(async move {
                    let params = CancelledNotificationParam::new(
                        Some(id),
                        Some("nobody waits for the answer any more".to_owned()),
                    );
                    // The server has ended if it cannot be told.
                    let _ = peer.notify_cancelled(params).await;
                });
            }
        }
    }

    /// Asks a person for the server, aside.
    fn ask_person(&self, params: &Value, mut answer: oneshot::Sender<ElicitResult>) {
        let question = match questions::question(&self.server.0, params) {
            Ok(question) => question,
            Err(why) => {
                tracing::warn!(why = %line_for_model(&why), "a question of the server is declined");
                let _ = answer.send(questions::result(&ServerReply::Decline));
                return;
            }
        };
        let calls = self.calls.clone();
        tokio::spawn(async move {
            tokio::select! {
                reply = calls.ask(question) => drop(answer.send(questions::result(&reply))),
                // The server does not wait for it any more.
                () = answer.closed() => {}
            }
        });
    }

    fn progress(&self, params: &ProgressNotificationParam) {
        let Some(number) = self.calls.progress(&params.progress_token) else { return };
        let whole = params.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = params.message.clone().unwrap_or_default();
        let line = format!("{}{whole} {message}", params.progress);
        let text: String = line_for_model(line.trim_end()).chars().take(PROGRESS).collect();
        (self.tell)(FromServer::Progress { number, text: text + "\n" });
    }
}

/// Begins in the newest revision that the server speaks.
async fn open<T, E, A>(
    connect: impl AsyncFn() -> Result<T, String>,
    listener: Listener,
) -> Result<RunningService<RoleClient, Listener>, String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let mut began = listener.clone().serve_with_lifecycle(connect().await?, mode).await;
    // Some older servers answer each request that they do not know with an empty result. One that starts slower than
    // the library waits answers the probe behind `initialize`, and then that.
    for _ in 0..2 {
        let Err(
            ClientInitializeError::ExpectedInitResult(Some(_))
            | ClientInitializeError::UncorrelatedErrorResponse { .. }
            | ClientInitializeError::ConflictInitResponseId(..),
        ) = &began
        else {
            break;
        };
        let mode = ClientLifecycleMode::Initialize;
        began = listener.clone().serve_with_lifecycle(connect().await?, mode).await;
    }
    began.map_err(|error| format!("the server does not speak the protocol: {}", said(&error)))
}

async fn all_tools(peer: &Peer<RoleClient>, limit: Duration) -> Result<Listed<Tool>, String> {
    let listed = pages::all(limit, |of| async move {
        let request = ListToolsRequest { params: of, ..ListToolsRequest::default() };
        let listed = peer.send_request(ClientRequest::ListToolsRequest(request)).await?;
        if let ServerResult::ListToolsResult(page) = listed {
            return Ok((page.tools, page.next_cursor));
        }
        // A tool in it is not of the protocol's form.
        let page = serde_json::to_value(listed).unwrap_or_default();
        tool_list::page(&page).ok_or(ServiceError::UnexpectedResponse)
    });
    listed.await.map_err(|why| format!("the server does not list its tools: {why}"))
}
