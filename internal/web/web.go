// Package web holds the page of a gateway: one HTML file, built from the folder
// web/ and committed, so that building the program needs no Node. The file holds
// all that the page needs; it asks this gateway for data and nobody else for
// anything.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

//go:embed dist/index.html
var page []byte

// Paths are what Handler serves: no secret stands there, so no key is asked for.
func Paths() []string { return []string{"/"} }

// Handler serves the page.
func Handler() http.Handler {
	h := &handler{policy: policy(string(page)), packed: pack(page)}
	sum := sha256.Sum256(page)
	h.tag = `"` + hex.EncodeToString(sum[:8]) + `"`
	return h
}

type handler struct {
	policy string
	packed []byte
	tag    string
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Content-Security-Policy", h.policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-cache") // ask each time; usually the tag is the same
	head.Set("Vary", "Accept-Encoding")
	body := page
	tag := h.tag
	if acceptsGzip(r) {
		body = h.packed
		tag = strings.TrimSuffix(tag, `"`) + `-gz"`
		head.Set("Content-Encoding", "gzip")
	}
	head.Set("ETag", tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func acceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if name == "gzip" && strings.TrimSpace(quality) != "q=0" {
			return r.Header.Get("Range") == ""
		}
	}
	return false
}

// policy lets the page run the scripts and styles that stand in it, by their
// hashes, and ask this gateway; nothing else.
func policy(html string) string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src " + hashes(html, `<script type="module">`, "</script>"),
		"style-src " + hashes(html, "<style>", "</style>"),
		"font-src data:", "img-src data:", "connect-src 'self'",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; ")
}

// hashes lists the sources between two tags as a policy names them.
func hashes(html, open, end string) string {
	var out []string
	for {
		_, rest, found := strings.Cut(html, open)
		if !found {
			break
		}
		var body string
		if body, html, found = strings.Cut(rest, end); !found {
			break
		}
		sum := sha256.Sum256([]byte(body))
		out = append(out, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	if out == nil {
		return "'none'"
	}
	return strings.Join(out, " ")
}

func pack(b []byte) []byte {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(b)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic("BUG: the page cannot be compressed: " + err.Error())
	}
	return out.Bytes()
}
