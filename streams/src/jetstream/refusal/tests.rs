use super::*;

#[test]
fn the_servers_words_are_read() {
    let read = |words| Violation::read(words).map(|it| (it.is_publication, it.subject));
    for (words, is_publication, subject) in [
        (r#"Permissions Violation for Publish to "jobs.Submitted.b""#, true, "jobs.Submitted.b"),
        (r#"nats: Permissions Violation for Subscription to ">""#, false, ">"),
        (r#"permissions violation for subscription to "a" using queue "q""#, false, "a"),
    ] {
        assert_eq!(read(words), Some((is_publication, subject.to_owned())), "{words}");
    }
    for other in ["Authorization Violation", "Permissions Violation for Publish to", ""] {
        assert_eq!(read(other), None, "{other}");
    }
}

#[tokio::test]
async fn only_who_asks_for_it_is_told() {
    let refusals = Refusals::of(Some("worker"));
    let never = || std::future::pending::<Result<(), Error>>();
    let asks = ["$JS.API.STREAM.PURGE.JOBS".to_owned()];
    let asked = refusals.or(&asks, never());
    let heard = async {
        for subject in ["$JS.API.STREAM.PURGE.JOBSX", "jobs.a", "$JS.API.STREAM.PURGE.JOBS"] {
            assert!(refusals.heard(&format!("Permissions Violation for Publish to \"{subject}\"")));
            tokio::task::yield_now().await;
        }
    };
    let (refused, ()) = tokio::join!(asked, heard);
    let text = refused.expect_err("it is refused").to_string();
    let said = "nats refused $JS.API.STREAM.PURGE.JOBS: user 'worker' has no permission to publish \
                to '$JS.API.STREAM.PURGE.JOBS'";
    assert!(text.starts_with(said), "{text}");
    assert_eq!(refusals.or(&asks, async { Ok(3) }).await.expect("nobody refused it"), 3);
}
