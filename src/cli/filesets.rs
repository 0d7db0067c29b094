//! `errand filesets`.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::pages::Sorted;
use super::render::Column;
use super::{Session, Usage, documents, filter};
use crate::client::segment;
use crate::exit::Exit;

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("WORKSPACE", "/workspace"),
    ("PURPOSE", "/purpose"),
    ("DESCRIPTION", "/description"),
    ("CREATED", "/created_at"),
];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make an empty fileset
    Create {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
        #[command(flatten)]
        fields: Fields,
        /// Show the one that is there already instead of failing
        #[arg(long)]
        exist_ok: bool,
    },
    /// List the filesets
    List(List),
    /// Show one
    Get {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
    /// Change what is given of one
    Update {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
        #[command(flatten)]
        fields: Fields,
    },
    /// Delete one with its files
    Delete {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct Fields {
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// generic, dataset, environment or model
    #[arg(long)]
    purpose: Option<String>,
    /// The project that it belongs to
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// What it says of itself: an object with dataset, model or environment
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Anything else: an object
    #[arg(long, value_name = "JSON")]
    custom_fields: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Filesets of this name
    #[arg(long = "filter.name", value_name = "NAME")]
    name: Vec<String>,
    /// Filesets with this description
    #[arg(long = "filter.description", value_name = "TEXT")]
    description: Vec<String>,
    /// Filesets for this purpose
    #[arg(long = "filter.purpose", value_name = "PURPOSE")]
    purpose: Vec<String>,
    /// Filesets in this kind of storage
    #[arg(long = "filter.storage-type", value_name = "TYPE")]
    storage_type: Vec<String>,
    /// A filter as JSON
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    #[command(flatten)]
    pages: Sorted,
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        let path = format!("{}/filesets", session.base("files", None));
        let one = |name: &str| format!("{path}/{}", segment(name));
        match self {
            Self::Create { name, fields, exist_ok } => {
                let mut body = fields.given()?;
                body.insert("name".to_owned(), json!(name));
                let made = client.post(&path, &Value::Object(body)).await;
                out.one(&match made {
                    Err(error) if exist_ok && error.is_conflict() => {
                        client.get(&one(&name)).await?
                    }
                    made => made?,
                });
            }
            Self::List(List { name, description, purpose, storage_type, filter, pages }) => {
                let fields: [(&str, &[String]); 4] = [
                    ("name", &name),
                    ("description", &description),
                    ("purpose", &purpose),
                    ("storage_type", &storage_type),
                ];
                let filter = filter::combine(filter.as_deref(), &fields)?;
                pages.show(session, &path, filter, COLUMNS).await?;
            }
            Self::Get { name } => out.one(&client.get(&one(&name)).await?),
            Self::Update { name, fields } => {
                let body = fields.given()?;
                if body.is_empty() {
                    return Err(Usage(
                        "nothing to change: give --description or another".to_owned(),
                    )
                    .into());
                }
                out.one(&client.send(Method::PATCH, &one(&name), &Value::Object(body)).await?);
            }
            Self::Delete { name } => out.one(&client.delete(&one(&name)).await?),
        }
        Ok(Exit::Done)
    }
}

impl Fields {
    /// What is given, as the API has it.
    fn given(self) -> Result<Map<String, Value>, Usage> {
        let mut given = Map::new();
        let texts = [
            ("description", self.description),
            ("purpose", self.purpose),
            ("project", self.project),
        ];
        for (key, text) in texts {
            given.extend(text.map(|text| (key.to_owned(), json!(text))));
        }
        for (key, flag, text) in [
            ("metadata", "--metadata", self.metadata),
            ("custom_fields", "--custom-fields", self.custom_fields),
        ] {
            if let Some(text) = text {
                given.insert(key.to_owned(), Value::Object(documents::object(&text, flag)?));
            }
        }
        Ok(given)
    }
}
