use std::path::Path;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use futures_util::StreamExt;
use futures_util::future::join_all;
use streams::snapshot::ObjectRef;
use workers::store::{PART_BYTES, Store};

use super::Server;
use crate::config;

/// How long what goes on behind an answer may take.
const SOON: Duration = Duration::from_secs(20);

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
async fn parts_that_start_at_once_share_the_bucket_that_one_of_them_makes() {
    let (_dir, server, ..) = server().await;
    let config = server.config();
    for round in 0..20 {
        let bucket = format!("{}-{round}", config.bucket);
        let store = Store::new(&workers::store::StoreConfig { bucket, ..config.clone() });
        for made in join_all((0..8).map(|_| store.ensure_bucket())).await {
            made.expect("the bucket is there");
        }
    }
}

#[tokio::test]
async fn what_the_configuration_says_are_the_keys() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let wanted = config::Store {
        access_key: Some("lasting".to_owned()),
        secret_key: Some(config::Secret::new("lasting-secret".to_owned())),
        ..config::Store::default()
    };
    let server = Server::start(dir.path(), &wanted).await.expect("it starts");
    let config = server.config();
    let keys = (config.access_key.as_str(), config.secret_key.as_str());
    assert_eq!(keys, ("lasting", "lasting-secret"));
    Store::new(&config).ensure_bucket().await.expect("they are good");
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

/// What there is on the disk, but for buckets that are empty.
fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).expect("it can be listed") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                left.push(path.clone());
            }
            found.push(path.strip_prefix(root).expect("below").display().to_string());
        }
    }
    found.sort();
    found
}

/// Bytes for several parts.
fn large() -> Vec<u8> {
    (0..PART_BYTES * 2 + 1000).map(|n| (n % 251) as u8).collect()
}

#[tokio::test]
async fn a_job_is_removed_with_all_that_belongs_to_it() {
    let (dir, _server, store, _client) = server().await;
    let before = files(dir.path());
    // More than a page, put there as the server itself would.
    let log = dir.path().join("errand/jobs/a/1/log");
    std::fs::create_dir_all(&log).expect("it is made");
    for n in 0..1100 {
        std::fs::write(log.join(n.to_string()), "x").expect("it is written");
    }
    let mut whole = store.upload("jobs/a/1/1/whole");
    whole.write(&large()).await.expect("it is taken");
    whole.finish().await.expect("it is stored");
    let mut begun = store.upload("jobs/a/1/1/begun");
    begun.write(&large()).await.expect("it is taken");
    store.put("jobs/a/10/stays", "x".into()).await.expect("it is stored");
    store.delete_below("jobs/a/1/").await.expect("the store answers");
    assert!(begun.finish().await.is_err(), "an upload to a job that is removed comes to nothing");
    store.delete_below("jobs/a/1/").await.expect("it may be done again");
    assert_eq!(store.size("jobs/a/10/stays").await.expect("the store answers"), Some(1));
    store.delete_below("jobs/a/10/").await.expect("the store answers");
    let bucket = "errand/jobs".to_owned();
    let lasting = [bucket.clone(), format!("{bucket}/a")];
    let after: Vec<_> = files(dir.path()).into_iter().filter(|f| !lasting.contains(f)).collect();
    assert_eq!(after, before);
}

#[tokio::test]
async fn uploads_that_nobody_finishes_are_found_page_by_page_and_given_up() {
    let (dir, server, store, client) = server().await;
    let before = files(dir.path());
    let bucket = server.config().bucket;
    for n in 0..1005 {
        let begun = client.create_multipart_upload().bucket(&bucket).key(format!("jobs/{n}"));
        begun.send().await.expect("it is begun");
    }
    let other = client.create_multipart_upload().bucket(&bucket).key("other").send().await;
    let other = other.expect("it is begun").upload_id.expect("it has an id");
    let yesterday = jiff::Timestamp::now().as_second() - 86_400;
    let old = store.abort_below("jobs/", Some(yesterday)).await.expect("the store answers");
    assert_eq!(old, 0, "all are young");
    let all = store.abort_below("jobs/", None).await.expect("the store answers");
    assert_eq!(all, 1005);
    let abort = || client.abort_multipart_upload().bucket(&bucket).key("other").upload_id(&other);
    abort().send().await.expect("that of others was left alone");
    assert!(abort().send().await.is_err(), "it is over");
    assert_eq!(files(dir.path()), before);
}

#[tokio::test]
async fn an_upload_that_is_dropped_or_that_a_restart_broke_off_leaves_nothing() {
    let (dir, server, store, _client) = server().await;
    let before = files(dir.path());
    let mut dropped = store.upload("dropped");
    dropped.write(&large()).await.expect("it is taken");
    assert_ne!(files(dir.path()), before);
    drop(dropped);
    while files(dir.path()) != before {
        tokio::task::yield_now().await;
    }
    let mut broken = store.upload("broken");
    broken.write(&large()).await.expect("it is taken");
    drop(server);
    assert_ne!(files(dir.path()), before);
    let _again = Server::start(dir.path(), &config::Store::default()).await.expect("it starts");
    assert_eq!(files(dir.path()), before);
}

#[tokio::test]
async fn an_upload_over_another_has_its_own_checksum() {
    let (_dir, _server, store, _client) = server().await;
    store.put("twice", "small".into()).await.expect("it is stored");
    let mut upload = store.upload("twice");
    upload.write(&large()).await.expect("it is taken");
    let object = upload.finish().await.expect("it is stored");
    let read = store.read(&object).await.expect("the store answers").expect("it is there");
    assert!(read == large());
}

#[tokio::test]
async fn what_is_too_large_for_one_copy_is_copied_in_parts() {
    let (dir, _server, store, _client) = server().await;
    let mut upload = store.upload("from");
    upload.write(&large()).await.expect("it is taken");
    let from = upload.finish().await.expect("it is stored");
    // The least that S3 takes.
    let part_bytes = 5 << 20;
    let copied = store.copy_in_parts("from", "to", from.size, part_bytes).await;
    copied.expect("it is copied");
    let to = ObjectRef { key: "to".to_owned(), ..from.clone() };
    let read = store.read(&to).await.expect("the store answers").expect("it is there");
    assert!(read == large());
    let before = files(dir.path());
    let missing = store.copy_in_parts("nowhere", "other", from.size, part_bytes).await;
    let error = missing.expect_err("there is nothing to copy").to_string();
    assert!(error.contains("'other'"), "{error}");
    let nothing_is_left = async {
        while files(dir.path()) != before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, nothing_is_left).await.expect("nothing is left");
}

#[tokio::test]
async fn bytes_that_changed_in_the_store_are_never_given_out_whole() {
    let (dir, _server, store, _client) = server().await;
    for bytes in [b"small".to_vec(), large()] {
        let object = store.put("rots", bytes.clone().into()).await.expect("it is stored");
        let file = dir.path().join("errand/rots");
        let mut rotten = bytes.clone();
        rotten[bytes.len() / 2] ^= 1;
        std::fs::write(&file, &rotten).expect("it is written");
        let read = store.read(&object).await.expect_err("it is not what was stored").to_string();
        assert!(read.contains("'rots'") && read.contains(&object.sha256), "{read}");
        let opened = store.fetch(&object).await.expect("the store answers").expect("it is there");
        let (mut body, mut given) = (opened.body, 0);
        let end = loop {
            match body.next().await {
                Some(Ok(chunk)) => given += chunk.len(),
                end => break end,
            }
        };
        assert!(matches!(end, Some(Err(_))) && given < bytes.len(), "{given} bytes: {end:?}");
        std::fs::write(&file, &rotten[1..]).expect("it is written");
        assert!(store.fetch(&object).await.is_err(), "another size is seen at once");
    }
}

#[tokio::test]
async fn strangers_are_turned_away() {
    let (_dir, server, _store, _client) = server().await;
    let mut config = server.config();
    config.secret_key = "wrong".to_owned();
    let stranger = Store::new(&config);
    assert!(stranger.put("x", bytes::Bytes::new()).await.is_err());
}

#[tokio::test]
async fn an_upload_that_is_dropped_leaves_nothing() {
    let (dir, _server, store, _client) = server().await;
    let unfinished = || {
        let entries = std::fs::read_dir(dir.path()).expect("a directory").flatten();
        entries.filter(|it| it.file_name().to_string_lossy().starts_with(".upload")).count()
    };
    let mut upload = store.upload("given-up");
    upload.write(&vec![0; 2 * workers::store::PART_BYTES]).await.expect("the store takes it");
    assert!(unfinished() > 0, "parts are there");
    drop(upload);
    let emptied = async {
        while unfinished() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, emptied).await.expect("it is aborted");
    assert_eq!(store.size("given-up").await.expect("the store answers"), None);
}

/// As files are read in chunks, so that objects are taken that are shorter and longer than one.
#[tokio::test]
async fn an_object_and_its_parts_are_read_as_they_were_written() {
    let (_dir, server, store, client) = server().await;
    let bucket = server.config().bucket;
    for size in [0_usize, 1, 128 * 1024, 300_001] {
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let key = format!("jobs/a/{size}");
        store.put(&key, bytes.clone().into()).await.expect("it is stored");
        let get = async |range: Option<&str>| {
            let get = client.get_object().bucket(&bucket).key(&key);
            let found = get.set_range(range.map(str::to_owned)).send().await;
            let found =
                found.map_err(|error| error.raw_response().map(|it| it.status().as_u16()))?;
            let (length, range) = (found.content_length(), found.content_range.clone());
            let body = found.body.collect().await.expect("it ends well").to_vec();
            assert_eq!(length, i64::try_from(body.len()).ok());
            Ok::<_, Option<u16>>((body, range))
        };
        assert_eq!(get(None).await, Ok((bytes.clone(), None)));
        for (asked, from, to) in [
            ("bytes=0-0", 0, 1),
            ("bytes=70-", 70, size),
            ("bytes=-9", size.saturating_sub(9), size),
            ("bytes=100-200000", 100, 200_001),
        ] {
            let to = to.min(size);
            if from >= to {
                assert_eq!(get(Some(asked)).await, Err(Some(416)), "{asked} of {size}");
                continue;
            }
            let told = format!("bytes {from}-{}/{size}", to - 1);
            assert_eq!(
                get(Some(asked)).await,
                Ok((bytes[from..to].to_vec(), Some(told))),
                "{asked}"
            );
        }
    }
    let none = client.get_object().bucket(&bucket).key("jobs/a/none").send().await;
    assert!(
        none.is_err_and(|error| error.raw_response().is_some_and(|it| it.status().as_u16() == 404))
    );
}
