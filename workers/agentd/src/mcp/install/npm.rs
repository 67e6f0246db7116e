//! Packages of npm: a lock with the hash of each, and the packages of that lock. No script of a package
//! runs. Used by `install`.

use super::manager::PackageManager;
use super::request::PackageRequest;
use super::{ResolvedPackage, unusable};
use crate::cli_error::CliError;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The flags of each run. npm waits a minute before its third try; a wrong hash needs none.
const QUIET: [&str; 6] = [
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=1000",
];
const LOCK: &str = "package-lock.json";

/// Writes the lock.
pub(super) fn resolve(
    manager: &PackageManager,
    request: &PackageRequest,
    tree: &Path,
) -> Result<ResolvedPackage, CliError> {
    super::write(&tree.join("package.json"), "{\"private\": true}\n")?;
    let spec = request.spec();
    let own = ["install", "--package-lock-only", "--save-exact", "--no-workspaces"];
    manager.run("npm", &[&own[..], &QUIET, &["--", &spec]].concat())?;
    let lock = super::read_json(&tree.join(LOCK))?;
    locked(&lock, &request.name).map_err(|why| unusable(request, &why))
}

/// The packages of a lock.
fn locked(lock: &Value, name: &str) -> Result<ResolvedPackage, String> {
    let own = format!("node_modules/{name}");
    let none = serde_json::Map::new();
    let packages = lock["packages"].as_object().unwrap_or(&none);
    let version = packages.get(&own).and_then(|package| package["version"].as_str());
    let version = version.ok_or_else(|| format!("npm's lock has no version of {name}"))?;
    let mut scripts = Vec::new();
    for (place, package) in packages.iter().filter(|(place, _)| !place.is_empty()) {
        let is_bundled = package["inBundle"].as_bool() == Some(true);
        let has_hash =
            package["integrity"].as_str().is_some_and(|hash| hash.starts_with("sha512-"));
        if !is_bundled && !has_hash {
            return Err(format!("{place} has no SHA-512 hash in the registry"));
        }
        if package["hasInstallScript"].as_bool() == Some(true) {
            let name = place.rsplit("node_modules/").next().unwrap_or(place);
            scripts.push(name.to_owned());
        }
    }
    let count = packages.keys().filter(|place| !place.is_empty()).count();
    let (name, version) = (name.to_owned(), version.to_owned());
    Ok(ResolvedPackage { name, version, count, scripts })
}

/// Fetches the packages of the lock. npm compares each with its hash.
pub(super) fn fetch(manager: &PackageManager) -> Result<(), CliError> {
    manager.run("npm", &[&["ci", "--omit=dev", "--no-workspaces"][..], &QUIET].concat()).map(drop)
}

/// The program of the package, by its path in the tree.
pub(super) fn program(request: &PackageRequest, tree: &Path) -> Result<PathBuf, CliError> {
    let description =
        super::read_json(&tree.join("node_modules").join(&request.name).join("package.json"))?;
    let name = program_of(&description["bin"], request).map_err(|why| unusable(request, &why))?;
    let program = Path::new("node_modules/.bin").join(name);
    // npm makes the link; one that leads out of the tree would be another's program.
    let is_own = |real: PathBuf| Some(real.starts_with(tree.canonicalize().ok()?));
    match tree.join(&program).canonicalize().ok().and_then(is_own) {
        Some(true) => Ok(program),
        Some(false) | None => {
            let why = format!("its program {} is missing", program.display());
            Err(unusable(request, &why))
        }
    }
}

/// The name of the program that `npx` runs: the only one, or the one with the package's name.
fn program_of(bin: &Value, request: &PackageRequest) -> Result<String, String> {
    let short = request.name.rsplit('/').next().unwrap_or(&request.name);
    let names: Vec<&str> = match bin {
        Value::String(_) => vec![short],
        Value::Object(programs) => programs.keys().map(String::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Vec::new(),
    };
    let wanted = request.program.as_deref().unwrap_or(short);
    let only = names.first().filter(|_| names.len() == 1 && request.program.is_none());
    let found = names.iter().find(|name| **name == wanted).or(only);
    match found {
        Some(name) if !name.contains('/') && !name.starts_with('.') => Ok((*name).to_owned()),
        Some(_) | None if names.is_empty() => Err("it has no program".to_owned()),
        Some(_) | None => Err(format!("it has the programs {}", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn request(name: &str, program: Option<&str>) -> PackageRequest {
        let found = PackageRequest::of_flag(&format!("npm:{name}")).unwrap();
        PackageRequest { program: program.map(str::to_owned), ..found }
    }

    #[test]
    fn each_package_of_a_lock_has_a_hash() {
        let mut lock = json!({"packages": {
            "": {"dependencies": {"@a/b": "1.0.0"}},
            "node_modules/@a/b": {"version": "1.0.0", "integrity": "sha512-x"},
            "node_modules/c": {"version": "2.0.0", "integrity": "sha512-y", "hasInstallScript": true},
            "node_modules/c/node_modules/d": {"version": "3.0.0", "inBundle": true},
        }});
        let found = locked(&lock, "@a/b").unwrap();
        assert_eq!((found.version.as_str(), found.count), ("1.0.0", 3));
        assert_eq!(found.scripts, ["c"]);
        assert!(locked(&lock, "other").unwrap_err().contains("no version of other"));
        for bad in [
            json!({"resolved": "git+ssh://x"}),
            json!({"link": true}),
            json!({"integrity": "sha1-x"}),
        ] {
            lock["packages"]["node_modules/c"] = bad;
            assert!(locked(&lock, "@a/b").unwrap_err().contains("node_modules/c has no SHA-512"));
        }
    }

    #[test]
    fn the_program_is_the_one_that_npx_runs() {
        for (bin, wanted, found) in [
            (json!("./x.js"), None, Ok("b")),
            (json!({"other": "x"}), None, Ok("other")),
            (json!({"b": "x", "c": "y"}), None, Ok("b")),
            (json!({"b": "x", "c": "y"}), Some("c"), Ok("c")),
            (json!({"d": "x", "c": "y"}), None, Err("programs")),
            (json!({"b": "x"}), Some("c"), Err("programs")),
            (json!({"../x": "x"}), None, Err("programs")),
            (Value::Null, None, Err("no program")),
        ] {
            match (program_of(&bin, &request("@a/b", wanted)), found) {
                (Ok(name), Ok(found)) => assert_eq!(name, found),
                (Err(said), Err(why)) => assert!(said.contains(why), "{said}"),
                (said, _) => panic!("{bin}: {said:?}"),
            }
        }
    }
}
