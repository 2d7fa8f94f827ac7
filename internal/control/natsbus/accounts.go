package natsbus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// Accounts hold the keys that sign who may do what on NATS. Permissions do not
// stand in a member's own token but in the scope of the key that signed it, so
// that not even the node-signing key can grant more than a node's. It is the
// same for the embedded server and for an external cluster.
//
//	operator --signs--> account --lists--> signing key of nodes, of gateways (each with its scope)
//	signing key --signs--> user token of one member, for a day
type Accounts struct {
	account string        // public key
	node    nkeys.KeyPair // signing key with a node's scope
	gateway nkeys.KeyPair // signing key with a gateway's scope

	// The keys behind them; nil when the account belongs to an operator of an
	// external cluster, who made it from the documented scopes.
	operator, owner, system nkeys.KeyPair
}

// accountsFile is how they are kept: a file of mode 0600.
type accountsFile struct {
	Version  int    `json:"version"`
	Account  string `json:"account"`      // public key, A...
	Node     string `json:"node_seed"`    // SA...
	Gateway  string `json:"gateway_seed"` // SA...
	Operator string `json:"operator_seed,omitempty"`
	Owner    string `json:"account_seed,omitempty"`
	System   string `json:"system_seed,omitempty"`
}

// OpenAccounts loads the keys of a file, and makes them when there is none.
func OpenAccounts(path string) (*Accounts, error) {
	data, err := identity.ReadSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		a, err := newAccounts()
		if err != nil {
			return nil, err
		}
		return a, a.save(path)
	}
	if err != nil {
		return nil, err
	}
	var f accountsFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	a, err := f.parse()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

func newAccounts() (*Accounts, error) {
	var a Accounts
	var errs error
	make1 := func(into *nkeys.KeyPair, create func() (nkeys.KeyPair, error)) {
		kp, err := create()
		*into, errs = kp, errors.Join(errs, err)
	}
	make1(&a.operator, nkeys.CreateOperator)
	for _, kp := range []*nkeys.KeyPair{&a.owner, &a.system, &a.node, &a.gateway} {
		make1(kp, nkeys.CreateAccount)
	}
	if errs != nil {
		return nil, fmt.Errorf("making the keys of the control plane: %w", errs)
	}
	a.account = publicOf(a.owner)
	return &a, nil
}

func (f accountsFile) parse() (*Accounts, error) {
	if f.Version != control.DocumentVersion {
		return nil, fmt.Errorf("version %d, this program reads %d", f.Version, control.DocumentVersion)
	}
	if !nkeys.IsValidPublicAccountKey(f.Account) {
		return nil, errors.New("account: that is no public account key (A...)")
	}
	a := &Accounts{account: f.Account}
	for _, k := range []struct {
		name, seed string
		into       *nkeys.KeyPair
		optional   bool
	}{
		{"node_seed", f.Node, &a.node, false}, {"gateway_seed", f.Gateway, &a.gateway, false},
		{"operator_seed", f.Operator, &a.operator, true}, {"account_seed", f.Owner, &a.owner, true}, {"system_seed", f.System, &a.system, true},
	} {
		if k.seed == "" && k.optional {
			continue
		}
		kp, err := nkeys.FromSeed([]byte(k.seed))
		if err != nil {
			return nil, fmt.Errorf("%s: that is no seed: %w", k.name, err)
		}
		*k.into = kp
	}
	return a, nil
}

func (a *Accounts) save(path string) error {
	f := accountsFile{
		Version: control.DocumentVersion, Account: a.account, Node: seedOf(a.node), Gateway: seedOf(a.gateway),
		Operator: seedOf(a.operator), Owner: seedOf(a.owner), System: seedOf(a.system),
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("keeping the keys of the control plane: %w", err)
	}
	return identity.WriteSecret(path, append(data, '\n'))
}

func publicOf(kp nkeys.KeyPair) string {
	public, err := kp.PublicKey()
	if err != nil {
		panic("BUG: a key pair without a public key: " + err.Error())
	}
	return public
}

func seedOf(kp nkeys.KeyPair) string {
	if kp == nil {
		return ""
	}
	seed, err := kp.Seed()
	if err != nil {
		panic("BUG: a key pair of ours without a seed: " + err.Error())
	}
	return string(seed)
}

// Owned reports whether we made the account ourselves, so that servers can be
// set up from it.
func (a *Accounts) Owned() bool { return a.operator != nil && a.owner != nil && a.system != nil }

// NodeToken signs the token with which the holder of a user key connects as
// that node, until the given time.
func (a *Accounts) NodeToken(node, userKey string, until time.Time) (string, error) {
	if err := control.ValidateNodeName(node); err != nil {
		return "", err
	}
	return a.userToken(a.node, control.EscapeElement(node), userKey, until)
}

func (a *Accounts) userToken(signer nkeys.KeyPair, name, userKey string, until time.Time) (string, error) {
	if !nkeys.IsValidPublicUserKey(userKey) {
		return "", errors.New("that is no public user key of NATS (U...)")
	}
	claims := jwt.NewUserClaims(userKey)
	claims.Name = name
	claims.IssuerAccount = a.account
	claims.Expires = until.Unix()
	claims.SetScoped(true)
	token, err := claims.Encode(signer)
	if err != nil {
		return "", fmt.Errorf("signing a user's token: %w", err)
	}
	return token, nil
}

// GatewayUser is a gateway's way to log in: it signs its own tokens.
func (a *Accounts) GatewayUser(name string) (*User, error) {
	u, err := NewUser()
	if err != nil {
		return nil, err
	}
	u.token = func() (string, error) {
		return a.userToken(a.gateway, "gateway:"+control.EscapeElement(name), u.PublicKey(), time.Now().Add(identity.CertificateLife))
	}
	return u, nil
}

// nameTemplate is what the server replaces by the name in a user's token.
const nameTemplate = "{{name()}}"

// accountToken describes the swarm's account, with the scopes of its signing
// keys. It needs Owned.
func (a *Accounts) accountToken() (string, error) {
	claims := jwt.NewAccountClaims(a.account)
	claims.Name = "hecate"
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
	}
	claims.SigningKeys.AddScopedSigner(scope(publicOf(a.node), identity.RoleNode))
	claims.SigningKeys.AddScopedSigner(scope(publicOf(a.gateway), identity.RoleGateway))
	token, err := claims.Encode(a.operator)
	if err != nil {
		return "", fmt.Errorf("signing the account: %w", err)
	}
	return token, nil
}

func scope(key string, role identity.Role) *jwt.UserScope {
	g := GrantFor(role, nameTemplate)
	s := jwt.NewUserScope()
	s.Key, s.Role = key, string(role)
	s.Template.Pub.Allow = g.Publish
	s.Template.Sub.Allow = g.Subscribe
	if g.Replies {
		s.Template.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: ReplyWithin}
	}
	return s
}

// systemToken describes the account in which the servers talk about themselves.
func (a *Accounts) systemToken() (string, error) {
	claims := jwt.NewAccountClaims(publicOf(a.system))
	claims.Name = "system"
	token, err := claims.Encode(a.operator)
	if err != nil {
		return "", fmt.Errorf("signing the system account: %w", err)
	}
	return token, nil
}

func (a *Accounts) operatorToken() (string, error) {
	claims := jwt.NewOperatorClaims(publicOf(a.operator))
	claims.Name = "hecate"
	claims.SystemAccount = publicOf(a.system)
	token, err := claims.Encode(a.operator)
	if err != nil {
		return "", fmt.Errorf("signing the operator: %w", err)
	}
	return token, nil
}

// ServerConfig writes, in the syntax of nats-server, what each server of an
// external cluster must trust. It holds no secret. It needs Owned.
func (a *Accounts) ServerConfig() (string, error) {
	if !a.Owned() {
		return "", errors.New("this account belongs to the operator of the cluster, who configures it")
	}
	operator, err := a.operatorToken()
	if err != nil {
		return "", err
	}
	account, err := a.accountToken()
	if err != nil {
		return "", err
	}
	system, err := a.systemToken()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("operator: %q\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n  %s: %q\n  %s: %q\n}\nmax_payload: %d\n",
		operator, publicOf(a.system), a.account, account, publicOf(a.system), system, maxPayload), nil
}
