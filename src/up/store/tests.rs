use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use futures_util::future::join_all;
use workers::store::Store;

use super::Server;
use crate::config;

async fn server() -> (tempfile::TempDir, Server, Store, Client) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(dir.path(), &config::Store::default()).await.expect("it starts");
    let config = server.config();
    let store = Store::new(&config);
    store.ensure_bucket().await.expect("the bucket is made");
    let credentials = Credentials::new(&config.access_key, &config.secret_key, None, None, "test");
    let client = Client::from_conf(
        aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(&config.endpoint)
            .region(Region::new(config.region.clone()))
            .credentials_provider(credentials)
            .force_path_style(true)
            .build(),
    );
    (dir, server, store, client)
}

#[tokio::test]
async fn one_of_many_writers_of_a_new_key_wins() {
    let (_dir, server, _store, client) = server().await;
    let bucket = server.config().bucket;
    for round in 0..20 {
        let puts = (0..8).map(|writer| {
            client
                .put_object()
                .bucket(&bucket)
                .key(format!("race/{round}"))
                .if_none_match("*")
                .body(format!("writer {writer}").into_bytes().into())
                .send()
        });
        let won = join_all(puts).await.iter().filter(|put| put.is_ok()).count();
        assert_eq!(won, 1, "round {round}");
    }
}

#[tokio::test]
async fn bytes_that_were_damaged_on_the_way_are_not_kept() {
    let (_dir, server, store, client) = server().await;
    let put = client
        .put_object()
        .bucket(server.config().bucket)
        .key("damaged")
        .checksum_sha256("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
        .body(b"other bytes".to_vec().into())
        .send()
        .await;
    assert!(put.is_err());
    assert_eq!(store.size("damaged").await.expect("the store answers"), None);
}

#[tokio::test]
async fn strangers_are_turned_away() {
    let (_dir, server, _store, _client) = server().await;
    let mut config = server.config();
    config.secret_key = "wrong".to_owned();
    let stranger = Store::new(&config);
    assert!(stranger.put("x", bytes::Bytes::new()).await.is_err());
}
