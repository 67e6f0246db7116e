//! The answer to a log-in, as a browser brings it to this machine: one listener for one answer. Used by
//! `--login`; the client of `tests/conformance` reads addresses by it too.

use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use reqwest::Url;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// Where the browser is sent.
const PATH: &str = "/callback";
/// Longest request, and longest time of one: a browser may open connections that it does not use.
const REQUEST: usize = 16 * 1024;
const TIME: Duration = Duration::from_secs(10);
/// The pause after a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// The answer of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Redirected {
    Code {
        code: String,
        /// The mark of the log-in that it answers.
        state: String,
        /// Who says so, for servers that name themselves.
        issuer: Option<String>,
    },
    Refused {
        error: String,
        state: String,
    },
}

impl Redirected {
    /// Reads the address that the browser was sent to.
    ///
    /// # Errors
    /// It is no address, or no answer to a log-in.
    pub(crate) fn read(address: &str) -> Result<Self, String> {
        let url = Url::parse(address.trim()).map_err(|error| format!("no address: {error}"))?;
        let value = |name: &str| {
            url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let state = value("state").ok_or("the address has no `state`; paste all of it")?;
        match (value("error"), value("code")) {
            (Some(error), _) => {
                let error = match value("error_description") {
                    Some(description) => format!("{error}: {description}"),
                    None => error,
                };
                Ok(Self::Refused { error, state })
            }
            (None, Some(code)) => Ok(Self::Code { code, state, issuer: value("iss") }),
            (None, None) => Err("the address has no `code`; paste all of it".to_owned()),
        }
    }

    /// The answer, if it is to the log-in with this mark.
    ///
    /// # Errors
    /// As [`Redirected::read`], or it answers another log-in.
    pub(crate) fn to(address: &str, state: &str) -> Result<Self, String> {
        let answer = Self::read(address)?;
        let (Self::Code { state: found, .. } | Self::Refused { state: found, .. }) = &answer;
        if state.is_empty() || found != state {
            return Err("this is the answer to another log-in".to_owned());
        }
        Ok(answer)
    }
}

/// Waits on this machine for the browser.
pub(crate) struct Listener {
    socket: TcpListener,
    address: String,
}

impl Listener {
    /// Listens at 127.0.0.1, at a port that the kernel chooses.
    ///
    /// # Errors
    /// No socket.
    pub(crate) async fn open() -> io::Result<Self> {
        let socket = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = format!("http://{}{PATH}", socket.local_addr()?);
        Ok(Self { socket, address })
    }

    /// Where the browser is to be sent.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn port(&self) -> u16 {
        self.socket.local_addr().map(|address| address.port()).unwrap_or_default()
    }

    /// Waits for the answer to the log-in with this mark. Other requests get an error and change nothing.
    pub(crate) async fn answer(self, state: &str) -> Option<Redirected> {
        let (found, mut answers) = unbounded_channel();
        loop {
            tokio::select! {
                answer = answers.recv() => return answer,
                came = self.socket.accept() => match came {
                    Ok((stream, _)) => {
                        let (found, state) = (found.clone(), state.to_owned());
                        let base = self.address.clone();
                        tokio::spawn(async move {
                            // A browser that goes away in the middle asks again.
                            let _ = timeout(TIME, serve(stream, (&base, &state), &found)).await;
                        });
                    }
                    // Too many connections at once: earlier ones end by themselves.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        }
    }
}

/// Serves one request.
async fn serve(
    stream: TcpStream,
    (base, state): (&str, &str),
    found: &UnboundedSender<Redirected>,
) -> Result<(), hyper::Error> {
    let answered = OnceLock::new();
    let service = service_fn(|request: Request<Incoming>| {
        let (status, text, answer) = reply(request.method(), request.uri(), base, state);
        // The connection has one request.
        answer.map(|answer| answered.set(answer));
        std::future::ready(page(status, text))
    });
    let mut server = http1::Builder::new();
    server.keep_alive(false).max_buf_size(REQUEST);
    server.serve_connection(TokioIo::new(stream), service).await?;
    if let Some(answer) = answered.into_inner() {
        // The log-in has ended if nobody receives it.
        let _ = found.send(answer);
    }
    Ok(())
}

/// The reply to a request, and the answer that it brought. Pure.
fn reply(
    method: &Method,
    target: &Uri,
    base: &str,
    state: &str,
) -> (StatusCode, &'static str, Option<Redirected>) {
    if target.path() != PATH {
        return (StatusCode::NOT_FOUND, "There is nothing here.", None);
    }
    if method != Method::GET {
        return (StatusCode::METHOD_NOT_ALLOWED, "This page is only read.", None);
    }
    let address = format!("{base}?{}", target.query().unwrap_or_default());
    match Redirected::to(&address, state) {
        Ok(answer @ Redirected::Code { .. }) => {
            (StatusCode::OK, "agentd has the answer. You can close this page.", Some(answer))
        }
        Ok(answer @ Redirected::Refused { .. }) => {
            (StatusCode::OK, "The log-in was refused. agentd says why.", Some(answer))
        }
        Err(_) => (StatusCode::BAD_REQUEST, "This is not the answer that agentd waits for.", None),
    }
}

fn page(status: StatusCode, text: &str) -> Result<Response<String>, http::Error> {
    Response::builder()
        .status(status)
        .header("Content-Type", "text/html; charset=utf-8")
        .header("Cache-Control", "no-store")
        .header("Referrer-Policy", "no-referrer")
        .header("Content-Security-Policy", "default-src 'none'")
        .header("X-Content-Type-Options", "nosniff")
        .body(format!(
            "<!doctype html><meta charset=\"utf-8\"><title>agentd</title><p>{text}</p>\n"
        ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const BASE: &str = "http://127.0.0.1:4/callback";

    fn to(method: Method, target: &'static str) -> (u16, Option<Redirected>) {
        let (status, _, answer) = reply(&method, &Uri::from_static(target), BASE, "mark");
        (status.as_u16(), answer)
    }

    #[test]
    fn only_the_answer_with_the_mark_is_taken() {
        let code = Redirected::Code {
            code: "a b".to_owned(),
            state: "mark".to_owned(),
            issuer: Some("https://i.example".to_owned()),
        };
        let good = "/callback?code=a%20b&state=mark&iss=https%3A%2F%2Fi.example";
        assert_eq!(to(Method::GET, good), (200, Some(code)));
        for target in [
            "/callback?code=a&state=other",
            "/callback?code=a",
            "/callback?state=mark",
            "/callback",
        ] {
            assert_eq!(to(Method::GET, target), (400, None), "{target}");
        }
        assert_eq!(to(Method::GET, "/favicon.ico"), (404, None));
        assert_eq!(to(Method::POST, "/callback?code=a&state=mark"), (405, None));
    }

    #[test]
    fn a_refusal_is_an_answer_too() {
        let target = "/callback?error=access_denied&error_description=no&state=mark";
        let refused =
            Redirected::Refused { error: "access_denied: no".to_owned(), state: "mark".to_owned() };
        assert_eq!(to(Method::GET, target), (200, Some(refused)));
    }

    #[test]
    fn no_mark_is_no_answer() {
        assert!(Redirected::to("http://127.0.0.1/callback?code=a&state=", "").is_err());
    }

    #[test]
    fn idle_and_endless_connections_keep_no_answer_out() {
        use std::io::{Read, Write};
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(Listener::open()).unwrap();
        let host = listener.address().strip_prefix("http://").unwrap().to_owned();
        let host = host.strip_suffix(PATH).unwrap().to_owned();
        let browser = std::thread::spawn(move || {
            let connect = || std::net::TcpStream::connect(&host).unwrap();
            // A browser opens connections in advance.
            let idle: Vec<_> = (0..40).map(|_| connect()).collect();
            let mut endless = connect();
            let long =
                format!("GET {PATH}?code=a&state=mark HTTP/1.1\r\nX: {}", "x".repeat(REQUEST));
            // It may be cut off in the middle.
            let _ = endless.write_all(long.as_bytes());
            let mut good = connect();
            good.write_all(b"GET /callback?code=b&state=mark HTTP/1.1\r\n\r\n").unwrap();
            let mut page = String::new();
            good.read_to_string(&mut page).unwrap();
            drop((idle, endless));
            page
        });
        let answer = runtime.block_on(listener.answer("mark")).unwrap();
        let code = |code: &str| {
            let (code, state) = (code.to_owned(), "mark".to_owned());
            Redirected::Code { code, state, issuer: None }
        };
        assert_eq!(answer, code("b"), "a request without an end is none");
        drop(runtime);
        assert!(browser.join().unwrap().contains("You can close this page"));
    }
}
