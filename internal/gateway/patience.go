package gateway

import (
	"io"
	"net/http"
	"time"
)

// patientBody reads a request's body from a client who must send some of it in every
// writePatience: whoever sends nothing holds a connection, and his key's place, as
// well as whoever takes nothing.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
	began   time.Time // of the first read
	got     int64     // bytes
}

// Read implements io.Reader.
func (p *patientBody) Read(b []byte) (int, error) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	_ = p.control.SetReadDeadline(p.began.Add(writePatience * time.Duration(1+p.got/patientPiece))) // not every reader can
	n, err := p.ReadCloser.Read(b)
	p.got += int64(n)
	if err != nil {
		_ = p.control.SetReadDeadline(time.Time{}) // what follows is the connection's
	}
	return n, err
}

// patiently bounds how long a request's body may take.
func patiently(w http.ResponseWriter, r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	out := *r
	out.Body = &patientBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
	return &out
}
