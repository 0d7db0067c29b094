//! `errand tokens`: on the platform's machine and against its records, beside a running platform
//! or without one. Whoever can open the records needs no token, and somebody must make the first.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Usage;
use super::render::{Column, Output};
use crate::auth::{EVERYWHERE, Role, Roles, Token};
use crate::catalog::refs;
use crate::config::{Config, Overrides};
use crate::exit::Exit;
use crate::records::{self, NewToken, Records, TokenRow};

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("TOKEN", "/token"),
    ("ROLES", "/roles"),
    ("STATE", "/state"),
    ("CREATED", "/created_at"),
    ("LAST USED", "/used_at"),
    ("EXPIRES", "/expires_at"),
];

/// The longest time that a token can be given; without one it has no end.
const MOST_DAYS: i64 = 36_500;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a token for the --workspace, '*' for all of them; it is shown once, on stdout
    Create(Create),
    /// List the tokens, without what is secret of them
    List(Place),
    /// Revoke a token: from now on it is refused
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// What may be done there: viewer (read), submitter (and run jobs, write files) or admin
    #[arg(long, value_name = "ROLE")]
    role: Role,
    /// A role in another workspace besides, for jobs that refer to what is there
    #[arg(long, value_name = "WORKSPACE=ROLE", value_parser = grant)]
    also: Vec<(String, Role)>,
    /// What logs and lists call it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// After how many days it is refused; never if not given
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(1..=MOST_DAYS))]
    expires_in: Option<i64>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// Its name
    #[arg(value_parser = super::name)]
    name: String,
    #[command(flatten)]
    place: Place,
}

/// Where the records are.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The data directory of the platform
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Command {
    /// `workspace` is what the command line says: what a context says is not meant here.
    pub(super) async fn run(self, workspace: Option<String>, out: &Output) -> anyhow::Result<Exit> {
        match self {
            Self::Create(create) => create.run(workspace, out).await,
            Self::List(place) => {
                let (records, _) = place.open().await?;
                let tokens = records.tokens().all().await;
                records.close().await;
                let now = Timestamp::now();
                let shown: Vec<_> = tokens?.iter().map(|token| show(token, now)).collect();
                out.list(&json!({"data": shown}), COLUMNS);
                Ok(Exit::Done)
            }
            Self::Revoke(Revoke { name, place }) => {
                let (records, _) = place.open().await?;
                let revoked = records.tokens().revoke(&name).await;
                records.close().await;
                if matches!(revoked, Err(records::Error::NotFound)) {
                    out.note(&format!("errand: no token '{name}'; `errand tokens list` shows all"));
                    return Ok(Exit::NotFound);
                }
                revoked?;
                out.note(&format!("token '{name}' is revoked"));
                Ok(Exit::Done)
            }
        }
    }
}

impl Create {
    async fn run(self, workspace: Option<String>, out: &Output) -> anyhow::Result<Exit> {
        let Self { role, also, name, expires_in, place } = self;
        let Some(workspace) = workspace else {
            let text = "name the workspace: --workspace NAME, or --workspace '*' for all of them";
            return Err(Usage(text.to_owned()).into());
        };
        let token = Token::generate();
        let name =
            name.unwrap_or_else(|| format!("token-{}", token.public_part().to_ascii_lowercase()));
        if !refs::is_name(&name) {
            let text = format!("'{name}' is no name: it must match {}", refs::NAME_PATTERN);
            return Err(Usage(text).into());
        }
        let roles: Roles = also.into_iter().chain([(workspace, role)]).collect();
        let expires_at = expires_in
            .map(|days| Timestamp::now().checked_add(SignedDuration::from_hours(24 * days)))
            .transpose()?;
        let (records, config) = place.open().await?;
        let kept = keep(&records, &token, name.clone(), roles.clone(), expires_at).await;
        records.close().await;
        kept?;
        if !config.auth.required {
            out.note(
                "note: auth.required is false in this configuration, so no token is asked for",
            );
        }
        if out.wants_document() {
            let (value, roles) = (token.reveal(), in_words(&roles));
            out.one(&json!({
                "name": name, "token": value, "roles": roles, "expires_at": expires_at,
            }));
        } else {
            out.text(token.reveal());
            out.note(&format!("token '{name}' ({}) is not shown again", in_words(&roles)));
        }
        Ok(Exit::Done)
    }
}

async fn keep(
    records: &Records,
    token: &Token,
    name: String,
    roles: Roles,
    expires_at: Option<Timestamp>,
) -> anyhow::Result<()> {
    for workspace in roles.keys().filter(|workspace| *workspace != EVERYWHERE) {
        if !records.workspaces().exists(workspace).await? {
            let text = format!("workspace '{workspace}' does not exist; make it first");
            return Err(Usage(text).into());
        }
    }
    let (public_part, digest) = (token.public_part().to_owned(), token.digest().hex());
    let new = NewToken { name: name.clone(), public_part, digest, roles, expires_at };
    match records.tokens().insert(new).await {
        Err(records::Error::Conflict) => {
            let text = format!("there is, or was, a token '{name}'; choose another --name");
            Err(Usage(text).into())
        }
        kept => kept.context("the token is not kept"),
    }
}

impl Place {
    async fn open(self) -> anyhow::Result<(Records, Config)> {
        let overrides =
            Overrides { file: self.config, data_dir: self.data_dir, ..Default::default() };
        let config = Config::load(&overrides)?;
        std::fs::create_dir_all(config.data_dir()).with_context(|| {
            format!("cannot make the data directory {}", config.data_dir().display())
        })?;
        let records = Records::connect(&config.database_url()).await;
        Ok((records.context("cannot open the records")?, config))
    }
}

fn grant(text: &str) -> Result<(String, Role), String> {
    let (workspace, role) = text.split_once('=').ok_or("expected WORKSPACE=ROLE")?;
    let role = role.parse().map_err(|unknown: crate::auth::UnknownRole| unknown.to_string())?;
    Ok((workspace.to_owned(), role))
}

fn show(token: &TokenRow, now: Timestamp) -> Value {
    let state = match (token.revoked_at, token.is_valid(now)) {
        (Some(_), _) => "revoked",
        (None, false) => "expired",
        (None, true) => "valid",
    };
    json!({
        "name": token.name,
        "token": Token::shown(&token.public_part),
        "roles": in_words(&token.roles),
        "state": state,
        "created_at": token.created_at,
        "used_at": token.used_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
    })
}

/// `viewer in b, submitter in team`.
fn in_words(roles: &Roles) -> String {
    let words = roles.iter().map(|(workspace, role)| match &**workspace {
        EVERYWHERE => format!("{role} in all workspaces"),
        workspace => format!("{role} in {workspace}"),
    });
    words.collect::<Vec<_>>().join(", ")
}
