//go:build !noengine

package test

import (
	"fmt"
	"os"
	"testing"

	"hecate/test/harness"
)

func TestMain(m *testing.M) {
	if config := os.Getenv(natsVariable); config != "" {
		if err := runNATS(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	harness.Remove()
	os.Exit(code)
}
