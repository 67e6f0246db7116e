//! The words before `--`, as a confinement.

use protocol::confinement::{
    Confinement, FilePath, GitSettings, Level, Network, PrivateDir, Profile, Tier,
};

/// A confinement and what stands behind `--`.
pub struct Asked<'a> {
    pub confinement: Confinement,
    /// Ends the command after this many milliseconds, by the ladder.
    pub kill_after_ms: Option<u64>,
    /// Ends the runner itself, as SIGKILL does, after this many milliseconds.
    pub die_after_ms: Option<u64>,
    /// Puts protected files right while the command runs.
    pub guards: bool,
    /// A pipe by which a test tells of another call: a line `other writable` or `other kept`.
    pub orders: Option<String>,
    pub rest: Vec<&'a str>,
}

/// Reads `NAME VALUE` pairs up to `--`.
pub fn parse<'a>(words: &[&'a str]) -> Asked<'a> {
    let split = words.iter().position(|word| *word == "--");
    let (pairs, rest) = match split {
        Some(at) => (&words[..at], words[at + 1..].to_vec()),
        None => (words, Vec::new()),
    };
    let mut asked = Asked {
        confinement: Confinement::closed(
            Profile::Command,
            FilePath::from("/nonexistent"),
            FilePath::from("/nonexistent"),
        ),
        kill_after_ms: None,
        die_after_ms: None,
        guards: false,
        orders: None,
        rest,
    };
    for pair in pairs.chunks(2) {
        let [name, value] = pair else {
            panic!("option {pair:?} has no value");
        };
        let number = || value.parse::<u64>().expect("a number");
        let wanted = &mut asked.confinement;
        match *name {
            "profile" => wanted.profile = profile(value),
            "project" => wanted.project = FilePath::from(value),
            "added" => wanted.added.push(FilePath::from(value)),
            "temp" => wanted.temp = FilePath::from(value),
            "private" => {
                let (shown_at, kept_at) = value.split_once('=').expect("SHOWN=KEPT");
                let (shown_at, kept_at) = (FilePath::from(shown_at), FilePath::from(kept_at));
                wanted.private.push(PrivateDir { shown_at, kept_at });
            }
            "overlays" => wanted.overlays = Some(FilePath::from(value)),
            "caches" => wanted.caches = Some(FilePath::from(value)),
            "home" if *value == "unset" => wanted.home = None,
            "home" => wanted.home = Some(FilePath::from(value)),
            "rustup-home" => {
                wanted.tool_homes.push(("RUSTUP_HOME".to_owned(), FilePath::from(value)));
            }
            "key" => wanted.keys.push(FilePath::from(value)),
            "withheld" => wanted.withheld.push(FilePath::from(value)),
            "network" => wanted.network = if *value == "on" { Network::On } else { Network::Off },
            "git" => {
                wanted.git =
                    if *value == "writable" { GitSettings::Writable } else { GitSettings::Kept };
            }
            "tier" => {
                wanted.highest_tier = match *value {
                    "a" => Tier::A,
                    "b" => Tier::B,
                    _ => Tier::C,
                }
            }
            "level" if *value == "best-effort" => wanted.level = Level::BestEffort,
            "processes" => wanted.limits.processes = number(),
            "memory" => wanted.limits.memory_bytes = number(),
            "cpu-seconds" => wanted.limits.cpu_seconds = number(),
            "file-bytes" => wanted.limits.file_bytes = number(),
            "open-files" => wanted.limits.open_files = number(),
            "kill-after" => asked.kill_after_ms = Some(number()),
            "guard" => asked.guards = *value == "on",
            "orders" => asked.orders = Some((*value).to_owned()),
            "die-after" => asked.die_after_ms = Some(number()),
            other => panic!("unknown option {other}"),
        }
    }
    asked
}

fn profile(name: &str) -> Profile {
    [
        Profile::Probe,
        Profile::Query,
        Profile::Mutate,
        Profile::Command,
        Profile::Session,
        Profile::Broker,
        Profile::Provider,
        Profile::Store,
        Profile::Web,
        Profile::Verify,
        Profile::Format,
        Profile::Git,
        Profile::GitLook,
        Profile::Document,
    ]
    .into_iter()
    .find(|profile| profile.name() == name)
    .expect("a profile")
}
