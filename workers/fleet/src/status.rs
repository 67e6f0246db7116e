//! `agentd fleet status`: hosts, queue, throughput, and each batch's progress with an estimate.

use crate::error::FleetError;
use crate::schema::say;
use crate::shown::one_line;
use crate::shown::span;
use fleet::DatabaseArgs;
use protocol::hidden::in_json;
use serde_json::json;
use std::fmt::Write as _;

const HOSTS: &str = "
select w.name, w.slots, w.labels, w.build,
    extract(epoch from clock_timestamp() - w.seen)::float8,
    (select count(*) from agentd.lease l where l.worker = w.id and l.until > clock_timestamp())
from agentd.worker w
where w.ended is null and w.seen > clock_timestamp() - interval '1 day' order by w.name";
const TASKS: &str = "
select count(*) filter (where state = 'queued'), count(*) filter (where state = 'running'),
    count(*) filter (where state = 'held'),
    count(*) filter (where ended > clock_timestamp() - interval '10 min')
from agentd.task where state in ('queued', 'running', 'held')
    or ended > clock_timestamp() - interval '10 min'";
const BATCHES: &str = "
select batch, count(*), count(*) filter (where state in ('done', 'failed', 'cancelled')),
    count(*) filter (where state = 'failed'),
    extract(epoch from clock_timestamp() - min(started))::float8
from agentd.task where batch in (
    select batch from agentd.task where state in ('queued', 'running', 'held') group by batch)
group by batch order by batch desc limit 20";

pub(crate) async fn main(database: &DatabaseArgs, as_json: bool) -> Result<(), FleetError> {
    let client = crate::database::open(database).await?;
    let tasks = client.query_one(TASKS, &[]).await?;
    let count = |n: usize| tasks.try_get::<_, i64>(n);
    let (queued, running, held, ended) = (count(0)?, count(1)?, count(2)?, count(3)?);
    let (mut hosts, mut batches) = (Vec::new(), Vec::new());
    for row in client.query(HOSTS, &[]).await? {
        hosts.push(json!({
            "name": row.try_get::<_, String>(0)?, "slots": row.try_get::<_, i32>(1)?,
            "labels": row.try_get::<_, Vec<String>>(2)?, "build": row.try_get::<_, String>(3)?,
            "seen_s": row.try_get::<_, f64>(4)?, "leases": row.try_get::<_, i64>(5)?,
        }));
    }
    for row in client.query(BATCHES, &[]).await? {
        let (all, over): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
        let took: Option<f64> = row.try_get(4)?;
        batches.push(json!({
            "batch": row.try_get::<_, i64>(0)?, "tasks": all, "over": over,
            "failed": row.try_get::<_, i64>(3)?, "left_s": estimate(all, over, took),
        }));
    }
    let whole = json!({"queued": queued, "running": running, "held": held,
        "ended_10min": ended, "hosts": hosts, "batches": batches});
    if as_json {
        return say(&format!("{}\n", in_json(&whole.to_string())));
    }
    let mut out = format!(
        "{queued} queued, {running} running, {held} held; {ended} ended in the last 10 min\n"
    );
    for host in &hosts {
        let (seen, name) = (host["seen_s"].as_f64().unwrap_or_default(), &host["name"]);
        let _ = writeln!(
            out,
            "host   {:<20} {} of {} slots, seen {} ago",
            one_line(name.as_str().unwrap_or_default()),
            host["leases"],
            host["slots"],
            span(seen)
        );
    }
    for batch in &batches {
        let left = match batch["left_s"].as_f64() {
            Some(left) => format!("about {} left", span(left)),
            None => "no estimate yet".to_owned(),
        };
        let (over, all, failed) = (&batch["over"], &batch["tasks"], &batch["failed"]);
        let _ = writeln!(
            out,
            "batch  {:<20} {over} of {all} over, {failed} failed, {left}",
            batch["batch"]
        );
    }
    say(&out)
}

/// Seconds until a batch is over, if it goes on as it went so far.
#[allow(clippy::cast_precision_loss, reason = "an estimate of a few tasks")]
fn estimate(all: i64, over: i64, took: Option<f64>) -> Option<f64> {
    let took = took.filter(|_| over > 0)?;
    Some(took / over as f64 * (all - over) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_needs_a_task_that_is_over() {
        assert_eq!(estimate(10, 0, Some(5.0)), None);
        assert_eq!(estimate(10, 4, Some(8.0)), Some(12.0));
        assert_eq!(estimate(10, 4, None), None);
    }
}
