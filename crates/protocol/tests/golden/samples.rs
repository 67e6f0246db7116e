//! One word of each variant of each enum of the wires, with every field set to something.

use protocol::call::{
    Call, CallOrigin, CallStage, ProbeReport, ProbedPath, ProcessUsage, RunReport, TamperRemedy,
    TamperedFile, ToolResult,
};
use protocol::client::{
    DaemonStatus, ProcessRow, SessionRequest, SessionRow, WaitingText, WhileBusy,
};
use protocol::confinement::{
    Confinement, Enforced, FilePath, GitSettings, Limits, PathAct, PrivateDir, ProcessAct,
    ProxyConnection, Refusal, SocketSpec, Subject,
};
use protocol::content::{ImageFile, ImageRef, MediaType, Message, ModelRequest, ToolSpec, Usage};
use protocol::context::{
    Compaction, CompactionCause, ContextKind, ContextPart, ContextReport, NumberedSummary,
    SummaryStep,
};
use protocol::hosts::HostRule;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{Ask, Effect, EffectReach, JudgedCall, Question, Rule, RuleSet};
use protocol::log::LogLine;
use protocol::provider::ProviderTimeouts;
use protocol::session::{
    ConversationSetting, JoiningWords, OfferedTool, SessionBounds, SessionSetup, TaskUse,
    WorkerDeaths,
};
use protocol::store::{CacheKey, CachedResult, FileBackup, MayHaveChanged, StoreSetup};
use protocol::tool::{CageOrder, FromCage, FromCall, Handover, JudgedPath, ToCall};
use protocol::web::{HostRight, PrivateNetworks, RedirectScope, WebAddress, WebSettings};

goldens! {
    session::CopyBeforeChange {
        Kept => protocol::session::CopyBeforeChange::Kept,
        Compared => protocol::session::CopyBeforeChange::Compared,
        None => protocol::session::CopyBeforeChange::None,
    }
    session::ToolListing {
        Always => protocol::session::ToolListing::Always,
        IfSmall => protocol::session::ToolListing::IfSmall,
        Searched => protocol::session::ToolListing::Searched { words: text("entries") },
        Denied => protocol::session::ToolListing::Denied,
    }
    session::SessionEvent {
        Prompt => SessionEvent::Prompt { text: text("prompt"), expanded: None },
        Answer => SessionEvent::Answer { round: 300, blocks: blocks(), usage: usage(), cost: Some(300) },
        Called => SessionEvent::Called { call: call() },
        Result => SessionEvent::Result {
            call: call_id(),
            origin: origin(),
            stage: CallStage::InBackground,
            result: result(),
        },
        BackgroundEnded => SessionEvent::BackgroundEnded {
            call: call_id(),
            tool: text("bash"),
            result: result(),
        },
        TurnEnded => SessionEvent::TurnEnded { end: protocol::session::TurnEnd::Done },
        Joined => SessionEvent::Joined { text: text("only three") },
        Compacted => SessionEvent::Compacted(compaction()),
    }
    context::ContextKind {
        System => ContextKind::System,
        Tools => ContextKind::Tools,
        Pinned => ContextKind::Pinned,
        Summary => ContextKind::Summary,
        Prompts => ContextKind::Prompts,
        Answers => ContextKind::Answers,
        Results => ContextKind::Results,
        Images => ContextKind::Images,
    }
    context::CompactionKind {
        Summary => CompactionKind::Summary,
        Cut => CompactionKind::Cut,
    }
    context::CompactionCause {
        Person => CompactionCause::Person,
        Full => CompactionCause::Full,
    }
    context::Compaction {
        Cut => Compaction::Cut { dropped: 4, result_chars: 900, old: 3 },
        Summary => compaction(),
    }
    context::SummaryStep {
        Asked => SummaryStep::Asked {
            dropped: 4,
            prompt_bytes: 60_000,
            focus: text("tests"),
            cause: CompactionCause::Person,
        },
        Written => SummaryStep::Written {
            round: 7,
            text: text("so far"),
            usage: usage(),
            cost: Some(300),
        },
        Failed => SummaryStep::Failed {
            round: 7,
            reason: text("busy"),
            usage: usage(),
            cost: None,
        },
        Edited => SummaryStep::Edited { text: text("so far") },
    }
    session::PromptPart {
        Text => protocol::session::PromptPart::Text(text("part")),
        Command => protocol::session::PromptPart::Command(text("date")),
        File => protocol::session::PromptPart::File(text("shot.png")),
        Server => protocol::session::PromptPart::Server {
            name: text("mcp__t__@resource"),
            arguments: text("{}"),
        },
    }
    session::TurnEnd {
        Done => TurnEnd::Done,
        RoundsUsedUp => TurnEnd::RoundsUsedUp { rounds: 25 },
        CostReached => TurnEnd::CostReached { spent: Some(2_000_000), most: 1_500_000 },
        CallsUsedUp => TurnEnd::CallsUsedUp { calls: 100, of: protocol::session::CallSpan::Session },
        Declined => TurnEnd::Declined { explanation: text("no") },
        Truncated => TurnEnd::Truncated,
        StoppedByHook => TurnEnd::StoppedByHook { reason: text("r") },
        Interrupted => TurnEnd::Interrupted,
        ProviderFailed => TurnEnd::ProviderFailed {
            kind: protocol::provider::ProviderFailure::Overloaded,
            message: text("busy"),
        },
        ProcessDied => TurnEnd::ProcessDied(deaths()),
    }
    session::CallSpan {
        Turn => protocol::session::CallSpan::Turn,
        Session => protocol::session::CallSpan::Session,
    }
    session::OpenTurn {
        Waits => OpenTurn::Waits,
        GoesOn => OpenTurn::GoesOn,
    }
    pinned::FileStamp {
        Found => protocol::session::FileStamp::Found(protocol::call::ReadStamp {
            device: 1,
            inode: 2,
            size: 3,
            modified: 4,
            changed: 5,
        }),
        Missing => protocol::session::FileStamp::Missing,
        Unknown => protocol::session::FileStamp::Unknown,
    }
    session::ToSession {
        Begin => ToSession::Begin(setup()),
        Replay => ToSession::Replay(protocol::session::SessionEvent::Prompt { text: text("p"), expanded: None }),
        ReplayDone => ToSession::ReplayDone {
            then: protocol::session::OpenTurn::GoesOn,
            compact: Some(text("tests")),
        },
        Prompt => ToSession::Prompt {
            text: text("prompt"),
            expanded: Some(Box::new(protocol::session::ExpandedPrompt {
                file: text("/p/x.md"),
                parts: vec![protocol::session::PromptPart::Text(text("part"))],
                allow: vec![rule()],
                answer_schema: Some(text("{}")),
                model: Some(text("m")),
                typed_by: Some(text("pts/0")),
            })),
        },
        Stream => ToSession::Stream(protocol::provider::FromProvider::Ready),
        ProviderDied => ToSession::ProviderDied(deaths()),
        CallEnded => ToSession::CallEnded {
            call: call_id(),
            stage: CallStage::InBackground,
            result: result(),
        },
        BackgroundEnded => ToSession::BackgroundEnded {
            call: call_id(),
            tool: text("bash"),
            result: result(),
        },
        Setting => ToSession::Setting(ConversationSetting::Bounds(session_bounds())),
        HooksDue => ToSession::HooksDue(protocol::hook::HookOccasion {
            event: protocol::hook::HookEvent::Notification,
            subject: text("permission_prompt"),
            call: Some((7, text("{}"))),
            message: text("waits"),
        }),
        Interrupt => ToSession::Interrupt,
        Describe => ToSession::Describe,
        Compact => ToSession::Compact { focus: text("tests") },
        EditSummary => ToSession::EditSummary(summary()),
        System => ToSession::System { text: "You are at work.".into() },
        Pinned => ToSession::Pinned(protocol::session::PinnedNews::Files(vec![text("src/lib.rs")])),
        Servers => ToSession::Servers(protocol::mcp::ServerNews::Due(protocol::mcp::ServerStart {
            tool: text("mcp_server"),
            input: text("{}"),
        })),
        Model => ToSession::Model {
            name: "model-2".into(),
            max_tokens: 9,
            facts: facts(),
        },
        Ping => ToSession::Ping(u64::MAX),
        Joining => ToSession::Joining(JoiningWords::Wait),
    }
    pinned::PinnedNews {
        Files => protocol::session::PinnedNews::Files(vec![text("src/lib.rs")]),
        Stamps => protocol::session::PinnedNews::Stamps {
            check: 2,
            began: 1,
            stamps: vec![protocol::session::PinnedStamp {
                file: text("src/lib.rs"),
                stamp: protocol::session::FileStamp::Unknown,
            }],
        },
    }
    mcp::ServerNews {
        Due => protocol::mcp::ServerNews::Due(protocol::mcp::ServerStart {
            tool: text("mcp_server"),
            input: text("{}"),
        }),
        Tools => protocol::mcp::ServerNews::Tools {
            tools: setup().tools,
            hooks: setup().hooks.events,
        },
    }
    mcp::ToServer {
        Call => protocol::mcp::ToServer::Call {
            action: protocol::mcp::ServerAction::Tool,
            number: 1,
            tool: text("echo"),
            arguments: text("{}"),
            timeout_ms: 60_000,
            max_result_chars: 9,
        },
        Cancel => protocol::mcp::ToServer::Cancel(1),
        Reply => protocol::mcp::ToServer::Reply {
            ask: 2,
            reply: protocol::mcp::ServerReply::Accept(text("{}")),
        },
    }
    mcp::FromServer {
        Tools => protocol::mcp::FromServer::Tools(vec![protocol::mcp::ServerTool {
            name: text("echo"),
            description: text("Echoes."),
            input_schema: text("{}"),
            digest: text("00"),
        }]),
        Offers => protocol::mcp::FromServer::Offers(protocol::mcp::ServerOffers {
            resources: vec![protocol::mcp::ServerResource {
                uri: text("a://b"),
                description: text("B."),
            }],
            has_unlisted: true,
            prompts: vec![protocol::mcp::ServerPrompt {
                name: text("p"),
                description: text("P."),
                arguments: vec![protocol::mcp::PromptArgument {
                    name: text("a"),
                    is_optional: true,
                }],
            }],
            no_prompts: Some(text("late")),
        }),
        Progress => protocol::mcp::FromServer::Progress { number: 1, text: text("half") },
        Answer => protocol::mcp::FromServer::Answer { number: 1, report: Box::new(report()) },
        Asks => protocol::mcp::FromServer::Asks {
            number: 1,
            ask: 2,
            question: Box::new(server_question()),
        },
        Note => protocol::mcp::FromServer::Note(text("left out")),
        Unasked => protocol::mcp::FromServer::Unasked { number: 1, ask: 2 },
    }
    session::FromSession {
        Ready => FromSession::Ready,
        Commit => FromSession::Commit(protocol::session::SessionEvent::Called { call: call() }),
        Ask => FromSession::Ask(request()),
        StatPinned => FromSession::StatPinned { check: 2, files: vec![text("src/lib.rs")] },
        Run => FromSession::Run { call: call(), note: Some(text("n")), asked: Some(text("a")) },
        Answered => FromSession::Answered { call: call(), result: result(), asked: None },
        Notice => FromSession::Notice { text: text("n") },
        HooksEnded => FromSession::HooksEnded {
            event: protocol::hook::HookEvent::PermissionRequest,
            call: Some(7),
            refusal: Some(protocol::hook::HookRefusal { command: text("guard.sh"), reason: text("no") }),
        },
        NotCompacted => FromSession::NotCompacted { why: text("short") },
        Context => FromSession::Context(context_report()),
        CancelAsk => FromSession::CancelAsk,
        CancelCall => FromSession::CancelCall(call_id()),
        Pong => FromSession::Pong(7),
        Log => FromSession::Log(log()),
        Ahead => FromSession::Ahead { call: call() },
        TakeJoining => FromSession::TakeJoining,
    }
    provider::SourceSetup {
        Server => SourceSetup::Server(protocol::provider::ModelServer {
            api: protocol::provider::Api::Chat,
            base_url: text("http://127.0.0.1:1"),
            auth: protocol::provider::Auth::Bearer,
            headers: vec![(text("x-a"), text("b"))],
            effort: Some(protocol::provider::Effort::High),
        }),
        Replay => SourceSetup::Replay(protocol::provider::ReplaySpeed::Recorded),
    }
    provider::ReplaySpeed {
        Full => ReplaySpeed::Full,
        Recorded => ReplaySpeed::Recorded,
    }
    provider::Api {
        Anthropic => Api::Anthropic,
        Responses => Api::Responses,
        Chat => Api::Chat,
        Gemini => Api::Gemini,
    }
    provider::Auth {
        ApiKey => Auth::ApiKey,
        Bearer => Auth::Bearer,
        Keyless => Auth::Keyless,
    }
    provider::Effort {
        Low => Effort::Low,
        Medium => Effort::Medium,
        High => Effort::High,
    }
    provider::PassedFd {
        Key => PassedFd::Key,
        Replay => PassedFd::Replay,
        Record => PassedFd::Record,
        ServerVariable => protocol::provider::PassedFd::ServerVariable(text("TOKEN")),
        Credential => PassedFd::Credential(host_port()),
    }
    provider::ToProvider {
        Configure => ToProvider::Configure {
            source: protocol::provider::SourceSetup::Replay(protocol::provider::ReplaySpeed::Full),
            patience: patience(),
            proxy: Some(text("http://proxy")),
            papers: vec![protocol::provider::PassedFd::Key, protocol::provider::PassedFd::Record],
        },
        Ask => ToProvider::Ask(request()),
        Cancel => ToProvider::Cancel,
        Ping => ToProvider::Ping(1),
    }
    provider::AnswerDelta {
        Text => AnswerDelta::Text(text("a")),
        Thinking => AnswerDelta::Thinking(text("b")),
        ThinkingDone => AnswerDelta::ThinkingDone { raw: text("{}") },
        ToolStart => AnswerDelta::ToolStart { id: text("use_1"), name: text("bash") },
        ToolInput => AnswerDelta::ToolInput(text("{\"")),
        BlockDone => AnswerDelta::BlockDone,
    }
    provider::FromProvider {
        Ready => FromProvider::Ready,
        Delta => FromProvider::Delta {
            round: 1,
            index: 2,
            delta: protocol::provider::AnswerDelta::Text(text("a")),
        },
        Retrying => FromProvider::Retrying {
            round: 1,
            attempt: 2,
            of: 5,
            wait_ms: 1000,
            reason: text("529"),
        },
        Ended => FromProvider::Ended {
            round: 1,
            stop: protocol::content::StopReason::EndTurn,
            usage: usage(),
            model: text("model-1"),
        },
        Failed => FromProvider::Failed {
            round: 1,
            kind: protocol::provider::ProviderFailure::KeyRefused,
            message: text("401"),
        },
        Cancelled => FromProvider::Cancelled { round: 1 },
        Notice => FromProvider::Notice { text: text("thinking is left out") },
        Pong => FromProvider::Pong(1),
        Log => FromProvider::Log(log()),
    }
    provider::ProviderFailure {
        KeyRefused => ProviderFailure::KeyRefused,
        NoKey => ProviderFailure::NoKey,
        Unreachable => ProviderFailure::Unreachable,
        Rejected => ProviderFailure::Rejected,
        Overloaded => ProviderFailure::Overloaded,
        RecordingDeparted => ProviderFailure::RecordingDeparted,
        ContextFull => ProviderFailure::ContextFull,
        BadRequest => ProviderFailure::BadRequest,
    }
    store::ToStore {
        Begin => ToStore::Begin(store_setup()),
        Do => ToStore::Do(call()),
        BackUp => ToStore::BackUp {
            call: call_id(),
            tool: text("write"),
            paths: vec![text("/p/a")],
        },
        CallEnded => ToStore::CallEnded {
            call: call_id(),
            did: Some(protocol::store::FileChanges {
                effects: report().effects,
                left: report().seen,
            }),
        },
        PrepareSnapshot => ToStore::PrepareSnapshot,
        TakeSnapshot => ToStore::TakeSnapshot(command()),
        CommandEnded => ToStore::CommandEnded {
            command: command(),
            ended: 1_700_000_000_000_000_000,
            before: protocol::store::SnapshotBefore::Late,
        },
        RunningCommands => ToStore::RunningCommands(vec![7]),
        FetchBackups => ToStore::FetchBackups(call()),
        FetchChanges => ToStore::FetchChanges { since: 7 },
        CacheGet => ToStore::CacheGet(asked()),
        CachePut => ToStore::CachePut { asked: asked(), report: report() },
        Invalidate => ToStore::Invalidate(MayHaveChanged::Anything),
        Ping => ToStore::Ping(7),
        AskUndo => ToStore::AskUndo { call: call_id(), of: protocol::store::UndoScope::Project },
    }
    store::UndoScope {
        Paths => protocol::store::UndoScope::Paths(vec![text("/p/a")]),
        Project => protocol::store::UndoScope::Project,
    }
    store::UndoCover {
        Covers => protocol::store::UndoCover::Covers,
        Leaves => protocol::store::UndoCover::Leaves(text("too large")),
    }
    store::MayHaveChanged {
        Paths => MayHaveChanged::Paths(vec![text("/p/a")]),
        Anything => MayHaveChanged::Anything,
    }
    store::SnapshotBefore {
        Looked => protocol::store::SnapshotBefore::Looked,
        Late => protocol::store::SnapshotBefore::Late,
    }
    store::PriorContent {
        Absent => PriorContent::Absent,
        File => PriorContent::File { bytes: vec![1, 2], mode: 0o644 },
        Link => PriorContent::Link(path("/p/b")),
        NotKept => PriorContent::NotKept(text("larger than 256 KiB")),
    }
    store::FromStore {
        Ready => FromStore::Ready,
        Instructions => FromStore::Instructions {
            text: text("Use tabs."),
            notes: vec![text("AGENTS.md imports a.md")],
            tools: vec![text("ls")],
            without_undo: Some(text("a file system")),
        },
        Answered => FromStore::Answered { call: call_id(), result: result() },
        BackedUp => FromStore::BackedUp { call: call_id(), cover: protocol::store::UndoCover::Covers },
        ChangesRecorded => FromStore::ChangesRecorded(call_id()),
        ChangesFetched => FromStore::ChangesFetched { since: 7, changes: Ok(change_set()) },
        BackupsFetched => FromStore::BackupsFetched { call: call_id(), files: Ok(vec![kept_file()]) },
        CacheAnswer => FromStore::CacheAnswer {
            call: call_id(),
            found: Some(Box::new(CachedResult { probe: probe(), by: 3, report: report() })),
        },
        Pong => FromStore::Pong(7),
        Log => FromStore::Log(log()),
        UndoCovers => FromStore::UndoCovers { call: call_id(), cover: protocol::store::UndoCover::Covers },
    }
    broker::ToBroker {
        Rules => ToBroker::Rules { session: session_id(), rules: rules() },
        Judge => ToBroker::Judge(Box::new(case())),
        Answer => ToBroker::Answer {
            call: call_id(),
            digest: text("d"),
            answer: protocol::judgement::PersonAnswer::Once,
            by: text("pts/0"),
        },
        AskForServer => ToBroker::AskForServer {
            call: call_id(),
            ask: 2,
            question: Box::new(server_question()),
        },
        Forget => ToBroker::Forget(call_id()),
        Ping => ToBroker::Ping(1),
        EndSession => ToBroker::EndSession(session_id()),
        JudgeAhead => ToBroker::JudgeAhead(Box::new(case())),
    }
    broker::FromBroker {
        Ready => FromBroker::Ready { cage: protocol::confinement::Tier::B },
        Verdict => FromBroker::Verdict {
            call: call_id(),
            verdict: protocol::judgement::Verdict::Ask(question()),
        },
        Rejected => FromBroker::Rejected { call: call_id(), reason: text("late") },
        Replied => FromBroker::Replied {
            call: call_id(),
            reply: protocol::mcp::ServerReply::Decline,
            by: Some(text("pts/0")),
            note: None,
        },
        Pong => FromBroker::Pong(1),
        Log => FromBroker::Log(log()),
        Ahead => FromBroker::Ahead {
            call: call_id(),
            verdict: protocol::judgement::Verdict::Allow(protocol::judgement::Basis::Query),
        },
    }
    tool::RunnerJob {
        Probe => RunnerJob::Probe { tool: text("edit"), input: text("{}") },
        ProbeRestore => RunnerJob::ProbeRestore(vec![kept_file()]),
        Restore => RunnerJob::Restore {
            files: vec![kept_file()],
            judged: Vec::new(),
            max_result_chars: 30_000,
            denied_reads: rules(),
        },
        Run => RunnerJob::Run {
            tool: text("bash"),
            input: text("{}"),
            judged: vec![JudgedPath { real: text("/p/f"), digest: Some(text("d")) }],
            env: vec![(text("PATH"), text("/bin"))],
            timeout_ms: 120_000,
            max_result_chars: 30_000,
            denied_reads: rules(),
        },
        Web => RunnerJob::Web {
            tool: text("web_fetch"),
            input: text("{}"),
            settings: WebSettings {
                search_url: text("https://example.org/"),
                private: PrivateNetworks::Refused,
            },
            onward: RedirectScope { rules: rules(), host: HostRight::ByRule },
            max_result_chars: 30_000,
        },
        Proxy => RunnerJob::Proxy {
            doors: 3,
            hosts: vec![host()],
            denied: vec![host()],
            private: vec![host()],
            sign_in: Some(protocol::tool::SignIn {
                identity: identity(),
                accounts: vec![protocol::tool::SignInAccount {
                    host: host_port(),
                    user: Some(text("ann")),
                }],
            }),
        },
        Certify => RunnerJob::Certify(vec![host_port()]),
    }
    web::HostRight {
        Given => HostRight::Given,
        ByRule => HostRight::ByRule,
    }
    web::PrivateNetworks {
        Refused => PrivateNetworks::Refused,
        Reached => PrivateNetworks::Reached,
    }
    tool::ToTool {
        Handover => ToTool::Handover(Handover::SessionLock),
        Begin => ToTool::Begin(Box::new(CageOrder::Confine(confinement()))),
        Renew => ToTool::Renew,
        Go => ToTool::Go(protocol::tool::RunnerJob::Probe { tool: text("t"), input: text("{}") }),
        Cancel => ToTool::Cancel,
        Call => ToTool::Call(ToCall::Background),
        Ping => ToTool::Ping(7),
    }
    tool::Handover {
        SessionLock => Handover::SessionLock,
        Protected => Handover::Protected,
        Overlays => Handover::Overlays,
        Mounted => Handover::Mounted,
        Join => Handover::Join(protocol::tool::NamespaceKind::User),
        Sign => Handover::Sign(vec![protocol::tool::SigningKey {
            blob: vec![0, 255],
            comment: text("ann"),
        }]),
    }
    tool::CageOrder {
        Confine => CageOrder::Confine(confinement()),
        Reserve => CageOrder::Reserve(confinement()),
        Repair => CageOrder::Repair(confinement()),
    }
    tool::ToCall {
        Background => ToCall::Background,
        Input => ToCall::Input { text: text("yes"), then: protocol::tool::AfterInput::Close },
        Server => ToCall::Server(protocol::mcp::ToServer::Cancel(1)),
        Protected => ToCall::Protected(protocol::tool::ProtectedOrder::Look),
    }
    tool::AfterInput {
        KeepOpen => protocol::tool::AfterInput::KeepOpen,
        Close => protocol::tool::AfterInput::Close,
    }
    tool::ProtectedOrder {
        Look => protocol::tool::ProtectedOrder::Look,
        OtherCall => protocol::tool::ProtectedOrder::OtherCall {
            call: 7,
            git: protocol::confinement::GitSettings::Writable,
        },
    }
    tool::NamespaceKind {
        User => protocol::tool::NamespaceKind::User,
        Network => protocol::tool::NamespaceKind::Network,
    }
    tool::OutputStream {
        Out => OutputStream::Out,
        Err => OutputStream::Err,
    }
    tool::FromTool {
        Log => FromTool::Log(log()),
        Pong => FromTool::Pong(7),
        Cage => FromTool::Cage(FromCage::Mounted),
        Call => FromTool::Call(FromCall::Began),
        Probed => FromTool::Probed(Ok(probe())),
        Proxied => FromTool::Proxied { connections: vec![connection()], uncounted: 3 },
        Repaired => FromTool::Repaired(Err(text("damaged"))),
        Certified => FromTool::Certified(Ok(protocol::tool::CertifiedSession {
            authority: text("PEM"),
            identity: identity(),
        })),
    }
    tool::FromCage {
        Keeper => FromCage::Keeper(protocol::tool::Keeper {
            pid: 9,
            kind: protocol::tool::KeeperKind::Guard,
            command: 8,
        }),
        Mounted => FromCage::Mounted,
        ProxyListener => FromCage::ProxyListener,
        Resting => FromCage::Resting {
            tier: protocol::confinement::Tier::A,
            opened: text("a 1:2"),
        },
        Caged => FromCage::Caged(enforced()),
        Uncaged => FromCage::Uncaged { step: text("landlock"), reason: text("off") },
        Lost => FromCage::Lost(text("killed")),
    }
    tool::FromCall {
        Began => FromCall::Began,
        Output => FromCall::Output { stream: protocol::tool::OutputStream::Err, text: text("o") },
        Namespace => FromCall::Namespace(protocol::tool::NamespaceKind::Network),
        InBackground => FromCall::InBackground,
        InputTaken => FromCall::InputTaken(Err(text("closed"))),
        Server => FromCall::Server(protocol::mcp::FromServer::Tools(Vec::new())),
        PutRight => FromCall::PutRight(Vec::new()),
        Done => FromCall::Done(Box::new(report())),
    }
    tool::KeeperKind {
        FirstProcess => KeeperKind::FirstProcess,
        Guard => KeeperKind::Guard,
    }
    client::ClientRights {
        Full => ClientRights::Full,
        ReadOnly => ClientRights::ReadOnly,
    }
    client::Unsandboxed {
        Refused => Unsandboxed::Refused,
        Accepted => Unsandboxed::Accepted,
    }
    client::ProjectTrust {
        AsRecorded => ProjectTrust::AsRecorded,
        ThisRun => ProjectTrust::ThisRun,
    }
    client::SessionStart {
        New => SessionStart::New,
        Resume => SessionStart::Resume {
            session: session_id(),
            open_turn: protocol::session::OpenTurn::GoesOn,
        },
        Fork => SessionStart::Fork { of: session_id(), at: Some(9) },
        Seat => SessionStart::Seat { session: session_id() },
    }
    client::BacklogFrom {
        Seq => BacklogFrom::Seq(300),
        Newest => BacklogFrom::Newest(7),
    }
    client::PromptUse {
        Prompt => protocol::client::PromptUse::Prompt,
        Command => protocol::client::PromptUse::Command,
        Joined => protocol::client::PromptUse::Joined,
    }
    client::WhileBusy {
        Queue => WhileBusy::Queue,
        Steer => WhileBusy::Steer,
    }
    session::ConversationSetting {
        Bounds => ConversationSetting::Bounds(session_bounds()),
        Mode => ConversationSetting::Mode(protocol::judgement::PermissionMode::Plan),
    }
    session::JoiningWords {
        Wait => JoiningWords::Wait,
        Taken => JoiningWords::Taken(vec![text("only three")]),
    }
    client::OtherClients {
        Stay => OtherClients::Stay,
        Detach => OtherClients::Detach,
    }
    client::SettingChange {
        Network => SettingChange::Network(protocol::confinement::Network::On),
        Host => SettingChange::Host(host()),
        Mode => SettingChange::Mode(protocol::judgement::PermissionMode::Auto),
        AddDirectory => SettingChange::AddDirectory(path("/d")),
        Model => SettingChange::Model(text("model-2")),
        Pin => SettingChange::Pin(text("src/lib.rs")),
        Unpin => SettingChange::Unpin(text("src/lib.rs")),
        CostLimit => SettingChange::CostLimit(2_000_000),
        AppendedSystem => SettingChange::AppendedSystem(text("Be brief.")),
        Flag => SettingChange::Flag(text("plugins.dirs"), text("/d")),
        Name => SettingChange::Name(text("the release")),
    }
    client::SessionEnding {
        Stop => SessionEnding::Stop,
        Kill => SessionEnding::Kill,
    }
    client::OnUnfinished {
        Refuse => OnUnfinished::Refuse,
        Interrupt => OnUnfinished::Interrupt,
    }
    client::DetachReason {
        TakenOver => DetachReason::TakenOver,
        Ended => DetachReason::Ended,
        Failed => DetachReason::Failed,
    }
    client::SessionStatus {
        Ended => SessionStatus::Ended,
        Idle => SessionStatus::Idle,
        Background => SessionStatus::Background(2),
        Working => SessionStatus::Working,
        Asking => SessionStatus::Asking(2),
        Degraded => SessionStatus::Degraded(text("disk full")),
        Unreadable => SessionStatus::Unreadable(text("damaged")),
        CutShort => SessionStatus::CutShort(text("signal 9")),
        IdleCutShort => SessionStatus::IdleCutShort(text("signal 9")),
    }
    client::SessionCost {
        Unknown => protocol::client::SessionCost::Unknown,
        Whole => protocol::client::SessionCost::Whole(270_000),
        AtLeast => protocol::client::SessionCost::AtLeast(300),
    }
    client::SessionQuery {
        Changes => protocol::client::SessionQuery::Changes { since: 7 },
        Context => protocol::client::SessionQuery::Context,
        Servers => protocol::client::SessionQuery::Servers,
    }
    client::SessionWish {
        Compact => protocol::client::SessionWish::Compact { focus: text("tests") },
        EditSummary => protocol::client::SessionWish::EditSummary(summary()),
        Background => protocol::client::SessionWish::Background,
        OpenPort => protocol::client::SessionWish::OpenPort { port: 8765, call: Some(3) },
        StopCall => protocol::client::SessionWish::StopCall { call: 3 },
        Run => protocol::client::SessionWish::Run { command: text("ls") },
    }
    client::FromClient {
        Hello => FromClient::Hello { token: text("token"), build: text("0.1.0-0") },
        Open => FromClient::Open(opening()),
        Attach => FromClient::Attach {
            session: session_id(),
            from: protocol::client::BacklogFrom::Newest(300),
            rights: protocol::client::ClientRights::ReadOnly,
            others: protocol::client::OtherClients::Detach,
        },
        Detach => FromClient::Detach { session: session_id() },
        Page => FromClient::Page { session: session_id(), before: 300, most: 7 },
        Query => FromClient::Query {
            session: session_id(),
            query: protocol::client::SessionQuery::Context,
        },
        Prompt => FromClient::Prompt {
            session: session_id(),
            text: text("p"),
            form: Some(protocol::client::AnswerForm { words: text("f"), schema: text("{}") }),
            busy: WhileBusy::Steer,
        },
        Answer => FromClient::Answer {
            call: call_id(),
            digest: text("d"),
            answer: protocol::judgement::PersonAnswer::Deny(text("no")),
        },
        Interrupt => FromClient::Interrupt { session: session_id() },
        Wish => FromClient::Wish {
            session: session_id(),
            wish: protocol::client::SessionWish::Background,
        },
        TakeBack => FromClient::TakeBack { session: session_id(), only: Some(text("go on")) },
        Change => FromClient::Change {
            session: session_id(),
            change: protocol::client::SettingChange::Network(protocol::confinement::Network::On),
        },
        List => FromClient::List,
        End => FromClient::End {
            session: session_id(),
            ending: protocol::client::SessionEnding::Kill,
        },
        Remove => FromClient::Remove { session: session_id() },
        Restart => FromClient::Restart { session: session_id() },
        Ps => FromClient::Ps,
        Ping => FromClient::Ping(7),
        Status => FromClient::Status,
        Shutdown => FromClient::Shutdown { unfinished: protocol::client::OnUnfinished::Interrupt },
    }
    client::AnswerPart {
        Text => protocol::client::AnswerPart::Text,
        Thinking => protocol::client::AnswerPart::Thinking,
        Tool => protocol::client::AnswerPart::Tool,
        Arguments => protocol::client::AnswerPart::Arguments,
    }
    client::ClientEvent {
        Prompt => ClientEvent::Prompt { text: text("p"), of: protocol::client::PromptUse::Command },
        Delta => ClientEvent::Delta { part: protocol::client::AnswerPart::Thinking, text: text("d") },
        Struck => ClientEvent::Struck {
            reason: text("busy"),
            next: Some(protocol::client::NextTry { attempt: 2, of: 5, wait_ms: 500 }),
        },
        Answer => ClientEvent::Answer { blocks: blocks(), usage: usage() },
        Proposed => ClientEvent::Proposed { call: call() },
        Asked => ClientEvent::Asked { question: question() },
        Decided => ClientEvent::Decided { call: call_id(), allowed: true, basis: text("a rule") },
        Started => ClientEvent::Started { call: call_id(), enforced: enforced() },
        Output => ClientEvent::Output { call: call_id(), text: text("o"), begun: Some(Box::new(call())) },
        CallEnded => ClientEvent::CallEnded {
            call: call_id(),
            result: result(),
            refused: vec![text("socket")],
            spent: Some(Box::new(protocol::session::TaskSpent {
                session: session_id(),
                rounds: 2,
                calls: 1,
                usage: usage(),
                cost: Some(3),
            })),
        },
        TurnEnded => ClientEvent::TurnEnded { end: protocol::session::TurnEnd::Truncated },
        Compacted => ClientEvent::Compacted(compaction()),
        Model => ClientEvent::Model {
            name: text("m"),
            facts: protocol::client::ModelFacts::default(),
            models: vec![protocol::client::KnownModel { name: text("m2"), facts: facts() }],
        },
        InBackground => ClientEvent::InBackground { call: call_id(), text: text("runs") },
        Notice => ClientEvent::Notice { text: text("thinking is left out") },
        Queue => ClientEvent::Queue {
            waiting: vec![WaitingText { text: text("next"), busy: WhileBusy::Steer }],
        },
        Changed => ClientEvent::Changed {
            change: protocol::client::SettingChange::Mode(protocol::judgement::PermissionMode::Plan),
            by: text("terminal 1"),
        },
        Learned => ClientEvent::Learned {
            rule: protocol::judgement::Rule {
                effect: protocol::judgement::RuleEffect::Allow,
                text: text("bash:cargo *"),
                file: text("this session"),
                line: 0,
            },
            by: text("terminal 1"),
            unwritten: Some(text("no space left")),
        },
        AnswerRejected => ClientEvent::AnswerRejected { call: call_id(), reason: text("late") },
        Degraded => ClientEvent::Degraded { reason: text("disk full") },
    }
    client::RequestFailure {
        Usage => RequestFailure::Usage,
        Configuration => RequestFailure::Configuration,
        SandboxUnavailable => RequestFailure::SandboxUnavailable,
        Held => RequestFailure::Held,
        NotFound => RequestFailure::NotFound,
        Disk => RequestFailure::Disk,
        Ending => RequestFailure::Ending,
        NoRoom => RequestFailure::NoRoom,
        Internal => RequestFailure::Internal,
    }
    fleet::ToFleet {
        Sit => ToFleet::Sit { session: session_id(), token: text("secret") },
        Append => ToFleet::Append { first: 300, lines: vec![text("{}")] },
    }
    fleet::FromFleet {
        Seated => FromFleet::Seated { last_seq: 300, lease: lease_clock() },
        Durable => FromFleet::Durable(300),
        Renewed => FromFleet::Renewed(lease_clock()),
        Lost => FromFleet::Lost(text("gone")),
    }
    client::ToClient {
        NetworkClosed => ToClient::NetworkClosed { call: 3 },
        NetworkOpened => ToClient::NetworkOpened {
            call: 3,
            others: vec![2],
            namespaces: vec![protocol::tool::NamespaceKind::User, protocol::tool::NamespaceKind::Network],
        },
        Welcome => ToClient::Welcome { build: text("0.1.0-0"), pid: 70_000 },
        Refused => ToClient::Refused { build: text("0.1.0-0"), reason: text("token") },
        Opened => ToClient::Opened {
            session: session_id(),
            name: text("the release"),
            model: text("model-1"),
            facts: facts(),
            tools: vec![text("read"), text("bash")],
            mode: protocol::judgement::PermissionMode::Plan,
            network: protocol::confinement::Network::On,
            hosts: vec![host()],
            sandbox: text("tier A"),
            last_seq: 9,
            warnings: vec![text("w")],
            temp: path("/tmp/s/tmp"),
        },
        Attached => ToClient::Attached { session: session_id(), name: text("terminal 1") },
        Detached => ToClient::Detached {
            session: session_id(),
            parting: protocol::client::DetachReason::Ended,
            reason: text("r"),
        },
        Behind => ToClient::Behind { session: session_id() },
        Page => ToClient::Page {
            session: session_id(),
            events: vec![protocol::client::NumberedEvent {
                seq: 7,
                event: protocol::client::ClientEvent::Delta { part: protocol::client::AnswerPart::Text, text: text("d") },
            }],
        },
        Changes => ToClient::Changes { session: session_id(), changes: Ok(change_set()) },
        Context => ToClient::Context { session: session_id(), report: Ok(context_report()) },
        Servers => ToClient::Servers {
            session: session_id(),
            servers: vec![protocol::mcp::ServerReport {
                name: text("docs"),
                place: text("npx docs"),
                sandbox: Some(text("writes nothing")),
                state: protocol::mcp::ServerState::Ready { after_ms: 7 },
                tools: vec![protocol::mcp::ServedTool {
                    name: text("mcp__docs__find"),
                    description: text("Finds."),
                    marked: Some(text("bash")),
                }],
                words: vec![protocol::mcp::PromptWords {
                    text: text("@docs:a://b"),
                    arguments: text("x"),
                    description: text("B."),
                }],
            }],
        },
        TakenBack => ToClient::TakenBack { session: session_id(), texts: vec![text("t")] },
        Sessions => ToClient::Sessions(vec![session_row()]),
        Status => ToClient::Status(status()),
        Done => ToClient::Done,
        Event => ToClient::Event {
            session: session_id(),
            seq: 300,
            event: protocol::client::ClientEvent::Delta { part: protocol::client::AnswerPart::Text, text: text("d") },
        },
        Pong => ToClient::Pong(7),
        Processes => ToClient::Processes(vec![process()]),
        Failed => ToClient::Failed {
            kind: protocol::client::RequestFailure::Held,
            message: text("held"),
        },
    }
    judgement::Ask {
        Call => Ask::Call {
            rules: vec![text("bash:ls *")],
            modes: vec![protocol::judgement::PermissionMode::Sandboxed],
        },
        Plan => Ask::Plan { modes: vec![protocol::judgement::PermissionMode::Ask] },
        Form => Ask::Form { lines: vec![text("name =")] },
        Visit => Ask::Visit,
        Choose => Ask::Choose {
            questions: vec![protocol::judgement::AskedQuestion {
                header: text("store"),
                text: text("Which store?"),
                picks: protocol::judgement::Picks::One,
                options: vec![protocol::judgement::AskedOption {
                    label: text("SQLite"),
                    description: text("a file"),
                }],
            }],
        },
    }
    judgement::Picks {
        One => protocol::judgement::Picks::One,
        Several => protocol::judgement::Picks::Several,
    }
    call::CallOrigin {
        Model => origin(),
        EventHook => CallOrigin::EventHook,
        EditHook => CallOrigin::EditHook,
        ServerStart => CallOrigin::ServerStart,
        PromptPart => CallOrigin::PromptPart,
        Undo => CallOrigin::Undo,
        PinnedRead => CallOrigin::PinnedRead,
        Person => CallOrigin::Person,
    }
    call::CallStage {
        Ended => CallStage::Ended,
        InBackground => CallStage::InBackground,
    }
    call::Outcome {
        Done => Outcome::Done,
        Failed => Outcome::Failed,
        Exited => Outcome::Exited { code: 255 },
        Signalled => Outcome::Signalled { signal: 31 },
        TimedOut => Outcome::TimedOut,
        Denied => Outcome::Denied,
        Refused => Outcome::Refused { rule: text("bash:rm *") },
        Confined => Outcome::Confined { what: text("landlock") },
        OutOfMemory => Outcome::OutOfMemory,
        Crashed => Outcome::Crashed,
        Interrupted => Outcome::Interrupted,
        Invalid => Outcome::Invalid,
        NeverStarted => Outcome::NeverStarted,
    }
    call::FileEffect {
        Read => FileEffect::Read(text("/p/a")),
        Written => FileEffect::Written(text("/p/a")),
        Created => FileEffect::Created(text("/p/a")),
        Deleted => FileEffect::Deleted(text("/p/a")),
        Ran => FileEffect::Ran(text("ls")),
        Signed => FileEffect::Signed { key: text("SHA256:k"), count: 2 },
    }
    mcp::ServerFault {
        WantsLogIn => protocol::mcp::ServerFault::WantsLogIn(text("log in")),
        Other => protocol::mcp::ServerFault::Other(text("it died")),
    }
    mcp::ServerState {
        Starts => protocol::mcp::ServerState::Starts,
        Ready => protocol::mcp::ServerState::Ready { after_ms: 7 },
        Ended => protocol::mcp::ServerState::Ended(text("it died")),
    }
    confinement::Profile {
        Probe => Profile::Probe,
        Query => Profile::Query,
        Mutate => Profile::Mutate,
        Command => Profile::Command,
        Session => Profile::Session,
        Broker => Profile::Broker,
        Provider => Profile::Provider,
        Store => Profile::Store,
        Web => Profile::Web,
        Verify => Profile::Verify,
        Format => Profile::Format,
        Git => Profile::Git,
        GitLook => Profile::GitLook,
        Hook => Profile::Hook,
        GuardHook => Profile::GuardHook,
        Mcp => Profile::Mcp,
        McpWrite => Profile::McpWrite,
        McpRemote => Profile::McpRemote,
        Document => Profile::Document,
    }
    hook::HookEvent {
        PreToolUse => protocol::hook::HookEvent::PreToolUse,
        PostToolUse => protocol::hook::HookEvent::PostToolUse,
        PostToolUseFailure => protocol::hook::HookEvent::PostToolUseFailure,
        PermissionRequest => protocol::hook::HookEvent::PermissionRequest,
        UserPromptSubmit => protocol::hook::HookEvent::UserPromptSubmit,
        SessionStart => protocol::hook::HookEvent::SessionStart,
        SessionEnd => protocol::hook::HookEvent::SessionEnd,
        Stop => protocol::hook::HookEvent::Stop,
        SubagentStop => protocol::hook::HookEvent::SubagentStop,
        PreCompact => protocol::hook::HookEvent::PreCompact,
        Notification => protocol::hook::HookEvent::Notification,
    }
    confinement::Network {
        Off => Network::Off,
        On => Network::On,
        Listed => Network::Listed,
    }
    confinement::ConnectionOutcome {
        Made => ConnectionOutcome::Made(text("192.0.2.1:443")),
        Failed => ConnectionOutcome::Failed(text("timed out")),
        Refused => ConnectionOutcome::Refused(text("private")),
        SignedIn => ConnectionOutcome::SignedIn(text("192.0.2.1:443")),
    }
    confinement::GitSettings {
        Kept => GitSettings::Kept,
        Writable => GitSettings::Writable,
        DirectoryKept => GitSettings::DirectoryKept,
    }
    confinement::Tier {
        C => Tier::C,
        B => Tier::B,
        A => Tier::A,
    }
    confinement::Level {
        Required => Level::Required,
        BestEffort => Level::BestEffort,
        Uncaged => Level::Uncaged,
    }
    confinement::RefusalKind {
        Refused => RefusalKind::Refused,
        Predicted => RefusalKind::Predicted,
    }
    confinement::Subject {
        Path => Subject::Path { path: text("/p/a"), act: PathAct::Write },
        Program => Subject::Program { path: text("/bin/sh"), script: Some(text("/p/a")) },
        Start => Subject::Start { path: Some(text("/bin/sh")) },
        Address => Subject::Address(std::net::SocketAddr::from(([192, 0, 2, 1], 443))),
        HostAddress => Subject::HostAddress(std::net::SocketAddr::from(([127, 0, 0, 1], 80))),
        UnixSocket => Subject::UnixSocket(text("/run/a")),
        AbstractSocket => Subject::AbstractSocket(text("a")),
        UnnamedSocket => Subject::UnnamedSocket,
        OtherAddress => Subject::OtherAddress,
        Socket => Subject::Socket(SocketSpec { family: 2, kind: 1, protocol: 0 }),
        SocketPair => Subject::SocketPair(SocketSpec { family: 1, kind: 2, protocol: 0 }),
        Signal => Subject::Signal { signal: 9, pid: 7 },
        Process => Subject::Process { act: ProcessAct::Trace, pid: 7 },
        Namespaces => Subject::Namespaces(vec![text("user")]),
        Request => Subject::Request(7),
        Personality => Subject::Personality(7),
        Operation => Subject::Operation { what: text("mounting"), path: Some(text("/p/a")) },
        HiddenMemory => Subject::HiddenMemory,
        Text => Subject::Text(text("words")),
    }
    confinement::PathAct {
        Write => PathAct::Write,
        Make => PathAct::Make,
        Remove => PathAct::Remove,
        Replace => PathAct::Replace,
        Link => PathAct::Link,
        Mode => PathAct::Mode,
        Owner => PathAct::Owner,
        Times => PathAct::Times,
        Length => PathAct::Length,
        Attributes => PathAct::Attributes,
        Busy => PathAct::Busy,
    }
    confinement::ProcessAct {
        Trace => ProcessAct::Trace,
        Memory => ProcessAct::Memory,
        Descriptor => ProcessAct::Descriptor,
        Limits => ProcessAct::Limits,
        Setting => ProcessAct::Setting(text("the priority")),
    }
    call::TamperRemedy {
        Restored => TamperRemedy::Restored { kept: Some(text(".envrc.quarantined")) },
        Quarantined => TamperRemedy::Quarantined { kept: text(".envrc.quarantined") },
        Left => TamperRemedy::Left { why: text("too large") },
        Granted => TamperRemedy::Granted,
        Stays => TamperRemedy::Stays { why: text("npm runs it") },
    }
    content::ToolChoice {
        Yes => protocol::content::ToolChoice::Yes,
        No => protocol::content::ToolChoice::No,
    }
    content::MessageRole {
        User => MessageRole::User,
        Assistant => MessageRole::Assistant,
    }
    content::ContentBlock {
        Text => ContentBlock::Text { text: text("t") },
        Thinking => ContentBlock::Thinking { text: text("t"), raw: text("{}") },
        ToolUse => ContentBlock::ToolUse { id: text("use_1"), name: text("ls"), input: text("{}") },
        ToolResult => ContentBlock::ToolResult { id: text("use_1"), text: text("t"), is_error: true, images: vec![image()] },
        Image => ContentBlock::Image { image: image() },
    }
    content::MediaType {
        Png => MediaType::Png,
        Jpeg => MediaType::Jpeg,
        Pdf => MediaType::Pdf,
    }
    content::UpdatePosition {
        BehindResults => UpdatePosition::BehindResults,
        InsideLastResult => UpdatePosition::InsideLastResult,
    }
    content::StopReason {
        EndTurn => StopReason::EndTurn,
        ToolUse => StopReason::ToolUse,
        MaxTokens => StopReason::MaxTokens,
        StopSequence => StopReason::StopSequence,
        PauseTurn => StopReason::PauseTurn,
        Refusal => StopReason::Refusal { explanation: text("no") },
        ContextFull => StopReason::ContextFull,
        Other => StopReason::Other(text("new")),
    }
    judgement::Bounded {
        Files => protocol::judgement::Bounded::Files,
        Command => protocol::judgement::Bounded::Command,
    }
    judgement::ToolKind {
        Query => ToolKind::Query,
        Mutation => ToolKind::Mutation,
    }
    judgement::PermissionMode {
        Ask => PermissionMode::Ask,
        AcceptEdits => PermissionMode::AcceptEdits,
        Plan => PermissionMode::Plan,
        Auto => PermissionMode::Auto,
        DontAsk => PermissionMode::DontAsk,
        Sandboxed => PermissionMode::Sandboxed,
    }
    judgement::RuleEffect {
        Deny => RuleEffect::Deny,
        Ask => RuleEffect::Ask,
        Allow => RuleEffect::Allow,
    }
    judgement::Audience {
        Person => Audience::Person,
        NonInteractive => Audience::NonInteractive,
    }
    judgement::EffectReach {
        Unknown => EffectReach::Unknown,
        Undoable => EffectReach::Undoable,
        Beyond => EffectReach::Beyond(vec![Effect::Network]),
        InSandbox => EffectReach::InSandbox,
    }
    judgement::Effect {
        WeakerSandbox => Effect::WeakerSandbox(protocol::confinement::Tier::B),
        Network => Effect::Network,
        Hosts => Effect::Hosts(vec![host()]),
        Outside => Effect::Outside(vec![path("/srv")]),
        GitDirectory => Effect::GitDirectory,
        Background => Effect::Background,
        Input => Effect::Input,
        ServerTool => Effect::ServerTool(text("mcp__s__t")),
        NotUndone => Effect::NotUndone(text("too large")),
    }
    judgement::Basis {
        Rule => Basis::Rule(rule()),
        Rights => Basis::Rights(vec![rule()]),
        Mode => Basis::Mode(protocol::judgement::PermissionMode::Auto),
        Query => Basis::Query,
        Person => Basis::Person(text("pts/0")),
        NobodyToAsk => Basis::NobodyToAsk(text("mode ask")),
        Unjudgeable => Basis::Unjudgeable(text("a pipe")),
        Opaque => Basis::Opaque(protocol::judgement::PermissionMode::Auto),
        NotedByPerson => Basis::NotedByPerson { by: text("pts/0"), note: text("keep the docs") },
        Sandboxed => Basis::Sandboxed(protocol::judgement::Bounded::Command),
        Typed => Basis::Typed(text("pts/0")),
        Answered => Basis::Answered { by: text("pts/0"), answers: text("Which store? SQLite") },
    }
    judgement::Verdict {
        Allow => Verdict::Allow(protocol::judgement::Basis::Query),
        Deny => Verdict::Deny(protocol::judgement::Basis::Query, text("no")),
        Ask => Verdict::Ask(question()),
    }
    judgement::PersonAnswer {
        Once => PersonAnswer::Once,
        Session => PersonAnswer::Session(text("bash:ls *")),
        Always => PersonAnswer::Always(text("bash:ls *")),
        Mode => PersonAnswer::Mode(protocol::judgement::PermissionMode::Ask),
        Deny => PersonAnswer::Deny(text("no")),
        Form => PersonAnswer::Form(text("name = x")),
        Stop => PersonAnswer::Stop,
        Everywhere => PersonAnswer::Everywhere(text("bash:ls *")),
        Noted => PersonAnswer::Noted(protocol::judgement::Consent::Once, text("keep the docs")),
        Chosen => PersonAnswer::Chosen(vec![protocol::judgement::ChosenAnswer {
            labels: vec![text("SQLite")],
            words: text("in memory"),
        }]),
    }
    judgement::Consent {
        Once => protocol::judgement::Consent::Once,
        Session => protocol::judgement::Consent::Session(text("bash:ls *")),
        Always => protocol::judgement::Consent::Always(text("bash:ls *")),
        Everywhere => protocol::judgement::Consent::Everywhere(text("bash:ls *")),
        Mode => protocol::judgement::Consent::Mode(protocol::judgement::PermissionMode::Ask),
    }
    mcp::ServerAction {
        Tool => protocol::mcp::ServerAction::Tool,
        Resource => protocol::mcp::ServerAction::Resource,
        Prompt => protocol::mcp::ServerAction::Prompt,
    }
    mcp::ServerWants {
        Form => protocol::mcp::ServerWants::Form(text("{}")),
        Visit => protocol::mcp::ServerWants::Visit(text("https://a.example/")),
    }
    mcp::ServerReply {
        Accept => protocol::mcp::ServerReply::Accept(text("{}")),
        Decline => protocol::mcp::ServerReply::Decline,
        Cancel => protocol::mcp::ServerReply::Cancel,
    }
    judgement::ExtraRight {
        Network => ExtraRight::Network,
        Hosts => ExtraRight::Hosts(vec![host()]),
        Directory => ExtraRight::Directory(path("/d")),
        GitAdmin => ExtraRight::GitAdmin,
        GitSign => ExtraRight::GitSign,
    }
    log::LogLevel {
        Error => LogLevel::Error,
        Warn => LogLevel::Warn,
        Info => LogLevel::Info,
        Debug => LogLevel::Debug,
    }
}

fn deaths() -> WorkerDeaths {
    WorkerDeaths {
        process: text("agentd-session"),
        cause: text("was ended by signal 9"),
        count: 3,
        place: text("in turn 1"),
    }
}

fn server_question() -> protocol::mcp::ServerQuestion {
    protocol::mcp::ServerQuestion {
        server: text("tracker"),
        message: text("Which?"),
        wants: protocol::mcp::ServerWants::Form(text("{}")),
    }
}

fn session_bounds() -> SessionBounds {
    SessionBounds { tasks: 4, used: TaskUse { calls: 7, cost: None }, ..SessionBounds::default() }
}

fn text(words: &str) -> String {
    words.to_owned()
}

fn path(path: &str) -> FilePath {
    FilePath::from(path)
}

fn session_id() -> SessionId {
    SessionId(text("0123456789ab"))
}

fn call_id() -> CallId {
    CallId { session: session_id(), number: 7 }
}

fn origin() -> CallOrigin {
    CallOrigin::model("use_1")
}

fn call() -> Call {
    Call { id: call_id(), origin: origin(), tool: text("bash"), input: text("{}") }
}

fn blocks() -> Vec<protocol::content::ContentBlock> {
    vec![protocol::content::ContentBlock::Text { text: text("t") }]
}

fn usage() -> Usage {
    Usage { input: Some(1), output: Some(300), cache_read: Some(70_000), cache_write: None }
}

fn result() -> ToolResult {
    ToolResult {
        outcome: protocol::call::Outcome::Exited { code: 1 },
        text: text("out"),
        summary: text("exit 1"),
        is_error: true,
        code: Some(text("exit")),
        images: vec![image()],
    }
}

fn image() -> ImageRef {
    ImageRef {
        digest: text("ab"),
        name: text("shot.png"),
        media: MediaType::Png,
        width: 1200,
        height: 800,
        bytes: 3,
    }
}

fn image_file() -> ImageFile {
    ImageFile { image: image(), data: vec![1, 2, 3] }
}

fn context_report() -> ContextReport {
    let part = |kind| ContextPart { kind, count: 3, tokens: 300 };
    ContextReport {
        model: text("m"),
        window: Some(200_000),
        parts: ContextKind::ALL.map(part).to_vec(),
        counted: Some(2_000),
        estimated: 400,
        answer: 32_000,
        summary: Some(summary()),
        unread: vec![text("a.md")],
    }
}

fn summary() -> NumberedSummary {
    NumberedSummary { number: 2, text: text("so far") }
}

fn compaction() -> Compaction {
    Compaction::Summary(SummaryStep::Asked {
        dropped: 4,
        prompt_bytes: 60_000,
        focus: text("tests"),
        cause: CompactionCause::Person,
    })
}

fn tool_spec() -> ToolSpec {
    ToolSpec { name: text("ls"), description: text("Lists."), input_schema: text("{}") }
}

fn setup() -> SessionSetup {
    SessionSetup {
        id: session_id(),
        project: text("/p"),
        model: text("model-1"),
        system: text("system"),
        tools: vec![OfferedTool {
            spec: tool_spec(),
            kind: protocol::judgement::ToolKind::Query,
            copies: protocol::session::CopyBeforeChange::Kept,
            aliases: vec![text("list")],
            listing: protocol::session::ToolListing::Searched { words: text("entries") },
        }],
        max_rounds: 25,
        max_calls: 100,
        max_session: protocol::session::SessionBounds {
            calls: Some(1000),
            cost: Some(2_000_000),
            tasks: 4,
            used: protocol::session::TaskUse { calls: 7, cost: Some(9) },
        },
        max_tokens: 32_000,
        parallel: 8,
        context: protocol::context::ContextSettings {
            max_result_chars: 30_000,
            compaction: protocol::context::CompactionKind::Cut,
        },
        facts: facts(),
        pinned: vec![text("a.md")],
        hooks: protocol::hook::SessionHooks {
            verifiers: vec![protocol::hook::EditHook {
                files: text("*.rs"),
                package: Some(text("Cargo.toml")),
                command: text("cargo check"),
            }],
            formatters: vec![protocol::hook::EditHook {
                files: text("*.rs"),
                package: None,
                command: text("rustfmt"),
            }],
            events: vec![protocol::hook::EventHook {
                event: protocol::hook::HookEvent::PreToolUse,
                matched: Some(vec![text("bash")]),
                command: text("guard.sh"),
                broken: None,
                timeout_ms: 60_000,
                file: text(".claude/settings.json"),
            }],
        },
        mode: protocol::judgement::PermissionMode::Plan,
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        round: 1,
        model: text("model-1"),
        system: text("system"),
        tools: vec![tool_spec()],
        messages: vec![Message { role: protocol::content::MessageRole::User, blocks: blocks() }],
        max_tokens: 32_000,
        updated: Some(protocol::content::FilesUpdated {
            text: text("a.md"),
            place: protocol::content::UpdatePosition::InsideLastResult,
        }),
        calls: protocol::content::ToolChoice::No,
        images: vec![image_file()],
        answer_schema: Some(text("{}")),
    }
}

fn log() -> LogLine {
    LogLine { level: protocol::log::LogLevel::Warn, text: text("odd") }
}

fn patience() -> ProviderTimeouts {
    ProviderTimeouts {
        tries: 5,
        overload_tries: 5,
        max_wait_ms: 60_000,
        byte_timeout_ms: 1,
        progress_timeout_ms: 2,
        connect_timeout_ms: 3,
    }
}

fn rule() -> Rule {
    Rule {
        effect: protocol::judgement::RuleEffect::Allow,
        text: text("bash:ls *"),
        file: text("config.toml"),
        line: 7,
    }
}

fn rules() -> RuleSet {
    RuleSet {
        rules: vec![rule()],
        mode: protocol::judgement::PermissionMode::Ask,
        audience: protocol::judgement::Audience::NonInteractive,
        project: text("/p"),
    }
}

fn probe() -> ProbeReport {
    let found = ProbedPath {
        named: text("./f"),
        real: text("/p/f"),
        in_scope: true,
        digest: Some(text("d")),
    };
    ProbeReport { paths: vec![found], diff: text("+a") }
}

fn case() -> JudgedCall {
    JudgedCall {
        call: call(),
        kind: protocol::judgement::ToolKind::Mutation,
        command: Some(text("ls")),
        page: Some(Box::new(page())),
        probe: Some(probe()),
        confinement: text("no network"),
        extra_rights: vec![protocol::judgement::ExtraRight::Network],
        configured: Some(rule()),
        tampered: [text(".envrc")].into(),
        asked: Some("a hook".into()),
        typed_by: Some("pts/0".into()),
        reach: EffectReach::Undoable,
    }
}

fn page() -> WebAddress {
    WebAddress { server: host(), host: text("example.org"), port: 443, path: text("/a") }
}

fn question() -> Question {
    Question {
        call: call_id(),
        tool: text("bash"),
        input: text("{}"),
        preview: text("ls"),
        confinement: text("no network"),
        reason: text("mode ask"),
        widens: vec![protocol::judgement::ExtraRight::GitAdmin],
        ask: Ask::Call { rules: vec![text("bash:ls *")], modes: Vec::new() },
        deadline: 1 << 40,
        digest: text("d"),
    }
}

fn host_port() -> protocol::hosts::HostPort {
    "npm.example.org".parse().unwrap()
}

fn identity() -> protocol::tool::TlsIdentity {
    protocol::tool::TlsIdentity { certificate: vec![1], key: vec![2] }
}

fn host() -> HostRule {
    "*.example.org:8443".parse().unwrap()
}

fn connection() -> ProxyConnection {
    ProxyConnection {
        place: text("example.org:443"),
        decision: protocol::confinement::ConnectionOutcome::Refused(text("private")),
        count: 2,
        sent: 300,
        received: 70_000,
    }
}

fn confinement() -> Confinement {
    Confinement {
        profile: protocol::confinement::Profile::Command,
        project: path("/p"),
        added: vec![path("/q")],
        temp: path("/t"),
        private: vec![PrivateDir {
            shown_at: FilePath::from("/tmp"),
            kept_at: FilePath::from("/t/tmp"),
        }],
        caches: Some(FilePath::from("/c")),
        overlays: Some(FilePath::from("/o")),
        home: Some(path("/h")),
        tool_homes: vec![(text("RUSTUP_HOME"), path("/r"))],
        keys: vec![path("/p/.ssh")],
        named: Some(path("/n")),
        written_elsewhere: vec![path("/w")],
        withheld: vec![path("/s")],
        network: protocol::confinement::Network::On,
        hosts: vec![host()],
        repository: None,
        joins: None,
        umask: 0o022,
        git: GitSettings::Writable,
        highest_tier: protocol::confinement::Tier::A,
        level: protocol::confinement::Level::BestEffort,
        cgroup: None,
        limits: Limits {
            processes: 512,
            memory_bytes: 1 << 33,
            cpu_seconds: 14_400,
            file_bytes: 1 << 40,
            open_files: 1024,
        },
    }
}

fn enforced() -> Enforced {
    Enforced {
        tier: protocol::confinement::Tier::B,
        in_process: false,
        profile: text("command"),
        landlock_abi: 7,
        network: text("on"),
        namespaces: vec![text("user")],
        seccomp: true,
        refusals_observable: true,
        dropped: vec![text("x")],
        limits: vec![text("y")],
        missing: vec![text("/z")],
        left_out: vec![text("/l")],
        cgroup: vec!["memory".into(), "processes".into()],
    }
}

fn report() -> RunReport {
    RunReport {
        result: result(),
        full: Some(text("all of it")),
        images: vec![image_file()],
        effects: vec![protocol::call::FileEffect::Ran(text("ls"))],
        seen: vec![protocol::call::FileVersion { path: text("/p/a"), digest: text("00ff") }],
        instructions: vec![protocol::call::DirectoryInstructions {
            file: protocol::call::FileVersion {
                path: text("/p/s/AGENTS.md"),
                digest: text("00ff"),
            },
            text: text("Tabs."),
            troubles: vec![text("t")],
        }],
        evidence: Some(protocol::call::ReadEvidence {
            began: 5,
            parts: vec![protocol::call::ReadPart {
                path: text("/p/a"),
                was: Some(protocol::call::ReadStamp {
                    device: 1,
                    inode: 2,
                    size: 3,
                    modified: 4,
                    changed: 5,
                }),
            }],
        }),
        refusals: vec![Refusal {
            kind: protocol::confinement::RefusalKind::Predicted,
            syscall: text("openat"),
            subject: Subject::Path { path: text("/etc/shadow"), act: PathAct::Write },
            errno: 13,
            pid: 70_000,
            count: 1,
        }],
        refusals_uncounted: 3,
        tampered: vec![TamperedFile {
            path: text(".envrc"),
            remedy: TamperRemedy::Quarantined { kept: text(".envrc.quarantined") },
        }],
        usage: ProcessUsage { cpu_ms: 1, peak_kib: 2, written_bytes: 3 },
        command_pid: Some(70_001),
    }
}

fn asked() -> CacheKey {
    CacheKey { call: call(), max_result_chars: 30_000 }
}

fn change_set() -> protocol::store::ChangeSet {
    let diff = protocol::store::FileDiff { path: text("a"), calls: vec![7], diff: text("d") };
    protocol::store::ChangeSet { files: vec![diff], notes: vec![text("n")] }
}

fn kept_file() -> FileBackup {
    FileBackup {
        path: text("/p/a"),
        before: protocol::store::PriorContent::File { bytes: vec![1, 2], mode: 0o644 },
        after: Some(text("ab")),
    }
}

fn command() -> protocol::store::StoreCommand {
    protocol::store::StoreCommand { call: call_id(), tool: text("bash"), text: text("cargo fmt") }
}

fn store_setup() -> StoreSetup {
    StoreSetup {
        confinement: confinement(),
        session: session_id(),
        project_store: path("/s/p"),
        user_store: path("/s/user"),
        plugins: vec![(text("mine"), path("/plugins/mine"))],
        denied_reads: rules(),
        forked_from: Some(protocol::store::ForkedFrom { session: session_id(), last_call: 7 }),
    }
}

fn process() -> ProcessRow {
    ProcessRow {
        worker: text("agentd-session"),
        session: Some(session_id()),
        pid: 70_000,
        generation: 1,
        restarts: 0,
        last_cause: Some(text("SIGKILL")),
        cage: Some(protocol::confinement::Tier::A),
    }
}

fn session_row() -> SessionRow {
    SessionRow {
        session: session_id(),
        name: text("the release"),
        title: text("Fix it"),
        project: path("/p"),
        model: text("model-1"),
        state: protocol::client::SessionStatus::Idle,
        began: 1 << 40,
        last: 1 << 40,
        turns: Some(3),
        cost: protocol::client::SessionCost::Whole(270_000),
        clients: 2,
        parent: Some(call_id()),
    }
}

fn status() -> DaemonStatus {
    DaemonStatus {
        pid: 70_000,
        build: text("0.1.0-0"),
        began: 1 << 40,
        sandbox: text("tier A"),
        sessions: 2,
        working: 1,
        room: 89,
        limit: text("open files 1024 (ulimit -n)"),
        clients: 3,
        troubles: vec![text("t")],
    }
}

fn facts() -> protocol::client::ModelFacts {
    protocol::client::ModelFacts {
        context: Some(200_000),
        prices: Some(protocol::client::Prices {
            input: 3_000_000,
            output: 15_000_000,
            cache_read: Some(300_000),
            cache_write: None,
        }),
        vision: Some(true),
        json_schema: Some(true),
        images: protocol::client::ImageLimits { bytes: 1 << 20, count: 20 },
    }
}

fn opening() -> SessionRequest {
    SessionRequest {
        project: path("/p"),
        named: Some(path("/n")),
        added: vec![path("/q")],
        start: protocol::client::SessionStart::New,
        env: vec![(text("PATH"), text("/bin"))],
        settings: vec![(text("net.mode"), text("off"))],
        mode: Some(protocol::judgement::PermissionMode::Auto),
        network: Some(protocol::confinement::Network::Off),
        trust: protocol::client::ProjectTrust::ThisRun,
        audience: protocol::judgement::Audience::Person,
        papers: vec![protocol::provider::PassedFd::Key],
        uncaged: protocol::client::Unsandboxed::Refused,
        conversation: protocol::client::ConversationFlags {
            appended_system: Some(text("Be brief.")),
            cost_limit: Some(2_000_000),
        },
        agents: Some(text("{}")),
        umask: 0o022,
        seat: Some(Box::new(protocol::fleet::FleetSeat {
            task: 7,
            socket: path("/run/fleet.socket"),
            token: text("secret"),
            shared_disk: false,
            restored: Some(protocol::fleet::RestoredSession { last_seq: 300, snapshot_seq: 7 }),
        })),
    }
}

fn lease_clock() -> protocol::fleet::LeaseClock {
    protocol::fleet::LeaseClock { freeze_at: 70_000, kill_at: 90_000 }
}
