//! What systemd is told of the daemon that it started, where it asks by the environment (`NOTIFY_SOCKET`,
//! `WATCHDOG_USEC`): that it is ready, what it does, that its event loop turns, and that it stops.
//! <https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html>

use crate::messages::RootMsg;
use protocol::client::DaemonStatus;
use ractor::ActorRef;
use sd_notify::NotifyState;
use std::time::Duration;
use tokio::sync::oneshot;

/// Between two reports where no watchdog asks for more.
const REPORT: Duration = Duration::from_secs(10);
/// Shortest time between two reports.
const SHORTEST: Duration = Duration::from_millis(50);

/// Who waits for news of this process. Others inherit the environment of a service too, and are none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceManager {
    /// The one that started it, where there is one.
    Starter,
    /// Nobody.
    None,
}

impl ServiceManager {
    /// The socket is open, and clients are served.
    pub(crate) fn ready(self) {
        self.tell(&[NotifyState::Ready, NotifyState::Status("ready")]);
    }

    /// It was asked to end, and does.
    pub(crate) fn stopping(self) {
        self.tell(&[NotifyState::Stopping, NotifyState::Status("ends its sessions")]);
    }

    /// Reports that the event loop turns, twice in the time that the watchdog allows, and what the daemon does. Never
    /// completes.
    pub(crate) async fn report(self, root: &ActorRef<RootMsg>) {
        if self == Self::None || std::env::var_os("NOTIFY_SOCKET").is_none() {
            return std::future::pending().await;
        }
        let watchdog = sd_notify::watchdog_enabled();
        let pause = watchdog.map_or(REPORT, |limit| (limit / 2).min(REPORT)).max(SHORTEST);
        let mut beat = tokio::time::interval(pause);
        let mut said = String::new();
        loop {
            beat.tick().await;
            if watchdog.is_some() {
                self.tell(&[NotifyState::Watchdog]);
            }
            let (reply, status) = oneshot::channel();
            let _ = root.send_message(RootMsg::Status(reply));
            // Sessions that wait for their disk answer late. The event loop turns all the same.
            if let Ok(Ok(status)) = tokio::time::timeout(pause / 2, status).await {
                let words = in_words(&status);
                if words != said {
                    self.tell(&[NotifyState::Status(&words)]);
                    said = words;
                }
            }
        }
    }

    /// A service manager that does not hear does not end the daemon.
    fn tell(self, states: &[NotifyState<'_>]) {
        match self {
            Self::None => {}
            Self::Starter => {
                if let Err(error) = sd_notify::notify(states) {
                    tracing::warn!(%error, "the service manager cannot be told");
                }
            }
        }
    }
}

fn in_words(status: &DaemonStatus) -> String {
    let DaemonStatus { sessions, working, clients, troubles, .. } = status;
    let mut words = format!("{sessions} sessions, {working} at work, {clients} clients");
    if let [first, more @ ..] = &troubles[..] {
        words.push_str(&format!("; {first}"));
        if !more.is_empty() {
            words.push_str(&format!("; and {} more troubles", more.len()));
        }
    }
    protocol::hidden::on_screen(&words).replace('\n', " ")
}
