//! The home of a person who works with many programs, and the environment they start agentd in.

use crate::support::{Desk, write_program};
use std::fs;
use std::path::Path;

/// Files of the home.
const FILES: [(&str, &str); 33] = [
    (".bashrc", "alias ll='ls -l'\n"),
    (".profile", ". ~/.bashrc\n"),
    (".bash_history", "mysql -psecret-of-history\n"),
    (
        ".gitconfig",
        "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n\
         [alias]\n\tst = status --short\n[core]\n\texcludesFile = ~/.gitignore_global\n\
         \tattributesFile = ~/.gitattributes_global\n[commit]\n\ttemplate = ~/.gitmessage\n\
         [protocol \"file\"]\n\tallow = always\n[include]\n\tpath = ~/.gitconfig-work\n",
    ),
    (".gitconfig-work", "[alias]\n\tlg = log --format=%s\n"),
    (".gitignore_global", "*.swp\n.env\n"),
    (".gitattributes_global", "*.dat binary\n"),
    (".gitmessage", "# Say why.\n"),
    (".git-credentials", "https://ada:secret-of-git@example.org\n"),
    (".netrc", "machine example.org login ada password secret-of-netrc\n"),
    (".ssh/id_ed25519", "secret-of-ssh\n"),
    (".ssh/config", "Host *\n\tServerAliveInterval 30\n"),
    (".aws/credentials", "[default]\naws_secret_access_key = secret-of-aws\n"),
    (".azure/accessTokens.json", "secret-of-azure\n"),
    (".config/gcloud/credentials.db", "secret-of-gcloud\n"),
    (".config/gh/hosts.yml", "oauth_token: secret-of-gh\n"),
    (".config/mytool/settings", "colour = blue\n"),
    (".config/pip/pip.conf", "[global]\ndisable-pip-version-check = true\n"),
    (".docker/config.json", "{\"auths\":{\"example.org\":{\"auth\":\"secret-of-docker\"}}}\n"),
    (".kube/config", "token: secret-of-kube\n"),
    (".gnupg/private-keys-v1.d/key", "secret-of-gnupg\n"),
    (".password-store/bank.gpg", "secret-of-pass\n"),
    (".mozilla/firefox/logins.json", "secret-of-firefox\n"),
    (".npmrc", "fund=false\naudit=false\n//registry.example.org/:_authToken=secret-of-npm\n"),
    (".pypirc", "[pypi]\npassword = secret-of-pypi\n"),
    (".pgpass", "*:*:*:*:secret-of-postgres\n"),
    (".cargo/config.toml", "[net]\nretry = 1\n"),
    (".cargo/credentials.toml", "[registry]\ntoken = \"secret-of-cargo\"\n"),
    (".m2/settings.xml", "<settings><servers/></settings>\n"),
    (".vimrc", "set nocompatible\n"),
    (".local/share/mytool/lib/data", "of-the-tool\n"),
    (".local/share/keyrings/login.keyring", "secret-of-keyring\n"),
    ("Documents/letter.txt", "secret-of-documents\n"),
];

/// Programs of the home: their paths and their output.
const PROGRAMS: [(&str, &str); 7] = [
    (".local/bin/mytool", "cat \"${0%/bin/mytool}/share/mytool/lib/data\""),
    (".local/share/mise/shims/misetool", "echo by-mise"),
    (".volta/bin/voltatool", "echo by-volta"),
    (".bun/bin/buntool", "echo by-bun"),
    (".deno/bin/denotool", "echo by-deno"),
    (".asdf/shims/asdftool", "echo by-asdf"),
    ("tools/bin/owntool", "echo by-own-folder"),
];

const VARIABLES: [(&str, &str); 15] = [
    ("LANG", "C.UTF-8"),
    ("TZ", "Europe/Berlin"),
    ("SHELL", "/bin/bash"),
    ("TERM", "xterm-256color"),
    ("EDITOR", "vi"),
    ("CI", "of-the-person"),
    ("NO_COLOR", "1"),
    ("CFLAGS", "-O0"),
    ("RUST_BACKTRACE", "1"),
    ("GOFLAGS", "-mod=mod"),
    ("NODE_OPTIONS", "--max-old-space-size=1024"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("AWS_SECRET_ACCESS_KEY", "secret-of-environment"),
    ("GITHUB_TOKEN", "secret-of-github"),
    ("DATABASE_URL", "postgres://ada:secret-of-database@db/x"),
];

/// Fills the home of a desk.
pub fn furnish(desk: &Desk) {
    let home = desk.home();
    for (name, text) in FILES {
        write(&home.join(name), text);
    }
    for (name, script) in PROGRAMS {
        fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
        write_program(&home.join(name), script);
    }
    // Each row is one round of the model.
    write(&home.join(".config/agentd/config.toml"), "[budget]\nrounds = 1000\n");
    write(&desk.outside().join("other/notes.txt"), "secret-of-another-project\n");
    write(&desk.state().join("sessions/other/journal"), "secret-of-another-session\n");
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The person's environment: their folders of programs first, then the machine's.
pub fn environment(desk: &Desk) -> Vec<(String, String)> {
    let home = desk.home().display().to_string();
    let folders = PROGRAMS.map(|(name, _)| name.rsplit_once('/').unwrap().0);
    let mut path: Vec<String> = folders.map(|folder| format!("{home}/{folder}")).into();
    let own = std::env::var("HOME").unwrap_or_default();
    let machine = std::env::var("PATH").unwrap();
    // Of the user who runs the tests, only cargo's folder.
    path.extend(
        machine
            .split(':')
            .filter(|folder| !folder.starts_with(&own) || folder.ends_with("/.cargo/bin"))
            .map(str::to_owned),
    );
    let mut all: Vec<(String, String)> =
        VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    all.push(("PATH".to_owned(), path.join(":")));
    // Programs name folders of /tmp by it, which another user of the machine may have made.
    let name = format!("ada{}", nix::unistd::geteuid());
    all.extend([("USER".to_owned(), name.clone()), ("LOGNAME".to_owned(), name)]);
    for (name, usual) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let place = crate::support::tool_home(name, usual);
        all.push((name.to_owned(), place.display().to_string()));
    }
    all
}
