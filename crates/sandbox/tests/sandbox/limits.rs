//! Bounds on a call as a whole: above one it is ended and named, just below it passes, in both tiers.

use super::yard::{TIERS, Told, Yard, ended_for, mark, python};

/// Fills memory with `mib` that nobody shares, in two processes, and stays.
fn hog(mib: u32, seconds: u32) -> String {
    let half = mib / 2;
    format!(
        "import os, time\nchild = os.fork()\nkept = b'x' * ({half} << 20)\ntime.sleep({seconds})\nprint('kept')\nif child: os.wait()"
    )
}

#[test]
fn a_memory_hog_is_ended_and_its_smaller_twin_is_not() {
    let bound = (200 << 20).to_string();
    for tier in TIERS {
        let yard = Yard::new();
        let told = python(&yard, tier, &["memory", &bound], &hog(300, 60));
        assert_eq!(ended_for(told.in_tier(tier)), "Memory", "{told:?}");
        assert!(!told.printed().contains("kept"), "{told:?}");
        let told = python(&yard, tier, &["memory", &bound], &hog(140, 2));
        assert_eq!(told.printed(), "kept\nkept", "{told:?}");
        assert!(told.all("exceeded").is_empty(), "{told:?}");
    }
}

#[test]
fn memory_that_processes_share_counts_once() {
    let bound = (200 << 20).to_string();
    // Four processes with the same 80 MiB.
    let program = "import os, time\nkept = b'x' * (80 << 20)\na, b = os.fork(), os.fork()\ntime.sleep(1)\nprint('kept', flush=True)\nif b: os.wait()\nif a: os.wait()";
    for tier in TIERS {
        let told = python(&Yard::new(), tier, &["memory", &bound], program);
        assert_eq!(told.in_tier(tier).all("out"), ["kept"; 4], "{told:?}");
    }
}

#[test]
fn a_hog_that_hides_its_memory_is_ended_too() {
    let bound = (200 << 20).to_string();
    let program = format!("import ctypes\nctypes.CDLL(None).prctl(4, 0)\n{}", hog(300, 60));
    for tier in TIERS {
        let told = python(&Yard::new(), tier, &["memory", &bound], &program);
        assert_eq!(ended_for(told.in_tier(tier)), "Memory", "{told:?}");
    }
}

/// Ways to have memory that nobody has mapped: a program that puts `mib` there, at names with this mark.
fn unmapped(mib: u32, mark: &str) -> [(&'static str, String); 4] {
    let fill = format!("for _ in range({mib}): os.write(fd, b'x' * (1 << 20))");
    let at = format!("/dev/shm/agentd-{mark}");
    let make = format!("fd = os.open('{at}', os.O_CREAT | os.O_WRONLY, 0o600)");
    let segment = format!(
        "import ctypes\nc = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\nn = {mib} << 20\ni = c.shmget(0, ctypes.c_size_t(n), 0o1600)\na = c.shmat(i, None, 0)\nctypes.memset(a, 1, n)\nc.shmdt(ctypes.c_void_p(a))"
    );
    [
        ("memfd", format!("fd = os.memfd_create('x')\n{fill}")),
        ("named", format!("{make}\n{fill}")),
        ("deleted", format!("{make}\nos.unlink('{at}')\n{fill}")),
        ("segment", segment),
    ]
}

/// Half of `mib` is mapped by nobody, half is a process's own, for so many seconds.
fn half_unmapped(yard: &Yard, tier: &str, mib: u32, way: usize, seconds: u32) -> Told {
    let (_, put) = &unmapped(mib / 2, &mark())[way];
    let own = mib / 2;
    let program = format!(
        "import os, time\n{put}\nkept = b'x' * ({own} << 20)\ntime.sleep({seconds})\nprint('kept')"
    );
    let bound = (200 << 20).to_string();
    python(yard, tier, &["memory", &bound], &program)
}

#[test]
fn memory_that_nobody_has_mapped_counts_and_its_smaller_twin_passes() {
    for tier in TIERS {
        for way in 0..4 {
            let yard = Yard::new();
            // It is ended when it is measured, which a busy machine does late.
            let told = half_unmapped(&yard, tier, 300, way, 60);
            assert_eq!(ended_for(told.in_tier(tier)), "Memory", "{way} {told:?}");
            let told = half_unmapped(&yard, tier, 140, way, 2);
            assert_eq!(told.printed(), "kept", "{way} {told:?}");
            assert!(told.all("exceeded").is_empty(), "{way} {told:?}");
        }
    }
}

#[test]
fn a_process_that_hides_what_it_has_open_is_ended_too() {
    let bound = (200 << 20).to_string();
    let program = "import ctypes, os, time\nctypes.CDLL(None).prctl(4, 0)\nfd = os.memfd_create('x')\nfor _ in range(300): os.write(fd, b'x' * (1 << 20))\ntime.sleep(60)\nprint('kept')";
    for tier in TIERS {
        let told = python(&Yard::new(), tier, &["memory", &bound], program);
        assert_eq!(ended_for(told.in_tier(tier)), "Memory", "{told:?}");
    }
}

#[test]
fn files_in_memory_are_no_larger_than_the_bound_where_they_are_the_calls_own() {
    let bound = (64 << 20).to_string();
    let program =
        "import os\nprint(os.statvfs('/dev/shm').f_blocks * os.statvfs('/dev/shm').f_frsize)";
    let told = python(&Yard::new(), "a", &["memory", &bound], program);
    assert_eq!(told.in_tier("a").printed(), bound);
    let told = python(&Yard::new(), "a", &[], program);
    assert!(told.printed().parse::<u64>().unwrap() > 64 << 20, "{told:?}");
}

#[test]
fn memory_that_nobody_can_count_is_not_given() {
    for tier in TIERS {
        let program = "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nprint(c.syscall(447, 0) < 0 and ctypes.get_errno())";
        let told = python(&Yard::new(), tier, &[], program);
        assert_eq!(told.in_tier(tier).printed(), "38", "ENOSYS: {told:?}");
    }
}

/// The numbers of all System V segments.
fn segments() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let ids = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    ids.map(str::to_owned).collect()
}

#[test]
fn what_a_command_leaves_in_shared_memory_is_removed_and_what_others_have_is_not() {
    for tier in TIERS {
        let mark = mark();
        let theirs = format!("/dev/shm/theirs-{mark}");
        std::fs::create_dir(&theirs).unwrap();
        std::fs::write(format!("{theirs}/kept"), "theirs").unwrap();
        let [_, (_, named), _, (_, segment)] = unmapped(1, &mark);
        let program = format!(
            "import os\n{named}\n{segment}\nprint('segment', i)\nos.chdir('/dev/shm')\nos.mkdir('d-{mark}')\nos.chdir('d-{mark}')\nfor _ in range(500):\n    os.mkdir('d')\n    os.chdir('d')\nopen('x', 'w').write('x')\nos.mkdir('/dev/shm/d-{mark}/shut')\nos.mkdir('/dev/shm/d-{mark}/shut/in')\nos.chmod('/dev/shm/d-{mark}/shut', 0)\nos.symlink('{theirs}', '/dev/shm/l-{mark}')\nos.chdir('/dev/shm')\nprint(sorted(n for n in os.listdir('.') if '{mark}' in n))"
        );
        let told = python(&Yard::new(), tier, &[], &program);
        let seen = told.in_tier(tier).all("out");
        assert!(
            seen[1].contains("agentd-") && seen[1].contains("d-") && seen[1].contains("l-"),
            "{told:?}"
        );
        let id = seen[0].strip_prefix("segment ").unwrap();
        assert!(!segments().iter().any(|segment| segment == id) || tier == "a", "{told:?}");
        let left: Vec<_> = std::fs::read_dir("/dev/shm")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .filter(|name| name.contains(&mark))
            .collect();
        assert_eq!(left, [format!("theirs-{mark}")], "{tier}");
        assert_eq!(std::fs::read_to_string(format!("{theirs}/kept")).unwrap(), "theirs");
        std::fs::remove_dir_all(&theirs).unwrap();
    }
}

#[test]
fn orphans_that_ended_do_not_count() {
    for tier in TIERS {
        // 300 one after another, each an orphan at its end.
        let script =
            "n=0; while [ $n -lt 300 ]; do (true &) ; n=$((n+1)); sleep 0.002; done; echo all";
        let told = Yard::new().cage(tier, &["processes", "150"], &["sh", "-c", script]);
        assert_eq!(told.in_tier(tier).printed(), "all", "{told:?}");
    }
}

#[test]
fn processor_time_of_all_together_is_bounded() {
    for tier in TIERS {
        let yard = Yard::new();
        // Many short ones, so that no process has used much itself.
        let script = "while :; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done";
        let told =
            yard.cage(tier, &["cpu-seconds", "1", "kill-after", "30000"], &["sh", "-c", script]);
        assert_eq!(ended_for(told.in_tier(tier)), "CpuTime", "{told:?}");
        let told = yard.cage(tier, &["cpu-seconds", "1"], &["sh", "-c", "sleep 1.5; echo slept"]);
        assert_eq!(told.printed(), "slept", "waiting costs nothing");
    }
}

#[test]
fn what_is_not_bounded_or_only_watched_is_said() {
    for tier in TIERS {
        let said = |options: &[&str], words: &str| {
            let told = Yard::new().cage(tier, options, &["true"]);
            let limits = told.all("limit");
            assert!(limits.iter().any(|limit| limit.contains(words)), "{words}: {limits:?}");
        };
        said(&[], "number of processes is not limited");
        said(&[], "Memory is not limited");
        said(&["memory", "1000000000"], "Memory is measured");
    }
    let told = Yard::new().cage("b", &["processes", "100"], &["true"]);
    assert!(told.all("limit").iter().any(|limit| limit.contains("processes is counted")));
}
