//! Signals that ask this process to end, as inputs of a run instead of an end in mid-sentence.

use client::RunInput;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::sync::mpsc::SyncSender;

/// SIGINT, SIGTERM and SIGHUP, blocked in every thread that starts later.
#[derive(Debug)]
pub(crate) struct BlockedSignals(SigSet);

impl BlockedSignals {
    /// Holds them back. Called before the first thread starts, since threads inherit it.
    pub(crate) fn block() -> nix::Result<Self> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        set.add(Signal::SIGTERM);
        // `nohup` ignores SIGHUP so that a run survives logout. A blocked signal would be delivered
        // even if it is ignored.
        if !ignores_hangup() {
            set.add(Signal::SIGHUP);
        }
        set.thread_block()?;
        Ok(Self(set))
    }

    /// The same, but SIGTERM stays blocked and is never delivered.
    pub(crate) fn without_term(mut self) -> Self {
        self.0.remove(Signal::SIGTERM);
        self
    }

    /// Delivers them as inputs, including signals that arrived meanwhile.
    pub(crate) fn deliver(self, inputs: SyncSender<RunInput>) {
        self.deliver_as(inputs, RunInput::Signal);
    }

    /// The same for the input type of another loop.
    pub(crate) fn deliver_as<T: Send + 'static>(self, inputs: SyncSender<T>, input: fn(i32) -> T) {
        std::thread::spawn(move || {
            let Ok(signals) = SignalFd::with_flags(&self.0, SfdFlags::SFD_CLOEXEC) else { return };
            while let Ok(Some(signal)) = signals.read_signal() {
                let number = i32::try_from(signal.ssi_signo).unwrap_or(nix::libc::SIGTERM);
                if inputs.send(input(number)).is_err() {
                    return;
                }
            }
        });
    }
}

fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & 1 != 0
}
