//! Makes the schema of a fleet's database, its roles and members.

use crate::database::{config_of, connect, url_of};
use crate::error::FleetError;
use crate::schema_version::{VERSIONS, wanted};
use fleet::{DatabaseArgs, InitArgs};
use std::io::Write;

/// What comes before the first version: roles, which belong to the whole server, and the version.
const BEGINNING: &str = "
do $$
declare name text;
begin
    foreach name in array array['agentd_owner', 'agentd_worker', 'agentd_user'] loop
        if not exists (select from pg_roles where rolname = name) then
            execute format('create role %I nologin', name);
        end if;
    end loop;
    -- To tell standbys from copies that are being made. Without it each of them counts as a standby.
    begin
        grant pg_read_all_stats to agentd_owner;
    exception when insufficient_privilege then
        null;
    end;
    execute format('grant agentd_owner to %I', current_user);
    execute format('grant create on database %I to agentd_owner', current_database());
end $$;
set local role agentd_owner;
create schema if not exists agentd authorization agentd_owner;
create table if not exists agentd.schema_version (
    version int primary key, applied timestamptz not null default clock_timestamp());
create or replace function agentd.version() returns int
    language sql stable security definer set search_path = agentd, pg_temp
    as $f$ select coalesce(max(version), 0) from schema_version $f$;
";

/// `agentd fleet init`.
pub(crate) async fn init(args: &InitArgs) -> Result<(), FleetError> {
    let mut client = connect(&config_of(&url_of(args.url.as_deref())?)?).await?;
    let work = client.transaction().await?;
    // Two that run at once: the second waits, and finds the work done.
    work.batch_execute("select pg_advisory_xact_lock(hashtext('agentd fleet init'))").await?;
    work.batch_execute(BEGINNING).await?;
    let found: i32 = work.query_one("select agentd.version()", &[]).await?.try_get(0)?;
    if found > wanted() {
        return Err(FleetError::Schema { found, wanted: wanted() });
    }
    let done = usize::try_from(found).unwrap_or_default();
    for (version, sql) in (1_i32..).zip(VERSIONS).skip(done) {
        work.batch_execute(sql).await?;
        work.execute("insert into agentd.schema_version (version) values ($1)", &[&version])
            .await?;
    }
    let lease_ms = args.lease.map(|seconds| i32::try_from(seconds * 1000).unwrap_or(i32::MAX));
    let accept = args.accept_async_standby.then_some(true);
    // What no flag gives stays as it is.
    let lease: i32 = work
        .query_one(
            "insert into agentd.setting as s (lease_ms, margin_ms, accept_async)
             values (coalesce($1, 30000), coalesce($1, 30000) / 6, coalesce($2, false))
             on conflict (one) do update set lease_ms = coalesce($1, s.lease_ms),
                 margin_ms = greatest(s.margin_ms, coalesce($1, s.lease_ms) / 6),
                 accept_async = coalesce($2, s.accept_async)
             returning lease_ms",
            &[&lease_ms, &accept],
        )
        .await?
        .try_get(0)?;
    work.batch_execute("reset role").await?;
    let role: String = work.query_one("select current_user::text", &[]).await?.try_get(0)?;
    add_member(&work, &role, &args.tenant).await?;
    // It refuses an engine that could lose what it acknowledged.
    work.batch_execute("set local role agentd_owner; select agentd.check_engine(); reset role")
        .await?;
    work.commit().await?;
    let did = match done == VERSIONS.len() {
        true => "is up to date",
        false => "is ready",
    };
    say(&format!(
        "The fleet {did}: schema {}, lease {} s, {role} belongs to tenant {}.\n\
         Next: agentd submit --repo REPO --prompt TEXT, and agentd fleet worker on each host.\n",
        wanted(),
        lease / 1000,
        args.tenant
    ))
}

/// `agentd fleet allow`.
pub(crate) async fn allow(
    database: &DatabaseArgs,
    role: &str,
    tenant: &str,
) -> Result<(), FleetError> {
    let mut client = crate::database::open(database).await?;
    let work = client.transaction().await?;
    add_member(&work, role, tenant).await?;
    work.commit().await?;
    say(&format!("{role} submits and works for tenant {tenant}.\n"))
}

async fn add_member(
    work: &tokio_postgres::Transaction<'_>,
    role: &str,
    tenant: &str,
) -> Result<(), FleetError> {
    let known = work.query_opt("select from pg_roles where rolname = $1::text", &[&role]).await?;
    if known.is_none() {
        return Err(FleetError::Refused(format!("the database has no role {role}")));
    }
    let grants: String = work
        .query_one("select format('grant agentd_worker, agentd_user to %I', $1::text)", &[&role])
        .await?
        .try_get(0)?;
    work.batch_execute(&grants).await?;
    work.execute(
        "insert into agentd.member (role, tenant) values ($1::text::name, $2)
         on conflict (role) do update set tenant = excluded.tenant",
        &[&role, &tenant],
    )
    .await?;
    Ok(())
}

/// Writes to standard output.
pub(crate) fn say(text: &str) -> Result<(), FleetError> {
    std::io::stdout().write_all(text.as_bytes()).map_err(FleetError::Output)
}
