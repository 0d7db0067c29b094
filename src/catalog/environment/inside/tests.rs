use super::*;

#[test]
fn directories_stay_below_the_base() {
    for fine in ["ws", "./ws", "", ".", "a/../b", "..a/b..", "a//b/"] {
        assert_eq!(workspace_inside(fine).as_deref(), Ok(fine));
    }
    let relative = "Local workspace path must be relative to the agent base directory.";
    let within = "Local artifacts path must remain within the agent base directory.";
    assert_eq!(workspace_inside("/ws"), Err(relative.to_owned()));
    for out in ["..", "a/../../b", "../a", "./..", "a\0"] {
        assert_eq!(artifacts_inside(out), Err(within.to_owned()), "{out}");
    }
}
