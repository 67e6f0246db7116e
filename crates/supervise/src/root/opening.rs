//! Opens sessions, off the root's event loop: it reads files and waits for leftovers of an earlier
//! run of the session. Other requests for the same session wait for the same result.

use super::RootState;
use super::shutdown::ShutdownPhase;
use crate::SupervisorSettings;
use crate::audit_actor::AuditMsg;
use crate::call::PendingQuestion;
use crate::clean_settings::copy_settings;
use crate::command_env::write_editor;
use crate::error_chain::chain;
use crate::file_versions::FileVersions;
use crate::forbidden_dirs::ForbiddenDirs;
use crate::journal_repair::{JournalRepair, repair_journal};
use crate::messages::{BrokerToSession, OpenRequest, RootMsg, RootToSession, SessionMsg};
use crate::private_dirs;
use crate::project_caches::{self, CacheLease};
use crate::project_overlays::OverlayRegistry;
use crate::protected_restore::{self, ProtectedCopies, ProtectedRestorer};
use crate::records::decode;
use crate::records::encode;
use crate::records::encode::TurnRound;
use crate::remover::Remover;
use crate::session_actor::{OpenedJournal, SessionActor, SessionArgs};
use crate::session_lock::SessionLock;
use crate::session_spec::{
    HostContext, OpenFailure, SessionSpec, build_session_spec, make_withheld_dirs,
};
use crate::sign_in;
use crate::unix_time::now_ms;
use crate::worker::spawner::Spawner;
use crate::worker::timeouts::WorkerTimeouts;
use crate::worker_ref::WorkerRef;
use journal::{Header, Journal, OpenCall, Progress, Record};
use protocol::broker::BrokerLink;
use protocol::call::Tampered;
use protocol::client::{Change, FailedKind, Opening, Start};
use protocol::confinement::FilePath;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::Audience;
use protocol::provider::Paper;
use protocol::session::OpenTurn;
use protocol::tool::Certified;
use ractor::{Actor, ActorRef, ActorStatus};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;

impl RootState {
    pub(super) fn open_session(&mut self, myself: &ActorRef<RootMsg>, order: Box<OpenRequest>) {
        if self.shutdown_phase != ShutdownPhase::NotStarted {
            return refuse(*order, shutting_down());
        }
        let (id, begin) = match open_mode(&order.opening.start) {
            Ok(found) => found,
            Err(failure) => return refuse(*order, failure),
        };
        if let Some(session) = self.sessions.get(&id) {
            let _ = session.send_message(RootToSession::Join(order).into());
            return;
        }
        if let Some(waiting) = self.opening.get_mut(&id) {
            return waiting.push(*order);
        }
        let Some(order) = self.wait_for_retirement(&id, *order).map(Box::new) else { return };
        self.opening.insert(id.clone(), Vec::new());
        let opener = SessionOpener {
            settings: Arc::clone(&self.settings),
            spawner: self.spawner.clone(),
            remover: self.remover.clone(),
            overlays: self.overlays.clone(),
            broker: self.broker.clone(),
            audit: self.audit.clone(),
            root: myself.clone(),
        };
        tokio::spawn(async move {
            let mut order = order;
            let papers = std::mem::take(&mut order.passed_fds);
            let opened = opener.open(id.clone(), &order.opening, papers, begin).await;
            let _ = opener.root.send_message(RootMsg::OpenFinished { session: id, opened, order });
        });
    }

    /// From here on every client finds the session.
    pub(super) fn on_open_finished(
        &mut self,
        myself: &ActorRef<RootMsg>,
        id: SessionId,
        opened: Result<ActorRef<SessionMsg>, OpenFailure>,
        order: OpenRequest,
    ) {
        let waiting = self.opening.remove(&id).unwrap_or_default();
        match opened {
            Ok(actor) if self.shutdown_phase != ShutdownPhase::NotStarted => {
                self.end_with_supervisor(myself, &actor);
                refuse(order, shutting_down());
            }
            Ok(actor) if actor.get_status() != ActorStatus::Stopped => {
                if let Some(why) = self.broker_failed.clone() {
                    let _ = actor.send_message(BrokerToSession::Failed(why).into());
                }
                self.sessions.insert(id, actor.clone());
                // Until now the session could not receive messages of the broker: neither its
                // restart nor a verdict. `BrokerBack` makes the session ask again.
                if self.broker_failed.is_none() {
                    let _ =
                        actor.send_message(BrokerToSession::Back(self.broker.generation()).into());
                }
                let _ = actor.send_message(RootToSession::Join(Box::new(order)).into());
            }
            Ok(_) => {
                let message = format!(
                    "session {id} ended right after its start; the log has the \
                                       reason"
                );
                refuse(order, OpenFailure::new(FailedKind::Internal, message));
            }
            Err(failure) => refuse(order, failure),
        }
        for order in waiting {
            self.open_session(myself, Box::new(order));
        }
        self.end_broker_if_last(myself);
    }
}

/// Restores the model that a person chose in an earlier run of the session. If it cannot be used
/// any more, a note tells the person.
fn restore_model(mut plan: SessionSpec, name: &str) -> SessionSpec {
    match plan.with_model(name) {
        Ok(config) => plan.set_model(config),
        Err(OpenFailure { message, .. }) => {
            let now = &plan.setup.model;
            plan.notes.push(format!(
                "this session uses {now}, not the model chosen earlier: \
                                     {message}"
            ));
        }
    }
    plan
}

/// Splits recorded changes into those that may still be made, and reasons against the others:
/// directories may have become forbidden since.
fn filter_changes(changes: Vec<Change>, kept: &ForbiddenDirs) -> (Vec<Change>, Vec<String>) {
    let mut refused = Vec::new();
    let kept = changes.into_iter().filter(|change| match change {
        Change::AddDirectory(dir) => match kept.check_added(&dir.to_path()) {
            Ok(()) => true,
            Err(OpenFailure { message, .. }) => {
                refused.push(message);
                false
            }
        },
        Change::Network(_)
        | Change::Host(_)
        | Change::Mode(_)
        | Change::Model(_)
        | Change::Pin(_)
        | Change::Unpin(_) => true,
    });
    (kept.collect(), refused)
}

/// Files pinned by flags and not yet recorded in the journal. They are recorded because the next
/// run of the session does not have these flags.
fn pins_to_keep(changes: &[Change], settings: &[(String, String)]) -> Vec<Change> {
    let mut pinned: Vec<&str> = Vec::new();
    for change in changes {
        match change {
            Change::Pin(file) => pinned.push(file),
            Change::Unpin(file) => pinned.retain(|pinned| pinned != file),
            Change::Network(_)
            | Change::Host(_)
            | Change::Mode(_)
            | Change::Model(_)
            | Change::AddDirectory(_) => {}
        }
    }
    let flags = settings.iter().filter(|(key, _)| key == "context.files").map(|(_, file)| file);
    flags.filter(|file| !pinned.contains(&file.as_str())).cloned().map(Change::Pin).collect()
}

/// Journals these changes before anything else of this run.
async fn journal_changes(mut journal: Journal, changes: &[Change]) -> Result<Journal, OpenFailure> {
    let by = || "a flag".to_owned();
    let records: Vec<_> =
        changes.iter().map(|change| encode::setting_change(change, by())).collect();
    if records.is_empty() {
        return Ok(journal);
    }
    let kept = blocking(move || {
        let written = journal.append_all(&records).map(|_| journal);
        written.map_err(|error| OpenFailure::new(FailedKind::Disk, chain(&error)))
    });
    kept.await
}

fn refuse(order: OpenRequest, failure: OpenFailure) {
    // The client may have disconnected.
    let _ = order.reply.send(Err(failure));
}

fn shutting_down() -> OpenFailure {
    OpenFailure::new(FailedKind::Ending, "the supervisor is ending; try again in a moment")
}

/// Opens a session outside of the root actor.
struct SessionOpener {
    settings: Arc<SupervisorSettings>,
    spawner: Spawner,
    remover: Remover,
    overlays: OverlayRegistry,
    broker: WorkerRef<BrokerLink>,
    audit: ActorRef<AuditMsg>,
    root: ActorRef<RootMsg>,
}

impl SessionOpener {
    async fn open(
        &self,
        id: SessionId,
        opening: &Opening,
        papers: Vec<(Paper, OwnedFd)>,
        begin: OpenMode,
    ) -> Result<ActorRef<SessionMsg>, OpenFailure> {
        let (settings, wanted) = (Arc::clone(&self.settings), opening.clone());
        let plan = blocking(move || {
            let ground = HostContext {
                dirs: &settings.dirs,
                host_tier: settings.host.current(),
                cgroup: settings.cgroup.as_deref(),
                temp_root: &settings.temp_root,
            };
            build_session_spec(id, &wanted, ground)
        });
        let mut plan = plan.await?;
        make_withheld_dirs(&plan.confinement);
        let mut opened = self.open_journal(&plan, begin).await?;
        plan.notes.extend(protected_restore::restored_note(&opened.repaired));
        plan.rules.rules.extend(opened.remembered_rules.iter().cloned());
        let (kept, changes) = (plan.forbidden.clone(), opened.changes.clone());
        let still = blocking(move || Ok(filter_changes(changes, &kept)));
        let (changes, refused) = still.await?;
        plan.notes.extend(refused);
        let mut model = None;
        for change in &changes {
            // A script has no person to ask: its flags override recorded changes.
            let script = opening.audience == Audience::Nobody;
            let by_flag = match change {
                Change::Network(_) | Change::Host(_) => script && opening.network.is_some(),
                Change::Mode(_) => script && opening.mode.is_some(),
                Change::Model(name) => {
                    let by_flag = opening.settings.iter().any(|(key, _)| key == "provider.model");
                    model = Some(name.clone()).filter(|_| !by_flag);
                    by_flag
                }
                Change::AddDirectory(_) | Change::Pin(_) | Change::Unpin(_) => false,
            };
            if !by_flag {
                plan.apply_change(change);
            }
        }
        let pins = pins_to_keep(&opened.changes, &opening.settings);
        opened.journal = journal_changes(opened.journal, &pins).await?;
        pins.iter().for_each(|pin| plan.apply_change(pin));
        if let Some(name) = model {
            plan = blocking(move || Ok(restore_model(plan, &name))).await?;
        }
        let (made, caches) = self.make_private_dirs(&plan).await?;
        plan.set_private_dirs(&made);
        let private = private_dirs::hold_against_cleanup(&made);
        write_editor(&made.join(private_dirs::TMP));
        let identity = self.certify(&mut plan, &papers).await;
        let (authority, identity) =
            identity.map(|it| (it.authority, Arc::new(it.identity))).unzip();
        plan = blocking(move || with_copied_settings(plan, &made, authority.as_deref())).await?;
        let kept = plan.store.clone();
        blocking(move || {
            crate::store_dirs::make(&kept).map_err(|error| {
                let place = kept.project_store.to_path();
                let message = format!("cannot make the directory {}: {error}", place.display());
                OpenFailure::new(FailedKind::Disk, message)
            })
        })
        .await?;
        let times = WorkerTimeouts::from(plan.config.daemon);
        let session = SessionArgs {
            plan,
            caches,
            private,
            opened,
            passed_fds: papers,
            identity,
            spawner: self.spawner.clone(),
            times,
            broker: self.broker.clone(),
            audit: self.audit.clone(),
            root: self.root.clone(),
        };
        let cell = self.root.get_cell();
        let (actor, _) = SessionActor::spawn_linked(None, SessionActor, session, cell)
            .await
            .map_err(|error| OpenFailure::new(FailedKind::Internal, error.to_string()))?;
        Ok(actor)
    }

    /// Makes the certificate that the session's proxies present for hosts that they sign in to.
    /// Without it they sign in to none.
    async fn certify(
        &self,
        plan: &mut SessionSpec,
        papers: &[(Paper, OwnedFd)],
    ) -> Option<Certified> {
        let hello = WorkerTimeouts::from(plan.config.daemon).hello;
        match sign_in::certify_if_needed(&self.spawner, plan, hello).await? {
            Ok(certified) => {
                plan.set_sign_in_hosts(sign_in::hosts_with_keys(plan, papers));
                Some(certified)
            }
            Err(why) => {
                plan.notes.push(format!(
                    "no key of net.credentials is used in this session, since its certificate \
                     could \
                     not be made: {why}"
                ));
                None
            }
        }
    }

    async fn open_journal(
        &self,
        plan: &SessionSpec,
        begin: OpenMode,
    ) -> Result<OpenedJournal, OpenFailure> {
        let sessions = self.settings.dirs.state.join("sessions");
        let directory = sessions.join(&plan.id.0);
        match begin {
            OpenMode::New => {
                let header = new_header(plan);
                let journal = blocking(move || {
                    Journal::create(&sessions, header)
                        .map_err(|error| OpenFailure::new(FailedKind::Disk, chain(&error)))
                });
                let journal = journal.await?;
                let hold = acquire_session_lock(&directory).await?;
                let (turns, last) = (0, OpenTurn::Waits);
                Ok(OpenedJournal {
                    journal,
                    hold,
                    directory,
                    turns,
                    last,
                    cut_short: None,
                    pending_questions: Vec::new(),
                    queue: VecDeque::new(),
                    changes: Vec::new(),
                    remembered_rules: Vec::new(),
                    file_versions: FileVersions::default(),
                    tampered: Vec::new(),
                    repaired: Vec::new(),
                })
            }
            OpenMode::Fork { of, at } => {
                let id = plan.id.clone();
                blocking(move || fork(&sessions, &of, &id, at)).await?;
                Box::pin(self.open_journal(plan, OpenMode::Resume(OpenTurn::Waits))).await
            }
            OpenMode::Resume(_) if !journal::is_session_name(&plan.id.0) || !directory.is_dir() => {
                let message = format!("there is no session {}", plan.id);
                Err(OpenFailure::new(FailedKind::NotFound, message))
            }
            OpenMode::Resume(open_turn) => {
                let place = directory.clone();
                let opened = blocking(move || {
                    Journal::open(&place).map_err(|error| OpenFailure::from(&error))
                });
                let opened = opened.await?;
                // The journal is final only once no process of an earlier run is alive.
                let hold = acquire_session_lock(&directory).await?;
                if let Some(torn) = &opened.torn {
                    tracing::warn!(kept = %torn.kept.display(), "an incomplete record was set \
                                                                 aside");
                }
                let JournalRepair { lost, mut records, turns, round, open_turn: last, cut_short } =
                    repair_journal(&opened.past, open_turn);
                let saved = ProtectedCopies::of(&directory);
                let known = decode::tampered_names(&opened.past.entries);
                let (mut tampered, mut put_right) = (known.clone(), Vec::new());
                for (call, record) in lost.iter().zip(&mut records) {
                    let names = self.restore_protected(plan, (&hold, &saved), call).await?;
                    let left = protected_restore::unrestored(&names).into_iter();
                    let new: Vec<_> = left.filter(|name| !tampered.contains(name)).collect();
                    tampered.extend(new);
                    put_right.extend(protected_restore::in_words(&names));
                    if let Record::Interrupted { tampered, .. } = record {
                        *tampered = protected_restore::in_words(&names);
                    }
                    if let Record::Interrupted { audit, .. } | Record::Result { audit, .. } = record
                    {
                        let place = TurnRound { turn: turns, round };
                        *audit = Some(self.audit_lost(plan, place, call, &names).await?);
                    }
                }
                if tampered != known {
                    records.insert(0, Record::Tampered { names: tampered.clone() });
                }
                let mut journal = opened.journal;
                let mended = blocking(move || {
                    if !records.is_empty() {
                        journal
                            .append_all(&records)
                            .map_err(|error| OpenFailure::new(FailedKind::Disk, chain(&error)))?;
                    }
                    Ok(journal)
                });
                let journal = mended.await?;
                // Every call that started now has an end on disk.
                saved.remove_all();
                let entries = &opened.past.entries;
                let (open, queue) = (pending_questions(entries), decode::queued_prompts(entries));
                let (changes, learned) = (decode::changes(entries), decode::learned_rules(entries));
                Ok(OpenedJournal {
                    journal,
                    hold,
                    directory,
                    turns,
                    last,
                    cut_short: cut_short.map(decode::deaths),
                    pending_questions: open,
                    queue,
                    changes,
                    remembered_rules: learned,
                    file_versions: FileVersions::of(entries),
                    tampered,
                    repaired: put_right,
                })
            }
        }
    }

    /// Restores protected files that a call changed which was lost with its supervisor, before the
    /// session continues.
    async fn restore_protected(
        &self,
        plan: &SessionSpec,
        (hold, saved): (&SessionLock, &ProtectedCopies),
        call: &OpenCall,
    ) -> Result<Vec<Tampered>, OpenFailure> {
        if call.progress == Progress::NeverStarted {
            return Ok(Vec::new());
        }
        let found = tools::interpret(&call.tool, &call.input);
        if found.is_ok_and(|found| sandbox::has_protected_names(found.spec.profile))
            && saved.lacks(call.number)
        {
            return Ok(vec![protected_restore::unrestored_unknown(
                "the copies that its runner saved are missing",
            )]);
        }
        let mut confinement = plan.confinement.clone();
        let (made, _caches) = self.make_private_dirs(plan).await?;
        private_dirs::set_location(&made, &mut confinement);
        let hello = WorkerTimeouts::from(plan.config.daemon).hello;
        let (spawner, hold, saved) = (self.spawner.clone(), hold.clone(), saved.clone());
        let repairer = ProtectedRestorer {
            spawner: spawner.with_env(&plan.worker_env),
            lock: hold,
            copies: saved,
            hello,
        };
        let id = CallId { session: plan.id.clone(), number: call.number };
        Ok(repairer.restore_after_restart(&id, &confinement).await)
    }

    /// Makes the session's private directories and the package caches of its project.
    async fn make_private_dirs(
        &self,
        plan: &SessionSpec,
    ) -> Result<(PathBuf, Option<CacheLease>), OpenFailure> {
        let id = &plan.id.0;
        let wanted = private_dirs::session_dir_path(&self.settings.temp_root, id);
        let session = self.settings.dirs.state.join("sessions").join(id);
        let caches = plan.confinement.caches.as_ref().map(FilePath::to_path);
        let (remover, overlays) = (self.remover.clone(), self.overlays.clone());
        blocking(move || {
            let failed = |place: &Path, error: &io::Error| {
                let message = format!("cannot make the directory {}: {error}", place.display());
                OpenFailure::new(FailedKind::Disk, message)
            };
            let made = private_dirs::make(&wanted, &session, &remover);
            let made = made.map_err(|error| failed(&wanted, &error))?;
            let open = |place: PathBuf| {
                let open = project_caches::lease(&place, &overlays);
                open.map_err(|error| failed(&place, &error))
            };
            Ok((made, caches.map(open).transpose()?))
        })
        .await
    }

    /// Audits a call that was lost with its supervisor.
    async fn audit_lost(
        &self,
        plan: &SessionSpec,
        place: TurnRound,
        call: &OpenCall,
        tampered: &[Tampered],
    ) -> Result<journal::Head, OpenFailure> {
        let (done, written) = oneshot::channel();
        let decided = Box::new(encode::audit_lost_decision(&plan.id, place, call));
        // The proposed script is recorded, although it may not have run.
        let script = tools::interpret(&call.tool, &call.input).ok().and_then(|call| call.command);
        let ended = Box::new(encode::audit_lost_end(&plan.id, call, tampered, now_ms()));
        let _ = self.audit.send_message(AuditMsg::Lost { decided, script, ended, done });
        let written = written.await.unwrap_or_else(|_| Err("it is gone".to_owned()));
        written.map_err(|reason| {
            let message = format!("the audit log cannot be written: {reason}");
            OpenFailure::new(FailedKind::Disk, message)
        })
    }
}

fn new_id() -> Result<SessionId, OpenFailure> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes)
        .map_err(|error| OpenFailure::new(FailedKind::Internal, error.to_string()))?;
    Ok(SessionId(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// How the session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OpenMode {
    New,
    Resume(OpenTurn),
    Fork { of: SessionId, at: Option<u64> },
}

fn open_mode(start: &Start) -> Result<(SessionId, OpenMode), OpenFailure> {
    match start {
        Start::New => Ok((new_id()?, OpenMode::New)),
        Start::Resume { session, open_turn } => Ok((session.clone(), OpenMode::Resume(*open_turn))),
        Start::Fork { of, at } => Ok((new_id()?, OpenMode::Fork { of: of.clone(), at: *at })),
    }
}

/// Copies the owner's settings for the session's calls into its directory.
fn with_copied_settings(
    mut plan: SessionSpec,
    own: &Path,
    authority: Option<&str>,
) -> Result<SessionSpec, OpenFailure> {
    let Some(person) = plan.settings_owner() else { return Ok(plan) };
    let dir = own.join(private_dirs::SETTINGS);
    let handed = copy_settings(&person, &dir, authority).map_err(|error| {
        let message = format!("cannot write into the directory {}: {error}", dir.display());
        OpenFailure::new(FailedKind::Disk, message)
    })?;
    plan.set_copied_settings(&dir, handed);
    Ok(plan)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OpenFailure> + Send + 'static,
) -> Result<T, OpenFailure> {
    let failed = |error: tokio::task::JoinError| {
        OpenFailure::new(FailedKind::Internal, format!("a thread ended: {error}"))
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(failed(error)))
}

/// Creates a session as a copy of another, up to this record or else up to the last record without
/// an open turn.
fn fork(
    sessions: &Path,
    of: &SessionId,
    id: &SessionId,
    at: Option<u64>,
) -> Result<(), OpenFailure> {
    let source = sessions.join(&of.0);
    if !journal::is_session_name(&of.0) || !source.is_dir() {
        let message = format!("there is no session {of}");
        return Err(OpenFailure::new(FailedKind::NotFound, message));
    }
    let failed = |error: &dyn std::error::Error| {
        let message = format!("session {of} cannot be forked: {}", chain(error));
        OpenFailure::new(FailedKind::Disk, message)
    };
    let at = match at {
        Some(at) => at,
        None => {
            let entries = journal::read(&source).map_err(|error| failed(&error))?.without_texts();
            last_closed_turn(entries.map_while(Result::ok))
        }
    };
    let mut fork = journal::fork(sessions, &of.0, &id.0, at).map_err(|error| failed(&error))?;
    // Queued prompts stay with the session in which they were sent.
    fork.append(&Record::TakenBack).map(drop).map_err(|error| failed(&error))
}

/// The last record without an open turn: the end of a turn, or a setting changed after it.
fn last_closed_turn(entries: impl Iterator<Item = journal::Entry>) -> u64 {
    let (mut rest, mut resting) = (1, true);
    for entry in entries {
        if matches!(entry.record, Record::Prompt { .. }) {
            resting = false;
        }
        if matches!(entry.record, Record::TurnEnded { .. }) {
            resting = true;
        }
        if resting && matches!(entry.record, Record::TurnEnded { .. } | Record::Changed { .. }) {
            rest = entry.seq;
        }
    }
    rest
}

/// Pending questions by call: the digest that the answer must match, and the deadline.
fn pending_questions(entries: &[journal::Entry]) -> Vec<(u32, PendingQuestion)> {
    let asked = |entry: &journal::Entry| {
        let Record::Asked { call, digest, deadline, .. } = &entry.record else { return None };
        Some((*call, PendingQuestion { digest: digest.clone(), deadline: *deadline }))
    };
    entries.iter().filter_map(asked).collect()
}

/// Waits, off the event loop, until no call of an earlier supervisor runs.
async fn acquire_session_lock(directory: &Path) -> Result<SessionLock, OpenFailure> {
    let directory = directory.to_owned();
    let taken = tokio::task::spawn_blocking(move || SessionLock::acquire(&directory)).await;
    let taken = taken.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    taken.map_err(|error| match error.kind() == std::io::ErrorKind::WouldBlock {
        true => OpenFailure::new(
            FailedKind::Held,
            "a call of this session that began earlier has not ended yet; try again; if it \
             persists, look for agentd-tool in `ps`",
        ),
        false => OpenFailure::new(FailedKind::Disk, chain(&error)),
    })
}

fn new_header(plan: &SessionSpec) -> Header {
    Header {
        format: journal::FORMAT,
        id: plan.id.0.clone(),
        project: plan.confinement.project.to_path().into(),
        model: plan.setup.model.clone(),
        agentd: env!("CARGO_PKG_VERSION").to_owned(),
        parent: None,
    }
}
