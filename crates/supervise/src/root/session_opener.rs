//! Opens one session, off the root's event loop: builds its specification, opens its journal, makes its
//! directories and starts its actor.

use super::blocking::blocking;
use super::kept_flags;
use super::open_mode::OpenMode;
use super::seat::{copy_records, take_seat};
use super::state::ProjectDirs;
use crate::SupervisorSettings;
use crate::audit_actor::AuditMsg;
use crate::command_editor;
use crate::messages::{RootMsg, SessionMsg};
use crate::private_dirs;
use crate::project_caches::{self, CacheLease};
use crate::records::{decode, encode};
use crate::remover::Remover;
use crate::session_actor::{SessionActor, SessionArgs};
use crate::sign_in;
use crate::worker_ref::WorkerRef;
use journal::{Journal, TaskHeader};
use launch::protected_restore::{self};
use launch::spawner::Spawner;
use protocol::broker::BrokerLink;
use protocol::client::{RequestFailure, SessionRequest, SettingChange};
use protocol::confinement::{Confinement, FilePath};
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use protocol::provider::PassedFd;
use protocol::store::ForkedFrom;
use protocol::tool::CertifiedSession;
use ractor::{Actor, ActorRef};
use settings_copies::copy_settings;
use setup::forbidden_dirs::ForbiddenDirs;
use setup::open_failure::OpenFailure;
use setup::private_paths;
use setup::session_spec::{
    HostContext, SessionSpec, TaskBounds, build_session_spec, check_earlier_costs, check_price,
};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens a session outside of the root actor.
pub(super) struct SessionOpener {
    pub(super) settings: Arc<SupervisorSettings>,
    pub(super) spawner: Spawner,
    pub(super) remover: Remover,
    pub(super) projects: ProjectDirs,
    pub(super) broker: WorkerRef<BrokerLink>,
    pub(super) audit: ActorRef<AuditMsg>,
    pub(super) root: ActorRef<RootMsg>,
}

impl SessionOpener {
    pub(super) async fn open(
        &self,
        id: SessionId,
        opening: &SessionRequest,
        papers: Vec<(PassedFd, OwnedFd)>,
        begin: OpenMode,
    ) -> Result<ActorRef<SessionMsg>, OpenFailure> {
        let kept_by = match &begin {
            OpenMode::Resume(_) => Some(id.clone()),
            OpenMode::Fork { of, .. } => Some(of.clone()),
            // A sub-agent is asked for with the flags of its parent.
            OpenMode::New | OpenMode::Task(_) => None,
        };
        let (sessions, plain) = (self.settings.dirs.state.join("sessions"), opening.clone());
        let opening = &blocking(move || match kept_by {
            Some(of) => kept_flags::with_kept(plain, &sessions, &of),
            None => Ok(plain),
        })
        .await?;
        let (settings, wanted) = (Arc::clone(&self.settings), opening.clone());
        let (from, written) = (begin.clone(), self.projects.written.clone());
        let spec = blocking(move || {
            let written = written.all().map_err(|error| unknown_links(&error))?;
            let sessions = settings.dirs.state.join("sessions");
            clear_unbegun(&sessions, &id, &from)?;
            let task = task_header(&sessions, &id, from.clone())?;
            let ground = HostContext {
                dirs: &settings.dirs,
                host_tier: settings.host.current().map_err(|error| {
                    let text = format!("the sandbox cannot be tried: {error}");
                    OpenFailure::new(RequestFailure::Disk, text)
                })?,
                cgroup: settings.cgroup.as_deref(),
                temp_root: &settings.temp_root,
                task: task.as_deref(),
                written: &written,
            };
            let mut spec = build_session_spec(id, &wanted, ground)?;
            if let Some(task) = task {
                let parent = match from {
                    OpenMode::Task(start) => start.bounds,
                    OpenMode::New | OpenMode::Resume(_) | OpenMode::Fork { .. } => {
                        parent_on_disk(&sessions, &task)
                    }
                };
                spec.set_parent_bounds(parent);
            }
            Ok(spec)
        });
        let mut spec = spec.await?;
        make_withheld_dirs(spec.confinement());
        let earlier = matches!(begin, OpenMode::Resume(_))
            .then(|| self.settings.dirs.state.join("sessions").join(&spec.id().0));
        let seated = take_seat(&spec, earlier.as_deref()).await?;
        let mut opened = self.open_journal(&spec, begin).await?;
        let directory = opened.directory.clone();
        let forked_from = blocking(move || Ok(journal::forked_from(&directory))).await?;
        spec.set_forked_from(
            forked_from
                .map(|(session, last_call)| ForkedFrom { session: SessionId(session), last_call }),
        );
        spec.add_notes(protected_restore::restored_note(&opened.repaired));
        let allow = std::mem::take(&mut opened.turn.allow);
        let learned = std::mem::take(&mut opened.remembered_rules);
        spec.change_settings(|settings| {
            settings.remember(learned);
            settings.set_turn_rules(allow);
        });
        spec.set_use(opened.tasks.used);
        let (kept, changes) = (spec.forbidden().clone(), opened.changes.clone());
        let still = blocking(move || Ok(filter_changes(changes, &kept)));
        let (changes, refused) = still.await?;
        spec.add_notes(refused);
        let mut model = None;
        for change in &changes {
            // A script has no person to ask: its flags override recorded changes.
            let script = opening.audience == Audience::NonInteractive;
            let by_flag = match change {
                SettingChange::Network(_) | SettingChange::Host(_) => {
                    script && opening.network.is_some()
                }
                SettingChange::Mode(_) => script && opening.mode.is_some(),
                SettingChange::Model(name) => {
                    let by_flag = opening.settings.iter().any(|(key, _)| key == "provider.model");
                    model = Some(name.clone()).filter(|_| !by_flag);
                    by_flag
                }
                SettingChange::AddDirectory(_)
                | SettingChange::Pin(_)
                | SettingChange::Unpin(_)
                | SettingChange::AppendedSystem(_)
                | SettingChange::CostLimit(_)
                | SettingChange::Flag(..)
                | SettingChange::Name(_) => false,
            };
            if by_flag {
                continue;
            }
            match spec.check_managed(change) {
                Ok(()) => spec.apply_change(change),
                Err(OpenFailure { message, .. }) => {
                    let note = format!("a setting chosen earlier in this session ended: {message}");
                    if !spec.notes().contains(&note) {
                        spec.add_notes([note]);
                    }
                }
            }
        }
        let kept = flags_to_record(&opened.changes, opening);
        kept.iter().for_each(|change| spec.apply_change(change));
        if let Some(name) = model {
            spec = blocking(move || Ok(restore_model(spec, &name))).await?;
        }
        if let limit @ Some(_) = spec.setup().max_session.cost {
            check_price(limit, &spec.setup().model, spec.setup().facts)?;
            let directory = opened.directory.clone();
            blocking(move || check_earlier_costs(&directory)).await?;
        }
        if let Some(name) = opened.turn.model.take() {
            spec = blocking(move || Ok(restore_turn_model(spec, &name))).await?;
        }
        opened.journal = journal_changes(opened.journal, &kept).await?;
        if let Some(seated) = &seated {
            let (known, copy) = (seated.last_seq, seated.copy.clone());
            let (journal, place) = (opened.journal, opened.directory.clone());
            opened.journal = blocking(move || copy_records(journal, &place, (known, copy))).await?;
        }
        let (made, caches) = self.make_private_dirs(&spec).await?;
        spec.set_private_dirs(&made);
        let private = private_dirs::hold_against_cleanup(&made);
        command_editor::write(&made.join(private_paths::TMP));
        let identity = self.certify(&mut spec, &papers).await;
        let (authority, identity) =
            identity.map(|it| (it.authority, Arc::new(it.identity))).unzip();
        let written = self.projects.written.clone();
        spec = blocking(move || {
            if spec.seat().is_none() {
                written.add(spec.confinement()).map_err(|error| unknown_links(&error))?;
            }
            let mut spec = with_copied_settings(spec, &made, authority.as_deref())?;
            spec.note_left_out();
            Ok(spec)
        })
        .await?;
        let kept = spec.store().clone();
        blocking(move || {
            crate::store_dirs::make(&kept).map_err(|error| {
                let place = kept.project_store.to_path();
                let message = format!("cannot make the directory {}: {error}", place.display());
                OpenFailure::new(RequestFailure::Disk, message)
            })
        })
        .await?;
        let times = self.settings.timeouts;
        let session = SessionArgs {
            plan: spec,
            caches,
            private,
            opened,
            passed_fds: papers,
            identity,
            spawner: self.spawner.clone(),
            times,
            written: self.projects.written.clone(),
            broker: self.broker.clone(),
            audit: self.audit.clone(),
            root: self.root.clone(),
            fleet: seated,
        };
        let cell = self.root.get_cell();
        let (actor, _) = SessionActor::spawn_linked(None, SessionActor, session, cell)
            .await
            .map_err(|error| OpenFailure::new(RequestFailure::Internal, error.to_string()))?;
        Ok(actor)
    }

    /// Makes the certificate that the session's proxies present for hosts that they sign in to.
    /// Without it they sign in to none.
    async fn certify(
        &self,
        spec: &mut SessionSpec,
        papers: &[(PassedFd, OwnedFd)],
    ) -> Option<CertifiedSession> {
        let hello = self.settings.timeouts.hello;
        match sign_in::certify_if_needed(&self.spawner, spec, hello).await? {
            Ok(certified) => {
                spec.set_sign_in_hosts(sign_in::hosts_with_keys(spec, papers));
                Some(certified)
            }
            Err(why) => {
                spec.add_notes([format!(
                    "no key of net.credentials is used in this session, since its certificate \
                     could \
                     not be made: {why}"
                )]);
                None
            }
        }
    }

    /// Makes the session's private directories and the package caches of its project.
    pub(super) async fn make_private_dirs(
        &self,
        spec: &SessionSpec,
    ) -> Result<(PathBuf, Option<CacheLease>), OpenFailure> {
        let id = &spec.id().0;
        let wanted = private_paths::session_dir_path(&self.settings.temp_root, id);
        let session = self.settings.dirs.state.join("sessions").join(id);
        let caches = spec.confinement().caches.as_ref().map(FilePath::to_path);
        let (remover, overlays) = (self.remover.clone(), self.projects.overlays.clone());
        blocking(move || {
            let failed = |place: &Path, error: &io::Error| {
                let message = format!("cannot make the directory {}: {error}", place.display());
                OpenFailure::new(RequestFailure::Disk, message)
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
}

/// Without the list of the directories that calls write, no link of the home can be judged.
pub(super) fn unknown_links(error: &io::Error) -> OpenFailure {
    let message = format!("the list of directories that commands write cannot be used: {error}");
    OpenFailure::new(RequestFailure::Disk, message)
}

/// Removes the directory of a sub-agent's session that has no record: a death cut its creation short. Its
/// parent, whose lock this supervisor has, begins it again.
fn clear_unbegun(sessions: &Path, id: &SessionId, begin: &OpenMode) -> Result<(), OpenFailure> {
    let directory = sessions.join(&id.0);
    let OpenMode::Task(_) = begin else { return Ok(()) };
    if !directory.is_dir() || journal::was_begun(&directory) {
        return Ok(());
    }
    std::fs::remove_dir_all(&directory).map_err(|error| {
        let message = format!(
            "the directory {} of a session that was never begun cannot be removed: {error}",
            directory.display()
        );
        OpenFailure::new(RequestFailure::Disk, message)
    })
}

/// The last rights of a sub-agent's parent, as far as the journals of the sessions above it have them.
fn parent_on_disk(sessions: &Path, task: &TaskHeader) -> TaskBounds {
    let began = TaskBounds::recorded(&task.rights);
    let directory = sessions.join(&task.session);
    let known = journal::is_session_name(&task.session);
    let Some(entries) = known.then(|| journal::read(&directory).ok()).flatten() else {
        // It was removed, and binds no more.
        return began;
    };
    let entries: Vec<_> = entries.without_texts().map_while(Result::ok).collect();
    let now = began.after(&decode::changes(&entries));
    match journal::header(&directory).ok().and_then(|header| header.task) {
        Some(above) => now.within(&parent_on_disk(sessions, &above)),
        None => now,
    }
}

/// The call that a session works for, if it is a sub-agent's: as its first record says, whoever opens it. A
/// copy of such a session has the same bounds.
fn task_header(
    sessions: &Path,
    id: &SessionId,
    begin: OpenMode,
) -> Result<Option<Box<TaskHeader>>, OpenFailure> {
    let of = match begin {
        OpenMode::New => return Ok(None),
        OpenMode::Task(start) if !sessions.join(&id.0).is_dir() => return Ok(Some(start.header)),
        OpenMode::Task(_) | OpenMode::Resume(_) => id.clone(),
        OpenMode::Fork { of, .. } => of,
    };
    let directory = sessions.join(&of.0);
    if !journal::is_session_name(&of.0) || !directory.is_dir() {
        // The journal's opening names it.
        return Ok(None);
    }
    match journal::header(&directory) {
        Ok(header) => Ok(header.task),
        Err(error) => Err(OpenFailure::new(RequestFailure::Disk, chain(&error))),
    }
}

/// Restores the model that a person chose in an earlier run of the session. If it cannot be used
/// any more, a note tells the person.
fn restore_model(mut spec: SessionSpec, name: &str) -> SessionSpec {
    match spec.with_model(name) {
        Ok(model) => spec.change_settings(|settings| settings.choose_model(model)),
        Err(OpenFailure { message, .. }) => {
            let now = &spec.setup().model;
            let note = format!("this session uses {now}, not the model chosen earlier: {message}");
            spec.add_notes([note]);
        }
    }
    spec
}

/// Restores the model of an open turn that goes on. If it cannot be used any more, a note tells the person.
fn restore_turn_model(mut spec: SessionSpec, name: &str) -> SessionSpec {
    let limit = spec.setup().max_session.cost;
    let model = spec.with_model(name).and_then(|model| {
        check_price(limit, model.model(), model.facts())?;
        Ok(model)
    });
    match model {
        Ok(model) => spec.change_settings(|settings| settings.begin_turn_model(model)),
        Err(OpenFailure { message, .. }) => {
            let note = format!("the open turn goes on with the session's model: {message}");
            spec.add_notes([note]);
        }
    }
    spec
}

/// Splits recorded changes into those that are still possible and reasons against the others:
/// directories may have become forbidden since.
fn filter_changes(
    changes: Vec<SettingChange>,
    kept: &ForbiddenDirs,
) -> (Vec<SettingChange>, Vec<String>) {
    let mut refused = Vec::new();
    let kept = changes.into_iter().filter(|change| match change {
        SettingChange::AddDirectory(dir) => match kept.check_added(&dir.to_path()) {
            Ok(()) => true,
            Err(OpenFailure { message, .. }) => {
                refused.push(message);
                false
            }
        },
        SettingChange::Network(_)
        | SettingChange::Host(_)
        | SettingChange::Mode(_)
        | SettingChange::Model(_)
        | SettingChange::Pin(_)
        | SettingChange::Unpin(_)
        | SettingChange::AppendedSystem(_)
        | SettingChange::CostLimit(_)
        | SettingChange::Flag(..)
        | SettingChange::Name(_) => true,
    });
    (kept.collect(), refused)
}

/// Settings of flags that the journal does not have yet. They are recorded because the next run of the
/// session does not have these flags.
fn flags_to_record(changes: &[SettingChange], opening: &SessionRequest) -> Vec<SettingChange> {
    let mut pinned: Vec<&str> = Vec::new();
    let (mut appended_system, mut cost_limit) = (None, None);
    for change in changes {
        match change {
            SettingChange::Pin(file) => pinned.push(file),
            SettingChange::Unpin(file) => pinned.retain(|pinned| pinned != file),
            SettingChange::AppendedSystem(text) => appended_system = Some(text),
            SettingChange::CostLimit(most) => cost_limit = Some(*most),
            SettingChange::Network(_)
            | SettingChange::Host(_)
            | SettingChange::Mode(_)
            | SettingChange::Model(_)
            | SettingChange::AddDirectory(_)
            | SettingChange::Flag(..)
            | SettingChange::Name(_) => {}
        }
    }
    let settings = opening.settings.iter();
    let pins = settings.filter(|(key, _)| key == "context.files").map(|(_, file)| file);
    let pins = pins.filter(|file| !pinned.contains(&file.as_str())).cloned();
    let flags = &opening.conversation;
    let text = flags.appended_system.as_ref().filter(|text| Some(*text) != appended_system);
    let most = flags.cost_limit.filter(|most| Some(*most) != cost_limit);
    pins.map(SettingChange::Pin)
        .chain(text.cloned().map(SettingChange::AppendedSystem))
        .chain(most.map(SettingChange::CostLimit))
        .chain(kept_flags::to_record(changes, &opening.settings))
        .collect()
}

/// Journals these changes before anything else of this run.
async fn journal_changes(
    mut journal: Journal,
    changes: &[SettingChange],
) -> Result<Journal, OpenFailure> {
    let by = || "a flag".to_owned();
    let records: Vec<_> =
        changes.iter().map(|change| encode::setting_change(change, by())).collect();
    if records.is_empty() {
        return Ok(journal);
    }
    let kept = blocking(move || {
        let written = journal.append_all(&records).map(|_| journal);
        written.map_err(|error| OpenFailure::new(RequestFailure::Disk, chain(&error)))
    });
    kept.await
}

/// Copies the owner's settings for the session's calls into its directory.
fn with_copied_settings(
    mut spec: SessionSpec,
    own: &Path,
    authority: Option<&str>,
) -> Result<SessionSpec, OpenFailure> {
    let Some(person) = spec.settings_owner() else { return Ok(spec) };
    let dir = own.join(private_paths::SETTINGS);
    let handed = copy_settings(&person, &dir, authority).map_err(|error| {
        let message = format!("cannot write into the directory {}: {error}", dir.display());
        OpenFailure::new(RequestFailure::Disk, message)
    })?;
    spec.set_copied_settings(&dir, handed);
    Ok(spec)
}

/// Creates agentd's own directories that are missing: only an existing directory can be hidden from
/// calls.
fn make_withheld_dirs(confinement: &Confinement) {
    for dir in confinement.withheld.iter().map(FilePath::to_path).filter(|dir| !dir.exists()) {
        if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(&dir) {
            // Not fatal: a cage in which a call could create it is refused.
            tracing::debug!(dir = %dir.display(), %error, "a directory of our own cannot be made");
        }
    }
}
