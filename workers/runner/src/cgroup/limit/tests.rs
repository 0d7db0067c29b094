use super::quota;

#[test]
fn shares_of_a_processor_are_measured_out_as_the_kernel_allows() {
    for (millis, expected) in [
        (1, (1_000, 1_000_000)),
        (9, (9_000, 1_000_000)),
        (10, (1_000, 100_000)),
        (500, (50_000, 100_000)),
        (1_500, (150_000, 100_000)),
        (u64::MAX, (1_000_000_000, 100_000)),
    ] {
        assert_eq!(quota(millis), expected, "{millis}");
    }
}
