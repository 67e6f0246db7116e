//! The loop once the cage stands: one thread reads the channel, this one answers.

use anyhow::{Context, bail};
use ipc::{ChannelError, Receiver, Sender};
use protocol::content::ModelRequest;
use protocol::provider::{FromProvider, ToProvider};
use provider::Provider;
use std::ops::ControlFlow;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Messages from the reader thread. The protocol's phases bound how many wait: one request, one
/// cancel, and one ping, since the supervisor waits for each pong.
type Inbox = UnboundedReceiver<Result<ToProvider, ChannelError>>;

/// Answers until the supervisor closes the channel.
pub(crate) fn run(
    provider: Provider,
    messages: Receiver<ToProvider>,
    outbox: Sender<FromProvider>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .context("no event loop")?;
    let (post, inbox) = unbounded_channel();
    std::thread::Builder::new()
        .name("channel".into())
        .spawn(move || read(messages, &post))
        .context("no thread for the channel")?;
    let done = runtime.block_on(serve(provider, inbox, &outbox));
    // A DNS lookup in progress delays no other task.
    runtime.shutdown_background();
    done
}

fn read(
    mut messages: Receiver<ToProvider>,
    post: &UnboundedSender<Result<ToProvider, ChannelError>>,
) {
    loop {
        let message = messages.recv();
        let last = message.is_err();
        if post.send(message).is_err() || last {
            return;
        }
    }
}

/// Between requests.
async fn serve(
    mut provider: Provider,
    mut inbox: Inbox,
    outbox: &Sender<FromProvider>,
) -> anyhow::Result<()> {
    while let Some(message) = inbox.recv().await {
        match message {
            Ok(ToProvider::Ask(request)) => {
                if answer(&mut provider, &request, &mut inbox, outbox).await?.is_break() {
                    return Ok(());
                }
            }
            Ok(ToProvider::Ping(number)) => outbox.send(&FromProvider::Pong(number))?,
            // Its request had just ended.
            Ok(ToProvider::Cancel) => {}
            Ok(ToProvider::Configure { .. }) => bail!("a second Configure came"),
            Err(ChannelError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// While a request is open. Breaks when the supervisor is gone.
async fn answer(
    provider: &mut Provider,
    request: &ModelRequest,
    inbox: &mut Inbox,
    outbox: &Sender<FromProvider>,
) -> anyhow::Result<ControlFlow<()>> {
    let round = request.round;
    tracing::info!(round, "request begins");
    let mut lost: Option<ChannelError> = None;
    let mut tell = |message| {
        ipc::step!("provider: mid-stream", if matches!(message, FromProvider::Delta { .. }));
        ipc::step!("provider: before ended", if matches!(message, FromProvider::Ended { .. }));
        if lost.is_none() {
            note(&message);
            lost = outbox.send(&message).err();
        }
    };
    let cancelled = {
        let mut open = std::pin::pin!(provider.answer(request, &mut tell));
        loop {
            let message = tokio::select! {
                biased;
                message = inbox.recv() => message,
                () = &mut open => break false,
            };
            match message {
                Some(Ok(ToProvider::Ping(number))) => outbox.send(&FromProvider::Pong(number))?,
                Some(Ok(ToProvider::Cancel)) => break true,
                Some(Ok(ToProvider::Ask(_))) => bail!("a second Ask came while one was open"),
                Some(Ok(ToProvider::Configure { .. })) => bail!("a second Configure came"),
                Some(Err(ChannelError::Closed)) | None => return Ok(ControlFlow::Break(())),
                Some(Err(error)) => return Err(error.into()),
            }
        }
    };
    if let Some(error) = lost {
        return Err(error.into());
    }
    if cancelled {
        // The request and its connection were dropped before this message is sent.
        provider.cancelled();
        let message = FromProvider::Cancelled { round };
        note(&message);
        outbox.send(&message)?;
    }
    Ok(ControlFlow::Continue(()))
}

/// Logs the steps of a request, never its content.
fn note(message: &FromProvider) {
    match message {
        FromProvider::Retrying { round, attempt, of, wait_ms, reason } => {
            tracing::warn!(round, attempt, of, wait_ms, reason, "request broke off; tries again");
        }
        FromProvider::Ended { round, stop, usage, model } => {
            tracing::info!(round, ?stop, ?usage, model, "answer complete");
        }
        FromProvider::Failed { round, kind, message: _ } => {
            tracing::warn!(round, ?kind, "request failed");
        }
        FromProvider::Cancelled { round } => tracing::info!(round, "request was dropped"),
        FromProvider::Ready
        | FromProvider::Delta { .. }
        | FromProvider::Notice { .. }
        | FromProvider::Pong(_)
        | FromProvider::Log(_) => {}
    }
}
