package gatewaybench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"
)

// Answers of the fake upstream, as plain as an engine's.
const (
	Model      = "bench"
	wholeReply = `{"id":"chatcmpl-bench","object":"chat.completion","created":1767225600,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"The quick brown fox jumps over the lazy dog, and the lantern in the harbour goes out."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":17,"completion_tokens":20,"total_tokens":37}}`
	listReply  = `{"object":"list","data":[{"id":"bench","object":"model","created":1767225600,"owned_by":"bench"}]}`
	events     = 10
	streamMark = "text/event-stream"
)

// Upstream answers at once; a request that accepts events gets ten.
func Upstream() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, listReply)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Accept") != streamMark {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, wholeReply)
			return
		}
		stream(w, r)
	})
	return mux
}

func stream(w http.ResponseWriter, r *http.Request) {
	pace := time.Duration(0)
	if n, err := strconv.Atoi(r.Header.Get("Openai-Beta")); err == nil { // a header that every gateway passes on
		pace = time.Duration(n) * time.Millisecond
	}
	w.Header().Set("Content-Type", streamMark)
	flush := http.NewResponseController(w)
	for i := range events {
		if pace > 0 {
			time.Sleep(pace)
		}
		finish := "null"
		if i == events-1 {
			finish = `"stop"`
		}
		fmt.Fprintf(w, "data: {\"id\":\"%d\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" lantern\"},\"finish_reason\":%s}]}\n\n", time.Now().UnixNano(), finish)
		_ = flush.Flush()
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
	_ = flush.Flush()
}

// Proxy is a bare httputil.ReverseProxy.
func Proxy(to string) (http.Handler, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, fmt.Errorf("the address to pass on to: %w", err)
	}
	p := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(u) },
		FlushInterval: -1,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
	}
	return p, nil
}

// Serve runs one of them until ctx ends, and says where.
func Serve(ctx context.Context, h http.Handler, say io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(say, "http://%s\n", l.Addr())
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
