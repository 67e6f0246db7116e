//! Sources of supervisors for a client: each lost supervisor is replaced by another.

use crate::liveness::LivenessCheck;
use crate::silence::SilenceAction;
use crate::spawn::{PrivateSupervisor, StartError, SupervisorLaunch};
use crate::supervisor_connection::SupervisorConnection;
use protocol::ids::SessionId;
use std::error::Error;

/// What a source finds, or why it finds nothing.
pub type SourceResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A way to a supervisor.
pub trait SupervisorSource {
    /// Connects to the supervisor; when it was lost, to another in its place.
    ///
    /// # Errors
    /// If none runs and none can be started.
    fn connect(&mut self) -> SourceResult<SupervisorConnection>;

    /// Connects a read-only client to a supervisor that already runs this session. Starts no
    /// supervisor and resumes no session. `None` if no client has resumed it yet.
    ///
    /// # Errors
    /// If no other client can resume it, or the supervisor does not accept this client.
    fn connect_where_live(
        &mut self,
        session: &SessionId,
    ) -> SourceResult<Option<SupervisorConnection>>;

    /// How the present supervisor ended, as far as this client can know.
    fn how_lost(&mut self) -> Option<String> {
        None
    }

    /// Decides about a supervisor that does not answer. Called again every two seconds during the
    /// silence; `checks` counts the earlier calls from 0.
    fn on_silence(&mut self, checks: u32) -> SilenceAction;

    /// Ends the present supervisor by force, so that another may take its place.
    fn kill(&mut self);
}

/// Supervisors for one run alone, each started when the one before it is gone.
#[derive(Debug)]
pub struct PrivateSource<'a> {
    launch: SupervisorLaunch<'a>,
    /// Started, but no client has connected yet.
    fresh: Option<PrivateSupervisor>,
    current: Option<PrivateSupervisor>,
    /// It does not answer.
    liveness: Option<LivenessCheck>,
}

impl<'a> PrivateSource<'a> {
    /// Starts the first one.
    ///
    /// # Errors
    /// As [`PrivateSupervisor::start`].
    pub fn start(launch: SupervisorLaunch<'a>) -> Result<Self, StartError> {
        let fresh = Some(PrivateSupervisor::start(&launch)?);
        Ok(Self { launch, fresh, current: None, liveness: None })
    }

    /// The process id of the present one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.fresh.as_ref().or(self.current.as_ref()).map(PrivateSupervisor::pid)
    }

    /// Ends the present one in order, and waits for it.
    ///
    /// # Errors
    /// Where it cannot be waited for.
    pub fn end(self) -> std::io::Result<()> {
        self.fresh.or(self.current).map_or(Ok(()), PrivateSupervisor::end)
    }
}

impl SupervisorSource for PrivateSource<'_> {
    fn connect(&mut self) -> SourceResult<SupervisorConnection> {
        if let Some(lost) = self.current.take() {
            // It may have closed its socket but still be ending. Only one private supervisor may
            // run.
            lost.end()?;
        }
        let supervisor = match self.fresh.take() {
            Some(supervisor) => supervisor,
            None => PrivateSupervisor::start(&self.launch)?,
        };
        let connection = SupervisorConnection::open(supervisor.socket(), supervisor.token());
        self.current = Some(supervisor);
        Ok(connection?)
    }

    fn connect_where_live(&mut self, _: &SessionId) -> SourceResult<Option<SupervisorConnection>> {
        // A private supervisor has no other client that could resume the session.
        Err("the supervisor of this run is gone".into())
    }

    fn how_lost(&mut self) -> Option<String> {
        self.current.as_mut().and_then(PrivateSupervisor::how_ended)
    }

    fn on_silence(&mut self, checks: u32) -> SilenceAction {
        let Some(current) = &self.current else { return SilenceAction::Kill };
        if checks == 0 {
            self.liveness = None;
        }
        self.liveness.get_or_insert_with(|| LivenessCheck::of_process(current.pid())).check()
    }

    fn kill(&mut self) {
        if let Some(current) = &mut self.current {
            current.kill();
        }
    }
}
