//! The way to a request: starts of servers are awaited, the stamps of pinned files are taken, files that changed are read, then the
//! model is asked. Part of [`Session`].

use crate::batch::Batch;
use crate::pinned::{self, file_of};
use crate::{Outputs, Session, SessionPhase};
use protocol::call::{CallOrigin, ToolResult};
use protocol::ids::CallId;
use protocol::judgement::ToolKind;
use protocol::mcp::{PREFIX, ServerNews, ServerStart};
use protocol::session::{FromSession, PinnedNews, PinnedStamp, TurnEnd};

impl Session {
    /// Asks the model, once its request can carry pinned files as they are now.
    pub(crate) fn ask(&mut self, out: &mut Outputs) {
        if self.is_over() {
            return self.end_turn(self.rounds_used_up(), out);
        }
        if self.servers.awaits() {
            self.phase = SessionPhase::Checking;
            return;
        }
        let files = self.pinned.to_stat();
        if files.is_empty() {
            return self.ask_now(out);
        }
        self.phase = SessionPhase::Checking;
        out.words.push(FromSession::StatPinned { check: self.pinned.next_check(), files });
    }

    /// Takes in news about servers.
    pub(crate) fn server_news(&mut self, news: ServerNews, out: &mut Outputs) {
        match news {
            ServerNews::Due(start) if self.is_replaying() => self.servers.due_later(start),
            // The model had to do without it before.
            ServerNews::Due(start) => {
                let call = self.start_server(start, out);
                self.servers.unawaited(call);
            }
            ServerNews::Tools { tools, hooks } => {
                self.setup.hooks.events = hooks;
                self.setup.tools.retain(|tool| !tool.spec.name.starts_with(PREFIX));
                self.setup.tools.extend(tools);
            }
        }
    }

    /// Requests the starts that came before the end of the replay.
    pub(crate) fn start_servers(&mut self, out: &mut Outputs) {
        for start in self.servers.take_due() {
            let call = self.start_server(start, out);
            self.servers.awaited(call);
        }
    }

    fn start_server(&mut self, start: ServerStart, out: &mut Outputs) -> CallId {
        let call = self.name_own(CallOrigin::ServerStart, &start.tool, start.input, out);
        let id = call.id.clone();
        out.run(call);
        id
    }

    /// Takes in news about pinned files.
    pub(crate) fn pinned_news(&mut self, news: PinnedNews, out: &mut Outputs) {
        match news {
            PinnedNews::Files(files) => self.pinned.set(files),
            PinnedNews::Stamps { check, began, stamps } => self.stamped(check, began, stamps, out),
        }
    }

    /// Reads the pinned files that changed. Answers to an earlier question are ignored.
    fn stamped(&mut self, check: u32, began: i64, stamps: Vec<PinnedStamp>, out: &mut Outputs) {
        if !matches!(self.phase, SessionPhase::Checking) || check != self.pinned.check() {
            return;
        }
        let mut batch = Batch::default();
        for path in self.pinned.stamped(began, stamps) {
            let input = pinned::input(&path);
            let call = self.name_own(CallOrigin::PinnedRead, "read", input, out);
            batch.push(call, ToolKind::Query);
        }
        self.phase = SessionPhase::Reading { batch, stopping: false };
        self.go_on_reading(out);
    }

    /// A read of a pinned file ended.
    pub(crate) fn pinned_read(&mut self, input: &str, result: &ToolResult, out: &mut Outputs) {
        self.pinned.read(&file_of(input), result);
        self.go_on_reading(out);
    }

    /// Starts the next reads; once all have ended, asks the model.
    pub(crate) fn go_on_reading(&mut self, out: &mut Outputs) {
        let SessionPhase::Reading { batch, stopping } = &mut self.phase else { return };
        if !batch.is_over() {
            let started = batch.start(self.setup.parallel, self.setup.max_session.tasks);
            return started.into_iter().for_each(|call| out.run(call));
        }
        if *stopping {
            return self.end_turn(TurnEnd::Interrupted, out);
        }
        self.pinned.all_read();
        // A file may have been pinned meanwhile.
        self.ask(out);
    }
}
