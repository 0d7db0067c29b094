//! `errand completions`: the grammar in the words of a shell.

use clap::Args;
use clap_complete::{Shell, generate};

use super::render::Output;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell; load what is printed from its start-up file
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self, out: &Output) -> anyhow::Result<Exit> {
        out.text(script(self.shell)?.trim_end());
        Ok(Exit::Done)
    }
}

/// The completion script for a shell.
pub(super) fn script(shell: Shell) -> anyhow::Result<String> {
    let mut script = Vec::new();
    generate(shell, &mut super::command(), "errand", &mut script);
    Ok(String::from_utf8(script)?)
}
