//! Adds the authority of a session's proxies to those that commands trust. One bundle has the
//! machine's certificates, those that the owner's variables and settings name, and this authority.

use crate::{SettingsCopies, SettingsOwner};
use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Files with the machine's certificates on common distributions.
const OF_MACHINE: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Variables that name a file in place of the machine's. npm's variable overrides its settings, so
/// its bundle includes the machine's certificates.
const INSTEAD: [&str; 8] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
    "NPM_CONFIG_CAFILE",
];
/// The variable that names a file in addition to Node's own certificates.
const BESIDE: &str = "NODE_EXTRA_CA_CERTS";
/// Size limit of a file. Those of distributions have some 250 KB.
const CAP: u64 = 4 << 20;
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Adds the authority to the copies, and variables that point programs to it.
pub(crate) fn add(
    person: &SettingsOwner<'_>,
    dir: &Path,
    authority: &str,
    copies: &mut SettingsCopies,
) {
    let of_variable = |name| person.value(name).map(|file| blocks(&read(Path::new(file))));
    let mut machine: Vec<String> = OF_MACHINE
        .iter()
        .map(|file| blocks(&read(Path::new(file))))
        .find(|it| !it.is_empty())
        .unwrap_or_default();
    machine.extend(INSTEAD.into_iter().filter_map(of_variable).flatten());
    // Without the machine's certificates a bundle would make programs refuse all other servers.
    let has_machine_s = !machine.is_empty();
    // Bundles named in settings override the variables, so they need the authority too.
    for (_, bytes) in &mut copies.files {
        let own = blocks(bytes);
        if !own.is_empty() {
            bytes.push(b'\n');
            bytes.extend_from_slice(authority.as_bytes());
            machine.extend(own);
        }
    }
    let mut put = |name: &str, mut certificates: Vec<String>| {
        certificates.push(authority.to_owned());
        let mut known = BTreeSet::new();
        certificates.retain(|certificate| known.insert(certificate.clone()));
        let whole = certificates.concat();
        let name = format!("certificates/{name}");
        let path = dir.join(&name).display().to_string();
        copies.files.push((name.into(), whole.into_bytes()));
        path
    };
    let node = put("node.pem", of_variable(BESIDE).unwrap_or_default());
    copies.variables.push((BESIDE.to_owned(), node));
    if has_machine_s {
        let all = put("all.pem", machine);
        let variables = INSTEAD.map(|name| (name.to_owned(), all.clone()));
        copies.variables.extend(variables);
    }
}

/// The content of a certificate file; empty if it is not a regular file within the size limit.
fn read(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Opening a pipe would wait for its writer.
    let opened = std::fs::File::options()
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
        .open(file);
    let opened = opened.ok().filter(|file| file.metadata().is_ok_and(|it| it.is_file()));
    let read = opened.map(|file| file.take(CAP).read_to_end(&mut bytes));
    if matches!(read, Some(Ok(_))) { bytes } else { Vec::new() }
}

/// The certificates in a file and nothing else: a key may be in the same file.
fn blocks(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let (mut found, mut block): (Vec<String>, Option<String>) = (Vec::new(), None);
    for line in text.lines().map(str::trim) {
        if line == BEGIN {
            block = Some(String::new());
        }
        let Some(open) = &mut block else { continue };
        open.push_str(line);
        open.push('\n');
        if line == END {
            found.extend(block.take());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::copy_settings;
    use std::collections::BTreeMap;

    fn certificate(name: &str) -> String {
        format!("{BEGIN}\n{name}\n{END}\n")
    }

    #[test]
    fn all_that_the_person_trusts_is_in_the_bundle_and_no_key_is() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
            at(name).display().to_string()
        };
        let key = "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n";
        let one = write("one.pem", &format!("# mine\n{key}{}", certificate("one")));
        let node = write("node.pem", &certificate("node"));
        let corp = write("corp.pem", &certificate("corp"));
        let npm = write("npm.pem", &certificate("npm"));
        write("home/.gitconfig", &format!("[http]\n\tsslCAInfo = {corp}\n"));
        write("home/.npmrc", &format!("cafile={npm}\n"));
        let env = [("SSL_CERT_FILE".to_owned(), one), (BESIDE.to_owned(), node)];
        let person = SettingsOwner {
            env: &env,
            home: at("home"),
            writable: Vec::new(),
            elsewhere: Vec::new(),
            forbidden: Vec::new(),
        };
        let dir = at("dir");
        let ours = certificate("ours");
        let given = copy_settings(&person, &dir, Some(&ours)).unwrap();
        let variables: BTreeMap<_, _> = given.variables.into_iter().collect();
        let text = |name: &str| std::fs::read_to_string(&variables[name]).unwrap();
        for name in INSTEAD {
            for certificate in ["one", "corp", "npm", "ours"].map(certificate) {
                assert!(text(name).contains(&certificate), "{name}: {certificate}");
            }
            assert!(!text(name).contains("secret") && !text(name).contains("node"), "{name}");
        }
        assert_eq!(text(BESIDE), format!("{}{ours}", certificate("node")));
        let npm = std::fs::read_to_string(dir.join("npm/certificates-0")).unwrap();
        assert!(npm.contains(&certificate("npm")) && npm.contains(&ours), "{npm}");

        let without = copy_settings(&person, &dir, None).unwrap();
        assert!(!without.variables.iter().any(|(name, _)| name == BESIDE), "{without:?}");
        assert!(!dir.join("certificates").exists());
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        for text in ["", "ca=\"-----BEGIN CERTIFICATE-----\\nx\"", "-----BEGIN CERTIFICATE-----\nx"]
        {
            assert_eq!(blocks(text.as_bytes()), Vec::<String>::new(), "{text}");
        }
        assert_eq!(read(Path::new("/nonexistent")), b"");
        assert_eq!(read(Path::new("/")), b"");
    }
}
