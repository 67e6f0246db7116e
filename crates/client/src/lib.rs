//! The client side of a session, for users and scripts: a connection to a supervisor, the
//! transcript of its events, and the views.
//!
//! Called by the command line only. These parts do input and output: `supervisor_connection` (the
//! socket), `session_connection` (a session at one supervisor after another), `spawn` (the only file here
//! that starts a process), `sealed_key` (memory files of keys), and the three users of the loop in
//! `session_loop`: `one_shot` (a script's run), `attach` (a user's terminal) and `live` (another program). All others are pure:
//! [`SessionFacts`] of both; [`Transcript`] and the [`RunView`]s of a run; [`Screen`], [`ScreenItems`] and
//! the [`LineView`] of a terminal.

mod answer_check;
mod answer_texts;
mod attach;
mod call_gist;
mod call_line;
mod call_time;
mod client_error;
mod clipboard_image;
mod colour;
mod compaction_text;
mod context_text;
mod cost;
mod daemon_source;
mod fleet_programs;
mod installer;
mod json_view;
mod line_view;
mod lines;
mod live;
mod live_rows;
mod liveness;
mod living_line;
mod one_shot;
mod refusal_lines;
mod relay_source;
mod run_view;
mod running;
mod screen;
mod screen_items;
mod screen_view;
mod sealed_key;
mod servers_text;
mod session_connection;
mod session_facts;
mod session_loop;
mod silence;
mod spawn;
mod supervisor_connection;
mod supervisor_source;
mod terminal_use;
mod text_view;
mod theme_name;
mod transcript;
mod turn_progress;
mod turn_totals;

pub use attach::{
    AttachArgs, AttachEnd, AttachServices, InlineView, LeaderKey, LinesView, TerminalMode,
    TerminalUse, attach, terminal_size,
};
pub use call_gist::{call_title, question_title, telling_argument};
pub use call_line::{
    CallLine, CallState, InterruptedEnd, failure_of, outcome_words, reason_of_person, shown_output,
    without_refusals,
};
pub use colour::{Colour, Terminal};
pub use ipc::ChannelError;
pub use screen_items::{CallBlock, CallPlace, ScreenItem, ScreenItems};
pub use screen_view::ScreenView;

pub use answer_check::{AnswerCheck, AnswerFault, misfit, repair_prompt};
pub use client_error::{ClientError, RunStop};
pub use context_text::context_text;
pub use cost::{Spent, context_left, in_dollars, sum};
pub use daemon_source::{DaemonError, DaemonProcess, DaemonSource};
pub use fleet_programs::{fleet_executable, fleet_output};
pub use installer::run_installer;
pub use json_view::{JsonView, StreamJsonView, failure_line};
pub use line_view::{
    Labels, LineView, LiveArea, asks, describe_change, describe_widening, fault_of_turn,
    is_checklist,
};
pub use lines::{display_width, last_lines, one_line, wrap};
pub use live::{LiveEvent, LiveFrom, LiveReceiver, LiveSender, live, live_queue};
pub use live_rows::{status_row, waiting_row};
pub use living_line::{LivingLine, TurnClock};
pub use one_shot::{Finished, Prompts, RunFailure, RunInput, Task, run};
pub use relay_source::RelaySource;
pub use run_view::{Moment, RunView, ShownOpening, ViewOutput};
pub use running::{
    RunningAction, RunningRow, RunningThing, SecondsOf, call_of, likely_ports, running_actions,
    running_rows, running_text, session_cost, session_state,
};
pub use screen::colon_command::{COMMANDS, KEYS};
pub use screen::editor::{Editor, Layout, LineKeys};
pub use screen::other_names::{OTHER_NAMES, OtherName};
pub use screen::{
    AnswerRow, AnswerRows, AnswerUsage, AttachOptions, ConnectionState, Direction, Distance,
    EditKey, FilePlace, Focus, KeyPause, KeyPress, LeaveReason, LongText, MemoryReach, MouseInput,
    NotePlace, QuestionShown, RewindKind, RewindPoint, RewindScope, RulePlace, Screen,
    ScreenEffect, ScreenInput, SlashRow, TextPart, TurnState, note_of,
};
pub use sealed_key::{KeyFileError, key_of_file, seal_key};
pub use servers_text::servers_text;
pub use session_facts::SessionFacts;
pub use silence::SilenceAction;
pub use spawn::{
    PrivateSupervisor, StartError, SupervisorLaunch, TerminalGuard, become_daemon, become_program,
    copy_by_program, edit_file, git_output, key_of_command, page, sibling_executable, store_output,
    systemctl,
};
pub use supervisor_connection::{ConnectError, SupervisorConnection};
pub use supervisor_source::{PrivateSource, SourceResult, SupervisorSource};
pub use text_view::{TextView, argument_lines};
pub use theme_name::ThemeName;
pub use transcript::{OpenedSession, RunConclusion, TasksSpent, Timing, Transcript, resume_hint};
pub use turn_progress::TurnProgress;
pub use turn_totals::TurnTotals;
