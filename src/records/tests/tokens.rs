//! Tokens: kept, found by what may be seen of them, revoked; their roles go with a workspace.

use jiff::{SignedDuration, Timestamp};

use crate::auth::{EVERYWHERE, Role};
use crate::records::*;

fn new(name: &str, part: &str, roles: &[(&str, Role)]) -> NewToken {
    NewToken {
        name: name.to_owned(),
        public_part: part.to_owned(),
        digest: "00".repeat(32),
        roles: roles.iter().map(|(workspace, role)| ((*workspace).to_owned(), *role)).collect(),
        expires_at: None,
    }
}

pub(super) async fn exercise(records: &Records) {
    let tokens = records.tokens();
    records.workspaces().insert("brief", None).await.expect("it is made");
    let roles = [("brief", Role::Submitter), ("default", Role::Viewer), (EVERYWHERE, Role::Viewer)];
    tokens.insert(new("ci", "aaaaaaaa", &roles)).await.expect("it is kept");
    tokens.insert(new("bare", "bbbbbbbb", &[])).await.expect("it is kept");
    let again = tokens.insert(new("ci", "cccccccc", &[])).await;
    assert!(matches!(again, Err(Error::Conflict)), "{again:?}");
    let nowhere = tokens.insert(new("lost", "dddddddd", &[("nowhere", Role::Admin)])).await;
    assert!(matches!(nowhere, Err(Error::NotFound)), "{nowhere:?}");

    let names = |found: Vec<TokenRow>| found.into_iter().map(|it| it.name).collect::<Vec<_>>();
    let all = tokens.all().await.expect("they are listed");
    assert_eq!(names(all), ["ci", "bare"], "what failed left nothing");
    let found = tokens.by_public_part("aaaaaaaa").await.expect("the database answers");
    let [ci] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(ci.roles, new("", "", &roles).roles);
    assert!(tokens.by_public_part("eeeeeeee").await.expect("it answers").is_empty());
    let by_id = tokens.by_id(&ci.id).await.expect("the database answers");
    assert_eq!(by_id.as_ref(), Some(ci));
    assert_eq!(tokens.by_id("token-x").await.expect("the database answers"), None);

    let now = Timestamp::now();
    assert!(ci.is_valid(now) && ci.used_at.is_none());
    let ends = TokenRow { expires_at: Some(now), ..ci.clone() };
    assert!(!ends.is_valid(now) && ends.is_valid(now - SignedDuration::from_secs(1)));
    tokens.used(&ci.id).await.expect("it is noted");
    tokens.revoke("ci").await.expect("it is revoked");
    let revoked = tokens.by_id(&ci.id).await.expect("it answers").expect("it is there");
    assert!(revoked.used_at.is_some() && !revoked.is_valid(now));
    tokens.revoke("ci").await.expect("it stays so");
    let once = tokens.by_id(&ci.id).await.expect("it answers").expect("it is there");
    assert_eq!(once.revoked_at, revoked.revoked_at);
    assert!(matches!(tokens.revoke("nobody").await, Err(Error::NotFound)));

    assert!(records.workspaces().delete("brief").await.expect("it is removed").is_empty());
    let left = tokens.by_id(&ci.id).await.expect("it answers").expect("it is there");
    assert_eq!(left.roles, new("", "", &roles[1..]).roles);
}
