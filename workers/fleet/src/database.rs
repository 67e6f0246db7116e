//! The connection to a fleet's database: TLS, time-outs, and a new connection in place of a lost one.

use crate::error::FleetError;
use crate::pooler;
use crate::schema_version;
use crate::secret::uuid;
use crate::tls;
use fleet::DatabaseArgs;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A connection that its second part carries.
type Opened = (Client, Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>);

/// The same with the text that its session began with.
type OpenedSession =
    (Client, Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>, String);

/// How long a database may take to accept a connection.
const CONNECTING: Duration = Duration::from_secs(10);
/// Settings of a connection, whatever the role's defaults are: the database acknowledges what its disk has. And
/// plans are kept while tables grow: they read indexes, also where a table was small. Without an index they seem so
/// costly then that they would be compiled.
const SETTINGS: [&str; 3] = ["synchronous_commit=on", "enable_seqscan=off", "jit=off"];
/// More bytes go over a connection of their own.
const LARGE: u64 = 1 << 20;
/// How long that may take. A dead link ends it sooner.
const CARRYING: Duration = Duration::from_secs(600);
/// Between two tries of a worker to connect to a database that takes no more connections. Each try costs it a
/// process, and those that work for tasks need its processors.
const FULL: Duration = Duration::from_secs(5);
/// Between two tries.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
];

/// The fleet's address: the flag, else the variable.
pub(crate) fn url_of(given: Option<&str>) -> Result<String, FleetError> {
    let variable = || std::env::var("AGENTD_FLEET_URL").ok().filter(|url| !url.is_empty());
    given.map(str::to_owned).or_else(variable).ok_or(FleetError::NoUrl)
}

/// The settings of the connection. A connection to another machine is encrypted and its server is
/// verified, unless the address says `sslmode=disable`.
pub(crate) fn config_of(url: &str) -> Result<Config, FleetError> {
    // The parser's errors do not contain the address, which may hold a password.
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        FleetError::Url(format!("{error}; it is like postgres://USER@HOST/NAME"))
    })?;
    if config.get_password().is_none()
        && let Ok(password) = std::env::var("PGPASSWORD")
    {
        config.password(password);
    }
    let is_remote = |host: &Host| match host {
        Host::Tcp(name) => !is_loopback(name),
        Host::Unix(_) => false,
    };
    let remote = config.get_hosts().iter().any(is_remote);
    if config.get_ssl_mode() == SslMode::Prefer {
        // A server that refuses encryption would get the password in clear text. On this machine nobody reads
        // it on its way, and a server has a certificate of its own making there.
        config.ssl_mode(if remote { SslMode::Require } else { SslMode::Disable });
    }
    config.application_name("agentd-fleet").connect_timeout(CONNECTING);
    config.keepalives_idle(Duration::from_secs(10)).tcp_user_timeout(Duration::from_secs(15));
    Ok(config)
}

/// The pause of a worker before it tries a full database again. Those that began at once try at different
/// times.
pub(crate) fn pause_when_full() -> Duration {
    FULL + Duration::from_millis(u64::from(std::process::id() % 1000))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Connects once. The task that carries the connection ends with it.
pub(crate) async fn connect(config: &Config) -> Result<Client, FleetError> {
    let (client, connection, text) = open_session(config).await?;
    tokio::spawn(connection);
    settle(config, &client, &text).await?;
    Ok(client)
}

/// Opens a connection whose session begins with the settings and a random text.
async fn open_session(config: &Config) -> Result<OpenedSession, FleetError> {
    let (mut own, text) = (config.clone(), uuid()?);
    own.options(pooler::options(config.get_options(), &SETTINGS, &text));
    let (client, connection) = match open_connection(&own).await {
        Err(FleetError::Connect(error)) if pooler::refuses_options(&error) => {
            open_connection(config).await?
        }
        opened => opened?,
    };
    Ok((client, connection, text))
}

/// Refuses a pooler that lends its sessions. One that gives each client its own needs the settings yet.
async fn settle(config: &Config, client: &Client, text: &str) -> Result<(), FleetError> {
    let settled = async {
        if pooler::is_direct(client, text).await? {
            return Ok(());
        }
        let (other, connection) = open_connection(config).await?;
        tokio::spawn(connection);
        if pooler::lends_sessions(client, &other).await? {
            return Err(FleetError::Pooler);
        }
        let set: Vec<String> = SETTINGS.iter().map(|setting| format!("set {setting}")).collect();
        Ok(client.batch_execute(&set.join("; ")).await?)
    };
    let settled = tokio::time::timeout(CONNECTING, settled).await;
    settled.unwrap_or_else(|_| Err(FleetError::Silent(CONNECTING.as_secs())))
}

/// Opens a connection; its second part carries it.
async fn open_connection(config: &Config) -> Result<Opened, FleetError> {
    let connected =
        tokio::time::timeout(CONNECTING, config.connect(tls::connector(config.get_ssl_mode())?))
            .await;
    connected.map_err(|_| FleetError::Silent(CONNECTING.as_secs()))?.map_err(FleetError::Connect)
}

/// A connection that hears notifications.
pub(crate) struct Notifications {
    pub(crate) client: Client,
    /// The texts of the notifications. It ends with the connection.
    pub(crate) heard: mpsc::UnboundedReceiver<String>,
}

/// Connects and listens at this channel, which is a plain word.
pub(crate) async fn listen(config: &Config, channel: &str) -> Result<Notifications, FleetError> {
    let (client, mut connection, text) = open_session(config).await?;
    let (told, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message
                && told.send(notification.payload().to_owned()).is_err()
            {
                return;
            }
        }
    });
    settle(config, &client, &text).await?;
    client.batch_execute(&format!("listen {channel}")).await?;
    Ok(Notifications { client, heard })
}

/// Connects for a command, and checks the schema's version.
pub(crate) async fn open(args: &DatabaseArgs) -> Result<Client, FleetError> {
    let client = connect(&config_of(&url_of(args.url.as_deref())?)?).await?;
    schema_version::check(&client).await?;
    Ok(client)
}

/// A connection that is made again when it was lost.
#[derive(Debug)]
pub(crate) struct Database {
    config: Config,
    /// How long one request may take.
    patience: Duration,
    client: Mutex<Option<Arc<Client>>>,
}

impl Database {
    pub(crate) fn new(config: Config, patience: Duration) -> Self {
        Self { config, patience, client: Mutex::new(None) }
    }

    /// The same connection, with another bound of a request.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The same database over a connection for so many bytes, if they are many: renewals of leases would wait
    /// behind them.
    pub(crate) fn apart(&self, bytes: u64) -> Option<Self> {
        (bytes > LARGE).then(|| Self::new(self.config.clone(), CARRYING))
    }

    /// The present connection, or a new one.
    async fn client(&self) -> Result<Arc<Client>, FleetError> {
        let mut held = self.client.lock().await;
        if let Some(client) = held.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        let client = connect(&self.config).await?;
        schema_version::check(&client).await?;
        let client = Arc::new(client);
        *held = Some(Arc::clone(&client));
        Ok(client)
    }

    /// Drops this connection if it is the present one: it does not answer.
    async fn forget(&self, lost: &Arc<Client>) {
        let mut held = self.client.lock().await;
        if held.as_ref().is_some_and(|client| Arc::ptr_eq(client, lost)) {
            *held = None;
        }
    }

    /// One try of a request.
    pub(crate) async fn once<T, F>(
        &self,
        request: impl FnOnce(Arc<Client>) -> F,
    ) -> Result<T, FleetError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let client = self.client().await?;
        let answered = tokio::time::timeout(self.patience, request(Arc::clone(&client))).await;
        let Ok(answer) = answered else {
            self.forget(&client).await;
            return Err(FleetError::Silent(self.patience.as_secs()));
        };
        answer.map_err(FleetError::Database)
    }

    /// Tries a request until the database answers it. Only for requests that may be repeated. The caller
    /// bounds the time.
    pub(crate) async fn until_answered<T, F>(
        &self,
        request: impl Fn(Arc<Client>) -> F,
    ) -> Result<T, FleetError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        for pause in PAUSES.iter().chain(std::iter::repeat(&Duration::from_secs(1))) {
            match self.once(&request).await {
                Err(error) if error.is_of_the_connection() => {
                    tracing::debug!(%error, "the fleet's database is tried again");
                    tokio::time::sleep(*pause).await;
                }
                answer => return answer,
            }
        }
        Err(FleetError::Silent(self.patience.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_connection_to_another_machine_is_encrypted_unless_the_address_refuses() {
        let mode = |url| config_of(url).unwrap().get_ssl_mode();
        assert_eq!(mode("postgres://u@db.example/f"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example/f?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://u@127.0.0.1/f"), SslMode::Disable);
        assert_eq!(mode("postgres://u@127.0.0.1/f?sslmode=require"), SslMode::Require);
        assert_eq!(mode("postgres://u@localhost,db.example/f"), SslMode::Require);
        assert_eq!(mode("host=/run/postgresql user=u"), SslMode::Disable);
    }

    #[test]
    fn many_bytes_go_over_a_connection_of_their_own() {
        let database =
            Database::new(config_of("postgres://u@h/f").unwrap(), Duration::from_secs(1));
        assert!(database.apart(LARGE).is_none());
        assert_eq!(database.apart(LARGE + 1).map(|it| it.patience), Some(CARRYING));
    }

    #[test]
    fn an_error_about_an_address_does_not_repeat_it() {
        let error = config_of("postgres://u:secret@h:port/f").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
