package state

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// maxUnpacked bounds what a packed state may grow to, so that a bad Secret cannot fill the memory.
const maxUnpacked = 128 << 20

var errTooBig = fmt.Errorf("it is larger than %d MiB", maxUnpacked>>20)

func pack(raw []byte) ([]byte, error) {
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := writer.Write(raw); err != nil {
		return nil, fmt.Errorf("compressing the state: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing the state: %w", err)
	}
	return buffer.Bytes(), nil
}

// unpack is strict: bytes behind the end are an error, because they come from parts that do not belong together.
func unpack(packed []byte) ([]byte, error) {
	source := bytes.NewReader(packed)
	reader, err := gzip.NewReader(source)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	reader.Multistream(false)
	raw, err := io.ReadAll(io.LimitReader(reader, maxUnpacked+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompressing: %w", err)
	case len(raw) > maxUnpacked:
		return nil, errTooBig
	case source.Len() > 0:
		return nil, errors.New("decompressing: bytes behind the end")
	}
	return raw, nil
}

// split cuts packed into chunks of at most size bytes; there is always one.
func split(packed []byte, size int) [][]byte {
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
