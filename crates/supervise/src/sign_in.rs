//! Sign-in of a session's proxies: the certificate, which one process makes when the session is
//! opened, and the keys, which clients pass as descriptors and the supervisor never reads.

use launch::certificate::certify;
use launch::spawner::Spawner;
use protocol::confinement::{Confinement, Level, Tier};
use protocol::hosts::HostPort;
use protocol::provider::PassedFd;
use protocol::tool::{CertifiedSession, SignIn, SignInAccount, TlsIdentity};
use setup::session_spec::SessionSpec;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Sign-in of one command's proxy, with a key for each account.
#[derive(Debug)]
pub(crate) struct SignInKeys {
    pub(crate) sign_in: SignIn,
    pub(crate) keys: Vec<OwnedFd>,
}

impl SignInKeys {
    /// For configured hosts whose key a client passed.
    pub(crate) fn of(
        spec: &SessionSpec,
        identity: Option<&Arc<TlsIdentity>>,
        papers: &[(PassedFd, OwnedFd)],
    ) -> Option<Self> {
        let identity = identity?.as_ref().clone();
        let (mut accounts, mut keys) = (Vec::new(), Vec::new());
        for credential in &spec.config().credentials {
            let Some(key) = key_for(&credential.host, papers) else { continue };
            match key.try_clone() {
                Ok(key) => {
                    keys.push(key);
                    let (host, user) = (credential.host.clone(), credential.user.clone());
                    accounts.push(SignInAccount { host, user });
                }
                Err(error) => tracing::error!(%error, "a descriptor could not be passed on"),
            }
        }
        (!keys.is_empty()).then_some(Self { sign_in: SignIn { identity, accounts }, keys })
    }

    /// Duplicates of the descriptors.
    pub(crate) fn copies(&self) -> io::Result<Vec<OwnedFd>> {
        self.keys.iter().map(OwnedFd::try_clone).collect()
    }
}

fn key_for<'a>(host: &HostPort, papers: &'a [(PassedFd, OwnedFd)]) -> Option<&'a OwnedFd> {
    let known =
        papers.iter().find(|(paper, _)| matches!(paper, PassedFd::Credential(of) if of == host));
    known.map(|(_, key)| key)
}

/// Configured hosts whose key a client passed.
pub(crate) fn hosts_with_keys(spec: &SessionSpec, papers: &[(PassedFd, OwnedFd)]) -> Vec<HostPort> {
    let all = spec.config().credentials.iter().map(|credential| &credential.host);
    all.filter(|host| key_for(host, papers).is_some()).cloned().collect()
}

/// Makes the certificate, if commands of the session can have a proxy that signs in.
pub(crate) async fn certify_if_needed(
    spawner: &Spawner,
    spec: &SessionSpec,
    hello: Duration,
) -> Option<Result<CertifiedSession, String>> {
    let Confinement { highest_tier, level, .. } = spec.confinement();
    let hosts: Vec<_> = spec.config().credentials.iter().map(|it| it.host.clone()).collect();
    // Commands learn of the authority only through copied settings.
    let led = *level != Level::Uncaged && spec.settings_owner().is_some();
    if hosts.is_empty() || *highest_tier != Tier::A || !led {
        return None;
    }
    let spawner = spawner.with_env(spec.worker_env());
    Some(certify((&spawner, hello), hosts, spec.confinement(), spec.id()).await)
}
