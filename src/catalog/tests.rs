use super::*;

#[test]
fn nobody_says_of_another_that_a_job_is_theirs() {
    let said = Some(json!({"principal_id": "root", "team": "a"}));
    let queue = Caller::Queue { workspace: "team".to_owned() };
    let (id, name) = ("token-1".to_owned(), "own".to_owned());
    let token = Caller::Token { id, name, roles: BTreeMap::new() };
    assert_eq!(owned(said.clone(), &Caller::Anyone), said);
    assert_eq!(owned(said.clone(), &queue), Some(json!({"team": "a"})));
    assert_eq!(owned(said, &token), Some(json!({"team": "a", "principal_id": "own"})));
    assert_eq!((owned(None, &queue), owned(Some(json!(7)), &queue)), (None, None));
}
