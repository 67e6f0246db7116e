-- The schema of a fleet, version 1. `agentd fleet init` runs it in one transaction.
--
-- Workers and users have no right on a table that lets them write: they execute the functions below,
-- which belong to `agentd_owner`. Each function that writes for a session checks its lease in the same
-- transaction, so that a host that lost its lease can add nothing.
--
-- Row security separates tenants, also inside the functions: their owner is no superuser, and the
-- policies hold for it. The tenant comes from the role that logged in.

create table agentd.setting (
    -- One row.
    one boolean primary key default true check (one),
    -- For how long a lease holds without a renewal, in milliseconds.
    lease_ms int not null check (lease_ms >= 1000),
    -- For how long a lease that ran out is kept before another host gets the task, in milliseconds.
    margin_ms int not null check (margin_ms >= 0),
    -- True if the owner accepts that a failover to an asynchronous standby loses the newest records.
    accept_async boolean not null default false
);

create table agentd.member (
    role name primary key,
    tenant text not null check (tenant ~ '^[a-z0-9][a-z0-9_-]{0,62}$')
);

create table agentd.worker (
    id uuid primary key,
    tenant text not null,
    name text not null,
    labels text[] not null,
    slots int not null,
    build text not null,
    began timestamptz not null default clock_timestamp(),
    seen timestamptz not null default clock_timestamp(),
    ended timestamptz
);
create index worker_seen on agentd.worker (tenant, seen);

create table agentd.task (
    id bigint generated always as identity primary key,
    tenant text not null,
    -- The tasks of one submission, and the place in it.
    batch bigint not null,
    place int not null,
    -- What to do.
    repo text not null,
    ref text not null,
    prompt text not null,
    -- Flags of the run, as the command line writes them.
    flags text[] not null default '{}',
    labels text[] not null default '{}',
    timeout_ms bigint,
    priority int not null default 0,
    on_host_loss text not null check (on_host_loss in ('report', 'retry', 'resume')),
    -- True if questions about calls wait for a person.
    ask boolean not null default false,
    -- True if a person let it go on, whatever its policy says. The next claim uses it up.
    decided boolean not null default false,
    -- True if records of its session may be lost by a failover. A person's decision ends it.
    failed_over boolean not null default false,
    -- How far it is.
    state text not null default 'queued'
        check (state in ('queued', 'running', 'held', 'done', 'failed', 'cancelled')),
    -- Why it is held, failed or cancelled.
    reason text,
    cancel boolean not null default false,
    -- The session that works for it; a new one where a retry starts from the beginning.
    session text not null unique,
    -- How often it was claimed.
    epoch int not null default 0,
    -- The last record when a person let it go on: a turn that ended before is followed by another.
    resume_after bigint not null default 0,
    submitted timestamptz not null default clock_timestamp(),
    started timestamptz,
    ended timestamptz,
    result jsonb
) with (fillfactor = 70);
create index task_queue on agentd.task (tenant, priority desc, id) where state = 'queued';
create index task_batch on agentd.task (batch, place);
-- The only index for a claim, whatever the planner knows of the table: the next one has no waiting tasks.
create index task_state on agentd.task (tenant, state, id) where state <> 'queued';
create index task_cancel on agentd.task (tenant) where cancel and state in ('queued', 'running');

-- One row for each session that a host has worked for. It is updated with each append: no column of an
-- index changes then.
create table agentd.lease (
    session text primary key,
    task bigint not null unique references agentd.task (id) on delete cascade,
    tenant text not null,
    -- Names one claim. Whoever does not know it can write nothing.
    lease uuid not null unique,
    worker uuid not null,
    epoch int not null,
    -- The database's history at the claim. A failover begins another one and voids the lease.
    timeline int not null,
    -- Sequence number of the last record of the session's journal.
    last_seq bigint not null default 0,
    -- Its length without a renewal, as its host knows it.
    length_ms int not null,
    until timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index lease_worker on agentd.lease (worker);
-- Each claim looks for leases that ran out. Those that are over have `-infinity`.
create index lease_until on agentd.lease (until) where until > '-infinity';

-- The second copy of the sessions' journals, a line a record. Append only. Partitioned by month, so
-- that old ones are dropped as a whole.
create table agentd.journal (
    tenant text not null,
    session text not null,
    seq bigint not null,
    epoch int not null,
    at timestamptz not null default clock_timestamp(),
    line text not null
) partition by range (at);
create index journal_place on agentd.journal (session, seq);
create table agentd.journal_default partition of agentd.journal default;

-- Long texts and images of journals, and snapshots, by the digest of their content.
create table agentd.blob (
    tenant text not null,
    sha256 bytea not null check (length(sha256) = 32),
    bytes bytea not null check (length(bytes) <= 67108864),
    primary key (tenant, sha256)
);

-- The state of a workspace after a call: a git tree, in packs that build on each other.
create table agentd.snapshot (
    tenant text not null,
    session text not null,
    -- The last record of the journal that it includes the effects of.
    seq bigint not null,
    epoch int not null,
    base text not null,
    tree text not null,
    -- The objects: here, or under this name in the object store.
    pack bytea not null check (length(pack) <= 67108864),
    object text,
    primary key (session, seq)
);

-- Messages between a terminal and a session on another host. They need not survive a crash of the
-- database: a terminal that misses one connects again.
create unlogged table agentd.relay (
    tenant text not null,
    terminal uuid not null,
    session text not null,
    -- 'up' to the session, 'down' to the terminal.
    way text not null check (way in ('up', 'down')),
    n bigint not null,
    bytes bytea not null,
    at timestamptz not null default clock_timestamp(),
    primary key (terminal, way, n)
);

-- ---------------------------------------------------------------------------------------------------
-- Who asks.

-- In the language that keeps its plans: each table of each statement asks it.
create function agentd.tenant() returns text
language plpgsql stable security definer set search_path = agentd, pg_temp
as $$ begin return (select m.tenant from member m where m.role = session_user); end $$;

create function agentd.my_tenant() returns text
language plpgsql stable security definer set search_path = agentd, pg_temp
as $$
declare found_tenant text := tenant();
begin
    if found_tenant is null then
        raise exception 'the role % belongs to no tenant of this fleet', session_user
            using errcode = 'AG001', hint = 'its owner runs: agentd fleet allow ' || session_user;
    end if;
    return found_tenant;
end $$;

-- The history that the database writes now. `pg_control_checkpoint` names it only after the first
-- checkpoint that follows a failover.
create function agentd.timeline() returns int
language plpgsql stable
as $$ begin return ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int; end $$;

-- Raises if a commit of this session could be lost.
create function agentd.check_engine() returns void
language plpgsql stable security definer set search_path = agentd, pg_temp
as $$
begin
    if current_setting('fsync') <> 'on' then
        raise exception 'the database has fsync off: a crash of its host would lose records'
            using errcode = 'AG002', hint = 'set fsync = on';
    end if;
    if current_setting('synchronous_commit') in ('off', 'local') then
        raise exception 'the database has synchronous_commit %: a crash would lose records',
            current_setting('synchronous_commit')
            using errcode = 'AG002', hint = 'set synchronous_commit = on';
    end if;
    if current_setting('full_page_writes') <> 'on' then
        raise exception 'the database has full_page_writes off: a crash could damage it'
            using errcode = 'AG002', hint = 'set full_page_writes = on';
    end if;
    if current_setting('synchronous_standby_names') = ''
        and not (select accept_async from setting)
        -- Without the right to see more, each sender is listed without its state: a copy that is made then
        -- counts as a standby too.
        and exists (
            select from pg_stat_get_wal_senders() where coalesce(state, 'streaming') = 'streaming') then
        raise exception 'the database has a standby and waits for none: a failover would lose records'
            using errcode = 'AG002',
            hint = 'set synchronous_standby_names, or: agentd fleet init --accept-async-standby';
    end if;
end $$;

-- ---------------------------------------------------------------------------------------------------
-- Leases. A connection keeps the plans of these functions. It has `enable_seqscan` and `jit` off: plans that
-- were made when the tables were small read indexes all the same.

-- The lease, locked, if it still holds; else raises AG003 with the reason.
create function agentd.held(p_lease uuid) returns agentd.lease
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare l lease;
begin
    select * into l from lease where lease = p_lease for update;
    if not found then
        raise exception 'another host has the task now, or it is over' using errcode = 'AG003';
    end if;
    if l.timeline <> timeline() then
        raise exception 'the database failed over, which voids every lease' using errcode = 'AG003';
    end if;
    if l.until <= clock_timestamp() then
        raise exception 'the lease ran out' using errcode = 'AG003';
    end if;
    return l;
end $$;

create function agentd.enlist(
    p_worker uuid, p_name text, p_labels text[], p_slots int, p_build text
) returns table (lease_ms int, margin_ms int)
language plpgsql security definer set search_path = agentd, pg_temp
as $$
begin
    perform check_engine();
    insert into worker (id, tenant, name, labels, slots, build)
    values (p_worker, my_tenant(), p_name, p_labels, p_slots, p_build)
    on conflict (id) do update set name = excluded.name, labels = excluded.labels,
        slots = excluded.slots, build = excluded.build, began = excluded.began,
        seen = excluded.seen, ended = null;
    perform make_partitions();
    -- Terminals and hosts that took these are gone.
    delete from relay r where r.at < clock_timestamp() - interval '1 hour';
    return query select s.lease_ms, s.margin_ms from setting s;
end $$;

-- Claims up to so many tasks: waiting ones first by priority, and those whose host was lost.
create function agentd.claim(p_worker uuid, p_most int, p_length_ms int)
returns table (
    lease uuid, task bigint, session text, epoch int, last_seq bigint, failed_over boolean,
    repo text, ref text, prompt text, flags text[], timeout_ms bigint, on_host_loss text,
    resume_after bigint, ask boolean
)
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare
    s setting;
    w worker;
    now_timeline int := timeline();
    -- What ran out before it is lost. A constant, since an index serves no function that is volatile.
    ran_out timestamptz;
    -- Sessions with such a lease, and those of them that this claim takes.
    without_host text[];
    lost_sessions text[] := '{}';
begin
    perform check_engine();
    select * into s from setting;
    ran_out := clock_timestamp() - s.margin_ms * interval '1 ms';
    select array_agg(l.session) into without_host from lease l
    where l.until > '-infinity' and l.until <= ran_out;
    select * into w from worker where id = p_worker;
    if not found then
        raise exception 'this worker is not enlisted' using errcode = 'AG004';
    end if;
    if p_length_ms not between 1000 and 3600000 then
        raise exception 'a lease of % ms', p_length_ms using errcode = 'AG005';
    end if;
    -- Nobody works for these any longer.
    update task t set state = 'cancelled', ended = clock_timestamp()
    where t.cancel and t.state in ('queued', 'running') and t.tenant = w.tenant
        and (t.state = 'queued' or exists (
            select from lease l where l.session = t.session and l.until <= ran_out));
    -- Most claims find none, and read no running task.
    if without_host is not null then
        lost_sessions := array(
            select l.session from lease l join task t on t.session = l.session
            where l.session = any (without_host) and l.until <= ran_out
                and t.state = 'running' and t.labels <@ w.labels
            order by t.priority desc, t.id limit p_most for update of l, t skip locked);
    end if;
    -- An idle host looks each second. The statement below costs a multiple of this one.
    if cardinality(lost_sessions) = 0 and not exists (
            select from task t where t.state = 'queued' and t.tenant = w.tenant and t.labels <@ w.labels) then
        return;
    end if;
    return query
    with lost as (
        select l.session as sess, l.timeline <> now_timeline as other, t.decided as by_person
        from unnest(lost_sessions) as named (session)
            join lease l on l.session = named.session join task t on t.session = named.session
    ), waiting as (
        select t.session as sess, false as other, t.decided as by_person from task t
        where t.state = 'queued' and t.tenant = w.tenant and t.labels <@ w.labels
        order by t.priority desc, t.id
        limit greatest(p_most - (select count(*) from lost), 0)::int for update of t skip locked
    ), chosen as (
        select * from lost union all select * from waiting
    ), began as (
        update task t set state = 'running', epoch = t.epoch + 1, reason = null,
            started = coalesce(t.started, clock_timestamp()), decided = false,
            failed_over = t.failed_over or chosen.other
        from chosen where t.session = chosen.sess
        returning t.*, chosen.by_person
    ), stale as (
        -- A lost host may have put a snapshot whose records never came.
        delete from snapshot p using chosen c, lease l
        where p.session = c.sess and l.session = c.sess and p.seq > l.last_seq
    ), leased as (
        insert into lease as l (session, task, tenant, lease, worker, epoch, timeline, length_ms, until)
        select b.session, b.id, b.tenant, gen_random_uuid(), p_worker, b.epoch, now_timeline,
            p_length_ms, clock_timestamp() + p_length_ms * interval '1 ms'
        from began b
        on conflict on constraint lease_pkey do update set lease = excluded.lease,
            worker = excluded.worker, epoch = excluded.epoch, timeline = excluded.timeline,
            length_ms = excluded.length_ms, until = excluded.until
        returning l.*
    )
    select l.lease, b.id, b.session, b.epoch, l.last_seq, b.failed_over,
        b.repo, b.ref, b.prompt, b.flags, b.timeout_ms,
        case when b.by_person then 'resume' else b.on_host_loss end, b.resume_after, b.ask
    from began b join leased l on l.session = b.session;
end $$;

-- True if a task waits or runs that this worker may get yet.
create function agentd.pending(p_worker uuid) returns boolean
language plpgsql stable security definer set search_path = agentd, pg_temp
as $$
declare w worker;
begin
    select * into w from worker where id = p_worker;
    return exists (select from task t where t.state = 'queued' and t.tenant = w.tenant and t.labels <@ w.labels)
        or exists (select from task t where t.state = 'running' and t.tenant = w.tenant and t.labels <@ w.labels);
end $$;

-- Renews leases, and says what the host has to know of each: nothing, or that the task is cancelled. A
-- lease that is not in the answer is lost.
create function agentd.renew(p_worker uuid, p_leases uuid[])
returns table (lease uuid, cancel boolean, last_seq bigint)
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare
    now_timeline int := timeline();
begin
    update worker set seen = clock_timestamp() where id = p_worker and seen < clock_timestamp() - interval '1 s';
    return query
    update lease l set until = clock_timestamp() + l.length_ms * interval '1 ms'
    from task t
    where l.lease = any (p_leases) and t.session = l.session and l.timeline = now_timeline
        and l.until > clock_timestamp()
    returning l.lease, t.cancel, l.last_seq;
end $$;

-- Appends lines to the journal of a session, behind the record before the first. A repeated append of
-- the same lines succeeds: its first answer may have been lost.
create function agentd.append(p_lease uuid, p_first bigint, p_lines text[]) returns void
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare
    l lease := held(p_lease);
    last bigint := p_first + cardinality(p_lines) - 1;
    differs boolean := p_first > l.last_seq + 1;
begin
    if current_setting('synchronous_commit') in ('off', 'local') then
        perform check_engine();
    end if;
    -- Only a repeated append reads the journal.
    if p_first <= l.last_seq then
        differs := p_lines[1:(least(last, l.last_seq) - p_first + 1)::int] <> (
            select coalesce(array_agg(j.line order by j.seq), '{}') from journal j
            where j.session = l.session and j.seq between p_first and l.last_seq and j.seq <= last);
    end if;
    if differs then
        raise exception 'the journal of % ends at record %, and this is %',
            l.session, l.last_seq, p_first using errcode = 'AG005';
    end if;
    if last > l.last_seq then
        insert into journal (tenant, session, seq, epoch, line)
        select l.tenant, l.session, p_first + n - 1, l.epoch, line
        from unnest(p_lines) with ordinality as lines (line, n)
        where p_first + n - 1 > l.last_seq;
        update lease set last_seq = last where lease.lease = p_lease;
    end if;
end $$;

create function agentd.put_blob(p_lease uuid, p_sha256 bytea, p_bytes bytea) returns void
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare l lease := held(p_lease);
begin
    if sha256(p_bytes) <> p_sha256 then
        raise exception 'these bytes have another digest' using errcode = 'AG005';
    end if;
    insert into blob values (l.tenant, p_sha256, p_bytes) on conflict do nothing;
end $$;

create function agentd.put_snapshot(
    p_lease uuid, p_seq bigint, p_base text, p_tree text, p_pack bytea, p_object text
) returns void
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare l lease := held(p_lease);
begin
    insert into snapshot
    values (l.tenant, l.session, p_seq, l.epoch, p_base, p_tree, p_pack, p_object)
    on conflict (session, seq) do update set epoch = excluded.epoch, base = excluded.base,
        tree = excluded.tree, pack = excluded.pack, object = excluded.object;
end $$;

-- The records of a session, for the host that goes on with it.
create function agentd.records(p_lease uuid, p_after bigint, p_most int)
returns table (seq bigint, line text)
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare l lease := held(p_lease);
begin
    return query select j.seq, j.line from journal j
    where j.session = l.session and j.seq > p_after order by j.seq limit p_most;
end $$;

create function agentd.blob_of(p_lease uuid, p_sha256 bytea) returns bytea
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare l lease := held(p_lease);
begin
    return (select b.bytes from blob b where b.tenant = l.tenant and b.sha256 = p_sha256);
end $$;

create function agentd.snapshots(p_lease uuid)
returns table (seq bigint, base text, tree text, pack bytea, object text)
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare l lease := held(p_lease);
begin
    return query select p.seq, p.base, p.tree, p.pack, p.object from snapshot p
    where p.session = l.session and p.seq <= l.last_seq order by p.seq;
end $$;

-- Ends a task: 'done', 'failed', 'cancelled' or 'held'. Once.
create function agentd.finish(p_lease uuid, p_state text, p_reason text, p_result jsonb) returns void
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare l lease := held(p_lease);
begin
    if p_state not in ('done', 'failed', 'cancelled', 'held') then
        raise exception 'a task cannot end as %', p_state using errcode = 'AG005';
    end if;
    update task t set state = p_state, reason = p_reason, result = p_result, ended = clock_timestamp()
    where t.session = l.session;
    -- What the session recorded stays; nobody holds it any longer.
    update lease set until = '-infinity' where lease.lease = p_lease;
end $$;

-- Gives a task back, for another host to go on with. Nothing of it runs any longer.
create function agentd.release(p_lease uuid) returns void
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare l lease := held(p_lease);
begin
    update task t set state = 'queued' where t.session = l.session;
    update lease set until = '-infinity' where lease.lease = p_lease;
end $$;

-- Starts a task from the beginning, in a new session, which is returned. The records of the session
-- before stay.
create function agentd.start_over(p_lease uuid) returns text
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare
    l lease := held(p_lease);
    fresh text := session_name(l.task);
begin
    update task t set session = fresh where t.session = l.session;
    update lease set session = fresh, last_seq = 0 where lease.lease = p_lease;
    return fresh;
end $$;

create function agentd.session_name(p_task bigint) returns text
language sql volatile
as $$ select 'task-' || p_task || '-' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 6) $$;

create function agentd.leave(p_worker uuid) returns void
language sql security definer set search_path = agentd, pg_temp
as $$ update worker set ended = clock_timestamp() where id = p_worker $$;

-- The journal's partitions for this month and the next.
create function agentd.make_partitions() returns void
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare
    first timestamptz;
    name text;
begin
    for first in
        select date_trunc('month', clock_timestamp()) + n * interval '1 month' from generate_series(0, 1) n
    loop
        name := 'journal_' || to_char(first, 'YYYY_MM');
        continue when to_regclass('agentd.' || name) is not null;
        perform pg_advisory_xact_lock(hashtext('agentd ' || name));
        -- Another host may have made it meanwhile. The cache that `to_regclass` asks does not know that.
        continue when exists (
            select from pg_class c where c.relname = name and c.relnamespace = 'agentd'::regnamespace);
        -- Records that came before the month had its partition stay where they are.
        continue when exists (
            select from journal_default where at >= first and at < first + interval '1 month');
        begin
            execute format(
                'create table agentd.%I partition of agentd.journal for values from (%L) to (%L)',
                name, first, first + interval '1 month');
        exception when duplicate_table then
            -- Another worker made it while this one waited for the lock.
            null;
        end;
    end loop;
end $$;

-- ---------------------------------------------------------------------------------------------------
-- Users.

-- Takes tasks: a JSON array of objects. Returns their numbers, in the same order.
create function agentd.submit(p_tasks jsonb) returns table (id bigint, session text)
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare
    of_tenant text := my_tenant();
    first bigint;
begin
    -- The batch has the number of its first task.
    first := nextval(pg_get_serial_sequence('agentd.task', 'id'));
    return query
    with numbered as (
        select value as v, ordinality::int as place,
            case when ordinality = 1 then first
                else nextval(pg_get_serial_sequence('agentd.task', 'id')) end as number
        from jsonb_array_elements(p_tasks) with ordinality
    )
    insert into task as t (id, tenant, batch, place, repo, ref, prompt, flags, labels, timeout_ms,
        priority, on_host_loss, ask, session)
    overriding system value
    select n.number, of_tenant, first, n.place, n.v ->> 'repo', n.v ->> 'ref', n.v ->> 'prompt',
        array(select jsonb_array_elements_text(n.v -> 'flags')),
        array(select jsonb_array_elements_text(n.v -> 'labels')),
        (n.v ->> 'timeout_ms')::bigint, coalesce((n.v ->> 'priority')::int, 0),
        n.v ->> 'on_host_loss', coalesce((n.v ->> 'ask')::boolean, false), session_name(n.number)
    from numbered n order by n.place
    returning t.id, t.session;
end $$;

-- Cancels a task: at once if no host has it, else when its host renews its lease. False if it is over.
create function agentd.cancel(p_task bigint) returns boolean
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare found_state text;
begin
    update task t set cancel = true,
        state = case when t.state in ('queued', 'held') then 'cancelled' else t.state end,
        ended = case when t.state in ('queued', 'held') then clock_timestamp() else t.ended end
    where t.id = p_task and t.state in ('queued', 'running', 'held')
    returning t.state into found_state;
    return found_state is not null;
end $$;

-- Lets a task that is over or held go on in its session, or start from the beginning. False if it runs.
create function agentd.again(p_task bigint, p_anew boolean) returns boolean
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare t task;
begin
    select * into t from task where task.id = p_task for update;
    if not found or t.state in ('queued', 'running') then
        return false;
    end if;
    update task set state = 'queued', reason = null, cancel = false, ended = null, result = null,
        decided = not p_anew, failed_over = false,
        session = case when p_anew then session_name(task.id) else task.session end,
        resume_after = case when p_anew then 0
            else coalesce((select l.last_seq from lease l where l.session = t.session), 0) end
    where task.id = p_task;
    if p_anew then
        delete from lease where lease.task = p_task;
    end if;
    return true;
end $$;

-- ---------------------------------------------------------------------------------------------------
-- Terminals of sessions on other hosts.

create function agentd.relay_up(p_terminal uuid, p_session text, p_n bigint, p_bytes bytea) returns void
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare of_worker uuid;
begin
    select l.worker into of_worker from lease l
    where l.session = p_session and l.until > clock_timestamp();
    if not found then
        raise exception 'no host works for % now', p_session using errcode = 'AG006';
    end if;
    insert into relay values (my_tenant(), p_terminal, p_session, 'up', p_n, p_bytes);
    perform pg_notify('agentd_w_' || replace(of_worker::text, '-', ''), p_terminal || ' ' || p_session);
end $$;

-- Each notification wakes every worker that listens: one is sent to a terminal that may not look by itself.
create function agentd.relay_down(
    p_lease uuid, p_terminal uuid, p_n bigint, p_bytes bytea, p_notify boolean default true
) returns void
language plpgsql security definer set search_path = agentd, pg_temp
as $$
declare l lease := held(p_lease);
begin
    if exists (select from relay r where r.terminal = p_terminal and r.way = 'down'
            and r.at < clock_timestamp() - interval '15 s') then
        raise exception 'the terminal takes no messages any longer' using errcode = 'AG006';
    end if;
    insert into relay values (l.tenant, p_terminal, l.session, 'down', p_n, p_bytes);
    if p_notify then
        perform pg_notify('agentd_t_' || replace(p_terminal::text, '-', ''), '');
    end if;
end $$;

-- Takes the messages of a terminal that wait, in their order.
create function agentd.relay_take(p_terminal uuid, p_way text) returns table (n bigint, bytes bytea)
language plpgsql security definer set search_path = agentd, pg_temp
as $$
begin
    return query
    with taken as (
        delete from relay r where r.terminal = p_terminal and r.way = p_way returning r.n, r.bytes
    )
    select t.n, t.bytes from taken t order by t.n;
end $$;

-- ---------------------------------------------------------------------------------------------------
-- Rights.

do $$
declare name text;
begin
    foreach name in array array['worker', 'task', 'lease', 'journal', 'blob', 'snapshot', 'relay'] loop
        execute format('alter table agentd.%I enable row level security', name);
        execute format('alter table agentd.%I force row level security', name);
        execute format(
            'create policy tenant on agentd.%I using (tenant = (select agentd.tenant()))', name);
    end loop;
end $$;

revoke all on all functions in schema agentd from public;
grant usage on schema agentd to agentd_worker, agentd_user;
grant execute on function
    agentd.enlist, agentd.claim, agentd.pending, agentd.renew, agentd.append, agentd.put_blob, agentd.put_snapshot,
    agentd.records, agentd.blob_of, agentd.snapshots, agentd.finish, agentd.release,
    agentd.start_over, agentd.leave, agentd.relay_down, agentd.relay_take, agentd.version
    to agentd_worker;
grant execute on function
    agentd.submit, agentd.cancel, agentd.again, agentd.relay_up, agentd.relay_take, agentd.tenant,
    agentd.version
    to agentd_user;
grant select on agentd.task, agentd.worker, agentd.journal, agentd.blob to agentd_user;
-- Whoever knows the lease itself may write.
grant select (session, task, tenant, worker, epoch, last_seq, until) on agentd.lease to agentd_user;
