//! Makes the certificate for hosts that a session's proxies sign in to, and the authority that
//! commands trust for it. The authority signs this one certificate. Its key is then dropped and
//! never leaves this function, so nothing else can be signed with it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::hosts::HostPort;
use protocol::tool::{CertifiedSession, TlsIdentity};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, Error, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, date_time_ymd,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Start of validity before now, for containers with slow clocks.
const CLOCK_SKEW: Duration = DAY;
/// A session that lives longer gets new certificates when it is opened next.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Characters in a line of PEM.
const LINE: usize = 64;

/// Makes the authority and the certificate.
///
/// # Errors
/// The reason of a failure.
pub fn certify(hosts: &[HostPort]) -> Result<CertifiedSession, String> {
    build(hosts, SystemTime::now()).map_err(|error| format!("no certificate can be made: {error}"))
}

fn build(hosts: &[HostPort], now: SystemTime) -> Result<CertifiedSession, Error> {
    let mut names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    names.sort();
    names.dedup();
    let mut authority = valid_params(CertificateParams::default(), now);
    authority.distinguished_name.push(DnType::CommonName, "agentd, for one session");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.name_constraints = Some(NameConstraints {
        permitted_subtrees: names.iter().cloned().map(GeneralSubtree::DnsName).collect(),
        // Constraints on names do not restrict IP addresses.
        excluded_subtrees: vec![
            GeneralSubtree::IpAddress(CidrSubnet::V4([0; 4], [0; 4])),
            GeneralSubtree::IpAddress(CidrSubnet::V6([0; 16], [0; 16])),
        ],
    });
    let (own_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
    let own = authority.self_signed(&own_key)?;
    let issuer = Issuer::new(authority, own_key);
    let mut leaf = valid_params(CertificateParams::new(names)?, now);
    leaf.distinguished_name.push(DnType::CommonName, "agentd's proxy");
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    let certificate = leaf.signed_by(&key, &issuer)?.der().to_vec();
    Ok(CertifiedSession {
        authority: pem(own.der()),
        identity: TlsIdentity { certificate, key: key.serialize_der() },
    })
}

fn valid_params(mut params: CertificateParams, now: SystemTime) -> CertificateParams {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(CLOCK_SKEW);
    params.not_after = epoch + now + LIFETIME;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
}

fn pem(certificate: &[u8]) -> String {
    let letters = STANDARD.encode(certificate);
    let lines = letters.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    let lines: Vec<_> = lines.map(|line| format!("{line}\n")).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n", lines.concat())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use std::sync::Arc;

    /// What a client says of this certificate that trusts this authority alone.
    fn verified(
        certified: &CertifiedSession,
        name: &str,
        at: SystemTime,
    ) -> Result<(), rustls::Error> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(certified.authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).unwrap());
        let leaf = CertificateDer::from(certified.identity.certificate.clone());
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(&leaf, &[], &name, &[], at).map(|_| ())
    }

    fn hosts(names: &[&str]) -> Vec<HostPort> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn a_client_that_trusts_the_authority_takes_the_certificate_for_these_hosts_for_a_month() {
        let now = SystemTime::now();
        let hosts = hosts(&["npm.example.org", "npm.example.org:8443", "pip.example.org"]);
        let certified = build(&hosts, now).unwrap();
        for name in ["npm.example.org", "pip.example.org"] {
            assert_eq!(verified(&certified, name, now), Ok(()), "{name}");
            assert!(verified(&certified, name, now + LIFETIME + DAY).is_err(), "{name}");
        }
        for name in ["example.org", "a.npm.example.org", "other.test"] {
            assert!(verified(&certified, name, now).is_err(), "{name}");
        }
        let another = build(&hosts, now).unwrap();
        let mixed = CertifiedSession { authority: another.authority, ..certified };
        assert!(verified(&mixed, "npm.example.org", now).is_err(), "each has its own key");
    }
}
