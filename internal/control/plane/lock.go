package plane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrFolderInUse: another process works in this data folder.
var ErrFolderInUse = errors.New("another process uses this data folder")

// A FolderLock keeps a data folder to one process. It ends with the process,
// however that ends.
type FolderLock struct{ file *os.File }

// LockFolder takes a folder, making it when there is none, or returns
// ErrFolderInUse.
func LockFolder(dir string) (*FolderLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the data folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data folder: %w", err)
	}
	if err := lockFile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), file.Close())
	}
	return &FolderLock{file: file}, nil
}

// Release gives the folder back. It is idempotent.
func (l *FolderLock) Release() {
	_ = l.file.Close() // closing it again is no harm, and nothing was written
}
