//! Workspaces, agents and secrets: kept, found, listed, changed, removed; and grouped writes.

use futures_util::future::join_all;
use serde_json::json;

use crate::records::*;

const PAGE: Page = Page { page: 1, page_size: 100 };

pub(super) async fn exercise(records: &Records) {
    workspaces(records).await;
    agents(records).await;
    secrets(records).await;
    many_at_once(records).await;
}

async fn workspaces(records: &Records) {
    let all = records.workspaces();
    let made = all.insert("research", Some("team")).await.expect("it is made");
    assert_eq!(all.get("research").await.expect("it is found"), made);
    assert!(matches!(all.insert("research", None).await, Err(Error::Conflict)));
    let changed = all.update("research", None).await.expect("it is changed");
    assert_eq!((changed.description, &changed.id), (None, &made.id));
    assert!(changed.updated_at >= made.updated_at);
    let by_name = Sort { key: SortKey::Name, direction: Direction::Ascending };
    let listed = all.list(&Select::page(PAGE, by_name)).await.expect("they are listed");
    let names: Vec<_> = listed.items.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names, listed.total), (vec!["default", "research", "system"], 3));
    all.delete("research").await.expect("it is removed");
    assert!(!all.exists("research").await.expect("the database answers"));
    assert!(matches!(all.get("research").await, Err(Error::NotFound)));
    assert!(matches!(all.delete("research").await, Err(Error::NotFound)));
    assert!(matches!(all.update("research", None).await, Err(Error::NotFound)));
}

async fn agents(records: &Records) {
    let new = |workspace: &str| NewAgent {
        name: "counter".to_owned(),
        workspace: workspace.to_owned(),
        project: None,
        description: String::new(),
        config: json!({"name": "counter", "z": 1, "a": [null, {"deep": true}]}),
        config_format: "nemo-agents-spec-v1".to_owned(),
        context_schema: Some(json!({"type": "object"})),
        default_input: Some("Count.".to_owned()),
        post_run_actions: vec!["agents.noop".to_owned()],
    };
    let all = records.agents();
    let made = all.insert(new("default")).await.expect("it is registered");
    assert_eq!(made.config.to_string(), new("default").config.to_string(), "keys keep their order");
    assert!(matches!(all.insert(new("default")).await, Err(Error::Conflict)));
    all.insert(new("system")).await.expect("another workspace has names of its own");
    assert_eq!(all.get("default", "counter").await.expect("it is found"), made);
    let asked = Select::page(PAGE, Sort::NEWEST_FIRST);
    let everywhere = all.list(None, &asked).await.expect("they are listed");
    let here = all.list(Some("default"), &asked).await.expect("they are listed");
    assert_eq!((everywhere.total, here.items), (2, vec![made]));
    all.delete("default", "counter").await.expect("it is removed");
    assert!(matches!(all.get("default", "counter").await, Err(Error::NotFound)));
    all.get("system", "counter").await.expect("the other one stays");
}

async fn secrets(records: &Records) {
    let sealed: Vec<u8> = (0..=255).collect();
    let new = NewSecret {
        name: "key".to_owned(),
        workspace: "default".to_owned(),
        description: None,
        sealed: sealed.clone(),
    };
    let all = records.secrets();
    let made = all.insert(new.clone()).await.expect("it is kept");
    assert_eq!(made.sealed, sealed);
    assert!(matches!(all.insert(new).await, Err(Error::Conflict)));
    let untouched = all.update("default", "key", SecretChange::default()).await;
    assert_eq!(untouched.expect("nothing is to be done"), made);
    let change = SecretChange { description: Some("model".to_owned()), sealed: None };
    let changed = all.update("default", "key", change).await.expect("it is changed");
    assert_eq!((changed.description.as_deref(), &changed.sealed), (Some("model"), &sealed));
    let asked = Select::page(PAGE, Sort::NEWEST_FIRST);
    let listed = all.list(Some("default"), &asked).await.expect("it is listed");
    assert_eq!(listed.items, [changed]);
    all.delete("default", "key").await.expect("it is removed");
    assert!(matches!(all.get("default", "key").await, Err(Error::NotFound)));
}

/// Writes that are committed together succeed and fail each for itself.
async fn many_at_once(records: &Records) {
    let all = records.workspaces();
    let names: Vec<String> = (0..200).map(|n| format!("group-{}", n / 2)).collect();
    let made = join_all(names.iter().map(|name| all.insert(name, None))).await;
    let conflicts = made.iter().filter(|it| matches!(it, Err(Error::Conflict))).count();
    assert_eq!((made.iter().filter(|it| it.is_ok()).count(), conflicts), (100, 100));
    for workspace in made.into_iter().flatten() {
        let found = all.get(&workspace.name).await.expect("what was answered is committed");
        assert_eq!(found, workspace);
    }
}
