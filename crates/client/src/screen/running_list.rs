//! The commands about calls that run: the list of what runs and what waits, the output of a call, a port of its server.

use super::colon_command::CallCommand;
use super::{LongText, Screen, ScreenEffect};
use crate::call_gist::call_title;
use crate::lines::one_line;
use crate::running::{call_of, running_rows, running_text};
use crate::screen_items::ScreenItem;
use crate::servers_text::servers_text;
use protocol::client::{FromClient, SessionQuery, SessionRow, SessionWish};
use protocol::hidden::on_screen;
use protocol::mcp::ServerReport;

/// Characters of a call's title.
const TITLE: usize = 80;

/// The answers that the text of `:running` waits for; they come in any order.
#[derive(Debug, Default)]
pub(super) struct AwaitedList {
    servers: Option<Vec<ServerReport>>,
    has_sessions: bool,
}

impl AwaitedList {
    fn is_whole(&self) -> bool {
        self.has_sessions && self.servers.is_some()
    }
}

/// Carries a command out.
pub(super) fn give(screen: &mut Screen, command: CallCommand) -> Vec<ScreenEffect> {
    match command {
        CallCommand::List => ask(screen),
        CallCommand::Output(call) => show_output(screen, call),
        CallCommand::OpenPort(call, port) => open_port(screen, call, port),
        CallCommand::Stop(call) => {
            let wish = SessionWish::StopCall { call };
            screen.to_session(|session| FromClient::Wish { session, wish })
        }
    }
}

/// Asks for what the list needs; it is shown once all of it has come.
pub(super) fn ask(screen: &mut Screen) -> Vec<ScreenEffect> {
    screen.last_words.running = Some(AwaitedList::default());
    let query = SessionQuery::Servers;
    let servers = screen.to_session(|session| FromClient::Query { session, query });
    std::iter::once(ScreenEffect::Send(FromClient::List)).chain(servers).collect()
}

/// The servers of the session came: for the list, or by themselves.
pub(super) fn take_servers(screen: &mut Screen, servers: Vec<ServerReport>) -> Vec<ScreenEffect> {
    match &mut screen.last_words.running {
        Some(awaited) if awaited.servers.is_none() => {
            awaited.servers = Some(servers);
            show_whole(screen)
        }
        Some(_) | None => vec![ScreenEffect::Show(ScreenItem::Note(servers_text(&servers)))],
    }
}

/// The sessions came.
pub(super) fn take_sessions(screen: &mut Screen, rows: Vec<SessionRow>) -> Vec<ScreenEffect> {
    screen.last_words.sessions = rows;
    if let Some(awaited) = &mut screen.last_words.running {
        awaited.has_sessions = true;
    }
    show_whole(screen)
}

fn show_whole(screen: &mut Screen) -> Vec<ScreenEffect> {
    let whole = screen.last_words.running.take_if(|awaited| awaited.is_whole());
    let Some(servers) = whole.and_then(|whole| whole.servers) else { return Vec::new() };
    let text = running_text(&running_rows(screen, &servers, &|_| None));
    vec![ScreenEffect::Show(ScreenItem::Note(text))]
}

/// The output of a call that runs, as far as this terminal received it.
fn show_output(screen: &Screen, number: u32) -> Vec<ScreenEffect> {
    let Some(call) = call_of(screen, number) else { return vec![does_not_run(number)] };
    let title = format!("call {number}: {}", one_line(&call_title(&call.call), TITLE));
    let text = match call.tail.trim().is_empty() {
        true => "it has printed nothing since this terminal is attached\n".to_owned(),
        false => on_screen(&call.tail),
    };
    vec![ScreenEffect::OpenText(LongText::new(&title, text))]
}

/// How a person reaches a port of a call. The process that serves it joins the call's network and confines itself,
/// so this one cannot be it.
fn open_port(screen: &Screen, number: u32, port: u16) -> Vec<ScreenEffect> {
    let (Some(session), Some(_)) = (screen.session(), call_of(screen, number)) else {
        return vec![does_not_run(number)];
    };
    let text = format!(
        "type in another terminal, for as long as you need the port:\n\
         agentd open {session} {port} --call {number}"
    );
    vec![ScreenEffect::Show(ScreenItem::Note(text))]
}

fn does_not_run(number: u32) -> ScreenEffect {
    ScreenEffect::Show(ScreenItem::Error(format!(
        "call {number} does not run; :running lists what does"
    )))
}
