//! The main loop of the notify supervisor: handles one call after the other, by the rule that
//! notified it.

use super::emulated_connect::{self, Emulated};
use super::emulated_git_config::LockedGitConfigs;
use super::listening_ports::ListeningPorts;
use super::notify_config::{NotifyConfig, SearchPath};
use super::notify_fd::{Notification, NotifyAnswer, NotifyFd};
use super::predicted_exec::{ExecClaim, ExecPrediction, PathSearches};
use super::predicted_signal::{OutsideSignals, ProcessOwner};
use super::predicted_write::RootDirs;
use super::proc_reader::ProcReader;
use super::protected_watch::ProtectedWatch;
use super::refusal_log::RefusalLog;
use super::resolve::RootDir;
use super::shm_observer::ShmObserver;
use super::wake_cpu::CallRun;
use super::writable::{RunnablePaths, WritablePaths};
use super::{
    describe, emulated_git_config, emulated_metadata, emulated_truncate, predicted_connect,
    predicted_exec, predicted_signal, predicted_write,
};
use crate::seccomp::{Arch, EmulatedCall, FilterAction, FilterRule, ObservedCall, SyscallRules};
use crate::spawn::read_only_mounts::ReadOnlyMounter;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::confinement::{Network, Refusal, RefusalKind, Subject, Tier};
use std::cell::{Cell, OnceCell, RefCell};
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of blocking emulated connections; further callers get EAGAIN.
const MAX_PENDING_CONNECTS: usize = 64;

/// The network of the command.
struct CommandNet {
    sockets: Vec<PathBuf>,
    inet: crate::seccomp::InetSockets,
    network: Network,
    host_ports: Option<ListeningPorts>,
    /// Listening ports in the cage; this process is in the command's network in tier A.
    own_ports: Option<ListeningPorts>,
}

/// The protected files, and the files that may start.
struct FileProtection {
    settings: LockedGitConfigs,
    watched: Option<ProtectedWatch>,
    mounter: Option<ReadOnlyMounter>,
    runnable: RunnablePaths,
}

/// The roots of the command and of this process, and the programs found by search.
struct PathRoots {
    host: RootDir,
    /// The command's root. All its processes share it, since changing the root is refused.
    cage: OnceCell<RootDir>,
    searches: RefCell<PathSearches>,
    search_path: SearchPath,
}

/// The state of the notify supervisor's thread.
pub(super) struct NotifyLoop {
    notices: Arc<NotifyFd>,
    pace: Cell<CallRun>,
    policy: SyscallRules,
    processes: ProcReader,
    writable: WritablePaths,
    made: Option<ShmObserver>,
    file_bytes: u64,
    tier: Tier,
    signals: OutsideSignals,
    net: CommandNet,
    protection: FileProtection,
    paths: PathRoots,
    record: Arc<Mutex<RefusalLog>>,
    stop: PipeReader,
}

impl NotifyLoop {
    /// # Errors
    /// `watch` lacks a directory that is needed to resolve paths.
    pub(super) fn new(
        notify: OwnedFd,
        watch: NotifyConfig,
        (record, search_path): (Arc<Mutex<RefusalLog>>, SearchPath),
        stop: PipeReader,
    ) -> io::Result<Self> {
        let processes = ProcReader::new(watch.proc)?;
        let host = RootDir::new(&processes, watch.host).ok_or(io::ErrorKind::NotFound)?;
        let own_ports = match watch.host_ports {
            Some(_) => Some(ListeningPorts::open(processes.proc())?),
            None => None,
        };
        Ok(Self {
            notices: Arc::new(NotifyFd::new(notify)),
            pace: Cell::default(),
            policy: SyscallRules::new(&watch.spec, Arch::HOST),
            processes,
            writable: WritablePaths::new(watch.tier, watch.writable, watch.read_only),
            made: watch.shm_creations.map(ShmObserver::new),
            file_bytes: watch.file_bytes,
            tier: watch.tier,
            signals: watch.signals,
            net: CommandNet {
                sockets: watch.sockets,
                inet: watch.spec.inet,
                network: watch.network,
                host_ports: watch.host_ports,
                own_ports,
            },
            protection: FileProtection {
                settings: watch.settings,
                watched: watch.watched,
                mounter: watch.mounter,
                runnable: watch.runnable,
            },
            paths: PathRoots {
                host,
                cage: OnceCell::new(),
                searches: RefCell::default(),
                search_path,
            },
            record,
            stop,
        })
    }

    /// Serves until all processes under the filter are gone, or until `finish`.
    pub(super) fn serve(&self) {
        while self.wait() {
            match self.notices.receive() {
                Ok(Some(notice)) => {
                    self.track_caller(notice.tid);
                    self.handle(&notice);
                }
                Ok(None) => {}
                // No more calls can arrive. Closing the descriptor fails the calls that still wait.
                Err(_) => return,
            }
        }
    }

    fn track_caller(&self, tid: u32) {
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
            all.extend(
                self.protection.watched.iter().map(|it| PollFd::new(it.as_fd(), PollFlags::POLLIN)),
            );
            match poll(&mut all, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(_) => return false,
            }
            let found =
                |at: usize| all.get(at).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
            let (calls, stop, replaced) = (found(0), found(1), found(2));
            // Before the next call is continued.
            if let (false, Some(watched), Some(mounter)) =
                (replaced.is_empty(), &self.protection.watched, &self.protection.mounter)
            {
                watched.reseal_changed(mounter);
            }
            // Checked first, or a busy command could delay the end.
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

    fn handle(&self, notice: &Notification) {
        let Some(rule) = self.policy.judge(notice.nr, &notice.args) else {
            // Filter and rules come from one spec, so a mismatch is a bug in agentd: refuse the
            // call.
            self.notices.answer(notice.id, NotifyAnswer::Errno(libc::EPERM));
            return;
        };
        match &rule.then {
            FilterAction::Refuse(errno) | FilterAction::Fallback(errno) => {
                self.refuse(notice, rule, *errno)
            }
            FilterAction::RefuseOthers(argument, errno) => {
                if self.names_itself(notice, *argument) {
                    self.notices.answer(notice.id, NotifyAnswer::Continue);
                } else {
                    self.refuse(notice, rule, *errno);
                }
            }
            FilterAction::RefuseOutside(argument, errno) => {
                match predicted_signal::owner_of_argument(*argument, notice, &self.processes) {
                    ProcessOwner::Cage => {
                        self.notices.answer(notice.id, NotifyAnswer::Continue);
                    }
                    // Not left to the kernel: another process could get this PID meanwhile.
                    ProcessOwner::NoProcess => {
                        self.notices.answer(notice.id, NotifyAnswer::Errno(libc::ESRCH));
                    }
                    ProcessOwner::Outside => self.refuse(notice, rule, *errno),
                }
            }
            FilterAction::Observe(call) => self.observe(notice, rule, call),
            FilterAction::Emulate(EmulatedCall::Connect) => self.connect(notice, rule),
            FilterAction::Emulate(EmulatedCall::Truncate) => {
                let (writable, most) = (&self.writable, self.file_bytes);
                let emulated = emulated_truncate::prepare(notice, &self.processes, writable, most);
                self.make(notice, rule, emulated, |length| length.set());
            }
            FilterAction::Emulate(EmulatedCall::Metadata(subject, respect)) => {
                let whole = (*subject, *respect);
                let emulated =
                    emulated_metadata::prepare(notice, whole, &self.processes, &self.writable);
                self.make(notice, rule, emulated, |change| change.make(self.processes.own()));
            }
        }
    }

    fn refuse(&self, notice: &Notification, rule: &FilterRule, errno: i32) {
        let subject = describe::subject(rule, &notice.args, notice.tid, &self.processes);
        if self.notices.answer(notice.id, NotifyAnswer::Errno(errno)) {
            self.note(notice, rule, RefusalKind::Refused, errno, subject);
        }
    }

    /// True if the process ID in the argument is the caller's own. Then the call can safely be
    /// continued: the ID is in a register, and it stays the caller's while the caller waits.
    #[allow(clippy::cast_possible_truncation)]
    fn names_itself(&self, notice: &Notification, argument: usize) -> bool {
        let named = notice.args[argument] as u32;
        self.processes.status(notice.tid).is_some_and(|status| {
            status.tgids.last() == Some(&named) || status.tids.last() == Some(&named)
        })
    }

    /// Copies the arguments, continues the call, and then predicts the kernel's answer.
    fn observe(&self, notice: &Notification, rule: &FilterRule, call: &ObservedCall) {
        // The caller's root exists while the caller waits.
        let roots = self.roots(notice.tid);
        let go_on = || self.notices.answer(notice.id, NotifyAnswer::Continue);
        let predicted = match call {
            ObservedCall::Open { .. } | ObservedCall::Names(_) => {
                let mut claims = predicted_write::claims(call, notice, &self.processes);
                if rule.call == "renameat2" {
                    predicted_write::apply_rename_flags(&mut claims, notice.args[4]);
                }
                self.note_made(&claims);
                if let Some(emulated) = self.change_settings(notice, rule, &claims, roots) {
                    self.make(notice, rule, emulated, |()| 0);
                    return;
                }
                let predict =
                    || predicted_write::predict(&claims, &self.processes, roots?, &self.writable);
                // The caller's own `/proc` entry disappears when it ends, so predict while it
                // waits.
                if claims.iter().any(|claim| claim.path.starts_with("/proc")) {
                    let predicted = predict();
                    go_on().then_some(predicted)
                } else {
                    go_on().then(predict)
                }
            }
            ObservedCall::Start { dir, path, flags } => {
                // The caller's memory is gone once it has executed the program.
                let start = predicted_exec::claim(*dir, *path, *flags, notice, &self.processes);
                if let (true, Some(start), Some(roots)) = (go_on(), start, roots) {
                    self.record_start(notice, rule, &start, roots);
                }
                None
            }
            ObservedCall::Bind => {
                let claim = predicted_connect::address(notice, &self.processes)
                    .and_then(predicted_connect::bound_name);
                let claims = claim.as_slice();
                self.note_made(claims);
                go_on().then(|| {
                    predicted_write::predict(claims, &self.processes, roots?, &self.writable)
                })
            }
            ObservedCall::Connect => {
                let address = predicted_connect::address(notice, &self.processes);
                // Done while the caller waits: its own server may end right after.
                let unheard = address.as_ref().and_then(|address| {
                    predicted_connect::find_missing_listener(
                        address,
                        notice,
                        self.net.own_ports.as_ref()?,
                    )
                });
                go_on().then(|| {
                    if let (Some(unheard), Some(ports)) = (unheard, &self.net.host_ports) {
                        return predicted_connect::predict_missing_listener(unheard, ports);
                    }
                    predicted_connect::predict(
                        &address?,
                        &self.processes,
                        roots?,
                        self.tier,
                        self.net.network,
                    )
                })
            }
            ObservedCall::Segment => {
                if let Some(made) = &self.made {
                    made.segment(notice, &self.processes);
                }
                go_on();
                None
            }
            ObservedCall::Process(target, act) => {
                let found =
                    predicted_signal::predict(*target, *act, notice, &self.processes, self.signals);
                go_on().then_some(found)
            }
        };
        if let Some(Some((errno, subject))) = predicted {
            self.note(notice, rule, RefusalKind::Predicted, errno, subject);
        }
    }

    /// Makes a harmless change of git's configuration in the caller's place.
    fn change_settings(
        &self,
        notice: &Notification,
        rule: &FilterRule,
        claims: &[predicted_write::PathClaim],
        roots: Option<RootDirs<'_>>,
    ) -> Option<Emulated<()>> {
        let mounter = self.protection.mounter.as_ref()?;
        // With flags, `renameat2` does something other than replace the file.
        if rule.call == "renameat2" && notice.args[4] != 0 {
            return None;
        }
        let settings = self.protection.settings.all();
        let locked =
            emulated_git_config::find_replaced(&settings, claims, &self.processes, roots?)?;
        // If the caller still waits, the data read under its PID is its own.
        if self.notices.is_pending(notice.id) {
            emulated_git_config::replace_if_harmless(locked, mounter)
        } else {
            None
        }
    }

    /// While the caller waits, the names that it is about to create do not exist yet.
    fn note_made(&self, claims: &[predicted_write::PathClaim]) {
        if let Some(made) = &self.made {
            made.names(claims);
        }
    }

    /// Records a refused exec. If the same PATH search finds the program elsewhere, the entry is
    /// removed.
    fn record_start(
        &self,
        notice: &Notification,
        rule: &FilterRule,
        start: &ExecClaim,
        roots: RootDirs<'_>,
    ) {
        let mut searches = self.paths.searches.borrow_mut();
        match predicted_exec::predict(start, &self.processes, roots, &self.protection.runnable) {
            ExecPrediction::Refused(errno, subject) => {
                let refusal = refusal(notice, rule, RefusalKind::Predicted, errno, subject);
                self.record().add(refusal.clone());
                // Only for the PATH that agentd set: with a PATH of its own a command could keep
                // refusals out of the record.
                if self.paths.search_path.get().is_some_and(|folders| start.is_in(folders)) {
                    searches.refused(notice.tid, start, refusal);
                }
            }
            ExecPrediction::Runs => {
                for refusal in searches.take_refused_before(notice.tid, start) {
                    self.record().take_back(refusal);
                }
            }
            ExecPrediction::FailsAnyway => {}
        }
    }

    /// Makes a short call in the caller's place.
    fn make<T>(
        &self,
        notice: &Notification,
        rule: &FilterRule,
        emulated: Emulated<T>,
        make: impl Fn(&T) -> i32,
    ) {
        if !self.notices.is_pending(notice.id) {
            return;
        }
        let answer = match emulated {
            Emulated::Refused(errno, subject) => {
                self.note(notice, rule, RefusalKind::Refused, errno, subject);
                NotifyAnswer::Errno(errno)
            }
            Emulated::Fails(errno) => NotifyAnswer::Errno(errno),
            Emulated::Ready(ready) => NotifyAnswer::of(make(&ready)),
        };
        self.notices.answer(notice.id, answer);
    }

    /// Connects in the caller's place; on a separate thread if the socket is blocking.
    fn connect(&self, notice: &Notification, rule: &FilterRule) {
        let id = notice.id;
        let emulated =
            emulated_connect::prepare(notice, &self.processes, self.net.inet, &self.net.sockets);
        if !self.notices.is_pending(id) {
            return;
        }
        match emulated {
            Emulated::Refused(errno, subject) => {
                self.note(notice, rule, RefusalKind::Refused, errno, subject);
                self.notices.answer(id, NotifyAnswer::Errno(errno));
            }
            Emulated::Fails(errno) => {
                self.notices.answer(id, NotifyAnswer::Errno(errno));
            }
            Emulated::Ready(connection) if !connection.may_block() => {
                self.notices.answer(id, NotifyAnswer::of(connection.make()));
            }
            Emulated::Ready(connection) => {
                if Arc::strong_count(&self.notices) > MAX_PENDING_CONNECTS {
                    self.notices.answer(id, NotifyAnswer::Errno(libc::EAGAIN));
                    return;
                }
                let notices = Arc::clone(&self.notices);
                let started = std::thread::Builder::new()
                    .name("connect".to_owned())
                    .spawn(move || notices.answer(id, NotifyAnswer::of(connection.make())));
                if started.is_err() {
                    self.notices.answer(id, NotifyAnswer::Errno(libc::EAGAIN));
                }
            }
        }
    }

    /// The root directories of the command and of the host.
    fn roots(&self, tid: u32) -> Option<RootDirs<'_>> {
        let host = &self.paths.host;
        match self.tier {
            Tier::B | Tier::C => Some(RootDirs { cage: host, host }),
            Tier::A => {
                if self.paths.cage.get().is_none() {
                    let root = RootDir::of(&self.processes, tid)?;
                    // It cannot be set already, since only this thread sets it.
                    let _ = self.paths.cage.set(root);
                }
                Some(RootDirs { cage: self.paths.cage.get()?, host })
            }
        }
    }

    fn note(
        &self,
        notice: &Notification,
        rule: &FilterRule,
        kind: RefusalKind,
        errno: i32,
        subject: Subject,
    ) {
        self.record().add(refusal(notice, rule, kind, errno, subject));
    }

    fn record(&self) -> MutexGuard<'_, RefusalLog> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refusal(
    notice: &Notification,
    rule: &FilterRule,
    kind: RefusalKind,
    errno: i32,
    subject: Subject,
) -> Refusal {
    Refusal { kind, syscall: rule.call.to_owned(), subject, errno, pid: notice.tid, count: 1 }
}
