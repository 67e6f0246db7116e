//! The table of what runs and what waits, and the steps behind a row: what can be done, a port, the end of a call.

use super::{FullScreen, ListSubject};
use crate::frame::Mode;
use crate::pager::Pager;
use crate::picker::{Picker, PickerItem, PickerKind};
use crate::row::{Piece, Row, wrap};
use client::{
    RunningAction, Screen, ScreenInput, call_of, call_title, likely_ports, one_line,
    running_actions, running_rows,
};
use protocol::hidden::on_screen;

/// Most characters of a title.
const TITLE: usize = 60;
/// Fewest of them.
const LEAST_TITLE: usize = 12;
/// Most columns of a name: those of a session.
const NAME: usize = 20;

impl FullScreen {
    /// Ctrl-T: the table. Sessions and servers are asked for anew.
    pub(super) fn list_running(&mut self, screen: &Screen) -> Vec<ScreenInput> {
        let items = self.running_items(screen);
        self.state.mode = Mode::Picker(Picker::new(PickerKind::Running, items));
        let mut inputs = vec![ScreenInput::ListSessions];
        inputs.extend(self.servers.ask(screen.session()));
        inputs
    }

    /// The present rows, while the table is open.
    pub(super) fn refresh_running(&mut self, screen: &Screen) {
        let items = self.running_items(screen);
        match &mut self.state.mode {
            Mode::Picker(picker) if picker.kind == PickerKind::Running => picker.set_items(items),
            Mode::Picker(_) | Mode::Pager(_) | Mode::Input | Mode::Browse(_) => {}
        }
    }

    fn running_items(&self, screen: &Screen) -> Vec<PickerItem> {
        let started = &self.state.started;
        let seconds = |call: &protocol::ids::CallId| {
            started.get(&call.to_string()).map(|since| since.elapsed().as_secs())
        };
        let rows = running_rows(screen, self.servers.reports(), &seconds);
        let names = rows.iter().map(|row| row.thing.name().chars().count());
        let width = names.max().unwrap_or_default().min(NAME);
        // The state needs room too.
        let title = (usize::from(self.tty.area().width) / 3).clamp(LEAST_TITLE, TITLE);
        let item = |row: client::RunningRow| PickerItem {
            text: format!("{:width$}  {}", row.thing.name(), one_line(&row.title, title)),
            detail: row.state,
            value: row.thing.name(),
        };
        rows.into_iter().map(item).collect()
    }

    /// The second step: what can be done with this row.
    pub(super) fn running_chosen(&mut self, value: &str, screen: &Screen) -> Vec<ScreenInput> {
        let rows = running_rows(screen, self.servers.reports(), &|_| None);
        let Some(row) = rows.into_iter().find(|row| row.thing.name() == value) else {
            return Vec::new();
        };
        let actions = running_actions(screen, &row.thing);
        if actions.is_empty() {
            self.state.hint = Some(format!("nothing can be done with {value} here"));
            return Vec::new();
        }
        let item = |action: RunningAction| picked(action.words(), "");
        let items = actions.into_iter().map(item).collect();
        let subject = format!("{value}: {}", row.title);
        self.state.mode = Mode::Picker(Picker::new(PickerKind::Actions, items).about(&subject));
        self.subject = ListSubject::Thing(row.thing);
        Vec::new()
    }

    /// The action was chosen. The end of a call takes one more Enter, since nothing brings the call back.
    pub(super) fn action_chosen(&mut self, value: &str, screen: &Screen) -> Vec<ScreenInput> {
        let ListSubject::Thing(thing) = std::mem::take(&mut self.subject) else {
            return Vec::new();
        };
        let possible = running_actions(screen, &thing);
        let Some(action) = possible.into_iter().find(|action| action.words() == value) else {
            self.state.hint = Some(format!("{} has ended", thing.name()));
            return Vec::new();
        };
        let (kind, items) = match action {
            RunningAction::Join(session) => return vec![ScreenInput::SwitchTo(session)],
            RunningAction::Servers => return vec![ScreenInput::Command(":mcp".to_owned())],
            RunningAction::Output(call) => {
                return vec![ScreenInput::Command(format!(":output {call}"))];
            }
            RunningAction::Follow(call) => {
                self.follow_output(call, screen);
                return Vec::new();
            }
            RunningAction::OpenPort(call) => {
                let ports = call_of(screen, call).map(likely_ports).unwrap_or_default();
                let item = |port: u16| picked(&port.to_string(), "named by its command or output");
                (PickerKind::Ports(call), ports.into_iter().map(item).collect())
            }
            RunningAction::Stop(call) => {
                let end = "it ends now; Esc lets it run";
                (PickerKind::StopCall(call), vec![picked(value, end)])
            }
        };
        self.state.mode = Mode::Picker(Picker::new(kind, items).about(&thing.name()));
        Vec::new()
    }

    /// The end of the output, in a pager that goes on with it.
    fn follow_output(&mut self, number: u32, screen: &Screen) {
        let Some(call) = call_of(screen, number) else { return };
        let title = format!("call {number}: {}", one_line(&call_title(&call.call), TITLE));
        let mut pager = Pager::new(title, Vec::new(), String::new());
        pager.follows = Some(number);
        self.state.mode = Mode::Pager(pager);
        self.refresh_followed(screen);
    }

    /// The present output of the followed call.
    pub(super) fn refresh_followed(&mut self, screen: &Screen) {
        let (area, look) = (self.tty.area(), self.state.look);
        let Mode::Pager(pager) = &mut self.state.mode else { return };
        let Some(number) = pager.follows else { return };
        let Some(call) = call_of(screen, number) else {
            pager.follows = None;
            pager.title.push_str(" · has ended");
            return;
        };
        let text = on_screen(&call.tail);
        if text == pager.text && !text.is_empty() {
            return;
        }
        let columns = usize::from(area.width);
        let under = Piece::new("", look.text);
        let mut rows: Vec<Row> = text
            .lines()
            .flat_map(|line| wrap(&Row::new(line, look.text).pieces, columns, &under))
            .collect();
        if rows.is_empty() {
            rows.push(Row::new("it has printed nothing since this terminal is attached", look.dim));
        }
        pager.go_on(rows, text, usize::from(area.height).saturating_sub(2));
    }
}

fn picked(text: &str, detail: &str) -> PickerItem {
    PickerItem { text: text.to_owned(), detail: detail.to_owned(), value: text.to_owned() }
}
