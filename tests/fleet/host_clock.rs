//! A time of day of one host, which can jump. The clock of the machine stays as it is: a library that is loaded
//! before the C library shifts the time of day of the host's processes by what a file says. `host` uses it.

use crate::support::{Desk, needs};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *offset;
__attribute__((constructor)) static void begin(void) {
    int file = open(OFFSET_FILE, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *found = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) offset = found;
    close(file);
}
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = next(id, at);
    if (!failed && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += *offset;
    return failed;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"#;

/// The time of day of one host, which its processes read with an offset.
pub struct HostClock {
    pub library: PathBuf,
    offset: PathBuf,
}

impl HostClock {
    pub fn of(desk: &Desk) -> Self {
        needs("cc");
        let place = desk.outside();
        let [source, library, offset] =
            ["clock.c", "clock.so", "clock.offset"].map(|name| place.join(name));
        fs::write(&source, LIBRARY).unwrap();
        fs::write(&offset, 0_i64.to_ne_bytes()).unwrap();
        let file = format!("-DOFFSET_FILE=\"{}\"", offset.display());
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", &file, "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Self { library, offset }
    }

    /// Lets the time of day jump to so many seconds from the right one.
    pub fn jump(&self, seconds: i64) {
        use std::os::unix::fs::FileExt;
        // The file stays the same one: processes have it in their memory.
        let file = fs::File::options().write(true).open(&self.offset).unwrap();
        file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }
}
