package enrol

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func someToken(t testing.TB) Token {
	t.Helper()
	tok, err := NewToken([32]byte{1, 2, 3}, []string{"192.168.1.5:7443", "[fe80::1]:7443", "host.lan:7443"}, 3, time.Unix(2e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestTokensSurviveCopyingAndNothingElse(t *testing.T) {
	tok := someToken(t)
	text := tok.Encode()
	back, err := ParseToken("  " + text + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tok, back); diff != "" {
		t.Error(diff)
	}
	for i := range text {
		damaged := text[:i] + "~" + text[i+1:]
		if _, err := ParseToken(damaged); !errors.Is(err, ErrBadToken) {
			t.Errorf("damaged at %d: %v", i, err)
		}
		if _, err := ParseToken(text[:i]); !errors.Is(err, ErrBadToken) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

func TestTokensDoNotGiveTheirSecretAway(t *testing.T) {
	tok := someToken(t)
	secret := base64.RawURLEncoding.EncodeToString(tok.Secret[:])[:20]
	for _, shown := range []string{
		tok.String(), fmt.Sprint(tok), fmt.Sprintf("%v %+v %#v %s", tok, tok, tok, tok), tok.LogValue().String(), fmt.Sprint(&tok),
	} {
		if strings.Contains(shown, secret) || strings.Contains(shown, fmt.Sprint(tok.Secret)) || strings.Contains(shown, tok.Encode()) {
			t.Errorf("it shows its secret: %s", shown)
		}
	}
}

func TestOddTokensAreNotMade(t *testing.T) {
	for name, make := range map[string]func() (Token, error){
		"no address":  func() (Token, error) { return NewToken([32]byte{}, nil, 1, time.Now()) },
		"no port":     func() (Token, error) { return NewToken([32]byte{}, []string{"host"}, 1, time.Now()) },
		"with a path": func() (Token, error) { return NewToken([32]byte{}, []string{"host/x:1"}, 1, time.Now()) },
		"no uses":     func() (Token, error) { return NewToken([32]byte{}, []string{"h:1"}, 0, time.Now()) },
		"many addresses": func() (Token, error) {
			return NewToken([32]byte{}, strings.Split(strings.Repeat("h:1 ", 17)+"h:1", " "), 1, time.Now())
		},
	} {
		if tok, err := make(); err == nil {
			t.Errorf("%s: %v", name, tok)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(someToken(f).Encode())
	f.Add("hecate-join-")
	f.Add("hecate-join-AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		tok, err := ParseToken(text)
		if err != nil {
			if !errors.Is(err, ErrBadToken) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if again, err := ParseToken(tok.Encode()); err != nil || !cmp.Equal(tok, again) {
			t.Fatalf("%v became %v (%v)", tok, again, err)
		}
	})
}

// FuzzTokenBody reaches behind the checksum.
func FuzzTokenBody(f *testing.F) {
	f.Add(make([]byte, 60))
	f.Add(append(make([]byte, 60), 3, 'h', ':', '1'))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := parseBody(data)
		if err != nil || tok.validate() != nil {
			return
		}
		if again, err := ParseToken(tok.Encode()); err != nil || !cmp.Equal(tok, again) {
			t.Fatalf("%v became %v (%v)", tok, again, err)
		}
	})
}
