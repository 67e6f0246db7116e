//! `agentd-mcp --conformance URL` in builds with `--cfg agentd_hooks`: the command that the protocol's
//! conformance suite starts. It drives the client of the product: it lists the tools of the server, calls
//! each, as the scenario wants, and logs in where the server wants that, in the place of a person with a
//! browser.

mod sample;

use crate::challenge::{Challenge, Challenged, Wants};
use crate::http::{self, Access, HttpServer};
use crate::http_client;
use crate::oauth::{ClientIdentity, LogIn, Pending};
use crate::redirect::Redirected;
use crate::renewal::Renewal;
use protocol::mcp::{FromServer, ServerAction, ServerFault, ServerTool, ToServer};
use reqwest::Client;
use reqwest::header::LOCATION;
use rmcp::transport::auth::{AuthorizationManager, InMemoryCredentialStore};
use serde_json::Value;
use std::collections::VecDeque;
use std::env;
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tools::ServerLink;

/// The suite ends a client after 30 s.
const START: Duration = Duration::from_secs(20);
const CALL_MS: u64 = 20_000;
const RESULT: u32 = 20_000;
/// The tool that takes a schema, and the tool whose schema it takes.
const SCHEMA: (&str, &str) = ("json_schema_echo", "json_schema_2020_12_tool");
/// Most log-ins: a server that is never content is left alone.
const LOG_INS: usize = 3;
/// Where no browser is sent to: the answer is read from the redirect itself.
const REDIRECT: &str = "http://127.0.0.1:3000/callback";
/// The suite's own document about its client.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// The program.
pub(crate) fn main(url: Option<String>) -> ExitCode {
    let Some(url) = url else {
        eprintln!("agentd-mcp: --conformance needs the address of a server");
        return ExitCode::from(2);
    };
    match Scenario::from_env().and_then(|scenario| run(&url, &scenario)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("agentd-mcp: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The variables of the suite.
struct Scenario {
    /// The calls that it wants, by tool and arguments; each tool once where it names none.
    calls: Vec<(String, Value)>,
    identity: ClientIdentity,
}

impl Scenario {
    fn from_env() -> Result<Self, String> {
        let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| format!("MCP_CONFORMANCE_CONTEXT is no JSON: {error}"))?,
            Err(_) => Value::Null,
        };
        let calls = context.get("toolCalls").and_then(Value::as_array).into_iter().flatten();
        let call = |call: &Value| {
            let name = call.get("name")?.as_str()?.to_owned();
            Some((name, call.get("arguments").cloned().unwrap_or(Value::Null)))
        };
        let text = |key: &str| context.get(key).and_then(Value::as_str).map(str::to_owned);
        let identity = ClientIdentity {
            id: text("client_id"),
            secret: text("client_secret"),
            metadata_url: Some(DOCUMENT.to_owned()),
        };
        Ok(Self { calls: calls.filter_map(call).collect(), identity })
    }
}

fn run(url: &str, scenario: &Scenario) -> Result<(), String> {
    let client =
        http_client::client_settings().build().map_err(|error| format!("no client: {error}"))?;
    let mut access = Access::Open;
    let mut granted = Vec::new();
    for _ in 0..LOG_INS {
        let challenged = Challenged::default();
        let server = HttpServer {
            url: url.to_owned(),
            headers: Vec::new(),
            access,
            challenged: challenged.clone(),
        };
        let calls = Calls::new(scenario);
        let (sender, asks) = mpsc::channel();
        let tell = calls.sink(sender);
        let link =
            ServerLink { name: "conformance", start: START, project: None, asks, tell: &tell };
        let ended = http::serve(client.clone(), server, link).map_err(ServerFault::into_words);
        let Some(challenge) = challenged.last() else { return ended };
        if let Wants::Scope(Some(scope)) = &challenge.wants {
            granted.extend(scope.split(' ').map(str::to_owned));
        }
        let manager = log_in(url, (&client, &challenge), scenario, &granted)?;
        granted = manager.1;
        access = Access::LoggedIn(Box::new(manager.0), Renewal::default());
    }
    Err("the server refuses each log-in".to_owned())
}

/// Logs in as a person would, and returns the scopes that were granted.
fn log_in(
    url: &str,
    (client, challenge): (&Client, &Challenge),
    scenario: &Scenario,
    scopes: &[String],
) -> Result<(AuthorizationManager, Vec<String>), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let login = LogIn {
            url,
            challenge: Some(challenge),
            scopes: scopes.to_vec(),
            identity: scenario.identity.clone(),
            redirect: REDIRECT,
        };
        let pending = Pending::begin(login).await?;
        let answer = client.get(pending.address().clone()).send().await;
        let answer = answer.map_err(|error| format!("no answer to the log-in: {error}"))?;
        let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.ok_or("the authorization server sends the browser nowhere")?;
        let answer = Redirected::to(location, &pending.state())?;
        let manager = pending.finish(answer, |_| InMemoryCredentialStore::new()).await?;
        let granted = manager.get_current_scopes().await;
        Ok((manager, granted))
    })
}

/// The calls of a scenario, one after the other.
struct Calls<'a> {
    scenario: &'a Scenario,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Those that have not been sent; `None` until the tools are known.
    left: Option<VecDeque<(String, Value)>>,
    number: u64,
}

impl<'a> Calls<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        Self { scenario, state: Mutex::default() }
    }

    /// Receives the messages of the server and answers them with calls. The conversation ends with the
    /// last one, when the sender is dropped.
    fn sink(&self, sender: Sender<ToServer>) -> impl Fn(FromServer) + Sync {
        let sender = Mutex::new(Some(sender));
        move |message| {
            let next = match message {
                FromServer::Tools(tools) => self.begin(&tools),
                FromServer::Answer { report, .. } => {
                    eprintln!("{:?}", report.result);
                    self.next()
                }
                FromServer::Asks { ask, question, .. } => {
                    Some(ToServer::Reply { ask, reply: sample::answers(&question) })
                }
                FromServer::Progress { .. }
                | FromServer::Unasked { .. }
                | FromServer::Note(_)
                | FromServer::Offers(_) => {
                    return;
                }
            };
            let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
            match (next, sender.as_ref()) {
                // The conversation has ended if nobody receives it.
                (Some(call), Some(open)) => drop(open.send(call)),
                (_, _) => *sender = None,
            }
        }
    }

    fn begin(&self, tools: &[ServerTool]) -> Option<ToServer> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.left.is_none() {
            let wanted = self.scenario.calls.clone();
            let each = tools.iter().map(|tool| (tool.name.clone(), arguments(tool, tools)));
            state.left = Some(if wanted.is_empty() { each.collect() } else { wanted.into() });
        }
        drop(state);
        self.next()
    }

    fn next(&self) -> Option<ToServer> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (tool, arguments) = state.left.as_mut()?.pop_front()?;
        state.number += 1;
        Some(ToServer::Call {
            number: state.number,
            action: ServerAction::Tool,
            tool,
            arguments: arguments.to_string(),
            timeout_ms: CALL_MS,
            max_result_chars: RESULT,
        })
    }
}

/// Arguments for a tool. One tool of the suite takes the schema of another, as the client has it.
fn arguments(tool: &ServerTool, all: &[ServerTool]) -> Value {
    let other = all.iter().find(|other| other.name == SCHEMA.1).filter(|_| tool.name == SCHEMA.0);
    match other.map(|other| serde_json::from_str::<Value>(&other.input_schema)) {
        Some(Ok(schema)) => serde_json::json!({ "schema": schema }),
        Some(Err(_)) | None => sample::arguments(&tool.input_schema),
    }
}
