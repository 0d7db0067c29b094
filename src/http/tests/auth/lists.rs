//! Lists over all workspaces show a caller those that it has a role in, and count no others.

use super::*;
use crate::http::route::Answers;
use crate::http::routes;

/// Every list, as one over all workspaces.
fn lists() -> Vec<String> {
    let lists = routes::all().into_iter().filter(|route| route.answers == Answers::Page);
    let lists: Vec<_> =
        lists.map(|route| route.path.replace("{workspace}", "-").replace("{name}", "-")).collect();
    assert!(lists.len() > 8, "{lists:?}");
    lists
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_over_all_workspaces_show_and_count_what_the_caller_may_see() {
    for api in both().await {
        let root = furnish(&api).await;
        let viewer = token(&api, "viewer", &[("team", Role::Viewer)]).await;
        let both = [("team", Role::Viewer), ("other", Role::Viewer)];
        let both = token(&api, "both", &both).await;
        for list in lists() {
            let page = async |token: &str, query: &str| {
                let page = api.as_token(token, "GET", &format!("{list}{query}"), None).await;
                assert_eq!(page.status, 200, "{list}{query}: {}", page.body);
                page.body
            };
            let shows = |page: &Value, workspace: &str| page.to_string().contains(workspace);
            let all = page(&root, "").await;
            assert!(shows(&all, "team") && shows(&all, "other"), "{list}: {all}");
            let own = page(&viewer, "").await;
            assert!(shows(&own, "team") && !shows(&own, "other"), "{list}: {own}");
            assert_eq!(own["pagination"]["total_results"], 1, "{list}: {own}");
            let two = page(&both, "").await;
            assert!(shows(&two, "team") && shows(&two, "other"), "{list}: {two}");
            assert_eq!(two["pagination"]["total_results"], 2, "{list}: {two}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_filter_looks_into_another_workspace() {
    for api in both().await {
        furnish(&api).await;
        let viewer = token(&api, "viewer", &[("team", Role::Viewer)]).await;
        for list in lists() {
            for filter in [
                "filter[workspace]=other",
                "filter={\"$or\":[{\"workspace\":\"other\"},{\"workspace\":\"team\"}]}",
                "filter={\"$not\":{\"workspace\":\"team\"}}",
                "filter={\"name\":{\"$like\":\"thing\"}}",
            ] {
                let page = api.as_token(&viewer, "GET", &format!("{list}?{filter}"), None).await;
                let found = page.body["data"].to_string();
                assert!(!found.contains("thing-of-other"), "{list}?{filter}: {}", page.body);
                let total = page.body["pagination"]["total_results"].as_u64().unwrap_or_default();
                assert!(total <= 1, "{list}?{filter}: {}", page.body);
            }
        }
    }
}

/// With the last role of a token its lists are empty, not unlimited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_without_any_role_left_sees_nothing() {
    for api in both().await {
        let root = furnish(&api).await;
        let at = "/apis/entities/v2/workspaces";
        api.as_token(&root, "POST", at, Some(json!({"name": "brief"}))).await.status_is(201);
        let viewer = token(&api, "viewer", &[("brief", Role::Viewer)]).await;
        let brief = format!("{at}/brief");
        api.as_token(&viewer, "GET", &brief, None).await.status_is(200);
        api.as_token(&root, "DELETE", &brief, None).await.status_is(200);
        // One of the same name is another workspace.
        api.as_token(&root, "POST", at, Some(json!({"name": "brief"}))).await.status_is(201);
        api.as_token(&viewer, "GET", &brief, None).await.status_is(403);
        for list in lists() {
            let page = api.as_token(&viewer, "GET", &list, None).await;
            assert_eq!((page.status, &page.body["data"]), (200, &json!([])), "{list}");
        }
    }
}
