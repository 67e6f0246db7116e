//! System V segments of the runner's IPC namespace, as the kernel lists them.

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SysvSegment {
    pub id: u64,
    /// The process that created it, which may have ended.
    pub creator: u32,
    /// The user of that process.
    pub user: u32,
    /// Bytes in memory.
    pub resident: u64,
}

/// All segments; none if the kernel has no list.
pub(super) fn all() -> Vec<SysvSegment> {
    std::fs::read_to_string("/proc/sysvipc/shm").map(|text| parse(&text)).unwrap_or_default()
}

/// The first line names the columns.
fn parse(text: &str) -> Vec<SysvSegment> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    let column = |wanted: &str| names.iter().position(|name| *name == wanted);
    let [Some(id), Some(creator), Some(user), Some(resident)] =
        ["shmid", "cpid", "cuid", "rss"].map(column)
    else {
        return Vec::new();
    };
    lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            Some(SysvSegment {
                id: fields.get(id)?.parse().ok()?,
                creator: fields.get(creator)?.parse().ok()?,
                user: fields.get(user)?.parse().ok()?,
                resident: fields.get(resident)?.parse().ok()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n         0          7  1600              67108864    42    42      0  1000  1000  1001  1000          0          0 1700000000              67108864                     0\n";
        let segment = SysvSegment { id: 7, creator: 42, user: 1001, resident: 67_108_864 };
        assert_eq!(parse(text), [segment]);
        assert_eq!(parse("key shmid\n0 7\n"), []);
        assert_eq!(parse(""), []);
    }
}
