//! Turns the policies of `config/confinement/` and the names of `config/protected.toml` into Rust; a
//! word that no type knows ends the build.

use std::path::Path;

#[allow(dead_code)]
#[path = "src/policy_source.rs"]
mod policy_source;

/// The files. `fleet-git` is no profile: no call has it.
const POLICIES: [&str; 20] = [
    "probe",
    "query",
    "mutate",
    "command",
    "session",
    "broker",
    "provider",
    "store",
    "web",
    "verify",
    "format",
    "git",
    "git-look",
    "hook",
    "guard-hook",
    "document",
    "mcp",
    "mcp-write",
    "mcp-remote",
    "fleet-git",
];

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let folder = Path::new(&here).join("../../config/confinement");
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=src/policy_source.rs");
    let file = folder.join("../protected.toml");
    println!("cargo::rerun-if-changed={}", file.display());
    let names = std::fs::read_to_string(&file).map_err(|error| error.to_string());
    let mut all = match names.and_then(|text| policy_source::translate_names(&text)) {
        Ok(names) => format!("pub(super) static PROTECTED: &[ProtectedName] = {names};\n"),
        Err(error) => panic!("{}: {error}", file.display()),
    };
    let parts = folder.join("parts");
    println!("cargo::rerun-if-changed={}", parts.display());
    let part = |name: &str| {
        std::fs::read_to_string(parts.join(format!("{name}.toml")))
            .map_err(|error| error.to_string())
    };
    for profile in POLICIES {
        let file = folder.join(format!("{profile}.toml"));
        println!("cargo::rerun-if-changed={}", file.display());
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => panic!("{}: {error}", file.display()),
        };
        match policy_source::translate(&text, part) {
            Ok(policy) => {
                let name = policy_source::constant(profile);
                all += &format!("pub(super) static {name}: ConfinementPolicy = {policy};\n");
            }
            Err(error) => panic!("{}: {error}", file.display()),
        }
    }
    let out = std::env::var("OUT_DIR").expect("cargo names the folder for output");
    let file = Path::new(&out).join("policies.rs");
    if let Err(error) = std::fs::write(&file, all) {
        panic!("{}: {error}", file.display());
    }
}
