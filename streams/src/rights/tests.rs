use super::*;

#[test]
fn a_workspace_has_these_rights() {
    let Rights { publish, subscribe } = of_workspace("team.a");
    assert_eq!(
        publish,
        [
            "jobs.submitted.team%2Ea.*",
            "submit.team%2Ea",
            "$JS.API.DIRECT.GET.STATUS.status.team%2Ea.*",
        ]
    );
    assert_eq!(subscribe, ["_INBOX.>", "changes.team%2Ea.*", "status.team%2Ea.*"]);
}

#[test]
fn a_worker_has_these_rights() {
    let Rights { publish, subscribe } = of_worker("errand-worker", &["events.>".to_owned()]);
    let expected = [
        "jobs.resolved.>",
        "jobs.staged.>",
        "jobs.invoked.>",
        "jobs.acted.>",
        "jobs.archived.>",
        "jobs.refused",
        "status.>",
        "logs.>",
        "events.>",
        "$KV.claims.>",
        "$JS.API.DIRECT.GET.KV_claims.>",
        "$KV.ends.>",
        "$JS.API.DIRECT.GET.KV_ends.>",
        "$KV.seats.>",
        "$JS.API.DIRECT.GET.KV_seats.>",
        "$JS.API.STREAM.PURGE.KV_holds",
        "$JS.API.STREAM.INFO.*",
        "$JS.API.STREAM.MSG.GET.*",
        "$JS.API.CONSUMER.INFO.*.*",
        "$JS.API.CONSUMER.MSG.NEXT.INTAKE.resolve",
        "$JS.ACK.INTAKE.resolve.>",
        "$JS.API.CONSUMER.MSG.NEXT.JOBS.stage",
        "$JS.ACK.JOBS.stage.>",
        "$JS.API.CONSUMER.MSG.NEXT.JOBS.act",
        "$JS.ACK.JOBS.act.>",
        "$JS.API.CONSUMER.MSG.NEXT.JOBS.archive",
        "$JS.ACK.JOBS.archive.>",
        "$JS.API.CONSUMER.MSG.NEXT.JOBS.*",
        "$JS.ACK.JOBS.*.>",
        "$JS.API.CONSUMER.LIST.JOBS",
        "$JS.API.CONSUMER.NAMES.JOBS",
        "$JS.API.CONSUMER.CREATE.JOBS.*.jobs.staged.>",
    ];
    assert_eq!(publish, expected);
    assert_eq!(subscribe, ["_INBOX_errand-worker.>", "jobs.staged.>", "jobs.invoked.>"]);
}
