package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// Variables of a program.
const (
	socketVariable = "AGENT_TEST_SOCKET"
	idVariable     = "AGENT_TEST_ID"
)

// runProgram is a program in a process of its own. It prints a line per answer, and reads a line before the
// next request.
func runProgram(role string) int {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", os.Getenv(socketVariable))
	}}}
	lines := bufio.NewScanner(os.Stdin)
	id := os.Getenv(idVariable)
	if id == "" {
		id = joinAs(client, role)
		fmt.Println(id)
	}
	for {
		fmt.Println(ask(client, id))
		if !lines.Scan() {
			return 0
		}
		if lines.Text() == "exec" { // another program with the same process ID and id
			_ = syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), idVariable+"="+id))
		}
	}
}

// joinAs joins, and returns the id or an error.
func joinAs(client *http.Client, role string) string {
	var answer joinAnswer
	if err := send(client, "/v1/owners", object{"namespace": "presence", "addr": "127.0.0.1:8080", "process": role == "process", "ttl_ms": 60000}, &answer); err != nil {
		return err.Error()
	}
	return answer.ID
}

// ask waits until a key is held, gets a promise, and returns "held" or an error.
func ask(client *http.Client, id string) string {
	var answer awaitAnswer
	if err := send(client, "/v1/owners/"+id+"/await", object{"name": "alice", "timeout_ms": 10000}, &answer); err != nil {
		return err.Error()
	}
	var checked checkAnswer
	if err := send(client, "/v1/owners/"+id+"/check", object{"name": "alice"}, &checked); err != nil {
		return err.Error()
	}
	if !answer.Held || !checked.Held || checked.ValidForMS == 0 {
		return "not held"
	}
	return "held"
}

func send(client *http.Client, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	answer, err := client.Post("http://localhost"+path, "application/json", bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%d %s", answer.StatusCode, text)
	}
	return json.Unmarshal(text, into)
}
