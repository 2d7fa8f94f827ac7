package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"

	"hecate/internal/gateway/openai"
)

type chatCmd struct {
	where
	Prompt      []string `arg:"" optional:"" help:"One question; without it a conversation starts."`
	Model       string   `help:"Model; the only one, or the first, when absent." placeholder:"ID"`
	System      string   `help:"System message." placeholder:"TEXT"`
	Temperature float64  `help:"0 is greedy, 1 samples freely." default:"0.6"`
	MaxTokens   int      `help:"Longest answer, in tokens; 0: what the context leaves." default:"0"`
	Seed        *int64   `help:"Repeatable randomness."`
}

// turn is one message of the history.
type turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Run asks once, or holds a conversation until end of input.
func (cmd *chatCmd) Run(ctx context.Context, c console) error {
	if cmd.Model == "" {
		m, err := cmd.firstModel(ctx)
		if err != nil {
			return err
		}
		cmd.Model = m
	}
	var history []turn
	if cmd.System != "" {
		history = append(history, turn{"system", cmd.System})
	}
	if len(cmd.Prompt) > 0 {
		_, err := cmd.ask(ctx, c, append(history, turn{"user", strings.Join(cmd.Prompt, " ")}))
		return err
	}
	return cmd.converse(ctx, c, history)
}

func (cmd *chatCmd) firstModel(ctx context.Context) (string, error) {
	var list openai.ModelList
	if err := cmd.get(ctx, "/v1/models", &list); err != nil {
		return "", err
	}
	for _, m := range list.Data {
		if m.Hecate == nil || m.Hecate.Ready {
			return m.ID, nil
		}
	}
	return "", errors.New("the gateway serves no model that is ready: see `hecate status`")
}

// converse reads a line, streams the answer, and remembers both. An interrupt
// stops an answer; at the prompt it ends the conversation.
func (cmd *chatCmd) converse(ctx context.Context, c console, history []turn) error {
	// The command's own context ends with the first interrupt: here that means less.
	ctx = context.WithoutCancel(ctx)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	screen := isTerminal(c.out)
	if screen {
		fmt.Fprintf(c.out, "Talking to %s. Ctrl-C stops an answer, /new forgets the conversation, Ctrl-D ends.\n", cmd.Model)
	}
	lines := readLines(c.in)
	for system := len(history); ; {
		if screen {
			fmt.Fprint(c.out, "\n> ")
		}
		var line string
		select {
		case <-interrupts:
			fmt.Fprintln(c.out)
			return nil
		case l, ok := <-lines:
			if !ok {
				return nil
			}
			line = strings.TrimSpace(l)
		}
		switch line {
		case "":
		case "/new":
			history = history[:system]
		case "/bye", "/exit", "/quit":
			return nil
		default:
			history = cmd.exchange(ctx, c, interrupts, append(history, turn{"user", line}))
		}
	}
}

// exchange adds the answer to the history, or takes the question back when there
// was none.
func (cmd *chatCmd) exchange(ctx context.Context, c console, interrupts <-chan os.Signal, history []turn) []turn {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-interrupts:
			cancel()
		case <-ctx.Done():
		}
	}()
	answer, err := cmd.ask(ctx, c, history)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(c.out, "[stopped]")
	case err != nil:
		fmt.Fprintf(c.err, "hecate: %v\n", err)
		return history[:len(history)-1]
	}
	return append(history, turn{"assistant", answer})
}

// readLines reads in the background, so that a prompt can be interrupted.
func readLines(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			lines <- scan.Text()
		}
	}()
	return lines
}

// ask streams one answer to the output and returns it.
func (cmd *chatCmd) ask(ctx context.Context, c console, history []turn) (string, error) {
	body := map[string]any{"model": cmd.Model, "messages": history, "stream": true, "temperature": cmd.Temperature}
	if cmd.MaxTokens > 0 {
		body["max_tokens"] = cmd.MaxTokens
	}
	if cmd.Seed != nil {
		body["seed"] = *cmd.Seed
	}
	resp, err := cmd.call(ctx, http.MethodPost, "/v1/chat/completions", body)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var text strings.Builder
	rescues, err := readStream(resp.Body, func(piece string) {
		text.WriteString(piece)
		fmt.Fprint(c.out, piece)
	})
	fmt.Fprintln(c.out)
	if rescues > 0 {
		fmt.Fprintf(c.err, "[this answer survived %s]\n", failures(rescues))
	}
	return text.String(), err
}

func failures(n int) string {
	if n == 1 {
		return "1 failure"
	}
	return fmt.Sprintf("%d failures", n)
}

// readStream reads the events of a chat stream until [DONE]. A stream that ends
// without it is an error: the answer is not whole.
func readStream(r io.Reader, piece func(string)) (rescues int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return rescues, nil
		}
		var event struct {
			openai.ChatChunk
			Error *openai.Error `json:"error"`
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return rescues, fmt.Errorf("read the answer: %w", err)
		}
		if event.Error != nil {
			return rescues, errors.New(event.Error.Message)
		}
		if event.Hecate != nil {
			rescues = event.Hecate.Rescues
		}
		for _, choice := range event.Choices {
			if choice.Delta.Content != nil {
				piece(*choice.Delta.Content)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return rescues, fmt.Errorf("the answer broke off: %w", err)
	}
	return rescues, errors.New("the answer broke off before its end")
}
