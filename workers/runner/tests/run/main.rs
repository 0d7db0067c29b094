//! Whole runs with the real program: each test makes a run directory, starts
//! `errand-runner supervise` in it and looks at what is left.

mod scene;

mod cgroup;
mod ends;
mod faults;
mod forged;
mod formats;
mod input;
mod output;
mod sandbox;
mod silence;
