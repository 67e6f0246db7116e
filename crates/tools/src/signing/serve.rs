//! The socket that stands for the person's ssh agent in one call. The supervisor connects to the agent,
//! the command connects here, and `filter` decides about each message between them.

use nix::sys::socket::{Shutdown, getsockopt, shutdown, sockopt::PeerCredentials};
use protocol::call::FileEffect;
use protocol::tool::SigningKey;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tool_specs::signing::fields::{receive, send};
use tool_specs::signing::filter::{self, AgentRequest, RequestRefusal};
use tool_specs::signing::fingerprint;

/// Longest message of a command: a key, some hundred bytes to sign, flags.
const REQUEST_BYTES: usize = 16 << 10;
/// Longest answer of an agent.
const ANSWER_BYTES: usize = 256 << 10;
/// Most signatures of one call: a rebase makes one for each commit.
const SIGNATURES: u64 = 1000;
/// Most connections at the same time.
const CONNECTIONS: usize = 16;

/// The socket before the cage: it listens, and nothing is answered yet.
#[derive(Debug)]
pub struct AgentSocket {
    listener: UnixListener,
    file: SocketFile,
    agent: UnixStream,
    keys: Vec<SigningKey>,
}

impl AgentSocket {
    /// Makes it in the session's temporary directory, where the command finds it.
    ///
    /// # Errors
    /// The system's, for example where the path is longer than a socket's may be.
    pub fn bind(temp: &Path, agent: OwnedFd, keys: Vec<SigningKey>) -> io::Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!(".git-sign-{}-{:x}", std::process::id(), since.subsec_nanos());
        let path = temp.join(name);
        let listener = UnixListener::bind(&path)?;
        Ok(Self { listener, file: SocketFile(path), agent: agent.into(), keys })
    }

    /// Answers the command from now on, on threads of its own.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn serve(self) -> io::Result<Signer> {
        let Self { listener, file, agent, keys } = self;
        let signed = vec![0; keys.len()];
        let closer = agent.try_clone()?;
        let office = Arc::new(SigningState {
            tally: Mutex::new(Tally { asked: 0, signed, refused: Vec::new() }),
            agent: Mutex::new(agent),
            connections: AtomicUsize::new(0),
            keys,
        });
        let signer = Signer { listener: listener.try_clone()?, file, closer, office };
        let office = Arc::clone(&signer.office);
        std::thread::Builder::new()
            .name("git-sign".into())
            .spawn(move || accept(&listener, &office))?;
        Ok(signer)
    }
}

/// The socket while its call runs. Dropping it ends its threads, even while the agent keeps them waiting.
#[derive(Debug)]
pub struct Signer {
    listener: UnixListener,
    file: SocketFile,
    closer: UnixStream,
    office: Arc<SigningState>,
}

impl Signer {
    /// Where the socket really is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.0
    }

    /// The signatures so far, by key.
    #[must_use]
    pub fn signed(&self) -> Vec<FileEffect> {
        let tally = self.office.tally();
        let each = self.office.keys.iter().zip(&tally.signed).filter(|(_, count)| **count > 0);
        each.map(|(key, count)| FileEffect::Signed { key: fingerprint(key), count: *count })
            .collect()
    }

    /// The lines of the result: signatures and refused requests, with their counts.
    pub(crate) fn lines(&self) -> Vec<String> {
        let signed = self.signed().into_iter().filter_map(|effect| match effect {
            FileEffect::Signed { key, count } => {
                Some(format!("[git-sign: signed {} with the key {key}]", times(count)))
            }
            FileEffect::Read(_)
            | FileEffect::Written(_)
            | FileEffect::Created(_)
            | FileEffect::Deleted(_)
            | FileEffect::Ran(_) => None,
        });
        let tally = self.office.tally();
        let refused = tally.refused.iter();
        let refused =
            refused.map(|(why, count)| format!("[git-sign: refused {}: {why}]", times(*count)));
        signed.chain(refused).collect()
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        // Ends threads that wait for the command or the agent. No thread is joined, so none can hold this up.
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
        let _ = self.closer.shutdown(std::net::Shutdown::Both);
    }
}

/// Its name, which goes with it.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// State shared by all connections.
#[derive(Debug)]
struct SigningState {
    keys: Vec<SigningKey>,
    /// Held from a question to its answer, so apart from the tally.
    agent: Mutex<UnixStream>,
    tally: Mutex<Tally>,
    connections: AtomicUsize,
}

#[derive(Debug)]
struct Tally {
    /// How often the agent was asked for a signature.
    asked: u64,
    /// How often each key has signed.
    signed: Vec<u64>,
    /// How often each reason held.
    refused: Vec<(RequestRefusal, u64)>,
}

impl Tally {
    fn refuse(&mut self, why: RequestRefusal) {
        match self.refused.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => self.refused.push((why, 1)),
        }
    }
}

fn accept(listener: &UnixListener, office: &Arc<SigningState>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        if !is_of_this_call(&stream) {
            continue;
        }
        let office = Arc::clone(office);
        if office.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            office.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let attend = move || {
            office.attend(&stream);
            office.connections.fetch_sub(1, Ordering::Relaxed);
        };
        if std::thread::Builder::new().name("git-sign".into()).spawn(attend).is_err() {
            return;
        }
    }
}

/// Other calls of the session see the socket too, and lack the right. In tier B this process itself
/// connects for its command.
fn is_of_this_call(stream: &UnixStream) -> bool {
    getsockopt(stream, PeerCredentials).is_ok_and(|peer| sandbox::is_own_process(peer.pid()))
}

impl SigningState {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one connection until it ends.
    fn attend(&self, stream: &UnixStream) {
        loop {
            let answer = match receive(stream, REQUEST_BYTES) {
                Ok(Some(message)) => self.answer(&message),
                Ok(None) => return,
                Err(error) => {
                    if error.kind() == io::ErrorKind::FileTooLarge {
                        self.tally().refuse(RequestRefusal::TooLong);
                    }
                    return;
                }
            };
            if send(stream, &answer).is_err() {
                return;
            }
        }
    }

    fn answer(&self, message: &[u8]) -> Vec<u8> {
        let answer = filter::judge(message, &self.keys).and_then(|allowed| match allowed {
            AgentRequest::Identities => Ok(filter::identities(&self.keys)),
            AgentRequest::Sign(key) => self.sign(message, key),
        });
        answer.unwrap_or_else(|why| {
            self.tally().refuse(why);
            filter::failure()
        })
    }

    fn sign(&self, message: &[u8], key: usize) -> Result<Vec<u8>, RequestRefusal> {
        {
            let mut tally = self.tally();
            if tally.asked >= SIGNATURES {
                return Err(RequestRefusal::TooMany);
            }
            tally.asked += 1;
        }
        let answer = {
            let agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
            send(&*agent, message).and_then(|()| receive(&*agent, ANSWER_BYTES))
        };
        let answer = answer.ok().flatten().filter(|answer| filter::is_signature(answer));
        if answer.is_some()
            && let Some(count) = self.tally().signed.get_mut(key)
        {
            *count += 1;
        }
        answer.ok_or(RequestRefusal::ByAgent)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::{Duration, Instant};
    use tool_specs::signing::fields::put;

    fn key() -> SigningKey {
        SigningKey { blob: b"a key".to_vec(), comment: "ann".to_owned() }
    }

    fn request(namespace: &[u8]) -> Vec<u8> {
        let mut data = b"SSHSIG".to_vec();
        for part in [namespace, b"", b"sha256", &[7; 32]] {
            put(&mut data, part);
        }
        let mut message = vec![13];
        put(&mut message, b"a key");
        put(&mut message, &data);
        message.extend([0; 4]);
        message
    }

    /// A served socket, and the agent's end of its connection.
    fn served(dir: &Path) -> (Signer, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let socket = AgentSocket::bind(dir, ours.into(), vec![key()]).unwrap();
        (socket.serve().unwrap(), theirs)
    }

    fn asks(stream: &UnixStream, message: &[u8]) -> Vec<u8> {
        send(stream, message).unwrap();
        receive(stream, ANSWER_BYTES).unwrap().unwrap()
    }

    #[test]
    fn signatures_of_git_s_reach_the_agent_and_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (signer, agent) = served(dir.path());
        let answers = std::thread::spawn(move || {
            let mut seen = Vec::new();
            for answer in [&[14, 1][..], &[5], &[12, 0, 0, 0, 0]] {
                seen.push(receive(&agent, REQUEST_BYTES).unwrap().unwrap());
                send(&agent, answer).unwrap();
            }
            seen
        });
        let command = UnixStream::connect(signer.path()).unwrap();
        assert_eq!(asks(&command, &[11]), filter::identities(&[key()]));
        assert_eq!(asks(&command, &request(b"file")), [5]);
        assert_eq!(asks(&command, &[19]), [5], "remove all keys");
        assert_eq!(asks(&command, &request(b"git")), [14, 1]);
        assert_eq!(asks(&command, &request(b"git")), [5], "the agent refused");
        assert_eq!(asks(&command, &request(b"git")), [5], "it said something else");
        assert_eq!(answers.join().unwrap(), vec![request(b"git"); 3], "what the agent saw");
        let signed = FileEffect::Signed { key: fingerprint(&key()), count: 1 };
        assert_eq!(signer.signed(), [signed]);
        let lines = signer.lines().join("\n");
        for words in ["signed once", "not a git commit or tag", "type 19", "did not sign"] {
            assert!(lines.contains(words), "{words}: {lines}");
        }
    }

    #[test]
    fn a_message_that_is_too_long_ends_the_connection_and_reaches_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let (signer, agent) = served(dir.path());
        let command = UnixStream::connect(signer.path()).unwrap();
        send(&command, &vec![13; REQUEST_BYTES + 1]).unwrap_or_default();
        assert!(!receive(&command, ANSWER_BYTES).is_ok_and(|answer| answer.is_some()));
        drop(signer);
        assert!(receive(&agent, REQUEST_BYTES).unwrap().is_none());
    }

    #[test]
    fn a_call_signs_no_more_than_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let (signer, agent) = served(dir.path());
        std::thread::spawn(move || {
            while receive(&agent, REQUEST_BYTES).unwrap().is_some() {
                send(&agent, &[14]).unwrap();
            }
        });
        let command = UnixStream::connect(signer.path()).unwrap();
        for _ in 0..SIGNATURES {
            assert_eq!(asks(&command, &request(b"git")), [14]);
        }
        assert_eq!(asks(&command, &request(b"git")), [5]);
        assert!(signer.lines()[1].contains("its limit of signatures"), "{:?}", signer.lines());
    }

    /// As a key does that waits for a touch.
    #[test]
    fn an_agent_that_does_not_answer_holds_nothing_up() {
        let dir = tempfile::tempdir().unwrap();
        let (signer, _agent) = served(dir.path());
        let (command, other) =
            (UnixStream::connect(signer.path()), UnixStream::connect(signer.path()));
        let (command, other) = (command.unwrap(), other.unwrap());
        send(&command, &request(b"git")).unwrap();
        assert_eq!(asks(&other, &[11]), filter::identities(&[key()]), "others are answered");
        let (path, since) = (signer.path().to_owned(), Instant::now());
        drop(signer);
        assert!(since.elapsed() < Duration::from_secs(1));
        assert!(!path.exists());
        assert_eq!(receive(&command, ANSWER_BYTES).unwrap(), Some(filter::failure()));
        assert!(UnixStream::connect(&path).is_err());
    }
}
