//! State machine of a command and the proxy of its allow-list. The command starts only when its
//! proxy can be reached, and its end waits until the proxy has reported all decisions.
//!
//! Used by the call actor, between the messages of runner and proxy and the call's state machine.
//! `S` is a socket that the runner passes.

use crate::input::CallInput;
use protocol::call::{Outcome, RunReport};
use protocol::confinement::{ConnectionOutcome, Enforced, ProxyConnection};

/// Bound on refusals that the text for the model lists; the record has more.
const MAX_LISTED: usize = 10;

/// Inputs.
#[derive(Debug)]
pub enum ProxyInput<S> {
    /// The runner passed a listening socket.
    Listener(S),
    /// The command's cage is ready.
    RunnerCaged(Enforced),
    /// The runner's report; its end follows.
    Reported(RunReport),
    /// The runner is dead, reaped and drained, for this cause.
    RunnerEnded(String),
    /// The proxy's cage is ready.
    Caged,
    /// The proxy's decisions so far.
    Decisions(ProxyDecisions),
    /// The proxy reports why it has no cage.
    Uncaged(String),
    /// The proxy exited in order, for this cause.
    Ended(String),
    /// The proxy died, for this cause.
    Died(String),
}

impl<S> ProxyInput<S> {
    /// The inputs of a call that a proxy is concerned with.
    ///
    /// # Errors
    /// Any other input, for the call alone.
    pub fn of(input: CallInput) -> Result<Self, Box<CallInput>> {
        match input {
            CallInput::Caged(enforced) => Ok(Self::RunnerCaged(enforced)),
            CallInput::Done(report) => Ok(Self::Reported(report)),
            CallInput::RunnerEnded { cause } => Ok(Self::RunnerEnded(cause)),
            input @ (CallInput::Begin
            | CallInput::GoPrepared
            | CallInput::GoWithoutCopies(_)
            | CallInput::Began
            | CallInput::RunnerGone(_)
            | CallInput::ReserveLost
            | CallInput::Probed(_)
            | CallInput::Verdict(_)
            | CallInput::StoppedByAnswer(..)
            | CallInput::Expired
            | CallInput::BrokerBack
            | CallInput::BrokerFailed(_)
            | CallInput::CageFailed { .. }
            | CallInput::Output(_)
            | CallInput::Detach
            | CallInput::OtherAnswered(_)
            | CallInput::ServerAnswered(_)
            | CallInput::ServerLost { .. }
            | CallInput::OfServer(_)
            | CallInput::TaskEnded(_)
            | CallInput::Cancel
            | CallInput::Overdue
            | CallInput::Stored(_)
            | CallInput::RestoreFetched(_)
            | CallInput::StoreLost { .. }
            | CallInput::StoreBack
            | CallInput::CacheAnswer(_)
            | CallInput::UndoCovers(_)
            | CallInput::CageLost { .. }
            | CallInput::Repaired(_)
            | CallInput::WrongGrant(_)
            | CallInput::DiskFailed(_)
            | CallInput::LeaseLost(_)) => Err(Box::new(input)),
        }
    }
}

/// Effects, to be executed in this order.
#[derive(Debug, PartialEq)]
pub enum ProxyEffect<S> {
    /// Send the proxy its listening sockets.
    Serve(Vec<S>),
    /// The command has ended: the proxy reports its last decisions and exits.
    Finish,
    /// The runner exits in order, without running anything.
    EndRunner,
    /// Input for the call's state machine.
    ToCall(Box<CallInput>),
}

/// Reaction to the death of a proxy before its command starts. The call has had no effect then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyAttempt {
    /// Restart both silently, as after the death of a runner.
    First,
    /// Do not run the call.
    Last,
}

/// Decisions of a proxy: the first ones in order, and the number of further ones.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ProxyDecisions {
    /// The first ones.
    pub connections: Vec<ProxyConnection>,
    /// How many more there were.
    pub uncounted: u64,
    /// Why the decisions are incomplete.
    pub cut: Option<String>,
}

#[derive(Debug)]
enum ProxyPhase {
    /// Not everything that is needed has arrived: a socket, the proxy's cage, the runner's cage.
    Gathering,
    Serving,
    /// The proxy died before the command started, for this cause: the runner exits, and both are
    /// restarted.
    Restarting(String),
    /// The proxy died while the command ran; the command continues without network.
    Lost,
    /// The command has ended, for this cause; the last decisions of the proxy are still to come.
    Finishing(String),
    Over,
}

/// A command's proxy.
#[derive(Debug)]
pub struct ProxyMachine<S> {
    attempt: ProxyAttempt,
    phase: ProxyPhase,
    listeners: Vec<S>,
    ready: bool,
    enforced: Option<Enforced>,
    report: Option<RunReport>,
    decided: ProxyDecisions,
    /// True if it reported decisions after the command ended.
    reported_all: bool,
}

impl<S> ProxyMachine<S> {
    /// A proxy that is being started.
    pub fn new(attempt: ProxyAttempt) -> Self {
        Self {
            attempt,
            phase: ProxyPhase::Gathering,
            listeners: Vec::new(),
            ready: false,
            enforced: None,
            report: None,
            decided: ProxyDecisions::default(),
            reported_all: false,
        }
    }

    /// The proxy's decisions.
    pub fn decided(&self) -> &ProxyDecisions {
        &self.decided
    }

    /// Applies an input.
    pub fn step(&mut self, input: ProxyInput<S>) -> Vec<ProxyEffect<S>> {
        match input {
            ProxyInput::Listener(socket) => {
                self.listeners.push(socket);
                self.start_if_ready()
            }
            ProxyInput::Caged => {
                self.ready = true;
                self.start_if_ready()
            }
            ProxyInput::RunnerCaged(enforced) => {
                self.enforced = Some(enforced);
                self.start_if_ready()
            }
            ProxyInput::Reported(report) => {
                self.report = Some(report);
                Vec::new()
            }
            ProxyInput::RunnerEnded(cause) => self.on_runner_ended(cause),
            ProxyInput::Decisions(decided) => {
                self.decided = decided;
                self.reported_all = matches!(self.phase, ProxyPhase::Finishing(_));
                Vec::new()
            }
            ProxyInput::Uncaged(reason) => self.on_ended(reason),
            ProxyInput::Ended(cause) if self.reported_all => self.on_ended(cause),
            ProxyInput::Ended(cause) | ProxyInput::Died(cause) => self.on_died(cause),
        }
    }

    /// The proxy is gone and may not have reported everything.
    fn on_died(&mut self, cause: String) -> Vec<ProxyEffect<S>> {
        match self.phase {
            ProxyPhase::Gathering if self.attempt == ProxyAttempt::First => {
                self.phase = ProxyPhase::Restarting(cause);
                return vec![ProxyEffect::EndRunner];
            }
            ProxyPhase::Finishing(_) => {
                self.decided.cut = Some(format!(
                    "the proxy {cause} before it had reported everything: bytes and repetitions \
                     are incomplete in the record"
                ));
            }
            ProxyPhase::Gathering
            | ProxyPhase::Serving
            | ProxyPhase::Restarting(_)
            | ProxyPhase::Lost
            | ProxyPhase::Over => {}
        }
        self.on_ended(cause)
    }

    /// Starts the command once the proxy can be reached.
    fn start_if_ready(&mut self) -> Vec<ProxyEffect<S>> {
        if !matches!(self.phase, ProxyPhase::Gathering) || !self.ready {
            return Vec::new();
        }
        // The runner passes all of its sockets before it reports its cage.
        match self.enforced.take_if(|_| !self.listeners.is_empty()) {
            Some(enforced) => {
                self.phase = ProxyPhase::Serving;
                let doors = std::mem::take(&mut self.listeners);
                vec![ProxyEffect::Serve(doors), to_call(CallInput::Caged(enforced))]
            }
            None => Vec::new(),
        }
    }

    fn on_runner_ended(&mut self, cause: String) -> Vec<ProxyEffect<S>> {
        match std::mem::replace(&mut self.phase, ProxyPhase::Over) {
            ProxyPhase::Serving => {
                self.phase = ProxyPhase::Finishing(cause);
                vec![ProxyEffect::Finish]
            }
            ProxyPhase::Restarting(of_proxy) => {
                let cause = format!("lost the proxy of its allow-list, which {of_proxy},");
                vec![to_call(CallInput::RunnerEnded { cause })]
            }
            ProxyPhase::Gathering
            | ProxyPhase::Lost
            | ProxyPhase::Finishing(_)
            | ProxyPhase::Over => self.report_and_end(cause),
        }
    }

    fn on_ended(&mut self, cause: String) -> Vec<ProxyEffect<S>> {
        match std::mem::replace(&mut self.phase, ProxyPhase::Over) {
            ProxyPhase::Gathering => {
                let reason = format!("the proxy of its allow-list {cause}");
                vec![to_call(CallInput::CageFailed { step: "network".to_owned(), reason })]
            }
            ProxyPhase::Serving => {
                self.phase = ProxyPhase::Lost;
                self.decided.cut = Some(format!(
                    "the proxy {cause} while the command ran: no host was reached after that, and \
                     bytes and repetitions before it are incomplete in the record"
                ));
                Vec::new()
            }
            ProxyPhase::Finishing(runner) => self.report_and_end(runner),
            waiting @ ProxyPhase::Restarting(_) => {
                self.phase = waiting;
                Vec::new()
            }
            ProxyPhase::Lost | ProxyPhase::Over => Vec::new(),
        }
    }

    /// Passes the report, with the proxy's refusals, and the end to the call's state machine.
    fn report_and_end(&mut self, cause: String) -> Vec<ProxyEffect<S>> {
        let report = self.report.take().map(|mut report| {
            report.result.text = with_refusals(&report.result.text, &self.decided);
            let mut connections = self.decided.connections.iter();
            let failed = connections
                .find(|connection| matches!(connection.decision, ConnectionOutcome::Failed(_)));
            // An MCP server of no use, whose end is shown by its summary.
            if let (Outcome::Failed, Some(failed)) = (&report.result.outcome, failed) {
                report.result.summary.push_str(&format!("; {failed}"));
            }
            to_call(CallInput::Done(report))
        });
        report.into_iter().chain([to_call(CallInput::RunnerEnded { cause })]).collect()
    }
}

fn to_call<S>(input: CallInput) -> ProxyEffect<S> {
    ProxyEffect::ToCall(Box::new(input))
}

/// Inserts the connections that were not made into the result, before its last line with the exit code.
/// A command learns of most reasons only from here: clients show no text of a refused tunnel.
fn with_refusals(text: &str, decided: &ProxyDecisions) -> String {
    let not_made = |connection: &&ProxyConnection| match connection.decision {
        ConnectionOutcome::Refused(_) | ConnectionOutcome::Failed(_) => true,
        ConnectionOutcome::Made(_) | ConnectionOutcome::SignedIn(_) => false,
    };
    let refused = decided.connections.iter().filter(not_made);
    let refused: Vec<String> = refused.map(ToString::to_string).collect();
    let mut notes: Vec<String> = refused
        .iter()
        .take(MAX_LISTED)
        .map(|line| format!("[the network proxy: {line}]"))
        .collect();
    if refused.len() > MAX_LISTED {
        let more = refused.len() - MAX_LISTED;
        notes.push(format!("[{more} more were not made; agentd audit show has the record]"));
    }
    if refused.iter().any(|line| line.contains(protocol::hosts::NOT_LISTED)) {
        notes.extend(tool_specs::Restriction::Host.hint_line());
    }
    notes.extend(decided.cut.as_ref().map(|cut| format!("[{cut}]")));
    if notes.is_empty() {
        return text.to_owned();
    }
    match text.rsplit_once('\n') {
        Some((before, exit)) => format!("{before}\n{}\n{exit}", notes.join("\n")),
        None => format!("{}\n{text}", notes.join("\n")),
    }
}

/// A refused connection as text for screens and the model.
pub fn refusal(connection: &ProxyConnection) -> Option<String> {
    match connection.decision {
        ConnectionOutcome::Refused(_) => Some(connection.to_string()),
        ConnectionOutcome::Made(_)
        | ConnectionOutcome::Failed(_)
        | ConnectionOutcome::SignedIn(_) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::call::{ProcessUsage, ToolResult};
    use protocol::confinement::Tier;

    fn enforced() -> Enforced {
        Enforced { tier: Tier::A, ..Enforced::nothing("command") }
    }

    fn report(text: &str) -> RunReport {
        RunReport {
            result: ToolResult {
                outcome: Outcome::Exited { code: 0 },
                text: text.into(),
                summary: String::new(),
                is_error: false,
                code: None,
                images: Vec::new(),
            },
            images: Vec::new(),
            full: None,
            effects: Vec::new(),
            seen: Vec::new(),
            instructions: Vec::new(),
            evidence: None,
            refusals: Vec::new(),
            refusals_uncounted: 0,
            tampered: Vec::new(),
            usage: ProcessUsage::default(),
            command_pid: None,
        }
    }

    fn serving() -> ProxyMachine<u8> {
        let mut proxy = ProxyMachine::new(ProxyAttempt::First);
        assert_eq!(proxy.step(ProxyInput::Caged), []);
        assert_eq!(proxy.step(ProxyInput::Listener(7)), []);
        assert_eq!(proxy.step(ProxyInput::Listener(8)), []);
        let effects = proxy.step(ProxyInput::RunnerCaged(enforced()));
        assert_eq!(
            effects,
            [ProxyEffect::Serve(vec![7, 8]), to_call(CallInput::Caged(enforced()))]
        );
        proxy
    }

    fn refused(place: &str) -> ProxyDecisions {
        let why = protocol::hosts::NOT_LISTED.to_owned();
        let connection = ProxyConnection {
            place: place.into(),
            decision: ConnectionOutcome::Refused(why),
            count: 1,
            sent: 0,
            received: 0,
        };
        ProxyDecisions { connections: vec![connection], ..ProxyDecisions::default() }
    }

    #[test]
    fn a_command_is_let_go_when_its_proxy_can_be_reached_and_not_before() {
        serving();
        for last in 0..3 {
            let mut inputs = vec![
                ProxyInput::Caged,
                ProxyInput::Listener(7),
                ProxyInput::RunnerCaged(enforced()),
            ];
            let last = inputs.remove(last);
            let mut proxy = ProxyMachine::new(ProxyAttempt::First);
            for input in inputs {
                assert_eq!(proxy.step(input), []);
            }
            assert_eq!(proxy.step(last).len(), 2);
        }
    }

    #[test]
    fn without_a_proxy_nothing_runs() {
        for (attempt, end) in [
            // By its own word, so that another would say the same.
            (ProxyAttempt::First, ProxyInput::Uncaged("has no cage (layer: no)".into())),
            (ProxyAttempt::Last, ProxyInput::Died("has no cage (layer: no)".into())),
        ] {
            let mut proxy = ProxyMachine::<u8>::new(attempt);
            proxy.step(ProxyInput::RunnerCaged(enforced()));
            let effects = proxy.step(end);
            let [ProxyEffect::ToCall(input)] = &effects[..] else { panic!("{effects:?}") };
            let CallInput::CageFailed { step, reason } = &**input else { panic!("{input:?}") };
            assert_eq!(step, "network");
            assert!(reason.contains("has no cage"), "{reason}");
        }
    }

    #[test]
    fn a_proxy_that_dies_before_its_command_is_let_go_is_the_runner_s_end() {
        for (end, why) in [
            (ProxyInput::Died("was ended by signal 9".into()), "was ended by signal 9"),
            // Without a word, which is no better.
            (ProxyInput::Ended("exited with code 0".into()), "which exited with code 0"),
        ] {
            let mut proxy = ProxyMachine::<u8>::new(ProxyAttempt::First);
            proxy.step(ProxyInput::RunnerCaged(enforced()));
            assert_eq!(proxy.step(end), [ProxyEffect::EndRunner]);
            // Later inputs of both have no effect.
            assert_eq!(proxy.step(ProxyInput::Listener(7)), []);
            assert_eq!(proxy.step(ProxyInput::Caged), []);
            // Only then, so that no two runners of a call live at once.
            let effects = proxy.step(ProxyInput::RunnerEnded("exited with code 0".into()));
            let [ProxyEffect::ToCall(input)] = &effects[..] else { panic!("{effects:?}") };
            let CallInput::RunnerEnded { cause } = &**input else { panic!("{input:?}") };
            assert!(cause.contains(why), "{cause}");
        }
    }

    #[test]
    fn the_end_of_a_command_waits_for_what_the_proxy_decided() {
        let mut proxy = serving();
        assert_eq!(proxy.step(ProxyInput::Reported(report("out\nexit code: 0"))), []);
        let ended = ProxyInput::RunnerEnded("exited with code 0".into());
        assert_eq!(proxy.step(ended), [ProxyEffect::Finish]);
        assert_eq!(proxy.step(ProxyInput::Decisions(refused("evil.example:443"))), []);
        let effects = proxy.step(ProxyInput::Ended("exited with code 0".into()));
        let [ProxyEffect::ToCall(done), ProxyEffect::ToCall(end)] = &effects[..] else {
            panic!("{effects:?}")
        };
        let CallInput::Done(report) = &**done else { panic!("{done:?}") };
        let lines: Vec<_> = report.result.text.lines().collect();
        assert_eq!(lines[0], "out");
        assert!(lines[1].contains("evil.example:443 was refused"), "{lines:?}");
        assert!(lines[2].contains(":net allow HOST"), "{lines:?}");
        assert_eq!(lines[3], "exit code: 0");
        assert!(matches!(**end, CallInput::RunnerEnded { .. }));
    }

    #[test]
    fn a_proxy_that_dies_before_its_last_word_is_on_record() {
        let left = || ProxyInput::Ended("exited with code 0".into());
        let killed = || ProxyInput::Died("was ended by signal 9".into());
        for (last, end, cut) in [
            (true, left(), None),
            (true, killed(), Some("was ended by signal 9")),
            (false, killed(), Some("was ended by signal 9")),
            (false, left(), Some("exited with code 0")),
        ] {
            let mut proxy = serving();
            proxy.step(ProxyInput::Decisions(refused("evil.example:443")));
            proxy.step(ProxyInput::Reported(report("exit code: 0")));
            proxy.step(ProxyInput::RunnerEnded("exited with code 0".into()));
            if last {
                proxy.step(ProxyInput::Decisions(refused("evil.example:443")));
            }
            let effects = proxy.step(end);
            let [ProxyEffect::ToCall(done), _] = &effects[..] else { panic!("{effects:?}") };
            let CallInput::Done(report) = &**done else { panic!("{done:?}") };
            let said = proxy.decided().cut.as_deref();
            assert_eq!(said.is_some(), cut.is_some(), "{said:?}");
            if let Some(cut) = cut {
                assert!(said.is_some_and(|said| said.contains(cut)), "{said:?}");
                assert!(report.result.text.contains(cut), "{}", report.result.text);
            }
        }
    }

    #[test]
    fn a_proxy_that_dies_leaves_the_command_alone_and_the_record_says_so() {
        let mut proxy = serving();
        proxy.step(ProxyInput::Decisions(refused("evil.example:443")));
        assert_eq!(proxy.step(ProxyInput::Ended("was ended by signal 9".into())), []);
        proxy.step(ProxyInput::Reported(report("exit code: 6")));
        let effects = proxy.step(ProxyInput::RunnerEnded("exited with code 0".into()));
        let [ProxyEffect::ToCall(done), _] = &effects[..] else { panic!("{effects:?}") };
        let CallInput::Done(report) = &**done else { panic!("{done:?}") };
        assert!(report.result.text.contains("was ended by signal 9"), "{}", report.result.text);
        assert!(report.result.text.ends_with("exit code: 6"), "{}", report.result.text);
        assert_eq!(proxy.decided().connections.len(), 1, "what it had told is kept");
    }

    #[test]
    fn a_runner_that_dies_before_its_command_is_let_go_is_told_at_once() {
        let mut proxy = ProxyMachine::<u8>::new(ProxyAttempt::First);
        proxy.step(ProxyInput::Caged);
        let effects = proxy.step(ProxyInput::RunnerEnded("was ended by signal 9".into()));
        let cause = "was ended by signal 9".to_owned();
        assert_eq!(effects, [to_call(CallInput::RunnerEnded { cause })]);
    }
}
