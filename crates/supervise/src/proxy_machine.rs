//! The proxy beside a command whose network is an allow-list, as a pure machine: the command is let
//! go only when its proxy can be reached, and its end waits until the proxy has said what it decided.
//!
//! Used by the call actor, between the words of the runner and of the proxy and the call's life.
//! `S` is a socket that the runner hands out.

use crate::call::CallInput;
use protocol::call::Report;
use protocol::confinement::{Connection, Enforced, Passage};

/// Most kinds of refusals that the text for the model names; the record has more.
const MAX_LISTED: usize = 10;

/// What happens to a command and its proxy.
#[derive(Debug)]
pub(crate) enum ProxyInput<S> {
    /// The runner handed out one more socket.
    Listener(S),
    /// The command's cage stands.
    RunnerCaged(Enforced),
    /// The runner's account; its end is still to come.
    Reported(Report),
    /// The runner is dead, reaped and drained, for this cause.
    RunnerEnded(String),
    /// The proxy's cage stands.
    Caged,
    /// What the proxy decided so far.
    Decisions(ProxyDecisions),
    /// The proxy says that it has no cage, and why.
    Uncaged(String),
    /// The proxy has left in order, by this cause.
    Ended(String),
    /// The proxy is gone, for this cause, and not of its own accord.
    Died(String),
}

/// What is to be done, in this order.
#[derive(Debug, PartialEq)]
pub(crate) enum ProxyEffect<S> {
    /// Hand the proxy its sockets.
    Serve(Vec<S>),
    /// The command is over: the proxy shall say the rest and end.
    Finish,
    /// The runner shall end in order, with nothing run.
    EndRunner,
    /// For the call's life.
    ToCall(Box<CallInput>),
}

/// What follows where a proxy dies before its command is let go. Nothing of the call has happened then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyAttempt {
    /// Both are started again, silently, as with a runner that dies.
    First,
    /// The call is not run.
    Last,
}

/// What a proxy decided, the first in order, and how many more.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ProxyDecisions {
    pub(crate) connections: Vec<Connection>,
    pub(crate) uncounted: u64,
    /// Why what is here is not all.
    pub(crate) cut: Option<String>,
}

#[derive(Debug)]
enum ProxyPhase {
    /// Not all three that are needed are there.
    Gathering,
    Serving,
    /// It died, for this cause, before the command was let go: the runner is to end, and both to be started
    /// again.
    Restarting(String),
    /// It died while the command ran, which goes on without network.
    Lost,
    /// The command is over, by this cause; the proxy's last word is still to come.
    Finishing(String),
    Over,
}

/// One command's proxy.
#[derive(Debug)]
pub(crate) struct ProxyMachine<S> {
    attempt: ProxyAttempt,
    phase: ProxyPhase,
    listeners: Vec<S>,
    ready: bool,
    enforced: Option<Enforced>,
    report: Option<Report>,
    decided: ProxyDecisions,
    /// Whether it spoke after it was told that the command is over.
    reported_all: bool,
}

impl<S> ProxyMachine<S> {
    pub(crate) fn new(attempt: ProxyAttempt) -> Self {
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

    /// Whether the proxy's cage stood.
    pub(crate) fn is_caged(&self) -> bool {
        self.ready
    }

    /// What the proxy decided.
    pub(crate) fn decided(&self) -> &ProxyDecisions {
        &self.decided
    }

    /// What follows from this.
    pub(crate) fn step(&mut self, input: ProxyInput<S>) -> Vec<ProxyEffect<S>> {
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

    /// It is gone and may not have said all.
    fn on_died(&mut self, cause: String) -> Vec<ProxyEffect<S>> {
        match self.phase {
            ProxyPhase::Gathering if self.attempt == ProxyAttempt::First => {
                self.phase = ProxyPhase::Restarting(cause);
                return vec![ProxyEffect::EndRunner];
            }
            ProxyPhase::Finishing(_) => {
                self.decided.cut = Some(format!(
                    "the proxy {cause} before it had said all: bytes and repetitions are not \
                     all on record"
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

    /// Lets both go once the proxy can be reached.
    fn start_if_ready(&mut self) -> Vec<ProxyEffect<S>> {
        if !matches!(self.phase, ProxyPhase::Gathering) || !self.ready {
            return Vec::new();
        }
        // The runner hands all of its sockets out before it says that its cage stands.
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
                vec![to_call(CallInput::Uncaged { step: "network".to_owned(), reason })]
            }
            ProxyPhase::Serving => {
                self.phase = ProxyPhase::Lost;
                self.decided.cut = Some(format!(
                    "the proxy {cause} while the command ran: nothing was reached after that, and \
                     bytes and repetitions before it are not all on record"
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

    /// What the call's life has not heard yet: the report, with what the proxy refused, and the end.
    fn report_and_end(&mut self, cause: String) -> Vec<ProxyEffect<S>> {
        let report = self.report.take().map(|mut report| {
            report.result.text = with_refusals(&report.result.text, &self.decided);
            to_call(CallInput::Done(report))
        });
        report.into_iter().chain([to_call(CallInput::RunnerEnded { cause })]).collect()
    }
}

fn to_call<S>(input: CallInput) -> ProxyEffect<S> {
    ProxyEffect::ToCall(Box::new(input))
}

/// The result's text with what the proxy refused in front of its last line, the exit code.
fn with_refusals(text: &str, decided: &ProxyDecisions) -> String {
    let refused: Vec<String> = decided.connections.iter().filter_map(refusal).collect();
    let mut notes: Vec<String> = refused
        .iter()
        .take(MAX_LISTED)
        .map(|line| format!("[the network proxy: {line}]"))
        .collect();
    if refused.len() > MAX_LISTED {
        let more = refused.len() - MAX_LISTED;
        notes.push(format!("[it refused {more} more; agentd audit show has the record]"));
    }
    if refused.iter().any(|line| line.contains(protocol::hosts::NOT_LISTED)) {
        notes.extend(tools::Restriction::Host.hint_line());
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

/// What was refused, for screens and the model.
pub(crate) fn refusal(connection: &Connection) -> Option<String> {
    match connection.decision {
        Passage::Refused { .. } => Some(connection.to_string()),
        Passage::Made { .. } | Passage::Failed { .. } | Passage::SignedIn { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::call::{Outcome, ProcessUsage, ToolResult};
    use protocol::confinement::Tier;

    fn enforced() -> Enforced {
        Enforced {
            tier: Tier::A,
            profile: "command".into(),
            landlock_abi: 7,
            network: "allow-list".into(),
            namespaces: Vec::new(),
            seccomp: true,
            refusals_observable: true,
            dropped: Vec::new(),
            limits: Vec::new(),
            missing: Vec::new(),
            cgroup: Vec::new(),
        }
    }

    fn report(text: &str) -> Report {
        Report {
            result: ToolResult {
                outcome: Outcome::Exited { code: 0 },
                text: text.into(),
                summary: String::new(),
                is_error: false,
                code: None,
            },
            full: None,
            effects: Vec::new(),
            seen: Vec::new(),
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
        let connection = Connection {
            place: place.into(),
            decision: Passage::Refused { why },
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
            let CallInput::Uncaged { step, reason } = &**input else { panic!("{input:?}") };
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
            // What is still heard of the two says nothing more.
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
