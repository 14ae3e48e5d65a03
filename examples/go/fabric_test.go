package fabric

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// pingpong runs a server and a client; in your tests these are your own programs. It returns what the
// client printed, and the first error.
func pingpong(test *testing.T, fabric *Fabric) (string, error) {
	port := FreePort(test)
	arguments := []string{"-g", "0", "-p", strconv.Itoa(port)}
	server := fabric.Command("ibv_rc_pingpong", arguments...)
	fabric.Spawn(server)
	if err := fabric.WaitListening(port, 30*time.Second); err != nil {
		return "", err
	}
	output, err := fabric.Command("ibv_rc_pingpong", append(arguments, "localhost")...).CombinedOutput()
	if err != nil {
		return string(output), err
	}
	return string(output), server.Wait()
}

func TestEndsWellOnAKindNetwork(test *testing.T) {
	if output, err := pingpong(test, Start(test)); err != nil {
		test.Fatalf("%v: %s", err, output)
	}
}

func TestSurvivesALostFrame(test *testing.T) {
	fabric := Start(test, "--lockstep")
	fabric.AddRule("{name: lost, on: frame, opcode: SEND, nth: 3, do: drop}")
	if output, err := pingpong(test, fabric); err != nil {
		test.Fatalf("%v: %s", err, output)
	}
	reply, err := fabric.Request("rules", nil)
	check(test, err)
	// The third SEND of each direction is lost: a rule counts each connection's frames by themselves.
	if fired := reply["rules"].([]any)[0].(map[string]any)["fired"]; fired != 2.0 {
		test.Errorf("the rule has fired %v times, not twice", fired)
	}
}

func TestReportsAPeerThatIsGone(test *testing.T) {
	output, err := pingpong(test, Start(test, "--lockstep", "--scenario", "retry-exceeded"))
	if err == nil || !strings.Contains(output, "transport retry counter exceeded") {
		test.Errorf("the client ended with %v: %s", err, output)
	}
}

func TestRefusesARuleThatIsWrong(test *testing.T) {
	if _, err := Start(test).Request("inject", map[string]any{"rule": "{on: nothing}"}); err == nil {
		test.Error("a rule about nothing was accepted")
	}
}
