package natsbus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// Config says where the control plane is and who connects.
type Config struct {
	// Servers are ip:port addresses or tls:// URLs of one NATS cluster.
	Servers []string
	// Embedded is used instead, when it is set: without the network, so that a
	// gateway whose cable is pulled does not lose itself.
	Embedded    *Server
	Credentials *identity.Credentials
	User        *User
	// Trust replaces the swarm's authority for servers whose certificates are
	// of another; they are then verified by their host name.
	Trust *x509.CertPool
	// Replicas of each bucket, 1 to 5; 0: 1. Used by Prepare.
	Replicas int
	Log      *slog.Logger // nil: silent
}

const (
	connectTimeout = 3 * time.Second
	// requestTimeout is for store operations whose context has no deadline: a
	// question that was on its way when the server went down is lost.
	requestTimeout = 2 * time.Second
	// reconnectWait is short: health must not miss two beats because a server
	// was restarted. The jitter keeps a swarm from coming back as one.
	reconnectWait   = 150 * time.Millisecond
	reconnectJitter = 100 * time.Millisecond
	// pingEvery notices a dead server within three of them.
	pingEvery = 2 * time.Second
	// drainWait bounds the last words at Close.
	drainWait = 500 * time.Millisecond
)

// A Conn is one member's connection to the control plane. It implements
// control.Store and control.Bus, and reconnects by itself for ever.
type Conn struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	replicas int
	log      *slog.Logger

	mu struct {
		sync.Mutex
		buckets map[control.Bucket]jetstream.KeyValue
		// again is closed, and replaced, at each reconnection: watches start
		// over then.
		again chan struct{}
	}
}

var (
	_ control.Store = (*Conn)(nil)
	_ control.Bus   = (*Conn)(nil)
)

// Connect connects once, or says why it could not.
func Connect(ctx context.Context, cfg Config) (*Conn, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Conn{replicas: max(cfg.Replicas, 1), log: cfg.Log}
	c.mu.buckets = map[control.Bucket]jetstream.KeyValue{}
	c.mu.again = make(chan struct{})
	nc, err := dial(ctx, cfg, c)
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane at %s: %w", strings.Join(cfg.Servers, ", "), err)
	}
	c.nc = nc
	if c.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(requestTimeout)); err != nil {
		nc.Close()
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	return c, nil
}

// dial obeys ctx, which the client's own Connect does not know.
func dial(ctx context.Context, cfg Config, c *Conn) (*nats.Conn, error) {
	var urls []string
	for _, s := range cfg.Servers {
		if !strings.Contains(s, "://") {
			s = "tls://" + s
		}
		urls = append(urls, s)
	}
	type dialled struct {
		nc  *nats.Conn
		err error
	}
	done := make(chan dialled, 1)
	go func() {
		nc, err := nats.Connect(strings.Join(urls, ","), c.options(cfg)...)
		done <- dialled{nc, err}
	}()
	select {
	case d := <-done:
		return d.nc, d.err
	case <-ctx.Done():
		go func() {
			if d := <-done; d.nc != nil {
				d.nc.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// tls trusts gateways of the swarm, or the servers of an external cluster.
func (cfg Config) tls() *tls.Config {
	conf := cfg.Credentials.Client(identity.RoleGateway, "")
	if cfg.Trust != nil {
		conf.RootCAs, conf.ServerName, conf.VerifyConnection = cfg.Trust, "", nil
	}
	return conf
}

// way is how the servers are reached.
func (cfg Config) way() nats.Option {
	if cfg.Embedded != nil {
		return nats.InProcessServer(cfg.Embedded.ns)
	}
	return nats.Secure(cfg.tls())
}

func (c *Conn) options(cfg Config) []nats.Option {
	id := cfg.Credentials.ID()
	return []nats.Option{
		nats.Name(id.String()),
		cfg.way(),
		nats.UserJWT(cfg.User.login, cfg.User.sign),
		nats.CustomInboxPrefix(InboxPrefix(id)),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.ReconnectBufSize(-1), // old health is worth nothing
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(2),
		nats.ReconnectHandler(func(*nats.Conn) { c.reconnected() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.log.Warn("control plane lost, reconnecting", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if sub == nil { // a try to reconnect, several a second
				c.log.Debug("control plane", "error", err)
				return
			}
			c.log.Warn("control plane", "subject", sub.Subject, "error", err)
		}),
	}
}

func (c *Conn) reconnected() {
	c.log.Info("control plane is back")
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.mu.again)
	c.mu.again = make(chan struct{})
}

func (c *Conn) nextReconnect() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.again
}

// Connected reports whether the control plane can be reached now.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// Reconnect drops the connection and makes a new one at once, with the newest
// certificate.
func (c *Conn) Reconnect() error {
	if err := c.nc.ForceReconnect(); err != nil {
		return fmt.Errorf("reconnecting to the control plane: %w", err)
	}
	return nil
}

// Close says what is still to be said and disconnects.
func (c *Conn) Close() {
	if c.nc.IsConnected() {
		if err := c.nc.FlushTimeout(drainWait); err != nil {
			c.log.Debug("last words to the control plane were lost", "error", err)
		}
	}
	c.nc.Close()
}

// Prepare makes the buckets that do not exist yet. Gateways call it once
// before anything else.
func (c *Conn) Prepare(ctx context.Context) error {
	for _, b := range control.Buckets {
		kv, err := c.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: string(b), History: 1, Storage: jetstream.FileStorage, Replicas: c.replicas,
			MaxValueSize: maxPayload / 2,
		})
		if err != nil {
			return fmt.Errorf("making the bucket %s: %w", b, err)
		}
		c.mu.Lock()
		c.mu.buckets[b] = kv
		c.mu.Unlock()
	}
	return nil
}

// bucket finds a bucket and remembers it.
func (c *Conn) bucket(ctx context.Context, b control.Bucket) (jetstream.KeyValue, error) {
	c.mu.Lock()
	kv := c.mu.buckets[b]
	c.mu.Unlock()
	if kv != nil {
		return kv, nil
	}
	kv, err := c.js.KeyValue(ctx, string(b))
	if err != nil {
		return nil, fmt.Errorf("opening the bucket %s: %w", b, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.buckets[b] = kv
	return kv, nil
}

// streamOf is the stream behind a bucket.
func streamOf(b control.Bucket) string { return "KV_" + string(b) }

// translate maps the client's errors to the store's.
func translate(b control.Bucket, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted):
		return fmt.Errorf("%s/%s: %w", b, key, control.ErrNotFound)
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return fmt.Errorf("%s/%s: %w", b, key, control.ErrConflict)
	}
	return fmt.Errorf("%s/%s: %w", b, key, err)
}
