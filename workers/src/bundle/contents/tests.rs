use super::*;

/// The digest of segments, each fed in pieces of a size.
fn digest(parts: &[(u64, &[u8])], size: u64, piece: usize) -> Digest {
    let mut contents = Contents::default();
    for (offset, bytes) in parts {
        let mut at = *offset;
        for now in bytes.chunks(piece) {
            contents.add(at, now);
            at += now.len() as u64;
        }
    }
    contents.finish(size)
}

#[test]
fn holes_and_zeros_are_the_same_and_nothing_else_is() {
    let mut whole = vec![0; 20_000];
    whole[4096..8192].fill(7);
    whole[10_000..10_100].fill(8);
    let (middle, size) = (&whole[4096..8192], 20_000);
    let wanted = digest(&[(0, &whole)], size, usize::MAX);
    for piece in [1, 100, 4096, 5000] {
        assert_eq!(digest(&[(0, &whole)], size, piece), wanted, "in pieces of {piece}");
        let parts = [(4096, middle), (10_000, &whole[10_000..10_100])];
        assert_eq!(digest(&parts, size, piece), wanted, "without holes, in pieces of {piece}");
        let parts = [(4096, middle), (8192, &whole[8192..12_288])];
        assert_eq!(digest(&parts, size, piece), wanted, "by blocks, in pieces of {piece}");
    }
    assert_ne!(digest(&[(0, &whole)], size + 1, usize::MAX), wanted);
    assert_ne!(digest(&[(0, &whole[1..])], size, usize::MAX), wanted);
    assert_ne!(digest(&[(0, middle)], size, usize::MAX), digest(&[(4096, middle)], size, 4096));
    assert_eq!(digest(&[], 5, 1), digest(&[(0, &[0; 5])], 5, 1));
    assert_ne!(digest(&[], 5, 1), digest(&[(0, &[0, 0, 1, 0, 0])], 5, 1));
}

#[test]
fn one_may_follow_another() {
    let mut contents = Contents::default();
    contents.add(0, b"first, and longer");
    let first = contents.finish(17);
    contents.add(0, b"second");
    assert_eq!(contents.finish(6), digest(&[(0, b"second")], 6, 6));
    assert_ne!(first, digest(&[(0, b"second")], 6, 6));
}
