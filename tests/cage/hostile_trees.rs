//! Trees that no program expects, in the project and in a session's TMPDIR, under every reader: each process
//! of agentd survives, answers in time and in bounded memory, and leaves nothing. A round follows from its seed.
//!
//! For as long as HOSTILE_S says, an hour by default:
//! `cargo test --test cage for_an_hour -- --ignored --nocapture`. HOSTILE_SEED repeats a round.
//! HOSTILE_SHAPES='very_deep 15000' takes these shapes alone.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::dice::Dice;
use crate::support::{Desk, Run, needs, processes, run_within};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time limit of one run of agentd; each of its calls has its own limit.
const LONGEST: Duration = Duration::from_secs(600);
/// Time limit of a call. Git opens a FIFO with the name of one of its files, and waits until then.
const OF_A_CALL: &str = "[tools]\ntimeout_ms = 10000\n";
/// Memory limit of one process of agentd.
const MOST_KIB: u64 = 512 << 10;
/// Shapes of one round, in the project and in TMPDIR each.
const AT_ONCE: usize = 4;

/// A shape by its name in `MAKE`, and how large.
type Shape = (&'static str, usize);

const SHAPES: &[Shape] = &[
    ("deep", 200),
    ("wide", 3_000),
    ("bushy", 3),
    ("long_names", 12),
    ("beyond_paths", 20),
    ("no_utf8", 40),
    ("control", 20),
    ("circles", 12),
    ("fifos", 8),
    ("sockets", 4),
    ("whiteouts", 4),
    ("sparse", 3),
    ("shut", 6),
    ("folds", 1),
    ("repositories", 12),
    ("one_line", 4_000_000),
    ("links_out", 6),
    ("fifos_of_git", 2),
];

/// Trees that take minutes: only in the run of an hour.
const LARGE: &[Shape] = &[("very_deep", 15_000), ("very_wide", 300_000)];

/// Makes shapes below a folder: `make.py ROOT SEED NAME SIZE...`.
const MAKE: &str = r#"
import errno, os, random, socket, sys
root, seed = sys.argv[1], int(sys.argv[2])
dice = random.Random(seed)

def deep(n):
    for _ in range(n):
        os.mkdir('d'); os.chdir('d')
    open('end', 'w').write('needle\n')
very_deep = deep

def wide(n):
    for i in range(n): open(f'f{i:06}', 'w').close()
very_wide = wide

def bushy(depth, at='.'):
    for i in range(8):
        here = f'{at}/b{i}'
        os.mkdir(here)
        open(f'{here}/x.rs', 'w').write('fn needle() { go(1) }\n' * dice.randrange(1, 40))
        if depth > 1: bushy(depth - 1, here)

def long_names(n):
    for i in range(n): open(chr(97 + i) * 255, 'w').write('needle')
    open('\u00e9' * 127, 'w').close()

def beyond_paths(n):
    for _ in range(n):
        os.mkdir('l' * 250); os.chdir('l' * 250)
    open('end', 'w').write('needle\n')

def no_utf8(n):
    for i in range(n):
        name = bytes(b for b in dice.randbytes(dice.randrange(1, 40)) if b not in (0, 47)) + b'\xff%d' % i
        open(name, 'wb').write(dice.randbytes(2000) + b'\nneedle\n')
    os.symlink(b'\xff\xfe', b'\xfdlink')

def control(n):
    for i in range(n):
        name = ''.join(dice.choice('\n\r\t\x1b[]2J\x07\u202e\u200b ') for _ in range(9)) + str(i)
        open(name, 'w').write('needle\x1b[2J\x00\n')

def circles(n):
    os.symlink('.', 'here'); os.symlink('..', 'up'); os.symlink('self', 'self')
    os.symlink('b', 'a'); os.symlink('a', 'b')
    os.mkdir('in')
    for i in range(n): os.symlink('../in', f'in/again{i}')
    os.symlink('x/' * 2000, 'long')

def fifos(n):
    for i in range(n): os.mkfifo(f'fifo{i}')
    for name in ('.ignore', 'AGENTS.md', 'Cargo.toml', '.envrc', 'x.rs'): os.mkfifo(name)

def fifos_of_git(_):
    for name in ('.gitignore', '.gitattributes', '.gitmodules'): os.mkfifo(name)
    os.makedirs('r/.git/objects'); os.makedirs('r/.git/refs')
    for name in ('HEAD', 'config', 'index', 'packed-refs', 'info'): os.mkfifo(f'r/.git/{name}')

def sockets(n):
    for i in range(n):
        s = socket.socket(socket.AF_UNIX); s.bind(f's{i}'); s.close()

def whiteouts(n):
    for i in range(n):
        os.mknod(f'w{i}', 0o020600, os.makedev(0, 0))

def sparse(n):
    for i in range(n):
        with open(f'sparse{i}.rs', 'wb') as f:
            f.truncate(dice.choice((1 << 30, 1 << 40))); f.seek(1 << 20); f.write(b'needle')

def shut(n):
    for i in range(n):
        os.makedirs(f'shut{i}/in/deeper')
        open(f'shut{i}/file', 'w').write('needle')
    open('shut', 'w').write('needle'); os.chmod('shut', 0)
    for i in range(n):
        os.chmod(f'shut{i}/in', 0o555); os.chmod(f'shut{i}', dice.choice((0, 0o111, 0o444, 0o555)))

def folds(_):
    for name in ('README', 'Readme', 'readme', 'reAdme\u0301', '.GIT', '.Git', 'git~1', '.g\u200cit', '.git '):
        os.makedirs(name)
        open(f'{name}/config', 'w').write('[core]\n\tfsmonitor = false\n')

def repositories(n):
    for i in range(n):
        here = f'r{i}/.git'
        os.makedirs(f'{here}/objects'); os.makedirs(f'{here}/refs')
        open(f'{here}/HEAD', 'wb').write(dice.choice((b'ref: refs/heads/main\n', b'', b'\xff' * 3000, b'ref: ' + b'../' * 500)))
        open(f'{here}/index', 'wb').write(dice.choice((b'', b'DIRC' + dice.randbytes(400), b'DIRC\0\0\0\2\xff\xff\xff\xff')))
        open(f'{here}/config', 'wb').write(dice.choice((b'', b'[core\n', b'[include]\n\tpath = config\n', dice.randbytes(3000))))
        os.mkdir(f'm{i}')
        open(f'm{i}/.git', 'w').write(dice.choice(('gitdir: .', f'gitdir: ../m{(i + 1) % n}', 'gitdir: /proc/self/root', '')))

def one_line(n):
    open('one.rs', 'w').write('fn needle() { ' + '(' * (n // 4) + 'x ' * (n // 4))
    open('one.json', 'w').write('[' * n)
    open('one.md', 'w').write('# needle ' * (n // 9))

def links_out(n):
    for i in range(n): os.symlink('/' + '../' * i + 'etc/passwd', f'out{i}')
    os.symlink('/', 'all'); os.symlink('/proc/self/fd', 'fds'); os.symlink('/dev/zero', 'zero.rs')

names = sys.argv[3:]
for at in range(0, len(names), 2):
    os.chdir(root)
    os.mkdir(f'{names[at]}-{at}')
    os.chdir(f'{names[at]}-{at}')
    try:
        globals()[names[at]](int(names[at + 1]))
    except OSError as error:
        # A file system or a cage that takes no such thing has none of it.
        print(names[at], errno.errorcode.get(error.errno, error.errno))
print('made')
"#;

/// The shapes of one place, from the seed.
fn chosen(dice: &mut Dice, shapes: &[Shape]) -> Vec<String> {
    if let Ok(words) = std::env::var("HOSTILE_SHAPES") {
        return words.split_whitespace().map(str::to_owned).collect();
    }
    let mut words = Vec::new();
    for _ in 0..AT_ONCE {
        let (name, most) = shapes[dice.below(shapes.len())];
        words.extend([(*name).to_owned(), (most / 2 + 1 + dice.below(most / 2 + 1)).to_string()]);
    }
    words
}

/// Every file below a folder with its text, and each link with where it leads.
fn content(of: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![of.to_owned()];
    while let Some(at) = waiting.pop() {
        let kind = at.symlink_metadata().unwrap();
        if kind.is_dir() {
            waiting.extend(fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found.insert(at.clone(), fs::read(&at).unwrap());
        }
    }
    found
}

/// Runs it and samples the memory of each process of its session.
fn watched(command: Command, step: &str, seed: &str) -> Run {
    let (over, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for process in processes().iter().filter(|it| it.name.starts_with("agentd")) {
                    most.fetch_max(peak(process.pid), Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let ran = run_within(command, LONGEST);
        over.store(true, Ordering::Relaxed);
        ran
    });
    let most = most.into_inner();
    println!("  {step}: {:.1} s, {} MiB", ran.took.as_secs_f64(), most >> 10);
    assert!(ran.took < LONGEST, "{seed}: {step} takes too long\n{}", ran.err);
    assert!(most < MOST_KIB, "{seed}: {step} has {most} KiB in memory");
    for words in ["panicked", "overflow", "SIGABRT", "was ended by signal", "lost its supervisor"] {
        assert!(!ran.err.contains(words), "{seed}: {step}: {}", ran.err);
    }
    assert_eq!(ran.code, 0, "{seed}: {step}: {}\n{}", ran.out, ran.err);
    ran
}

/// The most that a process ever had in memory, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// These calls in one turn, one an answer.
fn turn(
    desk: &Desk,
    flags: &[&str],
    calls: &[(&str, Value)],
    step: &str,
    seed: &str,
) -> Vec<String> {
    let answers = calls.iter().zip(1..).map(|((tool, input), number)| {
        Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
    });
    let server = Server::scripted(answers.chain([Answer::text("Done.")]));
    let flags = [&["-p", "Go.", "--permission-mode", "auto", "--max-turns", "99"], flags].concat();
    let ran = watched(desk.with_server(&server, &flags), step, seed);
    assert_eq!(ran.out, "Done.\n", "{seed}: {step}: {}", ran.err);
    let told = |body: &Value| {
        body["messages"].as_array().unwrap().last().unwrap()["content"][0]["content"].to_string()
    };
    server.requests()[1..].iter().map(|request| told(&request.body)).collect()
}

/// Every tool that reads.
fn reading() -> Vec<(&'static str, Value)> {
    vec![
        ("ls", json!({})),
        ("ls", json!({"path": "."})),
        ("glob", json!({"pattern": "**/*"})),
        ("glob", json!({"pattern": "**/*.rs"})),
        ("grep", json!({"pattern": "needle"})),
        ("grep", json!({"pattern": "(x+x+)+y"})),
        ("read", json!({"path": "a.txt"})),
        ("git_status", json!({})),
        ("git_diff", json!({})),
        ("git_log", json!({})),
        ("summary", json!({"path": "a.rs"})),
        ("scan", json!({"patterns": ["go($A)"]})),
        ("undo_list", json!({})),
    ]
}

/// One round of these shapes.
fn round(seed: u64, shapes: &[Shape]) {
    let dice = &mut Dice::of(seed);
    let said = format!("HOSTILE_SEED={seed}");
    let (project, temp) = (chosen(dice, shapes), chosen(dice, shapes));
    println!("{said}: project {}, TMPDIR {}", project.join(" "), temp.join(" "));
    let desk = Desk::new();
    let _cleared = Cleared(&desk);
    let settings = desk.home().join(".config/agentd");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("config.toml"), OF_A_CALL).unwrap();
    desk.write("a.txt", "one\n");
    desk.write("a.rs", "fn a() { go(1) }\n");
    let theirs = desk.outside().join("theirs");
    fs::create_dir_all(theirs.join("in/deeper")).unwrap();
    fs::write(theirs.join("in/file"), "theirs").unwrap();
    let before = content(&theirs);
    let make = desk.outside().join("make.py");
    fs::write(&make, MAKE).unwrap();
    for (program, words) in [
        ("git", &["init".to_owned(), "-q".to_owned(), ".".to_owned()][..]),
        ("git", &["add".to_owned(), "a.txt".to_owned(), "a.rs".to_owned()]),
    ] {
        let made = Command::new(program).args(words).current_dir(desk.project()).status().unwrap();
        assert!(made.success());
    }
    let ready = Command::new("python3")
        .args([make.as_os_str(), desk.project().as_os_str()])
        .arg(seed.to_string())
        .args(&project)
        .output()
        .unwrap();
    assert!(ready.status.success(), "{said}: {}", String::from_utf8_lossy(&ready.stderr));

    // A command makes the other tree. Readers run afterwards, and an edit between them.
    desk.write("make.py", MAKE);
    let script = format!("python3 make.py \"$TMPDIR\" {seed} {}", temp.join(" "));
    let mut calls = reading();
    calls.push(("bash", json!({"command": script, "timeout_ms": 300_000})));
    calls.push(("edit", json!({"path": "a.txt", "old_string": "one", "new_string": "two"})));
    calls.extend(reading());
    let results = turn(&desk, &[], &calls, "a session", &said);
    let made = &results[reading().len()];
    assert!(made.contains("made"), "{said}: the command makes its tree: {made}");
    let read = &results[6];
    assert!(read.contains("one"), "{said}: a plain file is read: {read}");
    assert_eq!(desk.read("a.txt"), "two\n", "{said}");

    let server = Server::scripted([]);
    let undo = ["-c", "-p", ":undo", "--permission-mode", "auto"];
    watched(desk.with_server(&server, &undo), ":undo", &said);
    assert_eq!(desk.read("a.txt"), "one\n", "{said}: the edit is taken back");
    let again = [("bash", json!({"command": "ls >/dev/null; echo alive"})), ("ls", json!({}))];
    let results = turn(&desk, &["-c"], &again, "resumed", &said);
    assert!(results[0].contains("alive"), "{said}: {results:?}");
    let sessions = fs::read_dir(desk.state().join("sessions")).unwrap();
    let sessions: Vec<_> =
        sessions.map(|session| session.unwrap().file_name().into_string().unwrap()).collect();
    // The files there are recorded before their sessions are removed.
    let crashed = desk.audit().into_iter().find(|it| it["outcome"]["how"] == "crashed");
    assert!(crashed.is_none(), "{said}: {crashed:#?}");
    for session in &sessions {
        watched(desk.agentd(&["rm", session]), "rm", &said);
    }
    // A supervisor that inspects the directories of earlier ones.
    drop(desk.daemon());
    for session in &sessions {
        let temp = Path::new("/tmp").join(format!("agentd-{session}"));
        assert!(temp.symlink_metadata().is_err(), "{said}: {} stays", temp.display());
    }
    assert_eq!(content(&theirs), before, "{said}: what lies outside is untouched");
}

/// Removes a round's trees, also if it failed. The desk's own removal is recursive and may not
/// enter all folders.
struct Cleared<'a>(&'a Desk);

impl Drop for Cleared<'_> {
    fn drop(&mut self) {
        let sessions = fs::read_dir(self.0.state().join("sessions")).into_iter().flatten();
        let names = sessions.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let temps = names.map(|name| Path::new("/tmp").join(format!("agentd-{name}")));
        for tree in std::iter::once(self.0.project()).chain(temps) {
            for (program, how) in [("chmod", ["-R", "u+rwX"]), ("rm", ["-r", "-f"])] {
                let _ = Command::new(program).args(how).arg(&tree).output();
            }
        }
    }
}

/// The seeds of rounds: the given one, or new ones without end.
fn seeds() -> Box<dyn Iterator<Item = u64>> {
    needs("python3");
    needs("git");
    match std::env::var("HOSTILE_SEED") {
        Ok(given) => Box::new(std::iter::once(given.parse().unwrap())),
        Err(_) => {
            let mut dice = Dice::seeded("HOSTILE_SEEDS");
            Box::new(std::iter::from_fn(move || Some(dice.roll() >> 16)))
        }
    }
}

#[test]
fn a_tree_that_no_program_expects_harms_none() {
    round(seeds().next().unwrap(), SHAPES);
}

#[test]
#[ignore = "an hour: HOSTILE_S"]
fn for_an_hour() {
    let long = std::env::var("HOSTILE_S").map_or(3600, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(long);
    let shapes = [SHAPES, LARGE].concat();
    let mut rounds = 0;
    for seed in seeds().take_while(|_| Instant::now() < end) {
        round(seed, &shapes);
        rounds += 1;
    }
    println!("trees: {rounds} rounds, no process harmed");
}
