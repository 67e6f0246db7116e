//! `agentd-mcp --serve`: agentd as an MCP server on the standard streams. `request` has its tools, `run` the
//! process of one run. `agentd mcp serve` becomes this program.

mod report;
mod request;
mod run;

use report::Report;
use request::{Limits, RunRequest};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use run::{Capture, Output, Spawn};
use std::env;
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep};

/// Most runs at once. Stops a caller from filling the machine.
const RUNS: u32 = 4;
/// Most bytes of one message of the client.
const MESSAGE: usize = 16 << 20;
/// The pause between two lines about progress.
const PROGRESS: Duration = Duration::from_secs(3);
/// A run that is this much over its time limit is ended from here.
const OVERTIME: Duration = Duration::from_secs(30);
/// Longest time to list the sessions.
const LISTING: Duration = Duration::from_secs(30);
/// The executable of a run, beside this one.
const AGENTD: &str = "agentd";
const INSTRUCTIONS: &str = "agentd runs coding agents whose commands are sandboxed. `run` gives one a task in a \
                            project directory and returns its answer. It asks no one: calls that need an \
                            approval are refused, and the result counts them.";

/// `--serve` with the words behind it.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    match start(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("agentd: error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn start(words: impl Iterator<Item = OsString>) -> Result<(), String> {
    let limits = Limits::read(words)?;
    let own = env::current_exe().and_then(std::fs::canonicalize);
    let agentd = own.map_err(|error| format!("cannot find {AGENTD}: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let served = runtime.block_on(serve(agentd.with_file_name(AGENTD), limits));
    // A read of standard input may still wait.
    runtime.shutdown_background();
    served
}

/// Serves until the client ends the input or a signal comes, and until each run has ended.
async fn serve(agentd: PathBuf, limits: Limits) -> Result<(), String> {
    let (stop, stopped) = watch::channel(Phase::Serving);
    let stop = Arc::new(stop);
    let input = Input { stdin: tokio::io::stdin(), stop: Arc::clone(&stop) };
    let transport = AsyncRwTransport::<RoleServer, _, _>::new_server(input, tokio::io::stdout());
    let runs = Arc::new(Semaphore::new(RUNS as usize));
    let server = Server { agentd, limits: Arc::new(limits), runs: Arc::clone(&runs), stopped };
    let conversation = async {
        match serve_server(server, transport.with_max_line_length(MESSAGE)).await {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
            // The client ended the input before it began.
            Err(_) if *stop.borrow() == Phase::Ending => Ok(()),
            Err(error) => Err(format!("the client does not speak MCP: {error}")),
        }
    };
    let ended = tokio::select! {
        ended = conversation => ended,
        told = signalled() => told,
    };
    stop.send_replace(Phase::Ending);
    // Each run holds a permit until its processes have ended.
    let _all = runs.acquire_many(RUNS).await;
    ended
}

/// Returns at the first signal to end.
async fn signalled() -> Result<(), String> {
    let on = |kind| signal(kind).map_err(|error| format!("cannot wait for signals: {error}"));
    let (mut term, mut int) = (on(SignalKind::terminate())?, on(SignalKind::interrupt())?);
    let mut hup = on(SignalKind::hangup())?;
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = hup.recv() => {}
    }
    Ok(())
}

async fn ending(stopped: &mut watch::Receiver<Phase>) {
    let _gone = stopped.wait_for(|phase| *phase == Phase::Ending).await;
}

/// Whether runs may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    Ending,
}

/// Standard input. Its end ends the runs: the client that would read their answers is gone.
struct Input {
    stdin: Stdin,
    stop: Arc<watch::Sender<Phase>>,
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stdin).poll_read(context, buffer);
        match &read {
            Poll::Ready(Ok(())) if buffer.filled().len() > before => {}
            Poll::Ready(_) => {
                self.stop.send_replace(Phase::Ending);
            }
            Poll::Pending => {}
        }
        read
    }
}

/// The server of one client.
struct Server {
    agentd: PathBuf,
    limits: Arc<Limits>,
    runs: Arc<Semaphore>,
    stopped: watch::Receiver<Phase>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(AGENTD, env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> {
        std::future::ready(Ok(ListToolsResult::with_all_items(request::tools(&self.limits))))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = call.arguments.unwrap_or_default();
        let report = match &*call.name {
            request::RUN => self.run(&arguments, &context).await,
            request::SESSIONS => self.sessions(&arguments, &context).await,
            other => {
                let why = format!("there is no tool {other}; there are `run` and `sessions`");
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        let result = match report {
            Ok(Report::Good(value)) => CallToolResult::structured(value),
            Ok(Report::Bad(value)) => CallToolResult::structured_error(value),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        };
        Ok(result.into())
    }
}

impl Server {
    async fn run(
        &self,
        arguments: &rmcp::model::JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Report, String> {
        let request = RunRequest::read(arguments, &self.limits)?;
        let _permit = self.runs.try_acquire().map_err(|_| {
            format!("{RUNS} runs are under way, which is the most at once; try again later")
        })?;
        let limit = request.timeout.saturating_add(OVERTIME);
        let spawn = Spawn {
            program: &self.agentd,
            words: request.words(&self.limits),
            directory: &request.project,
            input: request.prompt,
        };
        let output = self.watched(spawn, limit, context).await?;
        report::of_run(&output)
    }

    async fn sessions(
        &self,
        arguments: &rmcp::model::JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Report, String> {
        request::no_arguments(arguments)?;
        let spawn = Spawn {
            program: &self.agentd,
            words: ["ls", "--json"].map(OsString::from).to_vec(),
            directory: self.limits.first_dir(),
            input: String::new(),
        };
        let output = self.watched(spawn, LISTING, context).await?;
        report::of_sessions(&output, &self.limits.dirs)
    }

    /// Runs it to its end. A cancellation, the end of the client and `limit` end it before.
    async fn watched(
        &self,
        spawn: Spawn<'_>,
        limit: Duration,
        context: &RequestContext<RoleServer>,
    ) -> Result<Output, String> {
        let mut stopped = self.stopped.clone();
        let stop = async {
            tokio::select! {
                () = context.ct.cancelled() => {}
                () = ending(&mut stopped) => {}
                () = sleep(limit) => {}
            }
        };
        let done = run::to_the_end(spawn, Capture::default(), stop);
        tokio::select! {
            output = done => output,
            never = progress(context) => match never {},
        }
    }
}

/// Tells the caller how long the call has run, if it wants to know.
async fn progress(context: &RequestContext<RoleServer>) -> std::convert::Infallible {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    let begun = Instant::now();
    loop {
        sleep(PROGRESS).await;
        let seconds = begun.elapsed().as_secs();
        let told = ProgressNotificationParam::new(token.clone(), begun.elapsed().as_secs_f64())
            .with_message(format!("running for {seconds} s"));
        // A client that is gone ends the call by the end of its input.
        let _unheard = context.peer.notify_progress(told).await;
    }
}
