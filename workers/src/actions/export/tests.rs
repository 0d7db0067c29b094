use super::*;
use crate::bundle::Writer;

/// A working directory: two files, a further name of one, a link, a name that is not UTF-8.
fn bundle() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "output_workdir", 0o755, 0).expect("memory takes it");
    let mut file = |name: &[u8], text: &str| {
        let size = text.len() as u64;
        writer.file(name, 0o644, 0, size, &mut text.as_bytes()).expect("memory takes it");
    };
    file(b"a.md", "a");
    file(b"sub/b.md", "b");
    file(b"sub/\xff", "c");
    writer.hard_link(b"c.md", b"a.md", 0o644, 0).expect("memory takes it");
    writer.symlink(b"link.md", b"a.md", 0).expect("memory takes it");
    writer.finish().expect("memory takes it")
}

#[test]
fn which_files_are_exported() {
    let check = |paths: &[&str], expected: Result<&[(&str, &[&str])], &str>| {
        let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
        let patterns = patterns(&paths).expect("they are well formed");
        match (choose(&bundle()[..], &patterns), expected) {
            (Ok(chosen), Ok(expected)) => {
                let expected = expected.iter().map(|(source, paths)| {
                    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
                    (source.as_bytes().to_vec(), paths)
                });
                assert_eq!(chosen, expected.collect::<Chosen>());
            }
            (Err(Failure::Failed(reason)), Err(expected)) => assert_eq!(reason, expected),
            (Err(Failure::Later(error)), _) => panic!("{error}"),
            (chosen, _) => panic!("{paths:?}: {:?}", chosen.ok()),
        }
    };
    check(&["a.md", "*.md"], Ok(&[("a.md", &["a.md", "c.md"])]));
    check(&["c.md"], Ok(&[("a.md", &["c.md"])]));
    check(&["sub/*.md"], Ok(&[("sub/b.md", &["sub/b.md"])]));
    check(&["a.md", "report.md", "x/*"], Err("output_workdir has no file at 'report.md', 'x/*'"));
    check(&["link.md"], Err("output_workdir has no file at 'link.md'"));
    let not_utf8 = r"'sub/\xff' has a name that is not UTF-8, which no fileset can hold";
    check(&["sub"], Err(not_utf8));
}

#[test]
fn what_is_read_out_is_what_is_written() {
    let chosen = Chosen::from([(b"sub/b.md".to_vec(), vec!["sub/b.md".to_owned()])]);
    let (items, mut arriving) = mpsc::channel(1);
    let reading = std::thread::spawn(move || read_out(&bundle()[..], &chosen, &items));
    let mut item = arriving.blocking_recv().expect("a file comes");
    assert_eq!((item.paths.as_slice(), item.mode), (&["sub/b.md".to_owned()][..], 0o644));
    let bytes = item.bytes.blocking_recv().expect("its bytes come").expect("they are whole");
    assert_eq!(bytes, "b");
    assert!(item.bytes.blocking_recv().is_none() && arriving.blocking_recv().is_none());
    reading.join().expect("the thread ends").expect("the bundle is whole");
}
