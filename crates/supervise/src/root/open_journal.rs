//! Creates, forks or reopens a session's journal, and repairs records that an earlier run left
//! incomplete.

use super::blocking::blocking;
use super::lost_tasks;
use super::open_mode::OpenMode;
use super::session_opener::SessionOpener;
use crate::audit_actor::AuditMsg;
use crate::person_prompt::TypedCommand;
use crate::records::TurnRound;
use crate::records::audit;
use crate::records::decode;
use crate::records::encode;
use crate::session_actor::{OpenTurnGrants, OpenedJournal, OpenedTasks, WaitingWishes};
use crate::task_outcome::TaskOutcome;
use crate::unix_time::now_ms;
use crate::wanted_compaction::wanted_compaction;
use call::{FileVersions, PendingQuestion, tampered_in_words};
use journal::{
    AskedQuestion, CallProgress, Journal, JournalRepair, OpenCall, Past, SessionHeader,
    repair_journal,
};
use launch::protected_restore::{self, ProtectedCopies, ProtectedRestorer};
use launch::session_lock::SessionLock;
use protocol::call::TamperedFile;
use protocol::client::RequestFailure;
use protocol::error_chain::chain;
use protocol::ids::{CallId, SessionId};
use protocol::session::{ExpandedPrompt, OpenTurn};
use setup::open_failure::OpenFailure;
use setup::private_paths;
use setup::session_spec::SessionSpec;
use std::path::Path;
use tokio::sync::oneshot;
use tool_specs::InterpretedCall;

impl SessionOpener {
    pub(super) async fn open_journal(
        &self,
        spec: &SessionSpec,
        begin: OpenMode,
    ) -> Result<OpenedJournal, OpenFailure> {
        let sessions = self.settings.dirs.state.join("sessions");
        let directory = sessions.join(&spec.id().0);
        match begin {
            OpenMode::Task(_) if directory.is_dir() => {
                Box::pin(self.open_journal(spec, OpenMode::Resume(OpenTurn::GoesOn))).await
            }
            OpenMode::New | OpenMode::Task(_) => {
                let header = new_header(spec);
                let journal = blocking(move || {
                    Journal::create(&sessions, header)
                        .map_err(|error| OpenFailure::new(RequestFailure::Disk, chain(&error)))
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
                    waiting: WaitingWishes::default(),
                    turn: OpenTurnGrants::default(),
                    changes: Vec::new(),
                    remembered_rules: Vec::new(),
                    file_versions: FileVersions::default(),
                    tampered: Vec::new(),
                    tasks: OpenedTasks::default(),
                    repaired: Vec::new(),
                })
            }
            OpenMode::Fork { of, at } => {
                let id = spec.id().clone();
                blocking(move || fork(&sessions, &of, &id, at)).await?;
                Box::pin(self.open_journal(spec, OpenMode::Resume(OpenTurn::Waits))).await
            }
            OpenMode::Resume(_)
                if !journal::is_session_name(&spec.id().0) || !directory.is_dir() =>
            {
                let message = format!("there is no session {}", spec.id());
                Err(OpenFailure::new(RequestFailure::NotFound, message))
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
                let restored = spec.seat().and_then(|seat| seat.restored);
                let said = Past::fold(&opened.past.entries);
                let repair = repair_journal((&opened.past, &said), open_turn, restored);
                let JournalRepair { lost, left_tasks, mut records, turns, round, .. } = repair;
                let elsewhere = repair.elsewhere;
                let (last, cut_short) = (repair.open_turn, repair.cut_short);
                let saved = ProtectedCopies::of(&directory);
                let known = &said.tampered;
                let (mut tampered, mut put_right) = (known.clone(), Vec::new());
                let (id, max_chars) = (spec.id().clone(), spec.config().tools.max_result_chars);
                let counted = said.spent.clone();
                let tasks = blocking(move || {
                    let mut spent = lost_tasks::recount(&sessions, &id, &counted);
                    spent.extend(lost_tasks::answer(
                        &sessions,
                        &id,
                        &lost,
                        &mut records,
                        max_chars,
                    ));
                    Ok((lost, records, spent))
                });
                let (lost, mut records, spent) = tasks.await?;
                for (call, record) in lost.iter().zip(&mut records) {
                    let read = tool_specs::interpret(&call.tool, &call.input).ok();
                    let read = (call, read.as_ref());
                    let names = match elsewhere.contains(&call.number) {
                        // The workspace was restored from before the call.
                        true => Vec::new(),
                        false => self.restore_protected(spec, (&hold, &saved), read).await?,
                    };
                    let left = protected_restore::unrestored(&names).into_iter();
                    let new: Vec<_> = left.filter(|name| !tampered.contains(name)).collect();
                    tampered.extend(new);
                    put_right.extend(tampered_in_words(&names));
                    let place = TurnRound { turn: turns, round };
                    let head = self.audit_lost(spec, place, read, &names).await?;
                    record.complete(tampered_in_words(&names), head);
                }
                let counted = said.spent.iter().map(|entry| &entry.record);
                let task_use = TaskOutcome::of(counted.chain(&spent)).totals().used;
                records.splice(0..0, spent);
                if tampered != *known {
                    records.insert(0, encode::tampered(tampered.clone()));
                }
                let mut journal = opened.journal;
                let mended = blocking(move || {
                    if !records.is_empty() {
                        journal.append_all(&records).map_err(|error| {
                            OpenFailure::new(RequestFailure::Disk, chain(&error))
                        })?;
                    }
                    Ok(journal)
                });
                let journal = mended.await?;
                // Every call that started now has an end on disk.
                saved.remove_all();
                let entries = &opened.past.entries;
                let pending =
                    said.questions.into_iter().map(|AskedQuestion { call, digest, deadline }| {
                        (call, PendingQuestion { digest, deadline })
                    });
                let queue = said.queued.into_iter().map(decode::queued_prompt).collect();
                let open_prompt = opened.past.prompt.clone().filter(|_| last == OpenTurn::GoesOn);
                let has_new_model = opened.past.has_new_model();
                let grants = |prompt: Box<journal::ExpandedPrompt>| {
                    let typed = TypedCommand::of(&prompt);
                    let ExpandedPrompt { allow, model, .. } = *prompt;
                    let model = model.filter(|_| !has_new_model);
                    OpenTurnGrants { allow, model, typed }
                };
                let turn = open_prompt.map(grants).unwrap_or_default();
                let (changes, learned) =
                    (decode::changes(entries), decode::learned_rules(said.learned));
                Ok(OpenedJournal {
                    journal,
                    hold,
                    directory,
                    turns,
                    last,
                    cut_short,
                    pending_questions: pending.collect(),
                    waiting: WaitingWishes { queue, compact: wanted_compaction(entries) },
                    turn,
                    changes,
                    remembered_rules: learned,
                    file_versions: FileVersions::of(entries),
                    tampered,
                    tasks: OpenedTasks { left: left_tasks, used: task_use },
                    repaired: put_right,
                })
            }
        }
    }

    /// Restores protected files that a call changed which was lost with its supervisor, before the
    /// session continues.
    async fn restore_protected(
        &self,
        spec: &SessionSpec,
        (hold, saved): (&SessionLock, &ProtectedCopies),
        (call, read): (&OpenCall, Option<&InterpretedCall>),
    ) -> Result<Vec<TamperedFile>, OpenFailure> {
        if call.progress == CallProgress::NeverStarted {
            return Ok(Vec::new());
        }
        if read.is_some_and(|read| sandbox::has_protected_names(read.profile))
            && saved.lacks(call.number)
        {
            return Ok(vec![protected_restore::unrestored_unknown(
                "the copies that its runner saved are missing",
            )]);
        }
        let mut confinement = spec.confinement().clone();
        let (made, _caches) = self.make_private_dirs(spec).await?;
        private_paths::set_location(&made, &mut confinement);
        let hello = self.settings.timeouts.hello;
        let (spawner, hold, saved) = (self.spawner.clone(), hold.clone(), saved.clone());
        let repairer = ProtectedRestorer {
            spawner: spawner.with_env(spec.worker_env()),
            lock: hold,
            copies: saved,
            hello,
        };
        let id = CallId { session: spec.id().clone(), number: call.number };
        Ok(repairer.restore_after_restart(&id, &confinement).await)
    }

    /// Audits a call that was lost with its supervisor.
    async fn audit_lost(
        &self,
        spec: &SessionSpec,
        place: TurnRound,
        (call, read): (&OpenCall, Option<&InterpretedCall>),
        tampered: &[TamperedFile],
    ) -> Result<journal::ChainHead, OpenFailure> {
        let (done, written) = oneshot::channel();
        // The proposed script is recorded, although it may not have run.
        // What the store answers is no script.
        let of_runner = read.filter(|read| read.profile != protocol::confinement::Profile::Store);
        let script = of_runner.and_then(|read| read.command.as_deref());
        let decided = audit::lost_decision(spec.id(), place, (call, script));
        let decided = Box::new(decided);
        let ended = Box::new(audit::lost_end(spec.id(), call, tampered, now_ms()));
        let _ = self.audit.send_message(AuditMsg::Lost { decided, ended, done });
        let written = written.await.unwrap_or_else(|_| Err("it is gone".to_owned()));
        written.map_err(|reason| {
            let message = format!("the audit log cannot be written: {reason}");
            OpenFailure::new(RequestFailure::Disk, message)
        })
    }
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
        return Err(OpenFailure::new(RequestFailure::NotFound, message));
    }
    journal::fork_at(sessions, (&of.0, &id.0), at).map_err(|error| {
        let message = format!("session {of} cannot be forked: {}", chain(&error));
        OpenFailure::new(RequestFailure::Disk, message)
    })
}

/// Waits, off the event loop, until no call of an earlier supervisor runs.
async fn acquire_session_lock(directory: &Path) -> Result<SessionLock, OpenFailure> {
    let directory = directory.to_owned();
    let taken = tokio::task::spawn_blocking(move || SessionLock::acquire(&directory)).await;
    let taken = taken.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    taken.map_err(|error| match error.kind() == std::io::ErrorKind::WouldBlock {
        true => OpenFailure::new(
            RequestFailure::Held,
            "a call of this session that began earlier has not ended yet; try again; if it \
             persists, look for agentd-tool in `ps`",
        ),
        false => OpenFailure::new(RequestFailure::Disk, chain(&error)),
    })
}

fn new_header(spec: &SessionSpec) -> SessionHeader {
    SessionHeader {
        format: journal::FORMAT,
        id: spec.id().0.clone(),
        project: spec.confinement().project.to_path().into(),
        model: spec.setup().model.clone(),
        agentd: env!("CARGO_PKG_VERSION").to_owned(),
        parent: None,
        task: spec.task().cloned().map(Box::new),
        fleet_task: spec.seat().map(|seat| seat.task),
    }
}
