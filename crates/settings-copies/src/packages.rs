//! Settings of package managers: their files, how they are cleaned, and how the program finds the
//! copy.

use crate::cleaned::CleanedSettings;
use crate::{SettingsCopies, SettingsOwner, ini, toml};
use config::secrets::{address_holds_secret, is_sign_in, signs_in};
use sandbox::small_file;
use std::path::{Path, PathBuf};

/// Cleans the settings of these files, of which the last takes precedence; `copied` returns the
/// path of a file's copy.
type Cleaner = fn(&[String], copied: &mut dyn FnMut(&str) -> String) -> CleanedSettings;

/// The settings of one program.
struct Package {
    name: &'static str,
    /// A variable that names the file instead.
    moved_by: &'static [&'static str],
    /// Relative to the home, or to another directory by [`SettingsBase`].
    files: &'static [(SettingsBase, &'static str)],
    clean: Cleaner,
    /// Path of the copy.
    to: &'static str,
    lead: CopyPointer,
}

#[derive(Clone, Copy)]
enum SettingsBase {
    Home,
    Config,
    Variable(&'static str),
}

/// How the program finds the copy.
#[derive(Clone, Copy)]
enum CopyPointer {
    /// A variable with its path.
    Path(&'static str),
    /// The list of directories with the machine's settings, in which `xdg` comes first. A project's
    /// own settings must take precedence over these, and no variable of uv allows that.
    Machine,
    /// By cargo's home, which `tools` makes.
    CargoHome,
}

const ALL: &[Package] = &[
    Package {
        name: "npm",
        moved_by: &["NPM_CONFIG_USERCONFIG", "npm_config_userconfig"],
        files: &[(SettingsBase::Home, ".npmrc")],
        clean: ini::npm,
        to: "npm/npmrc",
        lead: CopyPointer::Path("NPM_CONFIG_USERCONFIG"),
    },
    Package {
        name: "pip",
        moved_by: &["PIP_CONFIG_FILE"],
        files: &[(SettingsBase::Home, ".pip/pip.conf"), (SettingsBase::Config, "pip/pip.conf")],
        clean: ini::pip,
        to: "xdg/pip/pip.conf",
        lead: CopyPointer::Machine,
    },
    Package {
        name: "uv",
        moved_by: &["UV_CONFIG_FILE"],
        files: &[(SettingsBase::Config, "uv/uv.toml")],
        clean: toml::uv,
        to: "xdg/uv/uv.toml",
        lead: CopyPointer::Machine,
    },
    Package {
        name: "cargo",
        moved_by: &[],
        files: &[
            (SettingsBase::Home, ".cargo/config.toml"),
            (SettingsBase::Home, ".cargo/config"),
            (SettingsBase::Variable("CARGO_HOME"), "config.toml"),
            (SettingsBase::Variable("CARGO_HOME"), "config"),
        ],
        clean: toml::cargo,
        to: "cargo/config.toml",
        lead: CopyPointer::CargoHome,
    },
];

/// Makes the copies of existing settings.
pub(crate) fn copy(person: &SettingsOwner<'_>, dir: &Path, into: &mut SettingsCopies) {
    for package in ALL {
        let files = files(person, package);
        into.left_out.extend(files.iter().filter_map(|file| person.link_warning(file)));
        let texts = texts(person, &files);
        if texts.is_empty() {
            continue;
        }
        let mut more = Vec::new();
        let clean = (package.clean)(&texts, &mut |file| {
            let file = expanded(file, &person.home);
            let name = format!("{}/certificates-{}", package.name, more.len());
            match person.to_copy(&file) {
                Some(bytes) => {
                    more.push((PathBuf::from(&name), bytes));
                    dir.join(name).display().to_string()
                }
                None => file.display().to_string(),
            }
        });
        into.files.extend(more);
        into.files.push((package.to.into(), clean.text.into_bytes()));
        into.left_out.extend(clean.left_out.iter().map(|key| format!("{}'s {key}", package.name)));
        let (name, value) = match package.lead {
            CopyPointer::Path(name) => (name, dir.join(package.to).display().to_string()),
            CopyPointer::Machine => ("XDG_CONFIG_DIRS", machine(person, dir)),
            CopyPointer::CargoHome => (config::SETTINGS_HOME, dir.display().to_string()),
        };
        if !into.variables.iter().any(|(other, _)| other == name) {
            into.variables.push((name.to_owned(), value));
        }
    }
}

/// Settings that programs read only in the home, with the names that policies use. They cannot be
/// replaced by a copy, and the program fails if it finds them and may not read them.
const IN_HOME: [(&str, &str); 4] = [
    (config::CARGO_SETTINGS, ".cargo/config"),
    (config::CARGO_SETTINGS, ".cargo/config.toml"),
    (config::MAVEN_SETTINGS, ".m2/settings.xml"),
    (config::GRADLE_SETTINGS, ".gradle/gradle.properties"),
];
/// Elements of Maven's settings without secrets and without freely named properties. Servers have
/// passwords and headers, profiles have properties.
const OF_MAVEN: [&str; 18] = [
    "settings",
    "localrepository",
    "interactivemode",
    "offline",
    "plugingroups",
    "plugingroup",
    "servers",
    "mirrors",
    "mirror",
    "proxies",
    "proxy",
    "id",
    "name",
    "url",
    "mirrorof",
    "host",
    "port",
    "nonproxyhosts",
];
/// More such elements, whose values are switches.
const HOW_OF_MAVEN: [&str; 4] = ["active", "protocol", "blocked", "layout"];
/// Prefixes of Gradle properties without secrets. Any other property may be user-defined.
const OF_GRADLE: [&str; 12] = [
    "org.gradle.caching=",
    "org.gradle.parallel=",
    "org.gradle.daemon=",
    "org.gradle.workers.max=",
    "org.gradle.configureondemand=",
    "org.gradle.console=",
    "org.gradle.configuration-cache=",
    "systemprop.http.proxyhost=",
    "systemprop.http.proxyport=",
    "systemprop.https.proxyhost=",
    "systemprop.https.proxyport=",
    "android.useandroidx=",
];

/// Files without secrets, and the names of the others.
pub(crate) fn in_home(person: &SettingsOwner<'_>) -> (Vec<(&'static str, PathBuf)>, Vec<String>) {
    let (mut open, mut closed) = (Vec::new(), Vec::new());
    for (known_as, name) in IN_HOME {
        let file = person.home.join(name);
        if let Some(led) = person.link_warning(&file) {
            closed.push(led);
            continue;
        }
        let Some(bytes) = small_file(&file) else { continue };
        let Ok(text) = String::from_utf8(bytes) else {
            closed.push(format!("~/{name} (not UTF-8)"));
            continue;
        };
        let is_cargo_s = known_as == config::CARGO_SETTINGS;
        let holds_keys = match known_as {
            config::CARGO_SETTINGS => !toml::cargo(&[text], &mut str::to_owned).left_out.is_empty(),
            config::MAVEN_SETTINGS => maven_may_hold_keys(&text),
            _ => gradle_may_hold_keys(&text),
        };
        match holds_keys {
            false => open.push((known_as, file)),
            // Cargo's settings have a copy, which lists its omissions.
            true if is_cargo_s => {}
            true => closed.push(format!("~/{name}")),
        }
    }
    (open, closed)
}

/// True if Maven settings may contain secrets. Everything unknown counts, including comments.
fn maven_may_hold_keys(text: &str) -> bool {
    let known = |tag: &str| {
        let Some((tag, _)) = tag.split_once('>') else { return false };
        let tag = tag.trim_start_matches('/').trim_end_matches(['/', '?']).to_lowercase();
        let mut words = tag.split_whitespace();
        let name = words.next().unwrap_or_default();
        let attributes: &[&str] = match name {
            "?xml" => &["version=", "encoding=", "standalone="],
            // The value of the last one is two URLs.
            "settings" => &["xmlns=", "xmlns:xsi=", "xsi:schemalocation=", "http://", "https://"],
            _ => &[],
        };
        let is_known = name == "?xml" || OF_MAVEN.contains(&name) || HOW_OF_MAVEN.contains(&name);
        is_known && words.all(|word| attributes.iter().any(|known| word.starts_with(known)))
    };
    address_holds_secret(text) || !text.split('<').skip(1).all(known)
}

/// True if Gradle properties may contain secrets. A backslash may hide a name or continue a line.
fn gradle_may_hold_keys(text: &str) -> bool {
    let known = |line: &str| {
        let line = line.trim().to_lowercase().replace([' ', '\t'], "");
        line.is_empty() || OF_GRADLE.iter().any(|name| line.starts_with(name))
    };
    let signs_in = text.split('=').any(is_sign_in) || signs_in(text);
    signs_in || text.contains('\\') || !text.split(['\n', '\r']).all(known)
}

/// The files with the program's settings, by the names that the program uses.
fn files(person: &SettingsOwner<'_>, package: &Package) -> Vec<PathBuf> {
    let moved = package.moved_by.iter().find_map(|name| person.value(name));
    let mut files: Vec<PathBuf> = match moved {
        Some(file) => vec![file.into()],
        None => {
            let place = |(base, name): &(SettingsBase, &str)| match base {
                SettingsBase::Home => Some(person.home.join(name)),
                SettingsBase::Config => Some(person.config_home().join(name)),
                SettingsBase::Variable(variable) => {
                    Some(Path::new(person.value(variable)?).join(name))
                }
            };
            package.files.iter().filter_map(place).collect()
        }
    };
    files.retain(|file| file.is_absolute());
    files
}

fn texts(person: &SettingsOwner<'_>, files: &[PathBuf]) -> Vec<String> {
    // Commands may read files that they could have written, so these need no copy.
    let files = files.iter().filter(|file| !person.can_be_written(file));
    files.filter_map(|file| String::from_utf8(small_file(file)?).ok()).collect()
}

fn expanded(file: &str, home: &Path) -> PathBuf {
    match file.strip_prefix("~/").or_else(|| file.strip_prefix("${HOME}/")) {
        Some(rest) => home.join(rest),
        None => file.into(),
    }
}

fn machine(person: &SettingsOwner<'_>, dir: &Path) -> String {
    let known = person.value("XDG_CONFIG_DIRS").unwrap_or("/etc/xdg");
    format!("{}:{known}", dir.join("xdg").display())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn cargo_s_settings_in_the_home_are_given_only_where_they_hold_no_key() {
        for (text, given) in [
            ("[net]\noffline = true\n", true),
            ("[env]\nCOLOR = \"#fff\"\n", true),
            ("# token = \"s3cret\"\n", false),
            ("[net]\noffline = true # s3cret\n", false),
            ("[registry]\n[registry]\ntoken = \"s3cret\"\n", false),
            ("[http]\nproxy = \"ann:s3cret@proxy:3128\"\n", false),
            ("[env]\nGITHUB_PAT = \"s3cret\"\n", false),
        ] {
            let home = tempfile::tempdir().unwrap();
            std::fs::create_dir(home.path().join(".cargo")).unwrap();
            std::fs::write(home.path().join(".cargo/config.toml"), text).unwrap();
            let home = home.path().to_owned();
            let person = SettingsOwner {
                env: &[],
                home,
                writable: Vec::new(),
                elsewhere: Vec::new(),
                forbidden: Vec::new(),
            };
            assert_eq!(!in_home(&person).0.is_empty(), given, "{text}");
        }
    }

    #[test]
    fn settings_that_may_hold_keys_are_known() {
        for (text, holds) in [
            ("<settings><servers/></settings>", false),
            (
                "<?xml version=\"1.0\"?>\n<settings xmlns=\"http://m.org/S\"><mirrors><mirror><id>a</id><url>https://maven.example.org/x@y</url></mirror></mirrors></settings>",
                false,
            ),
            (
                "<?xml version='1.0' encoding='UTF-8'?><settings xmlns='http://a' xmlns:xsi='http://b'\n xsi:schemaLocation='http://a https://c.xsd'/>",
                false,
            ),
            ("<settings token='x'/>", true),
            ("<?xml version='1.0' key='x'?><settings/>", true),
            ("<proxy><active>true</active><host>proxy</host><port>8080</port></proxy>", false),
            ("<servers><server><id>a</id></server></servers>", true),
            ("<servers><server\n><id>a</id></server></servers>", true),
            ("<servers><server\tx='y'><id>a</id></server></servers>", true),
            (
                "<profiles><profile><properties><art.api>x</art.api></properties></profile></profiles>",
                true,
            ),
            ("<proxy><host>proxy</host><Password>x</Password></proxy>", true),
            ("<!-- key ghp_x --><settings/>", true),
            ("<id key='x'>a</id>", true),
            ("<url>https://ann:x@maven.example.org/</url>", true),
            ("<url>https://maven.example.org/?k=x</url>", true),
            ("<url>https://maven.example.org/a8Kd92kdkdjK3x0q/m2/</url>", true),
            ("<url>https://repo.example.org/artifactory/maven-virtual</url>", false),
            ("<proxy><host>ann:x@proxy</host></proxy>", true),
        ] {
            assert_eq!(maven_may_hold_keys(text), holds, "{text}");
        }
        for (text, holds) in [
            ("org.gradle.parallel = true\n\nsystemProp.https.proxyHost=proxy\r\n", false),
            ("gpr.key=x", true),
            ("apiKey=x", true),
            ("nexusPwd=x", true),
            ("# storePass=x", true),
            ("pass\\u0077ord=x", true),
            ("org.gradle.parallel=\\\nx", true),
            ("org.gradle.jvmargs=-Dkey=x", true),
            ("org.gradle.parallel.own=x", true),
            ("systemProp.http.proxyPassword=x", true),
            ("systemProp.http.proxyHost=http://ann:x@proxy", true),
            ("systemProp.http.proxyHost=ann:x@proxy", true),
        ] {
            assert_eq!(gradle_may_hold_keys(text), holds, "{text}");
        }
    }
}
