//! The thread's loop: one call after the other, each answered by the rule that brought it here.

use super::carry::{self, Carried};
use super::ledger::Record;
use super::made::Made;
use super::notice::{Answer, Notice, Notices};
use super::pace::Pace;
use super::paths::Root;
use super::ports::Ports;
use super::processes::Processes;
use super::replaced::Watched;
use super::settings::Held;
use super::signals::Whose;
use super::starts::{Searches, Start, Started};
use super::territory::{Runnable, Territory};
use super::writes::Roots;
use super::{
    Searched, Watch, connects, detail, lengths, settings, signals, starts, status, writes,
};
use crate::seals::Seals;
use crate::seccomp::{Arch, Errand, Look, Policy, Rule, Then};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::confinement::{Network, Refusal, RefusalKind, Tier};
use std::cell::{Cell, OnceCell, RefCell};
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Carried connections that wait at once; a caller beyond that is told to try again.
const WAITING: usize = 64;

/// What the thread owns.
pub(super) struct Server {
    notices: Arc<Notices>,
    pace: Cell<Pace>,
    policy: Policy,
    processes: Processes,
    territory: Territory,
    made: Option<Made>,
    sockets: Vec<PathBuf>,
    settings: Vec<Held>,
    watched: Option<Watched>,
    seals: Option<Seals>,
    file_bytes: u64,
    runnable: Runnable,
    inet: crate::seccomp::Inet,
    tier: Tier,
    network: Network,
    signals: super::Signals,
    host_ports: Option<Ports>,
    /// Who listens inside: this process is in the command's network, in tier A.
    own_ports: Option<Ports>,
    host: Root,
    /// The command's root; all its processes share it, since changing it is refused.
    cage: OnceCell<Root>,
    searches: RefCell<Searches>,
    searched: Searched,
    record: Arc<Mutex<Record>>,
    stop: PipeReader,
}

impl Server {
    /// # Errors
    /// Where `watch` has no directories to look through.
    pub(super) fn new(
        notify: OwnedFd,
        watch: Watch,
        (record, searched): (Arc<Mutex<Record>>, Searched),
        stop: PipeReader,
    ) -> io::Result<Self> {
        let processes = Processes::new(watch.proc)?;
        let host = Root::new(&processes, watch.host).ok_or(io::ErrorKind::NotFound)?;
        let own_ports = match watch.host_ports {
            Some(_) => Some(Ports::open(processes.proc())?),
            None => None,
        };
        Ok(Self {
            notices: Arc::new(Notices::new(notify)),
            pace: Cell::default(),
            policy: Policy::new(&watch.plan, Arch::HOST),
            processes,
            territory: Territory::new(watch.tier, watch.writable, watch.read_only),
            made: watch.made.map(Made::new),
            sockets: watch.sockets,
            settings: watch.settings,
            watched: watch.watched,
            seals: watch.seals,
            file_bytes: watch.file_bytes,
            runnable: watch.runnable,
            inet: watch.plan.inet,
            tier: watch.tier,
            network: watch.network,
            signals: watch.signals,
            host_ports: watch.host_ports,
            own_ports,
            host,
            cage: OnceCell::new(),
            searches: RefCell::default(),
            searched,
            record,
            stop,
        })
    }

    /// Serves until all who were under the filter are gone, or until `finish`.
    pub(super) fn serve(&self) {
        while self.wait() {
            match self.notices.receive() {
                Ok(Some(notice)) => {
                    self.follow(notice.tid);
                    self.handle(&notice);
                }
                Ok(None) => {}
                // Nothing more can arrive; closing the descriptor fails what still waits.
                Err(_) => return,
            }
        }
    }

    fn follow(&self, tid: u32) {
        let before = self.pace.get();
        let now = before.after(tid);
        self.pace.set(now);
        if now.wake() != before.wake() {
            self.notices.set_wake(now.wake());
        }
    }

    /// Waits for a call; false at the end.
    fn wait(&self) -> bool {
        loop {
            let mut all = vec![
                PollFd::new(self.notices.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.stop.as_fd(), PollFlags::POLLIN),
            ];
            all.extend(self.watched.iter().map(|it| PollFd::new(it.as_fd(), PollFlags::POLLIN)));
            match poll(&mut all, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(_) => return false,
            }
            let found =
                |at: usize| all.get(at).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
            let (calls, stop, replaced) = (found(0), found(1), found(2));
            // Before the next call is let go on.
            if let (false, Some(watched), Some(seals)) =
                (replaced.is_empty(), &self.watched, &self.seals)
            {
                watched.close(seals);
            }
            // First, or a busy command could hold up the end.
            if !stop.is_empty() {
                return false;
            }
            if calls.contains(PollFlags::POLLIN) {
                return true;
            }
            if !calls.is_empty() {
                return false;
            }
        }
    }

    fn handle(&self, notice: &Notice) {
        let Some(rule) = self.policy.judge(notice.nr, &notice.args) else {
            // Filter and policy come from one plan, so this is a fault of ours: stay closed.
            self.notices.answer(notice.id, Answer::Errno(libc::EPERM));
            return;
        };
        match &rule.then {
            Then::Refuse(errno) | Then::Fallback(errno) => self.refuse(notice, rule, *errno),
            Then::RefuseOthers(argument, errno) => {
                if self.names_itself(notice, *argument) {
                    self.notices.answer(notice.id, Answer::Continue);
                } else {
                    self.refuse(notice, rule, *errno);
                }
            }
            Then::RefuseOutside(argument, errno) => {
                match signals::whose(*argument, notice, &self.processes) {
                    Whose::Own => {
                        self.notices.answer(notice.id, Answer::Continue);
                    }
                    // Not left to the kernel: somebody could take the number meanwhile.
                    Whose::Nobodys => {
                        self.notices.answer(notice.id, Answer::Errno(libc::ESRCH));
                    }
                    Whose::Others => self.refuse(notice, rule, *errno),
                }
            }
            Then::Look(look) => self.look(notice, rule, look),
            Then::Carry(Errand::Connection) => self.connect(notice, rule),
            Then::Carry(Errand::Length) => {
                let (territory, most) = (&self.territory, self.file_bytes);
                let carried = lengths::prepare(notice, &self.processes, territory, most);
                self.make(notice, rule, carried, |length| length.set());
            }
            Then::Carry(Errand::Status(subject, respect)) => {
                let whole = (*subject, *respect);
                let carried = status::prepare(notice, whole, &self.processes, &self.territory);
                self.make(notice, rule, carried, |change| change.make(self.processes.own()));
            }
        }
    }

    fn refuse(&self, notice: &Notice, rule: &Rule, errno: i32) {
        let words = detail::words(rule, &notice.args, notice.tid, &self.processes);
        if self.notices.answer(notice.id, Answer::Errno(errno)) {
            self.note(notice, rule, RefusalKind::Refused, errno, words);
        }
    }

    /// Whether the process number in the argument is the caller's own. Continuing is sound then:
    /// the number is in a register, and it stays the caller's while the caller waits.
    #[allow(clippy::cast_possible_truncation)]
    fn names_itself(&self, notice: &Notice, argument: usize) -> bool {
        let named = notice.args[argument] as u32;
        self.processes.status(notice.tid).is_some_and(|status| {
            status.tgids.last() == Some(&named) || status.tids.last() == Some(&named)
        })
    }

    /// Copies what the call says, lets it go on, and then works out what the kernel will say.
    fn look(&self, notice: &Notice, rule: &Rule, look: &Look) {
        // While the caller waits its root is there.
        let roots = self.roots(notice.tid);
        let go_on = || self.notices.answer(notice.id, Answer::Continue);
        let predicted = match look {
            Look::Open { .. } | Look::Names(_) => {
                let mut claims = writes::claims(look, notice, &self.processes);
                if rule.call == "renameat2" {
                    writes::narrow(&mut claims, notice.args[4]);
                }
                self.note_made(&claims);
                if let Some(carried) = self.change_settings(notice, rule, &claims, roots) {
                    self.make(notice, rule, carried, |()| 0);
                    return;
                }
                let predict = || writes::predict(&claims, &self.processes, roots?, &self.territory);
                // The caller's own entry goes when it ends: looked at while it waits.
                if claims.iter().any(|claim| claim.path.starts_with("/proc")) {
                    let predicted = predict();
                    go_on().then_some(predicted)
                } else {
                    go_on().then(predict)
                }
            }
            Look::Start { dir, path, flags } => {
                // Its memory is gone once it has become the program.
                let start = starts::claim(*dir, *path, *flags, notice, &self.processes);
                if let (true, Some(start), Some(roots)) = (go_on(), start, roots) {
                    self.started(notice, rule, &start, roots);
                }
                None
            }
            Look::Bind => {
                let claim = connects::address(notice, &self.processes).and_then(connects::made);
                let claims = claim.as_slice();
                self.note_made(claims);
                go_on().then(|| writes::predict(claims, &self.processes, roots?, &self.territory))
            }
            Look::Connect => {
                let address = connects::address(notice, &self.processes);
                // While the caller waits: a server of its own may end right after.
                let unheard = address.as_ref().and_then(|address| {
                    connects::unheard(address, notice, self.own_ports.as_ref()?)
                });
                go_on().then(|| {
                    if let (Some(unheard), Some(ports)) = (unheard, &self.host_ports) {
                        return connects::left_behind(unheard, ports);
                    }
                    connects::predict(&address?, &self.processes, roots?, self.tier, self.network)
                })
            }
            Look::Segment => {
                if let Some(made) = &self.made {
                    made.segment(notice, &self.processes);
                }
                go_on();
                None
            }
            Look::Process(target, act) => {
                let found = signals::predict(*target, *act, notice, &self.processes, self.signals);
                go_on().then_some(found)
            }
        };
        if let Some(Some((errno, words))) = predicted {
            self.note(notice, rule, RefusalKind::Predicted, errno, words);
        }
    }

    /// Makes a harmless change of git's settings in the caller's place.
    fn change_settings(
        &self,
        notice: &Notice,
        rule: &Rule,
        claims: &[writes::Claim],
        roots: Option<Roots<'_>>,
    ) -> Option<Carried<()>> {
        let seals = self.seals.as_ref()?;
        // Flags ask for something else than to replace what is there.
        if rule.call == "renameat2" && notice.args[4] != 0 {
            return None;
        }
        let held = settings::change(&self.settings, claims, &self.processes, roots?)?;
        // What was read by the caller's number is its own, and it waits still.
        if self.notices.waits(notice.id) { settings::make(held, seals) } else { None }
    }

    /// While the caller waits, what it is about to make is not there yet.
    fn note_made(&self, claims: &[writes::Claim]) {
        if let Some(made) = &self.made {
            made.names(claims);
        }
    }

    /// Writes a refused start down, until the same search finds its program elsewhere.
    fn started(&self, notice: &Notice, rule: &Rule, start: &Start, roots: Roots<'_>) {
        let mut searches = self.searches.borrow_mut();
        match starts::predict(start, &self.processes, roots, &self.runnable) {
            Started::Refused(errno, words) => {
                let refusal = refusal(notice, rule, RefusalKind::Predicted, errno, words);
                self.record().add(refusal.clone());
                // A search of its own making would be a way to keep a refusal out of the record.
                if self.searched.get().is_some_and(|folders| start.is_in(folders)) {
                    searches.refused(notice.tid, start, refusal);
                }
            }
            Started::Runs => {
                for refusal in searches.led_to(notice.tid, start) {
                    self.record().take_back(refusal);
                }
            }
            Started::FailsAnyway => {}
        }
    }

    /// Makes a short call in the caller's place.
    fn make<T>(&self, notice: &Notice, rule: &Rule, carried: Carried<T>, make: impl Fn(&T) -> i32) {
        if !self.notices.waits(notice.id) {
            return;
        }
        let answer = match carried {
            Carried::Refused(errno, words) => {
                self.note(notice, rule, RefusalKind::Refused, errno, words);
                Answer::Errno(errno)
            }
            Carried::Fails(errno) => Answer::Errno(errno),
            Carried::Ready(ready) => Answer::of(make(&ready)),
        };
        self.notices.answer(notice.id, answer);
    }

    /// Makes the connection, on a thread of its own where it may take long.
    fn connect(&self, notice: &Notice, rule: &Rule) {
        let id = notice.id;
        let carried = carry::prepare(notice, &self.processes, self.inet, &self.sockets);
        if !self.notices.waits(id) {
            return;
        }
        match carried {
            Carried::Refused(errno, words) => {
                self.note(notice, rule, RefusalKind::Refused, errno, words);
                self.notices.answer(id, Answer::Errno(errno));
            }
            Carried::Fails(errno) => {
                self.notices.answer(id, Answer::Errno(errno));
            }
            Carried::Ready(connection) if !connection.waits() => {
                self.notices.answer(id, Answer::of(connection.make()));
            }
            Carried::Ready(connection) => {
                if Arc::strong_count(&self.notices) > WAITING {
                    self.notices.answer(id, Answer::Errno(libc::EAGAIN));
                    return;
                }
                let notices = Arc::clone(&self.notices);
                let started = std::thread::Builder::new()
                    .name("connect".to_owned())
                    .spawn(move || notices.answer(id, Answer::of(connection.make())));
                if started.is_err() {
                    self.notices.answer(id, Answer::Errno(libc::EAGAIN));
                }
            }
        }
    }

    /// Where paths lead for the command and for the host.
    fn roots(&self, tid: u32) -> Option<Roots<'_>> {
        let host = &self.host;
        match self.tier {
            Tier::B | Tier::C => Some(Roots { cage: host, host }),
            Tier::A => {
                if self.cage.get().is_none() {
                    let root = Root::of(&self.processes, tid)?;
                    // It cannot be set already: this thread alone sets it.
                    let _ = self.cage.set(root);
                }
                Some(Roots { cage: self.cage.get()?, host })
            }
        }
    }

    fn note(&self, notice: &Notice, rule: &Rule, kind: RefusalKind, errno: i32, detail: String) {
        self.record().add(refusal(notice, rule, kind, errno, detail));
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refusal(notice: &Notice, rule: &Rule, kind: RefusalKind, errno: i32, detail: String) -> Refusal {
    Refusal { kind, syscall: rule.call.to_owned(), detail, errno, pid: notice.tid, count: 1 }
}
