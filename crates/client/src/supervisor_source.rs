//! Where a run's supervisors come from: one after another, each in the place of one that was lost.

use crate::spawn::{PrivateSupervisor, StartError, SupervisorLaunch};
use crate::supervisor_connection::SupervisorConnection;
use protocol::ids::SessionId;
use std::error::Error;

/// A way to a supervisor.
pub trait SupervisorSource {
    /// Connects to the supervisor; when it was lost, to another in its place.
    ///
    /// # Errors
    /// Where there is none, and none can be started.
    fn connect(&mut self) -> Result<SupervisorConnection, Box<dyn Error + Send + Sync>>;

    /// Connects to one that has this session live, for who only watches: nothing is started and no
    /// session is opened for them. `None` where nobody has done so yet.
    ///
    /// # Errors
    /// Where nobody can, or there is no speaking to who did.
    fn connect_where_live(
        &mut self,
        session: &SessionId,
    ) -> Result<Option<SupervisorConnection>, Box<dyn Error + Send + Sync>>;

    /// How the present supervisor ended, as far as this client can know.
    fn how_lost(&mut self) -> Option<String> {
        None
    }

    /// The present supervisor does not answer: what to make of that. Asked again every two seconds while
    /// the silence lasts; `look` counts that from 0.
    fn on_silence(&mut self, look: u32) -> SilenceAction;

    /// Ends the present supervisor by force, so that another may take its place.
    fn kill(&mut self);
}

/// What to make of a supervisor that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilenceAction {
    /// It may be slow: wait.
    Wait,
    /// It answers others: connect anew.
    Reconnect,
    /// It is stopped or blocked: end it.
    Kill,
}

/// Supervisors for one run alone, each started when the one before it is gone.
#[derive(Debug)]
pub struct PrivateSource<'a> {
    launch: SupervisorLaunch<'a>,
    /// Started, and nobody has connected to it yet.
    fresh: Option<PrivateSupervisor>,
    current: Option<PrivateSupervisor>,
}

impl<'a> PrivateSource<'a> {
    /// Starts the first one.
    ///
    /// # Errors
    /// As [`PrivateSupervisor::start`].
    pub fn start(launch: SupervisorLaunch<'a>) -> Result<Self, StartError> {
        let fresh = Some(PrivateSupervisor::start(&launch)?);
        Ok(Self { launch, fresh, current: None })
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
    fn connect(&mut self) -> Result<SupervisorConnection, Box<dyn Error + Send + Sync>> {
        if let Some(lost) = self.current.take() {
            // It may have closed its door and be ending still; two at once may not be.
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

    fn connect_where_live(
        &mut self,
        _: &SessionId,
    ) -> Result<Option<SupervisorConnection>, Box<dyn Error + Send + Sync>> {
        // One that is this client's own has nobody else who could open a session.
        Err("the supervisor of this run is gone".into())
    }

    fn how_lost(&mut self) -> Option<String> {
        self.current.as_mut().and_then(PrivateSupervisor::how_ended)
    }

    /// Nobody else's work ends with it.
    fn on_silence(&mut self, _: u32) -> SilenceAction {
        SilenceAction::Kill
    }

    fn kill(&mut self) {
        if let Some(current) = &mut self.current {
            current.kill();
        }
    }
}
