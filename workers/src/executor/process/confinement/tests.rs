use super::*;

fn decided(wanted: Wanted, user: bool, landlock: bool) -> Result<Kind, String> {
    let abilities = Abilities {
        user: if user { Ok(Reach::Open) } else { Err("no root".to_owned()) },
        landlock: if landlock { Ok(()) } else { Err("no kernel".to_owned()) },
        no_network: Err("no way".to_owned()),
    };
    Confinement::decide(wanted, Network::Host, IdRange::default(), abilities)
        .map(|confinement| confinement.kind)
        .map_err(|error| error.to_string())
}

#[test]
fn the_best_is_taken_and_nothing_less_than_was_asked_for() {
    let users = || Ok(Kind::Users(IdRange::default(), Reach::Open));
    for (wanted, user, landlock, expected) in [
        (Wanted::Auto, true, true, users()),
        (Wanted::Auto, false, true, Ok(Kind::Landlock)),
        (Wanted::User, true, false, users()),
        (Wanted::Landlock, true, true, Ok(Kind::Landlock)),
        (Wanted::None, true, true, Ok(Kind::Waived)),
    ] {
        assert_eq!(decided(wanted, user, landlock), expected, "{wanted:?} {user} {landlock}");
    }
    let refused = decided(Wanted::User, false, true).expect_err("there is no root");
    assert!(refused.ends_with("no root; run the worker as root, or use \"auto\""), "{refused}");
    let refused = decided(Wanted::Landlock, true, false).expect_err("there is no Landlock");
    assert!(refused.contains("no kernel; use Linux 6.2 or later"), "{refused}");
}

#[test]
fn without_any_sandbox_secrets_need_somebody_who_permits_them() {
    let confined = |kind| Confinement { kind, ..Confinement::default() };
    let impossible = decided(Wanted::Auto, false, false).expect("agents without secrets run");
    let refused = confined(impossible).secrets_refused().expect("nobody permitted it");
    assert!(refused.contains("no root; Landlock: no kernel"), "{refused}");
    assert!(refused.contains("worker.sandbox = \"none\""), "{refused}");
    assert_eq!(confined(Kind::Waived).secrets_refused(), None);
    assert_eq!(confined(Kind::Landlock).secrets_refused(), None);
}

#[test]
fn a_network_that_cannot_be_kept_away_is_refused() {
    let abilities =
        |no_network| Abilities { user: Ok(Reach::PrivateMounts), landlock: Ok(()), no_network };
    let decide = |no_network| {
        Confinement::decide(
            Wanted::Auto,
            Network::None,
            IdRange { first: 5000, count: 10 },
            abilities(no_network),
        )
    };
    let refused = decide(Err("no way".to_owned())).expect_err("there is no way");
    assert!(refused.to_string().contains("no way; run the worker as root"), "{refused}");
    let found = decide(Ok(Means::Namespace)).expect("there is a namespace");
    assert_eq!(
        found.to_string(),
        "user ids 5000–5009, private mounts; network none by a namespace with a loopback of its own"
    );
}
