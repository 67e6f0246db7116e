//! `agentd attach` to a session on another host: a socket of this terminal's own, whose messages go through
//! the database. No port opens on a worker.
//!
//! The first line on standard output is JSON: the session, the socket and its token. The relay ends with its
//! standard input.

use crate::connection::Connection;
use crate::database::{Notifications, config_of, connect, listen, url_of};
use crate::error::FleetError;
use crate::schema::say;
use crate::schema_version;
use crate::secret::{secret, uuid};
use crate::terminals::{AWAKE, PACE};
use fleet::DatabaseArgs;
use protocol::client::{ClientLink, FromClient, ToClient};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio_postgres::{Client, Config};

/// How long messages may wait without a notification: one can be lost with its connection.
const LOOK: Duration = Duration::from_secs(1);

/// A session that a host works for now.
struct Found {
    session: String,
    build: String,
    host: String,
}

pub(crate) async fn main(beginning: &str, database: &DatabaseArgs) -> Result<(), FleetError> {
    let config = config_of(&url_of(database.url.as_deref())?)?;
    let client = Arc::new(connect(&config).await?);
    schema_version::check(&client).await?;
    let found = find(&client, beginning).await?;
    if found.build != protocol::BUILD_ID {
        return Err(FleetError::Refused(format!(
            "host {} runs build {}, this is build {}; different builds cannot communicate",
            found.host,
            found.build,
            protocol::BUILD_ID
        )));
    }
    let place = std::env::temp_dir().join(format!("agentd-relay-{}", uuid()?));
    std::fs::DirBuilder::new().mode(0o700).create(&place).map_err(FleetError::file(&place))?;
    let socket = place.join("socket");
    let listener = UnixListener::bind(&socket).map_err(FleetError::file(&socket))?;
    let token = secret()?;
    let line = serde_json::json!({"session": found.session, "socket": socket, "token": token});
    say(&format!("{line}\n"))?;
    let served = async {
        loop {
            let (stream, _) = listener.accept().await.map_err(FleetError::Output)?;
            // The terminal connects again after an error; a lost host has a successor by then.
            if let Err(error) = terminal(stream, &token, &config, &found.session).await {
                tracing::debug!(%error, "a terminal's connection ended");
            }
        }
    };
    let mut input = tokio::io::stdin();
    let mut ended = [0; 1];
    let ran = tokio::select! {
        ran = served => ran,
        _ = input.read(&mut ended) => Ok(()),
    };
    let _ = std::fs::remove_dir_all(&place);
    ran
}

async fn find(client: &Client, beginning: &str) -> Result<Found, FleetError> {
    let rows = client
        .query(
            "select l.session, w.build, w.name from agentd.lease l
             join agentd.worker w on w.id = l.worker
             where l.until > clock_timestamp()
                 and (l.session = $1 or left(l.session, length($1)) = $1 or l.task::text = $1)
             order by l.session = $1 desc, l.session limit 2",
            &[&beginning],
        )
        .await?;
    let mut found = Vec::new();
    for row in &rows {
        found.push(Found {
            session: row.try_get(0)?,
            build: row.try_get(1)?,
            host: row.try_get(2)?,
        });
    }
    let exact = found.first().is_some_and(|first| first.session == beginning);
    match (found.len(), exact) {
        (0, _) => {
            Err(FleetError::Refused(format!("no host works for a session {beginning:?} now")))
        }
        (1, _) | (_, true) => Ok(found.swap_remove(0)),
        _ => Err(FleetError::Refused(format!("several sessions begin with {beginning:?}"))),
    }
}

/// Serves one connection of the terminal.
async fn terminal(
    stream: UnixStream,
    token: &str,
    config: &Config,
    session: &str,
) -> io::Result<()> {
    let Connection { mut reader, mut writer } = Connection::accept::<ClientLink>(stream).await?;
    let terminal = uuid().map_err(io::Error::other)?;
    let channel = format!("agentd_t_{}", terminal.replace('-', ""));
    let Notifications { client, mut heard } =
        listen(config, &channel).await.map_err(io::Error::other)?;
    let FromClient::Hello { token: shown, .. } = reader.recv().await? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    if shown != token {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let (build, pid) = (protocol::BUILD_ID.to_owned(), std::process::id());
    writer.send(&ToClient::Welcome { build, pid }).await?;
    let (mut n, mut awake_until) = (0_i64, Instant::now());
    let up = "select agentd.relay_up($1::text::uuid, $2, $3, $4)";
    loop {
        let look = if Instant::now() < awake_until { PACE / 2 } else { LOOK };
        tokio::select! {
            body = reader.recv_bytes() => {
                // An empty message is the terminal's end.
                let body = body?.unwrap_or_default();
                let sent = client.execute(up, &[&terminal, &session, &n, &body]).await;
                if body.is_empty() {
                    return Ok(());
                }
                sent.map_err(io::Error::other)?;
                n += 1;
            }
            notified = tokio::time::timeout(look, heard.recv()) => {
                if matches!(notified, Ok(None)) {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                while heard.try_recv().is_ok() {}
                let take = "select bytes from agentd.relay_take($1::text::uuid, 'down')";
                let rows = client.query(take, &[&terminal]).await.map_err(io::Error::other)?;
                if !rows.is_empty() {
                    awake_until = Instant::now() + AWAKE;
                }
                for row in rows {
                    let bytes: Vec<u8> = row.try_get(0).map_err(io::Error::other)?;
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    writer.send_bytes(&bytes).await?;
                }
            },
        }
    }
}
