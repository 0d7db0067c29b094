//! Sealing, the key file, and the store over real records.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use workers::ports::{self, SecretsError};

use super::*;
use crate::records::{Error, Records};

mod rotation;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const OTHER_KEY: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn sealer() -> Sealer {
    Sealer::from_hex(KEY).expect("64 digits")
}

#[test]
fn a_seal_opens_for_its_owner_only() {
    let sealed = sealer().seal("default/key", b"sk-1234").expect("it is sealed");
    assert!(!sealed.windows(7).any(|bytes| bytes == b"sk-1234"));
    assert_eq!(*sealer().open("default/key", &sealed).expect("it opens"), b"sk-1234");
    assert_eq!(sealer().open("default/other", &sealed), Err(SealError::Damaged));
    assert_ne!(sealer().seal("default/key", b"sk-1234"), Ok(sealed), "each seal has a nonce");
}

#[test]
fn every_byte_of_a_seal_counts() {
    let sealed = sealer().seal("default/key", b"sk-1234").expect("it is sealed");
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert!(sealer().open("default/key", &changed).is_err(), "byte {at}");
        assert!(sealer().open("default/key", &sealed[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn another_key_is_named() {
    let sealed = sealer().seal("default/key", b"sk-1234").expect("it is sealed");
    let other = Sealer::from_hex(OTHER_KEY).expect("64 digits");
    let error = other.open("default/key", &sealed).expect_err("it is another key");
    assert!(matches!(error, SealError::OtherKey { .. }), "{error}");
    assert!(!error.to_string().contains("0001020304"), "a key id is no key");
    for digits in ["", "00", &KEY[1..], &KEY.replace('0', "x")] {
        assert_eq!(Sealer::from_hex(digits).err(), Some(SealError::Key));
    }
}

#[test]
fn the_key_file_is_made_once_and_for_its_owner() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("secret.key");
    let first = Keyring::open(&path).expect("it is made");
    let sealed = first.keys().seal("a/b", b"value").expect("it is sealed");
    let again = Keyring::open(&path).expect("it is read");
    assert_eq!(*again.keys().open("a/b", &sealed).expect("it is the same key"), b"value");
    let entries = fs::read_dir(directory.path()).expect("it can be read").count();
    assert_eq!(entries, 1, "no draft is left");
    let mode = fs::metadata(&path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let exposed = Keyring::open(&path).expect_err("others can read it").to_string();
    assert!(exposed.contains("644") && exposed.contains("chmod 600"), "{exposed}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    fs::write(&path, "no key").expect("it is ours");
    let broken = Keyring::open(&path).expect_err("it holds no key").to_string();
    assert!(broken.contains("secret.key") && !broken.contains("no key"), "{broken}");
    let nowhere = Keyring::open(&directory.path().join("none/secret.key"));
    assert!(matches!(nowhere, Err(KeyFileError::Io { .. })), "{nowhere:?}");
}

#[tokio::test]
async fn the_store_gives_values_to_launches() {
    let (records, _directory) = crate::records::tests::sqlite().await;
    let (keyring, _file) = keyring(KEY);
    let store = SecretStore::new(records.clone(), keyring);
    let value = SecretValue::new("sk-1234 ✓".to_owned());
    store.create("default", "key", None, &value).await.expect("it is kept");
    store.create("shared", "key", Some("for all"), &value).await.expect("it is kept");
    let rotated = SecretValue::new("sk-5678".to_owned());
    store.update("default", "key", None, Some(&rotated)).await.expect("it is replaced");
    let described = store.update("shared", "key", Some("ours"), None).await.expect("described");
    assert_eq!(described.description.as_deref(), Some("ours"));
    assert_eq!(store.value("shared", "key").await.expect("it opens"), value);

    let references = [("A", "key"), ("B", "shared/key"), ("C", "default/key")];
    let opened = open(&store, &references).await.expect("they open");
    let expected = [("A", "sk-5678"), ("B", "sk-1234 ✓"), ("C", "sk-5678")];
    assert_eq!(opened, named(&expected));

    let missing = open(&store, &[("A", "key"), ("B", "gone")]).await.expect_err("one is missing");
    assert_eq!(missing.to_string(), "secret 'gone' for variable B does not exist");

    let twice = store.create("default", "key", None, &value).await;
    assert!(matches!(twice, Err(SecretStoreError::Records(Error::Conflict))), "{twice:?}");
    let shown = format!("{store:?} {value:?} {:?}", sealer());
    assert!(!shown.contains("sk-1234") && !shown.contains(KEY), "{shown}");
}

#[tokio::test]
async fn a_lost_key_is_a_sentence() {
    let (records, _directory) = crate::records::tests::sqlite().await;
    keep(&records).await;
    let (other, _file) = keyring(OTHER_KEY);
    let store = SecretStore::new(records.clone(), other);
    store.check_some_keys().await.expect_err("there is none at all");
    let error = store.check_keys().await.expect_err("there is no key for it").to_string();
    assert!(error.starts_with("secret 'default/key': sealed value needs the key "), "{error}");
    let error = open(&store, &[("A", "key")]).await.expect_err("the key is another");
    assert!(matches!(error, SecretsError::Unavailable(_)), "{error}");
    assert!(
        error.to_string().contains("secret 'default/key': sealed value needs the key"),
        "{error}"
    );

    // One that can be opened is enough to start with.
    let value = SecretValue::new("sk-5678".to_owned());
    store.create("default", "other", None, &value).await.expect("it is kept");
    store.check_some_keys().await.expect("only some have none");
    store.check_keys().await.expect_err("one has none");
    for name in ["key", "other"] {
        records.secrets().delete("default", name).await.expect("it is there");
    }
    store.check_some_keys().await.expect("there are no secrets");
}

#[tokio::test]
async fn a_key_file_that_cannot_be_read_seals_nothing_and_takes_no_key_away() {
    let (records, _directory) = crate::records::tests::sqlite().await;
    let (keyring, file) = keyring(KEY);
    let store = SecretStore::new(records, keyring);
    let value = SecretValue::new("sk-1234".to_owned());
    store.create("default", "key", None, &value).await.expect("it is kept");
    let mode = |mode| {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    // A rotation has come by, and the platform may not read what it has written.
    mode(0o644);
    let new = [Sealer::from_hex(OTHER_KEY).expect("64 digits"), sealer()];
    key_file::replace(&file, &new).expect("it is written");
    mode(0o644);
    for _ in 0..2 {
        let refused = store.create("default", "new", None, &value).await;
        let refused = refused.expect_err("the key may be retired").to_string();
        assert!(refused.starts_with("secret 'default/new': no value is sealed"), "{refused}");
        assert!(refused.contains("chmod 600"), "{refused}");
        store.update("default", "key", None, Some(&value)).await.expect_err("nor replaced");
        store.update("default", "key", Some("ours"), None).await.expect("no value is sealed");
        assert_eq!(store.value("default", "key").await.expect("it opens"), value);
    }
    mode(0o600);
    let made = store.create("default", "new", None, &value).await.expect("it can be read again");
    assert!(made.sealed.starts_with(&new[0].header()), "the new key seals");
    fs::remove_file(&file).expect("it is ours");
    store.update("default", "key", None, Some(&value)).await.expect_err("its key is nowhere");
    assert_eq!(store.value("default", "key").await.expect("it opens"), value);
}

#[test]
fn a_replaced_key_file_keeps_its_owner_and_the_link_to_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, link) = (directory.path().join("secret.key"), directory.path().join("link"));
    fs::write(&path, KEY).expect("room on the disk");
    std::os::unix::fs::chown(&path, Some(1234), Some(2345)).expect("root gives files away");
    std::os::unix::fs::symlink("secret.key", &link).expect("room on the disk");
    key_file::replace(&link, &[Sealer::from_hex(OTHER_KEY).expect("64 digits")]).expect("written");
    assert!(link.is_symlink());
    let file = fs::metadata(&path).expect("it is there");
    assert_eq!((file.uid(), file.gid(), file.mode() & 0o7777), (1234, 2345, 0o600));
    assert_eq!(fs::read_to_string(&path).expect("it is there").trim(), OTHER_KEY);
    assert_eq!(fs::read_dir(directory.path()).expect("it can be read").count(), 2);
}

async fn keep(records: &Records) {
    let value = SecretValue::new("sk-1234".to_owned());
    let (keyring, _file) = keyring(KEY);
    let store = SecretStore::new(records.clone(), keyring);
    store.check_keys().await.expect("nothing is kept yet");
    store.create("default", "key", None, &value).await.expect("it is kept");
    store.check_keys().await.expect("it has its key");
}

/// The keys of a file, which stays as long as it is held.
fn keyring(key: &str) -> (Keyring, tempfile::TempPath) {
    let file = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
    fs::write(&file, key).expect("it is ours");
    (Keyring::open(&file).expect("64 digits"), file)
}

async fn open(
    store: &SecretStore,
    references: &[(&str, &str)],
) -> Result<BTreeMap<String, String>, SecretsError> {
    ports::Secrets::open(store, "default", &named(references)).await
}

fn named(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
