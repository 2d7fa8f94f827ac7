package enrol

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net"
	"strings"
	"time"
)

const (
	// tokenPrefix makes tokens recognisable, for people and for scanners that
	// look for leaked secrets.
	tokenPrefix  = "hecate-join-"
	tokenVersion = 1
	secretSize   = 16
	maxAddresses = 16
	maxAddress   = 255
	maxToken     = 8 << 10
)

// ErrBadToken: the text is no join token, or it was damaged on its way.
var ErrBadToken = errors.New("that is no join token")

// A Token lets machines into a swarm. It holds a secret: String and the log
// show its id only, Encode all of it.
type Token struct {
	Secret      [secretSize]byte
	Fingerprint [sha256.Size]byte // of the authority's certificate
	Expires     time.Time         // in whole seconds
	Uses        int               // how many machines it lets in, >= 1
	Addresses   []string          // host:port of the gateways' enrolment endpoints
}

// NewToken makes a token with a random secret.
func NewToken(fingerprint [sha256.Size]byte, addresses []string, uses int, expires time.Time) (Token, error) {
	t := Token{Fingerprint: fingerprint, Expires: expires.Truncate(time.Second).UTC(), Uses: uses, Addresses: addresses}
	if _, err := rand.Read(t.Secret[:]); err != nil {
		return Token{}, fmt.Errorf("making a token: %w", err)
	}
	return t, t.validate()
}

func (t Token) validate() error {
	if t.Uses < 1 {
		return fmt.Errorf("a token for %d machines, want at least 1", t.Uses)
	}
	if len(t.Addresses) == 0 || len(t.Addresses) > maxAddresses {
		return fmt.Errorf("a token with %d addresses, want 1 to %d", len(t.Addresses), maxAddresses)
	}
	for _, a := range t.Addresses {
		if err := validAddress(a); err != nil {
			return err
		}
	}
	return nil
}

func validAddress(a string) error {
	host, port, err := net.SplitHostPort(a)
	if err != nil || host == "" || port == "" || len(a) > maxAddress || strings.ContainsFunc(a, unprintable) {
		return fmt.Errorf("%q is not host:port", a)
	}
	return nil
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == '@' }

// ID names the token without giving it away: 16 hex digits of its secret's
// hash.
func (t Token) ID() string { return secretID(t.Secret[:]) }

func secretHash(secret []byte) string {
	sum := sha256.Sum256(secret)
	return hex.EncodeToString(sum[:])
}

func secretID(secret []byte) string { return secretHash(secret)[:16] }

// String names the token; it does not hold the secret.
func (t Token) String() string {
	return fmt.Sprintf("join token %s (%d uses, until %s)", t.ID(), t.Uses, t.Expires.Format(time.RFC3339))
}

// GoString keeps %#v from showing the secret.
func (t Token) GoString() string { return t.String() }

// LogValue keeps logs from showing the secret.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// Encode writes the token as one word of text, with its secret.
func (t Token) Encode() string {
	data := []byte{tokenVersion}
	data = append(data, t.Secret[:]...)
	data = append(data, t.Fingerprint[:]...)
	data = binary.BigEndian.AppendUint64(data, uint64(t.Expires.Unix()))
	data = binary.BigEndian.AppendUint32(data, uint32(t.Uses))
	for _, a := range t.Addresses {
		data = append(data, byte(len(a)))
		data = append(data, a...)
	}
	data = binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(data)
}

// ParseToken reads what Encode wrote, with white space around it.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	body, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(text) > maxToken {
		return Token{}, fmt.Errorf("%w: a join token starts with %q", ErrBadToken, tokenPrefix)
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || len(data) < 5 {
		return Token{}, fmt.Errorf("%w: it was damaged on its way; copy it again, as one line", ErrBadToken)
	}
	data, sum := data[:len(data)-4], binary.BigEndian.Uint32(data[len(data)-4:])
	if crc32.ChecksumIEEE(data) != sum {
		return Token{}, fmt.Errorf("%w: its checksum is wrong; copy all of it again", ErrBadToken)
	}
	if data[0] != tokenVersion {
		return Token{}, fmt.Errorf("%w: it has version %d, this program knows %d; update it", ErrBadToken, data[0], tokenVersion)
	}
	t, err := parseBody(data[1:])
	if err == nil {
		err = t.validate()
	}
	if err != nil {
		return Token{}, fmt.Errorf("%w: %w", ErrBadToken, err)
	}
	return t, nil
}

func parseBody(data []byte) (Token, error) {
	const fixed = secretSize + sha256.Size + 8 + 4
	if len(data) < fixed {
		return Token{}, errors.New("it is too short")
	}
	var t Token
	data = data[copy(t.Secret[:], data):]
	data = data[copy(t.Fingerprint[:], data):]
	seconds := int64(binary.BigEndian.Uint64(data))
	const lastYear = 253402300799 // the year 9999: what a time's text can say
	if seconds < 0 || seconds > lastYear {
		return Token{}, errors.New("its expiry is no date")
	}
	t.Expires = time.Unix(seconds, 0).UTC()
	uses := binary.BigEndian.Uint32(data[8:])
	if uses > 1<<20 {
		return Token{}, fmt.Errorf("it lets in %d machines", uses)
	}
	t.Uses = int(uses)
	data = data[12:]
	for len(data) > 0 {
		n := int(data[0])
		if len(data) < 1+n {
			return Token{}, errors.New("an address in it is cut off")
		}
		t.Addresses = append(t.Addresses, string(data[1:1+n]))
		data = data[1+n:]
	}
	return t, nil
}
