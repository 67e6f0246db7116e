//! The number of tools and of those without a process, as the documents state it.

use protocol::confinement::Profile;
use std::fs;
use std::path::Path;
use tool_specs::{Caller, specs};

#[test]
fn the_documents_count_the_tools_as_the_table_does() {
    let offered = || specs().iter().filter(|spec| spec.caller == Caller::Model);
    let without =
        offered().filter(|spec| matches!(spec.profile, Profile::Session | Profile::Store));
    let figure = format!("{} of the {} ", without.count(), offered().count());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for document in ["README.md", "crates/tools/README.md"] {
        let text = fs::read_to_string(root.join(document)).unwrap();
        assert!(text.contains(&figure), "{document} does not say {figure:?}");
        let counts = text.matches("start no process").count();
        assert_eq!(counts, 1, "{document} counts once");
    }
}
