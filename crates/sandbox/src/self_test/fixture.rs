//! Where attempts are made: a project, what lies outside it, and listeners. For `attempts` only.

use crate::error::{CageError, CageStep};
use nix::unistd::Pid;
use protocol::confinement::{
    Confinement, FilePath, GitSettings, Level, Limits, Network, PrivateDir, Profile, Tier,
};
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// Made for each attempt. The last two are the session's home and what the project changes in places of the
/// person's.
const FOLDERS: [&str; 7] = [
    "project/.git",
    "project/withheld",
    "temp",
    "outside",
    "home/.cargo/registry",
    "own-home",
    "overlays",
];
/// What the files hold before each attempt.
const CONTENT: &str = "[core]\n";
/// Files of the home: one of the person's own, one that a package manager keeps, one with a key.
pub(super) const OF_HOME: &str = ".bashrc";
pub(super) const CACHED: &str = ".cargo/registry/crate";
pub(super) const KEY: &str = ".cargo/credentials.toml";
/// Their mode.
const MODE: u32 = 0o600;

/// A place for one attempt; removed when dropped.
#[derive(Debug)]
pub(super) struct Fixture {
    root: PathBuf,
    inet: TcpListener,
    datagrams: UdpSocket,
    _named: UnixListener,
    _hidden: UnixListener,
    name: String,
}

impl Fixture {
    /// Builds it, with a copy of the program that tries.
    pub(super) fn new(program: &Path) -> Result<Self, CageError> {
        let base = std::env::temp_dir();
        let unique = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos());
        let name = format!("agentd-attempts-{}-{unique}", std::process::id());
        Self::build(&base, name, program)
            .map_err(|error| CageError::os(CageStep::Grants, base.display(), error))
    }

    fn build(base: &Path, name: String, program: &Path) -> std::io::Result<Self> {
        let root = base.canonicalize()?.join(&name);
        for folder in FOLDERS {
            fs::create_dir_all(root.join(folder))?;
        }
        let hidden = SocketAddr::from_abstract_name(&name)?;
        let yard = Self {
            inet: TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?,
            datagrams: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
            _named: UnixListener::bind(root.join("outside/socket"))?,
            _hidden: UnixListener::bind_addr(&hidden)?,
            root,
            name,
        };
        yard.datagrams.set_nonblocking(true)?;
        let of_home = [OF_HOME, CACHED, KEY].map(|name| yard.at_home(name));
        for file in [yard.outside(), yard.settings(), yard.token()].into_iter().chain(of_home) {
            fs::write(&file, CONTENT)?;
            fs::set_permissions(&file, Permissions::from_mode(MODE))?;
        }
        fs::copy(program, yard.program())?;
        fs::set_permissions(yard.program(), Permissions::from_mode(0o755))?;
        Ok(yard)
    }

    /// A file that no grant reaches.
    pub(super) fn outside(&self) -> PathBuf {
        self.root.join("outside/file")
    }

    /// A protected name that is there.
    pub(super) fn settings(&self) -> PathBuf {
        self.inside(".git/config")
    }

    /// A file in a directory that is withheld.
    pub(super) fn token(&self) -> PathBuf {
        self.inside("withheld/token")
    }

    /// A place in the home.
    pub(super) fn at_home(&self, name: &str) -> PathBuf {
        self.root.join("home").join(name)
    }

    /// A socket that no grant reaches.
    pub(super) fn socket(&self) -> PathBuf {
        self.root.join("outside/socket")
    }

    /// A socket without a place.
    pub(super) fn abstract_name(&self) -> &str {
        &self.name
    }

    /// The address of the listener on this machine.
    pub(super) fn inet(&self) -> String {
        self.inet.local_addr().map(|address| address.to_string()).unwrap_or_default()
    }

    /// The address at which datagrams are taken on this machine.
    pub(super) fn datagrams(&self) -> String {
        self.datagrams.local_addr().map(|address| address.to_string()).unwrap_or_default()
    }

    /// Whether one has come since.
    pub(super) fn got_datagram(&self) -> bool {
        self.datagrams.recv(&mut [0; 64]).is_ok()
    }

    /// A place in the project.
    pub(super) fn inside(&self, name: &str) -> PathBuf {
        self.root.join("project").join(name)
    }

    /// The program that tries.
    pub(super) fn program(&self) -> PathBuf {
        self.inside("attempt")
    }

    /// Whether this file is as it was made.
    pub(super) fn is_unchanged(path: &Path) -> bool {
        let mode = fs::metadata(path).map(|file| file.permissions().mode() & 0o7777);
        fs::read_to_string(path).is_ok_and(|text| text == CONTENT)
            && mode.is_ok_and(|it| it == MODE)
    }

    /// The cage of a command here.
    pub(super) fn confinement(&self, highest_tier: Tier) -> Confinement {
        let path = |name: &str| FilePath::from(self.root.join(name));
        Confinement {
            profile: Profile::Command,
            project: path("project"),
            added: Vec::new(),
            temp: path("temp"),
            private: vec![PrivateDir { shown_at: path("home"), kept_at: path("own-home") }],
            caches: None,
            overlays: Some(path("overlays")),
            home: Some(path("home")),
            tool_homes: Vec::new(),
            keys: Vec::new(),
            withheld: Vec::new(),
            network: Network::Off,
            hosts: Vec::new(),
            git: GitSettings::Kept,
            highest_tier,
            level: Level::BestEffort,
            cgroup: None,
            limits: Limits::NONE,
        }
    }

    /// A process outside, which nobody needs.
    pub(super) fn bystander(&self) -> Result<Pid, CageError> {
        crate::sys::fork(|| {
            std::thread::sleep(std::time::Duration::from_secs(20));
            0
        })
        .map_err(|error| CageError::os(CageStep::Fork, "a process to be touched", error))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // What is left of it lies in the temporary directory.
        let _ = fs::remove_dir_all(&self.root);
    }
}
