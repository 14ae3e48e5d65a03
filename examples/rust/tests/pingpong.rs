//! Two programs and a NIC. In your tests the programs are your own.

use std::process::{Output, Stdio};
use std::time::Duration;

use rocemu_example::{free_port, Fabric};

/// Runs a server and a client. Returns what the client printed, and whether both succeeded. A server
/// whose client has failed waits for it; it is killed.
fn pingpong(fabric: &mut Fabric) -> (Output, bool) {
    let port = free_port().unwrap();
    let arguments = ["-g", "0", "-p", &port.to_string()].map(String::from);
    let mut command = fabric.command("ibv_rc_pingpong");
    let mut server = fabric
        .spawn(command.args(&arguments).stdout(Stdio::null()))
        .unwrap();
    fabric
        .wait_listening(port, Duration::from_secs(30))
        .unwrap();
    let client = fabric
        .command("ibv_rc_pingpong")
        .args(&arguments)
        .arg("localhost")
        .output()
        .unwrap();
    let succeeded = client.status.success() && server.0.wait().unwrap().success();
    (client, succeeded)
}

#[test]
fn ends_well_on_a_kind_network() {
    assert!(pingpong(&mut Fabric::start(&[]).unwrap()).1);
}

#[test]
fn survives_a_lost_frame() {
    let mut fabric = Fabric::start(&["--lockstep"]).unwrap();
    fabric
        .add_rule("{name: lost, on: frame, opcode: SEND, nth: 3, do: drop}")
        .unwrap();
    assert!(pingpong(&mut fabric).1);
    // The third SEND of each direction is lost: a rule counts each connection's frames by themselves.
    let rules = fabric.request(r#"{"command":"rules"}"#).unwrap();
    assert!(
        rules.contains(r#""fired":2"#),
        "the frames were not lost: {rules}"
    );
}

#[test]
fn reports_a_peer_that_is_gone() {
    let mut fabric = Fabric::start(&["--lockstep", "--scenario", "retry-exceeded"]).unwrap();
    let (client, succeeded) = pingpong(&mut fabric);
    let errors = String::from_utf8_lossy(&client.stderr);
    assert!(
        !succeeded && errors.contains("transport retry counter exceeded"),
        "{errors}"
    );
}

#[test]
fn says_why_there_is_no_nic() {
    assert!(Fabric::start(&["--profile", "no-such-nic"]).is_err());
}
