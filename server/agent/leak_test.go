package agent

import (
	"os"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(runProgram(role))
	}
	leak.Main(m)
}

// roleVariable makes this test binary a program of an agent, see program_process_test.go.
const roleVariable = "AGENT_TEST_ROLE"
