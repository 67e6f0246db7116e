//! The fixture of one attack: a project, files outside it, and listening sockets.

use crate::error::{CageError, CageStep};
use crate::removal::remove_tree;
use nix::unistd::Pid;
use protocol::confinement::{Confinement, FilePath, Level, PrivateDir, Profile, Tier};
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// Directories of each fixture. The last two are the session's home and the store of overlays over
/// the person's home.
const FOLDERS: [&str; 7] =
    ["project/.git", "project/withheld", "temp", "outside", "home/.cargo", "own-home", "overlays"];
/// Content of every file before the attack.
const CONTENT: &str = "[core]\n";
/// Files of the home directory: a settings file, and a file with a key.
pub(super) const OF_HOME: &str = ".bashrc";
pub(super) const KEY: &str = ".cargo/credentials.toml";
/// Mode of every file.
const MODE: u32 = 0o600;

/// Directories and sockets for one attack; removed when dropped.
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
    /// Creates it, with a copy of the attacking program.
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
        let fixture = Self {
            inet: TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?,
            datagrams: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
            _named: UnixListener::bind(root.join("outside/socket"))?,
            _hidden: UnixListener::bind_addr(&hidden)?,
            root,
            name,
        };
        fixture.datagrams.set_nonblocking(true)?;
        let of_home = [OF_HOME, KEY].map(|name| fixture.at_home(name));
        for file in
            [fixture.outside(), fixture.settings(), fixture.token()].into_iter().chain(of_home)
        {
            fs::write(&file, CONTENT)?;
            fs::set_permissions(&file, Permissions::from_mode(MODE))?;
        }
        fs::copy(program, fixture.program())?;
        fs::set_permissions(fixture.program(), Permissions::from_mode(0o755))?;
        Ok(fixture)
    }

    /// A file outside all grants.
    pub(super) fn outside(&self) -> PathBuf {
        self.root.join("outside/file")
    }

    /// An existing protected file.
    pub(super) fn settings(&self) -> PathBuf {
        self.inside(".git/config")
    }

    /// A file in a withheld directory.
    pub(super) fn token(&self) -> PathBuf {
        self.inside("withheld/token")
    }

    /// A path in the home directory.
    pub(super) fn at_home(&self, name: &str) -> PathBuf {
        self.root.join("home").join(name)
    }

    /// A socket outside all grants.
    pub(super) fn socket(&self) -> PathBuf {
        self.root.join("outside/socket")
    }

    /// The name of an abstract socket.
    pub(super) fn abstract_name(&self) -> &str {
        &self.name
    }

    /// The address of the TCP listener on this machine.
    pub(super) fn inet(&self) -> String {
        self.inet.local_addr().map(|address| address.to_string()).unwrap_or_default()
    }

    /// The address of the UDP socket on this machine.
    pub(super) fn datagrams(&self) -> String {
        self.datagrams.local_addr().map(|address| address.to_string()).unwrap_or_default()
    }

    /// True if a datagram has arrived since the last call.
    pub(super) fn got_datagram(&self) -> bool {
        self.datagrams.recv(&mut [0; 64]).is_ok()
    }

    /// A path in the project.
    pub(super) fn inside(&self, name: &str) -> PathBuf {
        self.root.join("project").join(name)
    }

    /// The attacking program.
    pub(super) fn program(&self) -> PathBuf {
        self.inside("attempt")
    }

    /// True if content and mode of this file are the original ones.
    pub(super) fn is_unchanged(path: &Path) -> bool {
        let mode = fs::metadata(path).map(|file| file.permissions().mode() & 0o7777);
        fs::read_to_string(path).is_ok_and(|text| text == CONTENT)
            && mode.is_ok_and(|it| it == MODE)
    }

    /// The confinement of a command in this fixture.
    pub(super) fn confinement(&self, highest_tier: Tier) -> Confinement {
        let path = |name: &str| FilePath::from(self.root.join(name));
        Confinement {
            private: vec![PrivateDir { shown_at: path("home"), kept_at: path("own-home") }],
            overlays: Some(path("overlays")),
            home: Some(path("home")),
            highest_tier,
            level: Level::BestEffort,
            ..Confinement::closed(Profile::Command, path("project"), path("temp"))
        }
    }

    /// Starts a process outside the cage, for attacks to reach for.
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
        // An overlay leaves a directory that its own user cannot enter. Anything that cannot be removed stays in the
        // temporary directory.
        let _ = remove_tree(&self.root);
    }
}
