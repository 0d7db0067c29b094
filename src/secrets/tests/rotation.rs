//! Rotating the key, on both databases, with a platform's store open beside it.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sqlx::{AnyConnection, AssertSqlSafe, Connection};

use super::super::key_file;
use super::{KEY, OTHER_KEY};
use crate::records::Records;
use crate::records::tests::postgres;
use crate::secrets::{Keyring, Rotation, RotationError, Sealer, SecretStore, SecretValue};

/// A platform's store with three secrets, the records, and the key file.
struct Scene {
    store: SecretStore,
    records: Records,
    directory: tempfile::TempDir,
}

impl Scene {
    async fn on(records: Records) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let keyring = Keyring::open(&directory.path().join("secret.key")).expect("it is made");
        let store = SecretStore::new(records.clone(), keyring);
        for (workspace, name) in [("default", "a"), ("default", "b"), ("shared", "a")] {
            store.create(workspace, name, None, &value(name)).await.expect("it is kept");
        }
        Self { store, records, directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("secret.key")
    }

    async fn rotate(&self, rotation: Rotation) -> super::Rotated {
        rotation.run(&self.records, &self.file()).await.expect("it is done")
    }

    /// Whoever knows only these keys can open everything.
    async fn opens_with(&self, key_file: &Path) {
        let store = SecretStore::new(self.records.clone(), Keyring::open(key_file).expect("keys"));
        store.check_keys().await.expect("a key for each");
        for (workspace, name) in [("default", "a"), ("default", "b"), ("shared", "a")] {
            assert_eq!(store.value(workspace, name).await.expect("it opens"), value(name));
        }
    }
}

fn value(name: &str) -> SecretValue {
    SecretValue::new(format!("value of {name}"))
}

#[tokio::test]
async fn a_new_key_takes_over_beside_a_running_platform() {
    let (sqlite, _directory) = crate::records::tests::sqlite().await;
    let server = postgres::Server::start();
    let postgres = Records::connect(&server.url()).await.expect("postgres opens");
    for records in [sqlite, postgres] {
        let scene = Scene::on(records).await;
        let before = std::fs::read_to_string(scene.file()).expect("a key");
        let updated = scene.records.secrets().get("default", "a").await.expect("there").updated_at;
        let rotated = scene.rotate(Rotation::default()).await;
        assert_eq!((rotated.secrets, rotated.resumed, rotated.old_keys), (3, false, 0));
        let keys = key_file::load(&scene.file()).expect("the mode is right");
        assert_eq!((keys.len(), keys[0].id()), (1, rotated.key));
        scene.opens_with(&scene.file()).await;
        let after = scene.records.secrets().get("default", "a").await.expect("there").updated_at;
        assert_eq!(after, updated, "for users nothing has changed");

        // The platform has read the new key and seals with it.
        assert_eq!(scene.store.value("shared", "a").await.expect("it opens"), value("a"));
        scene.store.update("default", "b", None, Some(&value("b"))).await.expect("it is kept");
        scene.opens_with(&scene.file()).await;

        std::fs::write(scene.file(), before).expect("it is ours");
        let error = scene.store.value("default", "b").await.expect_err("the old key is put back");
        assert!(error.to_string().contains("sealed value needs the key"), "{error}");
        scene.records.close().await;
    }
}

#[tokio::test]
async fn a_rotation_goes_on_where_another_one_stopped() {
    let (records, _directory) = crate::records::tests::sqlite().await;
    let scene = Scene::on(records).await;
    // What is left when it dies behind the first secret: both keys in the file.
    let strange = [[0; 9]];
    let rows = scene.records.secrets().sealed_otherwise(&strange, "", 10).await.expect("rows");
    let old = key_file::load(&scene.file()).expect("a key").remove(0);
    let new = Sealer::from_hex(KEY).expect("64 digits");
    key_file::replace(&scene.file(), &[new.clone(), old]).expect("it is written");
    let row = &rows[1];
    let owner = format!("{}/{}", row.workspace, row.name);
    let sealed = new.seal(&owner, value(&row.name).reveal().as_bytes()).expect("it is sealed");
    let done = scene.records.secrets().reseal(&row.id, &row.sealed, &sealed).await;
    assert!(done.expect("the records answer"));
    scene.opens_with(&scene.file()).await;

    let rotated = scene.rotate(Rotation { keep_old: true, ..Rotation::default() }).await;
    assert_eq!((rotated.secrets, rotated.resumed, rotated.old_keys), (2, true, 1));
    let rotated = scene.rotate(Rotation::default()).await;
    assert_eq!((rotated.secrets, rotated.resumed, rotated.old_keys), (0, true, 0));
    assert_eq!(rotated.key, new.id());
    scene.opens_with(&scene.file()).await;
}

#[tokio::test]
async fn keys_can_be_brought_along() {
    let (records, _directory) = crate::records::tests::sqlite().await;
    let scene = Scene::on(records).await;
    let lost = key_file::load(&scene.file()).expect("a key").remove(0);
    let other = Sealer::from_hex(OTHER_KEY).expect("64 digits");
    key_file::replace(&scene.file(), std::slice::from_ref(&other)).expect("it is written");
    let failed = Rotation::default().run(&scene.records, &scene.file()).await;
    let error = failed.expect_err("nobody knows the key").to_string();
    assert!(error.contains(&lost.id()) && error.contains("nothing is lost"), "{error}");

    let new = Sealer::from_hex(KEY).expect("64 digits");
    let rotation = Rotation { new_key: Some(new), old_key: Some(lost), keep_old: false };
    let rotated = scene.rotate(rotation).await;
    assert_eq!((rotated.secrets, rotated.resumed), (3, false));
    let kept = std::fs::read_to_string(scene.file()).expect("it is read");
    assert_eq!(kept.trim(), KEY);
    scene.opens_with(&scene.file()).await;
}

#[tokio::test]
async fn two_rotations_do_not_meet() {
    let (records, _directory) = crate::records::tests::sqlite().await;
    let scene = Scene::on(records).await;
    let lock = std::fs::File::open(scene.directory.path()).expect("the directory");
    lock.lock().expect("it is free");
    let failed = Rotation::default().run(&scene.records, &scene.file()).await;
    assert!(matches!(failed, Err(RotationError::Busy(_))), "{failed:?}");
}

#[tokio::test]
async fn the_old_key_stays_on_the_disk_until_the_last_pass_is_through() {
    let (records, database) = crate::records::tests::sqlite().await;
    let scene = Scene::on(records).await;
    let old = key_file::load(&scene.file()).expect("a key").remove(0);
    let new = Sealer::from_hex(KEY).expect("64 digits");
    // A secret that the first pass is through with is sealed with a key that nobody has here: with
    // the last write of that pass, so that it is neither too early nor too late.
    let rows = scene.records.secrets().sealed_otherwise(&[[0; 9]], "", 10).await.expect("rows");
    let (first, last) = (&rows[0], &rows[2]);
    let owner = format!("{}/{}", first.workspace, first.name);
    let stranger = Sealer::from_hex(OTHER_KEY).expect("64 digits");
    let sealed = stranger.seal(&owner, value(&first.name).reveal().as_bytes());
    let meddle = format!(
        "CREATE TRIGGER meddle AFTER UPDATE OF sealed ON secrets WHEN NEW.id = '{}'
         BEGIN UPDATE secrets SET sealed = '{}' WHERE id = '{}'; END",
        last.id,
        BASE64_STANDARD.encode(sealed.expect("it is sealed")),
        first.id
    );
    let url = format!("sqlite://{}", database.path().join("errand.db").display());
    let mut meddler = AnyConnection::connect(&url).await.expect("it opens");
    sqlx::raw_sql(AssertSqlSafe(meddle)).execute(&mut meddler).await.expect("it is made");
    meddler.close().await.expect("it is closed");

    let rotation = Rotation { new_key: Some(new.clone()), ..Rotation::default() };
    let failed = rotation.run(&scene.records, &scene.file()).await;
    let error = failed.expect_err("nobody has the key of the second pass").to_string();
    assert!(error.contains(&owner) && error.contains("nothing is lost"), "{error}");
    for row in scene.records.secrets().sealed_otherwise(&[[0; 9]], "", 10).await.expect("rows") {
        let sealer = if row.id == first.id { &stranger } else { &new };
        assert!(row.sealed.starts_with(&sealer.header()), "{}/{}", row.workspace, row.name);
    }
    let kept = key_file::load(&scene.file()).expect("keys");
    assert_eq!(kept.iter().map(Sealer::id).collect::<Vec<_>>(), [new.id(), old.id()]);
}
