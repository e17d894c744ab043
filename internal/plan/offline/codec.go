package offline

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// maxMessage bounds a message of the plugin protocol; the schemas of the largest providers have some 100 MB.
const maxMessage = 512 << 20

// frame is a message that is forwarded unchanged.
type frame []byte

// frames is a codec that forwards frames unchanged and encodes other messages as usual.
type frames struct{ encoding.CodecV2 }

func newFrames() frames { return frames{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c frames) Marshal(v any) (mem.BufferSlice, error) {
	if one, ok := v.(*frame); ok {
		return mem.BufferSlice{mem.SliceBuffer(*one)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c frames) Unmarshal(data mem.BufferSlice, v any) error {
	if one, ok := v.(*frame); ok {
		*one = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
