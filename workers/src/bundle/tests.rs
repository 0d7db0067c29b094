mod changes;
mod odd;
mod owner;

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use tempfile::TempDir;

use super::{Limits, Pick, UnpackError, Writer, copy_entries, unpack, write_directory};

/// A directory with everything odd that an agent may leave behind.
fn odd_tree() -> TempDir {
    let dir = TempDir::new().expect("a temporary directory");
    let root = dir.path();
    fs::write(root.join("real.txt"), "ok\n").expect("write");
    symlink("nowhere", root.join("broken")).expect("symlink");
    symlink("loop", root.join("loop")).expect("symlink");
    symlink("/absolute//path/../x/", root.join("literal")).expect("symlink");
    fs::create_dir_all(root.join("empty/deeper")).expect("mkdir");
    fs::create_dir(root.join(".git")).expect("mkdir");
    fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").expect("write");
    fs::write(root.join("script.sh"), "#!/bin/sh\n").expect("write");
    fs::set_permissions(root.join("script.sh"), fs::Permissions::from_mode(0o755)).expect("chmod");
    fs::write(root.join("read-only"), "r").expect("write");
    fs::set_permissions(root.join("read-only"), fs::Permissions::from_mode(0o444)).expect("chmod");
    fs::create_dir(root.join("sticky")).expect("mkdir");
    fs::set_permissions(root.join("sticky"), fs::Permissions::from_mode(0o1777)).expect("chmod");
    fs::create_dir(root.join("closed")).expect("mkdir");
    fs::write(root.join("closed/inside"), "in").expect("write");
    fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o500)).expect("chmod");
    fs::hard_link(root.join("real.txt"), root.join("second-name")).expect("link");
    for name in odd_names() {
        fs::write(root.join(std::ffi::OsString::from_vec(name)), "odd").expect("write");
    }
    dir
}

fn odd_names() -> Vec<Vec<u8>> {
    vec![
        b"a:b".to_vec(),
        b"q\"q".to_vec(),
        b"back\\slash".to_vec(),
        b"new\nline".to_vec(),
        b"-rf".to_vec(),
        "ünï".as_bytes().to_vec(),
        "u\u{308}ni\u{308}".as_bytes().to_vec(),
        vec![b'n'; 255],
        b"\xff".to_vec(),
        b"trailing ".to_vec(),
    ]
}

/// What `find` says of a tree: kind, mode, name, link target, whole seconds, inode sharing.
fn listing(root: &Path) -> Vec<u8> {
    let out = Command::new("find")
        .args([".", "-printf", "%y %m %p %l %s %n\\0"])
        .current_dir(root)
        .output()
        .expect("find runs");
    let mut lines: Vec<_> = out.stdout.split(|byte| *byte == 0).map(|line| line.to_vec()).collect();
    // Sizes of directories are the file system's own affair.
    lines.retain(|line| !line.is_empty());
    for line in &mut lines {
        if line.starts_with(b"d") {
            let cut = line.iter().rposition(|byte| *byte == b' ').unwrap_or(line.len());
            line.truncate(cut);
            let cut = line.iter().rposition(|byte| *byte == b' ').unwrap_or(line.len());
            line.truncate(cut);
        }
    }
    lines.sort();
    lines.join(&b'\n')
}

fn pack(root: &Path) -> Vec<u8> {
    let (bytes, _) = write_directory(root, "output_workdir", Vec::new(), None).expect("packs");
    bytes
}

fn unpack_into(bundle: &[u8], pick: &Pick) -> Result<TempDir, UnpackError> {
    let dir = TempDir::new().expect("a temporary directory");
    unpack(bundle, pick, dir.path(), "single", Limits::default()).map(|_| dir)
}

#[test]
fn an_odd_tree_round_trips_twice_to_the_byte() {
    let first = odd_tree();
    let bundle = pack(first.path());
    let second = unpack_into(&bundle, &Pick::default()).expect("unpacks");
    assert_eq!(listing(first.path()), listing(second.path()));
    let again = pack(second.path());
    assert!(bundle == again, "the second bundle differs from the first");
    let third = unpack_into(&again, &Pick::default()).expect("unpacks");
    assert_eq!(listing(second.path()), listing(third.path()));
    let inode = |name: &str| fs::metadata(third.path().join(name)).expect("stat").ino();
    assert_eq!(inode("real.txt"), inode("second-name"));
}

/// FC-F1: links are stored as links, with their literal targets, and nothing follows them.
#[test]
fn case_f1_broken_and_looping_links_are_kept_as_links() {
    let tree = odd_tree();
    let back = unpack_into(&pack(tree.path()), &Pick::default()).expect("unpacks");
    for (name, target) in
        [("broken", "nowhere"), ("loop", "loop"), ("literal", "/absolute//path/../x/")]
    {
        let found = fs::read_link(back.path().join(name)).expect("a link");
        assert_eq!(found.as_os_str(), target);
    }
    assert_eq!(fs::read_to_string(back.path().join("real.txt")).expect("read"), "ok\n");
}

#[test]
fn what_cannot_be_stored_is_named() {
    let dir = TempDir::new().expect("a temporary directory");
    let fifo = dir.path().join("p");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).expect("fifo");
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).expect("socket");
    fs::write(dir.path().join("f"), "ok").expect("write");
    let (bundle, report) = write_directory(dir.path(), "w", Vec::new(), None).expect("packs");
    let named: Vec<_> = report
        .skipped
        .named
        .iter()
        .map(|entry| (entry.path.as_str(), entry.reason.as_str()))
        .collect();
    assert_eq!(named, [("p", "a FIFO cannot be stored"), ("s", "a socket cannot be stored")]);
    let back = unpack_into(&bundle, &Pick::default()).expect("unpacks");
    assert_eq!(fs::read_to_string(back.path().join("f")).expect("read"), "ok");
}

#[test]
fn set_id_bits_are_dropped_when_unpacking() {
    let dir = TempDir::new().expect("a temporary directory");
    fs::write(dir.path().join("s"), "x").expect("write");
    fs::set_permissions(dir.path().join("s"), fs::Permissions::from_mode(0o4755)).expect("chmod");
    let back = unpack_into(&pack(dir.path()), &Pick::default()).expect("unpacks");
    assert_eq!(fs::metadata(back.path().join("s")).expect("stat").mode() & 0o7777, 0o755);
}

#[test]
fn system_tar_reads_our_bundles() {
    let tree = odd_tree();
    let dir = TempDir::new().expect("a temporary directory");
    let file = dir.path().join("b.tar.gz");
    fs::write(&file, pack(tree.path())).expect("write");
    let status = Command::new("tar")
        .args(["-xzpf"])
        .arg(&file)
        .arg("-C")
        .arg(dir.path())
        .status()
        .expect("tar runs");
    assert!(status.success());
    assert_eq!(listing(tree.path()), listing(&dir.path().join("output_workdir")));
}

#[test]
fn a_part_can_be_picked() {
    let tree = odd_tree();
    let bundle = pack(tree.path());
    let git = unpack_into(&bundle, &Pick { path: ".git".to_owned() }).expect("unpacks");
    assert!(git.path().join("HEAD").is_file());
    let one = unpack_into(&bundle, &Pick { path: ".git/HEAD".to_owned() }).expect("unpacks");
    assert!(one.path().join("single").is_file());
}

#[test]
fn entries_can_be_copied_below_a_prefix_and_left_out() {
    let tree = odd_tree();
    let bundle = pack(tree.path());
    let mut writer = Writer::new(Vec::new(), "w", 0o755, 1).expect("begins");
    let leave_out = |name: &[u8], _: bool| name.starts_with(b"sub/.git");
    let pick = Pick::default();
    copy_entries(&bundle[..], &pick, &mut writer, b"sub", &leave_out, Limits::default())
        .expect("copies");
    let back = unpack_into(&writer.finish().expect("ends"), &Pick::default()).expect("unpacks");
    assert!(!back.path().join("sub/.git").exists());
    let inode = |name: &str| fs::metadata(back.path().join(name)).expect("stat").ino();
    assert_eq!(inode("sub/real.txt"), inode("sub/second-name"));
}

#[test]
fn a_further_name_of_a_file_that_is_left_out_is_refused() {
    let dir = TempDir::new().expect("a temporary directory");
    fs::write(dir.path().join("first"), "x").expect("write");
    fs::hard_link(dir.path().join("first"), dir.path().join("second")).expect("link");
    let (bundle, all) = (pack(dir.path()), Pick::default());
    let copy = |left_out: &[&[u8]]| {
        let mut writer = Writer::new(Vec::new(), "w", 0o755, 1).expect("begins");
        let leave_out = |name: &[u8], _: bool| left_out.contains(&name);
        copy_entries(&bundle[..], &all, &mut writer, b"", &leave_out, Limits::default())
    };
    assert!(matches!(copy(&[b"first"]), Err(UnpackError::Dangling(name)) if name == "second"));
    assert!(copy(&[b"first", b"second"]).is_ok());
    assert!(copy(&[b"second"]).is_ok());
}

/// FC-F10: the directory itself keeps its mode and time, too.
#[test]
fn the_top_of_a_copied_bundle_speaks_for_the_whole() {
    let tree = odd_tree();
    fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o750)).expect("chmod");
    let mut writer = Writer::new(Vec::new(), "w", 0o755, 1).expect("begins");
    let (all, nothing) = (Pick::default(), |_: &[u8], _: bool| false);
    copy_entries(&pack(tree.path())[..], &all, &mut writer, b"", &nothing, Limits::default())
        .expect("copies");
    let back = unpack_into(&writer.finish().expect("ends"), &all).expect("unpacks");
    let top = |path: &Path| fs::metadata(path).map(|meta| (meta.mode(), meta.mtime()));
    assert_eq!(top(back.path()).expect("stat"), top(tree.path()).expect("stat"));
}

/// A tar as an attacker would write it: names go in as they are.
fn forged(entries: &[(tar::EntryType, &str, &str, &str)]) -> Vec<u8> {
    let mut builder =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (kind, name, link, data) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(data.len() as u64);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        builder.append(&header, data.as_bytes()).expect("appends");
    }
    builder.into_inner().expect("tar ends").finish().expect("gzip ends")
}

#[test]
fn names_that_lead_out_are_refused() {
    use tar::EntryType::{Link, Regular};
    for name in ["w/../../evil", "/etc/evil", "../evil", "w/a/../../../evil"] {
        let bundle = forged(&[(Regular, name, "", "x")]);
        let refused = unpack_into(&bundle, &Pick::default());
        assert!(matches!(refused, Err(UnpackError::Escape(_))), "{name}: {refused:?}");
    }
    let link = forged(&[(Link, "w/passwd", "../../etc/passwd", "")]);
    assert!(matches!(unpack_into(&link, &Pick::default()), Err(UnpackError::Escape(_))));
}

#[test]
fn a_link_is_never_walked_through() {
    use tar::EntryType::{Regular, Symlink};
    let outside = TempDir::new().expect("a temporary directory");
    let target = outside.path().to_str().expect("UTF-8");
    let bundle = forged(&[(Symlink, "w/door", target, ""), (Regular, "w/door/evil", "", "x")]);
    let back = unpack_into(&bundle, &Pick::default()).expect("the link makes room");
    assert_eq!(fs::read_dir(outside.path()).expect("read").count(), 0);
    assert_eq!(fs::read_to_string(back.path().join("door/evil")).expect("read"), "x");
}

#[test]
fn a_link_in_place_of_a_directory_takes_no_mode_to_where_it_leads() {
    use tar::EntryType::{Directory, Symlink};
    let outside = TempDir::new().expect("a temporary directory");
    let before = fs::metadata(outside.path()).expect("stat");
    let target = outside.path().to_str().expect("UTF-8");
    let bundle = forged(&[(Directory, "w/door", "", ""), (Symlink, "w/door", target, "")]);
    unpack_into(&bundle, &Pick::default()).expect("the directory makes room");
    let after = fs::metadata(outside.path()).expect("stat");
    assert_eq!((before.mode(), before.mtime()), (after.mode(), after.mtime()));
}

#[test]
fn bombs_are_refused() {
    use tar::EntryType::Regular;
    let bundle = forged(&[(Regular, "w/a", "", "12345"), (Regular, "w/b", "", "12345")]);
    let dir = TempDir::new().expect("a temporary directory");
    let limits = Limits { bytes: 9, entries: 10 };
    let refused = unpack(&bundle[..], &Pick::default(), dir.path(), "s", limits);
    assert!(matches!(refused, Err(UnpackError::TooLarge(_))), "{refused:?}");
    let limits = Limits { bytes: 100, entries: 1 };
    let refused = unpack(&bundle[..], &Pick::default(), dir.path(), "s", limits);
    assert!(matches!(refused, Err(UnpackError::TooLarge(_))), "{refused:?}");
}

#[test]
fn devices_in_a_bundle_are_refused() {
    let bundle = forged(&[(tar::EntryType::Char, "w/null", "", "")]);
    assert!(matches!(unpack_into(&bundle, &Pick::default()), Err(UnpackError::Kind { .. })));
}

#[test]
fn a_source_that_shrinks_is_padded() {
    let mut writer = Writer::new(Vec::new(), "w", 0o755, 1).expect("begins");
    assert!(writer.file(b"f", 0o644, 1, 10, &mut &b"abc"[..]).expect("writes"));
    assert!(!writer.file(b"g", 0o644, 1, 3, &mut &b"abcdef"[..]).expect("writes"));
    let back = unpack_into(&writer.finish().expect("ends"), &Pick::default()).expect("unpacks");
    assert_eq!(fs::read(back.path().join("f")).expect("read"), b"abc\0\0\0\0\0\0\0");
    assert_eq!(fs::read(back.path().join("g")).expect("read"), b"abc");
}

fn gzipped(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes)?;
    gzip.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
        let _ = unpack_into(&bytes, &Pick::default());
        let _ = unpack_into(&gzipped(&bytes).expect("gzip"), &Pick::default());
    }

    #[test]
    fn a_damaged_bundle_never_panics(at in 0_usize..4096, byte in any::<u8>()) {
        let dir = TempDir::new().expect("a temporary directory");
        fs::write(dir.path().join("f"), "some text").expect("write");
        let mut tar = Vec::new();
        {
            let bundle = pack(dir.path());
            let mut gzip = flate2::read::GzDecoder::new(&bundle[..]);
            io::copy(&mut gzip, &mut tar).expect("gunzip");
        }
        let at = at % tar.len();
        tar[at] = byte;
        let _ = unpack_into(&gzipped(&tar).expect("gzip"), &Pick::default());
    }

    #[test]
    fn names_of_any_bytes_round_trip(
        names in prop::collection::btree_set(prop::collection::vec(1_u8..=255, 1..80), 1..8)
    ) {
        let dir = TempDir::new().expect("a temporary directory");
        for name in names {
            let name: Vec<u8> = name.into_iter().filter(|byte| *byte != b'/').collect();
            if name.is_empty() || name == b"." || name == b".." {
                continue;
            }
            fs::write(dir.path().join(std::ffi::OsString::from_vec(name)), "x").expect("write");
        }
        let back = unpack_into(&pack(dir.path()), &Pick::default()).expect("unpacks");
        prop_assert_eq!(listing(dir.path()), listing(back.path()));
    }
}
