package cli

import (
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// dataDir is a folder that one gateway, or one worker, has for itself; the
// control plane locks it.
type dataDir string

// file is the path of something in the folder.
func (d dataDir) file(name ...string) string {
	return filepath.Join(append([]string{string(d)}, name...)...)
}

// announce leaves the address for commands on this machine; hide takes it away.
func (d dataDir) announce(url string) error {
	return renameio.WriteFile(d.file(addressFile), []byte(url+"\n"), 0o600)
}

func (d dataDir) hide() { _ = os.Remove(d.file(addressFile)) }

// defaultDataDir is where a gateway keeps its things unless told otherwise.
func defaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "hecate")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "hecate-data"
	}
	return filepath.Join(home, ".local", "share", "hecate")
}
