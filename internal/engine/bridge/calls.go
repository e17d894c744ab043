package bridge

import (
	"bytes"
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// maxMessage limits one message to the same size as Pulumi: schemas can be large.
const maxMessage = 400 << 20

// dial returns a connection, which connects with the first call.
func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
}

// call calls the bridge.
func (p *process) call(ctx context.Context, method string, message []byte) ([]byte, error) {
	if sent, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, sent.Copy())
	}
	response := &frame{}
	err := p.connection.Invoke(ctx, method, &frame{content: message}, response, grpc.ForceCodec(codec{}))
	return response.content, err
}

// frame is an encoded message that is forwarded unchanged.
type frame struct{ content []byte }

// codec passes frames through, under the name of the encoding inside.
type codec struct{}

// Marshal implements encoding.Codec.
func (codec) Marshal(message any) ([]byte, error) { return message.(*frame).content, nil }

// Unmarshal implements encoding.Codec.
func (codec) Unmarshal(content []byte, into any) error {
	into.(*frame).content = bytes.Clone(content)
	return nil
}

// Name implements encoding.Codec.
func (codec) Name() string { return "proto" }
