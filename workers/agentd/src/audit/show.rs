//! The whole audit record of one call, as text.

use super::list::records;
use super::record_text;
use journal::{
    AuditRecord, AuditedCall, DecidedRecord, EndedRecord, Enforced, Level, PolicyRecord,
    StoredRecord, Tier,
};
use protocol::hidden::{on_screen, visible};
use std::fmt::Write;
use std::path::Path;

/// Refusals that no record shows, on any kernel.
const READS: &str = "refused reads of paths (a secret in HOME, another user's file): the kernel \
                     reports them only to the program, as an errno; the output may show it";
/// The same for changes of metadata.
const METADATA: &str =
    "refused changes of metadata (chmod, utime, extended attributes) that are not listed above";
/// In its own network namespace, a command has private loopback and abstract sockets.
const OWN_NETWORK: &str = "data sent without connect (datagrams, TCP fast open) and connections \
                           to abstract sockets: they end in the command's private network";
/// Paths and addresses are read from the caller's memory.
const HIDDEN: &str = "refusals of a program whose memory is unreadable (not dumpable, or \
                      executable and not readable): for it, only refusals by the filter are listed";
/// The loss without a notify supervisor.
const NO_LISTENER: &str = "refused system calls: this process had no notify supervisor, so the \
                           filter refused them without a record";

/// The page of `agentd audit show`.
pub(crate) fn page(dir: &Path, call: &AuditedCall) -> String {
    let mut page = CallPage::default();
    let (decided, ended) = records(call);
    page.line("call", &format!("{}.{}", call.session, call.call));
    page.line("tool", call.tool().as_deref().unwrap_or("?"));
    if let Some(decided) = decided {
        page.decided(dir, decided);
    }
    match ended {
        Some(ended) => page.ended(ended, decided),
        None => page.line("end", "none on record: the call is running, or was cut short"),
    }
    for entry in &call.entries {
        if let AuditRecord::PortOpened(opened) = &entry.record {
            let (port, by) = (opened.port, &opened.by);
            let time = record_text::time(entry.time);
            page.line("opened", &format!("port {port} to this machine, by {by}, {time} UTC"));
        }
    }
    for entry in &call.entries {
        let place = format!(
            "record {}, {} UTC, hash {}",
            entry.seq,
            record_text::time(entry.time),
            entry.hash
        );
        page.line("log", &place);
    }
    page.0
}

#[derive(Default)]
struct CallPage(String);

impl CallPage {
    fn line(&mut self, name: &str, text: &str) {
        let mut name = name;
        for line in on_screen(text).lines() {
            // Writing into a string cannot fail.
            let _ = writeln!(self.0, "{name:<12} {line}");
            name = "";
        }
    }

    fn list(&mut self, name: &str, items: &[String]) {
        let mut name = name;
        for item in items {
            self.line(name, item);
            name = "";
        }
    }

    fn decided(&mut self, dir: &Path, decided: &DecidedRecord) {
        self.line(
            "asked by",
            &format!("turn {}, request {} of the model", decided.turn, decided.round),
        );
        match decided.server_call() {
            Some(call) => self.line("input", &visible(&call.arguments)),
            None => self.line("input", &visible(&decided.input)),
        }
        match (&decided.script_text, decided.script) {
            (Some(script), _) => self.line("script", script),
            (None, Some(digest)) => match journal::script(dir, digest) {
                Ok(script) => self.line("script", &script),
                Err(error) => self.line("script", &format!("{digest} cannot be read: {error}")),
            },
            (None, None) => {}
        }
        self.line("decision", &record_text::decision_line(decided));
        if let Some(policy) = &decided.requested {
            self.line("requested", &requested(policy));
        }
        if !decided.rights.is_empty() {
            self.line("asked for", &format!("{}, for this call only", decided.rights.join(", ")));
        }
    }

    fn ended(&mut self, ended: &EndedRecord, decided: Option<&DecidedRecord>) {
        let by_store =
            decided.is_some_and(|it| it.requested.as_ref().is_some_and(|it| it.profile == "store"));
        match &ended.enforced {
            Some(cage) => self.cage(cage),
            None if by_store => {
                self.line("enforced", "no cage of its own: agentd-store answers it")
            }
            None => self.line("enforced", "nothing: no cage was made, and nothing ran"),
        }
        if let Some(by) = ended.recalled {
            let text = format!("cached from call {by} of the session: its files are unchanged");
            self.line("answer", &text);
        }
        let code = ended.code.as_ref().map_or_else(String::new, |code| format!(" [{code}]"));
        self.line("end", &format!("{}{code}", record_text::end(ended, decided)));
        if let Some(started) = ended.started {
            let took = ended.ended.saturating_sub(started);
            self.line(
                "time",
                &format!("started {} UTC, took {took} ms", record_text::time(started)),
            );
        }
        if let Some(StoredRecord { what, bytes }) = &ended.stored {
            self.line("stored", &visible(&format!("{what}, {bytes} bytes of text written")));
        }
        if !by_store {
            self.resources(ended);
        }
        if let Some(output) = ended.output {
            self.line("output", &format!("SHA-256 {output}"));
        }
        self.refusals(ended, decided);
    }

    fn resources(&mut self, ended: &EndedRecord) {
        let pid = |pid: Option<u32>| pid.map_or_else(|| "none".to_owned(), |pid| pid.to_string());
        let pids = format!("runner {}, command {}", pid(ended.runner_pid), pid(ended.command_pid));
        self.line("processes", &pids);
        let usage = ended.usage;
        self.line(
            "used",
            &format!(
                "{} ms of processor, {} KiB of memory at most, {} bytes written",
                usage.cpu_ms, usage.peak_kib, usage.written_bytes
            ),
        );
    }

    fn cage(&mut self, cage: &Enforced) {
        let namespaces = match cage.namespaces.as_slice() {
            [] if cage.in_process => "no namespaces, because it starts no program".to_owned(),
            [] => "no namespaces of its own".to_owned(),
            own => format!("own namespaces: {}", own.join(", ")),
        };
        let cgroup = match cage.cgroup.as_slice() {
            [] => String::new(),
            held => format!(", {} enforced by its own cgroup", held.join(" and ")),
        };
        let seccomp = if cage.seccomp { "seccomp filter" } else { "no seccomp filter" };
        self.line(
            "enforced",
            &format!(
                "{}, policy {}, Landlock ABI {}, {seccomp}, {namespaces}, network {}{cgroup}",
                kind(cage),
                cage.profile,
                cage.landlock_abi,
                cage.network
            ),
        );
        self.list("dropped", &cage.dropped);
        self.list("limits", &cage.limits);
        self.list("missing", &cage.missing);
        self.list("left out", &cage.left_out);
    }

    /// The refusals, and the kinds of refusals that no record can show.
    fn refusals(&mut self, ended: &EndedRecord, decided: Option<&DecidedRecord>) {
        let Some(cage) = &ended.enforced else { return };
        let mut refused: Vec<String> = ended.refusals.iter().map(record_text::refusal).collect();
        if ended.refusals_uncounted > 0 {
            refused.push(format!("and {} more, not recorded one by one", ended.refusals_uncounted));
        }
        if refused.is_empty() {
            refused.push("nothing that can be observed".to_owned());
        }
        self.list("refused", &refused);
        self.list("network", &connections(ended));
        self.list("tampered", &ended.tampered);
        self.list("granted", &ended.granted);
        self.list("signed", &ended.signed);
        self.list("ran", &ended.ran);
        // A file tool accesses files itself and reports its refusals.
        let ran_a_command =
            decided.is_none_or(|decided| decided.script.is_some()) || !ended.ran.is_empty();
        let mut unseen = vec![READS];
        if ran_a_command {
            unseen.push(METADATA);
            if cage.namespaces.iter().any(|own| own == "net") {
                unseen.push(OWN_NETWORK);
            }
            unseen.push(HIDDEN);
        }
        if !cage.refusals_observable {
            unseen.push(NO_LISTENER);
        }
        self.list("not seen", &unseen.into_iter().map(str::to_owned).collect::<Vec<_>>());
    }
}

/// The connections through the proxy, and the refused ones.
fn connections(ended: &EndedRecord) -> Vec<String> {
    let mut lines: Vec<String> = ended.connections.iter().map(record_text::connection).collect();
    if ended.connections_uncounted > 0 {
        lines.push(format!("and {} more, not recorded one by one", ended.connections_uncounted));
    }
    lines.extend(ended.connections_cut.clone());
    lines
}

fn requested(policy: &PolicyRecord) -> String {
    let added = match policy.added.as_slice() {
        [] => String::new(),
        added => {
            let added: Vec<_> = added.iter().map(|dir| dir.0.display().to_string()).collect();
            format!(", also {}", added.join(", "))
        }
    };
    let level = match policy.level {
        Level::Required => "full enforcement required",
        Level::BestEffort | Level::Uncaged => "losses accepted and recorded",
    };
    let git = if policy.git_settings { ", git's settings writable" } else { "" };
    format!(
        "policy {}, project {}{added}, temporary directory {}, network {}{git}, tier {} at most, \
         {level}",
        policy.profile,
        policy.project.0.display(),
        policy.temp.0.display(),
        match policy.hosts.as_slice() {
            [] => policy.network.clone(),
            hosts => format!("{} {}", policy.network, hosts.join(" ")),
        },
        tier(policy.highest_tier)
    )
}

/// Which cage: that of a tool's own process is the same in every tier.
fn kind(cage: &Enforced) -> String {
    match (cage.tier, cage.in_process) {
        (Tier::A | Tier::B, true) => {
            "cage of the tool's own process, the same in tiers A and B".to_owned()
        }
        (Tier::A | Tier::B, false) | (Tier::C, _) => {
            format!("tier {}", tier(cage.tier))
        }
    }
}

fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::A => "A",
        Tier::B => "B",
        Tier::C => "NONE (no sandbox)",
    }
}
