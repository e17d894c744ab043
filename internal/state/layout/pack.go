package layout

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxUnpacked bounds a state.
const MaxUnpacked = 128 << 20

// maxContent bounds what packed bytes may grow to, so that a bad Secret cannot fill the memory: an encrypted state is a third larger, as text.
const maxContent = MaxUnpacked/3*4 + 64<<10

// ErrTooBig says that a state is larger than MaxUnpacked.
var ErrTooBig = fmt.Errorf("it is larger than %d MiB", MaxUnpacked>>20)

// Compressors are large beside most states, and kept for the next.
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

// Pack compresses a state.
func Pack(raw []byte) ([]byte, error) { return pack(raw, writers) }

// PackEncrypted compresses an encrypted state: random bytes as text, in which nothing is repeated that is worth a search.
func PackEncrypted(raw []byte) ([]byte, error) { return pack(raw, encryptedWriters) }

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

// Unpack is strict: bytes behind the end are an error, because they come from parts that do not belong together.
func Unpack(packed []byte) ([]byte, error) {
	source := bytes.NewReader(packed)
	reader := readers.Get().(*gzip.Reader)
	defer readers.Put(reader)
	if err := reader.Reset(source); err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	reader.Multistream(false)
	raw, err := io.ReadAll(io.LimitReader(reader, maxContent+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompressing: %w", err)
	case len(raw) > maxContent:
		return nil, ErrTooBig
	case source.Len() > 0:
		return nil, errors.New("decompressing: bytes behind the end")
	}
	return raw, nil
}

// Split cuts packed into chunks of at most size bytes; there is always one.
func Split(packed []byte, size int) [][]byte {
	chunks := [][]byte{}
	for len(packed) > size {
		chunks = append(chunks, packed[:size:size])
		packed = packed[size:]
	}
	return append(chunks, packed)
}

// Checksum returns the SHA-256 of data in hexadecimal.
func Checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
