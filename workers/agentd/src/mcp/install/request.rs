//! The package that a person asks for: by `--package`, or by the command `npx` or `uvx` of a configured
//! server. Pure. Used by `install`.

use config::PackageSource;

/// A package of a registry, and the program of it that is the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackageRequest {
    pub(super) source: PackageSource,
    /// Its name, without its extras.
    pub(super) name: String,
    /// The extras of a Python package, with their brackets.
    pub(super) extras: String,
    /// What its version must be: `1.2.3`, `^1` or `latest` of npm, `==1.2.3` or `>=1` of PyPI.
    pub(super) version: Option<String>,
    /// The program, if it is not named as the package is.
    pub(super) program: Option<String>,
}

/// The forms of a command that an installed package takes the place of.
const FORMS: &str = "npx [-y] PACKAGE[@VERSION] ARGS, or uvx [--from SPEC] PACKAGE[@VERSION] ARGS";

impl PackageRequest {
    /// The package of `npm:PACKAGE[@VERSION]` or `pypi:PACKAGE[==VERSION]`.
    ///
    /// # Errors
    /// The form that it should have.
    pub(super) fn of_flag(text: &str) -> Result<Self, String> {
        let wanted = || format!("{text:?} is not npm:PACKAGE[@VERSION] or pypi:PACKAGE[==VERSION]");
        let (source, spec) = text.split_once(':').ok_or_else(wanted)?;
        let source = PackageSource::parse(source).ok_or_else(wanted)?;
        Self::of_spec(source, spec).ok_or_else(wanted)
    }

    /// The package of an exact version.
    pub(super) fn exact(source: PackageSource, name: &str, version: &str) -> Option<Self> {
        let separator = match source {
            PackageSource::Npm => "@",
            PackageSource::Pypi => "==",
        };
        Self::of_spec(source, &format!("{name}{separator}{version}"))
    }

    /// The package and the arguments of a command.
    ///
    /// # Errors
    /// Its form is unknown.
    pub(super) fn of_command(words: &[String]) -> Result<(Self, Vec<String>), String> {
        let runner = words.first().map(|word| word.rsplit('/').next().unwrap_or(word));
        let (source, quiet, named): (_, &[&str], &[&str]) = match runner {
            Some("npx") => {
                (PackageSource::Npm, &["-y", "--yes", "-q", "--quiet"], &["-p", "--package"])
            }
            Some("uvx") => (PackageSource::Pypi, &["-q", "--quiet"], &["--from"]),
            Some(_) | None => return Err(format!("its command is not {FORMS}")),
        };
        let (mut spec, mut rest) = (None, words.iter().skip(1));
        let program = loop {
            let word = rest.next().ok_or_else(|| format!("its command is not {FORMS}"))?;
            let assigned = word.split_once('=').filter(|(flag, _)| named.contains(flag));
            let found = match assigned {
                Some((_, value)) => Some(value.to_owned()),
                None if named.contains(&word.as_str()) => rest.next().cloned(),
                None if quiet.contains(&word.as_str()) => continue,
                None if word == "--" => continue,
                None if word.starts_with('-') => {
                    return Err(format!(
                        "its command has the flag {word}, and not the form {FORMS}"
                    ));
                }
                None => break word,
            };
            if spec.is_some() || found.is_none() {
                return Err(format!("its command does not name one package, as in {FORMS}"));
            }
            spec = found;
        };
        let of_spec = |spec: &str| {
            Self::of_spec(source, spec)
                .ok_or_else(|| format!("{spec:?} is not a package of a registry with a version"))
        };
        let request = match &spec {
            Some(spec) => Self { program: Some(program.clone()), ..of_spec(spec)? },
            None => of_spec(program)?,
        };
        Ok((request, rest.cloned().collect()))
    }

    fn of_spec(source: PackageSource, spec: &str) -> Option<Self> {
        let (name, extras, version) = match source {
            PackageSource::Npm => {
                let at = spec.char_indices().skip(1).find(|(_, letter)| *letter == '@');
                let (name, version) = match at {
                    Some((at, _)) => (spec.get(..at)?, Some(spec.get(at + 1..)?)),
                    None => (spec, None),
                };
                is_npm_name(name).then_some((name, "", version.map(str::to_owned)))?
            }
            PackageSource::Pypi => {
                let ends =
                    |letter: char| !letter.is_ascii_alphanumeric() && !"-_.".contains(letter);
                let (name, rest) = spec.split_at(spec.find(ends).unwrap_or(spec.len()));
                let (extras, version) = match rest.starts_with('[') {
                    true => rest.split_at(rest.find(']')? + 1),
                    false => ("", rest),
                };
                let version = match version.strip_prefix('@') {
                    Some("latest") => None,
                    Some(version) => Some(format!("=={version}")),
                    None => Some(version.to_owned()).filter(|version| !version.is_empty()),
                };
                (is_plain(name, "-_.") && is_extras(extras)).then_some((name, extras, version))?
            }
        };
        let is_version = |version: &String| match source {
            PackageSource::Npm => is_plain(version, ".-+^~*") || version == "*",
            PackageSource::Pypi => {
                let number = version.trim_start_matches(['=', '<', '>', '~', '!']);
                number.len() < version.len() && is_plain(number, ".-+*!=<>~,")
            }
        };
        version.as_ref().is_none_or(is_version).then(|| Self {
            source,
            name: name.to_owned(),
            extras: extras.to_owned(),
            version,
            program: None,
        })
    }

    /// As npm and pip take it.
    pub(super) fn spec(&self) -> String {
        let Self { source, name, extras, version, .. } = self;
        match (source, version) {
            (_, None) => format!("{name}{extras}"),
            (PackageSource::Npm, Some(version)) => format!("{name}@{version}"),
            (PackageSource::Pypi, Some(version)) => format!("{name}{extras}{version}"),
        }
    }

    /// As a person writes it.
    pub(super) fn in_words(&self) -> String {
        format!("{}:{}", self.source.name(), self.spec())
    }
}

/// True for letters, digits and these, with a letter, a digit, `^` or `~` first.
fn is_plain(text: &str, others: &str) -> bool {
    let is_first = |letter: char| letter.is_ascii_alphanumeric() || "^~".contains(letter);
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || others.contains(letter);
    text.starts_with(is_first) && text.chars().all(is_known)
}

fn is_npm_name(name: &str) -> bool {
    match name.strip_prefix('@').and_then(|scoped| scoped.split_once('/')) {
        Some((scope, name)) => is_plain(scope, "-_.") && is_plain(name, "-_."),
        None => is_plain(name, "-_."),
    }
}

fn is_extras(extras: &str) -> bool {
    let names = extras.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    extras.is_empty()
        || names.is_some_and(|names| names.split(',').all(|name| is_plain(name, "-_.")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_command_names_its_package_program_and_arguments() {
        for (command, spec, program, args) in [
            ("npx -y tracker-mcp", "npm:tracker-mcp", None, ""),
            ("npx @a/b@1.2.3 --root /x", "npm:@a/b@1.2.3", None, "--root /x"),
            ("/usr/bin/npx --yes @a/b@latest -y", "npm:@a/b@latest", None, "-y"),
            ("npx -y -p @a/b@^1 c d", "npm:@a/b@^1", Some("c"), "d"),
            ("npx --package=@a/b -- c", "npm:@a/b", Some("c"), ""),
            ("uvx mcp-server-git --repository .", "pypi:mcp-server-git", None, "--repository ."),
            ("uvx mcp-server-git@2026.1", "pypi:mcp-server-git==2026.1", None, ""),
            ("uvx a@latest", "pypi:a", None, ""),
            ("uvx --from a[x,y]>=1.0,<2 b c", "pypi:a[x,y]>=1.0,<2", Some("b"), "c"),
        ] {
            let (found, rest) = PackageRequest::of_command(&words(command)).unwrap();
            assert_eq!(found.in_words(), spec, "{command}");
            assert_eq!(found.program.as_deref(), program, "{command}");
            assert_eq!(rest.join(" "), args, "{command}");
        }
    }

    #[test]
    fn other_commands_are_refused_with_the_forms() {
        for (command, why) in [
            ("node server.js", "is not npx"),
            ("npx", "is not npx"),
            ("npx -y", "is not npx"),
            ("npx -c true", "the flag -c"),
            ("npx -p a -p b c", "does not name one package"),
            ("npx --package", "does not name one package"),
            ("npx ./local", "not a package of a registry"),
            ("npx github:a/b", "not a package of a registry"),
            ("npx a/b", "not a package of a registry"),
            ("npx a@file:../x", "not a package of a registry"),
            ("npx a@--flag", "not a package of a registry"),
            ("uvx --python 3.12 a", "the flag --python"),
            ("uvx --from git+https://x/y a", "not a package of a registry"),
            ("uvx --from ./a a", "not a package of a registry"),
            ("uvx a==", "not a package of a registry"),
            ("uvx a[x", "not a package of a registry"),
        ] {
            let said = PackageRequest::of_command(&words(command)).unwrap_err();
            assert!(said.contains(why), "{command}: {said}");
        }
    }

    #[test]
    fn a_flag_names_registry_and_package() {
        for text in ["npm:a", "npm:@a/b@1.0.0-rc.1", "pypi:a==1", "pypi:a_b.c~=1.0"] {
            assert_eq!(PackageRequest::of_flag(text).unwrap().in_words(), text);
        }
        for text in ["a", "cargo:a", "npm:", "npm:-g", "npm:@a", "pypi:--pre", "pypi:a 1", "npm:a@"]
        {
            assert!(PackageRequest::of_flag(text).unwrap_err().contains("npm:PACKAGE"), "{text}");
        }
        for source in [PackageSource::Npm, PackageSource::Pypi] {
            let exact = PackageRequest::exact(source, "a", "1.2.3+local").unwrap();
            assert!(exact.spec().ends_with("1.2.3+local"), "{exact:?}");
        }
    }
}
