//! The two tables. In scripts `@HOME@` is the person's home and `@OUTSIDE@` the folder around home and project;
//! `port` and `pid` in the project are of a process that the person runs.

/// The settings of the person that a row needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settings {
    Usual,
    /// One host may be reached.
    Listed,
    /// Low bounds.
    Tight,
}

impl Settings {
    pub fn text(self) -> &'static str {
        match self {
            Self::Usual => "",
            Self::Listed => "net.mode = \"allow\"\nnet.allow = [\"listed.test\"]\n",
            Self::Tight => {
                "sandbox.limits.memory_bytes = 200000000\nsandbox.limits.processes = 60\n\
                 sandbox.limits.cpu_seconds = 2\nsandbox.limits.file_bytes = 1000000\n"
            }
        }
    }
}

/// The same job without a cage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    Succeeds,
    /// Not tried: it would change the machine, or needs root, a service or the internet.
    Untried,
}

/// A refusal that matters.
pub struct Matters {
    pub name: &'static str,
    pub needs: &'static [&'static str],
    pub settings: Settings,
    pub control: Control,
    pub script: &'static str,
    /// The refusal, its reason, and the way on.
    pub told: [&'static str; 3],
    /// Where tier B words it otherwise.
    pub in_b: Option<[&'static str; 3]>,
}

const fn row(name: &'static str, script: &'static str, told: [&'static str; 3]) -> Matters {
    let (control, settings) = (Control::Succeeds, Settings::Usual);
    Matters { name, needs: &[], settings, control, script, told, in_b: None }
}

impl Matters {
    const fn untried(self) -> Self {
        Self { control: Control::Untried, ..self }
    }

    const fn set(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    const fn needs(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    const fn in_b(self, told: [&'static str; 3]) -> Self {
        Self { in_b: Some(told), ..self }
    }
}

const DIR: &str = ":add-dir DIR";
const NET: &str = ":net allow HOST";
const GIT: &str = "git_settings";
/// In tier B programs are refused the socket before they name an address.
const SOCKET: [&str; 3] =
    ["socket AF_INET", "network is off; a bash call can request `network`, or", ":net on"];

pub const MATTERS: &[Matters] = &[
    row("reads an ssh key", "cat ~/.ssh/id_ed25519", ["~/.ssh", "which holds credentials", "ask the user"]),
    row("reads a key of a cloud", "cat @HOME@/.aws/credentials", ["~/.aws", "which holds credentials", "ask the user"]),
    row("reads a netrc", "cat ~/.netrc", ["~/.netrc", "which holds credentials", "ask the user"]),
    row("reads a document", "cat @HOME@/Documents/letter.txt", ["Documents/letter.txt", "outside the granted", DIR]),
    row("goes to a folder outside", "cd /var/cache && ls /var/cache", ["/var/cache", "no access", DIR]),
    row("writes in /etc", "echo x > /etc/agentd-messages", ["/etc/agentd-messages", "cannot change system directories", "ask the user"]).untried(),
    row("writes another project", "echo x >> @OUTSIDE@/other/notes.txt", ["/other/notes.txt", "only the project", DIR]),
    row("writes a startup file", "echo x >> @HOME@/.bashrc", ["~/.bashrc", "private home", "gone after the session"]).in_b([".bashrc", "only the project", DIR]),
    row("moves a file out", "echo x > moved && mv moved @OUTSIDE@/other/moved", ["/other/moved", "only the project", DIR]),
    row("adds a hook", "echo x > .git/hooks/pre-commit", [".git/hooks", "git settings and hooks are read-only", GIT]),
    row("lets git run a program", "git config core.fsmonitor evil", [".git/config", "git settings and hooks are read-only", GIT]),
    row("changes the person's git", "git config --global core.pager evil", ["git/config.lock", "a read-only copy of the user's git settings", "git -c NAME=VALUE"]),
    row("writes .envrc", "echo x > .envrc", [".envrc", "outside the sandbox run or trust", "ask the user"]),
    row("writes a task of an editor", "mkdir -p .vscode && echo x > .vscode/tasks.json", [".vscode/tasks.json", "outside the sandbox run or trust", "ask the user"]),
    row("connects to a port of the person", "exec 3<>/dev/tcp/127.0.0.1/$(cat port)", ["127.0.0.1", "also not by an allow-list", ":net on"]).in_b(SOCKET),
    row("fetches with curl", "curl -sS -m 5 https://example.org/", ["connect", "network is off", NET]).untried().needs(&["curl"]).in_b(SOCKET),
    row("downloads with pip", "pip download --retries 0 agentd-messages", ["connect", "network is off", NET]).untried().needs(&["pip"]).in_b(SOCKET),
    row("asks npm's registry", "npm view left-pad --fetch-retries=0", ["connect", "network is off", NET]).untried().needs(&["npm"]).in_b(SOCKET),
    row("clones", "git clone -q https://example.org/x.git y", ["connect", "network is off", NET]).untried().in_b(SOCKET),
    row("resolves a name", "getent hosts example.org", ["connect", "network is off", NET]).untried().in_b(SOCKET),
    row("fetches from a host that is not listed", "curl -sS -m 5 https://other.test/", ["other.test", "only hosts on the session's allow-list", NET]).untried().set(Settings::Listed),
    row("connects past the proxy", "exec 3<>/dev/tcp/127.0.0.1/$(cat port)", ["127.0.0.1", "also not by an allow-list", ":net on"]).set(Settings::Listed),
    row("asks the container daemon", "cat /var/run/docker.sock", ["container daemon", "root on this machine", "ask the user"]).untried(),
    row("speaks to an agent of the person", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"@HOME@/agent.sock\")'", ["agent.sock", "servers that it started itself", "ask the user"]),
    row("installs a package of the system", "apt-get install -y hello", ["cannot install", "system packages", "venv, npm, cargo"]).untried().needs(&["apt-get"]),
    row("mounts", "unshare -rm mount -t tmpfs none /mnt", ["new namespaces: user, mount", "already run in a sandbox", "--no-sandbox"]).needs(&["unshare"]),
    row("writes in /var/spool", "echo x > /var/spool/agentd-messages", ["/var/spool/agentd-messages", "cannot change system directories", "ask the user"]).untried(),
    row("writes in /usr", "mkdir /usr/agentd-messages", ["/usr/agentd-messages", "cannot change system directories", "ask the user"]).untried(),
    row("traces a process outside", "timeout 5 strace -o /dev/null -p $(cat pid)", ["same command", "only its own processes", "ask the user"]).untried().needs(&["strace"]).in_b(["ptrace", "only its own processes", "ask the user"]),
    row("ends a process outside", "kill -9 $(cat pid)", ["process", "its own processes", "ask the user"]),
    row("measures the processor", "python3 -c 'import ctypes, os; a = ctypes.create_string_buffer(128); a[4] = 112; l = ctypes.CDLL(None, use_errno=True); r = l.syscall(298, a, 0, -1, -1, 0); e = ctypes.get_errno(); assert r >= 0, os.strerror(e)'", ["perf_event_open", "no command may use it", "ask the user"]).untried(),
    row("changes the kernel", "cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness", ["/proc/sys/vm/swappiness", "cannot change system directories", "ask the user"]).untried(),
    row("changes a device", "echo 1 > /sys/power/pm_async", ["/sys/power/pm_async", "cannot change system directories", "ask the user"]).untried(),
    row("keeps a key in the kernel", "python3 -c 'import ctypes, os; l = ctypes.CDLL(None, use_errno=True); r = l.syscall(248, b\"user\", b\"x\", b\"y\", 1, -3); e = ctypes.get_errno(); assert r >= 0, os.strerror(e)'", ["add_key", "no command may use it", "ask the user"]).untried(),
    row("needs more memory", "python3 -c 'x = b\"x\" * (400 << 20); import time; time.sleep(1)'", ["MiB of memory", "used", "sandbox.limits.memory_bytes"]).set(Settings::Tight),
    row("starts too many processes", "for i in $(seq 80); do sleep 9 & done; wait", ["processes", "used", "sandbox.limits.processes"]).set(Settings::Tight),
    row("writes a long file", "head -c 2000000 /dev/zero > long", ["no file", "may grow", "sandbox.limits.file_bytes"]).set(Settings::Tight),
    row("computes for long", "while :; do :; done", ["CPU time", "used", "sandbox.limits.cpu_seconds"]).untried().set(Settings::Tight),
    row("waits for long", "sleep 60", ["timed out", "after 3000 ms", "timeout_ms may be up to"]).untried(),
    row("runs a program that commands are not given", "kepttool", ["kepttool is at", "no credentials", DIR]),
    row("leaves a server running", "sleep 5 >/dev/null 2>&1 & sleep 0.1", ["background processes", "sleep", "in one command"]),
];

/// A job that succeeds and complains of nothing.
pub struct Harmless {
    pub name: &'static str,
    pub needs: &'static [&'static str],
    pub script: &'static str,
    /// In a cage, for a reason that its output names.
    pub may_fail: bool,
}

const fn quiet(
    needs: &'static [&'static str],
    name: &'static str,
    script: &'static str,
) -> Harmless {
    Harmless { name, needs, script, may_fail: false }
}

impl Harmless {
    const fn may_fail(self) -> Self {
        Self { may_fail: true, ..self }
    }
}

pub const HARMLESS: &[Harmless] = &[
    quiet(
        &["python3"],
        "python's cache of modules",
        "mkdir -p m && python3 -c 'import json, http.server, sqlite3'",
    ),
    quiet(&[], "filter of core dumps", "(echo 0 > /proc/self/coredump_filter) 2>/dev/null; true"),
    quiet(&[], "order of ending", "(echo 500 > /proc/self/oom_score_adj) 2>/dev/null; true"),
    quiet(&[], "kill of a process that is gone", "sleep 0 & wait; kill $! 2>/dev/null; true"),
    quiet(&[], "names of the home", "ls -la ~ > /dev/null").may_fail(),
    quiet(&["ps"], "list of processes", "ps aux > /dev/null"),
    quiet(&[], "room on disks", "df . /tmp"),
    quiet(&[], "top of the machine", "find / -maxdepth 2 > /dev/null 2>&1; true"),
    quiet(&[], "search for a program", "which no-such-program; command -v no-such-program; true"),
    quiet(
        &[],
        "test of a name",
        "test -e ~/.ssh; test -e /etc/shadow; test -d /run/docker.sock; true",
    ),
    quiet(&[], "passwords that are not needed", "cat /etc/shadow > /dev/null 2>&1 || true"),
    quiet(&[], "search in the home", "grep -rs no-such-word-at-all ~ | head -1"),
    quiet(&[], "locale", "locale > /dev/null; date +%c > /dev/null"),
    quiet(&[], "terminal's abilities", "tput cols > /dev/null; tput -T xterm bold > /dev/null"),
    quiet(&[], "who", "id; whoami; groups; hostname"),
    quiet(&["ip"], "addresses", "ip addr > /dev/null"),
    quiet(
        &["make"],
        "a build that is only shown",
        "printf 'all:\\n\\techo x\\n' > Makefile && make -n",
    ),
    quiet(
        &["cc"],
        "a program of C",
        "echo 'int main(void) { return 0; }' > a.c && cc -o a a.c && ./a",
    ),
    quiet(
        &["git"],
        "state of the repository",
        "git status --short > /dev/null && git log --oneline && git -c core.fsmonitor=true status --short > /dev/null",
    ),
    quiet(&["git"], "a commit", "git add a.c 2>/dev/null; git commit -q --allow-empty -m second"),
    quiet(
        &["python3"],
        "a database",
        "python3 -c 'import sqlite3; sqlite3.connect(\"x.db\").execute(\"create table t(a)\")'",
    ),
    quiet(&["tar", "gzip"], "an archive", "tar czf x.tgz .git/HEAD && tar xzpf x.tgz"),
    quiet(
        &["python3"],
        "a socket that is not used",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX); socket.gethostname()'",
    ),
    quiet(
        &["python3"],
        "processes of python",
        "python3 -c 'import multiprocessing as m; m.Pool(2).map(abs, [1])'",
    ),
    quiet(
        &["node"],
        "node",
        "node -e 'console.log(require(\"os\").cpus().length, require(\"os\").userInfo().uid)'",
    ),
    quiet(
        &["npm"],
        "npm's settings",
        "npm --version && npm config get registry && npm ls --depth=0 > /dev/null",
    ),
    quiet(&["pip"], "pip's list", "pip --version && pip list > /dev/null 2>&1"),
    quiet(
        &["perl"],
        "perl",
        "perl -MPOSIX -MFile::Temp -e 'File::Temp->new; print((POSIX::uname())[0])'",
    ),
    quiet(&["npm"], "a new package of npm's", "mkdir -p n && cd n && npm init -y > /dev/null"),
    quiet(&[], "a process that ends a moment later", "(sleep 0.27; touch late) & exit 0"),
    quiet(
        &["script"],
        "history of an interactive shell",
        "bash -ic 'history -w' < /dev/null > /dev/null 2>&1; true",
    ),
    quiet(
        &["tmux"],
        "tmux without a server",
        // In tier B the machine's /tmp may have a socket of a tmux of this user, which is refused.
        "tmux -V && mkdir -p of-tmux && (TMUX_TMPDIR=$PWD/of-tmux tmux ls > /dev/null 2>&1; true)",
    ),
    quiet(&["strace"], "a trace of an own process", "strace -o trace -e trace=none true"),
    quiet(&["taskset"], "priorities", "nice -n 5 true && taskset -c 0 true && ionice -c 3 true"),
    quiet(
        &["curl"],
        "versions",
        "curl --version > /dev/null && make --version > /dev/null && cc --version > /dev/null",
    ),
    quiet(
        &[],
        "figures of the machine",
        "free > /dev/null; uptime > /dev/null; nproc; cat /proc/cpuinfo > /dev/null; uname -a > /dev/null",
    ),
    quiet(
        &[],
        "own mode and time",
        "touch f && chmod 600 f && touch -d 2020-01-01 f && chown $(id -u) f && cp -a f g",
    ),
];
