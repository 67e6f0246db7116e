//! The client of a server that has an address, in a process and a cage of its own: what the engine is asked
//! and tells goes over its standard streams, a frame each. `relay` is the engine's end, `main` the client's.

use crate::credentials::{FileStore, LogInFile};
use crate::http::{self, Access, HttpServer};
use crate::http_client;
use crate::oauth;
use crate::readable::LONGEST_MESSAGE;
use crate::renewal::Renewal;
use ipc::codec::{self, Decode, Encode};
use protocol::mcp::{FromServer, HEADER_VARIABLE, LOG_IN_VARIABLE, ServerFault, ToServer};
use rmcp::transport::auth::AuthorizationManager;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tools::{RemoteClient, ServerLink, ServerPipes, ServerSink};

/// Most bytes of a frame: the longest answer, as agentd has it.
const LONGEST_FRAME: usize = 2 * LONGEST_MESSAGE;
/// The proxy that leads to the server. The cage has no other way.
const PROXY: &str = "HTTPS_PROXY";
/// The prefix of a token in a header.
const BEARER: &str = "Bearer ";

/// What the client tells; the last one is the reason why the server is of no use.
type Told = Result<FromServer, ServerFault>;

/// Passes on what is asked and told, until the client ends.
pub(crate) fn relay(pipes: ServerPipes, link: ServerLink<'_>) -> Result<(), ServerFault> {
    let ServerPipes { mut input, mut output, speech: _ } = pipes;
    let ServerLink { asks, tell, .. } = link;
    // The end of `asks` closes the client's standard input, at which it ends.
    thread::spawn(move || asks.iter().try_for_each(|ask| write(&mut input, &ask)));
    loop {
        match read::<Told>(&mut output) {
            Ok(Some(Ok(told))) => tell(told),
            Ok(Some(Err(why))) => return Err(why),
            Ok(None) => return Err("the client of the server ended".to_owned().into()),
            Err(error) => return Err(format!("the client of the server: {error}").into()),
        }
    }
}

/// The client. Returns when its standard input has ended, or the server is of no use.
pub(crate) fn main(of: &RemoteClient) -> ExitCode {
    ipc::log::start("mcp", |line| eprintln!("agentd-mcp: {}", line.text));
    let output = Mutex::new(io::stdout());
    let tell = |told: Told| {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        // If nobody reads it, the input ends too.
        let _ = write(&mut *output, &told);
    };
    match converse(of, &|said| tell(Ok(said))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tell(Err(why));
            ExitCode::FAILURE
        }
    }
}

fn converse(of: &RemoteClient, tell: &ServerSink<'_>) -> Result<(), ServerFault> {
    let RemoteClient { name, url, start_ms } = of;
    let proxy = std::env::var(PROXY).map_err(|_| "its cage has no way to the server".to_owned())?;
    let proxy = reqwest::Proxy::all(&proxy).map_err(|error| format!("the proxy: {error}"))?;
    let client = http_client::client_settings().proxy(proxy).build();
    let client = client.map_err(|error| format!("no HTTP client: {error}"))?;
    let (headers, mut access) = shown(std::env::vars())?;
    let has_own = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    if let (Access::Open, false, Some(file)) = (&access, has_own, std::env::var_os(LOG_IN_VARIABLE))
        && let Some(log_in) = LogInFile::read(Path::new(&file))?
    {
        let renewal = Renewal::default();
        let manager = resumed(log_in, file.into(), client.clone(), renewal.clone())?;
        access = Access::LoggedIn(Box::new(manager), renewal);
    }
    let server = HttpServer { url: url.clone(), headers, access, challenged: Default::default() };
    let (sender, asks) = channel();
    thread::spawn(move || read_asks(&sender));
    let link =
        ServerLink { name, start: Duration::from_millis(*start_ms), project: None, asks, tell };
    http::serve(client, server, link)
}

fn resumed(
    log_in: LogInFile,
    path: PathBuf,
    client: reqwest::Client,
    renewal: Renewal,
) -> Result<AuthorizationManager, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let LogInFile { url, grantor, credentials: _ } = log_in;
    let store = FileStore { path, url, grantor: grantor.clone() };
    runtime.block_on(oauth::resume(client, grantor, store, renewal))
}

/// Ends with the standard input.
fn read_asks(sender: &Sender<ToServer>) {
    let mut input = io::stdin().lock();
    while let Ok(Some(ask)) = read::<ToServer>(&mut input) {
        if sender.send(ask).is_err() {
            return;
        }
    }
}

/// Headers and their values.
type Headers = Vec<(String, String)>;

/// The headers of each request, and the token among them.
fn shown(variables: impl Iterator<Item = (String, String)>) -> Result<(Headers, Access), String> {
    let mut headers: Headers = Vec::new();
    let mut access = Access::Open;
    for (variable, header) in variables.filter(|(name, _)| name.starts_with(HEADER_VARIABLE)) {
        // Its text may be a secret.
        let (name, value) =
            header.split_once(": ").ok_or_else(|| format!("{variable} holds no header"))?;
        match value.strip_prefix(BEARER) {
            Some(token) if name.eq_ignore_ascii_case("authorization") => {
                access = Access::Bearer(token.to_owned());
            }
            _ => headers.push((name.to_owned(), value.to_owned())),
        }
    }
    Ok((headers, access))
}

fn write<W: Encode>(to: &mut impl Write, word: &W) -> io::Result<()> {
    let bytes = codec::encode(word).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    to.write_all(&[&length.to_le_bytes()[..], &bytes].concat())?;
    to.flush()
}

/// The next word; none at the end.
fn read<W: Decode<()>>(from: &mut impl Read) -> io::Result<Option<W>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_FRAME {
        return Err(io::Error::other(format!("a frame of {length} bytes")));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    codec::decode(&bytes).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn words_go_through_frames_and_no_long_one() {
        let mut stream = Vec::new();
        write(&mut stream, &ToServer::Cancel(7)).unwrap();
        write(&mut stream, &ToServer::Cancel(8)).unwrap();
        let mut stream = &stream[..];
        for number in [7, 8] {
            assert_eq!(read(&mut stream).unwrap(), Some(ToServer::Cancel(number)));
        }
        assert_eq!(read::<ToServer>(&mut stream).unwrap(), None);
        let error = read::<ToServer>(&mut &u32::MAX.to_le_bytes()[..]).unwrap_err();
        assert!(error.to_string().contains("4294967295"), "{error}");
        assert!(read::<ToServer>(&mut &[9, 0, 0, 0, 1][..]).is_err());
    }

    #[test]
    fn a_token_stands_apart_from_other_headers() {
        let variable = |at: u8, text: &str| (format!("{HEADER_VARIABLE}{at}"), text.to_owned());
        let all = [
            variable(1, "X-Key: a: b"),
            variable(2, "authorization: Bearer t"),
            ("PATH".into(), "/bin".into()),
        ];
        let (headers, access) = shown(all.into_iter()).unwrap();
        assert_eq!(headers, [("X-Key".to_owned(), "a: b".to_owned())]);
        assert!(matches!(access, Access::Bearer(token) if token == "t"));
        let (headers, access) = shown([variable(1, "Authorization: Basic t")].into_iter()).unwrap();
        assert_eq!((headers.len(), matches!(access, Access::Open)), (1, true));
        let error = shown([variable(1, "secret")].into_iter()).err().unwrap();
        assert!(!error.contains("secret"), "{error}");
    }
}
