package cli

import (
	"net"
	"strings"
	"time"
)

// What commands that run for long check of their flags before they do anything:
// a mistake must not cost a token, or be found by a process that dies again and
// again.

// address refuses what is no host:port.
func address(flag, text string) error {
	if _, _, err := net.SplitHostPort(text); err != nil {
		return usage("%s %s is no address, want host:port: %w", flag, text, err)
	}
	return nil
}

// bareHost refuses what is no name or IP address of a machine.
func bareHost(flag, text string) error {
	if net.ParseIP(text) == nil && (text == "" || strings.ContainsAny(text, ":/@ \t[]")) {
		return usage("%s %s is no host, want a name or an IP address alone", flag, text)
	}
	return nil
}

// maxThreads is above what any machine has.
const maxThreads = 1024

func threads(n int) error {
	if n < 1 || n > maxThreads {
		return usage("--threads is %d, want 1 to %d", n, maxThreads)
	}
	return nil
}

// notBelow refuses times below 0, and 0 where that means nothing.
func notBelow(flag string, d time.Duration, zero bool) error {
	if d < 0 || d == 0 && !zero {
		return usage("%s is %s, want more than 0", flag, d)
	}
	return nil
}

// first gives the first mistake: a command line is corrected one by one.
func first(mistakes ...error) error {
	for _, err := range mistakes {
		if err != nil {
			return err
		}
	}
	return nil
}

// each checks every one of a list.
func each(flag string, list []string, check func(flag, text string) error) error {
	var all []error
	for _, text := range list {
		all = append(all, check(flag, text))
	}
	return first(all...)
}
