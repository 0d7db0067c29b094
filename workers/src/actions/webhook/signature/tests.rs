use super::*;

/// The example of the specification's own libraries.
#[test]
fn the_signature_is_the_specification_s() {
    let signed = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        br#"{"test": 2432232314}"#,
    );
    assert_eq!(signed.as_deref(), Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    assert!(sign("whsec_!", "a", 1, b"").expect_err("no base64").contains("no base64"));
    assert!(sign("whsec_", "a", 1, b"").expect_err("nobody's key").contains("empty"));
}
