//! What only root can arrange: a setuid program, files that root alone may read. To be run as root;
//! run as anybody else it fails, since nothing of it would be shown.

#![allow(clippy::unwrap_used)]

#[path = "sandbox/yard/mod.rs"]
mod yard;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;
use yard::{ATTEMPT, TIERS, Told, Yard, dns};

const NOBODY: u32 = 65534;

fn must_be_root() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "these tests arrange what only root can: run them as root"
    );
}

/// Gives the yard to nobody, and leaves a setuid copy of the helper in it.
fn yard_of_nobody() -> (Yard, std::path::PathBuf) {
    let yard = Yard::new();
    for path in [&yard.root, &yard.project, &yard.temp, &yard.home] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let setuid = yard.project.join("setuid");
    assert!(Command::new("cp").arg(ATTEMPT).arg(&setuid).status().unwrap().success());
    std::fs::set_permissions(&setuid, std::fs::Permissions::from_mode(0o4755)).unwrap();
    (yard, setuid)
}

#[test]
fn a_setuid_program_keeps_the_user() {
    must_be_root();
    for tier in TIERS {
        let (yard, setuid) = yard_of_nobody();
        let program = setuid.to_str().unwrap();
        let free = Command::new(&setuid).args(["try", "effective"]).uid(NOBODY).output().unwrap();
        assert_eq!(Told::from(&free).one("effective"), "done 0", "the control");
        let out = yard
            .runner(tier, &[], &[program, "try", "effective"])
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .unwrap();
        let told = Told::from(&out);
        assert_eq!(told.in_tier(tier).printed(), "effective: done 65534");
    }
}

#[test]
fn files_that_root_alone_may_read_stay_closed() {
    must_be_root();
    let shadow = std::fs::read_to_string("/etc/shadow").expect("a system with /etc/shadow");
    for tier in TIERS {
        let yard = Yard::new();
        let said = yard.caged(tier, &["read", "/etc/shadow"]);
        // Tier A covers it with something empty.
        let empty = tier == "a" && said == "done ";
        assert!(said.starts_with("EACCES") || empty, "{tier}: {said}");
        assert!(!said.contains(shadow.lines().next().unwrap()));
        let passwd = yard.caged(tier, &["read", "/etc/passwd"]);
        assert!(passwd.starts_with("done root:"), "{tier}: {passwd}");
        let write = yard.caged(tier, &["append", "/etc/passwd"]);
        assert!(!write.starts_with("done"), "{tier}: {write}");
        let sysctl = yard.caged(tier, &["append", "/proc/sys/kernel/core_pattern"]);
        assert!(!sysctl.starts_with("done"), "{tier}: {sysctl}");
    }
}

#[test]
fn a_fork_bomb_of_root_is_bounded_in_tier_a() {
    must_be_root();
    let yard = Yard::new();
    let before = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    let bomb = "n=0; while [ $n -lt 900 ]; do sleep 5 & n=$((n+1)); done; echo all";
    let told = yard.cage("a", &["processes", "40"], &["sh", "-c", bomb]);
    assert!(!told.printed().contains("all"));
    let after = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    assert_eq!(before, after, "the host's own limit is not ours to change");
}

/// A runner whose parent is another user's cannot see that its signals are held back, so it does
/// without the blow to the whole domain: the way of kernels before ABI 6.
#[test]
fn nothing_survives_without_the_fence_either() {
    must_be_root();
    let (yard, _) = yard_of_nobody();
    let mark = yard::mark();
    let script = format!(
        "(setsid sh -c 'trap \"\" TERM; sleep {mark} & while :; do sleep 1; done' &); sleep 60"
    );
    let out = yard
        .runner("b", &["kill-after", "300"], &["sh", "-c", &script])
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let told = Told::from(&out);
    assert_eq!(told.in_tier("b").one("survivors"), "0");
    let limits = told.all("limit");
    assert!(limits.iter().any(|limit| limit.contains("when the runner is killed")), "{limits:?}");
    assert_eq!(yard::processes_with(&mark).len(), 0);
    let fenced = yard.shell("b", ":");
    let limits = fenced.all("limit");
    assert!(!limits.iter().any(|limit| limit.contains("when the runner is killed")), "{limits:?}");
}

#[test]
fn on_a_read_only_file_system_a_command_runs_and_writes_nothing() {
    must_be_root();
    for tier in TIERS {
        let yard = Yard::new();
        let inner = yard.runner(tier, &[], &["sh", "-c", "echo x > new || cat kept"]);
        let project = yard.project.display();
        let script = format!(
            "mount -t tmpfs x {project} && echo kept > {project}/kept && \
             mount -o remount,ro {project} && exec \"$@\""
        );
        let out = Command::new("unshare")
            .args(["-m", "sh", "-c", &script, "sh", ATTEMPT])
            .args(inner.get_args())
            .output()
            .unwrap();
        let told = Told::from(&out);
        assert_eq!(told.in_tier(tier).printed(), "kept", "{told:?} {out:?}");
        assert!(told.all("err").join(" ").contains("Read-only"), "{told:?}");
    }
}

/// As most containers are: parts of `/proc` lie beneath mounts, and then the kernel gives nobody a fresh
/// one. Root of the machine gets one all the same.
#[test]
fn where_proc_is_masked_a_cage_is_lower_or_refused_with_its_reason() {
    must_be_root();
    let masked = |user: u32, words: &[&str]| {
        let out = Command::new("unshare")
            .args(["-m", "sh", "-c", "mount -t tmpfs -o ro x /proc/sys && exec \"$@\"", "sh"])
            .args(["setpriv", "--clear-groups", "--reuid", &user.to_string()])
            .args(["--regid", &user.to_string(), ATTEMPT])
            .args(words)
            .output()
            .unwrap();
        Told::from(&out)
    };
    let (yard, _) = yard_of_nobody();
    let caged = |yard: &Yard, user, tier| {
        let inner = yard.runner(tier, &[], &["sh", "-c", "echo ran"]);
        let words: Vec<&str> = inner.get_args().map(|word| word.to_str().unwrap()).collect();
        masked(user, &words)
    };
    let found = masked(NOBODY, &["host"]);
    assert_eq!(found.one("tier"), "B", "{found:?}");
    let failed = found.all("step").into_iter().find(|step| step.contains("Failed")).unwrap();
    assert!(failed.contains("/proc is shown, since a fresh one was refused"), "{failed}");
    let told = caged(&yard, NOBODY, "a");
    assert_eq!(told.one("uncaged"), "root", "{told:?}");
    assert!(told.one("reason").contains("best-effort"), "the way on: {told:?}");
    assert!(told.all("out").is_empty(), "{told:?}");
    assert_eq!(caged(&yard, NOBODY, "b").in_tier("b").printed(), "ran");
    let yard = Yard::new();
    assert_eq!(masked(0, &["host"]).one("tier"), "A");
    assert_eq!(caged(&yard, 0, "a").in_tier("a").printed(), "ran");
}

/// A command whose home has an overlay of `go`, after these mounts; `$1` is the yard.
fn overlaid(user: u32, mounts: &str, script: &str) -> Told {
    let yard = if user == 0 { Yard::new() } else { yard_of_nobody().0 };
    let [go, own_home, overlays] = ["home/go/sub", "own-home", "overlays"].map(|name| {
        let place = yard.root.join(name);
        std::fs::create_dir_all(&place).unwrap();
        place
    });
    std::fs::write(go.join("file"), "below\n").unwrap();
    for place in [&go, go.parent().unwrap(), &own_home, &overlays] {
        chown(place, Some(user), Some(user)).unwrap();
    }
    let home = format!("{}={}", yard.home.display(), own_home.display());
    let script = format!("cd {}/go && {script}", yard.home.display());
    let options = ["private", &home, "overlays", overlays.to_str().unwrap()];
    let inner = yard.runner("a", &options, &["sh", "-c", &script]);
    let mounts = format!("set -e; cd \"$1\"; {mounts}\nchown {user} overlays; shift; exec \"$@\"");
    let out = Command::new("unshare")
        .args(["-m", "sh", "-c", &mounts, "sh"])
        .arg(&yard.root)
        .args(["setpriv", "--clear-groups", "--reuid", &user.to_string()])
        .args(["--regid", &user.to_string(), ATTEMPT])
        .args(inner.get_args())
        .output()
        .unwrap();
    Told::from(&out)
}

/// As in a container, whose disk is an overlay itself.
#[test]
fn on_a_disk_that_takes_no_overlay_the_person_s_own_is_read_only_and_the_record_says_so() {
    must_be_root();
    let mounts = "mkdir l u w; mount -t overlay -o lowerdir=l,upperdir=u,workdir=w x overlays";
    let script = "cat sub/file; (echo x > new) 2>/dev/null && echo new; \
                  echo y > ~/.npm/_cacache/y && cat ~/.npm/_cacache/y";
    for user in [0, NOBODY] {
        for (mounts, printed) in [(mounts, "below\ny"), (":", "below\nnew\ny")] {
            let script = script.replace('~', "..");
            let told = overlaid(user, mounts, &script);
            assert_eq!(told.in_tier("a").printed(), printed, "user {user}: {told:?}");
            let said = told.all("limit").join(" ").matches("go is read-only").count();
            assert_eq!(said, usize::from(mounts != ":"), "user {user}: {told:?}");
        }
    }
}

/// An overlay shows what lies below a mount, which whoever mounted there may have meant to hide.
#[test]
fn what_is_mounted_within_a_place_is_shown_and_what_it_hides_is_not() {
    must_be_root();
    for user in [0, NOBODY] {
        let told = overlaid(
            user,
            "mount -t tmpfs x home/go/sub; echo above > home/go/sub/file",
            "cat sub/file",
        );
        assert_eq!(told.in_tier("a").printed(), "above", "user {user}: {told:?}");
        let said = told.all("limit").join(" ");
        assert!(said.contains("go is read-only"), "user {user}: {told:?}");
    }
}

/// What makes a container: an overlay for its root, mounts, processes and network of its own, masked
/// places in `/proc`, `/proc/sys` read-only. The overlay has none of the disks below `/`: temporary files may lie on one.
const CONTAINER: &str = "set -e
mount --make-rprivate /
mount -t tmpfs x \"$1\"
cd \"$1\"; yard=${1%/*}; temp=${yard%/*}; shift
mkdir upper work root
mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work x root
[ -e \"root$yard\" ] || { mkdir -p \"root$temp\"; mount --bind \"$temp\" \"root$temp\"; }
mount -t proc x root/proc
mount --rbind /dev root/dev
mount -t tmpfs -o ro x root/proc/fs
mount --bind root/dev/null root/proc/interrupts
mount --bind root/proc/sys root/proc/sys
mount -o remount,bind,ro root/proc/sys
mkdir root/.old
cd root; pivot_root . .old; umount -l /.old; cd /
exec \"$@\"";
/// The capabilities that are usual in one: none that mounts or makes namespaces.
const USUAL: &str = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,\
                     +net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap";

#[test]
fn in_a_container_the_lower_tier_holds_and_the_higher_is_refused_with_its_reason() {
    must_be_root();
    let contained = |place: &std::path::Path, user: u32, words: &[&str]| {
        let out = Command::new("unshare")
            .args(["-m", "-p", "-n", "-i", "-f", "sh", "-c", CONTAINER, "sh"])
            .arg(place)
            .args(["setpriv", "--bounding-set", USUAL, "--inh-caps=-all", "--clear-groups"])
            .args(["--reuid", &user.to_string(), "--regid", &user.to_string(), ATTEMPT])
            .args(words)
            .output()
            .unwrap();
        assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
        Told::from(&out)
    };
    for user in [0, NOBODY] {
        let yard = if user == 0 { Yard::new() } else { yard_of_nobody().0 };
        let place = yard.root.join("container");
        std::fs::create_dir(&place).unwrap();
        let script = format!(
            "grep -o '^x / overlay' /proc/self/mounts; echo ran > new && cat new; \
             echo x >> {0} || echo refused; grep -c untouched {0} || true",
            yard.canary.display()
        );
        let caged = |tier, options: &[&str]| {
            let inner = yard.runner(tier, options, &["sh", "-c", &script]);
            let words: Vec<&str> = inner.get_args().map(|word| word.to_str().unwrap()).collect();
            contained(&place, user, &words)
        };
        assert_eq!(contained(&place, user, &["host"]).one("tier"), "B", "user {user}");
        let told = caged("a", &[]);
        assert_eq!(told.one("uncaged"), "root", "user {user}: {told:?}");
        assert!(told.one("reason").contains("`sandbox.tier = \"b\"`"), "the way on: {told:?}");
        assert!(told.all("out").is_empty(), "user {user}: {told:?}");
        let lower = caged("b", &[]);
        assert_eq!(lower.in_tier("b").all("out"), ["x / overlay", "ran", "refused"], "{lower:?}");
        let accepted = caged("a", &["level", "best-effort"]);
        let said = accepted.in_tier("a").all("limit").join(" ");
        assert!(said.contains("Lost: The host's /proc is shown"), "user {user}: {accepted:?}");
        assert!(accepted.printed().contains("ran"), "user {user}: {accepted:?}");
        yard.canary_is_untouched();
    }
}

/// The resolver's own settings lead to the test's server, in a mount namespace made for it: only root
/// may listen where resolvers ask.
#[test]
fn the_system_s_resolver_asks_nobody_while_the_network_is_off() {
    must_be_root();
    let own = std::process::id().to_be_bytes();
    let server = dns::Server::at(&format!("127.53.{}.{}:53", own[2], own[3]));
    for (tier, way) in [("a", ""), ("a", " use-vc"), ("b", ""), ("b", " use-vc")] {
        let yard = Yard::new();
        let settings = yard.root.join("resolv.conf");
        let text =
            format!("nameserver {}\noptions timeout:2 attempts:1{way}\n", server.address.ip());
        std::fs::write(&settings, text).unwrap();
        let resolves = |network: &str| {
            let program = [yard.inside.to_str().unwrap(), "try", "resolve", dns::NAME];
            let runner = yard.runner(tier, &["network", network], &program);
            let out = Command::new("unshare")
                .args(["--mount", "sh", "-ec"])
                .arg("mount --bind \"$0\" \"$(readlink -f /etc/resolv.conf)\"; exec \"$@\"")
                .arg(&settings)
                .arg(runner.get_program())
                .args(runner.get_args())
                .output()
                .expect("`unshare` runs");
            Told::from(&out).in_tier(tier).printed()
        };
        let said = resolves("off");
        assert!(said.starts_with("resolve: ") && !said.contains("done"), "{tier}{way}: {said}");
        assert_eq!(server.arrived(), 0, "{tier}{way}");
        assert_eq!(resolves("on"), format!("resolve: done {}", dns::FOUND), "{tier}{way}");
        assert_ne!(server.arrived(), 0, "{tier}{way}");
    }
}

/// A disk of this many KiB over the project, gone with the test.
struct SmallDisk<'a>(&'a Yard);

impl<'a> SmallDisk<'a> {
    fn over(yard: &'a Yard, kib: u32) -> Self {
        let size = format!("size={kib}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "none"])
            .arg(&yard.project)
            .status();
        assert!(mounted.unwrap().success(), "this test mounts a disk");
        Self(yard)
    }

    /// One of 4 MiB in blocks of 1 KiB, which a directory takes as it grows.
    fn of_blocks(yard: &'a Yard) -> Self {
        let image = yard.root.join("image");
        std::fs::File::create(&image).unwrap().set_len(4 << 20).unwrap();
        // Without an index: with one, a name goes to the block of its hash, which may have room.
        let options = ["-q", "-F", "-m", "0", "-b", "1024", "-O", "^dir_index"];
        let made = Command::new("mkfs.ext4").args(options).arg(&image).status();
        let mounted =
            Command::new("mount").args(["-o", "loop"]).args([&image, &yard.project]).status();
        assert!(made.unwrap().success() && mounted.unwrap().success(), "this test mounts a disk");
        Self(yard)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0.project).status();
    }
}

#[test]
fn a_disk_that_a_command_fills_loses_nothing_of_the_person_s_settings() {
    must_be_root();
    let yard = Yard::new();
    let _disk = SmallDisk::over(&yard, 1024);
    let at = |name: &str| yard.project.join(name);
    let made = Command::new("git").args(["init", "-q", "."]).current_dir(&yard.project).status();
    assert!(made.unwrap().success(), "this test drives git");
    let mut settings = std::fs::read_to_string(at(".git/config")).unwrap();
    settings.push_str(&"# a line of the person's own\n".repeat(2000));
    std::fs::write(at(".git/config"), &settings).unwrap();
    let script = "echo evil > .git/config; echo evil > .envrc; cat /dev/zero > fill; echo end";
    let told = yard.shell("b", script);
    assert!(told.in_tier("b").printed().ends_with("end"), "{told:?}");
    assert_eq!(std::fs::read_to_string(at(".git/config")).unwrap(), settings, "{told:?}");
    assert!(!at(".envrc").exists(), "{told:?}");
    assert!(std::fs::metadata(at("fill")).unwrap().len() > 500 << 10, "the disk was filled");
    // The control: a disk without room for putting back runs no command, and says why.
    let rest = at("rest");
    std::io::copy(
        &mut std::fs::File::open("/dev/zero").unwrap(),
        &mut std::fs::File::create(&rest).unwrap(),
    )
    .expect_err("the disk is full");
    let told = yard.shell("b", "echo evil > .git/config");
    assert!(told.one("reason").contains("room to put protected names back"), "{told:?}");
    std::fs::remove_file(rest).unwrap();
    std::fs::remove_file(at("fill")).unwrap();
    assert_eq!(yard.shell("b", "echo end").printed(), "end");
}

/// Fills the disk, and then a directory's block. Ends with a move to a longer name, which needs a block.
const FULL: &str = "n=0; while test $n -lt 40; do touch p/$(printf s%05d $n); n=$((n+1)); done; \
    for r in 1 2 3; do dd if=/dev/zero bs=1k >> fill 2>/dev/null; sync; done; while touch p/$(printf s%05d $n) 2>/dev/null; do n=$((n+1)); done; \
    mv p/NAME p/NAME.quarantined.or.so 2>/dev/null || echo full";

#[test]
#[ignore = "needs a loop device: .ci/nightly machine"]
fn a_protected_name_is_moved_aside_on_a_disk_that_the_command_filled() {
    must_be_root();
    for tier in TIERS {
        let yard = Yard::new();
        let _disk = SmallDisk::of_blocks(&yard);
        let at = |name: &str| yard.project.join("p").join(name);
        let script = format!("mkdir p; echo x > p/.envrc; {}", FULL.replace("NAME", ".envrc"));
        let told = yard.shell(tier, &script);
        assert_eq!(told.in_tier(tier).printed(), "full", "the control: {told:?}");
        assert!(!at(".envrc").exists() && at(".envrc.quarantined").exists(), "{tier}: {told:?}");
        // A disk that was full before has no room to reserve. The command begins all the same.
        let yard = Yard::new();
        let _disk = SmallDisk::of_blocks(&yard);
        std::fs::create_dir(yard.project.join("p")).unwrap();
        std::fs::write(yard.project.join("p/notes.txt"), "x").unwrap();
        let full = FULL.replace("NAME", "notes.txt");
        let out = Command::new("sh").args(["-c", &full]).current_dir(&yard.project).output();
        assert_eq!(String::from_utf8_lossy(&out.unwrap().stdout), "full\n", "the control");
        // One place for a short name.
        std::fs::remove_file(yard.project.join("p/s00000")).unwrap();
        let told = yard.shell(tier, "mv p/notes.txt p/.envrc && echo end");
        assert_eq!(told.in_tier(tier).printed(), "end", "{told:?}");
        let said = told.all("tampered").join(" ");
        assert!(said.starts_with("p/.envrc was changed and not restored"), "{tier}: {told:?}");
    }
}

/// On tmpfs the kernel notes no time for what is written through a mapping that was read before.
#[test]
fn what_is_written_through_a_mapping_is_noticed_on_a_disk_in_memory() {
    must_be_root();
    for tier in TIERS {
        let yard = Yard::new();
        let _disk = SmallDisk::over(&yard, 4096);
        let name = yard.project.join("sub/.envrc");
        std::fs::create_dir(name.parent().unwrap()).unwrap();
        std::fs::write(&name, "mine\n").unwrap();
        let script = "python3 - <<'E'\nimport mmap\nf = open('sub/.envrc', 'r+b')\n\
                      m = mmap.mmap(f.fileno(), 0)\nm.find(b'mine')\nm[0:4] = b'evil'\nE\ncat sub/.envrc";
        let told = yard.shell(tier, script);
        assert_eq!(told.in_tier(tier).printed(), "evil", "the control: {told:?}");
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "mine\n", "{tier}: {told:?}");
    }
}

/// A mount within a tree that is removed: a file system of its own, and a folder of the same one.
#[test]
fn a_removal_stops_at_what_is_mounted() {
    must_be_root();
    let place = tempfile::tempdir().expect("a directory");
    let (tree, outside) = (place.path().join("tree"), place.path().join("outside"));
    let (bound, mounted) = (tree.join("a/b/bound"), tree.join("a/b/mounted"));
    for folder in [&bound, &mounted, &outside, &tree.join("a/c/d")] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    std::fs::write(outside.join("kept"), "x").expect("a file");
    let within = (tree.clone(), outside.clone());
    // A thread of its own has mounts of its own.
    let removal = std::thread::spawn(move || {
        let (tree, outside) = within;
        unshare(CloneFlags::CLONE_NEWNS).expect("mounts of its own");
        let nothing = None::<&str>;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(nothing, "/", nothing, private, nothing).expect("private");
        mount(Some(&outside), &bound, nothing, MsFlags::MS_BIND, nothing).expect("a bind mount");
        mount(nothing, &mounted, Some("tmpfs"), MsFlags::empty(), nothing).expect("tmpfs");
        std::fs::write(mounted.join("kept"), "x").expect("a file");
        let left = sandbox::remove_tree(&tree).expect_err("mounts are in it");
        assert_eq!(left.kind(), std::io::ErrorKind::ResourceBusy, "{left}");
        let mounted = find(&tree, "mounted");
        assert!(mounted.join("kept").exists(), "what is mounted is not emptied");
        assert!(!tree.join("a/c").exists(), "all else is removed");
    });
    removal.join().expect("the removal");
    assert!(outside.join("kept").exists(), "what is bound there is not emptied");
    sandbox::remove_tree(&tree).expect("without the mounts");
    assert!(!tree.exists());
}

/// The folder of that name somewhere below.
fn find(below: &std::path::Path, name: &str) -> std::path::PathBuf {
    let mut folders = vec![below.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            if entry.file_name() == name {
                return entry.path();
            }
            if entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    panic!("{name} is gone");
}

/// A read-only mount does not hold writes to a device, so it opens none.
#[test]
fn device_nodes_in_granted_places_cannot_be_opened() {
    must_be_root();
    for tier in TIERS {
        let yard = Yard::new();
        let (granted, own) = (yard.home.join(".rustup"), yard.root.join("own-home"));
        [&granted, &own].into_iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
        let (node, mode) = (granted.join("node"), Mode::from_bits_truncate(0o666));
        mknod(&node, SFlag::S_IFCHR, mode, makedev(1, 3)).unwrap();
        std::fs::write(&node, "x").expect("the control, without a cage");
        let at = node.display();
        let private = format!("{}={}", yard.home.display(), own.display());
        let script = format!("echo > {at} && echo wrote; echo > /dev/null && echo control");
        let told = yard.cage(tier, &["private", &private], &["sh", "-c", &script]);
        assert_eq!(told.in_tier(tier).printed(), "control", "{told:?}");
        let refused = format!("13 {at} for writing");
        assert!(told.all("refusal").iter().any(|line| line.ends_with(&refused)), "{told:?}");
    }
}
