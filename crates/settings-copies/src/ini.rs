//! Line-based settings of npm and pip: a key and its value, some in sections. Keys on a tool's
//! allow-list are copied, without sign-ins and tokens in URLs, and without comments.

use crate::cleaned::CleanedSettings;
use config::secrets::{without_sign_in, without_tokens};

/// Meaning of an indented line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndentedLine {
    /// Continues the value above it.
    Value,
    /// A line like any other.
    Line,
}

/// Keys of npm and pnpm. Keys that begin with `//` configure one registry; nearly all of them are
/// secrets.
const OF_NPM: &[&str] = &[
    "registry",
    "proxy",
    "http-proxy",
    "https-proxy",
    "noproxy",
    "ca",
    "cafile",
    "strict-ssl",
    "audit",
    "audit-level",
    "auto-install-peers",
    "before",
    "engine-strict",
    "fetch-retries",
    "fetch-retry-maxtimeout",
    "fetch-retry-mintimeout",
    "fetch-timeout",
    "foreground-scripts",
    "fund",
    "hoist",
    "ignore-scripts",
    "include",
    "init-author-email",
    "init-author-name",
    "init-author-url",
    "init-license",
    "init-version",
    "init.author.email",
    "init.author.name",
    "init.author.url",
    "init.license",
    "init.version",
    "install-links",
    "install-strategy",
    "legacy-peer-deps",
    "loglevel",
    "maxsockets",
    "min-release-age",
    "minimum-release-age",
    "node-linker",
    "omit",
    "package-lock",
    "prefer-offline",
    "progress",
    "save-exact",
    "save-prefix",
    "shamefully-hoist",
    "strict-peer-deps",
    "strict-peer-dependencies",
    "tag",
    "tag-version-prefix",
    "update-notifier",
];

/// Keys of pip, in any section.
const OF_PIP: &[&str] = &[
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "trusted-host",
    "proxy",
    "cert",
    "timeout",
    "default-timeout",
    "retries",
    "break-system-packages",
    "disable-pip-version-check",
    "no-binary",
    "no-build-isolation",
    "no-cache-dir",
    "no-color",
    "no-warn-script-location",
    "only-binary",
    "pre",
    "prefer-binary",
    "progress-bar",
    "quiet",
    "require-hashes",
    "require-virtualenv",
    "root-user-action",
    "upgrade-strategy",
    "use-feature",
    "verbose",
];

/// Keys whose value is a file with certificates.
const FILES: [&str; 2] = ["cafile", "cert"];

/// One setting.
#[derive(Debug)]
struct IniEntry {
    section: String,
    key: String,
    value: Vec<String>,
}

/// npm's settings without secrets.
pub(crate) fn npm(texts: &[String], copied: &mut dyn FnMut(&str) -> String) -> CleanedSettings {
    let entries = texts.iter().flat_map(|text| entries(text, IndentedLine::Line));
    let of_scope = |key: &str| key.starts_with('@') && key.ends_with(":registry");
    let given = |key: &str| of_scope(key) || OF_NPM.contains(&key.trim_end_matches("[]"));
    clean(entries.collect(), given, copied)
}

/// pip's settings without secrets. Of two files the later one takes precedence, and no key occurs
/// twice.
pub(crate) fn pip(texts: &[String], copied: &mut dyn FnMut(&str) -> String) -> CleanedSettings {
    let mut all: Vec<IniEntry> = Vec::new();
    for entry in texts.iter().flat_map(|text| entries(text, IndentedLine::Value)) {
        all.retain(|other| (&other.section, &other.key) != (&entry.section, &entry.key));
        all.push(entry);
    }
    all.sort_by(|one, other| one.section.cmp(&other.section));
    clean(all, |key| OF_PIP.contains(&key.replace('_', "-").as_str()), copied)
}

fn entries(text: &str, indented: IndentedLine) -> Vec<IniEntry> {
    let mut found: Vec<IniEntry> = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        let bare = without_comment(line.trim(), indented);
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        let more = indented == IndentedLine::Value && line.starts_with([' ', '\t']);
        if let (true, Some(last)) = (more, found.last_mut()) {
            last.value.push(bare.to_owned());
        } else if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.to_owned();
        } else {
            let split = match indented {
                IndentedLine::Value => bare.split_once(['=', ':']),
                IndentedLine::Line => bare.split_once('='),
            };
            let (key, value) = split.unwrap_or((bare, "true"));
            let (key, value) = (key.trim().to_owned(), vec![value.trim().to_owned()]);
            found.push(IniEntry { section: section.clone(), key, value });
        }
    }
    found
}

/// Removes the comment after a value. npm keeps the sign if it is quoted or follows a backslash.
/// pip has no such comments, but none of its URLs has a blank before such a sign.
fn without_comment(line: &str, indented: IndentedLine) -> &str {
    let value = line.split_once('=').map_or(line, |(_, value)| value.trim());
    let quoted = |sign: char| value.len() > 1 && value.starts_with(sign) && value.ends_with(sign);
    if quoted('"') || quoted('\'') {
        return line;
    }
    let mut before = ' ';
    for (at, sign) in line.char_indices() {
        let begins = match indented {
            IndentedLine::Line => before != '\\',
            IndentedLine::Value => before.is_whitespace(),
        };
        // A password may contain such a sign.
        let rest = line.get(at..).unwrap_or_default().split_whitespace().next();
        let in_sign_in = !before.is_whitespace() && rest.is_some_and(|rest| rest.contains('@'));
        if begins && !in_sign_in && ['#', ';'].contains(&sign) {
            return line.get(..at).unwrap_or(line).trim_end();
        }
        before = sign;
    }
    line
}

fn clean(
    entries: Vec<IniEntry>,
    given: impl Fn(&str) -> bool,
    copied: &mut dyn FnMut(&str) -> String,
) -> CleanedSettings {
    let mut clean = CleanedSettings::default();
    let mut section = String::new();
    for IniEntry { section: of, key, mut value } in entries {
        if !given(&key) {
            clean.left_out.push(key);
            continue;
        }
        let mut has_token = false;
        for line in &mut value {
            if let Some(without) = without_tokens(line) {
                (*line, has_token) = (without, true);
            }
        }
        if has_token {
            clean.left_out.push(format!("token in {key}"));
            if value.iter().all(String::is_empty) {
                continue;
            }
            let first = value.iter().take(1).cloned().collect::<Vec<_>>();
            let more = value.into_iter().skip(1).filter(|line| !line.is_empty());
            value = first.into_iter().chain(more).collect();
        }
        if section != of {
            clean.text.push_str(&format!("[{of}]\n"));
            section = of;
        }
        let mut value = value.join("\n    ");
        if let Some(without) = without_sign_in(&key, &value) {
            clean.left_out.push(format!("password in {key}"));
            value = without;
        }
        if FILES.contains(&key.as_str()) {
            value = copied(value.trim_matches('"'));
        }
        clean.text.push_str(&format!("{key} = {value}\n"));
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(path: &str) -> String {
        format!("/copy{path}")
    }

    #[test]
    fn npm_s_registries_stay_and_their_tokens_do_not() {
        let text = "# mine\n\
            registry=https://ann:s3cret@npm.example.com/\n\
            @corp:registry = https://npm.corp.example/\n\
              //npm.corp.example/:_authToken=s3cret\n\
            //npm.corp.example/:username=ann\n\
            //npm.corp.example/:_password=s3cret\n\
            _auth = s3cret\n_authToken=${NPM_TOKEN}\nemail=a@b\nkey=\"s3cret\"\n\
            proxy=http://ann:s3cret@proxy:3128/\ncafile=/etc/ca.pem\n\
            ca[]=\"one\"\nca[]=\"two\"\nignore-scripts\nnode-options=--require /x.js\n";
        let clean = npm(&[text.to_owned()], &mut copied);
        assert_eq!(
            clean.text,
            "registry = https://npm.example.com/\n@corp:registry = https://npm.corp.example/\n\
             proxy = http://proxy:3128/\ncafile = /copy/etc/ca.pem\nca[] = \"one\"\nca[] = \"two\"\n\
             ignore-scripts = true\n"
        );
        assert_eq!(
            clean.left_out,
            [
                "password in registry",
                "//npm.corp.example/:_authToken",
                "//npm.corp.example/:username",
                "//npm.corp.example/:_password",
                "_auth",
                "_authToken",
                "email",
                "key",
                "password in proxy",
                "node-options",
            ]
        );
    }

    #[test]
    fn keys_in_every_place_of_an_address_stay_outside() {
        for (line, given) in [
            ("registry=https://npm-proxy.fury.io/s3cret/ann/", ""),
            ("registry=https://npm.example/?token=s3cret", ""),
            ("registry=https://npm.example/s3cret0123456789/", ""),
            ("@corp:registry=https://npm.example/?s3cret", ""),
            ("proxy=ann:s3cret@proxy:3128", "proxy = proxy:3128\n"),
            ("registry=https://npm.example/ ; s3cret", "registry = https://npm.example/\n"),
            ("registry=https://npm.example/#s3cret", "registry = https://npm.example/\n"),
            (
                "registry=https://repo.example/artifactory/api/npm/npm-virtual/",
                "registry = https://repo.example/artifactory/api/npm/npm-virtual/\n",
            ),
            ("proxy=http://ann:s3#cret@proxy:3128", ""),
            ("proxy=ann:s3#cret@proxy:3128", "proxy = proxy:3128\n"),
            ("registry=https://ann:s3#cret@npm.example/", ""),
            ("registry=https://ann:s3/cret@npm.example/", ""),
            ("tag=next#s3cret", "tag = next\n"),
            ("noproxy=a.example,b", "noproxy = a.example,b\n"),
            ("init-author-name=\"A # B\"", "init-author-name = \"A # B\"\n"),
        ] {
            let clean = npm(&[line.to_owned()], &mut copied);
            assert_eq!(clean.text, given, "{line}");
        }
        for (text, given) in [
            ("index-url = https://pypi.example/s3cret0123456789/simple", ""),
            ("index-url = https://pypi.example/simple?token=s3cret", ""),
            ("proxy = ann:s3cret@proxy:3128", "proxy = proxy:3128\n"),
            (
                "extra-index-url =\n  https://one.example/simple\n  https://dl.cloudsmith.io/s3cret/r/simple",
                "extra-index-url = \n    https://one.example/simple\n",
            ),
            (
                "extra-index-url = https://one.example/simple https://two.example/?s3cret",
                "extra-index-url = https://one.example/simple\n",
            ),
            (
                "index-url = https://pypi.org/simple # s3cret",
                "index-url = https://pypi.org/simple\n",
            ),
            ("index-url = https://pypi.org/simple", "index-url = https://pypi.org/simple\n"),
        ] {
            let clean = pip(&[format!("[global]\n{text}\n")], &mut copied);
            assert_eq!(clean.text.replace("[global]\n", ""), given, "{text}");
        }
    }

    #[test]
    fn pip_s_indexes_stay_and_their_passwords_do_not() {
        let older = "[global]\nindex-url = https://old.example/simple\ntimeout: 60\n";
        let text = "[global]\nindex-url = https://__token__:s3cret@pypi.example/simple\n\
            extra-index-url =\n    https://one.example/simple\n    https://s3cret@two.example/simple\n\
            client_cert = /home/ann/key.pem\ncert = /home/ann/ca.pem\n\
            [install]\ntrusted-host = pypi.example\n";
        let clean = pip(&[older.to_owned(), text.to_owned()], &mut copied);
        assert_eq!(
            clean.text,
            "[global]\ntimeout = 60\nindex-url = https://pypi.example/simple\n\
             extra-index-url = \n    https://one.example/simple\n    https://two.example/simple\n\
             cert = /copy/home/ann/ca.pem\n[install]\ntrusted-host = pypi.example\n"
        );
        assert_eq!(
            clean.left_out,
            ["password in index-url", "password in extra-index-url", "client_cert"]
        );
    }
}
