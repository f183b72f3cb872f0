// Package recipes has structures that applications build of timecached's operations: locks,
// limits, tables, joins. docs/RECIPES.md says what each is for; other languages' clients
// have the same ones, with the same keys and bytes.
package recipes

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"

	"timecached.dev/client/go"
)

// NewID returns a random number that is not 0; two are equal with a probability of 2^-64.
func NewID() uint64 {
	for {
		if id := rand.Uint64(); id != 0 {
			return id
		}
	}
}

// isUnmet says whether a call was refused as the key is there, or not, or not with this
// version.
func isUnmet(err error) bool {
	return errors.Is(err, timecache.KeyExists) || errors.Is(err, timecache.KeyNotFound) ||
		errors.Is(err, timecache.VersionMismatch)
}

// members are the entries NAME/MEMBER of a structure.
type members struct {
	client *timecache.Client
	prefix string
}

// KeyPrefix is what the keys of its entries begin with: for WatchOptions.KeyPrefix.
func (m members) KeyPrefix() string { return m.prefix }

func (m members) of(key string) (member string, is bool) { return strings.CutPrefix(key, m.prefix) }

// appendSized appends the length in four bytes, and the bytes.
func appendSized(to, data []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(to, uint32(len(data))), data...)
}

func takeUint64(from []byte) (number uint64, rest []byte, is bool) {
	if len(from) < 8 {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint64(from), from[8:], true
}

func takeSized(from []byte) (data, rest []byte, is bool) {
	if len(from) < 4 {
		return nil, nil, false
	}
	size := uint64(binary.LittleEndian.Uint32(from))
	if from = from[4:]; uint64(len(from)) < size {
		return nil, nil, false
	}
	return from[:size], from[size:], true
}
