package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An EngineRecord is a server of whole models that somebody else runs and that
// speaks OpenAI's API: llama.cpp's, Ollama, vLLM, SGLang, another swarm. Each of
// its models is a pipeline of one stage. There is no secret in it.
type EngineRecord struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	// URL is where its API begins, such as http://10.0.0.7:8000/v1; neither
	// credentials nor a query stand in it.
	URL string `json:"url"`
	// Aliases are further names of its models: alias to the engine's own name.
	Aliases map[string]string `json:"aliases,omitempty"`
	// KeyEnv names the environment variable of the gateway's process that holds
	// the engine's API key; "": it wants none.
	KeyEnv string `json:"key_env,omitempty"`
	// PassKey gives the engine what clients send as Authorization.
	PassKey bool `json:"pass_key,omitempty"`
	// Resume has its models tested, once they are seen, for whether they continue a
	// completion from a prefix as if nothing had been; only then is that relied on.
	Resume bool `json:"resume,omitempty"`
	// Parallel is how many requests it may have at once, as far as this gateway
	// sends them; 0: any number.
	Parallel int `json:"parallel,omitempty"`
	// FirstByte is how long to wait for the first content of an answer; 0: what is
	// usual for this engine decides.
	FirstByte time.Duration `json:"first_byte,omitempty"`
	// Silence is how long a stream may say nothing once it has begun; 0: 60 s.
	Silence time.Duration `json:"silence,omitempty"`
	Created time.Time     `json:"created"`
}

func (r *EngineRecord) kind() string  { return "engine record" }
func (r *EngineRecord) version() *int { return &r.Version }

// Limits of an engine's record.
const (
	maxEngineURL     = 1024
	maxAliases       = 256
	maxForeignModel  = 256 // names of models elsewhere: with slashes, colons, spaces
	maxParallel      = 1 << 16
	maxEngineWait    = time.Hour
	defaultAPIFolder = "/v1"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Validate lists everything that is wrong with the record.
func (r *EngineRecord) Validate() error {
	var f faults
	f.add(ValidateEngineName(r.ID))
	f.add(validateEngineURL(r.URL))
	f.check(len(r.Aliases) <= maxAliases, "engine %q: %d aliases, at most %d", r.ID, len(r.Aliases), maxAliases)
	for _, alias := range slices.Sorted(maps.Keys(r.Aliases)) {
		f.add(ValidateForeignModel(alias))
		f.add(ValidateForeignModel(r.Aliases[alias]))
	}
	f.check(r.KeyEnv == "" || envName.MatchString(r.KeyEnv), "engine %q: %q is no name of an environment variable", r.ID, r.KeyEnv)
	f.check(r.KeyEnv == "" || !r.PassKey, "engine %q: either its own key or the clients' keys, not both", r.ID)
	f.check(r.Parallel >= 0 && r.Parallel <= maxParallel, "engine %q: %d requests at once, want 0 (any number) to %d", r.ID, r.Parallel, maxParallel)
	f.check(r.FirstByte >= 0 && r.FirstByte <= maxEngineWait, "engine %q: %s for the first content, want 0 (what is usual) to %s", r.ID, r.FirstByte, maxEngineWait)
	f.check(r.Silence >= 0 && r.Silence <= maxEngineWait, "engine %q: %s of silence, want 0 (the default) to %s", r.ID, r.Silence, maxEngineWait)
	return f.join()
}

// ValidateEngineName checks an engine's id: the same as a node's.
func ValidateEngineName(name string) error { return validateName("engine", name, maxNodeName, "-_.") }

// ValidateForeignModel checks the name of a model on somebody else's server: 1 to
// 256 bytes, and printable.
func ValidateForeignModel(name string) error {
	bad := func(c rune) bool { return c < ' ' || c == 0x7f || c == '"' || c == '\\' || c == '\uFFFD' }
	if name == "" || len(name) > maxForeignModel || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("%w: a model's name has 1 to %d printable characters, not %q", ErrBadName, maxForeignModel, name)
	}
	return nil
}

func validateEngineURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxEngineURL:
		return fmt.Errorf("the URL has %d bytes, at most %d", len(text), maxEngineURL)
	case err != nil:
		return errors.New("the URL cannot be read") // url.Error repeats it, and it may hold a password
	case u.User != nil:
		return errors.New("the URL holds credentials: they would stand in lists and logs; name a variable that holds the key instead")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the URL must be http://HOST[:PORT][/PATH] or https://..., without query")
	}
	return nil
}

// EngineURL completes what people write as an engine's address: "gpu:8000" is
// http://gpu:8000/v1.
func EngineURL(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	if err := validateEngineURL(text); err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("the URL cannot be read")
	}
	if host := u.Hostname(); host == "" || strings.ContainsAny(host, " \t") {
		return "", errors.New("the URL names no host")
	}
	if _, port, err := net.SplitHostPort(u.Host); err == nil && port == "" {
		return "", errors.New("the URL names an empty port")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.Path == "" {
		u.Path = defaultAPIFolder
	}
	return u.String(), nil
}

// PutEngine registers an engine, or replaces the one of its name.
func PutEngine(ctx context.Context, store Store, rec *EngineRecord) error {
	data, err := Encode(rec)
	if err != nil {
		return err
	}
	for {
		e, err := store.Get(ctx, BucketEngines, rec.ID)
		switch {
		case errors.Is(err, ErrNotFound):
			_, err = store.Create(ctx, BucketEngines, rec.ID, data)
		case err == nil:
			_, err = store.CompareAndSet(ctx, BucketEngines, rec.ID, data, e.Revision)
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// RemoveEngine takes an engine out; what runs on it goes on to its end.
func RemoveEngine(ctx context.Context, store Store, id string) error {
	if err := store.Delete(ctx, BucketEngines, id, 0); err != nil {
		if errors.Is(err, ErrNotFound) {
			return fmt.Errorf("there is no engine %q: hecate engine ls lists them: %w", id, ErrNotFound)
		}
		return fmt.Errorf("engine %q: %w", id, err)
	}
	return nil
}

// Engines lists the engines in id order.
func Engines(ctx context.Context, store Store) ([]*EngineRecord, error) {
	return list(ctx, store, BucketEngines, func() *EngineRecord { return new(EngineRecord) })
}

// An EngineView is an engine as a gateway sees it.
type EngineView struct {
	Record   EngineRecord     `json:"record"`
	State    string           `json:"state"`             // up, down, starting
	Circuit  string           `json:"circuit"`           // closed, open, half-open
	Problem  string           `json:"problem,omitempty"` // of the last look
	Paused   time.Time        `json:"paused_until,omitzero"`
	Models   []string         `json:"models"`            // its own names
	Names    []string         `json:"names"`             // what clients may ask for
	Resumes  map[string]bool  `json:"resumes,omitempty"` // by own name: a test proved that it continues a prefix
	Running  int              `json:"running"`
	Requests int64            `json:"requests"`
	Failures map[string]int64 `json:"failures,omitempty"` // by kind
	FirstMS  float64          `json:"first_content_ms,omitempty"`
	TokenMS  float64          `json:"token_ms,omitempty"`
}

// SortEngines puts views into the order of their names.
func SortEngines(views []EngineView) {
	slices.SortFunc(views, func(a, b EngineView) int { return cmp.Compare(a.Record.ID, b.Record.ID) })
}
