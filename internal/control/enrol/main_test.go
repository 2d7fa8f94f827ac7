package enrol

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The server lingers half a second on a connection whose request was too
	// large, so that the client reads the refusal before the reset.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}
