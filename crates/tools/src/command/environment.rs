//! The environment variables of a command.

use crate::command::package_caches::{self};
use crate::command::proxy_variables;
use crate::command::setup::CommandSetup;
use crate::tool_context::ToolContext;
use sandbox::Cage;
use std::ffi::OsString;
use std::path::Path;

/// The command's environment: the given variables, the temporary directory, and the session's
/// package caches instead of the user's.
pub(super) fn environment(
    side: &CommandSetup<'_>,
    without: Option<&'static str>,
    more: &[(String, String)],
    ctx: &ToolContext<'_>,
) -> Vec<(OsString, OsString)> {
    let CommandSetup { cage, proxy, signer, env: given, .. } = side;
    let added = |name: &String| more.iter().any(|(other, _)| other == name);
    let mut env: Vec<(OsString, OsString)> = given
        .iter()
        .filter(|(name, _)| !added(name))
        .filter(|(name, _)| !without.is_some_and(|prefix| name.starts_with(prefix)))
        .chain(more)
        .map(|(name, value)| match name.as_str() {
            "PATH" => (name.into(), startable(value, cage)),
            _ => (name.into(), value.into()),
        })
        .collect();
    if let Some(proxy) = proxy {
        let ways = proxy_variables::variables(*proxy);
        env.retain(|(name, _)| !ways.iter().any(|(way, _)| way == name));
        env.extend(ways);
    }
    let temp = ctx.scope.seen_in(cage, &ctx.scope.temp);
    let led = |caches| {
        let found = package_caches::CacheDirs::of(caches, ctx.scope, cage);
        package_caches::variables(given, &found, ctx.scope)
    };
    let caches = ctx.scope.caches.as_deref().map(led).unwrap_or_default().into_iter();
    // By default screen uses /run, which belongs to the machine.
    let screens = temp.join(".screen");
    let temporary = [("TMPDIR".into(), temp.into()), ("SCREENDIR".into(), screens.into())];
    let agent = signer.map(|signer| ctx.scope.seen_in(cage, signer.path()).into());
    let agent = agent.map(|path: OsString| ("SSH_AUTH_SOCK".into(), path));
    let own: Vec<_> = caches.chain(temporary).chain(agent).collect();
    env.retain(|(name, _)| !own.iter().any(|(other, _)| other == name));
    env.extend(own);
    env
}

/// A search path without the folders whose programs the cage refuses.
pub(super) fn startable(path: &str, cage: &Cage) -> OsString {
    // An empty or relative folder lies in the project.
    let kept = |folder: &&str| {
        let folder = Path::new(folder);
        !(folder.is_absolute() && cage.refuses_programs_in(folder))
    };
    let folders: Vec<&str> = path.split(':').filter(kept).collect();
    match folders.as_slice() {
        // An empty search path would be the project itself.
        [] => path.into(),
        folders => folders.join(":").into(),
    }
}
