package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"
)

// tomlFile reads a configuration file. A flag `--some-name` of command `up` is
// the key `some-name` in the table [up]; keys outside tables hold for every
// command that has such a flag. Unknown keys are errors.
func tomlFile(r io.Reader) (kong.Resolver, error) {
	data, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	values := map[string]any{}
	if err := toml.Unmarshal(data, &values); err != nil {
		var where *toml.DecodeError
		if errors.As(err, &where) {
			row, column := where.Position()
			return nil, fmt.Errorf("configuration, line %d, column %d: %w", row, column, err)
		}
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return &fileResolver{values}, nil
}

type fileResolver struct{ values map[string]any }

// Validate refuses keys that no flag has.
func (f *fileResolver) Validate(app *kong.Application) error {
	known := map[string]bool{}
	collectFlags(app.Node, "", known)
	var unknown []string
	walkKeys(f.values, "", func(key string) {
		if !known[key] {
			unknown = append(unknown, key)
		}
	})
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("configuration: no such setting: %s", strings.Join(unknown, ", "))
	}
	return nil
}

func collectFlags(n *kong.Node, path string, known map[string]bool) {
	for _, flag := range n.Flags {
		known[flag.Name] = true
		known[joinKey(path, flag.Name)] = true
	}
	for _, child := range n.Children {
		collectFlags(child, joinKey(path, child.Name), known)
	}
}

func walkKeys(values map[string]any, path string, visit func(string)) {
	for name, v := range values {
		if table, ok := v.(map[string]any); ok {
			walkKeys(table, joinKey(path, name), visit)
			continue
		}
		visit(joinKey(path, name))
	}
}

func joinKey(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Resolve gives the value of a flag: from its command's table, or else from the
// top of the file.
func (f *fileResolver) Resolve(_ *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil // kong took it already, and would let us overrule it
		}
	}
	for n := parent.Node(); n != nil; n = n.Parent {
		table := f.values
		for _, name := range commandPath(n) {
			table, _ = table[name].(map[string]any)
		}
		if v, ok := table[flag.Name]; ok {
			if _, isTable := v.(map[string]any); !isTable {
				return v, nil
			}
		}
	}
	return nil, nil
}

func commandPath(n *kong.Node) (path []string) {
	for ; n != nil && n.Parent != nil; n = n.Parent {
		path = append(path, n.Name)
	}
	slices.Reverse(path)
	return path
}
