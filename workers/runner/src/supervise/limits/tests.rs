use errand_runner::Limits as Wanted;
use errand_runner::cgroup::Usage;

use super::*;

fn check(limits: Wanted, usage: Usage, want_of_memory: Option<&str>, struck: &[&str]) {
    let told = Limits::told(limits, usage);
    assert_eq!(told.want_of_memory.as_deref(), want_of_memory);
    assert_eq!(told.struck, struck);
}

#[test]
fn limits_that_struck_are_told_with_their_figures() {
    let none = Wanted::default();
    let quiet = Usage { peak_bytes: Some(MIB), ..Usage::default() };
    check(Wanted { memory_bytes: Some(MIB), ..none }, quiet, None, &[]);
    check(
        Wanted { memory_bytes: Some(64 * MIB), ..none },
        Usage { oom_kills: 2, peak_bytes: Some(64 * MIB), refused_forks: 0 },
        Some("killed for want of memory: limit 64 MiB, peak 64 MiB"),
        &["Processes of the agent were killed for want of memory (2 of them): limit 64 MiB, peak \
           64 MiB."],
    );
    check(
        none,
        Usage { oom_kills: 1, peak_bytes: Some(MIB + MIB / 2), refused_forks: 0 },
        Some(
            "killed for want of memory: the machine, or a group above the run's, has no more, \
             peak 1.5 MiB",
        ),
        &["Processes of the agent were killed for want of memory (1 of them): the machine, or a \
           group above the run's, has no more, peak 1.5 MiB."],
    );
    check(
        Wanted { processes: Some(40), ..none },
        Usage { refused_forks: 7, ..Usage::default() },
        None,
        &["The agent may have 40 processes and threads at a time and was refused more, 7 times \
           (worker.max_processes)."],
    );
}
