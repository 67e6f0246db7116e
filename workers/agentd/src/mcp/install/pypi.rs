//! Packages of PyPI: a lock with the hash of each, the wheels of that lock, and a program that starts one of
//! them. Wheels alone, so that no code of a package runs. Used by `install`.

use super::manager::PackageManager;
use super::request::PackageRequest;
use super::{ResolvedPackage, unusable};
use crate::cli_error::CliError;
use config::PackageSource;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// `python3` without the settings and the packages of the person.
const PYTHON: &str = "python3";
const ALONE: &str = "-I";
const PIP: [&str; 4] = [ALONE, "-m", "pip", "install"];
const QUIET: [&str; 4] = ["--quiet", "--only-binary", ":all:", "--no-warn-script-location"];
/// The folder of the packages, and the end of the name of the program that agentd writes beside it.
const SITE: &str = "site";
const SUFFIX: &str = ".py";
const REPORT: &str = "report.json";

/// Writes the lock.
pub(super) fn resolve(
    manager: &PackageManager,
    request: &PackageRequest,
    tree: &Path,
) -> Result<ResolvedPackage, CliError> {
    let spec = request.spec();
    let own = ["--dry-run", "--ignore-installed", "--report", REPORT, "--", &spec];
    manager.run(PYTHON, &[&PIP[..], &QUIET, &own].concat())?;
    let report = tree.join(REPORT);
    let (found, lock) = locked(&super::read_json(&report)?, &request.name)
        .map_err(|why| unusable(request, &why))?;
    super::write(&tree.join(PackageSource::Pypi.lock_file()), &lock)?;
    // A failure leaves a file that does no harm.
    let _ = std::fs::remove_file(report);
    Ok(found)
}

/// The packages of pip's report, and a lock of them.
fn locked(report: &Value, name: &str) -> Result<(ResolvedPackage, String), String> {
    let none = Vec::new();
    let all = report["install"].as_array().unwrap_or(&none);
    let mut lines = Vec::new();
    let mut own = None;
    for package in all {
        let field = |field: &str| package["metadata"][field].as_str().unwrap_or_default();
        let (found, version) = (field("name"), field("version"));
        let archive = &package["download_info"]["archive_info"];
        // The second spelling is that of pip before 23.1, as Debian 12 has it.
        let older = || archive["hash"].as_str()?.strip_prefix("sha256=");
        let hash = archive["hashes"]["sha256"].as_str().or_else(older);
        let hash = hash.ok_or_else(|| format!("{found} has no SHA-256 hash"))?;
        // A line of the lock is an argument of pip's.
        if let Some(word) = [found, version, hash].into_iter().find(|word| !is_plain(word)) {
            return Err(format!("pip names a package in another form: {word:?}"));
        }
        lines.push(format!("{found}=={version} --hash=sha256:{hash}\n"));
        if normal(found) == normal(name) {
            own = Some((found.to_owned(), version.to_owned()));
        }
    }
    lines.sort();
    let (name, version) = own.ok_or_else(|| format!("pip found no version of {name}"))?;
    let found = ResolvedPackage { name, version, count: all.len(), scripts: Vec::new() };
    Ok((found, lines.concat()))
}

fn is_plain(word: &str) -> bool {
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || "-_.+!".contains(letter);
    word.starts_with(|first: char| first.is_ascii_alphanumeric()) && word.chars().all(is_known)
}

/// A name as the index compares it.
fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

/// Fetches the packages of the lock. pip compares each with its hash.
pub(super) fn fetch(manager: &PackageManager) -> Result<(), CliError> {
    let lock = PackageSource::Pypi.lock_file();
    let own = ["--no-deps", "--require-hashes", "--target", SITE, "-r", lock];
    manager.run(PYTHON, &[&PIP[..], &QUIET, &own].concat()).map(drop)
}

/// Writes the program that starts the package, and returns the words before its path, and its path in the
/// tree.
pub(super) fn program(
    manager: &PackageManager,
    request: &PackageRequest,
    tree: &Path,
) -> Result<(Vec<String>, PathBuf), CliError> {
    let site = tree.join(SITE);
    let points = entry_points(&site, &request.name).map_err(|why| unusable(request, &why))?;
    let name = request.program.as_deref().unwrap_or(&request.name);
    let point = entry_point(&points, name).map_err(|why| unusable(request, &why))?;
    let program = format!("{}{SUFFIX}", point.program);
    super::write(&tree.join(&program), &program_text(&point))?;
    // In a virtual environment the base is the one that does not go with a project.
    let ask = "import sys; print(getattr(sys, '_base_executable', None) or sys.executable)";
    let python = manager.run(PYTHON, &[ALONE, "-c", ask])?.trim().to_owned();
    match Path::new(&python).is_absolute() {
        true => Ok((vec![python, ALONE.to_owned()], PathBuf::from(program))),
        false => Err(unusable(request, "python3 does not tell its own path")),
    }
}

/// The text of `entry_points.txt` of a package.
fn entry_points(site: &Path, name: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", site.display());
    for entry in std::fs::read_dir(site).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let folder = entry.file_name().to_string_lossy().into_owned();
        let of = folder.strip_suffix(".dist-info").and_then(|folder| folder.rsplit_once('-'));
        if of.is_some_and(|(found, _)| normal(found) == normal(name)) {
            let points = std::fs::read_to_string(entry.path().join("entry_points.txt"));
            return points.map_err(|_| "it has no program".to_owned());
        }
    }
    Err("pip did not install it".to_owned())
}

/// A function that is a program.
#[derive(Debug, PartialEq, Eq)]
struct EntryPoint {
    program: String,
    module: String,
    function: String,
}

/// The program of this name, or the only one.
fn entry_point(points: &str, name: &str) -> Result<EntryPoint, String> {
    let mut section = "";
    let mut found = Vec::new();
    for line in points.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if let (Some((program, target)), "[console_scripts]") =
            (line.split_once('='), section)
        {
            found.push((program.trim(), target.split('[').next().unwrap_or(target).trim()));
        }
    }
    let names: Vec<&str> = found.iter().map(|(program, _)| *program).collect();
    let only = found.first().filter(|_| found.len() == 1);
    let point = found.iter().find(|(program, _)| normal(program) == normal(name)).or(only);
    let (program, target) = point.ok_or_else(|| match names.is_empty() {
        true => "it has no program".to_owned(),
        false => format!("it has the programs {}", names.join(", ")),
    })?;
    let is_name = |text: &str| {
        let parts = |part: &str| {
            let plain = |letter: char| letter == '_' || letter.is_alphanumeric();
            !part.is_empty() && part.chars().all(plain)
        };
        text.split('.').all(parts)
    };
    match target.split_once(':') {
        Some((module, function)) if is_name(module) && is_name(function) && is_plain(program) => {
            Ok(EntryPoint {
                program: (*program).to_owned(),
                module: module.to_owned(),
                function: function.to_owned(),
            })
        }
        Some(_) | None => Err(format!("its program {program} has another form: {target}")),
    }
}

/// All words in it are plain.
fn program_text(point: &EntryPoint) -> String {
    let EntryPoint { program, module, function } = point;
    format!(
        "# Written by `agentd mcp install`: the program of a package in the folder beside this file.\n\
         import importlib, os, sys\n\
         site = os.path.join(os.path.dirname(os.path.abspath(__file__)), \"{SITE}\")\n\
         sys.path.insert(0, site)\n\
         # For other Pythons that it starts.\n\
         os.environ[\"PYTHONPATH\"] = site\n\
         sys.argv[0] = \"{program}\"\n\
         found = importlib.import_module(\"{module}\")\n\
         for name in \"{function}\".split(\".\"):\n    found = getattr(found, name)\n\
         sys.exit(found())\n"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn package(name: &str, hash: Value) -> Value {
        let info = json!({"archive_info": {"hashes": {"sha256": hash}}});
        json!({"metadata": {"name": name, "version": "1.0"}, "download_info": info})
    }

    #[test]
    fn each_package_of_a_lock_has_a_hash_and_a_plain_name() {
        let report =
            json!({"install": [package("My_Server", json!("ab")), package("dep", json!("cd"))]});
        let (found, lock) = locked(&report, "my-server").unwrap();
        assert_eq!(
            (found.name.as_str(), found.version.as_str(), found.count),
            ("My_Server", "1.0", 2)
        );
        assert_eq!(lock, "My_Server==1.0 --hash=sha256:ab\ndep==1.0 --hash=sha256:cd\n");
        assert!(locked(&report, "other").unwrap_err().contains("no version of other"));
        let mut older = package("x", Value::Null);
        older["download_info"] = json!({"archive_info": {"hash": "sha256=ab"}});
        assert_eq!(
            locked(&json!({"install": [older]}), "x").unwrap().1,
            "x==1.0 --hash=sha256:ab\n"
        );
        for (bad, why) in [
            (package("dep", Value::Null), "dep has no SHA-256"),
            (package("x\n--index-url=y", json!("ab")), "another form"),
            (package("-r", json!("ab")), "another form"),
        ] {
            let report = json!({"install": [package("a", json!("ab")), bad]});
            assert!(locked(&report, "a").unwrap_err().contains(why));
        }
    }

    #[test]
    fn the_program_is_the_one_of_the_name_or_the_only_one() {
        let points = "[gui_scripts]\ng = g:main\n[console_scripts]\nmy-server = my_server.cli:main [x]\n\
                      other=my_server:App.run\n";
        let found = entry_point(points, "my_server").unwrap();
        assert_eq!((found.module.as_str(), found.function.as_str()), ("my_server.cli", "main"));
        assert_eq!(entry_point(points, "other").unwrap().function, "App.run");
        assert!(entry_point(points, "third").unwrap_err().contains("my-server, other"));
        let one = "[console_scripts]\nx = a:b\n";
        assert_eq!(entry_point(one, "third").unwrap().program, "x");
        assert!(entry_point("[gui_scripts]\nx = a:b\n", "x").unwrap_err().contains("no program"));
        for bad in ["a", "a:b()", "a;c:b", "a:\"b", "..:b"] {
            let points = format!("[console_scripts]\nx = {bad}\n");
            assert!(entry_point(&points, "x").unwrap_err().contains("another form"), "{bad}");
        }
    }
}
