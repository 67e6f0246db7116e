//! `agentd fleet worker`: claims tasks, renews their leases, and ends them.

use crate::claim::Claim;
use crate::clock::boot_ms;
use crate::database::{Database, config_of, pause_when_full, url_of};
use crate::door::{self, Seats};
use crate::error::FleetError;
use crate::host::Host;
use crate::objects::Objects;
use crate::restore;
use crate::seat::LAPSED;
use crate::secret::uuid;
use crate::task_run::{Begun, Seated};
use crate::terminals;
use crate::turns::Turns;
use crate::workspace::place_of;
use config::{Dirs, Environment};
use fleet::{LeaseTimes, WorkerArgs};
use protocol::fleet::LeaseClock;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_postgres::types::{ToSql, Type};

/// Between two looks for tasks, while none comes.
const LOOKS: [u64; 4] = [100, 250, 500, 1000];
/// How long a host claims nothing that could not run a task, in milliseconds.
const REST: u64 = 5_000;

pub(crate) async fn main(args: &WorkerArgs) -> Result<(), FleetError> {
    // Its lines go to standard error, where a service manager keeps them.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .init();
    let environment = Environment::of_process();
    let dirs = Dirs::resolve(&environment).map_err(|error| FleetError::Host(error.to_string()))?;
    let place = dirs.state.join("fleet");
    for dir in [&place.join("seats"), &dirs.runtime] {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(FleetError::file(dir))?;
    }
    let _lock = lock(&dirs)?;
    let work = work_dir(args, &environment)?;
    let config = config_of(&url_of(args.database.url.as_deref())?)?;
    let database = Database::new(config.clone(), Duration::from_secs(10));
    let id = worker_id(&place.join("worker-id"))?;
    let times = enlist(&database, &id, args).await?;
    let objects = Objects::of_environment()?;
    if let Some(objects) = &objects {
        objects.check(&id).await?;
    }
    // A request may take a third of a lease. After that another connection is tried.
    let database = Arc::new(database.with_patience(Duration::from_millis(times.renew_every())));
    let seats = Seats::default();
    tokio::spawn(terminals::serve(config, id.clone(), seats.clone(), dirs.runtime.clone()));
    let host = Host {
        id,
        dirs,
        work,
        objects,
        times,
        database,
        seats,
        turns: Turns::default(),
        rests_until: Arc::default(),
        ending: watch::channel(false).0,
        cancelled: watch::channel(BTreeSet::new()).0,
    };
    host.work(args).await
}

/// The directory of the workspaces.
fn work_dir(args: &WorkerArgs, environment: &Environment) -> Result<PathBuf, FleetError> {
    let data = || {
        let home = || environment.absolute("HOME").map(|home| home.join(".local/share"));
        environment.absolute("XDG_DATA_HOME").or_else(home)
    };
    let dir = args.work_dir.clone().or_else(|| data().map(|data| data.join("agentd-fleet")));
    let dir = dir.ok_or_else(|| FleetError::Host("name a directory with --work-dir".to_owned()))?;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .map_err(FleetError::file(&dir))?;
    std::fs::canonicalize(&dir).map_err(FleetError::file(&dir))
}

/// One worker for each state directory.
fn lock(dirs: &Dirs) -> Result<File, FleetError> {
    let path = dirs.state.join("fleet").join("lock");
    let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(FleetError::file(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FleetError::WorkerRuns(dirs.state.clone())),
        Err(TryLockError::Error(error)) => Err(FleetError::file(&path)(error)),
    }
}

/// The worker's name in the database. It outlives the process, as its leases may.
fn worker_id(file: &Path) -> Result<String, FleetError> {
    match std::fs::read_to_string(file) {
        Ok(id) if id.trim().len() == 36 => return Ok(id.trim().to_owned()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(FleetError::file(file)(error));
        }
        Ok(_) | Err(_) => {}
    }
    let id = uuid()?;
    std::fs::write(file, &id).map_err(FleetError::file(file))?;
    Ok(id)
}

async fn enlist(
    database: &Database,
    id: &str,
    args: &WorkerArgs,
) -> Result<LeaseTimes, FleetError> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = args.name.clone().unwrap_or(host);
    let (slots, name, labels) = (i32::from(args.slots), &name, &args.labels);
    let row = loop {
        let enlisted = database.once(|client| async move {
            let text = "select lease_ms from agentd.enlist($1::text::uuid, $2, $3, $4, $5)";
            client.query_one(text, &[&id, name, labels, &slots, &protocol::BUILD_ID]).await
        });
        match enlisted.await {
            Err(error) if error.is_full() => {
                tracing::warn!("the worker waits for a connection: {}", error.in_words());
                tokio::time::sleep(pause_when_full()).await;
            }
            answer => break answer?,
        }
    };
    let lease_ms: i32 = row.try_get(0)?;
    Ok(LeaseTimes { lease_ms: u64::try_from(lease_ms).unwrap_or(30_000) })
}

impl Host {
    /// Claims and runs tasks until the worker is to end.
    async fn work(self, args: &WorkerArgs) -> Result<(), FleetError> {
        let mut terminate = signal(SignalKind::terminate()).map_err(FleetError::Runtime)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(FleetError::Runtime)?;
        let mut running = JoinSet::new();
        // Before that no supervisor is let in: a seat that is not known yet is a lost one.
        for (begun, seat) in self.begun_before().await? {
            running.spawn(self.clone().run_again(begun, seat));
        }
        door::open(&door::socket_in(&self.dirs.runtime), self.seats.clone())?;
        let renewing = tokio::spawn(self.clone().renew_leases());
        let (slots, mut empty) = (usize::from(args.slots), 0_usize);
        loop {
            let mut is_full = false;
            let free = if self.rests() { 0 } else { slots.saturating_sub(running.len()) };
            if free > 0 {
                match self.claim(free).await {
                    Ok((claims, lease)) => {
                        empty = if claims.is_empty() { empty + 1 } else { 0 };
                        for claim in claims {
                            running.spawn(self.clone().run(claim, lease));
                        }
                    }
                    Err(error) if error.is_of_the_connection() => {
                        empty += 1;
                        is_full = error.is_full();
                        tracing::warn!("no task is claimed: {}", error.in_words());
                    }
                    // What runs here goes on. Its owner mends what the database refuses.
                    Err(error) => {
                        empty += 1;
                        tracing::warn!("no task is claimed: {}", error.in_words());
                        if args.until_empty && running.is_empty() {
                            return Err(error);
                        }
                    }
                }
                if args.until_empty
                    && empty > 0
                    && running.is_empty()
                    && !self.is_task_pending().await?
                {
                    break;
                }
            }
            let pause = LOOKS.get(empty.min(LOOKS.len() - 1)).copied().unwrap_or(1000);
            let pause = Duration::from_millis(if running.len() < slots { pause } else { 60_000 });
            let pause = if is_full { pause_when_full() } else { pause };
            tokio::select! {
                Some(_) = running.join_next() => {}
                () = tokio::time::sleep(pause) => {}
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
        }
        self.ending.send_replace(true);
        tokio::select! {
            () = async { while running.join_next().await.is_some() {} } => {}
            // The second signal does not wait: the leases run out.
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        renewing.abort();
        let id = &self.id;
        let leave = |client: Arc<tokio_postgres::Client>| async move {
            client.execute("select agentd.leave($1::text::uuid)", &[id]).await
        };
        // A host that does not say so is missed soon.
        let _ = self.database.once(leave).await;
        Ok(())
    }

    /// Claims nothing for a while: this host could not run a task. Another may.
    pub(crate) fn rest(&self) {
        self.rests_until.store(boot_ms().saturating_add(REST), Ordering::Relaxed);
    }

    fn rests(&self) -> bool {
        boot_ms() < self.rests_until.load(Ordering::Relaxed)
    }

    /// Claims, with the clock of their leases.
    async fn claim(&self, most: usize) -> Result<(Vec<Claim>, LeaseClock), FleetError> {
        let (id, most) = (&self.id, i32::try_from(most).unwrap_or(1));
        let length = i32::try_from(self.times.lease_ms).unwrap_or(i32::MAX);
        // The answer may come late.
        let lease = clock(self.times, boot_ms());
        let rows = self
            .database
            .once(|client| async move {
                let text =
                    "select lease::text, task, session, epoch, last_seq, failed_over, repo, ref,
                        prompt, flags, timeout_ms, on_host_loss, resume_after, ask
                    from agentd.claim($1::text::uuid, $2, $3)";
                let words: [(&(dyn ToSql + Sync), Type); 3] =
                    [(id, Type::TEXT), (&most, Type::INT4), (&length, Type::INT4)];
                client.query_typed(text, &words).await
            })
            .await?;
        let read = |row: &tokio_postgres::Row| {
            Ok(Claim {
                lease: row.try_get(0)?,
                task: row.try_get(1)?,
                session: row.try_get(2)?,
                epoch: row.try_get(3)?,
                last_seq: row.try_get(4)?,
                failed_over: row.try_get(5)?,
                repo: row.try_get(6)?,
                reference: row.try_get(7)?,
                prompt: row.try_get(8)?,
                flags: row.try_get(9)?,
                timeout_ms: row.try_get(10)?,
                on_host_loss: row.try_get(11)?,
                resume_after: row.try_get(12)?,
                ask: row.try_get(13)?,
            })
        };
        let claims = rows.iter().map(read).collect::<Result<_, tokio_postgres::Error>>()?;
        Ok((claims, lease))
    }

    /// True if a task of the fleet waits or runs that this host may get yet.
    async fn is_task_pending(&self) -> Result<bool, FleetError> {
        let id = &self.id;
        let row = self
            .database
            .until_answered(|client| async move {
                client.query_one("select agentd.pending($1::text::uuid)", &[id]).await
            })
            .await?;
        Ok(row.try_get(0)?)
    }

    /// Renews all leases, each third of their length. One that is not renewed ends by its own clock.
    async fn renew_leases(self) {
        let every = Duration::from_millis(self.times.renew_every());
        loop {
            let started = boot_ms();
            let pause = match self.renew().await {
                Ok(()) => every,
                Err(error) => {
                    tracing::warn!(%error, "the leases are not renewed");
                    // Without one there is no hurry.
                    let most = if self.seats.all().is_empty() { 5_000 } else { 500 };
                    every.min(Duration::from_millis(most))
                }
            };
            for seat in self.seats.all() {
                if boot_ms() >= seat.state.borrow().clock.kill_at {
                    seat.lose(LAPSED);
                }
            }
            let took = Duration::from_millis(boot_ms().saturating_sub(started));
            tokio::time::sleep(pause.saturating_sub(took).max(Duration::from_millis(20))).await;
        }
    }

    async fn renew(&self) -> Result<(), FleetError> {
        let seats = self.seats.all();
        let leases: Vec<String> = seats.iter().map(|seat| seat.lease.clone()).collect();
        let (id, asked, leases) = (&self.id, boot_ms(), &leases);
        let rows = self
            .database
            .once(|client| async move {
                let text = "select lease::text, cancel
                    from agentd.renew($1::text::uuid, array(select unnest($2::text[])::uuid))";
                client.query(text, &[id, leases]).await
            })
            .await?;
        let mut renewed = BTreeMap::new();
        for row in &rows {
            renewed.insert(row.try_get::<_, String>(0)?, row.try_get::<_, bool>(1)?);
        }
        let clock = clock(self.times, asked);
        for seat in seats {
            match renewed.get(&seat.lease) {
                None => seat.lose("another host has the task now, or the lease ran out"),
                Some(cancel) => {
                    seat.state.send_modify(|state| state.clock = clock);
                    if *cancel {
                        let session = seat.session.clone();
                        self.cancelled.send_if_modified(|of| of.insert(session));
                    }
                }
            }
        }
        Ok(())
    }

    /// The claims of a worker of this host that ended without a word, as far as their leases hold, with
    /// their seats. What others left is set aside.
    async fn begun_before(&self) -> Result<Vec<(Begun, Seated)>, FleetError> {
        let dir = self.dirs.state.join("fleet").join("seats");
        let mut held = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(FleetError::file(&dir))? {
            let path = entry.map_err(FleetError::file(&dir))?.path();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let Ok(mut begun) = serde_json::from_str::<Begun>(&text) else {
                let _ = std::fs::remove_file(&path);
                continue;
            };
            let (id, lease, asked) = (&self.id, &begun.claim.lease, boot_ms());
            let renewed = self.database.until_answered(|client| async move {
                let text =
                    "select last_seq from agentd.renew($1::text::uuid, array[$2::text::uuid])";
                client.query_opt(text, &[id, lease]).await
            });
            match renewed.await?.and_then(|row| row.try_get::<_, i64>(0).ok()) {
                Some(last_seq) => {
                    begun.claim.last_seq = last_seq;
                    let clock = clock(self.times, asked);
                    let seat = self.seat_of(&begun.claim, begun.token.clone(), clock);
                    self.seats.add(Arc::clone(&seat.0));
                    held.push((begun, seat));
                }
                None => {
                    // Another host may have it.
                    let session = &begun.claim.session;
                    let _ = restore::set_aside(&self.dirs.state, session).await;
                    let _ = std::fs::remove_dir_all(place_of(&self.work, session));
                    let _ = std::fs::remove_file(&path);
                }
            }
        }
        Ok(held)
    }
}

pub(crate) fn clock(times: LeaseTimes, asked: u64) -> LeaseClock {
    let lease = times.asked_at(asked);
    LeaseClock { freeze_at: lease.freeze_at, kill_at: lease.kill_at }
}
