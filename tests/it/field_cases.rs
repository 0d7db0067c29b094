//! The field cases: small inputs from real fault reports, with the outcome that is right. Each
//! test is named after its case in the specification.

mod budgets;
mod cancel;
mod claims;
mod directories;
mod expected;
mod follow;
mod input;
mod late;
mod logs;
mod memory;
mod odd_trees;
mod phases;
mod rebuild;
mod results;
mod secrets;
mod stuck;
mod submission;
mod time;
mod unfinished;
mod upgrade;
