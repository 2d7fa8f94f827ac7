package bench

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"testing"

	"go.uber.org/goleak"

	"hecate/internal/report"
)

// fakeVariable tells the program that a test starts how to behave; without it
// the program is the tests.
const fakeVariable = "HECATE_BENCH_TEST"

func TestMain(m *testing.M) {
	if how := os.Getenv(fakeVariable); how != "" {
		os.Exit(fakeUp(how))
	}
	goleak.VerifyTestMain(m)
}

// fakeUp is a child process in the place of `hecate up`.
func fakeUp(how string) int {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	switch how {
	case "fails":
		fmt.Fprintln(os.Stderr, "the port is in use")
		return 1
	case "hangs":
		<-interrupted
		return 0
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	http.HandleFunc("GET /v1/swarm", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(report.Status{State: "healthy", Nodes: []report.Node{{ID: "mini", Alive: true, PID: os.Getpid()}}})
	})
	go func() { _ = http.Serve(l, nil) }()
	fmt.Println(`{"event":"starting"}`)
	fmt.Printf("{\"event\":\"ready\",\"url\":\"http://%s\",\"model\":\"fake\"}\n", l.Addr())
	<-interrupted
	return 0
}
