package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// dataDir is a folder that one gateway, or one worker, has for itself.
type dataDir struct {
	path string
	lock *os.File
}

// openDataDir makes the folder and locks it until close.
func openDataDir(path string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("the data folder %s is in use by another hecate: stop that one, or choose another folder with --data", path)
		}
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	return &dataDir{path: path, lock: f}, nil
}

// close unlocks the folder.
func (d *dataDir) close() { _ = d.lock.Close() }

// file is the path of something in the folder.
func (d *dataDir) file(name ...string) string {
	return filepath.Join(append([]string{d.path}, name...)...)
}

// announce leaves the address for commands on this machine; hide takes it away.
func (d *dataDir) announce(url string) error {
	return renameio.WriteFile(d.file(addressFile), []byte(url+"\n"), 0o600)
}

func (d *dataDir) hide() { _ = os.Remove(d.file(addressFile)) }

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
