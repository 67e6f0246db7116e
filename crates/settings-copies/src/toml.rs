//! TOML settings of uv and cargo. Names on a tool's allow-list are copied, without sign-ins in URLs
//! and without names that sound like keys.

use crate::cleaned::CleanedSettings;
use config::secrets::{carries_secret, holds_secret, names_token, sounds_secret, without_sign_in};
use toml_edit::visit_mut::{VisitMut, visit_array_mut, visit_table_like_kv_mut, visit_table_mut};
use toml_edit::{Array, Decor, DocumentMut, InlineTable, Item, KeyMut, Table, TableLike, Value};

/// Top-level names of cargo. `include` and `credential-alias` are on no list.
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

/// Top-level names of uv. Its cache is the session's.
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

/// Listed as omitted if a comment may contain a setting that was commented out.
const COMMENTS: &str = "comments";

/// cargo's settings without secrets.
pub(crate) fn cargo(texts: &[String], copied: &mut dyn FnMut(&str) -> String) -> CleanedSettings {
    clean(texts, OF_CARGO, copied)
}

/// uv's settings without secrets. Omitted comments are not listed, because uv uses only the copy.
pub(crate) fn uv(texts: &[String], copied: &mut dyn FnMut(&str) -> String) -> CleanedSettings {
    let mut clean = clean(texts, OF_UV, copied);
    clean.left_out.retain(|what| what != COMMENTS);
    clean
}

/// Cleans the last of these texts. Invalid TOML may contain secrets and is omitted entirely.
fn clean(
    texts: &[String],
    given: &[&str],
    copied: &mut dyn FnMut(&str) -> String,
) -> CleanedSettings {
    let mut clean = CleanedSettings::default();
    let Some(text) = texts.last() else { return clean };
    let Ok(mut document) = text.parse::<DocumentMut>() else {
        clean.left_out.push("settings that are not valid TOML".to_owned());
        return clean;
    };
    CommentStripper.visit_document_mut(&mut document);
    document.set_trailing("");
    // Names and values are still unchanged, so every missing `#` began a comment.
    if document.to_string().matches('#').count() != text.matches('#').count() {
        clean.left_out.push(COMMENTS.to_owned());
    }
    let names: Vec<String> = document.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        if !given.contains(&name.as_str()) {
            document.remove(&name);
            clean.left_out.push(name);
        }
    }
    let mut walk = TomlCleaner { left_out: &mut clean.left_out, copied };
    walk.table(document.as_table_mut(), "");
    clean.text = document.to_string();
    clean
}

/// Removes comments and blanks from a document.
struct CommentStripper;

impl VisitMut for CommentStripper {
    fn visit_table_mut(&mut self, table: &mut Table) {
        *table.decor_mut() = Decor::new("", "");
        visit_table_mut(self, table);
    }

    fn visit_table_like_kv_mut(&mut self, mut key: KeyMut<'_>, node: &mut Item) {
        key.leaf_decor_mut().clear();
        key.dotted_decor_mut().clear();
        visit_table_like_kv_mut(self, key, node);
    }

    fn visit_inline_table_mut(&mut self, table: &mut InlineTable) {
        table.decor_mut().clear();
        table.set_trailing("");
        table.set_trailing_comma(false);
        self.visit_table_like_mut(table);
    }

    fn visit_array_mut(&mut self, array: &mut Array) {
        array.set_trailing("");
        array.set_trailing_comma(false);
        visit_array_mut(self, array);
    }

    fn visit_value_mut(&mut self, value: &mut Value) {
        value.decor_mut().clear();
        toml_edit::visit_mut::visit_value_mut(self, value);
    }
}

/// Action for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TomlAction {
    Keep,
    Omit,
}

struct TomlCleaner<'a> {
    left_out: &'a mut Vec<String>,
    copied: &'a mut dyn FnMut(&str) -> String,
}

impl TomlCleaner<'_> {
    /// A table without its URL or value is useless to the program.
    fn table(&mut self, of: &mut dyn TableLike, above: &str) -> TomlAction {
        let mut whole = TomlAction::Keep;
        let names: Vec<String> = of.iter().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
            // The user chooses these names.
            let is_free = ["", "registries", "source", "profile", "target"].contains(&above)
                || above.starts_with("profile.");
            let is_private = || name.to_ascii_lowercase().contains("private");
            let is_key = !is_free && (sounds_secret(&name) || is_private());
            let fate = match of.get_mut(&name) {
                _ if is_key => TomlAction::Omit,
                Some(item) => self.item(item, &path),
                None => TomlAction::Keep,
            };
            if fate == TomlAction::Omit {
                of.remove(&name);
                self.note(path);
                if ["url", "value"].contains(&name.as_str()) && !is_free && above != "env" {
                    whole = TomlAction::Omit;
                }
            }
        }
        whole
    }

    fn item(&mut self, item: &mut Item, path: &str) -> TomlAction {
        if let Some(tables) = item.as_array_of_tables_mut() {
            let fates: Vec<TomlAction> = tables.iter_mut().map(|of| self.table(of, path)).collect();
            let mut fates = fates.into_iter();
            tables.retain(|_| fates.next() == Some(TomlAction::Keep));
        } else if let Some(of) = item.as_table_like_mut() {
            return self.table(of, path);
        } else if let Some(value) = item.as_value_mut() {
            if path == "http.cainfo"
                && let Some(file) = value.as_str().map(str::to_owned)
            {
                *value = (self.copied)(&file).into();
            }
            return self.value(value, path);
        }
        TomlAction::Keep
    }

    fn value(&mut self, of: &mut Value, path: &str) -> TomlAction {
        match of {
            Value::String(text) => {
                let text = text.value();
                if holds_key(path, text) {
                    return TomlAction::Omit;
                }
                if let Some(clean) = without_sign_in(path, text) {
                    self.note(format!("password in {path}"));
                    *of = clean.into();
                }
            }
            Value::Array(list) => {
                // The arguments of one command.
                let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                if runs(path) && holds_key(path, &words.join(" ")) {
                    return TomlAction::Omit;
                }
                let fates: Vec<TomlAction> =
                    list.iter_mut().map(|each| self.value(each, path)).collect();
                if fates.contains(&TomlAction::Omit) {
                    self.note(format!("token in {path}"));
                }
                let mut fates = fates.into_iter();
                list.retain(|_| fates.next() == Some(TomlAction::Keep));
            }
            Value::InlineTable(inline) => return self.table(inline, path),
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
        }
        TomlAction::Keep
    }

    fn note(&mut self, what: String) {
        if !self.left_out.contains(&what) {
            self.left_out.push(what);
        }
    }
}

/// True if a value is a command line or compiler arguments.
fn runs(path: &str) -> bool {
    ["alias.", "build.rust", "target.", "doc."].iter().any(|section| path.starts_with(section))
}

/// True if a text at this path contains a secret other than a sign-in in a URL.
fn holds_key(path: &str, text: &str) -> bool {
    match path.strip_prefix("env.") {
        Some(rest) => holds_secret(rest.split('.').next().unwrap_or(rest), text),
        None => names_token(text) || (runs(path) && carries_secret(text)),
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
            [env]\nOPENSSL_DIR = \"/opt/ssl\"\nGITHUB_TOKEN = \"s3cret\"\nSIGNING_KEY = { value = \
            \"s3cret\" }\n\
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
        let clean = uv(&["no [toml".to_owned()], &mut |_| String::new());
        assert!(clean.text.is_empty() && clean.left_out.len() == 1, "{clean:?}");
    }

    #[test]
    fn what_may_hold_a_key_is_left_out_and_all_else_stays() {
        for (text, given) in [
            ("# token = \"s3cret\"\n", ""),
            ("[net]\noffline = true # s3cret\n", "[net]\noffline = true\n"),
            ("[net] # s3cret\noffline = true\n", "[net]\noffline = true\n"),
            ("[net]\noffline = true\n# s3cret\n", "[net]\noffline = true\n"),
            (
                "[build]\nrustflags = [ # s3cret\n  \"-g\", # s3cret\n # s3cret\n]\n",
                "[build]\nrustflags = [\"-g\"]\n",
            ),
            ("# s3cret\nnet.offline = true # s3cret\n", "net.offline = true\n"),
            ("[registry]\n[registry]\ntoken = \"s3cret\"\n", ""),
            ("[http]\nproxy = \"ann:s3cret@proxy:3128\"\n", "[http]\nproxy = \"proxy:3128\"\n"),
            ("[env]\nGITHUB_PAT = \"s3cret\"\n", "[env]\n"),
            ("[env]\nSSHPRIVATE = \"s3cret\"\n", "[env]\n"),
            ("[env]\nSSHPASS = { value = \"s3cret\", force = true }\n", "[env]\n"),
            ("[env]\nDB = \"root:s3cret@tcp(db)/x\"\n", "[env]\n"),
            ("[env]\nDB = { value = \"root:s3cret@tcp(db)/x\" }\n", "[env]\n"),
            (
                "[registries]\nc = { index = \"https://x/s3cret0123456789\" }\n",
                "[registries]\nc = {}\n",
            ),
            ("[registries.c]\nindex = \"https://x/?token=s3cret\"\n", "[registries.c]\n"),
            ("[alias]\np = \"publish --token s3cret\"\n", "[alias]\n"),
            ("[alias]\np = [\"publish\", \"--token\", \"s3cret\"]\n", "[alias]\n"),
            ("[target.x]\nrunner = \"sshpass -p s3cret ssh h\"\n", "[target.x]\n"),
        ] {
            let clean = cargo(&[text.to_owned()], &mut str::to_owned);
            assert_eq!(clean.text, given, "{text}");
            assert!(!clean.left_out.is_empty(), "{text}");
        }
        let text = "[profile.dev.package.jwt]\nopt-level = 2\n\n[alias]\nb = \"build --release\"\n[env]\nCOLOR = \"#fff\"\n\n\
            [registries.c]\nindex = \
            \"https://repo.example/artifactory/api/cargo/cargo-virtual/\"\n";
        let clean = cargo(&[text.to_owned()], &mut str::to_owned);
        assert_eq!(
            (clean.text.replace("\n\n", "\n"), clean.left_out),
            (text.replace("\n\n", "\n"), vec![])
        );
        let text = "# mine\nextra-index-url = [\"https://one.example/simple\", \
                    \"https://two.example/?s3cret\"]\n\
            http-proxy = \"ann:s3cret@proxy:3128\"\n[[index]]\nurl = \
            \"https://dl.cloudsmith.io/s3cret/r/\"\n\
            [[index]]\nurl = \"https://o.example\"\n";
        let clean = uv(&[text.to_owned()], &mut str::to_owned);
        assert_eq!(
            clean.text,
            "extra-index-url = [\"https://one.example/simple\"]\nhttp-proxy = \"proxy:3128\"\n\
             [[index]]\nurl = \"https://o.example\"\n"
        );
        assert!(!clean.left_out.contains(&COMMENTS.to_owned()), "{clean:?}");
    }
}
