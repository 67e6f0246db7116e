//! Bounds on a call as a whole: above one it is ended and named, just below it passes, in both tiers.

#![allow(clippy::unwrap_used)]

mod yard;

use yard::{TIERS, Told, Yard, mark, processes_with};

/// Fills memory with `mib` that nobody shares, in two processes, and stays.
fn hog(mib: u32) -> String {
    let half = mib / 2;
    format!(
        "import os, time\nchild = os.fork()\nkept = b'x' * ({half} << 20)\ntime.sleep(3)\nprint('kept')\nif child: os.wait()"
    )
}

fn python(yard: &Yard, tier: &str, options: &[&str], program: &str) -> Told {
    yard.cage(tier, options, &["python3", "-c", program])
}

/// The bound that a call was ended for.
fn ended_for(told: &Told) -> String {
    let line = told.one("exceeded");
    assert_eq!(told.one("survivors"), "0");
    line.split(' ').next().unwrap().to_owned()
}

#[test]
fn a_memory_hog_is_ended_and_its_smaller_twin_is_not() {
    let bound = (200 << 20).to_string();
    for tier in TIERS {
        let yard = Yard::new();
        let told = python(&yard, tier, &["memory", &bound], &hog(300));
        assert_eq!(ended_for(told.in_tier(tier)), "Memory", "{told:?}");
        assert!(!told.printed().contains("kept"), "{told:?}");
        let told = python(&yard, tier, &["memory", &bound], &hog(140));
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
    let program = format!("import ctypes\nctypes.CDLL(None).prctl(4, 0)\n{}", hog(300));
    for tier in TIERS {
        let told = python(&Yard::new(), tier, &["memory", &bound], &program);
        assert_eq!(ended_for(told.in_tier(tier)), "Memory", "{told:?}");
    }
}

#[test]
fn a_fork_bomb_is_ended_and_its_smaller_twin_is_not() {
    for tier in TIERS {
        let (yard, mark) = (Yard::new(), mark());
        // Each begets two, which leave its session, and so on.
        let bomb = format!(
            "import os, sys\nwhile True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass\n# {mark}"
        );
        let told = python(&yard, tier, &["processes", "200"], &bomb);
        assert_eq!(ended_for(told.in_tier(tier)), "Processes", "{told:?}");
        assert_eq!(processes_with(&mark).len(), 0, "{tier}");
        let few = "n=0; while [ $n -lt 180 ]; do sleep 1 & n=$((n+1)); done; wait; echo all";
        let told = yard.cage(tier, &["processes", "200"], &["sh", "-c", few]);
        assert_eq!(told.printed(), "all", "{told:?}");
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
        said(&[], "number of processes is not bounded");
        said(&[], "Memory is not bounded");
        said(&["memory", "1000000000"], "Memory is measured");
    }
    let told = Yard::new().cage("b", &["processes", "100"], &["true"]);
    assert!(told.all("limit").iter().any(|limit| limit.contains("processes is counted")));
}
