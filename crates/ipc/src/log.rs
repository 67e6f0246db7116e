//! A worker's log. A confined worker cannot open files, so it sends its log lines to the supervisor
//! as frames. The supervisor writes them to its log, with session and call.

use protocol::log::{LogLevel, LogLine};
use std::fmt::{Debug, Write};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::Targets;

/// Most bytes of one line; a longer line is cut.
const LINE: usize = 4096;

/// Sends this process's log lines with `send` from now on. `worker` is the first part of the
/// accepted targets (`provider` also stands for `provider_worker::serve`); lines of libraries are
/// dropped, since they could hold secrets. `RUST_LOG` filters them in the form
/// `info,provider=debug`; without it, `info` and above are sent.
///
/// A line that cannot be sent is lost; the worker sees the end of its channel by itself.
pub fn start(worker: &'static str, send: impl Fn(LogLine) + Send + Sync + 'static) {
    let chosen = std::env::var("RUST_LOG").ok();
    let forward = Forward { worker, filter: filter(chosen.as_deref()), send };
    // A second start in one process keeps the first; only tests do that.
    let _ = tracing::subscriber::set_global_default(forward);
}

/// The lines that this value of `RUST_LOG` chooses.
fn filter(chosen: Option<&str>) -> Targets {
    let usual = || Targets::new().with_default(Level::INFO);
    chosen.map_or_else(usual, |chosen| chosen.parse().unwrap_or_else(|_| usual()))
}

/// Turns events into frames. Spans carry nothing here.
struct Forward<F> {
    worker: &'static str,
    filter: Targets,
    send: F,
}

impl<F: Fn(LogLine) + 'static> Subscriber for Forward<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(self.worker)
            && self.filter.would_enable(metadata.target(), metadata.level())
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = LogFields::default();
        event.record(&mut line);
        let level = match *event.metadata().level() {
            Level::ERROR => LogLevel::Error,
            Level::WARN => LogLevel::Warn,
            Level::INFO => LogLevel::Info,
            Level::DEBUG | Level::TRACE => LogLevel::Debug,
        };
        (self.send)(LogLine { level, text: line.finish() });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// `message key=value key=value`, as the supervisor's own lines are.
#[derive(Default)]
struct LogFields {
    message: String,
    fields: String,
}

impl LogFields {
    fn finish(self) -> String {
        let mut text = self.message + &self.fields;
        if text.len() > LINE {
            let end = (0..=LINE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            text.truncate(end);
            text.push('…');
        }
        text
    }
}

impl Visit for LogFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::{Arc, Mutex};

    /// The lines of this work under that choice.
    fn lines(chosen: Option<&str>, work: impl FnOnce()) -> Vec<(LogLevel, String)> {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&sent);
        let send = move |line: LogLine| keep.lock().unwrap().push((line.level, line.text));
        let forward = Forward { worker: "provider", filter: filter(chosen), send };
        tracing::subscriber::with_default(forward, work);
        sent.lock().unwrap().clone()
    }

    fn work() {
        tracing::info!(target: "provider_worker::serve", round = 3, model = %"m", "request sent");
        tracing::debug!(target: "provider_worker", "a detail");
        tracing::error!(target: "hyper::client", key = "secret", "of a library");
    }

    #[test]
    fn a_line_has_its_fields_and_no_line_is_a_librarys() {
        let usual = [(LogLevel::Info, "request sent round=3 model=m".to_owned())];
        assert_eq!(lines(None, work), usual);
        assert_eq!(lines(Some("not=a=filter"), work), usual);
        assert_eq!(lines(Some("trace"), work).len(), 2);
    }

    #[test]
    fn each_worker_has_its_own_level() {
        assert_eq!(lines(Some("provider=debug"), work).len(), 2);
        assert!(lines(Some("session=debug"), work).is_empty());
        assert_eq!(lines(Some("info,provider=warn"), work), []);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let found = lines(None, || {
            tracing::info!(target: "provider", "{}", "ä".repeat(LINE));
        });
        assert_eq!(found[0].1.len(), LINE + '…'.len_utf8());
    }
}
