//! A process's environment as a value, so that reading it is a parameter and not an act.

use crate::secrets::{holds_secret, sounds_secret};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Variables that commands get: those that programs need to work. All others are removed, keys
/// above all.
const COMMANDS_SEE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "CI",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "SOURCE_DATE_EPOCH",
    // Compilers and their options.
    "CC",
    "CXX",
    "FC",
    "AR",
    "NM",
    "RANLIB",
    "LD",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "FFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "PKG_CONFIG",
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_LIBDIR",
    "PKG_CONFIG_SYSROOT_DIR",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "NODE_OPTIONS",
    "NODE_ENV",
    // Python's that name no code.
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONHASHSEED",
    "PYTHONWARNINGS",
    "PYTHONOPTIMIZE",
    "PYTHONFAULTHANDLER",
    "PYTHONNOUSERSITE",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_VERSION",
    "RBENV_VERSION",
    "CARGO_INCREMENTAL",
    "CARGO_BUILD_JOBS",
    "CARGO_BUILD_TARGET",
    "CARGO_TERM_COLOR",
    "GOFLAGS",
    "GOPROXY",
    "GONOPROXY",
    "GOPRIVATE",
    "GOSUMDB",
    "GONOSUMDB",
    "GOINSECURE",
    "GOWORK",
    "GO111MODULE",
    "GOTOOLCHAIN",
    "GOOS",
    "GOARCH",
];

/// How the names of others begin.
const COMMANDS_SEE_ALL_OF: [&str; 5] = ["LC_", "RUST", "CMAKE_", "CARGO_PROFILE_", "CGO_"];

/// Variables with the same value in every command, since no person reads its screen or answers it.
///
/// `PAGER` also stands for `MANPAGER`, `SYSTEMD_PAGER`, `GH_PAGER`, `AWS_PAGER` and their like, which a
/// command does not see. `GIT_PAGER` and `GIT_ASKPASS` outdo the person's git configuration; an empty
/// `GIT_ASKPASS` starts no program.
pub const FOR_COMMANDS: [(&str, &str); 7] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// Variables that name the directories of tool chains; the policy of commands grants each of them.
pub const TOOL_HOMES: [&str; 21] = [
    "RUSTUP_HOME",
    "CARGO_HOME",
    "SDKMAN_DIR",
    "JAVA_HOME",
    "GOPATH",
    "GOROOT",
    "MAMBA_ROOT_PREFIX",
    "DOTNET_ROOT",
    "MISE_DATA_DIR",
    "ASDF_DATA_DIR",
    "VOLTA_HOME",
    "NVM_DIR",
    "FNM_DIR",
    "BUN_INSTALL",
    "DENO_INSTALL",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "PIPX_HOME",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_DIR",
];

/// Variables that name files or directories of certificates.
pub const CERTIFICATES: [&str; 7] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
];

/// The policies' name for the directory with copies of the user's settings.
pub const SETTINGS_HOME: &str = "AGENTD_SETTINGS";

/// The name of the folders of plugins, for the same.
pub const PLUGIN_FOLDERS: &str = "AGENTD_PLUGINS";
/// The name of what links in the home's directories of skills lead to.
pub const SKILL_FOLDERS: &str = "AGENTD_SKILLS";
/// The same of cargo's settings in the person's home, which cargo also finds from a project below it.
/// They are no place of a call's where they hold keys.
pub const CARGO_SETTINGS: &str = "AGENTD_CARGO_CONFIG";
/// The same of Maven's and of Gradle's.
pub const MAVEN_SETTINGS: &str = "AGENTD_MAVEN_SETTINGS";
/// See [`MAVEN_SETTINGS`].
pub const GRADLE_SETTINGS: &str = "AGENTD_GRADLE_PROPERTIES";

/// True if commands get this variable: it is in the list above, its name is not the name of a key,
/// and its value contains no key.
#[must_use]
pub fn command_may_see(name: &str, value: &str) -> bool {
    let known = COMMANDS_SEE.contains(&name)
        || TOOL_HOMES.contains(&name)
        || CERTIFICATES.contains(&name)
        || COMMANDS_SEE_ALL_OF.iter().any(|beginning| name.starts_with(beginning));
    known && (name == "CARGO_HOME" || !sounds_secret(name)) && !holds_secret(name, value)
}

/// True if `sandbox.env` adds this variable to those of commands: by name, or by prefix with a `*`.
#[must_use]
pub fn is_added(names: &[String], name: &str, value: &str) -> bool {
    let fits = |wanted: &String| match wanted.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == wanted,
    };
    names.iter().any(fits) && !sounds_secret(name) && !holds_secret(name, value)
}

/// True if this is a valid element of `sandbox.env`.
pub(crate) fn can_be_added(text: &str) -> bool {
    let (name, least) = match text.strip_suffix('*') {
        // A prefix of one or two letters would match too many variables.
        Some(beginning) => (beginning, 3),
        None => (text, 1),
    };
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    let is_set = FOR_COMMANDS.iter().any(|(own, _)| *own == name);
    name.len() >= least && name.len() <= 256 && is_name && !is_set && !sounds_secret(name)
}

/// Variables and their values. A variable that is empty counts as unset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// The environment of this process; variables whose names are no UTF-8 are left out.
    #[must_use]
    pub fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .collect()
    }

    /// Sets a variable, here and not in this process.
    pub fn set(&mut self, name: String, value: OsString) {
        self.0.insert(name, value);
    }

    /// The value, where it is set and not empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The value as a path, where it is absolute. XDG asks to ignore any other.
    #[must_use]
    pub fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(pairs: T) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_tool_home_is_a_line_of_the_policy_and_each_such_line_a_tool_home() {
        let path = "../../config/confinement/parts/tool-chains.toml";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once("at = \"$"));
        let names = lines.filter_map(|(_, rest)| rest.split(['/', '"']).next());
        // PATH names folders of programs, and these name copies that agentd makes.
        let own = [
            "PATH",
            SETTINGS_HOME,
            PLUGIN_FOLDERS,
            CARGO_SETTINGS,
            MAVEN_SETTINGS,
            GRADLE_SETTINGS,
        ];
        let named: BTreeSet<&str> = names.filter(|name| !own.contains(name)).collect();
        let known: BTreeSet<&str> = TOOL_HOMES.into_iter().chain(CERTIFICATES).collect();
        assert_eq!(named, known);
    }

    #[test]
    fn names_are_added_one_by_one_or_by_their_beginning_and_keys_never() {
        for (text, can_be) in [
            ("DATABASE_HOST", true),
            ("MYAPP_*", true),
            ("*", false),
            ("A*", false),
            ("MY-APP", false),
            ("1APP", false),
            ("A B", false),
            ("", false),
            ("TERM", false),
            ("GITHUB_TOKEN", false),
            ("AWS_SECRET_*", false),
            ("SSH_AUTH_SOCK", false),
            ("npm_config_userconfig", false),
            ("MYSQL_PWD", false),
            ("GITHUB_PAT", false),
            ("AZURE_DEVOPS_EXT_PAT", false),
            ("BW_SESSION", false),
            ("OP_SESSION_*", false),
            ("OP_SESSION_team", false),
            ("SSHPASS", false),
            ("LDAPPASS", false),
            ("DBPASS", false),
            ("DB_PASS2", false),
            ("JWT", false),
            ("GH_BEARER", false),
            ("SIGNINGKEY", false),
            ("SENTRY_DSN", false),
            ("SLACK_WEBHOOK_URL", false),
            ("NETRC", false),
            ("KRB5CCNAME", false),
            ("RCLONE_CONFIG", false),
            ("PWD", true),
            ("OLDPWD", true),
            ("XDG_SESSION_TYPE", true),
            ("DESKTOP_SESSION", true),
            ("CACHE_BYPASS", true),
            ("KEYBOARD_LAYOUT", true),
            ("PATTERN", true),
        ] {
            assert_eq!(can_be_added(text), can_be, "{text}");
        }
        let names = ["DATABASE_URL".to_owned(), "MYAPP_*".to_owned()];
        for (name, value, passes) in [
            ("DATABASE_URL", "postgres://db/x", true),
            ("DATABASE_URL", "postgres://ada:secret@db/x", false),
            ("DATABASE_URL_OLD", "postgres://db/x", false),
            ("MYAPP_MODE", "test", true),
            ("MYAPP_API_KEY", "secret", false),
            ("OTHER", "x", false),
            ("MYAPP_DB", "root:s3cret@tcp(db)/x", false),
            ("MYAPP_DB", "root@tcp(db)/x", true),
            ("MYAPP_PROXY", "user:pw@proxy:3128", false),
            ("MYAPP_PROXY", "proxy:3128", true),
            ("MYAPP_DB", "Server=db;User Id=sa;Password=x", false),
            ("MYAPP_DB", "Server=db;Database=x", true),
            ("MYAPP_DB", "postgres://db/x?sslmode=disable", true),
            ("MYAPP_DB", "https://db/x?api_key=1", false),
            ("MYAPP_OPTIONS", "--url=x --token=y", false),
        ] {
            assert_eq!(is_added(&names, name, value), passes, "{name}={value}");
        }
    }

    #[test]
    fn what_programs_need_passes_and_no_key_does() {
        for (name, value, passes) in [
            ("CFLAGS", "-O2", true),
            ("RUSTFLAGS", "-C target-cpu=native", true),
            ("CMAKE_GENERATOR", "Ninja", true),
            ("GOPROXY", "https://proxy.example,direct", true),
            ("GOPROXY", "https://ann:secret@proxy.example,direct", false),
            ("NODE_OPTIONS", "--max-old-space-size=4096", true),
            ("PYTHONPATH", "/elsewhere", false),
            ("CARGO_REGISTRY_TOKEN", "secret", false),
            ("CARGO_REGISTRIES_OWN_TOKEN", "secret", false),
            ("AWS_SECRET_ACCESS_KEY", "secret", false),
            ("LD_PRELOAD", "/x.so", false),
            ("RUSTUP_TOOLCHAIN", "nightly", true),
            ("RUST_SIGNING_KEY", "secret", false),
            ("CARGO_HOME", "/c", true),
            ("PIP_CERT", "/c", true),
            ("PIP_INDEX_URL", "https://ann:secret@pypi.example/simple", false),
            ("GOPROXY", "https://proxy.example/artifactory/api/go/go-virtual", true),
            ("GOPROXY", "https://dl.cloudsmith.io/a8Kd92kdkdjK3x0q/corp/r/go/,direct", false),
            ("GOPROXY", "https://proxy.example/?token=x", false),
            ("GOPROXY", "https://proxy.example/?x", false),
            ("MAKEFLAGS", "-j8 --output-sync=target", true),
            ("MAKEFLAGS", "w -j8 --jobserver-auth=3,4", true),
            ("MAKEFLAGS", " -- API_TOKEN=abc", false),
            ("MAKEFLAGS", "w -- MODE=abc", false),
            ("MAKEFLAGS", "-j8 MODE=abc", false),
            ("CFLAGS", "-O2 -DAPI_TOKEN=abc", false),
            ("LDFLAGS", "-Wl,-rpath,/opt/a:/opt/python@3.11/lib", true),
            ("PATH", "/usr/bin:/opt/python@3.11/bin", true),
            ("LANGUAGE", "de:sr@latin:en", true),
            ("RUSTFLAGS", "--cfg x -C link-arg=-fuse-ld=lld", true),
        ] {
            assert_eq!(command_may_see(name, value), passes, "{name}={value}");
        }
    }
}
