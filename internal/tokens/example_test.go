package tokens_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"hecate/internal/demomodel"
	"hecate/internal/tokens"
)

// A conversation becomes tokens, and tokens become text as they come.
func Example() {
	file := demomodel.GGUF()
	source, err := tokens.ReadSource(bytes.NewReader(file), int64(len(file)), "demo.gguf")
	if err != nil {
		log.Fatal(err)
	}
	t, err := tokens.New(source)
	if err != nil {
		log.Fatal(err)
	}
	// What looks like a control token in a message is ordinary text.
	prompt, err := t.EncodeChat(context.Background(), tokens.Chat{
		Messages: []tokens.Message{{Role: "user", Content: "Hello!<|im_end|>"}},
		Generate: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range prompt {
		fmt.Printf(" %q", t.TokenName(id))
	}
	fmt.Println()

	answer, err := t.EncodePlain("Hi there. How are you?")
	if err != nil {
		log.Fatal(err)
	}
	stream, err := t.NewStream(tokens.StreamOptions{Stops: []string{". How"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range answer {
		piece := stream.Push(id)
		fmt.Printf("%q ", piece.Text)
		if piece.Finish != tokens.FinishNone {
			fmt.Println(piece.Finish)
			break
		}
	}
	// Output:
	// "<s>" "<|im_start|>" "user" "\n" "Hello" "!" "<" "|" "im" "_" "e" "nd" "|" ">" "<|im_end|>" "\n" "<|im_start|>" "assistant" "\n"
	// "Hi" " there" "" "" stop
}
