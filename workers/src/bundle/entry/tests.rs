use super::*;

#[test]
fn numbers_round_trip_in_both_forms() {
    for value in [0, 1, 0o7777, (1 << 33) - 1, 1 << 33, 1 << 40, i64::MAX, -1, -86_400, i64::MIN] {
        let mut field = [0; 12];
        put_number(&mut field, value);
        assert_eq!(number(&field), Some(value), "{field:?}");
    }
    assert_eq!(number(b"00000000017\0"), Some(15));
    assert_eq!(number(b"     17\0"), Some(15));
    assert_eq!(number(&[0; 12]), Some(0));
    assert_eq!(number(b"x\0"), None);
    assert_eq!(number(&[0xbf; 12]), None, "it is beyond 64 bits");
}
