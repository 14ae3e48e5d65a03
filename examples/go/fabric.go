// Package fabric starts a NIC for a test, without a library of rocemu: the command `rocemu run` and
// its control socket, which docs/control.md describes. Copy this file into your project.
package fabric

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Fabric is a NIC. It lives until its test ends, or at the most as long as this process.
type Fabric struct {
	test      testing.TB
	directory string
	preload   string
	control   net.Conn
	replies   *bufio.Reader
}

// Start starts a NIC with these options of `rocemu run`, such as "--profile", "irdma-e810".
func Start(test testing.TB, options ...string) *Fabric {
	test.Helper()
	rocemu := os.Getenv("ROCEMU_COMMAND")
	if rocemu == "" {
		rocemu = "rocemu"
	}
	// The NIC lives until this command ends, and cat ends when the pipe to it is closed, which the
	// end of this process does, too.
	arguments := append([]string{"run", "--private"}, options...)
	arguments = append(arguments, "--", "sh", "-c", `echo "$ROCEMU_DIR"; echo "$LD_PRELOAD"; exec cat`)
	keeper := exec.Command(rocemu, arguments...)
	var messages strings.Builder
	keeper.Stderr = &messages
	input, err := keeper.StdinPipe()
	check(test, err)
	output, err := keeper.StdoutPipe()
	check(test, err)
	check(test, keeper.Start())
	test.Cleanup(func() {
		input.Close()
		_, _ = io.Copy(io.Discard, output)
		if err := keeper.Wait(); err != nil && !test.Failed() {
			test.Errorf("the NIC ended with %v: %s", err, messages.String())
		}
	})
	lines := bufio.NewScanner(output)
	next := func() string { lines.Scan(); return lines.Text() }
	fabric := &Fabric{test: test, directory: next(), preload: next()}
	if fabric.preload == "" {
		_ = keeper.Wait()
		test.Fatalf("rocemu has not started a NIC: %s", messages.String())
	}
	fabric.control, err = net.Dial("unix", filepath.Join(fabric.directory, "control"))
	check(test, err)
	test.Cleanup(func() { fabric.control.Close() })
	fabric.replies = bufio.NewReader(fabric.control)
	return fabric
}

// Command returns a command that sees the NIC's devices.
func (fabric *Fabric) Command(program string, arguments ...string) *exec.Cmd {
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), "ROCEMU_DIR="+fabric.directory, "LD_PRELOAD="+fabric.preload)
	return command
}

// Spawn starts a command that ends with the test at the latest. If the test fails, it shows what the
// command has printed.
func (fabric *Fabric) Spawn(command *exec.Cmd) {
	fabric.test.Helper()
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	check(fabric.test, command.Start())
	fabric.test.Cleanup(func() {
		if command.ProcessState == nil {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
		if fabric.test.Failed() {
			fabric.test.Logf("%s has printed:\n%s", command.Path, output.String())
		}
	})
}

// Request sends a request of docs/control.md, and returns the reply.
func (fabric *Fabric) Request(command string, arguments map[string]any) (map[string]any, error) {
	request := map[string]any{"command": command}
	for name, value := range arguments {
		request[name] = value
	}
	if err := json.NewEncoder(fabric.control).Encode(request); err != nil {
		return nil, err
	}
	line, err := fabric.replies.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var reply map[string]any
	if err := json.Unmarshal(line, &reply); err != nil {
		return nil, err
	}
	if reply["ok"] != true {
		return nil, fmt.Errorf("the NIC refuses %s: %v", command, reply["error"])
	}
	return reply, nil
}

// AddRule adds a rule in YAML, such as "{on: frame, opcode: ACK, do: drop}".
func (fabric *Fabric) AddRule(rule string) {
	fabric.test.Helper()
	_, err := fabric.Request("inject", map[string]any{"rule": rule})
	check(fabric.test, err)
}

// WaitListening waits until a program listens on the port, with rdma_listen(3) or with TCP.
func (fabric *Fabric) WaitListening(port int, timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		reply, err := fabric.Request("listening", map[string]any{"port": port})
		if err != nil || reply["listening"] == true {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("no program listens on port " + fmt.Sprint(port))
		}
	}
}

// FreePort returns a TCP port that no program uses.
func FreePort(test testing.TB) int {
	test.Helper()
	listener, err := net.Listen("tcp", ":0")
	check(test, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func check(test testing.TB, err error) {
	test.Helper()
	if err != nil {
		test.Fatal(err)
	}
}
