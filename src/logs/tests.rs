use super::*;

#[test]
fn windows() {
    let check = |window: Window, total, expected| assert_eq!(window.places(total, 4), expected);
    check(Window::From { first: 0, limit: 4 }, 10, (0, 4));
    check(Window::From { first: 8, limit: 4 }, 10, (8, 10));
    check(Window::From { first: 20, limit: u64::MAX }, 10, (10, 10));
    check(Window::Before { end: 7, limit: 100 }, 10, (0, 7));
    check(Window::Before { end: 99, limit: 2 }, 10, (8, 10));
    check(Window::Tail(3), 10, (7, 10));
    check(Window::Tail(30), 10, (0, 10));
    check(Window::Tail(3), 0, (0, 0));
    check(Window::Above { number: 9, limit: 2 }, 10, (4, 6));
}

#[test]
fn places_that_cover_a_window() {
    let mut index = Index::default();
    for (sequence, lines, last) in [(5, 3, 3), (9, 0, 5), (12, 4, 9)] {
        index.add(Place::Batch(sequence), lines, last);
    }
    let above = |number| index.above(number);
    assert_eq!(above(0), Some((Place::Batch(5), 0)));
    assert_eq!(above(3), Some((Place::Batch(9), 3)));
    assert_eq!(above(8), Some((Place::Batch(12), 3)));
    assert_eq!(above(9), None);
    assert_eq!((index.total(), index.last_batch()), (7, Some(12)));
    let check = |first, end, expected: &[(u64, u64)]| {
        let found = index.covering(first, end).filter_map(|(place, start)| match place {
            Place::Batch(sequence) => Some((sequence, start)),
            Place::Archive => None,
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{first}..{end}");
    };
    check(0, 3, &[(5, 0)]);
    check(0, 4, &[(5, 0), (9, 3), (12, 3)]);
    check(3, 7, &[(12, 3)]);
    check(7, 9, &[]);
    check(0, 0, &[]);
}
