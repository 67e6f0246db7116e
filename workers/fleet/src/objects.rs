//! An object store for snapshots that are too large for rows: S3 and what speaks it, or a directory that all
//! hosts have. `AGENTD_FLEET_OBJECTS` names it; the usual `AWS_` variables hold its keys.

use crate::error::FleetError;
use futures_util::StreamExt;
use object_store::buffered::BufWriter;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, parse_url_opts};
use std::path::Path;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;

/// The variable.
const VARIABLE: &str = "AGENTD_FLEET_OBJECTS";

/// A store, and the place in it.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
}

impl Objects {
    /// The store that the environment names, if it names one.
    pub(crate) fn of_environment() -> Result<Option<Self>, FleetError> {
        match std::env::var(VARIABLE) {
            Ok(url) if !url.is_empty() => Self::at(&url).map(Some),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    fn at(url: &str) -> Result<Self, FleetError> {
        let wrong = |why: String| FleetError::Host(format!("{VARIABLE}: {why}"));
        let url = url::Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        if !["s3", "file"].contains(&url.scheme()) {
            return Err(wrong(format!("{} is neither s3 nor file", url.scheme())));
        }
        // Another provider may stand already; both are the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = std::env::vars().filter(|(name, _)| name.starts_with("AWS_"));
        let options = options.map(|(name, value)| (name.to_ascii_lowercase(), value));
        let (store, prefix) =
            parse_url_opts(&url, options).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { store: store.into(), prefix })
    }

    fn place(&self, name: &str) -> ObjectPath {
        name.split('/').fold(self.prefix.clone(), |place, part| place.join(part.to_owned()))
    }

    /// Puts a file there. When this returns, it is there as a whole.
    pub(crate) async fn put(&self, name: &str, file: &Path) -> Result<(), FleetError> {
        let failed = |error: std::io::Error| FleetError::Host(format!("the object store: {error}"));
        let mut from = tokio::fs::File::open(file).await.map_err(FleetError::file(file))?;
        let mut to = BufWriter::new(Arc::clone(&self.store), self.place(name));
        tokio::io::copy(&mut from, &mut to).await.map_err(failed)?;
        to.shutdown().await.map_err(failed)
    }

    /// Gets it into a file.
    pub(crate) async fn get(&self, name: &str, file: &Path) -> Result<(), FleetError> {
        let failed = |error: object_store::Error| {
            FleetError::Host(format!("the object store has no {name}: {error}"))
        };
        let mut from = self.store.get(&self.place(name)).await.map_err(failed)?.into_stream();
        let mut to = tokio::fs::File::create(file).await.map_err(FleetError::file(file))?;
        while let Some(bytes) = from.next().await {
            to.write_all(&bytes.map_err(failed)?).await.map_err(FleetError::file(file))?;
        }
        to.flush().await.map_err(FleetError::file(file))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_directory_gives_back_what_it_got() {
        let dir = tempfile::tempdir().unwrap();
        let objects = Objects::at(&format!("file://{}/store", dir.path().display())).unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
        std::fs::write(&from, &bytes).unwrap();
        objects.put("task-1/7.pack", &from).await.unwrap();
        objects.get("task-1/7.pack", &to).await.unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), bytes);
        assert!(objects.get("task-1/8.pack", &to).await.is_err());
    }

    #[test]
    fn an_address_of_another_kind_is_refused() {
        for url in ["http://x/y", "nonsense"] {
            assert!(Objects::at(url).unwrap_err().to_string().contains(VARIABLE));
        }
    }
}
