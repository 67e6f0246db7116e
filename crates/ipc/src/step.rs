//! The mark of a step at which tests hold a process. Nothing of it is in a build without hooks.

/// Marks a step by its name: a build with `--cfg agentd_hooks` says it to the test and waits there,
/// any other build has nothing in its place.
///
/// `if` says at which words the step is reached; `after` what comes first, so that what was queued
/// before the step is sent.
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
