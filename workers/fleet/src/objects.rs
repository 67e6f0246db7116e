//! An object store for snapshots that are too large for rows: S3 and what speaks it, or a directory that all
//! hosts have. `AGENTD_FLEET_OBJECTS` names it; the usual `AWS_` variables hold its keys. `seat` puts snapshots
//! there, and `restore` gets them.

use crate::error::{FleetError, causes};
use crate::objects_error::ObjectsError;
use futures_util::{StreamExt, stream};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{
    BackoffConfig, ClientOptions, GetOptions, GetRange, MultipartUpload, ObjectStore,
    ObjectStoreExt, RetryConfig,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

/// The variable.
const VARIABLE: &str = "AGENTD_FLEET_OBJECTS";
/// How long one request may take. A part passes in that time over 2.3 megabits a second.
const REQUEST: Duration = Duration::from_secs(60);
/// How long a request that fails is tried again. A session waits for it.
const AGAIN: Duration = Duration::from_secs(45);
/// The first and the longest pause between two tries.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(5)];
/// Bytes of one request. S3 takes parts from 5 MiB on, and 10,000 of them.
const PART: u64 = 8 << 20;
/// Requests at once. More would not be in time over a slow link.
const AT_ONCE: usize = 2;
/// How long the first request of a worker and the end of a failed upload may take.
const SHORT: Duration = Duration::from_secs(5);

/// A store, and the place in it.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    /// As the variable names it.
    url: String,
}

impl Objects {
    /// The store that the environment names, if it names one.
    pub(crate) fn of_environment() -> Result<Option<Self>, FleetError> {
        let pairs = std::env::vars_os();
        let texts = pairs.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let variables: BTreeMap<String, String> = texts.collect();
        let url = variables.get(VARIABLE).filter(|url| !url.is_empty());
        url.map(|url| Self::at(url, &variables)).transpose()
    }

    fn at(text: &str, variables: &BTreeMap<String, String>) -> Result<Self, FleetError> {
        let wrong = |why: String| FleetError::Host(format!("{VARIABLE}: {why}"));
        let url = url::Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        let prefix = ObjectPath::from_url_path(url.path());
        let prefix = prefix.map_err(|error| wrong(error.to_string()))?;
        let store: Arc<dyn ObjectStore> = match url.scheme() {
            "file" => Arc::new(LocalFileSystem::new()),
            "s3" => s3(&url, variables).map_err(wrong)?,
            other => return Err(wrong(format!("{other} is neither s3 nor file"))),
        };
        Ok(Self { store, prefix, url: text.to_owned() })
    }

    fn place(&self, name: &str) -> ObjectPath {
        name.split('/').fold(self.prefix.clone(), |place, part| place.join(part.to_owned()))
    }

    /// Puts a small object there and reads it, so that a wrong key or bucket is known before a task needs it.
    /// A store that does not answer is reported only: it may be back by then.
    pub(crate) async fn check(&self, worker: &str) -> Result<(), FleetError> {
        let place = self.place(&format!("workers/{worker}"));
        let tried = async {
            self.store.put(&place, "agentd\n".into()).await?;
            self.store.get(&place).await?.bytes().await
        };
        match tokio::time::timeout(SHORT, tried).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => match self.failed(&error) {
                error if error.is_passing => self.warn(&error.to_string()),
                error => Err(FleetError::Objects(error)),
            },
            Err(_) => self.warn("it does not answer"),
        }
    }

    fn warn(&self, why: &str) -> Result<(), FleetError> {
        let store = &self.url;
        tracing::warn!(store, why, "a task with large changes needs the object store");
        Ok(())
    }

    /// Puts a file there. When this returns, it is there as a whole.
    pub(crate) async fn put(&self, name: &str, file: &Path) -> Result<(), FleetError> {
        let upload = self.store.put_multipart(&self.place(name)).await;
        let mut upload = upload.map_err(|error| self.failed(&error))?;
        let sent = self.send(upload.as_mut(), file).await;
        if sent.is_err() {
            // Parts of an upload that is not ended cost money. A store that is away keeps them.
            let _ = tokio::time::timeout(SHORT, upload.abort()).await;
        }
        sent
    }

    async fn send(&self, upload: &mut dyn MultipartUpload, file: &Path) -> Result<(), FleetError> {
        let from = tokio::fs::File::open(file).await.map_err(FleetError::file(file))?;
        let (mut from, mut parts) = (from, JoinSet::new());
        loop {
            let mut part = Vec::new();
            let read = (&mut from).take(PART).read_to_end(&mut part).await;
            let is_end = read.map_err(FleetError::file(file))? == 0;
            while parts.len() >= AT_ONCE || is_end {
                let Some(sent) = parts.join_next().await else { break };
                let sent: Result<(), _> =
                    sent.map_err(|error| FleetError::Runtime(error.into()))?;
                sent.map_err(|error| self.failed(&error))?;
            }
            if is_end {
                break;
            }
            parts.spawn(upload.put_part(part.into()));
        }
        upload.complete().await.map(drop).map_err(|error| self.failed(&error).into())
    }

    /// Gets it into a file.
    pub(crate) async fn get(&self, name: &str, file: &Path) -> Result<(), FleetError> {
        let place = self.place(name);
        // Its size comes with the first part, and so do the store's words if there is none.
        let first = GetOptions { range: Some(GetRange::Bounded(0..PART)), ..GetOptions::default() };
        let first =
            self.store.get_opts(&place, first).await.map_err(|error| self.failed(&error))?;
        let size = first.meta.size;
        let mut to = tokio::fs::File::create(file).await.map_err(FleetError::file(file))?;
        let first = first.bytes().await.map_err(|error| self.failed(&error))?;
        to.write_all(&first).await.map_err(FleetError::file(file))?;
        let parts = (1..size.div_ceil(PART)).map(|number| {
            let from = number * PART;
            self.store.get_range(&place, from..size.min(from + PART))
        });
        let mut parts = stream::iter(parts).buffered(AT_ONCE);
        while let Some(part) = parts.next().await {
            let part = part.map_err(|error| self.failed(&error))?;
            to.write_all(&part).await.map_err(FleetError::file(file))?;
        }
        to.flush().await.map_err(FleetError::file(file))
    }

    fn failed(&self, error: &object_store::Error) -> ObjectsError {
        use object_store::Error::{NotFound, PermissionDenied, Unauthenticated};
        let words = words_of(error);
        let (why, is_passing) = if matches!(error, NotFound { .. }) {
            (format!("lacks it: {words}"), false)
        } else if matches!(error, PermissionDenied { .. } | Unauthenticated { .. }) {
            (format!("refuses this host: {words}; see its AWS_ variables"), false)
        } else {
            (format!("is away: {words}"), true)
        };
        ObjectsError { store: self.url.clone(), why, is_passing }
    }
}

/// The server's own words where it said something, else the causes.
fn words_of(error: &object_store::Error) -> String {
    let all = causes(error);
    let part = |name: &str| {
        let from = all.split_once(&format!("<{name}>"))?.1;
        Some(from.split_once(&format!("</{name}>"))?.0.to_owned())
    };
    match (part("Code"), part("Message")) {
        (Some(code), Some(message)) => format!("{code}: {}", message.trim_end_matches('.')),
        _ => all,
    }
}

/// An S3 store. The variables are those of its library, which reads no files of profiles.
fn s3(
    url: &url::Url,
    variables: &BTreeMap<String, String>,
) -> Result<Arc<dyn ObjectStore>, String> {
    let has = |name: &str| variables.get(name).is_some_and(|value| !value.is_empty());
    if has("AWS_PROFILE") && !has("AWS_ACCESS_KEY_ID") {
        return Err(
            "profiles are not read: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, which \
                    `aws configure export-credentials --format env` prints"
                .to_owned(),
        );
    }
    // Another provider may stand already; both are the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let [init_backoff, max_backoff] = PAUSES;
    let backoff = BackoffConfig { init_backoff, max_backoff, base: 3.0 };
    // The time bounds the tries, not their number.
    let retry = RetryConfig { backoff, retry_timeout: AGAIN, max_retries: 1000 };
    let builder = AmazonS3Builder::new()
        .with_client_options(ClientOptions::new().with_timeout(REQUEST))
        .with_retry(retry);
    let known = variables.iter().filter(|(name, value)| {
        // An empty one is one that is not set.
        name.starts_with("AWS_") && !value.is_empty()
    });
    let builder =
        known.fold(builder, |builder, (name, value)| match name.to_ascii_lowercase().parse() {
            Ok(key) => builder.with_config(key, value),
            Err(_) => builder,
        });
    for name in ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"] {
        let is_plain = variables.get(name).is_some_and(|endpoint| endpoint.starts_with("http://"));
        if is_plain && variables.get("AWS_ALLOW_HTTP").is_none_or(|allowed| allowed != "true") {
            return Err(format!("{name} is not encrypted; AWS_ALLOW_HTTP=true allows that"));
        }
    }
    let store = builder.with_url(url.as_str()).build().map_err(|error| causes(&error))?;
    Ok(Arc::new(store))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(url: &str, variables: &[(&str, &str)]) -> Result<Objects, String> {
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Objects::at(url, &variables.collect()).map_err(|error| error.to_string())
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_directory_gives_back_what_it_got() {
        let dir = tempfile::tempdir().unwrap();
        let objects = at(&format!("file://{}/store", dir.path().display()), &[]).unwrap();
        objects.check("worker").await.unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for length in [3, PART, PART + 1, 4 * PART - 1] {
            let numbers = (0..u32::try_from(length).unwrap()).map(|n| n.to_le_bytes());
            let bytes: Vec<u8> = numbers.map(|n| n[0] ^ n[1] ^ n[2]).collect();
            std::fs::write(&from, &bytes).unwrap();
            let name = format!("task-1/{length}.pack");
            objects.put(&name, &from).await.unwrap();
            objects.get(&name, &to).await.unwrap();
            assert!(std::fs::read(&to).unwrap() == bytes, "{length}");
        }
        let missing = objects.get("task-1/8.pack", &to).await.unwrap_err();
        assert!(missing.to_string().starts_with("the object store file://"), "{missing}");
        assert!(matches!(missing, FleetError::Objects(error) if !error.is_passing));
    }

    #[test]
    fn an_address_of_another_kind_is_refused() {
        for url in ["http://x/y", "nonsense", "s3:///x"] {
            assert!(at(url, &[]).unwrap_err().contains(VARIABLE));
        }
    }

    #[test]
    fn variables_that_would_have_no_effect_are_refused() {
        let key = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let with = |more: &[(&str, &str)]| at("s3://b/p", &[&key, more].concat());
        with(&[("AWS_PROFILE", "p"), ("AWS_REGION", "")]).unwrap();
        let profile = at("s3://b/p", &[("AWS_PROFILE", "p")]).unwrap_err();
        assert!(profile.contains("export-credentials"), "{profile}");
        let plain = ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000");
        assert!(with(&[plain]).unwrap_err().contains("AWS_ALLOW_HTTP=true"));
        with(&[plain, ("AWS_ALLOW_HTTP", "true")]).unwrap();
        let half = at("s3://b/p", &key[..1]).unwrap_err();
        assert!(half.to_lowercase().contains("secret"), "{half}");
    }
}
