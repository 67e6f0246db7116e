//! Marks a step at which tests can hold a process. Expands to nothing in a build without hooks.

/// Marks a step by its name: a build with `--cfg agentd_hooks` says it to the test and waits there,
/// any other build has nothing in its place.
///
/// `if` selects the messages at which the step is reached; `after` runs first, so that queued
/// messages are sent before.
#[macro_export]
macro_rules! step {
    ($name:literal) => {
        #[cfg(agentd_hooks)]
        $crate::hook::at($name);
    };
    ($name:literal, if $reached:expr) => {
        #[cfg(agentd_hooks)]
        if $reached {
            $crate::hook::at($name);
        }
    };
    ($name:literal, after $first:expr) => {
        #[cfg(agentd_hooks)]
        {
            $first;
            $crate::hook::at($name);
        }
    };
}
