//! Filesets and their files.

use futures_util::future::join_all;
use serde_json::json;
use streams::snapshot::{FileEntry, ObjectRef};

use crate::records::*;

pub(super) async fn exercise(records: &Records) {
    let made = described(records).await;
    files(records, &made).await;
    collisions(records, &made).await;
    pinned(records, &made).await;
    removed(records, &made).await;
}

fn entry(path: &str) -> FileEntry {
    FileEntry { path: path.to_owned(), mode: 0o644, size: 3, sha256: "0f".repeat(32) }
}

async fn described(records: &Records) -> Fileset {
    let new = NewFileset {
        name: "source".to_owned(),
        workspace: "default".to_owned(),
        description: String::new(),
        purpose: "generic".to_owned(),
        project: String::new(),
        metadata: json!({}),
        custom_fields: json!({"team": "a"}),
    };
    let all = records.filesets();
    let made = all.insert(new.clone()).await.expect("it is made");
    assert_eq!((made.version, &made.pinned), (0, &None));
    assert!(matches!(all.insert(new).await, Err(Error::Conflict)));
    let change = FilesetChange { description: Some("code".to_owned()), ..Default::default() };
    let changed = all.update("default", "source", change).await.expect("it is changed");
    assert_eq!(
        (changed.description.as_str(), &changed.custom_fields),
        ("code", &made.custom_fields)
    );
    let page = Page { page: 1, page_size: 10 };
    let asked = Select::page(page, Sort::NEWEST_FIRST);
    let listed = all.list(Some("default"), &asked).await.expect("it is listed");
    assert_eq!(listed.items, [changed]);
    made
}

async fn files(records: &Records, fileset: &Fileset) {
    let all = records.filesets();
    let paths = ["b.txt", "app/config.yaml", "app/Z", "app/a", "app-2/x", "app.txt", "é/ü"];
    for path in paths {
        all.put_file(&fileset.id, entry(path)).await.expect("it is put");
    }
    let under = async |path: &str| {
        let files = all.files(&fileset.id, path).await.expect("they are listed");
        files.into_iter().map(|file| file.path).collect::<Vec<_>>()
    };
    let sorted = ["app-2/x", "app.txt", "app/Z", "app/a", "app/config.yaml", "b.txt", "é/ü"];
    assert_eq!(under("").await, sorted);
    assert_eq!(under("app").await, ["app/Z", "app/a", "app/config.yaml"]);
    assert_eq!(under("app/a").await, ["app/a"]);
    assert_eq!(under("ap").await, Vec::<String>::new(), "half a name is no directory");
    assert_eq!(under("é").await, ["é/ü"]);

    let larger = FileEntry { mode: 0o755, size: u64::from(u32::MAX) * 9, ..entry("app/a") };
    all.put_file(&fileset.id, larger.clone()).await.expect("it is replaced");
    assert_eq!(all.get_file(&fileset.id, "app/a").await.expect("it is found"), larger);
    assert_eq!(all.delete_file(&fileset.id, "app/a").await.expect("it is removed"), larger);
    assert!(matches!(all.get_file(&fileset.id, "app/a").await, Err(Error::NotFound)));
    let now = all.get("default", "source").await.expect("it is found");
    assert_eq!(now.version, 9, "every change of a file raises the version");
}

/// A path is a file or a directory.
async fn collisions(records: &Records, fileset: &Fileset) {
    let all = records.filesets();
    let before = all.get("default", "source").await.expect("it is found").version;
    for path in ["app", "b.txt/x", "b.txt/x/y", "é"] {
        let put = all.put_file(&fileset.id, entry(path)).await;
        assert!(matches!(put, Err(Error::Conflict)), "{path}: {put:?}");
    }
    let gone = all.delete_file(&fileset.id, "app").await;
    assert!(matches!(gone, Err(Error::NotFound)), "{gone:?}");
    let after = all.get("default", "source").await.expect("it is found").version;
    assert_eq!(after, before, "a change that failed leaves nothing behind");
    let both =
        join_all(["race", "race/x"].map(|path| all.put_file(&fileset.id, entry(path)))).await;
    assert_eq!(both.iter().filter(|put| put.is_ok()).count(), 1, "{both:?}");
    let long = all.put_file(&fileset.id, entry(&"x".repeat(1025))).await;
    assert!(matches!(long, Err(Error::Text(_))), "{long:?}");
    all.put_file(&fileset.id, entry(&"x".repeat(1024))).await.expect("this length is kept");
    let nobody = all.put_file("fileset-unknown", entry("a")).await;
    assert!(matches!(nobody, Err(Error::NotFound)), "{nobody:?}");
}

async fn pinned(records: &Records, fileset: &Fileset) {
    let all = records.filesets();
    let listing = |key: &str| ObjectRef { key: key.to_owned(), size: 1, sha256: "00".repeat(32) };
    for version in [5, 7, 6] {
        let key = version.to_string();
        all.set_pinned(&fileset.id, version, &listing(&key)).await.expect("it is remembered");
    }
    let now = all.get("default", "source").await.expect("it is found");
    assert_eq!((now.pinned_version, now.pinned), (Some(7), Some(listing("7"))));
}

async fn removed(records: &Records, fileset: &Fileset) {
    let all = records.filesets();
    let gone = all.delete("default", "source").await.expect("it is removed");
    assert_eq!(gone.id, fileset.id);
    assert!(all.files(&fileset.id, "").await.expect("the database answers").is_empty());
    assert!(matches!(all.delete("default", "source").await, Err(Error::NotFound)));
}
