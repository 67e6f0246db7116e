//! The number of tools and of those without a process, as the documents state it.

use protocol::confinement::Profile;
use std::fs;
use std::path::Path;
use tool_specs::{Caller, specs};

#[test]
fn the_documents_count_and_name_the_tools_as_the_table_does() {
    let offered = || specs().iter().filter(|spec| spec.caller == Caller::Model);
    let without =
        offered().filter(|spec| matches!(spec.profile, Profile::Session | Profile::Store));
    let figure = format!("{} of the {} ", without.count(), offered().count());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let readme = read("crates/tools/README.md");
    assert!(readme.contains(&figure), "the README of tools does not say {figure:?}");
    for document in ["README.md", "ARCHITECTURE.md"] {
        assert!(!read(document).contains("start no process"), "{document} counts again");
    }
    for spec in offered() {
        let name = format!("`{}`", spec.name);
        assert!(readme.contains(&name), "the README of tools does not name {name}");
    }
}
