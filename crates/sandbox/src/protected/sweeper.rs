//! Puts protected files right while a command runs: a thread of the runner, in the runner's own
//! domain, that holds the state before the command.

use super::baseline::Baseline;
use super::baseline_file::record_repairs;
use super::dir_watch::{DirWatch, MOST_DIRS, WatchNews};
use super::file_state::FileState;
use super::path_checks::exists;
use super::path_finder::{ProtectedPaths, first_parts};
use super::remedies::{Remedies, RestorePhase};
use super::restore::within_report_limits;
use super::sweep_plan::{Coverage, KeptByContent, SweepPlan, SweepScope, ToldRemedies};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::call::{TamperRemedy, TamperedFile};
use protocol::confinement::GitSettings;
use protocol::tool::ProtectedOrder;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Receives what was put right while the command runs.
pub type ProtectedSink = Box<dyn Fn(Vec<TamperedFile>) + Send>;

/// Where it is told.
pub struct ProtectedReport {
    /// The file of [`crate::Cage::save_baseline`], in case the runner is killed.
    pub file: Option<File>,
    /// The supervisor.
    pub say: ProtectedSink,
}

impl std::fmt::Debug for ProtectedReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProtectedReport").finish_non_exhaustive()
    }
}

/// The protected files of a command.
#[derive(Debug)]
pub(crate) enum Guarded {
    /// None, by its policy.
    Nothing,
    /// They are put right after its end.
    AtEnd(Box<Baseline>),
    /// And while it runs.
    WhileRunning(Sweeper),
}

impl Guarded {
    /// Puts them right from now on.
    pub(crate) fn begin(&mut self, report: ProtectedReport) {
        *self = match std::mem::replace(self, Self::Nothing) {
            Self::AtEnd(before) => match Sweeper::start(before, report) {
                Ok(sweeper) => Self::WhileRunning(sweeper),
                Err((before, report)) => {
                    let why = "no thread can be started that looks while the command runs";
                    let remedy = TamperRemedy::Left { why: why.to_owned() };
                    (report.say)(vec![TamperedFile {
                        path: "a protected file".to_owned(),
                        remedy,
                    }]);
                    Self::AtEnd(before)
                }
            },
            other @ (Self::Nothing | Self::WhileRunning(_)) => other,
        };
    }

    /// Passes on an order. Without the thread there is nothing to do until the end.
    pub(crate) fn order(&mut self, order: ProtectedOrder) {
        match self {
            Self::WhileRunning(sweeper) => sweeper.send(order),
            Self::AtEnd(_) | Self::Nothing => {}
        }
    }

    /// Puts them right for the last time: none of the command's processes is left.
    pub(crate) fn end(self) -> Vec<TamperedFile> {
        match self {
            Self::Nothing => Vec::new(),
            Self::AtEnd(before) => before.restore(),
            Self::WhileRunning(sweeper) => sweeper.end(),
        }
    }
}

/// What a thread was to be given.
type Unguarded = (Box<Baseline>, ProtectedReport);

/// The thread, and the way to it.
#[derive(Debug)]
pub(crate) struct Sweeper {
    orders: Sender<ProtectedOrder>,
    /// A byte for each order; closed, it ends the thread.
    wake: PipeWriter,
    thread: JoinHandle<SweepThread>,
}

impl Sweeper {
    /// Starts the thread; returns what it was given where none can be started.
    fn start(before: Box<Baseline>, report: ProtectedReport) -> Result<Self, Unguarded> {
        let Ok((woken, wake)) = std::io::pipe() else { return Err((before, report)) };
        let (orders, received) = channel();
        let (give, given) = channel::<Unguarded>();
        let thread = thread::Builder::new().name("protected".to_owned()).spawn(move || {
            let Ok((before, report)) = given.recv() else { unreachable!("it is sent below") };
            let mut thread = SweepThread::new(before, report);
            thread.run(&woken, &received);
            thread
        });
        match thread {
            Ok(thread) => {
                // The thread waits for it.
                let _ = give.send((before, report));
                Ok(Self { orders, wake, thread })
            }
            Err(_) => Err((before, report)),
        }
    }

    fn send(&mut self, order: ProtectedOrder) {
        if self.orders.send(order).is_ok() {
            let _ = self.wake.write_all(&[1]);
        }
    }

    fn end(self) -> Vec<TamperedFile> {
        let Self { orders, wake, thread } = self;
        drop((orders, wake));
        match thread.join() {
            Ok(thread) => thread.end(),
            Err(_) => {
                let why =
                    "the thread that puts protected files right failed; this is a bug in agentd";
                let remedy = TamperRemedy::Left { why: why.to_owned() };
                vec![TamperedFile { path: "a protected file".to_owned(), remedy }]
            }
        }
    }
}

struct SweepThread {
    before: Box<Baseline>,
    report: ProtectedReport,
    plan: SweepPlan,
    told: ToldRemedies,
    /// Of the last search.
    found: Option<ProtectedPaths>,
    moved_aside: HashMap<PathBuf, Vec<PathBuf>>,
    /// The paths in which git's settings are the command's own to change.
    own_git: Vec<PathBuf>,
    /// Calls that may change git's settings now.
    others: BTreeSet<u32>,
}

impl SweepThread {
    fn new(before: Box<Baseline>, report: ProtectedReport) -> Self {
        let own_git = before.git_writable.clone();
        Self {
            before,
            report,
            plan: SweepPlan::new(Instant::now()),
            told: ToldRemedies::default(),
            found: None,
            moved_aside: HashMap::new(),
            own_git,
            others: BTreeSet::new(),
        }
    }

    /// Until the other end of `woken` is closed.
    fn run(&mut self, woken: &PipeReader, orders: &Receiver<ProtectedOrder>) {
        let mut watch = self.watch();
        loop {
            let now = Instant::now();
            if let Some(scope) = self.plan.due(now) {
                self.sweep(scope);
                let coverage = watch.as_ref().map_or(Coverage::Some, DirWatch::coverage);
                self.plan.knows(coverage, self.kept_by_content());
                self.plan.done(scope, Instant::now(), now.elapsed());
            }
            let wait = self.plan.next().map(|next| next.saturating_duration_since(Instant::now()));
            match self.wait(wait, woken, watch.as_ref()) {
                Woken::Ended => return,
                Woken::Order => self.take_orders(woken, orders),
                Woken::Event => {
                    if let Some(watch) = &mut watch {
                        let news = watch.read();
                        self.plan.covers(watch.coverage());
                        if news == WatchNews::Look {
                            self.plan.seen(Instant::now());
                        }
                    }
                }
                Woken::Time => {}
            }
        }
    }

    /// Watches the directories, if the user has a watch left.
    fn watch(&self) -> Option<DirWatch> {
        let before = &self.before;
        let of_names = before.recorded.iter().map(|(place, _)| place).chain(&before.absent);
        let exact: HashSet<PathBuf> = of_names.map(|place| place.path.clone()).collect();
        let gits = before.linked.iter().map(|linked| linked.common.clone()).collect();
        let places = (before.roots.clone(), gits);
        DirWatch::new(places, first_parts(before.names), exact, most_dirs()).ok()
    }

    fn wait(&self, time: Option<Duration>, woken: &PipeReader, watch: Option<&DirWatch>) -> Woken {
        let time = time.map_or(PollTimeout::NONE, |time| {
            PollTimeout::try_from(time + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        let fds = [Some(woken.as_fd()), watch.map(AsFd::as_fd)].into_iter().flatten();
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        if poll(&mut fds, time).is_err() {
            return Woken::Time;
        }
        let ready = |at: usize| fds.get(at).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        match (ready(0), ready(1)) {
            (order, _) if order.contains(PollFlags::POLLIN) => Woken::Order,
            (end, _) if !end.is_empty() => Woken::Ended,
            (_, event) if !event.is_empty() => Woken::Event,
            _ => Woken::Time,
        }
    }

    fn take_orders(&mut self, mut woken: &PipeReader, orders: &Receiver<ProtectedOrder>) {
        let _ = woken.read(&mut [0; 64]);
        for order in orders.try_iter() {
            match order {
                ProtectedOrder::Look => self.plan.asked(Instant::now()),
                ProtectedOrder::OtherCall { call, git: GitSettings::Writable } => {
                    self.others.insert(call);
                    let common = self.before.linked.iter().map(|linked| linked.common.clone());
                    self.before.git_writable =
                        self.before.roots.iter().cloned().chain(common).collect();
                }
                ProtectedOrder::OtherCall {
                    call,
                    git: GitSettings::Kept | GitSettings::DirectoryKept,
                } => {
                    if !self.others.remove(&call) {
                        continue;
                    }
                    self.before.accept_git_settings();
                    if self.others.is_empty() {
                        self.before.git_writable.clone_from(&self.own_git);
                    }
                    if let Some(file) = &mut self.report.file {
                        // Without it, a crash brings the earlier settings back, beside these.
                        let _ = self.before.save_again(file);
                    }
                }
            }
        }
    }

    fn sweep(&mut self, scope: SweepScope) {
        let known = match scope {
            SweepScope::Search => None,
            SweepScope::Compare => self.found.take(),
        };
        let mut remedies = Remedies::new(RestorePhase::WhileRunning, self.before.roots.clone());
        remedies.moved_aside = std::mem::take(&mut self.moved_aside);
        remedies.reserve = std::mem::take(&mut self.before.reserve);
        self.found = Some(self.before.put_right(&mut remedies, known));
        self.moved_aside = remedies.moved_aside;
        self.before.reserve = remedies.reserve;
        if !remedies.list.is_empty() {
            let common = self.before.linked.iter().map(|linked| &linked.common);
            self.before.reserve.take_again(self.before.roots.iter().chain(common));
        }
        let news = self.told.news(remedies.list);
        if news.is_empty() {
            return;
        }
        if let Some(file) = &mut self.report.file {
            // The supervisor hears of it all the same.
            let _ = record_repairs(file, &news);
        }
        (self.report.say)(news);
    }

    fn kept_by_content(&self) -> KeptByContent {
        let recorded = &self.before.recorded;
        let held = |state: &FileState| matches!(state, FileState::Unrecorded);
        let known: HashSet<&PathBuf> = recorded.iter().map(|(place, _)| &place.path).collect();
        let new = self.found.iter().flat_map(|found| &found.paths);
        let mut new = new.filter(|place| !known.contains(&place.path));
        match recorded.iter().any(|(_, state)| !held(state)) || new.any(|it| exists(&it.path)) {
            true => KeptByContent::Some,
            false => KeptByContent::None,
        }
    }

    fn end(mut self) -> Vec<TamperedFile> {
        self.before.git_writable.clone_from(&self.own_git);
        let (told, moved) = (self.told, self.moved_aside);
        within_report_limits(told.with_last(self.before.restore_after(moved)))
    }
}

enum Woken {
    /// The command has ended.
    Ended,
    Order,
    Event,
    Time,
}

/// A part of the user's watches: editors need some, too.
fn most_dirs() -> usize {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    let limit = limit.ok().and_then(|limit| limit.trim().parse::<usize>().ok());
    limit.map_or(MOST_DIRS, |limit| MOST_DIRS.min(limit / 4))
}
