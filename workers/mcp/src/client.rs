//! The client of one server: it starts the conversation in the newest revision that the server speaks,
//! passes the list of tools on, and sends calls. Used by the runner's engine.

use crate::answer;
use crate::challenge::Shown;
use crate::tool_list;
use protocol::mcp::{FromServer, ToServer};
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities,
    ClientConfig, ClientRequest, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer,
    PeerRequestOptions, RoleClient, RunningService,
};
use rmcp::transport::IntoTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tools::{ServerLink, ServerPipes, ServerSink, visible};

/// Most bytes of one message of a server.
pub(crate) const LONGEST_MESSAGE: usize = 16 << 20;
/// Longest time of a call that reports its progress.
const LONGEST_CALL: Duration = Duration::from_secs(600);
/// Most characters of a line about progress.
const PROGRESS: usize = 200;

/// Longest time for the goodbye to a server.
const CLOSING: Duration = Duration::from_secs(2);

/// The pause before a list that has changed is asked for.
const PACE: Duration = Duration::from_millis(200);

/// Whether the list of tools is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Idle,
    UnderWay,
    /// It changed while it was asked for.
    Again,
}

/// Speaks with the server on these streams.
///
/// # Errors
/// Why it is of no use.
pub(crate) fn serve(pipes: ServerPipes, link: ServerLink<'_>) -> Result<(), String> {
    converse(link, Shown::Nothing, async || {
        let output = pipes.output.try_clone().and_then(pipe::Receiver::from_file);
        let input = pipes.input.try_clone().and_then(pipe::Sender::from_file);
        let (output, input) = (output.map_err(broken)?, input.map_err(broken)?);
        let transport = AsyncRwTransport::<RoleClient, _, _>::new_client(output, input);
        Ok(transport.with_max_line_length(LONGEST_MESSAGE))
    })
}

fn broken(error: std::io::Error) -> String {
    format!("agentd-mcp cannot speak with it: {error}")
}

/// Speaks with a server over a transport that `connect` makes, until one side ends.
///
/// # Errors
/// Why the server is of no use, or why no transport was made.
pub(crate) fn converse<T, E, A>(
    link: ServerLink<'_>,
    shown: Shown,
    connect: impl AsyncFn() -> Result<T, String>,
) -> Result<(), String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let ServerLink { name, start, asks, tell } = link;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (sender, receiver) = unbounded_channel();
    // It ends with the server, whose end closes `asks`.
    thread::spawn(move || asks.into_iter().try_for_each(|ask| sender.send(ask)));
    runtime.map_err(broken)?.block_on(async {
        Conversation::begin(connect, (name, start, shown), receiver, tell).await
    })
}

/// News of the server beside answers.
enum News {
    /// Its list of tools has changed.
    Changed,
    /// The list that was asked for.
    Listed(Result<Vec<Tool>, String>),
    Progress(ProgressNotificationParam),
    /// A call has its report.
    Answered(FromServer),
}

/// Takes what the server sends on its own account. What it asks of the client is refused, by the
/// library's defaults.
#[derive(Clone)]
struct Listener(UnboundedSender<News>);

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("agentd", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        // The conversation has ended if nobody receives it.
        let _ = self.0.send(News::Changed);
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(News::Progress(params));
    }
}

/// The calls that wait, by their numbers and by their tokens.
type Waiting = Arc<Mutex<HashMap<u64, (ProgressToken, Cancellation)>>>;

/// How a call is cancelled.
type Cancellation = rmcp::model::RequestId;

/// A conversation that has begun.
struct Conversation<'a> {
    service: RunningService<RoleClient, Listener>,
    /// Its name, and what it is shown as a right to ask.
    server: (String, Shown),
    waiting: Waiting,
    news: UnboundedSender<News>,
    tell: &'a ServerSink<'a>,
}

impl<'a> Conversation<'a> {
    /// Speaks with the server until one side ends.
    async fn begin<T, E, A>(
        connect: impl AsyncFn() -> Result<T, String>,
        (name, start, shown): (&str, Duration, Shown),
        asks: UnboundedReceiver<ToServer>,
        tell: &'a ServerSink<'a>,
    ) -> Result<(), String>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let (news, heard) = unbounded_channel();
        let late = || format!("the server was not ready within {} s", start.as_secs_f64());
        let service = tokio::time::timeout(start, open(connect, &news)).await;
        let service = service.map_err(|_| late())??;
        let server = (name.to_owned(), shown);
        let mut this = Self { service, server, waiting: Waiting::default(), news, tell };
        let first = tokio::time::timeout(start, this.service.peer().list_all_tools()).await;
        this.tell_tools(first.map_err(|_| late())?.map_err(|error| no_list(&error))?);
        let ended = this.go_on(start, asks, heard).await;
        // A server that is reached over HTTP may end its session now.
        let _ = this.service.close_with_timeout(CLOSING).await;
        ended
    }

    async fn go_on(
        &self,
        start: Duration,
        mut asks: UnboundedReceiver<ToServer>,
        mut heard: UnboundedReceiver<News>,
    ) -> Result<(), String> {
        let mut listing = Listing::Idle;
        loop {
            tokio::select! {
                ask = asks.recv() => match ask {
                    // The process of the server has ended.
                    None => return Ok(()),
                    Some(ask) => self.ask(ask),
                },
                said = heard.recv() => match said {
                    None => return Ok(()),
                    Some(News::Changed) if listing == Listing::Idle => {
                        listing = Listing::UnderWay;
                        self.list(start);
                    }
                    Some(News::Changed) => listing = Listing::Again,
                    Some(News::Listed(listed)) => {
                        match listed {
                            Ok(tools) => self.tell_tools(tools),
                            // The earlier list holds.
                            Err(why) => tracing::warn!(why = %visible(&why), "{}", self.server.0),
                        }
                        let again = listing == Listing::Again;
                        listing = if again { Listing::UnderWay } else { Listing::Idle };
                        if again {
                            self.list(start);
                        }
                    }
                    Some(News::Progress(params)) => self.progress(&params),
                    Some(News::Answered(answer)) => (self.tell)(answer),
                },
                () = closed(&self.service) => return Err("the server closed its output".to_owned()),
            }
        }
    }

    /// Asks for the tools, aside: calls go on.
    fn list(&self, limit: Duration) {
        let (peer, news) = (self.service.peer().clone(), self.news.clone());
        tokio::spawn(async move {
            // A server that reports changes all the time is asked at this pace.
            tokio::time::sleep(PACE).await;
            let listed = tokio::time::timeout(limit, peer.list_all_tools()).await;
            let listed = match listed {
                Ok(listed) => listed.map_err(|error| no_list(&error)),
                Err(_) => Err("the server does not list its tools in time".to_owned()),
            };
            let _ = news.send(News::Listed(listed));
        });
    }

    /// Passes the list of tools on.
    fn tell_tools(&self, listed: Vec<Tool>) {
        let (kept, left_out) = tool_list::tools(listed);
        for name in left_out {
            tracing::warn!(tool = %visible(&name), "a tool is too large, or one too many, and left out");
        }
        (self.tell)(FromServer::Tools(kept));
    }

    fn ask(&self, ask: ToServer) {
        match ask {
            ToServer::Call { number, tool, arguments, timeout_ms, max_result_chars } => {
                let (peer, waiting) = (self.service.peer().clone(), Arc::clone(&self.waiting));
                let (news, (server, shown)) = (self.news.clone(), self.server.clone());
                let timeout = Duration::from_millis(timeout_ms);
                tokio::spawn(async move {
                    let ended = call(&peer, number, (&tool, &arguments), timeout, &waiting).await;
                    lock(&waiting).remove(&number);
                    let report = answer::report((&server, &tool), shown, ended, max_result_chars);
                    let report = Box::new(report);
                    let _ = news.send(News::Answered(FromServer::Answer { number, report }));
                });
            }
            ToServer::Cancel(number) => {
                let Some((_, id)) = lock(&self.waiting).remove(&number) else { return };
                let peer = self.service.peer().clone();
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

    fn progress(&self, params: &ProgressNotificationParam) {
        let waiting = lock(&self.waiting);
        let of_it = waiting.iter().find(|(_, (token, _))| *token == params.progress_token);
        let Some((number, _)) = of_it else { return };
        let whole = params.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = params.message.clone().unwrap_or_default();
        let line = format!("{}{whole} {message}", params.progress);
        let text: String = visible(line.trim_end()).chars().take(PROGRESS).collect();
        (self.tell)(FromServer::Progress { number: *number, text: text + "\n" });
    }
}

/// Begins in the newest revision that the server speaks.
async fn open<T, E, A>(
    connect: impl AsyncFn() -> Result<T, String>,
    news: &UnboundedSender<News>,
) -> Result<RunningService<RoleClient, Listener>, String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let listener = Listener(news.clone());
    let mut began = listener.clone().serve_with_lifecycle(connect().await?, mode).await;
    // Some older servers answer each request that they do not know with an empty result.
    if let Err(ClientInitializeError::ExpectedInitResult(Some(_))) = &began {
        let mode = ClientLifecycleMode::Initialize;
        began = listener.serve_with_lifecycle(connect().await?, mode).await;
    }
    began.map_err(|error| format!("the server does not speak the protocol: {error}"))
}

fn no_list(error: &rmcp::service::ServiceError) -> String {
    format!("the server does not list its tools: {error}")
}

/// Returns once the server has closed its side.
async fn closed(service: &RunningService<RoleClient, Listener>) {
    while !service.is_transport_closed() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn call(
    peer: &Peer<RoleClient>,
    number: u64,
    (tool, arguments): (&str, &str),
    timeout: Duration,
    waiting: &Waiting,
) -> Result<rmcp::model::ServerResult, rmcp::service::ServiceError> {
    let mut params = CallToolRequestParams::new(tool.to_owned());
    params.arguments = serde_json::from_str(arguments).ok();
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let mut options = PeerRequestOptions::with_timeout(timeout).reset_timeout_on_progress();
    options.max_total_timeout = Some(LONGEST_CALL.max(timeout));
    let handle = peer.send_cancellable_request(request, options).await?;
    lock(waiting).insert(number, (handle.progress_token.clone(), handle.id.clone()));
    handle.await_response().await
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
