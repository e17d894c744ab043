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

// newServer returns a server that handles every call with handle and passes messages on as frames.
func newServer(handle grpc.StreamHandler, more ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(more, grpc.UnknownServiceHandler(handle), grpc.ForceServerCodec(codec{}),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.ConnectionTimeout(startTimeout))...)
}

// respond handles a call that has one request and one response.
func respond(stream grpc.ServerStream, to func(ctx context.Context, method string, message []byte) ([]byte,
	error)) error {
	method, _ := grpc.MethodFromServerStream(stream)
	message := &frame{}
	if err := stream.RecvMsg(message); err != nil {
		return err
	}
	response, err := to(stream.Context(), method, message.content)
	if err != nil {
		return err
	}
	return stream.SendMsg(&frame{content: response})
}

// invoke forwards a call.
func invoke(ctx context.Context, to *grpc.ClientConn, method string, message []byte) ([]byte, error) {
	if sent, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, sent.Copy())
	}
	response := &frame{}
	err := to.Invoke(ctx, method, &frame{content: message}, response, grpc.ForceCodec(codec{}))
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
