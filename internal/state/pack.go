package state

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// maxUnpacked bounds a state.
const maxUnpacked = statefile.MaxBytes

// maxContent bounds the decompressed size, so that a bad Secret cannot exhaust memory. An encrypted state is base64, a
// third larger.
const maxContent = maxUnpacked/3*4 + 64<<10

// maxAttachment bounds a decompressed encrypted attachment. All attachments of a state have some ten kibibytes.
const maxAttachment = 1 << 20

// errTooBig means that a state exceeds maxUnpacked.
var errTooBig = fmt.Errorf("it is larger than %d MiB", maxUnpacked>>20)

// Compressors are reused, because most states are smaller than one.
var (
	writers          = writersOf(gzip.DefaultCompression)
	encryptedWriters = writersOf(gzip.HuffmanOnly)
	readers          = sync.Pool{New: func() any { return &gzip.Reader{} }}
)

func writersOf(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		writer, _ := gzip.NewWriterLevel(io.Discard, level) // the levels above exist
		return writer
	}}
}

func packPlain(raw []byte) ([]byte, error) { return pack(raw, writers) }

// packEncrypted compresses an encrypted state fast: base64 of random bytes has no repetitions worth a search.
func packEncrypted(raw []byte) ([]byte, error) { return pack(raw, encryptedWriters) }

func pack(raw []byte, from *sync.Pool) ([]byte, error) {
	var buffer bytes.Buffer
	writer := from.Get().(*gzip.Writer)
	defer from.Put(writer)
	writer.Reset(&buffer)
	if _, err := writer.Write(raw); err != nil {
		return nil, fmt.Errorf("compressing the state: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing the state: %w", err)
	}
	return buffer.Bytes(), nil
}

// unpackContent rejects trailing bytes, because they come from parts that do not belong together.
func unpackContent(packed []byte) ([]byte, error) { return unpack(packed, maxContent) }

func unpack(packed []byte, limit int) ([]byte, error) {
	source := bytes.NewReader(packed)
	reader := readers.Get().(*gzip.Reader)
	defer readers.Put(reader)
	if err := reader.Reset(source); err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	reader.Multistream(false)
	raw, err := io.ReadAll(io.LimitReader(reader, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompressing: %w", err)
	case len(raw) > limit:
		return nil, errTooBig
	case source.Len() > 0:
		return nil, errors.New("decompressing: bytes behind the end")
	}
	return raw, nil
}

// splitChunks cuts packed into chunks of at most size bytes. It returns at least one.
func splitChunks(packed []byte, size int) [][]byte {
	chunks := [][]byte{}
	for len(packed) > size {
		chunks = append(chunks, packed[:size:size])
		packed = packed[size:]
	}
	return append(chunks, packed)
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
