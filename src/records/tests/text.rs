//! Odd text: kept as it is, or refused with a sentence.

use serde_json::json;

use super::job::new_job;
use crate::records::*;

const ODD: &str = "👩‍🔬 \"quotes\" 'single' `$1` \\ % _ \u{202e}rtl\n\t\u{7f}\u{ffff} ';--";

pub(super) async fn exercise(records: &Records) {
    kept(records).await;
    refused(records).await;
}

async fn kept(records: &Records) {
    let all = records.workspaces();
    let made = all.insert("odd", Some(ODD)).await.expect("it is kept");
    assert_eq!(made.description.as_deref(), Some(ODD));
    assert_eq!(all.get("odd").await.expect("it is found"), made);

    let mut new = new_job("odd");
    new.request = json!({ODD: ODD, "nul": "a\0b"});
    new.custom_fields = Some(json!("\0"));
    new.snapshot = Err("field 'x\0' is unknown".to_owned());
    let Ok(Admitted::Fresh(job)) = records.jobs().admit(new.clone()).await else {
        panic!("a document may hold any text");
    };
    assert_eq!((job.request, job.custom_fields), (new.request, new.custom_fields));
    assert_eq!(job.refused.as_deref(), Some("field 'x\\0' is unknown"));
    assert_eq!((job.snapshot, job.spec), (None, None));
}

async fn refused(records: &Records) {
    let text = |error: Error| match error {
        Error::Text(text) => text,
        other => panic!("the text should be refused: {other:?}"),
    };
    let error = records.workspaces().insert("nul", Some("a\0b")).await.expect_err("no such text");
    assert!(text(error).contains("'a\\0b' contains a NUL character"));
    let error = records.workspaces().get("a\0b").await.expect_err("no such text");
    assert!(text(error).contains("NUL"));
    let named = NewJob { name: "a\0b".to_owned(), ..new_job("nul") };
    text(records.jobs().admit(named).await.expect_err("no such text"));
    records.workspaces().insert("nul", None).await.expect("nothing of it was kept");
}
