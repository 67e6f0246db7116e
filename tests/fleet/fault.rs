//! One random fault of a fleet: it happens, lasts for a random time, and is put right.
#![allow(clippy::wildcard_enum_match_arm)]

use crate::clock::HOUR;
use crate::host::Host;
use crate::network::Network;
use crate::postgres::Postgres;
use crate::support::anthropic::Server;
use crate::support::dice::Dice;
use crate::support::{Desk, processes};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::Child;
use std::time::Duration;

/// The length of leases, in seconds.
pub const LEASE: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    HostDies,
    HostStops,
    WorkerDies,
    DaemonDies,
    DatabaseRestarts,
    LinkIsCut,
    LinkIsSlow,
    StandbyTakesOver,
    DiskIsFull,
    ClockJumped,
}

impl Fault {
    /// Those that need no root, and no network of the test's own.
    pub const SIMPLE: [Self; 6] = [
        Self::HostDies,
        Self::HostStops,
        Self::WorkerDies,
        Self::DaemonDies,
        Self::DatabaseRestarts,
        Self::ClockJumped,
    ];
    pub const ALL: [Self; 10] = [
        Self::HostDies,
        Self::HostStops,
        Self::WorkerDies,
        Self::DaemonDies,
        Self::DatabaseRestarts,
        Self::LinkIsCut,
        Self::LinkIsSlow,
        Self::StandbyTakesOver,
        Self::DiskIsFull,
        Self::ClockJumped,
    ];
}

/// Hosts with their workers, and the database.
pub struct Fleet {
    pub postgres: Postgres,
    pub network: Option<Network>,
    pub hosts: Vec<Host>,
    pub workers: Vec<Option<Child>>,
    pub model: Server,
    /// Workers that ended without a fault of the test.
    pub ended_by_themselves: usize,
}

impl Fleet {
    /// Starts the worker of a host, of two slots. The first half of the hosts gives calls a network.
    pub fn start(&mut self, host: usize) {
        let label = if self.is_open(host) { "net=on" } else { "net=off" };
        let name = format!("host{host}");
        let flags = ["--slots", "2", "--name", &name, "--label", label];
        self.workers[host] = Some(self.hosts[host].start(&self.model, &flags));
    }

    pub fn is_open(&self, host: usize) -> bool {
        host < self.hosts.len() / 2
    }

    /// Starts workers that ended, as a service manager does.
    pub fn watch(&mut self) {
        for host in 0..self.hosts.len() {
            let ended = self.workers[host].as_mut().map(|worker| worker.try_wait().unwrap());
            if let Some(Some(status)) = ended {
                let log = self.hosts[host].log();
                let last: Vec<_> = log.lines().rev().take(3).collect();
                println!("the worker of host {host} ended: {status} {last:?}");
                self.ended_by_themselves += 1;
                self.start(host);
            }
        }
    }

    fn kill_worker(&mut self, host: usize) {
        if let Some(mut worker) = self.workers[host].take() {
            let _ = worker.kill();
            let _ = worker.wait();
        }
        // `setsid` became agentd, which became or started the worker.
        self.kill_named(host, "agentd-fleet");
    }

    fn kill_named(&self, host: usize, name: &str) {
        let short = &name[..name.len().min(15)];
        let of_host = self.hosts[host].processes();
        for process in processes() {
            if process.name == short && of_host.contains(&process.pid) {
                // One that ends with the one before it is gone by now.
                let _ = kill(Pid::from_raw(process.pid.cast_signed()), Signal::SIGKILL);
            }
        }
    }

    /// A fault of some host or of the database, from its beginning to its end.
    pub fn suffer(&mut self, fault: Fault, dice: &mut Dice) {
        let host = dice.below(self.hosts.len());
        let lease = LEASE as usize * 1000;
        let mut pause = |from: usize, to: usize| {
            std::thread::sleep(Duration::from_millis((from + dice.below(to - from)) as u64));
        };
        match fault {
            Fault::HostDies => {
                self.hosts[host].lose_power();
                if let Some(mut worker) = self.workers[host].take() {
                    let _ = worker.wait();
                }
                pause(0, 2 * lease);
                self.start(host);
            }
            Fault::HostStops => {
                self.hosts[host].signal(Signal::SIGSTOP);
                pause(lease / 2, 3 * lease);
                self.hosts[host].signal(Signal::SIGCONT);
            }
            Fault::WorkerDies => {
                self.kill_worker(host);
                pause(0, lease * 3 / 2);
                self.start(host);
            }
            Fault::DaemonDies => self.kill_named(host, "agentd-supervisor"),
            Fault::DatabaseRestarts => {
                self.postgres.stop();
                pause(0, lease * 3 / 2);
                self.postgres.go();
            }
            Fault::LinkIsCut | Fault::LinkIsSlow => {
                let Some(network) = &self.network else { return };
                let (begin, end): (fn(&Network, usize), fn(&Network, usize)) = match fault {
                    Fault::LinkIsCut => (Network::cut, Network::mend),
                    _ => (Network::slow, Network::fast),
                };
                begin(network, host);
                pause(lease / 4, 2 * lease);
                end(network, host);
            }
            Fault::StandbyTakesOver => {
                self.postgres.fail_over(Duration::from_millis(dice.below(lease) as u64));
            }
            Fault::DiskIsFull => {
                let file = self.hosts[host].desk.outside().join("state/filler");
                fill(&file);
                pause(lease / 4, lease);
                let _ = std::fs::remove_file(file);
            }
            // It stays so until the next jump.
            Fault::ClockJumped => {
                self.hosts[host].jump_clock([HOUR, -HOUR, 0][dice.below(3)]);
            }
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for host in &self.hosts {
            host.lose_power();
            let _ = umount2(&host.desk.outside().join("state"), MntFlags::MNT_DETACH);
        }
        for worker in self.workers.iter_mut().flatten() {
            let _ = worker.wait();
        }
    }
}

/// Puts the state directory on a disk of its own, which can be full.
pub fn small_disk(desk: &Desk) {
    let state = desk.outside().join("state");
    let none: Option<&str> = None;
    mount(none, &state, Some("tmpfs"), MsFlags::empty(), Some("size=256m,mode=700")).unwrap();
}

fn fill(file: &std::path::Path) {
    use std::io::Write;
    let Ok(mut file) = std::fs::File::create(file) else { return };
    let block = vec![0_u8; 1 << 16];
    while file.write_all(&block).is_ok() {}
}
