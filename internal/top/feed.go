package top

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Open starts to read a live stream; it may be asked many times.
type Open func(ctx context.Context) (io.ReadCloser, error)

// news is one message of the stream, or the end of a connection.
type news struct {
	name  string
	data  []byte
	ended error // instead: why the connection is gone
}

// Pauses between tries to connect.
const (
	firstPause = 250 * time.Millisecond
	mostPause  = 4 * time.Second
)

// follow reads streams until ctx ends, and connects anew when one breaks.
func follow(ctx context.Context, open Open, tell func(news)) {
	pause := firstPause
	for ctx.Err() == nil {
		err := readStream(ctx, open, func(n news) {
			pause = firstPause
			tell(n)
		})
		if ctx.Err() != nil {
			return
		}
		tell(news{ended: err})
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, mostPause)
	}
}

// maxMessage bounds one message: a full picture of a thousand nodes is under a
// megabyte.
const maxMessage = 16 << 20

func readStream(ctx context.Context, open Open, tell func(news)) error {
	body, err := open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), maxMessage)
	var n news
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "":
			if n.name != "" {
				tell(n)
			}
			n = news{}
		case strings.HasPrefix(line, "event: "):
			n.name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			n.data = []byte(line[len("data: "):])
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the live stream: %w", err)
	}
	return errors.New("the gateway ended the live stream")
}
