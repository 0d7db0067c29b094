use super::*;

fn failed(again: bool) -> Result<(), Unsent> {
    Err(Unsent { reason: "it answered 500".to_owned(), again })
}

#[test]
fn waits_double_up_to_an_hour() {
    let waits: Vec<_> = (1..=14).map(|tries| wait(tries).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
    assert_eq!(wait(u32::MAX), LONGEST_WAIT);
}

#[test]
fn what_may_help_is_tried_again_and_not_for_ever() {
    let mut notification = Notification::default();
    for count in 1..TRIES {
        let (end, at) = next(&mut notification, failed(true));
        assert_eq!((end, notification.count), (None, count));
        assert!(at > Some(Timestamp::now()));
    }
    assert_eq!(next(&mut notification, failed(true)), (Some(NotificationEnd::GivenUp), None));
    assert!(notification.tries.len() < TRIES as usize, "the first ones are forgotten");
}

#[test]
fn what_cannot_help_is_not_tried_again() {
    let mut notification = Notification::default();
    assert_eq!(next(&mut notification, failed(false)), (Some(NotificationEnd::GivenUp), None));
    assert_eq!(next(&mut notification, Ok(())), (Some(NotificationEnd::Sent), None));
    let errors: Vec<_> = notification.tries.into_iter().map(|one| one.error).collect();
    assert_eq!(errors, [Some("it answered 500".to_owned()), None]);
}
