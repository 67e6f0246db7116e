//! `agentd-mcp --login`, `--logout` and `--token`: the person's log-in at a server, its end, and a token of
//! it that is not out of date. `agentd mcp` and the supervisor start them; tokens stay in this program, in
//! the file and in the pipe of `--token`. It sets up no log, in which a code or a token might stand.

use crate::browser;
use crate::challenge::Challenged;
use crate::credentials::{FileStore, LogInFile, record_hosts, recorded_hosts, remove_log_in};
use crate::http::{self, Access, HttpServer};
use crate::http_client;
use crate::oauth::{self, ClientIdentity, LogIn, Pending};
use crate::redirect::{Listener, Redirected};
use crate::renewal::Renewal;
use protocol::hidden::line;
use protocol::mcp::{FromServer, ServerFault};
use reqwest::Client;
use rmcp::transport::auth::AuthError;
use std::env;
use std::future::Future;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tools::ServerLink;

/// How long a person may take.
const ANSWER: Duration = Duration::from_secs(300);
/// How long the server may take to say that it wants a log-in.
const PROBE: Duration = Duration::from_secs(30);
/// How long the revocation may take.
const REVOKE: Duration = Duration::from_secs(15);
/// Most characters of the granted scopes that are shown.
const SCOPES: usize = 300;
/// The variable with the secret of a registered client, if it has one.
const SECRET: &str = "AGENTD_MCP_CLIENT_SECRET";
const USAGE: &str =
    "--login NAME URL FILE [--scope SCOPE]… [--client-id ID] | --logout FILE… | --token FILE";

/// A log-in that a person wants.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    name: String,
    url: String,
    file: PathBuf,
    scopes: Vec<String>,
    client_id: Option<String>,
}

/// `--login` with the words behind it.
pub(crate) fn log_in(words: impl Iterator<Item = String>) -> ExitCode {
    let Some(request) = Request::read(words) else {
        eprintln!("agentd-mcp: {USAGE}");
        return ExitCode::from(2);
    };
    ended(request.log_in())
}

/// `--logout` with the words behind it: the files of log-ins.
pub(crate) fn log_out(words: impl Iterator<Item = String>) -> ExitCode {
    let files: Vec<PathBuf> = words.map(PathBuf::from).collect();
    if files.is_empty() {
        return ended(Err(USAGE.to_owned()));
    }
    // Each is ended, also after one that cannot be.
    let ended_all = files.iter().map(|file| log_out_of(file)).collect::<Vec<_>>();
    ended(ended_all.into_iter().collect())
}

/// `--token` with the words behind it: prints the token.
pub(crate) fn token(mut words: impl Iterator<Item = String>) -> ExitCode {
    let found = match words.next() {
        Some(file) => token_of(Path::new(&file)),
        None => Err(USAGE.to_owned()),
    };
    ended(found.map(|token| println!("{token}")))
}

fn ended(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("agentd: error: {why}");
            ExitCode::FAILURE
        }
    }
}

impl Request {
    fn read(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let (name, url, file) = (words.next()?, words.next()?, words.next()?.into());
        let mut request = Self { name, url, file, ..Self::default() };
        while let Some(word) = words.next() {
            let value = words.next()?;
            match word.as_str() {
                "--scope" => request.scopes.extend(value.split_whitespace().map(str::to_owned)),
                "--client-id" => request.client_id = Some(value),
                _ => return None,
            }
        }
        Some(request)
    }

    fn log_in(self) -> Result<(), String> {
        oauth::safe("the server's address", &self.url)?;
        let client = http_client::built(http_client::client_settings())?;
        let challenged = Challenged::default();
        // A server that refuses at once says what it wants; of another one the metadata say it.
        let probed = probe(client, &self, challenged.clone());
        let challenge = challenged.last();
        let mut scopes = self.scopes;
        if !scopes.is_empty()
            && let Ok(Some(earlier)) = LogInFile::read(&self.file)
        {
            // More rights, not other ones.
            let new = earlier.credentials.granted_scopes.into_iter();
            let new: Vec<_> = new.filter(|scope| !scopes.contains(scope)).collect();
            scopes.extend(new);
        }
        let identity = ClientIdentity {
            id: self.client_id,
            secret: env::var(SECRET).ok().filter(|secret| !secret.is_empty()),
            metadata_url: None,
        };
        let granted = block_on(async {
            let listener = Listener::open().await.map_err(|error| {
                format!("nothing listens on 127.0.0.1 for the browser: {error}")
            })?;
            let redirect = listener.address().to_owned();
            let (url, challenge) = (self.url.as_str(), challenge.as_ref());
            let login = LogIn { url, challenge, scopes, identity, redirect: &redirect };
            let pending = Pending::begin(login).await.map_err(|why| match &probed {
                Err(first) if challenge.is_none() => {
                    http_client::by_proxy(url, format!("{first}\n{why}"))
                }
                Ok(()) | Err(_) => why,
            })?;
            ask(&self.name, &pending, listener.port());
            let answer = answer(listener, &pending.state()).await?;
            record_hosts(&self.file, pending.hosts())
                .map_err(|error| format!("{}: {error}", self.file.display()))?;
            let (path, url) = (self.file.clone(), self.url.clone());
            let store = |grantor| FileStore { path, url, grantor };
            let manager = pending.finish(answer, store).await?;
            Ok(manager.get_current_scopes().await)
        })?;
        let scopes = if granted.is_empty() {
            String::new()
        } else {
            format!(" with the scopes: {}", line(&granted.join(" "), SCOPES))
        };
        eprintln!("agentd: logged in to {}{scopes}", self.name);
        eprintln!("agentd: the tokens are in {}", self.file.display());
        Ok(())
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("no runtime: {error}"))?.block_on(work)
}

/// Begins without a log-in, as a session would, and ends after the list of tools.
fn probe(client: Client, request: &Request, challenged: Challenged) -> Result<(), String> {
    let server = HttpServer {
        url: request.url.clone(),
        headers: Vec::new(),
        access: Access::Open,
        challenged,
    };
    let (sender, asks) = mpsc::channel();
    let sender = Mutex::new(Some(sender));
    let tell = |_: FromServer| {
        *sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
    };
    http::serve(
        client,
        server,
        ServerLink { name: &request.name, start: PROBE, project: None, asks, tell: &tell },
    )
    .map_err(ServerFault::into_words)
}

/// Shows the person where to log in.
fn ask(name: &str, pending: &Pending, port: u16) {
    let address = pending.address();
    let host = address.host_str().unwrap_or_default();
    eprintln!("agentd: to log in to {name}, open this address of {host}:\n");
    println!("{address}\n");
    let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if set("SSH_CONNECTION") {
        eprintln!(
            "agentd: this machine is reached over ssh. Let the browser's machine forward the answer, \
             `ssh -L {port}:127.0.0.1:{port} …`, or paste the address here that the browser ends at."
        );
    } else {
        if set("DISPLAY") || set("WAYLAND_DISPLAY") {
            browser::open(address);
        }
        eprintln!(
            "agentd: waiting for the browser. If it cannot reach this machine, paste the address here \
             that it ends at."
        );
    }
}

/// Waits for the browser or for a pasted address.
async fn answer(listener: Listener, state: &str) -> Result<Redirected, String> {
    let (sender, mut lines) = unbounded_channel();
    // It ends with the process.
    thread::spawn(move || {
        io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let either = async {
        tokio::select! {
            found = listener.answer(state) => found,
            found = pasted(&mut lines, state) => Some(found),
        }
    };
    match tokio::time::timeout(ANSWER, either).await {
        Ok(found) => found.ok_or_else(|| "nothing listens for the browser any more".to_owned()),
        Err(_) => Err(format!("no answer within {} minutes", ANSWER.as_secs() / 60)),
    }
}

/// The first pasted line that is the answer.
async fn pasted(lines: &mut UnboundedReceiver<String>, state: &str) -> Redirected {
    while let Some(line) = lines.recv().await {
        if line.trim().is_empty() {
            continue;
        }
        match Redirected::to(&line, state) {
            Ok(found) => return found,
            Err(why) => eprintln!("agentd: {why}"),
        }
    }
    // The browser is the only way then.
    std::future::pending().await
}

fn token_of(path: &Path) -> Result<String, String> {
    let Some(file) = LogInFile::read(path)? else { return Err("there is no log-in".to_owned()) };
    let (hosts, grantor) = (recorded_hosts(path), file.grantor.clone());
    block_on(async {
        let (settings, endpoint) =
            (http_client::client_settings(), &grantor.metadata.token_endpoint);
        let own = oauth::own_endpoint(settings, oauth::TOKENS, endpoint, (&file, &hosts));
        let (_, client) = own.await?;
        let (path, url) = (path.to_owned(), file.url.clone());
        let store = FileStore { path, url, grantor: grantor.clone() };
        let renewal = Renewal::default();
        let manager = oauth::resume(client, grantor, store, renewal.clone()).await?;
        manager.get_access_token().await.map_err(|error| match renewal.failure() {
            Some(failure) => failure.advice("NAME"),
            None if matches!(error, AuthError::AuthorizationRequired) => {
                "the log-in has ended; run `agentd mcp login NAME`".to_owned()
            }
            None => oauth::said(&error),
        })
    })
}

fn log_out_of(path: &Path) -> Result<(), String> {
    let read = LogInFile::read(path);
    let revoked = match &read {
        Ok(None) => return Err("there is no log-in".to_owned()),
        Ok(Some(file)) => {
            let hosts = recorded_hosts(path);
            block_on(oauth::revoke(http_client::client_settings(), file, &hosts, REVOKE))
        }
        Err(why) => Err(why.clone()),
    };
    remove_log_in(path).map_err(|error| format!("{}: {error}", path.display()))?;
    match revoked {
        Ok(true) => eprintln!("agentd: logged out; the server has revoked the tokens"),
        Ok(false) => eprintln!(
            "agentd: logged out here; the server revokes no tokens, which end when they expire"
        ),
        Err(why) => {
            eprintln!("agentd: logged out here; the server did not revoke the tokens: {why}")
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(words: &[&str]) -> Option<Request> {
        Request::read(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn a_request_has_its_words_and_no_others() {
        let read_all =
            read(&["n", "https://a", "/f", "--scope", "a b", "--scope", "c", "--client-id", "i"]);
        let expected = Request {
            name: "n".to_owned(),
            url: "https://a".to_owned(),
            file: "/f".into(),
            scopes: ["a", "b", "c"].map(str::to_owned).to_vec(),
            client_id: Some("i".to_owned()),
        };
        assert_eq!(read_all, Some(expected));
        for words in [&["n", "u"][..], &["n", "u", "f", "--scope"], &["n", "u", "f", "--x", "y"]] {
            assert_eq!(read(words), None, "{words:?}");
        }
    }
}
