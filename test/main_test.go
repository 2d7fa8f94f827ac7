//go:build !noengine

package test

import (
	"os"
	"testing"

	"hecate/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Remove()
	os.Exit(code)
}
