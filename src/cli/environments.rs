//! `errand environments`, `environment-specs` and `compute-specs`: the same verbs on three
//! collections. What a document may hold is the server's to judge.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::Value;

use super::pages::Sorted;
use super::render::Column;
use super::{Session, Usage, documents};
use crate::client::segment;
use crate::exit::Exit;

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("WORKSPACE", "/workspace"),
    ("DESCRIPTION", "/description"),
    ("CREATED", "/created_at"),
];

/// Which of the three collections.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Environments,
    EnvironmentSpecs,
    ComputeSpecs,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Store one from a file; there is no update: delete it and make it again
    Create {
        /// What it holds, as YAML or JSON, from a file or from stdin (-)
        #[arg(long, value_name = "FILE", visible_alias = "spec-file")]
        file: PathBuf,
        /// Its name; the one in the file when not given
        #[arg(long, value_parser = super::name)]
        name: Option<String>,
    },
    /// List them
    List(Sorted),
    /// Show one
    Get {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
    /// Delete one; jobs keep what they were submitted with
    Delete {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
}

impl Kind {
    const fn route(self) -> &'static str {
        match self {
            Self::Environments => "environments",
            Self::EnvironmentSpecs => "environment-specs",
            Self::ComputeSpecs => "compute-specs",
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Environments => "environment",
            Self::EnvironmentSpecs => "environment spec",
            Self::ComputeSpecs => "compute spec",
        }
    }
}

impl Command {
    pub(super) async fn run(self, kind: Kind, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        let path = format!("{}/{}", session.base("agents", None), kind.route());
        match self {
            Self::Create { file, name } => {
                let mut body = documents::object_in(&file)?;
                body.extend(name.map(|name| ("name".to_owned(), name.into())));
                if !body.contains_key("name") {
                    let text = format!(
                        "the {} has no name: give --name, or name it in {}",
                        kind.noun(),
                        file.display()
                    );
                    return Err(Usage(text).into());
                }
                out.one(&client.post(&path, &Value::Object(body)).await?);
            }
            Self::List(list) => list.show(session, &path, None, COLUMNS).await?,
            Self::Get { name } => {
                out.one(&client.get(&format!("{path}/{}", segment(&name))).await?)
            }
            Self::Delete { name } => {
                client.delete(&format!("{path}/{}", segment(&name))).await?;
                out.note(&format!("{} '{name}' is deleted", kind.noun()));
            }
        }
        Ok(Exit::Done)
    }
}
