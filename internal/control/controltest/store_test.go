package controltest

import (
	"testing"
	"testing/synctest"
)

func TestStoreKeepsItsContract(t *testing.T) {
	// In a bubble a missing update is a deadlock, and reported as such.
	synctest.Test(t, func(t *testing.T) {
		for _, part := range []func(*testing.T, *Store){
			func(t *testing.T, s *Store) { storeRevisions(t, s) },
			func(t *testing.T, s *Store) { storeNames(t, s) },
			func(t *testing.T, s *Store) { storeWatch(t, s) },
			func(t *testing.T, s *Store) { storeWatchKey(t, s) },
		} {
			part(t, NewStore())
		}
	})
}
