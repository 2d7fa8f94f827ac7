package cli

import (
	"os"
	"strings"
	"testing"
)

func TestOnlyWorkersOfThatNameAreTouched(t *testing.T) {
	for line, want := range map[string]bool{
		"/opt/hecate node run --leash --name laptop --data d": true,
		"/opt/hecate node --name=laptop":                      true,
		"hecate-node --name laptop":                           true,
		"hecate-node":                                         true, // it goes by the host's name
		"/opt/hecate node run --name desk":                    false,
		"/opt/hecate up --nodes 3":                            false,
		"hecate-node run --name":                              false,
		"vim laptop node":                                     false,
		"":                                                    false,
	} {
		if got := isWorker(strings.Fields(line), "laptop"); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}

func TestCommandLineIsRead(t *testing.T) {
	args, err := commandLine(os.Getpid())
	if err != nil || len(args) == 0 || args[0] != os.Args[0] {
		t.Errorf("%q, %v; want %q first", args, err, os.Args[0])
	}
}

func TestChaosUpstreamSaysWhatItKnows(t *testing.T) {
	var out, errs strings.Builder
	if code := Main("hecate", []string{"chaos", "upstream", "--list"}, strings.NewReader(""), &out, &errs); code != exitFine || !strings.Contains(out.String(), "wrong-usage") {
		t.Errorf("code %d, %s%s", code, out.String(), errs.String())
	}
	errs.Reset()
	if code := Main("hecate", []string{"chaos", "upstream", "--fault", "oops"}, strings.NewReader(""), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "known are none, 429-once") {
		t.Errorf("code %d, %s", code, errs.String())
	}
}

// A script that is wrong is said to be so before a gateway is looked for.
func TestChaosRunSaysFileAndLine(t *testing.T) {
	var out, errs strings.Builder
	code := Main("hecate", []string{"chaos", "run", "-"}, strings.NewReader("wait 1s\nkil laptop\n"), &out, &errs)
	if code != exitUsage || !strings.Contains(errs.String(), "standard input:2: kil laptop: ") {
		t.Errorf("code %d, %s", code, errs.String())
	}
}
