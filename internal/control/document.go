package control

import (
	"encoding/json"
	"errors"
	"fmt"
)

// DocumentVersion is the version that this build writes and the newest that it
// reads. Within a version fields may be added; readers ignore unknown ones. A
// change that an old reader would misunderstand raises it.
const DocumentVersion = 1

// ErrBadDocument is matched by every refusal of a document: not JSON, of a
// newer version, or with a value out of range.
var ErrBadDocument = errors.New("bad document")

// maxDocument bounds what is decoded: a plan for 1,000 nodes is about 300 KB;
// a peer must not make us parse gigabytes.
const maxDocument = 8 << 20

type document interface {
	// kind names the document in errors.
	kind() string
	// version points at the document's version field.
	version() *int
	// Validate lists all faults of the document at once.
	Validate() error
}

// Encode checks a document and writes it as JSON of the current version.
func Encode(d document) ([]byte, error) {
	*d.version() = DocumentVersion
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBadDocument, d.kind(), err)
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBadDocument, d.kind(), err)
	}
	return data, nil
}

// Decode reads JSON into a document and checks it. On an error the document's
// content means nothing.
func Decode(data []byte, d document) error {
	if len(data) > maxDocument {
		return fmt.Errorf("%w: %s of %d bytes, at most %d are read", ErrBadDocument, d.kind(), len(data), maxDocument)
	}
	if err := json.Unmarshal(data, d); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBadDocument, d.kind(), err)
	}
	if v := *d.version(); v < 1 || v > DocumentVersion {
		return fmt.Errorf("%w: %s of version %d, this program reads 1 to %d: update it", ErrBadDocument, d.kind(), v, DocumentVersion)
	}
	if err := d.Validate(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBadDocument, d.kind(), err)
	}
	return nil
}

// faults collects what is wrong with a document.
type faults []error

func (f *faults) add(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

func (f *faults) check(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (f faults) join() error { return errors.Join(f...) }
