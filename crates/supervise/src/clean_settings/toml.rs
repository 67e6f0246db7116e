//! Settings of uv and cargo: tables of names and values. What is on a tool's list is given, without
//! sign-ins in its addresses and without what is named like a key.

use super::packages::Clean;
use super::url::without_sign_in;
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// First names of cargo's keys. `include` and `credential-alias` are on no list.
const OF_CARGO: &[&str] = &[
    "alias",
    "build",
    "cache",
    "cargo-new",
    "doc",
    "env",
    "future-incompat-report",
    "http",
    "install",
    "net",
    "patch",
    "profile",
    "registries",
    "registry",
    "resolver",
    "source",
    "target",
    "term",
    "unstable",
];

/// First names of uv's. Its cache is the session's.
const OF_UV: &[&str] = &[
    "allow-insecure-host",
    "compile-bytecode",
    "concurrent-builds",
    "concurrent-downloads",
    "concurrent-installs",
    "default-index",
    "exclude-newer",
    "exclude-newer-package",
    "extra-index-url",
    "find-links",
    "http-proxy",
    "https-proxy",
    "index",
    "index-strategy",
    "index-url",
    "link-mode",
    "native-tls",
    "no-binary",
    "no-binary-package",
    "no-build",
    "no-build-isolation",
    "no-build-package",
    "no-index",
    "no-proxy",
    "no-sources",
    "offline",
    "pip",
    "prerelease",
    "preview",
    "pypy-install-mirror",
    "python-downloads",
    "python-downloads-json-url",
    "python-install-mirror",
    "python-preference",
    "required-version",
    "resolution",
    "system-certs",
];

/// What a name has in it that means a key, or a program that has one.
const KEYS: [&str; 7] =
    ["token", "secret", "password", "passwd", "credential", "apikey", "private"];
/// The same as words of a name: `SIGNING_KEY`, `client-key`.
const WORDS: [&str; 3] = ["key", "auth", "pass"];

/// cargo's settings without keys.
pub(super) fn cargo(texts: &[String], copied: &mut dyn FnMut(&str) -> String) -> Clean {
    clean(texts, OF_CARGO, copied)
}

/// uv's settings without keys.
pub(super) fn uv(texts: &[String], copied: &mut dyn FnMut(&str) -> String) -> Clean {
    clean(texts, OF_UV, copied)
}

/// Whether something of this name is a key.
fn means_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    KEYS.iter().any(|key| name.contains(key)) || words.any(|word| WORDS.contains(&word))
}

/// The last of these texts; settings that are no TOML are none.
fn clean(texts: &[String], given: &[&str], copied: &mut dyn FnMut(&str) -> String) -> Clean {
    let mut clean = Clean::default();
    let Some(Ok(mut document)) = texts.last().map(|text| text.parse::<DocumentMut>()) else {
        return clean;
    };
    let names: Vec<String> = document.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        if !given.contains(&name.as_str()) {
            document.remove(&name);
            clean.left_out.push(name);
        }
    }
    table(document.as_table_mut(), "", &mut clean.left_out, copied);
    // A comment may hold what is no setting any more.
    let lines = document.to_string();
    let lines = lines.lines().filter(|line| !line.trim_start().starts_with('#'));
    clean.text = lines.flat_map(|line| [line, "\n"]).collect();
    clean
}

fn table(
    of: &mut dyn TableLike,
    above: &str,
    left_out: &mut Vec<String>,
    copied: &mut dyn FnMut(&str) -> String,
) {
    let names: Vec<String> = of.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        // These names are the person's own.
        let is_free = ["", "registries", "source", "profile", "target"].contains(&above);
        if !is_free && means_key(&name) {
            of.remove(&name);
            left_out.push(path);
        } else if let Some(item) = of.get_mut(&name) {
            let sign_ins = self::item(item, &path, left_out, copied);
            if sign_ins == SignIns::TakenOut {
                left_out.push(format!("password in {path}"));
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignIns {
    None,
    TakenOut,
}

fn item(
    item: &mut Item,
    path: &str,
    left_out: &mut Vec<String>,
    copied: &mut dyn FnMut(&str) -> String,
) -> SignIns {
    if let Some(tables) = item.as_array_of_tables_mut() {
        tables.iter_mut().for_each(|of| table(of, path, left_out, copied));
    } else if let Some(of) = item.as_table_like_mut() {
        table(of, path, left_out, copied);
    } else if let Some(value) = item.as_value_mut() {
        if path == "http.cainfo"
            && let Some(file) = value.as_str().map(str::to_owned)
        {
            *value = copied(&file).into();
        }
        return self::value(value, path, left_out, copied);
    }
    SignIns::None
}

fn value(
    of: &mut Value,
    path: &str,
    left_out: &mut Vec<String>,
    copied: &mut dyn FnMut(&str) -> String,
) -> SignIns {
    match of {
        Value::String(text) => match without_sign_in(text.value()) {
            Some(clean) => {
                *of = clean.into();
                SignIns::TakenOut
            }
            None => SignIns::None,
        },
        Value::Array(list) => {
            let mut found = SignIns::None;
            for each in list.iter_mut() {
                if value(each, path, left_out, copied) == SignIns::TakenOut {
                    found = SignIns::TakenOut;
                }
            }
            found
        }
        Value::InlineTable(inline) => {
            table(inline, path, left_out, copied);
            SignIns::None
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            SignIns::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_s_registries_stay_and_their_tokens_do_not() {
        let text = "# token = \"s3cret\"\n[registries.corp]\n\
            index = \"sparse+https://ann:s3cret@cargo.example/index/\"\ntoken = \"s3cret\"\n\
            credential-provider = [\"/home/ann/bin/s3cret\"]\n\
            [registries]\nother = { index = \"https://o.example\", token = \"s3cret\" }\n\
            [registry]\ntoken = \"s3cret\"\ndefault = \"corp\"\n\
            [http]\nproxy = \"http://ann:s3cret@proxy:3128\"\ncainfo = \"/home/ann/ca.pem\"\n\
            [env]\nOPENSSL_DIR = \"/opt/ssl\"\nGITHUB_TOKEN = \"s3cret\"\nSIGNING_KEY = { value = \"s3cret\" }\n\
            API_AUTH = \"s3cret\"\n\
            [source.crates-io]\nreplace-with = \"mirror\"\n\
            [target.x86_64-unknown-linux-gnu]\nrustflags = [\"-C\", \"target-cpu=native\"]\n\
            [credential-alias]\nx = [\"s3cret\"]\n";
        let clean = cargo(&[text.to_owned()], &mut |path| format!("/copy{path}"));
        assert!(!clean.text.contains("s3cret"), "{}", clean.text);
        let wanted = "[registries.corp]\nindex = \"sparse+https://cargo.example/index/\"\n\
            [registries]\nother = { index = \"https://o.example\" }\n\
            [registry]\ndefault = \"corp\"\n\
            [http]\nproxy = \"http://proxy:3128\"\ncainfo = \"/copy/home/ann/ca.pem\"\n\
            [env]\nOPENSSL_DIR = \"/opt/ssl\"\n\
            [source.crates-io]\nreplace-with = \"mirror\"\n\
            [target.x86_64-unknown-linux-gnu]\nrustflags = [\"-C\", \"target-cpu=native\"]\n";
        let same = |text: &str| {
            text.parse::<DocumentMut>().map(|read| {
                let mut names: Vec<String> = read.iter().map(|(k, v)| format!("{k}{v}")).collect();
                names.sort();
                names.concat().replace(char::is_whitespace, "")
            })
        };
        assert_eq!(same(&clean.text).ok(), same(wanted).ok(), "{}", clean.text);
        let left = clean.left_out.join(" ");
        for name in ["registries.corp.token", "registry.token", "env.GITHUB_TOKEN", "http.proxy"] {
            assert!(left.contains(name), "{left}");
        }
    }

    #[test]
    fn uv_s_indexes_stay_and_their_passwords_do_not() {
        let text = "native-tls = true\ncache-dir = \"/x\"\n\
            extra-index-url = [\"https://ann:s3cret@two.example/simple\"]\n\
            [[index]]\nname = \"corp\"\nurl = \"https://s3cret@pypi.example/simple\"\n\
            [pip]\nindex-url = \"https://ann:s3cret@p.example/simple\"\n";
        let clean = uv(&[text.to_owned()], &mut |path| path.to_owned());
        assert_eq!(
            clean.text,
            "native-tls = true\nextra-index-url = [\"https://two.example/simple\"]\n\
             [[index]]\nname = \"corp\"\nurl = \"https://pypi.example/simple\"\n\
             [pip]\nindex-url = \"https://p.example/simple\"\n"
        );
        assert_eq!(uv(&["no [toml".to_owned()], &mut |_| String::new()), Clean::default());
    }
}
